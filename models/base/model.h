/*
 * One interface for every model of hardware. The builder (world.c) allocates the state, reads the
 * parameters into it and clears the statistics at the end of the warm-up; the model fills in the
 * rest.
 */
#ifndef MODELS_BASE_MODEL_H
#define MODELS_BASE_MODEL_H

#include "sim/config/config.h"
#include "sim/config/error.h"
#include "sim/engine/sim.h"
#include "sim/engine/stat.h"

struct cable_kind;
struct model;
struct pcie_context;
struct pcie_port;
struct pcie_shortcut;
struct tlp;

/* What a type of model is and does. init() is required; a model with PCIe ports needs receive(),
 * and without receive() it may have neither announce(), credit(), link_change() nor the two flags:
 * model_ops_valid(). */
struct model_ops {
    const char *type; /* the name scenarios use: "pcie.switch" */
    const char *help; /* one line, for `nudma describe` */
    size_t state_bytes;
    const struct param_desc *params; /* read into the state before init(); may be NULL */
    const struct stat_desc *stats;   /* fields of the state; may be NULL */
    /* Checks the parameters against each other; creates ports and configuration space. Adds
     * mistakes to errors. */
    void (*init)(struct model *model, struct sim_error_list *errors);
    /* Called once all cables are joined, at time 0. May be NULL. */
    void (*start)(struct model *model);
    /* Takes the TLP, and must call pcie_port_release() for its receive buffer in due time. */
    void (*receive)(struct model *model, uint32_t port, struct tlp *tlp);
    /* This TLP will be received next: the model may prefetch on the real machine. Must not affect
     * anything simulated. May be NULL. */
    void (*announce)(struct model *model, uint32_t port, const struct tlp *tlp);
    /* The port's transmit queue has room again. May be NULL. */
    void (*credit)(struct model *model, uint32_t port);
    /* The model passes TLPs on: its ports but p0 lead away from the root. All ports of an endpoint
     * lead to the root. */
    bool forwards;
    /* Cables name the ports by the ports' own names ("server.s0.rp1") instead of p0, p1. */
    bool names_ports;
    /* The cable of the port was pulled or plugged in again (port->down). May be NULL. */
    void (*link_change)(struct model *model, uint32_t port);
    /* Brings statistics that run ahead of time, and the slack of their peaks, up to now: called
     * before they are read or cleared. May be NULL. */
    void (*settle)(struct model *model);
    /* Frees what init() and start() allocated, but no ports. May be NULL. */
    void (*release)(struct model *model);
};

/* The ports of a model that one kind of cable joins. */
struct model_ports {
    const struct cable_kind *kind;
    void *port; /* an array of kind->port_bytes each */
    uint32_t n;
};
#define MODEL_PORT_KINDS_MAX 2u

struct model {
    const struct model_ops *ops;
    const char *name; /* "nfp", "server.s0"; owned by the builder */
    struct sim *sim;
    struct pcie_context *pcie;
    void *state;
    struct sim_random random;
    struct pcie_port *ports; /* PCIe ports: an array that init() allocates, model_free() frees */
    uint32_t n_ports;
    struct model_ports other_ports[MODEL_PORT_KINDS_MAX]; /* of model_ports_new(); then zeros */
    void *user;                 /* for the code that drives the model: a workload, a test */
    struct config_node *config; /* its group in the scenario, for messages; may be NULL */
    struct stamp_trace *trace;  /* NULL unless its transfers are followed (tlp_trace.h) */
    const struct pcie_shortcut *shortcut; /* NULL: all DMA goes as TLPs (endpoint/dma.h) */
    bool initialised;                     /* init() has been called, so release() will be */
};

/* Whether all required callbacks are there and agree with each other; false with what is wrong in
 * *why (static). */
bool model_ops_valid(const struct model_ops *ops, const char **why);

/* Allocates a model, initialises statistics and random stream, reads the parameters and, unless
 * they are wrong, calls init(). Never returns NULL; errors tells whether the model may be used.
 * group may be NULL (all parameters have their defaults); config only if the model has no
 * parameters. name must outlive the model. */
struct model *model_new(struct sim *sim, struct pcie_context *pcie, const struct model_ops *ops,
                        const char *name, struct config *config, struct config_node *group,
                        struct sim_error_list *errors);
/* Adds a mistake of the model's group to errors: the model's name, then the text (": ports of ...",
 * ".lanes: found ..."). */
void model_mistake(const struct model *model, struct sim_error_list *errors, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Calls release() if init() was called; frees statistics, ports and state. NULL is allowed. */
void model_free(struct model *model);

/* Allocates `n` zeroed ports for a kind of cable; at most once for each kind. Freed by
 * model_free(). */
void *model_ports_new(struct model *model, const struct cable_kind *kind, uint32_t n);
/* The ports of model_ports_new() for that kind; NULL and *n = 0 if there are none. */
static inline void *model_ports(const struct model *model, const struct cable_kind *kind,
                                uint32_t *n)
{
    for (uint32_t i = 0; i < MODEL_PORT_KINDS_MAX; i++) {
        if (model->other_ports[i].kind == kind) {
            *n = model->other_ports[i].n;
            return model->other_ports[i].port;
        }
    }
    *n = 0;
    return NULL;
}

#endif
