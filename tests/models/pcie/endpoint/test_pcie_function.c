/*
 * What PCIe asks of every endpoint, tested against each function of each device type of the
 * registry: identity, BARs that can be sized, unsupported requests answered or dropped, MSI-X with
 * its masks and pending bits, Bus Master Enable, function-level reset behind the completion that
 * initiates it, removal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hw/pci_regs.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/world/registry.h"

#define BUS       5u
#define DOORBELL  UINT64_C(0xfee00000) /* where messages go */
#define MEMORY    UINT64_C(0x100000)
#define BAR_BASE  UINT64_C(0x4000000000) /* of BAR i: (1 + i) times this */
#define LOW_BASE  UINT64_C(0x80000000)   /* of a BAR of 32 bits: i * 256 MiB behind it */
#define N_READS   40u
#define N_ONES(n) ((n) >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * (n)) - 1)

/* What makes a type have all that it may have; others: as they are. */
static const struct {
    const char *type, *key, *value;
} settings[] = {
    { "nic.ethernet", "vfs", "2" },
    { "pcie.ntb", "dma_channels", "2" },
    { "nvme.controller", "cmb_bytes", "1048576" },
};

struct rig {
    struct sim *sim;
    struct pcie_context *pcie;
    struct config *config;
    struct sim_error_list errors;
    struct model host, *device;
    struct pcie_port port;
    struct pcie_link *link;
    struct pcie_function *function; /* under test */
    bool poisons;                   /* what it sends */
    /* What the host has got. */
    unsigned n_answers, n_reads, n_messages;
    uint8_t status;
    uint16_t completer_id;
    uint64_t answer, message_address;
    uint32_t message_data;
};

/* ---- A host that answers no reads ------------------------------------------------------------ */

static void host_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct rig *r = model->state;
    (void)port;
    pcie_port_release(&r->port, tlp_class_of(tlp), tlp_data_credits(tlp), sim_now(r->sim));
    r->n_reads += tlp->type == TLP_MRD;
    if (tlp->type == TLP_MWR) {
        r->n_messages++;
        r->message_address = tlp->address;
        assert_int_equal(tlp->length_bytes, 4);
        memcpy(&r->message_data, tlp->payload, 4);
    } else if (tlp_class_of(tlp) == TLP_COMPLETION) {
        r->n_answers++;
        r->status = tlp->status;
        r->completer_id = tlp->completer_id;
        r->answer = 0;
        if (tlp->payload != NULL)
            memcpy(&r->answer, tlp->payload, SIM_MIN(tlp->length_bytes, 8));
    }
    tlp_free(r->pcie, tlp);
}

static void host_link_change(struct model *model, uint32_t port)
{
    (void)model;
    (void)port;
}

static const struct model_ops host_ops = { .type = "test.host",
                                           .receive = host_receive,
                                           .link_change = host_link_change };

/* Runs long enough for a register's answer, not for a completion time-out. */
static void settle(struct rig *r)
{
    sim_run(r->sim, sim_now(r->sim) + 5 * SIM_PS_PER_US, NULL);
    assert_null(sim_error(r->sim));
}

/* True if it was answered. */
static bool ask(struct rig *r, enum tlp_type type, uint16_t id, uint64_t address, unsigned bytes,
                uint64_t value)
{
    struct tlp *tlp = tlp_new(r->pcie, type);
    tlp->requester_id = 0xff00;
    tlp->completer_id = id;
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    if (tlp_has_data(tlp)) {
        tlp_payload_new(r->pcie, tlp);
        memset(tlp->payload, 0, bytes);
        memcpy(tlp->payload, &value, SIM_MIN(bytes, sizeof(value)));
    }
    tlp->poisoned = r->poisons;
    r->n_answers = 0;
    pcie_port_send(&r->port, tlp, sim_now(r->sim));
    settle(r);
    return r->n_answers != 0;
}

static uint16_t id_of(const struct rig *r)
{
    return pcie_id(BUS, 0, r->function->desc.number);
}

static uint32_t config_read(struct rig *r, unsigned offset)
{
    assert_true(ask(r, TLP_CFG_RD0, id_of(r), offset, 4, 0));
    assert_int_equal(r->status, TLP_SC);
    return (uint32_t)r->answer;
}

static void config_write(struct rig *r, unsigned offset, uint32_t value)
{
    assert_true(ask(r, TLP_CFG_WR0, id_of(r), offset, 4, value));
    assert_int_equal(r->status, TLP_SC);
}

