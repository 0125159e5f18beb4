/* Mistakes in hosts, devices, cables and workloads: each its message, all of a file at once, and
 * nothing runs. */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "hw/pci_regs.h"
#include "models/ether/ether.h"
#include "workloads/base/workload.h"
#include "workloads/experiment.h"

#define HOSTS                                                        \
    "hosts = { server = { ports = ( { name = \"rp0\"; lanes = 8; }," \
    "                               { name = \"rp1\"; lanes = 16; } ); }; };\n"
#define DEVICES                                       \
    "devices = { a = { type = \"pcie.requester\"; };" \
    "            b = { type = \"pcie.requester\"; lanes = 16; }; };\n"
#define CABLE    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; } );\n"
#define WORKLOAD "workload = { type = \"pcie_bench\"; device = \"a\"; };\n"

/* The text must be refused with exactly these messages (without the file's name). */
static void refused(const char *text, const char *const *messages)
{
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(text, &errors);
    fixture_fail(&errors);
    assert_false(experiment_check(config, &errors));
    size_t n = 0;
    for (; messages[n] != NULL; n++) {
        bool found = false;
        for (size_t i = 0; i < errors.n_messages; i++)
            found = found || strstr(errors.message[i], messages[n]) != NULL;
        if (!found) {
            for (size_t i = 0; i < errors.n_messages; i++)
                fprintf(stderr, "%s\n", errors.message[i]);
            fail_msg("no message \"%s\"", messages[n]);
        }
    }
    assert_int_equal(errors.n_messages, n);
    sim_error_release(&errors);
    config_free(config);
}

/* What a faulty host or device leaves unknown is passed over, and all else looked at. */
static void test_beside_a_fault(void **unused)
{
    static const char *const device[] = {
        ":2: devices.a.lanes: found \"x4\" (a string), expected an integer",
        ":3: cables.[1].to: found \"c.p0\" (a string), expected a port of a host or device",
        ":4: workload.host: found \"servre\" (a string), expected a host; did you mean \"server\"?",
        ":4: workload.transfr_bytes: unknown setting",
        NULL,
    };
    static const char *const host[] = {
        ":1: hosts.server.cpu.sockets: found 0",
        ":1: hosts.server.cpuu: unknown setting",
        ":3: cables.[0].to: found \"b.p9\"",
        ":4: workload.device: found \"c\" (a string), expected a device of type pcie.requester",
        NULL,
    };
    (void)unused;
    refused(HOSTS "devices = { a = { type = \"pcie.requester\"; lanes = \"x4\"; }; };\n"
                  "cables = ( { from = \"server.s0.rp0\"; to = \"a.p7\"; },"
                  " { from = \"server.s0.rp1\"; to = \"c.p0\"; } );\n"
                  "workload = { type = \"pcie_bench\"; device = \"a\"; host = \"servre\";"
                  " transfr_bytes = 64; };\n",
            device);
    refused("hosts = { server = { cpu = { sockets = 0; }; cpuu = { }; }; };\n"
            "devices = { b = { type = \"pcie.requester\"; }; };\n"
            "cables = ( { from = \"server.s0.rp7\"; to = \"b.p9\"; } );\n"
            "workload = { type = \"pcie_bench\"; device = \"c\"; };\n",
            host);
}

static void test_accepted(void **unused)
{
    struct sim_error_list errors = { 0 };
    struct config *config = fixture_config(HOSTS DEVICES CABLE WORKLOAD, &errors);
    (void)unused;
    assert_true(experiment_check(config, &errors));
    fixture_fail(&errors);
    config_free(config);
}

/* The number of a port is written in digits alone. */
static void test_numbers_of_ports(void **unused)
{
    static const char *const ends[] = { "a.p+0", "a.p 0", "a.p00", "a.p4294967296", "a.p", "a." };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(ends); i++) {
        char text[512], message[64];
        snprintf(message, sizeof(message), "cables.[0].to: found \"%s\"", ends[i]);
        snprintf(text, sizeof(text),
                 HOSTS DEVICES
                 "cables = ( { from = \"server.s0.rp0\"; to = \"%s\"; } );\n" WORKLOAD,
                 ends[i]);
        refused(text, (const char *const[]){ message, NULL });
    }
}

