/*
 * A host with an adapter of several functions (or several adapters) for the tests of steering: real
 * logic/steering over the fake kernel, a stack that only counts, and a device that is as nasty as
 * PCI Express allows: packets wait in each function for a random time before they are in the queue,
 * rules begin to act at random times after they were asked for, interrupts come late. To be
 * included by one file of a test.
 *
 * Each flow has a receiver and a sender thread, which move between CPUs as the test likes. Packets
 * carry a number; the order is checked where a packet enters and leaves the protocol, and on the
 * wire.
 */
#ifndef TESTS_MODEL_STEERING_RIG_H
#define TESTS_MODEL_STEERING_RIG_H

#include "logic/net/arfs.h"
#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/steering/bonding.h"
#include "logic/steering/octonic.h"
#include "logic/steering/ports.h"
#include "tests/model/fake_kapi.h"

#define RIG_FLOWS  6u
#define RIG_PORTS  2u
#define RIG_QUEUES 4u
#define RIG_SENDQ  4u /* packets of a send queue at most */
#define RIG_MTU    1500u

struct rig_options {
    uint64_t seed;
    bool bond, alone; /* alone: the first port without anything above; else: octoNIC */
    bool no_guard;    /* the device claims that everything has passed */
    bool cannot_tell; /* it has no rx_passed */
    unsigned n_switch, n_filters, n_rules; /* sizes of tables; 0: enough */
    uint64_t expiry_ps;                    /* 0: never within a test */
    unsigned stall_percent;
    uint64_t stall_ps; /* 0: the fake's */
};

struct rig_queue {
    struct rig_port *port;
    struct k_irq *irq;
    struct k_napi napi;
    struct net_rx_progress progress;
    struct sk_buff *ring, **ring_tail;
    struct sk_buff *gro, **gro_tail;
    bool armed;
    struct sk_buff *sent, **sent_tail; /* under way to the wire */
    unsigned n_sent;
    uint64_t wire_free_ps;
};
struct rig_filter {
    bool used;
    uint16_t queue;
    uint32_t flow_id;
};
struct rig_port {
    struct net_device dev;
    struct rig *rig;
    unsigned number;
    struct k_pci_dev pci;
    struct rig_queue queue[RIG_QUEUES];
    uint64_t pipe_free_ps;               /* when what has come in is in host memory */
    unsigned epoch;                      /* of its lives: what is in the pipe goes with it */
    struct rig_filter filter[RIG_FLOWS]; /* of the driver, and, once it acts, of the device */
    struct rig_filter acting[RIG_FLOWS];
};
struct socket { /* one end of a flow */
    struct rig *rig;
    struct flow_key flow;
    uint32_t hash;
    int tx_queue;
    unsigned outstanding;
    struct k_wait_queue readable, writable;
    struct k_thread *receiver, *sender;
    bool may_move;
    unsigned tx_cpu, rx_cpu;
    uint64_t came, entered, left, lost; /* received: at the port, into, out of the protocol */
    uint64_t read;
    uint64_t made, on_wire;      /* sent */
    unsigned rx_ports, tx_ports; /* masks */
    uint16_t last_rxq;
    int rule; /* of the switch: port, -1 none */
};
struct rig {
    struct kernel *kernel;
    struct net_device *up; /* what the stack sees */
    struct arfs *arfs;
    struct octonic *octonic;
    struct bonding *bond;
    struct rig_options options;
    struct rig_port port[RIG_PORTS];
    struct socket flow[RIG_FLOWS];
    struct k_work filter_scan;
    unsigned n_rules;
    uint64_t overtaken_rx, overtaken_tx, allocated, freed, gap_ps;
    bool receiving, sending, over;
    struct k_wait_queue room; /* senders whose queue was stopped */
};
struct net {
    struct rig *rig;
};
static struct net rig_net;

static bool rig_alive(const struct rig_port *port)
{
    return port->dev.running && port->dev.carrier;
}

/* ---- The stack ------------------------------------------------------------------------------- */

