/*
 * One interface for every workload: a program that runs against a booted world and records what it
 * measured.
 */
#ifndef WORKLOADS_BASE_WORKLOAD_H
#define WORKLOADS_BASE_WORKLOAD_H

#include "models/world/world.h"
#include "sim/store/results.h"

/* How long to measure; group `measure` of a scenario. */
struct measure_params {
    sim_time warmup_ps;     /* not measured */
    sim_time warmup_min_ps; /* of it, at least; precision_ratio may end it from then on */
    sim_time duration_ps;   /* measured at most */
    double precision_ratio; /* ends earlier once half the 95 % interval is this share of the mean */
    uint64_t transactions;  /* ends earlier after so many; 0: no bound */
    bool latency_parts;     /* record latency_part_ns.* */
    sim_time sample_interval_ps; /* of recorded series; 0: none is recorded */
};
extern const struct param_desc measure_params_table[];

/* Settings of the group `workload`, and of each of `programs`, that are no parameters. */
extern const struct setting_desc workload_settings[];
extern const struct setting_desc program_settings[];
/* Those of each of `programs` beside its own. */
extern const struct param_desc program_params_table[];

/* The engine's own settings; group `engine`. */
struct engine_params {
    sim_time quantum_ps;
};
extern const struct param_desc engine_params_table[];

struct program_ops;

struct workload {
    const struct workload_ops *ops;
    const struct program_ops *const *programs; /* all there are, for the workload "programs" */
    struct world *world;
    struct sim *sim;
    struct config *config;
    struct config_node *group; /* `workload` of the scenario, NULL if it has none */
    struct measure_params measure;
    struct stat_precision precision; /* of the main metric; by measure.precision_ratio */
    bool is_noted;                   /* that it was reached */
    bool series_sampled;      /* set before rate_sampler_start(): see workload_simulated_ps() */
    sim_time series_event_ps; /* of the measurement, the same; 0: none */
    struct run_result *result;
    const volatile int *interrupt;
    void *state; /* ops->state_bytes, params read into it */
};

struct workload_ops {
    const char *type; /* the name scenarios use: "pcie_bench" */
    const char *help;
    size_t state_bytes;
    const struct param_desc *params;
    const struct stat_desc *stats; /* of the state; may be NULL */
    /* What it records beside them and workload_record_world(). Recording anything else is an error
     * of the run, so that whoever asks for it by name is told before. */
    const struct record_desc *records;
    /* Declares what depends on the scenario beside them (checked, not run); may be NULL. */
    void (*declare)(struct workload *workload, struct run_result *declared);
    /* One host is measured, as its check() sees: payload of the others may go by rate (host.h). */
    bool measures_one;
    /* Groups of the scenario, beside `workload`, that check() reads; NULL-terminated, or NULL. */
    const char *const *groups;
    /* Resolves references and checks settings against each other; mistakes go to errors. */
    void (*check)(struct workload *workload, struct sim_error_list *errors);
    /* Runs; the world is booted. Failures go to sim_fail(). */
    void (*run)(struct workload *workload);
    /* Frees what check() and run() allocated; may be NULL. */
    void (*release)(struct workload *workload);
};

extern const struct workload_ops workload_pcie_bench_ops, workload_memory_ops,
    workload_programs_ops, workload_trends_ops;

/* In check(): the setting `key` of the workload's group is a mistake (config_mistake_at()). */
void workload_mistake(struct workload *workload, const char *key, struct sim_error_list *errors,
                      const char *expected, const char *const *names);
/* In check(): the setting `key` of the group `measure` has no effect, as the workload's setting
 * `decider` stands; NULL: never. */
void workload_measure_no_effect(struct workload *workload, const char *key, const char *decider,
                                struct sim_error_list *errors, const char *expected);
/* The same of a setting of the workload's own group. */
void workload_no_effect(struct workload *workload, const char *key, const char *decider,
                        struct sim_error_list *errors, const char *expected);
/* After each sample of the main metric: enough transactions, or known well enough. */
bool workload_measured(struct workload *workload, const struct stat_mean *mean);
/* False: the run has failed, or is interrupted. */
bool workload_goes_on(const struct workload *workload);
/* Runs the simulation until `*done`, an error, the interrupt or simulated time until_ps, which also
 * comes when nothing is left to happen before it. With
 * SIM_TIME_MAX it is an error of the run if nothing is left to happen before `*done`. */
