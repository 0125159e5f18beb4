/*
 * What a large copy does to the cache of a program: a small buffer is gone through column by
 * column, so that it is in the cache; then copy_bytes are copied elsewhere, by the CPU, the engine,
 * or nobody; then the buffer is gone through again, which is timed. Elements of element_bytes in
 * rows of row_bytes, one element of each row, then the next of each: every access is to another
 * line, and each line is visited row_bytes apart, as often as it has elements.
 */
#include "models/base/payload.h"
#include "models/os/os.h"
#include "workloads/copy/copy_site.h"

#define LOOK_PS SIM_PS_PER_US

struct pollution {
    /* parameters */
    struct copy_settings settings;
    uint64_t buffer_bytes, row_bytes, copy_bytes;
    uint32_t element_bytes, rounds;
    /* running */
    struct copy_site site;
    struct copy_process process;
    struct uaddr buffer, from, to;
    /* measured */
    uint64_t accesses, took_ps;
};

static const struct param_desc cache_pollution_params[] = {
    COPY_PARAMS(struct pollution, settings),
    COPY_BY_PARAM(struct pollution, settings, copy_by_all_names),
    PARAM("buffer_bytes", PARAM_BYTES, struct pollution, buffer_bytes, 262144, 4096, 67108864,
          PROV_NONE, "", "that are accessed; whole rows"),
    PARAM("row_bytes", PARAM_BYTES, struct pollution, row_bytes, 1024, 64, 65536, PROV_NONE, "",
          "of the buffer; whole lines"),
    PARAM("element_bytes", PARAM_U32, struct pollution, element_bytes, 4, 1, 64, PROV_NONE, "",
          "of an access; a power of two"),
    PARAM("copy_bytes", PARAM_BYTES, struct pollution, copy_bytes, 4194304, 4096, 67108864,
          PROV_NONE, "", "that are copied in between"),
    PARAM("rounds", PARAM_U32, struct pollution, rounds, 2, 1, 1000, PROV_NONE, "",
          "copies, and passes behind them that are timed"),
    { .type = PARAM_END },
};

static const struct record_desc cache_pollution_records[] = {
    { "access_time_ns", RECORD_METRIC, "ns", "an access behind the copy, mean" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void pollution_check(struct program *program, struct sim_error_list *errors)
{
    static const char *const module_keys[] = { "pin_cache_pages", NULL };
    struct pollution *p = program->state;
    if (p->settings.by != COPY_BY_ENGINE)
        copy_no_effect(program, module_keys, "by", "by = \"engine\"", errors);
    copy_site_check(&p->site, program, &p->settings, "by", "engine", errors);
    if (p->row_bytes % LINE_BYTES != 0)
        program_mistake(program, "row_bytes", errors, "whole lines of 64 bytes", NULL);
    else if (p->buffer_bytes % p->row_bytes != 0)
        program_mistake(program, "buffer_bytes", errors, "whole rows of row_bytes", NULL);
    if ((p->element_bytes & (p->element_bytes - 1)) != 0)
        program_mistake(program, "element_bytes", errors, "a power of two", NULL);
}

/* Loads that nothing waits for, as a sum over the elements is made. */
static void pass(struct pollution *p)
{
    struct kernel *kernel = p->site.kernel;
    for (uint64_t column = 0; column < p->row_bytes; column += p->element_bytes) {
        struct core *core = os_core(kernel);
        struct sim_task *task = os_task(kernel);
        for (uint64_t at = column; at < p->buffer_bytes; at += p->row_bytes) {
            struct kaddr addr;
            umem_page(p->process.umem, uaddr_add(p->buffer, at), &addr);
            core_load_async(core, task, (struct hpa){ addr.v });
        }
        os_poll(kernel);
    }
}

static bool copy(struct pollution *p, uint64_t mark)
{
    int status = 0;
    copy_fill(&p->process, p->from, mark, p->copy_bytes);
    if (p->settings.by == COPY_BY_CPU)
        umem_copy(p->process.umem, p->to, p->from, p->copy_bytes);
    else if (p->settings.by == COPY_BY_ENGINE)
        status = adma_copy(p->process.adma, p->to, p->from, p->copy_bytes);
    if (status != 0)
        program_fail(p->site.program, "a copy does not end well (%d)", status);
    return status == 0 && (p->settings.by == COPY_BY_NOBODY ||
                           copy_check(&p->process, p->to, mark, p->copy_bytes));
}

static void measure(struct pollution *p)
{
    struct kernel *kernel = p->site.kernel;
    const uint16_t stream = program_new_stream(p->site.program);
    for (uint32_t i = 0; i < p->rounds && !program_ending(p->site.program); i++) {
        pass(p);
        if (!copy(p, payload_mark(stream, i * p->copy_bytes)))
            return;
        const uint64_t begin_ps = k_now_ps(kernel);
        pass(p);
        p->took_ps += k_now_ps(kernel) - begin_ps;
        p->accesses += p->buffer_bytes / p->element_bytes;
    }
}

static void pollution_body(void *arg)
{
    struct pollution *p = arg;
    bool ready = p->settings.by != COPY_BY_ENGINE || copy_site_open(&p->site);
    p->site.kernel = p->site.host->kernel;
    if (ready) {
        copy_process_open(&p->process, &p->site);
        p->buffer = copy_process_map(&p->process, p->buffer_bytes);
        p->from = copy_process_map(&p->process, p->copy_bytes);
        p->to = copy_process_map(&p->process, p->copy_bytes);
        ready = p->buffer.v != 0 && p->from.v != 0 && p->to.v != 0;
    }
    while (ready && !program_measuring(p->site.program) && !program_ending(p->site.program))
        k_sleep(p->site.kernel, LOOK_PS);
    if (ready)
        measure(p);
    if (p->process.umem != NULL)
        copy_process_close(&p->process);
    copy_site_close(&p->site);
    program_finish(p->site.program);
}

static void pollution_start(struct program *program)
{
    struct pollution *p = program->state;
    program->finite = true;
    program_lending_uses_cpu(program, p->site.host, p->settings.cpu);
    k_thread_new(p->site.host->kernel, program->name, (int)p->settings.cpu, pollution_body, p);
}

static void pollution_record(struct program *program, sim_time duration_ps)
{
    const struct pollution *p = program->state;
    (void)duration_ps;
    if (p->accesses != 0)
        program_metric(program, "access_time_ns", "ns",
                       (double)p->took_ps / 1e3 / (double)p->accesses);
}

const struct program_ops program_cache_pollution_ops = {
    .type = "cache_pollution",
    .help = "accesses to a small buffer after a large copy",
    .state_bytes = sizeof(struct pollution),
    .params = cache_pollution_params,
    .records = cache_pollution_records,
    .check = pollution_check,
    .start = pollution_start,
    .record = pollution_record,
};
