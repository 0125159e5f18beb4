/*
 * Media of the NVMe controller that are made of dies: unloaded latency by the formula, rates by the
 * bound of channels and dies, refresh, repeated reads.
 */
#include "tests/models/nvme/nvme_media_rig.h"

/* ---- 3D XPoint ------------------------------------------------------------------------------- */

/* 16 codewords of 256 bytes on 7 channels: three on the fullest, 0.72 us each on its bus. */
static void test_xpoint_latency(void **state)
{
    const char *const settings[] = {
        "media", "xpoint",     "channels", "7", "read_latency_ns", "1840", "write_latency_ns",
        "840",   "refresh_ns", "0",        NULL
    };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    expect_page_ps(&r, false, 8, (1840 + 200 + 3 * 720) * NS);
    expect_page_ps(&r, true, 8, (840 + 3 * 720) * NS);
    close_rig(&r);
}

/* Reads are bound by the buses, writes by the dies. */
static void test_xpoint_rates(void **state)
{
    const char *const settings[] = {
        "media", "xpoint", "channels", "7", "refresh_ns", "0", "command_interval_ns", "100", NULL
    };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    expect_near("reads", rate(&r, false, 100), 7 * 0.4 / 1.125, 0.02);
    expect_near("writes", rate(&r, true, 100), 28 * 256 / 3500.0, 0.02);
    close_rig(&r);
}

/* A read waits for one write that a die has begun, not for those that wait behind it. */
static void test_xpoint_reads_first(void **state)
{
    const char *const settings[] = { "media",      "xpoint", "channels",
                                     "1",          "dies",   "1",
                                     "refresh_ns", "0",      "command_interval_ns",
                                     "0",          NULL };
    struct rig r;
    struct nvme_cqe cqe;
    (void)state;
    open_rig(&r, settings);
    const uint64_t buffer = alloc(&r, 4096);
    push(&r, &r.io, io_at(true, 0, 8, buffer, 0)); /* 16 codewords of 3.5 us on the die */
    ring(&r, &r.io);
    run_for(&r, 20 * SIM_PS_PER_US); /* the first ones are being written */
    push(&r, &r.io, io_at(false, 64, 1, buffer, 0));
    ring(&r, &r.io);
    run_for(&r, 30 * SIM_PS_PER_US);
    assert_true(poll(&r, &r.io, &cqe));
    assert_int_equal(cqe.cid, 1); /* the read, while its writes are not in the die yet */
    run_for(&r, 100 * SIM_PS_PER_US);
    assert_true(poll(&r, &r.io, &cqe));
    assert_int_equal(cqe.cid, 0);
    close_rig(&r);
}

/* ---- What the drive does by itself, and reading again ---------------------------------------- */

/* A die's turn of 40 us in each 100 us: reads at all times of the interval wait for up to 40 us. */
static void test_refresh(void **state)
{
    const char *const settings[] = { "media",
                                     "xpoint",
                                     "channels",
                                     "1",
                                     "dies",
                                     "1",
                                     "refresh_ns",
                                     "40000",
                                     "refresh_interval_us",
                                     "100",
                                     "read_latency_ns",
                                     "0",
                                     NULL };
    struct rig r;
    sim_time least_ps = UINT64_MAX, most_ps = 0;
    unsigned n_waited = 0;
    (void)state;
    open_rig(&r, settings);
    const uint64_t at = alloc(&r, 4096);
    for (unsigned i = 0; i < 100; i++) {
        const sim_time ps = took_ps(&r, io_at(false, 0, 1, at, 0));
        least_ps = SIM_MIN(least_ps, ps);
        most_ps = SIM_MAX(most_ps, ps);
        n_waited += ps > least_ps + 100 * NS;
        run_for(&r, (i * 7) % 100 * SIM_PS_PER_US);
    }
    assert_true(most_ps - least_ps > 30 * SIM_PS_PER_US);
    assert_true(most_ps - least_ps < 41 * SIM_PS_PER_US);
    assert_true(n_waited > 25 && n_waited < 55);
    close_rig(&r);
}

static void test_retry(void **state)
{
    const char *const settings[] = { "media",    "xpoint", "refresh_ns",  "0",
                                     "channels", "7",      "retry_ratio", "1",
                                     "retry_ns", "10000",  NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    expect_page_ps(&r, false, 8, (4200 + 200 + 3 * 720 + 10000) * NS);
    expect_page_ps(&r, true, 8, (3000 + 3 * 720) * NS);
    assert_int_equal(nvme_stats(r.nvme)->media_retries, 1);
    close_rig(&r);
}

/* ---- DRAM ------------------------------------------------------------------------------------ */

static void test_dram(void **state)
{
    const char *const settings[] = { "media",
                                     "dram",
                                     "channels",
                                     "1",
                                     "dies",
                                     "8",
                                     "channel_gbyte_s",
                                     "12.8",
                                     "ecc_ratio",
                                     "0",
                                     "die_read_ns",
                                     "27.5",
                                     "read_latency_ns",
                                     "2150",
                                     "write_latency_ns",
                                     "1650",
                                     "refresh_ns",
                                     "0",
                                     "command_interval_ns",
                                     "0",
                                     NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    expect_page_ps(&r, false, 8, 2150 * NS + 27500 + 320 * NS);
    expect_page_ps(&r, true, 8, 1650 * NS + 27500 + 320 * NS);
    assert_true(rate(&r, false, 100) > 3.2); /* the link's */
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xpoint_latency),
        cmocka_unit_test(test_xpoint_rates),
        cmocka_unit_test(test_xpoint_reads_first),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_dram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
