/*
 * Channels of the NIC: a receive queue, a send queue, their completion queues, that of internal
 * operations and an event queue with its interrupt, all on one CPU, with one poll function.
 *
 * What it does: Channels and their NAPI function, like mlx5e's: processes send completions (at most
 *   128), then receive completions (at most the budget), then posts receive buffers. When nothing
 *   is left it completes and arms the completion queues with their consumer indices: the device
 *   compares, and reports at once what arrived meanwhile, so no interrupt is lost and no second
 *   look is needed. The queue of internal operations (mlx5e's ICOSQ: UMRs of striding receive
 *   queues, and no-ops) is not there, since this driver posts nothing to it. Its completion queue
 *   is: mlx5e_napi_poll() arms it with the others, and polls it with striding receive queues only.
 * Follows: docs/sources.md#nic; Linux 4.14 mlx5/core/en_txrx.c (mlx5e_napi_poll), en_main.c
 *   (mlx5e_open_channel, mlx5e_close_channel).
 * Costs: driver_poll_cycles per call, three doorbells to arm.
 */
#include "logic/nic/nic_internal.h"

#include <errno.h>

#define DRAIN_PS (2 * K_US) /* between checks whether a queue is idle */

/* ---- Polling --------------------------------------------------------------------------------- */

void nic_drv_channel_schedule(struct nic_channel *channel)
{
    if (channel->nic->closing)
        return;
    channel->active = true;
    k_napi_schedule(&channel->napi);
}

static void moderate(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_dim_sample now = {
        .time_ps = k_now_ps(nic->kernel),
        .packets = channel->rx_packets,
        .bytes = channel->rx_bytes,
        .events = channel->rx_events,
    };
    if (nic_dim_poll(&channel->dim, &now)) {
        channel->stats->moderation_changes++;
        nic_drv_work_queue(&channel->dim_work, channel->cpu);
    }
}

/* Nothing left to do: complete, and then interrupts again. */
static void rest(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    if (!k_napi_complete(&channel->napi))
        return;
    channel->active = false;
    if (nic->closing)
        return;
    nic_drv_cq_arm(nic, &channel->sq.cq);
    if (nic->params->adaptive_rx)
        moderate(channel);
    if (nic->closing)
        return;
    nic_drv_cq_arm(nic, &channel->rq.cq);
    nic_drv_cq_arm(nic, &channel->icosq_cq);
}

static int poll(struct k_napi *napi, int budget)
{
    struct nic_channel *channel = K_CONTAINER(napi, struct nic_channel, napi);
    struct nic_drv *nic = channel->nic;
    int n = 0;
    channel->inside++;
    channel->stats->polls++;
    if (!nic->closing) {
        k_compute(nic->kernel, nic->costs->driver_poll_cycles);
        bool more = nic_drv_sq_poll(channel);
        n = nic_drv_rq_poll(channel, budget);
        net_gro_flush(napi, nic->net);
        net_rx_polled(&channel->rq.progress, (uint32_t)n, n < budget);
        if (!nic->closing)
            nic_drv_rq_refill(channel);
        if (more && !nic->closing)
            n = budget;
    }
    if (n < budget || nic->closing) {
        if (n == budget)
            n--;
        rest(channel);
    }
    channel->inside--;
    return n;
}

