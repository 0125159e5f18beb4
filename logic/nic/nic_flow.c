/*
 * Flow filters of the NIC (ARFS) and rules of the multi-PF switch.
 *
 * What it does: The stack asks from a soft interrupt that a flow be delivered to a queue. The
 *   driver notes the wish in its table and returns; a work item sends the commands to the device,
 *   one after the other. A rule that the stack no longer needs (arfs_may_expire(), for at most 60
 *   rules per filter_scan_ps) is deleted in the same way. Where a table is full, the flow stays
 *   with RSS.
 * Leaves out: filters per protocol in tables of their own.
 * Follows: Linux 4.14 mlx5/core/en_arfs.c; docs/sources.md#nic.
 * Invariant: one worker at a time brings device and table together; a rule that changes while a
 *   command for it is under way is done once more, so the last wish wins.
 */
#include "logic/net/arfs.h"
#include "logic/nic/nic_internal.h"

#include <errno.h>

#define SCAN_QUOTA     60u
#define FILTER_NUMBERS 0xffffu /* Linux: RPS_NO_FILTER is none */
#define NONE           UINT32_MAX

struct rule {
    struct flow_key flow;
    uint32_t flow_id;
    uint16_t rxq;        /* as the stack wants it */
    uint16_t device_rxq; /* as the device has it */
    uint16_t filter;
    bool wanted, in_device, pending;
    uint32_t next_hash, next_pending; /* next_hash of a free rule: the next free one */
};

struct nic_flows {
    struct nic_drv *nic;
    bool stopped, working, scan_due;
    uint32_t n, n_used, mask, free, cursor;
    uint32_t pending_first, pending_last;
    uint16_t last_filter;
    struct rule *rule;
    uint32_t *head;
    struct nic_work work;
    struct k_timer timer;
    struct nic_filter_stats stats;
};

/* ---- The table ------------------------------------------------------------------------------- */

static uint32_t *head_of(struct nic_flows *flows, const struct flow_key *flow)
{
    uint64_t h = (uint64_t)flow->source_ip << 32 | flow->destination_ip;
    h ^= ((uint64_t)flow->source_port << 32 | (uint64_t)flow->destination_port << 8 |
          flow->protocol) *
         UINT64_C(0x9e3779b97f4a7c15);
    h *= UINT64_C(0xff51afd7ed558ccd);
    return &flows->head[(h >> 32) & flows->mask];
}

static struct rule *rule_find(struct nic_flows *flows, const struct flow_key *flow)
{
    for (uint32_t i = *head_of(flows, flow); i != NONE; i = flows->rule[i].next_hash) {
        if (flow_key_equal(&flows->rule[i].flow, flow))
            return &flows->rule[i];
    }
    return NULL;
}

static struct rule *rule_new(struct nic_flows *flows, const struct flow_key *flow)
{
    if (flows->free == NONE)
        return NULL;
    uint32_t i = flows->free, *head = head_of(flows, flow);
    struct rule *rule = &flows->rule[i];
    flows->free = rule->next_hash;
    *rule = (struct rule){ .flow = *flow, .wanted = true, .next_hash = *head };
    *head = i;
    flows->n_used++;
    return rule;
}

static void rule_free(struct nic_flows *flows, struct rule *rule)
{
    uint32_t i = (uint32_t)(rule - flows->rule), *link = head_of(flows, &rule->flow);
    while (*link != i)
        link = &flows->rule[*link].next_hash;
    *link = rule->next_hash;
    rule->wanted = rule->in_device = false;
    rule->next_hash = flows->free;
    flows->free = i;
    flows->n_used--;
}

static void pending_put(struct nic_flows *flows, struct rule *rule)
{
    uint32_t i = (uint32_t)(rule - flows->rule);
    if (rule->pending)
        return;
    rule->pending = true;
    rule->next_pending = NONE;
    if (flows->pending_first == NONE)
        flows->pending_first = i;
    else
        flows->rule[flows->pending_last].next_pending = i;
    flows->pending_last = i;
}

