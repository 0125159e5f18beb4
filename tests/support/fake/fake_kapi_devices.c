/*
 * The part of the fake of logic/kapi.h that is devices: DMA at identical addresses, PCI functions
 * that a test supplies, their interrupts.
 */
#include "tests/support/fake/fake_kapi.h"

static int fake_dma_map(struct k_device *device, struct kaddr at, size_t bytes,
                        enum k_dma_direction direction, uint64_t *dma)
{
    struct kernel *kernel = device->kernel;
    (void)direction;
    fake_bytes(kernel, at, NULL, NULL, bytes);
    k_compute(kernel, kernel->costs.dma_map_cycles);
    if (fake_fails(&kernel->n_maps, kernel->options.fail_map_every))
        return -ENOMEM;
    kernel->maps_live++;
    *dma = at.v;
    return 0;
}
static void fake_dma_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                           enum k_dma_direction direction)
{
    struct kernel *kernel = device->kernel;
    (void)direction;
    fake_bytes(kernel, (struct kaddr){ dma }, NULL, NULL, bytes); /* not freed while mapped */
    FAKE_CHECK(kernel, kernel->maps_live > 0);
    kernel->maps_live--;
    k_compute(kernel, kernel->costs.dma_unmap_cycles);
}
static int fake_dma_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                          uint64_t *dma)
{
    struct kernel *kernel = device->kernel;
    if (fake_fails(&kernel->n_page_allocs, kernel->options.fail_page_every))
        return -ENOMEM;
    *at = k_alloc(kernel, node, bytes, K_PAGE_BYTES);
    *dma = at->v;
    kernel->dma_live++;
    return 0;
}
static void fake_dma_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    struct kernel *kernel = device->kernel;
    FAKE_CHECK(kernel, dma == at.v && kernel->dma_live > 0);
    kernel->dma_live--;
    fake_unmap_pages(kernel, at.v, bytes ? (bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES : 1);
}
static int fake_dma_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                                 uint64_t offset, uint64_t bytes, enum k_dma_direction direction,
                                 uint64_t *dma)
{
    const struct k_pci_dev *pci = K_CONTAINER(target, struct k_pci_dev, device);
    const uint16_t requester = K_CONTAINER(device, struct k_pci_dev, device)->id;
    const uint64_t all = bar < K_PCI_BARS ? pci->bar_bytes[bar] : 0;
    (void)direction;
    k_compute(device->kernel, device->kernel->costs.dma_map_cycles);
    if (target == device || bytes == 0 || offset >= all || bytes > all - offset)
        return -EINVAL;
    int error = target->dma_ops->allow ? target->dma_ops->allow(target, requester) : 0;
    if (error)
        return error;
    struct fake_resource *made = k_zalloc(sizeof *made);
    *dma = pci->bar_base[bar] + offset;
    *made =
        (struct fake_resource){ device->kernel->resources, device, target, requester, *dma, bytes };
    device->kernel->resources = made;
    return 0;
}
static void fake_resource_drop(struct fake_resource **link)
{
    struct fake_resource resource = **link;
    free(*link);
    *link = resource.next;
    if (resource.target && resource.target->dma_ops->revoke)
        resource.target->dma_ops->revoke(resource.target, resource.requester);
}
static void fake_dma_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                    enum k_dma_direction direction)
{
    struct fake_resource **link = &device->kernel->resources;
    (void)direction;
    while (*link && ((*link)->device != device || (*link)->dma != dma || (*link)->bytes != bytes))
        link = &(*link)->next;
    FAKE_CHECK(device->kernel, *link);
    fake_resource_drop(link);
    k_compute(device->kernel, device->kernel->costs.dma_unmap_cycles);
}
/* A device goes that others reach: each has still to undo its mapping. */
static void fake_resources_end(struct k_device *target)
{
    struct fake_resource *resource = target->kernel->resources;
    while (resource) {
        FAKE_CHECK(target->kernel, resource->device != target);
        if (resource->target != target) {
            resource = resource->next;
            continue;
        }
        resource->target = NULL;
        if (target->dma_ops->revoke)
            target->dma_ops->revoke(target, resource->requester);
        resource = target->kernel->resources; /* time has passed */
    }
}
void fake_resources_free(struct kernel *kernel)
{
    for (struct fake_resource *next, *resource = kernel->resources; resource; resource = next) {
        next = resource->next;
        free(resource);
    }
}
static const struct k_dma_ops fake_dma_ops = { .map = fake_dma_map,
                                               .unmap = fake_dma_unmap,
                                               .alloc = fake_dma_alloc,
                                               .free = fake_dma_free,
                                               .map_resource = fake_dma_map_resource,
                                               .unmap_resource = fake_dma_unmap_resource };

