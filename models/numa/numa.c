/*
 * The memory system of one host: building it, warming, statistics. What an access does is in
 * private.c (L1, L2) and in the coherence protocol's file.
 *
 * Models: see private.c, agent.c, coherence_home.c, home_agent.c, coherence_fsb.c, interconnect.c,
 *   dram.c
 * Does not model: TLBs, memory-mapped I/O (the root complex's)
 * Timing:
 *   idle load = coherence_ops.idle_load_ps; a refresh in progress adds up to tRFC, on
 *   average tRFC^2 / (2 tREFI) per access
 * Sources: docs/sources.md#a1
 */
#include "models/numa/numa_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static sim_time cycles_ps(uint32_t cycles, double clock_ghz)
{
    return (sim_time)llround(cycles * 1000.0 / clock_ghz);
}

static void init_memory(struct numa *n)
{
    const uint64_t bytes = n->params->dram->node_bytes;
    const unsigned nodes = n->ops->nodes(n->params);
    uint64_t node_bytes[NUMA_MAX_SOCKETS];

    for (unsigned i = 0; i < nodes; i++)
        node_bytes[i] = bytes;
    n->mem = physmem_new(nodes, node_bytes);
    physmem_set_high_first(n->mem, n->params->dram->high_first);
    /* Like physmem's stride; a single node is home to everything. */
    n->lines = (uint64_t)nodes << (physmem_stride_log2(n->mem) - LINE_LOG2);
    n->node_log2_lines = nodes == 1 ? 63 : physmem_stride_log2(n->mem) - LINE_LOG2;
}

static void init_sockets(struct numa *n)
{
    n->socket = sim_zalloc(n->sockets, sizeof(*n->socket));
    n->prefix = sim_zalloc(n->sockets, sizeof(*n->prefix));
    for (uint32_t i = 0; i < n->sockets; i++) {
        dram_init(&n->socket[i].dram, n->params->dram, &n->socket[i].counters.dram);
        n->socket[i].dram.contended_until_ps = &n->contended_until_ps;
        snprintf(n->prefix[i], sizeof(n->prefix[i]), "s%u.", i & 15u);
        n->socket[i].counters.sockets = n->sockets;
    }
}

static void init_core_groups(struct numa *n)
{
    const uint32_t groups = n->sockets * n->groups_per_socket;

    n->private_count = sim_zalloc(n->cores, sizeof(*n->private_count));
    n->core_group = sim_zalloc(groups, sizeof(*n->core_group));
    for (uint32_t i = 0; i < groups; i++) {
        core_group_init(n, &n->core_group[i]);
        n->core_group[i].socket = i / n->groups_per_socket;
        n->core_group[i].sharer_bit = UINT32_C(1) << (i % n->groups_per_socket);
        n->core_group[i].own = &n->socket[n->core_group[i].socket];
        n->core_group[i].count = &n->private_count[i << n->l2_cores_log2];
    }
    n->group_of = sim_zalloc(n->cores, sizeof(*n->group_of));
    for (uint32_t i = 0; i < n->cores; i++)
        n->group_of[i] = &n->core_group[core_group_of(n, i)];
}

struct numa *numa_new(struct sim *sim, const char *name, const struct numa_params *params)
{
    const char *why = NULL;
    struct numa *n = sim_zalloc(1, sizeof(*n));

    n->ops = coherence_protocols[params->coherence->protocol];
    SIM_ASSERT(coherence_ops_valid(n->ops, &why), "coherence protocol %s has no %s",
               coherence_protocol_names[params->coherence->protocol], why);
    SIM_ASSERT(numa_params_check(params, &why), "%s: %s", name, why);
    n->params = params;
    n->sim = sim;
    n->name = name;
    n->sockets = params->cpu->sockets;
    n->cores = n->sockets * params->cpu->cores_per_socket;
    n->l2_cores_log2 = (uint32_t)__builtin_ctz(params->cache->l2_cores);
    n->groups_per_socket = params->cpu->cores_per_socket >> n->l2_cores_log2;
    n->l1_ps = cycles_ps(params->cpu->l1_hit_cycles, params->cpu->clock_ghz);
    n->l2_ps = cycles_ps(params->cpu->l2_hit_cycles, params->cpu->clock_ghz);
    n->llc_ps = params->cache->llc_request_ps + params->cache->llc_return_ps;
    init_memory(n);
    init_sockets(n);
    n->ops->init(n);
    init_core_groups(n); /* after the LLC: whether core groups are fast depends on it */
    return n;
}

void numa_free(struct numa *n)
{
    if (n == NULL)
        return;
    for (uint32_t i = 0; i < n->sockets * n->groups_per_socket; i++)
        core_group_release(n, &n->core_group[i]);
    n->ops->release(n);
    for (uint32_t i = 0; i < n->sockets; i++)
        dram_release(&n->socket[i].dram);
    physmem_free(n->mem);
    free(n->group_of);
    free(n->core_group);
    free(n->private_count);
    free(n->socket);
    free(n->prefix);
    free(n);
}

