/* A run as a trace for Perfetto: see the head of perfetto.c. */
#ifndef MODELS_TRACE_PERFETTO_H
#define MODELS_TRACE_PERFETTO_H

#include "models/trace/trace.h"
#include "models/world/world.h"

struct perfetto;

/* Attaches it to the world, before it boots and before kernels are made. *done is set to 1 when
 * nothing more can come into the file. NULL: the file could not be written, errno says why. Window
 * and done outlive it. */
struct perfetto *perfetto_new(struct world *world, const char *path,
                              const struct trace_window *window, volatile int *done);
/* Detaches it, while the world is still there; writes what is left. NULL is allowed. */
void perfetto_end(struct perfetto *perfetto, struct trace_file_counts *counts);
/* Frees it, after the world, of which TLPs that were followed may be left. NULL is allowed. */
void perfetto_free(struct perfetto *perfetto);

#endif
