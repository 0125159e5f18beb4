/*
 * The copy module with several threads of a process, and processes that outlive each other: what
 * one thread does while another one is in the middle of a call.
 */
#include "logic/copy/adma_internal.h"
#include "tests/support/adma_rig.h"

#define PAGE K_PAGE_BYTES
#define PORT 5u

static struct adma_rig rig;
static struct dma_fake_options engine;
static struct adma_options options;
static struct umem *umem[2];
static struct adma_process *process[2];
static unsigned n_done;

static void defaults(void)
{
    engine = (struct dma_fake_options){ .n_channels = 1, .ring = 64, .copy_ps = 300 * K_NS };
    options = adma_options_default;
    options.n_channels = 1;
}

static void open_all(void)
{
    const struct fake_options kernel = { .seed = 1, .n_cpus = 3 };
    adma_rig_open(&rig, &kernel, &engine, &options);
    for (unsigned i = 0; i < 2; i++) {
        umem[i] = umem_new(rig.kernel);
        process[i] = adma_open(rig.adma, umem[i]);
    }
    n_done = 0;
}

static void close_one(unsigned i)
{
    if (process[i] == NULL)
        return;
    adma_close(process[i]);
    umem_free(umem[i]);
    process[i] = NULL;
}

static void close_all(void)
{
    for (unsigned i = 0; i < 2; i++)
        close_one(i);
    adma_rig_close(&rig);
}

static void thread(unsigned cpu, void (*body)(void *), uintptr_t arg)
{
    k_thread_new(rig.kernel, "test", (int)cpu, body, (void *)arg);
}

/* Until so many bodies have ended. */
static void until_done(unsigned n)
{
    for (unsigned i = 0; i < 100 && n_done < n; i++)
        fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    assert_int_equal(n_done, n);
}

/* ---- A reader that outlives its writer ------------------------------------------------------- */

static bool writer_gone;

static void writes_and_goes(void *arg)
{
    (void)arg;
    const int fd = adma_connect(process[0], PORT, UINT64_MAX);
    const struct uaddr at = umem_map(umem[0], 0, 2 * PAGE, 0);
    assert_int_equal(adma_write(process[0], fd, at, 2 * PAGE, UINT64_MAX), 2 * PAGE);
    close_one(0);
    writer_gone = true;
    n_done++;
}

static void reads_later(void *arg)
{
    (void)arg;
    const int fd = adma_accept(process[1], PORT, UINT64_MAX);
    const struct uaddr at = umem_map(umem[1], 0, 2 * PAGE, 0);
    const adma_cookie cookie = adma_iread(process[1], fd, at, 2 * PAGE);
    while (!writer_gone)
        k_sleep(rig.kernel, K_US);
    k_sleep(rig.kernel, 10 * K_MS); /* by then the writer's structures have been freed */
    assert_int_equal(adma_wait(process[1], cookie, UINT64_MAX), 2 * PAGE);
    n_done++;
}

static void test_writer_goes(void **state)
{
    (void)state;
    defaults();
    options.learns = true;
    open_all();
    writer_gone = false;
    thread(0, reads_later, 0);
    thread(1, writes_and_goes, 0);
    until_done(2);
    close_all();
}

/* ---- Threads that wait for a peer ------------------------------------------------------------ */

static int got[2];

static void accepts(void *arg)
{
    const unsigned i = (unsigned)(uintptr_t)arg;
    got[i] = adma_accept(process[0], PORT + i, UINT64_MAX);
    n_done++;
}

static void kills(void *arg)
{
    (void)arg;
    k_sleep(rig.kernel, K_MS);
    adma_kill(process[0]);
    n_done++;
}

/* All threads that wait for a peer get to know that their process dies. */
static void test_kill(void **state)
{
    (void)state;
    defaults();
    open_all();
    thread(0, accepts, 0);
    thread(1, accepts, 1);
    thread(2, kills, 0);
    until_done(3);
    assert_int_equal(got[0], -EINTR);
    assert_int_equal(got[1], -EINTR);
    close_all();
}

static bool late_done;

