/*
 * A stream of CPU stores through a window into another host's memory (programmed I/O), as SISCI's
 * SCIMemCpy() makes it: in address order over a segment, again and again. The window is mapped
 * write-combining, so that 64 bytes leave as one posted write, or uncached, one for each 8 bytes.
 *
 * Timing: a transfer is from its first store until all of it has left the CPU (sfence). After each,
 * and SETTLE_PS or as often without count, every byte is checked at the other host.
 */
#include "logic/lending/lending.h"
#include "models/base/payload.h"
#include "models/os/os.h"
#include "workloads/programs/program.h"

#define SEGMENT      0x8000u /* and the program's number */
#define LOOK_PS      SIM_PS_PER_US
#define SETTLE_PS    (50 * SIM_PS_PER_US)
#define SETTLE_TRIES 20u /* until they have come over cables of 0.1 ms */
#define WARM_UPS     1u
#define WORDS        (LINE_BYTES / sizeof(uint64_t))

enum stores { STORES_COMBINED, STORES_UNCACHED };
static const char *const stores_names[] = { "combined", "uncached", NULL };

struct ntb_stores {
    /* parameters */
    const char *on_name, *peer_name;
    int stores;
    uint32_t cpu, transfers;
    uint64_t transfer_bytes;
    /* running */
    struct program *program;
    struct lending_host *on, *peer;
    struct lend_remote remote;
    struct kaddr at; /* at the peer */
    bool there, refused, done;
    uint16_t stream;
    /* measured */
    uint64_t bytes, took_ps;
};

static const struct param_desc ntb_stores_params[] = {
    PARAM_TEXT("on", struct ntb_stores, on_name, "", "the host that stores"),
    PARAM_TEXT("peer", struct ntb_stores, peer_name, "", "the host whose memory it is"),
    PARAM_ONE_OF("stores", struct ntb_stores, stores, STORES_COMBINED, stores_names, PROV_NONE, "",
                 "combined: lines of 64 bytes, write-combining; uncached: 8 bytes each"),
    PARAM("cpu", PARAM_U32, struct ntb_stores, cpu, 1, 0, 255, PROV_NONE, "", "that stores"),
    PARAM("transfer_bytes", PARAM_BYTES, struct ntb_stores, transfer_bytes, 65536, 64, 1073741824,
          PROV_NONE, "", "of the segment, all of which a transfer writes; whole cache lines"),
    PARAM("transfers", PARAM_U32, struct ntb_stores, transfers, 10, 1, 1000000, PROV_NONE, "",
          "that are measured"),
    { .type = PARAM_END },
};

