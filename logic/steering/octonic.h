/*
 * The octoNIC driver: the physical functions of one adapter, one per socket, as one network device
 * with one MAC and one IP address (IOctopus, section 4.2). A team over the functions' own devices:
 *
 * - receive: when the stack asks for a flow to come in at another CPU (ARFS), the driver sets the
 *   filter in that CPU's function and, if the function changes, adds or updates the 5-tuple's rule
 *   of the adapter's multi-PF switch, from a worker. A scan deletes rules of flows without traffic;
 * - transmit: the queues of all functions are queues of this device, and XPS maps a CPU to a queue
 * of the function on its node; so ooo_okay keeps the order across functions, too;
 * - a function that goes away: rules that name it are set anew, its CPUs' queues become those of
 *   the functions that are left. When it comes back flows return as they are asked for.
 *
 * IOctoSG (hints which function fetches a fragment) is the affair of the functions' driver, which
 * sees the node of each fragment (nic_driver_params.octo_sg).
 */
#ifndef LOGIC_STEERING_OCTONIC_H
#define LOGIC_STEERING_OCTONIC_H

#include "logic/net/netdev.h"

/* What the driver of the functions does for a team. */
struct octonic_device_ops {
    /* The number that rules of the switch have for this function. */
    unsigned (*function)(const struct net_device *lower);
    /* [thread] The switch delivers the flow to a function from now on. Returns, whatever the
     * result, when what came in for `lower` before that is in its queues. 0, -ENOSPC (table full),
     * another negative errno. */
    int (*switch_set)(struct net_device *lower, const struct flow_key *flow, unsigned function);
    /* In the same way; -ENOENT: there is no such rule. */
    int (*switch_delete)(struct net_device *lower, const struct flow_key *flow);
};

struct octonic_params {
    uint32_t n_rules;    /* that the driver keeps at most */
    uint64_t scan_ps;    /* how often rules that may expire are looked for */
    unsigned worker_cpu; /* where rules are changed */
};
extern const struct octonic_params octonic_params_default;

struct octonic;
/* [thread] Registers the device (closed) with the stack. name and ops must outlive it. NULL and
 * *error if that fails. */
struct octonic *octonic_new(struct net *net, const char *name, const struct octonic_params *params,
                            const struct octonic_device_ops *ops, struct net_device *const *lower,
                            unsigned n, int *error);
struct net_device *octonic_device(struct octonic *octonic);
/* [thread] Closes and unregisters it; the functions' devices stay, closed. */
void octonic_free(struct octonic *octonic);

struct octonic_stats {
    uint64_t added, updated, expired; /* rules of the switch */
    uint64_t moved;                   /* away from functions that had gone */
    uint64_t rules_full, switch_full; /* moves refused: the driver's table, the device's */
    uint64_t failed;                  /* other errors of the device */
    uint64_t dropped;                 /* packets queued for functions that had gone */
    uint32_t rules;                   /* now */
};
struct octonic_stats octonic_stats(const struct octonic *octonic);

#endif
