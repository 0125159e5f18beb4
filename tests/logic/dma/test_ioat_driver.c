/*
 * dma.c and the driver of I/OAT on a kernel and an engine that are both fakes, with races: threads
 * on several CPUs share channels of small rings, prepare, submit, issue, poll, sleep and meet
 * errors, terminations and removal at any moment. Every copy ends once, with one status, in order;
 * what is complete has its bytes; nobody waits for ever; nothing is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "logic/dma/dma_driver.h"
#include "logic/dma/ioat.h"
#include "tests/support/ioat_fake.h"

#define SEEDS    60u
#define THREADS  4u
#define COPIES   40u
#define COPY_MAX 512u
#define AREA     65536u

struct world;

struct user {
    struct world *w;
    unsigned number;
    struct kaddr from, to;
    unsigned n_ended, n_complete, n_error, n_aborted, n_submitted;
    bool done;
};

struct world {
    struct kernel *kernel;
    struct ioat_fake fake;
    struct dma_core *core;
    struct ioat_drv *ioat;
    struct dma_channel *channel[2];
    struct user user[THREADS];
    dma_cookie last[2]; /* of a channel, whose callback came last */
    bool errors, removed, undisturbed;
    unsigned n_busy;
};

struct copy {
    struct user *user;
    unsigned channel;
    uint64_t offset, bytes;
    bool bad, ended;
};

static void open_world(struct world *w, uint64_t seed, bool v1, unsigned ring, unsigned stall)
{
    const struct fake_options options = {
        .seed = seed, .n_cpus = 4, .stall_percent = stall, .stall_ps = FAKE_US(3)
    };
    struct ioat_drv_options driver = ioat_drv_options_default;
    *w = (struct world){ .kernel = fake_new(&options) };
    driver.ring = ring;
    driver.cpu = 1;
    driver.timeout_ps = FAKE_MS(1);
    ioat_fake_init(&w->fake, w->kernel, v1);
    assert_int_equal(k_pci_add(w->kernel, &w->fake.pci), 0);
    w->core = dma_core_new(w->kernel);
    w->ioat = ioat_drv_new(w->core, &driver);
    assert_non_null(w->ioat);
    assert_int_equal(k_pci_register(w->kernel, ioat_drv_driver(w->ioat)), 1);
}

static void close_world(struct world *w)
{
    if (!w->removed)
        k_pci_remove(&w->fake.pci, false);
    assert_null(dma_engine_name(w->core, 0));
    fake_run_until(w->kernel, w->kernel->now_ps + FAKE_MS(2));
    assert_int_equal(w->kernel->dma_live, 0);
    assert_int_equal(w->kernel->timers_live, 0);
    ioat_drv_free(w->ioat);
    dma_core_free(w->core);
    fake_free(w->kernel);
}

/* ---- Races ----------------------------------------------------------------------------------- */

static void check_bytes(const struct copy *copy)
{
    const struct user *u = copy->user;
    uint8_t from[COPY_MAX], to[COPY_MAX];
    k_peek(u->w->kernel, kaddr_add(u->from, copy->offset), from, copy->bytes);
    k_peek(u->w->kernel, kaddr_add(u->to, copy->offset), to, copy->bytes);
    assert_memory_equal(from, to, copy->bytes);
}

static void ended(void *arg, dma_cookie cookie, enum dma_state state)
{
    struct copy *copy = arg;
    struct user *u = copy->user;
    struct world *w = u->w;
    assert_false(copy->ended);
    copy->ended = true;
    /* In order, but for what was aborted. */
    assert_true(cookie > w->last[copy->channel] || state == DMA_ABORTED);
    if (state != DMA_ABORTED)
        w->last[copy->channel] = cookie;
    u->n_ended++;
    u->n_complete += state == DMA_COMPLETE;
    u->n_error += state == DMA_ERROR;
    u->n_aborted += state == DMA_ABORTED;
    assert_true(state != DMA_COMPLETE || !copy->bad);
    assert_true(state != DMA_ERROR || copy->bad);
    if (state == DMA_COMPLETE)
        check_bytes(copy);
}

static int put(struct user *u, struct copy *copy, dma_cookie *cookie)
{
    struct world *w = u->w;
    struct dma_channel *c = w->channel[copy->channel];
    const uint64_t source = u->from.v + copy->offset;
    struct dma_descriptor *d;
    int status;
    while ((status = dma_prepare_copy(
                c, u->to.v + copy->offset, copy->bad ? source | IOAT_FAKE_BAD : source, copy->bytes,
                fake_random(w->kernel, 2) ? DMA_INTERRUPT : 0, &d)) == -EBUSY) {
        w->n_busy++;
        dma_issue_pending(c);
        k_sleep(w->kernel, FAKE_US(1));
    }
    if (status != 0)
        return status;
    d->callback = ended;
    d->arg = copy;
    if (fake_random(w->kernel, 4) == 0)
        k_compute(w->kernel, 300); /* others come between */
    *cookie = dma_submit(d);
    u->n_submitted++;
    return 0;
}

