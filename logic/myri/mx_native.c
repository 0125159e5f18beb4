/*
 * What it does: Drives adapters with the firmware of Myrinet Express. The kernel's part: endpoints,
 *   whose queues and rings it allocates and tells the adapter of; regions, which it pins and maps.
 *   The process's part, without the kernel: a line for each packet; data of small messages in two
 *   lines before it. How far the library has read its queues is told every 128 events. Messages
 *   within the host: mx_native_local.c.
 * Leaves out: sleeping until an interrupt comes; regions of more than 256 segments.
 * Follows: Open-MX 0.9.2, which has the interface of MX's firmware (omx_reg.c, omx_endpoint.c).
 * Costs: a packet: the line, and a fence; data of small messages are copied together first.
 *   Regions: a system call, pin_cycles and pin_page_cycles, a command if a message leaves the host.
 */
#include "logic/myri/mx_native_internal.h"

#define TOLD_EVERY 128u

struct mx_native {
    struct kernel *kernel;
    bool shared_memory;
    struct native_board *first;
    struct k_pci_driver pci;
};

/* ---- Commands of the kernel ------------------------------------------------------------------ */

/* Gives the adapter a table. */
static int table_command(struct native_board *board, uint32_t command, const void *table,
                         size_t bytes, uint32_t which)
{
    struct kernel *kernel = board->board.kernel;
    while (board->table_busy)
        k_sleep(kernel, K_US);
    board->table_busy = true;
    k_store(kernel, board->table, table, bytes);
    const int error = myri_command_address(&board->commands, command, board->table_dma, which);
    board->table_busy = false;
    return error;
}

static int command(struct native_board *board, uint32_t what, uint32_t data0)
{
    return myri_command(&board->commands, what, &data0, 0, 0);
}

/* ---- Memory of endpoints --------------------------------------------------------------------- */

static int page_new(struct native_board *board, unsigned order, struct k_page **page, uint64_t *dma)
{
    struct kernel *kernel = board->board.kernel;
    static const uint8_t zeros[K_PAGE_BYTES];
    *page = k_page_alloc(kernel, K_NODE_LOCAL, order);
    if (*page == NULL)
        return -ENOMEM;
    for (size_t at = 0; at < (size_t)K_PAGE_BYTES << order; at += sizeof zeros)
        k_poke(kernel, kaddr_add((*page)->addr, at), zeros, sizeof zeros);
    const int error = k_dma_map(&board->pci->device, (*page)->addr, (size_t)K_PAGE_BYTES << order,
                                K_DMA_BOTH, dma);
    if (error != 0) {
        k_page_put(kernel, *page);
        *page = NULL;
    }
    return error;
}

static void page_free(struct native_board *board, unsigned order, struct k_page *page, uint64_t dma)
{
    if (page == NULL)
        return;
    k_dma_unmap(&board->pci->device, dma, (size_t)K_PAGE_BYTES << order, K_DMA_BOTH);
    k_page_put(board->board.kernel, page);
}

static void port_free(struct native_port *port)
{
    struct native_board *board = port->board;
    for (unsigned i = 0; i < 2; i++)
        page_free(board, NATIVE_QUEUE_ORDER, port->queue[i], port->queue_dma[i]);
    for (unsigned i = 0; i < MX_RING_SLOTS; i++) {
        page_free(board, 0, port->receive[i], port->receive_dma[i]);
        page_free(board, 0, port->send[i], port->send_dma[i]);
    }
    if (port->data != NULL)
        k_page_put(board->board.kernel, port->data);
    if (port->local != NULL)
        k_page_put(board->board.kernel, port->local);
    k_free(port);
}

void native_port_put(struct native_port *port)
{
    if (--port->refs == 0)
        port_free(port);
}

static int port_memory(struct native_port *port)
{
    struct native_board *board = port->board;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < 2; i++)
        error = page_new(board, NATIVE_QUEUE_ORDER, &port->queue[i], &port->queue_dma[i]);
    for (unsigned i = 0; error == 0 && i < MX_RING_SLOTS; i++) {
        error = page_new(board, 0, &port->receive[i], &port->receive_dma[i]);
        if (error == 0)
            error = page_new(board, 0, &port->send[i], &port->send_dma[i]);
        if (error == 0) {
            port->receive_at[i] = port->receive[i]->addr;
            port->send_at[i] = port->send[i]->addr;
        }
    }
    port->data = k_page_alloc(board->board.kernel, K_NODE_LOCAL, 0);
    if (error == 0 && port->data == NULL)
        error = -ENOMEM;
    return error == 0 && board->driver->shared_memory ? native_local_open(port) : error;
}

