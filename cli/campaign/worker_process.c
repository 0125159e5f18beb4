/*
 * In a worker process: reads tasks from its socket, does them, writes a report for each. It leaves
 * after a run of which its heap keeps much; after a run that failed, whose threads ended in the
 * middle of what they did and gave nothing back; and after each where memory is limited or where
 * the most that a run holds cannot be told. Simulated memory of its runs it keeps for the next ones
 * (sim/engine/zeroed.h): to be given it by the system anew took up to a tenth of the time of runs
 * that have much.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "cli/base/memory.h"
#include "cli/campaign/worker_internal.h"
#include "sim/engine/watchdog.h"
#include "sim/engine/zeroed.h"
#include "workloads/experiment.h"

#define KEEP_BYTES (32 << 20) /* resident, more than at its start: after that a worker leaves */
#define TRIM_BYTES (16 << 20) /* the same: the heap gives back what it can */
#define KEEP_SHARE 8u         /* all workers together keep that part of the machine's memory */

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

static struct worker_task read_task(int fd)
{
    struct worker_task task;
    for (size_t n_read = 0; n_read < sizeof(task);) {
        const ssize_t got = read(fd, (char *)&task + n_read, sizeof(task) - n_read);
        if (got == 0 || (got < 0 && errno != EINTR))
            _exit(0); /* there are no more */
        n_read += got > 0 ? (size_t)got : 0;
    }
    return task;
}

/* In one piece, so that the parent wakes up once. */
static void send_report(int fd, const struct worker_report *report, bool leaves)
{
    g_autoptr(GByteArray) bytes = worker_report_pack(report, leaves);
    write_all(fd, bytes->data, bytes->len);
}

void worker_run(struct config *config, const struct worker_task *task,
                struct sim_error_list *errors, struct worker_report *report)
{
    const volatile int never = 0;
    struct experiment_outcome outcome = { 0 };
    report->result = run_result_new();
    if (errors->n_messages > 0)
        report->error = sim_error_join(errors);
    else
        experiment_run(config, task->seed, report->result, &outcome, &never, &report->error);
    report->sim_ps = outcome.sim_ps;
    report->events = outcome.events;
    config_free(config);
    sim_error_release(errors);
}

static void tick(int signal_number)
{
    (void)signal_number;
    sim_watchdog_tick();
}

/* A run that computes without an end is noticed by the processor time that it takes. On a stack of
 * its own: those of tasks are small. Without it, runs go on as they would. */
static void start_watchdog(void)
{
    static char stack[64 << 10];
    const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
    const struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART | SA_ONSTACK };
    const struct timeval interval = { .tv_usec = 1000 * SIM_TICK_MS };
    const struct itimerval timer = { interval, interval };
    if (sigaltstack(&alternate, NULL) == 0 && sigaction(SIGPROF, &action, NULL) == 0)
        setitimer(ITIMER_PROF, &timer, NULL);
}

/* Signals are the parent's to handle; what is printed goes into the pipe; no standard input. */
static void set_up(struct worker_pool *pool, const int sockets[2], const int log_pipe[2],
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
            worker_close(&pool->workers[i].socket);
            worker_close(&pool->workers[i].log_fd);
        }
    }
    close(sockets[0]);
    close(log_pipe[0]);
    const int nothing = open("/dev/null", O_RDONLY);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(log_pipe[1], STDOUT_FILENO) < 0 ||
        dup2(log_pipe[1], STDERR_FILENO) < 0)
        _exit(1);
    close(nothing);
    close(log_pipe[1]);
    start_watchdog();
}

/* From now on the most that this process holds is counted anew; false if it cannot be. */
static bool forget_peak(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    const bool done = fd >= 0 && write(fd, "5", 1) == 1; /* proc(5): resets the peak alone */
    if (fd >= 0)
        close(fd);
    return done;
}

/* What a worker keeps of the simulated memory of its runs for the next ones. */
static size_t kept_most_bytes(const struct worker_pool *pool)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pool->limits.memory_bytes > 0 || pages <= 0 || page_bytes <= 0)
        return 0;
    uint64_t bytes = (uint64_t)pages * (uint64_t)page_bytes;
    if (pool->limits.all_bytes > 0)
        bytes = SIM_MIN(bytes, pool->limits.all_bytes);
    return bytes / KEEP_SHARE / pool->n_workers;
}

/* Resident memory beside what is kept, trimmed if that is much more than at_start. */
static uint64_t own_bytes(uint64_t at_start, size_t kept_bytes)
{
    uint64_t bytes = worker_beside(memory_resident_bytes(getpid()), kept_bytes);
    if (bytes > at_start + TRIM_BYTES) {
        malloc_trim(0);
        bytes = worker_beside(memory_resident_bytes(getpid()), kept_bytes);
    }
    return bytes;
}

static uint64_t peak_bytes(void)
{
    struct rusage usage = { 0 };
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

noreturn void worker_process(struct worker_pool *pool, const int sockets[2], const int log_pipe[2],
                             pid_t parent)
{
    const int fd = sockets[1];
    set_up(pool, sockets, log_pipe, parent);
    const uint64_t at_start = memory_resident_bytes(getpid());
    bool leaves = false;
    sim_zeroed_keep(kept_most_bytes(pool));
    while (!leaves) {
        const struct worker_task task = read_task(fd);
        struct worker_report report = { 0 };
        leaves = !forget_peak() || pool->limits.memory_bytes > 0;
        const int64_t began_us = g_get_monotonic_time();
        pool->body(pool->context, &task, &report);
        report.wall_s = (double)(g_get_monotonic_time() - began_us) / 1e6;
        fflush(NULL); /* the parent takes what is printed before the report for this run's */
        const struct sim_zeroed_kept kept = sim_zeroed_kept();
        report.peak_memory_bytes = worker_beside(peak_bytes(), kept.least_bytes + at_start);
        leaves = leaves || report.error != NULL ||
                 own_bytes(at_start, kept.bytes) > at_start + KEEP_BYTES;
        send_report(fd, &report, leaves);
        run_result_free(report.result);
        g_free(report.error);
    }
    _exit(0);
}
