#include "workloads/copy/copy_site.h"

#include "models/base/payload.h"
#include "models/os/os.h"

#define MAP_ORDER 10u   /* pieces of 4 MiB */
#define RING      4096u /* of a channel: Linux' first driver had as many descriptors as memory */
#define POLL_PS   (50 * SIM_PS_PER_NS)
#define BATCH     32u

const char *const copy_by_names[] = { "cpu", "engine", NULL };
const char *const copy_by_all_names[] = { "cpu", "engine", "none", NULL };
const char *const copy_schedule_names[] = { "round_robin", "dedicated", "adaptive", NULL };

static void check_engines(struct program *program, struct lending_host *host,
                          const struct copy_engines_params *params, unsigned n,
                          struct sim_error_list *errors)
{
    char text[COPY_ENGINES_TEXT];
    if ((params->ring & (params->ring - 1)) != 0)
        program_mistake(program, "ring", errors, "a power of two", NULL);
    if (!program->enabled) /* another variant may have it, and the engine */
        return;
    if (n != 0 && program_take(program, host, "driver of its copy engines", 1) != 0)
        program_mistake(program, "on", errors,
                        "a host whose copy engines no other program drives: one does, for itself",
                        NULL);
    const char *expected = copy_engines_expected(program->workload->world, host, params, n, text);
    if (expected != NULL)
        program_mistake(program, "channels", errors, expected, NULL);
}

struct lending_host *copy_site_host(struct program *program, const char *name, unsigned cpu,
                                    unsigned n_cpus, const struct copy_engines_params *engines,
                                    unsigned n_channels, struct sim_error_list *errors)
{
    struct lending_host *host = program_lending_host(program, "on", name, errors);
    if (host == NULL)
        return NULL;
    program_check_cpus(program, "cpu", host, cpu, n_cpus, errors);
    if (host->vm != NULL)
        program_mistake(program, "on", errors, "a host without a group `vm`", NULL);
    check_engines(program, host, engines, n_channels, errors);
    return host;
}

bool copy_site_check(struct copy_site *site, struct program *program,
                     const struct copy_settings *settings, unsigned n_cpus,
                     struct sim_error_list *errors)
{
    site->program = program;
    site->settings = settings;
    const struct copy_engines_params engines = { .ring = RING, .queues = settings->channels };
    site->host = copy_site_host(program, settings->host_name, settings->cpu, n_cpus, &engines,
                                settings->by == COPY_BY_ENGINE ? settings->channels : 0, errors);
    if (site->host == NULL)
        return false;
    if (settings->schedule == ADMA_DEDICATED && settings->n_dedicated >= settings->channels)
        program_mistake(program, "dedicated_channels", errors, "fewer than `channels`", NULL);
    return site->host->vm == NULL;
}

bool copy_site_open(struct copy_site *site, unsigned n_channels)
{
    const struct copy_settings *s = site->settings;
    struct adma_options options = adma_options_default;
    int status;
    site->kernel = site->host->kernel;
    options.n_channels = n_channels;
    options.schedule = (enum adma_schedule)s->schedule;
    options.pin_cache_pages = s->pin_cache_pages;
    options.engine_bytes = s->engine_bytes;
    options.learns = s->learns;
    if (s->small_bytes != 0)
        options.small_bytes = s->small_bytes;
    options.n_dedicated = s->n_dedicated != 0 ? s->n_dedicated : 1;
    options.reserve_ps = s->reserve_ps;
    if (n_channels != 0) {
        const struct copy_engines_params engines = {
            .ring = RING, .batch = BATCH, .queues = n_channels, .poll_ps = POLL_PS
        };
        site->engines = copy_engines_new(site->host, &engines, s->cpu);
    }
    site->adma = adma_new(site->kernel,
                          site->engines != NULL ? copy_engines_core(site->engines) : NULL, &options,
                          &status);
    if (site->adma == NULL)
        program_fail(site->program, "no copy engine of the host \"%s\" has %u channels (%d)",
                     site->host->name, n_channels, status);
    return site->adma != NULL;
}

void copy_site_close(struct copy_site *site)
{
    if (site->adma != NULL)
        adma_free(site->adma);
    if (site->engines != NULL)
        copy_engines_free(site->engines);
    site->adma = NULL;
    site->engines = NULL;
}

void copy_process_open(struct copy_process *process, struct copy_site *site)
{
    process->site = site;
    process->umem = umem_new(site->host->kernel);
    process->adma = site->adma != NULL ? adma_open(site->adma, process->umem) : NULL;
}

void copy_process_close(struct copy_process *process)
{
    if (process->adma != NULL)
        adma_close(process->adma);
    umem_free(process->umem);
}

struct uaddr copy_process_map(struct copy_process *process, uint64_t bytes)
{
    const struct uaddr at = umem_map(process->umem, K_NODE_LOCAL, bytes, MAP_ORDER);
    if (at.v == 0)
        program_fail(process->site->program, "no memory for %llu bytes on the host \"%s\"",
                     (unsigned long long)bytes, process->site->host->name);
    return at;
}

void copy_fill(struct copy_process *process, struct uaddr at, uint64_t mark, uint64_t bytes)
{
    for (uint64_t done = 0, run; done < bytes; done += run) {
        struct kaddr to;
        run = umem_run(process->umem, uaddr_add(at, done), bytes - done, &to);
        payload_fill(process->site->host->kernel, to, payload_mark_add(mark, done), run);
    }
}

bool copy_check(struct copy_process *process, struct uaddr at, uint64_t mark, uint64_t bytes)
{
    struct kernel *kernel = process->site->host->kernel;
    for (uint64_t done = 0, run; done < bytes; done += run) {
        struct payload_difference is;
        struct kaddr from;
        run = umem_run(process->umem, uaddr_add(at, done), bytes - done, &from);
        if (payload_check(kernel, from, payload_mark_add(mark, done), run, &is))
            continue;
        k_fault(kernel, "%s: after a copy of %llu bytes, %#llx lies where %#llx should",
                process->site->program->name, (unsigned long long)bytes,
                (unsigned long long)is.found, (unsigned long long)is.expected);
        return false;
    }
    return true;
}

static struct hpa line_at(const struct copy_process *process, struct uaddr at)
{
    struct kaddr addr;
    umem_page(process->umem, at, &addr);
    return (struct hpa){ addr.v };
}

void copy_warm(struct copy_process *process, unsigned cpu, struct uaddr from, struct uaddr to,
               uint64_t area_bytes, uint64_t bytes)
{
    struct numa *numa = host_numa(process->site->host->host);
    const uint64_t first = area_bytes > bytes ? area_bytes - bytes : 0;
    for (uint64_t at = first; at < area_bytes; at += LINE_BYTES) {
        numa_warm_load(numa, cpu, line_at(process, uaddr_add(from, at)));
        numa_warm_core(numa, cpu, line_at(process, uaddr_add(to, at)), LINE_BYTES);
    }
}
