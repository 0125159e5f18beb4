/*
 * SISCI on fake hosts: what happens while a call or a callback is under way. Objects that are freed
 * while their callback runs, by it or by another thread; two that undo the same map; what is taken
 * back before it is connected; a path that ends at any moment of a device's use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/sisci_rig.h"

#define SEGMENT 70u

/* Threads of two hosts at most, side by side. */
static struct lf_call calls[3];

static void begin(unsigned i, struct sr_side *side, void (*body)(struct lf_host *, void *))
{
    calls[i] = (struct lf_call){ side->host, body, side, false };
    k_thread_new(side->host->kernel, "side by side", 1, lf_call_body, &calls[i]);
}

static void await(struct sr_cluster *c, uint64_t ps)
{
    lf_run(c->rig, ps, any_busy, calls);
    assert_false(any_busy(calls));
    memset(calls, 0, sizeof calls);
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

static struct {
    struct sisci_segment *segment;
    sisci_segment_fn *changed; /* its callback */
    struct sisci_device *device;
    struct sisci_remote *remote;
    struct sisci_map map;
    bool began, ended, removed;
    bool frees; /* the callback frees the object itself */
} now;

static struct sr_cluster *cluster_of_two(struct sr_holdings before[N_HOSTS])
{
    struct sr_cluster *c = sr_new(3, 1, 2);
    memset(&now, 0, sizeof now);
    memset(calls, 0, sizeof calls);
    sr_greet_all(c, before);
    return c;
}

/* A callback that takes its time. */
static void take_time(struct sr_side *s)
{
    now.began = true;
    k_sleep(s->host->kernel, FAKE_US(300));
}

static void slow_remote(struct sisci_remote *remote, enum sisci_event event, void *arg)
{
    take_time(arg);
    assert_int_equal(event, SISCI_CB_DISCONNECT);
    assert_true(sisci_remote_lost(remote));
    assert_int_equal(sisci_remote_bytes(remote), BYTES);
    if (now.frees) {
        sisci_unmap(&now.map);
        OK(sisci_segment_disconnect(remote, &error));
    }
    now.ended = true;
}

static void slow_device(struct sisci_device *device, enum sisci_event event, void *arg)
{
    take_time(arg);
    assert_int_equal(event, SISCI_CB_LOST);
    assert_true(sisci_device_lost(device));
    if (now.frees)
        OK(sisci_device_return(device, &error));
    now.ended = true;
}

static void slow_segment(struct sisci_segment *segment, enum sisci_event event, uint32_t host,
                         void *arg)
{
    struct sr_side *s = arg;
    assert_false(now.removed);
    s->events[event]++;
    if (event == SISCI_CB_CONNECT && !now.frees)
        take_time(s);
    assert_int_equal(host, ID(CLIENT));
    assert_int_equal(sisci_segment_bytes(segment), BYTES);
    if (event == SISCI_CB_DISCONNECT && now.frees)
        OK(sisci_segment_remove(segment, &error));
    now.ended = true;
}

static void await_callback(struct lf_host *host)
{
    while (!now.began)
        k_sleep(host->kernel, FAKE_US(1));
    assert_false(now.ended);
}

static void offer_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_segment_create(s->process, SEGMENT, BYTES, 0, now.changed, s, &now.segment, &error));
    OK(sisci_segment_prepare(now.segment, SISCI_ANY, &error));
    OK(sisci_segment_export(now.segment, SISCI_ANY, &error));
}

static void connect_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), SEGMENT, SISCI_ANY, slow_remote, s,
                             &now.remote, &error));
    OK(sisci_map(now.remote, 0, 4096, &now.map, &error));
}

static void take_back_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_segment_unexport(now.segment, true, &error));
}

static void remove_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_segment_remove(now.segment, &error));
}

static void disconnect_body(struct lf_host *host, void *arg)
{
    (void)arg;
    if (now.frees)
        return;
    await_callback(host);
    sisci_unmap(&now.map);
    OK(sisci_segment_disconnect(now.remote, &error));
    assert_true(now.ended);
}

static void close_body(struct lf_host *host, void *arg)
{
    await_callback(host);
    sr_close_body(host, arg);
    assert_true(now.ended);
}