static void user_body(void *arg)
{
    struct user *u = arg;
    struct world *w = u->w;
    static struct copy copies[THREADS][COPIES];
    struct copy *copy = copies[u->number];
    dma_cookie last[2] = { 0, 0 };
    for (unsigned i = 0; i < COPIES; i++) {
        copy[i] = (struct copy){ .user = u,
                                 .channel = (unsigned)fake_random(w->kernel, 2),
                                 .offset = i * COPY_MAX,
                                 .bytes = 1 + fake_random(w->kernel, COPY_MAX),
                                 .bad = w->errors && fake_random(w->kernel, 8) == 0 };
        if (put(u, &copy[i], &last[copy[i].channel]) != 0)
            break;
        if (fake_random(w->kernel, 3) == 0)
            dma_issue_pending(w->channel[copy[i].channel]);
        if (fake_random(w->kernel, 5) == 0)
            dma_status(w->channel[copy[i].channel], last[copy[i].channel]);
    }
    for (unsigned c = 0; c < 2; c++) {
        dma_issue_pending(w->channel[c]);
        if (last[c] == 0)
            continue;
        const enum dma_wait_how how = fake_random(w->kernel, 2) ? DMA_POLL : DMA_SLEEP;
        int status = dma_wait(w->channel[c], last[c], how, k_now_ps(w->kernel) + FAKE_MS(20));
        if (status == -ETIMEDOUT && how == DMA_SLEEP) /* nobody asked for an interrupt */
            status = dma_wait(w->channel[c], last[c], DMA_POLL, k_now_ps(w->kernel) + FAKE_MS(20));
        assert_true(status == 0 || status == -EIO || status == -ECANCELED);
    }
    u->done = true;
}

static void terminator(void *arg)
{
    struct world *w = arg;
    for (unsigned i = 0; i < 4; i++) {
        k_sleep(w->kernel, FAKE_US(5) + fake_random(w->kernel, FAKE_US(20)));
        dma_terminate(w->channel[fake_random(w->kernel, 2)]);
    }
    w->undisturbed = true;
}

static void remover(void *arg)
{
    struct world *w = arg;
    k_sleep(w->kernel, FAKE_US(5) + fake_random(w->kernel, FAKE_US(50)));
    const bool gone = fake_random(w->kernel, 2) == 0;
    w->fake.gone = gone;
    k_pci_remove(&w->fake.pci, gone);
    w->removed = w->undisturbed = true;
}

static void begin_users(struct world *w)
{
    w->channel[0] = dma_channel_request(w->core, "ioat0", DMA_SHARED);
    w->channel[1] = dma_channel_request(w->core, "ioat", DMA_SHARED);
    assert_non_null(w->channel[1]);
    assert_ptr_not_equal(w->channel[0], w->channel[1]); /* the one with fewer requests */
    for (unsigned i = 0; i < THREADS; i++) {
        struct user *u = &w->user[i];
        *u = (struct user){ .w = w, .number = i };
        u->from = k_alloc(w->kernel, 0, AREA, K_PAGE_BYTES);
        u->to = k_alloc(w->kernel, 0, AREA, K_PAGE_BYTES);
        uint8_t bytes[AREA];
        for (unsigned b = 0; b < AREA; b++)
            bytes[b] = (uint8_t)fake_random(w->kernel, 256);
        k_poke(w->kernel, u->from, bytes, AREA);
        k_thread_new(w->kernel, "user", (int)(i % 4), user_body, u);
    }
}

static void end_users(struct world *w)
{
    const uint64_t until_ps = w->kernel->now_ps + FAKE_MS(200);
    for (bool done = false; !done && w->kernel->now_ps < until_ps;) {
        fake_run_until(w->kernel, w->kernel->now_ps + FAKE_US(100));
        done = w->undisturbed;
        for (unsigned i = 0; i < THREADS; i++)
            done = done && w->user[i].done;
    }
    fake_run_until(w->kernel, w->kernel->now_ps + FAKE_US(100)); /* callbacks that are under way */
    for (unsigned i = 0; i < THREADS; i++) {
        assert_true(w->user[i].done); /* nobody waits for ever */
        assert_int_equal(w->user[i].n_ended, w->user[i].n_submitted);
    }
    for (unsigned c = 0; c < 2; c++) {
        assert_int_equal(dma_channel_pending(w->channel[c]), 0);
        dma_channel_release(w->channel[c]);
    }
}

