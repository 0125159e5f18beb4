/* Non-transparent bridges: bytes and times through them, refusals, cables pulled, doorbells. */
#include "tests/support/ntb_rig.h"

#include <string.h>

#include "models/host/host_internal.h"
#include "models/pcie/switch/switch.h"

/* Two hosts, back to back over 2 m; host a (`server`) has a requester beside its bridge, below
 * another root port, and one together with another bridge behind a switch (a chassis). */
#define REQUESTER(NAME, MORE)                                                                   \
    NAME " = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536; extended_tags = true; " \
         "completion_timeout_us = 60; " MORE "}; "
#define BRIDGE(NAME, MORE)                                                          \
    NAME " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; latency_ns = 130; " \
         "bar2_bytes = 67108864; bar2_windows = 64; " MORE "}; "
#define SLOT "lanes = 8; latency_ns = 50; skp_overhead_ratio = 0.0; "

#define PAIR(A_ROOT_COMPLEX)                                                                      \
    "hosts = { server = { " LIGHT_HOST                                                            \
    "root_complex = { completion_timeout_us = 60; " A_ROOT_COMPLEX " }; "                         \
    "ports = ( { name = \"rp0\"; }, { name = \"rp1\"; } ); }; "                                   \
    "b = { " LIGHT_HOST "ports = ( { name = \"rp0\"; }, { name = \"rp1\"; } ); }; };"             \
    "devices = { " BRIDGE("na", "") BRIDGE("nb", "") REQUESTER("dma", "")                         \
        REQUESTER("far", "") "};"                                                                 \
                             "cables = ( { from = \"server.s0.rp0\"; to = \"na.p0\"; " SLOT "}, " \
                             "{ from = \"b.s0.rp0\"; to = \"nb.p0\"; " SLOT "}, "                 \
                             "{ from = \"server.s0.rp1\"; to = \"dma.p0\"; " SLOT "}, "           \
                             "{ from = \"b.s0.rp1\"; to = \"far.p0\"; " SLOT "}, "                \
                             "{ from = \"na.p1\"; to = \"nb.p1\"; length_m = 2.0; " SLOT "} );"

struct pair {
    struct world_fixture f;
    struct ntb_node a, b;
    struct hpa memory; /* 4 MiB in b, shown by windows 8 to 11 of a */
    sim_time piece_ps; /* see piece_body() */
};

#define MIB       UINT64_C(0x100000)
#define WINDOW    MIB
#define MAPPED    8u
#define BRIDGE_PS 130000u
#define SLOT_PS   50000u
#define CABLE_PS  (50000u + 10000u)

static void pair_setup(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    ntb_enable(&pair->a, task);
    ntb_enable(&pair->b, task);
    for (unsigned i = 0; i < 4; i++)
        ntb_map(&pair->a, task, MAPPED + i, ntb_node(pair->b.ntb), pair->memory.v + i * WINDOW);
    ntb_out(&pair->a, task, 1, pcie_requester_id(world_device(f->world, "dma")));
    ntb_in(&pair->b, task, 0, ntb_node(pair->a.ntb), 0);
    ntb_in(&pair->b, task, 5, ntb_node(pair->a.ntb), 1);
}

static void pair_open_text(struct pair *pair, const char *text)
{
    fixture_open(&pair->f, text);
    ntb_node_open(&pair->a, &pair->f, "server", "na");
    ntb_node_open(&pair->b, &pair->f, "b", "nb");
    pair->memory = ntb_memory(&pair->b, 4 * MIB, MIB);
    fixture_call(&pair->f, pair_setup, pair);
}

static void pair_open(struct pair *pair)
{
    pair_open_text(pair, PAIR(""));
}

static void pair_drain(struct pair *pair)
{
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    assert_true(pcie_context_check_idle(world_pcie(pair->f.world)));
}

static void pair_close(struct pair *pair)
{
    pair_drain(pair);
    fixture_close(&pair->f);
}

static int pair_set_up(void **state)
{
    struct fixture_test *t = *state;
    t->fixture = calloc(1, sizeof(struct pair));
    pair_open_text(t->fixture, t->settings);
    return 0;
}

static int pair_tear_down(void **state)
{
    struct fixture_test *t = *state;
    if (t->passed)
        pair_drain(t->fixture);
    return fixture_tear_down(state);
}

#define PAIR_TEST(test, text) FIXTURE_TEST(test, pair_set_up, pair_tear_down, text)

/* Any function as a task. */
static void pair_call(struct pair *pair,
                      void (*body)(struct world_fixture *f, struct sim_task *task, void *arg))
{
    fixture_call(&pair->f, body, pair);
}

/* One DMA of a requester, to its end. */
static enum pcie_dma_status dma(struct pair *pair, const char *device, bool write,
                                struct hpa address, uint8_t *buffer, uint32_t bytes)
{
    struct fixture_op op = { .op = { .write = write,
                                     .interface = PCIE_REQUESTER_BULK,
                                     .iova = { address.v },
                                     .bytes = bytes,
                                     .buffer = buffer } };
    return fixture_dma(&pair->f, device, &op);
}

static void fill(uint8_t *buffer, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed);
}

static void expect_bytes(struct ntb_node *node, uint64_t at, const uint8_t *expected, size_t bytes)
{
    uint8_t *got = malloc(bytes);
    assert_non_null(got);
    physmem_read(host_physmem(node->host), (struct hpa){ at }, got, bytes);
    assert_memory_equal(got, expected, bytes);
    free(got);
}

/* ---- Two trees ------------------------------------------------------------------------------- */

