/* A folder of files per test; the working folder while it lasts, so that names in messages are
 * relative to it. */
#ifndef TESTS_SUPPORT_FOLDER_FIXTURE_H
#define TESTS_SUPPORT_FOLDER_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "sim/config/error.h"
#include "tests/support/test.h"

struct fixture {
    char *folder, *before;
    struct sim_error_list errors;
};

int set_up(void **state);

int tear_down(void **state);

void write_file(const char *path, const char *text);

#endif
