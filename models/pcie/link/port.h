/*
 * Ports and links. A link joins two ports; each direction serialises TLPs at its generation, width
 * and encoding, carries the DLLPs of the other direction, and stops without credits.
 *
 * Models / timing / sources: see the head of link.c.
 */
#ifndef MODELS_PCIE_LINK_PORT_H
#define MODELS_PCIE_LINK_PORT_H

#include "models/base/cable.h"
#include "models/pcie/link/tlp.h"

struct cfg_space;
struct model;
struct pcie_function;
struct pcie_link;
struct link_dir;

/* Credits in the units of the specification; PCIE_CREDITS_INFINITE advertises infinite ones. */
#define PCIE_CREDITS_INFINITE UINT32_MAX
struct pcie_credits {
    uint32_t header[N_TLP_CLASSES];
    uint32_t data[N_TLP_CLASSES]; /* 16 bytes each */
};

/* One end of a link, in the model's array of ports. The model fills in the upper part before the
 * link is joined. */
struct pcie_port {
    struct model *model; /* gets receive() and credit() */
    uint32_t idx;        /* its index among the model's ports */
    uint8_t max_generation;
    uint8_t max_lanes;
    bool integrated;        /* within the chip of a root complex: pcie_link_join() */
    bool fabric;            /* in no host's tree: of a cable between bridges and cluster switches */
    bool down;              /* the cable is pulled; set by pcie_link_set_up() */
    bool cut_through;       /* receive() at the head of a TLP (switches), else at its tail */
    uint32_t mps_bytes;     /* Max_Payload_Size; set by enumeration, 128 before */
    uint32_t mps_bytes_max; /* supported, which its buffers must hold; 0: unknown */
    uint32_t tx_queue_tlps; /* limit of pcie_port_ready(); 0: unlimited */
    /* Its transmitter's data path: a TLP starts at a multiple of so many bytes (a power of two; 0:
     * the link's parameter), and after so many idle ones. */
    uint32_t tx_align_bytes, tx_gap_bytes;
    struct pcie_credits advertise; /* its receive buffers */
    const char *name;              /* "server.s0.rp1"; for messages */
    /* The bridge whose secondary bus is the link; NULL if the port leads to the root. */
    const struct cfg_space *bridge;
    /* Of a root complex's port to an integrated device: the ID of its function 0 on the root
     * bus. */
    uint16_t integrated_id;
    /* Of an endpoint's port: the first of its functions (models/pcie/endpoint/pcie_function.h). */
    struct pcie_function *function;
    /* Of its wire, until then, what its functions read and write by rate (endpoint/dma.h). */
    sim_time rate_read_ps, rate_write_ps;
    /* private to link.c */
    struct pcie_link *link;
    struct link_dir *tx; /* its transmit direction */
};

struct pcie_link_params {
    uint32_t generation;    /* 1..5; 0: the most that both ports have */
    uint32_t lanes;         /* 1, 2, 4, 8, 12, 16, 32; 0: the most that both ports have */
    sim_time latency_ps;    /* one way, both PHYs, pipeline and propagation; no serialisation */
    double bit_error_ratio; /* 0: none */
    uint32_t ack_tlps;      /* TLPs, or AckFactor bytes, after which an ACK DLLP is sent at once */
    /* share of a pool that must have been freed since the last UpdateFC to send the next */
    uint32_t fc_update_ratio_pct;
    sim_time training_ps;      /* from plugging a cable in until the link is up */
    double skp_overhead_ratio; /* share of symbols that SKP ordered sets take; < 0: by generation */
    uint32_t tlp_align_bytes;  /* TLPs start at multiples of this in the transmitters' data paths, a
                                  power of two; 0: of 4, as the specification allows */
};
extern const struct param_desc pcie_link_params_table[];
/* The link as a kind of cable: ports of devices are DEVICE.p0, DEVICE.p1, ... */
extern const struct cable_kind pcie_cable;

/* Joins two ports. Returns NULL after adding mistakes (a width or generation that one does not
 * supports) to errors, with file and line of the cable. Ports that differ train to the lower
 * generation and width. The context owns the link. */
