/*
 * Completion queues, event queues, MSI-X of nic.ethernet.
 *
 * Models: completions and events written to host memory with owner bits, arming by doorbells,
 *   moderation by time and count, interrupts behind the event that they announce, masks.
 * Does not model: overrun of a ring (drivers make them as large as what can complete), completion
 *   compression.
 * Timing: an armed queue with completions from its armed consumer index on makes an event
 *     at once                                 without moderation time, or with `count` completions,
 *     not before the last event + time        mode EQE,
 *     not before the last completion + time   mode CQE.
 *   Arming looks at what is there already, so that no completion between poll and arming is missed.
 *   Completion, event and message are posted writes in that order: none overtakes another.
 * Sources: Linux commits 9908aa292971 (CQE moderation: the timer restarts upon a completion rather
 *   than upon an interrupt) and 48bfc39791b8; PCIe Base 3.1, 2.4 (posted order), 6.1.4 (MSI-X);
 *   docs/sources.md#a5.
 */
#include <string.h>

#include "models/nic/nic_internal.h"

/* ---- Writes ---------------------------------------------------------------------------------- */

static void post_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct nic_write *write = SIM_CONTAINER(request, struct nic_write, request);
    (void)status;
    sim_pool_put(write->nic->writes, write);
}

void nic_post(struct nic_function *function, uint64_t iova, const void *bytes, uint32_t n)
{
    struct nic_write *write = sim_pool_get(function->nic->writes);
    write->nic = function->nic;
    memcpy(write->bytes, bytes, n);
    write->request = (struct pcie_dma_request){
        .iova = { iova }, .bytes = n, .buffer = write->bytes, .done = post_done
    };
    nic_dma_write(function, &write->request);
}

/* ---- Event queues ---------------------------------------------------------------------------- */

static uint8_t owner_of(uint32_t producer, unsigned log)
{
    return (uint8_t)(~(producer >> log) & 1);
}

static void event_write(struct nic_function *function, uint16_t eq_number, uint8_t type,
                        uint16_t queue)
{
    struct nic_eq *eq = function->eq[eq_number];
    if (eq == NULL)
        return; /* the driver destroyed it first */
    struct nic_eqe eqe = { .type = type, .queue = queue, .owner = owner_of(eq->producer, eq->log) };
    uint64_t slot = eq->producer & ((UINT32_C(1) << eq->log) - 1);
    nic_post(function, eq->iova + slot * sizeof(eqe), &eqe, sizeof(eqe));
    eq->producer++;
    function->stats.eqes++;
    if (eq->armed) {
        eq->armed = false;
        pcie_function_interrupt(&function->pcie, eq->vector);
    }
}

/* Each function tells its first event queue. */
void nic_link_changed(struct ether_port *port, bool up)
{
    struct nic *nic = nic_of(port->model);
    (void)up;
    for (uint32_t i = 0; i < nic->n_all; i++) {
        struct nic_function *function = nic->all[i];
        uint16_t eq = 0;
        while (eq + 1u < nic->params.n_queues && function->eq[eq] == NULL)
            eq++;
        event_write(function, eq, NIC_EVENT_LINK, 0);
    }
}

void nic_eq_arm(struct nic_function *function, struct nic_eq *eq, uint32_t consumer)
{
    bool behind = ((eq->producer - consumer) & NIC_INDEX_24) != 0;
    eq->armed = !behind;
    if (behind) /* it has not seen them all */
        pcie_function_interrupt(&function->pcie, eq->vector);
}

/* ---- Completion queues ----------------------------------------------------------------------- */

static void make_event(struct nic_cq *cq, bool by_timer)
{
    sim_cancel(cq->function->nic->model->sim, &cq->timer);
    cq->armed = false;
    cq->last_event_ps = nic_now(cq->function->nic);
    cq->function->stats.timer_events += by_timer;
    event_write(cq->function, cq->eq, NIC_EVENT_COMPLETION, cq->number);
}

/* An event is due now, or the timer is set for when it will be. A timer that is set for earlier is
 * left: it looks again when it fires, so that a deadline that moves on costs nothing. */
static void consider(struct nic_cq *cq, bool by_timer)
{
    struct sim *sim = cq->function->nic->model->sim;
    uint32_t pending = (cq->producer - cq->armed_from) & NIC_INDEX_24;
    if (!cq->armed || pending == 0)
        return;
    sim_time since_ps = cq->mode == NIC_MODERATION_EQE ? cq->last_event_ps : cq->last_cqe_ps;
    sim_time due_ps = since_ps + cq->moderation_ps;
    if (cq->moderation_ps == 0 || due_ps <= sim_now(sim) ||
        (cq->moderation_count != 0 && pending >= cq->moderation_count)) {
        make_event(cq, by_timer);
        return;
    }
    if (sim_event_pending(&cq->timer)) {
        if (cq->timer.time_ps <= due_ps)
            return;
        sim_cancel(sim, &cq->timer);
    }
    sim_schedule(sim, &cq->timer, due_ps);
}

void nic_cq_timer(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    consider(SIM_CONTAINER(event, struct nic_cq, timer), true);
}

uint64_t nic_cq_next(struct nic_cq *cq, struct nic_cqe *cqe, unsigned opcode)
{
    uint64_t slot = cq->producer & ((UINT32_C(1) << cq->log) - 1);
    cqe->op_own = (uint8_t)(opcode << 4 | owner_of(cq->producer, cq->log));
    return cq->iova + slot * sizeof(*cqe);
}

void nic_cq_written(struct nic_cq *cq)
{
    cq->producer++;
    cq->last_cqe_ps = nic_now(cq->function->nic);
    cq->function->stats.cqes++;
    consider(cq, false);
}

void nic_cq_arm(struct nic_cq *cq, uint32_t consumer)
{
    cq->armed = true;
    cq->armed_from = consumer;
    consider(cq, false);
}

void nic_cq_moderate(struct nic_cq *cq)
{
    sim_cancel(cq->function->nic->model->sim, &cq->timer);
    consider(cq, false);
}
