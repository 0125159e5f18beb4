/*
 * Peer to peer between borrowed devices on fake hosts: every case with every combination of IOMMUs,
 * bytes checked both ways; what ends, what fails, who dies; and ten thousand borrows in random
 * order with mappings between the devices, after which no entry is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/lend_rig.h"

#define BORROWER 0
#define FIRST    1 /* has two devices to lend */
#define SECOND   2 /* the same */
#define N_HOSTS  3u
#define SIZE     3000u

struct peers {
    struct lf_rig *rig;
    struct attempt a[3]; /* both devices of the first lender, one of the second */
    struct lend_usage usage[N_HOSTS];
    struct lf_entries entries[N_HOSTS][LF_NTBS];
    uint64_t pages[N_HOSTS];
};

static struct lf_device *device(struct peers *p, unsigned host, unsigned i)
{
    return &p->rig->host[host].device[i];
}

static struct k_pci_dev *shadow(struct peers *p, unsigned i)
{
    return lend_borrow_device(p->a[i].borrow);
}

static void look(struct peers *p, struct lend_usage usage[N_HOSTS],
                 struct lf_entries entries[N_HOSTS][LF_NTBS], uint64_t pages[N_HOSTS])
{
    for (unsigned i = 0; i < N_HOSTS; i++) {
        struct lf_host *host = &p->rig->host[i];
        usage[i] = lend_usage(host->lend);
        pages[i] = host->kernel->iommu_pages_live;
        for (unsigned b = 0; b < host->n_ntbs; b++)
            entries[i][b] = lf_entries_of(&host->ntb[b]);
    }
}

/* Nothing has changed since the devices were borrowed: neither in drivers nor in chips. */
static void expect_no_trace(struct peers *p)
{
    struct lend_usage usage[N_HOSTS];
    struct lf_entries entries[N_HOSTS][LF_NTBS] = { 0 };
    uint64_t pages[N_HOSTS];
    look(p, usage, entries, pages);
    assert_memory_equal(usage, p->usage, sizeof usage);
    assert_memory_equal(entries, p->entries, sizeof entries);
    assert_memory_equal(pages, p->pages, sizeof pages);
}

/* Bit i of iommus: host i has one on. Two NTBs: the lenders' second ones are only used between
 * them, since that is where the devices are. */
static struct peers *peers_open(unsigned iommus, unsigned n_ntbs)
{
    struct peers *p = calloc(1, sizeof *p);
    p->rig = calloc(1, sizeof *p->rig);
    lend_rig_init(p->rig);
    p->rig->through_switch = true;
    for (unsigned i = 0; i < N_HOSTS; i++) {
        struct fake_options o = lend_plain;
        o.iommu = iommus >> i & 1;
        lf_host_add(p->rig, &o, i == BORROWER ? 1 : n_ntbs, i == BORROWER ? 1 : 2);
    }
    start_all(p->rig);
    for (unsigned i = 0; i < 3; i++) {
        p->a[i] = (struct attempt){ .id = DEVICE(i % 2), .peer = i < 2 ? FIRST + 1 : SECOND + 1 };
        lf_call(&p->rig->host[BORROWER], try_borrow, &p->a[i]);
        assert_int_equal(p->a[i].status, 0);
    }
    device(p, BORROWER, 0)->f.config[4] |= 4;
    look(p, p->usage, p->entries, p->pages);
    return p;
}

static void return_all(struct lf_host *host, void *arg)
{
    struct peers *p = arg;
    (void)host;
    for (unsigned i = 0; i < 3; i++)
        if (p->a[i].borrow != NULL)
            lend_return(p->a[i].borrow);
}

