/*
 * Interrupts of the NIC: event queues, arming of completion queues, moderation that adapts.
 *
 * What it does: A handler per channel consumes events, schedules the channel's poll function and
 *   arms the event queue again.
 * Follows: docs/sources.md#nic.
 * Costs: driver_irq_cycles, the cache lines of the events, one doorbell and the wait for it.
 */
#include "logic/nic/nic_internal.h"

#define CQ_INDEX_MASK 0xffffffu

void nic_drv_cq_arm(struct nic_drv *nic, struct nic_drv_cq *cq)
{
    k_writeq(nic->pci, 0, NIC_DOORBELL_CQ(cq->number), cq->ci & CQ_INDEX_MASK);
}

void nic_drv_eq_arm(struct nic_drv *nic, const struct nic_channel *channel)
{
    k_writeq(nic->pci, 0, NIC_DOORBELL_EQ(channel->index), channel->eq.ci);
    k_fence(nic->kernel); /* mlx5's eq_update_ci() has a full barrier behind the write */
}

static bool next_event(struct nic_channel *channel, struct nic_eqe *event)
{
    const struct nic_drv_eq *eq = &channel->eq;
    uint32_t slot = eq->ci & ((1u << NIC_EQ_LOG) - 1);
    k_load(channel->nic->kernel, kaddr_add(eq->ring.at, (uint64_t)slot * sizeof *event), event,
           sizeof *event);
    return (event->owner & 1u) != (eq->ci >> NIC_EQ_LOG & 1u);
}

bool nic_drv_eq_pending(const struct nic_channel *channel)
{
    const struct nic_drv_eq *eq = &channel->eq;
    const uint64_t slot = eq->ci & ((1u << NIC_EQ_LOG) - 1);
    struct nic_eqe event;
    k_load(channel->nic->kernel, kaddr_add(eq->ring.at, slot * sizeof event), &event, sizeof event);
    return (event.owner & 1u) != (eq->ci >> NIC_EQ_LOG & 1u);
}

/* In a hard interrupt, on the channel's CPU. */
void nic_drv_interrupt(void *arg)
{
    struct nic_channel *channel = arg;
    struct nic_drv *nic = channel->nic;
    if (nic->closing)
        return;
    channel->inside++;
    channel->stats->interrupts++;
    k_compute(nic->kernel, nic->costs->driver_irq_cycles);
    struct nic_eqe event;
    while (next_event(channel, &event)) {
        channel->eq.ci++;
        if (event.type == NIC_EVENT_LINK) {
            nic_drv_work_queue(&nic->link_work, K_CPU_ANY);
        } else if (event.type == NIC_EVENT_COMPLETION) {
            channel->rx_events += event.queue == channel->rq.cq.number;
            nic_drv_channel_schedule(channel);
        }
    }
    if (!nic->closing)
        nic_drv_eq_arm(nic, channel);
    channel->inside--;
}
