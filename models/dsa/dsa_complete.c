/*
 * What is wrong with descriptors of dsa.accelerator, and how they end.
 *
 * Models: checks of operation, flags, reserved fields, sizes, alignments and handles; completion
 *   records, behind all that the descriptor wrote; interrupts behind the record; SWERR for errors
 *   that no record tells, with its overflow.
 * Does not model: page requests, faults of the record's own address (a posted write nobody
 *   answers).
 * Sources: Intel Data Streaming Accelerator Architecture Specification, "Descriptor checking and
 *   errors", "Completion record", "Software error register".
 */
#include <string.h>

#include "models/dsa/dsa_internal.h"

/* ---- Checks ---------------------------------------------------------------------------------- */

static uint32_t flags_of(uint32_t operation, bool in_batch)
{
    const uint32_t all = DSA_FLAG_RECORD_VALID | DSA_FLAG_RECORD | DSA_FLAG_INTERRUPT |
                         (in_batch ? DSA_FLAG_FENCE : 0);
    return operation == DSA_OP_MOVE ? all | DSA_FLAG_CACHE | DSA_FLAG_STRICT : all;
}

/* Descriptors within a batch are neither batches nor drains. */
static bool operation_fits(uint32_t operation, bool in_batch)
{
    return operation == DSA_OP_NOOP || operation == DSA_OP_MOVE ||
           (!in_batch && (operation == DSA_OP_BATCH || operation == DSA_OP_DRAIN));
}

static uint32_t wrong_flags(const struct dsa_descriptor *descriptor, bool in_batch)
{
    const uint32_t flags = dsa_flags(descriptor);
    uint32_t wrong = flags & ~flags_of(dsa_operation(descriptor), in_batch);
    if (!(flags & DSA_FLAG_RECORD_VALID))
        wrong |= flags & DSA_FLAG_RECORD;
    return wrong;
}

/* Bytes of the descriptor that its operation has no use for. */
static bool reserved_set(const struct dsa_descriptor *d)
{
    const uint32_t operation = dsa_operation(d);
    const bool none = operation == DSA_OP_NOOP || operation == DSA_OP_DRAIN;
    return d->reserved != 0 || (d->specific[0] | d->specific[1] | d->specific[2]) != 0 ||
           (none && (d->source | d->destination | d->bytes) != 0) ||
           (operation == DSA_OP_BATCH && d->destination != 0);
}

static enum dsa_status check_size(const struct dsa_queue *queue, const struct dsa_descriptor *d)
{
    const uint32_t limits = queue->config[DSA_WQCFG_LIMITS / 4];
    const uint64_t bytes_max = UINT64_C(1) << (limits & DSA_WQCFG_TRANSFER_MASK);
    const uint64_t batch_max = UINT64_C(1)
                               << ((limits & DSA_WQCFG_BATCH_MASK) >> DSA_WQCFG_BATCH_SHIFT);
    switch (dsa_operation(d)) {
    case DSA_OP_MOVE:
        return d->bytes == 0 || d->bytes > bytes_max ? DSA_STATUS_BYTES : DSA_STATUS_NONE;
    case DSA_OP_BATCH:
        if (d->bytes < DSA_BATCH_MIN || d->bytes > batch_max)
            return DSA_STATUS_COUNT;
        return d->source % DSA_BATCH_ALIGNMENT != 0 ? DSA_STATUS_LIST_ALIGNMENT : DSA_STATUS_NONE;
    default: return DSA_STATUS_NONE;
    }
}

static bool record_aligned(const struct dsa_descriptor *d)
{
    return !(dsa_flags(d) & DSA_FLAG_RECORD_VALID) || d->record % DSA_RECORD_BYTES == 0;
}

