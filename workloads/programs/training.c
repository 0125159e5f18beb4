/*
 * Training of a convolutional network on two GPUs with images from an NVMe device, as its phases:
 *   a loader process reads the next batch's image files with direct I/O and decodes them;
 *   a step copies each half of a batch into its GPU, the model's weights from the first GPU to the
 *   second, tensor by tensor; both GPUs compute; the gradients go from the second to the first;
 *   at the end of an epoch the weights are copied to the host and written to the device.
 * Every byte of every transfer is checked at its destination. What GPUs compute is time alone.
 *
 * Scaled down: of an epoch `steps` are simulated, one like another; its time is theirs times
 * epoch_steps / steps, and that of writing the weights once. With measure.precision_ratio there are
 * fewer epochs once the mean of their times is known.
 */
#include <errno.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "logic/nvme/nvme_driver.h"
#include "models/base/payload.h"
#include "models/gpu/gpu.h"
#include "models/nvme/nvme.h"
#include "workloads/programs/program.h"

#define NSID          1u
#define CHUNK_BYTES   UINT64_C(1048576)    /* of the file that weights are written to */
#define FILES_BYTES   UINT64_C(1073741824) /* the files of images end below this offset */
#define ENGINES       2u                   /* of a GPU, one per direction */
#define TIMEOUT_PS    (2000 * SIM_PS_PER_MS)
#define N_GPUS        2u
#define TENSORS_MAX   32u
#define FLOAT_BYTES   4u
#define DECODE_SLICE  100000u /* cycles: far less than a time slice */
#define SAMPLE_EPOCHS 4u      /* the fewest that tell how an epoch's time spreads */

/* The convolutions of VGG-19 (Simonyan and Zisserman 2015, table 1, E): 3 x 3, in x out channels;
 * biases, 22 KB in all, are left out. */
static const struct {
    uint16_t in, out;
} layers[] = {
    { 3, 64 },    { 64, 64 },   { 64, 128 },  { 128, 128 }, { 128, 256 }, { 256, 256 },
    { 256, 256 }, { 256, 256 }, { 256, 512 }, { 512, 512 }, { 512, 512 }, { 512, 512 },
    { 512, 512 }, { 512, 512 }, { 512, 512 }, { 512, 512 },
};
enum { N_LAYERS = SIM_N_ELEMENTS(layers) };

struct training;

struct side { /* a GPU of it */
    const char *name;
    struct model *model;
    struct gpu_drv *gpu;
    unsigned engine;     /* the first of ENGINES */
    struct kaddr pixels; /* of the half batch, host memory */
    struct gpu_mapping pixels_map, peer_map;
    uint64_t pixels_at, weights_at, gradients_at; /* device memory */
};

struct training {
    /* parameters */
    const char *host_name, *ssd_name, *gpu_name[N_GPUS];
    uint32_t cpu, epochs, steps, epoch_steps, batch_images, files, decode_cycles, n_layers;
    uint64_t image_bytes, tensor_bytes;
    sim_time compute_ps;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct kernel *kernel;
    struct nvme_drv *ssd;
    uint64_t disk_at; /* where images and weights begin on it */
    struct side side[N_GPUS];
    struct kaddr file, weights; /* buffers of the host */
    struct gpu_mapping weights_map;
    uint64_t tensor_at[TENSORS_MAX + 1]; /* offsets in weights and gradients */
    uint64_t weights_bytes, pixels_bytes, file_bytes;
    uint16_t files_stream, stream;
    uint64_t next_tag;     /* position in `stream` of what is made next */
    uint32_t loaded, used; /* batches */
    struct k_wait_queue wait;
    bool ready, failed, over;
    bool loader_gone; /* it uses the device no more */
    /* measured */
    sim_time measured_ps; /* from when on */
    double *epoch_s;
    uint32_t n_epochs;
    uint32_t n_asked;   /* epochs, without measure.precision_ratio */
    double known_ratio; /* of an epoch's time: where there are fewer */
    sim_time phase_ps[4];
};

enum phase { PHASE_LOAD, PHASE_COPY, PHASE_COMPUTE, PHASE_EXCHANGE };

