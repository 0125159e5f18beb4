/*
 * The polled NVMe library against a controller of the data sheet (nvme_fake.h) on a fake kernel:
 * data through PRP lists of every shape, completions in any order, queues that are full and wrap,
 * submission queues and lists behind a window, errors, deletion under load, controllers that go
 * away or fall silent.
 */
#include "tests/support/nvme_fake.h"

#include "logic/nvme/nvme_user.h"

#define ENTRIES    16u
#define LIST_BYTES 512u /* 64 entries: 260 KiB from the start of a page */
#define AREA_BYTES (1u << 20)
#define COMMANDS   32u

struct rig {
    struct kernel *kernel;
    struct nvme_fake *nvme;
    struct nvme_user_controller ctl;
    struct nvme_user_qp qp;
    struct nvme_user_memory sq, cq, lists;
    struct kaddr area; /* data */
    struct nvme_user_command command[COMMANDS];
    unsigned n_done;
    bool again; /* done() submits the command once more */
};
static struct rig rig;

static struct nvme_user_memory memory_of(size_t bytes)
{
    const struct kaddr at = k_alloc(rig.kernel, 0, bytes, K_PAGE_BYTES);
    return (struct nvme_user_memory){ .at = at, .bus = at.v };
}

static struct nvme_user_controller_params controller_params(void)
{
    return (struct nvme_user_controller_params){
        .kernel = rig.kernel,
        .registers = nvme_user_bar_window(&rig.nvme->pci, 0),
        .admin_entries = 4,
        .admin_sq = memory_of(4 * NVME_SQE_BYTES),
        .admin_cq = memory_of(4 * NVME_CQE_BYTES),
        .page = memory_of(NVME_PAGE_BYTES),
        .timeout_ps = 10 * K_MS,
        .costs = { 100, 100, 20 },
    };
}

static struct nvme_user_qp_params qp_params(void)
{
    return (struct nvme_user_qp_params){
        .kernel = rig.kernel,
        .id = 3,
        .entries = ENTRIES,
        .sq = rig.sq,
        .cq = rig.cq,
        .lists = rig.lists,
        .list_bytes = LIST_BYTES,
        .registers = nvme_user_bar_window(&rig.nvme->pci, 0),
        .doorbell_bytes = rig.ctl.doorbell_bytes,
        .costs = { 100, 100, 20 },
    };
}

static void done(struct nvme_user_command *command)
{
    rig.n_done++;
    if (rig.again && rig.n_done < 200)
        assert_int_equal(nvme_user_qp_submit(&rig.qp, command, NULL, 0), 0);
}

/* Without a queue pair for I/O. */
static void boot(uint64_t seed, unsigned stride_log2)
{
    const struct fake_options options = { .seed = seed };
    memset(&rig, 0, sizeof rig);
    rig.kernel = fake_new(&options);
    fake_on(rig.kernel, 0);
    rig.nvme = calloc(1, sizeof *rig.nvme);
    nvme_fake_init(rig.nvme, rig.kernel);
    rig.nvme->stride_log2 = stride_log2;
    rig.nvme->mdts = 5;
    rig.sq = memory_of(ENTRIES * NVME_SQE_BYTES);
    rig.cq = memory_of(ENTRIES * NVME_CQE_BYTES);
    rig.lists = memory_of(ENTRIES * LIST_BYTES);
    rig.area = k_alloc(rig.kernel, 0, AREA_BYTES, K_PAGE_BYTES);
    for (unsigned i = 0; i < COMMANDS; i++)
        rig.command[i].done = done;
}

static void make_queues(void)
{
    const struct nvme_user_qp_params params = qp_params();
    assert_int_equal(nvme_user_qp_init(&rig.qp, &params), 0);
    assert_int_equal(nvme_user_create_queues(&rig.ctl, 3, ENTRIES, rig.sq.bus, rig.cq.bus, 0), 0);
}

static void open_rig(uint64_t seed, unsigned stride_log2)
{
    boot(seed, stride_log2);
    const struct nvme_user_controller_params params = controller_params();
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), 0);
    make_queues();
}