static unsigned capability(struct rig *r, unsigned id)
{
    unsigned at = config_read(r, PCI_CAP_POINTER) & 0xff;
    while (at != 0) {
        const uint32_t head = config_read(r, at);
        if ((head & 0xff) == id)
            return at;
        at = head >> 8 & 0xff;
    }
    return 0;
}

static uint64_t bar_base(const struct rig *r, unsigned i)
{
    return (r->function->desc.bar[i].flags & CFG_BAR_64) != 0 ? (1 + i) * BAR_BASE
                                                              : LOW_BASE + i * 0x10000000u;
}

static void enable(struct rig *r, uint32_t command)
{
    for (unsigned i = 0; i < PCIE_FUNCTION_BARS; i++) {
        const struct pcie_bar *bar = &r->function->desc.bar[i];
        if (bar->bytes == 0)
            continue;
        config_write(r, PCI_BAR0 + 4 * i, (uint32_t)bar_base(r, i));
        if ((bar->flags & CFG_BAR_64) != 0)
            config_write(r, PCI_BAR0 + 4 * i + 4, (uint32_t)(bar_base(r, i) >> 32));
    }
    config_write(r, PCI_COMMAND, command);
}

/* ---- Every function of every type ------------------------------------------------------------ */

static void open_rig(struct rig *r, const struct model_ops *ops)
{
    *r = (struct rig){ .sim = sim_new(3) };
    r->pcie = pcie_context_new(r->sim);
    r->config = config_load("/dev/null", ".", &r->errors);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(settings); i++) {
        char path[64];
        snprintf(path, sizeof(path), "device.%s", settings[i].key);
        if (strcmp(settings[i].type, ops->type) == 0)
            config_set(r->config, path, settings[i].value, "test", &r->errors);
    }
    r->device = model_new(r->sim, r->pcie, ops, "device", r->config,
                          config_get(config_root(r->config), "device"), &r->errors);
    assert_int_equal(r->errors.n_messages, 0);
}

static void connect_rig(struct rig *r)
{
    const struct pcie_port *port = &r->device->ports[0];
    const struct pcie_link_params link = { .latency_ps = 10000, .skp_overhead_ratio = 0 };
    r->host = (struct model){ .ops = &host_ops,
                              .name = "host",
                              .sim = r->sim,
                              .pcie = r->pcie,
                              .state = r,
                              .ports = &r->port,
                              .n_ports = 1 };
    r->port = (struct pcie_port){ .model = &r->host,
                                  .max_generation = port->max_generation,
                                  .max_lanes = port->max_lanes,
                                  .mps_bytes = 128,
                                  .mps_bytes_max = 256,
                                  .name = "host.rp0" };
    for (unsigned c = 0; c < N_TLP_CLASSES; c++) {
        r->port.advertise.header[c] = PCIE_CREDITS_INFINITE;
        r->port.advertise.data[c] = PCIE_CREDITS_INFINITE;
    }
    r->link = pcie_link_new(r->pcie, "link", &link, &r->port, &r->device->ports[0], "test", 1,
                            &r->errors);
    assert_non_null(r->link);
    r->device->ops->start(r->device);
}

static void close_rig(struct rig *r)
{
    model_free(r->device);
    pcie_context_free(r->pcie);
    sim_free(r->sim);
    config_free(r->config);
    sim_error_release(&r->errors);
}

/* Runs the test once for each function, each with a device of its own. Types without functions, as
 * switches, have none. At least so many are there; tests pick. */
static void for_each(void (*test)(struct rig *r), bool (*picks)(const struct rig *r), unsigned min)
{
    unsigned n = 0;
    for (unsigned t = 0; model_registry[t] != NULL; t++) {
        for (unsigned f = 0, there = 1; f < there; f++) {
            struct rig r;
            open_rig(&r, model_registry[t]);
            struct pcie_function *function = r.device->n_ports != 0 ? r.device->ports[0].function
                                                                    : NULL;
            there = 0;
            for (struct pcie_function *i = function; i != NULL; i = i->next)
                r.function = there++ == f ? i : r.function;
            if (r.function != NULL && (picks == NULL || picks(&r))) {
                print_message("%s, function %u\n", model_registry[t]->type, f);
                connect_rig(&r);
                test(&r);
                n++;
            }
            close_rig(&r);
        }
    }
    assert_true(n >= min);
}

