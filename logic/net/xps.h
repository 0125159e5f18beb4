/*
 * XPS: which transmit queue a packet leaves through: that of the CPU that sends. A socket keeps its
 * queue while anything of it is outstanding (ooo_okay), so that no packet overtakes another.
 */
#ifndef LOGIC_NET_XPS_H
#define LOGIC_NET_XPS_H

#include "logic/net/netdev.h"

/* Queue i of n belongs to the CPUs whose receive queue it shares, round robin over CPUs of all
 * nodes if there are fewer queues than CPUs. */
void xps_map_default(struct net_device *dev);
/* The queue for skb; remembers it in the socket. Without a socket: by CPU. */
uint16_t xps_select_queue(struct sk_buff *skb, struct net_device *dev);
/* The same for who knows better than the map which queue is best. */
uint16_t xps_keep_or_take(struct sk_buff *skb, struct net_device *dev, uint16_t best);

#endif
