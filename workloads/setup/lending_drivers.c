/* Drivers that every host of a group `lending` loads, for its own and for borrowed devices alike.
 * The group `network` loads those of NICs. */
#include "logic/gpu/gpu_driver.h"
#include "logic/nvme/nvme_driver.h"
#include "logic/rdma/rdma_driver.h"
#include "workloads/setup/lending.h"

static void *gpu_new(struct kernel *kernel, const struct lending_params *params)
{
    (void)params;
    return gpu_driver_new(kernel);
}
static const struct k_pci_driver *gpu_pci(void *driver)
{
    return gpu_driver_pci(driver);
}
static void gpu_free_driver(void *driver)
{
    gpu_driver_free(driver);
}
static const struct lending_driver gpu_entry = { "gpu", gpu_new, gpu_pci, gpu_free_driver };

static void *nvme_new(struct kernel *kernel, const struct lending_params *params)
{
    struct nvme_driver_params nvme = nvme_driver_params_default;
    if (!params->nvme_driver)
        return NULL;
    nvme.polled = params->nvme_polled;
    nvme.timeout_ps = params->nvme_timeout_ps;
    return nvme_driver_new(kernel, &nvme);
}
static const struct k_pci_driver *nvme_pci_driver(void *driver)
{
    return nvme_driver_pci(driver);
}
static void nvme_free_driver(void *driver)
{
    nvme_driver_free(driver);
}
static const struct lending_driver nvme_entry = { "nvme", nvme_new, nvme_pci_driver,
                                                  nvme_free_driver };

static void *rdma_new(struct kernel *kernel, const struct lending_params *params)
{
    (void)params;
    return rdma_driver_new(kernel);
}
static const struct k_pci_driver *rdma_pci_driver(void *driver)
{
    return rdma_driver_pci(driver);
}
static void rdma_free_driver(void *driver)
{
    rdma_driver_free(driver);
}
static const struct lending_driver rdma_entry = { "rdma", rdma_new, rdma_pci_driver,
                                                  rdma_free_driver };

const struct lending_driver *const lending_drivers[] = { &gpu_entry, &nvme_entry, &rdma_entry,
                                                         NULL };
