/*
 * nvme_manager: the manager of an NVMe controller that clients on any hosts share (logic/dnvme). It
 * takes the device before they come, and gives it back when they have left.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "models/nvme/nvme.h"
#include "workloads/dnvme/nvme_site.h"

#define LOOK_PS     (20 * SIM_PS_PER_US)
#define CLIENTS_MAX 256u
/* Numbers of the segments of a manager's clients, 4096 for each; those below are other programs'. A
 * host may have clients of several managers. */
#define CLIENT_SEGMENTS  0x1000u
#define MANAGER_SEGMENTS (CLIENTS_MAX * CLIENT_SEGMENTS)

struct nvme_manager {
    /* parameters */
    const char *host_name, *device_name;
    sim_time lease_ps, poll_ps;
    uint32_t cpu, client_queues, weight_high, weight_medium, weight_low;
    int arbitration;
    /* running */
    struct program *program;
    struct lending_host *host;
    const struct lending_host *lender;
    struct model *device;
    struct dnvme_manager *manager;
    struct dnvme_manager_stats stats; /* the last ones */
    unsigned n_clients, n_left, n_preparing;
    bool ready, failed, ended;
};

enum { ROUND_ROBIN, WEIGHTED };
static const char *const arbitration_names[] = { "round_robin", "weighted", NULL };

static const struct param_desc nvme_manager_params[] = {
    PARAM_TEXT("on", struct nvme_manager, host_name, "lender",
               "host of the group `lending`; any, that of the device or another"),
    PARAM_TEXT("device", struct nvme_manager, device_name, "ssd",
               "an nvme.controller that a host lends"),
    PARAM("lease_ms", PARAM_TIME, struct nvme_manager, lease_ps, 20, 0.1, 10000, PROV_NONE, "",
          "a client that has not renewed its lease for so long loses its queues"),
    PARAM("poll_us", PARAM_TIME, struct nvme_manager, poll_ps, 20, 1, 1000, PROV_NONE, "",
          "between two looks at the clients' mailboxes; a 32nd of the lease at most"),
    PARAM("cpu", PARAM_U32, struct nvme_manager, cpu, 0, 0, 255, PROV_NONE, "", "that it runs on"),
    PARAM("client_queues", PARAM_U32, struct nvme_manager, client_queues, 8, 1, 255, PROV_NONE, "",
          "queue pairs that a client may have"),
    PARAM_ONE_OF("arbitration", struct nvme_manager, arbitration, ROUND_ROBIN, arbitration_names,
                 PROV_NONE, "",
                 "among queues: in turn, or urgent ones first and then by the weights of classes"),
    PARAM("weight_high", PARAM_U32, struct nvme_manager, weight_high, 1, 1, 256, PROV_NONE, "",
          "with arbitration = weighted: commands in turn of queues of high priority"),
    PARAM("weight_medium", PARAM_U32, struct nvme_manager, weight_medium, 1, 1, 256, PROV_NONE, "",
          "of medium priority"),
    PARAM("weight_low", PARAM_U32, struct nvme_manager, weight_low, 1, 1, 256, PROV_NONE, "",
          "of low priority"),
    { .type = PARAM_END },
};

