/*
 * The octoNIC's team driver.
 *
 * What it does: section 4.2 of the IOctopus paper; see octonic.h.
 * Leaves out: teamd's control messages.
 * Follows: IOctopus (ASPLOS 2020), section 4; Linux 4.14 drivers/net/team/team.c.
 * Costs: A cache line per rule that is looked up, changed or scanned; work_cycles of the kernel per
 *   turn of the worker; the commands of the functions' driver.
 *
 * Invariants. Rules are freed by the worker alone, so that it may sleep with one. A rule is in the
 * worker's list at most once (queued). moves[f] counts changes that take flows away from function
 * f: asked when they enter the list or begin, done when the device has reported; the list is first
 * in, first out, so a fence that waits for `asked` waits for all changes that were under way.
 */
#include "logic/steering/octonic.h"

#include <errno.h>

#include "logic/net/arfs.h"
#include "logic/net/xps.h"
#include "logic/steering/octonic_rules.h"
#include "logic/steering/ports.h"

#define NO_PORT 0xffu
/* After this no packet turns up that came in before a rule was deleted. */
#define GRACE_PS (10 * K_MS)

const struct octonic_params octonic_params_default = {
    .n_rules = 8192,
    .scan_ps = 1000 * K_MS,
    .worker_cpu = 0,
};

struct octo_rule {
    struct flow_key flow;
    uint32_t hash, flow_id;
    struct octo_rule *chain; /* in its bucket, or free */
    struct octo_rule *next;  /* in the worker's list */
    uint64_t deleted_ps;     /* by the device; 0: not. The rule is kept for a while, see steer() */
    uint16_t rxq;
    uint8_t wanted;  /* port */
    uint8_t set;     /* port that the device delivers to; NO_PORT: it has no rule */
    uint8_t heading; /* set, once the command that runs is done */
    uint8_t from;    /* port that the change in the list takes the flow from */
    bool used, queued, dying;
};

struct octonic {
    struct net_device dev;
    struct ports ports;
    struct kernel *kernel;
    const struct octonic_device_ops *ops;
    struct octonic_params params;
    struct octo_rule *rule, *free, **bucket;
    uint32_t n_buckets;
    struct kaddr lines;              /* of the rules, one each */
    struct octo_rule *first, **last; /* to be done by the worker */
    struct octo_rule
        flush[PORTS_MAX]; /* no rules: commands that change nothing, see flush_ports() */
    struct {
        uint64_t asked, done;
    } moves[PORTS_MAX];
    int16_t cpu_of_queue[NET_QUEUES_MAX];
    struct k_work update, scan, rescue;
    struct k_timer timer;
    struct octonic_rules rules;
    unsigned working;
    bool closing, full; /* full: the device had no room for a rule, since the last scan */
    struct octonic_stats stats;
};

