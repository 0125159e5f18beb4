/*
 * What it does: The receiver's flow control and acknowledgements: the advertised window (never
 *   shrunk, no silly window), its slow start and its autotuning (dynamic right-sizing), quick and
 *   delayed acknowledgements with the pingpong rule, acknowledgements sent by the reader.
 * Leaves out: Memory pressure, collapsing and pruning of queues (what is in the window is kept),
 *   the adaptive delay of acknowledgements (it is delayed_ack_ps, the lower bound of Linux's
 *   estimate).
 * Follows: Linux 4.14 net/ipv4/tcp_output.c (tcp_select_window, __tcp_select_window,
 *   tcp_send_delayed_ack), net/ipv4/tcp_input.c (tcp_grow_window, tcp_rcv_space_adjust,
 *   tcp_rcv_rtt_update, tcp_measure_rcv_mss, tcp_event_data_recv, __tcp_ack_snd_check),
 *   net/ipv4/tcp.c (tcp_cleanup_rbuf); RFC 1122 4.2.3; RFC 5681 4.2.
 */
#include "logic/net/net_internal.h"

#define QUICK_ACKS_MAX 16u

/* Window that a buffer of so many bytes stands for (tcp_adv_win_scale 1). */
static uint32_t full_space(const struct socket *sk)
{
    return sk->receive_buffer / 2;
}

static uint32_t tcp_space(const struct socket *sk)
{
    uint32_t used = sk->rmem_alloc + sk->backlog_truesize;
    return used >= sk->receive_buffer ? 0 : (sk->receive_buffer - used) / 2;
}

uint32_t tcp_receive_window(const struct tcp *tp)
{
    int32_t window = (int32_t)(tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt);
    return window < 0 ? 0 : (uint32_t)window;
}

static uint32_t tcp_select_window_raw(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint32_t allowed = full_space(sk), unit = 1u << tp->rcv_scale;
    uint32_t full = NET_MIN(tp->window_clamp, allowed);
    uint32_t mss = NET_MIN(tp->rcv_mss, full);
    uint32_t space = tcp_space(sk);
    if (space < full / 2) {
        tp->quick = 0;
        space = space / unit * unit;
        if (space < allowed / 16 || space < mss)
            return 0;
    }
    space = NET_MIN(space, tp->rcv_ssthresh);
    return (space + unit - 1) / unit * unit;
}

uint16_t tcp_select_window(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint32_t unit = 1u << tp->rcv_scale;
    uint32_t now = tcp_receive_window(tp), window = tcp_select_window_raw(sk);
    if (window < now)
        window = (now + unit - 1) / unit * unit;
    window = NET_MIN(window, (uint32_t)UINT16_MAX << tp->rcv_scale);
    tp->rcv_wnd = window;
    tp->rcv_wup = tp->rcv_nxt;
    return (uint16_t)(window >> tp->rcv_scale);
}

/* The sender slow-starts; the window that it sees does so too. */
static void tcp_grow_window(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->rcv_ssthresh < tp->window_clamp && tp->rcv_ssthresh < tcp_space(sk)) {
        tp->rcv_ssthresh = NET_MIN(tp->rcv_ssthresh + 2 * tp->mss, tp->window_clamp);
        tp->quick |= 1;
    }
}

/* ---- Autotuning ------------------------------------------------------------------------------ */

/* A round trip as the receiver sees it: our timestamp came back, in whole milliseconds. */
static void tcp_rcv_rtt(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    if (skb->tcp_tsecr == 0 || skb->bytes < tp->rcv_mss)
        return;
    uint64_t sample_us = (uint64_t)(tcp_now_ms(sk->net) - skb->tcp_tsecr) * 1000;
    if (sample_us == 0)
        sample_us = 1;
    if (tp->rcv_rtt_us8 == 0)
        tp->rcv_rtt_us8 = sample_us << 3;
    else
        tp->rcv_rtt_us8 += sample_us - (tp->rcv_rtt_us8 >> 3);
}

