/* Enumeration of synthetic trees: configuration requests are routed by the bridges' own bus
 * registers, addresses by their own windows, so that what is checked is what hardware would do. */
#include "models/host/enumerate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw/pci_regs.h"

#define MAX_FUNCTIONS 400
#define NO_FUNCTION   (-1)
#define MIB           (UINT64_C(1) << 20)
#define GIB           (UINT64_C(1) << 30)

struct function {
    struct cfg_space cfg;
    int parent; /* bridge above, or NO_FUNCTION */
    unsigned device, function;
    enum cfg_port_type type;
};

struct tree {
    struct function *function;
    int n;
    uint64_t random;
    unsigned requests;
};

static struct tree tree_new(uint64_t seed)
{
    struct tree tree = { .random = seed * 2 + 1 };
    tree.function = calloc(MAX_FUNCTIONS, sizeof(*tree.function));
    assert_non_null(tree.function);
    return tree;
}

static uint64_t draw(struct tree *tree, uint64_t bound)
{
    tree->random ^= tree->random << 13;
    tree->random ^= tree->random >> 7;
    tree->random ^= tree->random << 17;
    return (tree->random >> 11) % bound;
}

static int add(struct tree *tree, int parent, unsigned device, unsigned fn, enum cfg_port_type type,
               bool multi, unsigned mps_bytes)
{
    assert_true(tree->n < MAX_FUNCTIONS);
    struct function *function = &tree->function[tree->n];
    const struct cfg_identity identity = { .vendor_id = 0x1af4,
                                           .device_id = (uint16_t)tree->n,
                                           .class_code = type == CFG_ENDPOINT ? 0x020000 : 0x060400,
                                           .multi_function = multi };
    function->parent = parent;
    function->device = device;
    function->function = fn;
    function->type = type;
    if (type == CFG_ENDPOINT)
        cfg_init_endpoint(&function->cfg, &identity);
    else
        cfg_init_bridge(&function->cfg, &identity);
    cfg_add_msi(&function->cfg, 0); /* so that the PCI Express capability is not the first */
    cfg_add_pcie(&function->cfg, type, 3, 16, mps_bytes, tree->n % 3 != 0);
    cfg_add_acs(&function->cfg);
    if (tree->n % 2 != 0)
        cfg_add_ecrc(&function->cfg);
    return tree->n++;
}

static bool answers(const struct tree *tree, int i, unsigned device, unsigned fn)
{
    const struct function *function = &tree->function[i];
    return function->device == device && function->function == fn;
}

/* The function that answers to id, found from bus `bus` (below bridge `parent`) downwards. */
static int route_id(const struct tree *tree, int parent, unsigned bus, uint16_t id)
{
    unsigned target = id >> 8;
    /* A link has one device at its other end; software need not ask for others. */
    if (bus == target && parent != NO_FUNCTION && tree->function[parent].type != CFG_UPSTREAM_PORT)
        assert_int_equal(id >> 3 & 31, 0);
    for (int i = 0; i < tree->n; i++) {
        const struct function *function = &tree->function[i];
        if (function->parent != parent)
            continue;
        if (bus == target) {
            if (answers(tree, i, id >> 3 & 31u, id & 7u))
                return i;
            continue;
        }
        const struct cfg_space *cfg = &function->cfg;
        if (cfg->bridge && cfg_bridge_secondary(cfg) != 0 && cfg_bridge_secondary(cfg) <= target &&
            target <= cfg_bridge_subordinate(cfg))
            return route_id(tree, i, cfg_bridge_secondary(cfg), id);
    }
    return NO_FUNCTION;
}

static unsigned first_bus;

static uint32_t tree_read(void *context, uint16_t id, unsigned offset, unsigned bytes)
{
    struct tree *tree = context;
    tree->requests++;
    int i = route_id(tree, NO_FUNCTION, first_bus, id);
    return i == NO_FUNCTION ? UINT32_MAX >> (32 - 8 * bytes)
                            : cfg_read(&tree->function[i].cfg, offset, bytes);
}

static void tree_write(void *context, uint16_t id, unsigned offset, unsigned bytes, uint32_t value)
{
    struct tree *tree = context;
    tree->requests++;
    int i = route_id(tree, NO_FUNCTION, first_bus, id);
    assert_int_not_equal(i, NO_FUNCTION); /* software writes only to what it has found */
    cfg_write(&tree->function[i].cfg, offset, bytes, value);
}

