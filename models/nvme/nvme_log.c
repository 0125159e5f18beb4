/*
 * Log pages of nvme.controller.
 *
 * Models: Error Information (fed by completions with errors and by bad doorbells), SMART / Health,
 *   Firmware Slot, Commands Supported and Effects (from the tables of commands).
 * Does not model: spare blocks that run out, busy time and unsafe shutdowns (all 0), a temperature
 *   that changes; telemetry, self-tests, reservations, sanitize.
 * Sources: NVM Express 1.3, section 5.14.
 */
#include <string.h>

#include "models/nvme/nvme_internal.h"

#define SPARE_PERCENT           100u
#define SPARE_THRESHOLD_PERCENT 10u
#define BYTES_PER_UNIT          (1000u * 512u) /* 5.14.1.2 */
#define PS_PER_HOUR             (3600 * 1000 * SIM_PS_PER_MS)

/* ---- Error Information (5.14.1.1) ------------------------------------------------------------ */

void nvme_log_error(struct nvme *nvme, const struct nvme_command *command, uint16_t sq_id,
                    uint16_t status)
{
    struct nvme_errors *errors = &nvme->errors;
    struct nvme_error_entry *entry = &errors->entry[errors->count++ % NVME_ERRORS_MAX];
    *entry = (struct nvme_error_entry){ .count = errors->count,
                                        .sq_id = sq_id,
                                        .cid = UINT16_MAX,
                                        .status = (uint16_t)(status << 1),
                                        .location = NVME_NOWHERE };
    if (command == NULL)
        return;
    entry->cid = command->sqe.cid;
    entry->location = command->location;
    entry->nsid = command->sqe.nsid;
    if (command->sq->number != 0)
        entry->lba = (uint64_t)command->sqe.cdw11 << 32 | command->sqe.cdw10;
}

/* Newest first. */
static void put_errors(struct nvme *nvme, uint8_t *page)
{
    const struct nvme_errors *errors = &nvme->errors;
    uint64_t n = SIM_MIN(errors->count, NVME_ERRORS_MAX);
    for (uint64_t i = 0; i < n; i++)
        memcpy(page + i * NVME_LOG_ERROR_BYTES,
               &errors->entry[(errors->count - 1 - i) % NVME_ERRORS_MAX], NVME_LOG_ERROR_BYTES);
}

/* ---- The others ------------------------------------------------------------------------------ */

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void put_health(struct nvme *nvme, uint8_t *page)
{
    const struct nvme_health *health = &nvme->health;
    uint16_t kelvin = NVME_TEMPERATURE_K;
    page[NVME_HEALTH_WARNING] = nvme_too_hot_or_cold(nvme) ? NVME_WARN_TEMPERATURE : 0;
    memcpy(page + NVME_HEALTH_TEMPERATURE, &kelvin, sizeof(kelvin));
    page[NVME_HEALTH_SPARE] = SPARE_PERCENT;
    page[NVME_HEALTH_SPARE_THRESHOLD] = SPARE_THRESHOLD_PERCENT;
    page[NVME_HEALTH_USED] = nvme_media_used_percent(nvme->sub);
    put64(page + NVME_HEALTH_UNITS_READ,
          (health->read_bytes + BYTES_PER_UNIT - 1) / BYTES_PER_UNIT);
    put64(page + NVME_HEALTH_UNITS_WRITTEN,
          (health->written_bytes + BYTES_PER_UNIT - 1) / BYTES_PER_UNIT);
    put64(page + NVME_HEALTH_READS, health->reads);
    put64(page + NVME_HEALTH_WRITES, health->writes);
    put64(page + NVME_HEALTH_POWER_CYCLES, 1);
    put64(page + NVME_HEALTH_POWER_HOURS, nvme_now(nvme) / PS_PER_HOUR);
    put64(page + NVME_HEALTH_MEDIA_ERRORS, health->media_errors);
    put64(page + NVME_HEALTH_ERROR_ENTRIES, nvme->errors.count);
}

static void put_firmware(struct nvme *nvme, uint8_t *page)
{
    (void)nvme;
    page[NVME_FIRMWARE_ACTIVE] = 1;
    memcpy(page + NVME_FIRMWARE_SLOT1, NVME_FIRMWARE, sizeof(NVME_FIRMWARE) - 1);
}

static void put_effects_of(uint8_t *at, const struct nvme_command_desc *desc, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint32_t effects = desc[i].execute != NULL ? desc[i].effects | NVME_EFFECT_SUPPORTED : 0;
        memcpy(at + sizeof(effects) * i, &effects, sizeof(effects));
    }
}

static void put_effects(struct nvme *nvme, uint8_t *page)
{
    const uint32_t none = 0;
    put_effects_of(page + NVME_EFFECTS_ADMIN, nvme_admin_commands, NVME_ADMIN_COMMANDS);
    put_effects_of(page + NVME_EFFECTS_IO, nvme_io_commands, NVME_IO_COMMANDS);
    if (nvme->n_secondary == 0)
        memcpy(page + NVME_EFFECTS_ADMIN + sizeof(none) * NVME_ADMIN_VIRTUALIZATION, &none,
               sizeof(none));
}

const struct nvme_log_desc nvme_logs[NVME_LOGS] = {
    [NVME_LOG_ERROR] = { "Error Information", NVME_ERRORS_MAX *NVME_LOG_ERROR_BYTES,
                         NVME_EVENT_ERROR, put_errors },
    [NVME_LOG_HEALTH] = { "SMART / Health Information", NVME_LOG_HEALTH_BYTES, NVME_EVENT_HEALTH,
                          put_health },
    [NVME_LOG_FIRMWARE] = { "Firmware Slot Information", NVME_LOG_FIRMWARE_BYTES, NVME_EVENT_TYPES,
                            put_firmware },
    [NVME_LOG_EFFECTS] = { "Commands Supported and Effects", NVME_LOG_EFFECTS_BYTES,
                           NVME_EVENT_TYPES, put_effects },
};

/* ---- Get Log Page (5.14) --------------------------------------------------------------------- */

void nvme_get_log(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const struct nvme_sqe *sqe = &command->sqe;
    const uint32_t id = sqe->cdw10 & 0xffu;
    const uint64_t bytes = (((uint64_t)(sqe->cdw11 & 0xffffu) << 16 | sqe->cdw10 >> 16) + 1) * 4;
    const uint64_t offset = (uint64_t)sqe->cdw13 << 32 | sqe->cdw12;
    const struct nvme_log_desc *log = id < NVME_LOGS ? &nvme_logs[id] : NULL;
    enum nvme_status status = NVME_SC_SUCCESS;
    if (log == NULL || log->put == NULL)
        status = nvme_wrong(command, NVME_SC_LOG_PAGE_INVALID, NVME_AT(cdw10, 0));
    else if (bytes > nvme_params(nvme)->transfer_bytes_max)
        status = nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 16));
    else if (offset % 4 != 0 || offset > log->bytes)
        status = nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw12, 0));
    if (status != NVME_SC_SUCCESS) {
        nvme_complete(command, status);
        return;
    }
    log->put(nvme, nvme_data_page(command));
    if ((sqe->cdw10 & NVME_LOG_RETAIN_EVENT) == 0 && log->event < NVME_EVENT_TYPES)
        nvme_event_clear(nvme, log->event);
    nvme_data_send(command, offset, bytes);
}
