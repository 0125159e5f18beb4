/*
 * What a copy within a process costs, by the CPU or by a copy engine: until it is done, and in time of the
 * CPU. Copies are those of logic/copy (system calls, pinning with its cache, channels) or of the C library.
 *
 * Timing: copies are made in turn in two ways. Of the first, a blocking one, latency is taken; the CPU
 *   polls. The second is begun, the CPU computes for a fifth longer than the first took, and looks: its
 *   time is that of both calls. Before each copy the buffers are brought into the state asked for, which
 *   takes no time: hot, source read and destination written by this CPU, in ascending order, so that of a
 *   buffer larger than the caches its end is there; cold, in no cache. The source is stamped before;
 *   every copy is checked, which takes no time.
 */
#include <errno.h>
#include <string.h>

#include "logic/copy/adma.h"
#include "models/base/payload.h"
#include "models/host/host.h"
#include "workloads/copy/copy_offload.h"
#include "workloads/copy/copy_site.h"
#include "workloads/setup/copy_engines.h"

enum copier { COPIER_CPU, COPIER_ENGINE };
static const char *const copier_names[] = { "cpu", "engine", NULL };
enum cache_state { CACHE_HOT, CACHE_COLD };
static const char *const cache_names[] = { "hot", "cold", NULL };

struct copy_offload {
    /* parameters */
    const char *host_name;
    uint32_t cpu, n_channels, copies;
    int copier, cache;
    uint64_t message_bytes;
    struct copy_engines_params engine;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct copy_engines *engines;
    struct adma *adma;
    struct adma_process *process;
    struct umem *umem;
    struct uaddr from, to;
    uint16_t stream;
    struct stat_mean latency_ps, cpu_ps; /* measured */
};

static const struct param_desc copy_offload_params[] = {
    PARAM_TEXT("on", struct copy_offload, host_name, "", "the host"),
    PARAM("cpu", PARAM_U32, struct copy_offload, cpu, 0, 0, 255, PROV_NONE, "", "of the thread"),
    PARAM_ONE_OF("copier", struct copy_offload, copier, COPIER_ENGINE, copier_names, PROV_NONE, "",
                 "the C library's memcpy(), or a copy engine"),
    PARAM("channels", PARAM_U32, struct copy_offload, n_channels, 1, 1, ADMA_CHANNELS_MAX,
          PROV_NONE, "", "of the engine, over which pages go round"),
    PARAM("message_bytes", PARAM_BYTES, struct copy_offload, message_bytes, 65536, 64, 1e8,
          PROV_NONE, "", "of a copy"),
    PARAM_ONE_OF("cache", struct copy_offload, cache, CACHE_HOT, cache_names, PROV_NONE, "",
                 "where the buffers are before a copy: in this CPU's caches or in none"),
    PARAM("copies", PARAM_U32, struct copy_offload, copies, 8, 1, 1000000, PROV_NONE, "",
          "of each way; then the program ends"),
    COPY_ENGINES_PARAMS(struct copy_offload, engine),
    { .type = PARAM_END },
};

