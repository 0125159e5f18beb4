/*
 * An NVMe controller in simulated hosts: its unchanged driver reads and writes blocks on a local
 * device and on a borrowed one, through two bridges back to back and the IOMMUs of both sides,
 * either, or none. Every byte is checked at its destination. Then all goes, and nothing is left.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "logic/lending/lending.h"
#include "logic/nvme/nvme_driver.h"
#include "models/base/payload.h"
#include "models/nvme/nvme.h"
#include "models/os/os.h"
#include "models/pcie/endpoint/pcie_function.h"

#define HOST(NAME, IOMMU)                                                  \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"      \
         " { name = \"rp1\"; socket = 0; lanes = 4; } );"                  \
         " dram = { node_size = \"2 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = " IOMMU "; }; };\n"
#define SSD "ssd = { type = \"nvme.controller\"; capacity_bytes = \"1 GiB\"; %s };"
/* The device is `server`'s own. */
#define LOCAL                                              \
    "hosts = { " HOST("server",                            \
                      "%s") "};\ndevices = { " SSD " };\n" \
                            "cables = ( { from = \"server.s0.rp1\"; to = \"ssd.p0\"; } );\n"
/* `server` borrows it from `lender`. */
#define BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"8 GiB\"; };"
#define LENT                                                                             \
    "hosts = { " HOST("server", "%s")                                                    \
        HOST("lender", "%s") "};\n"                                                      \
                             "devices = { n0 = " BRIDGE " n1 = " BRIDGE " " SSD " };\n"  \
                             "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; }," \
                             " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"           \
                             " { from = \"lender.s0.rp1\"; to = \"ssd.p0\"; },"          \
                             " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; } );\n"

#define KIB         1024u
#define MIB         (KIB * KIB)
#define SECOND      (1000 * SIM_PS_PER_MS)
#define STREAM      5u
#define BORROWER_ID 1u
#define LENDER_ID   2u

struct rig {
    struct world_fixture w;
    struct kernel *kernel, *lender_kernel;
    struct lend_host *lend[2];
    struct lend_borrow *borrow;
    struct lend_usage before;
    uint16_t lent_id;
    struct nvme_driver *driver;
    struct nvme_driver_params params;
    struct nvme_drv *nvme;
    unsigned n_queues; /* that it is to have */
    const char *more;  /* settings of the device */
    struct kaddr buffer;
    unsigned done;
    void (*test)(struct rig *r);
    unsigned cpu, n_left;
    uint64_t position;
};

static struct model *ssd(struct rig *r)
{
    return world_device(r->w.world, "ssd");
}

/* ---- Up and down ----------------------------------------------------------------------------- */

