/*
 * Packets and network devices: the interface between the stack (logic/net/), drivers (logic/nic/)
 * and the layers between them (logic/steering/). Roles and names are those of a kernel's network
 * core: sk_buff, net_device and its operations, flow keys.
 */
#ifndef LOGIC_NET_NETDEV_H
#define LOGIC_NET_NETDEV_H

#include "logic/kapi.h"

struct net; /* the stack of one host (logic/net/net.h) */
struct net_device;
struct socket;

#define NET_MAC_BYTES     6
#define NET_HEADER_BYTES  128u /* at most, of a packet, and inline in a WQE of the NIC */
#define NET_FRAGS_MAX     17u
#define NET_GSO_BYTES_MAX 65536u
#define NET_QUEUES_MAX    64u

struct net_mac {
    uint8_t byte[NET_MAC_BYTES];
};

/* Identifies a flow. Host byte order. */
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
 * A packet, or several merged into one (GRO on receive, TSO on transmit). The headers are bytes in
 * simulated memory at `head` (head_bytes of them, Ethernet header first); the structure holds the
 * fields that the stack has parsed. It has one owner at a time.
 *
 * A receiving driver sets dev, queue, head, head_page, head_bytes, the fragments of the payload and
 * `bytes`, hash (0: none) and checksum, may set truesize and time_ps, and hands the packet to
 * net_gro_receive(). A transmitting driver reads dev, queue, head, head_bytes, the fragments,
 * bytes, gso_bytes, gso_segments and xmit_more. If the device segments the packet, only the last
 * segment carries the flags PSH and FIN.
 *
 * A protocol beside IPv4 stores its headers to `head` (at most NET_HEADER_BYTES, Ethernet header
 * first), sets dev, head_bytes, the fragments, bytes and gso_segments (1) of an skb of skb_new(),
 * and hands it to net_dev_queue_xmit().
 */
struct sk_buff {
    struct sk_buff *next;
    struct net_device *dev; /* source on receive, destination on transmit */
    struct socket *socket;  /* transmit: charged for the packet until it is freed */
    struct kaddr meta;      /* the skb's own cache lines (4 of them) */
    struct kaddr head;      /* headers; part of meta's object on transmit, of the page on receive */
    struct k_page *head_page;  /* the page that contains head, with one reference; NULL: none */
    struct sk_buff *frag_list; /* more buffers of the same packet (GRO beyond the fragments) */
    struct sk_buff *frag_tail; /* the last of them */
    struct sk_buff *original;  /* transmit: owns the pages of the fragments; NULL: this one does */
    void *private_data;        /* the owner's */
    uint32_t bytes;            /* payload: of all fragments and of frag_list, without headers */
    uint32_t truesize;         /* memory charged for it; receive: 0: the stack estimates it */
    uint16_t head_bytes;
    uint16_t n_frags;
    uint16_t queue; /* of the device: transmit, or receive */
    uint16_t users; /* users of the pages: this one and those whose original it is */
    /* ---- parsed or to be built --------------------------------------------------------------- */
    uint16_t ether_type; /* on receive */
    struct flow_key flow;
    uint32_t hash; /* of the flow: Toeplitz from the NIC, or the socket's */
    uint32_t tcp_seq, tcp_ack;
    uint32_t tcp_tsval, tcp_tsecr; /* of the timestamp option */
    uint32_t skip_bytes;           /* at the front of the payload: consumed already */
    uint16_t tcp_window;           /* not yet scaled */
    uint8_t tcp_flags;
    uint8_t checksum;      /* receive: NET_CHECKSUM_*, the device's result for IP and TCP */
    uint16_t gso_bytes;    /* payload of one segment; 0: not segmented */
    uint16_t gso_segments; /* packets on the wire */
    /* ---- transmit ---------------------------------------------------------------------------- */
    bool ooo_okay;  /* no packet of the socket is outstanding: the queue may change */
    bool xmit_more; /* another packet follows at once: the doorbell may wait */
    /* Of written data: TCP's scoreboard (net_internal.h). Of a received segment: where in its
     * headers the blocks of a SACK option begin; 0: there are none. */
    uint8_t tcp_sacked;
    uint16_t held_frags; /* so many of frag[] have a reference, though n_frags are fewer */
    uint64_t time_ps;    /* when it was given to the device / completed by the device */
    uint64_t sequence;   /* for tests: per flow, set by the sender */
    /* Protocols beside IPv4: called once when the packet is freed, sent or not, after its
     * references to pages are dropped. Any context but hard interrupts. NULL: nobody asks. */
    void (*freed)(struct sk_buff *skb);
    void *freed_arg;
    /* So many first bytes the driver has copied beside the packet, as Linux' drivers do: what is
     * copied on from there is a piece of its own. The fragments have them, too. */
    uint16_t copied_bytes;
    struct skb_frag frag[NET_FRAGS_MAX];
};

