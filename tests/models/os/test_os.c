/*
 * The kernel of a host: when threads, interrupts and timers run, to the picosecond, whatever the
 * quantum; who gets the CPU; that nothing is lost; that busy time adds up.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "models/os/os.h"
#include "models/os/os_internal.h"

#define NS     SIM_PS_PER_NS
#define US     SIM_PS_PER_US
#define MS     SIM_PS_PER_MS
#define CYCLE  (500 * UINT64_C(1)) /* 2 GHz */
#define HARD   (500 * NS)
#define SOFT   (1000 * NS)
#define SWITCH (1500 * NS)
#define WAKE   (200 * NS)
#define REMOTE (300 * NS)
#define TIMER  (50 * NS)
#define WORK   (400 * NS)
#define WAY    (100 * NS) /* of an interrupt to the core */
#define C1     (2 * US)
#define C1E    (5 * US)
#define C6     (100 * US)

#define WORLD                                                                      \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );" \
    " cpu = { sockets = 2; cores_per_socket = 4; clock_ghz = 2.0; }; }; };"        \
    "devices = { a = { type = \"pcie.requester\"; }; };"                           \
    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; } );"

struct rig {
    struct world_fixture w;
    struct kernel *k;
    struct sim *sim;
    uint64_t at[64]; /* what the bodies note */
    unsigned n;
    unsigned vector_cpu;
    uint8_t vector;
    struct k_wait_queue queue;
    struct sim_event *again; /* of a call that repeats itself */
    bool go, stop;
    uint64_t count;
};

static const sim_time quanta[] = { 0, 20 * NS, 100 * NS, 1 * US };

static void rig_open(struct rig *r, sim_time quantum_ps)
{
    struct os_params params;
    memset(r, 0, sizeof(*r));
    fixture_open(&r->w, WORLD);
    r->sim = r->w.sim;
    params = *host_os_params(r->w.host);
    params.costs.syscall_cycles = 400;
    params.costs.hard_irq_cycles = HARD / CYCLE;
    params.costs.soft_irq_cycles = SOFT / CYCLE;
    params.costs.context_switch_cycles = SWITCH / CYCLE;
    params.costs.wakeup_cycles = WAKE / CYCLE;
    params.costs.remote_wakeup_cycles = REMOTE / CYCLE;
    params.costs.timer_cycles = TIMER / CYCLE;
    params.costs.work_cycles = WORK / CYCLE;
    params.interrupt_ps = WAY;
    params.c1_exit_ps = C1;
    params.c1e_after_ps = 20 * US;
    params.c1e_exit_ps = C1E;
    params.c6_after_ps = 400 * US;
    params.c6_exit_ps = C6;
    params.scheduler_tick_ps = 1 * MS;
    r->k = os_new(r->w.host, &params);
    sim_task_set_quantum(r->sim, quantum_ps);
    sim_run(r->sim, sim_now(r->sim) + 10 * US, NULL); /* the CPUs sleep */
}

static void rig_close(struct rig *r)
{
    assert_null(sim_error(r->sim));
    os_free(r->k);
    fixture_close(&r->w);
}

static int rig_set_up(void **state)
{
    struct fixture_test *t = *state;
    const sim_time *quantum_ps = t->settings;
    t->fixture = calloc(1, sizeof(struct rig));
    rig_open(t->fixture, *quantum_ps);
    return 0;
}

static int rig_tear_down(void **state)
{
    struct fixture_test *t = *state;
    struct rig *r = t->fixture;
    if (t->passed || fixture_test_abandon(r->sim))
        os_free(r->k);
    return fixture_tear_down(state);
}

#define OS_TEST(test, quantum_ps) \
    FIXTURE_TEST(test, rig_set_up, rig_tear_down, &(sim_time){ quantum_ps })

static void run(struct rig *r)
{
    sim_run(r->sim, SIM_TIME_MAX, NULL);
}

static void note(struct rig *r)
{
    assert_true(r->n < SIM_N_ELEMENTS(r->at));
    r->at[r->n++] = k_now_ps(r->k);
}

/* Calls a function of the test at a time, from outside of the kernel. */
struct call {
    struct sim_event event;
    struct rig *r;
    void (*fn)(struct rig *r);
};
static void call_fires(struct sim *sim, struct sim_event *event)
{
    struct call *call = SIM_CONTAINER(event, struct call, event);
    (void)sim;
    call->fn(call->r);
}
static void call_at(struct rig *r, struct call *call, sim_time at_ps, void (*fn)(struct rig *r))
{
    sim_event_init(&call->event, call_fires);
    call->r = r;
    call->fn = fn;
    sim_schedule(r->sim, &call->event, at_ps);
}
static void raise_vector(struct rig *r)
{
    struct root_complex_host *rcs = host_root_complexes(r->w.host);
    rcs->interrupt(rcs->interrupt_context, r->vector_cpu, r->vector);
}
static void vector_for(struct rig *r, unsigned cpu, k_irq_fn *handler)
{
    uint32_t destination;
    assert_true(os_vector_alloc(r->k, cpu, handler, r, &destination, &r->vector));
    assert_int_equal(destination, cpu);
    r->vector_cpu = cpu;
}

/* ---- Computing, switching, waking ------------------------------------------------------------ */

static void compute_body(void *arg)
{
    struct rig *r = arg;
    note(r);
    k_compute(r->k, 7000);
    note(r);
    assert_int_equal(k_cpu(r->k), 5);
    assert_int_equal(k_node_of_cpu(r->k, 5), 1);
}

static void test_compute(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        rig_open(&r, quanta[q]);
        sim_time start = sim_now(r.sim);
        k_thread_new(r.k, "compute", 5, compute_body, &r);
        run(&r);
        assert_int_equal(r.at[0] - start, WAY + C1 + SWITCH);
        assert_int_equal(r.at[1] - r.at[0], 7000 * CYCLE);
        rig_close(&r);
    }
}

static void waiter_body(void *arg)
{
    struct rig *r = arg;
    while (!r->go)
        assert_true(k_wait(r->k, &r->queue, UINT64_MAX));
    note(r);
}
static void waker_body(void *arg)
{
    struct rig *r = arg;
    k_compute(r->k, 100);
    note(r);
    r->go = true;
    k_wake(r->k, &r->queue);
    note(r);
}

static void test_wake_up(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++)
        for (int cpu = 0; cpu < 3; cpu += 2) {
            struct rig r;
            rig_open(&r, quanta[q]);
            k_thread_new(r.k, "waiter", 0, waiter_body, &r);
            run(&r);
            assert_true(k_has_waiters(&r.queue));
            k_thread_new(r.k, "waker", cpu, waker_body, &r);
            run(&r);
            assert_int_equal(r.n, 3);
            assert_false(k_has_waiters(&r.queue));
            if (cpu == 0) { /* when the waker is done */
                assert_int_equal(r.at[1] - r.at[0], WAKE);
                assert_int_equal(r.at[2] - r.at[1], SWITCH);
            } else {
                assert_int_equal(r.at[1] - r.at[0], WAKE + REMOTE);
                assert_int_equal(r.at[2] - r.at[1], WAY + C1 + SWITCH);
            }
            rig_close(&r);
        }
}

static void timeout_body(void *arg)
{
    struct rig *r = arg;
    note(r);
    assert_false(k_wait(r->k, &r->queue, r->at[0] + 30 * US));
    note(r);
    assert_false(k_has_waiters(&r->queue));
    assert_false(k_wait(r->k, &r->queue, r->at[0]));
    assert_int_equal(k_now_ps(r->k), r->at[1]);
    k_sleep(r->k, 50 * NS); /* shorter than an interrupt's way */
    note(r);
}

