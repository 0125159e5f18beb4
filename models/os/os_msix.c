/*
 * Message-signalled interrupts of devices.
 *
 * Models: the MSI-X table in the device's BAR, written entry by entry; a vector of the target CPU;
 *   with an IOMMU, an entry of its interrupt remapping table that no other device may use. Of a
 *   device without MSI-X: one vector of MSI, in configuration space. Delivery to one CPU (fixed,
 *   physical), or to one of up to eight that the hub chooses each time (lowest priority, logical).
 * Does not model: several vectors of MSI, wires.
 * Timing: that of the accesses to the device.
 * Sources: PCI Local Bus 3.0, 6.8.1, 6.8.2; Intel SDM 3, 10.11 (message format).
 */
#include <errno.h>
#include <stdlib.h>

#include "hw/pci_regs.h"
#include "models/os/os_pci.h"

#define MESSAGE_BASE      UINT64_C(0xfee00000)
#define MESSAGE_CPU_SHIFT 12u
#define MESSAGE_CPU_MAX   255u /* without remapping */
#define MESSAGE_LOGICAL   0xcu /* destination mode logical, redirection hint */
#define MESSAGE_LOWEST    0x100u
#define MESSAGE_CPUS_MAX  8u            /* of the flat logical model */
#define MOVED_PS          SIM_PS_PER_MS /* messages are under way for less than that */

/* ---- Messages -------------------------------------------------------------------------------- */

static int message_new(struct k_irq *irq, unsigned cpu, struct os_message *message)
{
    struct k_pci_dev *dev = irq->slot->dev;
    struct kernel *kernel = dev->device.kernel;
    struct iommu_driver *iommu = os_iommu_of(kernel, dev->id);
    uint32_t destination;
    *message = (struct os_message){ .cpu = cpu, .irte = -1 };
    if (!os_vector_alloc(kernel, cpu, irq->handler, irq->arg, &destination, &message->vector))
        return -ENOSPC;
    if (iommu == NULL && destination <= MESSAGE_CPU_MAX) {
        message->address = MESSAGE_BASE | (uint64_t)destination << MESSAGE_CPU_SHIFT;
        message->data = message->vector;
        return 0;
    }
    if (iommu != NULL)
        message->irte = iommu_irte_new(iommu, dev->id, destination, message->vector,
                                       &message->address, &message->data);
    if (message->irte >= 0)
        return 0;
    os_vector_free(kernel, cpu, message->vector);
    return iommu == NULL ? -ENOSPC : message->irte;
}

static int message_new_any(struct k_irq *irq, unsigned cpus, struct os_message *message)
{
    struct kernel *kernel = irq->slot->dev->device.kernel;
    *message = (struct os_message){ .cpus = (uint8_t)cpus, .irte = -1 };
    if (!os_vector_alloc_all(kernel, cpus, irq->handler, irq->arg, &message->vector))
        return -ENOSPC;
    message->address = MESSAGE_BASE | (uint64_t)cpus << MESSAGE_CPU_SHIFT | MESSAGE_LOGICAL;
    message->data = MESSAGE_LOWEST | message->vector;
    return 0;
}

