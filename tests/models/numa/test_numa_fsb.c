/*
 * Front-side buses, the hub between them and its FB-DIMM, on the Blackford server: unloaded
 * latencies by the formulas, what bounds the rates, the snoop filter's size, sectors, prefetches,
 * non-temporal stores, devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/numa/dram/fbdimm.h"
#include "tests/support/numa_fixture.h"

#define CLOCK       3750 /* of the buses, ps */
#define ARBITRATION (2 * CLOCK)
#define ADDRESS     (2 * CLOCK)
#define DATA        7500
#define HUB         (4 * CLOCK)
#define BACK        (2 * CLOCK)
#define L2          7803
#define OWNER       15000 /* reads a modified line that another one asks for */
#define DRAM        (15000 + CLOCK + 15000 + 15000 + 17000 + DATA)
#define IDLE        (L2 + ARBITRATION + ADDRESS + HUB + DRAM + BACK + DATA)
#define SNOOP       (ARBITRATION + ADDRESS + 3 * CLOCK) /* of a bus by the hub */
#define IIO         (2 * CLOCK)

static struct numa_counters *counters(struct numa *n)
{
    return &n->socket[0].counters;
}

static struct hpa line_of(uint64_t line)
{
    return (struct hpa){ line * LINE_BYTES };
}

static bool holds(const struct numa *n, unsigned core, uint64_t line)
{
    return core_group_peek(n, core, line) != LINE_I;
}

/* ---- Latency --------------------------------------------------------------------------------- */

static void test_unloaded_latency(void **state)
{
    struct fixture f;
    sim_time t = 0;

    (void)state;
    fixture_blackford(&f);
    f.dram.trfc_ps = 0;
    f.cache.prefetch.streams = 0;
    struct numa *n = fixture_new(&f);
    assert_int_equal(numa_idle_load_ps(n, 0, 0), IDLE);
    for (uint64_t line = 0; line < 2000; line += 37, t += 1000000)
        assert_int_equal(numa_load(n, 1, line_of(line), t, NULL).done_ps - t, IDLE);
    /* Ownership: the answer is a deferred reply. */
    assert_int_equal(numa_store(n, 0, line_of(5000), t, NULL).done_ps - t, IDLE + ADDRESS);
    /* Modified in the other die of the socket: the hub need not ask. */
    t += 1000000;
    const struct numa_result same = numa_load(n, 1, line_of(5000), t, NULL);
    assert_int_equal(same.source, NUMA_PEER_CACHE);
    assert_int_equal(same.done_ps - t,
                     L2 + ARBITRATION + ADDRESS + 3 * CLOCK + OWNER + HUB + BACK + DATA);
    /* Modified behind the other bus. */
    numa_store(n, 0, line_of(5001), t, NULL);
    t += 1000000;
    const struct numa_result other = numa_load(n, 2, line_of(5001), t, NULL);
    assert_int_equal(other.source, NUMA_REMOTE_CACHE);
    assert_int_equal(other.done_ps - t,
                     L2 + ARBITRATION + ADDRESS + HUB + SNOOP + OWNER + DATA + BACK + DATA);
    numa_free(n);

    /* One socket: nobody to ask, no deferred reply. */
    f.cpu.sockets = 1;
    n = fixture_new(&f);
    assert_int_equal(numa_idle_load_ps(n, 0, 0), IDLE);
    assert_int_equal(numa_load(n, 1, line_of(0), 0, NULL).done_ps, IDLE);
    assert_int_equal(numa_store(n, 1, line_of(1), 1000000, NULL).done_ps, 1000000 + IDLE);
    numa_free(n);
}

/* ---- Rates ----------------------------------------------------------------------------------- */

/* Lines read by each of the cores in `us` microseconds with as many under way as there is room. */
static unsigned lines_per_us(struct numa *n, const unsigned *core, unsigned n_cores, bool store,
                             unsigned us)
{
    const unsigned depth = 64;
    static sim_time done[4][64];
    uint64_t lines[4] = { 0 }, all = 0;

    memset(done, 0, sizeof(done));
    for (sim_time t = 0; t < us * UINT64_C(1000000); t += 1000)
        for (unsigned c = 0; c < n_cores; c++)
            for (unsigned i = 0; i < depth; i++)
                if (done[c][i] <= t) {
                    const struct hpa at = line_of((c + 1) * 1000000 + lines[c]++);
                    done[c][i] = (store ? numa_store : numa_load)(n, core[c], at, t, NULL).done_ps;
                    all++;
                }
    return (unsigned)((all - n_cores * depth) / us);
}

