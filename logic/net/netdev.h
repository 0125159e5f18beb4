/*
 * Packets and network devices, as the stack (logic/net/), drivers (logic/nic/) and what stands
 * between them (logic/steering/) know them. The roles and names are those of a kernel's network
 * core: sk_buff, net_device and its operations, flow keys.
 */
#ifndef LOGIC_NET_NETDEV_H
#define LOGIC_NET_NETDEV_H

#include "logic/kapi.h"

struct net; /* the stack of one host (logic/net/net.h) */
struct net_device;
struct socket;

#define NET_MAC_BYTES     6
#define NET_HEADER_BYTES  128u /* headers of a packet at most, and what the NIC inlines at most */
#define NET_FRAGS_MAX     17u
#define NET_GSO_BYTES_MAX 65536u
#define NET_QUEUES_MAX    64u

struct net_mac {
    uint8_t byte[NET_MAC_BYTES];
};

/* What tells a flow from others; host byte order. */
struct flow_key {
    uint32_t source_ip, destination_ip;
    uint16_t source_port, destination_port;
    uint8_t protocol; /* 6 TCP, 17 UDP */
};
static inline bool flow_key_equal(const struct flow_key *a, const struct flow_key *b)
{
    return a->source_ip == b->source_ip && a->destination_ip == b->destination_ip &&
           a->source_port == b->source_port && a->destination_port == b->destination_port &&
           a->protocol == b->protocol;
}

/* Bytes of a page. The skb holds a reference on the page. */
struct skb_frag {
    struct k_page *page;
    uint32_t offset, bytes;
    int8_t node; /* of the page; a hint for devices with several functions (IOctoSG) */
};

/*
 * A packet, or several in one (GRO on receive, TSO on transmit). Headers are real bytes in
 * simulated memory at `head` (head_bytes of them, Ethernet header first); the structure keeps what
 * the stack has parsed. One owner at a time.
 *
 * A driver that has received a packet sets dev, queue, head, head_page, head_bytes, the fragments
 * of the payload with `bytes`, hash (0: none) and checksum, may set truesize and time_ps, and
 * hands it to net_gro_receive(). A driver that transmits reads dev, queue, head, head_bytes, the
 * fragments, bytes, gso_bytes, gso_segments and xmit_more. Of a packet that the device cuts up,
 * only the last segment carries the flags PSH and FIN.
 */
struct sk_buff {
    struct sk_buff *next;
    struct net_device *dev; /* it came from, or goes to */
    struct socket *socket;  /* transmit: who is charged for it, until it is freed */
    struct kaddr meta;      /* the skb's own cache lines (4 of them) */
    struct kaddr head;      /* headers; part of meta's object on transmit, of the page on receive */
    struct k_page *head_page;  /* NULL, or the page that head lies in: one reference */
    struct sk_buff *frag_list; /* more buffers of the same packet (GRO beyond the fragments) */
    struct sk_buff *frag_tail; /* the last of them */
    struct sk_buff *original;  /* transmit: whose pages the fragments are; NULL: they are its own */
    void *private_data;        /* of who owns it */
    uint32_t bytes;            /* payload: of all fragments and of frag_list, without headers */
    uint32_t truesize;         /* memory that it stands for; receive: 0 lets the stack estimate */
    uint16_t head_bytes;
    uint16_t n_frags;
    uint16_t queue; /* of the device: transmit, or receive */
    uint16_t users; /* of the pages: itself and those whose original it is */
    /* ---- parsed or to be built --------------------------------------------------------------- */
    struct flow_key flow;
    uint32_t hash; /* of the flow: Toeplitz from the NIC, or the socket's */
    uint32_t tcp_seq, tcp_ack;
    uint32_t tcp_tsval, tcp_tsecr; /* of the timestamp option */
    uint32_t skip_bytes;           /* of the payload, at its front: done with already */
    uint16_t tcp_window;           /* not yet scaled */
    uint8_t tcp_flags;
    uint8_t checksum;      /* receive: NET_CHECKSUM_*, what the device says of IP's and TCP's */
    uint16_t gso_bytes;    /* payload of one segment; 0: not segmented */
    uint16_t gso_segments; /* packets on the wire */
    /* ---- transmit ---------------------------------------------------------------------------- */
    bool ooo_okay;      /* nothing of the socket is outstanding: another queue may be chosen */
    bool xmit_more;     /* another one follows at once: the doorbell may wait */
    bool retransmitted; /* of it, or of a part of it */
    uint64_t time_ps;   /* when it was given to the device / completed by the device */
    uint64_t sequence;  /* for tests: per flow, from the sender */
    struct skb_frag frag[NET_FRAGS_MAX];
};

