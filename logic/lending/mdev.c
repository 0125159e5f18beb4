/*
 * What it does: SmartIO's pass-through of borrowed devices.
 *   - It borrows the device when the guest is reset, without adding it to this host's tree; if the
 *     lender resets the device before (another guest had it), it waits for that.
 *   - When the guest enables DMA (Bus Master) it probes the guest's memory, whose layout nobody
 *     tells, from where low and high memory begin on an x86 machine; pins it; makes each of the two
 *     ranges contiguous in our IOMMU; and has the lender map them at guest-physical addresses.
 *   - It captures base addresses from the guest's configuration writes and, once the guest enables
 *     the device's memory space, maps them for the guest's other borrowed devices.
 *   - The lender handles the device's interrupts; its message signals an eventfd here.
 *   It leaves out MSI and legacy interrupts, memory that the guest gets later, and the guest's
 *   local devices as targets or sources of its borrowed ones.
 * Follows: SmartIO, section 5.
 * Costs: a pin and a mapping for each page of 2 MiB, one request to the lender for each range; none
 *   while the device works.
 *
 * Order. The lender maps pages only while our IOMMU maps them, too.
 */
#include "logic/lending/mdev.h"

#include <stdio.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/bars.h"
#include "logic/lending/lending_internal.h"

#define LOW_BASE  UINT64_C(0)
#define LOW_END   UINT64_C(0xfee00000) /* MSI addresses: no memory beyond */
#define HIGH_BASE UINT64_C(0x100000000)
#define HIGH_END  (UINT64_C(1) << 39)
#define N_WINDOWS 2u
#define ALIGN_MAX (UINT64_C(1) << 30)
#define VECTORS   256u
#define RESET_PS  (1000 * K_MS) /* a device is ready so long after a reset at the latest */
#define RETRY_PS  (5 * K_MS)

struct mdev_window {
    uint64_t guest, bytes; /* guest-physical; probed and pinned */
    uint64_t fabric;       /* I/O virtual addresses of our adapter, taken_bytes of them */
    uint64_t taken_bytes;
    uint64_t mapped_bytes;
};

/* The memory of a guest as one of our adapters exports it: once for all devices of the guest behind
 * that adapter, whose lenders share windows where they can. */
struct mdev_memory {
    struct mdev_memory *next;
    struct k_vm *vm;
    struct lend_adapter *adapter;
    struct mdev_window window[N_WINDOWS];
    unsigned n_users;
};

/* A base address of one device that another device reaches. */
struct mdev_peer {
    struct mdev_peer *next;
    struct lend_mdev *source, *target;
    uint64_t dma, bytes;
};

struct lend_mdev {
    struct lend_mdev *next;
    struct lend_host *host;
    uint32_t peer;
    uint16_t id;
    uint64_t guest; /* its number */
    struct k_vm_function fn;
    char name[2 * LEND_NAME_BYTES];
    struct k_vm *vm;            /* NULL: no guest has the device */
    struct lend_borrow *borrow; /* NULL: not borrowed, or the borrow has ended */
    struct lend_adapter *adapter;
    struct lend_bars bars;
    bool registers_mapped;
    struct mdev_memory *memory; /* that the device reaches; NULL: none */
    struct mdev_peer *peers;    /* of which it is the source */
    uint8_t event[VECTORS];     /* index in the connection's events + 1; 0: none */
    struct lend_error error;
};

static struct lend_mdev *mdev_of(struct k_vm_function *fn)
{
    return K_CONTAINER(fn, struct lend_mdev, fn);
}

/* ---- The guest's memory ---------------------------------------------------------------------- */

/* Pins the guest's memory from `from` on, as far as its addresses resolve. */
static void probe(struct k_vm *vm, struct mdev_window *w, uint64_t from, uint64_t end)
{
    uint64_t page, bytes;
    *w = (struct mdev_window){ .guest = from };
    while (from + w->bytes < end && k_vm_pin(vm, from + w->bytes, &page, &bytes) == 0)
        w->bytes += bytes;
}

static void window_release(struct mdev_memory *memory, struct mdev_window *w)
{
    uint64_t page, bytes;
    if (w->mapped_bytes != 0)
        k_iommu_unmap(memory->adapter->domain, w->fabric, w->mapped_bytes);
    if (w->taken_bytes != 0)
        lend_ranges_give(&memory->adapter->iova, w->fabric);
    for (uint64_t at = 0; at < w->bytes; at += bytes) {
        k_vm_pin(memory->vm, w->guest + at, &page, &bytes); /* tells its size */
        k_vm_unpin(memory->vm, w->guest + at);
        k_vm_unpin(memory->vm, w->guest + at);
    }
    *w = (struct mdev_window){ .bytes = 0 };
}

