/* Hosts in clusters: one switch, seven in cascade with 60 hosts, more nodes than a requester ID can
 * name, multicast, what saturated paths carry. */
#include "tests/support/ntb_rig.h"

#include <string.h>

#define LINK      "latency_ns = 50; skp_overhead_ratio = 0.0; training_us = 100; "
#define MIB       UINT64_C(0x100000)
#define BUFFER    (16 * MIB) /* in every host: what its neighbours write to */
#define MC_BUFFER (32 * MIB)
#define MC_LOG2   16u /* a group: 64 KiB */

struct cluster {
    struct world_fixture f;
    GString *text;
    unsigned n_hosts;
    struct ntb_node *node;
};

/* Hosts `server`, h1, ... with a bridge n0, n1, ... each; every one has a requester d0, ... if
 * asked for. */
static void describe_hosts(struct cluster *c, unsigned n_hosts, bool requesters, const char *ntb)
{
    c->n_hosts = n_hosts;
    c->text = g_string_new("hosts = { ");
    for (unsigned i = 0; i < n_hosts; i++) {
        char *name = i == 0 ? g_strdup("server") : g_strdup_printf("h%u", i);
        g_string_append_printf(c->text,
                               "%s = { " LIGHT_HOST
                               "ports = ( { name = \"rp0\"; }, { name = \"rp1\"; } ); };\n",
                               name);
        g_free(name);
    }
    g_string_append(c->text, "};\ndevices = { ");
    for (unsigned i = 0; i < n_hosts; i++) {
        g_string_append_printf(c->text,
                               "n%u = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; "
                               "bar2_bytes = 67108864; bar2_windows = 64; %s };\n",
                               i, ntb);
        if (requesters)
            g_string_append_printf(c->text,
                                   "d%u = { type = \"pcie.requester\"; lanes = 8; "
                                   "bar_bytes = 65536; extended_tags = true; "
                                   "completion_timeout_us = 60; };\n",
                                   i);
    }
}

static void describe_plugs(struct cluster *c, bool requesters)
{
    g_string_append(c->text, "};\ncables = ( ");
    for (unsigned i = 0; i < c->n_hosts; i++) {
        char *name = i == 0 ? g_strdup("server") : g_strdup_printf("h%u", i);
        g_string_append_printf(c->text, "%s{ from = \"%s.s0.rp0\"; to = \"n%u.p0\"; " LINK "}",
                               i == 0 ? "" : ",\n", name, i);
        if (requesters)
            g_string_append_printf(c->text, ",\n{ from = \"%s.s0.rp1\"; to = \"d%u.p0\"; " LINK "}",
                                   name, i);
        g_free(name);
    }
}

/* One switch `sw` for all. */
static void describe_one_switch(struct cluster *c, unsigned n_hosts, const char *sw)
{
    describe_hosts(c, n_hosts, true, "");
    g_string_append_printf(c->text, "sw = { type = \"pcie.cluster_switch\"; ports = %u; %s };\n",
                           n_hosts, sw);
    describe_plugs(c, true);
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(c->text, ",\n{ from = \"n%u.p1\"; to = \"sw.p%u\"; " LINK "}", i, i);
    g_string_append(c->text, " );\n");
}

/* A top switch and as many below it as are needed for `per_switch` hosts each. */
static void describe_cascade(struct cluster *c, unsigned n_hosts, unsigned per_switch,
                             bool requesters, const char *ntb)
{
    unsigned n_switches = (n_hosts + per_switch - 1) / per_switch;
    describe_hosts(c, n_hosts, requesters, ntb);
    g_string_append_printf(c->text, "top = { type = \"pcie.cluster_switch\"; ports = %u; };\n",
                           n_switches);
    for (unsigned s = 0; s < n_switches; s++)
        g_string_append_printf(c->text, "s%u = { type = \"pcie.cluster_switch\"; ports = %u; };\n",
                               s, per_switch + 1);
    describe_plugs(c, requesters);
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(c->text, ",\n{ from = \"n%u.p1\"; to = \"s%u.p%u\"; " LINK "}", i,
                               i / per_switch, 1 + i % per_switch);
    for (unsigned s = 0; s < n_switches; s++)
        g_string_append_printf(c->text, ",\n{ from = \"s%u.p0\"; to = \"top.p%u\"; " LINK "}", s,
                               s);
    g_string_append(c->text, " );\n");
}