static int port_announce(struct native_port *port)
{
    struct myri_mx_memory *memory = k_zalloc(sizeof *memory);
    memory->session = port->port.session;
    memcpy(memory->queue, port->queue_dma, sizeof memory->queue);
    memcpy(memory->receive, port->receive_dma, sizeof memory->receive);
    memcpy(memory->send, port->send_dma, sizeof memory->send);
    const int error = table_command(port->board, MYRI_MX_OPEN, memory, sizeof *memory,
                                    port->port.id);
    k_free(memory);
    return error;
}

static int native_open(struct mx_board *b, uint8_t id, struct mx_port **result)
{
    struct native_board *board = K_CONTAINER(b, struct native_board, board);
    k_syscall(b->kernel);
    if (board->port[id] != NULL)
        return -EBUSY;
    struct native_port *port = k_zalloc(sizeof *port);
    board->port[id] = port;
    port->board = board;
    port->refs = 1;
    port->closed = true; /* to others, until it is ready */
    port->port = (struct mx_port){ .board = b, .id = id, .untold = TOLD_EVERY - 1, .cpu = -1 };
    port->port.session = ++board->next_session;
    int error = port_memory(port);
    if (error == 0)
        error = port_announce(port);
    if (error != 0) {
        board->port[id] = NULL;
        native_port_put(port);
        return error;
    }
    for (unsigned i = 0; i < 2; i++)
        port->port.queue[i] = port->queue[i]->addr;
    port->port.receive = port->receive_at;
    port->port.send = port->send_at;
    port->closed = false;
    *result = &port->port;
    return 0;
}

/* ---- Regions --------------------------------------------------------------------------------- */

/* Undoes the first n segments. */
static void unmap_region(struct native_board *board, struct native_region *region, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        k_dma_unmap(&board->pci->device, region->dma[i], region->segment[i].bytes, K_DMA_BOTH);
        k_unpin(board->board.kernel, region->segment[i].at, region->segment[i].bytes);
    }
}

static int map_region(struct native_board *board, struct native_region *region)
{
    for (unsigned i = 0; i < region->n; i++) {
        const struct mx_segment *s = &region->segment[i];
        int error = k_pin(board->board.kernel, s->at, s->bytes);
        if (error == 0) {
            error = k_dma_map(&board->pci->device, s->at, s->bytes, K_DMA_BOTH, &region->dma[i]);
            if (error != 0)
                k_unpin(board->board.kernel, s->at, s->bytes);
        }
        if (error != 0) {
            unmap_region(board, region, i);
            return error;
        }
    }
    return 0;
}

/* The adapter gets to know the region before it is to carry the first message that leaves the
 * host. */
static int announce_region(struct native_port *port, unsigned number)
{
    struct native_region *region = port->region[number];
    if (region == NULL)
        return -EINVAL;
    if (region->announced)
        return 0;
    struct myri_mx_table *table = k_zalloc(sizeof *table);
    table->n_pieces = region->n;
    for (unsigned i = 0; i < region->n; i++)
        table->piece[i] = (struct myri_mx_piece){ region->dma[i], region->segment[i].bytes };
    const size_t bytes = offsetof(struct myri_mx_table, piece) + region->n * sizeof table->piece[0];
    const int error = table_command(port->board, MYRI_MX_REGION_NEW, table, bytes,
                                    MYRI_MX_WHICH(port->port.id, number, port->sequence[number]));
    k_free(table);
    region->announced = error == 0;
    return error;
}

