/* A root, switches and ends below it, configured through TLPs; for the tests of switches. */
#ifndef TESTS_MODEL_PCIE_TREE_H
#define TESTS_MODEL_PCIE_TREE_H

#include "tests/model/pcie_rig.h"

#include <unistd.h>

#include "hw/pci_regs.h"
#include "models/host/enumerate.h"
#include "models/pcie/switch/switch.h"

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

static inline struct pcie_switch *state_of(const struct model *sw)
{
    return sw->state;
}

/* ---- Building -------------------------------------------------------------------------------- */

static inline struct model *switch_new(struct rig *rig, const char *name, const char *settings,
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

static inline struct cfg_space *endpoint_cfg(void)
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

static inline void plug(struct tree *tree, struct pcie_port *a, struct pcie_port *b)
{
    struct pcie_link_params params = rig_link_params(LINK_PS);

    params.lanes = SIM_MIN(a->max_lanes, b->max_lanes);
    rig_join(&tree->rig, a, b, &params);
}

static inline struct end_device *add_end(struct tree *tree, unsigned lanes)
{
    static const char *const names[] = { "end0", "end1", "end2", "end3" };
    struct end_device *end = end_new(&tree->rig, names[tree->n_ends], 3, lanes);

    end->cfg = endpoint_cfg();
    return tree->end[tree->n_ends++] = end;
}

/* Root - sw - n ends, not plugged in yet. */
static inline void tree_init(struct tree *tree, const char *settings, unsigned root_lanes,
                             unsigned n_ends, unsigned end_lanes)
{
    *tree = (struct tree){ 0 };
    rig_init(&tree->rig, 1);
    tree->root = end_new(&tree->rig, "root", 3, root_lanes);
    tree->sw = switch_new(&tree->rig, "sw", settings, &tree->config[0]);
    for (unsigned i = 0; i < n_ends; i++)
        add_end(tree, end_lanes);
}

static inline void tree_plug(struct tree *tree)
{
    plug(tree, &tree->root->port, &tree->sw->ports[0]);
    for (unsigned i = 0; i < tree->n_ends; i++)
        plug(tree, &tree->sw->ports[i + 1], &tree->end[i]->port);
    tree->sw->ops->start(tree->sw);
}

/* What the ends have recorded so far is forgotten. */
static inline void forget(struct tree *tree)
{
    tree->root->n_got = 0;
    for (unsigned i = 0; i < tree->n_ends; i++)
        tree->end[i]->n_got = 0;
}

static inline void tree_done(struct tree *tree)
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
    rig_release(&tree->rig);
}

/* ---- Configuration through TLPs -------------------------------------------------------------- */

/* The root's link is bus 0, on which the switch's upstream port is device 0. */
static inline struct arrival *config_request(struct tree *tree, bool write, uint16_t id,
                                             unsigned offset, unsigned bytes, uint32_t value)
{
    enum tlp_type type = id >> 8 == 0 ? (write ? TLP_CFG_WR0 : TLP_CFG_RD0)
                                      : (write ? TLP_CFG_WR1 : TLP_CFG_RD1);
    size_t before = tree->root->n_got;
    struct tlp *tlp = rig_tlp(&tree->rig, type, offset, bytes, 0);

    tlp->completer_id = id;
    tlp->requester_id = 0;
    tlp->tag = 99;
    if (write)
        memcpy(tlp->payload, &value, bytes);
    pcie_port_send(&tree->root->port, tlp, sim_now(tree->rig.sim));
    rig_run(&tree->rig);
    assert_int_equal(tree->root->n_got, before + 1);
    struct arrival *got = &tree->root->got[before];
    assert_int_equal(got->class, TLP_COMPLETION);
    assert_int_equal(got->id, 99);
    return got;
}

static inline uint32_t config_read(void *context, uint16_t id, unsigned offset, unsigned bytes)
{
    struct tree *tree = context;

    if (id >> 8 == 0 && id != 0)
        return UINT32_MAX;
    const struct arrival *got = config_request(tree, false, id, offset, bytes, 0);
    return got->status == TLP_SC ? got->data : UINT32_MAX;
}

static inline void config_write(void *context, uint16_t id, unsigned offset, unsigned bytes,
                                uint32_t value)
{
    if (id >> 8 != 0 || id == 0)
        config_request(context, true, id, offset, bytes, value);
}

static inline void set_acs(struct tree *tree, unsigned downstream, uint16_t control)
{
    const struct cfg_space *cfg = state_of(tree->sw)->port[downstream + 1].cfg;

    config_write(tree, cfg->id, cfg->acs_cap + PCI_ACS_CONTROL, 2, control);
    forget(tree);
}

static inline int enumerate(struct tree *tree)
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

static inline void tree_new(struct tree *tree, const char *settings, unsigned root_lanes,
                            unsigned n_ends, unsigned end_lanes)
{
    tree_init(tree, settings, root_lanes, n_ends, end_lanes);
    tree_plug(tree);
    assert_int_equal(enumerate(tree), 1 + 2 * (int)n_ends);
}

static inline void send_now(struct end_device *from, enum tlp_type type, uint64_t address,
                            unsigned bytes, uint64_t id)
{
    pcie_port_send(&from->port, rig_tlp(from->rig, type, address, bytes, id),
                   sim_now(from->rig->sim));
}

#endif
