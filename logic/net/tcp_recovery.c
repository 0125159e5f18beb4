/*
 * What it does: Finds out which segments are lost and repeats them: by SACK (as many segments
 *   behind as may overtake, three at first), by time (RACK: what was sent behind it has arrived
 *   for longer than a quarter of the shortest round trip, a millisecond at least), by a probe of
 *   the last segment (TLP), by time-out. Reduces the window in proportion to what arrives (PRR),
 *   and undoes it when time stamps or D-SACK show that nothing was lost.
 * Leaves out: F-RTO, ECN, forward acknowledgements (off in 4.14), peers without SACK (theirs is
 *   recovered by time-outs alone), joining of small buffers that are repeated.
 * Follows: RFC 6675, 6937, 3522, 8985; Linux 4.14 net/ipv4/tcp_recovery.c, net/ipv4/tcp_input.c
 *   (tcp_fastretrans_alert, tcp_time_to_recover, tcp_mark_head_lost, tcp_cwnd_reduction,
 *   tcp_enter_recovery, tcp_enter_loss, tcp_process_loss, tcp_process_tlp_ack, tcp_try_undo_*,
 *   tcp_update_reordering, tcp_rearm_rto), net/ipv4/tcp_output.c (tcp_schedule_loss_probe,
 *   tcp_send_loss_probe, tcp_xmit_retransmit_queue).
 * Costs: What is sent: tcp_output.c.
 */
#include "logic/net/net_internal.h"

#define REORDERING_MAX      300u /* sysctl_tcp_max_reordering */
#define JIFFY_PS            K_MS
#define TIMEOUT_MIN_JIFFIES 2u /* TCP_TIMEOUT_MIN */
#define TIMEOUT_INIT_PS     K_S

static uint64_t now_ps(const struct socket *sk)
{
    return k_now_ps(net_kernel(sk->net));
}

static uint64_t jiffies(uint64_t ps)
{
    return (ps + JIFFY_PS - 1) / JIFFY_PS * JIFFY_PS;
}

/* ---- The timer of what is in flight ---------------------------------------------------------- */

void tcp_rearm_rto(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = now_ps(sk), at = now + tcp_rto(tp);
    if (tp->packets_out == 0) {
        tcp_timer_stop(sk);
        return;
    }
    /* The time that passed under another name counts. */
    if (tp->pending == TCP_PENDING_LOSS_PROBE || tp->pending == TCP_PENDING_REORDER)
        at = NET_MAX(tp->head->time_ps + tcp_rto(tp), now + JIFFY_PS);
    tcp_timer_arm(sk, TCP_PENDING_RTO, at);
}

bool tcp_schedule_loss_probe(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->congestion != TCP_CA_OPEN || tp->packets_out == 0 || !tp->sack_ok ||
        (tp->unsent && tp->cwnd > tcp_in_flight(tp)))
        return false;
    /* Alone, a segment may be acknowledged with a delay. */
    uint64_t now = now_ps(sk), timeout = TIMEOUT_INIT_PS;
    if (tp->srtt_ps != 0)
        timeout = jiffies(2 * tp->srtt_ps) + (tp->packets_out == 1
                                                  ? sk->net->params.rto_min_ps
                                                  : TIMEOUT_MIN_JIFFIES * JIFFY_PS);
    uint64_t rto_at = tp->head->time_ps + tcp_rto(tp), at = now + timeout;
    if (rto_at > now && rto_at < at)
        at = rto_at;
    tcp_timer_arm(sk, TCP_PENDING_LOSS_PROBE, at);
    return true;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static void mark_lost(struct tcp *tp, struct sk_buff *skb)
{
    if (skb->tcp_sacked & (TCP_TAG_LOST | TCP_TAG_SACKED))
        return;
    skb->tcp_sacked |= TCP_TAG_LOST;
    tp->lost_out += skb->gso_segments;
}

/* Something sacked or repeated is in flight. */
static bool any_repeated(const struct tcp *tp)
{
    return tp->retrans_out > 0 || (tp->head != tp->unsent && tp->head->tcp_sacked & TCP_TAG_EVER);
}

