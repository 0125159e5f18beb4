/*
 * Models: what CPUs do, in a trace for Perfetto: a track for each CPU with the threads that it
 *   runs, one for its interrupts of each kind, and one for each thread with the CPUs that it runs
 *   on.
 * Does not model: why a thread waits; what it does while it has the CPU. Threads of one name share
 *   a place.
 * Timing: a thread has a CPU from one switch to the next, interrupts within it; slices are cut at
 *   the window. An interrupt is there if it begins and ends within the window.
 * Sources: docs/traces.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/trace/perfetto_internal.h"

static struct perfetto_cpu *cpu_of(struct perfetto *perfetto, const char *host, unsigned idx)
{
    struct perfetto_cpu *cpu = perfetto->cpus;
    char name[PERFETTO_NAME_BYTES];

    while (cpu != NULL && (cpu->cpu != idx || strcmp(cpu->host, host) != 0))
        cpu = cpu->next;
    if (cpu != NULL)
        return cpu;
    snprintf(name, sizeof(name), "%s CPU %u", host, idx);
    cpu = sim_zalloc(1, sizeof(*cpu));
    cpu->next = perfetto->cpus;
    cpu->cpu = idx;
    cpu->track = perfetto_track(perfetto, perfetto->hosts, name, NULL);
    snprintf(cpu->host, sizeof(cpu->host), "%s", host);
    perfetto->cpus = cpu;
    return cpu;
}

/* The CPU's thread has had it until then. Threads of one name share a place. */
static void leaves(struct perfetto *perfetto, struct perfetto_cpu *cpu, sim_time at_ps)
{
    char name[2 * PERFETTO_NAME_BYTES + 16];
    struct pftrace_event event = { .track = cpu->track,
                                   .begin_ps = SIM_MAX(cpu->since_ps, perfetto->window->from_ps),
                                   .end_ps = SIM_MIN(at_ps, perfetto->window->until_ps),
                                   .name = cpu->thread };

    if (*cpu->thread == '\0' || event.end_ps <= event.begin_ps)
        return;
    perfetto_event(perfetto, &event);
    snprintf(name, sizeof(name), "%s task %s", cpu->host, cpu->thread);
    struct perfetto_place *place = perfetto_place(perfetto, perfetto->hosts, name);
    snprintf(name, sizeof(name), "CPU %u", cpu->cpu);
    event.name = name;
    perfetto_slice(perfetto, place, &event);
}

static void runs(struct sim_activity *activity, const char *host, unsigned idx, const char *thread,
                 sim_time at_ps)
{
    struct perfetto *perfetto = SIM_CONTAINER(activity, struct perfetto, activity);
    struct perfetto_cpu *cpu = cpu_of(perfetto, host, idx);

    leaves(perfetto, cpu, at_ps);
    snprintf(cpu->thread, sizeof(cpu->thread), "%s", thread != NULL ? thread : "");
    cpu->since_ps = at_ps;
}

static void interrupted(struct sim_activity *activity, const char *host, unsigned idx,
                        const char *what, sim_time from_ps, sim_time to_ps)
{
    struct perfetto *perfetto = SIM_CONTAINER(activity, struct perfetto, activity);
    struct pftrace_event event = { .begin_ps = from_ps, .end_ps = to_ps, .name = what };
    char name[PERFETTO_NAME_BYTES];

    if (to_ps == from_ps || !perfetto_wants(perfetto, from_ps) || !perfetto_wants(perfetto, to_ps))
        return;
    snprintf(name, sizeof(name), "%s CPU %u %ss", host, idx, what);
    event.track = perfetto_place(perfetto, perfetto->hosts, name)->track;
    perfetto_event(perfetto, &event);
}

void perfetto_cpu_init(struct perfetto *perfetto)
{
    perfetto->activity = (struct sim_activity){ .runs = runs, .interrupted = interrupted };
    sim_set_activity(perfetto->sim, &perfetto->activity);
}

void perfetto_cpu_release(struct perfetto *perfetto)
{
    for (struct perfetto_cpu *cpu = perfetto->cpus, *next; cpu != NULL; cpu = next) {
        next = cpu->next;
        leaves(perfetto, cpu, sim_now(perfetto->sim));
        free(cpu);
    }
    sim_set_activity(perfetto->sim, NULL);
}
