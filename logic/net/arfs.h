/*
 * ARFS: received packets of a flow go to the receive queue of the CPU where it is consumed. The
 * stack records where each flow's data is read (arfs_record); when a packet then comes in on the
 * queue of another CPU, the device is asked to steer the flow (rx_flow_steer).
 *
 * Order. A device changes queues when it gets to it, and the old queue may still hold packets of
 * the flow when the first one comes in on the new queue. (Linux drains its own backlog before it
 * asks the device, and leaves this to luck.) Here such a packet meets a fence: it and all that
 * follow are held until every receive queue of the device has passed what it held when the first of
 * them came in (rx_passed), then go up in the order of their arrival at the device
 * (skb->time_ps). So no packet overtakes another of its flow, whatever changed the queue: a filter,
 * its end, a table of the device, a function that went away. A fence opens after fence_ps at the
 * latest, in order of arrival again. Where nothing moves, a packet costs the load of its flow's
 * entry.
 */
#ifndef LOGIC_NET_ARFS_H
#define LOGIC_NET_ARFS_H

#include "logic/net/netdev.h"

struct arfs_params {
    uint32_t n_flows;   /* entries of the flow table; a power of two, at least 4 */
    uint64_t expiry_ps; /* a filter without traffic for so long may go; longer than any packet lies
                           in a queue */
    uint64_t scan_ps;   /* how often drivers look for such filters */
    uint64_t retry_ps;  /* until the same is asked of the device again */
    uint64_t fence_ps;  /* a fence opens at the latest */
    uint64_t check_ps;  /* between looks whether it may */
};
extern const struct arfs_params arfs_params_default;

/* One per stack. The parameters are copied. */
struct arfs *arfs_new(struct kernel *kernel, const struct arfs_params *params);
/* Its devices are gone (arfs_device_gone()). */
void arfs_free(struct arfs *arfs);
/* A thread on this CPU reads from the flow. */
void arfs_record(struct arfs *arfs, uint32_t hash);
/* A packet (merged or not) was received on queue rxq of dev, on this CPU, in a soft interrupt, with
 * flow, hash and time_ps set; dev is the upper device if there is one. False: it goes up now. True:
 * it was taken, and goes up later by net_receive(). May call dev->ops->rx_flow_steer. */
bool arfs_receive(struct arfs *arfs, struct net_device *dev, struct sk_buff *skb, uint16_t rxq)
    __attribute__((warn_unused_result));
/* For drivers: true if a filter with this flow_id may be removed (Linux: rps_may_expire_flow). dev
 * is the driver's own device, also where that is part of another. */
bool arfs_may_expire(struct arfs *arfs, struct net_device *dev, uint16_t rxq, uint32_t flow_id,
                     int filter);
/* For teams: flows may come in on other queues from now on, by no doing of the driver's. The next
 * packet of each meets a fence wherever it comes in. */
void arfs_forget(struct arfs *arfs);

/* The device is about to go: what is held of it is freed, and it is forgotten. */
void arfs_device_gone(struct arfs *arfs, const struct net_device *dev);

struct arfs_stats {
    uint64_t steered, refused; /* the device said yes, no */
    uint64_t waited;           /* a move was not asked for yet: the one before is under way */
    uint64_t moved;            /* flows seen on another queue than before */
    uint64_t fences, held;     /* of them: that had to wait; packets held */
    uint64_t fence_ps;         /* time that fences stood, together */
    uint64_t timeouts;         /* fences opened by time */
    uint64_t untracked;        /* packets without an entry: the table is full of busy flows */
};
const struct arfs_stats *arfs_stats(const struct arfs *arfs);

#endif
