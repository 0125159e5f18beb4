/* Scenarios: finding them, axes, points, precedence, --set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/scenario.h"
#include "tests/support/folder_fixture.h"

static const char *const roots[] = { "scenarios", "mine", NULL };

static void expect_messages(struct fixture *f, const char *const *messages)
{
    size_t n;

    for (n = 0; messages[n]; n++) {
        if (n >= f->errors.n_messages)
            fail_msg("missing: %s", messages[n]);
        assert_string_equal(f->errors.message[n], messages[n]);
    }
    if (f->errors.n_messages > n)
        fail_msg("not expected: %s", f->errors.message[n]);
    sim_error_release(&f->errors);
}
#define EXPECT(f, ...) expect_messages(f, (const char *const[]){ __VA_ARGS__, NULL })

static struct scenario *load(struct fixture *f, const char *text, const char *const *sets)
{
    write_file("scenarios/t.cfg", text);
    return scenario_load("t", roots, sets, &f->errors);
}

static struct scenario *load_good(struct fixture *f, const char *text, const char *const *sets)
{
    struct scenario *scenario = load(f, text, sets);

    if (f->errors.n_messages)
        fail_msg("%s", f->errors.message[0]);
    assert_non_null(scenario);
    return scenario;
}
#define SETS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void refuse(struct fixture *f, const char *text, const char *message)
{
    scenario_free(load(f, text, NULL));
    EXPECT(f, message);
}

static void refuse_sets(struct fixture *f, const char *text, const char *set, const char *message)
{
    scenario_free(load(f, text, SETS(set)));
    EXPECT(f, message);
}

/* The value at a path of a point, and where it comes from. */
static void point_sets(struct fixture *f, struct scenario *scenario, size_t point, const char *path,
                       const char *value, const char *origin)
{
    struct config *config = scenario_point(scenario, point, &f->errors);
    struct config_node *node;

    assert_non_null(config);
    node = config_find(config_root(config), path);
    assert_non_null(node);
    assert_string_equal(config_text(node), value);
    assert_string_equal(config_origin(node), origin);
    config_free(config);
}

static void expect_points(struct scenario *scenario, const char *const *names)
{
    size_t n;

    for (n = 0; names[n]; n++) {
        assert_true(n < scenario_n_points(scenario));
        assert_string_equal(scenario_point_name(scenario, n), names[n]);
    }
    assert_int_equal(scenario_n_points(scenario), n);
}
#define POINTS(scenario, ...) expect_points(scenario, (const char *const[]){ __VA_ARGS__, NULL })

static const char two_axes[] =
    "title = \"64 B DMA reads\"; text = \"one paragraph\";\n"
    "workload = { transfer_bytes = 8; memory_socket = 0; };\n"
    "axes = ( { name = \"transfer_bytes\"; setting = \"workload.transfer_bytes\";\n"
    "           values = [8, 64]; },\n"
    "         { name = \"memory\"; variants = (\n"
    "             { name = \"local\"; set = (\"workload.memory_socket=0\"); },\n"
    "             { name = \"remote\"; set = (\"workload.memory_socket=1\",\n"
    "                                       \"a.b=\\\"8 ns\\\"\"); } ); } );\n"
    "plot = { x = \"transfer_bytes\"; anything = ( { goes = 1; } ); };\n"
    "quick = ( \"transfer_bytes=64\" );\n";

/* ---- Points ---------------------------------------------------------------------------------- */

static void points_are_combinations(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f, two_axes, NULL);

    POINTS(s, "memory=local transfer_bytes=8", "memory=remote transfer_bytes=8",
           "memory=local transfer_bytes=64", "memory=remote transfer_bytes=64");
    assert_string_equal(scenario_name(s), "t");
    assert_string_equal(scenario_title(s), "64 B DMA reads");
    assert_string_equal(scenario_text(s), "one paragraph");
    assert_string_equal(scenario_path(s), "scenarios/t.cfg");
    assert_int_equal(scenario_n_axes(s), 2);
    assert_string_equal(scenario_axis_name(s, 0), "transfer_bytes");
    assert_int_equal(scenario_axis_find(s, "memory"), 1);
    assert_int_equal(scenario_axis_find(s, "x"), 2);
    assert_int_equal(scenario_axis_n_values(s, 0), 2);
    assert_string_equal(scenario_axis_value(s, 0, 1), "64");
    assert_string_equal(scenario_axis_value(s, 1, 1), "remote");
    assert_int_equal(scenario_point_value(s, 2, 0), 1);
    assert_int_equal(scenario_point_value(s, 2, 1), 0);
    point_sets(f, s, 2, "workload.transfer_bytes", "64", "axis transfer_bytes");
    point_sets(f, s, 2, "workload.memory_socket", "0", "axis memory");
    point_sets(f, s, 3, "workload.memory_socket", "1", "axis memory");
    point_sets(f, s, 3, "a.b", "8 ns", "axis memory");
    scenario_free(s);
}

static void a_scenario_without_axes_is_one_point(void **state)
{
    struct scenario *s = load_good(*state, "a = 1;", NULL);

    POINTS(s, "");
    assert_string_equal(scenario_title(s), "");
    assert_true(scenario_point_is_quick(s, 0));
    scenario_free(s);
}

static void quick_chooses_points(void **state)
{
    struct scenario *s = load_good(*state, two_axes, NULL);

    assert_false(scenario_point_is_quick(s, 0));
    assert_false(scenario_point_is_quick(s, 1));
    assert_true(scenario_point_is_quick(s, 2));
    assert_true(scenario_point_is_quick(s, 3));
    scenario_free(s);
}

static void settings_aside_are_no_unknown_settings(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f, two_axes, NULL);
    struct config *config = scenario_point(s, 0, &f->errors);
    struct config_node *plot;
    char hex[65], other[65];

    config_mark_read(config_get(config_root(config), "workload"));
    assert_true(config_check_unknown(config, &f->errors));
    plot = config_find(config_root(scenario_base(s)), "plot.x");
    assert_string_equal(config_string(plot), "transfer_bytes");
    config_sha256(config, hex);
    config_free(config);
    scenario_free(s);

    /* what is aside has no part in the hash that names a run */
    s = load_good(f, two_axes, SETS("title=other", "plot.x=y"));
    config = scenario_point(s, 0, &f->errors);
    config_mark_read(config_get(config_root(config), "workload"));
    config_sha256(config, other);
    assert_string_equal(hex, other);
    config_free(config);
    scenario_free(s);
}