#define FROM_C6 "docs/sources.md#c6"
static const struct param_desc training_params[] = {
    PARAM_TEXT("on", struct training, host_name, "borrower", "host of the group `lending`"),
    PARAM_TEXT("ssd", struct training, ssd_name, "ssd", "its NVMe device"),
    PARAM_TEXT("gpu0", struct training, gpu_name[0], "gpu0", "that has the variables"),
    PARAM_TEXT("gpu1", struct training, gpu_name[1], "gpu1", "the other"),
    PARAM("cpu", PARAM_U32, struct training, cpu, 1, 0, 254, PROV_NONE, "",
          "that it runs on; the loader on the next"),
    PARAM("epochs", PARAM_U32, struct training, epochs, 12, 1, 1000, PROV_PUBLISHED, FROM_C6, ""),
    PARAM("steps", PARAM_U32, struct training, steps, 1, 1, 10000, PROV_NONE, "",
          "of an epoch that are simulated"),
    PARAM("epoch_steps", PARAM_U32, struct training, epoch_steps, 250, 1, 1000000, PROV_ESTIMATE,
          FROM_C6, "of an epoch"),
    PARAM("batch_images", PARAM_U32, struct training, batch_images, 32, 2, 1024, PROV_ESTIMATE,
          FROM_C6, "of a step, both GPUs"),
    PARAM("files", PARAM_U32, struct training, files, 64, 2, 100000, PROV_NONE, "",
          "images on the device that are read in turn"),
    PARAM("image_bytes", PARAM_BYTES, struct training, image_bytes, 290816, 512, 10485760,
          PROV_ESTIMATE, FROM_C6, "of a file; whole blocks of the device"),
    PARAM("tensor_bytes", PARAM_BYTES, struct training, tensor_bytes, 602112, 64, 104857600,
          PROV_PUBLISHED, FROM_C6, "of an image as the network takes it: 224 x 224 x 3 x 4"),
    PARAM("decode_cycles", PARAM_U32, struct training, decode_cycles, 10000000, 0, 1000000000,
          PROV_ESTIMATE, FROM_C6, "of the loader, per image"),
    PARAM("compute_ms", PARAM_TIME, struct training, compute_ps, 471, 0, 100000, PROV_PUBLISHED,
          FROM_C6, "of a step on each GPU: forward and backward of half a batch"),
    PARAM("layers", PARAM_U32, struct training, n_layers, N_LAYERS, 1, N_LAYERS, PROV_NONE, "",
          "of the network, from the first on"),
    { .type = PARAM_END },
};

