/* nudma run --trace-address. */
#ifndef CLI_TRACE_TRACE_ADDRESS_H
#define CLI_TRACE_TRACE_ADDRESS_H

#include "cli/campaign/plan.h"
#include "workloads/experiment.h"

/* "DEVICE,write=N,read=N,bytes=N", each part left out or not; false with what is wrong printed.
 * device is g_malloc'ed, or NULL. */
bool trace_address_parse(const char *text, struct experiment_followed *followed, char **device);
/* Runs the first point of the plan and prints what was followed; the exit status. */
int trace_address_run(const struct plan *plan, uint64_t seed,
                      const struct experiment_followed *followed);

#endif
