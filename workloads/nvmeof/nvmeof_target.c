/*
 * A target of NVMe over Fabrics by RDMA, in the manner of SPDK's: a process that has a controller
 * and a CPU to itself, and exports namespace 1 to the initiators of other programs (fio's engine
 * spdk with the same `device`). It sleeps while nobody is connected, and polls without a pause
 * then.
 */
#include "workloads/nvmeof/nvmeof_target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "models/nvme/nvme.h"
#include "workloads/rdma/rdma_objects.h"

#define LOOK_PS (2 * SIM_PS_PER_US)

struct nvmeof_service {
    /* parameters */
    const char *host_name, *device, *adapter;
    uint32_t cpu, queue_entries, queues, in_capsule_bytes, mtu_bytes;
    bool offload;
    /* running */
    struct program *program;
    struct lending_host *host;
    struct model *model, *adapter_model; /* NULL: a mistake */
    unsigned on_cpu;
    struct nvme_local *nvme;
    struct nvmeof_target *target;
    struct nvmeof_target_stats before;
    bool ready, over;
    /* a hello under way */
    bool asked, answered;
    struct nvmeof_hello hello, answer;
    int error;
};

static const struct param_desc target_params[] = {
    PARAM_TEXT("on", struct nvmeof_service, host_name, "target",
               "host of the group `lending`, without the kernel's NVMe driver"),
    PARAM_TEXT("device", struct nvmeof_service, device, "ssd",
               "a nvme.controller of the host; initiators name it, too"),
    PARAM_TEXT("adapter", struct nvmeof_service, adapter, "", "a rdma.adapter of the host"),
    PARAM("cpu", PARAM_U32, struct nvmeof_service, cpu, 1, 0, 255, PROV_NONE, "",
          "that polls; the next one if programs before it have taken it"),
    PARAM(
        "queue_entries", PARAM_U32, struct nvmeof_service, queue_entries, 128, 2, 256, PROV_NONE,
        "",
        "of a queue at most, and as the controller's; each with a buffer of the largest transfer"),
    PARAM("queues", PARAM_U32, struct nvmeof_service, queues, 64, 2, 1024, PROV_NONE, "",
          "connections at most, those of administration included"),
    PARAM("in_capsule_bytes", PARAM_BYTES, struct nvmeof_service, in_capsule_bytes, 4096, 0, 8192,
          PROV_PUBLISHED, "docs/sources.md#rdma",
          "writes of up to so many bytes lie in their capsule; a multiple of 16"),
    PARAM("mtu_bytes", PARAM_U32, struct nvmeof_service, mtu_bytes, 4096, 256, 4096, PROV_NONE, "",
          "path MTU at most: 256, 512, 1024, 2048 or 4096"),
    PARAM(
        "offload", PARAM_BOOL, struct nvmeof_service, offload, 0, 0, 1, PROV_NONE, "",
        "the adapter serves reads by itself; a connection takes two queue pairs of the controller"),
    { .type = PARAM_END },
};