static struct rule *pending_get(struct nic_flows *flows)
{
    if (flows->pending_first == NONE)
        return NULL;
    struct rule *rule = &flows->rule[flows->pending_first];
    flows->pending_first = rule->next_pending;
    rule->pending = false;
    return rule;
}

static void table_clear(struct nic_flows *flows)
{
    flows->pending_first = NONE;
    flows->scan_due = false;
    flows->n_used = flows->cursor = 0;
    for (uint32_t i = 0; i <= flows->mask; i++)
        flows->head[i] = NONE;
    for (uint32_t i = 0; i < flows->n; i++)
        flows->rule[i] = (struct rule){ .next_hash = i + 1 < flows->n ? i + 1 : NONE };
    flows->free = flows->n > 0 ? 0 : NONE;
}

/* ---- The device ------------------------------------------------------------------------------ */

static struct nic_command flow_command(uint16_t opcode, const struct flow_key *flow,
                                       uint16_t target)
{
    return (struct nic_command){
        .opcode = opcode,
        .target = target,
        .source_ip = flow->source_ip,
        .destination_ip = flow->destination_ip,
        .source_port = flow->source_port,
        .destination_port = flow->destination_port,
        .protocol = flow->protocol,
    };
}

static void rule_delete(struct nic_flows *flows, struct rule *rule)
{
    if (rule->in_device) {
        struct nic_command command = flow_command(NIC_DELETE_FLOW, &rule->flow, 0);
        rule->in_device = false;
        nic_drv_command(flows->nic, &command);
        flows->stats.expired++;
    }
    if (!rule->wanted) /* nor in the meantime */
        rule_free(flows, rule);
}

static void rule_set(struct nic_flows *flows, struct rule *rule)
{
    uint16_t rxq = rule->rxq;
    if (rule->in_device && rule->device_rxq == rxq)
        return;
    struct nic_command command = flow_command(NIC_SET_FLOW, &rule->flow, rxq);
    if (nic_drv_command(flows->nic, &command) == 0) {
        if (rule->in_device)
            flows->stats.updated++;
        else
            flows->stats.added++;
        rule->in_device = true;
        rule->device_rxq = rxq;
    } else {
        /* Delivered where it was before; the stack asks again when it sees fit. */
        flows->stats.refused++;
        if (!rule->in_device && !rule->pending)
            rule_free(flows, rule);
    }
}

/* The stack's table that a filter of this device is in: a team's, if it is part of one. */
static struct arfs *arfs_of(const struct net_device *dev)
{
    if (dev->arfs != NULL || dev->upper == NULL)
        return dev->arfs;
    return dev->upper->arfs;
}

static void scan(struct nic_flows *flows)
{
    struct net_device *dev = &flows->nic->dev;
    struct arfs *arfs = arfs_of(dev);
    unsigned seen = 0;
    if (arfs == NULL)
        return;
    for (uint32_t i = 0; i < flows->n && seen < SCAN_QUOTA; i++) {
        struct rule *rule = &flows->rule[flows->cursor];
        flows->cursor = flows->cursor + 1 < flows->n ? flows->cursor + 1 : 0;
        if (!rule->wanted || rule->pending)
            continue;
        seen++;
        if (arfs_may_expire(arfs, dev, rule->rxq, rule->flow_id, rule->filter)) {
            rule->wanted = false;
            pending_put(flows, rule);
        }
    }
}

static void work(struct k_work *k_work)
{
    struct nic_flows *flows = K_CONTAINER(k_work, struct nic_flows, work.work);
    struct nic_drv *nic = flows->nic;
    if (!flows->working) { /* else the running worker does it */
        flows->working = true;
        struct rule *rule = NULL;
        for (;;) {
            if (flows->scan_due) {
                flows->scan_due = false;
                scan(flows);
            }
            if (flows->stopped || (rule = pending_get(flows)) == NULL)
                break;
            if (rule->wanted)
                rule_set(flows, rule);
            else
                rule_delete(flows, rule);
        }
        flows->working = false;
    }
    nic_drv_work_done(nic);
}

/* ---- Wishes ---------------------------------------------------------------------------------- */

