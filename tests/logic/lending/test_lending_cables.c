/*
 * Cables that come out and back, at every time of a borrow and for every time, on fake hosts: the
 * borrower's, the lender's, that of the switch between them (neither sees it). Nobody's device
 * reaches memory that has a new owner meanwhile; afterwards every borrow works again and the tables
 * hold what they held before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/lend_rig.h"

#define BORROWER 0
#define LENDER   1
#define THIRD    2

enum cable { BORROWERS, LENDERS, MIDDLE, N_CABLES };

static struct lf_rig *rig_open(unsigned borrower_iommu, unsigned lender_iommu)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct fake_options o = lend_plain;
    lend_rig_init(rig);
    rig->through_switch = true;
    for (unsigned i = 0; i < 3; i++) {
        o.iommu = i == BORROWER ? borrower_iommu : lender_iommu;
        lf_host_add(rig, &o, 1, i == BORROWER ? 0 : 1);
        if (i != BORROWER) {
            rig->host[i].device[0].f.flr = true;
            lf_put(&rig->host[i].device[0].f, LF_CAP_PCIE + 4, 4, 0x10000000);
        }
    }
    start_all(rig);
    return rig;
}

/* MIDDLE: a cable between two switches, that both ends' adapters take no notice of. */
static void cable_set(struct lf_rig *rig, enum cable cable, bool out)
{
    struct lf_ntb *ntb = &rig->host[cable == LENDERS ? LENDER : BORROWER].ntb[0];
    if (cable == MIDDLE)
        ntb->silent = out;
    else
        lf_cut(ntb, out);
}

/* ---- What the hosts do ----------------------------------------------------------------------- */

struct work {
    unsigned done;
    bool stop;
};

/* Borrows, copies, returns, over and over, whatever fails. */
static void work_body(struct lf_host *host, void *arg)
{
    struct work *work = arg;
    while (!work->stop) {
        struct attempt a = { .id = DEVICE(0), .peer = LENDER + 1 };
        try_borrow(host, &a);
        if (a.status != 0) {
            k_sleep(host->kernel, FAKE_US(200));
            continue;
        }
        struct k_pci_dev *dev = lend_borrow_device(a.borrow);
        if (dev != NULL && dev->device.driver_data != NULL) {
            const struct driver_device *d = dev->device.driver_data;
            driver_run(dev, 2, d->dma, 64);
        }
        k_sleep(host->kernel, FAKE_US(300));
        lend_return(a.borrow);
        work->done++;
    }
}

static void meet_body(struct lf_host *host, void *arg)
{
    struct lend_info info;
    struct lend_error error;
    (void)arg;
    assert_int_equal(lend_discover(host->lend), 2);
    assert_int_equal(lend_list(host->lend, LENDER + 1, 0, &info, &error), 0);
    assert_int_equal(lend_list(host->lend, THIRD + 1, 0, &info, &error), 0);
}

static void use_body(struct lf_host *host, void *arg)
{
    struct attempt a = { .id = DEVICE(0), .peer = LENDER + 1 };
    (void)arg;
    for (unsigned tries = 0; tries < 400; tries++) { /* it may be in its reset */
        try_borrow(host, &a);
        if (a.status == 0)
            break;
        k_sleep(host->kernel, FAKE_MS(1));
    }
    if (a.status != 0)
        fail_msg("%d: %s", a.status, a.error.text);
    driver_copies(lend_borrow_device(a.borrow), 3);
    lend_return(a.borrow);
}

struct state {
    struct lend_usage usage[3];
    struct lf_entries entries[3];
    uint64_t pages[3];
};

static void state_take(const struct lf_rig *rig, struct state *s)
{
    for (unsigned i = 0; i < 3; i++) {
        s->usage[i] = lend_usage(rig->host[i].lend);
        s->entries[i] = lf_entries_of(&rig->host[i].ntb[0]);
        s->pages[i] = rig->host[i].kernel->iommu_pages_live;
    }
}

static bool working(void *arg)
{
    return !((const struct lf_call *)arg)->done;
}