static void test_cables(void **unused)
{
    static const char *const nowhere[] = {
        ":3: cables.[0].to: found \"a.p1\" (a string), expected a port of a host or device; did you "
        "mean \"a.p0\"?",
        ":3: cables.[1].from: found \"server.s0.rp7\" (a string), expected a port of a host or "
        "device; did you mean \"server.s0.rp0\"?",
        NULL,
    };
    static const char *const twice[] = { "port a.p0 is plugged twice", NULL };
    static const char *const unequal[] = { "16 lanes, but port server.s0.rp0 has 8", NULL };
    static const char *const backwards[] = {
        ":3: cables.[0]: found a group, expected a cable from a root port, or a port p1, p2,", NULL
    };
    static const char *const endless[] = { ":3: cables.[0]: ", NULL };
    (void)unused;
    refused(HOSTS DEVICES "cables = ( { from = \"server.s0.rp0\"; to = \"a.p1\"; },"
                          " { from = \"server.s0.rp7\"; to = \"b.p0\"; } );\n"
                          "workload = { type = \"memory\"; };",
            nowhere);
    refused(HOSTS DEVICES "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"
                          " { from = \"server.s0.rp1\"; to = \"a.p0\"; lanes = 8; } );\n" WORKLOAD,
            twice);
    refused(HOSTS DEVICES "cables = ( { from = \"server.s0.rp0\"; to = \"b.p0\"; lanes = 16; } );\n"
                          "workload = { type = \"memory\"; };",
            unequal);
    refused(HOSTS DEVICES "cables = ( { from = \"server.s0.rp0\"; } );\n"
                          "workload = { type = \"memory\"; };",
            endless);
    refused(HOSTS DEVICES "cables = ( { from = \"a.p0\"; to = \"b.p0\"; lanes = 8; } );\n"
                          "workload = { type = \"memory\"; };",
            backwards);
}

#define SWITCHES                                                                  \
    "devices = { x = { type = \"ether.switch\"; ports = 2; rate_gbit_s = 100; };" \
    "            y = { type = \"ether.switch\"; ports = 2; rate_gbit_s = 25; };"  \
    "            b = { type = \"pcie.requester\"; lanes = 16; }; };\n"
#define MEMORY "workload = { type = \"memory\"; };"

static void test_ethernet_cables(void **unused)
{
    static const char *const nowhere[] = {
        ":3: cables.[0].to: found \"y.e2\" (a string), expected a port of a host or device; did you "
        "mean \"y.e0\"?",
        NULL,
    };
    static const char *const mixed[] = {
        ":3: cables.[0]: found a group, expected a cable between two ports of one kind: PCIe (p0, "
        "...), Ethernet (e0, ...)",
        NULL,
    };
    static const char *const fast[] = {
        ":3: a wire of 100 Gbit/s, but Ethernet port y.e0 has at most 25 Gbit/s", NULL
    };
    static const char *const twice[] = { ":3: Ethernet port x.e0 is plugged twice", NULL };
    static const char *const itself[] = { ":3: both ends are InfiniBand port n.i0", NULL };
    static const char *const setting[] = {
        ":3: cables.[0].los_ratio: unknown setting; did you mean \"loss_ratio\"?",
        ":3: cables.[0].lanes: unknown setting",
        NULL,
    };
    (void)unused;
    refused(HOSTS SWITCHES
            "cables = ( { from = \"x.e0\"; to = \"y.e2\"; loss_ratio = 0.1; } );\n" MEMORY,
            nowhere);
    refused(HOSTS SWITCHES "cables = ( { from = \"x.e0\"; to = \"b.p0\"; } );\n" MEMORY, mixed);
    refused(HOSTS SWITCHES
            "cables = ( { from = \"x.e0\"; to = \"y.e0\"; rate_gbit_s = 100; } );\n" MEMORY,
            fast);
    refused(HOSTS SWITCHES "cables = ( { from = \"x.e0\"; to = \"y.e0\"; },"
                           "           { from = \"x.e0\"; to = \"y.e1\"; } );\n" MEMORY,
            twice);
    refused(HOSTS "devices = { n = { type = \"rdma.adapter\"; }; };\n"
                  "cables = ( { from = \"server.s0.rp0\"; to = \"n.p0\"; },"
                  "           { from = \"n.i0\"; to = \"n.i0\"; } );\n" MEMORY,
            itself);
    refused(HOSTS SWITCHES "cables = ( { from = \"x.e0\"; to = \"y.e0\"; los_ratio = 0.1; "
                           "lanes = 4; } );\n" MEMORY,
            setting);
}

/* Frames over a cable of the scenario: its latency and length, its statistics by the port's name,
 * and a fault if one is left. */
