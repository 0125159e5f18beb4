/*
 * The memory system of the R730, idle: every latency equals its formula, and each access leaves
 * the traffic it should. Times are chosen so that no refresh is met.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/numa_fixture.h"

struct host {
    struct fixture f;
    struct numa *n;
    sim_time t; /* of the next access: all is idle, no refresh within 0.8 us */
};

/* Parts of the formulas, from the defaults. */
#define L1       2000
#define L2       6000
#define REQUEST  12000
#define RETURN   7000
#define IIO      6000
#define HOME     5000
#define DRAM     (19000 + 14160 + 14160 + 3333)
#define WAY      21000 /* one way over a link */
#define FLIT     417
#define LINE     4167 /* ten flits on one link */
#define LOOK     8000
#define CLEAN    9400
#define DIRTY    15000
#define LLC_LOAD (L2 + REQUEST + RETURN)
#define LOCAL    (L2 + REQUEST + HOME + DRAM + RETURN)
#define REMOTE   (LOCAL + WAY + FLIT + WAY + LINE)

static void open_host(struct host *h)
{
    fixture_r730(&h->f);
    h->n = fixture_new(&h->f);
    h->t = 0;
}

static sim_time next(struct host *h)
{
    return h->t += 10 * h->f.dram.trefi_ps;
}

static sim_time load(struct host *h, unsigned core, struct hpa hpa, enum numa_source source)
{
    const sim_time at = next(h);
    struct sim_stamp stamp;

    sim_stamp_start(&stamp, at);
    const struct numa_result r = numa_load(h->n, core, hpa, at, &stamp);
    assert_int_equal(r.source, source);
    /* The parts are the whole. */
    sim_time sum = 0;
    for (unsigned i = 0; i < SIM_STAMP_PARTS; i++)
        sum += stamp.part_ps[i];
    assert_int_equal(sum, r.done_ps - at);
    return r.done_ps - at;
}

static sim_time store(struct host *h, unsigned core, struct hpa hpa)
{
    const sim_time at = next(h);

    return numa_store(h->n, core, hpa, at, NULL).done_ps - at;
}

static sim_time dma_read(struct host *h, unsigned socket, struct hpa hpa, enum numa_source expected)
{
    const sim_time at = next(h);
    enum numa_source source;
    struct sim_stamp stamp;

    sim_stamp_start(&stamp, at);
    const sim_time done = numa_dma_read(h->n, socket, hpa, 64, at, &stamp, &source);
    sim_time sum = 0;
    for (unsigned i = 0; i < SIM_STAMP_PARTS; i++)
        sum += stamp.part_ps[i];
    assert_int_equal(sum, done - at);
    assert_int_equal(source, expected);
    return done - at;
}

static sim_time dma_write(struct host *h, unsigned socket, struct hpa hpa, unsigned bytes,
                          enum numa_source expected)
{
    const sim_time at = next(h);
    enum numa_source source;
    struct sim_stamp stamp;

    sim_stamp_start(&stamp, at);
    const sim_time done = numa_dma_write(h->n, socket, hpa, bytes, at, &stamp, &source);
    sim_time sum = 0;
    for (unsigned i = 0; i < SIM_STAMP_PARTS; i++)
        sum += stamp.part_ps[i];
    assert_int_equal(sum, done - at);
    assert_int_equal(source, expected);
    return done - at;
}

static void assert_near(double value, double expected, double tolerance)
{
    if (fabs(value - expected) > tolerance)
        fail_msg("%g is not within %g of %g", value, tolerance, expected);
}

/* ---- Cores ----------------------------------------------------------------------------------- */

static void test_load_latencies(void **state)
{
    struct host h;
    struct hpa hpa;

    (void)state;
    open_host(&h);
    for (unsigned home = 0; home < 2; home++) {
        hpa = fixture_hpa(h.n, home, 0x100000);
        const sim_time idle = numa_idle_load_ps(h.n, 0, home);
        assert_int_equal(idle, home == 0 ? LOCAL : REMOTE);
        assert_int_equal(load(&h, 0, hpa, home == 0 ? NUMA_LOCAL_DRAM : NUMA_REMOTE_DRAM), idle);
        assert_int_equal(load(&h, 0, hpa, NUMA_L1), L1);
        /* 8 lines of the same L1 set, in different L2 sets, displace it from L1. */
        for (unsigned i = 1; i <= 8; i++)
            load(&h, 0, fixture_hpa(h.n, home, 0x100000 + i * 4096),
                 home == 0 ? NUMA_LOCAL_DRAM : NUMA_REMOTE_DRAM);
        assert_int_equal(load(&h, 0, hpa, NUMA_L2), L2);
        /* 8 of the same L2 set displace it from L2: it is in the LLC. */
        for (unsigned i = 2; i <= 10; i++)
            load(&h, 0, fixture_hpa(h.n, home, 0x100000 + i * 32768),
                 home == 0 ? NUMA_LOCAL_DRAM : NUMA_REMOTE_DRAM);
        assert_int_equal(load(&h, 0, hpa, NUMA_LLC), LLC_LOAD);
    }
    assert_int_equal(LLC_LOAD, 25000);
    numa_free(h.n);
}

static void test_transfers_between_cores(void **state)
{
    struct host h;

    (void)state;
    open_host(&h);
    const struct hpa modified = fixture_hpa(h.n, 0, 0x1000), clean = fixture_hpa(h.n, 0, 0x2000);
    store(&h, 1, modified);
    assert_int_equal(load(&h, 0, modified, NUMA_PEER_CACHE), LLC_LOAD + DIRTY); /* 40 ns */
    load(&h, 1, clean, NUMA_LOCAL_DRAM);
    assert_int_equal(load(&h, 0, clean, NUMA_PEER_CACHE), LLC_LOAD + CLEAN); /* 34.4 ns */
    /* Shared now: nobody has to be asked. */
    assert_int_equal(load(&h, 2, clean, NUMA_LLC), LLC_LOAD);
    /* A store takes the copies of the others. */
    assert_int_equal(store(&h, 2, clean), LLC_LOAD + CLEAN);
    assert_int_equal(load(&h, 0, clean, NUMA_PEER_CACHE), LLC_LOAD + DIRTY);
    assert_int_equal(load(&h, 2, clean, NUMA_L1), L1);

    /* Another socket's modified line, at home there: forwarded at once. */
    const struct hpa there = fixture_hpa(h.n, 1, 0x3000);
    store(&h, 14, there);
    /* 18 + 21.4 + 5 + 8 + 15 + 25.2 + 7 */
    assert_int_equal(load(&h, 0, there, NUMA_REMOTE_CACHE),
                     L2 + REQUEST + WAY + FLIT + HOME + LOOK + DIRTY + WAY + LINE + RETURN);
    /* In its LLC: the published case, 76-85 ns. */
    const struct hpa in_llc = fixture_hpa(h.n, 1, 0x5000);
    numa_warm_device(h.n, 1, in_llc, 64);
    const sim_time hitm = load(&h, 0, in_llc, NUMA_REMOTE_CACHE);
    assert_int_equal(hitm, L2 + REQUEST + WAY + FLIT + HOME + LOOK + WAY + LINE + RETURN);
    assert_in_range(hitm, 76000, 85000);
    /* At home in the reader's socket: the directory names the other. */
    const struct hpa here = fixture_hpa(h.n, 0, 0x6000);
    store(&h, 14, here);
    const sim_time reader = load(&h, 0, here, NUMA_REMOTE_CACHE);
    assert_int_equal(reader, L2 + REQUEST + HOME + WAY + FLIT + LOOK + DIRTY + WAY + LINE + RETURN);
    assert_in_range(reader, 76000, 149000);
    numa_free(h.n);
}

