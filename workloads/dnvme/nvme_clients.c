/*
 * nvme_clients: processes on several hosts that read and write blocks of one NVMe controller, each
 * with a queue pair of its own (SmartIO, 7.4.1 and 7.4.2). A latency is that of a command: from
 * before its entry is written to when the completion was found in the queue. Each client has a span
 * of its own, which it writes first; each block that is read is compared with what was written
 * there last, not at its completion, which data into a GPU may take another way than, but before
 * its buffer is used again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "models/base/payload.h"
#include "models/gpu/gpu.h"
#include "models/nvme/nvme.h"
#include "workloads/dnvme/nvme_site.h"

#define NSID        1u
#define FILL_BYTES  131072u
#define CLIENTS_MAX 32u
#define POISON      (UINT64_C(0x7ff00000000)) /* position in the stream that no block has */
#define ENTRIES     64u                       /* of a queue */
#define SLICE_PS    (200 * SIM_PS_PER_US)     /* of waiting without a look whether the run ends */
#define COMMAND_PS  (50 * SIM_PS_PER_MS)      /* a command that takes so long is lost */
#define STEP_PS     (2 * SIM_PS_PER_US)
#define SAMPLES_MIN 4096u
#define SPARE \
    8u /* buffers more than commands: one is checked when so many others have been
                        * used */
#define ARRIVAL_PS (5 * SIM_PS_PER_US) /* the last data, after its completion */

enum sq_place { SQ_LOCAL_RAM, SQ_REMOTE_RAM, SQ_REMOTE_GPU, SQ_CMB };
static const char *const sq_names[] = { "local_ram", "remote_ram", "remote_gpu", "cmb", NULL };

struct nvme_clients;
struct client;

struct slot { /* a command and its buffer */
    struct nvme_user_command command;
    struct client *client;
    bool busy;
    uint64_t offset; /* of its buffer */
    uint64_t block, start_ps;
    bool to_check;
    uint64_t tag;
};

struct client {
    struct nvme_clients *all;
    unsigned number;
    struct lending_host *host;
    struct nvme_site site;
    struct dnvme_pair *pair;
    struct dnvme_buffer buffer;
    struct {
        struct dnvme_buffer from;
        struct nvme_user_command command;
        bool done;
    } fill;              /* of its span */
    struct gpu_drv *gpu; /* of the data; NULL: memory of the host */
    uint64_t gpu_at;
    struct gpu_drv *sq_gpu;
    uint64_t sq_at;
    struct sim_random random;
    uint16_t stream;
    uint64_t first_block;
    uint32_t *version;
    bool *busy;
    struct slot *slot; /* n_slots, used in turn */
    unsigned next_slot;
    unsigned in_flight;
    bool ready, dead, failed, done;
    uint64_t ended, measured;
    double *sample_ps;
    uint64_t n_samples, room;
    double longest_ps;
};

struct nvme_clients {
    /* parameters */
    const char *host_name, *device_name, *gpu_name, *sq_gpu_name;
    int sq, priority;
    uint32_t n_clients, cpu, queue_depth, think_cycles, dies;
    uint64_t block_bytes, span_bytes, operations;
    double read_ratio;
    bool laid_out;
    sim_time dies_ps;
    /* running */
    struct program *program;
    struct nvme_manager *manager;
    struct model *gpu_model;
    struct client client[CLIENTS_MAX];
    uint64_t disk_at, n_blocks;
    uint32_t device_blocks; /* in one of ours */
    unsigned n_done, first_number;
    bool failed;
    /* measured */
    sim_time began_ps; /* the first command, once all were ready; 0: they never were */
    sim_time begin_ps, death_ps;
    sim_time end_ps; /* of the last client's operations; 0: not yet, or there is no number */
};

static const char *const priority_names[] = { "urgent", "high", "medium", "low", NULL };

