/*
 * The driver of dsa.accelerator in a simulated host: dedicated queues with and without batches, and a
 * queue that all channels share; bytes at their destination, rings that wrap, sleep and polling, fences,
 * errors, abort, removal and reset under load. Nothing is left behind.
 */
#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/dma/dsa.h"
#include "models/dsa/dsa_internal.h"
#include "models/os/os.h"
#include "tests/support/world_fixture.h"

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
    bool done;
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
    r->done = true;
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
    fixture_open(&r.w, text);
    g_free(text);
    r.kernel = os_new(r.w.host, host_os_params(r.w.host));
    k_thread_new(r.kernel, "test", 0, body, &r);
    const sim_time until_ps = sim_now(r.w.sim) + 2000 * SIM_PS_PER_MS;
    while (!r.done && sim_now(r.w.sim) < until_ps) {
        sim_run(r.w.sim, sim_now(r.w.sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(r.w.sim));
    }
    assert_true(r.done);
    sim_run(r.w.sim, sim_now(r.w.sim) + SIM_PS_PER_MS, NULL);
    check_quiet(&r);
    os_free(r.kernel);
    fixture_close(&r.w);
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

/* ---- Buffers, copies ------------------------------------------------------------------------------ */

struct buffer {
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};

static struct buffer buffer_new(struct rig *r, size_t bytes)
{
    struct buffer b = { .bytes = bytes };
    assert_int_equal(k_dma_alloc(&r->pci->device, 0, bytes, &b.at, &b.dma), 0);
    return b;
}
static void buffer_free(struct rig *r, const struct buffer *b)
{
    k_dma_free(&r->pci->device, b->bytes, b->at, b->dma);
}

/* Bytes below 0x80: no marks. */
static uint8_t pattern(unsigned seed, size_t i)
{
    return (uint8_t)((i * 2654435761u + seed * 40503u) >> 13 & 0x7f);
}
static void put(struct rig *r, struct kaddr at, size_t bytes, unsigned seed)
{
    uint8_t *buffer = g_malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = pattern(seed, i);
    k_poke(r->kernel, at, buffer, bytes);
    g_free(buffer);
}
static bool holds(struct rig *r, struct kaddr at, size_t bytes, unsigned seed, size_t from)
{
    uint8_t *buffer = g_malloc(bytes);
    bool same = true;
    k_peek(r->kernel, at, buffer, bytes);
    for (size_t i = 0; i < bytes && same; i++)
        same = buffer[i] == pattern(seed, from + i);
    g_free(buffer);
    return same;
}

struct tally {
    unsigned n, n_complete, n_error, n_aborted;
};
static void note(void *arg, dma_cookie cookie, enum dma_state state)
{
    struct tally *tally = arg;
    (void)cookie;
    tally->n++;
    tally->n_complete += state == DMA_COMPLETE;
    tally->n_error += state == DMA_ERROR;
    tally->n_aborted += state == DMA_ABORTED;
}

/* 0: there is no room. */
static dma_cookie copy(struct dma_channel *c, uint64_t to, uint64_t from, uint64_t bytes,
                       unsigned flags, struct tally *tally)
{
    struct dma_descriptor *d;
    const int status = dma_prepare_copy(c, to, from, bytes, flags, &d);
    if (status == -EBUSY)
        return 0;
    assert_int_equal(status, 0);
    d->callback = tally != NULL ? note : NULL;
    d->arg = tally;
    return dma_submit(d);
}

static int copy_now(struct dma_channel *c, uint64_t to, uint64_t from, uint64_t bytes)
{
    const dma_cookie cookie = copy(c, to, from, bytes, 0, NULL);
    dma_issue_pending(c);
    return dma_wait(c, cookie, DMA_POLL, UINT64_MAX);
}

/* ---- Bytes, rings -------------------------------------------------------------------------------- */

static void bytes_body(struct rig *r)
{
    struct dma_channel *c[2];
    struct buffer from = buffer_new(r, 256 * KIB), to = buffer_new(r, 256 * KIB);
    struct tally tally = { 0 };
    unsigned n_busy = 0, n = 0;
    put(r, from.at, from.bytes, 5);
    assert_int_equal(dma_channels_request(r->core, "dsa", DMA_SHARED, 2, c), 0);
    for (uint64_t at = 0, bytes; at < to.bytes; at += bytes, n++) { /* odd places and sizes */
        bytes = SIM_MIN(to.bytes - at, 1 + n * 977 % 2500);
        while (copy(c[n % 2], to.dma + at, from.dma + at, bytes, 0, &tally) == 0) {
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
    assert_int_equal(tally.n_complete, n);
    assert_true(holds(r, to.at, to.bytes, 5, 0));
    const struct dsa_drv_stats *stats = dsa_drv_stats(r->drv);
    assert_int_equal(stats->batches != 0, r->options.batch_max > 1);
    assert_true(r->options.batch_max > 1 ? stats->submissions < n : stats->submissions == n);
    for (unsigned i = 0; i < 2; i++)
        dma_channel_release(c[i]);
    buffer_free(r, &from);
    buffer_free(r, &to);
}

static void test_bytes_and_rings(void **state)
{
    (void)state;
    run(bytes_body, 16, false, false);
    run(bytes_body, 16, false, true);
}

/* ---- Sleep, fences ------------------------------------------------------------------------------- */

static void sleep_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct buffer from = buffer_new(r, 512 * KIB), to = buffer_new(r, 512 * KIB);
    dma_cookie last = 0;
    put(r, from.at, from.bytes, 6);
    for (unsigned round = 0; round < 3; round++) {
        put(r, to.at, to.bytes, 77);
        for (unsigned i = 0; i < 16; i++)
            last = copy(c, to.dma + i * 4096, from.dma + i * 4096, 4096,
                        i == 15 ? DMA_INTERRUPT : 0, NULL);
        dma_issue_pending(c);
        assert_int_equal(dma_wait(c, last, DMA_SLEEP, UINT64_MAX), 0);
        assert_true(holds(r, to.at, 64 * KIB, 6, 0));
    }
    assert_int_equal(device_of(r)->function.stats.interrupts, 3);
    last = copy(c, to.dma, from.dma, 512 * KIB, DMA_INTERRUPT, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, last, DMA_SLEEP, k_now_ps(r->kernel) + K_US), -ETIMEDOUT);
    assert_int_equal(dma_wait(c, last, DMA_SLEEP, UINT64_MAX), 0);
    dma_channel_release(c);
    buffer_free(r, &from);
    buffer_free(r, &to);
}

/* Each copy reads what the one before it has written. */
static void fence_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct buffer b = buffer_new(r, 64 * KIB);
    dma_cookie last = 0;
    put(r, b.at, b.bytes, 9);
    for (unsigned i = 0; i < 15; i++)
        last = copy(c, b.dma + (i + 1) * 4096 + 5 * i, b.dma + i * 4096 + (i > 0 ? 5 * (i - 1) : 0),
                    3000, DMA_FENCE, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, last, DMA_POLL, UINT64_MAX), 0);
    assert_true(holds(r, kaddr_add(b.at, 15 * 4096 + 5 * 14), 3000, 9, 0));
    dma_channel_release(c);
    buffer_free(r, &b);
}