static void races(bool errors, void (*disturb)(void *), unsigned *n_aborted, unsigned *n_error)
{
    unsigned n_busy = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w;
        open_world(&w, seed, seed % 2 == 0, seed % 3 == 0 ? 4 : 16, seed % 5 == 0 ? 0 : 10);
        w.errors = errors;
        w.undisturbed = disturb == NULL;
        begin_users(&w);
        if (disturb != NULL)
            k_thread_new(w.kernel, "disturb", 3, disturb, &w);
        end_users(&w);
        fake_run_until(w.kernel, w.kernel->now_ps + FAKE_MS(1));
        for (unsigned i = 0; i < THREADS; i++) {
            const struct user *u = &w.user[i];
            assert_int_equal(u->n_complete + u->n_error + u->n_aborted, u->n_ended);
            assert_true(disturb != NULL || u->n_aborted == 0);
            assert_true(disturb != NULL || u->n_submitted == COPIES);
            assert_true(errors || u->n_error == 0);
            *n_aborted += u->n_aborted;
            *n_error += u->n_error;
        }
        n_busy += w.n_busy;
        close_world(&w);
    }
    assert_true(n_busy > 0);
}

static void test_threads_share_channels(void **state)
{
    unsigned n_aborted = 0, n_error = 0;
    (void)state;
    races(false, NULL, &n_aborted, &n_error);
}

static void test_errors_between_them(void **state)
{
    unsigned n_aborted = 0, n_error = 0;
    (void)state;
    races(true, NULL, &n_aborted, &n_error);
    assert_true(n_error > SEEDS);
}

static void test_terminated_between_them(void **state)
{
    unsigned n_aborted = 0, n_error = 0;
    (void)state;
    races(true, terminator, &n_aborted, &n_error);
    assert_true(n_aborted > SEEDS / 4);
}

static void test_removed_between_them(void **state)
{
    unsigned n_aborted = 0, n_error = 0;
    (void)state;
    races(true, remover, &n_aborted, &n_error);
    assert_true(n_aborted > SEEDS / 4);
}

/* ---- One thing at a time --------------------------------------------------------------------- */

static void test_requests(void **state)
{
    struct world w;
    struct dma_channel *all[3];
    (void)state;
    open_world(&w, 1, false, 16, 0);
    assert_string_equal(dma_engine_name(w.core, 0), "ioat0");
    assert_null(dma_engine_name(w.core, 1));
    assert_int_equal(dma_channels_free(w.core, NULL, DMA_EXCLUSIVE), 2);
    assert_null(dma_channel_request(w.core, "ioat1", DMA_SHARED));
    assert_int_equal(dma_channels_request(w.core, NULL, DMA_SHARED, 3, all), -ENODEV);
    assert_int_equal(dma_channels_free(w.core, NULL, DMA_EXCLUSIVE), 2);
    struct dma_channel *mine = dma_channel_request(w.core, "ioat", DMA_EXCLUSIVE);
    struct dma_channel *shared = dma_channel_request(w.core, NULL, DMA_SHARED);
    assert_ptr_not_equal(mine, shared);
    assert_ptr_equal(dma_channel_request(w.core, NULL, DMA_SHARED), shared);
    assert_null(dma_channel_request(w.core, NULL, DMA_EXCLUSIVE));
    assert_int_equal(dma_channels_free(w.core, NULL, DMA_SHARED), 1);
    assert_int_equal(dma_channel_number(mine), 0);
    assert_string_equal(dma_channel_engine(mine), "ioat0");
    assert_int_equal(dma_channel_limits(mine)->copy_bytes_max, 1 << 20);
    assert_ptr_equal(dma_channel_device(mine), &w.fake.pci.device);
    dma_channel_release(shared);
    dma_channel_release(shared);
    dma_channel_release(mine);
    assert_int_equal(w.kernel->dma_live, 0);
    close_world(&w);
}

static void test_what_cannot_be_prepared(void **state)
{
    struct world w;
    struct dma_descriptor *d;
    (void)state;
    open_world(&w, 1, true, 4, 0);
    struct dma_channel *c = dma_channel_request(w.core, NULL, DMA_EXCLUSIVE);
    const uint64_t at = k_alloc(w.kernel, 0, AREA, K_PAGE_BYTES).v;
    assert_int_equal(dma_prepare_copy(c, at, at + 4096, 0, 0, &d), -EINVAL);
    assert_int_equal(dma_prepare_copy(c, at, at + 4096, (1 << 20) + 1, 0, &d), -EINVAL);
    assert_int_equal(dma_prepare_copy(c, at, at + 100, 101, 0, &d), -EINVAL);
    assert_int_equal(dma_prepare_copy(c, at + 100, at, 101, 0, &d), -EINVAL);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(dma_channel_room(c), 3 - i);
        assert_int_equal(dma_prepare_copy(c, at, at + 100, 100, DMA_INTERRUPT, &d), 0);
        assert_int_equal(dma_submit(d), i + 1);
    }
    assert_int_equal(dma_prepare_copy(c, at, at + 100, 100, 0, &d), -EBUSY);
    assert_int_equal(dma_channel_pending(c), 3);
    assert_int_equal(w.fake.n_doorbells, 0);
    dma_issue_pending(c); /* one doorbell for all */
    dma_issue_pending(c);
    assert_int_equal(w.fake.n_doorbells, 1);
    assert_int_equal(dma_wait(c, 3, DMA_SLEEP, UINT64_MAX), 0);
    /* The state of what the ring has forgotten is that of what went well. */
    assert_int_equal(dma_status(c, 1), DMA_COMPLETE);
    dma_channel_release(c);
    close_world(&w);
}

