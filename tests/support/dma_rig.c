#include "tests/support/dma_rig.h"

#include <errno.h>

/* ---- A world --------------------------------------------------------------------------------- */

void dma_rig_run(struct world_fixture *w, struct kernel **kernel, const char *text,
                 void (*body)(void *arg), void *arg)
{
    fixture_open(w, text);
    *kernel = os_new(w->host, host_os_params(w->host));
    kernel_call(w, *kernel, body, arg);
    sim_run(w->sim, sim_now(w->sim) + SIM_PS_PER_MS, NULL);
    assert_null(sim_error(w->sim));
}

void dma_rig_close(struct world_fixture *w, struct kernel *kernel)
{
    os_free(kernel);
    fixture_close(w);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

struct dma_buffer dma_buffer_new(struct k_pci_dev *pci, size_t bytes)
{
    struct dma_buffer b = { .bytes = bytes };
    assert_int_equal(k_dma_alloc(&pci->device, 0, bytes, &b.at, &b.dma), 0);
    return b;
}

void dma_buffer_free(struct k_pci_dev *pci, const struct dma_buffer *buffer)
{
    k_dma_free(&pci->device, buffer->bytes, buffer->at, buffer->dma);
}

static uint8_t pattern(unsigned seed, size_t i)
{
    return (uint8_t)((i * 2654435761u + seed * 40503u) >> 13 & 0x7f);
}

void dma_rig_fill(struct kernel *kernel, struct kaddr at, size_t bytes, unsigned seed)
{
    uint8_t *buffer = g_malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = pattern(seed, i);
    k_poke(kernel, at, buffer, bytes);
    g_free(buffer);
}

bool dma_rig_holds(struct kernel *kernel, struct kaddr at, size_t bytes, unsigned seed, size_t from)
{
    uint8_t *buffer = g_malloc(bytes);
    bool same = true;
    k_peek(kernel, at, buffer, bytes);
    for (size_t i = 0; i < bytes && same; i++)
        same = buffer[i] == pattern(seed, from + i);
    g_free(buffer);
    return same;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void note(void *arg, dma_cookie cookie, enum dma_state state)
{
    struct dma_tally *tally = arg;
    assert_int_equal(cookie, tally->last + 1);
    tally->last = cookie;
    tally->n++;
    tally->n_complete += state == DMA_COMPLETE;
    tally->n_error += state == DMA_ERROR;
    tally->n_aborted += state == DMA_ABORTED;
}

dma_cookie dma_rig_copy(struct dma_channel *channel, uint64_t to, uint64_t from, uint64_t bytes,
                        unsigned flags, struct dma_tally *tally)
{
    struct dma_descriptor *d;
    const int status = dma_prepare_copy(channel, to, from, bytes, flags, &d);
    if (status == -EBUSY)
        return 0;
    assert_int_equal(status, 0);
    d->callback = tally != NULL ? note : NULL;
    d->arg = tally;
    return dma_submit(d);
}

void dma_rig_copy_now(struct dma_channel *channel, uint64_t to, uint64_t from, uint64_t bytes)
{
    const dma_cookie cookie = dma_rig_copy(channel, to, from, bytes, 0, NULL);
    dma_issue_pending(channel);
    const int status = dma_wait(channel, cookie, DMA_POLL, UINT64_MAX);
    if (status != 0)
        fail_msg("copy %lld of %llu bytes: %d, %s", (long long)cookie, (unsigned long long)bytes,
                 status, dma_channel_failure(channel)->text);
    assert_int_equal(dma_status(channel, cookie), DMA_COMPLETE);
}

/* ---- Somebody who copies meanwhile ----------------------------------------------------------- */

static void victim_body(void *arg)
{
    struct dma_victim *v = arg;
    dma_cookie last = 0;
    for (unsigned i = 0; i < v->n_copies; i++)
        last = dma_rig_copy(v->channel, v->to.dma, v->from.dma, v->copy_bytes, v->flags, &v->tally);
    dma_issue_pending(v->channel);
    v->status = dma_wait(v->channel, last, v->sleeps ? DMA_SLEEP : DMA_POLL, UINT64_MAX);
    v->done = true;
}

void dma_victim_begin(struct dma_victim *victim)
{
    victim->channel = dma_channel_request(victim->core, victim->engine, DMA_SHARED);
    victim->from = dma_buffer_new(victim->pci, victim->copy_bytes);
    victim->to = dma_buffer_new(victim->pci, victim->copy_bytes);
    k_thread_new(victim->kernel, "victim", 2, victim_body, victim);
    k_sleep(victim->kernel, 100 * K_US);
    assert_false(victim->done);
}

void dma_victim_wait(const struct dma_victim *victim)
{
    for (unsigned i = 0; i < 2000 && !victim->done; i++)
        k_sleep(victim->kernel, 10 * K_US);
    assert_true(victim->done);
    assert_int_equal(victim->tally.n, victim->n_copies);
}

void dma_victim_end(const struct dma_victim *victim)
{
    dma_victim_wait(victim);
    assert_int_equal(victim->status, -ECANCELED);
    assert_true(victim->tally.n_aborted > 0);
}