static void test_sleep_and_fences(void **state)
{
    (void)state;
    run(sleep_body, 64, false, false);
    run(fence_body, 64, false, false);
}

/* ---- A queue that is full ------------------------------------------------------------------------ */

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
    struct buffer from = buffer_new(r, 64 * KIB), to = buffer_new(r, 64 * KIB);
    dma_cookie last = 0;
    put(r, from.at, from.bytes, u->seed);
    for (unsigned i = 0; i < 60; i++) { /* one submission each */
        last = copy(c, to.dma, from.dma, 64 * KIB, 0, NULL);
        dma_issue_pending(c);
    }
    assert_int_equal(dma_wait(c, last, DMA_POLL, UINT64_MAX), 0);
    assert_true(holds(r, to.at, to.bytes, u->seed, 0));
    dma_channel_release(c);
    buffer_free(r, &from);
    buffer_free(r, &to);
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

/* ---- Errors -------------------------------------------------------------------------------------- */

#define NOWHERE (UINT64_C(1) << 45)

static void error_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct buffer from = buffer_new(r, 64 * KIB), to = buffer_new(r, 64 * KIB);
    dma_cookie cookie[6] = { 0 };
    put(r, from.at, from.bytes, 3);
    for (unsigned i = 1; i <= 5; i++)
        cookie[i] = copy(c, to.dma + i * 8192, i == 3 ? NOWHERE : from.dma + i * 8192, 8192,
                         i == 5 ? DMA_INTERRUPT : 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, cookie[5], DMA_SLEEP, UINT64_MAX), 0);
    for (unsigned i = 1; i <= 5; i++)
        assert_int_equal(dma_status(c, cookie[i]), i == 3 ? DMA_ERROR : DMA_COMPLETE);
    assert_int_equal(dma_wait(c, cookie[3], DMA_POLL, UINT64_MAX), -EIO);
    assert_true(holds(r, kaddr_add(to.at, 8192), 16384, 3, 8192));
    assert_true(holds(r, kaddr_add(to.at, 4 * 8192), 16384, 3, 4 * 8192));
    const struct dma_failure *failure = dma_channel_failure(c);
    assert_int_equal(failure->n, 1);
    assert_int_equal(failure->cookie, cookie[3]);
    assert_int_equal(failure->source, NOWHERE);
    assert_int_equal(failure->code, DSA_STATUS_FAULT);
    assert_string_equal(failure->text, "address");
    assert_int_equal(copy_now(c, to.dma, from.dma, 8192), 0);
    dma_channel_release(c);
    buffer_free(r, &from);
    buffer_free(r, &to);
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
    struct buffer from = buffer_new(r, 64 * KIB), to = buffer_new(r, 64 * KIB);
    struct dma_descriptor *d;
    put(r, from.at, from.bytes, 4);
    put(r, to.at, to.bytes, 77);
    assert_int_equal(dma_prepare_copy(c, to.dma, NOWHERE, 100, 0, &d), 0);
    d->callback = issue_more;
    d->arg = c;
    const dma_cookie bad = dma_submit(d);
    dma_issue_pending(c); /* the callback issues the one behind it */
    const dma_cookie good = copy(c, to.dma, from.dma, 5000, 0, NULL);
    assert_int_equal(dma_wait(c, bad, DMA_POLL, UINT64_MAX), -EIO);
    assert_true(dma_channel_halted(c));
    k_sleep(r->kernel, 50 * K_US);
    assert_int_equal(dma_status(c, good), DMA_IN_PROGRESS);
    assert_true(holds(r, to.at, 5000, 77, 0));
    assert_int_equal(dma_resume(c), 0);
    assert_int_equal(dma_wait(c, good, DMA_POLL, UINT64_MAX), 0);
    assert_true(holds(r, to.at, 5000, 4, 0));
    copy(c, to.dma, NOWHERE, 100, 0, NULL);
    const dma_cookie lost = copy(c, to.dma, from.dma, 5000, 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, lost, DMA_POLL, UINT64_MAX), -EIO);
    dma_terminate(c);
    assert_int_equal(dma_wait(c, lost, DMA_POLL, UINT64_MAX), -ECANCELED);
    assert_int_equal(copy_now(c, to.dma, from.dma, 64), 0);
    dma_channel_release(c);
    buffer_free(r, &from);
    buffer_free(r, &to);
}

