/*
 * STREAM as an antagonist: pairs of threads, one reading and one writing arrays line after line,
 * each on a core of its own, by default all in memory that is remote to their socket. What is read
 * has been read before: a first pass, each line of which changes the directory in DRAM, would take
 * longer than most runs.
 */
#include <stdio.h>

#include "workloads/programs/program.h"

#define LINES_PER_POLL 16u

struct stream;

struct stream_thread {
    struct stream *stream;
    struct kaddr array;
    bool writes;
    uint64_t lines; /* while measuring */
};

struct stream {
    /* parameters */
    const char *host_name;
    uint32_t pairs, socket, memory_socket, first_core;
    uint64_t array_bytes;
    sim_time start_ps;
    /* running */
    struct program *program;
    struct network_host *host;
    struct stream_thread *thread; /* two a pair: reader, writer */
};

static const struct param_desc stream_params[] = {
    PARAM_TEXT("host", struct stream, host_name, "server", "where it runs"),
    PARAM("pairs", PARAM_U32, struct stream, pairs, 1, 0, 64, PROV_NONE, "",
          "pairs of threads, one that reads and one that writes"),
    PARAM("socket", PARAM_U32, struct stream, socket, 0, 0, 7, PROV_NONE, "",
          "socket of the threads"),
    PARAM("memory_socket", PARAM_U32, struct stream, memory_socket, 1, 0, 7, PROV_NONE, "",
          "socket of the arrays"),
    PARAM("first_core", PARAM_U32, struct stream, first_core, 1, 0, 63, PROV_NONE, "",
          "of the socket, for the first thread"),
    PARAM("array_bytes", PARAM_BYTES, struct stream, array_bytes, 67108864, 4096, 1e10, PROV_NONE,
          "", "of each thread; should exceed the last-level cache by far"),
    PARAM("start_us", PARAM_TIME, struct stream, start_ps, 0, 0, 1e7, PROV_NONE, "",
          "after the other programs"),
    { .type = PARAM_END },
};

