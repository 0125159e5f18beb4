/*
 * A simulated host with two GPUs below a switch, its kernel and the GPUs' driver: copies arrive
 * byte for byte where they should, at the rates that reads in flight and links allow, kernels see
 * each other's stores, failures stop a channel and nothing else. Then all is taken down.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "hw/nvme_regs.h"
#include "hw/pci_regs.h"
#include "logic/gpu/gpu_driver.h"
#include "models/base/payload.h"
#include "models/gpu/gpu.h"
#include "models/os/os.h"

#define WORLD                                                                                                \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } );"                          \
    " dram = { node_size = \"2 GiB\"; };"                                                                    \
    " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };"                                        \
    " iommu = { enabled = %s; }; }; };\n"                                                                    \
    "devices = { sw = { type = \"pcie.switch\"; downstream_ports = 2; lanes = 16; downstream_lanes = 16; };" \
    " gpu0 = { type = \"gpu.cuda\"; timer_ns = 1; %s };"                                                     \
    " gpu1 = { type = \"gpu.cuda\"; timer_ns = 1; %s }; };\n"                                                \
    "cables = ( { from = \"server.s0.rp0\"; to = \"sw.p0\"; },"                                              \
    " { from = \"sw.p1\"; to = \"gpu0.p0\"; }, { from = \"sw.p2\"; to = \"gpu1.p0\"; } );\n"

#define KIB    1024u
#define MIB    (KIB * KIB)
#define SECOND (1000 * SIM_PS_PER_MS)
#define STREAM 5u

struct rig {
    struct world_fixture w;
    struct kernel *kernel;
    struct gpu_driver *driver;
    struct gpu_drv *gpu[2];
    struct model *model[2];
    void (*body)(struct rig *r);
    bool done, waited;
};

static struct k_pci_dev *function(struct rig *r, unsigned i)
{
    uint16_t id;
    assert_true(world_function_id(r->model[i], 0, &id));
    return os_pci_find(r->kernel, id);
}

static void run(struct rig *r, k_thread_fn *body)
{
    sim_time until_ps = sim_now(r->w.sim) + SECOND;
    r->done = false;
    k_thread_new(r->kernel, "test", 0, body, r);
    while (!r->done && sim_now(r->w.sim) < until_ps) {
        sim_run(r->w.sim, sim_now(r->w.sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(r->w.sim));
    }
    assert_true(r->done);
}

static void up_body(void *arg)
{
    struct rig *r = arg;
    assert_int_equal(k_pci_register(r->kernel, gpu_driver_pci(r->driver)), 2);
    r->done = true;
}

static void main_body(void *arg)
{
    struct rig *r = arg;
    r->body(r);
    r->done = true;
}

static void down_body(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < 2; i++)
        if (r->gpu[i] != NULL)
            k_pci_remove(function(r, i), false);
    gpu_driver_free(r->driver);
    r->done = true;
}

static void rig_run(struct rig *r, bool iommu, const char *settings, void (*body)(struct rig *r))
{
    char *text = g_strdup_printf(WORLD, iommu ? "true" : "false", settings, settings);
    fixture_open(&r->w, text);
    g_free(text);
    r->kernel = os_new(r->w.host, host_os_params(r->w.host));
    r->driver = gpu_driver_new(r->kernel);
    r->model[0] = world_device(r->w.world, "gpu0");
    r->model[1] = world_device(r->w.world, "gpu1");
    run(r, up_body);
    for (unsigned i = 0; i < 2; i++) {
        r->gpu[i] = gpu_of(function(r, i));
        assert_non_null(r->gpu[i]);
    }
    r->body = body;
    run(r, main_body);
    run(r, down_body);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * SIM_PS_PER_MS, NULL);
    os_free(r->kernel);
    fixture_close(&r->w);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* One copy between two events; returns how long it took by the GPU's own time. */
static double timed_copy_ns(struct gpu_drv *gpu, struct gpu_place to, struct gpu_place from,
                            uint64_t bytes)
{
    struct gpu_event begin, end;
    assert_int_equal(gpu_event_record(gpu, 0, false, &begin), 0);
    assert_int_equal(gpu_copy(gpu, 0, to, from, bytes), 0);
    assert_int_equal(gpu_event_record(gpu, 0, true, &end), 0);
    assert_int_equal(gpu_submit(gpu, 0), 0);
    assert_int_equal(gpu_event_wait(gpu, &end, UINT64_MAX), 0);
    return (double)(gpu_event_ns(gpu, &end) - gpu_event_ns(gpu, &begin));
}

struct copy_rig {
    struct kaddr host;
    uint64_t offset, bytes;
    struct gpu_mapping mapping;
};

static struct copy_rig copy_open_at(struct rig *r, unsigned i, struct kaddr at, uint64_t bytes)
{
    struct copy_rig c = { .bytes = bytes, .host = at };
    assert_true(c.host.v != 0);
    assert_int_equal(gpu_alloc(r->gpu[i], bytes, &c.offset), 0);
    assert_int_equal(gpu_map_host(r->gpu[i], c.host, bytes, &c.mapping), 0);
    return c;
}