static void unknown_settings_of_axes_and_files(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = { "size", NULL };
    struct scenario *s = load_good(f,
                                   "workload = { size = 1; };\n"
                                   "axes = ( { name = \"a\"; setting = \"workload.sise\";\n"
                                   "  values = [ 1 ]; } );\nplott = {};\n",
                                   NULL);
    struct config *config = scenario_point(s, 0, &f->errors);

    config_allow(config_get(config_root(config), "workload"), names);
    assert_false(config_check_unknown(config, &f->errors));
    EXPECT(f,
           "scenarios/t.cfg:3: workload.sise: unknown setting (set by axis a); did you mean "
           "\"size\"?",
           "scenarios/t.cfg:4: plott: unknown setting; did you mean \"plot\"?");
    config_free(config);
    scenario_free(s);
}

/* What decides whether a setting has an effect is set by an axis, if only for another value of it.
 */
static void settings_without_effect(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f,
                                   "w = { us = 1; n = 2; };\n"
                                   "axes = ( { name = \"a\"; variants = (\n"
                                   "  { name = \"one\"; set = (); },\n"
                                   "  { name = \"two\"; set = ( \"w.fixed=true\" ); } ); } );\n",
                                   SETS("axes.a=one,two"));
    struct config *config = scenario_point(s, 0, &f->errors);
    struct config_node *w = config_get(config_root(config), "w");

    config_no_effect(w, "us", "w.fixed", &f->errors, "fixed");
    config_no_effect(w, "none", "w.other", &f->errors, "nothing of it");
    config_no_effect(w, "n", "w.other", &f->errors, "other");
    EXPECT(f, "scenarios/t.cfg:1: w.n: found 2 (an integer), expected other");
    config_free(config);
    scenario_free(s);
}

static void ranges(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f,
                                   "axes = ( { name = \"size\"; setting = \"a.b\";\n"
                                   "  range = { from = 64; to = 300; factor = 2; }; },\n"
                                   " { name = \"part\"; setting = \"a.c\";\n"
                                   "   range = { from = 0.1; to = 0.3; step = 0.1; }; } );",
                                   NULL);

    POINTS(s, "part=0.1 size=64", "part=0.2 size=64", "part=0.3 size=64", "part=0.1 size=128",
           "part=0.2 size=128", "part=0.3 size=128", "part=0.1 size=256", "part=0.2 size=256",
           "part=0.3 size=256");
    point_sets(f, s, 4, "a.b", "128", "axis size");
    point_sets(f, s, 4, "a.c", "0.2", "axis part");
    scenario_free(s);
}

/* ---- Lock-step ------------------------------------------------------------------------------- */

static const char lock_step[] =
    "axes = ( { name = \"cores\"; setting = \"a.cores\"; values = [1, 2, 4]; },\n"
    "         { name = \"op\"; setting = \"a.op\"; values = [\"rd\", \"wr\"]; },\n"
    "         { name = \"rings\"; setting = \"a.rings\"; values = [2, 4, 8];\n"
    "           with = \"cores\"; },\n"
    "         { name = \"irqs\"; with = \"rings\"; variants = (\n"
    "             { name = \"x\"; set = (\"a.x=1\"); }, { name = \"y\"; set = (); },\n"
    "             { name = \"z\"; set = (); } ); } );\n";

static void axes_in_lock_step(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f, lock_step, NULL);

    POINTS(s, "cores=1 irqs=x op=rd rings=2", "cores=1 irqs=x op=wr rings=2",
           "cores=2 irqs=y op=rd rings=4", "cores=2 irqs=y op=wr rings=4",
           "cores=4 irqs=z op=rd rings=8", "cores=4 irqs=z op=wr rings=8");
    assert_int_equal(scenario_axis_leader(s, 0), 0);
    assert_int_equal(scenario_axis_leader(s, 1), 1);
    assert_int_equal(scenario_axis_leader(s, 2), 0);
    assert_int_equal(scenario_axis_leader(s, 3), 0); /* that of the axis that it names */
    point_sets(f, s, 3, "a.cores", "2", "axis cores");
    point_sets(f, s, 3, "a.rings", "4", "axis rings");
    scenario_free(s);

    scenario_free(load(f, lock_step, SETS("axes.cores=1,2")));
    EXPECT(f,
           "scenarios/t.cfg:3: axes.[2]: axis rings has 3 values, but advances with cores, which "
           "has 2",
           "scenarios/t.cfg:5: axes.[3]: axis irqs has 3 values, but advances with cores, which "
           "has 2");
    refuse(f,
           "axes = ( { name = \"a\"; setting = \"x\"; values = [1];\n with = \"b\"; },\n"
           "  { name = \"b\"; setting = \"y\"; values = [1]; } );",
           "scenarios/t.cfg:2: there is no axis \"b\"");
    refuse(f, "axes = ( { name = \"a\"; setting = \"x\"; values = [1]; with = \"a\"; } );",
           "scenarios/t.cfg:1: axes.[0].with: found \"a\" (a string), expected the name of another "
           "axis, which stands before this one");
    refuse(f, "axes = ( { name = \"a\"; setting = \"x\"; values = [1]; with = 1; } );",
           "scenarios/t.cfg:1: axes.[0].with: found 1 (an integer), expected the name of an axis");
}

/* ---- Constraints and filters ----------------------------------------------------------------- */

static const char three_axes[] =
    "axes = ( { name = \"config\"; variants = ( { name = \"local\"; set = (); },\n"
    "             { name = \"remote\"; set = (\"a.x=1\"); } ); },\n"
    "         { name = \"size\"; setting = \"a.size_bytes\";\n"
    "           values = [64, 1024, \"1 MiB\"]; },\n"
    "         { name = \"think\"; setting = \"a.think_ns\"; values = [0.5, \"2 us\"]; } );\n";

static struct scenario *load_constrained(struct fixture *f, const char *constraints,
                                         const char *const *sets)
{
    char *text = g_strconcat(three_axes, "constraints = ( ", constraints, " );\n", NULL);
    struct scenario *s = load(f, text, sets);

    g_free(text);
    return s;
}

static void constraints_leave_points_out(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_constrained(f, "\"config!=remote || size<=1KiB\", \"think=0.5\"",
                                          NULL);

    POINTS(s, "config=local size=64 think=0.5", "config=local size=1024 think=0.5",
           "config=local size=1 MiB think=0.5", "config=remote size=64 think=0.5",
           "config=remote size=1024 think=0.5");
    assert_string_equal(scenario_axis_value(s, 1, scenario_point_value(s, 4, 1)), "1024");
    point_sets(f, s, 4, "a.size_bytes", "1024", "axis size");
    scenario_free(s);

    /* they hold for other values of the axes too, and a value that is gone is no mistake */
    s = load_constrained(f, "\"config!=remote || size<=1KiB\"",
                         SETS("axes.size=2048, 512", "axes.think=1", "axes.config=remote"));
    assert_int_equal(f->errors.n_messages, 0);
    POINTS(s, "config=remote size=512 think=1");
    scenario_free(s);
}

