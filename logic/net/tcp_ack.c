/*
 * What it does: Processes acknowledgements at the sender: updates the window, measures round trips
 *   (Karn), frees what is acknowledged and wakes writers, grows the congestion window, computes the
 *   pacing rate that sizes buffers. What SACK says is read in tcp_sack.c, what is lost is decided
 *   in tcp_recovery.c.
 * Leaves out: ECN; round trips by time stamps where segments were repeated.
 * Follows: RFC 5681, 6298, 7323; Linux 4.14 net/ipv4/tcp_input.c (tcp_ack, tcp_clean_rtx_queue,
 *   tcp_ack_update_rtt, tcp_rtt_estimator, tcp_cong_control, tcp_update_pacing_rate,
 *   tcp_sndbuf_expand, tcp_new_space).
 * Costs: Part of tcp_ack_receive_cycles or ip_tcp_receive_cycles; freed pages cost what skb.c says.
 */
#include "logic/net/net_internal.h"

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
    tp->min_rtt_ps = NET_MIN(tp->min_rtt_ps, rtt_ps);
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

/* So many segments of a buffer that was sent again, or sacked. */
static void acked_tagged(struct tcp *tp, const struct sk_buff *skb, uint32_t segments,
                         struct tcp_acked *acked)
{
    if (skb->tcp_sacked & TCP_TAG_RETRANSMITTED)
        tp->retrans_out -= segments;
    if (skb->tcp_sacked & TCP_TAG_LOST)
        tp->lost_out -= segments;
    if (skb->tcp_sacked & TCP_TAG_SACKED) {
        tp->sacked_out -= segments;
        tp->delivered -= segments; /* counted when it was sacked */
    }
    acked->retransmitted = acked->retransmitted || skb->tcp_sacked & TCP_TAG_EVER;
}

static void note_acked(struct socket *sk, const struct sk_buff *skb, uint32_t segments,
                       struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    acked->segments += segments;
    tp->packets_out -= segments;
    tp->delivered += segments;
    /* Below what was sacked before, but not itself: it was overtaken. */
    if (acked->sacked_before && !(skb->tcp_sacked & (TCP_TAG_SACKED | TCP_TAG_EVER)) &&
        tcp_before(tcp_first_seq(skb), acked->highest_before) && !acked->disorder) {
        acked->disorder = true;
        acked->disorder_seq = tcp_first_seq(skb);
        tcp_reordered(tp, acked->disorder_seq, acked->highest_before);
    }
    if (!(skb->tcp_sacked & TCP_TAG_SACKED))
        tcp_rack_advance(sk, skb);
    if (skb->tcp_sacked)
        acked_tagged(tp, skb, segments, acked);
    if (skb->tcp_sacked & (TCP_TAG_SACKED | TCP_TAG_EVER))
        return;
    if (acked->first_ps == 0)
        acked->first_ps = skb->time_ps;
    acked->last_ps = skb->time_ps;
}

static void clean_queue(struct socket *sk, uint32_t ack, struct tcp_acked *acked)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    tp->snd_una = ack;
    while (tp->head != tp->unsent && !tcp_after(tcp_end_seq(tp->head), ack)) {
        struct sk_buff *skb = tp->head;
        note_acked(sk, skb, skb->gso_segments, acked);
        sk->wmem_queued -= skb->truesize;
        tp->head = skb->next;
        if (!tp->head)
            tp->tail = NULL;
        skb->next = NULL;
        skb_free(net, skb);
    }
    if (tp->head != tp->unsent && tcp_after(ack, tp->head->tcp_seq)) { /* a part of it */
        struct sk_buff *skb = tp->head;
        uint32_t before = skb->gso_segments, skip = NET_MIN(ack - skb->tcp_seq, skb->bytes);
        uint32_t left = skb->bytes - skip;
        uint32_t after = left <= tp->mss ? 1 : (left + tp->mss - 1) / tp->mss;
        if (before > after)
            note_acked(sk, skb, before - after, acked);
        skb->skip_bytes = skip;
        skb->gso_segments = (uint16_t)after;
    }
}

