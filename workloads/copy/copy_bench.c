/*
 * The paper's measurements of copies within a process, one at a time or in a window:
 *
 *   copy_latency    adma_icopy() and adma_wait_copy(), or memcpy(): from call to return, mean
 *   copy_bandwidth  a window of adma_icopy(), then a wait for each; memcpy() as often
 *   copy_overlap    T_copy alone; then begin, compute for compute_ratio T_copy, wait: T_total.
 *                   overlap = (T_copy + T_compute - T_total) / T_copy; the CPU's time of a copy is
 *                   T_total - T_compute; of memcpy(), which covers nothing, T_copy
 *   copy_overheads  shares of a copy's latency that its calls have spent, by time stamps where they
 *                   occur; completion: what a wait costs for a copy that has ended long before
 *
 * hot: the same two buffers again and again, after copies that do not count; memcpy() leaves them
 * in the CPU's caches, an engine does not, and nobody else touches them between copies. cold: both
 * move on by the size of a message through areas of area_bytes, and the caches are as copies before
 * would have left them, so that victims are written back. in_cache, in_no_cache: the same two
 * buffers, which before each copy are brought into this CPU's caches (the source read, the
 * destination written) or out of all, which takes no time.
 */
#include <stdio.h>

#include "models/base/payload.h"
#include "models/os/os.h"
#include "workloads/copy/copy_site.h"

#define WARM_UPS    2u
#define WARM_BYTES  (4u << 20) /* of each area; more than the caches hold */
#define LOOK_PS     SIM_PS_PER_US
#define SMALL_PS    (2 * SIM_PS_PER_US) /* of computation, before interrupts come in */
#define AT_LEAST    3u
#define TOGETHER_AT 8u /* copies of a window at least */

enum bench_cache { CACHE_HOT, CACHE_COLD, CACHE_IN, CACHE_OUT };
static const char *const cache_names[] = { "hot", "cold", "in_cache", "in_no_cache", NULL };

struct bench {
    /* parameters */
    struct copy_settings settings;
    int cache;
    uint64_t message_bytes, area_bytes, volume_bytes;
    uint32_t copies, window;
    double compute_ratio;
    /* running */
    struct copy_site site;
    struct copy_process process;
    struct uaddr from, to;
    uint64_t at; /* of the next message, in the areas */
    uint64_t mark;
    bool failed;
    /* measured */
    uint64_t n, bytes, took_ps;
    uint64_t total_ps, compute_ps, cpu_ps; /* overlap */
    uint64_t completion_ps, n_completions;
    struct adma_times times;
};

#define BENCH_PARAMS                                                                           \
    COPY_PARAMS(struct bench, settings), COPY_BY_PARAM(struct bench, settings, copy_by_names), \
        PARAM("message_bytes", PARAM_BYTES, struct bench, message_bytes, 65536, 64, 67108864,  \
              PROV_NONE, "", "of a copy"),                                                     \
        PARAM("volume_bytes", PARAM_BYTES, struct bench, volume_bytes, 16777216, 64, 1e10,     \
              PROV_NONE, "",                                                                   \
              "that are copied at most, unless these are too few copies or less than a window")
#define CACHE_PARAMS                                                                            \
    PARAM_ONE_OF("cache", struct bench, cache, CACHE_HOT, cache_names, PROV_NONE, "",           \
                 "the same buffers (hot), others each time (cold); the same, brought there"),   \
        PARAM("area_bytes", PARAM_BYTES, struct bench, area_bytes, 67108864, 65536, 1073741824, \
              PROV_NONE, "", "cold: of each of both areas that messages move on in"),           \
        PARAM("copies", PARAM_U32, struct bench, copies, 32, 1, 100000, PROV_NONE, "",          \
              "that are measured at most")

static const struct param_desc copy_latency_params[] = { BENCH_PARAMS,
                                                         CACHE_PARAMS,
                                                         { .type = PARAM_END } };
