/*
 * Portals of dsa.accelerator (BAR 2): descriptors come in.
 *
 * Models: posted writes of 64 bytes into dedicated queues (MOVDIR64B), which are lost if the queue
 *   is full; deferrable ones into shared queues (ENQCMD), accepted or refused by the completion's
 *   status; the threshold of limited portals; reads, which return zeros. A loss is told in SWERR.
 * Does not model: PASIDs of the writer.
 * Timing: a descriptor is in its queue at once; a deferrable write is answered after
 *   register_latency.
 * Sources: Intel Data Streaming Accelerator Architecture Specification, "Portals", "Shared work
 *   queues", "Dedicated work queues".
 */
#include <string.h>

#include "models/dsa/dsa_internal.h"

static void put(struct dsa_device *dsa, struct dsa_queue *queue, const uint8_t *payload)
{
    const uint32_t at = (queue->first + queue->n) % dsa->params.entries;
    memcpy(&queue->entry[at], payload, sizeof(queue->entry[at]));
    queue->n++;
    queue->submitted++;
    dsa->stats.occupancy_max = SIM_MAX(dsa->stats.occupancy_max, queue->n);
}

/* Entries that a write to this kind of portal may fill. */
static uint32_t room_of(const struct dsa_queue *queue, uint32_t kind)
{
    const uint32_t threshold = queue->config[DSA_WQCFG_THRESHOLD / 4];
    const bool limited = !dsa_queue_dedicated(queue) && (kind & DSA_PORTAL_LIMITED) != 0;
    return limited ? SIM_MIN(threshold, dsa_queue_size(queue)) : dsa_queue_size(queue);
}

/* 0, or the error of DSA_SWERR_PORTAL_*. */
static uint8_t take(struct dsa_device *dsa, struct dsa_queue *queue, uint32_t kind, uint64_t offset,
                    const struct tlp *tlp)
{
    const bool dedicated = tlp->type == TLP_MWR;
    if (tlp->length_bytes != DSA_DESCRIPTOR_BYTES || offset % DSA_DESCRIPTOR_BYTES != 0)
        return DSA_SWERR_PORTAL_SIZE;
    if (queue == NULL || !queue->enabled || queue->closed ||
        dsa_queue_dedicated(queue) != dedicated)
        return DSA_SWERR_PORTAL_OFF;
    if (queue->n >= room_of(queue, kind))
        return DSA_SWERR_PORTAL_FULL;
    put(dsa, queue, tlp->payload);
    return 0;
}

static void answer_read(struct dsa_device *dsa, struct tlp *tlp)
{
    for (unsigned at = 0; at < tlp->length_bytes;) {
        struct tlp *completion = pcie_function_data(&dsa->function, tlp, at);
        memset(completion->payload, 0, completion->length_bytes);
        at += completion->length_bytes;
        pcie_function_answer(&dsa->function, completion, dsa->params.pcie.register_ps);
    }
}

void dsa_portal_request(struct pcie_function *function, uint64_t offset, struct tlp *tlp)
{
    struct dsa_device *dsa = dsa_of(function);
    const uint64_t portal = offset / DSA_PORTAL_BYTES, i = portal / DSA_PORTALS_OF_WQ;
    struct dsa_queue *queue = i < dsa->params.queues ? &dsa->queue[i] : NULL;

    pcie_function_buffer_free(function, tlp, dsa_now(dsa));
    if (tlp->type == TLP_MRD) {
        answer_read(dsa, tlp);
        tlp_free(dsa->model->pcie, tlp);
        return;
    }
    const uint8_t error = take(dsa, queue, portal % DSA_PORTALS_OF_WQ, offset, tlp);
    if (tlp->type == TLP_DMWR) {
        dsa->stats.retries += error != 0;
        pcie_function_answer(
            function,
            tlp_completion(dsa->model->pcie, tlp, function->cfg.id, error == 0 ? TLP_SC : TLP_CRS),
            dsa->params.pcie.register_ps);
    } else if (error != 0) {
        dsa->stats.dropped++;
        dsa_software_error(dsa, error, queue, NULL, NULL, -1);
    }
    tlp_free(dsa->model->pcie, tlp);
    if (error == 0)
        dsa_dispatch(dsa);
}
