/* What programs have to do with RDMA adapters: how many objects they make of one, before time
 * starts, and its local identifier. */
#ifndef WORKLOADS_RDMA_RDMA_OBJECTS_H
#define WORKLOADS_RDMA_RDMA_OBJECTS_H

#include "models/rdma/rdma.h"
#include "workloads/programs/program.h"

/* In check(): the program has so many objects of the adapter `name`, as it begins and at most. What
 * the programs before it have when they begin, they have at the same time, as it has itself what
 * calls before this one took. Too many are a mistake with its setting `key`; fewer: what a message
 * expects as well as another adapter ("fewer jobs, or "). */
void program_take_rdma(struct program *program, const char *key, const char *fewer,
                       const struct model *adapter, const char *name,
                       const struct rdma_objects *first, const struct rdma_objects *most,
                       struct sim_error_list *errors);
/* The local identifier that a subnet manager gives the adapter of this name: its place among those
 * of the scenario, from 1 on. 0: there is none. */
uint16_t rdma_lid(struct world *world, const char *adapter);

#endif
