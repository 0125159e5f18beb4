/* Page tables: map and unmap against a reference, errors that change nothing, no page lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/iommu_fake.h"

#include <errno.h>

#define ID   0x0100
#define RW   (IOMMU_READ | IOMMU_WRITE)
#define KIB  UINT64_C(1024)
#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define HOST (UINT64_C(1) << 40)

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x * UINT64_C(0x2545f4914f6cdd1d) >> 8;
}

static int map(struct iommu_domain *domain, uint64_t iova, uint64_t hpa, uint64_t bytes,
               uint64_t page_bytes)
{
    return iommu_map(domain, (struct iova){ iova }, (struct hpa){ hpa }, bytes, page_bytes, RW);
}

static int unmap(struct iommu_domain *domain, uint64_t iova, uint64_t bytes)
{
    return iommu_unmap(domain, (struct iova){ iova }, bytes);
}

static void faults_drain(struct rig *rig)
{
    uint16_t id;
    struct iova iova;
    bool write;
    enum iommu_fault reason;
    while (iommu_driver_fault(rig->driver, &id, &iova, &write, &reason))
        ;
}

static void expect_at(struct rig *rig, uint64_t iova, uint64_t hpa)
{
    struct iommu_translation t = iommu_rig_translate_later(rig, ID, iova, true);
    assert_int_equal(t.fault, IOMMU_OK);
    assert_int_equal(t.hpa.v, hpa);
}

static void expect_nothing_at(struct rig *rig, uint64_t iova)
{
    assert_int_equal(iommu_rig_translate_later(rig, ID, iova, true).fault,
                     IOMMU_FAULT_WRITE_DENIED);
    faults_drain(rig);
}

static struct iommu_domain *start(struct rig *rig, unsigned levels)
{
    struct iommu_params params = fake_params();
    params.levels = levels;
    iommu_rig_init(rig, &params);
    struct iommu_domain *domain = iommu_domain_new(rig->driver);
    assert_true(iommu_domain_attach(domain, ID));
    return domain;
}

static void bad_arguments(void **state)
{
    (void)state;
    for (unsigned levels = 3; levels <= 5; levels++) {
        struct rig rig;
        struct iommu_domain *domain = start(&rig, levels);
        uint64_t limit = UINT64_C(1) << (12 + 9 * levels);
        uint64_t before = iommu_driver_table_bytes(rig.driver);
        assert_int_equal(map(domain, 0, HOST, 4 * KIB, 8 * KIB), -EINVAL);
        assert_int_equal(map(domain, 0, HOST, 0, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, 0x800, HOST, 4 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, 0, HOST + 0x800, 4 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, 0, HOST, 6 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, MIB, HOST, 2 * MIB, 2 * MIB), -EINVAL);
        assert_int_equal(map(domain, 0, HOST + MIB, 2 * MIB, 2 * MIB), -EINVAL);
        assert_int_equal(map(domain, 0, HOST, 3 * MIB, 2 * MIB), -EINVAL);
        assert_int_equal(map(domain, 0, HOST, 2 * MIB, GIB), -EINVAL);
        assert_int_equal(map(domain, limit, HOST, 4 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, limit - 4 * KIB, HOST, 8 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, UINT64_MAX - 0xfff, HOST, 8 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(map(domain, 0, UINT64_C(1) << 52, 4 * KIB, 4 * KIB), -EINVAL);
        assert_int_equal(
            iommu_map(domain, (struct iova){ 0 }, (struct hpa){ HOST }, 4 * KIB, 4 * KIB, 0),
            -EINVAL);
        assert_int_equal(
            iommu_map(domain, (struct iova){ 0 }, (struct hpa){ HOST }, 4 * KIB, 4 * KIB, 4),
            -EINVAL);
        assert_int_equal(unmap(domain, 0, 0), -EINVAL);
        assert_int_equal(unmap(domain, 0x800, 4 * KIB), -EINVAL);
        assert_int_equal(unmap(domain, limit, 4 * KIB), -EINVAL);
        assert_int_equal(iommu_driver_table_bytes(rig.driver), before);
        /* The last page. */
        assert_int_equal(map(domain, limit - 4 * KIB, HOST, 4 * KIB, 4 * KIB), 0);
        expect_at(&rig, limit - 1, HOST + 0xfff);
        iommu_rig_release(&rig);
    }
}

