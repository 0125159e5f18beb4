/* The workload example.poll: gives the device a page of memory, lets it read for a while, and
 * records how long a read took. */
#include "poller.h"
#include "workloads/base/workload.h"

#include <nudma.h>

struct poll {
    const char *device_name, *host_name; /* parameters */
    uint32_t memory_socket;
    struct model *device;
    struct host *host;
};

static const struct param_desc poll_params[] = {
    PARAM_TEXT("device", struct poll, device_name, "poller", "an example.poller"),
    PARAM_TEXT("host", struct poll, host_name, "server", "the host whose memory it reads"),
    PARAM("memory_socket", PARAM_U32, struct poll, memory_socket, 0, 0, 7, PROV_NONE, "",
          "socket whose memory it is"),
    { .type = PARAM_END },
};

static const struct record_desc poll_records[] = {
    { "poll_latency_ns", RECORD_METRIC, "ns", "of a read, mean" },
    { .name = NULL },
};

static void poll_check(struct workload *workload, struct sim_error_list *errors)
{
    struct poll *poll = workload->state;

    poll->device = world_device(workload->world, poll->device_name);
    poll->host = world_host(workload->world, poll->host_name);
    if (poll->device == NULL || poll->device->ops != &poller_ops)
        workload_mistake(workload, "device", errors, "an example.poller",
                         world_device_names(workload->world));
    if (poll->host == NULL)
        workload_mistake(workload, "host", errors, "a host", world_host_names(workload->world));
}

static void poll_run(struct workload *workload)
{
    struct poll *poll = workload->state;
    const uint16_t id = poller_id(poll->device);
    bool never = false, stopped = false;
    struct hpa hpa;
    struct iova iova;

    if (host_dma_alloc(poll->host, id, poll->memory_socket, PAGE_BYTES, PAGE_BYTES, &hpa, &iova)) {
        sim_fail(workload->sim, "no memory on socket %u", poll->memory_socket);
        return;
    }
    poller_start(poll->device, iova);
    workload_run_until(workload, &never, sim_now(workload->sim) + workload->measure.warmup_ps);
    world_stats_clear(workload->world);
    const sim_time begin_ps = sim_now(workload->sim);
    workload_run_until(workload, &never, begin_ps + workload->measure.duration_ps);
    run_result_metric(workload->result, "poll_latency_ns", "ns", poller_latency_ns(poll->device));
    workload_record_world(workload, poll->host, sim_now(workload->sim) - begin_ps);
    poller_stop(poll->device, &stopped);
    workload_run_until(workload, &stopped, SIM_TIME_MAX);
    host_dma_free(poll->host, id, PAGE_BYTES, PAGE_BYTES, hpa, iova);
}

static const struct workload_ops poll_ops = {
    .type = "example.poll",
    .help = "a device polls host memory",
    .state_bytes = sizeof(struct poll),
    .params = poll_params,
    .records = poll_records,
    .check = poll_check,
    .run = poll_run,
};
NUDMA_WORKLOAD(poll_ops);
