/*
 * The inside of Open-MX's kernel module.
 *
 * Commands run in threads, the receive handler and the end of transmissions in soft interrupts, at
 * the same time and for one endpoint. Code that charges no time is atomic (logic/kapi.h): what must
 * be, reserves or claims first, and charges afterwards. Who works on an object while time passes
 * holds a reference.
 *
 * What a real module shares between CPUs is cache lines here: each object has a function or a field
 * that says where its lines are, and whoever uses it touches them.
 */
#ifndef LOGIC_OPENMX_OPENMX_INTERNAL_H
#define LOGIC_OPENMX_OPENMX_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "logic/kcosts.h"
#include "logic/mx/mx_account.h"
#include "logic/mx/mx_local.h"
#include "logic/net/net.h"
#include "logic/openmx/openmx.h"

#define OPENMX_BLOCKS_MAX   4u
#define OPENMX_PULLS_MAX    4096u
#define OPENMX_PULLS_A_PAGE (K_PAGE_BYTES / (OPENMX_PULL_LINES * K_LINE_BYTES))
#define OPENMX_CHANNELS     4u
#define OPENMX_CPUS_MAX     64u /* more share */

struct openmx_port;

/* Registered memory of a process. */
struct openmx_region {
    struct openmx *omx;
    struct openmx_port
        *port; /* may be gone once the region is given back and no packet carries it */
    unsigned
        users;    /* its number, until the grace period is over; pulls, packets that carry bytes of
                * it */
    bool closing; /* given back: has no number any more */
    uint64_t free_ps;
    struct kaddr lines;         /* openmx_region_line() */
    struct openmx_region *next; /* given back after it on the same CPU */
    uint64_t bytes;
    unsigned n_segments;
    struct mx_segment *segment;
    /* Of each segment one after the other, for fragments of packets: never freed by their
     * references. NULL: no packet has carried any yet. */
    struct k_page *page;
};

/* Regions that a CPU has given back, whose grace period is not over, in order. */
struct openmx_grace {
    struct openmx_region *first, *last;
    struct k_timer timer; /* of the first */
    bool at_it;           /* its function runs */
};

struct openmx_slot {
    struct openmx_port *port;
    uint16_t number;
};

/* An open endpoint. */
struct openmx_port {
    struct mx_port port;
    struct openmx *omx;
    unsigned refs; /* the opener's, and those who work on it */
    bool closed;
    struct k_page *lines; /* see openmx_lines */
    struct k_page *queue[2];
    uint32_t next[2];   /* events reserved */
    uint32_t next_slot; /* of the receive ring */
    struct k_page **receive, **send;
    struct openmx_slot slot[MX_RING_SLOTS];
    struct openmx_region *region[256];
    uint8_t region_sequence[256];
    struct openmx_pull *pulls;
    struct k_wait_queue no_pulls;
};
/* The lines of an endpoint's descriptor, by their number within its page. */
enum openmx_lines {
    OPENMX_LINE_PORT,  /* found, and its count of references */
    OPENMX_LINE_EVENT, /* indices of the event queues and their lock */
    OPENMX_LINE_PULLS, /* the list of pulls and its lock */
    OPENMX_LINE_REGION /* two for each region: count of references, segments */
};

/* Lines of a pull, in the order of struct omx_pull_handle. */
enum openmx_pull_line {
    OPENMX_PULL_LINE_REFS,  /* and its place in lists, number, magic */
    OPENMX_PULL_LINE_TIMER, /* and region, lengths */
    OPENMX_PULL_LINE_LOCK,  /* and what has come of its blocks */
    OPENMX_PULL_LINE_HEADER,
    OPENMX_PULL_LINES
};
static inline struct kaddr openmx_line(const struct openmx_port *port, unsigned line)
{
    return kaddr_add(port->lines->addr, (uint64_t)line * K_LINE_BYTES);
}
static inline struct kaddr openmx_region_line(const struct openmx_port *port, uint8_t region)
{
    return openmx_line(port, OPENMX_LINE_REGION + 2u * (region % 16u));
}

struct openmx_block {
    uint32_t first, n; /* frames; n 0: unused */
    uint32_t missing;  /* one bit for each */
};

/* A copy of a reply by an engine. */
struct openmx_copy {
    struct openmx_copy *next;
    struct sk_buff *skb;
    uint32_t skb_offset, offset, bytes; /* of the reply's data in its packet; in the region */
    unsigned n_parts;
    struct {
        uint64_t from, to, bytes;
        dma_cookie cookie;
    } part[8];
};

