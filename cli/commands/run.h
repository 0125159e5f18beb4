/* What nudma run and nudma figures share. */
#ifndef CLI_COMMANDS_RUN_H
#define CLI_COMMANDS_RUN_H

#include "cli/campaign/until.h"
#include "cli/campaign/worker.h"
#include "cli/trace/trace_files.h"
#include "workloads/experiment.h"

struct run_request {
    struct cli_options options;
    int n_workers, n_seeds;
    int progress_s; /* --progress, 0 unless given */
    int64_t first_seed;
    char **sets, **filters;
    char *shard, *until_text, *memory_text, *run_memory_text;
    char *precision_text, *precision; /* --precision, NULL unless given; as a share: "0.01" */
    double timeout_s;
    char *trace_text; /* --trace-address, NULL unless given */
    char *trace_device;
    char *steps_text; /* --trace, NULL unless given */
    int n_steps;      /* that it says; 0: none */
    struct experiment_followed followed;
    struct trace_files trace_files;
    gboolean bands, quick, force, missing, list, print_config, stats, quiet;
    struct until until; /* no metric: as many seeds as said */
    uint64_t memory_bytes;
    struct worker_limits limits;
    bool with_table; /* print the results */
    char *command_line;
};

/* Of --precision=RATIO, for --help. */
#define RUN_PRECISION_TEXT                                                                      \
    "End measurements of steady loads, after half of their time at the earliest, once what is " \
    "measured is known to RATIO, '1%'; results say which"

/* Of --progress=SECONDS. */
#define RUN_PROGRESS_TEXT \
    "Where it is no terminal: how far it is every SECONDS, instead of a line for each run"

/* Defaults: a worker per processor, seed 1. */
void run_request_init(struct run_request *request);
/* False with what is wrong printed; reads --precision. */
bool run_request_sound(struct run_request *request);
void run_request_release(struct run_request *request);
/* Checks, runs and shows; the exit status. */
int run_scenarios(struct run_request *request, char **arguments);

#endif
