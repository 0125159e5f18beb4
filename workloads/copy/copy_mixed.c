/*
 * Large and small copies by one engine: a process keeps a window of large copies under way, another
 * makes small ones, one at a time with a pause between them, of sizes from small_from to small_to
 * in turn. Both have the same module open, on CPUs of their own. What is recorded is over the small
 * copies that are measured; each result is checked.
 */
#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/copy/copy_site.h"

#define LOOK_PS    SIM_PS_PER_US
#define WINDOW_MAX 64u
#define COPIES_MAX 16384u

struct mixed {
    /* parameters */
    struct copy_settings settings;
    uint32_t peer_cpu, window;
    uint64_t large_bytes, small_from, small_to;
    sim_time pause_ps, measured_ps;
    /* running */
    struct copy_site site;
    struct copy_process large, small;
    bool opened, failed, small_done, large_done, measuring;
    /* measured */
    double *took_us;
    unsigned n;
    double small_us; /* sum */
    uint64_t large_copied, large_begin_ps, large_ps;
};

static const struct param_desc copy_mixed_params[] = {
    COPY_PARAMS(struct mixed, settings),
    COPY_SCHEDULE_PARAMS(struct mixed, settings),
    PARAM("peer_cpu", PARAM_U32, struct mixed, peer_cpu, 1, 0, 255, PROV_NONE, "",
          "of the process that makes small copies"),
    PARAM("window", PARAM_U32, struct mixed, window, 4, 0, WINDOW_MAX, PROV_NONE, "",
          "large copies under way; 0: none"),
    PARAM("large_bytes", PARAM_BYTES, struct mixed, large_bytes, 1048576, 4096, 67108864, PROV_NONE,
          "", "of a large copy"),
    PARAM("small_from", PARAM_BYTES, struct mixed, small_from, 1024, 64, 67108864, PROV_NONE, "",
          "smallest of the small copies"),
    PARAM("small_to", PARAM_BYTES, struct mixed, small_to, 65536, 64, 67108864, PROV_NONE, "",
          "largest of them; each is four times as large as the one before"),
    PARAM("measured_us", PARAM_TIME, struct mixed, measured_ps, 10000, 100, 1e7, PROV_NONE, "",
          "small copies are measured that begin within that time, after as long without"),
    PARAM("pause_us", PARAM_TIME, struct mixed, pause_ps, 5, 0, 1e6, PROV_NONE, "",
          "between small copies"),
    { .type = PARAM_END },
};

