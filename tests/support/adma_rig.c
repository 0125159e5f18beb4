#include "tests/support/adma_rig.h"

#define WITHIN_PS (100 * K_MS)

void adma_rig_open(struct adma_rig *rig, const struct fake_options *kernel,
                   const struct dma_fake_options *engine, const struct adma_options *options)
{
    int status;
    memset(rig, 0, sizeof *rig);
    rig->kernel = fake_new(kernel);
    fake_on(rig->kernel, 0);
    rig->core = dma_core_new(rig->kernel);
    dma_fake_init(&rig->engine, rig->kernel, rig->core, engine);
    rig->adma = adma_new(rig->kernel, rig->core, options, &status);
    assert_int_equal(status, 0);
    assert_non_null(rig->adma);
}

void adma_rig_close(struct adma_rig *rig)
{
    struct kernel *kernel = rig->kernel;
    const uint64_t begin_ps = kernel->now_ps;
    adma_free(rig->adma);
    assert_true(kernel->now_ps - begin_ps < WITHIN_PS);
    const bool removed = rig->removed;
    if (!removed)
        dma_fake_remove(&rig->engine, false);
    fake_run_until(kernel, kernel->now_ps + K_MS);
    assert_int_equal(kernel->pins_live, 0);
    assert_int_equal(kernel->pages_live, 0);
    if (!removed) /* else mappings went with the device */
        assert_int_equal(kernel->maps_live, 0);
    assert_int_equal(kernel->timers_live, 0);
    dma_core_free(rig->core);
    fake_free(kernel);
}

void adma_rig_write(struct umem *umem, struct uaddr at, const uint8_t *bytes, uint64_t n)
{
    for (uint64_t done = 0, run; done < n; done += run) {
        struct kaddr to;
        run = umem_run(umem, uaddr_add(at, done), n - done, &to);
        k_poke(umem_kernel(umem), to, bytes + done, run);
    }
}

void adma_rig_read(struct umem *umem, struct uaddr at, uint8_t *bytes, uint64_t n)
{
    for (uint64_t done = 0, run; done < n; done += run) {
        struct kaddr from;
        run = umem_run(umem, uaddr_add(at, done), n - done, &from);
        k_peek(umem_kernel(umem), from, bytes + done, run);
    }
}

void adma_rig_fill(struct umem *umem, struct uaddr at, uint64_t seed, uint64_t from, uint64_t n)
{
    uint8_t bytes[1024];
    for (uint64_t done = 0; done < n; done += sizeof bytes) {
        const uint64_t here = n - done < sizeof bytes ? n - done : sizeof bytes;
        for (uint64_t i = 0; i < here; i++)
            bytes[i] = adma_rig_byte(seed, from + done + i);
        adma_rig_write(umem, uaddr_add(at, done), bytes, here);
    }
}

uint64_t adma_rig_same(struct umem *umem, struct uaddr at, uint64_t seed, uint64_t from, uint64_t n)
{
    uint8_t bytes[1024];
    for (uint64_t done = 0; done < n; done += sizeof bytes) {
        const uint64_t here = n - done < sizeof bytes ? n - done : sizeof bytes;
        adma_rig_read(umem, uaddr_add(at, done), bytes, here);
        for (uint64_t i = 0; i < here; i++)
            if (bytes[i] != adma_rig_byte(seed, from + done + i))
                return done + i;
    }
    return n;
}
