/*
 * Payload in tag mode.
 *
 * Models      where which bytes of which stream are.
 * Does not    model the bytes themselves; two streams in one line (see payload.h).
 *   model
 * Timing      none.
 * Sources     none.
 */
#include "models/payload.h"

#include <string.h>

#define TAG_BYTES 8u

static uint64_t word_at(const uint8_t *bytes, unsigned n)
{
    uint64_t word = 0;

    if (SIM_LIKELY(n == TAG_BYTES))
        memcpy(&word, bytes, TAG_BYTES);
    else
        memcpy(&word, bytes, n);
    return word;
}

static bool has_stream(uint64_t word)
{
    return word >> 63 != 0;
}

bool payload_fits_cut(uint64_t word, uint64_t tag, unsigned n)
{
    unsigned starts = 0; /* bit s: up to here it may be that the last tag began at byte s */

    for (unsigned i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)(word >> 8 * i);
        unsigned then = 0;
        for (unsigned s = 0; s <= i; s++)
            if ((s == i || (starts & 1u << s) != 0) &&
                (uint8_t)(payload_tag_add(tag, s) >> 8 * (i - s)) == byte)
                then |= 1u << s;
        /* A tag begins where one ended or at the very start, not out of nothing. */
        if (i > 0 && starts == 0)
            return false;
        starts = then;
    }
    return starts != 0;
}

/* Of an extent whose tag may be known in part: nothing known but zeros is stream 0. */
static uint64_t extent_tag(const struct payload_extent *e, uint32_t from)
{
    if (e->known_bytes == TAG_BYTES)
        return payload_tag_add(e->tag, from);
    return e->tag == 0 ? 0 : e->tag + from;
}

/* ---- Extents -----------------------------------------------------------------------------------
 */

/* Makes the last extent longer if what follows goes on from it. */
static bool merge(struct payload_extent *last, uint64_t tag, uint32_t bytes, unsigned known)
{
    if (last->known_bytes == TAG_BYTES) {
        if (!payload_fits(tag, payload_tag_add(last->tag, last->bytes), known))
            return false;
    } else {
        const uint64_t first = payload_tag_back(tag, last->bytes);
        if (known < TAG_BYTES || !payload_fits(last->tag, first, last->known_bytes))
            return false;
        last->tag = first;
        last->known_bytes = TAG_BYTES;
    }
    last->bytes += bytes;
    return true;
}

/* A first tag that was put together from short ones is known only with the line after it. */
static bool merge_cut_tag(struct payload_extent *last, uint64_t tag, uint32_t bytes)
{
    const uint64_t first = payload_tag_back(tag, last->bytes);

    if (last->known_bytes != TAG_BYTES || last->bytes > LINE_BYTES || !has_stream(first) ||
        !payload_fits(last->tag, first, TAG_BYTES))
        return false;
    last->tag = first;
    last->bytes += bytes;
    return true;
}