static bool has_vectors(const struct rig *r)
{
    return r->function->desc.n_vectors != 0;
}

static bool can_reset(const struct rig *r)
{
    return r->function->desc.function_reset;
}

/* The chip of a bridge stands between its functions and the port. */
static bool sends_by_itself(const struct rig *r)
{
    return r->device->ops->receive == pcie_function_receive;
}

/* ---- Configuration --------------------------------------------------------------------------- */

static void identity(struct rig *r)
{
    const struct cfg_identity *is = &r->function->desc.identity;
    assert_int_equal(config_read(r, PCI_VENDOR_ID), is->vendor_id | (uint32_t)is->device_id << 16);
    assert_int_equal(config_read(r, PCI_REVISION) >> 8, is->class_code);
    config_write(r, PCI_COMMAND, 0); /* tells it its bus */
    assert_int_equal(r->completer_id, id_of(r));
    const unsigned cap = capability(r, PCI_CAP_ID_PCIE);
    assert_true(cap != 0);
    assert_int_equal(config_read(r, cap + PCIE_DEVCAP) >> 28 & 1, r->function->desc.function_reset);
    /* It knows the width of its link. */
    assert_int_equal(config_read(r, cap + PCIE_LNKCTL) >> 20 & 0x3f, r->device->ports[0].max_lanes);
    const uint64_t before = *r->function->unsupported;
    assert_true(ask(r, TLP_CFG_RD0, pcie_id(BUS, 0, 7), PCI_VENDOR_ID, 4, 0));
    assert_int_equal(r->status, TLP_UR);
    assert_true(ask(r, TLP_CFG_RD1, id_of(r), PCI_VENDOR_ID, 4, 0)); /* it is no bridge */
    assert_int_equal(r->status, TLP_UR);
    assert_int_equal(*r->function->unsupported, before + 2);
}

static void bars_are_sized(struct rig *r)
{
    for (unsigned i = 0; i < PCIE_FUNCTION_BARS; i++) {
        const struct pcie_bar *bar = &r->function->desc.bar[i];
        const bool wide = (bar->flags & CFG_BAR_64) != 0;
        uint64_t ones = wide ? 0 : UINT64_MAX << 32;
        for (unsigned half = 0; half <= wide; half++) {
            config_write(r, PCI_BAR0 + 4 * (i + half), UINT32_MAX);
            ones |= (uint64_t)config_read(r, PCI_BAR0 + 4 * (i + half)) << 32 * half;
        }
        if (bar->bytes == 0) {
            assert_int_equal((uint32_t)ones, 0);
            continue;
        }
        assert_int_equal(~(ones & ~(uint64_t)PCI_BAR_FLAGS_MASK) + 1, bar->bytes);
        assert_int_equal(ones & PCI_BAR_FLAGS_MASK,
                         (wide ? PCI_BAR_TYPE_64 : 0) |
                             ((bar->flags & CFG_BAR_PREFETCH) != 0 ? PCI_BAR_PREFETCH : 0));
        i += wide;
    }
}

/* ---- Requests to it -------------------------------------------------------------------------- */

static void send_poisoned(struct rig *r, enum tlp_type type, uint64_t address)
{
    r->poisons = true;
    ask(r, type, id_of(r), address, 4, UINT32_MAX);
    r->poisons = false;
}

/* Data that are marked as bad change neither registers nor configuration, and the status tells. */
static void poisoned_writes_change_nothing(struct rig *r)
{
    enable(r, PCI_COMMAND_MEMORY);
    const struct cfg_space before = r->function->cfg;
    const unsigned aer = before.aer_cap + PCI_AER_UNCORRECTABLE;
    assert_true(before.aer_cap != 0);
    assert_int_equal(config_read(r, aer), 0);
    const unsigned msix = r->function->desc.n_vectors != 0 ? r->function->desc.msix_bar : 0;
    const uint64_t at = bar_base(r, msix) + r->function->desc.msix_table;
    assert_true(ask(r, TLP_MRD, 0, at, 4, 0));
    const uint64_t was = r->answer;
    send_poisoned(r, TLP_MWR, at);
    assert_int_equal(r->n_answers, 0);
    assert_int_equal(config_read(r, aer), PCI_AER_POISONED);
    config_write(r, aer, PCI_AER_POISONED);
    assert_true(ask(r, TLP_MRD, 0, at, 4, 0));
    assert_int_equal(r->answer, was);
    send_poisoned(r, TLP_CFG_WR0, PCI_COMMAND);
    assert_int_equal(r->n_answers, 1);
    assert_int_equal(r->status, TLP_UR);
    assert_int_equal(config_read(r, PCI_COMMAND) & 0xffff, PCI_COMMAND_MEMORY);
    assert_int_equal(config_read(r, aer), PCI_AER_POISONED);
    assert_true(pcie_port_credits_whole(&r->device->ports[0]));
}

