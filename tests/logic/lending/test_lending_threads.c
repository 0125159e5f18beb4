/*
 * Two threads of a host that borrow and give back at the same time, at every moment of each other:
 * what one shares with the other is in the adapter's registers when it gets it, and nothing is left
 * of both.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/lend_rig.h"

#define STEP_PS FAKE_US(1) / 20

/* ---- Entries that two threads share ---------------------------------------------------------- */

#define WINDOWS  4u
#define NODE     7u
#define FABRIC   UINT64_C(0x2000000000)
#define NOBODY   0x7700u
#define OUTSIDER 3u

struct sharer {
    struct lf_host *host;
    uint64_t after_ps;
    struct lend_map map;
    int outgoing;
    uint16_t incoming;
};

static void share(struct lf_host *host, void *arg)
{
    struct sharer *s = arg;
    struct lend_adapter *adapter = lend_adapter_at(host->lend, 0);
    const struct lf_ntb *ntb = &host->ntb[0];
    struct lend_error error;
    k_sleep(host->kernel, s->after_ps);
    assert_int_equal(lend_map(adapter, NODE, FABRIC, (uint64_t)WINDOWS << ntb->window_log2, 0,
                              "test", &s->map, &error),
                     0);
    assert_int_equal(s->map.n, WINDOWS);
    for (unsigned i = 0; i < WINDOWS; i++)
        assert_true((ntb->lut[s->map.first + i] & NTB_LUT_VALID) != 0);
    s->outgoing = lend_outgoing_add(adapter, NOBODY, "test", &error);
    assert_true(s->outgoing >= 0);
    assert_int_equal(ntb->outgoing[s->outgoing], NTB_OUTGOING_VALID | NOBODY);
    assert_int_equal(lend_incoming_add(adapter, NODE, OUTSIDER, 0, "test", &s->incoming, &error),
                     0);
    assert_true((ntb->incoming[(s->incoming & 0xffu) - NTB_INCOMING_FUNCTION_BASE] &
                 NTB_INCOMING_VALID) != 0);
}

static void unshare(struct lf_host *host, void *arg)
{
    struct sharer *s = arg;
    struct lend_adapter *adapter = lend_adapter_at(host->lend, 0);
    k_sleep(host->kernel, s->after_ps);
    lend_incoming_remove(adapter, s->incoming);
    lend_outgoing_remove(adapter, (unsigned)s->outgoing);
    lend_unmap(adapter, &s->map);
}

typedef void body_fn(struct lf_host *host, void *arg);

/* The bodies side by side, to the end of both. */
static void both(struct lf_rig *rig, struct lf_host *const host[2], body_fn *const body[2],
                 void *const arg[2])
{
    struct lf_call call[3] = { { host[0], body[0], arg[0], false },
                               { host[1], body[1], arg[1], false },
                               { .host = NULL } };
    for (unsigned i = 0; i < 2; i++)
        k_thread_new(host[i]->kernel, "side by side", (int)i, lf_call_body, &call[i]);
    lf_run(rig, FAKE_MS(100), any_busy, call);
    assert_false(any_busy(call));
}

/* Two that add, two that remove, one that adds while the other removes. */
static void test_shared_entries(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct lf_rig *rig = calloc(1, sizeof *rig);
        two_hosts(rig, iommu != 0, true);
        start_all(rig);
        struct lf_host *host = &rig->host[0], *const hosts[2] = { host, host };
        const struct lf_entries before = lf_entries_of(&host->ntb[0]);
        const struct lend_usage usage = lend_usage(host->lend);
        for (uint64_t ps = 0; ps < FAKE_US(2); ps += STEP_PS) {
            struct sharer a = { .host = host }, b = { .host = host, .after_ps = ps };
            both(rig, hosts, (body_fn *const[]){ share, share }, (void *const[]){ &a, &b });
            assert_int_equal(lf_entries_of(&host->ntb[0]).windows, before.windows + WINDOWS);
            lf_call(host, unshare, &b);
            b.after_ps = ps;
            both(rig, hosts, (body_fn *const[]){ unshare, share }, (void *const[]){ &a, &b });
            a.after_ps = ps;
            b.after_ps = 0;
            both(rig, hosts, (body_fn *const[]){ share, unshare }, (void *const[]){ &a, &b });
            b.after_ps = ps;
            lf_call(host, share, &b);
            both(rig, hosts, (body_fn *const[]){ unshare, unshare }, (void *const[]){ &a, &b });
            const struct lf_entries after = lf_entries_of(&host->ntb[0]);
            const struct lend_usage now = lend_usage(host->lend);
            assert_memory_equal(&before, &after, sizeof after);
            expect_same(&usage, &now);
        }
        lf_close(rig);
        free(rig);
    }
}

