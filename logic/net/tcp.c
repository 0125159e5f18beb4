/*
 * What it does: TCP connections: the three-way handshake with MSS, window scale, timestamps, SACK;
 *   listening sockets and their queues, closing (both sides, TIME_WAIT), resets. Decides who
 *   processes a packet: the soft interrupt, or the thread that owns the socket. The initial
 *   sequence number is a function of the connection's addresses.
 * Leaves out: Simultaneous open, half close, linger, SYN cookies, fast open.
 * Follows: RFC 793, 5961; Linux 4.14 net/ipv4/tcp_ipv4.c (tcp_v4_rcv), net/ipv4/tcp_input.c
 *   (tcp_rcv_state_process, tcp_conn_request), net/ipv4/tcp_minisocks.c (tcp_check_req),
 *   net/ipv4/tcp.c (tcp_close), net/ipv4/inet_connection_sock.c.
 * Costs: See tcp_input.c and tcp_output.c; a SYN costs ip_tcp_receive_cycles.
 */
#include "logic/net/net_internal.h"

#define ACCEPT_QUEUE   128u /* somaxconn */
#define BACKLOG_EXTRA  65536u
#define RTO_INITIAL_PS K_S
#define SSTHRESH_NONE  0x7fffffffu
#define TIME_WAIT_PS   (60 * K_S)

uint32_t tcp_now_ms(struct net *net)
{
    return (uint32_t)(k_now_ps(net->kernel) / K_MS) + 1; /* 0 stands for none */
}

bool tcp_can_send(const struct tcp *tp)
{
    return tp->state == TCP_ESTABLISHED || tp->state == TCP_CLOSE_WAIT ||
           tp->state == TCP_FIN_WAIT1 || tp->state == TCP_CLOSING || tp->state == TCP_LAST_ACK;
}

/* The socket has its flow. */
static void tcp_init(struct socket *sk)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    uint32_t space = net->params.receive_buffer_bytes;
    tcp_timers_init(sk);
    tp->snd_una = tp->snd_nxt = tp->write_seq = tp->snd_sml = tp->pushed_seq = sk->hash;
    tp->mss = 536;
    tp->cwnd = net->params.initial_window_segments;
    tp->ssthresh = SSTHRESH_NONE;
    tp->reordering = TCP_REORDERING;
    tp->min_rtt_ps = UINT64_MAX;
    tp->rto_ps = RTO_INITIAL_PS;
    tp->pacing_byte_s = UINT32_MAX;
    while (space > UINT16_MAX && tp->rcv_scale < 14) {
        space >>= 1;
        tp->rcv_scale++;
    }
    sk->receive_buffer = net->params.receive_buffer_bytes;
    tp->rcv_wnd = NET_MIN(29200u, sk->receive_buffer / 2);
    tp->rcv_mss = 536;
    tp->window_clamp = tp->rcv_ssthresh = sk->receive_buffer / 2;
    tcp_cubic_reset(sk);
}

void tcp_release(struct socket *sk)
{
    if (!sk->listening) {
        tcp_clean(sk);
        k_timer_release(&sk->tcp.timer);
        k_timer_release(&sk->tcp.ack_timer);
    }
}

void tcp_done(struct socket *sk, int error)
{
    struct kernel *kernel = net_kernel(sk->net);
    struct tcp *tp = &sk->tcp;
    bool nobody = tp->state == TCP_SYN_RECEIVED;
    if (tp->state == TCP_CLOSED)
        return;
    tp->state = TCP_CLOSED;
    tp->pending = TCP_PENDING_NONE;
    tp->ack_at_ps = 0;
    sk->error = error;
    if (nobody) { /* not to be accepted any more; one in the queue is, with its error */
        tp->listener->tcp.n_accept--;
        tp->listener = NULL;
        net_socket_put(sk);
    }
    net_socket_unhash(sk);
    tcp_clean(sk);
    net_socket_readable(sk);
    if (k_has_waiters(&sk->writable))
        k_wake(kernel, &sk->writable);
}

void tcp_time_wait(struct socket *sk)
{
    sk->tcp.state = TCP_TIME_WAIT;
    tcp_timer_arm(sk, TCP_PENDING_END, k_now_ps(net_kernel(sk->net)) + TIME_WAIT_PS);
}

