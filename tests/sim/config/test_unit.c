/* Quantities with units: exact decimals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <string.h>

#include "sim/config/unit.h"

struct whole_case {
    const char *text;
    enum unit_dimension dimension;
    enum unit_status status;
    uint64_t value;
};

static const struct whole_case whole_cases[] = {
    { "64 GiB", UNIT_SIZE, UNIT_OK, UINT64_C(68719476736) },
    { "64GiB", UNIT_SIZE, UNIT_OK, UINT64_C(68719476736) },
    { " 64\tGiB ", UNIT_SIZE, UNIT_OK, UINT64_C(68719476736) },
    { "2 MB", UNIT_SIZE, UNIT_OK, 2000000 },
    { "1.5 KiB", UNIT_SIZE, UNIT_OK, 1536 },
    { "0.5 B", UNIT_SIZE, UNIT_FRACTION, 0 },
    { "0.0009765625 KiB", UNIT_SIZE, UNIT_OK, 1 },
    { "1.0001 KiB", UNIT_SIZE, UNIT_FRACTION, 0 },
    { "1 TiB", UNIT_SIZE, UNIT_OK, UINT64_C(1) << 40 },
    { "16777215 TiB", UNIT_SIZE, UNIT_OK, UINT64_C(16777215) << 40 },
    { "16777216 TiB", UNIT_SIZE, UNIT_TOO_LARGE, 0 },
    { "18446744073709551615 B", UNIT_SIZE, UNIT_OK, UINT64_MAX },
    { "18446744073709551616 B", UNIT_SIZE, UNIT_TOO_LARGE, 0 },
    { "87.5 ns", UNIT_TIME, UNIT_OK, 87500 },
    { "0.1 ns", UNIT_TIME, UNIT_OK, 100 },
    { "0.0005 us", UNIT_TIME, UNIT_OK, 500 },
    { "0.0005 ns", UNIT_TIME, UNIT_FRACTION, 0 },
    { "1e3 ns", UNIT_TIME, UNIT_OK, 1000000 },
    { "1.25e-1 us", UNIT_TIME, UNIT_OK, 125000 },
    { "1 s", UNIT_TIME, UNIT_OK, UINT64_C(1000000000000) },
    { "3.000000000001 s", UNIT_TIME, UNIT_OK, UINT64_C(3000000000001) },
    { "+5 ps", UNIT_TIME, UNIT_OK, 5 },
    { "-5 ps", UNIT_TIME, UNIT_NEGATIVE, 0 },
    { "-0 ps", UNIT_TIME, UNIT_OK, 0 },
    { "0e99999 s", UNIT_TIME, UNIT_OK, 0 },
    { "1e99999 s", UNIT_TIME, UNIT_TOO_LARGE, 0 },
    { "1e-99999 s", UNIT_TIME, UNIT_FRACTION, 0 },
    { "1000000000000000000000000000000000000000 ps", UNIT_TIME, UNIT_TOO_LARGE, 0 },
    { "64 GB", UNIT_TIME, UNIT_MISFIT, 0 },
    { "8 ns", UNIT_SIZE, UNIT_MISFIT, 0 },
    { "64", UNIT_SIZE, UNIT_MISSING, 0 },
    { "64 gib", UNIT_SIZE, UNIT_UNKNOWN, 0 },
    { "64 a_unit_with_a_long_name", UNIT_SIZE, UNIT_UNKNOWN, 0 },
    { "four", UNIT_SIZE, UNIT_NO_NUMBER, 0 },
    { "", UNIT_SIZE, UNIT_NO_NUMBER, 0 },
    { ". ns", UNIT_TIME, UNIT_NO_NUMBER, 0 },
    { "GiB", UNIT_SIZE, UNIT_NO_NUMBER, 0 },
};

static void whole_quantities(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(whole_cases); i++) {
        const struct whole_case *c = &whole_cases[i];
        uint64_t value = 0;
        enum unit_status status = unit_parse_whole(c->text, c->dimension, &value, NULL);

        if (status != c->status || (status == UNIT_OK && value != c->value))
            fail_msg("\"%s\": status %d, value %lu", c->text, (int)status, (unsigned long)value);
    }
}

/* Scaled values are the nearest double to the decimal, so == with the literal must hold. */
static void scaled_quantities(void **state)
{
    static const struct {
        const char *text, *key;
        double value;
    } cases[] = {
        { "9.6 GT/s", "GT/s", 9.6 },         { "9600 MT/s", "GT/s", 9.6 },
        { "2133.33 MT/s", "MT/s", 2133.33 }, { "2.4 GHz", "MHz", 2400 },
        { "100 Gbit/s", "GB/s", 12.5 },      { "12.8 GB/s", "Gbit/s", 102.4 },
        { "0.1 GB/s", "MB/s", 100 },         { "1 GiB/s", "GB/s", 1.073741824 },
        { "1 bit/s", "GB/s", 1.25e-10 },     { "33.3 Mbit/s", "Gbit/s", 0.0333 },
    };
    double value;

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        assert_int_equal(unit_parse_scaled(cases[i].text, unit_find(cases[i].key), &value, NULL),
                         UNIT_OK);
        assert_memory_equal(&value, &cases[i].value, sizeof(value));
    }
    assert_int_equal(unit_parse_scaled("8 ns", unit_find("GB/s"), &value, NULL), UNIT_MISFIT);
    assert_int_equal(unit_parse_scaled("8 GT/s", unit_find("GHz"), &value, NULL), UNIT_MISFIT);
    assert_int_equal(unit_parse_scaled("1e4000 GT/s", unit_find("GT/s"), &value, NULL),
                     UNIT_TOO_LARGE);
}

