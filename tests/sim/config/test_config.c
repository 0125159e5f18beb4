/* Loading, changing and reading configurations: values, messages, origins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/config.h"
#include "tests/support/folder_fixture.h"

static struct config *load(struct fixture *f, const char *text)
{
    write_file("x.cfg", text);
    return config_load("x.cfg", ".", &f->errors);
}

/* What load() must do with a file without mistakes. */
static struct config *load_good(struct fixture *f, const char *text)
{
    struct config *config = load(f, text);

    if (f->errors.n_messages)
        fail_msg("%s", f->errors.message[0]);
    assert_non_null(config);
    return config;
}

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

static void refuse(struct fixture *f, const char *text, const char *message)
{
    assert_null(load(f, text));
    EXPECT(f, message);
}

static struct config_node *at(struct config *config, const char *path)
{
    struct config_node *node = config_find(config_root(config), path);

    if (!node)
        fail_msg("there is no %s", path);
    return node;
}

/* ---- The table that the tests read by -------------------------------------------------------- */

struct dram {
    uint32_t channels;
    uint64_t capacity_bytes;
    sim_time latency_ps;
    double rate_gt_s, share;
    bool ecc;
    int policy;
    const char *vendor;
};

static const char *const policies[] = { "closed", "open", NULL };

static const struct param_desc dram_table[] = {
    PARAM("channels", PARAM_U32, struct dram, channels, 4, 1, 16, PROV_DATASHEET,
          "docs/sources.md#dram", "channels of the socket"),
    PARAM("capacity_bytes", PARAM_BYTES, struct dram, capacity_bytes, 4096, 0, 0x1p45,
          PROV_DATASHEET, NULL, "capacity"),
    PARAM("latency_ns", PARAM_TIME, struct dram, latency_ps, 60, 0, 1000, PROV_PUBLISHED,
          "docs/sources.md#mem", "idle latency"),
    PARAM("rate_gt_s", PARAM_RATE, struct dram, rate_gt_s, 2.4, 0.1, 10, PROV_DATASHEET, NULL,
          "transfers"),
    PARAM("share", PARAM_DOUBLE, struct dram, share, 0.5, 0, 1, PROV_NONE, NULL, "a ratio"),
    PARAM("ecc", PARAM_BOOL, struct dram, ecc, 0, 0, 1, PROV_NONE, NULL, "with ECC"),
    PARAM_ONE_OF("policy", struct dram, policy, 1, policies, PROV_NONE, NULL, "page policy"),
    PARAM_TEXT("vendor", struct dram, vendor, NULL, "who made it"),
    { .type = PARAM_END },
};

/* Reads root.dram by the table and looks for unknown settings. */
static bool read_dram(struct fixture *f, struct config *config, struct dram *dram)
{
    struct config_node *group = config_get(config_root(config), "dram");
    bool good = config_read_params(config, group, "dram", dram_table, dram, &f->errors);

    return config_check_unknown(config, &f->errors) && good;
}

static void mistaken(struct fixture *f, const char *setting, const char *message)
{
    char *text = g_strdup_printf("dram = {\n%s\n};\n", setting);
    struct config *config = load_good(f, text);
    struct dram dram;

    assert_false(read_dram(f, config, &dram));
    EXPECT(f, message);
    config_free(config);
    g_free(text);
}

static struct dram understood(struct fixture *f, const char *settings)
{
    char *text = g_strdup_printf("dram = {\n%s\n};\n", settings);
    struct config *config = load_good(f, text);
    struct dram dram;