/* One cable out at `at_ps` of the work, for `out_ps`. */
static void pull(struct lf_rig *rig, enum cable cable, uint64_t at_ps, uint64_t out_ps)
{
    struct work work = { .stop = false };
    struct lf_call call = { &rig->host[BORROWER], work_body, &work, false };
    struct state before, after;
    state_take(rig, &before);
    k_thread_new(rig->host[BORROWER].kernel, "work", 1, lf_call_body, &call);
    lf_run(rig, at_ps, NULL, NULL);
    cable_set(rig, cable, true);
    lf_run(rig, out_ps, NULL, NULL);
    cable_set(rig, cable, false);
    lf_run(rig, FAKE_MS(2), NULL, NULL);
    work.stop = true;
    lf_run(rig, FAKE_MS(400), working, &call);
    assert_true(call.done);
    lf_run(rig, FAKE_MS(130), NULL, NULL); /* time-outs and resets */
    lf_call(&rig->host[BORROWER], use_body, NULL);
    lf_call(&rig->host[BORROWER], meet_body, NULL);
    lf_run(rig, FAKE_MS(1), NULL, NULL);
    state_take(rig, &after);
    for (unsigned i = 0; i < 3; i++) {
        expect_same(&before.usage[i], &after.usage[i]);
        assert_memory_equal(&before.entries[i], &after.entries[i], sizeof before.entries[i]);
        assert_int_equal(before.pages[i], after.pages[i]);
        assert_int_equal(rig->host[i].kernel->dma_live, 0);
    }
    assert_int_equal(n_driven, 0);
}

/* Times of a borrow (about 200 us), between heartbeats (2 ms), around the time-out (20 ms). */
static void test_every_time(void **state)
{
    static const uint64_t at_us[] = { 20, 90, 130, 170, 210, 260, 420, 660 };
    static const uint64_t out_us[] = { 4, 60, 900, 2100, 19000, 20500, 24000, 130000 };
    (void)state;
    for (unsigned cable = 0; cable < N_CABLES; cable++) {
        struct lf_rig *rig = rig_open(cable != MIDDLE, cable != LENDERS);
        lf_call(&rig->host[BORROWER], meet_body, NULL);
        lf_call(&rig->host[BORROWER], use_body, NULL);
        for (unsigned a = 0; a < sizeof at_us / sizeof at_us[0]; a++)
            for (unsigned o = a % test_stride(3); o < sizeof out_us / sizeof out_us[0];
                 o += test_stride(3))
                pull(rig, cable, FAKE_US(at_us[a] + 3 * o), FAKE_US(out_us[o]));
        lf_close(rig);
        free(rig);
    }
}

static unsigned entries_in_switch(const struct lf_rig *rig)
{
    unsigned n = 0;
    for (unsigned i = 0; i < sizeof rig->requester / sizeof rig->requester[0]; i++)
        n += (unsigned)__builtin_popcount(rig->requester[i]);
    return n;
}

/* A cable between switches is out when the entries beyond are given back, and comes back later:
 * the host sees neither and asks for nothing any more. */
static void test_far_entries(void **state)
{
    (void)state;
    struct lf_rig *rig = rig_open(true, true);
    const unsigned before = entries_in_switch(rig);
    struct attempt a;
    lf_call(&rig->host[BORROWER], meet_body, NULL);
    borrow_one(rig, &a);
    assert_true(entries_in_switch(rig) > before);
    cable_set(rig, MIDDLE, true);
    lf_run(rig, FAKE_MS(60), NULL, NULL);
    lf_call(&rig->host[BORROWER], give_back_body, a.borrow);
    assert_int_equal(lend_usage(rig->host[BORROWER].lend).connections, 0);
    assert_int_equal(lend_usage(rig->host[BORROWER].lend).unsettled, 1);
    assert_true(rig->requester[rig->host[BORROWER].ntb[0].node] != 0);
    cable_set(rig, MIDDLE, false);
    lf_run(rig, FAKE_MS(10), NULL, NULL);
    assert_int_equal(lend_usage(rig->host[BORROWER].lend).unsettled, 0);
    assert_int_equal(rig->requester[rig->host[BORROWER].ntb[0].node], 0);
    lf_close(rig);
    free(rig);
}

/* ---- While a connection opens ---------------------------------------------------------------- */

struct opening {
    struct lend_info info;
    struct lend_error error;
    int status;
};

static void open_body(struct lf_host *host, void *arg)
{
    struct opening *opening = arg;
    opening->status = lend_list(host->lend, LENDER + 1, 0, &opening->info, &opening->error);
}

static void discover_body(struct lf_host *host, void *arg)
{
    (void)arg;
    assert_int_equal(lend_discover(host->lend), 2);
}

static void connect_body(struct lf_host *host, void *arg)
{
    struct opening *opening = arg;
    opening->status = lend_list(host->lend, BORROWER + 1, 0, &opening->info, &opening->error);
}

/* The cable goes at every moment of a connect, of ours and of the peer's: an error or an answer,
 * and nothing is left. Beyond the switch: the error says that the switch is silent, not full. */