static void test_wait_times_out(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        rig_open(&r, quanta[q]);
        k_thread_new(r.k, "timeout", 1, timeout_body, &r);
        run(&r);
        assert_int_equal(r.at[1] - r.at[0], 30 * US + C1 + HARD + WAKE + SWITCH);
        assert_int_equal(r.at[2] - r.at[1], 50 * NS + C1 + HARD + WAKE + SWITCH);
        rig_close(&r);
    }
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void handler_note(void *arg)
{
    struct rig *r = arg;
    note(r);
    k_compute(r->k, 200);
}

static void test_interrupt_of_an_idle_cpu(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct call call;
        rig_open(&r, quanta[q]);
        vector_for(&r, 3, handler_note);
        sim_time at = sim_now(r.sim) + 123457;
        call_at(&r, &call, at, raise_vector);
        run(&r);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.at[0] - at, WAY + C1 + HARD);
        assert_int_equal(os_cpu_stats(r.k, 3)->hard_irqs, 1);
        rig_close(&r);
    }
}

static void long_body(void *arg)
{
    struct rig *r = arg;
    note(r);
    k_compute(r->k, 40000);
    note(r);
}

/* Cuts a long computation exactly where they are due; what comes while one is handled waits. */
static void test_interrupts_of_a_computation(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct call call[5];
        rig_open(&r, quanta[q]);
        vector_for(&r, 2, handler_note);
        sim_time start = sim_now(r.sim) + WAY + C1 + SWITCH;
        k_thread_new(r.k, "long", 2, long_body, &r);
        call_at(&r, &call[0], start + 1 * US + 7, raise_vector);
        call_at(&r, &call[1], start + 1 * US + 9, raise_vector); /* the same: still pending */
        call_at(&r, &call[2], start + 1 * US + 307 * NS, raise_vector);
        call_at(&r, &call[3], start + 9 * US, raise_vector);
        call_at(&r, &call[4], start + 9 * US + WAY + 1, raise_vector); /* the other is taken */
        run(&r);
        sim_time first = start + 1 * US + 7 + WAY + HARD;
        assert_int_equal(r.n, 6);
        assert_int_equal(r.at[0], start);
        assert_int_equal(r.at[1], first);
        assert_int_equal(r.at[2], first + 200 * CYCLE + HARD);
        assert_int_equal(r.at[3], start + 9 * US + WAY + HARD);
        assert_int_equal(r.at[4], r.at[3] + 200 * CYCLE + HARD);
        assert_int_equal(r.at[5], start + 40000 * CYCLE + 4 * (HARD + 200 * CYCLE));
        rig_close(&r);
    }
}

struct real {
    struct root_complex_host *rcs;
    root_complex_interrupt_fn *fn;
    void *context;
    struct rig *r;
    sim_time at_ps;
};
static void real_arrives(void *context, uint32_t destination, uint8_t vector)
{
    struct real *real = context;
    real->at_ps = sim_now(real->r->sim);
    real->fn(real->context, destination, vector);
}

/* From a device's write to the handler. */
static void test_interrupt_of_a_device(void **state)
{
    struct rig *r = *state;
    uint8_t data[4] = { 0 };
    struct fixture_op op = { .op = { .write = true, .bytes = 4, .buffer = data } };
    vector_for(r, 6, handler_note);
    struct root_complex_host *rcs = host_root_complexes(r->w.host);
    struct real real = { rcs, rcs->interrupt, rcs->interrupt_context, r, 0 };
    rcs->interrupt = real_arrives;
    rcs->interrupt_context = &real;
    data[0] = r->vector;
    op.op.iova.v = 0xfee00000u | 6u << 12;
    assert_int_equal(fixture_dma(&r->w, "a", &op), PCIE_DMA_OK);
    assert_int_equal(r->n, 1);
    assert_true(real.at_ps > op.start_ps);
    assert_int_equal(r->at[0] - real.at_ps, WAY + C1 + HARD);
}

static void test_vectors_run_out_and_come_back(void **state)
{
    struct rig *r = *state;
    uint32_t destination;
    uint8_t vector[256], more;
    unsigned n = 0;
    while (os_vector_alloc(r->k, 1, handler_note, r, &destination, &vector[n]))
        n++;
    assert_int_equal(n, OS_LAST_VECTOR - OS_FIRST_VECTOR + 1);
    assert_true(os_vector_alloc(r->k, 2, handler_note, r, &destination, &more));
    r->vector_cpu = 1;
    for (unsigned i = 10; i < 13; i++) {
        r->vector = vector[i];
        raise_vector(r);
    }
    os_vector_free(r->k, 1, vector[12]); /* with what is pending */
    os_vector_free(r->k, 1, vector[10]);
    run(r);
    assert_int_equal(r->n, 1);
    assert_true(os_vector_alloc(r->k, 1, handler_note, r, &destination, &more));
    assert_int_equal(more, vector[10]);
}

/* ---- Soft interrupts, NAPI, work ------------------------------------------------------------- */

struct net {
    struct k_napi napi;
    struct rig *r;
    uint64_t left; /* packets that are there */
    uint64_t done;
    uint32_t packet_cycles;
    bool late; /* more came in while it completed */
};
static int net_poll(struct k_napi *napi, int budget)
{
    struct net *net = K_CONTAINER(napi, struct net, napi);
    int n = 0;
    if (net->done == 0)
        note(net->r);
    for (; n < budget && net->left > 0; n++, net->left--, net->done++)
        k_compute(napi->kernel, net->packet_cycles);
    if (n < budget) {
        if (net->late) {
            net->late = false;
            net->left = 3;
            k_napi_schedule(napi);
        }
        assert_int_equal(k_napi_complete(napi), net->left == 0);
    }
    return n;
}
static void net_handler(void *arg)
{
    struct net *net = arg;
    if (net->done == 0)
        note(net->r);
    k_napi_schedule(&net->napi);
}
static void net_init(struct net *net, struct rig *r, unsigned cpu, uint64_t packets)
{
    uint32_t destination;
    *net = (struct net){ .r = r, .left = packets, .packet_cycles = 1000 };
    k_napi_init(&net->napi, r->k, net_poll);
    assert_true(os_vector_alloc(r->k, cpu, net_handler, net, &destination, &r->vector));
    r->vector_cpu = cpu;
}

static void test_napi(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct net net;
        rig_open(&r, quanta[q]);
        net_init(&net, &r, 4, 130);
        net.late = true;
        sim_time start = sim_now(r.sim);
        raise_vector(&r);
        run(&r);
        const struct os_stats *stats = os_cpu_stats(r.k, 4);
        assert_int_equal(r.at[0] - start, WAY + C1 + HARD);
        assert_int_equal(r.at[1] - r.at[0], SOFT);
        assert_int_equal(net.done, 133);
        assert_int_equal(stats->polls, 4); /* 64 + 64 + 2 + 3 */
        assert_int_equal(stats->soft_irqs, 1);
        assert_int_equal(stats->soft_irq_ps, SOFT + 133 * 1000 * CYCLE);
        assert_int_equal(stats->busy_ps, stats->soft_irq_ps + HARD);
        assert_int_equal(stats->ksoftirqd_runs, 0);
        assert_false(net.napi.scheduled);
        rig_close(&r);
    }
}

/* A soft interrupt of the network ends with the poll in which it has had its 300 packets, and ten
 * rounds of that are all that an interrupt may have: the rest is ksoftirqd's. */
