/*
 * The inside of the NIC driver (nic_driver.h).
 *
 * Concurrency. Code that charges no time is atomic (kapi.h); it replaces the locks and barriers of
 * a real driver where noted. The poll function owns the receive side of its channel. On the send
 * side start_xmit() produces (one at a time: nic_drv_sq.locked) and the poll function consumes.
 *
 * Lifetime. A channel's memory is freed only when its interrupt is freed, its poll function idle,
 * its handler not running, its send queue unlocked and its work done.
 */
#ifndef LOGIC_NIC_NIC_INTERNAL_H
#define LOGIC_NIC_NIC_INTERNAL_H

#include "logic/kapi.h"
#include "logic/kcosts.h"
#include "logic/nic/nic_dim.h"
#include "logic/nic/nic_driver.h"

#define NIC_FUNCTIONS_MAX   8u
#define NIC_NODES_MAX       8u
#define NIC_TX_POLL_CQES    128u /* handled in one poll */
#define NIC_PAGE_CACHE      256u /* pages that a receive queue keeps: enough for 4 polls */
#define NIC_RX_HEADROOM     64u  /* before the packet in its buffer */
#define NIC_RX_TAIL_BYTES   320u /* after it: the kernel's structure at the end of the buffer */
#define NIC_LRO_BUFFER      65536u
#define NIC_EQ_LOG          6u
#define NIC_RSS_LOG         7u
#define NIC_CHANNEL_CQS     3u /* of a channel: sends, receives, internal operations */
#define NIC_ICOSQ_LOG       6u /* MLX5E_PARAMS_MINIMUM_LOG_SQ_SIZE */
#define NIC_REFILL_RETRY_PS K_MS
/* Sizes of the driver's entries in a real kernel, for the cache lines that they touch. */
#define NIC_RX_BUFFER_BYTES 32u
#define NIC_RX_CACHE_BYTES  16u
#define NIC_SQ_WQE_BYTES    16u
#define NIC_SQ_DMA_BYTES    16u

struct nic_drv;
struct nic_channel;

struct nic_memory { /* shared by device and CPU */
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};

struct nic_work { /* counted, so that removal can wait for it */
    struct k_work work;
    struct nic_drv *nic;
};

/* ---- Completion and event queues: nic_eq.c --------------------------------------------------- */

struct nic_drv_cq {
    struct nic_memory ring;
    uint16_t number, mask;
    uint8_t log;
    bool created;
    uint32_t ci; /* entries consumed so far */
};

struct nic_drv_eq {
    struct nic_memory ring;
    bool created;
    uint32_t ci;
};

/* Loads the next completion without consuming it (cq->ci++ does that). False: there is none. */
static inline bool nic_drv_cq_next(struct kernel *kernel, const struct nic_drv_cq *cq,
                                   struct nic_cqe *cqe)
{
    k_load(kernel, kaddr_add(cq->ring.at, (uint64_t)(cq->ci & cq->mask) * sizeof *cqe), cqe,
           sizeof *cqe);
    return (cqe->op_own & 1u) != (cq->ci >> cq->log & 1u);
}
/* Arms the queue: it raises an interrupt once there is an entry at cq->ci or later. */
void nic_drv_cq_arm(struct nic_drv *nic, struct nic_drv_cq *cq);
/* An event is in memory that the interrupt handler has not seen. Charges nothing. */
bool nic_drv_eq_pending(const struct nic_channel *channel);
void nic_drv_eq_arm(struct nic_drv *nic, const struct nic_channel *channel);
void nic_drv_interrupt(void *arg); /* struct nic_channel */

/* ---- Receive: nic_rx.c ----------------------------------------------------------------------- */

struct nic_rx_page {
    struct k_page *page; /* one reference; NULL: none */
    uint64_t dma;
};
/* The page of a receive WQE. While the WQE is posted, the device writes at `offset`; afterwards
 * held.page is the rest of the page, for the next pass. */
struct nic_rx_buffer {
    struct nic_rx_page held;
    uint32_t offset;
    bool done; /* received into before a buffer posted earlier: LRO */
};