static void cluster_open(struct cluster *c)
{
    fixture_open(&c->f, c->text->str);
    g_string_free(c->text, TRUE);
    c->node = calloc(c->n_hosts, sizeof(*c->node));
    assert_non_null(c->node);
    for (unsigned i = 0; i < c->n_hosts; i++) {
        char *host = i == 0 ? g_strdup("server") : g_strdup_printf("h%u", i);
        char *ntb = g_strdup_printf("n%u", i);
        ntb_node_open(&c->node[i], &c->f, host, ntb);
        g_free(host);
        g_free(ntb);
    }
}

static int cluster_set_up(void **state)
{
    struct fixture_test *t = *state;
    t->fixture = calloc(1, sizeof(struct cluster));
    return 0;
}

static int cluster_tear_down(void **state)
{
    struct fixture_test *t = *state;
    struct cluster *c = t->fixture;
    if (t->passed) {
        sim_run(c->f.sim, SIM_TIME_MAX, NULL);
        assert_true(pcie_context_check_idle(world_pcie(c->f.world)));
    }
    free(c->node);
    return fixture_tear_down(state);
}

/* The test describes its cluster and opens it; it is closed behind it. */
#define CLUSTER_TEST(test) FIXTURE_TEST(test, cluster_set_up, cluster_tear_down, NULL)

static struct model *requester_of(struct cluster *c, unsigned i)
{
    char name[16];
    snprintf(name, sizeof(name), "d%u", i);
    return world_device(c->f.world, name);
}

/* Every host shows its neighbours' buffers: window w of host i is that of host i + 1 + w. CPUs are
 * device 0, requesters device 1 of their hosts. */
static void ring_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    (void)f;
    for (unsigned i = 0; i < c->n_hosts; i++) {
        ntb_enable(&c->node[i], task);
        if (requester_of(c, i) != NULL)
            ntb_out(&c->node[i], task, 1, pcie_requester_id(requester_of(c, i)));
        for (unsigned w = 0; w < 2; w++) {
            unsigned to = (i + 1 + w) % c->n_hosts;
            ntb_map(&c->node[i], task, w, ntb_node(c->node[to].ntb), BUFFER);
            ntb_in(&c->node[to], task, w, ntb_node(c->node[i].ntb), 0);
            ntb_in(&c->node[to], task, 10 + w, ntb_node(c->node[i].ntb), 1);
        }
    }
}

static void write_ring_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    (void)f;
    for (unsigned i = 0; i < c->n_hosts; i++)
        for (unsigned w = 0; w < 2; w++)
            root_complex_mmio_write(ntb_rc(&c->node[i]), 0, task,
                                    ntb_window(&c->node[i], w, 0x1000 + 8 * i), 8,
                                    UINT64_C(0xabcd000000000000) + i * 16 + w);
    for (unsigned i = 0; i < c->n_hosts; i++)
        for (unsigned w = 0; w < 2; w++)
            assert_int_equal(root_complex_mmio_read(ntb_rc(&c->node[i]), 0, task,
                                                    ntb_window(&c->node[i], w, 0x1000 + 8 * i), 8,
                                                    NULL),
                             UINT64_C(0xabcd000000000000) + i * 16 + w);
}

static void expect_ring(struct cluster *c)
{
    for (unsigned i = 0; i < c->n_hosts; i++)
        for (unsigned w = 0; w < 2; w++)
            assert_int_equal(physmem_read64(host_physmem(c->node[(i + 1 + w) % c->n_hosts].host),
                                            (struct hpa){ BUFFER + 0x1000 + 8 * i }),
                             UINT64_C(0xabcd000000000000) + i * 16 + w);
}

/* ---- One switch ------------------------------------------------------------------------------ */

static void three_hosts_reach_each_other(void **state)
{
    struct cluster *c = *state;

    describe_one_switch(c, 3, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, write_ring_body, c);
    expect_ring(c);
    const struct cluster_switch *sw = world_device(c->f.world, "sw")->state;
    assert_int_equal(sw->unroutable, 0);
    assert_int_equal(sw->node, 4);
}

/* One chip more on the way: its latency and a cable, both ways. */
static void latency_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    const struct pcie_port *cable = &c->node[0].ntb->ports[NTB_CABLE];
    struct sim_stamp stamp;
    (void)f;
    ntb_sleep(task, 10000000);
    sim_stamp_start(&stamp, sim_task_now(task));
    root_complex_mmio_read(ntb_rc(&c->node[0]), 0, task, ntb_window(&c->node[0], 0, 0), 4, &stamp);
    assert_int_equal(stamp.part_ps[PART_LINK] + stamp.part_ps[PART_SWITCH],
                     2 * (4 * 50000 + 2 * 110000 + 170000) + pcie_port_wire_ps(cable, 24) +
                         pcie_port_wire_ps(cable, 24));
}

static void a_switch_adds_its_latency(void **state)
{
    struct cluster *c = *state;

    describe_one_switch(c, 2, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, latency_body, c);
}

