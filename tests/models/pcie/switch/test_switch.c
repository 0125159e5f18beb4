/* Switches: routing, latency, arbitration, ordering, answers. */
#include <unistd.h>

#include "hw/pci_regs.h"
#include "models/host/enumerate.h"
#include "models/pcie/switch/switch.h"
#include "tests/support/pcie_rig.h"

/* A root, switches and ends below it, configured through TLPs; for the tests of switches. */

#define LINK_PS   UINT64_C(20000)
#define SWITCH_PS UINT64_C(110000) /* the default */
#define HOST_RAM  UINT64_C(0x100000000)
#define BAR_BYTES UINT64_C(0x100000)
#define MAX_ENDS  4

/* A root with a switch below it; ends at its downstream ports; perhaps a second switch. */
struct tree {
    struct rig rig;
    struct end_device *root, *end[MAX_ENDS];
    struct model *sw, *lower;
    struct config *config[2];
    unsigned n_ends;
    uint64_t bar[MAX_ENDS];
    uint16_t id[MAX_ENDS];
    struct pcie_found found[16];
};

static struct pcie_switch *state_of(const struct model *sw)
{
    return sw->state;
}

/* ---- Building -------------------------------------------------------------------------------- */

static struct model *switch_new(struct rig *rig, const char *name, const char *settings,
                                struct config **config)
{
    char path[] = "/tmp/test_switch_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fprintf(file, "switch = { %s };\n", settings);
    fclose(file);
    *config = config_load(path, "/tmp", &rig->errors);
    unlink(path);
    assert_non_null(*config);
    struct model *sw = model_new(pcie_context_sim(rig->pcie), rig->pcie, &pcie_switch_ops, name,
                                 *config, config_get(config_root(*config), "switch"), &rig->errors);
    for (size_t i = 0; i < rig->errors.n_messages; i++)
        print_message("%s\n", rig->errors.message[i]);
    return sw;
}

static struct cfg_space *endpoint_cfg(void)
{
    static const struct cfg_identity identity = { .vendor_id = 0x1234,
                                                  .device_id = 0xabcd,
                                                  .class_code = 0x020000 };
    struct cfg_space *cfg = calloc(1, sizeof(*cfg));

    cfg_init_endpoint(cfg, &identity);
    cfg_add_bar(cfg, 0, BAR_BYTES, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_pcie(cfg, CFG_ENDPOINT, 3, 8, 512, true);
    return cfg;
}

static void plug(struct tree *tree, struct pcie_port *a, struct pcie_port *b)
{
    struct pcie_link_params params = pcie_rig_link_params(LINK_PS);

    params.lanes = SIM_MIN(a->max_lanes, b->max_lanes);
    pcie_rig_join(&tree->rig, a, b, &params);
}

static struct end_device *add_end(struct tree *tree, unsigned lanes)
{
    static const char *const names[] = { "end0", "end1", "end2", "end3" };
    struct end_device *end = end_new(&tree->rig, names[tree->n_ends], 3, lanes);

