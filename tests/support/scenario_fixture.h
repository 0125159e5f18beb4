/* Whole runs of scenarios from text; each must be without mistakes unless said otherwise. */
#ifndef TESTS_SUPPORT_SCENARIO_FIXTURE_H
#define TESTS_SUPPORT_SCENARIO_FIXTURE_H

#include "sim/config/scenario.h"
#include "sim/store/results.h"
#include "tests/support/world_fixture.h"
#include "workloads/experiment.h"

/* That of a name below scenarios/, or of a file; scenario_free(). */
struct scenario *scenario_named(const char *name);
/* Runs `text` with seed 1. NULL, or what the run failed with; g_free(). */
char *scenario_run_into(const char *text, struct run_result *result);
/* The same of a run that must succeed; run_result_free(). */
struct run_result *scenario_run(const char *text);
/* The run must begin and fail with what contains `message`. */
void scenario_fails(const char *text, const char *message);
/* The same of a run that fails while its hosts are up: what their software has is not given back
 * then, as the process of such a run ends with it. `message` is all that it says. */
void scenario_breaks_off(const char *text, const char *message);
/* A metric that must be there. */
double scenario_value(struct run_result *result, const char *metric);
/* Must be refused before time starts, by one message, which contains `message`. */
void scenario_refused(const char *text, const char *message);
/* The same by several messages, of which one contains `message`. */
void scenario_refused_among(const char *text, const char *message);
/* Of many runs that differ in a value only a test makes every n-th. n is 1, or `sanitized` in a
 * build with sanitizers, where a run takes four times as long and executes the code of its
 * neighbours. */
unsigned scenario_stride(unsigned sanitized);

#endif
