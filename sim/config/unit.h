/*
 * Quantities written with their unit: "64 GiB", "87.5 ns", "9.6 GT/s". Decimal fractions are kept
 * exactly until the one rounding into a double, or none for picoseconds and bytes.
 */
#ifndef SIM_CONFIG_UNIT_H
#define SIM_CONFIG_UNIT_H

#include "sim/engine/types.h"

enum unit_dimension {
    UNIT_NONE,
    UNIT_SIZE,          /* base: bytes */
    UNIT_TIME,          /* base: picoseconds */
    UNIT_DATA_RATE,     /* base: bit/s */
    UNIT_TRANSFER_RATE, /* base: transfers/s */
    UNIT_FREQUENCY,     /* base: Hz */
};

/* One of it is 2^pow2 * 10^pow10 of the dimension's base. */
struct unit {
    const char *symbol;
    enum unit_dimension dimension;
    int pow2, pow10;
};

enum unit_status {
    UNIT_OK,
    UNIT_NO_NUMBER, /* does not begin with a number */
    UNIT_MISSING,   /* a number without a unit */
    UNIT_UNKNOWN,   /* no unit of that name */
    UNIT_MISFIT,    /* a unit of another dimension */
    UNIT_NEGATIVE,
    UNIT_FRACTION, /* not a whole number of bytes or picoseconds */
    UNIT_TOO_LARGE
};

/* NULL if there is none of that symbol; case matters, since ms and Ms are not the same. */
const struct unit *unit_find(const char *symbol);
/* "ps, ns, us, ms, s" */
const char *unit_symbols(enum unit_dimension dimension);
/* "a time"; UNIT_NONE: "a plain number" */
const char *unit_dimension_name(enum unit_dimension dimension);

/* The symbol that "Gb/s" and "Gbps" mean, "Gbit/s": a small b is a bit. NULL: others. */
const char *unit_of_bits(const char *symbol);

/* For a quantity whose unit is unknown: `did you mean "kB" or "KiB"?`; NULL if no unit of the
 * dimension is near. The caller g_free()s it. */
char *unit_suggestion(const char *text, enum unit_dimension dimension);

/* Reads a quantity that has to be a whole number of bytes or picoseconds. *found (may be NULL) is
 * the dimension of its unit, on UNIT_MISFIT too. */
enum unit_status unit_parse_whole(const char *text, enum unit_dimension wanted, uint64_t *value,
                                  enum unit_dimension *found);
/* Like unit_parse_whole(), but *value is a multiple of `key`, rounded once to the nearest
 * double. */
enum unit_status unit_parse_scaled(const char *text, const struct unit *key, double *value,
                                   enum unit_dimension *found);
/* Converts x units to a whole number of base units. x stands for the shortest decimal that reads
 * back as x: 87.3 is 87.3 and not its nearest binary fraction. */
enum unit_status unit_whole_from_double(double x, const struct unit *unit, uint64_t *value);
enum unit_status unit_whole_from_int(int64_t x, const struct unit *unit, uint64_t *value);

/* The shortest decimal that reads back as x; buffer of UNIT_TEXT_BYTES, which is returned. */
#define UNIT_TEXT_BYTES 48
const char *unit_format_double(double x, char *buffer);
/* value base units as an exact decimal in `unit` (pow2 == 0): 87500 ps in ns is "87.5". */
const char *unit_format_whole(uint64_t value, const struct unit *unit, char *buffer);

#endif
