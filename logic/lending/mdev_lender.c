/*
 * What it does: the lender's side of a device that a guest of the borrower uses: maps the guest's
 *   memory at guest-physical addresses, in windows of its own; forwards the device's interrupts by
 *   a counter in the borrower's mailbox and a doorbell. It neither forwards legacy interrupts nor
 *   maps interrupts straight to the guest's host.
 * Follows: SmartIO, 5.2, 5.4.
 * Costs: window entries and IOMMU calls. An interrupt costs the device's own here, two posted
 *   writes over the fabric, and the doorbell's there.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static int serve_map(struct lend_lease *lease, const struct msg_vm_map *request,
                     struct lend_error *error)
{
    struct lend_connection *c = lease->connection;
    struct lend_device *d = lease->device;
    if (lease->n_ranges == LEND_DMA_RANGES)
        return lend_fail(error, -ENOSPC, "%s: %u ranges of a guest's memory, all in use", d->name,
                         LEND_DMA_RANGES);
    struct lend_map map = { .n = 0 };
    int status = lend_map(c->adapter, c->node, request->fabric, request->bytes, 0, d->name, &map,
                          error);
    if (status != 0)
        return status;
    status = lend_lease_map_at(lease, map.address, request->bytes, K_DMA_BOTH,
                               request->guest_address, error);
    if (status != 0) {
        lend_unmap(c->adapter, &map);
        return status;
    }
    map.bytes = request->bytes;
    lease->range[lease->n_ranges] = map;
    lease->dma[lease->n_ranges++] = request->guest_address;
    return 0;
}

static void unmap_all(struct lend_lease *lease)
{
    while (lease->for_vm && lease->n_ranges > 0) {
        struct lend_map *map = &lease->range[--lease->n_ranges];
        lend_lease_unmap(lease, lease->dma[lease->n_ranges], map->bytes);
        lend_unmap(lease->connection->adapter, map);
        *map = (struct lend_map){ .n = 0 };
    }
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

/* Hard interrupt. The device's data took the same path before, so they arrive first. */
static void device_interrupt(void *arg)
{
    struct lend_irq *irq = arg;
    struct lend_connection *c = irq->lease->connection;
    if (c->state != CONNECTION_UP || c->host->dead)
        return;
    lend_mailbox_write(c, BOX_EVENTS + 8 * irq->event, ++irq->count);
    lend_ring(c, DOORBELL_EVENT);
}

static void irq_drop(struct lend_lease *lease, struct lend_irq *irq)
{
    K_LIST_REMOVE(lease->irqs, irq);
    k_irq_free(irq->irq);
    k_free(irq);
}

static int serve_irq(struct lend_lease *lease, const struct msg_vm_irq *request,
                     struct lend_error *error)
{
    struct kernel *kernel = lease->device->host->kernel;
    struct lend_irq *irq = lease->irqs;
    while (irq != NULL && irq->index != request->index)
        irq = irq->next;
    if (irq != NULL)
        irq_drop(lease, irq);
    if (request->on == 0)
        return 0;
    if (request->event >= N_EVENTS)
        return lend_fail(error, -EPROTO, "event %u of %u", request->event, N_EVENTS);
    irq = k_zalloc(sizeof *irq);
    *irq = (struct lend_irq){ .lease = lease, .index = request->index, .event = request->event };
    int status = k_irq_request(lease->device->pci, request->index,
                               request->index % k_n_cpus(kernel), device_interrupt, irq, &irq->irq);
    if (status != 0) {
        k_free(irq);
        return lend_fail(error, status, "%s: no interrupt for entry %u of its table",
                         lease->device->name, (unsigned)request->index);
    }
    irq->next = lease->irqs;
    lease->irqs = irq;
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

int lend_serve_vm(struct lend_connection *c, unsigned type, const void *body, void *reply,
                  size_t *bytes, struct lend_error *error)
{
    union {
        uint32_t lease;
        struct msg_vm_map map;
        struct msg_vm_irq irq;
    } request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    struct lend_lease *lease = lend_lease_find(c, request.lease);
    if (lease == NULL || !lease->for_vm)
        return lend_lease_over(request.lease, error);
    if (type == MSG_VM_MAP)
        return serve_map(lease, &request.map, error);
    if (type == MSG_VM_IRQ)
        return serve_irq(lease, &request.irq, error);
    unmap_all(lease);
    return 0;
}

void lend_vm_release(struct lend_lease *lease)
{
    while (lease->irqs != NULL)
        irq_drop(lease, lease->irqs);
    unmap_all(lease);
}

void lend_vm_free(struct lend_lease *lease)
{
    while (lease->irqs != NULL) {
        struct lend_irq *irq = lease->irqs;
        lease->irqs = irq->next;
        k_free(irq);
    }
}