/* Which lines a caller has to store: an entry in each table of a new path, the entries of the
 * pages, and those that an unmapping clears with the command in the queue. */
static void written_lines_are_told(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_run run[IOMMU_RUNS_MAX];
    struct iommu_domain *domain = start(&rig, 4);
    assert_int_equal(map(domain, 0, HOST, 12 * KIB, 4 * KIB), 0);
    assert_int_equal(iommu_driver_written(rig.driver, run), 4);
    for (unsigned level = 4; level >= 1; level--) {
        assert_int_equal(run[4 - level].first.v, iommu_rig_entry(&rig, ID, 0, level));
        assert_int_equal(run[4 - level].bytes, 64);
    }
    const uint64_t entries = run[3].first.v;
    assert_int_equal(map(domain, 12 * KIB, HOST + 12 * KIB, 64 * KIB, 4 * KIB), 0);
    assert_int_equal(iommu_driver_written(rig.driver, run), 1); /* entries 3 to 18 */
    assert_int_equal(run[0].first.v, entries);
    assert_int_equal(run[0].bytes, 3 * 64);
    assert_int_equal(unmap(domain, 32 * KIB, 4 * KIB), 0);
    assert_int_equal(iommu_driver_written(rig.driver, run), 2);
    assert_int_equal(run[0].first.v, entries + 64);
    assert_int_equal(run[0].bytes, 64);
    assert_int_equal(run[1].bytes, 64);
    /* One that fails writes nothing. */
    assert_int_equal(map(domain, 0, HOST, 4 * KIB, 4 * KIB), -EEXIST);
    assert_int_equal(iommu_driver_written(rig.driver, run), 0);
    iommu_domain_free(domain);
    iommu_rig_release(&rig);
}

static void failure_changes_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_domain *domain = start(&rig, 4);
    assert_int_equal(map(domain, GIB, HOST, 4 * KIB, 4 * KIB), 0);
    uint64_t before = iommu_driver_table_bytes(rig.driver);
    /* In the way at the very end of a range over three tables. */
    assert_int_equal(map(domain, GIB - 4 * MIB, HOST, 4 * MIB + 4 * KIB, 4 * KIB), -EEXIST);
    assert_int_equal(map(domain, GIB - 4 * MIB, HOST, 6 * MIB, 2 * MIB), -EEXIST);
    assert_int_equal(map(domain, 0, HOST, 2 * GIB, GIB), -EEXIST);
    assert_int_equal(iommu_driver_table_bytes(rig.driver), before);
    expect_nothing_at(&rig, GIB - 4 * MIB);
    /* Not enough pages: three tables are needed (1 directory, 2 last-level). */
    for (uint64_t pages = 0; pages < 3; pages++) {
        rig.fake.pages_left = pages;
        assert_int_equal(map(domain, GIB - 4 * MIB, HOST, 4 * MIB, 4 * KIB), -ENOMEM);
        assert_int_equal(rig.fake.pages_left, pages);
        assert_int_equal(iommu_driver_table_bytes(rig.driver), before);
        expect_nothing_at(&rig, GIB - 4 * MIB);
    }
    rig.fake.pages_left = 3;
    assert_int_equal(map(domain, GIB - 4 * MIB, HOST, 4 * MIB, 4 * KIB), 0);
    rig.fake.pages_left = UINT64_MAX / 2;
    /* Unmap: a hole at the end, a superpage that would be split. */
    assert_int_equal(unmap(domain, GIB - 4 * MIB, 4 * MIB + 8 * KIB), -ENOENT);
    expect_at(&rig, GIB - 4 * MIB, HOST);
    expect_at(&rig, GIB, HOST);
    assert_int_equal(map(domain, 2 * MIB + GIB, HOST, 4 * MIB, 2 * MIB), 0);
    assert_int_equal(unmap(domain, 2 * MIB + GIB, 3 * MIB), -EINVAL);
    assert_int_equal(unmap(domain, 3 * MIB + GIB, MIB), -EINVAL);
    expect_at(&rig, 2 * MIB + GIB, HOST);
    assert_int_equal(unmap(domain, 2 * MIB + GIB, 2 * MIB), 0);
    expect_nothing_at(&rig, 2 * MIB + GIB);
    expect_at(&rig, 4 * MIB + GIB, HOST + 2 * MIB);
    iommu_rig_release(&rig);
}

