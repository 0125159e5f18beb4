/*
 * SISCI on fake hosts: two paths to a device, of which one is lost; borrowers and lenders that die;
 * tables that are full; twelve hundred borrows at random, after which nothing is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/sisci_rig.h"

/* ---- Two paths ------------------------------------------------------------------------------- */

/* What a client has by one of its two adapters. */
struct path {
    struct sisci_remote *bar;
    struct sisci_map regs;
    struct sisci_window window;
};
static struct path paths[2];
static struct sisci_segment *data;
static struct sisci_device *twofold;

static void two_paths_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_device_borrow(s->process, sr_device_name, SISCI_SHARED, sr_count_device, s, &twofold,
                           &error));
    OK(sisci_segment_create(s->process, 30, BYTES, 0, NULL, NULL, &data, &error));
    for (unsigned i = 0; i < 2; i++) {
        OK(sisci_device_bar_connect(twofold, 0, i, sr_count_remote, s, &paths[i].bar, &error));
        OK(sisci_map(paths[i].bar, 0, LF_BAR_BYTES, &paths[i].regs, &error));
        OK(sisci_segment_map_for_device(data, twofold, i, 0, BYTES, K_DMA_BOTH, &paths[i].window,
                                        &error));
    }
    assert_true(paths[0].window.dma != paths[1].window.dma);
}

static void by_path(struct sr_side *s, unsigned i, uint8_t first)
{
    const struct sr_driven d = { twofold, paths[i].bar, paths[i].regs };
    struct sisci_map direct = { .kernel = s->host->kernel,
                                .address = sisci_segment_memory(data).v,
                                .bytes = BYTES };
    sr_copy_by_device(&d, &direct, paths[i].window.dma, first);
}

static void both_work_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    by_path(s, 0, 9);
    by_path(s, 1, 10);
}

/* The first is gone; the device stays borrowed by the second. */
static void one_works_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    assert_true(paths[0].window.lost && sisci_remote_lost(paths[0].bar));
    assert_int_equal(sisci_read(&paths[0].regs, 0, 4), UINT32_MAX);
    assert_false(paths[1].window.lost || sisci_remote_lost(paths[1].bar));
    assert_false(sisci_device_lost(twofold));
    by_path(s, 1, 11);
    const struct sr_driven d = { twofold, paths[1].bar, paths[1].regs };
    assert_int_equal(sr_run(&d, 2, paths[0].window.dma, 64), 2); /* nothing there any more */
}

static void rebuild_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    sisci_window_unmap(&paths[0].window);
    sisci_unmap(&paths[0].regs);
    OK(sisci_segment_disconnect(paths[0].bar, &error));
    OK(sisci_device_bar_connect(twofold, 0, 0, sr_count_remote, s, &paths[0].bar, &error));
    OK(sisci_map(paths[0].bar, 0, LF_BAR_BYTES, &paths[0].regs, &error));
    OK(sisci_segment_map_for_device(data, twofold, 0, 0, BYTES, K_DMA_BOTH, &paths[0].window,
                                    &error));
}

static void test_two_paths(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus++)
        for (unsigned first = 0; first < 2; first++) { /* which adapter it was borrowed by */
            struct sr_cluster *c = sr_new(iommus, 2, 2);
            struct sr_holdings before[N_HOSTS];
            struct sr_side *client = &c->side[CLIENT];
            sr_greet_all(c, before);
            sr_in(client, two_paths_body);
            sr_in(client, both_work_body);
            lf_cut(&client->host->ntb[0], true);
            lf_run(c->rig, FAKE_MS(first == 0 ? 1 : 40), NULL, NULL); /* the lender notices late */
            assert_int_equal(client->events[SISCI_CB_LOST], 1);
            if (first == 1)
                sr_in(client, one_works_body);
            lf_cut(&client->host->ntb[0], false);
            lf_run(c->rig, FAKE_MS(1), NULL, NULL);
            sr_in(client, rebuild_body);
            sr_in(client, both_work_body);
            lf_cut(&client->host->ntb[0], true);
            lf_cut(&client->host->ntb[1], true);
            lf_run(c->rig, FAKE_MS(40), NULL, NULL);
            assert_int_equal(client->events[SISCI_CB_LOST], 4); /* three registers, the device */
            assert_true(sisci_device_lost(twofold));
            assert_int_equal(sisci_usage(c->side[LENDER].sisci).borrowers, 0);
            sr_in(client, sr_close_body);
            sr_free(c);
        }
}