/* Takes the lowest descriptor, which the thread that waits has had. */
static void disconnects_and_connects(void *arg)
{
    (void)arg;
    k_sleep(rig.kernel, K_MS);
    assert_int_equal(adma_disconnect(process[0], 0), 0);
    assert_int_equal(adma_connect(process[0], PORT + 1, UINT64_MAX), 0);
    k_sleep(rig.kernel, 10 * K_MS); /* the first wait is over */
    const struct uaddr at = umem_map(umem[0], 0, PAGE, 0);
    assert_int_equal(adma_write(process[0], 0, at, PAGE, UINT64_MAX), PAGE);
    n_done++;
}

static void accepts_and_reads(void *arg)
{
    (void)arg;
    k_sleep(rig.kernel, 2 * K_MS);
    /* Nobody waits at the first port any more. */
    const uint64_t until_ps = k_now_ps(rig.kernel) + K_MS / 2;
    assert_int_equal(adma_connect(process[1], PORT, until_ps), -ETIMEDOUT);
    const int fd = adma_accept(process[1], PORT + 1, UINT64_MAX);
    const struct uaddr at = umem_map(umem[1], 0, PAGE, 0);
    assert_true(fd >= 0);
    assert_int_equal(adma_read(process[1], fd, at, PAGE, UINT64_MAX), PAGE);
    n_done++;
}

static void waits_in_vain(void *arg)
{
    (void)arg;
    const uint64_t until_ps = k_now_ps(rig.kernel) + 5 * K_MS;
    got[0] = adma_accept(process[0], PORT, until_ps);
    late_done = k_now_ps(rig.kernel) >= until_ps;
    n_done++;
}

/* A thread waits for a peer while another one disconnects, and gets the same descriptor anew: the
 * first one's call ends at once and leaves the new connection alone. */
static void test_disconnect(void **state)
{
    (void)state;
    defaults();
    open_all();
    thread(0, waits_in_vain, 0);
    thread(1, disconnects_and_connects, 0);
    thread(2, accepts_and_reads, 0);
    until_done(3);
    assert_int_equal(got[0], -EBADF);
    assert_false(late_done);
    close_all();
}

/* ---- Threads that pin the same pages --------------------------------------------------------- */

#define N_PAGES 64u

static struct uaddr shared, own[2];
static unsigned n_pinned;

/* Its target is pinned when both begin to copy from pages that nobody has used before. */
static void copies_shared(void *arg)
{
    const unsigned i = (unsigned)(uintptr_t)arg;
    const struct uaddr other = umem_map(umem[0], 0, N_PAGES * PAGE, 0);
    own[i] = umem_map(umem[0], 0, N_PAGES * PAGE, 0);
    assert_int_equal(adma_copy(process[0], own[i], other, N_PAGES * PAGE), 0);
    n_pinned++;
    while (n_pinned < 2)
        k_compute(rig.kernel, 10);
    assert_int_equal(adma_copy(process[0], own[i], shared, N_PAGES * PAGE), 0);
    n_done++;
}

/* The pages are pinned once, and the engine makes both copies. */
static void test_shared_source(void **state)
{
    (void)state;
    defaults();
    open_all();
    shared = umem_map(umem[0], 0, N_PAGES * PAGE, 0);
    adma_rig_fill(umem[0], shared, 7, 0, N_PAGES * PAGE);
    n_pinned = 0;
    thread(0, copies_shared, 0);
    thread(1, copies_shared, 1);
    until_done(2);
    const struct adma_stats *stats = adma_stats(rig.adma);
    assert_int_equal(stats->engine_copies, 4);
    assert_int_equal(stats->redone, 0);
    assert_int_equal(stats->cpu_bytes, 0);
    assert_int_equal(stats->pages_pinned, 5 * N_PAGES);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(adma_rig_same(umem[0], own[i], 7, 0, N_PAGES * PAGE), N_PAGES * PAGE);
    close_all();
}

static int failed[2];

static void copies_or_fails(void *arg)
{
    const unsigned i = (unsigned)(uintptr_t)arg;
    failed[i] = adma_copy(process[0], own[i], shared, N_PAGES * PAGE);
    n_done++;
}

