/*
 * The driver of dsa.accelerator in a simulated host: dedicated queues with and without batches, and
 * a queue that all channels share; bytes at their destination, rings that wrap, sleep and polling,
 * fences, errors, abort, removal and reset under load. Nothing is left behind.
 */
#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/dma/dsa.h"
#include "models/dsa/dsa_internal.h"
#include "models/os/os.h"
#include "tests/support/dma_rig.h"

#define KIB 1024u

#define WORLD                                                                             \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );"        \
    " dram = { node_size = \"2 GiB\"; }; root_complex = { completion_timeout_us = 60; };" \
    " cpu = { sockets = 1; cores_per_socket = 6; clock_ghz = 2.0; };"                     \
    " iommu = { enabled = %s; }; }; };\n"                                                 \
    "devices = { dsa = { type = \"dsa.accelerator\"; integrated = \"server.s0\";"         \
    " completion_timeout_us = 60; }; };\n"

struct rig {
    struct world_fixture w;
    struct kernel *kernel;
    struct dma_core *core;
    struct dsa_drv *drv;
    struct dsa_drv_options options;
    struct k_pci_dev *pci;
    void (*body)(struct rig *r);
    bool sleeps; /* victims sleep */
};

static struct dsa_device *device_of(struct rig *r)
{
    return world_device(r->w.world, "dsa")->state;
}

static void body(void *arg)
{
    struct rig *r = arg;
    r->pci = os_pci_find(r->kernel, device_of(r)->function.cfg.id);
    assert_non_null(r->pci);
    r->core = dma_core_new(r->kernel);
    r->drv = dsa_drv_new(r->core, &r->options);
    assert_non_null(r->drv);
    assert_int_equal(k_pci_register(r->kernel, dsa_drv_driver(r->drv)), 1);
    assert_string_equal(dma_engine_name(r->core, 0), "dsa0");
    r->body(r);
    struct k_pci_dev *dev = os_pci_find(r->kernel, device_of(r)->function.cfg.id);
    if (dev != NULL && dev->driver != NULL)
        k_pci_remove(dev, false);
    assert_null(dma_engine_name(r->core, 0));
    dsa_drv_free(r->drv);
    dma_core_free(r->core);
}

static void check_quiet(struct rig *r)
{
    struct dsa_device *dsa = device_of(r);
    assert_true(pcie_dma_idle(&dsa->function.dma));
    assert_int_equal(dsa->buffers + dsa->shared_buffers, 0);
    for (unsigned i = 0; i < dsa->params.queues; i++) {
        assert_int_equal(dsa->queue[i].n, 0);
        assert_null(dsa->queue[i].under_way);
    }
    for (unsigned i = 0; i < dsa->params.engines; i++)
        assert_int_equal(dsa->engine[i].n_works, 0);
}

static void run_one(const struct rig *settings, bool iommu)
{
    struct rig r = *settings;
    gchar *text = g_strdup_printf(WORLD, iommu ? "true" : "false");
    r.options.cpu = 1;
    r.options.timeout_ps = 500 * K_US;
    dma_rig_run(&r.w, &r.kernel, text, body, &r);
    g_free(text);
    check_quiet(&r);
    dma_rig_close(&r.w, r.kernel);
}

/* Dedicated with batches, dedicated without, shared. */
static void run(void (*fn)(struct rig *r), unsigned ring, bool sleeps, bool iommu)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        struct rig r = { .body = fn, .options = dsa_drv_options_default, .sleeps = sleeps };
        r.options.ring = ring;
        r.options.shared = mode == 2;
        r.options.batch_max = mode == 1 ? 1 : 8;
        run_one(&r, iommu);
    }
}

/* ---- Bytes, rings ---------------------------------------------------------------------------- */