static void test_budget_of_packets(void **unused)
{
    const unsigned polls = 10 * 5; /* of 64 packets each */
    (void)unused;
    for (unsigned more = 0; more < 2; more++) {
        struct rig r;
        struct net net;
        rig_open(&r, quanta[0]);
        net_init(&net, &r, 4, polls * 64 - 1 + more);
        net.packet_cycles = 100;
        raise_vector(&r);
        run(&r);
        const struct os_stats *stats = os_cpu_stats(r.k, 4);
        assert_int_equal(net.done, polls * 64 - 1 + more);
        assert_int_equal(stats->polls, polls + more); /* one that finds nothing */
        assert_int_equal(stats->soft_irqs, 1 + more);
        assert_int_equal(stats->ksoftirqd_runs, more);
        rig_close(&r);
    }
}

static void bh_body(void *arg)
{
    struct net *net = arg;
    struct rig *r = net->r;
    k_bh_disable(r->k);
    k_bh_disable(r->k);
    raise_vector(r);
    k_compute(r->k, 2000); /* the handler comes, its soft interrupt does not */
    assert_int_equal(r->n, 1);
    k_bh_enable(r->k);
    k_compute(r->k, 2000);
    assert_int_equal(r->n, 1);
    k_bh_enable(r->k);
    assert_int_equal(r->n, 2);
    assert_int_equal(net->done, 5);
    net->left = 2;
    k_napi_schedule(&net->napi); /* from a thread: before it returns */
    assert_int_equal(net->done, 7);
}

static void test_soft_interrupts_kept_out(void **state)
{
    struct rig *r = *state;
    struct net net;
    net_init(&net, r, 1, 5);
    k_thread_new(r->k, "bh", 1, bh_body, &net);
    run(r);
    assert_int_equal(net.done, 7);
}

static void sharing_body(void *arg)
{
    struct rig *r = arg;
    while (!r->stop) {
        k_compute(r->k, 10000);
        r->count++;
        k_syscall(r->k);
    }
}
static void stop(struct rig *r)
{
    r->stop = true;
    sim_stop(r->sim);
}

static void net_again(struct rig *r)
{
    struct call *call = K_CONTAINER(r->again, struct call, event);
    raise_vector(r);
    call_at(r, call, sim_now(r->sim) + 50 * US, net_again);
}

/* Packets without end and a program on one CPU: ksoftirqd and the program get half each,
 * although interrupts go on coming in. */
static void test_ksoftirqd_shares(void **unused)
{
    (void)unused;
    for (unsigned q = 1; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct net net;
        struct call call, again;
        rig_open(&r, quanta[q]);
        r.again = &again.event;
        net_init(&net, &r, 0, UINT64_MAX);
        k_thread_new(r.k, "program", 0, sharing_body, &r);
        sim_run(r.sim, sim_now(r.sim) + 100 * US, NULL);
        os_stats_clear(r.k);
        sim_time start = sim_now(r.sim);
        uint64_t count = r.count;
        call_at(&r, &again, start, net_again);
        call_at(&r, &call, start + 100 * MS, stop);
        run(&r);
        const struct os_stats *stats = os_cpu_stats(r.k, 0);
        sim_time program = (r.count - count) * (10000 + 400) * CYCLE;
        assert_in_range(program, 47 * MS, 52 * MS);
        assert_in_range(net.done * 1000 * CYCLE, 47 * MS, 53 * MS);
        assert_true(stats->ksoftirqd_runs > 10);
        assert_int_equal(stats->busy_ps, 100 * MS);
        rig_close(&r);
    }
}

/* As in Linux 2.6: the soft interrupts do not end for the program, whose slice they use up. */
static void test_soft_interrupts_that_do_not_yield(void **unused)
{
    (void)unused;
    for (unsigned yields = 0; yields < 2; yields++) {
        struct rig r;
        struct net net;
        struct call call;
        rig_open(&r, quanta[1]);
        r.k->params.softirq_yields = yields;
        net_init(&net, &r, 0, 2500); /* nine rounds, longer than a slice */
        net.packet_cycles = 3000;
        k_thread_new(r.k, "program", 0, sharing_body, &r);
        sim_run(r.sim, sim_now(r.sim) + 100 * US, NULL);
        raise_vector(&r);
        call_at(&r, &call, sim_now(r.sim) + 20 * MS, stop);
        run(&r);
        assert_int_equal(net.done, 2500);
        assert_int_equal(os_cpu_stats(r.k, 0)->ksoftirqd_runs > 0, yields);
        rig_close(&r);
    }
}

static void returning_body(void *arg)
{
    struct rig *r = arg;
    note(r);
    k_compute(r->k, 20000);
    note(r);
}

/* The program goes on later, the handler comes no later. */
static void test_return_from_an_interrupt(void **unused)
{
    sim_time took[2], handled[2];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        struct rig r;
        struct net net;
        struct call call;
        rig_open(&r, quanta[0]);
        r.k->params.costs.irq_return_cycles = i * 1000;
        net_init(&net, &r, 2, 3);
        k_thread_new(r.k, "program", 2, returning_body, &r);
        call_at(&r, &call, sim_now(r.sim) + 5 * US, raise_vector);
        run(&r);
        assert_int_equal(net.done, 3);
        assert_int_equal(r.n, 4); /* begin, handler, first poll, end */
        handled[i] = r.at[2] - r.at[0];
        took[i] = r.at[3] - r.at[0];
        rig_close(&r);
    }
    assert_int_equal(handled[1], handled[0]);
    assert_int_equal(took[1] - took[0], 1000 * CYCLE);
}

/* Wakes twice: when the program has run long, and soon after it has begun again. */
static void late_body(void *arg)
{
    struct rig *r = arg;
    const sim_time first_ps = k_now_ps(r->k) + 5 * MS;
    k_sleep(r->k, 5 * MS);
    r->at[0] = k_now_ps(r->k) - first_ps;
    const sim_time second_ps = k_now_ps(r->k) + 100 * US;
    k_sleep(r->k, 100 * US);
    r->at[1] = k_now_ps(r->k) - second_ps;
    stop(r);
}

/* A thread that is due waits for the end of the running one's slice, or only for a place to give
 * way. */
static void test_wakeup_preempts(void **unused)
{
    (void)unused;
    for (unsigned preempts = 0; preempts < 2; preempts++) {
        struct rig r;
        rig_open(&r, quanta[1]);
        r.k->params.wakeup_granularity_ps = preempts ? 500 * US : 0;
        k_thread_new(r.k, "program", 0, sharing_body, &r);
        k_thread_new(r.k, "late", 0, late_body, &r);
        run(&r);
        assert_true(r.at[0] < 20 * US);
        if (preempts)
            assert_true(r.at[1] < 20 * US);
        else
            assert_in_range(r.at[1], 800 * US, 950 * US);
        rig_close(&r);
    }
}

struct job {
    struct k_work work;
    struct rig *r;
    unsigned cpu;
    bool again;
};
static void job_fn(struct k_work *work)
{
    struct job *job = K_CONTAINER(work, struct job, work);
    note(job->r);
    assert_int_equal(k_cpu(job->r->k), job->cpu);
    if (job->again) {
        job->again = false;
        k_work_queue(job->r->k, work, K_CPU_ANY);
    }
    k_sleep(job->r->k, 5 * US); /* may sleep */
}
static void queueing_body(void *arg)
{
    struct job *job = arg;
    note(job[0].r);
    k_work_queue(job[0].r->k, &job[0].work, 3);
    k_work_queue(job[0].r->k, &job[0].work, 3); /* once */
    k_work_queue(job[0].r->k, &job[1].work, 3);
}

