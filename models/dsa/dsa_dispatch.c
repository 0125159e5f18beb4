/*
 * From work queues to engines.
 *
 * Models: queues of a group share its engines, each with as many turns in a round as its priority
 *   says; an engine has several descriptors and one batch under way, and takes from both by turns;
 *   the list of a batch is read ahead; fences within a batch, behind which nothing follows a
 *   failure; drains, which wait at the head of their queue for all that it handed over before.
 * Does not model: a batch spread over several engines; progress limits of GRPFLGCFG.
 * Timing: from the queue or the batch to the first request `descriptor_ns`; an engine begins one
 *   descriptor every `descriptor_interval_ns`. The list of a batch is read DSA_BATCH_FETCH
 *   descriptors at a time, so many ahead.
 * Sources: Intel Data Streaming Accelerator Architecture Specification, "Engines and groups",
 *   "Batch descriptor", "Fence", "Drain descriptor"; docs/sources.md#dsa.
 */
#include <stdlib.h>
#include <string.h>

#include "models/dsa/dsa_internal.h"

/* ---- Tasks of a queue ------------------------------------------------------------------------ */

static void task_begins(struct dsa_task *task, struct dsa_queue *queue)
{
    struct dsa_task **at = &queue->under_way;
    *task = (struct dsa_task){ .queue = queue, .sequence = queue->submitted - queue->n };
    while (*at != NULL)
        at = &(*at)->next;
    *at = task;
}

static void task_ends(struct dsa_task *task)
{
    struct dsa_queue *queue = task->queue;
    struct dsa_task **at = &queue->under_way;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
}

uint64_t dsa_queue_oldest(const struct dsa_queue *queue)
{
    return queue->under_way != NULL ? queue->under_way->sequence : queue->submitted - queue->n;
}

/* ---- Batches --------------------------------------------------------------------------------- */

static struct dsa_queue *queue_of(const struct dsa_work *work)
{
    return work->batch != NULL ? work->batch->task.queue : work->task.queue;
}

static void batch_look(struct dsa_batch *batch);

static void list_arrived(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct dsa_batch *batch = SIM_CONTAINER(request, struct dsa_batch, fetch);
    batch->reading = false;
    if (status != PCIE_DMA_OK) {
        batch->outcome.status = DSA_STATUS_BATCH_FAULT;
        batch->outcome.fault_address = request->iova.v;
        batch->cut = true;
    } else {
        batch->fetched += (uint32_t)(request->bytes / DSA_DESCRIPTOR_BYTES);
    }
    dsa_dispatch(batch->dsa);
    batch_look(batch);
}

/* As long as there is room for as many as are read at a time. */
static void read_list(struct dsa_batch *batch)
{
    const uint32_t left = batch->descriptor.bytes - batch->fetched;
    const uint32_t n = SIM_MIN(left, DSA_BATCH_FETCH);
    if (batch->reading || batch->cut || batch->aborted || left == 0 ||
        batch->fetched - batch->started > DSA_BATCH_BUFFER - DSA_BATCH_FETCH)
        return;
    batch->reading = true;
    batch->fetch = (struct pcie_dma_request){
        .iova = { batch->descriptor.source + (uint64_t)batch->fetched * DSA_DESCRIPTOR_BYTES },
        .bytes = (uint64_t)n * DSA_DESCRIPTOR_BYTES,
        .buffer = (uint8_t *)&batch->list[batch->fetched % DSA_BATCH_BUFFER],
        .done = list_arrived
    };
    pcie_dma_read(&batch->dsa->function.dma, &batch->fetch, 0);
}

/* It has begun, and its record is not being written. */
static bool is_open(const struct dsa_batch *batch)
{
    return batch->engine != NULL && !batch->writing && !sim_event_pending(&batch->start);
}

