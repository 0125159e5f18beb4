/*
 * A queue pair for each of a client's two paths, of which one is in use.
 *
 * What it does: Finds that the path in use has failed, by the event of its link or as no command ends for
 *   a while; sends what follows by the other at once. What was under way is deleted with its queue pair by
 *   the manager, which is asked by the path that is left, and then issued again: a deletion is complete when
 *   the last command that the controller had fetched has ended, so the two never overlap. Reads are
 *   repeated; a write that was executed before is executed twice, with the same data, as its buffer is the
 *   driver's until done() and no other write of its blocks can have come between: the caller issues none
 *   that overlap. When the link is back the pair is created again, over the old mappings if they
 *   are still valid; else the path is connected and everything is mapped anew. The path that has taken over
 *   stays in use until it fails.
 * Follows: SmartIO, 6.3.
 * Costs: Those of a pair. A second thread recovers; the one that does I/O never waits for it.
 */
#include "logic/dnvme/dnvme_internal.h"

#define SLICE_PS (5 * K_US)   /* of polling between two looks at links */
#define RETRY_PS (500 * K_US) /* of recovery, while the link is down */

enum path_state {
    PATH_UP,   /* the I/O thread uses the pair */
    PATH_DOWN, /* the recovery thread's: its pair is to be deleted */
    PATH_NONE, /* the same: there is no pair */
};

struct dnvme_multi {
    struct dnvme_client *client;
    struct dnvme_pair_params params;
    uint64_t timeout_ps;
    struct dnvme_pair *pair[DNVME_PATHS_MAX];
    enum path_state state[DNVME_PATHS_MAX];
    unsigned active;
    struct dnvme_io *again, **again_end; /* to be issued, in their order */
    uint64_t progress_ps;                /* when the last command ended, or the first was issued */
    struct dnvme_multi_stats stats;
    bool stopping, stopped;
    struct k_wait_queue wait;
};

/* ---- I/O ------------------------------------------------------------------------------------- */

static void queue_again(struct dnvme_multi *m, struct dnvme_io *io)
{
    io->next = NULL;
    *m->again_end = io;
    m->again_end = &io->next;
}

/* By the I/O thread, or by the other of a pair that is gone. */
static void command_done(struct nvme_user_command *command)
{
    struct dnvme_io *io = command->context;
    struct dnvme_multi *m = io->multi;
    if (NVME_STATUS_CODE(command->status) == NVME_SC_ABORTED_SQ_DELETED) {
        m->stats.failed_over++;
        queue_again(m, io);
        return;
    }
    m->progress_ps = k_now_ps(m->client->kernel);
    m->stats.outstanding--;
    io->status = command->status;
    io->done(io);
}

static int issue(struct dnvme_multi *m, struct dnvme_io *io)
{
    struct dnvme_pair *pair = m->pair[m->active];
    const struct nvme_user_piece piece = { io->buffer->bus[m->active] + io->offset, io->bytes };
    io->command.done = command_done;
    io->command.context = io;
    dnvme_io(&io->command, io->write, io->nsid, io->block, io->n_blocks);
    if (nvme_user_qp_outstanding(&pair->qp) == 0)
        m->progress_ps = k_now_ps(m->client->kernel);
    const int status = dnvme_pair_put(pair, &io->command, &piece, 1);
    return status != 0 ? status : dnvme_pair_ring(pair);
}

static void fail(struct dnvme_multi *m)
{
    const unsigned other = (m->active + 1) % m->client->params.n_paths;
    m->state[m->active] = PATH_DOWN;
    m->stats.failures++;
    m->stats.lost_paths++;
    if (m->state[other] == PATH_UP)
        m->active = other;
    k_wake(m->client->kernel, &m->wait);
}

static bool has_failed(const struct dnvme_multi *m)
{
    const struct dnvme_path *path = &m->client->path[m->active];
    const struct nvme_user_qp *qp = &m->pair[m->active]->qp;
    return path->down || path->bar.lost ||
           (nvme_user_qp_outstanding(qp) != 0 &&
            k_now_ps(m->client->kernel) - m->progress_ps > m->timeout_ps);
}

