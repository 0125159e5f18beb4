#include "tests/support/lend_fake.h"

#define LF_STEP_PS FAKE_US(2)
#define LF_TRIP_PS FAKE_US(1)

uint64_t lf_load(const void *from, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    return value;
}

/* ---- Configuration space --------------------------------------------------------------------- */

static uint32_t lf_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    struct lf_function *f = K_CONTAINER(dev, struct lf_function, pci);
    fake_charge(dev->device.kernel, LF_TRIP_PS);
    return offset + bytes <= sizeof f->config ? (uint32_t)lf_load(&f->config[offset], bytes) : 0;
}

static void lf_device_reset(struct lf_function *f);

static void lf_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes, uint32_t value)
{
    struct lf_function *f = K_CONTAINER(dev, struct lf_function, pci);
    fake_charge(dev->device.kernel, LF_TRIP_PS);
    if (offset + bytes > sizeof f->config || offset < 4)
        return;
    if (offset == 0x10)
        value = (value & ~15u) | 4; /* a 64-bit base address */
    memcpy(&f->config[offset], &value, bytes);
    if (f->flr && offset == LF_CAP_PCIE + 8 && (value & 0x8000) != 0)
        lf_device_reset(f);
}

void lf_put(struct lf_function *f, unsigned offset, unsigned bytes, uint64_t value)
{
    memcpy(&f->config[offset], &value, bytes);
}

/* ---- Where an access goes -------------------------------------------------------------------- */

static bool lf_access(struct lf_host *host, uint16_t requester, uint64_t address, bool write,
                      unsigned bytes, void *data);

/* From a device or NTB of the host: through its IOMMU. */
static bool lf_inbound(struct lf_host *host, uint16_t requester, uint64_t address, bool write,
                       unsigned bytes, void *data)
{
    if (write && address - 0xfee00000 < 0x100000) {
        if (!host->dead)
            fake_message(host->kernel, address, (uint32_t)lf_load(data, 4));
        return true;
    }
    return fake_translate(host->kernel, requester, address, write, &address) &&
           lf_access(host, requester, address, write, bytes, data);
}

static void lf_ring(struct lf_ntb *b, uint32_t bells)
{
    uint32_t fresh = bells & ~b->doorbell;
    b->doorbell |= bells;
    for (unsigned i = 0; i < 32 && !b->f.host->dead; i++)
        if ((fresh & ~b->mask) >> i & 1 && ++b->f.host->rig->n_rings != b->f.host->rig->lost_ring)
            fake_irq_raise(b->f.host->kernel, &b->f.pci, i);
}

static struct lf_ntb *lf_ntb_of(struct lf_rig *rig, uint32_t node)
{
    for (unsigned h = 0; h < rig->n_hosts; h++)
        for (unsigned i = 0; i < rig->host[h].n_ntbs; i++)
            if (rig->host[h].ntb[i].node == node)
                return &rig->host[h].ntb[i];
    return NULL;
}

static unsigned lf_switch_entries(const struct lf_rig *rig)
{
    unsigned n = 0;
    for (unsigned i = 0; i < sizeof rig->requester / sizeof rig->requester[0]; i++)
        n += (unsigned)__builtin_popcount(rig->requester[i]);
    return n;
}

static void lf_switch_requesters(struct lf_rig *rig, unsigned node, uint32_t devices)
{
    const uint32_t before = rig->requester[node];
    rig->requester[node] = devices;
    if (lf_switch_entries(rig) > (rig->n_requesters != 0 ? rig->n_requesters : 512u))
        rig->requester[node] = before;
}

