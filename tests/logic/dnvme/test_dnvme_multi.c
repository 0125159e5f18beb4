/*
 * A client of the distributed NVMe driver with two paths, and its manager, on one fake kernel with
 * a controller of the data sheet (nvme_fake.h), over a fake of SISCI (fake_sisci.h). What holds:
 * every I/O ends, once, whatever fails when; what is read was written; nothing is left.
 */
#include "tests/support/nvme_fake.h"

#include "logic/dnvme/dnvme_internal.h"
#include "tests/logic/dnvme/fake_sisci.h"

#define BLOCKS     64u /* that are written and read, 4 KiB each */
#define BLOCK      4096u
#define FIRST      0x1000u
#define LEASE_PS   FAKE_MS(20)
#define TIMEOUT_PS FAKE_MS(2)

static struct {
    struct dnvme_manager *manager;
    struct dnvme_client *client;
    struct dnvme_multi *multi;
    bool closed;
} rig;

/* ---- Cables ---------------------------------------------------------------------------------- */

/* What the controller completes is lost from here on, in the queues that lead to the path now. */
static void lose_completions(unsigned path)
{
    const struct dnvme_pair *pair = rig.multi != NULL ? rig.multi->pair[path] : NULL;
    if (pair != NULL && pair->handle != 0)
        fabric.nvme->queue[WIRE_HANDLE_NUMBER(pair->handle)].lost = true;
}

/* Mappings survive with `hold`. */
static void cut(unsigned path, bool hold)
{
    if (fabric.link[path].down)
        return;
    fabric.link[path].down = true;
    lose_completions(path);
    for (struct sisci_remote *r = fabric.remotes, *next; r != NULL; r = next) {
        next = r->next;
        if (r->adapter != path)
            continue;
        r->lost = r->lost || !hold;
        for (struct sisci_map *map = r->maps; map != NULL; map = map->next)
            map->lost = r->lost;
        if (r->changed != NULL)
            r->changed(r, r->lost ? SISCI_CB_LOST : SISCI_CB_NOT_OPERATIONAL, r->context);
    }
}

static void mend(unsigned path)
{
    if (!fabric.link[path].down)
        return;
    fabric.link[path].down = false;
    for (struct sisci_remote *r = fabric.remotes; r != NULL; r = r->next)
        if (r->adapter == path && r->changed != NULL && !r->lost)
            r->changed(r, SISCI_CB_OPERATIONAL, r->context);
}

/* ---- A client -------------------------------------------------------------------------------- */

static void open_rig(void)
{
    struct dnvme_manager_params manager = dnvme_manager_params_default;
    const struct dnvme_pair_params pair = dnvme_pair_params_default;
    const struct dnvme_client_params client = { .segment = manager.segment,
                                                .first_segment = FIRST,
                                                .n_paths = PATHS,
                                                .adapter = { 0, 1 },
                                                .timeout_ps = TIMEOUT_PS,
                                                .cpu = 2 };
    fabric_init();
    manager.lease_ps = LEASE_PS;
    manager.cpu = 1;
    assert_int_equal(dnvme_manager_new(fabric.kernel, &fabric.process,
                                       (struct sisci_device_name){ 0 }, &manager, &rig.manager,
                                       NULL),
                     0);
    assert_int_equal(dnvme_client_new(fabric.kernel, &fabric.process,
                                      (struct sisci_device_name){ 0 }, &client, &rig.client, NULL),
                     0);
    assert_int_equal(dnvme_multi_new(rig.client, &pair, TIMEOUT_PS, &rig.multi, NULL), 0);
}

static void close_rig(void)
{
    for (unsigned i = 0; i < PATHS; i++)
        mend(i);
    assert_int_equal(dnvme_multi_stats(rig.multi).outstanding, 0);
    dnvme_multi_free(rig.multi);
    rig.multi = NULL;
    dnvme_client_free(rig.client);
    k_sleep(fabric.kernel, 2 * LEASE_PS);
    dnvme_manager_free(rig.manager);
    assert_int_equal(fabric.n_windows, 0);
    assert_int_equal(fabric.n_maps, 0);
    assert_int_equal(fabric.n_devices, 0);
    assert_null(fabric.segments);
    assert_null(fabric.remotes);
    free(fabric.nvme);
    rig.closed = true;
}

/* ---- I/O ------------------------------------------------------------------------------------- */

