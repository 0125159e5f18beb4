/*
 * The copy engines of a host (I/OAT, DSA) and their drivers, for programs that copy by them: whatever is
 * integrated into its root complexes is found by the driver that knows it.
 */
#ifndef WORKLOADS_SETUP_COPY_ENGINES_H
#define WORKLOADS_SETUP_COPY_ENGINES_H

#include "logic/dma/dma.h"
#include "workloads/setup/lending.h"

enum copy_queue { COPY_QUEUE_DEDICATED, COPY_QUEUE_SHARED };

/* A program's settings about them, which it embeds. */
struct copy_engines_params {
    uint32_t ring, interrupt_delay_us, batch, queues;
    sim_time poll_ps;
    int queue; /* enum copy_queue */
};
extern const char *const copy_queue_names[];

/* Rows for the program's table; FIELD: its struct copy_engines_params. */
#define COPY_ENGINES_PARAMS(STRUCT, FIELD)                                                    \
    PARAM("ring", PARAM_U32, STRUCT, FIELD.ring, 1024, 4, 32768, PROV_NONE, "",               \
          "descriptors of a channel; a power of two"),                                        \
        PARAM("interrupt_delay_us", PARAM_U32, STRUCT, FIELD.interrupt_delay_us, 0, 0, 16383, \
              PROV_NONE, "", "I/OAT 3.2: between interrupts of a channel"),                   \
        PARAM("poll_ns", PARAM_TIME, STRUCT, FIELD.poll_ps, 50, 1, 1e6, PROV_NONE, "",        \
              "between looks of a CPU that polls"),                                           \
        PARAM_ONE_OF("queue", STRUCT, FIELD.queue, COPY_QUEUE_DEDICATED, copy_queue_names,    \
                     PROV_NONE, "", "DSA: each channel has a work queue, or all share one"),  \
        PARAM("queues", PARAM_U32, STRUCT, FIELD.queues, 4, 1, 16, PROV_NONE, "",             \
              "DSA: channels of an engine"),                                                  \
        PARAM("batch", PARAM_U32, STRUCT, FIELD.batch, 32, 1, 1024, PROV_NONE, "",            \
              "DSA: copies that are handed over as one batch at most; 1: no batches")

struct copy_engines;

/* In check(): why a program cannot have n channels of engines of the host, as what was expected of its
 * setting `channels`; NULL: it can, as far as other programs leave them. `text` is a place for it. */
#define COPY_ENGINES_TEXT 160u
const char *copy_engines_expected(struct world *world, const struct lending_host *host,
                                  const struct copy_engines_params *params, unsigned n,
                                  char text[COPY_ENGINES_TEXT]);

/* [thread] Registers the drivers with the host's kernel; cpu handles interrupts. The parameters must
 * have passed their ranges, and `ring` must be a power of two. The caller owns the result. */
struct copy_engines *copy_engines_new(struct lending_host *host,
                                      const struct copy_engines_params *params, unsigned cpu);
struct dma_core *copy_engines_core(struct copy_engines *engines);
/* [thread] When no channel is requested any more: takes the drivers from their devices and frees all. */
void copy_engines_free(struct copy_engines *engines);

#endif
