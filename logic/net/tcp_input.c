/*
 * What it does: TCP's receiver of established connections: checks which segments are acceptable,
 *   keeps the receive queue and the queue of segments out of order, handles FIN and reset, wakes
 *   readers.
 * Leaves out: PAWS, coalescing of small segments in the queue (tcp_try_coalesce), urgent data.
 * Follows: RFC 793 3.9; Linux 4.14 net/ipv4/tcp_input.c (tcp_rcv_established, tcp_data_queue,
 *   tcp_ofo_queue, tcp_fin, tcp_reset, tcp_init_transfer, tcp_fixup_rcvbuf), net/ipv4/tcp_output.c
 *   (tcp_default_init_rwnd), net/ipv4/tcp_ipv4.c.
 * Costs: ip_tcp_receive_cycles per buffer (merged or not), tcp_ack_receive_cycles for one without
 *   data; one line of the sk_buff, three to four of the socket.
 */
#include "logic/net/net_internal.h"

/* The first receive buffer (tcp_fixup_rcvbuf): twice the initial window, each segment in a buffer
 * of its own, four times that with autotuning. The window is 20 segments, or as many bytes as 20 of
 * 1460 if they are larger (tcp_default_init_rwnd). advmss: what we say that we take; who connects
 * has taken the time stamps off by then, who accepts has not. */
static uint32_t first_receive_buffer(const struct tcp *tp, uint32_t mtu)
{
    uint32_t headers = IPV4_BYTES + TCP_BYTES;
    uint32_t advmss = mtu - headers - (tp->state == TCP_SYN_RECEIVED ? 0 : TCP_TIMESTAMP_BYTES);
    uint32_t segments = advmss > 1460 ? NET_MAX(20 * 1460 / advmss, 2) : 20;
    return 4 * 2 * segments * (advmss + MAX_TCP_HEADER + SKB_STRUCT_BYTES + SKB_SHARED_BYTES);
}

void tcp_init_transfer(struct socket *sk, const struct tcp_options *options)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    uint32_t mtu = sk->dev ? sk->dev->mtu_bytes : 576;
    tp->mss_clamp = options->mss ? options->mss : 536;
    tp->mss = NET_MIN(mtu - IPV4_BYTES - TCP_BYTES, tp->mss_clamp) - TCP_TIMESTAMP_BYTES;
    if (options->window_scale == UINT8_MAX)
        tp->snd_scale = tp->rcv_scale = 0;
    else
        tp->snd_scale = options->window_scale;
    tp->sack_ok = options->sack_permitted;
    tp->rcv_mss = NET_MIN(tp->mss, 536);
    tp->rcv_ssthresh = tp->rcv_wnd;
    sk->receive_buffer = NET_MIN(first_receive_buffer(tp, mtu), net->params.receive_buffer_bytes);
    tcp_sndbuf_expand(sk);
    tp->window_clamp = sk->receive_buffer / 2;
    tp->rcv_ssthresh = NET_MIN(tp->rcv_ssthresh, tp->window_clamp);
    tp->copied_seq = tp->rcv_nxt;
    tp->space = tp->rcv_wnd;
    tp->space_seq = tp->rcv_nxt;
    tp->space_ps = k_now_ps(net->kernel);
    tp->max_packets_seq = tp->snd_nxt;
    tp->recover = tp->snd_una - 1;
    tcp_cubic_reset(sk);
}

static void free_list(struct net *net, struct sk_buff *skb)
{
    for (struct sk_buff *next; skb; skb = next) {
        next = skb->next;
        skb->next = NULL;
        skb_free(net, skb);
    }
}

void tcp_clean(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *written = tp->head, *early = tp->out_of_order;
    tp->head = tp->tail = tp->unsent = tp->out_of_order = NULL;
    tp->packets_out = tp->sacked_out = tp->lost_out = tp->retrans_out = 0;
    sk->wmem_queued = 0;
    free_list(sk->net, written);
    for (struct sk_buff *skb = early; skb; skb = skb->next)
        sk->rmem_alloc -= skb->truesize;
    free_list(sk->net, early);
}

/* ---- The receive queue ----------------------------------------------------------------------- */

