/*
 * What it does: drives an adapter's DMA engine: descriptor rings, cookies, completion by interrupt
 *   or by polling descriptors; enters the engine as requester on both sides. It has no callbacks,
 *   no scatter lists and no recovery of a channel that does not answer.
 * Follows: Linux 5.6 drivers/dma/plx_dma.c, Documentation/driver-api/dmaengine/client.rst.
 * Costs: a copy: one line of the ring, the work of queueing it, a register write. A completion: a
 *   load of the line that the chip has written, after an interrupt and a wake-up if it notifies.
 */
#include "logic/lending/ntb_dmaengine.h"

#include <string.h>

#include "logic/kcosts.h"
#include "logic/lending/lending_internal.h"

#define PAUSE_LOOKS   1000u
#define DESC_BYTES    ((uint64_t)sizeof(struct ntb_dma_descriptor))
#define NO_ENTRY      (-1)
#define ADDRESS_LIMIT (UINT64_C(1) << 48)

const struct lend_dma_options lend_dma_options_default = { .ring = 2048,
                                                           .timeout_ps = 1000 * K_MS };

struct lend_dma_channel {
    struct lend_dma *dma;
    unsigned number;
    struct kaddr ring;
    uint64_t ring_dma;
    uint64_t head, tail; /* copies submitted; known to be done. A cookie is head after submission */
    uint64_t heard;      /* the highest cookie reported as done */
    uint64_t last_bad;   /* cookie of the last failure; 0: none */
    bool *bad;           /* by slot: failed, and not reported yet */
    uint32_t control;    /* bits of the control register to keep */
    struct k_irq *irq;
    uint64_t interrupts;
    struct k_wait_queue wait;
};

struct lend_dma {
    struct lend_host *host;
    struct kernel *kernel;
    struct lend_dma_options options;
    struct k_pci_driver driver;
    struct k_pci_dev *pci; /* NULL: none */
    uint16_t function;     /* number of the engine's function; kept after it has gone */
    unsigned n_channels;
    struct lend_dma_channel channel[NTB_DMA_CHANNELS_MAX];
    /* Of all below: a thread that asks the peer sleeps, and another one must not take its entry
     * away. */
    struct lend_mutex entry_lock;
    int outgoing; /* the engine's entry in the adapter, or NO_ENTRY */
    unsigned n_segments;
};

static uint32_t read_reg(const struct lend_dma_channel *c, uint64_t reg)
{
    return k_readl(c->dma->pci, 0, NTB_DMA_CHANNEL((uint64_t)c->number) + reg);
}

static void write_reg(const struct lend_dma_channel *c, uint64_t reg, uint32_t value)
{
    k_writel(c->dma->pci, 0, NTB_DMA_CHANNEL((uint64_t)c->number) + reg, value);
}

/* ---- Channels -------------------------------------------------------------------------------- */

/* Hard interrupt. */
static void channel_done(void *arg)
{
    struct lend_dma_channel *c = arg;
    c->interrupts++;
    k_wake(c->dma->kernel, &c->wait);
}

static int channel_open(struct lend_dma *dma, unsigned number)
{
    struct lend_dma_channel *c = &dma->channel[number];
    *c = (struct lend_dma_channel){ .dma = dma, .number = number, .bad = c->bad };
    int status = k_dma_alloc(&dma->pci->device, K_NODE_LOCAL, dma->options.ring * DESC_BYTES,
                             &c->ring, &c->ring_dma);
    if (status != 0)
        return status;
    status = k_irq_request(dma->pci, number, dma->options.cpu, channel_done, c, &c->irq);
    if (status != 0) {
        k_dma_free(&dma->pci->device, dma->options.ring * DESC_BYTES, c->ring, c->ring_dma);
        return status;
    }
    if (c->bad == NULL) /* kept until lend_dma_free(): threads may poll while the engine goes */
        c->bad = k_zalloc(dma->options.ring * sizeof c->bad[0]);
    write_reg(c, NTB_DMA_RING_LOW, (uint32_t)c->ring_dma);
    write_reg(c, NTB_DMA_RING_HIGH, (uint32_t)(c->ring_dma >> 32));
    write_reg(c, NTB_DMA_RING_SIZE, dma->options.ring);
    write_reg(c, NTB_DMA_INTERRUPT, NTB_DMA_INTERRUPT_ERROR_ENABLE);
    c->control = read_reg(c, NTB_DMA_CONTROL) & NTB_DMA_CONTROL_SIZE_MASK;
    if (dma->options.request_bytes != 0) {
        uint32_t code = (uint32_t)__builtin_ctz(dma->options.request_bytes / NTB_DMA_SIZE_MIN);
        c->control = code << NTB_DMA_CONTROL_SIZE_SHIFT;
    }
    write_reg(c, NTB_DMA_CONTROL, c->control | NTB_DMA_CONTROL_STATUS);
    return 0;
}

