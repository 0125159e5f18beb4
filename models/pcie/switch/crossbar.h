/*
 * The inside of a switch chip, whatever its ports mean: what comes in by one port leaves by another
 * after the chip's latency, through virtual output queues, in the order that PCI Express asks for.
 * Who embeds it (pcie.switch, pcie.ntb, pcie.cluster_switch) decides where a TLP goes and what it
 * looks like there. Timing: see the head of crossbar.c.
 */
#ifndef MODELS_PCIE_SWITCH_CROSSBAR_H
#define MODELS_PCIE_SWITCH_CROSSBAR_H

#include "models/base/model.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"

#define CROSSBAR_PORTS_MAX 64u

enum crossbar_mode { CROSSBAR_CUT_THROUGH, CROSSBAR_STORE_AND_FORWARD };

/* What the chips have in common; read from the scenario. */
struct crossbar_params {
    uint32_t generation;
    sim_time latency_ps;
    int mode; /* enum crossbar_mode */
    uint32_t ph, pd, nph, npd, cplh, cpld;
    uint32_t mps_bytes_max;
};
extern const char *const crossbar_mode_names[];

/* For the model's table of parameters; FIELD: its struct crossbar_params. */
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

/* What one ingress holds for one egress. */
struct crossbar_flow {
    struct tlp *first[N_TLP_CLASSES], *last[N_TLP_CLASSES];
    uint32_t n;
};

struct crossbar_port {
    struct crossbar *xbar;
    uint32_t idx;
    const struct cfg_space *cfg; /* whose ID answers carry; NULL: none */
    /* Ingress: TLPs that are still coming in (rate matching), in order; admit is pending for the
     * first while there is one. */
    struct tlp *coming_first, *coming_last;
    struct sim_event admit;
    /* Egress. */
    uint64_t waiting_mask; /* ingresses whose flow to this egress is not empty */
    uint32_t last_ingress; /* round robin: served last */
};

/* Copies of one TLP that occupy one receive buffer. */
struct crossbar_share {
    uint32_t n_left, next_free;
    sim_time end_ps; /* the last of those that have left did */
};

struct crossbar {
    struct model *model; /* its ports are the crossbar's */
    sim_time latency_ps; /* first byte in to first byte out, egress idle */
    /* A refused request's answer must look as if it had come in by `egress`; may be NULL. False: it
     * finds no way home any more, and is dropped. */
    bool (*returned)(struct model *model, uint32_t egress, struct tlp *completion);
    /* Writes down why a followed TLP, which the chip had at at_ps, leaves by `egress`; may be NULL.
     */
    void (*explain)(const struct model *model, uint32_t ingress, uint32_t egress,
                    const struct tlp *tlp, sim_time at_ps);
    /* A source within the chip (crossbar_init()): a posted TLP of its own with a tag other than 0
     * has left, or will have at end_ps (>= now), or is lost; a request that was lost is answered.
     */
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

/* The parameters, and the width of some port, make sense; else a mistake of the model's group. */
bool crossbar_check(const struct model *model, const struct crossbar_params *params, uint32_t lanes,
                    struct sim_error_list *errors);
/* Port i of the model; name outlives it. */
void crossbar_port_init(struct model *model, uint32_t i, const struct crossbar_params *params,
                        uint32_t lanes, const char *name);

/* model->ports and n_ports (at most CROSSBAR_PORTS_MAX) must be set. inner: there is a source of
 * TLPs within the chip, which competes for every egress like a port; its ingress is n_ports (less
 * than CROSSBAR_PORTS_MAX), what it sends goes by crossbar_send() or crossbar_send_near(). */
void crossbar_init(struct crossbar *xbar, struct model *model, sim_time latency_ps, bool inner);
/* Frees what it holds; to be called once also if crossbar_init() never was. */
void crossbar_release(struct crossbar *xbar);

/* The TLP, received by port ingress, leaves by port egress. If that link is down it is treated as
 * PCI Express Base 3.1, 2.9.1 says: a request that wants an answer is refused, others vanish. */
void crossbar_forward(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp);
/* Copies leave by all ports of egress_mask (not 0), to address[egress]. */
void crossbar_multicast(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp,
                        uint64_t egress_mask, const uint64_t *address);
/* A TLP of the chip itself leaves by egress, behind what came in by ingress until at_ps (>= now).
 */
void crossbar_send(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                   sim_time at_ps);
/* The same at once, from next to the egress port: less than the chip's latency to its first byte
 * out. What the egress has granted by then still goes first. */
void crossbar_send_near(struct crossbar *xbar, uint32_t ingress, uint32_t egress, struct tlp *tlp,
                        sim_time latency_ps);
/* The chip's own answer goes back by the port that the request came in by; the request is used up,
 * as is the completion. */
void crossbar_answer(struct crossbar *xbar, uint32_t ingress, struct tlp *request,
                     struct tlp *completion);
/* Answers a received request with UR; drops what wants no answer. */
void crossbar_refuse(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp);
/* Drops a received TLP. */
void crossbar_drop(struct crossbar *xbar, uint32_t ingress, struct tlp *tlp);
/* The port has room again. */
void crossbar_credit(struct crossbar *xbar, uint32_t port);
/* The port's link went down: what waits for it is lost. */
void crossbar_flush(struct crossbar *xbar, uint32_t egress);

#endif