static void bytes_body(struct rig *r)
{
    struct dma_channel *c[2];
    struct dma_buffer from = dma_buffer_new(r->pci, 256 * KIB),
                      to = dma_buffer_new(r->pci, 256 * KIB);
    struct dma_tally tally[2] = { 0 };
    unsigned n_busy = 0, n = 0;
    dma_rig_fill(r->kernel, from.at, from.bytes, 5);
    assert_int_equal(dma_channels_request(r->core, "dsa", DMA_SHARED, 2, c), 0);
    for (uint64_t at = 0, bytes; at < to.bytes; at += bytes, n++) { /* odd places and sizes */
        bytes = SIM_MIN(to.bytes - at, 1 + n * 977 % 2500);
        while (dma_rig_copy(c[n % 2], to.dma + at, from.dma + at, bytes, 0, &tally[n % 2]) == 0) {
            n_busy++;
            dma_issue_pending(c[n % 2]);
            k_compute(r->kernel, 500);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        dma_issue_pending(c[i]);
        assert_int_equal(dma_wait(c[i], (dma_cookie)(n + 1 - i) / 2, DMA_POLL, UINT64_MAX), 0);
        assert_int_equal(dma_channel_pending(c[i]), 0);
        assert_int_equal(dma_channel_room(c[i]), 15);
    }
    assert_true(n_busy > 0);
    assert_int_equal(tally[0].n_complete + tally[1].n_complete, n);
    assert_true(dma_rig_holds(r->kernel, to.at, to.bytes, 5, 0));
    const struct dsa_drv_stats *stats = dsa_drv_stats(r->drv);
    assert_int_equal(stats->batches != 0, r->options.batch_max > 1);
    assert_true(r->options.batch_max > 1 ? stats->submissions < n : stats->submissions == n);
    for (unsigned i = 0; i < 2; i++)
        dma_channel_release(c[i]);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
}

static void test_bytes_and_rings(void **state)
{
    (void)state;
    run(bytes_body, 16, false, false);
    run(bytes_body, 16, false, true);
}

/* ---- Sleep, fences --------------------------------------------------------------------------- */

static void sleep_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 512 * KIB),
                      to = dma_buffer_new(r->pci, 512 * KIB);
    dma_cookie last = 0;
    dma_rig_fill(r->kernel, from.at, from.bytes, 6);
    for (unsigned round = 0; round < 3; round++) {
        dma_rig_fill(r->kernel, to.at, to.bytes, 77);
        for (unsigned i = 0; i < 16; i++)
            last = dma_rig_copy(c, to.dma + i * 4096, from.dma + i * 4096, 4096,
                                i == 15 ? DMA_INTERRUPT : 0, NULL);
        dma_issue_pending(c);
        assert_int_equal(dma_wait(c, last, DMA_SLEEP, UINT64_MAX), 0);
        assert_true(dma_rig_holds(r->kernel, to.at, 64 * KIB, 6, 0));
    }
    assert_int_equal(device_of(r)->function.stats.interrupts, 3);
    last = dma_rig_copy(c, to.dma, from.dma, 512 * KIB, DMA_INTERRUPT, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, last, DMA_SLEEP, k_now_ps(r->kernel) + K_US), -ETIMEDOUT);
    assert_int_equal(dma_wait(c, last, DMA_SLEEP, UINT64_MAX), 0);
    dma_channel_release(c);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
}

/* Each copy reads what the one before it has written. */
static void fence_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer b = dma_buffer_new(r->pci, 64 * KIB);
    dma_cookie last = 0;
    dma_rig_fill(r->kernel, b.at, b.bytes, 9);
    for (unsigned i = 0; i < 15; i++)
        last = dma_rig_copy(c, b.dma + (i + 1) * 4096 + 5 * i,
                            b.dma + i * 4096 + (i > 0 ? 5 * (i - 1) : 0), 3000, DMA_FENCE, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, last, DMA_POLL, UINT64_MAX), 0);
    assert_true(dma_rig_holds(r->kernel, kaddr_add(b.at, 15 * 4096 + 5 * 14), 3000, 9, 0));
    dma_channel_release(c);
    dma_buffer_free(r->pci, &b);
}

static void test_sleep_and_fences(void **state)
{
    (void)state;
    run(sleep_body, 64, false, false);
    run(fence_body, 64, false, false);
}

/* ---- A queue that is full -------------------------------------------------------------------- */

