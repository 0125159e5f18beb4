/*
 * I/O commands of nvme.controller.
 *
 * Models: the NVM command set but for reservations: Flush, Write, Read, Write Uncorrectable,
 *   Compare, Write Zeroes, Dataset Management (deallocate; what are hints is ignored).
 * Does not model: fused commands, protection information, limits of atomicity: what other commands
 *   see of a write is pages of 4 KiB.
 * Timing: of data nvme_data.c. What moves none (Write Zeroes, Write Uncorrectable, deallocation)
 *   takes write_latency. Flush takes none: there is no volatile cache.
 * Sources: NVM Express 1.3, section 6.
 */
#include <string.h>

#include "models/nvme/nvme_internal.h"

static uint64_t blocks_of_namespace(const struct nvme_command *command)
{
    const struct nvme_params *params = nvme_params(command->nvme);
    return params->capacity_bytes / params->block_bytes;
}

static uint64_t first_block(const struct nvme_command *command)
{
    return (uint64_t)command->sqe.cdw11 << 32 | command->sqe.cdw10;
}

static uint64_t n_blocks(const struct nvme_command *command)
{
    return (command->sqe.cdw12 & 0xffffu) + UINT64_C(1);
}

/* The blocks lie in the namespace. */
static enum nvme_status check_range(struct nvme_command *command)
{
    uint64_t blocks = blocks_of_namespace(command);
    uint64_t first = first_block(command), n = n_blocks(command);
    if (first >= blocks || n > blocks - first)
        return nvme_wrong(command, NVME_SC_LBA_OUT_OF_RANGE, NVME_AT(cdw10, 0));
    return NVME_SC_SUCCESS;
}

static void transfer(struct nvme_command *command, enum nvme_data data)
{
    const struct nvme_params *params = nvme_params(command->nvme);
    const uint64_t bytes = n_blocks(command) * params->block_bytes;
    enum nvme_status status = check_range(command);
    if (status == NVME_SC_SUCCESS && bytes > params->transfer_bytes_max)
        status = nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw12, 0));
    if (status == NVME_SC_SUCCESS)
        nvme_data_media(command, data, first_block(command) * params->block_bytes, bytes);
    else
        nvme_complete(command, status);
}

static void do_read(struct nvme_command *command)
{
    transfer(command, NVME_DATA_READ);
}

static void do_write(struct nvme_command *command)
{
    transfer(command, NVME_DATA_WRITE);
}

static void do_compare(struct nvme_command *command)
{
    transfer(command, NVME_DATA_COMPARE);
}

static void flush(struct nvme_command *command)
{
    nvme_complete(command, NVME_SC_SUCCESS);
}

/* ---- Without data ---------------------------------------------------------------------------- */

static void write_zeroes(struct nvme_command *command)
{
    const uint32_t block_bytes = nvme_params(command->nvme)->block_bytes;
    enum nvme_status status = check_range(command);
    if (status != NVME_SC_SUCCESS) {
        nvme_complete(command, status);
        return;
    }
    nvme_media_zero(command->nvme->sub, command->namespace, first_block(command) * block_bytes,
                    n_blocks(command) * block_bytes);
    nvme_data_update(command);
}

static void write_uncorrectable(struct nvme_command *command)
{
    const uint32_t block_bytes = nvme_params(command->nvme)->block_bytes;
    enum nvme_status status = check_range(command);
    if (status != NVME_SC_SUCCESS) {
        nvme_complete(command, status);
        return;
    }
    nvme_media_spoil(command->namespace, first_block(command) * block_bytes,
                     n_blocks(command) * block_bytes);
    nvme_data_update(command);
}

/* The ranges are there: all are checked before any changes. */
static void ranges_taken(struct nvme_command *command)
{
    const uint32_t n = (command->sqe.cdw10 & 0xffu) + 1;
    const uint64_t blocks = blocks_of_namespace(command);
    const uint32_t block_bytes = nvme_params(command->nvme)->block_bytes;
    struct nvme_range range[NVME_DATASET_RANGES_MAX];
    memcpy(range, command->page, n * sizeof(range[0]));
    for (uint32_t i = 0; i < n; i++)
        if (range[i].first > blocks || range[i].blocks > blocks - range[i].first) {
            nvme_complete(command, nvme_wrong(command, NVME_SC_LBA_OUT_OF_RANGE, NVME_AT(prp1, 0)));
            return;
        }
    if ((command->sqe.cdw11 & NVME_DATASET_DEALLOCATE) == 0) {
        nvme_complete(command, NVME_SC_SUCCESS);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        nvme_media_zero(command->nvme->sub, command->namespace, range[i].first * block_bytes,
                        (uint64_t)range[i].blocks * block_bytes);
    nvme_data_update(command);
}

static void dataset(struct nvme_command *command)
{
    const uint32_t n = (command->sqe.cdw10 & 0xffu) + 1;
    nvme_data_take(command, n * sizeof(struct nvme_range), ranges_taken);
}

/* ---- All ------------------------------------------------------------------------------------- */

const struct nvme_command_desc nvme_io_commands[NVME_IO_COMMANDS] = {
    [NVME_FLUSH] = { "Flush", 0, flush },
    [NVME_WRITE] = { "Write", NVME_EFFECT_CONTENT, do_write },
    [NVME_READ] = { "Read", 0, do_read },
    [NVME_WRITE_UNCORRECTABLE] = { "Write Uncorrectable", NVME_EFFECT_CONTENT,
                                   write_uncorrectable },
    [NVME_COMPARE] = { "Compare", 0, do_compare },
    [NVME_WRITE_ZEROES] = { "Write Zeroes", NVME_EFFECT_CONTENT, write_zeroes },
    [NVME_DATASET] = { "Dataset Management", NVME_EFFECT_CONTENT, dataset },
};

static enum nvme_status check(struct nvme_command *command)
{
    const struct nvme_sqe *sqe = &command->sqe;
    const bool all = sqe->nsid == NVME_NSID_ALL && sqe->opcode == NVME_FLUSH;
    if (sqe->opcode >= NVME_IO_COMMANDS || nvme_io_commands[sqe->opcode].execute == NULL)
        return nvme_wrong(command, NVME_SC_INVALID_OPCODE, NVME_AT(opcode, 0));
    if ((sqe->flags & NVME_FUSE_MASK) != 0)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(flags, 0));
    if ((sqe->flags & NVME_PSDT_MASK) == NVME_PSDT_MASK)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(flags, 6));
    if (!all && (sqe->nsid == 0 || sqe->nsid > nvme_params(command->nvme)->n_namespaces))
        return nvme_wrong(command, NVME_SC_INVALID_NAMESPACE, NVME_AT(nsid, 0));
    return NVME_SC_SUCCESS;
}

void nvme_io(struct nvme_command *command)
{
    const struct nvme_sqe *sqe = &command->sqe;
    enum nvme_status status = check(command);
    if (status != NVME_SC_SUCCESS) {
        nvme_complete(command, status);
        return;
    }
    command->namespace =
        &command->nvme->sub->namespace[sqe->nsid == NVME_NSID_ALL ? 0 : sqe->nsid - 1];
    nvme_io_commands[sqe->opcode].execute(command);
}