static struct copy_rig copy_open(struct rig *r, unsigned i, uint64_t bytes)
{
    return copy_open_at(r, i, k_alloc(r->kernel, K_NODE_LOCAL, bytes, K_PAGE_BYTES), bytes);
}

static void copy_close(struct rig *r, unsigned i, struct copy_rig *c)
{
    gpu_unmap(r->gpu[i], &c->mapping);
    gpu_free(r->gpu[i], c->offset);
}

static double read_ns(struct rig *r, struct copy_rig *c, uint64_t at, uint64_t bytes)
{
    static uint64_t position;
    uint64_t tag = payload_mark(STREAM, position);
    struct payload_difference is;
    position += bytes;
    payload_fill(r->kernel, kaddr_add(c->host, at), tag, bytes);
    double ns = timed_copy_ns(r->gpu[0], (struct gpu_place){ NULL, c->offset + at },
                              (struct gpu_place){ &c->mapping, at }, bytes);
    assert_true(gpu_memory_check(r->model[0], c->offset + at, tag, bytes, &is));
    return ns;
}

static double write_ns(struct rig *r, struct copy_rig *c, uint64_t at, uint64_t bytes)
{
    uint64_t tag = payload_mark(STREAM + 1, at);
    struct payload_difference is;
    gpu_memory_stamp(r->model[0], c->offset + at, tag, bytes);
    double ns = timed_copy_ns(r->gpu[0], (struct gpu_place){ &c->mapping, at },
                              (struct gpu_place){ NULL, c->offset + at }, bytes);
    assert_true(payload_check(r->kernel, kaddr_add(c->host, at), tag, bytes, &is));
    return ns;
}

static double gbyte_s(uint64_t bytes, double ns)
{
    return (double)bytes / ns;
}

/* Large copies: reads are bound by what is in flight over the round trip, which the difference of
 * two small ones tells; writes by the link: 256 B of payload in 256 + 20 or 24 B at 15.75 GB/s,
 * less what DLLPs and SKPs take. */
static void rates(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 4 * MIB);
    double small = read_ns(r, &c, 0, 64), large = read_ns(r, &c, 0, 4 * MIB);
    double trip_ns = small - 1500.0;
    double little = 16.0 * 256.0 / trip_ns, got = gbyte_s(4 * MIB, large);
    assert_true(trip_ns > 300.0 && trip_ns < 1500.0);
    if (got < 0.85 * little || got > 1.1 * little)
        fail_msg("reads: %.2f GB/s, 16 x 256 B in %.0f ns are %.2f", got, trip_ns, little);
    got = gbyte_s(4 * MIB, write_ns(r, &c, 0, 4 * MIB));
    if (got < 13.0 || got > 14.5)
        fail_msg("writes: %.2f GB/s", got);
    copy_close(r, 0, &c);
}

static void test_rates(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "read_requests_max = 16;", rates);
}

/* A copy engine that is slower than the link bounds writes, and not reads. */
static void slow_writes(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 4 * MIB);
    const double out = gbyte_s(4 * MIB, write_ns(r, &c, 0, 4 * MIB));
    const double in = gbyte_s(4 * MIB, read_ns(r, &c, 0, 4 * MIB));
    if (out < 7.8 || out > 8.0)
        fail_msg("writes: %.2f GB/s", out);
    if (in < 10.0)
        fail_msg("reads: %.2f GB/s", in);
    copy_close(r, 0, &c);
}

static void test_slow_writes(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "copy_write_gbyte_s = 8;", slow_writes);
}

/* Pieces that begin and end within pages, and the bytes around them. */
static void copy_places(struct rig *r, struct copy_rig *c)
{
    static const uint64_t place[][2] = {
        { 0, 64 }, { 4032, 128 }, { 64, 4096 }, { 8128, 12352 }, { 256, 65280 }
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(place); i++) {
        uint64_t before[2] = { 0 }, after[2] = { 0 }, end = place[i][0] + place[i][1];
        bool room = end + 8 <= 64 * KIB;
        gpu_memory_read(r->model[0], c->offset + end, &before[1], room ? 8 : 0);
        if (place[i][0] != 0)
            gpu_memory_read(r->model[0], c->offset + place[i][0] - 8, &before[0], 8);
        read_ns(r, c, place[i][0], place[i][1]);
        gpu_memory_read(r->model[0], c->offset + end, &after[1], room ? 8 : 0);
        if (place[i][0] != 0)
            gpu_memory_read(r->model[0], c->offset + place[i][0] - 8, &after[0], 8);
        assert_memory_equal(before, after, sizeof(before));
        write_ns(r, c, place[i][0], place[i][1]);
    }
}

static void places(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 64 * KIB);
    copy_places(r, &c);
    copy_close(r, 0, &c);
}

/* A buffer that lies in three blocks of memory; addresses that were given back come in another
 * order: it is several runs. */
