/*
 * What it does: Messages of native MX between processes of one host, which do not go through the
 *   adapter. Each endpoint has a queue of events in shared memory, where the senders store; data up
 *   to LOCAL_BYTES stay in the sender's send ring, from where the receiver copies them before it
 *   acknowledges. Larger ones are copied once by the kernel, from process to process, when the
 *   receiver pulls. What finds the queue full is lost, and sent again by the library.
 * Leaves out: a queue for each pair of processes.
 * Follows: MX 1.2's shared memory, of which it is published that there is some (Open MPI switches
 *   it off by MX_DISABLE_SHMEM); the threshold, the protocol and the one copy are Open-MX's
 *   (omx_shared.c), which has MX's interface. The arrangement is ours.
 * Costs: the line of index and lock and the event's line, which move from cache to cache; a large
 *   message: a system call and the copy.
 */
#include "logic/mx/mx_account.h"
#include "logic/mx/mx_local.h"
#include "logic/myri/mx_native_internal.h"

#define LOCAL_BYTES 4096u

bool native_is_local(const struct native_port *port, uint64_t nic_id)
{
    return port->local != NULL && nic_id == port->board->board.nic_id;
}

int native_local_open(struct native_port *port)
{
    struct kernel *kernel = port->board->board.kernel;
    static const uint8_t zeros[K_PAGE_BYTES];
    port->local = k_page_alloc(kernel, K_NODE_LOCAL, NATIVE_QUEUE_ORDER);
    if (port->local == NULL)
        return -ENOMEM;
    for (size_t at = 0; at < (size_t)K_PAGE_BYTES << NATIVE_QUEUE_ORDER; at += sizeof zeros)
        k_poke(kernel, kaddr_add(port->local->addr, at), zeros, sizeof zeros);
    port->line = kaddr_add(port->data->addr, K_PAGE_BYTES - K_LINE_BYTES);
    port->port.queue[MX_QUEUE_LOCAL] = port->local->addr;
    port->port.local_bytes = LOCAL_BYTES;
    return 0;
}

/* The endpoint, with a reference; NULL: it is not open. */
static struct native_port *port_get(struct native_board *board, uint8_t id)
{
    struct native_port *port = board->port[id];
    if (port == NULL || port->closed || port->local == NULL)
        return NULL;
    port->refs++;
    return port;
}

/* Slots are reserved in order and filled by whoever has reserved them. */
static void post(struct native_port *port, const union mx_event *event)
{
    struct native_board *board = port->board;
    struct kernel *kernel = board->board.kernel;
    const struct kaddr at = kaddr_add(port->local->addr,
                                      (uint64_t)(port->next % MX_EVENTS) * MX_EVENT_BYTES);
    const struct kaddr type_at = kaddr_add(at, MX_EVENT_BYTES - 1);
    uint8_t type;
    k_peek(kernel, type_at, &type, 1);
    if (type != MX_EVENT_NONE) {
        board->stats.local_full++;
        return;
    }
    port->next++;
    board->stats.local++;
    k_touch(kernel, port->line, 8); /* the lock: the line is here before the next step */
    k_touch_write(kernel, port->line, 8);
    const unsigned before = k_account(kernel, MX_ACCOUNT_USER_EVENT);
    k_touch(kernel, type_at, 1);
    k_store(kernel, at, event, sizeof *event);
    k_account(kernel, before);
}

static void refuse(struct native_port *from, const struct mx_destination *to,
                   enum mx_packet_type type, uint16_t sequence, enum mx_nack nack)
{
    const union mx_event event = mx_local_refusal(&from->port, to, type, sequence, nack);
    post(from, &event);
}

static int deliver(struct native_port *from, const struct mx_destination *to,
                   enum mx_packet_type type, uint16_t sequence, union mx_event *event)
{
    struct native_port *port = port_get(from->board, to->endpoint);
    const bool request = type == MX_PACKET_CONNECT && !event->connect.is_reply;
    if (port == NULL) {
        refuse(from, to, type, sequence, MX_NACK_BAD_ENDPOINT);
        return 0;
    }
    mx_local_source(event, &from->port, to, sequence);
    if (!request && to->session != port->port.session)
        refuse(from, to, type, sequence, MX_NACK_BAD_SESSION);
    else
        post(port, event);
    native_port_put(port);
    return 0;
}