static void moderation_work(struct k_work *work)
{
    struct nic_channel *channel = K_CONTAINER(work, struct nic_channel, dim_work.work);
    struct nic_drv *nic = channel->nic;
    uint8_t mode = nic->params->rx_mode;
    const struct nic_dim_profile *profile = &nic_dim_profiles[mode][channel->dim.profile];
    struct nic_command command = {
        .opcode = NIC_MODIFY_CQ,
        .queue = channel->rq.cq.number,
        .moderation_us = profile->us,
        .moderation_count = profile->count,
        .moderation_mode = mode,
    };
    nic_drv_command(nic, &command);
    nic_dim_restart(&channel->dim);
    nic_drv_work_done(nic);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static uint8_t log2_of(uint32_t n)
{
    uint8_t log = 0;
    while (n >> log > 1)
        log++;
    return log;
}

static int completion_node(const struct nic_channel *channel)
{
    int node = channel->nic->params->completion_node;
    if (node == K_NODE_LOCAL)
        return channel->node;
    return node == NIC_NODE_DEVICE ? channel->nic->node : node;
}

/* Memory of everything; what was got is released by channel_release(). */
static int channel_alloc(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    int error = nic_drv_rq_alloc(channel);
    if (error == 0)
        error = nic_drv_sq_alloc(channel);
    if (error == 0)
        error = nic_drv_memory_alloc(nic, &channel->eq.ring, channel->node,
                                     sizeof(struct nic_eqe) << NIC_EQ_LOG);
    struct nic_drv_cq *cq[NIC_CHANNEL_CQS] = { &channel->sq.cq, &channel->rq.cq,
                                               &channel->icosq_cq };
    const uint32_t mask[NIC_CHANNEL_CQS] = { channel->sq.mask, channel->rq.mask,
                                             (1u << NIC_ICOSQ_LOG) - 1 };
    for (unsigned i = 0; error == 0 && i < NIC_CHANNEL_CQS; i++) {
        cq[i]->number = (uint16_t)(NIC_CHANNEL_CQS * channel->index + i);
        cq[i]->mask = (uint16_t)mask[i];
        cq[i]->log = log2_of(mask[i] + 1);
        error = nic_drv_memory_alloc(nic, &cq[i]->ring, completion_node(channel),
                                     sizeof(struct nic_cqe) << cq[i]->log);
    }
    return error;
}

static int create_cq(struct nic_channel *channel, struct nic_drv_cq *cq, uint8_t mode,
                     uint16_t moderation_us, uint16_t count)
{
    struct nic_command command = {
        .opcode = NIC_CREATE_CQ,
        .log_entries = cq->log,
        .queue = cq->number,
        .target = channel->index,
        .iova = cq->ring.dma,
        .moderation_us = moderation_us,
        .moderation_count = count,
        .moderation_mode = mode,
    };
    int error = nic_drv_command(channel->nic, &command);
    cq->created = error == 0;
    return error;
}

static int create_eq(struct nic_channel *channel)
{
    struct nic_command command = {
        .opcode = NIC_CREATE_EQ,
        .log_entries = NIC_EQ_LOG,
        .queue = channel->index,
        .target = channel->index,
        .iova = channel->eq.ring.dma,
    };
    int error = nic_drv_command(channel->nic, &command);
    channel->eq.created = error == 0;
    return error;
}

static int create_cqs(struct nic_channel *channel)
{
    const struct nic_driver_params *params = channel->nic->params;
    uint16_t rx_us = params->rx_us, rx_count = params->rx_count;
    if (params->adaptive_rx) {
        rx_us = nic_dim_profiles[params->rx_mode][NIC_DIM_START].us;
        rx_count = nic_dim_profiles[params->rx_mode][NIC_DIM_START].count;
    }
    int error = create_cq(channel, &channel->icosq_cq, NIC_MODERATION_EQE, 0, 0);
    if (error == 0)
        error = create_cq(channel, &channel->sq.cq, NIC_MODERATION_EQE, params->tx_us,
                          params->tx_count);
    return error != 0 ? error
                      : create_cq(channel, &channel->rq.cq, params->rx_mode, rx_us, rx_count);
}

static int create_queues(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    struct nic_command sq = {
        .opcode = NIC_CREATE_SQ,
        .log_entries = log2_of(channel->sq.mask + 1u),
        .queue = channel->sq.number,
        .target = channel->sq.cq.number,
        .iova = channel->sq.ring.dma,
        .record_iova = channel->sq.record.dma,
    };
    int error = nic_drv_command(nic, &sq);
    channel->sq.created = error == 0;
    if (error != 0)
        return error;
    struct nic_command rq = {
        .opcode = NIC_CREATE_RQ,
        .log_entries = log2_of(channel->rq.mask + 1u),
        .queue = channel->rq.number,
        .target = channel->rq.cq.number,
        .iova = channel->rq.ring.dma,
        .record_iova = channel->rq.record.dma,
        .flags = nic->params->lro ? NIC_COMMAND_LRO : 0,
    };
    error = nic_drv_command(nic, &rq);
    channel->rq.created = error == 0;
    return error;
}

static int channel_create(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    int error = channel_alloc(channel);
    if (error == 0)
        error = create_eq(channel);
    if (error == 0)
        error = k_irq_request(nic->pci, channel->index, channel->cpu, nic_drv_interrupt, channel,
                              &channel->irq);
    nic->dev.irq[channel->index] = channel->irq;
    if (error == 0)
        error = create_cqs(channel);
    if (error != 0)
        return error;
    nic_drv_rq_refill(channel); /* before the device knows of the queue: it finds buffers there */
    return create_queues(channel);
}

/* ---- Taking down ----------------------------------------------------------------------------- */

static void destroy(struct nic_drv *nic, uint16_t opcode, uint16_t queue, bool *created)
{
    struct nic_command command = { .opcode = opcode, .queue = queue };
    if (*created)
        nic_drv_command(nic, &command);
    *created = false;
}

/* The device forgets the channel; nothing comes of it any more. */
static void channel_stop(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    destroy(nic, NIC_DESTROY_RQ, channel->rq.number, &channel->rq.created);
    destroy(nic, NIC_DESTROY_SQ, channel->sq.number, &channel->sq.created);
    destroy(nic, NIC_DESTROY_CQ, channel->rq.cq.number, &channel->rq.cq.created);
    destroy(nic, NIC_DESTROY_CQ, channel->sq.cq.number, &channel->sq.cq.created);
    destroy(nic, NIC_DESTROY_CQ, channel->icosq_cq.number, &channel->icosq_cq.created);
    destroy(nic, NIC_DESTROY_EQ, channel->index, &channel->eq.created);
    if (channel->irq != NULL)
        k_irq_free(channel->irq);
    channel->irq = nic->dev.irq[channel->index] = NULL;
    while (channel->active || channel->inside > 0 || channel->sq.locked)
        k_sleep(nic->kernel, DRAIN_PS);
}

static void channel_release(struct nic_channel *channel)
{
    struct nic_drv *nic = channel->nic;
    nic_drv_rq_release(channel);
    nic_drv_sq_release(channel);
    nic_drv_memory_free(nic, &channel->rq.cq.ring);
    nic_drv_memory_free(nic, &channel->sq.cq.ring);
    nic_drv_memory_free(nic, &channel->icosq_cq.ring);
    nic_drv_memory_free(nic, &channel->eq.ring);
}

void nic_drv_channels_close(struct nic_drv *nic)
{
    while (nic->n_works > 0)
        k_sleep(nic->kernel, DRAIN_PS);
    for (unsigned i = 0; i < nic->n_channels; i++)
        channel_stop(&nic->channel[i]);
    for (unsigned i = 0; i < nic->n_channels; i++)
        channel_release(&nic->channel[i]);
    k_free(nic->channel);
    nic->channel = NULL;
}

/* ---- All of them ----------------------------------------------------------------------------- */

unsigned nic_drv_channels_wanted(const struct nic_drv *nic)
{
    unsigned n = nic->params->n_channels != 0 ? nic->params->n_channels : k_n_cpus(nic->kernel);
    unsigned max = nic->n_queues / NIC_CHANNEL_CQS; /* completion queues are what runs out first */
    if (max > NIC_MSIX_VECTORS)
        max = NIC_MSIX_VECTORS;
    if (max > NET_QUEUES_MAX)
        max = NET_QUEUES_MAX;
    return n < max ? n : max;
}

/* The i-th CPU of those of the function's node, then the others. */
static unsigned cpu_of(const struct nic_drv *nic, unsigned i)
{
    const struct kernel *kernel = nic->kernel;
    unsigned n = k_n_cpus(kernel);
    if (nic->driver->channel_cpu != NULL)
        return nic->driver->channel_cpu[i];
    i %= n;
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned cpu = 0; cpu < n; cpu++) {
            bool local = nic->node < 0 || (int)k_node_of_cpu(kernel, cpu) == nic->node;
            if (local == (pass == 0) && i-- == 0)
                return cpu;
        }
    }
    return 0;
}