static void found_dimension_is_told(void **state)
{
    enum unit_dimension found;
    uint64_t value;

    (void)state;
    unit_parse_whole("64 GB", UNIT_TIME, &value, &found);
    assert_int_equal(found, UNIT_SIZE);
    unit_parse_whole("64", UNIT_TIME, &value, &found);
    assert_int_equal(found, UNIT_NONE);
}

static void doubles_are_read_as_the_decimal_they_show(void **state)
{
    uint64_t value;

    (void)state;
    /* 87.3 * 1000 is 87299.99999999999 in doubles */
    assert_int_equal(unit_whole_from_double(87.3, unit_find("ns"), &value), UNIT_OK);
    assert_int_equal(value, 87300);
    assert_int_equal(unit_whole_from_double(0.001, unit_find("ns"), &value), UNIT_OK);
    assert_int_equal(value, 1);
    assert_int_equal(unit_whole_from_double(0.0001, unit_find("ns"), &value), UNIT_FRACTION);
    assert_int_equal(unit_whole_from_double(-1, unit_find("ns"), &value), UNIT_NEGATIVE);
    assert_int_equal(unit_whole_from_int(35, unit_find("us"), &value), UNIT_OK);
    assert_int_equal(value, 35000000);
    assert_int_equal(unit_whole_from_int(INT64_MIN, unit_find("ps"), &value), UNIT_NEGATIVE);
    assert_int_equal(unit_whole_from_int(INT64_MAX, unit_find("ns"), &value), UNIT_TOO_LARGE);
}

static void formats_are_exact(void **state)
{
    char text[UNIT_TEXT_BYTES];

    (void)state;
    assert_string_equal(unit_format_whole(87500, unit_find("ns"), text), "87.5");
    assert_string_equal(unit_format_whole(87000, unit_find("ns"), text), "87");
    assert_string_equal(unit_format_whole(1, unit_find("s"), text), "0.000000000001");
    assert_string_equal(unit_format_whole(1050, unit_find("ns"), text), "1.05");
    assert_string_equal(unit_format_whole(UINT64_MAX, unit_find("ps"), text),
                        "18446744073709551615");
    assert_string_equal(unit_format_double(0.1, text), "0.1");
    assert_string_equal(unit_format_double(64, text), "64");
    assert_string_equal(unit_format_double(1.0 / 3, text), "0.3333333333333333");
}

static void every_listed_symbol_is_known(void **state)
{
    (void)state;
    for (int d = UNIT_SIZE; d <= UNIT_FREQUENCY; d++) {
        char list[128], *save = NULL;

        strcpy(list, unit_symbols((enum unit_dimension)d));
        for (char *s = strtok_r(list, ", ", &save); s; s = strtok_r(NULL, ", ", &save)) {
            assert_non_null(unit_find(s));
            assert_int_equal(unit_find(s)->dimension, d);
        }
    }
}

static void a_small_b_is_a_bit(void **state)
{
    static const char *const cases[][2] = {
        { "100 Gb/s", "did you mean \"Gbit/s\"?" }, { "100Gbps", "did you mean \"Gbit/s\"?" },
        { "5 kb/s", "did you mean \"kbit/s\"?" },   { "5 Kb/s", "did you mean \"kbit/s\"?" },
        { "8 b/s", "did you mean \"bit/s\"?" },     { "3 gB/s", "did you mean \"GB/s\"?" },
    };

    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        char *suggestion = unit_suggestion(cases[i][0], UNIT_DATA_RATE);

        assert_string_equal(suggestion, cases[i][1]);
        g_free(suggestion);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_quantities),
        cmocka_unit_test(scaled_quantities),
        cmocka_unit_test(found_dimension_is_told),
        cmocka_unit_test(doubles_are_read_as_the_decimal_they_show),
        cmocka_unit_test(formats_are_exact),
        cmocka_unit_test(every_listed_symbol_is_known),
        cmocka_unit_test(a_small_b_is_a_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
