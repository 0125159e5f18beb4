/*
 * The inside of a link, for link*.c only.
 *
 * A direction carries TLPs from one port to the other, and the DLLPs that answer the TLPs of the
 * opposite direction. Invariants:
 * - flight: TLPs committed to the wire, in the order of their delivery; deliver is pending while
 *   it is not empty, at the time of its first.
 * - a TLP is queued only if its credits, an older TLP or (with bit errors) the wire made it wait.
 * - pool[c]: open = avail + arrivals + owed UpdateFCs; advertised = open + freed + what is in
 *   flight or in the receiver's buffers.
 */
#ifndef MODELS_PCIE_LINK_LINK_H
#define MODELS_PCIE_LINK_LINK_H

#include "models/pcie/link/context.h"

/* UpdateFC of class c is kind c. */
enum link_dllp_kind { DLLP_ACK = N_TLP_CLASSES, DLLP_NAK };

#define DLLP_WIRE_BYTES 8u

struct link_dllp {
    sim_time at_ps; /* due at the sender of the DLLP, or its arrival */
    uint64_t tlps;  /* ACK, NAK, with bit errors: all TLPs below this number are acknowledged */
    uint32_t header, data; /* UpdateFC */
    uint32_t kind;
};

/* A ring of DLLPs, ascending by time. Grows by doubling, which ends once it is as long as the
 * round trip; never shrinks. */
struct link_ring {
    struct link_dllp *entry;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t first, n;
};

struct link_pool {
    uint32_t avail_header, avail_data;   /* the sender's; PCIE_CREDITS_INFINITE stays that */
    uint32_t open_header, open_data;     /* the sender's, and what is on its way to it */
    uint32_t finite_header, finite_data; /* 0 or 1 */
    uint32_t freed_header, freed_data;   /* at the receiver, not yet in an UpdateFC */
    uint32_t update_header, update_data; /* freed so much: UpdateFC */
    uint32_t need_data;                  /* the largest TLP that has had to wait */
    sim_time last_freed_ps, update_deadline_ps;
};

struct link_queue {
    struct tlp *first, *last;
    uint32_t n;
};

struct link_replay;

struct link_dir {
    struct sim *sim;
    uint64_t byte_q32_ps; /* time of a byte on the wire in 2^-32 ps */
    /* Bytes that stay idle behind a TLP of n bytes: -n & align_mask, and gap_bytes. */
    uint32_t align_mask, gap_bytes;
    /* The wire is free of what is committed at free_ps + free_q32 * 2^-32. */
    sim_time free_ps;
    uint32_t free_q32;
    bool to_cut_through;
    uint8_t want; /* WANT_*: the sender's model waits for credit() */
    uint32_t n_queued;
    sim_time busy_since_ps; /* no idle moment between this and free_ps */
    sim_time last_wire_ps;  /* wire time of the TLP committed last */
    sim_time last_tail_ps;  /* its tail at the receiver */
    sim_time latency_ps, dllp_ps;
    struct tlp *flight_first, *flight_last;
    struct tlp *unstarted; /* first of flight that starts after now, as of the last look */
    uint32_t n_unstarted[N_TLP_CLASSES];
    /* ACK bookkeeping of this direction's receiver, without bit errors. */
    uint32_t ack_tlps, n_unacked;
    sim_time ack_deadline_ps;
    struct link_dir *reverse;
    struct link_pool pool[N_TLP_CLASSES];
    struct pcie_port *from, *to;
    struct sim_event deliver;
    struct link_ring owed;     /* DLLPs to be put on this wire, by due time */
    struct link_ring arrivals; /* UpdateFCs on their way to this direction's sender */
    struct sim_event wake;     /* looks at the queue and at want again */
    struct link_queue queue[N_TLP_CLASSES];
    uint64_t sequence;
    uint64_t lost_up_to; /* TLPs up to this sequence were on the wire when the cable was pulled */
    struct link_replay *replay; /* NULL without bit errors */
    struct pcie_link *link;
    struct pcie_tap *taps;    /* NULL: none */
    uint32_t limit_mps_bytes; /* limit_ps holds for this */
    sim_time limit_ps;        /* ACK latency limit, FC update guideline */
    struct pcie_link_stats stats;
};

/* Bytes that stay idle behind a TLP: until the next place in the data path where one may start. */
static inline uint32_t link_idle_bytes(const struct link_dir *dir, uint32_t bytes)
{
    return (-bytes & dir->align_mask) + dir->gap_bytes;
}

/* In want: the bits of the classes for which there was no room, and two more. */
#define WANT_ROOM    ((1u << N_TLP_CLASSES) - 1)
#define WANT_WIRE    0x40u
#define WANT_CREDITS 0x80u

