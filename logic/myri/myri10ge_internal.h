/* The inside of the driver of Myri-10G adapters with Ethernet firmware. */
#ifndef LOGIC_MYRI_MYRI10GE_INTERNAL_H
#define LOGIC_MYRI_MYRI10GE_INTERNAL_H

#include "logic/kapi.h"
#include "logic/kcosts.h"
#include "logic/myri/myri10ge.h"
#include "logic/myri/myri_command.h"
#include "logic/net/net.h"
#include "logic/net/xps.h"

#define MYRI_INFO_BYTES   32u /* of a ring's book entry: packet or page, DMA address, length */
#define MYRI_REFILL_BELOW 256u

/* A buffer that a ring holds. */
struct myri_rx_info {
    struct k_page *page; /* with one reference */
    uint64_t dma;        /* of the page */
    uint32_t offset;     /* in it */
    bool last;           /* of its page: unmaps it */
};
struct myri_rx_ring {
    struct myri_rx_info *info;
    struct k_page *lines; /* that stand for info */
    uint32_t mask, filled, used;
    uint32_t bytes;  /* of a buffer */
    uint32_t stride; /* from one to the next in a page */
    uint32_t window; /* where its lines go */
    struct k_page *page;
    uint64_t page_dma;
    uint32_t page_offset;
};

struct myri_tx_info {
    struct sk_buff *skb; /* of the packet's first segment */
    uint64_t dma;
    uint32_t bytes; /* of the mapping; 0: none here */
    bool last;      /* of the packet */
};
struct myri_tx_ring {
    struct myri_tx_info *info;
    struct k_page *lines;
    uint32_t mask, requested, done; /* segments */
    uint32_t packets_done;
    bool locked;
};

/* Lines of structures that CPUs share, about where Linux has them (what lies how near matters to
 * prefetchers): of net_device, then of the driver's own, in one page; a page for each slice. */
enum myri_line {
    MYRI_LINE_STATE =
        1, /* net_device: state, with the bit of who runs the queue and that of its stop */
    MYRI_LINE_LAST_RX = 8,   /* net_device: last_rx, of receiving */
    MYRI_LINE_QUEUE = 10,    /* net_device: lock of the queueing discipline */
    MYRI_LINE_TRANSMIT = 11, /* net_device: lock of transmission, trans_start */
    MYRI_LINE_REQUESTS = 26, /* myri10ge_tx_buf: req, which transmission counts */
    MYRI_LINE_DONE = 27,     /* myri10ge_tx_buf: done, which its end counts */
    MYRI_LINE_STATS = 52,    /* net_device_stats, of both ways */
    MYRI_LINE_SLICES = 64,
    MYRI_LINE_IRQ_STATE = 0,    /* irq_desc of the slice's interrupt: state and count */
    MYRI_LINE_IRQ = 1,          /* its second line: lock */
    MYRI_LINE_BUFFERS = 16,     /* myri10ge_rx_buf: its counters, of the small and the big ones */
    MYRI_LINE_COMPLETIONS = 18, /* myri10ge_rx_done: index and count */
    MYRI_LINE_NAPI = 40,        /* napi_struct: state and list */
    MYRI_LINES_OF_SLICE = 64
};

struct myri10ge_dev;
struct myri10ge_slice {
    struct myri10ge_dev *myri;
    unsigned number;
    uint16_t cpu;
    struct k_napi napi;
    struct k_irq *irq;
    struct myri_rx_ring small, big;
    struct kaddr queue;
    uint64_t queue_dma;
    uint32_t queue_mask, queue_next;
    bool active; /* polled, or to be */
    unsigned inside;
    struct k_timer retry;
    struct net_rx_progress progress;
    struct myri10ge_stats stats;
};

/* Packets that were sent, to be freed by a soft interrupt of a CPU; Linux: softnet_data's
 * completion_queue. */
struct myri_sent {
    struct myri10ge_dev *myri;
    struct k_napi napi;
    struct sk_buff *first;
};