/* How a remote segment is freed while its callback runs. */
static void remote_ends(void (*body)(struct lf_host *, void *), bool frees)
{
    struct sr_holdings before[N_HOSTS];
    struct sr_cluster *c = cluster_of_two(before);
    struct sr_side *client = &c->side[CLIENT], *owner = &c->side[LENDER];
    sr_in(owner, offer_body);
    sr_in(client, connect_body);
    now.frees = frees;
    begin(0, client, body);
    begin(1, owner, take_back_body);
    await(c, FAKE_MS(10));
    lf_run(c->rig, FAKE_MS(1), NULL, NULL);
    assert_true(now.ended);
    sr_in(owner, remove_body);
    if (client->process == NULL)
        sr_in(client, sr_open_body);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

static void test_remote_callback(void **state)
{
    (void)state;
    remote_ends(disconnect_body, false);
    remote_ends(disconnect_body, true);
    remote_ends(close_body, false);
}

static void borrow_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_device_borrow(s->process, sr_device_name, SISCI_SHARED, slow_device, s, &now.device,
                           &error));
}

static void return_body(struct lf_host *host, void *arg)
{
    (void)arg;
    await_callback(host);
    OK(sisci_device_return(now.device, &error));
    assert_true(now.ended);
}

static void test_device_callback(void **state)
{
    (void)state;
    for (unsigned frees = 0; frees < 2; frees++) {
        struct sr_holdings before[N_HOSTS];
        struct sr_cluster *c = cluster_of_two(before);
        struct sr_side *client = &c->side[CLIENT];
        sr_in(client, borrow_body);
        lf_kill(c->side[LENDER].host);
        now.frees = frees != 0;
        if (frees == 0) {
            begin(0, client, return_body);
            await(c, FAKE_MS(100));
        } else {
            lf_run(c->rig, FAKE_MS(100), NULL, NULL);
        }
        assert_true(now.ended);
        assert_int_equal(sisci_usage(client->sisci).borrows, 0);
        sr_free(c);
    }
}

static void visit_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_remote *remote;
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), SEGMENT, SISCI_ANY, NULL, NULL, &remote,
                             &error));
    OK(sisci_segment_disconnect(remote, &error));
}

/* The visitor has gone while the callback still hears of its coming. */
static void remove_late_body(struct lf_host *host, void *arg)
{
    (void)arg;
    await_callback(host);
    k_sleep(host->kernel, FAKE_US(200));
    OK(sisci_segment_remove(now.segment, &error));
    assert_true(now.ended);
    now.removed = true;
}

static void test_segment_callback(void **state)
{
    (void)state;
    for (unsigned frees = 0; frees < 2; frees++) {
        struct sr_holdings before[N_HOSTS];
        struct sr_cluster *c = cluster_of_two(before);
        struct sr_side *owner = &c->side[LENDER];
        now.frees = frees != 0;
        now.changed = slow_segment;
        sr_in(owner, offer_body);
        begin(0, &c->side[CLIENT], visit_body);
        if (frees == 0)
            begin(1, owner, remove_late_body);
        await(c, FAKE_MS(10));
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        assert_true(now.ended);
        assert_int_equal(owner->events[SISCI_CB_CONNECT], 1);
        assert_true(owner->events[SISCI_CB_DISCONNECT] >= frees);
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* ---- Twice ----------------------------------------------------------------------------------- */

static void undo_map(struct sisci_remote *remote, enum sisci_event event, void *arg)
{
    struct sr_side *s = arg;
    (void)remote;
    s->events[event]++;
    sisci_unmap(&now.map);
}

static void map_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), SEGMENT, SISCI_ANY, undo_map, s, &now.remote,
                             &error));
    OK(sisci_map(now.remote, 0, 4096, &now.map, &error));
}

/* Waits for the lock, with which the process's thread undoes what is lost, as the callback does. */
static void unmap_too_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    while (!sisci_remote_lost(now.remote))
        k_sleep(host->kernel, FAKE_US(1) / 10);
    sisci_unmap(&now.map);
    while (s->events[SISCI_CB_DISCONNECT] == 0)
        k_sleep(host->kernel, FAKE_US(1));
    OK(sisci_segment_disconnect(now.remote, &error));
}

