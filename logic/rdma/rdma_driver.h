/*
 * The driver of RDMA adapters (hw/rdma_regs.h), with the verbs of InfiniBand: protection domains,
 * memory regions, completion queues, reliable connections, posting and polling. It works alike on
 * local and on borrowed adapters.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values; every [thread] call may return
 * -ENODEV (the adapter is gone) and -ETIMEDOUT (it does not answer; it is given up). Posting and
 * polling work from any context. One caller at a time may post to a queue, or poll a completion
 * queue.
 */
#ifndef LOGIC_RDMA_RDMA_DRIVER_H
#define LOGIC_RDMA_RDMA_DRIVER_H

#include "hw/rdma_regs.h"
#include "logic/kapi.h"

struct rdma_driver; /* one per kernel */
struct rdma_drv;    /* an adapter */
struct rdma_drv_mr;
struct rdma_drv_cq;
struct rdma_drv_qp;

struct rdma_driver *rdma_driver_new(struct kernel *kernel);
/* For k_pci_register(). A removal waits until all objects of the adapter have been freed. */
const struct k_pci_driver *rdma_driver_pci(const struct rdma_driver *driver);
/* All functions must be removed. */
void rdma_driver_free(struct rdma_driver *driver);
/* The i-th adapter that appeared; NULL: there are fewer. */
struct rdma_drv *rdma_driver_device(const struct rdma_driver *driver, unsigned i);
/* The adapter of a function. NULL: this driver does not drive it. */
struct rdma_drv *rdma_drv_of(struct k_pci_dev *dev);

/* ---- An adapter ------------------------------------------------------------------------------ */

struct rdma_drv_limits {
    uint32_t inline_bytes; /* of a send at most */
    uint32_t reads;        /* RDMA reads and atomics of a queue pair in flight, each way */
    uint32_t mtu_bytes, rate_gbit_s;
};
struct k_pci_dev *rdma_drv_pci(const struct rdma_drv *rdma);
struct rdma_drv_limits rdma_drv_limits(const struct rdma_drv *rdma);
/* It is being removed, does not answer, or was given up: its objects are to be freed. What was
 * posted and has no completion yet is completed as flushed, nothing can be posted any more.
 * Receives of a queue pair that was never connected stay, until the adapter itself is away. */
bool rdma_drv_gone(const struct rdma_drv *rdma);
/* [thread] The link is up. */
bool rdma_drv_link_up(struct rdma_drv *rdma);
/* [thread] What a subnet manager does: gives the port its local identifier (1 .. RDMA_LID_LAST). */
int rdma_drv_set_lid(struct rdma_drv *rdma, uint16_t lid);

/* Called in a hard interrupt for events other than completions; number: of the QP or CQ. */
typedef void rdma_drv_event_fn(void *context, enum rdma_event event, uint32_t number);
void rdma_drv_on_event(struct rdma_drv *rdma, rdma_drv_event_fn *fn, void *context);

struct rdma_driver_stats { /* of an adapter since it was probed */
    uint64_t sends, receives, blueflame, completions, failed, interrupts, stray;
};
struct rdma_driver_stats rdma_driver_stats(const struct rdma_drv *rdma);

/* ---- Protection domains, memory regions ------------------------------------------------------ */

/* [thread] -ENOSPC: none is left. */
int rdma_drv_pd_new(struct rdma_drv *rdma, uint32_t *pd);
/* [thread] -EBUSY: regions or queue pairs belong to it; with other errors it is gone, too. */
int rdma_drv_pd_free(struct rdma_drv *rdma, uint32_t pd);

/* [thread] Pins and maps memory, which peers and work requests then name by its addresses and the
 * key. access: RDMA_ACCESS_*. The caller owns the region. Others: -EINVAL, -ENOMEM, -ENOSPC, errors
 * of k_dma_map(). */
int rdma_drv_mr_new(struct rdma_drv *rdma, uint32_t pd, struct kaddr at, uint64_t bytes,
                    uint8_t access, struct rdma_drv_mr **mr);
