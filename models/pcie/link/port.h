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

/* One end of a link; embedded in (or allocated for) a model. Fill the upper part, then connect. */
struct pcie_port {
    struct model *model; /* gets receive() and credit() */
    uint32_t idx;        /* its index among the model's ports */
    uint8_t max_generation;
    uint8_t max_lanes;
    bool integrated;    /* within the chip of a root complex: pcie_link_join() */
    bool fabric;        /* belongs to no host's tree: a cable between bridges and their switches */
    bool down;          /* the cable is pulled; set by pcie_link_set_up() */
    bool cut_through;   /* receive() when the head is there (switches), else when the tail is */
    uint32_t mps_bytes; /* Max_Payload_Size; set by enumeration, 128 before */
    uint32_t mps_bytes_max; /* that it supports: its buffers must hold as much; 0: not known */
    uint32_t tx_queue_tlps; /* pcie_port_ready() says no beyond; 0: unlimited */
    struct pcie_credits advertise; /* its receive buffers */
    const char *name;              /* "server.s0.rp1"; for messages */
    /* Of a port that leads away from the root: the bridge whose secondary bus is its link. */
    const struct cfg_space *bridge;
    /* Of a root complex's port to an integrated device: the ID of its function 0 on the root bus. */
    uint16_t integrated_id;
    /* Of an endpoint's port: the first of its functions (models/pcie/endpoint/pcie_function.h). */
    struct pcie_function *function;
    /* private to link.c */
    struct pcie_link *link;
    struct link_dir *tx; /* the direction that it transmits */
};

struct pcie_link_params {
    uint32_t generation;    /* 1..5; 0: what both ports have */
    uint32_t lanes;         /* 1, 2, 4, 8, 12, 16, 32; 0: what both ports have */
    sim_time latency_ps;    /* one way, both PHYs, pipeline and propagation; no serialisation */
    double bit_error_ratio; /* 0: none */
    uint32_t ack_tlps;      /* an ACK DLLP at the latest after so many TLPs, or AckFactor bytes */
    /* UpdateFC once so much of a pool has been freed since the last */
    uint32_t fc_update_ratio_pct;
    sim_time training_ps;      /* from plugging a cable in until the link is up */
    double skp_overhead_ratio; /* share of symbols that SKP ordered sets take; < 0: by generation */
};
extern const struct param_desc pcie_link_params_table[];
/* The link as a kind of cable: ports of devices are DEVICE.p0, DEVICE.p1, ... */
extern const struct cable_kind pcie_cable;

/* Joins two ports. Mistakes (unequal width, a generation neither has) go to errors with file:line
 * of the caller's cable; NULL then. Owned by the fabric. */
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
/* The port at the other end. */
struct pcie_port *pcie_port_peer(const struct pcie_port *port);

/* The transmit queue (tx_queue_tlps: TLPs of the class without credits, and those of any class that
 * wait for the wire) has room for another TLP of the class. If not, credit(model, port) is called
 * when it has again. */
bool pcie_port_ready(struct pcie_port *port, enum tlp_class class);
/*
 * Takes the TLP. It goes on the wire at at_ps at the earliest (>= now, not before that of the TLP
 * sent last through this port); per class in order; posted passes blocked non-posted and
 * completions; non-posted never passes posted; a completion passes posted only with relaxed or
 * ID-based ordering; completions pass blocked non-posted (PCIe Base 3.1, table 2-39).
 */
void pcie_port_send(struct pcie_port *port, struct tlp *tlp, sim_time at_ps);

/*
 * The same for a posted request of another source than what waits for the wire: it does not queue
 * behind completions and non-posted requests that were handed over before and have not started (the
 * arbiter of a root port, where cores' writes meet the completions of devices' reads). Ready: there
 * is room for another that waits for credits; else credit() is called for the posted class.
 */
void pcie_port_send_ahead(struct pcie_port *port, struct tlp *tlp, sim_time at_ps);
bool pcie_port_ready_ahead(struct pcie_port *port);

/*
 * For models that queue and arbitrate by themselves (switches) and leave the link's queue empty.
 * Both questions, when answered no, have credit(model, port) called as soon as the answer may have
 * changed. The wire is open if nothing waits in the queue and the wire is free of what was sent by
 * now + lead_ps.
 */
bool pcie_port_wire_open(struct pcie_port *port, sim_time lead_ps);
bool pcie_port_has_credits(struct pcie_port *port, const struct tlp *tlp);
/* When the wire is free of what was sent; at least what it was at the last call. */
sim_time pcie_port_free_ps(const struct pcie_port *port);
/* Puts the TLP on the wire at at_ps or as soon as it is free; both answers must have been yes.
 * Returns when its last byte has left (with bit errors: will have, unless there are replays). */
sim_time pcie_port_start(struct pcie_port *port, struct tlp *tlp, sim_time at_ps);

/*
 * The receive buffer that a TLP occupied is free at at_ps (>= now): its credits go back. Every
 * received TLP must be released once, by class and data credits, in any order. A class's buffer is
 * freed in the order of the calls: at_ps before that of an earlier call counts as that.
 */
void pcie_port_release(struct pcie_port *port, enum tlp_class class, unsigned data_credits,
                       sim_time at_ps);

/* Serialisation time of n bytes on the port's link, exact to a picosecond (rounded up). */
sim_time pcie_port_wire_ps(const struct pcie_port *port, uint64_t bytes);

/* Per direction (transmitted by this port). */
struct pcie_link_stats {
    uint64_t tlps, tlp_bytes, payload_bytes, dllps, replays, nak_dllps;
    uint64_t lost_tlps; /* on the wire when the cable was pulled */
    uint64_t credit_stall_ps;
};
extern const struct stat_desc pcie_link_stats_table[];
struct pcie_link_stats *pcie_port_stats(struct pcie_port *port);

/* Every credit of every class is where it belongs: nothing sent to this port is in flight or in its
 * buffers, and sender, UpdateFCs and freed buffers add up to what it advertises. For tests and for
 * the end of a run. */
bool pcie_port_credits_whole(const struct pcie_port *port);

/* At the end of a run that has been left to drain: no TLP is alive, the credits of every port are
 * whole. Else sim_fail() with the port, and false. */
bool pcie_context_check_idle(struct pcie_context *pcie);

/*
 * Pulls the cable, or plugs it in again: it is up once it has trained. When it goes down, what is
 * on the wire is lost, and nothing arrives any more until it is up; link_change() of both models,
 * which must have one, is called at both times. What is sent while it is down is lost; who sends
 * has to ask port->down. Does nothing if it is so already.
 */
void pcie_link_set_up(struct pcie_link *link, bool up);

/* Walks all links: returns the i-th or NULL; ends through *a and *b, either may be NULL. */
struct pcie_link *pcie_context_link(struct pcie_context *pcie, unsigned i, struct pcie_port **a,
                                    struct pcie_port **b);
const char *pcie_link_name(const struct pcie_link *link);

#endif
