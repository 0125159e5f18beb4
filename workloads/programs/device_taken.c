/*
 * device_taken: an adapter (pcie.requester) is borrowed and kept busy, and in the midst of that it
 * is taken away: a cable is pulled and put back, when all is quiet or while the device is at work,
 * once or several times; the lender takes it back; or one of the two hosts dies. What becomes of
 * the transfers, when whoever has to know knows, and when the device can be borrowed again, after
 * which it has to work: every line of what it moved is checked, and that nothing beside changed.
 * When the borrower has died, another host may borrow the device.
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "models/base/payload.h"
#include "models/nfp/requester.h"
#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"
#include "workloads/programs/program.h"

#define LOOK_PS     (5 * SIM_PS_PER_US)
#define TRY_PS      SIM_PS_PER_MS
#define TRIES       1000u
#define QUEUE_DEPTH 4u
#define GUARD_BYTES K_PAGE_BYTES /* before and behind the buffer */

enum taken_event { TAKEN_CABLE, TAKEN_RECLAIM, TAKEN_DEATH };
static const char *const event_names[] = { "cable", "reclaim", "death", NULL };
enum taken_returns { RETURNS_QUIET, RETURNS_AT_WORK };
static const char *const returns_names[] = { "quiet", "at_work", NULL };
enum taken_direction { TAKEN_WRITE, TAKEN_READ };
static const char *const direction_names[] = { "write", "read", NULL };

struct device_taken;

struct slot {
    struct pcie_requester_op op;
    struct device_taken *taken;
    uint8_t *buffer;
};

struct device_taken {
    /* parameters */
    const char *host_name, *from_name, *device_name, *bridge_name, *dies_name, *next_name;
    int event, direction, returns;
    uint32_t n_pulls;
    uint64_t transfer_bytes;
    sim_time after_ps, out_ps;
    /* running */
    struct program *program;
    struct lending_host *host, *from, *dies, *next; /* next: NULL: none */
    struct model *device;
    struct pcie_link *cable;
    struct k_pci_driver driver;
    struct k_pci_dev *dev; /* as its driver has it; NULL: it is not there */
    struct kaddr at;       /* guard, QUEUE_DEPTH transfers, guard */
    uint64_t address;      /* of the first transfer, for the device */
    uint16_t stream, id;
    int map_status; /* of the last probe() */
    unsigned in_flight;
    bool stop; /* no transfer follows another any more */
    struct slot slot[QUEUE_DEPTH];
    uint8_t *buffers;
    /* measured */
    sim_time event_ps, last_ps, removed_ps, again_ps, lease_over_ps;
    uint64_t good, unnoticed, failed; /* transfers: before, after without an error, with one */
    unsigned n_tries;
};

static const struct param_desc device_taken_params[] = {
    PARAM_TEXT("on", struct device_taken, host_name, "borrower", "the host that borrows"),
    PARAM_TEXT("from", struct device_taken, from_name, "lender", "the host that lends"),
    PARAM_TEXT("device", struct device_taken, device_name, "", "a pcie.requester that it lends"),
    PARAM_TEXT("bridge", struct device_taken, bridge_name, "",
               "the pcie.ntb whose cable is pulled"),
    PARAM_TEXT("dies", struct device_taken, dies_name, "", "`on` or `from`: the host that dies"),
    PARAM_TEXT("next", struct device_taken, next_name, "",
               "the host that borrows the device when `on` has died; \"\": none"),
    PARAM_ONE_OF("event", struct device_taken, event, TAKEN_CABLE, event_names, PROV_NONE, "",
                 "how it is taken away"),
    PARAM_ONE_OF("direction", struct device_taken, direction, TAKEN_WRITE, direction_names,
                 PROV_NONE, "", "what the device does to the borrower's memory"),
    PARAM("transfer_bytes", PARAM_BYTES, struct device_taken, transfer_bytes, 65536, 4096, 16777216,
          PROV_NONE, "", "of a transfer; whole pages. Four are under way at a time"),
    PARAM("after_us", PARAM_TIME, struct device_taken, after_ps, 200, 1, 1e6, PROV_NONE, "",
          "first transfer to the event"),
    PARAM("out_ms", PARAM_TIME, struct device_taken, out_ps, 50, 0.001, 1e4, PROV_NONE, "",
          "for so long the cable is out; its link has to train afterwards"),
    PARAM_ONE_OF("returns", struct device_taken, returns, RETURNS_QUIET, returns_names, PROV_NONE,
                 "", "the cable is out for out_ms after all has ended, or after it was pulled"),
    PARAM("pulls", PARAM_U32, struct device_taken, n_pulls, 1, 1, 100, PROV_NONE, "",
          "with at_work: so often it is out for out_ms, and in for as long"),
    { .type = PARAM_END },
};