/* Port p leads to node p + 1. */
static uint32_t lf_switch_register(struct lf_rig *rig, uint64_t offset)
{
    const uint64_t neighbour = (offset - CLUSTER_NEIGHBOUR) / 4;
    const uint64_t node = (offset - CLUSTER_ROUTE) / 4;
    if (offset - CLUSTER_REQUESTER < sizeof rig->requester)
        return rig->requester[(offset - CLUSTER_REQUESTER) / 4];
    if (neighbour < rig->n_nodes && !lf_ntb_of(rig, (uint32_t)neighbour + 1)->cut)
        return CLUSTER_NEIGHBOUR_VALID | 4u << CLUSTER_NEIGHBOUR_MPS_SHIFT | /* 2048 */
               ((uint32_t)neighbour + 1);
    if (node >= 1 && node <= rig->n_nodes)
        return CLUSTER_ROUTE_VALID | ((uint32_t)node - 1);
    switch (offset) {
    case CLUSTER_ID: return CLUSTER_SWITCH_ID;
    case CLUSTER_NODE: return LF_SWITCH_NODE;
    case CLUSTER_PORTS: return rig->n_nodes;
    case CLUSTER_REQUESTERS:
        return lf_switch_entries(rig) | (rig->n_requesters != 0 ? rig->n_requesters : 512u) << 16;
    default: return 0;
    }
}

static bool lf_switch_registers(struct lf_rig *rig, uint64_t offset, bool write, unsigned bytes,
                                void *data)
{
    uint64_t value = 0;
    if (write) {
        if (offset - CLUSTER_REQUESTER < sizeof rig->requester)
            lf_switch_requesters(rig, (unsigned)(offset - CLUSTER_REQUESTER) / 4,
                                 (uint32_t)lf_load(data, 4));
        return true;
    }
    for (unsigned i = 0; i < bytes; i += 4)
        value |= (uint64_t)lf_switch_register(rig, offset + i) << 8 * i;
    memcpy(data, &value, bytes);
    return true;
}

static bool lf_fabric_registers(struct lf_ntb *b, uint64_t offset, bool write, unsigned bytes,
                                void *data)
{
    uint64_t value = offset == NTB_FABRIC_ID     ? NTB_ID
                     : offset == NTB_FABRIC_NODE ? b->node
                                                 : b->doorbell;
    if (offset >= NTB_FABRIC_SCRATCHPAD && offset < NTB_FABRIC_SCRATCHPAD + sizeof b->pad) {
        uint8_t *pad = (uint8_t *)b->pad + (offset - NTB_FABRIC_SCRATCHPAD);
        if (write)
            memcpy(pad, data, bytes);
        value = lf_load(pad, bytes);
    } else if (write && offset == NTB_FABRIC_DOORBELL) {
        lf_ring(b, (uint32_t)lf_load(data, bytes));
    }
    if (!write)
        memcpy(data, &value, bytes);
    return true;
}

static bool lf_from_fabric(struct lf_ntb *b, uint32_t requester, uint64_t address, bool write,
                           unsigned bytes, void *data)
{
    if ((address & NTB_FABRIC_REGISTERS) != 0)
        return lf_fabric_registers(b, address & NTB_FABRIC_ADDRESS_MASK, write, bytes, data);
    if (!(b->control & NTB_CONTROL_ACCEPT)) {
        b->n_disabled++;
        return false;
    }
    for (unsigned i = 0; i < b->n_incoming; i++)
        if (b->incoming[i] == (NTB_INCOMING_VALID | requester))
            return lf_inbound(b->f.host, (uint16_t)((b->f.pci.id & 0xff00) | (8 + i)),
                              address & NTB_FABRIC_ADDRESS_MASK, write, bytes, data);
    b->n_unknown_in++;
    return false;
}

