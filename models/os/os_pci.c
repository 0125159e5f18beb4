/*
 * PCI functions and their drivers; registers.
 *
 * Models: what enumeration found, offered to drivers as they register; functions that appear or go
 *   while the kernel runs; configuration and MMIO by the root complexes.
 * Does not model: drivers that leave, power management.
 * Timing: a read of a register holds the CPU for the round trip; a write for mmio_write_cycles (it
 *   goes on by itself); a configuration access for its round trip. Each waits until the CPU's last
 *   write is with the root port, and so does what drains the store buffer (os_drain()). Through a
 *   write-combining mapping a line takes 8 stores, and a line-fill buffer until it is with the root
 *   port. Interrupts that came in meanwhile are taken afterwards.
 * Sources: docs/sources.md#a4.
 */
#include "models/os/os_pci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Registers ------------------------------------------------------------------------------- */

static struct root_complex_host *root_complexes(struct k_pci_dev *dev)
{
    return host_root_complexes(dev->device.kernel->host);
}

static uint32_t local_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    struct k_thread *self = os_self(dev->device.kernel);
    os_registers_written(self);
    uint32_t value = root_complex_config_read(root_complexes(dev), self->on->socket, self->task,
                                              dev->id, offset, bytes);
    os_interrupts_of(self);
    return value;
}

static void local_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes,
                               uint32_t value)
{
    struct k_thread *self = os_self(dev->device.kernel);
    os_registers_written(self);
    root_complex_config_write(root_complexes(dev), self->on->socket, self->task, dev->id, offset,
                              bytes, value);
    os_interrupts_of(self);
}

uint64_t os_mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    struct k_thread *self = os_self(dev->device.kernel);
    os_registers_written(self);
    uint64_t value = root_complex_mmio_read(root_complexes(dev), self->on->socket, self->task,
                                            (struct hpa){ address }, bytes, NULL);
    os_interrupts_of(self);
    return value;
}

void os_mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value)
{
    struct kernel *kernel = dev->device.kernel;
    struct k_thread *self = os_self(kernel);
    os_registers_written(self);
    const sim_time go_on_ps = sim_task_now(self->task) +
                              kernel->params.costs.mmio_write_cycles * kernel->cycle_ps;
    self->on->mmio_done_ps = root_complex_mmio_write(
        root_complexes(dev), self->on->socket, self->task, (struct hpa){ address }, bytes, value);
    sim_task_charge_until(self->task, go_on_ps);
    os_interrupts_of(self);
}

/* A line takes as many cycles as its stores of 8 bytes, and a buffer until the root port has it.
 * The line-fill buffers are the core's write-combining buffers (Intel's optimization manual,
 * 3.6.10). */
static void local_mmio_write_lines(struct k_pci_dev *dev, uint64_t address, const void *from,
                                   size_t bytes)
{
    struct kernel *kernel = dev->device.kernel;
    struct k_thread *self = os_self(kernel);
    struct core *core = os_core(kernel);
    const uint8_t *at = from;
    SIM_ASSERT(address % LINE_BYTES == 0 && bytes % LINE_BYTES == 0, "%#llx, %zu bytes",
               (unsigned long long)address, bytes);
    os_registers_written(self);
    for (size_t i = 0; i < bytes; i += LINE_BYTES) {
        const unsigned buffer = core_combining_buffer(core, self->task);
        core_compute(core, self->task,
                     (uint64_t)core->params->issue_cycles * (LINE_BYTES / sizeof(uint64_t)));
        core_combining_held(core, buffer,
                            root_complex_mmio_write_line(root_complexes(dev), self->on->socket,
                                                         self->task, (struct hpa){ address + i },
                                                         LINE_BYTES, at + i));
        os_interrupts_of(self);
    }
}

/* ENQCMDS does not wait for the stores before it (Intel SDM 2, ENQCMDS): nor is the CPU's last
 * posted write waited for. */
