/* Translation: timing of every path, caches, walkers, pages of all sizes, domains, invalidation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/iommu_fake.h"

#define ID_A 0x0100
#define ID_B 0x0308
#define RW   (IOMMU_READ | IOMMU_WRITE)
#define KIB  UINT64_C(1024)
#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define HOST (UINT64_C(1) << 40) /* where the mapped pages are; nobody may touch them */

static struct iommu_domain *domain_with(struct rig *rig, uint16_t id)
{
    struct iommu_domain *domain = iommu_domain_new(rig->driver);
    assert_non_null(domain);
    assert_true(iommu_domain_attach(domain, id));
    return domain;
}

static void map(struct iommu_domain *domain, uint64_t iova, uint64_t hpa, uint64_t bytes,
                uint64_t page_bytes)
{
    assert_int_equal(
        iommu_map(domain, (struct iova){ iova }, (struct hpa){ hpa }, bytes, page_bytes, RW), 0);
}

/* Translates, expects hpa, returns what it took. */
static sim_time took(struct rig *rig, uint16_t id, uint64_t iova, uint64_t hpa, sim_time at_ps)
{
    struct iommu_translation t = iommu_rig_translate(rig, id, iova, false, at_ps);
    assert_int_equal(t.fault, IOMMU_OK);
    assert_int_equal(t.hpa.v, hpa);
    return t.done_ps - at_ps;
}

static void unloaded_latency_is_the_formula(void **state)
{
    (void)state;
    for (unsigned levels = 3; levels <= 5; levels++) {
        struct iommu_params params = fake_params();
        params.levels = levels;
        struct rig rig;
        iommu_rig_init(&rig, &params);
        struct iommu_domain *domain = domain_with(&rig, ID_A);
        uint64_t base = levels == 5 ? UINT64_C(1) << 52 : 16 * GIB;
        map(domain, base, HOST, 16 * KIB, 4 * KIB);
        map(domain, base + 4 * MIB, HOST + 4 * MIB, 4 * KIB, 4 * KIB);
        map(domain, base + GIB, HOST + GIB, 4 * KIB, 4 * KIB);
        map(domain, base + 2 * GIB, HOST + 2 * GIB, 4 * MIB, 2 * MIB);
        map(domain, base + 3 * GIB, HOST + 3 * GIB, GIB, GIB);
        sim_time lookup = params.lookup_ps, at = 1000000;
        const struct {
            uint64_t offset;
            unsigned reads; /* 0: a hit */
        } steps[] = {
            { 0x123, 2 + levels }, /* root, context, every level */
            { 0xfff, 0 },
            { 4 * KIB, 1 },          /* last-level table known */
            { 4 * MIB, 2 },          /* directory known */
            { GIB, levels },         /* context known */
            { 2 * GIB, levels - 1 }, /* a 2 MiB page is one level shorter */
            { 2 * GIB + 2 * MIB - 1, 0 },
            { 2 * GIB + 2 * MIB, 1 },
            { 3 * GIB + 5, levels - 2 }, /* a 1 GiB page two */
            { 4 * GIB - 1, 0 },
            { 0, 0 },
        };
        for (size_t i = 0; i < SIM_N_ELEMENTS(steps); i++, at += 10000000) {
            uint64_t reads = rig.fake.reads;
            sim_time expected = lookup +
                                (steps[i].reads == 0 ? 0 : iommu_rig_walk_ps(&rig, steps[i].reads));
            assert_int_equal(took(&rig, ID_A, base + steps[i].offset, HOST + steps[i].offset, at),
                             expected);
            assert_int_equal(rig.fake.reads - reads, steps[i].reads);
        }
        assert_int_equal(iommu_rig_stat(&rig, "iotlb_hits"), 4);
        assert_int_equal(iommu_rig_stat(&rig, "iotlb_misses"), 7);
        assert_int_equal(iommu_rig_stat(&rig, "pde_hits"), 1);
        assert_int_equal(iommu_rig_stat(&rig, "pdpe_hits"), 2);
        iommu_domain_free(domain);
        iommu_rig_release(&rig);
    }
}

