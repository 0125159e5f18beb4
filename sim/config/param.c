#include "sim/config/param.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/config/unit.h"

/* Endings of keys; of two that fit the longer stands first. */
static const struct {
    const char *ending, *symbol;
} key_units[] = {
    { "_gbyte_s", "GB/s" },  { "_mbyte_s", "MB/s" },  { "_kbyte_s", "kB/s" },
    { "_byte_s", "B/s" },    { "_gbit_s", "Gbit/s" }, { "_mbit_s", "Mbit/s" },
    { "_kbit_s", "kbit/s" }, { "_bit_s", "bit/s" },   { "_gt_s", "GT/s" },
    { "_mt_s", "MT/s" },     { "_ghz", "GHz" },       { "_mhz", "MHz" },
    { "_khz", "kHz" },       { "_hz", "Hz" },         { "_ps", "ps" },
    { "_ns", "ns" },         { "_us", "us" },         { "_ms", "ms" },
    { "_s", "s" },
};

const struct unit *param_unit_in_name(const char *name)
{
    if (g_str_has_suffix(name, "_bytes"))
        return unit_find("B");
    for (size_t i = 0; i < SIM_N_ELEMENTS(key_units); i++) {
        if (g_str_has_suffix(name, key_units[i].ending))
            return unit_find(key_units[i].symbol);
    }
    return NULL;
}

const struct unit *param_key_unit(const struct param_desc *desc)
{
    bool time = desc->type == PARAM_TIME;
    const struct unit *unit;

    if (desc->type == PARAM_BYTES)
        return unit_find("B");
    if (!time && desc->type != PARAM_RATE)
        return NULL;
    unit = param_unit_in_name(desc->key);
    SIM_ASSERT(unit, "parameter %s has no unit in its name", desc->key);
    SIM_ASSERT((unit->dimension == UNIT_TIME) == time, "unit of parameter %s", desc->key);
    return unit;
}

const char *param_unit(const struct param_desc *desc)
{
    const struct unit *unit = param_key_unit(desc);

    if (desc->type == PARAM_BYTES)
        return "bytes";
    return unit ? unit->symbol : "";
}

static const char *const provenance_names[] = {
    [PROV_NONE] = "",
    [PROV_DATASHEET] = "datasheet",
    [PROV_PUBLISHED] = "published",
    [PROV_CALIBRATED] = "calibrated",
    [PROV_ESTIMATE] = "estimate",
};

const char *param_provenance_name(enum param_provenance provenance)
{
    return provenance_names[provenance];
}

bool param_provenance_find(const char *name, enum param_provenance *provenance)
{
    for (size_t i = PROV_DATASHEET; i < SIM_N_ELEMENTS(provenance_names); i++) {
        if (strcmp(name, provenance_names[i]) == 0) {
            *provenance = (enum param_provenance)i;
            return true;
        }
    }
    return false;
}

bool param_required(const struct param_desc *desc)
{
    return isnan(desc->def);
}

struct param_value param_default(const struct param_desc *desc)
{
    struct param_value value = { 0 };
    const struct unit *one = unit_find("B"); /* a plain whole number */

    if (param_required(desc))
        return value;
    switch (desc->type) {
    case PARAM_BOOL: value.truth = desc->def > 0; break;
    case PARAM_DOUBLE:
    case PARAM_RATE: value.real = desc->def; break;
    case PARAM_STRING: value.string = desc->def_string; break;
    case PARAM_TIME:
        SIM_ASSERT(unit_whole_from_double(desc->def, param_key_unit(desc), &value.whole) == UNIT_OK,
                   "default of parameter %s is no whole number of ps", desc->key);
        break;
    case PARAM_U32:
    case PARAM_U64:
    case PARAM_BYTES:
    case PARAM_ENUM:
        SIM_ASSERT(unit_whole_from_double(desc->def, one, &value.whole) == UNIT_OK,
                   "default of parameter %s is no whole number", desc->key);
        break;
    case PARAM_END: break;
    }
    return value;
}

/* lo and hi left out (both 0) mean no limits; an infinite one is none */
static bool has_limits(const struct param_desc *desc)
{
    if (desc->type == PARAM_BOOL || desc->type == PARAM_ENUM || desc->type == PARAM_STRING)
        return false;
    return desc->lo < 0 || desc->lo > 0 || desc->hi < 0 || desc->hi > 0;
}

static bool time_in_range(const struct param_desc *desc, uint64_t ps)
{
    const struct unit *unit = param_key_unit(desc);
    uint64_t limit_ps;

    if (desc->lo > 0) {
        enum unit_status status = unit_whole_from_double(desc->lo, unit, &limit_ps);

        if (status == UNIT_TOO_LARGE || (status == UNIT_OK && ps < limit_ps))
            return false;
    }
    return unit_whole_from_double(desc->hi, unit, &limit_ps) != UNIT_OK || ps <= limit_ps;
}