static void registers_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    struct ntb_node *a = &c->node[0];
    struct root_complex_host *rc = ntb_rc(a);
    (void)f;
    /* As whoever is at the end of the cable, and by its number. */
    for (unsigned i = 0; i < 2; i++) {
        ntb_map(a, task, 40, i == 0 ? NTB_NODE_PARTNER : 4, NTB_FABRIC_REGISTERS);
        ntb_map(a, task, 41, i == 0 ? NTB_NODE_PARTNER : 4, NTB_FABRIC_REGISTERS | MIB);
        assert_int_equal(
            root_complex_mmio_read(rc, 0, task, ntb_window(a, 40, CLUSTER_ID), 4, NULL),
            CLUSTER_SWITCH_ID);
        assert_int_equal(
            root_complex_mmio_read(rc, 0, task, ntb_window(a, 40, CLUSTER_LINKS), 8, NULL), 7);
        assert_int_equal(
            root_complex_mmio_read(rc, 0, task, ntb_window(a, 40, CLUSTER_NEIGHBOUR + 4), 4, NULL),
            CLUSTER_NEIGHBOUR_VALID | 4 << CLUSTER_NEIGHBOUR_MPS_SHIFT | 2); /* 2048 bytes */
        assert_int_equal(root_complex_mmio_read(
                             rc, 0, task, ntb_window(a, 41, CLUSTER_ROUTE - MIB + 4 * 3), 4, NULL),
                         CLUSTER_ROUTE_VALID | 2);
    }
    /* A route taken away, and given back. */
    root_complex_mmio_write(rc, 0, task, ntb_window(a, 41, CLUSTER_ROUTE - MIB + 4 * 2), 4, 0);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, ntb_window(a, 0, 0), 4, NULL), UINT32_MAX);
    root_complex_mmio_write(rc, 0, task, ntb_window(a, 41, CLUSTER_ROUTE - MIB + 4 * 2), 4,
                            CLUSTER_ROUTE_VALID | 1);
    assert_int_equal(root_complex_mmio_read(rc, 0, task, ntb_window(a, 0, 0), 4, NULL), 0);
}

static void switches_have_registers_on_the_fabric(void **state)
{
    struct cluster *c = *state;

    describe_one_switch(c, 3, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, registers_body, c);
    assert_int_equal(((struct cluster_switch *)world_device(c->f.world, "sw")->state)->unroutable,
                     1);
}

static void scarce_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    (void)f;
    for (unsigned i = 0; i < 3; i++) /* two entries: the third CPU comes too late */
        assert_int_equal(root_complex_mmio_read(ntb_rc(&c->node[i]), 0, task,
                                                ntb_window(&c->node[i], 0, 0), 4, NULL),
                         i < 2 ? 0 : UINT32_MAX);
    /* Host 0 gives its own up, as its last request that way. */
    ntb_map(&c->node[0], task, 41, NTB_NODE_PARTNER, NTB_FABRIC_REGISTERS | 2 * MIB);
    root_complex_mmio_write(ntb_rc(&c->node[0]), 0, task,
                            ntb_window(&c->node[0], 41, CLUSTER_REQUESTER - 2 * MIB + 4), 4, 0);
    ntb_sleep(task, 3000000);
    assert_int_equal(root_complex_mmio_read(ntb_rc(&c->node[2]), 0, task,
                                            ntb_window(&c->node[2], 0, 0), 4, NULL),
                     0);
}

static void entries_for_requesters_are_limited(void **state)
{
    struct cluster *c = *state;

    describe_one_switch(c, 3, "requesters = 2; ");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, scarce_body, c);
    const struct cluster_switch *sw = world_device(c->f.world, "sw")->state;
    assert_int_equal(sw->table_full, 1);
    assert_int_equal(sw->n_entries, 2);
}

static void no_route_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    struct ntb_node *a = &c->node[0], *b = &c->node[1];
    const struct cluster_switch *sw = world_device(f->world, "sw")->state;

    /* There is no way to host 2 any more, and nobody has subscribed to a group. */
    ntb_map(a, task, 41, NTB_NODE_PARTNER, NTB_FABRIC_REGISTERS | MIB);
    ntb_map(a, task, 42, NTB_NODE_MULTICAST, 0);
    root_complex_mmio_write(ntb_rc(a), 0, task, ntb_window(a, 41, CLUSTER_ROUTE - MIB + 4 * 3), 4,
                            0);
    assert_int_equal(root_complex_mmio_read(ntb_rc(a), 0, task, ntb_window(a, 1, 0), 4, NULL),
                     UINT32_MAX);
    root_complex_mmio_write(ntb_rc(a), 0, task, ntb_window(a, 42, 0), 4, 0);
    ntb_sleep(task, 3000000);
    assert_int_equal(sw->unroutable, 1);
    assert_int_equal(sw->multicast_blocked, 1);
    assert_int_equal(sw->n_entries, 0);
    assert_int_equal(root_complex_mmio_read(ntb_rc(b), 0, task, ntb_window(b, 1, 0), 4, NULL), 0);
    assert_int_equal(sw->n_entries, 1);
}

