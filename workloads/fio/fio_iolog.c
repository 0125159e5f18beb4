/*
 * Traces that fio writes with write_iolog: version 2 (`FILE ACTION OFFSET BYTES`, and `FILE wait
 * US`) and version 3 (microseconds since the beginning stand first). blktrace's binary files are
 * not read.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/text.h"
#include "sim/trace/file_read.h"
#include "workloads/fio/fio_internal.h"

#define WAIT_MIN_US 100u /* shorter waits of version 2 are left out, as by fio */

struct trace_reader {
    const char *path;
    const struct fio_options *options;
    struct fio_trace *trace;
    struct sim_error_list *errors;
    unsigned version;
    char *file; /* the only one of the trace */
    uint64_t room, at_us;
    int line;
};

static void mistake(struct trace_reader *reader, const char *what)
{
    sim_error_add(reader->errors, reader->path, reader->line, "%s", what);
}

/* False with the mistake if it is later than a simulation can be. */
static bool is_in_time(struct trace_reader *reader, uint64_t at_us)
{
    if (at_us <= FIO_TRACE_MAX_US)
        return true;
    mistake(reader, "expected at most 100000000000 us since the beginning");
    return false;
}

static void add_step(struct trace_reader *reader, const struct fio_step *step)
{
    struct fio_trace *trace = reader->trace;
    if (trace->n_steps == reader->room) {
        reader->room = 2 * reader->room + 64;
        trace->step = sim_grow(trace->step, reader->room, sizeof(*trace->step));
    }
    trace->step[trace->n_steps++] = *step;
    if (step->action == FIO_ACTION_SYNC)
        return;
    trace->end = SIM_MAX(trace->end, step->offset + step->bytes);
    trace->unit_bytes = fio_common_divisor(fio_common_divisor(step->offset, step->bytes),
                                           trace->unit_bytes);
}

/* One file, unless all are redirected to that of the job. */
static void check_file(struct trace_reader *reader, const char *name)
{
    if (reader->file == NULL)
        reader->file = g_strdup(name);
    else if (strcmp(reader->file, name) != 0 && reader->options->redirect == NULL)
        mistake(reader, "a second file: replay_redirect lets all be the job's");
}

static bool is_one_of(const char *action, const char *const *names)
{
    for (unsigned i = 0; names[i] != NULL; i++)
        if (strcmp(action, names[i]) == 0)
            return true;
    return false;
}

static void read_io(struct trace_reader *reader, const char *action, uint64_t offset,
                    uint64_t bytes)
{
    static const char *const syncs[] = { "sync", "datasync", NULL };
    static const char *const others[] = { "read", "write", "sync",  "datasync", "wait",
                                          "add",  "open",  "close", NULL };
    const struct fio_options *options = reader->options;
    const bool write = strcmp(action, "write") == 0;
    struct fio_step step = { write ? FIO_ACTION_WRITE : FIO_ACTION_READ, reader->at_us, offset,
                             bytes };
    if (write || strcmp(action, "read") == 0) {
        if (bytes == 0)
            mistake(reader, "a request of 0 bytes");
        else if (!options->skip[write ? FIO_WRITE : FIO_READ])
            add_step(reader, &step);
    } else if (is_one_of(action, syncs)) {
        step = (struct fio_step){ FIO_ACTION_SYNC, reader->at_us, 0, 0 };
        if (!options->skip_sync)
            add_step(reader, &step);
    } else if (strcmp(action, "wait") == 0 && reader->version == 2) {
        const uint64_t wait_us = offset >= WAIT_MIN_US ? offset : 0;
        const uint64_t room_us = FIO_TRACE_MAX_US - reader->at_us;
        if (is_in_time(reader, wait_us <= room_us ? reader->at_us + wait_us : UINT64_MAX))
            reader->at_us += wait_us;
    } else if (strcmp(action, "trim") == 0) {
        if (!options->skip_trim)
            mistake(reader, "trim: the engines cannot deallocate blocks; replay_skip=trim leaves "
                            "them out");
    } else {
        g_autofree char *suggestion = sim_suggestion(action, others);
        sim_error_add(reader->errors, reader->path, reader->line, "%s: no action of version %u%s%s",
                      action, reader->version, *suggestion != '\0' ? "; " : "", suggestion);
    }
}

