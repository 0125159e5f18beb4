/*
 * Copies by the DMA engine of a bridge, one after the other, as SISCI's benchmark makes them: a
 * call starts one, another waits for its interrupt. Between memory of a host, or of its GPU, and
 * a segment of shared memory of another, or of a GPU that it has borrowed from there.
 *
 * Timing: throughput is that of a copy from the call that starts it until the one that waits
 * returns, over `transfers` of them. The source of each is stamped anew before, and every line
 * checked at its destination after, both without time; writes into the other host are given
 * SETTLE_PS to arrive, which does not count. The program runs on CPU 0.
 */
#include <stdio.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "logic/lending/ntb_dmaengine.h"
#include "models/base/payload.h"
#include "models/gpu/gpu.h"
#include "workloads/programs/program.h"

#define SEGMENT      0x1000u /* and the program's number */
#define SETTLE_PS    (50 * SIM_PS_PER_US)
#define SETTLE_TRIES 20u /* until they have come over cables of 0.1 ms */
#define LOOK_PS      SIM_PS_PER_US
#define WARM_UPS     1u
#define RAM          "ram"

enum direction { DIRECTION_WRITE, DIRECTION_READ };
static const char *const direction_names[] = { "write", "read", NULL };
enum completion { COMPLETION_INTERRUPT, COMPLETION_POLL };
static const char *const completion_names[] = { "interrupt", "poll", NULL };

/* One end of the copies. */
struct place {
    const char *name; /* "ram", or a device */
    /* RAM: */
    struct kernel *kernel;
    struct kaddr at;
    /* A GPU: */
    struct model *model;
    struct gpu_drv *gpu;
    uint64_t offset;  /* in its memory */
    uint64_t address; /* for the engine */
};

/* A host's engine; kept by the first program that uses it. */
struct engine {
    struct lend_dma *dma;
    bool ready; /* the driver has been registered */
    unsigned n_users;
};

struct ntb_dma_program {
    /* parameters */
    const char *on_name, *peer_name;
    struct place local, remote;
    int direction, completion;
    uint64_t transfer_bytes;
    uint32_t transfers;
    /* running */
    struct program *program;
    struct lending_host *on, *peer;
    struct engine *engine; /* of the host, which all such programs on it share */
    struct lend_dma *dma;  /* of it */
    unsigned channel;      /* its own */
    struct lend_remote segment;
    bool segment_there, segment_refused, connected, admitted, done;
    bool local_open, remote_open;
    struct engine own_engine;
    uint16_t stream;
    uint64_t copied, took_ps; /* measured */
};

static const struct param_desc ntb_dma_params[] = {
    PARAM_TEXT("on", struct ntb_dma_program, on_name, "", "the host whose bridge copies"),
    PARAM_TEXT("peer", struct ntb_dma_program, peer_name, "", "the host at the other end"),
    PARAM_TEXT("local", struct ntb_dma_program, local.name, RAM,
               "\"ram\", or a GPU of the host's own"),
    PARAM_TEXT("remote", struct ntb_dma_program, remote.name, RAM,
               "\"ram\", or a GPU that the host borrows from `peer`"),
    PARAM_ONE_OF("direction", struct ntb_dma_program, direction, DIRECTION_WRITE, direction_names,
                 PROV_NONE, "", "write: to the other end, read: from it"),
    PARAM_ONE_OF("completion", struct ntb_dma_program, completion, COMPLETION_INTERRUPT,
                 completion_names, PROV_NONE, "", "how the program learns that a copy is done"),
    PARAM("transfer_bytes", PARAM_BYTES, struct ntb_dma_program, transfer_bytes, 65536, 64,
          LEND_DMA_BYTES_MAX & ~63u, PROV_NONE, "", "of a copy; whole cache lines"),
    PARAM("transfers", PARAM_U32, struct ntb_dma_program, transfers, 10, 1, 100000, PROV_NONE, "",
          "copies that are measured"),
    { .type = PARAM_END },
};

