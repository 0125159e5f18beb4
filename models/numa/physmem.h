/* The sparse physical memory of one host, with real bytes: a page is allocated when it is first
 * written; until then its bytes read as zero. Timing: see numa.h. */
#ifndef MODELS_NUMA_PHYSMEM_H
#define MODELS_NUMA_PHYSMEM_H

#include "models/base/address.h"

struct physmem;

/* Creates memory of n_nodes nodes with the sizes node_bytes. Node i covers [i * stride, i * stride
 * + size); the stride is the largest size rounded up to a power of two, at least 4 GiB. The last
 * 256 MiB below 4 GiB (MMIO, interrupt addresses) belong to no node; node 0 skips them. */
struct physmem *physmem_new(unsigned n_nodes, const uint64_t *node_bytes);
void physmem_free(struct physmem *mem);

/* log2 of the stride: the node of an address is address >> this. */
unsigned physmem_stride_log2(const struct physmem *mem);
/* The number of nodes: one per socket, or a single one of a memory controller hub. A node's number
 * from a scenario must be checked against this, not against numa_sockets(). */
unsigned physmem_nodes(const struct physmem *mem);
/* The size of the node, including the hole below 4 GiB if the node reaches that far. */
uint64_t physmem_node_bytes(const struct physmem *mem, unsigned node);
/* Returns the node of an address, -1: it is not memory. O(1). */
int physmem_node_of(const struct physmem *mem, struct hpa hpa);
/* Whether [hpa, hpa + bytes) is memory of one node. */
bool physmem_contains(const struct physmem *mem, struct hpa hpa, uint64_t bytes);

/* A range that somebody waits to be written. The owner keeps it until it is removed. */
struct physmem_watch {
    struct hpa hpa;
    uint64_t bytes;
    /* after each physmem_write(), physmem_write_marks() and physmem_stored() into it */
    void (*written)(struct physmem_watch *watch);
    struct physmem_watch *next; /* private */
};
void physmem_watch_add(struct physmem *mem, struct physmem_watch *watch);
void physmem_watch_remove(struct physmem *mem, struct physmem_watch *watch);
/* The caller has changed bytes by physmem_bytes_made(). */
void physmem_stored(struct physmem *mem, struct hpa hpa, uint64_t bytes);

/* Copy all bytes of a range, which may span pages and must be memory (SIM_ASSERT). */
void physmem_read(const struct physmem *mem, struct hpa hpa, void *to, uint64_t bytes);
void physmem_write(struct physmem *mem, struct hpa hpa, const void *from, uint64_t bytes);
/*
 * Copy bulk payload (models/base/payload.h): of every cache line that the range overlaps only the
 * first min(8, overlap) bytes of the overlap. Buffers have the layout of the full range. Reading
 * leaves the other bytes of the buffer untouched; writing zeroes the rest of the overlap in memory,
 * so that a read that begins within a line does not find an old mark there, and derives its mark
 * from the one before it in the line.
 */
void physmem_read_marks(const struct physmem *mem, struct hpa hpa, void *to, uint64_t bytes);
void physmem_write_marks(struct physmem *mem, struct hpa hpa, const void *from, uint64_t bytes);
/* Zeroes a range without allocating pages. */
void physmem_clear(struct physmem *mem, struct hpa hpa, uint64_t bytes);
/* Returns the bytes from an address to the end of its page, for code that reads many lines of a
 * page. Zeros if the page was never written; the pointer is valid until any bytes of the memory are
 * asked for again. */
const uint8_t *physmem_bytes(const struct physmem *mem, struct hpa hpa);
/* Like physmem_bytes(), but writable: allocates the page. Valid until this is called again,
 * whatever other bytes are asked for, written or cleared meanwhile. */
uint8_t *physmem_bytes_made(struct physmem *mem, struct hpa hpa);
/* Prefetches, on the real machine, the part of the range that lies in the page of its first byte.
 * The range must be memory. No simulated effect. */
void physmem_prefetch(const struct physmem *mem, struct hpa hpa, uint64_t bytes);
static inline uint64_t physmem_read64(const struct physmem *mem, struct hpa hpa)
{
    uint64_t v;
    physmem_read(mem, hpa, &v, sizeof(v));
    return v;
}
static inline void physmem_write64(struct physmem *mem, struct hpa hpa, uint64_t v)
{
    physmem_write(mem, hpa, &v, sizeof(v));
}
/* The memory in use on the real machine, for reports. */
uint64_t physmem_resident_bytes(const struct physmem *mem);

/* ---- Page allocator: per node, physically contiguous, power-of-two aligned runs of 4 KiB pages.
 * Memory for its book-keeping grows with what is allocated. */
/* Allocates contiguous memory of a node. bytes is rounded up to whole pages; align_bytes is a power
 * of two >= 4096. False: the node is full. */
bool physmem_alloc(struct physmem *mem, unsigned node, uint64_t bytes, uint64_t align_bytes,
                   struct hpa *hpa);
/* As physmem_alloc(), but below 4 GiB: for devices that cannot address more. */
bool physmem_alloc_low(struct physmem *mem, unsigned node, uint64_t bytes, uint64_t align_bytes,
                       struct hpa *hpa);
/* From now on physmem_alloc() gives a node's memory from 4 GiB on first, as an operating system
 * does that keeps what is below for devices that cannot address more, and never page 0; false,
 * which holds at the beginning: in order of address. */
void physmem_set_high_first(struct physmem *mem, bool high_first);
/* Frees exactly one allocation; anything else is a fault (SIM_ASSERT). */
void physmem_release(struct physmem *mem, struct hpa hpa, uint64_t bytes);
uint64_t physmem_free_bytes(const struct physmem *mem, unsigned node);

#endif
