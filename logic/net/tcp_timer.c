/*
 * What it does: TCP's timers: one for what is in flight (retransmission with back-off, loss probes,
 *   the end of patience with reordering, zero window probes), one for delayed acknowledgements; the
 *   ends of FIN_WAIT2 and TIME_WAIT. RTO = SRTT + max(4 RTTVAR, rto_min), doubled per expiry, at
 *   most 120 s; 1 s before the first sample. The connection ends after 15 repetitions (6 of a SYN,
 *   5 of a SYN with ACK).
 * Leaves out: keep-alive, orphan limits.
 * Follows: RFC 6298; Linux 4.14 net/ipv4/tcp_timer.c, include/net/tcp.h (TCP_RTO_MAX, TCP_RETR2,
 *   TCP_SYN_RETRIES, TCP_SYNACK_RETRIES, TCP_TIMEWAIT_LEN).
 * Costs: The kernel's timer is moved when it has to fire earlier, or would within a millisecond
 *   though it has to later: while acknowledgements come it does not fire, and they cost a timer
 *   operation once in two milliseconds or so.
 */
#include "logic/net/net_internal.h"

#define TOO_SOON_PS    K_MS
#define RTO_MAX_PS     (120 * K_S)
#define RETRIES        15u
#define SYN_RETRIES    6u
#define SYNACK_RETRIES 5u

uint64_t tcp_rto(const struct tcp *tp)
{
    uint64_t rto = tp->rto_ps << NET_MIN(tp->backoff, 20);
    return NET_MIN(rto, RTO_MAX_PS);
}

void tcp_timer_arm(struct socket *sk, enum tcp_pending what, uint64_t at_ps)
{
    struct tcp *tp = &sk->tcp;
    tp->pending = what;
    tp->timer_at_ps = at_ps;
    if (!k_timer_pending(&tp->timer) || at_ps < tp->timer_set_ps ||
        (at_ps > tp->timer_set_ps &&
         tp->timer_set_ps < k_now_ps(net_kernel(sk->net)) + TOO_SOON_PS)) {
        tp->timer_set_ps = at_ps;
        k_timer_set(&tp->timer, at_ps);
    }
}

void tcp_timer_stop(struct socket *sk)
{
    sk->tcp.pending = TCP_PENDING_NONE;
}

void tcp_ack_later(struct socket *sk, uint64_t at_ps)
{
    struct tcp *tp = &sk->tcp;
    tp->ack_at_ps = at_ps;
    if (!k_timer_pending(&tp->ack_timer))
        k_timer_set(&tp->ack_timer, at_ps);
}

static void syn_expired(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    unsigned retries = tp->state == TCP_SYN_RECEIVED ? SYNACK_RETRIES : SYN_RETRIES;
    if (tp->backoff++ >= retries) {
        tcp_done(sk, -ETIMEDOUT);
        return;
    }
    sk->net->stats.retransmitted_segments++;
    tcp_send_syn(sk);
    tcp_timer_arm(sk, TCP_PENDING_RTO, tp->last_send_ps + tcp_rto(tp));
}

static void rto_expired(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    sk->net->stats.timeouts++;
    if (tp->state == TCP_SYN_SENT || tp->state == TCP_SYN_RECEIVED) {
        syn_expired(sk);
        return;
    }
    if (tp->packets_out == 0)
        return;
    if (tp->backoff++ >= RETRIES) {
        tcp_done(sk, -ETIMEDOUT);
        return;
    }
    tcp_enter_loss(sk);
    tcp_retransmit(sk, tp->head, 1, false);
    tcp_timer_arm(sk, TCP_PENDING_RTO, k_now_ps(net_kernel(sk->net)) + tcp_rto(tp));
}

static void probe_expired(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->packets_out > 0 || !tp->unsent)
        return;
    if (tp->backoff >= RETRIES && sk->orphan) {
        tcp_done(sk, -ETIMEDOUT);
        return;
    }
    tcp_send_probe(sk);
    if (tp->packets_out > 0)
        return; /* a part of a segment went, its RTO is set */
    tp->backoff += tp->backoff < RETRIES;
    tcp_timer_arm(sk, TCP_PENDING_PROBE, k_now_ps(net_kernel(sk->net)) + tcp_rto(tp));
}

void tcp_timer_run(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    enum tcp_pending what = tp->pending;
    if (tp->state == TCP_CLOSED || what == TCP_PENDING_NONE)
        return;
    if (k_now_ps(net_kernel(sk->net)) < tp->timer_at_ps) {
        tcp_timer_arm(sk, what, tp->timer_at_ps);
        return;
    }
    switch (what) {
    case TCP_PENDING_LOSS_PROBE: tcp_loss_probe_expired(sk); return;
    case TCP_PENDING_REORDER: tcp_reorder_expired(sk); return;
    default: break;
    }
    tp->pending = TCP_PENDING_NONE;
    if (what == TCP_PENDING_END)
        tcp_done(sk, 0);
    else if (what == TCP_PENDING_RTO)
        rto_expired(sk);
    else
        probe_expired(sk);
}

void tcp_ack_timer_run(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->state == TCP_CLOSED || tp->ack_at_ps == 0)
        return;
    if (k_now_ps(net_kernel(sk->net)) < tp->ack_at_ps) {
        k_timer_set(&tp->ack_timer, tp->ack_at_ps);
        return;
    }
    tp->ack_at_ps = 0;
    tp->ping_pong = false;
    if (tp->ack_scheduled)
        tcp_send_ack(sk);
}

/* Either timer fired: what it is for is done, or left to the owner. */
static void fired(struct socket *sk, unsigned defer)
{
    if (sk->refs == 0)
        return; /* unreferenced, about to be freed */
    net_socket_get(sk);
    net_socket_spin(sk);
    if (sk->owned) {
        sk->deferred |= defer;
        if (defer == SOCKET_DEFER_ACK)
            sk->tcp.ack_blocked = true;
    } else
        tcp_deferred(sk, defer);
    net_socket_unspin(sk);
    net_socket_put(sk);
}

static void timer_fired(struct k_timer *timer)
{
    fired(K_CONTAINER(timer, struct socket, tcp.timer), SOCKET_DEFER_TIMER);
}

static void ack_timer_fired(struct k_timer *timer)
{
    fired(K_CONTAINER(timer, struct socket, tcp.ack_timer), SOCKET_DEFER_ACK);
}

void tcp_timers_init(struct socket *sk)
{
    k_timer_init(&sk->tcp.timer, net_kernel(sk->net), timer_fired);
    k_timer_init(&sk->tcp.ack_timer, net_kernel(sk->net), ack_timer_fired);
}