static int native_region_new(struct mx_port *p, const struct mx_segment *segment, unsigned n,
                             uint8_t *number, uint8_t *sequence)
{
    struct native_port *port = native_port_of(p);
    struct native_board *board = port->board;
    unsigned i = 0;
    k_syscall(board->board.kernel);
    if (n == 0 || n > MX_SEGMENTS_MAX)
        return -EINVAL;
    while (i < MYRI_MX_REGIONS && port->region[i] != NULL)
        i++;
    if (i == MYRI_MX_REGIONS)
        return -ENOSPC;
    struct native_region *region = k_zalloc(sizeof *region);
    port->region[i] = region;
    region->n = n;
    memcpy(region->segment, segment, n * sizeof *segment);
    for (unsigned s = 0; s < n; s++)
        region->bytes += segment[s].bytes;
    const int error = map_region(board, region);
    if (error != 0) {
        port->region[i] = NULL;
        k_free(region);
        return error;
    }
    board->n_regions++;
    *number = (uint8_t)i;
    *sequence = ++port->sequence[i];
    return 0;
}

/* The adapter does not access it any more. */
static void region_free(struct native_port *port, unsigned number)
{
    struct native_board *board = port->board;
    struct native_region *region = port->region[number];
    region->closing = true;
    while (region->users > 0)
        k_wait(board->board.kernel, &region->idle, UINT64_MAX);
    unmap_region(board, region, region->n);
    port->region[number] = NULL;
    board->n_regions--;
    k_free(region);
}

static void native_region_free(struct mx_port *p, uint8_t number)
{
    struct native_port *port = native_port_of(p);
    k_syscall(port->board->board.kernel);
    if (port->region[number]->announced)
        command(port->board, MYRI_MX_REGION_FREE, MYRI_MX_WHICH(p->id, number, 0));
    region_free(port, number);
}

static void native_close(struct mx_port *p)
{
    struct native_port *port = native_port_of(p);
    struct native_board *board = port->board;
    k_syscall(board->board.kernel);
    port->closed = true;
    command(board, MYRI_MX_CLOSE, p->id);
    for (unsigned i = 0; i < MYRI_MX_REGIONS; i++)
        if (port->region[i] != NULL)
            region_free(port, i);
    board->port[p->id] = NULL;
    native_port_put(port);
}

/* ---- Requests of the process ----------------------------------------------------------------- */

static uint64_t window_of(const struct native_port *port)
{
    return MYRI_MX_WINDOWS + (uint64_t)port->port.id * MYRI_MX_WINDOW_BYTES;
}

static struct myri_mx_request request_of(uint8_t type, const struct mx_destination *to)
{
    struct myri_mx_request r = { .type = type, .endpoint = to->endpoint, .session = to->session };
    mx_nic_to_bytes(to->nic_id, r.nic);
    return r;
}

static struct myri_mx_request send_of(uint8_t type, const struct mx_send *s)
{
    struct myri_mx_request r = request_of(type, &s->to);
    r.sequence = s->sequence;
    r.ack = s->ack;
    r.match = s->match;
    r.bytes = s->bytes;
    return r;
}

static int submit(struct native_port *port, const struct myri_mx_request *r)
{
    struct k_pci_dev *pci = port->board->pci;
    k_write_lines(pci, pci->bar_base[0] + window_of(port) + MYRI_MX_REQUEST, r, sizeof *r);
    k_write_drain(pci);
    return 0;
}

static int native_connect(struct mx_port *p, const struct mx_connect_command *c)
{
    if (native_is_local(native_port_of(p), c->to.nic_id))
        return native_local_connect(native_port_of(p), c);
    struct myri_mx_request r = request_of(MX_PACKET_CONNECT, &c->to);
    r.connect.key = c->key;
    r.connect.target_sequence = c->target_sequence;
    r.connect.source_sequence = c->source_sequence;
    r.connect.is_reply = c->is_reply;
    r.connect.connect_sequence = c->connect_sequence;
    r.connect.status = c->status;
    return submit(native_port_of(p), &r);
}

static int native_send_tiny(struct mx_port *p, const struct mx_send *s, const void *data)
{
    struct myri_mx_request r = send_of(MX_PACKET_TINY, s);
    if (s->bytes > MX_TINY_BYTES)
        return -EINVAL;
    if (native_is_local(native_port_of(p), s->to.nic_id))
        return native_local_tiny(native_port_of(p), s, data);
    memcpy(r.data, data, s->bytes);
    return submit(native_port_of(p), &r);
}

