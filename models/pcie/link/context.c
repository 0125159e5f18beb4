/* What all PCIe models of a run share: the pools of TLPs, payloads and latency stamps, and the
 * list of links. */
#include "models/pcie/link/context.h"

#include <stdlib.h>
#include <string.h>

#include "models/pcie/link/tlp_trace.h"

static const uint16_t payload_class_bytes[N_PAYLOAD_CLASSES] = {
    64, 128, 256, 512, 1024, 2048, 4096
};

struct pcie_context *pcie_context_new(struct sim *sim)
{
    struct pcie_context *pcie = sim_zalloc(1, sizeof(*pcie));

    pcie->sim = sim;
    pcie->tlps = sim_pool_new(sim, "tlp", sizeof(struct tlp));
    pcie->stamps = sim_pool_new(sim, "stamp", sizeof(struct sim_stamp));
    for (unsigned i = 0; i < N_PAYLOAD_CLASSES; i++)
        pcie->payloads[i] = sim_pool_new(sim, "payload", payload_class_bytes[i]);
    pcie->watch.describe = pcie_context_describe;
    sim_watch_add(sim, &pcie->watch);
    return pcie;
}

void pcie_context_free(struct pcie_context *pcie)
{
    if (pcie == NULL)
        return;
    for (unsigned i = 0; i < pcie->n_links; i++)
        pcie_link_free(pcie->links[i]);
    free(pcie->links);
    sim_watch_remove(pcie->sim, &pcie->watch);
    free(pcie);
}

struct sim *pcie_context_sim(struct pcie_context *pcie)
{
    return pcie->sim;
}

void pcie_context_add_link(struct pcie_context *pcie, struct pcie_link *link)
{
    pcie->links = sim_grow(pcie->links, pcie->n_links + 1, sizeof(*pcie->links));
    pcie->links[pcie->n_links++] = link;
}

struct tlp *tlp_new(struct pcie_context *pcie, enum tlp_type type)
{
    struct tlp *tlp = sim_pool_get(pcie->tlps);

    memset(tlp, 0, sizeof(*tlp));
    tlp->type = (uint8_t)type;
    return tlp;
}

/* The smallest class that holds so many bytes: classes are 64 << class. */
static unsigned payload_class(unsigned bytes)
{
    return bytes <= 64 ? 0 : 26u - (unsigned)__builtin_clz(bytes - 1);
}

void tlp_payload_new(struct pcie_context *pcie, struct tlp *tlp)
{
    SIM_ASSERT(tlp->length_bytes > 0 && tlp->length_bytes <= TLP_PAYLOAD_BYTES_MAX,
               "payload of %u bytes", tlp->length_bytes);
    SIM_ASSERT(tlp->payload == NULL, "the TLP has a payload already");
    unsigned class = payload_class(tlp->length_bytes);
    tlp->payload = sim_pool_get(pcie->payloads[class]);
    tlp->payload_class = (uint8_t) class;
}

struct tlp *tlp_copy(struct pcie_context *pcie, const struct tlp *tlp)
{
    struct tlp *copy = tlp_new(pcie, (enum tlp_type)tlp->type);

    *copy = *tlp;
    copy->next = NULL;
    sim_event_init(&copy->event, NULL);
    if (tlp->stamp != NULL)
        copy->stamp = stamp_copy(pcie, tlp->stamp);
    if (tlp->payload != NULL) {
        copy->payload = NULL;
        tlp_payload_new(pcie, copy);
        memcpy(copy->payload, tlp->payload, tlp->length_bytes);
    }
    return copy;
}

void tlp_free(struct pcie_context *pcie, struct tlp *tlp)
{
    if (tlp->payload != NULL)
        sim_pool_put(pcie->payloads[tlp->payload_class], tlp->payload);
    if (SIM_UNLIKELY(tlp->stamp != NULL))
        stamp_free(pcie, tlp->stamp);
    sim_pool_put(pcie->tlps, tlp);
}

void tlp_free_list(struct pcie_context *pcie, struct tlp *first)
{
    while (first != NULL) {
        struct tlp *next = first->next;
        tlp_free(pcie, first);
        first = next;
    }
}

uint64_t tlp_live(const struct pcie_context *pcie)
{
    return sim_pool_live(pcie->tlps);
}

struct sim_stamp *stamp_new(struct pcie_context *pcie, sim_time now_ps)
{
    struct sim_stamp *stamp = sim_pool_get(pcie->stamps);

    sim_stamp_start(stamp, now_ps);
    return stamp;
}

struct sim_stamp *stamp_copy(struct pcie_context *pcie, const struct sim_stamp *stamp)
{
    struct sim_stamp *copy = stamp_new(pcie, stamp->start_ps);
    *copy = *stamp;
    if (stamp->trace != NULL)
        tlp_trace_branch(copy);
    return copy;
}

void stamp_free(struct pcie_context *pcie, struct sim_stamp *stamp)
{
    if (stamp == NULL)
        return;
    if (stamp->trace != NULL)
        tlp_trace_end(stamp);
    sim_pool_put(pcie->stamps, stamp);
}

struct pcie_link *pcie_context_link(struct pcie_context *pcie, unsigned i, struct pcie_port **a,
                                    struct pcie_port **b)
{
    if (i >= pcie->n_links)
        return NULL;
    pcie_link_ends(pcie->links[i], a, b);
    return pcie->links[i];
}
