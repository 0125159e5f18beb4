/*
 * Virtual functions of nic.ethernet (SR-IOV; models/pcie/endpoint/pcie_vf.c).
 *
 * Models: what a physical function offers; registers, queues, flow table and a MAC address in the
 *   switch for each. Until NIC_ENABLE_VFS their commands are refused.
 * Does not model: ARI (hence seven of them at most), migration, limits of bandwidth, trust, VLANs,
 *   packets from one function of the card to another (they leave by the wire).
 * Timing: as of physical functions.
 * Sources: SR-IOV 1.1, 2.1, 3.3, 3.4; docs/models/nic.md.
 */
#include "models/nic/nic_internal.h"

/* Requester IDs: functions 1, 2, ... of the device. */
#define FIRST_OFFSET 1u
#define STRIDE       1u
/* First byte of the MAC addresses: locally administered, other ones than physical functions have.
 */
#define MAC_FIRST 0x06u
#define MAC_STEP  0x04u

void nic_vfs_init(struct nic_function *pf, uint64_t mac)
{
    const struct cfg_sriov sriov = { .total_vfs = (uint16_t)pf->nic->params.n_vfs,
                                     .first_offset = FIRST_OFFSET,
                                     .stride = STRIDE,
                                     .vf_device_id = NIC_VF_DEVICE_ID,
                                     .bar_bytes = NIC_BAR_BYTES,
                                     .bar_flags = CFG_BAR_PREFETCH };
    const uint64_t first = MAC_FIRST + (uint64_t)MAC_STEP * pf->idx;
    pcie_vf_add(&pf->pcie, &sriov);
    pf->vf = sim_zalloc(pf->nic->params.n_vfs, sizeof(*pf->vf));
    mac = (mac & UINT64_C(0xfffffffff0)) | first << 40;
    for (uint32_t v = 0; v < pf->nic->params.n_vfs; v++)
        nic_function_init(pf->nic, &pf->vf[v], pf, v, mac | v);
}
