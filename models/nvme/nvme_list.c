/*
 * Where the data of a command lies in memory.
 *
 * Models: PRP entries and chained PRP lists; SGLs: data blocks, bit buckets, segments and last
 *   segments. Lists are read from wherever they lie, as data can be used: a PRP list up to the end
 *   of its page, of a segment up to 4 KiB at once. Errors are found when they are met, behind data
 *   that has been moved.
 * Does not model: keyed and vendor descriptors, SGLs for metadata. Lists that lead to each other
 *   without an entry of data, more than twice, are an error, where a controller might read on for
 *   ever.
 * Timing: a list's read as any other; of a command one at a time.
 * Sources: NVM Express 1.3, sections 4.3 (PRP), 4.4 (SGL).
 */
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define IDLE_MAX 2u

static void wrong(struct nvme_command *command, enum nvme_status status, uint16_t location)
{
    command->status = (uint16_t)status;
    command->location = location;
}

static void list_here(struct nvme_dma *dma, enum pcie_dma_status status)
{
    struct nvme_command *command = SIM_CONTAINER(dma, struct nvme_command, list);
    command->list_pending = false;
    command->list_at = 0;
    command->n_pieces++; /* none may end it before all are under way */
    if (status != PCIE_DMA_OK)
        wrong(command, NVME_SC_DATA_TRANSFER_ERROR, NVME_AT(prp2, 0));
    else if (nvme_running(command->nvme))
        nvme_data_continue(command);
    command->n_pieces--;
    nvme_data_end(command);
}

static void list_read(struct nvme_command *command, uint64_t address, uint64_t bytes)
{
    if (++command->n_idle > IDLE_MAX) {
        wrong(command, command->sgl ? NVME_SC_SGL_COUNT_INVALID : NVME_SC_PRP_OFFSET_INVALID,
              command->sgl ? NVME_AT(prp1, 0) : NVME_AT(prp2, 0));
        return;
    }
    command->list_pending = true;
    command->list.write = false;
    command->list.done = list_here;
    command->list.request = (struct pcie_dma_request){
        .iova = { address },
        .bytes = bytes,
        .buffer = (uint8_t *)&command->entry,
    };
    command->nvme->sub->stats.prp_lists += !command->sgl;
    command->nvme->sub->stats.sgl_segments += command->sgl;
    nvme_dma_start(command->nvme, &command->list);
}

/* ---- PRP (4.3) ------------------------------------------------------------------------------- */

