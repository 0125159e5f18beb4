/*
 * Virtual functions of NVMe controllers (SR-IOV).
 *
 * What it does: what an administrator does with nvme-cli and sriov_numvfs: gives each secondary
 *   controller an equal share of the flexible queues and vectors, enables the virtual functions,
 *   takes the controllers online (again after a reset of the primary one), and only then offers the
 *   functions to drivers.
 * Leaves out: shares of different sizes, namespaces of a controller's own.
 * Follows: NVM Express 1.3, sections 5.15.10, 5.15.11, 5.22, 8.5; Linux 5.x,
 *   drivers/nvme/host/pci.c (sriov_configure).
 * Costs: admin commands; those of k_pci_set_vfs().
 */
#include <errno.h>
#include <string.h>

#include "logic/nvme/nvme_internal.h"

#define QUEUES_MIN  2u /* to be online */
#define VECTORS_MIN 1u

static int manage(struct nvme_drv *nvme, enum nvme_virtualization action,
                  enum nvme_resource resource, uint16_t controller, uint32_t n)
{
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_VIRTUALIZATION,
                            .cdw10 = (uint32_t)action | (uint32_t)resource << 8 |
                                     (uint32_t)controller << 16,
                            .cdw11 = n };
    return nvme_drv_admin(nvme, &sqe, NULL);
}

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

/* A share of the flexible resources whose fields begin at `at`: total in 32 bits, and at most so
 * many for one controller. */
static uint32_t share(const uint8_t *at, unsigned n)
{
    const uint32_t total = get16(at) | (uint32_t)get16(at + 2) << 16;
    const uint32_t most = get16(at + NVME_ID_PRIMARY_VQFRSM - NVME_ID_PRIMARY_VQFRT);
    return total / n < most ? total / n : most;
}

/* The identifiers of the secondary controllers, by virtual function; returns how many there are. */
static int list(struct nvme_drv *nvme, uint16_t id[NVMED_VFS_MAX])
{
    uint8_t data[NVME_IDENTIFY_BYTES];
    const int error = nvme_drv_identify_data(nvme, NVME_IDENTIFY_SECONDARY, 0, data);
    unsigned n = 0;
    if (error != 0)
        return error;
    for (unsigned i = 0; i < data[NVME_ID_SECONDARY_COUNT]; i++) {
        const uint8_t *at = data + NVME_ID_SECONDARY_ENTRIES + (size_t)i * NVME_SECONDARY_BYTES;
        const unsigned vf = get16(at + NVME_SECONDARY_VFN); /* from 1 on */
        if (vf == 0 || vf > NVMED_VFS_MAX)
            continue;
        id[vf - 1] = get16(at + NVME_SECONDARY_SCID);
        n = vf > n ? vf : n;
    }
    return (int)n;
}

/* Shares all resources among the first n of n_all controllers, which are offline. */
static int assign(struct nvme_drv *nvme, const uint16_t id[], unsigned n_all, unsigned n)
{
    uint8_t data[NVME_IDENTIFY_BYTES];
    int error = nvme_drv_identify_data(nvme, NVME_IDENTIFY_PRIMARY, 0, data);
    if (error != 0)
        return error;
    const uint32_t queues = share(data + NVME_ID_PRIMARY_VQFRT, n);
    const uint32_t vectors = share(data + NVME_ID_PRIMARY_VIFRT, n);
    if (queues < QUEUES_MIN || vectors < VECTORS_MIN)
        return -ENOSPC;
    for (unsigned pass = 0; pass < 2; pass++) /* what others had before comes first */
        for (unsigned v = 0; error == 0 && v < n_all; v++) {
            const bool has = pass == 1 && v < n;
            error = manage(nvme, NVME_VIRTUAL_ASSIGN, NVME_RESOURCE_QUEUES, id[v],
                           has ? queues : 0);
            if (error == 0)
                error = manage(nvme, NVME_VIRTUAL_ASSIGN, NVME_RESOURCE_INTERRUPTS, id[v],
                               has ? vectors : 0);
        }
    return error;
}

int nvme_drv_vfs_online(struct nvme_drv *nvme)
{
    int error = 0;
    for (unsigned v = 0; error == 0 && v < nvme->n_vfs; v++)
        error = manage(nvme, NVME_VIRTUAL_ONLINE, NVME_RESOURCE_QUEUES, nvme->vf_id[v], 0);
    nvme->vfs_online = error == 0 && nvme->n_vfs != 0;
    return error;
}

bool nvme_drv_is_offline_vf(const struct k_pci_dev *pci, const struct nvme_driver *driver)
{
    const struct nvme_drv *primary;
    if (pci->pf == NULL || pci->pf->driver != nvme_driver_pci(driver))
        return false;
    primary = pci->pf->device.driver_data;
    return !primary->vfs_online;
}

void nvme_drv_vfs_disable(struct nvme_drv *nvme)
{
    if (nvme->n_vfs == 0)
        return;
    k_pci_set_vfs(nvme->pci, 0); /* which takes their controllers offline */
    nvme->n_vfs = 0;
    nvme->vfs_online = false;
}

int nvme_drv_configure_vfs(struct k_pci_dev *pci, unsigned n)
{
    struct nvme_drv *nvme = pci->device.driver_data;
    if (n == 0) {
        nvme_drv_vfs_disable(nvme);
        return 0;
    }
    if (nvme->n_vfs != 0)
        return -EBUSY;
    const int n_all = list(nvme, nvme->vf_id);
    if (n_all < 0)
        return n_all;
    if (n > (unsigned)n_all)
        return -ERANGE;
    int error = assign(nvme, nvme->vf_id, (unsigned)n_all, n);
    if (error == 0)
        error = k_pci_set_vfs(pci, n);
    if (error != 0)
        return error;
    nvme->n_vfs = n;
    error = nvme_drv_vfs_online(nvme);
    if (error != 0) {
        nvme_drv_vfs_disable(nvme);
        return error;
    }
    for (unsigned v = 0; v < n; v++)
        k_pci_offer(k_pci_vf(pci, v));
    return 0;
}
