/* The root complex within a whole host: function, order, errors, and the latency formula. */
#include "tests/support/world_fixture.h"

#include <math.h>
#include <string.h>

#include "sim/store/results.h"

#define PORTS                                               \
    "ports = ( { name = \"rp0\"; socket = 0; lanes = 8; }," \
    "          { name = \"rp1\"; socket = 0; lanes = 8; }," \
    "          { name = \"rp0\"; socket = 1; lanes = 8; } );"
#define WORLD(IOMMU) WORLD_WITH(IOMMU, "")
#define WORLD_WITH(IOMMU, ROOT_COMPLEX)                                                   \
    "hosts = { server = { " PORTS " iommu = { enabled = " IOMMU "; };"                    \
    "  root_complex = { inbound_ns = 61; outbound_ns = 47; " ROOT_COMPLEX " }; }; };"     \
    "devices = { a = { type = \"pcie.requester\"; }; b = { type = \"pcie.requester\"; };" \
    "            c = { type = \"pcie.requester\"; }; };"                                  \
    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                            \
    "           { from = \"server.s0.rp1\"; to = \"b.p0\"; },"                            \
    "           { from = \"server.s1.rp0\"; to = \"c.p0\"; } );"

static uint16_t id_of(struct world_fixture *f, const char *device)
{
    return pcie_requester_id(world_device(f->world, device));
}

static struct fixture_op op_new(bool write, uint64_t iova, uint32_t bytes, void *buffer)
{
    return (struct fixture_op){ .op = { .write = write,
                                        .interface = PCIE_REQUESTER_BULK,
                                        .iova = { iova },
                                        .bytes = bytes,
                                        .buffer = buffer } };
}

static void test_boot_enumerates_every_device(void **state)
{
    struct world_fixture *f = *state;
    unsigned n, endpoints = 0;
    const struct pcie_found *found = host_functions(f->host, &n);
    for (unsigned i = 0; i < n; i++)
        if (!found[i].bridge) {
            endpoints++;
            assert_int_equal(found[i].vendor_id, 0x19ee);
            assert_true(found[i].bar_base[0] != 0);
            assert_int_equal(found[i].bar_base[0] % found[i].bar_bytes[0], 0);
        }
    assert_int_equal(endpoints, 3);
    assert_int_equal(n, 6);
    assert_true(cfg_bus_master(pcie_requester_config_space(world_device(f->world, "a"))));
    assert_int_not_equal(id_of(f, "a"), id_of(f, "b"));
    assert_true(id_of(f, "c") >= pcie_id(128, 0, 0)); /* socket 1 has the upper buses */
}

/* Up to Gen3 x16 as the parameters say, beyond that by the rate: 390 ns of it. */
static void test_credits_grow_with_the_port(void **unused)
{
    static const struct {
        unsigned generation, lanes, times;
    } row[] = { { 1, 16, 1 }, { 3, 8, 1 }, { 3, 16, 1 }, { 4, 8, 1 }, { 4, 16, 2 }, { 5, 16, 4 } };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(row); i++) {
        struct world_fixture f;
        char text[512];
        snprintf(
            text, sizeof(text),
            "hosts = { server = { ports = ( { name = \"rp0\"; generation = %u; lanes = %u; } );"
            " root_complex = { posted_data_credits = 100; non_posted_header_credits = 7; }; }; };"
            "devices = { a = { type = \"pcie.requester\"; }; };"
            "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; } );",
            row[i].generation, row[i].lanes);
        fixture_open(&f, text);
        const struct pcie_credits *credits =
            &host_root_complexes(f.host)->rc[0]->ports[0].advertise;
        assert_int_equal(credits->header[TLP_POSTED], row[i].times * 48);
        assert_int_equal(credits->data[TLP_POSTED], row[i].times * 100);
        assert_int_equal(credits->header[TLP_NON_POSTED], row[i].times * 7);
        assert_int_equal(credits->data[TLP_NON_POSTED], row[i].times * 48);
        fixture_close(&f);
    }
}

/* ---- MMIO ------------------------------------------------------------------------------------ */

struct mmio {
    uint64_t address, value;
    sim_time took_ps;
    struct sim_stamp stamp;
};

