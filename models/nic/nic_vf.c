/*
 * Virtual functions of nic.ethernet (SR-IOV).
 *
 * Models: the capability in a physical function's configuration space; functions that come with VF
 *   Enable and go without: configuration space, registers in their part of the VF BAR, MSI-X, DMA
 *   engine with their own requester ID, queues, flow table, MAC address in the switch; the link of
 *   their physical function, shared in turn. Until NIC_ENABLE_VFS their commands are refused.
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

static void vf_init(struct nic_function *pf, uint32_t v, uint64_t mac)
{
    struct nic *nic = pf->nic;
    struct nic_function *vf = &pf->vf[v];
    const uint64_t first = MAC_FIRST + (uint64_t)MAC_STEP * pf->idx;
    vf->pf = pf;
    vf->vf_idx = v;
    vf->port = pf->port;
    vf->removed = true;
    mac = (mac & UINT64_C(0xfffffffff0)) | first << 40 | v;
    nic_function_init(nic, vf, nic->n_all++, mac);
}

void nic_vfs_init(struct nic_function *pf, uint64_t mac)
{
    const struct cfg_sriov sriov = { .total_vfs = (uint16_t)pf->nic->params.n_vfs,
                                     .first_offset = FIRST_OFFSET,
                                     .stride = STRIDE,
                                     .vf_device_id = NIC_VF_DEVICE_ID,
                                     .bar_bytes = NIC_BAR_BYTES,
                                     .bar_flags = CFG_BAR_PREFETCH };
    cfg_add_sriov(&pf->cfg, &sriov);
    pf->vf = sim_zalloc(pf->nic->params.n_vfs, sizeof(*pf->vf));
    for (uint32_t v = 0; v < pf->nic->params.n_vfs; v++)
        vf_init(pf, v, mac);
    nic_vfs_follow(pf);
}

/* A function that was in use begins anew, if what it had under way has ended: a driver sees to that
 * before it lets VF Enable be cleared. */
static void vf_appears(struct nic_function *vf)
{
    if (vf->reset_due) {
        if (vf->command.step != NIC_COMMAND_IDLE || !pcie_dma_idle(&vf->dma)) {
            vf->nic->stats.unsupported++;
            return;
        }
        nic_function_reset(vf);
    }
    vf->reset_due = true;
    vf->removed = false;
}

void nic_vfs_follow(struct nic_function *pf)
{
    for (uint32_t v = 0; pf->vf != NULL && v < pf->nic->params.n_vfs; v++) {
        struct nic_function *vf = &pf->vf[v];
        bool there = v < pf->cfg.live.n_vfs && !pf->removed;
        if (there && vf->removed && !vf->resetting)
            vf_appears(vf);
        else if (!there && !vf->removed)
            nic_function_stop(vf);
        cfg_vf_follow(&vf->cfg, &pf->cfg, v);
    }
}

struct nic_function *nic_vf_target(struct nic_function *pf, const struct tlp *tlp)
{
    int v = -1;
    switch ((enum tlp_type)tlp->type) {
    case TLP_CFG_RD0:
    case TLP_CFG_WR0:
        v = cfg_vf_of_id(&pf->cfg, tlp->completer_id);
        return v >= 0 ? &pf->vf[v] : (tlp->completer_id & 0xffu) == 0 ? pf : NULL;
    case TLP_CPL:
    case TLP_CPLD: /* also for one that is disabled by now */
        for (uint32_t i = 0; i < pf->nic->params.n_vfs; i++)
            if (pf->vf[i].cfg.id == tlp->requester_id)
                return &pf->vf[i];
        return pf;
    case TLP_MRD:
    case TLP_MWR: v = cfg_vf_match(&pf->cfg, tlp->address, tlp->length_bytes); break;
    default: break;
    }
    return v >= 0 ? &pf->vf[v] : pf;
}