static void a_host_sees_its_own_side_only(void **state)
{
    struct pair *pair = *state;
    unsigned n;

    const struct pcie_found *found = host_functions(pair->a.host, &n);
    assert_int_equal(n, 4); /* two root ports, the bridge, the requester */
    for (unsigned i = 0; i < n; i++)
        if (found[i].device_id == NTB_DEVICE_ID) {
            assert_false(found[i].bridge);
            assert_int_equal(found[i].bar_bytes[0], NTB_BAR_BYTES);
            assert_int_equal(found[i].bar_bytes[2], 64 * MIB);
        }
    assert_ptr_equal(world_host_of(pair->f.world, pair->b.ntb), pair->b.host);
    assert_int_equal(ntb_node(pair->a.ntb), 1);
    assert_int_equal(ntb_node(pair->b.ntb), 2);
}

static void registers_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    struct ntb_node *a = &pair->a;
    (void)f;
    assert_int_equal(ntb_read(a, task, NTB_REG_ID, 4), NTB_ID);
    assert_int_equal(ntb_read(a, task, NTB_REG_STATUS, 4), NTB_STATUS_LINK_UP);
    assert_int_equal(ntb_read(a, task, NTB_REG_NODE, 4), 1);
    assert_int_equal(ntb_read(a, task, NTB_REG_WINDOWS, 4), 64);
    assert_int_equal(ntb_read(a, task, NTB_REG_WINDOW_LOG2, 4), 20);
    assert_int_equal(ntb_read(a, task, NTB_REG_REQUESTERS, 4), 32 | 248 << 16);
    assert_int_equal(ntb_read(a, task, NTB_REG_OUTGOING, 4), NTB_OUTGOING_VALID | ntb_cpu_id(a));
    assert_int_equal(ntb_read(a, task, NTB_REG_LUT2 + 8 * MAPPED, 8),
                     UINT64_C(2) << 48 | pair->memory.v | 1);
    /* Halves of an entry, one after the other. */
    ntb_write(a, task, NTB_REG_LUT2 + 8 * 20, 4, 0x12300001);
    ntb_write(a, task, NTB_REG_LUT2 + 8 * 20 + 4, 4, 0x00020004);
    assert_int_equal(ntb_read(a, task, NTB_REG_LUT2 + 8 * 20, 8), 0x0002000412300001);
    /* What is not there does not remember. */
    ntb_write(a, task, NTB_REG_LUT2 + 8 * 64, 8, 1);
    assert_int_equal(ntb_read(a, task, NTB_REG_LUT2 + 8 * 64, 8), 0);
    ntb_write(a, task, NTB_REG_OUTGOING + 4 * 32, 4, NTB_OUTGOING_VALID);
    assert_int_equal(ntb_read(a, task, NTB_REG_OUTGOING + 4 * 32, 4), 0);
    ntb_write(a, task, NTB_REG_NODE, 4, 9);
    assert_int_equal(ntb_read(a, task, NTB_REG_NODE, 4), 1);
    /* Odd sizes are no register access. */
    assert_int_equal(ntb_read(a, task, NTB_REG_ID, 2), 0xffff);
    /* Scratchpads, from both sides: the far side through window 0. */
    ntb_map(a, task, 0, NTB_NODE_PARTNER, NTB_FABRIC_REGISTERS);
    struct hpa far = ntb_window(a, 0, NTB_FABRIC_SCRATCHPAD + 12);
    root_complex_mmio_write(ntb_rc(a), 0, task, far, 4, 0xcafe);
    assert_int_equal(root_complex_mmio_read(ntb_rc(a), 0, task, far, 4, NULL), 0xcafe);
    assert_int_equal(ntb_read(&pair->b, task, NTB_REG_SCRATCHPAD + 12, 4), 0xcafe);
    assert_int_equal(
        root_complex_mmio_read(ntb_rc(a), 0, task, ntb_window(a, 0, NTB_FABRIC_NODE), 4, NULL), 2);
}

static void registers_are_real(void **state)
{
    struct pair *pair = *state;
    pair_call(pair, registers_body);
}

/* ---- Loads and stores ------------------------------------------------------------------------ */

static void loads_and_stores_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    struct root_complex_host *rc = ntb_rc(&pair->a);
    (void)f;
    for (unsigned i = 0; i < 4; i++)
        root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, MAPPED + i, 0x100 + 8 * i), 8,
                                UINT64_C(0x1122334455660000) + i);
    root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, MAPPED, WINDOW - 4), 4, 0xa5a5a5a5);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(root_complex_mmio_read(
                             rc, 0, task, ntb_window(&pair->a, MAPPED + i, 0x100 + 8 * i), 8, NULL),
                         UINT64_C(0x1122334455660000) + i);
    assert_int_equal(
        root_complex_mmio_read(rc, 0, task, ntb_window(&pair->a, MAPPED, WINDOW - 3), 1, NULL),
        0xa5);
}

static void loads_and_stores_reach_the_other_host(void **state)
{
    struct pair *pair = *state;

    pair_call(pair, loads_and_stores_body);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(
            physmem_read64(host_physmem(pair->b.host),
                           (struct hpa){ pair->memory.v + i * WINDOW + 0x100 + 8 * i }),
            UINT64_C(0x1122334455660000) + i);
    assert_int_equal(
        physmem_read64(host_physmem(pair->b.host), (struct hpa){ pair->memory.v + WINDOW - 8 }),
        UINT64_C(0xa5a5a5a500000000));
    assert_int_equal(ntb_stats_of(&pair->a)->requests_out, 10);
    assert_int_equal(ntb_stats_of(&pair->b)->requests_in, 10);
}

/* Every part of a load's time, to the picosecond: two bridges and three links each way; what the
 * far root complex and memory take is that of a DMA read there. */
