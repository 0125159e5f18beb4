/*
 * Point-to-point links between sockets (QPI, UPI): every ordered pair of sockets has `links` links
 * of its own in each direction.
 *
 * Models: messages as flits on the links of a direction, which share the load; serialisation on one
 *   link; propagation (link layer and ring stops at both ends). With flit_slots > 1 (UPI) a header
 *   is a slot of a header flit, which messages share: each takes one slot, and at most one of them
 *   is followed by data flits. A header goes with the last header flit that is waiting and has a
 *   slot left, or opens one. Messages of a direction keep their order; with headers_pass_data, as
 *   if each class had a queue of its own, a header goes with the first header flit that has a slot
 *   left, past data that wait. So it does with flit_slots = 1 (QPI): links serve the classes in
 *   turn, and it waits for one line at most, which ends earlier the more links there are; the
 *   direction carries as many flits as before. Credits of the receive buffers: a message takes one
 *   for each of its flits from those that all classes share (VNA), or, if these are gone, one for
 *   the packet, of which each class has one a link (VN0). They come back credit_loop after its
 *   start, or later, if the receiver does not take it at once. A receive buffer that cannot run
 *   out, whatever is sent, is not followed.
 * Does not model: retries, routing over a third socket.
 * Timing:
 *   arrival = start + flits * flit time of one link + one way; a direction carries no
 *   more than links / flit time flits, nor links x (receive_flits - reserved_flits) / credit_loop.
 * Sources: docs/sources.md#a2 (QPI), docs/sources.md#b (UPI), docs/sources.md#k (classes, credits)
 */
#ifndef MODELS_NUMA_INTERCONNECT_INTERCONNECT_H
#define MODELS_NUMA_INTERCONNECT_INTERCONNECT_H

#include "models/numa/dram/calendar.h"
#include "models/numa/interconnect/pool.h"

/* Kinds of messages, for sizes and for the statistics. */
enum message {
    MESSAGE_REQUEST,    /* read, ownership; 1 flit */
    MESSAGE_SNOOP,      /* 1 flit */
    MESSAGE_RESPONSE,   /* snoop response, grant, completion; 1 flit */
    MESSAGE_DATA,       /* a line to a requester and its completion */
    MESSAGE_WRITEBACK,  /* a request and a line to its home */
    MESSAGE_IO_REQUEST, /* a core's read of a register; 1 flit */
    MESSAGE_IO_DATA,    /* registers' data, interrupts: their data travel as a line */
    N_MESSAGES
};

struct numa_interconnect_params {
    uint32_t links;
    double rate_gt_s;
    uint32_t lanes;
    uint32_t flit_bits;
    uint32_t flit_payload_bytes;
    uint32_t flit_slots;
    bool headers_pass_data;
    uint32_t data_flits;
    uint32_t header_flits;
    uint32_t receive_flits, reserved_flits;
    sim_time credit_loop_ps;
    sim_time one_way_ps;
    sim_time bus_address_ps, bus_arbitration_ps, bus_turnaround_ps;
    double bus_gbyte_s;
    uint32_t bus_in_order; /* up to 16 */
};

#define LINK_WINDOW_LOG2 20  /* ps: about one microsecond */
#define LINK_GROUP_FLITS 10u /* flits of one slot of the calendar */

/*
 * The slots of header flits that are left, of each slot of the calendar ("stretch" here); its ring
 * is the calendar's.
 */
struct link_headers {
    uint64_t base;                 /* as calendar.base */
    uint64_t open[CALENDAR_WORDS]; /* stretches with free > 0 */
    uint8_t free[CALENDAR_SLOTS];
    uint8_t no_data[CALENDAR_SLOTS]; /* header flits that no data flits follow yet */
};

/* Classes of messages, each with reserved credits: home, snoop, response, data, and two of
 * registers. */
#define LINK_CLASSES 6u

/* The receive buffers of one direction, of all links together. */
struct link_credits {
    struct pool shared;                 /* flits */
    struct pool reserved[LINK_CLASSES]; /* packets */
    uint64_t *wait_ps; /* adds up what messages wait for them; NULL: nobody counts that */
};