static void wait_for(struct rig *r, unsigned n)
{
    sim_time until_ps = sim_now(r->w.sim) + 100 * SECOND;
    while (r->done < n && sim_now(r->w.sim) < until_ps) {
        sim_run(r->w.sim, sim_now(r->w.sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(r->w.sim));
    }
    assert_int_equal(r->done, n);
    r->done = 0;
}

/* Runs a function as a thread of the kernel, to its end. */
static void call(struct rig *r, struct kernel *kernel, unsigned cpu, k_thread_fn *body)
{
    k_thread_new(kernel, "test", (int)cpu, body, r);
    wait_for(r, 1);
}

static void check_device(struct rig *r)
{
    r->nvme = nvme_driver_device(r->driver, 0);
    assert_non_null(r->nvme);
    assert_ptr_equal(nvme_of(nvme_pci(r->nvme)), r->nvme);
    assert_int_equal(nvme_n_namespaces(r->nvme), 1);
    assert_int_equal(nvme_bytes(r->nvme, 1), 1024 * MIB);
    assert_int_equal(nvme_bytes(r->nvme, 2), 0);
    assert_int_equal(nvme_block_bytes(r->nvme, 1), 512);
    assert_int_equal(nvme_request_bytes_max(r->nvme), 128 * KIB);
    assert_int_equal(nvme_n_queues(r->nvme), r->n_queues);
    r->buffer = k_alloc(r->kernel, K_NODE_LOCAL, 8 * MIB, K_PAGE_BYTES);
}

static void local_up(void *arg)
{
    struct rig *r = arg;
    assert_int_equal(k_pci_register(r->kernel, nvme_driver_pci(r->driver)), 1);
    check_device(r);
    r->done++;
}

static void lend_up(struct rig *r, struct kernel *kernel, uint32_t id, const struct k_pci_id *lend)
{
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = id;
    options.name = id == BORROWER_ID ? "borrower" : "lender";
    options.lend = lend;
    struct lend_host *host = r->lend[id - 1] = lend_host_new(kernel, &options);
    assert_non_null(host);
    assert_int_equal(k_pci_register(kernel, lend_adapter_driver(host)), 1);
    assert_int_equal(k_pci_register(kernel, lend_lender_driver(host)), lend != NULL ? 1 : 0);
    assert_int_equal(lend_start(host, &error), 0);
}

static void lender_up(void *arg)
{
    static const struct k_pci_id ids[] = { { NVME_VENDOR_INTEL, NVME_DEVICE_P4800X }, { 0, 0 } };
    struct rig *r = arg;
    lend_up(r, r->lender_kernel, LENDER_ID, ids);
    r->done++;
}

static void borrower_up(void *arg)
{
    struct rig *r = arg;
    struct lend_info info;
    struct lend_error error = { 0 };
    lend_up(r, r->kernel, BORROWER_ID, NULL);
    assert_int_equal(k_pci_register(r->kernel, nvme_driver_pci(r->driver)), 0);
    assert_int_equal(lend_discover(r->lend[0]), 1);
    assert_int_equal(lend_list(r->lend[0], LENDER_ID, 0, &info, &error), 0);
    r->before = lend_usage(r->lend[0]);
    r->lent_id = info.id;
    int status = lend_borrow(r->lend[0], LENDER_ID, info.id, &r->borrow, &error);
    if (status != 0)
        fail_msg("%d: %s", status, error.text);
    check_device(r);
    r->done++;
}

static void rig_open(struct rig *r, const char *world)
{
    fixture_open(&r->w, world);
    struct host *lender = world_host(r->w.world, "lender");
    r->kernel = os_new(r->w.host, host_os_params(r->w.host));
    r->driver = nvme_driver_new(r->kernel, &r->params);
    assert_non_null(r->driver);
    if (lender != NULL) {
        r->lender_kernel = os_new(lender, host_os_params(lender));
        call(r, r->lender_kernel, 0, lender_up);
        call(r, r->kernel, 0, borrower_up);
    } else {
        call(r, r->kernel, 0, local_up);
    }
}

static void down_body(void *arg)
{
    struct rig *r = arg;
    struct nvme_drv *nvme = nvme_driver_device(r->driver, 0);
    if (r->borrow != NULL) {
        lend_return(r->borrow);
        struct lend_usage now = lend_usage(r->lend[0]);
        assert_int_equal(now.windows, r->before.windows);
        assert_int_equal(now.outgoing, r->before.outgoing);
        assert_int_equal(now.mapped_pages, 0);
        assert_int_equal(now.borrowed, 0);
    } else if (nvme != NULL) {
        k_pci_remove(nvme_pci(nvme), false);
    }
    assert_null(nvme_driver_device(r->driver, 0));
    nvme_driver_free(r->driver);
    if (r->lend[0] != NULL)
        lend_host_free(r->lend[0]);
    r->done++;
}

static void lender_down(void *arg)
{
    struct rig *r = arg;
    lend_host_free(r->lend[1]);
    r->done++;
}

static void rig_close(struct rig *r)
{
    call(r, r->kernel, 0, down_body);
    if (r->lender_kernel != NULL)
        call(r, r->lender_kernel, 0, lender_down);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * SIM_PS_PER_MS, NULL);
    if (r->lender_kernel != NULL)
        os_free(r->lender_kernel);
    os_free(r->kernel);
    fixture_close(&r->w);
}

/* ---- Data ------------------------------------------------------------------------------------ */

static void stamp(struct rig *r, uint64_t at, uint64_t position, uint64_t bytes)
{
    payload_fill(r->kernel, kaddr_add(r->buffer, at), payload_mark(STREAM, position), bytes);
}

static void expect(struct rig *r, uint64_t at, uint64_t position, uint64_t bytes)
{
    struct payload_difference is;
    if (!payload_check(r->kernel, kaddr_add(r->buffer, at), payload_mark(STREAM, position), bytes,
                       &is))
        fail_msg("%llu bytes of block data at %llu: tag %#llx, expected %#llx",
                 (unsigned long long)bytes, (unsigned long long)position,
                 (unsigned long long)is.found, (unsigned long long)is.expected);
}