static struct octonic *of(struct net_device *dev)
{
    return K_CONTAINER(dev, struct octonic, dev);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static struct kaddr rule_line(const struct octonic *o, const struct octo_rule *rule)
{
    return kaddr_add(o->lines, (uint64_t)(rule - o->rule) * K_LINE_BYTES);
}

static struct octo_rule **bucket_of(const struct octonic *o, uint32_t hash)
{
    return &o->bucket[hash & (o->n_buckets - 1)];
}

static struct octo_rule *rule_find(const struct octonic *o, const struct flow_key *flow,
                                   uint32_t hash)
{
    struct octo_rule *rule = *bucket_of(o, hash);
    while (rule != NULL && !flow_key_equal(&rule->flow, flow))
        rule = rule->chain;
    return rule;
}

static struct octo_rule *rule_new(struct octonic *o, const struct flow_key *flow, uint32_t hash)
{
    struct octo_rule *rule = o->free, **bucket = bucket_of(o, hash);
    o->free = rule->chain;
    *rule = (struct octo_rule){
        .flow = *flow,
        .hash = hash,
        .chain = *bucket,
        .wanted = NO_PORT,
        .set = NO_PORT,
        .heading = NO_PORT,
        .used = true,
    };
    *bucket = rule;
    o->stats.rules++;
    return rule;
}

static void rule_free(struct octonic *o, struct octo_rule *rule)
{
    struct octo_rule **link = bucket_of(o, rule->hash);
    while (*link != rule)
        link = &(*link)->chain;
    *link = rule->chain;
    rule->used = false;
    rule->chain = o->free;
    o->free = rule;
    o->stats.rules--;
}

/* seen: the port that the flow came in through, which counts if the device has no rule. */
static void rule_queue(struct octonic *o, struct octo_rule *rule, unsigned seen)
{
    unsigned from = rule->heading != NO_PORT ? rule->heading : seen;
    if (rule->queued)
        return;
    rule->queued = true;
    rule->from = (uint8_t)from;
    rule->next = NULL;
    *o->last = rule;
    o->last = &rule->next;
    o->moves[from].asked++;
    k_work_queue(o->kernel, &o->update, (int)o->params.worker_cpu);
}

/* ---- The worker ------------------------------------------------------------------------------ */

/* Through the function that loses the flow: its report then comes behind the flow's packets. */
static struct net_device *through(const struct octonic *o, unsigned from)
{
    if (from != NO_PORT && ports_alive(&o->ports, from))
        return o->ports.lower[from];
    for (unsigned i = 0; i < o->ports.n; i++)
        if (ports_alive(&o->ports, i))
            return o->ports.lower[i];
    return NULL;
}

/* A port that is there, the same for all that asks for this one; NO_PORT: none. */
static uint8_t stand_in(const struct octonic *o, unsigned port)
{
    for (unsigned i = 0; i < o->ports.n; i++) {
        unsigned other = (port + i) % o->ports.n;
        if (ports_alive(&o->ports, other))
            return (uint8_t)other;
    }
    return NO_PORT;
}

static void rule_failed(struct octonic *o, struct octo_rule *rule, int error)
{
    if (error == -ENOSPC) {
        o->stats.switch_full++;
        o->full = true;
    } else {
        o->stats.failed++;
    }
    rule->heading = rule->set;
    if (rule->queued)
        return; /* it is to be tried again already */
    if (rule->set == NO_PORT)
        rule_free(o, rule);
    else
        rule->wanted = rule->set;
}

/* The command for one change. What comes back while it runs through another function may have got
 * packets under the old rule: then once more, through the one that they came to. */
static int command(struct octonic *o, struct octo_rule *rule, unsigned from, unsigned to)
{
    for (;;) {
        struct net_device *lower = through(o, from);
        if (lower == NULL)
            return -ENODEV;
        int error = rule->dying ? o->ops->switch_delete(lower, &rule->flow)
                                : o->ops->switch_set(lower, &rule->flow,
                                                     o->ops->function(o->ports.lower[to]));
        if (lower == through(o, from) || error == -ENOSPC)
            return error;
    }
}

static bool is_flush(const struct octonic *o, const struct octo_rule *rule)
{
    return rule >= o->flush && rule < o->flush + PORTS_MAX;
}

static void rule_delete(struct octonic *o, struct octo_rule *rule)
{
    unsigned from = rule->from;
    int error = command(o, rule, from, 0);
    o->moves[from].done++;
    if (is_flush(o, rule))
        return;
    rule->dying = false;
    if (error && error != -ENOENT) {
        o->stats.failed++; /* the next scan tries again */
        return;
    }
    o->stats.expired++;
    o->full = false;
    rule->set = rule->heading = rule->wanted = NO_PORT;
    rule->deleted_ps = k_now_ps(o->kernel);
}

static void rule_apply(struct octonic *o, struct octo_rule *rule)
{
    unsigned from = rule->from;
    if (!ports_alive(&o->ports, rule->wanted)) {
        uint8_t other = stand_in(o, rule->wanted);
        if (other != NO_PORT)
            rule->wanted = other;
    }
    uint8_t to = rule->heading = rule->wanted;
    int error = rule->set == to ? 0 : command(o, rule, from, to);
    o->moves[from].done++;
    if (error) {
        rule_failed(o, rule, error);
        return;
    }
    if (rule->set == NO_PORT)
        o->stats.added++;
    else if (rule->set != to)
        o->stats.updated++;
    rule->set = to;
}

static void update(struct k_work *work)
{
    struct octonic *o = K_CONTAINER(work, struct octonic, update);
    o->working++;
    while (o->first != NULL) {
        struct octo_rule *rule = o->first;
        o->first = rule->next;
        if (o->first == NULL)
            o->last = &o->first;
        rule->queued = false;
        if (rule->dying)
            rule_delete(o, rule);
        else
            rule_apply(o, rule);
    }
    o->working--;
}

static void scan(struct k_work *work)
{
    struct octonic *o = K_CONTAINER(work, struct octonic, scan);
    o->working++;
    for (uint32_t i = 0; i < o->params.n_rules && !o->closing; i++) {
        struct octo_rule *rule = &o->rule[i];
        if (!rule->used)
            continue;
        k_touch(o->kernel, rule_line(o, rule), K_LINE_BYTES);
        if (rule->used && rule->deleted_ps != 0) {
            if (k_now_ps(o->kernel) - rule->deleted_ps > GRACE_PS)
                rule_free(o, rule);
            continue;
        }
        if (rule->used && !rule->queued && rule->set != NO_PORT && o->dev.arfs != NULL &&
            arfs_may_expire(o->dev.arfs, &o->dev, rule->rxq, rule->flow_id, (int)i)) {
            rule->dying = true;
            rule_queue(o, rule, rule->set);
        }
    }
    o->full = false;
    o->working--;
}

static void scan_timer(struct k_timer *timer)
{
    struct octonic *o = K_CONTAINER(timer, struct octonic, timer);
    if (o->closing)
        return;
    k_work_queue(o->kernel, &o->scan, (int)o->params.worker_cpu);
    k_timer_set(timer, k_now_ps(o->kernel) + o->params.scan_ps);
}

/* Rules that name a function that is gone. */
static void rescue(struct k_work *work)
{
    struct octonic *o = K_CONTAINER(work, struct octonic, rescue);
    o->working++;
    for (uint32_t i = 0; i < o->params.n_rules && !o->closing; i++) {
        struct octo_rule *rule = &o->rule[i];
        if (!rule->used)
            continue;
        k_touch(o->kernel, rule_line(o, rule), K_LINE_BYTES);
        if (!rule->used || rule->set == NO_PORT || ports_alive(&o->ports, rule->set))
            continue;
        uint8_t other = stand_in(o, rule->set);
        if (other == NO_PORT)
            break;
        if (!ports_alive(&o->ports, rule->wanted))
            rule->wanted = other;
        o->stats.moved++;
        rule_queue(o, rule, rule->set);
    }
    if (!o->closing)
        octonic_rules_repair(&o->rules);
    o->working--;
}

/* ---- What the stack asks --------------------------------------------------------------------- */

/* No room for a rule: the flow stays at the function where it comes in, at the queue of the CPU. */
static int steer_within(struct octonic *o, unsigned port, const struct sk_buff *skb, uint16_t rxq,
                        uint32_t flow_id)
{
    struct net_device *lower = o->ports.lower[port];
    int cpu = o->cpu_of_queue[rxq];
    int queue = cpu < 0 ? -1 : lower->rx_queue_of_cpu[cpu];
    if (queue >= 0 && lower->upper_queue + queue != skb->queue && lower->ops->rx_flow_steer != NULL)
        (void)lower->ops->rx_flow_steer(lower, skb, (uint16_t)queue, flow_id);
    return -ENOSPC;
}

/* While a rule is being deleted, and as long as packets that came in under it may still turn up, it
 * is not known where the flow comes in now. */
static bool may_change(const struct octonic *o, const struct octo_rule *rule)
{
    if (rule->deleted_ps != 0)
        return k_now_ps(o->kernel) - rule->deleted_ps > GRACE_PS;
    return !rule->dying || rule->queued;
}

static int steer(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq, uint32_t flow_id)
{
    struct octonic *o = of(dev);
    unsigned to = ports_of_queue(&o->ports, rxq), from = ports_of_queue(&o->ports, skb->queue);
    struct net_device *lower = o->ports.lower[to];
    struct octo_rule *rule = rule_find(o, &skb->flow, skb->hash);
    if (o->closing || !ports_alive(&o->ports, to))
        return -ENODEV;
    if (rule == NULL && to != from && (o->free == NULL || o->full)) {
        o->stats.rules_full += o->free == NULL;
        return steer_within(o, from, skb, rxq, flow_id);
    }
    /* The filter before the rule, so that the flow need not move twice. */
    int filter = -EOPNOTSUPP;
    if (lower->ops->rx_flow_steer != NULL)
        filter = lower->ops->rx_flow_steer(lower, skb, (uint16_t)(rxq - lower->upper_queue),
                                           flow_id);
    rule = rule_find(o, &skb->flow, skb->hash);
    if (rule == NULL && to == from) /* without a rule it comes in there already */
        return filter < 0 ? filter : (int)o->params.n_rules + filter;
    if (rule != NULL && !may_change(o, rule))
        return -EBUSY;
    if (rule == NULL && o->free == NULL)
        return -ENOSPC;
    if (rule == NULL)
        rule = rule_new(o, &skb->flow, skb->hash);
    rule->rxq = rxq;
    rule->flow_id = flow_id;
    rule->dying = false;
    rule->deleted_ps = 0;
    if (rule->wanted != to || (rule->set != to && !rule->queued)) {
        rule->wanted = (uint8_t)to;
        rule_queue(o, rule, from);
    }
    int number = (int)(rule - o->rule);
    k_touch_write(o->kernel, rule_line(o, rule), K_LINE_BYTES);
    return number;
}

static bool rx_passed(struct net_device *dev, uint16_t rxq, struct net_rx_mark *mark)
{
    struct octonic *o = of(dev);
    unsigned port = ports_of_queue(&o->ports, rxq);
    if (!ports_alive(&o->ports, port))
        return ports_rx_passed(&o->ports, rxq, mark);
    if (mark->upper == 0)
        mark->upper = o->moves[port].asked + 1;
    /* First what takes flows away from the function: only then all of them are in its queues. */
    return o->moves[port].done + 1 >= mark->upper && ports_rx_passed(&o->ports, rxq, mark);
}

static uint16_t select_queue(struct sk_buff *skb, struct net_device *dev)
{
    struct octonic *o = of(dev);
    uint16_t queue = xps_select_queue(skb, dev);
    if (ports_alive(&o->ports, ports_of_queue(&o->ports, queue)) || skb->socket == NULL)
        return queue;
    /* What is outstanding went with the function. */
    queue = (uint16_t)dev->xps_queue[k_cpu(o->kernel)];
    socket_set_tx_queue(skb->socket, queue);
    return queue;
}

static enum net_xmit xmit(struct sk_buff *skb, struct net_device *dev)
{
    return ports_xmit(&of(dev)->ports, skb);
}

static void map_cpus(struct octonic *o)
{
    for (unsigned q = 0; q < NET_QUEUES_MAX; q++)
        o->cpu_of_queue[q] = -1;
    for (unsigned cpu = 0; cpu < sizeof o->dev.xps_queue / sizeof o->dev.xps_queue[0]; cpu++) {
        if (cpu >= k_n_cpus(o->kernel)) {
            o->dev.xps_queue[cpu] = o->dev.rx_queue_of_cpu[cpu] = -1;
            continue;
        }
        unsigned port = ports_of_cpu(&o->ports, cpu);
        uint16_t rxq = ports_rx_queue(&o->ports, port, cpu);
        o->dev.xps_queue[cpu] = (int16_t)ports_tx_queue(&o->ports, port, cpu);
        o->dev.rx_queue_of_cpu[cpu] = (int16_t)rxq;
        if (o->cpu_of_queue[rxq] < 0)
            o->cpu_of_queue[rxq] = (int16_t)cpu;
    }
}

/* Functions come and go, and flows without a rule then come in elsewhere, by no command of ours.
 * One that changes nothing tells when what each function got before is in its queues. */
static void flush_ports(struct octonic *o)
{
    for (unsigned i = 0; i < o->ports.n; i++) {
        o->flush[i].dying = true;
        o->flush[i].heading = (uint8_t)i;
        if (ports_alive(&o->ports, i))
            rule_queue(o, &o->flush[i], i);
    }
}

static void lower_changed(struct net_device *dev, struct net_device *lower)
{
    struct octonic *o = of(dev);
    unsigned i = 0;
    while (i < o->ports.n && o->ports.lower[i] != lower)
        i++;
    if (i == o->ports.n)
        return;
    map_cpus(o);
    ports_changed(&o->ports, i);
    if (o->closing)
        return;
    flush_ports(o);
    if (dev->arfs != NULL)
        arfs_forget(dev->arfs);
    k_work_queue(o->kernel, &o->rescue, (int)o->params.worker_cpu);
}

static int open(struct net_device *dev)
{
    struct octonic *o = of(dev);
    int error = ports_open(&o->ports);
    if (error)
        return error;
    map_cpus(o);
    k_timer_set(&o->timer, k_now_ps(o->kernel) + o->params.scan_ps);
    return 0;
}

static void stop(struct net_device *dev)
{
    struct octonic *o = of(dev);
    k_timer_cancel(&o->timer);
    ports_stop(&o->ports);
}

static int rx_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                   uint16_t rxq)
{
    struct octonic *o = of(dev);
    if (rule == NULL)
        return octonic_rules_delete(&o->rules, number);
    if (o->closing || !dev->running)
        return -ENODEV;
    if (rxq >= dev->n_rx_queues || o->cpu_of_queue[rxq] < 0)
        return -EINVAL;
    return octonic_rules_set(&o->rules, number, rule, (unsigned)o->cpu_of_queue[rxq]);
}

