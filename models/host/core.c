/*
 * Cores.
 *
 * Models: a clock, issue cost, line-fill buffers and superqueue as bounds of memory-level
 *   parallelism; of a copy also the store buffer (store_buffer_entries > 0), which is full when so
 *   many steps of the copy have no line to go to yet: a step is 16 bytes, or 8 if an address is no
 *   multiple of 8. Stores that are still in it are waited for by locked operations and fences. With
 *   stores_in_order each asks for its line when that of the one before has been observed (a bus of
 *   models/numa says when).
 * Does not model: instructions, branch prediction, the size of the store buffer for other stores
 *   than copies', nor what one copy leaves in it to the next, translation look-aside buffers. How
 *   far a core is ahead of global time when it asks for a line is the engine's quantum, and 20 ns
 *   at most in the microsecond after a transaction of its host has waited for a pool or reads have
 *   waited for a channel.
 * Timing: load = numa_load, or until an asynchronous load has the line; asynchronous access = issue
 *   cycles. Either waits first for the line-fill buffer that is free first, if the line is not in
 *   L1 or L2 and all are taken. It is held until the line is there, and longer by
 *   cache.writeback_ns if that displaced a modified one from the L2. A copy is a load and a store a
 *   line; line_ps or two issues, whichever is more, pass meanwhile. With a store buffer the store
 *   asks for its line when its data have come, and leaves when it has the line and those before it
 *   have left; a line is loaded when there is room for its stores. A locked operation begins when
 *   all stores before have their lines, and ends when it has its own.
 * Sources: docs/sources.md#a1; Intel SDM 3, 11.10 (what drains the store buffer).
 */
#include "models/host/core.h"

#include "models/base/times.h"

#define NEAR_PS (20 * SIM_PS_PER_NS) /* the quantum that a scenario has unless it says otherwise */

const struct param_desc core_params_table[] = {
    PARAM("line_fill_buffers", PARAM_U32, struct core_params, line_fill_buffers, 10, 1,
          CORE_BUFFERS_MAX, PROV_ESTIMATE, "docs/sources.md#a1",
          "demand misses of one core that overlap"),
    PARAM("superqueue_entries", PARAM_U32, struct core_params, superqueue_entries, 16, 1,
          CORE_BUFFERS_MAX, PROV_ESTIMATE, "docs/sources.md#a1",
          "line misses of one core that overlap when the prefetcher follows a stream"),
    PARAM("issue_cycles", PARAM_U32, struct core_params, issue_cycles, 2, 1, 100, PROV_ESTIMATE,
          "docs/sources.md#a1", "cost of an access that does not wait for its data"),
    PARAM("store_buffer_entries", PARAM_U32, struct core_params, store_buffer_entries, 0, 0,
          CORE_STORES_MAX, PROV_ESTIMATE, "docs/sources.md#e1",
          "steps of a copy that wait for the lines they are stored into; 0: no bound"),
    PARAM(
        "stores_in_order", PARAM_BOOL, struct core_params, stores_in_order, 0, 0, 1, PROV_DATASHEET,
        "docs/sources.md#e1",
        "a store asks for its line when the line of the store before has been observed: its bus has "
        "the results of the snoops, or the deferred reply"),
    { .type = PARAM_END },
};

void core_init(struct core *core, struct numa *numa, const struct core_params *params, unsigned idx)
{
    *core = (struct core){ .numa = numa, .params = params, .idx = idx };
    core->cycle_ps = numa_cycle_ps(numa);
    core->displaced_until_ps = numa_displaced_until(numa, idx);
    core->observed_ps = numa_observed(numa, idx);
    core->contended_until_ps = numa_contended_until(numa);
    core->issue_ps = core->cycle_ps * params->issue_cycles;
    for (unsigned i = 0; i < CORE_BUFFERS_MAX; i++)
        core->buffer_line[i] = CORE_NO_LINE;
}

void core_compute(struct core *core, struct sim_task *task, uint64_t cycles)
{
    sim_task_charge(task, cycles * core->cycle_ps);
}

