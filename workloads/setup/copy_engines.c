/* The drivers of copy engines on a host. */
#include "workloads/setup/copy_engines.h"

#include "logic/dma/dsa.h"
#include "logic/dma/ioat.h"
#include "models/dsa/dsa.h"
#include "models/ioat/ioat.h"

const char *const copy_queue_names[] = { "dedicated", "shared", NULL };
const char *const copy_engines_dsa_keys[] = { "queue", "queues", "batch", NULL };
const char *const copy_engines_keys[] = { "ring", "poll_ns", "queue", "queues", "batch", NULL };

const char *copy_engines_differ(const struct copy_engines_params *a,
                                const struct copy_engines_params *b)
{
    return a->ring != b->ring                               ? "ring"
           : a->poll_ps != b->poll_ps                       ? "poll_ns"
           : a->queue != b->queue                           ? "queue"
           : a->queues != b->queues                         ? "queues"
           : a->batch != b->batch                           ? "batch"
           : a->interrupt_delay_us != b->interrupt_delay_us ? "interrupt_delay_us"
                                                            : NULL;
}

static void add_dsa(struct copy_engines_found *found, const struct model *device,
                    const struct copy_engines_params *params)
{
    const unsigned n = dsa_work_queues(device);
    found->n_dsa++;
    if (found->dsa_queues == 0 || n < found->dsa_queues)
        found->dsa_queues = n;
    if (params->queue == COPY_QUEUE_SHARED || params->queues <= n)
        found->n_channels += params->queues;
}

/* Functions that the driver takes. */
static void add_ioat(struct copy_engines_found *found, const struct model *device)
{
    unsigned n_taken = 0;
    for (unsigned n = 0; n < ioat_functions(device); n++)
        n_taken += ioat_drv_knows(ioat_device_id(device, n));
    found->n_channels += n_taken * ioat_channels(device);
    found->n_unknown += n_taken == 0;
    found->n_ioat += n_taken != 0;
    found->delays_interrupts |= n_taken != 0 && ioat_delays_interrupts(device);
}

struct copy_engines_found copy_engines_find(struct world *world, const struct lending_host *host,
                                            const struct copy_engines_params *params)
{
    struct copy_engines_found found = { 0 };
    for (const char *const *name = world_device_names(world); *name != NULL; name++) {
        const struct model *device = world_device(world, *name);
        if (device == NULL || world_host_of(world, device) != host->host)
            continue;
        if (device->ops == &dsa_ops)
            add_dsa(&found, device, params);
        if (device->ops == &ioat_ops)
            add_ioat(&found, device);
    }
    return found;
}

static void set_up(struct copy_engines *engines)
{
    const struct copy_engines_params *params = engines->params;
    struct kernel *kernel = engines->host->kernel;
    struct ioat_drv_options ioat = ioat_drv_options_default;
    struct dsa_drv_options dsa = dsa_drv_options_default;
    ioat.ring = dsa.ring = params->ring;
    ioat.cpu = dsa.cpu = engines->cpu;
    ioat.poll_ps = dsa.poll_ps = params->poll_ps;
    ioat.interrupt_delay_us = params->interrupt_delay_us;
    dsa.shared = params->queue == COPY_QUEUE_SHARED;
    dsa.channels = params->queues;
    dsa.batch_max = params->batch;
    engines->core = dma_core_new(kernel);
    engines->ioat = ioat_drv_new(engines->core, &ioat);
    engines->dsa = dsa_drv_new(engines->core, &dsa);
    SIM_ASSERT(engines->ioat != NULL && engines->dsa != NULL, "an option is out of range");
    k_pci_register(kernel, ioat_drv_driver(engines->ioat));
    k_pci_register(kernel, dsa_drv_driver(engines->dsa));
}

struct dma_core *copy_engines_open(struct copy_engines *engines)
{
    if (!engines->opening) {
        engines->opening = true;
        set_up(engines);
        engines->ready = true;
    }
    while (!engines->ready)
        k_sleep(engines->host->kernel, SIM_PS_PER_US);
    return engines->core;
}

void copy_engines_close(struct copy_engines *engines)
{
    struct kernel *kernel = engines->host->kernel;
    unsigned n;
    if (--engines->users > 0 || !engines->ready)
        return;
    const struct pcie_found *found = host_functions(engines->host->host, &n);
    for (unsigned i = 0; i < n; i++) {
        struct k_pci_dev *dev = found[i].bridge ? NULL : os_pci_find(kernel, found[i].id);
        if (dev != NULL && (dev->driver == ioat_drv_driver(engines->ioat) ||
                            dev->driver == dsa_drv_driver(engines->dsa)))
            k_pci_remove(dev, false);
    }
    ioat_drv_free(engines->ioat);
    dsa_drv_free(engines->dsa);
    dma_core_free(engines->core);
}