static const struct pcie_enumerate_options roomy = {
    .first_bus = 0,
    .last_bus = 255,
    .memory_base = 0x80000000,
    .memory_bytes = UINT64_C(0x7ee00000),
    .prefetchable_base = UINT64_C(1) << 42,
    .prefetchable_bytes = UINT64_C(1) << 44,
    .mrrs_bytes = 4096,
    .extended_tags = true,
    .acs = true,
    .ecrc = true,
};

static int run(struct tree *tree, const struct pcie_enumerate_options *options,
               struct pcie_found *found, unsigned max, const char **why)
{
    const struct pcie_cfg_access access = { tree, tree_read, tree_write };
    first_bus = options->first_bus;
    return pcie_enumerate(&access, options, found, max, why);
}

/* ---- Properties ------------------------------------------------------------------------------ */

/* Room for all virtual functions that there may be. */
static uint64_t vf_bytes(const struct cfg_space *cfg)
{
    return cfg->sriov_cap == 0
               ? 0
               : cfg->vf_bar_bytes * cfg_read(cfg, cfg->sriov_cap + PCI_SRIOV_TOTAL_VFS, 2);
}

/* Which function claims a memory request that comes down from bus level `parent`: every claimant
 * counts, so that an overlap shows. */
static int claimants(const struct tree *tree, int parent, uint64_t address, int *claimed_by)
{
    int n = 0;
    for (int i = 0; i < tree->n; i++) {
        const struct cfg_space *cfg = &tree->function[i].cfg;
        if (tree->function[i].parent != parent)
            continue;
        if (cfg_bar_match(cfg, address, 1) >= 0 ||
            address - cfg->live.vf_bar_base < vf_bytes(cfg)) {
            *claimed_by = i;
            n++;
        }
        if (!cfg->bridge || !cfg_memory_enabled(cfg))
            continue;
        struct cfg_window memory = cfg_bridge_memory(cfg), prefetch = cfg_bridge_prefetchable(cfg);
        if ((address >= memory.base && address <= memory.limit) ||
            (address >= prefetch.base && address <= prefetch.limit)) {
            int below = claimants(tree, i, address, claimed_by);
            n += below == 0 ? 1 : below; /* claimed by the bridge itself, though for nobody */
        }
    }
    return n;
}

static bool inside(struct cfg_window outer, uint64_t base, uint64_t last)
{
    return outer.base <= base && last <= outer.limit;
}

static void check_bar(const struct tree *tree, int i, unsigned bar,
                      const struct pcie_enumerate_options *options)
{
    const struct cfg_space *cfg = &tree->function[i].cfg;
    uint64_t bytes = cfg->bar_bytes[bar], base = cfg_bar_base(cfg, bar);
    bool prefetchable = cfg->bar_flags[bar] == (CFG_BAR_64 | CFG_BAR_PREFETCH);
    assert_int_equal(base & (bytes - 1), 0);
    struct cfg_window host = { options->memory_base,
                               options->memory_base + options->memory_bytes - 1 };
    if (prefetchable)
        host = (struct cfg_window){ options->prefetchable_base,
                                    options->prefetchable_base + options->prefetchable_bytes - 1 };
    assert_true(inside(host, base, base + bytes - 1));
    for (int up = tree->function[i].parent; up != NO_FUNCTION; up = tree->function[up].parent) {
        const struct cfg_space *bridge = &tree->function[up].cfg;
        assert_true(
            inside(prefetchable ? cfg_bridge_prefetchable(bridge) : cfg_bridge_memory(bridge), base,
                   base + bytes - 1));
    }
    const uint64_t probe[] = { base, base + bytes / 2, base + bytes - 1 };
    for (unsigned p = 0; p < 3; p++) {
        int claimed_by = NO_FUNCTION;
        assert_int_equal(claimants(tree, NO_FUNCTION, probe[p], &claimed_by), 1);
        assert_int_equal(claimed_by, i);
    }
}

