/*
 * nvme.controller: an NVMe subsystem on PCIe, of one or two ports.
 *
 * Models: parameters, statistics, and what the controllers of the subsystem share. Registers:
 *   nvme_controller.c; queues: nvme_queue.c; admin commands: nvme_admin.c; I/O and PRPs: nvme_io.c;
 *   media: nvme_media.c.
 * Does not model: metadata, firmware, power states.
 * Timing: in the files above.
 * Sources: NVM Express Base Specification 1.3; docs/sources.md#c4; docs/models/nvme.md.
 */
#include "models/nvme/nvme.h"

#include "models/nvme/nvme_ftl.h"
#include "models/nvme/nvme_media.h"

static const char *const payload_names[] = { "tag", "bytes", NULL };
static const char *const preconditioned_names[] = { "fresh", "full", "steady", NULL };
static const char *const media_names[] = { "flat", "xpoint", "dram", "nand", NULL };

#define FROM_C4 "docs/sources.md#c4"

/* Of media that are made of dies; the defaults are those of devices/p4800x.cfg. */
#define MEDIA_PARAMS                                                                                                     \
    PARAM("dies", PARAM_U32, struct nvme_subsystem, params.media.n_dies, 4, 1, 1024,                                     \
          PROV_ESTIMATE, FROM_C4, "of a channel (dram: banks)"),                                                         \
        PARAM("channel_gbyte_s", PARAM_RATE, struct nvme_subsystem, params.media.channel_gbyte_s,                        \
              0.4, 0.001, 1000, PROV_ESTIMATE, FROM_C4, "of the bus between controller and dies"),                       \
        PARAM("ecc_ratio", PARAM_DOUBLE, struct nvme_subsystem, params.media.ecc_ratio, 0.125, 0,                        \
              2, PROV_ESTIMATE, FROM_C4, "check bytes on that bus, of the data"),                                        \
        PARAM("codeword_bytes", PARAM_U32, struct nvme_subsystem, params.media.codeword_bytes,                           \
              256, 64, 512, PROV_PUBLISHED, FROM_C4, "xpoint: data on one die"),                                         \
        PARAM("die_read_ns", PARAM_TIME, struct nvme_subsystem, params.media.die_read_ps, 200, 0,                        \
              1e8, PROV_ESTIMATE, FROM_C4, "xpoint: a codeword; dram: to open a row and read"),                          \
        PARAM("die_write_ns", PARAM_TIME, struct nvme_subsystem, params.media.die_write_ps, 3500,                        \
              0, 1e9, PROV_ESTIMATE, FROM_C4, "xpoint: a codeword; dram: to close a row"),                               \
        PARAM("refresh_interval_us", PARAM_TIME, struct nvme_subsystem,                                                  \
              params.media.refresh_interval_ps, 2800, 0, 1e9, PROV_ESTIMATE, FROM_C4,                                    \
              "each die (dram: channel) is kept busy by the drive itself so often; 0: never"),                           \
        PARAM("refresh_ns", PARAM_TIME, struct nvme_subsystem, params.media.refresh_ps, 3700, 0,                         \
              1e7, PROV_ESTIMATE, FROM_C4, "for so long; below half the interval"),                                      \
        PARAM("retry_ratio", PARAM_DOUBLE, struct nvme_subsystem, params.media.retry_ratio, 0, 0,                        \
              1, PROV_PUBLISHED, FROM_C4, "reads of a page that are read once more, of all"),                            \
        PARAM("retry_ns", PARAM_TIME, struct nvme_subsystem, params.media.retry_ps, 28000, 0, 1e8,                       \
              PROV_PUBLISHED, FROM_C4, "what that takes"),                                                               \
        PARAM(                                                                                                           \
            "page_kind_step_ns", PARAM_TIME, struct nvme_subsystem,                                                      \
            params.media.page_kind_step_ps, 12000, 0, 1e7, PROV_ESTIMATE, FROM_C4,                                       \
            "nand: a middle page's read takes so much longer than a lower page's (die_read_ns), an upper page's twice"), \
        PARAM("die_erase_us", PARAM_TIME, struct nvme_subsystem, params.media.die_erase_ps, 3500,                        \
              0, 1e6, PROV_ESTIMATE, FROM_C4, "nand: a block of all planes"),                                            \
        PARAM("suspend_us", PARAM_TIME, struct nvme_subsystem, params.media.suspend_ps, 0, 0, 1e5,                       \
              PROV_ESTIMATE, FROM_C4,                                                                                    \
              "nand: until a program or erasure lets a read go first; 0: reads wait for its end"),                       \
        PARAM("planes", PARAM_U32, struct nvme_subsystem, params.media.n_planes, 2, 1, 8,                                \
              PROV_ESTIMATE, FROM_C4, "nand: of a die, which read and program together"),                                \
        PARAM("flash_page_bytes", PARAM_U32, struct nvme_subsystem, params.media.flash_page_bytes,                       \
              16384, 4096, 65536, PROV_DATASHEET, FROM_C4, "nand: of a plane"),                                          \
        PARAM("block_pages", PARAM_U32, struct nvme_subsystem, params.media.block_pages, 576, 3,                         \
              8192, PROV_ESTIMATE, FROM_C4, "nand: flash pages of a block in each plane"),                               \
        PARAM("spare_ratio", PARAM_DOUBLE, struct nvme_subsystem, params.media.spare_ratio, 0.28,                        \
              0, 10, PROV_ESTIMATE, FROM_C4, "nand: flash beyond capacity_bytes, of these"),                             \
        PARAM("gc_free_blocks", PARAM_U32, struct nvme_subsystem, params.media.gc_blocks, 8, 1,                          \
              1000, PROV_ESTIMATE, FROM_C4,                                                                              \
              "nand: of a die, at or below which blocks are collected"),                                                 \
        PARAM("write_buffer_bytes", PARAM_BYTES, struct nvme_subsystem,                                                  \
              params.media.write_buffer_bytes, 16777216, 4096, 1e11, PROV_ESTIMATE, FROM_C4,                             \
              "nand: DRAM that keeps what it holds when power goes"),                                                    \
        PARAM("endurance_cycles", PARAM_DOUBLE, struct nvme_subsystem,                                                   \
              params.media.endurance_cycles, 7000, 1, 1e9, PROV_ESTIMATE, FROM_C4,                                       \
              "nand: erasures of a block in its life (Percentage Used)"),                                                \
        PARAM_ONE_OF("preconditioned", struct nvme_subsystem, params.media.preconditioned,                               \
                     NVME_FRESH, preconditioned_names, PROV_NONE, "",                                                    \
                     "nand: what was done to the drive before")