/* Maps the window's pages, which are scattered in our memory, at one range of the fabric. */
static int window_map(struct lend_mdev *m, struct mdev_memory *memory, struct mdev_window *w)
{
    struct lend_ranges *iova = &memory->adapter->iova;
    uint64_t page, bytes, align = UINT64_C(1) << lend_order_of(w->bytes);
    if (align > ALIGN_MAX)
        align = ALIGN_MAX;
    if (!lend_ranges_take(iova, w->bytes, align, &w->fabric))
        return lend_fail(&m->error, -ENOSPC,
                         "%s: %llu MiB of I/O virtual addresses for %s: %llu MiB in use", m->name,
                         (unsigned long long)(w->bytes >> 20), k_vm_name(m->vm),
                         (unsigned long long)(lend_ranges_taken_bytes(iova) >> 20));
    w->taken_bytes = w->bytes;
    while (w->mapped_bytes < w->bytes) {
        int status = k_vm_pin(m->vm, w->guest + w->mapped_bytes, &page, &bytes);
        if (status == 0) {
            k_vm_unpin(m->vm, w->guest + w->mapped_bytes); /* pinned by probe() already */
            status = k_iommu_map(memory->adapter->domain, w->fabric + w->mapped_bytes, page, bytes,
                                 K_DMA_BOTH);
        }
        if (status != 0)
            return lend_fail(&m->error, status, "%s: the memory of %s could not be mapped", m->name,
                             k_vm_name(m->vm));
        w->mapped_bytes += bytes;
    }
    return 0;
}

static void memory_put(struct lend_host *host, struct mdev_memory *memory)
{
    if (--memory->n_users > 0)
        return;
    for (unsigned i = 0; i < N_WINDOWS; i++)
        window_release(memory, &memory->window[i]);
    K_LIST_REMOVE(host->memories, memory);
    k_free(memory);
}

static int memory_new(struct lend_mdev *m, struct mdev_memory **result)
{
    static const uint64_t from[N_WINDOWS] = { LOW_BASE, HIGH_BASE },
                          end[N_WINDOWS] = { LOW_END, HIGH_END };
    struct mdev_memory *memory = k_zalloc(sizeof *memory);
    int status = 0;
    *memory = (struct mdev_memory){
        .next = m->host->memories, .vm = m->vm, .adapter = m->adapter, .n_users = 1
    };
    m->host->memories = memory;
    for (unsigned i = 0; status == 0 && i < N_WINDOWS; i++) {
        probe(m->vm, &memory->window[i], from[i], end[i]);
        if (memory->window[i].bytes != 0)
            status = window_map(m, memory, &memory->window[i]);
    }
    if (status == 0)
        *result = memory;
    else
        memory_put(m->host, memory);
    return status;
}

static int memory_get(struct lend_mdev *m, struct mdev_memory **result)
{
    struct mdev_memory *memory = m->host->memories;
    while (memory != NULL && (memory->vm != m->vm || memory->adapter != m->adapter))
        memory = memory->next;
    if (memory == NULL)
        return memory_new(m, result);
    memory->n_users++;
    *result = memory;
    return 0;
}

/* Has the lender map a window for the device. */
static int lender_map_window(struct lend_mdev *m, const struct mdev_window *w)
{
    const struct msg_vm_map request = { .lease = m->borrow->opened.lease,
                                        .guest_address = w->guest,
                                        .fabric = w->fabric,
                                        .bytes = w->bytes };
    return lend_call(m->borrow->connection, MSG_VM_MAP, &request, sizeof request, NULL, 0,
                     &m->error);
}

static void memory_unmap(struct lend_mdev *m)
{
    const struct lend_borrow *b = m->borrow;
    if (b == NULL || b->connection == NULL || m->memory == NULL)
        return;
    const struct msg_vm_map request = { .lease = b->opened.lease };
    lend_call(b->connection, MSG_VM_UNMAP, &request, sizeof request, NULL, 0, NULL);
}

/* The lender has unmapped the memory. */
static void memory_drop(struct lend_mdev *m)
{
    if (m->memory != NULL)
        memory_put(m->host, m->memory);
    m->memory = NULL;
}