static void test_errors_are_reported_and_passed(void **state)
{
    (void)state;
    run(error_body, 64, false, true);
    run(error_body, 64, false, false);
    run(hold_body, 64, false, false);
}

/* ---- Abort --------------------------------------------------------------------------------------- */

static void abort_body(struct rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_EXCLUSIVE);
    struct buffer from = buffer_new(r, 1024 * KIB), to = buffer_new(r, 1024 * KIB);
    struct tally tally = { 0 };
    put(r, from.at, from.bytes, 8);
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 20; i++)
            assert_int_not_equal(
                copy(c, to.dma + i * 16384, from.dma + i * 16384, 16384, 0, &tally), 0);
        dma_issue_pending(c);
        k_compute(r->kernel, 9000 * round);
        dma_terminate(c);
        assert_int_equal(tally.n, 20 * (round + 1)); /* none is lost */
        put(r, to.at, to.bytes, 77);                 /* what was aborted does not happen any more */
        k_sleep(r->kernel, 100 * K_US);
        assert_true(holds(r, to.at, to.bytes, 77, 0));
    }
    assert_int_equal(tally.n_error, 0);
    assert_true(tally.n_complete > 0);
    assert_true(r->options.shared || tally.n_aborted > 10);
    assert_int_equal(copy_now(c, to.dma, from.dma, 1024 * KIB), 0);
    assert_true(holds(r, to.at, to.bytes, 8, 0));
    dma_channel_release(c);
    buffer_free(r, &from);
    buffer_free(r, &to);
}

