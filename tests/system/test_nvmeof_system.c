/*
 * NVMe over Fabrics by RDMA between two simulated hosts: data both ways in capsules, by RDMA writes and by
 * RDMA reads, at every MTU; several initiators; flow control and RNR; refusals and errors with their
 * status; connections that break in mid command, hosts that fall silent, capsules of random bytes.
 */
#include <errno.h>
#include <string.h>

#include "logic/nvmeof/nvmeof_initiator_internal.h"
#include "models/os/os.h"
#include "models/rdma/rdma.h"
#include "tests/support/world_fixture.h"

#define HOST(NAME)                                                                           \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; },"                       \
         " { name = \"rp1\"; socket = 0; lanes = 4; } ); dram = { node_size = \"1 GiB\"; };" \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define WORLD                                                                                                             \
    "hosts = { " HOST("server") HOST(                                                                                     \
        "client") "};\n"                                                                                                  \
                  "devices = { r0 = { type = \"rdma.adapter\"; }; r1 = { type = \"rdma.adapter\"; };"                     \
                  " ssd = { type = \"nvme.controller\"; payload = \"bytes\"; capacity_bytes = \"1 GiB\"; namespaces = 2;" \
                  " enable_latency_us = 10; queue_pairs = 8; }; };\n"                                                     \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"r0.p0\"; },"                                             \
                  " { from = \"client.s0.rp0\"; to = \"r1.p0\"; }, { from = \"server.s0.rp1\"; to = \"ssd.p0\"; },"       \
                  " { from = \"r0.i0\"; to = \"r1.i0\"; %s } );\n"

#define LIMIT_PS (400 * SIM_PS_PER_MS)
#define ENTRIES  16u
#define BYTES    131072u
#define BLOCK    512u
#define KIB      1024u

struct side {
    struct kernel *kernel;
    struct rdma_driver *driver;
    struct rdma_drv *rdma;
};

static struct rig {
    struct world_fixture w;
    struct side server, client;
    struct nvme_local *nvme;
    struct nvmeof_target *target;
    struct nvmeof_target_params params;
    struct nvmeof_target_stats stats; /* at its end */
    /* a hello under way */
    const struct nvmeof_hello *hello;
    struct nvmeof_hello answer;
    bool asked, ready, stop, stopped, done;
    int error;
    void (*body)(void);
    unsigned n_done;
} rig;

/* ---- The target's host ----------------------------------------------------------------------- */

static void load_driver(struct side *side, uint16_t lid)
{
    assert_int_equal(k_pci_register(side->kernel, rdma_driver_pci(side->driver)), 1);
    side->rdma = rdma_driver_device(side->driver, 0);
    assert_int_equal(rdma_drv_set_lid(side->rdma, lid), 0);
}

static void unload_driver(struct side *side)
{
    k_pci_remove(rdma_drv_pci(side->rdma), false);
    rdma_driver_free(side->driver);
}

static int no_probe(struct k_pci_dev *dev, void *context)
{
    struct k_pci_dev **found = context;
    *found = dev;
    return -ENODEV;
}

/* The controller, as no driver has it. */
static struct k_pci_dev *find_ssd(struct kernel *kernel)
{
    static const struct k_pci_id ids[] = { { NVME_VENDOR_INTEL, NVME_DEVICE_P4800X }, { 0, 0 } };
    static struct k_pci_dev *dev;
    static struct k_pci_driver finder = { .name = "finder", .ids = ids, .probe = no_probe };
    finder.context = &dev;
    dev = NULL;
    assert_int_equal(k_pci_register(kernel, &finder), 0);
    assert_non_null(dev);
    return dev;
}

