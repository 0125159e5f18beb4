/*
 * Models: the registers of a function and of its channels, and its interrupts: one that software
 *   has to rearm per channel (CHANCTRL), a status with a bit per channel and a master enable that
 *   reading clears (INTRCTRL, ATTNSTATUS), or a vector per channel (3.2); INTRDELAY from the
 *   rearming on.
 * Does not model: registers of the DCA's tag map (3.2), of CRC and XOR, performance counters; the
 *   copies of CHANERR in configuration space. A read of one register reads the double word around
 *   it: CHANCNT clears INTRCTRL's master enable, too.
 * Sources: sections by register name in the data sheets (hw/ioat_regs.h).
 */
#include "models/ioat/ioat_internal.h"

/* ---- Interrupts ------------------------------------------------------------------------------ */

static uint8_t interrupt_control(const struct ioat_func *func)
{
    const bool status = func->attention != 0;
    const bool enabled = (func->interrupt_control & IOAT_INTRCTRL_MASTER_ENABLE) != 0;
    return (uint8_t)(func->interrupt_control | (status ? IOAT_INTRCTRL_STATUS : 0) |
                     (status && enabled ? IOAT_INTRCTRL_INTERRUPT : 0));
}

/* The message of the function, once each time that the line would have risen. */
static void follow_line(struct ioat_func *func)
{
    const bool raised = (interrupt_control(func) & IOAT_INTRCTRL_INTERRUPT) != 0;
    if (raised && !func->raised)
        pcie_function_interrupt(&func->function, 0);
    func->raised = raised;
}

static void signal_interrupt(struct ioat_channel *ch)
{
    struct ioat_func *func = ch->func;
    const uint8_t all = IOAT_INTRCTRL_MASTER_ENABLE | IOAT_INTRCTRL_MSIX_VECTORS;
    if (!ioat_is_v1(ch->engine) && (func->interrupt_control & all) == all) {
        pcie_function_interrupt(&func->function, ch->number);
        return;
    }
    func->attention |= 1u << ch->number;
    follow_line(func);
}

void ioat_interrupt_due(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    signal_interrupt(SIM_CONTAINER(event, struct ioat_channel, interrupt));
}

void ioat_interrupt_raise(struct ioat_channel *ch)
{
    struct sim *sim = ch->engine->model->sim;
    const sim_time due_ps = ch->armed_ps + ch->func->delay_us * SIM_PS_PER_US;
    if (ch->control & IOAT_CHANCTRL_INT_DISABLE)
        return;
    ch->control |= IOAT_CHANCTRL_INT_DISABLE;
    if (due_ps <= sim_now(sim))
        signal_interrupt(ch);
    else if (!sim_event_pending(&ch->interrupt))
        sim_schedule(sim, &ch->interrupt, due_ps);
}

/* ---- General registers ----------------------------------------------------------------------- */

static uint32_t read_general(struct ioat_func *func)
{
    const struct ioat_params *params = &func->engine->params;
    const uint32_t log2 = (uint32_t)__builtin_ctzll(params->transfer_bytes_max);
    const uint32_t value = params->n_channels | log2 << IOAT_XFERCAP_SHIFT |
                           (uint32_t)func->general << IOAT_GENCTRL_SHIFT |
                           (uint32_t)interrupt_control(func) << IOAT_INTRCTRL_SHIFT;
    func->interrupt_control &= (uint8_t)~IOAT_INTRCTRL_MASTER_ENABLE;
    follow_line(func);
    return value;
}

static uint32_t read_attention(struct ioat_func *func)
{
    const uint32_t value = func->attention;
    func->attention = 0;
    follow_line(func);
    return value;
}

static uint32_t general_read(struct ioat_func *func, uint64_t offset)
{
    const bool v1 = ioat_is_v1(func->engine);
    switch (offset) {
    case IOAT_GENERAL: return read_general(func);
    case IOAT_ATTNSTATUS: return read_attention(func);
    case IOAT_CBVER: return v1 ? IOAT_VERSION_1_2 : IOAT_VERSION_3_2;
    case IOAT_DMACAPABILITY: return v1 ? 0 : IOAT_DMACAP_DCA;
    case IOAT_INTRDELAY_WORD: return v1 ? 0 : func->delay_us | IOAT_INTRDELAY_SUPPORTED;
    default: return 0;
    }
}

