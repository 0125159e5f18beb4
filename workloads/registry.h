/* The workloads and the programs that scenarios may name; both lists are NULL-terminated. */
#ifndef WORKLOADS_REGISTRY_H
#define WORKLOADS_REGISTRY_H

struct program_ops;
struct workload_ops;

extern const struct workload_ops *const workload_registry[];
extern const struct program_ops *const program_registry[];
/* The index-th of workload_registry, then of those that the program has brought along
 * (NUDMA_WORKLOAD() of workloads/embed/nudma.h); NULL beyond the last. */
const struct workload_ops *workload_at(unsigned index);

#endif