/* Aligned as one of them, in the prefetchable windows of all bridges above, and nobody else's. */
static void check_vfs(const struct tree *tree, int i)
{
    const struct cfg_space *cfg = &tree->function[i].cfg;
    uint64_t base = cfg->live.vf_bar_base, bytes = vf_bytes(cfg);
    const uint64_t probe[] = { base, base + bytes / 2, base + bytes - 1 };
    assert_int_equal(cfg->live.n_vfs, 0);
    assert_false(cfg->live.vf_memory_enabled);
    assert_true(base != 0 && base % cfg->vf_bar_bytes == 0);
    for (int up = tree->function[i].parent; up != NO_FUNCTION; up = tree->function[up].parent)
        assert_true(
            inside(cfg_bridge_prefetchable(&tree->function[up].cfg), base, base + bytes - 1));
    for (unsigned p = 0; p < 3; p++) {
        int claimed_by = NO_FUNCTION;
        assert_int_equal(claimants(tree, NO_FUNCTION, probe[p], &claimed_by), 1);
        assert_int_equal(claimed_by, i);
    }
}

static void check_no_overlap(const struct tree *tree)
{
    for (int i = 0; i < tree->n; i++) {
        for (int j = 0; j < tree->n; j++) {
            const struct cfg_space *a = &tree->function[i].cfg, *b = &tree->function[j].cfg;
            for (unsigned m = 0; m < 6; m++) {
                for (unsigned n = 0; n < 6 && a->bar_bytes[m] != 0; n++) {
                    if ((i == j && m == n) || b->bar_bytes[n] == 0)
                        continue;
                    assert_true(cfg_bar_base(b, n) - cfg_bar_base(a, m) >= a->bar_bytes[m]);
                }
            }
        }
    }
}

static void check_buses(const struct tree *tree, const struct pcie_enumerate_options *options)
{
    for (int i = 0; i < tree->n; i++) {
        const struct cfg_space *cfg = &tree->function[i].cfg;
        if (!cfg->bridge)
            continue;
        int up = tree->function[i].parent;
        unsigned above = options->first_bus, last = options->last_bus;
        if (up != NO_FUNCTION) {
            above = cfg_bridge_secondary(&tree->function[up].cfg);
            last = cfg_bridge_subordinate(&tree->function[up].cfg);
        }
        assert_int_equal(cfg_bridge_primary(cfg), above);
        assert_true(cfg_bridge_secondary(cfg) > above);
        assert_true(cfg_bridge_secondary(cfg) <= cfg_bridge_subordinate(cfg));
        assert_true(cfg_bridge_subordinate(cfg) <= last);
        for (int j = 0; j < tree->n; j++) {
            const struct cfg_space *other = &tree->function[j].cfg;
            if (j != i && tree->function[j].parent == up && other->bridge)
                assert_true(cfg_bridge_subordinate(cfg) < cfg_bridge_secondary(other) ||
                            cfg_bridge_subordinate(other) < cfg_bridge_secondary(cfg));
        }
    }
}

static void check_controls(const struct tree *tree, const struct pcie_enumerate_options *options,
                           unsigned mps_bytes)
{
    for (int i = 0; i < tree->n; i++) {
        const struct cfg_space *cfg = &tree->function[i].cfg;
        assert_true(cfg_bus_master(cfg) && cfg_memory_enabled(cfg));
        assert_int_equal(cfg_mps_bytes(cfg), mps_bytes);
        assert_int_equal(cfg_mrrs_bytes(cfg), options->mrrs_bytes == 0 ? 512 : options->mrrs_bytes);
        assert_int_equal(cfg_extended_tags(cfg), options->extended_tags && i % 3 != 0);
        assert_int_equal(cfg_acs_p2p_request_redirect(cfg), options->acs);
        assert_int_equal(cfg->live.ecrc, options->ecrc && i % 2 != 0);
    }
}

static void check_found(const struct tree *tree, const struct pcie_found *found, int n_found)
{
    assert_int_equal(n_found, tree->n);
    for (int k = 0; k < n_found; k++) {
        int i = found[k].device_id; /* the tree numbers its functions so */
        const struct cfg_space *cfg = &tree->function[i].cfg;
        assert_int_equal(route_id(tree, NO_FUNCTION, first_bus, found[k].id), i);
        assert_int_equal(found[k].vendor_id, 0x1af4);
        assert_int_equal(found[k].class_code, cfg->bridge ? 0x060400 : 0x020000);
        assert_int_equal(found[k].bridge, cfg->bridge);
        assert_memory_equal(found[k].bar_bytes, cfg->bar_bytes, sizeof(cfg->bar_bytes));
        for (unsigned bar = 0; bar < 6; bar++)
            assert_int_equal(found[k].bar_base[bar], cfg_bar_base(cfg, bar));
        if (cfg->bridge) {
            assert_int_equal(found[k].secondary, cfg_bridge_secondary(cfg));
            assert_int_equal(found[k].subordinate, cfg_bridge_subordinate(cfg));
        }
        if (k > 0)
            assert_true(found[k - 1].id < found[k].id); /* depth first is ascending */
    }
}