static void runs(struct rig *r)
{
    struct gpu_mapping block[3];
    struct kaddr at = k_alloc(r->kernel, K_NODE_LOCAL, 3 * GPU_HOST_BLOCK_BYTES,
                              GPU_HOST_BLOCK_BYTES);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(gpu_map_host(r->gpu[0], kaddr_add(at, i * GPU_HOST_BLOCK_BYTES),
                                      GPU_HOST_BLOCK_BYTES, &block[i]),
                         0);
    for (unsigned i = 0; i < 3; i++)
        gpu_unmap(r->gpu[0], &block[i]);
    k_sleep(r->kernel, 11 * SIM_PS_PER_MS); /* until what is unmapped is invalidated */
    struct copy_rig c = copy_open_at(r, 0, at, 3 * GPU_HOST_BLOCK_BYTES);
    assert_true(c.mapping.n_runs >= 3);
    c.bytes = 64 * KIB;
    copy_places(r, &c);
    write_ns(r, &c, GPU_HOST_BLOCK_BYTES - 4 * KIB, 8 * KIB);
    read_ns(r, &c, 2 * GPU_HOST_BLOCK_BYTES - 4 * KIB, 8 * KIB);
    copy_close(r, 0, &c);
}

static void test_places(void **state)
{
    struct rig r = { 0 }, behind_iommu = { 0 }, in_runs = { 0 };
    (void)state;
    rig_run(&r, false, "", places);
    rig_run(&behind_iommu, true, "", places);
    rig_run(&in_runs, true, "", runs);
}

/* From the first GPU into the second one's memory, and by reading it. */
static void peers(struct rig *r)
{
    struct gpu_mapping mapping;
    uint64_t from, to, tag = payload_mark(STREAM, 0);
    struct payload_difference is;
    assert_int_equal(gpu_alloc(r->gpu[0], MIB, &from), 0);
    assert_int_equal(gpu_alloc(r->gpu[1], MIB, &to), 0);
    assert_int_equal(gpu_map_peer(r->gpu[0], r->gpu[1], to, MIB, &mapping), 0);
    gpu_memory_stamp(r->model[0], from, tag, MIB);
    double ns = timed_copy_ns(r->gpu[0], (struct gpu_place){ &mapping, 0 },
                              (struct gpu_place){ NULL, from }, MIB);
    assert_true(gpu_memory_check(r->model[1], to, tag, MIB, &is));
    assert_true(gbyte_s(MIB, ns) > 11.0);
    gpu_memory_stamp(r->model[1], to, tag + MIB, MIB);
    ns = timed_copy_ns(r->gpu[0], (struct gpu_place){ NULL, from },
                       (struct gpu_place){ &mapping, 0 }, MIB);
    assert_true(gpu_memory_check(r->model[0], from, tag + MIB, MIB, &is));
    /* inbound_read_gbyte_s bounds it. */
    assert_true(gbyte_s(MIB, ns) < 5.0 && gbyte_s(MIB, ns) > 4.4);
    gpu_unmap(r->gpu[0], &mapping);
    gpu_free(r->gpu[0], from);
    gpu_free(r->gpu[1], to);
}

