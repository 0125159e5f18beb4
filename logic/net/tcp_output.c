/*
 * What it does: TCP's sender: decides which of the written data may be sent now (the peer's window,
 *   congestion window, Nagle in Minshall's form, TSO deferral, TSO autosizing by pacing rate, small
 *   queues); sends a copy of the buffer that shares its pages with the original, which waits for
 *   the acknowledgement.
 * Leaves out: pacing itself (fq), fast open, smaller segments beside SACK blocks, urgent data, MTU
 *   probing, software segmentation (without TSO every segment passes TCP alone, as with GSO off).
 * Follows: Linux 4.14 net/ipv4/tcp_output.c (tcp_write_xmit, tcp_tso_autosize,
 *   tcp_tso_should_defer, tcp_mss_split_point, tcp_small_queue_check, tcp_transmit_skb),
 *   net/ipv4/tcp.c (tcp_xmit_size_goal); RFC 896, draft-minshall-nagle, RFC 7323.
 * Costs: tcp_transmit_cycles per buffer given to the device, tcp_ack_send_cycles per
 *   acknowledgement without data.
 */
#include "logic/net/net_internal.h"

#define TSO_SEGMENTS_MIN   2u /* sysctl_tcp_min_tso_segs */
#define TSO_WIN_DIVISOR    3u /* sysctl_tcp_tso_win_divisor */
#define LIMIT_OUTPUT_BYTES 262144u
#define PURE_ACK_TRUESIZE  2u   /* skb_set_tcp_pure_ack() */
#define DEFER_PS           K_MS /* one jiffy */

uint32_t tcp_segments(const struct tcp *tp, const struct sk_buff *skb)
{
    uint32_t bytes = skb->bytes - skb->skip_bytes;
    return bytes <= tp->mss ? 1 : (bytes + tp->mss - 1) / tp->mss;
}

static bool can_tso(const struct socket *sk)
{
    return sk->net->params.tso && sk->dev && sk->dev->features & NET_FEATURE_TSO;
}

uint32_t tcp_size_goal(const struct socket *sk)
{
    const struct tcp *tp = &sk->tcp;
    uint32_t goal = NET_GSO_BYTES_MAX - 1 - MAX_TCP_HEADER;
    if (!can_tso(sk))
        return tp->mss;
    if (tp->max_window > 536) /* tcp_bound_to_half_wnd() */
        goal = NET_MIN(goal, NET_MAX(tp->max_window / 2, 68 - 40));
    return NET_MAX(goal / tp->mss * tp->mss, tp->mss);
}

void tcp_queue(struct socket *sk, struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    skb->tcp_seq = tp->write_seq;
    skb->truesize = SKB_TRUESIZE;
    skb->next = NULL;
    sk->wmem_queued += skb->truesize;
    if (tp->head)
        tp->tail->next = skb;
    else
        tp->head = skb;
    tp->tail = skb;
    if (!tp->unsent)
        tp->unsent = skb;
}

/* ---- One segment, or several ----------------------------------------------------------------- */

/* Full segments have no room for blocks; what came too early was acknowledged at once, without
 * data. */
static bool sacks_fit(const struct tcp *tp, const struct sk_buff *skb, uint8_t flags)
{
    return (flags & (TCP_ACK | TCP_RST)) == TCP_ACK && skb->gso_segments <= 1 &&
           skb->bytes + TCP_SACK_BYTES(TCP_SACKS_SENT) <= tp->mss;
}