static bool number(const char *text, uint64_t *value)
{
    char *end;
    if (text == NULL || !g_ascii_isdigit(text[0]))
        return false;
    *value = g_ascii_strtoull(text, &end, 10);
    return *end == '\0';
}

/* Words that are there, without empty ones. */
static unsigned words_of(char **word)
{
    unsigned n = 0;
    for (unsigned i = 0; word[i] != NULL; i++)
        if (*word[i] != '\0') {
            char *kept = word[i];
            word[i] = word[n];
            word[n++] = kept;
        }
    return n;
}

static void read_line(struct trace_reader *reader, char *text)
{
    static const char *const management[] = { "add", "open", "close", NULL };
    g_auto(GStrv) all = g_strsplit_set(g_strstrip(text), " \t\r", -1);
    unsigned n = words_of(all);
    char **word = all;
    uint64_t offset = 0, bytes = 0;
    if (n == 0)
        return;
    if (reader->version == 3) {
        uint64_t at_us = 0;
        if (!number(word[0], &at_us)) {
            mistake(reader, "expected TIMESTAMP FILE ACTION [OFFSET BYTES]");
            return;
        }
        if (!is_in_time(reader, at_us))
            return;
        reader->at_us = at_us;
        word++;
        n--;
    }
    if (n >= 2)
        check_file(reader, word[0]);
    if (n == 2 && is_one_of(word[1], management))
        return;
    if (n < 2 || n > 4 || (n > 2 && !number(word[2], &offset)) ||
        (n > 3 && !number(word[3], &bytes)) || offset + bytes < offset)
        mistake(reader, reader->version == 3 ? "expected TIMESTAMP FILE ACTION [OFFSET BYTES]"
                                             : "expected FILE ACTION [OFFSET BYTES]");
    else
        read_io(reader, word[1], offset, bytes);
}

static unsigned version_of(const char *text)
{
    if (strcmp(text, "fio version 2 iolog") == 0)
        return 2;
    return strcmp(text, "fio version 3 iolog") == 0 ? 3 : 0;
}

bool fio_trace_read(const char *path, const struct fio_options *options, struct fio_trace *trace,
                    struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    struct trace_reader reader = {
        .path = path, .options = options, .trace = trace, .errors = &own, .line = 1
    };
    size_t n_bytes = 0;
    const char *why = NULL;
    g_autofree char *contents = file_read_trace(path, &n_bytes, &why);
    *trace = (struct fio_trace){ 0 };
    if (contents != NULL && strlen(contents) != n_bytes)
        why = "it is not a text file";
    if (why != NULL) {
        sim_error_add(errors, options->file, options->line, "read_iolog: %s: %s", path, why);
        return false;
    }
    if (!text_check(contents, path, errors))
        return false;
    g_auto(GStrv) line = g_strsplit(contents, "\n", -1);
    reader.version = line[0] != NULL ? version_of(g_strstrip(line[0])) : 0;
    if (reader.version == 0)
        mistake(&reader, "expected \"fio version 2 iolog\" or \"fio version 3 iolog\"");
    for (int i = 1; reader.version != 0 && line[i] != NULL; i++) {
        reader.line = i + 1;
        read_line(&reader, line[i]);
    }
    if (own.n_messages == 0 && trace->n_steps == 0)
        sim_error_add(&own, path, 0, "there is nothing to replay");
    g_free(reader.file);
    return !sim_error_move(errors, &own);
}

void fio_trace_release(struct fio_trace *trace)
{
    free(trace->step);
    *trace = (struct fio_trace){ 0 };
}
