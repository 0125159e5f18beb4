/*
 * What it does: Builds and parses Ethernet, IPv4, TCP and UDP headers; computes the Toeplitz hash
 *   of receive-side scaling. TCP segments carry the timestamp option (12 bytes; 66 bytes of headers
 *   in all), those with SYN the MSS, the window scale and that SACK is permitted, acknowledgements
 *   up to three SACK blocks. IP identification is 0 with DF set.
 * Leaves out: VLAN, IPv6, IP options and fragments (dropped), checksums (left to the NIC, which
 *   reports its result: netdev.h), urgent data.
 * Follows: IEEE 802.3; RFC 791, 793, 768, 2018, 7323; RSS: "Introduction to Receive Side Scaling",
 *   "Verifying the RSS Hash Calculation" (key and test vectors), Microsoft.
 * Costs: Building stores head_bytes bytes, parsing loads them; the caller charges cycles.
 */
#include "logic/net/net_internal.h"

#define IP_AT          ETHER_BYTES
#define L4_AT          (ETHER_BYTES + IPV4_BYTES)
#define IP_TTL         64u
#define IP_DF          0x4000u
#define OPTION_END     0u
#define OPTION_NOP     1u
#define OPTION_MSS     2u
#define OPTION_SCALE   3u
#define OPTION_SACK_OK 4u
#define OPTION_SACK    5u
#define OPTION_TIME    8u
#define TOEPLITZ_BYTES 12u

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

void net_flow_reverse(const struct flow_key *flow, struct flow_key *reverse)
{
    *reverse = (struct flow_key){ .source_ip = flow->destination_ip,
                                  .destination_ip = flow->source_ip,
                                  .source_port = flow->destination_port,
                                  .destination_port = flow->source_port,
                                  .protocol = flow->protocol };
}

/* ---- Building -------------------------------------------------------------------------------- */

static unsigned build_time(const struct sk_buff *skb, uint8_t *p, bool sack_permitted)
{
    p[0] = sack_permitted ? OPTION_SACK_OK : OPTION_NOP;
    p[1] = sack_permitted ? 2 : OPTION_NOP;
    p[2] = OPTION_TIME;
    p[3] = 10;
    put32(p + 4, skb->tcp_tsval);
    put32(p + 8, skb->tcp_tsecr);
    return TCP_TIMESTAMP_BYTES;
}

static unsigned build_sacks(uint8_t *p, const struct tcp_options *options)
{
    const uint8_t head[] = { OPTION_NOP, OPTION_NOP, OPTION_SACK,
                             (uint8_t)(2 + 8 * options->n_sacks) };
    memcpy(p, head, sizeof head);
    for (unsigned i = 0; i < options->n_sacks; i++) {
        put32(p + 4 + 8 * i, options->sack[i].from);
        put32(p + 8 + 8 * i, options->sack[i].to);
    }
    return TCP_SACK_BYTES(options->n_sacks);
}

static unsigned build_tcp(const struct sk_buff *skb, uint8_t *p, const struct tcp_options *options)
{
    unsigned at = TCP_BYTES;
    bool syn = options && options->syn;
    put16(p, skb->flow.source_port);
    put16(p + 2, skb->flow.destination_port);
    put32(p + 4, skb->tcp_seq);
    put32(p + 8, skb->tcp_ack);
    p[13] = skb->tcp_flags;
    put16(p + 14, skb->tcp_window);
    put32(p + 16, 0);
    if (syn) {
        const uint8_t mss[] = { OPTION_MSS, 4, (uint8_t)(options->mss >> 8),
                                (uint8_t)options->mss };
        memcpy(p + at, mss, sizeof mss);
        at += sizeof mss;
    }
    at += build_time(skb, p + at, syn && options->sack_permitted);
    if (syn) {
        const uint8_t scale[] = { OPTION_NOP, OPTION_SCALE, 3, options->window_scale };
        memcpy(p + at, scale, sizeof scale);
        at += sizeof scale;
    } else if (options)
        at += build_sacks(p + at, options);
    p[12] = (uint8_t)(at / 4 << 4);
    return at;
}

