/*
 * Translation look-aside buffers: set-associative, least recently used. They know numbers of pages
 * and nothing else; what a miss costs is vm_mmu.c's.
 */
#ifndef MODELS_VM_VM_TLB_H
#define MODELS_VM_VM_TLB_H

#include <stdbool.h>
#include <stdint.h>

struct vm_tlb {
    uint32_t n_sets, n_ways; /* 0 sets: it holds nothing */
    struct vm_tlb_entry {
        uint64_t key; /* one more than what was given; 0: none */
        uint64_t value;
    } * entry; /* of each set the one that was used last first */
};

/* With `n_ways` ways, or as many as it has entries if these are fewer. A remainder of a set is left
 * out. The memory is its own until vm_tlb_release(). */
void vm_tlb_init(struct vm_tlb *tlb, uint32_t n_entries, uint32_t n_ways);
void vm_tlb_release(struct vm_tlb *tlb);
/* True: it is there, is now the last used, and *value (may be NULL) is what it was inserted with.
 * key: below UINT64_MAX. */
bool vm_tlb_find(struct vm_tlb *tlb, uint64_t key, uint64_t *value);
/* In place of the one of its set that was used longest ago, or of the same key. */
void vm_tlb_insert(struct vm_tlb *tlb, uint64_t key, uint64_t value);

#endif
