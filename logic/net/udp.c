/*
 * What it does: Datagrams of one packet each, a receive queue with a limit, a send buffer whose
 *   writers wait for room.
 * Leaves out: datagrams larger than the MTU (refused), multicast, offloads, errors from the
 *   network.
 * Follows: RFC 768; Linux 4.14 net/ipv4/udp.c (udp_sendmsg, __udp4_lib_rcv,
 *   __udp_enqueue_schedule_skb), net/core/sock.c (sock_alloc_send_pskb); net.core.rmem_default and
 *   wmem_default (212,992).
 * Costs: udp_transmit_cycles and ip_udp_receive_cycles per datagram; calls as in socket.c.
 */
#include "logic/net/net_internal.h"

#define UDP_BUFFER_BYTES 212992u

struct socket *socket_udp_bind(struct net *net, uint32_t ip, uint16_t port)
{
    k_syscall(net->kernel);
    net_sockets_reap(net);
    struct socket *sk = net_socket_new(net, PROTOCOL_UDP);
    sk->flow.destination_ip = ip;
    sk->flow.destination_port = port;
    sk->send_buffer = UDP_BUFFER_BYTES;
    sk->receive_buffer = UDP_BUFFER_BYTES;
    if (net_socket_hash(sk))
        return sk;
    net_socket_put(sk);
    net_sockets_reap(net);
    return NULL;
}

void socket_udp_connect(struct socket *socket, uint32_t ip, uint16_t port)
{
    k_syscall(net_kernel(socket->net));
    net_socket_unhash(socket);
    socket->flow.source_ip = ip;
    socket->flow.source_port = port;
    socket->dev = NULL;
    if (socket->flow.destination_ip == 0 && net_route_socket(socket))
        socket->flow.destination_ip = socket->dev->ip;
    if (!net_socket_hash(socket))
        socket->error = -EADDRINUSE;
}

static bool room(const struct socket *sk)
{
    return sk->wmem_alloc < sk->send_buffer;
}

void udp_freed(struct socket *sk)
{
    /* sock_def_write_space: half of the buffer is free. */
    if (2 * sk->wmem_alloc <= sk->send_buffer && k_has_waiters(&sk->writable))
        k_wake(net_kernel(sk->net), &sk->writable);
}

int64_t udp_send(struct socket *sk, struct kaddr from, size_t bytes)
{
    struct net *net = sk->net;
    k_compute(net->kernel, net->costs->send_call_cycles);
    net_socket_touch(sk, SOCKET_LINE_LOOKUP, 1);
    net_socket_touch_write(sk, SOCKET_LINE_TX, 1);
    if (sk->error)
        return sk->error;
    if (sk->flow.source_port == 0)
        return -ENOTCONN;
    if (!net_route_socket(sk))
        return -ENETUNREACH;
    if (bytes + IPV4_BYTES + UDP_BYTES > sk->dev->mtu_bytes)
        return -EMSGSIZE;
    while (!room(sk))
        k_wait(net->kernel, &sk->writable, NET_FOREVER);
    net_socket_lock(sk); /* threads that share it share its fragment */
    struct sk_buff *skb = skb_new(net);
    int64_t n = 1;
    while (n > 0 && skb->bytes < bytes)
        n = net_append(sk, skb, kaddr_add(from, skb->bytes), (uint32_t)bytes - skb->bytes);
    if (n <= 0) {
        skb_free(net, skb);
        net_socket_unlock(sk);
        return -ENOMEM;
    }
    skb->truesize = SKB_TRUESIZE + (uint32_t)bytes;
    skb->gso_segments = 1;
    k_compute(net->kernel, net->costs->udp_transmit_cycles);
    net_socket_xmit(sk, skb, NULL);
    net_socket_unlock(sk);
    return (int64_t)bytes;
}

void udp_receive(struct net *net, struct sk_buff *skb)
{
    k_compute(net->kernel, net->costs->ip_udp_receive_cycles);
    k_touch(net->kernel, skb->meta, SKB_TOUCH_USE);
    struct socket *sk = net_lookup(net, &skb->flow);
    if (!sk || sk->rmem_alloc > sk->receive_buffer) { /* the last may reach beyond it */
        net->stats.dropped_packets++;
        skb_free(net, skb);
        return;
    }
    net_socket_get(sk);
    net_socket_touch_write(sk, SOCKET_LINE_RX, 1);
    sk->rx_dev = skb->dev;
    sk->rx_hash = skb->hash;
    sk->rmem_alloc += skb->truesize;
    skb->next = NULL;
    skb->skip_bytes = 0;
    if (sk->rx_head)
        sk->rx_tail->next = skb;
    else
        sk->rx_head = skb;
    sk->rx_tail = skb;
    net_socket_readable(sk);
    net_socket_put(sk);
}

int64_t udp_recv(struct socket *sk, struct kaddr to, size_t bytes, bool wait)
{
    struct net *net = sk->net;
    k_compute(net->kernel, net->costs->recv_call_cycles);
    net_socket_touch(sk, SOCKET_LINE_LOOKUP, 1);
    net_socket_touch_write(sk, SOCKET_LINE_RX, 1);
    net_socket_lock(sk);
    while (!sk->rx_head) {
        net_socket_unlock(sk);
        if (!wait || sk->error)
            return sk->error ? sk->error : -EAGAIN;
        if (!sk->rx_head)
            k_wait(net->kernel, &sk->readable, NET_FOREVER);
        net_socket_lock(sk);
    }
    uint32_t n = (uint32_t)NET_MIN(bytes, sk->rx_head->bytes);
    net_socket_cursor(sk);
    net_socket_copy(sk, to, n);
    net_socket_eat(sk);
    net_socket_unlock(sk);
    return n;
}
