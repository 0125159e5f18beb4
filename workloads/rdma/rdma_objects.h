/* Before time starts: programs that make more objects of an RDMA adapter than it can have. */
#ifndef WORKLOADS_RDMA_RDMA_OBJECTS_H
#define WORKLOADS_RDMA_RDMA_OBJECTS_H

#include "models/rdma/rdma.h"
#include "workloads/programs/program.h"

/* In check(): the program has so many objects of the adapter `name`, as it begins and at most. What
 * the programs before it have when they begin, they have at the same time. Too many are a mistake
 * with its setting `key`; fewer: what a message expects as well as another adapter ("fewer jobs, or
 * "). */
void program_take_rdma(struct program *program, const char *key, const char *fewer,
                       const struct model *adapter, const char *name,
                       const struct rdma_objects *first, const struct rdma_objects *most,
                       struct sim_error_list *errors);

#endif