/* Ends the batch if nothing of it is under way and nothing will follow. */
static void batch_look(struct dsa_batch *batch)
{
    if (!is_open(batch))
        return;
    read_list(batch); /* which may fail at once, and end it */
    if (!is_open(batch) || batch->reading || batch->ended != batch->started)
        return;
    if (batch->aborted)
        dsa_batch_free(batch);
    else if (batch->cut || batch->started == batch->descriptor.bytes)
        dsa_batch_end(batch);
}

static void batch_begins(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    batch_look(SIM_CONTAINER(event, struct dsa_batch, start));
}

void dsa_batch_free(struct dsa_batch *batch)
{
    struct dsa_device *dsa = batch->dsa;
    dsa->stats.batches++;
    dsa->stats.aborted += batch->aborted;
    batch->engine = NULL;
    task_ends(&batch->task);
    dsa_command_look(dsa);
    dsa_dispatch(dsa);
}

/* The next descriptor of the engine's batch that may begin; NULL: none now. */
static const struct dsa_descriptor *next_of_batch(struct dsa_batch *batch)
{
    if (batch->engine == NULL || batch->cut || batch->aborted || batch->started == batch->fetched)
        return NULL;
    const struct dsa_descriptor *next = &batch->list[batch->started % DSA_BATCH_BUFFER];
    if (!(dsa_flags(next) & DSA_FLAG_FENCE))
        return next;
    if (batch->ended != batch->started)
        return NULL;
    if (batch->failed == 0)
        return next;
    batch->cut = true;
    return NULL;
}

/* ---- Works ----------------------------------------------------------------------------------- */

static void work_begins(struct sim *sim, struct sim_event *event)
{
    struct dsa_work *work = SIM_CONTAINER(event, struct dsa_work, start);
    (void)sim;
    if (work->aborted) {
        dsa_work_end(work);
        return;
    }
    work->outcome.status = (uint8_t)dsa_check(work->dsa, queue_of(work), &work->descriptor,
                                              work->batch != NULL, &work->outcome.invalid_flags);
    if (work->outcome.status != DSA_STATUS_NONE) {
        dsa_work_end(work);
    } else if (dsa_operation(&work->descriptor) == DSA_OP_MOVE) {
        dsa_move_begin(work);
    } else { /* no-op; drain, which has waited in its queue */
        work->outcome.status = DSA_STATUS_SUCCESS;
        dsa_work_end(work);
    }
}

void dsa_work_free(struct dsa_work *work)
{
    struct dsa_device *dsa = work->dsa;
    struct dsa_engine *engine = work->engine;
    struct dsa_batch *batch = work->batch;

    dsa->stats.descriptors++;
    dsa->stats.aborted += work->aborted;
    dsa->stats.failed += !work->aborted && work->outcome.status != DSA_STATUS_SUCCESS;
    engine->n_works--;
    work->engine = NULL;
    work->next = engine->free_work;
    engine->free_work = work;
    if (batch != NULL) {
        batch->ended++;
        batch->failed += work->outcome.status != DSA_STATUS_SUCCESS;
        dsa_dispatch(dsa);
        batch_look(batch);
        return;
    }
    task_ends(&work->task);
    dsa_command_look(dsa);
    dsa_dispatch(dsa);
}

/* The time at which the engine begins a descriptor that it takes now. */
static sim_time begin_at(struct dsa_engine *engine)
{
    const struct dsa_params *params = &engine->dsa->params;
    const sim_time at_ps = SIM_MAX(dsa_now(engine->dsa) + params->descriptor_ps, engine->next_ps);
    engine->next_ps = at_ps + params->interval_ps;
    return at_ps;
}

