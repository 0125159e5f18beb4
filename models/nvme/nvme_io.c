/*
 * I/O commands of nvme.controller, and the memory that PRP entries describe.
 *
 * Models: Read, Write, Flush; PRP entries and chained PRP lists, read from wherever they lie; data
 *   in pieces that end at memory pages and at media pages, by memory writes and reads at the sizes
 *   of the configuration; data, lists and queues in the controller memory buffer, without the link.
 * Does not model: SGLs, metadata, other NVM commands. With payload = "tag" a buffer begins on a
 *   cache line.
 * Timing: a read's media begin with the command; a page is sent as soon as it is ready and its PRP
 *   entry known. A write's pages are asked for at once, and complete write_latency after the last.
 * Sources: NVM Express 1.3, sections 4.3 (PRP), 6.
 */
#include <string.h>

#include "models/nvme/nvme_internal.h"

static void pieces_start(struct nvme_command *command);

/* ---- The end --------------------------------------------------------------------------------- */

static void write_safe(struct sim *sim, struct sim_event *event)
{
    struct nvme_command *command = SIM_CONTAINER(event, struct nvme_command, event);
    (void)sim;
    nvme_complete(command, (enum nvme_status)command->status);
}

static void count(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    uint64_t bytes = ((command->sqe.cdw12 & 0xffffu) + UINT64_C(1)) *
                     nvme_params(nvme)->block_bytes;
    if (command->status != NVME_SC_SUCCESS || command->sq->number == 0)
        return;
    if (command->write) {
        nvme->sub->stats.writes++;
        nvme->sub->stats.write_bytes += bytes;
    } else {
        nvme->sub->stats.reads++;
        nvme->sub->stats.read_bytes += bytes;
    }
}

/* Complete, unless something of it is under way. */
static void consider_end(struct nvme_command *command)
{
    if (command->n_pieces != 0 || command->list_pending ||
        (command->bytes_left != 0 && command->status == NVME_SC_SUCCESS &&
         nvme_running(command->nvme)))
        return;
    count(command);
    if (command->write && command->status == NVME_SC_SUCCESS && nvme_running(command->nvme)) {
        sim_event_init(&command->event, write_safe);
        sim_schedule(nvme_sim(command->nvme), &command->event,
                     SIM_MAX(command->ready_ps, nvme_now(command->nvme)));
        return;
    }
    nvme_complete(command, (enum nvme_status)command->status);
}