static void drop_frame(struct ether_port *port, struct ether_frame *frame)
{
    ether_frame_free(port->model, frame);
}

static void test_ethernet_frames(void **state)
{
    struct world_fixture *f = *state;
    const char *prefix;
    const struct stat_desc *table;
    void *counters;
    bool found = false;
    struct ether_port *from = world_port(f->world, &ether_cable, "x.e0");
    struct ether_port *to = world_port(f->world, &ether_cable, "y.e1");
    assert_non_null(from);
    assert_null(world_port(f->world, &ether_cable, "x.e2"));
    assert_null(world_port(f->world, &ether_cable, "b.p0"));
    assert_ptr_equal(ether_port_peer(from), to);
    assert_true(ether_port_rate_gbit_s(from) == 25.0);
    to->receive = drop_frame;
    struct ether_frame *frame = ether_frame_new(from->model);
    sim_time left_ps = ether_port_send(from, frame, sim_now(f->sim));
    assert_int_equal(frame->tail_ps - left_ps, 115 * SIM_PS_PER_NS);
    for (unsigned i = 0; world_stats(f->world, i, &prefix, &table, &counters); i++)
        if (table == ether_stats_table && strcmp(prefix, "x.e0.tx.") == 0)
            found = ((struct ether_stats *)counters)->frames == 1;
    assert_true(found);
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_true(world_check_idle(f->world));
}

static void test_ethernet_frames_left(void **unused)
{
    (void)unused;
    for (unsigned held = 0; held < 2; held++) {
        struct world_fixture f;
        fixture_open(&f,
                     HOSTS SWITCHES "cables = ( { from = \"x.e0\"; to = \"y.e1\"; } );\n" MEMORY);
        struct ether_port *from = world_port(f.world, &ether_cable, "x.e0");
        struct ether_frame *frame = ether_frame_new(from->model);
        if (held == 0)
            ether_port_send(from, frame, sim_now(f.sim));
        assert_false(world_check_idle(f.world));
        assert_non_null(strstr(sim_error(f.sim), held == 0 ? "1 Ethernet frames sent by x.e0"
                                                           : "still held by a device"));
        world_free(f.world);
        config_free(f.config);
    }
}

/* Cables of the fabric join its ports only; numbers are given once. */
static void test_fabric(void **unused)
{
    static const char *const mixed[] = {
        ":3: cables.[0]: found a group, expected a cable from a root port",
        ":3: cables.[1]: found a group, expected a cable from a root port",
        NULL,
    };
    static const char *const numbers[] = {
        ": n1: expected a `node` that no other bridge or switch has", NULL
    };
    static const char *const windows[] = {
        ": n0: bar2_windows: expected a power of two",
        ": n1: bar2_windows: expected windows of 4 KiB at least",
        NULL,
    };
    (void)unused;
    refused(HOSTS
            "devices = { n0 = { type = \"pcie.ntb\"; }; sw = { type = \"pcie.cluster_switch\"; "
            "}; a = { type = \"pcie.requester\"; }; };\n"
            "cables = ( { from = \"server.s0.rp0\"; to = \"sw.p0\"; }, "
            "{ from = \"n0.p1\"; to = \"a.p0\"; lanes = 8; } );\n"
            "workload = { type = \"memory\"; };",
            mixed);
    refused(HOSTS "devices = { n0 = { type = \"pcie.ntb\"; node = 3; }; "
                  "n1 = { type = \"pcie.ntb\"; node = 3; }; };\n"
                  "cables = ( { from = \"n0.p1\"; to = \"n1.p1\"; } );\n"
                  "workload = { type = \"memory\"; };",
            numbers);
    refused(HOSTS "devices = { n0 = { type = \"pcie.ntb\"; bar2_windows = 5; }; "
                  "n1 = { type = \"pcie.ntb\"; bar2_bytes = 65536; bar2_windows = 32; }; };\n"
                  "workload = { type = \"memory\"; };",
            windows);
}

