/* One run: order, limits, stopping, failing, fingerprints, and what must end the process. */
#include "sim/engine/sim.h"
#include "tests/support/death.h"

struct probe {
    struct sim_event event;
    struct log *log;
    unsigned id;
};

struct log {
    unsigned n;
    unsigned id[64];
    sim_time time_ps[64];
    volatile int interrupt;
};

static void probe_fire(struct sim *sim, struct sim_event *event)
{
    struct probe *probe = SIM_CONTAINER(event, struct probe, event);
    struct log *log = probe->log;

    assert_true(log->n < SIM_N_ELEMENTS(log->id));
    log->id[log->n] = probe->id;
    log->time_ps[log->n++] = sim_now(sim);
}

static void probes_init(struct probe *probe, unsigned n, struct log *log)
{
    memset(log, 0, sizeof(*log));
    for (unsigned i = 0; i < n; i++) {
        sim_event_init(&probe[i].event, probe_fire);
        probe[i].log = log;
        probe[i].id = i;
    }
}

struct chain {
    struct sim_event event;
    struct sim_event *next;
};

static void chain_fire(struct sim *sim, struct sim_event *event)
{
    sim_schedule(sim, SIM_CONTAINER(event, struct chain, event)->next, sim_now(sim));
}

/* Behind all others of its time, even those that are scheduled then; two in their order. What it
 * leaves behind if it does not fire is what there is without it. */
static void last_is_last(void **state)
{
    struct probe probe[6];
    struct log log;
    uint64_t fingerprint[2];

    (void)state;
    for (unsigned with = 0; with < 2; with++) {
        struct sim *sim = sim_new(1);
        struct chain chain;

        probes_init(probe, 6, &log);
        sim_event_init(&chain.event, chain_fire);
        chain.next = &probe[2].event;
        if (with) {
            sim_schedule_last(sim, &probe[3].event, 777);
            sim_schedule_last(sim, &probe[4].event, 777);
            sim_schedule_last(sim, &probe[5].event, 700);
        }
        sim_schedule(sim, &probe[0].event, 777);
        sim_schedule(sim, &chain.event, 777);
        sim_schedule(sim, &probe[1].event, 777);
        if (with) {
            sim_cancel(sim, &probe[5].event);
            sim_schedule_last(sim, &probe[5].event, 777);
        }
        sim_run(sim, 776, NULL);
        assert_int_equal(log.n, 0);
        sim_run(sim, SIM_TIME_MAX, NULL);
        assert_int_equal(log.n, with ? 6 : 3);
        for (unsigned i = 0; i < log.n; i++)
            assert_int_equal(log.id[i], i);
        sim_free(sim);

        sim = sim_new(1);
        probes_init(probe, 6, &log);
        if (with)
            sim_schedule_last(sim, &probe[3].event, 1000);
        for (unsigned i = 0; i < 3; i++)
            sim_schedule(sim, &probe[i].event, 10 * i);
        sim_run(sim, 999, NULL);
        fingerprint[with] = sim_fingerprint(sim);
        sim_cancel(sim, &probe[3].event);
        sim_free(sim);
    }
    assert_true(fingerprint[0] == fingerprint[1]);
}

static void equal_times_fire_as_scheduled(void **state)
{
    static const unsigned order[] = { 4, 1, 0, 3, 2 };
    struct sim *sim = sim_new(1);
    struct probe probe[5];
    struct log log;

    (void)state;
    probes_init(probe, 5, &log);
    for (unsigned i = 0; i < 5; i++)
        sim_schedule(sim, &probe[order[i]].event, 777);
    assert_int_equal(sim_events_pending(sim), 5);
    sim_cancel(sim, &probe[1].event);
    sim_schedule(sim, &probe[1].event, 777); /* anew: now the last */
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_int_equal(log.n, 5);
    assert_int_equal(log.id[0], 4);
    assert_int_equal(log.id[1], 0);
    assert_int_equal(log.id[2], 3);
    assert_int_equal(log.id[3], 2);
    assert_int_equal(log.id[4], 1);
    assert_int_equal(sim_events_fired(sim), 5);
    assert_int_equal(sim_now(sim), 777);
    sim_free(sim);
}