static void close_rig(void)
{
    if (rig.ctl.admin.slot != NULL)
        nvme_user_controller_close(&rig.ctl);
    nvme_user_qp_release(&rig.qp);
    fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    free(rig.nvme);
    fake_free(rig.kernel);
}

static void command_of(struct nvme_user_command *command, bool write, uint32_t block, uint32_t n)
{
    command->sqe = (struct nvme_sqe){
        .opcode = write ? NVME_WRITE : NVME_READ, .nsid = 1, .cdw10 = block, .cdw12 = n - 1
    };
}

/* Polls until so many commands have ended in all. */
static void wait_for(unsigned n)
{
    for (unsigned i = 0; rig.n_done < n; i++) {
        assert_true(i < 100000);
        nvme_user_qp_poll(&rig.qp, 0);
        k_sleep(rig.kernel, 100 * K_NS);
    }
}

static uint8_t byte_at(uint64_t i, unsigned seed)
{
    return (uint8_t)(i * 13 + (i >> 8) * 7 + seed * 101 + 1);
}

static void fill(uint64_t at, uint64_t bytes, unsigned seed)
{
    uint8_t *data = malloc(bytes);
    for (uint64_t i = 0; i < bytes; i++)
        data[i] = byte_at(i, seed);
    k_poke(rig.kernel, kaddr_add(rig.area, at), data, bytes);
    free(data);
}

static void check(uint64_t at, uint64_t bytes, unsigned seed)
{
    uint8_t *data = malloc(bytes);
    k_peek(rig.kernel, kaddr_add(rig.area, at), data, bytes);
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i] != byte_at(i, seed))
            fail_msg("byte %llu of %llu", (unsigned long long)i, (unsigned long long)bytes);
    free(data);
}

static uint64_t bus(uint64_t at)
{
    return rig.area.v + at;
}

/* ---- The controller -------------------------------------------------------------------------- */

static void test_open(void **state)
{
    (void)state;
    struct nvme_user_namespace ns;
    uint16_t n = 20;
    open_rig(1, 2);
    assert_int_equal(rig.ctl.entries_max, 4096);
    assert_int_equal(rig.ctl.doorbell_bytes, 16);
    assert_int_equal(rig.ctl.bytes_max, 32 * NVME_PAGE_BYTES);
    assert_int_equal(rig.ctl.n_namespaces, 1);
    assert_int_equal(nvme_user_identify_namespace(&rig.ctl, 1, &ns), 0);
    assert_int_equal(ns.blocks, NVME_FAKE_BLOCKS);
    assert_int_equal(ns.block_log2, 9);
    assert_int_equal(nvme_user_set_queues(&rig.ctl, &n), 0);
    assert_int_equal(n, NVME_FAKE_QUEUES - 2); /* the device has one completion queue more */
    n = 2;
    assert_int_equal(nvme_user_set_queues(&rig.ctl, &n), 0);
    assert_int_equal(n, 2);
    /* More admin commands than the queue has entries: it wraps, several times. */
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(nvme_user_identify_namespace(&rig.ctl, 1, &ns), 0);
    assert_int_equal(nvme_user_delete_queues(&rig.ctl, 3), 0);
    nvme_user_controller_close(&rig.ctl);
    assert_int_equal(rig.nvme->cc & NVME_CC_EN, 0);
    /* What is stale in the memory of the queues does no harm. */
    struct nvme_user_controller_params params = rig.ctl.params;
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), 0);
    assert_int_equal(nvme_user_identify_namespace(&rig.ctl, 1, &ns), 0);
    close_rig();
}

static void test_parameters(void **state)
{
    (void)state;
    boot(1, 0);
    const struct nvme_user_qp_params good = qp_params();
    struct nvme_user_qp_params bad[8];
    for (unsigned i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].entries = 1;
    bad[1].entries = 4097;
    bad[2].sq.bus += 64; /* not at a page */
    bad[3].cq.at.v = 0;  /* neither memory nor window */
    bad[4].list_bytes = 96;
    bad[5].lists.bus += 8; /* a list would cross a page */
    bad[6].registers.ops = NULL;
    bad[7].id = NVME_QUEUES_MAX;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(nvme_user_qp_init(&rig.qp, &bad[i]), -EINVAL);
    struct nvme_user_controller_params params = controller_params();
    params.page.at.v = 0;
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), -EINVAL);
    params = controller_params();
    params.admin_entries = 1;
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), -EINVAL);
    close_rig();
}

