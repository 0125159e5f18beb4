#include "tests/support/ioat_fake.h"

struct later {
    struct ioat_fake_channel *ch;
    unsigned epoch;
};

static void begin(struct ioat_fake_channel *ch);

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void raise_interrupt(struct ioat_fake_channel *ch)
{
    struct ioat_fake *fake = ch->fake;
    if (ch->control & IOAT_CHANCTRL_INT_DISABLE)
        return;
    ch->control |= IOAT_CHANCTRL_INT_DISABLE;
    if (!fake->v1) {
        fake->n_interrupts += fake_irq_raise(fake->kernel, &fake->pci, ch->number);
        return;
    }
    const bool before = fake->attention != 0;
    fake->attention |= 1u << ch->number;
    if (!before && fake->interrupts & IOAT_INTRCTRL_MASTER_ENABLE)
        fake->n_interrupts += fake_irq_raise(fake->kernel, &fake->pci, 0);
}

/* ---- Chains ---------------------------------------------------------------------------------- */

static void write_completion(const struct ioat_fake_channel *ch, uint64_t status)
{
    k_poke(ch->fake->kernel, (struct kaddr){ ch->completion }, &status, sizeof status);
}

static void copy_bytes(struct kernel *kernel, const struct ioat_descriptor *d)
{
    uint8_t *bytes = malloc(d->bytes);
    k_peek(kernel, (struct kaddr){ d->source }, bytes, d->bytes);
    k_poke(kernel, (struct kaddr){ d->destination }, bytes, d->bytes);
    free(bytes);
}

static bool more(const struct ioat_fake_channel *ch)
{
    return ch->fake->v1 ? !ch->at_end : ch->done != ch->count;
}

static void halt(struct ioat_fake_channel *ch, uint32_t error)
{
    ch->halted = true;
    ch->error |= error;
    ch->status = ch->last | IOAT_CHANSTS_HALTED;
    if (ch->control & IOAT_CHANCTRL_ERR_COMPLETION)
        write_completion(ch, ch->status);
    if (ch->control & IOAT_CHANCTRL_ERR_INT)
        raise_interrupt(ch);
}

static void step(void *arg)
{
    struct later *later = arg;
    struct ioat_fake_channel *ch = later->ch;
    struct ioat_fake *fake = ch->fake;
    struct ioat_descriptor d;
    const bool current = later->epoch == ch->epoch;
    free(later);
    if (!current || fake->gone)
        return;
    ch->busy = false;
    if (ch->append && ch->at_end) { /* look again */
        k_peek(fake->kernel, (struct kaddr){ ch->last }, &d, sizeof d);
        ch->next = d.next;
        ch->at_end = d.next == 0;
        ch->append = false;
        begin(ch);
        return;
    }
    k_peek(fake->kernel, (struct kaddr){ ch->next }, &d, sizeof d);
    if (d.source & IOAT_FAKE_BAD) {
        halt(ch, IOAT_CHANERR_SOURCE);
        return;
    }
    copy_bytes(fake->kernel, &d);
    ch->last = ch->next;
    ch->next = d.next;
    ch->at_end = d.next == 0;
    ch->done++;
    fake->n_done++;
    ch->idle = !more(ch);
    ch->status = ch->last | (ch->idle ? IOAT_CHANSTS_IDLE : IOAT_CHANSTS_ACTIVE);
    write_completion(ch, ch->status);
    if (d.control & IOAT_CONTROL_INTERRUPT)
        raise_interrupt(ch);
    begin(ch);
}

static void begin(struct ioat_fake_channel *ch)
{
    struct ioat_fake *fake = ch->fake;
    if (ch->busy || ch->halted || fake->deaf || !(more(ch) || (ch->append && ch->at_end)))
        return;
    struct later *later = malloc(sizeof *later);
    *later = (struct later){ .ch = ch, .epoch = ch->epoch };
    ch->busy = true;
    fake_at(fake->kernel, fake->kernel->now_ps + 1 + fake_random(fake->kernel, fake->step_ps), step,
            later);
}

/* ---- Registers ------------------------------------------------------------------------------- */

static void reset_over(void *arg)
{
    ((struct ioat_fake_channel *)arg)->resetting = false;
}

static void command(struct ioat_fake_channel *ch, uint32_t value)
{
    struct kernel *kernel = ch->fake->kernel;
    if (value & IOAT_CHANCMD_RESET) {
        ch->epoch++;
        ch->busy = ch->append = false;
        ch->halted = ch->resetting = true;
        fake_at(kernel, kernel->now_ps + 1 + fake_random(kernel, 3000000), reset_over, ch);
    } else if (value == IOAT_CHANCMD_START) {
        ch->next = ch->chain;
        ch->halted = ch->at_end = ch->append = false;
    } else if (value == IOAT_CHANCMD_APPEND) {
        ch->append = true;
    }
    begin(ch);
}

static uint64_t general_read(struct ioat_fake *fake, uint64_t offset)
{
    uint64_t value = 0;
    if (offset == IOAT_GENERAL) {
        const uint8_t status = fake->attention != 0 ? IOAT_INTRCTRL_STATUS : 0;
        value = IOAT_FAKE_CHANNELS | 20u << IOAT_XFERCAP_SHIFT |
                (uint64_t)(fake->interrupts | status) << IOAT_INTRCTRL_SHIFT;
        fake->interrupts &= (uint8_t)~IOAT_INTRCTRL_MASTER_ENABLE;
    } else if (offset == IOAT_ATTNSTATUS) {
        value = fake->attention;
        fake->attention = 0;
    } else if (offset == IOAT_CBVER) {
        value = fake->v1 ? IOAT_VERSION_1_2 : IOAT_VERSION_3_2;
    }
    return value;
}