static void caches_left_out_cost_their_reads(void **state)
{
    (void)state;
    struct iommu_params params = fake_params();
    params.pde_entries = 0;
    params.pdpe_entries = 0;
    struct rig rig;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 8 * KIB, 4 * KIB);
    assert_int_equal(took(&rig, ID_A, 0, HOST, 0), params.lookup_ps + iommu_rig_walk_ps(&rig, 6));
    assert_int_equal(took(&rig, ID_A, 4 * KIB, HOST + 4 * KIB, 9000000),
                     params.lookup_ps + iommu_rig_walk_ps(&rig, 4));
    iommu_rig_release(&rig);

    params.context_entries = 0;
    params.iotlb_entries = 0;
    iommu_rig_init(&rig, &params);
    domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    for (sim_time at = 0; at < 50000000; at += 10000000)
        assert_int_equal(took(&rig, ID_A, 0, HOST, at),
                         params.lookup_ps + iommu_rig_walk_ps(&rig, 6));
    iommu_rig_release(&rig);
}

static void off_and_pass_through(void **state)
{
    (void)state;
    struct iommu_params params = fake_params();
    struct rig rig;
    iommu_rig_hardware(&rig, &params); /* there, but off */
    assert_int_equal(took(&rig, ID_A, 0x1234567, 0x1234567, 5000), 0);
    iommu_rig_release(&rig);

    params.enabled = false;
    iommu_rig_init(&rig, &params);
    assert_null(rig.driver);
    assert_int_equal(iommu_reg_read(rig.iommu, VTD_CAP, 8), 0);
    iommu_reg_write(rig.iommu, VTD_GCMD, 4, VTD_GCMD_TE);
    assert_int_equal(took(&rig, ID_A, 0x1234567, 0x1234567, 5000), 0);
    iommu_rig_release(&rig);

    params.enabled = true;
    iommu_rig_init(&rig, &params);
    assert_true(iommu_attach_pass_through(rig.driver, ID_A));
    assert_int_equal(took(&rig, ID_A, HOST + 5, HOST + 5, 0),
                     params.lookup_ps + iommu_rig_walk_ps(&rig, 2));
    assert_int_equal(took(&rig, ID_A, 77 * GIB, 77 * GIB, 9000000), params.lookup_ps);
    assert_int_equal(iommu_rig_stat(&rig, "pass_through"), 2);
    iommu_detach_pass_through(rig.driver, ID_A);
    assert_int_equal(iommu_rig_translate(&rig, ID_A, 0, false, 20000000).fault,
                     IOMMU_FAULT_ROOT_NOT_PRESENT);
    iommu_rig_release(&rig);
}

static void stamp_gets_the_whole_translation(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    struct sim_stamp stamp;
    sim_stamp_start(&stamp, 7000);
    struct iommu_translation t = iommu_translate(rig.iommu, ID_A, (struct iova){ 0 }, 64, true,
                                                 7000, &stamp);
    assert_int_equal(stamp.part_ps[PART_IOMMU], t.done_ps - 7000);
    assert_int_equal(stamp.cursor_ps, t.done_ps);
    iommu_rig_release(&rig);
}

/* Distinct pages at one moment: walks are served in rounds of `walkers`. */
static void walkers_bound_the_rate(void **state)
{
    (void)state;
    const uint32_t counts[] = { 1, 6, 17 };
    for (size_t c = 0; c < SIM_N_ELEMENTS(counts); c++) {
        struct iommu_params params = fake_params();
        params.walkers = counts[c];
        struct rig rig;
        iommu_rig_init(&rig, &params);
        struct iommu_domain *domain = domain_with(&rig, ID_A);
        map(domain, 0, HOST, 2 * MIB, 4 * KIB);
        took(&rig, ID_A, 0, HOST, 0); /* fills the paging-structure caches */
        sim_time at = 100000000, walk = iommu_rig_walk_ps(&rig, 1);
        for (unsigned i = 1; i < 512; i++) {
            sim_time round = (i - 1) / counts[c] + 1;
            assert_int_equal(took(&rig, ID_A, i * PAGE_BYTES, HOST + i * PAGE_BYTES, at),
                             params.lookup_ps + round * walk);
        }
        iommu_rig_release(&rig);
    }
}

