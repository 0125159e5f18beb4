/*
 * Arbitration of submission queues and coalescing of interrupts. Sections are those of NVM Express
 * 1.3.
 */
#include "tests/models/nvme/nvme_rig.h"

#define QUEUES 8u

/* Submission queues 2 .. of these priorities, all with completion queue 1; each with n reads. */
static void fill_queues(struct rig *r, const unsigned *priority, unsigned n_queues, unsigned n)
{
    struct queue q[QUEUES];
    const uint64_t at = alloc(r, 4096);
    assert_true(n_queues <= QUEUES && n < ENTRIES);
    for (unsigned i = 0; i < n_queues; i++) {
        q[i] = queue_at((uint16_t)(2 + i), alloc(r, 4096), 0);
        struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_SQ,
                                .prp1 = q[i].sq,
                                .cdw10 = (2 + i) | (ENTRIES - 1) << 16,
                                .cdw11 = NVME_QUEUE_CONTIGUOUS | 1 << 16 |
                                         priority[i] << NVME_SQ_PRIORITY_SHIFT };
        assert_int_equal(command(r, &r->admin, sqe, NULL), NVME_SC_SUCCESS);
        for (unsigned c = 0; c < n; c++)
            push(r, &q[i], io_at(false, c, 1, at, 0));
    }
    for (unsigned i = 0; i < n_queues; i++)
        ring(r, &q[i]);
}

/* The queues of the next n completions, one after the other. */
static void order(struct rig *r, unsigned *sq, unsigned n)
{
    struct nvme_cqe cqe;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned waits = 0; !poll(r, &r->io, &cqe); waits++) {
            assert_true(waits < 1000);
            run_for(r, SIM_PS_PER_US);
        }
        assert_int_equal(cqe.status >> 1, NVME_SC_SUCCESS);
        free_entries(r, &r->io);
        sq[i] = cqe.sq_id;
    }
}

static void again(struct rig *r)
{
    write_at(r, BAR + NVME_REG_CC, 4, 0);
    run_for(r, SIM_PS_PER_MS);
    enable(r);
    r->io = queue_at(1, alloc(r, 4096), alloc(r, 4096));
    assert_int_equal(create(r, &r->io, 1), NVME_SC_SUCCESS);
}

/* How many of the longest run of one queue there are, and of each queue. */
static unsigned longest_run(const unsigned *sq, unsigned n, unsigned *of)
{
    unsigned longest = 0, run = 0;
    memset(of, 0, 16 * sizeof(*of));
    for (unsigned i = 0; i < n; i++) {
        run = i > 0 && sq[i] == sq[i - 1] ? run + 1 : 1;
        longest = SIM_MAX(longest, run);
        of[sq[i]]++;
    }
    return longest;
}

/* 3.1.1 (AMS), 4.13.1, 5.21.1.1: queues in turn, as many commands in a turn as the burst says, when
 * there is less room than commands. */
static void test_round_robin(void **state)
{
    const char *const settings[] = { "commands_max", "4", NULL };
    static const unsigned priority[3] = { 0, 3, 1 }; /* means nothing here */
    struct rig r;
    unsigned sq[120], of[16];
    (void)state;
    open_rig(&r, settings);
    assert_true((read_at(&r, BAR + NVME_REG_CAP, 8) & NVME_CAP_AMS_WRR) != 0);
    for (unsigned burst = 0; burst < 3; burst++) {
        assert_int_equal(set_feature(&r, NVME_FEATURE_ARBITRATION | NVME_FEATURE_SAVE, burst, 0),
                         NVME_SC_SUCCESS);
        again(&r);
        fill_queues(&r, priority, 3, 40);
        order(&r, sq, 60);
        unsigned longest = longest_run(sq, 60, of);
        for (unsigned q = 2; q < 5; q++)
            assert_in_range(of[q], 16, 24); /* a burst of 4 at either end */
        assert_true(longest <= 2u << burst);
        /* Nobody waits for more than a turn of each other queue, and what is under way. */
        assert_in_range(nvme_stats(r.nvme)->queue_wait_max_ps, 1,
                        (3u * 4 + 4) * 1700 * SIM_PS_PER_NS);
        order(&r, sq, 60);
    }
    close_rig(&r);
}

/* 5.21.1.1: no more than the burst at once; without limit, as many as the controller reads at
 * once. */
static void test_burst(void **state)
{
    static const struct {
        unsigned burst, fetches;
    } of[] = { { 0, 32 }, { 1, 16 }, { 2, 8 }, { NVME_ARBITRATION_NO_LIMIT, 8 } };
    static const unsigned priority[1] = { 0 };
    struct rig r;
    unsigned sq[32];
    (void)state;
    open_rig(&r, NULL);
    for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        assert_int_equal(
            set_feature(&r, NVME_FEATURE_ARBITRATION | NVME_FEATURE_SAVE, of[i].burst, 0),
            NVME_SC_SUCCESS);
        again(&r);
        const uint64_t before = nvme_stats(r.nvme)->sqe_fetches;
        fill_queues(&r, priority, 1, 32);
        order(&r, sq, 32);
        assert_int_equal(nvme_stats(r.nvme)->sqe_fetches - before, of[i].fetches + 1);
    }
    close_rig(&r);
}

/* 4.13.2, 5.4 (priority): urgent queues before all others; of these, commands by weight; low ones
 * are not starved. */
