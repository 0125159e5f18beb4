/*
 * What programs that use the distributed NVMe driver (logic/dnvme) share: the program
 * `nvme_manager`, which others find by the device that it manages, and how a program on a host
 * becomes its client.
 */
#ifndef WORKLOADS_DNVME_NVME_SITE_H
#define WORKLOADS_DNVME_NVME_SITE_H

#include "logic/dnvme/dnvme.h"
#include "workloads/programs/program.h"

extern const struct program_ops program_nvme_manager_ops, program_nvme_clients_ops,
    program_nvme_rogue_ops, program_nvme_failover_ops;

/* ---- The manager ----------------------------------------------------------------------------- */

struct nvme_manager;
/* In check(): the manager of this device among the programs before this one; NULL: there is none,
 * which is a mistake with the setting `device` of a program that runs. */
struct nvme_manager *nvme_manager_of(struct program *program, const char *device,
                                     struct sim_error_list *errors);
/* The controller. */
struct model *nvme_manager_device(const struct nvme_manager *manager);
struct lending_host *nvme_manager_host(const struct nvme_manager *manager);
/* In check(): the program has n queue pairs of the controller at a time; a mistake with its setting
 * `key` if it and those before it need more than there are. */
void nvme_manager_take_pairs(struct program *program, const char *key,
                             const struct nvme_manager *manager, unsigned n,
                             struct sim_error_list *errors);
/* In check(): the program has `depth` commands of a queue under way; a mistake with its setting
 * `queue_depth` if the controller's queues are too short. */
void nvme_manager_check_depth(struct program *program, const struct nvme_manager *manager,
                              uint32_t depth, struct sim_error_list *errors);
/* In start(): says that so many clients will come; the manager ends when they have left. Returns
 * the number of the first. */
unsigned nvme_manager_expect(struct nvme_manager *manager, unsigned n_clients);
/* Queues of its controller have priorities. */
bool nvme_manager_is_weighted(const struct nvme_manager *manager);
/* So many clients more (or, below 0, less) write what they will read; none of them begins before
 * all are ready, so that those who come first do not hold up the others with their load. */
void nvme_manager_prepare(struct nvme_manager *manager, int n_clients);
bool nvme_manager_is_preparing(const struct nvme_manager *manager);
/* That a client has left, or is dead. */
void nvme_manager_left(struct nvme_manager *manager);
struct dnvme_manager_stats nvme_manager_stats(const struct nvme_manager *manager);

/* ---- A client -------------------------------------------------------------------------------- */

struct nvme_site {
    struct lending_host *host;
    struct sisci_process *process;
    struct dnvme_client *client;
    struct nvme_manager *manager;
};
/* [thread] Waits for the manager and registers with it as client `number`, by `n_paths` adapters of
 * the host. 0 or a negative errno; *error says more. */
int nvme_site_open(struct nvme_site *site, struct lending_host *host, struct nvme_manager *manager,
                   unsigned number, unsigned n_paths, struct lend_error *error);
/* [thread] Leaves; also after an open() that has failed. */
void nvme_site_close(struct nvme_site *site);

#endif