static void free_walker_starts_at_once(void **state)
{
    (void)state;
    struct iommu_params params = fake_params();
    params.walkers = 2;
    struct rig rig;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 2 * MIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    sim_time at = 100000000, walk = iommu_rig_walk_ps(&rig, 1), lookup = params.lookup_ps;
    assert_int_equal(took(&rig, ID_A, 0x1000, HOST + 0x1000, at), lookup + walk);
    assert_int_equal(took(&rig, ID_A, 0x2000, HOST + 0x2000, at + 1000), lookup + walk);
    /* The third waits for the first of the two, and no longer. */
    assert_int_equal(took(&rig, ID_A, 0x3000, HOST + 0x3000, at + 5000), lookup + 2 * walk - 5000);
    /* One that comes when the second has just ended does not wait. */
    assert_int_equal(took(&rig, ID_A, 0x4000, HOST + 0x4000, at + 1000 + walk), lookup + walk);
    iommu_rig_release(&rig);
}

/* Begins a walk of one table read for a request at at_ps; returns what it took. */
static sim_time walked(struct rig *rig, unsigned page, unsigned bytes, bool write, sim_time at_ps)
{
    const struct iommu_translation t = iommu_translate(
        rig->iommu, ID_A, (struct iova){ page * PAGE_BYTES }, bytes, write, at_ps, NULL);
    assert_int_equal(t.fault, IOMMU_OK);
    return t.done_ps - at_ps;
}

/* However many walkers there are: a walk begins walk_interval after the one before it, and later
 * for each piece of the read that this one was for. */
static void walks_hold_the_next_up(void **state)
{
    (void)state;
    static const struct {
        unsigned bytes;
        bool write;
        unsigned n_pieces;
    } cases[] = { { 64, true, 0 },   { 512, true, 0 },  { 64, false, 1 },
                  { 128, false, 1 }, { 256, false, 2 }, { 512, false, 4 } };
    struct iommu_params params = fake_params();
    params.walkers = 64;
    params.walk_interval_ps = 44000;
    params.read_piece_bytes = 128;
    params.read_piece_ps = 8000;
    for (size_t c = 0; c < SIM_N_ELEMENTS(cases); c++) {
        struct rig rig;
        iommu_rig_init(&rig, &params);
        struct iommu_domain *domain = domain_with(&rig, ID_A);
        map(domain, 0, HOST, 2 * MIB, 4 * KIB);
        took(&rig, ID_A, 0, HOST, 0); /* fills the paging-structure caches */
        const sim_time at = 100000000, alone = params.lookup_ps + iommu_rig_walk_ps(&rig, 1);
        const sim_time held = params.walk_interval_ps + cases[c].n_pieces * params.read_piece_ps;
        for (unsigned i = 0; i < 20; i++)
            assert_int_equal(walked(&rig, i + 1, cases[c].bytes, cases[c].write, at),
                             alone + i * held);
        /* What is in the IOTLB waits for nobody. */
        assert_int_equal(walked(&rig, 1, 64, false, at + alone), params.lookup_ps);
        iommu_rig_release(&rig);
    }
}

/* Software that asks how long its invalidations take: each has the line with its descriptors read,
 * and the next, whoever's it is, waits for it. */
static void invalidations_take_turns(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    params.invalidate_ps = 500000;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 16 * KIB, 4 * KIB);
    const sim_time one = FAKE_READ_PS + params.invalidate_ps, at = 1000000;
    uint64_t before = iommu_driver_submitted(rig.driver);
    assert_int_equal(iommu_unmap(domain, (struct iova){ 0 }, 4 * KIB), 0);
    assert_int_equal(iommu_driver_submitted(rig.driver) - before, 1);
    assert_int_equal(iommu_driver_done_ps(rig.driver, 1, at), at + one);
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(iommu_unmap(domain, (struct iova){ i * PAGE_BYTES }, 4 * KIB), 0);
    assert_int_equal(iommu_driver_done_ps(rig.driver, 2, at + 1000), at + 3 * one);
    assert_int_equal(iommu_driver_done_ps(rig.driver, 1, at + 4 * one), at + 5 * one);
    iommu_rig_release(&rig);
}

