/*
 * A worker is a fork of the command with two pipes: its report, sent at its end, and what it
 * prints. The parent reads both as they come, so that a worker never waits for it; the end of the
 * report's pipe is the end of the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/memory.h"
#include "cli/worker.h"

#define LOG_BYTES 16384 /* of what a worker prints, this much is kept */

struct worker {
    pid_t pid; /* 0: free */
    size_t job;
    int report_fd, log_fd; /* -1 once at its end */
    GByteArray *report;
    GString *log;
    int64_t started_us;
    uint64_t expected_bytes;
    char *exceeded; /* why it was ended, or NULL */
};

struct worker_pool {
    struct worker *workers;
    unsigned n_workers;
    struct worker_limits limits;
};

/* What precedes the error's text and the packed result. */
struct report_head {
    uint64_t n_error, n_result; /* bytes; 0: none */
    uint64_t sim_ps, events, fingerprint;
};

struct worker_pool *worker_pool_new(unsigned max_workers, struct worker_limits limits)
{
    struct worker_pool *pool = g_new0(struct worker_pool, 1);
    pool->workers = g_new0(struct worker, max_workers);
    pool->n_workers = max_workers;
    pool->limits = limits;
    return pool;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void release(struct worker *worker)
{
    close_fd(&worker->report_fd);
    close_fd(&worker->log_fd);
    g_byte_array_free(worker->report, TRUE);
    g_string_free(worker->log, TRUE);
    g_free(worker->exceeded);
    worker->pid = 0;
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
        n += pool->workers[i].pid != 0;
    return n;
}

bool worker_pool_full(const struct worker_pool *pool)
{
    return worker_pool_running(pool) == pool->n_workers;
}

/* ---- Memory and time ----------------------------------------------------------------------- */

uint64_t worker_pool_memory_bytes(const struct worker_pool *pool)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < pool->n_workers; i++) {
        const struct worker *worker = &pool->workers[i];
        if (worker->pid != 0) {
            const uint64_t now = memory_resident_bytes(worker->pid);
            sum += SIM_MAX(now, worker->expected_bytes);
        }
    }
    return sum;
}

static void check_limits(struct worker_pool *pool)
{
    const struct worker_limits *limits = &pool->limits;
    const int64_t now = g_get_monotonic_time();
    for (unsigned i = 0; i < pool->n_workers; i++) {
        struct worker *worker = &pool->workers[i];
        if (worker->pid == 0 || worker->exceeded != NULL)
            continue;
        if (limits->timeout_s > 0.0 && (double)(now - worker->started_us) > 1e6 * limits->timeout_s)
            worker->exceeded = g_strdup_printf("took longer than the %g s of --timeout",
                                               limits->timeout_s);
        else if (limits->memory_bytes > 0 &&
                 memory_resident_bytes(worker->pid) > limits->memory_bytes)
            worker->exceeded = g_strdup_printf("needed more than the %.4g MiB of --run-memory",
                                               (double)limits->memory_bytes / 0x1p20);
        if (worker->exceeded != NULL)
            kill(worker->pid, SIGKILL);
    }
}

/* ---- In the worker ------------------------------------------------------------------------- */

static void write_all(int fd, const void *bytes, size_t n_bytes)
{
    for (const char *at = bytes; n_bytes > 0;) {
        const ssize_t written = write(fd, at, n_bytes);
        if (written < 0 && errno != EINTR)
            _exit(1); /* nobody listens */
        if (written > 0) {
            at += written;
            n_bytes -= (size_t)written;
        }
    }
}

static void send_report(int fd, const struct worker_report *report)
{
    size_t n_result = 0;
    void *packed = report->result != NULL ? run_result_pack(report->result, &n_result) : NULL;
    const struct report_head head = {
        .n_error = report->error != NULL ? strlen(report->error) : 0,
        .n_result = n_result,
        .sim_ps = report->sim_ps,
        .events = report->events,
        .fingerprint = report->fingerprint,
    };
    write_all(fd, &head, sizeof(head));
    if (head.n_error > 0)
        write_all(fd, report->error, head.n_error);
    write_all(fd, packed, n_result);
}

/* Signals are the parent's to handle; what is printed goes into the pipe; no standard input. */
static void set_up_worker(struct worker_pool *pool, const int report_pipe[2], const int log_pipe[2],
                          pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (unsigned i = 0; i < pool->n_workers; i++) {
        if (pool->workers[i].pid != 0) {
            close_fd(&pool->workers[i].report_fd);
            close_fd(&pool->workers[i].log_fd);
        }
    }
    close(report_pipe[0]);
    close(log_pipe[0]);
    const int nothing = open("/dev/null", O_RDONLY);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(log_pipe[1], STDOUT_FILENO) < 0 ||
        dup2(log_pipe[1], STDERR_FILENO) < 0)
        _exit(1);
    close(nothing);
    close(log_pipe[1]);
}

/* ---- In the parent ------------------------------------------------------------------------- */

static void adopt(struct worker *worker, pid_t pid, size_t job, int report_fd, int log_fd)
{
    *worker = (struct worker){ .pid = pid, .job = job, .report_fd = report_fd, .log_fd = log_fd };
    worker->report = g_byte_array_new();
    worker->log = g_string_new(NULL);
    worker->started_us = g_get_monotonic_time();
}

