/*
 * Endpoints within the root complex, beside one on a link: found on the root bus of their socket,
 * of type 9h and without link registers; configuration, registers, DMA through the IOMMU, peer to
 * peer and interrupts work, and no TLP passes a link.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/root/rc_internal.h"

#define WORLD(IOMMU) WORLD_WITH(IOMMU, "integrated_ns = 33;")
#define WORLD_WITH(IOMMU, INTEGRATED)                                               \
    "hosts = { server = {"                                                          \
    "  ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"                       \
    "            { name = \"rp1\"; socket = 0; lanes = 8; },"                       \
    "            { name = \"rp0\"; socket = 1; lanes = 8; } );"                     \
    "  iommu = { enabled = " IOMMU "; };"                                           \
    "  root_complex = { inbound_ns = 61; outbound_ns = 47; " INTEGRATED " }; }; };" \
    "devices = { cabled = { type = \"pcie.requester\"; };"                          \
    "  a = { type = \"pcie.requester\"; integrated = \"server.s0\"; };"             \
    "  b = { type = \"pcie.requester\"; integrated = \"server.s1\"; };"             \
    "  n = { type = \"nvme.controller\"; integrated = \"server.s0\"; }; };"         \
    "cables = ( { from = \"server.s0.rp0\"; to = \"cabled.p0\"; } );"

static struct pcie_function *function_of(struct world_fixture *f, const char *device)
{
    return world_device(f->world, device)->ports[0].function;
}

static uint64_t bar_of(struct world_fixture *f, const char *device)
{
    return cfg_bar_base(&function_of(f, device)->cfg, 0);
}

/* ---- Enumeration ----------------------------------------------------------------------------- */

static void config_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct root_complex_host *rcs = host_root_complexes(f->host);
    const struct pcie_function *a = function_of(f, "a");
    const uint16_t id = a->cfg.id;
    const unsigned cap = a->cfg.pcie_cap;
    (void)arg;
    assert_int_equal(root_complex_config_read(rcs, 0, task, id, PCI_VENDOR_ID, 2), 0x19ee);
    assert_int_equal(root_complex_config_read(rcs, 0, task, id, cap + PCIE_CAPABILITIES, 2) >> 4 &
                         0xf,
                     CFG_INTEGRATED_ENDPOINT);
    root_complex_config_write(rcs, 0, task, id, cap + PCIE_LNKCTL, 2, 0xffff);
    for (unsigned at = PCIE_LNKCAP; at < PCIE_LNKCAP + 8; at += 4)
        assert_int_equal(root_complex_config_read(rcs, 0, task, id, cap + at, 4), 0);
    assert_int_equal(root_complex_config_read(rcs, 0, task, id, cap + PCIE_LNKCAP2, 4), 0);
    /* Neither another function of the device nor the device behind the last. */
    assert_int_equal(root_complex_config_read(rcs, 0, task, id + 1, PCI_VENDOR_ID, 2), 0xffff);
    assert_int_equal(root_complex_config_read(rcs, 0, task, pcie_id(0, 5, 0), PCI_VENDOR_ID, 2),
                     0xffff);
    /* It can be reset, and then has no addresses. */
    root_complex_config_write(rcs, 0, task, id, cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_FLR);
    assert_int_equal(root_complex_config_read(rcs, 0, task, id, PCI_COMMAND, 2), 0);
    assert_int_equal(a->stats.resets, 1);
}

static void test_found_on_the_root_bus(void **state)
{
    struct world_fixture *f = *state;
    unsigned n;
    uint16_t id;
    host_functions(f->host, &n);
    assert_int_equal(n, 3 + 1 + 3); /* root ports, what is behind one of them, integrated */
    assert_int_equal(function_of(f, "a")->cfg.id, pcie_id(0, 3, 0)); /* behind two root ports */
    assert_int_equal(function_of(f, "n")->cfg.id, pcie_id(0, 4, 0));
    assert_int_equal(function_of(f, "b")->cfg.id, pcie_id(128, 2, 0));
    assert_int_equal(function_of(f, "cabled")->cfg.id >> 8, 1);
    assert_true(world_function_id(world_device(f->world, "b"), 0, &id));
    assert_int_equal(id, pcie_id(128, 2, 0));
    assert_ptr_equal(world_host_of(f->world, world_device(f->world, "b")), f->host);
    fixture_call(f, config_body, NULL);
}

