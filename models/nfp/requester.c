/*
 * pcie.requester: command interface and bulk DMA engine of an NFP-6000 class adapter.
 *
 * Models: issue rates of reads and writes, reads in flight (slots taken and given back in order),
 *   store and forward between the link and local memory in bursts of words, banks of local memory
 *   that both directions share, the transmitter's data path, one BAR with registers that software
 *   may read and write, function-level reset.
 * Does not model: the processors behind the engines (their share is in the request and complete
 *   latencies), the adapter's network side.
 * Timing: command: command_request, the link's and host's round trip, transfer into local memory,
 *   command_complete. Bulk read: bulk_request; takes a slot, not before read_interval after the
 *   previous read (remainder more if that was no multiple of 8 B); data enters local memory when
 *   complete and in order of issue: descriptor, a word per 8 B, one more for each burst; then the
 *   slot is free; bulk_complete. Bulk write: takes a slot; bulk_request; local memory is read:
 *   descriptor, and 1 + burst_bytes / 8 words for each burst, whether it is full or not, line more
 *   if the last one is of two lines (65 B: of one); then TLPs leave; bulk_complete after the last.
 *   A burst takes its bank, of bank_bytes, for bank_word per 8 B, and is asked for while the one
 *   before it moves; what the other direction has asked for first goes first.
 * Sources: pcie-bench data (docs/sources.md#pcie-bench): issue rates 47.6 M writes/s and 67 M
 *   reads/s, 22 reads in flight, writes of all sizes on three hosts.
 */
#include "models/nfp/requester.h"

#include <stdlib.h>
#include <string.h>

#define REGISTER_BYTES 4096u
#define WORD_BYTES     8u
#define BANKS          8u /* what is beyond begins with the first again */

struct requester_params {
    sim_time command_request_ps, command_complete_ps;
    sim_time bulk_request_ps, bulk_complete_ps;
    sim_time read_interval_ps, remainder_ps;
    uint32_t reads_in_flight, writes_in_flight;
    uint64_t burst_bytes;
    sim_time word_ps, line_ps, descriptor_ps;
    uint64_t bank_bytes;
    sim_time bank_word_ps;
    uint32_t tx_align_bytes, tx_gap_bytes;
    uint32_t mrrs_bytes;
    uint64_t bar_bytes;
    struct pcie_function_params pcie;
};

/* Operations in a list, first in, first out. */
struct op_queue {
    struct pcie_requester_op *head, **tail;
};

/* A direction between the link and local memory; its operation is the head of a list. */
struct memory_path {
    struct sim_event burst; /* pending while an operation is moved: its next burst, without banks
                               its last */
    uint64_t moved_bytes;   /* of it so far */
    bool asked;             /* for the next burst's bank, which is its own from bank_ps on */
    sim_time bank_ps;
    sim_time burst_end_ps, begun_ps, free_ps; /* taken until, and from then until */
    struct stat_busy busy;
};

struct requester_state {
    struct requester_params params;
    struct pcie_function function;
    struct op_queue reads_waiting, writes_waiting; /* for a slot */
    struct sim_event issue;                        /* of the next read */
    struct op_queue reads_flying;                  /* in order of issue */
    struct op_queue writes_decoding;               /* in order of issue; the head is pulled next */
    uint32_t n_reads, n_writes;                    /* slots taken */
    sim_time read_free_ps;                         /* issue */
    struct memory_path push, pull;                 /* heads: of reads_flying, writes_decoding */
    sim_time bank_free_ps[BANKS];
    struct stat_peak path_peak;
    uint8_t reg[REGISTER_BYTES];
};

#define SOURCE "docs/sources.md#pcie-bench"
#define NFP_PARAM(KEY, TYPE, FIELD, DEF, LO, HI, PROV, HELP) \
    PARAM(KEY, TYPE, struct requester_state, params.FIELD, DEF, LO, HI, PROV, SOURCE, HELP)
