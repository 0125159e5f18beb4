/*
 * Cache accesses by account: what a thread touches counts under the account that it has set,
 * whoever shares the CPU with it, and what interrupts touch under 0.
 */
#include "tests/support/world_fixture.h"

#include "models/os/os.h"

#define LINES  64u /* fewer than an L1 has */
#define KERNEL 3u
#define USER   (K_USER + 1u)
#define WORLD \
    "hosts = { server = { ports = ( ); cpu = { sockets = 1; cores_per_socket = 2; }; }; };"
#define SPACING UINT64_C(100000000) /* of the timer */

struct rig {
    struct world_fixture w;
    struct kernel *k;
    struct kaddr fresh; /* nobody has touched what follows */
    unsigned n_interrupts, n_done;
    struct k_timer timer;
};

static struct kaddr take(struct rig *r)
{
    struct kaddr at = r->fresh;
    r->fresh = kaddr_add(at, LINES * K_LINE_BYTES);
    return at;
}

static void touch_timer(struct k_timer *timer)
{
    struct rig *r = K_CONTAINER(timer, struct rig, timer);
    k_touch(r->k, take(r), LINES * K_LINE_BYTES);
    if (++r->n_interrupts < 5)
        k_timer_set(timer, k_now_ps(r->k) + SPACING);
}

/* Touches lines under one account, and once more: the L1 has them then. */
static void thread_body(struct rig *r, unsigned account)
{
    assert_int_equal(k_account(r->k, account), 0);
    for (unsigned i = 0; i < 10; i++) {
        const struct kaddr at = take(r);
        k_touch(r->k, at, LINES * K_LINE_BYTES);
        k_touch(r->k, at, LINES * K_LINE_BYTES);
        k_compute(r->k, 100000);
        k_yield(r->k);
    }
    assert_int_equal(k_account(r->k, 0), account);
    r->n_done++;
}
static void kernel_body(void *arg)
{
    thread_body(arg, KERNEL);
}
static void user_body(void *arg)
{
    struct rig *r = arg;
    k_timer_set(&r->timer, k_now_ps(r->k) + SPACING);
    thread_body(r, USER);
}

static void expect(struct rig *r, unsigned account, uint64_t misses)
{
    const struct numa_private_count n = os_account(r->k, account);
    assert_int_equal(n.l2_misses, misses);
    assert_int_equal(n.l2_accesses, misses);
    assert_int_equal(n.llc_misses, misses);
}

static void test_who_touches_counts(void **state)
{
    struct rig r = { .n_done = 0 };
    (void)state;
    fixture_open(&r.w, WORLD);
    struct os_params params = *host_os_params(r.w.host);
    r.k = os_new(r.w.host, &params);
    r.fresh = k_alloc(r.k, 0, 64 * LINES * K_LINE_BYTES, K_PAGE_BYTES);
    k_timer_init(&r.timer, r.k, touch_timer);
    k_thread_new(r.k, "kernel", 0, kernel_body, &r);
    k_thread_new(r.k, "user", 0, user_body, &r);
    sim_run(r.w.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(r.n_done, 2);
    assert_int_equal(r.n_interrupts, 5);
    expect(&r, KERNEL, 10 * LINES);
    expect(&r, USER, 10 * LINES);
    expect(&r, 0, 5 * LINES);
    expect(&r, K_USER, 0);
    os_stats_clear(r.k);
    expect(&r, KERNEL, 0);
    expect(&r, 0, 0);
    k_timer_release(&r.timer);
    os_free(r.k);
    fixture_close(&r.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_touches_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
