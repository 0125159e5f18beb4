/*
 * What it does: Registers network devices. Sends a packet: chooses the queue (the device's choice,
 *   XPS, or by hash), passes it through a queueing discipline per queue (first in, first out, a
 *   limit; one CPU at a time hands packets to the driver while others only queue), stops and wakes.
 *   Receives a packet: passes it through ARFS to its protocol unless its checksum is wrong; one of
 *   another Ethernet type than IPv4 to whoever has registered for that type.
 * Leaves out: priorities (bands) of pfifo_fast, byte queue limits, taps, receive packet steering in
 *   software.
 * Follows: Linux 4.14 net/core/dev.c (__dev_queue_xmit, __dev_xmit_skb, netdev_pick_tx,
 *   netif_receive_skb_internal, get_rps_cpu), net/sched/sch_generic.c (sch_direct_xmit,
 *   __qdisc_run, netif_schedule_queue).
 * Costs: Part of tcp_transmit_cycles and its like. A checksum that the device has not verified
 *   costs the loads of the payload.
 */
#include "logic/net/arfs.h"
#include "logic/net/net_internal.h"
#include "logic/net/xps.h"

#define RUN_QUOTA 64u /* packets handed over for others at a time (weight_p, dev_tx_weight) */
#define LATER_PS  K_MS

/* ---- Registration ---------------------------------------------------------------------------- */

int net_device_register(struct net *net, struct net_device *dev)
{
    if (net_device_find(net, dev->name))
        return -EEXIST;
    if (dev->n_tx_queues == 0 || dev->n_tx_queues > NET_QUEUES_MAX)
        return -EINVAL;
    dev->net = net;
    dev->kernel = net->kernel;
    if (net->params.gro)
        dev->features |= NET_FEATURE_GRO;
    if (dev->ops->rx_flow_steer)
        dev->arfs = net->arfs;
    dev->next = net->devices;
    net->devices = dev;
    net->route_generation++;
    return 0;
}

static void drop_backlog(struct net *net, struct net_device *dev, unsigned queue)
{
    while (dev->backlog[queue]) {
        struct sk_buff *skb = dev->backlog[queue];
        dev->backlog[queue] = skb->next;
        dev->backlog_packets[queue]--;
        dev->tx[queue].drops++;
        net->stats.dropped_packets++;
        skb_free(net, skb);
    }
}

void net_device_unregister(struct net_device *dev)
{
    struct net *net = dev->net;
    for (struct net_device **link = &net->devices; *link; link = &(*link)->next)
        if (*link == dev) {
            *link = dev->next;
            break;
        }
    /* Nobody finds it from here on. */
    unsigned kept = 0;
    for (unsigned i = 0; i < net->n_routes; i++)
        if (net->routes[i].dev != dev)
            net->routes[kept++] = net->routes[i];
    net->n_routes = kept;
    net->route_generation++;
    for (struct socket *sk = net->all; sk; sk = sk->next) {
        if (sk->rx_dev == dev)
            sk->rx_dev = NULL;
        if (sk->dev == dev)
            sk->dev = NULL;
    }
    for (unsigned i = 0; i < net->n_cpus; i++) {
        struct net_cpu *cpu = &net->cpu[i];
        unsigned n = 0;
        for (unsigned j = 0; j < cpu->n_wake; j++)
            if (cpu->wake[j].dev != dev)
                cpu->wake[n++] = cpu->wake[j];
        cpu->n_wake = n;
        for (struct sk_buff *skb = cpu->gro; skb; skb = skb->next)
            if (skb->dev == dev)
                skb->dev = NULL;
    }
    if (dev->arfs)
        arfs_device_gone(dev->arfs, dev);
    dev->arfs = NULL;
    for (unsigned queue = 0; queue < dev->n_tx_queues; queue++)
        drop_backlog(net, dev, queue);
    dev->net = NULL;
}

struct net_device *net_device_find(struct net *net, const char *name)
{
    struct net_device *dev = net->devices;
    while (dev && strcmp(dev->name, name) != 0)
        dev = dev->next;
    return dev;
}

void net_device_carrier(struct net_device *dev, bool carrier)
{
    struct net_device *upper = dev->upper;
    dev->carrier = carrier;
    if (!carrier && dev->net)
        for (unsigned queue = 0; queue < dev->n_tx_queues; queue++)
            drop_backlog(dev->net, dev, queue);
    if (upper && upper->ops->lower_changed)
        upper->ops->lower_changed(upper, dev);
}

/* ---- Out ------------------------------------------------------------------------------------- */

