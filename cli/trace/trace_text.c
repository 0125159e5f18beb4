/*
 * The way of one transfer as text: a step for every place that the TLP came to, with the time since
 * the device sent it and since the step before; then the TLPs that others made of it (the pieces of
 * a read that a root complex makes anew, completions), each its own way. Of several that went the
 * same way, the first is told and the others are named.
 */
#include "cli/trace/trace_text.h"

#include <string.h>

#define COLUMNS       100
#define DETAIL_INDENT 24

static double ns(sim_time ps)
{
    return (double)ps / 1000.0;
}

void trace_step(struct trace_writer *writer, sim_time at_ps, const char *fmt, ...)
{
    const double since_last = ((double)at_ps - (double)writer->last_ps) / 1000.0;
    va_list args;
    g_string_append_printf(writer->out, "%10.1f %9.1f  ", ns(at_ps - writer->start_ps), since_last);
    va_start(args, fmt);
    g_string_append_vprintf(writer->out, fmt, args);
    va_end(args);
    g_string_append_c(writer->out, '\n');
    writer->last_ps = at_ps;
}

void trace_detail(struct trace_writer *writer, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    size_t column = 0, indent = DETAIL_INDENT;
    for (char **word = words; *word != NULL; word++) {
        const size_t n = strlen(*word);
        if (column != 0 && column + 1 + n > COLUMNS) {
            g_string_append_c(writer->out, '\n');
            column = 0;
            indent = DETAIL_INDENT + 2;
        }
        g_string_append_printf(writer->out, "%*s%s", column == 0 ? (int)indent : 1, "", *word);
        column = (column == 0 ? indent : column + 1) + n;
    }
    g_string_append_c(writer->out, '\n');
}

/* ---- Legs ------------------------------------------------------------------------------------ */

/* The next record of the leg from index on; n_records if there is none. */
static uint32_t next_of(const struct stamp_trace *trace, uint32_t leg, uint32_t index)
{
    while (index < trace->n_records && trace->record[index].leg != leg)
        index++;
    return index;
}

static const struct tlp_trace_record *first_of(const struct stamp_trace *trace, uint32_t leg)
{
    return &trace->record[next_of(trace, leg, 0)];
}

/* Both were at the same places in the same order. */
static bool went_the_same_way(const struct stamp_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t i = next_of(trace, a, 0), k = next_of(trace, b, 0);
    while (i < trace->n_records && k < trace->n_records) {
        const struct tlp_trace_record *x = &trace->record[i], *y = &trace->record[k];
        if (x->kind != y->kind || strcmp(x->who, y->who) != 0 || strcmp(x->to, y->to) != 0)
            return false;
        i = next_of(trace, a, i + 1);
        k = next_of(trace, b, k + 1);
    }
    return i == trace->n_records && k == trace->n_records;
}

static void write_leg(struct trace_writer *writer, uint32_t leg)
{
    const struct stamp_trace *trace = writer->trace;
    const struct tlp_trace_record *last = NULL;
    for (uint32_t i = next_of(trace, leg, 0); i < trace->n_records;
         i = next_of(trace, leg, i + 1)) {
        i = trace_write_step(writer, i);
        last = &trace->record[i];
    }
    /* Devices say nothing of what others write to them. */
    if (last != NULL && last->kind == TRACE_LINK)
        trace_step(writer, last->at_ps, "%s takes it", last->to);
}

/* A completion begins at the root complex that answers; a piece of a read goes on from one. */
static bool is_completion(const struct stamp_trace *trace, uint32_t leg)
{
    for (uint32_t i = next_of(trace, leg, 0); i < trace->n_records; i = next_of(trace, leg, i + 1))
        if (trace->record[i].kind != TRACE_BRANCH)
            return trace->record[i].kind == TRACE_LINE || trace->record[i].kind == TRACE_COMPLETION;
    return false;
}

/* The last record of the leg that says what is in the TLP, or NULL. */
static const struct tlp_trace_record *last_of(const struct stamp_trace *trace, uint32_t leg)
{
    const struct tlp_trace_record *last = NULL;
    for (uint32_t i = next_of(trace, leg, 0); i < trace->n_records; i = next_of(trace, leg, i + 1))
        last = &trace->record[i];
    return last;
}

/* In a line: it has been told what way it went. */
static void name_leg(struct trace_writer *writer, uint32_t leg, const char *what, unsigned number)
{
    const struct tlp_trace_record *last = last_of(writer->trace, leg);
    if (last->kind == TRACE_ARRIVED)
        trace_step(writer, trace_record_ps(last), "%s %u is at %s: %u bytes, the same way", what,
                   number, last->who, last->tlp.bytes);
    else
        trace_step(writer, trace_record_ps(last), "%s %u went the same way", what, number);
}

/* What was made of the TLPs before: each that went its own way in full. */
static void write_branches(struct trace_writer *writer, enum tlp_trace_walk walk)
{
    const struct stamp_trace *trace = writer->trace;
    unsigned n_completions = 0, n_pieces = 0;
    for (uint32_t n = 1; n < trace->n_legs[walk]; n++) {
        const uint32_t leg = TLP_TRACE_LEG(walk, n);
        if (next_of(trace, leg, 0) == trace->n_records)
            continue;
        const bool completion = is_completion(trace, leg);
        const unsigned number = completion ? ++n_completions : ++n_pieces;
        const char *what = completion ? "completion" : "piece";
        uint32_t like = 1;
        while (like < n && !went_the_same_way(trace, TLP_TRACE_LEG(walk, like), leg))
            like++;
        if (like < n) {
            name_leg(writer, leg, what, number);
            continue;
        }
        writer->last_ps = first_of(trace, leg)->at_ps;
        g_string_append_printf(writer->out, "\n%*s%s %u\n", DETAIL_INDENT - 2, "", what, number);
        write_leg(writer, leg);
    }
}

char *trace_text(const struct stamp_trace *trace, enum tlp_trace_walk walk)
{
    struct trace_writer writer = { .out = g_string_new(NULL), .trace = trace };
    const uint32_t leg = TLP_TRACE_LEG(walk, 0);
    if (next_of(trace, leg, 0) < trace->n_records) {
        writer.start_ps = writer.last_ps = first_of(trace, leg)->at_ps;
        g_string_append_printf(writer.out, "%10s %9s\n", "ns", "+ns");
        write_leg(&writer, leg);
        write_branches(&writer, walk);
        if (trace->n_lost != 0)
            g_string_append_printf(writer.out, "%u records more did not fit\n", trace->n_lost);
    }
    return g_string_free(writer.out, FALSE);
}
