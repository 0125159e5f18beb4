/* The inside of struct pcie_context, for context.c and link*.c only. */
#ifndef MODELS_PCIE_LINK_CONTEXT_H
#define MODELS_PCIE_LINK_CONTEXT_H

#include "models/pcie/link/port.h"
#include "sim/engine/watchdog.h"

enum { N_PAYLOAD_CLASSES = 7 };

struct pcie_context {
    struct sim *sim;
    struct sim_pool *tlps, *stamps;
    struct sim_pool *payloads[N_PAYLOAD_CLASSES]; /* 64, 128, ... 4096 bytes */
    struct pcie_link **links;                     /* owned */
    unsigned n_links;
    struct sim_watch watch; /* TLPs that wait for credits */
};

/* Hands the link to the context, which frees it. */
void pcie_context_add_link(struct pcie_context *pcie, struct pcie_link *link);
void pcie_link_free(struct pcie_link *link);
/* link_credit.c: struct sim_watch. */
void pcie_context_describe(struct sim_watch *watch, struct sim_waits *waits);
void pcie_link_ends(struct pcie_link *link, struct pcie_port **a, struct pcie_port **b);

#endif
