/*
 * A scenario as a list of settings, so that it can be made at random and taken apart again: a path
 * and its value as text, in the order in which they are written. Elements of lists are named by
 * numbers in brackets ("cables.[2].to"); they are written in the order of their first setting, so
 * that one may be left out.
 */
#ifndef TESTS_RANDOM_RANDOM_SCENARIO_H
#define TESTS_RANDOM_RANDOM_SCENARIO_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define RANDOM_SETTINGS_MAX 400
#define RANDOM_PATH_BYTES   96
#define RANDOM_VALUE_BYTES  64

struct random_setting {
    char path[RANDOM_PATH_BYTES];
    char value[RANDOM_VALUE_BYTES]; /* as in a file: 8, true, "text" */
};

/* What is compared after a second run, in which one setting has another value. */
enum random_relation {
    RANDOM_NO_PAIR,
    RANDOM_NOT_WORSE, /* the metric does not fall (a rate), or does not rise (a latency) */
    RANDOM_SAME,      /* the metric stays: a latency is no occupancy */
    RANDOM_DIFFERS,   /* the setting has an effect: another fingerprint */
};

struct random_pair {
    enum random_relation relation;
    char path[RANDOM_PATH_BYTES], value[RANDOM_VALUE_BYTES];
    char metric[64];  /* a name that ends in _ns or _us is a latency, any other a rate */
    double tolerance; /* share by which it may be worse, beside the spread over seeds */
};

struct random_scenario {
    struct random_setting setting[RANDOM_SETTINGS_MAX];
    unsigned n;
    struct random_pair pair;
};

/* Sets a setting, or changes it; the value is formatted. */
void random_put(struct random_scenario *s, const char *path, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* The value, or NULL. */
const char *random_get(const struct random_scenario *s, const char *path);
/* Removes all settings at or below the path; how many there were. */
unsigned random_remove(struct random_scenario *s, const char *path);
/* Text of libconfig, with the pair in a comment; g_free(). */
char *random_text(const struct random_scenario *s);
/* Reads the pair from such a comment; RANDOM_NO_PAIR if the text has none. */
void random_pair_read(const char *text, struct random_pair *pair);

/* The n-th scenario that is a little smaller: a device with its cables and programs is left out, a
 * group, a setting goes back to its default, a number is halved. False: there is no n-th. */
bool random_smaller(const struct random_scenario *s, unsigned n, struct random_scenario *smaller);

#endif
