/*
 * What it does: the copy module: channels, processes that have it open, and what they leave behind:
 *   when a process closes while an engine works on its memory, a thread looks until that has ended,
 *   and unpins.
 * Follows: the paper's kernel module (section 3); files of Linux, whose release() is called at
 *   exit.
 * Costs: syscall_cycles a call.
 */
#include "logic/copy/adma.h"

#include <errno.h>

#include "logic/copy/adma_internal.h"

#define REAP_PS (5 * K_US) /* between two looks */

const struct adma_options adma_options_default = {
    .n_channels = 4,
    .schedule = ADMA_ROUND_ROBIN,
    .small_bytes = 65536,
    .n_dedicated = 1,
    .reserve_ps = K_MS,
    .pin_cache_pages = 32768,
    .engine_timeout_ps = 2 * K_S,
};

/* ---- What closed processes leave ------------------------------------------------------------- */

static bool is_idle(const struct adma_process *process)
{
    for (unsigned i = 0; i < ADMA_REQUESTS_MAX; i++)
        if (process->request[i].state != REQUEST_FREE || process->request[i].visitors != 0)
            return false;
    return true;
}

/* Looks at what it has under way, and ends what has ended. */
static void look_at(struct adma_process *process)
{
    for (unsigned i = 0; i < ADMA_REQUESTS_MAX; i++) {
        struct adma_request *r = &process->request[i];
        if (r->state == REQUEST_FREE || r->leaving)
            continue;
        adma_request_look(r, process);
        if (r->state == REQUEST_ENDED && !r->leaving)
            adma_request_put(r);
    }
}

static void free_process(struct adma_process *process)
{
    struct adma *adma = process->adma;
    K_LIST_REMOVE(adma->processes, process);
    adma_pins_release(process);
    for (unsigned i = 0; i < ADMA_REQUESTS_MAX; i++) {
        k_free(process->request[i].buffer.pin);
        k_free(process->request[i].second.pin);
    }
    k_free(process);
}

static bool any_closed(const struct adma *adma)
{
    for (const struct adma_process *p = adma->processes; p != NULL; p = p->next)
        if (p->closed)
            return true;
    return false;
}

static void reap_once(struct adma *adma)
{
    for (struct adma_process *p = adma->processes, *next; p != NULL; p = next) {
        if (p->closed)
            look_at(p);
        next = p->next; /* looking takes time: others may have come and gone */
        if (p->closed && is_idle(p))
            free_process(p);
    }
}

/* A thread of its own: it waits for channels, whose own work may be in any worker. */
static void reaper(void *arg)
{
    struct adma *adma = arg;
    while (!adma->stopping || adma->processes != NULL) {
        reap_once(adma);
        if (any_closed(adma))
            k_sleep(adma->kernel, REAP_PS);
        else if (!adma->stopping)
            k_wait(adma->kernel, &adma->to_reap, UINT64_MAX);
    }
    adma->stopped = true;
}

void adma_reap(struct adma *adma)
{
    if (k_has_waiters(&adma->to_reap))
        k_wake(adma->kernel, &adma->to_reap);
}

/* ---- The module ------------------------------------------------------------------------------ */

static bool options_good(const struct adma_options *o)
{
    const bool dedicated = o->schedule == ADMA_DEDICATED && o->n_channels != 0;
    return o->n_channels <= ADMA_CHANNELS_MAX &&
           (!dedicated || (o->n_dedicated >= 1 && o->n_dedicated < o->n_channels));
}

struct adma *adma_new(struct kernel *kernel, struct dma_core *core,
                      const struct adma_options *options, int *status)
{
    *status = -EINVAL;
    if (!options_good(options) || (core == NULL && options->n_channels != 0))
        return NULL;
    struct adma *adma = k_zalloc(sizeof(*adma));
    adma->kernel = kernel;
    adma->options = *options;
    *status = adma_channels_init(adma, core);
    if (*status != 0) {
        k_free(adma);
        return NULL;
    }
    k_thread_new(kernel, "adma_reaper", K_CPU_ANY, reaper, adma);
    return adma;
}

static bool all_closed(const struct adma *adma)
{
    for (const struct adma_process *p = adma->processes; p != NULL; p = p->next)
        if (!p->closed)
            return false;
    return true;
}

void adma_free(struct adma *adma)
{
    if (!all_closed(adma))
        k_fault(adma->kernel, "the copy module is freed while processes have it open");
    adma->stopping = true;
    adma_reap(adma);
    while (!adma->stopped)
        k_sleep(adma->kernel, REAP_PS);
    adma_channels_release(adma);
    k_free(adma);
}

const struct adma_stats *adma_stats(const struct adma *adma)
{
    return &adma->stats;
}

/* ---- Processes ------------------------------------------------------------------------------- */

struct adma_process *adma_open(struct adma *adma, struct umem *umem)
{
    struct adma_process *process = k_zalloc(sizeof(*process));
    process->adma = adma;
    process->umem = umem;
    process->kernel = adma->kernel;
    for (unsigned i = ADMA_REQUESTS_MAX; i > 0; i--) {
        struct adma_request *r = &process->request[i - 1];
        r->process = process;
        r->next = process->free_requests;
        process->free_requests = r;
    }
    adma_pins_init(process);
    adma_notifier_init(process);
    process->next = adma->processes;
    adma->processes = process;
    k_syscall(adma->kernel);
    return process;
}

void adma_kill(struct adma_process *process)
{
    struct adma *adma = process->adma;
    process->killed = true;
    for (unsigned i = 0; i < ADMA_REQUESTS_MAX; i++)
        if (k_has_waiters(&process->request[i].semaphore))
            k_wake(process->kernel, &process->request[i].semaphore);
    /* Several threads may wait. A wake-up takes time, in which any connection may go: look from the
     * start again. Who has been woken waits no more. */
    for (struct adma_connection *c = adma->connections; c != NULL;)
        if (c->end[0].process == process && k_has_waiters(&c->wait)) {
            k_wake(adma->kernel, &c->wait);
            c = adma->connections;
        } else
            c = c->next;
}

void adma_close(struct adma_process *process)
{
    struct adma *adma = process->adma;
    k_syscall(process->kernel);
    process->killed = true;
    adma_disconnect_all(process);
    umem_notifier_remove(process->umem, &process->notifier);
    adma_pins_drop(process);
    look_at(process);
    process->closed = true;
    adma_reap(adma);
}

bool adma_enter(struct adma_process *process)
{
    uint64_t since_ps = k_now_ps(process->kernel);
    k_syscall(process->kernel);
    process->times.transition_ps += adma_lap(process->kernel, &since_ps);
    return !process->killed;
}

const struct adma_times *adma_times(const struct adma_process *process)
{
    return &process->times;
}