static unsigned build_udp(const struct sk_buff *skb, uint8_t *p)
{
    put16(p, skb->flow.source_port);
    put16(p + 2, skb->flow.destination_port);
    put16(p + 4, UDP_BYTES + skb->bytes);
    put16(p + 6, 0);
    return UDP_BYTES;
}

void net_headers_build(struct kernel *kernel, struct sk_buff *skb, const struct net_mac *to,
                       const struct net_mac *from, const struct tcp_options *options)
{
    uint8_t head[NET_HEADER_BYTES];
    uint8_t *ip = head + IP_AT;
    unsigned l4 = skb->flow.protocol == PROTOCOL_TCP ? build_tcp(skb, head + L4_AT, options)
                                                     : build_udp(skb, head + L4_AT);
    memcpy(head, to->byte, NET_MAC_BYTES);
    memcpy(head + NET_MAC_BYTES, from->byte, NET_MAC_BYTES);
    put16(head + 2 * NET_MAC_BYTES, ETHER_TYPE_IPV4);
    ip[0] = 0x45;
    ip[1] = 0;
    put16(ip + 2, IPV4_BYTES + l4 + skb->bytes);
    put16(ip + 4, 0);
    put16(ip + 6, IP_DF);
    ip[8] = IP_TTL;
    ip[9] = skb->flow.protocol;
    put16(ip + 10, 0);
    put32(ip + 12, skb->flow.source_ip);
    put32(ip + 16, skb->flow.destination_ip);
    skb->head_bytes = (uint16_t)(L4_AT + l4);
    k_store(kernel, skb->head, head, skb->head_bytes);
}

/* ---- Parsing --------------------------------------------------------------------------------- */

struct parsed_options {
    struct tcp_options syn;
    uint32_t tsval, tsecr;
    uint8_t sack_at, n_sacks; /* behind the fixed header */
};

static bool parse_options(const uint8_t *p, unsigned bytes, struct parsed_options *options)
{
    /* What nearly every segment has. */
    if (bytes == TCP_TIMESTAMP_BYTES && get32(p) == 0x0101080au) {
        options->tsval = get32(p + 4);
        options->tsecr = get32(p + 8);
        return true;
    }
    for (unsigned at = 0; at < bytes && p[at] != OPTION_END;) {
        if (p[at] == OPTION_NOP) {
            at++;
            continue;
        }
        unsigned length = at + 1 < bytes ? p[at + 1] : 0;
        if (length < 2 || at + length > bytes)
            return false;
        if (p[at] == OPTION_MSS && length == 4)
            options->syn.mss = get16(p + at + 2);
        else if (p[at] == OPTION_SCALE && length == 3)
            options->syn.window_scale = NET_MIN(p[at + 2], 14);
        else if (p[at] == OPTION_SACK_OK && length == 2)
            options->syn.sack_permitted = true;
        else if (p[at] == OPTION_SACK && length >= 10 && (length - 2) % 8 == 0) {
            options->sack_at = (uint8_t)(at + 2);
            options->n_sacks = (uint8_t)((length - 2) / 8);
        } else if (p[at] == OPTION_TIME && length == 10) {
            options->tsval = get32(p + at + 2);
            options->tsecr = get32(p + at + 6);
        }
        at += length;
    }
    return true;
}

/* Bytes of the TCP header; 0: malformed. */
static unsigned parse_tcp(struct sk_buff *skb, const uint8_t *p, unsigned bytes)
{
    struct parsed_options options = { .tsval = 0 };
    unsigned l4 = (unsigned)(p[12] >> 4) * 4;
    if (l4 < TCP_BYTES || l4 > bytes || !parse_options(p + TCP_BYTES, l4 - TCP_BYTES, &options))
        return 0;
    skb->tcp_seq = get32(p + 4);
    skb->tcp_ack = get32(p + 8);
    skb->tcp_flags = p[13];
    skb->tcp_window = get16(p + 14);
    skb->tcp_tsval = options.tsval;
    skb->tcp_tsecr = options.tsecr;
    skb->tcp_sacked = options.sack_at ? (uint8_t)(L4_AT + TCP_BYTES + options.sack_at) : 0;
    return l4;
}