static void test_work(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        rig_open(&r, quanta[q]);
        struct job job[2] = { { { job_fn, NULL, false }, &r, 3, false },
                              { { job_fn, NULL, false }, &r, 3, true } };
        k_thread_new(r.k, "queueing", 1, queueing_body, job);
        run(&r);
        sim_time each = WORK + 5 * US + C1 + HARD + WAKE + SWITCH;
        assert_int_equal(r.n, 4);
        assert_int_equal(r.at[1] - r.at[0], WAKE + REMOTE + WAY + C1 + SWITCH + WORK);
        assert_int_equal(r.at[2] - r.at[1], each);
        assert_int_equal(r.at[3] - r.at[2], each);
        rig_close(&r);
    }
}

/* A piece of work that sleeps goes on when its time has come, whatever is queued meanwhile. */
struct sleeping_job {
    struct k_work work;
    struct rig *r;
    sim_time slept_ps;
};
static void sleeping_job_fn(struct k_work *work)
{
    struct sleeping_job *job = K_CONTAINER(work, struct sleeping_job, work);
    const sim_time now_ps = k_now_ps(job->r->k);
    k_sleep(job->r->k, 100 * US);
    job->slept_ps = k_now_ps(job->r->k) - now_ps;
}
static void queueing_later_body(void *arg)
{
    struct sleeping_job *job = arg;
    struct kernel *k = job->r->k;
    k_work_queue(k, &job[0].work, 3);
    k_sleep(k, 50 * US);
    k_work_queue(k, &job[1].work, 3);
}

static void test_work_that_sleeps(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        rig_open(&r, quanta[q]);
        struct sleeping_job job[2] = { { { sleeping_job_fn, NULL, false }, &r, 0 },
                                       { { sleeping_job_fn, NULL, false }, &r, 0 } };
        k_thread_new(r.k, "queueing", 1, queueing_later_body, job);
        run(&r);
        for (unsigned i = 0; i < 2; i++)
            assert_true(job[i].slept_ps >= 100 * US);
        rig_close(&r);
    }
}

/* ---- Who has the CPU ------------------------------------------------------------------------- */

static void turn_body(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < 3; i++) {
        k_compute(r->k, 100);
        note(r);
        k_yield(r->k);
    }
}

static void test_yield_takes_turns(void **state)
{
    struct rig *r = *state;
    k_thread_new(r->k, "a", 0, turn_body, r);
    k_thread_new(r->k, "b", 0, turn_body, r);
    run(r);
    assert_int_equal(r->n, 6);
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(r->at[i] - r->at[i - 1], 100 * CYCLE + SWITCH);
}

struct share {
    struct rig *r;
    uint64_t count;
    unsigned sleep_us;
};
static void share_body(void *arg)
{
    struct share *share = arg;
    while (!share->r->stop) {
        k_compute(share->r->k, 20000);
        share->count++;
        if (share->sleep_us != 0)
            k_sleep(share->r->k, share->sleep_us * US);
        else
            os_poll(share->r->k);
    }
}

/* Three that always want the CPU get the same; one that sleeps most of the time gets what it
 * wants. */
static void test_threads_share(void **state)
{
    struct rig *r = *state;
    struct call call;
    struct share share[4] = { { r, 0, 0 }, { r, 0, 0 }, { r, 0, 0 }, { r, 0, 500 } };
    for (unsigned i = 0; i < 4; i++)
        k_thread_new(r->k, "share", 7, share_body, &share[i]);
    call_at(r, &call, sim_now(r->sim) + 120 * MS, stop);
    run(r);
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(share[i].count, 3700, 4100);
    /* 500 us of sleep, 10 us of its own, and at most until the other's slice is over */
    assert_in_range(share[3].count, 75, 240);
}

static void mover_body(void *arg)
{
    struct rig *r = arg;
    note(r);
    k_thread_set_cpu(k_thread_self(r->k), 6);
    note(r);
    assert_int_equal(k_cpu(r->k), 6);
    assert_int_equal(os_core(r->k)->idx, 6);
    k_thread_set_cpu(k_thread_self(r->k), 6);
    assert_int_equal(k_now_ps(r->k), r->at[1]);
    while (!r->stop) {
        k_compute(r->k, 1000);
        k_syscall(r->k);
    }
    assert_int_equal(k_cpu(r->k), 2);
    r->go = true;
    k_wake(r->k, &r->queue);
}
static void moving_body(void *arg)
{
    struct k_thread *thread = *(struct k_thread **)arg;
    struct kernel *k = thread->kernel;
    k_sleep(k, 50 * US);
    k_thread_set_cpu(thread, 2); /* it is running */
    k_sleep(k, 50 * US);
}
static void parked_body(void *arg)
{
    struct rig *r = arg;
    while (!r->go)
        k_wait(r->k, &r->queue, UINT64_MAX);
    assert_int_equal(k_cpu(r->k), 4);
    note(r);
}

static void test_migration(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct call call;
        rig_open(&r, quanta[q]);
        struct k_thread *parked = k_thread_new(r.k, "parked", 3, parked_body, &r);
        struct k_thread *thread = k_thread_new(r.k, "mover", 5, mover_body, &r);
        k_thread_new(r.k, "moving", 1, moving_body, &thread);
        call_at(&r, &call, sim_now(r.sim) + 200 * US, stop);
        sim_run(r.sim, sim_now(r.sim) + 20 * US, NULL);
        k_thread_set_cpu(parked, 4); /* it waits */
        run(&r);
        run(&r);
        assert_int_equal(r.n, 3);
        assert_int_equal(r.at[1] - r.at[0], WAKE + REMOTE + WAY + C1 + SWITCH);
        assert_int_equal(os_cpu_stats(r.k, 5)->migrations, 1);
        assert_int_equal(os_cpu_stats(r.k, 6)->migrations, 1);
        rig_close(&r);
    }
}

struct floater {
    struct rig *r;
    unsigned cpu; /* on which it goes on */
};
static void floater_body(void *arg)
{
    struct floater *s = arg;
    k_wait(s->r->k, &s->r->queue, UINT64_MAX);
    s->cpu = k_cpu(s->r->k);
    k_sleep(s->r->k, 500 * US);
}
static void occupier_body(void *arg)
{
    struct rig *r = arg;
    while (!r->stop) {
        k_compute(r->k, 1000);
        k_syscall(r->k);
    }
}
static void later_waker_body(void *arg)
{
    struct rig *r = arg;
    k_sleep(r->k, 100 * US);
    k_wake(r->k, &r->queue);
    k_sleep(r->k, 100 * US);
    r->stop = true;
}

/* Sockets have CPUs 0 to 3 and 4 to 7. Who floats leaves a busy CPU for the next idle one of the
 * socket, two of them for two; it stays where the CPU is idle, or all are busy; others stay in any
 * case. */
