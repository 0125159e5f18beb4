/*
 * What it does: Pulls large messages: asks for a block of replies at a time, with a few blocks
 *   outstanding, and writes the replies into the region, by a CPU or by a copy engine. When the
 *   first block has come, it and all complete ones behind it make room for the next requests,
 *   before the last reply is copied. When another block is complete, those before it that are not
 *   are asked for again, whole and once; nothing new is asked for until they have come. When
 *   nothing has come for pull_resend_ps, all blocks of which something is missing are asked for
 *   again, whole, pull_resends_max times in a row.
 * Leaves out: what dev_queue_xmit() returns, as Open-MX does: a packet that the queue before the
 *   adapter drops is lost.
 * Follows: Open-MX 0.9.2 driver/linux/omx_pull.c (omx_progress_pull_on_recv_pull_reply_locked,
 *   omx_progress_pull_on_handle_timeout_handle_locked).
 * Costs: omx_pull_cycles and what a packet costs per request; of a reply, the pull's three lines,
 *   the lock of the endpoint's pulls, and the copy.
 */
#include "logic/openmx/openmx_internal.h"

static uint32_t bytes_of(const struct openmx_pull *pull, uint32_t frame)
{
    const uint32_t at = frame * pull->omx->options.reply_bytes;
    const uint32_t left = pull->bytes - at;
    return left < pull->omx->options.reply_bytes ? left : pull->omx->options.reply_bytes;
}

static struct kaddr line_of(const struct openmx_pull *pull, unsigned line)
{
    return kaddr_add(pull->lines, (uint64_t)line * K_LINE_BYTES);
}

/* Finds it under the endpoint's lock, looks at its timer, takes its lock. */
static void enter(struct openmx_pull *pull)
{
    struct kernel *kernel = pull->omx->kernel;
    const struct kaddr pulls = openmx_line(pull->port, OPENMX_LINE_PULLS);
    openmx_atomic(kernel, pulls, MX_ACCOUNT_PULL);
    openmx_atomic(kernel, line_of(pull, OPENMX_PULL_LINE_REFS), MX_ACCOUNT_PULL);
    openmx_atomic(kernel, pulls, MX_ACCOUNT_PULL);
    openmx_touch(kernel, line_of(pull, OPENMX_PULL_LINE_TIMER), 8, false, MX_ACCOUNT_PULL);
    openmx_atomic(kernel, line_of(pull, OPENMX_PULL_LINE_LOCK), MX_ACCOUNT_PULL);
}