static const struct record_desc training_records[] = {
    { "epoch_s", RECORD_METRIC, "s", "an epoch's run time: mean" },
    { "epoch_s", RECORD_SERIES, "s", "each epoch's, at its end" },
    { "step_ms", RECORD_METRIC, "ms", "a step: mean" },
    { "step_load_ms", RECORD_METRIC, "ms", "of it waiting for the loader" },
    { "step_copy_ms", RECORD_METRIC, "ms", "of it host to devices, and weights to the other GPU" },
    { "step_compute_ms", RECORD_METRIC, "ms", "of it computing" },
    { "step_exchange_ms", RECORD_METRIC, "ms", "of it gradients to the first GPU" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void set_sizes(struct training *t, uint32_t block_bytes)
{
    const unsigned n = t->n_layers;
    for (unsigned i = 0; i < n; i++)
        t->tensor_at[i + 1] = t->tensor_at[i] +
                              (uint64_t)layers[i].in * layers[i].out * 9 * FLOAT_BYTES;
    /* In whole blocks, as files are; with its biases the network has 0.03 % more. */
    t->weights_bytes = (t->tensor_at[n] + block_bytes - 1) / block_bytes * block_bytes;
    t->tensor_at[n] = t->weights_bytes;
    t->pixels_bytes = t->batch_images / N_GPUS * t->tensor_bytes;
    t->file_bytes = t->image_bytes;
}

/* Images, then the file of weights. */
static void check_ssd(struct training *t, struct sim_error_list *errors)
{
    const struct model *ssd = program_block_device(t->program, "ssd", t->host, t->ssd_name, errors);
    if (ssd == NULL)
        return;
    set_sizes(t, nvme_namespace_block_bytes(ssd));
    if (t->image_bytes % nvme_namespace_block_bytes(ssd) != 0 ||
        t->files * t->image_bytes > FILES_BYTES)
        program_mistake(t->program, "image_bytes", errors,
                        "whole blocks of the device, 1 GiB for all files at most", NULL);
    t->disk_at = program_take(t->program, ssd, "byte", FILES_BYTES + t->weights_bytes);
    if (nvme_namespace_bytes(ssd) < t->disk_at + FILES_BYTES + t->weights_bytes)
        program_mistake(
            t->program, "ssd", errors,
            "a device of 1 GiB for images, and 77 MiB for weights, behind what other programs use",
            NULL);
}

static void training_check(struct program *program, struct sim_error_list *errors)
{
    struct training *t = program->state;
    t->program = program;
    t->host = program_lending_host(program, "on", t->host_name, errors);
    if (t->host == NULL)
        return;
    check_ssd(t, errors);
    for (unsigned g = 0; g < N_GPUS; g++) {
        const char *const key = g == 0 ? "gpu0" : "gpu1";
        t->side[g].model = program_device(program, key, t->host, t->gpu_name[g], &gpu_ops, errors);
        if (t->side[g].model != NULL)
            t->side[g].engine = program_take_engines(program, key, t->side[g].model, ENGINES,
                                                     errors);
    }
    if (strcmp(t->gpu_name[0], t->gpu_name[1]) == 0)
        program_mistake(program, "gpu1", errors, "another GPU than `gpu0`", NULL);
    if (t->batch_images % N_GPUS != 0)
        program_mistake(program, "batch_images", errors, "an even number", NULL);
    if (t->tensor_bytes % LINE_BYTES != 0)
        program_mistake(program, "tensor_bytes", errors, "a multiple of 64", NULL);
    program_check_cpus(program, "cpu", t->host, t->cpu, 2, errors);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* True: it is none. */
static bool good(struct training *t, int status, const char *what)
{
    if (status != 0 && !t->failed)
        program_fail(t->program, "%s: the driver says %s", what, strerror(-status));
    t->failed |= status != 0;
    return !t->failed;
}

static void wrong(struct training *t, const char *what, const struct payload_difference *is)
{
    t->failed = true;
    k_fault(t->kernel, "%s: %s: %#llx where %#llx should be", t->program->name, what,
            (unsigned long long)is->found, (unsigned long long)is->expected);
}

static void expect_host(struct training *t, struct kaddr at, uint64_t tag, uint64_t bytes,
                        const char *what)
{
    struct payload_difference is;
    if (!t->failed && !payload_check(t->kernel, at, tag, bytes, &is))
        wrong(t, what, &is);
}

static void expect_gpu(struct training *t, const struct side *side, uint64_t at, uint64_t tag,
                       uint64_t bytes, const char *what)
{
    struct payload_difference is;
    if (!t->failed && !gpu_memory_check(side->model, at, tag, bytes, &is))
        wrong(t, what, &is);
}

/* A tag that no data had before. */
static uint64_t new_tag(struct training *t, uint64_t bytes)
{
    uint64_t tag = payload_mark(t->stream, t->next_tag);
    t->next_tag += bytes;
    return tag;
}

/* ---- The loader ------------------------------------------------------------------------------ */

static uint64_t file_tag(const struct training *t, uint32_t file)
{
    return payload_mark(t->files_stream, file * t->file_bytes);
}

/* A process that computes can be preempted: other threads of its CPU get their turn. */
static void decode(struct training *t)
{
    for (uint32_t done = 0; done < t->decode_cycles; done += DECODE_SLICE) {
        k_compute(t->kernel, SIM_MIN(DECODE_SLICE, t->decode_cycles - done));
        os_poll(t->kernel);
    }
}

static void load_batch(struct training *t)
{
    for (uint32_t i = 0; i < t->batch_images && !t->failed && !t->over; i++) {
        uint32_t file = (t->loaded * t->batch_images + i) % t->files;
        payload_fill(t->kernel, t->file, payload_mark(t->files_stream, FILES_BYTES), t->file_bytes);
        if (!good(t,
                  nvme_direct_io(t->ssd, NSID, false, t->disk_at + file * t->file_bytes, t->file,
                                 t->file_bytes),
                  "reading an image"))
            return;
        expect_host(t, t->file, file_tag(t, file), t->file_bytes, "an image");
        decode(t);
    }
}

static void loader_body(void *arg)
{
    struct training *t = arg;
    while (!t->ready && !t->over)
        k_wait(t->kernel, &t->wait, UINT64_MAX);
    while (!t->over && !t->failed) {
        load_batch(t);
        t->loaded++;
        k_wake(t->kernel, &t->wait);
        while (t->loaded > t->used + 1 && !t->over) /* one ahead */
            k_wait(t->kernel, &t->wait, UINT64_MAX);
    }
    t->over = t->loader_gone = true;
    k_wake(t->kernel, &t->wait);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct gpu_place inside(uint64_t at)
{
    return (struct gpu_place){ .offset = at };
}
static struct gpu_place outside(const struct gpu_mapping *mapping, uint64_t at)
{
    return (struct gpu_place){ .mapping = mapping, .offset = at };
}

static int copy_end(struct gpu_drv *gpu, unsigned channel, struct gpu_event *event)
{
    int error = gpu_event_record(gpu, channel, true, event);
    return error != 0 ? error : gpu_submit(gpu, channel);
}

static int wait_event(struct training *t, struct gpu_drv *gpu, const struct gpu_event *event)
{
    return gpu_event_wait(gpu, event, k_now_ps(t->kernel) + TIMEOUT_PS);
}

/* Half a batch into each GPU, both at once. */
static void copy_batch(struct training *t)
{
    struct gpu_event event[N_GPUS];
    uint64_t tag[N_GPUS];
    for (unsigned g = 0; g < N_GPUS && !t->failed; g++) {
        struct side *side = &t->side[g];
        tag[g] = new_tag(t, t->pixels_bytes);
        payload_fill(t->kernel, side->pixels, tag[g], t->pixels_bytes);
        if (good(t,
                 gpu_copy(side->gpu, side->engine, inside(side->pixels_at),
                          outside(&side->pixels_map, 0), t->pixels_bytes),
                 "copying a batch"))
            good(t, copy_end(side->gpu, side->engine, &event[g]), "copying a batch");
    }
    for (unsigned g = 0; g < N_GPUS && !t->failed; g++) {
        struct side *side = &t->side[g];
        if (good(t, wait_event(t, side->gpu, &event[g]), "copying a batch"))
            expect_gpu(t, side, side->pixels_at, tag[g], t->pixels_bytes, "pixels");
    }
}

/* All tensors from one GPU into the other, one behind the other; the source's engine writes. */
static void copy_tensors(struct training *t, unsigned from, uint64_t at, uint64_t to)
{
    struct side *source = &t->side[from], *target = &t->side[!from];
    struct gpu_event event;
    uint64_t tag = new_tag(t, t->weights_bytes), base = target->weights_at;
    gpu_memory_stamp(source->model, at, tag, t->weights_bytes);
    for (unsigned i = 0; i < t->n_layers && !t->failed; i++)
        good(t,
             gpu_copy(source->gpu, source->engine + 1,
                      outside(&source->peer_map, to - base + t->tensor_at[i]),
                      inside(at + t->tensor_at[i]), t->tensor_at[i + 1] - t->tensor_at[i]),
             "copying a tensor");
    if (!t->failed &&
        good(t, copy_end(source->gpu, source->engine + 1, &event), "copying tensors") &&
        good(t, wait_event(t, source->gpu, &event), "copying tensors"))
        expect_gpu(t, target, to, tag, t->weights_bytes, "tensors");
}

/* The weights of the first GPU, by way of the host, into a file. */
static void write_back(struct training *t)
{
    struct side *side = &t->side[0];
    struct gpu_event event;
    uint64_t tag = new_tag(t, t->weights_bytes);
    gpu_memory_stamp(side->model, side->weights_at, tag, t->weights_bytes);
    if (!good(t,
              gpu_copy(side->gpu, side->engine + 1, outside(&t->weights_map, 0),
                       inside(side->weights_at), t->weights_bytes),
              "copying weights") ||
        !good(t, copy_end(side->gpu, side->engine + 1, &event), "copying weights") ||
        !good(t, wait_event(t, side->gpu, &event), "copying weights"))
        return;
    expect_host(t, t->weights, tag, t->weights_bytes, "weights");
    for (uint64_t at = 0; at < t->weights_bytes && !t->failed; at += CHUNK_BYTES)
        good(t,
             nvme_direct_io(t->ssd, NSID, true, t->disk_at + FILES_BYTES + at,
                            kaddr_add(t->weights, at), SIM_MIN(CHUNK_BYTES, t->weights_bytes - at)),
             "writing weights");
    if (t->n_epochs + 1 < t->epochs || t->failed)
        return;
    /* The last file is read again. */
    payload_fill(t->kernel, t->weights, payload_mark(t->stream, 0), t->weights_bytes);
    good(t,
         nvme_transfer(t->ssd, NSID, false, t->disk_at + FILES_BYTES, t->weights, t->weights_bytes),
         "reading weights");
    expect_host(t, t->weights, tag, t->weights_bytes, "weights in their file");
}

/* ---- Epochs ---------------------------------------------------------------------------------- */

static void end_phase(struct training *t, enum phase phase, sim_time *since_ps)
{
    sim_time now_ps = k_now_ps(t->kernel);
    t->phase_ps[phase] += now_ps - *since_ps;
    *since_ps = now_ps;
}

static void step(struct training *t)
{
    sim_time since_ps = k_now_ps(t->kernel);
    while (t->loaded == t->used && !t->over)
        k_wait(t->kernel, &t->wait, UINT64_MAX);
    t->used++;
    k_wake(t->kernel, &t->wait);
    end_phase(t, PHASE_LOAD, &since_ps);
    copy_batch(t);
    copy_tensors(t, 0, t->side[0].weights_at, t->side[1].weights_at);
    end_phase(t, PHASE_COPY, &since_ps);
    k_sleep(t->kernel, t->compute_ps);
    end_phase(t, PHASE_COMPUTE, &since_ps);
    copy_tensors(t, 1, t->side[1].gradients_at, t->side[0].gradients_at);
    end_phase(t, PHASE_EXCHANGE, &since_ps);
}

/* Whether the time of an epoch is known to the precision asked for: one more, which reads back what
 * was written, is the last. Few looks, as the narrowest of many intervals is too narrow. */
static bool enough(const struct training *t)
{
    const double precision = t->program->workload->measure.precision_ratio;
    return precision != 0 && program_alone(t->program) && t->n_epochs >= SAMPLE_EPOCHS &&
           (t->n_epochs & (t->n_epochs - 1)) == 0 && t->n_epochs + 1 < t->epochs &&
           stat_interval_ratio(t->epoch_s, t->n_epochs) <= precision;
}

static void epoch(struct training *t)
{
    sim_time begin_ps = k_now_ps(t->kernel);
    for (uint32_t i = 0; i < t->steps && !t->failed; i++)
        step(t);
    sim_time steps_ps = k_now_ps(t->kernel) - begin_ps;
    begin_ps += steps_ps;
    if (!t->failed)
        write_back(t);
    if (t->failed)
        return;
    double seconds = (double)steps_ps * 1e-12 * t->epoch_steps / t->steps +
                     (double)(k_now_ps(t->kernel) - begin_ps) * 1e-12;
    program_series(t->program, "epoch_s", "s", k_now_ps(t->kernel) - t->measured_ps, seconds);
    t->epoch_s[t->n_epochs++] = seconds;
    if (enough(t)) {
        t->known_ratio = stat_interval_ratio(t->epoch_s, t->n_epochs);
        t->epochs = t->n_epochs + 1;
    }
}

/* ---- Setting up ------------------------------------------------------------------------------ */

static struct kaddr buffer(struct training *t, uint64_t bytes)
{
    struct kaddr at = k_alloc(t->kernel, (int)k_node_of_cpu(t->kernel, t->cpu), bytes,
                              K_PAGE_BYTES);
    if (at.v == 0)
        good(t, -ENOMEM, "a buffer");
    return at;
}

static void find_devices(struct training *t)
{
    struct k_pci_dev *dev = lending_device(t->host, t->ssd_name);
    t->ssd = dev != NULL && nvme_of(dev) != NULL ? nvme_open(nvme_of(dev)) : NULL;
    good(t, t->ssd != NULL ? 0 : -ENODEV, t->ssd_name);
    for (unsigned g = 0; g < N_GPUS; g++) {
        dev = lending_device(t->host, t->gpu_name[g]);
        t->side[g].gpu = dev != NULL ? gpu_of(dev) : NULL;
        good(t, t->side[g].gpu != NULL ? 0 : -ENODEV, t->gpu_name[g]);
    }
}

/* Weights and gradients first: where others reach them. */
static void set_up_gpus(struct training *t)
{
    for (unsigned g = 0; g < N_GPUS && !t->failed; g++) {
        struct side *side = &t->side[g];
        side->pixels = buffer(t, t->pixels_bytes);
        good(t, gpu_alloc(side->gpu, 2 * t->weights_bytes, &side->weights_at), "device memory");
        side->gradients_at = side->weights_at + t->weights_bytes;
        good(t, gpu_alloc(side->gpu, t->pixels_bytes, &side->pixels_at), "device memory");
        if (!t->failed)
            good(t, gpu_map_host(side->gpu, side->pixels, t->pixels_bytes, &side->pixels_map),
                 "mapping a buffer");
    }
    for (unsigned g = 0; g < N_GPUS && !t->failed; g++)
        good(t,
             gpu_map_peer(t->side[g].gpu, t->side[!g].gpu, t->side[!g].weights_at,
                          2 * t->weights_bytes, &t->side[g].peer_map),
             "mapping the other GPU's memory");
    if (!t->failed)
        good(t, gpu_map_host(t->side[0].gpu, t->weights, t->weights_bytes, &t->weights_map),
             "mapping a buffer");
}

static void make_files(struct training *t)
{
    for (uint32_t i = 0; i < t->files && !t->failed; i++) {
        payload_fill(t->kernel, t->file, file_tag(t, i), t->file_bytes);
        good(t,
             nvme_transfer(t->ssd, NSID, true, t->disk_at + i * t->file_bytes, t->file,
                           t->file_bytes),
             "writing images");
    }
}

static void training_body(void *arg)
{
    struct training *t = arg;
    t->file = buffer(t, t->file_bytes);
    t->weights = buffer(t, t->weights_bytes);
    find_devices(t);
    if (!t->failed)
        set_up_gpus(t);
    if (!t->failed)
        make_files(t);
    t->over = !program_await_measurement(t->program, t->kernel);
    t->ready = true;
    k_wake(t->kernel, &t->wait);
    while (t->loaded == 0 && !t->over && !t->failed)
        k_wait(t->kernel, &t->wait, UINT64_MAX);
    while (t->n_epochs < t->epochs && !t->failed && !t->over)
        epoch(t);
    t->over = true;
    k_wake(t->kernel, &t->wait);
    while (!t->loader_gone)
        k_wait(t->kernel, &t->wait, UINT64_MAX);
    for (unsigned g = 0; g < N_GPUS && !t->failed; g++) {
        gpu_unmap(t->side[g].gpu, &t->side[g].pixels_map);
        gpu_unmap(t->side[g].gpu, &t->side[g].peer_map);
    }
    if (!t->failed)
        gpu_unmap(t->side[0].gpu, &t->weights_map);
    program_finish(t->program);
}

static void training_start(struct program *program)
{
    struct training *t = program->state;
    t->kernel = t->host->kernel;
    t->files_stream = program_new_stream(program);
    t->stream = program_new_stream(program);
    t->n_asked = t->epochs;
    t->epoch_s = program_zalloc(program, t->epochs, sizeof(*t->epoch_s));
    program->finite = true;
    program_lending_uses_cpu(program, t->host, t->cpu);
    program_lending_uses_cpu(program, t->host, t->cpu + 1);
    k_thread_new(t->kernel, "training", (int)t->cpu, training_body, t);
    k_thread_new(t->kernel, "loader", (int)t->cpu + 1, loader_body, t);
}

static void training_measure(struct program *program)
{
    struct training *t = program->state;
    t->measured_ps = sim_now(program->workload->sim);
}

static void training_record(struct program *program, sim_time duration_ps)
{
    static const char *const names[] = { "step_load_ms", "step_copy_ms", "step_compute_ms",
                                         "step_exchange_ms" };
    const struct training *t = program->state;
    double sum_s = 0, step_ms = 0, n_steps = (double)t->n_epochs * t->steps;
    (void)duration_ps;
    if (t->n_epochs == 0)
        return; /* it has failed */
    for (uint32_t i = 0; i < t->n_epochs; i++)
        sum_s += t->epoch_s[i];
    program_metric(program, "epoch_s", "s", sum_s / t->n_epochs);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(names); i++) {
        double ms = (double)t->phase_ps[i] * 1e-9 / n_steps;
        program_metric(program, names[i], "ms", ms);
        step_ms += ms;
    }
    program_metric(program, "step_ms", "ms", step_ms);
    if (t->epochs == t->n_asked)
        return;
    char text[160];
    snprintf(text, sizeof(text),
             "%.60s: %u of %u epochs; half the 95 %% interval of the mean of %u is %.2g %%",
             program->name, t->epochs, t->n_asked, t->epochs - 1, 100 * t->known_ratio);
    run_result_note(program->workload->result, "sampled", text);
}

static void training_release(struct program *program)
{
    nvme_close(((struct training *)program->state)->ssd);
}

const struct program_ops program_training_ops = {
    .type = "training",
    .help = "training of VGG-19 on two GPUs with images from an NVMe device",
    .state_bytes = sizeof(struct training),
    .params = training_params,
    .records = training_records,
    .check = training_check,
    .start = training_start,
    .measure = training_measure,
    .record = training_record,
    .release = training_release,
};