struct user {
    struct rig *r;
    unsigned *left;
    unsigned seed;
};
static void user_body(void *arg)
{
    const struct user *u = arg;
    struct rig *r = u->r;
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 64 * KIB);
    dma_cookie last = 0;
    dma_rig_fill(r->kernel, from.at, from.bytes, u->seed);
    for (unsigned i = 0; i < 60; i++) { /* one submission each */
        last = dma_rig_copy(c, to.dma, from.dma, 64 * KIB, 0, NULL);
        dma_issue_pending(c);
    }
    assert_int_equal(dma_wait(c, last, DMA_POLL, UINT64_MAX), 0);
    assert_true(dma_rig_holds(r->kernel, to.at, to.bytes, u->seed, 0));
    dma_channel_release(c);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    --*u->left;
}

/* Four users of one queue of 128 entries, who want 240. */
static void crowd_body(struct rig *r)
{
    struct user user[4];
    unsigned left = 4;
    for (unsigned i = 0; i < 4; i++) {
        user[i] = (struct user){ r, &left, 10 + i };
        k_thread_new(r->kernel, "user", (int)i + 2, user_body, &user[i]);
    }
    while (left != 0)
        k_sleep(r->kernel, 10 * K_US);
    assert_int_equal(dsa_drv_stats(r->drv)->retries != 0, r->options.shared);
    assert_int_equal(dsa_drv_stats(r->drv)->retries, device_of(r)->stats.retries);
    assert_int_equal(device_of(r)->stats.dropped, 0);
}

static void test_full_queues_lose_nothing(void **state)
{
    (void)state;
    run(crowd_body, 64, false, false);
}

#define PILE 200u /* more than a queue of 32 or 128 entries holds */

/* One submission each, and nobody looks: the driver's interrupts alone free entries for the rest.
 * The last copies, behind the last interrupt, have ended, but are not found yet. */
static void pile_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, PILE * KIB),
                      to = dma_buffer_new(r->pci, PILE * KIB);
    dma_cookie last = 0;
    dma_rig_fill(r->kernel, from.at, from.bytes, 8);
    for (unsigned i = 0; i < PILE; i++) {
        last = dma_rig_copy(c, to.dma + i * KIB, from.dma + i * KIB, KIB, 0, NULL);
        dma_issue_pending(c);
    }
    k_sleep(r->kernel, 200 * K_US); /* less than the time after which copies are overdue */
    assert_true(dma_rig_holds(r->kernel, to.at, to.bytes, 8, 0));
    assert_in_range(dma_channel_pending(c), 0, 31);
    assert_in_range(device_of(r)->function.stats.interrupts, 1, PILE / (32 / 4));
    assert_int_equal(dma_wait(c, last, DMA_POLL, UINT64_MAX), 0);
    dma_channel_release(c);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
}

static void test_full_queues_go_on_without_looks(void **state)
{
    (void)state;
    run(pile_body, 256, false, false);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

#define NOWHERE (UINT64_C(1) << 45)

static void error_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 64 * KIB);
    dma_cookie cookie[6] = { 0 };
    dma_rig_fill(r->kernel, from.at, from.bytes, 3);
    for (unsigned i = 1; i <= 5; i++)
        cookie[i] = dma_rig_copy(c, to.dma + i * 8192, i == 3 ? NOWHERE : from.dma + i * 8192, 8192,
                                 i == 5 ? DMA_INTERRUPT : 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, cookie[5], DMA_SLEEP, UINT64_MAX), 0);
    for (unsigned i = 1; i <= 5; i++)
        assert_int_equal(dma_status(c, cookie[i]), i == 3 ? DMA_ERROR : DMA_COMPLETE);
    assert_int_equal(dma_wait(c, cookie[3], DMA_POLL, UINT64_MAX), -EIO);
    assert_true(dma_rig_holds(r->kernel, kaddr_add(to.at, 8192), 16384, 3, 8192));
    assert_true(dma_rig_holds(r->kernel, kaddr_add(to.at, 4 * 8192), 16384, 3, 4 * 8192));
    const struct dma_failure *failure = dma_channel_failure(c);
    assert_int_equal(failure->n, 1);
    assert_int_equal(failure->cookie, cookie[3]);
    assert_int_equal(failure->source, NOWHERE);
    assert_int_equal(failure->code, DSA_STATUS_FAULT);
    assert_string_equal(failure->text, "address");
    dma_rig_copy_now(c, to.dma, from.dma, 8192);
    dma_channel_release(c);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
}

