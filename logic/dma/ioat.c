/*
 * Driver of Intel's DMA engine.
 *
 * What it does: a ring of descriptors per channel in memory, chained; one doorbell for all that was
 *   issued (1.2: APPEND, 3.2: DMACOUNT); every copy asks for a write of its completion, and ends
 *   are found by that value; interrupts only of copies that want one, not again before a look;
 *   after an error, the failed descriptor is reported, the channel reset and started behind it.
 * Leaves out: operations other than copies; idle channels that are put to sleep; moderation of
 *   interrupts by load (the delay is an option).
 * Follows: Intel 5000X MCH data sheet, DMA engine; Xeon E7 v2 data sheet, volume two, 14.5; Linux,
 *   drivers/dma/ioat (dma.c, init.c), and its first form for version 1 (ring of 2.6.18: APPEND).
 * Costs: those of dma.c; 24 bytes of a descriptor (1.2: 32, and 8 of the one before); one register
 *   per doorbell (1.2: and 8 bytes more); the completion line at each look, which misses after the
 *   engine has written it; per interrupt dma_irq_cycles and one register read (1.2: three).
 */
#include "logic/dma/ioat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hw/ioat_regs.h"
#include "logic/dma/dma_driver.h"
#include "logic/kcosts.h"

#define RESET_LOOKS 1000u                                  /* a microsecond apart */
#define FILL_BYTES  offsetof(struct ioat_descriptor, next) /* of a descriptor that is chained */

struct ioat_function;

struct ioat_channel {
    struct ioat_function *function;
    struct dma_channel *dma;
    struct k_irq *irq; /* 3.2 */
    uint32_t at;       /* its registers */
    struct kaddr ring, completion;
    uint64_t ring_dma, completion_dma;
    uint64_t seen;   /* the completion that was looked at last */
    uint64_t first;  /* sequence where the engine was started */
    uint64_t failed; /* that it has stopped at */
    bool started;    /* it has memory, registers have its address */
    bool running;
    bool lost; /* somebody has reset the function: what it had under way does not come back */
};

struct ioat_function {
    struct ioat_drv *ioat;
    struct ioat_function *next;
    struct k_pci_dev *pci;
    struct k_irq *irq; /* 1.2 */
    uint8_t version;
    bool recovering; /* somebody sets it up again */
    bool removing;   /* nobody shall */
    char name[16];
    struct dma_device dma;
    struct dma_channel dma_channel[IOAT_CHANNELS_MAX];
    struct ioat_channel channel[IOAT_CHANNELS_MAX];
};

struct ioat_drv {
    struct kernel *kernel;
    struct dma_core *core;
    struct ioat_drv_options options;
    struct k_pci_driver driver;
    struct ioat_function *functions;
    unsigned n_found;
};

const struct ioat_drv_options ioat_drv_options_default = {
    .ring = 1024, .dca_cpu = -1, .poll_ps = 50 * K_NS, .timeout_ps = 200 * K_MS
};

static bool is_v1(const struct ioat_channel *ch)
{
    return ch->function->version < 0x20;
}

/* ---- Registers ------------------------------------------------------------------------------- */

static uint32_t read_reg(const struct ioat_channel *ch, uint32_t reg)
{
    return k_readl(ch->function->pci, 0, ch->at + reg);
}

static void write_reg(const struct ioat_channel *ch, uint32_t reg, uint32_t value)
{
    k_writel(ch->function->pci, 0, ch->at + reg, value);
}

static void write_address(const struct ioat_channel *ch, uint32_t reg, uint64_t address)
{
    write_reg(ch, reg, (uint32_t)address);
    write_reg(ch, reg + 4, (uint32_t)(address >> 32));
}

static bool has_dca(const struct ioat_channel *ch)
{
    return !is_v1(ch) && ch->function->ioat->options.dca_cpu >= 0;
}