static void unloaded_latency_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    const struct pcie_port *cable = &pair->a.ntb->ports[NTB_CABLE];
    struct sim_stamp stamp;
    (void)f;
    ntb_sleep(task, 10000000); /* links idle, DLLPs of the set-up gone */
    sim_time start_ps = sim_task_now(task);
    sim_stamp_start(&stamp, start_ps);
    root_complex_mmio_read(ntb_rc(&pair->a), 0, task, ntb_window(&pair->a, MAPPED, 64), 8, &stamp);
    sim_time total_ps = sim_task_now(task) - start_ps, sum_ps = 0;
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++)
        sum_ps += stamp.part_ps[i];
    assert_int_equal(sum_ps, total_ps);
    /* A request with 4 double words of header until the far tree, where the address is low; the
     * last byte cannot leave before it came. The completion: 3 double words and 8 bytes. */
    sim_time wires_ps = pcie_port_wire_ps(cable, 24) + pcie_port_wire_ps(cable, 28);
    assert_int_equal(stamp.part_ps[PART_LINK] + stamp.part_ps[PART_SWITCH],
                     2 * (2 * SLOT_PS + CABLE_PS) + 4 * BRIDGE_PS + wires_ps);
    assert_int_equal(stamp.part_ps[PART_CREDIT], 0);
    /* Default root complexes: 60 ns each way, at both ends. */
    assert_int_equal(stamp.part_ps[PART_ROOT_COMPLEX], 4 * 60000);
}

static void unloaded_latency_is_the_formula(void **state)
{
    struct pair *pair = *state;
    pair_call(pair, unloaded_latency_body);
}

/* A store: from the core until it is visible in the other host. */
static void store_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    root_complex_mmio_write(ntb_rc(&pair->a), 0, task, ntb_window(&pair->a, MAPPED, 0), 4, 0x77);
}

static void a_store_takes_one_way(void **state)
{
    struct pair *pair = *state;
    uint64_t value = 0;

    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    sim_time start_ps = sim_now(pair->f.sim);
    const struct pcie_port *cable = &pair->a.ntb->ports[NTB_CABLE];
    sim_time arrives_ps = start_ps + 60000 + 2 * SLOT_PS + CABLE_PS + 2 * BRIDGE_PS +
                          pcie_port_wire_ps(cable, 28);
    struct fixture_call call = { .f = &pair->f, .body = store_body, .arg = pair };
    sim_task_start(sim_task_new(pair->f.sim, "store", 0, fixture_body, &call), start_ps);
    /* The write is ordered no earlier than its root complex has it, and no later than one memory
     * write after that. */
    sim_run(pair->f.sim, arrives_ps + 60000 - 1, NULL);
    physmem_read(host_physmem(pair->b.host), pair->memory, &value, 4);
    assert_int_equal(value, 0);
    sim_run(pair->f.sim, arrives_ps + 60000 + 200000, NULL);
    physmem_read(host_physmem(pair->b.host), pair->memory, &value, 4);
    assert_int_equal(value, 0x77);
}

/* ---- DMA ------------------------------------------------------------------------------------- */

static void dma_of_a_neighbour_passes(void **state)
{
    struct pair *pair = *state;
    static uint8_t out[3 * 4096 + 100], in[sizeof(out)];

    fill(out, sizeof(out), 3);
    /* Across the border of two windows, which show neighbouring memory. */
    uint64_t offset = WINDOW - 5000;
    assert_int_equal(dma(pair, "dma", true, ntb_window(&pair->a, MAPPED, offset), out, sizeof(out)),
                     PCIE_DMA_OK);
    assert_int_equal(dma(pair, "dma", false, ntb_window(&pair->a, MAPPED, offset), in, sizeof(in)),
                     PCIE_DMA_OK);
    assert_memory_equal(in, out, sizeof(out));
    expect_bytes(&pair->b, pair->memory.v + offset, out, sizeof(out));
}

static void swap_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    ntb_map(&pair->a, task, MAPPED + 1, ntb_node(pair->b.ntb), pair->memory.v + 3 * WINDOW);
}

/* The next window begins at its first byte, wherever it leads. */
static void windows_end_where_they_end(void **state)
{
    struct pair *pair = *state;
    static uint8_t out[8192];

    pair_call(pair, swap_body);
    fill(out, sizeof(out), 9);
    assert_int_equal(dma(pair, "dma", true, ntb_window(&pair->a, MAPPED, WINDOW - 4096), out, 8192),
                     PCIE_DMA_OK);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    expect_bytes(&pair->b, pair->memory.v + WINDOW - 4096, out, 4096);
    expect_bytes(&pair->b, pair->memory.v + 3 * WINDOW, out + 4096, 4096);
}

static void back_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    /* b's requester, as device 9, to where a has memory; a knows it as its entry 100. */
    ntb_out(&pair->b, task, 9, pcie_requester_id(world_device(f->world, "far")));
    ntb_in(&pair->a, task, 100, ntb_node(pair->b.ntb), 9);
    ntb_map(&pair->b, task, 2, ntb_node(pair->a.ntb), 64 * MIB);
}

static void both_directions_at_once(void **state)
{
    struct pair *pair = *state;
    static uint8_t out[65536], in[65536], other[65536];

    pair_call(pair, back_body);
    fill(out, sizeof(out), 1);
    fill(other, sizeof(other), 99);
    physmem_write(host_physmem(pair->a.host), (struct hpa){ 64 * MIB }, other, sizeof(other));
    struct fixture_op write = { .op = { .write = true,
                                        .interface = PCIE_REQUESTER_BULK,
                                        .iova = { ntb_window(&pair->a, MAPPED, 0).v },
                                        .bytes = sizeof(out),
                                        .buffer = out,
                                        .done = fixture_op_done,
                                        .context = &write } };
    pcie_requester_submit(world_device(pair->f.world, "dma"), &write.op);
    assert_int_equal(dma(pair, "far", false, ntb_window(&pair->b, 2, 0), in, sizeof(in)),
                     PCIE_DMA_OK);
    assert_true(write.done);
    assert_memory_equal(in, other, sizeof(in));
    expect_bytes(&pair->b, pair->memory.v, out, sizeof(out));
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void forget_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    ntb_write(&pair->a, task, NTB_REG_OUTGOING + 4, 4, 0);
}

