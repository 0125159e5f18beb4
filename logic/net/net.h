/*
 * A small network stack: what programs ask of it. Ethernet, IPv4, TCP (segments, acknowledgements,
 * windows, congestion control, retransmission, delayed ACK, GRO, TSO) and UDP. Stands on kapi.h
 * alone. Buffers are user memory (addresses of the host); contents are carried.
 *
 * Calls marked [thread] may sleep. Bytes are counted, never lost in silence: a stream that arrives
 * with a gap or out of order is a fault of the run (k_fault).
 */
#ifndef LOGIC_NET_NET_H
#define LOGIC_NET_NET_H

#include "logic/net/netdev.h"

struct net_params {
    bool gro, tso, nagle;
    bool xps, arfs;
    uint32_t send_buffer_bytes;    /* of a socket at most (tcp_wmem) */
    uint32_t receive_buffer_bytes; /* of a socket at most (tcp_rmem); half of it is window */
    uint64_t delayed_ack_ps, rto_min_ps;
    uint32_t initial_window_segments;
    uint32_t backlog_packets; /* of the queueing discipline of one transmit queue */
};
/* The values of Linux 4.14. */
extern const struct net_params net_params_default;

struct net *net_new(struct kernel *kernel, const struct net_params *params);
/* Sockets that are left are dropped with all that they hold. No device holds a packet any more. */
void net_free(struct net *net);
struct kernel *net_kernel(struct net *net);
/* Neighbours are configured, not resolved. */
void net_neighbour_add(struct net *net, uint32_t ip, struct net_mac mac);
/* Packets to ip leave through dev; the first that was added for it counts. What is sent from an
 * address that a device has leaves through that device, whatever the routes say. */
void net_route_add(struct net *net, uint32_t ip, struct net_device *dev);

/* [thread] all. Negative errno, or NULL, on failure. */
struct socket *socket_tcp_listen(struct net *net, uint32_t ip, uint16_t port);
struct socket *socket_accept(struct socket *listener);
struct socket *socket_tcp_connect(struct net *net, uint32_t from_ip, uint32_t ip, uint16_t port);
struct socket *socket_udp_bind(struct net *net, uint32_t ip, uint16_t port);
void socket_udp_connect(struct socket *socket, uint32_t ip, uint16_t port);
/* All of it; blocks while the send buffer is full. Returns bytes; fewer if the connection broke on
 * the way. UDP: one datagram; -EMSGSIZE if it does not fit one packet. */
int64_t socket_send(struct socket *socket, struct kaddr from, size_t bytes);
/* TCP, without waiting: as much as there is room for; -EAGAIN if there is none. */
int64_t socket_send_nowait(struct socket *socket, struct kaddr from, size_t bytes);
/* Sends pages without a copy (sendfile): takes a reference on each until acknowledged. Fragments
 * may lie on different nodes. */
int64_t socket_send_pages(struct socket *socket, const struct skb_frag *frags, unsigned n_frags);
/* At least one byte, at most `bytes`; 0: the other side closed. UDP: one datagram, what does not
 * fit is lost. */
int64_t socket_receive(struct socket *socket, struct kaddr to, size_t bytes);
/* Without waiting: -EAGAIN if there is nothing. */
int64_t socket_receive_nowait(struct socket *socket, struct kaddr to, size_t bytes);
/* Does not wait: what was sent is still delivered. Unread data resets the connection. */
void socket_close(struct socket *socket);
/* Waits for data on any of several sockets, or for room in one that had none for
 * socket_send_nowait(). The set is armed once (epoll). */
struct socket_set;
struct socket_set *socket_set_new(struct net *net);
void socket_set_add(struct socket_set *set, struct socket *socket, void *data);
void *socket_set_wait(struct socket_set *set); /* of a ready socket, round robin */
void socket_set_free(struct socket_set *set);

/* For logic/steering/ and tests. */
int socket_tx_queue(const struct socket *socket); /* -1: none chosen yet */
void socket_set_tx_queue(struct socket *socket, int queue);

struct net_stats {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes; /* on the wire's side */
    uint64_t retransmitted_segments, out_of_order_segments, duplicate_acks, dropped_packets;
    uint64_t acks_sent, gro_merged, timeouts;
    uint64_t bad_checksums; /* of what was dropped */
};
const struct net_stats *net_stats(const struct net *net);

#endif
