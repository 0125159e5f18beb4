/*
 * Models: nothing by itself; what all PCIe models of a run share: the pools of TLPs, payloads and
 * stamps, and the list of links.
 * Does not model: anything that takes time.
 * Timing: none.
 * Sources: none.
 */
#include "models/pcie/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "models/pcie/tlp_trace.h"

static const uint16_t payload_class_bytes[N_PAYLOAD_CLASSES] = {
    64, 128, 256, 512, 1024, 2048, 4096
};

struct pcie_fabric *pcie_fabric_new(struct sim *sim)
{
    struct pcie_fabric *fabric = calloc(1, sizeof(*fabric));

    SIM_ASSERT(fabric != NULL, "no memory for a fabric");
    fabric->sim = sim;
    fabric->tlps = sim_pool_new(sim, "tlp", sizeof(struct tlp));
    fabric->stamps = sim_pool_new(sim, "stamp", sizeof(struct sim_stamp));
    for (unsigned i = 0; i < N_PAYLOAD_CLASSES; i++)
        fabric->payloads[i] = sim_pool_new(sim, "payload", payload_class_bytes[i]);
    return fabric;
}

void pcie_fabric_free(struct pcie_fabric *fabric)
{
    if (fabric == NULL)
        return;
    for (unsigned i = 0; i < fabric->n_links; i++)
        pcie_link_free(fabric->links[i]);
    free(fabric->links);
    free(fabric);
}

struct sim *pcie_fabric_sim(struct pcie_fabric *fabric)
{
    return fabric->sim;
}

void pcie_fabric_add_link(struct pcie_fabric *fabric, struct pcie_link *link)
{
    size_t bytes = (fabric->n_links + 1) * sizeof(*fabric->links);
    struct pcie_link **links = realloc(fabric->links, bytes);

    SIM_ASSERT(links != NULL, "no memory for a link");
    links[fabric->n_links++] = link;
    fabric->links = links;
}

struct tlp *tlp_new(struct pcie_fabric *fabric, enum tlp_type type)
{
    struct tlp *tlp = sim_pool_get(fabric->tlps);

    memset(tlp, 0, sizeof(*tlp));
    tlp->type = (uint8_t)type;
    return tlp;
}

/* The smallest class that holds so many bytes: classes are 64 << class. */
static unsigned payload_class(unsigned bytes)
{
    return bytes <= 64 ? 0 : 26u - (unsigned)__builtin_clz(bytes - 1);
}

void tlp_payload_new(struct pcie_fabric *fabric, struct tlp *tlp)
{
    SIM_ASSERT(tlp->length_bytes > 0 && tlp->length_bytes <= TLP_PAYLOAD_BYTES_MAX,
               "payload of %u bytes", tlp->length_bytes);
    SIM_ASSERT(tlp->payload == NULL, "the TLP has a payload already");
    unsigned class = payload_class(tlp->length_bytes);
    tlp->payload = sim_pool_get(fabric->payloads[class]);
    tlp->payload_class = (uint8_t) class;
}

struct tlp *tlp_copy(struct pcie_fabric *fabric, const struct tlp *tlp)
{
    struct tlp *copy = tlp_new(fabric, (enum tlp_type)tlp->type);

    *copy = *tlp;
    copy->next = NULL;
    sim_event_init(&copy->event, NULL);
    if (tlp->stamp != NULL)
        copy->stamp = stamp_copy(fabric, tlp->stamp);
    if (tlp->payload != NULL) {
        copy->payload = NULL;
        tlp_payload_new(fabric, copy);
        memcpy(copy->payload, tlp->payload, tlp->length_bytes);
    }
    return copy;
}

void tlp_free(struct pcie_fabric *fabric, struct tlp *tlp)
{
    if (tlp->payload != NULL)
        sim_pool_put(fabric->payloads[tlp->payload_class], tlp->payload);
    if (SIM_UNLIKELY(tlp->stamp != NULL))
        stamp_free(fabric, tlp->stamp);
    sim_pool_put(fabric->tlps, tlp);
}

uint64_t tlp_live(const struct pcie_fabric *fabric)
{
    return sim_pool_live(fabric->tlps);
}

struct sim_stamp *stamp_new(struct pcie_fabric *fabric, sim_time now_ps)
{
    struct sim_stamp *stamp = sim_pool_get(fabric->stamps);

    sim_stamp_start(stamp, now_ps);
    return stamp;
}

struct sim_stamp *stamp_copy(struct pcie_fabric *fabric, const struct sim_stamp *stamp)
{
    struct sim_stamp *copy = stamp_new(fabric, stamp->start_ps);
    *copy = *stamp;
    if (stamp->trace != NULL)
        tlp_trace_branch(copy);
    return copy;
}

void stamp_free(struct pcie_fabric *fabric, struct sim_stamp *stamp)
{
    if (stamp == NULL)
        return;
    if (stamp->trace != NULL)
        tlp_trace_end(stamp);
    sim_pool_put(fabric->stamps, stamp);
}

struct pcie_link *pcie_fabric_link(struct pcie_fabric *fabric, unsigned i, struct pcie_port **a,
                                   struct pcie_port **b)
{
    if (i >= fabric->n_links)
        return NULL;
    pcie_link_ends(fabric->links[i], a, b);
    return fabric->links[i];
}
