/*
 * Models: what firmware or an operating system does to find PCI functions and give them bus
 *   numbers, addresses and sizes. Three passes: scan depth first, numbering buses and sizing BARs;
 *   size the windows of bridges from the leaves up; assign from the root down and enable. Virtual
 *   functions get addresses, and stay disabled.
 * Does not model: I/O space, expansion ROMs, ARI, configuration request retry, hot plug,
 *   rebalancing of windows, Max_Payload_Size that differs between parts of a tree.
 * Timing: every access is a configuration request of the caller.
 * Sources: PCI Local Bus 3.0, 6.1, 6.2.5.1 (sizing); PCI-to-PCI Bridge 1.2, 3.2.5 (windows: 1 MiB
 *   granules); PCI Express Base 3.1, 7.3.1 (device 0 alone below a link), 7.8.4, 7.8.7, 7.16.
 *
 * Placement: in every window, items by descending alignment, then size, each at the lowest address
 * that is free and aligned. A window is as aligned as what it holds, so that positions relative to
 * its base stay right wherever it goes.
 */
#include "models/host/enumerate.h"

#include <stdlib.h>

#include "hw/pci_regs.h"

#define N_BARS        6u
#define GRANULE_BYTES (UINT64_C(1) << PCI_WINDOW_GRANULE_LOG2)
#define NO_PARENT     UINT32_MAX
#define WINDOW_END_32 (UINT64_C(1) << 32)

enum space { SPACE_MEMORY, SPACE_PREFETCHABLE, N_SPACES };

struct window {
    uint64_t base, bytes, align; /* base: relative to the parent's window until assigned */
};

struct bar {
    bool wide; /* 64 bits */
    enum space space;
};

struct node {
    struct pcie_found found;
    uint32_t parent;               /* index of the bridge above */
    uint32_t first_child, n_child; /* functions on the secondary bus */
    uint16_t pcie_cap, acs_cap, aer_cap, sriov_cap;
    uint8_t port_type;      /* enum cfg_port_type, if pcie_cap */
    bool prefetchable_64;   /* every bridge above has a 64-bit prefetchable window */
    bool rcb_128;           /* of the root port above */
    struct bar bar[N_BARS]; /* sizes and addresses: found */
    struct bar vf_bar[N_BARS];
    /* of all VFs that there may be; aligned as one VF's is */
    uint64_t vf_bar_base[N_BARS], vf_bar_bytes[N_BARS], vf_bar_align[N_BARS];
    struct window window[N_SPACES]; /* bridges */
};

/* Something to be placed in a window: a BAR or a bridge's window. */
struct item {
    uint64_t bytes, align, *base;
    uint32_t order; /* as found */
};

struct walk {
    const struct pcie_cfg_access *access;
    const struct pcie_enumerate_options *options;
    struct node *node; /* parents before children */
    uint32_t n_nodes, room;
    struct item *item, *placed;
    uint32_t item_room;
    unsigned next_bus;
    const char *why; /* NULL while all is well */
};

static uint32_t reg_read(struct walk *walk, uint16_t id, unsigned offset, unsigned bytes)
{
    return walk->access->read(walk->access->context, id, offset, bytes);
}

static void reg_write(struct walk *walk, uint16_t id, unsigned offset, unsigned bytes,
                      uint32_t value)
{
    walk->access->write(walk->access->context, id, offset, bytes, value);
}

/* Replaces the bits under mask. */
static void reg_update(struct walk *walk, uint16_t id, unsigned offset, unsigned bytes,
                       uint32_t mask, uint32_t bits)
{
    uint32_t old = reg_read(walk, id, offset, bytes);
    reg_write(walk, id, offset, bytes, (old & ~mask) | bits);
}

/* ---- First pass: scan ------------------------------------------------------------------------ */

