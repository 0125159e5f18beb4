/*
 * nvme_multicast: hosts of a cluster subscribe to a multicast group with a buffer each, and one of
 * them has an NVMe controller write its identification to the group's address: one command, one
 * write of 4 KiB by the controller, and a copy of it at every subscriber (SmartIO, 6.5 and 7.4.2).
 * Each copy is compared with what the controller says of itself in a command of its own.
 */
#include <stdio.h>
#include <string.h>

#include "logic/nvme/nvme_user.h"
#include "logic/sisci/sisci.h"
#include "models/nvme/nvme.h"
#include "models/pcie/link/port.h"
#include "workloads/programs/program.h"

#define SEGMENT         0x6000u /* and the program's number */
#define GROUP_BYTES     ((uint64_t)NVME_IDENTIFY_BYTES)
#define LOOK_PS         SIM_PS_PER_US
#define ARRIVAL_PS      (20 * SIM_PS_PER_US) /* after the completion, the last copy */
#define TIMEOUT_PS      (1000 * SIM_PS_PER_MS)
#define ENTRIES         16u /* of the admin queues */
#define SUBSCRIBERS_MAX 256u
#define POISON          0xa5

struct nvme_multicast;

struct subscriber {
    struct nvme_multicast *all;
    struct lending_host *host;
    bool ready, good, done;
};

struct nvme_multicast {
    /* parameters */
    const char *host_name, *device_name;
    uint32_t n_subscribers, group_number;
    /* running */
    struct program *program;
    struct lending_host *host;
    const struct lending_host *lender;
    struct model *device;
    struct subscriber subscriber[SUBSCRIBERS_MAX];
    struct sisci_group group;
    bool group_there, written, failed;
    uint8_t expected[NVME_IDENTIFY_BYTES];
    /* measured */
    uint64_t link_bytes, cables_used, device_bytes;
};

static const struct param_desc nvme_multicast_params[] = {
    PARAM_TEXT("on", struct nvme_multicast, host_name, "borrower",
               "the host that gives the command; the first subscriber"),
    PARAM_TEXT("device", struct nvme_multicast, device_name, "ssd",
               "an nvme.controller that a host lends and nobody borrows"),
    PARAM("subscribers", PARAM_U32, struct nvme_multicast, n_subscribers, 1, 1, SUBSCRIBERS_MAX,
          PROV_NONE, "",
          "hosts: `on` and others in the order of the group `lending`, but for the lender"),
    PARAM("group", PARAM_U32, struct nvme_multicast, group_number, 1, 0, 63, PROV_NONE, "",
          "number of the multicast group"),
    { .type = PARAM_END },
};

