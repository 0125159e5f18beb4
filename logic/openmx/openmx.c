/*
 * What it does: Attaches to an Ethernet device, opens and closes endpoints: their descriptors,
 *   event queues and rings. Tells a process on which CPU its packets come in: the one that the
 *   receive queue of its endpoint interrupts, if the device has a queue for each CPU and the driver
 *   says which, or if the module has chosen it (openmx_steer.c).
 * Follows: Open-MX 0.9.2 driver/linux/omx_iface.c, omx_endpoint.c; the Open-MX paper (3.2, 3.3:
 *   hints).
 * Costs: a system call per command; the lines of interface, peer and descriptor.
 */
#include "logic/openmx/openmx_internal.h"

#define PEER_LINES_FROM 8u
#define PEER_LINES      56u

const struct openmx_options openmx_options_default = { .reply_bytes = MX_REPLY_BYTES,
                                                       .replies_per_block = MX_REPLIES_PER_BLOCK,
                                                       .blocks = OPENMX_BLOCKS_MAX,
                                                       .pull_resend_ps = K_S,
                                                       .pull_resends_max = 500,
                                                       .grace_ps = 12 * K_MS,
                                                       .local_bytes = 4096,
                                                       .ioat_message_bytes = 65536,
                                                       .ioat_reply_bytes = 1024,
                                                       .ioat_local_bytes = 2u << 20 };

/* ---- Lines ----------------------------------------------------------------------------------- */

void openmx_touch_interface(struct openmx *omx, uint64_t nic_id, bool received)
{
    const unsigned peer = PEER_LINES_FROM + (unsigned)(nic_id % PEER_LINES);
    const unsigned before = k_account(omx->kernel, MX_ACCOUNT_ENDPOINT);
    k_touch(omx->kernel, omx->lines->addr, 8);
    /* Counters. Those of sent packets lie 60 bytes before those of received ones: in two lines. */
    k_touch_write(omx->kernel, kaddr_add(omx->lines->addr, (received ? 2u : 1u) * K_LINE_BYTES), 8);
    k_touch(omx->kernel, kaddr_add(omx->lines->addr, (uint64_t)peer * K_LINE_BYTES), 8);
    k_account(omx->kernel, before);
}

void openmx_enter(struct openmx_port *port, uint64_t nic_id)
{
    k_syscall(port->omx->kernel);
    openmx_atomic(port->omx->kernel, openmx_line(port, OPENMX_LINE_PORT), MX_ACCOUNT_ENDPOINT);
    openmx_touch_interface(port->omx, nic_id, false);
}

/* ---- References ------------------------------------------------------------------------------ */

struct openmx_port *openmx_port_get(struct openmx *omx, uint8_t id)
{
    struct openmx_port *port = omx->port[id];
    if (port == NULL)
        return NULL;
    port->refs++;
    openmx_touch(omx->kernel, openmx_line(port, OPENMX_LINE_PORT), 8, false,
                 MX_ACCOUNT_ENDPOINT); /* its state */
    openmx_atomic(omx->kernel, openmx_line(port, OPENMX_LINE_PORT), MX_ACCOUNT_ENDPOINT);
    return port;
}

static void free_pages(struct kernel *kernel, struct k_page **page, unsigned n)
{
    for (unsigned i = 0; i < n && page != NULL; i++)
        if (page[i] != NULL)
            k_page_put(kernel, page[i]);
    k_free(page);
}

static void port_free(struct openmx_port *port)
{
    struct kernel *kernel = port->omx->kernel;
    free_pages(kernel, port->receive, MX_RING_SLOTS);
    free_pages(kernel, port->send, MX_RING_SLOTS);
    for (unsigned i = 0; i < 2; i++)
        if (port->queue[i] != NULL)
            k_page_put(kernel, port->queue[i]);
    if (port->lines != NULL)
        k_page_put(kernel, port->lines);
    port->omx->n_ports--;
    k_free(port->port.receive);
    k_free(port->port.send);
    k_free(port);
}

void openmx_port_drop(struct openmx_port *port)
{
    if (--port->refs == 0)
        port_free(port);
}

void openmx_port_put(struct openmx_port *port)
{
    openmx_atomic(port->omx->kernel, openmx_line(port, OPENMX_LINE_PORT), MX_ACCOUNT_ENDPOINT);
    openmx_port_drop(port);
}