static void mmio_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct mmio *mmio = arg;
    struct root_complex_host *rcs = host_root_complexes(f->host);
    struct hpa at = { mmio->address };
    root_complex_mmio_write(rcs, 0, task, at, 8, UINT64_C(0x1122334455667788));
    sim_task_charge(task, SIM_PS_PER_US);
    sim_task_sync(task);
    sim_time start_ps = sim_task_now(task);
    sim_stamp_start(&mmio->stamp, start_ps);
    mmio->value = root_complex_mmio_read(rcs, 0, task, at, 8, &mmio->stamp);
    mmio->took_ps = sim_task_now(task) - start_ps;
}

static void test_mmio_round_trip_equals_formula(void **state)
{
    struct world_fixture *f = *state;
    struct mmio mmio;
    struct model *a = world_device(f->world, "a");
    mmio.address = cfg_bar_base(pcie_requester_config_space(a), 0) + 64;
    fixture_call(f, mmio_body, &mmio);
    assert_int_equal(mmio.value, UINT64_C(0x1122334455667788));
    /* outbound, MRd with 64-bit address, CplD with 8 bytes, inbound; the link's latency twice */
    struct pcie_link_params link;
    param_defaults(pcie_link_params_table, &link);
    assert_int_equal(mmio.took_ps, 47000 + pcie_port_wire_ps(&a->ports[0], 24) + link.latency_ps +
                                       pcie_port_wire_ps(&a->ports[0], 28) + link.latency_ps +
                                       61000);
    assert_int_equal(mmio.stamp.part_ps[PART_ROOT_COMPLEX], 47000 + 61000);
    assert_int_equal(mmio.stamp.part_ps[PART_LINK], mmio.took_ps - 47000 - 61000);
    mmio.address = UINT64_C(0xf0000000); /* a window that no device has */
    fixture_call(f, mmio_body, &mmio);
    assert_int_equal(mmio.value, UINT64_MAX);
}

/* A posted write does not hold the core; what is asked after it comes after it. */
static void posted_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct mmio *mmio = arg;
    struct root_complex_host *rcs = host_root_complexes(f->host);
    struct hpa at = { mmio->address };
    sim_time start_ps = sim_task_now(task);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(root_complex_mmio_write(rcs, 0, task, at, 8, i), start_ps + 47000);
    assert_int_equal(sim_task_now(task), start_ps);
    mmio->value = root_complex_mmio_read(rcs, 0, task, at, 8, NULL);
}

static void test_posted_writes_go_on_by_themselves(void **state)
{
    struct world_fixture *f = *state;
    struct mmio mmio;
    mmio.address = cfg_bar_base(pcie_requester_config_space(world_device(f->world, "a")), 0);
    fixture_call(f, posted_body, &mmio);
    assert_int_equal(mmio.value, 3);
}

/* To a device of socket 1 and back, by cores of both sockets. */
struct crossing {
    uint64_t address;
    sim_time read_ps[2], write_ps[2], there_ps, back_ps, done_ps;
};

static void crossing_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct crossing *c = arg;
    struct root_complex_host *rcs = host_root_complexes(f->host);
    struct numa *numa = host_numa(f->host);
    struct hpa at = { c->address };
    for (unsigned socket = 0; socket < 2; socket++) {
        struct sim_stamp stamp;
        sim_time start_ps = sim_task_now(task);
        sim_stamp_start(&stamp, start_ps);
        root_complex_mmio_read(rcs, socket, task, at, 8, &stamp);
        c->read_ps[socket] = sim_task_now(task) - start_ps;
        sim_time sum_ps = 0;
        for (unsigned i = 0; i < N_LATENCY_PARTS; i++)
            sum_ps += stamp.part_ps[i];
        assert_int_equal(sum_ps, c->read_ps[socket]);
        sim_task_charge(task, SIM_PS_PER_US);
        sim_task_sync(task);
        start_ps = sim_task_now(task);
        c->write_ps[socket] = root_complex_mmio_write(rcs, socket, task, at, 8, 1) - start_ps;
        sim_task_charge(task, SIM_PS_PER_US);
        sim_task_sync(task);
    }
    sim_time now_ps = sim_task_now(task);
    assert_int_equal(numa_io_send(numa, 1, 1, NUMA_IO_DATA, now_ps), now_ps);
    c->there_ps = numa_io_send(numa, 0, 1, NUMA_IO_REQUEST, now_ps) - now_ps;
    c->back_ps = numa_io_send(numa, 1, 0, NUMA_IO_DATA, now_ps) - now_ps;
    now_ps += SIM_PS_PER_US;
    c->done_ps = numa_io_send(numa, 1, 0, NUMA_IO_COMPLETION, now_ps) - now_ps;
}

