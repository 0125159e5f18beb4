/*
 * What programs that copy have in common: a process on a host, with memory of its own and the copy
 * module (logic/copy) open, and copies by whom the scenario says: the CPU, as memcpy() does it, or
 * the engine.
 */
#ifndef WORKLOADS_COPY_COPY_SITE_H
#define WORKLOADS_COPY_COPY_SITE_H

#include "logic/copy/adma.h"
#include "workloads/programs/program.h"
#include "workloads/setup/copy_engines.h"

extern const struct program_ops program_copy_latency_ops, program_copy_bandwidth_ops,
    program_copy_overlap_ops, program_copy_overheads_ops, program_cache_pollution_ops,
    program_copy_ipc_ops, program_copy_mixed_ops, program_dma_copy_ops;

enum copy_by { COPY_BY_CPU, COPY_BY_ENGINE, COPY_BY_NOBODY };
extern const char *const copy_by_names[];       /* cpu, engine */
extern const char *const copy_by_all_names[];   /* and none */
extern const char *const copy_schedule_names[]; /* in the order of enum adma_schedule */

/* Settings of who copies; the module's others are those of adma_options_default. */
struct copy_settings {
    const char *host_name;
    int by, schedule;
    uint32_t cpu, channels, n_dedicated, pin_cache_pages;
    struct copy_engines_params engine;
    uint64_t engine_bytes, small_bytes;
    sim_time reserve_ps;
    bool learns;
};
#define COPY_BY_PARAM(type, f, by_names)                                 \
    PARAM_ONE_OF("by", type, f.by, COPY_BY_CPU, by_names, PROV_NONE, "", \
                 "who copies: memcpy() of the CPU, or the copy module with an engine")
#define COPY_HOST_PARAMS(type, f)                                                              \
    PARAM_TEXT("on", type, f.host_name, "server", "host of the group `lending`"),              \
        PARAM("cpu", PARAM_U32, type, f.cpu, 0, 0, 255, PROV_NONE, "", "where it runs"),       \
        PARAM("channels", PARAM_U32, type, f.channels, 4, 1, ADMA_CHANNELS_MAX, PROV_NONE, "", \
              "of the engine, over which pieces of a copy go round"),                          \
        COPY_ENGINES_PARAMS(type, f.engine)
#define COPY_PARAMS(type, f)                                                                       \
    COPY_HOST_PARAMS(type, f),                                                                     \
        PARAM("pin_cache_pages", PARAM_U32, type, f.pin_cache_pages, 32768, 0, 1048576, PROV_NONE, \
              "", "pages of a process that stay pinned after copies"),                             \
        PARAM("engine_bytes", PARAM_BYTES, type, f.engine_bytes, 0, 0, 1073741824, PROV_NONE, "",  \
              "the module lets the CPU make smaller copies")
#define COPY_SCHEDULE_PARAMS(type, f)                                                            \
    PARAM_ONE_OF("schedule", type, f.schedule, ADMA_ROUND_ROBIN, copy_schedule_names, PROV_NONE, \
                 "", "which channels a copy uses"),                                              \
        PARAM("small_bytes", PARAM_BYTES, type, f.small_bytes, 65536, 0, 1073741824, PROV_NONE,  \
              "", "copies up to this size are small for the schedule"),                          \
        PARAM("dedicated_channels", PARAM_U32, type, f.n_dedicated, 1, 1, ADMA_CHANNELS_MAX,     \
              PROV_NONE, "", "of small copies, if the schedule is dedicated"),                   \
        PARAM("reserve_us", PARAM_TIME, type, f.reserve_ps, 1000, 0, 1e7, PROV_NONE, "",         \
              "adaptive: a channel is left to small copies for so long after one"),              \
        PARAM("learns", PARAM_BOOL, type, f.learns, 0, 0, 1, PROV_NONE, "",                      \
              "the module learns which sizes the CPU copies quicker")

/* A host's module; programs make it in their first thread. */
struct copy_site {
    struct program *program;
    const struct copy_settings *settings;
    struct lending_host *host;
    struct kernel *kernel;
    struct copy_engines *engines; /* NULL: it needs none */
    struct adma *adma; /* NULL: nobody needs it, or it has failed, which the program has said */
};
/* In check(): finds the host, which must have the CPU, no guests, and, if settings->by says so,
 * engines with the channels, which it shares with the programs before this one. What is not so is a
 * mistake, and so is a setting of an engine that would have no effect; `decider` is the program's
 * setting whose value `engine` has engines copy. False: there is no such host. */
bool copy_site_check(struct copy_site *site, struct program *program,
                     const struct copy_settings *settings, const char *decider, const char *engine,
                     struct sim_error_list *errors);
/* In check(): these settings (NULL-terminated), where they are written, are mistakes, as the
 * program's setting `decider` stands; expected ends with what it should be: `by = "engine"`. */
void copy_no_effect(struct program *program, const char *const *keys, const char *decider,
                    const char *expected, struct sim_error_list *errors);
/* [thread] Opens the module, with the engine's channels or, without an engine, for copies by the
 * CPU. False: the program has failed. */
bool copy_site_open(struct copy_site *site);
/* [thread] Always, at the end, after all processes have been closed. */
void copy_site_close(struct copy_site *site);

/* A process: memory, and the module if the site has it. */
struct copy_process {
    struct copy_site *site;
    struct umem *umem;
    struct adma_process *adma; /* NULL: the site has none */
};
/* [thread] */
void copy_process_open(struct copy_process *process, struct copy_site *site);
void copy_process_close(struct copy_process *process);
/* [thread] Memory in pieces of up to 4 MiB on the node of the calling CPU; v is 0, and the program
 * has failed, if there is none. */
struct uaddr copy_process_map(struct copy_process *process, uint64_t bytes);

/* Content: a stream from `mark` on (models/base/payload.h), without time. */
void copy_fill(struct copy_process *process, struct uaddr at, uint64_t mark, uint64_t bytes);
/* False, and a fault of the run: something else is there. */
bool copy_check(struct copy_process *process, struct uaddr at, uint64_t mark, uint64_t bytes);
/* The bytes are in no cache. No time passes. */
void copy_drop(struct copy_process *process, struct uaddr at, uint64_t bytes);
/* The caches of `cpu` are as after copies of the last `bytes` of two areas: lines read of one,
 * lines written of the other. No time passes. */
void copy_warm(struct copy_process *process, unsigned cpu, struct uaddr from, struct uaddr to,
               uint64_t area_bytes, uint64_t bytes);

#endif
