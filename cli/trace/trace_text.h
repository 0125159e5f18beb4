/* The text that --trace-address prints. */
#ifndef CLI_TRACE_TRACE_TEXT_H
#define CLI_TRACE_TRACE_TEXT_H

#include <glib.h>

#include "models/pcie/link/tlp_trace.h"

/* One walk, each line at most 100 columns; "" if there is none. g_free(). */
char *trace_text(const struct stamp_trace *trace, enum tlp_trace_walk walk);

/* ---- Between trace_text.c and trace_steps.c -------------------------------------------------- */

struct trace_writer {
    GString *out;
    const struct stamp_trace *trace;
    sim_time start_ps; /* of the walk */
    sim_time last_ps;  /* of the step before */
};

/* Appends the line of a step that ends at at_ps. */
void trace_step(struct trace_writer *writer, sim_time at_ps, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);
/* Appends details of the step, broken into lines at blanks. */
void trace_detail(struct trace_writer *writer, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* Writes the record `index` and those after it that belong to the same step (lines of memory);
 * returns the index of the last one. */
uint32_t trace_write_step(struct trace_writer *writer, uint32_t index);
/* When the step of a record ends. */
sim_time trace_record_ps(const struct tlp_trace_record *record);

#endif
