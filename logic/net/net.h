/*
 * A small network stack as programs see it: Ethernet, IPv4, TCP (segments, acknowledgements,
 * windows, congestion control, retransmission, delayed ACK, GRO, TSO) and UDP. It uses kapi.h
 * alone. Buffers are user memory (addresses of the host).
 *
 * Calls marked [thread] may sleep. A stream that arrives with a gap or out of order ends the run
 * (k_fault).
 */
#ifndef LOGIC_NET_NET_H
#define LOGIC_NET_NET_H

#include "logic/net/netdev.h"

struct net_params {
    bool gro, tso, nagle;
    bool xps, arfs;
    uint32_t send_buffer_bytes;    /* largest, per socket (tcp_wmem) */
    uint32_t receive_buffer_bytes; /* largest, per socket (tcp_rmem); half of it is window */
    uint64_t delayed_ack_ps, rto_min_ps;
    uint32_t initial_window_segments;
    uint32_t backlog_packets; /* limit of the queueing discipline of a transmit queue */
};
/* The values of Linux 4.14. */
extern const struct net_params net_params_default;

struct net *net_new(struct kernel *kernel, const struct net_params *params);
/* Drops the remaining sockets with all that they hold. No device may hold a packet any more. */
void net_free(struct net *net);
struct kernel *net_kernel(struct net *net);
/* Adds a neighbour: there is no address resolution. */
void net_neighbour_add(struct net *net, uint32_t ip, struct net_mac mac);
/* Routes packets to `ip` through `dev`; the first route to an `ip` counts. Packets from the address
 * of a device leave through that device, whatever the routes say. */
void net_route_add(struct net *net, uint32_t ip, struct net_device *dev);

/* All [thread]. They return a negative errno, or NULL, on failure. */
struct socket *socket_tcp_listen(struct net *net, uint32_t ip, uint16_t port);
struct socket *socket_accept(struct socket *listener);
struct socket *socket_tcp_connect(struct net *net, uint32_t from_ip, uint32_t ip, uint16_t port);
struct socket *socket_udp_bind(struct net *net, uint32_t ip, uint16_t port);
void socket_udp_connect(struct socket *socket, uint32_t ip, uint16_t port);
/* Sends all bytes; blocks while the send buffer is full. Returns the number of bytes, fewer if the
 * connection broke. UDP: one datagram; -EMSGSIZE if it does not fit one packet. */
int64_t socket_send(struct socket *socket, struct kaddr from, size_t bytes);
/* TCP: sends as many bytes as there is room for, without waiting; -EAGAIN if there is none. */
int64_t socket_send_nowait(struct socket *socket, struct kaddr from, size_t bytes);
/* Sends pages without a copy (sendfile); holds a reference on each until it is acknowledged.
 * Fragments may lie on different nodes. */
int64_t socket_send_pages(struct socket *socket, const struct skb_frag *frags, unsigned n_frags);
/* Waits for at least one byte and receives at most `bytes`; 0: the peer has closed. UDP: one
 * datagram; what does not fit is lost. */
int64_t socket_receive(struct socket *socket, struct kaddr to, size_t bytes);
/* Like socket_receive(), but returns -EAGAIN instead of waiting. */
int64_t socket_receive_nowait(struct socket *socket, struct kaddr to, size_t bytes);
/* Bytes that receive calls have copied so far, including those of a call under way. */
uint64_t socket_bytes_received(const struct socket *socket);
/* Closes without waiting: sent data is still delivered. Unread data resets the connection. */
void socket_close(struct socket *socket);
/* A set of sockets to wait for (epoll): for data on any of them, or for room in one where
 * socket_send_nowait() found none. */
struct socket_set;
struct socket_set *socket_set_new(struct net *net);
void socket_set_add(struct socket_set *set, struct socket *socket, void *data);
void *socket_set_wait(struct socket_set *set); /* `data` of a ready socket, round robin */
void socket_set_free(struct socket_set *set);

/* For logic/steering/ and tests. */
int socket_tx_queue(const struct socket *socket); /* -1: none chosen yet */
void socket_set_tx_queue(struct socket *socket, int queue);

struct net_stats {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes; /* counted at the devices */
    uint64_t retransmitted_segments, out_of_order_segments, duplicate_acks, dropped_packets;
    uint64_t acks_sent, gro_merged, timeouts;
    uint64_t bad_checksums; /* part of dropped_packets */
    uint64_t loss_probes;
    uint64_t undone; /* reductions of the window that turned out to be without a loss */
};
const struct net_stats *net_stats(const struct net *net);

#endif