static void test_address_phases_bound_reads(void **state)
{
    const unsigned cores[] = { 0, 2 };
    struct fixture f;

    (void)state;
    fixture_blackford(&f);
    f.cache.prefetch.streams = 0;
    f.interconnect.bus_arbitration_ps = 0;
    /* One socket loads: its requests on its bus, as many snoops on the other. */
    struct numa *n = fixture_new(&f);
    assert_in_range(lines_per_us(n, cores, 1, false, 20), 128, 1000000 / ADDRESS);
    numa_free(n);
    /* It stores: deferred replies, too. */
    n = fixture_new(&f);
    assert_in_range(lines_per_us(n, cores, 1, true, 20), 62, 1000000 / (2 * ADDRESS));
    numa_free(n);
    /* Both load: the other's snoops, too; no more than the channels give. */
    n = fixture_new(&f);
    assert_in_range(lines_per_us(n, cores, 2, false, 20), 125, 2 * 1000000 / (2 * ADDRESS));
    numa_free(n);
    /* A snoop filter: the requests only. */
    f.coherence.snoop_filter = true;
    n = fixture_new(&f);
    assert_in_range(lines_per_us(n, cores, 2, false, 20), 2 * 1000000 / (2 * ADDRESS) + 50,
                    2 * 1000000 / ADDRESS);
    numa_free(n);
}

/* While the hub arbitrates for a bus that processors use, they begin nothing there: an address
 * phase of its own between two of theirs costs as much more. A device's alone follow one
 * another. */
static void test_hub_takes_the_bus(void **state)
{
    const unsigned core = 0;
    unsigned lines[2];
    struct fixture f;

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        fixture_blackford(&f);
        f.cache.prefetch.streams = 0;
        f.coherence.snoop_filter = true; /* full after 64 lines: each line displaces another */
        f.coherence.snoop_filter_bytes = 4096;
        f.interconnect.bus_arbitration_ps = k * ARBITRATION;
        struct numa *n = fixture_new(&f);
        lines[k] = lines_per_us(n, &core, 1, false, 20);
        numa_free(n);
    }
    assert_in_range(lines[0], 1000000 / (2 * ADDRESS) - 3, 1000000 / (2 * ADDRESS) + 2);
    assert_in_range(lines[1], 1000000 / (3 * ADDRESS) - 2, 1000000 / (3 * ADDRESS) + 2);
}

/* What is ready before its turn waits: a line of the other die behind one from memory. */
static void test_in_order(void **state)
{
    sim_time done[2];
    struct fixture f;

    (void)state;
    for (uint32_t depth = 0; depth <= 12; depth += 12) {
        fixture_blackford(&f);
        f.dram.trfc_ps = 0;
        f.cache.prefetch.streams = 0;
        f.interconnect.bus_in_order = depth;
        struct numa *n = fixture_new(&f);
        numa_store(n, 0, line_of(5000), 0, NULL);
        const sim_time first = numa_load(n, 1, line_of(7), 2000000, NULL).done_ps;
        assert_int_equal(first, 2000000 + IDLE);
        done[depth / 12] = numa_load(n, 1, line_of(5000), 2000000 + ADDRESS, NULL).done_ps - first;
        /* One that is called later, but was on the bus before both, waits for neither. */
        const sim_time before = 2000000 - 2 * ADDRESS;
        assert_int_equal(numa_load(n, 1, line_of(4096), before, NULL).done_ps, before + IDLE);
        numa_free(n);
    }
    assert_true(done[0] > UINT64_MAX / 2); /* before it */
    assert_int_equal(done[1], DATA);
}

/* One transaction at a time: the next begins when the last is over. */
static void test_depth_of_the_queue(void **state)
{
    struct fixture f;

    (void)state;
    fixture_blackford(&f);
    f.dram.trfc_ps = 0;
    f.cache.prefetch.streams = 0;
    f.interconnect.bus_in_order = 1;
    struct numa *n = fixture_new(&f);
    const sim_time first = numa_load(n, 0, line_of(7), 0, NULL).done_ps;
    const sim_time second = numa_load(n, 1, line_of(4096), 1000, NULL).done_ps;
    assert_int_equal(second, first - L2 + IDLE);
    /* Also if its snoops are over, and its data only are left; and not a moment longer. */
    const sim_time third = numa_load(n, 0, line_of(8192), second - L2 - 1, NULL).done_ps;
    assert_int_equal(third, second - L2 + IDLE);
    assert_int_equal(numa_load(n, 1, line_of(12288), third - L2, NULL).done_ps, third - L2 + IDLE);
    numa_free(n);
}