static void put_back(struct net_device *dev, struct sk_buff *skb)
{
    unsigned queue = skb->queue;
    skb->next = dev->backlog[queue];
    if (!skb->next)
        dev->backlog_tail[queue] = skb;
    dev->backlog[queue] = skb;
    dev->backlog_packets[queue]++;
}

static struct sk_buff *take(struct net_device *dev, unsigned queue)
{
    struct sk_buff *skb = dev->backlog[queue];
    if (skb) {
        dev->backlog[queue] = skb->next;
        dev->backlog_packets[queue]--;
        skb->next = NULL;
    }
    return skb;
}

static void enqueue(struct net *net, struct net_device *dev, struct sk_buff *skb)
{
    unsigned queue = skb->queue;
    if (dev->backlog_packets[queue] >= net->params.backlog_packets) {
        dev->tx[queue].drops++;
        net->stats.dropped_packets++;
        skb_free(net, skb);
        return;
    }
    skb->next = NULL;
    if (dev->backlog[queue])
        dev->backlog_tail[queue]->next = skb;
    else
        dev->backlog[queue] = skb;
    dev->backlog_tail[queue] = skb;
    dev->backlog_packets[queue]++;
}

/* False: the driver has no room, and skb is back at the front. */
static bool hand_over(struct net *net, struct net_device *dev, struct sk_buff *skb)
{
    struct net_queue_stats *stats = &dev->tx[skb->queue];
    uint64_t packets = NET_MAX(skb->gso_segments, 1);
    uint64_t bytes = skb->bytes + packets * skb->head_bytes;
    skb->time_ps = k_now_ps(net->kernel);
    if (dev->ops->start_xmit(skb, dev) == NET_XMIT_BUSY) {
        put_back(dev, skb);
        return false;
    }
    stats->packets += packets;
    stats->bytes += bytes;
    net->stats.tx_packets += packets;
    net->stats.tx_bytes += bytes;
    return true;
}

/* The queue is run at the end of this poll; at_once: or in a soft interrupt of its own, if this is
 * the end. */
static void wake_later(struct net *net, struct net_device *dev, uint16_t queue, bool at_once)
{
    struct net_cpu *cpu = &net->cpu[k_cpu(net->kernel)];
    for (unsigned i = 0; i < cpu->n_wake; i++)
        if (cpu->wake[i].dev == dev && cpu->wake[i].queue == queue)
            return;
    if (cpu->n_wake < NET_QUEUES_MAX)
        cpu->wake[cpu->n_wake++] = (struct net_queue_ref){ dev, queue };
    if (at_once)
        k_timer_set(&cpu->timer, k_now_ps(net->kernel));
    else
        net_cpu_later(net);
}

/* Hands over what waits; this CPU is the one that does. Ends with the last look at the queue, so
 * that nothing that another CPU queues or wakes is forgotten. */
static void run_queue(struct net *net, struct net_device *dev, uint16_t queue)
{
    unsigned quota = RUN_QUOTA;
    while (!dev->queue_stopped[queue]) {
        if (quota-- == 0) {
            wake_later(net, dev, queue, true);
            break;
        }
        struct sk_buff *skb = take(dev, queue);
        if (!skb)
            break;
        skb->xmit_more = dev->backlog[queue] != NULL && quota > 0;
        if (!hand_over(net, dev, skb) && !dev->queue_stopped[queue]) {
            wake_later(net, dev, queue, true); /* woken again already */
            break;
        }
    }
    dev->queue_running[queue] = false;
}

static uint16_t pick_queue(struct net *net, struct net_device *dev, struct sk_buff *skb)
{
    if (dev->n_tx_queues == 1)
        return 0;
    if (dev->ops->select_queue)
        return dev->ops->select_queue(skb, dev);
    if (net->params.xps)
        return xps_select_queue(skb, dev);
    return (uint16_t)((uint64_t)skb->hash * dev->n_tx_queues >> 32);
}

void net_dev_queue_xmit(struct net *net, struct sk_buff *skb)
{
    struct net_device *dev = skb->dev;
    k_bh_disable(net->kernel);
    uint16_t queue = skb->queue = pick_queue(net, dev, skb);
    skb->xmit_more = false;
    if (!dev->running || !dev->carrier) {
        dev->tx[queue].drops++;
        net->stats.dropped_packets++;
        skb_free(net, skb);
    } else {
        bool idle = !dev->queue_running[queue] && !dev->queue_stopped[queue];
        bool direct = idle && !dev->backlog[queue];
        if (!direct)
            enqueue(net, dev, skb);
        /* Dropping charges time: what was idle may not be any more. */
        idle = !dev->queue_running[queue] && !dev->queue_stopped[queue];
        if (idle) {
            dev->queue_running[queue] = true;
            if (direct)
                hand_over(net, dev, skb);
            run_queue(net, dev, queue);
        }
    }
    k_bh_enable(net->kernel);
}

