/* nudma run --trace: what software does, step by step (k_trace()). */
#include "cli/trace/trace_software.h"

#include "cli/base/cli.h"
#include "cli/trace/trace_apart.h"
#include "sim/engine/steps.h"
#include "workloads/experiment.h"

static void print_steps(const struct sim_steps *steps)
{
    for (unsigned i = 0; i < steps->n; i++) {
        const struct sim_step *step = &steps->step[i];
        const sim_time before_ps = i > 0 ? steps->step[i - 1].at_ps : step->at_ps;
        printf("%14.3f us %+10.3f  %-12s CPU %-3u %s (%" G_GUINT64_FORMAT ")\n",
               (double)step->at_ps * 1e-6, ((double)step->at_ps - (double)before_ps) * 1e-6,
               step->where, step->cpu, step->what, step->number);
    }
}

static int trace(const struct plan *plan, uint64_t seed, unsigned n)
{
    const struct plan_point *point = plan_point(plan, 0);
    const char *name = plan_point_name(point);
    struct sim_error_list errors = { 0 };
    g_autofree char *error = NULL;
    struct sim_steps steps = { .room = n, .step = g_new0(struct sim_step, n) };
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    int status = CLI_FAILED;
    if (config != NULL)
        experiment_trace(config, seed, &steps, &errors, &error);
    if (errors.n_messages != 0) {
        status = CLI_WRONG;
        cli_report(&errors);
    } else if (error != NULL) {
        fprintf(stderr, "%s %s seed %" G_GUINT64_FORMAT ": %s\n", scenario_name(point->scenario),
                name, seed, error);
    } else if (steps.n == 0) {
        fprintf(stderr,
                "%s%s%s: --trace: none of the software of this point notes its steps, only that of "
                "NVMe over Fabrics does (program nvmeof_target)%s\n",
                scenario_name(point->scenario), *name != '\0' ? " " : "", name,
                scenario_n_points(point->scenario) > 1 ? "; --filter chooses another point" : "");
    } else {
        print_steps(&steps);
        status = CLI_DONE;
    }
    return status; /* in a process that ends now */
}

struct request {
    const struct plan *plan;
    uint64_t seed;
    unsigned n;
};

static int trace_request(const void *arg)
{
    const struct request *r = arg;
    return trace(r->plan, r->seed, r->n);
}

int trace_software_run(const struct plan *plan, uint64_t seed, unsigned n)
{
    return trace_apart(trace_request, &(struct request){ plan, seed, n });
}