/* The filter stalls the snoop phase, which only a line of the same bus waits for. */
static void test_snoop_stall(void **state)
{
    struct fixture f;

    (void)state;
    fixture_blackford(&f);
    f.dram.trfc_ps = 0;
    f.cache.prefetch.streams = 0;
    f.coherence.snoop_filter = true;
    f.coherence.snoop_stall_ps = 2 * CLOCK;
    struct numa *n = fixture_new(&f);
    numa_store(n, 0, line_of(3), 0, NULL);
    assert_int_equal(numa_load(n, 1, line_of(4096), 1000000, NULL).done_ps, 1000000 + IDLE);
    assert_int_equal(numa_load(n, 1, line_of(3), 2000000, NULL).done_ps,
                     2000000 + L2 + ARBITRATION + ADDRESS + 5 * CLOCK + OWNER + HUB + BACK + DATA);
    /* Of another bus: the hub has looked by then. */
    numa_store(n, 0, line_of(9), 3000000, NULL);
    assert_int_equal(numa_load(n, 2, line_of(9), 4000000, NULL).done_ps,
                     4000000 + L2 + ARBITRATION + ADDRESS + HUB + SNOOP + OWNER + DATA + BACK +
                         DATA);
    numa_free(n);
}

/* A line's address phase and data: a processor's data idle the data lines before and after. */
static void test_turnaround(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned clocks = 0; clocks <= 1; clocks++) {
        sim_time last = 0;
        fixture_blackford(&f);
        f.interconnect.bus_turnaround_ps = clocks * CLOCK;
        f.interconnect.bus_address_ps = 1000;
        f.cpu.sockets = 1;
        struct numa *n = fixture_new(&f);
        for (uint64_t line = 0; line < 512; line++) {
            const sim_time done = numa_store_nt(n, 0, line_of(line), 0, NULL).done_ps;
            last = SIM_MAX(last, done);
        }
        assert_in_range(last, 512 * (DATA + clocks * 2 * CLOCK),
                        514 * (DATA + clocks * 2 * CLOCK) + 50000);
        numa_free(n);
    }
}

/* ---- FB-DIMM --------------------------------------------------------------------------------- */

/* Lines of `step`, from `at_line` on, read or written at one instant; when the last is done. */
static sim_time burst(struct dram *dram, bool write, uint64_t at_line, unsigned n)
{
    sim_time last = 0;

    for (unsigned i = 0; i < n; i++) {
        const sim_time done = write ? dram_write(dram, at_line + i, 0)
                                    : dram_read(dram, at_line + i, 0);
        last = SIM_MAX(last, done);
    }
    return last;
}

static void test_fbdimm(void **state)
{
    struct fixture f;
    struct dram dram;
    const unsigned n = 1024;

    (void)state;
    fixture_blackford(&f);
    f.dram.trfc_ps = 0;
    dram_init(&dram, &f.dram, NULL);
    assert_int_equal(dram_idle_read_ps(&dram), DRAM);
    assert_int_equal(dram_read(&dram, 12345, 1000000), 1000000 + DRAM);
    dram_release(&dram);

    /* Each DIMM further adds a hop, to all. */
    f.dram.dimms = 4;
    dram_init(&dram, &f.dram, NULL);
    for (uint64_t line = 0; line < 64; line++)
        assert_int_equal(dram_read(&dram, line, line * 1000000), line * 1000000 + DRAM + 3 * 4000);
    dram_release(&dram);

    /* Two branches: a line each 3.75 ns north, 7.5 ns south; neither slows the other where each
     * DIMM carries a part only. */
    dram_init(&dram, &f.dram, NULL);
    const sim_time reads = burst(&dram, false, 0, n);
    assert_in_range(reads, n * DATA / 2, n * DATA / 2 + 300000);
    dram_release(&dram);
    dram_init(&dram, &f.dram, NULL);
    burst(&dram, true, 1 << 20, n / 2);
    const sim_time mixed = burst(&dram, false, 0, n);
    assert_in_range(mixed, reads, reads + reads / 8);
    const struct fbdimm_branch *branch = dram.branch;
    assert_in_range(branch[0].drained_ps, n / 4 * 2 * DATA, n / 4 * 2 * DATA + 200000);
    dram_release(&dram);

    /* One DIMM: its DDR2 bus carries both. */
    f.dram.dimms = 1;
    f.dram.twtr_ps = 0;
    f.dram.write_batch = 64;
    dram_init(&dram, &f.dram, NULL);
    burst(&dram, true, 1 << 20, n / 2);
    assert_in_range(burst(&dram, false, 0, n), (n + n / 2) * DATA / 2 - 100000,
                    (n + n / 2) * DATA / 2 + 900000);
    dram_release(&dram);
}

