/*
 * The table of docs/models/nvme.md against the model: what it says to be implemented is in the
 * model's tables and in its code, and what these have is in the table; what NVM Express 1.3 makes
 * mandatory is implemented; what is left out has a reason; the tests that are named exist, are run,
 * and name the section, and a status by its constant.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/nvme/nvme_internal.h"

#define PAGE        "docs/models/nvme.md"
#define HEADER      "hw/nvme_regs.h"
#define TESTS       "tests/models/nvme/"
#define ROWS_MAX    300u
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

struct row {
    char kind[16], name[80], section[16], state[160], tests[400];
    unsigned code;
    bool implemented, found;
};
static struct row rows[ROWS_MAX];
static unsigned n_rows;

/* ---- Reading --------------------------------------------------------------------------------- */

static char *contents(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    char *text = sim_zalloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    fclose(file);
    return text;
}

/* The text of the next column, without what surrounds it. */
static void column(char **at, char *to, size_t bytes)
{
    char *end = strchr(*at, '|');
    assert_non_null(end);
    *end = '\0';
    while (**at == ' ' || **at == '`')
        ++*at;
    size_t n = strlen(*at);
    while (n > 0 && ((*at)[n - 1] == ' ' || (*at)[n - 1] == '`'))
        n--;
    assert_true(n < bytes);
    memcpy(to, *at, n);
    to[n] = '\0';
    *at = end + 1;
}

static void read_row(char *line)
{
    struct row *row = &rows[n_rows++];
    char code[16];
    assert_true(n_rows < ROWS_MAX);
    line++;
    column(&line, row->kind, sizeof(row->kind));
    column(&line, code, sizeof(code));
    column(&line, row->name, sizeof(row->name));
    column(&line, row->section, sizeof(row->section));
    column(&line, row->state, sizeof(row->state));
    column(&line, row->tests, sizeof(row->tests));
    row->code = (unsigned)strtoul(code, NULL, 16);
    row->implemented = strcmp(row->state, "implemented") == 0;
    if (!row->implemented && (strncmp(row->state, "left out: ", 10) != 0 || row->state[10] == 0))
        fail_msg("%s: neither implemented nor left out for a reason", row->name);
}

