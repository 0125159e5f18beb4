/*
 * device_dma: the driver of an adapter that reads or writes memory (pcie.requester) keeps it busy
 * with transfers through a buffer, in address order, over and over. The driver asks the kernel for
 * the addresses (k_dma_alloc()) and knows nothing of where the adapter is. Every line is checked:
 * of a read when it has arrived, of writes when the program ends, at their destination.
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "models/base/payload.h"
#include "models/nfp/requester.h"
#include "workloads/programs/program.h"

#define LOOK_PS (5 * SIM_PS_PER_US)

enum dma_direction { DMA_WRITE, DMA_READ };
static const char *const direction_names[] = { "write", "read", NULL };

struct device_dma;

struct slot { /* a transfer under way */
    struct pcie_requester_op op;
    struct device_dma *dma;
    uint64_t position; /* in the stream */
    sim_time start_ps;
    uint8_t *buffer;
};

struct device_dma {
    /* parameters */
    const char *host_name, *device_name;
    int direction;
    uint64_t transfer_bytes, buffer_bytes;
    uint32_t queue_depth;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct model *device;
    struct kaddr at;
    uint64_t address; /* the buffer's, for the device */
    uint16_t stream;
    uint64_t submitted; /* bytes */
    unsigned in_flight;
    struct slot *slot;
    uint8_t *buffers;
    bool failed;
    /* measured */
    uint64_t bytes;
    uint64_t transfers;
    double latency_ns; /* sum */
};

static const struct param_desc device_dma_params[] = {
    PARAM_TEXT("on", struct device_dma, host_name, "borrower", "the host"),
    PARAM_TEXT("device", struct device_dma, device_name, "",
               "a pcie.requester that it borrows, or has and does not lend"),
    PARAM_ONE_OF("direction", struct device_dma, direction, DMA_WRITE, direction_names, PROV_NONE,
                 "", "what the device does to the host's memory"),
    PARAM("transfer_bytes", PARAM_BYTES, struct device_dma, transfer_bytes, 4096, 64, 16777216,
          PROV_NONE, "", "of a transfer; whole cache lines"),
    PARAM("buffer_bytes", PARAM_BYTES, struct device_dma, buffer_bytes, 262144, 64, 1073741824,
          PROV_NONE, "",
          "of the buffer; a multiple of transfer_bytes, at least queue_depth of them"),
    PARAM("queue_depth", PARAM_U32, struct device_dma, queue_depth, 16, 1, 1024, PROV_NONE, "",
          "transfers that the driver keeps queued; 1: one after the other"),
    { .type = PARAM_END },
};