static void check_tree(struct tree *tree, const struct pcie_enumerate_options *options,
                       unsigned mps_bytes)
{
    struct pcie_found *found = calloc(MAX_FUNCTIONS, sizeof(*found));
    const char *why = NULL;
    int n_found = run(tree, options, found, MAX_FUNCTIONS, &why);
    if (why != NULL)
        fail_msg("%s", why);
    check_found(tree, found, n_found);
    check_buses(tree, options);
    check_controls(tree, options, mps_bytes);
    check_no_overlap(tree);
    for (int i = 0; i < tree->n; i++) {
        for (unsigned bar = 0; bar < 6; bar++) {
            if (tree->function[i].cfg.bar_bytes[bar] != 0)
                check_bar(tree, i, bar, options);
        }
        if (tree->function[i].cfg.sriov_cap != 0)
            check_vfs(tree, i);
    }
    free(found);
}

static void check_refused(struct tree *tree, const struct pcie_enumerate_options *options,
                          const char *expected)
{
    const char *why = NULL;
    assert_int_equal(run(tree, options, NULL, 0, &why), -1);
    assert_string_equal(why, expected);
    for (int i = 0; i < tree->n; i++) {
        const struct cfg_space *cfg = &tree->function[i].cfg;
        assert_false(cfg_memory_enabled(cfg) || cfg_bus_master(cfg));
        for (unsigned bar = 0; bar < 6; bar++)
            assert_int_equal(cfg_bar_base(cfg, bar), 0);
    }
}

/* ---- Random trees ---------------------------------------------------------------------------- */

static void random_bars(struct tree *tree, int i)
{
    struct cfg_space *cfg = &tree->function[i].cfg;
    unsigned n_bars = cfg->bridge ? PCI_N_BARS_BRIDGE : PCI_N_BARS_ENDPOINT;
    for (unsigned bar = 0; bar < n_bars; bar++) {
        unsigned kind = (unsigned)draw(tree, cfg->bridge ? 8 : 5);
        if (kind == 0 && bar + 1 < n_bars) {
            cfg_add_bar(cfg, bar, UINT64_C(1) << (4 + draw(tree, 32)),
                        CFG_BAR_64 | CFG_BAR_PREFETCH);
            bar++;
        } else if (kind == 1 && bar + 1 < n_bars) {
            cfg_add_bar(cfg, bar, UINT64_C(1) << (4 + draw(tree, 18)), CFG_BAR_64);
            bar++;
        } else if (kind == 2) {
            cfg_add_bar(cfg, bar, UINT64_C(1) << (4 + draw(tree, 18)),
                        draw(tree, 2) ? CFG_BAR_PREFETCH : 0);
        }
    }
    if (!cfg->bridge && draw(tree, 3) == 0) {
        struct cfg_sriov sriov = { .total_vfs = (uint16_t)(1 + draw(tree, 7)),
                                   .first_offset = 1,
                                   .stride = 1,
                                   .bar_bytes = UINT64_C(4096) << draw(tree, 12),
                                   .bar_flags = CFG_BAR_PREFETCH };
        cfg_add_sriov(cfg, &sriov);
    }
}

static unsigned random_mps(struct tree *tree, unsigned *smallest)
{
    unsigned mps_bytes = 256u << draw(tree, 5);
    mps_bytes = SIM_MIN(mps_bytes, 4096u);
    *smallest = SIM_MIN(*smallest, mps_bytes);
    return mps_bytes;
}

/* A device at the far end of a link below `parent`: an endpoint of one or more functions with
 * gaps, or a switch. */