static void out_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        assert_false(paths[i].window.lost || sisci_remote_lost(paths[i].bar));
        assert_int_equal(sisci_read(&paths[i].regs, 0, 4) == UINT32_MAX, i == 0);
    }
    assert_int_equal(sisci_flush(&paths[0].regs), SISCI_ERR_TRANSFER_FAILED);
}

/* Requests to the lender take the other path meanwhile. */
static void ask_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_remote *remote;
    const uint64_t start_ps = k_now_ps(host->kernel);
    OK(sisci_device_segment_create(twofold, 1, 4096, SISCI_DEVICE_READ, false, 1, NULL, NULL,
                                   &remote, &error));
    OK(sisci_segment_disconnect(remote, &error));
    assert_true(k_now_ps(host->kernel) - start_ps < FAKE_MS(1));
    (void)s;
}

/* Hosts that hold links: a cable that is back in time leaves everything valid; one that is not back
 * ends what went by it, as ever. */
static void test_held(void **state)
{
    (void)state;
    sr_hold_links = true;
    for (unsigned iommus = 0; iommus < 4; iommus++) {
        struct sr_cluster *c = sr_new(iommus, 2, 2);
        struct sr_holdings before[N_HOSTS];
        struct sr_side *client = &c->side[CLIENT];
        sr_greet_all(c, before);
        sr_in(client, two_paths_body);
        for (unsigned round = 1; round <= 3; round++) {
            lf_cut(&client->host->ntb[0], true);
            lf_run(c->rig, FAKE_MS(5), NULL, NULL);
            sr_in(client, out_body);
            if (round == 1)
                sr_in(client, ask_body);
            lf_cut(&client->host->ntb[0], false);
            lf_run(c->rig, FAKE_MS(5), NULL, NULL);
            sr_in(client, both_work_body);
            assert_int_equal(client->events[SISCI_CB_NOT_OPERATIONAL], round);
            assert_int_equal(client->events[SISCI_CB_OPERATIONAL], round);
        }
        assert_int_equal(client->events[SISCI_CB_LOST], 0);
        lf_cut(&client->host->ntb[0], true);
        lf_run(c->rig, FAKE_MS(40), NULL, NULL);
        assert_int_equal(client->events[SISCI_CB_LOST], 1);
        sr_in(client, one_works_body);
        sr_in(client, sr_close_body);
        sr_free(c);
    }
    sr_hold_links = false;
}

/* ---- Who dies -------------------------------------------------------------------------------- */

static struct sr_driven survivor;
static struct sisci_segment *survivor_segment;
static struct sisci_window survivor_window;

static void survive_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    sr_drive(s, &survivor, SISCI_SHARED);
    OK(sisci_segment_create(s->process, 31, BYTES, 0, NULL, NULL, &survivor_segment, &error));
    OK(sisci_segment_map_for_device(survivor_segment, survivor.device, SISCI_ANY, 0, BYTES,
                                    K_DMA_BOTH, &survivor_window, &error));
}

static void works_body(struct lf_host *host, void *arg)
{
    struct sisci_map direct = { .kernel = host->kernel,
                                .address = sisci_segment_memory(survivor_segment).v,
                                .bytes = BYTES };
    (void)arg;
    sr_copy_by_device(&survivor, &direct, survivor_window.dma, 12);
}

static void finish_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    sisci_window_unmap(&survivor_window);
    OK(sisci_segment_remove(survivor_segment, &error));
    sr_undrive(&survivor);
}

static uint64_t dead_dma[2];

