/* Arrays of zeros straight from the system: calloc() would clear what it has used before. */
#include "sim/engine/zeroed.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/engine/types.h"

/* Of x86-64; elsewhere an alignment that does no harm. No machine's pages are larger than the
 * latter.
 */
#define LARGE_PAGE_BYTES ((size_t)2 << 20)
#define PAGE_BYTES_MAX   ((size_t)64 << 10)
/* Of a table of several large pages a few lines may be in use, as of the caches of one idle host
 * among many: so many bytes of such tables are to be in large pages. An array of one is taken for
 * one that fills. */
#define ADVISED_BYTES_MAX ((size_t)64 << 20)

/* An array that is kept; its first bytes. */
struct kept {
    struct kept *next;
};

static _Thread_local struct {
    struct kept *first;
    size_t most_bytes, bytes, least_bytes;
} kept;

static _Thread_local size_t table_bytes; /* of arrays of several large pages that are there */

static void give_back(size_t down_to_bytes)
{
    while (kept.bytes > down_to_bytes) {
        struct kept *memory = kept.first;
        kept.first = memory->next;
        kept.bytes -= LARGE_PAGE_BYTES;
        munmap(memory, LARGE_PAGE_BYTES);
    }
    kept.least_bytes = SIM_MIN(kept.least_bytes, kept.bytes);
}

void sim_zeroed_keep(size_t bytes)
{
    kept.most_bytes = bytes;
    give_back(bytes);
}

struct sim_zeroed_kept sim_zeroed_kept(void)
{
    const struct sim_zeroed_kept now = { kept.bytes, kept.least_bytes };

    kept.least_bytes = kept.bytes;
    return now;
}

/* False: it is not to be kept. */
static bool keep(void *memory, size_t bytes)
{
    struct kept *first = memory;

    if (bytes != LARGE_PAGE_BYTES || kept.bytes + bytes > kept.most_bytes)
        return false;
    first->next = kept.first;
    kept.first = first;
    kept.bytes += bytes;
    return true;
}

/* NULL: there is none. */
static void *take_kept(size_t bytes)
{
    struct kept *memory = kept.first;

    if (bytes != LARGE_PAGE_BYTES || memory == NULL)
        return NULL;
    kept.first = memory->next;
    kept.bytes -= bytes;
    kept.least_bytes = SIM_MIN(kept.least_bytes, kept.bytes);
    return memset(memory, 0, bytes);
}

/* Whole large pages, or the rest of the array would be in small ones. */
static size_t mapped_bytes(size_t bytes)
{
    const size_t page = bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : PAGE_BYTES_MAX;

    return (bytes + page - 1) & ~(page - 1);
}

static bool is_table(size_t bytes)
{
    return mapped_bytes(bytes) > LARGE_PAGE_BYTES;
}

void *sim_zeroed_new(size_t bytes)
{
    const size_t spare = bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : 0;
    const size_t end = mapped_bytes(bytes);
    void *const again = take_kept(bytes);
    if (again != NULL)
        return again;
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
    table_bytes += is_table(bytes) ? end : 0;
    if (!is_table(bytes) || table_bytes <= ADVISED_BYTES_MAX)
        madvise(memory, end, MADV_HUGEPAGE); /* a hint: without it all works the same */
    return memory;
}

void sim_zeroed_free(void *memory, size_t bytes)
{
    if (memory == NULL || keep(memory, bytes))
        return;
    if (is_table(bytes))
        table_bytes -= SIM_MIN(table_bytes, mapped_bytes(bytes)); /* another thread's, maybe */
    munmap(memory, mapped_bytes(bytes));
}