static void server_body(void *arg)
{
    struct nvme_local_params nvme = nvme_local_params_default;
    (void)arg;
    load_driver(&rig.server, 1);
    nvme.n_queues = 255;
    assert_int_equal(nvme_local_open(find_ssd(rig.server.kernel), &nvme, &rig.nvme), 0);
    assert_int_equal(nvme_local_n_queues(rig.nvme), 7);
    rig.params.rdma = rig.server.rdma;
    rig.params.nvme = rig.nvme;
    assert_int_equal(nvmeof_target_new(&rig.params, &rig.target), 0);
    rig.ready = true;
    while (!rig.stop) {
        if (rig.asked) {
            rig.error = nvmeof_target_accept(rig.target, rig.hello, &rig.answer);
            rig.asked = false;
        }
        if (nvmeof_target_poll(rig.target) == 0)
            k_sleep(rig.server.kernel, 200 * K_NS);
    }
    rig.stats = nvmeof_target_stats(rig.target);
    nvmeof_target_free(rig.target);
    nvme_local_close(rig.nvme);
    unload_driver(&rig.server);
    rig.stopped = true;
}

/* ---- The initiators' host -------------------------------------------------------------------- */

static int exchange(void *context, const struct nvmeof_hello *hello, struct nvmeof_hello *answer)
{
    (void)context;
    rig.hello = hello;
    rig.asked = true;
    while (rig.asked)
        k_sleep(rig.client.kernel, K_US);
    *answer = rig.answer;
    return rig.error;
}

static struct nvmeof_initiator_params initiator_params(void)
{
    return (struct nvmeof_initiator_params){ .rdma = rig.client.rdma,
                                             .subsystem = "nqn.test",
                                             .host = "nqn.client",
                                             .n_queues = 1,
                                             .entries = ENTRIES,
                                             .mtu_bytes = 4096,
                                             .timeout_ps = 20 * K_MS,
                                             .exchange = exchange };
}

static struct nvmeof_initiator *open_initiator(void)
{
    const struct nvmeof_initiator_params params = initiator_params();
    struct nvmeof_initiator *initiator;
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), 0);
    return initiator;
}

static void client_body(void *arg)
{
    (void)arg;
    load_driver(&rig.client, 2);
    while (!rig.ready)
        k_sleep(rig.client.kernel, 10 * K_US);
    rig.body();
    rig.stop = true;
    while (!rig.stopped)
        k_sleep(rig.client.kernel, 10 * K_US);
    unload_driver(&rig.client);
    rig.done = true;
}

/* Boots both hosts, runs `body` beside a target, shuts all down; nothing may be left. */
static void run(void (*body)(void), const char *wire)
{
    g_autofree char *text = g_strdup_printf(WORLD, wire);
    struct side *const side[2] = { &rig.server, &rig.client };
    fixture_open(&rig.w, text);
    for (unsigned i = 0; i < 2; i++) {
        struct host *host = world_host(rig.w.world, i == 0 ? "server" : "client");
        side[i]->kernel = os_new(host, host_os_params(host));
        side[i]->driver = rdma_driver_new(side[i]->kernel);
    }
    rig.body = body;
    k_thread_new(rig.server.kernel, "target", 1, server_body, NULL);
    k_thread_new(rig.client.kernel, "initiator", 1, client_body, NULL);
    while (!rig.done && sim_now(rig.w.sim) < LIMIT_PS) {
        sim_run(rig.w.sim, sim_now(rig.w.sim) + 100 * SIM_PS_PER_US, NULL);
        assert_null(sim_error(rig.w.sim));
    }
    assert_true(rig.done);
    sim_run(rig.w.sim, sim_now(rig.w.sim) + SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < 2; i++)
        os_free(side[i]->kernel);
    fixture_close(&rig.w);
}

static int set_up(void **state)
{
    memset(&rig, 0, sizeof rig);
    rig.params = (struct nvmeof_target_params){ .subsystem = "nqn.test",
                                                .entries_max = ENTRIES,
                                                .queues_max = 9,
                                                .in_capsule_bytes = 4096,
                                                .mtu_bytes = 4096 };
    *state = &rig;
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void done(struct nvmeof_request *request)
{
    bool *flag = request->context;
    *flag = true;
    rig.n_done++;
}

static void fill(struct kaddr at, uint32_t bytes, unsigned seed)
{
    static uint8_t data[BYTES]; /* too much for the stack of a thread */
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed * 31 + 1);
    k_poke(rig.client.kernel, at, data, bytes);
}