/* Sizes and alignments: one page, two, a list, several requests; buffers and blocks that begin
 * within pages. */
static void test_data(struct rig *r)
{
    static const struct {
        uint64_t at, offset, bytes;
    } io[] = {
        { 0, 0, 512 },
        { 512, 4096 + 1536, 512 },
        { 0, 8192, 4096 },
        { 2048, 16384, 4096 },
        { 0, 32768, 8192 },
        { 1024, 65536 + 512, 8192 },
        { 0, 131072, 128 * KIB },
        { 3584, 300 * KIB + 512, 128 * KIB },
        { 64, 600 * KIB, 1000 * KIB + 512 },
        { 0, 1023 * MIB, MIB },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(io); i++) {
        stamp(r, io[i].at, io[i].offset, io[i].bytes);
        assert_int_equal(nvme_transfer(r->nvme, 1, true, io[i].offset,
                                       kaddr_add(r->buffer, io[i].at), io[i].bytes),
                         0);
    }
    for (unsigned i = 0; i < SIM_N_ELEMENTS(io); i++) {
        uint64_t other = 4 * MIB + io[i].at % 4096;
        payload_fill(r->kernel, kaddr_add(r->buffer, other), payload_mark(9, 0), io[i].bytes);
        assert_int_equal(nvme_transfer(r->nvme, 1, false, io[i].offset, kaddr_add(r->buffer, other),
                                       io[i].bytes),
                         0);
        expect(r, other, io[i].offset, io[i].bytes);
    }
}

/* What cannot be. */
static void test_refused(struct rig *r)
{
    struct kaddr at = r->buffer;
    assert_int_equal(nvme_transfer(r->nvme, 2, false, 0, at, 4096), -EINVAL);
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 100, at, 512), -EINVAL);
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 0, at, 100), -EINVAL);
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 1024 * MIB, at, 512), -EINVAL);
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 1024 * MIB - 512, at, 1024), -EINVAL);
    /* Never written: zeros. */
    payload_fill(r->kernel, at, payload_mark(9, 0), 4096);
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 512 * MIB, at, 4096), 0);
    struct payload_difference is;
    assert_true(payload_check(r->kernel, at, 0, 4096, &is));
}

/* ---- Many at a time -------------------------------------------------------------------------- */

#define DEPTH   300u /* more than a queue has room for */
#define ENTRIES 8

struct many {
    struct nvme_request request;
    struct rig *r;
    struct k_wait_queue *queue;
};

static void many_done(struct nvme_request *request, int status)
{
    struct many *many = request->context;
    assert_int_equal(status, 0);
    many->r->n_left--;
    k_wake(many->r->kernel, many->queue);
}

static void many_go(struct rig *r, struct many *many, bool write)
{
    struct k_wait_queue queue = { 0 };
    unsigned n_busy = 0;
    r->n_left = DEPTH;
    for (unsigned i = 0; i < DEPTH; i++) {
        many[i] = (struct many){ .r = r, .queue = &queue };
        many[i].request = (struct nvme_request){ .write = write,
                                                 .nsid = 1,
                                                 .offset = (uint64_t)(i * 7 % DEPTH) * 4096,
                                                 .bytes = 4096,
                                                 .buffer = kaddr_add(r->buffer, i * 4096),
                                                 .done = many_done,
                                                 .context = &many[i] };
        if (write)
            stamp(r, i * 4096, many[i].request.offset, 4096);
        int status;
        while ((status = nvme_submit(r->nvme, &many[i].request)) == -EBUSY) {
            n_busy++;
            k_sleep(r->kernel, SIM_PS_PER_US);
        }
        assert_int_equal(status, 0);
    }
    while (r->n_left > 0)
        k_wait(r->kernel, &queue, UINT64_MAX);
    assert_true(n_busy > 0);
}

static void test_many(struct rig *r)
{
    struct many *many = calloc(DEPTH, sizeof(*many));
    many_go(r, many, true);
    for (unsigned i = 0; i < DEPTH; i++)
        payload_fill(r->kernel, kaddr_add(r->buffer, i * 4096), payload_mark(9, 0), 4096);
    many_go(r, many, false);
    for (unsigned i = 0; i < DEPTH; i++)
        expect(r, i * 4096, (uint64_t)(i * 7 % DEPTH) * 4096, 4096);
    free(many);
    struct nvme_driver_stats stats = nvme_driver_stats(r->nvme);
    assert_int_equal(stats.outstanding, 0);
    assert_int_equal(stats.errors, 0);
    assert_true(stats.interrupts > 0);
}