/* Each access takes the bank for a whole cycle: no row stays open. */
static void test_closed_rows(void **state)
{
    struct fixture f;
    struct dram dram;
    sim_time last = 0;

    (void)state;
    fixture_blackford(&f);
    f.dram.trfc_ps = 0;
    dram_init(&dram, &f.dram, NULL);
    for (unsigned i = 0; i < 100; i++)
        last = dram_read(&dram, 7, 0);
    /* The cycle of a write: tRCD + tCL - clock + line + tWR + tRP. */
    assert_in_range(last, 99 * 63750, 99 * 63750 + DRAM);
    dram_release(&dram);
}

/* ---- Snoop filter ---------------------------------------------------------------------------- */

static void test_filter_is_full(void **state)
{
    struct fixture f;
    const uint64_t lines = 4096;

    (void)state;
    fixture_blackford(&f);
    f.cache.prefetch.streams = 0;
    f.coherence.snoop_filter = true;
    f.coherence.snoop_filter_bytes = lines * LINE_BYTES;
    struct numa *n = fixture_new(&f);
    for (uint64_t line = 0; line < lines; line++)
        numa_store(n, 0, line_of(line), line * 100000, NULL);
    for (uint64_t line = 0; line < lines; line++)
        assert_true(holds(n, 0, line));
    assert_int_equal(counters(n)->llc_back_invalidations, 0);
    /* As many again: each takes one of the first from the L2, which has room for both. */
    for (uint64_t line = lines; line < 2 * lines; line++)
        numa_store(n, 0, line_of(line), line * 100000, NULL);
    uint64_t left = 0;
    for (uint64_t line = 0; line < 2 * lines; line++)
        left += holds(n, 0, line);
    assert_int_equal(left, lines);
    assert_int_equal(counters(n)->llc_back_invalidations, lines);
    assert_int_equal(counters(n)->write_bytes[WRITE_SNOOP], lines * LINE_BYTES);
    /* The other bus has a filter of its own. */
    for (uint64_t line = 0; line < lines; line++)
        numa_store(n, 2, line_of(1000000 + line), (3 * lines + line) * 100000, NULL);
    assert_int_equal(counters(n)->llc_back_invalidations, lines);
    numa_free(n);
}

/* ---- Caches ---------------------------------------------------------------------------------- */

static void test_sectors(void **state)
{
    struct fixture f;

    (void)state;
    fixture_blackford(&f);
    f.cache.prefetch.streams = 0;
    struct numa *n = fixture_new(&f);
    const uint64_t sets = f.cache.l2_bytes / LINE_BYTES / f.cache.l2_ways;
    /* One tag for two lines: as many sectors as ways, both lines of each. */
    for (uint64_t i = 0; i < 8; i++) {
        numa_store(n, 0, line_of(i * sets), 1000000 * i, NULL);
        assert_false(holds(n, 0, i * sets + 1));
        numa_store(n, 0, line_of(i * sets + 1), 1000000 * i + 500000, NULL);
    }
    assert_int_equal(counters(n)->write_bytes[WRITE_VICTIM], 0);
    /* The next takes a whole sector, although the row of the other lines needs no room. */
    numa_load(n, 0, line_of(8 * sets), 11000000, NULL);
    unsigned left = 0;
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(holds(n, 0, i * sets), holds(n, 0, i * sets + 1));
        left += holds(n, 0, i * sets);
    }
    assert_int_equal(left, 7);
    assert_int_equal(counters(n)->write_bytes[WRITE_VICTIM], 2 * LINE_BYTES);
    /* Its other line joins it, and nothing has to go. */
    numa_load(n, 0, line_of(8 * sets + 1), 12000000, NULL);
    assert_int_equal(counters(n)->write_bytes[WRITE_VICTIM], 2 * LINE_BYTES);
    numa_free(n);
}