static void test_peers(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", peers);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

#define ITERATIONS 50u

/* The same round trip in every turn; what differs from clock and stores is the way, and whole turns
 * of the loops. */
static void ping_pong(struct rig *r)
{
    struct gpu_mapping mapping[2];
    struct gpu_event end;
    uint64_t word[2], times;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(gpu_alloc(r->gpu[i], 64, &word[i]), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(gpu_map_peer(r->gpu[i], r->gpu[1 - i], word[1 - i], 64, &mapping[i]), 0);
    assert_int_equal(gpu_alloc(r->gpu[0], ITERATIONS * 8, &times), 0);
    for (unsigned i = 2; i-- > 0;) {
        struct gpu_launch launch = { .kernel = i == 0 ? GPU_KERNEL_PING : GPU_KERNEL_PONG,
                                     .iterations = ITERATIONS,
                                     .local = word[i],
                                     .remote = &mapping[i],
                                     .times = i == 0 ? times : GPU_NO_TIMES };
        assert_int_equal(gpu_launch(r->gpu[i], &launch), 0);
        if (i == 0)
            assert_int_equal(gpu_event_record(r->gpu[0], gpu_kernel_channel(r->gpu[0]), true, &end),
                             0);
        assert_int_equal(gpu_submit(r->gpu[i], gpu_kernel_channel(r->gpu[i])), 0);
    }
    assert_int_equal(gpu_event_wait(r->gpu[0], &end, UINT64_MAX), 0);
    uint64_t cycles[ITERATIONS];
    gpu_memory_read(r->model[0], times, cycles, sizeof(cycles));
    for (unsigned i = 1; i < ITERATIONS; i++) {
        double ns = (double)cycles[i] * 1e6 / gpu_clock_khz(r->gpu[0]);
        /* clock64() once, two stores, two writes seen, two ways through the switch: 110 to 250 ns
         * each, and up to a turn in each loop. */
        if (ns < 32 + 2 * (400 + 200 + 110) || ns > 32 + 2 * (400 + 200 + 250 + 15))
            fail_msg("iteration %u: %.0f ns", i, ns);
    }
    uint32_t words[2];
    for (unsigned i = 0; i < 2; i++) {
        gpu_memory_read(r->model[i], word[i], &words[i], 4);
        assert_int_equal(words[i], ITERATIONS);
        gpu_unmap(r->gpu[i], &mapping[i]);
        gpu_free(r->gpu[i], word[i]);
    }
    gpu_free(r->gpu[0], times);
}

static void test_ping_pong(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", ping_pong);
}

/* ---- The kernel that drives an NVMe controller ----------------------------------------------- */

/* The test is the controller: its doorbells are words of the other GPU's memory. */
struct nvme_rig {
    struct rig *r;
    uint64_t sq, cq, at, times, words;
    struct gpu_mapping doorbells;
    struct gpu_event end;
};
#define NVME_COMMANDS 5u
#define NVME_ENTRIES  4u

static struct gpu_nvme_job nvme_job(const struct nvme_rig *n, uint16_t depth)
{
    return (struct gpu_nvme_job){ .sq = n->sq,
                                  .cq = n->cq,
                                  .sq_doorbell = n->doorbells.run[0].bus,
                                  .cq_doorbell = n->doorbells.run[0].bus + 4,
                                  .data = 0x10000,
                                  .first_block = UINT64_C(0x200000000),
                                  .n_places = 7,
                                  .place = 3,
                                  .step = 5,
                                  .n_buffers = 2,
                                  .buffer_bytes = 4096,
                                  .nsid = 1,
                                  .entries = NVME_ENTRIES,
                                  .depth = depth,
                                  .n_blocks = 8,
                                  .opcode = NVME_READ };
}

static void nvme_open(struct rig *r, struct nvme_rig *n)
{
    *n = (struct nvme_rig){ .r = r };
    assert_int_equal(gpu_alloc(r->gpu[0], 4096, &n->sq), 0);
    assert_int_equal(gpu_alloc(r->gpu[0], 4096, &n->cq), 0);
    assert_int_equal(gpu_alloc(r->gpu[0], 4096, &n->at), 0);
    assert_int_equal(gpu_alloc(r->gpu[0], NVME_COMMANDS * 8, &n->times), 0);
    assert_int_equal(gpu_alloc(r->gpu[1], 64, &n->words), 0);
    assert_int_equal(gpu_map_peer(r->gpu[0], r->gpu[1], n->words, 64, &n->doorbells), 0);
}

static void nvme_launch(struct nvme_rig *n, const struct gpu_nvme_job *job)
{
    struct gpu_drv *gpu = n->r->gpu[0];
    const unsigned channel = gpu_kernel_channel(gpu);
    const struct gpu_launch launch = {
        .kernel = GPU_KERNEL_NVME, .iterations = NVME_COMMANDS, .local = n->at, .times = n->times
    };
    assert_int_equal(gpu_write_memory(gpu, n->at, job, sizeof(*job)), 0);
    assert_int_equal(gpu_launch(gpu, &launch), 0);
    assert_int_equal(gpu_event_record(gpu, channel, true, &n->end), 0);
    assert_int_equal(gpu_submit(gpu, channel), 0);
}

static uint32_t doorbell(const struct nvme_rig *n, unsigned i)
{
    uint32_t value;
    gpu_memory_read(n->r->model[1], n->words + 4 * i, &value, sizeof(value));
    return value;
}

static void await_doorbell(struct nvme_rig *n, unsigned i, uint32_t value)
{
    const uint64_t until_ps = k_now_ps(n->r->kernel) + 100 * SIM_PS_PER_US;
    while (doorbell(n, i) != value && k_now_ps(n->r->kernel) < until_ps)
        k_compute(n->r->kernel, 100);
    assert_int_equal(doorbell(n, i), value);
}

/* The i-th completion, of command `cid`. */
static void complete(struct nvme_rig *n, unsigned i, uint16_t cid, uint16_t status)
{
    const struct nvme_cqe cqe = { .cid = cid,
                                  .status = (uint16_t)(status << 1 | (i / NVME_ENTRIES % 2 == 0)) };
    assert_int_equal(
        gpu_write_memory(n->r->gpu[0], n->cq + i % NVME_ENTRIES * sizeof(cqe), &cqe, sizeof(cqe)),
        0);
}

static struct nvme_sqe command(struct nvme_rig *n, unsigned i)
{
    struct nvme_sqe sqe;
    gpu_memory_read(n->r->model[0], n->sq + i % NVME_ENTRIES * sizeof(sqe), &sqe, sizeof(sqe));
    return sqe;
}

static void nvme_one_by_one(struct rig *r)
{
    struct nvme_rig n;
    nvme_open(r, &n);
    const struct gpu_nvme_job job = nvme_job(&n, 1);
    uint64_t seen_ps[NVME_COMMANDS], answered_ps[NVME_COMMANDS], cycles[NVME_COMMANDS];
    uint32_t errors;
    nvme_launch(&n, &job);
    for (unsigned i = 0; i < NVME_COMMANDS; i++) {
        await_doorbell(&n, 0, (i + 1) % NVME_ENTRIES);
        seen_ps[i] = k_now_ps(r->kernel);
        const struct nvme_sqe sqe = command(&n, i);
        const uint64_t block = job.first_block + (3 + i * 5) % 7 * 8;
        assert_int_equal(sqe.opcode, NVME_READ);
        assert_int_equal(sqe.nsid, 1);
        assert_int_equal(sqe.prp1, 0x10000 + i % 2 * 4096);
        assert_int_equal(sqe.cdw10 | (uint64_t)sqe.cdw11 << 32, block);
        assert_int_equal(sqe.cdw12, 7);
        complete(&n, i, sqe.cid, i == 2 ? NVME_SC_INTERNAL_ERROR : NVME_SC_SUCCESS);
        answered_ps[i] = k_now_ps(r->kernel);
        await_doorbell(&n, 1, (i + 1) % NVME_ENTRIES);
    }
    assert_int_equal(gpu_event_wait(r->gpu[0], &n.end, UINT64_MAX), 0);
    gpu_memory_read(r->model[0], n.at + offsetof(struct gpu_nvme_job, errors), &errors, 4);
    assert_int_equal(errors, 1);
    gpu_memory_read(r->model[0], n.times, cycles, sizeof(cycles));
    for (unsigned i = 0; i < NVME_COMMANDS; i++) {
        /* clock64(), entry, fence, store, two ways of 110 to 250 ns, up to 50 ns to notice, a write
         * seen, a turn of the loop; and what the test took itself. */
        const double ns = (double)cycles[i] * 1e6 / gpu_clock_khz(r->gpu[0]);
        const double own = (double)(answered_ps[i] - seen_ps[i]) * 1e-3;
        if (ns < 32 + 300 + 500 + 400 + own + 200 + 2 * 110 ||
            ns > 32 + 300 + 500 + 400 + own + 2 * (200 + 250) + 100 + 15)
            fail_msg("command %u: %.0f ns, %.0f of them the test's", i, ns, own);
    }
    gpu_unmap(r->gpu[0], &n.doorbells);
}

/* Three at a time, answered last come first. */
static void nvme_out_of_order(struct rig *r)
{
    struct nvme_rig n;
    nvme_open(r, &n);
    const struct gpu_nvme_job job = nvme_job(&n, 3);
    uint16_t cid[NVME_COMMANDS];
    nvme_launch(&n, &job);
    await_doorbell(&n, 0, 3);
    for (unsigned i = 0; i < 3; i++)
        cid[i] = command(&n, i).cid;
    complete(&n, 0, cid[2], 0);
    await_doorbell(&n, 0, 0); /* the fourth has the identifier that is free again */
    cid[3] = command(&n, 3).cid;
    assert_int_equal(cid[3], cid[2]);
    complete(&n, 1, cid[1], 0);
    await_doorbell(&n, 0, 1);
    cid[4] = command(&n, 4).cid;
    complete(&n, 2, cid[0], 0);
    complete(&n, 3, cid[3], 0);
    complete(&n, 4, cid[4], 0);
    assert_int_equal(gpu_event_wait(r->gpu[0], &n.end, UINT64_MAX), 0);
    assert_int_equal(doorbell(&n, 1), NVME_COMMANDS % NVME_ENTRIES);
    gpu_unmap(r->gpu[0], &n.doorbells);
}

/* A completion of no command, and jobs that cannot be done, stop the channel. */
static void nvme_stray(struct rig *r)
{
    struct nvme_rig n;
    nvme_open(r, &n);
    const struct gpu_nvme_job job = nvme_job(&n, 1);
    nvme_launch(&n, &job);
    await_doorbell(&n, 0, 1);
    complete(&n, 0, (uint16_t)(command(&n, 0).cid + 1), 0);
    assert_int_equal(gpu_event_wait(r->gpu[0], &n.end, UINT64_MAX), -EIO);
    gpu_unmap(r->gpu[0], &n.doorbells);
}

static void nvme_bad_job(struct rig *r)
{
    struct nvme_rig n;
    nvme_open(r, &n);
    struct gpu_nvme_job job = nvme_job(&n, 1);
    job.depth = job.entries;
    nvme_launch(&n, &job);
    assert_int_equal(gpu_event_wait(r->gpu[0], &n.end, UINT64_MAX), -EIO);
    assert_int_equal(gpu_channel_state(r->gpu[0], gpu_kernel_channel(r->gpu[0])),
                     GPU_CHANNEL_BAD_COMMAND);
    gpu_unmap(r->gpu[0], &n.doorbells);
}

static void test_nvme(void **state)
{
    (void)state;
    void (*const bodies[])(struct rig *) = { nvme_one_by_one, nvme_out_of_order, nvme_stray,
                                             nvme_bad_job };
    for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct rig r = { 0 };
        rig_run(&r, false, "", bodies[i]);
    }
}

/* A kernel that waits for ever does not keep the driver from going. */
static void stuck(struct rig *r)
{
    uint64_t word;
    struct gpu_event end;
    assert_int_equal(gpu_alloc(r->gpu[0], 64, &word), 0);
    struct gpu_run run = { 0x1000, 64 };
    const struct gpu_mapping unused = { .bytes = 64, .n_runs = 1, .run = &run };
    struct gpu_launch launch = { .kernel = GPU_KERNEL_PONG,
                                 .iterations = 1,
                                 .local = word,
                                 .remote = &unused,
                                 .times = GPU_NO_TIMES };
    unsigned channel = gpu_kernel_channel(r->gpu[0]);
    assert_int_equal(gpu_launch(r->gpu[0], &launch), 0);
    assert_int_equal(gpu_event_record(r->gpu[0], channel, true, &end), 0);
    assert_int_equal(gpu_submit(r->gpu[0], channel), 0);
    uint64_t until_ps = k_now_ps(r->kernel) + SIM_PS_PER_MS;
    assert_int_equal(gpu_event_wait(r->gpu[0], &end, until_ps), -ETIMEDOUT);
}

static void test_stuck(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", stuck);
}

/* ---- Reset ----------------------------------------------------------------------------------- */

static void flr(struct k_pci_dev *dev)
{
    unsigned cap = k_pci_find_capability(dev, PCI_CAP_ID_PCIE, NULL);
    assert_true((k_config_read(dev, cap + PCIE_DEVCAP, 4) & PCIE_DEVCAP_FLR) != 0);
    uint32_t control = k_config_read(dev, cap + PCIE_DEVCTL, 2);
    k_config_write(dev, cap + PCIE_DEVCTL, 2, control | PCIE_DEVCTL_FLR);
    assert_int_equal(k_config_read(dev, PCI_COMMAND, 2), 0);
    assert_int_equal(k_config_read(dev, PCI_BAR0, 4) & ~PCI_BAR_FLAGS_MASK, 0);
    for (unsigned i = 0; i < K_PCI_BARS; i++) /* what firmware had written */
        if (dev->bar_bytes[i] != 0) {
            k_config_write(dev, PCI_BAR0 + 4 * i, 4, (uint32_t)dev->bar_base[i]);
            if (dev->bar_base[i] >> 32 != 0)
                k_config_write(dev, PCI_BAR0 + 4 * i + 4, 4, (uint32_t)(dev->bar_base[i] >> 32));
        }
    k_config_write(dev, cap + PCIE_DEVCTL, 2, control);
    k_config_write(dev, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
}

/* In the midst of a copy each way and of a kernel: nothing of them goes on, nothing is left in
 * registers and memory, and a driver that begins anew finds a new GPU. */
static void reset_under_way(struct rig *r)
{
    struct k_pci_dev *dev = function(r, 0);
    struct copy_rig c = copy_open(r, 0, MIB);
    struct gpu_place host = { &c.mapping, 0 }, device = { NULL, c.offset };
    uint8_t zeros[4096] = { 0 }, there[4096];
    stuck(r);
    payload_fill(r->kernel, c.host, payload_mark(STREAM, 0), c.bytes);
    assert_int_equal(gpu_copy(r->gpu[0], 0, device, host, c.bytes), 0);
    assert_int_equal(gpu_copy(r->gpu[0], 1, host, (struct gpu_place){ NULL, 0 }, c.bytes), 0);
    assert_int_equal(gpu_submit(r->gpu[0], 0), 0);
    assert_int_equal(gpu_submit(r->gpu[0], 1), 0);
    k_sleep(r->kernel, 20 * SIM_PS_PER_US);
    flr(dev);
    const struct pcie_link_stats *sent = pcie_port_stats(&r->model[0]->ports[0]);
    k_sleep(r->kernel, 10 * SIM_PS_PER_US);
    const uint64_t payload_bytes = sent->payload_bytes;
    k_sleep(r->kernel, SIM_PS_PER_MS);
    assert_int_equal(sent->payload_bytes, payload_bytes);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(k_readl(dev, 0, GPU_CHANNEL(i) + GPU_CHANNEL_STATUS), GPU_CHANNEL_OFF);
    for (uint64_t at = 0; at < 2 * MIB; at += sizeof(there)) {
        gpu_memory_read(r->model[0], at, there, sizeof(there));
        assert_memory_equal(there, zeros, sizeof(there));
    }
    copy_close(r, 0, &c);
    k_pci_remove(dev, true);
    assert_int_equal(k_pci_add(r->kernel, dev), 0);
    r->gpu[0] = gpu_of(dev);
    assert_non_null(r->gpu[0]);
    struct copy_rig again = copy_open(r, 0, MIB);
    copy_places(r, &again);
    copy_close(r, 0, &again);
}

static void test_reset(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct rig r = { 0 };
        rig_run(&r, iommu, "", reset_under_way);
    }
}

/* ---- Failures -------------------------------------------------------------------------------- */

static int copy_status(struct gpu_drv *gpu, unsigned channel, struct gpu_place to,
                       struct gpu_place from, uint64_t bytes)
{
    struct gpu_event end;
    assert_int_equal(gpu_copy(gpu, channel, to, from, bytes), 0);
    assert_int_equal(gpu_event_record(gpu, channel, true, &end), 0);
    assert_int_equal(gpu_submit(gpu, channel), 0);
    return gpu_event_wait(gpu, &end, UINT64_MAX);
}

/* A command that has failed before anybody waits. */
static int late_status(struct rig *r, unsigned channel, bool blocking)
{
    struct gpu_place behind = { NULL, gpu_memory_bytes(r->gpu[0]) };
    struct gpu_event end;
    assert_int_equal(gpu_copy(r->gpu[0], channel, behind, (struct gpu_place){ NULL, 0 }, 64), 0);
    assert_int_equal(gpu_event_record(r->gpu[0], channel, blocking, &end), 0);
    assert_int_equal(gpu_submit(r->gpu[0], channel), 0);
    k_sleep(r->kernel, 100 * SIM_PS_PER_US);
    return gpu_event_wait(r->gpu[0], &end, UINT64_MAX);
}

static void late_failures(struct rig *r)
{
    assert_int_equal(late_status(r, 0, true), -EIO);
    assert_int_equal(late_status(r, 1, false), -EIO);
}

static void failures(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 64 * KIB);
    struct gpu_place host = { &c.mapping, 0 }, device = { NULL, c.offset };
    struct gpu_event event;
    /* Behind the end of its memory; a copy by the channel of kernels; an address that nobody has;
     * one that it cannot form. Each stops a channel of its own. */
    struct gpu_place behind = { NULL, gpu_memory_bytes(r->gpu[0]) };
    assert_int_equal(copy_status(r->gpu[0], 1, behind, host, 64), -EIO);
    assert_int_equal(gpu_channel_state(r->gpu[0], 1), GPU_CHANNEL_BAD_COMMAND);
    assert_int_equal(gpu_copy(r->gpu[0], 2, device, host, 64), -EINVAL);
    assert_int_equal(gpu_event_record(r->gpu[0], 1, true, &event), -EIO);
    struct gpu_run nowhere[2] = { { 0xe000000000, 8192 }, { (UINT64_C(1) << 40) - 64, 128 } };
    const struct gpu_mapping forged[2] = { { .bytes = 8192, .n_runs = 1, .run = &nowhere[0] },
                                           { .bytes = 128, .n_runs = 1, .run = &nowhere[1] } };
    assert_int_equal(copy_status(r->gpu[1], 0, device, (struct gpu_place){ &forged[0], 0 }, 8192),
                     -EIO);
    assert_int_equal(gpu_channel_state(r->gpu[1], 0), GPU_CHANNEL_BUS_ERROR);
    assert_int_equal(copy_status(r->gpu[1], 1, (struct gpu_place){ &forged[1], 0 }, device, 128),
                     -EIO);
    assert_int_equal(gpu_channel_state(r->gpu[1], 1), GPU_CHANNEL_BAD_ADDRESS);
    /* The other channels go on. */
    assert_int_equal(copy_status(r->gpu[0], 0, device, host, 4096), 0);
    copy_close(r, 0, &c);
}