static void expect_refused(struct rig *r, uint64_t address, unsigned bytes)
{
    const uint64_t before = *r->function->unsupported;
    assert_true(ask(r, TLP_MRD, 0, address, bytes, 0));
    assert_int_equal(r->status, TLP_UR);
    assert_int_equal(*r->function->unsupported, before + 1);
}

static void only_its_own_is_answered(struct rig *r)
{
    const uint64_t bar = bar_base(r, 0), bytes = r->function->desc.bar[0].bytes;
    enable(r, 0);
    expect_refused(r, bar, 4); /* memory space is disabled */
    enable(r, PCI_COMMAND_MEMORY);
    assert_true(ask(r, TLP_MRD, 0, bar, 4, 0));
    assert_int_equal(r->status, TLP_SC);
    assert_true(ask(r, TLP_MRD, 0, bar, 8, 0));
    assert_int_equal(r->status, TLP_SC);
    const uint64_t first = r->answer;
    assert_true(ask(r, TLP_MRD, 0, bar + 4, 4, 0));
    assert_int_equal(r->answer, first >> 32);
    expect_refused(r, bar - 8, 8);
    expect_refused(r, bar + bytes, 4);
    expect_refused(r, bar + 0, 16); /* registers are 8 bytes at most */
    const uint64_t before = *r->function->unsupported;
    assert_false(ask(r, TLP_MWR, 0, bar - 8, 8, 0)); /* dropped */
    assert_int_equal(*r->function->unsupported, before + 1);
    assert_false(ask(r, TLP_MWR, 0, bar + 2, 1, 0));
    assert_int_equal(*r->function->unsupported, before + 1 + !r->function->desc.bar[0].by_bytes);
    assert_false(ask(r, TLP_MSG, 0, 0, 0, 0));
    assert_true(ask(r, TLP_MRD, 0, bar, 8, 0)); /* all the same, it goes on */
    assert_int_equal(r->answer, first);
}

/* ---- MSI-X ----------------------------------------------------------------------------------- */

static uint64_t msix_read(struct rig *r, uint64_t offset, unsigned bytes)
{
    const uint64_t at = bar_base(r, r->function->desc.msix_bar) + offset;
    assert_true(ask(r, TLP_MRD, 0, at, bytes, 0));
    assert_int_equal(r->status, TLP_SC);
    return r->answer & N_ONES(bytes);
}

static void msix_write(struct rig *r, uint64_t offset, uint32_t value)
{
    const uint64_t at = bar_base(r, r->function->desc.msix_bar) + offset;
    assert_false(ask(r, TLP_MWR, 0, at, 4, value));
}

static uint64_t entry(const struct rig *r, unsigned vector)
{
    return r->function->desc.msix_table + PCI_MSIX_ENTRY_BYTES * vector;
}

static void expect_messages(struct rig *r, unsigned n)
{
    settle(r);
    assert_int_equal(r->n_messages, n);
    r->n_messages = 0;
}