/* Takes its lock once more when a reply has been copied, or given to an engine, and gives it up. */
static void leave(struct openmx_pull *pull)
{
    struct kernel *kernel = pull->omx->kernel;
    openmx_atomic(kernel, line_of(pull, OPENMX_PULL_LINE_LOCK), MX_ACCOUNT_PULL);
    openmx_atomic(kernel, line_of(pull, OPENMX_PULL_LINE_REFS), MX_ACCOUNT_PULL);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Frames [first, first + n). The pull must be held: time passes. */
static void request(struct openmx_pull *pull, uint32_t first, uint32_t n)
{
    struct openmx *omx = pull->omx;
    const uint32_t last = first + n - 1;
    const struct mx_pull_header h = {
        .common = { .type = MX_PACKET_PULL,
                    .destination_endpoint = pull->from.endpoint,
                    .source_endpoint = pull->port->port.id,
                    .generation = (uint8_t)pull->port->port.session,
                    .session = mx_be32(pull->from.session) },
        .total_bytes = mx_be32(pull->bytes),
        .region = pull->far_region,
        .region_sequence = pull->far_sequence,
        .frame_bytes = mx_be16((uint16_t)omx->options.reply_bytes),
        .handle = mx_be32(pull->generation * OPENMX_PULLS_MAX + pull->number),
        .magic = mx_be32(mx_magic(pull->port->port.id)),
        .block_offset = mx_be32(first * omx->options.reply_bytes),
        .block_bytes = mx_be32((last - first) * omx->options.reply_bytes + bytes_of(pull, last))
    };
    uint8_t nic[6];
    mx_nic_to_bytes(pull->from.nic_id, nic);
    k_run(omx->kernel, K_TEXT_OMX_PULL, omx->costs->omx_pull_cycles);
    openmx_transmit(omx, openmx_packet_new(omx, nic, &h, sizeof h));
}

/* A block more; false: all has been asked for, or there are enough. Charges no time. */
static bool next_block(struct openmx_pull *pull, struct openmx_block *block)
{
    const uint32_t left = pull->n_frames - pull->next_frame;
    const uint32_t most = pull->omx->options.replies_per_block;
    if (left == 0 || pull->n_blocks == pull->omx->options.blocks)
        return false;
    *block = (struct openmx_block){ .first = pull->next_frame, .n = left < most ? left : most };
    block->missing = block->n == 32 ? UINT32_MAX : (1u << block->n) - 1;
    pull->block[pull->n_blocks++] = *block;
    pull->next_frame += block->n;
    pull->omx->stats.blocks++;
    return true;
}

/* All of a block, as Open-MX does, of which something is missing. */
static void request_again(struct openmx_pull *pull, const struct openmx_block *block)
{
    pull->omx->stats.blocks_again++;
    request(pull, block->first, block->n);
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void timer_fires(struct k_timer *timer);
static void copies_worker(struct k_work *work);

/* The page that has the next new pull's lines; others may be at it at the same time. False: no
 * memory. */
static bool lines_get(struct openmx *omx)
{
    while (omx->n_pulls < OPENMX_PULLS_MAX &&
           omx->pull_lines[omx->n_pulls / OPENMX_PULLS_A_PAGE] == NULL) {
        struct k_page *page = k_page_alloc(omx->kernel, K_NODE_LOCAL, 0);
        if (page == NULL)
            return false;
        if (omx->n_pulls < OPENMX_PULLS_MAX &&
            omx->pull_lines[omx->n_pulls / OPENMX_PULLS_A_PAGE] == NULL)
            omx->pull_lines[omx->n_pulls / OPENMX_PULLS_A_PAGE] = page;
        else
            k_page_put(omx->kernel, page);
    }
    return omx->n_pulls < OPENMX_PULLS_MAX;
}

static struct openmx_pull *pull_get(struct openmx *omx)
{
    if (omx->free_pulls == NULL && !lines_get(omx))
        return NULL;
    struct openmx_pull *pull = omx->free_pulls; /* one may have become free */
    if (pull != NULL)
        omx->free_pulls = pull->next;
    else {
        const unsigned n = omx->n_pulls++;
        pull = k_zalloc(sizeof *pull);
        pull->omx = omx;
        pull->number = n;
        pull->lines =
            kaddr_add(omx->pull_lines[n / OPENMX_PULLS_A_PAGE]->addr,
                      (uint64_t)(n % OPENMX_PULLS_A_PAGE) * OPENMX_PULL_LINES * K_LINE_BYTES);
        omx->pull[n] = pull;
        k_timer_init(&pull->timer, omx->kernel, timer_fires);
        pull->work.fn = copies_worker;
    }
    pull->generation = (pull->generation + 1) & 0xfffffu;
    pull->used = true;
    pull->n_done = pull->next_frame = 0;
    pull->n_blocks = pull->n_again = pull->busy = pull->resends = 0;
    pull->ended = pull->silent = pull->waits = false;
    pull->channel = NULL;
    return pull;
}

/* Nobody works on it, and no engine does. */
static void pull_free(struct openmx_pull *pull)
{
    struct openmx *omx = pull->omx;
    struct openmx_port *port = pull->port;
    const bool silent = pull->silent;
    union mx_event event = { .type = MX_EVENT_PULLED };
    event.pulled.handle = pull->handle;
    event.pulled.bytes = pull->bytes;
    event.pulled.status = pull->status;
    k_timer_cancel(&pull->timer);
    openmx_region_put(pull->region);
    K_LIST_REMOVE(port->pulls, pull);
    omx->stats.pulls_failed += pull->status != MX_PULL_DONE;
    pull->used = false;
    pull->next = omx->free_pulls;
    omx->free_pulls = pull;
    openmx_touch(omx->kernel, openmx_line(port, OPENMX_LINE_PULLS), 8, true, MX_ACCOUNT_PULL);
    if (!silent)
        openmx_event_post(port, MX_QUEUE_EXPECTED, &event, NULL);
    if (port->pulls == NULL)
        k_wake(omx->kernel, &port->no_pulls);
    openmx_port_drop(port);
}

void openmx_pull_leave(struct openmx_pull *pull)
{
    if (pull->busy > 1 || !pull->ended) {
        pull->busy--;
        return;
    }
    /* The last one, which still holds it. */
    if (pull->copies != NULL && !openmx_copies_look(pull)) {
        pull->busy--;
        if (!pull->waits) {
            pull->waits = true;
            pull->omx->stats.engine_waits++;
            k_work_queue(pull->omx->kernel, &pull->work, K_CPU_ANY);
        }
        return;
    }
    if (--pull->busy == 0 && !pull->waits)
        pull_free(pull);
}

static void copies_worker(struct k_work *work)
{
    struct openmx_pull *pull = K_CONTAINER(work, struct openmx_pull, work);
    pull->busy++;
    openmx_copies_wait(pull);
    pull->waits = false;
    openmx_pull_leave(pull);
}

static void end(struct openmx_pull *pull, uint8_t status)
{
    if (!pull->ended)
        pull->status = status;
    pull->ended = true;
}

static void timer_fires(struct k_timer *timer)
{
    struct openmx_pull *pull = K_CONTAINER(timer, struct openmx_pull, timer);
    struct openmx *omx = pull->omx;
    const struct openmx_options *o = &omx->options;
    if (!pull->used || pull->ended)
        return;
    pull->busy++;
    if (k_now_ps(omx->kernel) >= pull->progress_ps + o->pull_resend_ps) {
        if (pull->resends++ >= o->pull_resends_max)
            end(pull, MX_PULL_TIMED_OUT);
        if (o->timed_out != NULL)
            o->timed_out(o->timed_out_context, pull->progress_ps, k_now_ps(omx->kernel));
        pull->progress_ps = k_now_ps(omx->kernel);
        pull->n_again = 0;
        for (unsigned i = 0; i < pull->n_blocks && !pull->ended; i++) {
            const struct openmx_block block = pull->block[i];
            if (block.missing != 0)
                request_again(pull, &block);
        }
    }
    if (!pull->ended)
        k_timer_set(timer, pull->progress_ps + o->pull_resend_ps);
    openmx_pull_leave(pull);
}

int openmx_pull_command(struct mx_port *p, const struct mx_pull_command *c)
{
    struct openmx_port *port = openmx_port_of(p);
    struct openmx *omx = port->omx;
    const uint32_t frame = omx->options.reply_bytes;
    openmx_enter(port, c->from.nic_id);
    struct openmx_region *region = openmx_region_get(port, c->local_region, 0, true);
    if (region == NULL || c->bytes == 0 || c->bytes > region->bytes) {
        if (region != NULL)
            openmx_region_put(region);
        return -EINVAL;
    }
    if (openmx_is_local(omx, c->from.nic_id)) {
        union mx_event event = { .type = MX_EVENT_PULLED };
        event.pulled.handle = c->handle;
        event.pulled.bytes = c->bytes;
        event.pulled.status = openmx_local_pull(port, region, c);
        openmx_region_put(region);
        openmx_event_post(port, MX_QUEUE_EXPECTED, &event, NULL);
        return 0;
    }
    struct openmx_pull *pull = pull_get(omx);
    if (pull == NULL) {
        openmx_region_put(region);
        return -ENOMEM;
    }
    omx->stats.pulls++;
    pull->port = port;
    port->refs++;
    pull->region = region;
    pull->from = c->from;
    pull->far_region = c->region;
    pull->far_sequence = c->region_sequence;
    pull->bytes = c->bytes;
    pull->handle = c->handle;
    pull->n_frames = (c->bytes + frame - 1) / frame;
    pull->progress_ps = k_now_ps(omx->kernel);
    pull->next = port->pulls;
    port->pulls = pull;
    if (omx->n_channels > 0 && c->bytes >= omx->options.ioat_message_bytes)
        pull->channel = omx->channel[omx->next_channel++ % omx->n_channels];
    pull->busy++;
    openmx_touch(omx->kernel, openmx_line(port, OPENMX_LINE_PULLS), 8, true, MX_ACCOUNT_PULL);
    enter(pull);
    struct openmx_block block;
    while (!pull->ended && next_block(pull, &block))
        request(pull, block.first, block.n);
    if (!pull->ended)
        k_timer_set(&pull->timer, pull->progress_ps + omx->options.pull_resend_ps);
    openmx_pull_leave(pull);
    return 0;
}

void openmx_pulls_close(struct openmx_port *port)
{
    struct openmx_pull *pull = port->pulls;
    while (pull != NULL) {
        if (pull->silent) {
            pull = pull->next;
            continue;
        }
        pull->busy++;
        end(pull, MX_PULL_REFUSED);
        pull->silent = true;
        openmx_pull_leave(pull);
        pull = port->pulls; /* time has passed */
    }
    while (port->pulls != NULL)
        k_wait(port->omx->kernel, &port->no_pulls, UINT64_MAX);
}

void openmx_pulls_free(struct openmx *omx)
{
    for (unsigned i = 0; i < omx->n_pulls; i++) {
        k_timer_release(&omx->pull[i]->timer);
        k_free(omx->pull[i]);
    }
    for (unsigned i = 0; i < OPENMX_PULLS_MAX / OPENMX_PULLS_A_PAGE && omx->pull_lines[i] != NULL;
         i++)
        k_page_put(omx->kernel, omx->pull_lines[i]);
}

/* ---- Replies --------------------------------------------------------------------------------- */

/* The pull of a handle on the wire, held; NULL: it is over. */
static struct openmx_pull *pull_of(struct openmx_port *port, uint32_t handle)
{
    struct openmx *omx = port->omx;
    const uint32_t number = handle % OPENMX_PULLS_MAX;
    struct openmx_pull *pull = number < omx->n_pulls ? omx->pull[number] : NULL;
    if (pull == NULL || !pull->used || pull->ended || pull->port != port ||
        pull->generation != handle / OPENMX_PULLS_MAX)
        return NULL;
    pull->busy++;
    return pull;
}

/* The block of which this frame is missing, and is not any more; NULL: it has come before. */
static struct openmx_block *claim(struct openmx_pull *pull, uint32_t frame)
{
    for (unsigned i = 0; i < pull->n_blocks; i++) {
        struct openmx_block *block = &pull->block[i];
        const uint32_t bit = frame - block->first;
        if (bit >= block->n || !(block->missing & 1u << bit))
            continue;
        block->missing &= ~(1u << bit);
        return block;
    }
    return NULL;
}

/* The first block is complete: takes off what is complete at the front. */
static void advance(struct openmx_pull *pull)
{
    unsigned n = 0;
    while (n < pull->n_blocks && pull->block[n].missing == 0)
        n++;
    pull->n_blocks -= n;
    pull->n_again -= n < pull->n_again ? n : pull->n_again;
    memmove(pull->block, pull->block + n, pull->n_blocks * sizeof *pull->block);
}

/* A block is complete: asks for the next ones if it was the first, else again for those before
 * it. */
static void block_done(struct openmx_pull *pull, const struct openmx_block *block)
{
    const unsigned index = (unsigned)(block - pull->block);
    struct openmx_block again[OPENMX_BLOCKS_MAX], next;
    unsigned n_again = 0;
    if (index == 0)
        advance(pull);
    for (unsigned i = pull->n_again; i < index; i++)
        if (pull->block[i].missing != 0) {
            again[n_again++] = pull->block[i];
            pull->n_again = i + 1;
        }
    /* Time passes from here on: blocks may move. */
    for (unsigned i = 0; i < n_again && !pull->ended; i++)
        request_again(pull, &again[i]);
    while (index == 0 && !pull->ended && next_block(pull, &next))
        request(pull, next.first, next.n);
    if (pull->copies != NULL)
        openmx_copies_look(pull);
}

static bool is_sound(const struct openmx_pull *pull, const struct sk_buff *skb, uint32_t offset,
                     uint32_t bytes)
{
    const uint32_t frame = offset / pull->omx->options.reply_bytes;
    return offset % pull->omx->options.reply_bytes == 0 && frame < pull->next_frame &&
           bytes == bytes_of(pull, frame) && bytes <= skb->bytes;
}

void openmx_pull_reply(struct openmx_port *port, struct sk_buff *skb,
                       const struct mx_reply_header *reply)
{
    struct openmx *omx = port->omx;
    const uint32_t offset = mx_be32(reply->offset), bytes = mx_be16(reply->bytes);
    struct openmx_pull *pull = pull_of(port, mx_be32(reply->handle));
    struct openmx_block *block = NULL;
    omx->stats.replies++;
    if (pull != NULL && is_sound(pull, skb, offset, bytes))
        block = claim(pull, offset / omx->options.reply_bytes);
    if (block == NULL) {
        omx->stats.duplicate_replies++;
        skb_free(omx->net, skb);
        if (pull != NULL)
            openmx_pull_leave(pull);
        return;
    }
    pull->progress_ps = omx->stats.reply_ps = k_now_ps(omx->kernel);
    pull->resends = 0;
    const bool complete = block->missing == 0;
    if (complete)
        block_done(pull, block);
    enter(pull);
    const struct openmx_data data = { .skb = skb, .bytes = bytes };
    if (pull->ended)
        skb_free(omx->net, skb);
    else if (pull->channel == NULL || bytes < omx->options.ioat_reply_bytes ||
             !openmx_copy_begin(pull, skb, 0, offset, bytes)) {
        openmx_region_write(pull->region, offset, &data);
        skb_free(omx->net, skb);
    }
    leave(pull);
    if (++pull->n_done == pull->n_frames)
        end(pull, MX_PULL_DONE);
    openmx_pull_leave(pull);
}

void openmx_pull_refused(struct openmx_port *port, const struct mx_nack_pull_header *nack)
{
    struct openmx_pull *pull = pull_of(port, mx_be32(nack->handle));
    if (pull == NULL)
        return;
    end(pull, MX_PULL_REFUSED);
    openmx_pull_leave(pull);
}
