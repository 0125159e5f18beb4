/*
 * Cores.
 *
 * Models: a clock, issue cost, line-fill buffers and superqueue as bounds of memory-level
 *   parallelism.
 * Does not model: instructions, branch prediction, store-buffer depth, translation look-aside
 *   buffers.
 * Timing: load = numa_load; asynchronous access = issue cycles. Either waits first for the
 *   line-fill buffer that is free first, if the line is not in L1 or L2 and all are taken. A copy
 * is a load and a store a line; line_ps or two issues, whichever is more, pass meanwhile. Sources:
 * docs/sources.md#a1.
 */
#include "models/host/core.h"

const struct param_desc core_params_table[] = {
    PARAM("line_fill_buffers", PARAM_U32, struct core_params, line_fill_buffers, 10, 1,
          CORE_BUFFERS_MAX, PROV_ESTIMATE, "docs/sources.md#a1",
          "demand misses of one core that overlap"),
    PARAM("superqueue_entries", PARAM_U32, struct core_params, superqueue_entries, 16, 1,
          CORE_BUFFERS_MAX, PROV_ESTIMATE, "docs/sources.md#a1",
          "line misses of one core that overlap when the prefetcher follows a stream"),
    PARAM("issue_cycles", PARAM_U32, struct core_params, issue_cycles, 2, 1, 100, PROV_ESTIMATE,
          "docs/sources.md#a1", "cost of an access that does not wait for its data"),
    { .type = PARAM_END },
};

void core_init(struct core *core, struct numa *numa, const struct core_params *params, unsigned idx)
{
    *core = (struct core){ .numa = numa, .params = params, .idx = idx };
    core->cycle_ps = numa_cycle_ps(numa);
    core->issue_ps = core->cycle_ps * params->issue_cycles;
}

void core_compute(struct core *core, struct sim_task *task, uint64_t cycles)
{
    sim_task_charge(task, cycles * core->cycle_ps);
}

/* The line-fill buffer that is free first. */
static sim_time *first_buffer(struct core *core, unsigned n_buffers)
{
    sim_time *best = &core->buffer_done_ps[0];
    for (unsigned i = 1; i < n_buffers; i++)
        if (core->buffer_done_ps[i] < *best)
            best = &core->buffer_done_ps[i];
    return best;
}

/* Any that is free, or else the one that is first. */
static inline sim_time *free_buffer(struct core *core, unsigned n_buffers, sim_time now_ps)
{
    sim_time *best = core->buffer_done_ps;

    for (unsigned i = 0; i<n_buffers && * best> now_ps; i++)
        if (core->buffer_done_ps[i] < *best)
            best = &core->buffer_done_ps[i];
    return best;
}

/* Waits for a buffer if the access will need one; returns it. */
static sim_time *wait_for_buffer(struct core *core, struct sim_task *task, struct hpa hpa,
                                 bool store, unsigned n_buffers)
{
    sim_time *buffer = first_buffer(core, n_buffers);
    if (*buffer > sim_task_now(task) && !numa_private_hit(core->numa, core->idx, hpa, store))
        sim_task_charge_until(task, *buffer);
    return buffer;
}

void core_load(struct core *core, struct sim_task *task, struct hpa hpa, struct sim_stamp *stamp)
{
    const sim_time free_ps = *free_buffer(core, core->params->line_fill_buffers,
                                          sim_task_now(task));
    if (free_ps > sim_task_now(task) && !numa_private_hit(core->numa, core->idx, hpa, false))
        sim_task_charge_until(task, free_ps);
    sim_stamp_mark(stamp, PART_CORE, sim_task_now(task));
    struct numa_result result = numa_load(core->numa, core->idx, hpa, sim_task_now(task), stamp);
    sim_task_charge_until(task, result.done_ps);
}

