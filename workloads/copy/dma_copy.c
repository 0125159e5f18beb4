/*
 * Copies by the host's DMA engine (I/OAT, DSA), as a kernel makes them: a message in pieces, which
 * are spread over channels in turn; a window of messages is issued, then waited for. The buffers
 * are mapped once, at the start: what a process pays beside, pinning and system calls, is not here.
 *
 * Timing: bandwidth is what was copied, over the time from the first message's first piece to the
 * last one's end; latency is that of a window. Messages move on through the buffers, and begin anew
 * at their ends. The source is stamped before; each message is checked at its destination, and
 * cleared there, which takes no time. The program runs on one CPU, which also takes the engine's
 * interrupts.
 */
#include <errno.h>
#include <string.h>

#include "models/base/payload.h"
#include "workloads/copy/copy_site.h"

enum completion { COMPLETION_POLL, COMPLETION_INTERRUPT };
static const char *const completion_names[] = { "poll", "interrupt", NULL };

struct dma_copy {
    /* parameters */
    struct copy_settings settings;
    uint32_t window;
    int completion;
    uint64_t message_bytes, piece_bytes, buffer_bytes, source_offset, destination_offset;
    bool fence;
    /* running */
    struct program *program;
    struct copy_site site;
    struct kernel *kernel;
    struct dma_channel *channel[ADMA_CHANNELS_MAX];
    dma_cookie last[ADMA_CHANNELS_MAX];
    unsigned n_channels, next_channel;
    struct kaddr source, destination;
    struct buffers { /* the addresses of an engine's device */
        uint64_t source, destination;
    } dma[ADMA_CHANNELS_MAX]; /* of each channel, or that which it shares them with */
    unsigned shares[ADMA_CHANNELS_MAX];
    uint64_t position; /* of the next message in the buffers */
    uint16_t stream;
    uint64_t copied, messages; /* measured */
    sim_time took_ps;
};

static const struct param_desc dma_copy_params[] = {
    COPY_HOST_PARAMS(struct dma_copy, settings),
    PARAM("message_bytes", PARAM_BYTES, struct dma_copy, message_bytes, 65536, 64, 1e9, PROV_NONE,
          "", "of a message"),
    PARAM("piece_bytes", PARAM_BYTES, struct dma_copy, piece_bytes, 4096, 64, 1048576, PROV_NONE,
          "", "of a descriptor at most"),
    PARAM("window", PARAM_U32, struct dma_copy, window, 1, 1, 128, PROV_NONE, "",
          "messages that are issued before the first is waited for"),
    PARAM("buffer_bytes", PARAM_BYTES, struct dma_copy, buffer_bytes, 16777216, 4096, 1e10,
          PROV_NONE, "", "of source and destination each; messages move on in them"),
    PARAM("source_offset", PARAM_BYTES, struct dma_copy, source_offset, 0, 0, 4095, PROV_NONE, "",
          "of each message from its place"),
    PARAM("destination_offset", PARAM_BYTES, struct dma_copy, destination_offset, 0, 0, 4095,
          PROV_NONE, "", "likewise"),
    PARAM_ONE_OF("completion", struct dma_copy, completion, COMPLETION_POLL, completion_names,
                 PROV_NONE, "", "how the program learns that copies are done"),
    PARAM("interrupt_delay_us", PARAM_U32, struct dma_copy, settings.engine.interrupt_delay_us, 0,
          0, 16383, PROV_NONE, "", "I/OAT 3.2: between interrupts of a channel"),
    PARAM("fence", PARAM_BOOL, struct dma_copy, fence, 0, 0, 1, PROV_NONE, "",
          "each piece waits for the data of the one before it"),
    { .type = PARAM_END },
};