static void general_write(struct ioat_func *func, uint64_t offset, uint32_t value)
{
    const uint8_t vectors = ioat_is_v1(func->engine) ? 0 : IOAT_INTRCTRL_MSIX_VECTORS;
    if (offset == IOAT_GENERAL) {
        func->general = (uint8_t)(value >> IOAT_GENCTRL_SHIFT & 1);
        func->interrupt_control = (uint8_t)(value >> IOAT_INTRCTRL_SHIFT &
                                            (IOAT_INTRCTRL_MASTER_ENABLE | vectors));
        follow_line(func);
    } else if (offset == IOAT_INTRDELAY_WORD && !ioat_is_v1(func->engine)) {
        func->delay_us = (uint16_t)(value & IOAT_INTRDELAY_US_MASK);
    }
}

/* ---- Registers of a channel ------------------------------------------------------------------ */

static uint64_t channel_status(const struct ioat_channel *ch)
{
    return ch->last | ch->status;
}

static uint32_t half(uint64_t value, uint64_t offset, uint32_t low)
{
    return (uint32_t)(offset == low ? value : value >> 32);
}

static uint32_t command_pending(const struct ioat_channel *ch)
{
    return ch->resetting ? IOAT_CHANCMD_RESET : 0;
}

/* The first read after IN_USE was cleared takes the channel. */
static uint32_t read_control(struct ioat_channel *ch)
{
    const uint32_t compatible = ioat_is_v1(ch->engine) ? 1u : 2u;
    const uint32_t value = ch->control | compatible << 16;
    ch->control |= IOAT_CHANCTRL_IN_USE;
    return value;
}

static uint32_t read_v1(const struct ioat_channel *ch, uint64_t offset)
{
    switch (offset) {
    case IOAT_V1_CHANSTS:
    case IOAT_V1_CHANSTS + 4: return half(channel_status(ch), offset, IOAT_V1_CHANSTS);
    case IOAT_V1_CHAINADDR:
    case IOAT_V1_CHAINADDR + 4: return half(ch->chain_address, offset, IOAT_V1_CHAINADDR);
    case IOAT_V1_CHANCMD: return command_pending(ch);
    default: return 0;
    }
}

static uint32_t read_v3(const struct ioat_channel *ch, uint64_t offset)
{
    switch (offset) {
    case IOAT_V3_CHANCMD:
        return command_pending(ch) | (uint32_t)ch->count << IOAT_V3_DMACOUNT_SHIFT;
    case IOAT_V3_CHANSTS:
    case IOAT_V3_CHANSTS + 4: return half(channel_status(ch), offset, IOAT_V3_CHANSTS);
    case IOAT_V3_CHAINADDR:
    case IOAT_V3_CHAINADDR + 4: return half(ch->chain_address, offset, IOAT_V3_CHAINADDR);
    case IOAT_DCACTRL: return ch->dca;
    default: return 0;
    }
}

static uint32_t channel_read(struct ioat_channel *ch, uint64_t offset)
{
    switch (offset) {
    case IOAT_CHANCTRL: return read_control(ch);
    case IOAT_CHANCMP:
    case IOAT_CHANCMP + 4: return half(ch->completion_address, offset, IOAT_CHANCMP);
    case IOAT_CDAR:
    case IOAT_CDAR + 4: return half(ch->current, offset, IOAT_CDAR);
    case IOAT_CHANERR: return ch->error;
    case IOAT_CHANERRMSK: return ch->error_mask;
    default: return ioat_is_v1(ch->engine) ? read_v1(ch, offset) : read_v3(ch, offset);
    }
}

static uint64_t with_half(uint64_t old, uint64_t offset, uint32_t low, uint32_t value)
{
    return offset == low ? (old & ~(uint64_t)UINT32_MAX) | value
                         : (old & UINT32_MAX) | (uint64_t)value << 32;
}

/* A rearmed channel has nothing to tell yet: what is pending for its vector, masked, is not sent
 * (14.5, "Pending Bits"), unless an interrupt waits for INTRDELAY. */