/* ---- Endpoints ------------------------------------------------------------------------------- */

/* The CPU of the receive queue that the adapter chooses for an endpoint; -1: the driver does not
 * say, or the adapter does not know MX. */
static int cpu_of(const struct net_device *dev, uint8_t id)
{
    const unsigned queue = mx_endpoint_queue(id, dev->n_rx_queues);
    if ((dev->features & NET_FEATURE_MX_QUEUES) == 0)
        return -1;
    for (unsigned cpu = 0; cpu < k_n_cpus(dev->kernel) && cpu < 256; cpu++)
        if (dev->rx_queue_of_cpu[cpu] == (int)queue)
            return (int)cpu;
    return -1;
}

static bool ring_new(struct kernel *kernel, struct k_page ***pages, struct kaddr **at)
{
    *pages = k_zalloc(MX_RING_SLOTS * sizeof **pages);
    *at = k_zalloc(MX_RING_SLOTS * sizeof **at);
    for (unsigned i = 0; i < MX_RING_SLOTS; i++) {
        (*pages)[i] = k_page_alloc(kernel, K_NODE_LOCAL, 0);
        if ((*pages)[i] == NULL)
            return false;
        (*at)[i] = (*pages)[i]->addr;
    }
    return true;
}

static bool memory_new(struct openmx_port *port)
{
    struct kernel *kernel = port->omx->kernel;
    static const uint8_t zeros[K_PAGE_BYTES];
    port->lines = k_page_alloc(kernel, K_NODE_LOCAL, 0);
    for (unsigned i = 0; i < 2; i++) {
        port->queue[i] = k_page_alloc(kernel, K_NODE_LOCAL, 4);
        _Static_assert(K_PAGE_BYTES << 4 == MX_EVENTS * MX_EVENT_BYTES, "the order of the pages");
        if (port->queue[i] == NULL)
            return false;
        port->port.queue[i] = port->queue[i]->addr;
        for (unsigned at = 0; at < MX_EVENTS * MX_EVENT_BYTES; at += sizeof zeros)
            k_poke(kernel, kaddr_add(port->port.queue[i], at), zeros, sizeof zeros);
    }
    return port->lines != NULL && ring_new(kernel, &port->receive, &port->port.receive) &&
           ring_new(kernel, &port->send, &port->port.send);
}

static int port_open(struct mx_board *board, uint8_t id, struct mx_port **result)
{
    struct openmx *omx = K_CONTAINER(board, struct openmx, board);
    k_syscall(omx->kernel);
    if (omx->port[id] != NULL || omx->opening[id])
        return -EBUSY;
    struct openmx_port *port = k_zalloc(sizeof *port);
    port->omx = omx;
    port->refs = 1;
    omx->n_ports++;
    port->port.board = board;
    port->port.id = id;
    port->port.local_bytes = omx->options.local_bytes;
    port->port.cpu = cpu_of(omx->dev, id);
    for (unsigned i = 0; i < MX_RING_SLOTS; i++)
        port->slot[i] = (struct openmx_slot){ port, (uint16_t)i };
    omx->opening[id] = true;
    int error = memory_new(port) ? 0 : -ENOMEM;
    if (error == 0)
        error = openmx_steer(port);
    omx->opening[id] = false;
    if (error != 0) {
        openmx_port_drop(port);
        return error;
    }
    port->port.session = ++omx->next_session;
    omx->port[id] = port;
    omx->was_open[id] = true;
    *result = &port->port;
    return 0;
}

static void port_close(struct mx_port *p)
{
    struct openmx_port *port = openmx_port_of(p);
    struct openmx *omx = port->omx;
    k_syscall(omx->kernel);
    openmx_steer_end(omx, p->id);
    omx->port[p->id] = NULL;
    port->closed = true;
    openmx_pulls_close(port);
    openmx_regions_close(port);
    openmx_port_put(port);
}

/* ---- Commands: the process is in the kernel meanwhile ---------------------------------------- */

#define COMMAND(NAME, PARAMETERS, ARGUMENTS)                          \
    static int command_##NAME PARAMETERS                              \
    {                                                                 \
        struct kernel *kernel = port->board->kernel;                  \
        const unsigned before = k_account(kernel, MX_ACCOUNT_KERNEL); \
        const int result = openmx_##NAME ARGUMENTS;                   \
        k_account(kernel, before);                                    \
        return result;                                                \
    }