static bool lf_through(struct lf_ntb *b, uint16_t id, uint64_t offset, bool write, unsigned bytes,
                       void *data)
{
    struct lf_rig *rig = b->f.host->rig;
    const uint64_t size = UINT64_C(1) << b->window_log2, entry = b->lut[offset / size];
    unsigned i = 0;
    if (b->cut || b->silent || !(b->control & NTB_CONTROL_SEND))
        return false;
    if (!(entry & NTB_LUT_VALID)) {
        b->n_unmapped++;
        return false;
    }
    while (i < b->n_outgoing && b->outgoing[i] != (NTB_OUTGOING_VALID | (id & 0xfff8u)))
        i++;
    if (i == b->n_outgoing) {
        b->n_unknown_out++;
        return false;
    }
    const uint64_t fabric = (entry & ~(size - 1)) | (offset & (size - 1));
    const uint32_t node = (uint32_t)(fabric >> NTB_NODE_SHIFT);
    struct lf_ntb *to = lf_ntb_of(rig, node);
    if (node == NTB_NODE_PARTNER || (node == LF_SWITCH_NODE && rig->through_switch)) {
        if (rig->through_switch)
            return (fabric & NTB_FABRIC_REGISTERS) != 0 &&
                   lf_switch_registers(rig, fabric & NTB_FABRIC_ADDRESS_MASK, write, bytes, data);
        to = lf_ntb_of(rig, 3 - b->node);
    }
    return to != NULL && to != b && !to->cut && !to->silent &&
           lf_from_fabric(to, b->node << 8 | i << 3 | (id & 7u), fabric, write, bytes, data);
}

/* ---- Registers of an NTB --------------------------------------------------------------------- */

/* Tables that are plain memory. */
static void *lf_ntb_memory(struct lf_ntb *b, uint64_t offset)
{
    if (offset - NTB_REG_SCRATCHPAD < sizeof b->pad)
        return (uint8_t *)b->pad + (offset - NTB_REG_SCRATCHPAD);
    if (offset - NTB_REG_OUTGOING < sizeof b->outgoing)
        return (uint8_t *)b->outgoing + (offset - NTB_REG_OUTGOING);
    if (offset - NTB_REG_INCOMING < sizeof b->incoming)
        return (uint8_t *)b->incoming + (offset - NTB_REG_INCOMING);
    if (offset - NTB_REG_LUT2 < sizeof b->lut)
        return (uint8_t *)b->lut + (offset - NTB_REG_LUT2);
    return NULL;
}

static bool lf_ntb_registers(struct lf_ntb *b, uint64_t offset, bool write, unsigned bytes,
                             void *data)
{
    uint8_t *memory = lf_ntb_memory(b, offset);
    uint32_t value = write ? (uint32_t)lf_load(data, 4) : 0;
    if (memory != NULL) {
        memcpy(write ? (void *)memory : data, write ? data : (void *)memory, bytes);
        return true;
    }
    if (write) {
        if (offset == NTB_REG_CONTROL)
            b->control = value;
        if (offset == NTB_REG_DOORBELL)
            b->doorbell &= ~value;
        if (offset == NTB_REG_DOORBELL_MASK)
            b->mask = value;
        if (offset == NTB_REG_STATUS && (value & NTB_STATUS_LINK_CHANGE) != 0)
            b->link_changed = false;
        return true;
    }
    switch (offset) {
    case NTB_REG_ID: value = NTB_ID; break;
    case NTB_REG_STATUS:
        value = (b->cut ? 0 : NTB_STATUS_LINK_UP) | (b->link_changed ? NTB_STATUS_LINK_CHANGE : 0);
        break;
    case NTB_REG_NODE: value = b->node; break;
    case NTB_REG_WINDOWS: value = b->n_windows; break;
    case NTB_REG_WINDOW_LOG2: value = b->window_log2; break;
    case NTB_REG_REQUESTERS: value = b->n_outgoing | b->n_incoming << 16; break;
    default: break;
    }
    memcpy(data, &value, 4);
    return true;
}

/* ---- The device ------------------------------------------------------------------------------ */

static void lf_device_reset(struct lf_function *f)
{
    struct lf_device *d = K_CONTAINER(f, struct lf_device, f);
    memset(d->reg, 0, sizeof d->reg);
    memset(&f->config[0x10], 0, 24);
    lf_put(f, 0x10, 4, 4);
    lf_put(f, 4, 2, 0);
    lf_put(f, LF_CAP_PCIE + 8, 2, 0x2000);
    f->n_resets++;
}

bool lf_device_dma(struct lf_device *d, uint64_t address, bool write, unsigned bytes, void *data)
{
    if (!(d->f.config[4] & 4)) /* Bus Master */
        return false;
    for (unsigned i = 0; i < bytes; i += 64)
        if (!lf_inbound(d->f.host, d->f.pci.id, address + i, write, bytes - i < 64 ? bytes - i : 64,
                        (uint8_t *)data + i)) {
            d->n_refused++;
            return false;
        }
    return true;
}

