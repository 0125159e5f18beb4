/* The inside of a PCIe switch, for switch*.c and its test. */
#ifndef MODELS_PCIE_SWITCH_H
#define MODELS_PCIE_SWITCH_H

#include "models/model.h"

enum switch_mode { SWITCH_CUT_THROUGH, SWITCH_STORE_AND_FORWARD };

/* A virtual output queue: what one ingress holds for one egress. */
struct switch_flow {
    struct tlp *first[N_TLP_CLASSES], *last[N_TLP_CLASSES];
    uint32_t n;
};

struct switch_port {
    struct model *model;
    struct cfg_space *cfg; /* 12 KiB, owned */
    uint32_t idx;
    /* Ingress: TLPs that are still coming in (rate matching), in order; admit is pending for the
     * first while there is one. */
    struct tlp *coming_first, *coming_last;
    struct sim_event admit;
    /* Egress. */
    uint64_t waiting_mask; /* ingresses whose flow to this egress is not empty */
    uint32_t last_ingress; /* round robin: served last */
    char name[64];
};

struct pcie_switch {
    /* Parameters. */
    uint32_t n_downstream, generation, lanes, downstream_lanes;
    sim_time latency_ps;
    int mode; /* enum switch_mode */
    uint32_t ph, pd, nph, npd, cplh, cpld;
    uint32_t mps_bytes_max;
    /* State. Port 0 is the upstream port; the downstream port of device n is port n + 1. */
    struct switch_port *port;
    struct switch_flow *flow; /* [egress * n_ports + ingress] */
    uint64_t sequence;
    /* Statistics. */
    uint64_t tlps, peer_to_peer, redirected, unsupported_requests, unexpected_completions;
};

extern const struct model_ops pcie_switch_ops;

/* Where a TLP goes. */
enum switch_verdict {
    SWITCH_FORWARD,     /* out of *egress */
    SWITCH_CONFIG,      /* answered by the configuration space of port *egress */
    SWITCH_UNSUPPORTED, /* request without a destination */
    SWITCH_UNEXPECTED   /* completion without a destination */
};

/* switch_route.c. May turn a type 1 configuration request into type 0 (PCIe Base 3.1, 7.3.3). */
enum switch_verdict switch_route(const struct model *model, uint32_t ingress, struct tlp *tlp,
                                 uint32_t *egress);

#endif