static void peers_close(struct peers *p)
{
    if (!p->rig->host[BORROWER].dead)
        lf_call(&p->rig->host[BORROWER], return_all, p);
    lf_close(p->rig);
    free(p->rig);
    free(p);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Bytes from the one into the other's buffer at offset, and others from there. */
static void expect_reach(struct lf_device *from, uint64_t dma, struct lf_device *to,
                         unsigned offset)
{
    uint8_t bytes[SIZE], there[SIZE];
    for (unsigned i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 5 + dma / 4096 + i / 256);
    assert_true(lf_device_dma(from, dma, true, SIZE, bytes));
    assert_memory_equal(&to->reg[LF_BUFFER + offset], bytes, SIZE);
    for (unsigned i = 0; i < SIZE; i++)
        to->reg[LF_BUFFER + offset + i] = (uint8_t)(i * 3 + 1);
    assert_true(lf_device_dma(from, dma, false, SIZE, there));
    assert_memory_equal(&to->reg[LF_BUFFER + offset], there, SIZE);
    memset(&to->reg[LF_BUFFER + offset], 0, SIZE);
}

static bool reaches(struct lf_device *from, uint64_t dma)
{
    uint8_t byte[64];
    return lf_device_dma(from, dma, false, sizeof byte, byte);
}

/* One mapping, used, undone, and gone. revoked: it reaches nothing afterwards. */
static void expect_pair(struct peers *p, struct k_pci_dev *source, struct lf_device *from,
                        struct k_pci_dev *target, struct lf_device *to, bool revoked)
{
    uint64_t dma = 0, other = 0;
    const unsigned offset = 40;
    assert_int_equal(k_dma_map_resource(&source->device, &target->device, 0, LF_BUFFER + offset,
                                        SIZE, K_DMA_BOTH, &dma),
                     0);
    expect_reach(from, dma, to, offset);
    assert_int_equal(k_dma_map_resource(&source->device, &target->device, 0, LF_BUFFER, 4096,
                                        K_DMA_BOTH, &other),
                     0);
    expect_reach(from, other, to, 0);
    k_dma_unmap_resource(&source->device, dma, SIZE, K_DMA_BOTH);
    expect_reach(from, other, to, 0);
    k_dma_unmap_resource(&source->device, other, 4096, K_DMA_BOTH);
    assert_int_equal(reaches(from, other), !revoked);
    expect_no_trace(p);
}

static void cases_body(struct lf_host *host, void *arg)
{
    struct peers *p = arg;
    struct lf_device *local = device(p, BORROWER, 0);
    const bool ours = host->kernel->options.iommu,
               first = p->rig->host[FIRST].kernel->options.iommu;
    uint64_t dma;
    /* In one tree without an IOMMU nobody keeps them apart: the bus address it is. */
    expect_pair(p, shadow(p, 0), device(p, FIRST, 0), shadow(p, 1), device(p, FIRST, 1), first);
    assert_int_equal(k_dma_map_resource(&shadow(p, 0)->device, &shadow(p, 1)->device, 0, 64, 64,
                                        K_DMA_BOTH, &dma),
                     0);
    assert_int_equal(dma == device(p, FIRST, 1)->f.pci.bar_base[0] + 64, !first);
    k_dma_unmap_resource(&shadow(p, 0)->device, dma, 64, K_DMA_BOTH);
    expect_pair(p, shadow(p, 0), device(p, FIRST, 0), &local->f.pci, local, true);
    expect_pair(p, shadow(p, 2), device(p, SECOND, 0), &local->f.pci, local, true);
    expect_pair(p, shadow(p, 1), device(p, FIRST, 1), shadow(p, 2), device(p, SECOND, 0), true);
    expect_pair(p, shadow(p, 2), device(p, SECOND, 0), shadow(p, 0), device(p, FIRST, 0), true);
    if (!ours) /* the fake's own devices are in no domain */
        expect_pair(p, &local->f.pci, local, shadow(p, 2), device(p, SECOND, 0), true);
}

static void test_cases(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++)
        for (unsigned n_ntbs = 1; n_ntbs < 3; n_ntbs++) {
            struct peers *p = peers_open(iommus, n_ntbs);
            lf_call(&p->rig->host[BORROWER], cases_body, p);
            for (unsigned i = 0; i < N_HOSTS; i++)
                assert_int_equal(p->rig->host[i].kernel->n_warnings, 0);
            peers_close(p);
        }
}

