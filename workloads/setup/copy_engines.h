/*
 * The copy engines of a host (I/OAT, DSA) and their drivers, for programs that copy by them:
 * whatever is integrated into its root complexes is found by the driver that knows it. All programs
 * of a host share them: one driver each, with the settings of the first program, and channels that
 * may have several users.
 */
#ifndef WORKLOADS_SETUP_COPY_ENGINES_H
#define WORKLOADS_SETUP_COPY_ENGINES_H

#include "logic/dma/dma.h"
#include "workloads/setup/lending.h"

enum copy_queue { COPY_QUEUE_DEDICATED, COPY_QUEUE_SHARED };

/* A program's settings about their drivers, which it embeds. */
struct copy_engines_params {
    uint32_t ring, interrupt_delay_us, batch, queues;
    sim_time poll_ps;
    int queue; /* enum copy_queue */
};
extern const char *const copy_queue_names[];

/* Rows for the program's table; FIELD: its struct copy_engines_params. */
#define COPY_ENGINES_PARAMS(STRUCT, FIELD)                                                   \
    PARAM("ring", PARAM_U32, STRUCT, FIELD.ring, 4096, 4, 32768, PROV_NONE, "",              \
          "descriptors of a channel; a power of two"),                                       \
        PARAM("poll_ns", PARAM_TIME, STRUCT, FIELD.poll_ps, 50, 1, 1e6, PROV_NONE, "",       \
              "between looks of a CPU that polls"),                                          \
        PARAM_ONE_OF("queue", STRUCT, FIELD.queue, COPY_QUEUE_DEDICATED, copy_queue_names,   \
                     PROV_NONE, "", "DSA: each channel has a work queue, or all share one"), \
        PARAM("queues", PARAM_U32, STRUCT, FIELD.queues, 4, 1, 16, PROV_NONE, "",            \
              "DSA: channels of an engine"),                                                 \
        PARAM("batch", PARAM_U32, STRUCT, FIELD.batch, 32, 1, 1024, PROV_NONE, "",           \
              "DSA: copies that are handed over as one batch at most; 1: no batches")
/* Keys of those that are of DSA only, and of those that are of all engines. NULL-terminated. */
extern const char *const copy_engines_dsa_keys[], *const copy_engines_keys[];
/* The first setting in which both differ, by its key; NULL: none. */
const char *copy_engines_differ(const struct copy_engines_params *a,
                                const struct copy_engines_params *b);

/* What engines a host has, by the scenario. */
struct copy_engines_found {
    unsigned n_ioat, n_dsa;
    unsigned n_unknown;     /* ioat.engines that the driver does not take, which do not count */
    unsigned n_channels;    /* that drivers with the settings make of them */
    unsigned dsa_queues;    /* work queues of the smallest DSA; 0: there is none */
    bool delays_interrupts; /* there is an I/OAT 3.2 */
};
/* In check(). */
struct copy_engines_found copy_engines_find(struct world *world, const struct lending_host *host,
                                            const struct copy_engines_params *params);

/* The engines of a host, as lending_host.copy_engines says. */
struct copy_engines {
    /* Set by the first program that uses them; the others have joined when `users` counts them. */
    struct lending_host *host;
    const struct copy_engines_params *params;
    const char *user; /* its name */
    unsigned cpu;     /* handles interrupts */
    unsigned users;
    /* private */
    bool opening, ready;
    struct dma_core *core;
    struct ioat_drv *ioat;
    struct dsa_drv *dsa;
};

/* [thread] The first user registers the drivers with the host's kernel, others wait until it has.
 * The parameters must have passed their ranges, and `ring` must be a power of two. */
struct dma_core *copy_engines_open(struct copy_engines *engines);
/* [thread] Of each user once, whether it has opened them or not, when it has released its channels:
 * the last one takes the drivers from their devices. */
void copy_engines_close(struct copy_engines *engines);

#endif