/* A read that is due when the last of the writes before it lands comes behind it. */
static void reads_behind_writes(struct rig *r)
{
    struct k_pci_dev *dev = function(r, 0);
    for (uint64_t turn = 1; turn <= 4; turn++) {
        for (uint64_t i = 0; i < 4 + turn; i++)
            k_writeq(dev, GPU_MEMORY_BAR, 8 * i, turn);
        assert_int_equal(k_readq(dev, GPU_MEMORY_BAR, 8 * (3 + turn)), turn);
    }
}

static void test_order(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "inbound_write_gbyte_s = 0.01;", reads_behind_writes);
}

/* A doorbell that goes back, or beyond the ring, is no doorbell; the channel goes on. */
static void bad_doorbells(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 64 * KIB);
    struct k_pci_dev *dev = function(r, 0);
    read_ns(r, &c, 0, 64);
    const uint32_t get = k_readl(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_GET);
    assert_int_equal(k_readl(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_PUT), get);
    k_writel(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_PUT, get - 1);
    k_writel(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_PUT, get + 129);
    assert_int_equal(k_readl(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_PUT), get);
    /* Nor one that takes commands back that have been fetched already. */
    struct gpu_place host = { &c.mapping, 0 }, device = { NULL, c.offset };
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(gpu_copy(r->gpu[0], 0, device, host, 64 * KIB), 0);
    assert_int_equal(gpu_submit(r->gpu[0], 0), 0);
    k_writel(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_PUT, get + 2);
    k_sleep(r->kernel, SIM_PS_PER_MS);
    assert_int_equal(k_readl(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_PUT), get + 10);
    assert_int_equal(k_readl(dev, 0, GPU_CHANNEL(0) + GPU_CHANNEL_GET), get + 10);
    assert_int_equal(gpu_channel_state(r->gpu[0], 0), GPU_CHANNEL_ON);
    copy_close(r, 0, &c);
}

