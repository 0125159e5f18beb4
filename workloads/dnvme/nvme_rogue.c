/*
 * nvme_rogue: a client of a shared NVMe controller that writes addresses into its commands which
 * nobody has given it: of data, in PRP lists, of PRP lists, in SGLs, of queues (SmartIO, 8.1). It
 * aims at memory of the host that has the device, which is not mapped for the device; at a buffer
 * of a client on another host, which is; and at where there is nothing. Both targets are guards:
 * pages that hold a stream, which are looked at in the end. What of them was overwritten, and what
 * of the lender's memory has come into the rogue's by way of the device, is counted: it is what
 * isolation keeps from happening.
 */
#include <errno.h>
#include <string.h>

#include "models/base/payload.h"
#include "models/nvme/nvme.h"
#include "workloads/dnvme/nvme_site.h"

#define NSID        1u
#define PAGE        4096u
#define GUARD_PAGES 64u
#define LIST_PIECES 4u /* pages of a command with a PRP list */
#define ENTRIES     64u
#define WILD        16u /* entries of a queue that lies where it should not */
#define NOWHERE     (UINT64_C(0x3a) << 32)
#define COMMAND_PS  (50 * SIM_PS_PER_MS)
#define LOOK_PS     (5 * SIM_PS_PER_US)
#define QUEUE_PS    (100 * SIM_PS_PER_US) /* for a controller to execute what is no command */

enum attack { ATTACK_DATA, ATTACK_LIST_ENTRY, ATTACK_LIST, ATTACK_SGL, ATTACK_QUEUE, ATTACK_ALL };
static const char *const attacks[] = { "data", "list_entry", "list", "sgl", "queue", "all", NULL };
#define N_ATTACKS ATTACK_ALL

enum aim { AIM_LENDER, AIM_VICTIM, AIM_NOWHERE, N_AIMS };

struct guard {
    struct lending_host *host;
    struct kaddr at; /* GUARD_PAGES */
    uint64_t bus;    /* by which the device would reach it */
    uint16_t stream;
};

struct rogue {
    /* parameters */
    const char *host_name, *victim_name, *device_name;
    int attack;
    uint32_t cpu, commands;
    /* running */
    struct program *program;
    struct nvme_manager *manager;
    struct lending_host *host;
    struct nvme_site site, victim_site;
    struct guard lender, victim;
    struct dnvme_buffer victim_buffer, own; /* own: data, then a list */
    struct dnvme_pair *pair;
    struct nvme_user_command
        command; /* under way; the device's until it is done or the pair freed */
    unsigned number;
    uint64_t first_block;
    uint32_t page_blocks; /* of the device, in a page */
    bool victim_ready, done, failed, command_done;
    /* measured */
    uint64_t n, n_errors, n_refused, lines_leaked;
    uint64_t lender_lines, victim_lines; /* overwritten */
};

static const struct param_desc rogue_params[] = {
    PARAM_TEXT("on", struct rogue, host_name, "borrower", "host of the group `lending`"),
    PARAM_TEXT("victim", struct rogue, victim_name, "other",
               "host of the group `lending` with a client that only has a buffer"),
    PARAM_TEXT("device", struct rogue, device_name, "ssd",
               "an nvme.controller with a program nvme_manager"),
    PARAM_ONE_OF("attack", struct rogue, attack, ATTACK_ALL, attacks, PROV_NONE, "",
                 "which addresses of its commands are wild"),
    PARAM("cpu", PARAM_U32, struct rogue, cpu, 2, 0, 255, PROV_NONE, "",
          "that it and the victim's client run on, on their hosts"),
    PARAM("commands", PARAM_U32, struct rogue, commands, 120, 1, 100000, PROV_NONE, "",
          "that it sends; a queue counts as one"),
    { .type = PARAM_END },
};