static bool holds(struct kaddr at, uint32_t bytes, unsigned seed)
{
    static uint8_t data[BYTES]; /* too much for the stack of a thread */
    k_peek(rig.client.kernel, at, data, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        if (data[i] != (uint8_t)(i * 7 + (i >> 8) * 13 + seed * 31 + 1))
            return false;
    return true;
}

/* One request, until it has ended. */
static int execute(struct nvmeof_initiator *initiator, struct nvmeof_request *request)
{
    bool flag = false;
    request->done = done;
    request->context = &flag;
    const int error = nvmeof_submit(initiator, 0, request);
    while (error == 0 && !flag)
        nvmeof_poll(initiator, 0);
    return error != 0 ? error : request->error;
}

static int transfer(struct nvmeof_initiator *initiator, struct nvmeof_buffer buffer, bool write,
                    uint64_t offset, uint32_t bytes, uint16_t *status)
{
    struct nvmeof_request request = { .buffer = buffer };
    nvmeof_transfer(initiator, &request, write, offset, bytes);
    const int error = execute(initiator, &request);
    if (status != NULL)
        *status = request.status;
    return error;
}

/* ---- Data ------------------------------------------------------------------------------------ */

static const uint32_t sizes[] = { 512, 4096, 4608, 8192, 36864, 131072 };

static void data_both_ways(void)
{
    struct nvmeof_initiator *initiator = open_initiator();
    struct nvmeof_buffer from, to;
    const struct nvme_user_namespace ns = nvmeof_namespace(initiator);
    assert_int_equal(ns.blocks << ns.block_log2, 1u << 30);
    assert_int_equal(nvmeof_bytes_max(initiator), BYTES);
    assert_int_equal(nvmeof_in_capsule_bytes(initiator), rig.params.in_capsule_bytes);
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, BYTES, &from), 0);
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, BYTES, &to), 0);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(sizes); i++) {
        fill(from.at, sizes[i], i);
        fill(to.at, sizes[i], 99);
        assert_int_equal(transfer(initiator, from, true, 65536 * i, sizes[i], NULL), 0);
        assert_int_equal(transfer(initiator, to, false, 65536 * i, sizes[i], NULL), 0);
        assert_true(holds(to.at, sizes[i], i));
    }
    nvmeof_initiator_close(initiator);
}

static void test_data(void **state)
{
    (void)state;
    run(data_both_ways, "");
    assert_int_equal(rig.stats.writes, SIM_N_ELEMENTS(sizes));
    assert_int_equal(rig.stats.reads, SIM_N_ELEMENTS(sizes));
    assert_int_equal(rig.stats.in_capsule, 2); /* up to 4 KiB */
    assert_int_equal(rig.stats.connected, 2);
    assert_int_equal(rig.stats.broken, 0);
    assert_int_equal(rig.stats.failed, 0);
}

/* Queues of one capsule, without and with much data in it. */
static void test_data_of_any_mtu(void **state)
{
    for (uint32_t mtu = 256; mtu < 4096; mtu *= 4) {
        set_up(state);
        rig.params.mtu_bytes = mtu;
        rig.params.in_capsule_bytes = mtu == 256 ? 0 : 8192;
        rig.params.entries_max = 2;
        run(data_both_ways, "");
        assert_int_equal(rig.stats.in_capsule, mtu == 256 ? 0 : 4);
        assert_int_equal(rig.stats.failed, 0);
    }
}

/* A wire that loses packets: none is missed, none done twice. */
static void test_data_over_a_bad_wire(void **state)
{
    (void)state;
    run(data_both_ways, "loss_ratio = 0.01;");
    assert_int_equal(rig.stats.reads, SIM_N_ELEMENTS(sizes));
    assert_int_equal(rig.stats.broken, 0);
}

/* ---- Several initiators, flow control -------------------------------------------------------- */

#define INITIATORS 3u
#define ROUNDS     4u