/* Segments from seq to the highest that is sacked. */
static uint32_t up_to(const struct tcp *tp, uint32_t seq, uint32_t highest)
{
    return (highest - seq + tp->mss - 1) / tp->mss + 1;
}

static void reordered(struct tcp *tp, uint32_t segments)
{
    if (segments > tp->reordering)
        tp->reordering = NET_MIN(segments, REORDERING_MAX);
    tp->rack_reordered = true;
}

void tcp_reordered(struct tcp *tp, uint32_t seq, uint32_t highest)
{
    reordered(tp, up_to(tp, seq, highest));
}

/* ---- RACK ------------------------------------------------------------------------------------ */

static bool sent_after(uint64_t a_ps, uint32_t a_end, uint64_t b_ps, uint32_t b_end)
{
    return a_ps > b_ps || (a_ps == b_ps && tcp_after(a_end, b_end));
}

void tcp_rack_advance(struct socket *sk, const struct sk_buff *skb)
{
    struct tcp *tp = &sk->tcp;
    if (!sent_after(skb->time_ps, tcp_end_seq(skb), tp->rack_sent_ps, tp->rack_end))
        return;
    uint64_t rtt = now_ps(sk) - skb->time_ps;
    if (skb->tcp_sacked & TCP_TAG_EVER && rtt < tp->min_rtt_ps)
        return; /* that was the first copy */
    tp->rack_sent_ps = skb->time_ps;
    tp->rack_end = tcp_end_seq(skb);
    tp->rack_rtt_ps = rtt;
    tp->rack_advanced = true;
}

static uint64_t reordering_window(const struct tcp *tp)
{
    uint64_t window = K_MS;
    if ((tp->rack_reordered || tp->lost_out == 0) && tp->min_rtt_ps != UINT64_MAX)
        window = NET_MAX(window, tp->min_rtt_ps / 4);
    return window;
}

/* Returns how long to wait for the last of those that may have been overtaken; 0: none. */
static uint64_t rack_detect(struct socket *sk, bool *lost_again)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = now_ps(sk), wait = 0, patience = tp->rack_rtt_ps + reordering_window(tp);
    for (struct sk_buff *skb = tp->head; skb != tp->unsent; skb = skb->next) {
        if (skb->tcp_sacked & TCP_TAG_SACKED)
            continue;
        if (!sent_after(tp->rack_sent_ps, tp->rack_end, skb->time_ps, tcp_end_seq(skb))) {
            if (!(skb->tcp_sacked & TCP_TAG_EVER))
                break; /* first copies follow each other in time */
            continue;
        }
        if (skb->tcp_sacked & TCP_TAG_LOST && !(skb->tcp_sacked & TCP_TAG_RETRANSMITTED))
            continue;
        uint64_t due = skb->time_ps + patience;
        if (due >= now) {
            wait = NET_MAX(wait, due - now + 1);
            continue;
        }
        mark_lost(tp, skb);
        if (skb->tcp_sacked & TCP_TAG_RETRANSMITTED) {
            skb->tcp_sacked &= (uint8_t)~TCP_TAG_RETRANSMITTED;
            tp->retrans_out -= skb->gso_segments;
            *lost_again = true;
        }
    }
    return wait;
}

static void rack_identify(struct socket *sk, struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    if (!tp->rack_advanced)
        return;
    tp->rack_advanced = false;
    uint64_t wait = rack_detect(sk, &acked->lost_again);
    if (wait == 0)
        return;
    wait = jiffies(wait) + TIMEOUT_MIN_JIFFIES * JIFFY_PS;
    tcp_timer_arm(sk, TCP_PENDING_REORDER, now_ps(sk) + NET_MIN(wait, tcp_rto(tp)));
}

/* ---- Counting -------------------------------------------------------------------------------- */

/* Lost is what has `reordering` sacked segments behind it; `head`: the first one in any case. */
static void mark_by_count(struct tcp *tp, bool head)
{
    uint32_t before = 0;
    for (struct sk_buff *skb = tp->head; skb != tp->unsent; skb = skb->next) {
        before += skb->tcp_sacked & TCP_TAG_SACKED ? skb->gso_segments : 0;
        if (before + tp->reordering > tp->sacked_out && !(head && skb == tp->head))
            break;
        mark_lost(tp, skb);
    }
}

