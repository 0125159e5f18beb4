/* See nvmeof_rig.h. */
#include "tests/support/nvmeof_rig.h"

#include <errno.h>
#include <string.h>

#define HOST(NAME)                                                                           \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; },"                       \
         " { name = \"rp1\"; socket = 0; lanes = 4; } ); dram = { node_size = \"1 GiB\"; };" \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define WORLD                                                                                                             \
    "hosts = { " HOST("server") HOST(                                                                                     \
        "client") "};\n"                                                                                                  \
                  "devices = { r0 = { type = \"rdma.adapter\"; %s }; r1 = { type = \"rdma.adapter\"; %s };"               \
                  " ssd = { type = \"nvme.controller\"; payload = \"bytes\"; capacity_bytes = \"1 GiB\"; namespaces = 2;" \
                  " enable_latency_us = 10; queue_pairs = 8; }; };\n"                                                     \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"r0.p0\"; },"                                             \
                  " { from = \"client.s0.rp0\"; to = \"r1.p0\"; }, { from = \"server.s0.rp1\"; to = \"ssd.p0\"; },"       \
                  " { from = \"r0.i0\"; to = \"r1.i0\"; %s } );\n"

#define LIMIT_PS (400 * SIM_PS_PER_MS)

struct rig rig;

/* ---- The target's host ----------------------------------------------------------------------- */

static void load_driver(struct rig_side *side, uint16_t lid)
{
    assert_int_equal(k_pci_register(side->kernel, rdma_driver_pci(side->driver)), 1);
    side->rdma = rdma_driver_device(side->driver, 0);
    assert_int_equal(rdma_drv_set_lid(side->rdma, lid), 0);
}

static void unload_driver(struct rig_side *side)
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
    if (rig.nvme_entries != 0)
        nvme.entries = rig.nvme_entries;
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

int rig_exchange(void *context, const struct nvmeof_hello *hello, struct nvmeof_hello *answer)
{
    (void)context;
    rig.hello = hello;
    rig.asked = true;
    while (rig.asked)
        k_sleep(rig.client.kernel, K_US);
    *answer = rig.answer;
    return rig.error;
}

struct nvmeof_initiator_params rig_initiator_params(void)
{
    return (struct nvmeof_initiator_params){ .rdma = rig.client.rdma,
                                             .subsystem = "nqn.test",
                                             .host = "nqn.client",
                                             .n_queues = 1,
                                             .entries = RIG_ENTRIES,
                                             .mtu_bytes = 4096,
                                             .timeout_ps = 20 * K_MS,
                                             .exchange = rig_exchange };
}

struct nvmeof_initiator *rig_open_initiator(void)
{
    const struct nvmeof_initiator_params params = rig_initiator_params();
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
void rig_run(void (*body)(void), const char *wire)
{
    g_autofree char *text = g_strdup_printf(WORLD, rig.adapters, rig.adapters, wire);
    struct rig_side *const side[2] = { &rig.server, &rig.client };
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
    rig.adapter = *rdma_stats(world_device(rig.w.world, "r0"));
    sim_run(rig.w.sim, sim_now(rig.w.sim) + SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < 2; i++)
        os_free(side[i]->kernel);
    fixture_close(&rig.w);
}

int rig_set_up(void **state)
{
    memset(&rig, 0, sizeof rig);
    rig.adapters = "";
    rig.params = (struct nvmeof_target_params){ .subsystem = "nqn.test",
                                                .entries_max = RIG_ENTRIES,
                                                .queues_max = 9,
                                                .in_capsule_bytes = 4096,
                                                .mtu_bytes = 4096 };
    *state = &rig;
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

void rig_done(struct nvmeof_request *request)
{
    bool *flag = request->context;
    *flag = true;
    rig.n_done++;
}

void rig_fill(struct kaddr at, uint32_t bytes, unsigned seed)
{
    static uint8_t data[RIG_BYTES]; /* too much for the stack of a thread */
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed * 31 + 1);
    k_poke(rig.client.kernel, at, data, bytes);
}

bool rig_holds(struct kaddr at, uint32_t bytes, unsigned seed)
{
    static uint8_t data[RIG_BYTES]; /* too much for the stack of a thread */
    k_peek(rig.client.kernel, at, data, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        if (data[i] != (uint8_t)(i * 7 + (i >> 8) * 13 + seed * 31 + 1))
            return false;
    return true;
}

/* One request, until it has ended. */
int rig_execute(struct nvmeof_initiator *initiator, struct nvmeof_request *request)
{
    bool flag = false;
    request->done = rig_done;
    request->context = &flag;
    const int error = nvmeof_submit(initiator, 0, request);
    while (error == 0 && !flag)
        nvmeof_poll(initiator, 0);
    return error != 0 ? error : request->error;
}

int rig_transfer(struct nvmeof_initiator *initiator, struct nvmeof_buffer buffer, bool write,
                 uint64_t offset, uint32_t bytes, uint16_t *status)
{
    struct nvmeof_request request = { .buffer = buffer };
    nvmeof_transfer(initiator, &request, write, offset, bytes);
    const int error = rig_execute(initiator, &request);
    if (status != NULL)
        *status = request.status;
    return error;
}

/* ---- Data ------------------------------------------------------------------------------------ */

const uint32_t rig_sizes[RIG_SIZES] = { 512, 4096, 4608, 8192, 36864, 131072 };

void rig_data_both_ways(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    struct nvmeof_buffer from, to;
    const struct nvme_user_namespace ns = nvmeof_namespace(initiator);
    assert_int_equal(ns.blocks << ns.block_log2, 1u << 30);
    assert_int_equal(nvmeof_bytes_max(initiator), RIG_BYTES);
    assert_int_equal(nvmeof_in_capsule_bytes(initiator), rig.params.in_capsule_bytes);
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &from), 0);
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &to), 0);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(rig_sizes); i++) {
        rig_fill(from.at, rig_sizes[i], i);
        rig_fill(to.at, rig_sizes[i], 99);
        assert_int_equal(rig_transfer(initiator, from, true, 65536 * i, rig_sizes[i], NULL), 0);
        assert_int_equal(rig_transfer(initiator, to, false, 65536 * i, rig_sizes[i], NULL), 0);
        assert_true(rig_holds(to.at, rig_sizes[i], i));
    }
    nvmeof_initiator_close(initiator);
}

int rig_set_up_offload(void **state)
{
    rig_set_up(state);
    rig.params.offload = true;
    return 0;
}