static int read_table(void **state)
{
    char *text = contents(PAGE), *line, *rest;
    (void)state;
    if (text == NULL)
        return -1;
    line = strstr(text, "<!-- conformance -->");
    assert_non_null(line);
    rest = strstr(line, "<!-- end of conformance -->");
    assert_non_null(rest);
    *rest = '\0';
    for (line = strtok_r(line, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (line[0] == '|' && strncmp(line, "| kind", 6) != 0 && line[1] != '-')
            read_row(line);
    free(text);
    return 0;
}

static struct row *find(const char *kind, unsigned code)
{
    for (unsigned i = 0; i < n_rows; i++)
        if (strcmp(rows[i].kind, kind) == 0 && rows[i].code == code)
            return &rows[i];
    return NULL;
}

/* ---- The model's tables ---------------------------------------------------------------------- */

static void model_has(const char *kind, unsigned code, const char *name)
{
    struct row *row = find(kind, code);
    if (row == NULL || !row->implemented)
        fail_msg("the model has %s %#x (%s), the table does not", kind, code, name);
    if (strcmp(row->name, name) != 0)
        fail_msg("%s %#x is %s in the model, %s in the table", kind, code, name, row->name);
    row->found = true;
}

/* Nothing is said to be there that is not. */
static void no_more(const char *kind)
{
    for (unsigned i = 0; i < n_rows; i++)
        if (strcmp(rows[i].kind, kind) == 0 && rows[i].implemented && !rows[i].found)
            fail_msg("the table has %s %s, the model does not", kind, rows[i].name);
}

static void test_tables_of_the_model(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NVME_ADMIN_COMMANDS; i++)
        if (nvme_admin_commands[i].execute != NULL)
            model_has("admin", i, nvme_admin_commands[i].name);
    for (unsigned i = 0; i < NVME_IO_COMMANDS; i++)
        if (nvme_io_commands[i].execute != NULL)
            model_has("I/O", i, nvme_io_commands[i].name);
    for (unsigned i = 0; i < NVME_FEATURES; i++)
        if (nvme_features[i].name != NULL)
            model_has("feature", i, nvme_features[i].name);
    for (unsigned i = 0; i < NVME_LOGS; i++)
        if (nvme_logs[i].put != NULL)
            model_has("log", i, nvme_logs[i].name);
    for (unsigned i = 0; i < NVME_IDENTIFIES; i++)
        if (nvme_identifies[i].put != NULL)
            model_has("identify", i, nvme_identifies[i].name);
    no_more("admin");
    no_more("I/O");
    no_more("feature");
    no_more("log");
    no_more("identify");
}

/* ---- Statuses -------------------------------------------------------------------------------- */

/* The name of a status in the header; "" if it has none. */
static void constant_of(const char *header, unsigned code, char *name, size_t bytes)
{
    const char *at = strstr(header, "enum nvme_status {");
    assert_non_null(at);
    const char *end = strchr(at, '}');
    name[0] = '\0';
    while ((at = strstr(at, "NVME_SC_")) != NULL && at < end) {
        size_t n = strcspn(at, " =,");
        if (strtoul(strchr(at, '=') + 1, NULL, 0) == code) {
            assert_true(n < bytes);
            memcpy(name, at, n);
            name[n] = '\0';
            return;
        }
        at += n;
    }
}

/* Whether the code of the model names it. */
static bool given(const char *name)
{
    static const char *const files[] = { "admin",   "arbitration", "controller", "data",   "event",
                                         "feature", "identify",    "interrupt",  "io",     "list",
                                         "log",     "media",       "queue",      "virtual" };
    bool found = false;
    for (unsigned i = 0; i < N_OF(files) && !found; i++) {
        char path[80];
        snprintf(path, sizeof(path), "models/nvme/nvme_%s.c", files[i]);
        char *text = contents(path);
        assert_non_null(text);
        for (const char *at = text; !found && (at = strstr(at, name)) != NULL; at++) {
            const int next = at[strlen(name)];
            found = !isalnum(next) && next != '_';
        }
        free(text);
    }
    return found;
}

static void test_statuses(void **state)
{
    char *header = contents(HEADER), name[64];
    unsigned n = 0;
    (void)state;
    assert_non_null(header);
    for (unsigned code = 0; code < 0x300; code++) {
        const struct row *row = find("status", code);
        constant_of(header, code, name, sizeof(name));
        const bool is_given = name[0] != '\0' && given(name);
        if (is_given != (row != NULL && row->implemented))
            fail_msg("status %#x is %s by the model, the table says otherwise", code,
                     is_given ? "given" : "not given");
        n += is_given;
    }
    assert_true(n > 20);
    free(header);
}

/* ---- What is mandatory (5, 6, 5.21.1, 5.14.1, 5.15, 3.1: "M") -------------------------------- */

static void test_mandatory(void **state)
{
    static const struct {
        const char *kind;
        unsigned code[12], n;
    } mandatory[] = {
        { "admin", { 0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c }, 10 },
        { "I/O", { 0x00, 0x01, 0x02 }, 3 },
        { "feature", { 0x01, 0x02, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0a, 0x0b }, 9 },
        { "log", { 0x01, 0x02, 0x03 }, 3 },
        { "identify", { 0x00, 0x01, 0x02, 0x03 }, 4 },
        { "register", { 0x00, 0x08, 0x14, 0x1c, 0x24, 0x28, 0x30 }, 7 },
    };
    (void)state;
    for (unsigned k = 0; k < N_OF(mandatory); k++)
        for (unsigned i = 0; i < mandatory[k].n; i++) {
            const struct row *row = find(mandatory[k].kind, mandatory[k].code[i]);
            if (row == NULL || !row->implemented)
                fail_msg("%s %#x is mandatory", mandatory[k].kind, mandatory[k].code[i]);
        }
}

/* ---- Tests that are named -------------------------------------------------------------------- */

/* A section's number stands in the text by itself, not as the beginning of another's. */
static bool names_section(const char *text, const char *section)
{
    const size_t n = strlen(section);
    for (const char *at = text; (at = strstr(at, section)) != NULL; at++) {
        const bool begins = at == text || (!isdigit((unsigned char)at[-1]) && at[-1] != '.');
        const bool ends = !isdigit((unsigned char)at[n]) &&
                          !(at[n] == '.' && isdigit((unsigned char)at[n + 1]));
        if (begins && ends)
            return true;
    }
    return false;
}

/* "file.c: test". Returns whether the file names the section, and the status. */
static bool check_test(const struct row *row, const char *named, const char *constant)
{
    char file[40], test[80], path[120], pattern[120];
    if (sscanf(named, " %39[^:]: %79[a-z_0-9]", file, test) != 2)
        fail_msg("%s: %s is no test", row->name, named);
    snprintf(path, sizeof(path), TESTS "%s", file);
    char *text = contents(path);
    if (text == NULL)
        fail_msg("%s: there is no %s", row->name, path);
    snprintf(pattern, sizeof(pattern), "static void %s(void **state)", test);
    if (strstr(text, pattern) == NULL)
        fail_msg("%s: there is no %s in %s", row->name, test, file);
    snprintf(pattern, sizeof(pattern), "cmocka_unit_test(%s)", test);
    if (strstr(text, pattern) == NULL)
        fail_msg("%s: %s of %s is not run", row->name, test, file);
    const bool names = names_section(text, row->section) &&
                       (constant[0] == '\0' || strstr(text, constant) != NULL);
    free(text);
    return names;
}

static void test_tests_that_are_named(void **state)
{
    char *header = contents(HEADER), constant[64] = "";
    unsigned n = 0;
    (void)state;
    assert_non_null(header);
    for (unsigned i = 0; i < n_rows; i++) {
        struct row row = rows[i];
        char *rest;
        bool names = false;
        if (!row.implemented)
            continue;
        constant[0] = '\0';
        if (strcmp(row.kind, "status") == 0)
            constant_of(header, row.code, constant, sizeof(constant));
        for (char *t = strtok_r(row.tests, ",", &rest); t != NULL; t = strtok_r(NULL, ",", &rest))
            names |= check_test(&rows[i], t, constant);
        if (!names)
            fail_msg("%s: no test names section %s %s", row.name, row.section, constant);
        n++;
    }
    assert_true(n > 80);
    free(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_of_the_model),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_mandatory),
        cmocka_unit_test(test_tests_that_are_named),
    };
    return cmocka_run_group_tests(tests, read_table, NULL);
}