static void mistakes_in_constraints(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *constraints, *message;
    } cases[] = {
        { "\"conf=local\"", "constraints.[0]: there is no axis \"conf\"; did you mean "
                            "\"config\"?" },
        { "\"size>1\", \"config=locl\"",
          "constraints.[1]: axis config has no value \"locl\"; did you mean \"local\"?" },
        { "\"config>1\"", "constraints.[0]: the values of axis config are not more or less than "
                          "\"1\"" },
        { "\"size>2 us\"", "constraints.[0]: the values of axis size are not more or less than "
                           "\"2 us\"" },
        { "\"size is 2\"", "constraints.[0]: found \"size is 2\", expected comparisons such as "
                           "\"config=remote buffer_bytes>1024\", alternatives after \"||\"" },
        { "\"config=local,remot\"", "constraints.[0]: axis config has no value \"remot\"; did you "
                                    "mean \"remote\"?" },
        { "\"size>2us\"", "constraints.[0]: the values of axis size are not more or less than "
                          "\"2us\"" },
        { "5", "constraints.[0]: found 5 (an integer), expected a string \"axis>value || "
               "axis=value\"" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        char *message = g_strdup_printf("scenarios/t.cfg:6: %s", cases[i].message);

        scenario_free(load_constrained(f, cases[i].constraints, NULL));
        EXPECT(f, message);
        g_free(message);
    }
    scenario_free(load_constrained(f, "\"config=local\", \"config=remote\"", NULL));
    EXPECT(f, "scenarios/t.cfg: the constraints leave no point");
    refuse(f, "constraints = 1;",
           "scenarios/t.cfg:1: constraints: found 1 (an integer), expected a list, ( \"axis>value "
           "|| axis=value\", ... )");
}

static struct scenario *load_where(struct fixture *f, const char *where, const char *const *sets)
{
    char *text = g_strconcat("a = { y = 7; };\n", three_axes, "where = ( ", where, " );\n", NULL);
    struct scenario *s = load(f, text, sets);

    g_free(text);
    return s;
}

static void some_points_are_set_by_where(void **state)
{
    static const char where[] = "{ points = \"size>=1KiB\"; set = ( \"a.y=8\", \"a.z=1\" ); },\n"
                                "{ points = \"size=1 MiB config=remote\"; set = ( \"a.y=9\" ); },\n"
                                "{ points = \"config=remote size=64\"; set = ( \"@w.cfg\" ); }";
    struct fixture *f = *state;
    write_file("scenarios/w.cfg", "a = { y = 6; };\n");
    struct scenario *s = load_where(f, where, NULL);

    assert_int_equal(f->errors.n_messages, 0);
    assert_string_equal(scenario_point_name(s, 0), "config=local size=64 think=0.5");
    point_sets(f, s, 0, "a.y", "7", "scenarios/t.cfg:1");
    assert_string_equal(scenario_point_name(s, 2), "config=local size=1024 think=0.5");
    point_sets(f, s, 2, "a.y", "8", "where size>=1KiB");
    point_sets(f, s, 2, "a.z", "1", "where size>=1KiB");
    point_sets(f, s, 4, "a.y", "8", "where size>=1KiB");
    point_sets(f, s, 6, "a.y", "6", "where config=remote size=64");
    assert_string_equal(scenario_point_name(s, 10), "config=remote size=1 MiB think=0.5");
    point_sets(f, s, 10, "a.y", "9", "where size=1 MiB config=remote"); /* the later one wins */
    /* what differs in a point's `where` alone is not the same text */
    char *digest[3] = { scenario_digest(s, 0), scenario_digest(s, 2), scenario_digest(s, 4) };
    assert_string_not_equal(digest[0], digest[1]);
    assert_string_equal(digest[1], digest[2]);
    for (unsigned i = 0; i < 3; i++)
        g_free(digest[i]);
    scenario_free(s);

    /* --set wins, in all points; other values of an axis are compared, too */
    s = load_where(f, where, SETS("a.y=5", "axes.size=2048"));
    assert_int_equal(f->errors.n_messages, 0);
    point_sets(f, s, 0, "a.y", "5", "--set");
    point_sets(f, s, 0, "a.z", "1", "where size>=1KiB");
    scenario_free(s);
    write_file("here.cfg", "a = { y = 4; };\n");
    s = load_where(f, where, SETS("@here.cfg"));
    assert_int_equal(f->errors.n_messages, 0);
    point_sets(f, s, 0, "a.y", "4", "here.cfg:1");
    point_sets(f, s, 10, "a.y", "4", "here.cfg:1");
    scenario_free(s);
    /* none left that it holds for: no mistake, as it was not so written */
    s = load_where(f, where, SETS("axes.size=2"));
    assert_int_equal(f->errors.n_messages, 0);
    point_sets(f, s, 0, "a.y", "7", "scenarios/t.cfg:1");
    scenario_free(s);
}

static void mistakes_in_where(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *where, *message;
    } cases[] = {
        { "{ points = \"sise>1\"; set = (); }",
          "where.[0].points: there is no axis \"sise\"; did you mean \"size\"?" },
        { "{ points = \"size>1\"; set = ( \"a.x=3\" ); }", "a.x: set by the axis config" },
        { "{ points = \"size>1\"; }",
          "where.[0]: no set; expected { points = \"axis>value\"; set = ( \"path=value\" ); }" },
        { "{ set = (); }", "where.[0]: no points; expected { points = \"axis>value\"; set = ( "
                           "\"path=value\" ); }" },
        { "{ points = \"size>1\"; set = (); sets = 1; }",
          "where.[0].sets: unknown setting; did you mean \"set\"?" },
        { "{ points = \"size>1\"; set = ( \"axes=1\" ); }",
          "axes: cannot be changed here, since it has been read before; --set axes.NAME=a,b "
          "chooses values of an axis" },
        { "{ points = \"size>2MiB\"; set = ( \"a.y=3\" ); }",
          "where: \"size>2MiB\" holds for no point" },
        { "3", "where.[0]: found 3 (an integer), expected { points = \"axis>value\"; set = ( "
               "\"path=value\" ); }" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        char *message = g_strdup_printf("scenarios/t.cfg:7: %s", cases[i].message);

        scenario_free(load_where(f, cases[i].where, NULL));
        EXPECT(f, message);
        g_free(message);
    }
    refuse_sets(f, two_axes, "where=()",
                "--set: where: cannot be changed here, since it has been read before; --set "
                "PATH=VALUE changes a setting of all points");
}

