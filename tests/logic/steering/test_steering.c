/*
 * Flow steering: no packet overtakes another of its flow and none is lost, whenever readers and
 * senders move; then everything is local. Properties over many seeds, on a device that is as late
 * and as unordered as PCI Express allows.
 */
#include "logic/net/arfs.h"
#include "logic/net/net.h"
#include "logic/net/xps.h"
#include "logic/steering/bonding.h"
#include "logic/steering/octonic.h"
#include "logic/steering/ports.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/test.h"

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
static const struct octonic_device_ops rig_octonic_ops = { .function = rig_function,
                                                           .switch_set = rig_switch_set,
                                                           .switch_delete = rig_switch_delete };

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
static void rig_port_goes(struct rig_port *port)
{
    port->epoch++;
    port->dev.running = false;
    memset(port->filter, 0, sizeof port->filter);
    memset(port->acting, 0, sizeof port->acting);
    rig_drop_rings(port);
    net_device_carrier(&port->dev, false);
}
static void rig_port_comes(struct rig_port *port)
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

static void rig_run(struct rig *rig, uint64_t ps)
{
    fake_run_until(rig->kernel, k_now_ps(rig->kernel) + ps);
}

static void rig_may_move(struct rig *rig, bool may)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        rig->flow[i].may_move = may;
}

/* Nothing comes any more, everything arrives. */
static void rig_quiet(struct rig *rig)
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

/* Seeds of a property: half in the first build, an eighth in the others, which look at the same
 * code for other faults. STEERING_SEEDS in the environment multiplies them. */
static unsigned seeds(unsigned n)
{
    const char *more = getenv("STEERING_SEEDS");
    n = test_rounds(n / 2, 4);
    return more != NULL ? n * (unsigned)atoi(more) : n;
}

static void assert_in_order(const struct rig *rig)
{
    if (rig->overtaken_rx || rig->overtaken_tx)
        print_error("seed %llu\n", (unsigned long long)rig->options.seed);
    assert_int_equal(rig->overtaken_rx, 0);
    assert_int_equal(rig->overtaken_tx, 0);
}

static void assert_nothing_lost(const struct rig *rig)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++) {
        const struct socket *flow = &rig->flow[i];
        if (flow->lost)
            print_error("seed %llu, flow %u\n", (unsigned long long)rig->options.seed, i);
        assert_int_equal(flow->lost, 0);
        assert_true(flow->came == flow->left);
        assert_true(flow->read == flow->left);
        assert_true(flow->made == flow->on_wire);
    }
}

static void assert_local(const struct rig *rig)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++) {
        const struct socket *flow = &rig->flow[i];
        if (flow->last_rxq != rig->up->rx_queue_of_cpu[flow->rx_cpu] ||
            flow->tx_queue != rig->up->xps_queue[flow->tx_cpu])
            print_error("seed %llu, flow %u\n", (unsigned long long)rig->options.seed, i);
        assert_int_equal(flow->last_rxq, rig->up->rx_queue_of_cpu[flow->rx_cpu]);
        assert_int_equal(flow->tx_queue, rig->up->xps_queue[flow->tx_cpu]);
    }
}

/* Everybody moves; nobody does; nothing comes. */
static struct rig *run_phases(const struct rig_options *options)
{
    struct rig *rig = rig_new(options);
    rig_run(rig, FAKE_US(1500));
    rig_may_move(rig, false);
    rig->gap_ps = FAKE_US(20);
    rig_run(rig, FAKE_MS(3));
    rig_quiet(rig);
    return rig;
}

static struct rig_options options_of(unsigned seed)
{
    return (struct rig_options){
        .seed = seed,
        .stall_percent = seed % 3 * 10,
        .stall_ps = FAKE_US(2),
    };
}

static void test_octonic_keeps_order(void **state)
{
    (void)state;
    unsigned n = seeds(100);
    uint64_t held = 0, switched = 0;
    for (unsigned seed = 1; seed <= n; seed++) {
        struct rig_options options = options_of(seed);
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
        assert_int_equal(octonic_stats(rig->octonic).dropped, 0);
        held += arfs_stats(rig->arfs)->held;
        switched += octonic_stats(rig->octonic).added + octonic_stats(rig->octonic).updated;
        rig_free(rig);
    }
    /* It has been put to the test at all. */
    assert_true(switched > 10 * n);
    assert_true(held > 10 * n);
}