struct kernel *net_kernel(struct net *net)
{
    return net->rig->kernel;
}
int net_device_register(struct net *net, struct net_device *dev)
{
    dev->net = net;
    dev->arfs = net->rig->arfs;
    return 0;
}
void net_device_unregister(struct net_device *dev)
{
    arfs_device_gone(dev->arfs, dev);
    dev->net = NULL;
}
void net_device_carrier(struct net_device *dev, bool carrier)
{
    dev->carrier = carrier;
    if (dev->upper != NULL)
        dev->upper->ops->lower_changed(dev->upper, dev);
}
void net_queue_wake(struct net_device *dev, uint16_t queue)
{
    dev->queue_stopped[queue] = false;
    if (dev->upper != NULL)
        net_queue_wake(dev->upper, (uint16_t)(dev->upper_queue + queue));
    k_wake(dev->kernel, &rig_net.rig->room);
}
int socket_tx_queue(const struct socket *socket)
{
    return socket->tx_queue;
}
void socket_set_tx_queue(struct socket *socket, int queue)
{
    socket->tx_queue = queue;
}
static struct sk_buff *rig_skb(struct rig *rig, struct socket *flow)
{
    struct sk_buff *skb = k_zalloc(sizeof *skb);
    skb->flow = flow->flow;
    skb->hash = flow->hash;
    skb->private_data = flow;
    rig->allocated++;
    return skb;
}
void skb_free(struct net *net, struct sk_buff *skb)
{
    struct socket *flow = skb->socket;
    net->rig->freed++;
    if (flow != NULL) {
        flow->outstanding--;
        k_wake(net->rig->kernel, &flow->writable);
    }
    k_free(skb);
}

/* The protocol. Packets of a flow enter one after the other, in their order. */
void net_receive(struct sk_buff *skb)
{
    struct socket *flow = skb->private_data;
    struct rig *rig = flow->rig;
    rig->overtaken_rx += skb->sequence < flow->entered;
    flow->entered = skb->sequence + 1;
    flow->last_rxq = skb->queue;
    k_compute(rig->kernel, 300);
    rig->overtaken_rx += skb->sequence < flow->left;
    flow->left = skb->sequence + 1;
    flow->lost--;
    skb_free(&rig_net, skb);
    k_wake(rig->kernel, &flow->readable);
}

static void rig_up(struct rig *rig, struct sk_buff *skb)
{
    struct net_device *dev = skb->dev;
    struct socket *flow = skb->private_data;
    flow->rx_ports |= 1u << K_CONTAINER(dev, struct rig_port, dev)->number;
    if (dev->upper != NULL) {
        skb->queue = (uint16_t)(skb->queue + dev->upper_queue);
        skb->dev = dev->upper;
    }
    if (!arfs_receive(rig->arfs, skb->dev, skb, skb->queue))
        net_receive(skb);
}

/* ---- The device and its driver: receive ------------------------------------------------------ */

static void rig_handler(void *arg)
{
    struct rig_queue *queue = arg;
    k_compute(queue->port->rig->kernel, 50);
    k_napi_schedule(&queue->napi);
}

static void rig_raise(void *arg)
{
    struct rig_queue *queue = arg;
    struct rig_port *port = queue->port;
    fake_irq_raise(port->rig->kernel, &port->pci, (unsigned)(queue - port->queue));
}

/* At once, or moderated. */
static void rig_interrupt(struct rig_queue *queue)
{
    struct kernel *kernel = queue->port->rig->kernel;
    if (!queue->armed || queue->ring == NULL)
        return;
    queue->armed = false;
    uint64_t wait = fake_random(kernel, 3) == 0 ? FAKE_US(120) : FAKE_US(4);
    fake_at(kernel, k_now_ps(kernel) + fake_random(kernel, wait), rig_raise, queue);
}

static void rig_gro_flush(struct rig_queue *queue)
{
    while (queue->gro != NULL) {
        struct sk_buff *skb = queue->gro;
        queue->gro = skb->next;
        if (queue->gro == NULL)
            queue->gro_tail = &queue->gro;
        skb->next = NULL;
        rig_up(queue->port->rig, skb);
    }
}

