/*
 * NVMe as a process drives it that polls: queue pairs, and the administration of a controller,
 * without interrupts and without a kernel's driver. All memory and all registers are given by the
 * caller with their addresses for CPU and device, so that the same code drives a local controller,
 * one whose submission queue lies behind a bridge and whose doorbells are a mapped segment, and the
 * controller behind an NVMe-oF target.
 *
 * Nothing is allocated, looked up or locked per command. One thread at a time uses a queue pair,
 * and one a controller; different queue pairs are independent. Calls marked [thread] may sleep.
 * Errors are negative errno values, unless they are called a status (enum nvme_status with its
 * flags).
 */
#ifndef LOGIC_NVME_NVME_USER_H
#define LOGIC_NVME_NVME_USER_H

#include "hw/nvme_regs.h"
#include "logic/kapi.h"

/* ---- Registers and memory -------------------------------------------------------------------- */

/* How the CPU reaches registers, or memory that is not in its host. Offsets are the window's base
 * and what the library adds to it. */
struct nvme_user_window_ops {
    /* Suspend the CPU for the round trip; all ones if nobody answers. */
    uint32_t (*read32)(void *context, uint64_t offset);
    uint64_t (*read64)(void *context, uint64_t offset);
    /* Posted, behind all stores of the CPU to its own memory. */
    void (*write32)(void *context, uint64_t offset, uint32_t value);
    void (*write64)(void *context, uint64_t offset, uint64_t value);
    /* Stores whole cache lines through write-combining, in any order; NULL: the window is of
     * registers alone. */
    void (*write_lines)(void *context, uint64_t offset, const void *from, size_t bytes);
    /* When it returns, no later write passes these lines. NULL: they are in order anyway. */
    void (*drain)(void *context);
};
struct nvme_user_window {
    const struct nvme_user_window_ops *ops; /* NULL: none */
    void *context;
    uint64_t base;
};
/* Base address register `bar` of a device of this kernel, local or borrowed. */
struct nvme_user_window nvme_user_bar_window(struct k_pci_dev *dev, unsigned bar);

/* A range of memory that the device reaches at `bus`. The CPU reaches it at `at`, or through the
 * window if at.v is 0. `bus` is a multiple of the page for queues and of 8 for lists. */
struct nvme_user_memory {
    struct kaddr at;
    struct nvme_user_window window;
    uint64_t bus;
};

/* ---- Queue pairs ----------------------------------------------------------------------------- */

/* Cycles that the caller's library takes, beyond the cache lines and registers that it touches. */
struct nvme_user_costs {
    uint32_t submit_cycles;   /* building a command */
    uint32_t complete_cycles; /* a completion, excluding done() */
    uint32_t poll_cycles;     /* one look at the completion queue, even if it finds nothing */
};

struct nvme_user_qp_params {
    struct kernel *kernel;
    uint16_t id;      /* of both queues; 0: those of administration */
    uint16_t entries; /* of each queue, 2 .. 4096; one less is how many commands are under way */
    struct nvme_user_memory sq; /* entries x 64 bytes */
    /* entries x 16 bytes, all zero. It should be memory of this host, as it is polled. */
    struct nvme_user_memory cq;
    /* PRP lists: entries x list_bytes, which is a power of two of 64 .. 4096. 0: there are no
     * lists, and commands have data in two pages at most. */
    struct nvme_user_memory lists;
    uint32_t list_bytes;
    struct nvme_user_window registers; /* the controller's BAR 0 */
    uint32_t doorbell_bytes;           /* distance of doorbells: 4 << CAP.DSTRD; 0: 4 */
    struct nvme_user_costs costs;
};

/* Data of a command: pieces of contiguous bus addresses. The first begins at a multiple of 4, the
 * others at pages; all but the last end at pages (4.3). */
struct nvme_user_piece {
    uint64_t bus, bytes;
};