static void test_doorbells(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", bad_doorbells);
}

/* Two threads on two CPUs, each with a channel of its own, record events at the same time. */
struct recorder {
    struct rig *r;
    unsigned channel;
    bool done;
};

static void recorder_body(void *arg)
{
    struct recorder *recorder = arg;
    struct gpu_drv *gpu = recorder->r->gpu[0];
    struct gpu_event event;
    for (unsigned i = 0; i < 300; i++) {
        int error;
        while ((error = gpu_event_record(gpu, recorder->channel, true, &event)) == -EAGAIN)
            k_sleep(recorder->r->kernel, SIM_PS_PER_US);
        assert_int_equal(error, 0);
        assert_int_equal(gpu_submit(gpu, recorder->channel), 0);
        assert_int_equal(gpu_event_wait(gpu, &event, k_now_ps(recorder->r->kernel) + SIM_PS_PER_MS),
                         0);
        assert_true(gpu_event_ns(gpu, &event) * SIM_PS_PER_NS <= k_now_ps(recorder->r->kernel));
    }
    recorder->done = true;
}

static void recorders(struct rig *r)
{
    struct recorder recorder[2] = { { .r = r, .channel = 0 }, { .r = r, .channel = 1 } };
    for (unsigned i = 0; i < 2; i++)
        k_thread_new(r->kernel, "recorder", 1 + (int)i, recorder_body, &recorder[i]);
    while (!recorder[0].done || !recorder[1].done)
        k_sleep(r->kernel, SIM_PS_PER_MS);
    /* An event whose slot others have taken is refused; one that came counts as that. */
    struct gpu_event event[GPU_EVENTS + 1];
    for (unsigned i = 0; i <= GPU_EVENTS; i++)
        assert_int_equal(gpu_event_record(r->gpu[0], 0, true, &event[i]), 0);
    assert_int_equal(gpu_submit(r->gpu[0], 0), 0);
    assert_int_equal(gpu_event_wait(r->gpu[0], &event[0], UINT64_MAX), -EINVAL);
    assert_int_equal(gpu_event_wait(r->gpu[0], &event[GPU_EVENTS], UINT64_MAX), 0);
    assert_int_equal(gpu_event_wait(r->gpu[0], &event[1], UINT64_MAX), 0);
}