static void test_write_through(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned through = 0; through <= 1; through++) {
        fixture_blackford(&f);
        f.cache.l1_write_through = through != 0;
        struct numa *n = fixture_new(&f);
        numa_store(n, 0, line_of(3), 0, NULL);
        const struct numa_result again = numa_store(n, 0, line_of(3), 1000000, NULL);
        assert_int_equal(again.source, through ? NUMA_L2 : NUMA_L1);
        assert_int_equal(core_group_peek(n, 0, 3), LINE_M);
        assert_int_equal(numa_load(n, 0, line_of(3), 2000000, NULL).source, NUMA_L1);
        numa_free(n);
    }
}

/* ---- Prefetches ------------------------------------------------------------------------------ */

static unsigned held(const struct numa *n, uint64_t first, uint64_t end)
{
    unsigned k = 0;

    for (uint64_t line = first; line < end; line++)
        k += holds(n, 0, line);
    return k;
}

static void test_prefetcher(void **state)
{
    struct fixture f;
    sim_time t = 0;

    (void)state;
    fixture_blackford(&f);
    f.cache.prefetch.pairs = false;
    struct numa *n = fixture_new(&f);
    /* One miss begins nothing; the second, near by, a stream of four lines ahead. */
    numa_load(n, 0, line_of(64), t += 1000000, NULL);
    assert_int_equal(held(n, 0, 128), 1);
    numa_load(n, 0, line_of(65), t += 1000000, NULL);
    assert_int_equal(held(n, 66, 70), 4);
    assert_int_equal(held(n, 0, 128), 6);
    /* A hit keeps it ahead. */
    const struct numa_result r = numa_load(n, 0, line_of(66), t += 1000000, NULL);
    assert_int_equal(r.source, NUMA_L2);
    assert_int_equal(held(n, 66, 71), 5);
    /* Not beyond the page, which ends with line 127. */
    for (uint64_t line = 67; line < 128; line++)
        numa_load(n, 0, line_of(line), t += 1000000, NULL);
    assert_int_equal(held(n, 64, 128), 64);
    assert_int_equal(held(n, 128, 192), 0);
    /* Downwards, to the page's begin. */
    for (uint64_t line = 255; line > 192; line--)
        numa_load(n, 0, line_of(line), t += 1000000, NULL);
    assert_int_equal(held(n, 192, 256), 64);
    assert_int_equal(held(n, 128, 192), 0);
    /* Too far apart: no stream. */
    numa_load(n, 0, line_of(320), t += 1000000, NULL);
    numa_load(n, 0, line_of(325), t += 1000000, NULL);
    assert_int_equal(held(n, 320, 384), 2);
    /* Stores prefetch with ownership. */
    numa_store(n, 0, line_of(640), t += 1000000, NULL);
    numa_store(n, 0, line_of(641), t += 1000000, NULL);
    assert_int_equal(core_group_peek(n, 0, 642), LINE_E);
    assert_true(counters(n)->read_bytes[READ_RFO] == 6 * LINE_BYTES);
    numa_free(n);
}

/* What PAPI counts on Core: every line that it looks for in the L2, and those that it then fetches.
 * Its fetches are reads there, also those that stores ask for. */
