/*
 * A packed page: a mask, a bit for each line that goes on from the one before it as a stream of
 * payload does, or as zeros do; then each other line: a mask of its words that are not zero, and
 * these. Zeros are before the first line.
 */
#include "models/base/page_pack.h"

#include <stdlib.h>
#include <string.h>

#include "models/base/payload.h"

#define LINES      ((unsigned)(PAGE_BYTES / LINE_BYTES))
#define LINE_WORDS ((unsigned)(LINE_BYTES / sizeof(uint64_t)))

/* What a line behind this one has to be to go on from it. */
static struct payload_words behind(const uint64_t *word, bool first_alone)
{
    struct payload_words w = payload_words(first_alone ? payload_word_mark(word[0]) : 0);

    payload_words_line(&w);
    return w;
}

static size_t put_line(uint8_t *to, const uint64_t *word)
{
    size_t bytes = 1;

    to[0] = 0;
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        if (word[i] == 0)
            continue;
        to[0] |= (uint8_t)(1u << i);
        memcpy(to + bytes, &word[i], sizeof(word[i]));
        bytes += sizeof(word[i]);
    }
    return bytes;
}

static inline uint64_t word_at(const uint8_t *line, unsigned i)
{
    uint64_t word;

    memcpy(&word, line + i * sizeof(word), sizeof(word));
    return word;
}

/* Zero: all words but the first are. */
static inline uint64_t rest_of(const uint8_t *line)
{
    return word_at(line, 1) | word_at(line, 2) | word_at(line, 3) | word_at(line, 4) |
           word_at(line, 5) | word_at(line, 6) | word_at(line, 7);
}

/* How many of n lines go on from what is before them; *w: what goes on, there and behind them. */
static __attribute__((noinline)) unsigned lines_that_go_on(const uint8_t *page, unsigned n,
                                                           struct payload_words *w)
{
    struct payload_words next = *w; /* in registers */
    unsigned i;

    for (i = 0; i < n; i++, page += LINE_BYTES, payload_words_line(&next))
        if ((rest_of(page) | (word_at(page, 0) ^ payload_words_here(&next))) != 0)
            break;
    *w = next;
    return i;
}

bool page_pack(const uint8_t *page, uint8_t **packed, size_t *bytes)
{
    uint8_t out[PAGE_PACKED_BYTES_MAX + 1 + LINE_BYTES];
    struct payload_words w = payload_words(0);
    uint64_t goes_on = 0;
    size_t n = sizeof(goes_on);

    for (unsigned i = 0; i < LINES; i++, page += LINE_BYTES) {
        const unsigned run = lines_that_go_on(page, LINES - i, &w);
        if (run == LINES - i) {
            goes_on |= UINT64_MAX << i;
            break;
        }
        goes_on |= ((UINT64_C(1) << run) - 1) << i;
        i += run;
        page += run * LINE_BYTES;
        uint64_t word[LINE_WORDS];
        memcpy(word, page, sizeof(word));
        n += put_line(out + n, word);
        if (n > PAGE_PACKED_BYTES_MAX)
            return false;
        w = behind(word, rest_of(page) == 0);
    }
    *packed = NULL;
    *bytes = goes_on == UINT64_MAX ? 0 : n;
    if (*bytes == 0)
        return true;
    memcpy(out, &goes_on, sizeof(goes_on));
    *packed = malloc(n);
    if (*packed == NULL)
        sim_out_of_memory("%zu bytes of a packed page", n);
    memcpy(*packed, out, n);
    return true;
}

size_t page_unpack(const uint8_t *packed, uint8_t *page)
{
    const uint8_t *at = packed + sizeof(uint64_t);
    struct payload_words w = payload_words(0);
    uint64_t goes_on;

    memcpy(&goes_on, packed, sizeof(goes_on));
    for (unsigned i = 0; i < LINES; i++, page += LINE_BYTES, goes_on >>= 1) {
        uint64_t word[LINE_WORDS] = { payload_words_here(&w) };
        if (SIM_LIKELY((goes_on & 1) != 0)) {
            memcpy(page, word, sizeof(word[0]));
            payload_words_line(&w);
            continue;
        }
        word[0] = 0;
        unsigned mask = *at++;
        for (unsigned left = mask; left != 0; left &= left - 1, at += sizeof(word[0]))
            memcpy(&word[__builtin_ctz(left)], at, sizeof(word[0]));
        memcpy(page, word, sizeof(word));
        w = behind(word, mask <= 1);
    }
    return (size_t)(at - packed);
}