/* Without pages there is no driver, no domain, no attachment; and nothing is lost. */
static void running_out_of_pages(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_hardware(&rig, &params);
    struct iommu_driver_host host = fake_driver_host(&rig.fake);
    for (uint64_t pages = 0; pages < 3; pages++) {
        rig.fake.pages_left = pages;
        assert_null(iommu_driver_new(rig.iommu, &host));
        assert_int_equal(rig.fake.n_live, 0);
    }
    rig.fake.pages_left = 3;
    rig.driver = iommu_driver_new(rig.iommu, &host);
    assert_non_null(rig.driver);
    assert_null(iommu_domain_new(rig.driver));
    assert_false(iommu_attach_pass_through(rig.driver, ID));
    uint64_t address;
    uint32_t data;
    assert_int_equal(iommu_irte_new(rig.driver, ID, 0, 0, &address, &data), -ENOMEM);
    rig.fake.pages_left = 1;
    struct iommu_domain *domain = iommu_domain_new(rig.driver);
    assert_non_null(domain);
    assert_false(iommu_domain_attach(domain, ID));
    iommu_rig_release(&rig);
}

static void unmap_takes_effect(void **state)
{
    (void)state;
    const struct {
        uint64_t iova, bytes, page_bytes;
    } cases[] = {
        { 0, 4 * KIB, 4 * KIB },
        { 0x7000, 12 * KIB, 4 * KIB },           /* not aligned to its size */
        { 2 * MIB - 4 * KIB, 8 * KIB, 4 * KIB }, /* over a table's end */
        { 2 * MIB, 2 * MIB, 4 * KIB },           /* a whole table goes */
        { GIB - 2 * MIB, 6 * MIB, 2 * MIB },
        { 3 * GIB, 2 * GIB, GIB }, /* more than one page-selective command covers */
        { GIB, GIB, 2 * MIB },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct rig rig;
        struct iommu_domain *domain = start(&rig, 4);
        uint64_t iova = cases[i].iova, bytes = cases[i].bytes;
        for (unsigned round = 0; round < 3; round++) {
            uint64_t hpa = HOST + round * 16 * GIB;
            assert_int_equal(map(domain, iova, hpa, bytes, cases[i].page_bytes), 0);
            for (unsigned n = 0; n < 2; n++) {
                expect_at(&rig, iova, hpa);
                expect_at(&rig, iova + bytes - 1, hpa + bytes - 1);
                expect_at(&rig, iova + bytes / 2, hpa + bytes / 2);
            }
            assert_int_equal(unmap(domain, iova, bytes), 0);
            expect_nothing_at(&rig, iova);
            expect_nothing_at(&rig, iova + bytes - 1);
            expect_nothing_at(&rig, iova + bytes / 2);
        }
        iommu_rig_release(&rig);
    }
}

/* A superpage goes where an empty table was left; the hardware must not use that any more. */
static void superpage_over_empty_table(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_domain *domain = start(&rig, 4);
    assert_int_equal(map(domain, 0, HOST, 8 * KIB, 4 * KIB), 0);
    expect_at(&rig, 0, HOST);
    assert_int_equal(unmap(domain, 0, 4 * KIB), 0);
    assert_int_equal(map(domain, 0, HOST + GIB, 2 * MIB, 2 * MIB), -EEXIST);
    assert_int_equal(unmap(domain, 4 * KIB, 4 * KIB), 0);
    uint64_t before = iommu_driver_table_bytes(rig.driver);
    assert_int_equal(map(domain, 0, HOST + GIB, 2 * MIB, 2 * MIB), 0);
    assert_int_equal(iommu_driver_table_bytes(rig.driver), before - PAGE_BYTES);
    expect_at(&rig, 0, HOST + GIB);
    expect_at(&rig, MIB, HOST + GIB + MIB);
    /* The same one level up, over a directory with an empty table. */
    assert_int_equal(map(domain, 4 * MIB, HOST, 4 * KIB, 4 * KIB), 0);
    expect_at(&rig, 4 * MIB, HOST);
    assert_int_equal(unmap(domain, 4 * MIB, 4 * KIB), 0);
    assert_int_equal(unmap(domain, 0, 2 * MIB), 0);
    assert_int_equal(map(domain, 0, HOST + 2 * GIB, GIB, GIB), 0);
    assert_int_equal(iommu_driver_table_bytes(rig.driver), before - 2 * PAGE_BYTES);
    expect_at(&rig, 4 * MIB, HOST + 2 * GIB + 4 * MIB);
    iommu_rig_release(&rig);
}