/* The load does provoke what the fence prevents. */
static void test_without_the_guard_packets_overtake(void **state)
{
    (void)state;
    uint64_t overtaken = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct rig_options options = options_of(seed);
        options.no_guard = true;
        struct rig *rig = run_phases(&options);
        overtaken += rig->overtaken_rx;
        assert_int_equal(rig->overtaken_tx, 0);
        assert_nothing_lost(rig);
        rig_free(rig);
    }
    assert_true(overtaken > 20);
}

/* A device that says nothing: fences stand for their whole time. */
static void test_device_that_cannot_tell(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.cannot_tell = true;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        assert_true(arfs_stats(rig->arfs)->timeouts > 0);
        rig_free(rig);
    }
}

static void test_one_function_keeps_order(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.alone = true;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
        rig_free(rig);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static unsigned filters_of(const struct rig *rig)
{
    unsigned n = 0;
    for (unsigned p = 0; p < RIG_PORTS; p++)
        for (unsigned i = 0; i < RIG_FLOWS; i++)
            n += rig->port[p].acting[i].used;
    return n;
}

static void test_stale_rules_expire(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.expiry_ps = FAKE_MS(4);
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        /* 25 ms of silence are over; nothing of the flows is left. */
        assert_int_equal(octonic_stats(rig->octonic).rules, 0);
        assert_int_equal(rig->n_rules, 0);
        assert_int_equal(filters_of(rig), 0);
        assert_true(octonic_stats(rig->octonic).expired > 0);
        assert_int_equal(octonic_stats(rig->octonic).failed, 0);
        /* And they come again. */
        rig->receiving = rig->sending = true;
        rig_run(rig, FAKE_MS(3));
        rig->receiving = rig->sending = false;
        rig_run(rig, FAKE_MS(2));
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        rig_free(rig);
    }
}

/* Rules expire all the time, while packets come in: no gap in which one overtakes another. */
static void test_expiry_under_load_keeps_order(void **state)
{
    (void)state;
    uint64_t expired = 0;
    unsigned n = seeds(60);
    for (unsigned seed = 1; seed <= n; seed++) {
        struct rig_options options = options_of(seed);
        options.expiry_ps = FAKE_US(400); /* shorter than many a gap between packets */
        struct rig *rig = rig_new(&options);
        rig->gap_ps = FAKE_US(60);
        rig_run(rig, FAKE_MS(20));
        rig_quiet(rig);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        expired += octonic_stats(rig->octonic).expired;
        rig_free(rig);
    }
    assert_true(expired > n);
}

static void test_full_tables_deliver(void **state)
{
    (void)state;
    uint64_t switch_full = 0, rules_full = 0, refused = 0;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.n_switch = 1 + seed % 3;
        options.n_rules = 2 + seed % 5;
        options.n_filters = 1 + seed % 4;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_true(rig->n_rules <= options.n_switch);
        assert_int_equal(octonic_stats(rig->octonic).rules, rig->n_rules);
        switch_full += octonic_stats(rig->octonic).switch_full;
        rules_full += octonic_stats(rig->octonic).rules_full;
        refused += arfs_stats(rig->arfs)->refused;
        rig_free(rig);
    }
    assert_true(switch_full > 0);
    assert_true(rules_full > 0);
    assert_true(refused > 0);
}

/* Without room for a rule a flow still goes to the CPU that reads it, on the function it has. */
static void test_full_switch_steers_within_the_function(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 10; seed++) {
        struct rig_options options = { .seed = seed, .n_rules = 1 };
        struct rig *rig = rig_new(&options);
        rig_may_move(rig, false);
        rig->gap_ps = FAKE_US(10);
        rig_run(rig, FAKE_MS(4));
        rig_quiet(rig);
        unsigned n_far = 0;
        for (unsigned i = 0; i < RIG_FLOWS; i++) {
            const struct socket *flow = &rig->flow[i];
            assert_int_equal(flow->last_rxq % RIG_QUEUES, flow->rx_cpu);
            n_far += flow->last_rxq < RIG_QUEUES && flow->rx_cpu >= RIG_QUEUES / 2;
        }
        assert_int_equal(octonic_stats(rig->octonic).rules, rig->n_rules);
        assert_true(octonic_stats(rig->octonic).rules_full == 0 || n_far > 0);
        assert_in_order(rig);
        rig_free(rig);
    }
}

/* ---- A function goes away -------------------------------------------------------------------- */

static uint64_t lost_of(const struct rig *rig)
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        lost += rig->flow[i].lost;
    return lost;
}