/* The one entry that there is is left to a request that has somewhere to go. */
static void what_is_not_passed_on_takes_no_entry(void **state)
{
    struct cluster *c = *state;

    describe_one_switch(c, 3, "requesters = 1; ");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, no_route_body, c);
    const struct cluster_switch *sw = world_device(c->f.world, "sw")->state;
    assert_int_equal(sw->table_full, 0);
}

/* TLPs above Max_Payload_Size of the switch are malformed (PCIe Base 3.1, 2.2.2): dropped, requests
 * as well as answers. The trees of the hosts have 256 bytes; short reads are answered in lines. */
static void a_switch_drops_payloads_that_are_too_large(void **state)
{
    struct cluster *c = *state;
    const struct {
        bool write;
        uint32_t bytes;
        uint64_t oversized;
    } test[] = { { true, 128, 0 }, { true, 256, 1 }, { false, 128, 1 }, { false, 512, 3 } };

    describe_one_switch(c, 2, "mps_bytes_max = 128; ");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    const struct cluster_switch *sw = world_device(c->f.world, "sw")->state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(test); i++) {
        const uint64_t arrived = ntb_stats_of(&c->node[1])->requests_in, dropped = sw->oversized;
        struct fixture_op one = { .op = { .write = test[i].write,
                                          .interface = PCIE_REQUESTER_BULK,
                                          .iova = { ntb_window(&c->node[0], 0, 0).v },
                                          .bytes = test[i].bytes } };
        const enum pcie_dma_status status = fixture_dma(&c->f, "d0", &one);
        sim_run(c->f.sim, sim_now(c->f.sim) + SIM_PS_PER_MS, NULL);
        const bool drops = test[i].oversized != dropped;
        assert_int_equal(sw->oversized, test[i].oversized);
        assert_int_equal(ntb_stats_of(&c->node[1])->requests_in,
                         arrived + !(drops && test[i].write));
        /* Nobody tells who writes; who reads waits for its completion time-out. */
        assert_int_equal(status == PCIE_DMA_OK, test[i].write || !drops);
    }
}

static void cut_off_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    (void)f;
    assert_int_equal(root_complex_mmio_read(ntb_rc(&c->node[0]), 0, task,
                                            ntb_window(&c->node[0], 0, 0), 4, NULL),
                     UINT32_MAX);
    assert_int_equal(root_complex_mmio_read(ntb_rc(&c->node[0]), 0, task,
                                            ntb_window(&c->node[0], 1, 0), 4, NULL),
                     0);
    assert_int_equal(ntb_read(&c->node[0], task, NTB_REG_STATUS, 4), NTB_STATUS_LINK_UP);
}

static void a_far_cable_is_pulled(void **state)
{
    struct cluster *c = *state;

    describe_one_switch(c, 3, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    pcie_link_set_up(ntb_cable_of(c->f.world, &c->node[1].ntb->ports[NTB_CABLE]), false);
    fixture_call(&c->f, cut_off_body, c);
    pcie_link_set_up(ntb_cable_of(c->f.world, &c->node[1].ntb->ports[NTB_CABLE]), true);
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    fixture_call(&c->f, write_ring_body, c);
    expect_ring(c);
}

/* ---- Saturated ------------------------------------------------------------------------------- */

#define STREAM_OPS   64u
#define STREAM_BYTES 4096u

struct stream {
    struct pcie_requester_op op[STREAM_OPS];
    struct sim *sim;
    unsigned n_left;
    sim_time done_ps;
};

static void stream_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct stream *stream = op->context;
    assert_int_equal(status, PCIE_DMA_OK);
    stream->n_left--;
    stream->done_ps = sim_now(stream->sim);
}