/* The first of n buffers that is free; NULL: none is. n: a constant, for which the loop unrolls. */
static inline __attribute__((always_inline)) sim_time *first_free(struct core *core, unsigned n,
                                                                  sim_time now_ps)
{
    for (size_t i = 0; i < n; i++)
        if (core->buffer_done_ps[i] <= now_ps)
            return &core->buffer_done_ps[i];
    return NULL;
}

/* Any that is free, or else the one that is first. */
static inline sim_time *free_buffer(struct core *core, unsigned n_buffers, sim_time now_ps)
{
    sim_time first_ps = core->buffer_done_ps[0];
    size_t best = 0;

    if (n_buffers == 8) { /* as many as the compiler knows how to look at together */
        if (first_ps <= now_ps)
            return &core->buffer_done_ps[0];
        const uint64_t free = times_over(core->buffer_done, 8, now_ps);
        if (free != 0)
            return &core->buffer_done_ps[__builtin_ctzll(free)];
    } else {
        sim_time *free = n_buffers == 16   ? first_free(core, 16, now_ps)
                         : n_buffers == 10 ? first_free(core, 10, now_ps)
                                           : first_free(core, n_buffers, now_ps);
        if (SIM_LIKELY(free != NULL))
            return free;
    }
    /* Without a branch on which is the less: nobody could predict it. */
    for (size_t i = 1; i < n_buffers; i++) {
        const sim_time done_ps = core->buffer_done_ps[i];
        best = done_ps < first_ps ? i : best;
        first_ps = SIM_MIN(first_ps, done_ps);
    }
    return &core->buffer_done_ps[best];
}

/* While pools that cores share are empty, or reads wait for a channel, none runs far ahead of the
 * others: it would take what those behind it ask for first, and take a rank for idle that they
 * use. */
static inline void stay_near(const struct core *core, struct sim_task *task)
{
    const sim_time now_ps = sim_task_now(task);

    if (SIM_UNLIKELY(now_ps < *core->contended_until_ps) &&
        now_ps > sim_now(sim_task_sim(task)) + NEAR_PS)
        sim_task_sync(task);
}

/* Waits for data from `source` until until_ps. */
static inline void wait_until(struct core *core, struct sim_task *task, sim_time until_ps,
                              enum numa_source source)
{
    const sim_time now_ps = sim_task_now(task);
    if (until_ps > now_ps) {
        core->wait_ps[source] += until_ps - now_ps;
        sim_task_charge_until(task, until_ps);
    }
}

static inline enum numa_source source_in(const struct core *core, const sim_time *buffer)
{
    return (enum numa_source)core->buffer_source[buffer - core->buffer_done_ps];
}

/* When the buffer is free again, in both forms. */
static inline void set_buffer(struct core *core, size_t i, sim_time done_ps)
{
    SIM_ASSERT(done_ps < TIMES_EXACT_PS, "a line at %llu ps", (unsigned long long)done_ps);
    core->buffer_done_ps[i] = done_ps;
    core->buffer_done[i] = times_of(done_ps);
}

/* The buffer is taken by an access, unless L1 or L2 satisfied it: one that fetches a line that
 * nobody waits for, or (CORE_NO_LINE) something else. */
static inline void take_buffer(struct core *core, sim_time *buffer, struct numa_result result,
                               uint64_t line)
{
    if (result.source > NUMA_L2) {
        const size_t i = (size_t)(buffer - core->buffer_done_ps);
        set_buffer(core, i, SIM_MAX(result.done_ps, *core->displaced_until_ps));
        core->buffer_line_ps[i] = result.done_ps;
        *core->displaced_until_ps = 0;
        core->buffer_source[i] = (uint8_t)result.source;
        core->buffer_line[i] = line;
    }
}

static inline void arrives(struct numa_result *arrived, struct numa_result result)
{
    if (result.done_ps > arrived->done_ps)
        *arrived = result;
}

/* Waits for a buffer if the access will need one; returns it. */
static sim_time *wait_for_buffer(struct core *core, struct sim_task *task, struct hpa hpa,
                                 bool store, unsigned n_buffers)
{
    const sim_time now_ps = sim_task_now(task);
    sim_time *buffer = free_buffer(core, n_buffers, now_ps);
    if (*buffer > now_ps && !numa_private_hit(core->numa, core->idx, hpa, store))
        wait_until(core, task, *buffer, source_in(core, buffer));
    return buffer;
}