/* True: what was sacked had been sent before the oldest segment was sent last. The timer is not set
 * anew by what was sent behind that: it would be put off for as long as such answers come. */
static bool round_trips(struct socket *sk, const struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net)), rtt, last_ps = acked->last_ps;
    bool in_order = !acked->retransmitted && acked->first_ps != 0;
    if (!in_order && acked->sacked_first_ps == 0)
        return false;
    rtt = now - (in_order ? acked->first_ps : acked->sacked_first_ps);
    if (acked->sacked_first_ps != 0)
        last_ps = acked->sacked_last_ps;
    tcp_rtt_sample(sk, rtt);
    tp->min_rtt_ps = NET_MIN(tp->min_rtt_ps, now - last_ps);
    tcp_cubic_sample(sk, now - last_ps);
    return acked->sacked_first_ps != 0 && tp->packets_out > 0 &&
           acked->sacked_first_ps < tp->head->time_ps;
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

/* New data may go out faster; or, after a loss, what is repeated (tcp_cong_control). */
static void adapt_window(struct socket *sk, uint32_t ack, uint32_t delivered,
                         const struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    if (tp->congestion == TCP_CA_RECOVERY)
        tcp_cwnd_reduction(tp, delivered, acked);
    else if (acked->advanced || (acked->sacked && tp->reordering > TCP_REORDERING))
        tcp_cubic_avoid(sk, ack, delivered);
    update_pacing(tp);
}

/* Sent before what was acknowledged already: only its SACK blocks are of use. */
static void old_ack(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp_acked acked = { .tsecr = skb->tcp_tsecr };
    if (!skb->tcp_sacked || sk->tcp.packets_out == 0)
        return;
    tcp_sack_tag(sk, skb, sk->tcp.snd_una, &acked);
    if (tcp_alert(sk, &acked))
        tcp_retransmit_lost(sk);
}

bool tcp_ack(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    uint32_t ack = skb->tcp_ack, una = tp->snd_una, delivered = tp->delivered;
    if (tcp_before(ack, una)) {
        old_ack(sk, skb);
        return true;
    }
    if (tcp_after(ack, tp->snd_nxt))
        return false;
    bool was_out = tp->packets_out > 0, window_changed = update_window(tp, skb);
    bool set_timer = false;
    struct tcp_acked acked = { .tsecr = skb->tcp_tsecr,
                               .advanced = tcp_after(ack, una),
                               .sacked_before = tp->sacked_out > 0,
                               .highest_before = tp->highest_sack };
    if (skb->tcp_sacked)
        tcp_sack_tag(sk, skb, una, &acked);
    if (!was_out) {
        if (acked.dsacked)
            tcp_alert(sk, &acked);
        answer_to_probe(sk);
        if (tp->probe_out)
            tcp_probe_acked(sk, ack, &acked);
        return true;
    }
    if (acked.advanced) {
        tp->backoff = 0;
        clean_queue(sk, ack, &acked);
        set_timer = true;
    } else if (skb->bytes == 0 && !window_changed && !(skb->tcp_flags & TCP_FIN)) {
        sk->net->stats.duplicate_acks++;
        acked.duplicate = true;
    }
    set_timer = round_trips(sk, &acked) || set_timer;
    if (tp->probe_out)
        tcp_probe_acked(sk, ack, &acked);
    if (set_timer && !tcp_schedule_loss_probe(sk))
        tcp_rearm_rto(sk);
    bool repeat = false;
    if (tp->congestion != TCP_CA_OPEN || acked.duplicate || acked.sacked || acked.dsacked)
        repeat = tcp_alert(sk, &acked);
    adapt_window(sk, ack, tp->delivered - delivered, &acked);
    if (repeat)
        tcp_retransmit_lost(sk);
    return true;
}