static int memory_map(struct lend_mdev *m)
{
    if (m->borrow->connection == NULL)
        return lend_fail(&m->error, -ECONNRESET, "%s has been taken back", m->name);
    if (m->adapter->domain == NULL)
        return lend_fail(&m->error, -EOPNOTSUPP,
                         "%s: no IOMMU here: the memory of %s is not contiguous", m->name,
                         k_vm_name(m->vm));
    int status = memory_get(m, &m->memory);
    for (unsigned i = 0; status == 0 && i < N_WINDOWS; i++)
        if (m->memory->window[i].bytes != 0)
            status = lender_map_window(m, &m->memory->window[i]);
    if (status != 0) {
        memory_unmap(m);
        memory_drop(m);
    }
    return status;
}

/* ---- Registers of the guest's other devices -------------------------------------------------- */

static void peer_drop(struct mdev_peer *peer)
{
    K_LIST_REMOVE(peer->source->peers, peer);
    if (peer->source->borrow != NULL)
        lend_peer_unmap(peer->source->borrow, peer->dma, peer->bytes);
    k_free(peer);
}

static void peer_map(struct lend_mdev *source, struct lend_mdev *target, unsigned bar)
{
    const uint64_t at = lend_bars_base(&target->bars, bar), bytes = target->bars.bytes[bar];
    struct mdev_peer *peer = k_zalloc(sizeof *peer);
    *peer = (struct mdev_peer){ .source = source, .target = target, .bytes = bytes };
    if (lend_peer_map_at(source->borrow, &target->borrow->dev.device, bar, 0, bytes, K_DMA_BOTH, at,
                         &peer->dma, &source->error) != 0) {
        k_warn(source->host->kernel, "%s does not reach %s: %s", source->name, target->name,
               source->error.text);
        k_free(peer);
        return;
    }
    peer->next = source->peers;
    source->peers = peer;
}

static void map_pair(struct lend_mdev *source, struct lend_mdev *target)
{
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        const uint64_t at = lend_bars_base(&target->bars, i);
        if (target->bars.bytes[i] != 0 && at != 0 && at % K_PAGE_BYTES == 0)
            peer_map(source, target, i);
    }
}

static void registers_unmap(struct lend_mdev *m)
{
    m->registers_mapped = false;
    while (m->peers != NULL)
        peer_drop(m->peers);
    for (struct lend_mdev *other = m->host->mdevs; other != NULL; other = other->next)
        for (struct mdev_peer *next, *peer = other->peers; peer != NULL; peer = next) {
            next = peer->next;
            if (peer->target == m)
                peer_drop(peer);
        }
}

