/*
 * The NVMe controller with TLC flash: unloaded latency by the formula, the write buffer and the
 * rate of dies behind it, reads beside programs, deallocation, wear, and that collection loses
 * nothing.
 */
#include "models/base/payload.h"
#include "tests/models/nvme/nvme_media_rig.h"

#define FIRMWARE_PS (20000 * NS)
#define WIRE_PS     (4096 * NS) /* of a page, at 1 GB/s */
#define PATH_PS     (2048 * NS) /* at 2 GB/s */
#define SENSE_PS    (45000 * NS)
#define STEP_PS     (12000 * NS)
#define BUFFERED_PS (10000 * NS)

/* Two channels of two dies; units of 32 KiB. */
#define FLASH                                                                                      \
    "media", "nand", "channels", "2", "dies", "2", "channel_gbyte_s", "1", "ecc_ratio", "0",       \
        "read_gbyte_s", "2", "write_gbyte_s", "2", "read_latency_ns", "20000", "write_latency_ns", \
        "10000", "die_read_ns", "45000", "page_kind_step_ns", "12000", "die_write_ns", "660000",   \
        "block_pages", "12", "write_buffer_bytes", "262144", "command_interval_ns", "0"

/* A drive that was written once: page n is in unit n / 8, on die n / 8 % 4, a page of kind n / 32 %
 * 3. */