/* When a load of the line is done: a prefetch may be fetching it. */
static inline struct numa_result fetched(const struct core *core, struct hpa hpa,
                                         struct numa_result result)
{
    if (SIM_LIKELY(core->fetching_until_ps <= result.done_ps))
        return result;
    const struct core_params *p = core->params;
    for (unsigned i = 0; i < SIM_MAX(p->line_fill_buffers, p->superqueue_entries); i++)
        if (core->buffer_line[i] == hpa.v >> LINE_LOG2 &&
            core->buffer_line_ps[i] > result.done_ps) {
            result.done_ps = core->buffer_line_ps[i];
            result.source = (enum numa_source)core->buffer_source[i];
        }
    return result;
}

void core_load(struct core *core, struct sim_task *task, struct hpa hpa, struct sim_stamp *stamp)
{
    stay_near(core, task);
    const sim_time *buffer = free_buffer(core, core->params->line_fill_buffers, sim_task_now(task));
    if (*buffer > sim_task_now(task) && !numa_private_hit(core->numa, core->idx, hpa, false))
        wait_until(core, task, *buffer, source_in(core, buffer));
    sim_stamp_mark(stamp, PART_CORE, sim_task_now(task));
    struct numa_result result = numa_load(core->numa, core->idx, hpa, sim_task_now(task), stamp);
    result = fetched(core, hpa, result);
    wait_until(core, task, result.done_ps, result.source);
    sim_stamp_mark(stamp, PART_CORE, sim_task_now(task));
}

/* A store that could ask for its line at at_ps. in_order: core_params.stores_in_order. */
static inline __attribute__((always_inline)) struct numa_result
store_line(struct core *core, struct hpa hpa, bool in_order, sim_time at_ps)
{
    if (SIM_LIKELY(!in_order))
        return numa_store(core->numa, core->idx, hpa, at_ps, NULL);
    *core->observed_ps = 0;
    const struct numa_result result = numa_store(core->numa, core->idx, hpa,
                                                 SIM_MAX(at_ps, core->store_from_ps), NULL);
    core->store_from_ps = SIM_MAX(core->store_from_ps, *core->observed_ps);
    return result;
}