struct nic_drv_rq {
    struct nic_drv_cq cq;
    struct nic_memory ring, record;
    uint16_t number, mask;
    uint8_t order; /* of its pages */
    bool created, lro;
    int node;
    uint32_t buffer_bytes, page_bytes;
    uint32_t posted, consumed; /* WQEs so far; those before `consumed` are received into */
    struct net_rx_progress progress;
    struct nic_rx_buffer *buffer;
    struct k_page *buffer_lines;
    /* Pages that the stack may still hold, first in, first out: only the head is checked. */
    struct nic_rx_page cache[NIC_PAGE_CACHE];
    uint32_t cache_head, cache_tail;
    struct k_page *cache_lines;
    struct k_timer retry; /* when there was no page */
};

/* See net_device_ops.rx_passed. */
bool nic_drv_rx_passed(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark);
/* Passes at most `budget` packets to the stack; returns their number. */
int nic_drv_rq_poll(struct nic_channel *channel, int budget);
/* Posts buffers until the queue is full. If pages run out, it is retried later. */
void nic_drv_rq_refill(struct nic_channel *channel);
int nic_drv_rq_alloc(struct nic_channel *channel);
/* Drops all pages. The device must not write any more. */
void nic_drv_rq_release(struct nic_channel *channel);

/* ---- Transmit: nic_tx.c ---------------------------------------------------------------------- */

struct nic_sq_wqe { /* indexed by its first block */
    struct sk_buff *skb;
    uint8_t n_blocks, n_dma;
};
struct nic_sq_dma {
    uint64_t dma;
    uint32_t bytes;
    uint8_t function; /* through which it is mapped */
};

struct nic_drv_sq {
    struct nic_drv_cq cq;
    struct nic_memory ring, record;
    uint16_t number, mask;
    uint16_t last_wqe; /* first block of the WQE posted last */
    bool created;
    bool locked;      /* by start_xmit() on some CPU: the transmit lock of the queue */
    uint32_t pc, cc;  /* blocks posted, completed so far */
    uint32_t rung_pc; /* blocks announced to the device so far */
    struct nic_sq_wqe *wqe;
    struct nic_sq_dma *dma; /* mappings of outstanding WQEs, first in, first out */
    uint32_t dma_mask, dma_pc, dma_cc;
    struct k_page *wqe_lines, *dma_lines;
    uint32_t seen_pc, seen_cc; /* when the watchdog looked last */
};

enum net_xmit nic_drv_start_xmit(struct sk_buff *skb, struct net_device *dev);
/* Frees sent packets. True: there may be more. */
bool nic_drv_sq_poll(struct nic_channel *channel);
int nic_drv_sq_alloc(struct nic_channel *channel);
/* Frees outstanding packets. The device must not read any more. */
void nic_drv_sq_release(struct nic_channel *channel);

/* ---- Channels: nic_channel.c ----------------------------------------------------------------- */

struct nic_channel {
    struct nic_drv *nic;
    uint16_t index, cpu;
    int node;
    struct k_napi napi;
    bool active;     /* its poll function is scheduled, or will poll again */
    unsigned inside; /* its poll function or interrupt handler runs right now */
    struct nic_drv_eq eq;
    struct nic_drv_rq rq;
    struct nic_drv_sq sq;
    struct nic_drv_cq icosq_cq; /* of internal operations; armed, and nothing comes in */
    struct k_irq *irq;
    uint64_t rx_events, rx_packets, rx_bytes; /* for dim; since open() */
    struct nic_dim dim;
    struct nic_work dim_work;
    struct nic_drv_stats *stats; /* outlives the channel */
};

/* The number of channels for a device; 0: the function has no queues. */
unsigned nic_drv_channels_wanted(const struct nic_drv *nic);
/* [thread] Creates all channels of the device. 0, or a negative errno with nothing left behind. */
int nic_drv_channels_open(struct nic_drv *nic);
/* [thread] Destroys all channels. nic->closing must be set. */
void nic_drv_channels_close(struct nic_drv *nic);
/* Schedules the channel's poll function. From an interrupt or a timer on its CPU. */
void nic_drv_channel_schedule(struct nic_channel *channel);

/* ---- The watchdog: nic_watchdog.c ------------------------------------------------------------ */

void nic_drv_watchdog_init(struct nic_drv *nic);
/* Begins to look after the device, which is open. */
void nic_drv_watchdog_start(struct nic_drv *nic);
/* [thread] At return it does not look any more. nic->closing must be set. */
void nic_drv_watchdog_stop(struct nic_drv *nic);

/* ---- Flow filters: nic_flow.c ---------------------------------------------------------------- */