static void test_devices_and_workloads(void **unused)
{
    static const char *const types[] = {
        ":2: devices.a.type: found \"pcie.requestor\" (a string), expected a device model; did you "
        "mean \"pcie.requester\"?",
        ":3: workload.type: found \"pcie_bensh\" (a string)",
        NULL,
    };
    static const char *const references[] = {
        ":4: workload.device: found \"c\" (a string)",
        ":4: workload.host: found \"servre\" (a string), expected a host; did you mean "
        "\"server\"?",
        ":4: workload.windw_bytes: unknown setting; did you mean \"window_bytes\"?",
        ":5: measure.duration_us: found \"3 GB\" (a size)",
        NULL,
    };
    static const char *const senseless[] = {
        ":4: workload.window_bytes: found 128 (an integer), expected a window of at least one "
        "unit: offset and transfer, in whole lines",
        ":4: workload.memory_socket: found 5 (an integer), expected a socket of the host",
        ":4: workload.iommu_page_bytes: found 8192 (an integer), expected 4 KiB, 2 MiB or 1 GiB",
        NULL,
    };
    static const char *const unplugged[] = {
        "expected a device that cables plug into the workload's host", NULL
    };
    (void)unused;
    refused(HOSTS "devices = { a = { type = \"pcie.requestor\"; lanes = 4; }; };\n"
                  "workload = { type = \"pcie_bensh\"; };",
            types);
    refused(HOSTS DEVICES CABLE
            "workload = { type = \"pcie_bench\"; device = \"c\"; host = \"servre\"; "
            "windw_bytes = 5; };\nmeasure = { duration_us = \"3 GB\"; };",
            references);
    refused(HOSTS DEVICES CABLE
            "workload = { type = \"pcie_bench\"; device = \"a\"; window_bytes = 128; "
            "transfer_bytes = 256; memory_socket = 5; iommu_page_bytes = 8192; };",
            senseless);
    refused(HOSTS DEVICES CABLE "workload = { type = \"pcie_bench\"; device = \"b\"; };",
            unplugged);
}

static void test_hosts(void **unused)
{
    static const char *const ports[] = {
        ":2: hosts.server.ports.[0].socket: found 3 (an integer), expected a socket of this host",
        ":2: hosts.server.ports.[2]: found a group, expected a name no other root port",
        NULL,
    };
    static const char *const groups[] = {
        ":1: hosts.server: found 5 (an integer), expected a group that describes a host", NULL
    };
    (void)unused;
    refused("hosts = { server = {\n ports = ( { name = \"rp0\"; socket = 3; }, { name = \"rp1\"; },"
            " { name = \"rp1\"; } ); }; };\nworkload = { type = \"memory\"; };",
            ports);
    refused("hosts = { server = 5; };\nworkload = { type = \"memory\"; };", groups);
}

#define ROOT_COMPLEX(SETTINGS)                                 \
    "hosts = { server = { ports = ( { name = \"rp0\"; } );\n " \
    "root_complex = { " SETTINGS " }; }; };\n"
#define REQUESTER(SETTINGS) "devices = { a = { type = \"pcie.requester\"; " SETTINGS " }; };\n"

/* Each value is in its range, together they make no sense; nothing is built from them. */
static void test_sizes_and_credits(void **unused)
{
    static const char *const range[] = { ":2: hosts.server.root_complex.inbound_ns: found -1",
                                         NULL };
    static const char *const root_mps[] = { "server.s0.mps_bytes: 192 is not a power of two",
                                            NULL };
    static const char *const chunk[] = {
        "server.s0.p2p_chunk_bytes: 32 is less than a line of 64 bytes", NULL
    };
    static const char *const mps[] = { ":3: a.mps_bytes: found 300, expected a power of two",
                                       NULL };
    static const char *const root_credits[] = {
        ":4: server.s0.rp0-a.p0: port server.s0.rp0 advertises 8 posted data credits, but its "
        "Max_Payload_Size of 256 bytes takes 16",
        NULL,
    };
    static const char *const credits[] = {
        "port a.p0 advertises 32 posted data credits, but its Max_Payload_Size of 1024 bytes takes 64",
        NULL,
    };
    static const char *const switch_credits[] = { "port sw.p0 advertises 8 posted data credits",
                                                  NULL };
    (void)unused;
    refused(ROOT_COMPLEX("inbound_ns = -1;") REQUESTER("") CABLE WORKLOAD, range);
    refused(ROOT_COMPLEX("mps_bytes = 192;") REQUESTER("") CABLE WORKLOAD, root_mps);
    refused(ROOT_COMPLEX("p2p_chunk_bytes = 32;") REQUESTER("") CABLE WORKLOAD, chunk);
    refused(ROOT_COMPLEX("") REQUESTER("mps_bytes = 300;") CABLE WORKLOAD, mps);
    refused(ROOT_COMPLEX("") "devices = { a = { type = \"dsa.accelerator\"; mps_bytes = 300;"
                             " integrated = \"server.s0\"; }; };\n" WORKLOAD,
            mps);
    refused(ROOT_COMPLEX("posted_data_credits = 8;") REQUESTER("") CABLE WORKLOAD, root_credits);
    refused(ROOT_COMPLEX("") REQUESTER("mps_bytes = 1024; posted_data_credits = 32;")
                CABLE WORKLOAD,
            credits);
    refused(ROOT_COMPLEX("") "devices = { sw = { type = \"pcie.switch\"; lanes = 8; "
                             "posted_data_credits = 8; }; };\n"
                             "cables = ( { from = \"server.s0.rp0\"; to = \"sw.p0\"; } );\n"
                             "workload = { type = \"memory\"; };",
            switch_credits);
}