    end->cfg = endpoint_cfg();
    return tree->end[tree->n_ends++] = end;
}

/* Root - sw - n ends, not plugged in yet. */
static void tree_init(struct tree *tree, const char *settings, unsigned root_lanes, unsigned n_ends,
                      unsigned end_lanes)
{
    *tree = (struct tree){ 0 };
    pcie_rig_init(&tree->rig, 1);
    tree->root = end_new(&tree->rig, "root", 3, root_lanes);
    tree->sw = switch_new(&tree->rig, "sw", settings, &tree->config[0]);
    for (unsigned i = 0; i < n_ends; i++)
        add_end(tree, end_lanes);
}

static void tree_plug(struct tree *tree)
{
    plug(tree, &tree->root->port, &tree->sw->ports[0]);
    for (unsigned i = 0; i < tree->n_ends; i++)
        plug(tree, &tree->sw->ports[i + 1], &tree->end[i]->port);
    tree->sw->ops->start(tree->sw);
}

/* What the ends have recorded so far is forgotten. */
static void forget(struct tree *tree)
{
    tree->root->n_got = 0;
    for (unsigned i = 0; i < tree->n_ends; i++)
        tree->end[i]->n_got = 0;
}

static void tree_done(struct tree *tree)
{
    struct pcie_port *a, *b;

    assert_int_equal(tlp_live(tree->rig.pcie), 0);
    for (unsigned i = 0; pcie_context_link(tree->rig.pcie, i, &a, &b) != NULL; i++) {
        assert_true(pcie_port_credits_whole(a));
        assert_true(pcie_port_credits_whole(b));
    }
    model_free(tree->sw);
    model_free(tree->lower);
    end_free(tree->root);
    for (unsigned i = 0; i < tree->n_ends; i++)
        end_free(tree->end[i]);
    for (int i = 0; i < 2; i++)
        if (tree->config[i] != NULL)
            config_free(tree->config[i]);
    pcie_rig_release(&tree->rig);
}

/* ---- Configuration through TLPs -------------------------------------------------------------- */

/* The root's link is bus 0, on which the switch's upstream port is device 0. */
static struct arrival *config_request(struct tree *tree, bool write, uint16_t id, unsigned offset,
                                      unsigned bytes, uint32_t value)
{
    enum tlp_type type = id >> 8 == 0 ? (write ? TLP_CFG_WR0 : TLP_CFG_RD0)
                                      : (write ? TLP_CFG_WR1 : TLP_CFG_RD1);
    size_t before = tree->root->n_got;
    struct tlp *tlp = pcie_rig_tlp(&tree->rig, type, offset, bytes, 0);

    tlp->completer_id = id;
    tlp->requester_id = 0;
    tlp->tag = 99;
    if (write)
        memcpy(tlp->payload, &value, bytes);
    pcie_port_send(&tree->root->port, tlp, sim_now(tree->rig.sim));
    pcie_rig_run(&tree->rig);
    assert_int_equal(tree->root->n_got, before + 1);
    struct arrival *got = &tree->root->got[before];
    assert_int_equal(got->class, TLP_COMPLETION);
    assert_int_equal(got->id, 99);
    return got;
}

static uint32_t config_read(void *context, uint16_t id, unsigned offset, unsigned bytes)
{
    struct tree *tree = context;

    if (id >> 8 == 0 && id != 0)
        return UINT32_MAX;
    const struct arrival *got = config_request(tree, false, id, offset, bytes, 0);
    return got->status == TLP_SC ? got->data : UINT32_MAX;
}

static void config_write(void *context, uint16_t id, unsigned offset, unsigned bytes,
                         uint32_t value)
{
    if (id >> 8 != 0 || id == 0)
        config_request(context, true, id, offset, bytes, value);
}

static void set_acs(struct tree *tree, unsigned downstream, uint16_t control)
{
    const struct cfg_space *cfg = state_of(tree->sw)->port[downstream + 1].cfg;

    config_write(tree, cfg->id, cfg->acs_cap + PCI_ACS_CONTROL, 2, control);
    forget(tree);
}

static int enumerate(struct tree *tree)
{
    const struct pcie_cfg_access access = { tree, config_read, config_write };
    const struct pcie_enumerate_options options = {
        .first_bus = 0,
        .last_bus = 20,
        .memory_base = 0x80000000,
        .memory_bytes = 0x10000000,
        .prefetchable_base = UINT64_C(0x4000000000),
        .prefetchable_bytes = UINT64_C(0x100000000),
        .mrrs_bytes = 512,
        .mps_bytes = 256,
    };
    const char *why = NULL;
    int n = pcie_enumerate(&access, &options, tree->found, SIM_N_ELEMENTS(tree->found), &why);

    if (why != NULL)
        print_message("enumeration: %s\n", why);
    unsigned k = 0;
    for (int i = 0; i < n; i++) {
        if (tree->found[i].bridge)
            continue;
        assert_int_equal(tree->found[i].device_id, 0xabcd);
        tree->bar[k] = tree->found[i].bar_base[0];
        tree->id[k++] = tree->found[i].id;
    }
    assert_int_equal(k, tree->n_ends);
    forget(tree);
    return n;
}

static void tree_new(struct tree *tree, const char *settings, unsigned root_lanes, unsigned n_ends,
                     unsigned end_lanes)
{
    tree_init(tree, settings, root_lanes, n_ends, end_lanes);
    tree_plug(tree);
    assert_int_equal(enumerate(tree), 1 + 2 * (int)n_ends);
}

static void send_now(struct end_device *from, enum tlp_type type, uint64_t address, unsigned bytes,
                     uint64_t id)
{
    pcie_port_send(&from->port, pcie_rig_tlp(from->rig, type, address, bytes, id),
                   sim_now(from->rig->sim));
}

static const char two_x8[] = "downstream_ports = 2; lanes = 8; downstream_lanes = 8;";

/* ---- Routing --------------------------------------------------------------------------------- */

static void enumerates_two_switches_in_cascade(void **state)
{
    struct tree tree;

    (void)state;
    tree_init(&tree, two_x8, 8, 0, 8);
    tree.lower = switch_new(&tree.rig, "lower", two_x8, &tree.config[1]);
    add_end(&tree, 8);
    add_end(&tree, 8);
    add_end(&tree, 8);
    plug(&tree, &tree.root->port, &tree.sw->ports[0]);
    plug(&tree, &tree.sw->ports[1], &tree.lower->ports[0]);
    plug(&tree, &tree.lower->ports[1], &tree.end[0]->port);
    plug(&tree, &tree.lower->ports[2], &tree.end[1]->port);
    plug(&tree, &tree.sw->ports[2], &tree.end[2]->port);
    tree.sw->ops->start(tree.sw);
    tree.lower->ops->start(tree.lower);
    assert_int_equal(enumerate(&tree), 9);
    /* The lower switch's ends are three hops of switches apart from none: all by their own ways. */
    for (unsigned i = 0; i < 3; i++) {
        assert_int_not_equal(tree.bar[i], 0);
        assert_int_equal(tree.end[i]->cfg->id, tree.id[i]);
        send_now(tree.root, TLP_MWR, tree.bar[i] + 8 * i, 64, i);
    }
    pcie_rig_run(&tree.rig);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(tree.end[i]->n_got, 1);
        assert_int_equal(tree.end[i]->got[0].address, tree.bar[i] + 8 * i);
    }
    /* Up from the lowest, across from the lowest to the upper switch's other port, and back. */
    send_now(tree.end[0], TLP_MWR, HOST_RAM, 64, 7);
    send_now(tree.end[0], TLP_MWR, tree.bar[2], 64, 8);
    send_now(tree.end[2], TLP_MWR, tree.bar[1], 64, 9);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 1);
    assert_int_equal(tree.root->got[0].id, 7);
    assert_int_equal(tree.end[2]->got[1].id, 8);
    assert_int_equal(tree.end[1]->got[1].id, 9);
    assert_int_equal(state_of(tree.sw)->peer_to_peer, 2);
    assert_int_equal(state_of(tree.lower)->peer_to_peer, 0);
    tree_done(&tree);
}

/* The bridges' own registers say what the link has come up with, and MPS reaches the port. */
static void bridges_show_their_links(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, "downstream_ports = 1; lanes = 16; downstream_lanes = 4;", 8, 1, 4);
    const struct cfg_space *up = state_of(tree.sw)->port[0].cfg,
                           *down = state_of(tree.sw)->port[1].cfg;
    assert_int_equal(cfg_read(up, up->pcie_cap + 0x12u, 2) >> 4 & 0x3f, 8);
    assert_int_equal(cfg_read(down, down->pcie_cap + 0x12u, 2) >> 4 & 0x3f, 4);
    assert_int_equal(tree.sw->ports[0].mps_bytes, 256);
    assert_int_equal(tree.sw->ports[1].mps_bytes, 256);
    tree_done(&tree);
}

static void completions_follow_the_requester(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, two_x8, 8, 2, 8);
    tree.end[0]->answer_reads = tree.end[1]->answer_reads = tree.root->answer_reads = true;
    struct tlp *down = pcie_rig_tlp(&tree.rig, TLP_MRD, tree.bar[1], 64, 1);
    down->requester_id = 0;
    struct tlp *up = pcie_rig_tlp(&tree.rig, TLP_MRD, HOST_RAM, 128, 2);
    up->requester_id = tree.id[0];
    struct tlp *across = pcie_rig_tlp(&tree.rig, TLP_MRD, tree.bar[0], 256, 3);
    across->requester_id = tree.id[1];
    pcie_port_send(&tree.root->port, down, sim_now(tree.rig.sim));
    pcie_port_send(&tree.end[0]->port, up, sim_now(tree.rig.sim));
    pcie_port_send(&tree.end[1]->port, across, sim_now(tree.rig.sim));
    pcie_rig_run(&tree.rig);
    /* Root: the read from end 0, the answer of end 1. */
    assert_int_equal(tree.root->n_got, 2);
    const struct arrival *got = &tree.root->got[tree.root->got[0].type == TLP_CPLD ? 0 : 1];
    assert_int_equal(got->type, TLP_CPLD);
    assert_int_equal(got->length_bytes, 64);
    assert_int_equal(tree.end[0]->n_got, 2); /* the read of end 1, its own answer */
    assert_int_equal(tree.end[1]->n_got, 2);
    got = &tree.end[1]->got[tree.end[1]->got[0].type == TLP_CPLD ? 0 : 1];
    assert_int_equal(got->length_bytes, 256);
    assert_int_equal(got->requester_id, tree.id[1]);
    tree_done(&tree);
}

