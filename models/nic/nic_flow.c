/*
 * Models: exact-match tables by 5-tuple with a size, the Toeplitz hash of receive-side scaling.
 * Does not model: how hardware keeps such tables (its look-up is part of receive_latency).
 * Timing: none here; updates take the NIC's command_latency.
 * Sources: Microsoft, "RSS hashing types" and "Verifying the RSS hash calculation" (key and test
 *   vectors).
 */
#include "models/nic/nic_flow.h"

#include <stdlib.h>

#define KEY_BYTES 40u

static const uint8_t rss_key[KEY_BYTES] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* ---- Exact match ----------------------------------------------------------------------------- */

void nic_flow_init(struct nic_flow_table *table, uint32_t n_max)
{
    uint32_t capacity = 2;
    while (capacity < 2 * n_max)
        capacity *= 2;
    *table = (struct nic_flow_table){ .mask = capacity - 1, .n_max = n_max };
    table->entry = sim_zalloc(capacity, sizeof(*table->entry));
}

void nic_flow_release(struct nic_flow_table *table)
{
    free(table->entry);
    table->entry = NULL;
}

static uint32_t home_of(const struct nic_flow_table *table, const struct ether_flow *flow)
{
    uint64_t h = (uint64_t)flow->source_ip << 32 | flow->destination_ip;
    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    h ^= (uint64_t)flow->source_port << 24 | (uint64_t)flow->destination_port << 8 | flow->protocol;
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(h >> 32) & table->mask;
}

/* The flow's entry, or the free one where it would go: never more than half are used. */
static struct nic_flow_entry *find(const struct nic_flow_table *table,
                                   const struct ether_flow *flow)
{
    uint32_t i = home_of(table, flow);
    while (table->entry[i].used && !ether_flow_equal(&table->entry[i].flow, flow))
        i = (i + 1) & table->mask;
    return &table->entry[i];
}

const struct nic_flow_entry *nic_flow_find(const struct nic_flow_table *table,
                                           const struct ether_flow *flow)
{
    const struct nic_flow_entry *entry = find(table, flow);
    return entry->used ? entry : NULL;
}

bool nic_flow_set(struct nic_flow_table *table, const struct ether_flow *flow, uint16_t target)
{
    struct nic_flow_entry *entry = find(table, flow);
    if (!entry->used) {
        if (table->n == table->n_max)
            return false;
        table->n++;
        entry->used = true;
        entry->flow = *flow;
    }
    entry->target = target;
    return true;
}

bool nic_flow_delete(struct nic_flow_table *table, const struct ether_flow *flow)
{
    struct nic_flow_entry *entry = find(table, flow);
    if (!entry->used)
        return false;
    /* Entries behind the hole that would not be found across it move into it. */
    uint32_t hole = (uint32_t)(entry - table->entry);
    for (uint32_t i = (hole + 1) & table->mask; table->entry[i].used; i = (i + 1) & table->mask) {
        uint32_t home = home_of(table, &table->entry[i].flow);
        if (((i - home) & table->mask) >= ((i - hole) & table->mask)) {
            table->entry[hole] = table->entry[i];
            hole = i;
        }
    }
    table->entry[hole].used = false;
    table->n--;
    return true;
}

/* ---- Receive-side scaling -------------------------------------------------------------------- */

/* The 32 bits of the key from a bit on. */
static uint32_t key_at(unsigned bit)
{
    uint64_t window = 0;
    for (unsigned i = 0; i < 5; i++)
        window = window << 8 | rss_key[bit / 8 + i];
    return (uint32_t)(window >> (8 - bit % 8));
}

void nic_rss_init(struct nic_rss *rss)
{
    for (unsigned at = 0; at < NIC_RSS_INPUT_BYTES; at++)
        for (unsigned value = 0; value < 256; value++) {
            uint32_t hash = 0;
            for (unsigned bit = 0; bit < 8; bit++)
                if ((value & 0x80u >> bit) != 0)
                    hash ^= key_at(8 * at + bit);
            rss->part[at][value] = hash;
        }
}

static uint32_t hash32(const struct nic_rss *rss, unsigned at, uint32_t word)
{
    return rss->part[at][word >> 24] ^ rss->part[at + 1][word >> 16 & 0xff] ^
           rss->part[at + 2][word >> 8 & 0xff] ^ rss->part[at + 3][word & 0xff];
}

uint32_t nic_rss_hash(const struct nic_rss *rss, const struct ether_flow *flow, bool with_ports)
{
    uint32_t hash = hash32(rss, 0, flow->source_ip) ^ hash32(rss, 4, flow->destination_ip);
    if (with_ports)
        hash ^= hash32(rss, 8, (uint32_t)flow->source_port << 16 | flow->destination_port);
    return hash;
}