static void test_directory_and_broadcast(void **state)
{
    struct host h;

    (void)state;
    open_host(&h);
    const struct numa_counters *s0 = &h.n->socket[0].counters;
    /* Nobody remote has it: the snoop is sent at once but not waited for. */
    load(&h, 0, fixture_hpa(h.n, 0, 0x1000), NUMA_LOCAL_DRAM);
    assert_int_equal(s0->message_bytes[MESSAGE_SNOOP], 8);
    assert_int_equal(s0->dram_write_bytes, 0);
    /* A remote reader is granted the line exclusively: the directory is written. */
    const struct hpa line = fixture_hpa(h.n, 0, 0x2000);
    load(&h, 14, line, NUMA_REMOTE_DRAM);
    assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], 64);
    /* The home's core has to wait for the remote answer, then both share; that is not written. */
    assert_int_equal(load(&h, 0, line, NUMA_LOCAL_DRAM),
                     L2 + REQUEST + HOME + WAY + FLIT + LOOK + CLEAN + WAY + FLIT + RETURN);
    assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], 64);
    assert_int_equal(directory_get(&h.n->socket[0].directory, line.v >> 6), DIRECTORY_A);
    /* Its store: the remote copy goes. */
    store(&h, 0, line);
    assert_int_equal(directory_get(&h.n->socket[0].directory, line.v >> 6), DIRECTORY_I);
    assert_int_equal(core_group_peek(h.n, 14, line.v >> 6), LINE_I);
    numa_free(h.n);

    /* Without broadcast the snoop waits for the directory, and none is sent in vain. */
    fixture_r730(&h.f);
    h.f.coherence.opportunistic_broadcast = false;
    h.n = fixture_new(&h.f);
    s0 = &h.n->socket[0].counters;
    load(&h, 0, fixture_hpa(h.n, 0, 0x1000), NUMA_LOCAL_DRAM);
    assert_int_equal(numa_interconnect_bytes(h.n, 0, 1), 0);
    store(&h, 14, line);
    assert_int_equal(load(&h, 0, line, NUMA_REMOTE_CACHE),
                     L2 + REQUEST + HOME + DRAM + WAY + FLIT + LOOK + DIRTY + WAY + LINE + RETURN);
    /* What has been read from there before need not be written again: the directory says so. */
    const struct hpa again = fixture_hpa(h.n, 0, 0x40000);
    const uint64_t before = s0->write_bytes[WRITE_DIRECTORY];
    numa_warm_core(h.n, 14, again, 64);
    numa_warm_forgotten(h.n, 1, again, 128);
    assert_int_equal(load(&h, 14, again, NUMA_REMOTE_DRAM), REMOTE);
    assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], before);
    numa_warm_forgotten(h.n, 0, again, 128);
    load(&h, 14, again, NUMA_REMOTE_DRAM);
    assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], before + 64);
    numa_free(h.n);
}

static void test_traffic_of_loads(void **state)
{
    struct host h;

    (void)state;
    open_host(&h);
    load(&h, 0, fixture_hpa(h.n, 1, 0x1000), NUMA_REMOTE_DRAM);
    assert_int_equal(numa_interconnect_bytes(h.n, 0, 1), 8);
    assert_int_equal(numa_interconnect_bytes(h.n, 1, 0), 80);
    assert_int_equal(h.n->socket[1].counters.read_bytes[READ_LOAD], 64);
    assert_int_equal(h.n->socket[1].counters.dram_read_bytes, 64);
    assert_int_equal(h.n->socket[0].counters.dram_read_bytes, 0);
    assert_int_equal(h.n->socket[0].counters.core_llc_misses, 1);
    load(&h, 1, fixture_hpa(h.n, 1, 0x1000), NUMA_PEER_CACHE);
    assert_int_equal(h.n->socket[0].counters.core_llc_hits, 1);
    assert_int_equal(numa_interconnect_bytes(h.n, 1, 0), 80);
    /* A non-temporal store: ownership, data, no copy left. */
    const sim_time at = next(&h);
    numa_store_nt(h.n, 0, fixture_hpa(h.n, 1, 0x1000), at, NULL);
    assert_int_equal(h.n->socket[1].counters.write_bytes[WRITE_NT], 64);
    assert_int_equal(core_group_peek(h.n, 0, fixture_hpa(h.n, 1, 0x1000).v >> 6), LINE_I);
    load(&h, 1, fixture_hpa(h.n, 1, 0x1000), NUMA_REMOTE_DRAM);
    /* Statistics are what the tables say. */
    const struct stat_desc *table;
    const char *prefix;
    void *counters;
    unsigned i = 0;
    while (numa_stats(h.n, i, &prefix, &table, &counters))
        i++;
    assert_int_equal(i, 2);
    assert_string_equal(prefix, "s1.");
    assert_string_equal(table[0].name, "dram_read_bytes");
    assert_int_equal(*(uint64_t *)(void *)((char *)counters + table[0].offset), 128);
    assert_int_equal(numa_dram_bytes(h.n), h.n->socket[1].counters.dram_read_bytes +
                                               h.n->socket[1].counters.dram_write_bytes);
    numa_free(h.n);
}

static void test_flush(void **state)
{
    struct host h;

    (void)state;
    open_host(&h);
    const struct hpa line = fixture_hpa(h.n, 1, 0x1000);
    store(&h, 3, line);
    numa_flush(h.n, 0, line, next(&h));
    assert_int_equal(h.n->socket[1].counters.write_bytes[WRITE_FLUSH], 64);
    assert_int_equal(load(&h, 3, line, NUMA_REMOTE_DRAM), REMOTE);
    numa_flush(h.n, 14, line, next(&h)); /* from elsewhere */
    assert_int_equal(load(&h, 3, line, NUMA_REMOTE_DRAM), REMOTE);
    numa_free(h.n);
}

/* ---- Devices --------------------------------------------------------------------------------- */