static void forget_pending(struct ioat_channel *ch)
{
    struct ioat_func *func = ch->func;
    if ((func->interrupt_control & IOAT_INTRCTRL_MSIX_VECTORS) != 0 &&
        (ch->control & IOAT_CHANCTRL_INT_DISABLE) != 0 && !sim_event_pending(&ch->interrupt))
        pcie_function_interrupt_clear(&func->function, ch->number);
}

static void write_control(struct ioat_channel *ch, uint32_t value)
{
    const uint32_t writable = ioat_is_v1(ch->engine) ? IOAT_V1_CHANCTRL_WRITABLE
                                                     : IOAT_V3_CHANCTRL_WRITABLE;
    const bool rearm = (value & IOAT_CHANCTRL_INT_DISABLE) != 0;
    const uint32_t disabled = rearm ? 0 : ch->control & IOAT_CHANCTRL_INT_DISABLE;
    if (rearm) {
        forget_pending(ch);
        ch->armed_ps = sim_now(ch->engine->model->sim);
    }
    ch->control = (value & writable) | disabled;
}

static void write_v1(struct ioat_channel *ch, uint64_t offset, uint32_t value)
{
    if (offset == IOAT_V1_CHAINADDR || offset == IOAT_V1_CHAINADDR + 4)
        ch->chain_address = with_half(ch->chain_address, offset, IOAT_V1_CHAINADDR, value);
    else if (offset == IOAT_V1_CHANCMD)
        ioat_channel_command(ch, value & 0xff);
}

static void write_v3(struct ioat_channel *ch, uint64_t offset, uint32_t value)
{
    if (offset == IOAT_V3_CHAINADDR || offset == IOAT_V3_CHAINADDR + 4) {
        ioat_channel_chain(ch, with_half(ch->chain_address, offset, IOAT_V3_CHAINADDR, value));
    } else if (offset == IOAT_V3_CHANCMD) {
        ioat_channel_command(ch, value & 0xff);
        if ((value & 0xff) == 0)
            ioat_channel_count(ch, (uint16_t)(value >> IOAT_V3_DMACOUNT_SHIFT));
    } else if (offset == IOAT_DCACTRL) {
        ch->dca = value & IOAT_DCACTRL_TARGET_MASK;
    }
}

static void channel_write(struct ioat_channel *ch, uint64_t offset, uint32_t value)
{
    switch (offset) {
    case IOAT_CHANCTRL: write_control(ch, value); break;
    case IOAT_CHANCMP:
    case IOAT_CHANCMP + 4:
        ch->completion_address = with_half(ch->completion_address, offset, IOAT_CHANCMP, value);
        break;
    case IOAT_CHANERR: ch->error &= ~value; break;
    case IOAT_CHANERRMSK:
        ch->error_mask = value &
                         (ioat_is_v1(ch->engine) ? IOAT_V1_CHANERR_ALL : IOAT_V3_CHANERR_ALL);
        break;
    default:
        if (ioat_is_v1(ch->engine))
            write_v1(ch, offset, value);
        else
            write_v3(ch, offset, value);
        break;
    }
}

/* ---- The BAR --------------------------------------------------------------------------------- */

static struct ioat_channel *channel_at(struct ioat_func *func, uint64_t offset)
{
    const uint64_t n = offset / IOAT_CHANNEL_BYTES - 1;
    return n < func->engine->params.n_channels ? &func->channel[n] : NULL;
}

uint32_t ioat_register_read(struct pcie_function *function, uint64_t offset)
{
    struct ioat_func *func = SIM_CONTAINER(function, struct ioat_func, function);
    if (offset < IOAT_CHANNEL(0))
        return general_read(func, offset);
    struct ioat_channel *ch = channel_at(func, offset);
    return ch != NULL ? channel_read(ch, offset % IOAT_CHANNEL_BYTES) : 0;
}

void ioat_register_write(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct ioat_func *func = SIM_CONTAINER(function, struct ioat_func, function);
    if (offset < IOAT_CHANNEL(0)) {
        general_write(func, offset, value);
        return;
    }
    struct ioat_channel *ch = channel_at(func, offset);
    if (ch != NULL)
        channel_write(ch, offset % IOAT_CHANNEL_BYTES, value);
}
