/*
 * When translations of unmapped addresses are invalidated.
 *
 * Models: strict: the range at once, and the CPU waits for it. Lazy: the CPU notes the IOVA in a
 *   list of its own; the IOMMU's caches go on to know it, as devices may find out. A CPU whose list
 *   is full flushes those of all CPUs, a timer LAZY_PS after a list's first entry that list: one
 *   invalidation of all domains for each list and IOMMU in it, then the IOVAs are free.
 * Does not model: the locks of the lists.
 * Timing: strict: os_iommu_store() and os_iommu_wait(). Lazy: the tables' lines are stored; a flush
 *   is the same store and wait once, by the CPU that found its list full or in the timer's soft
 *   interrupt.
 * Sources: Linux 4.14, drivers/iommu/intel-iommu.c (add_unmap, flush_unmaps: HIGH_WATER_MARK, 10
 *   ms).
 */
#include <stdlib.h>

#include "models/os/os_memory.h"
#include "models/os/os_pci.h"

#define LAZY_ENTRIES 250u
#define LAZY_PS      (10 * SIM_PS_PER_MS)

struct lazy_entry {
    struct os_dma *dma; /* NULL: the device has gone */
    struct iommu_driver *driver;
    uint64_t iova;
    unsigned order;
};

/* Entries to be flushed together. Of its CPU's batches one is filled; others are being flushed, or
 * empty. */
struct lazy_batch {
    struct lazy_batch *next;
    unsigned n;
    bool flushing;
    struct lazy_entry entry[LAZY_ENTRIES];
};

struct os_lazy {
    struct kernel *kernel;
    struct k_timer timer;
    struct lazy_batch *batches, *filled; /* all; NULL: none is */
};

/* ---- Flushing -------------------------------------------------------------------------------- */

static void flush_driver(struct kernel *kernel, struct iommu_driver *driver)
{
    const uint64_t before = iommu_driver_submitted(driver);
    iommu_flush(driver);
    os_iommu_store(kernel, driver);
    os_iommu_wait(kernel, driver, iommu_driver_submitted(driver) - before);
}

/* An earlier entry is of the same IOMMU. */
static bool is_flushed(const struct lazy_batch *batch, unsigned i)
{
    unsigned earlier = 0;
    while (batch->entry[earlier].driver != batch->entry[i].driver)
        earlier++;
    return earlier < i;
}

/* What the CPU notes while somebody waits here is of the next flush. */
static void flush(struct os_lazy *lazy)
{
    struct lazy_batch *batch = lazy->filled;
    if (batch == NULL || batch->n == 0)
        return;
    lazy->filled = NULL;
    batch->flushing = true;
    for (unsigned i = 0; i < batch->n; i++)
        if (!is_flushed(batch, i))
            flush_driver(lazy->kernel, batch->entry[i].driver);
    for (unsigned i = 0; i < batch->n; i++) {
        const struct lazy_entry *entry = &batch->entry[i];
        if (entry->dma != NULL)
            os_iova_give(entry->dma, entry->order, entry->iova);
    }
    batch->n = 0;
    batch->flushing = false;
}

static void flush_all(struct kernel *kernel)
{
    for (unsigned cpu = 0; cpu < kernel->n_cpus; cpu++)
        flush(&kernel->pci->lazy[cpu]);
}

static void timer_fired(struct k_timer *timer)
{
    flush(K_CONTAINER(timer, struct os_lazy, timer));
}

/* ---- Noting ---------------------------------------------------------------------------------- */

static struct os_lazy *lazy_of_cpu(struct kernel *kernel)
{
    struct os_pci *pci = kernel->pci;
    if (pci->lazy == NULL) {
        pci->lazy = k_zalloc(kernel->n_cpus * sizeof(pci->lazy[0]));
        for (unsigned cpu = 0; cpu < kernel->n_cpus; cpu++) {
            pci->lazy[cpu].kernel = kernel;
            k_timer_init(&pci->lazy[cpu].timer, kernel, timer_fired);
        }
    }
    return &pci->lazy[k_cpu(kernel)];
}

static struct lazy_batch *batch_to_fill(struct os_lazy *lazy)
{
    struct lazy_batch *batch = lazy->batches;
    if (lazy->filled != NULL)
        return lazy->filled;
    while (batch != NULL && batch->flushing)
        batch = batch->next;
    if (batch == NULL) {
        batch = k_zalloc(sizeof(*batch));
        batch->next = lazy->batches;
        lazy->batches = batch;
    }
    lazy->filled = batch;
    return batch;
}

static void note(struct kernel *kernel, const struct lazy_entry *entry)
{
    struct os_lazy *lazy = lazy_of_cpu(kernel);
    while (lazy->filled != NULL && lazy->filled->n == LAZY_ENTRIES) {
        flush_all(kernel);
        lazy = lazy_of_cpu(
            kernel); /* the thread may have waited, and others have filled the next list */
    }
    struct lazy_batch *batch = batch_to_fill(lazy);
    batch->entry[batch->n++] = *entry;
    if (!k_timer_pending(&lazy->timer))
        k_timer_set(&lazy->timer, k_now_ps(kernel) + LAZY_PS);
}

int os_iova_unmap(struct kernel *kernel, struct os_dma *dma, uint64_t iova, uint64_t n_pages)
{
    /* Outside of all threads, where nothing takes time, nobody could flush either. */
    const bool lazy = kernel->params.iommu_policy == OS_IOMMU_LAZY &&
                      os_self_or_null(kernel) != NULL;
    const struct lazy_entry entry = { dma, os_iommu_of(kernel, dma->requester_id), iova,
                                      os_iova_order(n_pages) };
    const uint64_t before = iommu_driver_submitted(entry.driver), bytes = n_pages * PAGE_BYTES;
    int status = lazy ? iommu_unmap_later(dma->domain, (struct iova){ iova }, bytes)
                      : iommu_unmap(dma->domain, (struct iova){ iova }, bytes);
    const uint64_t n = iommu_driver_submitted(entry.driver) - before;
    os_iommu_store(kernel, entry.driver);
    os_iommu_wait(kernel, entry.driver, n);
    if (status != 0)
        return status;
    if (lazy)
        note(kernel, &entry);
    else
        os_iova_give(dma, entry.order, iova);
    return 0;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

void os_lazy_forget(struct kernel *kernel, const struct os_dma *dma)
{
    for (unsigned cpu = 0; kernel->pci->lazy != NULL && cpu < kernel->n_cpus; cpu++)
        for (struct lazy_batch *batch = kernel->pci->lazy[cpu].batches; batch != NULL;
             batch = batch->next)
            for (unsigned i = 0; i < batch->n; i++)
                if (batch->entry[i].dma == dma)
                    batch->entry[i].dma = NULL;
}

void os_lazy_free(struct kernel *kernel)
{
    for (unsigned cpu = 0; kernel->pci->lazy != NULL && cpu < kernel->n_cpus; cpu++) {
        struct os_lazy *lazy = &kernel->pci->lazy[cpu];
        while (lazy->batches != NULL) {
            struct lazy_batch *batch = lazy->batches;
            lazy->batches = batch->next;
            free(batch);
        }
    }
    free(kernel->pci->lazy);
}
