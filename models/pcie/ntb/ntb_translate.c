/*
 * Models: what a bridge does to addresses and requesters. Out: the window's entry replaces the
 * upper bits of the address; the requester's bus and device are looked up in the outgoing table,
 * its index becomes the device number on the fabric, the function number stays. In: node and
 * register bit are taken off the address; the requester becomes a function number of the bridge's
 * own bus, by its index in the incoming table. Completions go the way back by the same tables.
 * Multicast writes in: the overlay takes the place of the upper bits of the address, the bridge
 * that of the requester, since nobody waits for an answer. Does not model: translation of address
 * type (ATS requests are passed on as they are). Timing: none; see ntb.c. Sources:
 * docs/models/ntb.md; PCI Express Base 3.1, 6.14 (multicast).
 */
#include "models/pcie/link/tlp_trace.h"
#include "models/pcie/ntb/ntb.h"

#define NO_ENTRY UINT32_MAX

/* The entry of table[] whose bits under mask are those of key (which has the valid bit), looking
 * first where the last one with this hash was. */
static uint32_t find(const uint32_t *table, uint32_t n, uint32_t key, uint32_t mask, uint8_t *hint)
{
    if (*hint < n && (table[*hint] & mask) == key)
        return *hint;
    for (uint32_t i = 0; i < n; i++)
        if ((table[i] & mask) == key) {
            *hint = (uint8_t)i;
            return i;
        }
    return NO_ENTRY;
}

static uint32_t find_outgoing(struct ntb *ntb, uint16_t requester_id)
{
    uint32_t key = NTB_OUTGOING_VALID | (requester_id & NTB_OUTGOING_ID_MASK);
    unsigned hash = (requester_id >> 3 ^ requester_id >> 8) & 63;

    return find(ntb->outgoing, ntb->n_outgoing, key, NTB_OUTGOING_VALID | NTB_OUTGOING_ID_MASK,
                &ntb->outgoing_hint[hash]);
}

static uint32_t find_incoming(struct ntb *ntb, uint32_t requester)
{
    unsigned hash = (requester ^ requester >> 8 ^ requester >> 16) & 255;

    return find(ntb->incoming, ntb->n_incoming, NTB_INCOMING_VALID | requester,
                NTB_INCOMING_VALID | NTB_INCOMING_ID_MASK, &ntb->incoming_hint[hash]);
}

static void set_fabric_requester(struct tlp *tlp, uint32_t requester)
{
    tlp->requester_id = (uint16_t)requester;
    tlp->domain = (uint8_t)(requester >> 16);
}

static uint32_t fabric_requester(const struct tlp *tlp)
{
    return (uint32_t)tlp->domain << 16 | tlp->requester_id;
}

/* What a record of any kind has; the caller adds its own. */
static struct tlp_trace_record *trace(const struct ntb *ntb, const struct tlp *tlp,
                                      enum tlp_trace_kind kind, uint32_t idx, uint32_t entry)
{
    struct tlp_trace_record *record = tlp_trace_add(tlp->stamp, kind, ntb->xbar.model->name,
                                                    sim_now(ntb->xbar.model->sim));

    record->ntb.idx = idx;
    record->ntb.entry = entry;
    record->ntb.node = ntb->node;
    record->ntb.address = record->ntb.to_address = tlp->address;
    record->ntb.requester = fabric_requester(tlp);
    return record;
}

static void trace_request_out(const struct ntb *ntb, const struct tlp *tlp, unsigned aperture,
                              uint64_t window, uint32_t idx, uint64_t to_address,
                              uint32_t to_requester)
{
    struct tlp_trace_record *record = trace(ntb, tlp, TRACE_NTB_OUT, idx, ntb->outgoing[idx]);

    record->ntb.bar = 2 * aperture + 2;
    record->ntb.bar_base = cfg_bar_base(&ntb->function.cfg, record->ntb.bar);
    record->ntb.window = (uint32_t)window;
    record->ntb.window_log2 = ntb->window_log2[aperture];
    record->ntb.lut_entry = ntb->lut[aperture][window];
    record->ntb.to_address = to_address;
    record->ntb.to_requester = to_requester;
}