/* Sends skb, headers' fields but ports set here. */
static void transmit(struct socket *sk, struct sk_buff *skb, uint32_t seq, uint8_t flags)
{
    struct tcp *tp = &sk->tcp;
    skb->tcp_seq = seq;
    skb->tcp_flags = flags;
    skb->tcp_ack = flags & TCP_ACK ? tp->rcv_nxt : 0;
    skb->tcp_window = flags & TCP_RST ? 0 : tcp_select_window(sk);
    skb->tcp_tsval = tcp_now_ms(sk->net);
    skb->tcp_tsecr = tp->ts_recent;
    const struct tcp_options *options = NULL;
    struct tcp_options sacks;
    if ((tp->n_sacks > 0 || tp->duplicate_came) && sacks_fit(tp, skb, flags) &&
        tcp_sack_options(tp, &sacks))
        options = &sacks;
    if (flags & TCP_ACK) { /* tcp_event_ack_sent() */
        tp->quick -= tp->quick > 0;
        tp->ack_scheduled = tp->ack_pushed = tp->ack_pushed2 = tp->ack_blocked = false;
        tp->ack_at_ps = 0;
    }
    net_socket_xmit(sk, skb, options);
}

/* Bytes [skip, skip + bytes) of a buffer that is written. */
static void transmit_range(struct socket *sk, struct sk_buff *buffer, uint32_t skip, uint32_t bytes)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    uint8_t flags = TCP_ACK;
    k_compute(net->kernel, net->costs->tcp_transmit_cycles);
    k_touch(net->kernel, buffer->meta, SKB_TOUCH_USE);
    net_socket_touch_write(sk, SOCKET_LINE_TX, 2);
    if (skip + bytes == buffer->bytes)
        flags |= buffer->tcp_flags & (TCP_PSH | TCP_FIN);
    struct sk_buff *skb = net_skb_share(net, buffer, skip, bytes);
    uint32_t segments = bytes <= tp->mss ? 1 : (bytes + tp->mss - 1) / tp->mss;
    skb->gso_segments = (uint16_t)segments;
    skb->gso_bytes = (uint16_t)(segments > 1 ? tp->mss : 0);
    skb->truesize = SKB_TRUESIZE + bytes;
    uint64_t now = k_now_ps(net->kernel);
    buffer->time_ps = now;
    tp->last_send_ps = now;
    /* Answers within the time of a delayed acknowledgement carry it (pingpong). */
    if (tp->any_received && now - tp->last_receive_ps < net->params.delayed_ack_ps)
        tp->ping_pong = true;
    transmit(sk, skb, buffer->tcp_seq + skip, flags);
}

static void transmit_control(struct socket *sk, uint32_t seq, uint8_t flags)
{
    struct net *net = sk->net;
    k_compute(net->kernel, net->costs->tcp_ack_send_cycles);
    struct sk_buff *skb = skb_new(net);
    skb->truesize = PURE_ACK_TRUESIZE;
    skb->gso_segments = 1;
    transmit(sk, skb, seq, flags);
}

void tcp_send_ack(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->state == TCP_CLOSED)
        return;
    net_socket_touch_write(sk, SOCKET_LINE_ACK, 1);
    sk->net->stats.acks_sent++;
    transmit_control(sk, tp->snd_nxt, TCP_ACK);
}

void tcp_send_reset(struct socket *sk)
{
    transmit_control(sk, sk->tcp.snd_nxt, TCP_RST | TCP_ACK);
}

void tcp_send_syn(struct socket *sk)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    uint32_t mtu = net_route_socket(sk) ? sk->dev->mtu_bytes : 576;
    struct tcp_options options = { .syn = true,
                                   .sack_permitted = tp->state == TCP_SYN_SENT || tp->sack_ok,
                                   .mss = (uint16_t)(mtu - IPV4_BYTES - TCP_BYTES),
                                   .window_scale = tp->rcv_scale };
    k_compute(net->kernel, net->costs->tcp_transmit_cycles);
    struct sk_buff *skb = skb_new(net);
    skb->truesize = SKB_TRUESIZE;
    skb->gso_segments = 1;
    skb->tcp_seq = tp->snd_una;
    skb->tcp_flags = TCP_SYN;
    if (tp->state == TCP_SYN_RECEIVED) {
        skb->tcp_flags |= TCP_ACK;
        skb->tcp_ack = tp->rcv_nxt;
        skb->tcp_tsecr = tp->ts_recent;
    }
    skb->tcp_window = (uint16_t)NET_MIN(tp->rcv_wnd, UINT16_MAX); /* never scaled */
    skb->tcp_tsval = tcp_now_ms(net);
    tp->last_send_ps = k_now_ps(net->kernel);
    net_socket_xmit(sk, skb, &options);
}

