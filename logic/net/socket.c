/*
 * What it does: Sockets: ownership by threads and soft interrupts with a backlog, reference counts,
 *   copies between user memory and page fragments, wake-ups; the calls of programs.
 * Leaves out: socket options, half close, descriptors and their tables, busy polling.
 * Follows: Linux 4.14 net/core/sock.c (lock_sock_nested, release_sock, sk_page_frag_refill),
 *   net/core/datagram.c (skb_copy_datagram_iter), net/core/stream.c.
 * Costs: A call charges its system call, send_call_cycles or recv_call_cycles, the socket's lines,
 *   send_page_cycles per page that it begins, recv_frag_cycles per fragment that it reads, and the
 *   copies. A CPU that finds a socket held by the soft interrupt of another CPU tries again every
 *   NET_SPIN_CYCLES.
 */
#include "logic/net/net_internal.h"

#define FRAGMENT_ORDER 3u /* SKB_FRAG_PAGE_ORDER: 32 KiB */

/* ---- Life ------------------------------------------------------------------------------------ */

struct socket *net_socket_new(struct net *net, uint8_t protocol)
{
    struct kaddr lines;
    struct socket *sk = k_cache_get(net->sockets, &lines);
    memset(sk, 0, sizeof *sk);
    sk->net = net;
    sk->lines = lines;
    sk->flow.protocol = protocol;
    sk->refs = 1;
    sk->tx_queue = -1;
    sk->next = net->all;
    if (net->all)
        net->all->previous = sk;
    net->all = sk;
    net_socket_touch_write(sk, 0, SOCKET_LINES);
    return sk;
}

void net_socket_put(struct socket *sk)
{
    struct net *net = sk->net;
    if (--sk->refs > 0)
        return;
    if (sk->previous)
        sk->previous->next = sk->next;
    else
        net->all = sk->next;
    if (sk->next)
        sk->next->previous = sk->previous;
    /* Maybe within a timer of its own: freed later. */
    sk->next = net->dead;
    net->dead = sk;
}

void net_sockets_reap(struct net *net)
{
    while (net->dead) {
        struct socket *sk = net->dead;
        net->dead = sk->next;
        net_set_leave(sk);
        while (sk->backlog) {
            struct sk_buff *skb = sk->backlog;
            sk->backlog = skb->next;
            skb_free(net, skb);
        }
        while (sk->rx_head)
            net_socket_eat(sk);
        if (sk->flow.protocol == PROTOCOL_TCP)
            tcp_release(sk);
        if (sk->fragment)
            k_page_put(net->kernel, sk->fragment);
        k_cache_put(net->sockets, sk);
    }
}

/* ---- Lock ------------------------------------------------------------------------------------ */

void net_socket_lock(struct socket *sk)
{
    struct kernel *kernel = net_kernel(sk->net);
    while (sk->owned || sk->spinning)
        if (sk->owned)
            k_wait(kernel, &sk->lock_wait, NET_FOREVER);
        else
            k_compute(kernel, NET_SPIN_CYCLES);
    sk->owned = true;
}

void net_socket_unlock(struct socket *sk)
{
    struct net *net = sk->net;
    while (sk->backlog || sk->deferred) {
        struct sk_buff *skb = sk->backlog;
        sk->backlog = sk->backlog_tail = NULL;
        sk->backlog_truesize = 0;
        for (struct sk_buff *next; skb; skb = next) {
            next = skb->next;
            skb->next = NULL;
            tcp_process(sk, skb);
        }
        unsigned deferred = sk->deferred;
        sk->deferred = 0;
        tcp_deferred(sk, deferred);
    }
    sk->owned = false;
    if (k_has_waiters(&sk->lock_wait))
        k_wake(net->kernel, &sk->lock_wait);
}

void net_socket_spin(struct socket *sk)
{
    while (sk->spinning)
        k_compute(net_kernel(sk->net), NET_SPIN_CYCLES);
    sk->spinning = true;
}

/* ---- Receive queue --------------------------------------------------------------------------- */

