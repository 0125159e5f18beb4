/* Tasks: clocks, order at equal times, suspending, stacks, and independence of the quantum. */
#include "sim/engine/sim_internal.h"
#include "sim/engine/task.h"
#include "sim/engine/task_stack.h"

#include <math.h>
#include <sys/mman.h>

#include "tests/support/death.h"

/* ---- Clocks ---------------------------------------------------------------------------------- */

struct notes {
    unsigned n;
    char text[4096];
};

static void note(struct notes *notes, struct sim *sim, const char *who)
{
    size_t used = strlen(notes->text);

    notes->n++;
    snprintf(notes->text + used, sizeof(notes->text) - used, "%s@%llu ", who,
             (unsigned long long)sim_now(sim));
}

static void charge_body(struct sim_task *task, void *arg)
{
    struct notes *notes = arg;
    struct sim *sim = sim_task_sim(task);

    assert_ptr_equal(sim_task_current(sim), task);
    note(notes, sim, "start");
    sim_task_charge(task, 600);
    assert_int_equal(sim_now(sim), 50); /* within the quantum: ahead */
    assert_int_equal(sim_task_now(task), 650);
    sim_task_charge(task, 400);
    assert_int_equal(sim_now(sim), 50);
    sim_task_charge(task, 1);
    note(notes, sim, "quantum");
    sim_task_charge_until(task, 1100);
    sim_task_charge_until(task, 1000); /* past: nothing */
    assert_int_equal(sim_task_now(task), 1100);
    sim_task_sync(task);
    note(notes, sim, "sync");
    sim_task_sync(task);
    note(notes, sim, "same");
}

static void charging_and_syncing(void **state)
{
    struct sim *sim = sim_new(1);
    struct notes notes = { 0 };
    struct sim_task *task = sim_task_new(sim, "alone", 0, charge_body, &notes);

    (void)state;
    assert_string_equal(sim_task_name(task), "alone");
    sim_task_set_quantum(sim, 1000);
    sim_task_start(task, 50);
    assert_false(sim_task_finished(task));
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_true(sim_task_finished(task));
    assert_null(sim_task_current(sim));
    assert_string_equal(notes.text, "start@50 quantum@1051 sync@1100 same@1100 ");
#ifndef SIM_HOSTILE /* which sends tasks back to the loop all the time */
    assert_int_equal(sim_events_fired(sim), 1); /* nothing was in the way: time moved by itself */
#endif
    sim_free(sim);
}

struct noting_event {
    struct sim_event event;
    struct notes *notes;
    const char *who;
};

static void noting_fire(struct sim *sim, struct sim_event *event)
{
    struct noting_event *noting = SIM_CONTAINER(event, struct noting_event, event);

    note(noting->notes, sim, noting->who);
}

static void walk_body(struct sim_task *task, void *arg)
{
    for (unsigned i = 0; i < 3; i++) {
        sim_task_charge(task, 100);
        sim_task_sync(task);
        note(arg, sim_task_sim(task), sim_task_name(task));
    }
}

/* An event of the same time goes first, even one scheduled after the task began to wait; the task
 * does not pass the end of the run. */
static void events_go_before_tasks(void **state)
{
    struct sim *sim = sim_new(1);
    struct notes notes = { 0 };
    struct noting_event a = { .notes = &notes, .who = "a" }, b = { .notes = &notes, .who = "b" };

    (void)state;
    sim_event_init(&a.event, noting_fire);
    sim_event_init(&b.event, noting_fire);
    sim_task_start(sim_task_new(sim, "task", 0, walk_body, &notes), 0);
    sim_schedule(sim, &a.event, 100);
    sim_run(sim, 150, NULL);
    assert_string_equal(notes.text, "a@100 task@100 ");
    assert_int_equal(sim_now(sim), 150);
    sim_schedule(sim, &b.event, 200); /* the task's wake-up is already pending */
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_string_equal(notes.text, "a@100 task@100 b@200 task@200 task@300 ");
    sim_free(sim);
}

