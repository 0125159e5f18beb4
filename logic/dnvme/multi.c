/*
 * A queue pair for each of a client's two paths, of which one is in use.
 *
 * What it does: Finds that the path in use has failed, by the event of its link or as no command
 *   ends for a while; sends what follows by the other at once. The failed pair is deleted by the
 *   manager, asked by the path that is left; a deletion is complete when the last command that the
 *   controller had fetched has ended. Then what was under way is issued again, so no two executions
 *   overlap. A write that was executed before is executed twice with the same data: its buffer is
 *   the driver's until done(), and the caller has no other write of its blocks under way. The path
 *   that has taken over stays in use until it fails.
 *
 *     path     its pair                              next                                      done by
 *     UP       for I/O                               DOWN: the link is down, or no progress    I/O thread
 *     DOWN     is to be deleted, not yet             DELETED: the manager has deleted it,      recovery
 *                                                    and the I/O thread is not in the pair
 *     DELETED  the controller has none of it         NONE: its commands are in `again`         I/O thread
 *     NONE     is freed; then there is none          UP: path and buffers are mapped again     recovery
 *
 *     I/O is   until
 *     again    it is in the queue of an UP path: issued; it cannot be put there: ended
 *     issued   its completion: ended; its pair is DELETED: again
 *     any      the device is lost: ended with NVME_SC_ABORTED_SQ_DELETED, by dnvme_multi_wait()
 *
 * Follows: SmartIO, 6.3.
 * Costs: Those of a pair. A second thread recovers; the one that does I/O never waits for it.
 */
#include "logic/dnvme/dnvme_internal.h"

#define SLICE_PS (5 * K_US)   /* of polling between two looks at links */
#define RETRY_PS (500 * K_US) /* of recovery, while the link is down */

/* ---- I/O ------------------------------------------------------------------------------------- */

static void queue_again(struct dnvme_multi *m, struct dnvme_io *io)
{
    io->next = NULL;
    *m->again_end = io;
    m->again_end = &io->next;
}

static struct dnvme_io *take_again(struct dnvme_multi *m)
{
    struct dnvme_io *io = m->again;
    m->again = io->next;
    if (m->again == NULL)
        m->again_end = &m->again;
    return io;
}

static void finish(struct dnvme_multi *m, struct dnvme_io *io, uint16_t status)
{
    m->stats.outstanding--;
    io->status = status;
    io->done(io);
}

static void command_done(struct nvme_user_command *command)
{
    struct dnvme_io *io = command->context;
    struct dnvme_multi *m = io->multi;
    if (NVME_STATUS_CODE(command->status) == NVME_SC_ABORTED_SQ_DELETED && !m->over) {
        m->stats.failed_over++;
        queue_again(m, io);
        return;
    }
    m->progress_ps = k_now_ps(m->client->kernel);
    finish(m, io, command->status);
}

/* The recovery thread leaves the pair alone in between. */
static struct dnvme_pair *enter(struct dnvme_multi *m, unsigned i)
{
    m->in_use[i]++;
    return m->pair[i];
}

/* The recovery thread may not be waiting, but in a call for another path. */
static void wake_recovery(struct dnvme_multi *m)
{
    m->work = true;
    k_wake(m->client->kernel, &m->wait);
}

static void leave(struct dnvme_multi *m, unsigned i)
{
    if (--m->in_use[i] == 0 && m->state[i] == DNVME_PATH_DOWN)
        wake_recovery(m);
}

static void fail(struct dnvme_multi *m, unsigned i)
{
    m->state[i] = DNVME_PATH_DOWN;
    m->stats.failures += i == m->active;
    m->stats.lost_paths++;
    wake_recovery(m);
}

/* 0: it is in the queue of the active path. The device may not have been told: ring_again() does
 * that. -EBUSY, -ESTALE: it is not, and can be later. Others: it never can. */
static int issue(struct dnvme_multi *m, struct dnvme_io *io)
{
    const unsigned i = m->active;
    const struct nvme_user_piece piece = { io->buffer->bus[i] + io->offset, io->bytes };
    /* The link was down when the buffer was made, and we have not seen it. */
    if (!io->buffer->mapped[i]) {
        fail(m, i);
        return -ESTALE;
    }
    io->command.done = command_done;
    io->command.context = io;
    dnvme_io(&io->command, io->write, io->nsid, io->block, io->n_blocks);
    struct dnvme_pair *pair = enter(m, i);
    if (nvme_user_qp_outstanding(&pair->qp) == 0)
        m->progress_ps = k_now_ps(m->client->kernel);
    const int status = dnvme_pair_put(pair, &io->command, &piece, 1);
    if (status == 0)
        dnvme_pair_ring(pair);
    leave(m, i);
    return status;
}

