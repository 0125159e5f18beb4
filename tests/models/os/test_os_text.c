/*
 * Fetches of instructions: what a pass through a piece of software costs beyond its cycles, counted
 * by hand; without an instruction cache nothing.
 */
#include "tests/support/world_fixture.h"

#include "models/os/os_text.h"

#define SERVER \
    "hosts = { server = { ports = ( ); cpu = { sockets = 1; cores_per_socket = 2; clock_ghz = 2; }; "
#define PAIR(L1I)                                                                     \
    SERVER "coherence = { protocol = \"front_side_bus\"; }; cache = { llc_size = 0; " \
           "ddio = false; inclusive = false; l2_cores = 2; l2_size = 4194304; "       \
           "l2_ways = 16; " L1I " }; }; };"
#define CYCLE_PS UINT64_C(500)
#define L2_PS    (12 * CYCLE_PS) /* cpu.l2_hit_cycles */
#define CYCLES   400u

struct rig {
    struct world_fixture w;
    struct os_params params;
    struct kernel *k;
    void (*body)(struct rig *r);
    unsigned n_done;
};

static void open_rig(struct rig *r, const char *world)
{
    *r = (struct rig){ .n_done = 0 };
    fixture_open(&r->w, world);
    r->params = *host_os_params(r->w.host);
}

static void thread(void *arg)
{
    struct rig *r = arg;
    r->body(r);
    r->n_done++;
}

static void run(struct rig *r, void (*body)(struct rig *r))
{
    r->body = body;
    r->k = os_new(r->w.host, &r->params);
    k_thread_new(r->k, "test", 0, thread, r);
    sim_run(r->w.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(r->n_done, 1);
    os_free(r->k);
    fixture_close(&r->w);
}

/* The time of a pass, and what it adds to the accesses and misses of the pieces of its kind. */
struct pass {
    sim_time ps;
    uint64_t accesses, misses;
};
static struct pass pass(struct rig *r, enum k_text piece, uint64_t cycles)
{
    const unsigned account = k_text_pieces[piece].user ? K_ACCOUNT_USER_TEXT : K_ACCOUNT_TEXT;
    const struct numa_private_count before = os_account(r->k, account);
    const sim_time begin_ps = k_now_ps(r->k);
    k_run(r->k, piece, cycles);
    const struct numa_private_count after = os_account(r->k, account);
    return (struct pass){ k_now_ps(r->k) - begin_ps, after.l2_accesses - before.l2_accesses,
                          after.l2_misses - before.l2_misses };
}

static void expect(struct pass got, sim_time ps, unsigned accesses, unsigned misses)
{
    assert_int_equal(got.ps, ps);
    assert_int_equal(got.accesses, accesses);
    assert_int_equal(got.misses, misses);
}

/* ---- None ------------------------------------------------------------------------------------ */

static void without_body(struct rig *r)
{
    for (enum k_text piece = 0; piece < N_K_TEXTS; piece++) {
        assert_int_equal(os_text_lines(r->k, piece), 0);
        expect(pass(r, piece, CYCLES), CYCLES * CYCLE_PS, 0, 0);
        expect(pass(r, piece, 0), 0, 0, 0);
    }
}

static void test_off_means_nothing(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, SERVER "}; };");
    run(&r, without_body);
}

/* ---- Large enough for all -------------------------------------------------------------------- */

/* Lines of the piece: functions + bytes / 128. */
#define IRQ_LINES     (7u + 1530 / 128)
#define SYSCALL_LINES (1u + 200 / 128)
#define SEND_LINES    (5u + 1480 / 128)

/* Runs of two: the first line of each is waited for, the second is under way while that is
 * executed. */
static sim_time stall_ps(unsigned lines, uint64_t cycles)
{
    const sim_time line_ps = cycles * CYCLE_PS / lines;
    const sim_time second_ps = L2_PS > line_ps ? L2_PS - line_ps : 0;
    return (lines + 1) / 2 * L2_PS + lines / 2 * second_ps;
}

static void warm_body(struct rig *r)
{
    assert_int_equal(os_text_lines(r->k, K_TEXT_IRQ), IRQ_LINES);
    assert_int_equal(os_text_lines(r->k, K_TEXT_MX_SEND), SEND_LINES);
    const struct pass cold = pass(r, K_TEXT_IRQ, CYCLES);
    assert_int_equal(cold.accesses, IRQ_LINES);
    assert_int_equal(cold.misses, IRQ_LINES);
    assert_true(cold.ps > CYCLES * CYCLE_PS + stall_ps(IRQ_LINES, CYCLES));
    expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS, 0, 0);
    expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS, 0, 0);
    /* What another piece brings does not take it away. */
    assert_int_equal(pass(r, K_TEXT_MX_SEND, CYCLES).misses, SEND_LINES);
    expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS, 0, 0);
    /* The other core of the die has all of it in its L2. */
    k_thread_set_cpu(k_thread_self(r->k), 1);
    expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS + stall_ps(IRQ_LINES, CYCLES), IRQ_LINES,
           0);
    /* Nothing is computed while the next line comes; and a line takes longer than that. */
    expect(pass(r, K_TEXT_MX_SEND, 0), stall_ps(SEND_LINES, 0), SEND_LINES, 0);
    assert_int_equal(stall_ps(SEND_LINES, 0), SEND_LINES * L2_PS);
    expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS, 0, 0);
}

static void test_a_pass_fetches_what_is_not_there(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, PAIR("l1i_size = 32768;"));
    run(&r, warm_body);
}

/* ---- Tiny ------------------------------------------------------------------------------------ */

/* The L1I has one line: of each piece the last, which the next pass does not begin with. */
static void tiny_body(struct rig *r)
{
    pass(r, K_TEXT_IRQ, CYCLES);
    for (unsigned i = 0; i < 3; i++)
        expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS + stall_ps(IRQ_LINES, CYCLES),
               IRQ_LINES, 0);
}

/* Pieces of one line. */
static void single_body(struct rig *r)
{
    assert_int_equal(os_text_lines(r->k, K_TEXT_SYSCALL), SYSCALL_LINES / 2);
    pass(r, K_TEXT_SYSCALL, CYCLES);
    expect(pass(r, K_TEXT_SYSCALL, CYCLES), CYCLES * CYCLE_PS, 0, 0);
    pass(r, K_TEXT_IRQ, CYCLES);
    expect(pass(r, K_TEXT_SYSCALL, CYCLES), CYCLES * CYCLE_PS + L2_PS, 1, 0);
    expect(pass(r, K_TEXT_SYSCALL, CYCLES), CYCLES * CYCLE_PS, 0, 0);
}

static void test_a_cache_of_one_line(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, PAIR("l1i_size = 64; l1i_ways = 1;"));
    run(&r, tiny_body);
    open_rig(&r, PAIR("l1i_size = 64; l1i_ways = 1;"));
    r.params.text_pct = 50;
    run(&r, single_body);
}

/* Runs of one line: nothing comes ahead. */
static void apart_body(struct rig *r)
{
    pass(r, K_TEXT_IRQ, CYCLES);
    expect(pass(r, K_TEXT_IRQ, CYCLES), CYCLES * CYCLE_PS + IRQ_LINES * L2_PS, IRQ_LINES, 0);
}

static void test_runs(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, PAIR("l1i_size = 64; l1i_ways = 1;"));
    r.params.text_run_lines = 1;
    run(&r, apart_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off_means_nothing),
        cmocka_unit_test(test_a_pass_fetches_what_is_not_there),
        cmocka_unit_test(test_a_cache_of_one_line),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
