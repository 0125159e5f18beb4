#include "sim/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (256u * 1024u)

/* A ring's records lie behind each other, each behind its length; one that does not fit before the
 * end of the memory begins at its start, and `wrap` is where the records before it end. */
struct ring {
    uint8_t *memory;
    uint64_t bytes;
    uint64_t first, end, wrap; /* first == end: empty */
};

struct trace_file {
    int fd, error;
    bool full, is_ring;
    uint64_t limit_bytes;
    const char *path;
    struct trace_watch watch; /* is_large NULL: nobody, or told */
    uint64_t written;         /* whole records in the file */
    uint32_t n_buffered, n_buffered_records;
    struct ring ring;
    struct trace_file_counts counts;
    uint8_t buffer[BUFFER_BYTES];
};

struct trace_file *trace_file_new(const char *path, uint64_t limit_bytes, bool ring,
                                  struct trace_watch watch)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return NULL;
    struct trace_file *file = sim_zalloc(1, sizeof(*file));
    file->fd = fd;
    file->path = path;
    file->watch = watch;
    file->limit_bytes = limit_bytes;
    file->is_ring = ring;
    return file;
}

/* ---- The file -------------------------------------------------------------------------------- */

static bool write_all(struct trace_file *file, const uint8_t *data, size_t bytes)
{
    while (bytes != 0) {
        const ssize_t n = write(file->fd, data, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            file->error = n < 0 ? errno : ENOSPC;
            return false;
        }
        data += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Writes the buffer. Refused: what it held is cut off again, so that the file ends behind a
 * record. */
static bool flush(struct trace_file *file)
{
    if (file->error == 0 && write_all(file, file->buffer, file->n_buffered)) {
        file->written += file->n_buffered;
    } else if (file->n_buffered != 0) {
        file->counts.records -= file->n_buffered_records;
        file->counts.dropped += file->n_buffered_records;
        if (ftruncate(file->fd, (off_t)file->written) != 0)
            file->full = true; /* a pipe: what it has taken is gone */
    }
    file->n_buffered = file->n_buffered_records = 0;
    return file->error == 0;
}

static bool append(struct trace_file *file, const void *data, size_t bytes)
{
    if (bytes > BUFFER_BYTES - file->n_buffered && !flush(file))
        return false;
    if (bytes > BUFFER_BYTES) { /* whole, or not at all */
        if (!write_all(file, data, bytes)) {
            if (ftruncate(file->fd, (off_t)file->written) != 0)
                file->full = true;
            return false;
        }
        file->written += bytes;
        return true;
    }
    memcpy(file->buffer + file->n_buffered, data, bytes);
    file->n_buffered += (uint32_t)bytes;
    return file->error == 0;
}

bool trace_file_head(struct trace_file *file, const void *data, size_t bytes)
{
    SIM_ASSERT(file->counts.records == 0, "the head of a trace comes before its records");
    if (file->counts.bytes + bytes > file->limit_bytes) {
        file->full = true;
        return false;
    }
    file->counts.bytes += bytes;
    return append(file, data, bytes) && flush(file);
}

/* ---- The ring -------------------------------------------------------------------------------- */

#define LENGTH_BYTES sizeof(uint32_t)

static uint32_t ring_length(const struct ring *ring, uint64_t at)
{
    uint32_t bytes;

    memcpy(&bytes, ring->memory + at, LENGTH_BYTES);
    return bytes;
}

static void ring_pop(struct ring *ring)
{
    ring->first += LENGTH_BYTES + ring_length(ring, ring->first);
    if (ring->first == ring->end)
        ring->first = ring->end = 0;
    else if (ring->first == ring->wrap && ring->end < ring->first)
        ring->first = 0;
}

/* Whether so many bytes fit behind the last record; moves `end` to the start of the memory if they
 * fit there. */
static bool ring_fits(struct ring *ring, uint64_t bytes)
{
    if (ring->end < ring->first) /* the records wrap */
        return ring->end + bytes < ring->first;
    if (ring->end + bytes <= ring->bytes)
        return true;
    if (bytes >= ring->first) /* never full to the last byte: first == end is empty */
        return false;
    ring->wrap = ring->end;
    ring->end = 0;
    return true;
}

static bool ring_add(struct trace_file *file, const void *data, size_t bytes)
{
    struct ring *ring = &file->ring;
    const uint64_t with_length = bytes + LENGTH_BYTES;

    if (ring->memory == NULL) {
        ring->bytes = file->limit_bytes - file->counts.bytes;
        ring->memory = sim_zalloc(ring->bytes + 1, 1);
    }
    if (with_length > ring->bytes || bytes > UINT32_MAX) {
        file->counts.dropped++;
        return false;
    }
    while (!ring_fits(ring, with_length)) {
        ring_pop(ring);
        file->counts.records--;
        file->counts.dropped++;
    }
    const uint32_t length = (uint32_t)bytes;
    memcpy(ring->memory + ring->end, &length, LENGTH_BYTES);
    memcpy(ring->memory + ring->end + LENGTH_BYTES, data, bytes);
    ring->end += with_length;
    file->counts.records++;
    return true;
}

static void ring_write(struct trace_file *file)
{
    struct ring *ring = &file->ring;

    while (ring->first != ring->end) {
        const uint32_t bytes = ring_length(ring, ring->first);
        if (file->error == 0 && append(file, ring->memory + ring->first + LENGTH_BYTES, bytes)) {
            file->counts.bytes += bytes;
            file->n_buffered_records += file->n_buffered != 0;
        } else { /* refused, now or before */
            file->counts.records--;
            file->counts.dropped++;
        }
        ring_pop(ring);
    }
    free(ring->memory);
    *ring = (struct ring){ 0 };
}

/* ---- Records --------------------------------------------------------------------------------- */

bool trace_file_add(struct trace_file *file, const void *data, size_t bytes)
{
    if (file->error != 0 || file->full) {
        file->counts.dropped++;
        return false;
    }
    if (file->is_ring)
        return ring_add(file, data, bytes);
    if (file->counts.bytes + bytes > file->limit_bytes)
        file->full = true;
    if (file->full || !append(file, data, bytes)) {
        file->counts.dropped++;
        return false;
    }
    file->counts.records++;
    file->n_buffered_records += file->n_buffered != 0;
    file->counts.bytes += bytes;
    if (file->watch.is_large != NULL && file->counts.bytes > file->watch.bytes) {
        file->watch.is_large(file->watch.arg, file->path);
        file->watch.is_large = NULL;
    }
    return true;
}

bool trace_file_tail(struct trace_file *file, const void *data, size_t bytes)
{
    ring_write(file);
    file->counts.bytes += bytes;
    return append(file, data, bytes);
}

bool trace_file_ended(const struct trace_file *file)
{
    return file->full || file->error != 0;
}

void trace_file_close(struct trace_file *file, struct trace_file_counts *counts)
{
    *counts = (struct trace_file_counts){ 0 };
    if (file == NULL)
        return;
    ring_write(file);
    flush(file);
    if (close(file->fd) != 0 && file->error == 0)
        file->error = errno;
    *counts = file->counts;
    counts->error = file->error;
    if (file->error != 0)
        counts->bytes = file->written;
    free(file);
}