static const struct param_desc copy_bandwidth_params[] = {
    BENCH_PARAMS,
    PARAM("window", PARAM_U32, struct bench, window, 128, 1, ADMA_REQUESTS_MAX, PROV_NONE, "",
          "copies that are begun before the first is waited for"),
    { .type = PARAM_END },
};
static const struct param_desc copy_overlap_params[] = {
    BENCH_PARAMS,
    CACHE_PARAMS,
    PARAM("compute_ratio", PARAM_DOUBLE, struct bench, compute_ratio, 1.25, 1, 10, PROV_NONE, "",
          "computation, relative to the time of a copy"),
    { .type = PARAM_END },
};

static const struct record_desc copy_latency_records[] = {
    { "latency_us", RECORD_METRIC, "us", "from the call to the end of the wait, mean" },
    { NULL, RECORD_METRIC, NULL, NULL },
};
static const struct record_desc copy_bandwidth_records[] = {
    { "bandwidth_mbyte_s", RECORD_METRIC, "MB/s", "bytes copied over time" },
    { NULL, RECORD_METRIC, NULL, NULL },
};
static const struct record_desc copy_overlap_records[] = {
    { "overlap", RECORD_METRIC, "1", "share of a copy's time that computation has covered" },
    { "latency_us", RECORD_METRIC, "us", "of a copy alone" },
    { "cpu_us", RECORD_METRIC, "us", "of it, the CPU's time, if it computes meanwhile" },
    { NULL, RECORD_METRIC, NULL, NULL },
};
static const struct record_desc copy_overheads_records[] = {
    { "pin_share", RECORD_METRIC, "1", "of the latency: looking up and pinning pages" },
    { "startup_share", RECORD_METRIC, "1", "of it: descriptors and doorbells" },
    { "transition_share", RECORD_METRIC, "1", "of it: entry and return of system calls" },
    { "completion_share", RECORD_METRIC, "1", "of it: finding that the copy has ended" },
    { "latency_us", RECORD_METRIC, "us", "from the call to the end of the wait, mean" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static uint64_t site_caches(const struct bench *b)
{
    return numa_cache_bytes(host_numa(b->site.host->host));
}

static void bench_check(struct program *program, struct sim_error_list *errors)
{
    static const char *const cold_keys[] = { "area_bytes", NULL };
    static const char *const module_keys[] = { "pin_cache_pages", NULL };
    struct bench *b = program->state;
    const bool found = copy_site_check(&b->site, program, &b->settings, "by", "engine", errors);
    if (b->settings.by == COPY_BY_CPU)
        copy_no_effect(program, module_keys, "by", "by = \"engine\"", errors);
    if (program->ops == &program_copy_overheads_ops && b->settings.by == COPY_BY_CPU)
        program_mistake(program, "by", errors, "\"engine\": the CPU has no such overheads", NULL);
    if (b->cache != CACHE_COLD)
        copy_no_effect(program, cold_keys, "cache", "cache = \"cold\"", errors);
    else if (b->area_bytes < 2 * b->message_bytes)
        program_mistake(program, "area_bytes", errors, "two messages at least", NULL);
    else if (found && site_caches(b) >= 2 * b->area_bytes) {
        char text[120];
        snprintf(text, sizeof(text),
                 "more than %llu: both areas fit in the caches, and are not cold",
                 (unsigned long long)site_caches(b) / 2);
        program_mistake(program, "area_bytes", errors, text, NULL);
    }
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct uaddr place(const struct bench *b, struct uaddr area)
{
    return uaddr_add(area, b->at);
}

static void bad(struct bench *b, const char *what, int64_t status)
{
    if (!b->failed)
        program_fail(b->site.program, "%s: %lld", what, (long long)status);
    b->failed = true;
}

static adma_cookie begin(struct bench *b)
{
    if (b->settings.by == COPY_BY_CPU) {
        umem_copy(b->process.umem, place(b, b->to), place(b, b->from), b->message_bytes);
        return 0;
    }
    const adma_cookie cookie = adma_icopy(b->process.adma, place(b, b->to), place(b, b->from),
                                          b->message_bytes);
    if (cookie < 0)
        bad(b, "a copy cannot be begun", cookie);
    return cookie;
}

static void end(struct bench *b, adma_cookie cookie)
{
    if (cookie <= 0)
        return;
    const int status = adma_wait_copy(b->process.adma, cookie);
    if (status != 0)
        bad(b, "a copy does not end well", status);
}

/* The next message: elsewhere, if cold; the caches as asked for. Without time. */
static void next(struct bench *b)
{
    if (b->cache == CACHE_COLD) {
        b->at += b->message_bytes;
        if (b->at + b->message_bytes > b->area_bytes)
            b->at = 0;
    }
    b->mark = payload_mark_add(b->mark, b->message_bytes);
    copy_fill(&b->process, place(b, b->from), b->mark, b->message_bytes);
    copy_fill(&b->process, place(b, b->to), 0, b->message_bytes);
    if (b->cache == CACHE_IN) {
        copy_warm(&b->process, b->settings.cpu, b->from, b->to, b->message_bytes, b->message_bytes);
    } else if (b->cache == CACHE_OUT) {
        copy_drop(&b->process, b->from, b->message_bytes);
        copy_drop(&b->process, b->to, b->message_bytes);
    }
}

static void check(struct bench *b)
{
    b->failed = b->failed || !copy_check(&b->process, place(b, b->to), b->mark, b->message_bytes);
}

static bool goes_on(const struct bench *b)
{
    return !b->failed && !program_ending(b->site.program);
}

static unsigned copies(const struct bench *b, unsigned most, unsigned least)
{
    const uint64_t n = b->volume_bytes / b->message_bytes;
    return n > most ? most : n < least ? least : (unsigned)n;
}

/* ---- What is measured ------------------------------------------------------------------------ */

/* One copy, from call to the end of the wait. */
static uint64_t one(struct bench *b)
{
    struct kernel *kernel = b->site.kernel;
    next(b);
    const uint64_t begin_ps = k_now_ps(kernel);
    end(b, begin(b));
    const uint64_t took_ps = k_now_ps(kernel) - begin_ps;
    check(b);
    return took_ps;
}

static void latency(struct bench *b)
{
    const unsigned n = copies(b, b->copies, AT_LEAST);
    for (unsigned i = 0; i < n && goes_on(b); i++, b->n++)
        b->took_ps += one(b);
}

/* What the module has copied; what the CPU has redone counts once more. */
static uint64_t moved(const struct bench *b)
{
    if (b->settings.by == COPY_BY_CPU)
        return 0;
    const struct adma_stats *stats = adma_stats(b->site.adma);
    return stats->engine_bytes + stats->cpu_bytes;
}

/* All copies of the window have the same target: the bytes that lie there tell of one, the module's
 * count of all. memcpy() has ended when it returns: each one but the first finds its target empty
 * again. */
static void bandwidth(struct bench *b)
{
    struct kernel *kernel = b->site.kernel;
    const unsigned n = copies(b, b->window, b->window < TOGETHER_AT ? b->window : TOGETHER_AT);
    const bool by_cpu = b->settings.by == COPY_BY_CPU;
    adma_cookie cookie[ADMA_REQUESTS_MAX];
    next(b);
    const uint64_t begin_ps = k_now_ps(kernel), before = moved(b);
    for (unsigned i = 0; i < n && goes_on(b); i++) {
        if (by_cpu && i > 0) {
            check(b);
            copy_fill(&b->process, place(b, b->to), 0, b->message_bytes);
        }
        cookie[i] = begin(b);
    }
    for (unsigned i = 0; i < n && goes_on(b); i++)
        end(b, cookie[i]);
    b->took_ps = k_now_ps(kernel) - begin_ps;
    b->bytes = n * b->message_bytes;
    check(b);
    if (goes_on(b) && !by_cpu && moved(b) - before < b->bytes)
        bad(b, "bytes of the window that nobody has copied",
            (int64_t)(b->bytes - (moved(b) - before)));
}

static void compute(struct bench *b, uint64_t ps)
{
    struct kernel *kernel = b->site.kernel;
    const uint64_t until_ps = k_now_ps(kernel) + ps;
    while (k_now_ps(kernel) < until_ps) {
        const uint64_t left = until_ps - k_now_ps(kernel);
        const uint64_t part = left < SMALL_PS ? left : SMALL_PS;
        k_compute(kernel, part / os_core(kernel)->cycle_ps + 1);
    }
}

static void overlap(struct bench *b)
{
    struct kernel *kernel = b->site.kernel;
    const unsigned n = copies(b, b->copies, AT_LEAST);
    for (unsigned i = 0; i < n && goes_on(b); i++, b->n++)
        b->took_ps += one(b);
    const uint64_t compute_ps = (uint64_t)((double)b->took_ps / (double)b->n * b->compute_ratio);
    for (unsigned i = 0; i < n && goes_on(b); i++) {
        next(b);
        const uint64_t begin_ps = k_now_ps(kernel);
        const adma_cookie cookie = begin(b);
        const uint64_t compute_begin_ps = k_now_ps(kernel);
        compute(b, compute_ps);
        b->compute_ps += k_now_ps(kernel) - compute_begin_ps;
        end(b, cookie);
        b->total_ps += k_now_ps(kernel) - begin_ps;
        check(b);
    }
    b->cpu_ps = b->settings.by == COPY_BY_CPU ? b->took_ps : b->total_ps - b->compute_ps;
}

static void overheads(struct bench *b)
{
    struct kernel *kernel = b->site.kernel;
    const unsigned n = copies(b, b->copies, AT_LEAST);
    const struct adma_times before = *adma_times(b->process.adma);
    latency(b);
    b->times = *adma_times(b->process.adma);
    b->times.pin_ps -= before.pin_ps;
    b->times.startup_ps -= before.startup_ps;
    b->times.transition_ps -= before.transition_ps;
    for (unsigned i = 0; i < n && goes_on(b); i++) {
        next(b);
        const adma_cookie cookie = begin(b);
        compute(b, 2 * b->took_ps / b->n);
        const uint64_t transition_ps = adma_times(b->process.adma)->transition_ps;
        const uint64_t begin_ps = k_now_ps(kernel);
        end(b, cookie);
        b->completion_ps += k_now_ps(kernel) - begin_ps -
                            (adma_times(b->process.adma)->transition_ps - transition_ps);
        b->n_completions++;
        check(b);
    }
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool prepare(struct bench *b)
{
    const uint64_t bytes = b->cache == CACHE_COLD ? b->area_bytes : b->message_bytes;
    if (b->settings.by == COPY_BY_ENGINE && !copy_site_open(&b->site))
        return false;
    b->site.kernel = b->site.host->kernel;
    copy_process_open(&b->process, &b->site);
    b->from = copy_process_map(&b->process, bytes);
    b->to = copy_process_map(&b->process, bytes);
    b->mark = payload_mark(program_new_stream(b->site.program), 0);
    return b->from.v != 0 && b->to.v != 0;
}

static void run(struct bench *b, void (*measure)(struct bench *b))
{
    const unsigned warm_ups = b->settings.by == COPY_BY_CPU && b->cache == CACHE_COLD ? 0
                                                                                      : WARM_UPS;
    const bool ready = prepare(b);
    for (unsigned i = 0; i < warm_ups && ready; i++)
        one(b);
    while (ready && !program_measuring(b->site.program) && !program_ending(b->site.program))
        k_sleep(b->site.kernel, LOOK_PS);
    if (ready && b->cache == CACHE_COLD)
        copy_warm(&b->process, b->settings.cpu, b->from, b->to, b->area_bytes, WARM_BYTES);
    if (ready && goes_on(b))
        measure(b);
    if (b->process.umem != NULL)
        copy_process_close(&b->process);
    copy_site_close(&b->site);
    program_finish(b->site.program);
}

static void latency_body(void *arg)
{
    run(arg, latency);
}
static void bandwidth_body(void *arg)
{
    run(arg, bandwidth);
}
static void overlap_body(void *arg)
{
    run(arg, overlap);
}
static void overheads_body(void *arg)
{
    run(arg, overheads);
}

static void start(struct program *program, k_thread_fn *body)
{
    struct bench *b = program->state;
    program->finite = true;
    program_lending_uses_cpu(program, b->site.host, b->settings.cpu);
    k_thread_new(b->site.host->kernel, program->name, (int)b->settings.cpu, body, b);
}

static void latency_start(struct program *program)
{
    start(program, latency_body);
}
static void bandwidth_start(struct program *program)
{
    start(program, bandwidth_body);
}
static void overlap_start(struct program *program)
{
    start(program, overlap_body);
}
static void overheads_start(struct program *program)
{
    start(program, overheads_body);
}

/* ---- Records --------------------------------------------------------------------------------- */

static double mean_us(uint64_t ps, uint64_t n)
{
    return (double)ps / 1e6 / (double)n;
}

static void latency_record(struct program *program, sim_time duration_ps)
{
    const struct bench *b = program->state;
    (void)duration_ps;
    if (b->n != 0)
        program_metric(program, "latency_us", "us", mean_us(b->took_ps, b->n));
}

static void bandwidth_record(struct program *program, sim_time duration_ps)
{
    const struct bench *b = program->state;
    (void)duration_ps;
    if (b->took_ps != 0)
        program_metric(program, "bandwidth_mbyte_s", "MB/s",
                       (double)b->bytes * 1e6 / (double)b->took_ps);
}

static void overlap_record(struct program *program, sim_time duration_ps)
{
    const struct bench *b = program->state;
    (void)duration_ps;
    if (b->total_ps == 0)
        return;
    const double copy = (double)b->took_ps, total = (double)b->total_ps;
    program_metric(program, "overlap", "1", (copy + (double)b->compute_ps - total) / copy);
    program_metric(program, "latency_us", "us", mean_us(b->took_ps, b->n));
    program_metric(program, "cpu_us", "us", mean_us(b->cpu_ps, b->n));
}

static void overheads_record(struct program *program, sim_time duration_ps)
{
    const struct bench *b = program->state;
    const double whole = (double)b->took_ps;
    (void)duration_ps;
    if (b->n_completions == 0)
        return;
    program_metric(program, "pin_share", "1", (double)b->times.pin_ps / whole);
    program_metric(program, "startup_share", "1", (double)b->times.startup_ps / whole);
    program_metric(program, "transition_share", "1", (double)b->times.transition_ps / whole);
    program_metric(program, "completion_share", "1",
                   (double)b->completion_ps / (double)b->n_completions * (double)b->n / whole);
    program_metric(program, "latency_us", "us", mean_us(b->took_ps, b->n));
}

#define BENCH_OPS(NAME, PARAMS, HELP)                      \
    const struct program_ops program_copy_##NAME##_ops = { \
        .type = "copy_" #NAME,                             \
        .help = HELP,                                      \
        .state_bytes = sizeof(struct bench),               \
        .params = PARAMS,                                  \
        .records = copy_##NAME##_records,                  \
        .check = bench_check,                              \
        .start = NAME##_start,                             \
        .record = NAME##_record,                           \
    }
BENCH_OPS(latency, copy_latency_params, "copies within a process, one after the other");
BENCH_OPS(bandwidth, copy_bandwidth_params, "copies within a process, a window of them at a time");
BENCH_OPS(overlap, copy_overlap_params, "how much computation goes on while an engine copies");
BENCH_OPS(overheads, copy_latency_params, "what calls of the copy module spend time on");