struct slot {
    struct dnvme_io io;
    unsigned block;
    bool busy;
};
static struct {
    struct dnvme_buffer buffer;
    struct slot slot[16];
    uint8_t version[BLOCKS];
    bool taken[BLOCKS], resubmit;
    unsigned n_ended, n_refused, n_aborted;
    void (*in_done)(void), (*after_done)(void);
} io;

static void submit(struct slot *slot, unsigned block, bool write)
{
    const unsigned number = (unsigned)(slot - io.slot);
    uint8_t data[BLOCK];
    assert_false(slot->busy || io.taken[block]);
    slot->busy = io.taken[block] = true;
    slot->block = block;
    io.version[block] += write;
    memset(data, write ? io.version[block] : 0xee, sizeof data);
    k_poke(fabric.kernel, kaddr_add(io.buffer.at, number * BLOCK), data, sizeof data);
    slot->io.write = write;
    slot->io.block = block * (BLOCK / NVME_FAKE_BLOCK_BYTES);
    dnvme_multi_submit(rig.multi, &slot->io);
}

static void io_done(struct dnvme_io *ended)
{
    struct slot *slot = ended->context;
    const unsigned number = (unsigned)(slot - io.slot);
    uint8_t data[BLOCK];
    assert_true(slot->busy);
    slot->busy = io.taken[slot->block] = false;
    io.n_ended++;
    io.n_refused += NVME_STATUS_CODE(ended->status) == NVME_SC_INVALID_FIELD;
    io.n_aborted += NVME_STATUS_CODE(ended->status) == NVME_SC_ABORTED_SQ_DELETED;
    if (ended->status == NVME_SC_SUCCESS && !ended->write) {
        k_peek(fabric.kernel, kaddr_add(io.buffer.at, number * BLOCK), data, sizeof data);
        for (unsigned i = 0; i < sizeof data; i++)
            assert_int_equal(data[i], io.version[slot->block]);
    }
    if (io.in_done != NULL)
        io.in_done();
    if (io.resubmit)
        submit(slot, slot->block, !ended->write);
    if (io.after_done != NULL)
        io.after_done();
}

static void open_io(void)
{
    open_rig();
    memset(&io, 0, sizeof io);
    assert_int_equal(dnvme_buffer_new(rig.client, 16 * BLOCK, &io.buffer, NULL), 0);
    for (unsigned i = 0; i < 16; i++)
        io.slot[i].io = (struct dnvme_io){ .nsid = 1,
                                           .n_blocks = BLOCK / NVME_FAKE_BLOCK_BYTES,
                                           .buffer = &io.buffer,
                                           .offset = i * BLOCK,
                                           .bytes = BLOCK,
                                           .done = io_done,
                                           .context = &io.slot[i] };
}

static void close_io(void)
{
    dnvme_buffer_free(rig.client, &io.buffer);
    close_rig();
}

static void wait_for(uint64_t ps)
{
    const uint64_t until_ps = k_now_ps(fabric.kernel) + ps;
    while (k_now_ps(fabric.kernel) < until_ps)
        dnvme_multi_wait(rig.multi, until_ps);
}

static void wait_for_all(uint64_t ps)
{
    const uint64_t until_ps = k_now_ps(fabric.kernel) + ps;
    io.resubmit = false;
    while (dnvme_multi_stats(rig.multi).outstanding != 0) {
        assert_true(k_now_ps(fabric.kernel) < until_ps);
        dnvme_multi_wait(rig.multi, until_ps);
    }
}

