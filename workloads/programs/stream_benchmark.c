/*
 * STREAM, the benchmark: instances of one thread each that run its four kernels in turn,
 *     copy c = a, scale b = q c, add c = a + b, triad a = b + q c,
 * with ordinary stores, which read a line before they write it, or with non-temporal ones. The
 * benchmark goes through whole arrays, kernel by kernel; here kernels change after block_bytes,
 * from a place and a kernel of each instance's own, so that what is measured is the mean over the
 * kernels although it is short. Counted as STREAM counts: what the kernels name, not what stores
 * read.
 *
 * The caches are as the instances leave them; the directory knows of all lines. Else the first
 * lines would displace nothing, for as long as most runs take.
 */
#include <stdio.h>

#include "models/os/os.h"
#include "workloads/programs/program.h"

#define LINES_PER_POLL 16u
#define N_ARRAYS       3u
#define N_KERNELS      4u

/* What a kernel reads and writes: arrays a, b, c. */
static const struct stream_kernel {
    unsigned n_reads, reads[2], writes;
} kernels[N_KERNELS] = {
    { 1, { 0, 0 }, 2 },
    { 1, { 2, 0 }, 1 },
    { 2, { 0, 1 }, 2 },
    { 2, { 1, 2 }, 0 },
};

struct stream_benchmark;

struct stream_instance {
    struct stream_benchmark *stream;
    struct kaddr array[N_ARRAYS];
    unsigned cpu, kernel;
    uint64_t line, in_block; /* next line of the arrays, place in the block */
    uint64_t lines;          /* while measuring */
};

struct stream_benchmark {
    /* parameters */
    const char *host_name;
    uint32_t n_instances, cpu, node;
    int stores;
    uint64_t array_bytes, block_bytes;
    sim_time start_ps;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct stream_instance *instance;
};

enum stream_stores { STORES_ORDINARY, STORES_NON_TEMPORAL };
static const char *const store_names[] = { "ordinary", "non_temporal", NULL };

static const struct param_desc stream_benchmark_params[] = {
    PARAM_TEXT("on", struct stream_benchmark, host_name, "server", "host of the group `lending`"),
    PARAM("instances", PARAM_U32, struct stream_benchmark, n_instances, 1, 0, 64, PROV_NONE, "",
          "of one thread each"),
    PARAM("cpu", PARAM_U32, struct stream_benchmark, cpu, 1, 0, 255, PROV_NONE, "",
          "of the first instance; each has one of its own"),
    PARAM("node", PARAM_U32, struct stream_benchmark, node, 0, 0, 7, PROV_NONE, "",
          "whose memory the arrays are in"),
    PARAM_ONE_OF("stores", struct stream_benchmark, stores, STORES_ORDINARY, store_names, PROV_NONE,
                 "", "non_temporal: past the caches, as some compilers make them"),
    PARAM("array_bytes", PARAM_BYTES, struct stream_benchmark, array_bytes, 67108864, 65536, 1e10,
          PROV_NONE, "", "of each of an instance's three arrays"),
    PARAM("block_bytes", PARAM_BYTES, struct stream_benchmark, block_bytes, 65536, 64, 1e10,
          PROV_NONE, "", "after which the next kernel follows; the benchmark: array_bytes"),
    PARAM("start_us", PARAM_TIME, struct stream_benchmark, start_ps, 0, 0, 1e7, PROV_NONE, "",
          "after the other programs"),
    { .type = PARAM_END },
};