/* Called as data is copied to the reader. */
void tcp_rcv_space_adjust(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net));
    if (tp->rcv_rtt_us8 == 0 || (now - tp->space_ps) / K_US < tp->rcv_rtt_us8 >> 3)
        return;
    uint32_t copied = tp->copied_seq - tp->space_seq;
    if (copied > tp->space) {
        uint64_t window = 2 * (uint64_t)copied + 16 * tp->mss;
        if (copied >= tp->space + tp->space / 4)
            window += copied >= tp->space + tp->space / 2 ? window : window / 2;
        /* Twice the window: what packets take in memory beyond their payload. */
        uint64_t buffer = NET_MIN(2 * window, sk->net->params.receive_buffer_bytes);
        if (buffer > sk->receive_buffer) {
            sk->receive_buffer = (uint32_t)buffer;
            tp->window_clamp = (uint32_t)NET_MIN(window, buffer);
        }
        tp->space = copied;
    }
    tp->space_seq = tp->copied_seq;
    tp->space_ps = now;
}

/* ---- Acknowledgements ------------------------------------------------------------------------ */

/* Several to come at once: at the start, after a pause, when segments are missing. */
void tcp_quick_ack(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint32_t n = NET_MAX(tp->rcv_wnd / (2 * tp->rcv_mss), 2);
    tp->quick = NET_MAX(tp->quick, NET_MIN(n, QUICK_ACKS_MAX));
}

static void measure_rcv_mss(struct tcp *tp, const struct sk_buff *skb)
{
    uint32_t bytes = skb->gso_segments > 1 ? skb->gso_bytes : skb->bytes;
    if (bytes >= tp->rcv_mss)
        tp->rcv_mss = NET_MIN(bytes, tp->mss);
    else {
        tp->ack_pushed2 = tp->ack_pushed2 || tp->ack_pushed;
        tp->ack_pushed = true;
    }
}

void tcp_event_data(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net));
    tp->ack_scheduled = true;
    measure_rcv_mss(tp, skb);
    tcp_rcv_rtt(sk, skb);
    if (!tp->any_received || now - tp->last_receive_ps > tp->rto_ps)
        tcp_quick_ack(sk);
    tp->any_received = true;
    tp->last_receive_ps = now;
    if (skb->bytes >= 128)
        tcp_grow_window(sk);
}

static void delay_ack(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net)), delay = sk->net->params.delayed_ack_ps;
    if (tp->ack_at_ps != 0) {
        /* One is on its way: if the reader held it up, or it is due soon, now. */
        if (tp->ack_blocked || tp->ack_at_ps <= now + delay / 4)
            tcp_send_ack(sk);
        return;
    }
    tcp_ack_later(sk, now + delay);
}

void tcp_ack_check(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (!tp->ack_scheduled)
        return;
    if ((tp->rcv_nxt - tp->rcv_wup > tp->rcv_mss && tcp_select_window_raw(sk) >= tp->rcv_wnd) ||
        (tp->quick > 0 && !tp->ping_pong) || tp->out_of_order)
        tcp_send_ack(sk);
    else
        delay_ack(sk);
}

void tcp_cleanup_receive(struct socket *sk, uint32_t copied)
{
    struct tcp *tp = &sk->tcp;
    bool now = false;
    if (tp->ack_scheduled)
        now = tp->ack_blocked || tp->rcv_nxt - tp->rcv_wup > tp->rcv_mss ||
              (copied > 0 && (tp->ack_pushed2 || (tp->ack_pushed && !tp->ping_pong)) &&
               sk->rmem_alloc == 0);
    if (copied > 0 && !now && !tp->fin_received) {
        /* The window as the other side knows it would at least double. */
        uint32_t window = tcp_receive_window(tp);
        if (2 * window <= tp->window_clamp) {
            uint32_t new_window = tcp_select_window_raw(sk);
            now = new_window > 0 && new_window >= 2 * window;
        }
    }
    if (now)
        tcp_send_ack(sk);
}