static void fin(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    tp->rcv_nxt++;
    tp->fin_received = true;
    tp->ack_scheduled = true;
    if (tp->state == TCP_ESTABLISHED) {
        tp->state = TCP_CLOSE_WAIT;
        tp->ping_pong = true; /* our own FIN may carry the acknowledgement */
    } else if (tp->state == TCP_FIN_WAIT1) {
        tcp_send_ack(sk);
        tp->state = TCP_CLOSING;
    } else if (tp->state == TCP_FIN_WAIT2) {
        tcp_send_ack(sk);
        tcp_time_wait(sk);
    }
}

/* skb begins at or before rcv_nxt and ends behind it. */
static void append(struct socket *sk, struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    bool ends = skb->tcp_flags & TCP_FIN;
    skb->skip_bytes = tp->rcv_nxt - skb->tcp_seq;
    tp->rcv_nxt = skb->tcp_seq + skb->bytes;
    skb->next = NULL;
    if (skb->skip_bytes < skb->bytes) {
        if (sk->rx_head)
            sk->rx_tail->next = skb;
        else
            sk->rx_head = skb;
        sk->rx_tail = skb;
        if (sk->rx_head == skb)
            net_socket_cursor(sk);
    } else {
        sk->rmem_alloc -= skb->truesize;
        skb_free(sk->net, skb);
    }
    if (ends)
        fin(sk);
}

/* What had come too early may follow now. */
static void drain_out_of_order(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *skb;
    while ((skb = tp->out_of_order) != NULL && !tcp_after(skb->tcp_seq, tp->rcv_nxt)) {
        tp->out_of_order = skb->next;
        skb->next = NULL;
        if (tcp_before(skb->tcp_seq, tp->rcv_nxt)) {
            uint32_t end = tcp_end_seq(skb);
            tcp_sack_duplicate(tp, skb->tcp_seq, tcp_before(end, tp->rcv_nxt) ? end : tp->rcv_nxt);
        }
        if (tcp_after(tcp_end_seq(skb), tp->rcv_nxt) && !tp->fin_received)
            append(sk, skb);
        else {
            sk->rmem_alloc -= skb->truesize;
            skb_free(sk->net, skb);
        }
    }
    tcp_sack_remove(tp);
}

static void queue_out_of_order(struct socket *sk, struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff **link = &tp->out_of_order;
    sk->net->stats.out_of_order_segments++;
    tcp_sack_add(tp, skb->tcp_seq, tcp_end_seq(skb));
    while (*link && !tcp_after((*link)->tcp_seq, skb->tcp_seq)) {
        if (!tcp_before(tcp_end_seq(*link), tcp_end_seq(skb))) { /* known already */
            tcp_sack_duplicate(tp, skb->tcp_seq, tcp_end_seq(skb));
            skb_free(sk->net, skb);
            return;
        }
        if (tcp_after(tcp_end_seq(*link), skb->tcp_seq)) /* a part of it is */
            tcp_sack_duplicate(tp, skb->tcp_seq, tcp_end_seq(*link));
        link = &(*link)->next;
    }
    skb->next = *link;
    *link = skb;
    sk->rmem_alloc += skb->truesize;
}

static void ack_at_once(struct socket *sk)
{
    tcp_quick_ack(sk);
    sk->tcp.ping_pong = false;
    sk->tcp.ack_scheduled = true;
}

/* Takes skb, which has data or FIN. True: readers have something new. */
static bool data_queue(struct socket *sk, struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint32_t window = tcp_receive_window(tp);
    if (!tcp_after(tcp_end_seq(skb), tp->rcv_nxt) || tp->fin_received ||
        !tcp_before(skb->tcp_seq, tp->rcv_nxt + window)) {
        /* Known already, or beyond the window (a probe of it). */
        if (!tcp_after(tcp_end_seq(skb), tp->rcv_nxt))
            tcp_sack_duplicate(tp, skb->tcp_seq, tcp_end_seq(skb));
        ack_at_once(sk);
        skb_free(sk->net, skb);
        return false;
    }
    if (tcp_after(skb->tcp_seq, tp->rcv_nxt)) {
        ack_at_once(sk);
        queue_out_of_order(sk, skb);
        return false;
    }
    if (tcp_before(skb->tcp_seq, tp->rcv_nxt))
        tcp_sack_duplicate(tp, skb->tcp_seq, tp->rcv_nxt);
    sk->rmem_alloc += skb->truesize;
    bool early = tp->out_of_order;
    if (skb->bytes > 0)
        tcp_event_data(sk, skb);
    append(sk, skb);
    if (early) {
        drain_out_of_order(sk);
        if (!tp->out_of_order)
            tp->quick = NET_MAX(tp->quick, 1); /* the hole is filled: say so */
    }
    return true;
}