static void test_floating_threads(void **state)
{
    static const struct {
        unsigned busy; /* CPUs */
        unsigned cpu[3], expected[3];
        bool floats;
    } cases[] = { { 1u << 1, { 1, 1, 2 }, { 2, 3, 2 }, true },
                  { 1u << 1, { 1, 1, 2 }, { 1, 1, 2 }, false },
                  { 1u << 6 | 1u << 7, { 7, 6, 7 }, { 4, 5, 7 }, true },
                  { 0, { 1, 2, 3 }, { 1, 2, 3 }, true },
                  { 15, { 1, 2, 3 }, { 1, 2, 3 }, true } };
    (void)state;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++)
        for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
            struct floater s[3];
            struct rig r;
            rig_open(&r, quanta[q]);
            for (unsigned k = 0; k < 3; k++) {
                s[k] = (struct floater){ &r, 99 };
                struct k_thread *thread = k_thread_new(r.k, "floater", (int)cases[i].cpu[k],
                                                       floater_body, &s[k]);
                if (cases[i].floats)
                    k_thread_float(thread);
                sim_run(r.sim, sim_now(r.sim) + 20 * US, NULL); /* they wait in this order */
            }
            for (unsigned c = 0; c < 8; c++)
                if ((cases[i].busy >> c & 1) != 0)
                    k_thread_new(r.k, "busy", (int)c, occupier_body, &r);
            k_thread_new(r.k, "waker", 0, later_waker_body, &r);
            run(&r);
            for (unsigned k = 0; k < 3; k++)
                assert_int_equal(s[k].cpu, cases[i].expected[k]);
            rig_close(&r);
        }
}

/* Another CPU moves the thread while who wakes it, ahead of that CPU, looks for an idle one. */
struct moved_floater {
    struct rig *r;
    struct k_thread *thread;
    sim_time at_ps, wake_ps;
};
static void moved_floater_body(void *arg)
{
    struct moved_floater *m = arg;
    k_wait(m->r->k, &m->r->queue, UINT64_MAX);
    m->r->stop = true;
}
static void floater_mover_body(void *arg)
{
    struct moved_floater *m = arg;
    k_compute(m->r->k, (m->at_ps - k_now_ps(m->r->k)) / CYCLE);
    k_thread_set_cpu(m->thread, 6);
}
static void floater_waker_body(void *arg)
{
    struct moved_floater *m = arg;
    struct kernel *k = m->r->k;
    k_compute(k, (m->wake_ps - SIM_PS_PER_US - k_now_ps(k)) / CYCLE);
    while (k_now_ps(k) < m->wake_ps)
        k_compute(k, 20);
    k_wake(k, &m->r->queue);
}

static void test_floating_thread_moved(void **state)
{
    (void)state;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++)
        for (sim_time d = 0; d <= 200 * NS; d += 10 * NS) {
            struct rig r;
            struct moved_floater m = { .r = &r };
            rig_open(&r, quanta[q]);
            m.at_ps = sim_now(r.sim) + 50 * US;
            m.wake_ps = m.at_ps - 100 * NS + d;
            m.thread = k_thread_new(r.k, "floater", 1, moved_floater_body, &m);
            k_thread_float(m.thread);
            sim_run(r.sim, sim_now(r.sim) + 20 * US, NULL);
            k_thread_new(r.k, "busy", 1, occupier_body, &r);
            k_thread_new(r.k, "waker", 0, floater_waker_body, &m);
            k_thread_new(r.k, "mover", 5, floater_mover_body, &m);
            run(&r);
            for (unsigned c = 0; c < 8; c++)
                assert_int_equal(r.k->cpu[c].n_threads, 0);
            rig_close(&r);
        }
}

/* ---- Other ways of waking and moving --------------------------------------------------------- */

static void again_body(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < 2; i++) {
        k_wait(r->k, &r->queue, UINT64_MAX);
        r->count++;
    }
}
static void wake_outside(struct rig *r)
{
    k_wake(r->k, &r->queue);
}

/* All that wait are woken, in the order in which they came, and once: who waits again, waits. */
static void test_wake_all_once(void **state)
{
    struct rig *r = *state;
    struct call call;
    for (int i = 0; i < 5; i++)
        k_thread_new(r->k, "again", i % 3, again_body, r);
    run(r);
    assert_int_equal(r->count, 0);
    call_at(r, &call, sim_now(r->sim) + 1 * US, wake_outside);
    run(r);
    assert_int_equal(r->count, 5);
    assert_true(k_has_waiters(&r->queue));
    r->go = true;
    k_thread_new(r->k, "waker", 1, waker_body, r);
    run(r);
    assert_int_equal(r->count, 10);
    assert_null(r->k->threads);
}

static void bystander_body(void *arg)
{
    (void)arg;
}
static void hog_body(void *arg)
{
    struct rig *r = arg;
    k_compute(r->k, 100000);
    note(r);
}
static void ready_body(void *arg)
{
    struct rig *r = arg;
    note(r);
    assert_int_equal(k_cpu(r->k), 3);
}

/* A thread that waits for its CPU goes on at once on an idle one. */
static void test_moving_a_ready_thread(void **state)
{
    struct rig *r = *state;
    k_thread_new(r->k, "hog", 0, hog_body, r);
    struct k_thread *ready = k_thread_new(r->k, "ready", 0, ready_body, r);
    sim_run(r->sim, sim_now(r->sim) + 20 * US, NULL);
    sim_time at = sim_now(r->sim);
    k_thread_set_cpu(ready, 3);
    assert_int_equal(k_thread_cpu(ready), 3);
    /* The least loaded are CPUs 1, 2, 4 ..; of them the first. */
    assert_int_equal(k_thread_cpu(k_thread_new(r->k, "any", K_CPU_ANY, bystander_body, r)), 1);
    assert_int_equal(k_thread_cpu(k_thread_new(r->k, "any", K_CPU_ANY, bystander_body, r)), 2);
    run(r);
    assert_int_equal(r->n, 2);
    assert_int_equal(r->at[0] - at, WAY + C1 + SWITCH);
    assert_int_equal(os_cpu_stats(r->k, 0)->context_switches, 1);
}

static void turns_body(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < 400; i++) {
        k_compute(r->k, 200);
        k_yield(r->k);
    }
    r->count++;
}

/* At any time, in the midst of the switch to it too, when it is neither in a queue nor runs yet. */
static void test_moving_at_any_time(void **state)
{
    struct rig *r = *state;
    struct k_thread *thread = k_thread_new(r->k, "moved", 0, turns_body, r);
    for (unsigned cpu = 0; cpu < 2; cpu++)
        k_thread_new(r->k, "neighbour", (int)cpu, turns_body, r);
    for (unsigned i = 0; i < 1000; i++) {
        sim_run(r->sim, sim_now(r->sim) + 370 * NS, NULL);
        k_thread_set_cpu(thread, i % 2);
    }
    run(r);
    assert_int_equal(r->count, 3);
    assert_true(os_cpu_stats(r->k, 0)->migrations > 10);
}

/* One that has had a CPU for long and comes to another gets its share there at once. */
static void test_moved_threads_share(void **state)
{
    struct rig *r = *state;
    struct call call;
    struct share share[2] = { { r, 0, 0 }, { r, 0, 0 } };
    struct k_thread *thread = k_thread_new(r->k, "old", 0, share_body, &share[0]);
    sim_run(r->sim, sim_now(r->sim) + 50 * MS, NULL);
    k_thread_new(r->k, "new", 1, share_body, &share[1]);
    sim_run(r->sim, sim_now(r->sim) + 10 * MS, NULL);
    k_thread_set_cpu(thread, 1);
    share[0].count = share[1].count = 0;
    call_at(r, &call, sim_now(r->sim) + 20 * MS, stop);
    run(r);
    assert_in_range(share[0].count, 900, 1100);
    assert_in_range(share[1].count, 900, 1100);
}

/* A wake-up that comes while the waiting thread is still on its way from its own clock to the
 * global one. */