/* ---- Commands -------------------------------------------------------------------------------- */

int native_local_connect(struct native_port *port, const struct mx_connect_command *c)
{
    union mx_event event = mx_local_connect(&port->port, c);
    return deliver(port, &c->to, MX_PACKET_CONNECT, 0, &event);
}

int native_local_tiny(struct native_port *port, const struct mx_send *s, const void *data)
{
    union mx_event event = mx_local_tiny(s, data);
    return deliver(port, &s->to, MX_PACKET_TINY, s->sequence, &event);
}

int native_local_medium(struct native_port *port, const struct mx_send *s, uint8_t fragment,
                        uint16_t fragment_bytes, uint16_t slot)
{
    union mx_event event = mx_local_message(MX_EVENT_MEDIUM, s);
    event.message.fragment = fragment;
    event.message.fragment_bytes = fragment_bytes;
    event.message.slot = slot;
    deliver(port, &s->to, MX_PACKET_MEDIUM, s->sequence, &event);
    return 1;
}

int native_local_rendezvous(struct native_port *port, const struct mx_send *s, uint8_t region,
                            uint8_t region_sequence)
{
    union mx_event event = mx_local_rendezvous(s, region, region_sequence);
    return deliver(port, &s->to, MX_PACKET_RENDEZVOUS, s->sequence, &event);
}

int native_local_notify(struct native_port *port, const struct mx_send *s, uint8_t region,
                        uint8_t region_sequence)
{
    union mx_event event = mx_local_notify(s, region, region_sequence);
    return deliver(port, &s->to, MX_PACKET_NOTIFY, s->sequence, &event);
}

int native_local_ack(struct native_port *port, const struct mx_destination *to, uint32_t number,
                     uint16_t ack)
{
    union mx_event event = mx_local_ack(number, ack);
    return deliver(port, to, MX_PACKET_ACK, 0, &event);
}

/* ---- Data ------------------------------------------------------------------------------------ */

struct kaddr native_local_data(struct mx_port *p, const union mx_event *event)
{
    struct native_port *port = native_port_of(p);
    const struct mx_event_source *source = &event->message.source;
    struct native_port *far = port_get(port->board, source->endpoint);
    if (far == NULL)
        return (struct kaddr){ 0 };
    if ((uint8_t)far->port.session != source->generation) {
        native_port_put(far);
        return (struct kaddr){ 0 };
    }
    port->source = far;
    return far->send_at[event->message.slot];
}

void native_local_done(struct mx_port *p)
{
    struct native_port *port = native_port_of(p);
    native_port_put(port->source);
    port->source = NULL;
}

/* The region with one user more; NULL: there is no such. */
static struct native_region *region_get(struct native_port *far, const struct mx_pull_command *c)
{
    struct native_region *region = far->region[c->region];
    if (far->port.session != c->from.session || region == NULL || region->closing ||
        far->sequence[c->region] != c->region_sequence || region->bytes < c->bytes)
        return NULL;
    region->users++;
    return region;
}

int native_local_pull(struct native_port *port, const struct mx_pull_command *c)
{
    struct native_board *board = port->board;
    struct kernel *kernel = board->board.kernel;
    const struct native_region *to = port->region[c->local_region];
    k_syscall(kernel);
    struct native_port *far = port_get(board, c->from.endpoint);
    struct native_region *from = far != NULL && to->bytes >= c->bytes ? region_get(far, c) : NULL;
    if (from != NULL) {
        const unsigned before = k_account(kernel, MX_ACCOUNT_DATA);
        mx_local_copy(kernel, to->segment, from->segment, c->bytes);
        k_account(kernel, before);
        board->stats.local_pulls++;
        if (--from->users == 0 && from->closing)
            k_wake(kernel, &from->idle);
    }
    if (far != NULL)
        native_port_put(far);
    return 1 + (from != NULL ? MX_PULL_DONE : MX_PULL_REFUSED);
}
