/*
 * Flow steering on receive.
 *
 * What it does: Decides like Linux's get_rps_cpu() and set_rps_cpu() (net/core/dev.c, 4.14) where
 *   the device steers: a table of flows by hash holds the CPU that reads each flow
 *   (rps_sock_flow_table) and its queue and filter (rps_dev_flow_table) in one entry of 16 bytes,
 *   four to a cache line. Linux's last_qtail guards a software backlog, which this stack does not
 *   have; the fence of arfs.h guards the queues of the device instead.
 * Leaves out: RPS (packets forwarded to other CPUs by software), flow limits.
 * Follows: Linux 4.14 Documentation/networking/scaling.txt; docs/models/steering.md.
 * Costs: The cache line of the entry: a load per packet and per receive call, a store where CPU or
 *   queue changes. A check of a fence costs its timer.
 *
 * Invariants. A flow without a fence: what came in of it before has come in on entry->rxq. With
 * one: held packets are in the order of time_ps; packets older than the first of them come in on
 * fence->from only, and go up at once. Nothing here charges time between looking at an entry and
 * changing it; time passes in rx_flow_steer() and net_receive(), after the change.
 */
#include "logic/net/arfs.h"

#define WAYS      4u
#define NO_CPU    (-1)
#define NO_QUEUE  0xffffu
#define NO_FILTER (-1)
/* From arfs_may_expire() until the device has surely forgotten the filter. */
#define FORGET_PS (100 * K_MS)

const struct arfs_params arfs_params_default = {
    .n_flows = 32768,
    .expiry_ps = 5000 * K_MS,
    .scan_ps = 1000 * K_MS,
    .retry_ps = 5 * K_MS,
    .fence_ps = 5 * K_MS,
    .check_ps = 5 * K_US,
};

struct arfs_flow {
    uint32_t hash;  /* 0: free */
    int16_t cpu;    /* that reads it */
    uint16_t rxq;   /* on which it comes in; NO_QUEUE: not known, so that it meets a fence */
    uint16_t asked; /* of the device, last */
    bool steered;   /* there may be a filter */
    uint32_t era;   /* in which rxq became known */
    int filter;
    struct net_device *dev;
    struct arfs_fence *fence;
    uint64_t seen_ps, asked_ps;
    uint64_t expired_ps; /* when the driver was allowed to remove the filter; 0: not */
};

struct arfs_fence {
    struct arfs_fence *next; /* of all that exist */
    struct arfs *arfs;
    struct arfs_flow *flow; /* NULL: free */
    struct sk_buff *held;   /* by time_ps */
    uint16_t from;
    uint32_t era; /* arfs->era when the waiting began */
    bool opening; /* held packets go up, on some CPU */
    uint64_t began_ps;
    uint64_t waits; /* bit per queue: it has not passed yet */
    struct k_timer timer;
    struct net_rx_mark mark[NET_QUEUES_MAX];
};
_Static_assert(NET_QUEUES_MAX <= 64, "waits has a bit per queue");

struct arfs {
    struct kernel *kernel;
    struct arfs_params params;
    struct arfs_flow *flow;
    struct kaddr lines;
    struct arfs_fence *fences;
    uint32_t era; /* until the next arfs_forget() */
    uint64_t forgot_ps;
    struct arfs_stats stats;
};

/* ---- The table ------------------------------------------------------------------------------- */

static struct arfs_flow *set_of(const struct arfs *arfs, uint32_t hash)
{
    return &arfs->flow[(hash & (arfs->params.n_flows / WAYS - 1)) * WAYS];
}

static struct kaddr line_of(const struct arfs *arfs, uint32_t hash)
{
    return kaddr_add(arfs->lines,
                     (uint64_t)(hash & (arfs->params.n_flows / WAYS - 1)) * K_LINE_BYTES);
}

static struct arfs_flow *flow_find(const struct arfs *arfs, uint32_t hash)
{
    struct arfs_flow *set = set_of(arfs, hash);
    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].hash == hash)
            return &set[i];
    return NULL;
}

/* An entry may go if nothing can be under way on another queue than where the flow comes in next:
 * it was never steered, or its filter went long ago. */
static bool flow_may_go(const struct arfs *arfs, const struct arfs_flow *flow, uint64_t now)
{
    const struct arfs_params *p = &arfs->params;
    if (flow->fence != NULL)
        return false;
    if (!flow->steered)
        return now - flow->seen_ps > p->fence_ps;
    if (flow->expired_ps != 0)
        return now - flow->expired_ps > FORGET_PS && now - flow->seen_ps > p->fence_ps;
    return now - flow->seen_ps > 4 * (p->expiry_ps + p->scan_ps);
}