void fake_device_init(struct kernel *kernel, struct k_device *device, int node, const char *name)
{
    *device =
        (struct k_device){ .kernel = kernel, .name = name, .node = node, .dma_ops = &fake_dma_ops };
}

static int fake_pci_probe(struct kernel *kernel, struct k_pci_dev *dev)
{
    for (unsigned i = 0; i < kernel->n_pci_drivers && !dev->driver; i++)
        for (const struct k_pci_id *id = kernel->pci_driver[i]->ids; id->vendor_id; id++)
            if (id->vendor_id == dev->vendor_id && id->device_id == dev->device_id) {
                dev->driver = kernel->pci_driver[i];
                int error = dev->driver->probe(dev, dev->driver->context);
                if (error)
                    dev->driver = NULL;
                if (error == -ENODEV) /* not its device after all: the next driver */
                    break;
                return error;
            }
    return 0;
}

/* The test has set ids, BARs, ops, device.node and device.name. */
int k_pci_add(struct kernel *kernel, struct k_pci_dev *dev)
{
    FAKE_CHECK(kernel, kernel->n_pci < sizeof kernel->pci / sizeof kernel->pci[0]);
    dev->device.kernel = kernel;
    if (!dev->device.dma_ops)
        dev->device.dma_ops = &fake_dma_ops;
    kernel->pci[kernel->n_pci++] = dev;
    return fake_pci_probe(kernel, dev);
}

void k_pci_remove(struct k_pci_dev *dev, bool gone)
{
    struct kernel *kernel = dev->device.kernel;
    if (dev->driver)
        dev->driver->remove(dev, gone);
    dev->driver = NULL;
    fake_resources_end(&dev->device);
    for (unsigned i = 0; i < kernel->n_pci; i++)
        if (kernel->pci[i] == dev) {
            kernel->pci[i] = kernel->pci[--kernel->n_pci];
            return;
        }
}

/* No device here has virtual functions. */
int k_pci_set_vfs(struct k_pci_dev *dev, unsigned n)
{
    (void)dev;
    return n == 0 ? 0 : -ENOSYS;
}

struct k_pci_dev *k_pci_vf(struct k_pci_dev *dev, unsigned v)
{
    (void)dev;
    (void)v;
    return NULL;
}

bool k_pci_offer(struct k_pci_dev *dev)
{
    if (!dev->driver)
        fake_pci_probe(dev->device.kernel, dev);
    return dev->driver != NULL;
}

int k_pci_register(struct kernel *kernel, const struct k_pci_driver *driver)
{
    int n = 0;
    kernel->pci_driver[kernel->n_pci_drivers++] = driver;
    for (unsigned i = 0; i < kernel->n_pci; i++)
        if (!kernel->pci[i]->driver) {
            fake_pci_probe(kernel, kernel->pci[i]);
            n += kernel->pci[i]->driver == driver;
        }
    return n;
}

/* The MSI-X table of a device, by its capability, as a kernel writes it; false: it is too small. A
 * device without the capability is left alone: fake_irq_raise() is for it. */
