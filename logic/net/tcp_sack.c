/*
 * What it does: Selective acknowledgements. The receiver: which blocks it has beyond a hole, the
 *   youngest first, and what came twice (D-SACK). The sender: tags its buffers by the blocks that
 *   arrive (the scoreboard), cuts them at borders of segments for it, and finds out what has
 *   overtaken what.
 * Leaves out: joining of neighbouring buffers that are sacked (tcp_shift_skb_data), receivers that
 *   go back on what they have sacked.
 * Follows: RFC 2018, 2883; Linux 4.14 net/ipv4/tcp_input.c (tcp_sack_new_ofo_skb, tcp_sack_remove,
 *   tcp_dsack_set, tcp_dsack_extend, tcp_sacktag_write_queue, tcp_sacktag_one, tcp_check_dsack,
 *   tcp_is_sackblock_valid, tcp_match_skb_to_sack), net/ipv4/tcp_output.c
 *   (tcp_established_options, tcp_fragment).
 * Costs: The line of each buffer that is tagged; the rest is part of tcp_ack_receive_cycles.
 */
#include "logic/net/net_internal.h"

/* ---- The receiver ---------------------------------------------------------------------------- */

void tcp_sack_add(struct tcp *tp, uint32_t from, uint32_t to)
{
    struct tcp_sack kept[TCP_SACKS];
    unsigned n = 0;
    if (!tp->sack_ok)
        return;
    /* No two blocks of before touch each other: what the new one joins is joined in one pass. */
    for (unsigned i = 0; i < tp->n_sacks; i++) {
        const struct tcp_sack *block = &tp->sack[i];
        if (tcp_before(to, block->from) || tcp_before(block->to, from)) {
            if (n < TCP_SACKS - 1)
                kept[n++] = *block;
            continue;
        }
        from = tcp_before(block->from, from) ? block->from : from;
        to = tcp_after(block->to, to) ? block->to : to;
    }
    tp->sack[0] = (struct tcp_sack){ from, to };
    memcpy(tp->sack + 1, kept, n * sizeof kept[0]);
    tp->n_sacks = (uint8_t)(n + 1);
}

void tcp_sack_remove(struct tcp *tp)
{
    unsigned n = 0;
    for (unsigned i = 0; i < tp->n_sacks && tp->out_of_order; i++)
        if (tcp_after(tp->sack[i].from, tp->rcv_nxt))
            tp->sack[n++] = tp->sack[i];
    tp->n_sacks = (uint8_t)n;
}

void tcp_sack_duplicate(struct tcp *tp, uint32_t from, uint32_t to)
{
    struct tcp_sack *block = &tp->duplicate;
    if (!tp->sack_ok || from == to)
        return;
    if (!tp->duplicate_came || tcp_before(to, block->from) || tcp_before(block->to, from))
        *block = (struct tcp_sack){ from, to };
    else {
        block->from = tcp_before(from, block->from) ? from : block->from;
        block->to = tcp_after(to, block->to) ? to : block->to;
    }
    tp->duplicate_came = true;
}

bool tcp_sack_options(struct tcp *tp, struct tcp_options *options)
{
    unsigned n = 0;
    if (tp->duplicate_came)
        options->sack[n++] = tp->duplicate;
    for (unsigned i = 0; i < tp->n_sacks && n < TCP_SACKS_SENT; i++)
        options->sack[n++] = tp->sack[i];
    tp->duplicate_came = false;
    options->syn = false;
    options->n_sacks = (uint8_t)n;
    return n > 0;
}

/* ---- The sender: buffers --------------------------------------------------------------------- */

/* What is counted by tag follows packets_out. */
static void count(struct tcp *tp, uint8_t tags, uint32_t more)
{
    tp->packets_out += more;
    tp->sacked_out += tags & TCP_TAG_SACKED ? more : 0;
    tp->lost_out += tags & TCP_TAG_LOST ? more : 0;
    tp->retrans_out += tags & TCP_TAG_RETRANSMITTED ? more : 0;
}

void tcp_cut(struct socket *sk, struct sk_buff *skb, uint32_t bytes)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *rest = net_skb_split(sk->net, skb, bytes);
    rest->tcp_seq = skb->tcp_seq + bytes;
    rest->tcp_flags = skb->tcp_flags;
    rest->tcp_sacked = skb->tcp_sacked;
    rest->time_ps = skb->time_ps;
    skb->tcp_flags &= (uint8_t) ~(TCP_PSH | TCP_FIN);
    rest->truesize = SKB_TRUESIZE + rest->bytes;
    sk->wmem_queued += SKB_TRUESIZE;
    skb->truesize -= rest->bytes;
    rest->next = skb->next;
    skb->next = rest;
    if (tp->tail == skb)
        tp->tail = rest;
    if (skb->gso_segments == 0)
        return; /* never sent */
    uint32_t before = skb->gso_segments;
    skb->gso_segments = (uint16_t)tcp_segments(tp, skb);
    rest->gso_segments = (uint16_t)tcp_segments(tp, rest);
    count(tp, skb->tcp_sacked, (uint32_t)skb->gso_segments + rest->gso_segments - before);
}

/* ---- The sender: blocks ---------------------------------------------------------------------- */

static bool valid(const struct tcp *tp, const struct tcp_sack *block, bool duplicate)
{
    if (!tcp_before(block->from, block->to) || tcp_after(block->to, tp->snd_nxt))
        return false;
    if (tcp_after(block->from, tp->snd_una))
        return true;
    return duplicate && tp->undo && !tcp_before(block->from, tp->undo_from);
}