static const struct net_device_ops octonic_ops = {
    .open = open,
    .stop = stop,
    .start_xmit = xmit,
    .select_queue = select_queue,
    .rx_flow_steer = steer,
    .rx_passed = rx_passed,
    .rx_rule = rx_rule,
    .lower_changed = lower_changed,
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void release(struct octonic *o)
{
    octonic_rules_release(&o->rules);
    ports_release(&o->ports);
    k_timer_release(&o->timer);
    k_free(o->rule);
    k_free(o->bucket);
    k_free(o);
}

static void make_rules(struct octonic *o)
{
    uint32_t n = o->params.n_rules;
    o->n_buckets = 1;
    while (o->n_buckets < n)
        o->n_buckets *= 2;
    o->rule = k_zalloc(n * sizeof *o->rule);
    o->bucket = k_zalloc(o->n_buckets * sizeof(struct octo_rule *));
    o->lines = k_alloc(o->kernel, (int)k_node_of_cpu(o->kernel, o->params.worker_cpu),
                       (size_t)n * K_LINE_BYTES, K_LINE_BYTES);
    for (uint32_t i = n; i-- > 0;) {
        o->rule[i].chain = o->free;
        o->free = &o->rule[i];
    }
    o->last = &o->first;
}

struct octonic *octonic_new(struct net *net, const char *name, const struct octonic_params *params,
                            const struct octonic_device_ops *ops, struct net_device *const *lower,
                            unsigned n, int *error)
{
    struct octonic *o = k_zalloc(sizeof *o);
    struct kernel *kernel = net_kernel(net);
    o->dev = (struct net_device){ .kernel = kernel, .name = name, .ops = &octonic_ops };
    o->kernel = kernel;
    o->ops = ops;
    o->params = *params;
    o->update.fn = update;
    o->scan.fn = scan;
    o->rescue.fn = rescue;
    k_timer_init(&o->timer, kernel, scan_timer);
    make_rules(o);
    *error = ports_init(&o->ports, &o->dev, lower, n);
    octonic_rules_init(&o->rules, kernel, &o->ports, ops);
    if (*error == 0) {
        map_cpus(o);
        *error = net_device_register(net, &o->dev);
    }
    if (*error) {
        release(o);
        return NULL;
    }
    return o;
}

struct net_device *octonic_device(struct octonic *octonic)
{
    return &octonic->dev;
}

void octonic_free(struct octonic *o)
{
    if (o == NULL)
        return;
    o->closing = true;
    if (o->dev.running)
        stop(&o->dev);
    while (o->update.queued || o->scan.queued || o->rescue.queued || o->working > 0)
        k_sleep(o->kernel, 10 * K_US);
    net_device_unregister(&o->dev);
    release(o);
}

struct octonic_stats octonic_stats(const struct octonic *octonic)
{
    struct octonic_stats stats = octonic->stats;
    stats.dropped = octonic->ports.dropped;
    return stats;
}