static int rig_poll(struct k_napi *napi, int budget)
{
    struct rig_queue *queue = K_CONTAINER(napi, struct rig_queue, napi);
    struct rig *rig = queue->port->rig;
    int done = 0;
    k_compute(rig->kernel, 100);
    while (done < budget && queue->ring != NULL) {
        struct sk_buff *skb = queue->ring;
        queue->ring = skb->next;
        if (queue->ring == NULL)
            queue->ring_tail = &queue->ring;
        skb->next = NULL;
        *queue->gro_tail = skb; /* held back, as if to be merged */
        queue->gro_tail = &skb->next;
        k_compute(rig->kernel, 200);
        if (fake_random(rig->kernel, 3) == 0)
            rig_gro_flush(queue);
        done++;
    }
    rig_gro_flush(queue);
    net_rx_polled(&queue->progress, (uint32_t)done, queue->ring == NULL);
    if (done < budget && k_napi_complete(napi)) {
        queue->armed = true;
        rig_interrupt(queue);
    }
    return done;
}

static bool rig_rx_passed(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark)
{
    struct rig_port *port = K_CONTAINER(dev, struct rig_port, dev);
    struct rig_queue *queue = &port->queue[rxq];
    if (port->rig->options.no_guard)
        return true;
    return net_rx_passed(&queue->progress, !queue->napi.scheduled && queue->ring == NULL, mark);
}

struct rig_transfer { /* a packet on its way to host memory */
    struct rig_queue *queue;
    struct sk_buff *skb;
    unsigned epoch;
};

static void rig_written(void *arg)
{
    struct rig_transfer *t = arg;
    struct rig_queue *queue = t->queue;
    if (t->epoch == queue->port->epoch && rig_alive(queue->port)) {
        *queue->ring_tail = t->skb;
        queue->ring_tail = &t->skb->next;
        rig_interrupt(queue);
    } else {
        skb_free(&rig_net, t->skb);
    }
    free(t);
}

static unsigned rig_number(const struct socket *flow)
{
    return (unsigned)(flow - flow->rig->flow);
}

/* Without a rule: the first function that is there; a bond's partner has its own idea. */
static struct rig_port *rig_port_for(const struct socket *flow)
{
    struct rig *rig = flow->rig;
    if (rig->options.alone)
        return &rig->port[0];
    if (rig->options.bond)
        return &rig->port[rig_number(flow) / 2 % RIG_PORTS];
    if (flow->rule >= 0)
        return &rig->port[flow->rule];
    return rig_alive(&rig->port[0]) ? &rig->port[0] : &rig->port[1];
}

static void rig_arrive(struct socket *flow)
{
    struct rig *rig = flow->rig;
    struct kernel *kernel = rig->kernel;
    struct rig_port *port = rig_port_for(flow);
    const struct rig_filter *filter = &port->acting[rig_number(flow)];
    struct sk_buff *skb = rig_skb(rig, flow);
    struct rig_transfer *t = k_zalloc(sizeof *t);
    uint64_t now = k_now_ps(kernel);

    skb->dev = &port->dev;
    skb->queue = filter->used ? filter->queue : (uint16_t)((flow->hash >> 3) % RIG_QUEUES);
    skb->time_ps = now;
    skb->sequence = flow->came++;
    flow->lost++;
    if (!rig_alive(port)) {
        skb_free(&rig_net, skb);
        k_free(t);
        return;
    }
    if (port->pipe_free_ps < now)
        port->pipe_free_ps = now;
    /* In its order within a function; now and then the function's link is slow. */
    port->pipe_free_ps += fake_random(kernel, 30) == 0 ? fake_random(kernel, FAKE_US(60))
                                                       : fake_random(kernel, FAKE_US(1));
    *t = (struct rig_transfer){ &port->queue[skb->queue], skb, port->epoch };
    fake_at(kernel, port->pipe_free_ps + 1, rig_written, t);
}

static void rig_wire(void *arg)
{
    struct rig *rig = arg;
    if (rig->over)
        return;
    struct socket *flow = &rig->flow[fake_random(rig->kernel, RIG_FLOWS)];
    if (rig->receiving)
        for (unsigned n = (unsigned)fake_random(rig->kernel, 4); n-- > 0;)
            rig_arrive(flow);
    fake_at(rig->kernel, k_now_ps(rig->kernel) + 1 + fake_random(rig->kernel, 2 * rig->gap_ps),
            rig_wire, rig);
}

/* ---- Filters and rules ----------------------------------------------------------------------- */