static void test_dma_read(void **state)
{
    struct host h;
    const sim_time hit = IIO + REQUEST + RETURN, local = IIO + REQUEST + HOME + DRAM + RETURN,
                   remote = local + WAY + FLIT + WAY + LINE;

    (void)state;
    open_host(&h);
    const struct hpa a = fixture_hpa(h.n, 0, 0x10000), b = fixture_hpa(h.n, 1, 0x20000);
    /* Twice: nothing is allocated. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dma_read(&h, 0, a, NUMA_LOCAL_DRAM), local);
        assert_int_equal(dma_read(&h, 0, b, NUMA_REMOTE_DRAM), remote);
    }
    assert_int_equal(h.n->socket[0].counters.read_bytes[READ_DMA], 128);
    /* Written by the device; by a core, whose L2 has to be asked. It stays modified. */
    numa_warm_device(h.n, 0, a, 64);
    assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), hit);
    numa_warm_core(h.n, 2, a, 64);
    assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), hit + DIRTY);
    assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), hit + DIRTY);
    assert_int_equal(load(&h, 2, a, NUMA_L1), L1);
    /* Homed in the other socket but in the device's LLC: as local. */
    numa_warm_device(h.n, 0, b, 64);
    assert_int_equal(dma_read(&h, 0, b, NUMA_LLC), hit);
    numa_warm_drop(h.n, b, 64);
    /* Warm in the remote home's caches: the same as DRAM there (published: 661 against 663). */
    numa_warm_core(h.n, 14, b, 64);
    assert_int_equal(dma_read(&h, 0, b, NUMA_REMOTE_CACHE), remote);
    /* Local memory, modified in the other socket (published: +28 on local DRAM). */
    numa_warm_drop(h.n, a, 64);
    numa_warm_core(h.n, 14, a, 64);
    const sim_time other = dma_read(&h, 0, a, NUMA_REMOTE_CACHE);
    assert_int_equal(other, IIO + REQUEST + HOME + WAY + FLIT + LOOK + DIRTY + WAY + LINE + RETURN);
    assert_in_range(other - local, 15000, 40000);
    assert_int_equal(load(&h, 14, a, NUMA_L1), L1);
    /* Published: DRAM against LLC 53-76 ns, remote against local +53. */
    assert_in_range(local - hit, 53000, 76000);
    assert_in_range(remote - local, 40000, 60000);
    numa_free(h.n);
}

/* Has a core store into a line, and then into others until the line has left its L2. */
static void store_and_displace(struct host *h, unsigned core, struct hpa a)
{
    store(h, core, a);
    for (unsigned i = 1; core_group_peek(h->n, core, a.v >> 6) != LINE_I; i++) {
        assert_in_range(i, 1, 32);
        store(h, core, (struct hpa){ a.v + i * h->f.cache.l2_bytes / h->f.cache.l2_ways });
    }
}

/* A core-valid bit outlives a modified line in the L2: until another has looked and found nothing
 * to be there, a snoop of that core. Both of an LLC whose geometry is a constant and of any
 * other. */
static void test_sharers_outlive_writebacks(void **state)
{
    const sim_time hit = IIO + REQUEST + RETURN;
    struct host h;
    uint64_t bad_line;
    const char *why;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const sim_time stale = (i & 1) != 0 ? CLEAN : 0;
        fixture_r730(&h.f);
        h.f.cache.writeback_keeps_sharer = (i & 1) != 0;
        if ((i & 2) != 0)
            h.f.cache.llc_bytes *= 2;
        h.n = fixture_new(&h.f);
        h.t = 0;
        assert_int_equal(h.n->core_group[0].fast, (i & 2) == 0);
        const struct hpa a = fixture_hpa(h.n, 0, 0x10000), b = fixture_hpa(h.n, 0, 0x20000),
                         c = fixture_hpa(h.n, 0, 0x30000);
        /* A device's reads change nothing, so that each pays, with a latency stamp or without. */
        store_and_displace(&h, 2, a);
        for (int k = 0; k < 2; k++)
            assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), hit + stale);
        const sim_time at = next(&h);
        assert_int_equal(numa_dma_read(h.n, 0, a, 64, at, NULL, NULL) - at, hit + stale);
        /* The core itself need not be asked, another one's load asks once. */
        assert_int_equal(load(&h, 2, a, NUMA_LLC), LLC_LOAD);
        store_and_displace(&h, 2, a);
        assert_int_equal(load(&h, 3, a, NUMA_LLC), LLC_LOAD + stale);
        assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), hit + CLEAN);
        /* A store, and a device's write. */
        store_and_displace(&h, 2, b);
        assert_int_equal(store(&h, 3, b), LLC_LOAD + stale);
        store_and_displace(&h, 2, c);
        assert_int_equal(dma_write(&h, 0, c, 64, NUMA_LLC), IIO + REQUEST + stale);
        assert_int_equal(dma_write(&h, 0, c, 64, NUMA_LLC), IIO + REQUEST);
        assert_int_equal(dma_read(&h, 0, c, NUMA_LLC), hit);
        assert_true(numa_check_invariants(h.n, &why, &bad_line));
        numa_free(h.n);
    }
}

/* Fills both DDIO ways of the line's set with lines of a node, dirty. */
static void fill_ddio_ways(struct host *h, unsigned node, uint64_t offset)
{
    for (unsigned i = 1; i <= 2; i++)
        numa_warm_device(h->n, 0, fixture_hpa(h->n, node, offset + i * UINT64_C(14) * 2048 * 64),
                         64);
}

static void test_dma_write(void **state)
{
    struct host h;
    const sim_time hit = IIO + REQUEST, victim = REQUEST + HOME;
    const sim_time own_local = HOME + WAY + FLIT + LOOK + WAY + FLIT;
    const sim_time own_remote = WAY + FLIT + HOME + DRAM + WAY + FLIT;

    (void)state;
    open_host(&h);
    const struct hpa a = fixture_hpa(h.n, 0, 0x10000), b = fixture_hpa(h.n, 1, 0x20000);
    const struct numa_counters *s0 = &h.n->socket[0].counters, *s1 = &h.n->socket[1].counters;
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LOCAL_DRAM), hit + own_local);
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LLC), hit);
    assert_int_equal(s0->dram_read_bytes, 0);
    /* A core's copy goes; the line is updated where it is. */
    load(&h, 3, a, NUMA_LLC);
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LLC), hit + CLEAN);
    assert_int_equal(load(&h, 3, a, NUMA_LLC), LLC_LOAD);
    /* A dirty victim (published: +75). */
    numa_warm_drop_all(h.n);
    fill_ddio_ways(&h, 0, 0x10000);
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LOCAL_DRAM), hit + own_local + victim);
    assert_near((double)(own_local + victim), 75000, 5000);
    assert_int_equal(s0->write_bytes[WRITE_DDIO_VICTIM], 64);
    /* Remote line, remote victim (published: +114). */
    numa_warm_drop_all(h.n);
    fill_ddio_ways(&h, 1, 0x20000);
    const uint64_t before = numa_interconnect_bytes(h.n, 0, 1);
    assert_int_equal(dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM), hit + own_remote + victim);
    assert_near((double)(own_remote + victim), 114000, 5000);
    /* Request; the victim and its request. Directory read; directory written; victim written. */
    assert_int_equal(numa_interconnect_bytes(h.n, 0, 1) - before, 8 + 80);
    assert_int_equal(s1->read_bytes[READ_DIRECTORY], 64);
    assert_int_equal(s1->write_bytes[WRITE_DIRECTORY], 64);
    assert_int_equal(s1->write_bytes[WRITE_DDIO_VICTIM], 64);
    /* It is in the device's LLC now; a core there finds it, and a hit costs what a local one does.
     */
    assert_int_equal(dma_write(&h, 0, b, 64, NUMA_LLC), hit);
    load(&h, 0, b, NUMA_LLC);
    /* A part of a line needs the rest. */
    numa_warm_drop_all(h.n);
    assert_int_equal(dma_write(&h, 0, a, 8, NUMA_LOCAL_DRAM), hit + HOME + DRAM);
    assert_int_equal(s0->read_bytes[READ_DMA], 64);
    assert_int_equal(dma_write(&h, 0, a, 8, NUMA_LLC), hit);
    numa_free(h.n);
}

