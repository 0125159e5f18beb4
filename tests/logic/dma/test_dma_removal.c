/*
 * Surprise removal of an engine at any moment of dma_terminate() and of the last release, which
 * take time in each of the driver's operations. Whoever comes first: every copy ends once, before
 * both have returned; when the engine is gone no operation begins but stop(), once, with nothing
 * else under way. And a thread that asks for a channel at any moment of another one's last release:
 * it gets one that runs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "logic/dma/dma_driver.h"
#include "tests/support/fake/fake_kapi.h"

#define COPIES     5u
#define ABORT_US   8u
#define CLEAN_US   4u
#define SPIN_US    10u
#define REARM_US   12u
#define MOMENTS    60u /* microseconds */
#define RESUME_BAD 99

static const struct fake_options settings = { .seed = 3, .n_cpus = 4 };

struct world {
    struct kernel *kernel;
    struct dma_core *core;
    struct k_pci_dev pci;
    struct dma_device device;
    struct dma_channel channel;
    unsigned moment_us, n_ended, n_starts, n_stops, n_issued, under_way, n_done;
    unsigned n_gone_in_abort;
    int resumed; /* what dma_resume() has returned during abort() */
    bool releases;
};

/* ---- An engine that does nothing, slowly ----------------------------------------------------- */

static void takes(struct dma_channel *c, unsigned us)
{
    struct world *w = c->device->driver;
    assert_false(c->gone);
    assert_int_equal(w->n_stops, w->n_starts - 1);
    w->under_way++;
    fake_charge(w->kernel, FAKE_US(us));
    w->under_way--;
    assert_int_equal(w->n_stops, w->n_starts - 1);
}

static int start(struct dma_channel *c)
{
    struct world *w = c->device->driver;
    assert_int_equal(w->n_stops, w->n_starts);
    w->n_starts++;
    return 0;
}
static void stop(struct dma_channel *c)
{
    struct world *w = c->device->driver;
    assert_int_equal(w->under_way, 0);
    w->n_stops++;
}
static void fill(struct dma_channel *c, const struct dma_descriptor *d)
{
    (void)c;
    (void)d;
}
static void issue(struct dma_channel *c, uint64_t first, uint64_t end)
{
    ((struct world *)c->device->driver)->n_issued += (unsigned)(end - first);
}
static void rearm(struct dma_channel *c)
{
    takes(c, REARM_US);
}
static void clean(struct dma_channel *c)
{
    takes(c, CLEAN_US);
}
static void spin(struct dma_channel *c, uint64_t until_ps)
{
    (void)until_ps;
    takes(c, SPIN_US);
}
static int resume(struct dma_channel *c)
{
    (void)c;
    return RESUME_BAD;
}
static void abort_all(struct dma_channel *c)
{
    struct world *w = c->device->driver;
    takes(c, ABORT_US);
    w->n_gone_in_abort += c->gone;
    if (!c->gone) { /* as if it had halted: nobody resumes it now */
        c->halted = true;
        w->resumed = dma_resume(c);
    }
}

static const struct dma_channel_ops ops = { .start = start,
                                            .stop = stop,
                                            .fill = fill,
                                            .issue = issue,
                                            .rearm = rearm,
                                            .clean = clean,
                                            .spin = spin,
                                            .resume = resume,
                                            .abort = abort_all };

/* ---- Threads --------------------------------------------------------------------------------- */

static void ended(void *arg, dma_cookie cookie, enum dma_state state)
{
    (void)cookie;
    assert_int_equal(state, DMA_ABORTED);
    ((struct world *)arg)->n_ended++;
}

/* Keeps the driver busy; who has released a channel must not wait for its copies. */
static void waiter(void *arg)
{
    struct world *w = arg;
    if (w->releases) {
        k_sleep(w->kernel, FAKE_US(15));
        dma_channel_interrupt(&w->channel);
        w->n_done++;
        return;
    }
    assert_int_equal(dma_wait(&w->channel, COPIES, DMA_POLL, UINT64_MAX), -ECANCELED);
    w->n_done++;
}

static void ender(void *arg)
{
    struct world *w = arg;
    k_sleep(w->kernel, FAKE_US(20));
    if (w->releases)
        dma_channel_release(&w->channel);
    else
        dma_terminate(&w->channel);
    assert_int_equal(w->n_ended, COPIES);
    w->n_done++;
}

static void remover(void *arg)
{
    struct world *w = arg;
    k_sleep(w->kernel, FAKE_US(w->moment_us));
    dma_device_unregister(&w->device, true, NULL);
    assert_int_equal(w->n_ended, COPIES);
    assert_int_equal(w->n_stops, 1);
    w->n_done++;
}

static void copy(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct dma_descriptor *d;
        assert_int_equal(dma_prepare_copy(&w->channel, 0x10000, 0x20000, 64, 0, &d), 0);
        d->callback = ended;
        d->arg = w;
        dma_submit(d);
    }
    dma_issue_pending(&w->channel);
}