/* ---- A segment ------------------------------------------------------------------------------- */

static void reset(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    if (skb->tcp_seq == tp->rcv_nxt)
        tcp_done(sk, tp->state == TCP_CLOSE_WAIT ? -EPIPE : -ECONNRESET);
    else if (tcp_after(skb->tcp_seq, tp->rcv_nxt) &&
             tcp_before(skb->tcp_seq, tp->rcv_nxt + tcp_receive_window(tp)))
        tcp_send_ack(sk); /* RFC 5961 */
}

/* Acceptable; False: answered, not to be looked at further. */
static bool check(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint32_t end = tcp_end_seq(skb);
    if (skb->tcp_flags & TCP_RST) {
        reset(sk, skb);
        return false;
    }
    if (tcp_before(end, tp->rcv_wup) ||
        tcp_after(skb->tcp_seq, tp->rcv_nxt + tcp_receive_window(tp)) || skb->tcp_flags & TCP_SYN) {
        if (tcp_before(skb->tcp_seq, tp->rcv_nxt))
            tcp_sack_duplicate(tp, skb->tcp_seq, tcp_before(end, tp->rcv_nxt) ? end : tp->rcv_nxt);
        ack_at_once(sk);
        tcp_send_ack(sk);
        return false;
    }
    if (!(skb->tcp_flags & TCP_ACK))
        return false;
    if (!tcp_after(skb->tcp_seq, tp->rcv_wup) && !tcp_before(skb->tcp_tsval, tp->ts_recent))
        tp->ts_recent = skb->tcp_tsval;
    return true;
}

/* Our FIN is acknowledged. */
static void fin_acked(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net));
    if (tp->state == TCP_FIN_WAIT1) {
        tp->state = TCP_FIN_WAIT2;
        tcp_timer_arm(sk, TCP_PENDING_END, now + 60 * K_S); /* tcp_fin_timeout */
    } else if (tp->state == TCP_CLOSING)
        tcp_time_wait(sk);
    else if (tp->state == TCP_LAST_ACK)
        tcp_done(sk, 0);
}

void tcp_established(struct socket *sk, struct sk_buff *skb)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    bool pure = skb->bytes == 0 && !(skb->tcp_flags & (TCP_FIN | TCP_SYN | TCP_RST));
    k_compute(net->kernel,
              pure ? net->costs->tcp_ack_receive_cycles : net->costs->ip_tcp_receive_cycles);
    k_touch(net->kernel, skb->meta, SKB_TOUCH_USE);
    net_socket_touch_write(sk, pure ? SOCKET_LINE_TX : SOCKET_LINE_RX, 2);
    if (!check(sk, skb) || !tcp_ack(sk, skb)) {
        skb_free(net, skb);
        return;
    }
    bool closing = tp->state >= TCP_FIN_WAIT1 && tp->state != TCP_CLOSE_WAIT;
    if (closing && tp->snd_una == tp->write_seq)
        fin_acked(sk);
    bool news = false;
    if (tp->state == TCP_CLOSED || pure)
        skb_free(net, skb);
    else if (sk->orphan && skb->bytes > 0 && tcp_after(tcp_end_seq(skb), tp->rcv_nxt)) {
        tcp_send_reset(sk); /* no reader is left */
        skb_free(net, skb);
        tcp_done(sk, -ECONNRESET);
    } else
        news = data_queue(sk, skb);
    if (tp->state == TCP_CLOSED)
        return;
    tcp_push_pending(sk, TCP_NAGLE_ON);
    tcp_new_space(sk);
    tcp_ack_check(sk);
    if (news)
        net_socket_readable(sk);
}
