/*
 * Parameters as tables: one entry per setting, from which the reader, `nudma describe`, the manual
 * and the `param` table of the results are made. See STYLE.md.
 */
#ifndef SIM_PARAM_H
#define SIM_PARAM_H

#include "sim/types.h"

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

#endif