/* NULL: all entries of the set are in use. */
static struct arfs_flow *flow_new(struct arfs *arfs, uint32_t hash)
{
    struct arfs_flow *set = set_of(arfs, hash), *oldest = NULL;
    uint64_t now = k_now_ps(arfs->kernel);
    for (unsigned i = 0; i < WAYS; i++) {
        struct arfs_flow *flow = &set[i];
        if (flow->hash != 0 && !flow_may_go(arfs, flow, now))
            continue;
        if (oldest == NULL || flow->hash == 0 ||
            (oldest->hash != 0 && flow->seen_ps < oldest->seen_ps))
            oldest = flow;
    }
    if (oldest != NULL)
        *oldest = (struct arfs_flow){
            .hash = hash,
            .cpu = NO_CPU,
            .rxq = NO_QUEUE,
            .asked = NO_QUEUE,
            .filter = NO_FILTER,
            .seen_ps = now,
        };
    return oldest;
}

void arfs_record(struct arfs *arfs, uint32_t hash)
{
    struct kernel *kernel = arfs->kernel;
    if (hash == 0)
        return;
    k_touch(kernel, line_of(arfs, hash), sizeof(uint64_t));
    struct arfs_flow *flow = flow_find(arfs, hash);
    int16_t cpu = (int16_t)k_cpu(kernel);
    if (flow == NULL)
        flow = flow_new(arfs, hash);
    if (flow == NULL || flow->cpu == cpu)
        return;
    flow->cpu = cpu;
    k_touch_write(kernel, line_of(arfs, hash), sizeof(uint64_t));
}

/* ---- Fences ---------------------------------------------------------------------------------- */

/* Asks every queue that it still waits for; the first time this puts the marks. */
static bool fence_passed(struct arfs_fence *fence)
{
    struct net_device *dev = fence->flow->dev;
    if (dev->ops->rx_passed == NULL)
        return false;
    for (uint64_t left = fence->waits; left != 0; left &= left - 1) {
        unsigned q = (unsigned)__builtin_ctzll(left);
        if (dev->ops->rx_passed(dev, (uint16_t)q, &fence->mark[q]))
            fence->waits &= ~(UINT64_C(1) << q);
    }
    return fence->waits == 0;
}

/* Waits from now on for what came in before a packet on rxq; true: there is nothing to wait for.
 * What came in before it on rxq itself has been received before it. */
static bool fence_begin(struct arfs_fence *fence, uint16_t rxq)
{
    struct net_device *dev = fence->flow->dev;
    uint16_t n = dev->n_rx_queues;
    fence->began_ps = k_now_ps(fence->arfs->kernel);
    fence->from = fence->flow->rxq;
    fence->era = fence->arfs->era;
    fence->waits = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    fence->waits &= ~(UINT64_C(1) << rxq);
    for (unsigned q = 0; q < n && q < NET_QUEUES_MAX; q++)
        fence->mark[q] = (struct net_rx_mark){ 0 };
    return fence_passed(fence);
}

static void fence_hold(struct arfs_fence *fence, struct sk_buff *skb, uint16_t rxq)
{
    struct sk_buff **link = &fence->held;
    while (*link != NULL && (*link)->time_ps <= skb->time_ps)
        link = &(*link)->next;
    skb->queue = rxq;
    skb->next = *link;
    *link = skb;
    fence->arfs->stats.held++;
}

static bool fence_over_time(const struct arfs_fence *fence)
{
    const struct arfs *arfs = fence->arfs;
    return k_now_ps(arfs->kernel) - fence->began_ps >= arfs->params.fence_ps;
}

static void fence_release(struct arfs_fence *fence)
{
    fence->flow->fence = NULL;
    fence->flow = NULL;
    fence->opening = false;
    k_timer_cancel(&fence->timer);
}

/* What is held goes up as far as it came in on one queue; what came in on another after that has to
 * wait anew, for what is left on this one. Meanwhile packets that come in are held behind. */
static void fence_open(struct arfs_fence *fence)
{
    struct arfs *arfs = fence->arfs;
    struct arfs_flow *flow = fence->flow;
    fence->opening = true;
    for (;;) {
        arfs->stats.fence_ps += k_now_ps(arfs->kernel) - fence->began_ps;
        flow->rxq = fence->held->queue;
        flow->era = fence->era;
        while (fence->held != NULL && fence->held->queue == flow->rxq) {
            struct sk_buff *skb = fence->held;
            fence->held = skb->next;
            skb->next = NULL;
            flow->seen_ps = k_now_ps(arfs->kernel);
            net_receive(skb);
        }
        if (fence->held == NULL) {
            fence_release(fence);
            return;
        }
        if (!fence_begin(fence, fence->held->queue)) {
            fence->opening = false;
            k_timer_set(&fence->timer, k_now_ps(arfs->kernel) + arfs->params.check_ps);
            return;
        }
    }
}