/* The consumer of a remote device's write pays a remote cache's or DRAM's latency, by the policy.
 */
static void test_remote_dma_write_policies(void **state)
{
    struct host h;

    (void)state;
    open_host(&h);
    struct hpa b = fixture_hpa(h.n, 1, 0x20000);
    load(&h, 14, b, NUMA_LOCAL_DRAM);
    dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM);
    assert_int_equal(core_group_peek(h.n, 14, b.v >> 6), LINE_I);
    load(&h, 14, b, NUMA_REMOTE_CACHE);
    assert_int_equal(h.n->socket[1].counters.write_bytes[WRITE_SNOOP], 64);
    assert_int_equal(h.n->socket[1].counters.write_bytes[WRITE_DMA], 0);
    numa_free(h.n);

    fixture_r730(&h.f);
    h.f.coherence.remote_dma_write = REMOTE_DMA_DRAM_INVALIDATE;
    h.n = fixture_new(&h.f);
    load(&h, 14, b, NUMA_LOCAL_DRAM);
    const uint64_t before = numa_interconnect_bytes(h.n, 0, 1);
    assert_int_equal(dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM),
                     IIO + REQUEST + WAY + LINE + HOME + DRAM + WAY + FLIT);
    assert_int_equal(numa_interconnect_bytes(h.n, 0, 1) - before, 80);
    assert_int_equal(core_group_peek(h.n, 14, b.v >> 6), LINE_I);
    load(&h, 14, b, NUMA_LOCAL_DRAM);
    assert_int_equal(h.n->socket[1].counters.write_bytes[WRITE_DMA], 64);
    assert_int_equal(h.n->socket[1].counters.read_bytes[READ_DIRECTORY], 64);
    assert_int_equal(h.n->socket[0].counters.dma_write_to_dram, 1);
    numa_free(h.n);
}

/* Lets `lines` lines cross from socket `from` to the other one in the microsecond before next(). */
static void load_link(struct host *h, unsigned from, unsigned lines)
{
    const sim_time at = h->t + 10 * h->f.dram.trefi_ps - (UINT64_C(1) << LINK_WINDOW_LOG2);

    for (unsigned i = 0; i < lines; i++)
        interconnect_send(&h->n->interconnect, from, from ^ 1, MESSAGE_DATA, at);
}

/* Ownership first, then the data: two ways there and back. With an entry of the I/O directory cache
 * the home neither reads nor writes its directory. */
static void test_own_then_dram(void **state)
{
    const sim_time accept = 27000, ask = WAY + FLIT + HOME + WAY + FLIT,
                   write = WAY + LINE + HOME + accept + WAY + FLIT;
    struct host h;

    (void)state;
    for (uint32_t entries = 0; entries < 2; entries++) {
        fixture_r730(&h.f);
        h.f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
        h.f.coherence.write_accept_ps = accept;
        h.f.coherence.io_directory_entries = entries;
        h.n = fixture_new(&h.f);
        h.t = 0;
        const struct hpa b = fixture_hpa(h.n, 1, 0x20000), c = fixture_hpa(h.n, 1, 0x30000);
        const struct numa_counters *s0 = &h.n->socket[0].counters, *s1 = &h.n->socket[1].counters;
        /* Nobody has it. */
        const sim_time looks = entries != 0 ? LOOK : DRAM;
        assert_int_equal(dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM),
                         IIO + REQUEST + ask + looks + write);
        assert_int_equal(s0->interconnect_bytes, 8 + 80);
        assert_int_equal(s1->interconnect_bytes, 8 + 8);
        assert_int_equal(s1->write_bytes[WRITE_DMA], 64);
        assert_int_equal(s1->read_bytes[READ_DIRECTORY], entries != 0 ? 0 : 64);
        assert_int_equal(s1->write_bytes[WRITE_DIRECTORY], entries != 0 ? 0 : 64);
        assert_int_equal(s1->io_directory_hits, entries);
        assert_int_equal(directory_get(&h.n->socket[1].directory, home_line(h.n, b.v >> 6)),
                         DIRECTORY_I);
        assert_int_equal(numa_llc_holder(h.n, b), -1);
        /* A copy of the home's cores goes, modified data of our own are part of what is written. */
        load(&h, 14, b, NUMA_LOCAL_DRAM);
        dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM);
        assert_int_equal(core_group_peek(h.n, 14, b.v >> 6), LINE_I);
        store(&h, 0, c);
        const uint64_t reads = s1->dram_read_bytes;
        assert_int_equal(dma_write(&h, 0, c, 8, NUMA_REMOTE_DRAM), IIO + REQUEST + write);
        assert_int_equal(s1->dram_read_bytes, reads);
        load(&h, 14, c, NUMA_LOCAL_DRAM);
        /* Two at a time: one entry is for one of them. */
        const uint64_t misses = s1->io_directory_misses;
        const sim_time at = next(&h);
        for (unsigned i = 0; i < 2; i++)
            numa_dma_write(h.n, 0, fixture_hpa(h.n, 1, 0x40000 + i * 64), 64, at, NULL, NULL);
        assert_int_equal(s1->io_directory_misses - misses, entries);
        numa_free(h.n);
    }
}

/* The data go to the home's DRAM and stay in the device's LLC, so that a consumer at home snoops:
 * beside DRAM as long as the way there is light, after it on a loaded link. */