static const struct record_desc rogue_records[] = {
    { "rogue_commands", RECORD_METRIC, "1", "sent" },
    { "rogue_errors", RECORD_METRIC, "1", "of these ended with an error" },
    { "rogue_refused", RECORD_METRIC, "1", "queues that the manager did not create" },
    { "lender_lines_overwritten", RECORD_METRIC, "1",
      "cache lines of memory of the lender that is not mapped for the device" },
    { "lender_lines_leaked", RECORD_METRIC, "1", "of that memory, that the rogue has read" },
    { "victim_lines_overwritten", RECORD_METRIC, "1",
      "cache lines of the buffer of another client, which is mapped for the device" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void rogue_check(struct program *program, struct sim_error_list *errors)
{
    struct rogue *r = program->state;
    r->program = program;
    r->manager = nvme_manager_of(program, r->device_name, errors);
    r->host = program_member(program, "on", r->host_name, true, errors);
    r->victim.host = program_member(program, "victim", r->victim_name, true, errors);
    if (r->manager == NULL || r->host == NULL || r->victim.host == NULL)
        return;
    if (r->victim.host == r->host)
        program_mistake(program, "victim", errors, "another host than `on`", NULL);
    nvme_manager_take_pairs(program, "device", r->manager, 1, errors);
    const struct model *device = nvme_manager_device(r->manager);
    const uint64_t bytes = (uint64_t)GUARD_PAGES * PAGE;
    const uint64_t at = program_take(program, device, "byte", bytes);
    if (at + bytes > nvme_namespace_bytes(device))
        program_mistake(program, "device", errors, "a device with 256 KiB that no program uses",
                        NULL);
    r->first_block = at / nvme_namespace_block_bytes(device);
    r->page_blocks = PAGE / nvme_namespace_block_bytes(device);
    program_check_cpus(program, "cpu", r->host, r->cpu, 1, errors);
    program_check_cpus(program, "cpu", r->victim.host, r->cpu, 1, errors);
}

/* ---- Guards ---------------------------------------------------------------------------------- */

static uint64_t tag_of(const struct guard *guard, uint64_t line)
{
    return payload_mark(guard->stream, line * LINE_BYTES);
}

static void guard_fill(struct guard *guard)
{
    payload_fill(guard->host->kernel, guard->at, tag_of(guard, 0), (uint64_t)GUARD_PAGES * PAGE);
}

/* Lines that do not hold what was put there. */
static uint64_t guard_harmed(const struct guard *guard)
{
    struct payload_difference is;
    uint64_t n = 0;
    for (uint64_t line = 0; line < GUARD_PAGES * PAGE / LINE_BYTES; line++)
        n += !payload_check(guard->host->kernel, kaddr_add(guard->at, line * LINE_BYTES),
                            tag_of(guard, line), LINE_BYTES, &is);
    return n;
}

static bool guard_new(struct rogue *r, struct guard *guard)
{
    if (k_pages_get(guard->host->kernel, K_NODE_LOCAL, (uint64_t)GUARD_PAGES * PAGE, &guard->at) !=
        0)
        return false;
    guard->stream = program_new_stream(r->program);
    guard_fill(guard);
    return true;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void fail(struct rogue *r, const char *what, int status, const char *text)
{
    if (!r->failed)
        program_fail(r->program, "%s: %s: %s", what, strerror(-status), text);
    r->failed = true;
}

static void command_done(struct nvme_user_command *command)
{
    struct rogue *r = command->context;
    r->command_done = true;
}

/* Sends it and waits; its status. */
static uint16_t execute(struct rogue *r, const struct nvme_user_command *command,
                        const struct nvme_user_piece *piece, unsigned n)
{
    struct kernel *kernel = r->host->kernel;
    const uint64_t until_ps = k_now_ps(kernel) + COMMAND_PS;
    if (r->failed)
        return NVME_SC_INTERNAL_ERROR;
    r->command_done = false;
    r->command = *command;
    r->command.done = command_done;
    r->command.context = r;
    int status = dnvme_pair_put(r->pair, &r->command, piece, n);
    if (status == 0)
        status = dnvme_pair_ring(r->pair);
    while (status == 0 && !r->command_done && k_now_ps(kernel) < until_ps)
        dnvme_pair_wait(r->pair, until_ps);
    if (status == 0 && !r->command_done)
        status = -ETIMEDOUT;
    if (status != 0)
        fail(r, "a command", status, "the controller does not answer");
    return status != 0 ? NVME_SC_INTERNAL_ERROR : r->command.status;
}

static uint64_t block_of(const struct rogue *r, uint64_t page)
{
    return r->first_block + page % (GUARD_PAGES - LIST_PIECES) * r->page_blocks;
}

static uint64_t wild_address(const struct rogue *r, enum aim aim, uint64_t i)
{
    const uint64_t offset = i % (GUARD_PAGES - LIST_PIECES) * PAGE;
    switch (aim) {
    case AIM_LENDER: return r->lender.bus + offset;
    case AIM_VICTIM: return r->victim.bus + offset;
    default: return NOWHERE + offset;
    }
}

/* A command for whole pages of which at least one lies at `wild`. */
static uint16_t wild_command(struct rogue *r, enum attack attack, bool write, uint64_t i,
                             uint64_t wild)
{
    const uint64_t data = r->own.bus[0], list = data + LIST_PIECES * PAGE;
    const bool listed = attack == ATTACK_LIST_ENTRY || attack == ATTACK_LIST;
    const unsigned n_pages = listed ? LIST_PIECES : 1;
    struct nvme_user_command command = { .done = NULL };
    dnvme_io(&command, write, NSID, block_of(r, i), n_pages * r->page_blocks);
    if (attack == ATTACK_SGL) {
        command.sqe.flags = NVME_PSDT_SGL;
        command.sqe.prp1 = wild;
        command.sqe.prp2 = (uint64_t)NVME_SGL_DATA << 56 | PAGE; /* type, length */
    } else if (attack == ATTACK_DATA) {
        command.sqe.prp1 = wild;
    } else {
        const uint64_t entry[LIST_PIECES - 1] = { wild, wild + PAGE, wild + 2 * PAGE };
        k_store(r->host->kernel, kaddr_add(r->own.at, LIST_PIECES * PAGE), entry, sizeof(entry));
        command.sqe.prp1 = data;
        command.sqe.prp2 = attack == ATTACK_LIST ? wild : list;
    }
    return execute(r, &command, NULL, 0);
}

/* Has the device write what it found at `wild`, then reads that like anybody. */
static void leak(struct rogue *r, enum attack attack, uint64_t i, uint64_t wild)
{
    const unsigned page = attack == ATTACK_LIST_ENTRY; /* the first one of a list is our own */
    struct nvme_user_command command = { .done = NULL };
    const struct nvme_user_piece piece = { r->own.bus[0], PAGE };
    struct payload_difference is;
    const uint64_t first = (wild - r->lender.bus) / LINE_BYTES;
    r->n_errors += wild_command(r, attack, true, i, wild) != NVME_SC_SUCCESS;
    payload_fill(r->host->kernel, r->own.at, 0, PAGE);
    dnvme_io(&command, false, NSID, block_of(r, i) + page * r->page_blocks, r->page_blocks);
    execute(r, &command, &piece, 1);
    k_sleep(r->host->kernel, LOOK_PS);
    for (uint64_t line = 0; line < PAGE / LINE_BYTES; line++)
        r->lines_leaked += payload_check(r->host->kernel, kaddr_add(r->own.at, line * LINE_BYTES),
                                         tag_of(&r->lender, first + line), LINE_BYTES, &is);
}

/* The controller reads commands at one wild address and writes completions to another. */
static void wild_queue(struct rogue *r, uint64_t i, enum aim aim)
{
    uint64_t handle;
    const int status = dnvme_wild_pair_new(r->site.client, wild_address(r, aim, i),
                                           wild_address(r, aim, i + 1), WILD, &handle);
    if (status != 0) {
        r->n_refused++;
        return;
    }
    dnvme_wild_pair_ring(r->site.client, handle, WILD - 1);
    k_sleep(r->host->kernel, QUEUE_PS);
    dnvme_wild_pair_free(r->site.client, handle);
}

static void attack(struct rogue *r)
{
    for (uint64_t i = 0; i < r->commands && !r->failed; i++) {
        const enum aim aim = (enum aim)(i % N_AIMS);
        const enum attack kind = r->attack == ATTACK_ALL ? (enum attack)(i / N_AIMS % N_ATTACKS)
                                                         : (enum attack)r->attack;
        const uint64_t wild = wild_address(r, aim, i);
        r->n++;
        if (kind == ATTACK_QUEUE)
            wild_queue(r, i, aim);
        else if (aim == AIM_LENDER && kind != ATTACK_LIST && i / (N_AIMS * N_ATTACKS) % 2 == 1)
            leak(r, kind, i, wild);
        else
            r->n_errors += wild_command(r, kind, false, i, wild) != NVME_SC_SUCCESS;
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* The victim: a client with a buffer that the device may write to. */
static void victim_body(void *arg)
{
    struct rogue *r = arg;
    struct kernel *kernel = r->victim.host->kernel;
    struct lend_error error = { 0 };
    int status = nvme_site_open(&r->victim_site, r->victim.host, r->manager, r->number + 1, 1,
                                &error);
    if (status == 0)
        status = dnvme_buffer_new(r->victim_site.client, (uint64_t)GUARD_PAGES * PAGE,
                                  &r->victim_buffer, &error);
    if (status != 0)
        fail(r, "the victim cannot begin", status, error.text);
    r->victim.at = r->victim_buffer.at;
    r->victim.bus = r->victim_buffer.bus[0];
    if (status == 0)
        guard_fill(&r->victim);
    r->victim_ready = true;
    while (!r->done)
        k_sleep(kernel, LOOK_PS);
    if (status == 0)
        dnvme_buffer_free(r->victim_site.client, &r->victim_buffer);
    nvme_site_close(&r->victim_site);
    nvme_manager_left(r->manager);
}

static int rogue_open(struct rogue *r, struct lend_error *error)
{
    int status = nvme_site_open(&r->site, r->host, r->manager, r->number, 1, error);
    struct dnvme_pair_params params = dnvme_pair_params_default;
    params.entries = ENTRIES;
    if (status == 0)
        status = dnvme_pair_new(r->site.client, &params, &r->pair, error);
    if (status == 0)
        status = dnvme_buffer_new(r->site.client, (LIST_PIECES + 1) * PAGE, &r->own, error);
    while (!r->victim_ready)
        k_sleep(r->host->kernel, LOOK_PS);
    return status;
}

static void rogue_body(void *arg)
{
    struct rogue *r = arg;
    struct lend_error error = { 0 };
    const int status = rogue_open(r, &error);
    if (status != 0)
        fail(r, "cannot begin", status, error.text);
    while (!program_measuring(r->program) && !program_ending(r->program))
        k_sleep(r->host->kernel, LOOK_PS);
    if (!r->failed)
        attack(r);
    k_sleep(r->host->kernel, QUEUE_PS); /* what is under way has arrived */
    r->lender_lines = guard_harmed(&r->lender);
    if (!r->failed)
        r->victim_lines = guard_harmed(&r->victim);
    r->done = true;
    program_finish(r->program);
    if (r->pair != NULL)
        dnvme_pair_free(r->pair);
    if (r->own.bytes != 0)
        dnvme_buffer_free(r->site.client, &r->own);
    nvme_site_close(&r->site);
    k_pages_put(r->lender.host->kernel, (uint64_t)GUARD_PAGES * PAGE, r->lender.at);
    nvme_manager_left(r->manager);
}

static void rogue_start(struct program *program)
{
    struct rogue *r = program->state;
    lending_borrows_more(program->lending);
    program->finite = true;
    r->number = nvme_manager_expect(r->manager, 2);
    r->victim.stream = program_new_stream(program);
    r->lender.host = lending_find(program->lending,
                                  lending_lender(program->lending, r->device_name)->name);
    if (!guard_new(r, &r->lender)) {
        program_fail(program, "%s: no memory for a guard", r->lender.host->name);
        return;
    }
    r->lender.bus = r->lender.at.v;
    program_lending_uses_cpu(program, r->host, r->cpu);
    k_thread_new(r->victim.host->kernel, "victim", (int)r->cpu, victim_body, r);
    k_thread_new(r->host->kernel, program->name, (int)r->cpu, rogue_body, r);
}

static void rogue_record(struct program *program, sim_time duration_ps)
{
    const struct rogue *r = program->state;
    (void)duration_ps;
    program_metric(program, "rogue_commands", "1", (double)r->n);
    program_metric(program, "rogue_errors", "1", (double)r->n_errors);
    program_metric(program, "rogue_refused", "1", (double)r->n_refused);
    program_metric(program, "lender_lines_overwritten", "1", (double)r->lender_lines);
    program_metric(program, "lender_lines_leaked", "1", (double)r->lines_leaked);
    program_metric(program, "victim_lines_overwritten", "1", (double)r->victim_lines);
}

const struct program_ops program_nvme_rogue_ops = {
    .type = "nvme_rogue",
    .help = "a client of a shared NVMe controller whose commands have wild addresses",
    .state_bytes = sizeof(struct rogue),
    .params = rogue_params,
    .records = rogue_records,
    .check = rogue_check,
    .start = rogue_start,
    .record = rogue_record,
};
