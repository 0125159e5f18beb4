/*
 * What it does: Processes acknowledgements at the sender: updates the window, measures round trips
 *   (Karn), frees what is acknowledged and wakes writers, recovers losses like NewReno (RFC 6582,
 *   careful variant; duplicate acknowledgements stand for segments that have left the network, as
 *   in Linux without SACK), goes back after a time-out, grows the congestion window, computes the
 *   pacing rate that sizes buffers.
 * Leaves out: SACK, D-SACK, F-RTO, RACK, undoing of reductions, proportional rate reduction, ECN.
 * Follows: RFC 5681, 6298, 6582, 7323; Linux 4.14 net/ipv4/tcp_input.c (tcp_ack,
 *   tcp_clean_rtx_queue, tcp_rtt_estimator, tcp_fastretrans_alert, tcp_update_pacing_rate,
 *   tcp_sndbuf_expand, tcp_new_space).
 * Costs: Part of tcp_ack_receive_cycles or ip_tcp_receive_cycles; freed pages cost what skb.c says.
 */
#include "logic/net/net_internal.h"

#define DUP_ACKS     3u
#define PACING_SLOW  200u /* percent, in slow start */
#define PACING_AVOID 120u

/* ---- Round trips ----------------------------------------------------------------------------- */

void tcp_rtt_sample(struct socket *sk, uint64_t rtt_ps)
{
    struct tcp *tp = &sk->tcp;
    if (tp->srtt_ps == 0) {
        tp->srtt_ps = NET_MAX(rtt_ps, 1);
        tp->rttvar_ps = rtt_ps / 2;
    } else {
        uint64_t error = rtt_ps > tp->srtt_ps ? rtt_ps - tp->srtt_ps : tp->srtt_ps - rtt_ps;
        tp->rttvar_ps = tp->rttvar_ps - tp->rttvar_ps / 4 + error / 4;
        tp->srtt_ps = tp->srtt_ps - tp->srtt_ps / 8 + rtt_ps / 8;
    }
    tp->rto_ps = tp->srtt_ps + NET_MAX(4 * tp->rttvar_ps, sk->net->params.rto_min_ps);
}

static void update_pacing(struct tcp *tp)
{
    uint64_t percent = tp->cwnd < tp->ssthresh / 2 ? PACING_SLOW : PACING_AVOID;
    uint64_t srtt_ns = tp->srtt_ps / 1000;
    uint64_t bytes = (uint64_t)tp->mss * NET_MAX(tp->cwnd, tp->packets_out) * percent / 100;
    if (srtt_ns > 0)
        tp->pacing_byte_s = bytes * 1000000000u / srtt_ns;
}

/* ---- Space for writers ----------------------------------------------------------------------- */

/* A segment at worst: a buffer of its own, whose data come from areas of powers of two. */
static uint32_t segment_memory(const struct tcp *tp)
{
    uint32_t needed = tp->mss_clamp + MAX_TCP_HEADER + SKB_SHARED_BYTES, area = 1;
    while (area < needed)
        area <<= 1;
    return area + SKB_STRUCT_BYTES;
}

void tcp_sndbuf_expand(struct socket *sk)
{
    const struct tcp *tp = &sk->tcp;
    const struct net_params *params = &sk->net->params;
    uint32_t segments = NET_MAX(tp->cwnd, params->initial_window_segments);
    uint64_t wanted = 2 * (uint64_t)segments * segment_memory(tp);
    wanted = NET_MIN(wanted, params->send_buffer_bytes);
    if (wanted > sk->send_buffer)
        sk->send_buffer = (uint32_t)wanted;
}

void tcp_new_space(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (!sk->no_space)
        return;
    if (tp->packets_out < tp->cwnd) /* the buffer limits, not the network */
        tcp_sndbuf_expand(sk);
    if (sk->wmem_queued + sk->wmem_queued / 2 > sk->send_buffer)
        return;
    sk->no_space = false;
    net_socket_writable(sk);
}

/* ---- What is acknowledged -------------------------------------------------------------------- */

struct acked {
    uint32_t segments;
    uint64_t first_ps, last_ps; /* when the oldest and the youngest were sent; 0: not known */
    bool retransmitted;
};

static void note_acked(struct acked *acked, const struct sk_buff *skb, uint32_t segments)
{
    acked->segments += segments;
    acked->retransmitted = acked->retransmitted || skb->retransmitted;
    if (acked->first_ps == 0)
        acked->first_ps = skb->time_ps;
    acked->last_ps = skb->time_ps;
}

static void clean_queue(struct socket *sk, uint32_t ack, struct acked *acked)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    tp->snd_una = ack;
    while (tp->head != tp->unsent && !tcp_after(tcp_end_seq(tp->head), ack)) {
        struct sk_buff *skb = tp->head;
        note_acked(acked, skb, skb->gso_segments);
        tp->packets_out -= skb->gso_segments;
        sk->wmem_queued -= skb->truesize;
        tp->head = skb->next;
        if (!tp->head)
            tp->tail = NULL;
        skb->next = NULL;
        skb_free(net, skb);
    }
    if (tp->head != tp->unsent && tcp_after(ack, tp->head->tcp_seq)) { /* a part of it */
        struct sk_buff *skb = tp->head;
        uint32_t before = skb->gso_segments;
        skb->skip_bytes = NET_MIN(ack - skb->tcp_seq, skb->bytes);
        skb->gso_segments = (uint16_t)tcp_segments(tp, skb);
        tp->packets_out -= before - skb->gso_segments;
        if (before > skb->gso_segments)
            note_acked(acked, skb, before - skb->gso_segments);
    }
}

