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

int k_irq_request(struct k_pci_dev *dev, unsigned index, unsigned cpu, k_irq_fn *handler, void *arg,
                  struct k_irq **irq)
{
    struct kernel *kernel = dev->device.kernel;
    *irq = k_zalloc(sizeof **irq);
    **irq = (struct k_irq){ kernel->irqs, dev, index, cpu, handler, arg, false, 0 };
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
    free(irq);
}

/* The device's message for an entry of its MSI-X table; false if nobody asked for it. */
static inline bool fake_irq_raise(struct kernel *kernel, const struct k_pci_dev *dev,
                                  unsigned index)
{
    for (struct k_irq *irq = kernel->irqs; irq; irq = irq->next)
        if (irq->dev == dev && irq->index == index) {
            if (!irq->pending)
                irq->at_ps = kernel->now_ps + (kernel->options.stall_percent
                                                   ? fake_random(kernel, kernel->options.stall_ps)
                                                   : 0);
            irq->pending = true;
            return true;
        }
    return false;
}

#endif