/* All operations at once; how long until the last is done. */
static sim_time stream_run(struct cluster *c, bool write, uint32_t bytes)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    assert_non_null(stream);
    stream->sim = c->f.sim;
    stream->n_left = STREAM_OPS;
    sim_time start_ps = sim_now(c->f.sim);
    for (unsigned i = 0; i < STREAM_OPS; i++) {
        stream->op[i] = (struct pcie_requester_op){
            .write = write,
            .interface = PCIE_REQUESTER_BULK,
            .iova = { ntb_window(&c->node[0], 0, (i * STREAM_BYTES) % MIB).v },
            .bytes = bytes,
            .done = stream_done,
            .context = stream,
        };
        pcie_requester_submit(requester_of(c, 0), &stream->op[i]);
    }
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(stream->n_left, 0);
    sim_time took_ps = stream->done_ps - start_ps;
    free(stream);
    return took_ps;
}

/* Long reads of an adapter with few of them in flight: one round trip per so many. */
static void reads_are_bound_by_what_is_in_flight(void **state)
{
    struct cluster *c = *state;

    describe_hosts(c, 2, false, "");
    g_string_append(c->text, "d0 = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536; "
                             "extended_tags = true; reads_in_flight = 4; read_interval_ns = 1.0; "
                             "word_ns = 0.0; descriptor_ns = 0.0; bulk_request_ns = 0.0; "
                             "bulk_complete_ns = 0.0; };");
    describe_plugs(c, false);
    g_string_append(c->text, ", { from = \"server.s0.rp1\"; to = \"d0.p0\"; " LINK "}, "
                             "{ from = \"n0.p1\"; to = \"n1.p1\"; " LINK "} );");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    struct sim_stamp stamp;
    struct fixture_op one = { .op = { .interface = PCIE_REQUESTER_BULK,
                                      .iova = { ntb_window(&c->node[0], 0, 0).v },
                                      .bytes = 64,
                                      .stamp = &stamp } };
    assert_int_equal(fixture_dma(&c->f, "d0", &one), PCIE_DMA_OK);
    sim_time round_trip_ps = one.done_ps - one.start_ps;
    sim_time took_ps = stream_run(c, false, 64);
    /* 64 reads, 4 at a time: 16 round trips, and the intervals at which they are issued. */
    assert_in_range(took_ps, 16 * round_trip_ps, 16 * round_trip_ps + 16 * round_trip_ps / 50);
}

static sim_time when_arrived(struct cluster *c, uint64_t n)
{
    while (ntb_stats_of(&c->node[1])->requests_in < n)
        sim_run(c->f.sim, sim_now(c->f.sim) + 5000, NULL);
    return sim_now(c->f.sim);
}

/* Writes fill the narrowest link: each of 256 bytes takes 24 bytes more and begins at a multiple of
 * 16, and nothing else does. */
static void writes_are_bound_by_the_wire(void **state)
{
    struct cluster *c = *state;
    struct fixture_op op[8];

    describe_hosts(c, 2, false, "");
    g_string_append(c->text, "d0 = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536; "
                             "word_ns = 0.0; line_ns = 0.0; tx_gap_bytes = 0; };");
    describe_plugs(c, false);
    g_string_append(c->text, ", { from = \"server.s0.rp1\"; to = \"d0.p0\"; " LINK "}, "
                             "{ from = \"n0.p1\"; to = \"n1.p1\"; lanes = 4; " LINK "} );");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    for (unsigned i = 0; i < 8; i++) {
        op[i].op = (struct pcie_requester_op){ .write = true,
                                               .interface = PCIE_REQUESTER_BULK,
                                               .iova = { ntb_window(&c->node[0], 0, 0).v },
                                               .bytes = 65536,
                                               .done = fixture_op_done,
                                               .context = &op[i] };
        pcie_requester_submit(requester_of(c, 0), &op[i].op);
    }
    uint64_t before = ntb_stats_of(&c->node[1])->requests_in;
    sim_time first_ps = when_arrived(c, before + 200), last_ps = when_arrived(c, before + 1200);
    sim_time wire_ps = pcie_port_wire_ps(&c->node[0].ntb->ports[NTB_CABLE], 1000 * (256 + 32));
    assert_in_range(last_ps - first_ps, wire_ps - 10000, wire_ps + 10000);
    sim_run(c->f.sim, SIM_TIME_MAX, NULL); /* to the end of op[] */
}

/* ---- Cascades -------------------------------------------------------------------------------- */

