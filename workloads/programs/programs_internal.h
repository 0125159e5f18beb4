/* The inside of the workload "programs", for programs*.c only. */
#ifndef WORKLOADS_PROGRAMS_PROGRAMS_INTERNAL_H
#define WORKLOADS_PROGRAMS_PROGRAMS_INTERNAL_H

#include "workloads/base/sampling.h"
#include "workloads/programs/program.h"

#define PROGRAMS_CPUS_MAX 256u

struct metric_sum {
    const char *name, *unit;
    double value;
};

struct programs {
    /* parameters */
    const char *measured_name;
    sim_time connect_within_ps;
    double warm_misses_ratio; /* of the warm-up: numa_warm_by_misses() */
    /* running */
    struct workload *workload;
    struct lending *lending; /* NULL: the scenario has no such group */
    struct network *network;
    struct host *measured;              /* the host that metrics are about */
    struct kernel *kernel;              /* of it, once it is up */
    struct network_host *measured_net;  /* its part in the network, or NULL */
    struct lending_host *measured_lend; /* its part in the group `lending`, or NULL */
    struct program *program;
    unsigned n_programs;
    bool measuring, done;
    bool uses_cpu[PROGRAMS_CPUS_MAX]; /* of the measured host */
    sim_time begin_ps;
    struct sim_random random; /* of connect_within_ps */
    unsigned packets_which;   /* enum program_packets */
    uint64_t sent_at_begin, received_at_begin, operations;
    bool ending;
    uint16_t next_stream;
    struct metric_sum *sum; /* n_sums of them */
    unsigned n_sums;
    struct rate_sampler sampler;
    struct rate_series *series;
    struct programs_series {
        const struct program *program; /* NULL: the sum of all that have such a rate */
        const struct program_rate *rate;
    } * series_of; /* of each of these */
    unsigned n_series;
    double received_at[SETTLE_PARTS + 1]; /* bytes, at the ends of equal parts */
    struct sampling sampling;
    char fault[256]; /* why the run has failed, told when the hosts are down; "" */
};

/* ---- programs_record.c ----------------------------------------------------------------------- */
extern const struct record_desc programs_records[];
/* What depends on the programs. */
void programs_declare(struct workload *workload, struct run_result *declared);
/* In check(), without mistakes until now: the program has the name of a host or device, which has a
 * statistic with the name of one of its records. */
void programs_check_names(struct workload *workload, const struct program *program,
                          struct sim_error_list *errors);
/* In check(): measure.sample_interval_us is a mistake if nothing that runs has a series. */
void programs_check_series(struct programs *all, struct sim_error_list *errors);
void programs_series_release(struct programs *all);
/* The measurement begins: clears what is counted, starts the series. */
void programs_begin(struct programs *all);
void programs_record(struct programs *all, sim_time duration_ps);
/* settle_sample_fn of a struct programs. */
void programs_sample(void *context, unsigned i);
/* sampling_read_fn of a struct programs. */
void programs_read(void *context, struct sampling *sampling);
/* Adds notes about what had not settled; all parts have been sampled, unless the sampling ended
 * early. */
void programs_settled(struct programs *all);

#endif
