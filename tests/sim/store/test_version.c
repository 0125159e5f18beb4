/* The version of a build of changed sources has what the linker says of the program. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#undef NUDMA_VERSION
#undef NUDMA_GIT
#define NUDMA_VERSION "1.2.3"
#define NUDMA_GIT     "abcdef01-dirty"
#include "sim/store/version.c"

/* As readelf finds it, "    Build ID: 5593eaef..."; its first eight digits. */
static void read_id(char digits[9])
{
    char path[4096], command[4200], line[256];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(n > 0);
    path[n] = '\0';
    snprintf(command, sizeof(command), "readelf -n '%s'", path);
    FILE *notes = popen(command, "r");
    assert_non_null(notes);
    digits[0] = '\0';
    while (fgets(line, sizeof(line), notes) != NULL)
        sscanf(line, " Build ID: %8[0-9a-f]", digits);
    pclose(notes);
    assert_int_equal(strlen(digits), 8);
}

static void test_a_changed_build(void **state)
{
    char digits[9];
    (void)state;
    read_id(digits);
    g_autofree char *expected = g_strdup_printf("1.2.3 abcdef01-dirty %s", digits);
    assert_string_equal(sim_version(), expected);
}

/* Notes of other owners and types before it; sizes beyond the end are not believed. */
static void test_notes(void **state)
{
    struct {
        ElfW(Nhdr) first;
        char first_name[4], first_content[8];
        ElfW(Nhdr) id;
        char id_name[4], id_content[4];
    } notes = {
        .first = { .n_namesz = 4, .n_descsz = 5, .n_type = NT_GNU_ABI_TAG },
        .first_name = "GNU",
        .id = { .n_namesz = 4, .n_descsz = 4, .n_type = NT_GNU_BUILD_ID },
        .id_name = "GNU",
        .id_content = "1234",
    };
    const char *at = (const char *)&notes;
    (void)state;
    assert_ptr_equal(find_id(at, sizeof(notes)), notes.id_content);
    assert_null(find_id(at, sizeof(notes) - 1));
    assert_null(find_id(at, 3));
    notes.id_name[0] = 'g';
    assert_null(find_id(at, sizeof(notes)));
    notes.id_name[0] = 'G';
    notes.first.n_descsz = UINT32_MAX;
    assert_null(find_id(at, sizeof(notes)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_changed_build),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