/* Pages whose pinning fails do not stay in the cache: the next copy pins them. Who has waited for
 * them fails, too, and nothing is left. */
static void test_pin_fails(void **state)
{
    (void)state;
    defaults();
    open_all();
    shared = umem_map(umem[0], 0, N_PAGES * PAGE, 10);
    own[0] = own[1] = umem_map(umem[0], 0, N_PAGES * PAGE, 10);
    rig.kernel->options.fail_pin_every = 1;
    thread(0, copies_or_fails, 0);
    thread(1, copies_or_fails, 1);
    until_done(2);
    assert_int_equal(failed[0], -ENOMEM);
    assert_int_equal(failed[1], -ENOMEM);
    assert_int_equal(adma_stats(rig.adma)->pages_hit, N_PAGES);
    assert_int_equal(rig.kernel->pins_live, 0);
    rig.kernel->options.fail_pin_every = 0;
    thread(0, copies_or_fails, 0);
    until_done(3);
    assert_int_equal(failed[0], 0);
    assert_int_equal(adma_stats(rig.adma)->pages_pinned, 2 * N_PAGES);
    assert_int_equal(rig.kernel->pins_live, 2 * N_PAGES);
    assert_int_equal(adma_stats(rig.adma)->redone, 0);
    close_all();
}

/* ---- A ring that is too small ---------------------------------------------------------------- */

#define N_THREADS 3u

struct busy {
    struct umem *umem;
    unsigned number, n_pages, wrong;
};

static void copies_much(void *arg)
{
    struct busy *b = arg;
    struct adma_process *p = adma_open(rig.adma, b->umem);
    const uint64_t bytes = b->n_pages * PAGE;
    const struct uaddr from = umem_map(b->umem, 0, bytes, 0), to = umem_map(b->umem, 0, bytes, 0);
    for (unsigned i = 0; i < 30; i++) {
        const uint64_t content = i * N_THREADS + b->number + 1;
        adma_rig_fill(b->umem, from, content, 0, bytes);
        b->wrong += adma_copy(p, to, from, bytes) != 0;
        b->wrong += adma_rig_same(b->umem, to, content, 0, bytes) != bytes;
    }
    adma_close(p);
    umem_free(b->umem);
    n_done++;
}

/* Lists of lanes that wait for room have none that has been given wholly: its transfer may end at
 * any time, and its structure be in use for the next one. */
static void look_at_lists(void)
{
    for (unsigned i = 0; i < rig.adma->n_channels; i++)
        for (const struct adma_lane *lane = rig.adma->channel[i].waiting; lane != NULL;
             lane = lane->next) {
            assert_true(lane->waiting && lane->open);
            assert_int_equal(lane->transfer->state, TRANSFER_RUNS);
        }
}

/* Several processes have more to copy than the ring takes, on CPUs that stop now and then. */
static void test_small_ring(void **state)
{
    const struct fake_options kernel = {
        .seed = 1, .n_cpus = 4, .stall_percent = 15, .stall_ps = FAKE_US(200)
    };
    struct busy busy[N_THREADS];
    (void)state;
    defaults();
    engine.copy_ps = 100 * K_NS;
    adma_rig_open(&rig, &kernel, &engine, &options);
    n_done = 0;
    for (unsigned i = 0; i < N_THREADS; i++) {
        busy[i] =
            (struct busy){ .umem = umem_new(rig.kernel), .number = i, .n_pages = 150 - 60 * i };
        k_thread_new(rig.kernel, "test", (int)i, copies_much, &busy[i]);
    }
    const uint64_t until_ps = rig.kernel->now_ps + 4000 * K_MS;
    while (n_done < N_THREADS && rig.kernel->now_ps < until_ps) {
        fake_run_until(rig.kernel, rig.kernel->now_ps + 20 * K_NS);
        look_at_lists();
    }
    assert_int_equal(n_done, N_THREADS);
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_int_equal(busy[i].wrong, 0);
    adma_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_goes), cmocka_unit_test(test_kill),
        cmocka_unit_test(test_disconnect),  cmocka_unit_test(test_shared_source),
        cmocka_unit_test(test_pin_fails),   cmocka_unit_test(test_small_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
