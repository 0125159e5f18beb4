/* What the files of models/pcie/root/ share. */
#ifndef MODELS_PCIE_ROOT_RC_INTERNAL_H
#define MODELS_PCIE_ROOT_RC_INTERNAL_H

#include "models/pcie/root/root_complex.h"

/* A core waits for each of its requests, so tags bound the cores that do so at a time: more than
 * any platform here has on a socket. Not a parameter, since it can never be what limits. */
#define RC_MMIO_TAGS 64u

/* A TLP on its way through the root complex: what happens to it next, and when. From a pool. */
struct rc_step {
    struct sim_event event;
    struct model *rc;
    struct tlp *tlp;
    struct hpa hpa;       /* where to in memory */
    struct model *out_rc; /* or through which root port to a peer */
    unsigned out_port;
    uint64_t sequence;    /* of its arrival at that port */
    struct rc_read *read; /* a split read, once a piece of it was sent */
    bool own;             /* a completion of the root complex itself: holds no receive buffer */
    uint32_t destination; /* an interrupt's */
    uint8_t vector;
    struct rc_step *next;
};

struct rc_queue {
    struct rc_step *head, **tail;
};

/* A task that waits for room in a root port's transmit queue. Lives on the task's stack. */
struct rc_waiter {
    struct sim_task *task;
    struct rc_waiter *next;
};

/* What a read of the root complex itself asks for, on behalf of a peer (rc_reads.c). */
#define RC_READ_TAGS_MAX (256u - RC_MMIO_TAGS)
struct rc_read_tag {
    struct sim_event timeout;
    struct model *rc;
    uint32_t port;
    bool busy;
    struct rc_piece *piece; /* NULL though busy: timed out, its answer may still come */
};

#define RC_QUEUE_OWN N_TLP_CLASSES
#define RC_N_QUEUES  (N_TLP_CLASSES + 1)
struct rc_port {
    struct cfg_space cfg;
    sim_time inbound_ps, outbound_ps; /* the parameters', or (integrated endpoint) integrated */
    sim_time last_commit_ps;          /* of posted writes: nothing may become visible earlier */
    sim_time last_answer_ps; /* of completions for peers: a later one is not there earlier */
    /* Waiting for this port's transmitter: peer to peer, by class; completions of the root complex
     * itself that are younger than one of a peer there. */
    struct rc_queue forward[RC_N_QUEUES];
    uint64_t forward_sequence;
    struct rc_read_tag *read_tag; /* NULL until the first is used */
    uint32_t n_reads, next_read_tag;
    struct rc_waiter *waiters;
    struct sim_event peers_look; /* once the cores that were woken have looked for room */
    struct model *rc;
    uint32_t idx;
    unsigned stack;
    sim_time last_post_ps; /* nothing that a core asks later leaves earlier */
};

/* Times at which line requests go: rc_slots.c. */
#ifdef SIM_HOSTILE
#define RC_SLOTS_STRETCHES 2u
#else
#define RC_SLOTS_STRETCHES 64u
#endif
struct rc_stretch {
    sim_time from_ps, until_ps;
};
struct rc_slots {
    unsigned first, n;
    struct rc_stretch busy[RC_SLOTS_STRETCHES];
};
sim_time rc_slots_search(struct rc_slots *slots, sim_time now_ps, sim_time at_ps,
                         sim_time interval_ps);
/* Reserves the first interval_ps that is free from at_ps (>= now) on; returns its beginning. The
 * lines of a request follow each other, and so do requests: mostly it makes the last stretch longer
 * or begins one behind it. Those that are past are dropped when there is no room for another. */