/* How many of the twelve points of three_axes a filter selects; -1: it does not fit them. */
static int n_selected(const struct scenario *s, const char *text)
{
    char *fault = NULL;
    struct filter *filter = filter_parse(text, &fault);
    const struct filter_table table = scenario_table(s);
    bool selected[12];
    int n = 0;

    assert_int_equal(filter == NULL, fault != NULL);
    if (filter)
        fault = filter_fault(filter, &table, 1);
    if (fault)
        n = -1;
    memset(selected, true, sizeof(selected));
    if (filter)
        filter_apply(filter, &table, selected);
    for (size_t i = 0; n >= 0 && i < SIM_N_ELEMENTS(selected); i++)
        n += selected[i];
    filter_free(filter);
    g_free(fault);
    return n;
}

static void filters_compare(void **state)
{
    struct scenario *s = load_good(*state, three_axes, NULL);
    static const struct {
        const char *text;
        int n;
    } cases[] = {
        { "config=remote", 6 },
        { "config==remote", 6 },
        { "config!=remote", 6 },
        { "config=local,remote", 12 },
        { "config!=local,remote", 0 },
        { "size=64", 4 },
        { "size=0x40", 4 },
        { "size=64B", 4 },
        { "size=1KiB", 4 },
        { "size='1 MiB'", 4 },
        { "size=1 MiB", 4 },
        { "size>=1 KiB config=local", 4 },
        { "size=64 , 1 MiB config=local", 4 },
        { "size=64,1 MiB&&config=local||size=1 KiB think<1", 6 },
        { "config=rem*", 6 },
        { "config!=?o*", 6 },
        { "config=*x*", -1 },
        { "size=64 B config", -1 },
        { "size=64 & size=64", -1 },
        { "size=1048576", 4 },
        { "size = 1MiB, 64", 8 },
        { "size<1024", 4 },
        { "size<=1024", 8 },
        { "size>1kB", 8 },
        { "size>1KiB", 4 },
        { "size>=1KiB", 8 },
        { "think=2000", 6 },
        { "think=500ps", 6 },
        { "think>=0.5 think<2us", 6 },
        { "config=remote size>64 think=0.5", 2 },
        { "config=remote && size>64&&think=0.5", 2 },
        { "config=remote size=64 || config=local size>64 || think=0.5", 9 },
        { "size>10GiB", 0 },
        { "config>remote", -1 },
        { "size=65", -1 },
        { "size>1us", -1 },
        { "none=1", -1 },
        { "", -1 },
        { "config", -1 },
        { "config=", -1 },
        { "config=remote ||", -1 },
        { "|| config=remote", -1 },
        { "config='remote", -1 },
        { "size>1,2", -1 },
        { "(size>1)", -1 },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        const int n = n_selected(s, cases[i].text);

        if (n != cases[i].n)
            fail_msg("%s: %d points, expected %d", cases[i].text, n, cases[i].n);
    }
    scenario_free(s);
}

/* ---- Precedence ------------------------------------------------------------------------------ */

/* What is beside a setting of the file stays; provenance and place come along. */
static void settings_of_a_file(void **state)
{
    struct fixture *f = *state;
    const char *text = "a = { b = { c = 1; d = 2; }; e = 3; l = ( { m = 1; } ); };\n"
                       "set = ( \"@fitted.cfg\", \"a.e=30\" );\n"
                       "axes = ( { name = \"x\"; setting = \"a.x\"; values = [1]; } );\n";

    write_file(
        "scenarios/fitted.cfg",
        "a = {\n b = { c = { value = 10; provenance = \"calibrated\"; source = \"claim\"; }; };\n"
        " e = 29; x = 5; l = ( { m = 2; }, { m = 3; } );\n};\n");
    struct scenario *s = load_good(f, text, NULL);
    point_sets(f, s, 0, "a.b.c.value", "10", "scenarios/fitted.cfg:2");
    point_sets(f, s, 0, "a.b.d", "2", "scenarios/t.cfg:1");
    point_sets(f, s, 0, "a.e", "30", "scenarios/t.cfg:2"); /* later in the list */
    point_sets(f, s, 0, "a.x", "1", "axis x");
    point_sets(f, s, 0, "a.l.[1].m", "3", "scenarios/fitted.cfg:3");
    scenario_free(s);

    write_file("here.cfg", "a = { b = { d = 4; }; };\n");
    s = load_good(f, text, SETS("a.b.d=3", "@here.cfg", "a.b.c=11"));
    point_sets(f, s, 0, "a.b.d", "4", "here.cfg:1");
    point_sets(f, s, 0, "a.b.c", "11", "--set");
    scenario_free(s);
}

/* A variant may set all that a file does: one topology or another. */
static void variants_of_files(void **state)
{
    struct fixture *f = *state;
    const char *text = "axes = ( { name = \"x\"; variants = (\n"
                       " { name = \"one\"; set = ( \"@one.cfg\" ); },\n"
                       " { name = \"two\"; set = ( \"@two.cfg\", \"a.b.c=12\" ); } ); } );\n";

    write_file("scenarios/one.cfg", "a = { b = { c = 1; d = 2; }; l = ( 4, 5, 6 ); };\n");
    write_file("scenarios/two.cfg",
               "a = {\n b = { c = 10; e = { value = 3; provenance = \"published\"; }; };\n"
               " l = ( 7 );\n};\n");
    struct scenario *s = load_good(f, text, NULL);
    point_sets(f, s, 0, "a.b.c", "1", "axis x");
    point_sets(f, s, 0, "a.b.d", "2", "axis x");
    point_sets(f, s, 0, "a.l.[2]", "6", "axis x");
    point_sets(f, s, 1, "a.b.c", "12", "axis x");
    point_sets(f, s, 1, "a.b.e.value", "3", "axis x");
    point_sets(f, s, 1, "a.l.[0]", "7", "axis x");
    scenario_free(s);
    refuse(f,
           "axes = ( { name = \"x\"; variants = (\n"
           " { name = \"one\"; set = ( \"@none.cfg\" ); } ); } );\n",
           "scenarios/t.cfg:2: found \"@none.cfg\", but there is no such file");
}

/* What a variant takes from a file is a platform's, which --set may change; what it names is
 * not. */