/* Full queues of three initiators at once: writes to blocks of their own, then reads of these. */
static void several(void)
{
    struct nvmeof_initiator *initiator[INITIATORS];
    static struct nvmeof_request request[INITIATORS][ENTRIES];
    bool flag = false;
    unsigned n_want = 0;
    for (unsigned k = 0; k < INITIATORS; k++) {
        initiator[k] = open_initiator();
        for (unsigned i = 0; i < ENTRIES; i++) {
            request[k][i] = (struct nvmeof_request){ .done = done, .context = &flag };
            assert_int_equal(
                nvmeof_buffer_new(initiator[k], K_NODE_LOCAL, 8192, &request[k][i].buffer), 0);
        }
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        const bool write = round % 2 == 0;
        for (unsigned i = 0; i < ENTRIES - 1; i++)
            for (unsigned k = 0; k < INITIATORS; k++) {
                const uint32_t bytes = i % 2 == 0 ? 4096 : 8192;
                const unsigned seed = round / 2 * 100 + k * ENTRIES + i;
                fill(request[k][i].buffer.at, 8192, write ? seed : 77);
                nvmeof_transfer(initiator[k], &request[k][i], write, 8192 * (k * ENTRIES + i),
                                bytes);
                assert_int_equal(nvmeof_submit(initiator[k], 0, &request[k][i]), 0);
            }
        n_want += INITIATORS * (ENTRIES - 1);
        for (unsigned k = 0; k < INITIATORS; k++) /* full, unless something has ended already */
            if (initiator[k]->queue[0].n_free == 0)
                assert_int_equal(nvmeof_submit(initiator[k], 0, &request[k][ENTRIES - 1]), -EBUSY);
        while (rig.n_done < n_want)
            for (unsigned k = 0; k < INITIATORS; k++)
                nvmeof_poll(initiator[k], 0);
        for (unsigned i = 0; i < ENTRIES - 1; i++)
            for (unsigned k = 0; k < INITIATORS; k++) {
                assert_int_equal(request[k][i].error, 0);
                assert_true(write || holds(request[k][i].buffer.at, i % 2 == 0 ? 4096 : 8192,
                                           round / 2 * 100 + k * ENTRIES + i));
            }
    }
    for (unsigned k = 0; k < INITIATORS; k++)
        nvmeof_initiator_close(initiator[k]);
}

static void test_several_initiators(void **state)
{
    (void)state;
    run(several, "");
    assert_int_equal(rig.stats.connected, 2 * INITIATORS);
    assert_int_equal(rig.stats.writes, INITIATORS * (ENTRIES - 1) * ROUNDS / 2);
    assert_int_equal(rig.stats.failed, 0);
    assert_int_equal(rig.stats.broken, 0);
}

/* ---- Refusals, errors ------------------------------------------------------------------------ */

static void refusals(void)
{
    struct nvmeof_initiator *initiator, *more[4];
    struct nvmeof_initiator_params params = initiator_params();
    params.subsystem = "nqn.other";
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), -EIO);
    params = initiator_params();
    params.n_queues = 0;
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), -EINVAL);
    /* More queues than the device has: the target grants fewer, all others are taken then. */
    params.n_queues = 64;
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), 0);
    assert_int_equal(nvmeof_n_queues(initiator), 7);
    params.n_queues = 1;
    assert_int_equal(nvmeof_initiator_open(&params, &more[0]), -EBUSY);
    nvmeof_initiator_close(initiator);
    /* The target learns of it a little later; all is there again. */
    k_sleep(rig.client.kernel, K_MS);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(nvmeof_initiator_open(&params, &more[i]), 0);
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), -EBUSY); /* nine connections */
    for (unsigned i = 0; i < 4; i++)
        nvmeof_initiator_close(more[i]);
}

static void test_refusals(void **state)
{
    (void)state;
    run(refusals, "");
}