static void trim(struct sk_buff *skb, uint32_t bytes)
{
    while (skb->bytes > bytes) {
        struct skb_frag *last = &skb->frag[skb->n_frags - 1];
        uint32_t cut = NET_MIN(skb->bytes - bytes, last->bytes);
        /* A fragment of nothing keeps its page until the packet is freed. */
        last->bytes -= cut;
        skb->bytes -= cut;
        if (last->bytes == 0 && skb->bytes > bytes)
            return; /* more padding than the last fragment: malformed, seen by the caller */
    }
}

bool net_headers_parse(struct kernel *kernel, struct sk_buff *skb)
{
    uint8_t head[NET_HEADER_BYTES];
    const uint8_t *ip = head + IP_AT, *p = head + L4_AT;
    unsigned bytes = skb->head_bytes, l4;
    skb->ether_type = 0;
    if (bytes < ETHER_BYTES || bytes > sizeof head)
        return false;
    k_load(kernel, skb->head, head, bytes);
    skb->ether_type = get16(head + 2 * NET_MAC_BYTES);
    if (skb->ether_type != ETHER_TYPE_IPV4 || bytes < L4_AT + UDP_BYTES || ip[0] != 0x45 ||
        (get16(ip + 6) & ~IP_DF) != 0)
        return false;
    skb->flow = (struct flow_key){ .source_ip = get32(ip + 12),
                                   .destination_ip = get32(ip + 16),
                                   .source_port = get16(p),
                                   .destination_port = get16(p + 2),
                                   .protocol = ip[9] };
    if (ip[9] == PROTOCOL_TCP && bytes >= L4_AT + TCP_BYTES)
        l4 = parse_tcp(skb, p, bytes - L4_AT);
    else
        l4 = ip[9] == PROTOCOL_UDP ? UDP_BYTES : 0;
    uint32_t total = get16(ip + 2);
    if (l4 == 0 || bytes != L4_AT + l4 || total < IPV4_BYTES + l4)
        return false;
    uint32_t payload = total - IPV4_BYTES - l4;
    if (skb->gso_segments <= 1)
        trim(skb, payload);
    return skb->gso_segments > 1 || skb->bytes == payload;
}

void net_syn_options(struct kernel *kernel, const struct sk_buff *skb, struct tcp_options *options)
{
    uint8_t head[NET_HEADER_BYTES];
    struct parsed_options parsed = { .syn = { .window_scale = UINT8_MAX } };
    k_load(kernel, skb->head, head, skb->head_bytes);
    parse_options(head + L4_AT + TCP_BYTES, skb->head_bytes - L4_AT - TCP_BYTES, &parsed);
    *options = parsed.syn;
}

unsigned net_sack_blocks(struct kernel *kernel, const struct sk_buff *skb,
                         struct tcp_sack block[TCP_SACKS])
{
    uint8_t head[NET_HEADER_BYTES];
    struct parsed_options parsed = { .tsval = 0 };
    const uint8_t *options = head + L4_AT + TCP_BYTES;
    k_load(kernel, skb->head, head, skb->head_bytes);
    parse_options(options, skb->head_bytes - L4_AT - TCP_BYTES, &parsed);
    for (unsigned i = 0; i < parsed.n_sacks; i++)
        block[i] = (struct tcp_sack){ get32(options + parsed.sack_at + 8 * i),
                                      get32(options + parsed.sack_at + 8 * i + 4) };
    return parsed.n_sacks;
}

/* ---- Toeplitz -------------------------------------------------------------------------------- */

static const uint8_t toeplitz_key[40] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

uint32_t net_toeplitz(const struct flow_key *flow)
{
    uint8_t input[TOEPLITZ_BYTES];
    uint32_t hash = 0, window = get32(toeplitz_key);
    put32(input, flow->source_ip);
    put32(input + 4, flow->destination_ip);
    put16(input + 8, flow->source_port);
    put16(input + 10, flow->destination_port);
    for (unsigned i = 0; i < TOEPLITZ_BYTES; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            if (input[i] & 0x80u >> bit)
                hash ^= window;
            window = window << 1 | (toeplitz_key[i + 4] >> (7 - bit) & 1u);
        }
    return hash;
}