COMMAND(send_connect, (struct mx_port * port, const struct mx_connect_command *c), (port, c))
COMMAND(send_tiny, (struct mx_port * port, const struct mx_send *s, const void *data),
        (port, s, data))
COMMAND(send_small,
        (struct mx_port * port, const struct mx_send *s, const struct mx_segment *segment,
         unsigned n),
        (port, s, segment, n))
COMMAND(send_medium,
        (struct mx_port * port, const struct mx_send *s, uint8_t fragment, uint16_t bytes,
         uint16_t slot),
        (port, s, fragment, bytes, slot))
COMMAND(send_rendezvous,
        (struct mx_port * port, const struct mx_send *s, uint8_t region, uint8_t sequence),
        (port, s, region, sequence))
COMMAND(send_notify,
        (struct mx_port * port, const struct mx_send *s, uint8_t region, uint8_t sequence),
        (port, s, region, sequence))
COMMAND(send_ack,
        (struct mx_port * port, const struct mx_destination *to, uint32_t number, uint16_t ack),
        (port, to, number, ack))
COMMAND(pull_command, (struct mx_port * port, const struct mx_pull_command *c), (port, c))
COMMAND(region_new,
        (struct mx_port * port, const struct mx_segment *segment, unsigned n, uint8_t *region,
         uint8_t *sequence),
        (port, segment, n, region, sequence))

static void command_region_free(struct mx_port *port, uint8_t region)
{
    struct kernel *kernel = port->board->kernel;
    const unsigned before = k_account(kernel, MX_ACCOUNT_KERNEL);
    openmx_region_free(port, region);
    k_account(kernel, before);
}

static const struct mx_board_ops ops = { .open = port_open,
                                         .close = port_close,
                                         .connect = command_send_connect,
                                         .send_tiny = command_send_tiny,
                                         .send_small = command_send_small,
                                         .send_medium = command_send_medium,
                                         .send_rendezvous = command_send_rendezvous,
                                         .pull = command_pull_command,
                                         .notify = command_send_notify,
                                         .ack = command_send_ack,
                                         .region_new = command_region_new,
                                         .region_free = command_region_free };

/* ---- The interface --------------------------------------------------------------------------- */

struct openmx *openmx_new(struct net *net, struct net_device *dev, struct dma_core *dma,
                          const struct openmx_options *options)
{
    if (!openmx_steer_possible(dev, options))
        return NULL;
    struct openmx *omx = k_zalloc(sizeof *omx);
    omx->kernel = dev->kernel;
    omx->costs = k_costs(dev->kernel);
    omx->net = net;
    omx->dev = dev;
    omx->options = *options;
    omx->board = (struct mx_board){ .ops = &ops,
                                    .kernel = dev->kernel,
                                    .nic_id = mx_nic_from_bytes(dev->mac.byte) };
    omx->lines = k_page_alloc(dev->kernel, dev->device != NULL ? dev->device->node : K_NODE_LOCAL,
                              0);
    if (omx->lines == NULL || net_protocol_register(net, MX_ETHER_TYPE, openmx_receive, omx) != 0) {
        if (omx->lines != NULL)
            k_page_put(dev->kernel, omx->lines);
        k_free(omx);
        return NULL;
    }
    openmx_regions_init(omx);
    if (options->ioat && dma != NULL)
        openmx_copies_init(omx, dma);
    return omx;
}

void openmx_free(struct openmx *omx)
{
    net_protocol_unregister(omx->net, MX_ETHER_TYPE);
    while (omx->n_ports > 0) /* somebody is still at one that is closed */
        k_sleep(omx->kernel, 10 * K_US);
    openmx_regions_release(omx);
    openmx_pulls_free(omx);
    openmx_copies_release(omx);
    k_page_put(omx->kernel, omx->lines);
    k_free(omx);
}

struct mx_board *openmx_board(struct openmx *omx)
{
    return &omx->board;
}

void openmx_stats_get(const struct openmx *omx, struct openmx_stats *stats)
{
    *stats = omx->stats;
}

unsigned openmx_regions_live(const struct openmx *omx)
{
    return omx->n_regions;
}
