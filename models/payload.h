/*
 * Bulk payload in tag mode (DESIGN.md, section 3) on its way through something that does not keep
 * its alignment: a packet, a copy. In memory, of each cache line that a range overlaps the first
 * min(8, overlap) bytes hold a tag: the stream's number and the position in it of the byte that
 * lies there. Elsewhere the same content is a list of extents.
 *
 * Stream 0 is memory that nobody has stamped; its tag is 0 wherever one looks.
 */
#ifndef MODELS_PAYLOAD_H
#define MODELS_PAYLOAD_H

#include "models/address.h"

#define PAYLOAD_STREAM_SHIFT 48
#define PAYLOAD_EXTENTS_MAX  12u

static inline uint64_t payload_tag(uint16_t stream, uint64_t position)
{
    return (uint64_t)stream << PAYLOAD_STREAM_SHIFT |
           (position & ((UINT64_C(1) << PAYLOAD_STREAM_SHIFT) - 1));
}
/* The tag `bytes` further on. */
static inline uint64_t payload_tag_add(uint64_t tag, uint64_t bytes)
{
    return tag >> PAYLOAD_STREAM_SHIFT == 0 ? tag : tag + bytes;
}

struct payload_extent {
    uint64_t tag;
    uint32_t bytes;
    uint8_t known_bytes; /* how many low bytes of the tag are known: 8, fewer if the whole extent is
                            shorter than that */
};
struct payload {
    uint32_t bytes;
    uint32_t n;
    struct payload_extent extent[PAYLOAD_EXTENTS_MAX];
};

/* Appends the content of a buffer whose bytes lie at `address` in memory (which tells where lines
 * begin). False: more extents than fit, or two tags of one line that do not go together. */
bool payload_gather(struct payload *payload, const uint8_t *buffer, uint64_t address,
                    uint32_t bytes);
/* Writes the tags of bytes [from, from + bytes) of the content for a place at `address`. */
void payload_scatter(const struct payload *payload, uint32_t from, uint32_t bytes, uint8_t *buffer,
                     uint64_t address);
/* Bytes [from, from + bytes) of `payload` appended to `to`. False: more extents than fit. */
bool payload_slice(struct payload *to, const struct payload *payload, uint32_t from,
                   uint32_t bytes);

#endif
