/*
 * The copy module, statement by statement: pieces and channels, pins, the three orders of posting,
 * short reads, ends of connections, errors and silence of the engine, schedules, the threshold; and
 * messages through shared memory. Random cases are in test_adma_random.c.
 */
#include "logic/copy/shm_ring.h"
#include "tests/support/adma_rig.h"

#define PAGE K_PAGE_BYTES

static struct adma_rig rig;
static struct dma_fake_options engine;
static struct adma_options options;
static struct umem *umem[2];
static struct adma_process *process[2];

static void defaults(void)
{
    engine = (struct dma_fake_options){ .n_channels = 4, .ring = 64, .copy_ps = K_US };
    options = adma_options_default;
}

static void open_all(void)
{
    const struct fake_options kernel = { .seed = 3 };
    adma_rig_open(&rig, &kernel, &engine, &options);
    for (unsigned i = 0; i < 2; i++) {
        umem[i] = umem_new(rig.kernel);
        process[i] = adma_open(rig.adma, umem[i]);
    }
}

static void close_all(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (process[i] != NULL)
            adma_close(process[i]);
        umem_free(umem[i]);
    }
    adma_rig_close(&rig);
}

/* Waits let engine and other threads go on only where a thread waits. */
static bool body_done;

static void body_in_thread(void *arg)
{
    void (*const *body)(void) = arg;
    (*body)();
    body_done = true;
}

static void run(void (*body)(void))
{
    body_done = false;
    k_thread_new(rig.kernel, "test", 0, body_in_thread, &body);
    for (unsigned i = 0; i < 100 && !body_done; i++)
        fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    assert_true(body_done);
}

