/*
 * Models: a bridge's registers as its host and as the fabric see them: what each is, which bits can
 *   be written, what a write does; doorbells and their interrupts.
 * Does not model: see ntb.c.
 * Timing: none of its own; a doorbell's interrupt enters the chip when its write has arrived.
 * Sources: hw/ntb_regs.h; PCI Local Bus 3.0, 6.8.2 (MSI-X).
 */
#include <string.h>

#include "models/pcie/ntb/ntb.h"

/* ---- Interrupts ------------------------------------------------------------------------------ */

static struct ntb *ntb_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct ntb, function);
}

static void send_message(struct pcie_function *function, uint64_t address, uint32_t data)
{
    struct ntb *ntb = ntb_of(function);
    struct tlp *tlp;

    if (!cfg_bus_master(&function->cfg))
        return;
    tlp = tlp_new(function->model->pcie, TLP_MWR);
    tlp->address = address;
    tlp->length_bytes = 4;
    tlp->requester_id = function->cfg.id;
    tlp->digest = function->cfg.live.ecrc;
    tlp_payload_new(function->model->pcie, tlp);
    memcpy(tlp->payload, &data, 4);
    ntb->stats.interrupts++;
    crossbar_send(&ntb->xbar, ntb->access_ingress, NTB_HOST, tlp,
                  SIM_MAX(ntb->access_ps, sim_now(function->model->sim)));
}

void ntb_interrupt(struct model *model, unsigned vector, uint32_t ingress, sim_time at_ps)
{
    struct ntb *ntb = model->state;

    ntb->access_ingress = ingress;
    ntb->access_ps = at_ps;
    pcie_function_interrupt(&ntb->function, vector);
}

/* Doorbells or their mask change: each that begins to show raises its vector. */
static void set_doorbells(struct ntb *ntb, uint32_t doorbell, uint32_t mask)
{
    uint32_t shown = ntb->doorbell & ~ntb->doorbell_mask;

    ntb->doorbell = doorbell;
    ntb->doorbell_mask = mask;
    for (uint32_t left = doorbell & ~mask & ~shown; left != 0; left &= left - 1)
        pcie_function_interrupt(&ntb->function, (unsigned)__builtin_ctz(left));
}

/* ---- Registers of the host ------------------------------------------------------------------- */

/* Registers that are plain memory: a host offset and where the bytes are. */
static uint8_t *memory_of(struct ntb *ntb, uint64_t offset)
{
    const struct {
        uint64_t base, bytes;
        void *at;
    } area[] = {
        { NTB_REG_SCRATCHPAD, sizeof(ntb->scratchpad), ntb->scratchpad },
        { NTB_REG_OUTGOING, 4 * (uint64_t)ntb->n_outgoing, ntb->outgoing },
        { NTB_REG_INCOMING, 4 * (uint64_t)ntb->n_incoming, ntb->incoming },
        { NTB_REG_LUT2, 8 * (uint64_t)ntb->n_windows[0], ntb->lut[0] },
        { NTB_REG_LUT4, 8 * (uint64_t)ntb->n_windows[1], ntb->lut[1] },
        { NTB_REG_MC_RECEIVE, 8, &ntb->mc_receive },
        { NTB_REG_MC_OVERLAY, 8, &ntb->mc_overlay },
        { NTB_REG_MC_CONTROL, 4, &ntb->mc_control },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(area); i++)
        if (offset - area[i].base < area[i].bytes)
            return (uint8_t *)area[i].at + (offset - area[i].base);
    return NULL;
}

