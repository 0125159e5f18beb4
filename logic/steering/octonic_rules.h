/* The octoNIC's rules for packets beside IPv4's (net_device_ops.rx_rule): each is for a CPU, and is
 * kept at the function on that CPU's node, as long as that is alive. */
#ifndef LOGIC_STEERING_OCTONIC_RULES_H
#define LOGIC_STEERING_OCTONIC_RULES_H

#include "logic/steering/octonic.h"
#include "logic/steering/ports.h"

struct octonic_rule;
struct octonic_rules {
    struct kernel *kernel;
    struct ports *ports;
    const struct octonic_device_ops *ops;
    struct octonic_rule *first;
    bool busy; /* somebody sends commands */
};

void octonic_rules_init(struct octonic_rules *rules, struct kernel *kernel, struct ports *ports,
                        const struct octonic_device_ops *ops);
/* Forgets all. Rules that nobody has deleted stay in functions and switch until these are reset. */
void octonic_rules_release(struct octonic_rules *rules);
/* [thread] Sets a rule for `cpu`, in place of an earlier one of this number. On failure there is
 * none. The errors of net_device_ops.rx_rule; -EOPNOTSUPP: a function cannot. */
int octonic_rules_set(struct octonic_rules *rules, uint16_t number, const struct net_rx_rule *rule,
                      unsigned cpu);
/* [thread] -ENOENT: there is none. If no function is alive, octonic_rules_repair() deletes it. */
int octonic_rules_delete(struct octonic_rules *rules, uint16_t number);
/* [thread] Functions have come or gone: moves rules to where they should be now. */
void octonic_rules_repair(struct octonic_rules *rules);

#endif