static const struct record_desc copy_offload_records[] = {
    { "latency_us", RECORD_METRIC, "us", "a copy, until it is done" },
    { "cpu_us", RECORD_METRIC, "us", "of it, the CPU's time, if it computes meanwhile" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void copy_offload_check(struct program *program, struct sim_error_list *errors)
{
    struct copy_offload *p = program->state;
    p->program = program;
    p->host = copy_site_host(program, p->host_name, p->cpu, 1, &p->engine,
                             p->copier == COPIER_ENGINE ? p->n_channels : 0, errors);
}

/* ---- Buffers ----------------------------------------------------------------------------------- */

/* Calls fn with each contiguous piece of a buffer. */
static void each_piece(struct copy_offload *p, struct uaddr at,
                       void (*fn)(struct copy_offload *p, struct hpa hpa, uint64_t done,
                                  uint64_t bytes))
{
    for (uint64_t done = 0, n; done < p->message_bytes; done += n) {
        struct kaddr addr;
        n = umem_run(p->umem, uaddr_add(at, done), p->message_bytes - done, &addr);
        fn(p, (struct hpa){ addr.v }, done, n);
    }
}

static void stamp(struct copy_offload *p, struct hpa hpa, uint64_t done, uint64_t bytes)
{
    payload_fill(p->host->kernel, (struct kaddr){ hpa.v }, payload_mark(p->stream, done), bytes);
}

static void check(struct copy_offload *p, struct hpa hpa, uint64_t done, uint64_t bytes)
{
    struct payload_difference difference;
    if (!payload_check(p->host->kernel, (struct kaddr){ hpa.v }, payload_mark(p->stream, done),
                       bytes, &difference))
        program_fail(p->program, "wrong bytes at the destination");
    physmem_clear(numa_physmem(host_numa(p->host->host)), hpa, bytes);
}

static void drop(struct copy_offload *p, struct hpa hpa, uint64_t done, uint64_t bytes)
{
    (void)done;
    numa_warm_drop(host_numa(p->host->host), hpa, bytes);
}

static void load(struct copy_offload *p, struct hpa hpa, uint64_t done, uint64_t bytes)
{
    (void)done;
    for (uint64_t at = 0; at < bytes; at += LINE_BYTES)
        numa_warm_load(host_numa(p->host->host), p->cpu, (struct hpa){ hpa.v + at });
}

static void store(struct copy_offload *p, struct hpa hpa, uint64_t done, uint64_t bytes)
{
    (void)done;
    numa_warm_core(host_numa(p->host->host), p->cpu, hpa, bytes);
}

static void prepare(struct copy_offload *p)
{
    each_piece(p, p->from, p->cache == CACHE_COLD ? drop : load);
    each_piece(p, p->to, p->cache == CACHE_COLD ? drop : store);
}

/* ---- Copies ------------------------------------------------------------------------------------ */

/* Returns the time that the copy took. */
static uint64_t copy_blocking(struct copy_offload *p)
{
    const uint64_t begin_ps = k_now_ps(p->host->kernel);
    int status = 0;
    if (p->copier == COPIER_CPU)
        umem_copy(p->umem, p->to, p->from, p->message_bytes);
    else
        status = adma_copy(p->process, p->to, p->from, p->message_bytes);
    if (status != 0)
        program_fail(p->program, "a copy failed: %s", strerror(-status));
    return k_now_ps(p->host->kernel) - begin_ps;
}

static void compute(struct copy_offload *p, uint64_t ps)
{
    k_compute(p->host->kernel, ps / numa_cycle_ps(host_numa(p->host->host)));
}

/* Returns the time that the CPU spent on it. */
static uint64_t copy_beside(struct copy_offload *p, uint64_t latency_ps)
{
    struct kernel *kernel = p->host->kernel;
    if (p->copier == COPIER_CPU)
        return copy_blocking(p);
    const uint64_t begin_ps = k_now_ps(kernel);
    const adma_cookie cookie = adma_icopy(p->process, p->to, p->from, p->message_bytes);
    const uint64_t begun_ps = k_now_ps(kernel);
    compute(p, latency_ps * 6 / 5);
    const uint64_t back_ps = k_now_ps(kernel);
    const int status = cookie < 0 ? (int)cookie : adma_wait_copy(p->process, cookie);
    if (status != 0)
        program_fail(p->program, "a copy failed: %s", strerror(-status));
    return begun_ps - begin_ps + (k_now_ps(kernel) - back_ps);
}

/* The first one pins pages, which stay pinned. */
static void copy_all(struct copy_offload *p)
{
    prepare(p);
    copy_blocking(p);
    for (uint32_t i = 0; i < p->copies && !program_ending(p->program); i++) {
        const uint64_t begin_ps = k_now_ps(p->host->kernel);
        prepare(p);
        const uint64_t latency_ps = copy_blocking(p);
        each_piece(p, p->to, check);
        prepare(p);
        const uint64_t cpu_ps = copy_beside(p, latency_ps);
        each_piece(p, p->to, check);
        if (program_measuring(p->program)) {
            stat_mean_add(&p->latency_ps, (double)latency_ps);
            stat_mean_add(&p->cpu_ps, (double)cpu_ps);
        }
        program_operation_ended(p->program, begin_ps);
    }
    program_finish(p->program);
}

/* ---- The program ------------------------------------------------------------------------------- */

static bool open_memory(struct copy_offload *p)
{
    p->umem = umem_new(p->host->kernel);
    p->from = umem_map(p->umem, K_NODE_LOCAL, p->message_bytes, 0);
    p->to = umem_map(p->umem, K_NODE_LOCAL, p->message_bytes, 0);
    if (p->from.v == 0 || p->to.v == 0)
        return false;
    each_piece(p, p->from, stamp);
    return true;
}

static void run(struct copy_offload *p)
{
    struct adma_options options = adma_options_default;
    int status;
    options.n_channels = p->copier == COPIER_CPU ? 0 : p->n_channels;
    p->adma = adma_new(p->host->kernel, copy_engines_core(p->engines), &options, &status);
    if (p->adma == NULL) {
        program_fail(p->program, "%s has no copy engine with %u free channels", p->host_name,
                     p->n_channels);
        return;
    }
    p->process = adma_open(p->adma, p->umem);
    copy_all(p);
    adma_close(p->process);
    adma_free(p->adma);
}

static void body(void *arg)
{
    struct copy_offload *p = arg;
    p->engines = copy_engines_new(p->host, &p->engine, p->cpu);
    if (open_memory(p))
        run(p);
    else
        program_fail(p->program, "no memory for the buffers");
    umem_free(p->umem);
    copy_engines_free(p->engines);
}

static void copy_offload_start(struct program *program)
{
    struct copy_offload *p = program->state;
    p->stream = program_new_stream(program);
    program_lending_uses_cpu(program, p->host, p->cpu);
    k_thread_new(p->host->kernel, "copy_offload", (int)p->cpu, body, p);
}

static void copy_offload_measure(struct program *program)
{
    struct copy_offload *p = program->state;
    stat_mean_init(&p->latency_ps);
    stat_mean_init(&p->cpu_ps);
}

static void copy_offload_record(struct program *program, sim_time duration_ps)
{
    struct copy_offload *p = program->state;
    (void)duration_ps;
    if (!program_has_measured(program, "copy") || p->latency_ps.n == 0)
        return;
    program_metric(program, "latency_us", "us", stat_mean_value(&p->latency_ps) / 1e6);
    program_metric(program, "cpu_us", "us", stat_mean_value(&p->cpu_ps) / 1e6);
}

const struct program_ops program_copy_offload_ops = {
    .type = "copy_offload",
    .help = "copies of a process by the CPU or a copy engine: latency, and the CPU's time",
    .state_bytes = sizeof(struct copy_offload),
    .params = copy_offload_params,
    .records = copy_offload_records,
    .check = copy_offload_check,
    .start = copy_offload_start,
    .measure = copy_offload_measure,
    .record = copy_offload_record,
};