void tcp_deferred(struct socket *sk, unsigned what)
{
    if (what & SOCKET_DEFER_TSQ)
        tcp_small_queue_write(sk);
    if (what & SOCKET_DEFER_TIMER)
        tcp_timer_run(sk);
    if (what & SOCKET_DEFER_ACK)
        tcp_ack_timer_run(sk);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* The other side has said what it can; the connection stands. */
static void connected(struct socket *sk, const struct sk_buff *skb, unsigned window_scale)
{
    struct tcp *tp = &sk->tcp;
    tp->snd_una = skb->tcp_ack;
    tp->snd_wnd = tp->max_window = (uint32_t)skb->tcp_window << window_scale;
    tp->snd_wl1 = skb->tcp_seq;
    tp->state = TCP_ESTABLISHED;
    tcp_timer_stop(sk);
    if (tp->backoff == 0)
        tcp_rtt_sample(sk, k_now_ps(net_kernel(sk->net)) - tp->last_send_ps);
    tp->backoff = 0;
}

static void syn_sent(struct socket *sk, struct sk_buff *skb)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    struct tcp_options options;
    k_compute(net->kernel, net->costs->ip_tcp_receive_cycles);
    bool ack_ok = skb->tcp_flags & TCP_ACK && skb->tcp_ack == tp->snd_nxt;
    if (skb->tcp_flags & TCP_ACK && !ack_ok)
        tcp_reply_reset(net, skb);
    else if (skb->tcp_flags & TCP_RST) {
        if (ack_ok)
            tcp_done(sk, -ECONNREFUSED);
    } else if (ack_ok && skb->tcp_flags & TCP_SYN) {
        net_syn_options(net->kernel, skb, &options);
        tp->rcv_nxt = tp->rcv_wup = skb->tcp_seq + 1;
        tp->ts_recent = skb->tcp_tsval;
        connected(sk, skb, 0);
        tcp_init_transfer(sk, &options);
        tcp_send_ack(sk);
        if (k_has_waiters(&sk->writable))
            k_wake(net->kernel, &sk->writable);
    }
    skb_free(net, skb);
}

static bool is_in_window(const struct tcp *tp, const struct sk_buff *skb)
{
    uint32_t end = tcp_end_seq(skb), edge = tp->rcv_nxt + tcp_receive_window(tp);
    return skb->tcp_seq == tp->rcv_nxt ||
           (tcp_after(end, tp->rcv_nxt) && tcp_before(skb->tcp_seq, edge)) ||
           (skb->tcp_seq == edge && end == edge);
}

/* Answers a segment that does not complete the handshake, in the order of tcp_check_req(). Where
 * Linux 4.14 takes any reset in the window, RFC 5961 3.2 holds: one elsewhere than at rcv_nxt is
 * challenged. */
static void answer_early(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint8_t flags = skb->tcp_flags;
    bool resets = flags & TCP_RST;
    if ((flags & (TCP_SYN | TCP_RST | TCP_ACK)) == TCP_SYN && skb->tcp_seq == tp->rcv_nxt - 1)
        tcp_send_syn(sk); /* it has come again */
    else if (flags & TCP_ACK && skb->tcp_ack != tp->snd_nxt)
        tcp_reply_reset(sk->net, skb); /* but not to a reset */
    else if (!is_in_window(tp, skb)) {
        if (!resets)
            tcp_send_ack(sk);
    } else if (resets && skb->tcp_seq != tp->rcv_nxt)
        tcp_send_ack(sk);
    else if (flags & (TCP_RST | TCP_SYN)) {
        tcp_reply_reset(sk->net, skb);
        tcp_done(sk, -ECONNRESET);
    }
}

static void syn_received(struct socket *sk, struct sk_buff *skb)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    struct socket *listener = tp->listener;
    uint8_t kind = skb->tcp_flags & (TCP_SYN | TCP_RST | TCP_ACK);
    if (kind != TCP_ACK || skb->tcp_ack != tp->snd_nxt || !is_in_window(tp, skb)) {
        k_compute(net->kernel, net->costs->ip_tcp_receive_cycles);
        answer_early(sk, skb);
        skb_free(net, skb);
        return;
    }
    connected(sk, skb, tp->snd_scale);
    tp->accept_next = NULL;
    if (listener->tcp.accept_first)
        listener->tcp.accept_last->tcp.accept_next = sk;
    else
        listener->tcp.accept_first = sk;
    listener->tcp.accept_last = sk;
    net_socket_get(listener);
    net_socket_readable(listener);
    net_socket_put(listener);
    tcp_established(sk, skb); /* it may have data */
}

