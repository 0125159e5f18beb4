/*
 * The core of a switch chip: moves TLPs from an ingress port to an egress port with the chip's
 * latency, through virtual output queues, in the order that PCI Express requires. The models that
 * embed it (pcie.switch, pcie.ntb, pcie.cluster_switch) route and translate TLPs. Timing: see the
 * head of crossbar.c.
 */
#ifndef MODELS_PCIE_SWITCH_CROSSBAR_H
#define MODELS_PCIE_SWITCH_CROSSBAR_H

#include "models/base/model.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"

#define CROSSBAR_PORTS_MAX 64u

enum crossbar_mode { CROSSBAR_CUT_THROUGH, CROSSBAR_STORE_AND_FORWARD };

/* Parameters that all such chips share. */
struct crossbar_params {
    uint32_t generation;
    sim_time latency_ps;
    int mode; /* enum crossbar_mode */
    uint32_t ph, pd, nph, npd, cplh, cpld;
    uint32_t mps_bytes_max;
};
extern const char *const crossbar_mode_names[];

/* Rows of a model's table of parameters; FIELD: its struct crossbar_params. */
#define CROSSBAR_SOURCE "docs/sources.md#c1"
#define CROSSBAR_BUFFER(NAME, STRUCT, FIELD, DEFAULT, LOW, HIGH, HELP) \
    PARAM(NAME, PARAM_U32, STRUCT, FIELD, DEFAULT, LOW, HIGH, PROV_ESTIMATE, CROSSBAR_SOURCE, HELP)
#define CROSSBAR_PARAMS(STRUCT, FIELD, LATENCY_NS, LATENCY_HELP)                            \
    PARAM("generation", PARAM_U32, STRUCT, FIELD.generation, 3, 1, 5, PROV_DATASHEET,       \
          CROSSBAR_SOURCE, "highest generation of its ports"),                              \
        PARAM("latency_ns", PARAM_TIME, STRUCT, FIELD.latency_ps, LATENCY_NS, 50, 300,      \
              PROV_ESTIMATE, CROSSBAR_SOURCE, LATENCY_HELP),                                \
        PARAM_ONE_OF("mode", STRUCT, FIELD.mode, CROSSBAR_CUT_THROUGH, crossbar_mode_names, \
                     PROV_DATASHEET, CROSSBAR_SOURCE,                                       \
                     "forwards when the head is there, or when the whole TLP is"),          \
        CROSSBAR_BUFFER("posted_header_credits", STRUCT, FIELD.ph, 64, 1, 2048,             \
                        "receive buffer of each port: posted headers"),                     \
        CROSSBAR_BUFFER("posted_data_credits", STRUCT, FIELD.pd, 512, 8, 32768,             \
                        "receive buffer of each port: posted data, 16 bytes each"),         \
        CROSSBAR_BUFFER("non_posted_header_credits", STRUCT, FIELD.nph, 64, 1, 2048,        \
                        "receive buffer of each port: non-posted headers"),                 \
        CROSSBAR_BUFFER("non_posted_data_credits", STRUCT, FIELD.npd, 64, 1, 2048,          \
                        "receive buffer of each port: non-posted data, 16 bytes each"),     \
        CROSSBAR_BUFFER("completion_header_credits", STRUCT, FIELD.cplh, 64, 1, 2048,       \
                        "receive buffer of each port: completion headers"),                 \
        CROSSBAR_BUFFER("completion_data_credits", STRUCT, FIELD.cpld, 512, 8, 32768,       \
                        "receive buffer of each port: completion data, 16 bytes each"),     \
        PARAM("mps_bytes_max", PARAM_U32, STRUCT, FIELD.mps_bytes_max, 2048, 128, 4096,     \
              PROV_DATASHEET, CROSSBAR_SOURCE, "largest payload that it supports")

/* Who has had the credits of one class at one egress: while they are short, each ingress gets its
 * turn before any gets another. */
struct crossbar_turns {
    uint64_t served_mask; /* ingresses that sent in this round */
    bool is_short;        /* in this round a TLP found no credits */
};

/* The TLPs of one ingress for one egress. */
struct crossbar_flow {
    struct tlp *first[N_TLP_CLASSES], *last[N_TLP_CLASSES];
    uint32_t n;
};