static const struct record_desc nvme_manager_records[] = {
    { ".requests", RECORD_METRIC, "1", "of clients, served" },
    { ".requests_refused", RECORD_METRIC, "1", "that were not the client's to make" },
    { ".leases_expired", RECORD_METRIC, "1", "of clients that were silent" },
    { ".queues_reclaimed", RECORD_METRIC, "1", "queue pairs of clients that had not deleted them" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void nvme_manager_check(struct program *program, struct sim_error_list *errors)
{
    struct nvme_manager *m = program->state;
    m->program = program;
    if (!program->enabled) /* other variants of the scenario may not even lend the device */
        return;
    m->host = program_member(program, "on", m->host_name, true, errors);
    if (m->host == NULL)
        return;
    m->lender = lending_lender(program->lending, m->device_name);
    m->device = world_device(program->workload->world, m->device_name);
    if (m->lender == NULL || m->device == NULL || m->device->ops != &nvme_ops ||
        lending_borrower(program->lending, m->device_name) != NULL)
        program_mistake(program, "device", errors,
                        "an nvme.controller that a host lends and that no host borrows", NULL);
    else
        program_take_controller(program, m->device, m->device_name, errors);
    if (m->lease_ps < 32 * m->poll_ps)
        program_mistake(program, "poll_us", errors, "at most a 32nd of lease_ms", NULL);
    program_check_cpus(program, "cpu", m->host, m->cpu, 1, errors);
}

/* ---- Running --------------------------------------------------------------------------------- */

static struct sisci_device_name name_of(const struct nvme_manager *m)
{
    struct sisci_device_name name = { .host = m->lender->number };
    world_function_id(m->device, 0, &name.id);
    return name;
}

static uint32_t segment_of(const struct nvme_manager *m)
{
    return 1 + program_number(m->program);
}

static void manage(struct nvme_manager *m, struct sisci_process *process)
{
    struct dnvme_manager_params params = dnvme_manager_params_default;
    struct lend_error error = { 0 };
    params.segment = segment_of(m);
    params.n_clients = CLIENTS_MAX;
    params.client_queues = m->client_queues;
    params.lease_ps = m->lease_ps;
    params.poll_ps = m->poll_ps;
    params.cpu = (int)m->cpu;
    params.weighted = m->arbitration == WEIGHTED;
    params.weight[0] = m->weight_high;
    params.weight[1] = m->weight_medium;
    params.weight[2] = m->weight_low;
    const int status = dnvme_manager_new(m->host->kernel, process, name_of(m), &params, &m->manager,
                                         &error);
    if (status != 0) {
        m->failed = true;
        program_fail(m->program, "%s: %s (%d)", m->device_name, error.text, status);
        return;
    }
    m->ready = true;
    while (!m->host->dead && (!program_ending(m->program) || m->n_left < m->n_clients))
        k_sleep(m->host->kernel, LOOK_PS);
    m->program->closing = true; /* the controller waits for commands whose link is down */
    m->stats = dnvme_manager_stats(m->manager);
    m->ready = false;
    m->ended = true;
    if (m->host->dead)
        dnvme_manager_kill(m->manager);
    else
        dnvme_manager_free(m->manager);
    m->manager = NULL;
}

static void body(void *arg)
{
    struct nvme_manager *m = arg;
    struct sisci_process *process;
    struct lend_error error = { 0 };
    lend_discover(m->host->lend);
    if (sisci_open(m->host->sisci, &process, &error) != SISCI_OK) {
        m->failed = true;
        program_fail(m->program, "%s", error.text);
        return;
    }
    manage(m, process);
    if (!m->host->dead)
        sisci_close(process);
    m->program->closing = false;
}

static void nvme_manager_start(struct program *program)
{
    struct nvme_manager *m = program->state;
    lending_borrows_more(program->lending);
    program_lending_uses_cpu(program, m->host, m->cpu);
    k_thread_new(m->host->kernel, program->name, (int)m->cpu, body, m);
}

static void nvme_manager_record(struct program *program, sim_time duration_ps)
{
    const struct nvme_manager *m = program->state;
    const struct dnvme_manager_stats stats = nvme_manager_stats(m);
    (void)duration_ps;
    program_metric(program, "requests", "1", (double)stats.requests);
    program_metric(program, "requests_refused", "1", (double)stats.refused);
    program_metric(program, "leases_expired", "1", (double)stats.expired);
    program_metric(program, "queues_reclaimed", "1", (double)stats.reclaimed);
}

const struct program_ops program_nvme_manager_ops = {
    .type = "nvme_manager",
    .help = "manages an NVMe controller that clients on several hosts share",
    .state_bytes = sizeof(struct nvme_manager),
    .params = nvme_manager_params,
    .records = nvme_manager_records,
    .check = nvme_manager_check,
    .start = nvme_manager_start,
    .record = nvme_manager_record,
};

/* ---- For clients ----------------------------------------------------------------------------- */

struct nvme_manager *nvme_manager_of(struct program *program, const char *device,
                                     struct sim_error_list *errors)
{
    const struct program *earlier;
    for (unsigned i = 0; (earlier = program_earlier(program, i)) != NULL; i++) {
        struct nvme_manager *m = earlier->state;
        if (earlier->ops == &program_nvme_manager_ops && strcmp(m->device_name, device) == 0)
            return m->device != NULL ? m : NULL;
    }
    if (!program->enabled) /* the same switch may have left out both */
        return NULL;
    program_mistake(program, "device", errors,
                    "an nvme.controller that a program nvme_manager before this one manages", NULL);
    return NULL;
}

struct model *nvme_manager_device(const struct nvme_manager *m)
{
    return m->device;
}

struct lending_host *nvme_manager_host(const struct nvme_manager *m)
{
    return m->host;
}

void nvme_manager_take_pairs(struct program *program, const char *key, const struct nvme_manager *m,
                             unsigned n, struct sim_error_list *errors)
{
    const unsigned have = nvme_queue_pairs(m->device) - 1;
    const uint64_t taken = program_take(program, m->device, "queue pair", n);
    char expected[288];
    if (taken + n <= have)
        return;
    snprintf(expected, sizeof(expected),
             "at most the %u queue pairs for I/O of %.60s (its queue_pairs, less that of "
             "administration), one for each client and path: this program needs %u, those before "
             "it have %u",
             have, m->device_name, n, (unsigned)taken);
    program_mistake(program, key, errors, expected, NULL);
}

void nvme_manager_check_depth(struct program *program, const struct nvme_manager *m, uint32_t depth,
                              struct sim_error_list *errors)
{
    char expected[128];
    if (depth < nvme_queue_entries(m->device))
        return;
    snprintf(expected, sizeof(expected),
             "fewer than the %u entries of a queue of %.60s (its queue_entries)",
             nvme_queue_entries(m->device), m->device_name);
    program_mistake(program, "queue_depth", errors, expected, NULL);
}

unsigned nvme_manager_expect(struct nvme_manager *m, unsigned n_clients)
{
    const unsigned first = m->n_clients;
    m->n_clients += n_clients;
    return first;
}

bool nvme_manager_is_weighted(const struct nvme_manager *m)
{
    return m->arbitration == WEIGHTED;
}

void nvme_manager_prepare(struct nvme_manager *m, int n_clients)
{
    m->n_preparing += (unsigned)n_clients;
}

bool nvme_manager_is_preparing(const struct nvme_manager *m)
{
    return m->n_preparing != 0;
}

void nvme_manager_left(struct nvme_manager *m)
{
    m->n_left++;
}

struct dnvme_manager_stats nvme_manager_stats(const struct nvme_manager *m)
{
    return m->manager != NULL ? dnvme_manager_stats(m->manager) : m->stats;
}

int nvme_site_open(struct nvme_site *site, struct lending_host *host, struct nvme_manager *m,
                   unsigned number, unsigned n_paths, struct lend_error *error)
{
    struct dnvme_client_params params = {
        .manager = m->host->number,
        .segment = segment_of(m),
        .number = number,
        .first_segment = (1 + program_number(m->program)) * MANAGER_SEGMENTS +
                         number * CLIENT_SEGMENTS,
        .n_paths = n_paths,
        .adapter = { SISCI_ANY, SISCI_ANY },
        .timeout_ps = 100 * K_MS,
        .cpu = K_CPU_ANY,
    };
    *site = (struct nvme_site){ .host = host, .manager = m };
    for (unsigned i = 0; n_paths > 1 && i < n_paths; i++)
        params.adapter[i] = i;
    while (!m->ready && !m->failed && !m->ended)
        k_sleep(host->kernel, LOOK_PS);
    if (!m->ready)
        return -ENODEV;
    lend_discover(host->lend);
    if (sisci_open(host->sisci, &site->process, error) != SISCI_OK)
        return error->code;
    return dnvme_client_new(host->kernel, site->process, name_of(m), &params, &site->client, error);
}

void nvme_site_close(struct nvme_site *site)
{
    if (site->client != NULL)
        dnvme_client_free(site->client);
    if (site->process != NULL)
        sisci_close(site->process);
    site->client = NULL;
    site->process = NULL;
}
