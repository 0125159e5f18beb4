/*
 * What it does: connections between two processes, and the matching of what they post: the oldest
 *   read of one end with the oldest write of the other. Whoever posts the second of both begins the
 *   transfer and releases the first one's semaphore at once (cases 1 and 2 of the paper); whoever
 *   finds the counterpart there does not sleep (case 3). A read takes at most what is left of one
 *   write.
 * Leaves out: backlogs of listeners, sockets that are passed on, buffering in the kernel: a write
 *   waits for its reader.
 * Follows: sections 3.2 and 3.3 of the paper.
 * Costs: a system call each; pins of its buffer at posting; the transfer is paid by the second.
 */
#include <errno.h>

#include "logic/copy/adma_internal.h"

static struct adma_endpoint *other_end(struct adma_endpoint *end)
{
    struct adma_connection *c = end->connection;
    return end == &c->end[0] ? &c->end[1] : &c->end[0];
}

/* Calls that let time pass keep the connection; it goes with the last of them, when both ends
 * have. */
static void hold(struct adma_connection *c)
{
    c->holds++;
}

static void let_go(struct adma_connection *c)
{
    if (--c->holds != 0 || c->end[0].process != NULL || c->end[1].process != NULL)
        return;
    K_LIST_REMOVE(c->adma->connections, c);
    k_free(c);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void push(struct adma_request **first, struct adma_request **last, struct adma_request *r)
{
    r->queued = true;
    r->next = NULL;
    if (*first == NULL)
        *first = r;
    else
        (*last)->next = r;
    *last = r;
}

static void pop(struct adma_request **first)
{
    struct adma_request *r = *first;
    *first = r->next;
    r->next = NULL;
    r->queued = false;
}

static void take_out(struct adma_request *r)
{
    struct adma_endpoint *end = r->endpoint;
    struct adma_request **first = r->kind == ADMA_READ ? &end->reads : &end->writes;
    struct adma_request **last = r->kind == ADMA_READ ? &end->last_read : &end->last_write;
    if (!r->queued)
        return;
    K_LIST_REMOVE(*first, r);
    r->queued = false;
    r->next = NULL;
    *last = *first;
    while (*last != NULL && (*last)->next != NULL)
        *last = (*last)->next;
}

void adma_withdraw(struct adma_request *r, int error)
{
    if (!r->queued)
        return;
    take_out(r);
    r->cut = true;
    r->error = error;
    if (r->n_transfers == 0)
        adma_request_end(r, error);
}

/* ---- Matching -------------------------------------------------------------------------------- */

/* Both sides leave the lists, or the write keeps its rest there, before time passes. */
static void match_one(struct adma_process *by, struct adma_endpoint *writer,
                      struct adma_endpoint *reader)
{
    struct adma_request *w = writer->writes, *r = reader->reads;
    struct adma_transfer *t = &r->transfer, **link = &w->transfers;
    const uint64_t rest = w->buffer.bytes - w->matched;
    t->source = w;
    t->target = r;
    t->from = &w->buffer;
    t->to = &r->buffer;
    t->from_at = w->matched;
    t->to_at = 0;
    t->bytes = rest < r->buffer.bytes ? rest : r->buffer.bytes;
    t->next = NULL;
    pop(&reader->reads);
    r->state = REQUEST_MATCHED;
    w->matched += t->bytes;
    if (w->matched == w->buffer.bytes) {
        pop(&writer->writes);
        w->state = REQUEST_MATCHED;
    }
    if (w->process->umem == r->process->umem &&
        t->from->at.v + t->from_at < t->to->at.v + t->bytes &&
        t->to->at.v < t->from->at.v + t->from_at + t->bytes) {
        w->error = -EINVAL;
        if (w->n_transfers == 0 && w->matched == w->buffer.bytes)
            adma_request_end(w, -EINVAL);
        adma_request_end(r, -EINVAL);
        return;
    }
    while (*link != NULL)
        link = &(*link)->next;
    *link = t;
    w->n_transfers++;
    struct adma_request *first = w->process == by ? r : w;
    adma_request_visit(r);
    adma_request_visit(w);
    adma_transfer_start(t, by);
    if (k_has_waiters(&first->semaphore))
        k_wake(by->kernel, &first->semaphore);
    adma_request_leave(w);
    adma_request_leave(r);
}

static void match(struct adma_process *by, struct adma_endpoint *writer,
                  struct adma_endpoint *reader)
{
    while (writer->writes != NULL && reader->reads != NULL)
        match_one(by, writer, reader);
}

/* ---- Posting --------------------------------------------------------------------------------- */

static struct adma_endpoint *endpoint_of(struct adma_process *process, int fd)
{
    return fd >= 0 && (unsigned)fd < ADMA_FDS_MAX ? process->fd[fd] : NULL;
}

static int post(struct adma_process *process, enum adma_kind kind, int fd, struct uaddr at,
                uint64_t bytes, struct adma_request **request)
{
    struct adma_endpoint *end = endpoint_of(process, fd);
    if (end == NULL)
        return -EBADF;
    if (kind == ADMA_WRITE && other_end(end)->process == NULL)
        return -EPIPE;
    struct adma_request *r = adma_request_get(process, kind);
    if (r == NULL)
        return -EAGAIN;
    const int error = adma_pin_buffer(process, &r->buffer, at, bytes);
    if (error != 0) {
        adma_request_put(r);
        return error;
    }
    end = endpoint_of(process, fd); /* pinning takes time */
    *request = r;
    if (bytes == 0 || end == NULL || other_end(end)->process == NULL) {
        adma_request_end(r, kind == ADMA_WRITE && bytes != 0 ? -EPIPE : 0);
        return 0;
    }
    r->endpoint = end;
    if (kind == ADMA_READ)
        push(&end->reads, &end->last_read, r);
    else
        push(&end->writes, &end->last_write, r);
    hold(end->connection);
    if (kind == ADMA_READ)
        match(process, other_end(end), end);
    else
        match(process, end, other_end(end));
    let_go(end->connection);
    return 0;
}

static adma_cookie post_only(struct adma_process *process, enum adma_kind kind, int fd,
                             struct uaddr at, uint64_t bytes)
{
    struct adma_request *r;
    if (!adma_enter(process))
        return -EINTR;
    const int error = post(process, kind, fd, at, bytes, &r);
    return error != 0 ? error : adma_request_cookie(r);
}

static int64_t post_and_wait(struct adma_process *process, enum adma_kind kind, int fd,
                             struct uaddr at, uint64_t bytes, uint64_t until_ps)
{
    struct adma_request *r;
    if (!adma_enter(process))
        return -EINTR;
    const int error = post(process, kind, fd, at, bytes, &r);
    return error != 0 ? error : adma_request_finish(r, until_ps);
}

adma_cookie adma_iread(struct adma_process *process, int fd, struct uaddr to, uint64_t bytes)
{
    return post_only(process, ADMA_READ, fd, to, bytes);
}

adma_cookie adma_iwrite(struct adma_process *process, int fd, struct uaddr from, uint64_t bytes)
{
    return post_only(process, ADMA_WRITE, fd, from, bytes);
}

int64_t adma_read(struct adma_process *process, int fd, struct uaddr to, uint64_t bytes,
                  uint64_t until_ps)
{
    return post_and_wait(process, ADMA_READ, fd, to, bytes, until_ps);
}

int64_t adma_write(struct adma_process *process, int fd, struct uaddr from, uint64_t bytes,
                   uint64_t until_ps)
{
    return post_and_wait(process, ADMA_WRITE, fd, from, bytes, until_ps);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static int free_fd(const struct adma_process *process)
{
    for (unsigned i = 0; i < ADMA_FDS_MAX; i++)
        if (process->fd[i] == NULL)
            return (int)i;
    return -EMFILE;
}

/* Somebody waits for this: the connection is whole. */
static int join(struct adma_process *process, struct adma_connection *c, int fd)
{
    c->end[1].process = process;
    c->whole = true;
    process->fd[fd] = &c->end[1];
    k_wake(process->kernel, &c->wait);
    return fd;
}

/* Another thread of the process may disconnect meanwhile: then fd is free, or another
 * connection. */
static int wait_for_peer(struct adma_process *process, struct adma_connection *c, int fd,
                         uint64_t until_ps)
{
    struct adma_endpoint *end = &c->end[0];
    int error = 0;
    while (!c->whole && end->process != NULL && !process->killed &&
           k_now_ps(process->kernel) < until_ps)
        k_wait(process->kernel, &c->wait, until_ps);
    if (end->process == NULL)
        error = process->killed ? -EINTR : -EBADF;
    else if (!c->whole) {
        error = process->killed ? -EINTR : -ETIMEDOUT;
        process->fd[fd] = NULL;
        end->process = NULL;
    }
    let_go(c);
    return error != 0 ? error : fd;
}

static int meet(struct adma_process *process, uint32_t port, bool connects, uint64_t until_ps)
{
    struct adma *adma = process->adma;
    struct adma_connection *c;
    if (!adma_enter(process))
        return -EINTR;
    const int fd = free_fd(process);
    if (fd < 0)
        return fd;
    for (c = adma->connections; c != NULL; c = c->next)
        if (!c->whole && c->end[0].process != NULL && c->port == port && c->connects != connects)
            return join(process, c, fd);
    c = k_zalloc(sizeof(*c));
    c->adma = adma;
    c->port = port;
    c->connects = connects;
    c->end[0].connection = c->end[1].connection = c;
    c->end[0].process = process;
    c->next = adma->connections;
    adma->connections = c;
    process->fd[fd] = &c->end[0];
    hold(c);
    return wait_for_peer(process, c, fd, until_ps);
}

int adma_connect(struct adma_process *process, uint32_t port, uint64_t until_ps)
{
    return meet(process, port, true, until_ps);
}

int adma_accept(struct adma_process *process, uint32_t port, uint64_t until_ps)
{
    return meet(process, port, false, until_ps);
}

static void close_end(struct adma_endpoint *end)
{
    struct adma_connection *c = end->connection;
    hold(c);
    end->process = NULL;
    for (unsigned i = 0; i < 2; i++) {
        while (c->end[i].reads != NULL)
            adma_withdraw(c->end[i].reads, 0);
        while (c->end[i].writes != NULL)
            adma_withdraw(c->end[i].writes, -EPIPE);
    }
    if (k_has_waiters(&c->wait)) /* a thread that waits for a peer at this end */
        k_wake(c->adma->kernel, &c->wait);
    let_go(c);
}

int adma_disconnect(struct adma_process *process, int fd)
{
    if (!adma_enter(process))
        return -EINTR;
    struct adma_endpoint *end = endpoint_of(process, fd);
    if (end == NULL)
        return -EBADF;
    process->fd[fd] = NULL;
    close_end(end);
    return 0;
}

void adma_disconnect_all(struct adma_process *process)
{
    for (unsigned i = 0; i < ADMA_FDS_MAX; i++) {
        struct adma_endpoint *end = process->fd[i];
        process->fd[i] = NULL;
        if (end != NULL)
            close_end(end);
    }
}
