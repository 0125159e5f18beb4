/*
 * Threads that poll: k_spin() ends at the look at which a loop of loads would have seen the write,
 * and lets other threads and interrupts in; long computations.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "models/os/os_memory.h"

#define WORLD                                                                      \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );" \
    " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; }; };"
#define PERIOD (13 * SIM_PS_PER_NS)

struct rig {
    struct world_fixture w;
    struct kernel *k;
    struct kaddr at;
    struct sim_event write;
    sim_time begin_ps, write_ps, end_ps;
    unsigned n_others, done;
    bool by_loop, two_places; /* two_places: polls another line, too, which nobody writes */
    bool marks;               /* what is written is bulk payload */
    bool copies;              /* and not stores */
};

/* A device's write. */
static void write_fires(struct sim *sim, struct sim_event *event)
{
    struct rig *r = SIM_CONTAINER(event, struct rig, write);
    const uint64_t word = 7;
    struct physmem *mem = numa_physmem(host_numa(r->w.host));
    (void)sim;
    (r->marks ? physmem_write_marks : physmem_write)(mem, (struct hpa){ r->at.v + 8 }, &word, 8);
}

static void spin_body(void *arg)
{
    struct rig *r = arg;
    const uint64_t seen[2] = { 0, 0 };
    uint64_t now[2] = { 0, 0 };
    k_load(r->k, r->at, now, sizeof now);
    sim_task_sync(os_task(r->k));
    r->begin_ps = k_now_ps(r->k);
    if (r->write_ps != 0) {
        sim_event_init(&r->write, write_fires);
        sim_schedule(r->w.sim, &r->write, r->begin_ps + r->write_ps);
    }
    if (r->by_loop) {
        while (memcmp(now, seen, sizeof now) == 0) {
            k_compute(r->k, 26 - 4);
            k_load(r->k, r->at, now, sizeof now);
        }
    } else if (r->two_places) {
        const uint64_t elsewhere = 5;
        k_poke(r->k, kaddr_add(r->at, 64), &elsewhere, sizeof elsewhere);
        const struct k_spin_at at[] = { { kaddr_add(r->at, 64), &elsewhere, sizeof elsewhere },
                                        { r->at, seen, sizeof seen } };
        k_spin_any(r->k, at, 2, PERIOD, r->begin_ps + 20 * SIM_PS_PER_US);
        k_peek(r->k, r->at, now, sizeof now);
    } else {
        k_spin(r->k, r->at, seen, sizeof seen, PERIOD, r->begin_ps + 20 * SIM_PS_PER_US);
        k_peek(r->k, r->at, now, sizeof now);
    }
    r->end_ps = k_now_ps(r->k);
    assert_int_equal(now[1], r->write_ps != 0 ? 7 : 0);
    r->done++;
}

static void other_body(void *arg)
{
    struct rig *r = arg;
    while (r->done == 0) {
        k_sleep(r->k, 100 * SIM_PS_PER_US);
        r->n_others++;
    }
}

static void run_places(struct rig *r, sim_time write_ps, bool by_loop, bool two_places, bool marks)
{
    memset(r, 0, sizeof(*r));
    r->marks = marks;
    r->write_ps = write_ps;
    r->by_loop = by_loop;
    r->two_places = two_places;
    fixture_open(&r->w, WORLD);
    r->k = os_new(r->w.host, host_os_params(r->w.host));
    r->at = k_alloc(r->k, 0, 128, 64);
    k_thread_new(r->k, "spin", 1, spin_body, r);
    k_thread_new(r->k, "other", 1, other_body, r);
    sim_run(r->w.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(r->done, 1);
    os_free(r->k);
    fixture_close(&r->w);
}

static void run(struct rig *r, sim_time write_ps, bool by_loop)
{
    run_places(r, write_ps, by_loop, false, false);
}

/* The first look at or after a time, from the begin on. */
static sim_time look_at(sim_time ps)
{
    return (ps + PERIOD - 1) / PERIOD * PERIOD;
}

/* The first look at or after the write. */
static void test_first_look(void **state)
{
    static const sim_time at_ps[] = { 1, PERIOD - 1, PERIOD, PERIOD + 1, 5 * SIM_PS_PER_US + 17 };
    struct rig r;
    (void)state;
    for (unsigned i = 0; i < sizeof(at_ps) / sizeof(at_ps[0]); i++) {
        run(&r, at_ps[i], false);
        assert_int_equal(r.end_ps - r.begin_ps, look_at(at_ps[i]));
        for (unsigned marks = 0; marks < 2; marks++) {
            run_places(&r, at_ps[i], false, true, marks != 0);
            assert_int_equal(r.end_ps - r.begin_ps, look_at(at_ps[i]));
        }
    }
}

/* A loop of loads with that period (22 cycles and a hit of 4) ends at the same look, or at the next
 * if it was made within the engine's quantum (20 ns) before the write. */
static void test_like_a_loop(void **state)
{
    struct rig spin, loop;
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        const sim_time at_ps = 3 * SIM_PS_PER_US + i * 1700;
        run(&spin, at_ps, false);
        run(&loop, at_ps, true);
        const sim_time more_ps = (loop.end_ps - loop.begin_ps) - (spin.end_ps - spin.begin_ps);
        assert_true(more_ps == 0 || more_ps == PERIOD);
    }
}