void net_queue_wake(struct net_device *dev, uint16_t queue)
{
    dev->queue_stopped[queue] = false;
    if (dev->net && dev->backlog[queue] && !dev->queue_running[queue])
        wake_later(dev->net, dev, queue, false);
    if (dev->upper && dev->upper_queue + queue < dev->upper->n_tx_queues)
        net_queue_wake(dev->upper, (uint16_t)(dev->upper_queue + queue));
}

void net_run_queues(struct net *net, struct net_cpu *cpu)
{
    unsigned n = cpu->n_wake;
    while (n-- > 0 && cpu->n_wake > 0) {
        struct net_queue_ref ref = cpu->wake[0];
        memmove(cpu->wake, cpu->wake + 1, --cpu->n_wake * sizeof cpu->wake[0]);
        if (ref.dev->queue_running[ref.queue])
            continue;
        ref.dev->queue_running[ref.queue] = true;
        run_queue(net, ref.dev, ref.queue);
    }
}

/* ---- Up -------------------------------------------------------------------------------------- */

bool net_checksum_right(struct net *net, struct sk_buff *skb)
{
    if (skb->checksum == NET_CHECKSUM_RIGHT)
        return true;
    for (unsigned i = 0; i < skb->n_frags; i++)
        k_touch(net->kernel, kaddr_add(skb->frag[i].page->addr, skb->frag[i].offset),
                skb->frag[i].bytes);
    if (skb->checksum == NET_CHECKSUM_WRONG)
        return false;
    skb->checksum = NET_CHECKSUM_RIGHT;
    return true;
}

void net_receive(struct sk_buff *skb)
{
    struct net *net = skb->dev->net;
    if (!net_checksum_right(net, skb)) {
        net->stats.bad_checksums++;
        net->stats.dropped_packets++;
        skb_free(net, skb);
        return;
    }
    if (skb->flow.protocol == PROTOCOL_TCP)
        tcp_receive(net, skb);
    else
        udp_receive(net, skb);
}

void net_deliver(struct net *net, struct sk_buff *skb)
{
    struct net_device *dev = skb->dev;
    if (!dev) { /* gone while the packet was held back */
        net->stats.dropped_packets++;
        skb_free(net, skb);
    } else if (!dev->arfs || !arfs_receive(dev->arfs, dev, skb, skb->queue))
        net_receive(skb);
}

void net_record_flow(struct net *net, const struct socket *socket)
{
    if (net->arfs && socket->rx_hash != 0 && socket->rx_dev && socket->rx_dev->arfs)
        arfs_record(net->arfs, socket->rx_hash);
}

/* ---- Other protocols ------------------------------------------------------------------------- */

static struct net_protocol *protocol_find(struct net *net, uint16_t ether_type)
{
    for (unsigned i = 0; i < NET_PROTOCOLS; i++)
        if (net->protocol[i].fn && net->protocol[i].ether_type == ether_type)
            return &net->protocol[i];
    return NULL;
}

int net_protocol_register(struct net *net, uint16_t ether_type, net_protocol_fn *fn, void *arg)
{
    if (ether_type == ETHER_TYPE_IPV4 || protocol_find(net, ether_type))
        return -EEXIST;
    for (unsigned i = 0; i < NET_PROTOCOLS; i++)
        if (!net->protocol[i].fn && net->protocol[i].running == 0) {
            net->protocol[i] = (struct net_protocol){ ether_type, fn, arg, 0 };
            return 0;
        }
    return -ENOSPC;
}

void net_protocol_unregister(struct net *net, uint16_t ether_type)
{
    struct net_protocol *protocol = protocol_find(net, ether_type);
    if (!protocol)
        return;
    protocol->fn = NULL;
    while (protocol->running > 0) /* synchronize_net() */
        k_sleep(net->kernel, 10 * K_US);
}

bool net_protocol_deliver(struct net *net, struct sk_buff *skb)
{
    struct net_protocol *protocol = protocol_find(net, skb->ether_type);
    if (!protocol)
        return false;
    skb->flow = (struct flow_key){ .protocol = 0 };
    if (skb->time_ps == 0)
        skb->time_ps = k_now_ps(net->kernel);
    protocol->running++;
    protocol->fn(skb, protocol->arg);
    protocol->running--;
    return true;
}

/* ---- After a poll ---------------------------------------------------------------------------- */

void net_cpu_later(struct net *net)
{
    struct net_cpu *cpu = &net->cpu[k_cpu(net->kernel)];
    if (!k_timer_pending(&cpu->timer))
        k_timer_set(&cpu->timer, k_now_ps(net->kernel) + LATER_PS);
}
