/*
 * What it does: Generic receive offload: segments of a flow that follow each other in a poll become
 *   one buffer: payload fragments up to NET_FRAGS_MAX, then a list of buffers, less than 64 KiB
 *   with headers. As in Linux 4.14 a segment is merged if it continues the flow and has the same
 *   acknowledgement number, the same timestamps, no SACK blocks and no flags but ACK and PSH. A
 *   buffer goes up as soon as it ends with PSH, with a segment shorter than the ones before or with
 *   a segment that may not be merged; when 8 flows are held (the oldest of them); and at the end of
 *   the poll. A segment with a wrong checksum is not merged; what the device has merged already
 *   (LRO) goes up as it is.
 * Leaves out: GRO of UDP, of tunnels; IP identification (0 with DF, which never flushes); ageing
 *   over several polls (HZ < 1000).
 * Follows: Linux 4.14 net/core/dev.c (dev_gro_receive, napi_gro_flush), net/ipv4/tcp_offload.c
 *   (tcp_gro_receive), net/core/skbuff.c (skb_gro_receive).
 * Costs: headers are loaded for each packet; gro_packet_cycles for each that is merged.
 */
#include "logic/net/net_internal.h"

#define NETWORK_BYTES(skb) ((skb)->head_bytes - ETHER_BYTES) /* of its headers, from IP on */

static void go_up(struct net *net, struct net_cpu *cpu, struct sk_buff **link)
{
    struct sk_buff *skb = *link;
    *link = skb->next;
    skb->next = NULL;
    cpu->n_gro--;
    net_deliver(net, skb);
}

/* Payload of one segment that skb is made of. */
static uint32_t segment_bytes(const struct sk_buff *skb)
{
    return skb->gso_segments > 1 ? skb->gso_bytes : skb->bytes;
}

/* skb continues what is held (tcp_gro_receive, skb_gro_receive). */
static bool mergeable(const struct sk_buff *held, const struct sk_buff *skb)
{
    return !(skb->tcp_flags & TCP_CWR) &&
           !((skb->tcp_flags ^ held->tcp_flags) & (uint8_t) ~(TCP_CWR | TCP_FIN | TCP_PSH)) &&
           skb->tcp_window == held->tcp_window && skb->tcp_ack == held->tcp_ack &&
           skb->tcp_tsval == held->tcp_tsval && skb->tcp_tsecr == held->tcp_tsecr &&
           skb->head_bytes == held->head_bytes && (skb->tcp_sacked | held->tcp_sacked) == 0 &&
           skb->bytes - 1 < segment_bytes(held) && skb->tcp_seq == held->tcp_seq + held->bytes &&
           held->bytes + NETWORK_BYTES(held) + skb->bytes < NET_GSO_BYTES_MAX &&
           skb->dev == held->dev;
}

static void merge(struct net *net, struct sk_buff *held, struct sk_buff *skb)
{
    k_compute(net->kernel, net->costs->gro_packet_cycles);
    k_touch_write(net->kernel, held->meta, SKB_TOUCH_USE);
    if (held->gso_segments <= 1) {
        held->gso_bytes = (uint16_t)held->bytes;
        held->gso_segments = 1;
    }
    held->gso_segments = (uint16_t)(held->gso_segments + NET_MAX(skb->gso_segments, 1));
    held->bytes += skb->bytes;
    held->truesize += skb->truesize;
    held->tcp_flags |= skb->tcp_flags & (TCP_FIN | TCP_PSH);
    if (!held->frag_list && held->n_frags + skb->n_frags <= (int)NET_FRAGS_MAX) {
        memcpy(held->frag + held->n_frags, skb->frag, skb->n_frags * sizeof skb->frag[0]);
        held->n_frags = (uint16_t)(held->n_frags + skb->n_frags);
        skb->n_frags = 0;
        /* Headers lie in the page of the payload (build_skb): one reference less on a page that
         * stays in use, without touching it again. */
        if (skb->head_page && skb->head_page->refs > 1) {
            skb->head_page->refs--;
            skb->head_page = NULL;
        }
        skb_free(net, skb);
    } else if (held->frag_list) {
        held->frag_tail->next = skb;
        held->frag_tail = skb;
    } else
        held->frag_list = held->frag_tail = skb;
    net->stats.gro_merged++;
}