static void test_refused_commands(void **state)
{
    (void)state;
    open_rig(1, 0);
    struct nvme_user_command command = { .sqe = { .opcode = 0xc0 } };
    assert_int_equal(nvme_user_admin(&rig.ctl, &command, NULL, 0, NULL), -EIO);
    assert_int_equal(NVME_STATUS_CODE(command.status), NVME_SC_INVALID_OPCODE);
    assert_true(command.status & NVME_STATUS_DNR);
    assert_false(rig.ctl.gone);
    /* A completion queue whose submission queue is refused does not stay. */
    rig.nvme->refuse_create_sq = NVME_SC_QUEUE_SIZE_INVALID;
    assert_int_equal(nvme_user_create_queues(&rig.ctl, 4, ENTRIES, rig.sq.bus, rig.cq.bus, 0),
                     -EIO);
    assert_false(rig.nvme->queue[4].has_cq);
    assert_int_equal(rig.nvme->n_deleted_cqs, 1);
    assert_int_equal(nvme_user_delete_queues(&rig.ctl, 5), -EIO);
    close_rig();
}

/* Nobody answers, from the start or from the middle of a command on. */
static void leave(void *arg)
{
    (void)arg;
    rig.nvme->gone = true;
}

static void test_gone(void **state)
{
    (void)state;
    boot(1, 0);
    rig.nvme->gone = true;
    const struct nvme_user_controller_params params = controller_params();
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), -ENODEV);
    rig.nvme->gone = false;
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), 0);
    rig.nvme->delay_ps = 100 * K_US;
    fake_at(rig.kernel, rig.kernel->now_ps + K_US, leave, NULL);
    struct nvme_user_command command = { .sqe = { .opcode = 0xc0 } };
    assert_int_equal(nvme_user_admin(&rig.ctl, &command, NULL, 0, NULL), -ENODEV);
    assert_true(rig.ctl.gone);
    assert_int_equal(nvme_user_admin(&rig.ctl, &command, NULL, 0, NULL), -ENODEV);
    close_rig();
}

static void test_silent(void **state)
{
    (void)state;
    open_rig(1, 0);
    struct nvme_user_namespace ns;
    rig.nvme->mute = true;
    const uint64_t start_ps = k_now_ps(rig.kernel);
    assert_int_equal(nvme_user_identify_namespace(&rig.ctl, 1, &ns), -ETIMEDOUT);
    const uint64_t took_ps = k_now_ps(rig.kernel) - start_ps;
    assert_true(took_ps >= 10 * K_MS && took_ps < 11 * K_MS);
    assert_true(rig.ctl.gone);
    nvme_user_controller_close(&rig.ctl); /* it is disabled all the same */
    assert_int_equal(rig.nvme->cc & NVME_CC_EN, 0);
    close_rig();
}

/* ---- Commands -------------------------------------------------------------------------------- */

/* Data through one page, two, lists, from the middle of a page, in several pieces. */
static void test_prps(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, bytes;
    } shape[] = { { 0, 512 },      { 0, 4096 },     { 512, 4096 },   { 2048, 6144 },
                  { 0, 8192 },     { 4, 8192 },     { 4092, 12288 }, { 0, 65536 },
                  { 1024, 65536 }, { 100, 131072 }, { 0, 262144 },   { 4096 - 512, 512 } };
    open_rig(2, 0);
    for (unsigned i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        const uint64_t bytes = shape[i].bytes;
        const struct nvme_user_piece from = { bus(shape[i].offset), bytes };
        /* Back into pages in reverse order. */
        struct nvme_user_piece to[65];
        const unsigned n = (unsigned)((bytes + 4095) / 4096);
        for (unsigned p = 0; p < n; p++)
            to[p] = (struct nvme_user_piece){ bus(524288 + 4096 * (n - 1 - p)),
                                              p == n - 1 ? bytes - 4096 * p : 4096 };
        fill(shape[i].offset, bytes, i);
        command_of(&rig.command[0], true, 8 * i, (uint32_t)(bytes / 512));
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[0], &from, 1), 0);
        wait_for(2 * i + 1);
        assert_int_equal(rig.command[0].status, NVME_SC_SUCCESS);
        command_of(&rig.command[0], false, 8 * i, (uint32_t)(bytes / 512));
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[0], to, n), 0);
        wait_for(2 * i + 2);
        assert_int_equal(rig.command[0].status, NVME_SC_SUCCESS);
        for (unsigned p = 0; p < n; p++) {
            uint8_t page[4096];
            k_peek(rig.kernel, (struct kaddr){ to[p].bus }, page, to[p].bytes);
            for (unsigned b = 0; b < to[p].bytes; b++)
                assert_int_equal(page[b], byte_at(4096 * p + b, i));
        }
    }
    close_rig();
}

