/* The inside of a PCIe switch, for switch*.c and its test. */
#ifndef MODELS_PCIE_SWITCH_SWITCH_H
#define MODELS_PCIE_SWITCH_SWITCH_H

#include "models/pcie/switch/crossbar.h"

struct switch_port {
    struct cfg_space *cfg; /* 12 KiB, owned */
    char name[64];
};

struct pcie_switch {
    /* Parameters. */
    uint32_t n_downstream, lanes, downstream_lanes, n_groups;
    struct crossbar_params chip;
    /* State. Port 0 is the upstream port; the downstream port of device n is port n + 1. */
    struct switch_port *port;
    struct crossbar xbar;
    /* Statistics. */
    uint64_t peer_to_peer, redirected, unsupported_requests, unexpected_completions;
    uint64_t multicast_in, multicast_copies, multicast_blocked;
};

extern const struct model_ops pcie_switch_ops;

/* switch_route.c: struct crossbar's explain(). */
void switch_explain(const struct model *model, uint32_t ingress, uint32_t egress,
                    const struct tlp *tlp, sim_time at_ps);

/* Where a TLP goes. */
enum switch_verdict {
    SWITCH_FORWARD,     /* out of *egress */
    SWITCH_MULTICAST,   /* a write to a multicast group */
    SWITCH_CONFIG,      /* answered by the configuration space of port *egress */
    SWITCH_UNSUPPORTED, /* request without a destination */
    SWITCH_UNEXPECTED   /* completion without a destination */
};

/* switch_route.c: the ports that a multicast write is copied to (0: none, or it is blocked), and to
 * which address. */
uint64_t switch_multicast(const struct model *model, uint32_t ingress, const struct tlp *tlp,
                          uint64_t *address);

/* switch_route.c. May turn a type 1 configuration request into type 0 (PCIe Base 3.1, 7.3.3). */
enum switch_verdict switch_route(const struct model *model, uint32_t ingress, struct tlp *tlp,
                                 uint32_t *egress);

#endif
