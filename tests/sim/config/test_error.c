/* Messages and nearest names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <string.h>

#include "sim/config/error.h"

static void messages_carry_their_place(void **state)
{
    struct sim_error_list errors = { 0 };

    (void)state;
    sim_error_add(&errors, "a.cfg", 12, "x: found %d", 3);
    sim_error_add(&errors, "--set", 0, "y");
    sim_error_add(&errors, NULL, 0, "z");
    sim_error_add(&errors, "a.cfg", 12, "x: found 3");
    assert_int_equal(errors.n_messages, 3);
    assert_string_equal(errors.message[0], "a.cfg:12: x: found 3");
    assert_string_equal(errors.message[1], "--set: y");
    assert_string_equal(errors.message[2], "z");
    sim_error_release(&errors);
    assert_int_equal(errors.n_messages, 0);
    assert_null(errors.message);
    sim_error_release(&errors);
}

static void another_place_takes_the_line_to_the_end(void **state)
{
    struct sim_error_list errors = { 0 };

    (void)state;
    sim_error_add(&errors, "a: b.cfg", 12, "x: found %d", 3);
    sim_error_add(&errors, NULL, 0, "z: y");
    assert_string_equal(sim_error_text(&errors, 0), "x: found 3");
    assert_string_equal(sim_error_text(&errors, 1), "z: y");
    sim_error_set_place(&errors, 0, "--set x=3");
    sim_error_set_place(&errors, 1, "--set y=4");
    assert_string_equal(errors.message[0], "--set x=3: x: found 3 (a: b.cfg:12)");
    assert_string_equal(errors.message[1], "--set y=4: z: y");
    assert_string_equal(sim_error_text(&errors, 0), "x: found 3 (a: b.cfg:12)");
    sim_error_release(&errors);
}

/* A terminal does what they say: neither ESC nor the CSI of U+009B reaches it. */
static void messages_have_no_control_characters(void **state)
{
    struct sim_error_list errors = { 0 };

    (void)state;
    sim_error_add(&errors, "a\x1b.cfg", 1, "found \"%s\"", "\x1b[31m\x07\t\n\x7f\xc2\x9b\xc2\xb5");
    assert_string_equal(errors.message[0], "a?.cfg:1: found \"?[31m?\t\n???\xc2\xb5\"");
    sim_error_release(&errors);
}

static void messages_are_printed_in_order(void **state)
{
    struct sim_error_list errors = { 0 };
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    (void)state;
    sim_error_add(&errors, NULL, 0, "of no file");
    sim_error_add(&errors, "a.cfg", 10, "second");
    sim_error_add(&errors, "a.cfg", 10, "then");
    sim_error_add(&errors, "a.cfg.cfg", 1, "longer");
    sim_error_add(&errors, "a.cfg", 9, "first");
    sim_error_add(&errors, "--set", 0, "set");
    sim_error_print(&errors, out);
    fclose(out);
    assert_string_equal(text, "--set: set\na.cfg:9: first\na.cfg:10: second\na.cfg:10: then\n"
                              "a.cfg.cfg:1: longer\nof no file\n");
    free(text);
    sim_error_release(&errors);
    sim_error_add(&errors, "a.cfg", 2, "second");
    sim_error_add(&errors, "a.cfg", 1, "first");
    text = sim_error_join(&errors);
    assert_string_equal(text, "a.cfg:2: second; a.cfg:1: first");
    g_free(text);
    sim_error_release(&errors);
}

/* Were each compared with all before it, this would not end within the time of a test. */
static void many_messages_are_printed_at_once(void **state)
{
    struct sim_error_list errors = { 0 };
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    (void)state;
    for (int i = 0; i < 100000; i++) {
        g_autofree char *path = g_strdup_printf("hosts.h%d.x", i);

        sim_error_add(&errors, "a.cfg", 1 + i / 2, "%s: unknown setting", path);
    }
    sim_error_print(&errors, out);
    fclose(out);
    assert_true(g_str_has_prefix(text, "a.cfg:1: hosts.h0.x: unknown setting\n"
                                       "a.cfg:2: hosts.h2.x: unknown setting\n"));
    assert_true(g_str_has_suffix(text,
                                 "50000 more are the same, of the same lines in other places\n"
                                 "and 49800 mistakes more\n"));
    free(text);
    sim_error_release(&errors);
}