/* A callback that wants everything handed over, whatever has failed. */
static void issue_more(void *arg, dma_cookie cookie, enum dma_state state)
{
    (void)cookie;
    assert_int_equal(state, DMA_ERROR);
    dma_issue_pending(arg);
}

/* A channel that stops on errors, until its owner goes on. */
static void hold_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_EXCLUSIVE | DMA_HOLD_ERRORS);
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 64 * KIB);
    struct dma_descriptor *d;
    dma_rig_fill(r->kernel, from.at, from.bytes, 4);
    dma_rig_fill(r->kernel, to.at, to.bytes, 77);
    assert_int_equal(dma_prepare_copy(c, to.dma, NOWHERE, 100, 0, &d), 0);
    d->callback = issue_more;
    d->arg = c;
    const dma_cookie bad = dma_submit(d);
    dma_issue_pending(c); /* the callback issues the one behind it */
    const dma_cookie good = dma_rig_copy(c, to.dma, from.dma, 5000, 0, NULL);
    assert_int_equal(dma_wait(c, bad, DMA_POLL, UINT64_MAX), -EIO);
    assert_true(dma_channel_halted(c));
    k_sleep(r->kernel, 50 * K_US);
    assert_int_equal(dma_status(c, good), DMA_IN_PROGRESS);
    assert_true(dma_rig_holds(r->kernel, to.at, 5000, 77, 0));
    assert_int_equal(dma_resume(c), 0);
    assert_int_equal(dma_wait(c, good, DMA_POLL, UINT64_MAX), 0);
    assert_true(dma_rig_holds(r->kernel, to.at, 5000, 4, 0));
    dma_rig_copy(c, to.dma, NOWHERE, 100, 0, NULL);
    const dma_cookie lost = dma_rig_copy(c, to.dma, from.dma, 5000, 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, lost, DMA_POLL, UINT64_MAX), -EIO);
    dma_terminate(c);
    assert_int_equal(dma_wait(c, lost, DMA_POLL, UINT64_MAX), -ECANCELED);
    dma_rig_copy_now(c, to.dma, from.dma, 64);
    dma_channel_release(c);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
}

static void test_errors_are_reported_and_passed(void **state)
{
    (void)state;
    run(error_body, 64, false, true);
    run(error_body, 64, false, false);
    run(hold_body, 64, false, false);
}

/* ---- Abort ----------------------------------------------------------------------------------- */

static void abort_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_EXCLUSIVE);
    struct dma_buffer from = dma_buffer_new(r->pci, 1024 * KIB),
                      to = dma_buffer_new(r->pci, 1024 * KIB);
    struct dma_tally tally = { 0 };
    dma_rig_fill(r->kernel, from.at, from.bytes, 8);
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 20; i++)
            assert_int_not_equal(
                dma_rig_copy(c, to.dma + i * 16384, from.dma + i * 16384, 16384, 0, &tally), 0);
        dma_issue_pending(c);
        k_compute(r->kernel, 9000 * round);
        dma_terminate(c);
        assert_int_equal(tally.n, 20 * (round + 1)); /* none is lost */
        dma_rig_fill(r->kernel, to.at, to.bytes,
                     77); /* what was aborted does not happen any more */
        k_sleep(r->kernel, 100 * K_US);
        assert_true(dma_rig_holds(r->kernel, to.at, to.bytes, 77, 0));
    }
    assert_int_equal(tally.n_error, 0);
    assert_true(tally.n_complete > 0);
    assert_true(r->options.shared || tally.n_aborted > 10);
    dma_rig_copy_now(c, to.dma, from.dma, 1024 * KIB);
    assert_true(dma_rig_holds(r->kernel, to.at, to.bytes, 8, 0));
    dma_channel_release(c);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
}

static void test_abort(void **state)
{
    (void)state;
    run(abort_body, 64, false, false);
}

/* ---- Removal, reset -------------------------------------------------------------------------- */

static struct dma_victim victim_of(struct rig *r)
{
    return (struct dma_victim){ .kernel = r->kernel,
                                .core = r->core,
                                .pci = r->pci,
                                .engine = "dsa0",
                                .n_copies = 60,
                                .copy_bytes = 512 * KIB,
                                .flags = DMA_INTERRUPT,
                                .sleeps = r->sleeps };
}