/* What is in the queue, if the lease could not be renewed in time before. */
static void ring_again(struct dnvme_multi *m)
{
    const unsigned i = m->active;
    dnvme_pair_ring(enter(m, i));
    leave(m, i);
}

static bool has_failed(const struct dnvme_multi *m, unsigned i)
{
    const struct nvme_user_qp *qp = &m->pair[i]->qp;
    return !dnvme_path_works(m->client, i) ||
           (i == m->active && nvme_user_qp_outstanding(qp) != 0 &&
            m->looked_ps > m->progress_ps + m->timeout_ps);
}

/* The controller does not execute what was under way. */
static void collect(struct dnvme_multi *m, unsigned i)
{
    nvme_user_qp_fail_all(&m->pair[i]->qp, NVME_SC_ABORTED_SQ_DELETED);
    m->state[i] = DNVME_PATH_NONE;
    wake_recovery(m);
}

/* The path in use works, as far as is known; false: none does. */
static bool choose(struct dnvme_multi *m)
{
    for (unsigned i = 0; i < m->client->params.n_paths; i++) {
        if (m->state[i] == DNVME_PATH_UP && has_failed(m, i))
            fail(m, i);
        if (m->state[i] == DNVME_PATH_DELETED && m->in_use[i] == 0)
            collect(m, i);
    }
    for (unsigned i = 0; i < m->client->params.n_paths && m->state[m->active] != DNVME_PATH_UP; i++)
        if (m->state[i] == DNVME_PATH_UP) {
            m->active = i;
            m->stats.switches++;
        }
    return m->state[m->active] == DNVME_PATH_UP;
}

static void issue_again(struct dnvme_multi *m)
{
    while (m->again != NULL && m->state[m->active] == DNVME_PATH_UP) {
        const int status = issue(m, m->again);
        if (status == -EBUSY || status == -ESTALE)
            return;
        struct dnvme_io *io = take_again(m);
        if (status != 0)
            finish(m, io, NVME_SC_INVALID_FIELD | NVME_STATUS_DNR);
    }
}

void dnvme_multi_submit(struct dnvme_multi *m, struct dnvme_io *io)
{
    io->multi = m;
    m->stats.outstanding++;
    if (m->over || m->again != NULL || !choose(m) || issue(m, io) != 0)
        queue_again(m, io);
}

/* Nothing of the client works any more. Not at once, as done() may submit more. */
static void end_all(struct dnvme_multi *m, uint64_t until_ps)
{
    struct kernel *kernel = m->client->kernel;
    const uint64_t now_ps = k_now_ps(kernel);
    m->over = true;
    k_sleep(kernel, m->stats.outstanding != 0 || until_ps < now_ps + SLICE_PS ? SLICE_PS
                                                                              : until_ps - now_ps);
    for (unsigned i = 0; i < m->client->params.n_paths; i++)
        if (m->state[i] != DNVME_PATH_NONE)
            nvme_user_qp_fail_all(&m->pair[i]->qp, NVME_SC_ABORTED_SQ_DELETED);
    for (unsigned n = m->stats.outstanding; n > 0 && m->again != NULL; n--)
        finish(m, take_again(m), NVME_SC_ABORTED_SQ_DELETED);
}

void dnvme_multi_wait(struct dnvme_multi *m, uint64_t until_ps)
{
    struct kernel *kernel = m->client->kernel;
    for (;;) {
        const uint64_t now_ps = k_now_ps(kernel), slice_ps = now_ps + SLICE_PS;
        unsigned n = 0;
        if (m->broken || dnvme_client_lost(m->client)) {
            end_all(m, until_ps);
            return;
        }
        if (choose(m)) {
            const unsigned outstanding = m->stats.outstanding, i = m->active;
            issue_again(m);
            n = m->stats.outstanding < outstanding; /* refused */
            if (n == 0 && m->state[i] == DNVME_PATH_UP) {
                ring_again(m);
                n = dnvme_pair_wait(enter(m, i), slice_ps < until_ps ? slice_ps : until_ps);
                leave(m, i);
                m->looked_ps = n == 0 ? k_now_ps(kernel) : m->looked_ps;
            }
        } else if (now_ps < until_ps) {
            k_sleep(kernel, SLICE_PS);
        }
        if (n != 0 || now_ps >= until_ps)
            return;
    }
}

