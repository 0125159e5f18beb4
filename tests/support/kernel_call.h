/* A body that runs in a thread of a simulated kernel. */
#ifndef TESTS_SUPPORT_KERNEL_CALL_H
#define TESTS_SUPPORT_KERNEL_CALL_H

#include "models/os/os.h"
#include "tests/support/world_fixture.h"

/* Runs the simulation until the body has returned, in a thread of CPU 0; fails after 4 s of
 * simulated time. */
void kernel_call(struct world_fixture *w, struct kernel *kernel, void (*body)(void *arg),
                 void *arg);

#endif