/* Also lets the channel raise its next interrupt. */
static void write_control(const struct ioat_channel *ch)
{
    write_reg(ch, IOAT_CHANCTRL,
              IOAT_CHANCTRL_INT_DISABLE | IOAT_CHANCTRL_ERR_COMPLETION |
                  IOAT_CHANCTRL_ANY_ERR_ABORT | IOAT_CHANCTRL_ERR_INT |
                  (has_dca(ch) ? IOAT_CHANCTRL_COMPLETION_DCA : 0));
}

static uint32_t command_reg(const struct ioat_channel *ch)
{
    return is_v1(ch) ? IOAT_V1_CHANCMD : IOAT_V3_CHANCMD;
}

/* The channel halts; what it had under way is over. 0, -ENODEV, -ETIMEDOUT. */
static int reset(struct ioat_channel *ch)
{
    write_reg(ch, command_reg(ch), IOAT_CHANCMD_RESET);
    for (unsigned i = 0; i < RESET_LOOKS; i++) {
        const uint32_t command = read_reg(ch, command_reg(ch));
        if (command == UINT32_MAX)
            return -ENODEV;
        if (!(command & IOAT_CHANCMD_RESET))
            return 0;
        k_sleep(ch->function->ioat->kernel, 1 * K_US);
    }
    return -ETIMEDOUT;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static uint64_t slot_offset(const struct ioat_channel *ch, uint64_t sequence)
{
    return (sequence & (ch->function->dma.limits.ring - 1)) * IOAT_DESC_BYTES;
}

static uint64_t slot_dma(const struct ioat_channel *ch, uint64_t sequence)
{
    return ch->ring_dma + slot_offset(ch, sequence);
}

static struct kaddr next_of(const struct ioat_channel *ch, uint64_t sequence)
{
    return kaddr_add(ch->ring, slot_offset(ch, sequence) + offsetof(struct ioat_descriptor, next));
}

static void fill(struct dma_channel *c, const struct dma_descriptor *d)
{
    const struct ioat_channel *ch = c->driver;
    const struct ioat_descriptor descriptor = {
        .bytes = (uint32_t)d->bytes,
        .control =
            IOAT_CONTROL_COMPLETION | (d->flags & DMA_INTERRUPT ? IOAT_CONTROL_INTERRUPT : 0) |
            (d->flags & DMA_FENCE ? IOAT_CONTROL_FENCE : 0) | (has_dca(ch) ? IOAT_CONTROL_DCA : 0),
        .source = d->source,
        .destination = d->destination,
    };
    k_store(ch->function->ioat->kernel, kaddr_add(ch->ring, slot_offset(ch, d->sequence)),
            &descriptor, is_v1(ch) ? FILL_BYTES + sizeof descriptor.next : FILL_BYTES);
}

/* 1.2: makes `sequence` follow the one before it. */
static void chain(const struct ioat_channel *ch, uint64_t sequence)
{
    const uint64_t next = slot_dma(ch, sequence);
    k_store(ch->function->ioat->kernel, next_of(ch, sequence - 1), &next, sizeof next);
}

/* Starts a channel that is idle or halted with what is issued from `first` on. */
static void start_at(struct ioat_channel *ch, uint64_t first, uint64_t end)
{
    const uint64_t none = 0;
    k_store(ch->function->ioat->kernel, ch->completion, &none, sizeof none);
    ch->seen = 0;
    ch->first = first;
    ch->running = true;
    write_address(ch, is_v1(ch) ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR, slot_dma(ch, first));
    if (is_v1(ch))
        write_reg(ch, IOAT_V1_CHANCMD, IOAT_CHANCMD_START);
    else
        write_reg(ch, IOAT_V3_CHANCMD, (uint32_t)(end - first) << IOAT_V3_DMACOUNT_SHIFT);
}

static void issue(struct dma_channel *c, uint64_t first, uint64_t end)
{
    struct ioat_channel *ch = c->driver;
    if (ch->lost) /* an abort or a resume follows */
        return;
    for (uint64_t s = first + 1; is_v1(ch) && s < end; s++)
        chain(ch, s);
    if (!ch->running) {
        start_at(ch, first, end);
    } else if (is_v1(ch)) {
        chain(ch, first);
        write_reg(ch, IOAT_V1_CHANCMD, IOAT_CHANCMD_APPEND);
    } else {
        write_reg(ch, IOAT_V3_CHANCMD, (uint32_t)(end - ch->first) << IOAT_V3_DMACOUNT_SHIFT);
    }
}

/* ---- Completions ----------------------------------------------------------------------------- */

static const char *error_text(uint32_t error)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } texts[] = {
        { IOAT_CHANERR_SOURCE, "source address" },
        { IOAT_CHANERR_DESTINATION, "destination address" },
        { IOAT_CHANERR_NEXT, "next descriptor's address" },
        { IOAT_CHANERR_NEXT_ALIGN, "next descriptor's alignment" },
        { IOAT_CHANERR_CHAIN, "chain address" },
        { IOAT_CHANERR_COMMAND, "command" },
        { IOAT_CHANERR_READ_DATA, "read data" },
        { IOAT_CHANERR_WRITE_DATA, "write data" },
        { IOAT_CHANERR_CONTROL, "descriptor's control" },
        { IOAT_CHANERR_LENGTH, "descriptor's length" },
        { IOAT_CHANERR_COMPLETION, "completion address" },
        { IOAT_CHANERR_COUNT, "descriptor count" },
    };
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (error & texts[i].bit)
            return texts[i].text;
    return "unknown error";
}