static void test_unmapped_twice(void **state)
{
    struct sr_holdings before[N_HOSTS];
    struct sr_cluster *c = cluster_of_two(before);
    (void)state;
    sr_in(&c->side[LENDER], offer_body);
    sr_in(&c->side[CLIENT], map_body);
    lf_run(c->rig, FAKE_MS(1), NULL, NULL);
    begin(0, &c->side[CLIENT], unmap_too_body);
    begin(1, &c->side[LENDER], take_back_body);
    await(c, FAKE_MS(10));
    sr_in(&c->side[LENDER], remove_body);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

/* ---- Connected and removed at a time --------------------------------------------------------- */

static void hold_lock_body(struct lf_host *host, void *arg)
{
    (void)arg;
    lend_service_lock(host->lend);
    k_sleep(host->kernel, FAKE_US(400));
    lend_service_unlock(host->lend);
}

static enum sisci_error removed, connected;

/* Begins when nobody is connected, and has to wait for the lock. */
static void try_remove_body(struct lf_host *host, void *arg)
{
    (void)arg;
    k_sleep(host->kernel, FAKE_US(20));
    removed = sisci_segment_remove(now.segment, NULL);
}

static void try_connect_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    k_sleep(host->kernel, FAKE_US(40));
    connected = sisci_segment_connect(s->process, ID(LENDER), SEGMENT, SISCI_ANY, NULL, NULL,
                                      &now.remote, NULL);
}

static void leave_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_segment_disconnect(now.remote, &error));
}

/* One of the two comes first: a segment is not removed while somebody is connected. */
static void test_connected_meanwhile(void **state)
{
    struct sr_holdings before[N_HOSTS];
    struct sr_cluster *c = cluster_of_two(before);
    (void)state;
    sr_in(&c->side[LENDER], offer_body);
    begin(0, &c->side[LENDER], hold_lock_body);
    begin(1, &c->side[LENDER], try_remove_body);
    begin(2, &c->side[CLIENT], try_connect_body);
    lf_run(c->rig, FAKE_MS(10), NULL, NULL);
    memset(calls, 0, sizeof calls);
    assert_int_equal(connected, SISCI_OK);
    assert_int_equal(removed, SISCI_ERR_BUSY);
    sr_in(&c->side[CLIENT], leave_body);
    sr_in(&c->side[LENDER], remove_body);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

/* The owner takes the segment back as soon as somebody connects. */
static void take_back(struct sisci_segment *segment, enum sisci_event event, uint32_t host,
                      void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    s->events[event]++;
    if (event == SISCI_CB_CONNECT)
        OK(sisci_segment_unexport(segment, true, &error));
}

static void connect_late_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), SEGMENT, SISCI_ANY, sr_count_remote, s,
                             &now.remote, &error));
}

/* The answer to the connection is seen late, as its doorbell is masked: after the word that it is
 * taken back. */
static void test_taken_back_at_once(void **state)
{
    struct sr_holdings before[N_HOSTS];
    struct sr_cluster *c = cluster_of_two(before);
    struct sr_side *client = &c->side[CLIENT];
    (void)state;
    now.changed = take_back;
    sr_in(&c->side[LENDER], offer_body);
    client->host->ntb[0].mask |= 1u << DOORBELL_REPLY;
    sr_in(client, connect_late_body);
    client->host->ntb[0].mask &= ~(1u << DOORBELL_REPLY);
    lf_run(c->rig, FAKE_MS(15), NULL, NULL);
    assert_int_equal(client->events[SISCI_CB_DISCONNECT], 1);
    assert_true(sisci_remote_lost(now.remote));
    sr_in(client, leave_body);
    sr_in(&c->side[LENDER], remove_body);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

/* ---- Half done ------------------------------------------------------------------------------- */

static void prepare_half_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    OK(sisci_segment_create(s->process, SEGMENT, BYTES, 0, NULL, NULL, &now.segment, &error));
    host->kernel->iommu_calls = 0;
    host->kernel->iommu_fail_at = 2; /* the mapping for the second adapter */
    assert_true(sisci_segment_prepare(now.segment, SISCI_ANY, NULL) != SISCI_OK);
    host->kernel->iommu_fail_at = 0;
    assert_int_equal(sisci_usage(s->sisci).exported_bytes, 0);
    FAILS(sisci_segment_export(now.segment, 0, &error), SISCI_ERR_SEGMENT_NOT_PREPARED,
          "adapter 0");
    OK(sisci_segment_prepare(now.segment, 1, &error));
    FAILS(sisci_segment_export(now.segment, 0, &error), SISCI_ERR_SEGMENT_NOT_PREPARED,
          "adapter 0");
    OK(sisci_segment_remove(now.segment, &error));
}