static void test_events(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", recorders);
}

/* The device goes while a thread waits for what never comes. */
static void waiter_body(void *arg)
{
    struct rig *r = arg;
    struct gpu_event end;
    unsigned channel = gpu_kernel_channel(r->gpu[0]);
    assert_int_equal(gpu_event_record(r->gpu[0], channel, true, &end), 0);
    assert_int_equal(gpu_event_wait(r->gpu[0], &end, UINT64_MAX), -ENODEV);
    r->waited = true;
}

static void goes(struct rig *r)
{
    stuck(r);
    k_thread_new(r->kernel, "waiter", 1, waiter_body, r);
    k_sleep(r->kernel, SIM_PS_PER_MS);
    assert_false(r->waited);
    k_pci_remove(function(r, 0), false);
    assert_true(r->waited);
    r->gpu[0] = NULL;
}

static void test_goes(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", goes);
}

/* Bytes that are no tags, at unlike places, there and back. */
static void bytes_too(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 64 * KIB);
    uint8_t out[5000], in[5000];
    for (unsigned i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 7 + i / 256);
    k_poke(r->kernel, kaddr_add(c.host, 4001), out, sizeof(out));
    assert_int_equal(copy_status(r->gpu[0], 0, (struct gpu_place){ NULL, c.offset + 30 },
                                 (struct gpu_place){ &c.mapping, 4001 }, sizeof(out)),
                     0);
    assert_int_equal(copy_status(r->gpu[0], 0, (struct gpu_place){ NULL, c.offset + 20003 },
                                 (struct gpu_place){ NULL, c.offset + 30 }, sizeof(out)),
                     0);
    assert_int_equal(copy_status(r->gpu[0], 1, (struct gpu_place){ &c.mapping, 50001 },
                                 (struct gpu_place){ NULL, c.offset + 20003 }, sizeof(out)),
                     0);
    k_peek(r->kernel, kaddr_add(c.host, 50001), in, sizeof(in));
    assert_memory_equal(in, out, sizeof(in));
    copy_close(r, 0, &c);
}

