/*
 * The part of the fake of logic/kapi.h that is devices: DMA at identical addresses, PCI functions
 * that a test supplies, their interrupts. Included by tests/model/fake_kapi.h.
 */
#ifndef TESTS_MODEL_FAKE_KAPI_DEVICES_H
#define TESTS_MODEL_FAKE_KAPI_DEVICES_H

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
static const struct k_dma_ops fake_dma_ops = { fake_dma_map, fake_dma_unmap, fake_dma_alloc,
                                               fake_dma_free };

/* A device that is no PCI function, or the part of one that is. */
static inline void fake_device_init(struct kernel *kernel, struct k_device *device, int node,
                                    const char *name)
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
    unsigned cap = k_config_read(dev, 0x34, 1);
    while (cap && cap != 0xff && k_config_read(dev, cap, 1) != 0x11)
        cap = k_config_read(dev, cap + 1, 1);
    uint32_t table = cap && cap != 0xff ? k_config_read(dev, cap + 4, 4) : 0;
    if (!cap || cap == 0xff)
        return true;
    if (irq->index > (k_config_read(dev, cap + 2, 2) & 0x7ff))
        return false;
    uint64_t entry = (table & ~7u) + 16 * (uint64_t)irq->index;
    k_writel(dev, table & 7, entry + 12, 1);
    if (!masked) {
        k_writel(dev, table & 7, entry, 0xfee00000 | irq->cpu << 12);
        k_writel(dev, table & 7, entry + 4, 0);
        k_writel(dev, table & 7, entry + 8, irq->vector);
        k_writel(dev, table & 7, entry + 12, 0);
        k_config_write(dev, cap + 2, 2, 0x8000);
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
void k_irq_free(struct k_irq *irq)
{
    struct k_irq **link = &irq->dev->device.kernel->irqs;
    while (*link != irq)
        link = &(*link)->next;
    *link = irq->next;
    if (irq->dev->device.kernel->options.msix)
        fake_msix_write(irq, true);
    free(irq);
}

static void fake_irq_pend(struct kernel *kernel, struct k_irq *irq)
{
    if (!irq->pending)
        irq->at_ps = kernel->now_ps + (kernel->options.stall_percent
                                           ? fake_random(kernel, kernel->options.stall_ps)
                                           : 0);
    irq->pending = true;
}

/* A message to 0xfeexxxxx; false if nobody asked for it. */
static inline bool fake_message(struct kernel *kernel, uint64_t address, uint32_t data)
{
    for (struct k_irq *irq = kernel->irqs; irq; irq = irq->next)
        if (irq->vector == data && irq->cpu == (address >> 12 & 0xff)) {
            fake_irq_pend(kernel, irq);
            return true;
        }
    return false;
}

/* The device's message for an entry of its MSI-X table; false if nobody asked for it. */
static inline bool fake_irq_raise(struct kernel *kernel, const struct k_pci_dev *dev,
                                  unsigned index)
{
    for (struct k_irq *irq = kernel->irqs; irq; irq = irq->next)
        if (irq->dev == dev && irq->index == index) {
            fake_irq_pend(kernel, irq);
            return true;
        }
    return false;
}

#endif