static void test_opening(void **state)
{
    (void)state;
    for (unsigned cable = 0; cable < N_CABLES; cable++) {
        struct lf_rig *rig = rig_open(true, true);
        bool silent = false;
        for (unsigned i = 0; i < 3; i++)
            lf_call(&rig->host[i], discover_body, NULL);
        for (uint64_t us = 1 + cable % test_stride(4); us < 60; us += test_stride(4)) {
            struct opening opening = { .status = 1 }, back = { .status = 1 };
            struct lf_call call[] = { { &rig->host[BORROWER], open_body, &opening, false },
                                      { &rig->host[LENDER], connect_body, &back, us % 3 != 0 },
                                      { NULL, NULL, NULL, false } };
            for (unsigned i = 0; i < 2; i++)
                if (!call[i].done)
                    k_thread_new(call[i].host->kernel, "open", 1, lf_call_body, &call[i]);
            lf_run(rig, FAKE_US(us), NULL, NULL);
            cable_set(rig, cable, true);
            lf_run(rig, FAKE_MS(100), any_busy, call);
            if (!call[0].done || (opening.status != 0 && opening.status != -ECONNRESET &&
                                  opening.status != -EHOSTUNREACH && opening.status != -ETIMEDOUT))
                fail_msg("cable %u after %u us: %d %s", cable, (unsigned)us, opening.status,
                         opening.error.text);
            silent = silent || strstr(opening.error.text, "does not answer") != NULL;
            assert_null(strstr(opening.error.text, "65535"));
            lf_run(rig, FAKE_MS(30), NULL, NULL); /* both ends notice */
            cable_set(rig, cable, false);
            lf_run(rig, FAKE_MS(30), NULL, NULL);
            for (unsigned i = 0; i < 3; i++)
                if (lend_usage(rig->host[i].lend).connections != 0)
                    fail_msg("cable %u after %u us: host %u", cable, (unsigned)us, i);
        }
        assert_true(silent || cable == LENDERS);
        lf_close(rig);
        free(rig);
    }
}

/* ---- Memory that has a new owner ------------------------------------------------------------- */

/* The lender has not noticed that the borrower's cable was out; the borrower gives the range to the
 * device of a third host. The first device is still at work. */
static void test_new_owner(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct lf_rig *rig = rig_open(iommu, true);
        struct attempt first, second = { .id = DEVICE(0), .peer = THIRD + 1 };
        uint8_t secret[64], seen[64], found[64];
        memset(secret, 0x5e, sizeof secret);
        lf_call(&rig->host[BORROWER], meet_body, NULL);
        borrow_one(rig, &first);
        const struct driver_device *d = lend_borrow_device(first.borrow)->device.driver_data;
        const uint64_t dma = d->dma, page = d->page.v;
        struct lf_device *device = &rig->host[LENDER].device[0];
        lf_cut(&rig->host[BORROWER].ntb[0], true);
        lf_run(rig, FAKE_MS(1), NULL, NULL);
        lf_cut(&rig->host[BORROWER].ntb[0], false);
        lf_run(rig, FAKE_US(50), NULL, NULL);
        assert_null(lend_borrow_device(first.borrow));
        assert_int_equal(lend_usage(rig->host[LENDER].lend).lent, 1);
        lf_call(&rig->host[BORROWER], try_borrow, &second);
        assert_int_equal(second.status, 0);
        d = lend_borrow_device(second.borrow)->device.driver_data;
        assert_true(iommu || page != d->page.v);
        k_poke(rig->host[BORROWER].kernel, d->page, secret, sizeof secret);
        /* Whatever the lender's device does now, before and after the lender has been told. */
        for (unsigned i = 0; i < 2; i++) {
            memset(seen, 0, sizeof seen);
            lf_device_dma(device, dma, false, sizeof seen, seen);
            assert_memory_not_equal(seen, secret, sizeof seen);
            memset(seen, 0xbd, sizeof seen);
            lf_device_dma(device, dma, true, sizeof seen, seen);
            k_peek(rig->host[BORROWER].kernel, d->page, found, sizeof found);
            assert_memory_equal(found, secret, sizeof found);
            struct attempt again = { .id = DEVICE(0), .peer = LENDER + 1 };
            lf_call(&rig->host[BORROWER], try_borrow, &again);
            assert_int_equal(again.status, -EAGAIN); /* ended, and being reset */
            assert_int_equal(lend_usage(rig->host[LENDER].lend).lent, 0);
        }
        lf_call(&rig->host[BORROWER], give_back_body, second.borrow);
        lf_call(&rig->host[BORROWER], give_back_body, first.borrow);
        lf_run(rig, FAKE_MS(110), NULL, NULL);
        lf_call(&rig->host[BORROWER], use_body, NULL);
        lf_close(rig);
        free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_time),
        cmocka_unit_test(test_far_entries),
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_new_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
