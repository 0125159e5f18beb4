/*
 * What it does: CUBIC with HyStart (the default of Linux): slow start until acknowledgement trains
 *   or round trips show that the path is full, then a window that follows C (t - K)^3 around the
 *   last maximum, never slower than NewReno; beta 717/1024, C 0.4, fast convergence. Pauses of the
 *   sender do not count.
 * Leaves out: jiffies coarser than a millisecond.
 * Follows: Linux 4.14 net/ipv4/tcp_cubic.c, net/ipv4/tcp_cong.c (tcp_slow_start,
 *   tcp_cong_avoid_ai); Ha, Rhee, Xu, "CUBIC", SIGOPS OSR 42(5), 2008; RFC 8312.
 */
#include "logic/net/net_internal.h"

#define BETA         717u /* of 1024 */
#define C_SCALED     410u /* 0.4 of 1024 */
#define TIME_LOG2    10u  /* time in 1/1024 s */
#define BETA_SCALE   (8u * (1024u + BETA) / 3u / (1024u - BETA))
#define CUBE_FACTOR  ((UINT64_C(1) << (10 + 3 * TIME_LOG2)) / C_SCALED)
#define CWND_MIN     2u
#define LOW_WINDOW   16u /* HyStart below it: no */
#define MIN_SAMPLES  8u
#define ACK_DELTA_MS 2u
#define DELAY_MIN    (4u << 3)
#define DELAY_MAX    (16u << 3)
#define EVER_GROWING 100u

static uint32_t cube_root(uint64_t a)
{
    uint32_t root = 0;
    for (uint32_t bit = 1u << 20; bit; bit >>= 1) {
        uint64_t next = root | bit;
        if (next * next * next <= a)
            root = (uint32_t)next;
    }
    return root;
}

uint32_t tcp_cubic_ssthresh(struct tcp *tp)
{
    struct tcp_cubic *ca = &tp->cubic;
    ca->epoch_ms = 0;
    ca->last_max = tp->cwnd < ca->last_max ? tp->cwnd * (1024 + BETA) / (2 * 1024) : tp->cwnd;
    return NET_MAX(tp->cwnd * BETA / 1024, CWND_MIN);
}

/* ---- HyStart --------------------------------------------------------------------------------- */

static void hystart_round(struct tcp *tp, uint32_t now_ms)
{
    struct tcp_cubic *ca = &tp->cubic;
    ca->round_ms = ca->last_ack_ms = now_ms;
    ca->round_end = tp->snd_nxt;
    ca->round_rtt = 0;
    ca->n_samples = 0;
}

void tcp_cubic_reset(struct socket *sk)
{
    memset(&sk->tcp.cubic, 0, sizeof sk->tcp.cubic);
    hystart_round(&sk->tcp, (uint32_t)(k_now_ps(net_kernel(sk->net)) / K_MS));
}

static void hystart(struct tcp *tp, uint32_t now_ms, uint32_t delay)
{
    struct tcp_cubic *ca = &tp->cubic;
    if (ca->found)
        return;
    if (now_ms - ca->last_ack_ms <= ACK_DELTA_MS) {
        ca->last_ack_ms = now_ms;
        ca->found = now_ms - ca->round_ms > ca->delay_min >> 4;
    }
    if (ca->n_samples < MIN_SAMPLES) {
        if (ca->round_rtt == 0 || ca->round_rtt > delay)
            ca->round_rtt = delay;
        ca->n_samples++;
    } else {
        uint32_t more = NET_MIN(NET_MAX(ca->delay_min >> 3, DELAY_MIN), DELAY_MAX);
        ca->found = ca->found || ca->round_rtt > ca->delay_min + more;
    }
    if (ca->found)
        tp->ssthresh = tp->cwnd;
}

void tcp_cubic_sample(struct socket *sk, uint64_t rtt_ps)
{
    struct tcp *tp = &sk->tcp;
    struct tcp_cubic *ca = &tp->cubic;
    uint32_t now_ms = (uint32_t)(k_now_ps(net_kernel(sk->net)) / K_MS);
    uint32_t delay = (uint32_t)(8 * rtt_ps / K_MS);
    if (ca->epoch_ms != 0 && now_ms - ca->epoch_ms < 1000)
        return; /* right after a reduction */
    delay = NET_MAX(delay, 1);
    if (ca->delay_min == 0 || ca->delay_min > delay)
        ca->delay_min = delay;
    if (tp->cwnd < tp->ssthresh && tp->cwnd >= LOW_WINDOW)
        hystart(tp, now_ms, delay);
}