static void until_is_inclusive(void **state)
{
    struct sim *sim = sim_new(1);
    struct probe probe[3];
    struct log log;

    (void)state;
    probes_init(probe, 3, &log);
    sim_schedule(sim, &probe[0].event, 100);
    sim_schedule(sim, &probe[1].event, 101);
    sim_schedule(sim, &probe[2].event, SIM_TIME_MAX);
    sim_run(sim, 99, NULL);
    assert_int_equal(log.n, 0);
    assert_int_equal(sim_now(sim), 99);
    sim_run(sim, 100, NULL);
    assert_int_equal(log.n, 1);
    assert_int_equal(sim_now(sim), 100);
    sim_run(sim, 5000, NULL);
    assert_int_equal(log.n, 2);
    assert_int_equal(log.time_ps[1], 101);
    assert_int_equal(sim_now(sim), 5000);
    sim_run(sim, 10, NULL); /* in the past: nothing happens */
    assert_int_equal(sim_now(sim), 5000);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_int_equal(log.n, 3);
    assert_true(log.time_ps[2] == SIM_TIME_MAX);
    sim_free(sim);
}

static void cancel_is_idempotent(void **state)
{
    struct sim *sim = sim_new(1);
    struct probe probe[2];
    struct log log;

    (void)state;
    probes_init(probe, 2, &log);
    sim_cancel(sim, &probe[0].event);
    sim_schedule_in(sim, &probe[0].event, 5);
    sim_schedule_in(sim, &probe[1].event, 6);
    assert_true(sim_event_pending(&probe[0].event));
    sim_cancel(sim, &probe[0].event);
    sim_cancel(sim, &probe[0].event);
    assert_false(sim_event_pending(&probe[0].event));
    assert_int_equal(sim_events_pending(sim), 1);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_int_equal(log.n, 1);
    assert_int_equal(log.id[0], 1);
    sim_free(sim);
}

static void stop_fire(struct sim *sim, struct sim_event *event)
{
    probe_fire(sim, event);
    sim_stop(sim);
}

static void stop_leaves_the_rest_pending(void **state)
{
    struct sim *sim = sim_new(1);
    struct probe probe[2];
    struct log log;

    (void)state;
    probes_init(probe, 2, &log);
    probe[0].event.fire = stop_fire;
    sim_schedule(sim, &probe[0].event, 10);
    sim_schedule(sim, &probe[1].event, 10);
    sim_run(sim, 1000, NULL);
    assert_true(sim_stopped(sim));
    assert_int_equal(log.n, 1);
    assert_int_equal(sim_now(sim), 10);
    assert_null(sim_error(sim));
    sim_run(sim, 1000, NULL); /* goes on */
    assert_false(sim_stopped(sim));
    assert_int_equal(log.n, 2);
    assert_int_equal(sim_now(sim), 1000);
    sim_free(sim);
}

static void fail_fire(struct sim *sim, struct sim_event *event)
{
    probe_fire(sim, event);
    sim_fail(sim, "packet %d went astray", 42);
    sim_fail(sim, "a consequence");
}

static void failure_keeps_the_first_message(void **state)
{
    struct sim *sim = sim_new(1);
    struct probe probe[2];
    struct log log;
    struct sim_pool *pool = sim_pool_new(sim, "packet", 100);

    (void)state;
    probes_init(probe, 2, &log);
    probe[0].event.fire = fail_fire;
    sim_schedule(sim, &probe[0].event, 10);
    sim_schedule(sim, &probe[1].event, 11);
    assert_non_null(sim_pool_get(pool)); /* a failed run need not give back */
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_string_equal(sim_error(sim), "packet 42 went astray");
    assert_true(sim_stopped(sim));
    sim_run(sim, SIM_TIME_MAX, NULL); /* a failed run does not go on */
    assert_int_equal(log.n, 1);
    sim_free(sim);
}

static void again_fire(struct sim *sim, struct sim_event *event)
{
    struct log *log = SIM_CONTAINER(event, struct probe, event)->log;

    if (++log->n == 1000)
        log->interrupt = 1;
    sim_schedule_in(sim, event, 10);
}

static void interrupt_is_polled(void **state)
{
    struct sim *sim = sim_new(1);
    struct probe probe[1];
    struct log log;

    (void)state;
    probes_init(probe, 1, &log);
    probe[0].event.fire = again_fire;
    sim_schedule(sim, &probe[0].event, 10);
    sim_run(sim, SIM_PS_PER_S, &log.interrupt);
    assert_in_range(log.n, 1000, 10000);
    assert_int_equal(sim_now(sim), 10 * (sim_time)log.n);
    assert_false(sim_stopped(sim));
    sim_cancel(sim, &probe[0].event);
    sim_free(sim);
}

static uint64_t fingerprint_of(const sim_time *time_ps, unsigned n, unsigned first, uint64_t extra)
{
    struct sim *sim = sim_new(1);
    struct probe probe[4];
    struct log log;

    probes_init(probe, n, &log);
    for (unsigned i = 0; i < n; i++)
        sim_schedule(sim, &probe[(first + i) % n].event, time_ps[(first + i) % n]);
    sim_run(sim, SIM_TIME_MAX, NULL);
    if (extra != 0)
        sim_fingerprint_add(sim, extra);
    uint64_t fingerprint = sim_fingerprint(sim);

    sim_free(sim);
    return fingerprint;
}