static const struct record_desc copy_mixed_records[] = {
    { "small_latency_us", RECORD_METRIC, "us", "a small copy, from call to return, mean" },
    { "small_latency_p99_us", RECORD_METRIC, "us", "99th percentile" },
    { "large_mbyte_s", RECORD_METRIC, "MB/s", "copied by the large copies meanwhile" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void check_schedule(struct program *program, const struct copy_settings *s,
                           struct sim_error_list *errors)
{
    static const char *const sizes[] = { "small_bytes", NULL };
    static const char *const channels[] = { "dedicated_channels", NULL };
    static const char *const reserve[] = { "reserve_us", NULL };
    if (s->schedule == ADMA_ROUND_ROBIN)
        copy_no_effect(program, sizes, "schedule", "schedule = \"dedicated\" or \"adaptive\"",
                       errors);
    if (s->schedule != ADMA_DEDICATED)
        copy_no_effect(program, channels, "schedule", "schedule = \"dedicated\"", errors);
    else if (s->n_dedicated >= s->channels)
        program_mistake(program, "dedicated_channels", errors, "fewer than `channels`", NULL);
    if (s->schedule != ADMA_ADAPTIVE)
        copy_no_effect(program, reserve, "schedule", "schedule = \"adaptive\"", errors);
}

static void mixed_check(struct program *program, struct sim_error_list *errors)
{
    struct mixed *m = program->state;
    m->settings.by = COPY_BY_ENGINE;
    check_schedule(program, &m->settings, errors);
    if (!copy_site_check(&m->site, program, &m->settings, "by", "engine", errors))
        return;
    program_check_cpus(program, "peer_cpu", m->site.host, m->peer_cpu, 1, errors);
    if (m->peer_cpu == m->settings.cpu)
        program_mistake(program, "peer_cpu", errors, "another CPU than `cpu`", NULL);
    if (m->small_to < m->small_from)
        program_mistake(program, "small_to", errors, "at least small_from", NULL);
}

static void bad(struct mixed *m, const char *what, int64_t status)
{
    if (!m->failed)
        program_fail(m->site.program, "%s: %lld", what, (long long)status);
    m->failed = true;
}

/* ---- Large copies ---------------------------------------------------------------------------- */

static void end_large(struct mixed *m, adma_cookie cookie, struct uaddr to, uint64_t mark)
{
    const int status = adma_wait_copy(m->large.adma, cookie);
    if (status != 0)
        bad(m, "a large copy does not end well", status);
    else if (!copy_check(&m->large, to, mark, m->large_bytes))
        m->failed = true;
}

static void copy_large(struct mixed *m)
{
    struct adma_process *adma = m->large.adma;
    const uint64_t bytes = m->large_bytes;
    const uint64_t mark = payload_mark(program_new_stream(m->site.program), 0);
    adma_cookie cookie[WINDOW_MAX] = { 0 };
    const struct uaddr from = copy_process_map(&m->large, bytes);
    struct uaddr to[WINDOW_MAX];
    copy_fill(&m->large, from, mark, bytes);
    for (uint32_t i = 0; i < m->window; i++)
        to[i] = copy_process_map(&m->large, bytes);
    for (uint32_t i = 0; !m->small_done && !m->failed; i = (i + 1) % m->window) {
        if (cookie[i] != 0)
            end_large(m, cookie[i], to[i], mark);
        m->large_copied += cookie[i] != 0 && m->measuring ? bytes : 0;
        copy_fill(&m->large, to[i], 0, bytes); /* each copy's own bytes are checked */
        cookie[i] = adma_icopy(adma, to[i], from, bytes);
        if (cookie[i] < 0)
            bad(m, "a large copy cannot be begun", cookie[i]);
    }
    for (uint32_t i = 0; i < m->window && !m->failed; i++)
        if (cookie[i] > 0)
            end_large(m, cookie[i], to[i], mark);
}

static void large_body(void *arg)
{
    struct mixed *m = arg;
    if (!copy_site_open(&m->site))
        m->failed = true;
    m->site.kernel = m->site.host->kernel;
    m->opened = true;
    copy_process_open(&m->large, &m->site);
    if (m->window != 0 && !m->failed)
        copy_large(m);
    while (!m->small_done)
        k_sleep(m->site.kernel, LOOK_PS);
    copy_process_close(&m->large);
    copy_site_close(&m->site);
    program_finish(m->site.program);
}

/* ---- Small copies ---------------------------------------------------------------------------- */

static uint64_t next_size(const struct mixed *m, uint64_t bytes)
{
    return bytes * 4 <= m->small_to ? bytes * 4 : m->small_from;
}

static void copy_small(struct mixed *m, struct uaddr to, struct uaddr from, uint64_t mark,
                       uint64_t bytes)
{
    struct kernel *kernel = m->site.kernel;
    copy_fill(&m->small, from, mark, bytes);
    const uint64_t begin_ps = k_now_ps(kernel);
    const int status = adma_copy(m->small.adma, to, from, bytes);
    const double us = (double)(k_now_ps(kernel) - begin_ps) / 1e6;
    if (status != 0)
        bad(m, "a small copy does not end well", status);
    else if (!copy_check(&m->small, to, mark, bytes))
        m->failed = true;
    if (m->measuring && m->n < COPIES_MAX) {
        m->took_us[m->n++] = us;
        m->small_us += us;
    }
}

static void copy_small_ones(struct mixed *m)
{
    struct kernel *kernel = m->site.kernel;
    const uint16_t stream = program_new_stream(m->site.program);
    const struct uaddr from = copy_process_map(&m->small, m->small_to);
    const struct uaddr to = copy_process_map(&m->small, m->small_to);
    const uint64_t from_ps = k_now_ps(kernel) + m->measured_ps, until_ps = from_ps + m->measured_ps;
    uint64_t bytes = m->small_from, begin_ps;
    for (unsigned i = 0; (begin_ps = k_now_ps(kernel)) < until_ps && !m->failed; i++) {
        if (!m->measuring && begin_ps >= from_ps) {
            m->measuring = true;
            m->large_begin_ps = begin_ps;
        }
        copy_small(m, to, from, payload_mark(stream, i * m->small_to), bytes);
        bytes = next_size(m, bytes);
        k_sleep(kernel, m->pause_ps);
    }
    m->measuring = false;
    m->large_ps = k_now_ps(kernel) - m->large_begin_ps;
}

static void small_body(void *arg)
{
    struct mixed *m = arg;
    while (!m->opened ||
           (!m->failed && !program_measuring(m->site.program) && !program_ending(m->site.program)))
        k_sleep(m->site.host->kernel, LOOK_PS);
    if (!m->failed) {
        copy_process_open(&m->small, &m->site);
        copy_small_ones(m);
        copy_process_close(&m->small);
    }
    m->small_done = true;
}

static void mixed_start(struct program *program)
{
    struct mixed *m = program->state;
    struct kernel *kernel = m->site.host->kernel;
    program->finite = true;
    m->took_us = program_zalloc(program, COPIES_MAX, sizeof(double));
    program_lending_uses_cpu(program, m->site.host, m->settings.cpu);
    program_lending_uses_cpu(program, m->site.host, m->peer_cpu);
    k_thread_new(kernel, "large", (int)m->settings.cpu, large_body, m);
    k_thread_new(kernel, "small", (int)m->peer_cpu, small_body, m);
}

static void mixed_record(struct program *program, sim_time duration_ps)
{
    struct mixed *m = program->state;
    (void)duration_ps;
    if (m->n == 0)
        return;
    program_sort(m->took_us, m->n);
    program_metric(program, "small_latency_us", "us", m->small_us / m->n);
    program_metric(program, "small_latency_p99_us", "us", m->took_us[(m->n - 1) * 99 / 100]);
    program_metric(program, "large_mbyte_s", "MB/s",
                   (double)m->large_copied * 1e6 / (double)m->large_ps);
}

const struct program_ops program_copy_mixed_ops = {
    .type = "copy_mixed",
    .help = "large and small copies by one engine side by side",
    .state_bytes = sizeof(struct mixed),
    .params = copy_mixed_params,
    .records = copy_mixed_records,
    .check = mixed_check,
    .start = mixed_start,
    .record = mixed_record,
};