static void random_device(struct tree *tree, int parent, unsigned depth, unsigned *mps)
{
    if (depth < 4 && tree->n < MAX_FUNCTIONS / 2 && draw(tree, 5) < 2) {
        int up = add(tree, parent, 0, 0, CFG_UPSTREAM_PORT, false, random_mps(tree, mps));
        random_bars(tree, up);
        unsigned n_ports = 1 + (unsigned)draw(tree, 5);
        for (unsigned port = 0; port < n_ports; port++) {
            unsigned device = port * 31 / n_ports;
            int down = add(tree, up, device, 0, CFG_DOWNSTREAM_PORT, false, random_mps(tree, mps));
            if (draw(tree, 4) != 0)
                random_device(tree, down, depth + 1, mps);
        }
        return;
    }
    bool multi = draw(tree, 3) == 0;
    for (unsigned fn = 0; fn < (multi ? 8u : 1u); fn++) {
        if (fn == 0 || draw(tree, 2))
            random_bars(tree, add(tree, parent, 0, fn, CFG_ENDPOINT, multi, random_mps(tree, mps)));
    }
}

static unsigned random_tree(struct tree *tree)
{
    unsigned mps = 4096;
    unsigned n_ports = 1 + (unsigned)draw(tree, 6);
    for (unsigned port = 0; port < n_ports; port++) {
        bool multi = port == 1;
        int root = add(tree, NO_FUNCTION, port * 5, 0, CFG_ROOT_PORT, multi,
                       random_mps(tree, &mps));
        cfg_set_rcb(&tree->function[root].cfg, port % 2 ? 128 : 64);
        random_device(tree, root, 0, &mps);
        if (multi) {
            root = add(tree, NO_FUNCTION, port * 5, 3, CFG_ROOT_PORT, multi,
                       random_mps(tree, &mps));
            random_device(tree, root, 0, &mps);
        }
    }
    random_bars(tree, add(tree, NO_FUNCTION, 31, 0, CFG_ENDPOINT, false, random_mps(tree, &mps)));
    return mps;
}

static void random_trees_satisfy_every_property(void **state)
{
    (void)state;
    unsigned functions = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct tree tree = tree_new(seed * UINT64_C(0x9e3779b97f4a7c15));
        unsigned mps = random_tree(&tree);
        check_tree(&tree, &roomy, mps);
        functions += (unsigned)tree.n;
        /* Once more over what the first pass left, with other options: nothing may stay behind. */
        struct pcie_enumerate_options other = roomy;
        other.first_bus = 16;
        other.memory_base = 0x90100000;
        other.memory_bytes = UINT64_C(0x60000000);
        other.prefetchable_base = UINT64_C(3) << 40;
        other.mps_bytes = 128;
        other.mrrs_bytes = 0;
        other.extended_tags = other.acs = other.ecrc = false;
        check_tree(&tree, &other, 128);
        free(tree.function);
    }
    assert_true(functions > 600); /* the trees are not trivial */
}

/* ---- Single cases ---------------------------------------------------------------------------- */

/* Root port, switch with two ports, an endpoint below each. */
static struct tree small_tree(int *left, int *right)
{
    struct tree tree = tree_new(1);
    int root = add(&tree, NO_FUNCTION, 1, 0, CFG_ROOT_PORT, false, 256);
    int up = add(&tree, root, 0, 0, CFG_UPSTREAM_PORT, false, 1024);
    *left = add(&tree, add(&tree, up, 0, 0, CFG_DOWNSTREAM_PORT, false, 1024), 0, 0, CFG_ENDPOINT,
                false, 512);
    *right = add(&tree, add(&tree, up, 1, 0, CFG_DOWNSTREAM_PORT, false, 1024), 0, 0, CFG_ENDPOINT,
                 false, 512);
    return tree;
}

