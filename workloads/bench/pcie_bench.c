/*
 * pcie-bench (SIGCOMM 2018): an adapter reads and writes a window of host memory in units of whole
 * cache lines, at random or in order; latency one operation at a time, bandwidth with as many as
 * the adapter takes. The window is cold, or written by a core before (host_warm), or by the device
 * (device_warm). Every byte read is checked against what was written there last.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/nfp/requester.h"
#include "workloads/base/sampling.h"

enum bench_op { BENCH_READ, BENCH_WRITE, BENCH_WRITE_READ, BENCH_READ_WRITE };
enum bench_cache { BENCH_COLD, BENCH_HOST_WARM, BENCH_DEVICE_WARM };
enum bench_measure { BENCH_LATENCY, BENCH_BANDWIDTH };
enum bench_pattern { BENCH_RANDOM, BENCH_SEQUENTIAL };
enum bench_payload { BENCH_TAG, BENCH_BYTES };

static const char *const op_names[] = { "read", "write", "write_read", "read_write", NULL };
static const char *const cache_names[] = { "cold", "host_warm", "device_warm", NULL };
static const char *const measure_names[] = { "latency", "bandwidth", NULL };
static const char *const pattern_names[] = { "random", "sequential", NULL };
static const char *const payload_names[] = { "tag", "bytes", NULL };
static const char *const interface_names[] = { "command", "bulk", NULL };

/* Who wrote a line last: origin in the top byte, line or sequence below. In the line's first 8
 * bytes (payload "tag") or in all of them ("bytes"). */
#define TAG_HOST        UINT64_C(0x4800000000000000)
#define TAG_DEVICE      UINT64_C(0x4400000000000000)
#define TAG_ORIGIN_MASK UINT64_C(0xff00000000000000)

#define MEMORY_SOCKET 8 /* of warm_socket: as memory_socket */

struct bench_state;

/* One operation under way, with its buffer. */
struct bench_slot {
    struct pcie_requester_op op;
    struct bench_state *bench;
    struct sim_event pause; /* latency: until the next transaction */
    struct sim_stamp stamp;
    sim_time start_ps;
    uint64_t offset; /* in the window */
    uint64_t sequence;
    uint8_t *buffer;
};

struct bench_state {
    /* parameters */
    const char *device_name, *host_name;
    int op, cache, measure, pattern, interface, payload;
    uint64_t transfer_bytes, offset_bytes, window_bytes, iommu_page_bytes;
    sim_time gap_ps;
    uint32_t memory_socket, warm_socket, queue_depth;
    bool low_memory;
    /* resolved */
    struct workload *workload;
    struct model *device;
    struct host *host;
    unsigned device_socket;
    /* running */
    struct hpa hpa;
    struct iova iova;
    struct bench_slot *slot;
    uint8_t *buffers;
    struct sim_random random;
    uint64_t unit_bytes, n_units, next_unit, submitted, in_flight;
    bool ready, measuring;
    bool ending;  /* enough is measured: no operation begins any more */
    bool drained; /* ... and none is under way */
    sim_time begin_ps;
    /* measured */
    struct stat_mean latency_ns;
    struct stat_histogram latency_ps;
    struct part_means parts;
    uint64_t bytes, transactions;
    double bytes_at[SETTLE_PARTS + 1]; /* bandwidth: at the ends of equal parts */
    struct rate_sampler sampler;
    struct sampling sampling;
};