/* Since the function went: everything arrives, through the others. */
static void assert_lives(struct rig *rig, uint64_t lost, bool back)
{
    uint64_t sent[RIG_FLOWS];
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        sent[i] = rig->flow[i].on_wire;
    rig_run(rig, FAKE_MS(3));
    rig_quiet(rig);
    if (lost != lost_of(rig))
        print_error("seed %llu\n", (unsigned long long)rig->options.seed);
    assert_int_equal(lost_of(rig), lost);
    assert_true(rig->up->carrier && rig->up->running);
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        assert_true(rig->flow[i].on_wire > sent[i]);
    for (unsigned cpu = 0; cpu < RIG_QUEUES && !back; cpu++) {
        assert_true(rig_alive(&rig->port[(unsigned)rig->up->rx_queue_of_cpu[cpu] / RIG_QUEUES]));
        assert_true(rig_alive(&rig->port[(unsigned)rig->up->xps_queue[cpu] / RIG_QUEUES]));
    }
    assert_local(rig);
}

static void run_removal(unsigned seed, bool back)
{
    struct rig_options options = options_of(seed);
    struct rig *rig = rig_new(&options);
    struct rig_port *victim = &rig->port[seed / 2 % RIG_PORTS];
    rig->gap_ps = FAKE_US(5);
    rig_run(rig, 1 + fake_random(rig->kernel, FAKE_MS(2)));
    rig_port_goes(victim);
    if (back) {
        rig_run(rig, 1 + fake_random(rig->kernel, FAKE_MS(1)));
        rig_port_comes(victim);
    }
    rig_run(rig, FAKE_MS(2));
    /* What was in the function, and what came for it until its rules were set anew, is lost. What
     * is under way now is counted as lost until it is there. */
    rig->receiving = false;
    rig_run(rig, FAKE_MS(10));
    uint64_t lost = lost_of(rig);
    rig->receiving = true;
    rig_may_move(rig, false);
    rig->gap_ps = FAKE_US(20);
    assert_lives(rig, lost, back);
    assert_in_order(rig);
    assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
    rig_free(rig);
}

static void test_function_goes_away(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(60); seed++)
        run_removal(seed, false);
}

static void test_function_goes_and_comes_back(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(60); seed++)
        run_removal(seed, true);
}

static void test_no_function_left(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 7 };
    struct rig *rig = rig_new(&options);
    rig_run(rig, FAKE_MS(1));
    rig_port_goes(&rig->port[1]);
    assert_true(rig->up->carrier);
    rig_port_goes(&rig->port[0]);
    assert_false(rig->up->carrier);
    rig_run(rig, FAKE_MS(1));
    rig_port_comes(&rig->port[1]);
    assert_true(rig->up->carrier);
    rig_run(rig, FAKE_MS(2));
    rig->receiving = false;
    rig_run(rig, FAKE_MS(10));
    uint64_t lost = lost_of(rig);
    rig->receiving = true;
    rig->gap_ps = FAKE_US(20);
    rig_may_move(rig, false);
    assert_lives(rig, lost, false);
    assert_in_order(rig);
    rig_free(rig);
}

/* ---- Bonding --------------------------------------------------------------------------------- */

static void test_bond_keeps_flows_on_their_link(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.bond = true;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        unsigned links = 0;
        for (unsigned i = 0; i < RIG_FLOWS; i++) {
            const struct socket *flow = &rig->flow[i];
            unsigned link = bonding_hash(&flow->flow) % RIG_PORTS;
            assert_int_equal(flow->tx_ports, 1u << link);
            assert_int_equal(flow->rx_ports, 1u << i / 2 % RIG_PORTS);
            /* The link stays; the queue on it is the reader's. */
            assert_int_equal(flow->last_rxq, i / 2 % RIG_PORTS * RIG_QUEUES + flow->rx_cpu);
            links |= flow->tx_ports;
        }
        assert_int_equal(links, 3);
        rig_free(rig);
    }
}

static void test_bond_loses_a_link(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(30); seed++) {
        struct rig_options options = options_of(seed);
        options.bond = true;
        struct rig *rig = rig_new(&options);
        rig_run(rig, 1 + fake_random(rig->kernel, FAKE_MS(1)));
        rig_port_goes(&rig->port[1]);
        for (unsigned i = 0; i < RIG_FLOWS; i++)
            rig->flow[i].tx_ports = 0;
        rig_run(rig, FAKE_MS(2));
        for (unsigned i = 0; i < RIG_FLOWS; i++)
            assert_int_equal(rig->flow[i].tx_ports, 1);
        rig_quiet(rig);
        assert_in_order(rig);
        rig_free(rig);
    }
}

