/*
 * What it does: probes and removes GPUs.
 */
#include <errno.h>

#include "logic/gpu/gpu_internal.h"

#define DRAIN_PS (2 * K_US)

static const struct k_pci_id gpu_ids[] = { { GPU_VENDOR_ID, GPU_DEVICE_ID_K40 },
                                           { GPU_VENDOR_ID, GPU_DEVICE_ID_P4000 },
                                           { GPU_VENDOR_ID, GPU_DEVICE_ID_P620 },
                                           { 0, 0 } };

void gpu_drv_put(struct gpu_drv *gpu)
{
    if (--gpu->holds == 0)
        k_free(gpu);
}

static void gpu_delete(struct gpu_drv *gpu)
{
    for (unsigned i = 0; i <= gpu->n_engines; i++)
        if (gpu->ring[i].gpu != NULL)
            gpu_drv_ring_off(&gpu->ring[i]);
    while (gpu->users > 0) /* they have been woken */
        k_sleep(gpu->kernel, DRAIN_PS);
    gpu->gone = gpu->removed = true; /* before time passes: nobody enters any more */
    for (unsigned i = 0; i <= gpu->n_engines; i++)
        gpu_drv_memory_free(gpu, &gpu->ring[i].memory);
    gpu_drv_memory_free(gpu, &gpu->semaphores);
    gpu_drv_extents_release(gpu);
    gpu->pci->device.driver_data = NULL;
    gpu_drv_put(gpu);
}

static int gpu_probe(struct k_pci_dev *pci, void *context)
{
    k_pci_enable(pci);
    if (pci->bar_bytes[GPU_REGISTER_BAR] < GPU_BAR_BYTES ||
        k_readl(pci, 0, GPU_REG_VERSION) != GPU_VERSION)
        return -ENODEV;
    uint32_t n_engines = k_readl(pci, 0, GPU_REG_COPY_ENGINES);
    if (n_engines == 0 || n_engines >= GPU_CHANNELS_MAX)
        return -ENODEV;
    struct gpu_drv *gpu = k_zalloc(sizeof(*gpu));
    gpu->holds = 1;
    gpu->driver = context;
    gpu->kernel = pci->device.kernel;
    gpu->pci = pci;
    gpu->n_engines = n_engines;
    gpu->memory_bytes = (uint64_t)k_readl(pci, 0, GPU_REG_MEMORY_MIB) << 20;
    gpu->address_bits = k_readl(pci, 0, GPU_REG_ADDRESS_BITS);
    k_dma_set_mask(&pci->device, gpu->address_bits);
    gpu->clock_khz = k_readl(pci, 0, GPU_REG_CLOCK_KHZ);
    gpu_drv_extents_init(gpu);
    int error = gpu_drv_memory_new(gpu, GPU_EVENTS * sizeof(struct gpu_semaphore),
                                   &gpu->semaphores);
    for (unsigned i = 0; error == 0 && i <= gpu->n_engines; i++)
        error = gpu_drv_ring_on(gpu, i);
    pci->device.driver_data = gpu;
    if (error != 0)
        gpu_delete(gpu);
    return error;
}

static void gpu_remove(struct k_pci_dev *pci, bool gone)
{
    struct gpu_drv *gpu = pci->device.driver_data;
    gpu->gone |= gone;
    gpu_delete(gpu);
}

struct gpu_driver *gpu_driver_new(struct kernel *kernel)
{
    struct gpu_driver *driver = k_zalloc(sizeof(*driver));
    driver->kernel = kernel;
    driver->pci = (struct k_pci_driver){
        .name = "gpu", .ids = gpu_ids, .probe = gpu_probe, .remove = gpu_remove, .context = driver
    };
    return driver;
}

const struct k_pci_driver *gpu_driver_pci(const struct gpu_driver *driver)
{
    return &driver->pci;
}

void gpu_driver_free(struct gpu_driver *driver)
{
    k_free(driver);
}

struct gpu_drv *gpu_of(const struct k_pci_dev *dev)
{
    return dev->driver != NULL && dev->driver->probe == gpu_probe ? dev->device.driver_data : NULL;
}

uint64_t gpu_memory_bytes(const struct gpu_drv *gpu)
{
    return gpu->memory_bytes;
}

uint64_t gpu_window_bytes(const struct gpu_drv *gpu)
{
    uint64_t bytes = gpu->pci->bar_bytes[GPU_MEMORY_BAR];
    return bytes < gpu->memory_bytes ? bytes : gpu->memory_bytes;
}

unsigned gpu_copy_engines(const struct gpu_drv *gpu)
{
    return gpu->n_engines;
}

uint32_t gpu_clock_khz(const struct gpu_drv *gpu)
{
    return gpu->clock_khz;
}