/* Those of a packet that has arrived. Of one that the device has not looked at, or has found wrong,
 * software reads all bytes, once in GRO and where it goes up (Linux: CHECKSUM_NONE for both). What
 * it finds then is what the device would, or has: payload may have no bytes that could be added up
 * (tag mode), and nothing but a device that checks can tell a damaged packet. */
enum net_checksum { NET_CHECKSUM_NONE, NET_CHECKSUM_RIGHT, NET_CHECKSUM_WRONG };

enum net_xmit {
    NET_XMIT_OK,
    NET_XMIT_BUSY /* the queue was stopped; tried again when woken */
};

#define NET_FEATURE_TSO  0x1u
#define NET_FEATURE_GRO  0x2u
#define NET_FEATURE_LRO  0x4u
#define NET_FEATURE_ARFS 0x8u

/* What a driver remembers for rx_passed(); zero at first. */
struct net_rx_mark {
    uint64_t lower, upper; /* upper: a team's part */
};

/* How far the polls of a receive queue have come. Two turns after a mark everything has passed that
 * the queue held then: a poll that found it empty is two, a ring's worth of packets one (the first
 * such turn may have begun before the mark). */
struct net_rx_progress {
    uint64_t turns;
    uint32_t taken, entries; /* entries: of the ring, at least 1 */
};
/* At the end of each poll, after net_gro_flush(), before k_napi_complete(): it has taken so many
 * completions, and found none any more (empty), or left some. */
static inline void net_rx_polled(struct net_rx_progress *p, uint32_t taken, bool empty)
{
    p->taken += taken;
    if (empty) {
        p->turns += 2;
        p->taken = 0;
    } else if (p->taken >= p->entries) {
        p->turns++;
        p->taken = 0;
    }
}
/* idle: no poll is under way or scheduled, and there is no completion (k_peek() tells). */
static inline bool net_rx_passed(const struct net_rx_progress *p, bool idle,
                                 struct net_rx_mark *mark)
{
    if (mark->lower == 0)
        mark->lower = p->turns + 2;
    return idle || p->turns >= mark->lower;
}

struct net_device_ops {
    int (*open)(struct net_device *dev); /* from a thread: 0 or a negative errno */
    void (*stop)(struct net_device *dev);
    /* Packets for this address come in from the next open() on, and it is that of the device (mac).
     * From a thread, while it is closed: 0, -EBUSY, -EOPNOTSUPP. NULL: not offered. */
    int (*set_mac)(struct net_device *dev, const struct net_mac *mac);
    /* Takes the skb if OK. Called with soft interrupts disabled, on the CPU that sends, by one CPU
     * at a time per queue. Whoever puts off the doorbell for xmit_more rings it at the latest when
     * it stops the queue. */
    enum net_xmit (*start_xmit)(struct sk_buff *skb, struct net_device *dev);
    /* The transmit queue for a packet; NULL: XPS (logic/net/xps.h) decides. */
    uint16_t (*select_queue)(struct sk_buff *skb, struct net_device *dev);
    /* ARFS: have the flow of this packet delivered to receive queue rxq. Returns a filter's number,
     * or a negative errno (-ENOSPC: table full). From a soft interrupt. NULL: not offered. */
    int (*rx_flow_steer)(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq,
                         uint32_t flow_id);
    /* Whether everything that the device had put into receive queue rxq when *mark was zero has
     * gone up, net_gro_flush() included. Called again and again with the same mark, which holds
     * what the driver remembers of the first time. True for a queue that is closed or gone, once no
     * poll of it is under way. Any context; charges nothing, so that the answer still holds when
     * it is acted upon. NULL: the device cannot tell. struct net_rx_progress does most of it. */
    bool (*rx_passed)(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark);
    /* Where packets for a CPU shall come in that came in on rxq. NULL: rx_queue_of_cpu. */
    int (*rx_queue_for)(struct net_device *dev, unsigned cpu, uint16_t rxq);
    /* Of a team or bond: running or carrier of one of its devices has changed. Any context but
     * hard interrupts. */
    void (*lower_changed)(struct net_device *dev, struct net_device *lower);
};

