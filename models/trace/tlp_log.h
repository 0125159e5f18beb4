/* TLPs of a run as lines of text: see the head of tlp_log.c. */
#ifndef MODELS_TRACE_TLP_LOG_H
#define MODELS_TRACE_TLP_LOG_H

#include "models/trace/tlp_filter.h"
#include "models/trace/trace.h"
#include "models/world/world.h"

struct tlp_log;

/*
 * Attaches a log to the links of the world, before it boots. comment: which run it is. *done is set
 * to 1 when nothing more can come into the file. NULL: mistakes are in errors (no link matches);
 * or, without any, the file could not be written, errno says why. Window and done outlive the log.
 */
struct tlp_log *tlp_log_new(struct world *world, const char *path, const struct tlp_filter *filter,
                            const char *comment, const struct trace_window *window,
                            volatile int *done, struct sim_error_list *errors);
/* The summary as text, a line each link, direction and type; free(). */
char *tlp_log_summary(const struct tlp_log *log);
/* Detaches it, while the world is still there; writes what is left, and the summary. NULL is
 * allowed. */
void tlp_log_end(struct tlp_log *log, struct trace_file_counts *counts);

#endif