static void timer_start(struct nic_flows *flows)
{
    k_timer_set(&flows->timer, k_now_ps(flows->nic->kernel) + flows->nic->params->filter_scan_ps);
}

static void scan_timer(struct k_timer *timer)
{
    struct nic_flows *flows = K_CONTAINER(timer, struct nic_flows, timer);
    if (flows->stopped || flows->n_used == 0)
        return; /* started again with the next rule */
    flows->scan_due = true;
    nic_drv_work_queue(&flows->work, K_CPU_ANY);
    timer_start(flows);
}

int nic_drv_rx_flow_steer(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq,
                          uint32_t flow_id)
{
    struct nic_drv *nic = nic_drv_of(dev);
    struct nic_flows *flows = nic->flows;
    if (!dev->running || nic->closing || flows->stopped)
        return -ENODEV;
    if (rxq >= nic->n_channels)
        return -EINVAL;
    struct rule *rule = rule_find(flows, &skb->flow);
    if (rule != NULL && rule->wanted && rule->rxq == rxq) {
        rule->flow_id = flow_id;
        return rule->filter;
    }
    if (rule == NULL && (rule = rule_new(flows, &skb->flow)) == NULL) {
        flows->stats.refused++;
        return -ENOSPC;
    }
    rule->wanted = true;
    rule->rxq = rxq;
    rule->flow_id = flow_id;
    rule->filter = flows->last_filter++;
    if (flows->last_filter == FILTER_NUMBERS)
        flows->last_filter = 0;
    pending_put(flows, rule);
    nic_drv_work_queue(&flows->work, K_CPU_ANY);
    if (!k_timer_pending(&flows->timer))
        timer_start(flows);
    return rule->filter;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct nic_flows *nic_drv_flows_new(struct nic_drv *nic, uint32_t n)
{
    struct nic_flows *flows = k_zalloc(sizeof *flows);
    uint32_t n_heads = 1;
    while (n_heads < n)
        n_heads *= 2;
    flows->nic = nic;
    flows->n = n;
    flows->mask = n_heads - 1;
    flows->rule = k_zalloc((n > 0 ? n : 1) * sizeof *flows->rule);
    flows->head = k_zalloc(n_heads * sizeof *flows->head);
    flows->stopped = true;
    nic_drv_work_init(&flows->work, nic, work);
    k_timer_init(&flows->timer, nic->kernel, scan_timer);
    table_clear(flows);
    return flows;
}

void nic_drv_flows_free(struct nic_flows *flows)
{
    k_timer_release(&flows->timer);
    k_free(flows->rule);
    k_free(flows->head);
    k_free(flows);
}

void nic_drv_flows_start(struct nic_flows *flows)
{
    table_clear(flows);
    flows->stopped = false;
}

void nic_drv_flows_stop(struct nic_flows *flows)
{
    flows->stopped = true;
    k_timer_cancel(&flows->timer);
    for (uint32_t i = 0; i < flows->n && !flows->nic->gone; i++) {
        struct rule *rule = &flows->rule[i];
        if (!rule->in_device)
            continue;
        struct nic_command command = flow_command(NIC_DELETE_FLOW, &rule->flow, 0);
        nic_drv_command(flows->nic, &command);
    }
    table_clear(flows);
}

struct nic_filter_stats nic_dev_filter_stats(const struct net_device *dev)
{
    const struct nic_flows *flows = nic_drv_of(dev)->flows;
    struct nic_filter_stats stats = flows->stats;
    stats.n = flows->n_used;
    return stats;
}

/* ---- Multi-PF switch ------------------------------------------------------------------------- */

int nic_dev_switch_set(struct net_device *dev, const struct flow_key *flow, unsigned function)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (function >= nic->n_functions)
        return -EINVAL;
    struct nic_command command = flow_command(NIC_SET_SWITCH, flow, (uint16_t)function);
    return nic_drv_command(nic, &command);
}

int nic_dev_switch_delete(struct net_device *dev, const struct flow_key *flow)
{
    struct nic_command command = flow_command(NIC_DELETE_SWITCH, flow, 0);
    return nic_drv_command(nic_drv_of(dev), &command);
}