/* ---- Random operations against a reference --------------------------------------------------- */

#define N_PAGES  UINT64_C(4096) /* 16 MiB around a 1 GiB boundary */
#define REF_BASE (GIB - 8 * MIB)
#define N_PER_2M UINT64_C(512)

struct reference {
    uint64_t hpa[N_PAGES]; /* 0: nothing */
    bool large[N_PAGES];
    uint8_t permissions[N_PAGES];
};

static int reference_map(struct reference *ref, uint64_t first, uint64_t n, uint64_t hpa,
                         bool large, unsigned permissions)
{
    for (uint64_t i = first; i < first + n; i++)
        if (ref->hpa[i] != 0)
            return -EEXIST;
    for (uint64_t i = 0; i < n; i++) {
        ref->hpa[first + i] = hpa + i * PAGE_BYTES;
        ref->large[first + i] = large;
        ref->permissions[first + i] = (uint8_t)permissions;
    }
    return 0;
}

/* What stands in the way first decides. */
static int reference_unmap(struct reference *ref, uint64_t first, uint64_t n)
{
    uint64_t last = first + n - 1;
    for (uint64_t i = first; i <= last; i++) {
        if (ref->hpa[i] == 0)
            return -ENOENT;
        uint64_t start_page = i & ~(N_PER_2M - 1);
        if (ref->large[i] && (start_page < first || start_page + N_PER_2M - 1 > last))
            return -EINVAL;
    }
    for (uint64_t i = first; i <= last; i++)
        ref->hpa[i] = 0;
    return 0;
}

static void check_page(struct rig *rig, const struct reference *ref, uint64_t page, bool write,
                       uint64_t offset)
{
    struct iommu_translation t =
        iommu_rig_translate_later(rig, ID, REF_BASE + page * PAGE_BYTES + offset, write);
    unsigned needed = write ? IOMMU_WRITE : IOMMU_READ;
    if (ref->hpa[page] != 0 && (ref->permissions[page] & needed) != 0) {
        assert_int_equal(t.fault, IOMMU_OK);
        assert_int_equal(t.hpa.v, ref->hpa[page] + offset);
    } else {
        assert_int_equal(t.fault, write ? IOMMU_FAULT_WRITE_DENIED : IOMMU_FAULT_READ_DENIED);
    }
}

static void random_step(struct rig *rig, struct iommu_domain *domain, struct reference *ref,
                        uint64_t *x)
{
    bool large = next_random(x) % 4 == 0;
    uint64_t unit = large ? N_PER_2M : 1;
    uint64_t first = next_random(x) % (N_PAGES / unit) * unit;
    uint64_t most = SIM_MIN(N_PAGES - first, large ? 3 * unit : UINT64_C(700)) / unit;
    uint64_t n = (1 + next_random(x) % most) * unit;
    if (!large && next_random(x) % 2 == 0)
        n = 1 + next_random(x) % SIM_MIN(most, UINT64_C(8));
    uint64_t iova = REF_BASE + first * PAGE_BYTES;
    if (next_random(x) % 2 == 0) {
        uint64_t hpa = HOST + next_random(x) % 4096 * 64 * MIB + (large ? 0 : 0x5000);
        unsigned permissions = (unsigned)(next_random(x) % 3) + 1;
        assert_int_equal(iommu_map(domain, (struct iova){ iova }, (struct hpa){ hpa },
                                   n * PAGE_BYTES, unit * PAGE_BYTES, permissions),
                         reference_map(ref, first, n, hpa, large, permissions));
    } else {
        assert_int_equal(unmap(domain, iova, n * PAGE_BYTES), reference_unmap(ref, first, n));
    }
    for (unsigned i = 0; i < 16; i++) {
        uint64_t page = i < 8 ? first + next_random(x) % n : next_random(x) % N_PAGES;
        check_page(rig, ref, page, next_random(x) % 2, next_random(x) % PAGE_BYTES);
    }
    faults_drain(rig);
}

