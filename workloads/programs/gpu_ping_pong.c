/*
 * The CUDA program of SmartIO figure 25: a kernel on one GPU writes a counter into the memory of
 * another and waits in its own memory for the answer that a kernel there writes back. The time of
 * each turn is the difference of two clock64(), copied to the host and divided by the clock.
 */
#include <errno.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "models/gpu/gpu.h"
#include "workloads/programs/program.h"

#define WORD_BYTES 64u
#define HEAD_PS    (50 * SIM_PS_PER_US) /* between the launch of pong and that of ping */

struct ping_pong {
    /* parameters */
    const char *host_name, *name[2]; /* ping, pong */
    uint32_t cpu, iterations;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct gpu_drv *gpu[2];
    unsigned engine;         /* of the first, for its times */
    uint64_t word[2], times; /* device memory */
    struct gpu_mapping mapping[2];
    /* measured */
    bool ended; /* well */
    double *ns; /* of each turn */
};

static const struct param_desc ping_pong_params[] = {
    PARAM_TEXT("host", struct ping_pong, host_name, "borrower",
               "host of the group `lending` that launches both kernels"),
    PARAM_TEXT("gpu", struct ping_pong, name[0], "gpu0", "where the ping kernel runs"),
    PARAM_TEXT("peer", struct ping_pong, name[1], "gpu1", "where the pong kernel runs"),
    PARAM("cpu", PARAM_U32, struct ping_pong, cpu, 1, 0, 255, PROV_NONE, "", "that it runs on"),
    PARAM("iterations", PARAM_U32, struct ping_pong, iterations, 10000, 1, 1000000, PROV_NONE, "",
          "turns"),
    { .type = PARAM_END },
};