struct rig_change {
    struct rig_port *port;
    unsigned number;
};

static void rig_filter_acts(void *arg)
{
    struct rig_change *c = arg;
    c->port->acting[c->number] = c->port->filter[c->number];
    free(c);
}

static void rig_filter_change(struct rig_port *port, unsigned number)
{
    struct kernel *kernel = port->rig->kernel;
    struct rig_change *c = k_zalloc(sizeof *c);
    *c = (struct rig_change){ port, number };
    fake_at(kernel, k_now_ps(kernel) + fake_random(kernel, FAKE_US(40)), rig_filter_acts, c);
}

/* RIG_FLOWS: none. */
static unsigned rig_flow_of(const struct rig *rig, const struct flow_key *key)
{
    unsigned i = 0;
    while (i < RIG_FLOWS && !flow_key_equal(&rig->flow[i].flow, key))
        i++;
    return i;
}

static int rig_flow_steer(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq,
                          uint32_t flow_id)
{
    struct rig_port *port = K_CONTAINER(dev, struct rig_port, dev);
    struct rig *rig = port->rig;
    unsigned number = rig_flow_of(rig, &skb->flow), n = 0;
    struct rig_filter *filter = &port->filter[number];
    k_compute(rig->kernel, 100);
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        n += port->filter[i].used;
    if (!filter->used && rig->options.n_filters != 0 && n >= rig->options.n_filters)
        return -ENOSPC;
    *filter = (struct rig_filter){ true, rxq, flow_id };
    rig_filter_change(port, number);
    return (int)number;
}

static void rig_scan_filters(struct k_work *work)
{
    struct rig *rig = K_CONTAINER(work, struct rig, filter_scan);
    for (unsigned p = 0; p < RIG_PORTS; p++)
        for (unsigned i = 0; i < RIG_FLOWS; i++) {
            struct rig_filter *filter = &rig->port[p].filter[i];
            if (filter->used && arfs_may_expire(rig->arfs, &rig->port[p].dev, filter->queue,
                                                filter->flow_id, (int)i)) {
                filter->used = false;
                rig_filter_change(&rig->port[p], i);
            }
        }
}

static void rig_scan(void *arg)
{
    struct rig *rig = arg;
    k_work_queue(rig->kernel, &rig->filter_scan, 1);
    fake_at(rig->kernel, k_now_ps(rig->kernel) + FAKE_MS(1), rig_scan, rig);
}

static int rig_rule_change(struct rig *rig, unsigned number, int rule)
{
    struct socket *flow = &rig->flow[number];
    if (number == RIG_FLOWS || (rule < 0 && flow->rule < 0))
        return -ENOENT;
    if (flow->rule < 0 && rig->options.n_switch != 0 && rig->n_rules >= rig->options.n_switch)
        return -ENOSPC;
    rig->n_rules += (unsigned)(flow->rule < 0) - (unsigned)(rule < 0);
    flow->rule = rule;
    return 0;
}

/* The command acts; its report comes behind what is on its way to the function's queues. */
static int rig_command(struct rig_port *port, const struct flow_key *key, int rule)
{
    struct rig *rig = port->rig;
    unsigned epoch = port->epoch;
    k_sleep(rig->kernel, fake_random(rig->kernel, FAKE_US(20)));
    if (epoch != port->epoch || !rig_alive(port))
        return -ENODEV;
    int error = rig_rule_change(rig, rig_flow_of(rig, key), rule);
    uint64_t now = k_now_ps(rig->kernel);
    k_sleep(rig->kernel, (port->pipe_free_ps > now ? port->pipe_free_ps - now : 0) + 2 +
                             fake_random(rig->kernel, FAKE_US(20)));
    return epoch == port->epoch ? error : -ENODEV;
}
static unsigned rig_function(const struct net_device *dev)
{
    return K_CONTAINER(dev, struct rig_port, dev)->number;
}
static int rig_switch_set(struct net_device *dev, const struct flow_key *key, unsigned function)
{
    struct rig_port *port = K_CONTAINER(dev, struct rig_port, dev);
    return rig_command(port, key, (int)function);
}
static int rig_switch_delete(struct net_device *dev, const struct flow_key *key)
{
    struct rig_port *port = K_CONTAINER(dev, struct rig_port, dev);
    return rig_command(port, key, -1);
}
static const struct octonic_device_ops rig_octonic_ops = { rig_function, rig_switch_set,
                                                           rig_switch_delete };