/* Nothing is written; and it is there already. */
static void test_limits(void **state)
{
    struct rig r;
    (void)state;
    run(&r, 0, false);
    assert_int_equal(r.end_ps - r.begin_ps, look_at(20 * SIM_PS_PER_US));
}

/* ---- Another CPU stores ---------------------------------------------------------------------- */

static void store_body(void *arg)
{
    struct rig *r = arg;
    const uint64_t word = 7;
    while (r->begin_ps == 0)
        k_compute(r->k, 10);
    k_compute(r->k, 10000); /* 5 us */
    if (r->copies) {
        k_poke(r->k, kaddr_add(r->at, 64), &word, sizeof word);
        k_copy(r->k, r->at, kaddr_add(r->at, 56), 16);
        r->write_ps = k_now_ps(r->k) - r->begin_ps;
        return;
    }
    r->write_ps = k_now_ps(r->k) - r->begin_ps;
    k_store(r->k, kaddr_add(r->at, 8), &word, sizeof word);
}

static void watch_body(void *arg)
{
    struct rig *r = arg;
    const uint64_t seen[2] = { 0, 0 };
    sim_task_sync(os_task(r->k));
    r->begin_ps = k_now_ps(r->k);
    k_spin(r->k, r->at, seen, sizeof seen, PERIOD, r->begin_ps + 20 * SIM_PS_PER_US);
    r->end_ps = k_now_ps(r->k);
}

static void run_two_cpus(struct rig *r)
{
    fixture_open(&r->w, WORLD);
    r->k = os_new(r->w.host, host_os_params(r->w.host));
    r->at = k_alloc(r->k, 0, 128, 64);
    k_thread_new(r->k, "spin", 1, watch_body, r);
    k_thread_new(r->k, "store", 2, store_body, r);
    sim_run(r->w.sim, SIM_TIME_MAX, NULL);
    os_free(r->k);
    fixture_close(&r->w);
}

/* Seen at the first look after it, too. */
static void test_store_of_another_cpu(void **state)
{
    struct rig r = { 0 };
    (void)state;
    run_two_cpus(&r);
    assert_int_equal(r.end_ps - r.begin_ps, look_at(r.write_ps));
}

/* At a look within its last line's way, or at the first after it. */
static void test_copy_of_another_cpu(void **state)
{
    struct rig r = { .copies = true };
    (void)state;
    run_two_cpus(&r);
    assert_true(r.end_ps - r.begin_ps > r.write_ps - SIM_PS_PER_US);
    assert_true(r.end_ps - r.begin_ps <= look_at(r.write_ps));
}

/* ---- Interrupts meanwhile -------------------------------------------------------------------- */

struct interrupted {
    struct world_fixture w;
    struct kernel *k;
    struct kaddr at;
    struct k_timer timer;
    sim_time timer_ps, took_ps, end_ps; /* from the begin on */
    sim_time begin_ps;
    unsigned steps; /* of the computation; 0: polls */
    bool done;
};

static void timer_comes(struct k_timer *timer)
{
    struct interrupted *r = K_CONTAINER(timer, struct interrupted, timer);
    r->took_ps = k_now_ps(r->k) - r->begin_ps;
    k_compute(r->k, 1000);
}