static const struct param_desc nvme_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct nvme_subsystem, params.pcie, FROM_C4, /* lanes */ 4,
                         /* payload */ 256, PROV_ESTIMATE, /* extended tags */ 1, PROV_ESTIMATE,
                         /* queue */ 4,
                         /* credits */ 32, 128, 16, /* register */ 300, /* reads */ 32),
    PARAM("vendor_id", PARAM_U32, struct nvme_subsystem, params.vendor_id, NVME_VENDOR_INTEL, 1,
          65534, PROV_DATASHEET, FROM_C4, "PCI vendor"),
    PARAM("device_id", PARAM_U32, struct nvme_subsystem, params.device_id, NVME_DEVICE_P4800X, 1,
          65534, PROV_DATASHEET, FROM_C4, "PCI device"),
    PARAM("queue_pairs", PARAM_U32, struct nvme_subsystem, params.n_queues, 32, 2, NVME_QUEUES_MAX,
          PROV_DATASHEET, FROM_C4, "submission and completion queues, that of administration too"),
    PARAM("queue_entries", PARAM_U32, struct nvme_subsystem, params.queue_entries, 4096, 2, 65536,
          PROV_ESTIMATE, FROM_C4, "of a queue at most (CAP.MQES)"),
    PARAM("interrupt_vectors", PARAM_U32, struct nvme_subsystem, params.n_vectors, 32, 1,
          NVME_QUEUES_MAX, PROV_ESTIMATE, FROM_C4, "of MSI-X"),
    PARAM("namespaces", PARAM_U32, struct nvme_subsystem, params.n_namespaces, 1, 1,
          NVME_NAMESPACES_MAX, PROV_DATASHEET, FROM_C4, "of capacity_bytes each"),
    PARAM("ports", PARAM_U32, struct nvme_subsystem, params.n_ports, 1, 1, 2, PROV_DATASHEET,
          FROM_C4, "p0, p1: a controller for each, of the same namespaces"),
    PARAM("virtual_functions", PARAM_U32, struct nvme_subsystem, params.n_vfs, 0, 0, 7,
          PROV_DATASHEET, FROM_C4, "of each port, with a secondary controller each"),
    PARAM("flexible_queue_pairs", PARAM_U32, struct nvme_subsystem, params.flexible_queues, 32, 2,
          NVME_QUEUES_MAX, PROV_ESTIMATE, FROM_C4,
          "that a port's primary controller assigns to secondary ones"),
    PARAM("flexible_vectors", PARAM_U32, struct nvme_subsystem, params.flexible_vectors, 32, 1,
          NVME_QUEUES_MAX, PROV_ESTIMATE, FROM_C4, "the same of interrupt vectors"),
    PARAM("capacity_bytes", PARAM_BYTES, struct nvme_subsystem, params.capacity_bytes, 375083606016,
          4096, 1e15, PROV_DATASHEET, FROM_C4, "of a namespace"),
    PARAM("block_bytes", PARAM_U32, struct nvme_subsystem, params.block_bytes, 512, 512, 4096,
          PROV_DATASHEET, FROM_C4, "logical block"),
    PARAM("transfer_bytes_max", PARAM_BYTES, struct nvme_subsystem, params.transfer_bytes_max,
          131072, 8192, 1e9, PROV_ESTIMATE, FROM_C4,
          "of one command (MDTS, which cannot say one page); a power of two"),
    PARAM("cmb_bytes", PARAM_BYTES, struct nvme_subsystem, params.cmb_bytes, 0, 0, 1073741824,
          PROV_DATASHEET, FROM_C4,
          "controller memory buffer; a power of two from 4096 on, 0: none"),
    PARAM_ONE_OF("payload", struct nvme_subsystem, params.payload, NVME_PAYLOAD_TAG, payload_names,
                 PROV_NONE, "", "what is kept of data: a tag for each cache line, or all bytes"),
    PARAM("enable_latency_us", PARAM_TIME, struct nvme_subsystem, params.enable_ps, 2000, 0, 1e7,
          PROV_ESTIMATE, FROM_C4, "CC.EN to CSTS.RDY"),
    PARAM("command_interval_ns", PARAM_TIME, struct nvme_subsystem, params.command_ps, 1700, 0, 1e6,
          PROV_PUBLISHED, FROM_C4, "between the starts of two I/O commands: what bounds IOPS"),
    PARAM("cmb_latency_ns", PARAM_TIME, struct nvme_subsystem, params.cmb_ps, 100, 0, 10000,
          PROV_ESTIMATE, FROM_C4,
          "an access of the controller to its own memory buffer, or a read of it by others"),
    PARAM_ONE_OF("media", struct nvme_subsystem, params.media.kind, NVME_MEDIA_FLAT, media_names,
                 PROV_NONE, "", "one latency and bandwidth, or what media are made of"),
    PARAM("read_latency_ns", PARAM_TIME, struct nvme_subsystem, params.read_ps, 4200, 0, 1e8,
          PROV_ESTIMATE, FROM_C4,
          "command known to its page of data ready, idle; not flat: of the controller alone"),
    PARAM("write_latency_ns", PARAM_TIME, struct nvme_subsystem, params.write_ps, 3000, 0, 1e8,
          PROV_ESTIMATE, FROM_C4,
          "data here to safe in the media, idle; not flat: of the controller alone"),
    PARAM("jitter_mean_ns", PARAM_TIME, struct nvme_subsystem, params.jitter_ps, 0, 0, 1e7,
          PROV_PUBLISHED, FROM_C4,
          "more of both latencies, per command: exponential with this mean; 0: none"),
    PARAM("read_gbyte_s", PARAM_RATE, struct nvme_subsystem, params.read_gbyte_s, 2.4, 0.001, 1000,
          PROV_DATASHEET, FROM_C4,
          "of the media, all channels; nand: of the controller's path for data"),
    PARAM("write_gbyte_s", PARAM_RATE, struct nvme_subsystem, params.write_gbyte_s, 2.0, 0.001,
          1000, PROV_DATASHEET, FROM_C4,
          "of the media, all channels; nand: of the controller's path for data"),
    PARAM(
        "channels", PARAM_U32, struct nvme_subsystem, params.n_channels, 1, 1, 1024, PROV_ESTIMATE,
        FROM_C4,
        "of the media; flat: they serve different pages of 4 KiB side by side, and with 1 each page "
        "is spread over all"),
    MEDIA_PARAMS,
    PARAM("fetch_burst", PARAM_U32, struct nvme_subsystem, params.fetch_burst, 4, 1, NVME_FETCH_MAX,
          PROV_ESTIMATE, FROM_C4,
          "submission queue entries in one read, and in one turn of a queue"),
    PARAM("commands_max", PARAM_U32, struct nvme_subsystem, params.commands_max, 128, 2, 65536,
          PROV_ESTIMATE, FROM_C4, "I/O commands under way; others wait in their queues"),
    PARAM("function_level_reset", PARAM_BOOL, struct nvme_subsystem, params.function_reset, 1, 0, 1,
          PROV_DATASHEET, FROM_C4, "the capability"),
    { .type = PARAM_END },
};