static void same_page_is_joined(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 8 * KIB, 4 * KIB);
    sim_time at = 1000000, end = params.lookup_ps + iommu_rig_walk_ps(&rig, 6);
    assert_int_equal(took(&rig, ID_A, 0, HOST, at), end);
    uint64_t reads = rig.fake.reads;
    assert_int_equal(took(&rig, ID_A, 64, HOST + 64, at), end);
    assert_int_equal(took(&rig, ID_A, 128, HOST + 128, at + 300000), end - 300000);
    assert_int_equal(iommu_rig_stat(&rig, "iotlb_hits_under_miss"), 2);
    /* From the moment at which the entry is there, it is a hit. */
    assert_int_equal(took(&rig, ID_A, 192, HOST + 192, at + end - params.lookup_ps),
                     params.lookup_ps);
    assert_int_equal(iommu_rig_stat(&rig, "iotlb_hits"), 1);
    assert_int_equal(iommu_rig_stat(&rig, "iotlb_misses"), 1);
    assert_int_equal(rig.fake.reads, reads);
    iommu_rig_release(&rig);
}

/* What a walk under way has not read yet helps no other walk. */
static void tables_are_known_when_read(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 64 * KIB, 4 * KIB);
    map(domain, GIB, HOST + GIB, 4 * KIB, 4 * KIB);
    took(&rig, ID_A, GIB, HOST + GIB, 0); /* the context is known */
    sim_time at = 100000000, lookup = params.lookup_ps;
    sim_time step = params.walk_step_ps + FAKE_READ_PS;
    took(&rig, ID_A, 0, HOST, at);
    assert_int_equal(took(&rig, ID_A, 0x1000, HOST + 0x1000, at + 1),
                     lookup + iommu_rig_walk_ps(&rig, 4));
    /* The second read gives the directory, the third the last-level table. */
    assert_int_equal(took(&rig, ID_A, 0x2000, HOST + 0x2000, at + 2 * step),
                     lookup + iommu_rig_walk_ps(&rig, 2));
    assert_int_equal(took(&rig, ID_A, 0x3000, HOST + 0x3000, at + 3 * step),
                     lookup + iommu_rig_walk_ps(&rig, 1));
    iommu_rig_release(&rig);
}

/* Requests that need a context entry under way wait for it, then walk. */
static void context_is_joined(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    map(domain, GIB, HOST + GIB, 4 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    assert_int_equal(took(&rig, ID_A, GIB, HOST + GIB, 0),
                     params.lookup_ps + iommu_rig_walk_ps(&rig, 2) + iommu_rig_walk_ps(&rig, 4));
    assert_int_equal(iommu_rig_stat(&rig, "context_misses"), 1);
    iommu_rig_release(&rig);
}

/* A walk that fetched only the context gives its walker back, though its request waits on. */
static void walker_is_free_when_its_reads_are_done(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    params.walkers = 2;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    assert_true(iommu_domain_attach(domain, ID_B));
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    map(domain, GIB, HOST + GIB, 4 * KIB, 4 * KIB);
    sim_time end = params.lookup_ps + iommu_rig_walk_ps(&rig, 6);
    assert_int_equal(took(&rig, ID_A, 0, HOST, 0), end);
    assert_int_equal(took(&rig, ID_B, 0, HOST, 0), end);
    /* Both context entries are there by now, and one walker is free. */
    sim_time at = iommu_rig_walk_ps(&rig, 2);
    assert_int_equal(took(&rig, ID_B, GIB, HOST + GIB, at),
                     params.lookup_ps + iommu_rig_walk_ps(&rig, 4));
    iommu_rig_release(&rig);
}

static void replacement_is_lru(void **state)
{
    (void)state;
    struct iommu_params params = fake_params();
    params.iotlb_entries = 4;
    params.iotlb_ways = 4;
    struct rig rig;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 64 * KIB, 4 * KIB);
    /* Pages in the order of use, and whether each hits. */
    const struct {
        unsigned page;
        bool hit;
    } uses[] = {
        { 0, false },
        { 1, false },
        { 2, false },
        { 3, false },
        { 0, true },
        { 2, true },
        { 4, false } /* drops 1 */,
        { 0, true },
        { 2, true },
        { 3, true },
        { 4, true },
        { 1, false } /* drops 0 */,
        { 2, true },
        { 0, false } /* drops 3 */,
        { 4, true },
        { 3, false },
    };
    sim_time at = 0;
    for (size_t i = 0; i < SIM_N_ELEMENTS(uses); i++, at += 10000000) {
        uint64_t hits = iommu_rig_stat(&rig, "iotlb_hits");
        took(&rig, ID_A, uses[i].page * PAGE_BYTES, HOST + uses[i].page * PAGE_BYTES, at);
        assert_int_equal(iommu_rig_stat(&rig, "iotlb_hits") - hits, uses[i].hit);
    }
    iommu_rig_release(&rig);
}

