/*
 * bandwidthTest of the CUDA samples, pinned memory: one copy at a time between a buffer of the host
 * and device memory, or into another GPU; the median of the iterations. A copy is timed by the
 * program, from its submission until the interrupt has woken it, as section 7.3.2 of SmartIO says
 * of its runs, or by events of the copy engine itself. Every byte of every copy is checked at its
 * destination. Several of them on one GPU have a copy engine each: both directions at once.
 *
 * With measure.precision_ratio there are fewer copies once their mean is known, and a long one is
 * covered by parts of it that double, one behind the other in its buffers, until the time of a byte
 * between two of them is that between the two before: what the rest adds is that time. The copy's
 * fixed costs are in the parts, so is what depends on how far a copy has come (translations, ways
 * of DDIO) up to the largest.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "models/base/payload.h"
#include "models/gpu/gpu.h"
#include "models/pcie/ntb/ntb.h"
#include "workloads/programs/program.h"

#define COPY_TIMEOUT_PS (2000 * SIM_PS_PER_MS)
#define ITERATIONS_MIN  3u
#define SAMPLE_COPIES   8u /* before their mean may be known, and twice, four times ... as many */
#define PART_BYTES      UINT64_C(2097152) /* the first part of a long copy */
#define PARTS_MIN       3u

enum direction { DIRECTION_READ, DIRECTION_WRITE, DIRECTION_PEER };
static const char *const direction_names[] = { "read", "write", "peer", NULL };
enum timing { TIMING_SPIN, TIMING_INTERRUPT, TIMING_EVENTS };
static const char *const timing_names[] = { "spin", "interrupt", "events", NULL };

struct bandwidth {
    /* parameters */
    const char *host_name, *gpu_name, *peer_name, *analyser_name;
    int direction, timing;
    uint32_t cpu, iterations;
    uint64_t transfer_bytes, volume_bytes;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct model *model[2];       /* the GPU, its peer */
    const struct model *analyser; /* NULL: none */
    struct kaddr buffer;
    uint64_t offset[2]; /* in device memory of both */
    struct gpu_mapping mapping;
    unsigned engine; /* of the GPU; several programs have one each */
    uint16_t stream;
    uint32_t n;           /* iterations that are run */
    bool sampled;         /* fewer copies than asked for, or parts of one */
    double known_ratio;   /* to which the rate is known then */
    uint64_t tried_bytes; /* parts that were copied before all of it */
    uint64_t parts_bytes; /* that were copied as parts of a copy; 0: none */
    uint32_t n_asked;     /* iterations, without measure.precision_ratio */
    /* measured */
    bool ended;      /* well */
    double *gbyte_s; /* of each */
};

static const struct param_desc bandwidth_params[] = {
    PARAM_TEXT("host", struct bandwidth, host_name, "borrower",
               "host of the group `lending` that it runs on"),
    PARAM_TEXT("gpu", struct bandwidth, gpu_name, "gpu0", "whose copy engine works"),
    PARAM_TEXT("peer", struct bandwidth, peer_name, "gpu1", "direction peer: where to"),
    PARAM_TEXT("analyser", struct bandwidth, analyser_name, "",
               "bridge in whose slot the GPU's requests are looked at; empty: nowhere"),
    PARAM_ONE_OF("direction", struct bandwidth, direction, DIRECTION_READ, direction_names,
                 PROV_NONE, "",
                 "read: from the host's memory; write: into it; peer: into the peer's memory"),
    PARAM_ONE_OF("timing", struct bandwidth, timing, TIMING_SPIN, timing_names, PROV_NONE, "",
                 "spin: from submission until the program, which looks for it, sees the end of the "
                 "copy; interrupt: until an interrupt has woken it; events: by the engine"),
    PARAM("cpu", PARAM_U32, struct bandwidth, cpu, 1, 0, 255, PROV_NONE, "", "that it runs on"),
    PARAM("transfer_bytes", PARAM_BYTES, struct bandwidth, transfer_bytes, 4194304, 64, 1e9,
          PROV_NONE, "", "of a copy; whole cache lines"),
    PARAM("iterations", PARAM_U32, struct bandwidth, iterations, 1000, 1, 100000, PROV_NONE, "",
          "copies"),
    PARAM("volume_bytes", PARAM_BYTES, struct bandwidth, volume_bytes, 16777216, 64, 1e12,
          PROV_NONE, "", "fewer copies, at least 3, once they have moved so much"),
    { .type = PARAM_END },
};