/* The guest has enabled the device's memory space: its base addresses are final. */
static void registers_map(struct lend_mdev *m)
{
    m->registers_mapped = true;
    for (struct lend_mdev *other = m->host->mdevs; other != NULL; other = other->next) {
        if (other == m || other->vm != m->vm || !other->registers_mapped || other->borrow == NULL)
            continue;
        map_pair(m, other);
        map_pair(other, m);
    }
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

void lend_events(struct lend_host *host, const struct lend_adapter *adapter)
{
    for (struct lend_connection *c = host->connections; c != NULL; c = c->next)
        for (unsigned i = 0; c->adapter == adapter && i < c->n_events; i++) {
            struct lend_event *event = &c->event[i];
            uint64_t count;
            if (!event->used)
                continue;
            k_load(host->kernel, lend_mailbox(host, c->box, BOX_EVENTS + 8 * i), &count,
                   sizeof count);
            if (count == event->seen || !event->used)
                continue;
            event->seen = count;
            k_eventfd_signal(event->eventfd);
        }
}

static void event_free(struct lend_mdev *m, unsigned index)
{
    struct lend_borrow *b = m->borrow;
    if (m->event[index] != 0 && b != NULL && b->connection != NULL)
        b->connection->event[m->event[index] - 1u].used = false;
    m->event[index] = 0;
}

static int event_new(struct lend_mdev *m, unsigned index, struct k_eventfd *eventfd)
{
    struct lend_connection *c = m->borrow->connection;
    unsigned i = 0;
    const uint64_t none = 0;
    while (i < N_EVENTS && c->event[i].used)
        i++;
    if (i == N_EVENTS)
        return lend_fail(&m->error, -ENOSPC,
                         "%s: interrupts from host %u: all %u words of the mailbox in use", m->name,
                         m->peer, N_EVENTS);
    c->event[i] = (struct lend_event){ .used = true, .eventfd = eventfd };
    c->n_events = i >= c->n_events ? i + 1 : c->n_events;
    m->event[index] = (uint8_t)(i + 1);
    k_store(m->host->kernel, lend_mailbox(m->host, c->box, BOX_EVENTS + 8 * i), &none, sizeof none);
    return 0;
}

static int ask_irq(struct lend_mdev *m, unsigned index, bool on)
{
    const struct msg_vm_irq request = { .lease = m->borrow->opened.lease,
                                        .index = (uint16_t)index,
                                        .on = on,
                                        .event = m->event[index] - 1u };
    return lend_call(m->borrow->connection, MSG_VM_IRQ, &request, sizeof request, NULL, 0,
                     &m->error);
}

static int fn_set_irq(struct k_vm_function *fn, unsigned index, struct k_eventfd *eventfd)
{
    struct lend_mdev *m = mdev_of(fn);
    int status = 0;
    if (index >= VECTORS)
        return -ENOSPC;
    if (m->borrow == NULL || m->borrow->connection == NULL)
        return eventfd == NULL ? 0 : -ENODEV;
    if (m->event[index] != 0)
        ask_irq(m, index, false);
    event_free(m, index);
    if (eventfd != NULL)
        status = event_new(m, index, eventfd);
    if (eventfd != NULL && status == 0 && (status = ask_irq(m, index, true)) != 0)
        event_free(m, index);
    return status;
}

/* ---- Functions ------------------------------------------------------------------------------- */

static int fn_open(struct k_vm_function *fn, struct k_vm *vm)
{
    struct lend_mdev *m = mdev_of(fn);
    if (m->vm != NULL)
        return lend_fail(&m->error, -EBUSY, "%s is in use by %s", m->name, k_vm_name(m->vm));
    m->vm = vm;
    m->error = (struct lend_error){ .code = 0 };
    return 0;
}

/* Ends the device's DMA and unmaps the guest's memory, and its registers for other devices. */
static void stop(struct lend_mdev *m)
{
    registers_unmap(m);
    if (m->borrow != NULL && m->borrow->connection != NULL)
        k_config_write(&m->borrow->dev, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
    memory_unmap(m);
    memset(m->bars.written, 0, sizeof m->bars.written);
}

static int borrow(struct lend_mdev *m)
{
    struct lend_borrow *b;
    int status = lend_borrow_vm(m->host, m->peer, m->id, m, m->guest, &b, &m->error);
    if (status != 0)
        return status;
    m->borrow = b;
    m->adapter = b->connection->adapter;
    m->fn.vendor_id = b->dev.vendor_id;
    m->fn.device_id = b->dev.device_id;
    m->fn.class_code = b->dev.class_code;
    m->fn.gone = false;
    memcpy(m->fn.bar_base, b->dev.bar_base, sizeof m->fn.bar_base);
    memcpy(m->fn.bar_bytes, b->dev.bar_bytes, sizeof m->fn.bar_bytes);
    lend_bars_init(&m->bars, b->dev.bar_bytes, b->bars.flags);
    return 0;
}

static int try_reset(struct lend_mdev *m)
{
    int status = 0;
    lend_lock(m->host, &m->host->mdev_lock);
    if (m->borrow == NULL) {
        status = borrow(m);
    } else {
        stop(m);
        memory_drop(m);
    }
    lend_unlock(m->host, &m->host->mdev_lock);
    return status;
}

static int fn_reset(struct k_vm_function *fn)
{
    struct lend_mdev *m = mdev_of(fn);
    const uint64_t until_ps = k_now_ps(m->host->kernel) + RESET_PS;
    int status;
    while ((status = try_reset(m)) == -EAGAIN && k_now_ps(m->host->kernel) < until_ps)
        k_sleep(m->host->kernel, RETRY_PS);
    if (status == 0)
        m->error = (struct lend_error){ .code = 0 };
    return status;
}

static void fn_close(struct k_vm_function *fn)
{
    struct lend_mdev *m = mdev_of(fn);
    for (unsigned i = 0; i < VECTORS; i++)
        if (m->event[i] != 0)
            fn_set_irq(fn, i, NULL);
    lend_lock(m->host, &m->host->mdev_lock);
    stop(m);
    if (m->borrow != NULL)
        lend_return(m->borrow);
    m->borrow = NULL;
    memory_drop(m);
    m->vm = NULL;
    lend_unlock(m->host, &m->host->mdev_lock);
}

static uint32_t fn_config_read(struct k_vm_function *fn, unsigned offset, unsigned bytes)
{
    struct lend_mdev *m = mdev_of(fn);
    if (lend_bars_has(offset))
        return lend_bars_read(&m->bars, offset, bytes);
    return m->borrow != NULL ? k_config_read(&m->borrow->dev, offset, bytes) : UINT32_MAX;
}

/* Maps the guest's memory before DMA is enabled; if that fails, DMA stays disabled. Returns the
 * value to write. */
static uint32_t command_write(struct lend_mdev *m, uint32_t value)
{
    lend_lock(m->host, &m->host->mdev_lock);
    if ((value & PCI_COMMAND_BUS_MASTER) != 0 && m->memory == NULL && m->borrow != NULL &&
        memory_map(m) != 0) {
        k_warn(m->host->kernel, "%s: no DMA for %s: %s", m->name, k_vm_name(m->vm), m->error.text);
        value &= ~PCI_COMMAND_BUS_MASTER;
    }
    if ((value & PCI_COMMAND_MEMORY) != 0 && !m->registers_mapped && m->borrow != NULL)
        registers_map(m);
    else if ((value & PCI_COMMAND_MEMORY) == 0 && m->registers_mapped)
        registers_unmap(m);
    lend_unlock(m->host, &m->host->mdev_lock);
    return value;
}

static void fn_config_write(struct k_vm_function *fn, unsigned offset, unsigned bytes,
                            uint32_t value)
{
    struct lend_mdev *m = mdev_of(fn);
    if (lend_bars_has(offset)) {
        lend_bars_write(&m->bars, offset, bytes, value);
        return;
    }
    if (offset == PCI_COMMAND)
        value = command_write(m, value);
    if (m->borrow != NULL)
        k_config_write(&m->borrow->dev, offset, bytes, value);
}

static const struct k_vm_function_ops ops = {
    .open = fn_open,
    .close = fn_close,
    .reset = fn_reset,
    .config_read = fn_config_read,
    .config_write = fn_config_write,
    .set_irq = fn_set_irq,
};

/* ---- Life ------------------------------------------------------------------------------------ */

struct lend_mdev *lend_mdev_new(struct lend_host *host, uint32_t peer, uint16_t id, uint64_t guest)
{
    struct lend_mdev *m = k_zalloc(sizeof *m);
    *m = (struct lend_mdev){
        .next = host->mdevs, .host = host, .peer = peer, .id = id, .guest = guest
    };
    snprintf(m->name, sizeof m->name, "%02x:%02x.%x@%u", (unsigned)id >> 8, (unsigned)id >> 3 & 31,
             (unsigned)id & 7, peer);
    m->fn = (struct k_vm_function){ .ops = &ops, .name = m->name, .kernel = host->kernel };
    host->mdevs = m;
    return m;
}

struct k_vm_function *lend_mdev_function(struct lend_mdev *m)
{
    return &m->fn;
}

const struct lend_error *lend_mdev_error(const struct lend_mdev *m)
{
    return &m->error;
}

void lend_mdev_free(struct lend_mdev *m)
{
    if (m->vm != NULL) {
        k_fault(m->host->kernel, "%s goes while %s has it", m->name, k_vm_name(m->vm));
        return;
    }
    K_LIST_REMOVE(m->host->mdevs, m);
    k_free(m);
}

void lend_mdevs_free(struct lend_host *host)
{
    while (host->memories != NULL) {
        struct mdev_memory *memory = host->memories;
        host->memories = memory->next;
        k_free(memory);
    }
    while (host->mdevs != NULL) {
        struct lend_mdev *m = host->mdevs;
        host->mdevs = m->next;
        while (m->peers != NULL) {
            struct mdev_peer *peer = m->peers;
            m->peers = peer->next;
            k_free(peer);
        }
        k_free(m);
    }
}

void lend_mdev_lost(struct lend_mdev *m)
{
    m->fn.gone = true;
    for (unsigned i = 0; i < VECTORS; i++)
        event_free(m, i);
}

void lend_mdev_returned(struct lend_mdev *m)
{
    m->borrow = NULL;
}

struct lend_mdev_usage lend_mdev_usage(const struct lend_mdev *m)
{
    struct lend_mdev_usage usage = { .borrowed = m->borrow != NULL };
    for (unsigned i = 0; i < N_WINDOWS; i++) {
        const struct mdev_window *w = m->memory != NULL ? &m->memory->window[i] : NULL;
        usage.windows += w != NULL && w->taken_bytes != 0;
        usage.probed_bytes += w != NULL ? w->mapped_bytes : 0;
    }
    for (const struct mdev_peer *peer = m->peers; peer != NULL; peer = peer->next)
        usage.n_peers++;
    for (unsigned i = 0; i < VECTORS; i++)
        usage.n_irqs += m->event[i] != 0;
    return usage;
}