struct nic_flows;
struct nic_flows *nic_drv_flows_new(struct nic_drv *nic, uint32_t n);
/* Frees the table. Deletes nothing in the device, which is reset or gone. */
void nic_drv_flows_free(struct nic_flows *flows);
/* [thread] Deletes all filters and refuses new ones until nic_drv_flows_start(). */
void nic_drv_flows_stop(struct nic_flows *flows);
void nic_drv_flows_start(struct nic_flows *flows);
int nic_drv_rx_flow_steer(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq,
                          uint32_t flow_id);

/* ---- Rules for packets beside IPv4's: nic_rule.c --------------------------------------------- */

/* See net_device_ops.rx_rule. */
int nic_drv_rx_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                    uint16_t rxq);
/* [thread] Sets all rules again, in a device that may have forgotten them. */
int nic_drv_rules_restore(struct nic_drv *nic);
void nic_drv_rules_free(struct nic_drv *nic);

/* ---- Commands: nic_command.c ----------------------------------------------------------------- */

/* [thread] Executes a command; concurrent callers take turns. Results are in *command. 0, -ENOSPC,
 * -EINVAL, -ENOENT, -ENODEV (gone), -ETIMEDOUT. */
int nic_drv_command(struct nic_drv *nic, struct nic_command *command);

/* ---- A function: nic_main.c ------------------------------------------------------------------ */

/* A queue has failed: closes and opens all of the device's, from a thread of its own; counts it,
 * unless one is at work. */
void nic_drv_recover(struct nic_drv *nic, uint64_t *counter);

struct nic_card { /* functions of one card */
    struct nic_card *next;
    struct net_mac mac; /* octoNIC firmware: of all functions; standard: of function 0 */
    struct nic_drv *function[NIC_FUNCTIONS_MAX];
};

struct nic_driver {
    struct k_pci_driver pci;
    struct net *net;
    struct kernel *kernel;
    const char *prefix;
    struct nic_driver_params params;
    uint16_t *channel_cpu;
    struct nic_drv *first, **last;
    unsigned n;
    struct nic_card *cards;
};

struct nic_drv {
    struct net_device dev;
    char name[24];
    struct nic_drv *next;
    struct nic_driver *driver;
    const struct nic_driver_params *params;
    struct kernel *kernel;
    struct net *net;
    const struct k_costs *costs;
    struct k_pci_dev *pci;  /* NULL: gone */
    struct net_mac own_mac; /* the function's; dev.mac may be a bond's */
    struct nic_card *card;
    uint8_t function, n_functions;
    enum nic_firmware firmware;
    uint32_t n_queues, n_arfs;
    int node;
    bool gone;    /* the function does not answer any more */
    bool closing; /* no new work, no new packets */
    bool reopen;  /* it was open when it disappeared */
    unsigned n_vfs;
    /* commands */
    struct nic_memory command;
    bool command_busy;
    unsigned n_commands; /* threads in nic_drv_command() */
    struct k_wait_queue command_queue;
    /* work under way */
    unsigned n_works;
    struct nic_work link_work;
    bool recovering;     /* a thread makes the channels anew, or is about to */
    bool recovers_again; /* a queue of these has failed meanwhile */
    struct k_timer watchdog;
    bool watching; /* it looks right now */
    /* open: */
    struct nic_channel *channel;
    uint16_t n_channels;
    struct nic_flows *flows;
    struct nic_drv_rule *rules; /* those that are set, in any order */
    struct nic_drv_stats stats[NET_QUEUES_MAX];
};

void nic_drv_work_init(struct nic_work *work, struct nic_drv *nic, k_work_fn *fn);
/* Queues the work; does nothing while the device is closing. */
void nic_drv_work_queue(struct nic_work *work, int cpu);
/* Each work function calls it at its end. */
void nic_drv_work_done(struct nic_drv *nic);
int nic_drv_memory_alloc(struct nic_drv *nic, struct nic_memory *memory, int node, size_t bytes);
void nic_drv_memory_free(struct nic_drv *nic, struct nic_memory *memory);
/* Cache lines of the driver's bookkeeping; NULL: no memory. nic_drv_lines_free() takes NULL. */
struct k_page *nic_drv_lines_alloc(struct nic_drv *nic, int node, size_t bytes);
void nic_drv_lines_free(struct nic_drv *nic, struct k_page *lines);

static inline struct nic_drv *nic_drv_of(const struct net_device *dev)
{
    return dev->private_data;
}

#endif
