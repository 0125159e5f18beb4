/*
 * Transmit queues by CPU.
 *
 * What it does: Chooses the transmit queue like netdev_pick_tx() and get_xps_queue() of Linux 4.14
 *   (net/core/dev.c): a socket keeps its queue until the stack reports that none of its packets is
 *   outstanding.
 * Leaves out: maps of several queues per CPU, traffic classes.
 * Follows: Linux 4.14 Documentation/networking/scaling.txt.
 * Costs: Part of the transmission (tcp_transmit_cycles).
 */
#include "logic/net/xps.h"

#include "logic/net/net.h"

void xps_map_default(struct net_device *dev)
{
    unsigned n_cpus = k_n_cpus(dev->kernel);
    for (unsigned cpu = 0; cpu < sizeof dev->xps_queue / sizeof dev->xps_queue[0]; cpu++) {
        int rxq = cpu < n_cpus ? dev->rx_queue_of_cpu[cpu] : -1;
        if (cpu >= n_cpus || dev->n_tx_queues == 0)
            dev->xps_queue[cpu] = -1;
        else if (rxq >= 0 && rxq < dev->n_tx_queues)
            dev->xps_queue[cpu] = (int16_t)rxq;
        else
            dev->xps_queue[cpu] = (int16_t)(cpu % dev->n_tx_queues);
    }
}

uint16_t xps_keep_or_take(struct sk_buff *skb, struct net_device *dev, uint16_t best)
{
    if (skb->socket == NULL)
        return best;
    int now = socket_tx_queue(skb->socket);
    if (now >= 0 && now < dev->n_tx_queues && !skb->ooo_okay)
        return (uint16_t)now;
    if (now != best)
        socket_set_tx_queue(skb->socket, best);
    return best;
}

uint16_t xps_select_queue(struct sk_buff *skb, struct net_device *dev)
{
    unsigned cpu = k_cpu(dev->kernel);
    int queue = dev->xps_queue[cpu];
    if (queue < 0)
        queue = (int)(dev->n_tx_queues ? cpu % dev->n_tx_queues : 0);
    return xps_keep_or_take(skb, dev, (uint16_t)queue);
}