static const struct record_desc ntb_dma_records[] = {
    { "throughput_gbyte_s", RECORD_METRIC, "GB/s",
      "bytes copied, over the time of the copies alone" },
    { "transfer_us", RECORD_METRIC, "us", "one copy, as the program sees it" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* ---- Checks ---------------------------------------------------------------------------------- */

static bool is_ram(const struct place *place)
{
    return strcmp(place->name, RAM) == 0;
}

static void check_place(struct program *program, const char *key, struct place *place,
                        struct sim_error_list *errors)
{
    struct ntb_dma_program *p = program->state;
    if (is_ram(place))
        return;
    place->model = program_device(program, key, p->on, place->name, &gpu_ops, errors);
    if (place->model == NULL)
        return;
    if (lending_lender(program->lending, place->name) != (place == &p->remote ? p->peer : NULL))
        program_mistake(program, key, errors,
                        place == &p->remote ? "a GPU that the host borrows from `peer`"
                                            : "a GPU of the host's own",
                        NULL);
}

static void ntb_dma_check(struct program *program, struct sim_error_list *errors)
{
    struct ntb_dma_program *p = program->state;
    p->program = program;
    p->on = program_member(program, "on", p->on_name, true, errors);
    p->peer = program_member(program, "peer", p->peer_name, true, errors);
    if (p->on == NULL || p->peer == NULL)
        return;
    p->channel = (unsigned)program_take(program, p->on, "DMA channel", 1);
    if (p->on == p->peer)
        program_mistake(program, "peer", errors, "another host than `on`", NULL);
    if (p->transfer_bytes % LINE_BYTES != 0)
        program_mistake(program, "transfer_bytes", errors, "a multiple of 64 bytes", NULL);
    check_place(program, "local", &p->local, errors);
    check_place(program, "remote", &p->remote, errors);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static void stamp(const struct ntb_dma_program *p, const struct place *place, uint64_t tag)
{
    if (place->model != NULL)
        gpu_memory_stamp(place->model, place->offset, tag, p->transfer_bytes);
    else
        payload_fill(place->kernel, place->at, tag, p->transfer_bytes);
}

static bool holds(const struct ntb_dma_program *p, const struct place *place, uint64_t tag,
                  struct payload_difference *is)
{
    return place->model != NULL
               ? gpu_memory_check(place->model, place->offset, tag, p->transfer_bytes, is)
               : payload_check(place->kernel, place->at, tag, p->transfer_bytes, is);
}

static uint32_t segment(const struct ntb_dma_program *p)
{
    return SEGMENT + program_number(p->program);
}

static enum k_dma_direction dma_direction(const struct ntb_dma_program *p,
                                          const struct place *place)
{
    bool source = (place == &p->local) == (p->direction == DIRECTION_WRITE);
    return source ? K_DMA_TO_DEVICE : K_DMA_FROM_DEVICE;
}

/* Memory that others can reach; the first of it where no driver of the host has the device, as
 * of one whose base address the other host has merely exported. */
static int open_gpu(struct ntb_dma_program *p, struct place *place)
{
    struct k_pci_dev *dev = lending_device(p->on, place->name);
    int status = 0;
    if (dev == NULL)
        return -1;
    place->gpu = gpu_of(dev);
    if (place->gpu != NULL)
        status = gpu_alloc(place->gpu, p->transfer_bytes, &place->offset);
    if (status != 0)
        return status;
    return k_dma_map_resource(lend_dma_device(p->dma), &dev->device, GPU_MEMORY_BAR, place->offset,
                              p->transfer_bytes, dma_direction(p, place), &place->address);
}

static void close_gpu(struct ntb_dma_program *p, struct place *place)
{
    k_dma_unmap_resource(lend_dma_device(p->dma), place->address, p->transfer_bytes,
                         dma_direction(p, place));
    if (place->gpu != NULL)
        gpu_free(place->gpu, place->offset);
}

static int open_local(struct ntb_dma_program *p)
{
    static const uint8_t zeros[K_PAGE_BYTES];
    struct place *place = &p->local;
    if (place->model != NULL)
        return open_gpu(p, place);
    place->kernel = p->on->kernel;
    place->at = k_alloc(place->kernel, K_NODE_LOCAL, p->transfer_bytes, K_PAGE_BYTES);
    if (place->at.v == 0)
        return -1;
    /* As the kernel hands out a process's memory, and as a segment's. */
    for (uint64_t i = 0; i < p->transfer_bytes; i += K_PAGE_BYTES)
        k_store(place->kernel, kaddr_add(place->at, i), zeros,
                SIM_MIN(p->transfer_bytes - i, K_PAGE_BYTES));
    return k_dma_map(lend_dma_device(p->dma), place->at, p->transfer_bytes, dma_direction(p, place),
                     &place->address);
}

static int open_remote(struct ntb_dma_program *p, struct lend_error *error)
{
    struct place *place = &p->remote;
    if (place->model != NULL)
        return open_gpu(p, place);
    while (!p->segment_there && !p->segment_refused)
        k_sleep(p->on->kernel, LOOK_PS);
    if (p->segment_refused)
        return -1;
    lend_discover(p->on->lend);
    int status = lend_segment_connect(p->on->lend, p->peer->number, segment(p), &p->segment, error);
    if (status != 0)
        return status;
    p->connected = true;
    place->address = p->segment.map.address;
    status = lend_dma_allow(p->dma, &p->segment, error);
    p->admitted = status == 0;
    return status;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* One copy, as a process makes it. */
static int copy(struct ntb_dma_program *p)
{
    struct kernel *kernel = p->on->kernel;
    const struct place *from = p->direction == DIRECTION_WRITE ? &p->local : &p->remote;
    const struct place *to = p->direction == DIRECTION_WRITE ? &p->remote : &p->local;
    bool poll = p->completion == COMPLETION_POLL;
    int status;
    k_syscall(kernel);
    int64_t cookie = lend_dma_submit(p->dma, p->channel, from->address, to->address,
                                     p->transfer_bytes, poll ? 0 : LEND_DMA_NOTIFY);
    if (cookie < 0)
        return (int)cookie;
    lend_dma_issue(p->dma, p->channel);
    k_syscall(kernel);
    if (!poll)
        return lend_dma_wait(p->dma, p->channel, cookie);
    while ((status = lend_dma_poll(p->dma, p->channel, cookie)) == 0)
        ;
    return status < 0 ? status : 0;
}

static bool checked_copy(struct ntb_dma_program *p, unsigned number, bool counts)
{
    struct kernel *kernel = p->on->kernel;
    const struct place *from = p->direction == DIRECTION_WRITE ? &p->local : &p->remote;
    const struct place *to = p->direction == DIRECTION_WRITE ? &p->remote : &p->local;
    uint64_t tag = payload_mark(p->stream, (uint64_t)number * p->transfer_bytes);
    struct payload_difference is;
    stamp(p, from, tag);
    uint64_t start_ps = k_now_ps(kernel);
    int status = copy(p);
    if (counts) {
        p->took_ps += k_now_ps(kernel) - start_ps;
        p->copied += p->transfer_bytes;
    }
    bool there = false;
    for (unsigned i = 0; i < SETTLE_TRIES && !there && (i == 0 || status == 0); i++) {
        k_sleep(kernel, SETTLE_PS);
        there = status == 0 && holds(p, to, tag, &is);
    }
    if (status != 0)
        k_fault(kernel, "a copy of %llu bytes: error %d", (unsigned long long)p->transfer_bytes,
                status);
    else if (!there)
        k_fault(kernel, "copy %u of %llu bytes: tag %#llx, expected %#llx", number,
                (unsigned long long)p->transfer_bytes, (unsigned long long)is.found,
                (unsigned long long)is.expected);
    else
        return true;
    return false;
}

static void open_engine(struct ntb_dma_program *p)
{
    const struct lend_dma_options options = lend_dma_options_default;
    struct engine *engine = p->engine;
    if (engine->dma == NULL) {
        engine->dma = lend_dma_new(p->on->lend, &options);
        k_pci_register(p->on->kernel, lend_dma_driver(engine->dma));
        engine->ready = true;
    }
    while (!engine->ready)
        k_sleep(p->on->kernel, LOOK_PS);
    p->dma = engine->dma;
}

static bool set_up(struct ntb_dma_program *p)
{
    struct lend_error error = { .text = "no engine, or no memory" };
    open_engine(p);
    int status = lend_dma_device(p->dma) == NULL ? -1 : open_local(p);
    if (status == 0 && p->channel >= lend_dma_channels(p->dma)) {
        snprintf(error.text, sizeof(error.text), "the engine has %u channels, each for one program",
                 lend_dma_channels(p->dma));
        status = -1;
    }
    p->local_open = status == 0;
    if (status == 0) {
        status = open_remote(p, &error);
        p->remote_open = status == 0;
    }
    if (status != 0 && !p->segment_refused) /* else that has been said */
        program_fail(p->program, "%s: no copies between %s and %s of %s: %s (%d)", p->on->name,
                     p->local.name, p->remote.name, p->peer->name, error.text, status);
    return status == 0;
}

static void tear_down(struct ntb_dma_program *p)
{
    if (p->admitted)
        lend_dma_revoke(p->dma, &p->segment);
    if (p->connected)
        lend_segment_disconnect(&p->segment);
    if (p->remote_open && p->remote.model != NULL)
        close_gpu(p, &p->remote);
    if (p->local_open && p->local.model != NULL)
        close_gpu(p, &p->local);
    else if (p->local_open)
        k_dma_unmap(lend_dma_device(p->dma), p->local.address, p->transfer_bytes,
                    dma_direction(p, &p->local));
    if (--p->engine->n_users == 0)
        lend_dma_free(p->dma);
    p->done = true;
}

static void copy_body(void *arg)
{
    struct ntb_dma_program *p = arg;
    unsigned number = 0;
    bool well = set_up(p);
    while (well && number < WARM_UPS)
        well = checked_copy(p, number++, false);
    while (well && !program_measuring(p->program) && !program_ending(p->program))
        k_sleep(p->on->kernel, LOOK_PS);
    while (well && !program_ending(p->program) && number < WARM_UPS + p->transfers)
        well = checked_copy(p, number++, true);
    program_finish(p->program);
    tear_down(p);
}

/* The other host: shared memory, for as long as it is used. */
static void segment_body(void *arg)
{
    struct ntb_dma_program *p = arg;
    struct lend_error error = { 0 };
    p->remote.kernel = p->peer->kernel;
    int status = lend_segment_new(p->peer->lend, segment(p), p->transfer_bytes, &p->remote.at,
                                  &error);
    if (status != 0) {
        program_fail(p->program, "%s (%d): lending.%s.pool_bytes?", error.text, status,
                     p->peer->name);
        p->segment_refused = true;
        return;
    }
    p->segment_there = true;
    while (!p->done)
        k_sleep(p->peer->kernel, 100 * LOOK_PS);
    lend_segment_free(p->peer->lend, segment(p));
}

static void ntb_dma_start(struct program *program)
{
    struct ntb_dma_program *p = program->state;
    const struct program *other;
    program->finite = true;
    p->engine = &p->own_engine;
    for (unsigned i = 0; (other = program_earlier(program, i)) != NULL; i++)
        if (other->ops == program->ops && ((struct ntb_dma_program *)other->state)->on == p->on)
            p->engine = ((struct ntb_dma_program *)other->state)->engine;
    p->engine->n_users++;
    p->stream = program_new_stream(program);
    program_lending_uses_cpu(program, p->on, 0);
    lending_borrows_more(program->lending);
    if (is_ram(&p->remote))
        k_thread_new(p->peer->kernel, "ntb_dma.segment", 0, segment_body, p);
    k_thread_new(p->on->kernel, "ntb_dma", 0, copy_body, p);
}

static void ntb_dma_record(struct program *program, sim_time duration_ps)
{
    struct ntb_dma_program *p = program->state;
    (void)duration_ps;
    if (p->copied == 0)
        return; /* it has failed before */
    program_metric(program, "throughput_gbyte_s", "GB/s",
                   (double)p->copied * 1000.0 / (double)p->took_ps);
    program_metric(program, "transfer_us", "us", (double)p->took_ps / 1e6 / (double)p->transfers);
}

const struct program_ops program_ntb_dma_ops = {
    .type = "ntb_dma",
    .help = "copies by the DMA engine of a bridge between memories of two hosts, or their GPUs",
    .state_bytes = sizeof(struct ntb_dma_program),
    .params = ntb_dma_params,
    .records = ntb_dma_records,
    .check = ntb_dma_check,
    .start = ntb_dma_start,
    .record = ntb_dma_record,
};