/* Device DMA that does not name an IOMMU's address goes to whoever claims it, as without ACS. */
static void lf_device_run(struct lf_device *d, uint32_t command)
{
    const uint64_t address = lf_load(&d->reg[LF_REG_ADDRESS], 8);
    const uint32_t bytes = (uint32_t)lf_load(&d->reg[LF_REG_BYTES], 4) & 0xfff;
    const uint8_t *entry = &d->reg[LF_TABLE];
    bool good = lf_device_dma(d, address, command == 2, bytes, &d->reg[LF_BUFFER]);
    uint32_t status = good ? 1 : 2;
    memcpy(&d->reg[LF_REG_STATUS], &status, 4);
    if ((d->f.config[LF_CAP_MSIX + 3] & 0x80) != 0 && (entry[12] & 1) == 0) {
        uint32_t message = (uint32_t)lf_load(entry + 8, 4);
        lf_device_dma(d, lf_load(entry, 8), true, 4, &message);
    }
}

static bool lf_device_registers(struct lf_device *d, uint64_t offset, bool write, unsigned bytes,
                                void *data)
{
    memcpy(write ? &d->reg[offset] : (uint8_t *)data, write ? (uint8_t *)data : &d->reg[offset],
           bytes);
    if (write && offset == LF_REG_COMMAND)
        lf_device_run(d, (uint32_t)lf_load(data, 4));
    return true;
}

/* ---- A host's address space ------------------------------------------------------------------ */

static bool lf_in(const struct lf_function *f, unsigned bar, uint64_t address, uint64_t *offset)
{
    uint64_t base = lf_load(&f->config[0x10 + 4 * bar], 4) & ~UINT64_C(15);
    if (bar > 0 || (f->config[0x10] & 4) != 0)
        base |= lf_load(&f->config[0x14 + 4 * bar], 4) << 32;
    *offset = address - base;
    return f->pci.bar_bytes[bar] != 0 && base != 0 && *offset < f->pci.bar_bytes[bar] &&
           (f->config[4] & 2) != 0;
}

static bool lf_access(struct lf_host *host, uint16_t requester, uint64_t address, bool write,
                      unsigned bytes, void *data)
{
    uint64_t offset;
    for (unsigned i = 0; i < host->n_ntbs; i++) {
        struct lf_ntb *b = &host->ntb[i];
        if (lf_in(&b->f, 0, address, &offset))
            return lf_ntb_registers(b, offset, write, bytes, data);
        if (lf_in(&b->f, 2, address, &offset))
            return lf_through(b, requester, offset, write, bytes, data);
    }
    for (unsigned i = 0; i < host->n_devices; i++)
        if (lf_in(&host->device[i].f, 0, address, &offset))
            return lf_device_registers(&host->device[i], offset, write, bytes, data);
    if (address >> 40 == 0 || address >> 40 > host->kernel->options.n_nodes)
        return false;
    if (write)
        k_poke(host->kernel, (struct kaddr){ address }, data, bytes);
    else
        k_peek(host->kernel, (struct kaddr){ address }, data, bytes);
    return true;
}

static uint64_t lf_mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    struct lf_function *f = K_CONTAINER(dev, struct lf_function, pci);
    uint64_t value = 0;
    fake_charge(dev->device.kernel, LF_TRIP_PS);
    if (!lf_access(f->host, 0, address, false, bytes, &value))
        value = bytes == 8 ? UINT64_MAX : UINT32_MAX;
    return value;
}

static void lf_mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value)
{
    struct lf_function *f = K_CONTAINER(dev, struct lf_function, pci);
    lf_access(f->host, 0, address, true, bytes, &value);
    fake_charge(dev->device.kernel, FAKE_US(1) / 10);
}

static const struct k_pci_ops lf_ops = { .config_read = lf_config_read,
                                         .config_write = lf_config_write,
                                         .mmio_read = lf_mmio_read,
                                         .mmio_write = lf_mmio_write };

