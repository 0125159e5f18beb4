/*
 * nvme_failover: a client with two adapters reads and writes blocks of a shared NVMe controller
 * while the cable of one is pulled, at random moments if often (SmartIO, 6.3). No I/O may be lost:
 * every one ends, and every block that is read is what was written there last.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "models/base/payload.h"
#include "models/nvme/nvme.h"
#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"
#include "models/pcie/ntb/ntb.h"
#include "workloads/dnvme/nvme_site.h"

#define NSID        1u
#define SLICE_PS    (100 * SIM_PS_PER_US)
#define STEP_PS     (5 * SIM_PS_PER_US)
#define LOST_PS     (2000 * SIM_PS_PER_MS) /* an I/O that has not ended by then never will */
#define DEPTH_MAX   32u
#define BRIDGES_MAX 16u

enum failover_event { FAILOVER_CABLE_PULL, FAILOVER_CABLE_BACK, FAILOVER_REMAP };
static const char *const event_names[] = { "cable_pull", "cable_back", "remap", NULL };

struct nvme_failover;

struct failover_slot {
    struct dnvme_io io;
    struct nvme_failover *all;
    bool busy;
};

struct nvme_failover {
    /* parameters */
    const char *host_name, *device_name, *bridge_name[2];
    int event;
    uint32_t cpu, queue_depth, pulls, cables;
    bool until_whole;
    uint64_t block_bytes, span_bytes;
    double read_ratio;
    sim_time after_ps, gap_ps, out_ps, timeout_ps;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct nvme_manager *manager;
    const struct model *bridge[2];
    struct pcie_link *cable[2]; /* of the paths, in the order in which adapters are enumerated */
    struct nvme_site site;
    struct dnvme_multi *multi;
    struct dnvme_buffer buffer;
    struct failover_slot slot[DEPTH_MAX];
    struct sim_random random, moments;
    uint16_t stream;
    uint64_t disk_at, n_blocks;
    uint32_t device_blocks, *version;
    bool *taken, stop, events_over;
    unsigned outstanding, number;
    /* measured */
    uint64_t n_ended, n_failed, n_lost;
    sim_time pulled_ps; /* 0: no event, or seen to */
    uint64_t failures;  /* before it */
    struct dnvme_multi_stats stats;
};

static const struct param_desc nvme_failover_params[] = {
    PARAM_TEXT("on", struct nvme_failover, host_name, "borrower",
               "host of the group `lending` with two adapters, each cabled to one of the lender's"),
    PARAM_TEXT("device", struct nvme_failover, device_name, "ssd",
               "an nvme.controller with a program nvme_manager"),
    PARAM_TEXT("bridge0", struct nvme_failover, bridge_name[0], "",
               "one of the host's two adapters: the cable of the path in use is pulled"),
    PARAM_TEXT("bridge1", struct nvme_failover, bridge_name[1], "", "the other"),
    PARAM_ONE_OF(
        "event", struct nvme_failover, event, FAILOVER_CABLE_PULL, event_names, PROV_NONE, "",
        "what becomes of the cable: it stays out, or comes back after out_us; remap is as "
        "cable_back, named for scenarios in which the hosts do not hold_links, so that mappings are "
        "made anew"),
    PARAM("cpu", PARAM_U32, struct nvme_failover, cpu, 1, 0, 255, PROV_NONE, "", "that does I/O"),
    PARAM("queue_depth", PARAM_U32, struct nvme_failover, queue_depth, 4, 1, DEPTH_MAX, PROV_NONE,
          "", "I/Os under way"),
    PARAM("block_bytes", PARAM_BYTES, struct nvme_failover, block_bytes, 4096, 512, 131072,
          PROV_NONE, "", "of an I/O"),
    PARAM("span_bytes", PARAM_BYTES, struct nvme_failover, span_bytes, 1048576, 131072, 1e9,
          PROV_NONE, "", "of the device that is used"),
    PARAM("read_ratio", PARAM_DOUBLE, struct nvme_failover, read_ratio, 0.5, 0, 1, PROV_NONE, "",
          "share of reads of what was written before, the rest are writes"),
    PARAM("pulls", PARAM_U32, struct nvme_failover, pulls, 1, 1, 10000, PROV_NONE, "",
          "that follow each other"),
    PARAM("until_whole", PARAM_BOOL, struct nvme_failover, until_whole, 1, 0, 1, PROV_NONE, "",
          "the next pull comes when both paths work again; else whatever they do"),
    PARAM("cables", PARAM_U32, struct nvme_failover, cables, 1, 1, 2, PROV_NONE, "",
          "that are pulled: that of the path in use; then the other, too"),
    PARAM("gap_us", PARAM_TIME, struct nvme_failover, gap_ps, 500, 1, 1e6, PROV_NONE, "",
          "between the two cables: at random up to this much"),
    PARAM("after_us", PARAM_TIME, struct nvme_failover, after_ps, 200, 1, 1e6, PROV_NONE, "",
          "until a pull: at random up to this much more"),
    PARAM("out_us", PARAM_TIME, struct nvme_failover, out_ps, 1000, 1, 1e7, PROV_NONE, "",
          "for so long the cable is out, if it comes back"),
    PARAM("timeout_us", PARAM_TIME, struct nvme_failover, timeout_ps, 5000, 10, 1e6, PROV_NONE, "",
          "without a completion for so long a path has failed"),
    { .type = PARAM_END },
};