static void what_is_read_before_cannot_be_set(void **state)
{
    struct fixture *f = *state;
    g_autoptr(GString) many = g_string_new("axes.transfer_bytes=1");

    refuse_sets(f, two_axes, "axes=()",
                "--set: axes: cannot be changed here, since it has been read before; --set "
                "axes.NAME=a,b chooses values of an axis");
    refuse_sets(f, two_axes, "constraints.[0]=memory=local",
                "--set: constraints.[0]: cannot be changed here, since it has been read before; "
                "--filter chooses points");
    write_file("scenarios/set.cfg", "quick = ( \"transfer_bytes=64\" );\n");
    refuse_sets(f, two_axes, "@set.cfg",
                "scenarios/set.cfg:1: quick: cannot be changed here, since it has been read "
                "before; --filter chooses points");
    refuse(f, "axes = ( { name = \"a\"; variants = ( { name = \"b\"; set = (\"set=1\"); } ); } );",
           "scenarios/t.cfg:1: set: cannot be changed here, since it has been read before; --set "
           "PATH=VALUE changes a setting");
    for (int i = 2; i <= 10001; i++)
        g_string_append_printf(many, ",%d", i);
    refuse_sets(f, two_axes, many->str, "--set: axes.transfer_bytes: more than 10000 values");
    refuse_sets(
        f, two_axes, "axes.transfer_bytes=0100",
        "--set: axis transfer_bytes: found 0100, expected an integer without a zero before it");
}

static void set_of_a_setting_that_a_file_of_an_axis_sets(void **state)
{
    struct fixture *f = *state;
    const char *text = "axes = ( { name = \"x\"; variants = (\n"
                       " { name = \"one\"; set = ( \"@one.cfg\" ); },\n"
                       " { name = \"two\"; set = ( \"@two.cfg\", \"a.b.c=12\" ); } ); } );\n";

    write_file("scenarios/one.cfg", "a = { b = { c = 1; d = 2; }; l = ( 4, 5, 6 ); };\n");
    write_file("scenarios/two.cfg", "a = { b = { c = 10; }; };\nh = { e = { g = 1; }; };\n");
    struct scenario *s = load_good(f, text, SETS("a.b.d=3", "a.l.[1]=7", "h.e.g=9"));
    point_sets(f, s, 0, "a.b.c", "1", "axis x");
    point_sets(f, s, 0, "a.b.d", "3", "--set");
    point_sets(f, s, 0, "a.l.[1]", "7", "--set");
    point_sets(f, s, 0, "a.l.[2]", "6", "axis x");
    scenario_free(s);
    s = load_good(f, text, SETS("axes.x=two", "h.e.g=9", "h.e.k=10"));
    point_sets(f, s, 0, "a.b.c", "12", "axis x");
    point_sets(f, s, 0, "h.e.g", "9", "--set");
    point_sets(f, s, 0, "h.e.k", "10", "--set");
    scenario_free(s);
    refuse_sets(f, text, "a.b.c=3",
                "--set: a.b.c: set by the axis x; to choose its values, --set axes.x=...");
    refuse_sets(f, text, "a.b={ c = 3; }",
                "--set: a.b: set by the axis x; to choose its values, --set axes.x=...");
}

static void mistakes_in_settings_of_a_file(void **state)
{
    struct fixture *f = *state;
    const char *text = "a = { b = 1; c = { d = 1; }; };\n"
                       "axes = ( { name = \"x\"; setting = \"a.b\"; values = [1]; } );\n";

    refuse(f, "a = 1;\nset = ( \"@none.cfg\" );",
           "scenarios/t.cfg:2: found \"@none.cfg\", but there is no such file");
    refuse_sets(f, text, "@none.cfg", "--set: found \"@none.cfg\", but there is no such file");
    write_file("here.cfg", "\na = { b = 2; };\n");
    refuse_sets(f, text, "@here.cfg", "here.cfg:2: a.b: set by the axis x");
    write_file("here.cfg", "a = { c = 2; };\n");
    refuse_sets(f, text, "@here.cfg",
                "here.cfg:1: a.c: found 2 (an integer), expected a group; set one of its settings, "
                "\"a.c.name=value\"");
    write_file("here.cfg", "a = {\n");
    scenario_free(load(f, text, SETS("@here.cfg")));
    assert_int_equal(f->errors.n_messages, 1);
    assert_true(g_str_has_prefix(f->errors.message[0], "here.cfg:"));
    sim_error_release(&f->errors);
}

/* A file of settings is for hosts and devices that there are; a platform brings its own. */
static void a_file_for_another_host_is_refused(void **state)
{
    struct fixture *f = *state;
    const char *text = "hosts = { a = { n = 1; }; b = { n = 1; }; };\n";

    write_file("here.cfg", "hosts = { a = { n = 2; }; };\n");
    scenario_free(load_good(f, text, SETS("@here.cfg")));
    write_file("here.cfg", "\nhosts = { server = { n = 2; }; };\n");
    refuse_sets(f, text, "@here.cfg",
                "here.cfg:2: hosts.server: no host \"server\"; expected one of \"a\", \"b\"");
    write_file("here.cfg", "hosts = { server = { n = 2; }; };\ncables = ();\n");
    scenario_free(load_good(f, text, SETS("@here.cfg")));
    scenario_free(load_good(f, "a = 1;", SETS("@here.cfg")));
}

static void later_settings_win(void **state)
{
    struct fixture *f = *state;
    const char *text = "a = { b = 1; c = 2; d = 3; e = 4; };\n"
                       "set = ( \"a.c=20\", \"a.d=30\",\n \"a.e=40\" );\n"
                       "axes = ( { name = \"x\"; setting = \"a.d\"; values = [300]; } );\n";
    struct scenario *s = load_good(f, text, SETS("a.e=4000", "a.new=\"8 ns\""));

    point_sets(f, s, 0, "a.b", "1", "scenarios/t.cfg:1");
    point_sets(f, s, 0, "a.c", "20", "scenarios/t.cfg:2");
    point_sets(f, s, 0, "a.d", "300", "axis x");
    point_sets(f, s, 0, "a.e", "4000", "--set");
    point_sets(f, s, 0, "a.new", "8 ns", "--set");
    scenario_free(s);
}

