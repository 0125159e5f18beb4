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

static void send_message(struct model *model, uint64_t address, uint32_t data, uint32_t ingress,
                         sim_time at_ps)
{
    struct ntb *ntb = model->state;
    struct tlp *tlp;

    if (!cfg_bus_master(&ntb->cfg))
        return;
    tlp = tlp_new(model->pcie, TLP_MWR);
    tlp->address = address;
    tlp->length_bytes = 4;
    tlp->requester_id = ntb->cfg.id;
    tlp_payload_new(model->pcie, tlp);
    memcpy(tlp->payload, &data, 4);
    ntb->stats.interrupts++;
    crossbar_send(&ntb->xbar, ingress, NTB_HOST, tlp, at_ps);
}

void ntb_interrupt(struct model *model, unsigned vector, uint32_t ingress, sim_time at_ps)
{
    struct ntb *ntb = model->state;
    uint64_t address;
    uint32_t data;

    if (cfg_msix_message(&ntb->cfg, ntb->msix_table, ntb->msix_pba, vector, &address, &data))
        send_message(model, address, data, ingress, at_ps);
}

/* Vectors whose mask was lifted. */
static void take_pending(struct model *model, sim_time at_ps)
{
    struct ntb *ntb = model->state;
    uint64_t address;
    uint32_t data;
    unsigned vector;

    while (
        cfg_msix_take_pending(&ntb->cfg, ntb->msix_table, ntb->msix_pba, &vector, &address, &data))
        send_message(model, address, data, NTB_HOST, at_ps);
}

/* Doorbells or their mask change: each that begins to show raises its vector. */
static void set_doorbells(struct model *model, uint32_t doorbell, uint32_t mask, uint32_t ingress,
                          sim_time at_ps)
{
    struct ntb *ntb = model->state;
    uint32_t shown = ntb->doorbell & ~ntb->doorbell_mask;

    ntb->doorbell = doorbell;
    ntb->doorbell_mask = mask;
    for (uint32_t left = doorbell & ~mask & ~shown; left != 0; left &= left - 1)
        ntb_interrupt(model, (unsigned)__builtin_ctz(left), ingress, at_ps);
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
        { NTB_REG_MSIX_TABLE, sizeof(ntb->msix_table), ntb->msix_table },
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

static uint32_t host_read(struct model *model, uint64_t offset)
{
    struct ntb *ntb = model->state;
    uint32_t value = 0;

    switch (offset) {
    case NTB_REG_ID: return NTB_ID;
    case NTB_REG_CONTROL: return ntb->control;
    case NTB_REG_STATUS: {
        const struct pcie_port *cable = &model->ports[NTB_CABLE];
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
    if (memory == NULL && offset - NTB_REG_MSIX_PBA < sizeof(ntb->msix_pba))
        memory = &ntb->msix_pba[offset - NTB_REG_MSIX_PBA];
    if (memory != NULL)
        memcpy(&value, memory, 4);
    return value;
}

static void host_write(struct model *model, uint64_t offset, uint32_t value, sim_time at_ps)
{
    struct ntb *ntb = model->state;

    switch (offset) {
    case NTB_REG_CONTROL: ntb->control = value & (NTB_CONTROL_SEND | NTB_CONTROL_ACCEPT); return;
    case NTB_REG_STATUS:
        ntb->link_changed = ntb->link_changed && !(value & NTB_STATUS_LINK_CHANGE);
        return;
    case NTB_REG_DOORBELL:
        set_doorbells(model, ntb->doorbell & ~value, ntb->doorbell_mask, NTB_HOST, at_ps);
        return;
    case NTB_REG_DOORBELL_MASK: set_doorbells(model, ntb->doorbell, value, NTB_HOST, at_ps); return;
    default: break;
    }
    uint8_t *memory = memory_of(ntb, offset);
    if (memory != NULL)
        memcpy(memory, &value, 4);
    if (offset - NTB_REG_MSIX_TABLE < sizeof(ntb->msix_table))
        take_pending(model, at_ps);
}

/* ---- Registers of the fabric ----------------------------------------------------------------- */

static uint32_t fabric_read(struct model *model, uint64_t offset)
{
    struct ntb *ntb = model->state;

    if (offset - NTB_FABRIC_SCRATCHPAD < sizeof(ntb->scratchpad))
        return ntb->scratchpad[(offset - NTB_FABRIC_SCRATCHPAD) / 4];
    switch (offset) {
    case NTB_FABRIC_ID: return NTB_ID;
    case NTB_FABRIC_NODE: return ntb->node;
    case NTB_FABRIC_DOORBELL: return ntb->doorbell;
    default: return 0;
    }
}

static void fabric_write(struct model *model, uint64_t offset, uint32_t value, sim_time at_ps)
{
    struct ntb *ntb = model->state;

    if (offset - NTB_FABRIC_SCRATCHPAD < sizeof(ntb->scratchpad)) {
        ntb->scratchpad[(offset - NTB_FABRIC_SCRATCHPAD) / 4] = value;
    } else if (offset == NTB_FABRIC_DOORBELL) {
        ntb->stats.rings++;
        set_doorbells(model, ntb->doorbell | value, ntb->doorbell_mask, NTB_CABLE, at_ps);
    }
}

uint32_t ntb_register_read(struct model *model, bool from_fabric, uint64_t offset)
{
    return from_fabric ? fabric_read(model, offset) : host_read(model, offset);
}

void ntb_register_write(struct model *model, bool from_fabric, uint64_t offset, uint32_t value,
                        sim_time at_ps)
{
    if (from_fabric)
        fabric_write(model, offset, value, at_ps);
    else
        host_write(model, offset, value, at_ps);
}
