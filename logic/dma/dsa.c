/*
 * Driver of Intel's Data Streaming Accelerator: its functions.
 *
 * What it does: reads the capabilities; makes one group of all engines and of as many work queues
 *   as there are channels, dedicated ones of equal size, or of one shared queue with all entries;
 *   enables them; one interrupt vector per channel.
 * Leaves out: several groups, priorities, limits of read buffers; the error interrupt (errors of
 *   descriptors have records); virtual devices.
 * Follows: Intel Data Streaming Accelerator Architecture Specification; Linux, drivers/dma/idxd
 *   (device.c, init.c).
 * Costs: at set-up some thirty registers; none later but commands.
 */
#include "logic/dma/dsa.h"

#include <errno.h>
#include <stdio.h>

#include "logic/dma/dsa_internal.h"
#include "logic/kcosts.h"

#define COMMAND_LOOKS 100000u /* a microsecond apart */
#define PRIORITY      10u     /* of queues: all alike */

const struct dsa_drv_options dsa_drv_options_default = { .channels = 4,
                                                         .batch_max = 32,
                                                         .ring = 1024,
                                                         .copy_log2 = 21,
                                                         .poll_ps = 50 * K_NS,
                                                         .timeout_ps = 200 * K_MS };

/* ---- Commands -------------------------------------------------------------------------------- */

static int command(struct dsa_function *f, enum dsa_command code, uint32_t operand)
{
    k_writel(f->pci, DSA_BAR_REGISTERS, DSA_CMD, operand | (uint32_t)code << DSA_CMD_SHIFT);
    for (unsigned i = 0; i < COMMAND_LOOKS; i++) {
        const uint32_t status = k_readl(f->pci, DSA_BAR_REGISTERS, DSA_CMDSTS);
        if (status == UINT32_MAX)
            return -ENODEV;
        if (!(status & DSA_CMDSTS_ACTIVE))
            return (status & DSA_CMDSTS_ERROR_MASK) == DSA_CMDSTS_OK ? 0 : -EIO;
        k_sleep(f->drv->kernel, 1 * K_US);
    }
    return -ETIMEDOUT;
}

