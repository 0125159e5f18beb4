/*
 * Models: the layout of Ethernet II, IPv4, TCP and UDP headers and their checksums, over the real
 *   bytes of the headers and the marks of the payload.
 * Does not model: VLAN tags, IPv6, IP options beyond skipping them; fragments have no ports.
 * Sources: RFC 791, 793, 768, 1071; the layer 3+4 hash: docs/models/ether.md.
 */
#include "models/ether/ether_packet.h"

#define ETHER_HEADER  14u
#define IPV4_HEADER   20u
#define TCP_HEADER    20u
#define UDP_HEADER    8u
#define IPV4_FRAGMENT 0x3fffu /* more fragments, or an offset */

static void parse_l4(const uint8_t *header, uint32_t header_bytes, struct ether_packet *packet)
{
    uint32_t offset = packet->l4_offset;
    bool fragment = (ether_get16(header + packet->l3_offset + 6) & IPV4_FRAGMENT) != 0;
    if (fragment)
        return;
    if (packet->flow.protocol == IP_PROTOCOL_TCP && header_bytes >= offset + TCP_HEADER)
        packet->l4_header_bytes = (uint16_t)(4 * (header[offset + 12] >> 4));
    else if (packet->flow.protocol == IP_PROTOCOL_UDP)
        packet->l4_header_bytes = UDP_HEADER;
    else
        return;
    if (packet->l4_header_bytes < UDP_HEADER || header_bytes < offset + packet->l4_header_bytes)
        return;
    packet->l4 = true;
    packet->flow.source_port = ether_get16(header + offset);
    packet->flow.destination_port = ether_get16(header + offset + 2);
}

void ether_packet_parse(const uint8_t *header, uint32_t header_bytes, struct ether_packet *packet)
{
    *packet = (struct ether_packet){ 0 };
    if (header_bytes < ETHER_HEADER)
        return;
    packet->destination_mac = ether_get_mac(header);
    packet->source_mac = ether_get_mac(header + 6);
    packet->type = ether_get16(header + 12);
    if (packet->type != ETHER_TYPE_IPV4 || header_bytes < ETHER_HEADER + IPV4_HEADER)
        return;
    uint32_t ip_bytes = 4u * (header[ETHER_HEADER] & 0xfu);
    if (header[ETHER_HEADER] >> 4 != 4 || ip_bytes < IPV4_HEADER ||
        header_bytes < ETHER_HEADER + ip_bytes)
        return;
    packet->ipv4 = true;
    packet->l3_offset = ETHER_HEADER;
    packet->l4_offset = (uint16_t)(ETHER_HEADER + ip_bytes);
    packet->flow.protocol = header[ETHER_HEADER + 9];
    packet->flow.source_ip = ether_get32(header + ETHER_HEADER + 12);
    packet->flow.destination_ip = ether_get32(header + ETHER_HEADER + 16);
    parse_l4(header, header_bytes, packet);
}

uint32_t ether_packet_hash_l34(const struct ether_packet *packet)
{
    const struct ether_flow *flow = &packet->flow;
    uint32_t hash;
    if (packet->ipv4)
        hash = ((uint32_t)flow->source_port << 16 | flow->destination_port) ^ flow->source_ip ^
               flow->destination_ip;
    else
        hash = (uint32_t)(packet->source_mac ^ packet->destination_mac) ^ packet->type;
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    return hash >> 1; /* the lowest bit says little: peers count their ports up together */
}

/* ---- Checksums ------------------------------------------------------------------------------- */

static uint64_t sum_bytes(const uint8_t *at, uint32_t bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i + 1 < bytes; i += 2)
        sum += ether_get16(at + i);
    if ((bytes & 1) != 0)
        sum += (uint64_t)at[bytes - 1] << 8;
    return sum;
}

static uint64_t sum_words(uint64_t v)
{
    return (v & 0xffff) + (v >> 16 & 0xffff) + (v >> 32 & 0xffff) + (v >> 48);
}

static uint16_t fold(uint64_t sum)
{
    sum = sum_words(sum);
    sum = sum_words(sum);
    sum = sum_words(sum);
    return (uint16_t)~sum;
}

uint16_t ether_ipv4_checksum(const uint8_t *header, const struct ether_packet *packet)
{
    return fold(
        sum_bytes(header + packet->l3_offset, (uint32_t)(packet->l4_offset - packet->l3_offset)));
}

/* Of the pseudo header, and of the header bytes from that of TCP or UDP on. */
static uint64_t l4_header_sum(const struct ether_frame *frame, const struct ether_packet *packet)
{
    uint32_t bytes = frame->header_bytes - (uint32_t)packet->l4_offset;
    uint64_t sum = sum_bytes(frame->header + packet->l4_offset, bytes);
    sum += sum_words(packet->flow.source_ip) + sum_words(packet->flow.destination_ip);
    return sum + packet->flow.protocol + bytes + frame->payload.bytes;
}

uint16_t ether_l4_checksum_of_bytes(const struct ether_frame *frame,
                                    const struct ether_packet *packet, const uint8_t *payload)
{
    uint64_t sum = l4_header_sum(frame, packet),
             of_payload = sum_bytes(payload, frame->payload.bytes);
    bool odd = ((frame->header_bytes - (uint32_t)packet->l4_offset) & 1) != 0;
    if (odd) /* the payload's bytes stand in the other halves of the words */
        of_payload = sum_words(of_payload) << 8;
    return fold(sum + of_payload);
}

uint16_t ether_l4_checksum(const struct ether_frame *frame, const struct ether_packet *packet)
{
    uint64_t sum = l4_header_sum(frame, packet);
    for (uint32_t i = 0; i < frame->payload.n; i++) {
        const struct payload_extent *extent = &frame->payload.extent[i];
        sum += sum_words(sum_words(extent->mark) * extent->bytes);
    }
    return fold(sum);
}

void ether_ipv4_checksum_set(uint8_t *header, const struct ether_packet *packet)
{
    ether_put16(header + packet->l3_offset + 10, 0);
    ether_put16(header + packet->l3_offset + 10, ether_ipv4_checksum(header, packet));
}

void ether_l4_checksum_set(struct ether_frame *frame, const struct ether_packet *packet)
{
    uint8_t *at = frame->header + packet->l4_offset +
                  (packet->flow.protocol == IP_PROTOCOL_TCP ? 16 : 6);
    ether_put16(at, 0);
    ether_put16(at, ether_l4_checksum(frame, packet));
}