/* ---- Registers ------------------------------------------------------------------------------- */

struct mmio {
    uint64_t address, value;
    sim_time took_ps;
};

static void mmio_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct mmio *mmio = arg;
    struct root_complex_host *rcs = host_root_complexes(f->host);
    root_complex_mmio_write(rcs, 0, task, (struct hpa){ mmio->address }, 8,
                            UINT64_C(0x1122334455667788));
    sim_task_charge(task, SIM_PS_PER_US);
    sim_task_sync(task);
    const sim_time start_ps = sim_task_now(task);
    mmio->value = root_complex_mmio_read(rcs, 0, task, (struct hpa){ mmio->address }, 8, NULL);
    mmio->took_ps = sim_task_now(task) - start_ps;
}

/* Within the root complex both ways, the register's latency (none) between them, and no link. */
static void test_registers_answer_without_a_link(void **state)
{
    struct world_fixture *f = *state;
    struct mmio mmio;
    mmio.address = bar_of(f, "a") + 64;
    fixture_call(f, mmio_body, &mmio);
    assert_int_equal(mmio.value, UINT64_C(0x1122334455667788));
    assert_int_equal(mmio.took_ps, 2 * 33000);
    mmio.address = bar_of(f, "b") + 64;
    fixture_call(f, mmio_body, &mmio);
    assert_int_equal(mmio.value, UINT64_C(0x1122334455667788));
    assert_true(mmio.took_ps > 2 * 33000); /* over the interconnect */
}

/* Unless integrated_ns says else, in the ports' times. */
static void test_times_of_ports_by_default(void **state)
{
    struct world_fixture *f = *state;
    struct mmio mmio = { .address = bar_of(f, "a") + 64 };
    fixture_call(f, mmio_body, &mmio);
    assert_int_equal(mmio.took_ps, 47000 + 61000);
}

/* A line that must be answered (ENQCMD) reaches registers, on a link or not, which do not take it,
 * and what is no device. */
static void enqueue_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    static const char *const devices[] = { "cabled", "a", "n" };
    static const uint8_t line[64] = { 1 };
    struct root_complex_host *rcs = host_root_complexes(f->host);
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        const struct pcie_function *function = function_of(f, devices[i]);
        const uint64_t before = *function->unsupported;
        assert_false(
            root_complex_mmio_enqueue(rcs, 0, task, (struct hpa){ bar_of(f, devices[i]) }, line));
        assert_int_equal(*function->unsupported, before + 1);
        assert_int_equal(
            root_complex_mmio_read(rcs, 0, task, (struct hpa){ bar_of(f, "a") }, 8, NULL), 0);
    }
    assert_false(root_complex_mmio_enqueue(rcs, 0, task, (struct hpa){ UINT64_C(1) << 45 }, line));
}

static void test_a_line_is_refused(void **state)
{
    fixture_call(*state, enqueue_body, NULL);
}

static void no_way_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    static const uint8_t line[64] = { 1 };
    struct root_complex_host *rcs = host_root_complexes(f->host);
    const struct pcie_function *function = function_of(f, "cabled");
    const uint64_t *arrived = arg;
    const struct hpa at = { bar_of(f, "cabled") };
    assert_false(root_complex_mmio_enqueue(rcs, 0, task, at, line));
    assert_int_equal(*function->unsupported, *arrived);
    root_complex_mmio_write(rcs, 0, task, at, 8, 5);
    assert_int_equal(root_complex_mmio_read(rcs, 0, task, at, 8, NULL), 5);
}

/* A device has buffers for a line, however few its credits; a switch may have none, and then nobody
 * is sent one. */
static void test_a_line_needs_buffers(void **unused)
{
#define FEW(SWITCH)                                                                      \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); }; };" \
    "devices = { sw = { type = \"pcie.switch\"; downstream_ports = 1; " SWITCH " };"     \
    "  cabled = { type = \"pcie.requester\"; non_posted_header_credits = 1; }; };"       \
    "cables = ( { from = \"server.s0.rp0\"; to = \"sw.p0\"; },"                          \
    "           { from = \"sw.p1\"; to = \"cabled.p0\"; } );"
    static const char *const texts[] = { FEW("non_posted_data_credits = 3;"),
                                         FEW("non_posted_data_credits = 4;") };
    (void)unused;
    for (uint64_t arrives = 0; arrives < 2; arrives++) {
        struct world_fixture f;
        fixture_open(&f, texts[arrives]);
        fixture_call(&f, no_way_body, &arrives);
        fixture_close(&f);
    }
}

