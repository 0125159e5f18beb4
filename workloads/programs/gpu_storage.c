/*
 * A kernel on a GPU reads blocks of an NVMe device, one after the other at random, into the GPU's
 * memory. Either it drives the device itself, with queues in its own memory and doorbells that it
 * writes (SmartIO, figure 18); or it asks a thread of the host, which does: the kernel writes a
 * counter into memory of the host and waits in its own for the answer, as ping of figure 25 does
 * with another GPU. Either way a latency is the difference of two clock64(), and every block that
 * was read is compared with what was written there.
 *
 * The answer of the host says that the completion is in the host's memory. The data went another
 * way, which PCIe does not order with it; so a block that is not there in time would fail the
 * comparison.
 */
#include <errno.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "logic/nvme/nvme_user.h"
#include "models/gpu/gpu.h"
#include "models/nvme/nvme.h"
#include "workloads/programs/program.h"

#define NSID          1u
#define BLOCK_BYTES   4096u
#define ADMIN_ENTRIES 16u
#define IO_ENTRIES    128u
#define WORD_BYTES    64u
#define FILL_DEPTH    16u
#define ADMIN_TIMEOUT (100 * K_MS)
#define WAIT_CYCLES   30u /* of a turn of the loop that looks at the word of the GPU */
#define STEP          UINT64_C(0x9e3779b1) /* a prime, larger than half of any number of places */

enum initiator { INITIATOR_GPU, INITIATOR_HOST };

struct dma_memory {
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};

struct gpu_storage {
    /* parameters */
    const char *host_name, *gpu_name, *device_name;
    int initiator;
    uint32_t cpu, iterations, queue_depth;
    uint64_t span_bytes;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct model *gpu_model;
    struct gpu_drv *gpu;
    struct k_pci_dev *ssd;
    unsigned engine; /* of the GPU, for its times */
    uint16_t stream;
    struct nvme_user_controller controller;
    struct nvme_user_qp qp; /* the host's */
    struct dma_memory admin_sq, admin_cq, page, sq, cq;
    uint32_t blocks_per; /* of the device, in one of ours */
    unsigned under_way, n_failed;
    struct nvme_user_command command[FILL_DEPTH];
    uint64_t data, data_bus;                 /* device memory; as the SSD finds it */
    uint64_t queues, queues_bus;             /* of the GPU: a page each, submission first */
    uint64_t word, job, times;               /* device memory */
    struct gpu_mapping doorbells, host_word; /* for the GPU's kernel */
    struct kaddr asked;                      /* the host's word */
    /* measured */
    bool ended; /* well */
    double *ns;
    double kernel_ns; /* from the launch to the end */
};

static const char *const initiators[] = { "gpu", "host", NULL };
static const struct param_desc gpu_storage_params[] = {
    PARAM_TEXT("host", struct gpu_storage, host_name, "borrower",
               "host of the group `lending` that launches the kernel, with nvme_driver = false"),
    PARAM_TEXT("gpu", struct gpu_storage, gpu_name, "gpu0", "where the kernel runs"),
    PARAM_TEXT("device", struct gpu_storage, device_name, "ssd", "an nvme.controller"),
    PARAM_ONE_OF("initiator", struct gpu_storage, initiator, INITIATOR_GPU, initiators, PROV_NONE,
                 "", "who writes commands and doorbells"),
    PARAM("cpu", PARAM_U32, struct gpu_storage, cpu, 1, 0, 255, PROV_NONE, "", "that it runs on"),
    PARAM("iterations", PARAM_U32, struct gpu_storage, iterations, 2000, 1, 50000, PROV_NONE, "",
          "blocks of 4 KiB to read"),
    PARAM("queue_depth", PARAM_U32, struct gpu_storage, queue_depth, 1, 1, GPU_NVME_DEPTH_MAX,
          PROV_NONE, "", "commands of the GPU's kernel under way"),
    PARAM("span_bytes", PARAM_BYTES, struct gpu_storage, span_bytes, 4194304, 4096, 1073741824,
          PROV_NONE, "", "of the device that is used; whole blocks"),
    { .type = PARAM_END },
};