static void peer_to_peer_takes_the_direct_way(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, two_x8, 8, 2, 8);
    sim_time at_ps = sim_now(tree.rig.sim);
    send_now(tree.end[0], TLP_MWR, tree.bar[1] + 0x40, 256, 5);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 0);
    assert_int_equal(tree.end[1]->n_got, 1);
    assert_int_equal(tree.end[1]->got[0].tail_ps,
                     at_ps + 2 * LINK_PS + SWITCH_PS + spec_wire_ps(3, 8, 280));
    assert_int_equal(state_of(tree.sw)->peer_to_peer, 1);
    tree_done(&tree);
}

static void acs_redirects_to_the_root(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, two_x8, 8, 2, 8);
    set_acs(&tree, 0, PCI_ACS_REQUEST_REDIRECT);
    send_now(tree.end[0], TLP_MWR, tree.bar[1], 64, 5); /* up */
    send_now(tree.end[1], TLP_MWR, tree.bar[0], 64, 6); /* direct: another port's setting */
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 1);
    assert_int_equal(tree.root->got[0].id, 5);
    assert_int_equal(tree.end[0]->n_got, 1);
    assert_int_equal(tree.end[1]->n_got, 0);
    assert_int_equal(state_of(tree.sw)->redirected, 1);
    assert_int_equal(state_of(tree.sw)->peer_to_peer, 1);
    /* What the root sends back down arrives. */
    send_now(tree.root, TLP_MWR, tree.bar[1], 64, 5);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[1]->n_got, 1);
    set_acs(&tree, 0, 0);
    send_now(tree.end[0], TLP_MWR, tree.bar[1], 64, 5);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 0);
    assert_int_equal(tree.end[1]->n_got, 1);
    tree_done(&tree);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

/* A read is answered with UR to whom it came from, a write vanishes; both are counted. */
static void expect_refused(struct tree *tree, struct end_device *from, uint64_t address)
{
    uint64_t before = state_of(tree->sw)->unsupported_requests;

    forget(tree);
    send_now(from, TLP_MRD, address, 64, 3);
    send_now(from, TLP_MWR, address, 64, 4);
    pcie_rig_run(&tree->rig);
    assert_int_equal(state_of(tree->sw)->unsupported_requests, before + 2);
    for (int i = -1; i < (int)tree->n_ends; i++) {
        struct end_device *end = i < 0 ? tree->root : tree->end[i];
        assert_int_equal(end->n_got, end == from ? 1 : 0);
    }
    assert_int_equal(from->got[0].type, TLP_CPL);
    assert_int_equal(from->got[0].status, TLP_UR);
    assert_int_equal(from->got[0].id, 3);
}

static void write_command(struct tree *tree, uint16_t id, uint16_t command)
{
    config_write(tree, id, PCI_COMMAND, 2, command);
}

static void unsupported_requests_are_answered(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, two_x8, 8, 2, 8);
    uint16_t up = state_of(tree.sw)->port[0].cfg->id, down = state_of(tree.sw)->port[1].cfg->id;
    uint64_t bar_end = tree.bar[0] + 0x10000000;
    expect_refused(&tree, tree.root, 0x1000); /* in no window */
    expect_refused(&tree, tree.root, bar_end);
    expect_refused(&tree, tree.end[0], tree.bar[0]); /* its own window: would come back */

    write_command(&tree, down, PCI_COMMAND_MEMORY); /* no bus master */
    expect_refused(&tree, tree.end[0], HOST_RAM);
    expect_refused(&tree, tree.end[0], tree.bar[1]);
    write_command(&tree, down, PCI_COMMAND_BUS_MASTER); /* no memory space */
    expect_refused(&tree, tree.root, tree.bar[0]);
    expect_refused(&tree, tree.end[1], tree.bar[0]);
    write_command(&tree, down, PCI_COMMAND_BUS_MASTER | PCI_COMMAND_MEMORY);
    write_command(&tree, up, PCI_COMMAND_MEMORY);
    expect_refused(&tree, tree.end[0], HOST_RAM);
    write_command(&tree, up, PCI_COMMAND_BUS_MASTER);
    expect_refused(&tree, tree.root, tree.bar[0]);
    write_command(&tree, up, PCI_COMMAND_BUS_MASTER | PCI_COMMAND_MEMORY);
    forget(&tree);
    send_now(tree.end[0], TLP_MWR, HOST_RAM, 64, 1);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 1);
    tree_done(&tree);
}

/* A deferrable memory write has a line: a port without buffers for that lets none out, the other
 * does. */
static void deferrable_writes_need_buffers(void **state)
{
    struct tree tree;

    (void)state;
    tree_init(&tree, two_x8, 8, 2, 8);
    tree.end[0]->port.advertise.data[TLP_NON_POSTED] = 3;
    tree.end[1]->port.advertise.data[TLP_NON_POSTED] = 4;
    tree_plug(&tree);
    enumerate(&tree);
    const struct pcie_switch *sw = tree.sw->state;
    const uint64_t before = sw->unsupported_requests;
    for (unsigned i = 0; i < 2; i++)
        send_now(tree.root, TLP_DMWR, tree.bar[i], 64, i);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->n_got, 0);
    assert_int_equal(tree.end[1]->n_got, 1);
    assert_int_equal(tree.root->n_got, 1);
    assert_int_equal(tree.root->got[0].status, TLP_UR);
    assert_int_equal(sw->unsupported_requests, before + 1);
    tree_done(&tree);
}

static void config_requests_that_nobody_answers(void **state)
{
    struct tree tree;

    (void)state;
    tree_init(&tree, "downstream_ports = 3; lanes = 8; downstream_lanes = 8;", 8, 2, 8);
    tree_plug(&tree);
    assert_int_equal(enumerate(&tree), 6);
    unsigned bus = cfg_bridge_secondary(state_of(tree.sw)->port[0].cfg);
    unsigned behind = cfg_bridge_secondary(state_of(tree.sw)->port[1].cfg);
    assert_int_equal(config_read(&tree, pcie_id(bus, 2, 0), 0, 2), 0x10b5); /* nothing plugged in */
    assert_int_equal(config_read(&tree, pcie_id(bus, 3, 0), 0, 2), UINT32_MAX);
    assert_int_equal(config_read(&tree, pcie_id(bus, 0, 1), 0, 2), UINT32_MAX);
    assert_int_equal(config_read(&tree, pcie_id(behind, 1, 0), 0, 2), UINT32_MAX);
    assert_int_equal(config_read(&tree, pcie_id(200, 0, 0), 0, 2), UINT32_MAX);
    assert_int_equal(config_read(&tree, pcie_id(behind, 0, 0), 0, 2), 0x1234);
    /* From below there is no configuration. */
    forget(&tree);
    send_now(tree.end[0], TLP_CFG_RD0, 0, 4, 3);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->got[0].status, TLP_UR);
    tree_done(&tree);
}