/* Each direction by itself, where there is an IOMMU to say so. */
static void direction_body(struct lf_host *host, void *arg)
{
    struct peers *p = arg;
    uint64_t dma;
    uint8_t bytes[64] = { 1 };
    (void)host;
    for (unsigned i = 1; i < 3; i++) {
        struct k_device *source = &shadow(p, 0)->device, *target = &shadow(p, i)->device;
        assert_int_equal(
            k_dma_map_resource(source, target, 0, LF_BUFFER, 4096, K_DMA_TO_DEVICE, &dma), 0);
        assert_true(lf_device_dma(device(p, FIRST, 0), dma, false, 64, bytes));
        assert_false(lf_device_dma(device(p, FIRST, 0), dma, true, 64, bytes));
        /* The page, and nothing beside it. */
        assert_false(lf_device_dma(device(p, FIRST, 0), dma + 4096, false, 64, bytes));
        assert_false(lf_device_dma(device(p, FIRST, 0), dma - 64, false, 64, bytes));
        k_dma_unmap_resource(source, dma, 4096, K_DMA_TO_DEVICE);
        assert_int_equal(
            k_dma_map_resource(source, target, 0, LF_BUFFER, 4096, K_DMA_FROM_DEVICE, &dma), 0);
        assert_false(lf_device_dma(device(p, FIRST, 0), dma, false, 64, bytes));
        assert_true(lf_device_dma(device(p, FIRST, 0), dma, true, 64, bytes));
        k_dma_unmap_resource(source, dma, 4096, K_DMA_FROM_DEVICE);
    }
}

static void test_directions(void **state)
{
    struct peers *p = peers_open(7, 1);
    (void)state;
    lf_call(&p->rig->host[BORROWER], direction_body, p);
    peers_close(p);
}

/* ---- When something ends --------------------------------------------------------------------- */

/* All entries but the last `left` free ones are in use. */
static void fill(struct lend_table *table, unsigned left)
{
    struct lend_entry *all = k_zalloc(table->n * sizeof all[0]);
    memcpy(all, table->entry, table->n_kept * sizeof all[0]);
    k_free(table->entry);
    table->entry = all;
    table->n_kept = table->n;
    for (unsigned i = 0; i < table->n && table->n_used + left < table->n; i++)
        if (table->entry[i].refs == 0) {
            table->entry[i].refs = 1;
            table->entry[i].value = UINT64_MAX;
            table->n_used++;
        }
}

static void empty(struct lend_table *table)
{
    for (unsigned i = 0; i < table->n; i++)
        if (table->entry[i].refs != 0 && table->entry[i].value == UINT64_MAX) {
            table->entry[i].refs = 0;
            table->n_used--;
        }
}

/* The table has ended but for `left` entries; nothing changes. */
static void ended(struct peers *p, struct lend_table *table, unsigned left, struct k_device *target,
                  const char *what)
{
    struct lend_error error = { 0 };
    uint64_t dma;
    fill(table, left);
    const unsigned n_used = table->n_used;
    int got = lend_peer_map(p->a[0].borrow, target, 0, LF_BUFFER, 4096, K_DMA_BOTH, &dma, &error);
    if (got != -ENOSPC || strstr(error.text, what) == NULL)
        fail_msg("%d: %s; expected %s", got, error.text, what);
    assert_int_equal(error.code, got);
    assert_int_equal(table->n_used, n_used);
    empty(table);
    expect_no_trace(p);
}

static void lacking_body(struct lf_host *host, void *arg)
{
    struct peers *p = arg;
    struct lend_error error;
    struct lend_adapter *second = lend_adapter_at(p->rig->host[SECOND].lend, 0);
    struct lend_adapter *first = lend_adapter_at(p->rig->host[FIRST].lend, 0);
    struct k_device *far = &shadow(p, 2)->device;
    uint64_t dma;
    /* Once, so that the lender has looked around. */
    assert_int_equal(lend_peer_map(p->a[0].borrow, far, 0, 0, 64, K_DMA_BOTH, &dma, &error), 0);
    assert_true(lend_peer_unmap(p->a[0].borrow, dma, 64));
    /* Windows at the source's lender; requesters at the target's, for the device, for the CPUs. */
    ended(p, &first->window[0], 0, far, "host 2: h2.10: 1 windows in a row for h2.20: 64 of 64");
    if (!host->kernel->options.iommu) /* else it lies beside our pool, in the same window */
        ended(p, &first->window[0], 0, &device(p, BORROWER, 0)->f.pci.device,
              "1 windows in a row for h2.20");
    ended(p, &second->incoming, 0, far, "host 3: h3.10: 1 incoming requester for h3.20: 248 of");
    ended(p, &second->incoming, 1, far, "host 3: h3.10: 1 incoming requester for h3.20: 248 of");
    /* No such bytes. */
    assert_int_equal(
        lend_peer_map(p->a[0].borrow, far, 0, LF_BAR_BYTES - 64, 65, K_DMA_BOTH, &dma, &error),
        -EINVAL);
    assert_int_equal(lend_peer_map(p->a[0].borrow, far, 1, 0, 64, K_DMA_BOTH, &dma, &error),
                     -EINVAL);
    assert_int_equal(
        lend_peer_map(p->a[0].borrow, &shadow(p, 0)->device, 0, 0, 64, K_DMA_BOTH, &dma, &error),
        -EINVAL);
    assert_false(lend_peer_unmap(p->a[0].borrow, 0x1234, 64));
    expect_no_trace(p);
}