static void sixty_hosts_in_cascade(void **state)
{
    struct cluster *c = *state;

    describe_cascade(c, 60, 10, true, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, write_ring_body, c);
    expect_ring(c);
    /* All requesters at once, each to its neighbour. */
    struct fixture_op *op = calloc(60, sizeof(*op));
    static uint8_t out[60][1024], in[1024];
    assert_non_null(op);
    for (unsigned i = 0; i < 60; i++) {
        memset(out[i], (int)(i + 1), sizeof(out[i]));
        op[i].op = (struct pcie_requester_op){ .write = true,
                                               .interface = PCIE_REQUESTER_BULK,
                                               .iova = { ntb_window(&c->node[i], 0, 0x8000).v },
                                               .bytes = sizeof(out[i]),
                                               .buffer = out[i],
                                               .done = fixture_op_done,
                                               .context = &op[i] };
        pcie_requester_submit(requester_of(c, i), &op[i].op);
    }
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    for (unsigned i = 0; i < 60; i++) {
        assert_true(op[i].done);
        physmem_read(host_physmem(c->node[(i + 1) % 60].host), (struct hpa){ BUFFER + 0x8000 }, in,
                     sizeof(in));
        assert_memory_equal(in, out[i], sizeof(in));
    }
    free(op);
}

/* Node numbers beyond 255 travel in a prefix: four bytes more, and the way back is found. */
static void prefix_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    struct ntb_node *a = &c->node[0], *b = &c->node[1];
    const struct pcie_link_stats *out = pcie_port_stats(&a->ntb->ports[NTB_CABLE]);
    (void)f;
    uint64_t before = out->tlp_bytes;
    root_complex_mmio_write(ntb_rc(a), 0, task, ntb_window(a, 0, 0x40), 4, 0x1234);
    assert_int_equal(root_complex_mmio_read(ntb_rc(a), 0, task, ntb_window(a, 0, 0x40), 4, NULL),
                     0x1234);
    /* Write 24 + 4, read 24, both with a prefix. */
    assert_int_equal(out->tlp_bytes - before, 28 + 4 + 24 + 4);
    before = out->tlp_bytes;
    root_complex_mmio_write(ntb_rc(b), 0, task, ntb_window(b, 0, 0x40), 4, 0x99);
    assert_int_equal(root_complex_mmio_read(ntb_rc(b), 0, task, ntb_window(b, 0, 0x40), 4, NULL),
                     0x99);
    /* The completion for node 7 has none. */
    assert_int_equal(out->tlp_bytes - before, 24);
}

static void many_nodes_need_a_prefix(void **state)
{
    struct cluster *c = *state;

    describe_hosts(c, 2, false, "");
    g_string_free(c->text, TRUE);
    c->text = g_string_new("hosts = { server = { " LIGHT_HOST
                           "ports = ( { name = \"rp0\"; } ); }; h1 = { " LIGHT_HOST
                           "ports = ( { name = \"rp0\"; } ); }; };\n"
                           "devices = { n0 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; "
                           "bar2_bytes = 67108864; bar2_windows = 64; node = 4711; }; "
                           "n1 = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; "
                           "bar2_bytes = 67108864; bar2_windows = 64; node = 7; }; "
                           "sw = { type = \"pcie.cluster_switch\"; ports = 2; }; };\n");
    g_string_truncate(c->text, c->text->len - 4); /* describe_plugs() closes the group */
    describe_plugs(c, false);
    g_string_append(c->text, ", { from = \"n0.p1\"; to = \"sw.p0\"; " LINK "}, "
                             "{ from = \"n1.p1\"; to = \"sw.p1\"; " LINK "} );");
    cluster_open(c);
    assert_int_equal(ntb_node(c->node[0].ntb), 4711);
    assert_int_equal(((struct cluster_switch *)world_device(c->f.world, "sw")->state)->node, 1);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, prefix_body, c);
}

/* ---- Multicast ------------------------------------------------------------------------------- */

#define MC_CONTROL (NTB_MC_ENABLE | MC_LOG2 << NTB_MC_POSITION_SHIFT | 3u) /* four groups */

/* Every switch of a cascade of `n_switches` copies group 2 to all ports; the hosts but the first
 * subscribe, their overlay puts the groups at MC_BUFFER. */
static void subscribe_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    struct ntb_node *a = &c->node[0];
    (void)f;
    for (unsigned d = 0; world_device_names(c->f.world)[d] != NULL; d++) {
        struct model *sw = world_device(c->f.world, world_device_names(c->f.world)[d]);
        if (sw->ops != &pcie_cluster_switch_ops)
            continue;
        ntb_map(a, task, 50, cluster_switch_node(sw), NTB_FABRIC_REGISTERS);
        root_complex_mmio_write(ntb_rc(a), 0, task, ntb_window(a, 50, CLUSTER_MC_CONTROL), 4,
                                MC_CONTROL);
        for (unsigned p = 0; p < sw->n_ports; p++)
            root_complex_mmio_write(ntb_rc(a), 0, task,
                                    ntb_window(a, 50, CLUSTER_MC_RECEIVE + 8 * p), 8, 1u << 2);
        /* Entries of the table must not be rewritten while writes through them are on their way. */
        ntb_sleep(task, 5000000);
    }
    for (unsigned i = 1; i < c->n_hosts; i++) {
        ntb_write(&c->node[i], task, NTB_REG_MC_CONTROL, 4, MC_CONTROL);
        ntb_write(&c->node[i], task, NTB_REG_MC_RECEIVE, 8, 1u << 2);
        ntb_write(&c->node[i], task, NTB_REG_MC_OVERLAY, 8, MC_BUFFER | (MC_LOG2 + 2));
    }
    ntb_map(a, task, 51, NTB_NODE_MULTICAST, 0); /* groups 0 to 15 */
    ntb_sleep(task, 5000000);
}

