/*
 * pcie.cluster_switch: a switch between bridges. Every port is a cable; it stands in no host's
 * tree. Registers, reached through the fabric: hw/ntb_regs.h.
 */
#ifndef MODELS_PCIE_NTB_CLUSTER_SWITCH_H
#define MODELS_PCIE_NTB_CLUSTER_SWITCH_H

#include "hw/ntb_regs.h"
#include "models/pcie/switch/crossbar.h"

#define CLUSTER_NO_ROUTE 0xffu

struct cluster_switch {
    /* Parameters. */
    struct crossbar_params chip;
    uint32_t n_ports, lanes, n_requesters;
    uint32_t node; /* 0 until the fabric is set up, unless the scenario gives one */
    /* State. */
    struct crossbar xbar;
    char (*name)[64];
    uint8_t *route;                         /* by node: the port, or CLUSTER_NO_ROUTE */
    uint32_t *requester;                    /* by node: a bit per device that holds an entry */
    uint32_t n_nodes;                       /* of both */
    uint32_t n_entries;                     /* bits set in requester[] */
    uint32_t neighbour[CROSSBAR_PORTS_MAX]; /* by port, as if its link were up */
    uint32_t mc_control;
    uint64_t mc_receive[CROSSBAR_PORTS_MAX], mc_block[CROSSBAR_PORTS_MAX];
    /* Statistics. */
    uint64_t unroutable, unexpected_completions, unsupported, table_full, oversized;
    uint64_t multicast_in, multicast_copies, multicast_blocked;
};

extern const struct model_ops pcie_cluster_switch_ops;

/* What its firmware finds in the EEPROM, before time starts (fabric_domain.c): its number, how many
 * nodes there are (0 .. n_nodes - 1), and the port towards each. */
void cluster_switch_set_node(struct model *model, uint32_t node, uint32_t n_nodes);
void cluster_switch_set_route(struct model *model, uint32_t node, uint32_t port);
/* What its port finds at the other end of its cable when the link trains: CLUSTER_NEIGHBOUR_*. */
void cluster_switch_set_neighbour(struct model *model, uint32_t port, uint32_t neighbour);
/* CLUSTER_NO_ROUTE: none. */
uint32_t cluster_switch_route(const struct model *model, uint32_t node);
uint32_t cluster_switch_node(const struct model *model);

#endif
