/*
 * Features of nvme.controller: Get Features, Set Features.
 *
 * Models: the features that are mandatory, each with current, default and saved value; a controller
 *   begins with the saved ones after a reset. What acts: Arbitration, Temperature Threshold, Number
 *   of Queues (fixed), Interrupt Coalescing, Interrupt Vector Configuration, Asynchronous Event
 *   Configuration. Power Management knows one state; Error Recovery and Write Atomicity are kept.
 * Does not model: the optional features.
 * Sources: NVM Express 1.3, sections 5.13, 5.21.
 */
#include "models/nvme/nvme_internal.h"

#define TEMPERATURE_SENSOR(cdw11) ((cdw11) >> 16 & 0xfu)
#define TEMPERATURE_TYPE(cdw11)   ((cdw11) >> 20 & 0x3u)
#define QUEUES_BITS               16

/* ---- Values ---------------------------------------------------------------------------------- */

static uint32_t log2_up(uint32_t value)
{
    uint32_t log2 = 0;
    while (1u << log2 < value)
        log2++;
    return log2;
}

void nvme_features_init(struct nvme *nvme)
{
    struct nvme_features *features = &nvme->features[NVME_SELECT_DEFAULT];
    *features = (struct nvme_features){
        .arbitration = log2_up(nvme_params(nvme)->fetch_burst),
        .over_k = NVME_WARNING_K,
    };
    for (uint32_t v = 0; v < NVME_QUEUES_MAX; v++)
        features->vector[v] = v;
    nvme->features[NVME_SELECT_SAVED] = *features;
    nvme->features[NVME_SELECT_CURRENT] = *features;
}

void nvme_features_reset(struct nvme *nvme)
{
    nvme->features[NVME_SELECT_CURRENT] = nvme->features[NVME_SELECT_SAVED];
}

bool nvme_too_hot_or_cold(const struct nvme *nvme)
{
    const struct nvme_features *features = &nvme->features[NVME_SELECT_CURRENT];
    return NVME_TEMPERATURE_K >= features->over_k || NVME_TEMPERATURE_K <= features->under_k;
}

static uint32_t *arbitration(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    (void)sqe;
    return &features->arbitration;
}

static uint32_t *power(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    (void)sqe;
    return &features->power;
}

static uint32_t *temperature(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    return TEMPERATURE_TYPE(sqe->cdw11) == 0 ? &features->over_k : &features->under_k;
}

static uint32_t *error_recovery(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    return &features->error_recovery[sqe->nsid == NVME_NSID_ALL ? 0 : sqe->nsid - 1];
}

static uint32_t *coalescing(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    (void)sqe;
    return &features->coalescing;
}

static uint32_t *vector(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    return &features->vector[sqe->cdw11 & 0xffffu];
}

static uint32_t *write_atomicity(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    (void)sqe;
    return &features->write_atomicity;
}

static uint32_t *async_events(struct nvme_features *features, const struct nvme_sqe *sqe)
{
    (void)sqe;
    return &features->async_events;
}

/* ---- Checks: what both commands name, and what is to be set ---------------------------------- */

static enum nvme_status check_temperature(struct nvme_command *command, bool set)
{
    const uint32_t cdw11 = command->sqe.cdw11, sensor = TEMPERATURE_SENSOR(cdw11);
    if (TEMPERATURE_TYPE(cdw11) > 1)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 20));
    if (sensor != 0 && !(set && sensor == NVME_TEMPERATURE_ALL))
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 16));
    return NVME_SC_SUCCESS;
}

static enum nvme_status check_power(struct nvme_command *command, bool set)
{
    if (set && (command->sqe.cdw11 & 0x1fu) != 0) /* NPSS is 0 */
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 0));
    return NVME_SC_SUCCESS;
}

static enum nvme_status check_error_recovery(struct nvme_command *command, bool set)
{
    const uint32_t nsid = command->sqe.nsid;
    if (!(set && nsid == NVME_NSID_ALL) &&
        (nsid == 0 || nsid > nvme_params(command->nvme)->n_namespaces))
        return nvme_wrong(command, NVME_SC_INVALID_NAMESPACE, NVME_AT(nsid, 0));
    if (set && (command->sqe.cdw11 & 0x10000u) != 0) /* DULBE, which NSFEAT does not offer */
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 16));
    return NVME_SC_SUCCESS;
}

static enum nvme_status check_vector(struct nvme_command *command, bool set)
{
    (void)set;
    if ((command->sqe.cdw11 & 0xffffu) >= command->nvme->n_vectors)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 0));
    return NVME_SC_SUCCESS;
}

/* Not while there are queues for I/O (5.21.1.7). */
static enum nvme_status check_queues(struct nvme_command *command, bool set)
{
    const struct nvme *nvme = command->nvme;
    const uint32_t wanted = command->sqe.cdw11;
    if (!set)
        return NVME_SC_SUCCESS;
    if ((wanted & 0xffffu) == 0xffffu || wanted >> QUEUES_BITS == 0xffffu)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 0));
    for (uint32_t q = 1; q < nvme->n_queues; q++)
        if (nvme->cq[q].there || (nvme->sq[q] != NULL && nvme->sq[q]->there))
            return nvme_wrong(command, NVME_SC_SEQUENCE_ERROR, NVME_NOWHERE);
    return NVME_SC_SUCCESS;
}