static void test_registers_of_another_socket_are_further_away(void **state)
{
    struct world_fixture *f = *state;
    struct crossing c;
    c.address = cfg_bar_base(pcie_requester_config_space(world_device(f->world, "c")), 0);
    fixture_call(f, crossing_body, &c);
    assert_true(c.there_ps > 0 && c.done_ps > 0 && c.back_ps > c.done_ps);
    assert_int_equal(c.read_ps[0], c.read_ps[1] + c.there_ps + c.back_ps);
    assert_int_equal(c.write_ps[1], 47000);
    assert_int_equal(c.write_ps[0], 47000 + c.back_ps + c.done_ps); /* both ways cost the same */
}

/* ---- DMA ------------------------------------------------------------------------------------- */

static void test_bytes_arrive_and_come_back(void **state)
{
    struct world_fixture *f = *state;
    struct hpa hpa;
    struct iova iova;
    uint8_t out[5000], in[5000], seen[5000];
    for (unsigned i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 7 + i / 251);
    for (unsigned node = 0; node < 2; node++) {
        assert_int_equal(host_dma_alloc(f->host, id_of(f, "a"), node, 8192, 4096, &hpa, &iova), 0);
        struct fixture_op write = op_new(true, iova.v + 13, sizeof(out), out);
        assert_int_equal(fixture_dma(f, "a", &write), PCIE_DMA_OK);
        physmem_read(host_physmem(f->host), (struct hpa){ hpa.v + 13 }, seen, sizeof(seen));
        assert_memory_equal(seen, out, sizeof(out));
        memset(in, 0, sizeof(in));
        struct fixture_op read = op_new(false, iova.v + 13, sizeof(in), in);
        assert_int_equal(fixture_dma(f, "c", &read), PCIE_DMA_OK); /* from the other socket */
        assert_memory_equal(in, out, sizeof(out));
        assert_int_equal(host_dma_free(f->host, id_of(f, "a"), 8192, 4096, hpa, iova), 0);
    }
}

static void test_read_latency_equals_formula(void **state)
{
    struct world_fixture *f = *state;
    struct hpa hpa;
    struct iova iova;
    struct sim_stamp stamp;
    assert_int_equal(host_dma_alloc(f->host, id_of(f, "a"), 0, 4096, 4096, &hpa, &iova), 0);
    numa_warm_device(host_numa(f->host), 0, hpa, 4096);
    struct fixture_op op = op_new(false, iova.v, 64, NULL);
    op.op.stamp = &stamp;
    assert_int_equal(fixture_dma(f, "a", &op), PCIE_DMA_OK);

    /* the memory system's share, asked for once more of a line in the same state */
    sim_time at_ps = sim_now(f->sim) + SIM_PS_PER_US;
    sim_time memory_ps = numa_dma_read(host_numa(f->host), 0, (struct hpa){ hpa.v + 64 }, 64, at_ps,
                                       NULL, NULL) -
                         at_ps;
    struct model *a = world_device(f->world, "a");
    struct pcie_link_params link;
    param_defaults(pcie_link_params_table, &link);
    unsigned header = iova.v + 64 > UINT64_C(0x100000000) ? 24 : 20;
    sim_time wire_ps = pcie_port_wire_ps(&a->ports[0], header) +
                       pcie_port_wire_ps(&a->ports[0], 84);
    assert_int_equal(stamp.part_ps[PART_ROOT_COMPLEX], 61000 + 47000);
    assert_int_equal(stamp.part_ps[PART_LINK], wire_ps + 2 * link.latency_ps);
    assert_int_equal(stamp.part_ps[PART_CACHE], memory_ps);
    assert_int_equal(stamp.part_ps[PART_DRAM], 0);
    sim_time sum_ps = 0;
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++)
        sum_ps += stamp.part_ps[i];
    assert_int_equal(sum_ps, op.done_ps - op.start_ps);
}