#define LONG_CYCLES 100000u
static void interrupted_body(void *arg)
{
    struct interrupted *r = arg;
    const uint64_t seen = 0;
    k_timer_init(&r->timer, r->k, timer_comes);
    sim_task_sync(os_task(r->k));
    r->begin_ps = k_now_ps(r->k);
    k_timer_set(&r->timer, r->begin_ps + r->timer_ps);
    if (r->steps == 0)
        k_spin(r->k, r->at, &seen, sizeof seen, PERIOD, r->begin_ps + 40 * SIM_PS_PER_US);
    for (unsigned i = 0; i < r->steps; i++)
        k_compute(r->k, LONG_CYCLES / r->steps);
    r->end_ps = k_now_ps(r->k) - r->begin_ps;
    k_timer_release(&r->timer);
    r->done = true;
}

static void run_interrupted(struct interrupted *r, sim_time timer_ps, unsigned steps)
{
    memset(r, 0, sizeof(*r));
    r->timer_ps = timer_ps;
    r->steps = steps;
    fixture_open(&r->w, WORLD);
    r->k = os_new(r->w.host, host_os_params(r->w.host));
    r->at = k_alloc(r->k, 0, 64, 64);
    k_thread_new(r->k, "thread", 1, interrupted_body, r);
    sim_run(r->w.sim, SIM_TIME_MAX, NULL);
    assert_true(r->done);
    os_free(r->k);
    fixture_close(&r->w);
}

/* A long computation is interrupted when many short ones are, and ends when they do. */
static void test_long_computation(void **state)
{
    struct interrupted at_once, in_steps;
    (void)state;
    for (sim_time at_ps = 300; at_ps < 60 * SIM_PS_PER_US; at_ps += 7777777) {
        run_interrupted(&at_once, at_ps, 1);
        run_interrupted(&in_steps, at_ps, 1000);
        assert_int_equal(at_once.took_ps, in_steps.took_ps);
        assert_int_equal(at_once.end_ps, in_steps.end_ps);
    }
}

/* A thread that polls is interrupted no later than one that computes, but for a look. */
static void test_interrupts_while_polling(void **state)
{
    struct interrupted polls, computes;
    (void)state;
    for (sim_time at_ps = 300; at_ps < 30 * SIM_PS_PER_US; at_ps += 3333333) {
        run_interrupted(&polls, at_ps, 0);
        run_interrupted(&computes, at_ps, 1000);
        assert_true(polls.took_ps >= computes.took_ps);
        assert_true(polls.took_ps < computes.took_ps + PERIOD);
    }
}

struct hang {
    struct kernel *k;
    struct kaddr at;
    struct k_wait_queue answer;
};

static void wait_body(void *arg)
{
    struct hang *h = arg;
    k_wait(h->k, &h->answer, UINT64_MAX);
    fail();
}

static void poll_body(void *arg)
{
    struct hang *h = arg;
    const uint64_t none = 0;
    uint64_t word = 0;
    while (word == 0) {
        k_spin(h->k, h->at, &none, sizeof none, PERIOD, k_now_ps(h->k) + SIM_PS_PER_S);
        k_load(h->k, h->at, &word, sizeof word);
    }
    fail();
}

/* A thread that polls a line, and one that sleeps, wait for what nobody does. */
static void test_hang_is_told(void **state)
{
    struct world_fixture w;
    struct hang h = { NULL, { 0 }, { NULL } };
    (void)state;
    fixture_open(&w, WORLD);
    h.k = os_new(w.host, host_os_params(w.host));
    h.at = k_alloc(h.k, 0, 64, 64);
    sim_task_set_quantum(w.sim, 20 * SIM_PS_PER_NS);
    k_thread_new(h.k, "waits", 1, wait_body, &h);
    k_thread_new(h.k, "polls", 2, poll_body, &h);
    sim_run(w.sim, SIM_TIME_MAX, NULL);
    assert_non_null(sim_error(w.sim));
    assert_non_null(strstr(sim_error(w.sim), "only polls and timers go on; "));
    assert_non_null(strstr(sim_error(w.sim), "waits waits for &h->answer (in wait_body())"));
    assert_non_null(strstr(sim_error(w.sim), "server.polls "));
    assert_null(strstr(sim_error(w.sim), "idle"));
    assert_null(strstr(sim_error(w.sim), "boot"));
    os_free(h.k);
    world_free(w.world);
    config_free(w.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_look),       cmocka_unit_test(test_like_a_loop),
        cmocka_unit_test(test_limits),           cmocka_unit_test(test_store_of_another_cpu),
        cmocka_unit_test(test_long_computation), cmocka_unit_test(test_interrupts_while_polling),
        cmocka_unit_test(test_hang_is_told),     cmocka_unit_test(test_copy_of_another_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