static void set_of_a_setting_that_an_axis_sets(void **state)
{
    struct fixture *f = *state;

    refuse_sets(f, two_axes, "workload.transfer_bytes=64",
                "--set: workload.transfer_bytes: set by the axis transfer_bytes; to choose its "
                "values, --set axes.transfer_bytes=...");
    refuse_sets(f, two_axes, "workload={ a = 1; }",
                "--set: workload: set by the axis transfer_bytes; to choose its values, --set "
                "axes.transfer_bytes=...");
    refuse_sets(f, two_axes, "a.b.c=1",
                "--set: a.b.c: set by the axis memory; to choose its values, --set "
                "axes.memory=...");
    refuse_sets(f, two_axes, "nothing", "--set: found \"nothing\", expected \"path=value\"");
    refuse_sets(f, two_axes, "workload=5",
                "--set: workload: set by the axis transfer_bytes; to choose its values, --set "
                "axes.transfer_bytes=...");
}

static void near_numbers_are_not_the_same(void **state)
{
    struct fixture *f = *state;
    struct scenario *s =
        load_good(f,
                  "axes = ( { name = \"a\"; setting = \"x.y_bytes\"; values = "
                  "[\"1 TiB\", 1099511627777L, 1099511627778L, \"1\", \"1.0\"]; } );",
                  NULL);

    assert_int_equal(scenario_n_points(s), 5);
    scenario_free(s);
}

static void axes_are_replaced_by_name(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f, two_axes,
                                   SETS("axes.transfer_bytes=128, 256", "axes.memory=remote"));

    POINTS(s, "memory=remote transfer_bytes=128", "memory=remote transfer_bytes=256");
    point_sets(f, s, 1, "workload.transfer_bytes", "256", "axis transfer_bytes");
    point_sets(f, s, 1, "workload.memory_socket", "1", "axis memory");
    scenario_free(s);

    /* the last choice counts, of all that the file has */
    s = load_good(f, two_axes,
                  SETS("axes.memory=remote", "axes.transfer_bytes=128", "axes.memory=local",
                       "axes.transfer_bytes=64"));
    POINTS(s, "memory=local transfer_bytes=64");
    point_sets(f, s, 0, "workload.memory_socket", "0", "axis memory");
    scenario_free(s);

    refuse_sets(f, two_axes, "axes.transfer_byte=1",
                "--set: there is no axis \"transfer_byte\"; did you mean \"transfer_bytes\"?");
    refuse_sets(f, two_axes, "axes.memory=locl",
                "--set: axes.memory: there is no variant \"locl\"; did you mean \"local\"?");
    refuse_sets(f, two_axes, "axes.transfer_bytes=1,1",
                "--set: axis transfer_bytes: value 1 stands there twice");
    refuse_sets(f, two_axes, "axes.transfer_bytes=",
                "--set: axes.transfer_bytes: axis "
                "transfer_bytes has no values");
    refuse_sets(f, two_axes, "axes.transfer_bytes=1,,2",
                "--set: axis transfer_bytes: no value after \"=\"; the empty string is \"\"");
    refuse_sets(f, two_axes, "axes.transfer_bytes=[1,2]",
                "--set: axes.transfer_bytes: found [1,2], expected values with \",\" between them, "
                "without brackets");
}

/* As it was, but for the values that are given with it. */
static void is_loaded_again_with_other_sets(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(f, two_axes, SETS("axes.memory=remote", "workload.gap_ns=5"));
    struct scenario *other = scenario_with_sets(s, SETS("axes.memory=local"), &f->errors);

    assert_string_equal(scenario_sets(s)[1], "workload.gap_ns=5");
    assert_null(scenario_sets(s)[2]);
    assert_string_equal(scenario_name(other), scenario_name(s));
    assert_string_equal(scenario_axis_value(other, scenario_axis_find(other, "memory"), 0),
                        "local");
    assert_string_equal(scenario_changes(other), "");
    scenario_free(other);
    scenario_free(s);
}

/* ---- Mistakes in axes ------------------------------------------------------------------------ */