#define SAVED   (NVME_FEATURE_SAVEABLE | NVME_FEATURE_CHANGEABLE)
#define CHANGED NVME_FEATURE_CHANGEABLE
const struct nvme_feature_desc nvme_features[NVME_FEATURES] = {
    [NVME_FEATURE_ARBITRATION] = { "Arbitration", SAVED, 0xffffff07u, arbitration, NULL },
    [NVME_FEATURE_POWER] = { "Power Management", SAVED, 0xffu, power, check_power },
    [NVME_FEATURE_TEMPERATURE] = { "Temperature Threshold", SAVED, 0xffffu, temperature,
                                   check_temperature },
    [NVME_FEATURE_ERROR_RECOVERY] = { "Error Recovery", SAVED | NVME_FEATURE_PER_NAMESPACE, 0xffffu,
                                      error_recovery, check_error_recovery },
    [NVME_FEATURE_QUEUES] = { "Number of Queues", CHANGED, 0, NULL, check_queues },
    [NVME_FEATURE_COALESCING] = { "Interrupt Coalescing", SAVED, 0xffffu, coalescing, NULL },
    [NVME_FEATURE_VECTOR] = { "Interrupt Vector Configuration", SAVED, 0x1ffffu, vector,
                              check_vector },
    [NVME_FEATURE_WRITE_ATOMICITY] = { "Write Atomicity Normal", SAVED, 0x1u, write_atomicity,
                                       NULL },
    [NVME_FEATURE_ASYNC_EVENTS] = { "Asynchronous Event Configuration", SAVED, 0x1fu, async_events,
                                    NULL },
};

static const struct nvme_feature_desc *find(const struct nvme_command *command)
{
    const uint32_t id = command->sqe.cdw10 & 0xffu;
    return id < NVME_FEATURES && nvme_features[id].name != NULL ? &nvme_features[id] : NULL;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static enum nvme_status get(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const struct nvme_feature_desc *feature = find(command);
    const uint32_t select = command->sqe.cdw10 >> NVME_FEATURE_SELECT_SHIFT & 0x7u;
    enum nvme_status status;
    if (feature == NULL)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0));
    if (select > NVME_SELECT_SUPPORTED)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 8));
    if (select == NVME_SELECT_SUPPORTED) {
        command->result = feature->capabilities;
        return NVME_SC_SUCCESS;
    }
    status = feature->check != NULL ? feature->check(command, false) : NVME_SC_SUCCESS;
    if (status != NVME_SC_SUCCESS)
        return status;
    if (feature->value != NULL)
        command->result = *feature->value(&nvme->features[select], &command->sqe);
    else
        command->result = (nvme->n_queues - 2) << QUEUES_BITS | (nvme->n_queues - 2);
    return NVME_SC_SUCCESS;
}

void nvme_get_features(struct nvme_command *command)
{
    nvme_complete(command, get(command));
}

static void put(struct nvme_command *command, const struct nvme_feature_desc *feature,
                enum nvme_feature_select select)
{
    struct nvme_sqe sqe = command->sqe;
    const bool all = (feature->capabilities & NVME_FEATURE_PER_NAMESPACE) != 0 &&
                     sqe.nsid == NVME_NSID_ALL;
    const uint32_t first = all ? 1 : sqe.nsid;
    const uint32_t last = all ? nvme_params(command->nvme)->n_namespaces : first;
    for (sqe.nsid = first; sqe.nsid <= last && sqe.nsid >= first; sqe.nsid++)
        *feature->value(&command->nvme->features[select], &sqe) = sqe.cdw11 & feature->mask;
}

static enum nvme_status set(struct nvme_command *command)
{
    const struct nvme_feature_desc *feature = find(command);
    const bool save = (command->sqe.cdw10 & NVME_FEATURE_SAVE) != 0;
    const uint32_t nsid = command->sqe.nsid;
    enum nvme_status status;
    if (feature == NULL)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0));
    if (save && (feature->capabilities & NVME_FEATURE_SAVEABLE) == 0)
        return nvme_wrong(command, NVME_SC_FEATURE_NOT_SAVEABLE, NVME_AT(cdw10, 31));
    if ((feature->capabilities & NVME_FEATURE_PER_NAMESPACE) == 0 && nsid != 0 &&
        nsid != NVME_NSID_ALL)
        return nvme_wrong(command, NVME_SC_FEATURE_NOT_PER_NAMESPACE, NVME_AT(nsid, 0));
    status = feature->check != NULL ? feature->check(command, true) : NVME_SC_SUCCESS;
    if (status != NVME_SC_SUCCESS)
        return status;
    if (feature->value == NULL) {
        command->result = (command->nvme->n_queues - 2) << QUEUES_BITS |
                          (command->nvme->n_queues - 2);
        return NVME_SC_SUCCESS;
    }
    put(command, feature, NVME_SELECT_CURRENT);
    if (save)
        put(command, feature, NVME_SELECT_SAVED);
    return NVME_SC_SUCCESS;
}

void nvme_set_features(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    enum nvme_status status = set(command);
    const bool health = (nvme->features[NVME_SELECT_CURRENT].async_events &
                         NVME_WARN_TEMPERATURE) != 0;
    const uint32_t id = command->sqe.cdw10 & 0xffu;
    nvme_complete(command, status);
    if (status == NVME_SC_SUCCESS && health && nvme_too_hot_or_cold(nvme) &&
        (id == NVME_FEATURE_TEMPERATURE || id == NVME_FEATURE_ASYNC_EVENTS))
        nvme_event(nvme, NVME_EVENT_HEALTH, NVME_EVENT_TEMPERATURE);
}
