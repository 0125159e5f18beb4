#include "tests/random/random_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define KEPT "tests/random/kept"
#define OPEN "tests/random/open.txt"
/* Failures that are made small; of more only the first message is shown. */
#define SHRUNK_MAX 5

#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 20
#else
#define SLOWER 1
#endif

/* ---- Open faults ---- */

/* Whether tests/random/open.txt has the area and the property: a fault that is known and not
 * mended. Its seeds are counted, and fail nothing. */
static bool is_open(const struct random_area *area, const struct random_verdict *v)
{
    char *text = NULL, *line = g_strdup_printf("\n%s %s:", area->name, v->property);
    const bool found = g_file_get_contents(OPEN, &text, NULL, NULL) && strstr(text, line) != NULL;
    g_free(line);
    g_free(text);
    return found;
}

/* ---- Seeds ----------------------------------------------------------------------------------- */

/* Prints the scenario of a failure, made small, and keeps it in the folder. */
static void show(const struct random_area *area, uint64_t seed, const struct random_verdict *v,
                 const char *folder)
{
    struct random_scenario *s = g_new0(struct random_scenario, 1);
    area->make(seed, s);
    struct random_verdict small = random_shrink(s, area->mode, v);
    g_strdelimit(small.message, "\n", ' '); /* one line of comment */
    char *text = random_text(s),
         *path = g_strdup_printf("%s/%s-%llu.cfg", folder, area->name, (unsigned long long)seed);
    char *whole = g_strdup_printf("# %s, seed %llu, %s: %s\n%s", area->name,
                                  (unsigned long long)seed, small.property, small.message, text);
    g_mkdir_with_parents(folder, 0777);
    fprintf(stderr, "%s\n", whole);
    if (g_file_set_contents(path, whole, -1, NULL))
        fprintf(stderr,
                "# kept as %s; run it: nudma run %s; judge it: build/tests/random/test_random_%s "
                "--judge %s\n",
                path, path, area->name, path);
    g_free(whole);
    g_free(path);
    g_free(text);
    g_free(s);
}

/* How many of n seeds from `from` on fail. */
static unsigned judge_seeds(const struct random_area *area, uint64_t from, unsigned n,
                            const char *folder, bool shrink)
{
    struct random_verdict *verdict = g_new0(struct random_verdict, n);
    unsigned failed = 0, open = 0, n_runs = 0;
    random_judge_seeds(area->make, area->mode, from, n, verdict);
    for (unsigned i = 0; i < n; i++) {
        n_runs += verdict[i].n_runs;
        if (verdict[i].property[0] == '\0')
            continue;
        if (is_open(area, &verdict[i])) {
            open++;
            continue;
        }
        fprintf(stderr, "# %s, seed %llu: %s: %s\n", area->name, (unsigned long long)(from + i),
                verdict[i].property, verdict[i].message);
        if (failed++ < SHRUNK_MAX && shrink)
            show(area, from + i, &verdict[i], folder);
    }
    fprintf(stderr, "# %s: %u seeds from %llu on, %u runs, %u failed, %u of open faults\n",
            area->name, n, (unsigned long long)from, n_runs, failed, open);
    g_free(verdict);
    return failed;
}

/* ---- Kept scenarios -------------------------------------------------------------------------- */

static char *read_text(const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        fprintf(stderr, "# %s cannot be read\n", path);
    return text;
}

static unsigned judge_file(const struct random_area *area, const char *path)
{
    struct random_verdict v = { .property = "unreadable" };
    char *text = read_text(path);
    if (text != NULL)
        random_judge_safely(text, area->mode, &v);
    if (v.property[0] != '\0')
        fprintf(stderr, "# %s: %s: %s\n", path, v.property, v.message);
    g_free(text);
    return v.property[0] != '\0';
}

static unsigned judge_kept(const struct random_area *area)
{
    char *begin = g_strdup_printf("%s-", area->name);
    unsigned failed = 0, n = 0;
    GDir *folder = g_dir_open(KEPT, 0, NULL);
    const char *name;
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    while (folder != NULL && (name = g_dir_read_name(folder)) != NULL)
        if (g_str_has_prefix(name, begin) && g_str_has_suffix(name, ".cfg"))
            g_ptr_array_add(paths, g_build_filename(KEPT, name, NULL));
    for (; n < paths->len; n++)
        failed += judge_file(area, g_ptr_array_index(paths, n));
    fprintf(stderr, "# %s: %u kept scenarios, %u failed\n", area->name, n, failed);
    g_ptr_array_unref(paths);
    if (folder != NULL)
        g_dir_close(folder);
    g_free(begin);
    return failed;
}

/* ---- The program ----------------------------------------------------------------------------- */

static void test_kept(void **state)
{
    assert_int_equal(judge_kept(*state), 0);
}

static void test_seeds(void **state)
{
    const struct random_area *area = *state;
    const char *build = g_getenv("BUILD");
    char *folder = g_build_filename(build != NULL ? build : "build", "random", NULL);
    const unsigned failed = judge_seeds(area, 1, area->n_seeds / SLOWER, folder, true);
    g_free(folder);
    assert_int_equal(failed, 0);
}

static int print_seed(const struct random_area *area, uint64_t seed)
{
    struct random_scenario *s = g_new0(struct random_scenario, 1);
    area->make(seed, s);
    char *text = random_text(s);
    fputs(text, stdout);
    g_free(text);
    g_free(s);
    return 0;
}

int random_main(const struct random_area *area, int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const uint64_t from = argc > 2 ? g_ascii_strtoull(argv[2], NULL, 10) : 0;
    const unsigned n = argc > 3 ? (unsigned)g_ascii_strtoull(argv[3], NULL, 10) : 0;
    if (strcmp(what, "--seeds") == 0 && argc >= 4)
        return judge_seeds(area, from, n, argc > 4 ? argv[4] : ".", argc > 4) != 0;
    if (strcmp(what, "--print") == 0 && argc == 3)
        return print_seed(area, from);
    if (strcmp(what, "--judge") == 0 && argc == 3)
        return (int)judge_file(area, argv[2]);
    if (argc > 1) {
        fprintf(stderr, "usage: %s [--seeds FROM N [FOLDER] | --print SEED | --judge FILE]\n",
                argv[0]);
        return 2;
    }
    struct random_area whole = *area;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_kept, &whole),
        cmocka_unit_test_prestate(test_seeds, &whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