static void trace_request_in(const struct ntb *ntb, const struct tlp *tlp, uint32_t idx,
                             uint32_t to_requester)
{
    struct tlp_trace_record *record = trace(ntb, tlp, TRACE_NTB_IN, idx, ntb->incoming[idx]);

    record->ntb.to_address = tlp->address & NTB_FABRIC_ADDRESS_MASK;
    record->ntb.to_requester = to_requester;
}

/* ---- Out ------------------------------------------------------------------------------------- */

enum ntb_verdict ntb_request_out(struct ntb *ntb, unsigned aperture, struct tlp *tlp)
{
    uint64_t offset = tlp->address - cfg_bar_base(&ntb->function.cfg, 2 * aperture + 2);
    uint64_t in_window = (UINT64_C(1) << ntb->window_log2[aperture]) - 1;
    uint64_t entry = ntb->lut[aperture][offset >> ntb->window_log2[aperture]];

    if (!(ntb->control & NTB_CONTROL_SEND)) {
        ntb->stats.disabled++;
        return NTB_REFUSE;
    }
    /* No request crosses 4 KiB and no window is smaller, so one entry decides. */
    if (!(entry & NTB_LUT_VALID) ||
        (entry >> NTB_NODE_SHIFT == NTB_NODE_MULTICAST && tlp->type != TLP_MWR)) {
        ntb->stats.unmapped++;
        return NTB_REFUSE;
    }
    uint32_t idx = find_outgoing(ntb, tlp->requester_id);
    if (idx == NO_ENTRY) {
        ntb->stats.unknown_out++;
        return NTB_REFUSE;
    }
    uint64_t address = (entry & ~in_window) | (offset & in_window);
    uint32_t requester = ntb->node << NTB_INCOMING_NODE_SHIFT | idx << NTB_INCOMING_DEVICE_SHIFT |
                         (tlp->requester_id & 7u);
    if (tlp_traced(tlp))
        trace_request_out(ntb, tlp, aperture, offset >> ntb->window_log2[aperture], idx, address,
                          requester);
    tlp->address = address;
    set_fabric_requester(tlp, requester);
    ntb->stats.requests_out++;
    if (tlp->type == TLP_MRD) {
        ntb->stats.reads_out++;
        ntb->stats.read_bytes_out += tlp->length_bytes;
    } else {
        ntb->stats.write_bytes_out += tlp->length_bytes;
    }
    return NTB_PASS;
}

bool ntb_completion_out(struct ntb *ntb, struct tlp *tlp)
{
    uint32_t idx = (tlp->requester_id & 0xffu) - NTB_INCOMING_FUNCTION_BASE;

    if (tlp->requester_id >> 8 != ntb->function.cfg.id >> 8 || idx >= ntb->n_incoming ||
        !(ntb->incoming[idx] & NTB_INCOMING_VALID)) {
        ntb->stats.unexpected_completions++;
        return false;
    }
    if (tlp_traced(tlp))
        trace(ntb, tlp, TRACE_NTB_CPL_OUT, idx, ntb->incoming[idx])->ntb.to_requester =
            ntb->incoming[idx] & NTB_INCOMING_ID_MASK;
    set_fabric_requester(tlp, ntb->incoming[idx] & NTB_INCOMING_ID_MASK);
    tlp->completer_id = (uint16_t)(ntb->node << 8);
    return true;
}

/* ---- In -------------------------------------------------------------------------------------- */

/* The tree's Max_Payload_Size is a promise to everyone in it. */
static bool fits(struct ntb *ntb, const struct tlp *tlp)
{
    if (!tlp_has_data(tlp) || tlp->length_bytes <= cfg_mps_bytes(&ntb->function.cfg))
        return true;
    ntb->stats.oversized++;
    return false;
}

