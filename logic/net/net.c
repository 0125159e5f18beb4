/*
 * What it does: The stack of one host: parameters, neighbours, routes, the table of sockets by
 *   4-tuple (listeners and unconnected UDP by local address and port).
 * Leaves out: ARP (neighbours are configured), routing tables beyond one host each, forwarding,
 *   ICMP, loopback.
 * Follows: Linux 4.14 net/ipv4/inet_hashtables.c; defaults: Documentation/networking/ip-sysctl.txt
 *   (tcp_wmem, tcp_rmem), include/net/tcp.h (TCP_DELACK_MIN, TCP_RTO_MIN, TCP_INIT_CWND),
 *   net/ethernet/eth.c and net/sched (queue of 1000).
 * Costs: A look-up is part of ip_tcp_receive_cycles and its like.
 */
#include "logic/net/arfs.h"
#include "logic/net/net_internal.h"

const struct net_params net_params_default = {
    .gro = true,
    .tso = true,
    .nagle = true,
    .xps = true,
    .arfs = true,
    .send_buffer_bytes = 4194304,
    .receive_buffer_bytes = 6291456,
    .delayed_ack_ps = 40 * K_MS,
    .rto_min_ps = 200 * K_MS,
    .initial_window_segments = 10,
    .backlog_packets = 1000,
};

#define FIRST_PORT 32768u /* net.ipv4.ip_local_port_range */
#define LAST_PORT  60999u

static void cpu_timer(struct k_timer *timer)
{
    struct net_cpu *cpu = K_CONTAINER(timer, struct net_cpu, timer);
    net_gro_flush(NULL, cpu->net);
}

struct net *net_new(struct kernel *kernel, const struct net_params *params)
{
    unsigned n_cpus = k_n_cpus(kernel);
    struct net *net = k_zalloc(sizeof *net + n_cpus * sizeof net->cpu[0]);
    net->kernel = kernel;
    net->costs = k_costs(kernel);
    net->params = *params;
    net->n_cpus = n_cpus;
    net->next_port = FIRST_PORT;
    if (params->arfs)
        net->arfs = arfs_new(kernel, &arfs_params_default);
    net->skbs = k_cache_new(kernel, "skb", sizeof(struct sk_buff),
                            SKB_META_BYTES + NET_HEADER_BYTES);
    net->sockets = k_cache_new(kernel, "socket", sizeof(struct socket),
                               (size_t)SOCKET_LINES * K_LINE_BYTES);
    for (unsigned i = 0; i < n_cpus; i++) {
        net->cpu[i].net = net;
        k_timer_init(&net->cpu[i].timer, kernel, cpu_timer);
    }
    return net;
}

void net_free(struct net *net)
{
    while (net->devices)
        net_device_unregister(net->devices);
    if (net->arfs)
        arfs_free(net->arfs);
    for (unsigned i = 0; i < net->n_cpus; i++) {
        struct net_cpu *cpu = &net->cpu[i];
        for (struct socket *next, *sk = cpu->tsq; sk; sk = next) {
            next = sk->tsq_next;
            net_socket_put(sk);
        }
        for (struct sk_buff *next, *skb = cpu->gro; skb; skb = next) {
            next = skb->next;
            skb_free(net, skb);
        }
        k_timer_release(&cpu->timer);
    }
    while (net->all) {
        struct socket *sk = net->all;
        if (sk->flow.protocol == PROTOCOL_TCP)
            tcp_clean(sk);
        net_set_leave(sk);
        net_socket_unhash(sk);
        if (net->all == sk) {
            sk->refs = 1;
            net_socket_put(sk);
        }
    }
    net_sockets_reap(net);
    k_free(net->neighbours);
    k_free(net->routes);
    k_free(net);
}

struct kernel *net_kernel(struct net *net)
{
    return net->kernel;
}

const struct net_stats *net_stats(const struct net *net)
{
    return &net->stats;
}

/* ---- Neighbours, routes ---------------------------------------------------------------------- */

/* A table that is a power of two long, grown when n entries fill it. */
static void *grow(void *table, unsigned n, size_t entry_bytes)
{
    if (n & (n - 1))
        return table;
    void *bigger = k_zalloc((n ? 2 * (size_t)n : 1) * entry_bytes);
    if (n)
        memcpy(bigger, table, n * entry_bytes);
    k_free(table);
    return bigger;
}

