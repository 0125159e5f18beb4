/*
 * Several devices below one.
 *
 * What it does: What Linux's team and bonding drivers do for every packet, with static queue
 *   numbers instead of a second queueing discipline.
 * Leaves out: active-backup, ARP monitoring, address changes at run time.
 * Follows: Linux 4.14 drivers/net/team/team.c, drivers/net/bonding/bond_main.c.
 */
#include "logic/steering/ports.h"

#include <errno.h>

static int check(struct net_device *const *lower, unsigned n)
{
    unsigned n_tx = 0, n_rx = 0;
    if (n == 0 || n > PORTS_MAX)
        return -EINVAL;
    for (unsigned i = 0; i < n; i++) {
        if (lower[i]->upper != NULL)
            return -EBUSY;
        n_tx += lower[i]->n_tx_queues;
        n_rx += lower[i]->n_rx_queues;
        if (lower[i]->n_tx_queues != lower[i]->n_rx_queues || lower[i]->n_tx_queues == 0)
            return -EINVAL; /* one number tells both */
    }
    return n_tx > NET_QUEUES_MAX || n_rx > NET_QUEUES_MAX ? -ENOSPC : 0;
}

int ports_init(struct ports *ports, struct net_device *dev, struct net_device *const *lower,
               unsigned n)
{
    int error = check(lower, n);
    if (error)
        return error;
    *ports = (struct ports){ .dev = dev, .n = n };
    dev->mac = lower[0]->mac;
    dev->mtu_bytes = lower[0]->mtu_bytes;
    dev->features = lower[0]->features;
    for (unsigned i = 0; i < n; i++) {
        ports->lower[i] = lower[i];
        lower[i]->upper = dev;
        lower[i]->upper_queue = dev->n_tx_queues;
        dev->n_tx_queues = (uint16_t)(dev->n_tx_queues + lower[i]->n_tx_queues);
        dev->features &= lower[i]->features;
        dev->carrier |= ports_alive(ports, i);
        if (lower[i]->mtu_bytes < dev->mtu_bytes)
            dev->mtu_bytes = lower[i]->mtu_bytes;
    }
    dev->n_rx_queues = dev->n_tx_queues;
    return 0;
}

void ports_release(struct ports *ports)
{
    for (unsigned i = 0; i < ports->n; i++) {
        ports->lower[i]->upper = NULL;
        ports->lower[i]->upper_queue = 0;
    }
    ports->n = 0;
}

int ports_open(struct ports *ports)
{
    int error = -ENODEV;
    bool any = false;
    for (unsigned i = 0; i < ports->n; i++) {
        struct net_device *lower = ports->lower[i];
        if (!lower->running)
            error = lower->ops->open(lower);
        any |= lower->running;
    }
    ports->dev->running = any;
    for (unsigned i = 0; i < ports->n; i++)
        ports_changed(ports, i);
    return any ? 0 : error;
}

void ports_stop(struct ports *ports)
{
    ports->dev->running = false;
    for (unsigned i = 0; i < ports->n; i++)
        if (ports->lower[i]->running)
            ports->lower[i]->ops->stop(ports->lower[i]);
}

unsigned ports_of_cpu(const struct ports *ports, unsigned cpu)
{
    int node = (int)k_node_of_cpu(ports->dev->kernel, cpu);
    unsigned on_node[PORTS_MAX], any[PORTS_MAX], n_node = 0, n_any = 0;
    for (unsigned i = 0; i < ports->n; i++) {
        const struct k_device *device = ports->lower[i]->device;
        if (!ports_alive(ports, i))
            continue;
        any[n_any++] = i;
        if (device != NULL && device->node == node)
            on_node[n_node++] = i;
    }
    if (n_node > 0)
        return on_node[cpu % n_node];
    return n_any > 0 ? any[cpu % n_any] : 0;
}

uint16_t ports_tx_queue(const struct ports *ports, unsigned i, unsigned cpu)
{
    const struct net_device *lower = ports->lower[i];
    int queue = lower->xps_queue[cpu];
    if (queue < 0)
        queue = (int)(cpu % lower->n_tx_queues);
    return (uint16_t)(lower->upper_queue + queue);
}

uint16_t ports_rx_queue(const struct ports *ports, unsigned i, unsigned cpu)
{
    const struct net_device *lower = ports->lower[i];
    int queue = lower->rx_queue_of_cpu[cpu];
    if (queue < 0)
        queue = (int)(cpu % lower->n_rx_queues);
    return (uint16_t)(lower->upper_queue + queue);
}

enum net_xmit ports_xmit(struct ports *ports, struct sk_buff *skb)
{
    struct net_device *dev = ports->dev;
    uint16_t queue = skb->queue;
    unsigned i = ports_of_queue(ports, queue);
    struct net_device *lower = ports->lower[i];
    if (!ports_alive(ports, i)) {
        ports->dropped++;
        dev->tx[queue].drops++;
        skb_free(dev->net, skb);
        return NET_XMIT_OK;
    }
    uint16_t own = (uint16_t)(queue - lower->upper_queue);
    skb->dev = lower;
    skb->queue = own;
    enum net_xmit result = lower->ops->start_xmit(skb, lower);
    if (result == NET_XMIT_BUSY) {
        skb->dev = dev;
        skb->queue = queue;
    }
    if (lower->queue_stopped[own] && !dev->queue_stopped[queue])
        net_queue_stop(dev, queue);
    return result;
}

bool ports_rx_passed(const struct ports *ports, uint16_t rxq, struct net_rx_mark *mark)
{
    unsigned i = ports_of_queue(ports, rxq);
    struct net_device *lower = ports->lower[i];
    return lower->ops->rx_passed != NULL &&
           lower->ops->rx_passed(lower, (uint16_t)(rxq - lower->upper_queue), mark);
}

void ports_changed(struct ports *ports, unsigned i)
{
    struct net_device *dev = ports->dev, *lower = ports->lower[i];
    bool carrier = false;
    for (unsigned k = 0; k < ports->n; k++)
        carrier |= ports_alive(ports, k);
    if (carrier != dev->carrier)
        net_device_carrier(dev, carrier);
    if (ports_alive(ports, i))
        return;
    for (uint16_t q = 0; q < lower->n_tx_queues; q++)
        net_queue_wake(dev, (uint16_t)(lower->upper_queue + q));
}