/* ---- Recovery -------------------------------------------------------------------------------- */

static void drop(struct dnvme_multi *m, unsigned i)
{
    struct dnvme_pair *pair = m->pair[i];
    const uint64_t handle = pair->handle;
    if (m->in_use[i] != 0) /* leave() wakes us */
        return;
    const int status = dnvme_mail_call(&m->client->mail, WIRE_DELETE, &handle, sizeof handle, NULL,
                                       0);
    m->broken = m->broken || status == -ENODEV || status == -EIO;
    if (status != 0 && status != -EPERM) { /* the manager cannot be reached: again, later */
        for (unsigned k = 0; k < m->client->params.n_paths; k++)
            if (m->state[k] != DNVME_PATH_UP)
                dnvme_path_connect(m->client, k); /* so that it can, if both are lost */
        return;
    }
    pair->handle = 0;
    m->state[i] = DNVME_PATH_DELETED;
}

static void restore(struct dnvme_multi *m, unsigned i)
{
    bool rebuilt;
    if (dnvme_path_restore(m->client, i, &rebuilt) != 0)
        return;
    m->rebuilt[i] = m->rebuilt[i] || rebuilt;
    m->params.path = i;
    if (dnvme_pair_new(m->client, &m->params, &m->pair[i], NULL) != 0)
        return;
    m->stats.resumed += !m->rebuilt[i];
    m->stats.rebuilt += m->rebuilt[i];
    m->rebuilt[i] = false;
    m->stats.restored_ps = k_now_ps(m->client->kernel);
    m->state[i] = DNVME_PATH_UP;
}

static void recover(struct dnvme_multi *m, unsigned i)
{
    struct dnvme_pair *pair = m->pair[i];
    if (m->state[i] == DNVME_PATH_DOWN) {
        drop(m, i);
    } else if (m->state[i] == DNVME_PATH_NONE && pair != NULL) {
        m->pair[i] = NULL;
        dnvme_pair_free(pair);
    } else if (m->state[i] == DNVME_PATH_NONE) {
        restore(m, i);
    }
}

static void body(void *arg)
{
    struct dnvme_multi *m = arg;
    struct kernel *kernel = m->client->kernel;
    while (!m->stopping) {
        m->work = false;
        for (unsigned i = 0; i < m->client->params.n_paths && !dnvme_client_lost(m->client); i++)
            recover(m, i);
        if (!m->work && !m->stopping)
            k_wait(kernel, &m->wait, k_now_ps(kernel) + RETRY_PS);
    }
    m->stopped = true;
    k_wake(kernel, &m->wait);
}

/* ---- Life ------------------------------------------------------------------------------------ */

int dnvme_multi_new(struct dnvme_client *c, const struct dnvme_pair_params *params,
                    uint64_t timeout_ps, struct dnvme_multi **multi, struct lend_error *error)
{
    struct dnvme_multi *m = k_zalloc(sizeof *m);
    int status = 0;
    *multi = NULL;
    *m = (struct dnvme_multi){ .client = c, .params = *params, .timeout_ps = timeout_ps };
    m->again_end = &m->again;
    for (unsigned i = 0; i < c->params.n_paths && status == 0; i++) {
        m->params.path = i;
        status = dnvme_pair_new(c, &m->params, &m->pair[i], error);
    }
    if (status != 0) {
        for (unsigned i = 0; i < c->params.n_paths; i++)
            if (m->pair[i] != NULL)
                dnvme_pair_free(m->pair[i]);
        k_free(m);
        return status;
    }
    k_thread_new(c->kernel, "dnvme_multi", c->params.cpu, body, m);
    *multi = m;
    return 0;
}

void dnvme_multi_free(struct dnvme_multi *m)
{
    struct kernel *kernel = m->client->kernel;
    m->stopping = true;
    k_wake(kernel, &m->wait);
    while (!m->stopped)
        k_wait(kernel, &m->wait, k_now_ps(kernel) + K_MS);
    for (unsigned i = 0; i < m->client->params.n_paths; i++)
        if (m->pair[i] != NULL)
            dnvme_pair_free(m->pair[i]);
    k_free(m);
}

unsigned dnvme_multi_active(const struct dnvme_multi *m)
{
    return m->active;
}

struct dnvme_multi_stats dnvme_multi_stats(const struct dnvme_multi *m)
{
    return m->stats;
}