void tcp_reply_reset(struct net *net, const struct sk_buff *skb)
{
    struct net_device *dev = net_route_find(net, skb->flow.destination_ip, skb->flow.source_ip);
    struct net_mac mac;
    if (skb->tcp_flags & TCP_RST || !dev || !net_neighbour_find(net, skb->flow.source_ip, &mac))
        return;
    k_compute(net->kernel, net->costs->tcp_ack_send_cycles);
    struct sk_buff *reset = skb_new(net);
    net_flow_reverse(&skb->flow, &reset->flow);
    reset->dev = dev;
    reset->gso_segments = 1;
    reset->tcp_flags = TCP_RST;
    if (skb->tcp_flags & TCP_ACK)
        reset->tcp_seq = skb->tcp_ack;
    else {
        reset->tcp_flags |= TCP_ACK;
        reset->tcp_ack = skb->tcp_seq + skb->bytes + ((skb->tcp_flags & TCP_SYN) != 0) +
                         ((skb->tcp_flags & TCP_FIN) != 0);
    }
    reset->tcp_tsval = tcp_now_ms(net);
    reset->tcp_tsecr = skb->tcp_tsval;
    net_headers_build(net->kernel, reset, &mac, &dev->mac, NULL);
    net_dev_queue_xmit(net, reset);
}

/* ---- What may be sent now -------------------------------------------------------------------- */

static uint32_t cwnd_quota(const struct tcp *tp)
{
    uint32_t flying = tcp_in_flight(tp);
    if (flying >= tp->cwnd)
        return 0;
    return NET_MIN(NET_MAX(tp->cwnd / 2, 1), tp->cwnd - flying);
}

static uint32_t window_end(const struct tcp *tp)
{
    return tp->snd_una + tp->snd_wnd;
}

/* Segments of one buffer for the device: about a millisecond at the pacing rate. */
uint32_t tcp_burst_segments(const struct socket *sk)
{
    const struct tcp *tp = &sk->tcp;
    if (!can_tso(sk))
        return 1;
    uint64_t bytes = NET_MIN(tp->pacing_byte_s >> 10, NET_GSO_BYTES_MAX - 1 - MAX_TCP_HEADER);
    return NET_MAX((uint32_t)(bytes / tp->mss), TSO_SEGMENTS_MIN);
}

/* True: hold a segment smaller than the MSS back (tcp_nagle_check). */
static bool nagle_holds(const struct socket *sk, bool partial, enum tcp_nagle nagle)
{
    const struct tcp *tp = &sk->tcp;
    return partial && nagle == TCP_NAGLE_ON && sk->net->params.nagle && tp->packets_out > 0 &&
           tcp_after(tp->snd_sml, tp->snd_una) && !tcp_after(tp->snd_sml, tp->snd_nxt);
}

/* Waiting may make the buffer larger, or let more of it go at once (tcp_tso_should_defer). */
static bool should_defer(struct socket *sk, const struct sk_buff *skb, uint32_t max_segments,
                         bool *cwnd_limited)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net));
    if (tp->congestion >= TCP_CA_RECOVERY || now - tp->last_send_ps > DEFER_PS)
        return false;
    uint32_t send_win = window_end(tp) - skb->tcp_seq;
    uint32_t cong_win = (tp->cwnd - tcp_in_flight(tp)) * tp->mss;
    uint32_t limit = NET_MIN(send_win, cong_win);
    if (limit >= max_segments * tp->mss || (skb != tp->tail && limit >= skb->bytes))
        return false;
    uint64_t chunk = NET_MIN((uint64_t)tp->snd_wnd, (uint64_t)tp->cwnd * tp->mss);
    if (limit >= chunk / TSO_WIN_DIVISOR)
        return false;
    if (now - tp->head->time_ps < tp->srtt_ps / 2)
        return false; /* the next acknowledgement is too far off */
    *cwnd_limited = cong_win < send_win && cong_win < skb->bytes;
    return true;
}

