/*
 * Cold migration (SmartIO 5.5): a guest works with a borrowed GPU, is shut down, started on another
 * host with the same GPU, and works on. What it left in device memory says whether it is the same;
 * copies there and back, every byte checked, whether it works. The guest on the other host is up
 * already, without devices: what it takes to boot is not in the time.
 */
#include <errno.h>
#include <string.h>

#include "logic/gpu/gpu_driver.h"
#include "models/base/payload.h"
#include "models/gpu/gpu.h"
#include "workloads/programs/program.h"
#include "workloads/setup/lending_vm.h"

#define COPY_TIMEOUT_PS (2000 * SIM_PS_PER_MS)
#define STEP_PS         (10 * SIM_PS_PER_US)
#define PLACES          2u /* in device memory: what stays there; what is copied to and fro */

struct migration {
    /* parameters */
    const char *from_name, *to_name, *gpu_name;
    uint64_t transfer_bytes;
    /* running */
    struct program *program;
    struct lending_host *from, *to;
    unsigned engine; /* of the GPU */
    uint64_t offset[PLACES];
    uint16_t stream;
    bool done;
    int error;
    /* measured */
    sim_time off_ps, on_ps;
    bool kept, worked, resumed;
};

static const struct param_desc migration_params[] = {
    PARAM_TEXT("from", struct migration, from_name, "first", "host whose guest begins"),
    PARAM_TEXT("to", struct migration, to_name, "second", "host that the guest goes on at"),
    PARAM_TEXT("gpu", struct migration, gpu_name, "gpu0", "that the guest keeps"),
    PARAM("transfer_bytes", PARAM_BYTES, struct migration, transfer_bytes, 1048576, 4096, 1e8,
          PROV_NONE, "", "of a copy; whole pages"),
    { .type = PARAM_END },
};