static void test_lacking(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus += 7) {
        struct peers *p = peers_open(iommus, 1);
        lf_call(&p->rig->host[BORROWER], lacking_body, p);
        peers_close(p);
    }
}

static unsigned bits_32(const struct k_pci_dev *dev, void *context)
{
    (void)dev;
    (void)context;
    return 31;
}

static void narrow_body(struct lf_host *host, void *arg)
{
    struct attempt *a = arg;
    struct lend_error error;
    uint64_t dma;
    const bool on = host->rig->host[1].kernel->options.iommu;
    struct k_device *target = &lend_borrow_device(a[1].borrow)->device;
    /* Its neighbour's registers lie above 2 GiB. */
    int status = lend_peer_map(a[0].borrow, target, 0, 0, 64, K_DMA_BOTH, &dma, &error);
    assert_int_equal(status, on ? 0 : -ERANGE);
    if (!on)
        assert_non_null(strstr(error.text, "31 bits of address: it does not reach 0xe8100000"));
    else
        assert_true(dma < UINT64_C(1) << 31 && lend_peer_unmap(a[0].borrow, dma, 64));
    lend_return(a[0].borrow);
    lend_return(a[1].borrow);
}

static void test_narrow(void **state)
{
    (void)state;
    for (unsigned on = 0; on < 2; on++) {
        struct lf_rig *rig = calloc(1, sizeof *rig);
        struct lend_options o[2];
        struct attempt a[2] = { { .id = DEVICE(0), .peer = 2 }, { .id = DEVICE(1), .peer = 2 } };
        two_hosts(rig, true, on);
        lf_bar(&rig->host[1].ntb[0].f, 2, UINT64_C(1) << 30, UINT64_C(1) << 30);
        for (unsigned i = 0; i < 2; i++) {
            o[i] = lf_options(&rig->host[i]);
            o[i].dma_bits = bits_32;
            lf_host_start(&rig->host[i], &o[i]);
        }
        for (unsigned i = 0; i < 2; i++) {
            lf_call(&rig->host[0], try_borrow, &a[i]);
            if (a[i].status != 0)
                fail_msg("%s", a[i].error.text);
        }
        lf_call(&rig->host[0], narrow_body, a);
        lf_close(rig);
        free(rig);
    }
}

/* The n-th call of an IOMMU fails, for every n and every host. */
struct failing {
    struct peers *p;
    unsigned host, n_calls;
};

static void failing_body(struct lf_host *host, void *arg)
{
    struct failing *f = arg;
    struct kernel *kernel = f->p->rig->host[f->host].kernel;
    struct k_device *targets[] = { &shadow(f->p, 1)->device, &shadow(f->p, 2)->device,
                                   &device(f->p, BORROWER, 0)->f.pci.device };
    (void)host;
    for (unsigned t = 0; t < 3; t++)
        for (unsigned n = 1;; n++) {
            struct lend_error error = { 0 };
            uint64_t dma;
            kernel->iommu_calls = 0;
            kernel->iommu_fail_at = n;
            int status = lend_peer_map(f->p->a[0].borrow, targets[t], 0, LF_BUFFER, 4096,
                                       K_DMA_BOTH, &dma, &error);
            kernel->iommu_fail_at = 0;
            if (status == 0) {
                assert_true(lend_peer_unmap(f->p->a[0].borrow, dma, 4096));
                expect_no_trace(f->p);
                f->n_calls += n - 1;
                break;
            }
            assert_int_equal(status, -ENOMEM);
            assert_true(error.text[0] != '\0');
            expect_no_trace(f->p);
        }
}