/* At equal times tasks run in the order in which they were made, however they were started. */
static void tasks_of_one_time_run_in_order_of_making(void **state)
{
    static const char *const names[] = { "a", "b", "c", "d" };
    static const unsigned order[] = { 2, 0, 3, 1 };
    struct sim *sim = sim_new(1);
    struct notes notes = { 0 };
    struct sim_task *task[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        task[i] = sim_task_new(sim, names[i], 0, walk_body, &notes);
    for (unsigned i = 0; i < 4; i++)
        sim_task_start(task[order[i]], 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_string_equal(notes.text, "a@100 b@100 c@100 d@100 a@200 b@200 c@200 d@200 "
                                    "a@300 b@300 c@300 d@300 ");
    sim_free(sim);
}

static void spin_body(struct sim_task *task, void *arg)
{
    volatile int *interrupt = arg;

    for (unsigned i = 0;; i++) {
        sim_task_charge(task, 10);
        sim_task_sync(task);
        if (i == 100)
            *interrupt = 1;
    }
}

/* A task that never has to wait is still stopped by the end, by an interrupt, by sim_stop(). */
static void a_lone_task_can_be_stopped(void **state)
{
    struct sim *sim = sim_new(1);
    volatile int interrupt = 0;
    int interrupt_at_100 = 0;

    (void)state;
    sim_task_start(sim_task_new(sim, "spin", 0, spin_body, &interrupt_at_100), 0);
    sim_run(sim, 55, NULL);
    assert_int_equal(sim_now(sim), 55);
    sim_run(sim, 60, NULL);
    assert_int_equal(sim_now(sim), 60);
    sim_free(sim);

    sim = sim_new(1);
    sim_task_start(sim_task_new(sim, "spin", 0, spin_body, (void *)(uintptr_t)&interrupt), 0);
    sim_run(sim, SIM_TIME_MAX, &interrupt);
    assert_in_range(sim_now(sim), 1000, 100000);
    sim_free(sim); /* frees the unfinished task */
}

static void stop_body(struct sim_task *task, void *arg)
{
    sim_task_charge(task, 10);
    sim_task_sync(task);
    sim_stop(sim_task_sim(task));
    sim_task_charge(task, 10);
    sim_task_sync(task);
    note(arg, sim_task_sim(task), "after");
}

static void stopping_from_a_task(void **state)
{
    struct sim *sim = sim_new(1);
    struct notes notes = { 0 };

    (void)state;
    sim_task_start(sim_task_new(sim, "stop", 0, stop_body, &notes), 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_int_equal(sim_now(sim), 10);
    assert_int_equal(notes.n, 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_string_equal(notes.text, "after@20 ");
    sim_free(sim);
}

/* ---- Suspending ------------------------------------------------------------------------------ */

struct resumer {
    struct sim_event event;
    struct sim_task *task;
    sim_time delay_ps;
};

static void resumer_fire(struct sim *sim, struct sim_event *event)
{
    struct resumer *resumer = SIM_CONTAINER(event, struct resumer, event);

    sim_task_resume(resumer->task, sim_now(sim) + resumer->delay_ps);
}

static void suspend_body(struct sim_task *task, void *arg)
{
    struct sim *sim = sim_task_sim(task);

    sim_task_suspend(task);
    note(arg, sim, "first"); /* resumed at 100 for 130 */
    sim_task_charge(task, 300);
    sim_task_suspend(task);
    note(arg, sim, "early"); /* resumed at 200, while ahead until 430 */
    sim_task_charge(task, 20);
    sim_task_suspend(task);
    note(arg, sim, "late"); /* resumed at 440, while ahead until 450, for 490 */
    sim_task_suspend(task);
    note(arg, sim, "never");
}

static void suspending_and_resuming(void **state)
{
    struct sim *sim = sim_new(1);
    struct notes notes = { 0 };
    struct sim_task *task = sim_task_new(sim, "sleeper", 0, suspend_body, &notes);
    struct resumer resumer[3] = { { .delay_ps = 30 }, { .delay_ps = 0 }, { .delay_ps = 50 } };
    static const sim_time at_ps[] = { 100, 200, 440 };

    (void)state;
    sim_task_start(task, 0);
    for (unsigned i = 0; i < 3; i++) {
        sim_event_init(&resumer[i].event, resumer_fire);
        resumer[i].task = task;
        sim_schedule(sim, &resumer[i].event, at_ps[i]);
    }
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_string_equal(notes.text, "first@130 early@430 late@490 ");
    assert_false(sim_task_finished(task));
    sim_free(sim);
}

/* ---- Independence of the quantum ------------------------------------------------------------- */

/*
 * A device serves one request after the other; software on several cores computes, submits, waits.
 * All durations are multiples of 10 ps below 100, so that equal times are the rule. What is
 * compared is everything the device sees, with times and order.
 */
#define N_CORES 6

struct core {
    struct sim_task *task;
    struct device *device;
    struct sim_random random;
    struct sim_event reply;
    unsigned idx;
};

struct device {
    struct sim *sim;
    sim_time free_ps;
    uint64_t hash, n_requests, n_same_time;
    sim_time last_ps;
    struct core core[N_CORES];
};

static void device_note(struct device *device, unsigned what, unsigned core)
{
    sim_time now_ps = sim_now(device->sim);

    device->n_same_time += now_ps == device->last_ps;
    device->last_ps = now_ps;
    device->hash = (device->hash ^ now_ps) * UINT64_C(0x100000001b3) + what * 16 + core;
    device->hash ^= device->hash >> 29;
}

static void reply_fire(struct sim *sim, struct sim_event *event)
{
    struct core *core = SIM_CONTAINER(event, struct core, reply);

    device_note(core->device, 1, core->idx);
    sim_task_resume(core->task, sim_now(sim) + core->idx % 2 * 10);
}

static sim_time some_ps(struct core *core)
{
    return 10 * sim_random_below(&core->random, 10);
}

static void core_body(struct sim_task *task, void *arg)
{
    struct core *core = arg;
    struct device *device = core->device;

    for (unsigned i = 0; i < 400; i++) {
        for (uint64_t n = sim_random_below(&core->random, 8); n > 0; n--)
            sim_task_charge(task, some_ps(core));
        sim_task_sync(task);
        device_note(device, 0, core->idx);
        device->n_requests++;
        device->free_ps = SIM_MAX(device->free_ps, sim_now(device->sim)) + some_ps(core);
        sim_schedule(device->sim, &core->reply, device->free_ps);
        if (i % 3 == 0) /* does something else until the reply, perhaps beyond it */
            sim_task_charge(task, 2 * some_ps(core));
        sim_task_suspend(task);
        device_note(device, 2, core->idx);
    }
}

static uint64_t device_history(sim_time quantum_ps, sim_time piece_ps, uint64_t seed,
                               uint64_t *n_same_time)
{
    struct sim *sim = sim_new(seed);
    struct device device = { .sim = sim };

    sim_task_set_quantum(sim, quantum_ps);
    for (unsigned i = 0; i < N_CORES; i++) {
        struct core *core = &device.core[i];
        char name[16];

        snprintf(name, sizeof(name), "core%u", i / 2); /* pairs with the same draws */
        *core = (struct core){ .device = &device, .idx = i };
        sim_random_init(&core->random, seed, name);
        sim_event_init(&core->reply, reply_fire);
        core->task = sim_task_new(sim, name, 0, core_body, core);
        sim_task_start(core->task, 0);
    }
    while (sim_events_pending(sim) > 0)
        sim_run(sim, piece_ps == 0 ? SIM_TIME_MAX : sim_now(sim) + piece_ps, NULL);
    for (unsigned i = 0; i < N_CORES; i++)
        assert_true(sim_task_finished(device.core[i].task));
    assert_int_equal(device.n_requests, 400 * N_CORES);
    *n_same_time = device.n_same_time;
    sim_free(sim);
    return device.hash;
}

static void results_do_not_depend_on_the_quantum(void **state)
{
    static const sim_time quanta_ps[] = { 0, 1, 10, 30, 77, 150, 1000, SIM_PS_PER_US };

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t n_same_time, n;
        uint64_t expected = device_history(0, 0, seed, &n_same_time);

        assert_true(n_same_time > 1000); /* the case is hard enough */
        for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta_ps); q++) {
            assert_true(device_history(quanta_ps[q], 0, seed, &n) == expected);
            assert_true(device_history(quanta_ps[q], 130, seed, &n) == expected);
            assert_int_equal(n, n_same_time);
        }
    }
    uint64_t n;

    assert_true(device_history(0, 0, 1, &n) != device_history(0, 0, 2, &n));
}

/* ---- Stacks ---------------------------------------------------------------------------------- */

static unsigned deep(unsigned depth, struct sim_task *task)
{
    volatile char frame[512];

    frame[0] = (char)depth;
    frame[sizeof(frame) - 1] = 1;
    if (depth == 0) {
        sim_task_charge(task, 5);
        sim_task_sync(task);
        return 0;
    }
    return deep(depth - 1, task) + (unsigned)(frame[0] == (char)depth);
}

static void many_body(struct sim_task *task, void *arg)
{
    unsigned *n_good = arg;
    double x = (double)(uintptr_t)sim_task_name(task)[4];

    for (unsigned i = 0; i < 3; i++) {
        double y = sqrt(x) + i;

        if (deep(8, task) == 8 && fabs((y - i) * (y - i) - x) < 1e-9)
            ++*n_good;
        sim_task_charge(task, 1);
    }
}

static void ten_thousand_tasks(void **state)
{
    struct sim *sim = sim_new(1);
    unsigned n_good = 0, n = 10000;

    (void)state;
    for (unsigned i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof(name), "task%u", i);
        sim_task_start(sim_task_new(sim, name, 0, many_body, &n_good), i % 7);
    }
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_int_equal(n_good, 3 * n);
    sim_free(sim);
}