static void test_own_then_both(void **state)
{
    const sim_time hit = IIO + REQUEST, ask = WAY + FLIT + HOME + WAY + FLIT,
                   snoop = WAY + FLIT + LOOK + WAY + FLIT;
    struct host h;

    (void)state;
    for (uint32_t entries = 0; entries < 2; entries++) {
        fixture_r730(&h.f);
        h.f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_BOTH;
        h.f.coherence.io_directory_entries = entries;
        h.n = fixture_new(&h.f);
        h.t = 0;
        const struct hpa b = fixture_hpa(h.n, 1, 0x20000);
        const uint64_t line = b.v >> 6;
        const struct numa_counters *s0 = &h.n->socket[0].counters, *s1 = &h.n->socket[1].counters;
        const struct directory *directory = &h.n->socket[1].directory;
        const sim_time looks = entries != 0 ? LOOK : DRAM;
        /* Nobody has it. */
        assert_int_equal(dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM), hit + ask + looks);
        assert_int_equal(s0->interconnect_bytes, 8 + 80);
        assert_int_equal(s1->interconnect_bytes, 8 + 8);
        assert_int_equal(s1->write_bytes[WRITE_DMA], 64);
        assert_int_equal(s1->read_bytes[READ_DIRECTORY], entries != 0 ? 0 : 64);
        assert_int_equal(s1->write_bytes[WRITE_DIRECTORY], entries != 0 ? 0 : 64);
        assert_int_equal(directory_get(directory, home_line(h.n, line)), DIRECTORY_A);
        assert_int_equal(numa_llc_holder(h.n, b), 0);
        /* It is owned: the next write asks nobody, but goes home, too. A read finds it. */
        assert_int_equal(dma_write(&h, 0, b, 64, NUMA_LLC), hit);
        assert_int_equal(s1->write_bytes[WRITE_DMA], 128);
        assert_int_equal(s1->interconnect_bytes, 8 + 8 + 8);
        assert_int_equal(dma_read(&h, 0, b, NUMA_LLC), hit + RETURN);
        /* The consumer; nobody writes the directory that it shares the line with the device's
         * LLC. */
        const uint64_t changes = s1->write_bytes[WRITE_DIRECTORY];
        assert_int_equal(load(&h, 14, b, NUMA_LOCAL_DRAM), LOCAL - DRAM + snoop);
        assert_int_equal(numa_llc_holder(h.n, b), 0);
        assert_int_equal(directory_get(directory, home_line(h.n, line)), DIRECTORY_A);
        /* Ownership again, for which its copy goes. Consumed on a loaded link. */
        assert_int_equal(dma_write(&h, 0, b, 64, NUMA_LLC),
                         hit + ask + (entries != 0 ? LOOK + CLEAN : DRAM));
        assert_int_equal(core_group_peek(h.n, 14, line), LINE_I);
        load_link(&h, 1, 130);
        assert_int_equal(load(&h, 14, b, NUMA_LOCAL_DRAM), LOCAL + snoop);
        assert_int_equal(s1->write_bytes[WRITE_DIRECTORY], changes);
        /* Lines leave the device's LLC silently: the snoop is in vain, and that is noted. */
        numa_warm_forgotten(h.n, 0, b, 64);
        assert_int_equal(load(&h, 14, b, NUMA_LOCAL_DRAM), LOCAL - DRAM + snoop);
        assert_int_equal(directory_get(directory, home_line(h.n, line)), DIRECTORY_I);
        assert_int_equal(s1->write_bytes[WRITE_DIRECTORY], changes + 64);
        /* Local memory is not concerned. */
        dma_write(&h, 0, fixture_hpa(h.n, 0, 0x20000), 64, NUMA_LOCAL_DRAM);
        assert_int_equal(s0->write_bytes[WRITE_DMA], 0);
        numa_free(h.n);
    }
}

/* The I/O directory cache of homes that gate it takes no line while the way from there is
 * loaded. */
static void test_io_directory_gated(void **state)
{
    struct host h;

    (void)state;
    for (unsigned gated = 0; gated < 2; gated++) {
        fixture_r730(&h.f);
        h.f.coherence.remote_dma_write = REMOTE_DMA_OWN_THEN_DRAM;
        h.f.coherence.io_directory_entries = 8;
        h.f.coherence.io_directory_gated = gated != 0;
        h.n = fixture_new(&h.f);
        h.t = 0;
        const struct numa_counters *s1 = &h.n->socket[1].counters;
        dma_write(&h, 0, fixture_hpa(h.n, 1, 0x20000), 64, NUMA_REMOTE_DRAM);
        load_link(&h, 0, 130); /* the way to the home does not matter */
        dma_write(&h, 0, fixture_hpa(h.n, 1, 0x30000), 64, NUMA_REMOTE_DRAM);
        assert_int_equal(s1->io_directory_hits, 2);
        load_link(&h, 1, 130);
        dma_write(&h, 0, fixture_hpa(h.n, 1, 0x40000), 64, NUMA_REMOTE_DRAM);
        assert_int_equal(s1->io_directory_hits, gated ? 2 : 3);
        assert_int_equal(s1->io_directory_misses, gated);
        assert_int_equal(s1->read_bytes[READ_DIRECTORY], gated * 64);
        assert_int_equal(s1->write_bytes[WRITE_DIRECTORY], gated * 64);
        assert_int_equal(s1->write_bytes[WRITE_DMA], 3 * 64);
        numa_free(h.n);
    }
}

/* Ownership at home: a snoop instead of the directory as long as the way there is idle. */
static void test_ownership_at_home(void **state)
{
    const sim_time look = IIO + REQUEST + HOME + WAY + FLIT + LOOK + WAY + FLIT;
    struct host h;

    (void)state;
    open_host(&h);
    const struct hpa a = fixture_hpa(h.n, 0, 0x20000), b = fixture_hpa(h.n, 0, 0x30000),
                     c = fixture_hpa(h.n, 0, 0x40000);
    const struct numa_counters *s0 = &h.n->socket[0].counters;
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LOCAL_DRAM), look);
    assert_int_equal(s0->read_bytes[READ_DIRECTORY], 0);
    assert_int_equal(s0->snoops_sent, 1);
    /* 5,033 flits fit into that microsecond; a quarter of them are 126 lines. */
    load_link(&h, 0, 125);
    assert_int_equal(dma_write(&h, 0, b, 64, NUMA_LOCAL_DRAM), look);
    assert_int_equal(s0->read_bytes[READ_DIRECTORY], 0);
    load_link(&h, 0, 130);
    assert_int_equal(dma_write(&h, 0, c, 64, NUMA_LOCAL_DRAM), IIO + REQUEST + HOME + DRAM);
    assert_int_equal(s0->read_bytes[READ_DIRECTORY], 64);
    assert_int_equal(s0->snoops_sent, 2);
    assert_int_equal(s0->dram_write_bytes, 0);
    /* The directory says who has to be asked, and is cleared when nobody is left. */
    const struct hpa d = fixture_hpa(h.n, 0, 0x50000);
    load(&h, 14, d, NUMA_REMOTE_DRAM);
    assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], 64);
    load_link(&h, 0, 130);
    assert_int_equal(dma_write(&h, 0, d, 64, NUMA_LOCAL_DRAM), look + DRAM + CLEAN);
    assert_int_equal(s0->read_bytes[READ_DIRECTORY], 128);
    assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], 128);
    assert_int_equal(core_group_peek(h.n, 14, d.v >> 6), LINE_I);
    numa_free(h.n);

    /* Without the broadcast the directory is always read. */
    fixture_r730(&h.f);
    h.f.coherence.opportunistic_broadcast = false;
    h.n = fixture_new(&h.f);
    h.t = 0;
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LOCAL_DRAM), IIO + REQUEST + HOME + DRAM);
    assert_int_equal(numa_interconnect_bytes(h.n, 0, 1), 0);
    numa_free(h.n);
}

/* Without a directory everybody is snooped, by the home agent or (early) by the requester's agent
 * beside the request; the directory is neither read nor written. */
