/*
 * One NVMe controller for many hosts (SmartIO, 6.2 and 6.3): a manager owns the controller and its
 * admin queue, clients on any hosts have queue pairs of their own and drive them by themselves, by
 * polling (docs/models/dnvme.md). It stands on SISCI: the device is borrowed, its registers are a
 * segment, queues and data are segments that are mapped for it.
 *
 *   dnvme_manager_new(kernel, process, name, &dnvme_manager_params_default, &manager, &error);   on any host
 *   ... on every host that uses it, that of the manager and the lender included:
 *   dnvme_client_new(kernel, process, name, &client_params, &client, &error);
 *   dnvme_pair_new(client, &pair_params, &pair, &error);
 *   dnvme_buffer_new(client, bytes, &buffer, &error);
 *   dnvme_io(&command, write, nsid, block, n_blocks);
 *   dnvme_pair_put(pair, &command, piece, n_pieces);
 *   dnvme_pair_ring(pair);
 *   dnvme_pair_wait(pair, until_ps);
 *
 * Clients renew a lease. One that does not, because it or its host is dead or its cable is out,
 * loses its queues: the manager deletes them. A client that cannot renew stops by itself before
 * that, so that it never rings the doorbell of a queue that is another's by then.
 *
 * All calls are made from kernel threads; but for those that submit and poll they may sleep. Errors
 * are negative errno values; *error (NULL: not wanted) then has a sentence. One thread at a time
 * uses a pair, and one at a time makes and ends things of a client. The manager and each client
 * have a thread of their own.
 */
#ifndef LOGIC_DNVME_DNVME_H
#define LOGIC_DNVME_DNVME_H

#include "logic/nvme/nvme_user.h"
#include "logic/sisci/sisci.h"

#define DNVME_PATHS_MAX 2u

/* ---- Manager --------------------------------------------------------------------------------- */

struct dnvme_manager_params {
    uint32_t segment;       /* number of the segment of mailboxes, unique on this host */
    unsigned n_clients;     /* mailboxes: 1 .. 256 */
    unsigned client_queues; /* queue pairs that a client may have */
    uint64_t lease_ps;      /* a client without a heartbeat for so long is dead */
    uint64_t poll_ps;       /* between two looks at all mailboxes */
    uint64_t timeout_ps;    /* of an admin command */
    bool weighted;          /* weighted round robin of queue pairs; else all are alike */
    unsigned weight[3];     /* of queue pairs of high, medium and low priority, 1 .. 256 */
    int cpu;                /* of its thread; K_CPU_ANY */
};
extern const struct dnvme_manager_params dnvme_manager_params_default;

struct dnvme_manager;
/* Borrows the controller exclusively, resets it, sets up the admin queue in memory of this host,
 * asks for all the queue pairs that it has, then shares it and serves clients. -EBUSY: it is
 * borrowed; -EINVAL: a parameter is out of range; -ENODEV, -EIO, -ETIMEDOUT: of the controller; or
 * an error of SISCI. */
int dnvme_manager_new(struct kernel *kernel, struct sisci_process *process,
                      struct sisci_device_name name, const struct dnvme_manager_params *params,
                      struct dnvme_manager **manager, struct lend_error *error);
/* Deletes all queues, shuts the controller down and returns the device. Clients find that they have
 * lost it. */
void dnvme_manager_free(struct dnvme_manager *manager);
/* For simulations: the host has died. Frees memory alone; what SISCI has goes with the host. */
void dnvme_manager_kill(struct dnvme_manager *manager);

struct dnvme_manager_stats {
    unsigned n_clients, n_queues; /* now */
    uint64_t requests;            /* carried out, refused ones included */
    uint64_t refused;             /* that were not the client's to make */
    uint64_t damaged;             /* requests whose check was wrong; they are repeated */
    uint64_t expired;             /* leases that were over */
    uint64_t reclaimed;           /* queue pairs of clients that did not delete them */
    uint64_t reclaimed_ps;        /* when the last one of those was deleted */
};
struct dnvme_manager_stats dnvme_manager_stats(const struct dnvme_manager *manager);

/* ---- Clients --------------------------------------------------------------------------------- */

struct dnvme_client_params {
    uint32_t manager; /* number of the manager's host */
    uint32_t segment; /* of its mailboxes */
    unsigned number;  /* of the mailbox: below n_clients, and no other client's */
    /* Local segments of the client take 4096 numbers from this one on, which must be free on this
     * host. Those of segments near the device follow from host and `number`. */
    uint32_t first_segment;
    unsigned n_paths; /* 1; 2: the device and the manager are reached by two adapters */
    unsigned adapter[DNVME_PATHS_MAX]; /* of this host; SISCI_ANY */
    uint64_t timeout_ps;               /* of a request to the manager */
    int cpu;                           /* of its thread; K_CPU_ANY */
};

struct dnvme_client;
/* Borrows the device as one of several, maps its registers and registers with the manager. -EBUSY:
 * the mailbox has a client whose lease is not over, perhaps an earlier process that did not end in
 * order; -ETIMEDOUT: no answer; or an error of SISCI. */