static void address_body(struct sim_task *task, void *arg)
{
    volatile char here = 0;
    uintptr_t *page = arg;

    (void)task;
    *page = (uintptr_t)&here >> 16;
}

/* A stack is used again once its task has finished; also one that ended deep in its frames. */
static void stacks_are_reused(void **state)
{
    struct sim *sim = sim_new(1);
    uintptr_t first = 0, second = 0;
    unsigned n_good = 0;

    (void)state;
    sim_task_start(sim_task_new(sim, "first", 1 << 20, address_body, &first), 0);
    sim_run(sim, 10, NULL);
    sim_task_start(sim_task_new(sim, "second", 1 << 20, address_body, &second), 10);
    sim_run(sim, 20, NULL);
    assert_true(first != 0 && first == second);
    for (unsigned i = 0; i < 1000; i++) {
        sim_task_start(sim_task_new(sim, "again", 0, many_body, &n_good), sim_now(sim));
        sim_run(sim, sim_now(sim) + 100, NULL);
    }
    assert_int_equal(n_good, 3000);
    sim_free(sim);
}

static volatile unsigned endless = 1;
static volatile uintptr_t *reached; /* shared with the child: the first frame and the last */

static unsigned recurse(unsigned depth)
{
    volatile char frame[1024];

    reached[depth != 0] = (uintptr_t)__builtin_frame_address(0);
    frame[0] = (char)depth;
    return endless != 0 ? recurse(depth + 1) + (unsigned)frame[0] : 0;
}