static const struct param_desc requester_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct requester_state, params.pcie, SOURCE,
                         /* lanes */ 8, /* payload */ 512, PROV_PUBLISHED, /* extended tags */ 0,
                         PROV_PUBLISHED, /* queue */ 2, /* credits */ 32, 128, 16,
                         /* register */ 0, /* reads */ 0),
    NFP_PARAM("command_request_ns", PARAM_TIME, command_request_ps, 40, 0, 1000, PROV_ESTIMATE,
              "command to first TLP at the link"),
    NFP_PARAM("command_complete_ns", PARAM_TIME, command_complete_ps, 40, 0, 1000, PROV_ESTIMATE,
              "data in local memory (or write sent) to the processor's next instruction"),
    NFP_PARAM("bulk_request_ns", PARAM_TIME, bulk_request_ps, 100, 0, 2000, PROV_ESTIMATE,
              "descriptor queued to TLP at the link"),
    NFP_PARAM("bulk_complete_ns", PARAM_TIME, bulk_complete_ps, 100, 0, 2000, PROV_ESTIMATE,
              "data in local memory (or write sent) to the processor's next instruction"),
    NFP_PARAM("read_interval_ns", PARAM_TIME, read_interval_ps, 14.9, 1, 1000, PROV_PUBLISHED,
              "between issues of reads: 67 M/s"),
    NFP_PARAM(
        "remainder_ns", PARAM_TIME, remainder_ps, 8.8, 0, 1000, PROV_PUBLISHED,
        "more after a read whose size is no multiple of 8 bytes: a second command for the rest"),
    NFP_PARAM(
        "reads_in_flight", PARAM_U32, reads_in_flight, 22, 1, 256, PROV_PUBLISHED,
        "bulk reads from their request on the link until they are in local memory, freed in order"),
    NFP_PARAM("writes_in_flight", PARAM_U32, writes_in_flight, 16, 1, 256, PROV_ESTIMATE,
              "bulk writes between descriptor and completion"),
    NFP_PARAM("burst_bytes", PARAM_BYTES, burst_bytes, 128, 64, 4096, PROV_ESTIMATE,
              "most that local memory gives at once"),
    NFP_PARAM("word_ns", PARAM_TIME, word_ps, 1, 0, 100, PROV_PUBLISHED,
              "8 bytes between local memory and the engine; a burst takes one word more"),
    NFP_PARAM("line_ns", PARAM_TIME, line_ps, 3, 0, 100, PROV_PUBLISHED,
              "from local memory: for the last burst if it has more than 64 bytes, two lines"),
    NFP_PARAM("descriptor_ns", PARAM_TIME, descriptor_ps, 4, 0, 1000, PROV_PUBLISHED,
              "time that a descriptor keeps the path to local memory busy, beside its data"),
    NFP_PARAM("bank_bytes", PARAM_BYTES, bank_bytes, 0, 0, 65536, PROV_PUBLISHED,
              "of a bank of local memory, which both directions share; 0: nothing is shared"),
    NFP_PARAM("bank_word_ns", PARAM_TIME, bank_word_ps, 0.75, 0, 100, PROV_PUBLISHED,
              "time that 8 bytes take their bank"),
    NFP_PARAM("tx_align_bytes", PARAM_U32, tx_align_bytes, 8, 4, 64, PROV_PUBLISHED,
              "TLPs start at multiples of this in the transmitter's data path"),
    NFP_PARAM("tx_gap_bytes", PARAM_U32, tx_gap_bytes, 16, 0, 256, PROV_PUBLISHED,
              "bytes that the transmitter's data path leaves idle behind a TLP"),
    NFP_PARAM("aligned_requests", PARAM_BOOL, pcie.dma.aligned, 1, 0, 1, PROV_PUBLISHED,
              "requests end at multiples of Max_Payload_Size and Max_Read_Request_Size"),
    NFP_PARAM("mrrs_bytes", PARAM_U32, mrrs_bytes, 4096, 128, 4096, PROV_PUBLISHED,
              "Max_Read_Request_Size its driver sets"),
    NFP_PARAM("bar_bytes", PARAM_BYTES, bar_bytes, 134217728, 4096, 1e15, PROV_PUBLISHED,
              "size of BAR 0 (64-bit, prefetchable)"),
    { .type = PARAM_END },
};