    if (!read_dram(f, config, &dram))
        fail_msg("%s", f->errors.message[0]);
    config_free(config);
    g_free(text);
    return dram;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static void values_of_every_kind(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(
        f, "i = 5; n = -7, h = 0x7fffffff\n l = 68719476736L; ll = 2147483648LL;\n"
           "hl = 0xFFFFFFFFL; z = 0;\n"
           "f = 2.5; e = 1e3; g : .5; f1 = 1.; f2 = -.5; f3 = +1.5e-3; i3 = +3; f4 = 1e+3\n"
           "*n-a_m*e = 1; t = true; u = FALSE;\n"
           "s = \"a\\\"b\\\\c\\n\" \"d\" // comment\n\"e\";\n"
           "g2 = { a = 1; b = { c = 2 } }; li = (1, \"x\", { y = 3; }, [4, 5L, 6.5]);\n"
           "empty = (); none = {}; arr = [];\n"
           "c1 = 5// comment\nc2 = 2.5/* comment */ c3 = [6/* comment */, 7]\n");

    assert_int_equal(config_int(at(config, "c1")), 5);
    assert_string_equal(config_text(at(config, "c2")), "2.5");
    assert_int_equal(config_int(at(config, "c3.[0]")), 6);
    assert_int_equal(config_int(at(config, "i")), 5);
    assert_int_equal(config_int(at(config, "n")), -7);
    assert_int_equal(config_int(at(config, "h")), 0x7fffffff);
    assert_int_equal(config_int(at(config, "l")), INT64_C(68719476736));
    assert_int_equal(config_int(at(config, "ll")), INT64_C(2147483648));
    assert_int_equal(config_int(at(config, "hl")), INT64_C(0xFFFFFFFF));
    assert_int_equal(config_int(at(config, "z")), 0);
    assert_string_equal(config_text(at(config, "f")), "2.5");
    assert_string_equal(config_text(at(config, "e")), "1000");
    assert_string_equal(config_text(at(config, "g")), "0.5");
    assert_string_equal(config_text(at(config, "f1")), "1");
    assert_string_equal(config_text(at(config, "f2")), "-0.5");
    assert_string_equal(config_text(at(config, "f3")), "0.0015");
    assert_string_equal(config_text(at(config, "f4")), "1000");
    assert_int_equal(config_int(at(config, "i3")), 3);
    assert_int_equal(config_int(at(config, "*n-a_m*e")), 1);
    assert_true(config_bool(at(config, "t")));
    assert_false(config_bool(at(config, "u")));
    assert_string_equal(config_string(at(config, "s")), "a\"b\\c\nde");
    assert_int_equal(config_int(at(config, "g2.b.c")), 2);
    assert_int_equal(config_int(at(config, "li.[2].y")), 3);
    assert_int_equal(config_int(at(config, "li.[3].[1]")), 5);
    assert_string_equal(config_path(at(config, "li.[3].[1]")), "li.[3].[1]");
    assert_int_equal(config_count(at(config, "empty")), 0);
    assert_int_equal(config_kind(at(config, "arr")), CONFIG_LIST);
    assert_int_equal(config_kind(at(config, "none")), CONFIG_GROUP);
    assert_null(config_find(config_root(config), "li.[4]"));
    assert_null(config_find(config_root(config), "i.x"));
    config_free(config);
}

static void lines_are_those_of_the_file(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(f, "# 1\n"
                                         "a\n=\n\"x\n y\"\n;\n"  /* a: 2, ends in 6 */
                                         "set = (\n"             /* 7 */
                                         "\"one\"\n,\n\"two\"\n" /* 8, 10 */
                                         "\"and more\"\n);\n"
                                         "/* 13\n 14 */ g = {\n"
                                         "b = 1\nc = 2 };\n" /* 15, 16 */
                                         "l = (\n{ d = 1;\n},\n5\n,\n[ 6,\n7 ] );\n"
                                         "s1 = \"x\"\ns2 = \"y\"\n");
    static const struct {
        const char *path;
        int line;
    } lines[] = {
        { "a", 2 },      { "set", 7 },    { "set.[0]", 8 },    { "set.[1]", 10 }, { "g", 14 },
        { "g.b", 15 },   { "g.c", 16 },   { "l", 17 },         { "l.[0]", 18 },   { "l.[0].d", 18 },
        { "l.[1]", 20 }, { "l.[2]", 22 }, { "l.[2].[1]", 23 }, { "s1", 24 },      { "s2", 25 },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(lines); i++) {
        if (config_line(at(config, lines[i].path)) != lines[i].line)
            fail_msg("%s: line %d", lines[i].path, config_line(at(config, lines[i].path)));
    }
    assert_string_equal(config_string(at(config, "a")), "x\n y");
    assert_string_equal(config_string(at(config, "set.[1]")), "twoand more");
    config_free(config);
}

/* libconfig 1.5 reads the first as 0 and the second as a negative number. */
static void integers_beyond_32_bits_need_a_suffix(void **state)
{
    struct fixture *f = *state;
    struct config *config =
        load(f, "a = 68719476736; # b = 68719476736\n"
                "c = \"68719476736 \\\" 68719476736\" \"68719476736\"; // 68719476736\n"
                "/* 68719476736\n */ d = [ 1, 2147483648 ];\n"
                "e = -2147483648; g = -2147483649; h = 0xFFFFFFFF; i = 0x10000000000L;\n"
                "j = 68719476736.0; k = 3000000000e0; m = 4294967296L;\n");

    assert_non_null(config);
    assert_int_equal(config_int(at(config, "a")), INT64_C(68719476736));
    assert_int_equal(config_int(at(config, "d.[1]")), INT64_C(2147483648));
    assert_int_equal(config_int(at(config, "e")), INT32_MIN);
    assert_int_equal(config_int(at(config, "i")), INT64_C(0x10000000000));
    config_free(config);
    EXPECT(f,
           "x.cfg:1: a: found 68719476736, an integer beyond 32 bits without a suffix: add L "
           "(68719476736L), or write \"64 GiB\" if it is a size",
           "x.cfg:4: d.[1]: found 2147483648, an integer beyond 32 bits without a suffix: add L "
           "(2147483648L), or write \"2 GiB\" if it is a size",
           "x.cfg:5: g: found -2147483649, an integer beyond 32 bits without a suffix: add L "
           "(-2147483649L)",
           "x.cfg:5: h: found 0xFFFFFFFF, an integer beyond 32 bits without a suffix: add L "
           "(0xFFFFFFFFL)");
    config_free(load(f, "a = { b = ( 1, { c = 1; }, { d = ( 2, ( 3, 4294967296 ) ); } ); };"));
    EXPECT(f, "x.cfg:1: a.b.[2].d.[1].[1]: found 4294967296, an integer beyond 32 bits without a "
              "suffix: add L (4294967296L), or write \"4 GiB\" if it is a size");
    refuse(f, "a = 9223372036854775808L;",
           "x.cfg:1: a: found 9223372036854775808L, expected an integer of at most 64 bits");
    refuse(f, "\na = 0x8000000000000000L;",
           "x.cfg:2: a: found 0x8000000000000000L, expected an integer of at most 64 bits");
    refuse(f, "a = 1e999;", "x.cfg:1: a: found 1e999, expected a number that a double holds");
}

static void syntax_errors_name_the_line(void **state)
{
    static const char *const cases[][2] = {
        { "a = 1;\nb 2;", "x.cfg:2: syntax error: found \"2\", expected \"=\" or \":\" after the "
                          "name of a setting" },
        { "a = ;", "x.cfg:1: syntax error: found \";\", expected a value" },
        { "a = 1;\n\nb = ", "x.cfg:3: syntax error: the file ends, expected a value" },
        { "a = {\n b = 1;\n", "x.cfg:1: syntax error: \"{\" without its end" },
        { "a = (1,\n 2];", "x.cfg:2: syntax error: found \"]\", but \"(\" of line 1 is open" },
        { "a = 1; }", "x.cfg:1: syntax error: found \"}\" without \"{\"" },
        { "a = (1,);", "x.cfg:1: syntax error: found \")\", expected a value" },
        { "a = (1 2);",
          "x.cfg:1: syntax error: found \"2\", expected \",\" or the end of the list" },
        { "a = { b = ; };", "x.cfg:1: syntax error: found \";\", expected a value" },
        { "a = 1;; b = 2;", "x.cfg:1: syntax error: found \";\", expected the name of a setting" },
        { ";", "x.cfg:1: syntax error: found \";\", expected the name of a setting" },
        { "a = { ; };", "x.cfg:1: syntax error: found \";\", expected the name of a setting" },
        { "a = read;", "x.cfg:1: syntax error: found read, expected a value; strings stand in "
                       "quotes: \"read\"" },
        { "\na = 64GiB;", "x.cfg:2: a: found 64GiB: a quantity with its unit is a string, "
                          "\"64 GiB\"" },
        { "a = \"x", "x.cfg:1: a string that does not end" },
        { "a = \"x;\nb = \"y\";\n",
          "x.cfg:2: a string that does not end; a string that ends in this line began in line 1, "
          "where its \" may be missing" },
        { "a = \"x\ny\";\nb = ;", "x.cfg:3: syntax error: found \";\", expected a value" },
        { "a = 1; /* x", "x.cfg:1: a comment that does not end" },
        { "a = !;", "x.cfg:1: syntax error: found \"!\", expected a value" },
        { "a = \x01;", "x.cfg:1: syntax error: found a character 0x01 outside of a string" },
        { "a = @include",
          "x.cfg:1: syntax error: expected @include \"file\" or @repeat i = FIRST to LAST { ... }" },
        { "a = 1;\nb = { a = ( { c = 1; }, { c = 2; \nd = 3; d = 4; } ); };",
          "x.cfg:3: b.a.[1].d: is set already at x.cfg:3; what an included file sets may "
          "be set again below the @include, in the file that includes it, or by set = ( "
          "\"path=value\" ); within @repeat, names need its index" },
        { "w = {\n m = 1;\nm = 2;",
          "x.cfg:3: w.m: is set already at x.cfg:2, in a group that may lack its end, begun at "
          "x.cfg:1; what an included file sets may be set again below the @include, in the file "
          "that includes it, or by set = ( \"path=value\" ); within @repeat, names need its index" },
        { "a = 1;\nb = -0100;",
          "x.cfg:2: b: found -0100, expected an integer without a zero before it" },
        { "# M\xc3\xbcller\n a\xc3\xa9 = \"\xe9\";",
          "x.cfg:2: column 8: found the byte 0xe9, expected text in UTF-8 (iconv converts it)" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++)
        refuse(*state, cases[i][0], cases[i][1]);
}

/* Names may begin with a star, also as the reader's own mark does. */
static void a_name_like_the_mark_of_one_that_is_set_again(void **state)
{
    struct fixture *f = *state;
    struct config *config = load(f, "*again-o = 1;\n*again-7*b = { *again- = 2; };");
    struct config_node *root = config_root(config);

    assert_int_equal(config_int(config_find(root, "*again-o")), 1);
    assert_non_null(config_find(root, "*again-7*b"));
    assert_int_equal(config_int(config_find(config_find(root, "*again-7*b"), "*again-")), 2);
    config_free(config);
}

static void a_file_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;

    assert_null(config_load("none.cfg", ".", &f->errors));
    EXPECT(f, "none.cfg: cannot be read: No such file or directory");
    assert_null(config_load(".", ".", &f->errors));
    EXPECT(f, ".: cannot be read: Is a directory");
    assert_true(g_file_set_contents("x.cfg", "a = 1;\0b = 2;", 13, NULL));
    assert_null(config_load("x.cfg", ".", &f->errors));
    EXPECT(f, "x.cfg: cannot be read: it is not a text file");
    assert_int_equal(mkfifo("fifo.cfg", 0600), 0);
    assert_null(config_load("fifo.cfg", ".", &f->errors));
    EXPECT(f, "fifo.cfg: cannot be read: it is no regular file");
    refuse(f, "@include \"fifo.cfg\"",
           "x.cfg:1: cannot include \"fifo.cfg\": ./fifo.cfg: it is no regular file");
}

static void a_byte_order_mark_is_no_text(void **state)
{
    struct fixture *f = *state;

    assert_true(g_file_set_contents("part.cfg",
                                    "\xef\xbb\xbf"
                                    "b = 2;",
                                    -1, NULL));
    struct config *config = load(f, "\xef\xbb\xbf"
                                    "a = 1;\n@include \"part.cfg\"");
    assert_int_equal(config_int(config_find(config_root(config), "a")), 1);
    assert_int_equal(config_int(config_find(config_root(config), "b")), 2);
    config_free(config);
    refuse(f,
           "\xef\xbb\xbf"
           "a = ;",
           "x.cfg:1: syntax error: found \";\", expected a value");
}

static void strings_that_cannot_be_shown(void **state)
{
    struct fixture *f = *state;

    config_free(load(
        f,
        "a = \"\\xe9\";\nb = ( \"b\", \"a\\x1b[31m\" );\nc = \"\x07\"; d = \"\\n\\t\xc3\xa9\";"));
    EXPECT(f, "x.cfg:1: a: found the byte 0xe9, which is no UTF-8, expected text that can be shown",
           "x.cfg:2: b.[1]: found the control character U+001B, expected text that can be shown",
           "x.cfg:3: c: found the control character U+0007, expected text that can be shown");
    struct config *config = load(f, "a = 1;");
    config_set(config, "a", "\x1b", "--set", &f->errors);
    EXPECT(f, "--set: a: found the control character U+001B, expected text that can be shown");
    config_free(config);
}

/* Eight includes of files with eight includes: 8^8 files. */
static void includes_without_end(void **state)
{
    struct fixture *f = *state;

    for (char level = '0'; level < '8'; level++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *name = g_strdup_printf("i%c.cfg", level);

        for (int i = 0; i < 8; i++)
            g_string_append_printf(text, "a%d = { @include \"i%c.cfg\"\n };\n", i, level + 1);
        write_file(name, text->str);
    }
    write_file("i8.cfg", "x = 1;\n");
    assert_null(load(f, "@include \"i0.cfg\"\n"));
    assert_int_equal(f->errors.n_messages, 1);
    assert_non_null(strstr(f->errors.message[0], ": more than 20000 files are included"));
    sim_error_release(&f->errors);
    g_autoptr(GString) long_text = g_string_new("s = \"");
    for (int i = 0; i < 1 << 20; i++)
        g_string_append_c(long_text, 'x');
    g_string_append(long_text, "\";\n");
    write_file("long.cfg", long_text->str);
    assert_null(load(f, "@repeat k = 1 to 64 { a{k} = { @include \"long.cfg\"\n }; }"));
    EXPECT(f, "./long.cfg:1: with what it includes and repeats the file is larger than 16 MiB");
    g_string_truncate(long_text, 0);
    for (int i = 0; i < 20001; i++)
        g_string_append_printf(long_text, "a%d = 1;\n", i);
    refuse(f, long_text->str, "x.cfg:20001: a20000: more than 20000 settings in one group");
}

static void includes_keep_file_and_line(void **state)
{
    struct fixture *f = *state;
    struct config *config;

    write_file("inc/platforms/a.cfg",
               "# a\nchannels = 2;\n@include \"platforms/b.cfg\"\nlast = 1;");
    write_file("inc/platforms/b.cfg", "latency_ns\n = 35;");
    write_file("x.cfg", "dram = { @include \"platforms/a.cfg\" };\n# @include \"none\"\n"
                        "after = \"@include \\\"none\\\"\";\n");
    config = config_load("x.cfg", "inc", &f->errors);
    assert_non_null(config);
    assert_int_equal(f->errors.n_messages, 0);
    assert_string_equal(config_file(at(config, "dram.channels")), "inc/platforms/a.cfg");
    assert_int_equal(config_line(at(config, "dram.channels")), 2);
    assert_string_equal(config_origin(at(config, "dram.latency_ns")), "inc/platforms/b.cfg:1");
    assert_string_equal(config_origin(at(config, "dram.last")), "inc/platforms/a.cfg:4");
    assert_string_equal(config_origin(at(config, "after")), "x.cfg:3");
    config_free(config);
}

/* What a file leaves open is its own mistake: not that of the file which includes it, nor of the
 * next one that is included there. */
static void an_included_file_is_whole(void **state)
{
    struct fixture *f = *state;
    static const char *const cases[][2] = {
        { "b = 1;\n\nc = {\n d = 2;\n",
          "inc/a.cfg:3: syntax error: \"{\" without its end in this file" },
        { "b = ( 1, {\n", "inc/a.cfg:1: syntax error: \"{\" without its end in this file" },
        { "b = 1;\nc =\n\n\n", "inc/a.cfg:2: syntax error: the file ends, expected a value" },
        { "b = 1;\nc\n",
          "inc/a.cfg:2: syntax error: the file ends, expected \"=\" or \":\" after the "
          "name of a setting" },
        { "b = 1;\n};\nc = { d = 1;", "inc/a.cfg:2: syntax error: found \"}\" without \"{\"" },
    };

    write_file("inc/empty.cfg", "# nothing\n");
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        write_file("inc/a.cfg", cases[i][0]);
        write_file("x.cfg", "@include \"empty.cfg\"\na = {\n@include \"a.cfg\"\n@include "
                            "\"empty.cfg\"\n};\nb = 1;\n");
        assert_null(config_load("x.cfg", "inc", &f->errors));
        EXPECT(f, cases[i][1]);
    }
}

