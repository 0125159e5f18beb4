/*
 * A function of nic.ethernet towards PCIe: what it is there, function-level reset, removal.
 *
 * Models: a reset that lasts until all that the function has under way has ended.
 * Timing: whether queues, commands and the DMA engine are quiet is looked at every microsecond;
 *   until they are, the function answers nothing.
 * Sources: PCI Express Base 3.1, 6.6.2.
 */
#include "models/nic/nic_internal.h"

#define LOOK_PS SIM_PS_PER_US

/* No queues, no flows, registers at their defaults. */
static void begin_anew(struct nic_function *function)
{
    for (uint32_t i = 0; i < function->nic->params.n_queues; i++)
        nic_sent_forget(function, i);
    nic_queues_free(function);
    nic_flow_release(&function->flows);
    nic_flow_init(&function->flows, function->nic->params.arfs_entries);
    nic_match_release(&function->matches);
    function->rss_set = false;
    function->n_vfs_ready = 0;
    function->command.low = 0;
    function->dropped_no_buffer = 0;
}

/* Nothing of it is under way any more, but for packets on the wire. */
static bool is_quiet(const struct nic_function *function)
{
    const struct nic *nic = function->nic;
    for (uint32_t i = 0; i < nic->params.n_queues; i++)
        if ((function->sq[i] != NULL && !nic_sq_quiet(function->sq[i])) ||
            (function->rq[i] != NULL && !nic_rq_quiet(function->rq[i])))
            return false;
    return function->command.step == NIC_COMMAND_IDLE && pcie_dma_idle(&function->pcie.dma) &&
           function->n_waiting[0] + function->n_waiting[1] == 0;
}

static void restarted(struct sim *sim, struct sim_event *event)
{
    struct nic_function *function = SIM_CONTAINER(event, struct nic_function, reset);
    if (!is_quiet(function)) {
        sim_schedule_in(sim, event, LOOK_PS);
        return;
    }
    begin_anew(function);
    pcie_function_ready(&function->pcie);
}

/* All that it has under way is given up; when the last of it has ended, it is there again. */
static void function_reset(struct pcie_function *pcie)
{
    struct nic_function *function = nic_function_of(pcie);
    struct nic *nic = function->nic;
    pcie->resetting = true;
    function->command.n_queued = 0;
    for (uint32_t i = 0; i < nic->params.n_queues; i++) {
        if (function->sq[i] != NULL)
            nic_sq_close(function->sq[i]);
        if (function->rq[i] != NULL)
            nic_rq_close(function->rq[i]);
    }
    pcie_dma_abort(&pcie->dma);
    sim_schedule_in(nic->model->sim, &function->reset, LOOK_PS);
}

/* What is in flight comes back into the void: the engine may ask for nothing any more, so all that
 * it has ends, and with it queues and packets. */
static void function_stop(struct pcie_function *pcie)
{
    struct nic_function *function = nic_function_of(pcie);
    sim_cancel(function->nic->model->sim, &function->reset);
}

static bool function_appears(struct pcie_function *pcie)
{
    struct nic_function *function = nic_function_of(pcie);
    if (function->command.step != NIC_COMMAND_IDLE || !pcie_dma_idle(&pcie->dma))
        return false;
    begin_anew(function);
    return true;
}

static void send_message(struct pcie_function *pcie, uint64_t address, uint32_t data)
{
    nic_post(nic_function_of(pcie), address, &data, sizeof(data));
}

void nic_function_setup(struct nic_function *function, struct nic_function *pf, uint32_t vf_idx)
{
    static const struct pcie_function_ops ops = { .reset = function_reset,
                                                  .stop = function_stop,
                                                  .appear = function_appears,
                                                  .message = send_message };
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &function->nic->params.pcie,
        .identity = { .vendor_id = NIC_VENDOR_ID,
                      .device_id = NIC_DEVICE_ID,
                      .subsystem_vendor_id = NIC_VENDOR_ID,
                      .class_code = NIC_CLASS_CODE },
        .port = function->port,
        .function_reset = true,
        .n_vectors = NIC_MSIX_VECTORS,
        .msix_table = NIC_MSIX_TABLE,
        .msix_pba = NIC_MSIX_PBA,
        .bar = { { NIC_BAR_BYTES, CFG_BAR_64 | CFG_BAR_PREFETCH, nic_register_read,
                   nic_register_write, .by_bytes = false } }
    };
    sim_event_init(&function->reset, restarted);
    nic_flow_init(&function->flows, function->nic->params.arfs_entries);
    if (pf != NULL)
        pcie_vf_init(&function->pcie, &pf->pcie, vf_idx, &desc);
    else
        pcie_function_init(&function->pcie, function->nic->model, &desc);
    function->pcie.unsupported = &function->nic->stats.unsupported;
}
