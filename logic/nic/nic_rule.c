/*
 * Rules for packets beside IPv4's, of a function and of the multi-PF switch.
 *
 * What it does: Brings a rule into the device's table by a command. Remembers those of the
 *   function, which the device forgets in a reset or when it is pulled, and sets them again when it
 *   is opened.
 * Leaves out: a table of the few places that hardware can compare.
 * Follows: ethtool's ntuple filters with user-defined data; docs/sources.md#a5 (rules by words).
 * Costs: a command each.
 */
#include "logic/nic/nic_internal.h"

#include <errno.h>

_Static_assert(NET_RX_RULE_WORDS == NIC_MATCH_WORDS, "words of a rule");

struct nic_drv_rule {
    struct nic_drv_rule *next;
    struct net_rx_rule rule;
    uint16_t number, rxq;
    bool restored;
};

static struct nic_command match_command(uint16_t number, const struct net_rx_rule *rule,
                                        uint16_t target)
{
    struct nic_command command = { .opcode = rule != NULL ? NIC_SET_MATCH : NIC_DELETE_MATCH,
                                   .queue = number,
                                   .target = target };
    for (unsigned i = 0; rule != NULL && i < NIC_MATCH_WORDS; i++) {
        command.match.offset[i] = rule->word[i].offset;
        command.match.word[i].mask = rule->word[i].mask;
        command.match.word[i].value = rule->word[i].value;
    }
    if (rule != NULL)
        command.match.ether_type = rule->ether_type;
    return command;
}

/* The link to the rule of this number; to NULL: there is none. */
static struct nic_drv_rule **find(struct nic_drv *nic, uint16_t number)
{
    struct nic_drv_rule **link = &nic->rules;
    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

static void forget(struct nic_drv_rule **link)
{
    struct nic_drv_rule *old = *link;
    *link = old->next;
    k_free(old);
}

static int rule_delete(struct nic_drv *nic, uint16_t number)
{
    struct nic_command command = match_command(number, NULL, 0);
    struct nic_drv_rule **link = find(nic, number);
    if (*link == NULL)
        return -ENOENT;
    forget(link);
    return nic->gone ? 0 : nic_drv_command(nic, &command);
}

int nic_drv_rx_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                    uint16_t rxq)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (rule == NULL)
        return rule_delete(nic, number);
    if (!dev->running || nic->closing)
        return -ENODEV;
    if (rxq >= nic->n_channels || number >= NIC_MATCHES)
        return -EINVAL;
    struct nic_command command = match_command(number, rule, rxq);
    const int error = nic_drv_command(nic, &command);
    if (error != 0)
        return error;
    struct nic_drv_rule **link = find(nic, number);
    if (*link == NULL)
        *link = k_zalloc(sizeof **link);
    (*link)->rule = *rule;
    (*link)->number = number;
    (*link)->rxq = rxq;
    return 0;
}

/* Somebody may delete rules while a command runs. */
int nic_drv_rules_restore(struct nic_drv *nic)
{
    struct nic_drv_rule *r;
    int error = 0;
    for (r = nic->rules; r != NULL; r = r->next)
        r->restored = false;
    do {
        for (r = nic->rules; r != NULL && r->restored; r = r->next)
            ;
        if (r != NULL) {
            struct nic_command command = match_command(r->number, &r->rule, r->rxq);
            r->restored = true;
            error = nic_drv_command(nic, &command);
        }
    } while (r != NULL && error == 0);
    return error;
}

void nic_drv_rules_free(struct nic_drv *nic)
{
    while (nic->rules != NULL)
        forget(&nic->rules);
}

int nic_dev_switch_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                        unsigned function)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (function >= nic->n_functions || number >= NIC_MATCHES)
        return -EINVAL;
    struct nic_command command = match_command(number, rule, (uint16_t)function);
    command.flags = NIC_COMMAND_SWITCH;
    return nic_drv_command(nic, &command);
}