static const struct record_desc nvme_multicast_records[] = {
    { "copies_received", RECORD_METRIC, "1", "subscribers that have all 4 KiB, as they should be" },
    { "link_bytes", RECORD_METRIC, "bytes",
      "that all cables of the fabric carried, both ways, from the command to the last copy" },
    { "cables_used", RECORD_METRIC, "1", "cables of the fabric that carried a copy" },
    { "device_link_bytes", RECORD_METRIC, "bytes", "that the controller sent meanwhile" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void nvme_multicast_check(struct program *program, struct sim_error_list *errors)
{
    struct nvme_multicast *all = program->state;
    all->program = program;
    all->host = program_member(program, "on", all->host_name, true, errors);
    if (all->host == NULL)
        return;
    all->lender = lending_lender(program->lending, all->device_name);
    all->device = world_device(program->workload->world, all->device_name);
    if (all->lender == NULL || all->device == NULL || all->device->ops != &nvme_ops ||
        lending_borrower(program->lending, all->device_name) != NULL) {
        program_mistake(program, "device", errors,
                        "an nvme.controller that a host lends and that no host borrows", NULL);
        return;
    }
    program_take_controller(program, all->device, all->device_name, errors);
    if (all->host == all->lender)
        program_mistake(program, "on", errors, "another host than the device's", NULL);
    unsigned n = 0;
    all->subscriber[n++].host = all->host;
    for (unsigned i = 0; i < lending_n_hosts(program->lending) && n < SUBSCRIBERS_MAX; i++) {
        struct lending_host *host = lending_host_at(program->lending, i);
        if (host != all->host && host != all->lender && host->takes_part && host->vm == NULL)
            all->subscriber[n++].host = host;
    }
    if (all->n_subscribers > n)
        program_mistake(program, "subscribers", errors,
                        "at most as many as hosts take part in the cluster, but for the lender",
                        NULL);
}

static bool bad(struct nvme_multicast *all, const struct lending_host *host,
                enum sisci_error result, const struct lend_error *error)
{
    if (result == SISCI_OK)
        return false;
    all->failed = true;
    program_fail(all->program, "%s: %s (%s)", host->name, error->text, sisci_error_name(result));
    return true;
}

/* ---- Subscribers ----------------------------------------------------------------------------- */

static void subscribe(struct subscriber *s, struct sisci_process *process)
{
    struct nvme_multicast *all = s->all;
    struct kernel *kernel = s->host->kernel;
    struct sisci_segment *segment;
    struct lend_error error = { 0 };
    uint8_t got[NVME_IDENTIFY_BYTES];
    if (bad(all, s->host,
            sisci_segment_create(process, SEGMENT + program_number(all->program), GROUP_BYTES,
                                 K_NODE_LOCAL, NULL, NULL, &segment, &error),
            &error))
        return;
    memset(got, POISON, sizeof(got));
    k_store(kernel, sisci_segment_memory(segment), got, sizeof(got));
    while (!all->group_there && !all->failed)
        k_sleep(kernel, LOOK_PS);
    if (all->failed ||
        bad(all, s->host, sisci_group_subscribe(segment, all->group, SISCI_ANY, &error), &error))
        return;
    s->ready = true;
    while (!all->written && !all->failed)
        k_sleep(kernel, LOOK_PS);
    k_load(kernel, sisci_segment_memory(segment), got, sizeof(got));
    s->good = all->written && memcmp(got, all->expected, sizeof(got)) == 0;
}

static void subscriber_body(void *arg)
{
    struct subscriber *s = arg;
    struct sisci_process *process;
    lend_discover(s->host->lend);
    sisci_open(s->host->sisci, &process, NULL);
    subscribe(s, process);
    sisci_close(process); /* unsubscribes */
    s->done = true;
}

/* ---- The controller -------------------------------------------------------------------------- */

/* Registers behind a map. */
static uint32_t reg_read32(void *context, uint64_t offset)
{
    return (uint32_t)sisci_read(context, offset, 4);
}

static uint64_t reg_read64(void *context, uint64_t offset)
{
    return sisci_read(context, offset, 8);
}

static void reg_write32(void *context, uint64_t offset, uint32_t value)
{
    sisci_write(context, offset, 4, value);
}

static void reg_write64(void *context, uint64_t offset, uint64_t value)
{
    sisci_write(context, offset, 8, value);
}

static const struct nvme_user_window_ops reg_ops = { reg_read32,  reg_read64, reg_write32,
                                                     reg_write64, NULL,       NULL };

struct user { /* of the controller, on the host that gives the command */
    struct sisci_device *device;
    struct sisci_remote *bar;
    struct sisci_map regs;
    struct sisci_segment *memory; /* admin queues, one page each, and a page for data */
    struct sisci_window window, group;
    struct nvme_user_controller controller;
};

static struct nvme_user_memory page_of(const struct user *u, unsigned page)
{
    return (struct nvme_user_memory){ .at = kaddr_add(sisci_segment_memory(u->memory),
                                                      (uint64_t)page * K_PAGE_BYTES),
                                      .bus = u->window.dma + (uint64_t)page * K_PAGE_BYTES };
}

static enum sisci_error take(struct nvme_multicast *all, struct user *u,
                             struct sisci_process *process, struct lend_error *error)
{
    struct sisci_device_name name = { .host = all->lender->number };
    world_function_id(all->device, 0, &name.id);
    enum sisci_error e = sisci_device_borrow(process, name, SISCI_EXCLUSIVE, NULL, NULL, &u->device,
                                             error);
    if (e == SISCI_OK)
        e = sisci_device_bar_connect(u->device, 0, SISCI_ANY, NULL, NULL, &u->bar, error);
    if (e == SISCI_OK)
        e = sisci_map(u->bar, 0, sisci_remote_bytes(u->bar), &u->regs, error);
    if (e == SISCI_OK)
        e = sisci_segment_create(process, SEGMENT + 0x1000u + program_number(all->program),
                                 3 * K_PAGE_BYTES, K_NODE_LOCAL, NULL, NULL, &u->memory, error);
    if (e == SISCI_OK)
        e = sisci_segment_map_for_device(u->memory, u->device, SISCI_ANY, 0, 3 * K_PAGE_BYTES,
                                         K_DMA_BOTH, &u->window, error);
    if (e == SISCI_OK)
        e = sisci_group_map_for_device(u->device, all->group, SISCI_ANY, &u->group, error);
    return e;
}

/* What the cables of the fabric have carried, or one port of a device has sent. */
static uint64_t fabric_bytes(struct nvme_multicast *all, uint64_t before[], unsigned room,
                             uint64_t *n_used)
{
    struct pcie_context *pcie = world_pcie(all->program->workload->world);
    struct pcie_port *end[2];
    uint64_t sum = 0;
    for (unsigned i = 0, k = 0; pcie_context_link(pcie, i, &end[0], &end[1]) != NULL; i++)
        for (unsigned e = 0; e < 2 && end[0]->fabric && end[1]->fabric; e++, k++) {
            const struct pcie_link_stats *stats = pcie_port_stats(end[e]);
            sum += stats->tlp_bytes;
            if (k >= room)
                continue;
            if (n_used != NULL)
                *n_used += stats->payload_bytes - before[k] >= GROUP_BYTES;
            else
                before[k] = stats->payload_bytes;
        }
    return sum;
}

/* Identify, to the group's address, and again for ourselves. */
static int identify(struct nvme_multicast *all, struct user *u)
{
    struct kernel *kernel = all->host->kernel;
    struct nvme_user_command command = { .sqe = { .opcode = NVME_ADMIN_IDENTIFY,
                                                  .prp1 = u->group.dma,
                                                  .cdw10 = NVME_IDENTIFY_CONTROLLER } };
    uint64_t before[4 * SUBSCRIBERS_MAX];
    const unsigned room = sizeof(before) / sizeof(before[0]);
    struct pcie_port *port = &all->device->ports[0];
    const uint64_t bytes = fabric_bytes(all, before, room, NULL);
    const uint64_t sent = pcie_port_stats(port)->tlp_bytes;
    int status = nvme_user_admin(&u->controller, &command, NULL, 0, NULL);
    k_sleep(kernel, ARRIVAL_PS);
    all->link_bytes = fabric_bytes(all, before, room, &all->cables_used) - bytes;
    all->device_bytes = pcie_port_stats(port)->tlp_bytes - sent;
    if (status == 0)
        status = nvme_user_identify(&u->controller, NVME_IDENTIFY_CONTROLLER, 0, all->expected);
    return status;
}

static void command(struct nvme_multicast *all, struct sisci_process *process)
{
    struct user u = { 0 };
    struct lend_error error = { 0 };
    if (!bad(all, all->host, take(all, &u, process, &error), &error)) {
        const struct nvme_user_controller_params params = {
            .kernel = all->host->kernel,
            .registers = { &reg_ops, &u.regs, 0 },
            .admin_entries = ENTRIES,
            .admin_sq = page_of(&u, 0),
            .admin_cq = page_of(&u, 1),
            .page = page_of(&u, 2),
            .timeout_ps = TIMEOUT_PS,
        };
        int status = nvme_user_controller_open(&u.controller, &params);
        if (status == 0) {
            status = identify(all, &u);
            nvme_user_controller_close(&u.controller);
        }
        all->written = status == 0;
        all->failed = status != 0;
        if (status != 0)
            program_fail(all->program, "%s does not identify itself (%d)", all->device_name,
                         status);
    }
}

static bool all_of(const struct nvme_multicast *all, bool done)
{
    for (unsigned i = 0; i < all->n_subscribers; i++)
        if (!all->subscriber[i].done && (done || !all->subscriber[i].ready))
            return false;
    return true;
}

static void command_body(void *arg)
{
    struct nvme_multicast *all = arg;
    struct kernel *kernel = all->host->kernel;
    struct sisci_process *process;
    struct lend_error error = { 0 };
    lend_discover(all->host->lend);
    sisci_open(all->host->sisci, &process, NULL);
    while (!program_measuring(all->program) && !program_ending(all->program))
        k_sleep(kernel, LOOK_PS);
    all->group_there = !bad(
        all, all->host,
        sisci_group_create(process, all->group_number, GROUP_BYTES, &all->group, &error), &error);
    while (!all->failed && !all_of(all, false))
        k_sleep(kernel, LOOK_PS);
    if (!all->failed)
        command(all, process);
    while (!all_of(all, true)) /* they unsubscribe while the group is there */
        k_sleep(kernel, LOOK_PS);
    sisci_close(process);
    program_finish(all->program);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void nvme_multicast_start(struct program *program)
{
    struct nvme_multicast *all = program->state;
    program->finite = true;
    lending_borrows_more(program->lending);
    program_lending_uses_cpu(program, all->host, 0);
    for (unsigned i = 0; i < all->n_subscribers; i++) {
        struct subscriber *s = &all->subscriber[i];
        s->all = all;
        k_thread_new(s->host->kernel, "subscriber", 0, subscriber_body, s);
    }
    k_thread_new(all->host->kernel, program->name, 0, command_body, all);
}

static void nvme_multicast_record(struct program *program, sim_time duration_ps)
{
    const struct nvme_multicast *all = program->state;
    unsigned n = 0;
    (void)duration_ps;
    for (unsigned i = 0; i < all->n_subscribers; i++)
        n += all->subscriber[i].good;
    program_metric(program, "copies_received", "1", n);
    program_metric(program, "link_bytes", "bytes", (double)all->link_bytes);
    program_metric(program, "cables_used", "1", (double)all->cables_used);
    program_metric(program, "device_link_bytes", "bytes", (double)all->device_bytes);
}

const struct program_ops program_nvme_multicast_ops = {
    .type = "nvme_multicast",
    .help = "an NVMe controller identifies itself to all subscribers of a multicast group",
    .state_bytes = sizeof(struct nvme_multicast),
    .params = nvme_multicast_params,
    .records = nvme_multicast_records,
    .check = nvme_multicast_check,
    .start = nvme_multicast_start,
    .record = nvme_multicast_record,
};
