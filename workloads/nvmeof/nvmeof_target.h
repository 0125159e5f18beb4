/* Targets of NVMe over Fabrics as initiators in other programs find them. */
#ifndef WORKLOADS_NVMEOF_NVMEOF_TARGET_H
#define WORKLOADS_NVMEOF_NVMEOF_TARGET_H

#include "logic/nvmeof/nvmeof.h"
#include "workloads/programs/program.h"

struct nvmeof_service;

/* In check(): the target that exports a device of this name, of the programs before this one. NULL:
 * there is none. */
struct nvmeof_service *nvmeof_service_find(const struct program *program, const char *device);
/* The controller that it exports; NULL: its settings have mistakes. */
struct model *nvmeof_service_model(const struct nvmeof_service *service);
const char *nvmeof_service_subsystem(const struct nvmeof_service *service);
const struct lending_host *nvmeof_service_host(const struct nvmeof_service *service);
/* In check(): the only RDMA adapter that the host uses by itself; NULL: it has none or several. */
const char *nvmeof_adapter(const struct program *program, struct lending_host *host);

/* In check(): so many I/O queues the target has at most. 0: that is not known before it runs (its
 * controller is a virtual function). */
unsigned nvmeof_service_queues(const struct nvmeof_service *service);
/* In check(): the program's initiator connects so many I/O queues to the target, as it begins
 * (first) or later on; more than the target, its controller or its adapter have is a mistake with
 * the setting `key`. */
void nvmeof_service_take(struct program *program, const char *key,
                         const struct nvmeof_service *service, unsigned n_queues, bool first,
                         struct sim_error_list *errors);

/* [thread] A connection manager, for struct nvmeof_initiator_params: takes a hello to the target,
 * whose thread answers it. -ECONNREFUSED: the target could not start, or has ended. */
struct nvmeof_caller {
    struct nvmeof_service *service;
    struct kernel *kernel; /* of the caller */
};
int nvmeof_service_exchange(void *caller, const struct nvmeof_hello *hello,
                            struct nvmeof_hello *answer);

/* [thread] The adapter of this name, with a local identifier that no other has; NULL: it is not
 * there, or does not answer. */
struct rdma_drv *nvmeof_adapter_up(const struct program *program, struct lending_host *host,
                                   const char *adapter);

#endif