/* ---- Making ---------------------------------------------------------------------------------- */

static void lf_function_init(struct lf_function *f, struct lf_host *host, uint16_t id,
                             uint16_t vendor, uint16_t device)
{
    f->host = host;
    snprintf(f->name, sizeof f->name, "h%u.%02x", host->number, (unsigned)id >> 8);
    f->pci = (struct k_pci_dev){ .device = { .name = f->name, .node = 0 },
                                 .id = id,
                                 .vendor_id = vendor,
                                 .device_id = device,
                                 .ops = &lf_ops };
    lf_put(f, 0, 4, vendor | (uint32_t)device << 16);
    lf_put(f, 4, 4, 0x00100002); /* memory space; capabilities */
    lf_put(f, 0x34, 1, LF_CAP_MSI);
    lf_put(f, LF_CAP_MSI, 4, 0x00800000 | LF_CAP_MSIX << 8 | 0x05);
    lf_put(f, LF_CAP_MSIX, 4, 0x00030000 | LF_CAP_PCIE << 8 | 0x11);
    lf_put(f, LF_CAP_MSIX + 4, 4, LF_TABLE);
    lf_put(f, LF_CAP_PCIE, 4, 0x10);
    lf_put(f, LF_CAP_PCIE + 8, 2, 0x2020); /* payload of 256 bytes */
    lf_put(f, 0x3d, 1, 1);                 /* an interrupt pin */
}

void lf_bar(struct lf_function *f, unsigned bar, uint64_t base, uint64_t bytes)
{
    f->pci.bar_base[bar] = base;
    f->pci.bar_bytes[bar] = bytes;
    lf_put(f, 0x10 + 4 * bar, 8, base | 4);
}

void lf_device_add(struct lf_host *host)
{
    const unsigned i = host->n_devices++;
    struct lf_device *d = &host->device[i];
    lf_function_init(&d->f, host, (uint16_t)((0x20 + i) << 8), LF_VENDOR, LF_DEVICE);
    lf_bar(&d->f, 0, UINT64_C(0xe8000000) + i * 0x100000, LF_BAR_BYTES);
}

struct lf_host *lf_host_add(struct lf_rig *rig, const struct fake_options *options, unsigned n_ntbs,
                            unsigned n_devices)
{
    struct lf_host *host = &rig->host[rig->n_hosts];
    struct fake_options o = *options;
    o.seed += rig->n_hosts * 1000;
    host->rig = rig;
    host->number = ++rig->n_hosts;
    host->kernel = fake_new(&o);
    host->kernel->until_ps = 0;
    for (unsigned i = 0; i < n_ntbs; i++) {
        struct lf_ntb *b = &host->ntb[host->n_ntbs++];
        lf_function_init(&b->f, host, (uint16_t)((0x10 + i) << 8), NTB_VENDOR_ID, NTB_DEVICE_ID);
        b->f.config[0x34] = LF_CAP_PCIE; /* no MSI-X table that anybody writes */
        b->node = ++rig->n_nodes;
        b->n_windows = LF_WINDOWS;
        b->window_log2 = 24;
        b->n_outgoing = 32;
        b->n_incoming = 248;
        b->mask = UINT32_MAX;
        lf_bar(&b->f, 0, UINT64_C(0xf0000000) + i * 0x100000, NTB_BAR_BYTES);
        lf_bar(&b->f, 2, (UINT64_C(1) << 44) + ((uint64_t)i << 36), UINT64_C(1) << 30);
    }
    for (unsigned i = 0; i < n_devices; i++)
        lf_device_add(host);
    return host;
}

const struct k_pci_id lf_ids[] = { { LF_VENDOR, LF_DEVICE }, { 0, 0 } };
const struct k_pci_driver *lf_driver_now; /* for what is borrowed; of the test that runs */

bool lf_is_ours(const struct k_pci_dev *dev, void *context)
{
    (void)context;
    return dev->ops == &lf_ops;
}