bool param_in_range(const struct param_desc *desc, const struct param_value *value)
{
    double real = value->real;

    if (desc->type == PARAM_U32 && value->whole > UINT32_MAX)
        return false;
    if (!has_limits(desc))
        return true;
    if (desc->type == PARAM_TIME)
        return time_in_range(desc, value->whole);
    if (desc->type != PARAM_DOUBLE && desc->type != PARAM_RATE)
        real = (double)value->whole;
    return !(real < desc->lo) && !(real > desc->hi);
}

void param_store(const struct param_desc *desc, void *state, const struct param_value *value)
{
    char *field = (char *)state + desc->offset;
    uint32_t u32 = (uint32_t)value->whole;
    int index = (int)value->whole;

    switch (desc->type) {
    case PARAM_BOOL: memcpy(field, &value->truth, sizeof(value->truth)); break;
    case PARAM_U32: memcpy(field, &u32, sizeof(u32)); break;
    case PARAM_U64:
    case PARAM_BYTES:
    case PARAM_TIME: memcpy(field, &value->whole, sizeof(value->whole)); break;
    case PARAM_DOUBLE:
    case PARAM_RATE: memcpy(field, &value->real, sizeof(value->real)); break;
    case PARAM_ENUM: memcpy(field, &index, sizeof(index)); break;
    case PARAM_STRING: memcpy(field, &value->string, sizeof(value->string)); break;
    case PARAM_END: break;
    }
}

void param_defaults(const struct param_desc *table, void *state)
{
    for (const struct param_desc *desc = table; desc->type != PARAM_END; desc++) {
        struct param_value value = param_default(desc);

        if (!param_required(desc))
            param_store(desc, state, &value);
    }
}

char *param_format(const struct param_desc *desc, const struct param_value *value)
{
    char text[UNIT_TEXT_BYTES];

    switch (desc->type) {
    case PARAM_BOOL: return g_strdup(value->truth ? "true" : "false");
    case PARAM_U32:
    case PARAM_U64:
    case PARAM_BYTES: return g_strdup_printf("%" PRIu64, value->whole);
    case PARAM_TIME: return g_strdup(unit_format_whole(value->whole, param_key_unit(desc), text));
    case PARAM_DOUBLE:
    case PARAM_RATE: return g_strdup(unit_format_double(value->real, text));
    case PARAM_ENUM: return g_strdup(desc->names[value->whole]);
    case PARAM_STRING: return g_strdup(value->string ? value->string : "");
    case PARAM_END: break;
    }
    return g_strdup("");
}

/* "1..16 ns", "1 ns or more", "at most 16 ns", of the symbol with the blank before it; NULL without
 * limits */
static char *range_text(const struct param_desc *desc, const char *symbol)
{
    const double many = 0x1p53; /* limits from here on are those of the type, not of the setting */
    char lo[UNIT_TEXT_BYTES], hi[UNIT_TEXT_BYTES];
    bool below = desc->lo > -many, above = desc->hi < many;

    if (!has_limits(desc) || (!below && !above))
        return NULL;
    unit_format_double(desc->lo, lo);
    unit_format_double(desc->hi, hi);
    if (below && above)
        return g_strdup_printf("%s..%s%s", lo, hi, symbol);
    return below ? g_strdup_printf("%s%s or more", lo, symbol)
                 : g_strdup_printf("at most %s%s", hi, symbol);
}

/* " 1..16", ", 1 or more", ", at most 16" or nothing */
static void append_range(GString *text, const struct param_desc *desc)
{
    g_autofree char *range = range_text(desc, "");

    if (range)
        g_string_append_printf(text, "%s %s", strstr(range, "..") ? "" : ",", range);
}

char *param_expected_range(const struct param_desc *desc)
{
    g_autofree char *symbol = g_strdup_printf(" %s", param_unit(desc));

    return range_text(desc, param_key_unit(desc) ? symbol : "");
}

char *param_expected(const struct param_desc *desc)
{
    const struct unit *unit = param_key_unit(desc);
    GString *text = g_string_new(NULL);

    switch (desc->type) {
    case PARAM_BOOL: g_string_append(text, "true or false"); break;
    case PARAM_U32:
    case PARAM_U64: g_string_append(text, "an integer"); break;
    case PARAM_DOUBLE: g_string_append(text, "a number"); break;
    case PARAM_STRING: g_string_append(text, "a string"); break;
    case PARAM_BYTES:
    case PARAM_TIME:
    case PARAM_RATE:
        g_string_append_printf(text, "%s in %s", unit_dimension_name(unit->dimension),
                               param_unit(desc));
        break;
    case PARAM_ENUM:
        for (size_t i = 0; desc->names[i]; i++)
            g_string_append_printf(text, "%s\"%s\"", i ? ", " : "one of ", desc->names[i]);
        break;
    case PARAM_END: break;
    }
    append_range(text, desc);
    if (unit)
        g_string_append_printf(text, ", or a string with its unit (%s)",
                               unit_symbols(unit->dimension));
    return g_string_free(text, FALSE);
}