static void test_bad_pieces(void **state)
{
    (void)state;
    open_rig(2, 0);
    const struct nvme_user_piece bad[][2] = {
        { { bus(2), 512 }, { 0, 0 } },            /* not at a double word */
        { { bus(0), 0 }, { 0, 0 } },              /* nothing */
        { { bus(0), 65 * 4096 + 1 }, { 0, 0 } },  /* the list has 64 entries */
        { { bus(0), 512 }, { bus(4096), 512 } },  /* a gap at the end of the first */
        { { bus(0), 4096 }, { bus(4608), 512 } }, /* a gap at the start of the second */
    };
    command_of(&rig.command[0], true, 0, 2);
    for (unsigned i = 0; i < 5; i++) {
        const unsigned n = bad[i][1].bytes != 0 ? 2 : 1;
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[0], bad[i], n), -EINVAL);
    }
    assert_int_equal(rig.qp.stats.submitted, 0);
    assert_int_equal(nvme_user_qp_room(&rig.qp), ENTRIES - 1);
    /* Without lists, two pages. */
    rig.qp.params.list_bytes = 0;
    const struct nvme_user_piece three = { bus(0), 3 * 4096 }, two = { bus(0), 2 * 4096 };
    assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[0], &three, 1), -EINVAL);
    command_of(&rig.command[0], true, 0, 16);
    assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[0], &two, 1), 0);
    wait_for(1);
    assert_int_equal(rig.command[0].status, NVME_SC_SUCCESS);
    close_rig();
}

/* A full queue of writes, then of reads, often enough that both queues wrap many times; they end in
 * another order than they were given. */
static void test_many_in_any_order(void **state)
{
    (void)state;
    open_rig(3, 0);
    unsigned n = 0;
    for (unsigned round = 0; round < 40; round++) {
        const bool write = round % 2 == 0;
        for (unsigned i = 0; i < ENTRIES - 1; i++) {
            const struct nvme_user_piece piece = { bus((write ? i : 64 + i) * 4096), 4096 };
            if (write)
                fill(i * 4096, 4096, round * 16 + i);
            command_of(&rig.command[i], write, 8 * i, 8);
            assert_int_equal(nvme_user_qp_put(&rig.qp, &rig.command[i], &piece, 1), 0);
        }
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[20], NULL, 0), -EBUSY);
        assert_int_equal(nvme_user_qp_outstanding(&rig.qp), ENTRIES - 1);
        assert_int_equal(rig.nvme->queue[3].n_unfinished, 0); /* it knows of none yet */
        nvme_user_qp_ring(&rig.qp);
        nvme_user_qp_ring(&rig.qp); /* nothing new */
        wait_for(n += ENTRIES - 1);
        for (unsigned i = 0; i < ENTRIES - 1 && !write; i++)
            check((64 + i) * 4096, 4096, (round - 1) * 16 + i);
    }
    assert_true(rig.nvme->passed);
    assert_int_equal(rig.qp.stats.sq_rings, 40); /* one per batch */
    assert_int_equal(rig.qp.stats.completed, n);
    assert_int_equal(rig.qp.stats.failed, 0);
    assert_true(rig.qp.stats.cq_rings < n);
    assert_int_equal(nvme_user_qp_outstanding(&rig.qp), 0);
    close_rig();
}