unsigned pcie_find_capability(const struct pcie_cfg_access *access, uint16_t id, unsigned cap_id)
{
    if (!(access->read(access->context, id, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST))
        return 0;
    unsigned offset = access->read(access->context, id, PCI_CAP_POINTER, 1) & ~3u;
    /* A broken chain may be circular: there is no room for more than 48. */
    for (unsigned i = 0; offset >= PCI_HEADER_BYTES && i < 48; i++) {
        uint32_t header = access->read(access->context, id, offset, 2);
        if ((header & 0xff) == cap_id)
            return offset;
        offset = header >> 8 & ~3u;
    }
    return 0;
}

static unsigned find_ecap(struct walk *walk, uint16_t id, unsigned cap_id)
{
    unsigned offset = PCI_STANDARD_END;
    for (unsigned i = 0; offset >= PCI_STANDARD_END && i < CFG_SPACE_BYTES / 8; i++) {
        uint32_t header = reg_read(walk, id, offset, 4);
        if (header == 0 || header == UINT32_MAX)
            return 0;
        if ((header & 0xffff) == cap_id)
            return offset;
        offset = header >> PCI_ECAP_NEXT_SHIFT & ~3u;
    }
    return 0;
}

/* Finds out how many address bits a BAR decodes: those that keep a one. Leaves it zero. Returns
 * how many registers it takes. */
static unsigned size_bar(struct walk *walk, const struct node *node, unsigned offset, bool last,
                         struct bar *bar, uint64_t *bytes)
{
    uint16_t id = node->found.id;
    reg_write(walk, id, offset, 4, UINT32_MAX);
    uint32_t low = reg_read(walk, id, offset, 4);
    reg_write(walk, id, offset, 4, 0);
    if (low == 0 || low & PCI_BAR_IO)
        return 1;

    bool wide = (low & PCI_BAR_TYPE_MASK) == PCI_BAR_TYPE_64 && !last;
    uint64_t decoded = low & ~PCI_BAR_FLAGS_MASK;
    if (wide) {
        reg_write(walk, id, offset + 4, 4, UINT32_MAX);
        decoded |= (uint64_t)reg_read(walk, id, offset + 4, 4) << 32;
        reg_write(walk, id, offset + 4, 4, 0);
    }
    bool prefetchable = wide && low & PCI_BAR_PREFETCH && node->prefetchable_64;
    bar->wide = wide;
    bar->space = prefetchable ? SPACE_PREFETCHABLE : SPACE_MEMORY;
    *bytes = decoded & (~decoded + 1); /* the lowest bit that it decodes */
    return wide ? 2 : 1;
}

/* Virtual functions: none is enabled, their BARs get room for all that there may be (SR-IOV 1.1,
 * 2.1.1.1, 3.3.14). */
static void size_vf_bars(struct walk *walk, struct node *node)
{
    uint16_t id = node->found.id;
    unsigned at = find_ecap(walk, id, PCI_ECAP_ID_SRIOV);
    node->sriov_cap = (uint16_t)at;
    if (at == 0)
        return;
    reg_write(walk, id, at + PCI_SRIOV_CONTROL, 2, 0);
    reg_write(walk, id, at + PCI_SRIOV_SYSTEM_PAGE, 4, PCI_SRIOV_PAGE_4K);
    uint64_t total = reg_read(walk, id, at + PCI_SRIOV_TOTAL_VFS, 2);
    for (unsigned i = 0; i < N_BARS;) {
        uint64_t bytes = 0;
        unsigned n = size_bar(walk, node, at + PCI_SRIOV_BAR0 + 4 * i, i == N_BARS - 1,
                              &node->vf_bar[i], &bytes);
        node->vf_bar_bytes[i] = bytes * total;
        node->vf_bar_align[i] = bytes;
        i += n;
    }
}

/* The function at id joins the list, quiet and with its BARs sized. */
static void add_function(struct walk *walk, uint16_t id, uint32_t parent, uint32_t vendor_device,
                         unsigned header_type)
{
    if (walk->n_nodes == walk->room) {
        walk->room = walk->room == 0 ? 8 : 2 * walk->room;
        walk->node = sim_grow(walk->node, walk->room, sizeof(*walk->node));
    }
    struct node *node = &walk->node[walk->n_nodes++];
    const struct node *above = parent == NO_PARENT ? NULL : &walk->node[parent];
    *node = (struct node){ .parent = parent };
    node->found.id = id;
    node->found.vendor_id = (uint16_t)vendor_device;
    node->found.device_id = (uint16_t)(vendor_device >> 16);
    node->found.class_code = reg_read(walk, id, PCI_REVISION, 4) >> 8;
    node->found.bridge = (header_type & PCI_HEADER_TYPE_MASK) == PCI_HEADER_TYPE_BRIDGE;

    /* Neither decode nor issue anything while registers hold what sizing puts there, and let no
     * bridge claim buses that an earlier pass gave it. */
    reg_update(walk, id, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER, 0);
    unsigned n_bars = PCI_N_BARS_ENDPOINT;
    node->prefetchable_64 = true;
    if (above != NULL) {
        uint32_t base = reg_read(walk, above->found.id, PCI_PREFETCH_BASE, 2);
        node->prefetchable_64 = above->prefetchable_64 &&
                                (base & PCI_WINDOW_TYPE_MASK) == PCI_WINDOW_TYPE_64;
        node->rcb_128 = above->rcb_128;
    }
    if (node->found.bridge) {
        n_bars = PCI_N_BARS_BRIDGE;
        reg_write(walk, id, PCI_PRIMARY_BUS, 1, 0);
        reg_write(walk, id, PCI_SECONDARY_BUS, 1, 0);
        reg_write(walk, id, PCI_SUBORDINATE_BUS, 1, 0);
    }
    for (unsigned i = 0; i < n_bars;)
        i += size_bar(walk, node, PCI_BAR0 + 4 * i, i == n_bars - 1, &node->bar[i],
                      &node->found.bar_bytes[i]);

    node->pcie_cap = (uint16_t)pcie_find_capability(walk->access, id, PCI_CAP_ID_PCIE);
    if (node->pcie_cap == 0)
        return;
    node->port_type = (uint8_t)((reg_read(walk, id, node->pcie_cap + PCIE_CAPABILITIES, 2) &
                                 PCIE_CAPABILITIES_TYPE_MASK) >>
                                PCIE_CAPABILITIES_TYPE_SHIFT);
    if (node->port_type == CFG_ROOT_PORT)
        node->rcb_128 = reg_read(walk, id, node->pcie_cap + PCIE_LNKCTL, 2) & PCIE_LNKCTL_RCB_128;
    node->acs_cap = (uint16_t)find_ecap(walk, id, PCI_ECAP_ID_ACS);
    node->aer_cap = (uint16_t)find_ecap(walk, id, PCI_ECAP_ID_AER);
    if (!node->found.bridge)
        size_vf_bars(walk, node);
}

static void scan_device(struct walk *walk, unsigned bus, unsigned device, uint32_t parent)
{
    unsigned n_functions = 1;
    for (unsigned function = 0; function < n_functions; function++) {
        uint16_t id = pcie_id(bus, device, function);
        uint32_t vendor_device = reg_read(walk, id, PCI_VENDOR_ID, 4);
        if ((vendor_device & 0xffff) == PCI_NO_DEVICE)
            continue; /* function 0 must exist, others may have gaps */
        unsigned header_type = reg_read(walk, id, PCI_HEADER_TYPE, 1);
        if (header_type & PCI_HEADER_MULTI_FUNCTION)
            n_functions = 8;
        add_function(walk, id, parent, vendor_device, header_type);
    }
}

static void scan_bus(struct walk *walk, unsigned bus, uint32_t parent);

static void scan_behind(struct walk *walk, uint32_t bridge)
{
    uint16_t id = walk->node[bridge].found.id;
    if (walk->next_bus > walk->options->last_bus) {
        walk->why = "bus numbers do not suffice";
        return;
    }
    unsigned secondary = walk->next_bus++;
    reg_write(walk, id, PCI_PRIMARY_BUS, 1, id >> 8);
    reg_write(walk, id, PCI_SECONDARY_BUS, 1, secondary);
    /* Everything not yet numbered lies this way, as far as it knows. */
    reg_write(walk, id, PCI_SUBORDINATE_BUS, 1, walk->options->last_bus);
    scan_bus(walk, secondary, bridge);
    reg_write(walk, id, PCI_SUBORDINATE_BUS, 1, walk->next_bus - 1);
    walk->node[bridge].found.secondary = (uint8_t)secondary;
    walk->node[bridge].found.subordinate = (uint8_t)(walk->next_bus - 1);
}

static void scan_bus(struct walk *walk, unsigned bus, uint32_t parent)
{
    uint32_t first = walk->n_nodes;
    unsigned n_devices = 32;
    if (parent != NO_PARENT && walk->node[parent].pcie_cap != 0 &&
        walk->node[parent].port_type != CFG_UPSTREAM_PORT)
        n_devices = 1; /* a link has one device at its other end */
    for (unsigned device = 0; device < n_devices; device++)
        scan_device(walk, bus, device, parent);
    uint32_t end = walk->n_nodes;
    if (parent != NO_PARENT) {
        walk->node[parent].first_child = first;
        walk->node[parent].n_child = end - first;
    }
    for (uint32_t i = first; i < end && walk->why == NULL; i++) {
        if (walk->node[i].found.bridge)
            scan_behind(walk, i);
    }
}

/* ---- Second pass: sizes, from the leaves up -------------------------------------------------- */

static void add_item(struct walk *walk, uint32_t *n_items, uint64_t bytes, uint64_t align,
                     uint64_t *base)
{
    if (*n_items == walk->item_room) {
        walk->item_room = walk->item_room == 0 ? 8 : 2 * walk->item_room;
        walk->item = sim_grow(walk->item, walk->item_room, sizeof(*walk->item));
        walk->placed = sim_grow(walk->placed, walk->item_room, sizeof(*walk->placed));
    }
    walk->item[*n_items] =
        (struct item){ .bytes = bytes, .align = align, .base = base, .order = *n_items };
    ++*n_items;
}

/* What lies directly in a window of this kind: BARs on the bus and windows of its bridges. */
static uint32_t collect(struct walk *walk, uint32_t first, uint32_t n, enum space space)
{
    uint32_t n_items = 0;
    for (uint32_t i = first; i < first + n; i++) {
        struct node *node = &walk->node[i];
        for (unsigned bar = 0; bar < N_BARS; bar++) {
            uint64_t bytes = node->found.bar_bytes[bar];
            if (bytes != 0 && node->bar[bar].space == space)
                add_item(walk, &n_items, bytes, bytes, &node->found.bar_base[bar]);
            bytes = node->vf_bar_bytes[bar];
            if (bytes != 0 && node->vf_bar[bar].space == space)
                add_item(walk, &n_items, bytes, node->vf_bar_align[bar], &node->vf_bar_base[bar]);
        }
        struct window *window = &node->window[space];
        if (window->bytes != 0)
            add_item(walk, &n_items, window->bytes, window->align, &window->base);
    }
    return n_items;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *left = a, *right = b;
    if (left->align != right->align)
        return left->align < right->align ? 1 : -1;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return left->order < right->order ? -1 : 1;
}

/* The lowest free place for `item` in [base, last]; placed[] is sorted by address. False: none. */
static bool place(struct walk *walk, uint32_t n_placed, struct item item, uint64_t base,
                  uint64_t last)
{
    uint64_t from = base;
    uint32_t at = 0;
    for (;; at++) {
        uint64_t start = (from + item.align - 1) & ~(item.align - 1);
        if (start < from || start > last || item.bytes - 1 > last - start)
            return false;
        if (at == n_placed || start + (item.bytes - 1) < *walk->placed[at].base) {
            *item.base = start;
            break;
        }
        uint64_t end = *walk->placed[at].base + walk->placed[at].bytes;
        if (end == 0)
            return false; /* it reaches to the end of the address space */
        from = end;
    }
    for (uint32_t i = n_placed; i > at; i--)
        walk->placed[i] = walk->placed[i - 1];
    walk->placed[at] = item;
    return true;
}

/* Places the items of walk->item in [base, last]. */
static bool place_all(struct walk *walk, uint32_t n_items, uint64_t base, uint64_t last)
{
    qsort(walk->item, n_items, sizeof(*walk->item), compare_items);
    for (uint32_t i = 0; i < n_items; i++) {
        if (!place(walk, i, walk->item[i], base, last))
            return false;
    }
    return true;
}

/* A bridge's window: as large as its contents, whole granules, aligned as the strictest of them. */
static bool size_window(struct walk *walk, struct node *bridge, enum space space)
{
    uint32_t n_items = collect(walk, bridge->first_child, bridge->n_child, space);
    if (n_items == 0)
        return true;
    if (!place_all(walk, n_items, 0, UINT64_MAX - GRANULE_BYTES))
        return false;
    const struct item *highest = &walk->placed[n_items - 1];
    uint64_t end = *highest->base + highest->bytes;
    bridge->window[space].bytes = (end + GRANULE_BYTES - 1) & ~(GRANULE_BYTES - 1);
    bridge->window[space].align = SIM_MAX(walk->item[0].align, GRANULE_BYTES);
    return true;
}

static const char *const too_small[N_SPACES] = {
    [SPACE_MEMORY] = "the non-prefetchable memory window does not suffice",
    [SPACE_PREFETCHABLE] = "the prefetchable memory window does not suffice",
};

static uint32_t n_on_root_bus(const struct walk *walk)
{
    uint32_t n = 0;
    while (n < walk->n_nodes && walk->node[n].parent == NO_PARENT)
        n++;
    return n;
}

static bool place_in_host_window(struct walk *walk, enum space space)
{
    bool memory = space == SPACE_MEMORY;
    uint64_t base = memory ? walk->options->memory_base : walk->options->prefetchable_base;
    uint64_t bytes = memory ? walk->options->memory_bytes : walk->options->prefetchable_bytes;
    uint32_t n_items = collect(walk, 0, n_on_root_bus(walk), space);
    return n_items == 0 || (bytes != 0 && place_all(walk, n_items, base, base + (bytes - 1)));
}

/* Children follow their parents in the list: backwards is bottom up. */
static void size_windows(struct walk *walk)
{
    for (int space = 0; space < N_SPACES; space++) {
        bool fits = true;
        for (uint32_t i = walk->n_nodes; i-- > 0 && fits;) {
            if (walk->node[i].found.bridge)
                fits = size_window(walk, &walk->node[i], (enum space)space);
        }
        if (!fits || !place_in_host_window(walk, (enum space)space)) {
            walk->why = too_small[space];
            return;
        }
    }
}

/* ---- Third pass: assign, from the root down -------------------------------------------------- */

static void write_windows(struct walk *walk, const struct node *bridge)
{
    uint16_t id = bridge->found.id;
    const struct window *memory = &bridge->window[SPACE_MEMORY];
    const struct window *prefetchable = &bridge->window[SPACE_PREFETCHABLE];
    /* Closed: the base above the limit. */
    uint64_t base = PCI_WINDOW_ADDRESS_MASK << 16, limit = 0;
    if (memory->bytes != 0) {
        base = memory->base;
        limit = memory->base + (memory->bytes - 1);
    }
    reg_write(walk, id, PCI_MEMORY_BASE, 2, (uint32_t)(base >> 16) & PCI_WINDOW_ADDRESS_MASK);
    reg_write(walk, id, PCI_MEMORY_LIMIT, 2, (uint32_t)(limit >> 16) & PCI_WINDOW_ADDRESS_MASK);

    base = PCI_WINDOW_ADDRESS_MASK << 16, limit = 0;
    if (prefetchable->bytes != 0) {
        base = prefetchable->base;
        limit = prefetchable->base + (prefetchable->bytes - 1);
    }
    reg_write(walk, id, PCI_PREFETCH_BASE_UPPER, 4, (uint32_t)(base >> 32));
    reg_write(walk, id, PCI_PREFETCH_LIMIT_UPPER, 4, (uint32_t)(limit >> 32));
    reg_write(walk, id, PCI_PREFETCH_BASE, 2, (uint32_t)(base >> 16) & PCI_WINDOW_ADDRESS_MASK);
    reg_write(walk, id, PCI_PREFETCH_LIMIT, 2, (uint32_t)(limit >> 16) & PCI_WINDOW_ADDRESS_MASK);
}

static void write_bar(struct walk *walk, uint16_t id, unsigned offset, struct bar bar,
                      uint64_t base)
{
    reg_write(walk, id, offset, 4, (uint32_t)base);
    if (bar.wide)
        reg_write(walk, id, offset + 4, 4, (uint32_t)(base >> 32));
}

static void write_bars(struct walk *walk, const struct node *node)
{
    uint16_t id = node->found.id;
    for (unsigned i = 0; i < N_BARS; i++) {
        if (node->found.bar_bytes[i] != 0)
            write_bar(walk, id, PCI_BAR0 + 4 * i, node->bar[i], node->found.bar_base[i]);
        if (node->vf_bar_bytes[i] != 0)
            write_bar(walk, id, node->sriov_cap + PCI_SRIOV_BAR0 + 4 * i, node->vf_bar[i],
                      node->vf_bar_base[i]);
    }
}

static unsigned size_code(unsigned bytes)
{
    return (unsigned)__builtin_ctz(bytes / 128);
}

static void write_ecrc(struct walk *walk, const struct node *node)
{
    const uint16_t id = node->found.id;
    const unsigned offset = node->aer_cap + PCI_AER_CONTROL;
    const uint32_t on = PCI_AER_ECRC_GENERATION_ENABLE | PCI_AER_ECRC_CHECK_ENABLE;
    if (node->aer_cap != 0 && reg_read(walk, id, offset, 4) & PCI_AER_ECRC_GENERATION)
        reg_update(walk, id, offset, 4, on, walk->options->ecrc ? on : 0);
}

static void write_pcie(struct walk *walk, struct node *node, unsigned mps_bytes)
{
    if (node->pcie_cap == 0)
        return;
    const struct pcie_enumerate_options *options = walk->options;
    uint16_t id = node->found.id;
    node->found.mps_bytes = (uint16_t)mps_bytes;
    unsigned mrrs_bytes = options->mrrs_bytes == 0 ? 512 : options->mrrs_bytes;
    uint32_t devcap = reg_read(walk, id, node->pcie_cap + PCIE_DEVCAP, 4);
    bool extended = options->extended_tags && devcap & PCIE_DEVCAP_EXTENDED_TAG;
    uint32_t bits = size_code(mps_bytes) << PCIE_DEVCTL_MPS_SHIFT |
                    size_code(mrrs_bytes) << PCIE_DEVCTL_MRRS_SHIFT |
                    (extended ? PCIE_DEVCTL_EXTENDED_TAG : 0);
    reg_update(walk, id, node->pcie_cap + PCIE_DEVCTL, 2,
               PCIE_DEVCTL_MPS_MASK | PCIE_DEVCTL_MRRS_MASK | PCIE_DEVCTL_EXTENDED_TAG, bits);
    if (node->port_type == CFG_ENDPOINT)
        reg_update(walk, id, node->pcie_cap + PCIE_LNKCTL, 2, PCIE_LNKCTL_RCB_128,
                   node->rcb_128 ? PCIE_LNKCTL_RCB_128 : 0);
    write_ecrc(walk, node);
    if (node->acs_cap == 0)
        return;
    uint32_t wanted = PCI_ACS_SOURCE_VALIDATION | PCI_ACS_REQUEST_REDIRECT |
                      PCI_ACS_COMPLETION_REDIRECT | PCI_ACS_UPSTREAM_FORWARDING;
    uint32_t services = options->acs ? reg_read(walk, id, node->acs_cap + PCI_ACS_CAPABILITY, 2)
                                     : 0;
    reg_update(walk, id, node->acs_cap + PCI_ACS_CONTROL, 2, wanted, services & wanted);
}

/* The largest Max_Payload_Size that every function supports. */
static unsigned supported_mps_bytes(struct walk *walk)
{
    unsigned code = PCIE_SIZE_CODE_MAX;
    for (uint32_t i = 0; i < walk->n_nodes; i++) {
        const struct node *node = &walk->node[i];
        if (node->pcie_cap == 0)
            continue;
        uint32_t devcap = reg_read(walk, node->found.id, node->pcie_cap + PCIE_DEVCAP, 4);
        code = SIM_MIN(code, devcap & PCIE_DEVCAP_MPS_MASK);
    }
    return 128u << code;
}

/* Parents come first: what was relative to the window above becomes an address. */
static void assign(struct walk *walk, unsigned mps_bytes)
{
    for (uint32_t i = 0; i < walk->n_nodes; i++) {
        struct node *node = &walk->node[i];
        const struct node *above = node->parent == NO_PARENT ? NULL : &walk->node[node->parent];
        for (unsigned bar = 0; bar < N_BARS && above != NULL; bar++) {
            if (node->found.bar_bytes[bar] != 0)
                node->found.bar_base[bar] += above->window[node->bar[bar].space].base;
            if (node->vf_bar_bytes[bar] != 0)
                node->vf_bar_base[bar] += above->window[node->vf_bar[bar].space].base;
        }
        for (int space = 0; space < N_SPACES && above != NULL; space++) {
            if (node->window[space].bytes != 0)
                node->window[space].base += above->window[space].base;
        }
        if (node->found.bridge)
            write_windows(walk, node);
        write_bars(walk, node);
        write_pcie(walk, node, mps_bytes);
        reg_update(walk, node->found.id, PCI_COMMAND, 2,
                   PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER,
                   PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    }
}

static bool is_size(unsigned bytes)
{
    return bytes == 0 || (bytes >= 128 && bytes <= 4096 && (bytes & (bytes - 1)) == 0);
}

static const char *check_options(const struct pcie_enumerate_options *options)
{
    if (options->first_bus > options->last_bus || options->last_bus > 255)
        return "bus numbers are not a range within 0..255";
    if (!is_size(options->mps_bytes) || !is_size(options->mrrs_bytes))
        return "payload and read request sizes are powers of two from 128 to 4096";
    uint64_t memory_end;
    if (__builtin_add_overflow(options->memory_base, options->memory_bytes, &memory_end) ||
        memory_end > WINDOW_END_32)
        return "the non-prefetchable memory window must end at or below 4 GiB";
    if (options->prefetchable_bytes != 0 &&
        options->prefetchable_base > UINT64_MAX - (options->prefetchable_bytes - 1))
        return "the prefetchable memory window reaches beyond the address space";
    return NULL;
}

static void enumerate(struct walk *walk)
{
    walk->why = check_options(walk->options);
    if (walk->why != NULL)
        return;
    walk->next_bus = walk->options->first_bus + 1;
    scan_bus(walk, walk->options->first_bus, NO_PARENT);
    if (walk->why != NULL)
        return;
    unsigned mps_bytes = supported_mps_bytes(walk);
    if (walk->options->mps_bytes > mps_bytes) {
        walk->why = "a function does not support the Max_Payload_Size asked for";
        return;
    }
    if (walk->options->mps_bytes != 0)
        mps_bytes = walk->options->mps_bytes;
    size_windows(walk);
    if (walk->why == NULL)
        assign(walk, mps_bytes);
}

void pcie_set_mps(const struct pcie_cfg_access *access, struct pcie_found *found, unsigned n_found,
                  unsigned mps_bytes)
{
    struct walk walk = { .access = access };
    for (unsigned i = 0; i < n_found; i++) {
        if (found[i].mps_bytes == 0 || found[i].mps_bytes == mps_bytes)
            continue;
        unsigned cap = pcie_find_capability(access, found[i].id, PCI_CAP_ID_PCIE);
        reg_update(&walk, found[i].id, cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_MPS_MASK,
                   size_code(mps_bytes) << PCIE_DEVCTL_MPS_SHIFT);
        found[i].mps_bytes = (uint16_t)mps_bytes;
    }
}

int pcie_enumerate(const struct pcie_cfg_access *access,
                   const struct pcie_enumerate_options *options, struct pcie_found *found,
                   unsigned max, const char **why)
{
    struct walk walk = { .access = access, .options = options };
    enumerate(&walk);
    for (uint32_t i = 0; i < walk.n_nodes && i < max && walk.why == NULL; i++)
        found[i] = walk.node[i].found;
    int n_found = walk.why == NULL ? (int)walk.n_nodes : -1;
    if (walk.why != NULL)
        *why = walk.why;
    free(walk.node);
    free(walk.item);
    free(walk.placed);
    return n_found;
}
