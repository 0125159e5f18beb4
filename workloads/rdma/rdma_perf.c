/*
 * Latency and bandwidth of RDMA between two hosts, as perftest's ib_write_lat, ib_read_lat,
 * ib_send_lat, ib_write_bw, ib_read_bw and ib_send_bw measure them, with user-level verbs that
 * poll.
 *
 * write_lat: each side writes into the other's memory in turn, and waits for the last byte of what
 * the other writes; send_lat: the same with sends and receive completions; half of the round trip
 * is recorded. read_lat: a read after the other, until its completion. *_bw: queue_depth messages
 * under way; the latency is that of each from posting to completion.
 */
#include <errno.h>
#include <string.h>

#include "logic/rdma/rdma_driver.h"
#include "workloads/programs/program.h"
#include "workloads/rdma/rdma_objects.h"

#define LOOK_PS      SIM_PS_PER_US
#define WARM_UPS     16u
#define SIDES        2u
#define DEPTH_MAX    1024u
#define SIGNAL_EVERY 32u /* of the writes that are waited for in memory */

enum perf_test { WRITE_LAT, READ_LAT, SEND_LAT, WRITE_BW, READ_BW, SEND_BW };
static const char *const test_names[] = { "write_lat", "read_lat", "send_lat", "write_bw",
                                          "read_bw",   "send_bw",  NULL };

struct rdma_perf;
struct perf_side {
    struct rdma_perf *all;
    struct lending_host *host;
    const char *device;
    struct rdma_drv *rdma;
    unsigned cpu; /* its own, as it spins */
    uint32_t pd;
    struct kaddr from, to; /* what it sends; what it gets */
    struct rdma_drv_mr *mr;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    struct rdma_drv_endpoint endpoint;
    uint32_t inline_bytes; /* messages of up to so many lie in their entry */
    uint32_t n_unfinished; /* sends without a completion */
    bool has_pd, there, connected, done;
};

struct rdma_perf {
    /* parameters */
    const char *name[SIDES], *device[SIDES];
    int test; /* enum perf_test */
    uint64_t bytes, iterations;
    uint32_t queue_depth, inline_bytes, mtu_bytes, cpu;
    bool blueflame;
    /* running */
    struct program *program;
    struct perf_side side[SIDES];
    bool over, failed;
    double *sample_ps;
    uint64_t n_samples;
    uint64_t *posted_ps; /* queue_depth of them */
    uint64_t begin_ps, end_ps;
};

static const struct param_desc rdma_perf_params[] = {
    PARAM_TEXT("on", struct rdma_perf, name[0], "", "the host that begins"),
    PARAM_TEXT("peer", struct rdma_perf, name[1], "", "the other host"),
    PARAM_TEXT("device", struct rdma_perf, device[0], "", "a rdma.adapter of the first"),
    PARAM_TEXT("peer_device", struct rdma_perf, device[1], "", "a rdma.adapter of the other"),
    PARAM_ONE_OF("test", struct rdma_perf, test, WRITE_LAT, test_names, PROV_NONE, "",
                 "which of perftest's"),
    PARAM("bytes", PARAM_BYTES, struct rdma_perf, bytes, 2, 1, 67108864, PROV_NONE, "",
          "of a message"),
    PARAM("iterations", PARAM_U64, struct rdma_perf, iterations, 1000, 1, 1e9, PROV_NONE, "",
          "messages or round trips that are measured"),
    PARAM("queue_depth", PARAM_U32, struct rdma_perf, queue_depth, 128, 1, DEPTH_MAX, PROV_NONE, "",
          "messages under way where bandwidth is measured"),
    PARAM("inline_bytes", PARAM_U32, struct rdma_perf, inline_bytes, 220, 0, 220, PROV_NONE, "",
          "messages of up to so many bytes lie in their work queue entry"),
    PARAM("mtu_bytes", PARAM_U32, struct rdma_perf, mtu_bytes, 4096, 256, 4096, PROV_NONE, "",
          "path MTU: 256, 512, 1024, 2048 or 4096"),
    PARAM("cpu", PARAM_U32, struct rdma_perf, cpu, 1, 0, 255, PROV_NONE, "", "of both hosts"),
    PARAM("blueflame", PARAM_BOOL, struct rdma_perf, blueflame, 1, 0, 1, PROV_NONE, "",
          "entries of up to four blocks go to the adapter with the doorbell"),
    { .type = PARAM_END },
};