/* ---- Where it runs --------------------------------------------------------------------------- */

static void test_body(void *arg)
{
    struct rig *r = arg;
    r->test(r);
    r->done++;
}

static void run(struct rig *r, unsigned cpu, void (*test)(struct rig *r))
{
    r->test = test;
    call(r, r->kernel, cpu, test_body);
}

static void all_tests(struct rig *r)
{
    for (unsigned cpu = 0; cpu < 4; cpu += 3) {
        run(r, cpu, test_data);
        run(r, cpu, test_many);
    }
    run(r, 1, test_refused);
    const struct nvme_stats *stats = nvme_stats(ssd(r));
    const struct pcie_function_stats *front = &ssd(r)->ports[0].function->stats;
    assert_int_equal(stats->errors + stats->bad_doorbells + front->unsupported + stats->fatal, 0);
    assert_true(stats->prp_lists > 0);
    assert_true((stats->cmb_fetches > 0) == (strstr(r->more, "cmb_bytes") != NULL));
    assert_int_equal(front->interrupts > 0, !r->params.polled);
}

static void local_with(const char *iommu, const char *more, unsigned n_queues)
{
    struct rig r = { .params = nvme_driver_params_default, .n_queues = n_queues, .more = more };
    r.params.queue_entries = ENTRIES;
    char *text = g_strdup_printf(LOCAL, iommu, more);
    rig_open(&r, text);
    all_tests(&r);
    rig_close(&r);
    g_free(text);
}

static void local(const char *iommu, const char *more)
{
    local_with(iommu, more, 4);
}

static void lent_with(const char *borrower_iommu, const char *lender_iommu, const char *more,
                      unsigned n_queues)
{
    struct rig r = { .params = nvme_driver_params_default, .n_queues = n_queues, .more = more };
    r.params.queue_entries = ENTRIES;
    char *text = g_strdup_printf(LENT, borrower_iommu, lender_iommu, more);
    rig_open(&r, text);
    all_tests(&r);
    rig_close(&r);
    g_free(text);
}

static void lent(const char *borrower_iommu, const char *lender_iommu)
{
    lent_with(borrower_iommu, lender_iommu, "", 4);
}

static void test_local(void **state)
{
    (void)state;
    local("false", "");
}
static void test_local_iommu(void **state)
{
    (void)state;
    local("true", "jitter_mean_ns = 250;");
}
/* Of one vector, or of fewer than CPUs: queues share. */
static void test_few_vectors(void **state)
{
    (void)state;
    local_with("false", "interrupt_vectors = 1;", 1);
    local_with("true", "interrupt_vectors = 2;", 1);
    local_with("true", "interrupt_vectors = 4;", 3);
    lent_with("true", "false", "interrupt_vectors = 1;", 1);
}
static void test_lent(void **state)
{
    (void)state;
    lent("false", "false");
}
static void test_lent_borrower_iommu(void **state)
{
    (void)state;
    lent("true", "false");
}
static void test_lent_lender_iommu(void **state)
{
    (void)state;
    lent("false", "true");
}
static void test_lent_both_iommus(void **state)
{
    (void)state;
    lent("true", "true");
}

/* Submission queues in its memory buffer, wherever that lies for CPUs and for the device. */
static void test_memory_buffer(void **state)
{
    (void)state;
    local("false", "cmb_bytes = 16384;");
    local("true", "cmb_bytes = 1048576;");
    for (unsigned i = 0; i < 4; i++)
        lent_with(i & 1 ? "true" : "false", i & 2 ? "true" : "false", "cmb_bytes = 16384;", 4);
}

static void test_polled(void **state)
{
    (void)state;
    struct rig r = { .params = nvme_driver_params_default, .n_queues = 4 };
    r.params.polled = true;
    char *text = g_strdup_printf(LOCAL, "false", "");
    rig_open(&r, text);
    run(&r, 2, test_data);
    run(&r, 1, test_refused);
    assert_int_equal(ssd(&r)->ports[0].function->stats.interrupts, 0);
    rig_close(&r);
    g_free(text);
}