static void multicast_reads_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct cluster *c = arg;
    (void)f;
    assert_int_equal(root_complex_mmio_read(ntb_rc(&c->node[0]), 0, task,
                                            ntb_window(&c->node[0], 51, 2 << MC_LOG2), 4, NULL),
                     UINT32_MAX);
    /* A group that nobody subscribed to, and one that there is not. */
    root_complex_mmio_write(ntb_rc(&c->node[0]), 0, task, ntb_window(&c->node[0], 51, 1 << MC_LOG2),
                            4, 1);
    root_complex_mmio_write(ntb_rc(&c->node[0]), 0, task, ntb_window(&c->node[0], 51, 4 << MC_LOG2),
                            4, 1);
}

static void one_write_reaches_all(void **state)
{
    struct cluster *c = *state;
    static uint8_t out[4096], in[4096];

    describe_cascade(c, 60, 10, true, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, subscribe_body, c);
    for (unsigned i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 11 + (i >> 8));
    struct pcie_link_stats *first = pcie_port_stats(&c->node[0].ntb->ports[NTB_CABLE]);
    uint64_t before = first->payload_bytes;
    struct fixture_op op = { .op = {
                                 .write = true,
                                 .interface = PCIE_REQUESTER_BULK,
                                 .iova = { ntb_window(&c->node[0], 51, (2 << MC_LOG2) + 256).v },
                                 .bytes = sizeof(out),
                                 .buffer = out } };
    assert_int_equal(fixture_dma(&c->f, "d0", &op), PCIE_DMA_OK);
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(first->payload_bytes - before, sizeof(out)); /* once on the first cable */
    for (unsigned i = 1; i < 60; i++) {
        physmem_read(host_physmem(c->node[i].host),
                     (struct hpa){ MC_BUFFER + (2 << MC_LOG2) + 256 }, in, sizeof(in));
        assert_memory_equal(in, out, sizeof(in));
        assert_int_equal(ntb_stats_of(&c->node[i])->multicast_in, 16);
    }
    assert_int_equal(ntb_stats_of(&c->node[0])->multicast_in, 0);
    const struct cluster_switch *top = world_device(c->f.world, "top")->state;
    assert_int_equal(top->multicast_copies, 16 * 5); /* not back to where it came from */
    fixture_call(&c->f, multicast_reads_body, c);
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    const struct cluster_switch *s0 = world_device(c->f.world, "s0")->state;
    assert_int_equal(ntb_stats_of(&c->node[0])->unmapped, 1); /* the read ended at home */
    assert_int_equal(s0->multicast_blocked, 2);
}

/* A subscriber whose link is narrow: the others wait for it in the end (the buffer of a copy is the
 * original's), but nothing is lost. */
static void a_slow_subscriber_holds_the_others_up(void **state)
{
    struct cluster *c = *state;
    static uint8_t out[262144], in[262144];

    describe_hosts(c, 3, true, "");
    g_string_append(c->text, "sw = { type = \"pcie.cluster_switch\"; ports = 3; };\n");
    describe_plugs(c, true);
    g_string_append(c->text, ", { from = \"n0.p1\"; to = \"sw.p0\"; " LINK "}, "
                             "{ from = \"n1.p1\"; to = \"sw.p1\"; " LINK "}, "
                             "{ from = \"n2.p1\"; to = \"sw.p2\"; lanes = 1; " LINK "} );");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    fixture_call(&c->f, subscribe_body, c);
    for (unsigned i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 3 + (i >> 10));
    struct fixture_op op = { .op = { .write = true,
                                     .interface = PCIE_REQUESTER_BULK,
                                     .iova = { ntb_window(&c->node[0], 51, 2 << MC_LOG2).v },
                                     .bytes = 1u << MC_LOG2,
                                     .buffer = out } };
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(fixture_dma(&c->f, "d0", &op), PCIE_DMA_OK);
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    for (unsigned i = 1; i < 3; i++) {
        physmem_read(host_physmem(c->node[i].host), (struct hpa){ MC_BUFFER + (2 << MC_LOG2) }, in,
                     1u << MC_LOG2);
        assert_memory_equal(in, out, 1u << MC_LOG2);
    }
}