static void round_trips(struct socket *sk, const struct acked *acked)
{
    uint64_t now = k_now_ps(net_kernel(sk->net));
    if (acked->retransmitted || acked->first_ps == 0)
        return;
    tcp_rtt_sample(sk, now - acked->first_ps);
    tcp_cubic_sample(sk, now - acked->last_ps);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void enter_recovery(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    tp->ssthresh = tcp_cubic_ssthresh(tp);
    tp->cwnd = tp->ssthresh;
    tp->cwnd_count = 0;
    tp->recover = tp->snd_nxt;
    tp->congestion = TCP_CA_RECOVERY;
    tcp_retransmit(sk, tp->snd_una, 1);
    tcp_timer_arm(sk, TCP_PENDING_RTO, tp->last_send_ps + tcp_rto(tp));
}

void tcp_enter_loss(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    /* Once for what was lost together: not when it is found again after fast retransmit, or by the
     * same segment's next time-out; but when a repetition was lost after others had arrived. */
    if (tp->congestion == TCP_CA_OPEN || !tcp_before(tp->snd_una, tp->recover) ||
        (tp->congestion == TCP_CA_LOSS && tp->backoff == 1))
        tp->ssthresh = tcp_cubic_ssthresh(tp);
    tp->recover = tp->snd_nxt;
    tp->congestion = TCP_CA_LOSS;
    tp->cwnd = 1;
    tp->cwnd_count = 0;
    tp->dup_acks = 0;
    tp->rtx_next = tp->snd_una;
    tcp_cubic_reset(sk);
}

static void duplicate(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    sk->net->stats.duplicate_acks++;
    if (tp->congestion == TCP_CA_LOSS)
        return;
    tp->dup_acks++;
    /* Before something new was acknowledged these may be answers to our own repetitions. */
    if (tp->congestion == TCP_CA_OPEN && tp->dup_acks == DUP_ACKS &&
        tcp_after(tp->snd_una, tp->recover))
        enter_recovery(sk);
}

static void progress(struct socket *sk, uint32_t ack, uint32_t segments)
{
    struct tcp *tp = &sk->tcp;
    if (tp->congestion == TCP_CA_OPEN) {
        tp->dup_acks = 0;
        tp->recover = ack - 1; /* it was passed already; follows, or would be ahead after 2 GiB */
        return;
    }
    if (!tcp_before(ack, tp->recover)) {
        tp->congestion = TCP_CA_OPEN;
        tp->dup_acks = 0;
        return;
    }
    if (tp->congestion == TCP_CA_LOSS) {
        if (tcp_after(ack, tp->rtx_next))
            tp->rtx_next = ack;
        return;
    }
    /* A partial acknowledgement: one was repeated, the others had left the network before; the next
     * hole begins here. */
    uint32_t left = segments > 1 ? segments - 1 : 0;
    tp->dup_acks -= NET_MIN(tp->dup_acks, left);
    tcp_retransmit(sk, tp->snd_una, 1);
}

/* ---- An acknowledgement ---------------------------------------------------------------------- */

static bool update_window(struct tcp *tp, const struct sk_buff *skb)
{
    uint32_t window = (uint32_t)skb->tcp_window << tp->snd_scale;
    bool newer = tcp_after(skb->tcp_ack, tp->snd_una) || tcp_after(skb->tcp_seq, tp->snd_wl1) ||
                 (skb->tcp_seq == tp->snd_wl1 && window > tp->snd_wnd);
    if (!newer)
        return false;
    tp->snd_wl1 = skb->tcp_seq;
    bool changed = tp->snd_wnd != window;
    tp->snd_wnd = window;
    tp->max_window = NET_MAX(tp->max_window, window);
    return changed;
}

/* Nothing was in flight: a window that opens ends the probing, another one slows it down. */
static void answer_to_probe(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (!tp->unsent)
        return;
    if (!tcp_after(tcp_end_seq(tp->unsent), tp->snd_una + tp->snd_wnd)) {
        tp->backoff = 0;
        if (tp->pending == TCP_PENDING_PROBE)
            tcp_timer_stop(sk);
    } else
        tcp_timer_arm(sk, TCP_PENDING_PROBE, k_now_ps(net_kernel(sk->net)) + tcp_rto(tp));
}

bool tcp_ack(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint32_t ack = skb->tcp_ack, una = tp->snd_una;
    if (tcp_before(ack, una))
        return true;
    if (tcp_after(ack, tp->snd_nxt))
        return false;
    bool was_out = tp->packets_out > 0, window_changed = update_window(tp, skb);
    struct acked acked = { .segments = 0 };
    if (!was_out) {
        answer_to_probe(sk);
        return true;
    }
    if (tcp_after(ack, una)) {
        tp->backoff = 0;
        clean_queue(sk, ack, &acked);
        round_trips(sk, &acked);
        progress(sk, ack, acked.segments);
        if (tp->congestion != TCP_CA_RECOVERY)
            tcp_cubic_avoid(sk, ack, acked.segments);
        if (tp->packets_out == 0)
            tcp_timer_stop(sk);
        else
            tcp_timer_arm(sk, TCP_PENDING_RTO, k_now_ps(net_kernel(sk->net)) + tcp_rto(tp));
    } else if (skb->bytes == 0 && !window_changed && !(skb->tcp_flags & TCP_FIN))
        duplicate(sk);
    update_pacing(tp);
    return true;
}
