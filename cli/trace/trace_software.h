/* nudma run --trace. */
#ifndef CLI_TRACE_TRACE_SOFTWARE_H
#define CLI_TRACE_TRACE_SOFTWARE_H

#include "cli/campaign/plan.h"

#define TRACE_STEPS_MAX 1000000

/* Runs the first point of the plan and prints the first n steps of software behind the warm-up; the
 * exit status. */
int trace_software_run(const struct plan *plan, uint64_t seed, unsigned n);

#endif