void net_neighbour_add(struct net *net, uint32_t ip, struct net_mac mac)
{
    net->route_generation++;
    for (unsigned i = 0; i < net->n_neighbours; i++)
        if (net->neighbours[i].ip == ip) {
            net->neighbours[i].mac = mac;
            return;
        }
    net->neighbours = grow(net->neighbours, net->n_neighbours, sizeof net->neighbours[0]);
    net->neighbours[net->n_neighbours++] = (struct net_neighbour){ ip, mac };
}

bool net_neighbour_find(const struct net *net, uint32_t ip, struct net_mac *mac)
{
    for (unsigned i = 0; i < net->n_neighbours; i++)
        if (net->neighbours[i].ip == ip) {
            *mac = net->neighbours[i].mac;
            return true;
        }
    return false;
}

void net_route_add(struct net *net, uint32_t ip, struct net_device *dev)
{
    net->routes = grow(net->routes, net->n_routes, sizeof net->routes[0]);
    net->routes[net->n_routes++] = (struct net_route){ ip, dev };
    net->route_generation++;
}

/* A packet that is from an address of ours leaves through the device that has this address, as
 * where each address has a routing table of its own (ip rule add from ADDRESS): replies go where
 * requests came in. */
struct net_device *net_route_find(struct net *net, uint32_t from_ip, uint32_t ip)
{
    struct net_device *routed = NULL;
    for (unsigned i = 0; i < net->n_routes && routed == NULL; i++)
        if (net->routes[i].ip == ip)
            routed = net->routes[i].dev;
    if (from_ip == 0 || (routed && routed->ip == from_ip))
        return routed;
    for (struct net_device *dev = net->devices; dev; dev = dev->next)
        if (dev->ip == from_ip && !dev->upper)
            return dev;
    return routed;
}

bool net_route_socket(struct socket *sk)
{
    struct net *net = sk->net;
    if (sk->route_generation == net->route_generation && sk->dev)
        return true;
    struct net_device *dev = net_route_find(net, sk->flow.destination_ip, sk->flow.source_ip);
    if (dev != sk->dev)
        sk->tx_queue = -1;
    sk->dev = dev;
    sk->route_generation = net->route_generation;
    if (sk->dev && !net_neighbour_find(net, sk->flow.source_ip, &sk->to_mac))
        sk->dev = NULL;
    return sk->dev != NULL;
}

/* ---- Sockets by flow ------------------------------------------------------------------------- */

static struct socket **slot(struct net *net, const struct flow_key *flow)
{
    uint64_t h = ((uint64_t)flow->source_ip << 32 | flow->destination_ip) * 0x9e3779b97f4a7c15u;
    h ^= (uint64_t)flow->source_port << 24 | (uint64_t)flow->destination_port << 8 | flow->protocol;
    h *= 0xbf58476d1ce4e5b9u;
    return &net->hash[h >> 52];
}
_Static_assert(NET_HASH_SLOTS == 1u << 12, "the upper 12 bits of the product");

static struct socket *find(struct net *net, const struct flow_key *flow)
{
    struct socket *sk = *slot(net, flow);
    while (sk && !flow_key_equal(&sk->flow, flow))
        sk = sk->hash_next;
    return sk;
}

struct socket *net_lookup(struct net *net, const struct flow_key *flow)
{
    struct socket *sk = find(net, flow);
    if (sk)
        return sk;
    struct flow_key any = *flow;
    any.source_ip = 0;
    any.source_port = 0;
    sk = find(net, &any);
    if (sk)
        return sk;
    any.destination_ip = 0;
    return find(net, &any);
}

bool net_socket_hash(struct socket *sk)
{
    struct net *net = sk->net;
    /* If no port is given, chooses a free one. */
    for (unsigned tries = 0; sk->flow.destination_port == 0; tries++) {
        if (tries > LAST_PORT - FIRST_PORT)
            return false;
        sk->flow.destination_port = net->next_port;
        net->next_port = (uint16_t)(net->next_port < LAST_PORT ? net->next_port + 1u : FIRST_PORT);
        if (find(net, &sk->flow))
            sk->flow.destination_port = 0;
    }
    if (find(net, &sk->flow))
        return false;
    struct socket **link = slot(net, &sk->flow);
    sk->hash_next = *link;
    *link = sk;
    sk->hashed = true;
    sk->hash = net_toeplitz(&sk->flow);
    net_socket_get(sk);
    return true;
}

void net_socket_unhash(struct socket *sk)
{
    if (!sk->hashed)
        return;
    struct socket **link = slot(sk->net, &sk->flow);
    while (*link != sk)
        link = &(*link)->hash_next;
    *link = sk->hash_next;
    sk->hashed = false;
    net_socket_put(sk);
}