/* [thread] The same of what lies at contiguous addresses for the device already: registers or
 * memory of another device, a ring of another driver. va: by which it is named. */
int rdma_drv_mr_new_dma(struct rdma_drv *rdma, uint32_t pd, uint64_t dma, uint64_t va,
                        uint64_t bytes, uint8_t access, struct rdma_drv_mr **mr);
/* [thread] The adapter does not access the memory any more when it returns. */
void rdma_drv_mr_free(struct rdma_drv_mr *mr);
uint32_t rdma_drv_key(const struct rdma_drv_mr *mr); /* lkey and rkey */

/* ---- Completion queues ----------------------------------------------------------------------- */

/* Once for each rdma_drv_arm(): in a hard interrupt, or in a thread that finds the adapter gone,
 * which may be the one that arms. */
typedef void rdma_drv_cq_fn(void *context);
/* [thread] With room for `entries` at least. Its interrupt goes to `cpu`. handler may be NULL: the
 * queue is polled. */
int rdma_drv_cq_new(struct rdma_drv *rdma, uint32_t entries, unsigned cpu, rdma_drv_cq_fn *handler,
                    void *context, struct rdma_drv_cq **cq);
/* [thread] No queue pair uses it any more. */
void rdma_drv_cq_free(struct rdma_drv_cq *cq);

struct rdma_drv_wc { /* work completion */
    uint64_t id;     /* of the work request; of a send that succeeded silently nothing comes */
    struct rdma_drv_qp *qp;
    enum rdma_status status;
    uint8_t opcode; /* of a send: its own; of a receive: RDMA_OP_SEND or RDMA_OP_WRITE_IMM */
    bool receive, has_immediate;
    uint32_t bytes, immediate;
};
/* Consumes up to n completions; returns their number. */
unsigned rdma_drv_poll(struct rdma_drv_cq *cq, struct rdma_drv_wc *wc, unsigned n);
/* [thread] The handler is called as soon as there is a completion that has not been polled. */
void rdma_drv_arm(struct rdma_drv_cq *cq, bool solicited_only);

/* ---- Queue pairs ----------------------------------------------------------------------------- */

struct rdma_drv_qp_params {
    uint32_t pd;
    struct rdma_drv_cq *send_cq, *receive_cq;
    uint32_t n_sends, n_receives;     /* work requests that may be posted at once */
    uint32_t send_sges, receive_sges; /* segments of one */
    uint32_t inline_bytes;            /* of a send at most */
    uint8_t access;                   /* RDMA_ACCESS_* that peers have */
    bool blueflame; /* WQEs of up to four blocks go to the adapter with the doorbell */
};
/* [thread] -EINVAL, -ENOMEM, -ENOSPC. */
int rdma_drv_qp_new(struct rdma_drv *rdma, const struct rdma_drv_qp_params *params,
                    struct rdma_drv_qp **qp);
/* [thread] Work requests that are posted end without a completion. */
void rdma_drv_qp_free(struct rdma_drv_qp *qp);

/* What both sides tell each other before they connect, by any means. */
struct rdma_drv_endpoint {
    uint16_t lid;
    uint32_t qp, psn;
    /* RDMA reads and atomics of this connection that it serves, and has under way, at most. */
    uint8_t responder_resources, initiator_depth;
};
struct rdma_drv_connection {
    uint32_t mtu_bytes;
    uint8_t timeout;              /* 4.096 us << this; 0: never */
    uint8_t retries, rnr_retries; /* RDMA_RNR_RETRIES_ALWAYS */
    uint8_t rnr_timer;            /* RDMA_RNR_TIMERS_10US */
    /* RDMA reads and atomics that it serves, and has under way, at most; RDMA_DRV_READS_MAX: as
     * many as the adapter. The peer's other number limits each. */
    uint8_t responder_resources, initiator_depth;
};
#define RDMA_DRV_READS_MAX UINT8_MAX
extern const struct rdma_drv_connection rdma_drv_connection_default;
/* What the peer is to be told of a connection that is about to be made with these numbers. */
struct rdma_drv_endpoint rdma_drv_endpoint(const struct rdma_drv_qp *qp,
                                           const struct rdma_drv_connection *connection);
