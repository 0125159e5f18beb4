/*
 * What tests of the DMA engine's registers share: a ring of descriptors, two buffers and a place
 * for completions, on a host without the engine's driver (tests/support/ioat_rig.h).
 */
#ifndef TESTS_MODELS_IOAT_IOAT_BENCH_H
#define TESTS_MODELS_IOAT_IOAT_BENCH_H

#include <string.h>

#include "hw/pci_regs.h"
#include "tests/support/ioat_rig.h"

#define KIB 1024u

/* What a body works with: a ring of descriptors, two buffers, a place for completions. */
struct bench {
    struct ioat_rig *rig;
    struct kaddr ring, from, to, completion;
    uint64_t ring_dma, from_dma, to_dma, completion_dma;
};

static inline uint64_t alloc(struct ioat_rig *r, size_t bytes, struct kaddr *at)
{
    uint64_t dma;
    assert_int_equal(k_dma_alloc(&r->pci->device, 0, bytes, at, &dma), 0);
    return dma;
}

static inline bool v1(const struct bench *b)
{
    return ioat_is_v1(ioat_rig_engine(b->rig));
}

static inline struct bench bench_new(struct ioat_rig *r)
{
    struct bench b = { .rig = r };
    b.ring_dma = alloc(r, 4096, &b.ring);
    b.from_dma = alloc(r, 64 * KIB, &b.from);
    b.to_dma = alloc(r, 64 * KIB, &b.to);
    b.completion_dma = alloc(r, 64, &b.completion);
    ioat_rig_fill(r, b.from, 64 * KIB, 1);
    return b;
}

static inline void descriptor(struct bench *b, unsigned slot, uint64_t to, uint64_t from,
                              uint32_t bytes, uint32_t control, unsigned next)
{
    const struct ioat_descriptor d = { .bytes = bytes,
                                       .control = control,
                                       .source = from,
                                       .destination = to,
                                       .next = next != 0 ? b->ring_dma + next * 64 : 0 };
    k_poke(b->rig->kernel, kaddr_add(b->ring, slot * 64), &d, sizeof(d));
}

/* Slots 0 .. n-1 copy so many bytes each; all write completions. */
static inline void chain(struct bench *b, unsigned n, uint32_t bytes, uint32_t control)
{
    for (unsigned i = 0; i < n; i++)
        descriptor(b, i, b->to_dma + i * bytes, b->from_dma + i * bytes, bytes,
                   IOAT_CONTROL_COMPLETION | control, i + 1 < n || !v1(b) ? i + 1 : 0);
}

static inline void set_completion(struct bench *b)
{
    const uint64_t none = 0;
    k_poke(b->rig->kernel, b->completion, &none, sizeof(none));
    ioat_rig_write64(b->rig, 0, IOAT_CHANCMP, b->completion_dma);
}

static inline void start(struct bench *b, unsigned slot, unsigned n)
{
    ioat_rig_write64(b->rig, 0, v1(b) ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR,
                     b->ring_dma + slot * 64);
    if (v1(b))
        ioat_rig_write(b->rig, 0, IOAT_V1_CHANCMD, IOAT_CHANCMD_START);
    else
        ioat_rig_write(b->rig, 0, IOAT_V3_CHANCMD, n << IOAT_V3_DMACOUNT_SHIFT);
}

static inline void command(struct bench *b, uint32_t value)
{
    ioat_rig_write(b->rig, 0, v1(b) ? IOAT_V1_CHANCMD : IOAT_V3_CHANCMD, value);
}

static inline uint64_t status(struct bench *b)
{
    const uint32_t at = v1(b) ? IOAT_V1_CHANSTS : IOAT_V3_CHANSTS;
    const uint64_t low = ioat_rig_read(b->rig, 0, at);
    return low | (uint64_t)ioat_rig_read(b->rig, 0, at + 4) << 32;
}

static inline uint32_t state(struct bench *b)
{
    return (uint32_t)(status(b) & IOAT_CHANSTS_STATUS_MASK);
}

static inline uint64_t completion(struct bench *b)
{
    uint64_t value;
    k_peek(b->rig->kernel, b->completion, &value, sizeof(value));
    return value;
}

static inline void settle(struct bench *b)
{
    k_sleep(b->rig->kernel, 100 * K_US);
}

static inline bool copied(struct bench *b, size_t from, size_t bytes)
{
    return ioat_rig_holds(b->rig, kaddr_add(b->to, from), bytes, 1, from);
}

/* A handler that counts. */
static inline void count_interrupt(void *arg)
{
    ++*(unsigned *)arg;
}

static inline void both_with(void (*body)(struct ioat_rig *), const char *settings)
{
    static const char *const versions[] = { "cb1.2", "cb3.2" };
    for (unsigned v = 0; v < 2; v++) {
        const struct ioat_rig_world world = { .version = versions[v], .settings = settings };
        ioat_rig_run(&world, body, NULL);
    }
}

static inline void both(void (*body)(struct ioat_rig *))
{
    both_with(body, NULL);
}

static inline void only(const char *version, void (*body)(struct ioat_rig *))
{
    const struct ioat_rig_world world = { .version = version };
    ioat_rig_run(&world, body, NULL);
}

#endif
