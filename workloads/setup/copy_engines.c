/* The drivers of copy engines on a host. */
#include "workloads/setup/copy_engines.h"

#include "logic/dma/dsa.h"
#include "logic/dma/ioat.h"
#include "models/dsa/dsa.h"
#include "models/ioat/ioat.h"

const char *const copy_queue_names[] = { "dedicated", "shared", NULL };

struct copy_engines {
    struct lending_host *host;
    struct dma_core *core;
    struct ioat_drv *ioat;
    struct dsa_drv *dsa;
};

/* That its driver makes of it. */
static unsigned channels_of(const struct model *device, const struct copy_engines_params *params)
{
    if (device->ops == &ioat_ops)
        return ioat_channels(device);
    if (device->ops != &dsa_ops)
        return 0;
    const bool fits = params->queue == COPY_QUEUE_SHARED ||
                      params->queues <= dsa_work_queues(device);
    return fits ? params->queues : 0;
}

const char *copy_engines_expected(struct world *world, const struct lending_host *host,
                                  const struct copy_engines_params *params, unsigned n,
                                  char text[COPY_ENGINES_TEXT])
{
    unsigned have = 0;
    for (const char *const *name = world_device_names(world); *name != NULL; name++) {
        const struct model *device = world_device(world, *name);
        if (device != NULL && world_host_of(world, device) == host->host)
            have += channels_of(device, params);
    }
    if (n <= have)
        return NULL;
    snprintf(text, COPY_ENGINES_TEXT, "at most %u, the channels of copy engines of the host", have);
    return have != 0 ? text
                     : "a host with a copy engine: ioat.engine, or dsa.accelerator with as many "
                       "work queues as `queues`";
}

struct copy_engines *copy_engines_new(struct lending_host *host,
                                      const struct copy_engines_params *params, unsigned cpu)
{
    struct ioat_drv_options ioat = ioat_drv_options_default;
    struct dsa_drv_options dsa = dsa_drv_options_default;
    struct copy_engines *engines = k_zalloc(sizeof(*engines));
    ioat.ring = dsa.ring = params->ring;
    ioat.cpu = dsa.cpu = cpu;
    ioat.poll_ps = dsa.poll_ps = params->poll_ps;
    ioat.interrupt_delay_us = params->interrupt_delay_us;
    dsa.shared = params->queue == COPY_QUEUE_SHARED;
    dsa.channels = params->queues;
    dsa.batch_max = params->batch;
    engines->host = host;
    engines->core = dma_core_new(host->kernel);
    engines->ioat = ioat_drv_new(engines->core, &ioat);
    engines->dsa = dsa_drv_new(engines->core, &dsa);
    SIM_ASSERT(engines->ioat != NULL && engines->dsa != NULL, "an option is out of range");
    k_pci_register(host->kernel, ioat_drv_driver(engines->ioat));
    k_pci_register(host->kernel, dsa_drv_driver(engines->dsa));
    return engines;
}

struct dma_core *copy_engines_core(struct copy_engines *engines)
{
    return engines->core;
}

void copy_engines_free(struct copy_engines *engines)
{
    struct kernel *kernel = engines->host->kernel;
    unsigned n;
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
    k_free(engines);
}