static bool local_mmio_enqueue(struct k_pci_dev *dev, uint64_t address, const void *line)
{
    const struct k_thread *self = os_self(dev->device.kernel);
    SIM_ASSERT(address % LINE_BYTES == 0, "%#llx", (unsigned long long)address);
    const bool taken = root_complex_mmio_enqueue(root_complexes(dev), self->on->socket, self->task,
                                                 (struct hpa){ address }, line);
    os_interrupts_of(os_self(dev->device.kernel));
    return taken;
}

static void local_mmio_drain(struct k_pci_dev *dev)
{
    struct k_thread *self = os_self(dev->device.kernel);
    core_drain(os_core(dev->device.kernel), self->task);
    os_registers_written(self);
}

static const struct k_pci_ops local_ops = {
    .mmio_write_lines = local_mmio_write_lines,
    .mmio_drain = local_mmio_drain,
    .mmio_enqueue = local_mmio_enqueue,
    .config_read = local_config_read,
    .config_write = local_config_write,
    .mmio_read = os_mmio_read,
    .mmio_write = os_mmio_write,
};

/* ---- Functions ------------------------------------------------------------------------------- */

struct iommu_driver *os_iommu_of(struct kernel *kernel, uint16_t requester_id)
{
    return kernel->guest != NULL ? NULL : host_iommu_driver(kernel->host, requester_id);
}

void os_function_init(struct kernel *kernel, struct os_function *function,
                      const struct pcie_found *found)
{
    unsigned socket = host_socket_of(kernel->host, found->id);
    struct k_pci_dev *dev = &function->dev;
    snprintf(function->name, sizeof(function->name), "%.32s.%02x:%02x.%x", host_name(kernel->host),
             (unsigned)found->id >> 8, (unsigned)found->id >> 3 & 31, (unsigned)found->id & 7);
    function->dma = (struct os_dma){ .requester_id = found->id,
                                     .next_low = OS_IOVA_LOW,
                                     .next_high = OS_IOVA_HIGH };
    *dev = (struct k_pci_dev){
        .device = { .kernel = kernel,
                    .name = function->name,
                    .node = (int)SIM_MIN(socket, kernel->n_nodes - 1),
                    .dma_ops = os_iommu_of(kernel, found->id) != NULL ? &os_dma_iommu_ops
                                                                      : &os_dma_ops,
                    .dma_context = &function->dma },
        .id = found->id,
        .vendor_id = found->vendor_id,
        .device_id = found->device_id,
        .class_code = found->class_code,
        .ops = &local_ops,
    };
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        dev->bar_base[i] = found->bar_base[i];
        dev->bar_bytes[i] = found->bar_bytes[i];
    }
}

static struct os_slot *slot_new(struct os_pci *pci, struct k_pci_dev *dev)
{
    struct os_slot **link = &pci->slots;
    struct os_slot *slot = k_zalloc(sizeof(*slot));
    while (*link != NULL)
        link = &(*link)->next;
    slot->dev = dev;
    dev->private_data = slot;
    *link = slot;
    return slot;
}

void os_pci_new(struct kernel *kernel)
{
    struct os_pci *pci = k_zalloc(sizeof(*pci));
    unsigned n;
    const struct pcie_found *found = host_functions(kernel->host, &n);
    if (kernel->guest != NULL) /* what it has comes from vm.c */
        n = 0;
    pci->functions = k_zalloc(SIM_MAX(n, 1u) * sizeof(pci->functions[0]));
    kernel->pci = pci;
    for (unsigned i = 0; i < n; i++)
        if (!found[i].bridge) {
            struct os_function *function = &pci->functions[pci->n_functions++];
            os_function_init(kernel, function, &found[i]);
            slot_new(pci, &function->dev);
        }
}