int dsa_command(struct dsa_function *f, enum dsa_command code, uint32_t operand)
{
    while (f->commanding) /* the device takes one at a time */
        k_sleep(f->drv->kernel, 1 * K_US);
    f->commanding = true;
    const int status = command(f, code, operand);
    f->commanding = false;
    return status;
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void channel_interrupt(void *arg)
{
    const struct dsa_channel *ch = arg;
    struct kernel *kernel = ch->function->drv->kernel;
    k_compute(kernel, k_costs(kernel)->dma_irq_cycles);
    dma_channel_interrupt(ch->dma);
}

static void irqs_free(struct dsa_function *f)
{
    for (unsigned i = 0; i < f->dma.n_channels; i++) {
        if (f->channel[i].irq != NULL)
            k_irq_free(f->channel[i].irq);
        f->channel[i].irq = NULL;
    }
}

/* Vector 0 is for errors and commands. */
static int irqs_request(struct dsa_function *f)
{
    int status = 0;
    for (unsigned i = 0; i < f->dma.n_channels && status == 0; i++)
        status = k_irq_request(f->pci, i + 1, f->drv->options.cpu, channel_interrupt,
                               &f->channel[i], &f->channel[i].irq);
    return status;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static unsigned log2_of(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

/* What the device has, against the options; -ENODEV: too little, or it is none. */
static int identify(struct dsa_function *f)
{
    const struct dsa_drv_options *options = &f->drv->options;
    const uint64_t gencap = k_readq(f->pci, DSA_BAR_REGISTERS, DSA_GENCAP);
    const uint64_t wqcap = k_readq(f->pci, DSA_BAR_REGISTERS, DSA_WQCAP);
    const uint64_t operations = k_readq(f->pci, DSA_BAR_REGISTERS, DSA_OPCAP);
    const unsigned transfer_log2 = (unsigned)((gencap & DSA_GENCAP_TRANSFER_LOG2_MASK) >>
                                              DSA_GENCAP_TRANSFER_LOG2_SHIFT);
    const unsigned batch_log2 = (unsigned)((gencap & DSA_GENCAP_BATCH_LOG2_MASK) >>
                                           DSA_GENCAP_BATCH_LOG2_SHIFT);
    const unsigned queues = (unsigned)((wqcap & DSA_WQCAP_QUEUES_MASK) >> DSA_WQCAP_QUEUES_SHIFT);
    const unsigned entries = (unsigned)(wqcap & DSA_WQCAP_ENTRIES_MASK);
    const uint64_t copy_log2 = options->copy_log2 < transfer_log2 ? options->copy_log2
                                                                  : transfer_log2;
    if (gencap == UINT64_MAX || !(gencap & DSA_GENCAP_CONFIGURABLE) ||
        !(operations >> DSA_OP_MOVE & 1) || (options->shared && !k_can_enqueue(f->pci)))
        return -ENODEV;
    f->n_wqs = options->shared ? 1 : options->channels;
    f->wq_entries = entries / f->n_wqs;
    if (f->n_wqs > queues || f->wq_entries == 0)
        return -ENODEV;
    f->batch_max = operations >> DSA_OP_BATCH & 1 ? options->batch_max : 1;
    if (f->batch_max > 1u << batch_log2)
        f->batch_max = 1u << batch_log2;
    f->dma.limits.copy_bytes_max = UINT64_C(1) << copy_log2;
    return 0;
}

static uint32_t table(const struct dsa_function *f, unsigned shift)
{
    const uint64_t offsets = k_readq(f->pci, DSA_BAR_REGISTERS, DSA_OFFSETS);
    return (uint32_t)(offsets >> shift & 0xffff) * DSA_OFFSETS_UNIT;
}

static void write_queue(const struct dsa_function *f, uint32_t at)
{
    const bool shared = f->drv->options.shared;
    /* A batch of 2^n: rounded up. */
    const unsigned batch_log2 = f->batch_max > 1 ? log2_of(f->batch_max - 1) + 1 : 0;
    k_writel(f->pci, DSA_BAR_REGISTERS, at + DSA_WQCFG_SIZE, f->wq_entries);
    k_writel(f->pci, DSA_BAR_REGISTERS, at + DSA_WQCFG_THRESHOLD, shared ? f->wq_entries : 0);
    k_writel(f->pci, DSA_BAR_REGISTERS, at + DSA_WQCFG_MODE,
             PRIORITY << DSA_WQCFG_PRIORITY_SHIFT | (shared ? 0 : DSA_WQCFG_DEDICATED));
    k_writel(f->pci, DSA_BAR_REGISTERS, at + DSA_WQCFG_LIMITS,
             log2_of(f->dma.limits.copy_bytes_max) | batch_log2 << DSA_WQCFG_BATCH_SHIFT);
}

static int configure(struct dsa_function *f)
{
    const uint32_t groups = table(f, DSA_OFFSETS_GROUPS_SHIFT);
    const uint32_t queues = table(f, DSA_OFFSETS_QUEUES_SHIFT);
    const uint64_t engines = k_readq(f->pci, DSA_BAR_REGISTERS, DSA_ENGCAP) &
                             DSA_ENGCAP_ENGINES_MASK;
    int status = dsa_command(f, DSA_CMD_RESET_DEVICE, 0);
    if (status != 0)
        return status;
    for (unsigned i = 0; i < f->n_wqs; i++)
        write_queue(f, queues + i * DSA_WQCFG_BYTES);
    k_writeq(f->pci, DSA_BAR_REGISTERS, groups + DSA_GRPCFG_QUEUES, (UINT64_C(1) << f->n_wqs) - 1);
    k_writeq(f->pci, DSA_BAR_REGISTERS, groups + DSA_GRPCFG_ENGINES, (UINT64_C(1) << engines) - 1);
    status = dsa_command(f, DSA_CMD_ENABLE_DEVICE, 0);
    for (unsigned i = 0; i < f->n_wqs && status == 0; i++)
        status = dsa_command(f, DSA_CMD_ENABLE_WQ, i);
    return status;
}

/* A function-level reset clears base addresses, command register, vectors and queues. */
static int recover(struct dsa_function *f)
{
    int status = k_pci_restore(f->pci);
    if (status != 0)
        return status;
    irqs_free(f);
    status = irqs_request(f);
    return status == 0 ? configure(f) : status;
}

int dsa_recover(struct dsa_function *f)
{
    if (f->recovering) { /* for all channels, whose work ends with it */
        while (f->recovering)
            k_sleep(f->drv->kernel, 1 * K_US);
        return 0;
    }
    if (f->removing)
        return -ENODEV;
    f->recovering = true;
    const int status = recover(f);
    f->recovering = false;
    return status;
}

static void set_up(struct dsa_function *f)
{
    const struct dsa_drv_options *options = &f->drv->options;
    (void)snprintf(f->name, sizeof f->name, "dsa%u", f->drv->n_found);
    f->dma.kind = "dsa";
    f->dma.name = f->name;
    f->dma.device = &f->pci->device;
    f->dma.translated = k_iommu_on(f->drv->kernel, f->pci->id);
    f->dma.ops = &dsa_channel_ops;
    f->dma.limits.ring = options->ring;
    f->dma.limits.in_order = true;
    f->dma.timeout_ps = options->timeout_ps;
    f->dma.channel = f->dma_channel;
    f->dma.n_channels = options->channels;
    f->dma.driver = f;
    for (unsigned i = 0; i < f->dma.n_channels; i++) {
        f->channel[i].function = f;
        f->channel[i].dma = &f->dma_channel[i];
        f->channel[i].wq = options->shared ? 0 : i;
        f->dma_channel[i].driver = &f->channel[i];
    }
}

/* ---- Life of a function ---------------------------------------------------------------------- */

static int probe(struct k_pci_dev *pci, void *context)
{
    struct dsa_drv *drv = context;
    struct dsa_function *f = k_zalloc(sizeof *f);
    f->drv = drv;
    f->pci = pci;
    k_dma_set_mask(&pci->device, 64);
    k_pci_enable(pci);
    int status = identify(f);
    if (status == 0) {
        set_up(f);
        status = configure(f);
    }
    if (status == 0)
        status = irqs_request(f);
    if (status == 0)
        status = dma_device_register(drv->core, &f->dma);
    if (status != 0) {
        irqs_free(f);
        k_free(f);
        return status;
    }
    pci->device.driver_data = f;
    f->next = drv->functions;
    drv->functions = f;
    drv->n_found++;
    return 0;
}

static void function_freed(struct dma_device *dma)
{
    k_free(K_CONTAINER(dma, struct dsa_function, dma));
}

static void remove_function(struct k_pci_dev *pci, bool gone)
{
    struct dsa_function *f = pci->device.driver_data;
    struct dsa_drv *drv = f->drv;
    f->removing = true;
    while (f->recovering)
        k_sleep(drv->kernel, 1 * K_US);
    irqs_free(f);
    K_LIST_REMOVE(drv->functions, f);
    pci->device.driver_data = NULL;
    dma_device_unregister(&f->dma, gone, function_freed); /* f may be gone */
    if (!gone)
        k_writel(pci, DSA_BAR_REGISTERS, DSA_CMD, (uint32_t)DSA_CMD_RESET_DEVICE << DSA_CMD_SHIFT);
}

struct dsa_drv *dsa_drv_new(struct dma_core *core, const struct dsa_drv_options *options)
{
    static const struct k_pci_id ids[] = { { DSA_VENDOR_ID, DSA_DEVICE_ID }, { 0, 0 } };
    if (options->ring < 4 || options->ring > 32768 || (options->ring & (options->ring - 1)) != 0 ||
        options->channels == 0 || options->channels > DSA_CHANNELS_MAX || options->batch_max == 0 ||
        options->batch_max > 1024 || options->copy_log2 < 12 || options->copy_log2 > 31 ||
        options->poll_ps == 0)
        return NULL;
    struct dsa_drv *drv = k_zalloc(sizeof *drv);
    drv->kernel = dma_core_kernel(core);
    drv->core = core;
    drv->options = *options;
    drv->driver = (struct k_pci_driver){
        .name = "dsa", .ids = ids, .probe = probe, .remove = remove_function, .context = drv
    };
    return drv;
}

const struct k_pci_driver *dsa_drv_driver(const struct dsa_drv *drv)
{
    return &drv->driver;
}

const struct dsa_drv_stats *dsa_drv_stats(const struct dsa_drv *drv)
{
    return &drv->stats;
}

void dsa_drv_free(struct dsa_drv *drv)
{
    k_free(drv);
}
