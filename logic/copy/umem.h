/*
 * The memory of a process: user virtual addresses, and the pages behind them. A kernel that has no
 * address spaces of its own (logic/kapi.h) gets what a copy module has to deal with: ranges whose
 * pages lie anywhere, that are freed while somebody uses them, and whose addresses are used again.
 *
 * A page has one reference of its mapping; whoever pins it takes another. So a page that is
 * unmapped while it is pinned stays what it is until it is unpinned, and is nobody else's before.
 */
#ifndef LOGIC_COPY_UMEM_H
#define LOGIC_COPY_UMEM_H

#include "logic/kapi.h"

struct umem;

/* An address of a process; 0: none. */
struct uaddr {
    uint64_t v;
};
static inline struct uaddr uaddr_add(struct uaddr at, uint64_t bytes)
{
    return (struct uaddr){ at.v + bytes };
}

/* Who has to know when memory is unmapped (Linux: struct mmu_notifier). */
struct umem_notifier {
    void (*unmap)(struct umem_notifier *notifier, struct uaddr at, uint64_t bytes);
    struct umem_notifier *next; /* private */
};

/* The caller owns the result. */
struct umem *umem_new(struct kernel *kernel);
/* [thread] Unmaps everything and frees it. No notifier may be left. */
void umem_free(struct umem *umem);
struct kernel *umem_kernel(const struct umem *umem);

/* [thread] Maps zeroed memory of `node` at the lowest address at which it fits, page-aligned: whole
 * pages, in physically contiguous pieces of 2^order pages (the last one may be smaller). v is 0 if
 * there is no memory. */
struct uaddr umem_map(struct umem *umem, int node, uint64_t bytes, unsigned order);
/* [thread] Unmaps what one umem_map() has mapped, after all notifiers have been told; 0, or
 * -EINVAL: nothing begins at this address. */
int umem_unmap(struct umem *umem, struct uaddr at);

/* [at, at + bytes) is mapped. True for no bytes. */
bool umem_mapped(const struct umem *umem, struct uaddr at, uint64_t bytes);
/* The page behind an address, and the address of that byte; NULL: it is not mapped. */
struct k_page *umem_page(const struct umem *umem, struct uaddr at, struct kaddr *addr);
/* How many of the bytes, which are mapped, lie in one piece of memory, and where it begins. */
uint64_t umem_run(const struct umem *umem, struct uaddr at, uint64_t bytes, struct kaddr *addr);

/* Calls of unmap() begin with the next umem_unmap(). The caller owns the notifier. */
void umem_notifier_add(struct umem *umem, struct umem_notifier *notifier);
void umem_notifier_remove(struct umem *umem, struct umem_notifier *notifier);

/* memcpy() of a process, as its C library has it: with non-temporal stores from memcpy_nt_bytes of
 * k_costs on. Both ranges must be mapped and must not overlap. */
void umem_copy(struct umem *umem, struct uaddr to, struct uaddr from, uint64_t bytes);

/* The same from or to memory that is not its own: of the kernel, or shared with another process. */
void umem_copy_out(struct umem *umem, struct kaddr to, struct uaddr from, uint64_t bytes);
void umem_copy_in(struct umem *umem, struct uaddr to, struct kaddr from, uint64_t bytes);

#endif