static void test_read_latency(void **state)
{
    const char *const settings[] = { FLASH, "preconditioned", "full", NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    for (unsigned kind = 0; kind < 3; kind++)
        expect_page_ps(&r, false, 32 * kind + 9,
                       FIRMWARE_PS + SENSE_PS + kind * STEP_PS + WIRE_PS + PATH_PS);
    close_rig(&r);
}

/* Of what was never written, is in the buffer, was deallocated. */
static void test_reads_without_flash(void **state)
{
    const char *const settings[] = { FLASH, NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    expect_page_ps(&r, false, 3, FIRMWARE_PS + PATH_PS);
    expect_page_ps(&r, true, 3, PATH_PS + BUFFERED_PS);
    expect_page_ps(&r, false, 3, FIRMWARE_PS + PATH_PS);
    for (unsigned i = 4; i < 11; i++) /* the unit is full; and programmed, when two ms are over */
        took_ps(&r, io_at(true, i * 8, 8, alloc(&r, 4096), 0));
    expect_page_ps(&r, false, 3, FIRMWARE_PS + SENSE_PS + WIRE_PS + PATH_PS);
    struct nvme_sqe zeroes = io_at(false, 3 * 8, 8, 0, 0);
    zeroes.opcode = NVME_WRITE_ZEROES;
    assert_int_equal(command(&r, &r.io, zeroes, NULL), NVME_SC_SUCCESS);
    expect_page_ps(&r, false, 3, FIRMWARE_PS + PATH_PS);
    close_rig(&r);
}

/* What was written before the run lies in flash, and was not written by it. */
static void test_held(void **state)
{
    static const char *const settings[][sizeof((const char *[]){ FLASH }) / sizeof(char *) + 3] = {
        { FLASH, NULL },
        { FLASH, "preconditioned", "full", NULL },
    };
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rig r;
        open_rig(&r, settings[i]);
        nvme_hold(r.nvme, 1, 0, 64 * 4096, payload_mark(1, 0));
        expect_page_ps(&r, false, 3, FIRMWARE_PS + SENSE_PS + WIRE_PS + PATH_PS);
        assert_int_equal(nvme_stats(r.nvme)->media_programmed_bytes, 0);
        assert_int_equal(nvme_stats(r.nvme)->write_bytes, 0);
        close_rig(&r);
    }
}

/* 128 KiB are four units: sensed side by side, sent on two channels, through one path. */
static void test_long_read(void **state)
{
    const char *const settings[] = { FLASH, "preconditioned", "full", NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    const uint64_t buffer = alloc(&r, 131072), list = alloc(&r, 4096);
    for (unsigned i = 1; i < 32; i++)
        physmem_write64(r.memory, (struct hpa){ list + (i - 1) * 8 }, buffer + i * 4096);
    const sim_time ps = took_ps(&r, io_at(false, 0, 256, buffer, list));
    const sim_time media_ps = FIRMWARE_PS + SENSE_PS + 16 * WIRE_PS + 2 * PATH_PS;
    assert_true(ps > media_ps && ps < media_ps + 5 * SIM_PS_PER_US);
    close_rig(&r);
}

/* Beyond the buffer, dies have to program: each 32 KiB in 660 us and what sending them takes. */
static void test_write_rate(void **state)
{
    const char *const settings[] = { FLASH, NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    expect_near("writes", rate(&r, true, 100), 4 * 32768 / (660000 + 32768.0), 0.03);
    assert_true(nvme_stats(r.nvme)->media_buffer_waits > 2000);
    assert_true(nvme_stats(r.nvme)->media_programmed_bytes >= 99 * 131072);
    assert_int_equal(nvme_stats(r.nvme)->media_moved_bytes, 0);
    close_rig(&r);
}

/* A read of a die that programs waits for the end, or for the program to be suspended. */
static void read_beside(const char *suspend_us, sim_time least_ps, sim_time most_ps)
{
    const char *const settings[] = {
        FLASH, "preconditioned", "full", "suspend_us", suspend_us, NULL
    };
    struct rig r;
    struct nvme_cqe cqe;
    open_rig(&r, settings);
    const uint64_t buffer = alloc(&r, 4096);
    for (unsigned i = 0; i < 8; i++) /* a unit, on the first die */
        push(&r, &r.io, io_at(true, i * 8, 8, buffer, 0));
    ring(&r, &r.io);
    run_for(&r, 60 * SIM_PS_PER_US);
    for (unsigned i = 0; i < 8; i++)
        assert_true(poll(&r, &r.io, &cqe));
    free_entries(&r, &r.io);
    const sim_time ps = took_ps(&r, io_at(false, 4096, 8, buffer, 0)); /* page 512: that die, too */
    if (ps < least_ps || ps > most_ps)
        fail_msg("suspend %s: %g us", suspend_us, (double)ps * 1e-6);
    assert_int_equal(nvme_stats(r.nvme)->media_suspends, suspend_us[0] != '0');
    close_rig(&r);
}

static void test_read_beside_program(void **state)
{
    const sim_time read_ps = FIRMWARE_PS + SENSE_PS + STEP_PS + WIRE_PS + PATH_PS;
    (void)state;
    read_beside("0", read_ps + 500 * SIM_PS_PER_US, read_ps + 693 * SIM_PS_PER_US);
    read_beside("50", read_ps + 48 * SIM_PS_PER_US, read_ps + 55 * SIM_PS_PER_US);
}

/* A small drive, written at random many times over: all pages hold what was written last, and the
 * log says what has worn. */
static void test_collection(void **state)
{
    const char *const settings[] = { FLASH,  "capacity_bytes",   "2097152", "flash_page_bytes",
                                     "4096", "planes",           "1",       "die_write_ns",
                                     "1000", "die_erase_us",     "1",       "gc_free_blocks",
                                     "2",    "endurance_cycles", "100",     NULL };
    static uint64_t holds[512];
    struct rig r;
    uint8_t log[NVME_LOG_HEALTH_BYTES];
    (void)state;
    open_rig(&r, settings);
    const uint64_t at = alloc(&r, 4096);
    for (uint64_t i = 0; i < 4000; i++) {
        const uint64_t page = i < 512 ? i : (i * i * 7 + i / 3) % 512;
        holds[page] = i;
        physmem_write64(r.memory, (struct hpa){ at }, i);
        assert_int_equal(command(&r, &r.io, io_at(true, page * 8, 8, at, 0), NULL), 0);
    }
    for (uint64_t page = 0; page < 512; page++) {
        assert_int_equal(command(&r, &r.io, io_at(false, page * 8, 8, at, 0), NULL), 0);
        assert_int_equal(physmem_read64(r.memory, (struct hpa){ at }), holds[page]);
    }
    const struct nvme_stats *stats = nvme_stats(r.nvme);
    assert_true(stats->media_moved_bytes > 1 << 20);
    assert_true(stats->media_programmed_bytes + 4 * 4096 >=
                stats->write_bytes + stats->media_moved_bytes);
    assert_true(stats->media_erases > 300);
    assert_int_equal(get_log(&r, NVME_LOG_HEALTH, 0, log, sizeof(log)), NVME_SC_SUCCESS);
    assert_true(log[NVME_HEALTH_USED] >= 3 && log[NVME_HEALTH_USED] < 30);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_latency), cmocka_unit_test(test_reads_without_flash),
        cmocka_unit_test(test_held),         cmocka_unit_test(test_long_read),
        cmocka_unit_test(test_write_rate),   cmocka_unit_test(test_read_beside_program),
        cmocka_unit_test(test_collection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