static const struct param_desc nvme_clients_params[] = {
    PARAM_TEXT("on", struct nvme_clients, host_name, "borrower",
               "host of the first client; more follow in the order of the group `lending`, but for "
               "the manager's"),
    PARAM("clients", PARAM_U32, struct nvme_clients, n_clients, 1, 1, CLIENTS_MAX, PROV_NONE, "",
          "each on a host of its own"),
    PARAM_TEXT("device", struct nvme_clients, device_name, "ssd",
               "an nvme.controller with a program nvme_manager"),
    PARAM_ONE_OF("sq", struct nvme_clients, sq, SQ_LOCAL_RAM, sq_names, PROV_NONE, "",
                 "where submission queues lie"),
    PARAM_TEXT("sq_gpu", struct nvme_clients, sq_gpu_name, "gpu0",
               "with sq = remote_gpu: a GPU that the first client's host can use"),
    PARAM_TEXT("gpu", struct nvme_clients, gpu_name, "",
               "whose memory data goes to and comes from; \"\": memory of the host"),
    PARAM("cpu", PARAM_U32, struct nvme_clients, cpu, 1, 0, 255, PROV_NONE, "",
          "that a client runs on, on its host"),
    PARAM("queue_depth", PARAM_U32, struct nvme_clients, queue_depth, 1, 1, ENTRIES - 1, PROV_NONE,
          "", "commands of a client under way"),
    PARAM("block_bytes", PARAM_BYTES, struct nvme_clients, block_bytes, 4096, 512, 131072,
          PROV_NONE, "", "of a command"),
    PARAM("span_bytes", PARAM_BYTES, struct nvme_clients, span_bytes, 16777216, 131072, 1e10,
          PROV_NONE, "", "of the device that a client uses"),
    PARAM_ONE_OF("priority", struct nvme_clients, priority, NVME_SQ_MEDIUM, priority_names,
                 PROV_NONE, "",
                 "of submission queues, if the manager's arbitration is weighted; urgent ones are "
                 "served before all others"),
    PARAM("read_ratio", PARAM_DOUBLE, struct nvme_clients, read_ratio, 1, 0, 1, PROV_NONE, "",
          "share of reads, the rest are writes"),
    PARAM("laid_out", PARAM_BOOL, struct nvme_clients, laid_out, 0, 0, 1, PROV_NONE, "",
          "what is read was written before the run, and need not be written first"),
    PARAM("operations", PARAM_U64, struct nvme_clients, operations, 0, 0, 1e12, PROV_NONE, "",
          "of each client, then it ends; 0: as long as is measured"),
    PARAM("think_cycles", PARAM_U32, struct nvme_clients, think_cycles, 200, 0, 100000,
          PROV_ESTIMATE, "docs/sources.md#c4", "of a client's own, between two commands"),
    PARAM("dies", PARAM_U32, struct nvme_clients, dies, 0, 0, CLIENTS_MAX, PROV_NONE, "",
          "client whose host dies, from 1; 0: none"),
    PARAM("dies_us", PARAM_TIME, struct nvme_clients, dies_ps, 500, 1, 1e6, PROV_NONE, "",
          "after the beginning of the measurement, then in the midst of its next command"),
    { .type = PARAM_END },
};

#define OF_CLIENT(n)                                                                       \
    { ".c" n ".latency_p50_ns", RECORD_METRIC, "ns", "of a client with several: median" }, \
    {                                                                                      \
        ".c" n ".iops", RECORD_METRIC, "1/s", "of a client with several"                   \
    }
#define OF_TEN(t)                                                                             \
    OF_CLIENT(t "0"), OF_CLIENT(t "1"), OF_CLIENT(t "2"), OF_CLIENT(t "3"), OF_CLIENT(t "4"), \
        OF_CLIENT(t "5"), OF_CLIENT(t "6"), OF_CLIENT(t "7"), OF_CLIENT(t "8"), OF_CLIENT(t "9")