static const struct stat_desc requester_stats[] = {
    PCIE_DMA_STATS(struct requester_state, function.dma),
    STAT_BOUND_ONLY("push_busy_ps", struct requester_state, push.busy.ps, "ps",
                    "time that the path into local memory was busy", path_peak),
    STAT_BOUND_ONLY("pull_busy_ps", struct requester_state, pull.busy.ps, "ps",
                    "time that the path out of local memory was busy", path_peak),
    STAT("bar_unsupported", STAT_COUNTER, struct requester_state, function.stats.unsupported, "1",
         0, "requests to it that it does not support"),
    { .kind = STAT_END },
};

static void queue_put(struct op_queue *queue, struct pcie_requester_op *op)
{
    op->next = NULL;
    *queue->tail = op;
    queue->tail = &op->next;
}

static struct pcie_requester_op *queue_take(struct op_queue *queue)
{
    struct pcie_requester_op *op = queue->head;
    queue->head = op->next;
    if (queue->head == NULL)
        queue->tail = &queue->head;
    return op;
}

static inline struct requester_state *state_of(struct pcie_requester_op *op)
{
    return op->model->state;
}

/* ---- Local memory ---------------------------------------------------------------------------- */

static uint64_t n_words(uint64_t bytes)
{
    return (bytes + WORD_BYTES - 1) / WORD_BYTES;
}

/* Asks for the bank of the next burst of an operation of so many bytes. */
static void path_ask(struct model *model, struct memory_path *path, uint64_t bytes)
{
    struct requester_state *state = model->state;
    const struct requester_params *params = &state->params;
    const uint64_t n = SIM_MIN(bytes - path->moved_bytes, params->burst_bytes);
    path->asked = true;
    path->bank_ps = sim_now(model->sim);
    if (params->bank_bytes == 0)
        return;
    sim_time *free_ps = &state->bank_free_ps[path->moved_bytes / params->bank_bytes % BANKS];
    path->bank_ps = SIM_MAX(path->bank_ps, *free_ps);
    *free_ps = path->bank_ps + n_words(n) * params->bank_word_ps;
}

/* What a burst but an operation's last takes the path: it is full. */
static sim_time full_burst_ps(const struct requester_params *params)
{
    return (n_words(params->burst_bytes) + 1) * params->word_ps;
}

/* All bursts but the last of an operation that is about to begin: without banks, nothing can come
 * between them, and they take no events. */
static void path_pass(const struct requester_params *params, struct memory_path *path,
                      uint64_t bytes)
{
    const uint64_t n = (bytes - 1) / params->burst_bytes;
    const sim_time bursts_ps = n * full_burst_ps(params);
    path->moved_bytes = n * params->burst_bytes;
    path->free_ps += bursts_ps;
    path->busy.ps += bursts_ps;
}

/* Begins with the next operation of the list, which is ready at ready_ps, when the path is free. */
static void path_begin(struct model *model, struct memory_path *path, uint64_t bytes,
                       sim_time ready_ps)
{
    const struct requester_state *state = model->state;
    const sim_time now_ps = sim_now(model->sim);
    path->moved_bytes = 0;
    path->asked = false;
    path->begun_ps = SIM_MAX(SIM_MAX(ready_ps, now_ps), path->free_ps);
    path->free_ps = path->begun_ps + state->params.descriptor_ps;
    path->busy.ps += state->params.descriptor_ps;
    if (state->params.bank_bytes == 0)
        path_pass(&state->params, path, bytes);
    sim_schedule(model->sim, &path->burst, path->free_ps);
    if (ready_ps <= now_ps)
        path_ask(model, path, bytes);
}

/*
 * Moves the next burst of an operation of so many bytes, which takes the path path_ps, and asks for
 * the bank of the one behind it; true: it was the last, and the path is free at path->free_ps.
 */
static bool path_burst(struct model *model, struct memory_path *path, uint64_t bytes,
                       sim_time path_ps)
{
    const struct requester_state *state = model->state;
    const sim_time now_ps = sim_now(model->sim);
    if (!path->asked)
        path_ask(model, path, bytes);
    const sim_time at_ps = SIM_MAX(now_ps, path->bank_ps);
    path->busy.ps += at_ps + path_ps - now_ps;
    path->free_ps = at_ps + path_ps;
    path->burst_end_ps = path->begun_ps = path->free_ps;
    path->moved_bytes += SIM_MIN(bytes - path->moved_bytes, state->params.burst_bytes);
    if (path->moved_bytes == bytes)
        return true;
    path_ask(model, path, bytes);
    sim_schedule(model->sim, &path->burst, path->free_ps);
    return false;
}

