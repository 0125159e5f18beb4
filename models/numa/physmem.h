/*
 * Sparse physical memory of one host, with real bytes: pages appear when first written; reads of
 * untouched memory give zeros. Function only, no timing (numa.h has it).
 */
#ifndef MODELS_NUMA_PHYSMEM_H
#define MODELS_NUMA_PHYSMEM_H

#include "models/base/address.h"

struct physmem;

/* node_bytes: size of each node's memory; node i covers [i * stride, i * stride + size) with a
 * stride of the largest size rounded up to a power of two, at least 4 GiB; the last 256 MiB below
 * 4 GiB (MMIO, interrupt addresses) belong to no node (node 0 skips them). */
struct physmem *physmem_new(unsigned n_nodes, const uint64_t *node_bytes);
void physmem_free(struct physmem *mem);

/* Node of an address = address >> this. */
unsigned physmem_stride_log2(const struct physmem *mem);
/* How many nodes have memory: one per socket, or one in all behind a front-side bus's hub. Who
 * takes a node's number from a scenario checks it against this, not against numa_sockets(). */
unsigned physmem_nodes(const struct physmem *mem);
/* What the node has, the hole below 4 GiB included if it reaches so far. */
uint64_t physmem_node_bytes(const struct physmem *mem, unsigned node);
/* The node an address belongs to, or -1 if it is no memory. O(1). */
int physmem_node_of(const struct physmem *mem, struct hpa hpa);
/* [hpa, hpa + bytes) is all memory of one node. */
bool physmem_contains(const struct physmem *mem, struct hpa hpa, uint64_t bytes);

/* All bytes; may span pages. The range must be memory (SIM_ASSERT). */
void physmem_read(const struct physmem *mem, struct hpa hpa, void *to, uint64_t bytes);
void physmem_write(struct physmem *mem, struct hpa hpa, const void *from, uint64_t bytes);
/*
 * Bulk payload in tag mode (DESIGN.md, section 3): of every cache line that the range overlaps,
 * only the first min(8, overlap) bytes of the overlap are carried; buffers have the layout of the
 * full range. Reading leaves the other bytes of the buffer, writing makes the rest of the overlap
 * in memory zero: so a read that begins within a line knows a tag of now from one of long ago, and
 * gets the tag that follows from the one before it in the line (models/base/payload.h).
 */
void physmem_read_tags(const struct physmem *mem, struct hpa hpa, void *to, uint64_t bytes);
void physmem_write_tags(struct physmem *mem, struct hpa hpa, const void *from, uint64_t bytes);
/* Makes a range zero; no page appears for it. */
void physmem_clear(struct physmem *mem, struct hpa hpa, uint64_t bytes);
/* The real bytes behind an address, as far as its page goes; for who works on many lines of a page.
 * Read only: zeros if nothing was written there, valid until something is. */
const uint8_t *physmem_bytes(const struct physmem *mem, struct hpa hpa);
/* To be written; the page appears. Valid as long as the memory. */
uint8_t *physmem_bytes_made(struct physmem *mem, struct hpa hpa);
/* A hint to the machine that runs the simulation: the range, as far as the page of its first byte
 * goes, will be read or written soon. It must be memory. */
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
/* Real memory in use, for reports. */
uint64_t physmem_resident_bytes(const struct physmem *mem);

/* ---- Page allocator: per node, physically contiguous, power-of-two aligned runs of 4 KiB pages.
 * Memory for its book-keeping grows with what is allocated. */
/* bytes is rounded up to whole pages; align_bytes a power of two >= 4096. False if node is full. */
bool physmem_alloc(struct physmem *mem, unsigned node, uint64_t bytes, uint64_t align_bytes,
                   struct hpa *hpa);
/* Exactly what was allocated; anything else is a fault. */
void physmem_release(struct physmem *mem, struct hpa hpa, uint64_t bytes);
uint64_t physmem_free_bytes(const struct physmem *mem, unsigned node);

#endif