static void channel_close(struct lend_dma_channel *c, bool gone)
{
    struct lend_dma *dma = c->dma;
    if (!gone) {
        write_reg(c, NTB_DMA_CONTROL, c->control | NTB_DMA_CONTROL_PAUSE);
        for (unsigned i = 0; i < PAUSE_LOOKS; i++) {
            if (read_reg(c, NTB_DMA_CONTROL) & NTB_DMA_CONTROL_PAUSE_DONE)
                break;
            k_sleep(dma->kernel, K_US);
        }
        write_reg(c, NTB_DMA_RING_SIZE, 0);
    }
    k_irq_free(c->irq);
    k_dma_free(&dma->pci->device, dma->options.ring * DESC_BYTES, c->ring, c->ring_dma);
    k_wake(dma->kernel, &c->wait);
}

/* ---- The driver ------------------------------------------------------------------------------ */

static struct lend_adapter *adapter_of(const struct lend_dma *dma)
{
    return lend_adapter_at(dma->host, dma->options.adapter);
}

static void close_channels(struct lend_dma *dma, bool gone)
{
    while (dma->n_channels > 0)
        channel_close(&dma->channel[--dma->n_channels], gone);
    dma->pci = NULL;
}

static int dma_probe(struct k_pci_dev *pci, void *context)
{
    struct lend_dma *dma = context;
    const struct lend_adapter *adapter = adapter_of(dma);
    if (dma->pci != NULL || adapter == NULL || adapter->pci->id != (pci->id & ~7u))
        return -ENODEV;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    unsigned n = k_readl(pci, 0, NTB_DMA_REG_CHANNELS);
    dma->pci = pci;
    dma->function = pci->id & 7;
    for (unsigned i = 0; i < n && i < NTB_DMA_CHANNELS_MAX; i++) {
        int status = channel_open(dma, i);
        if (status != 0) {
            close_channels(dma, false);
            return status;
        }
        dma->n_channels++;
    }
    pci->device.driver_data = dma;
    return 0;
}

static void dma_remove(struct k_pci_dev *pci, bool gone)
{
    close_channels(pci->device.driver_data, gone);
}

struct lend_dma *lend_dma_new(struct lend_host *host, const struct lend_dma_options *options)
{
    static const struct k_pci_id ids[] = { { NTB_VENDOR_ID, NTB_DMA_DEVICE_ID }, { 0, 0 } };
    const uint32_t request = options->request_bytes;
    if (!lend_power_of_two(options->ring) || options->ring < 8 || options->ring > 32768 ||
        (request != 0 &&
         (!lend_power_of_two(request) || request < NTB_DMA_SIZE_MIN || request > NTB_DMA_SIZE_MAX)))
        return NULL;
    struct lend_dma *dma = k_zalloc(sizeof *dma);
    *dma = (struct lend_dma){
        .host = host, .kernel = host->kernel, .options = *options, .outgoing = NO_ENTRY
    };
    dma->driver = (struct k_pci_driver){
        .name = "lend_dma", .ids = ids, .probe = dma_probe, .remove = dma_remove, .context = dma
    };
    return dma;
}

const struct k_pci_driver *lend_dma_driver(const struct lend_dma *dma)
{
    return &dma->driver;
}

void lend_dma_free(struct lend_dma *dma)
{
    struct k_pci_dev *pci = dma->pci;
    if (dma->outgoing != NO_ENTRY)
        lend_outgoing_remove(adapter_of(dma), (unsigned)dma->outgoing);
    if (pci != NULL)
        k_pci_remove(pci, false);
    for (unsigned i = 0; i < NTB_DMA_CHANNELS_MAX; i++)
        k_free(dma->channel[i].bad);
    k_free(dma);
}

