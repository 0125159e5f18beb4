/*
 * Asynchronous events of nvme.controller.
 *
 * Models: Asynchronous Event Requests that wait, up to a limit; events of a type are reported once
 *   and masked from then on, until the host reads the log page that belongs to them without Retain
 *   Asynchronous Event; what has happened without a request waits for one. Bad doorbells, and a
 *   temperature beyond its thresholds.
 * Does not model: notices (namespaces, firmware), since nothing of the kind happens.
 * Sources: NVM Express 1.3, section 5.2; 5.21.1.11.
 */
#include "models/nvme/nvme_internal.h"

/* The log page that belongs to events of a type. */
static const uint8_t log_of_type[NVME_EVENT_TYPES] = {
    [NVME_EVENT_ERROR] = NVME_LOG_ERROR, [NVME_EVENT_HEALTH] = NVME_LOG_HEALTH
};

static struct nvme_command *take_request(struct nvme *nvme)
{
    struct nvme_command *command = nvme->requests;
    nvme->requests = command->next;
    nvme->n_requests--;
    return command;
}

/* What can be reported now. */
static void report(struct nvme *nvme)
{
    for (unsigned type = 0; type < NVME_EVENT_TYPES; type++) {
        struct nvme_event *event = &nvme->event[type];
        if (nvme->requests == NULL || event->masked || event->pending == 0)
            continue;
        unsigned information = (unsigned)__builtin_ctz(event->pending);
        struct nvme_command *command = take_request(nvme);
        event->pending = 0; /* the log page tells of the others */
        event->masked = true;
        command->result = type | information << 8 | (uint32_t)log_of_type[type] << 16;
        nvme->sub->stats.events++;
        nvme_complete(command, NVME_SC_SUCCESS);
    }
}

void nvme_event(struct nvme *nvme, enum nvme_event_type type, unsigned information)
{
    struct nvme_event *event = &nvme->event[type];
    if (event->masked)
        return;
    event->pending |= (uint8_t)(1u << information);
    report(nvme);
}

void nvme_event_clear(struct nvme *nvme, unsigned type)
{
    nvme->event[type] = (struct nvme_event){ 0 };
}

void nvme_event_request(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    struct nvme_command **at = &nvme->requests;
    if (nvme->n_requests == NVME_EVENT_REQUESTS_MAX) {
        nvme_complete(command, NVME_SC_ASYNC_LIMIT);
        return;
    }
    while (*at != NULL)
        at = &(*at)->next;
    *at = command;
    command->next = NULL;
    command->step = NVME_WAITS;
    nvme->n_requests++;
    report(nvme);
}

void nvme_event_abort(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    struct nvme_command **at = &nvme->requests;
    while (*at != command)
        at = &(*at)->next;
    *at = command->next;
    command->next = nvme->requests;
    nvme->requests = command;
    nvme_complete(take_request(nvme), NVME_SC_ABORT_REQUESTED);
}

void nvme_events_reset(struct nvme *nvme)
{
    for (unsigned type = 0; type < NVME_EVENT_TYPES; type++)
        nvme_event_clear(nvme, type);
    while (nvme->requests != NULL)
        nvme_command_free(take_request(nvme));
}