static void rest_body(struct sim_task *task, void *arg)
{
    (void)arg;
    sim_task_suspend(task);
}

static void overflow_body(struct sim_task *task, void *arg)
{
    (void)task;
    *(unsigned *)arg = recurse(0);
}

static void overflow(void)
{
    struct sim *sim = sim_new(1);
    unsigned result = 0;

    sim_task_start(sim_task_new(sim, "other", 0, rest_body, NULL), 0); /* memory on either side */
    sim_task_start(sim_task_new(sim, "overflow", 0, overflow_body, &result), 1);
    sim_task_start(sim_task_new(sim, "other", 0, rest_body, NULL), 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
}

static void an_overflow_meets_the_guard_page(void **state)
{
    char words[16384];

    reached = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal((void *)(uintptr_t)reached, MAP_FAILED);
    int status = death_status(overflow, words, sizeof(words));

    (void)state;
    /* by the signal, or by address sanitizer's exit on it */
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
                strstr(words, "stack-overflow") != NULL || strstr(words, "SEGV") != NULL);
    /* before it got into the stack below */
    assert_in_range(reached[0] - reached[1], SIM_TASK_STACK_BYTES_DEFAULT / 2,
                    SIM_TASK_STACK_BYTES_DEFAULT);
}

/* Fills frames until `bytes` of stack are used, and goes back. */
static unsigned use_stack(uintptr_t top, size_t bytes)
{
    volatile char frame[256];
    unsigned sum = 0;

    for (size_t i = 0; i < sizeof(frame); i++)
        frame[i] = (char)i;
    if (top - (uintptr_t)__builtin_frame_address(0) < bytes)
        sum = use_stack(top, bytes);
    return sum + (unsigned)frame[endless];
}

static void use_stack_body(struct sim_task *task, void *arg)
{
    const uintptr_t top = (uintptr_t)__builtin_frame_address(0);
    const size_t *bytes = arg;

    assert_true(use_stack(top, *bytes) != 0);
    sim_task_suspend(task);
}

/* Many tasks that hold a stack each, and the last one uses so much of its own. */
static struct sim *many_stacks(size_t *bytes)
{
    struct sim *sim = sim_new(1);