static void remember_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    ntb_out(&pair->a, task, 1, pcie_requester_id(world_device(f->world, "dma")));
    ntb_write(&pair->b, task, NTB_REG_INCOMING + 4 * 5, 4, 0);
}

static void requesters_must_be_known(void **state)
{
    struct pair *pair = *state;
    uint8_t byte[64] = { 1 }, none[64] = { 0 };

    struct hpa at = ntb_window(&pair->a, MAPPED, 0);
    pair_call(pair, forget_body);
    assert_int_equal(dma(pair, "dma", false, at, byte, 64), PCIE_DMA_UNSUPPORTED);
    assert_int_equal(dma(pair, "dma", true, at, byte, 64), PCIE_DMA_OK); /* posted: vanishes */
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(ntb_stats_of(&pair->a)->unknown_out, 2);
    /* Known at home, but not at the other end. */
    pair_call(pair, remember_body);
    assert_int_equal(dma(pair, "dma", false, at, byte, 64), PCIE_DMA_UNSUPPORTED);
    assert_int_equal(dma(pair, "dma", true, at, byte, 64), PCIE_DMA_OK);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(ntb_stats_of(&pair->b)->unknown_in, 2);
    expect_bytes(&pair->b, pair->memory.v, none, 64);
}

static void full_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    /* All 32 entries belong to others; the 33rd register does not exist. */
    for (unsigned i = 1; i < NTB_OUTGOING_MAX; i++)
        ntb_out(&pair->a, task, i, pcie_id(200, i, 0));
    ntb_out(&pair->a, task, NTB_OUTGOING_MAX, pcie_requester_id(world_device(f->world, "dma")));
}

static void a_full_table_refuses(void **state)
{
    struct pair *pair = *state;
    uint8_t byte[64];

    pair_call(pair, full_body);
    assert_int_equal(dma(pair, "dma", false, ntb_window(&pair->a, MAPPED, 0), byte, 64),
                     PCIE_DMA_UNSUPPORTED);
    assert_int_equal(ntb_stats_of(&pair->a)->unknown_out, 1);
    pair_call(pair, loads_and_stores_body); /* the CPU still has its entry */
}

static void unmapped_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    struct root_complex_host *rc = ntb_rc(&pair->a);
    struct hpa hole = ntb_window(&pair->a, 30, 0);
    (void)f;
    assert_int_equal(root_complex_mmio_read(rc, 0, task, hole, 8, NULL), UINT64_MAX);
    root_complex_mmio_write(rc, 0, task, hole, 4, 1);
    /* To a node that is not there: the other end says no. */
    ntb_map(&pair->a, task, 30, 77, 0);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, hole, 4, NULL), UINT32_MAX);
    /* To where the other host has nothing: its root complex says no. */
    ntb_map(&pair->a, task, 30, 2, UINT64_C(1) << 40);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, hole, 4, NULL), UINT32_MAX);
    /* Switched off at home, then at the other end. */
    ntb_write(&pair->a, task, NTB_REG_CONTROL, 4, NTB_CONTROL_ACCEPT);
    hole = ntb_window(&pair->a, MAPPED, 0);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, hole, 4, NULL), UINT32_MAX);
    ntb_write(&pair->a, task, NTB_REG_CONTROL, 4, NTB_CONTROL_SEND);
    ntb_write(&pair->b, task, NTB_REG_CONTROL, 4, NTB_CONTROL_SEND);
    ntb_sleep(task, 5000000);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, hole, 4, NULL), UINT32_MAX);
}

static void what_leads_nowhere_is_refused(void **state)
{
    struct pair *pair = *state;

    pair_call(pair, unmapped_body);
    assert_int_equal(ntb_stats_of(&pair->a)->unmapped, 2);
    assert_int_equal(ntb_stats_of(&pair->a)->disabled, 1);
    assert_int_equal(ntb_stats_of(&pair->b)->misrouted, 1);
    assert_int_equal(ntb_stats_of(&pair->b)->disabled, 1);
}

/* ---- Digests --------------------------------------------------------------------------------- */

struct digests {
    struct pcie_tap tap;
    unsigned n[TLP_CPLD + 1], n_without;
};

static void note_digest(struct pcie_tap *tap, const struct pcie_port *from, const struct tlp *tlp,
                        sim_time start_ps, bool lost)
{
    struct digests *seen = SIM_CONTAINER(tap, struct digests, tap);
    (void)from, (void)start_ps, (void)lost;
    seen->n[tlp->type]++;
    seen->n_without += !tlp->digest;
}

static void own_tlps_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    struct root_complex_host *rc = ntb_rc(&pair->a);
    struct pcie_link *cable = ntb_cable_of(f->world, &pair->a.ntb->ports[NTB_CABLE]);

    ntb_enable_interrupts(&pair->a, task);
    ntb_read(&pair->a, task, NTB_REG_ID, 4);
    root_complex_config_read(rc, 0, task, ntb_id(pair->a.ntb), PCI_VENDOR_ID, 2);
    root_complex_mmio_read(rc, 0, task, ntb_window(&pair->a, 30, 0), 4, NULL);
    pcie_link_set_up(cable, false); /* an interrupt */
    root_complex_mmio_read(rc, 0, task, ntb_window(&pair->a, MAPPED, 0), 4, NULL);
    ntb_sleep(task, 1000000);
}

