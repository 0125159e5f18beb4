/*
 * Models: a cache of translations: sets by the low digits of the number, ways in the order of their
 *   last use.
 * Does not model: the replacement of real ones, which is only near to least recently used.
 * Sources: docs/sources.md#kvm.
 */
#include "models/vm/vm_tlb.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/sim.h"

void vm_tlb_init(struct vm_tlb *tlb, uint32_t n_entries, uint32_t n_ways)
{
    tlb->n_ways = SIM_MIN(n_entries, n_ways);
    tlb->n_sets = tlb->n_ways != 0 ? n_entries / tlb->n_ways : 0;
    tlb->entry = sim_zalloc((size_t)tlb->n_sets * tlb->n_ways + 1, sizeof *tlb->entry);
}

void vm_tlb_release(struct vm_tlb *tlb)
{
    free(tlb->entry);
    tlb->entry = NULL;
}

static struct vm_tlb_entry *set_of(struct vm_tlb *tlb, uint64_t key)
{
    return &tlb->entry[key % tlb->n_sets * tlb->n_ways];
}

/* The way it is in; n_ways: it is not there. */
static uint32_t way_of(const struct vm_tlb *tlb, const struct vm_tlb_entry *set, uint64_t key)
{
    uint32_t way = 0;
    while (way < tlb->n_ways && set[way].key != key + 1)
        way++;
    return way;
}

static void to_front(struct vm_tlb_entry *set, uint32_t way, struct vm_tlb_entry entry)
{
    memmove(&set[1], &set[0], way * sizeof *set);
    set[0] = entry;
}

bool vm_tlb_find(struct vm_tlb *tlb, uint64_t key, uint64_t *value)
{
    if (tlb->n_sets == 0)
        return false;
    struct vm_tlb_entry *set = set_of(tlb, key);
    const uint32_t way = way_of(tlb, set, key);
    if (way == tlb->n_ways)
        return false;
    to_front(set, way, set[way]);
    if (value != NULL)
        *value = set[0].value;
    return true;
}

void vm_tlb_insert(struct vm_tlb *tlb, uint64_t key, uint64_t value)
{
    if (tlb->n_sets == 0)
        return;
    struct vm_tlb_entry *set = set_of(tlb, key);
    const uint32_t way = way_of(tlb, set, key);
    to_front(set, SIM_MIN(way, tlb->n_ways - 1),
             (struct vm_tlb_entry){ .key = key + 1, .value = value });
}