/* Errors with their status leave the connection as it is. */
static void errors(void)
{
    struct nvmeof_initiator *initiator = open_initiator();
    struct nvmeof_buffer buffer;
    uint16_t status;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, BYTES, &buffer), 0);
    assert_int_equal(transfer(initiator, buffer, false, UINT64_C(1) << 30, 4096, &status), -EIO);
    assert_int_equal(NVME_STATUS_CODE(status), NVME_SC_LBA_OUT_OF_RANGE);
    assert_int_equal(transfer(initiator, buffer, true, UINT64_C(1) << 30, 65536, &status), -EIO);
    assert_int_equal(NVME_STATUS_CODE(status), NVME_SC_LBA_OUT_OF_RANGE);
    struct nvmeof_request request = { .sqe = { .opcode = 0x7d, .nsid = 1 } }; /* write, unknown */
    request.buffer = buffer;
    request.bytes = 512;
    request.write = true;
    assert_int_equal(execute(initiator, &request), -EIO);
    assert_int_equal(NVME_STATUS_CODE(request.status), NVME_SC_INVALID_OPCODE);
    nvmeof_transfer(initiator, &request, false, 0, 4096);
    request.bytes = 8192; /* not what the command says */
    assert_int_equal(execute(initiator, &request), -EIO);
    assert_int_equal(NVME_STATUS_CODE(request.status), NVME_SC_SGL_LENGTH_INVALID);
    nvmeof_transfer(initiator, &request, false, 0, 4096);
    request.sqe.nsid = 2;
    assert_int_equal(execute(initiator, &request), -EIO);
    assert_int_equal(NVME_STATUS_CODE(request.status), NVME_SC_INVALID_NAMESPACE);
    request = (struct nvmeof_request){ .sqe = { .opcode = NVME_FLUSH, .nsid = 1 } };
    assert_int_equal(execute(initiator, &request), 0);
    request.bytes = 2 * BYTES;
    assert_int_equal(nvmeof_submit(initiator, 0, &request), -EINVAL);
    fill(buffer.at, 4096, 5);
    assert_int_equal(transfer(initiator, buffer, true, 0, 4096, NULL), 0);
    nvmeof_initiator_close(initiator);
}

static void test_errors(void **state)
{
    (void)state;
    run(errors, "");
    assert_int_equal(rig.stats.failed, 5);
    assert_int_equal(rig.stats.broken, 0);
}

/* A key that is not valid ends the connection on both sides; the admin queue goes on. */
static void bad_key(void)
{
    struct nvmeof_initiator *initiator = open_initiator();
    struct nvmeof_buffer buffer;
    for (unsigned write = 0; write < 2; write++) {
        assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, BYTES, &buffer), 0);
        buffer.key ^= 0x5500;
        assert_int_equal(transfer(initiator, buffer, write, 0, 65536, NULL), -ENOTCONN);
        assert_int_equal(transfer(initiator, buffer, write, 0, 4096, NULL), -ENOTCONN);
        assert_int_equal(nvmeof_keep_alive(initiator), 0);
        nvmeof_initiator_close(initiator);
        initiator = open_initiator();
    }
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, BYTES, &buffer), 0);
    assert_int_equal(transfer(initiator, buffer, false, 0, 65536, NULL), 0);
    nvmeof_initiator_close(initiator);
}

static void test_bad_key(void **state)
{
    (void)state;
    run(bad_key, "");
    assert_true(rig.stats.broken >= 2);
    assert_int_equal(rig.stats.failed, 0);
}

/* ---- Connections that go away ---------------------------------------------------------------- */

static void disconnect_in_mid_command(void)
{
    struct nvmeof_initiator *initiator = open_initiator();
    static struct nvmeof_request request[ENTRIES];
    struct nvmeof_buffer buffer;
    bool flag = false;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, BYTES, &buffer), 0);
    for (unsigned i = 0; i < 8; i++) {
        request[i] = (struct nvmeof_request){ .buffer = buffer, .done = done, .context = &flag };
        nvmeof_transfer(initiator, &request[i], i % 2, 131072 * i, BYTES);
        assert_int_equal(nvmeof_submit(initiator, 0, &request[i]), 0);
    }
    k_sleep(rig.client.kernel, 6 * K_US);
    nvmeof_initiator_close(initiator);
    assert_int_equal(rig.n_done, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(request[i].error, -ENOTCONN);
    k_sleep(rig.client.kernel, K_MS);
    assert_int_equal(nvmeof_target_n_queues(rig.target), 0);
    data_both_ways();
}

static void test_disconnect_in_mid_command(void **state)
{
    (void)state;
    run(disconnect_in_mid_command, "");
}

/* One host keeps alive, the other falls silent with a command under way: its queues are freed when its
 * time is over, those of the first are not. */