/* Checksums of a received packet. If the device has not verified them, or has found one wrong,
 * software reads all bytes, once in GRO and once in the protocol (Linux: CHECKSUM_NONE for both).
 * Its result is the device's: the payload may carry marks instead of bytes, so only the device can
 * detect a damaged packet. */
enum net_checksum { NET_CHECKSUM_NONE, NET_CHECKSUM_RIGHT, NET_CHECKSUM_WRONG };

enum net_xmit {
    NET_XMIT_OK,
    NET_XMIT_BUSY /* the queue was stopped; the stack tries again when it is woken */
};

#define NET_FEATURE_TSO  0x1u
#define NET_FEATURE_GRO  0x2u
#define NET_FEATURE_LRO  0x4u
#define NET_FEATURE_ARFS 0x8u
/* Packets of Myrinet Express come in on mx_endpoint_queue() (hw/mx_wire.h) of n_rx_queues. */
#define NET_FEATURE_MX_QUEUES 0x10u

/* A rule for received packets of an Ethernet type beside IPv4's: those whose words, 32 bits big
 * endian from byte `offset` of the packet's headers on, have the bits of `value` where `mask` has
 * ones. mask 0: all. */
#define NET_RX_RULE_WORDS 2u
struct net_rx_rule {
    uint16_t ether_type;
    struct {
        uint8_t offset;
        uint32_t mask, value;
    } word[NET_RX_RULE_WORDS];
};

/* State of one query of rx_passed(); zero at first. */
struct net_rx_mark {
    uint64_t lower, upper; /* upper: the part of a team */
};

/* Progress of the polls of a receive queue, in turns. Two turns after a mark, every packet that the
 * queue held at the mark has passed: a poll that finds the queue empty counts two, a ring's worth
 * of packets one (the first such turn may have begun before the mark). */
struct net_rx_progress {
    uint64_t turns;
    uint32_t taken, entries; /* entries: of the ring, at least 1 */
};
/* Drivers call it at the end of each poll, after net_gro_flush() and before k_napi_complete().
 * taken: completions processed; empty: none is left. */
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
/* idle: no poll runs or is scheduled, and no completion waits (found by k_peek()). */
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
    /* Sets the device's address (mac): it receives packets for it from the next open() on. From a
     * thread, while the device is closed. 0, -EBUSY, -EOPNOTSUPP. NULL: not supported. */
    int (*set_mac)(struct net_device *dev, const struct net_mac *mac);
    /* Sends a packet; takes the skb if it returns NET_XMIT_OK. Called with soft interrupts
     * disabled, on the sending CPU, by one CPU at a time per queue. A driver that defers the
     * doorbell for xmit_more rings it at the latest when it stops the queue. */
    enum net_xmit (*start_xmit)(struct sk_buff *skb, struct net_device *dev);
    /* Chooses the transmit queue for a packet. NULL: XPS (logic/net/xps.h) does. */
    uint16_t (*select_queue)(struct sk_buff *skb, struct net_device *dev);
    /* ARFS: asks the device to deliver the flow of this packet to receive queue rxq. Returns the
     * number of a filter, or a negative errno (-ENOSPC: table full). From a soft interrupt. NULL:
     * not supported. */
    int (*rx_flow_steer)(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq,
                         uint32_t flow_id);
    /* Returns whether every packet that receive queue rxq held when *mark was zero has gone up,
     * including net_gro_flush(). The stack calls it repeatedly with the same mark, in which the
     * driver keeps its state (struct net_rx_progress helps). True for a queue that is closed or
     * gone, once no poll of it runs. Charges no time, so the answer still holds when the caller
     * acts on it. From any context. NULL: the device cannot tell. */
    bool (*rx_passed)(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark);
    /* Sets rule `number`, in place of an earlier one: packets that match come in on receive queue
     * rxq. Of several rules the lowest number counts. `rule` NULL: deletes it. When it returns, the
     * rule is in force; packets that came before may still lie in another queue. It stays while the
     * device is closed, or its function away. From a thread; the device is open. 0; -ENOSPC;
     * -EINVAL; -ENOENT: there was none to delete; -ENODEV: gone, or closed. NULL: not supported. */
    int (*rx_rule)(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                   uint16_t rxq);
    /* The receive queue to which packets for `cpu` should move from rxq. NULL: rx_queue_of_cpu. */
    int (*rx_queue_for)(struct net_device *dev, unsigned cpu, uint16_t rxq);
    /* Team or bond: `running` or `carrier` of one of its devices has changed. Any context but hard
     * interrupts. */
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
    struct k_device *device; /* the underlying device; NULL: a team or bond */
    struct net_mac mac;
    uint32_t ip; /* set by its configuration */
    uint32_t mtu_bytes;
    uint32_t features;
    uint16_t n_tx_queues, n_rx_queues;
    bool running, carrier; /* carrier: the link is up */
    /* The team or bond that contains this device, and the number there of its first queue. Received
     * packets get (dev, queue) of the upper device before anything reads them; waking a queue wakes
     * the upper one. */
    struct net_device *upper;
    uint16_t upper_queue;
    int16_t xps_queue[256];            /* per CPU: its transmit queue, -1: none */
    int16_t rx_queue_of_cpu[256];      /* per CPU: the receive queue that interrupts it, -1: none */
    struct k_irq *irq[NET_QUEUES_MAX]; /* of each receive queue, while the device is open */
    bool queue_stopped[NET_QUEUES_MAX];
    struct net_queue_stats tx[NET_QUEUES_MAX], rx[NET_QUEUES_MAX]; /* counted by the stack */
    void *private_data;                                            /* the driver's */
    /* ---- the stack's ------------------------------------------------------------------------- */
    struct arfs *arfs; /* the flow table of logic/net/arfs.h; NULL: no ARFS */
    struct net_device *next;
    /* Queueing disciplines. */
    struct sk_buff *backlog[NET_QUEUES_MAX], *backlog_tail[NET_QUEUES_MAX];
    uint32_t backlog_packets[NET_QUEUES_MAX];
    bool queue_running[NET_QUEUES_MAX]; /* a CPU hands packets of it to the driver */
};