/* With firmware.ecrc all that a bridge sends of its own into its host's tree carries a digest:
 * registers, configuration, refusals, messages. */
static void what_a_bridge_sends_has_a_digest(void **state)
{
    struct pair *pair = *state;
    struct digests seen = { .tap = { .tlp = note_digest } };

    pcie_port_add_tap(&pair->a.ntb->ports[NTB_HOST], &seen.tap);
    pair_call(pair, own_tlps_body);
    pcie_port_remove_tap(&pair->a.ntb->ports[NTB_HOST], &seen.tap);
    assert_int_equal(seen.n[TLP_CPLD], 2);
    assert_int_equal(seen.n[TLP_CPL], 3); /* MSI-X was switched on */
    assert_int_equal(seen.n[TLP_MWR], 1);
    assert_int_equal(seen.n_without, 0);
}

/* ---- The engine's rings ---------------------------------------------------------------------- */

struct engine {
    struct ntb_node node;
    uint64_t reg; /* of channel 0 */
    struct hpa ring, from, to;
};

static void valid(struct engine *e, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct ntb_dma_descriptor d = { .flags_bytes = NTB_DMA_VALID | 64,
                                              .source_low = (uint32_t)e->from.v + 64 * i,
                                              .destination_low = (uint32_t)e->to.v + 64 * i };
        physmem_write(host_physmem(e->node.host), (struct hpa){ e->ring.v + sizeof(d) * i }, &d,
                      sizeof(d));
    }
}

static void short_ring_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct engine *e = arg;
    struct root_complex_host *rc = ntb_rc(&e->node);
    const struct ntb_dma_stats *stats = &ntb_stats_of(&e->node)->dma;
    uint64_t n_done = 0;
    (void)f;
    root_complex_config_write(rc, 0, task, ntb_id(e->node.ntb) + NTB_DMA_FUNCTION, PCI_COMMAND, 2,
                              PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    root_complex_mmio_write(rc, 0, task, (struct hpa){ e->reg + NTB_DMA_RING_LOW }, 4, e->ring.v);
    root_complex_mmio_write(rc, 0, task, (struct hpa){ e->reg + NTB_DMA_PREFETCH }, 4,
                            NTB_DMA_PREFETCH_MAX);
    for (uint32_t size = 1; size <= 5; size++) {
        root_complex_mmio_write(rc, 0, task, (struct hpa){ e->reg + NTB_DMA_RING_SIZE }, 4, size);
        for (unsigned round = 0; round < 2; round++) {
            valid(e, size);
            root_complex_mmio_write(rc, 0, task, (struct hpa){ e->reg + NTB_DMA_CONTROL }, 4,
                                    NTB_DMA_CONTROL_START);
            ntb_sleep(task, 20 * SIM_PS_PER_US);
            n_done += size;
            assert_int_equal(stats->descriptors, n_done);
        }
    }
}

/* A ring with fewer descriptors than are fetched ahead: each is carried out once. */
static void short_rings_are_fetched_once(void **unused)
{
    struct world_fixture f;
    struct engine e;
    unsigned n;
    (void)unused;
    fixture_open(
        &f, "hosts = { server = { " LIGHT_HOST "ports = ( { name = \"rp0\"; } ); }; };"
            "devices = { " BRIDGE(
                "na",
                "dma_channels = 1;") "};"
                                     "cables = ( { from = \"server.s0.rp0\"; to = \"na.p0\"; " SLOT
                                     "} );");
    ntb_node_open(&e.node, &f, "server", "na");
    e.ring = ntb_memory(&e.node, 4096, 4096);
    e.from = ntb_memory(&e.node, 4096, 4096);
    e.to = ntb_memory(&e.node, 4096, 4096);
    const struct pcie_found *found = host_functions(e.node.host, &n);
    while (found->device_id != NTB_DMA_DEVICE_ID)
        found++;
    e.reg = found->bar_base[0] + NTB_DMA_CHANNEL(0);
    fixture_call(&f, short_ring_body, &e);
    fixture_close(&f);
}

/* ---- The cable ------------------------------------------------------------------------------- */

static void interrupts_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    ntb_enable_interrupts(&pair->a, task);
    ntb_enable_interrupts(&pair->b, task);
}

static void down_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    struct root_complex_host *rc = ntb_rc(&pair->a);
    (void)f;
    sim_time start_ps = sim_task_now(task);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, ntb_window(&pair->a, MAPPED, 0), 8, NULL),
                     UINT64_MAX);
    assert_true(sim_task_now(task) - start_ps < 2000000); /* an answer, not a time-out */
    root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, MAPPED, 0), 4, 0xdead);
    assert_int_equal(ntb_read(&pair->a, task, NTB_REG_STATUS, 4), NTB_STATUS_LINK_CHANGE);
    ntb_write(&pair->a, task, NTB_REG_STATUS, 4, NTB_STATUS_LINK_CHANGE);
    assert_int_equal(ntb_read(&pair->a, task, NTB_REG_STATUS, 4), 0);
}