struct pcie_link *pcie_link_new(struct pcie_context *pcie, const char *name,
                                const struct pcie_link_params *params, struct pcie_port *a,
                                struct pcie_port *b, const char *file, int line,
                                struct sim_error_list *errors);
/* Joins two ports within a chip: TLPs are handed over in order and at once, there is no wire and no
 * credit. Both ports are `integrated` from now on. */
void pcie_link_join(struct pcie_context *pcie, const char *name, struct pcie_port *a,
                    struct pcie_port *b);
static inline bool pcie_port_connected(const struct pcie_port *port)
{
    return port->link != NULL;
}
unsigned pcie_port_generation(const struct pcie_port *port);
unsigned pcie_port_lanes(const struct pcie_port *port);
/* The port at the other end of a connected one. */
struct pcie_port *pcie_port_peer(const struct pcie_port *port);

/* Whether the receiver at the other end has buffers for the TLP at all. All have for a payload of
 * Max_Payload_Size, but not for each a deferrable memory write. */
bool pcie_port_can_carry(const struct pcie_port *port, const struct tlp *tlp);
/* Whether the transmit queue has room for another TLP of the class: fewer than tx_queue_tlps TLPs
 * of the class that lack credits or wait for the wire. If not, credit(model, port) is called once
 * there is room. */
bool pcie_port_ready(struct pcie_port *port, enum tlp_class class);
/*
 * Takes the TLP, which goes on the wire at at_ps at the earliest (>= now, and not before at_ps of
 * the previous call for this port). Order (PCIe Base 3.1, table 2-39): each class is in order;
 * posted passes blocked non-posted and completions; non-posted never passes posted; a completion
 * passes posted only with relaxed or ID-based ordering, and passes blocked non-posted.
 */
void pcie_port_send(struct pcie_port *port, struct tlp *tlp, sim_time at_ps);

/*
 * Like pcie_port_send(), for a posted request from another source than the queued TLPs: it passes
 * completions and non-posted requests that have not started (the arbiter of a root port, where
 * writes of cores meet completions of devices' reads). pcie_port_ready_ahead(): whether another one
 * may wait for credits; if not, credit() is called once it may.
 */
void pcie_port_send_ahead(struct pcie_port *port, struct tlp *tlp, sim_time at_ps);
bool pcie_port_ready_ahead(struct pcie_port *port, enum tlp_class class);

/*
 * For models that queue and arbitrate themselves (switches) and keep the link's queue empty. After
 * an answer of false, credit(model, port) is called as soon as the answer may have changed. The
 * wire is open if the queue is empty and the wire will be free of what was sent by now + lead_ps.
 */
bool pcie_port_wire_open(struct pcie_port *port, sim_time lead_ps);
bool pcie_port_has_credits(struct pcie_port *port, const struct tlp *tlp);
/* When the wire is free of what was sent. Never less than at the previous call. */
sim_time pcie_port_free_ps(const struct pcie_port *port);
/* Puts the TLP on the wire at at_ps or as soon as the wire is free; both questions above must have
 * been answered with true. tlp->sent_ps: from when on it could have left; what the wire stood idle
 * since then counts as waiting for credits. Returns when the last byte leaves (with bit errors:
 * unless replays delay it). */
sim_time pcie_port_start(struct pcie_port *port, struct tlp *tlp, sim_time at_ps);

/*
 * All of these and pcie_port_release() in one, for what needs no second look: the TLP that `in` has
 * received goes on the wire of `out`, whose link is no faster, at now + lead_ps, and its buffer is
 * free when it has left. Nothing must wait for `out`. False: nothing has happened, and the TLP is
 * to be sent by way of the questions above.
 */
bool pcie_port_pass(struct pcie_port *in, struct pcie_port *out, struct tlp *tlp, sim_time lead_ps);

/*
 * Frees the receive buffer of a TLP at at_ps (>= now), which returns its credits to the sender.
 * Every received TLP must be released once, by class and data credits, in any order. Buffers of a
 * class are freed in the order of the calls: an at_ps before that of an earlier call counts as the
 * latter.
 */