/* A program of one thread, which alone lets time pass for others while it polls. */
static void run(void (*body)(void *), void *arg, uint64_t seed, unsigned stall_percent)
{
    const struct fake_options options = {
        .seed = seed, .n_cpus = 6, .n_nodes = 1, .stall_percent = stall_percent
    };
    memset(&rig, 0, sizeof rig);
    memset(&fabric, 0, sizeof fabric);
    fabric.kernel = fake_new(&options);
    k_thread_new(fabric.kernel, "io", 0, body, arg);
    fake_run_until(fabric.kernel, FAKE_MS(2000));
    assert_true(rig.closed);
    fake_free(fabric.kernel);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* What cannot be put into a queue ends with a status, behind which others go on. */
static void refused_body(void *arg)
{
    struct dnvme_buffer large;
    (void)arg;
    open_io();
    rig.multi->params.list_bytes = 0;
    for (unsigned i = 0; i < PATHS; i++) /* as they would be with such pairs */
        rig.multi->pair[i]->qp.params.list_bytes = 0;
    assert_int_equal(dnvme_buffer_new(rig.client, 16384, &large, NULL), 0);
    io.slot[0].io.buffer = &large;
    io.slot[0].io.bytes = 16384;
    io.slot[0].io.n_blocks = 16384 / NVME_FAKE_BLOCK_BYTES;
    submit(&io.slot[0], 0, true);
    submit(&io.slot[1], 9, true);
    wait_for_all(FAKE_MS(1));
    assert_int_equal(io.n_ended, 2);
    assert_int_equal(io.n_refused, 1);
    dnvme_buffer_free(rig.client, &large);
    close_io();
}

static void test_refused(void **state)
{
    (void)state;
    run(refused_body, NULL, 2, 0);
}

/* The lease cannot be renewed in time between the entry and the doorbell: the entry is not written
 * again. */
static void ring_later_body(void *arg)
{
    (void)arg;
    open_io();
    struct dnvme_mail *mail = &rig.client->mail;
    const uint64_t fetched = fabric.nvme->queue[1].sq_tail;
    mail->valid_until_ps = k_now_ps(fabric.kernel) + 10 * K_NS;
    submit(&io.slot[0], 0, true);
    assert_int_equal(nvme_user_qp_outstanding(&rig.multi->pair[0]->qp), 1);
    assert_int_equal(rig.multi->pair[0]->qp.rung, 0);
    assert_null(rig.multi->again);
    mail->valid_until_ps = k_now_ps(fabric.kernel) + LEASE_PS;
    wait_for_all(FAKE_MS(1));
    assert_int_equal(io.n_ended, 1);
    assert_int_equal(fabric.nvme->queue[1].sq_tail, fetched + 1);
    close_io();
}

static void test_ring_later(void **state)
{
    (void)state;
    run(ring_later_body, NULL, 2, 0);
}

/* Both cables are out for longer than the lease: all I/O ends, that of either queue pair and that
 * which was in none, and so does what is submitted afterwards. */
static void lease_body(void *arg)
{
    const bool *hold = arg;
    {
        open_io();
        fabric.nvme->delay_ps = FAKE_MS(1);
        for (unsigned i = 0; i < 4; i++)
            submit(&io.slot[i], i, true);
        cut(0, *hold);
        wait_for(200 * K_US);
        for (unsigned i = 4; i < 8; i++)
            submit(&io.slot[i], i, true);
        cut(1, *hold);
        for (unsigned i = 8; i < 12; i++)
            submit(&io.slot[i], i, true);
        wait_for_all(4 * LEASE_PS);
        assert_true(dnvme_client_lost(rig.client));
        assert_int_equal(io.n_ended, 12);
        assert_true(io.n_aborted >= 4);
        submit(&io.slot[0], 0, true);
        wait_for_all(FAKE_MS(1));
        assert_int_equal(io.n_ended, 13);
        close_io();
    }
}

static void test_lease(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        bool hold = i != 0;
        run(lease_body, &hold, 3, 0);
    }
}

/* The device is lost while a path is down, and the manager with it. */
static void device_lost_body(void *arg)
{
    (void)arg;
    open_io();
    fabric.nvme->delay_ps = FAKE_MS(1);
    for (unsigned i = 0; i < 4; i++)
        submit(&io.slot[i], i, true);
    cut(0, false);
    cut(1, false);
    fabric.client_device->lost = true;
    wait_for_all(FAKE_MS(1));
    assert_int_equal(io.n_aborted, 4);
    close_io();
}

static void test_device_lost(void **state)
{
    (void)state;
    run(device_lost_body, NULL, 2, 0);
}

/* The lender has ended the borrow while no path worked; one comes back, but no window can be had by
 * it. */
static void forgotten_body(void *arg)
{
    (void)arg;
    open_io();
    fabric.nvme->delay_ps = FAKE_MS(1);
    for (unsigned i = 0; i < 4; i++)
        submit(&io.slot[i], i, true);
    cut(0, false);
    cut(1, false);
    wait_for(200 * K_US);
    fabric.forgotten = true;
    mend(0);
    wait_for_all(FAKE_MS(10));
    assert_int_equal(io.n_aborted, 4);
    close_io();
}

static void test_forgotten(void **state)
{
    (void)state;
    run(forgotten_body, NULL, 2, 0);
}