static void hold(struct net *net, struct net_cpu *cpu, struct sk_buff *skb)
{
    if (cpu->n_gro >= NET_GRO_HELD) { /* the oldest makes room */
        struct sk_buff **link = &cpu->gro;
        while ((*link)->next)
            link = &(*link)->next;
        go_up(net, cpu, link);
    }
    skb->next = cpu->gro;
    cpu->gro = skb;
    cpu->n_gro++;
}

static void gro_tcp(struct net *net, struct sk_buff *skb)
{
    struct net_cpu *cpu = &net->cpu[k_cpu(net->kernel)];
    struct sk_buff **link = &cpu->gro;
    if (!net_checksum_right(net, skb)) { /* alone, to be dropped; the buffer stays held */
        net_deliver(net, skb);
        return;
    }
    bool last = skb->tcp_flags & (TCP_URG | TCP_PSH | TCP_RST | TCP_SYN | TCP_FIN);
    while (*link && !((*link)->hash == skb->hash && flow_key_equal(&(*link)->flow, &skb->flow)))
        link = &(*link)->next;
    struct sk_buff *held = *link;
    if (held && mergeable(held, skb)) {
        last = last || skb->bytes < segment_bytes(held);
        merge(net, held, skb);
        if (last)
            go_up(net, cpu, link);
        return;
    }
    if (held)
        go_up(net, cpu, link);
    if (last || skb->bytes == 0 || skb->gso_segments > 1) /* merged by the device: skb_is_gso() */
        net_deliver(net, skb);
    else
        hold(net, cpu, skb);
}

static uint32_t receive_truesize(const struct sk_buff *skb)
{
    uint32_t buffer = SKB_RX_BUFFER;
    while (buffer < skb->head_bytes + skb->bytes)
        buffer *= 2;
    return buffer + SKB_TRUESIZE_RX;
}

void net_gro_receive(struct k_napi *napi, struct sk_buff *skb)
{
    struct net_device *dev = skb->dev;
    struct net *net = dev->net;
    uint64_t packets = NET_MAX(skb->gso_segments, 1);
    uint64_t bytes = skb->bytes + packets * skb->head_bytes;
    (void)napi;
    net->stats.rx_packets += packets;
    net->stats.rx_bytes += bytes;
    dev->rx[skb->queue].packets += packets;
    dev->rx[skb->queue].bytes += bytes;
    if (dev->upper) { /* from here on it is the team's */
        skb->queue = (uint16_t)(skb->queue + dev->upper_queue);
        skb->dev = dev->upper;
        skb->dev->rx[skb->queue].packets += packets;
        skb->dev->rx[skb->queue].bytes += bytes;
    }
    if (!net_headers_parse(net->kernel, skb)) {
        if (net_protocol_deliver(net, skb))
            return;
        net->stats.dropped_packets++;
        skb_free(net, skb);
        return;
    }
    if (skb->hash == 0)
        skb->hash = net_toeplitz(&skb->flow);
    if (skb->time_ps == 0)
        skb->time_ps = k_now_ps(net->kernel);
    if (skb->truesize == 0)
        skb->truesize = receive_truesize(skb);
    if (skb->flow.protocol == PROTOCOL_TCP && dev->features & NET_FEATURE_GRO)
        gro_tcp(net, skb);
    else
        net_deliver(net, skb);
}

/* Sockets whose packets have left the device go on (tcp_tasklet_func). */
static void run_small_queues(struct net_cpu *cpu)
{
    struct socket *sk = cpu->tsq;
    cpu->tsq = NULL;
    for (struct socket *next; sk; sk = next) {
        next = sk->tsq_next;
        sk->tsq_queued = false;
        net_socket_spin(sk);
        if (sk->owned)
            sk->deferred |= SOCKET_DEFER_TSQ;
        else
            tcp_small_queue_write(sk);
        net_socket_unspin(sk);
        net_socket_put(sk);
    }
}

void net_gro_flush(struct k_napi *napi, struct net *net)
{
    struct net_cpu *cpu = &net->cpu[k_cpu(net->kernel)];
    (void)napi;
    while (cpu->gro) { /* oldest first */
        struct sk_buff **link = &cpu->gro;
        while ((*link)->next)
            link = &(*link)->next;
        go_up(net, cpu, link);
    }
    if (cpu->tsq)
        run_small_queues(cpu);
    if (cpu->n_wake > 0)
        net_run_queues(net, cpu);
}