static uint64_t mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    struct ioat_fake *fake = K_CONTAINER(dev, struct ioat_fake, pci);
    const uint64_t offset = address - dev->bar_base[0];
    (void)bytes;
    fake_charge(fake->kernel, 400000);
    if (fake->gone)
        return UINT64_MAX;
    if (offset < IOAT_CHANNEL(0))
        return general_read(fake, offset);
    const struct ioat_fake_channel *ch = &fake->channel[offset / IOAT_CHANNEL_BYTES - 1];
    switch (offset % IOAT_CHANNEL_BYTES) {
    case IOAT_CHANERR: return ch->error;
    case IOAT_CDAR: return (uint32_t)ch->next;
    case IOAT_CDAR + 4: return ch->next >> 32;
    case IOAT_V1_CHANCMD: return fake->v1 && ch->resetting ? IOAT_CHANCMD_RESET : 0;
    case IOAT_V3_CHANCMD: return !fake->v1 && ch->resetting ? IOAT_CHANCMD_RESET : 0;
    default: return 0;
    }
}

static void set_half(uint64_t *value, bool high, uint64_t half)
{
    *value = high ? (*value & UINT32_MAX) | half << 32 : (*value & ~(uint64_t)UINT32_MAX) | half;
}

static void v3_write(struct ioat_fake_channel *ch, uint64_t offset, uint64_t value)
{
    if (offset == IOAT_V3_CHANCMD && (value & 0xff) != 0) {
        command(ch, (uint32_t)value & 0xff);
    } else if (offset == IOAT_V3_CHANCMD) {
        ch->count = (uint16_t)(value >> IOAT_V3_DMACOUNT_SHIFT);
        ch->fake->n_doorbells++;
        begin(ch);
    } else if (offset == IOAT_V3_CHAINADDR || offset == IOAT_V3_CHAINADDR + 4) {
        set_half(&ch->chain, offset != IOAT_V3_CHAINADDR, value);
        ch->next = ch->chain;
        ch->done = ch->count = 0;
        ch->halted = false;
    }
}

static void v1_write(struct ioat_fake_channel *ch, uint64_t offset, uint64_t value)
{
    if (offset == IOAT_V1_CHANCMD) {
        ch->fake->n_doorbells++;
        command(ch, (uint32_t)value & 0xff);
    } else if (offset == IOAT_V1_CHAINADDR || offset == IOAT_V1_CHAINADDR + 4) {
        set_half(&ch->chain, offset != IOAT_V1_CHAINADDR, value);
    }
}

static void mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value)
{
    struct ioat_fake *fake = K_CONTAINER(dev, struct ioat_fake, pci);
    const uint64_t offset = address - dev->bar_base[0], in = offset % IOAT_CHANNEL_BYTES;
    (void)bytes;
    fake_charge(fake->kernel, 50000);
    if (fake->gone)
        return;
    if (offset < IOAT_CHANNEL(0)) {
        if (offset == IOAT_GENERAL) {
            fake->interrupts = (uint8_t)(value >> IOAT_INTRCTRL_SHIFT &
                                         IOAT_INTRCTRL_MASTER_ENABLE);
            if (fake->interrupts != 0 && fake->attention != 0 && fake->v1)
                fake->n_interrupts += fake_irq_raise(fake->kernel, &fake->pci, 0);
        }
        return;
    }
    struct ioat_fake_channel *ch = &fake->channel[offset / IOAT_CHANNEL_BYTES - 1];
    if (in == IOAT_CHANCTRL)
        ch->control = value & IOAT_CHANCTRL_INT_DISABLE
                          ? (uint32_t)value & IOAT_V3_CHANCTRL_WRITABLE
                          : (uint32_t)value | (ch->control & IOAT_CHANCTRL_INT_DISABLE);
    else if (in == IOAT_CHANCMP || in == IOAT_CHANCMP + 4)
        set_half(&ch->completion, in != IOAT_CHANCMP, value);
    else if (in == IOAT_CHANERR)
        ch->error &= ~(uint32_t)value;
    else if (fake->v1)
        v1_write(ch, in, value);
    else
        v3_write(ch, in, value);
}

static uint32_t config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    (void)dev;
    (void)offset;
    (void)bytes;
    return 0;
}

static void config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes, uint32_t value)
{
    (void)dev;
    (void)offset;
    (void)bytes;
    (void)value;
}

void ioat_fake_init(struct ioat_fake *fake, struct kernel *kernel, bool v1)
{
    static const struct k_pci_ops ops = { .mmio_read = mmio_read,
                                          .mmio_write = mmio_write,
                                          .config_read = config_read,
                                          .config_write = config_write };
    *fake = (struct ioat_fake){ .kernel = kernel, .v1 = v1, .step_ps = FAKE_US(1) };
    fake->pci = (struct k_pci_dev){ .id = 0x40,
                                    .vendor_id = IOAT_VENDOR_ID,
                                    .device_id = v1 ? IOAT_DEVICE_ID_5000 : IOAT_DEVICE_ID_BDX,
                                    .bar_base = { UINT64_C(0xfe000000) },
                                    .bar_bytes = { 16384 },
                                    .ops = &ops };
    fake_device_init(kernel, &fake->pci.device, 0, "engine");
    for (unsigned i = 0; i < IOAT_FAKE_CHANNELS; i++)
        fake->channel[i] =
            (struct ioat_fake_channel){ .fake = fake, .number = i, .halted = true, .at_end = true };
}