/* Takes what it can, and leaves it. */
static void greedy_body(struct lf_host *host, void *arg)
{
    static struct sr_driven d;
    static struct sisci_window window[2];
    static struct sisci_remote *remote;
    struct sr_side *s = arg;
    struct sisci_segment *own;
    (void)host;
    sr_drive(s, &d, SISCI_SHARED);
    OK(sisci_segment_create(s->process, 32, BYTES, 0, NULL, NULL, &own, &error));
    OK(sisci_segment_map_for_device(own, d.device, SISCI_ANY, 0, BYTES, K_DMA_BOTH, &window[0],
                                    &error));
    OK(sisci_device_segment_create(d.device, 3, BYTES, SISCI_DEVICE_READ, true, SISCI_ANY, NULL,
                                   NULL, &remote, &error));
    OK(sisci_remote_map_for_device(remote, d.device, SISCI_ANY, 0, BYTES, K_DMA_BOTH, &window[1],
                                   &error));
    for (unsigned i = 0; i < 2; i++)
        dead_dma[i] = window[i].dma;
}

static void dead_windows_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    for (unsigned i = 0; i < 2 && sr_lender_isolates(s); i++)
        assert_int_equal(sr_run(&survivor, 2, dead_dma[i], 64), 2);
}

/* A borrower's process closes, or its host dies: the other goes on; the device is reset when it is
 * gone as well, if somebody died. */
static void test_borrower_dies(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++)
        for (unsigned dies = 0; dies < 2; dies++) {
            struct sr_cluster *c = sr_new(iommus, 1, N_HOSTS);
            struct sr_holdings before[N_HOSTS];
            struct sr_side *client = &c->side[CLIENT], *lender = &c->side[LENDER];
            struct lf_function *device = &lender->host->device[0].f;
            device->flr = true;
            lf_put(device, LF_CAP_PCIE + 4, 4, PCIE_DEVCAP_FLR);
            sr_greet_all(c, before);
            sr_in(&c->side[THIRD], survive_body);
            const struct sr_holdings one = sr_holdings_of(lender);
            sr_in(client, greedy_body);
            assert_int_equal(sisci_usage(lender->sisci).borrowers, 2);
            assert_int_equal(sisci_usage(lender->sisci).lent_bytes, BYTES);
            if (dies == 1)
                lf_kill(client->host);
            else
                sr_in(client, sr_close_body);
            lf_run(c->rig, FAKE_MS(40), NULL, NULL);
            const struct sr_holdings after = sr_holdings_of(lender);
            assert_int_equal(after.sisci.borrowers, 1);
            assert_int_equal(after.sisci.device_windows, one.sisci.device_windows);
            assert_int_equal(after.sisci.lent_bytes, sr_lender_isolates(lender) ? 0 : BYTES);
            sr_in(&c->side[THIRD], works_body);
            sr_in(&c->side[THIRD], dead_windows_body);
            assert_int_equal(device->n_resets, 0);
            sr_in(&c->side[THIRD], finish_body);
            assert_int_equal(sisci_usage(lender->sisci).lent_bytes, 0);
            lf_run(c->rig, FAKE_MS(150), NULL, NULL);
            assert_int_equal(device->n_resets, dies);
            assert_int_equal(sisci_usage(lender->sisci).borrowers, 0);
            assert_int_equal(lend_usage(lender->host->lend).lent, 0);
            sr_free(c);
        }
}

static void lost_device_body(struct lf_host *host, void *arg)
{
    struct sisci_window window;
    (void)host;
    (void)arg;
    assert_true(sisci_device_lost(survivor.device));
    assert_true(survivor_window.lost);
    FAILS(sisci_segment_map_for_device(survivor_segment, survivor.device, SISCI_ANY, 0, 4096,
                                       K_DMA_BOTH, &window, &error),
          SISCI_ERR_SEGMENT_NOT_CONNECTED, "was lost");
    finish_body(host, arg);
}

