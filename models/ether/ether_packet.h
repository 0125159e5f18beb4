/*
 * What lies in a frame's header bytes: Ethernet II, IPv4, TCP and UDP (network byte order there,
 * host byte order here), and the checksums.
 */
#ifndef MODELS_ETHER_ETHER_PACKET_H
#define MODELS_ETHER_ETHER_PACKET_H

#include "models/ether/ether.h"

#define ETHER_TYPE_IPV4 0x0800u
#define ETHER_BROADCAST UINT64_C(0xffffffffffff)
#define IP_PROTOCOL_TCP 6u
#define IP_PROTOCOL_UDP 17u

#define TCP_FLAG_FIN 0x01u
#define TCP_FLAG_PSH 0x08u
#define TCP_FLAG_ACK 0x10u
#define TCP_FLAG_CWR 0x80u

/* A flow's 5-tuple: of packets that carry ports. */
struct ether_flow {
    uint32_t source_ip, destination_ip;
    uint16_t source_port, destination_port;
    uint8_t protocol;
};
static inline bool ether_flow_equal(const struct ether_flow *a, const struct ether_flow *b)
{
    return a->source_ip == b->source_ip && a->destination_ip == b->destination_ip &&
           a->source_port == b->source_port && a->destination_port == b->destination_port &&
           a->protocol == b->protocol;
}

struct ether_packet {
    uint64_t destination_mac, source_mac; /* 48 bits, the first byte on the wire on top */
    uint16_t type;
    bool ipv4; /* and its header is whole */
    bool l4;   /* TCP or UDP, not a fragment, and its header is whole: ports are valid */
    struct ether_flow flow; /* ports 0 without l4 */
    uint16_t l3_offset, l4_offset, l4_header_bytes;
};

static inline uint16_t ether_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}
static inline uint32_t ether_get32(const uint8_t *at)
{
    return (uint32_t)ether_get16(at) << 16 | ether_get16(at + 2);
}
static inline uint64_t ether_get_mac(const uint8_t *at)
{
    return (uint64_t)ether_get16(at) << 32 | ether_get32(at + 2);
}
static inline void ether_put16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}
static inline void ether_put32(uint8_t *at, uint32_t v)
{
    ether_put16(at, (uint16_t)(v >> 16));
    ether_put16(at + 2, (uint16_t)v);
}

/* Looks at the header bytes; fields that are not there are 0. */
void ether_packet_parse(const uint8_t *header, uint32_t header_bytes, struct ether_packet *packet);

/* The hash that link aggregation and bonding call layer 3+4: the same for all packets of a flow. */
uint32_t ether_packet_hash_l34(const struct ether_packet *packet);

/* RFC 1071 over the IPv4 header as it lies there: 0 if its checksum is right. */
uint16_t ether_ipv4_checksum(const uint8_t *header, const struct ether_packet *packet);
/*
 * The TCP or UDP checksum as it lies in the frame: 0 if it is right. Pseudo header and header as
 * RFC 1071 has it; the payload, which has no bytes in tag mode, counts with its extents: of each,
 * its length times its tag, in 16-bit words. So it depends on what the payload is and on its order.
 */
uint16_t ether_l4_checksum(const struct ether_frame *frame, const struct ether_packet *packet);
/* Likewise, but as RFC 1071 has it over the payload's bytes (payload_bytes()), which the caller
 * gives: what a checksum in the frame must be for these bytes. */
uint16_t ether_l4_checksum_of_bytes(const struct ether_frame *frame,
                                    const struct ether_packet *packet, const uint8_t *payload);
/* Write them. The frame's lengths must be right. */
void ether_ipv4_checksum_set(uint8_t *header, const struct ether_packet *packet);
void ether_l4_checksum_set(struct ether_frame *frame, const struct ether_packet *packet);

#endif
