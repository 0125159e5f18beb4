/*
 * Models: rules that compare the Ethernet type and two words of the headers, the lowest number
 *   first, as a ternary memory finds them.
 * Does not model: how few different places and masks hardware has for all rules together (ConnectX:
 *   eight sample registers; E810: one place).
 * Timing: none here; the look-up is part of receive_latency, updates take the NIC's
 *   command_latency.
 * Sources: docs/sources.md#a5 (rules by words).
 */
#include "models/nic/nic_match.h"

#include <stdlib.h>
#include <string.h>

#include "models/ether/ether_packet.h"

#define WORD_BYTES 4u

bool nic_match_valid(const struct nic_match *match)
{
    for (unsigned i = 0; i < NIC_MATCH_WORDS; i++)
        if ((match->word[i].value & ~match->word[i].mask) != 0)
            return false;
    return match->ether_type != ETHER_TYPE_IPV4;
}

/* Where the rule of this number is, or would be. */
static uint32_t place_of(const struct nic_match_table *table, uint16_t number)
{
    uint32_t at = 0;
    while (at < table->n && table->entry[at].number < number)
        at++;
    return at;
}

static bool is_there(const struct nic_match_table *table, uint32_t at, uint16_t number)
{
    return at < table->n && table->entry[at].number == number;
}

void nic_match_set(struct nic_match_table *table, uint16_t number, const struct nic_match *match,
                   uint16_t target)
{
    const uint32_t at = place_of(table, number);
    if (!is_there(table, at, number)) {
        if (table->n == table->n_max) {
            struct nic_match_entry *more = sim_zalloc(table->n_max + 16, sizeof(*more));
            if (table->n > 0)
                memcpy(more, table->entry, table->n * sizeof(*more));
            free(table->entry);
            table->entry = more;
            table->n_max += 16;
        }
        memmove(&table->entry[at + 1], &table->entry[at], (table->n - at) * sizeof(*table->entry));
        table->n++;
    }
    table->entry[at] = (struct nic_match_entry){ *match, number, target };
}

bool nic_match_delete(struct nic_match_table *table, uint16_t number)
{
    const uint32_t at = place_of(table, number);
    if (!is_there(table, at, number))
        return false;
    table->n--;
    memmove(&table->entry[at], &table->entry[at + 1], (table->n - at) * sizeof(*table->entry));
    return true;
}

static bool is_met(const struct nic_match *match, const uint8_t *header, uint32_t header_bytes)
{
    for (unsigned i = 0; i < NIC_MATCH_WORDS; i++) {
        const uint32_t mask = match->word[i].mask;
        if (mask == 0)
            continue;
        if (match->offset[i] + WORD_BYTES > header_bytes ||
            (ether_get32(header + match->offset[i]) & mask) != match->word[i].value)
            return false;
    }
    return true;
}

const struct nic_match_entry *nic_match_find(const struct nic_match_table *table,
                                             uint16_t ether_type, const uint8_t *header,
                                             uint32_t header_bytes)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const struct nic_match_entry *entry = &table->entry[i];
        if (entry->match.ether_type == ether_type && is_met(&entry->match, header, header_bytes))
            return entry;
    }
    return NULL;
}

void nic_match_release(struct nic_match_table *table)
{
    free(table->entry);
    *table = (struct nic_match_table){ .entry = NULL };
}