/* A write's stamp goes on to where the write becomes visible. */
static void test_write_latency_adds_up(void **state)
{
    struct world_fixture *f = *state;
    struct hpa hpa;
    struct iova iova;
    struct sim_stamp stamp;
    struct run_result *result = run_result_new();
    double sum_ns = 0;
    char name[64];
    assert_int_equal(host_dma_alloc(f->host, id_of(f, "a"), 0, 4096, 4096, &hpa, &iova), 0);
    struct fixture_op op = op_new(true, iova.v, 256, NULL);
    op.op.stamp = &stamp;
    assert_int_equal(fixture_dma(f, "a", &op), PCIE_DMA_OK);
    run_result_stats(result, "", root_complex_ops.stats, host_root_complexes(f->host)->rc[0]->state,
                     1);
    for (unsigned i = 0; i < N_LATENCY_PARTS - 1; i++) {
        snprintf(name, sizeof(name), "write_latency_part_ns.%s", latency_part_name[i]);
        sum_ns += run_result_value(result, name);
    }
    double whole_ns = run_result_value(result, "write_latency_ns");
    assert_true(whole_ns > 100 && whole_ns - sum_ns < 0.001 && sum_ns - whole_ns < 0.001);
    assert_true(run_result_value(result, "write_latency_part_ns.cache") > 0);
    assert_true(run_result_value(result, "write_latency_part_ns.root_complex") >= 61);
    run_result_free(result);
}

/* Each line of a write takes one line request: the fourth is asked for three intervals later. */
static void test_lines_of_a_write_are_one_interval_apart(void **unused)
{
    double took_ns[2] = { 0, 0 };
    char name[64];
    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        struct world_fixture f;
        struct hpa hpa;
        struct iova iova;
        struct run_result *result = run_result_new();
        const uint32_t bytes = i == 0 ? 64 : 256;
        fixture_open(&f, WORLD_WITH("false", "line_interval_ns = 100;"));
        assert_int_equal(host_dma_alloc(f.host, id_of(&f, "a"), 0, 4096, 4096, &hpa, &iova), 0);
        numa_warm_device(host_numa(f.host), 0, hpa, 4096);
        struct fixture_op op = op_new(true, iova.v, bytes, NULL);
        struct sim_stamp stamp;
        op.op.stamp = &stamp;
        assert_int_equal(fixture_dma(&f, "a", &op), PCIE_DMA_OK);
        run_result_stats(result, "", root_complex_ops.stats,
                         host_root_complexes(f.host)->rc[0]->state, 1);
        for (unsigned k = 0; k < 2; k++) {
            static const char *const parts[2] = { "root_complex", "cache" };
            snprintf(name, sizeof(name), "write_latency_part_ns.%s", parts[k]);
            took_ns[i] += run_result_value(result, name);
        }
        run_result_free(result);
        fixture_close(&f);
    }
    assert_true(fabs(took_ns[1] - took_ns[0] - 300) < 0.1);
}

/* A read behind a write of the same device sees what was written, however slow the write is. */
struct pair {
    struct fixture_op write, read;
};