static enum ntb_verdict multicast_in(struct ntb *ntb, struct tlp *tlp)
{
    unsigned position = ntb->mc_control >> NTB_MC_POSITION_SHIFT & NTB_MC_POSITION_MASK;
    unsigned overlay_log2 = (unsigned)ntb->mc_overlay & NTB_MC_POSITION_MASK;
    uint64_t offset = tlp->address & ((UINT64_C(1) << NTB_NODE_SHIFT) - 1);
    uint64_t group = offset >> position, kept = (UINT64_C(1) << overlay_log2) - 1;

    if (tlp->type != TLP_MWR || !(ntb->mc_control & NTB_MC_ENABLE) || position < NTB_MC_LOG2_MIN ||
        overlay_log2 < NTB_MC_LOG2_MIN || group > (ntb->mc_control & NTB_MC_LAST_GROUP_MASK) ||
        !(ntb->mc_receive >> group & 1)) {
        ntb->stats.multicast_refused++;
        return NTB_REFUSE;
    }
    tlp->address = (ntb->mc_overlay & ~UINT64_C(63) & ~kept) | (offset & kept);
    tlp->requester_id = ntb->function.cfg.id;
    tlp->domain = 0;
    ntb->stats.multicast_in++;
    return NTB_PASS;
}

enum ntb_verdict ntb_request_in(struct ntb *ntb, struct tlp *tlp)
{
    uint64_t node = tlp->address >> NTB_NODE_SHIFT;
    bool multicast = node == NTB_NODE_MULTICAST;

    if (!multicast && node != NTB_NODE_PARTNER && node != ntb->node) {
        ntb->stats.misrouted++;
        return NTB_REFUSE;
    }
    if (!multicast && (tlp->address & NTB_FABRIC_REGISTERS))
        return NTB_REGISTERS;
    if (!(ntb->control & NTB_CONTROL_ACCEPT) || !cfg_bus_master(&ntb->function.cfg)) {
        ntb->stats.disabled++;
        return NTB_REFUSE;
    }
    if (!fits(ntb, tlp))
        return NTB_REFUSE;
    if (multicast)
        return multicast_in(ntb, tlp);
    uint32_t idx = find_incoming(ntb, fabric_requester(tlp));
    if (idx == NO_ENTRY) {
        ntb->stats.unknown_in++;
        return NTB_REFUSE;
    }
    uint16_t id = (uint16_t)((ntb->function.cfg.id & 0xff00u) | (NTB_INCOMING_FUNCTION_BASE + idx));
    if (tlp_traced(tlp))
        trace_request_in(ntb, tlp, idx, id);
    tlp->address &= NTB_FABRIC_ADDRESS_MASK;
    tlp->requester_id = id;
    tlp->domain = 0;
    ntb->stats.requests_in++;
    return NTB_PASS;
}

bool ntb_completion_in(struct ntb *ntb, struct tlp *tlp)
{
    uint32_t requester = fabric_requester(tlp);
    uint32_t idx = requester >> NTB_INCOMING_DEVICE_SHIFT & 31u;

    if (requester >> NTB_INCOMING_NODE_SHIFT != ntb->node || idx >= ntb->n_outgoing ||
        !(ntb->outgoing[idx] & NTB_OUTGOING_VALID)) {
        ntb->stats.unexpected_completions++;
        return false;
    }
    if (!fits(ntb, tlp))
        return false;
    uint16_t id = (uint16_t)((ntb->outgoing[idx] & NTB_OUTGOING_ID_MASK) | (requester & 7u));
    if (tlp_traced(tlp))
        trace(ntb, tlp, TRACE_NTB_CPL_IN, idx, ntb->outgoing[idx])->ntb.to_requester = id;
    tlp->requester_id = id;
    tlp->domain = 0;
    tlp->completer_id = ntb->function.cfg.id;
    return true;
}