static void piece_ends(struct nvme_piece *piece, enum pcie_dma_status status)
{
    struct nvme_command *command = piece->command;
    if (status != PCIE_DMA_OK)
        command->status = NVME_SC_DATA_TRANSFER_ERROR;
    command->n_pieces--;
    sim_pool_put(command->nvme->sub->pieces, piece);
    consider_end(command);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static void read_sent(struct nvme_dma *dma, enum pcie_dma_status status)
{
    piece_ends(SIM_CONTAINER(dma, struct nvme_piece, dma), status);
}

static void read_ready(struct sim *sim, struct sim_event *event)
{
    struct nvme_piece *piece = SIM_CONTAINER(event, struct nvme_piece, event);
    struct nvme *nvme = piece->command->nvme;
    (void)sim;
    if (!nvme_running(nvme)) {
        piece_ends(piece, PCIE_DMA_ABORTED);
        return;
    }
    nvme_media_load(nvme->sub, piece, piece->buffer);
    nvme_dma_start(nvme, &piece->dma);
}

static void write_here(struct nvme_dma *dma, enum pcie_dma_status status)
{
    struct nvme_piece *piece = SIM_CONTAINER(dma, struct nvme_piece, dma);
    struct nvme_command *command = piece->command;
    struct nvme *nvme = command->nvme;
    if (status == PCIE_DMA_OK && nvme_running(nvme)) {
        sim_time ready_ps = nvme_media_ready(nvme->sub, command, piece->media_offset, piece->bytes);
        command->ready_ps = SIM_MAX(command->ready_ps, ready_ps);
        nvme_media_store(nvme->sub, piece);
    }
    piece_ends(piece, status);
}

static struct nvme_piece *piece_new(struct nvme_command *command, uint64_t address, uint32_t bytes,
                                    bool bulk)
{
    struct nvme_piece *piece = sim_pool_get(command->nvme->sub->pieces);
    piece->command = command;
    piece->media_offset = command->media_offset;
    piece->bytes = bytes;
    piece->dma.write = !command->write;
    piece->dma.done = command->write ? write_here : read_sent;
    piece->dma.request = (struct pcie_dma_request){
        .iova = { address },
        .bytes = bytes,
        .buffer = piece->buffer,
        .bulk = bulk,
        .whole_lines = true,
        .independent = command->write, /* data of a write has nothing to do with other reads' */
    };
    command->n_pieces++;
    return piece;
}

static void piece_start(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    uint64_t bytes = NVME_PAGE_BYTES - command->next_page % NVME_PAGE_BYTES;
    bytes = SIM_MIN(bytes, NVME_PAGE_BYTES - command->media_offset % NVME_PAGE_BYTES);
    bytes = SIM_MIN(bytes, command->bytes_left);
    struct nvme_piece *piece = piece_new(command, command->next_page, (uint32_t)bytes,
                                         nvme_params(nvme)->payload == NVME_PAYLOAD_TAG);
    command->next_page += bytes;
    command->media_offset += bytes;
    command->bytes_left -= bytes;
    if (command->write) {
        nvme_dma_start(nvme, &piece->dma);
        return;
    }
    sim_time ready_ps = nvme_media_ready(nvme->sub, command, piece->media_offset, piece->bytes);
    sim_event_init(&piece->event, read_ready);
    sim_schedule(nvme_sim(nvme), &piece->event, SIM_MAX(ready_ps, nvme_now(nvme)));
}

/* ---- PRP ------------------------------------------------------------------------------------- */

static void list_here(struct nvme_dma *dma, enum pcie_dma_status status)
{
    struct nvme_command *command = SIM_CONTAINER(dma, struct nvme_command, list);
    command->list_pending = false;
    command->list_at = 0;
    command->n_pieces++; /* none may end it before all are under way */
    if (status != PCIE_DMA_OK)
        command->status = NVME_SC_DATA_TRANSFER_ERROR;
    else if (nvme_running(command->nvme))
        pieces_start(command);
    command->n_pieces--;
    consider_end(command);
}

/* As many entries as are needed and lie in the list's page: the last may lead to the next. */
static void list_read(struct nvme_command *command, uint64_t address)
{
    uint64_t needed = (command->bytes_left + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
    uint64_t room = (NVME_PAGE_BYTES - address % NVME_PAGE_BYTES) / 8;
    command->list_n = (uint32_t)SIM_MIN(needed, room);
    command->list_pending = true;
    command->list.write = false;
    command->list.done = list_here;
    command->list.request = (struct pcie_dma_request){
        .iova = { address },
        .bytes = (uint64_t)command->list_n * 8,
        .buffer = (uint8_t *)command->list_entry,
    };
    command->nvme->sub->stats.prp_lists++;
    nvme_dma_start(command->nvme, &command->list);
}

/* The next memory page; false: it is not known yet, or there is none. */
static bool next_page(struct nvme_command *command)
{
    uint64_t entry;
    if (command->list_n == 0) {
        entry = command->sqe.prp2;
        if (command->bytes_left > NVME_PAGE_BYTES) {
            if (entry % 8 == 0)
                list_read(command, entry);
            else
                command->status = NVME_SC_PRP_OFFSET_INVALID;
            return false;
        }
    } else {
        entry = command->list_entry[command->list_at++];
        if (command->list_at == command->list_n && command->bytes_left > NVME_PAGE_BYTES) {
            list_read(command, entry & ~UINT64_C(7));
            return false;
        }
    }
    if (entry % NVME_PAGE_BYTES != 0) {
        command->status = NVME_SC_PRP_OFFSET_INVALID;
        return false;
    }
    command->next_page = entry;
    return true;
}

static void pieces_start(struct nvme_command *command)
{
    /* The piece before ended at the end of a page, unless it is the first or ended at the end of a
     * page of the media. */
    while (command->bytes_left != 0 && command->status == NVME_SC_SUCCESS) {
        if (command->page_ended && !next_page(command))
            return;
        command->page_ended = false;
        piece_start(command);
        command->page_ended = command->next_page % NVME_PAGE_BYTES == 0;
    }
}

/* ---- Commands -------------------------------------------------------------------------------- */

static enum nvme_status check(struct nvme_command *command)
{
    const struct nvme_params *params = nvme_params(command->nvme);
    const struct nvme_sqe *sqe = &command->sqe;
    uint64_t first = (uint64_t)sqe->cdw11 << 32 | sqe->cdw10, n = (sqe->cdw12 & 0xffffu) + 1;
    uint64_t blocks = params->capacity_bytes / params->block_bytes;
    if (sqe->nsid == 0 || sqe->nsid > params->n_namespaces)
        return NVME_SC_INVALID_NAMESPACE;
    if (sqe->opcode == NVME_FLUSH)
        return NVME_SC_SUCCESS;
    if (first >= blocks || n > blocks - first)
        return NVME_SC_LBA_OUT_OF_RANGE;
    if (n * params->block_bytes > params->transfer_bytes_max)
        return NVME_SC_INVALID_FIELD;
    return sqe->prp1 % 4 == 0 ? NVME_SC_SUCCESS : NVME_SC_PRP_OFFSET_INVALID;
}

void nvme_io(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const struct nvme_sqe *sqe = &command->sqe;
    enum nvme_status status = check(command);
    if (sqe->opcode != NVME_READ && sqe->opcode != NVME_WRITE && sqe->opcode != NVME_FLUSH)
        status = NVME_SC_INVALID_OPCODE;
    if (status != NVME_SC_SUCCESS || sqe->opcode == NVME_FLUSH) {
        nvme_complete(command, status);
        return;
    }
    if (nvme_params(nvme)->payload == NVME_PAYLOAD_TAG && sqe->prp1 % LINE_BYTES != 0) {
        sim_fail(nvme_sim(nvme),
                 "%s: a buffer at %#llx, which is no cache line's begin, takes payload = \"bytes\"",
                 nvme->sub->model->name, (unsigned long long)sqe->prp1);
        return;
    }
    command->write = sqe->opcode == NVME_WRITE;
    command->status = NVME_SC_SUCCESS;
    command->namespace_idx = sqe->nsid - 1;
    command->media_offset = ((uint64_t)sqe->cdw11 << 32 | sqe->cdw10) *
                            nvme_params(nvme)->block_bytes;
    command->bytes_left = ((sqe->cdw12 & 0xffffu) + UINT64_C(1)) * nvme_params(nvme)->block_bytes;
    command->next_page = sqe->prp1;
    command->page_ended = false;
    command->list_n = 0;
    command->begin_ps = command->ready_ps = nvme_now(nvme);
    command->jitter_ps = 0;
    if (nvme_params(nvme)->jitter_ps != 0)
        command->jitter_ps = (sim_time)sim_random_exponential(&nvme->sub->model->random,
                                                              (double)nvme_params(nvme)->jitter_ps);
    command->n_pieces = 1; /* none may end it before all are under way */
    pieces_start(command);
    command->n_pieces--;
    consider_end(command);
}

static void send_part(struct nvme_command *command, uint64_t address, const uint8_t *from,
                      uint32_t bytes)
{
    struct nvme_piece *piece = piece_new(command, address, bytes, false);
    memcpy(piece->buffer, from, bytes);
    nvme_dma_start(command->nvme, &piece->dma);
}

void nvme_send_page(struct nvme_command *command, const uint8_t page[NVME_PAGE_BYTES])
{
    uint64_t prp1 = command->sqe.prp1, prp2 = command->sqe.prp2;
    uint32_t first = NVME_PAGE_BYTES - (uint32_t)(prp1 % NVME_PAGE_BYTES);
    if (prp1 % 4 != 0 || (first < NVME_PAGE_BYTES && prp2 % NVME_PAGE_BYTES != 0)) {
        nvme_complete(command, NVME_SC_PRP_OFFSET_INVALID);
        return;
    }
    command->write = false;
    command->status = NVME_SC_SUCCESS;
    command->bytes_left = 0;
    command->n_pieces = 1;
    send_part(command, prp1, page, first);
    if (first < NVME_PAGE_BYTES)
        send_part(command, prp2, page + first, NVME_PAGE_BYTES - first);
    command->n_pieces--;
    consider_end(command);
}
