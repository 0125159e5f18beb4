/*
 * What it does: Puts events into the queues that the library reads, and data into the receive ring.
 *   Slots are reserved in order and filled by whoever has reserved them; the library waits for the
 *   first that is not filled. A ring slot is free once the event that named it has been read, and
 *   the ring has as many slots as the queue.
 * Follows: Open-MX 0.9.2 driver/linux/omx_event.c (omx_prepare_notify_unexp_event_with_recvq and
 *   commit).
 * Costs: the line of indices and lock, the event's line, the data's lines.
 */
#include "logic/openmx/openmx_internal.h"

/* Calls for each piece of the data. */
static void walk(struct kernel *kernel, const struct openmx_data *data, struct kaddr to,
                 uint8_t *bytes)
{
    uint32_t done = 0, skip = data->offset;
    for (unsigned i = 0; done < data->bytes; i++) {
        struct kaddr at;
        uint64_t room;
        if (data->skb != NULL) {
            const struct skb_frag *frag = &data->skb->frag[i];
            at = kaddr_add(frag->page->addr, frag->offset);
            room = frag->bytes;
        } else {
            at = data->segment[i].at;
            room = data->segment[i].bytes;
        }
        if (skip >= room) {
            skip -= (uint32_t)room;
            continue;
        }
        for (uint32_t n; done < data->bytes && skip < room; done += n, skip += n) {
            const uint32_t left = data->bytes - done;
            n = room - skip < left ? (uint32_t)room - skip : left;
            if (data->skb != NULL)
                n = (uint32_t)skb_together(data->skb, data->offset + done, n);
            if (bytes != NULL)
                k_load(kernel, kaddr_add(at, skip), bytes + done, n);
            else
                k_copy(kernel, kaddr_add(to, done), kaddr_add(at, skip), n);
        }
        skip = 0;
    }
}

void openmx_data_copy(struct kernel *kernel, struct kaddr to, const struct openmx_data *data)
{
    walk(kernel, data, to, NULL);
}

void openmx_data_load(struct kernel *kernel, void *to, const struct openmx_data *data)
{
    walk(kernel, data, (struct kaddr){ 0 }, to);
}

bool openmx_event_post(struct openmx_port *port, unsigned queue, union mx_event *event,
                       const struct openmx_data *data)
{
    struct openmx *omx = port->omx;
    const struct kaddr at = kaddr_add(port->port.queue[queue],
                                      (uint64_t)(port->next[queue] % MX_EVENTS) * MX_EVENT_BYTES);
    const struct kaddr type_at = kaddr_add(at, MX_EVENT_BYTES - 1);
    uint8_t type;
    k_peek(omx->kernel, type_at, &type, 1);
    if (type != MX_EVENT_NONE) {
        omx->stats.full++;
        return false;
    }
    port->next[queue]++;
    if (data != NULL)
        event->message.slot = (uint16_t)(port->next_slot++ % MX_RING_SLOTS);
    openmx_atomic(omx->kernel, openmx_line(port, OPENMX_LINE_EVENT), MX_ACCOUNT_ENDPOINT);
    const unsigned before = k_account(omx->kernel, MX_ACCOUNT_EVENT);
    k_touch(omx->kernel, type_at, 1);
    if (data != NULL) {
        k_account(omx->kernel, MX_ACCOUNT_RING);
        openmx_data_copy(omx->kernel, port->port.receive[event->message.slot], data);
        k_account(omx->kernel, MX_ACCOUNT_EVENT);
    }
    k_store(omx->kernel, at, event, sizeof *event);
    k_fence(omx->kernel); /* wmb() before the type */
    k_account(omx->kernel, before);
    return true;
}
