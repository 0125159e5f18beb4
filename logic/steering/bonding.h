/*
 * 802.3ad link aggregation over network devices of one card or of several: one MAC and IP address,
 * and each flow on one of the links, chosen by a hash of its addresses and ports (layer3+4).
 * Neither end considers which CPU sends or receives (section 2.5 of the IOctopus paper). Within its
 * link, XPS and ARFS choose the queues of a flow. The partner (a switch with the two ports in one
 * group) chooses the link of received packets by its own hash.
 */
#ifndef LOGIC_STEERING_BONDING_H
#define LOGIC_STEERING_BONDING_H

#include "logic/net/netdev.h"

struct bonding;
/* [thread] Creates a bond and registers its device, closed, with the stack. `name` must outlive it.
 * The lower devices must be closed; they take the address of the first while the bond exists. On
 * failure NULL and *error (-EOPNOTSUPP: a device cannot change its address). */
struct bonding *bonding_new(struct net *net, const char *name, struct net_device *const *lower,
                            unsigned n, int *error);
struct net_device *bonding_device(struct bonding *bonding);
/* [thread] Closes and unregisters the device; the lower devices stay, closed. */
void bonding_free(struct bonding *bonding);

/* The layer3+4 transmit hash; the link is this modulo the number of links that are up. */
uint32_t bonding_hash(const struct flow_key *flow);

#endif