/* ---- After boot ------------------------------------------------------------------------------ */

#define BOOT(SETTINGS_OF_B, IOMMU)                                                 \
    "hosts = { server = { ports = ( { name = \"rp0\"; lanes = 16; },"              \
    "                               { name = \"rp0\"; socket = 1; lanes = 8; } );" \
    "                     iommu = { enabled = " IOMMU "; }; }; };\n"               \
    "devices = { sw = { type = \"pcie.switch\"; };"                                \
    "            a = { type = \"pcie.requester\"; generation = 2; };"              \
    "            b = { type = \"pcie.requester\"; " SETTINGS_OF_B " }; };\n"       \
    "cables = ( { from = \"server.s0.rp0\"; to = \"sw.p0\"; },"                    \
    "           { from = \"sw.p1\"; to = \"a.p0\"; lanes = 4; generation = 2; },"  \
    "           { from = \"server.s1.rp0\"; to = \"b.p0\"; } );\n"

struct links {
    unsigned n, up;
    uint32_t generation[16], lanes[16];
};

static void read_links(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct links *links = arg;
    struct root_complex_host *rcs = host_root_complexes(f->host);
    const struct pcie_found *found = host_functions(f->host, &links->n);
    assert_true(links->n <= 16);
    for (unsigned i = 0; i < links->n; i++) {
        unsigned cap = root_complex_config_read(rcs, 0, task, found[i].id, PCI_CAP_POINTER, 1);
        while (root_complex_config_read(rcs, 0, task, found[i].id, cap, 1) != PCI_CAP_ID_PCIE)
            cap = root_complex_config_read(rcs, 0, task, found[i].id, cap + 1, 1);
        uint32_t status = root_complex_config_read(rcs, 0, task, found[i].id, cap + PCIE_LNKSTA, 2);
        links->generation[i] = status & PCIE_LNKSTA_SPEED_MASK;
        links->lanes[i] = (status & PCIE_LNKSTA_WIDTH_MASK) >> PCIE_LNKSTA_WIDTH_SHIFT;
    }
}

/* Software sees what links have come up with, at both ends. */
static void test_link_status(void **state)
{
    /* s0.rp0, sw upstream, two downstream, a; s1.rp0, b */
    static const uint32_t generation[] = { 3, 3, 2, 0, 2, 3, 3 },
                          lanes[] = { 16, 16, 4, 0, 4, 8, 8 };
    struct world_fixture *f = *state;
    struct links links = { 0 };
    fixture_call(f, read_links, &links);
    assert_int_equal(links.n, 7);
    for (unsigned i = 0; i < links.n; i++) {
        assert_int_equal(links.generation[i], generation[i]);
        assert_int_equal(links.lanes[i], lanes[i]);
    }
}