struct lend_options lf_options(const struct lf_host *host)
{
    struct lend_options o = lend_options_default;
    o.id = host->number;
    o.name = host->number == 1 ? "one" : host->number == 2 ? "two" : "more";
    o.pool_bytes = 1u << 18;
    o.max_peers = 16;
    o.dma_window_bytes = UINT64_C(16) << 20;
    o.lend = lf_ids;
    o.want = lf_is_ours;
    return o;
}

void lf_host_start(struct lf_host *host, const struct lend_options *options)
{
    struct lend_error error;
    host->lend = lend_host_new(host->kernel, options);
    assert_non_null(host->lend);
    for (unsigned i = 0; i < host->n_devices; i++)
        k_pci_add(host->kernel, &host->device[i].f.pci);
    for (unsigned i = 0; i < host->n_ntbs; i++)
        k_pci_add(host->kernel, &host->ntb[i].f.pci);
    assert_int_equal(k_pci_register(host->kernel, lend_adapter_driver(host->lend)), host->n_ntbs);
    assert_int_equal(k_pci_register(host->kernel, lend_lender_driver(host->lend)), host->n_devices);
    if (lf_driver_now != NULL)
        k_pci_register(host->kernel, lf_driver_now);
    assert_int_equal(lend_start(host->lend, &error), 0);
}

/* ---- Time ------------------------------------------------------------------------------------ */

void lf_run(struct lf_rig *rig, uint64_t for_ps, bool (*busy)(void *), void *arg)
{
    uint64_t now = 0;
    for (unsigned i = 0; i < rig->n_hosts; i++)
        if (rig->host[i].kernel->now_ps > now)
            now = rig->host[i].kernel->now_ps;
    for (const uint64_t until = now + for_ps; now < until && (busy == NULL || busy(arg));) {
        now += LF_STEP_PS;
        for (unsigned i = 0; i < rig->n_hosts; i++)
            if (!rig->host[i].dead)
                fake_run_until(rig->host[i].kernel, now);
    }
}

void lf_call_body(void *p)
{
    struct lf_call *call = p;
    call->body(call->host, call->arg);
    call->done = true;
}

static bool lf_call_busy(void *p)
{
    return !((const struct lf_call *)p)->done;
}

void lf_call(struct lf_host *host, void (*body)(struct lf_host *, void *), void *arg)
{
    struct lf_call call = { host, body, arg, false };
    k_thread_new(host->kernel, "call", 1, lf_call_body, &call);
    lf_run(host->rig, FAKE_MS(500), lf_call_busy, &call);
    assert_true(call.done);
}

void lf_cut(struct lf_ntb *b, bool cut)
{
    b->cut = cut;
    b->link_changed = true;
    fake_irq_raise(b->f.host->kernel, &b->f.pci, NTB_VECTOR_LINK);
}

void lf_kill(struct lf_host *host)
{
    host->dead = true;
    lend_host_kill(host->lend);
}

static void lf_free_body(struct lf_host *host, void *arg)
{
    (void)arg;
    lend_host_free(host->lend);
}

void lf_close(struct lf_rig *rig)
{
    for (unsigned i = 0; i < rig->n_hosts; i++)
        if (rig->host[i].lend != NULL && !rig->host[i].dead)
            lf_call(&rig->host[i], lf_free_body, NULL);
    for (unsigned i = 0; i < rig->n_hosts; i++) {
        struct lf_host *host = &rig->host[i];
        if (host->dead) { /* its threads do not run on; this CPU frees what is left */
            host->lend->n_threads = 0;
            lend_host_free(host->lend);
        }
        fake_free(host->kernel);
    }
}

struct lf_entries lf_entries_of(const struct lf_ntb *b)
{
    struct lf_entries e = { 0 };
    for (unsigned i = 0; i < LF_WINDOWS; i++)
        e.windows += b->lut[i] != 0;
    for (unsigned i = 0; i < 32; i++)
        e.outgoing += b->outgoing[i] != 0;
    for (unsigned i = 0; i < 248; i++)
        e.incoming += b->incoming[i] != 0;
    return e;
}