static void test_prefetches_are_counted(void **state)
{
    struct fixture f;
    sim_time t = 0;

    (void)state;
    fixture_blackford(&f);
    f.cache.prefetch.pairs = f.cache.prefetch.owns = false;
    struct numa *n = fixture_new(&f);
    numa_store(n, 0, line_of(64), t += 1000000, NULL);
    assert_int_equal(numa_private_count(n, 0).prefetches, 0);
    numa_store(n, 0, line_of(65), t += 1000000, NULL);
    assert_int_equal(numa_private_count(n, 0).prefetches, 4);
    assert_int_equal(numa_private_count(n, 0).prefetched, 4);
    numa_store(n, 0, line_of(66), t += 1000000, NULL);
    assert_int_equal(numa_private_count(n, 0).prefetches, 8);
    assert_int_equal(numa_private_count(n, 0).prefetched, 5);
    assert_int_equal(numa_private_count(n, 0).l2_misses, 2);
    assert_true(counters(n)->read_bytes[READ_RFO] == 2 * LINE_BYTES);
    assert_true(counters(n)->read_bytes[READ_LOAD] == 5 * LINE_BYTES);
    /* Nobody had them: a store to one asks nobody. One of another die's is shared first. */
    assert_int_equal(core_group_peek(n, 0, 67), LINE_E);
    numa_store(n, 2, line_of(71), t += 1000000, NULL);
    numa_store(n, 0, line_of(67), t += 1000000, NULL);
    assert_int_equal(core_group_peek(n, 0, 71), LINE_S);
    numa_free(n);
}

static void test_prefetch_is_waited_for(void **state)
{
    struct fixture f;

    (void)state;
    fixture_blackford(&f);
    f.cache.prefetch.pairs = false;
    struct numa *n = fixture_new(&f);
    numa_load(n, 0, line_of(0), 0, NULL);
    numa_load(n, 0, line_of(1), 1000000, NULL);
    assert_false(numa_private_hit(n, 0, line_of(2), false));
    /* Under way since the access to line 1: less than a miss, more than a hit. */
    const struct numa_result r = numa_load(n, 0, line_of(2), 1020000, NULL);
    assert_int_equal(r.source, NUMA_LOCAL_DRAM);
    assert_in_range(r.done_ps, 1020000 + 2 * L2, 1020000 + IDLE);
    assert_int_equal(numa_load(n, 0, line_of(3), 2000000, NULL).done_ps, 2000000 + L2);
    assert_true(numa_private_hit(n, 0, line_of(3), false));
    numa_free(n);

    /* No more under way than there is room for. */
    f.cache.prefetch.in_flight = 2;
    n = fixture_new(&f);
    numa_load(n, 0, line_of(0), 0, NULL);
    numa_load(n, 0, line_of(1), 1000000, NULL);
    assert_int_equal(held(n, 0, 64), 4);
    numa_free(n);

    /* A miss brings its pair. */
    f.cache.prefetch.pairs = true;
    n = fixture_new(&f);
    numa_load(n, 0, line_of(9), 0, NULL);
    assert_int_equal(held(n, 8, 10), 2);
    assert_int_equal(held(n, 0, 64), 2);
    numa_free(n);
}

/* ---- A line of an L2 that cores share -------------------------------------------------------- */

/* An L1 of the pair has it modified: the L2 takes it from there before it gives it, to the other
 * core or to a bus. */
static void test_modified_in_an_l1(void **state)
{
    const sim_time l1 = 1156; /* 4 cycles */
    struct fixture f;

    (void)state;
    for (unsigned through = 0; through <= 1; through++) {
        const sim_time more = through ? 0 : l1 + L2;
        fixture_blackford(&f);
        f.cache.prefetch.streams = 0;
        f.cache.l2_cores = 2;
        f.cache.l1_write_through = through != 0;
        struct numa *n = fixture_new(&f);
        numa_store(n, 0, line_of(3), 0, NULL);
        assert_int_equal(numa_load(n, 1, line_of(3), 1000000, NULL).done_ps, 1000000 + L2 + more);
        /* Now both have it, unmodified; the first that stores owns it. */
        assert_int_equal(numa_load(n, 0, line_of(3), 2000000, NULL).source, NUMA_L1);
        assert_int_equal(numa_store(n, 1, line_of(3), 3000000, NULL).done_ps, 3000000 + L2);
        assert_int_equal(numa_store(n, 0, line_of(3), 4000000, NULL).done_ps, 4000000 + L2 + more);
        /* A core behind the other bus. */
        assert_int_equal(numa_load(n, 2, line_of(3), 5000000, NULL).done_ps,
                         5000000 + L2 + ARBITRATION + ADDRESS + HUB + SNOOP + OWNER + more + DATA +
                             BACK + DATA);
        numa_free(n);
        /* The core's own way to another L1, if it has one. */
        f.cache.l1_snoop_ps = 16500;
        n = fixture_new(&f);
        numa_store(n, 0, line_of(3), 0, NULL);
        assert_int_equal(numa_load(n, 1, line_of(3), 1000000, NULL).done_ps,
                         1000000 + L2 + (through ? 0 : 16500));
        numa_free(n);
    }
}

