/* Memory of programs: of simulated hosts, and of this process. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "workloads/programs/programs_internal.h"

#define NODES_MAX 8u

void program_check_memory(struct program *program, const char *key, const struct network_host *host,
                          unsigned socket, uint64_t bytes, struct sim_error_list *errors)
{
    static const char *const what[NODES_MAX] = { "byte of node 0", "byte of node 1",
                                                 "byte of node 2", "byte of node 3",
                                                 "byte of node 4", "byte of node 5",
                                                 "byte of node 6", "byte of node 7" };
    const struct physmem *mem = host_physmem(host->host);
    const unsigned node = socket < physmem_nodes(mem) ? socket : 0;
    const uint64_t there = physmem_node_bytes(mem, node),
                   taken = program_take(program, mem, what[node % NODES_MAX], bytes);
    char expected[200];
    if (taken <= there && bytes <= there - taken)
        return;
    snprintf(expected, sizeof(expected),
             "%.6g MiB of memory at most on socket %u of the host \"%s\" (with it, programs need "
             "%.6g MiB)",
             (double)there / 1048576.0, node, host->name,
             ((double)taken + (double)bytes) / 1048576.0);
    program_mistake(program, key, errors, expected, NULL);
}

void program_check_arrays(struct program *program, const struct lending_host *host, unsigned node,
                          uint64_t array_bytes, unsigned n, struct sim_error_list *errors)
{
    const struct physmem *mem = host_physmem(host->host);
    if (host->vm != NULL)
        program_mistake(program, "on", errors, "a host without a group `vm`", NULL);
    if (node >= physmem_nodes(mem))
        program_mistake(program, "node", errors, "a socket of the host that has memory", NULL);
    else if (array_bytes > physmem_node_bytes(mem, node) / 2 / SIM_MAX(n, 1u))
        program_mistake(program, "array_bytes", errors,
                        "at most half of the node's memory for all arrays", NULL);
    if (array_bytes % LINE_BYTES != 0)
        program_mistake(program, "array_bytes", errors, "whole lines of 64 bytes", NULL);
}

struct kaddr program_buffer(struct program *program, const struct network_host *host, unsigned cpu,
                            uint64_t bytes)
{
    const unsigned node = k_node_of_cpu(host->kernel, cpu);
    struct kaddr at = k_alloc(host->kernel, (int)node, bytes, K_PAGE_BYTES);
    if (at.v == 0)
        program_fail(program, "no memory for %" PRIu64 " bytes on node %u of the host \"%s\"",
                     bytes, node, host->name);
    return at;
}

void *program_zalloc_large(struct program *program, size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);
    if (memory == NULL) {
        program_fail(program, "the real machine has no memory for %zu times %zu bytes", n, bytes);
        return NULL;
    }
    program->owned = sim_grow(program->owned, program->n_owned + 1, sizeof(*program->owned));
    return program->owned[program->n_owned++] = memory;
}