#define COUNT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct nvme_subsystem, stats.FIELD, UNIT, 0, HELP)
/* Of media that are made of dies. */
#define OF_DIES(NAME, FIELD, UNIT, HELP) \
    STAT_PART(NAME, STAT_COUNTER, struct nvme_subsystem, stats.FIELD, UNIT, HELP, media_of_dies, 0)
#define OF_FLASH(NAME, FIELD, UNIT, HELP) \
    STAT_PART(NAME, STAT_COUNTER, struct nvme_subsystem, stats.FIELD, UNIT, HELP, media_of_dies, 1)
static const struct stat_desc nvme_stats_table[] = {
    COUNT("reads", reads, "1", "read commands that succeeded"),
    COUNT("writes", writes, "1", "write commands that succeeded"),
    COUNT("read_bytes", read_bytes, "bytes", "data of these reads"),
    COUNT("compares", compares, "1", "compare commands that succeeded"),
    COUNT("write_bytes", write_bytes, "bytes", "data of these writes"),
    COUNT("admin_commands", admin_commands, "1", "commands of the admin queue"),
    COUNT("errors", errors, "1", "completions with a status other than success"),
    COUNT("sqes", sqes, "1", "submission queue entries fetched"),
    COUNT("sqes_urgent", sqes_of_class[1], "1", "of queues of the urgent class"),
    COUNT("sqes_high", sqes_of_class[2], "1", "of the class of high priority"),
    COUNT("sqes_medium", sqes_of_class[3], "1", "of medium priority"),
    COUNT("sqes_low", sqes_of_class[4], "1", "of low priority"),
    STAT("queue_wait_max_ns", STAT_MAX, struct nvme_subsystem, stats.queue_wait_max_ps, "ns", 0.001,
         "longest time that a queue with entries waited for one to be fetched"),
    COUNT("coalesced", coalesced, "1", "completions without a message of their own"),
    COUNT("sqe_fetches", sqe_fetches, "1", "reads of them"),
    COUNT("cmb_fetches", cmb_fetches, "1", "of these, out of the controller memory buffer"),
    COUNT("prp_lists", prp_lists, "1", "reads of PRP lists"),
    COUNT("sgl_segments", sgl_segments, "1", "reads of SGL segments"),
    COUNT("cqes", cqes, "1", "completion queue entries written"),
    COUNT("cq_waits", cq_waits, "1", "completions that waited for room in their queue"),
    COUNT("interrupts", interrupts, "1", "MSI-X messages sent"),
    COUNT("events", events, "1", "asynchronous events reported"),
    COUNT("aborted", aborted, "1", "commands that an Abort ended"),
    COUNT("bad_doorbells", bad_doorbells, "1", "doorbells that make no sense; ignored"),
    COUNT("unsupported", unsupported, "1", "requests to it that it does not support"),
    COUNT("resets", resets, "1", "times that CC.EN was cleared"),
    COUNT("function_resets", function_resets, "1", "function-level resets"),
    COUNT("stopped_queues", stopped_queues, "1", "for I/O, of which an entry could not be fetched"),
    COUNT("fatal", fatal, "1", "times that it could not go on (CSTS.CFS)"),
    OF_DIES("media_retries", media_retries, "1", "reads of a page that had to be read once more"),
    OF_FLASH("media_programmed_bytes", media_programmed_bytes, "bytes", "written to flash"),
    OF_FLASH("media_moved_bytes", media_moved_bytes, "bytes", "of these, by garbage collection"),
    OF_FLASH("media_erases", media_erases, "1", "blocks that were erased"),
    OF_FLASH("media_suspends", media_suspends, "1", "programs and erasures that reads suspended"),
    OF_FLASH("media_buffer_waits", media_buffer_waits, "1",
             "pages that waited for room in the buffer"),
    STAT("media_pages", STAT_MAX, struct nvme_subsystem, stats.media_pages, "1", 0,
         "pages of 4 KiB that hold something"),
    STAT("commands_max", STAT_MAX, struct nvme_subsystem, stats.commands_max, "1", 0,
         "most I/O commands under way"),
    STAT_BOUND_ONLY("media_busy_ps", struct nvme_subsystem, stats.media.ps, "ps",
                    "time that its channels moved data, of all of them", stats.media_peak),
    PCIE_DMA_STATS(struct nvme_subsystem, first.function.dma),
    { .kind = STAT_END },
};

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void check_media(struct model *model, const struct nvme_params *params,
                        struct sim_error_list *errors)
{
    const struct nvme_media_params *media = &params->media;
    if (media->kind == NVME_MEDIA_FLAT)
        return;
    pcie_function_power_of_two(model, "codeword_bytes", media->codeword_bytes, errors);
    pcie_function_power_of_two(model, "flash_page_bytes", media->flash_page_bytes, errors);
    if (media->refresh_interval_ps != 0 && 2 * media->refresh_ps > media->refresh_interval_ps)
        model_mistake(model, errors,
                      ".refresh_ns: found %g, expected at most half of refresh_interval_us",
                      (double)media->refresh_ps / 1e3);
    if (media->kind == NVME_MEDIA_NAND && !nvme_media_nand_fits(params))
        model_mistake(model, errors,
                      ".capacity_bytes: found %llu, expected at most what makes, with spare_ratio, "
                      "16 TiB of flash in all namespaces",
                      (unsigned long long)params->capacity_bytes);
}