static const struct record_desc migration_records[] = {
    { "device_kept", RECORD_METRIC, "1", "1: the guest found in device memory what it had left" },
    { "guest_io_resumed", RECORD_METRIC, "1", "1: copies there and back arrived, byte by byte" },
    { "downtime_ms", RECORD_METRIC, "ms",
      "last copy on the one host to first on the other, without booting" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void migration_check(struct program *program, struct sim_error_list *errors)
{
    struct migration *m = program->state;
    m->program = program;
    m->from = program_member(program, "from", m->from_name, false, errors);
    m->to = program_member(program, "to", m->to_name, false, errors);
    if (m->from == NULL || m->to == NULL)
        return;
    const struct model *model = world_device(program->workload->world, m->gpu_name);
    if (lending_borrower(program->lending, m->gpu_name) != m->from || model->ops != &gpu_ops)
        program_mistake(program, "gpu", errors, "a GPU that the host `from` borrows",
                        lending_used_names(m->from));
    else if (lending_lender(program->lending, m->gpu_name) == m->to)
        program_mistake(program, "to", errors, "a host that does not lend the GPU", NULL);
    if (model != NULL && model->ops == &gpu_ops)
        m->engine = program_take_engines(program, "gpu", model, 1, errors);
    if (m->from == m->to || m->from->vm == NULL || m->to->vm == NULL)
        program_mistake(program, "to", errors, "two hosts with a group `vm` each", NULL);
    if (m->transfer_bytes % K_PAGE_BYTES != 0)
        program_mistake(program, "transfer_bytes", errors, "whole pages", NULL);
}

/* ---- In the guest ---------------------------------------------------------------------------- */

static int copy(struct migration *m, struct kernel *kernel, struct gpu_drv *gpu, struct kaddr at,
                uint64_t offset, bool into_device)
{
    struct gpu_mapping mapping;
    struct gpu_event end;
    int error = gpu_map_host(gpu, at, m->transfer_bytes, &mapping);
    if (error != 0)
        return error;
    const struct gpu_place inside = { NULL, offset }, outside = { &mapping, 0 };
    error = gpu_copy(gpu, m->engine, into_device ? inside : outside, into_device ? outside : inside,
                     m->transfer_bytes);
    if (error == 0)
        error = gpu_event_record(gpu, m->engine, true, &end);
    if (error == 0)
        error = gpu_submit(gpu, m->engine);
    if (error == 0)
        error = gpu_event_wait(gpu, &end, k_now_ps(kernel) + COPY_TIMEOUT_PS);
    gpu_unmap(gpu, &mapping);
    return error;
}

/* Bytes of a stream into the device, and back to another place. */
static int there_and_back(struct migration *m, struct kernel *kernel, struct gpu_drv *gpu,
                          struct kaddr buffer, unsigned place, uint64_t tag, bool *same)
{
    const struct kaddr other = kaddr_add(buffer, m->transfer_bytes);
    struct payload_difference is;
    payload_fill(kernel, buffer, tag, m->transfer_bytes);
    int error = copy(m, kernel, gpu, buffer, m->offset[place], true);
    if (error == 0)
        error = copy(m, kernel, gpu, other, m->offset[place], false);
    *same = error == 0 && payload_check(kernel, other, tag, m->transfer_bytes, &is);
    return error;
}

static int work(struct migration *m, struct lending_host *host, bool first)
{
    struct kernel *kernel = host->kernel;
    struct k_pci_dev *dev = lending_vm_device(host, m->gpu_name);
    struct gpu_drv *gpu = dev != NULL ? gpu_of(dev) : NULL;
    struct kaddr buffer = k_alloc(kernel, 0, 2 * m->transfer_bytes, K_PAGE_BYTES);
    const uint64_t left = payload_mark(m->stream, 0),
                   later = payload_mark(m->stream, m->transfer_bytes);
    struct payload_difference is;
    int error = gpu == NULL ? -ENODEV : buffer.v == 0 ? -ENOMEM : 0;
    for (unsigned i = 0; error == 0 && i < PLACES;
         i++) { /* a driver gives out the same each time */
        uint64_t offset;
        error = gpu_alloc(gpu, m->transfer_bytes, &offset);
        if (!first && error == 0 && offset != m->offset[i])
            error = -EBUSY;
        m->offset[i] = offset;
    }
    if (error != 0 || first)
        return error != 0 ? error : there_and_back(m, kernel, gpu, buffer, 0, left, &m->worked);
    error = copy(m, kernel, gpu, buffer, m->offset[0], false);
    m->kept = error == 0 && payload_check(kernel, buffer, left, m->transfer_bytes, &is);
    m->on_ps = k_now_ps(kernel);
    return error != 0 ? error : there_and_back(m, kernel, gpu, buffer, 1, later, &m->resumed);
}

static void first_body(void *arg)
{
    struct migration *m = arg;
    m->error = work(m, m->from, true);
    m->off_ps = k_now_ps(m->from->kernel);
    m->done = true;
}

static void second_body(void *arg)
{
    struct migration *m = arg;
    m->error = work(m, m->to, false);
    m->done = true;
}

static void plug_body(void *arg)
{
    struct migration *m = arg;
    lending_vm_arrive(m->to, m->gpu_name);
    m->done = true;
}

/* ---- The administrator ----------------------------------------------------------------------- */

/* A thread of another kernel, to its end. */
static bool step(struct migration *m, struct kernel *kernel, k_thread_fn *body)
{
    m->done = false;
    m->error = 0;
    k_thread_new(kernel, "migration", 0, body, m);
    while (!m->done)
        k_sleep(m->from->host_kernel, STEP_PS);
    if (m->error != 0)
        program_fail(m->program, "the guest's copies: %s", strerror(-m->error));
    return m->error == 0;
}

static void migration_body(void *arg)
{
    struct migration *m = arg;
    if (step(m, m->from->kernel, first_body)) {
        lending_vm_leave(m->from);
        if (step(m, m->to->host_kernel, plug_body))
            step(m, m->to->kernel, second_body);
    }
    if (!m->worked)
        program_fail(m->program, "copies before the migration did not arrive");
    program_finish(m->program);
}

static void migration_start(struct program *program)
{
    struct migration *m = program->state;
    m->stream = program_new_stream(program);
    program->finite = true;
    k_thread_new(m->from->host_kernel, "migration", 0, migration_body, m);
}

static void migration_record(struct program *program, sim_time duration_ps)
{
    const struct migration *m = program->state;
    (void)duration_ps;
    program_metric(program, "device_kept", "1", m->kept);
    program_metric(program, "guest_io_resumed", "1", m->resumed);
    program_metric(program, "downtime_ms", "ms",
                   (double)(m->on_ps - m->off_ps) / (double)SIM_PS_PER_MS);
}

const struct program_ops program_cold_migration_ops = {
    .type = "cold_migration",
    .help = "a guest with a borrowed GPU is shut down and started on another host",
    .state_bytes = sizeof(struct migration),
    .params = migration_params,
    .records = migration_records,
    .check = migration_check,
    .start = migration_start,
    .record = migration_record,
};