static void messages_of_one_list_go_to_another(void **state)
{
    struct sim_error_list errors = { 0 }, more = { 0 };

    (void)state;
    assert_false(sim_error_move(&errors, &more));
    sim_error_add(&errors, "a.cfg", 1, "both");
    sim_error_add(&more, "a.cfg", 1, "both");
    assert_true(sim_error_move(&errors, &more));
    assert_int_equal(errors.n_messages, 1);
    sim_error_add(&more, "a.cfg", 2, "its own");
    assert_true(sim_error_move(&errors, &more));
    assert_int_equal(more.n_messages, 0);
    assert_int_equal(errors.n_messages, 2);
    assert_string_equal(errors.message[1], "a.cfg:2: its own");
    sim_error_release(&errors);
}

static const char *const names[] = {
    "channels", "capacity_bytes", "latency_ns", "latency_remote_ns", "type", "ways", NULL
};

static void nearest_name_by_edits(void **state)
{
    (void)state;
    assert_string_equal(sim_nearest_name("chanels", names), "channels");
    assert_string_equal(sim_nearest_name("channles", names), "channels");
    assert_string_equal(sim_nearest_name("Type", names), "type");
    assert_string_equal(sim_nearest_name("tpye", names), "type");
    assert_string_equal(sim_nearest_name("capacity_byte", names), "capacity_bytes");
    assert_null(sim_nearest_name("bandwidth", names));
    assert_null(sim_nearest_name("", names));
    assert_null(sim_nearest_name("qqqq", names));
}

static void swapped_neighbours_are_one_edit(void **state)
{
    static const char *const three[] = { "abc", NULL };

    (void)state;
    /* a third of three characters is one edit: a swap passes, two replacements do not */
    assert_string_equal(sim_nearest_name("acb", three), "abc");
    assert_null(sim_nearest_name("axx", three));
}

static void nearest_name_by_prefix(void **state)
{
    (void)state;
    assert_string_equal(sim_nearest_name("lat", names), "latency_ns");
    assert_string_equal(sim_nearest_name("ways_of_the_cache", names), "ways");
    assert_null(sim_nearest_name("l", names));
}

static void huge_names_are_near_to_nothing(void **state)
{
    char *huge = g_strnfill(1000000, 'c');

    (void)state;
    assert_null(sim_nearest_name(huge, names));
    g_free(huge);
}

static void suggestions_name_or_list(void **state)
{
    char *text = sim_suggestion("chanels", names);
    static const char *const none[] = { NULL }, *const one[] = { "x1", NULL };

    (void)state;
    assert_string_equal(text, "did you mean \"channels\"?");
    g_free(text);
    text = sim_suggestion("zzz", names);
    assert_true(g_str_has_prefix(text, "expected one of \"channels\", \"capacity_bytes\""));
    g_free(text);
    text = sim_suggestion("zzz", one);
    assert_string_equal(text, "expected \"x1\"");
    g_free(text);
    text = sim_suggestion("channels", names); /* spelt right: that is not what is wrong */
    assert_string_equal(text, "");
    g_free(text);
    text = sim_suggestion("zzz", none);
    assert_string_equal(text, "");
    g_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_carry_their_place),
        cmocka_unit_test(another_place_takes_the_line_to_the_end),
        cmocka_unit_test(messages_have_no_control_characters),
        cmocka_unit_test(messages_are_printed_in_order),
        cmocka_unit_test(many_messages_are_printed_at_once),
        cmocka_unit_test(messages_of_one_list_go_to_another),
        cmocka_unit_test(nearest_name_by_edits),
        cmocka_unit_test(swapped_neighbours_are_one_edit),
        cmocka_unit_test(nearest_name_by_prefix),
        cmocka_unit_test(huge_names_are_near_to_nothing),
        cmocka_unit_test(suggestions_name_or_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