struct nvme_user_command;
/* Ends a command: it is the caller's again, and may be submitted again, even from here. */
typedef void nvme_user_done_fn(struct nvme_user_command *command);
struct nvme_user_command {
    /* ---- set by the caller, unchanged until done --------------------------------------------- */
    struct nvme_sqe sqe; /* but for cid; prp1 and prp2 are set from pieces, if there are any */
    nvme_user_done_fn *done;
    void *context;
    /* ---- valid in done() --------------------------------------------------------------------- */
    uint16_t status; /* without phase; NVME_SC_SUCCESS; NVME_STATUS_CODE(status) */
    uint32_t result; /* first double word of the completion */
};

struct nvme_user_qp_stats {
    uint64_t submitted, completed; /* completed: failed ones too */
    uint64_t failed;               /* with another status than success */
    uint64_t stray;                /* completions of no command of ours; they are consumed */
    uint64_t sq_rings, cq_rings;   /* doorbells written */
};

struct nvme_user_qp {
    struct nvme_user_qp_params params;
    struct nvme_user_qp_stats stats;
    /* ---- private ----------------------------------------------------------------------------- */
    uint64_t sq_doorbell, cq_doorbell; /* offsets in the window */
    uint16_t tail, rung;               /* of the submission queue; what the device knows of it */
    uint16_t head;                     /* of the completion queue */
    uint16_t n_free;
    uint8_t phase;
    bool polling;
    struct nvme_user_command **slot; /* by command identifier; NULL: free */
    uint16_t *free_cid;
};

/* Prepares the CPU's side; the device must not have the queues yet, or have them empty. -EINVAL: a
 * parameter is out of range. */
int nvme_user_qp_init(struct nvme_user_qp *qp, const struct nvme_user_qp_params *params);
/* Frees what init allocated. No command is under way. */
void nvme_user_qp_release(struct nvme_user_qp *qp);
/* Empties the queue pair for a controller that was reset, or for queues that were deleted and will
 * be created again: clears the completion queue, starts over at entry 0. No command is under
 * way. */
void nvme_user_qp_clear(struct nvme_user_qp *qp);

/* Commands that may still be submitted. */
static inline unsigned nvme_user_qp_room(const struct nvme_user_qp *qp)
{
    return qp->n_free;
}
/* Commands that are under way. */
static inline unsigned nvme_user_qp_outstanding(const struct nvme_user_qp *qp)
{
    return qp->params.entries - 1u - qp->n_free;
}

/* Writes a command into the submission queue; the device learns of it by nvme_user_qp_ring(). Data:
 * n pieces, 0: none, or as sqe.prp1, prp2 and flags say. They are the device's until done. If it
 * returns 0, done() follows. -EBUSY: the queue is full; -EINVAL: the pieces do not make a PRP list,
 * or need a longer one. */
int nvme_user_qp_put(struct nvme_user_qp *qp, struct nvme_user_command *command,
                     const struct nvme_user_piece *piece, unsigned n);
/* Rings the doorbell for all commands that were put since the last time; none: does nothing. */
void nvme_user_qp_ring(struct nvme_user_qp *qp);
/* Both. */
int nvme_user_qp_submit(struct nvme_user_qp *qp, struct nvme_user_command *command,
                        const struct nvme_user_piece *piece, unsigned n);

/* Ends up to `most` completed commands (0: all that are there) in the order of their completions,
 * then tells the device once. Returns their number. From done(): does nothing, returns 0. */
unsigned nvme_user_qp_poll(struct nvme_user_qp *qp, unsigned most);

/* Ends all commands under way with this status, in the order of their identifiers. The device must
 * not execute them any more: it was reset, its queues were deleted, or it is gone. */
void nvme_user_qp_fail_all(struct nvme_user_qp *qp, uint16_t status);

/* ---- A controller ---------------------------------------------------------------------------- */