void os_pci_free(struct kernel *kernel)
{
    struct os_pci *pci = kernel->pci;
    while (pci->slots != NULL) {
        struct os_slot *slot = pci->slots;
        pci->slots = slot->next;
        os_irqs_free(slot);
        free(slot);
    }
    for (unsigned i = 0; i < pci->n_functions; i++) {
        os_vfs_free(&pci->functions[i]);
        os_dma_release(&pci->functions[i].dma);
    }
    os_lazy_free(kernel);
    os_domains_free(pci);
    os_resources_free(pci);
    free(pci->functions);
    free(pci->drivers);
    free(pci);
}

struct k_pci_dev *os_pci_find(struct kernel *kernel, uint16_t id)
{
    for (unsigned i = 0; i < kernel->pci->n_functions; i++) {
        struct os_function *function = &kernel->pci->functions[i];
        if (function->dev.id == id)
            return &function->dev;
        for (struct os_function *vf = function->vfs; vf != NULL; vf = vf->next_vf)
            if (vf->dev.id == id)
                return &vf->dev;
    }
    return NULL;
}

/* ---- Drivers --------------------------------------------------------------------------------- */

/* The driver takes it; false: not its kind, or it failed. */
static bool offer(struct k_pci_dev *dev, const struct k_pci_driver *driver)
{
    const struct k_pci_id *id = driver->ids;
    while ((id->vendor_id != 0 || id->device_id != 0) &&
           (id->vendor_id != dev->vendor_id || id->device_id != dev->device_id))
        id++;
    if (id->vendor_id == 0 && id->device_id == 0)
        return false;
    dev->driver = driver;
    int status = driver->probe(dev, driver->context);
    if (status == 0)
        return true;
    dev->driver = NULL;
    if (status != -ENODEV) /* it is not the driver's after all */
        k_warn(dev->device.kernel, "%s: its driver failed with %d", dev->device.name, status);
    return false;
}

bool k_pci_offer(struct k_pci_dev *dev)
{
    const struct os_pci *pci = dev->device.kernel->pci;
    for (unsigned i = 0; i < pci->n_drivers && dev->driver == NULL; i++)
        offer(dev, pci->drivers[i]);
    return dev->driver != NULL;
}

int k_pci_register(struct kernel *kernel, const struct k_pci_driver *driver)
{
    struct os_pci *pci = kernel->pci;
    int n = 0;
    pci->drivers = sim_grow(pci->drivers, pci->n_drivers + 1, sizeof(pci->drivers[0]));
    pci->drivers[pci->n_drivers++] = driver;
    for (struct os_slot *slot = pci->slots; slot != NULL; slot = slot->next)
        if (slot->dev->driver == NULL && offer(slot->dev, driver))
            n++;
    return n;
}

int k_pci_add(struct kernel *kernel, struct k_pci_dev *dev)
{
    struct os_pci *pci = kernel->pci;
    for (const struct os_slot *slot = pci->slots; slot != NULL; slot = slot->next)
        if (slot->dev == dev)
            return -EEXIST;
    dev->device.kernel = kernel;
    dev->driver = NULL;
    slot_new(pci, dev);
    k_pci_offer(dev);
    return 0;
}

void k_pci_remove(struct k_pci_dev *dev, bool gone)
{
    struct os_slot *slot = dev->private_data;
    slot->gone = gone;
    while (dev->configuring)
        k_wait(dev->device.kernel, &dev->configured, UINT64_MAX);
    dev->configuring = true;
    if (dev->driver != NULL)
        dev->driver->remove(dev, gone);
    dev->driver = NULL;
    dev->configuring = false;
    k_wake(dev->device.kernel, &dev->configured);
    os_resources_end(&dev->device);
    if (slot->irqs != NULL)
        k_warn(dev->device.kernel, "%s: its driver left interrupts behind", dev->device.name);
    os_irqs_free(slot);
    K_LIST_REMOVE(dev->device.kernel->pci->slots, slot);
    free(slot);
    dev->private_data = NULL;
}
