/*
 * Cores that read memory, after Intel's Memory Latency Checker: a pointer chase (idle latency),
 * streams of all cores of a socket (bandwidth), a chase on one core while the others stream at a
 * chosen rate (loaded latency), or two cores that pass a line to and fro (transfer). Sockets of the
 * cores and of the memory are chosen.
 *
 * A chase follows a list through all lines of its buffer, each once, in random order, again and
 * again; a stream goes through them in order. Both have been through the buffer before time begins:
 * one that fits a cache is in it, of a larger one caches hold what was read last.
 *
 * A bandwidth is that of reads, of stores (each line is read, and written back later), of copies
 * from the first half of the buffer to the second, or of sums of two thirds of it into the last
 * (add: STREAM's add and triad). Copies and sums store through the caches or (copy_nt, triad) past
 * them.
 *
 * A transfer: each core in turn loads a line that the other has just stored into, and stores into
 * it when the load has ended; the next one begins when the store has. Nobody polls: what a message
 * costs the caches, without the software.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/watchdog.h"
#include "workloads/base/sampling.h"

enum memory_mode { MEMORY_LATENCY, MEMORY_BANDWIDTH, MEMORY_LOADED, MEMORY_TRANSFER };
static const char *const mode_names[] = { "latency", "bandwidth", "loaded", "transfer", NULL };

enum memory_access {
    ACCESS_READ,
    ACCESS_STORE,
    ACCESS_TRIAD,
    ACCESS_COPY,
    ACCESS_COPY_NT,
    ACCESS_ADD
};
static const char *const access_names[] = {
    "read", "store", "triad", "copy", "copy_nt", "add", NULL
};
/* What a step reads and stores: one line of each of n_reads parts of the buffer, and (stores) one
 * of the last part. */
static const struct {
    unsigned n_reads;
    bool stores, past_caches;
} steps[] = {
    [ACCESS_READ] = { 1, false, false },  [ACCESS_STORE] = { 0, true, false },
    [ACCESS_TRIAD] = { 2, true, true },   [ACCESS_COPY] = { 1, true, false },
    [ACCESS_COPY_NT] = { 1, true, true }, [ACCESS_ADD] = { 2, true, false },
};

struct memory_state;

struct memory_thread {
    struct memory_state *memory;
    struct core *core;
    struct hpa buffer;
    bool chases;
    uint64_t n_lines; /* of the buffer */
    uint64_t
        part_lines; /* of each part of it that a step reads or stores; what is over is not used */
    uint64_t next;  /* place in a part, in the order in which its lines are touched */
    unsigned order_bits; /* a chase's order, see line_at() */
    uint64_t order_key[2];
    uint64_t lines; /* while measuring */
};

struct memory_state {
    /* parameters */
    const char *host_name;
    int mode, access;
    uint32_t from_socket, to_socket, sockets, cores, peer_core;
    bool own_memory;
    uint64_t buffer_bytes;
    sim_time inject_delay_ps;
    /* running */
    struct workload *workload;
    struct host *host;
    struct memory_thread *thread;
    unsigned n_threads, n_finished;
    sim_time begin_ps, end_ps;
    sim_time last_ps; /* of the last access */
    bool done;
    /* measured */
    struct stat_mean latency_ns, store_ns;
    struct stat_histogram latency_ps;
    struct part_means parts;
    double lines_at[SETTLE_PARTS + 1]; /* at the ends of equal parts */
    struct rate_sampler sampler;
    struct sampling sampling;
    bool sampled;
    struct sim_watch watch;
};