static void test_read_pushes_write(void **state)
{
    struct world_fixture *f = *state;
    struct hpa hpa;
    struct iova iova;
    uint8_t out[64], in[64];
    struct model *a = world_device(f->world, "a");
    assert_int_equal(host_dma_alloc(f->host, id_of(f, "a"), 1, 65536, 4096, &hpa, &iova), 0);
    for (unsigned i = 0; i < 200; i++) {
        struct pair p = { .write = op_new(true, iova.v + i * 64, 64, out),
                          .read = op_new(false, iova.v + i * 64, 64, in) };
        p.write.op.interface = p.read.op.interface = PCIE_REQUESTER_COMMAND;
        memset(out, (int)i + 1, sizeof(out));
        memset(in, 0, sizeof(in));
        p.write.op.done = p.read.op.done = fixture_op_done;
        p.write.op.context = &p.write;
        p.read.op.context = &p.read;
        pcie_requester_submit(a, &p.write.op);
        pcie_requester_submit(a, &p.read.op);
        sim_run(f->sim, SIM_TIME_MAX, NULL);
        assert_true(p.write.done && p.read.done);
        assert_memory_equal(in, out, sizeof(out));
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static void test_read_beyond_memory_is_unsupported(void **state)
{
    struct world_fixture *f = *state;
    uint8_t in[64];
    struct fixture_op read = op_new(false, UINT64_C(1) << 43, 64, in);
    assert_int_equal(fixture_dma(f, "a", &read), PCIE_DMA_UNSUPPORTED);
    for (unsigned i = 0; i < sizeof(in); i++)
        assert_int_equal(in[i], 0xff);
    struct fixture_op write = op_new(true, UINT64_C(1) << 43, 64, in);
    assert_int_equal(fixture_dma(f, "a", &write), PCIE_DMA_OK); /* posted: dropped, nobody knows */
}

static void test_iommu_blocks_what_is_not_mapped(void **state)
{
    struct world_fixture *f = *state;
    struct hpa hpa;
    struct iova iova;
    uint8_t bytes[64], in[64];
    assert_int_equal(host_dma_alloc(f->host, id_of(f, "a"), 0, 4096, 4096, &hpa, &iova), 0);
    memset(bytes, 0x5a, sizeof(bytes));
    physmem_write(host_physmem(f->host), hpa, bytes, sizeof(bytes));
    struct fixture_op read = op_new(false, iova.v, 64, in);
    assert_int_equal(fixture_dma(f, "a", &read), PCIE_DMA_OK);
    assert_memory_equal(in, bytes, sizeof(in));
    /* the page after it; the same page by another device; the physical address itself */
    struct fixture_op beyond = op_new(false, iova.v + 4096, 64, in);
    assert_int_equal(fixture_dma(f, "a", &beyond), PCIE_DMA_UNSUPPORTED);
    struct fixture_op other = op_new(false, iova.v, 64, in);
    assert_int_equal(fixture_dma(f, "b", &other), PCIE_DMA_UNSUPPORTED);
    memset(bytes, 0, sizeof(bytes));
    struct fixture_op write = op_new(true, hpa.v, 64, bytes);
    fixture_dma(f, "a", &write);
    physmem_read(host_physmem(f->host), hpa, in, sizeof(in));
    assert_int_equal(in[0], 0x5a); /* nothing was written */
}

/* ---- Peer to peer ---------------------------------------------------------------------------- */

static void peer_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    *(uint64_t *)arg = root_complex_mmio_read(host_root_complexes(f->host), 0, task,
                                              (struct hpa){ *(uint64_t *)arg }, 8, NULL);
}

static void test_peer_to_peer_across_ports_and_sockets(void **state)
{
    static const char *const peers[] = { "b", "c" };
    struct world_fixture *f = *state;
    sim_time took_ps[2];
    for (unsigned i = 0; i < 2; i++) {
        struct model *peer = world_device(f->world, peers[i]);
        uint64_t bar = cfg_bar_base(pcie_requester_config_space(peer), 0), value = 0,
                 seen = bar + 8;
        uint64_t pattern = UINT64_C(0xabcdef0011223300) + i;
        struct fixture_op write = op_new(true, bar + 8, 8, (uint8_t *)&pattern);
        struct fixture_op read = op_new(false, bar + 8, 8, (uint8_t *)&value);
        assert_int_equal(fixture_dma(f, "a", &write), PCIE_DMA_OK);
        assert_int_equal(fixture_dma(f, "a", &read), PCIE_DMA_OK);
        assert_int_equal(value, pattern);
        took_ps[i] = read.done_ps - read.start_ps;
        fixture_call(f, peer_body, &seen);
        assert_int_equal(seen, pattern);
    }
    /* A hop there and back, a flit of the request and ten of the data. */
    assert_int_equal(took_ps[1] - took_ps[0], 2 * 21000 + 417 + 4167);
}

/* What the page walk adds to a read of a peer. */
static sim_time peer_walk_ps(const char *world)
{
    const struct iova iova = { UINT64_C(1) << 30 };
    struct world_fixture f;
    uint64_t value;
    fixture_open(&f, world);
    struct model *peer = world_device(f.world, "b");
    const struct hpa bar = { cfg_bar_base(pcie_requester_config_space(peer), 0) };
    assert_int_equal(iommu_map(host_domain_of(f.host, id_of(&f, "a")), iova, bar, 4096, 4096,
                               IOMMU_READ | IOMMU_WRITE),
                     0);
    struct fixture_op cold = op_new(false, iova.v + 8, 8, (uint8_t *)&value), warm = cold;
    assert_int_equal(fixture_dma(&f, "a", &cold), PCIE_DMA_OK);
    assert_int_equal(fixture_dma(&f, "a", &warm), PCIE_DMA_OK);
    fixture_close(&f);
    return (cold.done_ps - cold.start_ps) - (warm.done_ps - warm.start_ps);
}

/* The way to the peer is known only when the address is: no part of it hides the walk. */
static void test_peer_to_peer_follows_translation(void **unused)
{
    (void)unused;
    const sim_time short_ps = peer_walk_ps(WORLD_WITH("true", "p2p_ns = 61;"));
    assert_true(short_ps > 100 * SIM_PS_PER_NS);
    assert_int_equal(peer_walk_ps(WORLD_WITH("true", "p2p_ns = 2000;")), short_ps);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

struct seen_interrupt {
    unsigned n;
    uint32_t destination;
    uint8_t vector;
    uint64_t flag;
    sim_time now_ps;
    struct world_fixture *f;
    struct hpa at;
};

static void on_interrupt(void *context, uint32_t destination, uint8_t vector)
{
    struct seen_interrupt *seen = context;
    seen->n++;
    seen->now_ps = sim_now(seen->f->sim);
    seen->destination = destination;
    seen->vector = vector;
    seen->flag = physmem_read64(host_physmem(seen->f->host), seen->at);
}

static void test_interrupt_comes_after_the_data(void **state)
{
    struct world_fixture *f = *state;
    struct iova iova;
    struct seen_interrupt seen = { .f = f };
    uint64_t flag = 42;
    uint32_t message = 0x55;
    host_root_complexes(f->host)->interrupt = on_interrupt;
    host_root_complexes(f->host)->interrupt_context = &seen;
    assert_int_equal(host_dma_alloc(f->host, id_of(f, "a"), 1, 4096, 4096, &seen.at, &iova), 0);
    struct pair p = { .write = op_new(true, iova.v, 8, (uint8_t *)&flag),
                      .read = op_new(true, 0xfee07000, 4, (uint8_t *)&message) };
    p.write.op.done = p.read.op.done = fixture_op_done;
    p.write.op.context = &p.write;
    p.read.op.context = &p.read;
    pcie_requester_submit(world_device(f->world, "a"), &p.write.op);
    pcie_requester_submit(world_device(f->world, "a"), &p.read.op);
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.destination, 7);
    assert_int_equal(seen.vector, 0x55);
    assert_int_equal(seen.flag, 42);
}

static sim_time interrupt_ps(struct world_fixture *f, uint64_t address)
{
    struct seen_interrupt seen = { .f = f };
    uint32_t message = 0x55;
    struct fixture_op op = op_new(true, address, 4, (uint8_t *)&message);
    host_root_complexes(f->host)->interrupt = on_interrupt;
    host_root_complexes(f->host)->interrupt_context = &seen;
    op.op.done = fixture_op_done;
    op.op.context = &op;
    sim_time start_ps = sim_now(f->sim);
    pcie_requester_submit(world_device(f->world, "a"), &op.op);
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(seen.n, 1);
    return seen.now_ps - start_ps;
}

/* CPU 7 is the device's socket's, CPU 20 is not. */
static void test_interrupt_crosses_to_another_socket(void **state)
{
    struct world_fixture *f = *state;
    sim_time near_ps = interrupt_ps(f, 0xfee07000), far_ps = interrupt_ps(f, 0xfee14000);
    sim_time now_ps = sim_now(f->sim) + SIM_PS_PER_US;
    assert_int_equal(far_ps - near_ps,
                     numa_io_send(host_numa(f->host), 0, 1, NUMA_IO_DATA, now_ps) - now_ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(test_boot_enumerates_every_device, WORLD("false")),
        cmocka_unit_test(test_credits_grow_with_the_port),
        WORLD_TEST(test_mmio_round_trip_equals_formula, WORLD("false")),
        WORLD_TEST(test_posted_writes_go_on_by_themselves, WORLD("false")),
        WORLD_TEST(test_registers_of_another_socket_are_further_away, WORLD("false")),
        WORLD_TEST(test_bytes_arrive_and_come_back, WORLD("false")),
        WORLD_TEST(test_read_latency_equals_formula, WORLD("false")),
        WORLD_TEST(test_write_latency_adds_up, WORLD("false")),
        cmocka_unit_test(test_lines_of_a_write_are_one_interval_apart),
        WORLD_TEST(test_read_pushes_write, WORLD("false")),
        WORLD_TEST(test_read_beyond_memory_is_unsupported, WORLD("false")),
        WORLD_TEST(test_iommu_blocks_what_is_not_mapped, WORLD("true")),
        WORLD_TEST(test_peer_to_peer_across_ports_and_sockets, WORLD("false")),
        cmocka_unit_test(test_peer_to_peer_follows_translation),
        WORLD_TEST(test_interrupt_comes_after_the_data, WORLD("false")),
        WORLD_TEST(test_interrupt_crosses_to_another_socket, WORLD("false")),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
