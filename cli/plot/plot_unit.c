/* The units of sim/config/unit.h, and what metrics and figures have besides. */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "cli/plot/plot_unit.h"
#include "sim/config/unit.h"

/* Beside those of scenarios. How often something happens is of the dimension of frequencies here,
 * whatever it is. */
static const struct unit more[] = {
    { "1", UNIT_NONE, 0, 0 },
    { "%", UNIT_NONE, 0, -2 },
    { "bytes", UNIT_SIZE, 0, 0 },
    { "\xc2\xb5s", UNIT_TIME, 0, 6 },
    { "1/s", UNIT_FREQUENCY, 0, 0 },
    { "1000/s", UNIT_FREQUENCY, 0, 3 },
    { "1000000/s", UNIT_FREQUENCY, 0, 6 },
    { "1/ms", UNIT_FREQUENCY, 0, 3 },
    { "1/us", UNIT_FREQUENCY, 0, 6 },
    { "pps", UNIT_FREQUENCY, 0, 0 },
    { "kpps", UNIT_FREQUENCY, 0, 3 },
    { "Mpps", UNIT_FREQUENCY, 0, 6 },
    { "IOPS", UNIT_FREQUENCY, 0, 0 },
    { "kIOPS", UNIT_FREQUENCY, 0, 3 },
    { "MIOPS", UNIT_FREQUENCY, 0, 6 },
};

static const struct unit *find(const char *symbol)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(more); i++)
        if (strcmp(more[i].symbol, symbol) == 0)
            return &more[i];
    return unit_find(symbol);
}

static enum unit_dimension dimension_of(const struct unit *unit)
{
    return unit->dimension == UNIT_TRANSFER_RATE ? UNIT_FREQUENCY : unit->dimension;
}

bool plot_unit_factor(const char *from, const char *to, double *factor)
{
    const struct unit *a = find(from), *b = find(to);
    *factor = 1.0;
    if (*to == '\0' || a == NULL || strcmp(from, to) == 0)
        return true;
    if (b == NULL)
        return a->dimension == UNIT_NONE;
    if (dimension_of(a) != dimension_of(b))
        return false;
    *factor = ldexp(1.0, a->pow2 - b->pow2) * pow(10.0, a->pow10 - b->pow10);
    return true;
}

static void add_symbols(GPtrArray *units, enum unit_dimension dimension)
{
    g_auto(GStrv) symbols = g_strsplit(unit_symbols(dimension), ", ", -1);
    for (char **symbol = symbols; *symbol != NULL; symbol++)
        g_ptr_array_add(units, g_strdup(*symbol));
}

char **plot_units_like(const char *from)
{
    const struct unit *unit = find(from);
    GPtrArray *units = g_ptr_array_new();
    for (size_t i = 0; unit != NULL && i < SIM_N_ELEMENTS(more); i++)
        if (more[i].dimension == dimension_of(unit))
            g_ptr_array_add(units, g_strdup(more[i].symbol));
    if (unit != NULL && unit->dimension != UNIT_NONE)
        add_symbols(units, dimension_of(unit));
    if (unit != NULL && dimension_of(unit) == UNIT_FREQUENCY)
        add_symbols(units, UNIT_TRANSFER_RATE);
    g_ptr_array_add(units, NULL);
    return (char **)g_ptr_array_free(units, FALSE);
}