int dnvme_client_new(struct kernel *kernel, struct sisci_process *process,
                     struct sisci_device_name name, const struct dnvme_client_params *params,
                     struct dnvme_client **client, struct lend_error *error);
/* Unregisters with the manager, which deletes the queues that are left, and gives everything back.
 * All pairs and buffers have been freed. */
void dnvme_client_free(struct dnvme_client *client);
/* For tests: the client stops without unregistering, as a process does that has crashed. Then
 * dnvme_client_free(), which sends nothing, frees its memory. */
void dnvme_client_kill(struct dnvme_client *client);

struct dnvme_namespace {
    uint64_t blocks; /* 0: there is none */
    unsigned block_log2;
};
int dnvme_client_namespace(struct dnvme_client *client, uint32_t nsid, struct dnvme_namespace *out);
/* The largest command in bytes; 0: any. */
uint64_t dnvme_client_bytes_max(const struct dnvme_client *client);
/* The lease is over, or the device is lost: nothing of the client works any more. */
bool dnvme_client_lost(const struct dnvme_client *client);
struct sisci_device *dnvme_client_device(const struct dnvme_client *client);
/* Has the manager execute Identify, Get Log Page, Get Features, or Abort of a command of the client
 * (sqe.prp1, prp2: addresses for the device, 4 KiB at most). 0: *command is done, with its status
 * and result; -EPERM: the manager does not do that for clients. */
int dnvme_client_admin(struct dnvme_client *client, struct nvme_user_command *command);

/* ---- Data ------------------------------------------------------------------------------------ */

/* Memory that the device reaches, by each path of the client that works. */
struct dnvme_buffer {
    struct kaddr at; /* v is 0: a device's memory */
    uint64_t bytes;
    uint64_t bus[DNVME_PATHS_MAX]; /* for the device; 0: it is not mapped by this path */
    /* ---- private ----------------------------------------------------------------------------- */
    struct sisci_segment *segment;
    struct sisci_window window[DNVME_PATHS_MAX];
    bool mapped[DNVME_PATHS_MAX];
    struct dnvme_buffer *next;
};
/* Allocates zeroed pages of this host. By a path that is down they are mapped when it is restored
 * (two paths: dnvme_multi_*); one path at least must work: -EHOSTUNREACH. */
int dnvme_buffer_new(struct dnvme_client *client, uint64_t bytes, struct dnvme_buffer *buffer,
                     struct lend_error *error);
/* Takes pages of memory that the caller has, or of a base address register of a device of this
 * kernel (memory of a GPU), local or borrowed. */
int dnvme_buffer_of_memory(struct dnvme_client *client, struct kaddr at, uint64_t bytes,
                           struct dnvme_buffer *buffer, struct lend_error *error);
int dnvme_buffer_of_bar(struct dnvme_client *client, struct k_pci_dev *pci, unsigned bar,
                        uint64_t offset, uint64_t bytes, struct dnvme_buffer *buffer,
                        struct lend_error *error);
/* The device must not access it any more. */
void dnvme_buffer_free(struct dnvme_client *client, struct dnvme_buffer *buffer);

/* ---- Queue pairs ----------------------------------------------------------------------------- */

enum dnvme_place {
    DNVME_SQ_LOCAL,       /* in memory of this host */
    DNVME_SQ_NEAR_DEVICE, /* as SISCI chooses for what the device reads and we write: at the
                           * lender */
    DNVME_SQ_BAR,         /* in memory of another device, params.bar_* */
    DNVME_SQ_CMB,         /* in the controller's memory buffer */
};
#define DNVME_ENTRIES_MAX 4096u
struct dnvme_pair_params {
    uint16_t entries; /* of each queue, 2 .. DNVME_ENTRIES_MAX; limited by the device */
    enum dnvme_place sq;
    struct k_pci_dev *bar_device; /* DNVME_SQ_BAR: of this kernel, local or borrowed */
    unsigned bar;
    uint64_t bar_offset;
    unsigned path;       /* of the client: by which device and queue reach each other */
    uint32_t list_bytes; /* of a PRP list; 0: commands have two pages at most */
    enum nvme_sq_priority priority;
    struct nvme_user_costs costs;
};
extern const struct dnvme_pair_params dnvme_pair_params_default;

struct dnvme_pair;
/* Allocates the queues (the completion queue and PRP lists in memory of this host) and has the
 * manager create them. -ENOSPC: the controller has no queue left, or the client has as many as it
 * may; -ENXIO: DNVME_SQ_CMB, and there is no such buffer that the device can use; -EIO: the
 * controller refuses; or an error of SISCI. */
int dnvme_pair_new(struct dnvme_client *client, const struct dnvme_pair_params *wanted,
                   struct dnvme_pair **pair, struct lend_error *error);