/* A controller that does not answer any more, so that the manager cannot delete queues. */
static void dead_controller_body(void *arg)
{
    (void)arg;
    open_io();
    io.resubmit = true;
    for (unsigned i = 0; i < 4; i++)
        submit(&io.slot[i], i, true);
    wait_for(FAKE_MS(1));
    fabric.nvme->gone = true;
    struct dnvme_namespace ns;
    struct nvme_user_command identify = {
        .sqe = { .opcode = NVME_ADMIN_IDENTIFY, .nsid = 1, .prp1 = io.buffer.bus[0] }
    };
    dnvme_client_admin(rig.client, &identify); /* by which the manager learns it */
    assert_int_equal(dnvme_client_namespace(rig.client, 1, &ns), 0);
    wait_for_all(FAKE_MS(20));
    assert_true(io.n_aborted >= 4);
    close_io();
}

static void test_dead_controller(void **state)
{
    (void)state;
    run(dead_controller_body, NULL, 2, 0);
}

/* The cable is back, and mappings are valid, when the thread tells the controller what it has
 * taken. */
static void stay_in_done(void)
{
    io.after_done = NULL;
    k_sleep(fabric.kernel, FAKE_MS(2));
    assert_true(fabric.nvme->queue[1].has_sq);
    mend(0);
    k_sleep(fabric.kernel, 100 * K_US);
}

static void cut_in_done(void)
{
    cut(0, true);
    io.in_done = NULL;
    io.after_done = stay_in_done;
}

/* The path fails while the I/O thread is in its queue pair: done() submits, which finds it out. The
 * pair is not deleted before the thread has left it. */
static void fails_in_done_body(void *arg)
{
    (void)arg;
    open_io();
    fabric.nvme->delay_ps = 100 * K_US;
    io.resubmit = true;
    for (unsigned i = 0; i < 8; i++)
        submit(&io.slot[i], i, true);
    wait_for(200 * K_US);
    io.in_done = cut_in_done;
    wait_for(FAKE_MS(5));
    assert_null(io.in_done);
    assert_null(io.after_done);
    assert_int_equal(rig.multi->active, 1);
    assert_int_equal(dnvme_multi_stats(rig.multi).switches, 1);
    assert_int_equal(dnvme_multi_stats(rig.multi).resumed, 1);
    wait_for_all(FAKE_MS(2));
    assert_int_equal(io.n_aborted, 0);
    close_io();
}

static void test_fails_in_done(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        run(fails_in_done_body, NULL, seed, 5);
}

/* A buffer that is made while a path is down is mapped by it when it comes back, however it does;
 * numbers of segments do not run out. */
static void buffers_body(void *arg)
{
    struct dnvme_buffer buffer;
    const bool *hold = arg;
    {
        open_io();
        cut(1, *hold);
        wait_for(FAKE_MS(1));
        assert_int_equal(dnvme_buffer_new(rig.client, BLOCK, &buffer, NULL), 0);
        assert_true(buffer.mapped[0] && !buffer.mapped[1] && buffer.bus[1] == 0);
        mend(1);
        wait_for(FAKE_MS(3));
        assert_int_equal(rig.multi->state[1], DNVME_PATH_UP);
        assert_true(buffer.mapped[0] && buffer.mapped[1]);
        assert_int_equal(dnvme_multi_stats(rig.multi).resumed, *hold);
        assert_int_equal(dnvme_multi_stats(rig.multi).rebuilt, !*hold);
        cut(0, *hold);
        cut(1, *hold);
        struct dnvme_buffer none;
        assert_int_equal(dnvme_buffer_new(rig.client, BLOCK, &none, NULL), -EHOSTUNREACH);
        mend(0);
        mend(1);
        dnvme_buffer_free(rig.client, &buffer);
        wait_for(FAKE_MS(4));
        for (unsigned i = 0; i < DNVME_SEGMENTS + 100; i++) {
            assert_int_equal(dnvme_buffer_new(rig.client, BLOCK, &buffer, NULL), 0);
            dnvme_buffer_free(rig.client, &buffer);
        }
        close_io();
    }
}

static void test_buffers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        bool hold = i != 0;
        run(buffers_body, &hold, 3, 0);
    }
}