static void test_failures(void **state)
{
    /* Borrower: export of the local target. Source's lender: domain, three times. Target's: two
     * requesters attached, and their registers if the path leads through another NTB. */
    static const unsigned calls[2][N_HOSTS] = { { 1, 3, 2 }, { 1, 3, 2 } };
    (void)state;
    for (unsigned n_ntbs = 1; n_ntbs < 3; n_ntbs++)
        for (unsigned i = 0; i < N_HOSTS; i++) {
            struct failing f = { peers_open(7, n_ntbs), i, 0 };
            lf_call(&f.p->rig->host[BORROWER], failing_body, &f);
            assert_int_equal(f.n_calls, calls[n_ntbs - 1][i]);
            peers_close(f.p);
        }
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* From everyone to everyone. */
static void map_all(struct lf_host *host, void *arg)
{
    struct peers *p = arg;
    uint64_t dma;
    (void)host;
    for (unsigned s = 0; s < 3; s++) {
        struct k_device *targets[] = { &shadow(p, (s + 1) % 3)->device,
                                       &shadow(p, (s + 2) % 3)->device,
                                       &device(p, BORROWER, 0)->f.pci.device };
        for (unsigned t = 0; t < 3; t++)
            assert_int_equal(k_dma_map_resource(&shadow(p, s)->device, targets[t], 0, LF_BUFFER,
                                                4096, K_DMA_BOTH, &dma),
                             0);
        assert_int_equal(k_dma_map_resource(&device(p, BORROWER, 0)->f.pci.device,
                                            &shadow(p, s)->device, 0, LF_BUFFER, 4096, K_DMA_BOTH,
                                            &dma),
                         0);
    }
}

static void expect_nothing_held(struct lf_host *host)
{
    struct lend_usage u = lend_usage(host->lend);
    struct lf_entries e = lf_entries_of(&host->ntb[0]);
    assert_int_equal(u.peers, 0);
    assert_int_equal(u.peer_entries, 0);
    assert_int_equal(u.lent + u.borrowed, 0);
    assert_int_equal(e.windows, u.windows);
    assert_int_equal(e.outgoing, u.outgoing + 1);
    assert_int_equal(e.incoming, u.incoming);
    assert_int_equal(u.outgoing, 0);
}

/* All go back with everything mapped: the drivers have forgotten it. */
static void test_forgotten(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct peers *p = peers_open(iommus, 1);
        lf_call(&p->rig->host[BORROWER], map_all, p);
        assert_int_equal(lend_usage(p->rig->host[BORROWER].lend).peers, 12);
        lf_call(&p->rig->host[BORROWER], return_all, p);
        for (unsigned i = 0; i < 3; i++)
            p->a[i].borrow = NULL;
        assert_true(p->rig->host[BORROWER].kernel->n_warnings > 0);
        for (unsigned i = 0; i < N_HOSTS; i++)
            expect_nothing_held(&p->rig->host[i]);
        peers_close(p);
    }
}

static bool any_lent(void *arg)
{
    struct peers *p = arg;
    return lend_usage(p->rig->host[FIRST].lend).lent + lend_usage(p->rig->host[SECOND].lend).lent !=
           0;
}

static void test_borrower_dies(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct peers *p = peers_open(iommus, 1);
        lf_call(&p->rig->host[BORROWER], map_all, p);
        lf_kill(&p->rig->host[BORROWER]);
        lf_run(p->rig, FAKE_MS(100), any_lent, p);
        lf_run(p->rig, FAKE_MS(1), NULL, NULL);
        expect_nothing_held(&p->rig->host[FIRST]);
        expect_nothing_held(&p->rig->host[SECOND]);
        peers_close(p);
    }
}

static bool there(void *arg)
{
    return lend_borrow_device(arg) != NULL;
}