static void a_pulled_cable_loses_what_is_on_its_way(void **state)
{
    struct pair *pair = *state;
    static uint8_t out[65536], in[65536], old[65536];

    pair_call(pair, interrupts_body);
    fill(out, sizeof(out), 5);
    struct pcie_link *cable = ntb_cable_of(pair->f.world, &pair->a.ntb->ports[NTB_CABLE]);
    /* Writes: some arrive, the rest never does; the device does not notice. */
    struct fixture_op write = { .op = { .write = true,
                                        .interface = PCIE_REQUESTER_BULK,
                                        .iova = { ntb_window(&pair->a, MAPPED, 0).v },
                                        .bytes = sizeof(out),
                                        .buffer = out,
                                        .done = fixture_op_done,
                                        .context = &write } };
    pcie_requester_submit(world_device(pair->f.world, "dma"), &write.op);
    while (ntb_stats_of(&pair->b)->requests_in < 100)
        sim_run(pair->f.sim, sim_now(pair->f.sim) + 100000, NULL);
    pcie_link_set_up(cable, false);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    assert_true(write.done);
    assert_int_equal(write.status, PCIE_DMA_OK);
    physmem_read(host_physmem(pair->b.host), pair->memory, in, sizeof(in));
    size_t arrived = 0;
    while (arrived < sizeof(in) && in[arrived] == out[arrived])
        arrived++;
    assert_true(arrived > 0 && arrived < sizeof(in));
    for (size_t i = arrived; i < sizeof(in); i++)
        assert_int_equal(in[i], 0); /* nothing after the first that was lost */
    assert_int_equal(pair->a.interrupts[32 + NTB_VECTOR_LINK], 1);
    assert_int_equal(pair->b.interrupts[32 + NTB_VECTOR_LINK], 1);
    /* While it is down: loads give all ones at once, stores vanish. */
    pair_call(pair, down_body);
    assert_int_equal(dma(pair, "dma", false, ntb_window(&pair->a, MAPPED, 0), old, 64),
                     PCIE_DMA_UNSUPPORTED);
    /* Back, once it has trained: as before, with all credits. */
    sim_time plugged_ps = sim_now(pair->f.sim);
    pcie_link_set_up(cable, true);
    pcie_link_set_up(cable, true); /* is going on already */
    sim_run(pair->f.sim, plugged_ps + 20 * SIM_PS_PER_MS - 1, NULL);
    assert_int_equal(pair->a.interrupts[32 + NTB_VECTOR_LINK], 1);
    assert_true(pair->a.ntb->ports[NTB_CABLE].down);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(pair->a.interrupts[32 + NTB_VECTOR_LINK], 2);
    assert_int_equal(dma(pair, "dma", true, ntb_window(&pair->a, MAPPED, 0), out, sizeof(out)),
                     PCIE_DMA_OK);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    expect_bytes(&pair->b, pair->memory.v, out, sizeof(out));
}

/* Reads whose requests or completions are on the wire, or wait in a chip, end by time-out; those
 * that come later are refused. Whatever the moment, nothing is left behind. */
static void reads_end_whenever_the_cable_is_pulled(void **state)
{
    static uint8_t in[65536], other[65536];

    (void)state;
    for (sim_time at_ps = 100000; at_ps < 10000000; at_ps += 731000) {
        struct pair pair;
        pair_open(&pair);
        fill(other, sizeof(other), 7);
        physmem_write(host_physmem(pair.b.host), pair.memory, other, sizeof(other));
        struct fixture_op read = { .op = { .interface = PCIE_REQUESTER_BULK,
                                           .iova = { ntb_window(&pair.a, MAPPED, 0).v },
                                           .bytes = sizeof(in),
                                           .buffer = in,
                                           .done = fixture_op_done,
                                           .context = &read } };
        pcie_requester_submit(world_device(pair.f.world, "dma"), &read.op);
        sim_run(pair.f.sim, sim_now(pair.f.sim) + at_ps, NULL);
        struct pcie_link *cable = ntb_cable_of(pair.f.world, &pair.a.ntb->ports[NTB_CABLE]);
        pcie_link_set_up(cable, false);
        sim_run(pair.f.sim, SIM_TIME_MAX, NULL);
        assert_true(read.done);
        assert_true(read.status == PCIE_DMA_TIMED_OUT || read.status == PCIE_DMA_UNSUPPORTED);
        assert_true(pcie_context_check_idle(world_pcie(pair.f.world)));
        pcie_link_set_up(cable, true);
        sim_run(pair.f.sim, SIM_TIME_MAX, NULL);
        assert_int_equal(dma(&pair, "dma", false, ntb_window(&pair.a, MAPPED, 0), in, sizeof(in)),
                         PCIE_DMA_OK);
        assert_memory_equal(in, other, sizeof(in));
        pair_close(&pair);
    }
}

/* ---- Doorbells ------------------------------------------------------------------------------- */

static void ring_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    struct root_complex_host *rc = ntb_rc(&pair->a);
    (void)f;
    ntb_map(&pair->a, task, 0, ntb_node(pair->b.ntb), NTB_FABRIC_REGISTERS);
    for (unsigned i = 1; i <= 20; i++) {
        uint32_t before = pair->b.interrupts[32 + 7];
        root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, MAPPED, 0x40), 1, i);
        root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, 0, NTB_FABRIC_DOORBELL), 4,
                                1u << 7);
        ntb_sleep(task, 3000000);
        assert_int_equal(pair->b.interrupts[32 + 7], before + 1);
        assert_int_equal(pair->b.seen, i); /* the write before it was visible */
        assert_int_equal(ntb_read(&pair->b, task, NTB_REG_DOORBELL, 4), 1u << 7);
        ntb_write(&pair->b, task, NTB_REG_DOORBELL, 4, 1u << 7);
    }
    /* A doorbell that has not been cleared does not ring again; a masked one rings when its mask
     * is lifted. */
    root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, 0, NTB_FABRIC_DOORBELL), 4, 3);
    ntb_sleep(task, 3000000);
    root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, 0, NTB_FABRIC_DOORBELL), 4, 3);
    ntb_sleep(task, 3000000);
    assert_int_equal(pair->b.interrupts[32], 1);
    assert_int_equal(pair->b.interrupts[33], 1);
    ntb_write(&pair->b, task, NTB_REG_DOORBELL_MASK, 4, 1u << 30);
    root_complex_mmio_write(rc, 0, task, ntb_window(&pair->a, 0, NTB_FABRIC_DOORBELL), 4, 1u << 30);
    ntb_sleep(task, 3000000);
    assert_int_equal(pair->b.interrupts[62], 0);
    ntb_write(&pair->b, task, NTB_REG_DOORBELL_MASK, 4, 0);
    ntb_sleep(task, 3000000);
    assert_int_equal(pair->b.interrupts[62], 1);
}