/* A platform on a family: what the nearer file sets below the @include counts. */
static void what_is_included_may_be_set_again(void **state)
{
    struct fixture *f = *state;
    struct config *config;

    write_file(
        "inc/family.cfg",
        "dram = { channels = { value = 2; provenance = \"calibrated\"; fitted_to = \"a.b\"; };\n"
        " latency_ns = 35; ports = ( { a = 1; }, { a = 2; } ); };\ncpu = { cores = 4; };");
    write_file("inc/machine.cfg",
               "@include \"family.cfg\"\ndram = { channels = 8;\n ports = ( { a = 3; } ); "
               "};\ncpu = { sockets = 2; };");
    write_file("x.cfg", "@include \"machine.cfg\"\ncpu = { cores = 6; };\n");
    config = config_load("x.cfg", "inc", &f->errors);
    assert_non_null(config);
    assert_int_equal(f->errors.n_messages, 0);
    assert_true(config_number(at(config, "dram.channels")) == 8.0);
    assert_string_equal(config_origin(at(config, "dram.channels")), "inc/machine.cfg:2");
    assert_string_equal(config_origin(at(config, "dram.latency_ns")), "inc/family.cfg:2");
    assert_int_equal(config_count(at(config, "dram.ports")), 1);
    assert_true(config_number(at(config, "dram.ports.[0].a")) == 3.0);
    assert_true(config_number(at(config, "cpu.cores")) == 6.0);
    assert_true(config_number(at(config, "cpu.sockets")) == 2.0);
    assert_int_equal(config_count(at(config, "cpu")), 2);
    config_free(config);
    write_file("x.cfg", "cpu = { cores = 6; };\n@include \"machine.cfg\"\n"); /* above it, not */
    assert_null(config_load("x.cfg", "inc", &f->errors));
    EXPECT(
        f,
        "inc/family.cfg:3: cpu: is set already at x.cfg:1; this file is included at "
        "inc/machine.cfg:1; what an included file sets may be set again below the @include, in the file that includes it, or by set = ( "
        "\"path=value\" ); within @repeat, names need its index");
    refuse(f, "@include \"inc/family.cfg\"\ncpu = { cores = 6; };\ncpu = { cores = 7; };\n",
           "x.cfg:3: cpu: is set already at x.cfg:2; what an included file sets may be set again "
           "below the @include, in the file that includes it, or by set = ( \"path=value\" ); "
           "within @repeat, names need its index");
    /* One file twice: its own line would be named twice, and neither place where it is included. */
    refuse(f, "@include \"inc/family.cfg\"\ndram = { };\n@include \"inc/family.cfg\"\n",
           "./inc/family.cfg:1: dram: is set already at x.cfg:2; this file is included at x.cfg:3; "
           "what an included file sets may be set again below the @include, in the file that "
           "includes it, or by set = ( \"path=value\" ); within @repeat, names need its index");
    refuse(
        f,
        "a = { @include \"inc/family.cfg\"\n };\nb = { @include \"inc/family.cfg\"\n@include \"inc/family.cfg\" };\n",
        "./inc/family.cfg:1: b.dram: is set already at ./inc/family.cfg:1, included at x.cfg:3; this "
        "file is included at x.cfg:4; what an included file sets may be set again below the "
        "@include, in the file that includes it, or by set = ( \"path=value\" ); within @repeat, "
        "names need its index");
}