static void test_weighted_round_robin(void **state)
{
    const char *const settings[] = { "commands_max", "4", NULL };
    static const unsigned priority[5] = { NVME_SQ_LOW, NVME_SQ_MEDIUM, NVME_SQ_HIGH, NVME_SQ_URGENT,
                                          NVME_SQ_HIGH };
    struct rig r;
    unsigned sq[110], of[16];
    (void)state;
    open_rig(&r, settings);
    /* Weights 8, 4, 1; bursts of 1. */
    assert_int_equal(set_feature(&r, NVME_FEATURE_ARBITRATION | NVME_FEATURE_SAVE, 0x07030000, 0),
                     NVME_SC_SUCCESS);
    r.cc = NVME_CC_AMS_WRR << NVME_CC_AMS_SHIFT;
    again(&r);
    fill_queues(&r, priority, 5, 40);
    order(&r, sq, 44);
    longest_run(sq, 44, of);
    assert_int_equal(of[5], 40); /* the urgent queue; what was under way before it was rung */
    order(&r, sq, 78);
    longest_run(sq, 78, of);
    assert_in_range(of[4] + of[6], 45, 51); /* 48 of 6 rounds of 13 */
    assert_in_range(of[4], 22, 26);
    assert_in_range(of[3], 22, 26);
    assert_in_range(of[2], 5, 7);
    assert_int_equal(nvme_stats(r.nvme)->sqes_of_class[1], 40);
    assert_true(nvme_stats(r.nvme)->sqes_of_class[2] > nvme_stats(r.nvme)->sqes_of_class[4]);
    /* Of which the low ones had to wait for the whole urgent queue. */
    assert_true(nvme_stats(r.nvme)->queue_wait_max_ps > 36 * 1700 * SIM_PS_PER_NS);
    order(&r, sq, 200 - 44 - 78);
    close_rig(&r);
}

/* Admin commands do not wait for room that I/O commands take: 10 ms each here. */
static void test_admin_beside_full_controller(void **state)
{
    const char *const settings[] = { "commands_max", "2", "read_latency_ns", "10000000", NULL };
    struct rig r;
    uint8_t page[4096];
    (void)state;
    open_rig(&r, settings);
    for (unsigned i = 0; i < 8; i++)
        push(&r, &r.io, io_at(false, i, 1, alloc(&r, 4096), 0));
    ring(&r, &r.io);
    run_for(&r, 20 * SIM_PS_PER_US);
    const sim_time start_ps = sim_now(r.sim);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    assert_true(sim_now(r.sim) - start_ps < SIM_PS_PER_MS);
    close_rig(&r);
}

/* ---- Interrupts (5.21.1.8, 5.21.1.9, 7.5) ---------------------------------------------------- */

static void reads(struct rig *r, unsigned n)
{
    uint64_t at = alloc(r, 4096);
    for (unsigned i = 0; i < n; i++)
        push(r, &r->io, io_at(false, i, 1, at, 0));
    ring(r, &r->io);
}

static void take_all(struct rig *r)
{
    struct nvme_cqe cqe;
    while (poll(r, &r->io, &cqe))
        continue;
    free_entries(r, &r->io);
    run_for(r, SIM_PS_PER_US);
}

static void test_coalescing(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    /* Four completions, or 300 us. */
    assert_int_equal(set_feature(&r, NVME_FEATURE_COALESCING, 3 << 8 | 3, 0), NVME_SC_SUCCESS);
    r.n_irqs = 0;
    reads(&r, 10);
    run_for(&r, 100 * SIM_PS_PER_US);
    assert_int_equal(r.n_irqs, 2);
    run_for(&r, 300 * SIM_PS_PER_US); /* the two that are left */
    assert_int_equal(r.n_irqs, 3);
    assert_int_equal(r.last_vector, 1);
    assert_int_equal(nvme_stats(r.nvme)->coalesced, 10 - 2);
    take_all(&r);
    /* The host looked by itself: no message. */
    reads(&r, 2);
    run_for(&r, 100 * SIM_PS_PER_US);
    take_all(&r);
    run_for(&r, 400 * SIM_PS_PER_US);
    assert_int_equal(r.n_irqs, 3);
    /* Completions of the admin queue are not delayed: vector 0. */
    r.n_irqs = 0;
    assert_int_equal(get_feature(&r, NVME_FEATURE_COALESCING, 0, 0, 0), 0x0303);
    assert_int_equal(r.n_irqs, 1);
    /* An exempt vector. */
    assert_int_equal(set_feature(&r, NVME_FEATURE_VECTOR, NVME_VECTOR_NOT_COALESCED | 1, 0),
                     NVME_SC_SUCCESS);
    r.n_irqs = 0;
    reads(&r, 3);
    run_for(&r, 50 * SIM_PS_PER_US);
    assert_int_equal(r.n_irqs, 3);
    take_all(&r);
    /* A reset while a message waits: it never comes. */
    assert_int_equal(set_feature(&r, NVME_FEATURE_VECTOR, 1, 0), NVME_SC_SUCCESS);
    r.n_irqs = 0;
    reads(&r, 3);
    run_for(&r, 50 * SIM_PS_PER_US);
    write_at(&r, BAR + NVME_REG_CC, 4, 0);
    run_for(&r, SIM_PS_PER_MS);
    assert_int_equal(r.n_irqs, 0);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_weighted_round_robin),
        cmocka_unit_test(test_admin_beside_full_controller),
        cmocka_unit_test(test_coalescing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