/* A scenario, and the message that it must give. */
static const char *const axis_mistakes[][2] = {
    { "axes = ( { name = \"a\"; setting = \"x.y\"; values = []; } );",
      "scenarios/t.cfg:1: axes.[0].values: axis a has no values" },
    { "axes = (\n { name = \"a\"; setting = \"x.y\"; } );",
      "scenarios/t.cfg:2: axes.[0]: axis a has no values; give values = [...], range = {...} "
      "or variants = (...)" },
    { "axes = ( { name = \"a\"; variants = (); } );",
      "scenarios/t.cfg:1: axes.[0].variants: axis a has no variants" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = [1]; },\n"
      "         { name = \"a\"; setting = \"y\"; values = [1]; } );",
      "scenarios/t.cfg:2: axes.[1].name: two axes are named a" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = [1];\n"
      " variants = ( { name = \"v\"; set = (); } ); } );",
      "scenarios/t.cfg:1: axes.[0]: axis a has more than one of values, range and variants" },
    { "axes = ( { name = \"a\"; variants = ( { name = \"v\"; set = (); },\n"
      " { set = (\"x=1\"); } ); } );",
      "scenarios/t.cfg:2: axes.[0].variants.[1]: a variant of axis a has no name" },
    { "axes = ( { name = \"a\"; variants = ( { name = \"v\"; } ); } );",
      "scenarios/t.cfg:1: axes.[0].variants.[0]: variant v of axis a sets nothing; a variant "
      "without changes has set = ()" },
    { "axes = ( { name = \"a\"; variants = ( { name = \"v\"; set = (); },\n"
      " { name = \"v\"; set = (); } ); } );",
      "scenarios/t.cfg:2: axis a: value v stands there twice" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = [8, 16,\n 8]; } );",
      "scenarios/t.cfg:2: axis a: value 8 stands there twice" },
    { "axes = (\n { name = \"a\"; setting = \"x.y_bytes\"; values = [1024, \"1 KiB\", 2048]; } );",
      "scenarios/t.cfg:2: axis a: the values 1024 and 1 KiB are the same, expected one of them" },
    { "axes = (\n { name = \"a\"; setting = \"x.y_ns\"; values = [500, \"2 us\", 2000]; } );",
      "scenarios/t.cfg:2: axis a: the values 2 us and 2000 are the same, expected one of them" },
    { "axes = (\n { name = \"a\"; setting = \"x.y\"; values = [\"8 Gbit/s\", \"1 GB/s\"]; } );",
      "scenarios/t.cfg:2: axis a: the values 8 Gbit/s and 1 GB/s are the same, expected one of them" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = [\"p=q\"]; } );",
      "scenarios/t.cfg:1: axis a: found the value \"p=q\", expected one without \"=\", \",\" "
      "and blanks around it; `variants` give names to such values" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = ( [1] ); } );",
      "scenarios/t.cfg:1: axes.[0].values.[0]: found a list, expected one value; \"variants\" "
      "set several settings" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = 5; } );",
      "scenarios/t.cfg:1: axes.[0].values: found 5 (an integer), expected a list of values, "
      "[1, 2, 4]" },
    { "axes = ( { name = \"a\"; values = [1]; } );",
      "scenarios/t.cfg:1: axes.[0]: axis a has no setting that its values belong to" },
    { "axes = ( { name = \"a\"; setting = \"x\"; variants = ( { name = \"v\"; set = (); } ); } );",
      "scenarios/t.cfg:1: axes.[0]: axis a has both a setting and variants; a variant names "
      "its settings in set = (...)" },
    { "axes = ( { setting = \"x\"; values = [1]; } );",
      "scenarios/t.cfg:1: axes.[0]: an axis has no name" },
    { "axes = ( { name = \"a b\"; setting = \"x\"; values = [1]; } );",
      "scenarios/t.cfg:1: axes.[0].name: found \"a b\" (a string), expected a name of "
      "letters, digits and \"_\"" },
    { "axes = { };",
      "scenarios/t.cfg:1: axes: found a group, expected a list of axes, ( { name = ...; }, "
      "... )" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = [1]; vaules = 1; } );",
      "scenarios/t.cfg:1: axes.[0].vaules: unknown setting; did you mean \"values\"?" },
    { "axes = ( { name = \"a\"; setting = \"x.y\"; values = [1]; },\n"
      "         { name = \"b\"; setting = \"x\"; values = [1]; } );",
      "scenarios/t.cfg:1: x.y: set by the axes a and b" },
    { "axes = ( { name = \"a\"; setting = \"x\"; range = { from = 1; to = 5; }; } );",
      "scenarios/t.cfg:1: axes.[0].range: expected the numbers from, to, and either step or "
      "factor" },
    { "axes = ( { name = \"a\"; setting = \"x\"; range = { from = 0; to = 5; factor = 2; }; } );",
      "scenarios/t.cfg:1: axes.[0].range: expected from <= to, and step > 0 or factor > 1 "
      "with from > 0" },
    { "axes = ( { name = \"a\"; setting = \"x\"; range = { from = 0; to = 1e9; step = 1; }; } );",
      "scenarios/t.cfg:1: axes.[0].range: more than 10000 values" },
    { "quick = ( \"b=1\" );", "scenarios/t.cfg:1: there is no axis \"b\"" },
    { "axes = ( { name = \"a\"; setting = \"x\"; values = [1]; } );\nquick = ( \"a=2\" );",
      "scenarios/t.cfg:2: quick.[0]: axis a has no value \"2\"; expected \"1\"" },
    { "title = 5;", "scenarios/t.cfg:1: title: found 5 (an integer), expected a string" },
    { "set = ( 5 );",
      "scenarios/t.cfg:1: set.[0]: found 5 (an integer), expected a string \"path=value\"" },
    { "set = ( \"a\" );", "scenarios/t.cfg:1: found \"a\", expected \"path=value\"" },
    { "a = 1;\nset = ( \"a.b=1\" );",
      "scenarios/t.cfg:2: a: found 1 (an integer), expected a group with \"b\"" },
};

static void mistakes_in_axes(void **state)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(axis_mistakes); i++) {
        struct fixture *f = *state;

        /* of two axes that overlap each end is told */
        if (strstr(axis_mistakes[i][1], "set by the axes")) {
            scenario_free(load(f, axis_mistakes[i][0], NULL));
            EXPECT(f, axis_mistakes[i][1], "scenarios/t.cfg:2: x: set by the axes a and b");
            continue;
        }
        refuse(f, axis_mistakes[i][0], axis_mistakes[i][1]);
    }
}

static void several_mistakes_are_reported_together(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load(f,
                              "big = 68719476736;\n"
                              "axes = ( { name = \"a\"; setting = \"x\"; values = []; },\n"
                              " { name = \"b\"; } );\n"
                              "set = ( \"novalue\" );\n",
                              SETS("axes.c=1"));

    assert_non_null(s); /* so that the builder can add what it finds */
    EXPECT(
        f,
        "scenarios/t.cfg:1: big: found 68719476736, an integer beyond 32 bits without a suffix: add "
        "L (68719476736L), or write \"64 GiB\" if it is a size",
        "scenarios/t.cfg:4: found \"novalue\", expected \"path=value\"",
        "scenarios/t.cfg:2: axes.[0].values: axis a has no values",
        "scenarios/t.cfg:3: axes.[1]: axis b has no values; give values = [...], range = {...} "
        "or variants = (...)",
        "--set: there is no axis \"c\"");
    scenario_free(s);
}

static void values_that_cannot_stand_in_a_point_make_an_axis(void **state)
{
    refuse_sets(*state,
                "x = 1;\naxes = ( { name = \"a\"; setting = \"x\"; values = [\"p=q\"]; } );",
                "axes.a=1",
                "scenarios/t.cfg:2: axis a: found the value \"p=q\", expected one without \"=\", "
                "\",\" and blanks around it; `variants` give names to such values");
}

static void too_many_points(void **state)
{
    GString *text = g_string_new("axes = (");

    for (int i = 0; i < 10; i++)
        g_string_append_printf(text,
                               "%s{ name = \"a%d\"; setting = \"s%d\";"
                               " range = { from = 1; to = 10; step = 1; }; }",
                               i ? "," : "", i, i);
    g_string_append(text, ");");
    refuse(*state, text->str, "scenarios/t.cfg: the axes have more than 1000000 points");
    g_string_free(text, TRUE);
}

