/*
 * What it does: Sends and receives for a thread. Written bytes are copied into page fragments at
 *   the end of the send queue (or pages are added without a copy) and pushed by Linux's rules
 *   (autocorking included); received bytes are copied out of the receive queue. Before it sleeps,
 *   the thread processes the backlog.
 * Leaves out: flags (MSG_*), low water marks, time-outs.
 * Follows: Linux 4.14 net/ipv4/tcp.c (tcp_sendmsg_locked, do_tcp_sendpages, tcp_push,
 *   tcp_should_autocork, tcp_recvmsg), net/core/stream.c (sk_stream_wait_memory).
 * Costs: send_call_cycles or recv_call_cycles per call, two to four lines of the socket, copies.
 */
#include "logic/net/net_internal.h"

static void mark_push(struct tcp *tp, struct sk_buff *skb)
{
    skb->tcp_flags |= TCP_PSH;
    tp->pushed_seq = tp->write_seq;
}

/* More than half of the largest window has been written since the last push. */
static bool forced_push(const struct tcp *tp)
{
    return tcp_after(tp->write_seq, tp->pushed_seq + tp->max_window / 2);
}

/* A small buffer behind others waits while something of the socket is at the device. */
static bool autocork(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    if (tp->tail->bytes >= tcp_size_goal(sk) || tp->tail == tp->head ||
        sk->wmem_alloc <= tp->tail->truesize)
        return false;
    sk->throttled = true;
    return true;
}

static void push(struct socket *sk, enum tcp_nagle nagle)
{
    struct tcp *tp = &sk->tcp;
    if (!tp->unsent)
        return;
    mark_push(tp, tp->tail);
    if (!autocork(sk))
        tcp_push_pending(sk, nagle);
}

static bool memory_free(const struct socket *sk)
{
    return sk->wmem_queued < sk->send_buffer;
}

/* Sleeps until there is room; false: the connection is gone. */
static bool wait_memory(struct socket *sk)
{
    while (!memory_free(sk) && !sk->error && tcp_can_send(&sk->tcp)) {
        sk->no_space = true;
        net_socket_unlock(sk);
        if (!memory_free(sk) && sk->no_space && !sk->error && tcp_can_send(&sk->tcp))
            k_wait(net_kernel(sk->net), &sk->writable, NET_FOREVER);
        net_socket_lock(sk);
    }
    return !sk->error && tcp_can_send(&sk->tcp);
}

/* After a pause longer than the RTO the path is not known any more (tcp_cwnd_restart). */
static void restart_after_idle(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    uint64_t now = k_now_ps(net_kernel(sk->net));
    if (tp->packets_out > 0 || tp->last_send_ps == 0 || now - tp->last_send_ps <= tp->rto_ps)
        return;
    uint64_t idle = now - tp->last_send_ps;
    uint32_t restart = NET_MIN(sk->net->params.initial_window_segments, tp->cwnd);
    tp->ssthresh = NET_MAX(tp->ssthresh, tp->cwnd / 4 * 3);
    for (; idle > tp->rto_ps && tp->cwnd > restart; idle -= tp->rto_ps)
        tp->cwnd /= 2;
    tp->cwnd = NET_MAX(tp->cwnd, restart);
    tp->cwnd_count = 0;
}

/* A buffer with room at the end of what is written. NULL: the connection is gone, or there is no
 * room and `wait` is not set. */
static struct sk_buff *tail_with_room(struct socket *sk, bool any_written, bool wait)
{
    struct tcp *tp = &sk->tcp;
    if (tp->unsent && tp->tail->bytes < tcp_size_goal(sk))
        return tp->tail;
    if (!memory_free(sk)) {
        if (any_written)
            push(sk, TCP_NAGLE_PUSH);
        if (!wait) {
            sk->no_space = true;
            return NULL;
        }
        if (!wait_memory(sk))
            return NULL;
        if (tp->unsent && tp->tail->bytes < tcp_size_goal(sk))
            return tp->tail;
    }
    struct sk_buff *skb = skb_new(sk->net);
    restart_after_idle(sk);
    tcp_queue(sk, skb);
    return skb;
}

/* A page, or a part of one, without a copy. 0: the buffer is full. */
static int64_t append_page(struct socket *sk, struct sk_buff *skb, const struct skb_frag *frag,
                           uint32_t offset, uint32_t bytes)
{
    struct net *net = sk->net;
    struct skb_frag *last = skb->n_frags ? &skb->frag[skb->n_frags - 1] : NULL;
    uint32_t at = frag->offset + offset, n = NET_MIN(bytes, frag->bytes - offset);
    if (last && last->page == frag->page && last->offset + last->bytes == at)
        last->bytes += n;
    else {
        if (skb->n_frags == NET_FRAGS_MAX)
            return 0;
        k_compute(net->kernel, net->costs->send_page_cycles);
        k_touch_write(net->kernel, frag->page->meta, sizeof(uint64_t));
        k_page_get(frag->page);
        skb->frag[skb->n_frags++] = (struct skb_frag){ frag->page, at, n, frag->node };
    }
    skb->bytes += n;
    return n;
}

struct source { /* of what is to be sent: user memory, or pages */
    struct kaddr from;
    const struct skb_frag *frags;
    uint32_t offset; /* within the first of frags */
};