static void unexpected_completions_are_dropped(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, two_x8, 8, 2, 8);
    struct tlp *tlp = pcie_rig_tlp(&tree.rig, TLP_CPLD, 0, 64, 1);
    tlp->requester_id = pcie_id(200, 0, 0); /* nobody below */
    pcie_port_send(&tree.root->port, tlp, sim_now(tree.rig.sim));
    tlp = pcie_rig_tlp(&tree.rig, TLP_CPLD, 0, 64, 2);
    tlp->requester_id = tree.id[0]; /* its own bus */
    pcie_port_send(&tree.end[0]->port, tlp, sim_now(tree.rig.sim));
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got + tree.end[0]->n_got + tree.end[1]->n_got, 0);
    assert_int_equal(state_of(tree.sw)->unexpected_completions, 2);
    tree_done(&tree);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void latency_once(const char *settings, unsigned root_lanes, unsigned end_lanes,
                         sim_time up_ps, sim_time down_ps)
{
    struct tree tree;

    tree_new(&tree, settings, root_lanes, 1, end_lanes);
    sim_time at_ps = sim_now(tree.rig.sim);
    struct tlp *tlp = pcie_rig_tlp(&tree.rig, TLP_MWR, HOST_RAM, 256, 1);
    tlp->stamp = stamp_new(tree.rig.pcie, at_ps);
    pcie_port_send(&tree.end[0]->port, tlp, at_ps);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->got[0].tail_ps - at_ps, up_ps);
    const struct sim_stamp *stamp = &tree.root->got[0].stamp;
    assert_int_equal(stamp->cursor_ps - stamp->start_ps, up_ps);
    assert_int_equal(stamp->part_ps[PART_LINK] + stamp->part_ps[PART_SWITCH], up_ps);
    assert_true(stamp->part_ps[PART_SWITCH] >= SWITCH_PS);

    at_ps = sim_now(tree.rig.sim);
    send_now(tree.root, TLP_MWR, tree.bar[0], 256, 1);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->got[0].tail_ps - at_ps, down_ps);
    tree_done(&tree);
}

static void unloaded_latency_is_the_formula(void **state)
{
    const sim_time hops_ps = 2 * LINK_PS + SWITCH_PS;
    sim_time x4_ps = spec_wire_ps(3, 4, 280), x8_ps = spec_wire_ps(3, 8, 280),
             x16_ps = spec_wire_ps(3, 16, 280);

    (void)state;
    latency_once("downstream_ports = 1; lanes = 8; downstream_lanes = 8;", 8, 8, hops_ps + x8_ps,
                 hops_ps + x8_ps);
    /* Between links of different speed the slower one's wire time counts, once. */
    latency_once("downstream_ports = 1; lanes = 16; downstream_lanes = 4;", 16, 4, hops_ps + x4_ps,
                 hops_ps + x4_ps);
    latency_once("downstream_ports = 1; lanes = 16; downstream_lanes = 4;"
                 "mode = \"store_and_forward\";",
                 16, 4, hops_ps + x4_ps + x16_ps, hops_ps + x4_ps + x16_ps);
}

static uint64_t stream_address;
static unsigned stream_bytes;

static struct tlp *make_stream(struct end_device *end, uint64_t i)
{
    return pcie_rig_tlp(end->rig, TLP_MWR, stream_address + i % 64 * 4096, stream_bytes, i);
}

static void stream_start(struct end_device *end, uint64_t n)
{
    end->make = make_stream;
    end->n_to_send = n;
    end->n_sent = 0;
    end->port.tx_queue_tlps = 4;
    end_credit(&end->model, 0);
}

/* Through the switch the link is as full as without it, for two events per TLP. */
static void saturated_once(const char *settings, unsigned root_lanes, unsigned end_lanes,
                           unsigned bytes, double events_per_tlp)
{
    const uint64_t n = 4000;
    unsigned slower = SIM_MIN(root_lanes, end_lanes);
    struct tree tree;

    tree_new(&tree, settings, root_lanes, 1, end_lanes);
    stream_address = HOST_RAM;
    stream_bytes = bytes;
    uint64_t events = sim_events_fired(tree.rig.sim);
    stream_start(tree.end[0], n);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, n);
    sim_time took_ps = tree.root->got[n - 1].tail_ps - tree.root->got[0].tail_ps;
    assert_true(took_ps <= spec_wire_ps(3, slower, (n - 1) * (bytes + 24)) + 1);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(tree.root->got[i].id, i);
    events = sim_events_fired(tree.rig.sim) - events;
    assert_true((double)events <= events_per_tlp * (double)n);
    assert_int_equal(pcie_port_stats(&tree.sw->ports[0])->credit_stall_ps, 0);
    tree_done(&tree);
}

static void saturated_leaves_no_gap(void **state)
{
    (void)state;
    saturated_once("downstream_ports = 1; lanes = 16; downstream_lanes = 16;", 16, 16, 256, 2.05);
    saturated_once("downstream_ports = 1; lanes = 16; downstream_lanes = 16;", 16, 16, 64, 2.05);
    /* A wait for the tail of each TLP. */
    saturated_once("downstream_ports = 1; lanes = 16; downstream_lanes = 4;", 16, 4, 256, 3.05);
    saturated_once("downstream_ports = 1; lanes = 16; downstream_lanes = 4;"
                   "mode = \"store_and_forward\";",
                   16, 4, 256, 2.05);
    /* The egress is the bottleneck: the ingress stops for credits. */
    saturated_once("downstream_ports = 1; lanes = 4; downstream_lanes = 16;", 4, 16, 256, 4);
}

/* ---- Arbitration ----------------------------------------------------------------------------- */

