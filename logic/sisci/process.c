/*
 * What it does: a process's use of SISCI: opens and closes it, and has a thread that deals with
 *   what it loses and runs its callbacks.
 * Follows: SISCI API, SCIOpen(), SCIClose(), callbacks of segments.
 * Costs: a system call to open and to close; a wake-up for each report.
 */
#include "logic/sisci/sisci_internal.h"

/* ---- The lock -------------------------------------------------------------------------------- */

void sisci_lock(struct sisci_process *process)
{
    struct kernel *kernel = process->sisci->kernel;
    while (process->locked)
        k_wait(kernel, &process->lock_wait, UINT64_MAX);
    process->locked = true;
}

void sisci_unlock(struct sisci_process *process)
{
    process->locked = false;
    k_wake(process->sisci->kernel, &process->lock_wait);
}

/* A callback of the object runs, and it is not the caller. */
static bool is_reporting(const struct sisci_process *process, const void *object)
{
    return process->reporting == object && k_thread_self(process->sisci->kernel) != process->thread;
}

void sisci_lock_idle(struct sisci_process *process, const void *object)
{
    sisci_lock(process);
    while (is_reporting(process, object)) {
        sisci_unlock(process);
        while (is_reporting(process, object))
            k_wait(process->sisci->kernel, &process->reported, UINT64_MAX);
        sisci_lock(process);
    }
}

void sisci_notify(struct sisci_process *process)
{
    process->busy = true;
    k_wake(process->sisci->kernel, &process->work);
}

