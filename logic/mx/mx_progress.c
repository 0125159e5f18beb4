/*
 * What it does: Progress of an endpoint: reads the events of all queues, sends acknowledgements and
 *   what has to be sent again; polls when there is nothing to do.
 * Follows: Open-MX 0.9.2 libopen-mx/omx_lib.c (omx__progress, omx__process_event).
 * Costs: a look loads the line of the next slot of each queue; an event costs mx_lib_event_cycles
 *   and the store of its type. Polling looks every poll_ps.
 */
#include "logic/mx/mx_internal.h"

static struct kaddr slot_at(const struct mx_lib *lib, unsigned queue)
{
    return kaddr_add(lib->port->queue[queue],
                     (uint64_t)(lib->read[queue] % MX_EVENTS) * MX_EVENT_BYTES);
}

void mx_done(struct mx_request *r, enum mx_code code, uint64_t bytes)
{
    struct mx_lib *lib = r->partner->lib;
    r->done = true;
    r->status.code = code;
    r->status.bytes = bytes;
    k_touch_write(lib->kernel, r->lines, K_LINE_BYTES);
    if (r->user)
        mx_list_append(&lib->done, &r->queue);
    else
        mx_request_put(lib, r);
}

/* Data that a process of this host has left in its send ring. */
static void local_message(struct mx_lib *lib, const union mx_event *event)
{
    const struct kaddr data = lib->board->ops->local_data(lib->port, event);
    if (data.v == 0)
        return;
    mx_receive_event(lib, event, data);
    lib->board->ops->local_done(lib->port);
}

static void handle_event(struct mx_lib *lib, unsigned queue, const union mx_event *event)
{
    struct kaddr data = { 0 };
    if (queue == MX_QUEUE_LOCAL && event->type == MX_EVENT_MEDIUM) {
        local_message(lib, event);
        return;
    }
    switch (event->type) {
    case MX_EVENT_SMALL:
    case MX_EVENT_MEDIUM:
        data = lib->port->receive[event->message.slot];
        mx_receive_event(lib, event, data);
        break;
    case MX_EVENT_TINY:
    case MX_EVENT_RENDEZVOUS:
    case MX_EVENT_NOTIFY: mx_receive_event(lib, event, data); break;
    case MX_EVENT_CONNECT: mx_partner_connect_event(lib, event); break;
    case MX_EVENT_ACK: mx_ack_event(lib, event); break;
    case MX_EVENT_NACK: mx_partner_nack_event(lib, event); break;
    case MX_EVENT_SENT: mx_send_sent_event(lib, event); break;
    case MX_EVENT_PULLED: mx_large_pulled_event(lib, event); break;
    default: k_fault(lib->kernel, "an event of type %u", event->type);
    }
}

static bool read_event(struct mx_lib *lib, unsigned queue)
{
    const uint8_t none = MX_EVENT_NONE;
    const struct kaddr at = slot_at(lib, queue);
    union mx_event event;
    const unsigned before = k_account(lib->kernel, MX_ACCOUNT_USER_EVENT);
    k_load(lib->kernel, at, &event, sizeof event);
    k_account(lib->kernel, before);
    if (event.type == MX_EVENT_NONE)
        return false;
    k_run(lib->kernel, K_TEXT_MX_EVENT, lib->costs->mx_lib_event_cycles);
    k_touch_write(lib->kernel, lib->lines, K_LINE_BYTES);
    handle_event(lib, queue, &event);
    k_account(lib->kernel, MX_ACCOUNT_USER_EVENT);
    k_store(lib->kernel, kaddr_add(at, MX_EVENT_BYTES - 1), &none, 1);
    k_account(lib->kernel, before);
    lib->read[queue]++;
    if (lib->board->ops->consumed != NULL)
        lib->board->ops->consumed(lib->port, queue, lib->read[queue]);
    return true;
}

void mx_progress(struct mx_lib *lib)
{
    const unsigned before = k_account(lib->kernel, MX_ACCOUNT_LIBRARY);
    k_run(lib->kernel, K_TEXT_MX_PROGRESS, 0);
    for (unsigned queue = 0; queue < lib->n_queues; queue++)
        for (unsigned n = 0; n < MX_EVENTS_AT_ONCE && read_event(lib, queue); n++)
            ;
    const uint64_t now_ps = k_now_ps(lib->kernel);
    if (lib->room || now_ps >= lib->retry_ps) {
        lib->retry_ps = now_ps + MX_RETRY_PS;
        if (!mx_list_empty(&lib->pullable))
            mx_large_pullable(lib);
        if (lib->n_waiting > 0)
            mx_send_waiting(lib);
        lib->room = false;
    }
    mx_resend(lib, now_ps);
    mx_partners_ping(lib, now_ps);
    mx_acks_send(lib, now_ps, false);
    k_account(lib->kernel, before);
}

void mx_idle(struct mx_lib *lib, uint64_t until_ps)
{
    const uint64_t due_ps = mx_next_deadline(lib);
    const uint8_t none = MX_EVENT_NONE;
    struct k_spin_at at[MX_QUEUES];
    unsigned n = 0;
    for (unsigned queue = 0; queue < lib->n_queues; queue++)
        if (queue != MX_QUEUE_EXPECTED || lib->n_expected > 0)
            at[n++] = (struct k_spin_at){ kaddr_add(slot_at(lib, queue), MX_EVENT_BYTES - 1), &none,
                                          1 };
    k_spin_any(lib->kernel, at, n, lib->options.poll_ps, due_ps < until_ps ? due_ps : until_ps);
}
