/* Arrays of zeros straight from the system: calloc() would clear what it has used before. */
#include "sim/engine/zeroed.h"

#include <stdint.h>
#include <sys/mman.h>

#include "sim/engine/types.h"

/* Of x86-64; elsewhere an alignment that does no harm. No machine's pages are larger than the
 * latter.
 */
#define LARGE_PAGE_BYTES ((size_t)2 << 20)
#define PAGE_BYTES_MAX   ((size_t)64 << 10)

/* Whole large pages, or the rest of the array would be in small ones. */
static size_t mapped_bytes(size_t bytes)
{
    const size_t page = bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : PAGE_BYTES_MAX;

    return (bytes + page - 1) & ~(page - 1);
}

void *sim_zeroed_new(size_t bytes)
{
    const size_t spare = bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : 0;
    const size_t end = mapped_bytes(bytes);
    char *mapping = mmap(NULL, end + spare, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    SIM_ASSERT(bytes > 0, "an array of no bytes");
    if (mapping == MAP_FAILED)
        sim_out_of_memory("%zu bytes of zeros", bytes);
    if (spare == 0)
        return mapping;
    /* What is cut off before and behind leaves the array aligned. */
    const size_t before = -(uintptr_t)mapping & (LARGE_PAGE_BYTES - 1);
    if (before > 0)
        munmap(mapping, before);
    char *memory = mapping + before;
    munmap(memory + end, spare - before);
    madvise(memory, end, MADV_HUGEPAGE); /* a hint: without it all works the same */
    return memory;
}

void sim_zeroed_free(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, mapped_bytes(bytes));
}