enum dsa_status dsa_check(const struct dsa_device *dsa, const struct dsa_queue *queue,
                          const struct dsa_descriptor *descriptor, bool in_batch,
                          uint32_t *invalid_flags)
{
    *invalid_flags = 0;
    if (!record_aligned(descriptor))
        return DSA_STATUS_RECORD_ALIGNMENT;
    if (!operation_fits(dsa_operation(descriptor), in_batch))
        return DSA_STATUS_OPERATION;
    *invalid_flags = wrong_flags(descriptor, in_batch);
    if (*invalid_flags != 0)
        return DSA_STATUS_FLAGS;
    if (reserved_set(descriptor))
        return DSA_STATUS_RESERVED;
    if ((dsa_flags(descriptor) & DSA_FLAG_INTERRUPT) != 0 &&
        descriptor->interrupt_handle >= dsa->function.desc.n_vectors)
        return DSA_STATUS_HANDLE;
    return check_size(queue, descriptor);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

void dsa_software_error(struct dsa_device *dsa, uint8_t error, const struct dsa_queue *queue,
                        const struct dsa_descriptor *descriptor, const struct dsa_outcome *outcome,
                        int batch_idx)
{
    if ((dsa->swerr[0] & DSA_SWERR_VALID) != 0) {
        dsa->swerr[0] |= DSA_SWERR_OVERFLOW;
    } else {
        uint64_t word = DSA_SWERR_VALID | (uint64_t)error << DSA_SWERR_ERROR_SHIFT;
        if (queue != NULL)
            word |= DSA_SWERR_QUEUE_VALID | (uint64_t)queue->idx << DSA_SWERR_QUEUE_SHIFT;
        if (descriptor != NULL)
            word |= DSA_SWERR_DESCRIPTOR | (uint64_t)dsa_operation(descriptor)
                                               << DSA_SWERR_OPERATION_SHIFT;
        if (batch_idx >= 0) {
            word |= DSA_SWERR_BATCH;
            dsa->swerr[1] = (uint64_t)batch_idx;
        }
        if (outcome != NULL) {
            word |= outcome->fault_write ? DSA_SWERR_WRITE : 0;
            dsa->swerr[1] |= (uint64_t)outcome->invalid_flags << DSA_SWERR_FLAGS_SHIFT;
            dsa->swerr[2] = outcome->fault_address;
        }
        dsa->swerr[0] = word;
    }
    dsa->intcause |= DSA_INTCAUSE_ERROR;
    if ((dsa->genctrl & DSA_GENCTRL_ERROR_VECTOR) != 0)
        pcie_function_interrupt(&dsa->function, 0);
}

/* ---- Records --------------------------------------------------------------------------------- */

/* A success is recorded where it was asked for, an error where it can be. */
static bool wants_record(const struct dsa_descriptor *d, const struct dsa_outcome *outcome)
{
    const uint32_t flags = dsa_flags(d);
    return (flags & DSA_FLAG_RECORD_VALID) != 0 && record_aligned(d) &&
           ((flags & DSA_FLAG_RECORD) != 0 || outcome->status != DSA_STATUS_SUCCESS);
}

static void write_record(struct dsa_device *dsa, const struct dsa_descriptor *d,
                         const struct dsa_outcome *outcome, struct dsa_record *record,
                         struct pcie_dma_request *request, pcie_dma_done_fn *done)
{
    *record = (struct dsa_record){
        .status = (uint8_t)(outcome->status | (outcome->fault_write ? DSA_STATUS_WRITE : 0)),
        .completed = (uint32_t)outcome->completed,
        .fault_address = outcome->fault_address,
        .invalid_flags = outcome->invalid_flags
    };
    *request = (struct pcie_dma_request){
        .iova = { d->record }, .bytes = sizeof(*record), .buffer = (uint8_t *)record, .done = done
    };
    pcie_dma_write(&dsa->function.dma, request, 0);
}

/* Behind the record, if there is one. */
static void interrupt(struct dsa_device *dsa, const struct dsa_descriptor *d)
{
    if ((dsa_flags(d) & DSA_FLAG_INTERRUPT) != 0 &&
        d->interrupt_handle < dsa->function.desc.n_vectors)
        pcie_function_interrupt(&dsa->function, d->interrupt_handle);
}

static void work_recorded(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct dsa_work *work = SIM_CONTAINER(request, struct dsa_work, write_back);
    (void)status; /* there is nobody to tell */
    interrupt(work->dsa, &work->descriptor);
    dsa_work_free(work);
}

static void take_from_engine(struct dsa_work *work)
{
    struct dsa_work **at = &work->engine->moving;
    while (*at != work)
        at = &(*at)->next;
    *at = work->next;
    work->moving = false;
}

void dsa_work_end(struct dsa_work *work)
{
    const struct dsa_descriptor *d = &work->descriptor;
    if (work->moving)
        take_from_engine(work);
    if (work->aborted) {
        dsa_work_free(work);
        return;
    }
    work->writing = true;
    if (wants_record(d, &work->outcome)) {
        write_record(work->dsa, d, &work->outcome, &work->record, &work->write_back, work_recorded);
        return;
    }
    if (work->outcome.status != DSA_STATUS_SUCCESS)
        dsa_software_error(work->dsa, work->outcome.status,
                           work->batch != NULL ? work->batch->task.queue : work->task.queue, d,
                           &work->outcome, work->batch != NULL ? work->batch_idx : -1);
    work_recorded(&work->write_back, PCIE_DMA_OK);
}

static void batch_recorded(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct dsa_batch *batch = SIM_CONTAINER(request, struct dsa_batch, write_back);
    (void)status;
    interrupt(batch->dsa, &batch->descriptor);
    dsa_batch_free(batch);
}

void dsa_batch_end(struct dsa_batch *batch)
{
    const struct dsa_descriptor *d = &batch->descriptor;
    struct dsa_outcome *outcome = &batch->outcome;
    if (outcome->status == DSA_STATUS_NONE)
        outcome->status = batch->failed != 0 ? DSA_STATUS_BATCH : DSA_STATUS_SUCCESS;
    outcome->completed = batch->ended;
    batch->writing = true;
    if (wants_record(d, outcome)) {
        write_record(batch->dsa, d, outcome, &batch->record, &batch->write_back, batch_recorded);
        return;
    }
    if (outcome->status != DSA_STATUS_SUCCESS)
        dsa_software_error(batch->dsa, outcome->status, batch->task.queue, d, outcome, -1);
    batch_recorded(&batch->write_back, PCIE_DMA_OK);
}