static const struct record_desc device_dma_records[] = {
    { "+throughput_gbyte_s", RECORD_METRIC, "GB/s", "payload, all programs of the kind" },
    { ".latency_mean_ns", RECORD_METRIC, "ns", "of a transfer, from its descriptor to its end" },
    { "+throughput_gbyte_s", RECORD_SERIES, "GB/s", "payload per interval" },
    { ".latency_mean_ns", RECORD_SERIES, "ns", "of transfers that ended in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void device_dma_check(struct program *program, struct sim_error_list *errors)
{
    struct device_dma *dma = program->state;
    dma->program = program;
    dma->host = program_lending_host(program, "on", dma->host_name, errors);
    if (dma->host == NULL)
        return;
    dma->device = program_device(program, "device", dma->host, dma->device_name,
                                 &pcie_requester_ops, errors);
    if (dma->transfer_bytes % LINE_BYTES != 0)
        program_mistake(program, "transfer_bytes", errors, "a multiple of 64", NULL);
    if (dma->buffer_bytes % dma->transfer_bytes != 0 ||
        dma->buffer_bytes / dma->transfer_bytes < dma->queue_depth)
        program_mistake(program, "buffer_bytes", errors,
                        "a multiple of transfer_bytes, queue_depth of them at least", NULL);
}

/* ---- Transfers ------------------------------------------------------------------------------- */

/* What memory holds for the stream's bytes from a position on; what is read stays as it is. */
static uint64_t tag_at(const struct device_dma *dma, uint64_t position)
{
    return payload_mark(dma->stream,
                        dma->direction == DMA_READ ? position % dma->buffer_bytes : position);
}

static void begin(struct slot *slot)
{
    struct device_dma *dma = slot->dma;
    slot->position = dma->submitted;
    slot->start_ps = sim_now(dma->program->workload->sim);
    slot->op.iova.v = dma->address + slot->position % dma->buffer_bytes;
    dma->submitted += dma->transfer_bytes;
    dma->in_flight++;
    for (uint64_t at = 0; dma->direction == DMA_WRITE && at < dma->transfer_bytes;
         at += LINE_BYTES) {
        const uint64_t word = payload_word(tag_at(dma, slot->position + at));
        memcpy(slot->buffer + at, &word, sizeof(word));
    }
    pcie_requester_submit(dma->device, &slot->op);
}

static void check_read(struct slot *slot)
{
    struct device_dma *dma = slot->dma;
    for (uint64_t at = 0; at < dma->transfer_bytes && !dma->failed; at += LINE_BYTES) {
        const uint64_t expected = payload_word(tag_at(dma, slot->position + at));
        uint64_t word;
        memcpy(&word, slot->buffer + at, sizeof(word));
        if (word == expected)
            continue;
        dma->failed = true;
        program_fail(dma->program, "read %016llx at byte %llu instead of %016llx",
                     (unsigned long long)word, (unsigned long long)(slot->position + at),
                     (unsigned long long)expected);
    }
}

static void transfer_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct slot *slot = op->context;
    struct device_dma *dma = slot->dma;
    dma->in_flight--;
    if (status != PCIE_DMA_OK) {
        dma->failed = true;
        program_fail(dma->program, "a transfer of %s ended with status %d", dma->device_name,
                     (int)status);
        return;
    }
    if (dma->direction == DMA_READ)
        check_read(slot);
    program_operation_ended(dma->program, slot->start_ps);
    if (program_measuring(dma->program)) {
        const sim_time took_ps = sim_now(dma->program->workload->sim) - slot->start_ps;
        dma->bytes += dma->transfer_bytes;
        dma->transfers++;
        dma->latency_ns += (double)took_ps / 1000.0;
    }
    if (!program_ending(dma->program) && !dma->failed)
        begin(slot);
}

/* Each unit of the buffer holds what was written to it last. */
static void check_written(struct device_dma *dma)
{
    const uint64_t from = dma->submitted > dma->buffer_bytes ? dma->submitted - dma->buffer_bytes
                                                             : 0;
    for (uint64_t position = from; position < dma->submitted; position += dma->transfer_bytes) {
        struct kaddr at = { dma->at.v + position % dma->buffer_bytes };
        struct payload_difference is;
        if (payload_check(dma->host->kernel, at, tag_at(dma, position), dma->transfer_bytes, &is))
            continue;
        k_fault(dma->host->kernel, "%s: memory holds %016llx where %016llx was written",
                dma->program->name, (unsigned long long)is.found, (unsigned long long)is.expected);
        return;
    }
}

/* ---- The driver ------------------------------------------------------------------------------ */

static void set_bus_master(struct k_pci_dev *dev, bool on)
{
    uint32_t command = k_config_read(dev, PCI_COMMAND, 2);
    command = on ? command | PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER
                 : command & ~(uint32_t)PCI_COMMAND_BUS_MASTER;
    k_config_write(dev, PCI_COMMAND, 2, command);
    k_config_read(dev, PCI_COMMAND, 2);
}

static void driver_body(void *arg)
{
    struct device_dma *dma = arg;
    struct kernel *kernel = dma->host->kernel;
    struct k_pci_dev *dev = lending_device(dma->host, dma->device_name);
    if (dev != NULL)
        k_dma_set_mask(&dev->device, 64);
    if (dev == NULL ||
        k_dma_alloc(&dev->device, K_NODE_LOCAL, dma->buffer_bytes, &dma->at, &dma->address) != 0) {
        k_fault(kernel, "%s: %s", dma->program->name,
                dev == NULL ? "its device is gone" : "no memory that the device reaches");
        return;
    }
    dma->program->closing = true;
    if (dma->direction == DMA_READ)
        payload_fill(kernel, dma->at, tag_at(dma, 0), dma->buffer_bytes);
    set_bus_master(dev, true);
    for (unsigned i = 0; i < dma->queue_depth; i++)
        begin(&dma->slot[i]);
    while (!program_ending(dma->program) || dma->in_flight != 0)
        k_sleep(kernel, LOOK_PS);
    k_readl(dev, 0, 0); /* the answer comes behind all that the device has written */
    if (dma->direction == DMA_WRITE && !dma->failed)
        check_written(dma);
    set_bus_master(dev, false);
    k_dma_free(&dev->device, dma->buffer_bytes, dma->at, dma->address);
    dma->program->closing = false;
}

static void device_dma_start(struct program *program)
{
    struct device_dma *dma = program->state;
    dma->stream = program_new_stream(program);
    dma->slot = program_zalloc(program, dma->queue_depth, sizeof(*dma->slot));
    dma->buffers = program_zalloc(program, dma->queue_depth, dma->transfer_bytes);
    for (unsigned i = 0; i < dma->queue_depth; i++) {
        struct slot *slot = &dma->slot[i];
        slot->dma = dma;
        slot->buffer = dma->buffers + i * dma->transfer_bytes;
        slot->op = (struct pcie_requester_op){ .write = dma->direction == DMA_WRITE,
                                               .interface = PCIE_REQUESTER_BULK,
                                               .bulk = true,
                                               .bytes = (uint32_t)dma->transfer_bytes,
                                               .buffer = slot->buffer,
                                               .done = transfer_done,
                                               .context = slot };
    }
    program_lending_uses_cpu(program, dma->host, 0);
    k_thread_new(dma->host->kernel, program->name, 0, driver_body, dma);
}

static void device_dma_measure(struct program *program)
{
    struct device_dma *dma = program->state;
    dma->bytes = 0;
    dma->transfers = 0;
    dma->latency_ns = 0;
}

static uint64_t device_dma_bytes(const struct program *program)
{
    return ((const struct device_dma *)program->state)->bytes;
}

static uint64_t device_dma_latencies_ns(const struct program *program)
{
    return (uint64_t)((const struct device_dma *)program->state)->latency_ns;
}

static uint64_t device_dma_transfers(const struct program *program)
{
    return ((const struct device_dma *)program->state)->transfers;
}

static const struct program_rate device_dma_rates[] = {
    { "throughput_gbyte_s", 1e-9, device_dma_bytes, NULL },
    { "latency_mean_ns", 1, device_dma_latencies_ns, device_dma_transfers },
    { NULL, 0, NULL, NULL },
};

static void device_dma_record(struct program *program, sim_time duration_ps)
{
    const struct device_dma *dma = program->state;
    const double gbyte_s = (double)dma->bytes * 1000.0 / (double)duration_ps;
    if (!program_has_measured(program, "transfer"))
        return;
    program_metric(program, "throughput_gbyte_s", "GB/s", gbyte_s);
    program_metric(program, "latency_mean_ns", "ns", dma->latency_ns / (double)dma->transfers);
}

const struct program_ops program_device_dma_ops = {
    .type = "device_dma",
    .help = "an adapter, borrowed or not, that reads or writes memory (pcie.requester)",
    .steady = true,
    .state_bytes = sizeof(struct device_dma),
    .params = device_dma_params,
    .records = device_dma_records,
    .rates = device_dma_rates,
    .check = device_dma_check,
    .start = device_dma_start,
    .measure = device_dma_measure,
    .record = device_dma_record,
};