struct openmx_pull {
    struct openmx *omx;
    struct openmx_port *port;
    struct openmx_pull *next; /* of the port, or among free ones */
    uint32_t number, generation;
    bool used;
    struct kaddr lines; /* two: state and lock, blocks */
    struct openmx_region *region;
    struct mx_destination from;
    uint8_t far_region, far_sequence;
    uint32_t bytes, handle;
    uint32_t n_frames, next_frame; /* next_frame: to ask for */
    uint32_t n_done;               /* frames whose bytes are in the region, or with the engine */
    unsigned n_blocks;
    struct openmx_block block[OPENMX_BLOCKS_MAX]; /* in order; of the first something is missing */
    unsigned n_again; /* of the first so many what is missing has been asked for again */
    uint64_t progress_ps;
    uint32_t resends;
    struct k_timer timer;
    unsigned busy; /* who works on it */
    bool ended;    /* nothing more is taken */
    bool silent;   /* without an event: the endpoint is being closed */
    uint8_t status;
    /* The engine. */
    struct dma_channel *channel;
    struct openmx_copy *copies, *copies_last;
    bool looking; /* a CPU looks at what has ended */
    bool waits;   /* its work is queued */
    struct k_work work;
};

struct openmx {
    struct mx_board board;
    struct kernel *kernel;
    const struct k_costs *costs;
    struct net *net;
    struct net_device *dev;
    struct openmx_options options;
    struct openmx_port *port[MX_ENDPOINTS_MAX];
    bool was_open[MX_ENDPOINTS_MAX], opening[MX_ENDPOINTS_MAX];
    uint32_t next_session;
    unsigned n_ports;
    /* The interface's: 0 read by all, 1 and 2 counters of sent and of received packets; from 8 on
     * those of peers. */
    struct k_page *lines;
    struct openmx_pull *pull[OPENMX_PULLS_MAX], *free_pulls;
    unsigned n_pulls;
    struct k_page *pull_lines[OPENMX_PULLS_MAX / OPENMX_PULLS_A_PAGE];
    struct dma_channel *channel[OPENMX_CHANNELS];
    unsigned n_channels, next_channel;
    struct openmx_copy *free_copies;
    unsigned n_regions; /* pinned */
    struct openmx_grace grace[OPENMX_CPUS_MAX];
    struct openmx_stats stats;
};
static inline struct openmx_port *openmx_port_of(struct mx_port *port)
{
    return K_CONTAINER(port, struct openmx_port, port);
}
static inline bool openmx_is_local(const struct openmx *omx, uint64_t nic_id)
{
    return nic_id == omx->board.nic_id;
}
/* How many of n bytes are in the page of the first. */
static inline uint64_t openmx_in_page(struct kaddr at, uint64_t n)
{
    const uint64_t in_page = K_PAGE_BYTES - at.v % K_PAGE_BYTES;
    return n < in_page ? n : in_page;
}
/* An atomic operation on a line: it is there, and this CPU's, before the next step. */
static inline void openmx_atomic(struct kernel *kernel, struct kaddr line, enum mx_account account)
{
    const unsigned before = k_account(kernel, account);
    k_atomic(kernel, line);
    k_account(kernel, before);
}
static inline void openmx_touch(struct kernel *kernel, struct kaddr line, size_t bytes, bool write,
                                enum mx_account account)
{
    const unsigned before = k_account(kernel, account);
    if (write)
        k_touch_write(kernel, line, bytes);
    else
        k_touch(kernel, line, bytes);
    k_account(kernel, before);
}

/* ---- openmx.c -------------------------------------------------------------------------------- */

/* A command of a process begins: the system call, the descriptor, the peer. */
void openmx_enter(struct openmx_port *port, uint64_t nic_id);
/* Lines of the interface and of a peer, as every packet needs them; counts it. */
void openmx_touch_interface(struct openmx *omx, uint64_t nic_id, bool received);
/* The endpoint with a reference; NULL: it is not open. */
struct openmx_port *openmx_port_get(struct openmx *omx, uint8_t id);
/* The last reference frees it. Any context but hard interrupts. */
void openmx_port_put(struct openmx_port *port);
/* The same without the lines: of who has them anyway. */
void openmx_port_drop(struct openmx_port *port);

/* ---- openmx_event.c -------------------------------------------------------------------------- */

/* Data that come with an event: of a packet from `offset` on, or of segments. */
struct openmx_data {
    struct sk_buff *skb;
    const struct mx_segment *segment;
    uint32_t offset, bytes;
};
void openmx_data_copy(struct kernel *kernel, struct kaddr to, const struct openmx_data *data);
void openmx_data_load(struct kernel *kernel, void *to, const struct openmx_data *data);
/* Puts an event into a queue; data (NULL: none) into the receive ring, whose slot the event gets.
 * False: the queue is full. */
bool openmx_event_post(struct openmx_port *port, unsigned queue, union mx_event *event,
                       const struct openmx_data *data);

/* ---- openmx_send.c --------------------------------------------------------------------------- */

int openmx_send_connect(struct mx_port *port, const struct mx_connect_command *c);
int openmx_send_tiny(struct mx_port *port, const struct mx_send *s, const void *data);
int openmx_send_small(struct mx_port *port, const struct mx_send *s,
                      const struct mx_segment *segment, unsigned n);