void net_socket_cursor(struct socket *sk)
{
    sk->cursor = sk->rx_head;
    sk->cursor_frag = 0;
    sk->cursor_offset = 0;
    if (!sk->cursor)
        return;
    /* Parts of a merged packet lie in frag_list; the first one's bytes are the rest. */
    uint32_t skip = sk->rx_head->skip_bytes;
    while (skip > 0) {
        if (sk->cursor_frag == sk->cursor->n_frags) {
            sk->cursor = sk->cursor == sk->rx_head ? sk->rx_head->frag_list : sk->cursor->next;
            sk->cursor_frag = 0;
            continue;
        }
        uint32_t bytes = sk->cursor->frag[sk->cursor_frag].bytes;
        if (skip < bytes) {
            sk->cursor_offset = skip;
            return;
        }
        skip -= bytes;
        sk->cursor_frag++;
    }
}

uint32_t net_socket_copy(struct socket *sk, struct kaddr to, uint32_t bytes)
{
    struct net *net = sk->net;
    uint32_t done = 0;
    while (done < bytes) {
        if (sk->cursor_frag == sk->cursor->n_frags) {
            sk->cursor = sk->cursor == sk->rx_head ? sk->rx_head->frag_list : sk->cursor->next;
            sk->cursor_frag = 0;
            k_touch(net->kernel, sk->cursor->meta, SKB_TOUCH_USE);
            continue;
        }
        const struct skb_frag *frag = &sk->cursor->frag[sk->cursor_frag];
        uint32_t n = NET_MIN(frag->bytes - sk->cursor_offset, bytes - done);
        struct kaddr from = kaddr_add(frag->page->addr, frag->offset + sk->cursor_offset);
        sk->cursor_offset += n;
        if (sk->cursor_offset == frag->bytes) {
            sk->cursor_frag++;
            sk->cursor_offset = 0;
        }
        if (n == 0)
            continue;
        k_compute(net->kernel, net->costs->recv_frag_cycles);
        k_copy(net->kernel, kaddr_add(to, done), from, n);
        sk->bytes_received += n;
        done += n;
    }
    sk->rx_head->skip_bytes += done;
    return done;
}