static const struct record_desc nvme_clients_records[] = {
    { "latency_mean_ns", RECORD_METRIC, "ns", "of a command: written to completion found" },
    { "latency_p50_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_p99_ns", RECORD_METRIC, "ns", "quantile" },
    { "latency_max_ns", RECORD_METRIC, "ns", "the longest" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "each" },
    { "+iops", RECORD_METRIC, "1/s", "commands completed" },
    { "+throughput_gbyte_s", RECORD_METRIC, "GB/s", "payload of these" },
    { "+clients_progressing", RECORD_METRIC, "1", "that have completed a command while measured" },
    { "client_iops_min", RECORD_METRIC, "1/s", "of the client that had least" },
    { "client_iops_max", RECORD_METRIC, "1/s", "of the client that had most" },
    { "client_latency_p50_min_ns", RECORD_METRIC, "ns", "the lowest median of a client" },
    { "client_latency_p50_max_ns", RECORD_METRIC, "ns", "the highest median of a client" },
    { "reclaimed_after_us", RECORD_METRIC, "us", "death of a client to its queues being deleted" },
    { "others_after_death", RECORD_METRIC, "1", "clients that completed commands after that" },
    OF_TEN("0"),
    OF_TEN("1"),
    OF_TEN("2"),
    OF_CLIENT("30"),
    OF_CLIENT("31"), /* CLIENTS_MAX of them */
    { "latency_mean_ns", RECORD_SERIES, "ns", "of commands that ended in an interval" },
    { "+iops", RECORD_SERIES, "1/s", "completed per interval" },
    { "+throughput_gbyte_s", RECORD_SERIES, "GB/s", "payload of these" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void mistake(struct nvme_clients *all, const char *key, struct sim_error_list *errors,
                    const char *expected)
{
    program_mistake(all->program, key, errors, expected, NULL);
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void check_hosts(struct nvme_clients *all, struct sim_error_list *errors)
{
    struct lending *lending = all->program->lending;
    unsigned n = 1;
    for (unsigned i = 0; i < lending_n_hosts(lending) && n < all->n_clients; i++) {
        struct lending_host *host = lending_host_at(lending, i);
        if (host->takes_part && host->vm == NULL && host != all->client[0].host &&
            host != nvme_manager_host(all->manager))
            all->client[n++].host = host;
    }
    if (n < all->n_clients)
        mistake(all, "clients", errors,
                "at most as many as the group `lending` has hosts, but for the manager's");
    for (unsigned i = 0; i < n; i++)
        program_check_cpus(all->program, "cpu", all->client[i].host, all->cpu, 1, errors);
}

static void check_gpus(struct nvme_clients *all, struct sim_error_list *errors)
{
    struct lending_host *host = all->client[0].host;
    if (*all->gpu_name != '\0')
        all->gpu_model = program_device(all->program, "gpu", host, all->gpu_name, &gpu_ops, errors);
    if (all->sq == SQ_REMOTE_GPU)
        program_device(all->program, "sq_gpu", host, all->sq_gpu_name, &gpu_ops, errors);
    if ((*all->gpu_name != '\0' || all->sq == SQ_REMOTE_GPU) && all->n_clients != 1)
        mistake(all, "clients", errors, "1, as a GPU is one host's");
}

static void nvme_clients_check(struct program *program, struct sim_error_list *errors)
{
    struct nvme_clients *all = program->state;
    all->program = program;
    program->own_time = all->operations != 0;
    all->client[0].host = program_member(program, "on", all->host_name, true, errors);
    all->manager = nvme_manager_of(program, all->device_name, errors);
    if (all->client[0].host == NULL || all->manager == NULL)
        return;
    const struct model *device = nvme_manager_device(all->manager);
    check_hosts(all, errors);
    check_gpus(all, errors);
    nvme_manager_take_pairs(program, "clients", all->manager, all->n_clients, errors);
    nvme_manager_check_depth(program, all->manager, all->queue_depth, errors);
    const uint64_t bytes = all->n_clients * all->span_bytes;
    all->disk_at = program_take(program, device, "byte", bytes);
    if (all->disk_at + bytes > nvme_namespace_bytes(device))
        mistake(all, "span_bytes", errors, "at most what clients and programs share of the device");
    if (all->block_bytes % nvme_namespace_block_bytes(device) != 0 ||
        FILL_BYTES % all->block_bytes != 0)
        mistake(all, "block_bytes", errors, "a power of two up to 128 KiB, whole device blocks");
    if (all->span_bytes % FILL_BYTES != 0 ||
        all->span_bytes / all->block_bytes < 2 * (uint64_t)all->queue_depth)
        mistake(all, "span_bytes", errors,
                "whole units of 128 KiB, with at least two blocks for each command under way");
    if (all->priority != NVME_SQ_MEDIUM && !nvme_manager_is_weighted(all->manager))
        mistake(all, "priority", errors, "medium, unless the manager has arbitration = weighted");
    if (all->dies > all->n_clients)
        mistake(all, "dies", errors, "the number of a client, from 1, or 0");
    if (all->dies != 0 && all->dies_ps >= program->workload->measure.duration_ps)
        mistake(all, "dies_us", errors, "less than measure.duration_us, as the client is to die");
    all->device_blocks = (uint32_t)(all->block_bytes / nvme_namespace_block_bytes(device));
    all->n_blocks = all->span_bytes / all->block_bytes;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static struct kernel *kernel_of(const struct client *c)
{
    return c->host->kernel;
}

static void fail(struct client *c, const char *what, int status, const char *text)
{
    if (!c->all->failed)
        program_fail(c->all->program, "%s: %s: %s%s%s", c->host->name, what, strerror(-status),
                     *text != '\0' ? ": " : "", text);
    c->failed = c->all->failed = true;
}

static unsigned n_slots(const struct nvme_clients *all)
{
    return all->queue_depth + SPARE;
}

static uint64_t tag_of(const struct client *c, uint64_t block, uint32_t version)
{
    return payload_mark(c->stream, version * c->all->span_bytes + block * c->all->block_bytes);
}

static void put(struct client *c, const struct slot *slot, uint64_t tag)
{
    if (c->gpu != NULL)
        gpu_memory_stamp(c->all->gpu_model, c->gpu_at + slot->offset, tag, c->all->block_bytes);
    else
        payload_fill(kernel_of(c), kaddr_add(c->buffer.at, slot->offset), tag, c->all->block_bytes);
}

/* What the slot's last read has brought. */
static void check_data(struct client *c, struct slot *slot)
{
    struct payload_difference is;
    const uint64_t bytes = c->all->block_bytes;
    if (!slot->to_check)
        return;
    slot->to_check = false;
    if (c->gpu != NULL
            ? gpu_memory_check(c->all->gpu_model, c->gpu_at + slot->offset, slot->tag, bytes, &is)
            : payload_check(kernel_of(c), kaddr_add(c->buffer.at, slot->offset), slot->tag, bytes,
                            &is))
        return;
    c->failed = c->all->failed = true;
    k_fault(kernel_of(c), "%s, client %u, block %llu: %#llx where %#llx was written",
            c->all->program->name, c->number, (unsigned long long)slot->block,
            (unsigned long long)is.found, (unsigned long long)is.expected);
}

static void add_sample(struct client *c, double ps)
{
    if (c->n_samples == c->room) {
        c->room = 2 * c->room + SAMPLES_MIN;
        c->sample_ps = sim_grow(c->sample_ps, c->room, sizeof(*c->sample_ps));
    }
    c->sample_ps[c->n_samples++] = ps;
    c->longest_ps = SIM_MAX(c->longest_ps, ps);
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void command_done(struct nvme_user_command *command)
{
    struct slot *slot = command->context;
    struct client *c = slot->client;
    struct nvme_clients *all = c->all;
    const uint64_t took_ps = k_now_ps(kernel_of(c)) - slot->start_ps;
    c->in_flight--;
    c->ended++;
    c->busy[slot->block] = false;
    slot->busy = false;
    if (command->status != NVME_SC_SUCCESS) {
        slot->to_check = false;
        if (!c->dead && !program_ending(all->program))
            fail(c, "a command", -EIO, "the controller reports an error");
        return;
    }
    slot->to_check = command->sqe.opcode == NVME_READ;
    if (!program_measuring(all->program))
        return;
    c->measured++;
    program_count_operations(all->program, 1);
    if (slot->start_ps < all->begin_ps)
        return;
    program_operation_ended(all->program, slot->start_ps);
    stat_histogram_add(&all->program->histogram_ps, took_ps);
    add_sample(c, (double)took_ps);
}

static uint64_t device_block(const struct client *c, uint64_t block)
{
    return c->first_block + block * c->all->device_blocks;
}

/* The one that has been free for longest. */
static struct slot *next_slot(struct client *c)
{
    struct slot *slot;
    do {
        slot = &c->slot[c->next_slot];
        c->next_slot = (c->next_slot + 1) % n_slots(c->all);
    } while (slot->busy);
    return slot;
}

static void submit(struct client *c)
{
    struct nvme_clients *all = c->all;
    struct slot *slot = next_slot(c);
    k_compute(kernel_of(c), all->think_cycles);
    check_data(c, slot);
    do
        slot->block = sim_random_below(&c->random, all->n_blocks);
    while (c->busy[slot->block]);
    const bool write = sim_random_unit(&c->random) >= all->read_ratio;
    if (write)
        c->version[slot->block]++;
    slot->tag = tag_of(c, slot->block, c->version[slot->block]);
    put(c, slot, write ? slot->tag : payload_mark(c->stream, POISON));
    dnvme_io(&slot->command, write, NSID, device_block(c, slot->block), all->device_blocks);
    const struct nvme_user_piece piece = { c->buffer.bus[0] + slot->offset, all->block_bytes };
    slot->start_ps = k_now_ps(kernel_of(c));
    int status = dnvme_pair_put(c->pair, &slot->command, &piece, 1);
    if (status == 0) {
        slot->busy = true;
        c->busy[slot->block] = true;
        c->in_flight++;
        status = dnvme_pair_ring(c->pair);
    }
    if (status != 0)
        fail(c, "a submission", status, "");
}

static bool enough(const struct client *c)
{
    return c->failed || c->dead || program_ending(c->all->program) ||
           (c->all->operations != 0 && c->measured >= c->all->operations);
}

static void run(struct client *c)
{
    uint64_t heard_ps = k_now_ps(kernel_of(c));
    for (;;) {
        while (c->in_flight < c->all->queue_depth && !enough(c))
            submit(c);
        if (c->in_flight == 0 || c->dead || c->failed)
            return;
        const uint64_t now_ps = k_now_ps(kernel_of(c));
        if (dnvme_pair_wait(c->pair, now_ps + SLICE_PS) != 0)
            heard_ps = now_ps;
        else if (now_ps - heard_ps > COMMAND_PS && !c->dead)
            fail(c, "a command", -ETIMEDOUT, "");
    }
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void free_buffer(struct client *c, struct dnvme_buffer *buffer)
{
    if (buffer->bytes != 0)
        dnvme_buffer_free(c->site.client, buffer);
    buffer->bytes = 0;
}

static void fill_done(struct nvme_user_command *command)
{
    struct client *c = command->context;
    c->fill.done = true;
}

static int fill_one(struct client *c, uint64_t block)
{
    const struct nvme_clients *all = c->all;
    const uint32_t blocks = FILL_BYTES / (uint32_t)all->block_bytes * all->device_blocks;
    const struct nvme_user_piece piece = { c->fill.from.bus[0], FILL_BYTES };
    c->fill.done = false;
    c->fill.command = (struct nvme_user_command){ .done = fill_done, .context = c };
    payload_fill(kernel_of(c), c->fill.from.at, tag_of(c, block, 0), FILL_BYTES);
    dnvme_io(&c->fill.command, true, NSID, device_block(c, block), blocks);
    int status = dnvme_pair_put(c->pair, &c->fill.command, &piece, 1);
    if (status == 0)
        status = dnvme_pair_ring(c->pair);
    const uint64_t until_ps = k_now_ps(kernel_of(c)) + COMMAND_PS;
    while (status == 0 && !c->fill.done && k_now_ps(kernel_of(c)) < until_ps)
        dnvme_pair_wait(c->pair, until_ps);
    if (status != 0)
        return status;
    if (!c->fill.done)
        return -ETIMEDOUT;
    return c->fill.command.status == NVME_SC_SUCCESS ? 0 : -EIO;
}

/* Writes the span from memory of the host. With an error a command may still be the device's, so
 * what it needs stays until the pair is freed. */
static int fill(struct client *c)
{
    const struct nvme_clients *all = c->all;
    int status = dnvme_buffer_new(c->site.client, FILL_BYTES, &c->fill.from, NULL);
    for (uint64_t at = 0; status == 0 && at < all->span_bytes && !program_ending(all->program);
         at += FILL_BYTES)
        status = fill_one(c, at / all->block_bytes);
    if (status == 0)
        free_buffer(c, &c->fill.from);
    return status;
}

/* The span was written before the run. */
static void hold(const struct client *c)
{
    const struct nvme_clients *all = c->all;
    nvme_hold(nvme_manager_device(all->manager), NSID, all->disk_at + c->number * all->span_bytes,
              all->span_bytes, tag_of(c, 0, 0));
}

/* Memory of a GPU that its host can use. */
static int gpu_memory(struct client *c, const char *name, uint64_t bytes, struct k_pci_dev **dev,
                      struct gpu_drv **gpu, uint64_t *at)
{
    *dev = lending_device(c->host, name);
    *gpu = *dev != NULL ? gpu_of(*dev) : NULL;
    return *gpu != NULL ? gpu_alloc(*gpu, bytes, at) : -ENODEV;
}

static int open_pair(struct client *c, struct lend_error *error)
{
    struct dnvme_pair_params params = dnvme_pair_params_default;
    static const enum dnvme_place place[] = { DNVME_SQ_LOCAL, DNVME_SQ_NEAR_DEVICE, DNVME_SQ_BAR,
                                              DNVME_SQ_CMB };
    params.entries = ENTRIES;
    params.sq = place[c->all->sq];
    params.bar = GPU_MEMORY_BAR;
    params.priority = (enum nvme_sq_priority)c->all->priority;
    int status = 0;
    if (c->all->sq == SQ_REMOTE_GPU)
        status = gpu_memory(c, c->all->sq_gpu_name, ENTRIES * NVME_SQE_BYTES, &params.bar_device,
                            &c->sq_gpu, &params.bar_offset);
    c->sq_at = params.bar_offset;
    return status != 0 ? status : dnvme_pair_new(c->site.client, &params, &c->pair, error);
}

static int open_buffer(struct client *c, struct lend_error *error)
{
    struct nvme_clients *all = c->all;
    const uint64_t bytes = n_slots(all) * all->block_bytes;
    struct k_pci_dev *dev;
    if (all->gpu_model == NULL)
        return dnvme_buffer_new(c->site.client, bytes, &c->buffer, error);
    const int status = gpu_memory(c, all->gpu_name, bytes, &dev, &c->gpu, &c->gpu_at);
    return status != 0
               ? status
               : dnvme_buffer_of_bar(c->site.client, dev, GPU_MEMORY_BAR, c->gpu_at,
                                     (bytes + K_PAGE_BYTES - 1) & ~(uint64_t)(K_PAGE_BYTES - 1),
                                     &c->buffer, error);
}

static void open_client(struct client *c)
{
    struct nvme_clients *all = c->all;
    struct lend_error error = { 0 };
    int status = nvme_site_open(&c->site, c->host, all->manager, all->first_number + c->number, 1,
                                &error);
    if (status == 0)
        status = open_pair(c, &error);
    if (status == 0)
        status = open_buffer(c, &error);
    if (status == 0 && all->laid_out)
        hold(c);
    else if (status == 0)
        status = fill(c);
    if (status != 0)
        fail(c, "cannot begin", status, error.text);
    for (unsigned i = 0; i < n_slots(all); i++) {
        struct slot *slot = &c->slot[i];
        *slot = (struct slot){ .command = { .done = command_done, .context = slot },
                               .client = c,
                               .offset = i * all->block_bytes };
    }
}

static void close_client(struct client *c)
{
    k_sleep(kernel_of(c), ARRIVAL_PS);
    for (unsigned i = 0; i < n_slots(c->all) && !c->dead; i++)
        check_data(c, &c->slot[i]);
    if (c->dead)
        dnvme_client_kill(c->site.client);
    if (c->pair != NULL)
        dnvme_pair_free(c->pair);
    free_buffer(c, &c->buffer);
    free_buffer(c, &c->fill.from);
    if (c->gpu != NULL)
        gpu_free(c->gpu, c->gpu_at);
    if (c->sq_gpu != NULL)
        gpu_free(c->sq_gpu, c->sq_at);
    nvme_site_close(&c->site);
}

static void client_body(void *arg)
{
    struct client *c = arg;
    struct nvme_clients *all = c->all;
    open_client(c);
    nvme_manager_prepare(all->manager, -1);
    while (nvme_manager_is_preparing(all->manager) && !all->failed && !program_ending(all->program))
        k_sleep(kernel_of(c), STEP_PS);
    all->began_ps = k_now_ps(kernel_of(c));
    if (!all->failed)
        run(c);
    c->done = true;
    if (++all->n_done == all->n_clients && all->program->finite) {
        all->end_ps = sim_now(all->program->workload->sim);
        program_finish(all->program);
    }
    close_client(c);
    nvme_manager_left(all->manager);
}

/* ---- Death ----------------------------------------------------------------------------------- */

/* In the midst of a command of the client: its host is no more. */
static void death_body(void *arg)
{
    struct nvme_clients *all = arg;
    struct kernel *kernel = nvme_manager_host(all->manager)->kernel;
    struct client *c = &all->client[all->dies - 1];
    while (!program_measuring(all->program) && !program_ending(all->program))
        k_sleep(kernel, STEP_PS);
    k_sleep(kernel, all->dies_ps);
    while (c->in_flight == 0 && !program_ending(all->program))
        k_sleep(kernel, STEP_PS / 10);
    if (program_ending(all->program))
        return;
    all->death_ps = k_now_ps(kernel);
    c->dead = true;
    for (unsigned i = 0; i < all->n_clients; i++)
        all->client[i].ended = 0; /* from now on */
    lending_kill(c->host);
}

/* ---- The program ----------------------------------------------------------------------------- */

static void nvme_clients_start(struct program *program)
{
    struct nvme_clients *all = program->state;
    const struct model *device = nvme_manager_device(all->manager);
    lending_borrows_more(program->lending);
    program->finite = all->operations != 0;
    all->first_number = nvme_manager_expect(all->manager, all->n_clients);
    nvme_manager_prepare(all->manager, (int)all->n_clients);
    all->begin_ps = SIM_TIME_MAX;
    for (unsigned i = 0; i < all->n_clients; i++) {
        struct client *c = &all->client[i];
        char name[64];
        c->all = all;
        c->number = i;
        c->stream = program_new_stream(program);
        c->first_block = (all->disk_at + i * all->span_bytes) / nvme_namespace_block_bytes(device);
        c->version = program_zalloc_large(program, all->n_blocks, sizeof(*c->version));
        c->busy = program_zalloc_large(program, all->n_blocks, sizeof(*c->busy));
        c->slot = program_zalloc(program, n_slots(all), sizeof(*c->slot));
        if (program_failed(program))
            return;
        snprintf(name, sizeof(name), "%.40s.c%02u", program->name, i + 1);
        sim_random_init(&c->random, sim_seed(program->workload->sim), name);
        program_lending_uses_cpu(program, c->host, all->cpu);
        k_thread_new(kernel_of(c), name, (int)all->cpu, client_body, c);
    }
    if (all->dies != 0)
        k_thread_new(nvme_manager_host(all->manager)->kernel, "death", K_CPU_ANY, death_body, all);
}

static void nvme_clients_measure(struct program *program)
{
    struct nvme_clients *all = program->state;
    all->begin_ps = sim_now(program->workload->sim);
    for (unsigned i = 0; i < all->n_clients; i++) {
        all->client[i].n_samples = all->client[i].measured = 0;
        all->client[i].longest_ps = 0;
    }
}

/* The quantile of n sorted times. */
static double quantile_ns(const double *ps, uint64_t n, double q)
{
    return ps[(uint64_t)(q * (double)(n - 1))] * 1e-3;
}

static void record_latency(struct nvme_clients *all)
{
    struct program *program = all->program;
    uint64_t n = 0;
    double longest_ps = 0;
    for (unsigned i = 0; i < all->n_clients; i++)
        n += all->client[i].n_samples;
    if (n == 0)
        return;
    double *ps = sim_zalloc(n, sizeof(*ps)), *at = ps;
    for (unsigned i = 0; i < all->n_clients; i++) {
        const struct client *c = &all->client[i];
        memcpy(at, c->sample_ps, c->n_samples * sizeof(*ps));
        at += c->n_samples;
        longest_ps = SIM_MAX(longest_ps, c->longest_ps);
    }
    program_sort(ps, n);
    program_metric(program, "latency_mean_ns", "ns", program->histogram_ps.sum / (double)n * 1e-3);
    program_metric(program, "latency_p50_ns", "ns", quantile_ns(ps, n, 0.5));
    program_metric(program, "latency_p99_ns", "ns", quantile_ns(ps, n, 0.99));
    program_metric(program, "latency_max_ns", "ns", longest_ps * 1e-3);
    program_histogram(program, "latency_ns", "ns", 1e-3, &program->histogram_ps);
    free(ps);
}

/* Of clients that live. */
static void record_each(struct nvme_clients *all, double seconds)
{
    double iops_min = 1e300, iops_max = 0, p50_min = 1e300, p50_max = 0;
    char name[64];
    for (unsigned i = 0; i < all->n_clients; i++) {
        struct client *c = &all->client[i];
        const double iops = (double)c->measured / seconds;
        if (c->dead)
            continue;
        iops_min = SIM_MIN(iops_min, iops);
        iops_max = SIM_MAX(iops_max, iops);
        snprintf(name, sizeof(name), "c%02u.iops", i + 1);
        program_metric(all->program, name, "1/s", iops);
        if (c->n_samples == 0)
            continue;
        program_sort(c->sample_ps, c->n_samples);
        const double p50 = quantile_ns(c->sample_ps, c->n_samples, 0.5);
        p50_min = SIM_MIN(p50_min, p50);
        p50_max = SIM_MAX(p50_max, p50);
        snprintf(name, sizeof(name), "c%02u.latency_p50_ns", i + 1);
        program_metric(all->program, name, "ns", p50);
    }
    program_metric(all->program, "client_iops_min", "1/s", iops_min);
    program_metric(all->program, "client_iops_max", "1/s", iops_max);
    if (p50_max == 0) /* none has completed a command */
        return;
    program_metric(all->program, "client_latency_p50_min_ns", "ns", p50_min);
    program_metric(all->program, "client_latency_p50_max_ns", "ns", p50_max);
}

static void record_death(struct nvme_clients *all)
{
    const struct dnvme_manager_stats stats = nvme_manager_stats(all->manager);
    unsigned n = 0;
    for (unsigned i = 0; i < all->n_clients; i++)
        n += !all->client[i].dead && all->client[i].ended != 0;
    if (stats.reclaimed_ps > all->death_ps)
        program_metric(all->program, "reclaimed_after_us", "us",
                       (double)(stats.reclaimed_ps - all->death_ps) * 1e-6);
    program_metric(all->program, "others_after_death", "1", n);
}

static uint64_t commands(const struct program *program)
{
    const struct nvme_clients *all = program->state;
    uint64_t n = 0;
    for (unsigned i = 0; i < all->n_clients; i++)
        n += all->client[i].measured;
    return n;
}

static uint64_t command_bytes(const struct program *program)
{
    return commands(program) * ((const struct nvme_clients *)program->state)->block_bytes;
}

static const struct program_rate nvme_clients_rates[] = {
    { "latency_mean_ns", 1e-3, program_latencies_ps, program_latencies },
    { "iops", 1, commands, NULL },
    { "throughput_gbyte_s", 1e-9, command_bytes, NULL },
    { NULL, 0, NULL, NULL },
};

static void nvme_clients_record(struct program *program, sim_time duration_ps)
{
    struct nvme_clients *all = program->state;
    /* Those that end by themselves may have ended before others that are measured. */
    const sim_time own_ps = all->end_ps > all->begin_ps ? all->end_ps - all->begin_ps : duration_ps;
    const double seconds = (double)own_ps * 1e-12;
    const uint64_t n = commands(program);
    unsigned progressing = 0;
    for (unsigned i = 0; i < all->n_clients; i++)
        progressing += all->client[i].measured != 0;
    program_metric(program, "clients_progressing", "1", progressing);
    if (all->dies != 0 && all->death_ps == 0) {
        program_fail(program,
                     "client %u has not died: the measurement was over before, lower "
                     "dies_us or raise measure.duration_us",
                     all->dies);
        return;
    }
    if (n == 0 && all->began_ps == 0) {
        program_fail(program,
                     "not one command was measured: %smeasure.warmup_us and duration_us were over "
                     "before%s",
                     all->laid_out ? "" : "span_bytes is written first, and ",
                     all->laid_out ? " all clients had joined"
                                   : "; it need not be with laid_out = true");
        return;
    }
    program_metric(program, "iops", "1/s", (double)n / seconds);
    program_metric(program, "throughput_gbyte_s", "GB/s",
                   (double)n * (double)all->block_bytes / seconds * 1e-9);
    record_latency(all);
    if (all->n_clients > 1)
        record_each(all, seconds);
    if (all->death_ps != 0)
        record_death(all);
}

static void nvme_clients_release(struct program *program)
{
    struct nvme_clients *all = program->state;
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        free(all->client[i].sample_ps);
}

const struct program_ops program_nvme_clients_ops = {
    .type = "nvme_clients",
    .help = "clients on several hosts that share an NVMe controller, with queues of their own",
    .state_bytes = sizeof(struct nvme_clients),
    .params = nvme_clients_params,
    .records = nvme_clients_records,
    .rates = nvme_clients_rates,
    .check = nvme_clients_check,
    .start = nvme_clients_start,
    .measure = nvme_clients_measure,
    .record = nvme_clients_record,
    .release = nvme_clients_release,
};
