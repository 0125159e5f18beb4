/*
 * Runs scenarios of tests/random/ and holds them against the properties (random_properties.c). Each
 * batch runs in a child process: what dies there is a failure of its scenario, and the rest goes
 * on.
 */
#ifndef TESTS_RANDOM_RANDOM_RUN_H
#define TESTS_RANDOM_RANDOM_RUN_H

#include "sim/config/config.h"
#include "sim/store/results.h"
#include "tests/random/random_generate.h"

/* What came out for one scenario. The property is empty if all of them hold. */
struct random_verdict {
    char property[40];
    char message[600];
    unsigned n_runs;
};

/* One finished run: the resolved settings and the metrics. */
struct random_facts {
    struct config *config;
    GHashTable *setting; /* path -> value as text */
    struct run_result *result;
    GString *missing; /* the first metric that random_metric() did not find; "" */
    uint64_t fingerprint;
};

/* The number of a setting as the run used it (its default, if the scenario has none); NAN if there
 * is no such setting. */
double random_number(const struct random_facts *f, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The text of a setting, or "". */
const char *random_word(const struct random_facts *f, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The value of a metric. One that the run does not have is 0, and random_properties() fails: no
 * property holds because of a name that is no more. */
double random_metric(const struct random_facts *f, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The same of a metric that the run need not have. */
double random_metric_if_any(const struct random_facts *f, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* Notes the first property that does not hold. */
void random_fails(struct random_verdict *v, const char *property, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* random_properties.c: of one run. */
void random_properties(const struct random_facts *f, struct random_verdict *v);

/* How a scenario is looked at. */
enum random_mode {
    RANDOM_VALID, /* must be accepted, must run, all properties must hold */
    RANDOM_ANY,   /* may be refused, with a message that names a place; must not die */
};

/* The verdict of a text, in this process (which may die). */
void random_judge(const char *text, enum random_mode mode, struct random_verdict *v);
/* The same in a child. */
void random_judge_safely(const char *text, enum random_mode mode, struct random_verdict *v);
/* Judges n seeds from `from` on, in children; verdict[n]. */
void random_judge_seeds(random_make_fn *make, enum random_mode mode, uint64_t from, unsigned n,
                        struct random_verdict *verdict);
/* Makes the scenario as small as it gets while the same property fails with the
 * same kind of message (numbers and names aside); returns its verdict. */
struct random_verdict random_shrink(struct random_scenario *s, enum random_mode mode,
                                    const struct random_verdict *v);

#endif