/* The highest that arrived is farther off than what may overtake. */
static bool far_behind(const struct tcp *tp)
{
    return tp->sacked_out > 0 &&
           tcp_after(tp->highest_sack, tp->snd_una + tp->reordering * tp->mss);
}

/* ---- The window ------------------------------------------------------------------------------ */

static void reduction_begin(struct tcp *tp)
{
    tp->recover = tp->snd_nxt;
    tp->probe_out = false;
    tp->cwnd_count = 0;
    tp->prior_cwnd = tp->cwnd;
    tp->prr_delivered = tp->prr_out = 0;
    tp->ssthresh = tcp_cubic_ssthresh(tp);
}

void tcp_cwnd_reduction(struct tcp *tp, uint32_t delivered, const struct tcp_acked *acked)
{
    uint32_t flying = tcp_in_flight(tp);
    int64_t send, room = (int64_t)tp->ssthresh - flying;
    if (delivered == 0 || tp->prior_cwnd == 0)
        return;
    tp->prr_delivered += delivered;
    int64_t owed = (int64_t)tp->prr_delivered - tp->prr_out;
    if (room < 0) {
        uint64_t part = (uint64_t)tp->ssthresh * tp->prr_delivered + tp->prior_cwnd - 1;
        send = (int64_t)(part / tp->prior_cwnd) - tp->prr_out;
    } else if (acked->retransmitted && !acked->lost_again)
        send = NET_MIN(room, NET_MAX(owed, delivered) + 1); /* slow start: the path delivers */
    else
        send = NET_MIN(room, delivered);
    send = NET_MAX(send, tp->prr_out == 0 ? 1 : 0); /* the first repetition goes at once */
    tp->cwnd = (uint32_t)(flying + send);
}

static void undo_prepare(struct tcp *tp)
{
    tp->undo = true;
    tp->undo_from = tp->snd_una;
    tp->undo_left = tp->retrans_out > 0 ? (int32_t)tp->retrans_out : -1;
}

/* What ssthresh would be after a pause. */
static uint32_t current_ssthresh(const struct tcp *tp)
{
    return tp->congestion == TCP_CA_RECOVERY ? tp->ssthresh
                                             : NET_MAX(tp->ssthresh, tp->cwnd / 2 + tp->cwnd / 4);
}

static void enter_recovery(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    tp->undo_ssthresh = 0;
    undo_prepare(tp);
    if (tp->congestion != TCP_CA_RECOVERY) {
        tp->undo_ssthresh = current_ssthresh(tp);
        reduction_begin(tp);
    }
    tp->congestion = TCP_CA_RECOVERY;
}

void tcp_enter_loss(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    /* Once for what was lost together: not when it is found again after fast retransmit, or by the
     * same segment's next time-out; but when a repetition was lost after others had arrived. */
    if (tp->congestion <= TCP_CA_DISORDER || !tcp_after(tp->recover, tp->snd_una) ||
        (tp->congestion == TCP_CA_LOSS && tp->backoff == 1)) {
        tp->undo_ssthresh = current_ssthresh(tp);
        tp->prior_cwnd = tp->cwnd;
        tp->ssthresh = tcp_cubic_ssthresh(tp);
        undo_prepare(tp);
    }
    tp->retrans_out = tp->lost_out = 0;
    for (struct sk_buff *skb = tp->head; skb != tp->unsent; skb = skb->next) {
        skb->tcp_sacked &= TCP_TAG_SACKED | TCP_TAG_EVER;
        mark_lost(tp, skb);
    }
    if (tp->congestion <= TCP_CA_DISORDER && tp->sacked_out >= TCP_REORDERING)
        tp->reordering = NET_MIN(tp->reordering, TCP_REORDERING); /* it was thought too high of */
    tp->recover = tp->snd_nxt;
    tp->congestion = TCP_CA_LOSS;
    tp->probe_out = false;
    tp->cwnd = 1;
    tp->cwnd_count = 0;
    tcp_cubic_reset(sk);
}