static const struct record_desc stream_records[] = {
    { "+stream_read_gbyte_s", RECORD_METRIC, "GB/s", "read by the readers" },
    { "+stream_write_gbyte_s", RECORD_METRIC, "GB/s", "written by the writers" },
    { "+stream_gbyte_s", RECORD_METRIC, "GB/s", "both" },
    { "+stream_read_gbyte_s", RECORD_SERIES, "GB/s", "read per interval" },
    { "+stream_write_gbyte_s", RECORD_SERIES, "GB/s", "written per interval" },
    { "+stream_gbyte_s", RECORD_SERIES, "GB/s", "both" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void stream_check(struct program *program, struct sim_error_list *errors)
{
    struct stream *stream = program->state;
    stream->program = program;
    program->eventful = stream->start_ps != 0;
    stream->host = program_host(program, "host", stream->host_name, errors);
    if (stream->host == NULL)
        return;
    program_check_cores(program, stream->host,
                        &(struct program_cores){ .socket_key = "socket",
                                                 .first_key = "first_core",
                                                 .n_key = "pairs",
                                                 .socket = stream->socket,
                                                 .first = stream->first_core,
                                                 .n = stream->pairs,
                                                 .per_unit = 2 },
                        errors);
    if (stream->memory_socket >= physmem_nodes(host_physmem(stream->host->host)))
        program_mistake(program, "memory_socket", errors, "a socket of the host that has memory",
                        NULL);
    else
        program_check_memory(program, "array_bytes", stream->host, stream->memory_socket,
                             2 * stream->pairs * stream->array_bytes, errors);
}

static void stream_body(void *arg)
{
    struct stream_thread *thread = arg;
    struct stream *stream = thread->stream;
    struct kernel *kernel = stream->host->kernel;
    uint64_t n_lines = stream->array_bytes / LINE_BYTES, line = 0;
    if (stream->start_ps != 0)
        k_sleep(kernel, stream->start_ps);
    while (!program_ending(stream->program)) {
        const uint64_t begin_ps = k_now_ps(kernel);
        struct core *core = os_core(kernel);
        struct sim_task *task = os_task(kernel);
        for (unsigned i = 0; i < LINES_PER_POLL; i++) {
            struct hpa at = { thread->array.v + line * LINE_BYTES };
            if (thread->writes)
                core_store(core, task, at);
            else
                core_load_stream(core, task, at);
            line = line + 1 == n_lines ? 0 : line + 1;
        }
        if (program_measuring(stream->program))
            thread->lines += LINES_PER_POLL;
        program_operation_ended(stream->program, begin_ps);
        os_poll(kernel);
    }
}

static void stream_start(struct program *program)
{
    struct stream *stream = program->state;
    struct kernel *kernel = stream->host->kernel;
    char name[32];
    stream->thread = program_zalloc(program, 2 * (size_t)stream->pairs + 1,
                                    sizeof(*stream->thread));
    for (unsigned t = 0; t < 2 * stream->pairs; t++) {
        struct stream_thread *thread = &stream->thread[t];
        *thread = (struct stream_thread){ .stream = stream, .writes = t % 2 == 1 };
        thread->array = k_alloc(kernel, (int)stream->memory_socket, stream->array_bytes,
                                K_PAGE_BYTES);
        if (thread->array.v == 0) {
            program_fail(program, "no memory left on socket %u for an array of %llu bytes",
                         stream->memory_socket, (unsigned long long)stream->array_bytes);
            return;
        }
        if (!thread->writes)
            numa_warm_forgotten(host_numa(stream->host->host), stream->socket,
                                (struct hpa){ thread->array.v }, stream->array_bytes);
        snprintf(name, sizeof(name), "stream.%u", t);
        k_thread_new(kernel, name,
                     (int)program_cpu(stream->host, stream->socket, stream->first_core + t),
                     stream_body, thread);
    }
}

static void stream_measure(struct program *program)
{
    struct stream *stream = program->state;
    for (unsigned t = 0; t < 2 * stream->pairs; t++)
        stream->thread[t].lines = 0;
}

/* Of the readers, or of the writers. */
static uint64_t lines_of(const struct stream *stream, bool writes)
{
    uint64_t lines = 0;
    for (unsigned t = 0; t < 2 * stream->pairs; t++)
        lines += stream->thread[t].writes == writes ? stream->thread[t].lines : 0;
    return lines;
}

static uint64_t bytes_read(const struct program *program)
{
    return lines_of(program->state, false) * LINE_BYTES;
}

static uint64_t bytes_written(const struct program *program)
{
    return lines_of(program->state, true) * LINE_BYTES;
}

static uint64_t bytes_moved(const struct program *program)
{
    return bytes_read(program) + bytes_written(program);
}

static const struct program_rate stream_rates[] = {
    { "stream_read_gbyte_s", 1e-9, bytes_read, NULL },
    { "stream_write_gbyte_s", 1e-9, bytes_written, NULL },
    { "stream_gbyte_s", 1e-9, bytes_moved, NULL },
    { NULL, 0, NULL, NULL },
};

static void stream_record(struct program *program, sim_time duration_ps)
{
    struct stream *stream = program->state;
    const uint64_t lines[2] = { lines_of(stream, false), lines_of(stream, true) };
    if (lines[0] + lines[1] != 0 && !program_has_measured(program, "run over some lines"))
        return;
    double scale = (double)LINE_BYTES * 1000.0 / (double)duration_ps;
    program_metric(program, "stream_read_gbyte_s", "GB/s", (double)lines[0] * scale);
    program_metric(program, "stream_write_gbyte_s", "GB/s", (double)lines[1] * scale);
    program_metric(program, "stream_gbyte_s", "GB/s", (double)(lines[0] + lines[1]) * scale);
}

const struct program_ops program_stream_ops = {
    .type = "stream",
    .help = "STREAM: pairs of threads that read and write memory, by default a remote socket's",
    .steady = true,
    .state_bytes = sizeof(struct stream),
    .params = stream_params,
    .records = stream_records,
    .rates = stream_rates,
    .check = stream_check,
    .start = stream_start,
    .measure = stream_measure,
    .record = stream_record,
};
