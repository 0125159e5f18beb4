/*
 * Where an access's time goes: the parts are what was on its path and add up to the whole, whoever
 * answers, whatever else is under way, in both protocols.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/numa_fixture.h"

/* ---- Any access ------------------------------------------------------------------------------ */

enum operation { LOAD, STORE, STORE_NT, DMA_READ, DMA_WRITE, DMA_WRITE_PART, N_OPERATIONS };

static sim_time run(struct numa *n, enum operation operation, unsigned core, struct hpa hpa,
                    sim_time at, struct sim_stamp *stamp)
{
    const unsigned socket = numa_socket_of_core(n, core);

    sim_stamp_start(stamp, at);
    switch (operation) {
    case LOAD: return numa_load(n, core, hpa, at, stamp).done_ps;
    case STORE: return numa_store(n, core, hpa, at, stamp).done_ps;
    case STORE_NT: return numa_store_nt(n, core, hpa, at, stamp).done_ps;
    case DMA_READ: return numa_dma_read(n, socket, hpa, 64, at, stamp, NULL);
    case DMA_WRITE: return numa_dma_write(n, socket, hpa, 64, at, stamp, NULL);
    default: return numa_dma_write(n, socket, hpa, 8, at, stamp, NULL);
    }
}

/* Lines wander between the agents of all sockets; callers come out of order, refreshes included. */
static void try_randomly(struct fixture *f, uint64_t random)
{
    struct numa *n = fixture_new(f);
    const unsigned nodes = physmem_nodes(numa_physmem(n));
    struct sim_stamp stamp;
    sim_time t = 0;

    for (unsigned i = 0; i < 40000; i++) {
        const uint64_t r = fixture_random(&random);
        const enum operation operation = (enum operation)(r % N_OPERATIONS);
        const unsigned core = (unsigned)(r >> 8) % numa_cores(n);
        const struct hpa hpa = fixture_hpa(n, (unsigned)(r >> 16) % nodes, ((r >> 20) % 300) * 64);
        /* Crowded and idle stretches. */
        t += (i >> 10) % 2 != 0 ? 2000 : 90000;
        const sim_time at = t + (r >> 40) % 500000;
        const sim_time done = run(n, operation, core, hpa, at, &stamp);
        sim_time sum = 0;
        for (unsigned part = 0; part < SIM_STAMP_PARTS; part++)
            sum += stamp.part_ps[part];
        if (sum != done - at)
            fail_msg("access %u, operation %d: parts add up to %llu of %llu ps", i, (int)operation,
                     (unsigned long long)sum, (unsigned long long)(done - at));
    }
    numa_free(n);
}

static void shrink(struct fixture *f)
{
    f->cpu.cores_per_socket = 4;
    f->cache.l1_bytes = 4 * 2 * 64;
    f->cache.l1_ways = 2;
    f->cache.l2_bytes = 8 * 4 * 64;
    f->cache.l2_ways = 4;
    if (f->cache.llc_bytes == 0)
        return;
    f->cache.llc_slices = 3;
    f->cache.llc_ways = 6;
    f->cache.filter_ways = 5;
    f->cache.llc_bytes = UINT64_C(3) * 8 * 6 * 64;
}

static void test_parts_add_up(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned variant = 0; variant < 64; variant++) {
        fixture_r730(&f);
        shrink(&f);
        f.cpu.sockets = (variant & 1) != 0 ? 4 : 2;
        f.cache.inclusive = (variant & 2) != 0;
        f.coherence.opportunistic_broadcast = (variant & 4) != 0;
        f.coherence.remote_dma_write = (variant & 8) != 0 ? REMOTE_DMA_DRAM_INVALIDATE
                                                          : REMOTE_DMA_DEVICE_SIDE_LLC;
        if ((variant & 32) != 0)
            f.coherence.remote_dma_write = REMOTE_DMA_HOME_LLC;
        if ((variant & 40) == 40)
            f.coherence.remote_dma_write = (variant & 4) != 0 ? REMOTE_DMA_OWN_THEN_BOTH
                                                              : REMOTE_DMA_OWN_THEN_DRAM;
        f.coherence.io_directory_entries = (variant & 1) != 0 ? 0 : 8;
        f.coherence.write_accept_ps = 27000;
        f.interconnect.flit_slots = (variant & 2) != 0 ? 3 : 1;
        /* Large caches: lines stay, so that other caches answer. */
        if ((variant & 16) != 0)
            f.cache.llc_bytes *= 16;
        try_randomly(&f, variant);
    }
    for (unsigned variant = 0; variant < 4; variant++) {
        fixture_clovertown(&f);
        if ((variant & 1) != 0)
            shrink(&f);
        f.coherence.snoop_filter = (variant & 2) != 0;
        try_randomly(&f, 100 + variant);
    }
}

/* ---- What they are --------------------------------------------------------------------------- */

#define LOCAL_REQUEST 12000
#define RETURN        7000
#define L2            6000
#define HOME          5000
#define LOOK          8000
#define DIRTY         15000
#define SNOOP         (21000 + 417)
#define DATA          (21000 + 4167)

static void assert_parts(const struct sim_stamp *stamp, sim_time core, sim_time cache,
                         sim_time interconnect, sim_time dram)
{
    assert_int_equal(stamp->part_ps[PART_CORE], core);
    assert_int_equal(stamp->part_ps[PART_CACHE], cache);
    assert_int_equal(stamp->part_ps[PART_INTERCONNECT], interconnect);
    assert_int_equal(stamp->part_ps[PART_DRAM], dram);
}

