/* Worker processes: what comes of a task that ends well, of one that does not, and of what either
 * prints. The tasks are numbers that do() understands. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>

#include "cli/campaign/worker_internal.h"
#include "sim/engine/sim.h"
#include "sim/engine/task.h"

#define N_TASKS 64

enum deed {
    SUCCEED,
    FAIL,
    SAY_MUCH,
    SAY_MUCH_AND_DIE,
    EXIT,
    KILL,
    HANG,
    COMPUTE,
    GROW,
    ANSWER_MUCH
};

struct told {
    unsigned n_reports; /* of this job */
    char *error, *log;
    double value; /* of the metric */
    double pid;
    unsigned n_samples;
    uint64_t peak_bytes;
};

static void say_much(void)
{
    puts("the first line");
    for (int i = 0; i < 20000; i++)
        puts("and another one");
}

#define GROWN_BYTES ((size_t)48 << 20)

static void grow(void)
{
    const size_t n_bytes = GROWN_BYTES;
    char *bytes = malloc(n_bytes);
    assert_non_null(bytes);
    memset(bytes, 1, n_bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    free(bytes);
}

static void solver(struct sim_task *task, void *arg)
{
    (void)task, (void)arg;
    for (;;)
        __asm__ volatile("");
}

/* A task of a simulation never returns; the clock of the worker's watchdog goes 250 times as
 * fast. */
static void compute(void)
{
    const struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
    struct sim *sim = sim_new(1);
    sim_task_start(sim_task_new(sim, "solver", 0, solver, NULL), 5);
    setitimer(ITIMER_PROF, &timer, NULL);
    sim_run(sim, SIM_TIME_MAX, NULL);
}

/* In the worker. */
static void do_task(void *context, const struct worker_task *task, struct worker_report *report)
{
    (void)context;
    report->result = run_result_new();
    run_result_metric(report->result, "value", "1", (double)task->seed);
    run_result_metric(report->result, "pid", "1", (double)getpid());
    report->sim_ps = task->seed;
    switch ((enum deed)task->point) {
    case SUCCEED: break;
    case FAIL: report->error = g_strdup("did not want to"); break;
    case SAY_MUCH: say_much(); break;
    case SAY_MUCH_AND_DIE:
        say_much();
        puts("the last line");
        fflush(stdout);
        raise(SIGKILL);
        break;
    case EXIT: _exit(3);
    case KILL: raise(SIGKILL); break;
    case HANG:
        for (;;)
            pause();
    case COMPUTE: compute(); break;
    case GROW: grow(); break;
    case ANSWER_MUCH:
        for (unsigned i = 0; i < 100000; i++)
            run_result_series(report->result, "much", "1", i, i);
        break;
    }
}

static void keep_report(void *context, size_t job, const struct worker_report *report)
{
    struct told *told = &((struct told *)context)[job];
    told->n_reports++;
    told->error = g_strdup(report->error);
    told->log = g_strdup(report->log);
    told->value = report->result != NULL ? run_result_value(report->result, "value") : -1.0;
    told->pid = report->result != NULL ? run_result_value(report->result, "pid") : -1.0;
    told->peak_bytes = report->peak_memory_bytes;
    assert_true(report->result == NULL || report->sim_ps == (sim_time)told->value);
    if (report->result != NULL && run_result_has(report->result, RECORD_SERIES, "much"))
        told->n_samples++;
}

static unsigned n_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* Each deed is a job with its number as seed, in up to n_workers. */
static void run(struct told told[N_TASKS], const enum deed *deeds, size_t n, unsigned n_workers,
                struct worker_limits limits)
{
    const unsigned before = n_descriptors();
    struct worker_pool *pool = worker_pool_new(n_workers, limits, do_task, keep_report, told);
    memset(told, 0, N_TASKS * sizeof(*told));
    for (size_t i = 0; i < n; i++) {
        const struct worker_task task = { .job = i, .point = deeds[i], .seed = i };
        while (worker_pool_full(pool))
            worker_wait(pool, -1, 1000);
        assert_true(worker_start(pool, &task));
    }
    while (worker_pool_running(pool) > 0)
        worker_wait(pool, -1, 1000);
    worker_pool_free(pool);
    assert_int_equal(n_descriptors(), before);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(told[i].n_reports, 1);
}

static void forget(struct told told[N_TASKS])
{
    for (size_t i = 0; i < N_TASKS; i++) {
        g_free(told[i].error);
        g_free(told[i].log);
    }
}

static void test_a_failure_costs_itself_only(void **state)
{
    static const enum deed kinds[] = { SUCCEED, FAIL, EXIT, KILL, SUCCEED, ANSWER_MUCH };
    static const char *const errors[] = {
        NULL,
        "did not want to",
        "ended with status 3 before its report was complete",
        "ended by signal 9 (Killed), by hand or for want of memory",
        NULL,
        NULL,
    };
    const size_t n_kinds = SIM_N_ELEMENTS(kinds), n = 10 * n_kinds;
    struct told told[N_TASKS];
    enum deed deeds[N_TASKS];
    (void)state;
    for (size_t i = 0; i < n; i++)
        deeds[i] = kinds[i % n_kinds];
    for (unsigned n_workers = 1; n_workers <= 3; n_workers++) {
        run(told, deeds, n, n_workers, (struct worker_limits){ 0 });
        for (size_t i = 0; i < n; i++) {
            const char *expected = errors[i % n_kinds];
            assert_true((told[i].error == NULL) == (expected == NULL));
            if (expected != NULL)
                assert_non_null(strstr(told[i].error, expected));
            if (deeds[i] != EXIT && deeds[i] != KILL)
                assert_true(told[i].value == (double)i);
            assert_int_equal(told[i].n_samples, deeds[i] == ANSWER_MUCH);
        }
        forget(told);
    }
}

/* What a failed run has not given back goes with its process; one that succeeds leaves the worker
 * to the next. */
static void test_a_failure_takes_its_memory_along(void **state)
{
    static const enum deed deeds[] = { SUCCEED, SUCCEED, FAIL, SUCCEED, SUCCEED };
    struct told told[N_TASKS];
    (void)state;
    run(told, deeds, SIM_N_ELEMENTS(deeds), 1, (struct worker_limits){ 0 });
    assert_true(told[2].pid == told[1].pid && told[3].pid != told[2].pid);
    assert_true(told[1].pid == told[0].pid && told[4].pid == told[3].pid);
    forget(told);
}

/* The watchdog ends it, and its last words are the error. */
static void test_a_run_without_end(void **state)
{
    static const enum deed deeds[] = { SUCCEED, COMPUTE, SUCCEED };
    struct told told[N_TASKS];
    (void)state;
    run(told, deeds, SIM_N_ELEMENTS(deeds), 1, (struct worker_limits){ 0 });
    assert_true(told[0].error == NULL && told[2].error == NULL);
    assert_non_null(strstr(told[1].error,
                           "signal 6 (Aborted): nothing progresses at 5 ps: task solver "
                           "has been computing for 10 s"));
    assert_non_null(strstr(told[1].log, "has been computing for 1 s"));
    forget(told);
}

/* However much was printed: what came first, and what came last before the end. */
static void test_what_is_printed(void **state)
{
    static const enum deed deeds[] = { SAY_MUCH, SUCCEED, SAY_MUCH_AND_DIE };
    struct told told[N_TASKS];
    (void)state;
    run(told, deeds, SIM_N_ELEMENTS(deeds), 1, (struct worker_limits){ 0 });
    assert_null(told[0].error);
    assert_true(g_str_has_prefix(told[0].log, "the first line\nand another one\n"));
    assert_true(g_str_has_suffix(told[0].log, "and another one\n"));
    assert_true(strlen(told[0].log) < 20000);
    assert_non_null(strstr(told[0].log, "\n...\n"));
    assert_string_equal(told[1].log, "");
    assert_true(g_str_has_suffix(told[2].error, ": the last line"));
    assert_true(g_str_has_prefix(told[2].log, "the first line\n"));
    forget(told);
}

static void test_limits(void **state)
{
    static const enum deed hang[] = { SUCCEED, HANG, SUCCEED };
    static const enum deed grow_once[] = { GROW, GROW };
    struct told told[N_TASKS];
    (void)state;
    run(told, hang, SIM_N_ELEMENTS(hang), 2, (struct worker_limits){ .timeout_s = 0.3 });
    assert_string_equal(told[1].error, "took longer than the 0.3 s of --timeout");
    assert_true(told[0].error == NULL && told[2].error == NULL);
    forget(told);
    /* over before anybody looks, but known from its report */
    run(told, grow_once, SIM_N_ELEMENTS(grow_once), 1,
        (struct worker_limits){ .memory_bytes = 40 << 20 });
    for (size_t i = 0; i < SIM_N_ELEMENTS(grow_once); i++)
        assert_string_equal(told[i].error, "needed more than the 40 MiB of --run-memory");
    forget(told);
}

/* What the command holds, and its workers share, is no run's: of one that reports, and of one that
 * dies. */
static void test_memory_of_the_command(void **state)
{
    static const enum deed deeds[] = { SUCCEED, GROW, KILL };
    const size_t n_bytes = 2 * GROWN_BYTES;
    char *bytes = malloc(n_bytes);
    struct told told[N_TASKS];
    (void)state;
    assert_non_null(bytes);
    memset(bytes, 1, n_bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    run(told, deeds, SIM_N_ELEMENTS(deeds), 1, (struct worker_limits){ .memory_bytes = n_bytes });
    assert_true(told[0].error == NULL && told[1].error == NULL);
    assert_in_range(told[0].peak_bytes, 0, GROWN_BYTES / 2);
    assert_in_range(told[1].peak_bytes, GROWN_BYTES, 3 * GROWN_BYTES / 2);
    assert_in_range(told[2].peak_bytes, 0, GROWN_BYTES / 2);
    forget(told);
    free(bytes);
}

/* Sizes whose sum wraps round are not believed, nor any others that do not fit. */
static void test_a_report_is_not_believed(void **state)
{
    struct worker_report report = { .error = (char *)"did not want to", .events = 7 }, got;
    bool leaves = false;
    (void)state;
    GByteArray *bytes = worker_report_pack(&report, true);
    const uint64_t rest = strlen(report.error), wrong[][2] = {
        { UINT64_MAX - 3, rest + 4 }, { rest + 1, UINT64_MAX }, { rest + 1, 0 }, { 0, 0 }, { 1, 1 },
    };
    assert_true(worker_report_whole(bytes));
    assert_true(worker_report_unpack(bytes, &got, &leaves));
    assert_true(leaves && got.events == 7 && got.result == NULL);
    assert_string_equal(got.error, report.error);
    g_free(got.error);
    for (size_t i = 0; i < SIM_N_ELEMENTS(wrong); i++) {
        memcpy(bytes->data, wrong[i], sizeof(wrong[i]));
        assert_false(worker_report_whole(bytes));
        assert_false(worker_report_unpack(bytes, &got, &leaves));
    }
    g_byte_array_set_size(bytes, 8);
    assert_false(worker_report_whole(bytes));
    g_byte_array_unref(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_costs_itself_only),
        cmocka_unit_test(test_a_failure_takes_its_memory_along),
        cmocka_unit_test(test_a_run_without_end),
        cmocka_unit_test(test_what_is_printed),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory_of_the_command),
        cmocka_unit_test(test_a_report_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