static int native_send_small(struct mx_port *p, const struct mx_send *s,
                             const struct mx_segment *segment, unsigned n)
{
    struct native_port *port = native_port_of(p);
    struct k_pci_dev *pci = port->board->pci;
    const struct myri_mx_request r = send_of(MX_PACKET_SMALL, s);
    struct kernel *kernel = port->board->board.kernel;
    uint8_t data[2 * MYRI_LINE_BYTES] = { 0 };
    uint32_t done = 0;
    if (s->bytes > MX_SMALL_BYTES || s->bytes == 0 || native_is_local(port, s->to.nic_id))
        return -EINVAL;
    for (unsigned i = 0; i < n && done < s->bytes; i++) {
        const uint32_t left = s->bytes - done;
        const uint32_t part = segment[i].bytes < left ? (uint32_t)segment[i].bytes : left;
        k_copy(kernel, kaddr_add(port->data->addr, done), segment[i].at, part);
        done += part;
    }
    k_load(kernel, port->data->addr, data, s->bytes);
    k_write_lines(pci, pci->bar_base[0] + window_of(port) + MYRI_MX_DATA, data,
                  s->bytes > MYRI_LINE_BYTES ? sizeof data : MYRI_LINE_BYTES);
    k_write_drain(pci); /* lines leave in any order; the request comes last */
    return submit(port, &r);
}

static int native_send_medium(struct mx_port *p, const struct mx_send *s, uint8_t fragment,
                              uint16_t fragment_bytes, uint16_t slot)
{
    struct myri_mx_request r = send_of(MX_PACKET_MEDIUM, s);
    if (s->bytes > MX_MEDIUM_BYTES || fragment_bytes > MX_SLOT_BYTES || slot >= MX_RING_SLOTS)
        return -EINVAL;
    if (native_is_local(native_port_of(p), s->to.nic_id))
        return native_local_medium(native_port_of(p), s, fragment, fragment_bytes, slot);
    r.medium.slot = slot;
    r.medium.fragment_bytes = fragment_bytes;
    r.medium.fragment = fragment;
    return submit(native_port_of(p), &r);
}

static int native_send_rendezvous(struct mx_port *p, const struct mx_send *s, uint8_t region,
                                  uint8_t region_sequence)
{
    struct myri_mx_request r = send_of(MX_PACKET_RENDEZVOUS, s);
    if (native_is_local(native_port_of(p), s->to.nic_id))
        return native_local_rendezvous(native_port_of(p), s, region, region_sequence);
    const int error = announce_region(native_port_of(p), region);
    if (error != 0)
        return error;
    r.large.region = region;
    r.large.region_sequence = region_sequence;
    return submit(native_port_of(p), &r);
}

static int native_notify(struct mx_port *p, const struct mx_send *s, uint8_t region,
                         uint8_t region_sequence)
{
    struct myri_mx_request r = send_of(MX_PACKET_NOTIFY, s);
    if (native_is_local(native_port_of(p), s->to.nic_id))
        return native_local_notify(native_port_of(p), s, region, region_sequence);
    r.large.region = region;
    r.large.region_sequence = region_sequence;
    return submit(native_port_of(p), &r);
}

static int native_pull(struct mx_port *p, const struct mx_pull_command *c)
{
    struct native_port *port = native_port_of(p);
    struct myri_mx_request r = request_of(MX_PACKET_PULL, &c->from);
    if (port->region[c->local_region] == NULL || c->bytes == 0)
        return -EINVAL;
    if (native_is_local(port, c->from.nic_id))
        return native_local_pull(port, c);
    const int error = announce_region(port, c->local_region);
    if (error != 0)
        return error;
    r.bytes = c->bytes;
    r.pull.handle = c->handle;
    r.pull.region = c->region;
    r.pull.region_sequence = c->region_sequence;
    r.pull.local_region = c->local_region;
    return submit(port, &r);
}

static int native_ack(struct mx_port *p, const struct mx_destination *to, uint32_t number,
                      uint16_t ack)
{
    struct myri_mx_request r = request_of(MX_PACKET_ACK, to);
    if (native_is_local(native_port_of(p), to->nic_id))
        return native_local_ack(native_port_of(p), to, number, ack);
    r.ack = ack;
    r.ack_number = number;
    return submit(native_port_of(p), &r);
}

static void native_consumed(struct mx_port *p, unsigned queue, uint32_t read)
{
    const struct native_port *port = native_port_of(p);
    if (queue != MX_QUEUE_LOCAL && read % TOLD_EVERY == 0)
        k_writel(port->board->pci, 0, window_of(port) + MYRI_MX_CONSUMED + 4 * queue, read);
}

