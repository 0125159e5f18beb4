/*
 * Cores that go through arrays of their own line by line, after the antagonists of Understanding
 * the Host Network: they read each line, or store into it, which reads it and writes it back later.
 * Nothing is prefetched: what a core has under way is bounded by its line-fill buffers.
 *
 * Counted is what the counters of a core show: lines that took a line-fill buffer, and how long
 * they had it (Intel: L1D_PEND_MISS.PENDING over the lines).
 *
 * Before time begins each core has been through as much of its array as fits into its share of the
 * caches: they hold what the cores leave there, so that lines are written back from the beginning.
 */
#include <stdio.h>

#include "models/os/os.h"
#include "workloads/load/load_programs.h"

#define LINES_PER_POLL 16u

enum stream_access { STREAM_READ, STREAM_READ_WRITE };
static const char *const access_names[] = { "read", "read_write", NULL };

struct memory_stream;

struct memory_stream_core {
    struct memory_stream *stream;
    struct kaddr array;
    unsigned cpu;
    uint64_t line;
    uint64_t fills_before; /* of the core, when measuring began */
    sim_time fill_ps_before;
};

struct memory_stream {
    /* parameters */
    const char *host_name;
    uint32_t n_cores, cpu, node;
    int access;
    uint64_t array_bytes;
    sim_time start_ps;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct memory_stream_core *core;
};

static const struct param_desc memory_stream_params[] = {
    PARAM_TEXT("on", struct memory_stream, host_name, "server", "host of the group `lending`"),
    PARAM("cores", PARAM_U32, struct memory_stream, n_cores, 1, 0, 64, PROV_NONE, "",
          "that stream, a thread on each"),
    PARAM("cpu", PARAM_U32, struct memory_stream, cpu, 0, 0, 255, PROV_NONE, "",
          "of the first; the others follow"),
    PARAM("node", PARAM_U32, struct memory_stream, node, 0, 0, 7, PROV_NONE, "",
          "whose memory the arrays are in"),
    PARAM_ONE_OF("access", struct memory_stream, access, STREAM_READ, access_names, PROV_NONE, "",
                 "read_write: stores, each of which reads its line and has it written back later"),
    PARAM("array_bytes", PARAM_BYTES, struct memory_stream, array_bytes, 1073741824, 65536, 1e12,
          PROV_NONE, "", "of each core"),
    PARAM("start_us", PARAM_TIME, struct memory_stream, start_ps, 0, 0, 1e7, PROV_NONE, "",
          "after the other programs"),
    { .type = PARAM_END },
};

