/*
 * What it does: a ring of slots in shared memory, each with a line that says how many bytes are in
 *   it; 0: it is free. Writer and reader poll the line of their next slot. Two copies for each
 *   byte.
 * Leaves out: the set-up by mmap(), queues of several writers.
 * Follows: the user-space shared memory of section 3.2 of the paper, as MPI libraries of the time
 *   have it.
 * Costs: two copies as umem_copy() makes them; a load of a slot's line a look, which misses when
 *   the other CPU has written it; POLL_CYCLES between looks.
 */
#include "logic/copy/shm_ring.h"

#include "logic/kcosts.h"

#define POLL_CYCLES 100u

struct shm_ring {
    struct kernel *kernel;
    struct k_page *page; /* the lines of all slots, then the slots */
    unsigned slots;
    uint32_t slot_bytes;
    uint64_t sent, received; /* slots */
};

struct shm_ring *shm_ring_new(struct kernel *kernel, unsigned slots, uint32_t slot_bytes)
{
    const uint64_t bytes = (uint64_t)slots * (K_LINE_BYTES + slot_bytes);
    const uint64_t none = 0;
    unsigned order = 0;
    while (((uint64_t)K_PAGE_BYTES << order) < bytes)
        order++;
    struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, order);
    if (page == NULL)
        return NULL;
    struct shm_ring *ring = k_zalloc(sizeof(*ring));
    *ring = (struct shm_ring){
        .kernel = kernel, .page = page, .slots = slots, .slot_bytes = slot_bytes
    };
    for (unsigned i = 0; i < slots; i++)
        k_poke(kernel, kaddr_add(page->addr, i * K_LINE_BYTES), &none, sizeof(none));
    return ring;
}

void shm_ring_free(struct shm_ring *ring)
{
    k_page_put(ring->kernel, ring->page);
    k_free(ring);
}

static struct kaddr line_of(const struct shm_ring *ring, uint64_t slot)
{
    return kaddr_add(ring->page->addr, slot % ring->slots * K_LINE_BYTES);
}

static struct kaddr data_of(const struct shm_ring *ring, uint64_t slot)
{
    const uint64_t lines = (uint64_t)ring->slots * K_LINE_BYTES;
    return kaddr_add(ring->page->addr, lines + slot % ring->slots * ring->slot_bytes);
}

/* Until the slot is full, or free. Returns what its line says. */
static uint64_t wait_for(struct shm_ring *ring, uint64_t slot, bool full, const bool *stop)
{
    uint64_t bytes;
    for (;;) {
        k_load(ring->kernel, line_of(ring, slot), &bytes, sizeof(bytes));
        if ((bytes != 0) == full || *stop)
            return bytes;
        k_compute(ring->kernel, POLL_CYCLES);
    }
}

bool shm_ring_send(struct shm_ring *ring, struct umem *umem, struct uaddr from, uint64_t bytes,
                   const bool *stop)
{
    while (bytes > 0) {
        const uint64_t n = bytes < ring->slot_bytes ? bytes : ring->slot_bytes;
        if (wait_for(ring, ring->sent, false, stop) != 0)
            return false;
        umem_copy_out(umem, data_of(ring, ring->sent), from, n);
        k_store(ring->kernel, line_of(ring, ring->sent++), &n, sizeof(n));
        from = uaddr_add(from, n);
        bytes -= n;
    }
    return true;
}

bool shm_ring_receive(struct shm_ring *ring, struct umem *umem, struct uaddr to, uint64_t bytes,
                      const bool *stop)
{
    const uint64_t none = 0;
    while (bytes > 0) {
        const uint64_t n = wait_for(ring, ring->received, true, stop);
        if (n == 0 || n > bytes)
            return false;
        umem_copy_in(umem, to, data_of(ring, ring->received), n);
        k_store(ring->kernel, line_of(ring, ring->received++), &none, sizeof(none));
        to = uaddr_add(to, n);
        bytes -= n;
    }
    return true;
}
