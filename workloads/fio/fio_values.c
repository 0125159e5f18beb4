/* Values of job files: integers with suffixes, times, percentages, values for each direction. */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/fio/fio_options.h"

struct suffix {
    const char *name;
    uint64_t factor;
};

/* With kb_base=1024, fio's default, the meanings of k and ki are the opposite of the standards'. */
static bool find_suffix(const char *text, uint32_t kb_base, uint64_t *factor)
{
    static const char letters[] = "kmgtp";
    const size_t n = strlen(text);
    const bool byte = n > 0 && g_ascii_tolower(text[n - 1]) == 'b';
    const size_t rest = n - byte;
    *factor = 1;
    if (rest == 0)
        return true;
    const char *letter = strchr(letters, g_ascii_tolower(text[0]));
    const bool has_i = rest == 2 && g_ascii_tolower(text[1]) == 'i';
    if (letter == NULL || (rest != 1 && !has_i))
        return false;
    for (const char *l = letters; l <= letter; l++)
        *factor *= has_i == (kb_base == 1024) ? 1000 : 1024;
    return true;
}

static bool scale(uint64_t *value, uint64_t factor)
{
    return !__builtin_mul_overflow(*value, factor, value);
}

bool fio_parse_int(const char *text, uint32_t kb_base, uint64_t *value)
{
    char *end;
    uint64_t factor;
    if (!g_ascii_isdigit(text[0]))
        return false;
    const bool hex = text[0] == '0' && g_ascii_tolower(text[1]) == 'x';
    errno = 0;
    *value = g_ascii_strtoull(text, &end, hex ? 16 : 10);
    return errno == 0 && find_suffix(end, kb_base, &factor) && scale(value, factor);
}

bool fio_parse_number(const char *text, double *value)
{
    char *end;
    *value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && *value >= 0 && *value < 1e18;
}

bool fio_parse_size(const char *text, uint32_t kb_base, struct fio_size *size)
{
    const size_t n = strlen(text);
    *size = (struct fio_size){ 0 };
    if (n < 2 || text[n - 1] != '%')
        return fio_parse_int(text, kb_base, &size->bytes);
    g_autofree char *number = g_strndup(text, n - 1);
    return fio_parse_number(number, &size->percent) && size->percent > 0 && size->percent <= 100;
}

bool fio_parse_time(const char *text, uint64_t unit_ps, uint64_t *ps)
{
    static const struct suffix units[] = {
        { "d", 86400 * SIM_PS_PER_S }, { "h", 3600 * SIM_PS_PER_S }, { "m", 60 * SIM_PS_PER_S },
        { "s", SIM_PS_PER_S },         { "sec", SIM_PS_PER_S },      { "ms", SIM_PS_PER_MS },
        { "msec", SIM_PS_PER_MS },     { "us", SIM_PS_PER_US },      { "usec", SIM_PS_PER_US },
    };
    char *end;
    if (!g_ascii_isdigit(text[0]))
        return false;
    errno = 0;
    *ps = g_ascii_strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    if (*end == '\0')
        return scale(ps, unit_ps);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(units); i++)
        if (g_ascii_strcasecmp(end, units[i].name) == 0)
            return scale(ps, units[i].factor);
    return false;
}

bool fio_parse_each(struct fio_options *options, const char *text,
                    bool (*one)(struct fio_options *options, unsigned direction, const char *text))
{
    g_auto(GStrv) part = g_strsplit(text, ",", -1);
    const unsigned n = g_strv_length(part);
    if (n > 4 || (n == 4 && *part[3] != '\0'))
        return false;
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++) {
        const unsigned at = SIM_MIN(i, n - 1);
        const char *own = g_strstrip(part[at]);
        if (*own == '\0' ? n == 1 : !one(options, i, own))
            return false;
    }
    return true;
}