/* Three ends that each could fill the upstream link get a third of it, in turn. */
static void egress_is_shared_round_robin(void **state)
{
    const uint64_t n = 1000;
    struct tree tree;
    uint64_t share[3] = { 0 };

    (void)state;
    tree_new(&tree, "downstream_ports = 3; lanes = 8; downstream_lanes = 8;", 8, 3, 8);
    stream_address = HOST_RAM;
    stream_bytes = 256;
    for (unsigned i = 0; i < 3; i++)
        stream_start(tree.end[i], n);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 3 * n);
    sim_time took_ps = tree.root->got[3 * n - 1].tail_ps - tree.root->got[0].tail_ps;
    assert_true(took_ps <= spec_wire_ps(3, 8, (3 * n - 1) * 280) + 1);
    /* Each stream is in order, so counting ids tells how far each is: never more than one apart. */
    for (uint64_t i = 0; i < 3 * n; i++) {
        uint64_t id = tree.root->got[i].id;
        unsigned who = 0;
        while (who < 3 && share[who] != id)
            who++;
        assert_true(who < 3);
        share[who]++;
        assert_true(SIM_MAX(SIM_MAX(share[0], share[1]), share[2]) -
                        SIM_MIN(SIM_MIN(share[0], share[1]), share[2]) <=
                    1);
    }
    tree_done(&tree);
}

/* Small TLPs and large ones take turns one for one; a lone reader is not starved by two writers. */
static void a_reader_is_not_starved(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, "downstream_ports = 3; lanes = 8; downstream_lanes = 8;", 8, 3, 8);
    stream_address = HOST_RAM;
    stream_bytes = 256;
    stream_start(tree.end[0], 400);
    stream_start(tree.end[1], 400);
    sim_time at_ps = sim_now(tree.rig.sim) + 5000000;
    pcie_port_send(&tree.end[2]->port, pcie_rig_tlp(&tree.rig, TLP_MRD, HOST_RAM, 512, 9), at_ps);
    pcie_rig_run(&tree.rig);
    size_t i = 0;
    while (tree.root->got[i].type != TLP_MRD)
        i++;
    /* Its way without load, one TLP on the wire and one of each writer before it. */
    assert_true(tree.root->got[i].tail_ps <= at_ps + 2 * LINK_PS + SWITCH_PS +
                                                 spec_wire_ps(3, 8, 24) +
                                                 3 * spec_wire_ps(3, 8, 280));
    tree_done(&tree);
}

/* An end that takes nothing does not stop the other's traffic, nor completions past its own. */
static void a_blocked_egress_blocks_nobody_else(void **state)
{
    struct tree tree;

    (void)state;
    tree_init(&tree, two_x8, 8, 2, 8);
    tree.end[0]->port.advertise = (struct pcie_credits){ { 1, 1, 4 }, { 16, 1, 64 } };
    tree_plug(&tree);
    enumerate(&tree);
    tree.end[0]->hold[TLP_POSTED] = tree.end[0]->hold[TLP_NON_POSTED] = true;
    for (uint64_t i = 0; i < 10; i++)
        send_now(tree.root, TLP_MRD, tree.bar[0], 64, i);
    for (uint64_t i = 10; i < 20; i++)
        send_now(tree.root, TLP_MWR, tree.bar[1], 64, i);
    struct tlp *cpl = pcie_rig_tlp(&tree.rig, TLP_CPLD, 0, 64, 20);
    cpl->requester_id = tree.id[0];
    pcie_port_send(&tree.root->port, cpl, sim_now(tree.rig.sim));
    for (uint64_t i = 21; i < 24; i++)
        send_now(tree.root, TLP_MWR, tree.bar[0], 64, i);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[1]->n_got, 10);
    /* One read, the completion past the other reads, one write. */
    assert_int_equal(tree.end[0]->n_got, 3);
    assert_int_equal(tree.end[0]->got[0].id, 0);
    assert_int_equal(tree.end[0]->got[1].type, TLP_CPLD);
    assert_int_equal(tree.end[0]->got[2].id, 21);
    tree.end[0]->hold[TLP_POSTED] = tree.end[0]->hold[TLP_NON_POSTED] = false;
    end_release_held(tree.end[0], TLP_NON_POSTED, 0);
    end_release_held(tree.end[0], TLP_POSTED, 4);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->n_got, 14);
    tree_done(&tree);
}

/* A completion that waits for its own credits does not wait for a younger write as well. */
static void a_younger_write_holds_nobody_back(void **state)
{
    struct tree tree;
    static const enum tlp_type types[] = { TLP_MWR, TLP_CPL, TLP_CPL, TLP_MWR };

    (void)state;
    tree_init(&tree, two_x8, 8, 2, 8);
    tree.end[0]->port.advertise = (struct pcie_credits){ { 1, 1, 1 }, { 16, 1, 16 } };
    tree_plug(&tree);
    enumerate(&tree);
    tree.end[0]->hold[TLP_POSTED] = tree.end[0]->hold[TLP_COMPLETION] = true;
    for (uint64_t i = 0; i < SIM_N_ELEMENTS(types); i++) {
        struct tlp *tlp = pcie_rig_tlp(&tree.rig, types[i], tree.bar[0],
                                       types[i] == TLP_CPL ? 0 : 64, i);
        if (types[i] == TLP_CPL)
            tlp->requester_id = tree.id[0];
        pcie_port_send(&tree.root->port, tlp, sim_now(tree.rig.sim));
    }
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->n_got, 2);
    end_release_held(tree.end[0], TLP_COMPLETION, 0);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->n_got, 3);
    assert_int_equal(tree.end[0]->got[2].type, TLP_CPL);
    end_release_held(tree.end[0], TLP_POSTED, 4);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->n_got, 4);
    end_release_held(tree.end[0], TLP_POSTED, 4);
    end_release_held(tree.end[0], TLP_COMPLETION, 0);
    tree_done(&tree);
}

/* With one posted header at the switch, the second write starts when the first has left the slower
 * egress and the UpdateFC is there. */
static void buffers_are_held_until_the_tail_has_left(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree,
             "downstream_ports = 1; lanes = 4; downstream_lanes = 16; posted_header_credits = 1;",
             4, 1, 16);
    sim_time at_ps = sim_now(tree.rig.sim), x4_ps = spec_wire_ps(3, 4, 280);
    send_now(tree.end[0], TLP_MWR, HOST_RAM, 256, 0);
    send_now(tree.end[0], TLP_MWR, HOST_RAM, 256, 1);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 2);
    sim_time left_ps = at_ps + LINK_PS + SWITCH_PS + x4_ps;
    assert_int_equal(tree.root->got[0].tail_ps, left_ps + LINK_PS);
    assert_int_equal(tree.root->got[1].tail_ps, left_ps + spec_wire_ps(3, 16, 8) + LINK_PS +
                                                    LINK_PS + SWITCH_PS + x4_ps + LINK_PS);
    tree_done(&tree);
}

