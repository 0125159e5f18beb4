/*
 * Submission queues in a controller's memory buffer.
 *
 * What it does: Finds the buffer (CMBLOC, CMBSZ) and places the submission queues for I/O there if
 *   the controller takes them: then a command crosses PCIe once, as a posted write of the CPU, and
 *   not as a read of the controller. All of these queues lie there or none; their depth is lowered
 *   until they fit, to 64 entries at least. CPUs write to it through a write-combining mapping.
 * Leaves out: buffers within the base address of the registers, completion queues, PRP lists and
 *   data in the buffer, shares of it for other devices.
 * Follows: NVM Express 1.3, sections 3.1.11, 3.1.12, 4.7; Linux 4.14, drivers/nvme/host/pci.c,
 *   nvme_map_cmb(), nvme_cmb_qdepth(), nvme_alloc_sq_cmds().
 * Costs: Two reads of registers by a controller with more base addresses than that of its
 *   registers.
 */
#include "logic/nvme/nvme_internal.h"

#define ENTRIES_MIN 64u /* with fewer, queues in memory are better */

static uint64_t queue_bytes(uint16_t entries)
{
    const uint64_t bytes = (uint64_t)entries * NVME_SQE_BYTES;
    return (bytes + NVME_PAGE_BYTES - 1) & ~(uint64_t)(NVME_PAGE_BYTES - 1);
}

void nvme_drv_cmb_find(struct nvme_drv *nvme)
{
    struct k_pci_dev *pci = nvme->pci;
    bool other = false;
    for (unsigned i = 1; i < K_PCI_BARS; i++)
        other |= pci->bar_bytes[i] != 0;
    nvme->cmb = (struct nvme_drv_cmb){ 0 };
    if (!other)
        return;
    const uint32_t size = k_readl(pci, 0, NVME_REG_CMBSZ);
    if (size == UINT32_MAX || (size & NVME_CMBSZ_SQS) == 0 || NVME_CMBSZ_BYTES(size) == 0)
        return;
    const uint32_t where = k_readl(pci, 0, NVME_REG_CMBLOC);
    const unsigned bar = where & NVME_CMBLOC_BAR_MASK;
    /* Both in units that CMBSZ tells. */
    const uint64_t offset = NVME_CMBSZ_BYTES((where & ~0xfffu) | (size & 0xfffu));
    if (bar == 0 || bar >= K_PCI_BARS || offset >= pci->bar_bytes[bar])
        return;
    const uint64_t left = pci->bar_bytes[bar] - offset, bus = k_pci_bus_address(pci, bar);
    if (bus == 0)
        return;
    nvme->cmb.cpu = pci->bar_base[bar] + offset;
    nvme->cmb.bus = bus + offset;
    nvme->cmb.bytes = NVME_CMBSZ_BYTES(size) < left ? NVME_CMBSZ_BYTES(size) : left;
}

void nvme_drv_cmb_share(struct nvme_drv *nvme, uint16_t n_queues)
{
    uint64_t entries = nvme->entries_max;
    if (nvme->cmb.bytes == 0)
        return;
    if (queue_bytes(nvme->entries_max) * n_queues > nvme->cmb.bytes) {
        const uint64_t share = nvme->cmb.bytes / n_queues;
        entries = (share & ~(uint64_t)(NVME_PAGE_BYTES - 1)) / NVME_SQE_BYTES;
        if (entries < ENTRIES_MIN) {
            nvme->cmb.bytes = 0;
            return;
        }
    }
    nvme->entries_max = (uint16_t)entries;
}

bool nvme_drv_cmb_place(struct nvme_drv_queue *queue)
{
    const struct nvme_drv_cmb *cmb = &queue->nvme->cmb;
    if (queue->number == 0 || cmb->bytes == 0)
        return false;
    const uint64_t at = (queue->number - 1u) * queue_bytes(queue->entries);
    queue->sq_cmb = cmb->cpu + at;
    queue->sq.dma = cmb->bus + at;
    return true;
}

void nvme_drv_cmb_put(const struct nvme_drv_queue *queue, uint16_t at, const struct nvme_sqe *sqe)
{
    struct k_pci_dev *pci = queue->nvme->pci;
    k_write_lines(pci, queue->sq_cmb + (uint64_t)at * NVME_SQE_BYTES, sqe, sizeof *sqe);
    k_write_drain(pci);
}
