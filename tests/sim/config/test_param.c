/* Parameter tables without a configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/param.h"

struct thing {
    bool on;
    uint32_t channels;
    uint64_t count, size_bytes;
    double share;
    sim_time latency_ps;
    double rate_gt_s;
    int mode;
    const char *label;
    uint32_t required;
};

static const char *const modes[] = { "closed", "open", NULL };

static const struct param_desc table[] = {
    PARAM("on", PARAM_BOOL, struct thing, on, 1, 0, 1, PROV_NONE, NULL, "switched on"),
    PARAM("channels", PARAM_U32, struct thing, channels, 4, 1, 16, PROV_DATASHEET, "s#a", "DRAM"),
    PARAM("count", PARAM_U64, struct thing, count, 7, 0, INFINITY, PROV_NONE, NULL, "a count"),
    PARAM("size_bytes", PARAM_BYTES, struct thing, size_bytes, 4096, 64, 1048576, PROV_PUBLISHED,
          NULL, "size"),
    PARAM("share", PARAM_DOUBLE, struct thing, share, 0.25, 0, 1, PROV_ESTIMATE, NULL, "ratio"),
    PARAM("latency_ns", PARAM_TIME, struct thing, latency_ps, 87.3, 0.5, 1000, PROV_CALIBRATED,
          NULL, "latency"),
    PARAM("rate_gt_s", PARAM_RATE, struct thing, rate_gt_s, 9.6, 1, 20, PROV_ESTIMATE, NULL,
          "rate"),
    PARAM_ONE_OF("mode", struct thing, mode, 1, modes, PROV_NONE, NULL, "page policy"),
    PARAM_TEXT("label", struct thing, label, "abc", "a name"),
    PARAM("required", PARAM_U32, struct thing, required, NAN, 0, 9, PROV_NONE, NULL, "no default"),
    { .type = PARAM_END },
};

static const struct param_desc *find(const char *key)
{
    const struct param_desc *desc = table;

    while (strcmp(desc->key, key) != 0)
        desc++;
    return desc;
}

static void defaults_fill_the_state(void **state)
{
    struct thing thing = { .required = 77 };

    (void)state;
    param_defaults(table, &thing);
    assert_true(thing.on);
    assert_int_equal(thing.channels, 4);
    assert_int_equal(thing.count, 7);
    assert_int_equal(thing.size_bytes, 4096);
    assert_true(thing.share > 0.2499 && thing.share < 0.2501);
    assert_int_equal(thing.latency_ps, 87300);
    assert_true(thing.rate_gt_s > 9.5999 && thing.rate_gt_s < 9.6001);
    assert_int_equal(thing.mode, 1);
    assert_string_equal(thing.label, "abc");
    assert_int_equal(thing.required, 77);
}

static void units_follow_the_key(void **state)
{
    static const struct {
        const char *key, *unit;
        enum param_type type;
    } cases[] = {
        { "latency_ps", "ps", PARAM_TIME },     { "latency_ns", "ns", PARAM_TIME },
        { "latency_us", "us", PARAM_TIME },     { "latency_ms", "ms", PARAM_TIME },
        { "latency_s", "s", PARAM_TIME },       { "peak_gbyte_s", "GB/s", PARAM_RATE },
        { "peak_mbyte_s", "MB/s", PARAM_RATE }, { "wire_gbit_s", "Gbit/s", PARAM_RATE },
        { "qpi_gt_s", "GT/s", PARAM_RATE },     { "ddr_mt_s", "MT/s", PARAM_RATE },
        { "clock_ghz", "GHz", PARAM_RATE },     { "clock_mhz", "MHz", PARAM_RATE },
        { "size_bytes", "bytes", PARAM_BYTES }, { "entries", "", PARAM_U32 },
        { "share_ratio", "", PARAM_DOUBLE },    { "name", "", PARAM_STRING },
    };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct param_desc desc = { .key = cases[i].key, .type = cases[i].type };

        assert_string_equal(param_unit(&desc), cases[i].unit);
    }
}

static void ranges_include_their_ends(void **state)
{
    struct param_value value = { 0 };

    (void)state;
    value.whole = 1;
    assert_true(param_in_range(find("channels"), &value));
    value.whole = 16;
    assert_true(param_in_range(find("channels"), &value));
    value.whole = 17;
    assert_false(param_in_range(find("channels"), &value));
    value.whole = 0;
    assert_false(param_in_range(find("channels"), &value));
    value.whole = 500;
    assert_true(param_in_range(find("latency_ns"), &value));
    value.whole = 499;
    assert_false(param_in_range(find("latency_ns"), &value));
    value.whole = 1000000;
    assert_true(param_in_range(find("latency_ns"), &value));
    value.whole = 1000001;
    assert_false(param_in_range(find("latency_ns"), &value));
    value.whole = UINT64_MAX;
    assert_true(param_in_range(find("count"), &value));
    value.real = 1.0000001;
    assert_false(param_in_range(find("share"), &value));
}

static void expected(const char *key, const char *text)
{
    char *found = param_expected(find(key));

    assert_string_equal(found, text);
    g_free(found);
}

static void expectations_name_type_range_and_units(void **state)
{
    (void)state;
    expected("on", "true or false");
    expected("channels", "an integer 1..16");
    expected("count", "an integer, 0 or more");
    expected("share", "a number 0..1");
    expected("size_bytes", "a size in bytes 64..1048576, or a string with its unit (B, kB, MB, GB, "
                           "TB, KiB, MiB, GiB, TiB)");
    expected("latency_ns", "a time in ns 0.5..1000, or a string with its unit (ps, ns, us, ms, s)");
    expected("rate_gt_s", "a transfer rate in GT/s 1..20, or a string with its unit (MT/s, GT/s)");
    expected("mode", "one of \"closed\", \"open\"");
    expected("label", "a string");
}

static void formats_are_in_the_unit_of_the_key(void **state)
{
    struct param_value value = param_default(find("latency_ns"));
    char *text = param_format(find("latency_ns"), &value);

    (void)state;
    assert_string_equal(text, "87.3");
    g_free(text);
    value = param_default(find("mode"));
    text = param_format(find("mode"), &value);
    assert_string_equal(text, "open");
    g_free(text);
}

static void provenance_names_go_both_ways(void **state)
{
    enum param_provenance provenance;

    (void)state;
    for (int p = PROV_DATASHEET; p <= PROV_ESTIMATE; p++) {
        assert_true(
            param_provenance_find(param_provenance_name((enum param_provenance)p), &provenance));
        assert_int_equal(provenance, p);
    }
    assert_false(param_provenance_find("guess", &provenance));
    assert_false(param_provenance_find("", &provenance));
    assert_string_equal(param_provenance_name(PROV_NONE), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_fill_the_state),
        cmocka_unit_test(units_follow_the_key),
        cmocka_unit_test(ranges_include_their_ends),
        cmocka_unit_test(expectations_name_type_range_and_units),
        cmocka_unit_test(formats_are_in_the_unit_of_the_key),
        cmocka_unit_test(provenance_names_go_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