/* Deletes the queues and frees their memory. Returns when the controller executes none of the
 * commands any more: some end first, others end with NVME_SC_ABORTED_SQ_DELETED. Waits as long as
 * the deletion takes, or until the client is lost. If it is, or if the controller does not delete
 * queues, commands end though the controller may still execute them. */
void dnvme_pair_free(struct dnvme_pair *pair);
/* For nvme_user_qp_poll(), nvme_user_qp_room(). */
struct nvme_user_qp *dnvme_pair_qp(struct dnvme_pair *pair);
uint16_t dnvme_pair_number(const struct dnvme_pair *pair);

/* Puts a command into the submission queue, whose done, context and sqe are set: see
 * nvme_user_qp_put(). dnvme_pair_ring() tells the device. -ESTALE: the lease is over or cannot be
 * renewed in time. */
int dnvme_pair_put(struct dnvme_pair *pair, struct nvme_user_command *command,
                   const struct nvme_user_piece *piece, unsigned n);
/* Returns 0 or -ESTALE; then the device has not been told. */
int dnvme_pair_ring(struct dnvme_pair *pair);
/* Ends what is complete; if nothing is, looks again until something is or until_ps has come.
 * Returns how many have ended. While the lease cannot be renewed nothing ends. */
unsigned dnvme_pair_wait(struct dnvme_pair *pair, uint64_t until_ps);

/* For tests of isolation: has the manager create a queue pair at addresses that it makes up,
 * `entries` each; *handle: of the pair. -EPERM and others: the manager refuses. */
int dnvme_wild_pair_new(struct dnvme_client *client, uint64_t sq_bus, uint64_t cq_bus,
                        uint16_t entries, uint64_t *handle);
/* Rings the doorbell of its submission queue: so many entries are there. */
void dnvme_wild_pair_ring(struct dnvme_client *client, uint64_t handle, uint16_t tail);
void dnvme_wild_pair_free(struct dnvme_client *client, uint64_t handle);

/* ---- Two paths ------------------------------------------------------------------------------- */

/* Queue pairs by each path of a client, of which one is used until it fails; I/O that was under way
 * then is issued again by the other (SmartIO, 6.3). One thread does I/O. */
struct dnvme_multi;
struct dnvme_io;
typedef void dnvme_io_fn(struct dnvme_io *io);
struct dnvme_io {
    /* ---- set by the caller, unchanged until done --------------------------------------------- */
    bool write;
    uint32_t nsid, n_blocks;
    uint64_t block; /* no other I/O under way overlaps what a write writes */
    const struct dnvme_buffer *buffer;
    uint64_t offset, bytes; /* in it */
    dnvme_io_fn *done;
    void *context;
    /* ---- valid in done() --------------------------------------------------------------------- */
    uint16_t status; /* as in struct nvme_user_command */
    /* ---- private ----------------------------------------------------------------------------- */
    struct dnvme_multi *multi;
    struct dnvme_io *next;
    struct nvme_user_command command;
};
/* timeout_ps: without a completion for so long a path has failed. */
int dnvme_multi_new(struct dnvme_client *client, const struct dnvme_pair_params *params,
                    uint64_t timeout_ps, struct dnvme_multi **multi, struct lend_error *error);
/* Nothing is outstanding. */
void dnvme_multi_free(struct dnvme_multi *multi);
/* At most params.entries - 1 are outstanding. done() follows, from dnvme_multi_wait(), also if no
 * path works any more. */
void dnvme_multi_submit(struct dnvme_multi *multi, struct dnvme_io *io);
/* Ends what is complete; if nothing is, waits until something is or until_ps. Not from done(). Once
 * the lease is over, the device is lost or the controller is gone, ends all with
 * NVME_SC_ABORTED_SQ_DELETED: the device may have executed them, and reach their buffers until the
 * manager has deleted the queues. */
void dnvme_multi_wait(struct dnvme_multi *multi, uint64_t until_ps);

struct dnvme_multi_stats {
    unsigned outstanding;
    uint64_t failures;    /* of the path in use, also if no other works */
    uint64_t switches;    /* of the path in use to another */
    uint64_t lost_paths;  /* of either */
    uint64_t failed_over; /* I/Os that were issued again */
    uint64_t resumed;     /* paths that came back with their mappings, */
    uint64_t rebuilt;     /* and without */
    uint64_t restored_ps; /* when the last of either did */
};
/* The path in use. */
unsigned dnvme_multi_active(const struct dnvme_multi *multi);
struct dnvme_multi_stats dnvme_multi_stats(const struct dnvme_multi *multi);

/* Fills in a command that moves whole blocks. */
static inline void dnvme_io(struct nvme_user_command *command, bool write, uint32_t nsid,
                            uint64_t block, uint32_t n_blocks)
{
    command->sqe = (struct nvme_sqe){ .opcode = write ? NVME_WRITE : NVME_READ,
                                      .nsid = nsid,
                                      .cdw10 = (uint32_t)block,
                                      .cdw11 = (uint32_t)(block >> 32),
                                      .cdw12 = n_blocks - 1 };
}

#endif