/* One size for the whole host: a peer behind another socket must be able to take what comes. */
static void test_one_payload_size_per_host(void **state)
{
    struct world_fixture *f = *state;
    unsigned n;
    const struct pcie_found *found = host_functions(f->host, &n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(found[i].mps_bytes, 128);
    assert_int_equal(cfg_mps_bytes(pcie_requester_config_space(world_device(f->world, "a"))), 128);
    assert_int_equal(host_port(f->host, "s0.rp0")->mps_bytes, 128);
    assert_int_equal(world_device(f->world, "sw")->ports[1].mps_bytes, 128);
}

/* Bytes of each node that the tables of both IOMMUs take; `far`: with firmware.iommu_tables_far. */
static void table_bytes(const char *far, uint64_t used[2])
{
    uint64_t free_bytes[2][2];
    for (unsigned on = 0; on < 2; on++) {
        struct world_fixture f;
        struct hpa hpa;
        struct iova iova;
        fixture_open(&f, on ? far : BOOT("", "false"));
        uint16_t id = pcie_requester_id(world_device(f.world, "b"));
        assert_int_equal(host_dma_alloc(f.host, id, 0, 4096, 4096, &hpa, &iova), 0);
        for (unsigned node = 0; node < 2; node++)
            free_bytes[on][node] = physmem_free_bytes(host_physmem(f.host), node);
        fixture_close(&f);
    }
    for (unsigned node = 0; node < 2; node++)
        used[node] = free_bytes[0][node] - free_bytes[1][node];
}

/* Each IOMMU's tables lie in the memory of its own socket, or of the next one. */
static void test_where_iommu_tables_lie(void **unused)
{
    uint64_t used[2], far[2];
    (void)unused;
    table_bytes(BOOT("", "true"), used);
    assert_true(used[0] >= 4096);               /* socket 0: nothing is mapped */
    assert_true(used[1] >= used[0] + 5 * 4096); /* context table, four levels */
    table_bytes(BOOT("", "true; }; firmware = { iommu_tables_far = true"), far);
    assert_int_equal(far[0], used[1]);
    assert_int_equal(far[1], used[0]);
}

/* 7 root ports with switches of 32 ports, an endpoint below some: more functions than have room,
 * though bus numbers suffice. */
static void test_too_many_functions(void **unused)
{
    GString *text = g_string_new("hosts = { server = { cpu = { sockets = 1; }; ports = (");
    struct sim_error_list errors = { 0 };
    (void)unused;
    for (unsigned p = 0; p < 7; p++)
        g_string_append_printf(text, "%s{ name = \"rp%u\"; lanes = 16; }", p ? "," : "", p);
    g_string_append(text, "); }; };\ndevices = {");
    for (unsigned p = 0; p < 7; p++)
        g_string_append_printf(text, "sw%u = { type = \"pcie.switch\"; downstream_ports = 32; };",
                               p);
    for (unsigned d = 0; d < 20; d++)
        g_string_append_printf(text, "d%u = { type = \"pcie.requester\"; };", d);
    g_string_append(text, "};\ncables = (");
    for (unsigned p = 0; p < 7; p++)
        g_string_append_printf(text, "{ from = \"server.s0.rp%u\"; to = \"sw%u.p0\"; },", p, p);
    for (unsigned d = 0; d < 20; d++)
        g_string_append_printf(text, "%s{ from = \"sw0.p%u\"; to = \"d%u.p0\"; }", d ? "," : "",
                               d + 1, d);
    g_string_append(text, ");\n");
    struct config *config = fixture_config(text->str, &errors);
    struct world *world = world_new(config, 1, &errors);
    fixture_fail(&errors);
    assert_false(world_boot(world, NULL));
    assert_non_null(strstr(sim_error(world_sim(world)), "more PCI functions"));
    world_free(world);
    config_free(config);
    g_string_free(text, TRUE);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Nothing left to do before the workload is done is an error, but not before a given time. */
static void test_stalled_workload_fails(void **unused)
{
    struct world_fixture f;
    bool done = false;
    (void)unused;
    fixture_open(&f, BOOT("", "false"));
    struct workload workload = { .world = f.world, .sim = f.sim };
    workload_run_until(&workload, &done, sim_now(f.sim) + SIM_PS_PER_US);
    assert_null(sim_error(f.sim));
    workload_run_until(&workload, &done, SIM_TIME_MAX);
    assert_non_null(strstr(sim_error(f.sim), "the workload is not done, and nothing goes on"));
    world_free(f.world);
    config_free(f.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_beside_a_fault),
        cmocka_unit_test(test_cables),
        cmocka_unit_test(test_numbers_of_ports),
        cmocka_unit_test(test_ethernet_cables),
        WORLD_TEST(test_ethernet_frames,
                   HOSTS SWITCHES "cables = ( { from = \"x.e0\"; to = \"y.e1\"; latency_ns = 100; "
                                  "length_m = 3; } );\n" MEMORY),
        cmocka_unit_test(test_ethernet_frames_left),
        cmocka_unit_test(test_fabric),
        cmocka_unit_test(test_devices_and_workloads),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_sizes_and_credits),
        WORLD_TEST(test_link_status, BOOT("", "false")),
        WORLD_TEST(test_one_payload_size_per_host, BOOT("mps_bytes = 128;", "false")),
        cmocka_unit_test(test_where_iommu_tables_lie),
        cmocka_unit_test(test_too_many_functions),
        cmocka_unit_test(test_stalled_workload_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
