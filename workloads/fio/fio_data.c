/*
 * What blocks hold, and the check of everything that is read. A version of a unit is a place of its
 * own in the file's stream (models/base/payload.h), so that old data, data of other blocks and data
 * that never came are all found.
 */
#include <stdlib.h>

#include "workloads/fio/fio_internal.h"

#define CHUNK_UNITS 32u
#define POISON      (UINT64_C(0x7ff00000000)) /* position in the stream that no block has */

struct fio_chunk { /* made when one of its units is first written */
    struct unit {
        uint32_t version;
        uint32_t touched; /* sequence of the last beginning or end of a write */
        uint16_t writers; /* under way */
        bool unknown;     /* two writes at once, or one that failed: holds the one or the other */
    } unit[CHUNK_UNITS];
};

static struct unit *find_unit(const struct fio_file *file, uint64_t idx)
{
    struct fio_chunk *chunk = file->chunk != NULL ? file->chunk[idx / CHUNK_UNITS] : NULL;
    return chunk != NULL ? &chunk->unit[idx % CHUNK_UNITS] : NULL;
}

static struct unit *made_unit(struct fio_file *file, uint64_t idx)
{
    struct fio_chunk **chunk = &file->chunk[idx / CHUNK_UNITS];
    if (*chunk == NULL)
        *chunk = sim_zalloc(1, sizeof(**chunk));
    return &(*chunk)->unit[idx % CHUNK_UNITS];
}

void fio_data_init(struct fio_file *file, struct program *program, bool exclusive)
{
    const uint64_t n_units = file->bytes / file->unit_bytes;
    file->stream = program_new_stream(program);
    file->n_chunks = n_units / CHUNK_UNITS + 1;
    file->chunk = program_zalloc_large(program, file->n_chunks, sizeof(*file->chunk));
    if (file->chunk == NULL)
        file->n_chunks = 0;
    if (exclusive)
        file->busy = program_zalloc_large(program, n_units, sizeof(*file->busy));
}

void fio_data_release(struct fio_file *file)
{
    for (uint64_t i = 0; file->chunk != NULL && i < file->n_chunks; i++)
        free(file->chunk[i]);
}

uint64_t fio_data_tag(const struct fio_file *file, uint32_t version, uint64_t at)
{
    if (version == 0 && !file->fill)
        return 0; /* never written: zeros */
    return payload_mark(file->stream, version * file->bytes + at);
}

void fio_data_put(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes)
{
    const struct fio_device *device = io_u->job->device;
    if (device->engine->put != NULL)
        device->engine->put(io_u, at, tag, bytes);
    else
        payload_fill(device->host->kernel, kaddr_add(io_u->buffer, at), tag, bytes);
}

static bool same(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes,
                 struct payload_difference *is)
{
    const struct fio_device *device = io_u->job->device;
    if (device->engine->same != NULL)
        return device->engine->same(io_u, at, tag, bytes, is);
    return payload_check(device->host->kernel, kaddr_add(io_u->buffer, at), tag, bytes, is);
}

/* ---- Beginnings ------------------------------------------------------------------------------ */

static void write_begins(struct fio_file *file, uint64_t first, uint64_t n, uint32_t version)
{
    for (uint64_t i = first; i < first + n; i++) {
        struct unit *unit = made_unit(file, i);
        unit->unknown = unit->writers != 0;
        unit->version = version;
        unit->touched = file->sequence;
        unit->writers++;
    }
}

void fio_data_begin(struct fio_file *file, struct fio_io_u *io_u)
{
    const uint64_t at = io_u->offset - file->begin, first = at / file->unit_bytes,
                   n = io_u->bytes / file->unit_bytes;
    uint32_t version = 0;
    io_u->number = ++file->sequence;
    for (uint64_t i = first; file->busy != NULL && i < first + n; i++)
        file->busy[i] = true;
    if (!io_u->write) {
        fio_data_put(io_u, 0, payload_mark(file->stream, POISON), io_u->bytes);
        return;
    }
    for (uint64_t i = first; i < first + n; i++) {
        const struct unit *unit = find_unit(file, i);
        version = unit != NULL ? SIM_MAX(version, unit->version) : version;
    }
    write_begins(file, first, n, version + 1);
    fio_data_put(io_u, 0, fio_data_tag(file, version + 1, at), io_u->bytes);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void write_ends(struct fio_file *file, const struct fio_io_u *io_u, uint64_t first,
                       uint64_t n)
{
    file->sequence++;
    for (uint64_t i = first; i < first + n; i++) {
        struct unit *unit = made_unit(file, i);
        unit->writers--;
        unit->touched = file->sequence;
        unit->unknown = unit->unknown || io_u->status != 0 || unit->writers != 0;
    }
}

/* A write was under way at some time since the read began: its data are the old or the new. */
static bool in_doubt(const struct unit *unit, const struct fio_io_u *io_u)
{
    return unit != NULL && (unit->unknown || unit->writers != 0 || unit->touched > io_u->number);
}

static bool check_read(const struct fio_file *file, struct fio_io_u *io_u, uint64_t first,
                       uint64_t n, struct payload_difference *is, uint64_t *at)
{
    for (uint64_t i = first, n_alike; i < first + n; i += n_alike) {
        const struct unit *unit = find_unit(file, i);
        const uint32_t version = unit != NULL ? unit->version : 0;
        n_alike = 1;
        if (in_doubt(unit, io_u))
            continue;
        for (; i + n_alike < first + n; n_alike++) {
            const struct unit *other = find_unit(file, i + n_alike);
            if (in_doubt(other, io_u) || (other != NULL ? other->version : 0) != version)
                break;
        }
        *at = i * file->unit_bytes;
        const uint64_t tag = fio_data_tag(file, version, *at);
        if (!same(io_u, (i - first) * file->unit_bytes, tag, n_alike * file->unit_bytes, is)) {
            *at += tag != 0 ? is->expected - tag : 0; /* of zeros the run's first byte */
            return false;
        }
    }
    return true;
}

bool fio_data_end(struct fio_file *file, struct fio_io_u *io_u, struct payload_difference *is,
                  uint64_t *at)
{
    const uint64_t first = (io_u->offset - file->begin) / file->unit_bytes,
                   n = io_u->bytes / file->unit_bytes;
    for (uint64_t i = first; file->busy != NULL && i < first + n; i++)
        file->busy[i] = false;
    if (io_u->write)
        write_ends(file, io_u, first, n);
    else if (io_u->status == 0)
        return check_read(file, io_u, first, n, is, at);
    return true;
}

bool fio_data_written(const struct fio_file *file, uint64_t at, uint64_t bytes)
{
    for (uint64_t i = at / file->unit_bytes; i < (at + bytes) / file->unit_bytes; i++) {
        const struct unit *unit = find_unit(file, i);
        if (unit == NULL || unit->version == 0)
            return false;
    }
    return true;
}
