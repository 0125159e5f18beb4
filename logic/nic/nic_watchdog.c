/*
 * The watchdog of the NIC's driver: send queues that are stuck.
 *
 * What it does: Once in watchdog_ps it looks at each send queue of a device with carrier. One that
 *   had entries under way when it looked last, and of which none has been completed since, is
 *   stuck. If there are events in memory, their interrupt was lost: the event queue is armed again
 *   with the consumer index up to which the driver has seen them, and the device, which has written
 *   more, raises the interrupt once more. If there are none, all channels are made anew.
 * Leaves out: byte queue limits, by which Linux stops a queue whose completions stay away, so that
 *   its watchdog sees it; entries under way stand for that.
 * Follows: Linux net/sched/sch_generic.c (dev_watchdog), 4.14 mlx5/core/en_main.c (watchdog_timeo
 *   of 15 s, mlx5e_tx_timeout), en/reporter_tx.c of 5.0 (mlx5e_tx_reporter_timeout_recover: events
 *   first, since a channel that is made anew keeps its event queue). A channel on which nothing is
 *   sent is not looked at: mlx5e has nothing for a lost interrupt of received packets alone.
 */
#include "logic/nic/nic_internal.h"

#define DRAIN_PS (2 * K_US)

static bool is_stuck(const struct nic_channel *channel)
{
    const struct nic_drv_sq *sq = &channel->sq;
    return sq->cc == sq->seen_cc && sq->seen_pc != sq->seen_cc;
}

static void look_at(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_drv_sq *sq = &channel->sq;
    if (is_stuck(channel) && !channel->active && channel->inside == 0) {
        const bool lost = nic_drv_eq_pending(channel);
        channel->stats->tx_timeouts++;
        k_warn(nic->kernel, "%s: channel %u: nothing sent for %llu ms, %s", nic->name,
               channel->index, (unsigned long long)(nic->params->watchdog_ps / K_MS),
               lost ? "an interrupt was lost" : "channels are made anew");
        channel->stats->eq_rearms += lost;
        if (lost)
            nic_drv_eq_arm(nic, channel);
        else
            nic_drv_recover(nic, &channel->stats->tx_recoveries);
    }
    sq->seen_pc = sq->pc;
    sq->seen_cc = sq->cc;
}

static void look(struct k_timer *timer)
{
    struct nic_drv *nic = K_CONTAINER(timer, struct nic_drv, watchdog);
    nic->watching = true;
    for (unsigned i = 0; i < nic->n_channels && nic->dev.carrier && !nic->closing; i++)
        look_at(&nic->channel[i]);
    if (!nic->closing)
        nic_drv_watchdog_start(nic);
    nic->watching = false;
}

void nic_drv_watchdog_init(struct nic_drv *nic)
{
    k_timer_init(&nic->watchdog, nic->kernel, look);
}

void nic_drv_watchdog_start(struct nic_drv *nic)
{
    if (nic->params->watchdog_ps != 0)
        k_timer_set_watchdog(&nic->watchdog, k_now_ps(nic->kernel) + nic->params->watchdog_ps);
}

void nic_drv_watchdog_stop(struct nic_drv *nic)
{
    k_timer_cancel(&nic->watchdog);
    while (nic->watching)
        k_sleep(nic->kernel, DRAIN_PS);
    k_timer_cancel(&nic->watchdog);
}