/* ---- The end of an operation ----------------------------------------------------------------- */

static void issue_reads(struct model *model);
static void issue_writes(struct model *model);

static void op_ends(struct sim *sim, struct sim_event *event)
{
    struct pcie_requester_op *op = SIM_CONTAINER(event, struct pcie_requester_op, event);
    struct model *model = op->model;
    struct requester_state *state = model->state;
    const bool bulk_write = op->interface == PCIE_REQUESTER_BULK && op->write;
    (void)sim;
    if (bulk_write)
        state->n_writes--;
    op->done(op, (enum pcie_dma_status)op->status);
    if (bulk_write)
        issue_writes(model);
}

static void finish(struct pcie_requester_op *op, sim_time at_ps)
{
    const struct requester_params *params = &state_of(op)->params;
    at_ps += op->interface == PCIE_REQUESTER_BULK ? params->bulk_complete_ps
                                                  : params->command_complete_ps;
    sim_stamp_mark(op->stamp, PART_DEVICE, at_ps);
    sim_event_init(&op->event, op_ends);
    sim_schedule(op->model->sim, &op->event, at_ps);
}

/* ---- Bulk reads ------------------------------------------------------------------------------ */

static void read_arrives(struct pcie_dma_request *request, enum pcie_dma_status status);

static void issue_reads(struct model *model)
{
    struct requester_state *state = model->state;
    while (state->reads_waiting.head != NULL && state->n_reads < state->params.reads_in_flight) {
        const sim_time now_ps = sim_now(model->sim);
        const sim_time at_ps = SIM_MAX(state->reads_waiting.head->decoded_ps, state->read_free_ps);
        if (at_ps > now_ps) {
            if (!sim_event_pending(&state->issue))
                sim_schedule(model->sim, &state->issue, at_ps);
            return;
        }
        struct pcie_requester_op *op = queue_take(&state->reads_waiting);
        state->read_free_ps = at_ps + state->params.read_interval_ps;
        if (op->bytes % WORD_BYTES != 0)
            state->read_free_ps += state->params.remainder_ps;
        state->n_reads++;
        queue_put(&state->reads_flying, op);
        sim_stamp_mark(op->stamp, PART_DEVICE, at_ps);
        pcie_dma_read(&state->function.dma, &op->dma, at_ps);
    }
}

static void issue_fires(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    issue_reads(SIM_CONTAINER(event, struct requester_state, issue)->function.model);
}

static void push_next(struct model *model);

static void read_pushed(struct sim *sim, struct sim_event *event)
{
    struct pcie_requester_op *op = SIM_CONTAINER(event, struct pcie_requester_op, event);
    struct model *model = op->model;
    struct requester_state *state = model->state;
    state->n_reads--;
    finish(op, sim_now(sim));
    issue_reads(model);
}

static void push_burst(struct sim *sim, struct sim_event *event)
{
    struct requester_state *state = SIM_CONTAINER(event, struct requester_state, push.burst);
    const struct requester_params *params = &state->params;
    struct pcie_requester_op *op = state->reads_flying.head;
    const uint64_t n = SIM_MIN(op->bytes - state->push.moved_bytes, params->burst_bytes);
    if (!path_burst(op->model, &state->push, op->bytes, (n_words(n) + 1) * params->word_ps))
        return;
    queue_take(&state->reads_flying);
    sim_stamp_mark(op->stamp, PART_DEVICE, state->push.free_ps);
    sim_event_init(&op->event, read_pushed);
    sim_schedule(sim, &op->event, state->push.free_ps);
    push_next(op->model);
}

/* The oldest read's data enters local memory, once it is here and the path is free. */
static void push_next(struct model *model)
{
    struct requester_state *state = model->state;
    struct pcie_requester_op *op = state->reads_flying.head;
    if (op != NULL && op->arrived && !sim_event_pending(&state->push.burst))
        path_begin(model, &state->push, op->bytes, sim_now(model->sim));
}

static void read_arrives(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct pcie_requester_op *op = SIM_CONTAINER(request, struct pcie_requester_op, dma);
    op->status = (uint8_t)status;
    op->arrived = true;
    push_next(op->model);
}