static unsigned rss_channels(const struct nic_drv *nic)
{
    unsigned n = nic->params->rss_channels;
    if (n == 0) {
        while (n < nic->n_channels && nic->channel[n].node == nic->node)
            n++;
    }
    return n == 0 || n > nic->n_channels ? nic->n_channels : n;
}

static int set_rss(struct nic_drv *nic)
{
    uint16_t table[1u << NIC_RSS_LOG];
    struct nic_memory memory = { { 0 }, 0, 0 };
    unsigned n = rss_channels(nic);
    for (unsigned i = 0; i < 1u << NIC_RSS_LOG; i++)
        table[i] = nic->channel[i % n].rq.number;
    int error = nic_drv_memory_alloc(nic, &memory, nic->node, sizeof table);
    if (error != 0)
        return error;
    k_store(nic->kernel, memory.at, table, sizeof table);
    struct nic_command command = {
        .opcode = NIC_SET_RSS,
        .log_entries = NIC_RSS_LOG,
        .iova = memory.dma,
    };
    error = nic_drv_command(nic, &command);
    nic_drv_memory_free(nic, &memory);
    return error;
}

static void map_cpus(struct nic_drv *nic)
{
    struct net_device *dev = &nic->dev;
    size_t n_cpus = sizeof dev->xps_queue / sizeof *dev->xps_queue;
    for (size_t cpu = 0; cpu < n_cpus; cpu++)
        dev->xps_queue[cpu] = dev->rx_queue_of_cpu[cpu] = -1;
    for (unsigned i = 0; i < nic->n_channels; i++) {
        unsigned cpu = nic->channel[i].cpu;
        if (cpu < n_cpus && dev->rx_queue_of_cpu[cpu] < 0)
            dev->xps_queue[cpu] = dev->rx_queue_of_cpu[cpu] = (int16_t)i;
    }
}