static void test_lender_dies(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus += 7) {
        struct sr_cluster *c = sr_new(iommus, 1, N_HOSTS);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        sr_in(&c->side[CLIENT], survive_body);
        lf_kill(c->side[LENDER].host);
        lf_run(c->rig, FAKE_MS(40), NULL, NULL);
        assert_int_equal(c->side[CLIENT].events[SISCI_CB_LOST], 2);
        sr_in(&c->side[CLIENT], lost_device_body);
        assert_int_equal(sisci_usage(c->side[CLIENT].sisci).borrows, 0);
        assert_int_equal(sisci_usage(c->side[CLIENT].sisci).grants, 0);
        sr_free(c);
    }
}

/* ---- Tables that are full -------------------------------------------------------------------- */

/* Windows of the lender for segments of 16 MiB in memory of two hosts, until there are no more;
 * then all are given back, and there is room again. */
static void fill_body(struct lf_host *host, void *arg)
{
    static struct sisci_window window[LF_WINDOWS];
    struct sr_side *s = arg;
    struct sisci_segment *segment[LF_WINDOWS] = { 0 };
    struct sr_driven d;
    unsigned n = 0;
    (void)host;
    sr_drive(s, &d, SISCI_SHARED);
    for (;; n++) {
        struct lend_error why;
        assert_true(n < LF_WINDOWS);
        OK(sisci_segment_attach(s->process, 100 + n, k_alloc(host->kernel, 0, 4096, 1u << 24), 4096,
                                NULL, NULL, &segment[n], &error));
        const enum sisci_error result = sisci_segment_map_for_device(
            segment[n], d.device, SISCI_ANY, 0, 4096, K_DMA_BOTH, &window[n], &why);
        if (result == SISCI_OK)
            continue;
        assert_int_equal(result, SISCI_ERR_HW_NOSPC);
        assert_non_null(strstr(why.text, "host 2"));
        assert_non_null(strstr(why.text, "windows in a row"));
        assert_non_null(strstr(why.text, "64 of 64 in use"));
        break;
    }
    assert_true(n > LF_WINDOWS / 2);
    assert_int_equal(sisci_usage(s->cluster->side[LENDER].sisci).device_windows, n);
    for (unsigned i = 0; i <= n; i++) {
        sisci_window_unmap(&window[i]);
        OK(sisci_segment_remove(segment[i], &error));
    }
    sr_undrive(&d);
}