static struct dsa_work *work_new(struct dsa_engine *engine, const struct dsa_descriptor *descriptor)
{
    struct dsa_device *dsa = engine->dsa;
    struct dsa_work *work = engine->free_work;
    engine->free_work = work->next;
    engine->n_works++;
    *work = (struct dsa_work){ .dsa = dsa, .engine = engine, .descriptor = *descriptor };
    sim_event_init(&work->start, work_begins);
    sim_schedule(dsa->model->sim, &work->start, begin_at(engine));
    return work;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

/* Whether the engine could begin the queue's next descriptor now. A drain waits in the queue: in
 * the engine it would have a place that what it waits for may need. A batch that is wrong ends like
 * any other descriptor. */
static bool may_begin(const struct dsa_engine *engine, const struct dsa_queue *queue)
{
    if (queue->n == 0 || queue->group != engine->group)
        return false;
    switch (dsa_operation(&queue->entry[queue->first])) {
    case DSA_OP_BATCH: return engine->batch.engine == NULL;
    case DSA_OP_DRAIN: return queue->under_way == NULL;
    default: return true;
    }
}

/* The group's next queue, as many times in a row as its priority says. */
static struct dsa_queue *choose_queue(struct dsa_engine *engine)
{
    struct dsa_device *dsa = engine->dsa;
    struct dsa_group *group = engine->group;
    const uint32_t n = dsa->params.queues;
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < n; k++) {
            struct dsa_queue *queue = &dsa->queue[(group->turn + k) % n];
            if (queue->turns == 0 || !may_begin(engine, queue))
                continue;
            queue->turns--;
            group->turn = (queue->idx + (queue->turns == 0)) % n;
            return queue;
        }
        for (uint32_t k = 0; k < n; k++)
            if (dsa->queue[k].group == group)
                dsa->queue[k].turns = (dsa->queue[k].config[DSA_WQCFG_MODE / 4] &
                                       DSA_WQCFG_PRIORITY_MASK) >>
                                      DSA_WQCFG_PRIORITY_SHIFT;
    }
    return NULL;
}

static void begin_batch(struct dsa_engine *engine, struct dsa_queue *queue,
                        const struct dsa_descriptor *descriptor)
{
    struct dsa_batch *batch = &engine->batch;
    *batch = (struct dsa_batch){ .dsa = engine->dsa, .engine = engine, .descriptor = *descriptor };
    sim_event_init(&batch->start, batch_begins);
    task_begins(&batch->task, queue);
    sim_schedule(engine->dsa->model->sim, &batch->start, begin_at(engine));
}

static bool begin_from_queue(struct dsa_engine *engine)
{
    /* The end of a batch, just now, may have been that of a reset. */
    struct dsa_queue *queue = engine->group != NULL ? choose_queue(engine) : NULL;
    uint32_t flags;
    if (queue == NULL)
        return false;
    const struct dsa_descriptor *next = &queue->entry[queue->first];
    if (dsa_operation(next) == DSA_OP_BATCH &&
        dsa_check(engine->dsa, queue, next, false, &flags) == DSA_STATUS_NONE)
        begin_batch(engine, queue, next);
    else
        task_begins(&work_new(engine, next)->task, queue);
    queue->first = (queue->first + 1) % engine->dsa->params.entries;
    queue->n--;
    return true;
}

static bool begin_from_batch(struct dsa_engine *engine)
{
    struct dsa_batch *batch = &engine->batch;
    const struct dsa_descriptor *next = next_of_batch(batch);
    if (next == NULL) {
        if (batch->cut)
            batch_look(batch);
        return false;
    }
    struct dsa_work *work = work_new(engine, next);
    work->batch = batch;
    work->batch_idx = (uint16_t)batch->started++;
    read_list(batch);
    return true;
}

static bool begin_next(struct dsa_engine *engine)
{
    if (engine->group == NULL || engine->n_works == engine->dsa->params.engine_descriptors)
        return false;
    engine->batch_turn = !engine->batch_turn;
    if (engine->batch_turn)
        return begin_from_batch(engine) || begin_from_queue(engine);
    return begin_from_queue(engine) || begin_from_batch(engine);
}