struct k_device *lend_dma_device(struct lend_dma *dma)
{
    return dma->pci != NULL ? &dma->pci->device : NULL;
}

unsigned lend_dma_channels(const struct lend_dma *dma)
{
    return dma->n_channels;
}

/* ---- Requester entries ----------------------------------------------------------------------- */

static int ask_peer(const struct lend_dma *dma, struct lend_remote *remote, uint32_t allow,
                    struct lend_error *error)
{
    const struct msg_dma_engine request = { .device = (uint16_t)dma->outgoing,
                                            .function = dma->function,
                                            .allow = allow };
    return lend_call(remote->private_data, MSG_DMA_ENGINE, &request, sizeof request, NULL, 0,
                     error);
}

static void entry_put(struct lend_dma *dma)
{
    if (dma->n_segments == 0 && dma->outgoing != NO_ENTRY) {
        lend_outgoing_remove(adapter_of(dma), (unsigned)dma->outgoing);
        dma->outgoing = NO_ENTRY;
    }
}

static int allow_locked(struct lend_dma *dma, struct lend_remote *remote, struct lend_error *error)
{
    struct lend_adapter *adapter = adapter_of(dma);
    if (dma->pci == NULL || remote->adapter != adapter)
        return lend_fail(error, -ENODEV,
                         "%s: the segment is not reached by an adapter with a DMA "
                         "engine",
                         dma->host->options.name);
    const struct lend_connection *c = remote->private_data;
    int status = lend_route_payload(&c->route, lend_payload_of(adapter->pci), error);
    if (status != 0)
        return status;
    if (dma->outgoing == NO_ENTRY) {
        int entry = lend_outgoing_add(adapter, dma->pci->id, "DMA engine", error);
        if (entry < 0)
            return entry;
        dma->outgoing = entry;
    }
    status = lend_route_take(dma->host, adapter, &c->route, (unsigned)dma->outgoing, error);
    if (status == 0 && (status = ask_peer(dma, remote, 1, error)) != 0)
        lend_route_give(dma->host, adapter, &c->route, (unsigned)dma->outgoing);
    if (status == 0)
        dma->n_segments++;
    else
        entry_put(dma);
    return status;
}

int lend_dma_allow(struct lend_dma *dma, struct lend_remote *remote, struct lend_error *error)
{
    lend_lock(dma->host, &dma->entry_lock);
    const int status = allow_locked(dma, remote, error);
    lend_unlock(dma->host, &dma->entry_lock);
    return status;
}

void lend_dma_revoke(struct lend_dma *dma, struct lend_remote *remote)
{
    const struct lend_connection *c = remote->private_data;
    lend_lock(dma->host, &dma->entry_lock);
    ask_peer(dma, remote, 0, NULL); /* fails if the peer is lost, which has then no entry for us */
    lend_route_give(dma->host, adapter_of(dma), &c->route, (unsigned)dma->outgoing);
    dma->n_segments--;
    entry_put(dma);
    lend_unlock(dma->host, &dma->entry_lock);
}