/* The sequence of the copy under way that has this descriptor; c->issued: there is none. Of those
 * that are under way, at most ring - 1, no two are in the same slot. */
static uint64_t sequence_of(const struct dma_channel *c, uint64_t address)
{
    const struct ioat_channel *ch = c->driver;
    const uint32_t ring = ch->function->dma.limits.ring;
    const uint64_t slot = (address - ch->ring_dma) / IOAT_DESC_BYTES;
    const uint64_t sequence = c->ended + ((slot - c->ended) & (ring - 1));
    return slot < ring && sequence < c->issued ? sequence : c->issued;
}

/* The address that a halted channel has written need not be that of a copy since its last start:
 * the register of the current descriptor tells which one has failed. */
static void clean_halted(struct dma_channel *c)
{
    struct ioat_channel *ch = c->driver;
    const uint32_t error = read_reg(ch, IOAT_CHANERR);
    const uint64_t low = read_reg(ch, IOAT_CDAR);
    const uint64_t current = low | (uint64_t)read_reg(ch, IOAT_CDAR + 4) << 32;
    if (error == UINT32_MAX) /* it is gone: remove() follows */
        return;
    const uint64_t failed = sequence_of(c, current);
    if (failed == c->issued)
        return;
    ch->failed = failed;
    dma_copies_complete(c, failed);
    dma_channel_stopped(c);
    dma_copy_ended(c, failed, DMA_ERROR, error, error_text(error));
}

static void clean(struct dma_channel *c)
{
    struct ioat_channel *ch = c->driver;
    uint64_t status;
    k_load(ch->function->ioat->kernel, ch->completion, &status, sizeof status);
    if (status == ch->seen)
        return;
    ch->seen = status;
    if ((status & IOAT_CHANSTS_STATUS_MASK) == IOAT_CHANSTS_HALTED) {
        clean_halted(c);
        return;
    }
    const uint64_t last = sequence_of(c, status & IOAT_CHANSTS_ADDRESS_MASK);
    if (last < c->issued) /* the engine keeps the order */
        dma_copies_complete(c, last + 1);
}

