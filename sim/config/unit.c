#include "sim/config/unit.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/error.h"

#define MAX_DIGITS  30 /* significant digits of a quantity; 10^30 < 2^128 */
#define MAX_EXP_ABS 9999

/* mantissa * 10^exp10; the mantissa has no trailing zero after the point */
struct decimal {
    bool negative;
    unsigned __int128 mantissa;
    int exp10;
};

static const struct unit units[] = {
    { "B", UNIT_SIZE, 0, 0 },
    { "kB", UNIT_SIZE, 0, 3 },
    { "MB", UNIT_SIZE, 0, 6 },
    { "GB", UNIT_SIZE, 0, 9 },
    { "TB", UNIT_SIZE, 0, 12 },
    { "KiB", UNIT_SIZE, 10, 0 },
    { "MiB", UNIT_SIZE, 20, 0 },
    { "GiB", UNIT_SIZE, 30, 0 },
    { "TiB", UNIT_SIZE, 40, 0 },
    { "ps", UNIT_TIME, 0, 0 },
    { "ns", UNIT_TIME, 0, 3 },
    { "us", UNIT_TIME, 0, 6 },
    { "ms", UNIT_TIME, 0, 9 },
    { "s", UNIT_TIME, 0, 12 },
    { "bit/s", UNIT_DATA_RATE, 0, 0 },
    { "kbit/s", UNIT_DATA_RATE, 0, 3 },
    { "Mbit/s", UNIT_DATA_RATE, 0, 6 },
    { "Gbit/s", UNIT_DATA_RATE, 0, 9 },
    { "B/s", UNIT_DATA_RATE, 3, 0 },
    { "kB/s", UNIT_DATA_RATE, 3, 3 },
    { "MB/s", UNIT_DATA_RATE, 3, 6 },
    { "GB/s", UNIT_DATA_RATE, 3, 9 },
    { "MiB/s", UNIT_DATA_RATE, 23, 0 },
    { "GiB/s", UNIT_DATA_RATE, 33, 0 },
    { "MT/s", UNIT_TRANSFER_RATE, 0, 6 },
    { "GT/s", UNIT_TRANSFER_RATE, 0, 9 },
    { "Hz", UNIT_FREQUENCY, 0, 0 },
    { "kHz", UNIT_FREQUENCY, 0, 3 },
    { "MHz", UNIT_FREQUENCY, 0, 6 },
    { "GHz", UNIT_FREQUENCY, 0, 9 },
};

const struct unit *unit_find(const char *symbol)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(units); i++) {
        if (strcmp(units[i].symbol, symbol) == 0)
            return &units[i];
    }
    return NULL;
}

const char *unit_symbols(enum unit_dimension dimension)
{
    switch (dimension) {
    case UNIT_SIZE: return "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
    case UNIT_TIME: return "ps, ns, us, ms, s";
    case UNIT_DATA_RATE:
        return "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s, MiB/s, GiB/s";
    case UNIT_TRANSFER_RATE: return "MT/s, GT/s";
    case UNIT_FREQUENCY: return "Hz, kHz, MHz, GHz";
    case UNIT_NONE: break;
    }
    return "";
}

const char *unit_dimension_name(enum unit_dimension dimension)
{
    switch (dimension) {
    case UNIT_SIZE: return "a size";
    case UNIT_TIME: return "a time";
    case UNIT_DATA_RATE: return "a data rate";
    case UNIT_TRANSFER_RATE: return "a transfer rate";
    case UNIT_FREQUENCY: return "a frequency";
    case UNIT_NONE: break;
    }
    return "a plain number";
}

/* [+-]digits[.digits][e[+-]digits]; *end is behind it */
static enum unit_status decimal_parse(const char *p, const char **end, struct decimal *d)
{
    int n_significant = 0, n_digits = 0, exp10 = 0, exp_written = 0;
    bool point = false;