static void test_prepared_half(void **state)
{
    struct sr_cluster *c = sr_new(3, 2, 2);
    struct sr_holdings before[N_HOSTS];
    (void)state;
    sr_greet_all(c, before);
    sr_in(&c->side[LENDER], prepare_half_body);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

/* ---- A path that ends ------------------------------------------------------------------------ */

/* Connects by both adapters: there is a second path to the lender. */
static void both_paths_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_device *d;
    (void)host;
    OK(sisci_device_borrow(s->process, sr_device_name, SISCI_SHARED, NULL, NULL, &d, &error));
    for (unsigned a = 0; a < 2; a++) {
        struct sisci_remote *bar;
        OK(sisci_device_bar_connect(d, 0, a, NULL, NULL, &bar, &error));
        OK(sisci_segment_disconnect(bar, &error));
    }
    OK(sisci_device_return(d, &error));
}

/* Uses a device in all ways; what fails is left out. */
static void use_body(struct lf_host *host, void *arg)
{
    static const unsigned hints[] = { SISCI_DEVICE_READ, SISCI_CPU_READ | SISCI_CPU_WRITE };
    struct sr_side *s = arg;
    struct sisci_device *d;
    struct sisci_segment *own;
    struct sisci_remote *remote[3] = { NULL };
    struct sisci_window window[3] = { 0 };
    struct sisci_map map;
    (void)host;
    OK(sisci_segment_create(s->process, SEGMENT, BYTES, 0, NULL, NULL, &own, &error));
    OK(sisci_device_borrow(s->process, sr_device_name, SISCI_EXCLUSIVE, NULL, NULL, &d, &error));
    if (sisci_device_bar_connect(d, 0, SISCI_ANY, NULL, NULL, &remote[0], NULL) == SISCI_OK &&
        sisci_map(remote[0], 0, 4096, &map, NULL) == SISCI_OK)
        sisci_unmap(&map);
    sisci_segment_map_for_device(own, d, SISCI_ANY, 0, BYTES, K_DMA_BOTH, &window[0], NULL);
    for (unsigned i = 1; i < 3; i++)
        if (sisci_device_segment_create(d, i, BYTES, hints[i - 1], false, SISCI_ANY, NULL, NULL,
                                        &remote[i], NULL) == SISCI_OK)
            sisci_remote_map_for_device(remote[i], d, SISCI_ANY, 0, BYTES, K_DMA_BOTH, &window[i],
                                        NULL);
    OK(sisci_device_share(d, &error));
    for (unsigned i = 0; i < 3; i++) {
        sisci_window_unmap(&window[i]);
        if (remote[i] != NULL)
            OK(sisci_segment_disconnect(remote[i], &error));
    }
    OK(sisci_device_return(d, &error));
    OK(sisci_segment_remove(own, &error));
}

#define STEPS   50u
#define STEP_PS FAKE_US(2)

/* One of two paths ends while a device is used: the device stays reachable, requests to its lender
 * are done once, by whichever path, and neither host keeps anything. */
static void test_path_ends(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus += 3) {
        struct sr_cluster *c = sr_new(iommus, 2, 2);
        struct sr_holdings before[N_HOSTS];
        struct sr_side *client = &c->side[CLIENT];
        unsigned n_early = 0;
        sr_greet_all(c, before);
        sr_in(client, both_paths_body);
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        for (unsigned i = 0; i < 2; i++)
            before[i] = sr_holdings_of(&c->side[i]);
        for (unsigned step = 0; step < STEPS; step++) {
            struct lf_ntb *ntb =
                &client->host->ntb[0]; /* the newest connection is the one in use */
            begin(0, client, use_body);
            lf_run(c->rig, step * STEP_PS, NULL, NULL);
            n_early += calls[0].done;
            lf_cut(ntb, true);
            await(c, FAKE_MS(100));
            lf_run(c->rig, FAKE_MS(40), NULL, NULL); /* the lender has noticed */
            lf_cut(ntb, false);
            lf_run(c->rig, FAKE_MS(1), NULL, NULL);
            sr_in(client, both_paths_body);
            sr_expect_no_trace(c, before);
        }
        assert_in_range(n_early, 1, STEPS / 4); /* the steps go beyond the end */
        sr_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remote_callback),     cmocka_unit_test(test_device_callback),
        cmocka_unit_test(test_segment_callback),    cmocka_unit_test(test_unmapped_twice),
        cmocka_unit_test(test_connected_meanwhile), cmocka_unit_test(test_taken_back_at_once),
        cmocka_unit_test(test_prepared_half),       cmocka_unit_test(test_path_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