static void vectors_are_masked_and_pending(struct rig *r)
{
    const struct pcie_function_desc *desc = &r->function->desc;
    const unsigned last = desc->n_vectors - 1u, cap = capability(r, PCI_CAP_ID_MSIX);
    const uint64_t pba = desc->msix_pba + last / 64 * 8, bit = UINT64_C(1) << last % 64;
    enable(r, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    assert_int_equal((config_read(r, cap) >> 16 & PCI_MSIX_CONTROL_SIZE_MASK), last);
    assert_int_equal(config_read(r, cap + PCI_MSIX_TABLE), desc->msix_table | desc->msix_bar);
    assert_int_equal(msix_read(r, entry(r, last) + PCI_MSIX_ENTRY_CONTROL, 4),
                     PCI_MSIX_ENTRY_MASKED);
    msix_write(r, entry(r, last) + PCI_MSIX_ENTRY_ADDRESS, (uint32_t)DOORBELL);
    msix_write(r, entry(r, last) + PCI_MSIX_ENTRY_DATA, 0xabcd0000 | last);
    pcie_function_interrupt(r->function, last); /* MSI-X is off: nothing, not even pending */
    expect_messages(r, 0);
    assert_int_equal(msix_read(r, pba, 8), 0);
    /* The vector's mask. */
    config_write(r, cap, (uint32_t)PCI_MSIX_CONTROL_ENABLE << 16);
    pcie_function_interrupt(r->function, last);
    pcie_function_interrupt(r->function, last);
    expect_messages(r, 0);
    assert_int_equal(msix_read(r, pba, 8), bit);
    msix_write(r, (uint64_t)pba, 0); /* read-only */
    assert_int_equal(msix_read(r, pba, 8), bit);
    msix_write(r, entry(r, last) + PCI_MSIX_ENTRY_CONTROL, 0);
    expect_messages(r, 1);
    assert_int_equal(r->message_address, DOORBELL);
    assert_int_equal(r->message_data, 0xabcd0000 | last);
    assert_int_equal(msix_read(r, pba, 8), 0);
    pcie_function_interrupt(r->function, last);
    expect_messages(r, 1);
    /* The function's. */
    config_write(r, cap,
                 (uint32_t)(PCI_MSIX_CONTROL_ENABLE | PCI_MSIX_CONTROL_FUNCTION_MASK) << 16);
    pcie_function_interrupt(r->function, last);
    expect_messages(r, 0);
    config_write(r, cap, (uint32_t)PCI_MSIX_CONTROL_ENABLE << 16);
    expect_messages(r, 1);
    /* A message is a memory write. */
    enable(r, PCI_COMMAND_MEMORY);
    pcie_function_interrupt(r->function, last);
    expect_messages(r, 0);
}

/* ---- DMA, reset, removal --------------------------------------------------------------------- */

static struct {
    struct rig *r;
    struct pcie_dma_request request[N_READS];
    unsigned n_done;
    enum pcie_dma_status status;
    uint64_t tlps; /* that the function had sent when the first ended */
} dma;

/* TLPs that have a place on the wire, those that have not begun to leave yet included. */
static uint64_t committed(struct pcie_port *port)
{
    const struct pcie_link_stats *stats = pcie_port_stats(port);

    return stats->tlps + stats->ahead_tlps;
}

static void dma_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    (void)request;
    if (dma.n_done++ == 0)
        dma.tlps = committed(dma.r->function->port);
    dma.status = status;
}

/* More reads than any of them has tags or buffers for at once: some wait. */
static void dma_start(struct rig *r)
{
    dma.r = r;
    dma.n_done = 0;
    for (unsigned i = 0; i < N_READS; i++) {
        dma.request[i] = (struct pcie_dma_request){ .iova = { MEMORY + i * 4096 },
                                                    .bytes = 4096,
                                                    .done = dma_done };
        pcie_dma_read(&r->function->dma, &dma.request[i], sim_now(r->sim));
    }
}