static void doorbells_come_after_writes(void **state)
{
    struct pair *pair = *state;

    pair_call(pair, interrupts_body);
    pair->b.watched = (struct hpa){ pair->memory.v + 0x40 };
    pair_call(pair, ring_body);
    assert_int_equal(ntb_stats_of(&pair->b)->rings, 23);
}

static void msi_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    ntb_map(&pair->a, task, 1, ntb_node(pair->b.ntb), 0xfee00000);
}

/* A device's interrupt message through a window is a memory write, and comes after its data. */
static void messages_pass_through_windows(void **state)
{
    struct pair *pair = *state;
    static uint8_t data[4096], message[4] = { 0x55, 0, 0, 0 };

    pair_call(pair, msi_body);
    memset(data, 0xee, sizeof(data));
    pair->b.watched = (struct hpa){ pair->memory.v + 4095 };
    struct fixture_op first = { .op = { .write = true,
                                        .interface = PCIE_REQUESTER_BULK,
                                        .iova = { ntb_window(&pair->a, MAPPED, 0).v },
                                        .bytes = sizeof(data),
                                        .buffer = data,
                                        .done = fixture_op_done,
                                        .context = &first } };
    pcie_requester_submit(world_device(pair->f.world, "dma"), &first.op);
    assert_int_equal(dma(pair, "dma", true, ntb_window(&pair->a, 1, 0), message, 4), PCIE_DMA_OK);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(pair->b.interrupts[0x55], 1);
    assert_int_equal(pair->b.seen, 0xee);
}

/* ---- IOMMUs ---------------------------------------------------------------------------------- */

/* The lender's bridge and device stand in a chassis: one switch, below one root port. */
#define CHASSIS(A_IOMMU, B_IOMMU)                                                                  \
    "hosts = { server = { " LIGHT_HOST "iommu = { enabled = " A_IOMMU "; }; "                      \
    "root_complex = { p2p_chunk_bytes = 64; p2p_reads_max = 32; }; "                               \
    "ports = ( { name = \"rp0\"; } ); }; "                                                         \
    "b = { " LIGHT_HOST "iommu = { enabled = " B_IOMMU "; }; ports = ( { name = \"rp0\"; } ); }; " \
    "};"                                                                                           \
    "devices = { " BRIDGE("na", "") BRIDGE("nb", "")                                               \
        REQUESTER("dma", "") "sw = { type = \"pcie.switch\"; lanes = 8; }; };"                     \
                             "cables = ( { from = \"server.s0.rp0\"; to = \"sw.p0\"; " SLOT "}, "  \
                             "{ from = \"sw.p1\"; to = \"na.p0\"; " SLOT "}, "                     \
                             "{ from = \"sw.p2\"; to = \"dma.p0\"; " SLOT "}, "                    \
                             "{ from = \"b.s0.rp0\"; to = \"nb.p0\"; " SLOT "}, "                  \
                             "{ from = \"na.p1\"; to = \"nb.p1\"; length_m = 2.0; " SLOT "} );"

static const struct pcie_switch *chassis_switch(struct pair *pair)
{
    return world_device(pair->f.world, "sw")->state;
}

static void chassis_without_iommus_takes_the_short_way(void **state)
{
    struct pair *pair = *state;
    static uint8_t out[4096], in[4096];

    fill(out, sizeof(out), 21);
    physmem_write(host_physmem(pair->b.host), pair->memory, out, sizeof(out));
    assert_int_equal(dma(pair, "dma", false, ntb_window(&pair->a, MAPPED, 0), in, sizeof(in)),
                     PCIE_DMA_OK);
    assert_memory_equal(in, out, sizeof(in));
    assert_int_equal(ntb_stats_of(&pair->b)->requests_in, 4096 / 512);
    assert_int_equal(chassis_switch(pair)->peer_to_peer, 4096 / 512);
}

static void both_iommus_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    (void)f;
    /* The borrower's memory as its IOMMU shows it; its CPU's pieces and the device's writes come as
     * two requesters. */
    ntb_map(&pair->a, task, MAPPED, ntb_node(pair->b.ntb), pair->memory.v);
}

/* Lender's and borrower's IOMMU on: a read goes up to the lender's root, leaves it in pieces of 64
 * bytes as the root complex's own, and is translated again at the borrower; writes stay whole. */