/* Engines by turns, each of them one at a time, so that those of a group share its queues. */
void dsa_dispatch(struct dsa_device *dsa)
{
    const uint32_t n = dsa->params.engines;
    dsa->dispatch_again = true;
    if (dsa->dispatching)
        return; /* the loop below does it */
    dsa->dispatching = true;
    for (uint32_t idle = 0; idle < n;) {
        struct dsa_engine *engine = &dsa->engine[dsa->engine_turn];
        dsa->dispatch_again = false;
        dsa->engine_turn = (dsa->engine_turn + 1) % n;
        idle = begin_next(engine) || dsa->dispatch_again ? 0 : idle + 1;
    }
    dsa->dispatching = false;
}

/* ---- Abort, reset ---------------------------------------------------------------------------- */

void dsa_queue_abort(struct dsa_device *dsa, struct dsa_queue *queue)
{
    dsa->stats.aborted += queue->n;
    queue->first = (queue->first + queue->n) % dsa->params.entries;
    queue->n = 0;
    for (uint32_t e = 0; e < dsa->params.engines; e++) {
        struct dsa_batch *batch = &dsa->engine[e].batch;
        if (batch->engine != NULL && batch->task.queue == queue && !batch->writing)
            batch->aborted = true;
    }
    /* What has requests under way ends with the last of them. */
    for (uint32_t i = 0; i < dsa->params.engines * dsa->params.engine_descriptors; i++) {
        struct dsa_work *work = &dsa->works[i];
        if (work->engine == NULL || work->writing || queue_of(work) != queue)
            continue;
        work->aborted = true;
        if (work->n_units == 0 && !sim_event_pending(&work->start))
            dsa_work_end(work);
    }
    for (uint32_t e = 0; e < dsa->params.engines; e++)
        if (dsa->engine[e].batch.aborted)
            batch_look(&dsa->engine[e].batch);
}

void dsa_dispatch_reset(struct dsa_device *dsa)
{
    struct sim *sim = dsa->model->sim;
    for (uint32_t i = 0; i < dsa->params.queues; i++) {
        struct dsa_queue *queue = &dsa->queue[i];
        dsa->stats.aborted += queue->n;
        queue->n = 0;
        queue->under_way = NULL;
    }
    for (uint32_t e = 0; e < dsa->params.engines; e++) {
        struct dsa_engine *engine = &dsa->engine[e];
        if (engine->batch.engine != NULL)
            sim_cancel(sim, &engine->batch.start);
        engine->batch.engine = NULL;
        engine->n_works = 0;
        engine->moving = engine->free_work = NULL;
        for (uint32_t i = dsa->params.engine_descriptors; i-- > 0;) {
            struct dsa_work *work = &dsa->works[e * dsa->params.engine_descriptors + i];
            if (work->engine != NULL)
                sim_cancel(sim, &work->start);
            work->engine = NULL;
            work->next = engine->free_work;
            engine->free_work = work;
        }
    }
}

void dsa_dispatch_init(struct dsa_device *dsa)
{
    const struct dsa_params *params = &dsa->params;
    dsa->works = sim_zalloc((size_t)params->engines * params->engine_descriptors,
                            sizeof(*dsa->works));
    for (uint32_t i = 0; i < params->queues; i++) {
        dsa->queue[i].idx = i;
        dsa->queue[i].entry = sim_zalloc(params->entries, sizeof(*dsa->queue[i].entry));
    }
    for (uint32_t i = 0; i < params->groups; i++)
        dsa->group[i].idx = i;
    for (uint32_t i = 0; i < params->engines; i++)
        dsa->engine[i].dsa = dsa;
    dsa_dispatch_reset(dsa);
}

void dsa_dispatch_release(struct dsa_device *dsa)
{
    if (dsa->works == NULL)
        return;
    dsa_dispatch_reset(dsa);
    for (uint32_t i = 0; i < dsa->params.queues; i++)
        free(dsa->queue[i].entry);
    free(dsa->works);
}