/* The first block says what came twice: it is acknowledged, or part of the second. */
static bool is_duplicate(const struct sk_buff *ack, const struct tcp_sack *block, unsigned n)
{
    return tcp_before(block[0].from, ack->tcp_ack) ||
           (n > 1 && !tcp_after(block[0].to, block[1].to) &&
            !tcp_before(block[0].from, block[1].from));
}

static void sacked_first_time(struct socket *sk, struct sk_buff *skb, struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    uint32_t segments = skb->gso_segments, seq = tcp_first_seq(skb);
    bool below = tp->sacked_out > 0 && tcp_before(seq, tp->highest_sack);
    tcp_rack_advance(sk, skb);
    if (!(skb->tcp_sacked & TCP_TAG_EVER)) {
        if (below && (!acked->disorder || tcp_before(seq, acked->disorder_seq))) {
            acked->disorder = true;
            acked->disorder_seq = seq;
        }
        if (acked->sacked_first_ps == 0)
            acked->sacked_first_ps = skb->time_ps;
        acked->sacked_last_ps = skb->time_ps;
    }
    /* A repetition that is not needed, of what is not lost, is still on the way. */
    if (skb->tcp_sacked & TCP_TAG_LOST) {
        if (skb->tcp_sacked & TCP_TAG_RETRANSMITTED)
            tp->retrans_out -= segments;
        tp->lost_out -= segments;
        skb->tcp_sacked &= (uint8_t) ~(TCP_TAG_LOST | TCP_TAG_RETRANSMITTED);
    }
    skb->tcp_sacked |= TCP_TAG_SACKED;
    tp->sacked_out += segments;
    tp->delivered += segments;
    if (!below)
        tp->highest_sack = seq;
    acked->sacked = true;
}

static void tag(struct socket *sk, struct sk_buff *skb, bool duplicate, struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    k_touch_write(net_kernel(sk->net), skb->meta, SKB_TOUCH_USE);
    if (duplicate && skb->tcp_sacked & TCP_TAG_EVER && tp->undo && tp->undo_left > 0 &&
        tcp_after(tcp_end_seq(skb), tp->undo_from))
        tp->undo_left--;
    if (!(skb->tcp_sacked & TCP_TAG_SACKED))
        sacked_first_time(sk, skb, acked);
    if (duplicate && skb->tcp_sacked & TCP_TAG_RETRANSMITTED) {
        skb->tcp_sacked &= (uint8_t)~TCP_TAG_RETRANSMITTED;
        tp->retrans_out -= skb->gso_segments;
    }
}

/* True: the buffer, or what was left of it in front of a cut, lies in the block as a whole. Only
 * whole segments and a smaller last one are cut off. */
static bool in_block(struct socket *sk, struct sk_buff *skb, const struct tcp_sack *block)
{
    uint32_t mss = sk->tcp.mss, begin = tcp_first_seq(skb);
    bool starts_in = !tcp_before(begin, block->from);
    if (starts_in && !tcp_after(tcp_end_seq(skb), block->to))
        return true;
    uint32_t bytes = starts_in ? (block->to - begin) / mss * mss
                               : (block->from - begin + mss - 1) / mss * mss;
    if (bytes == 0 || bytes >= skb->bytes - skb->skip_bytes)
        return false;
    tcp_cut(sk, skb, skb->skip_bytes + bytes);
    return starts_in;
}

static void tag_block(struct socket *sk, const struct tcp_sack *block, bool duplicate,
                      struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    for (struct sk_buff *skb = tp->head; skb != tp->unsent; skb = skb->next) {
        if (!tcp_before(tcp_first_seq(skb), block->to))
            break;
        if (!tcp_after(tcp_end_seq(skb), block->from))
            continue;
        if (!duplicate && skb->tcp_sacked & TCP_TAG_SACKED)
            continue;
        if (in_block(sk, skb, block))
            tag(sk, skb, duplicate, acked);
    }
}

static void note_duplicate(struct tcp *tp, const struct tcp_sack *block, uint32_t una_before)
{
    /* Of what was acknowledged before there is no buffer any more. */
    if (tp->undo && tp->undo_left > 0 && !tcp_after(block->to, una_before) &&
        tcp_after(block->to, tp->undo_from))
        tp->undo_left--;
}

void tcp_sack_tag(struct socket *sk, const struct sk_buff *ack, uint32_t una_before,
                  struct tcp_acked *acked)
{
    struct tcp *tp = &sk->tcp;
    struct tcp_sack block[TCP_SACKS];
    unsigned n = net_sack_blocks(net_kernel(sk->net), ack, block), first = 0;
    if (!tp->sack_ok || n == 0)
        return;
    if (is_duplicate(ack, block, n)) {
        acked->dsacked = true;
        note_duplicate(tp, &block[0], una_before);
        if (tp->packets_out > 0 && valid(tp, &block[0], true))
            tag_block(sk, &block[0], true, acked);
        first = 1;
    }
    /* From low to high: what lies below the highest of before has been overtaken. */
    for (unsigned i = first; i < n; i++)
        for (unsigned k = i + 1; k < n; k++)
            if (tcp_before(block[k].from, block[i].from)) {
                struct tcp_sack swapped = block[i];
                block[i] = block[k];
                block[k] = swapped;
            }
    for (unsigned i = first; i < n && tp->packets_out > 0; i++)
        if (valid(tp, &block[i], false))
            tag_block(sk, &block[i], false, acked);
    if (acked->disorder && (tp->congestion != TCP_CA_LOSS || tp->undo))
        tcp_reordered(tp, acked->disorder_seq, tp->highest_sack);
}