static void test_full(void **state)
{
    struct sr_cluster *c = sr_new(0, 1, 2);
    struct sr_holdings before[N_HOSTS];
    (void)state;
    sr_greet_all(c, before);
    for (unsigned i = 0; i < 2; i++)
        sr_in(&c->side[CLIENT], fill_body);
    for (unsigned i = 0; i < 2; i++)
        before[CLIENT].pages = c->rig->host[CLIENT].kernel->pages_live; /* of k_alloc() */
    sr_expect_no_trace(c, before);
    sr_free(c);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Takes one thing after the other until one is refused, and gives everything back. */
static bool take_all(struct sr_side *s, enum sisci_error *why)
{
    struct sisci_device *d;
    struct sisci_segment *own = NULL;
    struct sisci_remote *remote[3] = { NULL };
    struct sisci_window window[3] = { 0 };
    *why = sisci_device_borrow(s->process, sr_device_name, SISCI_EXCLUSIVE, NULL, NULL, &d, NULL);
    if (*why != SISCI_OK)
        return false;
    *why = sisci_segment_create(s->process, 60, BYTES, 0, NULL, NULL, &own, NULL);
    if (*why == SISCI_OK)
        *why = sisci_segment_map_for_device(own, d, SISCI_ANY, 0, BYTES, K_DMA_BOTH, &window[0],
                                            NULL);
    if (*why == SISCI_OK)
        *why = sisci_device_segment_create(d, 4, BYTES, SISCI_DEVICE_READ, true, SISCI_ANY, NULL,
                                           NULL, &remote[0], NULL);
    if (*why == SISCI_OK)
        *why = sisci_remote_map_for_device(remote[0], d, SISCI_ANY, 0, BYTES, K_DMA_BOTH,
                                           &window[1], NULL);
    if (*why == SISCI_OK)
        *why = sisci_segment_connect(s->process, ID(THIRD), 5 + THIRD, SISCI_ANY, NULL, NULL,
                                     &remote[1], NULL);
    if (*why == SISCI_OK)
        *why = sisci_remote_map_for_device(remote[1], d, SISCI_ANY, 0, BYTES, K_DMA_BOTH,
                                           &window[2], NULL);
    if (*why == SISCI_OK)
        *why = sisci_device_segment_create(d, 5, BYTES, SISCI_CPU_READ, true, SISCI_ANY, NULL, NULL,
                                           &remote[2], NULL);
    for (unsigned i = 0; i < 3; i++)
        sisci_window_unmap(&window[i]);
    for (unsigned i = 0; i < 3; i++)
        if (remote[i] != NULL)
            OK(sisci_segment_disconnect(remote[i], &error));
    if (own != NULL)
        OK(sisci_segment_remove(own, &error));
    OK(sisci_device_return(d, &error));
    return *why == SISCI_OK;
}

static unsigned failing_host, n_failures;
static bool failing_pages; /* else the IOMMU */

static void failing_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct kernel *kernel = s->cluster->rig->host[failing_host].kernel;
    enum sisci_error why;
    (void)host;
    n_failures = 0;
    for (unsigned n = 1;; n++) {
        kernel->iommu_calls = kernel->n_page_allocs = 0;
        kernel->iommu_fail_at = failing_pages ? 0 : n;
        kernel->options.fail_page_every = failing_pages ? n : 0;
        const bool all = take_all(s, &why);
        kernel->iommu_fail_at = kernel->options.fail_page_every = 0;
        if (all)
            return;
        assert_true(why == SISCI_ERR_NOSPC || why == SISCI_ERR_HW_NOSPC || why == SISCI_ERR_SYSTEM);
        assert_true(++n_failures < 20);
    }
}

/* Each call of each host's IOMMU fails once, and allocations of pages: nothing is left of it. */
static void test_failures(void **state)
{
    /* Client: two exports, device let in. Lender: domain, device in it, three windows, export.
     * Third host: device let in. Two segments of the client, of which every first and every second
     * allocation fails, one of the lender. */
    static const unsigned calls[N_HOSTS][2] = { { 3, 2 }, { 6, 1 }, { 1, 0 } };
    (void)state;
    for (failing_host = 0; failing_host < N_HOSTS; failing_host++)
        for (unsigned pages = 0; pages < 2; pages++) {
            struct sr_cluster *c = sr_new(7, 1, N_HOSTS);
            struct sr_holdings before[N_HOSTS];
            for (unsigned i = 0; i < N_HOSTS; i++)
                sr_in(&c->side[i], sr_offer_body);
            sr_greet_all(c, before);
            failing_pages = pages != 0;
            sr_in(&c->side[CLIENT], failing_body);
            assert_int_equal(n_failures, calls[failing_host][pages]);
            sr_expect_no_trace(c, before);
            sr_free(c);
        }
}

/* ---- Taken back by the lender ---------------------------------------------------------------- */

static void reclaim_body(struct lf_host *host, void *arg)
{
    (void)arg;
    assert_int_equal(lend_reclaim(host->lend, DEVICE(0)), 0);
    assert_int_equal(lend_reclaim(host->lend, DEVICE(0)), -EALREADY);
}

static void refused_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_window window;
    (void)host;
    FAILS(sisci_segment_map_for_device(survivor_segment, survivor.device, SISCI_ANY, 0, 4096,
                                       K_DMA_BOTH, &window, &error),
          SISCI_ERR_SEGMENT_NOT_CONNECTED, "not known any more");
    finish_body(host, arg);
    survive_body(host, s); /* and anew */
    works_body(host, s);
    finish_body(host, s);
}