    for (unsigned i = 0; i < TASK_STACKS_GUARDED + 100; i++)
        sim_task_start(sim_task_new(sim, "many", 0, rest_body, NULL), 0);
    sim_task_start(sim_task_new(sim, "last", 0, use_stack_body, bytes), 1);
    sim_run(sim, SIM_TIME_MAX, NULL);
    return sim;
}

static void overflow_among_many(void)
{
    size_t bytes = SIM_TASK_STACK_BYTES_DEFAULT + 100;

    sim_free(many_stacks(&bytes));
}

static void an_overflow_of_one_of_many_is_noticed(void **state)
{
    char words[16384];
    size_t bytes = SIM_TASK_STACK_BYTES_DEFAULT - 4096;
    const int status = death_status(overflow_among_many, words, sizeof(words));

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(words, "task last has overflowed its stack of 65472 bytes"));
    sim_free(many_stacks(&bytes)); /* all but that is allowed */
}

static size_t mappings_of(unsigned n)
{
    struct task_stacks *stacks = task_stacks_new();

    for (unsigned i = 0; i < n; i++)
        task_stacks_take(stacks, 65536);
    const size_t mappings = task_stacks_mappings(stacks);
    task_stacks_free(stacks);
    return mappings;
}

/* Linux allows 65,530 mappings a process: two a stack at first, then two for 64 stacks. */
static void stacks_share_mappings_when_they_are_many(void **state)
{
    (void)state;
    assert_int_equal(mappings_of(100), 200);
    assert_int_equal(mappings_of(TASK_STACKS_GUARDED), 2 * TASK_STACKS_GUARDED);
    assert_int_equal(mappings_of(TASK_STACKS_GUARDED + 6400), 2 * TASK_STACKS_GUARDED + 200);
}

static void a_task_has_a_stack_only_while_it_runs(void **state)
{
    struct sim *sim = sim_new(1);
    uintptr_t page = 0, again = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        sim_task_new(sim, "unborn", 0, rest_body, NULL);
    assert_int_equal(task_stacks_mappings(sim_tasks_stacks(sim)), 0);
    sim_task_start(sim_task_new(sim, "first", 0, address_body, &page), 1);
    sim_task_start(sim_task_new(sim, "second", 0, address_body, &again), 2);
    sim_run(sim, SIM_TIME_MAX, NULL);
    assert_int_equal(task_stacks_mappings(sim_tasks_stacks(sim)), 2);
    assert_true(page != 0 && page == again);
    sim_free(sim);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void failing_body(struct sim_task *task, void *arg)
{
    (void)arg;
    sim_task_charge(task, 1234);
    sim_task_sync(task);
    SIM_ASSERT(sim_task_name(task) == NULL, "the answer is %d", 42);
}

static void fail_in_task(void)
{
    struct sim *sim = sim_new(1);

    sim_task_start(sim_task_new(sim, "victim", 0, failing_body, NULL), 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
}

static void start_twice(void)
{
    struct sim *sim = sim_new(1);
    struct sim_task *task = sim_task_new(sim, "twice", 0, failing_body, NULL);

    sim_task_start(task, 0);
    sim_task_start(task, 0);
}

static void sync_from_outside(void)
{
    struct sim *sim = sim_new(1);

    sim_task_sync(sim_task_new(sim, "stranger", 0, failing_body, NULL));
}

static void faults_name_time_and_task(void **state)
{
    (void)state;
    assert_aborts(fail_in_task, "test_task.c:", "the answer is 42", "at 1234 ps", "task victim",
                  NULL);
    assert_aborts(start_twice, "task twice started twice", NULL);
    assert_aborts(sync_from_outside, "task stranger", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charging_and_syncing),
        cmocka_unit_test(events_go_before_tasks),
        cmocka_unit_test(tasks_of_one_time_run_in_order_of_making),
        cmocka_unit_test(a_lone_task_can_be_stopped),
        cmocka_unit_test(stopping_from_a_task),
        cmocka_unit_test(suspending_and_resuming),
        cmocka_unit_test(results_do_not_depend_on_the_quantum),
        cmocka_unit_test(ten_thousand_tasks),
        cmocka_unit_test(stacks_are_reused),
        cmocka_unit_test(an_overflow_meets_the_guard_page),
        cmocka_unit_test(an_overflow_of_one_of_many_is_noticed),
        cmocka_unit_test(stacks_share_mappings_when_they_are_many),
        cmocka_unit_test(a_task_has_a_stack_only_while_it_runs),
        cmocka_unit_test(faults_name_time_and_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