static void random_against_reference(void **state)
{
    (void)state;
    static struct reference ref;
    for (unsigned levels = 3; levels <= 5; levels++) {
        struct rig rig;
        struct iommu_params params = fake_params();
        params.levels = levels;
        iommu_rig_init(&rig, &params);
        uint64_t before = iommu_driver_table_bytes(rig.driver), live = rig.fake.n_live;
        struct iommu_domain *domain = iommu_domain_new(rig.driver);
        assert_true(iommu_domain_attach(domain, ID));
        memset(&ref, 0, sizeof(ref));
        uint64_t x = 88172645463325252u + levels;
        unsigned done = 0;
        for (unsigned step = 0; step < 4000; step++) {
            random_step(&rig, domain, &ref, &x);
            for (uint64_t page = 0; step % 200 == 199 && page < N_PAGES; page++) {
                check_page(&rig, &ref, page, false, 0);
                check_page(&rig, &ref, page, true, 0xfff);
                done += ref.hpa[page] != 0;
            }
        }
        assert_true(done > 10000); /* of 81,920: the space was neither empty nor full */
        assert_true(done < 70000);
        iommu_domain_free(domain);
        assert_int_equal(iommu_driver_table_bytes(rig.driver), before);
        assert_int_equal(rig.fake.n_live, live);
        iommu_rig_release(&rig);
    }
}

static void domains_come_and_go(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    uint64_t before = iommu_driver_table_bytes(rig.driver);
    struct iommu_domain *domains[100];
    uint16_t did[100];
    for (unsigned i = 0; i < 100; i++) {
        domains[i] = iommu_domain_new(rig.driver);
        uint16_t id = (uint16_t)(i * 97);
        assert_true(iommu_domain_attach(domains[i], id));
        did[i] = (uint16_t)(iommu_rig_peek(&rig, iommu_rig_context(&rig, id) + 8) >> 8);
        for (unsigned n = 0; n < i; n++)
            assert_int_not_equal(did[i], did[n]);
        assert_int_equal(map(domains[i], 0, HOST + i * GIB, 4 * KIB, 4 * KIB), 0);
    }
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(iommu_rig_translate_later(&rig, (uint16_t)(i * 97), 0, false).hpa.v,
                         HOST + i * GIB);
    for (unsigned i = 0; i < 100; i += 2)
        iommu_domain_free(domains[i]);
    for (unsigned i = 0; i < 100; i++) {
        struct iommu_translation t = iommu_rig_translate_later(&rig, (uint16_t)(i * 97), 0, false);
        assert_int_equal(t.fault == IOMMU_OK, i % 2);
        assert_int_equal(t.hpa.v, i % 2 != 0 ? HOST + i * GIB : 0);
    }
    for (unsigned i = 1; i < 100; i += 2)
        iommu_domain_free(domains[i]);
    assert_int_equal(iommu_driver_table_bytes(rig.driver), before);
    iommu_rig_release(&rig);
}

/* All 16 bits of identifiers are given out before one comes back, with nothing left behind. */
static void identifiers_go_round(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_params params = fake_params();
    iommu_rig_init(&rig, &params);
    struct iommu_domain *domain = iommu_domain_new(rig.driver);
    assert_true(iommu_domain_attach(domain, ID));
    uint64_t first = iommu_rig_peek(&rig, iommu_rig_context(&rig, ID) + 8) >> 8 & 0xffff;
    assert_int_equal(map(domain, 0, HOST, 4 * KIB, 4 * KIB), 0);
    expect_at(&rig, 0, HOST);
    iommu_domain_free(domain);
    uint64_t n = 0, did;
    do { /* the numbers go round */
        domain = iommu_domain_new(rig.driver);
        assert_true(iommu_domain_attach(domain, ID));
        did = iommu_rig_peek(&rig, iommu_rig_context(&rig, ID) + 8) >> 8 & 0xffff;
        assert_in_range(did, 2, 65535);
        n++;
        if (did != first)
            iommu_domain_free(domain);
    } while (did != first);
    assert_int_equal(n, 65534);
    expect_nothing_at(&rig, 0);
    iommu_rig_release(&rig);
}