/* ---- Bulk writes ----------------------------------------------------------------------------- */

static void pull_next(struct model *model);

/* The head of writes_decoding is read out of local memory, then goes to the link. Bursts are asked
 * for whole. */
static void pull_burst(struct sim *sim, struct sim_event *event)
{
    struct requester_state *state = SIM_CONTAINER(event, struct requester_state, pull.burst);
    const struct requester_params *params = &state->params;
    struct pcie_requester_op *op = state->writes_decoding.head;
    struct model *model = op->model;
    const uint64_t left = op->bytes - state->pull.moved_bytes;
    sim_time path_ps = full_burst_ps(params);
    (void)sim;
    if (left <= params->burst_bytes && left > LINE_BYTES + WORD_BYTES)
        path_ps += params->line_ps;
    if (!path_burst(model, &state->pull, op->bytes, path_ps))
        return;
    queue_take(&state->writes_decoding);
    sim_stamp_mark(op->stamp, PART_DEVICE, state->pull.free_ps);
    pcie_dma_write(&state->function.dma, &op->dma, state->pull.free_ps);
    pull_next(model);
}

static void pull_next(struct model *model)
{
    struct requester_state *state = model->state;
    struct pcie_requester_op *op = state->writes_decoding.head;
    if (op != NULL && !sim_event_pending(&state->pull.burst))
        path_begin(model, &state->pull, op->bytes, op->decoded_ps);
}

static void issue_writes(struct model *model)
{
    struct requester_state *state = model->state;
    const struct requester_params *params = &state->params;
    while (state->writes_waiting.head != NULL && state->n_writes < params->writes_in_flight) {
        struct pcie_requester_op *op = queue_take(&state->writes_waiting);
        op->decoded_ps = sim_now(model->sim) + params->bulk_request_ps;
        state->n_writes++;
        queue_put(&state->writes_decoding, op);
    }
    pull_next(model);
}

static void write_sent(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct pcie_requester_op *op = SIM_CONTAINER(request, struct pcie_requester_op, dma);
    op->status = (uint8_t)status;
    finish(op, SIM_MAX(request->done_ps, sim_now(op->model->sim)));
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void command_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct pcie_requester_op *op = SIM_CONTAINER(request, struct pcie_requester_op, dma);
    const struct requester_state *state = state_of(op);
    const sim_time data_ps = op->write ? 0 : n_words(op->bytes) * state->params.word_ps;
    op->status = (uint8_t)status;
    finish(op, SIM_MAX(request->done_ps, sim_now(op->model->sim)) + data_ps);
}

static void submit_command(struct model *model, struct pcie_requester_op *op)
{
    struct requester_state *state = model->state;
    const sim_time data_ps = op->write ? n_words(op->bytes) * state->params.word_ps : 0;
    sim_time at_ps = sim_now(model->sim) + state->params.command_request_ps + data_ps;
    SIM_ASSERT(op->bytes <= PCIE_REQUESTER_COMMAND_BYTES_MAX, "%s: command of %u bytes",
               model->name, op->bytes);
    op->dma.done = command_done;
    sim_stamp_mark(op->stamp, PART_DEVICE, at_ps);
    if (op->write)
        pcie_dma_write(&state->function.dma, &op->dma, at_ps);
    else
        pcie_dma_read(&state->function.dma, &op->dma, at_ps);
}

void pcie_requester_submit(struct model *model, struct pcie_requester_op *op)
{
    struct requester_state *state = model->state;
    op->model = model;
    op->arrived = false;
    op->dma = (struct pcie_dma_request){ .iova = op->iova,
                                         .bytes = op->bytes,
                                         .buffer = op->buffer,
                                         .bulk = op->bulk,
                                         .stamp = op->stamp,
                                         .independent = op->interface == PCIE_REQUESTER_BULK,
                                         .done = op->write ? write_sent : read_arrives };
    if (op->interface == PCIE_REQUESTER_COMMAND) {
        submit_command(model, op);
    } else if (op->write) {
        queue_put(&state->writes_waiting, op);
        issue_writes(model);
    } else {
        op->decoded_ps = sim_now(model->sim) + state->params.bulk_request_ps;
        queue_put(&state->reads_waiting, op);
        issue_reads(model);
    }
}