/* The root has one posted header: the wire of the switch stands still until its credit is back. */
static void a_wait_for_credits_is_counted(void **state)
{
    static const double bit_error_ratio[] = { 0, 1e-12 };
    const sim_time wire_ps = spec_wire_ps(3, 8, 280);

    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bit_error_ratio); i++) {
        struct pcie_link_params params = pcie_rig_link_params(LINK_PS);
        struct tree tree;
        tree_init(&tree, two_x8, 8, 1, 8);
        tree.root->port.advertise.header[TLP_POSTED] = 1;
        params.bit_error_ratio = bit_error_ratio[i];
        pcie_rig_join(&tree.rig, &tree.root->port, &tree.sw->ports[0], &params);
        plug(&tree, &tree.sw->ports[1], &tree.end[0]->port);
        tree.sw->ops->start(tree.sw);
        enumerate(&tree);
        for (uint64_t id = 0; id < 2; id++)
            send_now(tree.end[0], TLP_MWR, HOST_RAM, 256, id);
        pcie_rig_run(&tree.rig);
        assert_int_equal(tree.root->n_got, 2);
        const struct arrival *got = tree.root->got;
        const sim_time idle_ps = got[1].head_ps - got[0].head_ps - wire_ps;
        assert_in_range(idle_ps, 2 * LINK_PS, 2 * LINK_PS + 2 * wire_ps);
        assert_in_range(pcie_port_stats(&tree.sw->ports[0])->credit_stall_ps, idle_ps - 2,
                        idle_ps + 2);
        assert_int_equal(pcie_port_stats(&tree.end[0]->port)->credit_stall_ps, 0);
        tree_done(&tree);
    }
}

/* ---- Ordering under load --------------------------------------------------------------------- */

/* Random mixes from everybody to everybody through the smallest buffers: all arrives, no flow sees
 * a reordering that the specification forbids, nothing stops. */
struct mix {
    struct sent sent[4000];
    uint8_t from[4000], to[4000];
    uint64_t n;
};

static struct end_device *party(struct tree *tree, unsigned i)
{
    return i == 0 ? tree->root : tree->end[i - 1];
}

static void mix_send(struct tree *tree, struct mix *mix, unsigned from, unsigned n_parties,
                     sim_time *at_ps)
{
    struct end_device *end = party(tree, from);
    struct sim_random *random = &end->model.random;
    static const enum tlp_type types[] = { TLP_MWR, TLP_MWR, TLP_MRD, TLP_CPLD, TLP_CPL };
    enum tlp_type type = types[sim_random_below(random, SIM_N_ELEMENTS(types))];
    unsigned to = (unsigned)((from + 1 + sim_random_below(random, n_parties - 1)) % n_parties);
    uint64_t id = mix->n++;
    uint64_t address = to == 0 ? HOST_RAM : tree->bar[to - 1];
    unsigned bytes = type == TLP_CPL ? 0 : 4 + (unsigned)sim_random_below(random, 250);
    struct tlp *tlp = pcie_rig_tlp(end->rig, type, address, bytes, id);

    if (tlp_class_of(tlp) == TLP_COMPLETION) {
        tlp->requester_id = to == 0 ? 0 : tree->id[to - 1];
        tlp->attr = sim_random_below(random, 4) == 0 ? TLP_ATTR_RELAXED_ORDERING : 0;
    }
    mix->sent[id] = (struct sent){ (uint8_t)tlp_class_of(tlp), tlp->attr, tlp->requester_id, 0 };
    mix->from[id] = (uint8_t)from;
    mix->to[id] = (uint8_t)to;
    *at_ps += sim_random_below(random, 60000);
    pcie_port_send(&end->port, tlp, *at_ps);
}

static void mix_check(struct tree *tree, const struct mix *mix, unsigned n_parties)
{
    uint64_t n_got = 0;

    for (unsigned to = 0; to < n_parties; to++) {
        const struct end_device *end = party(tree, to);
        n_got += end->n_got;
        for (size_t k = 0; k < end->n_got; k++) {
            uint64_t id = end->got[k].id & 0xffff;
            assert_int_equal(mix->to[id], to);
            /* What arrives after it and was sent before it by the same. */
            for (size_t l = k + 1; l < end->n_got; l++) {
                uint64_t other = end->got[l].id & 0xffff;
                assert_int_not_equal(other, id);
                if (mix->from[other] == mix->from[id] && other < id)
                    assert_true(spec_may_pass(&mix->sent[other], &mix->sent[id]));
            }
        }
    }
    assert_int_equal(n_got, mix->n);
}

#define MIX_PARTIES 4

/* How a mix runs: straight tells whether TLPs may pass the switch in one go; down, whether the
 * cable of the last end is pulled in the middle. */
struct mix_run {
    const char *settings;
    double bit_error_ratio;
    bool straight, down;
    /* What arrived, copied, to be freed; NULL: not wanted. */
    struct arrival *got[MIX_PARTIES];
    size_t n_got[MIX_PARTIES];
};

static void no_link_change(struct model *model, uint32_t port)
{
    (void)model, (void)port;
}

static void mix_run(uint64_t seed, struct mix_run *run)
{
    const unsigned n_parties = MIX_PARTIES;
    struct tree tree;
    struct mix *mix = calloc(1, sizeof(*mix));
    struct model_ops ops[MIX_PARTIES];
    struct pcie_link *last = NULL;
    sim_time at_ps[MIX_PARTIES];

    tree_init(&tree, run->settings, 8, n_parties - 1, seed % 2 == 0 ? 8 : 4);
    state_of(tree.sw)->xbar.same_size = run->straight;
    for (unsigned i = 0; i < n_parties; i++) {
        struct end_device *end = party(&tree, i);
        ops[i] = *end->model.ops;
        ops[i].link_change = no_link_change;
        end->model.ops = &ops[i];
        sim_random_init(&end->model.random, seed, end->model.name);
        end->port.advertise = (struct pcie_credits){ { 1, 1, 1 }, { 16, 1, 16 } };
    }
    for (unsigned i = 0; i < n_parties; i++) {
        struct pcie_link_params params = pcie_rig_link_params(LINK_PS);
        struct pcie_port *port = &party(&tree, i)->port;
        params.lanes = port->max_lanes;
        params.bit_error_ratio = run->bit_error_ratio;
        params.fc_update_ratio_pct = (uint32_t)(1 + seed % 100);
        last = pcie_rig_join(&tree.rig, &tree.sw->ports[i], port, &params);
    }
    enumerate(&tree);
    for (unsigned i = 0; i < n_parties; i++) {
        party(&tree, i)->random_service_ps = 80000;
        at_ps[i] = sim_now(tree.rig.sim);
    }
    for (unsigned k = 0; k < 250; k++)
        for (unsigned i = 0; i < n_parties; i++)
            mix_send(&tree, mix, i, n_parties, &at_ps[i]);
    if (run->down) {
        sim_run(tree.rig.sim, sim_now(tree.rig.sim) + 3 * SIM_PS_PER_US, NULL);
        pcie_link_set_up(last, false);
    }
    pcie_rig_run(&tree.rig);
    if (!run->down)
        mix_check(&tree, mix, n_parties);
    for (unsigned i = 0; i < n_parties; i++) {
        run->n_got[i] = party(&tree, i)->n_got;
        run->got[i] = calloc(run->n_got[i] + 1, sizeof(*run->got[i]));
        memcpy(run->got[i], party(&tree, i)->got, run->n_got[i] * sizeof(*run->got[i]));
    }
    tree_done(&tree);
    free(mix);
}