static void early_body(void *arg)
{
    struct rig *r = arg;
    sim_task_sync(os_task(r->k));
    r->at[0] = k_now_ps(r->k);
    k_compute(r->k, 100);
    assert_true(k_wait(r->k, &r->queue, UINT64_MAX));
    r->at[1] = k_now_ps(r->k);
}
static void test_wake_up_before_the_switch(void **state)
{
    struct rig *r = *state;
    struct call call;
    k_thread_new(r->k, "early", 2, early_body, r);
    call_at(r, &call, sim_now(r->sim) + WAY + C1 + SWITCH + 20 * NS, wake_outside);
    run(r);
    assert_int_equal(r->at[1] - r->at[0], 100 * CYCLE);
    assert_int_equal(os_cpu_stats(r->k, 2)->context_switches, 1);
}

/* A wake-up that comes while the idle task, after an interrupt, is on the same way. */
static void test_wake_up_before_sleep(void **state)
{
    struct rig *r = *state;
    struct call call[2];
    vector_for(r, 2, handler_note);
    k_thread_new(r->k, "waiter", 2, waiter_body, r);
    run(r);
    r->go = true;
    sim_time at = sim_now(r->sim) + 1 * US;
    call_at(r, &call[0], at, raise_vector);
    call_at(r, &call[1], at + WAY + C1 + 100 * NS, wake_outside);
    run(r);
    assert_int_equal(r->n, 2);
    assert_int_equal(r->at[0] - at, WAY + C1 + HARD);
    assert_int_equal(r->at[1] - r->at[0], 200 * CYCLE + SWITCH);
}

/* ---- The quantum ----------------------------------------------------------------------------- */

#define N_TRACE 400
struct trace {
    struct rig r;
    struct net net;
    struct call call;
    struct sim_random random;
    unsigned n_calls, n;
    uint64_t packets;
    sim_time at[N_TRACE];
};
static int trace_poll(struct k_napi *napi, int budget)
{
    struct net *net = K_CONTAINER(napi, struct net, napi);
    struct trace *t = K_CONTAINER(net, struct trace, net);
    (void)budget;
    k_compute(t->r.k, 700);
    t->packets++;
    k_wake(t->r.k, &t->r.queue);
    k_napi_complete(napi);
    return 1;
}
static void trace_irq(void *arg)
{
    k_napi_schedule(&((struct trace *)arg)->net.napi);
}
static void trace_raise(struct rig *r)
{
    struct trace *t = K_CONTAINER(r, struct trace, r);
    raise_vector(r);
    if (++t->n_calls < 100)
        call_at(r, &t->call, sim_now(r->sim) + 1 + sim_random_below(&t->random, 20 * US),
                trace_raise);
}
static void trace_program(void *arg)
{
    struct trace *t = arg;
    uint64_t seen = 0;
    while (t->n + 2 < N_TRACE && t->n_calls < 100) {
        sim_task_sync(os_task(t->r.k)); /* before it looks at what others write */
        while (seen == t->packets && t->n_calls < 100)
            k_wait(t->r.k, &t->r.queue, k_now_ps(t->r.k) + 9 * US);
        t->at[t->n++] = k_now_ps(t->r.k);
        seen = t->packets;
        k_compute(t->r.k, 3000 + t->n * 7);
        k_syscall(t->r.k);
    }
}
static void trace_neighbour(void *arg)
{
    struct trace *t = arg;
    while (t->n_calls < 100) {
        k_compute(t->r.k, 5000);
        k_sleep(t->r.k, 3 * US);
        sim_task_sync(os_task(t->r.k));
    }
    t->at[N_TRACE - 1] = k_now_ps(t->r.k);
}
static void trace_run(struct trace *t, sim_time quantum_ps)
{
    uint32_t destination;
    memset(t, 0, sizeof(*t));
    rig_open(&t->r, quantum_ps);
    sim_random_init(&t->random, 7, "trace");
    k_napi_init(&t->net.napi, t->r.k, trace_poll);
    assert_true(os_vector_alloc(t->r.k, 0, trace_irq, t, &destination, &t->r.vector));
    k_thread_new(t->r.k, "program", 5, trace_program, t);
    k_thread_new(t->r.k, "neighbour", 0, trace_neighbour, t);
    call_at(&t->r, &t->call, sim_now(t->r.sim) + 1 * US, trace_raise);
    run(&t->r);
    assert_int_equal(t->n_calls, 100);
    assert_true(t->n > 40);
    rig_close(&t->r);
}

/* Packets that wake a program elsewhere, time-outs, a neighbour: the same times exactly, where data
 * that CPUs share are looked at in global time, and while no task runs further ahead than an
 * interrupt takes on its way. */
static void test_quantum_changes_nothing(void **unused)
{
    static struct trace first, other;
    (void)unused;
    trace_run(&first, 0);
    for (unsigned q = 1; q < SIM_N_ELEMENTS(quanta) && quanta[q] <= WAY; q++) {
        trace_run(&other, quanta[q]);
        assert_int_equal(other.n, first.n);
        assert_memory_equal(other.at, first.at, sizeof(first.at));
    }
}

/* ---- Timers ---------------------------------------------------------------------------------- */

#define N_TIMERS 40
struct alarm {
    struct k_timer timer;
    struct rig *r;
    sim_time at_ps;
    bool fired;
};
static void alarm_fires(struct k_timer *timer)
{
    struct alarm *alarm = K_CONTAINER(timer, struct alarm, timer);
    assert_false(alarm->fired);
    assert_false(k_timer_pending(timer));
    assert_true(k_now_ps(timer->kernel) >= alarm->at_ps + TIMER);
    alarm->fired = true;
    alarm->r->at[alarm->r->n++] = alarm->at_ps;
}
static void alarms_body(void *arg)
{
    struct alarm *alarm = arg;
    struct kernel *k = alarm->r->k;
    struct sim_random random;
    sim_time now = k_now_ps(k);
    sim_random_init(&random, 1, "alarms");
    for (unsigned i = 0; i < N_TIMERS; i++) {
        k_timer_init(&alarm[i].timer, k, alarm_fires);
        k_timer_set(&alarm[i].timer, now + 1 * US + sim_random_below(&random, 100 * US));
        alarm[i].at_ps = now + 10 * US + sim_random_below(&random, 40 * US);
        if (i % 5 == 0)
            alarm[i].at_ps = now + 20 * US;
        k_timer_set(&alarm[i].timer, alarm[i].at_ps); /* moves it */
        assert_true(k_timer_pending(&alarm[i].timer));
    }
    for (unsigned i = 0; i < N_TIMERS; i += 4)
        k_timer_cancel(&alarm[i].timer);
    k_compute(k, 40000); /* the first half while it computes, the others while it is idle */
    k_timer_cancel(&alarm[0].timer);
}

static void test_timers_in_order(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct alarm alarm[N_TIMERS];
        rig_open(&r, quanta[q]);
        memset(alarm, 0, sizeof(alarm));
        for (unsigned i = 0; i < N_TIMERS; i++)
            alarm[i].r = &r;
        k_thread_new(r.k, "alarms", 0, alarms_body, alarm);
        run(&r);
        for (unsigned i = 0; i < N_TIMERS; i++) {
            assert_int_equal(alarm[i].fired, i % 4 != 0);
            k_timer_release(&alarm[i].timer);
            assert_false(k_timer_pending(&alarm[i].timer));
        }
        assert_int_equal(r.n, N_TIMERS - N_TIMERS / 4);
        for (unsigned i = 1; i < r.n; i++)
            assert_true(r.at[i] >= r.at[i - 1]);
        rig_close(&r);
    }
}