/* ---- It goes away, it hangs ------------------------------------------------------------------ */

static void one_body(void *arg)
{
    struct rig *r = arg;
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 0, r->buffer, MIB), -ENODEV);
    r->done++;
}

/* It is pulled in the midst of reads: the program gets an error within the time-out, the driver
 * finds out by a register that reads as all ones. */
static void test_vanishes(void **state)
{
    (void)state;
    struct rig r = { .params = nvme_driver_params_default, .n_queues = 4 };
    r.params.timeout_ps = 100 * SIM_PS_PER_MS;
    char *text = g_strdup_printf(LOCAL, "false", "");
    rig_open(&r, text);
    k_thread_new(r.kernel, "reader", 1, one_body, &r);
    sim_run(r.w.sim, sim_now(r.w.sim) + 100 * SIM_PS_PER_US, NULL);
    sim_time pulled_ps = sim_now(r.w.sim);
    pcie_function_remove(ssd(&r), 0);
    wait_for(&r, 1);
    assert_true(sim_now(r.w.sim) - pulled_ps <= 200 * SIM_PS_PER_MS);
    assert_int_equal(nvme_submit(r.nvme, &(struct nvme_request){ .nsid = 1 }), -ENODEV);
    rig_close(&r);
    g_free(text);
}

static void read_on_body(void *arg)
{
    struct rig *r = arg;
    int status;
    while ((status = nvme_transfer(r->nvme, 1, false, 0, r->buffer, MIB)) == 0)
        ;
    assert_int_equal(status, -ENODEV);
    r->done++;
}

static void reclaim_body(void *arg)
{
    struct rig *r = arg;
    assert_int_equal(lend_reclaim(r->lend[1], r->lent_id), 0);
    r->done++;
}

/* Its lender takes it back in the midst of reads. */
static void test_reclaimed(void **state)
{
    (void)state;
    struct rig r = { .params = nvme_driver_params_default, .n_queues = 4 };
    char *text = g_strdup_printf(LENT, "true", "true", "");
    rig_open(&r, text);
    k_thread_new(r.kernel, "reader", 1, read_on_body, &r);
    sim_run(r.w.sim, sim_now(r.w.sim) + 3 * SIM_PS_PER_MS, NULL);
    k_thread_new(r.lender_kernel, "reclaim", 0, reclaim_body, &r);
    wait_for(&r, 2);
    assert_true(nvme_stats(ssd(&r))->reads > 10);
    assert_null(lend_borrow_device(r.borrow));
    assert_null(nvme_driver_device(r.driver, 0));
    assert_int_equal(lend_usage(r.lend[1]).lent, 0);
    rig_close(&r);
    g_free(text);
}

static void closed_done(struct nvme_request *request, int status)
{
    struct rig *r = request->context;
    assert_int_equal(status, -ENODEV);
    r->n_left--;
}

/* Removed with a request under way: who has it open gets errors, until it closes it. */
static void open_body(void *arg)
{
    struct rig *r = arg;
    struct nvme_drv *nvme = nvme_open(r->nvme);
    struct nvme_request request = {
        .nsid = 1, .bytes = 4096, .buffer = r->buffer, .done = closed_done, .context = r
    };
    r->n_left = 1;
    assert_ptr_equal(nvme, r->nvme);
    assert_int_equal(nvme_direct_submit(nvme, &request), 0);
    k_pci_remove(nvme_pci(nvme), false);
    assert_int_equal(r->n_left, 0);
    nvme_direct_done(nvme, &request);
    assert_null(nvme_driver_device(r->driver, 0));
    assert_int_equal(nvme_submit(nvme, &request), -ENODEV);
    assert_int_equal(nvme_direct_submit(nvme, &request), -ENODEV);
    assert_int_equal(nvme_direct_io(nvme, 1, false, 0, r->buffer, MIB), -ENODEV);
    assert_int_equal(nvme_poll(nvme), 0);
    assert_false(nvme_is_polled(nvme));
    assert_int_equal(nvme_driver_stats(nvme).requests, 1);
    assert_int_equal(nvme_driver_stats(nvme).outstanding, 0);
    nvme_close(nvme);
    r->done++;
}