static const struct mx_board_ops native_ops = { .open = native_open,
                                                .close = native_close,
                                                .connect = native_connect,
                                                .send_tiny = native_send_tiny,
                                                .send_small = native_send_small,
                                                .send_medium = native_send_medium,
                                                .send_rendezvous = native_send_rendezvous,
                                                .pull = native_pull,
                                                .notify = native_notify,
                                                .ack = native_ack,
                                                .region_new = native_region_new,
                                                .region_free = native_region_free,
                                                .consumed = native_consumed,
                                                .local_data = native_local_data,
                                                .local_done = native_local_done };

/* ---- The driver ------------------------------------------------------------------------------ */

static int attach(struct native_board *board)
{
    uint32_t version = 0;
    uint8_t mac[6];
    int error = myri_commands_init(&board->commands, board->pci);
    if (error == 0)
        error = myri_command(&board->commands, MYRI_GET_VERSION, &version, 0, 0);
    if (error == 0 && version != MYRI_MX_VERSION)
        error = -ENODEV;
    if (error == 0)
        error = myri_read_mac(board->pci, mac);
    if (error == 0)
        error = command(board, MYRI_RESET, 0);
    if (error == 0)
        error = command(board, MYRI_UP, 0);
    if (error == 0)
        error = k_dma_alloc(&board->pci->device, board->pci->device.node,
                            sizeof(struct myri_mx_memory), &board->table, &board->table_dma);
    if (error == 0)
        board->board.nic_id = mx_nic_from_bytes(mac);
    return error;
}

static int native_probe(struct k_pci_dev *pci, void *context)
{
    struct mx_native *driver = context;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    if (pci->bar_bytes[0] < MYRI_BAR_BYTES)
        return -ENODEV;
    myri_set_read_request(pci);
    struct native_board *board = k_zalloc(sizeof *board);
    board->board = (struct mx_board){ .ops = &native_ops, .kernel = driver->kernel };
    board->driver = driver;
    board->pci = pci;
    const int error = attach(board);
    if (error != 0) {
        myri_commands_release(&board->commands);
        k_free(board);
        return error;
    }
    pci->device.driver_data = board;
    struct native_board **link = &driver->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = board;
    return 0;
}

static void native_remove(struct k_pci_dev *pci, bool gone)
{
    struct native_board *board = pci->device.driver_data;
    if (!gone)
        command(board, MYRI_DOWN, 0);
    k_dma_free(&pci->device, sizeof(struct myri_mx_memory), board->table, board->table_dma);
    myri_commands_release(&board->commands);
    K_LIST_REMOVE(board->driver->first, board);
    pci->device.driver_data = NULL;
    k_free(board);
}

static const struct k_pci_id native_ids[] = { { MYRI_VENDOR_ID, MYRI_DEVICE_ID }, { 0, 0 } };

struct mx_native *mx_native_new(struct kernel *kernel, bool shared_memory)
{
    struct mx_native *driver = k_zalloc(sizeof *driver);
    driver->kernel = kernel;
    driver->shared_memory = shared_memory;
    driver->pci = (struct k_pci_driver){ .name = "mx",
                                         .ids = native_ids,
                                         .probe = native_probe,
                                         .remove = native_remove,
                                         .context = driver };
    return driver;
}

const struct k_pci_driver *mx_native_pci(const struct mx_native *driver)
{
    return &driver->pci;
}

void mx_native_free(struct mx_native *driver)
{
    k_free(driver);
}

struct mx_board *mx_native_board(const struct mx_native *driver, unsigned i)
{
    struct native_board *board = driver->first;
    while (board != NULL && i-- > 0)
        board = board->next;
    return board != NULL ? &board->board : NULL;
}

struct k_pci_dev *mx_native_device(struct mx_board *board)
{
    return K_CONTAINER(board, struct native_board, board)->pci;
}

unsigned mx_native_regions_live(const struct mx_board *board)
{
    return K_CONTAINER(board, const struct native_board, board)->n_regions;
}

void mx_native_stats_get(const struct mx_board *board, struct mx_native_stats *stats)
{
    *stats = K_CONTAINER(board, const struct native_board, board)->stats;
}
