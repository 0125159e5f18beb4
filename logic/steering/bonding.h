/*
 * 802.3ad link aggregation over network devices of one adapter or of several: one MAC and IP
 * address, and each flow on one of the links by a hash of its addresses and ports (layer3+4). Which
 * CPU sends or receives makes no difference to the link, here or at the switch: section 2.5 of the
 * IOctopus paper. Within its link a flow has the queues that XPS and ARFS give it. The partner (a
 * switch with the two ports in one group) chooses the link of what comes in by its own hash.
 */
#ifndef LOGIC_STEERING_BONDING_H
#define LOGIC_STEERING_BONDING_H

#include "logic/net/netdev.h"

struct bonding;
/* [thread] Registers the device (closed) with the stack. name must outlive it. The devices below,
 * closed as well, take the address of the first as long as the bond is there. NULL and *error if
 * that fails (-EOPNOTSUPP: a device cannot have another's address). */
struct bonding *bonding_new(struct net *net, const char *name, struct net_device *const *lower,
                            unsigned n, int *error);
struct net_device *bonding_device(struct bonding *bonding);
/* [thread] Closes and unregisters it; the devices below stay, closed. */
void bonding_free(struct bonding *bonding);

/* The layer3+4 transmit hash; the link is this modulo the number of links that are up. */
uint32_t bonding_hash(const struct flow_key *flow);

#endif