static void test_abort(void **state)
{
    (void)state;
    run(abort_body, 64, false, false);
}

/* ---- Removal, reset ------------------------------------------------------------------------------ */

struct victim {
    struct rig *r;
    struct dma_channel *channel;
    struct buffer from, to;
    struct tally tally;
    int status;
    bool done;
};

static void victim_body(void *arg)
{
    struct victim *v = arg;
    dma_cookie last = 0;
    for (unsigned i = 0; i < 60; i++)
        last = copy(v->channel, v->to.dma, v->from.dma, 512 * KIB, DMA_INTERRUPT, &v->tally);
    dma_issue_pending(v->channel);
    v->status = dma_wait(v->channel, last, v->r->sleeps ? DMA_SLEEP : DMA_POLL, UINT64_MAX);
    v->done = true;
}
static void begin_victim(struct rig *r, struct victim *v)
{
    *v = (struct victim){ .r = r,
                          .channel = dma_channel_request(r->core, "dsa0", DMA_SHARED),
                          .from = buffer_new(r, 512 * KIB),
                          .to = buffer_new(r, 512 * KIB) };
    k_thread_new(r->kernel, "victim", 2, victim_body, v);
    k_sleep(r->kernel, 100 * K_US);
    assert_false(v->done);
}
static void end_victim(struct rig *r, const struct victim *v)
{
    for (unsigned i = 0; i < 2000 && !v->done; i++)
        k_sleep(r->kernel, 10 * K_US);
    assert_true(v->done);
    assert_int_equal(v->status, -ECANCELED);
    assert_int_equal(v->tally.n, 60);
    assert_true(v->tally.n_aborted > 0);
}

static void removal_body(struct rig *r)
{
    struct victim v;
    struct dma_descriptor *d;
    begin_victim(r, &v);
    buffer_free(r, &v.from); /* the kernel forgets the mappings of what it removes */
    buffer_free(r, &v.to);
    pcie_function_remove(device_of(r)->model, 0);
    k_pci_remove(r->pci, true);
    end_victim(r, &v);
    assert_int_equal(dma_prepare_copy(v.channel, 0, 4096, 64, 0, &d), -ENODEV);
    assert_null(dma_channel_request(r->core, NULL, DMA_SHARED));
    dma_channel_release(v.channel);
}

static void unbind_body(struct rig *r)
{
    struct victim v;
    begin_victim(r, &v);
    k_pci_remove(r->pci, false);
    if (!r->options.shared) { /* a shared queue is drained */
        end_victim(r, &v);
    } else {
        for (unsigned i = 0; i < 2000 && !v.done; i++)
            k_sleep(r->kernel, 10 * K_US);
        assert_int_equal(v.tally.n, 60);
    }
    dma_channel_release(v.channel);
}

/* Somebody resets the function under the driver, which notices that nothing comes back. */
static void reset_body(struct rig *r)
{
    struct victim v;
    begin_victim(r, &v);
    const unsigned cap = k_pci_find_capability(r->pci, PCI_CAP_ID_PCIE, NULL);
    k_config_write(r->pci, cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_FLR);
    end_victim(r, &v);
    assert_int_equal(device_of(r)->function.stats.resets, 1);
    put(r, v.from.at, v.from.bytes, 12);
    const dma_cookie cookie = copy(v.channel, v.to.dma, v.from.dma, 64 * KIB, DMA_INTERRUPT, NULL);
    dma_issue_pending(v.channel);
    assert_int_equal(dma_wait(v.channel, cookie, DMA_SLEEP, k_now_ps(r->kernel) + 300 * K_US), 0);
    assert_true(holds(r, v.to.at, 64 * KIB, 12, 0));
    dma_channel_release(v.channel);
    buffer_free(r, &v.from);
    buffer_free(r, &v.to);
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

/* ---- Options ------------------------------------------------------------------------------------- */

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
        cmocka_unit_test(test_errors_are_reported_and_passed),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_removal_and_reset_end_all),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
