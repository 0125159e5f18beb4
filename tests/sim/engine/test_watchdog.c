/* A run in which nothing progresses fails, and says what waits for what; one that works goes on. */
#include "sim/engine/watchdog.h"

#include "sim/engine/task.h"
#include "tests/support/death.h"

#define PERIOD_PS 1000u

struct beat {
    struct sim_event event;
    sim_time period_ps;
    uint64_t n, n_per_progress; /* 0: none */
    uint64_t n_max;
};

static void beat(struct sim *sim, struct sim_event *event)
{
    struct beat *b = SIM_CONTAINER(event, struct beat, event);

    b->n++;
    if (b->n_per_progress != 0 && b->n % b->n_per_progress == 0)
        sim_progress(sim);
    if (b->n != b->n_max)
        sim_schedule_in(sim, event, b->period_ps);
}

static void beat_start(struct sim *sim, struct beat *b, sim_time period_ps)
{
    *b = (struct beat){ .period_ps = period_ps };
    sim_event_init(&b->event, beat);
    sim_schedule(sim, &b->event, PERIOD_PS);
}

static void time_that_stands_still_fails(void **state)
{
    struct sim *sim = sim_new(1);
    struct beat b;

    (void)state;
    beat_start(sim, &b, 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_non_null(sim_error(sim));
    assert_non_null(strstr(sim_error(sim), "nothing progresses at 1000 ps: simulated time stands"));
    /* In a hostile build, which leaves the loop all the time, an event may count twice. */
    assert_in_range(b.n, SIM_STANDSTILL_STEPS / 2, 2 * SIM_STANDSTILL_STEPS);
    sim_free(sim);
}

static uint64_t no_work(struct sim_watch *watch)
{
    (void)watch;
    return 7;
}

static void credits(struct sim_watch *watch, struct sim_waits *waits)
{
    (void)watch;
    sim_waits_add(waits, "%u TLPs wait for credits", 3u);
}

static void waits_for_ever(struct sim_task *task, void *arg)
{
    (void)arg;
    sim_task_waits_for(task, "the doorbell", "ring");
    sim_task_suspend(task);
}

static void is_idle(struct sim_task *task, void *arg)
{
    (void)arg;
    sim_task_waits_for(task, "", NULL);
    sim_task_suspend(task);
}

static void polls_alone_fail(void **state)
{
    struct sim_watch watch = { .work = no_work, .describe = credits };
    struct sim *sim = sim_new(1);
    struct beat b;

    (void)state;
    sim_watch_add(sim, &watch);
    sim_task_start(sim_task_new(sim, "driver", 0, waits_for_ever, NULL), 0);
    sim_task_start(sim_task_new(sim, "idle/0", 0, is_idle, NULL), 0);
    beat_start(sim, &b, SIM_IDLE_PS / SIM_IDLE_STEPS + 1);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_non_null(sim_error(sim));
    assert_non_null(strstr(sim_error(sim), "only polls and timers go on; driver waits for the "
                                           "doorbell (in ring()); 3 TLPs wait for credits"));
    assert_null(strstr(sim_error(sim), "idle/0"));
    assert_in_range(b.n, SIM_IDLE_STEPS, 2 * SIM_IDLE_STEPS);
    sim_watch_remove(sim, &watch);
    sim_free(sim);
}

static void work_goes_on(void **state)
{
    struct sim_watch watch = { .work = no_work };
    struct sim *sim = sim_new(1);
    struct beat b;

    (void)state;
    sim_watch_add(sim, &watch);
    beat_start(sim, &b, SIM_IDLE_PS / SIM_IDLE_STEPS + 1);
    b.n_per_progress = SIM_IDLE_STEPS / 2;
    b.n_max = 2 * SIM_IDLE_STEPS;
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(sim));
    assert_int_equal(b.n, b.n_max);
    sim_watch_remove(sim, &watch);
    sim_free(sim);
}

/* All that wait for a time-out may wait while somebody computes. */
static void steps_alone_are_said(void **state)
{
    struct sim_watch watch = { .work = no_work };
    struct sim *sim = sim_new(1);
    struct beat b;

    (void)state;
    sim_watch_add(sim, &watch);
    beat_start(sim, &b, PERIOD_PS);
    b.n_max = 2 * SIM_IDLE_STEPS;
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(sim));
    assert_int_equal(b.n, b.n_max);
    sim_watch_remove(sim, &watch);
    sim_free(sim);
}

static void say_steps_and_abort(void)
{
    steps_alone_are_said(NULL);
    abort();
}

static void steps_alone_do_not_fail(void **state)
{
    (void)state;
    assert_aborts(say_steps_and_abort, "only polls and timers go on", NULL);
}

static void what_does_not_fit_is_counted(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_waits waits;
    char name[32];

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "task%u", i);
        sim_task_start(sim_task_new(sim, name, 0, waits_for_ever, NULL), 0);
    }
    sim_run(sim, SIM_TIME_MAX, NULL);
    sim_waits_describe(sim, &waits);
    const char *end = strstr(waits.text, "; and ");
    unsigned n = 1, n_left_out = 0;
    assert_non_null(end);
    assert_int_equal(sscanf(end, "; and %u more", &n_left_out), 1);
    for (const char *at = waits.text; (at = strstr(at, "; task")) != NULL; at++)
        n++;
    assert_int_equal(n + n_left_out, 100);
    assert_true(strlen(waits.text) < SIM_WAITS_BYTES);
    sim_free(sim);
}

/* ---- The signal ------------------------------------------------------------------------------ */

static void computes(struct sim_task *task, void *arg)
{
    (void)task, (void)arg;
    for (unsigned i = 0; i < SIM_TICKS_MAX + 1; i++)
        sim_watchdog_tick();
}

static void compute_for_ever(void)
{
    struct sim *sim = sim_new(1);

    sim_task_start(sim_task_new(sim, "solver", 0, computes, NULL), 42);
    sim_run(sim, SIM_TIME_MAX, NULL);
    sim_free(sim);
}

static void a_task_without_end_aborts(void **state)
{
    (void)state;
    assert_aborts(compute_for_ever,
                  "nothing progresses at 42 ps: task solver has been computing for 1 s",
                  "nothing progresses at 42 ps: task solver has been computing for 10 s", NULL);
}

static void tick(struct sim *sim, struct sim_event *event)
{
    struct beat *b = SIM_CONTAINER(event, struct beat, event);

    sim_watchdog_tick();
    if (++b->n < 2 * SIM_TICKS_MAX)
        sim_schedule_in(sim, event, 0);
}

/* Time stands still, but events follow each other. */
static void ticks_between_events_are_harmless(void **state)
{
    struct sim *sim = sim_new(1);
    struct beat b = { .n = 0 };

    (void)state;
    sim_event_init(&b.event, tick);
    sim_schedule(sim, &b.event, 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
    for (unsigned i = 0; i < 2 * SIM_TICKS_MAX; i++)
        sim_watchdog_tick(); /* in no run */
    assert_int_equal(b.n, 2 * SIM_TICKS_MAX);
    assert_null(sim_error(sim));
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_stands_still_fails),
        cmocka_unit_test(polls_alone_fail),
        cmocka_unit_test(work_goes_on),
        cmocka_unit_test(steps_alone_do_not_fail),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(a_task_without_end_aborts),
        cmocka_unit_test(ticks_between_events_are_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