static void silence(void)
{
    struct nvmeof_initiator_params params = initiator_params();
    struct nvmeof_initiator *alive, *silent;
    struct nvmeof_buffer buffer;
    params.keep_alive_ms = 4;
    assert_int_equal(nvmeof_initiator_open(&params, &alive), 0);
    assert_int_equal(nvmeof_initiator_open(&params, &silent), 0);
    assert_int_equal(nvmeof_buffer_new(silent, K_NODE_LOCAL, BYTES, &buffer), 0);
    struct nvmeof_request request = { .buffer = buffer, .done = done };
    bool flag = false;
    request.context = &flag;
    nvmeof_transfer(silent, &request, false, 0, BYTES);
    assert_int_equal(nvmeof_submit(silent, 0, &request), 0);
    silent->admin.broken = silent->queue[0].broken = true; /* it says nothing any more */
    for (unsigned i = 0; i < 12; i++) {
        k_sleep(rig.client.kernel, K_MS);
        assert_int_equal(nvmeof_keep_alive(alive), 0);
    }
    assert_int_equal(nvmeof_target_n_queues(rig.target), 2);
    nvmeof_initiator_close(silent);
    assert_int_equal(request.error, -ENOTCONN);
    assert_int_equal(nvmeof_buffer_new(alive, K_NODE_LOCAL, BYTES, &buffer), 0);
    assert_int_equal(transfer(alive, buffer, false, 0, BYTES, NULL), 0);
    nvmeof_initiator_close(alive);
}

static void test_keep_alive(void **state)
{
    (void)state;
    run(silence, "");
    assert_int_equal(rig.stats.expired, 1);
}

/* ---- A host that does what it likes ---------------------------------------------------------- */

struct raw {
    struct kaddr buffer;
    struct rdma_drv_mr *mr;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    uint32_t pd;
};

static void raw_open(struct raw *raw, uint16_t qid, uint16_t entries)
{
    struct rdma_drv *rdma = rig.client.rdma;
    struct rdma_drv_qp_params params = {
        .n_sends = 64, .n_receives = 64, .send_sges = 1, .receive_sges = 1
    };
    struct nvmeof_hello answer;
    raw->buffer = k_alloc(rig.client.kernel, K_NODE_LOCAL, 16384, K_PAGE_BYTES);
    assert_int_equal(rdma_drv_pd_new(rdma, &raw->pd), 0);
    assert_int_equal(
        rdma_drv_mr_new(rdma, raw->pd, raw->buffer, 16384, RDMA_ACCESS_LOCAL_WRITE, &raw->mr), 0);
    assert_int_equal(rdma_drv_cq_new(rdma, 256, 0, NULL, NULL, &raw->cq), 0);
    params.pd = raw->pd;
    params.send_cq = params.receive_cq = raw->cq;
    assert_int_equal(rdma_drv_qp_new(rdma, &params, &raw->qp), 0);
    const struct nvmeof_hello hello = {
        .endpoint = rdma_drv_endpoint(raw->qp), .qid = qid, .entries = entries, .mtu_bytes = 1024
    };
    assert_int_equal(exchange(NULL, &hello, &answer), 0);
    assert_int_equal(answer.entries, entries);
    struct rdma_drv_connection connection = rdma_drv_connection_default;
    connection.mtu_bytes = answer.mtu_bytes;
    assert_int_equal(rdma_drv_connect(raw->qp, &answer.endpoint, &connection), 0);
}

static void raw_close(struct raw *raw)
{
    rdma_drv_qp_free(raw->qp);
    rdma_drv_cq_free(raw->cq);
    rdma_drv_mr_free(raw->mr);
    rdma_drv_pd_free(rig.client.rdma, raw->pd);
}

static void raw_send(struct raw *raw, uint32_t bytes)
{
    const struct rdma_drv_sge sge = { raw->buffer.v, bytes, rdma_drv_key(raw->mr) };
    const struct rdma_drv_send send = { .opcode = RDMA_OP_SEND, .sge = &sge, .n_sges = 1 };
    assert_int_equal(rdma_drv_post_send(raw->qp, &send), 0);
}

static void raw_receive(struct raw *raw, unsigned i)
{
    const struct rdma_drv_sge sge = { raw->buffer.v + 8192 + 16 * i, 16, rdma_drv_key(raw->mr) };
    const struct rdma_drv_receive receive = { i, &sge, 1 };
    assert_int_equal(rdma_drv_post_receive(raw->qp, &receive), 0);
}