static void fingerprint_tells_runs_apart(void **state)
{
    static const sim_time a[] = { 1, 2, 3, 4 }, b[] = { 1, 2, 3, 5 };

    (void)state;
    assert_true(fingerprint_of(a, 4, 0, 0) == fingerprint_of(a, 4, 0, 0));
    assert_true(fingerprint_of(a, 4, 0, 0) != fingerprint_of(b, 4, 0, 0)); /* a time */
    assert_true(fingerprint_of(a, 4, 0, 0) != fingerprint_of(a, 4, 1, 0)); /* an order */
    assert_true(fingerprint_of(a, 4, 0, 7) == fingerprint_of(a, 4, 0, 7));
    assert_true(fingerprint_of(a, 4, 0, 7) != fingerprint_of(a, 4, 0, 8)); /* what models add */
}

static void runs_are_independent(void **state)
{
    struct sim *one = sim_new(1), *two = sim_new(2);
    struct probe probe[2];
    struct log log;

    (void)state;
    probes_init(probe, 2, &log);
    sim_schedule(one, &probe[0].event, 50);
    sim_schedule(two, &probe[1].event, 20);
    sim_run(one, 30, NULL);
    sim_run(two, 60, NULL);
    assert_int_equal(log.n, 1);
    assert_int_equal(log.id[0], 1);
    assert_int_equal(sim_seed(one), 1);
    assert_int_equal(sim_seed(two), 2);
    sim_cancel(one, &probe[0].event);
    sim_free(one);
    sim_free(two);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void no_fire(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    (void)event;
}

static void schedule_twice(void)
{
    struct sim *sim = sim_new(1);
    struct sim_event event;

    sim_event_init(&event, no_fire);
    sim_schedule(sim, &event, 1234);
    sim_schedule(sim, &event, 5678);
}

static void past_fire(struct sim *sim, struct sim_event *event)
{
    sim_schedule(sim, event, sim_now(sim) - 1);
}

static void schedule_in_the_past(void)
{
    struct sim *sim = sim_new(1);
    struct sim_event event;

    sim_event_init(&event, past_fire);
    sim_schedule(sim, &event, 4321);
    sim_run(sim, SIM_TIME_MAX, NULL);
}

static void nested_fire(struct sim *sim, struct sim_event *event)
{
    (void)event;
    sim_run(sim, SIM_TIME_MAX, NULL);
}

static void run_within_run(void)
{
    struct sim *sim = sim_new(1);
    struct sim_event event;

    sim_event_init(&event, nested_fire);
    sim_schedule(sim, &event, 4321);
    sim_run(sim, SIM_TIME_MAX, NULL);
}

static void memory_is_zeroed_and_never_null(void **state)
{
    (void)state;
    uint64_t *array = sim_zalloc(3, sizeof(*array)), *none = sim_zalloc(0, sizeof(*none));

    assert_true(array[0] == 0 && array[1] == 0 && array[2] == 0);
    assert_non_null(none);
    assert_int_equal(*none, 0);
    array[2] = 7;
    array = sim_grow(array, 1000, sizeof(*array));
    array[999] = array[2];
    assert_int_equal(array[999], 7);
    free(none);
    free(array);
}

static void grow_beyond_all_memory(void)
{
    sim_grow(NULL, SIZE_MAX / 2, 4); /* the product would be small */
}

static void exhausted_memory_aborts(void **state)
{
    (void)state;
    assert_aborts(grow_beyond_all_memory, "no memory for", "times 4 bytes", NULL);
}

static void faults_abort_with_both_times(void **state)
{
    (void)state;
    assert_aborts(schedule_twice, "sim.c:", "1234", "5678", NULL);
    assert_aborts(schedule_in_the_past, "sim.c:", "4320", "at 4321 ps", "(none)", NULL);
    assert_aborts(run_within_run, "within sim_run", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_times_fire_as_scheduled),
        cmocka_unit_test(last_is_last),
        cmocka_unit_test(until_is_inclusive),
        cmocka_unit_test(cancel_is_idempotent),
        cmocka_unit_test(stop_leaves_the_rest_pending),
        cmocka_unit_test(failure_keeps_the_first_message),
        cmocka_unit_test(interrupt_is_polled),
        cmocka_unit_test(fingerprint_tells_runs_apart),
        cmocka_unit_test(runs_are_independent),
        cmocka_unit_test(memory_is_zeroed_and_never_null),
        cmocka_unit_test(exhausted_memory_aborts),
        cmocka_unit_test(faults_abort_with_both_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