/* done() submits the next one, as polled programs do, and `most` bounds a look. */
static void test_again_from_done(void **state)
{
    (void)state;
    open_rig(4, 0);
    rig.again = true;
    for (unsigned i = 0; i < ENTRIES - 1; i++) {
        const struct nvme_user_piece piece = { bus(i * 4096), 4096 };
        command_of(&rig.command[i], false, 8 * i, 8);
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[i], &piece, 1), 0);
    }
    fake_run_until(rig.kernel, rig.kernel->now_ps + 10 * K_US);
    assert_int_equal(nvme_user_qp_poll(&rig.qp, 2), 2);
    assert_int_equal(rig.n_done, 2);
    wait_for(200);
    while (nvme_user_qp_outstanding(&rig.qp) > 0) {
        nvme_user_qp_poll(&rig.qp, 0);
        k_sleep(rig.kernel, 100 * K_NS);
    }
    assert_int_equal(rig.qp.stats.completed, rig.qp.stats.submitted);
    assert_int_equal(rig.qp.stats.stray, 0);
    close_rig();
}

static void test_errors(void **state)
{
    (void)state;
    open_rig(5, 0);
    const struct nvme_user_piece piece = { bus(0), 4096 };
    rig.nvme->bad_block = 24;
    command_of(&rig.command[0], false, 24, 8);
    command_of(&rig.command[1], false, NVME_FAKE_BLOCKS, 8);
    command_of(&rig.command[2], false, 32, 8);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[i], &piece, 1), 0);
    wait_for(3);
    assert_int_equal(rig.command[0].status, NVME_SC_UNRECOVERED_READ | NVME_STATUS_DNR);
    assert_int_equal(rig.command[1].status, NVME_SC_LBA_OUT_OF_RANGE | NVME_STATUS_DNR);
    assert_int_equal(rig.command[2].status, NVME_SC_SUCCESS);
    assert_int_equal(rig.qp.stats.failed, 2);
    /* Completions of commands that were not given are consumed and counted. */
    nvme_fake_complete(rig.nvme, 3, 5, NVME_SC_SUCCESS, 0);
    nvme_fake_complete(rig.nvme, 3, 999, NVME_SC_SUCCESS, 0);
    assert_int_equal(nvme_user_qp_poll(&rig.qp, 0), 2);
    assert_int_equal(rig.qp.stats.stray, 2);
    assert_int_equal(rig.n_done, 3);
    assert_int_equal(rig.nvme->queue[3].cq_head, rig.nvme->queue[3].cq_tail);
    close_rig();
}

/* Queues are deleted under load: what has completed is taken, the rest ends with a status of ours,
 * and the queue pair starts over. */
static void test_delete_under_load(void **state)
{
    (void)state;
    open_rig(6, 0);
    rig.nvme->delay_ps = 60 * K_US;
    const struct nvme_user_piece piece = { bus(0), 4096 };
    for (unsigned i = 0; i < 10; i++) {
        command_of(&rig.command[i], false, 8 * i, 8);
        assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[i], &piece, 1), 0);
    }
    assert_int_equal(nvme_user_delete_queues(&rig.ctl, 3), 0);
    assert_int_equal(rig.nvme->n_deleted_sqs, 1);
    assert_int_equal(rig.nvme->n_deleted_cqs, 1);
    nvme_user_qp_fail_all(&rig.qp, NVME_SC_ABORTED_SQ_DELETED);
    assert_int_equal(rig.n_done, 10);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(rig.command[i].status, NVME_SC_ABORTED_SQ_DELETED);
    nvme_user_qp_clear(&rig.qp);
    fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS); /* late ones find no queue */
    assert_int_equal(nvme_user_create_queues(&rig.ctl, 3, ENTRIES, rig.sq.bus, rig.cq.bus, 0), 0);
    command_of(&rig.command[0], false, 8, 8);
    assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[0], &piece, 1), 0);
    wait_for(11);
    assert_int_equal(rig.command[0].status, NVME_SC_SUCCESS);
    close_rig();
}

/* ---- Queues behind a window ------------------------------------------------------------------ */

/* Write-combining buffers in front of memory: what is in them has not arrived until they are
 * drained, or, with ill luck, earlier and in any order. */