static void nvme_init(struct model *model, struct sim_error_list *errors)
{
    struct nvme_subsystem *sub = nvme_state(model);
    const struct nvme_params *params = &sub->params;
    size_t before = errors->n_messages;
    sub->model = model;
    pcie_function_power_of_two(model, "block_bytes", params->block_bytes, errors);
    pcie_function_power_of_two(model, "transfer_bytes_max", params->transfer_bytes_max, errors);
    pcie_function_power_of_two(model, "cmb_bytes", params->cmb_bytes, errors);
    pcie_function_ports(model, params->n_ports, &params->pcie, errors);
    check_media(model, params, errors);
    if (errors->n_messages != before)
        return;
    sub->commands = sim_pool_shared(model->sim, "nvme command", sizeof(struct nvme_command));
    sub->pieces = sim_pool_shared(model->sim, "nvme piece", sizeof(struct nvme_piece));
    if (params->cmb_bytes < NVME_PAGE_BYTES)
        sub->params.cmb_bytes = 0;
    sub->data_pages = sim_pool_shared(model->sim, "nvme data page", NVME_PAGE_BYTES);
    nvme_media_init(sub);
    nvme_controller_init(sub, &sub->first, 0, NULL);
    if (params->n_ports == 2)
        nvme_controller_init(sub, &sub->second, 1, NULL);
    sub->turn = &sub->first;
    sub->initialised = true;
}