static void spin(struct dma_channel *c, uint64_t until_ps)
{
    const struct ioat_channel *ch = c->driver;
    const struct ioat_drv *ioat = ch->function->ioat;
    const uint64_t seen = ch->seen;
    k_spin(ioat->kernel, ch->completion, &seen, sizeof seen, ioat->options.poll_ps, until_ps);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

/* 3.2: of one channel. */
static void channel_interrupt(void *arg)
{
    const struct ioat_channel *ch = arg;
    struct kernel *kernel = ch->function->ioat->kernel;
    k_compute(kernel, k_costs(kernel)->dma_irq_cycles);
    dma_channel_interrupt(ch->dma);
}

static void enable_interrupts(const struct ioat_function *f)
{
    const uint32_t control = IOAT_INTRCTRL_MASTER_ENABLE |
                             (f->version < 0x30 ? 0 : IOAT_INTRCTRL_MSIX_VECTORS);
    k_writel(f->pci, 0, IOAT_GENERAL, control << IOAT_INTRCTRL_SHIFT);
}

static void enable_function(const struct ioat_function *f)
{
    if (f->version >= 0x30)
        k_writel(f->pci, 0, IOAT_INTRDELAY_WORD, f->ioat->options.interrupt_delay_us);
    enable_interrupts(f);
}

/* 1.2: of all channels. Reading INTRCTRL masks, reading ATTNSTATUS acknowledges. */
static void function_interrupt(void *arg)
{
    struct ioat_function *f = arg;
    struct kernel *kernel = f->ioat->kernel;
    k_compute(kernel, k_costs(kernel)->dma_irq_cycles);
    const uint32_t general = k_readl(f->pci, 0, IOAT_GENERAL);
    if (general == UINT32_MAX)
        return;
    if (general >> IOAT_INTRCTRL_SHIFT & IOAT_INTRCTRL_STATUS) {
        const uint32_t channels = k_readl(f->pci, 0, IOAT_ATTNSTATUS);
        for (unsigned i = 0; i < f->dma.n_channels; i++)
            if (channels >> i & 1)
                dma_channel_interrupt(&f->dma_channel[i]);
    }
    enable_interrupts(f);
}

static void irqs_free(struct ioat_function *f)
{
    for (unsigned i = 0; i < f->dma.n_channels; i++) {
        if (f->channel[i].irq != NULL)
            k_irq_free(f->channel[i].irq);
        f->channel[i].irq = NULL;
    }
    if (f->irq != NULL)
        k_irq_free(f->irq);
    f->irq = NULL;
}

static int irqs_request(struct ioat_function *f)
{
    const unsigned cpu = f->ioat->options.cpu;
    int status = 0;
    if (f->version < 0x30)
        return k_irq_request(f->pci, 0, cpu, function_interrupt, f, &f->irq);
    for (unsigned i = 0; i < f->dma.n_channels && status == 0; i++)
        status = k_irq_request(f->pci, i, cpu, channel_interrupt, &f->channel[i],
                               &f->channel[i].irq);
    return status;
}

/* The read comes back after the write has arrived. */
static void rearm(struct dma_channel *c)
{
    const struct ioat_channel *ch = c->driver;
    write_control(ch);
    (void)read_reg(ch, IOAT_CHANERR);
}

/* ---- Life of a channel ----------------------------------------------------------------------- */

static void set_up_registers(const struct ioat_channel *ch)
{
    write_address(ch, IOAT_CHANCMP, ch->completion_dma);
    if (has_dca(ch))
        write_reg(ch, IOAT_DCACTRL, (uint32_t)ch->function->ioat->options.dca_cpu);
    write_control(ch);
}

static int start(struct dma_channel *c)
{
    struct ioat_channel *ch = c->driver;
    struct k_device *device = &ch->function->pci->device;
    const uint32_t ring = ch->function->dma.limits.ring;
    int status = k_dma_alloc(device, device->node, (size_t)ring * IOAT_DESC_BYTES, &ch->ring,
                             &ch->ring_dma);
    if (status != 0)
        return status;
    status = k_dma_alloc(device, device->node, K_LINE_BYTES, &ch->completion, &ch->completion_dma);
    if (status != 0) {
        k_dma_free(device, (size_t)ring * IOAT_DESC_BYTES, ch->ring, ch->ring_dma);
        return status;
    }
    for (uint32_t i = 0; !is_v1(ch) && i < ring; i++) { /* chained once and for all */
        const uint64_t next = slot_dma(ch, i + 1);
        k_poke(ch->function->ioat->kernel, next_of(ch, i), &next, sizeof next);
    }
    ch->seen = 0;
    ch->running = ch->lost = false;
    ch->started = true;
    set_up_registers(ch);
    return 0;
}

static void stop(struct dma_channel *c)
{
    struct ioat_channel *ch = c->driver;
    struct k_device *device = &ch->function->pci->device;
    ch->started = false;
    k_dma_free(device, (size_t)ch->function->dma.limits.ring * IOAT_DESC_BYTES, ch->ring,
               ch->ring_dma);
    k_dma_free(device, K_LINE_BYTES, ch->completion, ch->completion_dma);
}

static int resume(struct dma_channel *c)
{
    struct ioat_channel *ch = c->driver;
    write_reg(ch, IOAT_CHANERR, read_reg(ch, IOAT_CHANERR));
    const int status = reset(ch);
    if (status != 0)
        return status;
    ch->running = ch->lost = false;
    if (ch->failed + 1 != c->issued)
        start_at(ch, ch->failed + 1, c->issued);
    return 0;
}

/* A function-level reset clears base addresses, command register, vectors and registers. Other
 * channels that have copies under way get no doorbell until they abort them in their turn. */
static int recover(struct ioat_function *f)
{
    int status = k_pci_restore(f->pci);
    if (status != 0)
        return status;
    irqs_free(f);
    status = irqs_request(f);
    if (status != 0)
        return status;
    for (unsigned i = 0; i < f->dma.n_channels; i++) {
        f->channel[i].lost = f->channel[i].running;
        if (f->channel[i].started)
            set_up_registers(&f->channel[i]);
    }
    enable_function(f);
    return 0;
}

/* The channel did not answer. */
static int reset_again(struct ioat_channel *ch)
{
    struct ioat_function *f = ch->function;
    if (f->recovering) { /* for all channels */
        while (f->recovering)
            k_sleep(f->ioat->kernel, 1 * K_US);
        return reset(ch);
    }
    if (f->removing)
        return -ENODEV;
    f->recovering = true;
    const int status = recover(f);
    f->recovering = false;
    return status == 0 ? reset(ch) : status;
}

/* Registers may have been reset by others. */
static void abort_all(struct dma_channel *c)
{
    struct ioat_channel *ch = c->driver;
    int status = reset(ch);
    if (status == -ENODEV)
        status = reset_again(ch);
    if (status == 0) {
        write_reg(ch, IOAT_CHANERR, read_reg(ch, IOAT_CHANERR));
        set_up_registers(ch);
    }
    ch->running = ch->lost = false;
}

static const struct dma_channel_ops channel_ops = {
    .start = start,
    .stop = stop,
    .fill = fill,
    .issue = issue,
    .rearm = rearm,
    .clean = clean,
    .spin = spin,
    .resume = resume,
    .abort = abort_all,
};

/* ---- Life of a function ---------------------------------------------------------------------- */

/* What the registers say; -ENODEV: nothing that we know. */
static int identify(struct ioat_function *f)
{
    const uint32_t general = k_readl(f->pci, 0, IOAT_GENERAL);
    const uint32_t version = k_readl(f->pci, 0, IOAT_CBVER) & 0xff;
    const unsigned transfer_log2 = general >> IOAT_XFERCAP_SHIFT & 0x1f;
    f->version = (uint8_t)version;
    f->dma.n_channels = general & 0xff;
    f->dma.limits.copy_bytes_max = transfer_log2 != 0 ? UINT64_C(1) << transfer_log2 : UINT32_MAX;
    if (general == UINT32_MAX || f->dma.n_channels == 0 || f->dma.n_channels > IOAT_CHANNELS_MAX ||
        (version != IOAT_VERSION_1_2 && version != IOAT_VERSION_3_2))
        return -ENODEV;
    return 0;
}

static void set_up(struct ioat_function *f)
{
    const struct ioat_drv_options *options = &f->ioat->options;
    (void)snprintf(f->name, sizeof f->name, "ioat%u", f->ioat->n_found);
    f->dma.kind = "ioat";
    f->dma.name = f->name;
    f->dma.device = &f->pci->device;
    f->dma.translated = k_iommu_on(f->ioat->kernel, f->pci->id);
    f->dma.ops = &channel_ops;
    f->dma.limits.ring = options->ring;
    f->dma.limits.in_order = true;
    f->dma.timeout_ps = options->timeout_ps;
    f->dma.channel = f->dma_channel;
    f->dma.driver = f;
    for (unsigned i = 0; i < f->dma.n_channels; i++) {
        f->channel[i].function = f;
        f->channel[i].dma = &f->dma_channel[i];
        f->channel[i].at = IOAT_CHANNEL(i);
        f->dma_channel[i].driver = &f->channel[i];
    }
}

static int probe(struct k_pci_dev *pci, void *context)
{
    struct ioat_drv *ioat = context;
    struct ioat_function *f = k_zalloc(sizeof *f);
    f->ioat = ioat;
    f->pci = pci;
    k_dma_set_mask(&pci->device, pci->device_id == IOAT_DEVICE_ID_5000 ? 40 : 46);
    k_pci_enable(pci);
    int status = identify(f);
    if (status == 0) {
        set_up(f);
        status = irqs_request(f);
    }
    if (status == 0)
        status = dma_device_register(ioat->core, &f->dma);
    if (status != 0) {
        irqs_free(f);
        k_free(f);
        return status;
    }
    enable_function(f);
    pci->device.driver_data = f;
    f->next = ioat->functions;
    ioat->functions = f;
    ioat->n_found++;
    return 0;
}

static void function_freed(struct dma_device *dma)
{
    k_free(K_CONTAINER(dma, struct ioat_function, dma));
}

static void remove_function(struct k_pci_dev *pci, bool gone)
{
    struct ioat_function *f = pci->device.driver_data;
    struct ioat_drv *ioat = f->ioat;
    f->removing = true;
    while (f->recovering)
        k_sleep(ioat->kernel, 1 * K_US);
    if (!gone)
        k_writel(pci, 0, IOAT_GENERAL, 0);
    irqs_free(f);
    K_LIST_REMOVE(ioat->functions, f);
    pci->device.driver_data = NULL;
    dma_device_unregister(&f->dma, gone, function_freed);
}

const struct k_pci_id ioat_drv_ids[] = {
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_5000 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_SKX },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 1 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 2 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 3 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 4 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 5 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 6 },
    { IOAT_VENDOR_ID, IOAT_DEVICE_ID_BDX + 7 },
    { 0, 0 },
};

bool ioat_drv_knows(uint16_t device_id)
{
    for (const struct k_pci_id *id = ioat_drv_ids; id->vendor_id != 0; id++)
        if (id->device_id == device_id)
            return true;
    return false;
}

struct ioat_drv *ioat_drv_new(struct dma_core *core, const struct ioat_drv_options *options)
{
    if (options->ring < 4 || options->ring > 32768 || (options->ring & (options->ring - 1)) != 0 ||
        options->interrupt_delay_us > IOAT_INTRDELAY_US_MASK || options->poll_ps == 0)
        return NULL;
    struct ioat_drv *ioat = k_zalloc(sizeof *ioat);
    ioat->kernel = dma_core_kernel(core);
    ioat->core = core;
    ioat->options = *options;
    ioat->driver = (struct k_pci_driver){ .name = "ioat",
                                          .ids = ioat_drv_ids,
                                          .probe = probe,
                                          .remove = remove_function,
                                          .context = ioat };
    return ioat;
}

const struct k_pci_driver *ioat_drv_driver(const struct ioat_drv *ioat)
{
    return &ioat->driver;
}

void ioat_drv_free(struct ioat_drv *ioat)
{
    k_free(ioat);
}