static const struct record_desc dma_copy_records[] = {
    { "bandwidth_mbyte_s", RECORD_METRIC, "MB/s", "copied, over the time of the copies" },
    { "latency_us", RECORD_METRIC, "us", "a window of messages, issue to end" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void dma_copy_check(struct program *program, struct sim_error_list *errors)
{
    static const char *const interrupt_keys[] = { "interrupt_delay_us", NULL };
    struct dma_copy *p = program->state;
    p->program = program;
    p->settings.by = COPY_BY_ENGINE;
    p->n_channels = p->settings.channels;
    copy_site_check(&p->site, program, &p->settings, "by", "engine", errors);
    if (p->completion == COMPLETION_POLL)
        copy_no_effect(program, interrupt_keys, "completion", "completion = \"interrupt\"", errors);
    else if (p->site.engines != NULL &&
             !copy_engines_find(program->workload->world, p->site.host, &p->settings.engine)
                  .delays_interrupts)
        config_no_effect(program->group, interrupt_keys[0], "devices", errors,
                         "a host with an ioat.engine of version 3.2: it has no effect otherwise");
    if (p->message_bytes + 4096 > p->buffer_bytes)
        program_mistake(program, "message_bytes", errors, "at most buffer_bytes, less 4096 bytes",
                        NULL);
}

/* ---- The program ----------------------------------------------------------------------------- */

static int open_channels(struct dma_copy *p)
{
    return dma_channels_request(copy_engines_open(p->site.engines), NULL, DMA_SHARED, p->n_channels,
                                p->channel);
}

static bool no_memory(struct dma_copy *p)
{
    program_fail(p->program, "no memory for the buffers");
    return false;
}

static bool open_buffers(struct dma_copy *p)
{
    struct kernel *kernel = p->kernel;
    p->source = k_alloc(kernel, K_NODE_LOCAL, p->buffer_bytes, K_PAGE_BYTES);
    p->destination = k_alloc(kernel, K_NODE_LOCAL, p->buffer_bytes, K_PAGE_BYTES);
    if (p->source.v == 0 || p->destination.v == 0)
        return no_memory(p);
    payload_fill(kernel, p->source, payload_mark(p->stream, 0), p->buffer_bytes);
    for (unsigned i = 0; i < p->n_channels; i++) {
        struct k_device *device = dma_channel_device(p->channel[i]);
        unsigned *with = &p->shares[i];
        while (*with < i && !dma_channels_share(p->channel[*with], p->channel[i]))
            ++*with;
        if (*with == i && (k_dma_map(device, p->source, p->buffer_bytes, K_DMA_TO_DEVICE,
                                     &p->dma[i].source) != 0 ||
                           k_dma_map(device, p->destination, p->buffer_bytes, K_DMA_FROM_DEVICE,
                                     &p->dma[i].destination) != 0))
            return no_memory(p);
    }
    return true;
}

/* False: an engine does not take a piece at once. */
static bool pieces_fit(struct dma_copy *p)
{
    const uint64_t bytes = SIM_MIN(p->piece_bytes, p->message_bytes);
    for (unsigned i = 0; i < p->n_channels; i++) {
        const uint64_t most = dma_channel_limits(p->channel[i])->copy_bytes_max;
        if (bytes <= most)
            continue;
        program_fail(p->program,
                     "%s copies %llu bytes at most by a descriptor: a smaller piece_bytes?",
                     dma_channel_engine(p->channel[i]), (unsigned long long)most);
        return false;
    }
    return true;
}

static void issue_all(struct dma_copy *p)
{
    for (unsigned i = 0; i < p->n_channels; i++)
        dma_issue_pending(p->channel[i]);
}

static int put_piece(struct dma_copy *p, uint64_t at, uint64_t bytes)
{
    const unsigned flags = (p->completion == COMPLETION_INTERRUPT ? DMA_INTERRUPT : 0) |
                           (p->fence ? DMA_FENCE : 0);
    struct dma_channel *channel = p->channel[p->next_channel];
    const struct buffers *dma = &p->dma[p->shares[p->next_channel]];
    struct dma_descriptor *d;
    int status;
    while ((status = dma_prepare_copy(channel, dma->destination + p->destination_offset + at,
                                      dma->source + p->source_offset + at, bytes, flags, &d)) ==
           -EBUSY) {
        issue_all(p);
        k_compute(p->kernel, 1); /* another program may be about to look, or to issue */
    }
    if (status != 0)
        return status;
    p->last[p->next_channel] = dma_submit(d);
    p->next_channel = (p->next_channel + 1) % p->n_channels;
    return 0;
}

/* One window; its messages' places are at `place`. */
static int copy_window(struct dma_copy *p, uint64_t *place)
{
    const enum dma_wait_how how = p->completion == COMPLETION_POLL ? DMA_POLL : DMA_SLEEP;
    int status = 0;
    for (uint32_t m = 0; m < p->window && status == 0; m++) {
        if (p->position + p->message_bytes + 4096 > p->buffer_bytes)
            p->position = 0;
        place[m] = p->position;
        for (uint64_t at = 0; at < p->message_bytes && status == 0; at += p->piece_bytes)
            status = put_piece(p, place[m] + at, SIM_MIN(p->piece_bytes, p->message_bytes - at));
        issue_all(p);
        p->position += (p->message_bytes + 4095) & ~UINT64_C(4095);
    }
    for (unsigned i = 0; i < p->n_channels && status == 0; i++)
        if (p->last[i] != 0)
            status = dma_wait(p->channel[i], p->last[i], how, UINT64_MAX);
    return status;
}

/* All messages of the window have arrived. Their places are cleared then: when the buffers begin
 * anew, the same bytes come there again. Messages of one window that share a place have the same
 * bytes. */
static bool arrived(const struct dma_copy *p, const uint64_t *place)
{
    struct payload_difference difference;
    for (uint32_t m = 0; m < p->window; m++)
        if (!payload_check(p->kernel, kaddr_add(p->destination, place[m] + p->destination_offset),
                           payload_mark(p->stream, place[m] + p->source_offset), p->message_bytes,
                           &difference))
            return false;
    for (uint32_t m = 0; m < p->window; m++)
        payload_fill(p->kernel, kaddr_add(p->destination, place[m] + p->destination_offset), 0,
                     p->message_bytes);
    return true;
}

static void copy_all(struct dma_copy *p)
{
    struct kernel *kernel = p->kernel;
    while (!program_ending(p->program)) {
        uint64_t place[128];
        const uint64_t begin_ps = k_now_ps(kernel);
        const int status = copy_window(p, place);
        if (status != 0) {
            program_fail(p->program, "a copy failed: %s", strerror(-status));
            return;
        }
        if (!arrived(p, place)) {
            program_fail(p->program, "wrong bytes at the destination");
            return;
        }
        if (program_measuring(p->program)) {
            p->took_ps += k_now_ps(kernel) - begin_ps;
            p->copied += p->window * p->message_bytes;
            p->messages++;
        }
        program_operation_ended(p->program, begin_ps);
    }
}

static void close_buffers(struct dma_copy *p)
{
    for (unsigned i = 0; i < p->n_channels; i++) {
        struct k_device *device = dma_channel_device(p->channel[i]);
        if (p->dma[i].source != 0)
            k_dma_unmap(device, p->dma[i].source, p->buffer_bytes, K_DMA_TO_DEVICE);
        if (p->dma[i].destination != 0)
            k_dma_unmap(device, p->dma[i].destination, p->buffer_bytes, K_DMA_FROM_DEVICE);
    }
}

static void body(void *arg)
{
    struct dma_copy *p = arg;
    p->kernel = p->site.host->kernel;
    if (open_channels(p) != 0) {
        program_fail(p->program, "%s has no DMA engine with %u free channels", p->site.host->name,
                     p->n_channels);
    } else {
        if (pieces_fit(p) && open_buffers(p))
            copy_all(p);
        close_buffers(p);
        for (unsigned i = 0; i < p->n_channels; i++)
            dma_channel_release(p->channel[i]);
    }
    copy_site_close(&p->site);
    p->program->closing = false;
}

static void dma_copy_start(struct program *program)
{
    struct dma_copy *p = program->state;
    p->stream = program_new_stream(program);
    program->closing = true;
    program_lending_uses_cpu(program, p->site.host, p->settings.cpu);
    k_thread_new(p->site.host->kernel, "dma_copy", (int)p->settings.cpu, body, p);
}

static void dma_copy_measure(struct program *program)
{
    struct dma_copy *p = program->state;
    p->copied = p->messages = 0;
    p->took_ps = 0;
}

static void dma_copy_record(struct program *program, sim_time duration_ps)
{
    struct dma_copy *p = program->state;
    (void)duration_ps;
    if (!program_has_measured(program, "copy a window of messages"))
        return;
    if (p->messages == 0)
        return;
    program_metric(program, "bandwidth_mbyte_s", "MB/s",
                   (double)p->copied * 1e6 / (double)p->took_ps);
    program_metric(program, "latency_us", "us", (double)p->took_ps / 1e6 / (double)p->messages);
}

const struct program_ops program_dma_copy_ops = {
    .type = "dma_copy",
    .help = "copies by the host's DMA engine, in pieces over its channels",
    .state_bytes = sizeof(struct dma_copy),
    .params = dma_copy_params,
    .records = dma_copy_records,
    .check = dma_copy_check,
    .start = dma_copy_start,
    .measure = dma_copy_measure,
    .record = dma_copy_record,
};
