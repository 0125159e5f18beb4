/*
 * Bulk payload in tag mode (DESIGN.md, section 3) on its way through something that does not keep
 * its alignment: a packet, a copy. What is carried are streams: of a place the mark says which
 * stream lies there and at which position of it.
 *
 * In memory a stream is bytes, each a function of stream and position alone (payload_word()); of
 * each cache line that a range overlaps the first min(8, overlap) bytes hold them and the rest of
 * the overlap is zero, which no byte of a stream is: it goes on from those before. So wherever
 * ranges meet, and however short they are, what lies there are bytes of the streams, and any eight
 * in a row tell the mark. Elsewhere the same content is a list of extents.
 *
 * Stream 0 is memory that nobody has stamped; its mark is 0 wherever one looks, its bytes are zero.
 * Not carried by packets and devices: where a second stream, or real bytes, begin within a line,
 * what of those lies behind the first eight bytes.
 */
#ifndef MODELS_BASE_PAYLOAD_H
#define MODELS_BASE_PAYLOAD_H

#include "models/base/address.h"

#define PAYLOAD_STREAM_SHIFT 43
#define PAYLOAD_MARK_BYTES   8u /* of a stream, that tell the mark */
#define PAYLOAD_EXTENTS_MAX  12u

/* ---- Marks ----------------------------------------------------------------------------------- */

/* stream: 1 .. 32767, or 0; position: modulo 2^43. The highest bit says that there is a stream. */
static inline uint64_t payload_mark(uint16_t stream, uint64_t position)
{
    const uint64_t of_stream = (uint64_t)stream << PAYLOAD_STREAM_SHIFT | UINT64_C(1) << 63;
    return stream == 0 ? 0 : of_stream | (position & ((UINT64_C(1) << PAYLOAD_STREAM_SHIFT) - 1));
}
/* The mark `bytes` further on. */
static inline uint64_t payload_mark_add(uint64_t mark, uint64_t bytes)
{
    return mark == 0 ? 0 : mark + bytes;
}
/* The mark `bytes` before. */
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

/* The next eight bytes, and those after them; of stream 0 all are zero. */
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
/* The bytes of a stream from the mark on, of each line that it goes through from now on. */
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
/* The eight bytes from the mark on; the first is the lowest. */
static inline uint64_t payload_word(uint64_t mark)
{
    const struct payload_words w = payload_words(mark);
    return payload_words_here(&w);
}
/* Their mark, or 0: they are not of one stream. */
uint64_t payload_word_mark(uint64_t word);
/* The n low bytes of the words are the same. */
static inline bool payload_same(uint64_t a, uint64_t b, unsigned n)
{
    return n >= 8 ? a == b : ((a ^ b) & ((UINT64_C(1) << 8 * n) - 1)) == 0;
}

/* What lies where a stream should: a mark, or eight bytes that are none. */
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

/* Appends the content of a buffer whose bytes lie at `address` in memory (which tells where lines
 * begin). False: more extents than fit; the content is then as it was. */
bool payload_gather(struct payload *payload, const uint8_t *buffer, uint64_t address,
                    uint32_t bytes);
/* Writes bytes [from, from + bytes) of the content for a place at `address`: the first
 * min(8, overlap) bytes of each line's overlap; others are not touched. */
void payload_scatter(const struct payload *payload, uint32_t from, uint32_t bytes, uint8_t *buffer,
                     uint64_t address);
/* Bytes [from, from + bytes) of `payload` appended to `to`, another one. False: more extents than
 * fit; `to` is then as it was. */
bool payload_slice(struct payload *to, const struct payload *payload, uint32_t from,
                   uint32_t bytes);

/* ---- Lines in memory ------------------------------------------------------------------------- */
/* How many of the bytes [offset, offset + bytes) of a line belong together, at least 1: *mark is
 * that of the first of them if they are a stream's; 0 if they are none's or are too few to tell,
 * and nothing before them does. */
unsigned payload_line_run(const uint8_t *line, unsigned offset, unsigned bytes, uint64_t *mark);
/* A stream's bytes from `mark` on are put at [offset, offset + bytes) of a line. */
void payload_line_put(uint8_t *line, unsigned offset, uint64_t mark, unsigned bytes);

#endif
