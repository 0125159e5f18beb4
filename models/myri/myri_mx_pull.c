/*
 * Large messages of the firmware of Myrinet Express of myri.myri10g.
 *
 * Models: pulls: requests for blocks of 8 replies of 4096 bytes, four of them outstanding; replies
 *   written straight into the region of the process; the event behind the last of them. Answers to
 *   requests: replies read from the region. A block that is complete before an earlier one has that
 *   asked for again, once; what is missing when nothing has come for a second is asked for again,
 *   1000 times in a row. A pull that finds 1024 under way waits until one of them has ended.
 * Timing: the processor's time for each packet; a message of n bytes takes what the slowest of
 *   wire, link and processor takes for its replies, and a round trip before.
 * Sources: Open-MX 0.9.2, which emulates it (driver/linux/omx_pull.c): sizes and outstanding blocks
 *   are those of its wire-compatible mode.
 */
#include "models/myri/myri_mx.h"

#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES MX_REPLY_BYTES
#define RESEND_PS   (1000 * SIM_PS_PER_MS)
#define RESENDS_MAX 1000u

static uint32_t bytes_of(const struct mx_fw_pull *pull, uint32_t frame)
{
    return SIM_MIN(pull->request.bytes - frame * FRAME_BYTES, FRAME_BYTES);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Frames [first, first + n). */
static void ask(struct mx_fw_pull *pull, uint32_t first, uint32_t n)
{
    struct myri *nic = pull->nic;
    const struct myri_mx_request *r = &pull->request;
    const uint32_t last = first + n - 1;
    const struct mx_pull_header h = {
        .common = { .type = MX_PACKET_PULL,
                    .destination_endpoint = r->endpoint,
                    .source_endpoint = pull->endpoint->id,
                    .generation = (uint8_t)pull->endpoint->memory.session,
                    .session = mx_be32(r->session) },
        .total_bytes = mx_be32(r->bytes),
        .region = r->pull.region,
        .region_sequence = r->pull.region_sequence,
        .frame_bytes = mx_be16(FRAME_BYTES),
        .handle = mx_be32(pull->generation * MX_PULLS_MAX + pull->number),
        .magic = mx_be32(mx_magic(pull->endpoint->id)),
        .block_offset = mx_be32(first * FRAME_BYTES),
        .block_bytes = mx_be32((last - first) * FRAME_BYTES + bytes_of(pull, last))
    };
    mx_fw_submit(nic, mx_fw_packet(nic, r->nic, &h, sizeof(h)));
}

static void ask_again(struct mx_fw_pull *pull, const struct mx_fw_block *block)
{
    const unsigned first = (unsigned)__builtin_ctz(block->missing);
    const unsigned last = 31u - (unsigned)__builtin_clz(block->missing);
    ask(pull, block->first + first, last - first + 1);
}

/* As many blocks as may be outstanding. */
static void ask_next(struct mx_fw_pull *pull)
{
    while (pull->n_blocks < MX_BLOCKS_MAX && pull->next_frame < pull->n_frames) {
        const uint32_t n = SIM_MIN(pull->n_frames - pull->next_frame, MX_REPLIES_PER_BLOCK);
        pull->block[pull->n_blocks++] =
            (struct mx_fw_block){ .first = pull->next_frame, .n = n, .missing = (1u << n) - 1 };
        ask(pull, pull->next_frame, n);
        pull->next_frame += n;
    }
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void next_begins(struct myri *nic);

static void end(struct mx_fw_pull *pull, int status) /* enum mx_pull_status, or < 0: no event */
{
    struct myri *nic = pull->nic;
    union mx_event event = { .type = MX_EVENT_PULLED };
    event.pulled.handle = pull->request.pull.handle;
    event.pulled.bytes = pull->request.bytes;
    event.pulled.status = (uint8_t)status;
    if (status >= 0)
        mx_fw_post(nic, pull->endpoint, 1, &event);
    sim_cancel(nic->model->sim, &pull->timer);
    pull->endpoint = NULL;
    pull->next = nic->mx->free_pulls;
    nic->mx->free_pulls = pull;
    next_begins(nic);
}

static void timer_fired(struct sim *sim, struct sim_event *event)
{
    struct mx_fw_pull *pull = SIM_CONTAINER(event, struct mx_fw_pull, timer);
    if (sim_now(sim) >= pull->progress_ps + RESEND_PS) {
        if (pull->resends++ == RESENDS_MAX) {
            end(pull, MX_PULL_TIMED_OUT);
            return;
        }
        pull->progress_ps = sim_now(sim);
        for (unsigned i = 0; i < pull->n_blocks; i++) {
            pull->block[i].again = false;
            ask_again(pull, &pull->block[i]);
        }
    }
    sim_schedule(sim, event, pull->progress_ps + RESEND_PS);
}

static struct mx_fw_pull *pull_get(struct myri *nic)
{
    struct myri_mx *mx = nic->mx;
    struct mx_fw_pull *pull = mx->free_pulls;
    if (pull != NULL) {
        mx->free_pulls = pull->next;
    } else {
        if (mx->n_pulls == MX_PULLS_MAX)
            return NULL;
        pull = sim_zalloc(1, sizeof(*pull));
        pull->nic = nic;
        pull->number = mx->n_pulls;
        sim_event_init(&pull->timer, timer_fired);
        mx->pull[mx->n_pulls++] = pull;
    }
    pull->generation = (pull->generation + 1) & 0xfffffu;
    pull->next_frame = pull->n_done = 0;
    pull->n_blocks = pull->resends = 0;
    return pull;
}

static void begin(struct mx_fw_pull *pull, struct mx_fw_endpoint *endpoint,
                  const struct myri_mx_request *request)
{
    pull->endpoint = endpoint;
    pull->request = *request;
    pull->n_frames = (request->bytes + FRAME_BYTES - 1) / FRAME_BYTES;
    pull->progress_ps = myri_now(pull->nic);
    sim_schedule_in(pull->nic->model->sim, &pull->timer, RESEND_PS);
    ask_next(pull);
}

/* A pull has ended: the first that waits takes its place. */
static void next_begins(struct myri *nic)
{
    struct mx_fw_wait *wait = nic->mx->waiting;
    if (wait == NULL)
        return;
    nic->mx->waiting = wait->next;
    begin(pull_get(nic), wait->endpoint, &wait->request);
    free(wait);
}

static void wait_for_one(struct myri *nic, struct mx_fw_endpoint *endpoint,
                         const struct myri_mx_request *request)
{
    struct mx_fw_wait *wait = sim_zalloc(1, sizeof(*wait)), **link = &nic->mx->waiting;
    wait->endpoint = endpoint;
    wait->request = *request;
    while (*link != NULL)
        link = &(*link)->next;
    *link = wait;
}

void mx_fw_pull_begin(struct myri *nic, struct mx_fw_endpoint *endpoint,
                      const struct myri_mx_request *request)
{
    const struct mx_fw_region *region = endpoint->region[request->pull.local_region];
    if (region == NULL || region->closing || request->bytes == 0 ||
        request->bytes > region->bytes) {
        union mx_event event = { .type = MX_EVENT_PULLED };
        event.pulled.handle = request->pull.handle;
        event.pulled.status = MX_PULL_REFUSED;
        nic->stats.bad_requests++;
        mx_fw_post(nic, endpoint, 1, &event);
        return;
    }
    struct mx_fw_pull *pull = pull_get(nic);
    if (pull != NULL)
        begin(pull, endpoint, request);
    else
        wait_for_one(nic, endpoint, request);
}

static bool is_of(const struct mx_fw_endpoint *own, const struct myri_mx_request *request,
                  const struct mx_fw_endpoint *endpoint, int region)
{
    return (endpoint == NULL || own == endpoint) &&
           (region < 0 || request->pull.local_region == (uint8_t)region);
}

void mx_fw_pulls_end(struct myri *nic, const struct mx_fw_endpoint *endpoint, int region)
{
    for (struct mx_fw_wait **link = &nic->mx->waiting; *link != NULL;) {
        struct mx_fw_wait *wait = *link;
        if (!is_of(wait->endpoint, &wait->request, endpoint, region)) {
            link = &wait->next;
            continue;
        }
        *link = wait->next;
        free(wait);
    }
    for (unsigned i = 0; i < nic->mx->n_pulls; i++) {
        struct mx_fw_pull *pull = nic->mx->pull[i];
        if (pull->endpoint != NULL && is_of(pull->endpoint, &pull->request, endpoint, region))
            end(pull, -1);
    }
}

void mx_fw_pulls_release(struct myri *nic)
{
    for (unsigned i = 0; i < nic->mx->n_pulls; i++) {
        sim_cancel(nic->model->sim, &nic->mx->pull[i]->timer);
        free(nic->mx->pull[i]);
    }
}

/* ---- Replies --------------------------------------------------------------------------------- */

/* NULL: it is over. */
static struct mx_fw_pull *pull_of(const struct myri *nic, const struct mx_fw_endpoint *endpoint,
                                  uint32_t handle)
{
    const uint32_t number = handle % MX_PULLS_MAX;
    struct mx_fw_pull *pull = number < nic->mx->n_pulls ? nic->mx->pull[number] : NULL;
    const bool is_it = pull != NULL && pull->endpoint == endpoint &&
                       pull->generation == handle / MX_PULLS_MAX;
    return is_it ? pull : NULL;
}

/* The block that misses the frame, which it does not any more; NULL: none. */
static struct mx_fw_block *claim(struct mx_fw_pull *pull, uint32_t frame)
{
    for (unsigned i = 0; i < pull->n_blocks; i++) {
        struct mx_fw_block *block = &pull->block[i];
        const uint32_t at = frame - block->first;
        if (at < block->n && (block->missing & 1u << at) != 0) {
            block->missing &= ~(1u << at);
            return block;
        }
    }
    return NULL;
}

static void block_done(struct mx_fw_pull *pull, const struct mx_fw_block *block)
{
    const unsigned index = (unsigned)(block - pull->block);
    for (unsigned i = 0; i < index; i++) {
        if (!pull->block[i].again)
            ask_again(pull, &pull->block[i]);
        pull->block[i].again = true;
    }
    memmove(pull->block + index, pull->block + index + 1,
            (pull->n_blocks - index - 1) * sizeof(*block));
    pull->n_blocks--;
    ask_next(pull);
}

void mx_fw_pull_reply(struct myri *nic, struct mx_fw_endpoint *endpoint, struct myri_rx *rx)
{
    struct mx_reply_header h;
    struct myri_piece piece[MYRI_PIECES_MAX];
    memcpy(&h, rx->frame->header + MX_HEAD_BYTES, sizeof(h));
    const uint32_t offset = mx_be32(h.offset), bytes = mx_be16(h.bytes);
    const uint32_t frame = offset / FRAME_BYTES;
    struct mx_fw_pull *pull = pull_of(nic, endpoint, mx_be32(h.handle));
    struct mx_fw_block *block = NULL;
    if (pull != NULL && offset % FRAME_BYTES == 0 && frame < pull->n_frames &&
        bytes == bytes_of(pull, frame) && bytes <= rx->frame->payload.bytes)
        block = claim(pull, frame);
    if (block == NULL) { /* it came before, or is nobody's */
        myri_rx_taken(rx);
        return;
    }
    pull->progress_ps = myri_now(nic);
    pull->resends = 0;
    if (block->missing == 0)
        block_done(pull, block);
    const struct mx_fw_region *region = endpoint->region[pull->request.pull.local_region];
    const unsigned n = mx_fw_pieces(region, offset, bytes, piece, MYRI_PIECES_MAX);
    if (n == 0) {
        myri_rx_drop(rx);
        end(pull, MX_PULL_REFUSED);
        return;
    }
    myri_rx_write(rx, piece, n, false, 0);
    if (++pull->n_done == pull->n_frames)
        end(pull, MX_PULL_DONE); /* the event follows the data */
}

void mx_fw_pull_refused(struct myri *nic, struct mx_fw_endpoint *endpoint,
                        const struct mx_nack_pull_header *nack)
{
    struct mx_fw_pull *pull = pull_of(nic, endpoint, mx_be32(nack->handle));
    if (pull != NULL)
        end(pull, MX_PULL_REFUSED);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* False: the bytes are in too many pieces. */
static bool reply(struct myri *nic, struct mx_fw_endpoint *endpoint, const struct ether_frame *to,
                  const struct mx_pull_header *request, uint32_t offset, uint32_t bytes)
{
    const uint32_t frame_bytes = mx_be16(request->frame_bytes);
    const struct mx_reply_header h = { .type = MX_PACKET_PULL_REPLY,
                                       .frame = (uint8_t)(offset / frame_bytes),
                                       .bytes = mx_be16((uint16_t)bytes),
                                       .offset = mx_be32(offset),
                                       .handle = request->handle,
                                       .magic = request->magic };
    struct myri_piece piece[MYRI_SEND_MAX];
    const unsigned n = mx_fw_pieces(endpoint->region[request->region], offset, bytes, piece,
                                    MYRI_SEND_MAX);
    if (n == 0)
        return false;
    struct myri_tx *tx = mx_fw_packet(nic, to->header + offsetof(struct mx_head, source), &h,
                                      sizeof(h));
    for (unsigned i = 0; i < n; i++) {
        tx->segment[i].iova = piece[i].iova;
        tx->segment[i].bytes = piece[i].bytes;
    }
    tx->n_segments = (uint8_t)n;
    tx->bytes += bytes;
    mx_fw_hold_region(tx, endpoint, request->region);
    mx_fw_submit(nic, tx);
    return true;
}

void mx_fw_pull_answer(struct myri *nic, struct mx_fw_endpoint *endpoint, struct myri_rx *rx)
{
    struct mx_pull_header h;
    memcpy(&h, rx->frame->header + MX_HEAD_BYTES, sizeof(h));
    const uint32_t offset = mx_be32(h.block_offset), bytes = mx_be32(h.block_bytes);
    const uint32_t frame_bytes = mx_be16(h.frame_bytes);
    const struct mx_fw_region *region = endpoint->region[h.region];
    enum mx_nack nack = MX_NACK_NONE;
    if (mx_be32(h.common.session) != endpoint->memory.session)
        nack = MX_NACK_BAD_SESSION;
    else if (region == NULL || region->closing || region->sequence != h.region_sequence ||
             (uint64_t)offset + bytes > region->bytes || frame_bytes == 0 ||
             frame_bytes > MX_REPLY_BYTES_JUMBO || offset % frame_bytes != 0 ||
             bytes > 32 * frame_bytes)
        nack = MX_NACK_BAD_REGION;
    for (uint32_t done = 0; nack == MX_NACK_NONE && done < bytes; done += frame_bytes)
        if (!reply(nic, endpoint, rx->frame, &h, offset + done, SIM_MIN(bytes - done, frame_bytes)))
            nack = MX_NACK_BAD_REGION;
    if (nack != MX_NACK_NONE)
        mx_fw_refuse(nic, rx->frame, nack);
    myri_rx_taken(rx);
}