unsigned numa_sockets(const struct numa *n)
{
    return n->sockets;
}

unsigned numa_cores(const struct numa *n)
{
    return n->cores;
}

uint64_t numa_cache_bytes(const struct numa *n)
{
    const struct numa_cache_params *p = n->params->cache;

    return n->groups_per_socket * (p->l2_bytes + p->l2_cores * p->l1_bytes) + p->llc_bytes;
}

bool numa_has_llc(const struct numa *n)
{
    return n->params->cache->llc_bytes != 0;
}

sim_time numa_cycle_ps(const struct numa *n)
{
    return cycles_ps(1, n->params->cpu->clock_ghz);
}

struct numa_private_count numa_private_count(const struct numa *n, unsigned core)
{
    return n->private_count[core];
}

unsigned numa_socket_of_core(const struct numa *n, unsigned core)
{
    return n->core_group[core_group_of(n, core)].socket;
}

struct physmem *numa_physmem(struct numa *n)
{
    return n->mem;
}

bool numa_private_hit(const struct numa *n, unsigned core, struct hpa hpa, bool store)
{
    const struct stream_prefetch *prefetch = n->core_group[core_group_of(n, core)].prefetch;

    if (SIM_UNLIKELY(prefetch != NULL) && stream_prefetch_under_way(prefetch, hpa.v >> LINE_LOG2))
        return false;
    /* What is in an L1 is in its L2. */
    return core_group_peek(n, core_group_of(n, core), hpa.v >> LINE_LOG2) >=
           (store ? LINE_E : LINE_S);
}

struct numa_result numa_store_nt(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps,
                                 struct sim_stamp *stamp)
{
    const uint64_t line = hpa.v >> LINE_LOG2;
    const bool local = home_of(n, line) == numa_socket_of_core(n, core);
    const sim_time done_ps = n->ops->store_nt(n, core, line, at_ps, stamp);

    return (struct numa_result){ done_ps, local ? NUMA_LOCAL_DRAM : NUMA_REMOTE_DRAM };
}

sim_time numa_flush(struct numa *n, unsigned core, struct hpa hpa, sim_time at_ps)
{
    return n->ops->flush(n, core, hpa.v >> LINE_LOG2, at_ps);
}

sim_time numa_dma_read(struct numa *n, unsigned socket, struct hpa hpa, unsigned bytes,
                       sim_time at_ps, struct sim_stamp *stamp, enum numa_source *source)
{
    enum numa_source unused;

    SIM_ASSERT(bytes > 0 && (hpa.v & (LINE_BYTES - 1)) + bytes <= LINE_BYTES,
               "DMA read of %u bytes at %llx crosses a line", bytes, (unsigned long long)hpa.v);
    return n->ops->dma_read(n, socket, hpa.v >> LINE_LOG2, at_ps, stamp,
                            source != NULL ? source : &unused);
}

int numa_llc_holder(const struct numa *n, struct hpa hpa)
{
    return n->ops->llc_holder != NULL ? n->ops->llc_holder(n, hpa.v >> LINE_LOG2) : -1;
}

sim_time numa_dma_write(struct numa *n, unsigned socket, struct hpa hpa, unsigned bytes,
                        sim_time at_ps, struct sim_stamp *stamp, enum numa_source *source)
{
    enum numa_source unused;

    SIM_ASSERT(bytes > 0 && (hpa.v & (LINE_BYTES - 1)) + bytes <= LINE_BYTES,
               "DMA write of %u bytes at %llx crosses a line", bytes, (unsigned long long)hpa.v);
    return n->ops->dma_write(n, socket, hpa.v >> LINE_LOG2, bytes == LINE_BYTES, at_ps, stamp,
                             source != NULL ? source : &unused);
}

struct numa_run_done numa_dma_read_run(struct numa *n, unsigned socket, const struct numa_run *run)
{
    struct numa_run_done done = { 0, 0 };
    struct run_line l = run_first(run);
    enum numa_source source;

    if (SIM_LIKELY(n->ops->dma_read_run != NULL))
        return n->ops->dma_read_run(n, socket, run);
    do {
        run_count(&done, run, &l, n->ops->dma_read(n, socket, l.line, l.at_ps, NULL, &source));
    } while (run_next(&l, run));
    return done;
}

struct numa_run_done numa_dma_write_run(struct numa *n, unsigned socket, const struct numa_run *run)
{
    struct numa_run_done done = { 0, 0 };
    struct run_line l = run_first(run);
    enum numa_source source;

