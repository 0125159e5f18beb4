/*
 * What ends a function of nic.ethernet, for a while or for good.
 *
 * Models: function-level reset, surprise removal.
 * Does not model: a function that needs more time for its reset than what it has under way.
 * Timing: a reset ends when queues, commands and the DMA engine are quiet, looked at every
 * microsecond; until then the function answers nothing. Sources: PCI Express Base 3.1, 6.6.2.
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "models/nic/nic_internal.h"

#define LOOK_PS SIM_PS_PER_US

/* No queues, no flows, all vectors masked, registers at their defaults. */
void nic_state_reset(struct nic_function *function)
{
    memset(function->msix_pba, 0, sizeof(function->msix_pba));
    memset(function->msix_table, 0, sizeof(function->msix_table));
    for (unsigned i = 0; i < NIC_MSIX_VECTORS; i++)
        function->msix_table[PCI_MSIX_ENTRY_BYTES * i + 12] = 1; /* masked after reset */
    nic_queues_free(function);
    nic_flow_release(&function->flows);
    nic_flow_init(&function->flows, function->nic->params.arfs_entries);
    function->rss_set = false;
    function->n_vfs_ready = 0;
    function->command.low = 0;
}

/* What is in flight comes back into the void: the engine may ask for nothing any more, so all that
 * it has ends, and with it queues and packets. */
void nic_function_stop(struct nic_function *function)
{
    function->removed = true;
    cfg_set(&function->cfg, PCI_COMMAND, 2, 0);
    pcie_dma_credit(&function->dma);
}

/* Nothing of it is under way any more, but for packets on the wire. */
static bool is_quiet(const struct nic_function *function)
{
    const struct nic *nic = function->nic;
    for (uint32_t i = 0; i < nic->params.n_queues; i++)
        if ((function->sq[i] != NULL && !nic_sq_quiet(function->sq[i])) ||
            (function->rq[i] != NULL && !nic_rq_quiet(function->rq[i])))
            return false;
    return function->command.step == NIC_COMMAND_IDLE && pcie_dma_idle(&function->dma) &&
           function->n_waiting[0] + function->n_waiting[1] == 0;
}

static void restarted(struct sim *sim, struct sim_event *event)
{
    struct nic_function *function = SIM_CONTAINER(event, struct nic_function, reset);
    const struct nic_function *pf = function->pf;
    if (!is_quiet(function)) {
        sim_schedule_in(sim, event, LOOK_PS);
        return;
    }
    for (struct nic_tx *tx = function->nic->sent_head; tx != NULL; tx = tx->next)
        if (tx->function == function) /* on the wire: nobody is told any more */
            tx->completion = false;
    nic_state_reset(function);
    function->resetting = false;
    function->removed = pf != NULL && (pf->removed || function->vf_idx >= pf->cfg.live.n_vfs);
}

void nic_reset_init(struct nic_function *function)
{
    sim_event_init(&function->reset, restarted);
}

void nic_function_restart(struct nic_function *function)
{
    struct nic *nic = function->nic;
    cfg_reset(&function->cfg);
    function->removed = true;
    function->command.n_queued = 0;
    for (uint32_t i = 0; i < nic->params.n_queues; i++) {
        if (function->sq[i] != NULL)
            nic_sq_close(function->sq[i]);
        if (function->rq[i] != NULL)
            nic_rq_close(function->rq[i]);
    }
    pcie_dma_abort(&function->dma);
    nic_vfs_follow(function); /* they are disabled */
    if (!function->resetting)
        sim_schedule_in(nic->model->sim, &function->reset, LOOK_PS);
    function->resetting = true;
}

static void remove_one(struct nic_function *function)
{
    sim_cancel(function->nic->model->sim, &function->reset);
    function->resetting = false;
    nic_function_stop(function);
}

void nic_remove_function(struct model *model, unsigned pf)
{
    struct nic *nic = nic_of(model);
    SIM_ASSERT(pf < nic->params.n_functions, "%s has no function %u", model->name, pf);
    remove_one(&nic->function[pf]);
    for (uint32_t i = 0; i < nic->params.n_vfs; i++)
        remove_one(&nic->function[pf].vf[i]);
}
