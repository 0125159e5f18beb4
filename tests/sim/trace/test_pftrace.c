/* Packets of Perfetto's format: the largest fit what callers are told to have room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/trace/pftrace.h"

/* Longer than what is kept of a text. */
#define LONG                                                           \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_largest_fit(void **state)
{
    struct pftrace_note notes[PFTRACE_NOTES_MAX + 1];
    uint8_t to[2 * PFTRACE_BYTES_MAX];
    struct pftrace_event event = { .track = UINT64_MAX,
                                   .begin_ps = UINT64_MAX,
                                   .end_ps = UINT64_MAX,
                                   .name = LONG,
                                   .flow = UINT64_MAX,
                                   .notes = notes,
                                   .n_notes = PFTRACE_NOTES_MAX + 1 };
    (void)state;

    for (unsigned i = 0; i <= PFTRACE_NOTES_MAX; i++)
        notes[i] = (struct pftrace_note){ LONG, UINT64_MAX, true };
    memset(to, 0, sizeof(to));
    const size_t slice = pftrace_event(to, &event);
    assert_true(slice <= sizeof(to));
    event.instant = true;
    const size_t instant = pftrace_event(to, &event);
    /* The name and six notes are there, each cut, and nothing of the seventh. */
    assert_in_range(instant, (PFTRACE_NOTES_MAX + 1) * PFTRACE_TEXT_BYTES_MAX, PFTRACE_BYTES_MAX);
    assert_true(slice > instant && slice - instant < 64);
    unsigned n_texts = 0;
    for (size_t i = 0; i + PFTRACE_TEXT_BYTES_MAX <= instant; i++)
        n_texts += memcmp(to + i, LONG, PFTRACE_TEXT_BYTES_MAX) == 0;
    assert_int_equal(n_texts, PFTRACE_NOTES_MAX + 1);
    assert_in_range(pftrace_track(to, UINT64_MAX, UINT64_MAX, LONG, LONG),
                    2 * PFTRACE_TEXT_BYTES_MAX, PFTRACE_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_largest_fit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
