/*
 * XPS chooses the transmit queue of a packet: that of the sending CPU. A socket keeps its queue
 * while a packet of it is outstanding (ooo_okay), so that no packet overtakes another.
 */
#ifndef LOGIC_NET_XPS_H
#define LOGIC_NET_XPS_H

#include "logic/net/netdev.h"

/* Gives transmit queue i to the CPUs of receive queue i; if there are fewer queues than CPUs, round
 * robin over the CPUs of all nodes. */
void xps_map_default(struct net_device *dev);
/* Returns the queue for skb and records it in the socket. Without a socket: by CPU. */
uint16_t xps_select_queue(struct sk_buff *skb, struct net_device *dev);
/* Like xps_select_queue(), but takes the caller's `best` queue instead of the map's. */
uint16_t xps_keep_or_take(struct sk_buff *skb, struct net_device *dev, uint16_t best);

#endif