static void test_snoop_modes(void **state)
{
    const sim_time snoop = WAY + FLIT + LOOK + WAY + FLIT;
    struct host h;

    (void)state;
    for (unsigned early = 0; early < 2; early++) {
        fixture_r730(&h.f);
        h.f.coherence.snoop_mode = early ? SNOOP_MODE_EARLY : SNOOP_MODE_HOME;
        h.f.coherence.opportunistic_broadcast = false;
        h.n = fixture_new(&h.f);
        h.t = 0;
        const struct hpa a = fixture_hpa(h.n, 0, 0x20000), b = fixture_hpa(h.n, 0, 0x30000);
        const struct numa_counters *s0 = &h.n->socket[0].counters, *s1 = &h.n->socket[1].counters;
        const sim_time answers = early ? SIM_MAX(HOME + DRAM, snoop) : HOME + SIM_MAX(DRAM, snoop);
        assert_int_equal(load(&h, 0, a, NUMA_LOCAL_DRAM), L2 + REQUEST + answers + RETURN);
        assert_int_equal(s0->interconnect_bytes, 8);
        assert_int_equal(s1->interconnect_bytes, 8);
        /* The other socket reads and modifies a line: its agent snoops the home itself. */
        assert_int_equal(load(&h, 14, b, NUMA_REMOTE_DRAM), REMOTE);
        assert_int_equal(s1->interconnect_bytes, 8 + (early ? 16 : 8));
        store(&h, 14, b);
        assert_int_equal(load(&h, 0, b, NUMA_REMOTE_CACHE), L2 + REQUEST + (early ? 0 : HOME) +
                                                                WAY + FLIT + LOOK + DIRTY + WAY +
                                                                LINE + RETURN);
        /* A device's write to local memory does not read DRAM, however loaded the link. */
        load_link(&h, 0, 300);
        assert_int_equal(dma_write(&h, 0, fixture_hpa(h.n, 0, 0x40000), 64, NUMA_LOCAL_DRAM),
                         IIO + REQUEST + (early ? snoop : HOME + snoop));
        assert_int_equal(s0->read_bytes[READ_DIRECTORY], 0);
        assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], 0);
        assert_int_equal(directory_get(&h.n->socket[0].directory, b.v >> 6), DIRECTORY_I);
        numa_free(h.n);
    }
}

/* The directory says A, but nobody has the line: what a local read makes of that; and that data
 * which are written home clear it at no cost. */
static void test_stale_directory(void **state)
{
    static const struct {
        enum directory_stale policy;
        enum directory_state then;
        enum line_state granted;
        uint64_t written;
    } cases[] = {
        { DIRECTORY_STALE_CLEAR, DIRECTORY_I, LINE_E, 64 },
        { DIRECTORY_STALE_SHARE, DIRECTORY_S, LINE_S, 64 },
        { DIRECTORY_STALE_KEEP, DIRECTORY_A, LINE_E, 0 },
    };
    struct host h;

    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        fixture_r730(&h.f);
        h.f.coherence.directory_stale = (int)cases[i].policy;
        h.f.coherence.opportunistic_broadcast = false;
        h.n = fixture_new(&h.f);
        h.t = 0;
        const struct hpa a = fixture_hpa(h.n, 0, 0x20000);
        const struct numa_counters *s0 = &h.n->socket[0].counters;
        const struct directory *d = &h.n->socket[0].directory;
        numa_warm_forgotten(h.n, 1, a, 64);
        assert_int_equal(directory_get(d, a.v >> 6), DIRECTORY_A);
        assert_int_equal(load(&h, 0, a, NUMA_LOCAL_DRAM), LOCAL + WAY + FLIT + LOOK + WAY + FLIT);
        assert_int_equal(directory_get(d, a.v >> 6), cases[i].then);
        assert_int_equal(core_group_peek(h.n, 0, a.v >> 6), cases[i].granted);
        assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], cases[i].written);
        assert_int_equal(s0->snoops_sent, 1);
        /* It goes without being written, and is read again: only A is snooped. */
        numa_flush(h.n, 0, a, next(&h));
        const uint64_t snoops = s0->snoops_sent;
        load(&h, 0, a, NUMA_LOCAL_DRAM);
        assert_int_equal(s0->snoops_sent - snoops, cases[i].then == DIRECTORY_A);
        /* Modified and written home. */
        store(&h, 0, a);
        const uint64_t directory = s0->write_bytes[WRITE_DIRECTORY], all = s0->dram_write_bytes;
        numa_flush(h.n, 0, a, next(&h));
        assert_int_equal(directory_get(d, a.v >> 6), DIRECTORY_I);
        assert_int_equal(s0->write_bytes[WRITE_DIRECTORY], directory);
        assert_int_equal(s0->dram_write_bytes - all, 64);
        numa_free(h.n);
    }
}

/* A design that nobody has built: into the consumer's LLC, over the link. */
static void test_dma_write_into_the_homes_llc(void **state)
{
    struct host h;
    const sim_time way = IIO + REQUEST + WAY + LINE + LOOK, back = WAY + FLIT;

    (void)state;
    fixture_r730(&h.f);
    h.f.coherence.remote_dma_write = REMOTE_DMA_HOME_LLC;
    h.n = fixture_new(&h.f);
    h.t = 0;
    const struct hpa b = fixture_hpa(h.n, 1, 0x20000), c = fixture_hpa(h.n, 1, 0x30000);
    const struct numa_counters *s0 = &h.n->socket[0].counters, *s1 = &h.n->socket[1].counters;
    /* A miss there asks everybody else, as that of a device there would. */
    assert_int_equal(dma_write(&h, 0, b, 64, NUMA_REMOTE_DRAM),
                     way + HOME + WAY + FLIT + LOOK + WAY + FLIT + back);
    const uint64_t before = numa_interconnect_bytes(h.n, 0, 1);
    assert_int_equal(dma_write(&h, 0, b, 64, NUMA_REMOTE_CACHE), way + back);
    assert_int_equal(numa_interconnect_bytes(h.n, 0, 1) - before, 80);
    /* The consumer finds it as if the device were its own, and no DRAM was needed for that. */
    assert_int_equal(load(&h, 14, b, NUMA_LLC), LLC_LOAD);
    assert_int_equal(s1->dram_read_bytes + s1->dram_write_bytes, 0);
    assert_int_equal(s0->dram_read_bytes + s0->dram_write_bytes, 0);
    assert_int_equal(s0->dma_write_pushes, 2);
    assert_int_equal(s1->dma_write_updates, 1);
    assert_int_equal(s1->dma_write_allocates, 1);
    /* Copies on both sides go; what the device's socket had modified is not lost. */
    load(&h, 0, c, NUMA_REMOTE_DRAM);
    store(&h, 0, c);
    dma_write(&h, 0, c, 8, NUMA_REMOTE_DRAM);
    assert_int_equal(core_group_peek(h.n, 0, c.v >> 6), LINE_I);
    assert_int_equal(s1->read_bytes[READ_DMA], 0);
    load(&h, 14, c, NUMA_LLC);
    /* Its own memory as ever. */
    const struct hpa a = fixture_hpa(h.n, 0, 0x10000);
    dma_write(&h, 0, a, 64, NUMA_LOCAL_DRAM);
    assert_int_equal(dma_write(&h, 0, a, 64, NUMA_LLC), IIO + REQUEST);
    numa_free(h.n);
}

/* DDIO switched off: a write to local memory ends in DRAM, whoever had a copy loads from there. */
static void test_dma_write_without_ddio(void **state)
{
    struct host h;

    (void)state;
    fixture_r730(&h.f);
    h.f.cache.ddio = false;
    h.n = fixture_new(&h.f);
    h.t = 0;
    const struct hpa a = fixture_hpa(h.n, 0, 0x10000);
    const struct numa_counters *s0 = &h.n->socket[0].counters;
    load(&h, 0, a, NUMA_LOCAL_DRAM);
    const uint64_t reads = s0->dram_read_bytes;
    dma_write(&h, 0, a, 64, NUMA_LOCAL_DRAM);
    assert_int_equal(core_group_peek(h.n, 0, a.v >> 6), LINE_I);
    assert_int_equal(s0->dram_read_bytes, reads); /* a full line at home: no directory look-up */
    assert_int_equal(s0->write_bytes[WRITE_DMA], 64);
    assert_int_equal(s0->dma_write_to_dram, 1);
    assert_int_equal(s0->dma_write_allocates + s0->dma_write_updates, 0);
    load(&h, 0, a, NUMA_LOCAL_DRAM);
    /* a part of a line that a core has modified: the rest is kept */
    store(&h, 0, a);
    dma_write(&h, 0, a, 8, NUMA_LOCAL_DRAM);
    assert_int_equal(s0->write_bytes[WRITE_SNOOP], 64);
    numa_free(h.n);
}