static void removal_body(struct rig *r)
{
    struct dma_victim v = victim_of(r);
    struct dma_descriptor *d;
    dma_victim_begin(&v);
    dma_buffer_free(r->pci, &v.from); /* the kernel forgets the mappings of what it removes */
    dma_buffer_free(r->pci, &v.to);
    pcie_function_remove(device_of(r)->model, 0);
    k_pci_remove(r->pci, true);
    dma_victim_end(&v);
    assert_int_equal(dma_prepare_copy(v.channel, 0, 4096, 64, 0, &d), -ENODEV);
    assert_null(dma_channel_request(r->core, NULL, DMA_SHARED));
    dma_channel_release(v.channel);
}

static void unbind_body(struct rig *r)
{
    struct dma_victim v = victim_of(r);
    dma_victim_begin(&v);
    k_pci_remove(r->pci, false);
    if (r->options.shared) /* its queue is drained */
        dma_victim_wait(&v);
    else
        dma_victim_end(&v);
    dma_channel_release(v.channel);
}

/* Somebody resets the function under the driver, which notices that nothing comes back. */
static void reset_body(struct rig *r)
{
    struct dma_victim v = victim_of(r);
    dma_victim_begin(&v);
    const unsigned cap = k_pci_find_capability(r->pci, PCI_CAP_ID_PCIE, NULL);
    k_config_write(r->pci, cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_FLR);
    dma_victim_end(&v);
    assert_int_equal(device_of(r)->function.stats.resets, 1);
    dma_rig_fill(r->kernel, v.from.at, v.from.bytes, 12);
    const dma_cookie cookie = dma_rig_copy(v.channel, v.to.dma, v.from.dma, 64 * KIB, DMA_INTERRUPT,
                                           NULL);
    dma_issue_pending(v.channel);
    assert_int_equal(dma_wait(v.channel, cookie, DMA_SLEEP, k_now_ps(r->kernel) + 300 * K_US), 0);
    assert_true(dma_rig_holds(r->kernel, v.to.at, 64 * KIB, 12, 0));
    dma_channel_release(v.channel);
    dma_buffer_free(r->pci, &v.from);
    dma_buffer_free(r->pci, &v.to);
}

static void test_removal_and_reset_end_all(void **state)
{
    (void)state;
    for (unsigned sleeps = 0; sleeps < 2; sleeps++) {
        run(removal_body, 64, sleeps, false);
        run(unbind_body, 64, sleeps, false);
        run(reset_body, 64, sleeps, false);
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

static void options_body(struct rig *r)
{
    static const struct dsa_drv_options wrong[] = {
        { .channels = 0, .batch_max = 1, .ring = 64, .copy_log2 = 21, .poll_ps = 1 },
        { .channels = 17, .batch_max = 1, .ring = 64, .copy_log2 = 21, .poll_ps = 1 },
        { .channels = 1, .batch_max = 0, .ring = 64, .copy_log2 = 21, .poll_ps = 1 },
        { .channels = 1, .batch_max = 1025, .ring = 64, .copy_log2 = 21, .poll_ps = 1 },
        { .channels = 1, .batch_max = 1, .ring = 65, .copy_log2 = 21, .poll_ps = 1 },
        { .channels = 1, .batch_max = 1, .ring = 64, .copy_log2 = 32, .poll_ps = 1 },
        { .channels = 1, .batch_max = 1, .ring = 64, .copy_log2 = 21, .poll_ps = 0 },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(wrong); i++)
        assert_null(dsa_drv_new(r->core, &wrong[i]));
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    assert_int_equal(dma_channel_limits(c)->copy_bytes_max, UINT64_C(1) << 21);
    assert_true(dma_channel_limits(c)->in_order);
    dma_channel_release(c);
    assert_int_equal(dma_channels_free(r->core, "dsa", DMA_EXCLUSIVE), 4);
}

static void test_options(void **state)
{
    (void)state;
    run(options_body, 64, false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_and_rings),
        cmocka_unit_test(test_sleep_and_fences),
        cmocka_unit_test(test_full_queues_lose_nothing),
        cmocka_unit_test(test_full_queues_go_on_without_looks),
        cmocka_unit_test(test_errors_are_reported_and_passed),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_removal_and_reset_end_all),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