int lend_serve_dma_engine(struct lend_connection *c, unsigned type, const void *body, void *reply,
                          size_t *bytes, struct lend_error *error)
{
    struct msg_dma_engine request;
    (void)type;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    if (!request.allow) {
        if (c->engine_users == 0)
            return lend_fail(error, -ENOENT, "no DMA engine of host %u was let in", c->peer);
        if (--c->engine_users == 0)
            lend_incoming_remove(c->adapter, c->engine_id);
        return 0;
    }
    const int fits = lend_route_payload(&c->route, lend_payload_of(c->adapter->pci), error);
    if (fits != 0) /* our answers to its reads */
        return fits;
    if (c->engine_users == 0) {
        int status = lend_incoming_add(c->adapter, c->node, request.device, request.function,
                                       "DMA engine", &c->engine_id, error);
        if (status != 0)
            return status;
    }
    c->engine_users++;
    return 0;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct kaddr slot(const struct lend_dma_channel *c, uint64_t number)
{
    return kaddr_add(c->ring, (number & (c->dma->options.ring - 1)) * DESC_BYTES);
}

int64_t lend_dma_submit(struct lend_dma *dma, unsigned channel, uint64_t source,
                        uint64_t destination, uint64_t bytes, unsigned flags)
{
    struct lend_dma_channel *c = &dma->channel[channel];
    if (channel >= dma->n_channels || bytes == 0 || bytes > LEND_DMA_BYTES_MAX ||
        source >= ADDRESS_LIMIT || destination >= ADDRESS_LIMIT)
        return -EINVAL;
    if (c->head - c->tail >= dma->options.ring - 1)
        return -ENOSPC;
    const struct ntb_dma_descriptor d = {
        .flags_bytes = (uint32_t)bytes | NTB_DMA_VALID |
                       (flags & LEND_DMA_NOTIFY ? NTB_DMA_NOTIFY : 0),
        .source_low = (uint32_t)source,
        .source_high = (uint16_t)(source >> 32),
        .destination_low = (uint32_t)destination,
        .destination_high = (uint16_t)(destination >> 32),
    };
    k_compute(dma->kernel, k_costs(dma->kernel)->work_cycles);
    /* The word that makes it valid comes last: the engine may be reading already. */
    struct kaddr at = slot(c, c->head);
    k_store(dma->kernel, kaddr_add(at, 4), (const uint8_t *)&d + 4, sizeof d - 4);
    k_store(dma->kernel, at, &d.flags_bytes, 4);
    return (int64_t)++c->head;
}

void lend_dma_issue(struct lend_dma *dma, unsigned channel)
{
    struct lend_dma_channel *c = &dma->channel[channel];
    if (channel < dma->n_channels)
        write_reg(c, NTB_DMA_CONTROL, c->control | NTB_DMA_CONTROL_STATUS | NTB_DMA_CONTROL_START);
}

static bool *bad_at(const struct lend_dma_channel *c, uint64_t cookie)
{
    return &c->bad[(cookie - 1) & (c->dma->options.ring - 1)];
}

/* Loads the descriptors that the engine may have written back. */
static void reap(struct lend_dma_channel *c)
{
    bool failed = false;
    while (c->tail != c->head) {
        uint32_t word;
        k_load(c->dma->kernel, slot(c, c->tail), &word, sizeof word);
        if (word & NTB_DMA_VALID)
            break;
        const bool bad = !(word & NTB_DMA_OK);
        *bad_at(c, ++c->tail) = bad;
        failed = failed || bad;
        c->last_bad = bad ? c->tail : c->last_bad;
    }
    if (failed && c->tail != c->head) /* a failure stops the engine before the next descriptor */
        lend_dma_issue(c->dma, c->number);
}

/* Result of the cookie and of earlier ones that nobody has asked for, but for those whose slots the
 * ring has reused. */
static int result(struct lend_dma_channel *c, int64_t cookie)
{
    const uint64_t last = (uint64_t)cookie, ring = c->dma->options.ring;
    uint64_t first = c->heard < last ? c->heard + 1 : last;
    bool bad = false;
    if (c->tail < last)
        return 0;
    if (c->tail >= ring && first <= c->tail - ring)
        first = c->tail - ring + 1;
    for (uint64_t i = first; i <= last && c->last_bad >= i; i++) {
        bad = bad || *bad_at(c, i);
        *bad_at(c, i) = false;
    }
    c->heard = last > c->heard ? last : c->heard;
    return bad ? -EIO : 1;
}

int lend_dma_poll(struct lend_dma *dma, unsigned channel, int64_t cookie)
{
    struct lend_dma_channel *c = &dma->channel[channel];
    if (channel < dma->n_channels)
        reap(c);
    return channel < dma->n_channels ? result(c, cookie) : -ENODEV;
}

int lend_dma_wait(struct lend_dma *dma, unsigned channel, int64_t cookie)
{
    struct lend_dma_channel *c = &dma->channel[channel];
    const uint64_t until_ps = k_now_ps(dma->kernel) + dma->options.timeout_ps;
    for (;;) {
        const uint64_t seen = c->interrupts;
        int status = lend_dma_poll(dma, channel, cookie);
        if (status != 0)
            return status > 0 ? 0 : status;
        if (c->interrupts == seen && !k_wait(dma->kernel, &c->wait, until_ps)) {
            /* done, perhaps, and its interrupt was lost */
            status = lend_dma_poll(dma, channel, cookie);
            return status > 0 ? 0 : status == 0 ? -ETIMEDOUT : status;
        }
    }
}
