/*
 * Cores.
 *
 * Models: a clock, issue cost, line-fill buffers and superqueue as bounds of memory-level
 *   parallelism.
 * Does not model: instructions, branch prediction, store-buffer depth, translation look-aside
 *   buffers.
 * Timing: load = numa_load; asynchronous access = issue cycles. Either waits first for the
 * line-fill buffer that is free first, if the line is not in L1 or L2 and all are taken. Sources:
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
    wait_for_buffer(core, task, hpa, false, core->params->line_fill_buffers);
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

void core_drain(struct core *core, struct sim_task *task)
{
    for (unsigned i = 0; i < CORE_BUFFERS_MAX; i++)
        sim_task_charge_until(task, core->buffer_done_ps[i]);
}