/* True: an interrupt of it was pending. */
static bool message_free(struct k_irq *irq, struct os_message *message)
{
    struct k_pci_dev *dev = irq->slot->dev;
    bool pending = false;
    if (message->vector == 0)
        return false;
    for (unsigned cpus = message->cpus; cpus != 0; cpus &= cpus - 1)
        pending |= os_vector_free(dev->device.kernel, (unsigned)__builtin_ctz(cpus),
                                  message->vector);
    if (message->cpus == 0)
        pending = os_vector_free(dev->device.kernel, message->cpu, message->vector);
    if (message->irte >= 0)
        iommu_irte_free(os_iommu_of(dev->device.kernel, dev->id), message->irte);
    message->vector = 0;
    return pending;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* Finds the capability and the table. Time passes, in which another thread may do the same. */
static void find_table(struct os_slot *slot)
{
    struct k_pci_dev *dev = slot->dev;
    uint32_t header;
    unsigned cap = k_pci_find_capability(dev, PCI_CAP_ID_MSIX, &header);
    if (cap == 0) {
        slot->msi_cap = (uint16_t)k_pci_find_capability(dev, PCI_CAP_ID_MSI, &header);
        slot->msix_vectors = slot->msi_cap != 0;
        return;
    }
    uint32_t table = k_config_read(dev, cap + PCI_MSIX_TABLE, 4);
    if (table == UINT32_MAX) /* it has gone since */
        return;
    slot->msix_vectors = (uint16_t)((header >> 16 & PCI_MSIX_CONTROL_SIZE_MASK) + 1);
    slot->msix_bar = table & PCI_MSIX_BAR_MASK;
    slot->msix_offset = table & ~PCI_MSIX_BAR_MASK;
    slot->msix_cap = (uint16_t)cap;
}

static uint64_t entry_of(const struct k_irq *irq)
{
    return irq->slot->msix_offset + (uint64_t)irq->index * PCI_MSIX_ENTRY_BYTES;
}

static void entry_mask(const struct k_irq *irq, bool masked)
{
    const struct os_slot *slot = irq->slot;
    if (slot->msi_cap != 0)
        k_config_write(slot->dev, slot->msi_cap + PCI_MSI_MASK, 4, masked);
    else
        k_writel(irq->slot->dev, irq->slot->msix_bar, entry_of(irq) + PCI_MSIX_ENTRY_CONTROL,
                 masked ? PCI_MSIX_ENTRY_MASKED : 0);
}

static void entry_write(const struct k_irq *irq)
{
    struct k_pci_dev *dev = irq->slot->dev;
    unsigned bar = irq->slot->msix_bar, cap = irq->slot->msi_cap;
    uint64_t entry = entry_of(irq);
    if (cap != 0) {
        k_config_write(dev, cap + PCI_MSI_ADDRESS, 4, (uint32_t)irq->now.address);
        k_config_write(dev, cap + PCI_MSI_ADDRESS_UPPER, 4, (uint32_t)(irq->now.address >> 32));
        k_config_write(dev, cap + PCI_MSI_DATA, 2, irq->now.data);
        return;
    }
    k_writel(dev, bar, entry + PCI_MSIX_ENTRY_ADDRESS, (uint32_t)irq->now.address);
    k_writel(dev, bar, entry + PCI_MSIX_ENTRY_ADDRESS + 4, (uint32_t)(irq->now.address >> 32));
    k_writel(dev, bar, entry + PCI_MSIX_ENTRY_DATA, irq->now.data);
}

static void enable(struct os_slot *slot, bool enabled)
{
    const bool msi = slot->msi_cap != 0;
    unsigned at = msi ? slot->msi_cap + PCI_MSI_CONTROL : slot->msix_cap + PCI_MSIX_CONTROL;
    uint32_t control = k_config_read(slot->dev, at, 2);
    if (msi) {
        control &= ~(PCI_MSI_CONTROL_ENABLE | PCI_MSI_CONTROL_ENABLED_MASK);
        k_config_write(slot->dev, at, 2, control | (enabled ? PCI_MSI_CONTROL_ENABLE : 0));
        return;
    }
    control &= ~(PCI_MSIX_CONTROL_ENABLE | PCI_MSIX_CONTROL_FUNCTION_MASK);
    k_config_write(slot->dev, at, 2, control | (enabled ? PCI_MSIX_CONTROL_ENABLE : 0));
}

/* ---- kapi ------------------------------------------------------------------------------------ */

static bool is_free(const struct os_slot *slot, unsigned index)
{
    for (const struct k_irq *irq = slot->irqs; irq != NULL; irq = irq->next)
        if (irq->index == index)
            return false;
    return true;
}

int k_irq_request(struct k_pci_dev *dev, unsigned index, unsigned cpu, k_irq_fn *handler, void *arg,
                  struct k_irq **result)
{
    struct os_slot *slot = dev->private_data;
    if (!slot->msix_known)
        find_table(slot);
    slot->msix_known = true;
    if (index >= slot->msix_vectors)
        return -ENOSPC;
    if (!is_free(slot, index))
        return -EBUSY;
    struct k_irq *irq = k_zalloc(sizeof(*irq));
    *irq = (struct k_irq){ .slot = slot, .index = index, .handler = handler, .arg = arg };
    int status = message_new(irq, cpu, &irq->now);
    if (status != 0) {
        k_free(irq);
        return status;
    }
    bool first = slot->irqs == NULL;
    irq->next = slot->irqs;
    slot->irqs = irq;
    entry_mask(irq, true);
    entry_write(irq);
    entry_mask(irq, false);
    if (first)
        enable(slot, true);
    *result = irq;
    return 0;
}

/* Returns behind every message that was under way: the answer comes after them. So did that to a
 * configuration write. */
static void entry_flush(const struct k_irq *irq)
{
    if (irq->slot->msi_cap == 0)
        k_readl(irq->slot->dev, irq->slot->msix_bar, entry_of(irq) + PCI_MSIX_ENTRY_CONTROL);
}

/* Directs the interrupt to where `then` says. */
static void redirect(struct k_irq *irq, const struct os_message *then)
{
    struct kernel *kernel = irq->slot->dev->device.kernel;
    const uint64_t now_ps = k_now_ps(kernel);
    /* What was sent to the CPU before the last has long been handled, unless it moves again at
     * once; to the last, maybe not. */
    if (irq->before.vector != 0 && now_ps - irq->moved_ps < MOVED_PS)
        entry_flush(irq);
    const bool again = message_free(irq, &irq->before);
    irq->before = irq->now;
    irq->now = *then;
    entry_mask(irq, true);
    entry_write(irq);
    entry_mask(irq, false);
    irq->moved_ps = k_now_ps(kernel);
    if (again) {
        sim_task_sync(os_self(kernel)->task);
        os_interrupt_arrived(kernel,
                             then->cpus != 0 ? (unsigned)__builtin_ctz(then->cpus) : then->cpu,
                             then->vector);
    }
}

int k_irq_set_cpu(struct k_irq *irq, unsigned cpu)
{
    struct os_message then;
    if (irq->now.cpus == 0 && cpu == irq->now.cpu)
        return 0;
    int status = message_new(irq, cpu, &then);
    if (status == 0)
        redirect(irq, &then);
    return status;
}

int k_irq_set_any_cpu(struct k_irq *irq, uint64_t cpus)
{
    const struct k_pci_dev *dev = irq->slot->dev;
    struct kernel *kernel = dev->device.kernel;
    struct os_message then;
    if (kernel->guest != NULL || os_iommu_of(kernel, dev->id) != NULL)
        return -EOPNOTSUPP;
    if (cpus == 0 || cpus >> SIM_MIN(kernel->n_cpus, MESSAGE_CPUS_MAX) != 0)
        return -EINVAL;
    if (cpus == irq->now.cpus)
        return 0;
    int status = message_new_any(irq, (unsigned)cpus, &then);
    if (status == 0)
        redirect(irq, &then);
    return status;
}

void k_irq_free(struct k_irq *irq)
{
    struct os_slot *slot = irq->slot;
    K_LIST_REMOVE(slot->irqs, irq);
    if (!slot->gone) { /* else each read would wait for a completion timeout */
        entry_mask(irq, true);
        entry_flush(irq);
    }
    message_free(irq, &irq->before);
    message_free(irq, &irq->now);
    if (slot->irqs == NULL && !slot->gone)
        enable(slot, false);
    k_free(irq);
}

void os_irqs_free(struct os_slot *slot)
{
    while (slot->irqs != NULL) {
        struct k_irq *irq = slot->irqs;
        slot->irqs = irq->next;
        message_free(irq, &irq->before);
        message_free(irq, &irq->now);
        k_free(irq);
    }
}