struct pcie_link {
    struct pcie_context *pcie;
    char *name;
    uint32_t generation, lanes;
    sim_time training_ps;
    struct sim_event trained; /* the cable is back, the link not up yet */
    struct link_dir dir[2];   /* by the first and by the second port */
};

/* ---- link.c ---------------------------------------------------------------------------------- */
void link_dir_init_events(struct link_dir *dir);
/* Hands the TLP to the receiver's model, unless it was lost. */
void link_hand_over(struct link_dir *dir, struct tlp *tlp);
/* Puts the DLLPs due by at_ps (or before the wire is free) on this wire. */
void link_settle(struct link_dir *dir, sim_time at_ps);
/* The oldest TLP that may go: credits and ordering; NULL if none. *short_of_credits tells whether
 * some class waits for credits. */
struct tlp *link_pick(struct link_dir *dir, bool *short_of_credits);
struct tlp *link_dequeue(struct link_dir *dir, enum tlp_class class);
/* Wire, credits, statistics and stamp of a TLP that starts at at_ps or when the wire is free.
 * Returns the start, rounded up to a picosecond. */
sim_time link_take_wire(struct link_dir *dir, sim_time at_ps, uint32_t bytes);
void link_account(struct link_dir *dir, struct tlp *tlp, sim_time start_ps, uint32_t bytes);
/* Has the wake event fire at at_ps or before. */
void link_arm(struct link_dir *dir, sim_time at_ps);

/* ---- link_credit.c --------------------------------------------------------------------------- */
static inline struct link_dllp *link_ring_at(const struct link_ring *ring, uint32_t i)
{
    return &ring->entry[(ring->first + i) & (ring->capacity - 1)];
}
/* Inserts in order of time; the caller fills in what the kind has besides, before the next call. */
struct link_dllp *link_ring_insert(struct link_ring *ring, sim_time at_ps, uint32_t kind);
/* The same: nearly always there is room, and what was put before is not due later. */
static inline struct link_dllp *link_ring_put(struct link_ring *ring, sim_time at_ps, uint32_t kind)
{
    if (SIM_UNLIKELY(ring->n == ring->capacity ||
                     (ring->n != 0 && link_ring_at(ring, ring->n - 1)->at_ps > at_ps)))
        return link_ring_insert(ring, at_ps, kind);
    struct link_dllp *dllp = link_ring_at(ring, ring->n++);
    dllp->at_ps = at_ps;
    dllp->kind = kind;
    return dllp;
}
static inline void link_ring_pop(struct link_ring *ring)
{
    ring->first = (ring->first + 1) & (ring->capacity - 1);
    ring->n--;
}
/* Credits for a TLP of the class, without a look at UpdateFCs. */
static inline bool link_credits_at_hand(const struct link_dir *dir, enum tlp_class class,
                                        uint32_t data)
{
    const struct link_pool *pool = &dir->pool[class];

    return pool->avail_header >= 1 && pool->avail_data >= data;
}
/* The same; collects UpdateFCs that have arrived. */
bool link_has_credits_slow(struct link_dir *dir, enum tlp_class class, uint32_t data);
static inline bool link_has_credits(struct link_dir *dir, enum tlp_class class, uint32_t data)
{
    return SIM_LIKELY(link_credits_at_hand(dir, class, data)) ||
           link_has_credits_slow(dir, class, data);
}
/* Arms the wake for the next UpdateFC on its way, if there is one. */
void link_arm_for_credits(struct link_dir *dir);
/* A DLLP for the opposite direction's sender was put among those owed on this wire. */
void link_owes(struct link_dir *wire);
/* The ACK latency limit of this direction's receiver, in picoseconds. */
sim_time link_limit_ps(struct link_dir *dir);

/* ---- link_replay.c --------------------------------------------------------------------------- */
struct link_replay *link_replay_new(struct link_dir *dir, double bit_error_ratio, uint64_t seed,
                                    const char *instance);
void link_replay_free(struct link_dir *dir);
/* Puts on the wire what may go now: replays, then queued TLPs. */
void link_replay_run(struct link_dir *dir);
/* A replay is going on. */
bool link_replay_busy(const struct link_dir *dir);
/* The DLLP leaves this wire completely at end_ps: true if it is corrupt or an ACK or NAK, which
 * are dealt with. */
bool link_replay_dllp(struct link_dir *wire, const struct link_dllp *dllp, sim_time end_ps);
/* A DLLP became owed. */
void link_replay_owed(struct link_dir *wire);

#endif
