/*
 * Link aggregation.
 *
 * What it does: Mode 802.3ad with xmit_hash_policy layer3+4 of Linux 4.14's bonding driver:
 *   bond_xmit_hash() over the slaves of the active aggregator in their order. A link that fails
 *   leaves it, and all flows are distributed again over the others.
 * Leaves out: LACP's packets and timers (the group is configured), several aggregators.
 * Follows: Linux 4.14 drivers/net/bonding/bond_main.c; Documentation/networking/bonding.txt.
 */
#include "logic/steering/bonding.h"

#include "logic/net/xps.h"
#include "logic/steering/ports.h"

struct bonding {
    struct net_device dev;
    struct ports ports;
    struct net_mac own_mac[PORTS_MAX]; /* of the devices below, before they took the bond's */
    unsigned active[PORTS_MAX], n_active;
};

static struct bonding *of(struct net_device *dev)
{
    return K_CONTAINER(dev, struct bonding, dev);
}

/* The driver takes addresses and ports as they lie in the packet, as 32-bit words of a
 * little-endian machine. */
static uint32_t as_in_packet(uint32_t value)
{
    return __builtin_bswap32(value);
}

uint32_t bonding_hash(const struct flow_key *flow)
{
    uint32_t hash = as_in_packet((uint32_t)flow->source_port << 16 | flow->destination_port);
    hash ^= as_in_packet(flow->destination_ip) ^ as_in_packet(flow->source_ip);
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    return hash >> 1; /* ports of outgoing connections are mostly of one parity */
}

static uint16_t select_queue(struct sk_buff *skb, struct net_device *dev)
{
    struct bonding *bond = of(dev);
    if (bond->n_active == 0)
        return 0;
    unsigned port = bond->active[bonding_hash(&skb->flow) % bond->n_active];
    uint16_t best = ports_tx_queue(&bond->ports, port, k_cpu(dev->kernel));
    uint16_t queue = xps_keep_or_take(skb, dev, best);
    if (ports_of_queue(&bond->ports, queue) == port)
        return queue;
    /* The links have changed, or the socket has sent to another address before. */
    socket_set_tx_queue(skb->socket, best);
    return best;
}

static enum net_xmit xmit(struct sk_buff *skb, struct net_device *dev)
{
    return ports_xmit(&of(dev)->ports, skb);
}

static int rx_queue_for(struct net_device *dev, unsigned cpu, uint16_t rxq)
{
    struct ports *ports = &of(dev)->ports;
    return ports_rx_queue(ports, ports_of_queue(ports, rxq), cpu);
}

static int steer(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq, uint32_t flow_id)
{
    struct ports *ports = &of(dev)->ports;
    struct net_device *lower = ports->lower[ports_of_queue(ports, rxq)];
    return lower->ops->rx_flow_steer(lower, skb, (uint16_t)(rxq - lower->upper_queue), flow_id);
}

static bool rx_passed(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark)
{
    return ports_rx_passed(&of(dev)->ports, rxq, mark);
}

static void map_links(struct bonding *bond)
{
    bond->n_active = 0;
    for (unsigned i = 0; i < bond->ports.n; i++)
        if (ports_alive(&bond->ports, i))
            bond->active[bond->n_active++] = i;
}

static void lower_changed(struct net_device *dev, struct net_device *lower)
{
    struct bonding *bond = of(dev);
    for (unsigned i = 0; i < bond->ports.n; i++)
        if (bond->ports.lower[i] == lower) {
            map_links(bond);
            ports_changed(&bond->ports, i);
        }
}

static int open(struct net_device *dev)
{
    struct bonding *bond = of(dev);
    int error = ports_open(&bond->ports);
    map_links(bond);
    return error;
}

static void stop(struct net_device *dev)
{
    ports_stop(&of(dev)->ports);
}

static const struct net_device_ops bonding_ops = {
    .open = open,
    .stop = stop,
    .start_xmit = xmit,
    .select_queue = select_queue,
    .rx_flow_steer = steer,
    .rx_queue_for = rx_queue_for,
    .rx_passed = rx_passed,
    .lower_changed = lower_changed,
};

static void give_back_addresses(struct bonding *bond, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct net_device *lower = bond->ports.lower[i];
        if (lower->ops->set_mac != NULL)
            lower->ops->set_mac(lower, &bond->own_mac[i]);
    }
}

/* All devices take the address of the first, the bond's: the partner knows one. */
static int take_address(struct bonding *bond)
{
    for (unsigned i = 0; i < bond->ports.n; i++) {
        struct net_device *lower = bond->ports.lower[i];
        bond->own_mac[i] = lower->mac;
        if (i == 0 || lower->ops->set_mac == NULL)
            continue;
        int error = lower->ops->set_mac(lower, &bond->dev.mac);
        if (error) {
            give_back_addresses(bond, i);
            return error;
        }
    }
    return 0;
}

struct bonding *bonding_new(struct net *net, const char *name, struct net_device *const *lower,
                            unsigned n, int *error)
{
    struct bonding *bond = k_zalloc(sizeof *bond);
    bond->dev = (struct net_device){ .kernel = net_kernel(net), .name = name, .ops = &bonding_ops };
    *error = ports_init(&bond->ports, &bond->dev, lower, n);
    if (*error == 0) {
        map_links(bond);
        *error = take_address(bond);
        if (*error == 0) {
            *error = net_device_register(net, &bond->dev);
            if (*error)
                give_back_addresses(bond, bond->ports.n);
        }
        if (*error)
            ports_release(&bond->ports);
    }
    if (*error) {
        k_free(bond);
        return NULL;
    }
    return bond;
}

struct net_device *bonding_device(struct bonding *bonding)
{
    return &bonding->dev;
}

void bonding_free(struct bonding *bonding)
{
    if (bonding == NULL)
        return;
    if (bonding->dev.running)
        stop(&bonding->dev);
    give_back_addresses(bonding, bonding->ports.n);
    net_device_unregister(&bonding->dev);
    ports_release(&bonding->ports);
    k_free(bonding);
}