/* ---- DMA ------------------------------------------------------------------------------------- */

static enum pcie_dma_status transfer(struct world_fixture *f, const char *device, bool write,
                                     uint64_t iova, uint8_t *buffer, uint32_t bytes,
                                     struct sim_stamp *stamp)
{
    struct fixture_op op = { .op = { .write = write,
                                     .interface = PCIE_REQUESTER_BULK,
                                     .iova = { iova },
                                     .bytes = bytes,
                                     .buffer = buffer,
                                     .stamp = stamp } };
    return fixture_dma(f, device, &op);
}

static void dma_with(const char *text, bool iommu)
{
    static const char *const devices[] = { "a", "b" };
    struct world_fixture f;
    fixture_open(&f, text);
    for (unsigned d = 0; d < 2; d++) {
        uint8_t sent[3000], there[3000], back[3000];
        struct sim_stamp stamp;
        struct hpa hpa;
        struct iova iova;
        for (unsigned i = 0; i < sizeof(sent); i++)
            sent[i] = (uint8_t)(i * 7 + d);
        assert_int_equal(
            host_dma_alloc(f.host, function_of(&f, devices[d])->cfg.id, d, 8192, 4096, &hpa, &iova),
            0);
        assert_int_equal(iova.v == hpa.v, !iommu);
        assert_int_equal(transfer(&f, devices[d], true, iova.v + 100, sent, sizeof(sent), NULL),
                         PCIE_DMA_OK);
        assert_int_equal(transfer(&f, devices[d], false, iova.v + 100, back, sizeof(back), &stamp),
                         PCIE_DMA_OK);
        physmem_read(numa_physmem(host_numa(f.host)), (struct hpa){ hpa.v + 100 }, there,
                     sizeof(there));
        assert_memory_equal(there, sent, sizeof(sent));
        assert_memory_equal(back, sent, sizeof(sent));
        assert_int_equal(stamp.part_ps[PART_LINK] + stamp.part_ps[PART_CREDIT], 0);
        assert_true(stamp.part_ps[PART_ROOT_COMPLEX] >= 2 * 33000);
        assert_int_equal(stamp.part_ps[PART_IOMMU] != 0, iommu);
        if (iommu) /* a page that is not its own */
            assert_int_equal(
                transfer(&f, devices[!d], false, iova.v + 100, back, sizeof(back), NULL),
                PCIE_DMA_UNSUPPORTED);
    }
    fixture_close(&f);
}

static void test_bytes_reach_memory(void **unused)
{
    (void)unused;
    dma_with(WORLD("false"), false);
    dma_with(WORLD("true"), true);
}

/* Its lines take the buffers of stack 0, of which no root port of its socket is. */
static void test_lines_take_buffers(void **unused)
{
    static const char text[] =
        "hosts = { server = { cpu = { sockets = 1; };"
        "  ports = ( { name = \"rp0\"; lanes = 8; stack = 3; } );"
        "  root_complex = { write_lines = 2; read_lines = 2; }; }; };"
        "devices = { a = { type = \"pcie.requester\"; integrated = \"server.s0\"; }; };";
    struct world_fixture f;
    uint8_t bytes[4096] = { 1 };
    struct hpa hpa;
    struct iova iova;
    (void)unused;
    fixture_open(&f, text);
    assert_int_equal(
        host_dma_alloc(f.host, function_of(&f, "a")->cfg.id, 0, 4096, 4096, &hpa, &iova), 0);
    const struct rc_state *rc = host_root_complexes(f.host)->rc[0]->state;
    assert_int_equal(transfer(&f, "a", true, iova.v, bytes, 4096, NULL), PCIE_DMA_OK);
    assert_int_equal(transfer(&f, "a", false, iova.v, bytes, 4096, NULL), PCIE_DMA_OK);
    assert_int_equal(rc->stats.write_lines, 64);
    assert_true(rc->stats.write_line_wait_ps > 0);
    assert_true(rc->stats.read_line_wait_ps > 0);
    fixture_close(&f);
}

