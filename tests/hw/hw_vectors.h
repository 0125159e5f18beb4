/*
 * Comparison of the constants of a header of hw/ with vectors from elsewhere, by name: each
 * differing one is reported, and each one that the header defines and the vectors miss.
 */
#ifndef TESTS_HW_HW_VECTORS_H
#define TESTS_HW_HW_VECTORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

struct hw_vector {
    const char *name;
    uint64_t ours, theirs;
};
/* In a list of pairs LIST(X) of X(constant of ours, value from elsewhere): LIST(HW_VECTOR). */
#define HW_VECTOR(constant, value) { #constant, (uint64_t)(constant), (uint64_t)(value) },

static inline void hw_vectors_compare(const struct hw_vector *vectors, size_t n)
{
    unsigned n_wrong = 0;
    for (size_t i = 0; i < n; i++)
        if (vectors[i].ours != vectors[i].theirs) {
            print_error("%s is 0x%llx, should be 0x%llx\n", vectors[i].name,
                        (unsigned long long)vectors[i].ours, (unsigned long long)vectors[i].theirs);
            n_wrong++;
        }
    assert_int_equal(n_wrong, 0);
}

/* Each constant without parameters that `header` defines by #define is among the vectors. The
 * include guard is none. */
static inline void hw_vectors_cover(const char *header, const struct hw_vector *vectors, size_t n)
{
    FILE *file = fopen(header, "r");
    char line[256], name[128];
    unsigned n_constants = 0, n_missing = 0;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        int end = 0;
        if (sscanf(line, "#define %127[A-Za-z0-9_]%n", name, &end) != 1 || line[end] != ' ')
            continue;
        bool found = false;
        for (size_t i = 0; i < n && !found; i++)
            found = strcmp(vectors[i].name, name) == 0;
        if (!found)
            print_error("%s: nothing compares %s\n", header, name);
        n_missing += !found;
        n_constants++;
    }
    fclose(file);
    assert_true(n_constants > 0);
    assert_int_equal(n_missing, 0);
}

#endif