static uint32_t host_read(struct pcie_function *function, uint64_t offset)
{
    struct ntb *ntb = ntb_of(function);
    uint32_t value = 0;

    switch (offset) {
    case NTB_REG_ID: return NTB_ID;
    case NTB_REG_CONTROL: return ntb->control;
    case NTB_REG_STATUS: {
        const struct pcie_port *cable = &function->model->ports[NTB_CABLE];
        bool up = pcie_port_connected(cable) && !cable->down;
        return (up ? NTB_STATUS_LINK_UP : 0) | (ntb->link_changed ? NTB_STATUS_LINK_CHANGE : 0);
    }
    case NTB_REG_NODE: return ntb->node;
    case NTB_REG_WINDOWS: return ntb->n_windows[0] | ntb->n_windows[1] << 16;
    case NTB_REG_WINDOW_LOG2: return ntb->window_log2[0] | ntb->window_log2[1] << 8;
    case NTB_REG_REQUESTERS: return ntb->n_outgoing | ntb->n_incoming << 16;
    case NTB_REG_DOORBELL: return ntb->doorbell;
    case NTB_REG_DOORBELL_MASK: return ntb->doorbell_mask;
    default: break;
    }
    const uint8_t *memory = memory_of(ntb, offset);
    if (memory != NULL)
        memcpy(&value, memory, 4);
    return value;
}

static void host_write(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct ntb *ntb = ntb_of(function);

    switch (offset) {
    case NTB_REG_CONTROL: ntb->control = value & (NTB_CONTROL_SEND | NTB_CONTROL_ACCEPT); return;
    case NTB_REG_STATUS:
        ntb->link_changed = ntb->link_changed && !(value & NTB_STATUS_LINK_CHANGE);
        return;
    case NTB_REG_DOORBELL: set_doorbells(ntb, ntb->doorbell & ~value, ntb->doorbell_mask); return;
    case NTB_REG_DOORBELL_MASK: set_doorbells(ntb, ntb->doorbell, value); return;
    default: break;
    }
    uint8_t *memory = memory_of(ntb, offset);
    if (memory != NULL)
        memcpy(memory, &value, 4);
}

/* ---- Registers of the fabric ----------------------------------------------------------------- */

static uint32_t fabric_read(struct pcie_function *function, uint64_t offset)
{
    const struct ntb *ntb = ntb_of(function);

    if (offset - NTB_FABRIC_SCRATCHPAD < sizeof(ntb->scratchpad))
        return ntb->scratchpad[(offset - NTB_FABRIC_SCRATCHPAD) / 4];
    switch (offset) {
    case NTB_FABRIC_ID: return NTB_ID;
    case NTB_FABRIC_NODE: return ntb->node;
    case NTB_FABRIC_DOORBELL: return ntb->doorbell;
    default: return 0;
    }
}

static void fabric_write(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct ntb *ntb = ntb_of(function);

    if (offset - NTB_FABRIC_SCRATCHPAD < sizeof(ntb->scratchpad)) {
        ntb->scratchpad[(offset - NTB_FABRIC_SCRATCHPAD) / 4] = value;
    } else if (offset == NTB_FABRIC_DOORBELL) {
        ntb->stats.rings++;
        set_doorbells(ntb, ntb->doorbell | value, ntb->doorbell_mask);
    }
}

const struct pcie_bar ntb_fabric_registers = { .read = fabric_read, .write = fabric_write };

/* ---- Set-up ---------------------------------------------------------------------------------- */

void ntb_registers_init(struct model *model)
{
    static const struct pcie_function_ops ops = { .message = send_message };
    struct ntb *ntb = model->state;
    struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &ntb->pcie,
        /* Class 068000h, other bridge device, as the virtual side of PLX chips. */
        .identity = { .vendor_id = NTB_VENDOR_ID,
                      .device_id = NTB_DEVICE_ID,
                      .class_code = 0x068000,
                      .multi_function = ntb->engine.channels != 0 },
        .port = NTB_HOST,
        .n_vectors = NTB_N_VECTORS,
        .msix_table = NTB_REG_MSIX_TABLE,
        .msix_pba = NTB_REG_MSIX_PBA,
        .bar = { { NTB_BAR_BYTES, 0, host_read, host_write, .by_bytes = false } }
    };
    for (unsigned i = 0; i < NTB_N_APERTURES; i++)
        desc.bar[2 * i + 2] = (struct pcie_bar){ .bytes = ntb->aperture_bytes[i],
                                                 .flags = CFG_BAR_64 | CFG_BAR_PREFETCH };
    ntb->doorbell_mask = UINT32_MAX;
    pcie_function_init(&ntb->function, model, &desc);
    ntb->function.unsupported = &ntb->stats.unsupported;
}