int openmx_send_medium(struct mx_port *port, const struct mx_send *s, uint8_t fragment,
                       uint16_t fragment_bytes, uint16_t slot);
int openmx_send_rendezvous(struct mx_port *port, const struct mx_send *s, uint8_t region,
                           uint8_t region_sequence);
int openmx_send_notify(struct mx_port *port, const struct mx_send *s, uint8_t region,
                       uint8_t region_sequence);
int openmx_send_ack(struct mx_port *port, const struct mx_destination *to, uint32_t number,
                    uint16_t ack);
/* A packet with `bytes` of header behind the head; the caller adds fragments and transmits it. */
struct sk_buff *openmx_packet_new(struct openmx *omx, const uint8_t nic[6], const void *header,
                                  size_t bytes);
void openmx_transmit(struct openmx *omx, struct sk_buff *skb);

/* ---- openmx_local.c -------------------------------------------------------------------------- */

/* To an endpoint of this host: what the packet would have done. 0 also if it is dropped. */
int openmx_local_message(struct openmx_port *from, const struct mx_destination *to,
                         enum mx_packet_type type, uint16_t sequence, union mx_event *event,
                         const struct openmx_data *data);
/* [thread] Copies from a region of another endpoint. An enum mx_pull_status. */
uint8_t openmx_local_pull(struct openmx_port *port, struct openmx_region *to,
                          const struct mx_pull_command *c);

/* ---- openmx_receive.c ------------------------------------------------------------------------ */

void openmx_receive(struct sk_buff *skb, void *omx);

/* ---- openmx_region.c ------------------------------------------------------------------------- */

int openmx_region_new(struct mx_port *port, const struct mx_segment *segment, unsigned n,
                      uint8_t *region, uint8_t *region_sequence);
void openmx_region_free(struct mx_port *port, uint8_t region);
void openmx_regions_close(struct openmx_port *port);
void openmx_regions_init(struct openmx *omx);
/* [thread] All endpoints are closed. Waits until nothing is pinned. */
void openmx_regions_release(struct openmx *omx);
/* The region with one user more; NULL: there is no such. */
struct openmx_region *openmx_region_get(struct openmx_port *port, uint8_t region, uint8_t sequence,
                                        bool any_sequence);
void openmx_region_put(struct openmx_region *region);
/* The place of a byte, and in *bytes how many of them go on from there in its segment (at most as
 * many as they were). *i: its segment. */
struct kaddr openmx_region_at(const struct openmx_region *region, uint64_t offset, uint64_t *bytes,
                              unsigned *i);
/* The page of a byte of segment i. */
struct k_page *openmx_region_page(struct openmx_region *region, unsigned i, struct kaddr at);
void openmx_region_write(struct openmx_region *region, uint64_t offset,
                         const struct openmx_data *data);

/* ---- openmx_pull.c --------------------------------------------------------------------------- */

int openmx_pull_command(struct mx_port *port, const struct mx_pull_command *c);
void openmx_pull_reply(struct openmx_port *port, struct sk_buff *skb,
                       const struct mx_reply_header *reply);
void openmx_pull_refused(struct openmx_port *port, const struct mx_nack_pull_header *nack);
/* Who worked on it does so no longer. */
void openmx_pull_leave(struct openmx_pull *pull);
/* [thread] Ends all pulls of the endpoint without events. */
void openmx_pulls_close(struct openmx_port *port);
void openmx_pulls_free(struct openmx *omx);

/* ---- openmx_answer.c ------------------------------------------------------------------------- */

/* A request to pull: sends the replies. */
void openmx_answer(struct openmx_port *port, const struct mx_head *head,
                   const struct mx_pull_header *request);

/* ---- openmx_copy.c --------------------------------------------------------------------------- */

int openmx_copies_init(struct openmx *omx, struct dma_core *dma);
void openmx_copies_release(struct openmx *omx);
/* Gives a reply's bytes to the engine, which takes the packet; false: a CPU has to copy. */
bool openmx_copy_begin(struct openmx_pull *pull, struct sk_buff *skb, uint32_t skb_offset,
                       uint32_t offset, uint32_t bytes);
/* Looks at what has ended and frees its packets; true: nothing is under way any more. */
bool openmx_copies_look(struct openmx_pull *pull);
/* [thread] Until nothing is under way. */
void openmx_copies_wait(struct openmx_pull *pull);
/* [thread] Copies between two regions of this host. */
void openmx_copy_regions(struct openmx *omx, struct openmx_region *to, struct openmx_region *from,
                         uint64_t bytes);

/* ---- Receive queues: openmx_steer.c ---------------------------------------------------------- */

bool openmx_steer_possible(const struct net_device *dev, const struct openmx_options *options);
/* [thread] Sets the rules of an endpoint, as the options say, and its `cpu`. 0, or the adapter's
 * error with no rule left. */
int openmx_steer(struct openmx_port *port);
/* [thread] Deletes them. */
void openmx_steer_end(struct openmx *omx, uint8_t id);

#endif