/* Allocates a packet buffer with its cache lines and room for the headers to transmit. Never
 * NULL. */
struct sk_buff *skb_new(struct net *net);
/* Frees a packet: drops its references to pages and parts, and reports the free space to its
 * socket. Any context but hard interrupts. */
void skb_free(struct net *net, struct sk_buff *skb);

/* Drivers: add and remove a device. From a thread. */
int net_device_register(struct net *net, struct net_device *dev);
void net_device_unregister(struct net_device *dev);
struct net_device *net_device_find(struct net *net, const char *name);
/* Reports that the link came up or went down. Any context but hard interrupts. */
void net_device_carrier(struct net_device *dev, bool carrier);
/* Passes up a received packet, which it takes; GRO may merge it with others. From poll(). */
void net_gro_receive(struct k_napi *napi, struct sk_buff *skb);
/* Passes a packet, which it takes, to the protocols, past merging and flow steering. From a soft
 * interrupt. */
void net_receive(struct sk_buff *skb);

/* Protocols beside IPv4. `fn` is called in a soft interrupt, on the CPU that polls the receive
 * queue, and takes the packet: dev, queue, head, head_bytes (see skb_header_set()), fragments and
 * bytes are set; the flow is zero; the checksum says nothing; short frames may be padded at the
 * end. It is not merged, and not steered by software. -EEXIST: the Ethernet type is taken (IPv4
 * is); -ENOSPC. */
typedef void net_protocol_fn(struct sk_buff *skb, void *arg);
int net_protocol_register(struct net *net, uint16_t ether_type, net_protocol_fn *fn, void *arg);
/* [thread] Packets that come in from now on are dropped; at return no call of `fn` goes on. */
void net_protocol_unregister(struct net *net, uint16_t ether_type);
/* Makes the headers of a received packet `bytes` long: moves the border between `head` and the
 * first fragment. A protocol calls it with the size of its headers before it uses the fragments, as
 * drivers know only those of IPv4. False, with nothing changed: the packet is shorter, or headers
 * and data do not lie behind each other. Charges nothing. */
bool skb_header_set(struct sk_buff *skb, uint16_t bytes);
/* How many of n bytes of data from `offset` on lie together, as far as copied_bytes divides
 * them. */
static inline uint64_t skb_together(const struct sk_buff *skb, uint32_t offset, uint64_t n)
{
    const uint32_t own = skb->copied_bytes > skb->head_bytes
                             ? (uint32_t)skb->copied_bytes - skb->head_bytes
                             : 0;
    return offset < own && own - offset < n ? own - offset : n;
}
/* Passes up the packets held for merging, then resumes senders that waited for transmit
 * completions of this poll. Drivers call it at the end of each poll(), even if it only completed
 * transmissions. */
void net_gro_flush(struct k_napi *napi, struct net *net);
/* Wakes a queue that has room again: the stack sends what is queued at the end of this poll(), or
 * within a millisecond if this is not called in one. */
void net_queue_wake(struct net_device *dev, uint16_t queue);
static inline void net_queue_stop(struct net_device *dev, uint16_t queue)
{
    dev->queue_stopped[queue] = true;
    dev->tx[queue].stops++;
}
/* Sends a finished packet, which it takes: chooses the queue, hands it to the driver or queues
 * it. */
void net_dev_queue_xmit(struct net *net, struct sk_buff *skb);
/* Records that the calling CPU reads the socket's flow, for ARFS. The stack calls it when a thread
 * receives on a socket (Linux: sock_rps_record_flow). */
void net_record_flow(struct net *net, const struct socket *socket);

/* The Toeplitz hash of a flow, with the key of all our devices (Microsoft's RSS key). */
uint32_t net_toeplitz(const struct flow_key *flow);

#endif