/* A way that invalidation emptied is used before any other entry is dropped. */
static void empty_ways_are_used_first(void **state)
{
    (void)state;
    struct iommu_params params = fake_params();
    params.iotlb_entries = 4;
    params.iotlb_ways = 4;
    struct rig rig;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 64 * KIB, 4 * KIB);
    for (uint64_t page = 0; page < 4; page++)
        took(&rig, ID_A, page * PAGE_BYTES, HOST + page * PAGE_BYTES, 0);
    assert_int_equal(iommu_unmap(domain, (struct iova){ 3 * PAGE_BYTES }, 4 * KIB), 0);
    took(&rig, ID_A, 4 * PAGE_BYTES, HOST + 4 * PAGE_BYTES, 10000000);
    for (uint64_t page = 0; page < 3; page++)
        assert_int_equal(took(&rig, ID_A, page * PAGE_BYTES, HOST + page * PAGE_BYTES, 20000000),
                         params.lookup_ps);
    iommu_rig_release(&rig);
}

static double miss_ratio(struct rig *rig, uint64_t base, uint64_t n_pages)
{
    uint64_t x = 88172645463325252u, misses = 0;
    sim_time at = 0;
    const unsigned n = 20000;
    for (unsigned i = 0; i < 2 * n; i++, at += 10000000) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        if (i == n)
            misses = iommu_rig_stat(rig, "iotlb_misses");
        uint64_t offset = x % n_pages * PAGE_BYTES;
        took(rig, ID_A, base + offset, HOST + offset, at);
    }
    return (double)(iommu_rig_stat(rig, "iotlb_misses") - misses) / n;
}

/* Random accesses over contiguous pages, as pcie-bench made them. Bounds: LRU cannot beat
 * 1 - entries / N; hashing spreads N pages unevenly, so that N = 128 misses a little (a perfect
 * spread would not miss at all) and N = 64 does not; measured: 0.00-0.01, 0.087, 0.54, 0.776,
 * 0.945. */
static void geometry_gives_the_published_ratios(void **state)
{
    (void)state;
    const struct {
        uint64_t n_pages;
        double lo, hi;
    } points[] = { { 64, 0, 0.02 },
                   { 128, 0.03, 0.17 },
                   { 256, 0.49, 0.58 },
                   { 512, 0.74, 0.79 },
                   { 2048, 0.93, 0.95 } };
    const uint64_t bases[] = { 0, 0x12345000, UINT64_C(0xfffff000), 0x7f0000000000 };
    struct iommu_params params = fake_params();
    for (size_t b = 0; b < SIM_N_ELEMENTS(bases); b++) {
        print_message("base %#14llx:", (unsigned long long)bases[b]);
        for (size_t p = 0; p < SIM_N_ELEMENTS(points); p++) {
            struct rig rig;
            iommu_rig_init(&rig, &params);
            struct iommu_domain *domain = domain_with(&rig, ID_A);
            map(domain, bases[b], HOST, points[p].n_pages * PAGE_BYTES, 4 * KIB);
            double ratio = miss_ratio(&rig, bases[b], points[p].n_pages);
            print_message(" %llu: %.3f", (unsigned long long)points[p].n_pages, ratio);
            assert_true(ratio >= points[p].lo && ratio <= points[p].hi);
            iommu_rig_release(&rig);
        }
        print_message("\n");
    }
}

/* Superpages take one entry each: 128 of them fit where 4 KiB pages of the same buffer do not. */
static void superpages_take_one_entry(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    params.iotlb_ways = params.iotlb_entries;
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 126 * 2 * MIB, 2 * MIB);
    map(domain, 8 * GIB, HOST + 8 * GIB, GIB, GIB);
    map(domain, 16 * GIB, HOST + 16 * GIB, 4 * KIB, 4 * KIB);
    sim_time at = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 126; i++, at += 10000000)
            took(&rig, ID_A, i * 2 * MIB + i, HOST + i * 2 * MIB + i, at);
        for (uint64_t i = 0; i < 8; i++, at += 10000000)
            took(&rig, ID_A, 8 * GIB + i * 100 * MIB, HOST + 8 * GIB + i * 100 * MIB, at);
        took(&rig, ID_A, 16 * GIB, HOST + 16 * GIB, at += 10000000);
    }
    assert_int_equal(iommu_rig_stat(&rig, "iotlb_misses"), 128);
    iommu_rig_release(&rig);
}