/* A driver after one that just stopped (a crash) finds stale caches, faults and a used queue, and
 * is not misled; here the first is still there to clean up behind itself. */
static void driver_after_crash(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_domain *domain = start(&rig, 4);
    struct iommu_driver *first = rig.driver;
    assert_int_equal(map(domain, 0, HOST, 8 * KIB, 4 * KIB), 0);
    expect_at(&rig, 0, HOST);
    assert_int_equal(iommu_rig_translate_later(&rig, ID, GIB, false).fault,
                     IOMMU_FAULT_READ_DENIED);
    uint64_t queue = iommu_reg_read(rig.iommu, VTD_IQA, 8);
    uint64_t tail = iommu_reg_read(rig.iommu, VTD_IQT, 8);
    iommu_reg_write(rig.iommu, VTD_GCMD, 4, 0);

    struct iommu_driver_host host = fake_driver_host(&rig.fake);
    rig.driver = iommu_driver_new(rig.iommu, &host);
    assert_int_equal(iommu_reg_read(rig.iommu, VTD_FSTS, 4) & VTD_FSTS_PPF, 0);
    assert_int_equal(iommu_rig_translate_later(&rig, ID, 0, false).fault,
                     IOMMU_FAULT_ROOT_NOT_PRESENT);
    assert_int_equal(iommu_reg_read(rig.iommu, VTD_FSTS, 4), VTD_FSTS_PPF); /* record 0 again */
    faults_drain(&rig);
    domain = iommu_domain_new(rig.driver); /* the same identifier as before */
    assert_true(iommu_domain_attach(domain, ID));
    expect_nothing_at(&rig, 0);
    expect_nothing_at(&rig, 4 * KIB);

    iommu_driver_free(rig.driver);
    rig.driver = first;
    iommu_reg_write(rig.iommu, VTD_IQA, 8, queue);
    iommu_reg_write(rig.iommu, VTD_IQT, 8, tail);
    iommu_reg_write(rig.iommu, VTD_GCMD, 4, VTD_GCMD_QIE); /* does its commands once more */
    iommu_rig_release(&rig);
}

/* A second driver after a first finds the hardware usable. */
static void driver_restarts(void **state)
{
    (void)state;
    struct rig rig;
    struct iommu_domain *domain = start(&rig, 4);
    assert_int_equal(map(domain, 0, HOST, 4 * KIB, 4 * KIB), 0);
    expect_at(&rig, 0, HOST);
    assert_int_equal(iommu_rig_translate_later(&rig, ID, GIB, false).fault,
                     IOMMU_FAULT_READ_DENIED);
    uint64_t address;
    uint32_t data;
    assert_true(iommu_irte_new(rig.driver, ID, 1, 2, &address, &data) >= 0);
    iommu_driver_free(rig.driver);
    assert_int_equal(rig.fake.n_live, 0);
    assert_int_equal(iommu_rig_translate_later(&rig, ID, GIB, false).hpa.v, GIB);
    struct iommu_driver_host host = fake_driver_host(&rig.fake);
    rig.driver = iommu_driver_new(rig.iommu, &host);
    assert_int_equal(iommu_rig_translate_later(&rig, ID, 0, false).fault,
                     IOMMU_FAULT_ROOT_NOT_PRESENT);
    faults_drain(&rig);
    domain = iommu_domain_new(rig.driver);
    assert_true(iommu_domain_attach(domain, ID));
    assert_int_equal(map(domain, 0, HOST + GIB, 4 * KIB, 4 * KIB), 0);
    expect_at(&rig, 0, HOST + GIB);
    iommu_rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(written_lines_are_told),
        cmocka_unit_test(failure_changes_nothing),
        cmocka_unit_test(running_out_of_pages),
        cmocka_unit_test(unmap_takes_effect),
        cmocka_unit_test(superpage_over_empty_table),
        cmocka_unit_test(random_against_reference),
        cmocka_unit_test(domains_come_and_go),
        cmocka_unit_test(identifiers_go_round),
        cmocka_unit_test(driver_after_crash),
        cmocka_unit_test(driver_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
