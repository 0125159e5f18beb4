/*
 * Data of commands, between memory and the media or the command itself.
 *
 * Models: data in pieces that end at memory pages (PRP) or descriptors (SGL) and at media pages, by
 *   memory writes and reads at the sizes of the configuration; data in the controller memory
 *   buffer, without the link.
 * Does not model: metadata. With payload = "tag" buffers begin on cache lines.
 * Timing: a read's media begin with the command; a page is sent as soon as it is ready and its
 *   place known. A write's pages are asked for at once, and complete write_latency after the last;
 *   of a compare the media are read from the command's begin on, beside the host's data.
 * Sources: NVM Express 1.3, sections 4.3, 4.4, 6.
 */
#include <string.h>

#include "models/nvme/nvme_internal.h"

/* ---- The end --------------------------------------------------------------------------------- */

static void media_done(struct sim *sim, struct sim_event *event)
{
    struct nvme_command *command = SIM_CONTAINER(event, struct nvme_command, event);
    (void)sim;
    nvme_complete(command, (enum nvme_status)command->status);
}

static void count(struct nvme_command *command)
{
    struct nvme_stats *stats = &command->nvme->sub->stats;
    if (command->data == NVME_DATA_WRITE) {
        stats->writes++;
        stats->write_bytes += command->bytes;
        command->nvme->health.written_bytes += command->bytes;
        command->nvme->health.writes++;
    } else if (command->data == NVME_DATA_READ || command->data == NVME_DATA_COMPARE) {
        stats->reads += command->data == NVME_DATA_READ;
        stats->compares += command->data == NVME_DATA_COMPARE;
        stats->read_bytes += command->data == NVME_DATA_READ ? command->bytes : 0;
        command->nvme->health.read_bytes += command->bytes;
        command->nvme->health.reads++;
    }
}

void nvme_data_end(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    if (command->n_pieces != 0 || command->list_pending ||
        (command->bytes_left != 0 && command->status == NVME_SC_SUCCESS && nvme_running(nvme)))
        return;
    if (command->status != NVME_SC_SUCCESS || !nvme_running(nvme)) {
        nvme_complete(command, (enum nvme_status)command->status);
        return;
    }
    count(command);
    switch (command->data) {
    case NVME_DATA_WRITE:
    case NVME_DATA_COMPARE:
        command->step = NVME_ENDS;
        sim_event_init(&command->event, media_done);
        sim_schedule(nvme_sim(nvme), &command->event, SIM_MAX(command->ready_ps, nvme_now(nvme)));
        break;
    case NVME_DATA_TAKE: command->taken(command); break;
    case NVME_DATA_READ:
    case NVME_DATA_SEND: nvme_complete(command, NVME_SC_SUCCESS); break;
    }
}