static void devices_of_a_domain_share(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    assert_true(iommu_domain_attach(domain, ID_B));
    assert_false(iommu_domain_attach(domain, ID_B)); /* it is attached */
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    /* Its own context entry, then the other's translation. */
    assert_int_equal(took(&rig, ID_B, 0, HOST, 9000000),
                     params.lookup_ps + iommu_rig_walk_ps(&rig, 2));
    assert_int_equal(took(&rig, ID_B, 0, HOST, 18000000), params.lookup_ps);
    assert_int_equal(iommu_rig_stat(&rig, "iotlb_misses"), 1);
    iommu_rig_release(&rig);
}

static void domains_are_apart(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *a = domain_with(&rig, ID_A), *b = domain_with(&rig, ID_B);
    map(a, 0, HOST, 8 * KIB, 4 * KIB);
    map(b, 0, HOST + GIB, 4 * KIB, 4 * KIB);
    for (sim_time at = 0; at < 30000000; at += 10000000) {
        took(&rig, ID_A, 0, HOST, at);
        took(&rig, ID_A, 0x1000, HOST + 0x1000, at);
        took(&rig, ID_B, 0, HOST + GIB, at);
        /* What only the other may reach, cached though it is. */
        assert_int_equal(iommu_rig_translate(&rig, ID_B, 0x1000, false, at).fault,
                         IOMMU_FAULT_READ_DENIED);
    }
    assert_int_equal(iommu_rig_stat(&rig, "iotlb_misses"), 3 + 3);
    iommu_rig_release(&rig);
}

/* A changed entry takes effect when it is invalidated, not before. */
static void stale_until_invalidated(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 8 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    took(&rig, ID_A, 0x1000, HOST + 0x1000, 0);
    uint64_t entry = iommu_rig_entry(&rig, ID_A, 0, 1);
    iommu_rig_poke(&rig, entry, (HOST + GIB) | VTD_PTE_RW);
    iommu_rig_poke(&rig, entry + 8, 0);
    took(&rig, ID_A, 0, HOST, 10000000);
    took(&rig, ID_A, 0x1000, HOST + 0x1000, 10000000);
    /* Page-selective, by the registers: one page, then both (mask 1). */
    uint64_t did = iommu_rig_peek(&rig, iommu_rig_context(&rig, ID_A) + 8) >> 8 & 0xffff;
    uint64_t command = VTD_IOTLB_IVT | (uint64_t)VTD_SELECTIVE << 60 | did << 32;
    iommu_reg_write(rig.iommu, VTD_IVA, 8, 0x0000 | VTD_QI_IOTLB_IH);
    iommu_reg_write(rig.iommu, VTD_IOTLB, 8, command);
    took(&rig, ID_A, 0, HOST + GIB, 20000000);
    took(&rig, ID_A, 0x1000, HOST + 0x1000, 20000000);
    iommu_reg_write(rig.iommu, VTD_IVA, 8, 0x0000 | 1);
    iommu_reg_write(rig.iommu, VTD_IOTLB, 8, command);
    assert_int_equal(iommu_reg_read(rig.iommu, VTD_IOTLB, 8) & VTD_IOTLB_IVT, 0);
    assert_int_equal(iommu_rig_translate(&rig, ID_A, 0x1000, false, 30000000).fault,
                     IOMMU_FAULT_READ_DENIED);
    iommu_rig_release(&rig);
}

/* A command of no granularity, or for more pages than CAP.MAMV, does nothing and says so. */
static void commands_that_make_no_sense(void **state)
{
    static const unsigned granularity[] = { 0, VTD_SELECTIVE, VTD_SELECTIVE, VTD_SELECTIVE };
    static const unsigned mask_log2[] = { 0, 19, 52, 18 };
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    iommu_rig_poke(&rig, iommu_rig_entry(&rig, ID_A, 0, 1), (HOST + GIB) | VTD_PTE_RW);
    uint64_t did = iommu_rig_peek(&rig, iommu_rig_context(&rig, ID_A) + 8) >> 8 & 0xffff;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(granularity); i++) {
        const bool good = i == 3;
        iommu_reg_write(rig.iommu, VTD_IVA, 8, mask_log2[i]);
        iommu_reg_write(rig.iommu, VTD_IOTLB, 8,
                        VTD_IOTLB_IVT | (uint64_t)granularity[i] << VTD_IOTLB_IIRG_LSB | did << 32);
        assert_int_equal(vtd_get(iommu_reg_read(rig.iommu, VTD_IOTLB, 8), 58, 57),
                         good ? VTD_SELECTIVE : 0);
        took(&rig, ID_A, 0, good ? HOST + GIB : HOST, 10000000 * (i + 1));
    }
    iommu_rig_release(&rig);
}

