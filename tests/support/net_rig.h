/*
 * Two hosts with a network stack each on one fake kernel (CPUs 0 and 1 are host 0's, 2 and 3 host
 * 1's), joined by a wire that may lose, damage, repeat and overtake packets. The device at each end
 * cuts up what it is given as a NIC does, completes transmissions in its poll, and receives into
 * pages. Included by one file of a test, after cmocka.h.
 */
#ifndef TESTS_SUPPORT_NET_RIG_H
#define TESTS_SUPPORT_NET_RIG_H

#include "logic/net/arfs.h"
#include "logic/net/net_internal.h"
#include "logic/net/xps.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/test.h"

#define RIG_IP(host) (0x0a000001u + (uint32_t)(host))
#define RIG_QUEUES   2u

struct rig;
struct rig_frame {
    struct rig_frame *next;
    struct rig *rig;
    unsigned to; /* host */
    unsigned queue;
    uint32_t bytes;
    bool damaged;
    uint8_t byte[9100];
};
struct rig_end;
struct rig_rx { /* a receive queue; the first one completes transmissions too */
    struct rig_end *end;
    struct k_napi napi;
    struct rig_frame *arrived, *arrived_tail;
    unsigned cpu;
    bool interrupt; /* to come */
};
struct rig_end {
    struct rig *rig;
    unsigned host;
    struct net *net;
    struct net_device dev;
    struct rig_rx rx[RIG_QUEUES];
    struct sk_buff *sent, *sent_tail; /* to be completed */
    unsigned n_sent;
    uint64_t free_ps; /* the wire is free from then on */
    uint64_t frames, payload;
    uint32_t largest; /* payload given at once */
    uint64_t on_queue[RIG_QUEUES];
    bool handing[RIG_QUEUES]; /* a CPU is in start_xmit() for it */
};
struct rig_options {
    uint64_t seed;
    struct net_params params;
    unsigned stall_percent, fail_page_every;
    unsigned loss_permille, repeat_permille, overtake_permille;
    unsigned damage_permille; /* a bit behind the IP header is another one */
    bool unchecked;           /* devices do not look at checksums; nothing may be damaged then */
    unsigned ring;            /* packets at the device before it stops its queue; 0: 64 */
    uint64_t latency_ps, ps_per_byte;
    uint32_t mtu_bytes; /* 0: 1500 */
    bool no_tso;
    uint64_t moderation_ps; /* between an arrival and its interrupt */
    bool spread;            /* packets of a flow over all receive queues */
    bool one_queue;         /* for transmission */
    bool wander;            /* interrupts move between the host's CPUs */
};
struct rig {
    struct kernel *kernel;
    struct rig_options options;
    struct rig_end end[2];
    /* For single tests: looks at each frame before it is sent; true: lost. */
    bool (*filter)(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg);
    void *filter_arg;
    uint64_t late_ps; /* the filter may set it: so much later does this frame arrive */
    uint64_t lost, damaged;
};

uint32_t net_rig_get(const uint8_t *p, unsigned bytes);
void net_rig_put(uint8_t *p, uint32_t v, unsigned bytes);
#define RIG_IPV4(head)   (net_rig_get((head) + 12, 2) == ETHER_TYPE_IPV4)
#define RIG_SEQ(head)    net_rig_get((head) + 38, 4)
#define RIG_ACK(head)    net_rig_get((head) + 42, 4)
#define RIG_FLAGS(head)  ((head)[47])
#define RIG_WINDOW(head) net_rig_get((head) + 48, 2)
#define RIG_PAYLOAD(head) \
    (net_rig_get((head) + 16, 2) - 20u - ((head)[23] == 6 ? (head)[46] / 16u * 4 : 8u))

extern const struct net_device_ops rig_ops;

struct rig *net_rig_new(const struct rig_options *options);

/* Everything that was made is gone: nothing leaks. */
void net_rig_free(struct rig *rig);

/* A frame that no host has sent arrives at host `to` now. */
void net_rig_inject(struct rig *rig, unsigned to, const uint8_t *bytes, uint32_t n);

void net_rig_fill(struct kernel *kernel, struct kaddr at, unsigned stream, uint64_t position,
                  size_t bytes);

void net_rig_check(struct kernel *kernel, struct kaddr at, unsigned stream, uint64_t position,
                   size_t bytes);

#endif