void pcie_port_release(struct pcie_port *port, enum tlp_class class, unsigned data_credits,
                       sim_time at_ps);

/* The serialisation time of n bytes on the port's link, rounded up to a picosecond; what a data
 * path leaves idle behind a TLP is not among them. */
sim_time pcie_port_wire_ps(const struct pcie_port *port, uint64_t bytes);
/* Whether a byte takes no less time on the port's link than on that of `other`. */
bool pcie_port_no_faster(const struct pcie_port *port, const struct pcie_port *other);

/* Sees all TLPs of one direction of a link. */
struct pcie_tap {
    struct pcie_tap *next; /* the link's */
    /* The receiver is about to get the TLP or, if it was lost with the cable, it is about to be
     * freed. from: the port that sent it; start_ps: when its first byte went on the wire. Must
     * change nothing. */
    void (*tlp)(struct pcie_tap *tap, const struct pcie_port *from, const struct tlp *tlp,
                sim_time start_ps, bool lost);
    /* NULL, or what befalls the TLP between the link and the receiver, before tlp() of any tap: it
     * may change the TLP, but not its size or class. False: it is lost. Such a fault is none of the
     * link, whose replays let nothing get lost: of a chip's memory or of its firmware. */
    bool (*befalls)(struct pcie_tap *tap, struct tlp *tlp);
};
/* The TLPs that the connected port is to transmit and that have not begun to leave. */
uint32_t pcie_port_waiting(const struct pcie_port *port);
/* Attaches the tap, which the caller owns, to what the connected port transmits; detaches it. */
void pcie_port_add_tap(struct pcie_port *port, struct pcie_tap *tap);
void pcie_port_remove_tap(struct pcie_port *port, struct pcie_tap *tap);

/* Per direction (transmitted by this port). */
struct pcie_link_stats {
    uint64_t tlps, tlp_bytes, payload_bytes, dllps, replays, nak_dllps;
    uint64_t lost_tlps; /* on the wire when the cable was pulled */
    uint64_t credit_stall_ps;
    /* Not of the table: TLPs that have a place on the wire after now, by the last call of
     * pcie_port_stats(), which has taken them off what is above. */
    uint64_t ahead_tlps, ahead_bytes, ahead_payload_bytes;
    struct stat_peak wire; /* of tlp_bytes */
};
extern const struct stat_desc pcie_link_stats_table[];
/* Of TLPs that start by now. Must be called again to read it later. */
struct pcie_link_stats *pcie_port_stats(struct pcie_port *port);

/* Whether no TLP to this port is in flight or in its buffers, and the credits of the sender, of
 * UpdateFCs under way and of freed buffers add up to what the port advertises, for every class. For
 * tests and for the end of a run. */
bool pcie_port_credits_whole(const struct pcie_port *port);

/* At the end of a run that has been left to drain: whether all TLPs are freed and the credits of
 * every port are whole. If not, calls sim_fail() with the port. */
bool pcie_context_check_idle(struct pcie_context *pcie);

/*
 * Pulls the cable, or plugs it in again, after which the link is up once it has trained. When the
 * link goes down, TLPs on the wire are lost; TLPs sent before it is up again are lost too, so
 * senders must test port->down. Calls link_change() of both models, which is required, when the
 * link goes down and when it is up. No effect if the link is in that state already.
 */
void pcie_link_set_up(struct pcie_link *link, bool up);

/* Returns the i-th link or NULL, and its ends in *a and *b, which may be NULL. */
struct pcie_link *pcie_context_link(struct pcie_context *pcie, unsigned i, struct pcie_port **a,
                                    struct pcie_port **b);
const char *pcie_link_name(const struct pcie_link *link);
/* As cables name the port: "server.s0.rp0", "nic.p1". */
#define PCIE_PORT_NAME_BYTES 96
const char *pcie_port_cable_name(const struct pcie_port *port, char text[PCIE_PORT_NAME_BYTES]);

#endif