static const struct record_desc memory_stream_records[] = {
    { "+core_gbyte_s", RECORD_METRIC, "GB/s",
      "lines that cores fetched; read_write: and as many that they write back" },
    { "core_latency_ns", RECORD_METRIC, "ns",
      "mean time from a line-fill buffer taken to the data" },
    { "core_fill_buffers", RECORD_METRIC, "1", "line-fill buffers taken, mean of a core" },
    { "+core_gbyte_s", RECORD_SERIES, "GB/s", "what cores moved per interval" },
    { "core_latency_ns", RECORD_SERIES, "ns", "mean of lines fetched in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void memory_stream_check(struct program *program, struct sim_error_list *errors)
{
    struct memory_stream *stream = program->state;
    stream->program = program;
    program->eventful = stream->start_ps != 0;
    stream->host = program_lending_host(program, "on", stream->host_name, errors);
    if (stream->host == NULL)
        return;
    if (stream->n_cores != 0)
        program_check_cpus(program, "cores", stream->host, stream->cpu, stream->n_cores, errors);
    program_check_arrays(program, stream->host, stream->node, stream->array_bytes, stream->n_cores,
                         errors);
}

static struct hpa next_line(struct memory_stream_core *at)
{
    const struct hpa hpa = { at->array.v + at->line * LINE_BYTES };

    at->line = (at->line + 1) * LINE_BYTES == at->stream->array_bytes ? 0 : at->line + 1;
    return hpa;
}

static void memory_stream_body(void *arg)
{
    struct memory_stream_core *at = arg;
    const struct memory_stream *stream = at->stream;
    struct kernel *os = stream->host->kernel;
    if (stream->start_ps != 0)
        k_sleep(os, stream->start_ps);
    while (!program_ending(stream->program)) {
        const uint64_t begin_ps = k_now_ps(os);
        struct core *core = os_core(os);
        struct sim_task *task = os_task(os);
        for (unsigned i = 0; i < LINES_PER_POLL; i++) {
            if (stream->access == STREAM_READ)
                core_load_async(core, task, next_line(at));
            else
                core_store(core, task, next_line(at));
        }
        program_operation_ended(stream->program, begin_ps);
        os_poll(os);
    }
}

static void warm(struct memory_stream *stream)
{
    struct numa *numa = host_numa(stream->host->host);
    const uint64_t share = numa_cache_bytes(numa) / LINE_BYTES / stream->n_cores;
    const uint64_t lines = SIM_MIN(share, stream->array_bytes / LINE_BYTES);
    for (uint64_t k = 0; k < lines; k++)
        for (unsigned i = 0; i < stream->n_cores; i++) {
            struct memory_stream_core *at = &stream->core[i];
            const unsigned core = lending_core(stream->host, at->cpu);
            if (stream->access == STREAM_READ)
                numa_warm_load(numa, core, next_line(at));
            else
                numa_warm_core(numa, core, next_line(at), LINE_BYTES);
        }
}

static void memory_stream_start(struct program *program)
{
    struct memory_stream *stream = program->state;
    struct kernel *os = stream->host->kernel;
    char name[64];
    stream->core = program_zalloc(program, stream->n_cores + 1, sizeof(*stream->core));
    for (unsigned i = 0; i < stream->n_cores; i++) {
        struct memory_stream_core *at = &stream->core[i];
        struct sim_random random;
        *at = (struct memory_stream_core){ .stream = stream, .cpu = stream->cpu + i };
        at->array = k_alloc(os, (int)stream->node, stream->array_bytes, K_PAGE_BYTES);
        if (at->array.v == 0) {
            program_fail(program, "no memory left on node %u for an array of %llu bytes",
                         stream->node, (unsigned long long)stream->array_bytes);
            return;
        }
        snprintf(name, sizeof(name), "%.40s%u", program->name, i);
        sim_random_init(&random, sim_seed(program->workload->sim), name);
        at->line = sim_random_below(&random, stream->array_bytes / LINE_BYTES);
    }
    if (stream->n_cores != 0)
        warm(stream);
    for (unsigned i = 0; i < stream->n_cores; i++) {
        snprintf(name, sizeof(name), "%.40s%u", program->name, i);
        program_lending_uses_cpu(program, stream->host, stream->core[i].cpu);
        k_thread_new(os, name, (int)stream->core[i].cpu, memory_stream_body, &stream->core[i]);
    }
}

static const struct core *core_of(const struct memory_stream_core *at)
{
    struct lending_host *host = at->stream->host;

    return host_core(host->host, lending_core(host, at->cpu));
}

static void memory_stream_measure(struct program *program)
{
    struct memory_stream *stream = program->state;
    for (unsigned i = 0; i < stream->n_cores; i++) {
        stream->core[i].fills_before = core_of(&stream->core[i])->n_fills;
        stream->core[i].fill_ps_before = core_of(&stream->core[i])->fill_ps;
    }
}

static uint64_t fills(const struct program *program)
{
    const struct memory_stream *stream = program->state;
    uint64_t lines = 0;
    for (unsigned i = 0; i < stream->n_cores; i++)
        lines += core_of(&stream->core[i])->n_fills - stream->core[i].fills_before;
    return lines;
}

static uint64_t fills_held_ps(const struct program *program)
{
    const struct memory_stream *stream = program->state;
    sim_time held_ps = 0;
    for (unsigned i = 0; i < stream->n_cores; i++)
        held_ps += core_of(&stream->core[i])->fill_ps - stream->core[i].fill_ps_before;
    return held_ps;
}

static uint64_t bytes_moved(const struct program *program)
{
    const struct memory_stream *stream = program->state;
    return fills(program) * LINE_BYTES * (stream->access == STREAM_READ ? 1 : 2);
}

static const struct program_rate memory_stream_rates[] = {
    { "core_gbyte_s", 1e-9, bytes_moved, NULL },
    { "core_latency_ns", 1e-3, fills_held_ps, fills },
    { NULL, 0, NULL, NULL },
};

static void memory_stream_record(struct program *program, sim_time duration_ps)
{
    struct memory_stream *stream = program->state;
    const double per_line = stream->access == STREAM_READ ? 1 : 2;
    const uint64_t lines = fills(program);
    const sim_time held_ps = fills_held_ps(program);
    if (lines != 0 && !program_has_measured(program, "run over some lines"))
        return;
    program_metric(program, "core_gbyte_s", "GB/s",
                   per_line * (double)lines * LINE_BYTES * 1000.0 / (double)duration_ps);
    if (lines == 0)
        return;
    program_metric(program, "core_latency_ns", "ns", (double)held_ps / (double)lines / 1000.0);
    program_metric(program, "core_fill_buffers", "1",
                   (double)held_ps / (double)duration_ps / stream->n_cores);
}

const struct program_ops program_memory_stream_ops = {
    .type = "memory_stream",
    .help = "cores that read arrays line by line, or store into them, without prefetches",
    .steady = true,
    .state_bytes = sizeof(struct memory_stream),
    .params = memory_stream_params,
    .records = memory_stream_records,
    .rates = memory_stream_rates,
    .check = memory_stream_check,
    .start = memory_stream_start,
    .measure = memory_stream_measure,
    .record = memory_stream_record,
};