/* From each requester to the registers of each other one, on a link or not. */
static void test_peers_reach_each_other(void **state)
{
    static const char *const devices[] = { "cabled", "a", "b" };
    struct world_fixture *f = *state;
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++) {
            uint8_t sent[8], back[8];
            memset(sent, (int)(16 * from + to), sizeof(sent));
            const uint64_t at = bar_of(f, devices[to]) + 8 * from;
            if (from == to)
                continue;
            assert_int_equal(transfer(f, devices[from], true, at, sent, 8, NULL), PCIE_DMA_OK);
            assert_int_equal(transfer(f, devices[from], false, at, back, 8, NULL), PCIE_DMA_OK);
            assert_memory_equal(back, sent, 8);
        }
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

struct seen {
    unsigned n;
    uint32_t destination;
    uint8_t vector;
};

static void on_interrupt(void *context, uint32_t destination, uint8_t vector)
{
    struct seen *seen = context;
    seen->n++;
    seen->destination = destination;
    seen->vector = vector;
}

static void unmask_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct root_complex_host *rcs = host_root_complexes(f->host);
    const struct pcie_function *n = function_of(f, "n");
    const uint64_t entry = bar_of(f, "n") + n->desc.msix_table + 3 * PCI_MSIX_ENTRY_BYTES;
    (void)arg;
    root_complex_config_write(rcs, 0, task, n->cfg.id, n->cfg.msix_cap + PCI_MSIX_CONTROL, 2,
                              PCI_MSIX_CONTROL_ENABLE);
    root_complex_mmio_write(rcs, 0, task, (struct hpa){ entry }, 8, 0xfee00000u | 2u << 12);
    root_complex_mmio_write(rcs, 0, task, (struct hpa){ entry + 8 }, 8, 0x41); /* and unmasked */
    assert_int_equal(root_complex_mmio_read(rcs, 0, task, (struct hpa){ entry + 8 }, 4, NULL),
                     0x41);
}

static void test_messages_reach_a_core(void **state)
{
    struct world_fixture *f = *state;
    struct seen seen = { 0 };
    host_root_complexes(f->host)->interrupt = on_interrupt;
    host_root_complexes(f->host)->interrupt_context = &seen;
    fixture_call(f, unmask_body, NULL);
    pcie_function_interrupt(function_of(f, "n"), 3);
    sim_run(f->sim, sim_now(f->sim) + 10 * SIM_PS_PER_US, NULL);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.destination, 2);
    assert_int_equal(seen.vector, 0x41);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void expect_mistake(const char *devices, const char *message)
{
    static const char *const host =
        "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); }; };";
    struct sim_error_list errors = { 0 };
    char *text = g_strconcat(host, devices, NULL);
    struct config *config = fixture_config(text, &errors);
    struct world *world = world_new(config, 1, &errors);
    assert_true(errors.n_messages >= 1);
    assert_non_null(strstr(errors.message[0], message));
    world_free(world);
    config_free(config);
    sim_error_release(&errors);
    g_free(text);
}

static void test_mistakes_are_told(void **unused)
{
    (void)unused;
    expect_mistake("devices = { a = { type = \"pcie.requester\"; integrated = \"server.s9\"; }; };",
                   "a socket of a host");
    expect_mistake("devices = { a = { type = \"pcie.requester\"; integrated = true; }; };",
                   "expected one of \"server.s0\", \"server.s1\"");
    expect_mistake("devices = { s = { type = \"pcie.switch\"; integrated = \"server.s0\"; }; };",
                   "only endpoints can be integrated");
    expect_mistake("devices = { s = { type = \"ether.switch\"; integrated = \"server.s0\"; }; };",
                   "only endpoints can be integrated");
    expect_mistake("devices = { a = { type = \"pcie.requester\"; integrated = \"server.s0\"; }; };"
                   "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; } );",
                   "its device is integrated into server.s0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(test_found_on_the_root_bus, WORLD("false")),
        WORLD_TEST(test_registers_answer_without_a_link, WORLD("false")),
        WORLD_TEST(test_times_of_ports_by_default, WORLD_WITH("false", "")),
        WORLD_TEST(test_a_line_is_refused, WORLD("false")),
        cmocka_unit_test(test_a_line_needs_buffers),
        cmocka_unit_test(test_bytes_reach_memory),
        cmocka_unit_test(test_lines_take_buffers),
        WORLD_TEST(test_peers_reach_each_other, WORLD("false")),
        WORLD_TEST(test_messages_reach_a_core, WORLD("false")),
        cmocka_unit_test(test_mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