/* ---- As a target ----------------------------------------------------------------------------- */

static struct requester_state *requester_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct requester_state, function);
}

static uint32_t read_register(struct pcie_function *function, uint64_t offset)
{
    uint32_t value = 0;
    if (offset < REGISTER_BYTES)
        memcpy(&value, &requester_of(function)->reg[offset], sizeof(value));
    return value;
}

static void write_register(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    if (offset < REGISTER_BYTES)
        memcpy(&requester_of(function)->reg[offset], &value, sizeof(value));
}

/* Operations that are under way or wait end without effect. */
static void function_reset(struct pcie_function *function)
{
    memset(requester_of(function)->reg, 0, REGISTER_BYTES);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void requester_init(struct model *model, struct sim_error_list *errors)
{
    static const struct pcie_function_ops ops = { .reset = function_reset };
    struct requester_state *state = model->state;
    struct requester_params *params = &state->params;
    size_t before = errors->n_messages;
    pcie_function_power_of_two(model, "tx_align_bytes", params->tx_align_bytes, errors);
    pcie_function_power_of_two(model, "mrrs_bytes", params->mrrs_bytes, errors);
    pcie_function_power_of_two(model, "bar_bytes", params->bar_bytes, errors);
    pcie_function_ports(model, 1, &params->pcie, errors);
    if (errors->n_messages != before)
        return;
    model->ports[0].tx_align_bytes = params->tx_align_bytes;
    model->ports[0].tx_gap_bytes = params->tx_gap_bytes;
    sim_event_init(&state->issue, issue_fires);
    sim_event_init(&state->push.burst, push_burst);
    sim_event_init(&state->pull.burst, pull_burst);
    state->reads_waiting.tail = &state->reads_waiting.head;
    state->reads_flying.tail = &state->reads_flying.head;
    state->writes_waiting.tail = &state->writes_waiting.head;
    state->writes_decoding.tail = &state->writes_decoding.head;
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &params->pcie,
        .identity = { .vendor_id = 0x19ee,
                      .device_id = 0x6000,
                      .subsystem_vendor_id = 0x19ee,
                      .class_code = 0x020000 },
        .function_reset = true,
        .bar = { { params->bar_bytes, CFG_BAR_64 | CFG_BAR_PREFETCH, read_register, write_register,
                   .by_bytes = true } }
    };
    pcie_function_init(&state->function, model, &desc);
}

static void requester_release(struct model *model)
{
    struct requester_state *state = model->state;
    sim_cancel(model->sim, &state->issue);
    sim_cancel(model->sim, &state->push.burst);
    sim_cancel(model->sim, &state->pull.burst);
    pcie_function_release(&state->function);
}

uint16_t pcie_requester_id(const struct model *requester)
{
    return ((const struct requester_state *)requester->state)->function.cfg.id;
}

unsigned pcie_requester_mrrs_bytes(const struct model *requester)
{
    return ((const struct requester_state *)requester->state)->params.mrrs_bytes;
}

struct cfg_space *pcie_requester_config_space(struct model *requester)
{
    return &((struct requester_state *)requester->state)->function.cfg;
}

/* What is taken of the path from now on. */
static void path_settle(struct memory_path *path, sim_time now_ps)
{
    const sim_time begun_ps = SIM_MAX(path->begun_ps, now_ps);
    stat_busy_settle(&path->busy, SIM_MAX(path->burst_end_ps, now_ps) - now_ps +
                                      SIM_MAX(path->free_ps, begun_ps) - begun_ps);
}

static void requester_settle(struct model *model)
{
    struct requester_state *state = model->state;
    path_settle(&state->push, sim_now(model->sim));
    path_settle(&state->pull, sim_now(model->sim));
    state->path_peak.per_s = (double)SIM_PS_PER_S;
}

const struct model_ops pcie_requester_ops = {
    .type = "pcie.requester",
    .help = "adapter with a command interface and a bulk DMA engine (NFP-6000 class)",
    .state_bytes = sizeof(struct requester_state),
    .params = requester_params_table,
    .stats = requester_stats,
    .init = requester_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .settle = requester_settle,
    .release = requester_release,
};