/* The other socket's core has the line, modified; its home is here. DRAM is read in vain. */
static void test_forwarded(void **state)
{
    struct fixture f;
    struct sim_stamp stamp;

    (void)state;
    fixture_r730(&f);
    struct numa *n = fixture_new(&f);
    const struct hpa line = fixture_hpa(n, 0, 0x6000);
    const sim_time cache = LOCAL_REQUEST + HOME + LOOK + DIRTY + RETURN;
    /* 160 moments, some of them in a refresh. */
    for (unsigned i = 1; i <= 160; i++) {
        const sim_time t = i * UINT64_C(78050000);
        numa_store(n, 14, line, t - 10000000, NULL);
        run(n, i % 2 != 0 ? LOAD : STORE, 0, line, t, &stamp);
        assert_parts(&stamp, L2, cache, SNOOP + DATA, 0);
    }
    numa_free(n);
    /* Without broadcast, the snoop waits for the directory, which is read with the line. */
    f.coherence.opportunistic_broadcast = false;
    n = fixture_new(&f);
    numa_store(n, 14, line, 78000000, NULL);
    run(n, LOAD, 0, line, 2 * 78000000, &stamp);
    assert_parts(&stamp, L2, cache, SNOOP + DATA, dram_idle_read_ps(&n->socket[0].dram));
    numa_free(n);
}

/* The home needs no data, but the answer of a socket that has a clean copy. */
static void test_answered(void **state)
{
    struct fixture f;
    struct sim_stamp stamp;

    (void)state;
    fixture_r730(&f);
    struct numa *n = fixture_new(&f);
    const struct hpa line = fixture_hpa(n, 0, 0x6000);
    numa_load(n, 0, line, 78000000, NULL);
    numa_load(n, 14, line, 2 * 78000000, NULL);
    run(n, STORE, 0, line, 3 * 78000000, &stamp);
    assert_int_equal(stamp.part_ps[PART_DRAM], 0);
    assert_int_equal(stamp.part_ps[PART_INTERCONNECT], 2 * SNOOP);
    numa_free(n);
}

static void fill_write_queue(struct numa *n, struct hpa line, enum write_cause cause,
                             sim_time at_ps)
{
    sim_time accepted_ps = at_ps;

    for (unsigned i = 0; i < 2000; i++)
        accepted_ps = numa_dram_write(n, line.v / 64 + i, cause, at_ps);
    assert_true(accepted_ps > at_ps);
}

/* A store past the caches to the other socket: DRAM accepts it at once. */
static void test_store_nt(void **state)
{
    struct fixture f;
    struct sim_stamp stamp;

    (void)state;
    fixture_r730(&f);
    struct numa *n = fixture_new(&f);
    const struct hpa line = fixture_hpa(n, 1, 0x6000);
    const sim_time write_back = interconnect_idle_ps(&n->interconnect, MESSAGE_WRITEBACK);
    /* A line of its own: no ownership to be asked for. */
    numa_store(n, 0, line, 78000000, NULL);
    run(n, STORE_NT, 0, line, 2 * 78000000, &stamp);
    assert_parts(&stamp, L2, LOCAL_REQUEST + HOME, write_back + SNOOP, 0);
    /* A full queue is DRAM's part. */
    fill_write_queue(n, line, WRITE_NT, 3 * 78000000);
    numa_store(n, 0, line, 3 * 78000000 - 10000000, NULL);
    run(n, STORE_NT, 0, line, 3 * 78000000, &stamp);
    assert_true(stamp.part_ps[PART_DRAM] > 100000);
    assert_int_equal(stamp.part_ps[PART_CACHE], LOCAL_REQUEST + HOME);
    numa_free(n);
}

/* On front-side buses: what a device's write waits for in DRAM's queue is DRAM's. */
static void test_bus(void **state)
{
    struct fixture f;
    struct sim_stamp stamp;

    (void)state;
    fixture_clovertown(&f);
    f.coherence.snoop_filter = false;
    struct numa *n = fixture_new(&f);
    const struct hpa line = fixture_hpa(n, 0, 0x6000);
    run(n, DMA_WRITE, 0, line, 78000000, &stamp);
    const sim_time cache = stamp.part_ps[PART_CACHE], bus = stamp.part_ps[PART_INTERCONNECT];
    assert_int_equal(cache, f.cache.iio_ps + f.coherence.snoop_lookup_ps);
    assert_int_equal(stamp.part_ps[PART_DRAM], 0);
    fill_write_queue(n, line, WRITE_DMA, 2 * 78000000);
    run(n, DMA_WRITE, 0, line, 2 * 78000000, &stamp);
    assert_true(stamp.part_ps[PART_DRAM] > 100000);
    assert_int_equal(stamp.part_ps[PART_CACHE], cache);
    assert_int_equal(stamp.part_ps[PART_INTERCONNECT], bus);
    /* A neighbour on the bus has it and reads it, out of its L1: no DRAM. */
    numa_store(n, 2, line, 3 * 78000000, NULL);
    run(n, LOAD, 0, line, 4 * 78000000, &stamp);
    assert_int_equal(stamp.part_ps[PART_DRAM], 0);
    assert_int_equal(stamp.part_ps[PART_CACHE], f.coherence.snoop_lookup_ps +
                                                    f.cache.core_snoop_dirty_ps + n->l1_ps +
                                                    n->l2_ps);
    numa_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_add_up), cmocka_unit_test(test_forwarded),
        cmocka_unit_test(test_answered),     cmocka_unit_test(test_store_nt),
        cmocka_unit_test(test_bus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