static int64_t append(struct socket *sk, struct sk_buff *skb, struct source *source, uint32_t bytes)
{
    struct tcp *tp = &sk->tcp;
    int64_t n;
    if (source->frags) {
        while (source->frags->bytes == 0)
            source->frags++;
        n = append_page(sk, skb, source->frags, source->offset, bytes);
        source->offset += n > 0 ? (uint32_t)n : 0;
        if (source->offset == source->frags->bytes) {
            source->frags++;
            source->offset = 0;
        }
    } else {
        n = net_append(sk, skb, source->from, bytes);
        source->from.v += n > 0 ? (uint64_t)n : 0;
    }
    if (n > 0) {
        tp->write_seq += (uint32_t)n;
        skb->truesize += (uint32_t)n;
        sk->wmem_queued += (uint32_t)n;
    }
    return n;
}

/* The last buffer has stayed empty. */
static void drop_tail(struct socket *sk)
{
    struct tcp *tp = &sk->tcp;
    struct sk_buff *empty = tp->tail, *before = NULL;
    for (struct sk_buff *skb = tp->head; skb != empty; skb = skb->next)
        before = skb;
    if (before)
        before->next = NULL;
    else
        tp->head = NULL;
    tp->tail = before;
    if (tp->unsent == empty)
        tp->unsent = NULL;
    sk->wmem_queued -= empty->truesize;
    skb_free(sk->net, empty);
}

static int why_not(const struct socket *sk)
{
    if (sk->error)
        return sk->error;
    return tcp_can_send(&sk->tcp) ? -EAGAIN : -EPIPE;
}

int64_t tcp_send(struct socket *sk, struct kaddr from, const struct skb_frag *frags, size_t bytes,
                 bool wait)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    struct source source = { from, frags, 0 };
    size_t done = 0;
    int error = 0;
    k_compute(net->kernel, net->costs->send_call_cycles);
    net_socket_lock(sk);
    net_socket_touch(sk, SOCKET_LINE_LOOKUP, 1);
    net_socket_touch_write(sk, SOCKET_LINE_TX, 2);
    if (!tcp_can_send(tp))
        error = why_not(sk);
    while (done < bytes && !error) {
        struct sk_buff *skb = tail_with_room(sk, done > 0, wait);
        if (!skb) {
            error = why_not(sk);
            break;
        }
        uint32_t goal = tcp_size_goal(sk);
        uint32_t room = goal > skb->bytes ? goal - skb->bytes : 0;
        int64_t n = append(sk, skb, &source, (uint32_t)NET_MIN(room, bytes - done));
        if (n < 0) {
            error = (int)n;
            if (skb->bytes == 0)
                drop_tail(sk);
            break;
        }
        if (done == 0)
            skb->tcp_flags &= (uint8_t)~TCP_PSH;
        done += (size_t)n;
        if (n == 0) { /* no fragment left: the next one is a new buffer */
            mark_push(tp, skb);
            tcp_queue(sk, skb_new(net));
        } else if (skb->bytes >= goal && done < bytes) {
            if (forced_push(tp)) {
                mark_push(tp, skb);
                tcp_push_pending(sk, TCP_NAGLE_PUSH);
            } else if (skb == tp->unsent)
                tcp_push_one(sk);
        }
    }
    if (done > 0)
        push(sk, TCP_NAGLE_ON);
    net_socket_unlock(sk);
    return done > 0 ? (int64_t)done : error;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* Out of the queue, as far as there is something. */
static size_t copy_queue(struct socket *sk, struct kaddr to, size_t bytes)
{
    struct tcp *tp = &sk->tcp;
    size_t done = 0;
    while (done < bytes && sk->rx_head) {
        struct sk_buff *skb = sk->rx_head;
        uint32_t left = skb->bytes - skb->skip_bytes;
        uint32_t n = (uint32_t)NET_MIN(left, bytes - done);
        if (skb->tcp_seq + skb->skip_bytes != tp->copied_seq)
            k_fault(net_kernel(sk->net), "a stream with a hole: at %u instead of %u, port %u to %u",
                    skb->tcp_seq + skb->skip_bytes, tp->copied_seq, sk->flow.source_port,
                    sk->flow.destination_port);
        net_socket_copy(sk, kaddr_add(to, done), n);
        tp->copied_seq += n;
        done += n;
        tcp_rcv_space_adjust(sk);
        if (n == left)
            net_socket_eat(sk);
    }
    return done;
}

int64_t tcp_recv(struct socket *sk, struct kaddr to, size_t bytes, bool wait)
{
    struct net *net = sk->net;
    struct tcp *tp = &sk->tcp;
    size_t done = 0;
    int64_t result = 0;
    k_compute(net->kernel, net->costs->recv_call_cycles);
    net_socket_lock(sk);
    net_socket_touch(sk, SOCKET_LINE_LOOKUP, 1);
    net_socket_touch_write(sk, SOCKET_LINE_RX, 2);
    while (done < bytes) {
        done += copy_queue(sk, kaddr_add(to, done), bytes - done);
        if (done == bytes || (done > 0 && !sk->backlog))
            break;
        if (done == 0) {
            if (sk->error)
                result = sk->error;
            else if (!tp->fin_received && tp->state != TCP_CLOSED && !wait && !sk->backlog)
                result = -EAGAIN;
            if (result || tp->fin_received || tp->state == TCP_CLOSED)
                break;
        }
        tcp_cleanup_receive(sk, (uint32_t)done);
        net_socket_unlock(sk); /* what the backlog holds is processed */
        if (done == 0 && wait && !net_socket_is_readable(sk) && tp->state != TCP_CLOSED)
            k_wait(net->kernel, &sk->readable, NET_FOREVER);
        net_socket_lock(sk);
    }
    if (tp->state != TCP_CLOSED)
        tcp_cleanup_receive(sk, (uint32_t)done);
    net_socket_unlock(sk);
    return done > 0 ? (int64_t)done : result;
}
