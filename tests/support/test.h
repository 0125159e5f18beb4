/* cmocka, with what it wants to be included before it. */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Of many cases that differ in a seed only, a test makes `n` in the build that users get, and in
 * the others (sanitizers, tiny queues, the other compiler) one of `others`: never none. */
static inline unsigned test_rounds(unsigned n, unsigned others)
{
#if defined(SIM_HOSTILE) || defined(__SANITIZE_ADDRESS__) || defined(__clang__)
    return (n + others - 1) / others;
#else
    (void)others;
    return n;
#endif
}

/* Of cases in a row, a test makes each in the build that users get, and every `others`-th in the
 * others. */
static inline unsigned test_stride(unsigned others)
{
    return others / test_rounds(others, others);
}

#endif
