/*
 * Offload of an NVMe-oF target to an RDMA adapter.
 *
 * What it does: Maps an NVMe queue pair and the controller's doorbells for the adapter, writes the
 *   PRP lists of the staging buffers, has the adapter take over.
 * Leaves out: offload of writes, queue pairs of the NVMe controller that several connections share.
 * Follows: the verbs of Mellanox' NVMe-oF target offload: SQ, CQ and doorbells of a controller, a
 *   staging buffer.
 * Costs: One command of the adapter, the stores of the lists; nothing per NVMe command.
 */
#include <errno.h>
#include <string.h>

#include "logic/rdma/rdma_internal.h"

struct mapping {
    uint64_t dma, bytes;
    bool resource;
};

struct rdma_drv_offload {
    struct rdma_drv *rdma;
    struct mapping mapping[3];
    unsigned n;
};

static int map_memory(struct rdma_drv_offload *offload, struct kaddr at, uint64_t bytes,
                      uint64_t *dma)
{
    const int error = k_dma_map(&offload->rdma->pci->device, at, bytes, K_DMA_BOTH, dma);
    if (error == 0)
        offload->mapping[offload->n++] = (struct mapping){ *dma, bytes, false };
    return error;
}

/* The page of registers that has both doorbells; dma: of its beginning. */
static int map_doorbells(struct rdma_drv_offload *offload,
                         const struct rdma_drv_offload_params *params, uint64_t *dma)
{
    const uint64_t page = params->sq_doorbell & ~(uint64_t)(K_PAGE_BYTES - 1);
    if (params->cq_doorbell / K_PAGE_BYTES != page / K_PAGE_BYTES)
        return -EINVAL;
    const int error = k_dma_map_resource(&offload->rdma->pci->device, &params->controller->device,
                                         0, page, K_PAGE_BYTES, K_DMA_FROM_DEVICE, dma);
    if (error == 0)
        offload->mapping[offload->n++] = (struct mapping){ *dma, K_PAGE_BYTES, true };
    return error;
}

static void write_lists(struct kernel *kernel, const struct rdma_drv_offload_params *p)
{
    for (uint32_t i = 0; i < p->entries; i++)
        for (uint64_t at = K_PAGE_BYTES; at < p->slot_bytes; at += K_PAGE_BYTES) {
            const uint64_t page = p->staging_bus + (uint64_t)i * p->slot_bytes + at;
            const uint64_t place = (uint64_t)i * p->list_bytes + (at / K_PAGE_BYTES - 1) * 8;
            k_store(kernel, kaddr_add(p->lists, place), &page, sizeof page);
        }
}

/* Lists have a place for each page but the first. */
static bool lists_fit(const struct rdma_drv_offload_params *p)
{
    return p->slot_bytes >= K_PAGE_BYTES && p->slot_bytes <= RDMA_OFFLOAD_SLOT_MAX &&
           (p->slot_bytes / K_PAGE_BYTES - 1) * 8 <= p->list_bytes;
}

static int take_over(struct rdma_drv_offload *offload, const struct rdma_drv_qp *qp,
                     const struct rdma_drv_offload_params *p)
{
    struct rdma_offload_command c = { .opcode = RDMA_SET_OFFLOAD,
                                      .block_log = p->block_log2,
                                      .number = qp->number,
                                      .staging_va = p->staging_va,
                                      .staging_bus = p->staging_bus,
                                      .lists_bus = p->lists_bus,
                                      .staging_key = p->staging_key,
                                      .slot_bytes = p->slot_bytes,
                                      .list_bytes = p->list_bytes,
                                      .nsid = p->nsid,
                                      .nvme_entries = p->nvme_entries,
                                      .entries = p->entries,
                                      .sq_head = p->sq_head };
    struct rdma_command command;
    uint64_t doorbells;
    int error = map_memory(offload, p->sq, p->nvme_entries * UINT64_C(64), &c.sq_iova);
    if (error == 0)
        error = map_memory(offload, p->cq, p->nvme_entries * UINT64_C(16), &c.cq_iova);
    if (error == 0)
        error = map_doorbells(offload, p, &doorbells);
    if (error != 0)
        return error;
    c.sq_doorbell_iova = doorbells + p->sq_doorbell % K_PAGE_BYTES;
    c.cq_doorbell_iova = doorbells + p->cq_doorbell % K_PAGE_BYTES;
    memcpy(&command, &c, sizeof command);
    return rdma_drv_command(offload->rdma, &command);
}

int rdma_drv_offload_new(struct rdma_drv_qp *qp, const struct rdma_drv_offload_params *params,
                         struct rdma_drv_offload **out)
{
    if (params->nvme_entries == 0 || !lists_fit(params))
        return -EINVAL;
    struct rdma_drv_offload *offload = k_zalloc(sizeof *offload);
    offload->rdma = qp->rdma;
    qp->rdma->n_objects++;
    write_lists(qp->rdma->kernel, params);
    const int error = take_over(offload, qp, params);
    if (error != 0)
        rdma_drv_offload_free(offload);
    else
        *out = offload;
    return error;
}

void rdma_drv_offload_free(struct rdma_drv_offload *offload)
{
    struct k_device *device = &offload->rdma->pci->device;
    while (offload->n != 0) {
        const struct mapping *m = &offload->mapping[--offload->n];
        if (m->resource)
            k_dma_unmap_resource(device, m->dma, m->bytes, K_DMA_FROM_DEVICE);
        else
            k_dma_unmap(device, m->dma, m->bytes, K_DMA_BOTH);
    }
    offload->rdma->n_objects--;
    k_free(offload);
}

void rdma_drv_offload_abandon(struct rdma_drv_offload *offload)
{
    k_free(offload);
}