static void fence_check(struct arfs_fence *fence)
{
    if (fence->opening)
        return;
    if (fence_passed(fence)) {
        fence_open(fence);
    } else if (fence_over_time(fence)) {
        fence->arfs->stats.timeouts++;
        fence_open(fence);
    }
}

static void fence_timer(struct k_timer *timer)
{
    struct arfs_fence *fence = K_CONTAINER(timer, struct arfs_fence, timer);
    if (fence->flow == NULL)
        return;
    fence_check(fence);
    if (fence->flow != NULL && !fence->opening && !k_timer_pending(timer))
        k_timer_set(timer, k_now_ps(timer->kernel) + fence->arfs->params.check_ps);
}

static struct arfs_fence *fence_get(struct arfs *arfs, struct arfs_flow *flow)
{
    struct arfs_fence *fence = arfs->fences;
    while (fence != NULL && fence->flow != NULL)
        fence = fence->next;
    if (fence == NULL) {
        fence = k_zalloc(sizeof *fence);
        fence->arfs = arfs;
        k_timer_init(&fence->timer, arfs->kernel, fence_timer);
        fence->next = arfs->fences;
        arfs->fences = fence;
    }
    fence->flow = flow;
    return fence;
}

/* The flow comes in on another queue than before. True: the packet was taken. */
static bool flow_moved(struct arfs *arfs, struct arfs_flow *flow, struct sk_buff *skb, uint16_t rxq)
{
    struct arfs_fence *fence = fence_get(arfs, flow);
    arfs->stats.moved++;
    if (fence_begin(fence, rxq)) {
        fence_release(fence);
        flow->rxq = rxq;
        flow->era = arfs->era;
        return false;
    }
    flow->fence = fence;
    arfs->stats.fences++;
    fence_hold(fence, skb, rxq);
    k_timer_set(&fence->timer, k_now_ps(arfs->kernel) + arfs->params.check_ps);
    return true;
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Has the device steer the flow to the queue of the CPU that reads it; asks again after a while, as
 * filters may have been refused or lost since. */
static void flow_steer(struct arfs *arfs, struct arfs_flow *flow, struct net_device *dev,
                       const struct sk_buff *skb, int wanted)
{
    uint64_t now = k_now_ps(arfs->kernel);
    uint32_t hash = flow->hash;
    if (flow->asked != NO_QUEUE && now - flow->asked_ps < arfs->params.retry_ps) {
        if (flow->asked == wanted)
            return;
        if (flow->asked != flow->rxq) { /* it is on its way elsewhere */
            arfs->stats.waited++;
            return;
        }
    }
    flow->asked = (uint16_t)wanted;
    flow->asked_ps = now;
    flow->steered = true;
    flow->expired_ps = 0;
    uint32_t flow_id = (uint32_t)(flow - arfs->flow);
    int filter = dev->ops->rx_flow_steer(dev, skb, (uint16_t)wanted, flow_id);
    if (filter < 0)
        arfs->stats.refused++;
    else
        arfs->stats.steered++;
    if (flow->hash == hash && flow->asked == wanted && filter >= 0)
        flow->filter = filter;
}

static int wanted_queue(const struct arfs_flow *flow, struct net_device *dev, uint16_t rxq)
{
    if (flow->cpu == NO_CPU || dev->ops->rx_flow_steer == NULL ||
        (dev->features & NET_FEATURE_ARFS) == 0)
        return -1;
    if (dev->ops->rx_queue_for != NULL)
        return dev->ops->rx_queue_for(dev, (unsigned)flow->cpu, rxq);
    return dev->rx_queue_of_cpu[flow->cpu];
}

/* So that of a flow that is seen for the first time others may still lie elsewhere. */
static bool just_forgot(const struct arfs *arfs)
{
    return arfs->era != 0 && k_now_ps(arfs->kernel) - arfs->forgot_ps < FORGET_PS;
}

bool arfs_receive(struct arfs *arfs, struct net_device *dev, struct sk_buff *skb, uint16_t rxq)
{
    if (skb->hash == 0)
        return false;
    k_touch(arfs->kernel, line_of(arfs, skb->hash), sizeof(uint64_t));
    struct arfs_flow *flow = flow_find(arfs, skb->hash);
    if (flow == NULL)
        flow = flow_new(arfs, skb->hash);
    if (flow == NULL) {
        arfs->stats.untracked++;
        return false;
    }
    if (flow->fence != NULL) {
        struct arfs_fence *fence = flow->fence;
        if (rxq == fence->from && !fence->opening && fence->held != NULL &&
            skb->time_ps <= fence->held->time_ps) {
            flow->seen_ps = k_now_ps(arfs->kernel);
            return false;
        }
        fence_hold(fence, skb, rxq);
        fence_check(fence);
        return true;
    }
    if (flow->dev != dev) { /* its first packet, or the device is part of another now */
        flow->dev = dev;
        flow->rxq = just_forgot(arfs) ? NO_QUEUE : rxq;
        flow->era = arfs->era;
    }
    if (flow->era != arfs->era)
        flow->rxq = NO_QUEUE;
    if (rxq != flow->rxq && flow_moved(arfs, flow, skb, rxq))
        return true;
    flow->seen_ps = k_now_ps(arfs->kernel);
    int wanted = wanted_queue(flow, dev, rxq);
    if (wanted >= 0 && wanted != rxq)
        flow_steer(arfs, flow, dev, skb, wanted);
    return false;
}

void arfs_forget(struct arfs *arfs)
{
    arfs->era++;
    arfs->forgot_ps = k_now_ps(arfs->kernel);
}

void arfs_device_gone(struct arfs *arfs, const struct net_device *dev)
{
    struct sk_buff *held = NULL;
    for (struct arfs_fence *fence = arfs->fences; fence != NULL; fence = fence->next) {
        if (fence->flow == NULL || fence->flow->dev != dev)
            continue;
        while (fence->held != NULL) {
            struct sk_buff *skb = fence->held;
            fence->held = skb->next;
            skb->next = held;
            held = skb;
        }
        if (!fence->opening) /* else it is released where it opens */
            fence_release(fence);
    }
    for (uint32_t i = 0; i < arfs->params.n_flows; i++)
        if (arfs->flow[i].dev == dev)
            arfs->flow[i].dev = NULL;
    /* This charges time; the packets are not reachable any more. */
    while (held != NULL) {
        struct sk_buff *skb = held;
        held = skb->next;
        skb->next = NULL;
        skb_free(dev->net, skb);
    }
}

bool arfs_may_expire(struct arfs *arfs, struct net_device *dev, uint16_t rxq, uint32_t flow_id,
                     int filter)
{
    if (flow_id >= arfs->params.n_flows)
        return true;
    struct arfs_flow *flow = &arfs->flow[flow_id];
    bool own = dev->upper == NULL;
    if (!own) {
        rxq = (uint16_t)(rxq + dev->upper_queue);
        dev = dev->upper;
    }
    if (flow->hash == 0 || flow->dev != dev || (flow->asked != rxq && flow->rxq != rxq) ||
        (own && flow->filter != filter))
        return true;
    /* What was asked for may not have been seen yet. */
    uint64_t now = k_now_ps(arfs->kernel), expiry_ps = arfs->params.expiry_ps;
    if (flow->fence != NULL || now - flow->seen_ps < expiry_ps ||
        (flow->steered && now - flow->asked_ps < expiry_ps))
        return false;
    if (flow->expired_ps == 0)
        flow->expired_ps = now;
    /* Packets may already be on their way under what is removed now, though none was seen there. */
    flow->rxq = NO_QUEUE;
    return true;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct arfs *arfs_new(struct kernel *kernel, const struct arfs_params *params)
{
    struct arfs *arfs = k_zalloc(sizeof *arfs);
    arfs->kernel = kernel;
    arfs->params = *params;
    arfs->flow = k_zalloc(params->n_flows * sizeof *arfs->flow);
    arfs->lines = k_alloc(kernel, 0, (size_t)params->n_flows / WAYS * K_LINE_BYTES, K_LINE_BYTES);
    return arfs;
}

void arfs_free(struct arfs *arfs)
{
    struct arfs_fence *next;
    if (arfs == NULL)
        return;
    for (struct arfs_fence *fence = arfs->fences; fence != NULL; fence = next) {
        next = fence->next;
        k_timer_release(&fence->timer);
        k_free(fence);
    }
    k_free(arfs->flow);
    k_free(arfs);
}

const struct arfs_stats *arfs_stats(const struct arfs *arfs)
{
    return &arfs->stats;
}