/* A path is made anew, but its pair cannot be created at first: it counts as rebuilt, once. */
static void rebuilt_later_body(void *arg)
{
    (void)arg;
    open_io();
    cut(1, false);
    wait_for(FAKE_MS(1));
    fabric.nvme->refuse_create_sq = NVME_SC_INVALID_FIELD;
    mend(1);
    wait_for(FAKE_MS(3));
    assert_int_equal(rig.multi->state[1], DNVME_PATH_NONE);
    assert_true(dnvme_path_works(rig.client, 1));
    fabric.nvme->refuse_create_sq = 0;
    wait_for(FAKE_MS(2));
    assert_int_equal(rig.multi->state[1], DNVME_PATH_UP);
    assert_int_equal(dnvme_multi_stats(rig.multi).rebuilt, 1);
    assert_int_equal(dnvme_multi_stats(rig.multi).resumed, 0);
    cut(1, true); /* that of before does not count again */
    wait_for(FAKE_MS(1));
    mend(1);
    wait_for(FAKE_MS(2));
    assert_int_equal(dnvme_multi_stats(rig.multi).rebuilt, 1);
    assert_int_equal(dnvme_multi_stats(rig.multi).resumed, 1);
    close_io();
}

static void test_rebuilt_later(void **state)
{
    (void)state;
    run(rebuilt_later_body, NULL, 2, 0);
}

/* A path fails while recovery restores the other: its pair is deleted as soon as that is done, not
 * when the link is looked at again (500 us). */
static void fails_in_recovery_body(void *arg)
{
    struct kernel *kernel = fabric.kernel;
    struct dnvme_buffer more[16]; /* so that it takes some time */
    (void)arg;
    open_io();
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(dnvme_buffer_new(rig.client, BLOCK, &more[i], NULL), 0);
    cut(1, false);
    wait_for(FAKE_MS(1));
    mend(1);
    while (!dnvme_path_works(rig.client, 1)) /* then buffers are mapped by it */
        wait_for(5 * K_US);
    assert_int_equal(rig.multi->state[1], DNVME_PATH_NONE);
    cut(0, true);
    while (rig.multi->state[1] != DNVME_PATH_UP)
        wait_for(5 * K_US);
    const uint64_t restored_ps = k_now_ps(kernel);
    assert_int_equal(rig.multi->state[0], DNVME_PATH_DOWN);
    while (rig.multi->state[0] == DNVME_PATH_DOWN)
        wait_for(5 * K_US);
    assert_true(k_now_ps(kernel) - restored_ps < 400 * K_US);
    for (unsigned i = 0; i < 16; i++)
        dnvme_buffer_free(rig.client, &more[i]);
    close_io();
}

static void test_fails_in_recovery(void **state)
{
    (void)state;
    run(fails_in_recovery_body, NULL, 2, 0);
}

/* No number of a segment near the device is that of another client, on whatever host: each client
 * has a range of its own. */
static void test_near_numbers(void **state)
{
    static const uint32_t hosts[] = { 1, 2, 3, 17, 60, 255 };
    static const unsigned mailboxes[] = { 0, 1, 15, 16, 17, 32, 255 };
    enum { HOSTS = 6, BOXES = 7, N = HOSTS * BOXES };
    uint32_t first[N], last[N];
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        struct sisci_process process = { .host = hosts[i / BOXES] };
        struct dnvme_client c = { .process = &process };
        struct lend_error error;
        c.params.number = mailboxes[i % BOXES];
        c.params.first_segment = 0x1000 * (c.params.number + 1);
        assert_int_equal(dnvme_near_number(&c, &first[i], NULL), 0);
        for (unsigned n = 1; n < DNVME_SEGMENTS; n++)
            assert_int_equal(dnvme_near_number(&c, &last[i], NULL), 0);
        assert_int_equal(last[i], first[i] + DNVME_SEGMENTS - 1);
        assert_int_equal(dnvme_near_number(&c, &last[i], &error), -ENOSPC);
    }
    for (unsigned i = 0; i < N; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(last[i] < first[k] || last[k] < first[i]);
}

/* The controller takes longer to delete a pair than a request to the manager may: its memory is
 * freed when the queues are gone. With `cut`, no path works: it is freed when the client is lost,
 * not before. */
static void slow_free_body(void *arg)
{
    const bool *is_cut = arg;
    struct dnvme_pair *pair;
    open_io();
    assert_int_equal(dnvme_pair_new(rig.client, &dnvme_pair_params_default, &pair, NULL), 0);
    const struct nvme_fake_queue *q = &fabric.nvme->queue[dnvme_pair_number(pair)];
    fabric.nvme->delay_ps = FAKE_MS(8); /* of two commands, one after the other */
    for (unsigned i = 0; *is_cut && i < PATHS; i++)
        cut(i, false);
    assert_true(q->has_sq && q->has_cq);
    dnvme_pair_free(pair);
    assert_int_equal(dnvme_client_lost(rig.client), *is_cut);
    assert_true(*is_cut || (!q->has_sq && !q->has_cq));
    fabric.nvme->delay_ps = 0;
    close_io();
}