static const struct param_desc memory_params[] = {
    PARAM_TEXT("host", struct memory_state, host_name, "server", "the host"),
    PARAM_ONE_OF("mode", struct memory_state, mode, MEMORY_LATENCY, mode_names, PROV_NONE, "",
                 "latency: one core chases pointers; bandwidth: cores stream; loaded: both; "
                 "transfer: two cores pass a line to and fro"),
    PARAM_ONE_OF(
        "access", struct memory_state, access, ACCESS_READ, access_names, PROV_NONE, "",
        "of streaming cores, bandwidth only: read; store: one write for each read; copy and "
        "copy_nt: one store, ordinary or non-temporal, for each read; add and triad: the "
        "same for two reads"),
    PARAM("from_socket", PARAM_U32, struct memory_state, from_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the cores"),
    PARAM("to_socket", PARAM_U32, struct memory_state, to_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the memory"),
    PARAM("own_memory", PARAM_BOOL, struct memory_state, own_memory, 0, 0, 1, PROV_NONE, "",
          "each core uses memory of its own socket instead"),
    PARAM("sockets", PARAM_U32, struct memory_state, sockets, 1, 1, 8, PROV_NONE, "",
          "sockets whose cores are in use, from from_socket on"),
    PARAM("cores", PARAM_U32, struct memory_state, cores, 0, 0, 1024, PROV_NONE, "",
          "cores in use of each of these sockets; 0: all (latency: one)"),
    PARAM("buffer_bytes", PARAM_BYTES, struct memory_state, buffer_bytes, 268435456, 4096, 1e12,
          PROV_NONE, "", "per core"),
    PARAM("peer_core", PARAM_U32, struct memory_state, peer_core, 1, 0, 1023, PROV_NONE, "",
          "core of the host with which the first of from_socket passes a line; transfer only"),
    PARAM("inject_delay_ns", PARAM_TIME, struct memory_state, inject_delay_ps, 0, 0, 1e6, PROV_NONE,
          "", "pause of streaming cores between lines; loaded only"),
    { .type = PARAM_END },
};

static const struct record_desc memory_records[] = {
    { "read_gbyte_s", RECORD_METRIC, "GB/s",
      "read by all cores; with access = store also what a store reads of its line" },
    { "load_latency_ns", RECORD_METRIC, "ns",
      "latency, loaded: mean of a dependent load; transfer: of a line that the other core modified" },
    { "store_latency_ns", RECORD_METRIC, "ns",
      "transfer: mean of a store into a line that the other core has, too" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "the same, each load" },
    { "latency_part_ns.*", RECORD_METRIC, "ns", "where it comes from (measure.latency_parts)" },
    { "read_gbyte_s", RECORD_SERIES, "GB/s", "read by all cores (measure.sample_interval_us)" },
    { "memory_gbyte_s", RECORD_SERIES, "GB/s", "DRAM traffic (measure.sample_interval_us)" },
    { "load_latency_ns", RECORD_SERIES, "ns", "of loads that ended in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static uint64_t read_bytes(const struct workload *workload, unsigned idx)
{
    const struct memory_state *memory = workload->state;
    uint64_t lines = 0;
    (void)idx;
    for (unsigned t = 0; t < memory->n_threads; t++)
        lines += memory->thread[t].lines;
    return lines * LINE_BYTES;
}

static uint64_t latencies_ps(const struct workload *workload, unsigned idx)
{
    (void)idx;
    return (uint64_t)((const struct memory_state *)workload->state)->latency_ps.sum;
}

static uint64_t latencies(const struct workload *workload, unsigned idx)
{
    (void)idx;
    return ((const struct memory_state *)workload->state)->latency_ps.n;
}

static const struct rate_series memory_series[] = {
    { "read_gbyte_s", "GB/s", 1e-9, read_bytes, NULL },
    { "memory_gbyte_s", "GB/s", 1e-9, workload_dram_bytes, NULL },
    { "load_latency_ns", "ns", 1e-3, latencies_ps, latencies },
};

static void transfer_check(struct workload *workload, struct sim_error_list *errors)
{
    const struct memory_state *memory = workload->state;
    const unsigned n = numa_cores(host_numa(memory->host));
    if (memory->sockets > 1)
        workload_mistake(workload, "sockets", errors, "1 with mode = \"transfer\"", NULL);
    if (memory->cores > 1)
        workload_mistake(workload, "cores", errors, "0 or 1 with mode = \"transfer\"", NULL);
    if (memory->peer_core >= n ||
        memory->peer_core == memory->from_socket * (n / numa_sockets(host_numa(memory->host))))
        workload_mistake(workload, "peer_core", errors,
                         "a core of the host other than the first of from_socket", NULL);
}

/* What ends a measurement, and what is recorded of it. */
static void check_measure(struct workload *workload, struct sim_error_list *errors)
{
    const struct memory_state *memory = workload->state;
    const struct measure_params *measure = &workload->measure;

    if (memory->mode == MEMORY_BANDWIDTH && measure->transactions != 0)
        config_mistake(config_find(config_root(workload->config), "measure.transactions"), errors,
                       "no transactions: bandwidth is measured for duration_us", NULL);
    if (memory->mode == MEMORY_LOADED && measure->transactions != 0)
        workload_measure_no_effect(
            workload, "transactions", "mode", errors,
            "no transactions: mode = \"loaded\" is measured for duration_us");
    if (memory->mode == MEMORY_BANDWIDTH && measure->latency_parts)
        workload_measure_no_effect(workload, "latency_parts", "mode", errors,
                                   "no latency_parts: mode = \"bandwidth\" has no latency");
}

static void memory_check(struct workload *workload, struct sim_error_list *errors)
{
    struct memory_state *memory = workload->state;
    memory->workload = workload;
    if (memory->mode != MEMORY_LOADED)
        workload_no_effect(workload, "inject_delay_ns", "mode", errors,
                           "mode = \"loaded\" beside it: it has no effect otherwise");
    if (memory->mode != MEMORY_BANDWIDTH)
        workload_no_effect(workload, "access", "mode", errors,
                           "mode = \"bandwidth\" beside it: it has no effect otherwise");
    if (memory->mode != MEMORY_TRANSFER)
        workload_no_effect(workload, "peer_core", "mode", errors,
                           "mode = \"transfer\" beside it: it has no effect otherwise");
    memory->host = world_host(workload->world, memory->host_name);
    if (memory->host == NULL) {
        if (!world_faulty(workload->world, memory->host_name))
            workload_mistake(workload, "host", errors, "a host", world_host_names(workload->world));
        return;
    }
    struct numa *numa = host_numa(memory->host);
    if (memory->from_socket >= numa_sockets(numa))
        workload_mistake(workload, "from_socket", errors, "a socket of the host", NULL);
    else if (memory->from_socket + memory->sockets > numa_sockets(numa))
        workload_mistake(workload, "sockets", errors, "at most the host's, from from_socket on",
                         NULL);
    if (memory->mode == MEMORY_LATENCY && memory->sockets > 1)
        workload_mistake(workload, "sockets", errors, "1 with mode = \"latency\"", NULL);
    if (memory->mode == MEMORY_TRANSFER)
        transfer_check(workload, errors);
    if (memory->to_socket >= physmem_nodes(host_physmem(memory->host)))
        workload_mistake(workload, "to_socket", errors, "a socket of the host that has memory",
                         NULL);
    if (memory->own_memory && physmem_nodes(host_physmem(memory->host)) < numa_sockets(numa))
        workload_mistake(workload, "own_memory", errors,
                         "false: sockets of the host have no memory", NULL);
    check_measure(workload, errors);
    if (memory->cores > numa_cores(numa) / numa_sockets(numa))
        workload_mistake(workload, "cores", errors, "at most the cores of one socket", NULL);
}

/* The thread is done, at its own time. */
static void finished(struct memory_state *memory, struct sim_task *task)
{
    memory->last_ps = SIM_MAX(memory->last_ps, sim_task_now(task));
    sim_task_sync(task);
    if (++memory->n_finished == memory->n_threads) {
        memory->done = true;
        sim_stop(memory->workload->sim);
    }
}

/* A permutation of the numbers of so many bits: each step can be undone. */
static uint64_t permuted(const struct memory_thread *thread, uint64_t place)
{
    const uint64_t mask = (UINT64_C(1) << thread->order_bits) - 1;
    const unsigned half = (thread->order_bits + 1) / 2;

    for (unsigned round = 0; round < 3; round++) {
        place = (place * UINT64_C(0x9e3779b97f4a7c15) + thread->order_key[round % 2]) & mask;
        place ^= place >> half;
    }
    return place;
}

/* The line at that place of the order in which the thread reads; place < n_lines. */
static struct hpa line_at(const struct memory_thread *thread, uint64_t place)
{
    /* What falls beyond the buffer is permuted on until it does not: still a permutation. */
    if (thread->chases)
        do
            place = permuted(thread, place);
        while (place >= thread->n_lines);
    return (struct hpa){ thread->buffer.v + place * LINE_BYTES };
}

static uint64_t next_place(struct memory_thread *thread)
{
    const uint64_t place = thread->next;

    thread->next = place + 1 == thread->part_lines ? 0 : place + 1;
    return place;
}

/* Loads that depend on each other. */
static void chase(struct sim_task *task, void *arg)
{
    struct memory_thread *thread = arg;
    struct memory_state *memory = thread->memory;
    struct sim_stamp stamp;
    bool parts = memory->workload->measure.latency_parts;
    while (sim_task_now(task) < memory->end_ps) {
        struct hpa at = line_at(thread, next_place(thread));
        sim_time start_ps = sim_task_now(task);
        sim_stamp_start(&stamp, start_ps);
        core_load(thread->core, task, at, parts ? &stamp : NULL);
        if (start_ps < memory->begin_ps)
            continue;
        sim_time took_ps = sim_task_now(task) - start_ps;
        thread->lines++;
        stat_mean_add(&memory->latency_ns, (double)took_ps / 1000.0);
        stat_histogram_add(&memory->latency_ps, took_ps);
        if (parts)
            part_means_add(memory->workload, &memory->parts, &stamp, sim_task_now(task));
        if (memory->mode == MEMORY_LATENCY &&
            workload_measured(memory->workload, &memory->latency_ns))
            break;
    }
    finished(memory, task);
}

/* A store that is waited for. */
static void own_line(struct core *core, struct sim_task *task, struct hpa hpa)
{
    sim_task_charge_until(task,
                          numa_store(core->numa, core->idx, hpa, sim_task_now(task), NULL).done_ps);
}

/* A line goes to and fro between two cores; the task is either's in turn. */
static void transfer(struct sim_task *task, void *arg)
{
    struct memory_thread *thread = arg;
    struct memory_state *memory = thread->memory;
    struct core *cores[] = { thread->core, host_core(memory->host, memory->peer_core) };
    struct sim_stamp stamp;
    const bool parts = memory->workload->measure.latency_parts;

    own_line(cores[1], task, thread->buffer);
    for (unsigned to = 0; sim_task_now(task) < memory->end_ps; to ^= 1) {
        const sim_time start_ps = sim_task_now(task);
        sim_stamp_start(&stamp, start_ps);
        core_load(cores[to], task, thread->buffer, parts ? &stamp : NULL);
        const sim_time loaded_ps = sim_task_now(task);
        own_line(cores[to], task, thread->buffer);
        if (start_ps < memory->begin_ps)
            continue;
        thread->lines++;
        stat_mean_add(&memory->latency_ns, (double)(loaded_ps - start_ps) / 1000.0);
        stat_mean_add(&memory->store_ns, (double)(sim_task_now(task) - loaded_ps) / 1000.0);
        stat_histogram_add(&memory->latency_ps, loaded_ps - start_ps);
        if (parts)
            part_means_add(memory->workload, &memory->parts, &stamp, loaded_ps);
        if (workload_measured(memory->workload, &memory->latency_ns))
            break;
    }
    finished(memory, task);
}

static unsigned parts_of(const struct memory_state *memory)
{
    return steps[memory->access].n_reads + (steps[memory->access].stores ? 1 : 0);
}

/* One step of a stream; returns how many lines it reads. */
static unsigned stream_step(struct memory_thread *thread, struct sim_task *task)
{
    const enum memory_access access = (enum memory_access)thread->memory->access;
    const unsigned n_reads = steps[access].n_reads;
    const uint64_t part = thread->part_lines, place = next_place(thread);

    for (unsigned i = 0; i < n_reads; i++)
        core_load_stream(thread->core, task, line_at(thread, place + i * part));
    if (steps[access].past_caches)
        core_store_nt(thread->core, task, line_at(thread, place + n_reads * part));
    else if (steps[access].stores)
        core_store(thread->core, task, line_at(thread, place + n_reads * part));
    return SIM_MAX(n_reads, 1u);
}

/* Independent accesses in address order, as many under way as the core can. */
static void stream(struct sim_task *task, void *arg)
{
    struct memory_thread *thread = arg;
    struct memory_state *memory = thread->memory;
    while (sim_task_now(task) < memory->end_ps) {
        const unsigned n_lines = stream_step(thread, task);
        if (sim_task_now(task) >= memory->begin_ps && sim_task_now(task) < memory->end_ps)
            thread->lines += n_lines;
        if (memory->mode == MEMORY_LOADED)
            sim_task_charge(task, memory->inject_delay_ps);
    }
    finished(memory, task);
}

static void thread_init(struct memory_thread *thread, unsigned idx, const char *name)
{
    struct memory_state *memory = thread->memory;
    struct sim_random random;

    sim_random_init(&random, sim_seed(memory->workload->sim), name);
    thread->chases = memory->mode == MEMORY_LATENCY || (memory->mode == MEMORY_LOADED && idx == 0);
    thread->n_lines = memory->buffer_bytes / LINE_BYTES;
    thread->part_lines = thread->n_lines / parts_of(memory);
    thread->next = sim_random_below(&random, thread->n_lines) % thread->part_lines;
    while (UINT64_C(1) << thread->order_bits < thread->n_lines)
        thread->order_bits++;
    for (unsigned i = 0; i < 2; i++)
        thread->order_key[i] = sim_random_u64(&random);
}

/* Touches the lines that the thread's stream or chase has touched `ago` steps before it begins. */
static void touch(const struct memory_state *memory, const struct memory_thread *thread,
                  uint64_t ago)
{
    struct numa *numa = host_numa(memory->host);
    const unsigned n_parts = parts_of(memory), n_reads = steps[memory->access].n_reads;
    const uint64_t part = thread->part_lines;
    const uint64_t back = ago < part ? ago : ago % part;
    const uint64_t place = thread->next >= back ? thread->next - back : thread->next + part - back;

    for (unsigned i = 0; i < n_parts; i++) {
        const struct hpa hpa = line_at(thread, place + i * part);
        if (i < n_reads)
            numa_warm_load(numa, thread->core->idx, hpa);
        else if (!steps[memory->access].past_caches)
            numa_warm_core(numa, thread->core->idx, hpa, LINE_BYTES);
    }
}

/* The socket whose memory the cores of `socket` use. */
static unsigned memory_of(const struct memory_state *memory, unsigned socket)
{
    return memory->own_memory ? socket : memory->to_socket;
}

/*
 * Leaves the state in which a pass over all buffers leaves caches and directory. Of buffers that
 * are larger than the caches together only the end of the pass is read, twice what the caches
 * hold: nothing of what is before can be left.
 */
static void touch_buffers(struct memory_state *memory)
{
    struct numa *numa = host_numa(memory->host);
    const uint64_t share = 2 * numa_cache_bytes(numa) / LINE_BYTES / memory->n_threads + 1;
    const uint64_t n = SIM_MIN(memory->thread[0].n_lines, share);

    for (unsigned t = 0; t < memory->n_threads; t++) {
        const unsigned socket = numa_socket_of_core(numa, memory->thread[t].core->idx);
        if (socket != memory_of(memory, socket) && n < memory->thread[t].n_lines)
            numa_warm_forgotten(numa, socket, memory->thread[t].buffer, memory->buffer_bytes);
    }
    for (uint64_t i = 0; i < n; i++)
        for (unsigned t = 0; t < memory->n_threads; t++)
            touch(memory, &memory->thread[t], n - i);
}

static bool start_threads(struct memory_state *memory)
{
    struct workload *workload = memory->workload;
    struct numa *numa = host_numa(memory->host);
    unsigned per_socket = numa_cores(numa) / numa_sockets(numa);
    const unsigned cores = memory->cores != 0 ? memory->cores
                           : memory->mode == MEMORY_LATENCY || memory->mode == MEMORY_TRANSFER
                               ? 1
                               : per_socket;
    memory->n_threads = memory->sockets * cores;
    memory->thread = sim_zalloc(memory->n_threads, sizeof(*memory->thread));
    for (unsigned t = 0; t < memory->n_threads; t++) {
        struct memory_thread *thread = &memory->thread[t];
        char name[48];
        snprintf(name, sizeof(name), "memory.%u", t);
        const unsigned socket = memory->from_socket + t / cores;
        thread->memory = memory;
        thread->core = host_core(memory->host, socket * per_socket + t % cores);
        thread_init(thread, t, name);
        if (!physmem_alloc(host_physmem(memory->host), memory_of(memory, socket),
                           memory->buffer_bytes, PAGE_BYTES, &thread->buffer)) {
            sim_fail(workload->sim, "no memory for a buffer of %llu bytes on socket %u",
                     (unsigned long long)memory->buffer_bytes, memory_of(memory, socket));
            return false;
        }
        struct sim_task *task = sim_task_new(workload->sim, name, 0,
                                             memory->mode == MEMORY_TRANSFER ? transfer
                                             : thread->chases                ? chase
                                                                             : stream,
                                             thread);
        sim_task_start(task, sim_now(workload->sim));
    }
    touch_buffers(memory);
    return true;
}

static void sample_lines(void *context, unsigned i)
{
    struct memory_state *memory = context;
    memory->lines_at[i] = (double)read_bytes(memory->workload, 0) / LINE_BYTES;
}

/* sampling_read_fn; beside the flows of the world. */
static void read_lines(void *context, struct sampling *sampling)
{
    struct memory_state *memory = context;
    sampling_add(sampling, "memory", ".read_bytes", SAMPLING_FLOW,
                 (double)read_bytes(memory->workload, 0), -1);
}

#define AHEAD_PS \
    (2 *         \
     SIM_PS_PER_US) /* more than any quantum, a microsecond at most: no task is further ahead of
                     * global time */

/* As much of the warm-up as is needed; tasks are told of its end before they are there. */
static void warm_up(struct memory_state *memory)
{
    struct workload *workload = memory->workload;
    const bool never = false;
    if (memory->sampled) {
        sampling_warm_up(&memory->sampling, workload->measure.warmup_ps);
        memory->begin_ps = SIM_MIN(memory->begin_ps, sim_now(workload->sim) + AHEAD_PS);
        memory->end_ps = memory->begin_ps + workload->measure.duration_ps;
    }
    workload_run_until(workload, &never, memory->begin_ps);
}

/* The time that is measured; again tasks are told of its end before. */
static void measure(struct memory_state *memory)
{
    struct workload *workload = memory->workload;
    if (!memory->sampled) {
        workload_run_parts(workload, &memory->done, memory->end_ps, sample_lines, memory);
        return;
    }
    sampling_measure(&memory->sampling, &memory->done, memory->end_ps, sample_lines, memory);
    if (memory->sampling.ended_early) {
        memory->end_ps = SIM_MIN(memory->end_ps, sim_now(workload->sim) + AHEAD_PS);
        workload_run_until(workload, &memory->done, memory->end_ps);
    }
}

/* Its tasks work as long as there is time, if only within the caches next to them. */
static uint64_t work(struct sim_watch *watch)
{
    return sim_now(SIM_CONTAINER(watch, struct memory_state, watch)->workload->sim);
}

static void memory_run(struct workload *workload)
{
    struct memory_state *memory = workload->state;
    stat_mean_init(&memory->latency_ns);
    stat_mean_init(&memory->store_ns);
    stat_histogram_init(&memory->latency_ps);
    memory->begin_ps = sim_now(workload->sim) + workload->measure.warmup_ps;
    memory->end_ps = memory->begin_ps + workload->measure.duration_ps;
    sampling_init(&memory->sampling, workload, read_lines, memory);
    memory->sampled = memory->mode == MEMORY_BANDWIDTH && workload->measure.precision_ratio != 0 &&
                      workload->measure.sample_interval_ps == 0;
    if (!start_threads(memory))
        return;
    memory->watch.work = work;
    sim_watch_add(workload->sim, &memory->watch);
    warm_up(memory);
    world_stats_clear(workload->world);
    rate_sampler_start(&memory->sampler, workload, memory_series, SIM_N_ELEMENTS(memory_series));
    measure(memory);
    const bool whole = !memory->done && !memory->sampling.ended_early;
    rate_sampler_stop(&memory->sampler);
    if (!workload_goes_on(workload))
        return;
    /* At this instant: loads that are under way end later, but count to the loads only. */
    workload_record_world(workload, NULL, sim_now(workload->sim) - memory->begin_ps);
    if (memory->sampled)
        sampling_note(&memory->sampling);
    workload_run_until(workload, &memory->done, SIM_TIME_MAX);
    if (!memory->done)
        return;
    if (memory->mode != MEMORY_BANDWIDTH && memory->latency_ns.n == 0) {
        sim_fail(workload->sim,
                 "not one load began within measure.duration_us: it is too short for a latency");
        return;
    }
    sim_time duration_ps = SIM_MIN(memory->last_ps, memory->end_ps) - memory->begin_ps;
    run_result_metric(workload->result, "read_gbyte_s", "GB/s",
                      (double)read_bytes(workload, 0) * 1000.0 / (double)duration_ps);
    if (memory->latency_ns.n != 0)
        workload_mean_settled(workload, "load_latency_ns", &memory->latency_ns);
    else if (whole)
        workload_count_settled(workload, "read_gbyte_s", memory->lines_at, 1);
    if (memory->latency_ns.n != 0) {
        run_result_metric(workload->result, "load_latency_ns", "ns",
                          stat_mean_value(&memory->latency_ns));
        if (memory->store_ns.n != 0)
            run_result_metric(workload->result, "store_latency_ns", "ns",
                              stat_mean_value(&memory->store_ns));
        run_result_histogram(workload->result, "latency_ns", "ns", 0.001, &memory->latency_ps);
        part_means_record(workload, &memory->parts);
    }
}

static void memory_release(struct workload *workload)
{
    struct memory_state *memory = workload->state;
    sim_watch_remove(workload->sim, &memory->watch);
    stat_histogram_release(&memory->latency_ps);
    sampling_release(&memory->sampling);
    free(memory->thread);
}

const struct workload_ops workload_memory_ops = {
    .type = "memory",
    .help = "cores that read memory: idle latency, bandwidth, loaded latency",
    .state_bytes = sizeof(struct memory_state),
    .params = memory_params,
    .records = memory_records,
    .check = memory_check,
    .run = memory_run,
    .release = memory_release,
};