/* Paging-structure caches keep tables that memory no longer links, until IH = 0. */
static void stale_tables_until_invalidated(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    map(domain, 0, HOST, 2 * MIB, 4 * KIB);
    map(domain, 2 * MIB, HOST + GIB, 2 * MIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    uint64_t directory = iommu_rig_entry(&rig, ID_A, 0, 2);
    iommu_rig_poke(&rig, directory, iommu_rig_peek(&rig, directory + 8));
    took(&rig, ID_A, 0x1000, HOST + 0x1000, 10000000);
    uint64_t did = iommu_rig_peek(&rig, iommu_rig_context(&rig, ID_A) + 8) >> 8 & 0xffff;
    uint64_t command = VTD_IOTLB_IVT | (uint64_t)VTD_SELECTIVE << 60 | did << 32;
    iommu_reg_write(rig.iommu, VTD_IVA, 8, 0x2000 | VTD_QI_IOTLB_IH);
    iommu_reg_write(rig.iommu, VTD_IOTLB, 8, command);
    took(&rig, ID_A, 0x2000, HOST + 0x2000, 20000000);
    iommu_reg_write(rig.iommu, VTD_IVA, 8, 0x3000);
    iommu_reg_write(rig.iommu, VTD_IOTLB, 8, command);
    assert_int_equal(took(&rig, ID_A, 0x3000, HOST + GIB + 0x3000, 30000000),
                     params.lookup_ps + iommu_rig_walk_ps(&rig, 4));
    iommu_rig_release(&rig);
}

/* A domain's invalidation leaves the other domain's entries, tables and contexts alone. */
static void domain_invalidation_is_selective(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *a = domain_with(&rig, ID_A), *b = domain_with(&rig, ID_B);
    map(a, 0, HOST, 8 * KIB, 4 * KIB);
    map(b, 0, HOST + GIB, 8 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    took(&rig, ID_B, 0, HOST + GIB, 0);
    uint64_t did_a = iommu_rig_peek(&rig, iommu_rig_context(&rig, ID_A) + 8) >> 8 & 0xffff;
    sim_time lookup = params.lookup_ps;
    iommu_reg_write(rig.iommu, VTD_IOTLB, 8,
                    VTD_IOTLB_IVT | (uint64_t)VTD_DOMAIN << 60 | did_a << 32);
    assert_int_equal(took(&rig, ID_B, 0, HOST + GIB, 10000000), lookup);
    assert_int_equal(took(&rig, ID_B, 0x1000, HOST + GIB + 0x1000, 10000000),
                     lookup + iommu_rig_walk_ps(&rig, 1));
    assert_int_equal(took(&rig, ID_A, 0, HOST, 10000000), lookup + iommu_rig_walk_ps(&rig, 4));
    iommu_reg_write(rig.iommu, VTD_CCMD, 8, VTD_CCMD_ICC | (uint64_t)VTD_DOMAIN << 61 | did_a);
    assert_int_equal(took(&rig, ID_B, 0, HOST + GIB, 20000000), lookup);
    assert_int_equal(took(&rig, ID_A, 0, HOST, 20000000), lookup + iommu_rig_walk_ps(&rig, 2));
    iommu_rig_release(&rig);
}

static void context_stale_until_invalidated(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *a = domain_with(&rig, ID_A), *b = domain_with(&rig, ID_B);
    map(a, 0, HOST, 4 * KIB, 4 * KIB);
    map(b, 0, HOST + GIB, 4 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    uint64_t context_a = iommu_rig_context(&rig, ID_A), context_b = iommu_rig_context(&rig, ID_B);
    uint64_t did_a = iommu_rig_peek(&rig, context_a + 8) >> 8 & 0xffff;
    iommu_rig_poke(&rig, context_a, iommu_rig_peek(&rig, context_b));
    iommu_rig_poke(&rig, context_a + 8, iommu_rig_peek(&rig, context_b + 8));
    took(&rig, ID_A, 0, HOST, 10000000);
    /* Of another device, of another domain: no effect. Of this one: effect. */
    uint64_t command = VTD_CCMD_ICC | (uint64_t)VTD_SELECTIVE << 61;
    iommu_reg_write(rig.iommu, VTD_CCMD, 8, command | (uint64_t)ID_B << 16 | did_a);
    iommu_reg_write(rig.iommu, VTD_CCMD, 8, command | (uint64_t)ID_A << 16 | (did_a + 1));
    took(&rig, ID_A, 0, HOST, 20000000);
    iommu_reg_write(rig.iommu, VTD_CCMD, 8, command | (uint64_t)ID_A << 16 | did_a);
    assert_int_equal(iommu_reg_read(rig.iommu, VTD_CCMD, 8) & VTD_CCMD_ICC, 0);
    took(&rig, ID_A, 0, HOST + GIB, 30000000);
    iommu_rig_release(&rig);
}

static void detached_devices_reach_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = domain_with(&rig, ID_A);
    assert_true(iommu_domain_attach(domain, ID_A + 1));
    map(domain, 0, HOST, 4 * KIB, 4 * KIB);
    took(&rig, ID_A, 0, HOST, 0);
    took(&rig, ID_A + 1, 0, HOST, 0);
    iommu_domain_detach(domain, ID_A);
    struct iommu_translation t = iommu_rig_translate(&rig, ID_A, 0, false, 10000000);
    assert_int_equal(t.fault, IOMMU_FAULT_CONTEXT_NOT_PRESENT);
    assert_int_equal(t.hpa.v, 0);
    took(&rig, ID_A + 1, 0, HOST, 10000000);
    iommu_domain_detach(domain, ID_A + 1);
    assert_int_equal(iommu_rig_translate(&rig, ID_A + 1, 0, false, 10000000).fault,
                     IOMMU_FAULT_ROOT_NOT_PRESENT);
    iommu_rig_release(&rig);
}

static void parameters_are_checked(void **state)
{
    (void)state;
    struct iommu_params params = fake_params();
    assert_null(iommu_params_error(&params));
    params.iotlb_ways = 7;
    assert_non_null(iommu_params_error(&params));
    params = fake_params();
    params.pde_ways = 0;
    assert_non_null(iommu_params_error(&params));
    params.pde_entries = 0;
    assert_null(iommu_params_error(&params));
    params.levels = 6;
    assert_non_null(iommu_params_error(&params));
    params = fake_params();
    params.walkers = 0;
    assert_non_null(iommu_params_error(&params));
    params = fake_params();
    params.read_piece_bytes = 96;
    assert_non_null(iommu_params_error(&params));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unloaded_latency_is_the_formula),
        cmocka_unit_test(caches_left_out_cost_their_reads),
        cmocka_unit_test(off_and_pass_through),
        cmocka_unit_test(stamp_gets_the_whole_translation),
        cmocka_unit_test(walkers_bound_the_rate),
        cmocka_unit_test(free_walker_starts_at_once),
        cmocka_unit_test(walks_hold_the_next_up),
        cmocka_unit_test(invalidations_take_turns),
        cmocka_unit_test(same_page_is_joined),
        cmocka_unit_test(tables_are_known_when_read),
        cmocka_unit_test(context_is_joined),
        cmocka_unit_test(walker_is_free_when_its_reads_are_done),
        cmocka_unit_test(replacement_is_lru),
        cmocka_unit_test(empty_ways_are_used_first),
        cmocka_unit_test(geometry_gives_the_published_ratios),
        cmocka_unit_test(superpages_take_one_entry),
        cmocka_unit_test(devices_of_a_domain_share),
        cmocka_unit_test(domains_are_apart),
        cmocka_unit_test(stale_until_invalidated),
        cmocka_unit_test(commands_that_make_no_sense),
        cmocka_unit_test(stale_tables_until_invalidated),
        cmocka_unit_test(domain_invalidation_is_selective),
        cmocka_unit_test(context_stale_until_invalidated),
        cmocka_unit_test(detached_devices_reach_nothing),
        cmocka_unit_test(parameters_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