/* An engine that does nothing any more: its copies are aborted, and waiting ends. */
static void test_nobody_waits_for_ever(void **state)
{
    (void)state;
    for (unsigned v1 = 0; v1 < 2; v1++) {
        struct world w;
        struct dma_descriptor *d;
        open_world(&w, 1, v1 != 0, 16, 0);
        struct dma_channel *c = dma_channel_request(w.core, NULL, DMA_SHARED);
        const uint64_t at = k_alloc(w.kernel, 0, AREA, K_PAGE_BYTES).v;
        w.fake.deaf = true;
        assert_int_equal(dma_prepare_copy(c, at, at + 4096, 4096, DMA_INTERRUPT, &d), 0);
        dma_cookie cookie = dma_submit(d);
        dma_issue_pending(c);
        assert_int_equal(dma_wait(c, cookie, DMA_SLEEP, k_now_ps(w.kernel) + FAKE_US(100)),
                         -ETIMEDOUT);
        assert_int_equal(dma_wait(c, cookie, DMA_SLEEP, UINT64_MAX), -ECANCELED);
        assert_int_equal(dma_status(c, cookie), DMA_ABORTED);
        /* And when it does again, so do we. */
        w.fake.deaf = false;
        assert_int_equal(dma_prepare_copy(c, at, at + 4096, 4096, DMA_INTERRUPT, &d), 0);
        cookie = dma_submit(d);
        dma_issue_pending(c);
        assert_int_equal(dma_wait(c, cookie, DMA_SLEEP, UINT64_MAX), 0);
        dma_channel_release(c);
        close_world(&w);
    }
}

/* A callback that prepares, submits and issues the next copy. */
struct relay {
    struct dma_channel *channel;
    uint64_t at;
    unsigned n;
};

static void relay_on(void *arg, dma_cookie cookie, enum dma_state state)
{
    struct relay *relay = arg;
    struct dma_descriptor *d;
    assert_int_equal(state, DMA_COMPLETE);
    assert_int_equal(cookie, ++relay->n);
    if (relay->n == 50)
        return;
    assert_int_equal(
        dma_prepare_copy(relay->channel, relay->at, relay->at + 64, 64, DMA_INTERRUPT, &d), 0);
    d->callback = relay_on;
    d->arg = relay;
    dma_submit(d);
    dma_issue_pending(relay->channel);
}

static void test_callbacks_go_on(void **state)
{
    (void)state;
    for (unsigned v1 = 0; v1 < 2; v1++) {
        struct world w;
        struct dma_descriptor *d;
        open_world(&w, 1, v1 != 0, 4, 0);
        struct relay relay = { .channel = dma_channel_request(w.core, NULL, DMA_SHARED),
                               .at = k_alloc(w.kernel, 0, AREA, K_PAGE_BYTES).v };
        assert_int_equal(
            dma_prepare_copy(relay.channel, relay.at, relay.at + 64, 64, DMA_INTERRUPT, &d), 0);
        d->callback = relay_on;
        d->arg = &relay;
        dma_submit(d);
        dma_issue_pending(relay.channel);
        fake_run_until(w.kernel, w.kernel->now_ps + FAKE_MS(2)); /* interrupts alone */
        assert_int_equal(relay.n, 50);
        dma_channel_release(relay.channel);
        close_world(&w);
    }
}

static void test_options_are_checked(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, 1, false, 16, 0);
    struct ioat_drv_options options = ioat_drv_options_default;
    options.ring = 3;
    assert_null(ioat_drv_new(w.core, &options));
    options.ring = 65536;
    assert_null(ioat_drv_new(w.core, &options));
    options.ring = 16;
    options.interrupt_delay_us = 20000;
    assert_null(ioat_drv_new(w.core, &options));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_what_cannot_be_prepared),
        cmocka_unit_test(test_nobody_waits_for_ever),
        cmocka_unit_test(test_callbacks_go_on),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_threads_share_channels),
        cmocka_unit_test(test_errors_between_them),
        cmocka_unit_test(test_terminated_between_them),
        cmocka_unit_test(test_removed_between_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