bool worker_start(struct worker_pool *pool, size_t job, uint64_t expected_bytes,
                  worker_body_fn *body, void *context)
{
    int report_pipe[2], log_pipe[2];
    struct worker *worker = pool->workers;
    while (worker->pid != 0)
        worker++;
    if (pipe(report_pipe) != 0)
        return false;
    if (pipe(log_pipe) != 0) {
        close(report_pipe[0]);
        close(report_pipe[1]);
        return false;
    }
    const pid_t parent = getpid();
    fflush(NULL); /* or the worker would print it again */
    const pid_t pid = fork();
    if (pid == 0) {
        struct worker_report report = { 0 };
        set_up_worker(pool, report_pipe, log_pipe, parent);
        body(context, job, &report);
        fflush(NULL);
        send_report(report_pipe[1], &report);
        _exit(0);
    }
    close(report_pipe[1]);
    close(log_pipe[1]);
    if (pid > 0) {
        adopt(worker, pid, job, report_pipe[0], log_pipe[0]);
        worker->expected_bytes = expected_bytes;
        return true;
    }
    close(report_pipe[0]);
    close(log_pipe[0]);
    return false;
}

/* Reads what is there; closes the descriptor at its end. */
static void read_some(int *fd, struct worker *worker, bool is_log)
{
    char bytes[65536];
    const ssize_t got = read(*fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        close_fd(fd);
        return;
    }
    if (!is_log)
        g_byte_array_append(worker->report, (const guint8 *)bytes, (guint)got);
    else if (worker->log->len < LOG_BYTES)
        g_string_append_len(worker->log, bytes, got);
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
    char *said = g_strchomp(g_strdup(log));
    const char *last = strrchr(said, '\n');
    last = last != NULL ? last + 1 : said;
    if (*last != '\0')
        g_string_append_printf(text, ": %s", last);
    g_free(said);
    return g_string_free(text, FALSE);
}

static bool unpack(const GByteArray *bytes, struct worker_report *report)
{
    struct report_head head;
    if (bytes->len < sizeof(head))
        return false;
    memcpy(&head, bytes->data, sizeof(head));
    if (head.n_error > bytes->len || head.n_result > bytes->len ||
        bytes->len != sizeof(head) + head.n_error + head.n_result)
        return false;
    const char *error = (const char *)bytes->data + sizeof(head);
    report->error = head.n_error > 0 ? g_strndup(error, head.n_error) : NULL;
    report->sim_ps = head.sim_ps;
    report->events = head.events;
    report->fingerprint = head.fingerprint;
    if (head.n_result > 0)
        report->result = run_result_unpack(error + head.n_error, head.n_result);
    return report->result != NULL || head.n_result == 0;
}

static void finish(struct worker *worker, worker_report_fn *report_fn, void *context)
{
    struct worker_report report = { .log = worker->log->str };
    struct rusage usage = { 0 };
    int status = 0;
    wait4(worker->pid, &status, 0, &usage);
    report.wall_s = (double)(g_get_monotonic_time() - worker->started_us) / 1e6;
    report.peak_memory_bytes = (uint64_t)usage.ru_maxrss * 1024;
    if (!unpack(worker->report, &report) || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        g_free(report.error);
        report.error = worker->exceeded != NULL ? g_strdup(worker->exceeded)
                                                : describe_death(status, worker->log->str);
    }
    report_fn(context, worker->job, &report);
    run_result_free(report.result);
    g_free(report.error);
    release(worker);
}

bool worker_wait(struct worker_pool *pool, int signal_fd, int timeout_ms, worker_report_fn *report,
                 void *context)
{
    struct pollfd *fds = g_new0(struct pollfd, 2 * pool->n_workers + 1);
    fds[0] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
    for (unsigned i = 0; i < pool->n_workers; i++) {
        const struct worker *worker = &pool->workers[i];
        const bool runs = worker->pid != 0;
        fds[2 * i + 1] = (struct pollfd){ .fd = runs ? worker->report_fd : -1, .events = POLLIN };
        fds[2 * i + 2] = (struct pollfd){ .fd = runs ? worker->log_fd : -1, .events = POLLIN };
    }
    const bool limited = pool->limits.timeout_s > 0.0 || pool->limits.memory_bytes > 0;
    const int n_ready = poll(fds, 2 * pool->n_workers + 1,
                             limited ? SIM_MIN(timeout_ms, WORKER_WATCH_MS) : timeout_ms);
    const bool signalled = n_ready > 0 && fds[0].revents != 0;
    for (unsigned i = 0; n_ready > 0 && !signalled && i < pool->n_workers; i++) {
        struct worker *worker = &pool->workers[i];
        if (fds[2 * i + 2].revents != 0)
            read_some(&worker->log_fd, worker, true);
        if (fds[2 * i + 1].revents != 0)
            read_some(&worker->report_fd, worker, false);
        if (worker->pid != 0 && worker->report_fd < 0) {
            while (worker->log_fd >= 0) /* it has ended, or is about to: what it said last */
                read_some(&worker->log_fd, worker, true);
            finish(worker, report, context);
        }
    }
    if (limited)
        check_limits(pool);
    g_free(fds);
    return signalled;
}