static const struct param_desc bench_params[] = {
    PARAM_TEXT("device", struct bench_state, device_name, "nfp", "the adapter, a pcie.requester"),
    PARAM_TEXT("host", struct bench_state, host_name, "server", "the host whose memory it uses"),
    PARAM_ONE_OF("measure", struct bench_state, measure, BENCH_LATENCY, measure_names, PROV_NONE,
                 "", "one operation at a time, or as many as the adapter takes"),
    PARAM_ONE_OF("interface", struct bench_state, interface, PCIE_REQUESTER_BULK, interface_names,
                 PROV_NONE, "", "which of the adapter's interfaces"),
    PARAM_ONE_OF("op", struct bench_state, op, BENCH_READ, op_names, PROV_NONE, "",
                 "write_read: write, then read the same back; read_write: both at once"),
    PARAM_ONE_OF("cache", struct bench_state, cache, BENCH_COLD, cache_names, PROV_NONE, "",
                 "who wrote the window before: nobody, a core, the device"),
    PARAM_ONE_OF("pattern", struct bench_state, pattern, BENCH_RANDOM, pattern_names, PROV_NONE, "",
                 "order of units within the window"),
    PARAM_ONE_OF("payload", struct bench_state, payload, BENCH_TAG, payload_names, PROV_NONE, "",
                 "what is carried and checked: 8 bytes of each cache line, or every byte"),
    PARAM("transfer_bytes", PARAM_BYTES, struct bench_state, transfer_bytes, 64, 1, 65536,
          PROV_NONE, "", "of one operation; a unit is this rounded up to whole cache lines"),
    PARAM("offset_bytes", PARAM_BYTES, struct bench_state, offset_bytes, 0, 0, 4095, PROV_NONE, "",
          "an operation begins so far into its unit, which is longer by as much"),
    PARAM("window_bytes", PARAM_BYTES, struct bench_state, window_bytes, 8192, 64, 1e12, PROV_NONE,
          "", "size of the window"),
    PARAM("memory_socket", PARAM_U32, struct bench_state, memory_socket, 0, 0, 7, PROV_NONE, "",
          "socket whose memory holds the window"),
    PARAM("warm_socket", PARAM_U32, struct bench_state, warm_socket, MEMORY_SOCKET, 0,
          MEMORY_SOCKET, PROV_NONE, "",
          "socket of the core that writes the window before (host_warm); 8: memory_socket"),
    PARAM("low_memory", PARAM_BOOL, struct bench_state, low_memory, 0, 0, 1, PROV_NONE, "",
          "the window lies below 4 GiB, not where the kernel puts it; without an IOMMU"),
    PARAM("iommu_page_bytes", PARAM_BYTES, struct bench_state, iommu_page_bytes, 4096, 4096,
          1073741824, PROV_NONE, "", "page size of the IOMMU's mapping: 4 KiB, 2 MiB or 1 GiB"),
    PARAM(
        "gap_ns", PARAM_TIME, struct bench_state, gap_ps, 450, 0, 1e6, PROV_NONE, "",
        "latency: mean pause of the adapter's program between transactions, uniform from 0 to twice "
        "that, so that it does not fall into step with DRAM refresh"),
    PARAM("queue_depth", PARAM_U32, struct bench_state, queue_depth, 64, 1, 4096, PROV_NONE, "",
          "operations that the driver keeps queued, per kind; bandwidth only"),
    { .type = PARAM_END },
};