/* To wake a thread takes time, in which a process may be closed. */
void sisci_notify_all(struct sisci *sisci)
{
    for (struct sisci_process *p = sisci->processes; p != NULL; p = p->next)
        p->to_be_woken = true;
    for (struct sisci_process *p = sisci->processes; p != NULL;) {
        if (!p->to_be_woken) {
            p = p->next;
            continue;
        }
        p->to_be_woken = false;
        sisci_notify(p);
        p = sisci->processes;
    }
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* The lowest event of a set, which is not empty. */
static enum sisci_event first_of(unsigned events)
{
    return (enum sisci_event)__builtin_ctz(events);
}

/* Around a callback, which runs without the lock. Whoever frees the object waits meanwhile
 * (sisci_lock_idle()), unless it is the callback: the object may be gone afterwards. */
static void callback_begin(struct sisci_process *process, const void *object)
{
    process->reporting = object;
    sisci_unlock(process);
}

static void callback_end(struct sisci_process *process)
{
    sisci_lock(process);
    process->reporting = NULL;
    k_wake(process->sisci->kernel, &process->reported);
}

/* Reports one event of a remote segment. Its callback may free any, so the search begins anew.
 * False: there is none. */
static bool report_remote(struct sisci_process *process)
{
    struct sisci_remote *r = process->remotes;
    while (r != NULL && r->pending == 0)
        r = r->next;
    if (r == NULL)
        return false;
    const enum sisci_event event = first_of(r->pending);
    r->pending &= ~(1u << event);
    if (r->lost)
        sisci_remote_lose(r);
    if (r->changed == NULL)
        return true;
    callback_begin(process, r);
    r->changed(r, event, r->context);
    callback_end(process);
    return true;
}

static bool report_device(struct sisci_process *process)
{
    struct sisci_device *d = process->devices;
    while (d != NULL && !d->pending)
        d = d->next;
    if (d == NULL)
        return false;
    d->pending = false;
    sisci_windows_settle(d);
    sisci_device_recover(d);
    if (!d->lost || d->reported || d->changed == NULL)
        return true;
    d->reported = true;
    callback_begin(process, d);
    d->changed(d, SISCI_CB_LOST, d->context);
    callback_end(process);
    return true;
}

static bool report_segment(struct sisci_process *process)
{
    struct sisci_report *report = process->reports;
    if (report == NULL)
        return false;
    process->reports = report->next;
    struct sisci_segment *s = report->segment;
    const struct sisci_report now = *report;
    k_free(report);
    callback_begin(process, s);
    s->changed(s, now.event, now.host, s->context);
    callback_end(process);
    return true;
}

void sisci_report(struct sisci_segment *segment, enum sisci_event event, uint32_t host)
{
    struct sisci_process *process = segment->process;
    if (process == NULL || segment->changed == NULL || segment->dying)
        return;
    struct sisci_report **last = &process->reports;
    while (*last != NULL)
        last = &(*last)->next;
    *last = k_zalloc(sizeof **last);
    **last = (struct sisci_report){ .segment = segment, .event = event, .host = host };
    sisci_notify(process);
}

void sisci_reports_drop(struct sisci_segment *segment)
{
    struct sisci_report **link = segment->process != NULL ? &segment->process->reports : NULL;
    while (link != NULL && *link != NULL) {
        struct sisci_report *report = *link;
        if (report->segment != segment) {
            link = &report->next;
            continue;
        }
        *link = report->next;
        k_free(report);
    }
}

static void reporter(void *arg)
{
    struct sisci_process *process = arg;
    struct kernel *kernel = process->sisci->kernel;
    while (!process->stopping) {
        if (!process->busy) {
            k_wait(kernel, &process->work, UINT64_MAX);
            continue;
        }
        process->busy = false;
        sisci_lock(process);
        while (!process->stopping &&
               (report_remote(process) || report_device(process) || report_segment(process)))
            ;
        sisci_unlock(process);
    }
    process->running = false;
    k_wake(kernel, &process->stopped);
}

/* ---- Life ------------------------------------------------------------------------------------ */

enum sisci_error sisci_open(struct sisci *sisci, struct sisci_process **result,
                            struct lend_error *error)
{
    (void)error;
    struct sisci_process *process = k_zalloc(sizeof *process);
    *process = (struct sisci_process){ .next = sisci->processes, .sisci = sisci, .running = true };
    sisci->processes = process;
    k_syscall(sisci->kernel);
    process->thread = k_thread_new(sisci->kernel, "sisci", K_CPU_ANY, reporter, process);
    *result = process;
    return SISCI_OK;
}

/* The next segment of the process, or NULL. */
static struct sisci_segment *segment_of(const struct sisci_process *process)
{
    struct sisci_segment *s = process->sisci->segments;
    while (s != NULL && (s->process != process || s->dying))
        s = s->next;
    return s;
}

void sisci_close(struct sisci_process *process)
{
    struct sisci *sisci = process->sisci;
    k_syscall(sisci->kernel);
    process->stopping = true; /* no callback any more */
    sisci_notify(process);
    while (process->running)
        k_wait(sisci->kernel, &process->stopped, k_now_ps(sisci->kernel) + K_MS);
    sisci_lock(process);
    for (struct sisci_device *d = process->devices; d != NULL; d = d->next)
        while (d->windows != NULL)
            sisci_window_close(d->windows);
    while (process->remotes != NULL)
        sisci_remote_close(process->remotes);
    while (process->devices != NULL)
        sisci_device_close(process->devices);
    sisci_groups_close(sisci, process);
    for (struct sisci_segment *s; (s = segment_of(process)) != NULL;)
        sisci_segment_end(s, process);
    sisci_unlock(process);
    K_LIST_REMOVE(sisci->processes, process);
    k_free(process);
}

void sisci_processes_free(struct sisci *sisci)
{
    while (sisci->processes != NULL) {
        struct sisci_process *p = sisci->processes;
        sisci->processes = p->next;
        while (p->reports != NULL) {
            struct sisci_report *report = p->reports;
            p->reports = report->next;
            k_free(report);
        }
        while (p->remotes != NULL) {
            struct sisci_remote *remote = p->remotes;
            p->remotes = remote->next;
            k_free(remote);
        }
        while (p->devices != NULL) {
            struct sisci_device *device = p->devices;
            p->devices = device->next;
            while (device->segments != NULL) {
                struct sisci_own_segment *own = device->segments;
                device->segments = own->next;
                k_free(own);
            }
            k_free(device);
        }
        k_free(p);
    }
}

uint32_t sisci_host_id(const struct sisci_process *process)
{
    return process->sisci->id;
}