static void nothing_leaves_without_bus_master(struct rig *r)
{
    enable(r, PCI_COMMAND_MEMORY);
    dma_start(r);
    assert_int_equal(dma.n_done, N_READS);
    assert_int_equal(dma.status, PCIE_DMA_BUS_MASTER_OFF);
    settle(r);
    assert_int_equal(r->n_reads, 0);
    enable(r, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    dma_start(r);
    settle(r);
    assert_true(r->n_reads > 0);
    assert_int_equal(dma.n_done, 0);
}

static void completion_leaves_before_the_reset(struct rig *r)
{
    const unsigned cap = capability(r, PCI_CAP_ID_PCIE), msix = capability(r, PCI_CAP_ID_MSIX);
    enable(r, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    if (msix != 0) {
        config_write(r, msix, (uint32_t)PCI_MSIX_CONTROL_ENABLE << 16);
        msix_write(r, entry(r, 0) + PCI_MSIX_ENTRY_CONTROL, 0);
    }
    config_write(r, cap + PCIE_DEVCTL, 1u << PCIE_DEVCTL_MPS_SHIFT | PCIE_DEVCTL_EXTENDED_TAG);
    dma_start(r);
    settle(r);
    const uint64_t sent = committed(r->function->port);
    config_write(r, cap + PCIE_DEVCTL, 1u << PCIE_DEVCTL_MPS_SHIFT | PCIE_DEVCTL_FLR);
    assert_int_equal(r->function->stats.resets, 1);
    assert_int_equal(dma.n_done, N_READS);
    assert_int_equal(dma.status, PCIE_DMA_BUS_MASTER_OFF);
    assert_int_equal(dma.tlps, sent + 1); /* 6.6.2 */
    /* Within 100 ms it is ready. */
    sim_run(r->sim, sim_now(r->sim) + 100 * SIM_PS_PER_MS, NULL);
    const uint32_t control = config_read(r, cap + PCIE_DEVCTL);
    assert_int_equal(control & (PCIE_DEVCTL_FLR | PCIE_DEVCTL_EXTENDED_TAG), 0);
    assert_int_equal((control & PCIE_DEVCTL_MPS_MASK) >> PCIE_DEVCTL_MPS_SHIFT, 1); /* the link's */
    assert_int_equal(config_read(r, PCI_COMMAND) & 0xffff, 0);
    assert_int_equal(config_read(r, PCI_BAR0) & ~PCI_BAR_FLAGS_MASK, 0);
    enable(r, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    if (msix != 0) {
        assert_int_equal(config_read(r, msix) >> 16 & PCI_MSIX_CONTROL_ENABLE, 0);
        assert_int_equal(msix_read(r, entry(r, 0) + PCI_MSIX_ENTRY_CONTROL, 4),
                         PCI_MSIX_ENTRY_MASKED);
    }
    r->n_reads = 0;
    dma_start(r);
    settle(r);
    assert_true(r->n_reads > 0);
}

static void expect_silence(struct rig *r)
{
    assert_false(ask(r, TLP_CFG_RD0, id_of(r), PCI_VENDOR_ID, 4, 0));
    assert_false(ask(r, TLP_MRD, 0, bar_base(r, 0), 4, 0));
    r->n_reads = r->n_messages = 0;
    pcie_function_interrupt(r->function, 0);
    if (sends_by_itself(r)) {
        dma_start(r);
        assert_int_equal(dma.n_done, N_READS);
    }
    settle(r);
    assert_int_equal(r->n_reads + r->n_messages, 0);
    assert_true(pcie_port_credits_whole(&r->device->ports[0]));
}

static void nothing_is_heard_of_the_removed(struct rig *r)
{
    enable(r, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    pcie_function_remove(r->device, 0);
    expect_silence(r);
}

/* The cable comes back; what it led to does not. */
static void a_pulled_cable_removes(struct rig *r)
{
    enable(r, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    pcie_link_set_up(r->link, false);
    assert_true(r->function->gone);
    pcie_link_set_up(r->link, true);
    settle(r);
    expect_silence(r);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void test_identity(void **state)
{
    (void)state;
    for_each(identity, NULL, 6);
}

static void test_bars_are_sized(void **state)
{
    (void)state;
    for_each(bars_are_sized, NULL, 6);
}

static void test_only_its_own_is_answered(void **state)
{
    (void)state;
    for_each(only_its_own_is_answered, NULL, 6);
}

static void test_poisoned_writes_change_nothing(void **state)
{
    (void)state;
    for_each(poisoned_writes_change_nothing, NULL, 6);
}

static void test_vectors_are_masked_and_pending(void **state)
{
    (void)state;
    for_each(vectors_are_masked_and_pending, has_vectors, 5);
}

static void test_nothing_leaves_without_bus_master(void **state)
{
    (void)state;
    for_each(nothing_leaves_without_bus_master, sends_by_itself, 4);
}

static void test_completion_leaves_before_the_reset(void **state)
{
    (void)state;
    for_each(completion_leaves_before_the_reset, can_reset, 4);
}

static void test_nothing_is_heard_of_the_removed(void **state)
{
    (void)state;
    for_each(nothing_is_heard_of_the_removed, NULL, 6);
}

static void test_a_pulled_cable_removes(void **state)
{
    (void)state;
    for_each(a_pulled_cable_removes, NULL, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_bars_are_sized),
        cmocka_unit_test(test_only_its_own_is_answered),
        cmocka_unit_test(test_poisoned_writes_change_nothing),
        cmocka_unit_test(test_vectors_are_masked_and_pending),
        cmocka_unit_test(test_nothing_leaves_without_bus_master),
        cmocka_unit_test(test_completion_leaves_before_the_reset),
        cmocka_unit_test(test_nothing_is_heard_of_the_removed),
        cmocka_unit_test(test_a_pulled_cable_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