    *d = (struct decimal){ .negative = *p == '-' };
    p += *p == '-' || *p == '+';
    for (; g_ascii_isdigit(*p) || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        n_digits++;
        if (d->mantissa || *p != '0')
            n_significant++;
        if (n_significant > MAX_DIGITS)
            return UNIT_TOO_LARGE;
        d->mantissa = d->mantissa * 10 + (unsigned)(*p - '0');
        exp10 -= point && exp10 > -MAX_EXP_ABS;
    }
    if (n_digits == 0)
        return UNIT_NO_NUMBER;
    if ((*p == 'e' || *p == 'E') &&
        (g_ascii_isdigit(p[1]) || ((p[1] == '-' || p[1] == '+') && g_ascii_isdigit(p[2])))) {
        bool minus = p[1] == '-';

        for (p += 1 + !g_ascii_isdigit(p[1]); g_ascii_isdigit(*p); p++)
            exp_written = SIM_MIN(exp_written * 10 + (*p - '0'), MAX_EXP_ABS);
        exp10 += minus ? -exp_written : exp_written;
    }
    d->exp10 = exp10;
    *end = p;
    return UNIT_OK;
}

static bool multiply(unsigned __int128 *value, unsigned factor, int times)
{
    for (; times > 0; times--) {
        if (__builtin_mul_overflow(*value, (unsigned __int128)factor, value))
            return false;
    }
    return true;
}

/* d * 2^pow2 * 10^pow10 as a whole number */
static enum unit_status decimal_whole(struct decimal d, int pow2, int pow10, uint64_t *value)
{
    unsigned __int128 whole = d.mantissa;
    int exp10 = d.exp10 + pow10;

    *value = 0;
    if (whole == 0)
        return UNIT_OK;
    if (d.negative)
        return UNIT_NEGATIVE;
    for (; exp10 < 0 && whole % 10 == 0; exp10++)
        whole /= 10;
    if (!multiply(&whole, 2, pow2))
        return UNIT_TOO_LARGE;
    for (; exp10 < 0; exp10++) {
        if (whole % 10)
            return UNIT_FRACTION;
        whole /= 10;
    }
    if (!multiply(&whole, 10, exp10) || whole > UINT64_MAX)
        return UNIT_TOO_LARGE;
    *value = (uint64_t)whole;
    return UNIT_OK;
}

static void format_whole(unsigned __int128 value, char buffer[UNIT_TEXT_BYTES])
{
    char *p = buffer + UNIT_TEXT_BYTES - 1;
    size_t n;

    *p = '\0';
    do {
        *--p = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value);
    n = (size_t)(buffer + UNIT_TEXT_BYTES - p);
    memmove(buffer, p, n);
}

/* d * 2^pow2 * 10^pow10, rounded once: 2^-n is 5^n * 10^-n, so the decimal stays exact */
static enum unit_status decimal_scaled(struct decimal d, int pow2, int pow10, double *value)
{
    char digits[UNIT_TEXT_BYTES], text[UNIT_TEXT_BYTES + 16];
    unsigned __int128 mantissa = d.mantissa;
    int exp10 = d.exp10 + pow10 + (pow2 < 0 ? pow2 : 0);

    if (!multiply(&mantissa, pow2 < 0 ? 5 : 2, abs(pow2)))
        return UNIT_TOO_LARGE;
    format_whole(mantissa, digits);
    snprintf(text, sizeof(text), "%s%se%d", d.negative ? "-" : "", digits, exp10);
    *value = g_ascii_strtod(text, NULL);
    return isfinite(*value) ? UNIT_OK : UNIT_TOO_LARGE;
}

/* The number and the unit of a quantity, with or without blanks between them. */
static enum unit_status quantity_parse(const char *text, struct decimal *d,
                                       const struct unit **unit)
{
    const char *end;
    enum unit_status status;
    char symbol[16];

    while (g_ascii_isspace(*text))
        text++;
    status = decimal_parse(text, &end, d);
    if (status != UNIT_OK)
        return status;
    while (g_ascii_isspace(*end))
        end++;
    if (*end == '\0')
        return UNIT_MISSING;
    if (g_strlcpy(symbol, end, sizeof(symbol)) >= sizeof(symbol))
        return UNIT_UNKNOWN;
    *unit = unit_find(g_strchomp(symbol));
    return *unit ? UNIT_OK : UNIT_UNKNOWN;
}

const char *unit_of_bits(const char *symbol)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(units); i++) {
        const char *known = units[i].symbol;
        size_t n_prefix;

        if (!g_str_has_suffix(known, "bit/s"))
            continue;
        n_prefix = strlen(known) - strlen("bit/s");
        if (n_prefix > 0 && symbol[0] != known[0] && symbol[0] != g_ascii_toupper(known[0]))
            continue;
        if (strlen(symbol) >= n_prefix &&
            (strcmp(symbol + n_prefix, "b/s") == 0 || strcmp(symbol + n_prefix, "bps") == 0))
            return known;
    }
    return NULL;
}