static const struct record_desc stream_benchmark_records[] = {
    { "+stream_gbyte_s", RECORD_METRIC, "GB/s", "read and written by the kernels" },
    { "+stream_gbyte_s", RECORD_SERIES, "GB/s", "read and written per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void stream_check(struct program *program, struct sim_error_list *errors)
{
    struct stream_benchmark *stream = program->state;
    stream->program = program;
    stream->host = program_lending_host(program, "on", stream->host_name, errors);
    if (stream->host == NULL)
        return;
    if (stream->n_instances != 0)
        program_check_cpus(program, "cpu", stream->host, stream->cpu, stream->n_instances, errors);
    program_check_arrays(program, stream->host, stream->node, stream->array_bytes,
                         N_ARRAYS * stream->n_instances, errors);
    if (stream->block_bytes % LINE_BYTES != 0)
        program_mistake(program, "block_bytes", errors, "whole lines of 64 bytes", NULL);
}

static struct hpa line_of(const struct stream_instance *instance, unsigned array)
{
    return (struct hpa){ instance->array[array].v + instance->line * LINE_BYTES };
}

static void advance(struct stream_instance *instance)
{
    const struct stream_benchmark *stream = instance->stream;
    if (++instance->in_block == stream->block_bytes / LINE_BYTES) {
        instance->in_block = 0;
        instance->kernel = (instance->kernel + 1) % N_KERNELS;
    }
    if (++instance->line == stream->array_bytes / LINE_BYTES)
        instance->line = 0;
}

static void stream_body(void *arg)
{
    struct stream_instance *instance = arg;
    struct stream_benchmark *stream = instance->stream;
    struct kernel *os = stream->host->kernel;
    if (stream->start_ps != 0)
        k_sleep(os, stream->start_ps);
    while (!program_ending(stream->program)) {
        const uint64_t begin_ps = k_now_ps(os);
        struct core *core = os_core(os);
        struct sim_task *task = os_task(os);
        for (unsigned i = 0; i < LINES_PER_POLL; i++) {
            const struct stream_kernel *kernel = &kernels[instance->kernel];
            for (unsigned r = 0; r < kernel->n_reads; r++)
                core_load_stream(core, task, line_of(instance, kernel->reads[r]));
            if (stream->stores == STORES_NON_TEMPORAL)
                core_store_nt(core, task, line_of(instance, kernel->writes));
            else
                core_store(core, task, line_of(instance, kernel->writes));
            if (program_measuring(stream->program))
                instance->lines += kernel->n_reads + 1;
            advance(instance);
        }
        program_operation_ended(stream->program, begin_ps);
        os_poll(os);
    }
}

/* Before time begins: as after a pass, whose last lines fill the caches. */
static void warm(struct stream_benchmark *stream)
{
    struct numa *numa = host_numa(stream->host->host);
    const uint64_t lines = numa_cache_bytes(numa) / LINE_BYTES / 2 / stream->n_instances;
    const uint64_t n = SIM_MIN(lines, stream->array_bytes / LINE_BYTES);
    for (unsigned i = 0; i < stream->n_instances; i++)
        for (unsigned a = 0; a < N_ARRAYS; a++)
            numa_warm_forgotten(numa, numa_socket_of_core(numa, stream->instance[i].cpu),
                                (struct hpa){ stream->instance[i].array[a].v },
                                stream->array_bytes);
    for (uint64_t k = 0; k < n; k++)
        for (unsigned i = 0; i < stream->n_instances; i++) {
            struct stream_instance *instance = &stream->instance[i];
            const struct stream_kernel *kernel = &kernels[instance->kernel];
            for (unsigned r = 0; r < kernel->n_reads; r++)
                numa_warm_load(numa, instance->cpu, line_of(instance, kernel->reads[r]));
            if (stream->stores == STORES_ORDINARY)
                numa_warm_core(numa, instance->cpu, line_of(instance, kernel->writes), LINE_BYTES);
            advance(instance);
        }
}

static void stream_start(struct program *program)
{
    struct stream_benchmark *stream = program->state;
    struct kernel *os = stream->host->kernel;
    stream->instance = program_zalloc(program, stream->n_instances + 1, sizeof(*stream->instance));
    for (unsigned i = 0; i < stream->n_instances; i++) {
        struct stream_instance *instance = &stream->instance[i];
        struct sim_random random;
        char name[64];
        *instance = (struct stream_instance){ .stream = stream, .cpu = stream->cpu + i };
        for (unsigned a = 0; a < N_ARRAYS; a++) {
            instance->array[a] = k_alloc(os, (int)stream->node, stream->array_bytes, K_PAGE_BYTES);
            if (instance->array[a].v == 0) {
                program_fail(program, "no memory left on node %u for an array of %llu bytes",
                             stream->node, (unsigned long long)stream->array_bytes);
                return;
            }
        }
        snprintf(name, sizeof(name), "%.40s%u", program->name, i);
        sim_random_init(&random, sim_seed(program->workload->sim), name);
        instance->kernel = (unsigned)sim_random_below(&random, N_KERNELS);
        instance->in_block = sim_random_below(&random, stream->block_bytes / LINE_BYTES);
        instance->line = sim_random_below(&random, stream->array_bytes / LINE_BYTES);
    }
    if (stream->n_instances != 0)
        warm(stream);
    for (unsigned i = 0; i < stream->n_instances; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%.40s%u", program->name, i);
        program_lending_uses_cpu(program, stream->host, stream->instance[i].cpu);
        k_thread_new(os, name, (int)stream->instance[i].cpu, stream_body, &stream->instance[i]);
    }
}

static void stream_measure(struct program *program)
{
    struct stream_benchmark *stream = program->state;
    for (unsigned i = 0; i < stream->n_instances; i++)
        stream->instance[i].lines = 0;
}

static uint64_t lines_moved(const struct stream_benchmark *stream)
{
    uint64_t lines = 0;
    for (unsigned i = 0; i < stream->n_instances; i++)
        lines += stream->instance[i].lines;
    return lines;
}

static uint64_t bytes_moved(const struct program *program)
{
    return lines_moved(program->state) * LINE_BYTES;
}

static const struct program_rate stream_rates[] = {
    { "stream_gbyte_s", 1e-9, bytes_moved, NULL },
    { NULL, 0, NULL, NULL },
};

static void stream_record(struct program *program, sim_time duration_ps)
{
    struct stream_benchmark *stream = program->state;
    const uint64_t lines = lines_moved(stream);
    if (lines != 0 && !program_has_measured(program, "run over some lines"))
        return;
    program_metric(program, "stream_gbyte_s", "GB/s",
                   (double)lines * LINE_BYTES * 1000.0 / (double)duration_ps);
}

const struct program_ops program_stream_run_ops = {
    .type = "stream_benchmark",
    .help = "STREAM: instances of one thread that run copy, scale, add and triad in turn",
    .state_bytes = sizeof(struct stream_benchmark),
    .params = stream_benchmark_params,
    .records = stream_benchmark_records,
    .rates = stream_rates,
    .check = stream_check,
    .start = stream_start,
    .measure = stream_measure,
    .record = stream_record,
};