static void one_alarm(struct k_timer *timer)
{
    struct alarm *alarm = K_CONTAINER(timer, struct alarm, timer);
    note(alarm->r);
    if (alarm->r->n < 4)
        k_timer_set(timer, k_now_ps(timer->kernel) + 10 * US); /* again */
}
static void one_alarm_body(void *arg)
{
    struct alarm *alarm = arg;
    k_timer_init(&alarm->timer, alarm->r->k, one_alarm);
    note(alarm->r);
    k_timer_set(&alarm->timer, alarm->r->at[0] + 1 * US);
    k_compute(alarm->r->k, 4000);
    note(alarm->r);
}

static void test_timer_time(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct alarm alarm = { .r = &r };
        rig_open(&r, quanta[q]);
        k_thread_new(r.k, "alarm", 2, one_alarm_body, &alarm);
        run(&r);
        assert_int_equal(r.n, 4);
        assert_int_equal(r.at[1] - r.at[0], 1 * US + HARD + SOFT + TIMER);
        assert_int_equal(r.at[2] - r.at[0], 4000 * CYCLE + HARD + SOFT + TIMER);
        assert_int_equal(r.at[3] - r.at[1], 10 * US + C1 + HARD + SOFT + TIMER);
        k_timer_release(&alarm.timer);
        rig_close(&r);
    }
}

/* Another CPU releases a timer while its interrupt, its soft interrupt, its expiry take their time:
 * behind that its function does not begin any more, so that its memory may go. */
struct race {
    struct alarm alarm;
    sim_time release_at_ps;
    bool released;
};
static void race_fires(struct k_timer *timer)
{
    struct race *race = K_CONTAINER(timer, struct race, alarm.timer);
    assert_false(race->released);
    race->alarm.fired = true;
}
static void race_set_body(void *arg)
{
    struct race *race = arg;
    k_timer_init(&race->alarm.timer, race->alarm.r->k, race_fires);
    k_timer_set(&race->alarm.timer, race->alarm.at_ps);
}
static void race_release_body(void *arg)
{
    struct race *race = arg;
    struct kernel *k = race->alarm.r->k;
    k_compute(k, (race->release_at_ps - k_now_ps(k)) / CYCLE);
    k_yield(k);
    k_timer_release(&race->alarm.timer);
    race->released = true;
}

static void test_timer_released_elsewhere(void **unused)
{
    const sim_time whole = C1 + HARD + SOFT + TIMER;
    unsigned n_fired[2] = { 0, 0 };
    (void)unused;
    for (unsigned q = 0; q < 2; q++) { /* beyond that the CPUs' order is loose */
        for (sim_time d = 0; d <= whole + 200 * NS; d += 20 * NS) {
            struct rig r;
            struct race race = { .alarm = { .r = &r } };
            rig_open(&r, quanta[q]);
            race.alarm.at_ps = sim_now(r.sim) + 50 * US;
            race.release_at_ps = race.alarm.at_ps + d;
            k_thread_new(r.k, "set", 0, race_set_body, &race);
            k_thread_new(r.k, "release", 1, race_release_body, &race);
            run(&r);
            assert_true(race.released);
            n_fired[race.alarm.fired]++;
            rig_close(&r);
        }
    }
    assert_true(n_fired[0] > 100 && n_fired[1] > 10);
}

/* A thread that has moved to another CPU since it began to wait is woken in time there, goes on and
 * waits for something else, while the CPU whose timer was to wake it is about to. */
struct overtaken {
    struct rig *r;
    sim_time until_ps, wake_ps, slept_ps;
    struct k_thread *thread;
};
static void overtaken_body(void *arg)
{
    struct overtaken *o = arg;
    struct kernel *k = o->r->k;
    k_wait(k, &o->r->queue, o->until_ps);
    const sim_time now_ps = k_now_ps(k);
    k_sleep(k, 100 * US);
    o->slept_ps = k_now_ps(k) - now_ps;
}
static void overtaking_body(void *arg)
{
    struct overtaken *o = arg;
    struct kernel *k = o->r->k;
    k_thread_set_cpu(o->thread, 4);
    k_compute(k, (o->wake_ps - k_now_ps(k)) / CYCLE);
    k_wake(k, &o->r->queue);
}

static void test_timeout_overtaken(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++)
        for (sim_time d = 0; d <= 3 * US; d += 200 * NS) {
            struct rig r;
            struct overtaken o = { .r = &r };
            rig_open(&r, quanta[q]);
            o.until_ps = sim_now(r.sim) + 100 * US;
            o.wake_ps = o.until_ps - 3 * US + d;
            o.thread = k_thread_new(r.k, "overtaken", 0, overtaken_body, &o);
            sim_run(r.sim, sim_now(r.sim) + 20 * US, NULL);
            k_thread_new(r.k, "overtaking", 5, overtaking_body, &o);
            run(&r);
            assert_true(o.slept_ps >= 100 * US);
            rig_close(&r);
        }
}

/* ---- Idle states ----------------------------------------------------------------------------- */

static void sleeper_body(void *arg)
{
    struct rig *r = arg;
    static const sim_time periods[] = { 10 * US, 100 * US, 1 * MS, 10 * US };
    for (unsigned p = 0; p < SIM_N_ELEMENTS(periods); p++)
        for (unsigned i = 0; i < 9; i++) {
            sim_time before = k_now_ps(r->k);
            k_sleep(r->k, periods[p]);
            if (i == 8)
                r->at[r->n++] = k_now_ps(r->k) - before - periods[p] - HARD - WAKE - SWITCH;
        }
}

static void test_idle_states(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        rig_open(&r, quanta[q]);
        k_thread_new(r.k, "sleeper", 0, sleeper_body, &r);
        run(&r);
        assert_int_equal(r.n, 4);
        assert_int_equal(r.at[0], C1);
        assert_int_equal(r.at[1], C1E);
        assert_int_equal(r.at[2], C6);
        assert_int_equal(r.at[3], C1);
        rig_close(&r);
    }
}

/* ---- Nothing is lost, everything is counted -------------------------------------------------- */

#define N_PAIRS 6
struct pair {
    struct rig *r;
    struct sim_random random;
    struct k_wait_queue full, empty;
    unsigned items, produced, consumed;
};
static void work_a_while(struct pair *pair)
{
    k_compute(pair->r->k, sim_random_below(&pair->random, 6000));
}
static void producer_body(void *arg)
{
    struct pair *pair = arg;
    struct kernel *k = pair->r->k;
    for (; pair->produced < 300; pair->produced++) {
        work_a_while(pair);
        while (pair->items == 2)
            k_wait(k, &pair->empty, UINT64_MAX);
        pair->items++;
        k_wake(k, &pair->full);
        if (sim_random_below(&pair->random, 16) == 0)
            k_thread_set_cpu(k_thread_self(k), (unsigned)sim_random_below(&pair->random, 8));
        if (sim_random_below(&pair->random, 16) == 0)
            k_sleep(k, sim_random_below(&pair->random, 3000));
    }
}
static void consumer_body(void *arg)
{
    struct pair *pair = arg;
    struct kernel *k = pair->r->k;
    for (; pair->consumed < 300; pair->consumed++) {
        work_a_while(pair);
        while (pair->items == 0)
            k_wait(k, &pair->full, pair->consumed % 3 == 0 ? k_now_ps(k) + 700 * NS : UINT64_MAX);
        pair->items--;
        k_wake(k, &pair->empty);
        if (sim_random_below(&pair->random, 16) == 0)
            k_syscall(k);
    }
}

