/*
 * An NVMe controller in the hands of one process, in the manner of SPDK: the process is bound to
 * the PCI function, has the queues in pinned memory of its own, rings doorbells and polls for
 * completions itself. The kernel has no driver for the function.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values.
 */
#ifndef LOGIC_NVME_NVME_LOCAL_H
#define LOGIC_NVME_NVME_LOCAL_H

#include "logic/nvme/nvme_user.h"

#define NVME_LOCAL_QUEUES_MAX  255u
#define NVME_LOCAL_ENTRIES_MAX 4096u

struct nvme_local;

struct nvme_local_params {
    uint16_t n_queues;  /* pairs for I/O that the process wants: 1 .. NVME_LOCAL_QUEUES_MAX */
    uint16_t entries;   /* of each queue, 2 .. NVME_LOCAL_ENTRIES_MAX; limited by the device */
    uint64_t bytes_max; /* of a command: at most 2 MiB less a page; limited by the device */
};
extern const struct nvme_local_params nvme_local_params_default;

/* [thread] Takes the function: resets the controller, creates the queue pairs. Memory is on the
 * node of the device. -EBUSY: a driver or a process has the function; -EINVAL; -ENOMEM; those of
 * nvme_user_controller_open(). With an error nothing is left behind. */
int nvme_local_open(struct k_pci_dev *dev, const struct nvme_local_params *params,
                    struct nvme_local **out);
/* [thread] Deletes the queues, shuts the controller down, frees all memory. No command is under
 * way. */
void nvme_local_close(struct nvme_local *local);
/* Frees the process' own structures and nothing of the host: for the end of a run that has failed,
 * in which no thread goes on. NULL: nothing happens. */
void nvme_local_abandon(struct nvme_local *local);

/* For admin commands of the process. */
struct nvme_user_controller *nvme_local_controller(struct nvme_local *local);
struct k_pci_dev *nvme_local_pci(const struct nvme_local *local);
unsigned nvme_local_n_queues(const struct nvme_local *local); /* as many as the device grants */
/* The i-th queue pair. One thread at a time uses it. */
struct nvme_user_qp *nvme_local_qp(struct nvme_local *local, unsigned i);
uint64_t nvme_local_bytes_max(const struct nvme_local *local);
/* Namespace 1. */
struct nvme_user_namespace nvme_local_namespace(const struct nvme_local *local);

/* [thread] Zeroed, contiguous, pinned memory for data of commands, on `node`. It is freed with the
 * process. -ENOMEM and others. */
int nvme_local_memory(struct nvme_local *local, int node, uint64_t bytes,
                      struct nvme_user_memory *out);

/* Fills in a read or write of whole blocks of namespace 1. */
void nvme_local_transfer(const struct nvme_local *local, struct nvme_user_command *command,
                         bool write, uint64_t offset, uint64_t bytes);

#endif