static void nvme_release(struct model *model)
{
    struct nvme_subsystem *sub = nvme_state(model);
    if (!sub->initialised)
        return;
    nvme_controller_release(&sub->first);
    nvme_controller_release(&sub->second);
    nvme_media_release(sub);
}

const struct nvme_stats *nvme_stats(const struct model *model)
{
    return &nvme_state(model)->stats;
}

uint32_t nvme_queue_pairs(const struct model *model)
{
    return nvme_state(model)->params.n_queues;
}

uint32_t nvme_queue_entries(const struct model *model)
{
    return nvme_state(model)->params.queue_entries;
}

uint64_t nvme_namespace_bytes(const struct model *model)
{
    return nvme_state(model)->params.capacity_bytes;
}

uint32_t nvme_namespace_block_bytes(const struct model *model)
{
    return nvme_state(model)->params.block_bytes;
}

void nvme_hold(struct model *model, uint32_t nsid, uint64_t offset, uint64_t bytes, uint64_t mark)
{
    struct nvme_subsystem *sub = nvme_state(model);
    SIM_ASSERT(bytes != 0 && nsid >= 1 && nsid <= sub->params.n_namespaces &&
                   offset + bytes <= sub->params.capacity_bytes && offset % LINE_BYTES == 0 &&
                   bytes % LINE_BYTES == 0,
               "%s: %llu bytes from %llu on of namespace %u", model->name,
               (unsigned long long)bytes, (unsigned long long)offset, nsid);
    nvme_media_hold(sub, &sub->namespace[nsid - 1], offset, bytes, mark);
}

uint64_t nvme_transfer_bytes_max(const struct model *model)
{
    return nvme_state(model)->params.transfer_bytes_max;
}

const struct model_ops nvme_ops = {
    .type = "nvme.controller",
    .help = "an NVMe controller with its media",
    .state_bytes = sizeof(struct nvme_subsystem),
    .params = nvme_params_table,
    .stats = nvme_stats_table,
    .init = nvme_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .settle = nvme_media_settle,
    .release = nvme_release,
};