static const struct record_desc target_records[] = {
    { ".commands", RECORD_METRIC, "1", "capsules" },
    { ".in_capsule", RECORD_METRIC, "1", "writes with their data in the capsule" },
    { ".failed", RECORD_METRIC, "1", "responses with another status than success" },
    { ".idle_round_ratio", RECORD_METRIC, "1", "rounds of the loop that found nothing" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* Of the controller, for I/O; 0: a virtual function has those that it is given. */
static unsigned controllers_queues(const struct nvmeof_service *service)
{
    struct function_name f;
    const bool found = function_find(service->program->workload->world, service->device, &f);
    return found && f.vf == FUNCTION_PHYSICAL ? nvme_queue_pairs(service->model) - 1 : 0;
}

static void check_adapter(struct nvmeof_service *service, struct sim_error_list *errors)
{
    static const struct rdma_objects own = { .completion_queues = 1, .protection_domains = 1 };
    struct program *program = service->program;
    service->adapter_model = program_device(program, "adapter", service->host, service->adapter,
                                            &rdma_ops, errors);
    if (service->adapter_model == NULL)
        return;
    program_take_rdma(program, "adapter", "", service->adapter_model, service->adapter, &own, &own,
                      errors);
    if (service->offload && rdma_inline_bytes(service->adapter_model) < NVMEOF_RESPONSE_BYTES)
        program_mistake(program, "offload", errors,
                        "an adapter with inline_bytes of at least 16: it tells the queue's head in"
                        " the responses that the processor posts",
                        NULL);
}

static void check_device(struct nvmeof_service *service, struct sim_error_list *errors)
{
    struct program *program = service->program;
    service->model = program_device(program, "device", service->host, service->device, &nvme_ops,
                                    errors);
    if (service->model == NULL)
        return;
    program_take_controller(program, service->model, service->device, errors);
    if (service->offload && controllers_queues(service) == 1)
        program_mistake(program, "offload", errors,
                        "a controller with queue_pairs of at least 3: one for administration, and "
                        "two for each connection",
                        NULL);
}

static void target_check(struct program *program, struct sim_error_list *errors)
{
    struct nvmeof_service *service = program->state;
    service->program = program;
    if (!program->enabled)
        return; /* the hosts of this point may be others */
    service->host = program_lending_host(program, "on", service->host_name, errors);
    if (service->host == NULL)
        return;
    check_device(service, errors);
    check_adapter(service, errors);
    if (service->host->params.nvme_driver)
        program_mistake(program, "on", errors,
                        "a host with nvme_driver = false: else the kernel has its controllers",
                        NULL);
    if ((service->mtu_bytes & (service->mtu_bytes - 1)) != 0)
        program_mistake(program, "mtu_bytes", errors, "256, 512, 1024, 2048 or 4096", NULL);
    if (service->in_capsule_bytes % 16 != 0)
        program_mistake(program, "in_capsule_bytes", errors, "a multiple of 16", NULL);
    service->on_cpu = service->cpu +
                      (unsigned)program_take(program, service->host, "polling CPU", 1);
    program_check_cpus(program, "cpu", service->host, service->on_cpu, 1, errors);
}

/* ---- Initiators find it ---------------------------------------------------------------------- */

struct nvmeof_service *nvmeof_service_find(const struct program *program, const char *device)
{
    const struct program *other;
    for (unsigned i = 0; (other = program_earlier(program, i)) != NULL; i++) {
        struct nvmeof_service *service = other->state;
        if (other->ops == &program_nvmeof_target_ops && strcmp(service->device, device) == 0)
            return service;
    }
    return NULL;
}

struct model *nvmeof_service_model(const struct nvmeof_service *service)
{
    return service->model;
}

const char *nvmeof_service_subsystem(const struct nvmeof_service *service)
{
    return service->device;
}

const struct lending_host *nvmeof_service_host(const struct nvmeof_service *service)
{
    return service->host;
}

unsigned nvmeof_service_queues(const struct nvmeof_service *service)
{
    return service->model != NULL ? controllers_queues(service) / (service->offload ? 2 : 1) : 0;
}

/* Of the initiators that begin with the programs: what those before this one have is taken. */
static uint64_t taken(struct program *program, const struct nvmeof_service *service,
                      const char *what, unsigned n, bool first)
{
    return n + (first ? program_take(program, service, what, n) : 0);
}

void nvmeof_service_take(struct program *program, const char *key,
                         const struct nvmeof_service *service, unsigned n_queues, bool first,
                         struct sim_error_list *errors)
{
    const unsigned have = nvmeof_service_queues(service);
    const uint64_t queues = taken(program, service, "I/O queue", n_queues, first);
    const uint64_t connections = taken(program, service, "connection", n_queues + 1, first);
    const struct rdma_objects objects = { .queue_pairs = n_queues + 1,
                                          .regions = n_queues * (service->offload ? 2 : 1) + 1 };
    const struct rdma_objects none = { 0 };
    char expected[288];
    if (have != 0 && queues > have) {
        snprintf(expected, sizeof(expected),
                 "fewer jobs, or a controller %.60s with %llu queue pairs for I/O; it has %u (its "
                 "queue_pairs, less one)%s",
                 service->device, (unsigned long long)queues * (service->offload ? 2 : 1),
                 controllers_queues(service),
                 service->offload ? ", and each connection takes two" : "");
        program_mistake(program, key, errors, expected, NULL);
    } else if (connections > service->queues) {
        snprintf(expected, sizeof(expected),
                 "fewer jobs, or a target %.60s for %llu connections, with one of administration "
                 "for each initiator; its `queues` is %u",
                 service->program->name, (unsigned long long)connections, service->queues);
        program_mistake(program, key, errors, expected, NULL);
    } else if (service->adapter_model != NULL) {
        program_take_rdma(program, key, "fewer jobs, or ", service->adapter_model, service->adapter,
                          first ? &objects : &none, &objects, errors);
    }
}

const char *nvmeof_adapter(const struct program *program, struct lending_host *host)
{
    const char *found = NULL;
    for (const char *const *name = lending_used_names(host); *name != NULL; name++) {
        const struct model *model = world_device(program->workload->world, *name);
        if (model == NULL || model->ops != &rdma_ops)
            continue;
        if (found != NULL)
            return NULL;
        found = *name;
    }
    return found;
}

int nvmeof_service_exchange(void *context, const struct nvmeof_hello *hello,
                            struct nvmeof_hello *answer)
{
    const struct nvmeof_caller *caller = context;
    struct nvmeof_service *service = caller->service;
    while ((!service->ready || service->asked) && !service->over)
        k_sleep(caller->kernel, LOOK_PS);
    if (service->over)
        return -ECONNREFUSED;
    service->hello = *hello;
    service->answered = false;
    service->asked = true;
    while (!service->answered && !service->over)
        k_sleep(caller->kernel, LOOK_PS);
    const int error = service->answered ? service->error : -ECONNREFUSED;
    *answer = service->answer;
    service->asked = false;
    return error;
}

struct rdma_drv *nvmeof_adapter_up(const struct program *program, struct lending_host *host,
                                   const char *adapter)
{
    struct k_pci_dev *dev = lending_device(host, adapter);
    struct rdma_drv *rdma = dev != NULL ? rdma_drv_of(dev) : NULL;
    const uint16_t lid = rdma_lid(program->workload->world, adapter);
    return rdma != NULL && rdma_drv_set_lid(rdma, lid) == 0 ? rdma : NULL;
}

/* ---- Its thread ------------------------------------------------------------------------------ */

static void answer(struct nvmeof_service *service)
{
    if (!service->asked || service->answered)
        return;
    service->error = nvmeof_target_accept(service->target, &service->hello, &service->answer);
    service->answered = true;
}

static int open_target(struct nvmeof_service *service)
{
    struct k_pci_dev *dev = lending_device(service->host, service->device);
    struct nvme_local_params nvme = nvme_local_params_default;
    struct nvmeof_target_params params = { .subsystem = service->device,
                                           .entries_max = (uint16_t)service->queue_entries,
                                           .queues_max = (uint16_t)service->queues,
                                           .in_capsule_bytes = service->in_capsule_bytes,
                                           .mtu_bytes = service->mtu_bytes,
                                           .offload = service->offload };
    params.rdma = nvmeof_adapter_up(service->program, service->host, service->adapter);
    if (dev == NULL || params.rdma == NULL)
        return -ENODEV;
    params.mtu_bytes = SIM_MIN(params.mtu_bytes, rdma_drv_limits(params.rdma).mtu_bytes);
    nvme.n_queues = 255; /* as many as there are */
    nvme.entries = (uint16_t)(service->queue_entries + 1);
    const int error = nvme_local_open(dev, &nvme, &service->nvme);
    if (error != 0)
        return error;
    params.nvme = service->nvme;
    return nvmeof_target_new(&params, &service->target);
}

static void close_target(struct nvmeof_service *service)
{
    struct nvmeof_target *target = service->target;
    struct nvme_local *nvme = service->nvme;
    service->over = true;
    service->target = NULL;
    service->nvme = NULL;
    if (target != NULL)
        nvmeof_target_free(target);
    if (nvme != NULL)
        nvme_local_close(nvme);
}

/* At the end initiators disconnect. One of which nothing has come for so long has gone: a
 * connection is given up when the last retry has had its time. */
static uint64_t bye_ps(void)
{
    const struct rdma_drv_connection *c = &rdma_drv_connection_default;
    return (c->retries + UINT64_C(1)) * (RDMA_TIMEOUT_UNIT_NS * SIM_PS_PER_NS << c->timeout);
}

static void target_body(void *arg)
{
    struct nvmeof_service *service = arg;
    struct kernel *kernel = service->host->kernel;
    const int error = open_target(service);
    if (error != 0)
        program_fail(service->program, "%s: %s", service->device, strerror(-error));
    service->ready = error == 0;
    uint64_t until_ps = UINT64_MAX;
    while (error == 0 && k_now_ps(kernel) < until_ps) {
        unsigned n = 0;
        answer(service);
        if (nvmeof_target_n_queues(service->target) != 0)
            n = nvmeof_target_poll(service->target);
        else if (!program_ending(service->program))
            k_sleep(kernel, LOOK_PS);
        else
            break;
        if ((until_ps == UINT64_MAX || n != 0) && program_ending(service->program))
            until_ps = k_now_ps(kernel) + bye_ps();
    }
    close_target(service);
}

static void target_start(struct program *program)
{
    struct nvmeof_service *service = program->state;
    program_lending_uses_cpu(program, service->host, service->on_cpu);
    k_thread_new(service->host->kernel, "nvmeof_target", (int)service->on_cpu, target_body,
                 service);
}

static void target_measure(struct program *program)
{
    struct nvmeof_service *service = program->state;
    if (service->target != NULL)
        service->before = nvmeof_target_stats(service->target);
}

static void target_record(struct program *program, sim_time duration_ps)
{
    struct nvmeof_service *service = program->state;
    struct nvmeof_target_stats after = service->before;
    const struct nvmeof_target_stats *before = &service->before;
    (void)duration_ps;
    if (service->target != NULL)
        after = nvmeof_target_stats(service->target);
    const double rounds = (double)(after.rounds - before->rounds);
    program_metric(program, "commands", "1", (double)(after.commands - before->commands));
    program_metric(program, "in_capsule", "1", (double)(after.in_capsule - before->in_capsule));
    program_metric(program, "failed", "1", (double)(after.failed - before->failed));
    program_metric(program, "idle_round_ratio", "1",
                   rounds > 0 ? (double)(after.idle_rounds - before->idle_rounds) / rounds : 0);
}

static void target_release(struct program *program)
{
    struct nvmeof_service *service = program->state;
    nvmeof_target_abandon(service->target);
    nvme_local_abandon(service->nvme);
}

const struct program_ops program_nvmeof_target_ops = {
    .type = "nvmeof_target",
    .help = "a target of NVMe over Fabrics by RDMA, as SPDK's",
    .steady = true,
    .state_bytes = sizeof(struct nvmeof_service),
    .params = target_params,
    .records = target_records,
    .check = target_check,
    .start = target_start,
    .measure = target_measure,
    .record = target_record,
    .release = target_release,
};