/* Its copy is issued; that of the other thread may be the last user's still, and is its affair. */
static void requester(void *arg)
{
    struct world *w = arg;
    k_sleep(w->kernel, FAKE_US(w->moment_us));
    assert_ptr_equal(dma_channel_request(w->core, NULL, DMA_SHARED), &w->channel);
    assert_int_equal(w->n_stops, w->n_starts - 1);
    const unsigned n_issued = w->n_issued;
    copy(w, 1);
    assert_int_equal(w->n_issued, n_issued + 1);
    k_sleep(w->kernel, FAKE_US(100));
    assert_int_equal(w->n_stops, w->n_starts - 1);
    dma_channel_release(&w->channel);
    assert_int_equal(w->n_ended, COPIES + 1);
    w->n_done++;
}

static void last_user(void *arg)
{
    struct world *w = arg;
    k_sleep(w->kernel, FAKE_US(20));
    dma_channel_release(&w->channel);
    w->n_done++;
}

static struct world *use(void *arg)
{
    struct world *w = arg;
    assert_ptr_equal(dma_channel_request(w->core, NULL, DMA_SHARED), &w->channel);
    copy(w, COPIES);
    k_thread_new(w->kernel, "waiter", 1, waiter, w);
    return w;
}

static void begin_shared(void *arg)
{
    struct world *w = use(arg);
    k_thread_new(w->kernel, "last user", 2, last_user, w);
    k_thread_new(w->kernel, "requester", 3, requester, w);
}

static void begin(void *arg)
{
    struct world *w = use(arg);
    k_thread_new(w->kernel, "ender", 2, ender, w);
    k_thread_new(w->kernel, "remover", 3, remover, w);
}

static void world_init(struct world *w, unsigned moment_us, bool releases)
{
    *w = (struct world){ .kernel = fake_new(&settings),
                         .moment_us = moment_us,
                         .releases = releases };
    w->core = dma_core_new(w->kernel);
    fake_device_init(w->kernel, &w->pci.device, 0, "engine");
    w->device = (struct dma_device){ .kind = "slow",
                                     .name = "slow0",
                                     .device = &w->pci.device,
                                     .ops = &ops,
                                     .limits = { 4096, 16, true },
                                     .channel = &w->channel,
                                     .n_channels = 1,
                                     .driver = w };
    assert_int_equal(dma_device_register(w->core, &w->device), 0);
}

static void run_one(struct world *w, unsigned moment_us, bool releases)
{
    world_init(w, moment_us, releases);
    k_thread_new(w->kernel, "begin", 0, begin, w);
    fake_run_until(w->kernel, w->kernel->now_ps + FAKE_MS(1));
    assert_int_equal(w->n_done, 3);
    if (!releases)
        dma_channel_release(&w->channel);
    assert_int_equal(w->n_ended, COPIES);
    assert_int_equal(w->n_stops, 1);
    assert_int_equal(w->kernel->timers_live, 0);
    dma_core_free(w->core);
    fake_free(w->kernel);
}

static void at_any_moment(bool releases)
{
    unsigned n_in_abort = 0, n_refused = 0;
    for (unsigned moment_us = 0; moment_us < MOMENTS; moment_us++) {
        struct world w;
        run_one(&w, moment_us, releases);
        n_in_abort += w.n_gone_in_abort;
        n_refused += w.resumed == -EINVAL;
        assert_true(w.resumed == 0 || w.resumed == -EINVAL);
    }
    assert_in_range(n_in_abort, ABORT_US - 2, ABORT_US + 2);
    assert_true(n_refused > 0);
}

static void test_removal_during_terminate(void **state)
{
    (void)state;
    at_any_moment(false);
}

static void test_removal_during_the_last_release(void **state)
{
    (void)state;
    at_any_moment(true);
}

static void unregister_body(void *arg)
{
    struct world *w = arg;
    dma_device_unregister(&w->device, false, NULL);
    w->n_done++;
}

static void test_request_during_the_last_release(void **state)
{
    unsigned n_again = 0;
    (void)state;
    for (unsigned moment_us = 0; moment_us < MOMENTS; moment_us++) {
        struct world w;
        world_init(&w, moment_us, true);
        k_thread_new(w.kernel, "begin", 0, begin_shared, &w);
        fake_run_until(w.kernel, w.kernel->now_ps + FAKE_MS(1));
        assert_int_equal(w.n_done, 3);
        assert_int_equal(w.n_ended, COPIES + 1);
        assert_int_equal(w.n_stops, w.n_starts);
        n_again += w.n_starts == 2;
        k_thread_new(w.kernel, "end", 0, unregister_body, &w);
        fake_run_until(w.kernel, w.kernel->now_ps + FAKE_MS(1));
        assert_int_equal(w.n_done, 4);
        dma_core_free(w.core);
        fake_free(w.kernel);
    }
    assert_in_range(n_again, MOMENTS / 2, MOMENTS - 10); /* before the release, and after it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removal_during_terminate),
        cmocka_unit_test(test_removal_during_the_last_release),
        cmocka_unit_test(test_request_during_the_last_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