static void test_open(void **state)
{
    (void)state;
    struct rig r = { .params = nvme_driver_params_default, .n_queues = 4 };
    char *text = g_strdup_printf(LOCAL, "true", "read_latency_ns = 1e8;");
    rig_open(&r, text);
    call(&r, r.kernel, 1, open_body);
    rig_close(&r);
    g_free(text);
}

static void reset_body(void *arg)
{
    struct rig *r = arg;
    assert_int_equal(nvme_transfer(r->nvme, 1, false, 0, r->buffer, MIB), -ETIMEDOUT);
    /* It works again: writes are not slow. */
    assert_int_equal(nvme_transfer(r->nvme, 1, true, 0, r->buffer, MIB), 0);
    r->done++;
}

/* Reads take longer than the driver waits: the controller is reset and set up again. */
static void test_hangs(void **state)
{
    (void)state;
    struct rig r = { .params = nvme_driver_params_default, .n_queues = 4 };
    r.params.timeout_ps = 10 * SIM_PS_PER_MS;
    char *text = g_strdup_printf(LOCAL, "false", "queue_entries = 64; read_latency_ns = 1e8;");
    rig_open(&r, text);
    k_thread_new(r.kernel, "reader", 1, reset_body, &r);
    wait_for(&r, 1);
    struct nvme_driver_stats stats = nvme_driver_stats(r.nvme);
    assert_int_equal(stats.timeouts, 1);
    assert_int_equal(stats.resets, 1);
    assert_int_equal(nvme_stats(ssd(&r))->resets, 1);
    assert_int_equal(nvme_stats(ssd(&r))->writes, MIB / nvme_request_bytes_max(r.nvme));
    rig_close(&r);
    g_free(text);
}

/* One drive, two ports of it in one host: two controllers with a driver each, one storage. */
static void two_ports_body(void *arg)
{
    struct rig *r = arg;
    assert_int_equal(k_pci_register(r->kernel, nvme_driver_pci(r->driver)), 2);
    struct nvme_drv *first = nvme_driver_device(r->driver, 0);
    struct nvme_drv *second = nvme_driver_device(r->driver, 1);
    assert_ptr_not_equal(first, second);
    r->buffer = k_alloc(r->kernel, K_NODE_LOCAL, MIB, K_PAGE_BYTES);
    stamp(r, 0, 4096, 64 * KIB);
    assert_int_equal(nvme_transfer(first, 1, true, 4096, r->buffer, 64 * KIB), 0);
    const struct kaddr other = kaddr_add(r->buffer, 256 * KIB);
    assert_int_equal(nvme_transfer(second, 1, false, 4096, other, 64 * KIB), 0);
    expect(r, 256 * KIB, 4096, 64 * KIB);
    k_pci_remove(nvme_pci(first), false);
    assert_int_equal(nvme_transfer(second, 1, false, 4096, r->buffer, 64 * KIB), 0);
    k_pci_remove(nvme_pci(second), false);
    nvme_driver_free(r->driver);
    r->done++;
}

static void test_two_ports(void **state)
{
    (void)state;
    struct rig r = { .params = nvme_driver_params_default };
    char *text = g_strdup_printf(
        "hosts = { " HOST("server",
                          "true") "};\ndevices = { " SSD " };\n"
                                  "cables = ( { from = \"server.s0.rp1\"; to = \"ssd.p0\"; },"
                                  " { from = \"server.s0.rp0\"; to = \"ssd.p1\"; lanes = 4; } );\n",
        "ports = 2;");
    fixture_open(&r.w, text);
    r.kernel = os_new(r.w.host, host_os_params(r.w.host));
    r.driver = nvme_driver_new(r.kernel, &r.params);
    call(&r, r.kernel, 0, two_ports_body);
    sim_run(r.w.sim, sim_now(r.w.sim) + 10 * SIM_PS_PER_MS, NULL);
    os_free(r.kernel);
    fixture_close(&r.w);
    g_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_local_iommu),
        cmocka_unit_test(test_few_vectors),
        cmocka_unit_test(test_lent),
        cmocka_unit_test(test_lent_borrower_iommu),
        cmocka_unit_test(test_lent_lender_iommu),
        cmocka_unit_test(test_lent_both_iommus),
        cmocka_unit_test(test_memory_buffer),
        cmocka_unit_test(test_polled),
        cmocka_unit_test(test_vanishes),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_reclaimed),
        cmocka_unit_test(test_two_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