/* ---- DDIO share of the T430 [PB] ------------------------------------------------------------- */

static void test_ddio_share(void **state)
{
    const double share = 2.5 * 1024 * 1024;
    struct host h;

    (void)state;
    fixture_t430(&h.f);
    h.n = fixture_new(&h.f);
    h.t = 0;
    for (uint64_t mib = 1; mib <= 64; mib = mib == 2 ? 3 : mib == 3 ? 4 : 2 * mib) {
        const uint64_t lines = mib << 14;
        uint64_t hits = 0, random = mib;
        numa_warm_drop_all(h.n);
        for (uint64_t i = 0; i < lines; i++)
            numa_dma_write(h.n, 0, fixture_hpa(h.n, 0, i * 64), 64, h.t += 100000, NULL, NULL);
        for (unsigned i = 0; i < 50000; i++) {
            enum numa_source source;
            const uint64_t line = fixture_random(&random) % lines;
            numa_dma_read(h.n, 0, fixture_hpa(h.n, 0, line * 64), 64, h.t += 100000, NULL, &source);
            hits += source == NUMA_LLC;
        }
        const double ratio = (double)hits / 50000;
        if (mib <= 2)
            assert_int_equal(hits, 50000);
        else
            assert_near(ratio, share / (double)(mib << 20),
                        0.02 * share / (double)(mib << 20) + 0.004);
    }
    numa_free(h.n);
}

/* A device writes `lines` lines and a core reads each of them; how many loads have gone to DRAM. */
static uint64_t missed(struct host *h, uint64_t lines)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < lines; i++)
        numa_dma_write(h->n, 0, fixture_hpa(h->n, 0, i * 64), 64, h->t += 100000, NULL, NULL);
    for (uint64_t i = 0; i < lines; i++) {
        const struct hpa hpa = fixture_hpa(h->n, 0, i * 64);
        n += numa_load(h->n, 0, hpa, h->t += 100000, NULL).source == NUMA_LOCAL_DRAM;
    }
    return n;
}

/* A buffer of four times what devices may fill: all of it stays in the LLC in the end, by either
 * way. */
static void test_warm_by_misses(void **state)
{
    const uint64_t lines = (10u << 20) / 64;
    struct host h;

    (void)state;
    fixture_t430(&h.f);
    h.n = fixture_new(&h.f);
    h.t = 0;
    uint64_t now = missed(&h, lines);
    assert_true(now > lines / 2);
    while (now > 0) {
        const uint64_t before = now;
        now = missed(&h, lines);
        assert_true(now < before);
    }
    numa_warm_drop_all(h.n);
    numa_warm_by_misses(h.n, true);
    assert_int_equal(missed(&h, lines), lines);
    numa_warm_by_misses(h.n, false);
    assert_int_equal(missed(&h, lines), 0);
    numa_free(h.n);
}

/* The same of writes to the other socket's memory, where they would fill DDIO's ways: read by a
 * core of the device's socket (own_then_both), or of the home's (home_llc). */
static void test_warm_by_misses_remote(void **state)
{
    static const enum remote_dma_write policies[] = { REMOTE_DMA_DEVICE_SIDE_LLC,
                                                      REMOTE_DMA_HOME_LLC,
                                                      REMOTE_DMA_OWN_THEN_BOTH };
    const uint64_t lines = (10u << 20) / 64;

    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(policies); i++) {
        const bool at_home = policies[i] == REMOTE_DMA_HOME_LLC;
        struct host h;
        uint64_t n[3];
        fixture_t430(&h.f);
        h.f.coherence.remote_dma_write = (int)policies[i];
        h.n = fixture_new(&h.f);
        h.t = 0;
        for (unsigned round = 0; round < 3; round++) {
            n[round] = 0;
            numa_warm_by_misses(h.n, round == 1);
            for (uint64_t k = 0; k < lines; k++)
                numa_dma_write(h.n, 0, fixture_hpa(h.n, 1, k * 64), 64, h.t += 100000, NULL, NULL);
            for (uint64_t k = 0; k < lines; k++) {
                const unsigned core = at_home ? h.f.cpu.cores_per_socket : 0;
                const enum numa_source source =
                    numa_load(h.n, core, fixture_hpa(h.n, 1, k * 64), h.t += 100000, NULL).source;
                n[round] += source == NUMA_LOCAL_DRAM || source == NUMA_REMOTE_DRAM;
            }
        }
        assert_true(n[0] > lines / 2); /* beyond DDIO's share */
        assert_int_equal(n[2], 0);     /* all of them have missed */
        numa_free(h.n);
    }
}

/* What no core reads is not brought in. */
static void test_warm_unread(void **state)
{
    struct host h;

    (void)state;
    fixture_t430(&h.f);
    h.n = fixture_new(&h.f);
    const struct numa_counters *s0 = &h.n->socket[0].counters;
    const struct hpa held = fixture_hpa(h.n, 0, 0), other = fixture_hpa(h.n, 0, 0x10000);
    h.t = 0;
    dma_write(&h, 0, held, 64, NUMA_LOCAL_DRAM);
    assert_int_equal(s0->dma_write_allocates, 1);
    numa_warm_by_misses(h.n, true);
    dma_write(&h, 0, other, 64, NUMA_LOCAL_DRAM);
    dma_write(&h, 0, held, 64, NUMA_LLC);
    assert_int_equal(s0->write_bytes[WRITE_DMA], 64);
    dma_read(&h, 0, other, NUMA_LOCAL_DRAM);
    numa_warm_by_misses(h.n, false);
    dma_write(&h, 0, other, 64, NUMA_LOCAL_DRAM);
    assert_int_equal(s0->dma_write_allocates, 2);
    dma_read(&h, 0, other, NUMA_LLC);
    numa_free(h.n);
}

/* ---- Others ---------------------------------------------------------------------------------- */

static void test_skylake(void **state)
{
    struct host h;

    (void)state;
    fixture_skylake(&h.f);
    h.n = fixture_new(&h.f);
    h.t = 0;
    const struct hpa a = fixture_hpa(h.n, 0, 0x10000);
    /* A victim cache: what a core has read is not in the LLC until its L2 lets it go. */
    load(&h, 0, a, NUMA_LOCAL_DRAM);
    assert_int_equal(load(&h, 1, a, NUMA_PEER_CACHE), 6667 + REQUEST + CLEAN + RETURN);
    for (unsigned i = 1; i <= 16; i++) {
        load(&h, 0, fixture_hpa(h.n, 0, 0x10000 + i * 65536), NUMA_LOCAL_DRAM);
        load(&h, 1, fixture_hpa(h.n, 0, 0x10000 + i * 65536), NUMA_PEER_CACHE);
    }
    assert_int_equal(load(&h, 0, a, NUMA_LLC), 6667 + REQUEST + RETURN);
    assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), IIO + REQUEST + CLEAN + RETURN);
    dma_write(&h, 0, a, 64, NUMA_LLC);
    assert_int_equal(dma_read(&h, 0, a, NUMA_LLC), IIO + REQUEST + RETURN);
    numa_free(h.n);
}