    if (SIM_LIKELY(n->ops->dma_write_run != NULL))
        return n->ops->dma_write_run(n, socket, run);
    do {
        run_count(
            &done, run, &l,
            n->ops->dma_write(n, socket, l.line, l.bytes == LINE_BYTES, l.at_ps, NULL, &source));
    } while (run_next(&l, run));
    return done;
}

sim_time numa_idle_load_ps(const struct numa *n, unsigned from, unsigned home)
{
    return n->ops->idle_load_ps(n, from, home);
}

/* ---- Warming --------------------------------------------------------------------------------- */

/* The line behind the last one of the range. */
static uint64_t lines_end(struct hpa hpa, uint64_t bytes)
{
    return (hpa.v + bytes + LINE_BYTES - 1) >> LINE_LOG2;
}

void numa_warm_drop(struct numa *n, struct hpa hpa, uint64_t bytes)
{
    if (bytes == 0)
        return;
    n->quiet = true;
    n->ops->drop(n, hpa.v >> LINE_LOG2, lines_end(hpa, bytes));
    n->quiet = false;
}

void numa_warm_drop_all(struct numa *n)
{
    for (uint32_t i = 0; i < n->sockets * n->groups_per_socket; i++)
        core_group_clear(n, &n->core_group[i]);
    if (n->ops->drop_all != NULL)
        n->ops->drop_all(n);
}

void numa_warm_by_misses(struct numa *n, bool on)
{
    n->io_fills_none = on;
}

void numa_warm_core(struct numa *n, unsigned core, struct hpa hpa, uint64_t bytes)
{
    if (bytes == 0)
        return;
    n->quiet = true;
    for (uint64_t line = hpa.v >> LINE_LOG2; line <= (hpa.v + bytes - 1) >> LINE_LOG2; line++)
        numa_store(n, core, (struct hpa){ line << LINE_LOG2 }, 0, NULL);
    n->quiet = false;
}

void numa_warm_device(struct numa *n, unsigned socket, struct hpa hpa, uint64_t bytes)
{
    const uint64_t end = hpa.v + bytes;
    enum numa_source source;

    n->quiet = true;
    for (uint64_t at = hpa.v; at < end;) {
        const uint64_t next = SIM_MIN((at | (LINE_BYTES - 1)) + 1, end);
        n->ops->dma_write(n, socket, at >> LINE_LOG2, next - at == LINE_BYTES, 0, NULL, &source);
        at = next;
    }
    n->quiet = false;
}

void numa_warm_load(struct numa *n, unsigned core, struct hpa hpa)
{
    n->quiet = true;
    numa_load(n, core, hpa, 0, NULL);
    n->quiet = false;
}

void numa_warm_forgotten(struct numa *n, unsigned socket, struct hpa hpa, uint64_t bytes)
{
    numa_warm_drop(n, hpa, bytes);
    if (bytes != 0 && n->ops->leave_stale != NULL)
        n->ops->leave_stale(n, socket, hpa.v >> LINE_LOG2, lines_end(hpa, bytes));
}

/* ---- Statistics ------------------------------------------------------------------------------ */

/* What statistics that are derived, and the peaks, are now. */
static void settle(struct numa *n, unsigned socket)
{
    struct numa_counters *counters = &n->socket[socket].counters;
    const sim_time now_ps = n->sim != NULL ? sim_now(n->sim) : 0; /* some tests have no time */

    counters->dram_bytes = counters->dram_read_bytes + counters->dram_write_bytes;
    counters->dram_peaks = dram_peaks(&n->socket[socket].dram, now_ps);
    for (unsigned to = 0; to < n->sockets; to++)
        counters->to_peak[to] = n->ops->to_peak(n, socket, to, now_ps);
}

bool numa_stats(struct numa *n, unsigned index, const char **prefix, const struct stat_desc **table,
                void **state)
{
    if (index >= n->sockets)
        return false;
    settle(n, index);
    *prefix = n->prefix[index];
    *table = numa_counter_table;
    *state = &n->socket[index].counters;
    return true;
}

uint64_t numa_dram_bytes(const struct numa *n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n->sockets; i++)
        sum += n->socket[i].counters.dram_read_bytes + n->socket[i].counters.dram_write_bytes;
    return sum;
}

struct numa_dram_timing numa_dram_timing(const struct numa *n)
{
    const struct numa_dram_params *p = n->params->dram;

    return (struct numa_dram_timing){ .channels = p->channels,
                                      .burst_ps = n->socket[0].dram.burst_ps,
                                      .activate_ps = p->trcd_ps,
                                      .precharge_ps = p->trp_ps,
                                      .turnaround_ps = p->twtr_ps +
                                                       n->socket[0].dram.burst_ps / 2 };
}

uint64_t numa_interconnect_bytes(const struct numa *n, unsigned from_socket, unsigned to_socket)
{
    return n->socket[from_socket].counters.to_bytes[to_socket];
}