static void piece_ends(struct nvme_piece *piece, enum pcie_dma_status status)
{
    struct nvme_command *command = piece->command;
    if (status != PCIE_DMA_OK && command->status == NVME_SC_SUCCESS) {
        command->status = NVME_SC_DATA_TRANSFER_ERROR;
        command->location = NVME_AT(prp1, 0);
    }
    *piece->from = piece->next;
    if (piece->next != NULL)
        piece->next->from = piece->from;
    command->n_pieces--;
    sim_pool_put(command->nvme->sub->pieces, piece);
    nvme_data_end(command);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static void piece_sent(struct nvme_dma *dma, enum pcie_dma_status status)
{
    piece_ends(SIM_CONTAINER(dma, struct nvme_piece, dma), status);
}

static void piece_ready(struct sim *sim, struct sim_event *event)
{
    struct nvme_piece *piece = SIM_CONTAINER(event, struct nvme_piece, event);
    struct nvme_command *command = piece->command;
    (void)sim;
    piece->waits = false;
    if (!nvme_running(command->nvme) || command->status != NVME_SC_SUCCESS) {
        piece_ends(piece, PCIE_DMA_ABORTED);
        return;
    }
    if (!nvme_media_load(command->nvme->sub, piece, piece->buffer)) {
        command->status = NVME_SC_UNRECOVERED_READ;
        command->location = NVME_AT(cdw10, 0);
        command->nvme->health.media_errors++;
        piece_ends(piece, PCIE_DMA_OK);
        return;
    }
    nvme_dma_start(command->nvme, &piece->dma);
}

/* Bytes from the host have come. */
static void piece_taken(struct nvme_dma *dma, enum pcie_dma_status status)
{
    struct nvme_piece *piece = SIM_CONTAINER(dma, struct nvme_piece, dma);
    struct nvme_command *command = piece->command;
    struct nvme *nvme = command->nvme;
    enum nvme_status found = NVME_SC_SUCCESS;
    sim_time ready_ps;
    if (status == PCIE_DMA_OK && nvme_running(nvme) && command->data == NVME_DATA_TAKE) {
        if (piece->offset < NVME_PAGE_BYTES)
            memcpy(command->page + piece->offset, piece->buffer, piece->bytes);
    } else if (status == PCIE_DMA_OK && nvme_running(nvme)) {
        ready_ps = nvme_media_ready(nvme->sub, command, piece->offset, piece->bytes);
        command->ready_ps = SIM_MAX(command->ready_ps, ready_ps);
        if (command->data == NVME_DATA_WRITE)
            nvme_media_store(nvme->sub, piece);
        else
            found = nvme_media_compare(nvme->sub, piece);
    }
    if (found != NVME_SC_SUCCESS && command->status == NVME_SC_SUCCESS) {
        command->status = (uint16_t)found;
        command->location = NVME_AT(cdw10, 0);
        nvme->health.media_errors += found == NVME_SC_UNRECOVERED_READ;
    }
    piece_ends(piece, status);
}

static struct nvme_piece *piece_new(struct nvme_command *command, uint32_t bytes)
{
    struct nvme_piece *piece = sim_pool_get(command->nvme->sub->pieces);
    const bool media = command->data != NVME_DATA_SEND && command->data != NVME_DATA_TAKE;
    piece->command = command;
    piece->waits = false;
    piece->next = command->pieces;
    piece->from = &command->pieces;
    if (piece->next != NULL)
        piece->next->from = &piece->next;
    command->pieces = piece;
    piece->offset = command->offset;
    piece->bytes = bytes;
    piece->dma.write = !nvme_from_host(command);
    piece->dma.done = nvme_from_host(command) ? piece_taken : piece_sent;
    piece->dma.request = (struct pcie_dma_request){
        .iova = { command->address },
        .bytes = bytes,
        .buffer = piece->buffer,
        .bulk = media && nvme_params(command->nvme)->payload == NVME_PAYLOAD_TAG,
        .whole_lines = true,
        .independent = nvme_from_host(command), /* has nothing to do with other reads' data */
    };
    command->n_pieces++;
    return piece;
}

static void piece_start(struct nvme_command *command, uint64_t bytes)
{
    struct nvme *nvme = command->nvme;
    bytes = SIM_MIN(bytes, NVME_PAGE_BYTES - command->offset % NVME_PAGE_BYTES);
    struct nvme_piece *piece = piece_new(command, (uint32_t)bytes);
    nvme_list_used(command, bytes);
    command->offset += bytes;
    command->bytes_left -= bytes;
    if (nvme_from_host(command)) {
        nvme_dma_start(nvme, &piece->dma);
    } else if (command->data == NVME_DATA_SEND) {
        if (piece->offset < NVME_PAGE_BYTES)
            memcpy(piece->buffer, command->page + piece->offset, bytes);
        else
            memset(piece->buffer, 0, bytes);
        nvme_dma_start(nvme, &piece->dma);
    } else {
        sim_time ready_ps = nvme_media_ready(nvme->sub, command, piece->offset, piece->bytes);
        piece->waits = true;
        sim_event_init(&piece->event, piece_ready);
        sim_schedule(nvme_sim(nvme), &piece->event, SIM_MAX(ready_ps, nvme_now(nvme)));
    }
}

/* Tags stand for whole cache lines. False: the run has failed. */
static bool lines_agree(struct nvme_command *command, uint64_t bytes)
{
    const struct nvme *nvme = command->nvme;
    if (nvme_params(nvme)->payload != NVME_PAYLOAD_TAG || command->data == NVME_DATA_SEND ||
        command->data == NVME_DATA_TAKE ||
        (command->address % LINE_BYTES == 0 && command->offset % LINE_BYTES == 0 &&
         (bytes % LINE_BYTES == 0 || bytes == command->bytes_left)))
        return true;
    sim_fail(nvme_sim(nvme),
             "%s: a buffer at %#llx, which is no cache line's begin, takes payload = \"bytes\"",
             nvme->sub->model->name, (unsigned long long)command->address);
    return false;
}

void nvme_data_continue(struct nvme_command *command)
{
    while (command->bytes_left != 0 && command->status == NVME_SC_SUCCESS) {
        uint64_t bytes = nvme_list_next(command);
        if (bytes == 0 || !lines_agree(command, bytes))
            return;
        piece_start(command, bytes);
    }
}

/* ---- Abort ----------------------------------------------------------------------------------- */

void nvme_data_abort(struct nvme_command *command)
{
    struct nvme_piece *piece, *next;
    if (command->status == NVME_SC_SUCCESS)
        command->status = NVME_SC_ABORT_REQUESTED;
    command->n_pieces++; /* none may end it before all that wait have ended */
    for (piece = command->pieces; piece != NULL; piece = next) {
        next = piece->next;
        if (piece->waits) {
            sim_cancel(nvme_sim(command->nvme), &piece->event);
            piece_ends(piece, PCIE_DMA_OK);
        }
    }
    command->n_pieces--;
    nvme_data_end(command);
}

/* ---- Begin ----------------------------------------------------------------------------------- */

static void begin(struct nvme_command *command, enum nvme_data data, uint64_t offset,
                  uint64_t bytes)
{
    command->data = data;
    command->offset = offset;
    command->bytes = command->bytes_left = bytes;
    command->status = NVME_SC_SUCCESS;
    command->n_pieces = 1; /* none may end it before all are under way */
    if (nvme_list_begin(command))
        nvme_data_continue(command);
    command->n_pieces--;
    nvme_data_end(command);
}

void nvme_data_media(struct nvme_command *command, enum nvme_data data, uint64_t offset,
                     uint64_t bytes)
{
    struct nvme *nvme = command->nvme;
    command->begin_ps = command->ready_ps = nvme_now(nvme);
    command->jitter_ps = 0;
    if (nvme_params(nvme)->jitter_ps != 0)
        command->jitter_ps = (sim_time)sim_random_exponential(&nvme->sub->model->random,
                                                              (double)nvme_params(nvme)->jitter_ps);
    begin(command, data, offset, bytes);
}

void nvme_data_update(struct nvme_command *command)
{
    command->step = NVME_ENDS;
    command->status = NVME_SC_SUCCESS;
    sim_event_init(&command->event, media_done);
    sim_schedule_in(nvme_sim(command->nvme), &command->event, nvme_params(command->nvme)->write_ps);
}

uint8_t *nvme_data_page(struct nvme_command *command)
{
    if (command->page == NULL) {
        command->page = sim_pool_get(command->nvme->sub->data_pages);
        memset(command->page, 0, NVME_PAGE_BYTES);
    }
    return command->page;
}

void nvme_data_send(struct nvme_command *command, uint64_t offset, uint64_t bytes)
{
    begin(command, NVME_DATA_SEND, offset, bytes);
}

void nvme_data_take(struct nvme_command *command, uint64_t bytes,
                    void (*taken)(struct nvme_command *command))
{
    command->taken = taken;
    nvme_data_page(command);
    begin(command, NVME_DATA_TAKE, 0, bytes);
}