static void channel_init(struct nic_drv *nic, unsigned i)
{
    struct nic_channel *channel = &nic->channel[i];
    channel->nic = nic;
    channel->index = (uint16_t)i;
    channel->cpu = (uint16_t)cpu_of(nic, i);
    channel->node = (int)k_node_of_cpu(nic->kernel, channel->cpu);
    channel->stats = &nic->stats[i];
    nic_dim_init(&channel->dim);
    nic_drv_work_init(&channel->dim_work, nic, moderation_work);
    k_napi_init(&channel->napi, nic->kernel, poll);
}

static void arm_all(struct nic_drv *nic)
{
    for (unsigned i = 0; i < nic->n_channels; i++) {
        struct nic_channel *channel = &nic->channel[i];
        nic_drv_eq_arm(nic, channel);
        nic_drv_cq_arm(nic, &channel->sq.cq);
        nic_drv_cq_arm(nic, &channel->rq.cq);
        nic_drv_cq_arm(nic, &channel->icosq_cq);
    }
}

int nic_drv_channels_open(struct nic_drv *nic)
{
    struct nic_channel *channel = k_zalloc(nic->n_channels * sizeof *channel);
    nic->channel = channel;
    nic->closing = false;
    for (unsigned i = 0; i < nic->n_channels; i++)
        channel_init(nic, i);
    int error = 0;
    for (unsigned i = 0; error == 0 && i < nic->n_channels; i++)
        error = channel_create(&channel[i]);
    if (error == 0)
        error = set_rss(nic);
    if (error != 0) {
        nic->closing = true;
        nic_drv_channels_close(nic);
        return error;
    }
    map_cpus(nic);
    arm_all(nic);
    return 0;
}
