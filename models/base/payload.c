/*
 * Payload in tag mode.
 *
 * Models: which bytes of which stream lie where.
 * Does not model: the bytes themselves; two streams in one line (see payload.h).
 */
#include "models/base/payload.h"

#include <string.h>

#define MARK_BYTES PAYLOAD_MARK_BYTES
#define HIGH_BITS  UINT64_C(0x8080808080808080)

static uint64_t word_at(const uint8_t *bytes, unsigned n)
{
    uint64_t word = 0;

    if (SIM_LIKELY(n == MARK_BYTES))
        memcpy(&word, bytes, MARK_BYTES);
    else
        memcpy(&word, bytes, n);
    return word;
}

/* What payload_spread() was given, of the bytes that are there. */
static uint64_t gathered(uint64_t word)
{
    uint64_t x = word & ~(PAYLOAD_FRAME_BITS | HIGH_BITS);

    x = (x & UINT64_C(0x007f007f007f007f)) | (x & UINT64_C(0x7f007f007f007f00)) >> 1;
    x = (x & UINT64_C(0x00003fff00003fff)) | (x & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (x & UINT64_C(0x000000000fffffff)) | (x & UINT64_C(0x0fffffff00000000)) >> 4;
}

uint64_t payload_word_mark(uint64_t word)
{
    const uint64_t clear = ~word & HIGH_BITS;

    if (clear == 0 || (clear & (clear - 1)) != 0 || (word & clear >> 1) == 0)
        return 0;
    /* The byte framed by 01 is the last of its eight; the lower ones of the next eight follow,
     * which count one more. */
    const unsigned behind = 7 - (unsigned)__builtin_ctzll(clear) / 8;
    uint64_t x = gathered(word << 8 * behind);
    if (behind != 0)
        x |= (gathered(word >> (64 - 8 * behind)) - 1) & ((UINT64_C(1) << 7 * behind) - 1);
    const uint64_t mark = x << 3 | behind | UINT64_C(1) << 63;
    return payload_word(mark) == word ? mark : 0;
}

/* ---- Extents --------------------------------------------------------------------------------- */

/* The bytes of an extent from one on, as many as are known up to eight. Those behind raw bytes are
 * of no stream. */
static uint64_t extent_word(const struct payload_extent *e, uint32_t from)
{
    if (SIM_LIKELY(e->raw_bytes == 0))
        return payload_word(payload_mark_add(e->mark, from));
    return from < e->raw_bytes ? e->mark >> 8 * from : 0;
}

/* Two extents too short to tell, one after the other, and of the second its n bytes. */
static bool merge_raw(struct payload_extent *last, uint64_t word, unsigned n)
{
    const uint32_t before = last->bytes, all = before + n;

    if (before >= MARK_BYTES || before != last->raw_bytes)
        return false;
    const uint64_t whole = last->mark | word << 8 * before;
    const uint64_t mark = all >= MARK_BYTES ? payload_word_mark(whole) : 0;
    if (mark != 0 ? !payload_same(payload_word(mark + before), word, n) : all > MARK_BYTES)
        return false;
    *last = (struct payload_extent){ mark != 0 ? mark : whole, all, mark != 0 ? 0 : (uint8_t)all };
    return true;
}

/* Makes the last extent longer if what follows goes on from it. raw: how many bytes are known of
 * what is no mark. */
static bool merge(struct payload_extent *last, uint64_t mark, uint32_t bytes, unsigned raw)
{
    if (last->raw_bytes == 0) {
        const uint64_t goes_on = payload_mark_add(last->mark, last->bytes);
        if (raw == 0 ? mark != goes_on
                     : bytes > raw || !payload_same(mark, payload_word(goes_on), raw))
            return false;
    } else if (raw == 0) {
        const uint64_t first = payload_mark_back(mark, last->bytes);
        if (!payload_same(last->mark, payload_word(first), last->raw_bytes))
            return false;
        last->mark = first;
        last->raw_bytes = 0;
    } else {
        return bytes == raw && merge_raw(last, mark, raw);
    }
    last->bytes += bytes;
    return true;
}

static bool append(struct payload *p, uint64_t mark, uint32_t bytes, unsigned raw)
{
    if (p->n == 0 || !merge(&p->extent[p->n - 1], mark, bytes, raw)) {
        if (p->n == PAYLOAD_EXTENTS_MAX)
            return false;
        p->extent[p->n++] = (struct payload_extent){ mark, bytes, (uint8_t)raw };
    }
    p->bytes += bytes;
    return true;
}

/* What lies in one line: its first n bytes. */
static bool append_word(struct payload *p, uint64_t word, uint32_t bytes, unsigned n)
{
    const uint64_t mark = n == MARK_BYTES ? payload_word_mark(word) : 0;

    return append(p, mark != 0 ? mark : word, bytes, mark != 0 || word == 0 ? 0 : n);
}

/* Undoes what append() did to a content that had n extents, the last being this, and bytes. */
static bool give_up(struct payload *p, uint32_t n, const struct payload_extent *last,
                    uint32_t bytes)
{
    p->n = n;
    p->bytes = bytes;
    if (n > 0)
        p->extent[n - 1] = *last;
    return false;
}

/* Whole lines that go on from the last extent, from the begin of one on; returns their bytes. */
static uint32_t append_lines(struct payload *p, const uint8_t *buffer, uint32_t bytes)
{
    struct payload_extent *last = p->n != 0 ? &p->extent[p->n - 1] : NULL;
    uint32_t at = 0;

    if (last == NULL || last->raw_bytes != 0)
        return 0;
    struct payload_words w = payload_words(payload_mark_add(last->mark, last->bytes));
    for (; at + LINE_BYTES <= bytes && word_at(buffer + at, MARK_BYTES) == payload_words_here(&w);
         at += LINE_BYTES)
        payload_words_line(&w);
    last->bytes += at;
    p->bytes += at;
    return at;
}

bool payload_gather(struct payload *payload, const uint8_t *buffer, uint64_t address,
                    uint32_t bytes)
{
    const uint32_t n = payload->n, before = payload->bytes;
    const struct payload_extent last = payload->extent[n > 0 ? n - 1 : 0];

    for (uint32_t at = 0; at < bytes;) {
        const uint32_t in_line = (uint32_t)((address + at) % LINE_BYTES);
        if (in_line == 0)
            at += append_lines(payload, buffer + at, bytes - at);
        if (at == bytes)
            break;
        const uint32_t here = SIM_MIN((uint32_t)LINE_BYTES - in_line, bytes - at);
        const unsigned known = SIM_MIN(here, MARK_BYTES);
        if (!append_word(payload, word_at(buffer + at, known), here, known))
            return give_up(payload, n, &last, before);
        at += here;
    }
    return true;
}

/* The extent that holds byte *from, which becomes its offset in there. */
static const struct payload_extent *extent_of(const struct payload *payload, uint32_t *from)
{
    const struct payload_extent *e = payload->extent;

    for (; *from >= e->bytes; e++)
        *from -= e->bytes;
    return e;
}

/* The whole lines that lie in the extent and do not end it; returns their bytes. */
static uint32_t scatter_lines(const struct payload_extent *e, uint32_t from, uint32_t bytes,
                              uint8_t *buffer)
{
    uint32_t at = 0;

    if (e->raw_bytes != 0)
        return 0;
    struct payload_words w = payload_words(payload_mark_add(e->mark, from));
    for (; at + LINE_BYTES <= bytes && from + at + LINE_BYTES < e->bytes; at += LINE_BYTES) {
        const uint64_t word = payload_words_here(&w);
        memcpy(buffer + at, &word, MARK_BYTES);
        payload_words_line(&w);
    }
    return at;
}

void payload_scatter(const struct payload *payload, uint32_t from, uint32_t bytes, uint8_t *buffer,
                     uint64_t address)
{
    SIM_ASSERT(from <= payload->bytes && bytes <= payload->bytes - from,
               "bytes [%u, + %u) of a payload of %u", from, bytes, payload->bytes);
    if (bytes == 0)
        return;
    const struct payload_extent *e = extent_of(payload, &from);
    for (uint32_t at = 0; at < bytes;) {
        const uint32_t in_line = (uint32_t)((address + at) % LINE_BYTES);
        if (in_line == 0) {
            const uint32_t lines = scatter_lines(e, from, bytes - at, buffer + at);
            from += lines;
            at += lines;
        }
        if (at == bytes)
            break;
        const uint32_t here = SIM_MIN((uint32_t)LINE_BYTES - in_line, bytes - at);
        /* Of the first eight bytes each is of the extent that it lies in. */
        for (uint32_t done = 0; done < here;) {
            const uint32_t of_extent = SIM_MIN(here - done, e->bytes - from);
            if (done < MARK_BYTES) {
                const uint64_t word = extent_word(e, from);
                memcpy(buffer + at + done, &word, SIM_MIN(MARK_BYTES - done, of_extent));
            }
            done += of_extent;
            from += of_extent;
            if (from == e->bytes) {
                e++;
                from = 0;
            }
        }
        at += here;
    }
}

void payload_bytes(const struct payload *payload, uint32_t bytes, uint8_t *to)
{
    uint32_t at = 0;

    SIM_ASSERT(bytes <= payload->bytes, "%u bytes of a payload of %u", bytes, payload->bytes);
    for (const struct payload_extent *e = payload->extent; at < bytes; e++) {
        const uint32_t n = SIM_MIN(e->bytes, bytes - at);
        for (uint32_t from = 0; from < n; from += MARK_BYTES) {
            const uint64_t word = extent_word(e, from);
            memcpy(to + at + from, &word, SIM_MIN(MARK_BYTES, n - from));
        }
        at += n;
    }
}

bool payload_slice(struct payload *to, const struct payload *payload, uint32_t from, uint32_t bytes)
{
    const uint32_t n = to->n, before = to->bytes;
    const struct payload_extent last = to->extent[n > 0 ? n - 1 : 0];

    SIM_ASSERT(from <= payload->bytes && bytes <= payload->bytes - from,
               "bytes [%u, + %u) of a payload of %u", from, bytes, payload->bytes);
    if (bytes == 0)
        return true;
    for (const struct payload_extent *e = extent_of(payload, &from); bytes > 0; e++) {
        const uint32_t here = SIM_MIN(bytes, e->bytes - from);
        const bool fits = e->raw_bytes == 0
                              ? append(to, payload_mark_add(e->mark, from), here, 0)
                              : append_word(to, extent_word(e, from), here,
                                            from < e->raw_bytes ? SIM_MIN(e->raw_bytes - from, here)
                                                                : 0);
        if (!fits)
            return give_up(to, n, &last, before);
        bytes -= here;
        from = 0;
    }
    return true;
}

/* ---- Lines in memory ------------------------------------------------------------------------- */

/* How far from `from` on, up to `to`, a line holds what goes on from a mark before: nothing, or the
 * stream's bytes (of byte `from` it would be `mark`). */
static unsigned goes_on_until(const uint8_t *line, unsigned from, unsigned to, uint64_t mark)
{
    unsigned x = from;

    while (x < to) {
        const unsigned n = SIM_MIN(MARK_BYTES, to - x);
        const uint64_t word = word_at(line + x, n);
        if (word != 0) {
            const uint64_t of_stream = payload_word(mark + (x - from));
            for (unsigned i = 0; i < n; i++) {
                const uint8_t byte = (uint8_t)(word >> 8 * i);
                if (byte != 0 && byte != (uint8_t)(of_stream >> 8 * i))
                    return x + i;
            }
        }
        x += n;
    }
    return to;
}

/* The place of the last eight bytes of a stream that begin before `offset`, or `offset`. */
static unsigned mark_before(const uint8_t *line, unsigned offset, uint64_t *mark)
{
    for (unsigned s = SIM_MIN(offset, (unsigned)LINE_BYTES - MARK_BYTES + 1); s-- > 0;) {
        const uint64_t word = word_at(line + s, MARK_BYTES);
        if (word == 0) /* and so none of those that overlap it */
            s -= SIM_MIN(s, MARK_BYTES - 1);
        else if ((*mark = payload_word_mark(word)) != 0)
            return s;
    }
    return offset;
}

/* The first eight bytes of a stream from a place on, up to `end`, or that. */
static unsigned mark_behind(const uint8_t *line, unsigned from, unsigned end)
{
    while (from + MARK_BYTES <= end) {
        const uint64_t word = word_at(line + from, MARK_BYTES);
        if (word != 0 && payload_word_mark(word) != 0)
            return from;
        from += word == 0 ? MARK_BYTES : 1;
    }
    return end;
}

unsigned payload_line_run(const uint8_t *line, unsigned offset, unsigned bytes, uint64_t *mark)
{
    const unsigned end = offset + bytes;
    uint64_t first = bytes >= MARK_BYTES ? payload_word_mark(word_at(line + offset, MARK_BYTES))
                                         : 0;

    if (first != 0) {
        *mark = first;
        return goes_on_until(line, offset + MARK_BYTES, end, first + MARK_BYTES) - offset;
    }
    const unsigned before = mark_before(line, offset, &first);
    if (before < offset) {
        const unsigned until = goes_on_until(line, before + MARK_BYTES, end, first + MARK_BYTES);
        if (until > offset) {
            *mark = first + (offset - before);
            return until - offset;
        }
    }
    *mark = 0;
    return mark_behind(line, offset + 1, end) - offset;
}

void payload_line_put(uint8_t *line, unsigned offset, uint64_t mark, unsigned bytes)
{
    const uint64_t word = payload_word(mark);
    const unsigned known = SIM_MIN(MARK_BYTES, bytes);

    memcpy(line + offset, &word, known);
    memset(line + offset + known, 0, bytes - known);
}