static const struct record_desc device_taken_records[] = {
    { "transfers_before", RECORD_METRIC, "1", "that had ended at the time of the event" },
    { "transfers_unnoticed", RECORD_METRIC, "1", "that ended later, for the device without error" },
    { "transfers_failed", RECORD_METRIC, "1", "that ended with an error" },
    { "stopped_after_us", RECORD_METRIC, "us", "event to the end of the last transfer" },
    { "removed_after_us", RECORD_METRIC, "us", "event to when its driver has let go of it" },
    { "borrowed_after_ms", RECORD_METRIC, "ms", "event to when it was borrowed again" },
    { "borrow_refusals", RECORD_METRIC, "1", "attempts until then, one a millisecond" },
    { "lease_over_after_us", RECORD_METRIC, "us",
      "death of the borrower to when the lender has taken the device back" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static struct pcie_link *cable_of(struct program *program, const struct model *bridge)
{
    struct pcie_port *a, *b;
    struct pcie_link *link;
    for (unsigned i = 0;
         (link = pcie_context_link(world_pcie(program->workload->world), i, &a, &b)) != NULL; i++)
        if (a == &bridge->ports[1] || b == &bridge->ports[1])
            return link;
    return NULL;
}

static void check_death(struct device_taken *taken, struct sim_error_list *errors)
{
    struct program *program = taken->program;
    const char *const names[] = { taken->host_name, taken->from_name, NULL };
    if (strcmp(taken->dies_name, taken->host_name) == 0)
        taken->dies = taken->host;
    else if (strcmp(taken->dies_name, taken->from_name) == 0)
        taken->dies = taken->from;
    else
        program_mistake(program, "dies", errors, "the host `on` or `from`", names);
    if (taken->next_name[0] == '\0')
        return;
    taken->next = program_member(program, "next", taken->next_name, true, errors);
    if (taken->next == taken->host || taken->next == taken->from || taken->dies != taken->host)
        program_mistake(program, "next", errors, "a third host, and that the host `on` dies", NULL);
}

static void device_taken_check(struct program *program, struct sim_error_list *errors)
{
    struct device_taken *taken = program->state;
    struct model *bridge = world_device(program->workload->world, taken->bridge_name);
    taken->program = program;
    taken->host = program_member(program, "on", taken->host_name, true, errors);
    taken->from = program_member(program, "from", taken->from_name, true, errors);
    taken->device = world_device(program->workload->world, taken->device_name);
    if (taken->device == NULL || taken->device->ops != &pcie_requester_ops)
        program_mistake(program, "device", errors, "a pcie.requester", NULL);
    else if (taken->from != NULL &&
             (lending_lender(program->lending, taken->device_name) != taken->from ||
              lending_borrower(program->lending, taken->device_name) != NULL))
        program_mistake(program, "device", errors,
                        "a device that the host `from` lends, and that no host borrows", NULL);
    if (taken->event == TAKEN_CABLE && bridge != NULL && bridge->n_ports == 2)
        taken->cable = cable_of(program, bridge);
    if (taken->event == TAKEN_CABLE && taken->cable == NULL)
        program_mistake(program, "bridge", errors, "a pcie.ntb with a cable", NULL);
    if (taken->event == TAKEN_DEATH && taken->host != NULL && taken->from != NULL)
        check_death(taken, errors);
    if (taken->n_pulls > 1 && taken->returns == RETURNS_QUIET)
        program_mistake(program, "pulls", errors, "1, or returns = \"at_work\"", NULL);
    if (taken->host != NULL && taken->host == taken->from)
        program_mistake(program, "from", errors, "another host than `on`", NULL);
    if (taken->transfer_bytes % K_PAGE_BYTES != 0)
        program_mistake(program, "transfer_bytes", errors, "a multiple of 4096", NULL);
}

static struct kernel *kernel_of(const struct device_taken *taken)
{
    return taken->host->kernel;
}

/* ---- The driver ------------------------------------------------------------------------------ */

static uint64_t all_bytes(const struct device_taken *taken)
{
    return QUEUE_DEPTH * taken->transfer_bytes;
}

static int probe(struct k_pci_dev *dev, void *context)
{
    struct device_taken *taken = context;
    k_dma_set_mask(&dev->device, 64);
    int status = k_dma_map(&dev->device, kaddr_add(taken->at, GUARD_BYTES), all_bytes(taken),
                           K_DMA_BOTH, &taken->address);
    taken->map_status = status;
    if (status != 0)
        return status;
    uint32_t command = k_config_read(dev, PCI_COMMAND, 2);
    k_config_write(dev, PCI_COMMAND, 2, command | PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    taken->dev = dev;
    return 0;
}

static void removed(struct k_pci_dev *dev, bool gone)
{
    struct device_taken *taken = dev->driver->context;
    taken->stop = true;
    if (!gone) { /* it is quiet when the answer is here */
        k_config_write(dev, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
        k_config_read(dev, PCI_COMMAND, 2);
    }
    k_dma_unmap(&dev->device, taken->address, all_bytes(taken), K_DMA_BOTH);
    taken->dev = NULL;
    taken->removed_ps = k_now_ps(dev->device.kernel);
}

/* ---- Transfers ------------------------------------------------------------------------------- */

static uint64_t tag_of(const struct slot *slot, uint64_t offset)
{
    const struct device_taken *taken = slot->taken;
    return payload_mark(taken->stream, (uint64_t)(slot - taken->slot) * taken->transfer_bytes) +
           offset;
}

static void begin(struct slot *slot)
{
    struct device_taken *taken = slot->taken;
    slot->op.iova.v = taken->address + (uint64_t)(slot - taken->slot) * taken->transfer_bytes;
    for (uint64_t at = 0; at < taken->transfer_bytes; at += LINE_BYTES) {
        const uint64_t word = payload_word(taken->direction == TAKEN_WRITE ? tag_of(slot, at) : 0);
        memcpy(slot->buffer + at, &word, sizeof(word));
    }
    taken->in_flight++;
    pcie_requester_submit(taken->device, &slot->op);
}

static bool read_is_good(const struct slot *slot)
{
    for (uint64_t at = 0; at < slot->taken->transfer_bytes; at += LINE_BYTES) {
        const uint64_t word = payload_word(tag_of(slot, at));
        if (memcmp(slot->buffer + at, &word, sizeof(word)) != 0)
            return false;
    }
    return true;
}

static void transfer_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct slot *slot = op->context;
    struct device_taken *taken = slot->taken;
    taken->in_flight--;
    taken->last_ps = sim_now(taken->program->workload->sim);
    if (status != PCIE_DMA_OK)
        taken->failed++;
    else if (taken->event_ps == 0)
        taken->good++;
    else
        taken->unnoticed++;
    if (status == PCIE_DMA_OK && taken->direction == TAKEN_READ && !read_is_good(slot))
        program_fail(taken->program, "%s has read what is not there", taken->device_name);
    if (status == PCIE_DMA_OK && !taken->stop)
        begin(slot);
}

/* What is in memory: lines that were written, or not yet; around them nothing. */
static void check_memory(struct device_taken *taken, bool all)
{
    static const uint8_t zeros[GUARD_BYTES];
    uint8_t guard[GUARD_BYTES];
    for (unsigned i = 0; i < 2; i++) {
        k_peek(kernel_of(taken), kaddr_add(taken->at, i * (GUARD_BYTES + all_bytes(taken))), guard,
               sizeof(guard));
        if (memcmp(guard, zeros, sizeof(guard)) != 0)
            program_fail(taken->program, "%s has written beside its buffer", taken->device_name);
    }
    for (uint64_t at = 0; at < all_bytes(taken); at += LINE_BYTES) {
        const uint64_t word = payload_word(payload_mark(taken->stream, at));
        uint64_t found;
        k_peek(kernel_of(taken), kaddr_add(taken->at, GUARD_BYTES + at), &found, sizeof(found));
        if (found != word && (all || found != 0)) {
            program_fail(taken->program, "byte %llu of the buffer is not what %s moved",
                         (unsigned long long)at, taken->device_name);
            return;
        }
    }
}

/* ---- What happens ---------------------------------------------------------------------------- */

static int borrow(struct device_taken *taken, struct lend_borrow **borrowed,
                  struct lend_error *error)
{
    error->text[0] = '\0';
    lend_discover(taken->host->lend);
    return lend_borrow(taken->host->lend, taken->from->number, taken->id, borrowed, error);
}

static void reclaim_body(void *arg)
{
    struct device_taken *taken = arg;
    lend_reclaim(taken->from->lend, taken->id);
}

/* What the device of a host without power does not do any more; its last transfers end by
 * themselves. A dead borrower's driver notices nothing. */
static void die(struct device_taken *taken)
{
    lending_kill(taken->dies);
    if (taken->dies == taken->from)
        taken->stop = true;
    else
        taken->dev = NULL;
}

static void pull_at_work(struct device_taken *taken)
{
    for (unsigned i = 0; i < taken->n_pulls; i++) {
        if (i > 0)
            k_sleep(kernel_of(taken), taken->out_ps);
        pcie_link_set_up(taken->cable, false);
        k_sleep(kernel_of(taken), taken->out_ps);
        pcie_link_set_up(taken->cable, true);
    }
}

static void take_away(struct device_taken *taken)
{
    k_sleep(kernel_of(taken), taken->after_ps);
    taken->event_ps = k_now_ps(kernel_of(taken));
    if (taken->event == TAKEN_CABLE && taken->returns == RETURNS_AT_WORK) {
        pull_at_work(taken);
        return;
    }
    if (taken->event == TAKEN_CABLE)
        pcie_link_set_up(taken->cable, false);
    else if (taken->event == TAKEN_DEATH)
        die(taken);
    else
        k_thread_new(taken->from->kernel, "reclaim", K_CPU_ANY, reclaim_body, taken);
    while (taken->dev != NULL || taken->in_flight != 0)
        k_sleep(kernel_of(taken), LOOK_PS);
    check_memory(taken, false);
    if (taken->event == TAKEN_CABLE) {
        k_sleep(kernel_of(taken), taken->out_ps);
        pcie_link_set_up(taken->cable, true);
    }
}

/* False: our driver did not take the device, which is given back. */
static bool is_driven(struct device_taken *taken, struct lend_borrow *borrowed)
{
    if (taken->dev != NULL)
        return true;
    program_fail(
        taken->program,
        "%s: its driver cannot map %llu KiB of memory for it (%d): 4 transfers have to fit "
        "into dma_window_bytes of %s",
        taken->device_name, (unsigned long long)(all_bytes(taken) >> 10), taken->map_status,
        taken->host_name);
    lend_return(borrowed);
    return false;
}

/* Borrowed anew, it does what it did. */
static void use_again(struct device_taken *taken)
{
    struct lend_borrow *borrowed = NULL;
    struct lend_error error;
    while (taken->n_tries < TRIES && borrow(taken, &borrowed, &error) != 0) {
        taken->n_tries++;
        k_sleep(kernel_of(taken), TRY_PS);
    }
    if (borrowed == NULL) {
        program_fail(taken->program, "%s cannot be borrowed again: %s", taken->device_name,
                     error.text);
        return;
    }
    if (!is_driven(taken, borrowed))
        return;
    taken->again_ps = k_now_ps(kernel_of(taken));
    while (taken->in_flight != 0) /* the cable came back while they were under way */
        k_sleep(kernel_of(taken), LOOK_PS);
    check_memory(taken, false);
    const uint64_t unnoticed = taken->unnoticed, failed = taken->failed;
    const sim_time last_ps = taken->last_ps;
    if (taken->direction == TAKEN_WRITE) /* or what it wrote before would do */
        payload_fill(kernel_of(taken), kaddr_add(taken->at, GUARD_BYTES),
                     payload_mark(taken->stream, all_bytes(taken)), all_bytes(taken));
    for (unsigned i = 0; i < QUEUE_DEPTH; i++) /* once each: stop is set */
        begin(&taken->slot[i]);
    while (taken->in_flight != 0)
        k_sleep(kernel_of(taken), LOOK_PS);
    k_readl(taken->dev, 0, 0); /* the answer comes behind what the device has written */
    if (taken->failed != failed)
        program_fail(taken->program, "%s does not work any more", taken->device_name);
    check_memory(taken, true);
    taken->unnoticed = unnoticed;
    taken->last_ps = last_ps;
    const sim_time removed_ps = taken->removed_ps;
    lend_return(borrowed);
    taken->removed_ps = removed_ps;
}

static void next_body(void *arg)
{
    struct device_taken *taken = arg;
    struct lend_host *lend = taken->next->lend;
    struct lend_borrow *borrowed = NULL;
    struct lend_error error;
    lend_discover(lend);
    while (taken->n_tries < TRIES &&
           lend_borrow(lend, taken->from->number, taken->id, &borrowed, &error) != 0) {
        taken->n_tries++;
        k_sleep(taken->next->kernel, TRY_PS);
    }
    taken->again_ps = k_now_ps(taken->next->kernel);
    if (borrowed == NULL)
        program_fail(taken->program, "%s cannot be borrowed again: %s", taken->device_name,
                     error.text);
    else
        lend_return(borrowed);
    program_finish(taken->program);
}

/* The borrower has died, and its transfers have ended: looks at the lender, then at the next. */
static void outlive(struct device_taken *taken)
{
    while (lend_usage(taken->from->lend).lent != 0)
        k_sleep(kernel_of(taken), LOOK_PS);
    taken->lease_over_ps = k_now_ps(kernel_of(taken));
    if (taken->next != NULL)
        k_thread_new(taken->next->kernel, "next", K_CPU_ANY, next_body, taken);
}

static void body(void *arg)
{
    struct device_taken *taken = arg;
    struct lend_borrow *borrowed;
    struct lend_error error;
    k_sleep(kernel_of(taken), LOOK_PS); /* global time is ours */
    k_pci_register(kernel_of(taken), &taken->driver);
    if (borrow(taken, &borrowed, &error) != 0) {
        program_fail(taken->program, "%s cannot be borrowed: %s", taken->device_name, error.text);
    } else if (is_driven(taken, borrowed)) {
        for (unsigned i = 0; i < QUEUE_DEPTH; i++)
            begin(&taken->slot[i]);
        take_away(taken);
        if (taken->event != TAKEN_DEATH || taken->dies == taken->from)
            lend_return(borrowed); /* what is left of it */
        if (taken->event != TAKEN_DEATH)
            use_again(taken);
        else if (taken->dies == taken->host)
            outlive(taken);
    }
    if (taken->next == NULL || taken->lease_over_ps == 0)
        program_finish(taken->program);
}

static void device_taken_start(struct program *program)
{
    static const struct k_pci_id ids[] = { { 0x19ee, 0x6000 }, { 0, 0 } };
    struct device_taken *taken = program->state;
    const uint64_t all = all_bytes(taken);
    program->finite = true;
    lending_borrows_more(program->lending);
    world_function_id(taken->device, 0, &taken->id);
    taken->stream = program_new_stream(program);
    taken->driver = (struct k_pci_driver){
        .name = "device_taken", .ids = ids, .probe = probe, .remove = removed, .context = taken
    };
    taken->at = k_alloc(kernel_of(taken), K_NODE_LOCAL, all + 2 * GUARD_BYTES, K_PAGE_BYTES);
    taken->buffers = program_zalloc(program, 1, all);
    if (taken->at.v == 0) {
        program_fail(program, "no memory for buffers of %llu bytes", (unsigned long long)all);
        return;
    }
    if (taken->direction == TAKEN_READ)
        payload_fill(kernel_of(taken), kaddr_add(taken->at, GUARD_BYTES),
                     payload_mark(taken->stream, 0), all);
    for (unsigned i = 0; i < QUEUE_DEPTH; i++) {
        struct slot *slot = &taken->slot[i];
        slot->taken = taken;
        slot->buffer = taken->buffers + i * taken->transfer_bytes;
        slot->op = (struct pcie_requester_op){ .write = taken->direction == TAKEN_WRITE,
                                               .interface = PCIE_REQUESTER_BULK,
                                               .bulk = true,
                                               .bytes = (uint32_t)taken->transfer_bytes,
                                               .buffer = slot->buffer,
                                               .done = transfer_done,
                                               .context = slot };
    }
    program_lending_uses_cpu(program, taken->host, 0);
    k_thread_new(kernel_of(taken), program->name, 0, body, taken);
}

static double us_after(const struct device_taken *taken, sim_time ps)
{
    return ps > taken->event_ps ? (double)(ps - taken->event_ps) / (double)SIM_PS_PER_US : 0.0;
}

static void device_taken_record(struct program *program, sim_time duration_ps)
{
    const struct device_taken *taken = program->state;
    (void)duration_ps;
    program_metric(program, "transfers_before", "1", (double)taken->good);
    program_metric(program, "transfers_unnoticed", "1", (double)taken->unnoticed);
    program_metric(program, "transfers_failed", "1", (double)taken->failed);
    program_metric(program, "stopped_after_us", "us", us_after(taken, taken->last_ps));
    if (taken->dies == NULL || taken->dies != taken->host)
        program_metric(program, "removed_after_us", "us", us_after(taken, taken->removed_ps));
    if (taken->event != TAKEN_DEATH || taken->next != NULL) {
        program_metric(program, "borrowed_after_ms", "ms", us_after(taken, taken->again_ps) / 1e3);
        program_metric(program, "borrow_refusals", "1", taken->n_tries);
    }
    if (taken->lease_over_ps != 0)
        program_metric(program, "lease_over_after_us", "us", us_after(taken, taken->lease_over_ps));
}

const struct program_ops program_device_taken_ops = {
    .type = "device_taken",
    .help = "a borrowed adapter that is taken away at work: cable pulled, reclaimed, a host dies",
    .state_bytes = sizeof(struct device_taken),
    .params = device_taken_params,
    .records = device_taken_records,
    .check = device_taken_check,
    .start = device_taken_start,
    .record = device_taken_record,
};