static const struct record_desc nvme_failover_records[] = {
    { "ios", RECORD_METRIC, "1", "that have ended" },
    { "ios_lost", RECORD_METRIC, "1", "that never did" },
    { "ios_failed", RECORD_METRIC, "1", "that ended with an error" },
    { "ios_failed_over", RECORD_METRIC, "1", "that were issued again by the other path" },
    { "failovers", RECORD_METRIC, "1", "times that the path in use changed" },
    { "paths_resumed", RECORD_METRIC, "1", "that came back with their mappings" },
    { "paths_rebuilt", RECORD_METRIC, "1", "that were connected and mapped anew" },
    { "switch_us", RECORD_METRIC, "us", "from a pull to the next I/O that ends: mean" },
    { "switch_max_us", RECORD_METRIC, "us", "the longest" },
    { "switch_ns", RECORD_HISTOGRAM, "ns", "each" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static struct pcie_link *cable_of(const struct program *program, const struct model *bridge)
{
    struct pcie_port *a, *b;
    struct pcie_link *link;
    for (unsigned i = 0;
         (link = pcie_context_link(world_pcie(program->workload->world), i, &a, &b)) != NULL; i++)
        if (a == &bridge->ports[1] || b == &bridge->ports[1])
            return link;
    return NULL;
}

/* Names of the host's adapters that have a cable; returns how many, of room for BRIDGES_MAX. */
static unsigned bridges_of(const struct nvme_failover *all, const char *names[BRIDGES_MAX + 1])
{
    struct world *world = all->program->workload->world;
    const char *const *devices = world_device_names(world);
    unsigned n = 0;
    for (unsigned i = 0; devices[i] != NULL && n < BRIDGES_MAX; i++) {
        const struct model *model = world_device(world, devices[i]);
        if (model != NULL && model->ops == &pcie_ntb_ops &&
            world_host_of(world, model) == all->host->host && cable_of(all->program, model) != NULL)
            names[n++] = devices[i];
    }
    names[n] = NULL;
    return n;
}

static void check_bridges(struct nvme_failover *all, struct sim_error_list *errors)
{
    static const char *const keys[2] = { "bridge0", "bridge1" };
    const char *names[BRIDGES_MAX + 1];
    char expected[128];
    if (!world_sound(all->program->workload->world))
        return; /* there is a message */
    if (bridges_of(all, names) != 2) {
        program_mistake(all->program, "on", errors,
                        "a host with two adapters (pcie.ntb) that have cables", NULL);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *name = all->bridge_name[i];
        all->bridge[i] = world_device(all->program->workload->world, name);
        snprintf(expected, sizeof(expected), "a pcie.ntb of %.60s with a cable", all->host->name);
        if (strcmp(name, names[0]) != 0 && strcmp(name, names[1]) != 0)
            program_mistake(all->program, keys[i], errors, expected, names);
        else if (i == 1 && strcmp(name, all->bridge_name[0]) == 0)
            program_mistake(all->program, keys[1], errors,
                            "the other adapter, as bridge0 is this one", NULL);
    }
}

static void nvme_failover_check(struct program *program, struct sim_error_list *errors)
{
    struct nvme_failover *all = program->state;
    all->program = program;
    all->host = program_member(program, "on", all->host_name, true, errors);
    all->manager = nvme_manager_of(program, all->device_name, errors);
    if (all->host == NULL || all->manager == NULL)
        return;
    check_bridges(all, errors);
    nvme_manager_take_pairs(program, "device", all->manager, 2, errors);
    nvme_manager_check_depth(program, all->manager, all->queue_depth, errors);
    const struct model *device = nvme_manager_device(all->manager);
    all->disk_at = program_take(program, device, "byte", all->span_bytes);
    if (all->disk_at + all->span_bytes > nvme_namespace_bytes(device) ||
        all->span_bytes / all->block_bytes < 2 * (uint64_t)all->queue_depth)
        program_mistake(
            program, "span_bytes", errors,
            "two blocks at least for each I/O under way, and at most what is left of the "
            "device",
            NULL);
    if (all->block_bytes % nvme_namespace_block_bytes(device) != 0 ||
        all->span_bytes % all->block_bytes != 0)
        program_mistake(program, "block_bytes", errors,
                        "whole blocks of the device, a part of the span", NULL);
    if (all->event == FAILOVER_CABLE_PULL && all->pulls > 1)
        program_mistake(program, "pulls", errors, "1 where the cable stays out", NULL);
    all->device_blocks = (uint32_t)(all->block_bytes / nvme_namespace_block_bytes(device));
    all->n_blocks = all->span_bytes / all->block_bytes;
    program_check_cpus(program, "cpu", all->host, all->cpu, 1, errors);
}

static struct kernel *kernel_of(const struct nvme_failover *all)
{
    return all->host->kernel;
}

/* ---- I/O ------------------------------------------------------------------------------------- */

static uint64_t tag_of(const struct nvme_failover *all, uint64_t block)
{
    return payload_mark(all->stream,
                        all->version[block] * all->span_bytes + block * all->block_bytes);
}

static uint64_t block_of(const struct nvme_failover *all, const struct dnvme_io *io)
{
    return (io->block -
            all->disk_at / nvme_namespace_block_bytes(nvme_manager_device(all->manager))) /
           all->device_blocks;
}

static void io_done(struct dnvme_io *io)
{
    struct failover_slot *slot = io->context;
    struct nvme_failover *all = slot->all;
    const uint64_t block = block_of(all, io);
    const sim_time now_ps = k_now_ps(kernel_of(all));
    struct payload_difference is;
    slot->busy = all->taken[block] = false;
    all->outstanding--;
    all->n_ended++;
    program_operation_ended(all->program, now_ps);
    if (all->pulled_ps != 0 && dnvme_multi_stats(all->multi).failures != all->failures) {
        stat_histogram_add(&all->program->histogram_ps, now_ps - all->pulled_ps);
        all->pulled_ps = 0;
    }
    if (io->status != NVME_SC_SUCCESS) {
        all->n_failed++;
        return;
    }
    if (!io->write && !payload_check(kernel_of(all), kaddr_add(all->buffer.at, io->offset),
                                     tag_of(all, block), all->block_bytes, &is))
        k_fault(kernel_of(all), "%s, block %llu: %#llx where %#llx was written", all->program->name,
                (unsigned long long)block, (unsigned long long)is.found,
                (unsigned long long)is.expected);
}

static void submit(struct nvme_failover *all, struct failover_slot *slot)
{
    struct dnvme_io *io = &slot->io;
    uint64_t block;
    do
        block = sim_random_below(&all->random, all->n_blocks);
    while (all->taken[block]);
    io->write = all->version[block] == 0 || sim_random_unit(&all->random) >= all->read_ratio;
    if (io->write)
        all->version[block]++;
    io->block = (all->disk_at + block * all->block_bytes) /
                nvme_namespace_block_bytes(nvme_manager_device(all->manager));
    payload_fill(kernel_of(all), kaddr_add(all->buffer.at, io->offset),
                 io->write ? tag_of(all, block) : 0, all->block_bytes);
    slot->busy = all->taken[block] = true;
    all->outstanding++;
    dnvme_multi_submit(all->multi, io);
}

static void run(struct nvme_failover *all)
{
    uint64_t ended = 0;
    sim_time heard_ps = k_now_ps(kernel_of(all));
    for (;;) {
        for (unsigned i = 0; i < all->queue_depth && !all->stop; i++)
            if (!all->slot[i].busy)
                submit(all, &all->slot[i]);
        if (all->outstanding == 0)
            return;
        const sim_time now_ps = k_now_ps(kernel_of(all));
        dnvme_multi_wait(all->multi, now_ps + SLICE_PS);
        if (all->n_ended != ended)
            heard_ps = now_ps;
        ended = all->n_ended;
        if (dnvme_client_lost(all->site.client))
            all->stop = true;
        if (now_ps - heard_ps > LOST_PS) {
            all->n_lost = all->outstanding;
            return;
        }
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Both paths work. */
static bool is_whole(const struct nvme_failover *all)
{
    const struct dnvme_multi_stats stats = dnvme_multi_stats(all->multi);
    return stats.resumed + stats.rebuilt == stats.lost_paths;
}

static void pull(struct nvme_failover *all)
{
    struct kernel *kernel = kernel_of(all);
    k_sleep(kernel, all->after_ps + sim_random_below(&all->moments, all->after_ps));
    const unsigned first = dnvme_multi_active(all->multi);
    all->failures = dnvme_multi_stats(all->multi).failures;
    all->pulled_ps = k_now_ps(kernel);
    pcie_link_set_up(all->cable[first], false);
    if (all->cables > 1) {
        k_sleep(kernel, sim_random_below(&all->moments, all->gap_ps));
        pcie_link_set_up(all->cable[1 - first], false);
    }
    k_sleep(kernel, all->out_ps);
    if (all->event == FAILOVER_CABLE_PULL)
        return;
    for (unsigned i = 0; i < all->cables; i++)
        pcie_link_set_up(all->cable[(first + i) % 2], true);
    while (all->until_whole && !is_whole(all) && !dnvme_client_lost(all->site.client) &&
           !program_ending(all->program))
        k_sleep(kernel, STEP_PS);
}

static void events_body(void *arg)
{
    struct nvme_failover *all = arg;
    for (unsigned i = 0; i < all->pulls && !all->stop && !program_ending(all->program); i++)
        pull(all);
    all->stop = all->events_over = true;
}

static int open_all(struct nvme_failover *all, struct lend_error *error)
{
    struct dnvme_pair_params params = dnvme_pair_params_default;
    int status = nvme_site_open(&all->site, all->host, all->manager, all->number, 2, error);
    if (status == 0)
        status = dnvme_multi_new(all->site.client, &params, all->timeout_ps, &all->multi, error);
    if (status == 0)
        status = dnvme_buffer_new(all->site.client, all->queue_depth * all->block_bytes,
                                  &all->buffer, error);
    for (unsigned i = 0; i < all->queue_depth; i++) {
        struct failover_slot *slot = &all->slot[i];
        slot->all = all;
        slot->io = (struct dnvme_io){ .nsid = NSID,
                                      .n_blocks = all->device_blocks,
                                      .buffer = &all->buffer,
                                      .offset = i * all->block_bytes,
                                      .bytes = all->block_bytes,
                                      .done = io_done,
                                      .context = slot };
    }
    return status;
}

static void io_body(void *arg)
{
    struct nvme_failover *all = arg;
    struct lend_error error = { 0 };
    const int status = open_all(all, &error);
    if (status != 0) {
        program_fail(all->program, "%s: %s (%d)", all->host->name, error.text, status);
    } else {
        while (!program_measuring(all->program) && !program_ending(all->program))
            k_sleep(kernel_of(all), STEP_PS);
        k_thread_new(kernel_of(all), "events", K_CPU_ANY, events_body, all);
        run(all);
        while (!all->events_over && all->n_lost == 0)
            k_sleep(kernel_of(all), STEP_PS);
        all->stats = dnvme_multi_stats(all->multi);
    }
    if (all->n_lost == 0) {
        if (all->buffer.bytes != 0)
            dnvme_buffer_free(all->site.client, &all->buffer);
        if (all->multi != NULL)
            dnvme_multi_free(all->multi);
        nvme_site_close(&all->site);
    }
    nvme_manager_left(all->manager);
    program_finish(
        all->program); /* what goes by a link that is down takes as long as its time-out */
}

/* Paths are numbered as the host's adapters, which were enumerated by now. */
static void find_cables(struct nvme_failover *all)
{
    uint16_t id[2] = { 0, 0 };
    for (unsigned i = 0; i < 2; i++)
        world_function_id(all->bridge[i], 0, &id[i]);
    for (unsigned i = 0; i < 2; i++)
        all->cable[i] = cable_of(all->program, all->bridge[id[0] < id[1] ? i : 1 - i]);
}

static void nvme_failover_start(struct program *program)
{
    struct nvme_failover *all = program->state;
    program->finite = true;
    lending_borrows_more(program->lending);
    all->number = nvme_manager_expect(all->manager, 1);
    find_cables(all);
    all->stream = program_new_stream(program);
    all->version = program_zalloc_large(program, all->n_blocks, sizeof(*all->version));
    all->taken = program_zalloc_large(program, all->n_blocks, sizeof(*all->taken));
    if (program_failed(program))
        return;
    sim_random_init(&all->random, sim_seed(program->workload->sim), program->name);
    sim_random_init(&all->moments, sim_seed(program->workload->sim), "moments");
    program_lending_uses_cpu(program, all->host, all->cpu);
    k_thread_new(kernel_of(all), program->name, (int)all->cpu, io_body, all);
}

static void nvme_failover_record(struct program *program, sim_time duration_ps)
{
    const struct nvme_failover *all = program->state;
    const struct stat_histogram *h = &program->histogram_ps;
    (void)duration_ps;
    program_metric(program, "ios", "1", (double)all->n_ended);
    program_metric(program, "ios_lost", "1", (double)all->n_lost);
    program_metric(program, "ios_failed", "1", (double)all->n_failed);
    program_metric(program, "ios_failed_over", "1", (double)all->stats.failed_over);
    program_metric(program, "failovers", "1", (double)all->stats.switches);
    program_metric(program, "paths_resumed", "1", (double)all->stats.resumed);
    program_metric(program, "paths_rebuilt", "1", (double)all->stats.rebuilt);
    if (h->n == 0)
        return;
    program_metric(program, "switch_us", "us", h->sum / (double)h->n * 1e-6);
    program_metric(program, "switch_max_us", "us", (double)h->max * 1e-6);
    program_histogram(program, "switch_ns", "ns", 1e-3, h);
}

const struct program_ops program_nvme_failover_ops = {
    .type = "nvme_failover",
    .help = "a client with two adapters, of which one loses its cable in the midst of I/O",
    .state_bytes = sizeof(struct nvme_failover),
    .params = nvme_failover_params,
    .records = nvme_failover_records,
    .check = nvme_failover_check,
    .start = nvme_failover_start,
    .record = nvme_failover_record,
};