/* As `type` beside the @include of a device's file that has it, too. */
static void what_includes_may_say_the_same_before(void **state)
{
    struct fixture *f = *state;
    struct config *config;

    write_file("inc/device.cfg", "type = \"a.b\";\nlanes = 8;\nlist = ( 1 );\n");
    write_file("x.cfg", "d = { type = \"a.b\"; lanes = 8;\n@include \"device.cfg\"\n};\n");
    config = config_load("x.cfg", "inc", &f->errors);
    assert_non_null(config);
    assert_int_equal(f->errors.n_messages, 0);
    assert_string_equal(config_string(at(config, "d.type")), "a.b");
    assert_int_equal(config_count(at(config, "d")), 3);
    config_free(config);
    /* what comes next in a list is no value of the setting that was named last */
    write_file("inc/last.cfg", "type = \"a.b\";\n");
    config = load_good(
        f, "l = ( { type = \"a.b\"; @include \"inc/last.cfg\"\n }, { type = \"c\"; }, 5 );\n");
    assert_string_equal(config_string(at(config, "l.[1].type")), "c");
    config_free(config);
    write_file("x.cfg", "type = \"a.c\";\n@include \"device.cfg\"\n");
    assert_null(config_load("x.cfg", "inc", &f->errors));
    EXPECT(
        f,
        "inc/device.cfg:1: type: is set already at x.cfg:1; this file is included at x.cfg:2; what an "
        "included file sets may be set again below the @include, in the file that includes it, or by "
        "set = ( \"path=value\" ); within @repeat, names need its index");
    write_file("x.cfg", "list = ( 1 );\n@include \"device.cfg\"\n");
    assert_null(config_load("x.cfg", "inc", &f->errors));
    EXPECT(
        f,
        "inc/device.cfg:3: list: is set already at x.cfg:1; this file is included at x.cfg:2; what an "
        "included file sets may be set again below the @include, in the file that includes it, or by "
        "set = ( \"path=value\" ); within @repeat, names need its index");
}

static void values_of_another_machine_are_borrowed(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(
        f, "hosts = { a = { machine = \"one\"; dram = {\n"
           "  latency_ns = { value = 35; provenance = \"calibrated\"; machine = \"one\"; };\n"
           "  channels = { value = 4; provenance = \"published\"; machine = \"two\"; }; }; };\n"
           "          b = { dram = { latency_ns = { value = 36; machine = \"one\"; };\n"
           "                         channels = 2; }; }; };\n");
    struct dram dram;
    char *text;
    char before[65], after[65];

    for (unsigned i = 0; i < 2; i++) {
        struct config_node *host = at(config, i == 0 ? "hosts.a" : "hosts.b");

        config_sha256(config, before);
        assert_true(config_read_machine(host, &f->errors));
        config_sha256(config, after); /* which machine it is changes nothing */
        assert_string_equal(before, after);
        assert_true(config_read_params(config, config_get(host, "dram"), "dram", dram_table, &dram,
                                       &f->errors));
    }
    text = config_borrowed_text(config);
    assert_string_equal(text, "one: dram.latency_ns; two: dram.channels");
    g_free(text);
    assert_true(config_set(config, "hosts.b.machine", "one", "--set", &f->errors));
    text = config_borrowed_text(config);
    assert_string_equal(text, "two: dram.channels");
    g_free(text);
    config_free(config);
}

static void repeats_settings_and_elements(void **state)
{
    struct fixture *f = *state;
    struct config *config =
        load_good(f, "hosts = {\n"
                     "    @repeat s = 1 to 2 {\n"
                     "        @repeat k = 8 to 9 { n{s}{k} = { up = \"n{s-1}{k+1}\"; };\n"
                     "        }\n"
                     "    } # comment }\n"
                     "    last = 1;\n"
                     "};\n"
                     "list = ( @repeat w = x, yz /* 2 */ {\n"
                     "    { name = \"{w}\"; } }, @repeat i = 3 to 3 { \"a}{i}\" }, 7 );\n");

    assert_int_equal(config_count(at(config, "hosts")), 5);
    assert_string_equal(config_name(config_child(at(config, "hosts"), 0)), "n18");
    assert_string_equal(config_string(at(config, "hosts.n18.up")), "n09");
    assert_string_equal(config_string(at(config, "hosts.n29.up")), "n110");
    assert_string_equal(config_origin(at(config, "hosts.n29.up")), "x.cfg:3");
    assert_string_equal(config_origin(at(config, "hosts.last")), "x.cfg:6");
    assert_int_equal(config_count(at(config, "list")), 4);
    assert_string_equal(config_string(at(config, "list.[1].name")), "yz");
    assert_string_equal(config_origin(at(config, "list.[1].name")), "x.cfg:9");
    assert_string_equal(config_string(at(config, "list.[2]")), "a}3");
    assert_true(config_number(at(config, "list.[3]")) == 7.0);
    config_free(config);
}

static void an_index_ends_with_its_file(void **state)
{
    struct fixture *f = *state;
    struct config *config;

    write_file("inc.cfg", "text = \"{i}\";");
    config = load_good(f, "@repeat i = 1 to 1 { a{i} = { @include \"inc.cfg\"\n }; } b = \"{i}\";");
    assert_string_equal(config_string(at(config, "a1.text")), "{i}");
    assert_string_equal(config_string(at(config, "b")), "{i}");
    config_free(config);
}

static void mistakes_in_repetitions(void **state)
{
    static const char form[] =
        "x.cfg:2: syntax error: expected @repeat INDEX = FROM to TO { ... } or "
        "@repeat INDEX = WORD, WORD { ... }";
    struct fixture *f = *state;

    refuse(f, "\n@repeat { a = 1; }", form);
    refuse(f, "\n@repeat i = 1 { a = 1; }", form);
    refuse(f, "\n@repeat i = -1 to 1 { a = 1; }", form);
    refuse(f, "\n@repeat i = a, { a = 1; }", form);
    refuse(f, "\n@repeat i = 1 to 2 [ ]", form);
    refuse(f, "\n@repeat i = 1 to 2 { a = \"}\";",
           "x.cfg:2: syntax error: the \"{\" of @repeat has no end");
    refuse(f, "@repeat i = 2 to 1 { }",
           "x.cfg:1: @repeat i: from 2 to 1, expected the smaller number first");
    refuse(f, "@repeat i = 1 to 1001 { }", "x.cfg:1: @repeat i: 1001 times, expected at most 1000");
    refuse(f, "@repeat i = 1 to 51 {\n @repeat k = 1 to 1000 { } }",
           "x.cfg:2: more than 50000 repetitions");
    refuse(f, "@repeat i = 1 to 2 {\n@repeat k = 1 to 2 {\n a{i}{j} = 1; } }",
           "x.cfg:3: {j}: no index of @repeat has this name; expected {k}, {i}");
    refuse(f, "@repeat i = 1 to 2 {\n a = \"{j}\"; }",
           "x.cfg:2: {j}: no index of @repeat has this name; expected {i}");
    refuse(f, "a = \"x\" @repeat i = 1 to 1 { \"y\" };",
           "x.cfg:1: syntax error: found \"y\", expected the name of a setting");
    GString *deep = g_string_new(NULL);
    for (unsigned i = 0; i < 17; i++)
        g_string_append(deep, "@repeat i = 1 to 1 { ");
    for (unsigned i = 0; i < 17; i++)
        g_string_append(deep, "} ");
    refuse(f, deep->str, "x.cfg:1: repetitions nested deeper than 16");
    g_string_free(deep, TRUE);
    refuse(f, "@repeati = 1 to 2 { a{i} = 1; }",
           "x.cfg:1: syntax error: expected @repeat INDEX = FROM to TO { ... } or @repeat INDEX = "
           "WORD, WORD { ... }");
    refuse(f, "@repeat i = 1 to2 { a{i} = 1; }",
           "x.cfg:1: syntax error: expected @repeat INDEX = FROM to TO { ... } or @repeat INDEX = "
           "WORD, WORD { ... }");
    refuse(f, "@repeat i = 1 to 2 { a{i*2} = 1; }",
           "x.cfg:1: {i*2}: expected {i}, and of numbers {i+N} or {i-N}");
    refuse(f, "@repeat i = x, y { a{i+1} = 1; }",
           "x.cfg:1: {i+1}: expected {i}, and of numbers {i+N} or {i-N}");
    refuse(f, "@repeat i = 1 to 2 { a = \"{i-2}\"; }",
           "x.cfg:1: {i-2}: -1 for i = 1, expected no negative number");
    refuse(f, "@repeat i = 1 to 2 {\n {i} = 1; }",
           "x.cfg:2: syntax error: found \"1\", expected the name of a setting");
    refuse(
        f, "@repeat i = 1 to 2 { a = 1; }",
        "x.cfg:1: a: is set already at x.cfg:1; what an included file sets may be set again below the "
        "@include, in the file that includes it, or by set = ( \"path=value\" ); within @repeat, names need its index");
    refuse(f, "@repeat i = 1 to 2 { a{i*2} = { b = \"c\"; }; }",
           "x.cfg:1: {i*2}: expected {i}, and of numbers {i+N} or {i-N}");
    refuse(f, "@repeat i = 1 to 2 {\n a{i} = ( 1; }",
           "x.cfg:2: syntax error: found \";\", expected \",\" or the end of the list");
    refuse(f, "@repeat i = 1 to 2 {\n a{i} = ( 1 }",
           "x.cfg:2: syntax error: \"(\" without its end in @repeat");
    refuse(f, "l = ( @repeat i = 1 to 2 { 1 ) } );",
           "x.cfg:1: syntax error: found \")\" without \"(\"");
    refuse(
        f, "@repeat i = 1 to 2 {\n a{i} }",
        "x.cfg:2: syntax error: the body of @repeat ends, expected \"=\" or \":\" after the name "
        "of a setting");
    refuse(f, "l = ( @repeat i = 1 to 2 { 1, } );",
           "x.cfg:1: syntax error: the body of @repeat ends, expected a value");
    refuse(f, "a = @repeat i = 1 to 2 { 1 };",
           "x.cfg:1: syntax error: found \"@repeat\", expected a value");
}

