/*
 * What it does: what processes have posted: cookies, checks, waits, and copies within a process.
 * Follows: sections 3.1 and 3.3 of the paper: a request whose counterpart is missing waits on a
 *   binary semaphore; one that has it looks for the end of the DMA.
 * Costs: syscall_cycles a call; a sleep and a wake-up what the kernel charges for them.
 */
#include <errno.h>

#include "logic/copy/adma_internal.h"

/* ---- Requests -------------------------------------------------------------------------------- */

struct adma_request *adma_request_get(struct adma_process *process, enum adma_kind kind)
{
    struct adma_request *r = process->free_requests;
    if (r == NULL)
        return NULL;
    process->free_requests = r->next;
    r->next = NULL;
    r->kind = kind;
    r->state = REQUEST_POSTED;
    r->matched = r->moved = 0;
    r->error = 0;
    r->cut = r->leaving = false;
    r->n_transfers = 0;
    r->transfers = NULL;
    r->endpoint = NULL;
    r->transfer.state = TRANSFER_NONE;
    r->transfer.adma = process->adma;
    return r;
}

static void to_free_list(struct adma_request *r)
{
    r->leaving = false;
    r->state = REQUEST_FREE;
    r->generation++;
    r->next = r->process->free_requests;
    r->process->free_requests = r;
    if (r->process->closed)
        adma_reap(r->process->adma);
}

void adma_request_put(struct adma_request *r)
{
    struct adma_process *process = r->process;
    r->leaving = true;
    r->visitors++;
    if (r->kind != ADMA_WRITE && r->transfer.state == TRANSFER_DONE && r->error == 0)
        adma_learn(process->adma, &r->transfer);
    adma_unpin_buffer(process, &r->buffer);
    adma_unpin_buffer(process, &r->second);
    adma_request_leave(r);
}

void adma_request_visit(struct adma_request *r)
{
    r->visitors++;
}

void adma_request_leave(struct adma_request *r)
{
    if (--r->visitors == 0 && r->leaving)
        to_free_list(r);
}

adma_cookie adma_request_cookie(const struct adma_request *r)
{
    const uint64_t idx = (uint64_t)(r - r->process->request);
    return (adma_cookie)((uint64_t)(r->generation & 0x7fffffffu) * ADMA_REQUESTS_MAX + idx + 1);
}

struct adma_request *adma_request_find(struct adma_process *process, adma_cookie cookie)
{
    if (cookie <= 0)
        return NULL;
    struct adma_request *r = &process->request[(uint64_t)(cookie - 1) % ADMA_REQUESTS_MAX];
    const bool there = r->state != REQUEST_FREE && !r->leaving && adma_request_cookie(r) == cookie;
    return there ? r : NULL;
}

/* The state is set. */
static void release_semaphore(struct adma_request *r)
{
    if (k_has_waiters(&r->semaphore))
        k_wake(r->process->kernel, &r->semaphore);
    if (r->process->closed)
        adma_reap(r->process->adma);
}

void adma_request_end(struct adma_request *r, int error)
{
    r->state = REQUEST_ENDED;
    r->error = error;
    adma_request_visit(r);
    release_semaphore(r);
    adma_request_leave(r);
}

static int64_t result(const struct adma_request *r)
{
    return r->error != 0 && r->moved == 0 ? r->error : (int64_t)r->moved;
}

/* ---- Transfers of requests ------------------------------------------------------------------- */

static void write_ended(struct adma_request *w, struct adma_transfer *t)
{
    struct adma_transfer **link = &w->transfers;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    w->n_transfers--;
    w->moved += t->bytes;
    if (w->n_transfers == 0 && (w->cut || w->matched == w->buffer.bytes))
        w->state = REQUEST_ENDED;
}

/* Both states are set before time passes: from then on their owners may put the requests. */
void adma_transfer_ended(struct adma_transfer *t)
{
    struct adma_request *target = t->target, *source = t->source;
    adma_request_visit(target);
    adma_request_visit(source);
    target->moved = t->bytes;
    target->error = 0;
    target->state = REQUEST_ENDED;
    if (source != target)
        write_ended(source, t);
    release_semaphore(target);
    if (source != target)
        release_semaphore(source);
    adma_request_leave(source);
    adma_request_leave(target);
}

static struct adma_transfer *current(struct adma_request *r)
{
    if (r->kind == ADMA_WRITE)
        return r->transfers;
    return r->state == REQUEST_MATCHED ? &r->transfer : NULL;
}

void adma_request_look(struct adma_request *r, struct adma_process *by)
{
    struct adma_transfer *t = current(r);
    if (t == NULL)
        return;
    struct adma_request *owner = t->target;
    adma_request_visit(owner);
    adma_transfer_check(t, by);
    adma_request_leave(owner);
}