/* Documentation/networking/bonding.txt, byte by byte. */
static void test_bond_hash(void **state)
{
    (void)state;
    static const uint8_t packet[2][6] = { { 192, 168, 1, 17, 0x9c, 0x44 },
                                          { 10, 3, 2, 254, 0x13, 0x89 } };
    const struct flow_key flow = { 0xc0a80111, 0x0a0302fe, 0x9c44, 0x1389, 6 };
    uint32_t ports = 0, ips = 0;
    for (unsigned i = 0; i < 4; i++)
        ips |= (uint32_t)(packet[0][i] ^ packet[1][i]) << 8 * i;
    ports = packet[0][4] | (uint32_t)packet[0][5] << 8 | (uint32_t)packet[1][4] << 16 |
            (uint32_t)packet[1][5] << 24;
    uint32_t hash = ports ^ ips;
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    assert_int_equal(bonding_hash(&flow), hash >> 1);
    /* Connections with every second port spread. */
    unsigned n[2] = { 0 };
    for (unsigned i = 0; i < 1000; i++) {
        const struct flow_key f = { 0xc0a80111, 0x0a0302fe, (uint16_t)(32768 + 2 * i), 5001, 6 };
        n[bonding_hash(&f) % 2]++;
    }
    assert_in_range(n[0], 400, 600);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void test_rx_progress(void **state)
{
    (void)state;
    struct net_rx_progress p = { .entries = 8 };
    struct net_rx_mark mark = { 0 };
    assert_true(net_rx_passed(&p, true, &mark));
    mark = (struct net_rx_mark){ 0 };
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 7, false);
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 1, false); /* eight: but some of them may have been taken before the mark */
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 8, false);
    assert_true(net_rx_passed(&p, false, &mark));
    mark = (struct net_rx_mark){ 0 };
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 0, true);
    assert_true(net_rx_passed(&p, false, &mark));
}

static void test_refused_teams(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 1 };
    struct rig *rig = rig_new(&options);
    struct net_device *lower[RIG_PORTS] = { &rig->port[0].dev, &rig->port[1].dev };
    struct net_device dev = { .kernel = rig->kernel }, many[9] = { { 0 } }, *list[9];
    struct ports ports;
    int error = 0;
    assert_null(bonding_new(&rig_net, "bond0", lower, 2, &error)); /* part of octo0 */
    assert_int_equal(error, -EBUSY);
    assert_int_equal(ports_init(&ports, &dev, lower, 0), -EINVAL);
    for (unsigned i = 0; i < 9; i++) {
        many[i].n_tx_queues = many[i].n_rx_queues = 33;
        list[i] = &many[i];
    }
    assert_int_equal(ports_init(&ports, &dev, list, 9), -EINVAL);
    assert_int_equal(ports_init(&ports, &dev, list, 2), -ENOSPC);
    many[0].n_rx_queues = 3;
    assert_int_equal(ports_init(&ports, &dev, list, 1), -EINVAL);
    rig_free(rig);
}

static void test_xps_map(void **state)
{
    (void)state;
    struct fake_options fake = { .n_cpus = 8, .n_nodes = 2 };
    struct kernel *kernel = fake_new(&fake);
    struct net_device dev = { .kernel = kernel, .n_tx_queues = 3 };
    struct socket socket = { .tx_queue = -1 };
    struct sk_buff skb = { .socket = &socket };
    memset(dev.rx_queue_of_cpu, 0xff, sizeof dev.rx_queue_of_cpu);
    dev.rx_queue_of_cpu[5] = 0;
    xps_map_default(&dev);
    assert_int_equal(dev.xps_queue[5], 0);
    assert_int_equal(dev.xps_queue[4], 1);
    assert_int_equal(dev.xps_queue[8], -1);
    fake_on(kernel, 4);
    assert_int_equal(xps_select_queue(&skb, &dev), 1);
    fake_on(kernel, 5);
    assert_int_equal(xps_select_queue(&skb, &dev), 1); /* something is outstanding */
    skb.ooo_okay = true;
    assert_int_equal(xps_select_queue(&skb, &dev), 0);
    assert_int_equal(socket.tx_queue, 0);
    skb.ooo_okay = false;
    socket.tx_queue = 7; /* of another device */
    assert_int_equal(xps_select_queue(&skb, &dev), 0);
    skb.socket = NULL;
    fake_on(kernel, 4);
    assert_int_equal(xps_select_queue(&skb, &dev), 1);
    fake_free(kernel);
}