static void listen_receive(struct socket *listener, struct sk_buff *skb)
{
    struct net *net = listener->net;
    struct tcp_options options;
    k_compute(net->kernel, net->costs->ip_tcp_receive_cycles);
    uint8_t kind = skb->tcp_flags & (TCP_SYN | TCP_RST | TCP_ACK);
    if (kind != TCP_SYN || listener->tcp.n_accept >= ACCEPT_QUEUE) {
        if (kind & TCP_ACK)
            tcp_reply_reset(net, skb);
        skb_free(net, skb);
        return;
    }
    net_syn_options(net->kernel, skb, &options);
    struct socket *sk = net_socket_new(net, PROTOCOL_TCP);
    struct tcp *tp = &sk->tcp;
    sk->flow = skb->flow;
    net_socket_spin(sk);
    bool fresh = listener->hashed && net_socket_hash(sk);
    if (fresh) {
        tcp_init(sk);
        sk->rx_dev = skb->dev;
        sk->rx_hash = skb->hash;
        tp->listener = listener;
        listener->tcp.n_accept++;
        tp->state = TCP_SYN_RECEIVED;
        tp->rcv_nxt = tp->rcv_wup = skb->tcp_seq + 1;
        tp->ts_recent = skb->tcp_tsval;
        tp->snd_nxt = tp->write_seq = tp->snd_una + 1;
        net_route_socket(sk);
        tcp_init_transfer(sk, &options);
        tcp_send_syn(sk);
        tcp_timer_arm(sk, TCP_PENDING_RTO, tp->last_send_ps + tcp_rto(tp));
    } else {
        sk->listening = true; /* nothing of TCP to release */
        net_socket_put(sk);
    }
    net_socket_unspin(sk);
    skb_free(net, skb);
}

struct socket *socket_tcp_listen(struct net *net, uint32_t ip, uint16_t port)
{
    k_syscall(net->kernel);
    net_sockets_reap(net);
    struct socket *sk = net_socket_new(net, PROTOCOL_TCP);
    sk->flow.destination_ip = ip;
    sk->flow.destination_port = port;
    sk->listening = true;
    sk->tcp.state = TCP_LISTEN;
    if (net_socket_hash(sk))
        return sk;
    net_socket_put(sk);
    net_sockets_reap(net);
    return NULL;
}

struct socket *socket_accept(struct socket *listener)
{
    struct net *net = listener->net;
    struct tcp *tp = &listener->tcp;
    k_syscall(net->kernel);
    net_socket_touch_write(listener, SOCKET_LINE_QUEUES, 1);
    net_sockets_reap(net);
    net_socket_get(listener); /* it may be closed meanwhile */
    while (!tp->accept_first && !listener->error)
        k_wait(net->kernel, &listener->readable, NET_FOREVER);
    struct socket *sk = tp->accept_first;
    if (sk) {
        tp->accept_first = sk->tcp.accept_next;
        tp->n_accept--;
        sk->tcp.listener = NULL; /* its reference is the caller's from here on */
        net_socket_touch(sk, SOCKET_LINE_LOOKUP, 1);
    }
    net_socket_put(listener);
    return sk;
}

struct socket *socket_tcp_connect(struct net *net, uint32_t from_ip, uint32_t ip, uint16_t port)
{
    k_syscall(net->kernel);
    net_sockets_reap(net);
    struct socket *sk = net_socket_new(net, PROTOCOL_TCP);
    struct tcp *tp = &sk->tcp;
    sk->flow.source_ip = ip;
    sk->flow.source_port = port;
    sk->flow.destination_ip = from_ip;
    if (from_ip == 0 && net_route_socket(sk))
        sk->flow.destination_ip = sk->dev->ip;
    if (!net_route_socket(sk) || !net_socket_hash(sk)) {
        sk->listening = true; /* nothing of TCP to release */
        net_socket_put(sk);
        net_sockets_reap(net);
        return NULL;
    }
    net_socket_lock(sk);
    tcp_init(sk);
    tp->state = TCP_SYN_SENT;
    tp->snd_nxt = tp->write_seq = tp->snd_una + 1;
    tcp_send_syn(sk);
    tcp_timer_arm(sk, TCP_PENDING_RTO, tp->last_send_ps + tcp_rto(tp));
    while (tp->state == TCP_SYN_SENT) {
        net_socket_unlock(sk);
        if (tp->state == TCP_SYN_SENT)
            k_wait(net->kernel, &sk->writable, NET_FOREVER);
        net_socket_lock(sk);
    }
    net_socket_unlock(sk);
    if (tp->state != TCP_CLOSED)
        return sk;
    net_socket_put(sk);
    net_sockets_reap(net);
    return NULL;
}

