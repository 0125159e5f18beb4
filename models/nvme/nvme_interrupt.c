/*
 * Interrupts of nvme.controller.
 *
 * Models: an MSI-X message for each completion; interrupt coalescing: of completions of I/O queues
 *   a vector waits for a number, or for a time since the first, unless the vector is exempt.
 * Does not model: pin interrupts and MSI.
 * Timing: a message goes behind the completion; coalesced ones with the last of their number, or
 *   when the time is over and a queue of the vector holds entries that the host has not taken.
 * Sources: NVM Express 1.3, sections 5.21.1.8, 5.21.1.9, 7.5.
 */
#include "models/nvme/nvme_internal.h"

#define TIME_UNIT_PS (100 * SIM_PS_PER_US)

static void send(struct nvme_vector *vector)
{
    struct nvme *nvme = vector->nvme;
    vector->n = 0;
    sim_cancel(nvme_sim(nvme), &vector->timer);
    pcie_function_interrupt(&nvme->function, (unsigned)(vector - nvme->vector));
}

static void time_over(struct sim *sim, struct sim_event *event)
{
    struct nvme_vector *vector = SIM_CONTAINER(event, struct nvme_vector, timer);
    struct nvme *nvme = vector->nvme;
    (void)sim;
    vector->n = 0;
    for (uint32_t q = 1; q < nvme->n_queues && nvme_running(nvme); q++) {
        const struct nvme_cq *cq = &nvme->cq[q];
        if (cq->there && cq->interrupts && &nvme->vector[cq->vector] == vector &&
            cq->head != cq->tail) {
            send(vector);
            return;
        }
    }
}

void nvme_interrupt(struct nvme *nvme, const struct nvme_cq *cq)
{
    const struct nvme_features *features = &nvme->features[NVME_SELECT_CURRENT];
    const uint32_t threshold = (features->coalescing & 0xffu) + 1, time = features->coalescing >> 8;
    struct nvme_vector *vector = &nvme->vector[cq->vector];
    if (!cq->interrupts)
        return;
    if (SIM_LIKELY(time == 0) || cq->number == 0 ||
        (features->vector[cq->vector] & NVME_VECTOR_NOT_COALESCED) != 0) {
        pcie_function_interrupt(&nvme->function, cq->vector);
    } else if (++vector->n >= threshold) {
        send(vector);
    } else {
        nvme->sub->stats.coalesced++;
        if (vector->n == 1)
            sim_schedule_in(nvme_sim(nvme), &vector->timer, time * TIME_UNIT_PS);
    }
}

void nvme_interrupts_init(struct nvme *nvme)
{
    for (unsigned v = 0; v < NVME_QUEUES_MAX; v++) {
        nvme->vector[v].nvme = nvme;
        sim_event_init(&nvme->vector[v].timer, time_over);
    }
}

void nvme_interrupts_stop(struct nvme *nvme)
{
    for (unsigned v = 0; v < NVME_QUEUES_MAX; v++) {
        nvme->vector[v].n = 0;
        sim_cancel(nvme_sim(nvme), &nvme->vector[v].timer);
    }
}