struct crossbar_port {
    struct crossbar *xbar;
    uint32_t idx;
    /* Its ID is the completer of answers (NULL: 0), and it says whether these carry a digest. */
    const struct cfg_space *cfg;
    /* Ingress: TLPs that are still being received (rate matching), in order. While there is one,
     * admit is pending for the first. */
    struct tlp *coming_first, *coming_last;
    struct sim_event admit;
    /* Egress. */
    uint64_t waiting_mask; /* ingresses with TLPs for this egress */
    uint32_t last_ingress; /* round robin for the wire: the one served last */
    struct crossbar_turns turns[N_TLP_CLASSES];
};

/* Copies of one TLP that occupy one receive buffer. */
struct crossbar_share {
    uint32_t n_left, next_free;
    sim_time end_ps; /* when the last of the copies that have left did */
};

struct crossbar {
    struct model *model; /* its ports are the crossbar's */
    sim_time latency_ps; /* first byte in to first byte out, egress idle */
    /* Translates the completion that refuses a request as if `egress` had received it. False: it
     * cannot be routed back and is dropped. May be NULL. */
    bool (*returned)(struct model *model, uint32_t egress, struct tlp *completion);
    /* Set by models that change nothing of a TLP that takes part in its size on the wire. */
    bool same_size;
    /* Records why a followed TLP, which the chip has at at_ps, leaves by `egress`. May be NULL. */
    void (*explain)(const struct model *model, uint32_t ingress, uint32_t egress,
                    const struct tlp *tlp, sim_time at_ps);
    /* For a source within the chip (crossbar_init()). left(): its posted TLP with a TLP tag other
     * than 0 has left, will have left at end_ps (>= now), or is lost. answered(): takes the
     * completion that refuses a lost request. */
    void (*left)(struct model *model, unsigned tag, sim_time end_ps);
    void (*answered)(struct model *model, struct tlp *completion);
    uint32_t n_ingresses; /* the ports, and the source within the chip if there is one */
    struct crossbar_port *port;
    struct crossbar_flow *flow; /* [egress * n_ingresses + ingress] */
    uint64_t sequence;
    struct crossbar_share *share;
    uint32_t n_shares, free_share;
    /* Statistics. */
    uint64_t tlps; /* forwarded */
    uint64_t lost; /* dropped or refused because the egress link was down */
};

/* Whether the parameters and the width of a port are valid; if not, adds a mistake of the model's
 * group to errors. */
bool crossbar_check(const struct model *model, const struct crossbar_params *params, uint32_t lanes,
                    struct sim_error_list *errors);
/* Initialises port i of the model. name must outlive it. */
void crossbar_port_init(struct model *model, uint32_t i, const struct crossbar_params *params,
                        uint32_t lanes, const char *name);

/* Initialises the crossbar; model->ports and n_ports (at most CROSSBAR_PORTS_MAX) must be set.
 * inner: a source of TLPs within the chip competes for every egress like a port. Its ingress is
 * n_ports (less than CROSSBAR_PORTS_MAX); it sends by crossbar_send() or crossbar_send_near(). */
void crossbar_init(struct crossbar *xbar, struct model *model, sim_time latency_ps, bool inner);
/* Frees what the crossbar holds. Must be called once, even if crossbar_init() was not. */
void crossbar_release(struct crossbar *xbar);

/* Sends the TLP, received by port ingress, through port egress. If that link is down (PCI Express
 * Base 3.1, 2.9.1), a non-posted request is refused and any other TLP is dropped. */
void crossbar_forward(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp);
/* Sends copies through all ports of egress_mask (not 0), to address[egress]. */
void crossbar_multicast(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp,
                        uint64_t egress_mask, const uint64_t *address);
/* Sends a TLP of the chip itself through egress, behind TLPs received by ingress before at_ps
 * (>= now). */
void crossbar_send(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                   sim_time at_ps);
/* Like crossbar_send() at the current time, but from beside the egress port: the first byte leaves
 * after latency_ps, which is less than the chip's latency. TLPs that the egress has granted by then
 * still go first. */
void crossbar_send_near(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                        sim_time latency_ps);
/* Sends the chip's own completion through the port that received the request. Takes both. */
void crossbar_answer(struct crossbar *xbar, uint32_t ingress, struct tlp *request,
                     struct tlp *completion);
/* Answers a received non-posted request with UR, drops any other TLP. Takes the TLP. */
void crossbar_refuse(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp);
/* Drops a received TLP, which frees it and its receive buffer. */
void crossbar_drop(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp);
/* To be called by the model's credit(). */
void crossbar_credit(struct crossbar *xbar, uint32_t port);
/* To be called when the link of the port goes down: TLPs that wait for it are lost. */
void crossbar_flush(struct crossbar *xbar, uint32_t egress);

#endif