/* The target's lender is gone; the source finds nothing there any more, and can be used on. */
static void test_target_lost(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct peers *p = peers_open(iommus, 1);
        lf_call(&p->rig->host[BORROWER], map_all, p);
        lf_kill(&p->rig->host[SECOND]);
        lf_run(p->rig, FAKE_MS(100), there, p->a[2].borrow);
        lf_run(p->rig, FAKE_MS(2), NULL, NULL);
        assert_null(shadow(p, 2));
        assert_non_null(shadow(p, 0));
        /* Between the first lender's own devices, and to our local one, all is as it was. */
        assert_int_equal(lend_usage(p->rig->host[FIRST].lend).peer_entries, 4 + 2);
        peers_close(p);
    }
}

/* Both lenders at once: what undoes the one's part of a pair asks the other, who is gone as well.
 * That keeps no heartbeat from going out and no peer from being given up. */
static void test_both_lenders_lost(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct peers *p = peers_open(iommus, 1);
        struct lf_host *borrower = &p->rig->host[BORROWER];
        lf_call(borrower, map_all, p);
        lf_kill(&p->rig->host[FIRST]);
        lf_kill(&p->rig->host[SECOND]);
        lf_run(p->rig, FAKE_MS(100), NULL, NULL);
        assert_int_equal(lend_usage(borrower->lend).connections, 0);
        expect_nothing_held(borrower);
        for (unsigned i = 0; i < 3; i++)
            assert_null(shadow(p, i));
        peers_close(p);
    }
}

static void reclaim_one(struct lf_host *host, void *arg)
{
    (void)arg;
    assert_int_equal(lend_reclaim(host->lend, DEVICE(1)), 0);
}

struct late {
    struct peers *p;
    uint64_t dma;
};

static void late_map(struct lf_host *host, void *arg)
{
    struct late *late = arg;
    (void)host;
    assert_int_equal(k_dma_map_resource(&shadow(late->p, 0)->device, &shadow(late->p, 1)->device, 0,
                                        LF_BUFFER, 4096, K_DMA_BOTH, &late->dma),
                     0);
}

static void late_unmap(struct lf_host *host, void *arg)
{
    struct late *late = arg;
    (void)host;
    k_dma_unmap_resource(&shadow(late->p, 0)->device, late->dma, 4096, K_DMA_BOTH);
}

/* The lender takes the target back: the source's driver undoes its mapping when it likes. */
static void test_target_reclaimed(void **state)
{
    (void)state;
    for (unsigned on = 0; on < 2; on++) {
        struct peers *p = peers_open(on << FIRST, 1);
        struct late late = { p, 0 };
        lf_call(&p->rig->host[BORROWER], late_map, &late);
        assert_true(reaches(device(p, FIRST, 0), late.dma));
        lf_call(&p->rig->host[FIRST], reclaim_one, NULL);
        lf_run(p->rig, FAKE_MS(100), there, p->a[1].borrow);
        lf_run(p->rig, FAKE_MS(1), NULL, NULL);
        if (on)
            assert_false(reaches(device(p, FIRST, 0), late.dma));
        assert_int_equal(lend_usage(p->rig->host[FIRST].lend).peer_entries, 0);
        assert_int_equal(lend_usage(p->rig->host[BORROWER].lend).peers, 1);
        lf_call(&p->rig->host[BORROWER], late_unmap, &late);
        assert_int_equal(lend_usage(p->rig->host[BORROWER].lend).peers, 0);
        peers_close(p);
    }
}

struct leaving {
    struct peers *p;
    uint64_t after_ps, dma; /* after: since the end has begun with the mapping */
    bool returned;
};

static void return_target(void *arg)
{
    struct leaving *leaving = arg;
    struct attempt *target = &leaving->p->a[2];
    lend_return(target->borrow);
    target->borrow = NULL;
    leaving->returned = true;
}

static void unmap_meanwhile(struct lf_host *host, void *arg)
{
    struct leaving *leaving = arg;
    struct k_device *source = &shadow(leaving->p, 0)->device;
    assert_int_equal(k_dma_map_resource(source, &shadow(leaving->p, 2)->device, 0, LF_BUFFER, 4096,
                                        K_DMA_BOTH, &leaving->dma),
                     0);
    k_thread_new(host->kernel, "return", 0, return_target, leaving);
    while (!host->lend->pairs->busy)
        k_sleep(host->kernel, FAKE_US(1));
    k_sleep(host->kernel, leaving->after_ps);
    k_dma_unmap_resource(source, leaving->dma, 4096, K_DMA_BOTH);
    while (!leaving->returned)
        k_sleep(host->kernel, FAKE_US(10));
}