static const struct record_desc bench_records[] = {
    { "latency_mean_ns", RECORD_METRIC, "ns", "from the first TLP to the last, mean" },
    { "latency_mean_ns.ci95", RECORD_METRIC, "ns", "half its 95 % confidence interval" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "the same, each transaction" },
    { "latency_part_ns.*", RECORD_METRIC, "ns", "where it comes from (measure.latency_parts)" },
    { "throughput_gbit_s", RECORD_METRIC, "Gbit/s", "payload; read_write: of a direction" },
    { "transactions_mt_s", RECORD_METRIC, "MT/s", "transactions; read_write: of a direction" },
    { "transactions", RECORD_METRIC, "1", "how many were measured" },
    { "llc_misses_per_operation", RECORD_METRIC, "1", "lines that no LLC had, of all sockets" },
    { "throughput_gbit_s", RECORD_SERIES, "Gbit/s",
      "the same over time (measure.sample_interval_us)" },
    { "memory_gbyte_s", RECORD_SERIES, "GB/s", "DRAM traffic (measure.sample_interval_us)" },
    { "latency_mean_ns", RECORD_SERIES, "ns", "of transactions that ended in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* ---- Data ------------------------------------------------------------------------------------ */

/* Bytes between tags: of one cache line to the next, or none. */
static uint64_t tag_stride(const struct bench_state *bench)
{
    return bench->payload == BENCH_TAG ? LINE_BYTES : sizeof(uint64_t);
}

/* Of a buffer: tags lie at multiples of tag_stride() in memory. */
static uint64_t first_tag(const struct bench_state *bench)
{
    const uint64_t stride = tag_stride(bench);
    return (stride - bench->offset_bytes % stride) % stride;
}

/* Writes the device's tag into the slot's buffer. */
static void fill_buffer(struct bench_slot *slot, uint64_t tag)
{
    const uint64_t bytes = slot->bench->transfer_bytes, stride = tag_stride(slot->bench);
    uint64_t at = first_tag(slot->bench);
    for (; at + sizeof(tag) <= bytes; at += stride)
        memcpy(slot->buffer + at, &tag, sizeof(tag));
    if (at < bytes) /* only the last can be cut off */
        memcpy(slot->buffer + at, &tag, bytes - at);
}

/* The bytes of a tag that a transfer of so many bytes carries. */
static uint64_t tag_part(uint64_t tag, uint64_t bytes)
{
    return bytes >= 8 ? tag : tag & ((UINT64_C(1) << (8 * bytes)) - 1);
}

static bool tag_expected(struct bench_slot *slot, uint64_t line, uint64_t tag, uint64_t bytes)
{
    const struct bench_state *bench = slot->bench;
    uint64_t host = tag_part(TAG_HOST | line, bytes);
    switch ((enum bench_op)bench->op) {
    case BENCH_WRITE_READ: return tag == tag_part(TAG_DEVICE | slot->sequence, bytes);
    case BENCH_READ_WRITE: return tag == host || bytes < 8 || (tag & TAG_ORIGIN_MASK) == TAG_DEVICE;
    default:
        return tag ==
               (bench->cache == BENCH_DEVICE_WARM ? tag_part(TAG_DEVICE | line, bytes) : host);
    }
}

static void check_buffer(struct bench_slot *slot)
{
    struct bench_state *bench = slot->bench;
    uint64_t bytes = bench->transfer_bytes;
    for (uint64_t at = first_tag(bench); at < bytes; at += tag_stride(bench)) {
        uint64_t tag = 0, n = SIM_MIN(sizeof(tag), bytes - at);
        memcpy(&tag, slot->buffer + at, n);
        if (!tag_expected(slot, (slot->offset + at) / LINE_BYTES, tag, n)) {
            sim_fail(bench->workload->sim, "wrong data at offset %llu of the window: %016llx",
                     (unsigned long long)(slot->offset + at), (unsigned long long)tag);
            return;
        }
    }
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* As in pcie-bench, which passes over units whose transfer would cross a page: its adapter's engine
 * takes none of them. What is longer than a page crosses one anyway. */
static bool crosses_page(const struct bench_state *bench, uint64_t offset)
{
    return offset % PAGE_BYTES + bench->transfer_bytes > PAGE_BYTES &&
           bench->offset_bytes + bench->transfer_bytes <= PAGE_BYTES;
}

static uint64_t next_unit(struct bench_state *bench)
{
    const uint64_t unit = bench->next_unit;
    if (bench->pattern == BENCH_RANDOM)
        return sim_random_below(&bench->random, bench->n_units);
    bench->next_unit = unit + 1 == bench->n_units ? 0 : unit + 1;
    return unit;
}

/* The window's first unit crosses none, so this ends. */
static uint64_t next_offset(struct bench_state *bench)
{
    uint64_t offset;
    do
        offset = next_unit(bench) * bench->unit_bytes + bench->offset_bytes;
    while (crosses_page(bench, offset));
    return offset;
}

static void submit(struct bench_slot *slot, bool write)
{
    struct bench_state *bench = slot->bench;
    slot->op.write = write;
    slot->op.iova.v = bench->iova.v + slot->offset;
    if (write)
        fill_buffer(slot, TAG_DEVICE | slot->sequence);
    pcie_requester_submit(bench->device, &slot->op);
}

/* Begins the slot's next transaction. */
static void begin(struct bench_slot *slot)
{
    struct bench_state *bench = slot->bench;
    bool write = bench->op == BENCH_WRITE || bench->op == BENCH_WRITE_READ ||
                 (bench->op == BENCH_READ_WRITE && bench->submitted % 2 == 1);
    slot->offset = next_offset(bench);
    slot->sequence = ++bench->submitted;
    slot->start_ps = sim_now(bench->workload->sim);
    bench->in_flight++;
    if (slot->op.stamp != NULL)
        sim_stamp_start(slot->op.stamp, slot->start_ps);
    submit(slot, write);
}

static void pause_ends(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    begin(SIM_CONTAINER(event, struct bench_slot, pause));
}

/* The slot's next transaction: at once where throughput counts, after a pause where latency does.
 */
static void go_on(struct bench_slot *slot)
{
    struct bench_state *bench = slot->bench;
    if (bench->measure == BENCH_BANDWIDTH || bench->gap_ps == 0) {
        begin(slot);
        return;
    }
    sim_event_init(&slot->pause, pause_ends);
    sim_schedule_in(bench->workload->sim, &slot->pause,
                    sim_random_below(&bench->random, 2 * bench->gap_ps + 1));
}

static void record(struct bench_slot *slot)
{
    struct bench_state *bench = slot->bench;
    sim_time now_ps = sim_now(bench->workload->sim);
    bench->transactions++;
    bench->bytes += bench->transfer_bytes;
    stat_mean_add(&bench->latency_ns, (double)(now_ps - slot->start_ps) / 1000.0);
    stat_histogram_add(&bench->latency_ps, now_ps - slot->start_ps);
    if (slot->op.stamp != NULL)
        part_means_add(bench->workload, &bench->parts, slot->op.stamp, now_ps);
    /* A bandwidth is measured until a point in time that no operation decides about. */
    if (workload_measured(bench->workload, &bench->latency_ns) ||
        (bench->measure == BENCH_LATENCY &&
         now_ps >= bench->begin_ps + bench->workload->measure.duration_ps)) {
        bench->ending = true;
        sim_stop(bench->workload->sim);
    }
}

static void op_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct bench_slot *slot = op->context;
    struct bench_state *bench = slot->bench;
    if (status != PCIE_DMA_OK) {
        sim_fail(bench->workload->sim, "a DMA %s of %s ended with status %d",
                 op->write ? "write" : "read", bench->device_name, (int)status);
        return;
    }
    if (!op->write)
        check_buffer(slot);
    if (op->write && bench->op == BENCH_WRITE_READ) {
        memset(slot->buffer, 0, bench->transfer_bytes);
        submit(slot, false);
        return;
    }
    bench->in_flight--;
    if (bench->measuring && !bench->ending)
        record(slot);
    if (!bench->ending) {
        go_on(slot);
    } else if (bench->in_flight == 0) {
        bench->drained = true;
        sim_stop(bench->workload->sim);
    }
}

static uint64_t payload_bytes(const struct workload *workload, unsigned idx)
{
    const struct bench_state *bench = workload->state;
    (void)idx;
    return bench->op == BENCH_READ_WRITE ? bench->bytes / 2 : bench->bytes;
}

static uint64_t latencies_ps(const struct workload *workload, unsigned idx)
{
    (void)idx;
    return (uint64_t)((const struct bench_state *)workload->state)->latency_ps.sum;
}

static uint64_t latencies(const struct workload *workload, unsigned idx)
{
    (void)idx;
    return ((const struct bench_state *)workload->state)->latency_ps.n;
}

static const struct rate_series bench_series[] = {
    { "throughput_gbit_s", "Gbit/s", 8e-9, payload_bytes, NULL },
    { "memory_gbyte_s", "GB/s", 1e-9, workload_dram_bytes, NULL },
    { "latency_mean_ns", "ns", 1e-3, latencies_ps, latencies },
};

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void window_fits(const struct bench_state *bench, struct sim_error_list *errors)
{
    const uint64_t bytes = physmem_node_bytes(host_physmem(bench->host), bench->memory_socket);
    char expected[80];
    if (bench->window_bytes <= bytes)
        return;
    snprintf(expected, sizeof(expected), "at most the %llu bytes of socket %u's memory",
             (unsigned long long)bytes, bench->memory_socket);
    workload_mistake(bench->workload, "window_bytes", errors, expected, NULL);
}

static void bench_check(struct workload *workload, struct sim_error_list *errors)
{
    struct bench_state *bench = workload->state;
    bench->workload = workload;
    bench->device = world_device(workload->world, bench->device_name);
    bench->host = world_host(workload->world, bench->host_name);
    if (!world_faulty(workload->world, bench->device_name) &&
        (bench->device == NULL || bench->device->ops != &pcie_requester_ops))
        workload_mistake(workload, "device", errors, "a device of type pcie.requester",
                         world_device_names(workload->world));
    if (bench->host == NULL && !world_faulty(workload->world, bench->host_name))
        workload_mistake(workload, "host", errors, "a host", world_host_names(workload->world));
    const uint64_t unit_bytes = bench->offset_bytes + bench->transfer_bytes;
    bench->unit_bytes = (unit_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    bench->n_units = bench->window_bytes / bench->unit_bytes;
    if (bench->n_units == 0)
        workload_mistake(workload, "window_bytes", errors,
                         "a window of at least one unit: offset and transfer, in whole lines",
                         NULL);
    if (bench->interface == PCIE_REQUESTER_COMMAND &&
        bench->transfer_bytes > PCIE_REQUESTER_COMMAND_BYTES_MAX)
        workload_mistake(workload, "transfer_bytes", errors,
                         "at most 64 bytes through the command interface", NULL);
    if (bench->iommu_page_bytes != PAGE_BYTES && bench->iommu_page_bytes != 2 * 1024 * 1024 &&
        bench->iommu_page_bytes != 1024 * 1024 * 1024)
        workload_mistake(workload, "iommu_page_bytes", errors, "4 KiB, 2 MiB or 1 GiB", NULL);
    if (bench->measure == BENCH_BANDWIDTH && bench->op == BENCH_WRITE_READ)
        workload_mistake(workload, "op", errors,
                         "read, write or read_write: write_read is a latency", NULL);
    if (bench->measure == BENCH_BANDWIDTH)
        workload_no_effect(workload, "gap_ns", "measure", errors,
                           "measure = \"latency\" beside it: it has no effect otherwise");
    else
        workload_no_effect(workload, "queue_depth", "measure", errors,
                           "measure = \"bandwidth\" beside it: it has no effect otherwise");
    if (bench->host == NULL || bench->device == NULL)
        return;
    if (bench->memory_socket >= physmem_nodes(host_physmem(bench->host)))
        workload_mistake(workload, "memory_socket", errors, "a socket of the host that has memory",
                         NULL);
    else
        window_fits(bench, errors);
    if (bench->warm_socket != MEMORY_SOCKET &&
        bench->warm_socket >= numa_sockets(host_numa(bench->host)))
        workload_mistake(workload, "warm_socket", errors, "a socket of the host", NULL);
    if (bench->low_memory && (bench->memory_socket != 0 || host_iommu_enabled(bench->host)))
        workload_mistake(workload, "low_memory", errors,
                         "memory of socket 0, which alone has some below 4 GiB, and no IOMMU",
                         NULL);
    if (world_sound(workload->world) &&
        world_host_of(workload->world, bench->device) != bench->host)
        workload_mistake(workload, "device", errors,
                         "a device that cables plug into the workload's host", NULL);
}

/* Writes the window's contents, and puts the caches into the state asked for. */
static void prepare_window(struct bench_state *bench)
{
    struct numa *numa = host_numa(bench->host);
    struct physmem *mem = host_physmem(bench->host);
    uint64_t origin = bench->cache == BENCH_DEVICE_WARM ? TAG_DEVICE : TAG_HOST;
    for (uint64_t line = 0; line < bench->window_bytes / LINE_BYTES; line++) {
        uint64_t tag = origin | line;
        for (uint64_t at = 0; at < LINE_BYTES; at += tag_stride(bench))
            physmem_write64(mem, (struct hpa){ bench->hpa.v + line * LINE_BYTES + at }, tag);
    }
    numa_warm_drop_all(numa);
    const uint32_t socket = bench->warm_socket == MEMORY_SOCKET ? bench->memory_socket
                                                                : bench->warm_socket;
    if (bench->cache == BENCH_HOST_WARM)
        numa_warm_core(numa, socket * numa_cores(numa) / numa_sockets(numa), bench->hpa,
                       bench->window_bytes);
    else if (bench->cache == BENCH_DEVICE_WARM)
        numa_warm_device(numa, bench->device_socket, bench->hpa, bench->window_bytes);
}

/* Bytes that the simulating machine can give to a window: every page of it is touched. */
static uint64_t memory_at_hand(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages / 2 * (uint64_t)page_bytes : UINT64_MAX;
}

/* Memory of the window at hpa, and where the adapter finds it. 0 or a negative errno. */
static int window_take(struct bench_state *bench)
{
    if (!bench->low_memory)
        return host_dma_alloc(bench->host, pcie_requester_id(bench->device), bench->memory_socket,
                              bench->window_bytes, bench->iommu_page_bytes, &bench->hpa,
                              &bench->iova);
    if (!physmem_alloc_low(host_physmem(bench->host), bench->memory_socket, bench->window_bytes,
                           PAGE_BYTES, &bench->hpa))
        return -ENOMEM;
    bench->iova.v = bench->hpa.v;
    return 0;
}

static void window_give(struct bench_state *bench)
{
    const uint64_t pages = (bench->window_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    if (bench->low_memory)
        physmem_release(host_physmem(bench->host), bench->hpa, pages * PAGE_BYTES);
    else
        host_dma_free(bench->host, pcie_requester_id(bench->device), bench->window_bytes,
                      bench->iommu_page_bytes, bench->hpa, bench->iova);
}

/* The adapter's driver: read-request size, a window of memory. */
static void probe(struct sim_task *task, void *arg)
{
    struct bench_state *bench = arg;
    uint16_t id = pcie_requester_id(bench->device);
    host_set_mrrs(bench->host, task, id, pcie_requester_mrrs_bytes(bench->device));
    int status = window_take(bench);
    if (status != 0)
        sim_fail(bench->workload->sim, "no memory for a window of %llu bytes on socket %u: %s",
                 (unsigned long long)bench->window_bytes, bench->memory_socket, strerror(-status));
    else if (bench->window_bytes > memory_at_hand())
        sim_fail(bench->workload->sim,
                 "a window of %llu bytes needs as much of this machine's memory",
                 (unsigned long long)bench->window_bytes);
    bench->ready = sim_error(bench->workload->sim) == NULL;
    sim_task_sync(task);
    sim_stop(bench->workload->sim);
}

static unsigned start_slots(struct bench_state *bench)
{
    unsigned n = bench->measure == BENCH_LATENCY ? 1
                 : bench->op == BENCH_READ_WRITE ? 2 * bench->queue_depth
                                                 : bench->queue_depth;
    bench->slot = sim_zalloc(n, sizeof(*bench->slot));
    bench->buffers = sim_zalloc(n, bench->unit_bytes);
    for (unsigned i = 0; i < n; i++) {
        struct bench_slot *slot = &bench->slot[i];
        slot->bench = bench;
        slot->buffer = bench->buffers + i * bench->unit_bytes;
        slot->op = (struct pcie_requester_op){ .interface = (uint8_t)bench->interface,
                                               .bulk = bench->payload == BENCH_TAG,
                                               .bytes = (uint32_t)bench->transfer_bytes,
                                               .buffer = slot->buffer,
                                               .done = op_done,
                                               .context = slot };
        if (bench->workload->measure.latency_parts)
            slot->op.stamp = &slot->stamp;
    }
    for (unsigned i = 0; i < n; i++)
        begin(&bench->slot[i]);
    return n;
}

/* Lines of DMA reads and writes that no LLC had, of all sockets; after the world is recorded. */
static double llc_misses(const struct bench_state *bench)
{
    double misses = 0;
    char name[96];
    for (unsigned s = 0; s < numa_sockets(host_numa(bench->host)); s++) {
        snprintf(name, sizeof(name), "%s.s%u.dma_read_misses", bench->host_name, s);
        misses += run_result_value(bench->workload->result, name);
        snprintf(name, sizeof(name), "%s.s%u.dma_write_allocates", bench->host_name, s);
        misses += run_result_value(bench->workload->result, name);
    }
    return misses;
}

static void report(struct bench_state *bench, sim_time duration_ps)
{
    struct run_result *result = bench->workload->result;
    double directions = bench->op == BENCH_READ_WRITE ? 2.0 : 1.0;
    double per_s = duration_ps != 0 ? 1e12 / (double)duration_ps : 0.0;
    run_result_metric(result, "latency_mean_ns", "ns", stat_mean_value(&bench->latency_ns));
    if (isfinite(stat_mean_ci95(&bench->latency_ns)))
        run_result_metric(result, "latency_mean_ns.ci95", "ns", stat_mean_ci95(&bench->latency_ns));
    run_result_metric(result, "throughput_gbit_s", "Gbit/s",
                      (double)bench->bytes * 8.0 * per_s / 1e9 / directions);
    run_result_metric(result, "transactions_mt_s", "MT/s",
                      (double)bench->transactions * per_s / 1e6 / directions);
    run_result_metric(result, "transactions", "1", (double)bench->transactions);
    run_result_histogram(result, "latency_ns", "ns", 0.001, &bench->latency_ps);
    part_means_record(bench->workload, &bench->parts);
    workload_record_world(bench->workload, NULL, duration_ps);
    run_result_metric(result, "llc_misses_per_operation", "1",
                      llc_misses(bench) / (double)bench->transactions);
}

/* sampling_read_fn; beside the flows of the world. */
static void read_transfers(void *context, struct sampling *sampling)
{
    const struct bench_state *bench = context;
    sampling_add(sampling, "pcie_bench", ".throughput", SAMPLING_FLOW, (double)bench->bytes, -1);
    sampling_add(sampling, "pcie_bench", ".latency", SAMPLING_VALUE, bench->latency_ps.sum,
                 (double)bench->latency_ps.n);
}

static void sample_bytes(void *context, unsigned i)
{
    struct bench_state *bench = context;
    bench->bytes_at[i] = (double)bench->bytes;
}

/* What is recorded is taken at the instant at which the measurement ends; what is under way then is
 * let go on and checked, but does not count. */
static void measure(struct bench_state *bench)
{
    struct workload *workload = bench->workload;
    bool never = false;
    const bool sampled = bench->measure == BENCH_BANDWIDTH &&
                         workload->measure.precision_ratio != 0 &&
                         workload->measure.sample_interval_ps == 0;
    start_slots(bench);
    if (bench->measure == BENCH_BANDWIDTH)
        workload->precision.ratio = 0; /* that of a latency does not end it */
    if (sampled)
        sampling_warm_up(&bench->sampling, workload->measure.warmup_ps);
    else
        workload_run_until(workload, &never, sim_now(workload->sim) + workload->measure.warmup_ps);
    world_stats_clear(workload->world);
    bench->begin_ps = sim_now(workload->sim);
    bench->measuring = true;
    rate_sampler_start(&bench->sampler, workload, bench_series, SIM_N_ELEMENTS(bench_series));
    if (sampled)
        sampling_measure(&bench->sampling, &bench->ending,
                         bench->begin_ps + workload->measure.duration_ps, sample_bytes, bench);
    else if (bench->measure == BENCH_BANDWIDTH)
        workload_run_parts(workload, &bench->ending,
                           bench->begin_ps + workload->measure.duration_ps, sample_bytes, bench);
    else
        workload_run_until(workload, &bench->ending, SIM_TIME_MAX);
    const bool whole = !bench->ending;
    rate_sampler_stop(&bench->sampler);
    bench->ending = true;
    if (!workload_goes_on(workload))
        return;
    const bool too_short = bench->transactions < (bench->measure == BENCH_BANDWIDTH ? 2 : 1);
    if (!too_short)
        report(bench, sim_now(workload->sim) - bench->begin_ps);
    if (bench->measure == BENCH_LATENCY)
        workload_mean_settled(workload, "latency_mean_ns", &bench->latency_ns);
    else if (whole && !bench->sampling.ended_early)
        workload_count_settled(workload, "throughput_gbit_s", bench->bytes_at,
                               (double)bench->transfer_bytes);
    if (sampled)
        sampling_note(&bench->sampling);
    bench->drained = bench->in_flight == 0;
    workload_run_until(workload, &bench->drained, SIM_TIME_MAX);
    if (too_short && workload_goes_on(workload))
        sim_fail(
            workload->sim,
            "%s transaction ended within measure.duration_us: it is too short for the transfers",
            bench->transactions == 0 ? "not one" : "only one");
}

static void bench_run(struct workload *workload)
{
    struct bench_state *bench = workload->state;
    stat_mean_init(&bench->latency_ns);
    stat_histogram_init(&bench->latency_ps);
    sampling_init(&bench->sampling, workload, read_transfers, bench);
    sim_random_init(&bench->random, sim_seed(workload->sim), "pcie_bench");
    bench->device_socket = (unsigned)(pcie_requester_id(bench->device) >> 8) /
                           (256 / numa_sockets(host_numa(bench->host)));
    struct sim_task *task = sim_task_new(workload->sim, "pcie_bench.probe", 0, probe, bench);
    sim_task_start(task, sim_now(workload->sim));
    workload_run_until(workload, &bench->ready, SIM_TIME_MAX);
    if (!bench->ready)
        return;
    prepare_window(bench);
    measure(bench);
    if (bench->drained)
        window_give(bench);
}

static void bench_release(struct workload *workload)
{
    struct bench_state *bench = workload->state;
    stat_histogram_release(&bench->latency_ps);
    sampling_release(&bench->sampling);
    free(bench->slot);
    free(bench->buffers);
}

const struct workload_ops workload_pcie_bench_ops = {
    .type = "pcie_bench",
    .help = "an adapter's DMA reads and writes: latency and bandwidth",
    .state_bytes = sizeof(struct bench_state),
    .params = bench_params,
    .records = bench_records,
    .check = bench_check,
    .run = bench_run,
    .release = bench_release,
};