/* From outside, at random times: interrupts that wake nobody, wake-ups for nothing. */
struct disturbance {
    struct call call;
    struct rig r; /* the interrupts' CPU and vector; the kernel of the test */
    struct sim_random random;
    struct pair *pair;
};
static void disturbing_handler(void *arg)
{
    struct disturbance *d = arg;
    k_compute(d->r.k, sim_random_below(&d->random, 1000));
}
static void disturb(struct rig *r)
{
    struct disturbance *d = K_CONTAINER(r, struct disturbance, r);
    const struct pair *pair = d->pair;
    if (pair->produced == 300 && pair->consumed == 300)
        return;
    raise_vector(r);
    if (sim_random_below(&d->random, 4) == 0)
        k_wake(r->k, &d->pair->full);
    call_at(r, &d->call, sim_now(r->sim) + 1 + sim_random_below(&d->random, 2 * US), disturb);
}
static void disturbance_start(struct disturbance *d, struct rig *r, struct pair *pair, unsigned i)
{
    uint32_t destination;
    *d = (struct disturbance){ .r = *r, .pair = pair };
    sim_random_init(&d->random, i, "disturbance");
    d->r.vector_cpu = i;
    assert_true(os_vector_alloc(r->k, i, disturbing_handler, d, &destination, &d->r.vector));
    call_at(&d->r, &d->call, sim_now(r->sim) + 1, disturb);
}

static void test_no_wake_up_is_lost(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            struct rig r;
            struct pair pair[N_PAIRS];
            struct disturbance disturbance[N_PAIRS];
            rig_open(&r, quanta[q]);
            os_stats_clear(r.k);
            sim_time start = sim_now(r.sim);
            memset(pair, 0, sizeof(pair));
            for (unsigned i = 0; i < N_PAIRS; i++) {
                pair[i].r = &r;
                sim_random_init(&pair[i].random, seed * N_PAIRS + i, "pair");
                k_thread_new(r.k, "producer", (int)(i % 4), producer_body, &pair[i]);
                k_thread_new(r.k, "consumer", (int)((i + seed) % 5), consumer_body, &pair[i]);
                disturbance_start(&disturbance[i], &r, &pair[i], i);
            }
            run(&r);
            for (unsigned i = 0; i < N_PAIRS; i++) {
                assert_int_equal(pair[i].consumed, 300);
                assert_int_equal(pair[i].produced, 300);
                assert_int_equal(pair[i].items, 0);
            }
            assert_null(r.k->threads);
            for (unsigned c = 0; c < 8; c++) {
                assert_int_equal(r.k->cpu[c].n_threads, 0);
                assert_int_equal(os_busy_ps(r.k, c) + r.k->cpu[c].idle_ps +
                                     (sim_now(r.sim) - SIM_MAX(r.k->cpu[c].idle_since_ps, start)),
                                 sim_now(r.sim) - start);
            }
            rig_close(&r);
        }
}

static void busy_body(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < 10; i++) {
        k_compute(r->k, 5000);
        k_syscall(r->k);
        k_sleep(r->k, 30 * US);
    }
}

/* Busy is what was charged: switches, interrupts and wake-ups included, idle states not. */
static void test_busy_time(void **unused)
{
    (void)unused;
    for (unsigned q = 0; q < SIM_N_ELEMENTS(quanta); q++) {
        struct rig r;
        struct call call;
        rig_open(&r, quanta[q]);
        os_stats_clear(r.k);
        sim_time start = sim_now(r.sim);
        vector_for(&r, 3, handler_note);
        k_thread_new(r.k, "busy", 3, busy_body, &r);
        call_at(&r, &call, start + 6 * US, raise_vector);
        run(&r);
        sim_time round = SWITCH + 5400 * CYCLE + HARD + WAKE;
        assert_int_equal(os_busy_ps(r.k, 3), 10 * round + SWITCH + HARD + 200 * CYCLE);
        assert_int_equal(os_busy_ps(r.k, 0), 0);
        sim_run(r.sim, sim_now(r.sim) + 77 * US, NULL);
        assert_int_equal(os_cpu_stats(r.k, 3)->busy_ps, 10 * round + SWITCH + HARD + 200 * CYCLE);
        os_stats_clear(r.k);
        sim_run(r.sim, sim_now(r.sim) + 5 * US, NULL);
        assert_int_equal(os_busy_ps(r.k, 3), 0);
        rig_close(&r);
    }
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void test_parameters_are_read(void **unused)
{
    struct sim_error_list errors = { 0 };
    struct world_fixture w;
    (void)unused;
    fixture_open(&w,
                 "hosts = { server = { os = { syscall_cycles = 123; c6_exit_ns = 77000; }; }; };");
    assert_int_equal(host_os_params(w.host)->costs.syscall_cycles, 123);
    assert_int_equal(host_os_params(w.host)->c6_exit_ps, 77 * US);
    assert_int_equal(host_os_params(w.host)->costs.context_switch_cycles, 2500);
    fixture_close(&w);
    struct config *config =
        fixture_config("hosts = { server = { os = { syscall_cycles = 99; }; }; };", &errors);
    struct world *world = world_new(config, 1, &errors);
    assert_int_equal(errors.n_messages, 1);
    assert_non_null(strstr(errors.message[0], "hosts.server.os.syscall_cycles"));
    sim_error_release(&errors);
    world_free(world);
    config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compute),
        cmocka_unit_test(test_wake_up),
        cmocka_unit_test(test_wait_times_out),
        cmocka_unit_test(test_interrupt_of_an_idle_cpu),
        cmocka_unit_test(test_interrupts_of_a_computation),
        OS_TEST(test_interrupt_of_a_device, 20 * NS),
        OS_TEST(test_vectors_run_out_and_come_back, 0),
        cmocka_unit_test(test_napi),
        cmocka_unit_test(test_budget_of_packets),
        OS_TEST(test_soft_interrupts_kept_out, 20 * NS),
        cmocka_unit_test(test_ksoftirqd_shares),
        cmocka_unit_test(test_soft_interrupts_that_do_not_yield),
        cmocka_unit_test(test_wakeup_preempts),
        cmocka_unit_test(test_return_from_an_interrupt),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_work_that_sleeps),
        OS_TEST(test_yield_takes_turns, 20 * NS),
        OS_TEST(test_threads_share, 20 * NS),
        cmocka_unit_test(test_migration),
        cmocka_unit_test(test_floating_threads),
        cmocka_unit_test(test_floating_thread_moved),
        OS_TEST(test_wake_all_once, 20 * NS),
        OS_TEST(test_moving_a_ready_thread, 20 * NS),
        OS_TEST(test_moving_at_any_time, 20 * NS),
        OS_TEST(test_moved_threads_share, 20 * NS),
        OS_TEST(test_wake_up_before_the_switch, 1 * US),
        OS_TEST(test_wake_up_before_sleep, 1 * US),
        cmocka_unit_test(test_quantum_changes_nothing),
        cmocka_unit_test(test_timers_in_order),
        cmocka_unit_test(test_timer_time),
        cmocka_unit_test(test_timer_released_elsewhere),
        cmocka_unit_test(test_timeout_overtaken),
        cmocka_unit_test(test_idle_states),
        cmocka_unit_test(test_no_wake_up_is_lost),
        cmocka_unit_test(test_busy_time),
        cmocka_unit_test(test_parameters_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
