#include "workloads/copy/copy_site.h"

#include <stdio.h>

#include "logic/dma/ioat.h"
#include "models/base/payload.h"
#include "models/os/os.h"

#define MAP_ORDER 10u /* pieces of 4 MiB */

const char *const copy_by_names[] = { "cpu", "engine", NULL };
const char *const copy_by_all_names[] = { "cpu", "engine", "none", NULL };
const char *const copy_schedule_names[] = { "round_robin", "dedicated", "adaptive", NULL };

void copy_no_effect(struct program *program, const char *const *keys, const char *decider,
                    const char *expected, struct sim_error_list *errors)
{
    char path[160], text[160];
    snprintf(path, sizeof(path), "%.80s.%.60s", config_path(program->group), decider);
    snprintf(text, sizeof(text), "%.80s beside it: it has no effect otherwise", expected);
    for (; *keys != NULL; keys++)
        config_no_effect(program->group, *keys, path, errors, text);
}

/* ---- Engines --------------------------------------------------------------------------------- */

/* An engine that the driver takes: its numbers, of those that follow each other the first and the
 * last. */
static void list_numbers(char *text, size_t bytes)
{
    const struct k_pci_id *id = ioat_drv_ids;
    int n = snprintf(text, bytes, "a host with an ioat.engine whose device_id the driver knows:");
    while (id->vendor_id != 0 && (size_t)n < bytes) {
        const struct k_pci_id *last = id;
        while (last[1].vendor_id != 0 && last[1].device_id == last->device_id + 1)
            last++;
        const bool first = id == ioat_drv_ids, end = last[1].vendor_id == 0;
        n += snprintf(text + n, bytes - (size_t)n, "%s%u",
                      first ? " "
                      : end ? ", or "
                            : ", ",
                      id->device_id);
        if (last != id && (size_t)n < bytes)
            n += snprintf(text + n, bytes - (size_t)n, " to %u", last->device_id);
        id = last + 1;
    }
}

/* What drivers make of the engines that the host has. */
static void check_channels(struct program *program, const struct copy_settings *settings,
                           const struct copy_engines_found *found, struct sim_error_list *errors)
{
    char text[160] = "a host with a copy engine: ioat.engine or dsa.accelerator";
    if (found->n_ioat + found->n_dsa == 0) {
        if (found->n_unknown != 0)
            list_numbers(text, sizeof(text));
        program_mistake(program, "on", errors, text, NULL);
    } else if (found->n_channels == 0) {
        snprintf(text, sizeof(text),
                 "at most %u, the work_queues of dsa.accelerator, unless queue = \"shared\"",
                 found->dsa_queues);
        program_mistake(program, "queues", errors, text, NULL);
    } else if (settings->channels > found->n_channels) {
        snprintf(text, sizeof(text), "at most %u, the channels of copy engines of the host%s",
                 found->n_channels, found->n_dsa != 0 ? ", of a DSA as `queues` says" : "");
        program_mistake(program, "channels", errors, text, NULL);
    }
}

/* The host's engines have one driver, with the settings of the first program that uses them. */
static void join(struct copy_site *site, struct sim_error_list *errors)
{
    struct program *program = site->program;
    struct copy_engines *engines = site->host->copy_engines;
    if (engines == NULL) {
        engines = program_zalloc(program, 1, sizeof(*engines));
        engines->host = site->host;
        engines->params = &site->settings->engine;
        engines->user = program->name;
        engines->cpu = site->settings->cpu;
        site->host->copy_engines = engines;
    }
    const char *key = copy_engines_differ(engines->params, &site->settings->engine);
    if (key != NULL) {
        char text[160];
        snprintf(text, sizeof(text),
                 "the same as of program \"%.60s\", with which it shares the engines' driver",
                 engines->user);
        program_mistake(program, key, errors, text, NULL);
    }
    engines->users++;
    site->engines = engines;
}

static void check_engines(struct copy_site *site, const char *decider, const char *engine,
                          struct sim_error_list *errors)
{
    static const char *const keys[] = { "channels", "engine_bytes", NULL };
    struct program *program = site->program;
    const struct copy_settings *settings = site->settings;
    const uint32_t ring = settings->engine.ring;
    if ((ring & (ring - 1)) != 0)
        program_mistake(program, "ring", errors, "a power of two", NULL);
    if (settings->by != COPY_BY_ENGINE) {
        char expected[64];
        snprintf(expected, sizeof(expected), "%.20s = \"%.20s\"", decider, engine);
        copy_no_effect(program, keys, decider, expected, errors);
        copy_no_effect(program, copy_engines_keys, decider, expected, errors);
        return;
    }
    if (!program->enabled) /* another variant may have it, and the engine */
        return;
    const struct copy_engines_found found = copy_engines_find(program->workload->world, site->host,
                                                              &settings->engine);
    check_channels(program, settings, &found, errors);
    for (const char *const *key = copy_engines_dsa_keys; found.n_dsa == 0 && *key != NULL; key++)
        config_no_effect(program->group, *key, "devices", errors,
                         "a host with a dsa.accelerator: it has no effect otherwise");
    join(site, errors);
}

bool copy_site_check(struct copy_site *site, struct program *program,
                     const struct copy_settings *settings, const char *decider, const char *engine,
                     struct sim_error_list *errors)
{
    site->program = program;
    site->settings = settings;
    site->host = program_lending_host(program, "on", settings->host_name, errors);
    if (site->host == NULL)
        return false;
    program_check_cpus(program, "cpu", site->host, settings->cpu, 1, errors);
    if (site->host->vm != NULL)
        program_mistake(program, "on", errors, "a host without a group `vm`", NULL);
    check_engines(site, decider, engine, errors);
    return true;
}

bool copy_site_open(struct copy_site *site)
{
    const struct copy_settings *s = site->settings;
    struct adma_options options = adma_options_default;
    struct dma_core *core = NULL;
    int status;
    site->kernel = site->host->kernel;
    options.n_channels = site->engines != NULL ? s->channels : 0;
    options.schedule = (enum adma_schedule)s->schedule;
    options.pin_cache_pages = s->pin_cache_pages;
    options.engine_bytes = s->engine_bytes;
    options.learns = s->learns;
    if (s->small_bytes != 0)
        options.small_bytes = s->small_bytes;
    options.n_dedicated = s->n_dedicated != 0 ? s->n_dedicated : 1;
    options.reserve_ps = s->reserve_ps;
    if (site->engines != NULL)
        core = copy_engines_open(site->engines);
    site->adma = adma_new(site->kernel, core, &options, &status);
    if (site->adma == NULL)
        program_fail(site->program, "no copy engine of the host \"%s\" has %u channels (%d)",
                     site->host->name, options.n_channels, status);
    return site->adma != NULL;
}

void copy_site_close(struct copy_site *site)
{
    if (site->adma != NULL)
        adma_free(site->adma);
    if (site->engines != NULL)
        copy_engines_close(site->engines);
    site->adma = NULL;
    site->engines = NULL;
}

/* ---- Processes ------------------------------------------------------------------------------- */

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

void copy_drop(struct copy_process *process, struct uaddr at, uint64_t bytes)
{
    struct numa *numa = host_numa(process->site->host->host);
    for (uint64_t done = 0, run; done < bytes; done += run) {
        struct kaddr to;
        run = umem_run(process->umem, uaddr_add(at, done), bytes - done, &to);
        numa_warm_drop(numa, (struct hpa){ to.v }, run);
    }
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