struct myri10ge_dev {
    struct myri10ge_dev *next;
    struct myri10ge *driver;
    struct kernel *kernel;
    struct net *net;
    const struct k_costs *costs;
    struct k_pci_dev *pci;
    struct net_device dev;
    char name[24];
    struct myri_commands commands;
    unsigned n_slices;
    struct myri10ge_slice slice[MYRI_SLICES_MAX];
    struct myri_tx_ring tx;
    struct myri_sent *sent; /* by CPU */
    struct k_page *shared;  /* lines: enum myri_line */
    struct kaddr status;
    uint64_t status_dma;
    uint32_t send_done; /* as the last interrupt told */
    uint32_t ack_at, small_bytes, ring_entries;
    bool link_up, link_told, closing;
    struct k_timer watchdog;
    uint32_t seen_requested, seen_done; /* when it looked last */
    bool resetting;                     /* its thread is at work, or about to be */
};

struct myri10ge {
    struct net *net;
    struct kernel *kernel;
    struct myri10ge_params params;
    uint16_t slice_cpu[MYRI_SLICES_MAX];
    const char *prefix;
    unsigned n;
    struct myri10ge_dev *first;
    struct k_pci_driver pci;
};

static inline struct myri10ge_dev *myri10ge_of(const struct net_device *dev)
{
    return dev->private_data;
}
struct k_page *myri10ge_lines_new(struct myri10ge_dev *myri, size_t bytes);
static inline struct kaddr myri10ge_shared(const struct myri10ge_dev *myri, unsigned line)
{
    return kaddr_add(myri->shared->addr, (uint64_t)line * K_LINE_BYTES);
}
/* A lock, or a state that is changed atomically. */
static inline void myri10ge_lock_shared(struct myri10ge_dev *myri, unsigned line)
{
    k_atomic(myri->kernel, myri10ge_shared(myri, line));
}
static inline void myri10ge_lock_slice(struct myri10ge_slice *slice, unsigned line)
{
    myri10ge_lock_shared(slice->myri,
                         MYRI_LINE_SLICES + slice->number * MYRI_LINES_OF_SLICE + line);
}
/* The same of one that is looked at first. */
static inline void myri10ge_look_and_lock(struct myri10ge_dev *myri, unsigned line)
{
    k_touch(myri->kernel, myri10ge_shared(myri, line), 8);
    myri10ge_lock_shared(myri, line);
}
/* A count that is looked at and changed: the CPU waits for the line. */
static inline void myri10ge_change_shared(struct myri10ge_dev *myri, unsigned line)
{
    k_touch(myri->kernel, myri10ge_shared(myri, line), 8);
    k_touch_write(myri->kernel, myri10ge_shared(myri, line), 8);
}
static inline void myri10ge_change_slice(struct myri10ge_slice *slice, unsigned line)
{
    myri10ge_change_shared(slice->myri,
                           MYRI_LINE_SLICES + slice->number * MYRI_LINES_OF_SLICE + line);
}

/* myri10ge_tx.c */
int myri10ge_tx_new(struct myri10ge_dev *myri);
void myri10ge_tx_free(struct myri10ge_dev *myri);
enum net_xmit myri10ge_start_xmit(struct sk_buff *skb, struct net_device *dev);
/* [hard interrupt] Takes what the device has sent from the ring; a soft interrupt of this CPU frees
 * it. */
void myri10ge_tx_done(struct myri10ge_dev *myri);
void myri10ge_sent_init(struct myri10ge_dev *myri);
/* A CPU has yet to free some. */
bool myri10ge_sent_waits(const struct myri10ge_dev *myri);

/* myri10ge_rx.c */
int myri10ge_slice_new(struct myri10ge_slice *slice);
void myri10ge_slice_free(struct myri10ge_slice *slice);
/* Posts buffers as far as there are pages. */
void myri10ge_refill(struct myri10ge_slice *slice);
int myri10ge_poll(struct k_napi *napi, int budget);
void myri10ge_interrupt(void *arg); /* in a hard interrupt */
void myri10ge_schedule(struct myri10ge_slice *slice);

#endif