struct nvme_user_controller_params {
    struct kernel *kernel;
    struct nvme_user_window registers; /* BAR 0 */
    uint16_t admin_entries;            /* 2 .. 4096 */
    struct nvme_user_memory admin_sq, admin_cq;
    struct nvme_user_memory page; /* 4096 bytes for the data of Identify; at.v is not 0 */
    uint64_t timeout_ps;          /* of an admin command */
    bool weighted;                /* weighted round robin: queues have priorities */
    struct nvme_user_costs costs;
};

struct nvme_user_namespace {
    uint64_t blocks; /* 0: it is not there */
    uint8_t block_log2;
};

struct nvme_user_controller {
    struct nvme_user_controller_params params;
    /* ---- valid once it is open --------------------------------------------------------------- */
    struct nvme_user_qp admin; /* for commands that nobody waits for, too */
    uint64_t capabilities;     /* CAP */
    uint32_t entries_max;      /* of a queue */
    uint32_t doorbell_bytes;
    uint64_t bytes_max; /* of a command; 0: any */
    uint32_t n_namespaces;
    bool gone; /* it does not answer, or an admin command was never answered */
    /* ---- private ----------------------------------------------------------------------------- */
    struct nvme_user_command waited; /* by nvme_user_admin() */
    bool waited_done;
};

/* [thread] Resets the controller, enables it with the admin queue, identifies it. 0; -EINVAL;
 * -ENODEV: nobody answers, or it is none that this can drive (as params.weighted asks); -ETIMEDOUT;
 * -EIO: it refuses. With an error it is disabled again (if it answers), and nothing is left
 * behind. */
int nvme_user_controller_open(struct nvme_user_controller *ctl,
                              const struct nvme_user_controller_params *params);
/* [thread] Shuts the controller down in order and disables it, if it is not gone; ends admin
 * commands under way with NVME_SC_ABORTED_SQ_DELETED. Its queues do not access memory any more. */
void nvme_user_controller_close(struct nvme_user_controller *ctl);

/* [thread] Executes command->sqe on the admin queue and waits, polling with growing sleeps; done
 * and context are not used, and the command is the caller's again. Completions of others end
 * meanwhile. 0: command->status and result (also in *result, unless that is NULL) are valid; -EIO:
 * it ended with another status than success, which is there; -EBUSY: the queue is full; -ENODEV;
 * -ETIMEDOUT: it was never answered, and the controller is given up: it may write to the data until
 * it is closed. */
int nvme_user_admin(struct nvme_user_controller *ctl, struct nvme_user_command *command,
                    const struct nvme_user_piece *piece, unsigned n, uint32_t *result);
/* [thread] Asks for *n queue pairs for I/O; *n becomes what there is of both, if that is less. */
int nvme_user_set_queues(struct nvme_user_controller *ctl, uint16_t *n);
/* [thread] params.weighted: commands in turn of queues of high, medium and low priority, 1 .. 256
 * each. Those of urgent queues come before all of them. */
int nvme_user_set_weights(struct nvme_user_controller *ctl, const unsigned weight[3]);
/* [thread] Creates completion queue, then submission queue `id` (1 ..), contiguous and without
 * interrupts, wherever their memory is. If the second fails, the first is deleted again. */
int nvme_user_create_queues(struct nvme_user_controller *ctl, uint16_t id, uint16_t entries,
                            uint64_t sq_bus, uint64_t cq_bus, enum nvme_sq_priority priority);
/* [thread] Deletes submission queue `id`, after which its commands have ended, then the completion
 * queue. The caller polls between or fails what is under way afterwards: no completion comes any
 * more when it returns. */
int nvme_user_delete_queues(struct nvme_user_controller *ctl, uint16_t id);
/* [thread] Identify; `data` gets NVME_IDENTIFY_BYTES. */
int nvme_user_identify(struct nvme_user_controller *ctl, enum nvme_identify what, uint32_t nsid,
                       uint8_t data[]);
/* [thread] Size of a namespace. */
int nvme_user_identify_namespace(struct nvme_user_controller *ctl, uint32_t nsid,
                                 struct nvme_user_namespace *out);

#endif