static const struct record_desc bandwidth_records[] = {
    { "throughput_gbyte_s", RECORD_METRIC, "GB/s", "of a copy: median" },
    { "throughput_min_gbyte_s", RECORD_METRIC, "GB/s", "the slowest copy" },
    { "throughput_max_gbyte_s", RECORD_METRIC, "GB/s", "the fastest copy" },
    { "tlp_bytes_after_iommu", RECORD_METRIC, "bytes",
      "asked for by a read, carried by a write that comes to the analyser: mean" },
    { "transfer_us", RECORD_METRIC, "us", "of the median copy" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void bandwidth_check(struct program *program, struct sim_error_list *errors)
{
    struct bandwidth *b = program->state;
    b->program = program;
    b->host = program_lending_host(program, "host", b->host_name, errors);
    if (b->host == NULL)
        return;
    b->model[0] = program_device(program, "gpu", b->host, b->gpu_name, &gpu_ops, errors);
    if (b->model[0] != NULL)
        b->engine = program_take_engines(program, "gpu", b->model[0], 1, errors);
    if (b->direction == DIRECTION_PEER)
        b->model[1] = program_device(program, "peer", b->host, b->peer_name, &gpu_ops, errors);
    if (b->direction == DIRECTION_PEER && strcmp(b->gpu_name, b->peer_name) == 0)
        program_mistake(program, "peer", errors, "another GPU than `gpu`", NULL);
    b->analyser = *b->analyser_name == '\0'
                      ? NULL
                      : world_device(program->workload->world, b->analyser_name);
    if (*b->analyser_name != '\0' && (b->analyser == NULL || b->analyser->ops != &pcie_ntb_ops))
        program_mistake(program, "analyser", errors, "a device of type pcie.ntb", NULL);
    if (b->transfer_bytes % LINE_BYTES != 0)
        program_mistake(program, "transfer_bytes", errors, "a multiple of 64 bytes", NULL);
    program_check_cpus(program, "cpu", b->host, b->cpu, 1, errors);
}

/* ---- One copy -------------------------------------------------------------------------------- */

/* Of the buffers on both sides. */
struct part {
    uint64_t at, bytes;
};

static void stamp_source(struct bandwidth *b, struct part part, uint64_t tag)
{
    if (b->direction == DIRECTION_READ)
        payload_fill(b->host->kernel, kaddr_add(b->buffer, part.at), tag, part.bytes);
    else
        gpu_memory_stamp(b->model[0], b->offset[0] + part.at, tag, part.bytes);
}

static bool arrived(struct bandwidth *b, struct part part, uint64_t tag,
                    struct payload_difference *is)
{
    if (b->direction == DIRECTION_WRITE)
        return payload_check(b->host->kernel, kaddr_add(b->buffer, part.at), tag, part.bytes, is);
    unsigned to = b->direction == DIRECTION_PEER;
    return gpu_memory_check(b->model[to], b->offset[to] + part.at, tag, part.bytes, is);
}

/* 0, or what the driver says. The interrupt that ends the wait comes behind the copy's last byte.
 */
static int timed_copy(struct bandwidth *b, struct gpu_drv *gpu, struct part part, double *ns)
{
    struct kernel *kernel = b->host->kernel;
    struct gpu_place inside = { NULL, b->offset[0] + part.at }, outside = { &b->mapping, part.at };
    bool read = b->direction == DIRECTION_READ;
    struct gpu_event begin, end;
    uint64_t begin_ps = k_now_ps(kernel);
    int error = gpu_event_record(gpu, b->engine, false, &begin);
    if (error == 0)
        error = gpu_copy(gpu, b->engine, read ? inside : outside, read ? outside : inside,
                         part.bytes);
    if (error == 0)
        error = gpu_event_record(gpu, b->engine, b->timing != TIMING_SPIN, &end);
    if (error == 0)
        error = gpu_submit(gpu, b->engine);
    if (error == 0)
        error = gpu_event_wait(gpu, &end, k_now_ps(kernel) + COPY_TIMEOUT_PS);
    if (error == 0)
        *ns = b->timing == TIMING_EVENTS
                  ? (double)(gpu_event_ns(gpu, &end) - gpu_event_ns(gpu, &begin))
                  : (double)(k_now_ps(kernel) - begin_ps) / 1e3;
    return error;
}

/* Copy number i, whose bytes begin at `mark` of the program's stream. */
static bool checked_copy(struct bandwidth *b, struct gpu_drv *gpu, struct part part, uint32_t i,
                         uint64_t mark, double *ns)
{
    uint64_t tag = payload_mark(b->stream, mark);
    struct payload_difference is;
    *ns = 0;
    stamp_source(b, part, tag);
    int error = timed_copy(b, gpu, part, ns);
    if (error != 0) {
        program_fail(b->program, "copy %u: the driver says %s", i, strerror(-error));
        return false;
    }
    if (!arrived(b, part, tag, &is)) {
        k_fault(b->host->kernel, "%s: copy %u: %#llx where %#llx should be", b->program->name, i,
                (unsigned long long)is.found, (unsigned long long)is.expected);
        return false;
    }
    if (*ns <= 0) {
        program_fail(b->program,
                     "copy %u of %llu bytes took no time by the events' clock: "
                     "timer_ns of the GPU is too long",
                     i, (unsigned long long)part.bytes);
        return false;
    }
    return true;
}

/* Whether n copies, of more, are enough. Looks are few: the narrowest of many intervals is too
 * narrow. */
static bool enough(const struct bandwidth *b, uint32_t n)
{
    const double precision = b->program->workload->measure.precision_ratio;
    return precision != 0 && program_alone(b->program) && n >= SAMPLE_COPIES && n < b->n &&
           (n & (n - 1)) == 0 && stat_interval_ratio(b->gbyte_s, n) <= precision;
}

static bool iterate(struct bandwidth *b, struct gpu_drv *gpu)
{
    const struct part all = { 0, b->transfer_bytes };
    const uint64_t first = b->tried_bytes;
    for (uint32_t i = 0; i < b->n; i++) {
        double ns;
        if (!checked_copy(b, gpu, all, i, first + i * b->transfer_bytes, &ns))
            return false;
        b->gbyte_s[i] = (double)b->transfer_bytes / ns;
        if (enough(b, i + 1)) {
            b->sampled = true;
            b->known_ratio = stat_interval_ratio(b->gbyte_s, i + 1);
            b->n = i + 1;
        }
    }
    return true;
}

/* Parts of a long copy, each twice the one before. False: a copy has failed. If the time of a byte
 * has not become the same, parts_bytes stays 0: all of the copy has to be done. */
static bool measure_parts(struct bandwidth *b, struct gpu_drv *gpu)
{
    const double precision = b->program->workload->measure.precision_ratio;
    struct part part = { 0, PART_BYTES };
    double ns[2] = { 0, 0 }, byte_ns[2] = { 0, 0 };
    for (uint32_t i = 0; part.at + part.bytes <= b->transfer_bytes; i++) {
        ns[0] = ns[1];
        byte_ns[0] = byte_ns[1];
        if (!checked_copy(b, gpu, part, i, part.at, &ns[1]))
            return false;
        byte_ns[1] = (ns[1] - ns[0]) / ((double)part.bytes / 2);
        const double ratio = fabs(byte_ns[1] / byte_ns[0] - 1);
        if (i + 1 >= PARTS_MIN && ratio <= precision) {
            const double left = (double)(b->transfer_bytes - part.bytes);
            b->gbyte_s[0] = (double)b->transfer_bytes / (ns[1] + left * byte_ns[1]);
            b->n = 1;
            b->sampled = true;
            b->known_ratio = ratio;
            b->parts_bytes = part.at + part.bytes;
            return true;
        }
        part.at += part.bytes;
        part.bytes *= 2;
        b->tried_bytes = part.at;
    }
    return true;
}

static bool measure_copies(struct bandwidth *b, struct gpu_drv *gpu)
{
    const bool sampling = b->program->workload->measure.precision_ratio != 0;
    if (sampling && program_alone(b->program) && !measure_parts(b, gpu))
        return false;
    return b->parts_bytes != 0 || iterate(b, gpu);
}

/* ---- The program ----------------------------------------------------------------------------- */

/* Memory and addresses; what has been got before a failure stays with the device until it goes. */
static int prepare(struct bandwidth *b, struct gpu_drv *gpu, struct gpu_drv *peer)
{
    struct kernel *kernel = b->host->kernel;
    int error = gpu_alloc(gpu, b->transfer_bytes, &b->offset[0]);
    if (error != 0)
        return error;
    if (b->direction == DIRECTION_PEER) {
        error = gpu_alloc(peer, b->transfer_bytes, &b->offset[1]);
        return error != 0 ? error
                          : gpu_map_peer(gpu, peer, b->offset[1], b->transfer_bytes, &b->mapping);
    }
    /* As blocks of a buddy allocator are. */
    uint64_t align = K_PAGE_BYTES;
    while (align < GPU_HOST_BLOCK_BYTES && 2 * align <= b->transfer_bytes)
        align *= 2;
    b->buffer = k_alloc(kernel, (int)k_node_of_cpu(kernel, b->cpu), b->transfer_bytes, align);
    if (b->buffer.v == 0)
        return -ENOMEM;
    return gpu_map_host(gpu, b->buffer, b->transfer_bytes, &b->mapping);
}

static struct gpu_drv *find_gpu(struct bandwidth *b, const char *name)
{
    struct k_pci_dev *dev = lending_device(b->host, name);
    struct gpu_drv *gpu = dev != NULL ? gpu_of(dev) : NULL;
    if (gpu == NULL)
        program_fail(b->program, "%s has no driver", name);
    return gpu;
}

static void bandwidth_body(void *arg)
{
    struct bandwidth *b = arg;
    bool to_peer = b->direction == DIRECTION_PEER;
    struct gpu_drv *gpu = find_gpu(b, b->gpu_name);
    struct gpu_drv *peer = to_peer ? find_gpu(b, b->peer_name) : NULL;
    if (gpu != NULL && (!to_peer || peer != NULL)) {
        int error = prepare(b, gpu, peer);
        if (error != 0) {
            program_fail(b->program, "no memory or no address for %llu bytes: %s",
                         (unsigned long long)b->transfer_bytes, strerror(-error));
        } else {
            b->ended = program_await_measurement(b->program, b->host->kernel) &&
                       measure_copies(b, gpu);
            gpu_unmap(gpu, &b->mapping);
        }
    }
    program_finish(b->program);
}

static void bandwidth_start(struct program *program)
{
    struct bandwidth *b = program->state;
    b->stream = program_new_stream(program);
    uint64_t n = SIM_MAX(b->volume_bytes / b->transfer_bytes, (uint64_t)ITERATIONS_MIN);
    b->n = b->n_asked = (uint32_t)SIM_MIN(n, (uint64_t)b->iterations);
    b->gbyte_s = program_zalloc(program, b->n, sizeof(*b->gbyte_s));
    program->finite = true;
    program_lending_uses_cpu(program, b->host, b->cpu);
    k_thread_new(b->host->kernel, "bandwidthTest", (int)b->cpu, bandwidth_body, b);
}

static void record_tlps(struct bandwidth *b)
{
    const struct ntb_stats *stats = &((const struct ntb *)b->analyser->state)->stats;
    bool read = b->direction == DIRECTION_READ;
    uint64_t n = read ? stats->reads_out : stats->requests_out - stats->reads_out;
    uint64_t bytes = read ? stats->read_bytes_out : stats->write_bytes_out;
    if (n != 0)
        program_metric(b->program, "tlp_bytes_after_iommu", "bytes", (double)bytes / (double)n);
}

static void note_sampled(const struct bandwidth *b)
{
    char text[256];
    if (!b->sampled)
        return;
    if (b->parts_bytes != 0)
        snprintf(text, sizeof(text),
                 "%.60s: of %u copies of %llu bytes parts of %llu bytes were copied; the time of a "
                 "byte is known to %.2g %%",
                 b->program->name, b->n_asked, (unsigned long long)b->transfer_bytes,
                 (unsigned long long)b->parts_bytes, 100 * b->known_ratio);
    else
        snprintf(text, sizeof(text),
                 "%.60s: %u of %u copies; half the 95 %% interval of their rate is %.2g %%",
                 b->program->name, b->n, b->n_asked, 100 * b->known_ratio);
    run_result_note(b->program->workload->result, "sampled", text);
}

static void bandwidth_record(struct program *program, sim_time duration_ps)
{
    struct bandwidth *b = program->state;
    (void)duration_ps;
    if (!b->ended)
        return;
    note_sampled(b);
    if (b->analyser != NULL)
        record_tlps(b);
    const double median = program_sort(b->gbyte_s, b->n);
    program_metric(program, "throughput_gbyte_s", "GB/s", median);
    program_metric(program, "throughput_min_gbyte_s", "GB/s", b->gbyte_s[0]);
    program_metric(program, "throughput_max_gbyte_s", "GB/s", b->gbyte_s[b->n - 1]);
    program_metric(program, "transfer_us", "us", (double)b->transfer_bytes / median / 1000.0);
}

const struct program_ops program_bandwidth_test_ops = {
    .type = "bandwidth_test",
    .help = "bandwidthTest of CUDA: copies between a GPU and a host, or another GPU",
    .state_bytes = sizeof(struct bandwidth),
    .params = bandwidth_params,
    .records = bandwidth_records,
    .check = bandwidth_check,
    .start = bandwidth_start,
    .record = bandwidth_record,
};