static void mix_run_free(struct mix_run *run)
{
    for (unsigned i = 0; i < MIX_PARTIES; i++)
        free(run->got[i]);
}

static void mix_once(uint64_t seed, const char *settings, double bit_error_ratio)
{
    struct mix_run run = { .settings = settings,
                           .bit_error_ratio = bit_error_ratio,
                           .straight = true };

    mix_run(seed, &run);
    mix_run_free(&run);
}

static const char tiny[] =
    "downstream_ports = 3; lanes = 8; downstream_lanes = 8;"
    "mps_bytes_max = 256; posted_header_credits = 1; posted_data_credits = 16;"
    "non_posted_header_credits = 1; non_posted_data_credits = 1;"
    "completion_header_credits = 1; completion_data_credits = 16;";

static void random_mixes_keep_the_rules(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        mix_once(seed, tiny, 0);
        mix_once(seed,
                 "downstream_ports = 3; lanes = 8; downstream_lanes = 8;"
                 "mode = \"store_and_forward\";",
                 0);
    }
}

static void replays_are_not_seen_through_a_switch(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        mix_once(seed, tiny, 1e-4);
        mix_once(seed, "downstream_ports = 3; lanes = 8; downstream_lanes = 8;", 1e-5);
    }
}

/* The same mix, with and without passing the switch in one go. */
static void expect_same(uint64_t seed, const char *settings, double bit_error_ratio, bool down)
{
    struct mix_run run[2];

    for (unsigned k = 0; k < 2; k++) {
        run[k] = (struct mix_run){ .settings = settings,
                                   .bit_error_ratio = bit_error_ratio,
                                   .straight = k == 1,
                                   .down = down };
        mix_run(seed, &run[k]);
    }
    for (unsigned i = 0; i < MIX_PARTIES; i++) {
        assert_int_equal(run[0].n_got[i], run[1].n_got[i]);
        for (size_t n = 0; n < run[0].n_got[i]; n++) {
            const struct arrival *slow = &run[0].got[i][n], *straight = &run[1].got[i][n];
            assert_int_equal(slow->id, straight->id);
            assert_int_equal(slow->now_ps, straight->now_ps);
            assert_int_equal(slow->head_ps, straight->head_ps);
            assert_int_equal(slow->tail_ps, straight->tail_ps);
            assert_int_equal(slow->status, straight->status);
        }
    }
    mix_run_free(&run[0]);
    mix_run_free(&run[1]);
}

/* Other senders come in between, credits run out, TLPs are replayed, a cable is pulled: whatever
 * takes the long way leaves when it would if all did. */
static void straight_through_changes_nothing(void **state)
{
    static const char *const settings[] = {
        tiny, "downstream_ports = 3; lanes = 8; downstream_lanes = 8;",
        "downstream_ports = 3; lanes = 8; downstream_lanes = 8; posted_header_credits = 2;",
        "downstream_ports = 3; lanes = 8; downstream_lanes = 8; mode = \"store_and_forward\";"
    };

    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(settings); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            expect_same(seed, settings[i], 0, false);
            expect_same(seed, settings[i], 1e-5, false);
            expect_same(seed, settings[i], 0, true);
        }
}

/* ---- Mistakes, cut short --------------------------------------------------------------------- */

static void expect_mistake(const char *settings, const char *part)
{
    struct rig rig;
    struct config *config;

    pcie_rig_init(&rig, 1);
    struct model *sw = switch_new(&rig, "sw", settings, &config);
    assert_int_equal(rig.errors.n_messages, 1);
    assert_non_null(strstr(rig.errors.message[0], part));
    model_free(sw);
    config_free(config);
    pcie_rig_release(&rig);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_mistake("lanes = 3;", "3");
    expect_mistake("downstream_ports = 33;", "downstream_ports");
    expect_mistake("latency_ns = 20;", "latency_ns");
    expect_mistake("mps_bytes_max = 384;", "power of two");
}

static void cut_short(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, "downstream_ports = 2; lanes = 16; downstream_lanes = 4;", 16, 2, 4);
    stream_address = HOST_RAM;
    stream_bytes = 256;
    stream_start(tree.end[0], 100);
    stream_start(tree.end[1], 100);
    sim_run(tree.rig.sim, sim_now(tree.rig.sim) + 300000, NULL);
    assert_true(tlp_live(tree.rig.pcie) > 0);
    model_free(tree.sw);
    end_free(tree.root);
    end_free(tree.end[0]);
    end_free(tree.end[1]);
    config_free(tree.config[0]);
    pcie_rig_release(&tree.rig);
}

/* ---- Multicast ------------------------------------------------------------------------------- */

#define MC_BASE UINT64_C(0x5000000000)

/* Groups of 64 KiB at MC_BASE: writes port `port`'s registers. */
static void set_multicast(struct tree *tree, uint32_t port, uint64_t receive, uint64_t block,
                          uint64_t overlay)
{
    const struct cfg_space *cfg = state_of(tree->sw)->port[port].cfg;
    unsigned cap = cfg->mc_cap;
    const uint64_t value[5] = { MC_BASE | 16, receive, block, 0, overlay };

    for (unsigned i = 0; i < 5; i++) {
        config_write(tree, cfg->id, cap + PCI_MC_BASE + 8 * i, 4, (uint32_t)value[i]);
        config_write(tree, cfg->id, cap + PCI_MC_BASE + 8 * i + 4, 4, (uint32_t)(value[i] >> 32));
    }
    config_write(tree, cfg->id, cap + PCI_MC_CONTROL, 2, PCI_MC_CONTROL_ENABLE | 3);
}