static const struct record_desc rdma_perf_records[] = {
    { "latency_mean_ns", RECORD_METRIC, "ns", "of a message" },
    { "latency_p50_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p99_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "each" },
    { "throughput_gbyte_s", RECORD_METRIC, "GB/s", "payload, one way" },
    { "message_rate_mpps", RECORD_METRIC, "1000000/s", "messages, one way" },
    { "throughput_gbyte_s", RECORD_SERIES, "GB/s", "payload per interval" },
    { "message_rate_mpps", RECORD_SERIES, "1000000/s", "messages per interval" },
    { "latency_mean_ns", RECORD_SERIES, "ns", "of messages that ended in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void rdma_perf_check(struct program *program, struct sim_error_list *errors)
{
    static const char *const host_key[SIDES] = { "on", "peer" };
    static const char *const device_key[SIDES] = { "device", "peer_device" };
    static const struct rdma_objects one = { 1, 1, 1, 1 };
    struct rdma_perf *all = program->state;
    all->program = program;
    for (unsigned i = 0; i < SIDES; i++) {
        struct perf_side *side = &all->side[i];
        side->all = all;
        side->device = all->device[i];
        side->host = program_lending_host(program, host_key[i], all->name[i], errors);
        if (side->host == NULL)
            continue;
        const struct model *adapter = program_device(program, device_key[i], side->host,
                                                     side->device, &rdma_ops, errors);
        if (adapter != NULL)
            program_take_rdma(program, device_key[i], "", adapter, side->device, &one, &one,
                              errors);
        side->cpu = all->cpu + (unsigned)program_take(program, side->host, "polling CPU", 1);
        program_check_cpus(program, "cpu", side->host, side->cpu, 1, errors);
    }
    if (all->side[0].host != NULL && all->side[0].host == all->side[1].host)
        program_mistake(program, "peer", errors, "another host than `on`", NULL);
    if ((all->mtu_bytes & (all->mtu_bytes - 1)) != 0)
        program_mistake(program, "mtu_bytes", errors, "256, 512, 1024, 2048 or 4096", NULL);
}

/* ---- Sides ----------------------------------------------------------------------------------- */

static struct perf_side *other_of(struct perf_side *side)
{
    return &side->all->side[side == side->all->side];
}

static void fail(struct perf_side *side, const char *what, int status)
{
    if (!side->all->failed)
        program_fail(side->all->program, "%s, %s: %s", side->host->name, what, strerror(-status));
    side->all->failed = side->all->over = true;
}

static bool uses_receives(const struct rdma_perf *all)
{
    return all->test == SEND_LAT || all->test == SEND_BW;
}

static uint32_t depth_of(const struct rdma_perf *all)
{
    return all->test >= WRITE_BW ? all->queue_depth : 2 * SIGNAL_EVERY;
}

static int make_queue_pair(struct perf_side *side)
{
    struct rdma_perf *all = side->all;
    const uint32_t depth = depth_of(all);
    int error = rdma_drv_cq_new(side->rdma, 4 * depth, side->cpu, NULL, NULL, &side->cq);
    const struct rdma_drv_qp_params params = {
        .pd = side->pd,
        .send_cq = side->cq,
        .receive_cq = side->cq,
        .n_sends = depth,
        .n_receives = 2 * depth,
        .send_sges = 1,
        .receive_sges = 1,
        .inline_bytes = all->bytes <= side->inline_bytes ? (uint32_t)all->bytes : 0,
        .access = RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ,
        .blueflame = all->blueflame,
    };
    if (error == 0)
        error = rdma_drv_qp_new(side->rdma, &params, &side->qp);
    return error;
}

static int make(struct perf_side *side)
{
    struct rdma_perf *all = side->all;
    struct kernel *kernel = side->host->kernel;
    struct k_pci_dev *dev = lending_device(side->host, side->device);
    side->rdma = dev != NULL ? rdma_drv_of(dev) : NULL;
    if (side->rdma == NULL)
        return -ENODEV;
    side->inline_bytes = SIM_MIN(all->inline_bytes, rdma_drv_limits(side->rdma).inline_bytes);
    const uint64_t room = (all->bytes + K_PAGE_BYTES - 1) & ~(uint64_t)(K_PAGE_BYTES - 1);
    side->from = k_alloc(kernel, K_NODE_LOCAL, 2 * room, K_PAGE_BYTES);
    side->to = kaddr_add(side->from, room);
    if (side->from.v == 0)
        return -ENOMEM;
    int error = rdma_drv_set_lid(side->rdma, rdma_lid(all->program->workload->world, side->device));
    if (error == 0)
        error = rdma_drv_pd_new(side->rdma, &side->pd);
    side->has_pd = error == 0;
    if (error == 0)
        error = rdma_drv_mr_new(side->rdma, side->pd, side->from, 2 * room,
                                RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE |
                                    RDMA_ACCESS_REMOTE_READ,
                                &side->mr);
    if (error == 0)
        error = make_queue_pair(side);
    if (error == 0)
        side->endpoint = rdma_drv_endpoint(side->qp, &rdma_drv_connection_default);
    return error;
}

/* Waits for the flag of the other side. False: it has failed. */
static bool await(struct perf_side *side, const bool *flag)
{
    while (!*flag && !side->all->failed)
        k_sleep(side->host->kernel, LOOK_PS);
    return !side->all->failed;
}

static bool post_receives(struct perf_side *side, uint32_t n)
{
    const struct rdma_drv_sge sge = { side->to.v, (uint32_t)side->all->bytes,
                                      rdma_drv_key(side->mr) };
    const struct rdma_drv_receive receive = { 0, &sge, 1 };
    int error = 0;
    for (uint32_t i = 0; i < n && error == 0; i++)
        error = rdma_drv_post_receive(side->qp, &receive);
    if (error != 0)
        fail(side, "posting a receive", error);
    return error == 0;
}

static bool open_side(struct perf_side *side)
{
    struct rdma_drv_connection connection = rdma_drv_connection_default;
    int error = make(side);
    if (error != 0) {
        fail(side, side->device, error);
        return false;
    }
    side->there = true;
    if (!await(side, &other_of(side)->there))
        return false;
    /* The path's is what both adapters take. */
    connection.mtu_bytes = SIM_MIN(side->all->mtu_bytes, rdma_drv_limits(side->rdma).mtu_bytes);
    connection.mtu_bytes = SIM_MIN(connection.mtu_bytes,
                                   rdma_drv_limits(other_of(side)->rdma).mtu_bytes);
    error = rdma_drv_connect(side->qp, &other_of(side)->endpoint, &connection);
    if (error != 0) {
        fail(side, "connecting", error);
        return false;
    }
    if (uses_receives(side->all) && !post_receives(side, 2 * depth_of(side->all)))
        return false;
    side->connected = true;
    return await(side, &other_of(side)->connected);
}

static void close_side(struct perf_side *side)
{
    side->done = true;
    while (!other_of(side)->done)
        k_sleep(side->host->kernel, LOOK_PS);
    if (side->qp != NULL)
        rdma_drv_qp_free(side->qp);
    if (side->cq != NULL)
        rdma_drv_cq_free(side->cq);
    if (side->mr != NULL)
        rdma_drv_mr_free(side->mr);
    if (side->has_pd)
        rdma_drv_pd_free(side->rdma, side->pd);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static enum rdma_opcode opcode_of(const struct rdma_perf *all)
{
    switch (all->test) {
    case READ_LAT:
    case READ_BW: return RDMA_OP_READ;
    case SEND_LAT:
    case SEND_BW: return RDMA_OP_SEND;
    default: return RDMA_OP_WRITE;
    }
}

/* Its bytes depend on their place, and the last one on the message. */
static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(i * 7 + (i >> 8) + 1);
}

static void fill(struct perf_side *side)
{
    const uint64_t bytes = side->all->bytes;
    uint8_t chunk[K_PAGE_BYTES];
    for (uint64_t at = 0; at < bytes; at += sizeof chunk) {
        const uint64_t n = SIM_MIN(bytes - at, sizeof chunk);
        for (uint64_t i = 0; i < n; i++)
            chunk[i] = byte_at(at + i);
        k_poke(side->host->kernel, kaddr_add(side->from, at), chunk, n);
    }
}

/* All bytes but the last, which those who wait have seen. */
static void check_bytes(struct perf_side *side)
{
    uint8_t chunk[K_PAGE_BYTES];
    for (uint64_t at = 0; at < side->all->bytes - 1; at += sizeof chunk) {
        const uint64_t n = SIM_MIN(side->all->bytes - 1 - at, sizeof chunk);
        k_peek(side->host->kernel, kaddr_add(side->to, at), chunk, n);
        for (uint64_t i = 0; i < n; i++)
            if (chunk[i] != byte_at(at + i)) {
                k_fault(side->host->kernel, "%s: byte %llu of a message is %u, %u was sent",
                        side->host->name, (unsigned long long)(at + i), chunk[i], byte_at(at + i));
                return;
            }
    }
}

static bool post(struct perf_side *side, uint64_t id, uint8_t last, bool signaled)
{
    struct rdma_perf *all = side->all;
    struct perf_side *peer = other_of(side);
    const bool read = opcode_of(all) == RDMA_OP_READ;
    const bool inlined = !read && all->bytes <= side->inline_bytes;
    const struct rdma_drv_sge sge = { read ? side->to.v : side->from.v, (uint32_t)all->bytes,
                                      rdma_drv_key(side->mr) };
    uint8_t data[256];
    struct rdma_drv_send send = { .id = id,
                                  .opcode = opcode_of(all),
                                  .signaled = signaled,
                                  .sge = &sge,
                                  .n_sges = 1,
                                  .remote_va = read ? peer->from.v : peer->to.v,
                                  .rkey = rdma_drv_key(peer->mr) };
    if (!read)
        k_store(side->host->kernel, kaddr_add(side->from, all->bytes - 1), &last, 1);
    if (inlined) {
        k_load(side->host->kernel, side->from, data, all->bytes);
        send.inline_data = data;
        send.inline_bytes = (uint32_t)all->bytes;
    }
    const int error = rdma_drv_post_send(side->qp, &send);
    if (error != 0)
        fail(side, "posting", error);
    side->n_unfinished += error == 0;
    return error == 0;
}

/* One completion. False: there is none yet; a status other than success fails the run. */
static bool take(struct perf_side *side, struct rdma_drv_wc *wc)
{
    if (rdma_drv_poll(side->cq, wc, 1) == 0)
        return false;
    if (wc->status != RDMA_SUCCESS && !side->all->failed) {
        program_fail(side->all->program, "%s: a message ended with status %u", side->host->name,
                     wc->status);
        side->all->failed = side->all->over = true;
    }
    return true;
}

/* ---- Latency --------------------------------------------------------------------------------- */

static void add_sample(struct rdma_perf *all, uint64_t ps)
{
    stat_histogram_add(&all->program->histogram_ps, ps);
    if (all->n_samples < all->iterations)
        all->sample_ps[all->n_samples++] = (double)ps;
}

/* Until the last byte is this one. Nothing tells of a write that did not come, but that the adapter
 * has gone. */
static void await_byte(struct perf_side *side, uint8_t last)
{
    uint8_t is;
    do
        k_load(side->host->kernel, kaddr_add(side->to, side->all->bytes - 1), &is, 1);
    while (is != last && !side->all->over && !rdma_drv_gone(side->rdma));
    if (is != last && !side->all->over)
        fail(side, "waiting for a message", -ENODEV);
}

/* Completions of sends, until at most `most` are missing; of signaled ones, which stand for those
 * before them. */
static void drain(struct perf_side *side, uint32_t most)
{
    struct rdma_drv_wc wc;
    while (side->n_unfinished > most && !side->all->over)
        if (take(side, &wc) && !wc.receive)
            side->n_unfinished -= SIM_MIN(side->n_unfinished, SIGNAL_EVERY);
}

static void await_message(struct perf_side *side, uint8_t last)
{
    struct rdma_drv_wc wc = { 0 };
    uint8_t is;
    if (side->all->test == WRITE_LAT) {
        await_byte(side, last);
        return;
    }
    while (!wc.receive && !side->all->over)
        if (take(side, &wc) && !wc.receive)
            side->n_unfinished -= SIM_MIN(side->n_unfinished, SIGNAL_EVERY);
    k_peek(side->host->kernel, kaddr_add(side->to, side->all->bytes - 1), &is, 1);
    if (is != last && !side->all->over)
        k_fault(side->host->kernel, "%s: a message ends with %u, %u was sent", side->host->name, is,
                last);
    post_receives(side, 1);
}

static void send_in_turn(struct perf_side *side, uint64_t i)
{
    if (post(side, i, (uint8_t)(i % 255 + 1), i % SIGNAL_EVERY == SIGNAL_EVERY - 1))
        drain(side, SIGNAL_EVERY);
}

static void ping(struct perf_side *side)
{
    struct rdma_perf *all = side->all;
    struct kernel *kernel = side->host->kernel;
    for (uint64_t i = 0; i < WARM_UPS + all->iterations && !all->over; i++) {
        const uint64_t start_ps = k_now_ps(kernel);
        if (i == WARM_UPS)
            all->begin_ps = start_ps;
        send_in_turn(side, i);
        await_message(side, (uint8_t)(i % 255 + 1));
        all->end_ps = k_now_ps(kernel);
        if (i >= WARM_UPS)
            add_sample(all, (all->end_ps - start_ps) / 2);
    }
}

static void pong(struct perf_side *side)
{
    for (uint64_t i = 0; i < WARM_UPS + side->all->iterations && !side->all->over; i++) {
        await_message(side, (uint8_t)(i % 255 + 1));
        if (!side->all->over)
            send_in_turn(side, i);
    }
}

/* ---- Many at once ---------------------------------------------------------------------------- */

static void stream(struct perf_side *side, uint32_t depth)
{
    struct rdma_perf *all = side->all;
    struct kernel *kernel = side->host->kernel;
    const uint64_t warm = WARM_UPS + depth, n = warm + all->iterations;
    uint64_t posted = 0, finished = 0;
    struct rdma_drv_wc wc;
    while (finished < n && !all->over) {
        while (posted < n && posted < finished + depth && !all->over) {
            all->posted_ps[posted % depth] = k_now_ps(kernel);
            post(side, posted, byte_at(all->bytes - 1), true);
            posted++;
        }
        if (!take(side, &wc) || wc.receive)
            continue;
        const uint64_t now_ps = k_now_ps(kernel);
        finished++;
        if (finished == warm)
            all->begin_ps = now_ps;
        if (finished > warm)
            add_sample(all, now_ps - all->posted_ps[wc.id % depth]);
        all->end_ps = now_ps;
    }
}

static void receive_stream(struct perf_side *side)
{
    struct rdma_drv_wc wc;
    while (!side->all->over)
        if (take(side, &wc) && wc.receive && !side->all->over)
            post_receives(side, 1);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void client_body(void *arg)
{
    struct perf_side *side = arg;
    struct rdma_perf *all = side->all;
    if (open_side(side)) {
        fill(side);
        while (!program_measuring(all->program) && !program_ending(all->program))
            k_sleep(side->host->kernel, LOOK_PS);
        if (all->test == WRITE_LAT || all->test == SEND_LAT)
            ping(side);
        else
            stream(side, all->test == READ_LAT ? 1 : all->queue_depth);
        if (!all->failed && all->test != WRITE_BW && all->test != SEND_BW)
            check_bytes(side);
        if (!all->failed && all->test != READ_LAT && all->test != READ_BW)
            check_bytes(other_of(side));
    }
    all->over = true;
    program_finish(all->program);
    close_side(side);
}

static void server_body(void *arg)
{
    struct perf_side *side = arg;
    struct rdma_perf *all = side->all;
    if (open_side(side)) {
        fill(side);
        if (all->test == WRITE_LAT || all->test == SEND_LAT)
            pong(side);
        else if (all->test == SEND_BW)
            receive_stream(side);
        while (!all->over)
            k_sleep(side->host->kernel, LOOK_PS);
    }
    close_side(side);
}

static void rdma_perf_start(struct program *program)
{
    struct rdma_perf *all = program->state;
    program->finite = true;
    all->sample_ps = program_zalloc(program, all->iterations, sizeof(*all->sample_ps));
    all->posted_ps = program_zalloc(program, DEPTH_MAX, sizeof(*all->posted_ps));
    for (unsigned i = 0; i < SIDES; i++) {
        struct perf_side *side = &all->side[i];
        program_lending_uses_cpu(program, side->host, side->cpu);
        k_thread_new(side->host->kernel, i == 0 ? "rdma_perf.client" : "rdma_perf.server",
                     (int)side->cpu, i == 0 ? client_body : server_body, side);
    }
}

static uint64_t rdma_perf_bytes(const struct program *program)
{
    return program_latencies(program) * ((const struct rdma_perf *)program->state)->bytes;
}

static const struct program_rate rdma_perf_rates[] = {
    { "throughput_gbyte_s", 1e-9, rdma_perf_bytes, NULL },
    { "message_rate_mpps", 1e-6, program_latencies, NULL },
    { "latency_mean_ns", 1e-3, program_latencies_ps, program_latencies },
    { NULL, 0, NULL, NULL },
};

static void rdma_perf_record(struct program *program, sim_time duration_ps)
{
    struct rdma_perf *all = program->state;
    const struct stat_histogram *h = &program->histogram_ps;
    const double us = (double)(all->end_ps - all->begin_ps) / 1e6;
    const double per_us = us > 0 ? (double)all->n_samples / us : 0;
    double median_ns = 0;
    (void)duration_ps;
    if (all->n_samples != 0)
        median_ns = program_sort(all->sample_ps, all->n_samples) / 1000.0;
    program_metric(program, "latency_mean_ns", "ns",
                   h->n != 0 ? h->sum / (double)h->n / 1000.0 : 0);
    program_metric(program, "latency_p50_ns", "ns", median_ns);
    program_metric(program, "latency_p99_ns", "ns",
                   (double)stat_histogram_quantile(h, 0.99) / 1000.0);
    program_histogram(program, "latency_ns", "ns", 0.001, h);
    /* A round trip is a message each way. */
    program_metric(program, "throughput_gbyte_s", "GB/s", per_us * (double)all->bytes / 1000.0);
    program_metric(program, "message_rate_mpps", "1000000/s", per_us);
}

const struct program_ops program_rdma_perf_ops = {
    .type = "rdma_perf",
    .help = "RDMA between two hosts, as perftest measures it",
    .state_bytes = sizeof(struct rdma_perf),
    .params = rdma_perf_params,
    .records = rdma_perf_records,
    .rates = rdma_perf_rates,
    .check = rdma_perf_check,
    .start = rdma_perf_start,
    .record = rdma_perf_record,
};