static bool fake_msix_write(struct k_irq *irq, bool masked)
{
    struct k_pci_dev *dev = irq->dev;
    uint32_t header;
    unsigned cap = k_pci_find_capability(dev, PCI_CAP_ID_MSIX, &header);
    if (!cap)
        return true;
    if (irq->index > (header >> 16 & PCI_MSIX_CONTROL_SIZE_MASK))
        return false;
    uint32_t table = k_config_read(dev, cap + PCI_MSIX_TABLE, 4);
    unsigned bar = table & PCI_MSIX_BAR_MASK;
    if (bar >= K_PCI_BARS) /* all ones: the device is gone, as its driver will learn */
        return true;
    uint64_t entry = (table & ~PCI_MSIX_BAR_MASK) + PCI_MSIX_ENTRY_BYTES * (uint64_t)irq->index;
    k_writel(dev, bar, entry + PCI_MSIX_ENTRY_CONTROL, PCI_MSIX_ENTRY_MASKED);
    if (!masked) {
        k_writel(dev, bar, entry + PCI_MSIX_ENTRY_ADDRESS, 0xfee00000 | irq->cpu << 12);
        k_writel(dev, bar, entry + PCI_MSIX_ENTRY_ADDRESS + 4, 0);
        k_writel(dev, bar, entry + PCI_MSIX_ENTRY_DATA, irq->vector);
        k_writel(dev, bar, entry + PCI_MSIX_ENTRY_CONTROL, 0);
        k_config_write(dev, cap + PCI_MSIX_CONTROL, 2, PCI_MSIX_CONTROL_ENABLE);
    }
    return true;
}

int k_irq_request(struct k_pci_dev *dev, unsigned index, unsigned cpu, k_irq_fn *handler, void *arg,
                  struct k_irq **irq)
{
    struct kernel *kernel = dev->device.kernel;
    *irq = k_zalloc(sizeof **irq);
    **irq = (struct k_irq){ .next = kernel->irqs,
                            .dev = dev,
                            .index = index,
                            .cpu = cpu,
                            .vector = ++kernel->n_vectors,
                            .handler = handler,
                            .arg = arg };
    if (kernel->options.msix && !fake_msix_write(*irq, false)) {
        free(*irq);
        return -ENOSPC;
    }
    (*irq)->next = kernel->irqs; /* others may have come meanwhile */
    kernel->irqs = *irq;
    return 0;
}
int k_irq_set_cpu(struct k_irq *irq, unsigned cpu)
{
    irq->cpu = cpu;
    return 0;
}
int k_irq_set_any_cpu(struct k_irq *irq, uint64_t cpus)
{
    return cpus == 0 ? -EINVAL : k_irq_set_cpu(irq, (unsigned)__builtin_ctzll(cpus));
}
void k_irq_free(struct k_irq *irq)
{
    struct k_irq **link = &irq->dev->device.kernel->irqs;
    while (*link != irq)
        link = &(*link)->next;
    *link = irq->next;
    irq->dev->device.kernel->irqs_pending -= irq->pending;
    if (irq->dev->device.kernel->options.msix)
        fake_msix_write(irq, true);
    free(irq);
}

static void fake_irq_pend(struct kernel *kernel, struct k_irq *irq)
{
    if (irq->pending)
        return;
    irq->at_ps = kernel->now_ps + (kernel->options.stall_percent
                                       ? fake_random(kernel, kernel->options.stall_ps)
                                       : 0);
    irq->pending = true;
    kernel->irqs_pending++;
}

bool fake_message(struct kernel *kernel, uint64_t address, uint32_t data)
{
    for (struct k_irq *irq = kernel->irqs; irq; irq = irq->next)
        if (irq->vector == data && irq->cpu == (address >> 12 & 0xff)) {
            fake_irq_pend(kernel, irq);
            return true;
        }
    return false;
}

bool fake_irq_raise(struct kernel *kernel, const struct k_pci_dev *dev, unsigned index)
{
    for (struct k_irq *irq = kernel->irqs; irq; irq = irq->next)
        if (irq->dev == dev && irq->index == index) {
            fake_irq_pend(kernel, irq);
            return true;
        }
    return false;
}
