/*
 * ARFS steers the packets of a flow to the receive queue of the CPU that reads it. The stack
 * records where each flow is read (arfs_record); when a packet then arrives on the queue of another
 * CPU, it asks the device to steer the flow (rx_flow_steer).
 *
 * Order. The device changes the queue some time later, and the old queue may still hold packets of
 * the flow when the first one arrives on the new queue. (Linux drains its own backlog before it
 * asks the device, but does not close this race.) Here that packet meets a fence: it and its
 * successors are held until every receive queue of the device has passed what it held when the
 * first of them arrived (rx_passed); then they go up in the order of their arrival at the device
 * (skb->time_ps). So no packet overtakes another of its flow, whatever changed the queue: a new
 * filter, its end, a table of the device, a function that went away. A fence opens after fence_ps
 * at the latest, again in order of arrival. Where no flow moves, a packet costs the load of its
 * flow's entry.
 */
#ifndef LOGIC_NET_ARFS_H
#define LOGIC_NET_ARFS_H

#include "logic/net/netdev.h"

struct arfs_params {
    uint32_t n_flows; /* entries of the flow table; a power of two, at least 4 */
    /* A filter without traffic for so long may be removed; longer than a packet stays in a
     * queue. */
    uint64_t expiry_ps;
    uint64_t scan_ps;  /* period in which drivers look for such filters */
    uint64_t retry_ps; /* until the device is asked for the same again */
    uint64_t fence_ps; /* longest life of a fence */
    uint64_t check_ps; /* period of checks whether a fence may open */
};
extern const struct arfs_params arfs_params_default;

/* Creates the table of a stack. The parameters are copied. */
struct arfs *arfs_new(struct kernel *kernel, const struct arfs_params *params);
/* All devices must be gone (arfs_device_gone()). */
void arfs_free(struct arfs *arfs);
/* Records that a thread on the calling CPU reads the flow. */
void arfs_record(struct arfs *arfs, uint32_t hash);
/* Handles a packet (merged or not) received on queue rxq of dev, on the calling CPU, with flow,
 * hash and time_ps set; dev is the upper device if there is one. Returns false if the packet may go
 * up now; true if it took the packet, which goes up later through net_receive(). May call
 * dev->ops->rx_flow_steer. From a soft interrupt. */
bool arfs_receive(struct arfs *arfs, struct net_device *dev, struct sk_buff *skb, uint16_t rxq)
    __attribute__((warn_unused_result));
/* Returns to a driver whether it may remove the filter of this flow_id (Linux:
 * rps_may_expire_flow). dev is the driver's device even if it is part of a team or bond. */
bool arfs_may_expire(struct arfs *arfs, struct net_device *dev, uint16_t rxq, uint32_t flow_id,
                     int filter);
/* For teams: flows may arrive on other queues from now on without the driver's doing. The next
 * packet of each flow meets a fence wherever it arrives. */
void arfs_forget(struct arfs *arfs);

/* Frees the packets held for a device and forgets it. To be called before the device goes. */
void arfs_device_gone(struct arfs *arfs, const struct net_device *dev);

struct arfs_stats {
    uint64_t steered, refused; /* by the device */
    uint64_t waited;           /* moves deferred: the one before is not finished */
    uint64_t moved;            /* flows seen on another queue than before */
    uint64_t fences, held;     /* moves that had to wait; packets held */
    uint64_t fence_ps;         /* sum of the lives of all fences */
    uint64_t timeouts;         /* fences opened by time */
    uint64_t untracked;        /* packets without an entry: the table is full of busy flows */
};
const struct arfs_stats *arfs_stats(const struct arfs *arfs);

#endif