/* [thread] To state RTS. Receives may be posted before. */
int rdma_drv_connect(struct rdma_drv_qp *qp, const struct rdma_drv_endpoint *peer,
                     const struct rdma_drv_connection *connection);
/* [thread] To SQD, from there back to RTS, to ERR. */
int rdma_drv_qp_modify(struct rdma_drv_qp *qp, enum rdma_qp_state state);
/* [thread] As the adapter says; a negative errno else. */
int rdma_drv_qp_state(struct rdma_drv_qp *qp);

struct rdma_drv_sge {
    uint64_t va;
    uint32_t bytes, key;
};
struct rdma_drv_send {
    uint64_t id;
    enum rdma_opcode opcode;
    bool signaled, solicited, fence;
    const void *inline_data; /* instead of segments, of inline_bytes; copied */
    uint32_t inline_bytes;
    const struct rdma_drv_sge *sge;
    uint32_t n_sges;
    uint32_t immediate;
    uint64_t remote_va; /* RDMA and atomics */
    uint32_t rkey;
    uint64_t swap_or_add, compare; /* atomics */
};
struct rdma_drv_receive {
    uint64_t id;
    const struct rdma_drv_sge *sge;
    uint32_t n_sges;
};
/* -EINVAL: more segments or inline data than the queue pair has; -EBUSY: the queue is full;
 * -ENODEV. The work request is the caller's again. */
int rdma_drv_post_send(struct rdma_drv_qp *qp, const struct rdma_drv_send *send);
int rdma_drv_post_receive(struct rdma_drv_qp *qp, const struct rdma_drv_receive *receive);

/* ---- Offload of an NVMe-oF target ------------------------------------------------------------ */

/* An NVMe queue pair that the adapter takes over (RDMA_SET_OFFLOAD says what for). It is new:
 * nothing was put into its queues, its completion queue is all zeros. Nobody else uses it, its
 * memory or the staging buffers before rdma_drv_qp_free() and then the deletion of the NVMe
 * queues. */
struct rdma_drv_offload_params {
    struct k_pci_dev *controller;      /* of the same kernel */
    uint64_t sq_doorbell, cq_doorbell; /* in its BAR 0, in one page */
    struct kaddr sq, cq;
    uint16_t nvme_entries; /* of both */
    uint16_t entries;      /* of the peer's queue: number of staging buffers */
    uint16_t sq_head;      /* that the last response told the peer */
    uint8_t block_log2;
    uint32_t nsid;
    uint32_t slot_bytes; /* of a staging buffer: pages, up to RDMA_OFFLOAD_SLOT_MAX */
    uint64_t staging_va; /* of the first buffer, by staging_key; the others follow */
    uint32_t staging_key;
    uint64_t staging_bus; /* as the controller reaches it */
    /* Memory for a PRP list of list_bytes, a power of two, for each buffer. */
    struct kaddr lists;
    uint64_t lists_bus;
    uint32_t list_bytes;
};
struct rdma_drv_offload;
/* [thread] Of a connected queue pair. -EINVAL: a parameter is out of range, the key is not valid
 * for the buffers, or the queue pair is in another state; -EBUSY: it is offloaded; those of
 * k_dma_map() and k_dma_map_resource(). */
int rdma_drv_offload_new(struct rdma_drv_qp *qp, const struct rdma_drv_offload_params *params,
                         struct rdma_drv_offload **offload);
/* [thread] After rdma_drv_qp_free(), which ends the offload. */
void rdma_drv_offload_free(struct rdma_drv_offload *offload);
/* Frees C structures alone, after a run that has failed. NULL: nothing happens. */
void rdma_drv_offload_abandon(struct rdma_drv_offload *offload);

#endif