static void test_reclaimed(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus += 7) {
        struct sr_cluster *c = sr_new(iommus, 1, N_HOSTS);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        sr_in(&c->side[CLIENT], survive_body);
        sr_in(&c->side[LENDER], reclaim_body);
        assert_int_equal(sisci_usage(c->side[LENDER].sisci).borrowers, 0);
        lf_run(c->rig, FAKE_MS(150), NULL, NULL);
        sr_in(&c->side[CLIENT], refused_body);
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* ---- At random ------------------------------------------------------------------------------- */

struct random_side {
    struct sr_side *side;
    uint64_t seed;
    unsigned n_left, n_borrows, n_busy;
    bool done;
};

static unsigned draw(struct random_side *r, unsigned n)
{
    r->seed = r->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(r->seed >> 33) % n;
}

static void random_once(struct random_side *r)
{
    struct sr_side *s = r->side;
    const struct sisci_device_name name = { ID(LENDER), DEVICE(draw(r, 2)) };
    struct sisci_device *d;
    struct sisci_remote *remote[3];
    struct sisci_window window[3];
    struct lend_error why;
    unsigned n = 0;
    const enum sisci_error result = sisci_device_borrow(
        s->process, name, draw(r, 4) == 0 ? SISCI_EXCLUSIVE : SISCI_SHARED, NULL, NULL, &d, &why);
    if (result != SISCI_OK) {
        assert_int_equal(result, SISCI_ERR_BUSY);
        r->n_busy++;
        return;
    }
    for (; n < draw(r, 4); n++) {
        const unsigned from = draw(r, N_HOSTS);
        OK(sisci_segment_connect(s->process, ID(from), 5 + from, SISCI_ANY, NULL, NULL, &remote[n],
                                 &error));
        OK(sisci_remote_map_for_device(remote[n], d, SISCI_ANY, 0, 4096, K_DMA_BOTH, &window[n],
                                       &error));
    }
    k_sleep(s->host->kernel, FAKE_US(draw(r, 50)));
    while (n-- > 0) {
        if (draw(r, 2) == 0) { /* else with the device */
            sisci_window_unmap(&window[n]);
            OK(sisci_segment_disconnect(remote[n], &error));
            continue;
        }
        sisci_window_unmap(&window[n]);
        OK(sisci_segment_disconnect(remote[n], &error));
    }
    OK(sisci_device_return(d, &error));
    r->n_borrows++;
}

static void random_body(struct lf_host *host, void *arg)
{
    struct random_side *r = arg;
    (void)host;
    for (; r->n_left > 0; r->n_left--)
        random_once(r);
}

static void test_random(void **state)
{
    struct sr_cluster *c = sr_new(5, 1, N_HOSTS);
    struct sr_holdings before[N_HOSTS];
    struct random_side r[N_HOSTS];
    struct lf_call call[N_HOSTS + 1] = { 0 };
    unsigned n_borrows = 0, n_busy = 0;
    (void)state;
    for (unsigned i = 0; i < N_HOSTS; i++)
        sr_in(&c->side[i], sr_offer_body);
    sr_greet_all(c, before);
    for (unsigned i = 0; i < N_HOSTS; i++) {
        r[i] = (struct random_side){ .side = &c->side[i], .seed = i + 1, .n_left = 400 };
        call[i] = (struct lf_call){ c->side[i].host, random_body, &r[i], false };
        k_thread_new(c->side[i].host->kernel, "random", 1, lf_call_body, &call[i]);
    }
    lf_run(c->rig, FAKE_MS(5000), any_busy, call);
    assert_false(any_busy(call));
    for (unsigned i = 0; i < N_HOSTS; i++) {
        n_borrows += r[i].n_borrows;
        n_busy += r[i].n_busy;
    }
    assert_true(n_borrows > 500 && n_busy > 50);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_paths),     cmocka_unit_test(test_held),
        cmocka_unit_test(test_borrower_dies), cmocka_unit_test(test_lender_dies),
        cmocka_unit_test(test_full),          cmocka_unit_test(test_failures),
        cmocka_unit_test(test_reclaimed),     cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