void adma_request_wait(struct adma_request *r, uint64_t until_ps)
{
    struct adma_process *process = r->process;
    struct kernel *kernel = process->kernel;
    while (r->state != REQUEST_ENDED && !process->killed && k_now_ps(kernel) < until_ps) {
        struct adma_transfer *t = current(r);
        if (t != NULL) {
            struct adma_request *owner = t->target;
            adma_request_visit(owner);
            adma_transfer_step(t, process, r, until_ps);
            adma_request_leave(owner);
            continue;
        }
        uint64_t since_ps = k_now_ps(kernel);
        process->adma->stats.semaphore_waits++;
        k_wait(kernel, &r->semaphore, until_ps);
        process->times.semaphore_ps += adma_lap(kernel, &since_ps);
    }
}

/* ---- Copies within a process ----------------------------------------------------------------- */

bool adma_overlap(struct uaddr a, struct uaddr b, uint64_t bytes)
{
    return a.v < b.v ? b.v - a.v < bytes : a.v - b.v < bytes;
}

static int begin_copy(struct adma_process *process, struct uaddr to, struct uaddr from,
                      uint64_t bytes, struct adma_request **request)
{
    if (bytes == 0 || adma_overlap(to, from, bytes))
        return -EINVAL;
    struct adma_request *r = adma_request_get(process, ADMA_COPY);
    if (r == NULL)
        return -EAGAIN;
    int error = adma_pin_buffer(process, &r->buffer, from, bytes);
    if (error == 0)
        error = adma_pin_buffer(process, &r->second, to, bytes);
    if (error != 0) {
        adma_request_put(r);
        return error;
    }
    struct adma_transfer *t = &r->transfer;
    t->source = t->target = r;
    t->from = &r->buffer;
    t->to = &r->second;
    t->from_at = t->to_at = 0;
    t->bytes = bytes;
    r->state = REQUEST_MATCHED;
    *request = r;
    adma_transfer_start(t, process);
    return 0;
}

adma_cookie adma_icopy(struct adma_process *process, struct uaddr to, struct uaddr from,
                       uint64_t bytes)
{
    struct adma_request *r;
    if (!adma_enter(process))
        return -EINTR;
    const int error = begin_copy(process, to, from, bytes, &r);
    return error != 0 ? error : adma_request_cookie(r);
}

static int end_copy(struct adma_request *r)
{
    if (r->state != REQUEST_ENDED)
        return -EINTR;
    adma_request_put(r);
    return 0;
}

int adma_check_copy(struct adma_process *process, adma_cookie cookie)
{
    if (!adma_enter(process))
        return -EINTR;
    struct adma_request *r = adma_request_find(process, cookie);
    if (r == NULL || r->kind != ADMA_COPY)
        return -EINVAL;
    adma_request_look(r, process);
    if (r->state != REQUEST_ENDED)
        return 0;
    adma_request_put(r);
    return 1;
}

int adma_wait_copy(struct adma_process *process, adma_cookie cookie)
{
    if (!adma_enter(process))
        return -EINTR;
    struct adma_request *r = adma_request_find(process, cookie);
    if (r == NULL || r->kind != ADMA_COPY)
        return -EINVAL;
    adma_request_wait(r, UINT64_MAX);
    return end_copy(r);
}

int adma_copy(struct adma_process *process, struct uaddr to, struct uaddr from, uint64_t bytes)
{
    struct adma_request *r;
    if (!adma_enter(process))
        return -EINTR;
    const int error = begin_copy(process, to, from, bytes, &r);
    if (error != 0)
        return error;
    adma_request_wait(r, UINT64_MAX);
    return end_copy(r);
}

/* ---- Ends of reads and writes ---------------------------------------------------------------- */

bool adma_check(struct adma_process *process, adma_cookie cookie, int64_t *of)
{
    *of = -EINTR;
    if (!adma_enter(process))
        return true;
    struct adma_request *r = adma_request_find(process, cookie);
    *of = -EINVAL;
    if (r == NULL || r->kind == ADMA_COPY)
        return true;
    adma_request_look(r, process);
    if (r->state != REQUEST_ENDED)
        return false;
    *of = result(r);
    adma_request_put(r);
    return true;
}

static int64_t end_request(struct adma_request *r)
{
    if (r->state != REQUEST_ENDED)
        return r->process->killed ? -EINTR : -ETIMEDOUT;
    const int64_t of = result(r);
    adma_request_put(r);
    return of;
}

int64_t adma_wait(struct adma_process *process, adma_cookie cookie, uint64_t until_ps)
{
    if (!adma_enter(process))
        return -EINTR;
    struct adma_request *r = adma_request_find(process, cookie);
    if (r == NULL || r->kind == ADMA_COPY)
        return -EINVAL;
    adma_request_wait(r, until_ps);
    return end_request(r);
}

/* At until_ps, what has no counterpart is withdrawn; what moves already moves to its end. */
int64_t adma_request_finish(struct adma_request *r, uint64_t until_ps)
{
    adma_request_wait(r, until_ps);
    if (r->state != REQUEST_ENDED && !r->process->killed) {
        adma_withdraw(r, -ETIMEDOUT);
        adma_request_wait(r, UINT64_MAX);
    }
    return end_request(r);
}