static void test_bytes(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, true, "", bytes_too);
}

static void test_failures(void **state)
{
    struct rig r = { 0 }, late = { 0 };
    (void)state;
    rig_run(&r, false, "address_bits = 40;", failures);
    rig_run(&late, false, "", late_failures);
}

/* A ring goes round more than once; it fills up; device memory is exhausted and given back. */
static void resources(struct rig *r)
{
    struct copy_rig c = copy_open(r, 0, 64 * KIB);
    uint64_t all, none;
    for (unsigned i = 0; i < 200; i++)
        read_ns(r, &c, 64 * (i % 1000), 64);
    unsigned n = 0;
    while (gpu_copy(r->gpu[0], 1, (struct gpu_place){ NULL, c.offset },
                    (struct gpu_place){ &c.mapping, 0 }, 64) == 0)
        n++;
    assert_int_equal(n, 128);
    copy_close(r, 0, &c);
    assert_int_equal(gpu_alloc(r->gpu[0], gpu_memory_bytes(r->gpu[0]), &all), 0);
    assert_int_equal(gpu_alloc(r->gpu[0], 1, &none), -ENOMEM);
    gpu_free(r->gpu[0], all);
    assert_int_equal(gpu_alloc(r->gpu[0], 0, &none), -EINVAL);
}

static void test_resources(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_run(&r, false, "", resources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),     cmocka_unit_test(test_slow_writes),
        cmocka_unit_test(test_places),    cmocka_unit_test(test_peers),
        cmocka_unit_test(test_ping_pong), cmocka_unit_test(test_nvme),
        cmocka_unit_test(test_stuck),     cmocka_unit_test(test_reset),
        cmocka_unit_test(test_failures),  cmocka_unit_test(test_resources),
        cmocka_unit_test(test_bytes),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_doorbells), cmocka_unit_test(test_events),
        cmocka_unit_test(test_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