/* How many bytes of a buffer of several segments may go (tcp_mss_split_point). */
static uint32_t split_point(const struct socket *sk, const struct sk_buff *skb,
                            uint32_t max_segments, enum tcp_nagle nagle)
{
    const struct tcp *tp = &sk->tcp;
    uint32_t window = window_end(tp) - skb->tcp_seq;
    uint32_t longest = tp->mss * max_segments;
    if (longest <= window && skb != tp->tail)
        return longest;
    uint32_t needed = NET_MIN(skb->bytes, window);
    if (longest <= needed)
        return longest;
    uint32_t partial = needed % tp->mss;
    return nagle_holds(sk, partial != 0, nagle) ? needed - partial : needed;
}

/* Enough packets of the socket are at the device: resumes when some have left. */
bool tcp_small_queue_full(struct socket *sk, const struct sk_buff *skb, unsigned shift)
{
    const struct tcp *tp = &sk->tcp;
    uint64_t limit = NET_MAX(2 * (uint64_t)skb->truesize, tp->pacing_byte_s >> 10);
    if (sk->wmem_alloc <= NET_MIN(limit, LIMIT_OUTPUT_BYTES) << shift)
        return false;
    if (skb == tp->head || skb == tp->head->next) /* the first two always go */
        return false;
    sk->throttled = true;
    return true;
}

static void cwnd_validate(struct tcp *tp, bool cwnd_limited)
{
    if (!tcp_before(tp->snd_una, tp->max_packets_seq) || tp->packets_out > tp->max_packets_out) {
        tp->max_packets_out = tp->packets_out;
        tp->max_packets_seq = tp->snd_nxt;
        tp->cwnd_limited = cwnd_limited;
    }
}

/* Sends a whole buffer for the first time. */
static void send_new(struct socket *sk, struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint32_t segments = tcp_segments(tp, skb);
    bool first = tp->packets_out == 0;
    if (tcp_in_flight(tp) == 0)
        tcp_cubic_resume(sk);
    skb->gso_segments = (uint16_t)segments;
    tp->unsent = skb->next;
    tp->snd_nxt = tcp_end_seq(skb);
    tp->packets_out += segments;
    if (skb->bytes % tp->mss != 0)
        tp->snd_sml = tp->snd_nxt;
    transmit_range(sk, skb, 0, skb->bytes);
    if (first || tp->pending == TCP_PENDING_LOSS_PROBE)
        tcp_rearm_rto(sk);
    if (tp->congestion == TCP_CA_RECOVERY)
        tp->prr_out += segments;
}

enum burst {
    BURST_ALL,
    BURST_ONE,
    BURST_PROBE /* one, whatever the congestion window says */
};

/* True: nothing is in flight, and something waits (for the window to open). */
static bool write_xmit(struct socket *sk, enum tcp_nagle nagle, enum burst burst)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *skb;
    bool cwnd_limited = false, sent = false;
    uint32_t max_segments = tcp_burst_segments(sk);
    while ((skb = tp->unsent) != NULL) {
        uint32_t segments = tcp_segments(tp, skb);
        uint32_t quota = cwnd_quota(tp);
        uint32_t first_end = skb->bytes > tp->mss ? skb->tcp_seq + tp->mss : tcp_end_seq(skb);
        enum tcp_nagle how = skb == tp->tail && !(skb->tcp_flags & TCP_FIN) ? nagle
                                                                            : TCP_NAGLE_PUSH;
        if (quota == 0 && burst == BURST_PROBE)
            quota = 1;
        if (quota == 0) {
            cwnd_limited = true;
            break;
        }
        if (tcp_after(first_end, window_end(tp)))
            break;
        uint32_t limit = tp->mss;
        if (segments == 1) {
            if (nagle_holds(sk, skb->bytes < tp->mss, how))
                break;
        } else {
            if (burst == BURST_ALL && should_defer(sk, skb, max_segments, &cwnd_limited))
                break;
            limit = split_point(sk, skb, NET_MIN(quota, max_segments), nagle);
        }
        if (skb->bytes > limit)
            tcp_cut(sk, skb, limit);
        if (tcp_small_queue_full(sk, skb, 0))
            break;
        send_new(sk, skb);
        sent = true;
        if (burst != BURST_ALL)
            break;
    }
    if (sent && burst != BURST_PROBE)
        tcp_schedule_loss_probe(sk);
    if (sent)
        cwnd_validate(tp, cwnd_limited || tcp_in_flight(tp) >= tp->cwnd);
    return tp->packets_out == 0 && tp->unsent;
}

