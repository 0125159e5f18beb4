/* A test whose fixture cmocka sets up and tears down. */
#ifndef TESTS_SUPPORT_FIXTURE_TEST_H
#define TESTS_SUPPORT_FIXTURE_TEST_H

#include <stdbool.h>

#include "sim/engine/sim.h"
#include "tests/support/test.h"

/* The state that set-up and tear-down get; the test itself gets its fixture in *state. */
struct fixture_test {
    void (*test)(void **state);
    const void *settings; /* of the fixture */
    void *fixture;        /* set-up allocates it, tear-down frees it */
    bool passed;          /* so far: what tear-down asserts is not in it */
};

void fixture_test_run(void **state);

/* After a failed assertion, before a run's models and `sim` are freed: lets objects be alive.
 * Returns false if there is nothing that could be freed: without a run (NULL), and when the
 * assertion failed in an event or a task. */
bool fixture_test_abandon(struct sim *sim);

#define FIXTURE_TEST(test, set_up, tear_down, settings)               \
    ((struct CMUnitTest){ #test, fixture_test_run, set_up, tear_down, \
                          &(struct fixture_test){ test, settings, NULL, false } })

#endif
