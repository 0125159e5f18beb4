/*
 * ARFS: received packets of a flow go to the receive queue of the CPU where it is consumed. The
 * stack records where each flow's data is read (arfs_record); when a packet then comes in on the
 * queue of another CPU, the device is asked to steer the flow, once what the old queue holds of it
 * has been delivered.
 */
#ifndef LOGIC_STEERING_ARFS_H
#define LOGIC_STEERING_ARFS_H

#include "logic/net/netdev.h"

struct arfs_params {
    uint32_t n_flows;   /* entries of the table of sockets' CPUs; a power of two */
    uint64_t expiry_ps; /* a filter without traffic for so long may go */
    uint64_t scan_ps;   /* how often expired ones are looked for */
};
extern const struct arfs_params arfs_params_default;

struct arfs *arfs_new(struct kernel *kernel, const struct arfs_params *params);
void arfs_free(struct arfs *arfs);
/* A thread on this CPU reads from the flow. */
void arfs_record(struct arfs *arfs, uint32_t hash);
/* A packet was received on rxq of dev, on this CPU, in a soft interrupt, before it goes up. May
 * call dev->ops->rx_flow_steer. */
void arfs_receive(struct arfs *arfs, struct net_device *dev, const struct sk_buff *skb,
                  uint16_t rxq);
/* For drivers: true if a filter with this flow_id may be removed (Linux: rps_may_expire_flow). */
bool arfs_may_expire(struct arfs *arfs, struct net_device *dev, uint16_t rxq, uint32_t flow_id,
                     int filter);

struct arfs_stats {
    uint64_t steered, refused, waited; /* waited: for the old queue to drain */
};
const struct arfs_stats *arfs_stats(const struct arfs *arfs);

#endif