/* Group 1 goes to ends 1 and 2 and to the root, each through its port's overlay or without one;
 * not back to where it came from; group 2 may not come in; group 3 nobody receives. */
static void multicast_writes_are_copied(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree, "downstream_ports = 3; lanes = 8; downstream_lanes = 8;", 8, 3, 8);
    const struct cfg_space *cfg = state_of(tree.sw)->port[1].cfg;
    assert_int_equal(cfg_read(cfg, cfg->mc_cap, 2), PCI_ECAP_ID_MULTICAST);
    assert_int_equal(cfg_read(cfg, cfg->mc_cap + PCI_MC_CAPABILITY, 2), 63);
    set_multicast(&tree, 0, 2, 0, (HOST_RAM + 0x500000) | 16);
    set_multicast(&tree, 1, 2, 4, 0);
    set_multicast(&tree, 2, 2, 0, tree.bar[1] | 12);
    set_multicast(&tree, 3, 2 | 4, 0, 0);
    forget(&tree);
    sim_time at_ps = sim_now(tree.rig.sim);
    send_now(tree.end[0], TLP_MWR, MC_BASE + 0x10000 + 0x1040, 256, 9);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[0]->n_got, 0);
    assert_int_equal(tree.root->n_got, 1);
    assert_int_equal(tree.end[1]->n_got, 1);
    assert_int_equal(tree.end[2]->n_got, 1);
    assert_int_equal(tree.root->got[0].address, HOST_RAM + 0x500000 + 0x1040);
    assert_int_equal(tree.end[1]->got[0].address, tree.bar[1] + 0x40);
    assert_int_equal(tree.end[2]->got[0].address, MC_BASE + 0x10000 + 0x1040);
    /* Each copy takes what a write that goes there alone does. */
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(tree.end[i]->got[0].tail_ps,
                         at_ps + 2 * LINK_PS + SWITCH_PS + spec_wire_ps(3, 8, 280));
    send_now(tree.end[0], TLP_MWR, MC_BASE + 0x20000, 64, 1); /* blocked */
    send_now(tree.end[1], TLP_MWR, MC_BASE + 0x20000, 64, 2); /* to end 2 alone */
    send_now(tree.end[1], TLP_MWR, MC_BASE + 0x30000, 64, 3); /* to nobody */
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[2]->n_got, 2);
    assert_int_equal(tree.end[2]->got[1].id, 2);
    assert_int_equal(tree.root->n_got, 1);
    assert_int_equal(state_of(tree.sw)->multicast_in, 4);
    assert_int_equal(state_of(tree.sw)->multicast_copies, 4);
    assert_int_equal(state_of(tree.sw)->multicast_blocked, 2);
    /* Beyond the last group, and reads: as everything else. */
    send_now(tree.end[0], TLP_MRD, MC_BASE + 0x10000, 64, 4);
    send_now(tree.end[0], TLP_MWR, MC_BASE + 0x40000, 64, 5);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.root->n_got, 3);
    assert_int_equal(tree.root->got[1].type + tree.root->got[2].type, TLP_MRD + TLP_MWR);
    /* To nobody any more: the only port that receives the group has lost its link. */
    struct model_ops ops = *tree.end[2]->model.ops;
    ops.link_change = no_link_change;
    tree.end[2]->model.ops = &ops;
    pcie_link_set_up(tree.end[2]->port.link, false);
    send_now(tree.end[1], TLP_MWR, MC_BASE + 0x20000, 64, 6);
    pcie_rig_run(&tree.rig);
    assert_int_equal(state_of(tree.sw)->multicast_in, 5);
    assert_int_equal(state_of(tree.sw)->multicast_copies, 4);
    assert_int_equal(state_of(tree.sw)->multicast_blocked, 3);
    tree_done(&tree);
}

/* A subscriber that takes nothing for a while: its copies keep the buffers of the originals, so the
 * sender runs out of credits, and nothing is lost. */
static void multicast_copies_share_a_buffer(void **state)
{
    struct tree tree;

    (void)state;
    tree_new(&tree,
             "downstream_ports = 3; lanes = 8; downstream_lanes = 8; posted_header_credits = 8;", 8,
             3, 8);
    for (unsigned i = 0; i < 4; i++)
        set_multicast(&tree, i, i < 2 ? 0 : 1, 0, 0);
    forget(&tree);
    tree.end[2]->hold[TLP_POSTED] = true;
    for (unsigned i = 0; i < 300; i++)
        send_now(tree.end[0], TLP_MWR, MC_BASE + 64 * i, 64, i);
    pcie_rig_run(&tree.rig);
    assert_int_equal(tree.end[2]->n_got, 256);     /* what its own buffers hold */
    assert_int_equal(tree.end[1]->n_got, 256 + 8); /* and what the switch's do */
    tree.end[2]->hold[TLP_POSTED] = false;
    while (tree.end[2]->held_header[TLP_POSTED] != 0)
        end_release_held(tree.end[2], TLP_POSTED, 4);
    pcie_rig_run(&tree.rig);
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(tree.end[i]->n_got, 300);
        for (unsigned k = 0; k < 300; k++)
            assert_int_equal(tree.end[i]->got[k].id, k);
    }
    tree_done(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enumerates_two_switches_in_cascade),
        cmocka_unit_test(bridges_show_their_links),
        cmocka_unit_test(completions_follow_the_requester),
        cmocka_unit_test(peer_to_peer_takes_the_direct_way),
        cmocka_unit_test(acs_redirects_to_the_root),
        cmocka_unit_test(unsupported_requests_are_answered),
        cmocka_unit_test(deferrable_writes_need_buffers),
        cmocka_unit_test(config_requests_that_nobody_answers),
        cmocka_unit_test(unexpected_completions_are_dropped),
        cmocka_unit_test(unloaded_latency_is_the_formula),
        cmocka_unit_test(saturated_leaves_no_gap),
        cmocka_unit_test(egress_is_shared_round_robin),
        cmocka_unit_test(a_reader_is_not_starved),
        cmocka_unit_test(a_blocked_egress_blocks_nobody_else),
        cmocka_unit_test(a_younger_write_holds_nobody_back),
        cmocka_unit_test(buffers_are_held_until_the_tail_has_left),
        cmocka_unit_test(a_wait_for_credits_is_counted),
        cmocka_unit_test(random_mixes_keep_the_rules),
        cmocka_unit_test(replays_are_not_seen_through_a_switch),
        cmocka_unit_test(straight_through_changes_nothing),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(multicast_writes_are_copied),
        cmocka_unit_test(multicast_copies_share_a_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