static void both_iommus_translate(void **state)
{
    struct pair *pair = *state;
    static uint8_t out[4096], in[4096];
    struct hpa real, dummy;
    struct iova iova, device_iova;

    uint16_t proxy[2]; /* in the borrower: of the lender's CPU, of the device */
    proxy[0] = (uint16_t)((ntb_id(pair->b.ntb) & 0xff00) | NTB_INCOMING_FUNCTION_BASE);
    proxy[1] = (uint16_t)(proxy[0] + 5);
    assert_int_equal(host_dma_alloc(pair->b.host, proxy[0], 0, 4096, 4096, &real, &iova), 0);
    struct host *b = pair->b.host, *a = pair->a.host;
    struct iommu_domain *domain = b->domain[0].domain;
    assert_true(iommu_domain_attach(domain, proxy[1]));
    /* At the lender: the device may reach window 8 of the bridge, nothing else. */
    uint16_t device = pcie_requester_id(world_device(pair->f.world, "dma"));
    assert_int_equal(host_dma_alloc(a, device, 0, 4096, 4096, &dummy, &device_iova), 0);
    struct iova shown = { UINT64_C(0x80000000) };
    assert_int_equal(iommu_map(a->domain[0].domain, shown, ntb_window(&pair->a, MAPPED, 0), 4096,
                               4096, IOMMU_READ | IOMMU_WRITE),
                     0);
    /* The window begins at a multiple of its size. */
    assert_int_equal(
        iommu_map(domain, (struct iova){ 256 * MIB }, real, 4096, 4096, IOMMU_READ | IOMMU_WRITE),
        0);
    pair->memory.v = 256 * MIB;
    pair_call(pair, both_iommus_body);

    fill(out, sizeof(out), 77);
    struct hpa at = { shown.v };
    assert_int_equal(dma(pair, "dma", true, at, out, sizeof(out)), PCIE_DMA_OK);
    sim_run(pair->f.sim, SIM_TIME_MAX, NULL);
    expect_bytes(&pair->b, real.v, out, sizeof(out));
    uint64_t writes = ntb_stats_of(&pair->b)->requests_in;
    assert_int_equal(writes, 4096 / 256);
    assert_int_equal(dma(pair, "dma", false, at, in, sizeof(in)), PCIE_DMA_OK);
    assert_memory_equal(in, out, sizeof(in));
    assert_int_equal(ntb_stats_of(&pair->b)->requests_in - writes, 4096 / 64);
    assert_int_equal(chassis_switch(pair)->peer_to_peer,
                     0); /* nobody claims an I/O virtual address */
    /* Beyond what was mapped: the lender's IOMMU says no. */
    at.v += 4096;
    assert_int_equal(dma(pair, "dma", false, at, in, 64), PCIE_DMA_UNSUPPORTED);
    assert_int_equal(ntb_stats_of(&pair->a)->unmapped, 0);
}

/* What a piece takes from the lender's root port to the borrower's memory and back: a load by the
 * lender's CPU goes the same way. */
static void piece_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct pair *pair = arg;
    const struct pcie_port *cable = &pair->a.ntb->ports[NTB_CABLE];
    (void)f;
    ntb_sleep(task, 10000000);
    sim_time start_ps = sim_task_now(task);
    root_complex_mmio_read(ntb_rc(&pair->a), 0, task, ntb_window(&pair->a, MAPPED, 0), 8, NULL);
    pair->piece_ps = sim_task_now(task) - start_ps - 2 * 60000 + pcie_port_wire_ps(cable, 64 - 8);
}

/* Reads that are split and re-originated carry what may be in flight per round trip of a piece. */
static void forwarded_reads_are_bound_by_what_is_in_flight(void **state)
{
    static uint8_t in[8][4096];

    (void)state;
    for (unsigned reads_max = 2; reads_max <= 8; reads_max *= 2) {
        struct pair pair;
        struct fixture_op op[8];
        char *text = g_strdup_printf(PAIR("p2p_chunk_bytes = 64; p2p_reads_max = %u; "), reads_max);
        pair_open_text(&pair, text);
        g_free(text);
        pair_call(&pair, piece_body);
        for (unsigned i = 0; i < 8; i++) {
            op[i].op = (struct pcie_requester_op){ .interface = PCIE_REQUESTER_BULK,
                                                   .iova = { ntb_window(&pair.a, MAPPED, 0).v },
                                                   .bytes = sizeof(in[i]),
                                                   .buffer = in[i],
                                                   .done = fixture_op_done,
                                                   .context = &op[i] };
            pcie_requester_submit(world_device(pair.f.world, "dma"), &op[i].op);
        }
        uint64_t before = ntb_stats_of(&pair.b)->requests_in;
        sim_time at_ps[2];
        for (unsigned i = 0; i < 2; i++) {
            while (ntb_stats_of(&pair.b)->requests_in < before + 64 + 320 * i)
                sim_run(pair.f.sim, sim_now(pair.f.sim) + 5000, NULL);
            at_ps[i] = sim_now(pair.f.sim);
        }
        sim_time expected_ps = 320 * pair.piece_ps / reads_max;
        assert_in_range(at_ps[1] - at_ps[0], expected_ps * 97 / 100, expected_ps * 103 / 100);
        pair_close(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(a_host_sees_its_own_side_only, PAIR("")),
        PAIR_TEST(registers_are_real, PAIR("")),
        PAIR_TEST(loads_and_stores_reach_the_other_host, PAIR("")),
        PAIR_TEST(unloaded_latency_is_the_formula, PAIR("")),
        PAIR_TEST(a_store_takes_one_way, PAIR("")),
        PAIR_TEST(dma_of_a_neighbour_passes, PAIR("")),
        PAIR_TEST(windows_end_where_they_end, PAIR("")),
        PAIR_TEST(both_directions_at_once, PAIR("")),
        PAIR_TEST(requesters_must_be_known, PAIR("")),
        PAIR_TEST(a_full_table_refuses, PAIR("")),
        PAIR_TEST(what_leads_nowhere_is_refused, PAIR("")),
        cmocka_unit_test(short_rings_are_fetched_once),
        PAIR_TEST(what_a_bridge_sends_has_a_digest, PAIR("}; firmware = { ecrc = true;")),
        PAIR_TEST(a_pulled_cable_loses_what_is_on_its_way, PAIR("")),
        cmocka_unit_test(reads_end_whenever_the_cable_is_pulled),
        PAIR_TEST(doorbells_come_after_writes, PAIR("")),
        PAIR_TEST(messages_pass_through_windows, PAIR("")),
        PAIR_TEST(chassis_without_iommus_takes_the_short_way, CHASSIS("false", "false")),
        PAIR_TEST(both_iommus_translate, CHASSIS("true", "true")),
        cmocka_unit_test(forwarded_reads_are_bound_by_what_is_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