static const struct record_desc gpu_storage_records[] = {
    { "latency_p50_ns", RECORD_METRIC, "ns", "of a block, by the GPU's clock: median" },
    { "latency_mean_ns", RECORD_METRIC, "ns", "mean" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "of each block" },
    { "iops", RECORD_METRIC, "1/s", "blocks, from the kernel's launch to its end" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static uint64_t n_places(const struct gpu_storage *g)
{
    return g->span_bytes / BLOCK_BYTES;
}

static void gpu_storage_check(struct program *program, struct sim_error_list *errors)
{
    struct gpu_storage *g = program->state;
    g->program = program;
    g->host = program_lending_host(program, "host", g->host_name, errors);
    if (g->host == NULL)
        return;
    g->gpu_model = program_device(program, "gpu", g->host, g->gpu_name, &gpu_ops, errors);
    if (g->gpu_model != NULL) {
        g->engine = program_take_engines(program, "gpu", g->gpu_model, 1, errors);
        if (program_take(program, g->gpu_model, "kernel channel", 1) != 0)
            program_mistake(program, "gpu", errors, "a GPU on which no other program has a kernel",
                            NULL);
    }
    const struct model *ssd = program_device(program, "device", g->host, g->device_name, &nvme_ops,
                                             errors);
    if (ssd != NULL)
        program_take_controller(program, ssd, g->device_name, errors);
    if (ssd != NULL && g->span_bytes > nvme_namespace_bytes(ssd))
        program_mistake(program, "span_bytes", errors, "at most capacity_bytes of the device",
                        NULL);
    if (g->host->params.nvme_driver)
        program_mistake(program, "host", errors, "a host with nvme_driver = false", NULL);
    if (g->host->vm != NULL)
        program_mistake(program, "host", errors, "a host without a group `vm`", NULL);
    if (g->span_bytes % BLOCK_BYTES != 0)
        program_mistake(program, "span_bytes", errors, "a multiple of 4096", NULL);
    if (g->initiator == INITIATOR_HOST && g->queue_depth != 1)
        program_mistake(program, "queue_depth", errors, "1 where initiator = \"host\"", NULL);
    program_check_cpus(program, "cpu", g->host, g->cpu, 1, errors);
}

/* ---- The controller -------------------------------------------------------------------------- */

static int memory_new(struct gpu_storage *g, struct dma_memory *memory, size_t bytes)
{
    memory->bytes = bytes;
    return k_dma_alloc(&g->ssd->device, g->ssd->device.node, bytes, &memory->at, &memory->dma);
}

static struct nvme_user_memory user_memory(const struct dma_memory *memory)
{
    return (struct nvme_user_memory){ .at = memory->at, .bus = memory->dma };
}

static int controller_open(struct gpu_storage *g)
{
    struct kernel *kernel = g->host->kernel;
    struct nvme_user_namespace namespace;
    uint16_t queues = 2;
    int error;
    k_dma_set_mask(&g->ssd->device, 64);
    k_pci_enable(g->ssd);
    if ((error = memory_new(g, &g->admin_sq, ADMIN_ENTRIES * NVME_SQE_BYTES)) != 0 ||
        (error = memory_new(g, &g->admin_cq, ADMIN_ENTRIES * NVME_CQE_BYTES)) != 0 ||
        (error = memory_new(g, &g->page, NVME_PAGE_BYTES)) != 0 ||
        (error = memory_new(g, &g->sq, IO_ENTRIES * NVME_SQE_BYTES)) != 0 ||
        (error = memory_new(g, &g->cq, IO_ENTRIES * NVME_CQE_BYTES)) != 0)
        return error;
    const struct nvme_user_controller_params params = { .kernel = kernel,
                                                        .registers = nvme_user_bar_window(g->ssd,
                                                                                          0),
                                                        .admin_entries = ADMIN_ENTRIES,
                                                        .admin_sq = user_memory(&g->admin_sq),
                                                        .admin_cq = user_memory(&g->admin_cq),
                                                        .page = user_memory(&g->page),
                                                        .timeout_ps = ADMIN_TIMEOUT };
    if ((error = nvme_user_controller_open(&g->controller, &params)) != 0)
        return error;
    if ((error = nvme_user_identify_namespace(&g->controller, NSID, &namespace)) != 0 ||
        (error = nvme_user_set_queues(&g->controller, &queues)) != 0)
        return error;
    if (namespace.block_log2 > 12 || queues < 2)
        return -ENODEV;
    g->blocks_per = BLOCK_BYTES >> namespace.block_log2;
    const struct nvme_user_qp_params qp = { .kernel = kernel,
                                            .id = 1,
                                            .entries = IO_ENTRIES,
                                            .sq = user_memory(&g->sq),
                                            .cq = user_memory(&g->cq),
                                            .registers = params.registers,
                                            .doorbell_bytes = g->controller.doorbell_bytes };
    if ((error = nvme_user_qp_init(&g->qp, &qp)) != 0)
        return error;
    return nvme_user_create_queues(&g->controller, 1, IO_ENTRIES, g->sq.dma, g->cq.dma,
                                   NVME_SQ_MEDIUM);
}

static void memory_free(struct gpu_storage *g, struct dma_memory *memory)
{
    if (memory->at.v != 0)
        k_dma_free(&g->ssd->device, memory->bytes, memory->at, memory->dma);
    memory->at.v = 0;
}

static void controller_close(struct gpu_storage *g)
{
    nvme_user_controller_close(&g->controller);
    nvme_user_qp_release(&g->qp);
    memory_free(g, &g->admin_sq);
    memory_free(g, &g->admin_cq);
    memory_free(g, &g->page);
    memory_free(g, &g->sq);
    memory_free(g, &g->cq);
}

/* ---- Commands of the host -------------------------------------------------------------------- */

static void command_done(struct nvme_user_command *command)
{
    struct gpu_storage *g = command->context;
    g->under_way--;
    g->n_failed += command->status != NVME_SC_SUCCESS;
}

/* Transfers a place of the device from or to buffer i. */
static int submit(struct gpu_storage *g, struct nvme_user_command *command, uint8_t opcode,
                  uint64_t place, uint64_t i)
{
    const uint64_t block = place * g->blocks_per;
    const struct nvme_user_piece piece = { g->data_bus + i * BLOCK_BYTES, BLOCK_BYTES };
    *command = (struct nvme_user_command){ .sqe = { .opcode = opcode,
                                                    .nsid = NSID,
                                                    .cdw10 = (uint32_t)block,
                                                    .cdw11 = (uint32_t)(block >> 32),
                                                    .cdw12 = g->blocks_per - 1 },
                                           .done = command_done,
                                           .context = g };
    const int error = nvme_user_qp_submit(&g->qp, command, &piece, 1);
    g->under_way += error == 0;
    return error;
}

static int await_commands(struct gpu_storage *g, unsigned most)
{
    const uint64_t until_ps = k_now_ps(g->host->kernel) + ADMIN_TIMEOUT;
    while (g->under_way > most && k_now_ps(g->host->kernel) < until_ps)
        nvme_user_qp_poll(&g->qp, 0);
    return g->under_way > most ? -ETIMEDOUT : g->n_failed != 0 ? -EIO : 0;
}

static uint64_t tag_of(const struct gpu_storage *g, uint64_t place)
{
    return payload_mark(g->stream, place * BLOCK_BYTES);
}

/* From the GPU's memory, so that this way is tried, too. */
static int fill(struct gpu_storage *g)
{
    int error = 0;
    for (uint64_t place = 0; place < n_places(g) && error == 0; place++) {
        const uint64_t i = place % SIM_MIN(FILL_DEPTH, g->iterations);
        if (i == 0)
            error = await_commands(g, 0);
        gpu_memory_stamp(g->gpu_model, g->data + i * BLOCK_BYTES, tag_of(g, place), BLOCK_BYTES);
        if (error == 0)
            error = submit(g, &g->command[i], NVME_WRITE, place, i);
    }
    return error != 0 ? error : await_commands(g, 0);
}

/* ---- Memory of the GPU ----------------------------------------------------------------------- */

static int gpu_memory_new(struct gpu_storage *g)
{
    const uint64_t data_bytes = (uint64_t)g->iterations * BLOCK_BYTES;
    struct k_device *ssd = &g->ssd->device;
    int error;
    /* What others must reach comes first: the lowest free place. */
    if ((error = gpu_alloc(g->gpu, 2 * NVME_PAGE_BYTES * 2, &g->queues)) != 0 ||
        (error = gpu_alloc(g->gpu, WORD_BYTES, &g->word)) != 0 ||
        (error = gpu_alloc(g->gpu, sizeof(struct gpu_nvme_job), &g->job)) != 0 ||
        (error = gpu_alloc(g->gpu, data_bytes, &g->data)) != 0 ||
        (error = gpu_alloc(g->gpu, g->iterations * sizeof(uint64_t), &g->times)) != 0)
        return error;
    if ((error = gpu_map_for_device(g->gpu, ssd, g->data, data_bytes, &g->data_bus)) != 0)
        return error;
    return gpu_map_for_device(g->gpu, ssd, g->queues, 2 * NVME_PAGE_BYTES * 2, &g->queues_bus);
}

static void gpu_memory_free(struct gpu_storage *g)
{
    struct k_device *ssd = &g->ssd->device;
    if (g->data_bus != 0)
        k_dma_unmap_resource(ssd, g->data_bus, (uint64_t)g->iterations * BLOCK_BYTES, K_DMA_BOTH);
    if (g->queues_bus != 0)
        k_dma_unmap_resource(ssd, g->queues_bus, 2 * NVME_PAGE_BYTES * 2, K_DMA_BOTH);
    if (g->doorbells.run != NULL)
        gpu_unmap(g->gpu, &g->doorbells);
    if (g->host_word.run != NULL)
        gpu_unmap(g->gpu, &g->host_word);
}

/* ---- The two ways ---------------------------------------------------------------------------- */

static uint64_t place_of(const struct gpu_storage *g, uint64_t i)
{
    return i * (STEP % n_places(g)) % n_places(g);
}

static int launch(struct gpu_storage *g, const struct gpu_launch *kernel, struct gpu_event *begin,
                  struct gpu_event *end)
{
    const unsigned channel = gpu_kernel_channel(g->gpu);
    int error = gpu_event_record(g->gpu, channel, false, begin);
    if (error == 0)
        error = gpu_launch(g->gpu, kernel);
    if (error == 0)
        error = gpu_event_record(g->gpu, channel, true, end);
    return error != 0 ? error : gpu_submit(g->gpu, channel);
}

static int by_gpu(struct gpu_storage *g, struct gpu_event *begin, struct gpu_event *end)
{
    const uint64_t cq = 2 * NVME_PAGE_BYTES; /* behind the submission queue */
    const uint32_t doorbell = g->controller.doorbell_bytes;
    const uint64_t first = NVME_REG_DOORBELLS + 2u * 2 * doorbell; /* of queue pair 2 */
    int error = nvme_user_create_queues(&g->controller, 2, IO_ENTRIES, g->queues_bus,
                                        g->queues_bus + cq, NVME_SQ_MEDIUM);
    if (error == 0)
        error = gpu_map_device(g->gpu, &g->ssd->device, 0, first, 2 * (uint64_t)doorbell,
                               &g->doorbells);
    if (error != 0)
        return error;
    const uint64_t bus = g->doorbells.run[0].bus;
    const struct gpu_nvme_job job = { .sq = g->queues,
                                      .cq = g->queues + cq,
                                      .sq_doorbell = bus,
                                      .cq_doorbell = bus + doorbell,
                                      .data = g->data_bus,
                                      .n_places = n_places(g),
                                      .step = STEP,
                                      .n_buffers = g->iterations,
                                      .buffer_bytes = BLOCK_BYTES,
                                      .nsid = NSID,
                                      .entries = IO_ENTRIES,
                                      .depth = (uint16_t)g->queue_depth,
                                      .n_blocks = (uint16_t)g->blocks_per,
                                      .opcode = NVME_READ };
    const struct gpu_launch kernel = {
        .kernel = GPU_KERNEL_NVME, .iterations = g->iterations, .local = g->job, .times = g->times
    };
    error = gpu_write_memory(g->gpu, g->job, &job, sizeof(job));
    return error != 0 ? error : launch(g, &kernel, begin, end);
}

/* The host's side: waits for each question, has the block read, answers. */
static int serve(struct gpu_storage *g)
{
    struct kernel *kernel = g->host->kernel;
    int error = 0;
    for (uint32_t i = 0; i < g->iterations && error == 0; i++) {
        const uint64_t until_ps = k_now_ps(kernel) + ADMIN_TIMEOUT;
        for (uint32_t asked = 0; asked <= i && error == 0;) {
            k_load(kernel, g->asked, &asked, sizeof(asked));
            if (asked <= i)
                k_compute(kernel, WAIT_CYCLES);
            if (k_now_ps(kernel) >= until_ps)
                error = -ETIMEDOUT;
        }
        if (error == 0)
            error = submit(g, &g->command[0], NVME_READ, place_of(g, i), i);
        if (error == 0)
            error = await_commands(g, 0);
        const uint64_t answer = i + 1;
        if (error == 0)
            error = gpu_write_memory(g->gpu, g->word, &answer, sizeof(answer));
    }
    return error;
}

static int by_host(struct gpu_storage *g, struct gpu_event *begin, struct gpu_event *end)
{
    struct kernel *kernel = g->host->kernel;
    g->asked = k_alloc(kernel, (int)k_node_of_cpu(kernel, g->cpu), K_PAGE_BYTES, K_PAGE_BYTES);
    if (g->asked.v == 0)
        return -ENOMEM;
    int error = gpu_map_host(g->gpu, g->asked, WORD_BYTES, &g->host_word);
    if (error != 0)
        return error;
    const struct gpu_launch ping = { .kernel = GPU_KERNEL_PING,
                                     .iterations = g->iterations,
                                     .local = g->word,
                                     .remote = &g->host_word,
                                     .times = g->times };
    error = launch(g, &ping, begin, end);
    return error != 0 ? error : serve(g);
}

/* ---- The program ----------------------------------------------------------------------------- */

static bool blocks_are_right(struct gpu_storage *g)
{
    for (uint32_t i = 0; i < g->iterations; i++) {
        const uint64_t place = place_of(g, i);
        struct payload_difference is;
        if (gpu_memory_check(g->gpu_model, g->data + (uint64_t)i * BLOCK_BYTES, tag_of(g, place),
                             BLOCK_BYTES, &is))
            continue;
        k_fault(g->host->kernel, "%s: block %llu: %#llx where %#llx was written", g->program->name,
                (unsigned long long)place, (unsigned long long)is.found,
                (unsigned long long)is.expected);
        return false;
    }
    return true;
}

static int read_blocks(struct gpu_storage *g)
{
    struct gpu_event begin, end;
    uint32_t errors = 0;
    int error = g->initiator == INITIATOR_GPU ? by_gpu(g, &begin, &end) : by_host(g, &begin, &end);
    if (error == 0)
        error = gpu_event_wait(g->gpu, &end, UINT64_MAX);
    if (error != 0)
        return error;
    g->kernel_ns = (double)(gpu_event_ns(g->gpu, &end) - gpu_event_ns(g->gpu, &begin));
    if (g->initiator == INITIATOR_GPU)
        gpu_memory_read(g->gpu_model, g->job + offsetof(struct gpu_nvme_job, errors), &errors,
                        sizeof(errors));
    for (uint32_t i = 0; i < g->iterations; i++) {
        uint64_t cycles;
        gpu_memory_read(g->gpu_model, g->times + i * sizeof(cycles), &cycles, sizeof(cycles));
        g->ns[i] = (double)cycles * 1e6 / gpu_clock_khz(g->gpu);
    }
    return errors != 0 ? -EIO : 0;
}

static int run(struct gpu_storage *g, const char **what)
{
    struct k_pci_dev *gpu = lending_device(g->host, g->gpu_name);
    g->ssd = lending_device(g->host, g->device_name);
    g->gpu = gpu != NULL ? gpu_of(gpu) : NULL;
    *what = g->gpu == NULL ? g->gpu_name : g->device_name;
    if (g->gpu == NULL || g->ssd == NULL)
        return -ENODEV;
    int error = controller_open(g);
    if (error != 0)
        return error;
    *what = "memory of the GPU for the device";
    if ((error = gpu_memory_new(g)) != 0)
        return error;
    *what = "writing the span";
    if ((error = fill(g)) != 0)
        return error;
    *what = "reading";
    if (!program_await_measurement(g->program, g->host->kernel))
        return -ECANCELED;
    return read_blocks(g);
}

static void gpu_storage_body(void *arg)
{
    struct gpu_storage *g = arg;
    const char *what;
    const int error = run(g, &what);
    if (error != 0)
        program_fail(g->program, "%s: %s", what, strerror(-error));
    g->ended = error == 0 && blocks_are_right(g);
    if (g->ended) {
        controller_close(g);
        gpu_memory_free(g);
    }
    program_finish(g->program);
}

static void gpu_storage_start(struct program *program)
{
    struct gpu_storage *g = program->state;
    g->stream = program_new_stream(program);
    g->ns = program_zalloc(program, g->iterations, sizeof(*g->ns));
    program->finite = true;
    program_lending_uses_cpu(program, g->host, g->cpu);
    k_thread_new(g->host->kernel, "gpu-storage", (int)g->cpu, gpu_storage_body, g);
}

static void gpu_storage_record(struct program *program, sim_time duration_ps)
{
    struct gpu_storage *g = program->state;
    const uint32_t n = g->iterations;
    (void)duration_ps;
    if (!g->ended)
        return;
    for (uint32_t i = 0; i < n; i++)
        stat_histogram_add(&program->histogram_ps, (uint64_t)(g->ns[i] * 1000.0 + 0.5));
    program_metric(program, "latency_p50_ns", "ns", program_sort(g->ns, n));
    program_metric(program, "latency_mean_ns", "ns", program->histogram_ps.sum / n * 1e-3);
    program_histogram(program, "latency_ns", "ns", 0.001, &program->histogram_ps);
    program_metric(program, "iops", "1/s", n / g->kernel_ns * 1e9);
}

const struct program_ops program_gpu_storage_ops = {
    .type = "gpu_storage",
    .help = "a kernel on a GPU reads an NVMe device, by itself or by a thread of the host",
    .state_bytes = sizeof(struct gpu_storage),
    .params = gpu_storage_params,
    .records = gpu_storage_records,
    .check = gpu_storage_check,
    .start = gpu_storage_start,
    .record = gpu_storage_record,
};