/* What stands still costs one line per packet and nothing else. */
static void test_cost_where_nothing_moves(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 3 };
    struct rig *rig = rig_new(&options);
    struct sk_buff skb = { .hash = 0x1234, .flow = rig->flow[0].flow };
    fake_on(rig->kernel, 2);
    arfs_record(rig->arfs, skb.hash);
    assert_false(arfs_receive(rig->arfs, rig->up, &skb, 6)); /* where CPU 2 takes its packets */
    uint64_t lines = rig->kernel->lines, cycles = rig->kernel->cycles;
    assert_false(arfs_receive(rig->arfs, rig->up, &skb, 6));
    assert_int_equal(rig->kernel->lines - lines, 1);
    arfs_record(rig->arfs, skb.hash);
    assert_int_equal(rig->kernel->lines - lines, 2);
    assert_int_equal(rig->kernel->cycles, cycles);
    assert_int_equal(arfs_stats(rig->arfs)->steered, 0);
    rig_free(rig);
}

/* More busy flows than entries: those without one are delivered where they come in. */
static void test_table_of_flows_full(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 4 };
    struct rig *rig = rig_new(&options);
    for (uint32_t i = 1; i <= 200; i++) {
        struct sk_buff skb = { .hash = i };
        assert_false(arfs_receive(rig->arfs, rig->up, &skb, 3));
    }
    assert_int_equal(arfs_stats(rig->arfs)->untracked, 200 - 64);
    rig->receiving = false;
    rig_run(rig, FAKE_MS(30)); /* entries of quiet flows are used again */
    struct sk_buff skb = { .hash = 1000 };
    assert_false(arfs_receive(rig->arfs, rig->up, &skb, 3));
    assert_int_equal(arfs_stats(rig->arfs)->untracked, 200 - 64);
    rig_free(rig);
}

/* What a fence holds of a device that goes is freed there and then, and its timer finds nothing. */
static void test_device_goes_with_what_is_held(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 5, .cannot_tell = true };
    struct rig *rig = rig_new(&options);
    rig->receiving = rig->sending = false;
    rig_run(rig, FAKE_MS(5));
    struct sk_buff first = { .hash = 99, .time_ps = 1 };
    assert_false(arfs_receive(rig->arfs, rig->up, &first, 0));
    for (unsigned i = 0; i < 3; i++) {
        struct sk_buff *skb = k_zalloc(sizeof *skb);
        skb->hash = 99;
        skb->time_ps = 2 + i;
        rig->allocated++;
        assert_true(arfs_receive(rig->arfs, rig->up, skb, 1)); /* another queue: held */
    }
    const uint64_t freed = rig->freed;
    arfs_device_gone(rig->arfs, rig->up);
    assert_int_equal(rig->freed, freed + 3);
    rig_run(rig, FAKE_MS(5));
    assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
    /* The flow is new to whatever device it comes in on next. */
    assert_false(arfs_receive(rig->arfs, rig->up, &first, 1));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_octonic_keeps_order),
        cmocka_unit_test(test_without_the_guard_packets_overtake),
        cmocka_unit_test(test_device_that_cannot_tell),
        cmocka_unit_test(test_one_function_keeps_order),
        cmocka_unit_test(test_stale_rules_expire),
        cmocka_unit_test(test_expiry_under_load_keeps_order),
        cmocka_unit_test(test_full_tables_deliver),
        cmocka_unit_test(test_full_switch_steers_within_the_function),
        cmocka_unit_test(test_function_goes_away),
        cmocka_unit_test(test_function_goes_and_comes_back),
        cmocka_unit_test(test_no_function_left),
        cmocka_unit_test(test_bond_keeps_flows_on_their_link),
        cmocka_unit_test(test_bond_loses_a_link),
        cmocka_unit_test(test_bond_hash),
        cmocka_unit_test(test_rx_progress),
        cmocka_unit_test(test_refused_teams),
        cmocka_unit_test(test_xps_map),
        cmocka_unit_test(test_cost_where_nothing_moves),
        cmocka_unit_test(test_table_of_flows_full),
        cmocka_unit_test(test_device_goes_with_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