static void access_async(struct core *core, struct sim_task *task, struct hpa hpa, bool store,
                         unsigned n_buffers)
{
    stay_near(core, task);
    sim_time *buffer = wait_for_buffer(core, task, hpa, store, n_buffers);
    struct numa_result result =
        store ? store_line(core, hpa, core->params->stores_in_order, sim_task_now(task))
              : numa_load(core->numa, core->idx, hpa, sim_task_now(task), NULL);
    take_buffer(core, buffer, result, store ? CORE_NO_LINE : hpa.v >> LINE_LOG2);
    if (store)
        arrives(&core->stored, result);
    if (result.source > NUMA_L2) {
        core->n_fills++;
        core->fill_ps += result.done_ps - sim_task_now(task);
        if (!store)
            core->fetching_until_ps = SIM_MAX(core->fetching_until_ps, result.done_ps);
    }
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

void core_fence(struct core *core, struct sim_task *task)
{
    if (core->params->store_buffer_entries > 0)
        wait_until(core, task, core->stored.done_ps, core->stored.source);
}

void core_atomic(struct core *core, struct sim_task *task, struct hpa hpa)
{
    if (core->params->store_buffer_entries == 0)
        core_load(core, task, hpa, NULL);
    core_fence(core, task);
    core_store(core, task, hpa);
    core_fence(core, task);
}

void core_store_nt(struct core *core, struct sim_task *task, struct hpa hpa)
{
    stay_near(core, task);
    sim_time *buffer = free_buffer(core, core->params->line_fill_buffers, sim_task_now(task));

    wait_until(core, task, *buffer, source_in(core, buffer));
    take_buffer(core, buffer, numa_store_nt(core->numa, core->idx, hpa, sim_task_now(task), NULL),
                CORE_NO_LINE);
    sim_task_charge(task, core->issue_ps);
}

void core_load_range(struct core *core, struct sim_task *task, struct hpa hpa, uint64_t bytes)
{
    const uint64_t last = (hpa.v + bytes - 1) >> LINE_LOG2;
    enum numa_source source = NUMA_L1;
    sim_time done_ps = 0;

    for (uint64_t line = hpa.v >> LINE_LOG2;; line++) {
        const struct hpa at = { line << LINE_LOG2 };
        stay_near(core, task);
        sim_time *buffer = wait_for_buffer(core, task, at, false, core->params->line_fill_buffers);
        const struct numa_result result = numa_load(core->numa, core->idx, at, sim_task_now(task),
                                                    NULL);
        take_buffer(core, buffer, result, CORE_NO_LINE);
        const struct numa_result there = fetched(core, at, result);
        if (there.done_ps > done_ps) {
            done_ps = there.done_ps;
            source = there.source;
        }
        if (line == last)
            break;
        sim_task_charge(task, core->issue_ps);
    }
    wait_until(core, task, done_ps, source);
}

void core_fetch(struct core *core, struct sim_task *task, struct hpa hpa, sim_time ahead_ps)
{
    stay_near(core, task);
    const sim_time now_ps = sim_task_now(task);
    const struct numa_result result = numa_fetch(core->numa, core->idx, hpa, now_ps);

    if (result.source != NUMA_L1 && result.done_ps > now_ps + ahead_ps)
        wait_until(core, task, result.done_ps - ahead_ps, result.source);
}

void core_announce(const struct core *core, struct hpa hpa)
{
    numa_prefetch_load(core->numa, core->idx, hpa);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* One access of a copy whose clock is *t. */
static inline __attribute__((always_inline)) struct numa_result
copy_access(struct core *core, struct hpa hpa, bool store, bool in_order, unsigned n_buffers,
            sim_time *t)
{
    sim_time *buffer = free_buffer(core, n_buffers, *t);

    if (*buffer > *t && !numa_private_hit(core->numa, core->idx, hpa, store)) {
        core->wait_ps[source_in(core, buffer)] += *buffer - *t;
        *t = *buffer;
    }
    const struct numa_result result = store ? store_line(core, hpa, in_order, *t)
                                            : numa_load(core->numa, core->idx, hpa, *t, NULL);
    take_buffer(core, buffer, result, CORE_NO_LINE);
    return store ? result : fetched(core, hpa, result);
}

/* A line of a copy that goes past the caches; its data are there at data_ps. The buffer is taken
 * from then on: it is the write-combining buffer that they go to. */
static inline struct numa_result copy_store_nt(struct core *core, struct hpa hpa, sim_time data_ps,
                                               sim_time *t)
{
    sim_time *buffer = free_buffer(core, core->params->line_fill_buffers, *t);

    if (*buffer > *t) {
        core->wait_ps[source_in(core, buffer)] += *buffer - *t;
        *t = *buffer;
    }
    const struct numa_result result = numa_store_nt(core->numa, core->idx, hpa,
                                                    SIM_MAX(*t, data_ps), NULL);
    take_buffer(core, buffer, result, CORE_NO_LINE);
    return result;
}

/* ---- The store buffer ------------------------------------------------------------------------ */

#define FAST_STEP_BYTES 16u /* of rep movs where both addresses are multiples of SLOW_STEP_BYTES */
#define SLOW_STEP_BYTES 8u
#define STORED_LINES    (CORE_STORES_MAX * FAST_STEP_BYTES / LINE_BYTES)

/* Lines that a copy stores into, from the oldest that it does not have yet. */
struct copy_stores {
    unsigned room;                 /* lines of stores that the store buffer takes */
    unsigned first, asked_to, end; /* oldest; first that has not been asked for; next */
    struct hpa line[STORED_LINES];
    sim_time ready_ps[STORED_LINES]; /* its data have come, and those before it */
    struct numa_result got[STORED_LINES];
};

static unsigned copy_room(const struct core *core, struct hpa to, struct hpa from)
{
    const bool fast = (to.v | from.v) % SLOW_STEP_BYTES == 0;
    const unsigned bytes = core->params->store_buffer_entries *
                           (fast ? FAST_STEP_BYTES : SLOW_STEP_BYTES);

    return (bytes + (unsigned)LINE_BYTES - 1) / (unsigned)LINE_BYTES;
}

static inline bool stores_due(const struct copy_stores *s, sim_time until_ps)
{
    return s->asked_to != s->end && s->ready_ps[s->asked_to % STORED_LINES] <= until_ps;
}

/* Asks for the lines whose stores are ready at until_ps: one at least is. */
static void stores_ask_due(struct core *core, struct copy_stores *s, sim_time until_ps)
{
    for (; stores_due(s, until_ps); s->asked_to++) {
        const unsigned i = s->asked_to % STORED_LINES;
        sim_time *buffer = free_buffer(core, core->params->line_fill_buffers, s->ready_ps[i]);
        sim_time at_ps = s->ready_ps[i];
        if (*buffer > at_ps && !numa_private_hit(core->numa, core->idx, s->line[i], true))
            at_ps = *buffer;
        s->got[i] = store_line(core, s->line[i], core->params->stores_in_order, at_ps);
        take_buffer(core, buffer, s->got[i], CORE_NO_LINE);
        if (s->asked_to != s->first)
            arrives(&s->got[i], s->got[(s->asked_to - 1) % STORED_LINES]);
        arrives(&core->stored, s->got[i]);
    }
}

static inline void stores_ask(struct core *core, struct copy_stores *s, sim_time until_ps)
{
    if (stores_due(s, until_ps))
        stores_ask_due(core, s, until_ps);
}

/* Waits until there is room for the stores of one line more. */
static void stores_wait(struct core *core, struct copy_stores *s, sim_time *t)
{
    const unsigned i = s->first % STORED_LINES;

    if (s->end - s->first < s->room)
        return;
    const sim_time ready_ps = SIM_MAX(*t, s->ready_ps[i]);
    stores_ask(core, s, ready_ps);
    const sim_time left_ps = SIM_MAX(ready_ps, s->got[i].done_ps);
    core->wait_ps[s->got[i].source] += left_ps - *t;
    *t = left_ps;
    s->first++;
}

/* core_copy() of a core with a store buffer. */
static void copy_bounded(struct core *core, struct sim_task *task, struct hpa to, struct hpa from,
                         uint64_t bytes, sim_time line_ps, struct numa_result *arrived)
{
    const unsigned demand = core->params->line_fill_buffers;
    const uint64_t from_end = from.v + bytes, to_end = to.v + bytes;
    uint64_t load = from.v & ~(LINE_BYTES - 1), store = to.v & ~(LINE_BYTES - 1);
    struct copy_stores s = { .room = copy_room(core, to, from) };
    sim_time t = sim_task_now(task), data_ps = t;

    for (unsigned n = 0; load < from_end || store < to_end; n++) {
        const sim_time then_ps = t + line_ps;
        stores_wait(core, &s, &t);
        stores_ask(core, &s, t);
        if (load < from_end) {
            const unsigned n_buffers = n < demand ? demand : core->params->superqueue_entries;
            const struct numa_result result = copy_access(core, (struct hpa){ load }, false, false,
                                                          n_buffers, &t);
            arrives(arrived, result);
            data_ps = SIM_MAX(data_ps, result.done_ps);
            load += LINE_BYTES;
        }
        if (store < to_end) {
            s.line[s.end % STORED_LINES] = (struct hpa){ store };
            s.ready_ps[s.end++ % STORED_LINES] = SIM_MAX(t, data_ps);
        }
        store += LINE_BYTES;
        t = SIM_MAX(t, then_ps);
        sim_task_charge_until(task, t);
        stay_near(core, task);
    }
    stores_ask(core, &s, SIM_TIME_MAX);
}

/* ---- Copies of either kind ------------------------------------------------------------------- */

/* Lines of a copy's source of which the host is told before the first is asked for. */
#define ANNOUNCED_LINES 3u

/* n lines of a copy that is loaded and stored through the caches; its clock is *at_ps. */
static void copy_lines(struct core *core, struct sim_task *task, uint64_t load, uint64_t store,
                       unsigned n, sim_time line_ps, struct numa_result *arrived, sim_time *at_ps)
{
    const unsigned demand = core->params->line_fill_buffers;
    struct numa_result last = *arrived;
    unsigned n_buffers = demand;
    sim_time t = *at_ps;

    for (unsigned i = 0; i < n; i++, load += LINE_BYTES, store += LINE_BYTES) {
        const sim_time then_ps = t + line_ps;
        /* The prefetcher follows what the first misses ask for. */
        if (i == demand)
            n_buffers = core->params->superqueue_entries;
        arrives(&last, copy_access(core, (struct hpa){ load }, false, false, n_buffers, &t));
        copy_access(core, (struct hpa){ store }, true, false, demand, &t);
        t = SIM_MAX(t, then_ps);
        sim_task_charge_until(task, t);
        stay_near(core, task);
    }
    *arrived = last;
    *at_ps = t;
}

void core_copy(struct core *core, struct sim_task *task, struct hpa to, struct hpa from,
               uint64_t bytes, sim_time line_ps, bool past_caches, struct numa_result *arrived)
{
    const unsigned demand = core->params->line_fill_buffers;
    const uint64_t from_end = from.v + bytes, to_end = to.v + bytes;
    uint64_t load = from.v & ~(LINE_BYTES - 1), store = to.v & ~(LINE_BYTES - 1);
    const bool in_order = core->params->stores_in_order;
    sim_time t = sim_task_now(task);
    unsigned n = 0;

    if (SIM_UNLIKELY(core->copies_by_rate)) {
        sim_task_charge(task, (from_end - load + LINE_BYTES - 1) / LINE_BYTES *
                                  SIM_MAX(line_ps, 2 * core->issue_ps));
        return;
    }
    numa_prefetch(core->numa, numa_socket_of_core(core->numa, core->idx), from,
                  (unsigned)SIM_MIN(bytes, ANNOUNCED_LINES * LINE_BYTES));
    line_ps = SIM_MAX(line_ps, 2 * core->issue_ps);
    if (core->params->store_buffer_entries > 0 && !past_caches) {
        copy_bounded(core, task, to, from, bytes, line_ps, arrived);
        return;
    }
    if (SIM_LIKELY(!past_caches && !in_order)) {
        n = (unsigned)((SIM_MIN(from_end - load, to_end - store) + LINE_BYTES - 1) / LINE_BYTES);
        copy_lines(core, task, load, store, n, line_ps, arrived, &t);
        load += n * LINE_BYTES;
        store += n * LINE_BYTES;
    }
    for (; load < from_end || store < to_end; n++) {
        sim_time then_ps = t + line_ps, data_ps = 0;
        if (load < from_end) {
            /* The prefetcher follows what the first misses ask for. */
            const unsigned n_buffers = n < demand ? demand : core->params->superqueue_entries;
            const struct numa_result result = copy_access(core, (struct hpa){ load }, false, false,
                                                          n_buffers, &t);
            arrives(arrived, result);
            data_ps = result.done_ps;
            load += LINE_BYTES;
        }
        if (SIM_UNLIKELY(past_caches) && store >= to.v && store + LINE_BYTES <= to_end)
            arrives(arrived, copy_store_nt(core, (struct hpa){ store }, data_ps, &t));
        else if (store < to_end)
            copy_access(core, (struct hpa){ store }, true, in_order, demand, &t);
        store += LINE_BYTES;
        t = SIM_MAX(t, then_ps);
        sim_task_charge_until(task, t);
        stay_near(core, task);
    }
}

void core_wait(struct core *core, struct sim_task *task, struct numa_result arrived)
{
    wait_until(core, task, arrived.done_ps, arrived.source);
}

unsigned core_combining_buffer(struct core *core, struct sim_task *task)
{
    const sim_time *buffer = free_buffer(core, core->params->line_fill_buffers, sim_task_now(task));
    sim_task_charge_until(task, *buffer);
    return (unsigned)(buffer - core->buffer_done_ps);
}

void core_combining_held(struct core *core, unsigned buffer, sim_time done_ps)
{
    set_buffer(core, buffer, done_ps);
    core->buffer_source[buffer] = NUMA_L1;
    core->buffer_line[buffer] = CORE_NO_LINE;
}

void core_drain(struct core *core, struct sim_task *task)
{
    for (unsigned i = 0; i < CORE_BUFFERS_MAX; i++)
        wait_until(core, task, core->buffer_done_ps[i], (enum numa_source)core->buffer_source[i]);
}