static void mistakes_in_included_files(void **state)
{
    struct fixture *f = *state;

    write_file("loop.cfg", "\n@include \"loop.cfg\"\n");
    write_file("big.cfg", "a = 1;\nbig = 68719476736;\n@include \"bad.cfg\"\n");
    write_file("bad.cfg", "b = 68719476736;\nc = = 1;\n");
    refuse(f, "a = 1;\n @include \"none.cfg\"\n",
           "x.cfg:2: cannot include \"none.cfg\": no such file in .");
    refuse(f, "a = 1;\n @include \"looop.cfg\"\n",
           "x.cfg:2: cannot include \"looop.cfg\": no such file in .; did you mean \"loop.cfg\"?");
    refuse(f, "@include \"./biig.cfg\"\n",
           "x.cfg:1: cannot include \"./biig.cfg\": no such file in .; did you mean \"big.cfg\"?");
    assert_int_equal(g_mkdir("folder.cfg", 0755), 0);
    refuse(f, "@include \"folder.cfg\"",
           "x.cfg:1: cannot include \"folder.cfg\": ./folder.cfg: Is a directory");
    refuse(f, "@include \"loop.cfg\"\n", "./loop.cfg:2: ./loop.cfg includes itself");
    assert_null(load(f, "@include \"big.cfg\"\n"));
    EXPECT(f,
           "./big.cfg:2: big: found 68719476736, an integer beyond 32 bits without a suffix: add L "
           "(68719476736L), or write \"64 GiB\" if it is a size",
           "./bad.cfg:1: b: found 68719476736, an integer beyond 32 bits without a suffix: add L "
           "(68719476736L), or write \"64 GiB\" if it is a size",
           "./bad.cfg:2: syntax error: found \"=\", expected a value");
}

static void many_folders_are_searched_in_order(void **state)
{
    struct fixture *f = *state;
    const char *const dirs[] = { "one", "two", NULL };
    struct config *config;

    write_file("one/a.cfg", "a = 1;");
    write_file("two/a.cfg", "a = 2;");
    write_file("two/b.cfg", "b = 3;");
    write_file("x.cfg", "@include \"a.cfg\"\n@include \"b.cfg\"\n");
    config = config_load_searching("x.cfg", dirs, &f->errors);
    assert_int_equal(config_int(at(config, "a")), 1);
    assert_int_equal(config_int(at(config, "b")), 3);
    config_free(config);
    write_file("x.cfg", "@include \"c.cfg\"\n");
    assert_null(config_load_searching("x.cfg", dirs, &f->errors));
    EXPECT(f,
           "x.cfg:1: cannot include \"c.cfg\": no such file in one, two; did you mean \"a.cfg\"?");
}

/* ---- Reading parameters ---------------------------------------------------------------------- */

static void quantities_with_and_without_unit(void **state)
{
    struct dram dram = understood(*state, "channels = 2; capacity_bytes = \"64 GiB\";\n"
                                          "latency_ns = \"0.0875 us\"; rate_gt_s = \"9600 MT/s\";\n"
                                          "share = 1; ecc = true; policy = \"closed\";\n"
                                          "vendor = \"x\";");
    const double rate = 9.6;

    assert_int_equal(dram.channels, 2);
    assert_int_equal(dram.capacity_bytes, UINT64_C(68719476736));
    assert_int_equal(dram.latency_ps, 87500);
    assert_memory_equal(&dram.rate_gt_s, &rate, sizeof(rate));
    assert_true(dram.share > 0.999 && dram.ecc);
    assert_int_equal(dram.policy, 0);

    dram = understood(*state, "latency_ns = 35;");
    assert_int_equal(dram.latency_ps, 35000);
    assert_int_equal(dram.channels, 4);
    assert_null(dram.vendor);
    dram = understood(*state, "latency_ns = 87.3; capacity_bytes = \"1.5 KiB\";");
    assert_int_equal(dram.latency_ps, 87300);
    assert_int_equal(dram.capacity_bytes, 1536);
}

static void wrong_types(void **state)
{
    struct fixture *f = *state;

    mistaken(f, "channels = \"four\";",
             "x.cfg:2: dram.channels: found \"four\" (a string), expected an integer 1..16");
    mistaken(f, "channels = 2.5;",
             "x.cfg:2: dram.channels: found 2.5 (a number), expected an integer 1..16");
    mistaken(f, "channels = 4.0;",
             "x.cfg:2: dram.channels: found 4.0 (a number), expected an integer 1..16");
    mistaken(f, "channels = true;",
             "x.cfg:2: dram.channels: found true (a boolean), expected an integer 1..16");
    mistaken(f, "channels = ( 4 );",
             "x.cfg:2: dram.channels: found a list, expected an integer 1..16");
    mistaken(f, "channels = {};",
             "x.cfg:2: dram.channels: found a group, expected an integer 1..16");
    mistaken(f, "ecc = 1;", "x.cfg:2: dram.ecc: found 1 (an integer), expected true or false");
    mistaken(f, "share = \"half\";",
             "x.cfg:2: dram.share: found \"half\" (a string), expected a number 0..1");
    mistaken(f, "vendor = 5;", "x.cfg:2: dram.vendor: found 5 (an integer), expected a string");
    mistaken(f, "policy = \"opne\";",
             "x.cfg:2: dram.policy: found \"opne\" (a string), expected one of \"closed\", "
             "\"open\"; did you mean \"open\"?");
    mistaken(f, "policy = 1;",
             "x.cfg:2: dram.policy: found 1 (an integer), expected one of "
             "\"closed\", \"open\"");
}

static void values_out_of_range(void **state)
{
    struct fixture *f = *state;

    mistaken(f, "channels = 17;",
             "x.cfg:2: dram.channels: found 17 (an integer), expected an integer 1..16");
    mistaken(f, "channels = 4294967297L;",
             "x.cfg:2: dram.channels: found 4294967297 (an integer), expected an integer 1..16");
    mistaken(f, "channels = -1;",
             "x.cfg:2: dram.channels: found -1 (an integer), expected an integer 1..16");
    mistaken(f, "share = 1.5;",
             "x.cfg:2: dram.share: found 1.5 (a number), expected a number 0..1");
    mistaken(f, "latency_ns = \"2 us\";",
             "x.cfg:2: dram.latency_ns: found \"2 us\" = 2000 ns, expected 0..1000 ns");
    mistaken(f, "capacity_bytes = \"64 TiB\";",
             "x.cfg:2: dram.capacity_bytes: found \"64 TiB\" = 70368744177664 bytes, expected "
             "0..35184372088832 bytes");
    mistaken(f, "rate_gt_s = \"50 MT/s\";",
             "x.cfg:2: dram.rate_gt_s: found \"50 MT/s\" = 0.05 GT/s, expected 0.1..10 GT/s");
}