static void test_front_side_bus(void **state)
{
    struct host h;

    (void)state;
    fixture_clovertown(&h.f);
    h.n = fixture_new(&h.f);
    h.t = 0;
    const sim_time l1 = 1288, l2 = 6009, address = 6000, hub = 20000, data = 5998, back = 15000,
                   dram = 11000 + 2998 + 17000 + 15000 + 15000 + 5997, look = 8000, owner = 15000;
    const struct hpa a = { 0x10000 }, b = { 0x20000 }, c = { 0x30000 };
    const sim_time idle = l2 + address + hub + dram + back + data;

    assert_int_equal(physmem_nodes(numa_physmem(h.n)), 1);
    assert_int_equal(numa_idle_load_ps(h.n, 0, 0), idle);
    assert_in_range(idle, 100000, 140000);
    assert_int_equal(load(&h, 0, a, NUMA_LOCAL_DRAM), idle);
    assert_int_equal(load(&h, 4, b, NUMA_LOCAL_DRAM), idle);
    assert_int_equal(load(&h, 0, a, NUMA_L1), l1);
    /* The other core of the die finds it in the shared L2, and its store takes it away. */
    assert_int_equal(load(&h, 1, a, NUMA_L2), l2);
    assert_int_equal(store(&h, 1, a), l2);
    assert_int_equal(load(&h, 0, a, NUMA_L2), l2 + l1 + l2); /* from the other's L1 */
    /* Between dies over the bus, between sockets through the hub: 85-145 ns. */
    const sim_time dies = load(&h, 2, a, NUMA_PEER_CACHE);
    assert_int_equal(dies, l2 + address + look + owner + hub + back + data);
    store(&h, 2, c);
    const sim_time sockets = load(&h, 6, c, NUMA_REMOTE_CACHE);
    assert_int_equal(sockets,
                     l2 + address + hub + address + look + owner + l1 + l2 + data + back + data);
    /* Devices at the hub: modified lines are supplied, writes go to DRAM and take the copies. */
    store(&h, 0, b);
    dma_read(&h, 0, b, NUMA_PEER_CACHE);
    dma_write(&h, 0, b, 64, NUMA_LOCAL_DRAM);
    assert_int_equal(core_group_peek(h.n, 0, b.v >> 6), LINE_I);
    assert_int_equal(dma_read(&h, 0, b, NUMA_LOCAL_DRAM), IIO + dram + back + IIO + back);
    assert_int_equal(h.n->socket[0].counters.write_bytes[WRITE_DMA], 64);
    numa_free(h.n);
}

static void test_parameters(void **state)
{
    struct fixture f;
    const char *why = NULL;

    (void)state;
    fixture_r730(&f);
    assert_true(numa_params_check(&f.params, &why));
    f.cache.llc_slices = 13;
    assert_false(numa_params_check(&f.params, &why));
    assert_non_null(strstr(why, "llc_slices"));
    fixture_r730(&f);
    f.cache.l2_cores = 4;
    assert_false(numa_params_check(&f.params, &why));
    fixture_r730(&f);
    f.coherence.protocol = fixture_protocol("front_side_bus");
    assert_false(numa_params_check(&f.params, &why));
    fixture_r730(&f);
    f.cache.ddio_ways = 21;
    assert_false(numa_params_check(&f.params, &why));
    fixture_r730(&f);
    f.interconnect.flit_slots = 3;
    f.interconnect.header_flits = 2;
    assert_false(numa_params_check(&f.params, &why));
    assert_non_null(strstr(why, "header_flits"));
    fixture_r730(&f);
    f.dram.banks = 12;
    assert_false(numa_params_check(&f.params, &why));
    /* Every entry has all that the manual prints, and its default is legal. */
    for (const struct numa_param_group *g = numa_param_groups; g->name != NULL; g++) {
        for (const struct param_desc *d = g->table; d->type != PARAM_END; d++) {
            assert_non_null(d->help);
            assert_non_null(d->source);
            assert_int_not_equal(d->provenance, PROV_NONE);
            assert_true(d->offset < g->bytes);
            if (d->type != PARAM_ENUM)
                assert_true(d->def >= d->lo && d->def <= d->hi);
        }
    }
}

/* Every protocol has a name and all required operations; without one of them it is refused. */
static void test_protocols(void **state)
{
    struct fixture f;
    const char *why = NULL;
    unsigned n = 0;

    (void)state;
    for (; coherence_protocol_names[n] != NULL; n++) {
        assert_non_null(coherence_protocols[n]);
        if (!coherence_ops_valid(coherence_protocols[n], &why))
            fail_msg("%s has no %s", coherence_protocol_names[n], why);
    }
    assert_null(coherence_protocols[n]);
    assert_true(n >= 2);

    struct coherence_ops broken = *coherence_protocols[0];
    broken.drop_all = NULL;
    broken.leave_stale = NULL;
    broken.llc_holder = NULL;
    broken.check = NULL;
    assert_true(coherence_ops_valid(&broken, &why));
    broken.io_send = NULL;
    assert_false(coherence_ops_valid(&broken, &why));
    assert_string_equal(why, "io_send");
    broken.release = NULL;
    assert_false(coherence_ops_valid(&broken, &why));
    assert_string_equal(why, "release");

    /* Each checks its own parameters: an LLC, or none. */
    fixture_clovertown(&f);
    assert_true(numa_params_check(&f.params, &why));
    f.cache.llc_bytes = UINT64_C(1) << 20;
    assert_false(numa_params_check(&f.params, &why));
    assert_non_null(strstr(why, "llc_size must be 0"));
    fixture_r730(&f);
    f.cache.llc_bytes = 0;
    assert_false(numa_params_check(&f.params, &why));
    assert_non_null(strstr(why, "llc_size must not be 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_latencies),
        cmocka_unit_test(test_transfers_between_cores),
        cmocka_unit_test(test_directory_and_broadcast),
        cmocka_unit_test(test_traffic_of_loads),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_dma_read),
        cmocka_unit_test(test_sharers_outlive_writebacks),
        cmocka_unit_test(test_dma_write),
        cmocka_unit_test(test_remote_dma_write_policies),
        cmocka_unit_test(test_io_directory_gated),
        cmocka_unit_test(test_ownership_at_home),
        cmocka_unit_test(test_snoop_modes),
        cmocka_unit_test(test_stale_directory),
        cmocka_unit_test(test_own_then_dram),
        cmocka_unit_test(test_own_then_both),
        cmocka_unit_test(test_dma_write_into_the_homes_llc),
        cmocka_unit_test(test_dma_write_without_ddio),
        cmocka_unit_test(test_ddio_share),
        cmocka_unit_test(test_warm_by_misses),
        cmocka_unit_test(test_warm_by_misses_remote),
        cmocka_unit_test(test_warm_unread),
        cmocka_unit_test(test_skylake),
        cmocka_unit_test(test_front_side_bus),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_protocols),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