/* A path that is not in use has failed: the same, but nothing is under way. */
static void look_at_others(struct dnvme_multi *m)
{
    for (unsigned i = 0; i < m->client->params.n_paths; i++) {
        const struct dnvme_path *path = &m->client->path[i];
        if (i == m->active || m->state[i] != PATH_UP || (!path->down && !path->bar.lost))
            continue;
        m->state[i] = PATH_DOWN;
        m->stats.lost_paths++;
        k_wake(m->client->kernel, &m->wait);
    }
}

/* The path in use works, as far as is known; false: none does. */
static bool choose(struct dnvme_multi *m)
{
    look_at_others(m);
    for (unsigned i = 0; i < m->client->params.n_paths; i++) {
        if (m->state[m->active] == PATH_UP && !has_failed(m))
            return true;
        if (m->state[m->active] == PATH_UP)
            fail(m);
        else
            m->active = (m->active + 1) % m->client->params.n_paths;
    }
    return m->state[m->active] == PATH_UP && !has_failed(m);
}

static void issue_again(struct dnvme_multi *m)
{
    while (m->again != NULL) {
        struct dnvme_io *io = m->again;
        m->again = io->next;
        if (m->again == NULL)
            m->again_end = &m->again;
        if (issue(m, io) != 0) {
            queue_again(m, io);
            return;
        }
    }
}

void dnvme_multi_submit(struct dnvme_multi *m, struct dnvme_io *io)
{
    io->multi = m;
    m->stats.outstanding++;
    if (m->again != NULL || !choose(m) || issue(m, io) != 0)
        queue_again(m, io);
}

void dnvme_multi_wait(struct dnvme_multi *m, uint64_t until_ps)
{
    struct kernel *kernel = m->client->kernel;
    for (;;) {
        const uint64_t now_ps = k_now_ps(kernel);
        if (!choose(m)) {
            if (now_ps >= until_ps)
                return;
            k_sleep(kernel, SLICE_PS);
            continue;
        }
        issue_again(m);
        const uint64_t slice_ps = now_ps + SLICE_PS;
        if (dnvme_pair_wait(m->pair[m->active], slice_ps < until_ps ? slice_ps : until_ps) != 0 ||
            now_ps >= until_ps)
            return;
    }
}

/* ---- Recovery -------------------------------------------------------------------------------- */

/* The controller does not execute anything of the pair any more; then what was under way goes by the other
 * path. */
static void drop(struct dnvme_multi *m, unsigned i)
{
    struct dnvme_pair *pair = m->pair[i];
    const uint64_t handle = pair->handle;
    const int status = handle == 0 ? 0
                                   : dnvme_mail_call(&m->client->mail, WIRE_DELETE, &handle,
                                                     sizeof handle, NULL, 0);
    if (status != 0 && status != -EPERM) /* the manager cannot be reached: again, later */
        return;
    pair->handle = 0;
    nvme_user_qp_fail_all(&pair->qp, NVME_SC_ABORTED_SQ_DELETED);
    m->state[i] = PATH_NONE;
    dnvme_pair_free(pair);
    m->pair[i] = NULL;
}

static void restore(struct dnvme_multi *m, unsigned i)
{
    struct dnvme_path *path = &m->client->path[i];
    const bool lost = path->bar.lost || path->mailbox.lost;
    if (path->down && !lost)
        return;
    if (lost && dnvme_path_rebuild(m->client, i) != 0)
        return;
    m->params.path = i;
    if (dnvme_pair_new(m->client, &m->params, &m->pair[i], NULL) != 0)
        return;
    m->stats.resumed += !lost;
    m->stats.rebuilt += lost;
    m->stats.restored_ps = k_now_ps(m->client->kernel);
    m->state[i] = PATH_UP;
}

static void body(void *arg)
{
    struct dnvme_multi *m = arg;
    struct kernel *kernel = m->client->kernel;
    while (!m->stopping) {
        for (unsigned i = 0; i < m->client->params.n_paths && !dnvme_client_lost(m->client); i++) {
            if (m->state[i] == PATH_DOWN)
                drop(m, i);
            else if (m->state[i] == PATH_NONE)
                restore(m, i);
        }
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