static struct {
    uint64_t address[32];
    uint8_t line[32][K_LINE_BYTES];
    unsigned n, n_drains, n_lines;
} wc;

static void wc_flush(unsigned i)
{
    k_poke(rig.kernel, (struct kaddr){ wc.address[i] }, wc.line[i], K_LINE_BYTES);
    wc.address[i] = wc.address[--wc.n];
    memcpy(wc.line[i], wc.line[wc.n], K_LINE_BYTES);
}

static void wc_write_lines(void *context, uint64_t offset, const void *from, size_t bytes)
{
    (void)context;
    assert_int_equal(offset % K_LINE_BYTES, 0);
    assert_int_equal(bytes % K_LINE_BYTES, 0);
    for (size_t at = 0; at < bytes; at += K_LINE_BYTES) {
        if (wc.n == 32)
            wc_flush((unsigned)fake_random(rig.kernel, 32));
        wc.address[wc.n] = offset + at;
        memcpy(wc.line[wc.n++], (const uint8_t *)from + at, K_LINE_BYTES);
        wc.n_lines++;
    }
}

static void wc_drain(void *context)
{
    (void)context;
    wc.n_drains++;
    while (wc.n > 0)
        wc_flush((unsigned)fake_random(rig.kernel, wc.n));
}

static uint64_t wc_read64(void *context, uint64_t offset)
{
    uint64_t value;
    (void)context;
    k_load(rig.kernel, (struct kaddr){ offset }, &value, sizeof value);
    return value;
}

static void register_write32(void *context, uint64_t offset, uint32_t value)
{
    assert_int_equal(wc.n, 0); /* no doorbell passes what it is about */
    k_writel(context, 0, offset, value);
}

static void to_window(struct nvme_user_memory *memory)
{
    static const struct nvme_user_window_ops ops = { .read64 = wc_read64,
                                                     .write_lines = wc_write_lines,
                                                     .drain = wc_drain };
    memory->window = (struct nvme_user_window){ &ops, NULL, memory->at.v };
    memory->at.v = 0;
}

static void run_behind_a_window(bool cq_too)
{
    static const struct nvme_user_window_ops registers = { .write32 = register_write32 };
    boot(7, 0);
    memset(&wc, 0, sizeof wc);
    const struct nvme_user_controller_params params = controller_params();
    assert_int_equal(nvme_user_controller_open(&rig.ctl, &params), 0);
    to_window(&rig.sq);
    to_window(&rig.lists);
    if (cq_too)
        to_window(&rig.cq);
    struct nvme_user_qp_params qp = qp_params();
    qp.registers = (struct nvme_user_window){ &registers, &rig.nvme->pci, 0 };
    assert_int_equal(nvme_user_qp_init(&rig.qp, &qp), 0);
    nvme_user_qp_clear(&rig.qp);
    assert_int_equal(nvme_user_create_queues(&rig.ctl, 3, ENTRIES, rig.sq.bus, rig.cq.bus, 0), 0);
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 8; i++) {
            const struct nvme_user_piece piece = { bus(i * 20480), 20480 }; /* a list of 4 */
            if (round % 2 == 0)
                fill(i * 20480, 20480, round * 8 + i);
            else
                fill(i * 20480, 20480, 99);
            command_of(&rig.command[i], round % 2 == 0, 40 * i, 40);
            assert_int_equal(nvme_user_qp_submit(&rig.qp, &rig.command[i], &piece, 1), 0);
        }
        wait_for(8 * (round + 1));
        for (unsigned i = 0; i < 8 && round % 2 == 1; i++)
            check(i * 20480, 20480, (round - 1) * 8 + i);
    }
    assert_int_equal(rig.qp.stats.failed, 0);
    assert_true(wc.n_drains >= 48);
    close_rig();
}

static void test_behind_a_window(void **state)
{
    (void)state;
    run_behind_a_window(false);
    run_behind_a_window(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_refused_commands),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_prps),
        cmocka_unit_test(test_bad_pieces),
        cmocka_unit_test(test_many_in_any_order),
        cmocka_unit_test(test_again_from_done),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_delete_under_load),
        cmocka_unit_test(test_behind_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