static void test_slow_free(void **state)
{
    bool is_cut = false;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        run(slow_free_body, &is_cut, seed, 0);
    is_cut = true;
    run(slow_free_body, &is_cut, 1, 0);
}

/* ---- At random ------------------------------------------------------------------------------- */

struct chaos {
    uint64_t seed;
    bool hold, stop, stopped;
    unsigned n_cuts;
};

static uint64_t draw(struct chaos *c, uint64_t below)
{
    c->seed = c->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (c->seed >> 33) % below;
}

/* Pulls cables, one or both, and puts them back before the lease is over. */
static void chaos_body(void *arg)
{
    struct chaos *c = arg;
    while (!c->stop) {
        const unsigned path = (unsigned)draw(c, PATHS);
        k_sleep(fabric.kernel, K_NS * draw(c, 1500000));
        if (fabric.link[path].down)
            mend(path);
        else
            cut(path, c->hold);
        c->n_cuts++;
        if (fabric.link[0].down && fabric.link[1].down) {
            k_sleep(fabric.kernel, K_NS * draw(c, 3000000));
            mend((unsigned)draw(c, PATHS));
        }
    }
    c->stopped = true;
}

/* Makes and frees buffers, as another thread of the process does. */
static void other_buffers_body(void *arg)
{
    struct chaos *c = arg;
    struct dnvme_buffer buffer[4] = { 0 };
    for (unsigned i = 0; !c->stop; i = (i + 1) % 4) {
        if (buffer[i].bytes != 0)
            dnvme_buffer_free(rig.client, &buffer[i]);
        else
            dnvme_buffer_new(rig.client, BLOCK, &buffer[i], NULL);
        k_sleep(fabric.kernel, 60 * K_US);
    }
    for (unsigned i = 0; i < 4; i++)
        if (buffer[i].bytes != 0)
            dnvme_buffer_free(rig.client, &buffer[i]);
    c->stopped = true;
}

struct outcome {
    uint64_t seed;
    unsigned n_cuts, n_over, n_switches;
};

static void random_body(void *arg)
{
    struct outcome *outcome = arg;
    struct chaos chaos = { .seed = outcome->seed, .hold = outcome->seed % 2 != 0 };
    struct chaos buffers = { 0 };
    open_io();
    fabric.nvme->delay_ps = 200 * K_US;
    io.resubmit = true;
    for (unsigned i = 0; i < 16; i++)
        submit(&io.slot[i], 4 * i, true);
    k_thread_new(fabric.kernel, "chaos", 3, chaos_body, &chaos);
    k_thread_new(fabric.kernel, "buffers", 4, other_buffers_body, &buffers);
    wait_for(FAKE_MS(40));
    chaos.stop = buffers.stop = true;
    while (!chaos.stopped || !buffers.stopped) {
        mend(0);
        mend(1);
        wait_for(100 * K_US);
    }
    mend(0);
    mend(1);
    wait_for_all(FAKE_MS(20));
    const struct dnvme_multi_stats stats = dnvme_multi_stats(rig.multi);
    assert_false(dnvme_client_lost(rig.client));
    assert_int_equal(io.n_aborted + io.n_refused, 0);
    outcome->n_cuts += chaos.n_cuts;
    outcome->n_over += (unsigned)stats.failed_over;
    outcome->n_switches += (unsigned)stats.switches;
    close_io();
}

static void test_at_random(void **state)
{
    struct outcome outcome = { 0 };
    (void)state;
    for (outcome.seed = 1; outcome.seed <= 24; outcome.seed++)
        run(random_body, &outcome, outcome.seed, 3);
    print_message("%u pulls and returns, %u switches, %u I/Os issued again\n", outcome.n_cuts,
                  outcome.n_switches, outcome.n_over);
    assert_true(outcome.n_cuts > 500 && outcome.n_switches > 100 && outcome.n_over > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_ring_later),
        cmocka_unit_test(test_lease),         cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_forgotten),     cmocka_unit_test(test_dead_controller),
        cmocka_unit_test(test_fails_in_done), cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_near_numbers),  cmocka_unit_test(test_slow_free),
        cmocka_unit_test(test_rebuilt_later), cmocka_unit_test(test_fails_in_recovery),
        cmocka_unit_test(test_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
