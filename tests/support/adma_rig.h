/* The copy module (logic/copy) on a fake kernel with a fake engine, and what processes do with
 * it. */
#ifndef TESTS_SUPPORT_ADMA_RIG_H
#define TESTS_SUPPORT_ADMA_RIG_H

#include "logic/copy/adma.h"
#include "tests/support/dma_fake.h"
#include "tests/support/test.h"

struct adma_rig {
    struct kernel *kernel;
    struct dma_core *core;
    struct dma_fake engine;
    bool removed;
    struct adma *adma;
};

/* The test itself is CPU 0 from now on. */
void adma_rig_open(struct adma_rig *rig, const struct fake_options *kernel,
                   const struct dma_fake_options *engine, const struct adma_options *options);
/* All processes are closed: nothing may be left. */
void adma_rig_close(struct adma_rig *rig);

/* Bytes of a process, without time. */
void adma_rig_write(struct umem *umem, struct uaddr at, const uint8_t *bytes, uint64_t n);
void adma_rig_read(struct umem *umem, struct uaddr at, uint8_t *bytes, uint64_t n);
/* Byte i of what `seed` names. */
static inline uint8_t adma_rig_byte(uint64_t seed, uint64_t i)
{
    const uint64_t z = (seed * 31 + i) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint8_t)(z >> 48);
}
void adma_rig_fill(struct umem *umem, struct uaddr at, uint64_t seed, uint64_t from, uint64_t n);
/* How many of the bytes are those of `seed` from `from` on. */
uint64_t adma_rig_same(struct umem *umem, struct uaddr at, uint64_t seed, uint64_t from,
                       uint64_t n);

#endif
