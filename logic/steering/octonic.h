/*
 * The octoNIC driver: the physical functions of one card, one per socket, as one network device
 * with one MAC and one IP address (IOctopus, section 4.2). A team over the functions' devices:
 *
 * - receive: when the stack asks to steer a flow to another CPU (ARFS), the driver sets the filter
 *   in that CPU's function and, if the function changes, adds or updates the rule for the 5-tuple
 *   in the card's multi-PF switch, from a worker. A scan deletes rules of flows without traffic;
 * - rules for packets beside IPv4's (net_device_ops.rx_rule): in the function on the node of the
 *   queue's CPU, and in the switch;
 * - transmit: the queues of all functions are queues of this device, and XPS maps a CPU to a queue
 *   of the function on its node; so ooo_okay keeps the order across functions, too;
 * - removal of a function: rules that name it are set again for another, its CPUs use queues of the
 *   remaining functions. When it returns, flows move back as ARFS asks for it, other rules at once.
 *
 * IOctoSG (hints which function fetches a fragment) belongs to the functions' driver, which sees
 * the node of each fragment (nic_driver_params.octo_sg).
 */
#ifndef LOGIC_STEERING_OCTONIC_H
#define LOGIC_STEERING_OCTONIC_H

#include "logic/net/netdev.h"

/* Services of the functions' driver for a team. */
struct octonic_device_ops {
    /* The number of this function in rules of the switch. */
    unsigned (*function)(const struct net_device *lower);
    /* [thread] Sets the switch to deliver the flow to `function`. When it returns, whatever the
     * result, packets that arrived for `lower` before are in its queues. 0, -ENOSPC (table full),
     * or another negative errno. */
    int (*switch_set)(struct net_device *lower, const struct flow_key *flow, unsigned function);
    /* [thread] Deletes the rule of the flow in the same way. -ENOENT: there is none. */
    int (*switch_delete)(struct net_device *lower, const struct flow_key *flow);
    /* [thread] Sets rule `number` of the switch for packets beside IPv4's (net_device_ops.rx_rule),
     * or deletes it if `rule` is NULL. NULL: not supported. */
    int (*switch_rule)(struct net_device *lower, uint16_t number, const struct net_rx_rule *rule,
                       unsigned function);
};

struct octonic_params {
    uint32_t n_rules;    /* largest number of rules */
    uint64_t scan_ps;    /* period in which the driver looks for expired rules */
    unsigned worker_cpu; /* CPU that changes rules */
};
extern const struct octonic_params octonic_params_default;

struct octonic;
/* [thread] Creates a team and registers its device, closed, with the stack. `name` and `ops` must
 * outlive it. On failure NULL and *error. */
struct octonic *octonic_new(struct net *net, const char *name, const struct octonic_params *params,
                            const struct octonic_device_ops *ops, struct net_device *const *lower,
                            unsigned n, int *error);
struct net_device *octonic_device(struct octonic *octonic);
/* [thread] Closes and unregisters the device; the functions' devices stay, closed. */
void octonic_free(struct octonic *octonic);

struct octonic_stats {
    uint64_t added, updated, expired; /* rules of the switch */
    uint64_t moved;                   /* away from functions that went away */
    uint64_t rules_full, switch_full; /* moves refused: table of the driver, of the device */
    uint64_t failed;                  /* other errors of the device */
    uint64_t dropped;                 /* packets queued for functions that went away */
    uint32_t rules;                   /* current number */
};
struct octonic_stats octonic_stats(const struct octonic *octonic);

#endif