struct net_queue_stats {
    uint64_t packets, bytes; /* of the wire, headers included */
    uint64_t drops, stops;
};

struct net_device {
    struct kernel *kernel;
    struct net *net;  /* set by net_device_register() */
    const char *name; /* "pf0", "octo0" */
    const struct net_device_ops *ops;
    struct k_device *device; /* what it sits on; NULL for a team or a bond */
    struct net_mac mac;
    uint32_t ip; /* set by whoever configures it */
    uint32_t mtu_bytes;
    uint32_t features;
    uint16_t n_tx_queues, n_rx_queues;
    bool running, carrier; /* carrier: the link is there */
    /* The team or bond that it is part of, and the first of that one's queues that are its own:
     * received packets become the upper's (dev, queue) before anything looks at them, and a queue
     * that is woken wakes the upper's. */
    struct net_device *upper;
    uint16_t upper_queue;
    int16_t xps_queue[256]; /* per CPU: its transmit queue, -1: none */
    int16_t
        rx_queue_of_cpu[256]; /* per CPU: the receive queue whose interrupt it takes, -1: none */
    bool queue_stopped[NET_QUEUES_MAX];
    struct net_queue_stats tx[NET_QUEUES_MAX], rx[NET_QUEUES_MAX]; /* counted by the stack */
    void *private_data;                                            /* the driver's */
    /* ---- the stack's ------------------------------------------------------------------------- */
    struct arfs *arfs; /* the flow table of logic/net/arfs.h; NULL: no ARFS */
    struct net_device *next;
    struct sk_buff *backlog[NET_QUEUES_MAX],
        *backlog_tail[NET_QUEUES_MAX]; /* queueing discipline */
    uint32_t backlog_packets[NET_QUEUES_MAX];
    bool queue_running[NET_QUEUES_MAX]; /* a CPU hands packets of it to the driver */
};

/* A new packet buffer with its cache lines; headers' room for transmit included. Never NULL. */
struct sk_buff *skb_new(struct net *net);
/* Puts pages and parts, tells the socket (write space), frees. Any context but hard interrupts. */
void skb_free(struct net *net, struct sk_buff *skb);

/* Drivers: a device appears, goes. From a thread. */
int net_device_register(struct net *net, struct net_device *dev);
void net_device_unregister(struct net_device *dev);
struct net_device *net_device_find(struct net *net, const char *name);
/* The link came up or went down. Any context but hard interrupts. */
void net_device_carrier(struct net_device *dev, bool carrier);
/* A received packet goes up, merged with others of its flow if GRO is on. Takes it. From poll(). */
void net_gro_receive(struct k_napi *napi, struct sk_buff *skb);
/* A packet goes up past merging and flow steering, to the protocols. Takes it. From a soft
 * interrupt. */
void net_receive(struct sk_buff *skb);
/* What is held back for merging goes up; then whoever waited for transmit completions of this poll
 * sends on. At the end of each poll(), of one that only completes transmissions too. */
void net_gro_flush(struct k_napi *napi, struct net *net);
/* The queue has room again: what has been queued meanwhile follows at the end of this poll(), or
 * within a millisecond if that was not called in one. */
void net_queue_wake(struct net_device *dev, uint16_t queue);
static inline void net_queue_stop(struct net_device *dev, uint16_t queue)
{
    dev->queue_stopped[queue] = true;
    dev->tx[queue].stops++;
}
/* Sends a finished packet: picks the queue, hands it to the driver or queues it. Takes it. */
void net_dev_queue_xmit(struct net *net, struct sk_buff *skb);
/* Flows to the receive queue of whoever waits for them: called by the stack when a thread receives
 * on a socket (Linux: sock_rps_record_flow). */
void net_record_flow(struct net *net, const struct socket *socket);

/* Toeplitz hash of a flow with the key that all our devices use (Microsoft's RSS key). */
uint32_t net_toeplitz(const struct flow_key *flow);

#endif