/* ---- Transmit -------------------------------------------------------------------------------- */

static void rig_sent(void *arg)
{
    struct rig_transfer *t = arg;
    struct rig_queue *queue = t->queue;
    struct rig_port *port = queue->port;
    if (t->epoch == port->epoch) {
        struct sk_buff *skb = queue->sent;
        struct socket *flow = skb->private_data;
        queue->sent = skb->next;
        if (queue->sent == NULL)
            queue->sent_tail = &queue->sent;
        port->rig->overtaken_tx += skb->sequence < flow->on_wire;
        flow->on_wire = skb->sequence + 1;
        flow->tx_ports |= 1u << port->number;
        skb_free(&rig_net, skb);
        queue->n_sent--;
        net_queue_wake(&port->dev, (uint16_t)(queue - port->queue));
    }
    free(t);
}

static enum net_xmit rig_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
    struct rig_port *port = K_CONTAINER(dev, struct rig_port, dev);
    struct kernel *kernel = port->rig->kernel;
    struct rig_queue *queue = &port->queue[skb->queue];
    struct rig_transfer *t;
    uint64_t now = k_now_ps(kernel);
    if (queue->n_sent == RIG_SENDQ) {
        net_queue_stop(dev, skb->queue);
        return NET_XMIT_BUSY;
    }
    skb->next = NULL;
    *queue->sent_tail = skb;
    queue->sent_tail = &skb->next;
    if (++queue->n_sent == RIG_SENDQ)
        net_queue_stop(dev, skb->queue);
    if (queue->wire_free_ps < now)
        queue->wire_free_ps = now;
    queue->wire_free_ps += fake_random(kernel, FAKE_US(15));
    t = k_zalloc(sizeof *t);
    *t = (struct rig_transfer){ queue, NULL, port->epoch };
    fake_at(kernel, queue->wire_free_ps, rig_sent, t);
    k_compute(kernel, 200);
    return NET_XMIT_OK;
}