static inline sim_time rc_slots_take(struct rc_slots *slots, sim_time now_ps, sim_time at_ps,
                                     sim_time interval_ps)
{
    if (SIM_LIKELY(slots->n != 0)) {
        const unsigned end = slots->first + slots->n;
        struct rc_stretch *last = &slots->busy[(end - 1) % RC_SLOTS_STRETCHES];
        if (SIM_LIKELY(at_ps >= last->from_ps && at_ps <= last->until_ps)) {
            at_ps = last->until_ps;
            last->until_ps += interval_ps;
            return at_ps;
        }
        if (SIM_LIKELY(at_ps > last->until_ps && slots->n < RC_SLOTS_STRETCHES)) {
            slots->busy[end % RC_SLOTS_STRETCHES] = (struct rc_stretch){ at_ps,
                                                                         at_ps + interval_ps };
            slots->n++;
            return at_ps;
        }
    }
    return rc_slots_search(slots, now_ps, at_ps, interval_ps);
}

/* The same n times, if they follow each other at once, as they mostly do: *first_ps is the
 * beginning of the first. False: nothing is reserved. */
static inline bool rc_slots_take_run(struct rc_slots *slots, sim_time at_ps, sim_time interval_ps,
                                     unsigned n, sim_time *first_ps)
{
    const unsigned end = slots->first + slots->n;
    struct rc_stretch *last = &slots->busy[(end - 1) % RC_SLOTS_STRETCHES];

    if (SIM_UNLIKELY(slots->n == 0 || at_ps < last->from_ps))
        return false;
    if (SIM_LIKELY(at_ps <= last->until_ps)) {
        *first_ps = last->until_ps;
        last->until_ps += n * interval_ps;
        return true;
    }
    if (SIM_UNLIKELY(slots->n == RC_SLOTS_STRETCHES))
        return false;
    *first_ps = at_ps;
    slots->busy[end % RC_SLOTS_STRETCHES] = (struct rc_stretch){ at_ps, at_ps + n * interval_ps };
    slots->n++;
    return true;
}

/* A request of a core that waits for its completion. */
struct rc_mmio {
    struct sim_event timeout; /* of the request; of the doubt after it */
    struct model *rc;
    struct sim_task *task;   /* NULL: nobody waits */
    struct sim_stamp *stamp; /* the caller's, or NULL */
    unsigned socket, port;   /* of the core; that it went out by */
    uint64_t value;
    sim_time done_ps;                  /* when the task may have it */
    uint16_t byte_count, length_bytes; /* that its completion must have */
    bool sent, done, ok;
    bool doubtful; /* timed out: the tag rests until the answer comes, or time is up again */
};

/* Buffers of the ports of a stack, of a line each, taken in turn: of writes, and of reads. */
struct rc_stack {
    sim_time *free_ps; /* when each is free; NULL: not bound */
    uint32_t next;
    sim_time *read_free_ps; /* the same of the lines that are read */
    uint32_t read_next;
};

struct rc_stats {
    uint64_t reads, read_bytes, writes, write_bytes, interrupts, p2p_tlps, p2p_reads, p2p_timeouts;
    uint64_t write_lines, write_line_held_ps, write_line_wait_ps;
    uint64_t read_lines, read_line_held_ps, read_line_wait_ps;
    uint64_t unsupported, faults, unexpected_completions, mmio_timeouts, poisoned;
    /* Of writes that carry a stamp: from the device's start until they are visible. */
    struct stat_mean write_latency_ns, write_part_ns[N_LATENCY_PARTS];
};

struct rc_state {
    struct root_complex_params params;
    struct rc_stats stats;
    struct root_complex_host *host;
    struct iommu *iommu; /* NULL: none */
    unsigned socket, bus, last_bus;
    unsigned n_ports;      /* root ports */
    unsigned n_integrated; /* further ports, which lead to integrated devices */
    struct rc_port *port;
    size_t port_bytes; /* of all of them */
    struct cfg_window memory, prefetchable;
    struct rc_slots lines; /* line requests to the memory system */
    struct rc_stack stack[ROOT_COMPLEX_PORTS_MAX];
    sim_time p2p_free_ps; /* when the last line of a posted write to a peer has passed */
    struct sim_pool *steps, *reads, *pieces;
    struct rc_waiter *tag_waiters;
    unsigned next_tag; /* where the search for a free one goes on: reused as late as possible */
    struct rc_mmio mmio[RC_MMIO_TAGS];
};

static inline struct rc_state *rc_of(struct model *rc)
{
    return rc->state;
}