/* ---- Growth ---------------------------------------------------------------------------------- */

static void begin_epoch(struct tcp_cubic *ca, uint32_t cwnd, uint32_t acked, uint32_t now_ms)
{
    ca->epoch_ms = now_ms;
    ca->acked = acked;
    ca->reno_cwnd = cwnd;
    ca->k = 0;
    ca->origin = cwnd;
    if (ca->last_max > cwnd) {
        ca->k = cube_root(CUBE_FACTOR * (ca->last_max - cwnd));
        ca->origin = ca->last_max;
    }
}

/* Time without transmission does not count: the cubic resumes where it was. */
void tcp_cubic_resume(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct tcp_cubic *ca = &tp->cubic;
    uint32_t now_ms = (uint32_t)(k_now_ps(net_kernel(sk->net)) / K_MS);
    uint32_t pause = now_ms - (uint32_t)(tp->last_send_ps / K_MS);
    if (ca->epoch_ms != 0)
        ca->epoch_ms += NET_MIN(pause, now_ms - ca->epoch_ms);
}

static void cubic_target(struct tcp_cubic *ca, uint32_t cwnd, uint32_t now_ms)
{
    uint64_t t = now_ms - ca->epoch_ms + (ca->delay_min >> 3);
    t = (t << TIME_LOG2) / 1000;
    uint64_t off = t < ca->k ? ca->k - t : t - ca->k;
    uint64_t delta = (C_SCALED * off * off * off) >> (10 + 3 * TIME_LOG2);
    uint64_t target = t < ca->k ? ca->origin - delta : ca->origin + delta;
    ca->count = target > cwnd ? (uint32_t)(cwnd / (target - cwnd)) : EVER_GROWING * cwnd;
    if (ca->last_max == 0 && ca->count > 20)
        ca->count = 20; /* the initial growth: 5 % a round trip */
}

static void cubic_update(struct tcp_cubic *ca, uint32_t cwnd, uint32_t acked, uint32_t now_ms)
{
    ca->acked += acked;
    if (ca->last_cwnd == cwnd && now_ms - ca->last_ms <= 1000 / 32)
        return;
    if (ca->epoch_ms == 0 || now_ms != ca->last_ms) {
        ca->last_cwnd = cwnd;
        ca->last_ms = now_ms;
        if (ca->epoch_ms == 0)
            begin_epoch(ca, cwnd, acked, now_ms);
        cubic_target(ca, cwnd, now_ms);
    }
    uint32_t delta = NET_MAX(cwnd * BETA_SCALE >> 3, 1);
    uint32_t n = ca->acked > delta ? (ca->acked - 1) / delta : 0;
    ca->acked -= n * delta;
    ca->reno_cwnd += n;
    if (ca->reno_cwnd > cwnd)
        ca->count = NET_MIN(ca->count, cwnd / (ca->reno_cwnd - cwnd));
    ca->count = NET_MAX(ca->count, 2);
}

void tcp_cubic_avoid(struct socket *sk, uint32_t ack, uint32_t acked)
{
    struct tcp *tp = &sk->tcp;
    struct tcp_cubic *ca = &tp->cubic;
    uint32_t now_ms = (uint32_t)(k_now_ps(net_kernel(sk->net)) / K_MS);
    bool slow_start = tp->cwnd < tp->ssthresh;
    /* A window that is not used says nothing about the path. */
    if (slow_start ? tp->cwnd >= 2 * tp->max_packets_out : !tp->cwnd_limited)
        return;
    if (slow_start) {
        if (tcp_after(ack, ca->round_end))
            hystart_round(tp, now_ms);
        uint32_t cwnd = NET_MIN(tp->cwnd + acked, tp->ssthresh);
        acked -= cwnd - tp->cwnd;
        tp->cwnd = cwnd;
        if (acked == 0)
            return;
    }
    cubic_update(ca, tp->cwnd, acked, now_ms);
    if (tp->cwnd_count >= ca->count) {
        tp->cwnd_count = 0;
        tp->cwnd++;
    }
    tp->cwnd_count += acked;
    if (tp->cwnd_count >= ca->count) {
        uint32_t more = tp->cwnd_count / ca->count;
        tp->cwnd_count -= more * ca->count;
        tp->cwnd += more;
    }
}