void workload_run_until(struct workload *workload, const bool *done, sim_time until_ps);
/* ---- Series ---------------------------------------------------------------------------------- */
/* Rates over the time that is measured, a sample for each measure.sample_interval_us. */
struct rate_series {
    const char *name, *unit; /* declared in ops->records, too */
    double scale;            /* of a count per second (or of a mean), to the unit */
    /* So far, of the series at this place of its table; never less than before. */
    uint64_t (*count)(const struct workload *workload, unsigned idx);
    /* NULL: a rate. Else a mean: the count of these, which count() is the sum of. An interval in
     * which there are none has no sample. */
    uint64_t (*of)(const struct workload *workload, unsigned idx);
};

struct rate_sampler {
    struct workload *workload;
    const struct rate_series *series;
    unsigned n_series;
    struct sim_event event;
    uint64_t n_intervals; /* that have ended or were passed over */
    struct rate_counts {
        uint64_t count, of;
    } * last; /* of each series, at the last sample */
};

/*
 * How much of the first measured_ps of the measurement is simulated. All of it, unless
 * workload->series_sampled: then all of the first measure.sample_interval_us, of that in which
 * workload->series_event_ps is and of the next, and the first tenth of others: of the one before
 * the event, of the last one, and of the n-th after the start or the event for n below 8, of every
 * second one below 16, every fourth below 32, every eighth from there. What is left out passes for
 * nobody: the simulation goes on where it stopped.
 */
sim_time workload_simulated_ps(const struct workload *workload, sim_time measured_ps);
/* Whether a tenth of an interval is long enough to be one. */
bool workload_series_long(const struct workload *workload);
/* Begins now, after world_stats_clear(), if the scenario asks for samples. Recorded are t_ps, from
 * now to the end of an interval, and the mean rate within it, of each that is not passed over; the
 * last one is the last whole one of measure.duration_us. series: n of them, kept; not hot. */
void rate_sampler_start(struct rate_sampler *sampler, struct workload *workload,
                        const struct rate_series *series, unsigned n_series);
/* Ends it, if it has begun: the workload has measured enough, or is released. */
void rate_sampler_stop(struct rate_sampler *sampler);
/* Bytes of DRAM traffic of all hosts, for a series "memory_gbyte_s"; idx is not used. */
uint64_t workload_dram_bytes(const struct workload *workload, unsigned idx);

/* ---- Settled or not (settle.c has the rule) -------------------------------------------------- */
/* Whether a quantity had settled, of which n values are known, in order of time. If not, adds a
 * note "not_settled.<what>" to the result, which commands print. Fewer values than SETTLE_PARTS_MIN
 * are not judged. least: what one operation adds to a value that counts operations, else 0. */
#define SETTLE_PARTS     16u
#define SETTLE_PARTS_MIN 10u
bool workload_settled(struct workload *workload, const char *what, const double *value, unsigned n,
                      double least);
/* The same of the batches of a mean. */
bool workload_mean_settled(struct workload *workload, const char *what,
                           const struct stat_mean *mean);
/* Calls sample(context, i) now (i = 0) and at the end of each of SETTLE_PARTS equal parts of the
 * time to until_ps, and runs the simulation in between as workload_run_until(); no samples after
 * *done. */
typedef void settle_sample_fn(void *context, unsigned i);
void workload_run_parts(struct workload *workload, const bool *done, sim_time until_ps,
                        settle_sample_fn *sample, void *context);
/* workload_settled() of the rate of a count: SETTLE_PARTS + 1 samples of workload_run_parts().
 * unit: what one operation adds. */
bool workload_count_settled(struct workload *workload, const char *what, const double *count,
                            double unit);

/* Records metrics of a timed transaction: mean parts in ns, "latency_part_ns.<part>". */
struct part_means {
    uint64_t n;
    sim_time total_ps[N_LATENCY_PARTS];
};
/* Adds a finished stamp; checks that the parts sum to end_ps - start exactly. */
void part_means_add(struct workload *workload, struct part_means *means,
                    const struct sim_stamp *stamp, sim_time end_ps);
void part_means_record(struct workload *workload, const struct part_means *means);
/* Declares what a run may record; a record "latency_part_ns.*" stands for those of
 * part_means_record(). The world need not have been booted. */
void workload_declare(struct workload *workload, struct run_result *declared);
/* The metrics that all workloads have through workload_record_world(), for nudma describe. */
extern const struct record_desc workload_world_records[];
/* Records every statistic of the world (those of hosts and devices), and the derived metrics that
 * all scenarios share: memory_gbyte_s, interconnect_gbyte_s. Those are about the host `measured`
 * (the others' have their names before them); with NULL the memory of all hosts counts.
 * duration_ps: since world_stats_clear(). SIM_ASSERTs that no resource carried more than its
 * peak. */
void workload_record_world(struct workload *workload, struct host *measured, sim_time duration_ps);

#endif