static const struct record_desc ping_pong_records[] = {
    { "latency_p50_ns", RECORD_METRIC, "ns", "of a turn, there and back: median" },
    { "latency_min_ns", RECORD_METRIC, "ns", "the fastest turn" },
    { "latency_max_ns", RECORD_METRIC, "ns", "the slowest turn" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "of all turns" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void ping_pong_check(struct program *program, struct sim_error_list *errors)
{
    static const char *const keys[] = { "gpu", "peer" };
    struct ping_pong *p = program->state;
    p->program = program;
    p->host = program_lending_host(program, "host", p->host_name, errors);
    if (p->host == NULL)
        return;
    for (unsigned i = 0; i < 2; i++) {
        const struct model *gpu = program_device(program, keys[i], p->host, p->name[i], &gpu_ops,
                                                 errors);
        if (gpu != NULL && program_take(program, gpu, "kernel channel", 1) != 0)
            program_mistake(program, keys[i], errors,
                            "a GPU on which no other program has a kernel", NULL);
        if (gpu != NULL && i == 0)
            p->engine = program_take_engines(program, keys[i], gpu, 1, errors);
    }
    if (strcmp(p->name[0], p->name[1]) == 0)
        program_mistake(program, "peer", errors, "another GPU than `gpu`", NULL);
    program_check_cpus(program, "cpu", p->host, p->cpu, 1, errors);
}

/* Memory of both, seen from each other. */
static int prepare(struct ping_pong *p)
{
    int error = gpu_alloc(p->gpu[0], p->iterations * sizeof(uint64_t), &p->times);
    for (unsigned i = 0; i < 2 && error == 0; i++)
        error = gpu_alloc(p->gpu[i], WORD_BYTES, &p->word[i]);
    if (error == 0)
        error = gpu_map_peer(p->gpu[0], p->gpu[1], p->word[1], WORD_BYTES, &p->mapping[0]);
    if (error != 0)
        return error;
    error = gpu_map_peer(p->gpu[1], p->gpu[0], p->word[0], WORD_BYTES, &p->mapping[1]);
    if (error != 0)
        gpu_unmap(p->gpu[0], &p->mapping[0]);
    return error;
}

static int launch(struct ping_pong *p, unsigned i, struct gpu_event *end)
{
    unsigned channel = gpu_kernel_channel(p->gpu[i]);
    const struct gpu_launch kernel = { .kernel = i == 0 ? GPU_KERNEL_PING : GPU_KERNEL_PONG,
                                       .iterations = p->iterations,
                                       .local = p->word[i],
                                       .remote = &p->mapping[i],
                                       .times = i == 0 ? p->times : GPU_NO_TIMES };
    int error = gpu_launch(p->gpu[i], &kernel);
    if (error == 0)
        error = gpu_event_record(p->gpu[i], channel, true, end);
    return error != 0 ? error : gpu_submit(p->gpu[i], channel);
}

static int play(struct ping_pong *p)
{
    struct gpu_event end[2];
    int error = launch(p, 1, &end[1]);
    if (error != 0)
        return error;
    k_sleep(p->host->kernel, HEAD_PS);
    error = launch(p, 0, &end[0]);
    for (unsigned i = 0; i < 2 && error == 0; i++)
        error = gpu_event_wait(p->gpu[i], &end[i], UINT64_MAX);
    return error;
}

/* cudaMemcpy() of the times to the host. */
static int collect(struct ping_pong *p)
{
    struct kernel *kernel = p->host->kernel;
    struct gpu_drv *gpu = p->gpu[0];
    uint64_t bytes = p->iterations * sizeof(uint64_t), cycles;
    struct gpu_mapping mapping;
    struct gpu_event end;
    struct kaddr buffer = k_alloc(kernel, (int)k_node_of_cpu(kernel, p->cpu), bytes, K_PAGE_BYTES);
    if (buffer.v == 0)
        return -ENOMEM;
    int error = gpu_map_host(gpu, buffer, bytes, &mapping);
    if (error != 0)
        return error;
    error = gpu_copy(gpu, p->engine, (struct gpu_place){ &mapping, 0 },
                     (struct gpu_place){ NULL, p->times }, bytes);
    if (error == 0)
        error = gpu_event_record(gpu, p->engine, true, &end);
    if (error == 0)
        error = gpu_submit(gpu, p->engine);
    if (error == 0)
        error = gpu_event_wait(gpu, &end, UINT64_MAX);
    gpu_unmap(gpu, &mapping);
    for (uint32_t i = 0; i < p->iterations && error == 0; i++) {
        k_peek(kernel, kaddr_add(buffer, i * sizeof(cycles)), &cycles, sizeof(cycles));
        p->ns[i] = (double)cycles * 1e6 / gpu_clock_khz(gpu);
    }
    return error;
}

static void ping_pong_body(void *arg)
{
    struct ping_pong *p = arg;
    bool found = true;
    for (unsigned i = 0; i < 2; i++) {
        struct k_pci_dev *dev = lending_device(p->host, p->name[i]);
        p->gpu[i] = dev != NULL ? gpu_of(dev) : NULL;
        found = found && p->gpu[i] != NULL;
    }
    int error = found ? prepare(p) : -ENODEV;
    if (error == 0) {
        error = program_await_measurement(p->program, p->host->kernel) ? play(p) : -ECANCELED;
        if (error == 0)
            error = collect(p);
        for (unsigned i = 0; i < 2; i++)
            gpu_unmap(p->gpu[i], &p->mapping[i]);
    }
    if (error != 0)
        program_fail(p->program, "%s", strerror(-error));
    p->ended = error == 0;
    program_finish(p->program);
}

static void ping_pong_start(struct program *program)
{
    struct ping_pong *p = program->state;
    p->ns = program_zalloc(program, p->iterations, sizeof(*p->ns));
    program->finite = true;
    program_lending_uses_cpu(program, p->host, p->cpu);
    k_thread_new(p->host->kernel, "ping-pong", (int)p->cpu, ping_pong_body, p);
}

static void ping_pong_record(struct program *program, sim_time duration_ps)
{
    struct ping_pong *p = program->state;
    uint32_t n = p->iterations;
    (void)duration_ps;
    if (!p->ended)
        return;
    for (uint32_t i = 0; i < n; i++)
        stat_histogram_add(&program->histogram_ps, (uint64_t)(p->ns[i] * 1000.0 + 0.5));
    program_metric(program, "latency_p50_ns", "ns", program_sort(p->ns, n));
    program_metric(program, "latency_min_ns", "ns", p->ns[0]);
    program_metric(program, "latency_max_ns", "ns", p->ns[n - 1]);
    program_histogram(program, "latency_ns", "ns", 0.001, &program->histogram_ps);
}

const struct program_ops program_ping_pong_ops = {
    .type = "ping_pong",
    .help = "two GPUs write a counter back and forth into each other's memory",
    .state_bytes = sizeof(struct ping_pong),
    .params = ping_pong_params,
    .records = ping_pong_records,
    .check = ping_pong_check,
    .start = ping_pong_start,
    .record = ping_pong_record,
};