/* The target goes back while the source's driver undoes its mapping: that is found whenever. */
static void test_target_leaves(void **state)
{
    (void)state;
    for (uint64_t us = 0; us < 30; us += 3) {
        struct peers *p = peers_open(7, 1);
        struct leaving leaving = { p, FAKE_US(us), 0, false };
        lf_call(&p->rig->host[BORROWER], unmap_meanwhile, &leaving);
        assert_int_equal(lend_usage(p->rig->host[BORROWER].lend).peers, 0);
        assert_int_equal(lend_usage(p->rig->host[FIRST].lend).peer_entries, 0);
        assert_int_equal(lend_usage(p->rig->host[SECOND].lend).lent, 0);
        peers_close(p);
    }
}

/* ---- Ten thousand borrows -------------------------------------------------------------------- */

#define RANDOM_HOSTS   4u
#define RANDOM_DEVICES 3u /* and one that stays at home */
#define HELD           6u
#define MAPPED         10u

struct mapping {
    struct k_device *source;
    struct lend_borrow *borrow; /* of the source; NULL: local */
    uint64_t dma;
};
struct random_host {
    uint64_t seed;
    unsigned n_borrows, wanted, n_maps, n_held, n_mapped;
    struct lend_borrow *held[HELD];
    struct mapping mapping[MAPPED];
};
static unsigned n_refused;

static unsigned draw(struct random_host *r, unsigned below)
{
    r->seed = r->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(r->seed >> 33) % below;
}

static void unmap_one(struct random_host *r, unsigned i)
{
    struct mapping m = r->mapping[i];
    r->mapping[i] = r->mapping[--r->n_mapped];
    k_dma_unmap_resource(m.source, m.dma, 4096, K_DMA_BOTH);
}

static void return_one(struct random_host *r)
{
    const unsigned i = draw(r, r->n_held);
    struct lend_borrow *borrow = r->held[i];
    r->held[i] = r->held[--r->n_held];
    const bool forgets = draw(r, 4) == 0; /* a driver that leaves its mappings */
    for (unsigned m = r->n_mapped; m-- > 0;)
        if (r->mapping[m].borrow == borrow && !forgets)
            unmap_one(r, m);
        else if (r->mapping[m].borrow == borrow)
            r->mapping[m] = r->mapping[--r->n_mapped];
    lend_return(borrow);
}

static void map_one(struct lf_host *host, struct random_host *r)
{
    const unsigned s = draw(r, r->n_held + 1), t = draw(r, r->n_held + 1);
    struct k_pci_dev *local = &host->device[RANDOM_DEVICES].f.pci;
    struct mapping m = { .borrow = s < r->n_held ? r->held[s] : NULL };
    struct k_pci_dev *target = t < r->n_held ? lend_borrow_device(r->held[t]) : local;
    if (s == t || r->n_mapped == MAPPED)
        return;
    m.source = s < r->n_held ? &lend_borrow_device(m.borrow)->device : &local->device;
    int status = k_dma_map_resource(m.source, &target->device, 0, LF_BUFFER, 4096, K_DMA_BOTH,
                                    &m.dma);
    if (status == -ENOSPC) { /* many windows are in use, and not a few requesters */
        n_refused++;
        return;
    }
    assert_int_equal(status, 0);
    r->mapping[r->n_mapped++] = m;
    r->n_maps++;
}

static void borrow_random(struct lf_host *host, struct random_host *r)
{
    struct attempt a = { .id = DEVICE(draw(r, RANDOM_DEVICES)), .peer = 1 + draw(r, RANDOM_HOSTS) };
    if (a.peer == host->number || r->n_held == HELD)
        return;
    try_borrow(host, &a);
    if (a.status == 0) {
        r->held[r->n_held++] = a.borrow;
        r->n_borrows++;
        if (draw(r, 16) == 0)
            driver_copies(lend_borrow_device(a.borrow), (uint8_t)r->seed);
    } else {
        assert_true(a.status == -EBUSY || a.status == -ENOSPC);
        k_sleep(host->kernel, FAKE_US(50));
    }
}