static void an_axis_value_that_cannot_be_set(void **state)
{
    struct fixture *f = *state;
    struct scenario *s = load_good(
        f, "a = 1;\naxes = ( { name = \"x\"; setting = \"a.b\";\n values = [1]; } );", NULL);

    assert_null(scenario_point(s, 0, &f->errors));
    EXPECT(f, "scenarios/t.cfg:3: a: found 1 (an integer), expected a group with \"b\"");
    scenario_free(s);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void expect_name(struct fixture *f, const char *asked, const char *name, const char *path)
{
    struct scenario *s = scenario_load(asked, roots, NULL, &f->errors);

    assert_non_null(s);
    assert_string_equal(scenario_name(s), name);
    assert_string_equal(scenario_path(s), path);
    scenario_free(s);
}

static void write_tree(void)
{
    write_file("scenarios/pcie_bench/latency_size.cfg", "a = { @include \"platforms/p.cfg\" };");
    write_file("scenarios/pcie_bench/bandwidth.cfg", "");
    write_file("scenarios/platforms/p.cfg", "p = 1;");
    write_file("scenarios/devices/d.cfg", "d = 1;");
    write_file("scenarios/notes.txt", "");
    write_file("mine/own.cfg", "a = { @include \"platforms/p.cfg\" };");
    write_file("elsewhere/other.cfg", "b = 1;");
}

/* The outline has what the whole has, but leaves out files that say nothing of it, also broken
 * ones. */
static void an_outline_reads_what_it_needs(void **state)
{
    struct sim_error_list errors = { 0 };
    struct scenario *s;

    (void)state;
    write_file("scenarios/t.cfg", "title = \"old\"; a = 1; b = 2; @include \"axes.cfg\"\n"
                                  "set = ( \"@machine.cfg\", \"@outer.cfg\" );\n");
    write_file("scenarios/axes.cfg", "axes = ( { name = \"x\"; variants = (\n"
                                     " { name = \"one\"; set = ( \"@machine.cfg\" ); },\n"
                                     " { name = \"two\"; set = ( \"a=3\" ); } ); },\n"
                                     " { name = \"n\"; setting = \"b\"; values = [1, 2, 3]; } );\n"
                                     "constraints = ( \"x=one || n>1\" );\n");
    write_file("scenarios/outer.cfg", "@include \"inner.cfg\"\n");
    write_file("scenarios/inner.cfg", "title = \"new\";\n");
    write_file("scenarios/machine.cfg", "a = { is not read\n");
    s = scenario_load_outline("t", roots, &errors);
    assert_int_equal(errors.n_messages, 0);
    assert_non_null(s);
    assert_string_equal(scenario_title(s), "new");
    assert_int_equal(scenario_n_points(s), 5);
    assert_string_equal(scenario_point_name(s, 4), "n=3 x=two");
    scenario_free(s);
    s = scenario_load("t", roots, NULL, &errors);
    assert_int_not_equal(errors.n_messages, 0);
    scenario_free(s);
    sim_error_release(&errors);
}

static void scenarios_are_found_by_name_and_path(void **state)
{
    struct fixture *f = *state;

    write_tree();
    expect_name(f, "pcie_bench/latency_size", "pcie_bench/latency_size",
                "scenarios/pcie_bench/latency_size.cfg");
    expect_name(f, "pcie_bench/latency_size.cfg", "pcie_bench/latency_size",
                "scenarios/pcie_bench/latency_size.cfg");
    expect_name(f, "scenarios/pcie_bench/latency_size.cfg", "pcie_bench/latency_size",
                "scenarios/pcie_bench/latency_size.cfg");
    expect_name(f, "own", "own", "mine/own.cfg"); /* its include is found in the other root */
    expect_name(f, "elsewhere/other.cfg", "other", "elsewhere/other.cfg");
    expect_name(f, "elsewhere/other", "other", "elsewhere/other.cfg");
}

static void a_wrong_name_tells_the_nearest(void **state)
{
    struct fixture *f = *state;

    write_tree();
    assert_null(scenario_load("pcie_bench/latency_sise", roots, NULL, &f->errors));
    EXPECT(f, "no scenario \"pcie_bench/latency_sise\" in scenarios, mine; did you mean "
              "\"pcie_bench/latency_size\"?");
    assert_null(scenario_load("bandwith", roots, NULL, &f->errors));
    EXPECT(f, "no scenario \"bandwith\" in scenarios, mine; did you mean "
              "\"pcie_bench/bandwidth\"?");
    assert_null(scenario_load("zzz", roots, NULL, &f->errors));
    EXPECT(f, "no scenario \"zzz\" in scenarios, mine");
    const char *none[] = { NULL };
    assert_null(scenario_load("zzz", none, NULL, &f->errors));
    EXPECT(f, "no scenario \"zzz\", and no folder of scenarios was found; --scenarios DIR or "
              "NUDMA_SCENARIOS names one");
}

static void scenarios_are_listed(void **state)
{
    char **names;

    (void)state;
    write_tree();
    names = scenario_list("scenarios");
    assert_int_equal(g_strv_length(names), 2);
    assert_string_equal(names[0], "pcie_bench/bandwidth");
    assert_string_equal(names[1], "pcie_bench/latency_size");
    g_strfreev(names);
    names = scenario_list("none");
    assert_int_equal(g_strv_length(names), 0);
    g_strfreev(names);
}

/* Whatever is cut off: messages or points, never a crash. */
static void truncated_scenarios(void **state)
{
    struct fixture *f = *state;
    char text[sizeof(two_axes)];

    for (size_t n = 0; n < sizeof(two_axes); n++) {
        struct scenario *s;

        memcpy(text, two_axes, n);
        text[n] = '\0';
        s = load(f, text, SETS("axes.memory=local", "workload.x=1"));
        assert_true(s || f->errors.n_messages);
        for (size_t p = 0; s && p < scenario_n_points(s); p++)
            config_free(scenario_point(s, p, &f->errors));
        sim_error_release(&f->errors);
        scenario_free(s);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(points_are_combinations),
        TEST(a_scenario_without_axes_is_one_point),
        TEST(quick_chooses_points),
        TEST(settings_aside_are_no_unknown_settings),
        TEST(unknown_settings_of_axes_and_files),
        TEST(settings_without_effect),
        TEST(ranges),
        TEST(axes_in_lock_step),
        TEST(constraints_leave_points_out),
        TEST(mistakes_in_constraints),
        TEST(some_points_are_set_by_where),
        TEST(mistakes_in_where),
        TEST(filters_compare),
        TEST(later_settings_win),
        TEST(settings_of_a_file),
        TEST(variants_of_files),
        TEST(set_of_a_setting_that_a_file_of_an_axis_sets),
        TEST(what_is_read_before_cannot_be_set),
        TEST(mistakes_in_settings_of_a_file),
        TEST(a_file_for_another_host_is_refused),
        TEST(set_of_a_setting_that_an_axis_sets),
        TEST(axes_are_replaced_by_name),
        TEST(is_loaded_again_with_other_sets),
        TEST(near_numbers_are_not_the_same),
        TEST(mistakes_in_axes),
        TEST(several_mistakes_are_reported_together),
        TEST(values_that_cannot_stand_in_a_point_make_an_axis),
        TEST(too_many_points),
        TEST(an_axis_value_that_cannot_be_set),
        TEST(an_outline_reads_what_it_needs),
        TEST(scenarios_are_found_by_name_and_path),
        TEST(a_wrong_name_tells_the_nearest),
        TEST(scenarios_are_listed),
        TEST(truncated_scenarios),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