/* ---- Cables pulled at random ----------------------------------------------------------------- */

#define STRESS_OPS 12u

struct stress_op {
    struct pcie_requester_op op;
    struct cluster *c;
    uint8_t buffer[4096];
    unsigned host, n_done;
    bool busy;
    const bool *stop;
};

static void stress_submit(struct stress_op *s);

static void stress_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct stress_op *s = op->context;
    assert_true(status == PCIE_DMA_OK || status == PCIE_DMA_UNSUPPORTED ||
                status == PCIE_DMA_TIMED_OUT);
    s->n_done++;
    s->busy = !*s->stop;
    if (s->busy)
        stress_submit(s);
}

static void stress_submit(struct stress_op *s)
{
    struct sim_random *random = &s->c->node[s->host].ntb->random;
    uint32_t bytes = 1 + (uint32_t)sim_random_below(random, sizeof(s->buffer));
    uint64_t offset = 0x10000 + sim_random_below(random, 0x10000);

    s->op = (struct pcie_requester_op){
        .write = sim_random_below(random, 2) != 0,
        .interface = PCIE_REQUESTER_BULK,
        .iova = { ntb_window(&s->c->node[s->host], (unsigned)sim_random_below(random, 2), offset)
                      .v },
        .bytes = bytes,
        .buffer = s->buffer,
        .done = stress_done,
        .context = s,
    };
    pcie_requester_submit(requester_of(s->c, s->host), &s->op);
}

/* Whatever is pulled and plugged in again while everybody reads and writes: everything ends, no TLP
 * and no credit is left behind, and afterwards the cluster is as good as new. */
static void pulled_cables_leave_nothing_behind(void **state)
{
    struct cluster *c = *state;
    unsigned n_links = 0;
    bool stop = false;
    struct pcie_link *link[32];
    struct pcie_port *a, *b;
    struct sim_random random;

    describe_cascade(c, 6, 2, true, "");
    cluster_open(c);
    fixture_call(&c->f, ring_body, c);
    sim_random_init(&random, 99, "pulls");
    struct pcie_link *each;
    for (unsigned i = 0; (each = pcie_context_link(world_pcie(c->f.world), i, &a, &b)) != NULL; i++)
        if (a->fabric)
            link[n_links++] = each;
    assert_int_equal(n_links, 9);
    struct stress_op *op = calloc(6 * STRESS_OPS, sizeof(*op));
    assert_non_null(op);
    for (unsigned i = 0; i < 6 * STRESS_OPS; i++) {
        op[i].c = c;
        op[i].host = i / STRESS_OPS;
        op[i].stop = &stop;
        stress_submit(&op[i]);
    }
    for (unsigned i = 0; i < 150; i++) {
        struct pcie_link *one = link[sim_random_below(&random, n_links)];
        pcie_link_set_up(one, sim_random_below(&random, 4) != 0);
        sim_run(c->f.sim, sim_now(c->f.sim) + 1 + sim_random_below(&random, 60000000), NULL);
    }
    stop = true;
    for (unsigned i = 0; i < n_links; i++)
        pcie_link_set_up(link[i], true);
    sim_run(c->f.sim, SIM_TIME_MAX, NULL);
    for (unsigned i = 0; i < 6 * STRESS_OPS; i++) {
        assert_false(op[i].busy);
        assert_true(op[i].n_done > 10);
    }
    assert_true(pcie_context_check_idle(world_pcie(c->f.world)));
    free(op);
    fixture_call(&c->f, write_ring_body, c);
    expect_ring(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLUSTER_TEST(three_hosts_reach_each_other),
        CLUSTER_TEST(a_switch_adds_its_latency),
        CLUSTER_TEST(switches_have_registers_on_the_fabric),
        CLUSTER_TEST(entries_for_requesters_are_limited),
        CLUSTER_TEST(what_is_not_passed_on_takes_no_entry),
        CLUSTER_TEST(a_switch_drops_payloads_that_are_too_large),
        CLUSTER_TEST(a_far_cable_is_pulled),
        CLUSTER_TEST(reads_are_bound_by_what_is_in_flight),
        CLUSTER_TEST(writes_are_bound_by_the_wire),
        CLUSTER_TEST(sixty_hosts_in_cascade),
        CLUSTER_TEST(many_nodes_need_a_prefix),
        CLUSTER_TEST(one_write_reaches_all),
        CLUSTER_TEST(a_slow_subscriber_holds_the_others_up),
        CLUSTER_TEST(pulled_cables_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
