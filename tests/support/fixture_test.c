#include "tests/support/fixture_test.h"

#include "sim/engine/sim_internal.h"

void fixture_test_run(void **state)
{
    struct fixture_test *t = *state;
    t->test(&t->fixture);
    t->passed = true;
}

bool fixture_test_abandon(struct sim *sim)
{
    if (sim == NULL || sim->running)
        return false;
    sim_fail(sim, "the test failed");
    return true;
}