static void access_async(struct core *core, struct sim_task *task, struct hpa hpa, bool store,
                         unsigned n_buffers)
{
    sim_time *buffer = wait_for_buffer(core, task, hpa, store, n_buffers);
    struct numa_result result =
        store ? numa_store(core->numa, core->idx, hpa, sim_task_now(task), NULL)
              : numa_load(core->numa, core->idx, hpa, sim_task_now(task), NULL);
    if (result.source > NUMA_L2)
        *buffer = result.done_ps;
    sim_task_charge(task, core->issue_ps);
}

void core_load_async(struct core *core, struct sim_task *task, struct hpa hpa)
{
    access_async(core, task, hpa, false, core->params->line_fill_buffers);
}

void core_load_stream(struct core *core, struct sim_task *task, struct hpa hpa)
{
    access_async(core, task, hpa, false, core->params->superqueue_entries);
}

void core_store(struct core *core, struct sim_task *task, struct hpa hpa)
{
    access_async(core, task, hpa, true, core->params->line_fill_buffers);
}

void core_load_range(struct core *core, struct sim_task *task, struct hpa hpa, uint64_t bytes)
{
    const uint64_t last = (hpa.v + bytes - 1) >> LINE_LOG2;
    sim_time done_ps = 0;

    for (uint64_t line = hpa.v >> LINE_LOG2;; line++) {
        const struct hpa at = { line << LINE_LOG2 };
        sim_time *buffer = wait_for_buffer(core, task, at, false, core->params->line_fill_buffers);
        const struct numa_result result = numa_load(core->numa, core->idx, at, sim_task_now(task),
                                                    NULL);
        if (result.source > NUMA_L2)
            *buffer = result.done_ps;
        done_ps = SIM_MAX(done_ps, result.done_ps);
        if (line == last)
            break;
        sim_task_charge(task, core->issue_ps);
    }
    sim_task_charge_until(task, done_ps);
}

/* ---- Copies ------------------------------------------------------------------------------------
 */

/* One access of a copy whose clock is *t; returns when it is done. */
static inline sim_time copy_access(struct core *core, struct hpa hpa, bool store,
                                   unsigned n_buffers, sim_time *t)
{
    sim_time *buffer = free_buffer(core, n_buffers, *t);

    if (*buffer > *t && !numa_private_hit(core->numa, core->idx, hpa, store))
        *t = *buffer;
    const struct numa_result result = store ? numa_store(core->numa, core->idx, hpa, *t, NULL)
                                            : numa_load(core->numa, core->idx, hpa, *t, NULL);
    if (result.source > NUMA_L2)
        *buffer = result.done_ps;
    return result.done_ps;
}

sim_time core_copy(struct core *core, struct sim_task *task, struct hpa to, struct hpa from,
                   uint64_t bytes, sim_time line_ps)
{
    const unsigned demand = core->params->line_fill_buffers;
    const uint64_t from_end = from.v + bytes, to_end = to.v + bytes;
    uint64_t load = from.v & ~(LINE_BYTES - 1), store = to.v & ~(LINE_BYTES - 1);
    sim_time t = sim_task_now(task), arrived_ps = t;

    line_ps = SIM_MAX(line_ps, 2 * core->issue_ps);
    for (unsigned n = 0; load < from_end || store < to_end; n++) {
        sim_time then_ps = t + line_ps;
        if (load < from_end) {
            /* The prefetcher follows what the first misses ask for. */
            const unsigned n_buffers = n < demand ? demand : core->params->superqueue_entries;
            const sim_time done_ps = copy_access(core, (struct hpa){ load }, false, n_buffers, &t);
            arrived_ps = SIM_MAX(arrived_ps, done_ps);
            load += LINE_BYTES;
        }
        if (store < to_end)
            copy_access(core, (struct hpa){ store }, true, demand, &t);
        store += LINE_BYTES;
        t = SIM_MAX(t, then_ps);
        sim_task_charge_until(task, t);
    }
    return arrived_ps;
}

void core_drain(struct core *core, struct sim_task *task)
{
    for (unsigned i = 0; i < CORE_BUFFERS_MAX; i++)
        sim_task_charge_until(task, core->buffer_done_ps[i]);
}
