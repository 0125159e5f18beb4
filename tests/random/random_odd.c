/* A scenario of any area with one setting that is wrong, or odd: refused with a message that says
 * where, or accepted and then run. */
#include <stdio.h>
#include <string.h>

#include "tests/random/random_generate.h"

static bool may_change(const char *path)
{
    /* How long it takes, and what everything hangs on. */
    return !g_str_has_prefix(path, "measure.") && !g_str_has_suffix(path, ".window_bytes") &&
           !g_str_has_suffix(path, ".buffer_bytes") && !g_str_has_suffix(path, ".duration_us");
}

void random_make_odd(uint64_t seed, struct random_scenario *s)
{
    static random_make_fn *const areas[] = { random_make_dma, random_make_memory,
                                             random_make_devices, random_make_lending,
                                             random_make_network };
    static const char *const values[] = {
        "0",     "1",     "-1",         "3",       "7",      "63",         "65",
        "100",   "4097",  "1.5",        "-0.5",    "1e30",   "true",       "false",
        "\"\"",  "\"x\"", "\"1 GiB\"",  "[]",      "[1, 2]", "{ a = 1; }", "4294967295L",
        "65535", "255",   "2147483647", "\"8 ns\""
    };
    struct random_maker m;
    struct random_scenario unused;
    areas[seed % SIM_N_ELEMENTS(areas)](seed, s);
    random_maker_init(&m, seed, "odd", &unused);
    s->pair.relation = RANDOM_NO_PAIR;
    const unsigned n = 1 + (unsigned)sim_random_below(&m.random, 2);
    for (unsigned k = 0; k < n; k++) {
        const unsigned i = (unsigned)sim_random_below(&m.random, s->n);
        struct random_setting *setting = &s->setting[i];
        const uint64_t how = sim_random_below(&m.random, 8);
        if (how == 0) {
            g_strlcpy(setting->path + strlen(setting->path) - 1, "q", 2); /* an unknown name */
        } else if (how == 1) {
            random_remove(s, setting->path);
        } else if (how == 2) { /* the value of another setting */
            const struct random_setting other = s->setting[sim_random_below(&m.random, s->n)];
            if (may_change(setting->path))
                g_strlcpy(setting->value, other.value, sizeof(setting->value));
        } else if (may_change(setting->path)) {
            g_strlcpy(setting->value, values[sim_random_below(&m.random, SIM_N_ELEMENTS(values))],
                      sizeof(setting->value));
        }
    }
}
