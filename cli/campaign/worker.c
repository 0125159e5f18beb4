/*
 * A worker is a fork of the command with a socket, on which it reads tasks and writes a report for
 * each, and a pipe for what it prints. The parent reads both as they come, so that a worker never
 * waits for it; the end of the socket is the end of the worker.
 *
 * A worker runs one task after the other: to make a process, and to have its memory given and taken
 * page by page, takes as long as a short run. What its heap keeps of a run would count as the next
 * one's, so large blocks are given back at once, and a worker leaves after a run that needed much
 * (worker_process.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/memory.h"
#include "cli/campaign/worker_internal.h"

#define LOG_BYTES 16384 /* of what a worker prints, this much is kept: its two ends */

struct worker_pool *worker_pool_new(unsigned max_workers, struct worker_limits limits,
                                    worker_body_fn *body, worker_report_fn *report, void *context)
{
    struct worker_pool *pool = g_new0(struct worker_pool, 1);
    pool->workers = g_new0(struct worker, max_workers);
    pool->n_workers = max_workers;
    pool->limits = limits;
    pool->body = body;
    pool->report = report;
    pool->context = context;
    return pool;
}

static void release(struct worker *worker)
{
    worker_close(&worker->socket);
    worker_close(&worker->log_fd);
    g_byte_array_free(worker->report, TRUE);
    g_string_free(worker->log, TRUE);
    g_free(worker->exceeded);
    *worker = (struct worker){ .socket = -1, .log_fd = -1 };
}

void worker_pool_free(struct worker_pool *pool)
{
    for (unsigned i = 0; i < pool->n_workers; i++) {
        if (pool->workers[i].pid == 0)
            continue;
        kill(pool->workers[i].pid, SIGKILL);
        waitpid(pool->workers[i].pid, NULL, 0);
        release(&pool->workers[i]);
    }
    g_free(pool->workers);
    g_free(pool);
}

unsigned worker_pool_running(const struct worker_pool *pool)
{
    unsigned n = 0;
    for (unsigned i = 0; i < pool->n_workers; i++)
        n += pool->workers[i].busy;
    return n;
}

bool worker_pool_full(const struct worker_pool *pool)
{
    return worker_pool_running(pool) == pool->n_workers;
}

/* ---- Memory and time ------------------------------------------------------------------------- */

/* Beside what it shares with this process. */
static uint64_t held_bytes(const struct worker *worker)
{
    return worker_beside(memory_resident_bytes(worker->pid), worker->inherited_bytes);
}

uint64_t worker_pool_memory_bytes(const struct worker_pool *pool)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < pool->n_workers; i++) {
        const struct worker *worker = &pool->workers[i];
        if (worker->busy) {
            const uint64_t now = held_bytes(worker);
            sum += SIM_MAX(now, worker->expected_bytes);
        }
    }
    return sum;
}

/* NULL if a run may need that much. */
static char *memory_fault(const struct worker_limits *limits, uint64_t n_bytes)
{
    if (limits->memory_bytes == 0 || n_bytes <= limits->memory_bytes)
        return NULL;
    return g_strdup_printf("needed more than the %.4g MiB of --run-memory",
                           (double)limits->memory_bytes / 0x1p20);
}

/* NULL if a run may take that long. */
static char *time_fault(const struct worker_limits *limits, double s)
{
    if (limits->timeout_s <= 0.0 || s <= limits->timeout_s)
        return NULL;
    return g_strdup_printf("took longer than the %g s of --timeout", limits->timeout_s);
}

static void check_limits(struct worker_pool *pool)
{
    const struct worker_limits *limits = &pool->limits;
    const int64_t now = g_get_monotonic_time();
    for (unsigned i = 0; i < pool->n_workers; i++) {
        struct worker *worker = &pool->workers[i];
        if (!worker->busy || worker->exceeded != NULL)
            continue;
        worker->exceeded = time_fault(limits, (double)(now - worker->started_us) / 1e6);
        if (worker->exceeded == NULL && limits->memory_bytes > 0)
            worker->exceeded = memory_fault(limits, held_bytes(worker));
        if (worker->exceeded != NULL)
            kill(worker->pid, SIGKILL);
    }
}

/* ---- In the parent --------------------------------------------------------------------------- */

static void adopt(struct worker *worker, pid_t pid, int socket, int log_fd)
{
    *worker = (struct worker){ .pid = pid, .socket = socket, .log_fd = log_fd };
    worker->inherited_bytes = memory_resident_bytes(pid);
    worker->report = g_byte_array_new();
    worker->log = g_string_new(NULL);
    fcntl(log_fd, F_SETFL, O_NONBLOCK);
}