/* ---- Closing --------------------------------------------------------------------------------- */

/* Resets connections that were not accepted. */
static void close_listener(struct socket *listener)
{
    struct net *net = listener->net;
    net_socket_unhash(listener);
    listener->error = -EBADF;
    for (;;) {
        struct socket *sk = net->all;
        while (sk && sk->tcp.listener != listener)
            sk = sk->next;
        if (!sk)
            break;
        net_socket_get(sk);
        net_socket_lock(sk);
        if (sk->tcp.listener == listener) {
            if (sk->tcp.state != TCP_CLOSED)
                tcp_send_reset(sk);
            sk->orphan = true;
            tcp_done(sk, -ECONNRESET);
        }
        if (sk->tcp.listener == listener) { /* closed already while it waited */
            sk->tcp.listener = NULL;
            net_socket_put(sk);
        }
        net_socket_unlock(sk);
        net_socket_put(sk);
    }
    listener->tcp.accept_first = NULL;
    net_socket_readable(listener);
}

void tcp_close(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (sk->listening) {
        close_listener(sk);
        return;
    }
    net_socket_lock(sk);
    sk->orphan = true;
    if (tp->state == TCP_ESTABLISHED || tp->state == TCP_CLOSE_WAIT) {
        if (sk->rx_head) { /* unread data */
            tcp_send_reset(sk);
            tcp_done(sk, 0);
        } else {
            tp->state = tp->state == TCP_ESTABLISHED ? TCP_FIN_WAIT1 : TCP_LAST_ACK;
            tcp_send_fin(sk);
        }
    } else if (tp->state == TCP_SYN_SENT)
        tcp_done(sk, 0);
    net_socket_unlock(sk);
}

/* ---- From the network ------------------------------------------------------------------------ */

static void time_wait(struct socket *sk, struct sk_buff *skb)
{
    struct net *net = sk->net;
    k_compute(net->kernel, net->costs->tcp_ack_receive_cycles);
    if (skb->tcp_flags & TCP_RST)
        tcp_done(sk, 0);
    else if (skb->bytes > 0 || skb->tcp_flags & (TCP_FIN | TCP_SYN))
        tcp_send_ack(sk);
    skb_free(net, skb);
}

void tcp_process(struct socket *sk, struct sk_buff *skb)
{
    switch (sk->tcp.state) {
    case TCP_CLOSED:
        tcp_reply_reset(sk->net, skb);
        skb_free(sk->net, skb);
        break;
    case TCP_SYN_SENT: syn_sent(sk, skb); break;
    case TCP_SYN_RECEIVED: syn_received(sk, skb); break;
    case TCP_TIME_WAIT: time_wait(sk, skb); break;
    default: tcp_established(sk, skb); break;
    }
}

static void add_backlog(struct socket *sk, struct sk_buff *skb)
{
    uint64_t limit = (uint64_t)sk->receive_buffer + sk->send_buffer + BACKLOG_EXTRA;
    if ((uint64_t)sk->backlog_truesize + sk->rmem_alloc > limit) {
        sk->net->stats.dropped_packets++;
        skb_free(sk->net, skb);
        return;
    }
    sk->backlog_truesize += skb->truesize;
    skb->next = NULL;
    if (sk->backlog)
        sk->backlog_tail->next = skb;
    else
        sk->backlog = skb;
    sk->backlog_tail = skb;
}

void tcp_receive(struct net *net, struct sk_buff *skb)
{
    struct socket *sk = net_lookup(net, &skb->flow);
    if (!sk) {
        k_compute(net->kernel, net->costs->ip_tcp_receive_cycles);
        net->stats.dropped_packets++;
        tcp_reply_reset(net, skb);
        skb_free(net, skb);
        return;
    }
    net_socket_get(sk);
    if (sk->listening)
        listen_receive(sk, skb);
    else {
        net_socket_touch(sk, SOCKET_LINE_LOOKUP, 1);
        net_socket_spin(sk);
        sk->rx_dev = skb->dev;
        sk->rx_hash = skb->hash;
        if (sk->owned)
            add_backlog(sk, skb);
        else
            tcp_process(sk, skb);
        net_socket_unspin(sk);
    }
    net_socket_put(sk);
}
