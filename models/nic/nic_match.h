/* Rules for packets other than IPv4's: an Ethernet type and words of the headers
 * (hw/nic_regs.h). */
#ifndef MODELS_NIC_NIC_MATCH_H
#define MODELS_NIC_NIC_MATCH_H

#include <stdbool.h>

#include "hw/nic_regs.h"

struct nic_match_entry {
    struct nic_match match;
    uint16_t number, target;
};
/* In the order of their numbers. All zero: empty. */
struct nic_match_table {
    struct nic_match_entry *entry;
    uint32_t n, n_max;
};
/* Not of IPv4, whose packets have tables of their own; no value outside of its mask. */
bool nic_match_valid(const struct nic_match *match);
/* Adds rule `number`, or changes it. Ends the process when memory is exhausted. */
void nic_match_set(struct nic_match_table *table, uint16_t number, const struct nic_match *match,
                   uint16_t target);
/* False: there is none of this number. */
bool nic_match_delete(struct nic_match_table *table, uint16_t number);
/* The first that the packet meets; NULL: none. A word that ends behind the headers is met by
 * nothing. */
const struct nic_match_entry *nic_match_find(const struct nic_match_table *table,
                                             uint16_t ether_type, const uint8_t *header,
                                             uint32_t header_bytes);
/* Empties it. */
void nic_match_release(struct nic_match_table *table);

#endif
