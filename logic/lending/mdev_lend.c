/*
 * Models: the lender of a device that a guest of another host has: the guest's memory shown to the
 *   device at guest-physical addresses, in windows of its own; the device's interrupts, handled
 * here and passed on as a word in the borrower's mailbox and a doorbell. Does not model: legacy
 * interrupts; interrupts mapped over the bridge to the guest's host. Timing: entries of windows,
 * IOMMU calls; an interrupt is that of the device here, two posted writes over the fabric, and that
 * of the doorbell there. Sources: SmartIO, 5.2, 5.4.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static int serve_map(struct lend *lend, const struct msg_vm_map *request, struct lend_error *error)
{
    struct lend_connection *c = lend->connection;
    struct lend_device *d = lend->device;
    if (lend->n_ranges == LEND_DMA_RANGES)
        return lend_fail(error, -ENOSPC, "%s: %u ranges of a guest's memory, all in use", d->name,
                         LEND_DMA_RANGES);
    struct lend_map map = { .n = 0 };
    int status = lend_map(c->adapter, c->node, request->fabric, request->bytes, 0, d->name, &map,
                          error);
    if (status != 0)
        return status;
    status = lend_show_at(lend, map.address, request->bytes, K_DMA_BOTH, request->guest, error);
    if (status != 0) {
        lend_unmap(c->adapter, &map);
        return status;
    }
    map.bytes = request->bytes;
    lend->range[lend->n_ranges] = map;
    lend->dma[lend->n_ranges++] = request->guest;
    return 0;
}

static void unmap_all(struct lend *lend)
{
    while (lend->for_vm && lend->n_ranges > 0) {
        struct lend_map *map = &lend->range[--lend->n_ranges];
        lend_hide(lend, lend->dma[lend->n_ranges], map->bytes);
        lend_unmap(lend->connection->adapter, map);
        *map = (struct lend_map){ .n = 0 };
    }
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

/* Hard interrupt. The device's data went the same way before. */
static void raised(void *arg)
{
    struct lend_irq *irq = arg;
    struct lend_connection *c = irq->lend->connection;
    if (c->state != CONNECTION_UP || c->host->dead)
        return;
    lend_map_write(c->adapter, &c->pool,
                   (uint64_t)c->peer_box * LEND_MAILBOX_BYTES + BOX_EVENTS + 8 * irq->event, 8,
                   ++irq->count);
    lend_map_write(c->adapter, &c->registers, NTB_FABRIC_DOORBELL, 4, 1u << BELL_EVENT);
}

static void irq_drop(struct lend *lend, struct lend_irq *irq)
{
    struct lend_irq **link = &lend->irqs;
    while (*link != irq)
        link = &(*link)->next;
    *link = irq->next;
    k_irq_free(irq->irq);
    k_free(irq);
}

static int serve_irq(struct lend *lend, const struct msg_vm_irq *request, struct lend_error *error)
{
    struct kernel *kernel = lend->device->host->kernel;
    struct lend_irq *irq = lend->irqs;
    while (irq != NULL && irq->index != request->index)
        irq = irq->next;
    if (irq != NULL)
        irq_drop(lend, irq);
    if (request->on == 0)
        return 0;
    if (request->event >= N_EVENTS)
        return lend_fail(error, -EPROTO, "event %u of %u", request->event, N_EVENTS);
    irq = k_zalloc(sizeof *irq);
    *irq = (struct lend_irq){ .lend = lend, .index = request->index, .event = request->event };
    int status = k_irq_request(lend->device->pci, request->index, request->index % k_n_cpus(kernel),
                               raised, irq, &irq->irq);
    if (status != 0) {
        k_free(irq);
        return lend_fail(error, status, "%s: no interrupt for entry %u of its table",
                         lend->device->name, (unsigned)request->index);
    }
    irq->next = lend->irqs;
    lend->irqs = irq;
    return 0;
}

/* ---- Requests, the end ----------------------------------------------------------------------- */

int lend_serve_vm(struct lend_connection *c, unsigned type, const void *body, size_t n,
                  struct lend_error *error)
{
    union {
        uint32_t lend;
        struct msg_vm_map map;
        struct msg_vm_irq irq;
    } request;
    if (n != (type == MSG_VM_IRQ ? sizeof request.irq : sizeof request.map))
        return lend_fail(error, -EPROTO, "a request of %zu bytes", n);
    memcpy(&request, body, n);
    lend_lock(c->host, &c->host->lender_lock);
    struct lend *lend = lend_of(c, request.lend);
    int status = 0;
    if (lend == NULL || !lend->for_vm)
        status = lend_fail(error, -ENOENT, "lend %u is over", request.lend);
    else if (type == MSG_VM_MAP)
        status = serve_map(lend, &request.map, error);
    else if (type == MSG_VM_IRQ)
        status = serve_irq(lend, &request.irq, error);
    else
        unmap_all(lend);
    lend_unlock(c->host, &c->host->lender_lock);
    return status;
}

void lend_vm_end(struct lend *lend)
{
    while (lend->irqs != NULL)
        irq_drop(lend, lend->irqs);
    unmap_all(lend);
}

void lend_vm_free(struct lend *lend)
{
    while (lend->irqs != NULL) {
        struct lend_irq *irq = lend->irqs;
        lend->irqs = irq->next;
        k_free(irq);
    }
}