void tcp_push_pending(struct socket *sk, enum tcp_nagle nagle)
{
    struct tcp *tp = &sk->tcp;
    if (!tcp_can_send(tp) || !tp->unsent)
        return;
    if (write_xmit(sk, nagle, BURST_ALL) && tp->pending == TCP_PENDING_NONE)
        tcp_timer_arm(sk, TCP_PENDING_PROBE, k_now_ps(net_kernel(sk->net)) + tcp_rto(tp));
}

void tcp_push_one(struct socket *sk)
{
    if (tcp_can_send(&sk->tcp))
        write_xmit(sk, TCP_NAGLE_PUSH, BURST_ONE);
}

bool tcp_send_new_probe(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    const struct sk_buff *skb = tp->unsent;
    if (!skb || !tcp_can_send(tp))
        return false;
    uint32_t first_end = skb->bytes > tp->mss ? skb->tcp_seq + tp->mss : tcp_end_seq(skb);
    if (tcp_after(first_end, window_end(tp)))
        return false;
    write_xmit(sk, TCP_NAGLE_OFF, BURST_PROBE);
    return true;
}

void tcp_small_queue_write(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (!tcp_can_send(tp))
        return;
    if (tp->congestion >= TCP_CA_RECOVERY)
        tcp_retransmit_lost(sk);
    tcp_push_pending(sk, TCP_NAGLE_ON);
}

/* ---- Again, and at the end ------------------------------------------------------------------- */

bool tcp_retransmit(struct socket *sk, struct sk_buff *skb, uint32_t segments, bool probe)
{
    struct tcp *tp = &sk->tcp;
    uint32_t skip = skb->skip_bytes;
    if (skb->users > 1 ||
        (!tcp_before(tcp_first_seq(skb), window_end(tp)) && tcp_first_seq(skb) != tp->snd_una))
        return false;
    if (skb->bytes - skip > segments * tp->mss)
        tcp_cut(sk, skb, skip + segments * tp->mss);
    skb->tcp_sacked |= TCP_TAG_EVER;
    if (!probe) {
        skb->tcp_sacked |= TCP_TAG_RETRANSMITTED;
        tp->retrans_out += skb->gso_segments;
        tp->undo_left = NET_MAX(tp->undo_left, 0) + skb->gso_segments;
        if (tp->retransmit_ms == 0)
            tp->retransmit_ms = tcp_now_ms(sk->net);
    }
    sk->net->stats.retransmitted_segments += skb->gso_segments;
    transmit_range(sk, skb, skip, skb->bytes - skip);
    return true;
}

void tcp_send_fin(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (!tp->unsent) {
        struct sk_buff *skb = skb_new(sk->net);
        tcp_queue(sk, skb);
    }
    tp->tail->tcp_flags |= TCP_FIN | TCP_PSH;
    tp->write_seq++;
    tcp_push_pending(sk, TCP_NAGLE_OFF);
}

void tcp_send_probe(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *skb = tp->unsent;
    if (!skb || !tcp_before(skb->tcp_seq, window_end(tp))) {
        /* A byte that the other side has already: it answers with its window. */
        sk->net->stats.acks_sent++;
        transmit_control(sk, tp->snd_una - 1, TCP_ACK);
        return;
    }
    uint32_t bytes = NET_MIN(window_end(tp) - skb->tcp_seq, tp->mss);
    if (skb->bytes > bytes)
        tcp_cut(sk, skb, bytes);
    send_new(sk, skb);
}