/* Nothing is known to be lost. */
static void keep_open(struct tcp *tp)
{
    enum tcp_congestion state = tp->sacked_out > 0 || tp->lost_out > 0 || any_repeated(tp)
                                    ? TCP_CA_DISORDER
                                    : TCP_CA_OPEN;
    if (tp->congestion == state)
        return;
    tp->congestion = state;
    tp->recover = tp->snd_nxt;
}

/* ---- Undoing --------------------------------------------------------------------------------- */

/* The answer is to a segment of before the first repetition. */
static bool answers_first_copy(const struct tcp *tp, const struct tcp_acked *acked)
{
    return tp->retransmit_ms == 0 ||
           (acked->tsecr != 0 && tcp_before(acked->tsecr, tp->retransmit_ms));
}

static bool may_undo(const struct tcp *tp, const struct tcp_acked *acked)
{
    return tp->undo && (tp->undo_left == 0 || answers_first_copy(tp, acked));
}

static void undo(struct socket *sk, bool nothing_lost)
{
    struct tcp *tp = &sk->tcp;
    for (struct sk_buff *skb = tp->head; nothing_lost && skb != tp->unsent; skb = skb->next)
        skb->tcp_sacked &= (uint8_t)~TCP_TAG_LOST;
    if (nothing_lost)
        tp->lost_out = 0;
    if (tp->undo_ssthresh != 0) {
        tp->cwnd = NET_MAX(tp->cwnd, tp->prior_cwnd);
        tp->ssthresh = NET_MAX(tp->ssthresh, tp->undo_ssthresh);
    }
    tp->undo = false;
    tp->rack_advanced = true; /* what is lost is found anew */
    sk->net->stats.undone++;
}

static void recovered(struct socket *sk, const struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    if (may_undo(tp, acked))
        undo(sk, false);
    if (tp->congestion == TCP_CA_RECOVERY && tp->undo)
        tp->cwnd = tp->ssthresh;
    tp->congestion = TCP_CA_OPEN;
}

static bool undo_by_dsack(struct socket *sk)
{
    if (!sk->tcp.undo || sk->tcp.undo_left != 0)
        return false;
    undo(sk, false);
    return true;
}

/* Something new was acknowledged in a recovery. True: not because of a repetition. */
static bool undo_partial(struct socket *sk, const struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    if (!tp->undo || !answers_first_copy(tp, acked))
        return false;
    reordered(tp, acked->segments +
                      (tp->sacked_out > 0 ? up_to(tp, tp->snd_una, tp->highest_sack) : 0));
    if (tp->retrans_out > 0)
        return true; /* not until they are answered, too */
    if (!any_repeated(tp))
        tp->retransmit_ms = 0;
    undo(sk, true);
    keep_open(tp);
    return true;
}

/* ---- An acknowledgement that is not ordinary ------------------------------------------------- */

/* True: what is lost may be sent again now, and nothing else is to be looked at. */
static bool in_loss(struct socket *sk, struct tcp_acked *acked, bool *go_on)
{
    struct tcp *tp = &sk->tcp;
    bool repeat = false;
    if (acked->advanced && may_undo(tp, acked)) {
        undo(sk, true);
        tp->congestion = TCP_CA_OPEN;
    } else if (!tcp_before(tp->snd_una, tp->recover))
        recovered(sk, acked);
    else
        repeat = true;
    rack_identify(sk, acked);
    *go_on = tp->congestion == TCP_CA_OPEN || acked->lost_again;
    return repeat;
}

/* True: `many` is to be looked at. */
static bool in_recovery(struct socket *sk, struct tcp_acked *acked, bool *many)
{
    struct tcp *tp = &sk->tcp;
    if (acked->advanced) {
        if (undo_partial(sk, acked))
            return false;
        *many = far_behind(tp);
    }
    if (undo_by_dsack(sk)) {
        keep_open(tp);
        return false;
    }
    rack_identify(sk, acked);
    return true;
}