static void random_body(struct lf_host *host, void *arg)
{
    struct random_host *r = arg;
    lend_discover(host->lend);
    while (r->n_borrows < r->wanted) {
        const unsigned what = draw(r, 8);
        if (what < r->n_held)
            return_one(r);
        else if (what < 3)
            borrow_random(host, r);
        else if (what < 6 && r->n_held > 0)
            map_one(host, r);
        else if (r->n_mapped > 0)
            unmap_one(r, draw(r, r->n_mapped));
        else
            borrow_random(host, r);
    }
    while (r->n_mapped > 0)
        unmap_one(r, 0);
    while (r->n_held > 0)
        return_one(r);
}

static bool wanted(const struct k_pci_dev *dev, void *context)
{
    return lf_is_ours(dev, context) && dev->id != DEVICE(RANDOM_DEVICES);
}

static struct lf_rig *random_open(void)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct fake_options o = lend_plain;
    lend_rig_init(rig);
    rig->through_switch = true;
    o.stall_percent = 2;
    for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
        o.iommu = i % 2 == 0;
        lf_host_add(rig, &o, 1, RANDOM_DEVICES);
    }
    for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
        struct lf_host *host = &rig->host[i];
        struct lend_options options = lf_options(host);
        options.want = wanted;
        lf_host_start(host, &options);
        lf_device_add(host); /* it came later: its own driver has it */
        lf_driver_now = NULL;
        host->kernel->n_pci_drivers--; /* none, that is */
        k_pci_add(host->kernel, &host->device[RANDOM_DEVICES].f.pci);
        host->kernel->n_pci_drivers++;
        lf_driver_now = &lend_driver;
    }
    return rig;
}

static void test_no_leak(void **state)
{
    struct lf_rig *rig = random_open();
    struct random_host random[RANDOM_HOSTS];
    struct lf_call call[RANDOM_HOSTS + 1] = { { .host = NULL } };
    struct lend_usage before[RANDOM_HOSTS];
    struct lf_entries entries[RANDOM_HOSTS];
    uint64_t pages[RANDOM_HOSTS];
    unsigned n_maps = 0;
    (void)state;
    n_refused = 0;
    /* First a few, so that everybody is connected to everybody; then the rest. */
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
            random[i] = (struct random_host){ .seed = 23 * round + i + 1,
                                              .wanted = round == 0 ? 40 : 2500 };
            call[i] = (struct lf_call){ &rig->host[i], random_body, &random[i], false };
            k_thread_new(rig->host[i].kernel, "random", 1, lf_call_body, &call[i]);
        }
        lf_run(rig, FAKE_MS(40000), any_busy, call);
        assert_false(any_busy(call));
        lf_run(rig, FAKE_MS(1), NULL, NULL);
        for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
            struct lf_host *host = &rig->host[i];
            struct lend_usage now = lend_usage(host->lend);
            struct lf_entries e = lf_entries_of(&host->ntb[0]);
            assert_int_equal(now.peers + now.peer_entries, 0);
            assert_int_equal(e.windows, now.windows);
            assert_int_equal(e.outgoing, now.outgoing + 1);
            assert_int_equal(e.incoming, now.incoming);
            if (round == 0) {
                before[i] = now;
                entries[i] = e;
                pages[i] = host->kernel->iommu_pages_live;
            }
            expect_same(&before[i], &now);
            assert_memory_equal(&entries[i], &e, sizeof e);
            assert_int_equal(host->kernel->iommu_pages_live, pages[i]);
            assert_int_equal(host->kernel->dma_live, 0);
            assert_null(host->kernel->resources);
            n_maps += random[i].n_maps;
        }
    }
    assert_int_equal(n_driven, 0);
    assert_int_equal(n_probed, RANDOM_HOSTS * 2540);
    assert_true(n_maps > 5000);
    lf_close(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_directions),
        cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_borrower_dies),
        cmocka_unit_test(test_target_lost),
        cmocka_unit_test(test_both_lenders_lost),
        cmocka_unit_test(test_target_reclaimed),
        cmocka_unit_test(test_target_leaves),
        cmocka_unit_test(test_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