/* ---- Copies and devices ---------------------------------------------------------------------- */

static uint64_t bytes_of_copy(bool past_caches)
{
    const uint64_t lines = 4 * 32768; /* four times the L2 */
    struct fixture f;

    fixture_blackford(&f);
    struct numa *n = fixture_new(&f);
    for (uint64_t i = 0; i < lines; i++) {
        const sim_time t = i * 100000;
        numa_load(n, 0, line_of(i), t, NULL);
        if (past_caches)
            numa_store_nt(n, 0, line_of(1048576 + i), t, NULL);
        else
            numa_store(n, 0, line_of(1048576 + i), t, NULL);
    }
    /* What the L2 still holds will be written, too. */
    uint64_t dirty = 0;
    for (uint64_t i = 0; i < lines; i++)
        dirty += core_group_peek(n, 0, 1048576 + i) == LINE_M;
    const uint64_t bytes = numa_dram_bytes(n) + dirty * LINE_BYTES;
    numa_free(n);
    return bytes / (lines * LINE_BYTES / 100); /* percent of what was copied */
}

static void test_copies_move_three_bytes_or_two(void **state)
{
    (void)state;
    assert_int_equal(bytes_of_copy(false), 300);
    assert_int_equal(bytes_of_copy(true), 200);
}

static void test_devices(void **state)
{
    struct fixture f;

    (void)state;
    fixture_blackford(&f);
    f.cache.iio_ps = IIO;
    f.dram.trfc_ps = 0;
    struct numa *n = fixture_new(&f);
    numa_store(n, 0, line_of(10), 0, NULL);
    numa_load(n, 3, line_of(80), 1000000, NULL);
    numa_dma_write(n, 0, line_of(10), 64, 2000000, NULL, NULL);
    numa_dma_write(n, 0, line_of(80), 64, 3000000, NULL, NULL);
    assert_false(holds(n, 0, 10));
    assert_false(holds(n, 3, 80));
    assert_int_equal(counters(n)->write_bytes[WRITE_DMA], 2 * LINE_BYTES);
    assert_int_equal(counters(n)->dma_write_to_dram, 2);
    /* The line that was modified is replaced: it is not written twice. */
    assert_int_equal(counters(n)->dram_write_bytes, 2 * LINE_BYTES);
    /* Without a filter each write takes an address phase of each bus. */
    sim_time last = 0;
    for (uint64_t i = 0; i < 256; i++) {
        const sim_time done = numa_dma_write(n, 0, line_of(4096 + i), 64, 9000000, NULL, NULL);
        last = SIM_MAX(last, done);
    }
    assert_in_range(last - 9000000, 256 * ADDRESS, 256 * ADDRESS + 60000);
    /* Alone: looked at, and its data moved when that is known. */
    assert_int_equal(numa_dma_write(n, 0, line_of(8192), 64, 15000000, NULL, NULL),
                     15000000 + IIO + SNOOP + BACK + IIO);
    assert_int_equal(numa_dma_read(n, 0, line_of(8193), 64, 16000000, NULL, NULL),
                     16000000 + IIO + DRAM + BACK + IIO + BACK);
    /* A read takes nothing from the caches. */
    numa_store(n, 0, line_of(700), 20000000, NULL);
    enum numa_source source;
    numa_dma_read(n, 0, line_of(700), 64, 21000000, NULL, &source);
    assert_int_equal(source, NUMA_PEER_CACHE);
    assert_true(holds(n, 0, 700));
    numa_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unloaded_latency),
        cmocka_unit_test(test_address_phases_bound_reads),
        cmocka_unit_test(test_hub_takes_the_bus),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_depth_of_the_queue),
        cmocka_unit_test(test_snoop_stall),
        cmocka_unit_test(test_turnaround),
        cmocka_unit_test(test_fbdimm),
        cmocka_unit_test(test_closed_rows),
        cmocka_unit_test(test_filter_is_full),
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_write_through),
        cmocka_unit_test(test_prefetcher),
        cmocka_unit_test(test_prefetches_are_counted),
        cmocka_unit_test(test_prefetch_is_waited_for),
        cmocka_unit_test(test_modified_in_an_l1),
        cmocka_unit_test(test_copies_move_three_bytes_or_two),
        cmocka_unit_test(test_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