static bool append(struct payload *p, uint64_t tag, uint32_t bytes, unsigned known)
{
    struct payload_extent *last = p->n > 0 ? &p->extent[p->n - 1] : NULL;

    if (last == NULL || (!merge(last, tag, bytes, known) &&
                         !(known == TAG_BYTES && merge_cut_tag(last, tag, bytes)))) {
        if (p->n == PAYLOAD_EXTENTS_MAX)
            return false;
        p->extent[p->n++] = (struct payload_extent){ tag, bytes, (uint8_t)known };
    }
    p->bytes += bytes;
    return true;
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

    if (last == NULL || last->known_bytes != TAG_BYTES)
        return 0;
    uint64_t tag = payload_tag_add(last->tag, last->bytes);
    const uint64_t step = payload_tag_add(tag, LINE_BYTES) - tag;
    for (; at + LINE_BYTES <= bytes && word_at(buffer + at, TAG_BYTES) == tag; at += LINE_BYTES)
        tag += step;
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
        const unsigned known = SIM_MIN(here, TAG_BYTES);
        if (!append(payload, word_at(buffer + at, known), here, known))
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

/* The tags of the whole lines that lie in the extent and do not end it; returns their bytes. */
static uint32_t scatter_lines(const struct payload_extent *e, uint32_t from, uint32_t bytes,
                              uint8_t *buffer)
{
    uint64_t tag = extent_tag(e, from);
    const uint64_t step = extent_tag(e, from + LINE_BYTES) - tag;
    uint32_t at = 0;

    for (; at + LINE_BYTES <= bytes && from + at + LINE_BYTES < e->bytes; at += LINE_BYTES) {
        memcpy(buffer + at, &tag, TAG_BYTES);
        tag += step;
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
        /* The tag of the first byte; those of extents that begin within it cut it off. */
        for (uint32_t done = 0; done < here;) {
            const uint32_t of_extent = SIM_MIN(here - done, e->bytes - from);
            if (done < TAG_BYTES) {
                const uint64_t tag = extent_tag(e, from);
                memcpy(buffer + at + done, &tag, SIM_MIN(TAG_BYTES - done, of_extent));
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
        if (!append(to, extent_tag(e, from), here, SIM_MIN(e->known_bytes, here)))
            return give_up(to, n, &last, before);
        bytes -= here;
        from = 0;
    }
    return true;
}

/* ---- Lines in memory ---------------------------------------------------------------------------
 */

/* [from, to) holds what follows from a tag before: nothing, or tags that go on from it (of byte
 * `from` it would be `tag`). */
static bool follows(const uint8_t *line, unsigned from, unsigned to, uint64_t tag)
{
    for (unsigned x = from; x < to;) {
        unsigned back = 0, n = 0;
        if (x + TAG_BYTES <= to && word_at(line + x, TAG_BYTES) == 0) {
            x += TAG_BYTES;
            continue;
        }
        if (line[x] == 0) {
            x++;
            continue;
        }
        /* Low bytes of the tag may be zero, too. */
        for (; n == 0 && back < TAG_BYTES && back <= x - from; back++) {
            const unsigned left = SIM_MIN(TAG_BYTES, to - (x - back));
            if (payload_same(word_at(line + x - back, left), tag + (x - back - from), left))
                n = left - back;
        }
        if (n == 0)
            return false;
        x += n;
    }
    return true;
}

/* What follows at `offset` from a tag before it; `otherwise` if there is none. */
static uint64_t tag_from_before(const uint8_t *line, unsigned offset, unsigned bytes,
                                uint64_t otherwise)
{
    for (unsigned s = SIM_MIN(offset - 1, (unsigned)LINE_BYTES - TAG_BYTES);; s--) {
        const uint64_t word = word_at(line + s, TAG_BYTES);
        if (has_stream(word) &&
            follows(line, s + TAG_BYTES, offset + bytes, payload_tag_add(word, TAG_BYTES)))
            return payload_tag_add(word, offset - s);
        if (s == 0)
            return otherwise;
    }
}

/* The same for a tag that the line's end cuts: it is what it would be if this is that at `offset`.
 */
static bool cut_before(const uint8_t *line, unsigned offset, uint64_t tag)
{
    for (unsigned s = offset - 1; s > LINE_BYTES - TAG_BYTES; s--) {
        const unsigned n = (unsigned)LINE_BYTES - s;
        if (payload_same(word_at(line + s, n), tag - (offset - s), n))
            return true;
    }
    return false;
}

uint64_t payload_line_tag(const uint8_t *line, unsigned offset, unsigned bytes, uint64_t after)
{
    const unsigned known = SIM_MIN(TAG_BYTES, bytes);
    const uint64_t here = word_at(line + offset, known);

    if (offset == 0 ||
        (known == TAG_BYTES && has_stream(here) &&
         follows(line, offset + TAG_BYTES, offset + bytes, payload_tag_add(here, TAG_BYTES))))
        return here;
    if (known == TAG_BYTES || here == 0)
        return tag_from_before(line, offset, bytes, here);
    /* The bytes of a tag that the line's end cuts, or the last ones of a tag before. */
    if (!has_stream(after) || payload_fits(here, after - bytes, known))
        return here;
    return tag_from_before(line, offset, bytes, here) == after - bytes ||
                   cut_before(line, offset, after - bytes)
               ? after - bytes
               : here;
}

/* Of a tag that was cut where the next begins, the bytes that are there are those of the next one's
 * predecessor: that is put in place of both. Returns by how many bytes it lies before. */
static unsigned complete_cut_tag(const uint8_t *line, unsigned offset, uint64_t tag)
{
    for (unsigned n = SIM_MIN(offset, TAG_BYTES - 1); n > 0; n--)
        if (payload_fits(word_at(line + offset - n, n), tag - n, n))
            return n;
    return 0;
}

void payload_line_put(uint8_t *line, unsigned offset, uint64_t tag, unsigned bytes)
{
    if (bytes >= TAG_BYTES && has_stream(tag)) {
        for (unsigned n; (n = complete_cut_tag(line, offset, tag)) > 0; tag -= n) {
            offset -= n;
            bytes += n;
        }
    }
    const unsigned known = SIM_MIN(TAG_BYTES, bytes);
    memcpy(line + offset, &tag, known);
    memset(line + offset + known, 0, bytes - known);
}