static void large_prefetchable_bars(void **state)
{
    (void)state;
    int left, right;
    struct tree tree = small_tree(&left, &right);
    cfg_add_bar(&tree.function[left].cfg, 0, UINT64_C(1) << 40, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_bar(&tree.function[left].cfg, 4, 64 * 1024, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_bar(&tree.function[right].cfg, 2, UINT64_C(1) << 46, CFG_BAR_64 | CFG_BAR_PREFETCH);
    struct pcie_enumerate_options options = roomy;
    options.prefetchable_base = UINT64_C(1) << 46;
    options.prefetchable_bytes = UINT64_C(1) << 48;
    check_tree(&tree, &options, 256);
    free(tree.function);
}

static void bar_of_half_the_address_space(void **state)
{
    (void)state;
    struct tree tree = tree_new(1);
    int endpoint = add(&tree, NO_FUNCTION, 0, 0, CFG_ENDPOINT, false, 256);
    cfg_add_bar(&tree.function[endpoint].cfg, 0, UINT64_C(1) << 63, CFG_BAR_64 | CFG_BAR_PREFETCH);
    struct pcie_enumerate_options options = roomy;
    options.prefetchable_base = UINT64_C(1) << 63;
    options.prefetchable_bytes = UINT64_C(1) << 63;
    check_tree(&tree, &options, 256);
    assert_int_equal(cfg_bar_base(&tree.function[endpoint].cfg, 0), UINT64_C(1) << 63);
    /* Two of them are more than there can be. */
    cfg_add_bar(&tree.function[endpoint].cfg, 2, UINT64_C(1) << 63, CFG_BAR_64 | CFG_BAR_PREFETCH);
    check_refused(&tree, &options, "the prefetchable memory window does not suffice");
    free(tree.function);
}

static void window_suffices_exactly(void **state)
{
    (void)state;
    int left, right;
    struct tree tree = small_tree(&left, &right);
    /* Left: 2 MiB window. Right: 1 MiB granule for 4 KiB. Prefetchable: 1 GiB + 256 MiB. */
    cfg_add_bar(&tree.function[left].cfg, 0, 2 * MIB, 0);
    cfg_add_bar(&tree.function[left].cfg, 2, GIB, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_bar(&tree.function[right].cfg, 0, 4096, 0);
    cfg_add_bar(&tree.function[right].cfg, 2, 256 * MIB, CFG_BAR_64 | CFG_BAR_PREFETCH);
    struct pcie_enumerate_options options = roomy;
    options.memory_bytes = 3 * MIB;
    options.prefetchable_bytes = GIB + 256 * MIB;
    check_tree(&tree, &options, 256);
    struct cfg_window window = cfg_bridge_memory(&tree.function[0].cfg);
    assert_int_equal(window.limit - window.base + 1, 3 * MIB);
    window = cfg_bridge_prefetchable(&tree.function[0].cfg);
    assert_int_equal(window.limit - window.base + 1, GIB + 256 * MIB);

    options.memory_bytes = 3 * MIB - 1;
    check_refused(&tree, &options, "the non-prefetchable memory window does not suffice");
    options.memory_bytes = 3 * MIB;
    options.prefetchable_bytes--;
    check_refused(&tree, &options, "the prefetchable memory window does not suffice");
    options.prefetchable_bytes = 0;
    check_refused(&tree, &options, "the prefetchable memory window does not suffice");
    free(tree.function);
}

/* An unaligned host window: small things fill what large ones must leave free. */
static void gaps_are_filled(void **state)
{
    (void)state;
    struct tree tree = tree_new(1);
    int endpoint = add(&tree, NO_FUNCTION, 0, 0, CFG_ENDPOINT, false, 256);
    cfg_add_bar(&tree.function[endpoint].cfg, 0, 512 * MIB, 0);
    cfg_add_bar(&tree.function[endpoint].cfg, 1, 256 * MIB, 0);
    struct pcie_enumerate_options options = roomy;
    options.memory_base = 0x90000000;
    options.memory_bytes = 768 * MIB;
    check_tree(&tree, &options, 256);
    assert_int_equal(cfg_bar_base(&tree.function[endpoint].cfg, 0), 0xa0000000);
    assert_int_equal(cfg_bar_base(&tree.function[endpoint].cfg, 1), 0x90000000);
    free(tree.function);
}

static void bus_numbers_run_out(void **state)
{
    (void)state;
    int left, right;
    struct tree tree = small_tree(&left, &right);
    struct pcie_enumerate_options options = roomy;
    options.first_bus = 64;
    options.last_bus = 68; /* the root port's, the switch's inner one and two below: exactly */
    check_tree(&tree, &options, 256);
    free(tree.function);
    tree = small_tree(&left, &right);
    options.last_bus = 67;
    check_refused(&tree, &options, "bus numbers do not suffice");
    free(tree.function);
}

static void unused_windows_are_closed(void **state)
{
    (void)state;
    int left, right;
    struct tree tree = small_tree(&left, &right);
    cfg_add_bar(&tree.function[left].cfg, 0, 4096, 0);
    check_tree(&tree, &roomy, 256);
    const struct cfg_space *root = &tree.function[0].cfg;
    const struct cfg_space *down = &tree.function[tree.function[right].parent].cfg;
    assert_true(cfg_bridge_memory(root).base < cfg_bridge_memory(root).limit);
    assert_true(cfg_bridge_prefetchable(root).base > cfg_bridge_prefetchable(root).limit);
    assert_true(cfg_bridge_memory(down).base > cfg_bridge_memory(down).limit);
    assert_true(cfg_bridge_prefetchable(down).base > cfg_bridge_prefetchable(down).limit);
    free(tree.function);
}

/* A bridge whose prefetchable window has 32 bits: what lies below goes into the other window. */
static void narrow_prefetchable_window(void **state)
{
    (void)state;
    struct tree tree = tree_new(1);
    int root = add(&tree, NO_FUNCTION, 1, 0, CFG_ROOT_PORT, false, 256);
    int endpoint = add(&tree, root, 0, 0, CFG_ENDPOINT, false, 256);
    struct cfg_space *bridge = &tree.function[root].cfg;
    cfg_set(bridge, PCI_PREFETCH_BASE, 2, PCI_WINDOW_ADDRESS_MASK);
    cfg_set(bridge, PCI_PREFETCH_LIMIT, 2, 0);
    cfg_add_bar(&tree.function[endpoint].cfg, 0, 16 * MIB, CFG_BAR_64 | CFG_BAR_PREFETCH);
    const char *why = NULL;
    assert_int_equal(run(&tree, &roomy, NULL, 0, &why), 2);
    uint64_t base = cfg_bar_base(&tree.function[endpoint].cfg, 0);
    assert_true(inside(cfg_bridge_memory(bridge), base, base + 16 * MIB - 1));
    free(tree.function);
}

static void payload_size_and_boundary_follow_the_tree(void **state)
{
    (void)state;
    int left, right;
    struct tree tree = small_tree(&left, &right);
    cfg_set_rcb(&tree.function[0].cfg, 128);
    check_tree(&tree, &roomy, 256);
    assert_int_equal(cfg_rcb_bytes(&tree.function[left].cfg), 128);
    assert_int_equal(cfg_rcb_bytes(&tree.function[right].cfg), 128);
    struct pcie_enumerate_options options = roomy;
    options.mps_bytes = 128;
    check_tree(&tree, &options, 128);
    options.mps_bytes = 512;
    check_refused(&tree, &options, "a function does not support the Max_Payload_Size asked for");
    options.mps_bytes = 192;
    const char *why = NULL;
    assert_int_equal(run(&tree, &options, NULL, 0, &why), -1);
    assert_string_equal(why, "payload and read request sizes are powers of two from 128 to 4096");
    free(tree.function);
}

static void empty_bus_and_few_found(void **state)
{
    (void)state;
    struct tree tree = tree_new(1);
    const char *why = NULL;
    assert_int_equal(run(&tree, &roomy, NULL, 0, &why), 0);
    assert_int_equal(tree.requests, 32); /* one look at each device number */
    free(tree.function);

    int left, right;
    tree = small_tree(&left, &right);
    struct pcie_found found[3];
    memset(found, 0xee, sizeof(found));
    assert_int_equal(run(&tree, &roomy, found, 2, &why), 6);
    assert_int_equal(found[0].id, pcie_id(0, 1, 0));
    assert_int_equal(found[1].id, pcie_id(1, 0, 0));
    assert_int_equal(found[2].id, 0xeeee); /* not touched */
    free(tree.function);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_satisfy_every_property),
        cmocka_unit_test(large_prefetchable_bars),
        cmocka_unit_test(bar_of_half_the_address_space),
        cmocka_unit_test(window_suffices_exactly),
        cmocka_unit_test(gaps_are_filled),
        cmocka_unit_test(bus_numbers_run_out),
        cmocka_unit_test(unused_windows_are_closed),
        cmocka_unit_test(narrow_prefetchable_window),
        cmocka_unit_test(payload_size_and_boundary_follow_the_tree),
        cmocka_unit_test(empty_bus_and_few_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
