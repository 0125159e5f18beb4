/*
 * The octoNIC's rules for packets beside IPv4's.
 *
 * What it does: A rule is in the table of the function that is local to its CPU, for that CPU's
 *   queue there, and in the multi-PF switch, for that function; first in the function, so that no
 *   packet comes to one that does not know it. When the function goes away another takes its place,
 *   until it is back.
 * Leaves out: the order of packets while a rule moves; protocols beside IPv4's have their own.
 * Follows: IOctopus (ASPLOS 2020), section 4.2, which has flows of TCP and UDP only.
 * Costs: two commands of the functions' driver for a rule, three for one that moves.
 */
#include "logic/steering/octonic_rules.h"

#include <errno.h>

#define LOOK_PS (10 * K_US)
#define NO_PORT PORTS_MAX

struct octonic_rule {
    struct octonic_rule *next;
    struct net_rx_rule rule;
    uint16_t number;
    unsigned cpu, port; /* port: where it is; NO_PORT: nowhere */
    bool deleted;       /* but the switch still has it: no function was alive to say so */
};

void octonic_rules_init(struct octonic_rules *rules, struct kernel *kernel, struct ports *ports,
                        const struct octonic_device_ops *ops)
{
    *rules = (struct octonic_rules){ .kernel = kernel, .ports = ports, .ops = ops };
}

/* The link to the rule of this number; to NULL: there is none. */
static struct octonic_rule **find(struct octonic_rules *rules, uint16_t number)
{
    struct octonic_rule **link = &rules->first;
    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

static void forget(struct octonic_rule **link)
{
    struct octonic_rule *old = *link;
    *link = old->next;
    k_free(old);
}

void octonic_rules_release(struct octonic_rules *rules)
{
    while (rules->first != NULL)
        forget(&rules->first);
}

/* One at a time sends commands, and changes the list. */
static void enter(struct octonic_rules *rules)
{
    while (rules->busy)
        k_sleep(rules->kernel, LOOK_PS);
    rules->busy = true;
}

static void leave(struct octonic_rules *rules)
{
    rules->busy = false;
}

/* Through any function that is alive. */
static int switch_rule(const struct octonic_rules *rules, uint16_t number,
                       const struct net_rx_rule *rule, unsigned port)
{
    const struct ports *ports = rules->ports;
    for (unsigned i = 0; i < ports->n; i++)
        if (ports_alive(ports, i))
            return rules->ops->switch_rule(ports->lower[i], number, rule,
                                           rules->ops->function(ports->lower[port]));
    return -ENODEV;
}

static int in_function(const struct octonic_rules *rules, const struct octonic_rule *r,
                       const struct net_rx_rule *rule, unsigned port)
{
    struct net_device *lower = rules->ports->lower[port];
    const uint16_t queue = ports_rx_queue(rules->ports, port, r->cpu);
    return lower->ops->rx_rule(lower, r->number, rule, (uint16_t)(queue - lower->upper_queue));
}

static int move(struct octonic_rules *rules, struct octonic_rule *r)
{
    const unsigned from = r->port, to = ports_of_cpu(rules->ports, r->cpu);
    if (!ports_alive(rules->ports, to))
        return -ENODEV;
    int error = in_function(rules, r, &r->rule, to);
    if (error == 0)
        error = switch_rule(rules, r->number, &r->rule, to);
    if (error == 0)
        r->port = to;
    if (error == 0 && from != NO_PORT && from != to)
        in_function(rules, r, NULL, from);
    else if (error != 0 && from != to) /* also if the function has refused it: then it has none */
        in_function(rules, r, NULL, to);
    return error;
}

static int rule_delete(struct octonic_rules *rules, uint16_t number)
{
    struct octonic_rule **link = find(rules, number), *r = *link;
    int error = 0;
    if (r == NULL)
        return -ENOENT;
    if (r->port != NO_PORT) {
        error = switch_rule(rules, number, NULL, r->port);
        in_function(rules, r, NULL, r->port);
    }
    r->deleted = error == -ENODEV;
    if (r->deleted)
        return 0;
    forget(find(rules, number));
    return error;
}

int octonic_rules_set(struct octonic_rules *rules, uint16_t number, const struct net_rx_rule *rule,
                      unsigned cpu)
{
    for (unsigned i = 0; i < rules->ports->n; i++)
        if (rules->ports->lower[i]->ops->rx_rule == NULL || rules->ops->switch_rule == NULL)
            return -EOPNOTSUPP;
    enter(rules);
    struct octonic_rule **link = find(rules, number);
    if (*link == NULL) {
        *link = k_zalloc(sizeof **link);
        (*link)->port = NO_PORT;
    }
    (*link)->deleted = false;
    (*link)->rule = *rule;
    (*link)->number = number;
    (*link)->cpu = cpu;
    const int error = move(rules, *link);
    if (error != 0)
        rule_delete(rules, number);
    leave(rules);
    return error;
}

int octonic_rules_delete(struct octonic_rules *rules, uint16_t number)
{
    enter(rules);
    const int error = rule_delete(rules, number);
    leave(rules);
    return error;
}

void octonic_rules_repair(struct octonic_rules *rules)
{
    enter(rules);
    for (struct octonic_rule *r = rules->first, *next; r != NULL; r = next) {
        next = r->next;
        if (r->deleted)
            rule_delete(rules, r->number);
        else if (r->port != ports_of_cpu(rules->ports, r->cpu))
            move(rules, r);
    }
    leave(rules);
}
