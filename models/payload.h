/*
 * Bulk payload in tag mode (DESIGN.md, section 3) on its way through something that does not keep
 * its alignment: a packet, a copy. In memory, of each cache line that a range overlaps the first
 * min(8, overlap) bytes hold a tag: the stream's number and the position in it of the byte that
 * lies there; the rest of the overlap is zero. Elsewhere the same content is a list of extents.
 *
 * Stream 0 is memory that nobody has stamped; its tag is 0 wherever one looks.
 *
 * Where a range of less than eight bytes in a line meets the next, a tag is cut: the low bytes of
 * one, then those of the next. Within a stream such a mixture is told from a wrong tag by
 * payload_fits(). Not carried: a second stream that begins within a line, after its first eight
 * bytes; a stream written in pieces of less than eight bytes alone, unless each piece travels by
 * itself; a place within a tag from which less than eight bytes are read.
 */
#ifndef MODELS_PAYLOAD_H
#define MODELS_PAYLOAD_H

#include "models/address.h"

#define PAYLOAD_STREAM_SHIFT 48
#define PAYLOAD_EXTENTS_MAX  12u

/* stream: 1 .. 32767, or 0. The highest bit tells a tag from a part of one. */
static inline uint64_t payload_tag(uint16_t stream, uint64_t position)
{
    const uint64_t of_stream = (uint64_t)(stream | 0x8000u) << PAYLOAD_STREAM_SHIFT;
    return stream == 0 ? 0 : of_stream | (position & ((UINT64_C(1) << PAYLOAD_STREAM_SHIFT) - 1));
}
static inline uint16_t payload_stream(uint64_t tag)
{
    return tag >> PAYLOAD_STREAM_SHIFT & 0x7fff;
}
/* The tag `bytes` further on. */
static inline uint64_t payload_tag_add(uint64_t tag, uint64_t bytes)
{
    return tag >> 63 == 0 ? tag : tag + bytes;
}
/* The tag `bytes` before. */
static inline uint64_t payload_tag_back(uint64_t tag, uint64_t bytes)
{
    return tag >> 63 == 0 ? tag : tag - bytes;
}
/* The n low bytes of the words are the same. */
static inline bool payload_same(uint64_t a, uint64_t b, unsigned n)
{
    return n >= 8 ? a == b : ((a ^ b) & ((UINT64_C(1) << 8 * n) - 1)) == 0;
}
/* Of the word in memory n low bytes are known (1 .. 8): they are those of the tag, or of several
 * tags of the stream one after the other. The first byte is the tag's in any case. */
bool payload_fits_cut(uint64_t word, uint64_t tag, unsigned n);
static inline bool payload_fits(uint64_t word, uint64_t tag, unsigned n)
{
    return payload_same(word, tag, n) ||
           ((uint8_t)word == (uint8_t)tag && payload_fits_cut(word, tag, n));
}

struct payload_extent {
    uint64_t tag;
    uint32_t bytes;
    uint8_t known_bytes; /* how many low bytes of the tag are known: 8, fewer if the whole extent is
                            shorter than that */
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
/* Writes the tags of bytes [from, from + bytes) of the content for a place at `address`: the first
 * min(8, overlap) bytes of each line's overlap; others are not touched. */
void payload_scatter(const struct payload *payload, uint32_t from, uint32_t bytes, uint8_t *buffer,
                     uint64_t address);
/* Bytes [from, from + bytes) of `payload` appended to `to`, another one. False: more extents than
 * fit; `to` is then as it was. */
bool payload_slice(struct payload *to, const struct payload *payload, uint32_t from,
                   uint32_t bytes);

/* ---- Lines in memory ---------------------------------------------------------------------------
 */
/* What lies in [offset, offset + bytes) of a line: the tag there, or what follows from one before
 * it in the line. The low min(8, bytes) bytes are known. after: the tag of the byte behind, 0 if
 * that is not known; it helps where less than eight bytes are. */
uint64_t payload_line_tag(const uint8_t *line, unsigned offset, unsigned bytes, uint64_t after);
/* A stream's bytes from `tag` on are put at [offset, offset + bytes) of a line. */
void payload_line_put(uint8_t *line, unsigned offset, uint64_t tag, unsigned bytes);

#endif