bool tcp_alert(struct socket *sk, struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    bool many = acked->duplicate || (acked->sacked && far_behind(tp)), first = false, go_on;
    if (tp->congestion == TCP_CA_OPEN)
        tp->retransmit_ms = 0;
    else if (tp->congestion == TCP_CA_RECOVERY && !tcp_before(tp->snd_una, tp->recover))
        recovered(sk, acked);
    if (tp->congestion == TCP_CA_LOSS) {
        bool repeat = in_loss(sk, acked, &go_on);
        if (!go_on)
            return repeat;
    }
    if (tp->congestion == TCP_CA_RECOVERY) {
        if (!in_recovery(sk, acked, &many))
            return false;
    } else {
        if (tp->congestion <= TCP_CA_DISORDER)
            undo_by_dsack(sk);
        rack_identify(sk, acked);
        if (tp->lost_out == 0 && tp->sacked_out < tp->reordering) {
            if (!any_repeated(tp))
                tp->retransmit_ms = 0;
            keep_open(tp);
            return false;
        }
        enter_recovery(sk);
        first = true;
    }
    if (many && (first || tp->sacked_out >= tp->reordering))
        mark_by_count(tp, first && tp->sacked_out < tp->reordering);
    return true;
}

/* ---- Loss probes ----------------------------------------------------------------------------- */

void tcp_probe_acked(struct socket *sk, uint32_t ack, const struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    if (tcp_before(ack, tp->probe_end))
        return;
    if (acked->dsacked || (!tcp_after(ack, tp->probe_end) && acked->duplicate && !acked->sacked))
        tp->probe_out = false; /* both copies arrived */
    else if (tcp_after(ack, tp->probe_end)) {
        reduction_begin(tp); /* the probe stood in for one that was lost */
        tp->cwnd = tp->ssthresh;
        keep_open(tp);
    }
}

static bool repeat_last(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *skb = tp->head;
    if (tp->probe_out) /* one at a time */
        return false;
    while (skb->next != tp->unsent)
        skb = skb->next;
    uint32_t segments = tcp_segments(tp, skb);
    if (skb->users > 1)
        return false; /* the first copy has not left the device */
    if (segments > 1) {
        tcp_cut(sk, skb, skb->skip_bytes + (segments - 1) * tp->mss);
        skb = skb->next;
    }
    if (!tcp_retransmit(sk, skb, 1, true))
        return false;
    tp->probe_out = true;
    tp->probe_end = tp->snd_nxt;
    return true;
}

void tcp_loss_probe_expired(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint32_t before = tp->packets_out;
    if (before == 0) {
        tcp_timer_stop(sk);
        return;
    }
    if (tcp_send_new_probe(sk) ? tp->packets_out > before : repeat_last(sk)) {
        sk->net->stats.loss_probes++;
        tp->pending = TCP_PENDING_NONE; /* the time-out counts from here */
    }
    tcp_rearm_rto(sk);
}

/* ---- Repeating ------------------------------------------------------------------------------- */

void tcp_reorder_expired(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct tcp_acked none = { .segments = 0 };
    uint32_t before = tcp_in_flight(tp);
    rack_detect(sk, &none.lost_again);
    if (tcp_in_flight(tp) != before) {
        if (tp->congestion != TCP_CA_RECOVERY) {
            enter_recovery(sk);
            tcp_cwnd_reduction(tp, 1, &none);
        }
        tcp_retransmit_lost(sk);
    }
    if (tp->pending != TCP_PENDING_RTO)
        tcp_rearm_rto(sk);
}

void tcp_retransmit_lost(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->retrans_out >= tp->lost_out)
        return;
    uint32_t burst = tcp_burst_segments(sk);
    for (struct sk_buff *skb = tp->head; skb != tp->unsent; skb = skb->next) {
        uint32_t flying = tcp_in_flight(tp);
        if (flying >= tp->cwnd || tp->retrans_out >= tp->lost_out)
            return;
        if ((skb->tcp_sacked & (TCP_TAG_LOST | TCP_TAG_RETRANSMITTED)) != TCP_TAG_LOST)
            continue;
        if (tcp_small_queue_full(sk, skb, 1) ||
            !tcp_retransmit(sk, skb, NET_MIN(tp->cwnd - flying, burst), false))
            return;
        if (tp->congestion == TCP_CA_RECOVERY)
            tp->prr_out += skb->gso_segments;
        if (skb == tp->head && tp->pending != TCP_PENDING_REORDER)
            tcp_timer_arm(sk, TCP_PENDING_RTO, tp->last_send_ps + tcp_rto(tp));
    }
}
