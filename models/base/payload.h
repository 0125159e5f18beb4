/*
 * Bulk payload with `payload = "tag"` (DESIGN.md, section 3), carried by things that do not keep
 * its alignment in cache lines: packets, copies. Payload consists of streams; a mark names a stream
 * and a position in it.
 *
 * In memory each byte of a stream is a function of stream and position (payload_word()) and is
 * never zero. Of each cache line that a range overlaps, the first min(8, overlap) bytes are stored
 * and the rest of the overlap is zero, which means: continues from the bytes before. So at every
 * boundary between ranges, however short, bytes of the streams are stored, and any eight
 * consecutive ones determine the mark. Outside memory the same content is a list of extents.
 *
 * Stream 0 is memory without a mark: its mark is 0 at every position, its bytes are zero.
 * Not carried by packets and devices: if a second stream, or real bytes, begin within a line, those
 * of their bytes that lie beyond the first eight of the line.
 */
#ifndef MODELS_BASE_PAYLOAD_H
#define MODELS_BASE_PAYLOAD_H

#include "models/base/address.h"

#define PAYLOAD_STREAM_SHIFT 43
#define PAYLOAD_MARK_BYTES   8u /* consecutive bytes that determine the mark */
#define PAYLOAD_EXTENTS_MAX  12u

/* ---- Marks ----------------------------------------------------------------------------------- */

/* stream: 0 to 32767; position: modulo 2^43. The highest bit is set unless the stream is 0. */
static inline uint64_t payload_mark(uint16_t stream, uint64_t position)
{
    const uint64_t of_stream = (uint64_t)stream << PAYLOAD_STREAM_SHIFT | UINT64_C(1) << 63;
    return stream == 0 ? 0 : of_stream | (position & ((UINT64_C(1) << PAYLOAD_STREAM_SHIFT) - 1));
}
/* The mark `bytes` after this one. */
static inline uint64_t payload_mark_add(uint64_t mark, uint64_t bytes)
{
    return mark == 0 ? 0 : mark + bytes;
}
/* The mark `bytes` before this one. */
static inline uint64_t payload_mark_back(uint64_t mark, uint64_t bytes)
{
    return mark == 0 ? 0 : mark - bytes;
}

/* ---- Bytes of a stream -------------------------------------------------------------------------
 * Eight of them, from a position that is a multiple of eight on, hold the mark without its highest
 * bit and its three lowest: in the first seven bytes seven bits each, the lowest first, below a bit
 * that is set; in the last byte the remaining six below the bits 01, by which it is found.
 */
#define PAYLOAD_FRAME_BITS UINT64_C(0x4080808080808080)

/* An iterator over the first eight bytes of each line. Of stream 0 all bytes are zero. */
struct payload_words {
    uint64_t word, next, step, frame;
    unsigned shift;
};

static inline uint64_t payload_spread(uint64_t x)
{
    x = (x & UINT64_C(0x0000000fffffff)) | (x & UINT64_C(0xfffffff0000000)) << 4;
    x = (x & UINT64_C(0x00003fff00003fff)) | (x & UINT64_C(0x0fffc0000fffc000)) << 2;
    return (x & UINT64_C(0x007f007f007f007f)) | (x & UINT64_C(0x3f803f803f803f80)) << 1;
}
/* Starts at the mark. */
static inline struct payload_words payload_words(uint64_t mark)
{
    struct payload_words w = { 0 };

    if (SIM_LIKELY(mark != 0)) {
        w.word = payload_spread((mark & ~(UINT64_C(1) << 63)) >> 3) | PAYLOAD_FRAME_BITS;
        w.next = (w.word + 1) | PAYLOAD_FRAME_BITS; /* a carry runs over the framing bits */
        w.step = LINE_BYTES / 8;
        w.frame = PAYLOAD_FRAME_BITS;
        w.shift = 8 * (unsigned)(mark & 7);
    }
    return w;
}
static inline uint64_t payload_words_here(const struct payload_words *w)
{
    return w->word >> w->shift | w->next << 1 << (63 - w->shift);
}
static inline void payload_words_line(struct payload_words *w)
{
    w->word = (w->word + w->step) | w->frame;
    w->next = (w->next + w->step) | w->frame;
}
/* The eight bytes from the mark on; the first byte is the lowest. */
static inline uint64_t payload_word(uint64_t mark)
{
    const struct payload_words w = payload_words(mark);
    return payload_words_here(&w);
}
/* The mark of eight bytes; 0: they do not belong to one stream. */
uint64_t payload_word_mark(uint64_t word);
/* Whether the n low bytes of the words are equal. */
static inline bool payload_same(uint64_t a, uint64_t b, unsigned n)
{
    return n >= 8 ? a == b : ((a ^ b) & ((UINT64_C(1) << 8 * n) - 1)) == 0;
}

/* The first difference found by a check: the mark found, or eight bytes that have none, and the
 * mark expected. */
struct payload_difference {
    uint64_t found, expected;
};

/* ---- Extents --------------------------------------------------------------------------------- */

struct payload_extent {
    uint64_t mark; /* of the first byte, if raw_bytes is 0 */
    uint32_t bytes;
    uint8_t raw_bytes; /* else so many bytes that began it in memory (1 .. 8, the first is the
                          lowest): too few to tell a mark, or of no stream */
};
/* Valid when zero: empty. Neighbouring extents that go on from each other are one. */
struct payload {
    uint32_t bytes;
    uint32_t n;
    struct payload_extent extent[PAYLOAD_EXTENTS_MAX];
};

/* Appends the content of a buffer that was read from `address`, which tells where lines begin.
 * False: the extents do not fit; `payload` is unchanged. */
bool payload_gather(struct payload *payload, const uint8_t *buffer, uint64_t address,
                    uint32_t bytes);
/* Writes bytes [from, from + bytes) of the content into a buffer for `address`: the first
 * min(8, overlap) bytes of each line's overlap. Leaves the others untouched. */
void payload_scatter(const struct payload *payload, uint32_t from, uint32_t bytes, uint8_t *buffer,
                     uint64_t address);
/* Writes the first `bytes` bytes of the content, all of them, to `to`. */
void payload_bytes(const struct payload *payload, uint32_t bytes, uint8_t *to);
/* Appends bytes [from, from + bytes) of `payload` to `to`, which is another object. False: the
 * extents do not fit; `to` is unchanged. */
bool payload_slice(struct payload *to, const struct payload *payload, uint32_t from,
                   uint32_t bytes);

/* ---- Lines in memory ------------------------------------------------------------------------- */
/* Returns how many of the bytes [offset, offset + bytes) of a line belong together, at least 1.
 * *mark: of the first of them; 0 if they belong to no stream, or are too few to determine one and
 * the bytes before them in the line do not either. */
unsigned payload_line_run(const uint8_t *line, unsigned offset, unsigned bytes, uint64_t *mark);
/* Puts a stream's bytes from `mark` on at [offset, offset + bytes) of a line. */
void payload_line_put(uint8_t *line, unsigned offset, uint64_t mark, unsigned bytes);

#endif
