/* For tests of what must end the process: runs fn in a child and looks at its last words. */
#ifndef TESTS_SUPPORT_DEATH_H
#define TESTS_SUPPORT_DEATH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

/* Returns the child's wait status; stderr (cut to bytes - 1) in words. */
int death_status(void (*fn)(void), char *words, size_t bytes);

/* fn must abort, having said all of the NULL-terminated list of texts. */
void assert_aborts(void (*fn)(void), ...);

#endif