static bool make_worker(struct worker_pool *pool, struct worker *worker)
{
    int sockets[2], log_pipe[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return false;
    if (pipe(log_pipe) != 0) {
        close(sockets[0]);
        close(sockets[1]);
        return false;
    }
    const pid_t parent = getpid();
    fflush(NULL); /* or the worker would print it again */
    const pid_t pid = fork();
    if (pid == 0)
        worker_process(pool, sockets, log_pipe, parent);
    close(sockets[1]);
    close(log_pipe[1]);
    if (pid > 0) {
        adopt(worker, pid, sockets[0], log_pipe[0]);
        return true;
    }
    close(sockets[0]);
    close(log_pipe[0]);
    return false;
}

/* Its end, without a task: it left, or was killed while it waited for one. */
static void bury(struct worker *worker)
{
    waitpid(worker->pid, NULL, 0);
    release(worker);
}

/* One that waits for a task, else a free place for one. */
static struct worker *idle_worker(struct worker_pool *pool)
{
    struct worker *found = NULL;
    for (unsigned i = 0; i < pool->n_workers; i++) {
        struct worker *worker = &pool->workers[i];
        if (!worker->busy && worker->pid != 0)
            return worker;
        if (worker->pid == 0 && found == NULL)
            found = worker;
    }
    SIM_ASSERT(found != NULL, "a task for a pool of %u that is full", pool->n_workers);
    return found;
}

static bool hand_over(struct worker *worker, const struct worker_task *task)
{
    ssize_t sent;
    do
        sent = send(worker->socket, task, sizeof(*task), MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(*task); /* its socket is empty: all or nothing */
}

bool worker_start(struct worker_pool *pool, const struct worker_task *task)
{
    struct worker *worker = idle_worker(pool);
    if (worker->pid != 0 && !hand_over(worker, task))
        bury(worker);
    if (worker->pid == 0 && !(make_worker(pool, worker) && hand_over(worker, task)))
        return false;
    worker->busy = true;
    worker->job = task->job;
    worker->expected_bytes = task->expected_bytes;
    worker->started_us = g_get_monotonic_time();
    g_byte_array_set_size(worker->report, 0);
    g_string_truncate(worker->log, 0);
    return true;
}

/* Reads what is there and does not wait for it; closes the descriptor at its end. */
static void read_report(struct worker *worker)
{
    char bytes[16384]; /* stacks may be small: ulimit -s 64 */
    const ssize_t got = recv(worker->socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0)
        g_byte_array_append(worker->report, (const guint8 *)bytes, (guint)got);
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
        worker_close(&worker->socket);
}

/* Of what becomes too much the middle is left out: what went wrong first stands at the beginning,
 * what a worker died of at the end. */
static void keep_log(GString *log, const char *bytes, gssize n_bytes)
{
    static const char left_out[] = "\n...\n";
    g_string_append_len(log, bytes, n_bytes);
    if (log->len <= LOG_BYTES)
        return;
    g_string_erase(log, LOG_BYTES / 2, (gssize)(log->len - LOG_BYTES));
    memcpy(log->str + LOG_BYTES / 2, left_out, strlen(left_out));
}

static void read_log(struct worker *worker)
{
    char bytes[4096];
    while (worker->log_fd >= 0) {
        const ssize_t got = read(worker->log_fd, bytes, sizeof(bytes));
        if (got > 0)
            keep_log(worker->log, bytes, got);
        else if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            worker_close(&worker->log_fd);
        else if (got < 0 && errno == EAGAIN)
            return;
    }
}

/* "ended by signal 6 (Aborted): what it said last" */
static char *describe_death(int status, const char *log)
{
    GString *text = g_string_new("the worker process ");
    if (WIFSIGNALED(status))
        g_string_append_printf(
            text, "ended by signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
            WTERMSIG(status) == SIGKILL ? ", by hand or for want of memory" : "");
    else
        g_string_append_printf(text, "ended with status %d before its report was complete",
                               WEXITSTATUS(status));
    g_autofree char *said = g_strchomp(g_strdup(log));
    const char *last = strrchr(said, '\n');
    last = last != NULL ? last + 1 : said;
    if (*last != '\0')
        g_string_append_printf(text, ": %s", last);
    return g_string_free(text, FALSE);
}

/* What is left of a run whose worker has died, or was killed for it. */
static void take_death(struct worker *worker, struct worker_report *report)
{
    struct rusage usage = { 0 };
    int status = 0;
    if (worker->socket >= 0)
        kill(worker->pid, SIGKILL);
    wait4(worker->pid, &status, 0, &usage);
    read_log(worker); /* what it said last */
    report->peak_memory_bytes = worker_beside((uint64_t)usage.ru_maxrss * 1024,
                                              worker->inherited_bytes);
    report->error = worker->exceeded != NULL ? g_strdup(worker->exceeded)
                                             : describe_death(status, worker->log->str);
}

/* Reports a run. That may take long, while another program holds the database: nobody has looked at
 * the other workers then, and the time does not count as theirs. */
static void tell(struct worker_pool *pool, size_t job, const struct worker_report *report)
{
    const int64_t began_us = g_get_monotonic_time();
    pool->report(pool->context, job, report);
    const int64_t spent_us = g_get_monotonic_time() - began_us;
    for (unsigned i = 0; i < pool->n_workers; i++)
        if (pool->workers[i].busy && pool->workers[i].started_us <= began_us)
            pool->workers[i].started_us += spent_us;
}

/* The worker is free for another task, or gone, before its run is reported. */
static void finish(struct worker_pool *pool, struct worker *worker)
{
    struct worker_report report = { 0 };
    bool leaves = false;
    const size_t job = worker->job;
    const double took_s = (double)(g_get_monotonic_time() - worker->started_us) / 1e6;
    read_log(worker);
    const bool lives = worker->exceeded == NULL &&
                       worker_report_unpack(worker->report, &report, &leaves);
    if (!lives) {
        report.wall_s = took_s;
        take_death(worker, &report);
    }
    if (lives && report.error == NULL) /* it was over before anybody looked */
        report.error = time_fault(&pool->limits, report.wall_s);
    if (lives && report.error == NULL)
        report.error = memory_fault(&pool->limits, report.peak_memory_bytes);
    report.log = g_strdup(worker->log->str);
    worker->busy = false;
    if (!lives)
        release(worker);
    else if (leaves)
        bury(worker);
    tell(pool, job, &report);
    run_result_free(report.result);
    g_free(report.error);
    g_free(report.log);
}

/* Something came on its socket, or its end. */
static void attend(struct worker_pool *pool, struct worker *worker)
{
    read_report(worker);
    if (worker->busy && (worker->socket < 0 || worker_report_whole(worker->report)))
        finish(pool, worker);
    else if (worker->socket < 0)
        bury(worker);
}

/* Open descriptors only: poll() takes no more entries than a process may have open, whatever they
 * are. of: whose each one is. What was said last comes before the report. */
static unsigned list_open(const struct worker_pool *pool, struct pollfd *fds, unsigned *of)
{
    unsigned n = 0;
    for (unsigned i = 0; i < pool->n_workers; i++) {
        const struct worker *worker = &pool->workers[i];
        const int both[] = { worker->log_fd, worker->socket };
        for (unsigned k = 0; worker->pid != 0 && k < SIM_N_ELEMENTS(both); k++) {
            if (both[k] < 0)
                continue;
            fds[n] = (struct pollfd){ .fd = both[k], .events = POLLIN };
            of[n++] = i;
        }
    }
    return n;
}

bool worker_wait(struct worker_pool *pool, int signal_fd, int timeout_ms)
{
    g_autofree struct pollfd *fds = g_new0(struct pollfd, 2 * pool->n_workers + 1);
    g_autofree unsigned *of = g_new0(unsigned, 2 * pool->n_workers + 1);
    const unsigned n_fds = list_open(pool, fds, of);
    fds[n_fds] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
    const bool limited = pool->limits.timeout_s > 0.0 || pool->limits.memory_bytes > 0;
    const int n_ready = poll(fds, n_fds + 1,
                             limited ? SIM_MIN(timeout_ms, WORKER_WATCH_MS) : timeout_ms);
    SIM_ASSERT(n_ready >= 0 || errno == EINTR || errno == EAGAIN, "poll of %u descriptors: %s",
               n_fds + 1, g_strerror(errno));
    const bool signalled = n_ready > 0 && fds[n_fds].revents != 0;
    for (unsigned i = 0; n_ready > 0 && !signalled && i < n_fds; i++) {
        struct worker *worker = &pool->workers[of[i]]; /* may be another process since poll() */
        if (fds[i].revents == 0 || worker->pid == 0)
            continue;
        if (fds[i].fd == worker->log_fd)
            read_log(worker);
        else if (fds[i].fd == worker->socket)
            attend(pool, worker);
    }
    if (limited)
        check_limits(pool);
    return signalled;
}
