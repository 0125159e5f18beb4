/*
 * One interface for every device model (STYLE.md). The engine allocates the state, reads the
 * parameters into it, clears the statistics at the end of the warm-up.
 */
#ifndef MODELS_BASE_MODEL_H
#define MODELS_BASE_MODEL_H

#include "sim/config/config.h"
#include "sim/config/error.h"
#include "sim/engine/sim.h"
#include "sim/engine/stat.h"

struct model;
struct tlp;
struct pcie_context;
struct pcie_port;
struct ether_port;

struct model_ops {
    const char *type; /* the name scenarios use: "pcie.switch" */
    const char *help; /* one line, for `nudma describe` */
    size_t state_bytes;
    const struct param_desc *params; /* read into the state before init() */
    const struct stat_desc *stats;   /* fields of the state; may be NULL */
    /* Checks the parameters against each other and sets up ports and configuration space
     * (model->ports, n_ports, functions). Mistakes go to errors. */
    void (*init)(struct model *model, struct sim_error_list *errors);
    /* Links are joined; time is 0. May be NULL. */
    void (*start)(struct model *model);
    /* Takes the TLP. Must pcie_port_release() its buffer in due time. NULL without PCIe ports. */
    void (*receive)(struct model *model, uint32_t port, struct tlp *tlp);
    /* This TLP will be received next, soon: a chance to have the host machine fetch memory ahead.
     * Nothing simulated may depend on it. May be NULL. */
    void (*announce)(struct model *model, uint32_t port, const struct tlp *tlp);
    /* The port's transmit queue has room again; may be NULL. */
    void (*credit)(struct model *model, uint32_t port);
    /* Passes TLPs on: its ports but p0 lead away from the root. All ports of an endpoint lead to
     * it. */
    bool forwards;
    /* Cables name its ports by their own names ("server.s0.rp1") instead of p0, p1. */
    bool names_ports;
    /* The port's cable was pulled or plugged in again (port->down); may be NULL. */
    void (*link_change)(struct model *model, uint32_t port);
    /* Frees what init() and start() allocated; may be NULL. */
    void (*release)(struct model *model);
};

struct model {
    const struct model_ops *ops;
    const char *name; /* "nfp", "server.s0"; owned by the builder */
    struct sim *sim;
    struct pcie_context *pcie;
    void *state;
    struct sim_random random;
    struct pcie_port *ports; /* array allocated by init() (malloc), freed by model_free() */
    uint32_t n_ports;
    struct ether_port *ether_ports; /* the same for Ethernet (models/ether/ether.h) */
    uint32_t n_ether_ports;
    void *user;                 /* for whoever drives the model (a workload, a test) */
    struct config_node *config; /* its group, for messages; may be NULL */
    struct stamp_trace *trace;  /* NULL unless transfers of its are followed (tlp_trace.h) */
    bool initialised;           /* init() has been called, so release() will be */
};

/* Allocates, readies the statistics and the random stream, reads params, calls init() unless the
 * params were wrong. Never NULL; errors tells whether it may be used. group may be NULL (all
 * defaults); config only if there are no params. name must outlive it. */
struct model *model_new(struct sim *sim, struct pcie_context *pcie, const struct model_ops *ops,
                        const char *name, struct config *config, struct config_node *group,
                        struct sim_error_list *errors);
/* Calls release() if init() was called; frees histograms, ports and state. NULL is allowed. */
void model_free(struct model *model);

#endif