/* One direction. */
struct link {
    struct calendar calendar;
    struct link_headers *headers; /* NULL: flit_slots is 1 */
    struct link_credits *credits; /* NULL: they cannot run out */
    bool special;                 /* one of these is not NULL */
    uint64_t window;              /* number of the current microsecond, for the load */
    uint64_t window_flits, last_window_flits;
};

struct interconnect {
    const struct numa_interconnect_params *params;
    struct link *link; /* [from * sockets + to]; NULL: one socket */
    uint32_t sockets, n_links;
    uint32_t flits[N_MESSAGES];
    uint32_t bytes[N_MESSAGES];     /* that count as moved */
    sim_time serial_ps[N_MESSAGES]; /* on one link */
    sim_time passes_ps[N_MESSAGES]; /* flit_slots 1: it waits for this at most, then passes data */
    uint64_t window_capacity_flits;
};

void interconnect_init(struct interconnect *ic, const struct numa_interconnect_params *params,
                       uint32_t sockets);
void interconnect_release(struct interconnect *ic);
/* Follows the credits of receive buffers, if they can run out; stalls: receivers may leave messages
 * in them (interconnect_stall()). */
void interconnect_follow_credits(struct interconnect *ic, bool stalls);
/* A message that came at at_ps stays in the receive buffer, with all of its flits, until
 * until_ps. */
void interconnect_stall(struct interconnect *ic, uint32_t from, uint32_t to, enum message message,
                        sim_time at_ps, sim_time until_ps);
/* interconnect_send() where flits have several slots, or credits are followed. */
sim_time interconnect_send_special(struct interconnect *ic, struct link *link, enum message message,
                                   sim_time at_ps);

static inline sim_time interconnect_idle_ps(const struct interconnect *ic, enum message message)
{
    return ic->serial_ps[message] + ic->params->one_way_ps;
}

static inline void link_count_load(struct link *link, uint32_t flits, sim_time at_ps)
{
    const uint64_t window = at_ps >> LINK_WINDOW_LOG2;

    if (SIM_UNLIKELY(window > link->window)) {
        link->last_window_flits = window == link->window + 1 ? link->window_flits : 0;
        link->window_flits = 0;
        link->window = window;
    }
    link->window_flits += flits;
}

/* When the last flit has been sent where a flit has one slot. */
static inline sim_time interconnect_send_flits(struct interconnect *ic, struct link *link,
                                               enum message message, sim_time at_ps)
{
    const struct calendar_grant grant = calendar_take(&link->calendar, at_ps, ic->flits[message]);
    const sim_time sent_ps = grant.start_ps + ic->serial_ps[message];

    link_count_load(link, ic->flits[message], at_ps);
    if (SIM_UNLIKELY(grant.start_ps - at_ps > ic->passes_ps[message]))
        return at_ps + ic->passes_ps[message] + ic->serial_ps[message];
    return SIM_MAX(sent_ps, grant.end_ps);
}

/* Arrival of the message's last flit. */
static inline sim_time interconnect_send(struct interconnect *ic, uint32_t from, uint32_t to,
                                         enum message message, sim_time at_ps)
{
    struct link *link = &ic->link[from * ic->sockets + to];

    if (SIM_UNLIKELY(link->special))
        return interconnect_send_special(ic, link, message, at_ps);
    return interconnect_send_flits(ic, link, message, at_ps) + ic->params->one_way_ps;
}

/* The direction carried less than load_ratio_256 / 256 of its capacity in the last microsecond. */
static inline bool interconnect_light(const struct interconnect *ic, uint32_t from, uint32_t to,
                                      sim_time at_ps, uint32_t load_ratio_256)
{
    const struct link *link = &ic->link[from * ic->sockets + to];
    const uint64_t window = at_ps >> LINK_WINDOW_LOG2;
    uint64_t flits = link->last_window_flits;

    if (window > link->window)
        flits = window == link->window + 1 ? link->window_flits : 0;
    return flits * 256 < ic->window_capacity_flits * load_ratio_256;
}

#endif