char *unit_suggestion(const char *text, enum unit_dimension dimension)
{
    g_auto(GStrv) symbols = g_strsplit(unit_symbols(dimension), ", ", -1);
    const char *nearest, *end;
    struct decimal d;

    while (g_ascii_isspace(*text))
        text++;
    if (decimal_parse(text, &end, &d) != UNIT_OK)
        return NULL;
    g_autofree char *symbol = g_strstrip(g_strdup(end));
    nearest = dimension == UNIT_DATA_RATE ? unit_of_bits(symbol) : NULL;
    if (!nearest)
        nearest = sim_nearest_name(symbol, (const char *const *)symbols);
    if (!nearest)
        return NULL;
    if (dimension == UNIT_SIZE && strlen(nearest) == 2) { /* "KB" is written for both */
        const char binary[] = { g_ascii_toupper(nearest[0]), 'i', 'B', '\0' };

        return g_strdup_printf("did you mean \"%s\" or \"%s\"?", nearest, binary);
    }
    return g_strdup_printf("did you mean \"%s\"?", nearest);
}

enum unit_status unit_parse_whole(const char *text, enum unit_dimension wanted, uint64_t *value,
                                  enum unit_dimension *found)
{
    const struct unit *unit = NULL;
    struct decimal d;
    enum unit_status status = quantity_parse(text, &d, &unit);

    if (found)
        *found = unit ? unit->dimension : UNIT_NONE;
    if (status != UNIT_OK)
        return status;
    if (unit->dimension != wanted)
        return UNIT_MISFIT;
    return decimal_whole(d, unit->pow2, unit->pow10, value);
}

enum unit_status unit_parse_scaled(const char *text, const struct unit *key, double *value,
                                   enum unit_dimension *found)
{
    const struct unit *unit = NULL;
    struct decimal d;
    enum unit_status status = quantity_parse(text, &d, &unit);

    if (found)
        *found = unit ? unit->dimension : UNIT_NONE;
    if (status != UNIT_OK)
        return status;
    if (unit->dimension != key->dimension)
        return UNIT_MISFIT;
    return decimal_scaled(d, unit->pow2 - key->pow2, unit->pow10 - key->pow10, value);
}

enum unit_status unit_whole_from_double(double x, const struct unit *unit, uint64_t *value)
{
    char text[UNIT_TEXT_BYTES];
    const char *end;
    struct decimal d;

    if (!isfinite(x))
        return UNIT_TOO_LARGE;
    if (fabs(x) < 1e15 && !(fabs(x) > floor(fabs(x)))) /* most, and quicker than by its digits */
        return unit_whole_from_int((int64_t)x, unit, value);
    decimal_parse(unit_format_double(x, text), &end, &d);
    return decimal_whole(d, unit->pow2, unit->pow10, value);
}

enum unit_status unit_whole_from_int(int64_t x, const struct unit *unit, uint64_t *value)
{
    struct decimal d = { .negative = x < 0 };

    d.mantissa = x < 0 ? -(unsigned __int128)x : (unsigned __int128)x;
    return decimal_whole(d, unit->pow2, unit->pow10, value);
}

const char *unit_format_double(double x, char *buffer)
{
    static const char *const formats[] = { "%.15g", "%.16g", "%.17g" };

    for (size_t i = 0; i < SIM_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buffer, UNIT_TEXT_BYTES, formats[i], x);
        if (g_ascii_strtod(buffer, NULL) >= x && g_ascii_strtod(buffer, NULL) <= x)
            break;
    }
    return buffer;
}

const char *unit_format_whole(uint64_t value, const struct unit *unit, char *buffer)
{
    uint64_t scale = 1, rest;
    int n_decimals = unit->pow10;

    for (int i = 0; i < unit->pow10; i++)
        scale *= 10;
    rest = value % scale;
    if (rest == 0) {
        snprintf(buffer, UNIT_TEXT_BYTES, "%" PRIu64, value / scale);
        return buffer;
    }
    for (; rest % 10 == 0; n_decimals--)
        rest /= 10;
    snprintf(buffer, UNIT_TEXT_BYTES, "%" PRIu64 ".%0*" PRIu64, value / scale, n_decimals, rest);
    return buffer;
}
