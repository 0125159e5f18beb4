/*
 * Parameters as tables: one entry per setting, from which the reader, `nudma describe`, the manual
 * and the `param` table of the results are made. See STYLE.md.
 */
#ifndef SIM_CONFIG_PARAM_H
#define SIM_CONFIG_PARAM_H

#include "sim/engine/types.h"

struct unit;

enum param_type {
    PARAM_END = 0,
    PARAM_BOOL,   /* bool */
    PARAM_U32,    /* uint32_t, a count */
    PARAM_U64,    /* uint64_t, a count */
    PARAM_DOUBLE, /* double, a ratio or a plain number */
    PARAM_BYTES,  /* uint64_t bytes; "64 KiB", "2 MB" */
    PARAM_TIME,   /* sim_time, picoseconds; key ends in _ps, _ns, _us, _ms or _s */
    PARAM_RATE, /* double; unit by the key's ending: _gbyte_s, _gbit_s, _gt_s, _mt_s, _ghz, _mhz */
    PARAM_ENUM, /* int, one of `names` (index) */
    PARAM_STRING, /* const char *, owned by the configuration, which outlives the run */
};

enum param_provenance { PROV_NONE, PROV_DATASHEET, PROV_PUBLISHED, PROV_CALIBRATED, PROV_ESTIMATE };

struct param_desc {
    const char *key; /* carries its unit: "read_latency_ns" */
    enum param_type type;
    enum param_provenance provenance; /* of the default */
    size_t offset;                    /* of the field in the state */
    double def, lo, hi;               /* in the unit of the key; ENUM: index */
    const char *def_string;           /* PARAM_STRING only */
    const char *const *names;         /* PARAM_ENUM only, NULL-terminated */
    const char *source;               /* anchor in docs/sources.md, "docs/sources.md#qpi" */
    const char *help;                 /* one line */
};

/* A setting that code reads by itself, for `nudma describe`: what something is, or a list. A table
 * of them ends with key NULL. */
struct setting_desc {
    const char *key;
    const char *expected; /* "a socket: server.s0" */
    const char *def;      /* "required", "none" */
    const char *help;     /* one line */
};

/* A required setting has def = NAN. */
#define PARAM(KEY, TYPE, STRUCT, FIELD, DEF, LO, HI, PROV, SOURCE, HELP)                       \
    {                                                                                          \
        .key = (KEY), .type = (TYPE), .provenance = (PROV), .offset = offsetof(STRUCT, FIELD), \
        .def = (DEF), .lo = (LO), .hi = (HI), .source = (SOURCE), .help = (HELP)               \
    }
#define PARAM_ONE_OF(KEY, STRUCT, FIELD, DEF, NAMES, PROV, SOURCE, HELP)                           \
    {                                                                                              \
        .key = (KEY), .type = PARAM_ENUM, .provenance = (PROV), .offset = offsetof(STRUCT, FIELD), \
        .def = (DEF), .names = (NAMES), .source = (SOURCE), .help = (HELP)                         \
    }
#define PARAM_TEXT(KEY, STRUCT, FIELD, DEF, HELP)                              \
    {                                                                          \
        .key = (KEY), .type = PARAM_STRING, .offset = offsetof(STRUCT, FIELD), \
        .def_string = (DEF), .help = (HELP)                                    \
    }

/* ---- Reading the tables ---------------------------------------------------------------------- */

/* One value as the state keeps it. */
struct param_value {
    bool truth;
    uint64_t whole; /* U32, U64; BYTES: bytes; TIME: picoseconds; ENUM: index */
    double real;    /* DOUBLE; RATE in the unit of the key */
    const char *string;
};

/* The unit of the key: "ns", "GB/s", "bytes", "" for counts, ratios, names and strings. */
const char *param_unit(const struct param_desc *desc);
/* Like param_unit(), but a unit to convert with; NULL if the key has none. Aborts if a PARAM_TIME
 * or PARAM_RATE key has no unit in its name. */
const struct unit *param_key_unit(const struct param_desc *desc);
/* "datasheet", "published", "calibrated", "estimate"; PROV_NONE: "" */
const char *param_provenance_name(enum param_provenance provenance);
/* False if there is no provenance of that name. */
bool param_provenance_find(const char *name, enum param_provenance *provenance);

bool param_required(const struct param_desc *desc);
struct param_value param_default(const struct param_desc *desc);
bool param_in_range(const struct param_desc *desc, const struct param_value *value);
void param_store(const struct param_desc *desc, void *state, const struct param_value *value);
/* Fills the state with the defaults, without any configuration. Required settings stay as they
 * are. */
void param_defaults(const struct param_desc *table, void *state);

/* The unit at the end of a name: "think_ns", "window_bytes"; NULL if it has none. */
const struct unit *param_unit_in_name(const char *name);
/* The value in the unit of the key, without the unit; the caller g_free()s it. */
char *param_format(const struct param_desc *desc, const struct param_value *value);
/* For messages, what is accepted: "an integer 1..16", "a time in ns 0..1000, or a string with its
 * unit (ps, ...)"; the caller g_free()s it. */
char *param_expected(const struct param_desc *desc);
/* Its limits alone, in the unit of the key: "0..1000 ns", "64 bytes or more"; NULL without. The
 * caller g_free()s it. */
char *param_expected_range(const struct param_desc *desc);

#endif