/* Two areas of process 0, filled. */
static void areas(uint64_t bytes, unsigned order, struct uaddr *from, struct uaddr *to)
{
    *from = umem_map(umem[0], 0, bytes, order);
    *to = umem_map(umem[0], 0, bytes, order);
    adma_rig_fill(umem[0], *from, 1, 0, bytes);
    adma_rig_fill(umem[0], *to, 2, 0, bytes);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Section 3.4: aligned alike, a descriptor a page; else two; and pages go round over all
 * channels. */
static void pieces(void)
{
    struct uaddr from, to;
    areas(16 * PAGE, 0, &from, &to);
    assert_int_equal(adma_copy(process[0], to, from, 8 * PAGE), 0);
    assert_int_equal(adma_stats(rig.adma)->descriptors, 8);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(rig.engine.channel[i].prepared, 2);
    assert_int_equal(adma_copy(process[0], uaddr_add(to, 2048), from, 8 * PAGE), 0);
    assert_int_equal(adma_stats(rig.adma)->descriptors, 8 + 16);
    assert_int_equal(adma_rig_same(umem[0], uaddr_add(to, 2048), 1, 0, 8 * PAGE), 8 * PAGE);
    /* One page more: the next channel goes on. */
    assert_int_equal(adma_copy(process[0], to, from, PAGE), 0);
    assert_int_equal(adma_copy(process[0], to, from, PAGE), 0);
    assert_int_equal(rig.engine.channel[0].prepared, 7);
    assert_int_equal(rig.engine.channel[1].prepared, 7);
    assert_int_equal(rig.engine.channel[2].prepared, 6);
}

static void test_pieces(void **state)
{
    (void)state;
    defaults();
    open_all();
    run(pieces);
    close_all();
}

/* Section 3.5: pages stay pinned, until memory goes, or the cache is full. */
static void pins(void)
{
    struct uaddr from, to;
    areas(4 * PAGE, 1, &from, &to);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(adma_copy(process[0], to, from, 4 * PAGE), 0);
    assert_int_equal(adma_stats(rig.adma)->pages_pinned, 8);
    assert_int_equal(adma_stats(rig.adma)->pages_hit, 16);
    assert_int_equal(rig.kernel->pins_live, 8);
    umem_unmap(umem[0], to);
    assert_int_equal(rig.kernel->pins_live, 4);
    assert_int_equal(adma_stats(rig.adma)->pages_dropped, 4);
    const struct uaddr again = umem_map(umem[0], 0, 4 * PAGE, 0);
    assert_int_equal(again.v, to.v); /* the same address, other pages */
    assert_int_equal(adma_copy(process[0], again, from, 4 * PAGE), 0);
    assert_int_equal(adma_rig_same(umem[0], again, 1, 0, 4 * PAGE), 4 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->pages_pinned, 12);
    areas(6 * PAGE, 0, &from, &to);
    assert_int_equal(adma_copy(process[0], to, from, 6 * PAGE), 0);
    assert_int_equal(rig.kernel->pins_live, 12); /* the oldest have gone */
}

static void test_pins(void **state)
{
    (void)state;
    defaults();
    options.pin_cache_pages = 12;
    open_all();
    run(pins);
    close_all();
}

/* Pages that cannot be mapped for the engine are the CPU's, and do not stay pinned: once they can
 * be, the engine copies. */
static void not_mapped(void)
{
    struct uaddr from, to;
    areas(4 * PAGE, 0, &from, &to);
    rig.kernel->options.fail_map_every = 1;
    assert_int_equal(adma_copy(process[0], to, from, 4 * PAGE), 0);
    assert_int_equal(adma_rig_same(umem[0], to, 1, 0, 4 * PAGE), 4 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->pages_not_mapped, 8);
    assert_int_equal(adma_stats(rig.adma)->cpu_bytes, 4 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->engine_bytes, 0);
    assert_int_equal(rig.kernel->pins_live, 0);
    rig.kernel->options.fail_map_every = 0;
    adma_rig_fill(umem[0], to, 2, 0, 4 * PAGE);
    assert_int_equal(adma_copy(process[0], to, from, 4 * PAGE), 0);
    assert_int_equal(adma_rig_same(umem[0], to, 1, 0, 4 * PAGE), 4 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->cpu_bytes, 4 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->engine_bytes, 4 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->pages_not_mapped, 8);
    assert_int_equal(adma_stats(rig.adma)->pages_unpinned, 8);
    assert_int_equal(rig.kernel->pins_live, 8);
}

static void test_not_mapped(void **state)
{
    (void)state;
    defaults();
    open_all();
    run(not_mapped);
    close_all();
}

/* Unmapping does not wait for a copy, which keeps its pages. */
static void unmapped_under_way(void)
{
    struct uaddr from, to;
    areas(4 * PAGE, 0, &from, &to);
    const uint64_t pages = rig.kernel->pages_live;
    const adma_cookie cookie = adma_icopy(process[0], to, from, 4 * PAGE);
    const uint64_t begin_ps = rig.kernel->now_ps;
    umem_unmap(umem[0], from);
    umem_unmap(umem[0], to);
    assert_true(rig.kernel->now_ps - begin_ps < 50 * K_US);
    assert_int_equal(adma_check_copy(process[0], cookie), 0);
    assert_int_equal(rig.kernel->pages_live, pages);
    assert_int_equal(adma_wait_copy(process[0], cookie), 0);
    assert_int_equal(rig.kernel->pages_live, pages - 8);
    assert_int_equal(rig.kernel->pins_live, 0);
}

static void test_unmapped_under_way(void **state)
{
    (void)state;
    defaults();
    engine.copy_ps = 50 * K_US;
    open_all();
    run(unmapped_under_way);
    close_all();
}

static void refusals(void)
{
    struct uaddr from, to;
    areas(4 * PAGE, 0, &from, &to);
    assert_int_equal(adma_icopy(process[0], to, from, 0), -EINVAL);
    assert_int_equal(adma_icopy(process[0], uaddr_add(from, 100), from, 101), -EINVAL);
    assert_int_equal(adma_copy(process[0], uaddr_add(from, 100), from, 100), 0);
    assert_int_equal(adma_icopy(process[0], to, uaddr_add(to, 8 * PAGE), 10), -EFAULT);
    assert_int_equal(adma_icopy(process[0], to, from, 5 * PAGE), -EINVAL); /* they touch */
    assert_int_equal(adma_wait_copy(process[0], 4711), -EINVAL);
    assert_int_equal(adma_iread(process[0], 0, to, 10), -EBADF);
    for (unsigned i = 0; i < ADMA_REQUESTS_MAX; i++)
        assert_true(adma_icopy(process[0], to, from, 64) > 0);
    assert_int_equal(adma_icopy(process[0], to, from, 64), -EAGAIN);
    adma_kill(process[0]);
    assert_int_equal(adma_icopy(process[0], to, from, 64), -EINTR);
}

static void test_refusals(void **state)
{
    (void)state;
    defaults();
    open_all();
    run(refusals);
    close_all();
}

/* What the engine fails to copy, or never ends, the CPU copies. */
static void copy_eight(void)
{
    struct uaddr from, to;
    areas(8 * PAGE, 0, &from, &to);
    const uint64_t begin_ps = rig.kernel->now_ps;
    assert_int_equal(adma_copy(process[0], to, from, 8 * PAGE), 0);
    assert_true(rig.kernel->now_ps - begin_ps < 3 * K_MS);
    assert_int_equal(adma_rig_same(umem[0], to, 1, 0, 8 * PAGE), 8 * PAGE);
    assert_int_equal(adma_stats(rig.adma)->redone, 1);
    assert_int_equal(adma_stats(rig.adma)->cpu_bytes, 8 * PAGE);
}

static void test_errors(void **state)
{
    (void)state;
    defaults();
    engine.error_permille = 1000;
    engine.halt_percent = 50;
    open_all();
    run(copy_eight);
    assert_int_equal(adma_stats(rig.adma)->timeouts, 0);
    close_all();
    defaults();
    engine.hang_permille = 1000;
    options.engine_timeout_ps = 2 * K_MS;
    open_all();
    run(copy_eight);
    assert_int_equal(adma_stats(rig.adma)->timeouts, 4);
    close_all();
}

/* Also if its process never waits, but looks again and again. */
static void look_at_eight(void)
{
    struct uaddr from, to;
    int done = 0;
    areas(8 * PAGE, 0, &from, &to);
    const uint64_t begin_ps = rig.kernel->now_ps;
    const adma_cookie cookie = adma_icopy(process[0], to, from, 8 * PAGE);
    while (done == 0 && rig.kernel->now_ps - begin_ps < 20 * K_MS) {
        k_sleep(rig.kernel, 100 * K_US);
        done = adma_check_copy(process[0], cookie);
    }
    assert_int_equal(done, 1);
    assert_true(rig.kernel->now_ps - begin_ps < 3 * K_MS);
    assert_int_equal(adma_rig_same(umem[0], to, 1, 0, 8 * PAGE), 8 * PAGE);
}

static void test_timeout_of_checks(void **state)
{
    (void)state;
    defaults();
    engine.hang_permille = 1000;
    options.engine_timeout_ps = 2 * K_MS;
    open_all();
    run(look_at_eight);
    assert_int_equal(adma_stats(rig.adma)->timeouts, 4);
    close_all();
}

static void no_engine(void)
{
    struct uaddr from, to;
    int status;
    areas(5 * PAGE, 2, &from, &to);
    assert_int_equal(adma_copy(process[0], uaddr_add(to, 7), from, 4 * PAGE), 0);
    assert_int_equal(adma_rig_same(umem[0], uaddr_add(to, 7), 1, 0, 4 * PAGE), 4 * PAGE);
    assert_int_equal(rig.engine.n_copies, 0);
    options.n_channels = 5;
    assert_null(adma_new(rig.kernel, rig.core, &options, &status));
    assert_int_equal(status, -ENODEV);
    options.n_channels = 2;
    options.schedule = ADMA_DEDICATED;
    options.n_dedicated = 2;
    assert_null(adma_new(rig.kernel, rig.core, &options, &status));
    assert_int_equal(status, -EINVAL);
}

static void test_no_engine(void **state)
{
    (void)state;
    defaults();
    options.n_channels = 0;
    open_all();
    run(no_engine);
    close_all();
}

/* ---- Schedules, threshold -------------------------------------------------------------------- */

static uint64_t small_took_ps;

static void small_beside_large(void)
{
    struct uaddr from, to;
    areas(64 * PAGE, 4, &from, &to);
    assert_int_equal(adma_copy(process[0], to, from, PAGE), 0); /* small ones come */
    const adma_cookie large = adma_icopy(process[0], to, from, 64 * PAGE);
    const struct uaddr here = umem_map(umem[1], 0, 2 * PAGE, 0);
    const uint64_t begin_ps = rig.kernel->now_ps;
    assert_int_equal(adma_copy(process[1], here, uaddr_add(here, PAGE), PAGE), 0);
    small_took_ps = rig.kernel->now_ps - begin_ps;
    assert_int_equal(adma_wait_copy(process[0], large), 0);
}

static uint64_t small_by(enum adma_schedule schedule)
{
    defaults();
    engine.ring = 1024;
    engine.copy_ps = 5 * K_US;
    options.schedule = schedule;
    options.small_bytes = PAGE;
    open_all();
    run(small_beside_large);
    close_all();
    return small_took_ps;
}

static void test_schedules(void **state)
{
    (void)state;
    const uint64_t behind_ps = small_by(ADMA_ROUND_ROBIN);
    assert_true(behind_ps > 80 * K_US); /* 16 pages of each channel, more than 5 us each */
    assert_true(small_by(ADMA_DEDICATED) < behind_ps / 3);
    assert_true(small_by(ADMA_ADAPTIVE) < behind_ps / 3);
}

static void two_hundred(void)
{
    struct uaddr from, to;
    areas(PAGE, 0, &from, &to);
    for (unsigned i = 0; i < 200; i++)
        assert_int_equal(adma_copy(process[0], to, from, PAGE), 0);
}

/* An engine that takes 20 us a copy loses at a page. */
static void test_threshold(void **state)
{
    (void)state;
    defaults();
    engine.copy_ps = 20 * K_US;
    options.learns = true;
    open_all();
    run(two_hundred);
    const struct adma_stats *stats = adma_stats(rig.adma);
    assert_true(stats->cpu_copies > 9 * stats->engine_copies);
    assert_true(stats->engine_copies > 2); /* it is tried again */
    close_all();
}

/* ---- Two processes --------------------------------------------------------------------------- */

struct other {
    uint64_t wait_ps;
    int64_t result;
    struct uaddr at;
    uint64_t bytes;
    bool connected, done;
    int fd;
};
static struct other other;

static void connect_body(void *arg)
{
    (void)arg;
    other.fd = adma_accept(process[1], 9, UINT64_MAX);
    other.connected = true;
}

static int connect_both(void)
{
    other = (struct other){ .fd = -1 };
    k_thread_new(rig.kernel, "accepts", 1, connect_body, NULL);
    const int fd = adma_connect(process[0], 9, k_now_ps(rig.kernel) + K_MS);
    k_sleep(rig.kernel, 100 * K_US);
    assert_true(fd >= 0 && other.connected && other.fd >= 0);
    other.at = umem_map(umem[1], 0, 8 * PAGE, 0);
    return fd;
}

static void read_later(void *arg)
{
    (void)arg;
    k_sleep(rig.kernel, other.wait_ps);
    other.result = adma_read(process[1], other.fd, other.at, other.bytes, UINT64_MAX);
    other.done = true;
}

/* Case 1 of section 3.3, the writer waits on the semaphore; case 2, the reader; case 3, nobody. */
static void orders(void)
{
    struct uaddr from, to;
    areas(4 * PAGE, 0, &from, &to);
    const int fd = connect_both();
    const struct adma_stats *stats = adma_stats(rig.adma);
    other.bytes = 4 * PAGE;
    other.wait_ps = 50 * K_US;
    k_thread_new(rig.kernel, "reads", 1, read_later, NULL);
    assert_int_equal(adma_write(process[0], fd, from, 4 * PAGE, UINT64_MAX), 4 * PAGE);
    assert_int_equal(stats->semaphore_waits, 1);
    k_sleep(rig.kernel, 100 * K_US);
    assert_true(other.done && other.result == 4 * PAGE);
    other.wait_ps = 0;
    other.done = false;
    k_thread_new(rig.kernel, "reads", 1, read_later, NULL);
    k_sleep(rig.kernel, 50 * K_US);
    assert_false(other.done);
    assert_int_equal(adma_write(process[0], fd, from, 4 * PAGE, UINT64_MAX), 4 * PAGE);
    k_sleep(rig.kernel, 100 * K_US);
    assert_true(other.done && other.result == 4 * PAGE);
    assert_int_equal(stats->semaphore_waits, 2);
    const adma_cookie write = adma_iwrite(process[0], fd, from, 4 * PAGE);
    const adma_cookie read = adma_iread(process[1], other.fd, other.at, 4 * PAGE);
    assert_int_equal(adma_wait(process[0], write, UINT64_MAX), 4 * PAGE);
    assert_int_equal(adma_wait(process[1], read, UINT64_MAX), 4 * PAGE);
    assert_int_equal(stats->semaphore_waits, 2);
    assert_int_equal(adma_rig_same(umem[1], other.at, 1, 0, 4 * PAGE), 4 * PAGE);
}

static void test_orders(void **state)
{
    (void)state;
    defaults();
    open_all();
    run(orders);
    close_all();
}

/* A read takes what is left of one write; a write ends when all of it is read. */
static void partial(void)
{
    struct uaddr from, to;
    int64_t result;
    areas(4 * PAGE, 0, &from, &to);
    const int fd = connect_both();
    const adma_cookie write = adma_iwrite(process[0], fd, from, 5000);
    const struct uaddr at = other.at;
    assert_int_equal(adma_read(process[1], other.fd, at, 3000, UINT64_MAX), 3000);
    assert_false(adma_check(process[0], write, &result));
    assert_int_equal(adma_wait(process[0], write, k_now_ps(rig.kernel) + 10 * K_US), -ETIMEDOUT);
    assert_int_equal(adma_read(process[1], other.fd, uaddr_add(at, 3000), 9000, UINT64_MAX), 2000);
    assert_true(adma_check(process[0], write, &result));
    assert_int_equal(result, 5000);
    assert_int_equal(adma_rig_same(umem[1], at, 1, 0, 5000), 5000);
    assert_int_equal(adma_write(process[0], fd, from, 0, UINT64_MAX), 0);
    /* Nobody reads: withdrawn in time, with what was read of it. */
    const uint64_t until_ps = k_now_ps(rig.kernel) + 20 * K_US;
    assert_int_equal(adma_write(process[0], fd, from, 100, until_ps), -ETIMEDOUT);
    assert_int_equal(adma_read(process[1], other.fd, at, 100, until_ps + 10 * K_US), -ETIMEDOUT);
}

static void test_partial(void **state)
{
    (void)state;
    defaults();
    open_all();
    run(partial);
    close_all();
}

static void ends(void)
{
    struct uaddr from, to;
    areas(4 * PAGE, 0, &from, &to);
    const int fd = connect_both();
    const adma_cookie write = adma_iwrite(process[0], fd, from, 5000);
    const adma_cookie unread = adma_iwrite(process[0], fd, from, 100);
    assert_int_equal(adma_read(process[1], other.fd, other.at, 3000, UINT64_MAX), 3000);
    adma_close(process[1]);
    process[1] = NULL;
    assert_int_equal(adma_wait(process[0], write, UINT64_MAX), 3000);
    assert_int_equal(adma_wait(process[0], unread, UINT64_MAX), -EPIPE);
    assert_int_equal(adma_read(process[0], fd, to, 100, UINT64_MAX), 0);
    assert_int_equal(adma_iwrite(process[0], fd, from, 100), -EPIPE);
    assert_int_equal(adma_disconnect(process[0], fd), 0);
    assert_int_equal(adma_disconnect(process[0], fd), -EBADF);
    const uint64_t until_ps = k_now_ps(rig.kernel) + 20 * K_US;
    assert_int_equal(adma_connect(process[0], 9, until_ps), -ETIMEDOUT);
}

static void test_ends(void **state)
{
    (void)state;
    defaults();
    open_all();
    run(ends);
    close_all();
}

/* ---- Shared memory --------------------------------------------------------------------------- */

struct ring_end {
    struct shm_ring *ring;
    struct uaddr at;
    uint64_t bytes;
    bool stop, done, well;
};

static void receive_body(void *arg)
{
    struct ring_end *end = arg;
    end->well = shm_ring_receive(end->ring, umem[1], end->at, end->bytes, &end->stop);
    end->done = true;
}

static void send_body(void *arg)
{
    struct ring_end *end = arg;
    end->well = shm_ring_send(end->ring, umem[0], end->at, end->bytes, &end->stop);
    end->done = true;
}

static void test_shared_memory(void **state)
{
    struct ring_end end = { .bytes = 3 * PAGE + 17 }, send;
    struct uaddr from, to;
    (void)state;
    defaults();
    open_all();
    areas(4 * PAGE, 0, &from, &to);
    end.ring = shm_ring_new(rig.kernel, 2, 1000);
    end.at = umem_map(umem[1], 0, 4 * PAGE, 0);
    k_thread_new(rig.kernel, "receives", 1, receive_body, &end);
    send = end;
    send.at = from;
    k_thread_new(rig.kernel, "sends", 0, send_body, &send);
    fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    assert_true(send.done && send.well && end.done && end.well);
    assert_int_equal(adma_rig_same(umem[1], end.at, 1, 0, end.bytes), end.bytes);
    end.done = false;
    k_thread_new(rig.kernel, "receives", 1, receive_body, &end);
    fake_run_until(rig.kernel, rig.kernel->now_ps + 10 * K_US);
    assert_false(end.done);
    end.stop = true;
    fake_run_until(rig.kernel, rig.kernel->now_ps + 10 * K_US);
    assert_true(end.done && !end.well);
    shm_ring_free(end.ring);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_pins),
        cmocka_unit_test(test_not_mapped),
        cmocka_unit_test(test_unmapped_under_way),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_timeout_of_checks),
        cmocka_unit_test(test_no_engine),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