/* Eight capsules to a queue of two, by one that has no receive for the responses at first: both sides
 * answer RNR NAK, and nothing is lost. */
static void flood(void)
{
    struct raw raw;
    struct rdma_drv_wc wc;
    struct nvmeof_response response;
    const struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .cid = 77 };
    raw_open(&raw, 0, 2);
    k_poke(rig.client.kernel, raw.buffer, &sqe, sizeof sqe);
    for (unsigned i = 0; i < 8; i++)
        raw_send(&raw, sizeof sqe);
    k_sleep(rig.client.kernel, 200 * K_US);
    for (unsigned i = 0; i < 8; i++)
        raw_receive(&raw, i);
    for (unsigned n = 0; n < 8;) {
        if (rdma_drv_poll(raw.cq, &wc, 1) == 0)
            continue;
        assert_int_equal(wc.status, RDMA_SUCCESS);
        assert_true(wc.receive && wc.bytes == sizeof response);
        k_peek(rig.client.kernel, kaddr_add(raw.buffer, 8192 + 16 * n), &response, sizeof response);
        assert_int_equal(response.cid, 77);
        assert_int_equal(NVME_STATUS_CODE(response.status >> 1), NVME_SC_SEQUENCE_ERROR);
        assert_int_equal(response.sq_head, ++n % 2);
    }
    raw_close(&raw);
    data_both_ways();
}

static void test_flood(void **state)
{
    (void)state;
    run(flood, "");
    assert_int_equal(rig.stats.failed, 8);
}

/* Capsules of random length and bytes, among them Connect and properties with some field wrong: the target
 * answers or ends the connection, and goes on. */
static void random_capsules(void)
{
    struct sim_random random;
    sim_random_init(&random, 7, "capsules");
    for (unsigned round = 0; round < 6; round++) {
        struct raw raw;
        uint8_t capsule[2048];
        struct rdma_drv_wc wc[16];
        raw_open(&raw, round % 2 == 0 ? 0 : 1, ENTRIES);
        for (unsigned i = 0; i < 24; i++) {
            if (i < 16)
                raw_receive(&raw, i);
            for (unsigned b = 0; b < sizeof capsule; b++)
                capsule[b] = (uint8_t)sim_random_below(&random, 256);
            if (i % 3 != 0) { /* a Fabrics command: Connect, a property, or another */
                capsule[0] = NVMEOF_OPCODE;
                capsule[4] = (uint8_t)(i % 6);
            }
            if (i % 4 == 0) {
                const struct nvmeof_sgl sgl = nvmeof_sgl(NVMEOF_SGL_IN_CAPSULE, 0, 1024, 0);
                memcpy(capsule + NVMEOF_SGL_OFFSET, &sgl, sizeof sgl);
            }
            k_poke(rig.client.kernel, raw.buffer, capsule, sizeof capsule);
            raw_send(&raw, i == 20 ? 32 : 64 + (uint32_t)sim_random_below(&random, 1100));
            k_sleep(rig.client.kernel, 10 * K_US);
            rdma_drv_poll(raw.cq, wc, 16);
        }
        k_sleep(rig.client.kernel, 100 * K_US);
        raw_close(&raw);
    }
    data_both_ways();
}

static void test_random_capsules(void **state)
{
    (void)state;
    run(random_capsules, "");
    assert_true(rig.stats.failed > 20);
    assert_true(rig.stats.broken > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_data, set_up),
        cmocka_unit_test_setup(test_data_of_any_mtu, set_up),
        cmocka_unit_test_setup(test_data_over_a_bad_wire, set_up),
        cmocka_unit_test_setup(test_several_initiators, set_up),
        cmocka_unit_test_setup(test_refusals, set_up),
        cmocka_unit_test_setup(test_errors, set_up),
        cmocka_unit_test_setup(test_bad_key, set_up),
        cmocka_unit_test_setup(test_disconnect_in_mid_command, set_up),
        cmocka_unit_test_setup(test_keep_alive, set_up),
        cmocka_unit_test_setup(test_flood, set_up),
        cmocka_unit_test_setup(test_random_capsules, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