static void wrong_units(void **state)
{
    static const char time[] =
        ", expected a time in ns 0..1000, or a string with its unit (ps, ns, "
        "us, ms, s)";
    static const char *const cases[][2] = {
        { "latency_ns = \"64 GB\";", "found \"64 GB\" (a size)" },
        { "latency_ns = \"8\";", "found \"8\" (a string without a unit)" },
        { "latency_ns = \"8 nanoseconds\";", "found \"8 nanoseconds\" (no unit known here)" },
        { "latency_ns = \"0.5 ps\";", "found \"0.5 ps\" (not a whole number of picoseconds)" },
        { "latency_ns = 0.0005;", "found 0.0005 (not a whole number of picoseconds)" },
        { "latency_ns = \"-8 ns\";", "found \"-8 ns\" (negative)" },
        { "latency_ns = \"1e30 s\";", "found \"1e30 s\" (too large)" },
        { "latency_ns = \"soon\";", "found \"soon\" (a string)" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        char *message = g_strdup_printf("x.cfg:2: dram.latency_ns: %s%s", cases[i][1], time);

        mistaken(*state, cases[i][0], message);
        g_free(message);
    }
    mistaken(*state, "capacity_bytes = \"0.3 KiB\";",
             "x.cfg:2: dram.capacity_bytes: found \"0.3 KiB\" (not a whole number of bytes), "
             "expected a size in bytes 0..35184372088832, or a string with its unit (B, kB, MB, "
             "GB, TB, KiB, MiB, GiB, TiB)");
    mistaken(*state, "capacity_bytes = \"64 KB\";",
             "x.cfg:2: dram.capacity_bytes: found \"64 KB\" (no unit known here; did you mean "
             "\"kB\" or \"KiB\"?), expected a size in bytes 0..35184372088832, or a string with "
             "its unit (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)");
    mistaken(*state, "rate_gt_s = \"2 gt/s\";",
             "x.cfg:2: dram.rate_gt_s: found \"2 gt/s\" (no unit known here; did you mean "
             "\"GT/s\"?), expected a transfer rate in GT/s 0.1..10, or a string with its unit "
             "(MT/s, GT/s)");
    mistaken(*state, "rate_gt_s = \"2 GHz\";",
             "x.cfg:2: dram.rate_gt_s: found \"2 GHz\" (a frequency), expected a transfer rate in "
             "GT/s 0.1..10, or a string with its unit (MT/s, GT/s)");
}

static void unknown_settings(void **state)
{
    struct fixture *f = *state;
    struct config *config;
    struct dram dram;

    mistaken(f, "\nchanels = 4;",
             "x.cfg:3: dram.chanels: unknown setting; did you mean \"channels\"?");
    mistaken(f, "q = { a = 1; };",
             "x.cfg:2: dram.q: unknown setting; expected one of \"channels\", \"capacity_bytes\", "
             "\"latency_ns\", \"rate_gt_s\", \"share\", \"ecc\", \"policy\", \"vendor\"");

    config = load_good(f, "dram = { channels = 4; };\ndrma = 5;\n");
    assert_false(read_dram(f, config, &dram));
    EXPECT(f, "x.cfg:2: drma: unknown setting; did you mean \"dram\"?");
    config_free(config);
}

static void groups_in_lists_are_checked_too(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = { "from", "to", NULL };
    struct config *config = load_good(
        f, "cables = ( { from = \"a\"; to = \"b\"; },\n { from = \"a\"; too = \"b\"; } );\n"
           "free = { any = ( { thing = 1; } ); };\n");
    struct config_node *cables = config_get(config_root(config), "cables");

    for (unsigned i = 0; i < config_count(cables); i++)
        config_allow(config_child(cables, i), names);
    config_mark_read(at(config, "free"));
    assert_false(config_check_unknown(config, &f->errors));
    EXPECT(f, "x.cfg:2: cables.[1].too: unknown setting; did you mean \"to\"?");
    config_mistake(at(config, "cables.[0].from"), &f->errors, "a port", names);
    EXPECT(f, "x.cfg:1: cables.[0].from: found \"a\" (a string), expected a port; expected one of "
              "\"from\", \"to\"");
    config_free(config);
}

static void all_mistakes_of_a_file_are_reported(void **state)
{
    struct fixture *f = *state;
    struct config *config = load(f, "dram = {\n"
                                    "  channels = \"four\";\n"
                                    "  capacity_bytes = 68719476736;\n"
                                    "  latency_ns = \"64 GB\";\n"
                                    "  latncy_ns = 5;\n"
                                    "  share = 2;\n"
                                    "};\n");
    struct dram dram;

    assert_non_null(config);
    assert_false(read_dram(f, config, &dram));
    EXPECT(
        f,
        "x.cfg:3: dram.capacity_bytes: found 68719476736, an integer beyond 32 bits without a suffix: add L "
        "(68719476736L), or write \"64 GiB\" if it is a size",
        "x.cfg:2: dram.channels: found \"four\" (a string), expected an integer 1..16",
        "x.cfg:4: dram.latency_ns: found \"64 GB\" (a size), expected a time in ns 0..1000, or a "
        "string with its unit (ps, ns, us, ms, s)",
        "x.cfg:6: dram.share: found 2 (an integer), expected a number 0..1",
        "x.cfg:5: dram.latncy_ns: unknown setting; did you mean \"latency_ns\"?");
    /* what was wrong has its default, the rest is read */
    assert_int_equal(dram.channels, 4);
    assert_int_equal(dram.capacity_bytes, UINT64_C(68719476736));
    assert_int_equal(dram.latency_ps, 60000);
    config_free(config);
}

static void required_settings(void **state)
{
    static const struct param_desc table[] = {
        PARAM("channels", PARAM_U32, struct dram, channels, NAN, 1, 16, PROV_NONE, NULL, "needed"),
        { .type = PARAM_END },
    };
    struct fixture *f = *state;
    struct config *config = load_good(f, "\ndram = {};\nscalar = 5;\n");
    struct config_node *root = config_root(config);
    struct dram dram = { 0 };

    assert_false(
        config_read_params(config, config_get(root, "dram"), "x", table, &dram, &f->errors));
    EXPECT(f, "x.cfg:2: dram.channels: missing, expected an integer 1..16");
    assert_false(config_read_params(config, NULL, "hosts.a.dram", table, &dram, &f->errors));
    EXPECT(f, "hosts.a.dram.channels: missing, expected an integer 1..16");
    assert_false(config_read_params(config, config_get(root, "scalar"), NULL, dram_table, &dram,
                                    &f->errors));
    EXPECT(f, "x.cfg:3: scalar: found 5 (an integer), expected a group");
    config_free(config);
}

/* ---- Provenance, origins, printing ----------------------------------------------------------- */

struct seen {
    GString *text;
};

static void note_param(void *context, const char *path, const char *value, const char *unit,
                       enum param_provenance provenance, const char *origin)
{
    g_string_append_printf(context, "%s|%s|%s|%s|%s\n", path, value, unit,
                           param_provenance_name(provenance), origin);
}

static void values_carry_provenance_and_source(void **state)
{
    struct fixture *f = *state;
    GString *seen = g_string_new(NULL);
    struct config *config =
        load_good(f, "dram = {\n"
                     "  latency_ns = { value = \"0.035 us\"; provenance = \"published\";\n"
                     "                 source = \"PARAMETERS A2\"; };\n"
                     "  channels = { value = 2; provenance = \"calibrated\"; };\n"
                     "  capacity_bytes = 8192; share = 0.25;\n"
                     "};\n");
    struct dram dram;

    assert_true(config_set(config, "dram.rate_gt_s", "3 GT/s", "--set", &f->errors));
    assert_true(read_dram(f, config, &dram));
    assert_int_equal(dram.latency_ps, 35000);
    assert_int_equal(dram.channels, 2);
    config_each_param(config, note_param, seen);
    assert_string_equal(seen->str, "dram.capacity_bytes|8192|bytes|estimate|x.cfg:5\n"
                                   "dram.channels|2||calibrated|x.cfg:4\n"
                                   "dram.ecc|false|||default\n"
                                   "dram.latency_ns|35|ns|published|x.cfg:2, PARAMETERS A2\n"
                                   "dram.policy|open|||default\n"
                                   "dram.rate_gt_s|3|GT/s|estimate|--set\n"
                                   "dram.share|0.25|||x.cfg:5\n");
    g_string_free(seen, TRUE);
    config_free(config);
}

static void mistakes_in_provenance(void **state)
{
    struct fixture *f = *state;

    mistaken(f, "channels = { value = 2; provenance = \"datashet\"; };",
             "x.cfg:2: dram.channels.provenance: found \"datashet\" (a string), expected "
             "\"datasheet\", \"published\", \"calibrated\" or \"estimate\"; did you mean "
             "\"datasheet\"?");
    mistaken(f, "channels = { value = 2; source = 5; };",
             "x.cfg:2: dram.channels.source: found 5 (an integer), expected a string");
    mistaken(f, "channels = { value = 2; sorce = \"x\"; };",
             "x.cfg:2: dram.channels.sorce: unknown setting; did you mean \"source\"?");
    mistaken(f, "channels = { value = 20; };",
             "x.cfg:2: dram.channels.value: found 20 (an integer), expected an integer 1..16");
}

static void a_calibrated_value_is_off_its_bounds(void **state)
{
    struct fixture *f = *state;
    struct dram dram;
    struct config *config = load_good(
        f, "dram = { channels = { value = 3; provenance = \"calibrated\"; range = [2, 4];\n"
           "                      fitted_to = \"numa.x\"; };\n"
           "         latency_ns = { value = 35; range = [35, \"0.1 us\"]; }; };\n");

    assert_true(read_dram(f, config, &dram)); /* estimates may lie on a bound */
    assert_int_equal(dram.channels, 3);
    assert_int_equal(dram.latency_ps, 35000);
    config_free(config);
    mistaken(f, "channels = { value = 2; provenance = \"calibrated\"; range = [2, 4]; };",
             "x.cfg:2: dram.channels.value: found 2 (an integer), expected a calibrated value off "
             "the bounds of its range (or on_bound = \"the reason\")");
    mistaken(f, "channels = { value = 16; provenance = \"calibrated\"; };", /* the table's */
             "x.cfg:2: dram.channels.value: found 16 (an integer), expected a calibrated value off "
             "the bounds of its range (or on_bound = \"the reason\")");
    mistaken(f, "channels = { value = 3; provenance = \"calibrated\"; on_bound = \"x\"; };",
             "x.cfg:2: dram.channels.value: found 3 (an integer), expected a bound of its range, "
             "since on_bound says so");
    mistaken(
        f, "channels = { value = 3; fitted_to = \"numa.x\"; };",
        "x.cfg:2: dram.channels.fitted_to: found \"numa.x\" (a string), expected it only where "
        "provenance is \"calibrated\"");
    mistaken(f, "latency_ns = { value = 35; range = [40, 50]; };",
             "x.cfg:2: dram.latency_ns.value: found 35 (an integer), expected a value within its "
             "range, 40 to 50");
    mistaken(f, "channels = { value = 3; range = [4, 2]; };",
             "x.cfg:2: dram.channels.range: found a list, expected the lower end before the higher "
             "one");
    mistaken(f, "channels = { value = 3; range = [2, 20]; };",
             "x.cfg:2: dram.channels.range.[1]: found 20 (an integer), expected an integer 1..16");
    mistaken(
        f, "policy = { value = \"open\"; range = [1, 2]; };",
        "x.cfg:2: dram.policy.range: found a list, expected no range: the setting is no number");
}

static void print_shows_the_origin_of_each_value(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(f, "type = \"t\";\ndram = {\n latency_ns = 35;\n};\n"
                                         "list = ( 1, { a = 2; } );\n");
    struct config_node *root = config_root(config);
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    struct dram dram;

    config_get(root, "type");
    config_mark_read(config_get(root, "list"));
    assert_true(config_set(config, "dram.channels", "2", "--set", &f->errors));
    assert_true(read_dram(f, config, &dram));
    config_settle(config, config_get(root, "dram"), "capacity_bytes", 8192, "agreed");
    config_settle(config, config_get(root, "dram"), "channels", 8, "agreed"); /* is set */
    config_print(config, out);
    fclose(out);
    assert_string_equal(text, "dram.capacity_bytes = 8192 bytes  # agreed, datasheet\n"
                              "dram.channels = 2                 # --set, estimate\n"
                              "dram.ecc = false                  # default\n"
                              "dram.latency_ns = 35 ns           # x.cfg:3, estimate\n"
                              "dram.policy = \"open\"              # default\n"
                              "dram.rate_gt_s = 2.4 GT/s         # default, datasheet\n"
                              "dram.share = 0.5                  # default\n"
                              "list.[0] = 1                      # x.cfg:5\n"
                              "list.[1].a = 2                    # x.cfg:5\n"
                              "type = \"t\"                        # x.cfg:1\n");
    free(text);
    config_free(config);
}

static void hash_of(struct fixture *f, const char *text, char hex[65])
{
    struct config *config = load_good(f, text);
    struct dram dram;

    config_get(config_root(config), "type");
    assert_true(read_dram(f, config, &dram));
    config_sha256(config, hex);
    config_free(config);
}

static void hash_is_over_values_not_their_spelling(void **state)
{
    struct fixture *f = *state;
    char a[65], b[65];

    hash_of(f, "dram = { latency_ns = 35; };", a);
    assert_int_equal(strlen(a), 64);
    hash_of(f, "# moved\n\ndram = { share = 0.5; latency_ns = \"0.035 us\"; };", b);
    assert_string_equal(a, b);
    hash_of(f, "dram = { latency_ns = 36; };", b);
    assert_string_not_equal(a, b);
    hash_of(f, "dram = { latency_ns = 35; }; type = \"t\";", b);
    assert_string_not_equal(a, b);
}

/* ---- Changing -------------------------------------------------------------------------------- */

static void set_takes_values_as_written(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(f, "a = { b = 1; l = ( { x = 1; } ); };");
    static const char *const sets[][3] = {
        { "a.b", "68719476736", "68719476736" }, /* no truncation here, so no suffix needed */
        { "a.new.c", " 5 ", "5" },
        { "a.new.d", "\"8 ns\"", "8 ns" },
        { "a.new.e", "8 ns", "8 ns" },
        { "a.new.f", "True", "true" },
        { "a.new.g", "2.50", "2.5" },
        { "a.new.h", "0x10L", "16" },
        { "a.new.i", "8ns", "8ns" },
        { "a.new.j", "\"\"", "" },
        { "a.l.[0].x", "7", "7" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(sets); i++) {
        assert_true(config_set(config, sets[i][0], sets[i][1], "--set", &f->errors));
        assert_string_equal(config_text(at(config, sets[i][0])), sets[i][2]);
        assert_string_equal(config_origin(at(config, sets[i][0])), "--set");
    }
    assert_int_equal(config_kind(at(config, "a.b")), CONFIG_INT);
    assert_int_equal(config_kind(at(config, "a.new.f")), CONFIG_BOOL);
    assert_true(config_set(config, "a.l", "[1, { y = 2; }]", "--set", &f->errors));
    assert_int_equal(config_int(at(config, "a.l.[1].y")), 2);
    assert_string_equal(config_path(at(config, "a.l.[1].y")), "a.l.[1].y");
    assert_true(config_set(config, "a.l.[2]", "{ z = 3; }", "--set", &f->errors));
    assert_true(config_set(config, "a.l.[3].z", "4", "--set", &f->errors));
    assert_true(config_set(config, "a.l.[3].w", "5", "--set", &f->errors));
    assert_int_equal(config_count(at(config, "a.l")), 4);
    assert_int_equal(config_int(at(config, "a.l.[2].z")), 3);
    assert_string_equal(config_path(at(config, "a.l.[3].w")), "a.l.[3].w");
    assert_string_equal(config_name(at(config, "a.l.[3]")), "");
    assert_int_equal(f->errors.n_messages, 0);
    config_free(config);
}

static void set_refuses_what_cannot_be(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(f, "a = { b = 1; l = ( 1, 2 ); };");
    static const char *const cases[][3] = {
        { "a", "5",
          "--set: a: found 5 (an integer), expected a group; set one of its settings, "
          "\"a.name=value\"" },
        { "a.b.c", "5", "--set: a.b: found 1 (an integer), expected a group with \"c\"" },
        { "a.l.[3]", "5",
          "--set: a.l: found \"[3]\", expected an element of the list, [0] to [1], or [2] to add "
          "one" },
        { "a..b", "5",
          "--set: found \"a..b\", expected the path of a setting, \"name.name.[0].name\"" },
        { "", "5", "--set: found \"\", expected the path of a setting, \"name.name.[0].name\"" },
        { "a b", "5",
          "--set: found \"a b\", expected the path of a setting, \"name.name.[0].name\"" },
        { "a.b", "", "--set: a.b: no value after \"=\"; the empty string is \"\"" },
        { "a.b", "99999999999999999999",
          "--set: a.b: found 99999999999999999999, expected an integer of at most 64 bits" },
        { "a.b", "\"x", "--set: a.b: a string that does not end" },
        { "a.b", "[1, ", "--set: a.b: syntax error: \"[\" without its end" },
        { "a.b", "[1, x]",
          "--set: a.b: syntax error: found x, expected a value; strings stand in quotes: \"x\"" },
        { "a", "{ b = 012; }",
          "--set: a.b: found 012, expected an integer without a zero before it" },
        { "a.b", "\"x\"; c = 1", "--set: a.b: found \"x\"; c = 1, expected one value" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        assert_false(config_set(config, cases[i][0], cases[i][1], "--set", &f->errors));
        EXPECT(f, cases[i][2]);
    }
    assert_int_equal(config_int(at(config, "a.b")), 1);
    config_free(config);
}

static void set_replaces_a_value_with_provenance(void **state)
{
    struct fixture *f = *state;
    struct config *config =
        load_good(f, "dram = { latency_ns = { value = 35; provenance = \"published\"; }; };");
    struct dram dram;

    assert_true(config_set(config, "dram.latency_ns", "40", "--set", &f->errors));
    assert_true(read_dram(f, config, &dram));
    assert_int_equal(dram.latency_ps, 40000);
    config_free(config);

    /* a changed value keeps no provenance, whichever way its path is written */
    config = load_good(f, "dram = { latency_ns = { value = 35; provenance = \"published\"; }; };");
    assert_true(config_set(config, "dram.latency_ns.value", "41", "--set", &f->errors));
    assert_int_equal(config_int(at(config, "dram.latency_ns")), 41);
    config_free(config);
}

static void a_slip_in_set_is_an_unknown_setting(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(f, "dram = {};");
    struct dram dram;

    assert_true(config_set(config, "dram.chanels", "2", "--set", &f->errors));
    assert_false(read_dram(f, config, &dram));
    EXPECT(f, "--set: dram.chanels: unknown setting; did you mean \"channels\"?");
    config_free(config);
}

static void copies_are_independent_and_unread(void **state)
{
    struct fixture *f = *state;
    struct config *config = load_good(f, "a = { b = 1; l = ( { x = \"s\"; } ); };"), *copy;

    config_mark_read(at(config, "a"));
    assert_true(config_check_unknown(config, &f->errors));
    copy = config_copy(config);
    assert_true(config_set_node(copy, "a.c", at(config, "a.l"), "axis m", &f->errors));
    config_free(config);
    assert_string_equal(config_string(at(copy, "a.l.[0].x")), "s");
    assert_string_equal(config_string(at(copy, "a.c.[0].x")), "s");
    assert_string_equal(config_origin(at(copy, "a.c.[0].x")), "axis m");
    assert_string_equal(config_origin(at(copy, "a.l.[0].x")), "x.cfg:1");
    assert_false(config_check_unknown(copy, &f->errors));
    config_free(copy);
}

/* ---- Robustness ------------------------------------------------------------------------------ */

static void deep_nesting_is_refused(void **state)
{
    struct fixture *f = *state;
    GString *text = g_string_new(NULL);

    for (int i = 0; i < 100000; i++)
        g_string_append(text, "a={");
    refuse(f, text->str, "x.cfg:1: groups and lists nested deeper than 64");
    g_string_assign(text, "a = ");
    for (int i = 0; i < 64; i++)
        g_string_append_c(text, '(');
    for (int i = 0; i < 64; i++)
        g_string_append_c(text, ')');
    config_free(load_good(f, text->str));
    g_string_free(text, TRUE);
}

static void huge_strings_and_names(void **state)
{
    struct fixture *f = *state;
    char *huge = g_strnfill(1 << 20, 'x'), *text = g_strdup_printf("%s = \"%s\";", huge, huge);
    struct config *config = load_good(f, text);

    assert_int_equal(strlen(config_string(at(config, huge))), 1 << 20);
    assert_false(config_check_unknown(config, &f->errors));
    sim_error_release(&f->errors);
    config_free(config);
    g_free(text);
    text = g_strdup_printf("dram = { channels = \"%s\"; };", huge);
    config = load_good(f, text);
    assert_false(read_dram(f, config, &(struct dram){ 0 }));
    assert_int_equal(f->errors.n_messages, 1);
    assert_true(strlen(f->errors.message[0]) < 200);
    config_free(config);
    g_free(text);
    g_free(huge);
}

static const char sample[] =
    "# a comment\n"
    "title = \"x \\\" y\" \"z\"; /* c */ text : \"t\";\n"
    "dram = { channels = 0x2; capacity_bytes = \"64 GiB\"; latency_ns = 87.5e0;\n"
    "  share = { value = 0.25; provenance = \"estimate\"; source = \"s\"; } // c\n"
    "  policy = \"open\"; ecc = TRUE, vendor = \"v\" };\n"
    "list = ( 1, -2L, [ 3, 4.5 ], { a = (); }, \"s\" );\n@include \"inc.cfg\"\n"
    "@repeat i = 0 to 2 { a{i} = ( @repeat w = x, y { \"{w}{i-0}\" }, 1 ); }\n"
    "big = 68719476736;\n";

/* Whatever the file, either a tree or a message; never a crash, nor silence. */
static void load_anything(struct fixture *f, const char *text)
{
    struct config *config = load(f, text);
    struct dram dram;
    char hex[65];

    if (config) {
        read_dram(f, config, &dram);
        config_sha256(config, hex);
    } else {
        assert_true(f->errors.n_messages > 0);
    }
    /* libconfig's own words: the scanner let something pass */
    for (size_t i = 0; i < f->errors.n_messages; i++)
        assert_false(g_str_has_suffix(f->errors.message[i], ": syntax error"));
    sim_error_release(&f->errors);
    config_free(config);
}

static void truncated_files(void **state)
{
    char text[sizeof(sample)];

    write_file("inc.cfg", "included = 1;\n");
    for (size_t n = 0; n < sizeof(sample); n++) {
        memcpy(text, sample, n);
        text[n] = '\0';
        load_anything(*state, text);
    }
}

static void mutated_files(void **state)
{
    static const char alphabet[] = "{}()[]=:;,\"\\/*#@ \nL.e-+0x9a\x80";
    uint64_t random = 88172645463325252u; /* xorshift64: the same files on every machine */
    char text[sizeof(sample)];

    write_file("inc.cfg", "included = 1;\n");
    for (int round = 0; round < 3000; round++) {
        memcpy(text, sample, sizeof(sample));
        for (int change = 0; change <= round % 4; change++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            text[random % (sizeof(sample) - 1)] = alphabet[(random >> 32) % (sizeof(alphabet) - 1)];
        }
        load_anything(*state, text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_of_every_kind),
        TEST(lines_are_those_of_the_file),
        TEST(integers_beyond_32_bits_need_a_suffix),
        TEST(syntax_errors_name_the_line),
        TEST(a_name_like_the_mark_of_one_that_is_set_again),
        TEST(a_file_that_cannot_be_read),
        TEST(a_byte_order_mark_is_no_text),
        TEST(includes_without_end),
        TEST(strings_that_cannot_be_shown),
        TEST(includes_keep_file_and_line),
        TEST(an_included_file_is_whole),
        TEST(what_is_included_may_be_set_again),
        TEST(what_includes_may_say_the_same_before),
        TEST(values_of_another_machine_are_borrowed),
        TEST(repeats_settings_and_elements),
        TEST(an_index_ends_with_its_file),
        TEST(mistakes_in_repetitions),
        TEST(mistakes_in_included_files),
        TEST(many_folders_are_searched_in_order),
        TEST(quantities_with_and_without_unit),
        TEST(wrong_types),
        TEST(values_out_of_range),
        TEST(wrong_units),
        TEST(unknown_settings),
        TEST(groups_in_lists_are_checked_too),
        TEST(all_mistakes_of_a_file_are_reported),
        TEST(required_settings),
        TEST(values_carry_provenance_and_source),
        TEST(mistakes_in_provenance),
        TEST(a_calibrated_value_is_off_its_bounds),
        TEST(print_shows_the_origin_of_each_value),
        TEST(hash_is_over_values_not_their_spelling),
        TEST(set_takes_values_as_written),
        TEST(set_refuses_what_cannot_be),
        TEST(set_replaces_a_value_with_provenance),
        TEST(a_slip_in_set_is_an_unknown_setting),
        TEST(copies_are_independent_and_unread),
        TEST(deep_nesting_is_refused),
        TEST(huge_strings_and_names),
        TEST(truncated_files),
        TEST(mutated_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
