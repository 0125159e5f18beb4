/* Sources: draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface description),
 * 4.3 (enhanced packet), 3.5 (options); link type 1, Ethernet without FCS
 * (tcpdump.org/linktypes). */
#include "sim/trace/pcapng.h"

#include <string.h>

enum { BLOCK_INTERFACE = 1, BLOCK_PACKET = 6, BLOCK_SECTION = 0x0a0d0d0a };
enum { OPTION_END = 0, OPTION_COMMENT = 1, OPTION_SECTION_APPLICATION = 4 };
enum { OPTION_INTERFACE_NAME = 2, OPTION_INTERFACE_SPEED = 8, OPTION_INTERFACE_RESOLUTION = 9 };
enum { OPTION_PACKET_FLAGS = 2 };

#define BYTE_ORDER_MAGIC   0x1a2b3c4du
#define LINK_TYPE_ETHERNET 1u
#define NANOSECONDS        9u               /* time stamps count 10^-9 s */
#define PACKET_FIXED_BYTES (28u + 12u + 4u) /* header; flags and end of options; length again */

static uint8_t *put16(uint8_t *to, uint32_t value)
{
    const uint16_t v = (uint16_t)value;

    memcpy(to, &v, sizeof(v));
    return to + sizeof(v);
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
    memcpy(to, &value, sizeof(value));
    return to + sizeof(value);
}

/* Padded with zeros to 32 bits. */
static uint8_t *put_bytes(uint8_t *to, const void *data, size_t bytes)
{
    const size_t padding = -bytes & 3;

    if (bytes != 0)
        memcpy(to, data, bytes);
    memset(to + bytes, 0, padding);
    return to + bytes + padding;
}

static uint8_t *put_option(uint8_t *to, unsigned code, const void *data, size_t bytes)
{
    to = put16(to, code);
    to = put16(to, (uint32_t)bytes);
    return put_bytes(to, data, bytes);
}

static uint8_t *put_text(uint8_t *to, unsigned code, const char *text)
{
    if (text == NULL || *text == '\0')
        return to;
    return put_option(to, code, text, strnlen(text, PCAPNG_TEXT_BYTES_MAX));
}

/* Ends the options, and writes the block's length at both ends. */
static size_t end_block(uint8_t *block, uint8_t *to)
{
    to = put_option(to, OPTION_END, NULL, 0);
    const size_t bytes = (size_t)(to - block) + 4;
    put32(block + 4, (uint32_t)bytes);
    put32(to, (uint32_t)bytes);
    return bytes;
}

size_t pcapng_section(uint8_t *block, const char *application, const char *comment)
{
    uint8_t *to = put32(put32(block, BLOCK_SECTION), 0);

    to = put32(to, BYTE_ORDER_MAGIC);
    to = put16(put16(to, 1), 0);                   /* version 1.0 */
    to = put32(put32(to, UINT32_MAX), UINT32_MAX); /* length of the section: unknown */
    to = put_text(to, OPTION_SECTION_APPLICATION, application);
    to = put_text(to, OPTION_COMMENT, comment);
    return end_block(block, to);
}

size_t pcapng_interface(uint8_t *block, const char *name, uint64_t speed_bit_s, uint32_t snap_bytes)
{
    const uint8_t resolution = NANOSECONDS;
    uint8_t *to = put32(put32(block, BLOCK_INTERFACE), 0);

    to = put32(put16(put16(to, LINK_TYPE_ETHERNET), 0), snap_bytes);
    to = put_text(to, OPTION_INTERFACE_NAME, name);
    to = put_option(to, OPTION_INTERFACE_SPEED, &speed_bit_s, sizeof(speed_bit_s));
    to = put_option(to, OPTION_INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
    return end_block(block, to);
}

size_t pcapng_packet_bytes(const struct pcapng_packet *packet)
{
    return PACKET_FIXED_BYTES + ((size_t)packet->bytes + 3) / 4 * 4;
}

size_t pcapng_packet(uint8_t *block, const struct pcapng_packet *packet)
{
    const uint64_t at_ns = packet->at_ps / SIM_PS_PER_NS;
    const uint32_t flags = (uint32_t)packet->direction;
    uint8_t *to = put32(put32(block, BLOCK_PACKET), 0);

    to = put32(to, packet->interface);
    to = put32(put32(to, (uint32_t)(at_ns >> 32)), (uint32_t)at_ns);
    to = put32(put32(to, packet->bytes), packet->wire_bytes);
    to = put_bytes(to, packet->data, packet->bytes);
    to = put_option(to, OPTION_PACKET_FLAGS, &flags, sizeof(flags));
    return end_block(block, to);
}