static const struct record_desc ntb_stores_records[] = {
    { "throughput_gbyte_s", RECORD_METRIC, "GB/s",
      "bytes stored, over the time of the transfers alone" },
    { "transfer_us", RECORD_METRIC, "us", "one transfer" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void ntb_stores_check(struct program *program, struct sim_error_list *errors)
{
    struct ntb_stores *p = program->state;
    p->program = program;
    p->on = program_member(program, "on", p->on_name, true, errors);
    p->peer = program_member(program, "peer", p->peer_name, true, errors);
    if (p->on == NULL || p->peer == NULL)
        return;
    if (p->on == p->peer)
        program_mistake(program, "peer", errors, "another host than `on`", NULL);
    if (p->transfer_bytes % LINE_BYTES != 0)
        program_mistake(program, "transfer_bytes", errors, "a multiple of 64 bytes", NULL);
    program_check_cpus(program, "cpu", p->on, p->cpu, 1, errors);
}

/* ---- The stream ------------------------------------------------------------------------------ */

static void store_line(struct ntb_stores *p, uint64_t at, uint64_t mark)
{
    uint64_t word[WORDS];
    for (unsigned i = 0; i < WORDS; i++)
        word[i] = payload_word(mark + i * sizeof(word[0]));
    if (p->stores == STORES_COMBINED) {
        lend_map_write_lines(p->remote.adapter, &p->remote.map, at, word, sizeof(word));
        return;
    }
    for (unsigned i = 0; i < WORDS; i++)
        lend_map_write(p->remote.adapter, &p->remote.map, at + i * sizeof(word[0]), sizeof(word[0]),
                       word[i]);
}

static bool transfer(struct ntb_stores *p, unsigned number, bool counts)
{
    struct kernel *kernel = p->on->kernel;
    const uint64_t mark = payload_mark(p->stream, number * p->transfer_bytes);
    const uint64_t begin_ps = k_now_ps(kernel);
    struct payload_difference is;
    for (uint64_t at = 0; at < p->transfer_bytes; at += LINE_BYTES) {
        store_line(p, at, mark + at);
        os_poll(kernel);
    }
    lend_map_drain(p->remote.adapter);
    if (counts) {
        p->took_ps += k_now_ps(kernel) - begin_ps;
        p->bytes += p->transfer_bytes;
    }
    for (unsigned i = 0; i < SETTLE_TRIES; i++) {
        k_sleep(kernel, SETTLE_PS);
        if (payload_check(p->peer->kernel, p->at, mark, p->transfer_bytes, &is))
            return true;
    }
    if (p->on->dead || p->peer->dead || lend_segment_lost(&p->remote)) {
        k_fault(kernel, "%s: transfer %u: %s %s", p->program->name, number,
                p->on->dead     ? p->on->name
                : p->peer->dead ? p->peer->name
                                : "the connection",
                p->on->dead || p->peer->dead ? "has died, and stores were lost" : "is lost");
        return false;
    }
    k_fault(kernel, "%s: transfer %u: %#llx where %#llx was stored", p->program->name, number,
            (unsigned long long)is.found, (unsigned long long)is.expected);
    return false;
}

/* ---- The program ----------------------------------------------------------------------------- */

static uint32_t segment(const struct ntb_stores *p)
{
    return SEGMENT + program_number(p->program);
}

static bool connect_window(struct ntb_stores *p)
{
    struct lend_error error = { 0 };
    while (!p->there && !p->refused)
        k_sleep(p->on->kernel, LOOK_PS);
    if (p->refused)
        return false;
    lend_discover(p->on->lend);
    const int status = lend_segment_connect(p->on->lend, p->peer->number, segment(p), &p->remote,
                                            &error);
    if (status != 0)
        program_fail(p->program, "no window onto %s: %s (%d)", p->peer->name, error.text, status);
    return status == 0;
}

static void store_body(void *arg)
{
    struct ntb_stores *p = arg;
    const bool connected = connect_window(p);
    bool well = connected;
    unsigned number = 0;
    while (well && number < WARM_UPS)
        well = transfer(p, number++, false);
    while (well && !program_measuring(p->program) && !program_ending(p->program))
        k_sleep(p->on->kernel, LOOK_PS);
    while (well && !program_ending(p->program) && number < WARM_UPS + p->transfers)
        well = transfer(p, number++, true);
    program_finish(p->program);
    if (connected)
        lend_segment_disconnect(&p->remote);
    p->done = true;
}

/* The other host: shared memory, for as long as it is used. */
static void segment_body(void *arg)
{
    struct ntb_stores *p = arg;
    struct lend_error error = { 0 };
    const int status = lend_segment_new(p->peer->lend, segment(p), p->transfer_bytes, &p->at,
                                        &error);
    p->there = status == 0;
    p->refused = status != 0;
    if (status != 0) {
        program_fail(p->program, "%s (%d): lending.%s.pool_bytes?", error.text, status,
                     p->peer->name);
        return;
    }
    while (!p->done)
        k_sleep(p->peer->kernel, 100 * LOOK_PS);
    lend_segment_free(p->peer->lend, segment(p));
}

static void ntb_stores_start(struct program *program)
{
    struct ntb_stores *p = program->state;
    program->finite = true;
    p->stream = program_new_stream(program);
    program_lending_uses_cpu(program, p->on, p->cpu);
    lending_borrows_more(program->lending);
    k_thread_new(p->peer->kernel, "ntb_stores.segment", 0, segment_body, p);
    k_thread_new(p->on->kernel, "ntb_stores", (int)p->cpu, store_body, p);
}

static void ntb_stores_record(struct program *program, sim_time duration_ps)
{
    const struct ntb_stores *p = program->state;
    (void)duration_ps;
    if (p->bytes == 0)
        return; /* it has failed before */
    program_metric(program, "throughput_gbyte_s", "GB/s",
                   (double)p->bytes * 1000.0 / (double)p->took_ps);
    program_metric(program, "transfer_us", "us", (double)p->took_ps / 1e6 / (double)p->transfers);
}

const struct program_ops program_ntb_stores_ops = {
    .type = "ntb_stores",
    .help = "a stream of CPU stores through a window into another host's memory",
    .state_bytes = sizeof(struct ntb_stores),
    .params = ntb_stores_params,
    .records = ntb_stores_records,
    .check = ntb_stores_check,
    .start = ntb_stores_start,
    .record = ntb_stores_record,
};