/* ---- Devices --------------------------------------------------------------------------------- */

struct user {
    uint64_t after_ps;
    struct attempt attempt;
};

static void borrows(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    k_sleep(host->kernel, u->after_ps);
    try_borrow(host, &u->attempt);
    if (u->attempt.status == 0)
        driver_copies(lend_borrow_device(u->attempt.borrow), (uint8_t)u->attempt.id);
}

static void returns(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    k_sleep(host->kernel, u->after_ps);
    lend_return(u->attempt.borrow);
}

/* What all hosts of a rig hold. */
struct holdings {
    struct lend_usage usage[LF_HOSTS];
    struct lf_entries entries[LF_HOSTS];
};

static struct holdings holdings_of(struct lf_rig *rig)
{
    struct holdings h = { 0 };
    for (unsigned i = 0; i < rig->n_hosts; i++) {
        h.usage[i] = lend_usage(rig->host[i].lend);
        h.entries[i] = lf_entries_of(&rig->host[i].ntb[0]);
    }
    return h;
}

static void expect_holdings(struct lf_rig *rig, const struct holdings *before)
{
    const struct holdings now = holdings_of(rig);
    assert_memory_equal(before, &now, sizeof now);
}

static struct lf_rig *cluster(bool iommu)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    three_hosts(rig, iommu);
    start_all(rig);
    return rig;
}

/* Everybody knows the lender: what is held from now on is held for devices. */
static void meet(struct lf_rig *rig)
{
    for (unsigned i = 0; i < 3; i += 2) {
        struct user u = { .attempt = { .id = DEVICE(0), .peer = 2 } };
        lf_call(&rig->host[i], borrows, &u);
        assert_int_equal(u.attempt.status, 0);
        lf_call(&rig->host[i], returns, &u);
    }
}

static void expect_both(const struct user *a, const struct user *b)
{
    assert_int_equal(a->attempt.status | b->attempt.status, 0);
}

/* One host, or two, with two devices of one lender, and with one device. */
static void test_devices(void **state)
{
    const uint64_t step_ps = FAKE_US(2) + FAKE_US(1) / 3, end_ps = FAKE_US(500);
    (void)state;
    for (unsigned mode = 0; mode < 4; mode++) {
        struct lf_rig *rig = cluster(mode % 2 != 0);
        struct lf_host *const hosts[2] = { &rig->host[0], &rig->host[mode < 2 ? 0 : 2] };
        meet(rig);
        const struct holdings before = holdings_of(rig);
        for (uint64_t ps = 0; ps < end_ps; ps += step_ps) {
            struct user a = { .attempt = { .id = DEVICE(0), .peer = 2 } };
            struct user b = { ps, { .id = DEVICE(1), .peer = 2 } };
            void *const args[2] = { &a, &b };
            both(rig, hosts, (body_fn *const[]){ borrows, borrows }, args);
            expect_both(&a, &b);
            lf_call(hosts[1], returns, &b);
            both(rig, hosts, (body_fn *const[]){ returns, borrows }, args);
            expect_both(&a, &b);
            lf_call(hosts[0], borrows, &a);
            both(rig, hosts, (body_fn *const[]){ returns, returns }, args);
            lf_run(rig, FAKE_US(100), NULL, NULL);
            expect_holdings(rig, &before);
            /* The same device: one gets it, the other is told who has it. */
            b.attempt.id = a.attempt.id;
            both(rig, hosts, (body_fn *const[]){ borrows, borrows }, args);
            assert_true(a.attempt.status == 0 || b.attempt.status == 0);
            assert_int_equal(a.attempt.status + b.attempt.status, -EBUSY);
            lf_call(a.attempt.status == 0 ? hosts[0] : hosts[1], returns,
                    a.attempt.status == 0 ? &a : &b);
            lf_run(rig, FAKE_US(100), NULL, NULL);
            expect_holdings(rig, &before);
        }
        assert_int_equal(n_driven, 0);
        lf_close(rig);
        free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_entries),
        cmocka_unit_test(test_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
