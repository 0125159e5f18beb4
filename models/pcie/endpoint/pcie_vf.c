/*
 * Which of a port's functions a TLP is for; virtual functions (SR-IOV).
 *
 * Models: the capability in a physical function's configuration space; virtual functions that come
 *   with VF Enable and go without, and with a reset or the removal of their physical function; the
 *   link of their physical function, shared in turn.
 * Does not model: ARI, hence seven virtual functions of a port at most; migration.
 * Sources: SR-IOV 1.1, 2.1, 3.3, 3.4; PCI Express Base 3.1, 2.2.4 (routing), 7.3.1.
 */
#include "models/pcie/endpoint/pcie_function_internal.h"

void pcie_vf_add(struct pcie_function *pf, const struct cfg_sriov *sriov)
{
    cfg_add_sriov(&pf->cfg, sriov);
    pf->n_vfs = sriov->total_vfs;
    pf->vf = sim_zalloc(pf->n_vfs, sizeof(struct pcie_function *));
}

void pcie_vf_init(struct pcie_function *vf, struct pcie_function *pf, unsigned idx,
                  const struct pcie_function_desc *desc)
{
    vf->pf = pf;
    vf->idx = (uint8_t)idx;
    vf->gone = true;
    pf->vf[idx] = vf;
    pcie_function_setup(vf, pf->model, desc);
    cfg_vf_follow(&vf->cfg, &pf->cfg, idx);
}

/* A driver sees to it that nothing is under way before it lets VF Enable be cleared. */
static void appear(struct pcie_function *vf)
{
    if (vf->desc.ops->appear != NULL && !vf->desc.ops->appear(vf)) {
        ++*vf->unsupported;
        return;
    }
    pcie_function_power_on(vf);
    vf->gone = false;
}

void pcie_vf_follow(struct pcie_function *pf)
{
    for (uint32_t v = 0; v < pf->n_vfs; v++) {
        struct pcie_function *vf = pf->vf[v];
        const bool there = v < pf->cfg.live.n_vfs && !pf->gone;
        if (there && vf->gone && !vf->resetting)
            appear(vf);
        else if (!there && !vf->gone)
            pcie_function_stop(vf);
        cfg_vf_follow(&vf->cfg, &pf->cfg, v);
        pcie_dma_configured(&vf->dma);
    }
}

static bool owns_config(const struct pcie_function *function, uint16_t id)
{
    return (id & 7u) == function->desc.number;
}

static struct pcie_function *target_of_config(struct pcie_function *first, uint16_t id)
{
    for (struct pcie_function *f = first; f != NULL; f = f->next) {
        const int v = f->n_vfs != 0 ? cfg_vf_of_id(&f->cfg, id) : -1;
        if (v >= 0)
            return f->vf[v];
        if (owns_config(f, id))
            return f;
    }
    return NULL;
}

/* Also a virtual function that is disabled by now. */
static struct pcie_function *target_of_completion(struct pcie_function *first, uint16_t id)
{
    for (struct pcie_function *f = first; f != NULL; f = f->next) {
        if (f->cfg.id == id)
            return f;
        for (uint32_t v = 0; v < f->n_vfs; v++)
            if (f->vf[v]->cfg.id == id)
                return f->vf[v];
    }
    return first;
}

static struct pcie_function *target_of_address(struct pcie_function *first, const struct tlp *tlp)
{
    for (struct pcie_function *f = first; f != NULL; f = f->next) {
        const int v = f->n_vfs != 0 ? cfg_vf_match(&f->cfg, tlp->address, tlp->length_bytes) : -1;
        if (v >= 0)
            return f->vf[v];
        if (cfg_bar_match(&f->cfg, tlp->address, tlp->length_bytes) >= 0)
            return f;
    }
    return first;
}

bool pcie_function_covers(const struct pcie_function *first, uint64_t address, uint64_t bytes)
{
    for (const struct pcie_function *f = first; f != NULL; f = f->next)
        if (cfg_bar_match(&f->cfg, address, bytes) >= 0 ||
            (f->n_vfs != 0 && cfg_vf_match(&f->cfg, address, bytes) >= 0))
            return true;
    return false;
}

struct pcie_function *pcie_vf_target(struct pcie_function *first, const struct tlp *tlp)
{
    switch ((enum tlp_type)tlp->type) {
    case TLP_CFG_RD0:
    case TLP_CFG_WR0: return target_of_config(first, tlp->completer_id);
    case TLP_CPL:
    case TLP_CPLD: return target_of_completion(first, tlp->requester_id);
    case TLP_MRD:
    case TLP_MWR:
    case TLP_DMWR: return target_of_address(first, tlp);
    default: return first;
    }
}