void net_socket_eat(struct socket *sk)
{
    struct sk_buff *skb = sk->rx_head;
    sk->rx_head = skb->next;
    if (!sk->rx_head)
        sk->rx_tail = NULL;
    sk->rmem_alloc -= skb->truesize;
    skb->next = NULL;
    net_socket_cursor(sk);
    skb_free(sk->net, skb);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool refill_fragment(struct socket *sk)
{
    struct net *net = sk->net;
    uint32_t size = K_PAGE_BYTES << FRAGMENT_ORDER;
    if (sk->fragment) {
        if (sk->fragment->refs == 1) /* all that was written is gone */
            sk->fragment_offset = 0;
        if (sk->fragment_offset < size)
            return true;
        struct k_page *full = sk->fragment;
        sk->fragment = NULL;
        k_page_put(net->kernel, full);
    }
    struct k_page *page = k_page_alloc(net->kernel, K_NODE_LOCAL, FRAGMENT_ORDER);
    if (!page)
        return false;
    sk->fragment = page;
    sk->fragment_offset = 0;
    return true;
}

int64_t net_append(struct socket *sk, struct sk_buff *skb, struct kaddr from, uint32_t bytes)
{
    struct net *net = sk->net;
    if (!refill_fragment(sk))
        return -ENOMEM;
    struct skb_frag *last = skb->n_frags ? &skb->frag[skb->n_frags - 1] : NULL;
    bool grows = last && last->page == sk->fragment &&
                 last->offset + last->bytes == sk->fragment_offset;
    if (!grows && skb->n_frags == NET_FRAGS_MAX)
        return 0;
    uint32_t at = sk->fragment_offset;
    uint32_t n = NET_MIN(bytes, (K_PAGE_BYTES << FRAGMENT_ORDER) - at);
    uint32_t pages = (at + n + K_PAGE_BYTES - 1) / K_PAGE_BYTES -
                     (at + K_PAGE_BYTES - 1) / K_PAGE_BYTES;
    k_compute(net->kernel, (uint64_t)pages * net->costs->send_page_cycles);
    k_copy(net->kernel, kaddr_add(sk->fragment->addr, at), from, n);
    if (grows)
        last->bytes += n;
    else {
        k_page_get(sk->fragment);
        skb->frag[skb->n_frags++] = (struct skb_frag){ sk->fragment, at, n,
                                                       (int8_t)sk->fragment->node };
    }
    sk->fragment_offset += n;
    skb->bytes += n;
    return n;
}

void net_socket_xmit(struct socket *sk, struct sk_buff *skb, const struct tcp_options *options)
{
    struct net *net = sk->net;
    if (!net_route_socket(sk)) {
        net->stats.dropped_packets++;
        skb_free(net, skb);
        return;
    }
    net_flow_reverse(&sk->flow, &skb->flow);
    skb->hash = sk->hash;
    skb->dev = sk->dev;
    skb->sequence = sk->sequence++;
    skb->ooo_okay = sk->wmem_alloc < SKB_TRUESIZE / 2; /* SKB_TRUESIZE(1) */
    skb->socket = sk;
    net_socket_get(sk);
    sk->wmem_alloc += skb->truesize;
    net_headers_build(net->kernel, skb, &sk->to_mac, &sk->dev->mac, options);
    if (skb->dev != sk->dev) { /* it went away meanwhile */
        net->stats.dropped_packets++;
        skb_free(net, skb);
        return;
    }
    net_dev_queue_xmit(net, skb);
}

/* ---- What programs call ---------------------------------------------------------------------- */

int64_t socket_send(struct socket *socket, struct kaddr from, size_t bytes)
{
    int64_t result;
    k_syscall(net_kernel(socket->net));
    net_socket_get(socket); /* another thread may close it meanwhile */
    net_record_flow(socket->net, socket);
    if (socket->flow.protocol == PROTOCOL_UDP)
        result = udp_send(socket, from, bytes);
    else
        result = tcp_send(socket, from, NULL, bytes, true);
    net_socket_put(socket);
    return result;
}

int64_t socket_send_nowait(struct socket *socket, struct kaddr from, size_t bytes)
{
    k_syscall(net_kernel(socket->net));
    if (socket->flow.protocol != PROTOCOL_TCP)
        return -EOPNOTSUPP;
    net_socket_get(socket);
    net_record_flow(socket->net, socket);
    int64_t result = tcp_send(socket, from, NULL, bytes, false);
    net_socket_put(socket);
    return result;
}

int64_t socket_send_pages(struct socket *socket, const struct skb_frag *frags, unsigned n_frags)
{
    size_t bytes = 0;
    k_syscall(net_kernel(socket->net));
    for (unsigned i = 0; i < n_frags; i++)
        bytes += frags[i].bytes;
    if (socket->flow.protocol != PROTOCOL_TCP)
        return -EOPNOTSUPP;
    net_socket_get(socket);
    net_record_flow(socket->net, socket);
    int64_t result = tcp_send(socket, (struct kaddr){ 0 }, frags, bytes, true);
    net_socket_put(socket);
    return result;
}

static int64_t receive(struct socket *sk, struct kaddr to, size_t bytes, bool wait)
{
    k_syscall(net_kernel(sk->net));
    net_socket_get(sk);
    net_record_flow(sk->net, sk);
    int64_t result = sk->flow.protocol == PROTOCOL_UDP ? udp_recv(sk, to, bytes, wait)
                                                       : tcp_recv(sk, to, bytes, wait);
    net_socket_put(sk);
    return result;
}

uint64_t socket_bytes_received(const struct socket *socket)
{
    return socket->bytes_received;
}

int64_t socket_receive(struct socket *socket, struct kaddr to, size_t bytes)
{
    return receive(socket, to, bytes, true);
}

int64_t socket_receive_nowait(struct socket *socket, struct kaddr to, size_t bytes)
{
    return receive(socket, to, bytes, false);
}

void socket_close(struct socket *socket)
{
    struct net *net = socket->net;
    k_syscall(net->kernel);
    net_set_leave(socket);
    if (socket->flow.protocol == PROTOCOL_TCP)
        tcp_close(socket);
    else {
        net_socket_unhash(socket);
        socket->error = -EBADF;
        net_socket_readable(socket);
    }
    net_socket_put(socket);
    net_sockets_reap(net);
}

int socket_tx_queue(const struct socket *socket)
{
    return socket->tx_queue;
}

void socket_set_tx_queue(struct socket *socket, int queue)
{
    socket->tx_queue = queue;
}