/* Takes a step from the pool, with what every kind of it has. */
static inline struct rc_step *rc_step_new(struct model *rc, struct tlp *tlp, sim_event_fn *fire)
{
    struct rc_step *step = sim_pool_get(rc_of(rc)->steps);
    sim_event_init(&step->event, fire);
    step->rc = rc;
    step->tlp = tlp;
    step->read = NULL;
    step->own = false;
    step->next = NULL;
    return step;
}
static inline void rc_step_free(struct rc_step *step)
{
    sim_pool_put(rc_of(step->rc)->steps, step);
}

/* Finds the root port (of any socket) behind which an address or a bus lies. False: there is none,
 * or nothing is plugged into it. */
bool rc_route_address(struct root_complex_host *host, struct hpa hpa, uint64_t bytes,
                      struct model **rc, unsigned *port);
bool rc_route_id(struct root_complex_host *host, uint16_t id, struct model **rc, unsigned *port);
uint16_t rc_id(const struct rc_state *rc);

/* A message-signalled interrupt without remapping (Intel SDM 3, 10.11.1 and 10.11.2): the
 * destination is an APIC ID or, in logical mode, a mask of CPUs 0 to 7 (10.6.2.2, flat model). */
#define INTERRUPT_DESTINATION(address) ((uint32_t)((address) >> 12) & 0xffu)
#define INTERRUPT_LOGICAL(address)     (((address)&0x14u) == 0x4u) /* 0x10: of a remapping table */
#define INTERRUPT_LOWEST(data)         (((data) >> 8 & 0x7u) == 1)

/* rc_inbound.c */
bool rc_is_interrupt(uint64_t address);
void rc_interrupt_deliver(struct model *rc, uint32_t destination, uint8_t vector);
/* Sends the completion, which holds no receive buffer, through the port at at_ps. */
void rc_complete_at(struct model *rc, struct tlp *completion, uint32_t port, sim_time at_ps);
void rc_inbound_announce(struct model *rc, uint32_t port, const struct tlp *tlp);
void rc_inbound_request(struct model *rc, uint32_t port, struct tlp *tlp);
/* rc_forward.c: sends the TLP, received by `port` of `rc`, through another root port. at_ps: when
 * it has passed the ingress root complex if nothing is before it; the time between sockets and the
 * order behind the port's earlier writes are added here. */
void rc_forward(struct model *rc, uint32_t port, struct tlp *tlp, struct model *out_rc,
                unsigned out_port, sim_time at_ps);
/* Sends the step's TLP, a completion of the root complex itself, through its port `port`, after
 * completions of peers that wait there for room. */
void rc_forward_own(struct rc_step *step, uint32_t port);
/* Sends what waits for the port's transmitter and may go now. */
void rc_forward_credit(struct model *rc, uint32_t port);
/* The same for peers' TLPs of one class only. */
void rc_forward_credit_class(struct model *rc, uint32_t port, enum tlp_class class);
/* rc_reads.c */
/* Whether the read must be split and re-originated at the egress. */
bool rc_split_reads(const struct model *out_rc, const struct tlp *tlp);
/* Whether another piece may be sent; if not, rc_forward_credit() is called once it may. */
bool rc_reads_ready(const struct model *out_rc, uint32_t port);
/* Sends a piece of the read. True: it was the last, and the caller frees the step. */
bool rc_reads_issue(struct rc_step *step);
/* Takes the completion of a piece. False: the completion belongs to no piece. */
bool rc_reads_completion(struct model *rc, uint32_t port, struct tlp *tlp);
void rc_reads_init(struct model *rc);
void rc_reads_release(struct model *rc);
/* rc_outbound.c */
/* The port's link went down: what cores have asked for behind it ends. */
void rc_outbound_link_down(struct model *rc, uint32_t port);
void rc_outbound_completion(struct model *rc, uint32_t port, struct tlp *tlp);
/* Wakes the cores that wait for the port's transmitter, which look for room before time goes on;
 * false: none waits. */
bool rc_outbound_credit(struct model *rc, uint32_t port);

#endif