static void rig_send(struct socket *flow)
{
    struct rig *rig = flow->rig;
    struct sk_buff *skb = rig_skb(rig, flow);
    skb->socket = flow;
    skb->dev = rig->up;
    skb->sequence = flow->made++;
    skb->ooo_okay = flow->outstanding++ == 0;
    k_bh_disable(rig->kernel);
    skb->queue = rig->up->ops->select_queue != NULL ? rig->up->ops->select_queue(skb, rig->up)
                                                    : xps_select_queue(skb, rig->up);
    uint16_t queue = skb->queue;
    while (rig->up->queue_stopped[queue] ||
           rig->up->ops->start_xmit(skb, rig->up) == NET_XMIT_BUSY) {
        k_bh_enable(rig->kernel);
        if (rig->up->queue_stopped[queue])
            k_wait(rig->kernel, &rig->room, UINT64_MAX);
        k_bh_disable(rig->kernel);
    }
    k_bh_enable(rig->kernel);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void rig_maybe_move(struct socket *flow, unsigned *cpu, unsigned one_in)
{
    struct kernel *kernel = flow->rig->kernel;
    if (!flow->may_move || fake_random(kernel, one_in) != 0)
        return;
    *cpu = (unsigned)fake_random(kernel, k_n_cpus(kernel));
    k_thread_set_cpu(k_thread_self(kernel), *cpu);
}

static void rig_receiver(void *arg)
{
    struct socket *flow = arg;
    struct kernel *kernel = flow->rig->kernel;
    for (;;) {
        while (flow->left == flow->read)
            k_wait(kernel, &flow->readable, UINT64_MAX);
        arfs_record(flow->rig->arfs, flow->hash);
        flow->read = flow->left;
        k_compute(kernel, 300);
        rig_maybe_move(flow, &flow->rx_cpu, 12);
    }
}

static void rig_sender(void *arg)
{
    struct socket *flow = arg;
    struct rig *rig = flow->rig;
    for (;;) {
        if (rig->sending)
            rig_send(flow);
        rig_maybe_move(flow, &flow->tx_cpu, 12);
        /* Bursts, and pauses in which everything is sent. */
        uint64_t pause = fake_random(rig->kernel, 8) == 0 ? FAKE_US(100) : FAKE_US(4);
        k_sleep(rig->kernel, 1 + fake_random(rig->kernel, pause));
        while (flow->outstanding > 12)
            k_wait(rig->kernel, &flow->writable, UINT64_MAX);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void rig_drop_rings(struct rig_port *port)
{
    for (unsigned q = 0; q < RIG_QUEUES; q++) {
        struct rig_queue *queue = &port->queue[q];
        for (struct sk_buff *next, *skb = queue->ring; skb != NULL; skb = next) {
            next = skb->next;
            skb_free(&rig_net, skb);
        }
        queue->ring = NULL;
        queue->ring_tail = &queue->ring;
        for (struct sk_buff *next, *skb = queue->sent; skb != NULL; skb = next) {
            next = skb->next;
            skb_free(&rig_net, skb);
        }
        queue->sent = NULL;
        queue->sent_tail = &queue->sent;
        queue->n_sent = 0;
        net_queue_wake(&port->dev, (uint16_t)q);
    }
}

/* Surprise removal, return. */
static inline void rig_port_goes(struct rig_port *port)
{
    port->epoch++;
    port->dev.running = false;
    memset(port->filter, 0, sizeof port->filter);
    memset(port->acting, 0, sizeof port->acting);
    rig_drop_rings(port);
    net_device_carrier(&port->dev, false);
}
static inline void rig_port_comes(struct rig_port *port)
{
    port->dev.running = true;
    net_device_carrier(&port->dev, true);
}

static int rig_open(struct net_device *dev)
{
    dev->running = true;
    return 0;
}
static void rig_stop(struct net_device *dev)
{
    dev->running = false;
}
static const struct net_device_ops rig_ops = {
    .open = rig_open,
    .stop = rig_stop,
    .start_xmit = rig_start_xmit,
    .rx_flow_steer = rig_flow_steer,
    .rx_passed = rig_rx_passed,
};
static const struct net_device_ops rig_ops_cannot_tell = {
    .open = rig_open,
    .stop = rig_stop,
    .start_xmit = rig_start_xmit,
    .rx_flow_steer = rig_flow_steer,
};

static void rig_make_port(struct rig *rig, unsigned number)
{
    struct rig_port *port = &rig->port[number];
    struct kernel *kernel = rig->kernel;
    port->rig = rig;
    port->number = number;
    port->pci.device.node = (int)number;
    port->dev = (struct net_device){
        .kernel = kernel,
        .name = "pf",
        .ops = rig->options.cannot_tell ? &rig_ops_cannot_tell : &rig_ops,
        .device = &port->pci.device,
        .mtu_bytes = RIG_MTU,
        .features = NET_FEATURE_ARFS | NET_FEATURE_TSO,
        .n_tx_queues = RIG_QUEUES,
        .n_rx_queues = RIG_QUEUES,
        .carrier = true,
    };
    k_pci_add(kernel, &port->pci);
    for (unsigned q = 0; q < RIG_QUEUES; q++) {
        struct rig_queue *queue = &port->queue[q];
        *queue = (struct rig_queue){ .port = port, .armed = true, .progress.entries = 32 };
        queue->ring_tail = &queue->ring;
        queue->gro_tail = &queue->gro;
        queue->sent_tail = &queue->sent;
        k_napi_init(&queue->napi, kernel, rig_poll);
        k_irq_request(&port->pci, q, q, rig_handler, queue, &queue->irq);
        port->dev.rx_queue_of_cpu[q] = (int16_t)q;
    }
    xps_map_default(&port->dev);
    net_device_register(&rig_net, &port->dev);
}

static void rig_make_upper(struct rig *rig)
{
    const struct rig_options *options = &rig->options;
    struct net_device *lower[RIG_PORTS];
    int error = 0;
    for (unsigned i = 0; i < RIG_PORTS; i++)
        lower[i] = &rig->port[i].dev;
    if (options->alone) {
        rig->up = lower[0];
    } else if (options->bond) {
        rig->bond = bonding_new(&rig_net, "bond0", lower, RIG_PORTS, &error);
        rig->up = bonding_device(rig->bond);
    } else {
        struct octonic_params params = octonic_params_default;
        params.n_rules = options->n_rules ? options->n_rules : 64;
        params.scan_ps = FAKE_MS(1);
        params.worker_cpu = 1;
        rig->octonic = octonic_new(&rig_net, "octo0", &params, &rig_octonic_ops, lower, RIG_PORTS,
                                   &error);
        rig->up = octonic_device(rig->octonic);
    }
    if (error == 0)
        error = rig->up->ops->open(rig->up);
    if (error)
        abort();
}

static void rig_make_flow(struct rig *rig, unsigned i)
{
    struct kernel *kernel = rig->kernel;
    struct socket *flow = &rig->flow[i];
    *flow = (struct socket){
        .rig = rig,
        .flow = { 0x0a000001, 0x0a000002, (uint16_t)(40000 + 2 * i), 5001, 6 },
        .hash = (uint32_t)fake_random(kernel, 0xffffff) << 3 | (i + 1), /* no two in one set */
        .tx_queue = -1,
        .rule = -1,
        .may_move = true,
        .rx_cpu = (unsigned)fake_random(kernel, k_n_cpus(kernel)),
        .tx_cpu = (unsigned)fake_random(kernel, k_n_cpus(kernel)),
    };
    flow->receiver = k_thread_new(kernel, "receiver", (int)flow->rx_cpu, rig_receiver, flow);
    flow->sender = k_thread_new(kernel, "sender", (int)flow->tx_cpu, rig_sender, flow);
}

static struct rig *rig_new(const struct rig_options *options)
{
    struct rig *rig = k_zalloc(sizeof *rig);
    struct fake_options fake = {
        .seed = options->seed,
        .n_cpus = RIG_QUEUES,
        .n_nodes = RIG_PORTS,
        .stall_percent = options->stall_percent,
        .stall_ps = options->stall_ps,
    };
    struct arfs_params params = arfs_params_default;
    rig_net.rig = rig;
    rig->options = *options;
    rig->kernel = fake_new(&fake);
    rig->gap_ps = FAKE_US(3);
    rig->receiving = rig->sending = true;
    rig->filter_scan.fn = rig_scan_filters;
    params.n_flows = 64;
    params.retry_ps = FAKE_US(300);
    params.expiry_ps = options->expiry_ps ? options->expiry_ps : FAKE_MS(100000);
    params.scan_ps = FAKE_MS(1);
    params.fence_ps = options->cannot_tell ? FAKE_US(500) : FAKE_MS(20);
    rig->arfs = arfs_new(rig->kernel, &params);
    for (unsigned i = 0; i < RIG_PORTS; i++)
        rig_make_port(rig, i);
    rig_make_upper(rig);
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        rig_make_flow(rig, i);
    fake_at(rig->kernel, 0, rig_wire, rig);
    if (options->expiry_ps)
        fake_at(rig->kernel, 0, rig_scan, rig);
    return rig;
}

static inline void rig_run(struct rig *rig, uint64_t ps)
{
    fake_run_until(rig->kernel, k_now_ps(rig->kernel) + ps);
}

static inline void rig_may_move(struct rig *rig, bool may)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        rig->flow[i].may_move = may;
}

/* Nothing comes any more, everything arrives. */
static inline void rig_quiet(struct rig *rig)
{
    rig->receiving = rig->sending = false;
    rig_run(rig, FAKE_MS(25));
}

static void rig_free(struct rig *rig)
{
    rig_quiet(rig);
    rig->over = true;
    rig_run(rig, FAKE_MS(1));
    if (rig->octonic != NULL)
        octonic_free(rig->octonic);
    if (rig->bond != NULL)
        bonding_free(rig->bond);
    arfs_free(rig->arfs);
    for (unsigned i = 0; i < RIG_PORTS; i++)
        rig_drop_rings(&rig->port[i]);
    if (rig->allocated != rig->freed)
        k_fault(rig->kernel, "%llu packets made, %llu freed", (unsigned long long)rig->allocated,
                (unsigned long long)rig->freed);
    fake_free(rig->kernel);
    k_free(rig);
}

#endif