/* As many entries as are needed and lie in the list's page: the last may lead to the next. */
static void prp_list_read(struct nvme_command *command, uint64_t address)
{
    uint64_t needed = (command->bytes_left + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
    uint64_t room = (NVME_PAGE_BYTES - address % NVME_PAGE_BYTES) / 8;
    command->list_n = (uint32_t)SIM_MIN(needed, room);
    list_read(command, address, (uint64_t)command->list_n * 8);
}

/* The next memory page; false: it is not known yet, or there is none. */
static bool prp_next(struct nvme_command *command)
{
    uint64_t entry;
    if (command->list_n == 0) {
        entry = command->sqe.prp2;
        if (command->bytes_left > NVME_PAGE_BYTES) {
            if (entry % 8 == 0)
                prp_list_read(command, entry);
            else
                wrong(command, NVME_SC_PRP_OFFSET_INVALID, NVME_AT(prp2, 0));
            return false;
        }
    } else {
        entry = command->entry.prp[command->list_at++];
        if (command->list_at == command->list_n && command->bytes_left > NVME_PAGE_BYTES) {
            if (entry % 8 == 0)
                prp_list_read(command, entry);
            else
                wrong(command, NVME_SC_PRP_OFFSET_INVALID, NVME_AT(prp2, 0));
            return false;
        }
    }
    if (entry % NVME_PAGE_BYTES != 0) {
        wrong(command, NVME_SC_PRP_OFFSET_INVALID, NVME_AT(prp2, 0));
        return false;
    }
    command->address = entry;
    return true;
}

/* ---- SGL (4.4) ------------------------------------------------------------------------------- */

/* The next descriptors of the segment, as many as fit. */
static void segment_read(struct nvme_command *command)
{
    uint64_t bytes = SIM_MIN(command->segment_left, sizeof(command->entry));
    uint64_t address = command->segment;
    command->list_n = (uint32_t)(bytes / NVME_SGL_BYTES);
    command->segment += bytes;
    command->segment_left -= bytes;
    list_read(command, address, bytes);
}

static void segment_begin(struct nvme_command *command, const struct nvme_sgl *sgl)
{
    if (command->list_at != command->list_n || command->segment_left != 0) {
        wrong(command, NVME_SC_SGL_COUNT_INVALID, NVME_AT(prp1, 0));
    } else if (command->sgl_last || sgl->bytes == 0 || sgl->bytes % NVME_SGL_BYTES != 0) {
        wrong(command, NVME_SC_SGL_SEGMENT_INVALID, NVME_AT(prp1, 0));
    } else {
        command->sgl_last = sgl->type == NVME_SGL_LAST_SEGMENT;
        command->segment = sgl->address;
        command->segment_left = sgl->bytes;
        segment_read(command);
    }
}

/* Bytes of a read that nobody wants. A write's would have no length. */
static void bit_bucket(struct nvme_command *command, const struct nvme_sgl *sgl)
{
    uint64_t bytes = SIM_MIN(sgl->bytes, command->bytes_left);
    if (nvme_from_host(command))
        return;
    command->offset += bytes;
    command->bytes_left -= bytes;
    if (bytes != 0)
        command->n_idle = 0;
}

static void take_descriptor(struct nvme_command *command, const struct nvme_sgl *sgl)
{
    switch ((enum nvme_sgl_type)sgl->type) {
    case NVME_SGL_DATA:
        command->address = sgl->address;
        command->block_left = sgl->bytes;
        break;
    case NVME_SGL_BIT_BUCKET: bit_bucket(command, sgl); break;
    case NVME_SGL_SEGMENT:
    case NVME_SGL_LAST_SEGMENT: segment_begin(command, sgl); break;
    case NVME_SGL_KEYED:
    case NVME_SGL_VENDOR:
    default: wrong(command, NVME_SC_SGL_TYPE_INVALID, NVME_AT(prp2, 56)); break;
    }
}

/* Up to the next descriptor with data, unless a segment must be read for it. */
static void sgl_next(struct nvme_command *command)
{
    while (command->block_left == 0 && command->bytes_left != 0 && !command->list_pending &&
           command->status == NVME_SC_SUCCESS) {
        if (command->list_at < command->list_n)
            take_descriptor(command, &command->entry.sgl[command->list_at++]);
        else if (command->segment_left != 0)
            segment_read(command);
        else /* a segment that is not the last one leads to another */
            wrong(command,
                  command->sgl_last ? NVME_SC_SGL_LENGTH_INVALID : NVME_SC_SGL_COUNT_INVALID,
                  NVME_AT(prp1, 0));
    }
}

/* ---- Both ------------------------------------------------------------------------------------ */

bool nvme_list_begin(struct nvme_command *command)
{
    command->sgl = (command->sqe.flags & NVME_PSDT_MASK) != NVME_PSDT_PRP;
    command->list_at = command->list_n = 0;
    command->n_idle = 0;
    if (command->sgl) {
        command->entry.prp[0] = command->sqe.prp1;
        command->entry.prp[1] = command->sqe.prp2;
        command->list_n = 1;
        /* A lone data block is the whole list. */
        command->sgl_last = command->entry.sgl[0].type < NVME_SGL_SEGMENT;
        command->segment_left = command->block_left = 0;
        return true;
    }
    command->address = command->sqe.prp1;
    command->page_ended = false;
    if (command->sqe.prp1 % 4 == 0)
        return true;
    wrong(command, NVME_SC_PRP_OFFSET_INVALID, NVME_AT(prp1, 0));
    return false;
}

uint64_t nvme_list_next(struct nvme_command *command)
{
    if (command->sgl) {
        sgl_next(command);
        return command->status == NVME_SC_SUCCESS
                   ? SIM_MIN(command->block_left, command->bytes_left)
                   : 0;
    }
    /* The piece before ended at the end of a page, unless it is the first or ended at the end of a
     * page of the media. */
    if (command->page_ended && !prp_next(command))
        return 0;
    command->page_ended = false;
    return SIM_MIN(NVME_PAGE_BYTES - command->address % NVME_PAGE_BYTES, command->bytes_left);
}

void nvme_list_used(struct nvme_command *command, uint64_t bytes)
{
    command->address += bytes;
    command->n_idle = 0;
    if (command->sgl)
        command->block_left -= bytes;
    else
        command->page_ended = command->address % NVME_PAGE_BYTES == 0;
}
