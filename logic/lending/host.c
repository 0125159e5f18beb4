/*
 * What it does: options, adapters, doorbell interrupts and threads of a host, from lend_host_new()
 *   to lend_host_free(). Adapters do not come or go while the host runs.
 * Follows: docs/models/lending.md.
 */
#include <string.h>

#include "logic/lending/lending_internal.h"

#define POOL_MAX (UINT64_C(1) << 31)

const struct lend_options lend_options_default = {
    .name = "host",
    .pool_bytes = UINT64_C(1) << 20,
    .pool_node = K_NODE_LOCAL,
    .max_peers = 64,
    .dma_window_bytes = UINT64_C(64) << 20,
    .timeout_ps = 20 * K_MS,
    .heartbeat_ps = 2 * K_MS,
    .reclaim_ps = 10 * K_MS,
};

/* ---- Doorbells ------------------------------------------------------------------------------- */

/* Hard interrupt. */
static void doorbell_raised(void *arg)
{
    struct lend_doorbell *doorbell = arg;
    struct lend_host *host = doorbell->host;
    if (host->dead)
        return;
    /* Cleared before anybody looks, so that no later ring is missed. */
    if (doorbell->number < N_DOORBELLS)
        k_writel(doorbell->adapter->pci, 0, NTB_REG_DOORBELL, 1u << doorbell->number);
    if (doorbell->number == DOORBELL_EVENT) {
        lend_events(host, doorbell->adapter);
        return;
    }
    if (doorbell->number == DOORBELL_REPLY) {
        for (struct lend_connection *c = host->connections; c != NULL; c = c->next)
            if (c->adapter == doorbell->adapter)
                k_wake(host->kernel, &c->reply);
        return;
    }
    host->rung |= 1u << doorbell->number;
    k_wake(host->kernel, &host->work);
}

void lend_doorbell_lost(struct lend_host *host, const struct lend_adapter *adapter, unsigned number)
{
    doorbell_raised(&host->doorbell[adapter->index][number]);
}

static int doorbells_request(struct lend_host *host, struct lend_adapter *adapter)
{
    for (unsigned i = 0; i <= N_DOORBELLS; i++) {
        struct lend_doorbell *doorbell = &host->doorbell[adapter->index][i];
        *doorbell = (struct lend_doorbell){ .host = host, .adapter = adapter, .number = i };
        unsigned vector = i < N_DOORBELLS ? i : NTB_VECTOR_LINK;
        int status = k_irq_request(adapter->pci, vector, 0, doorbell_raised, doorbell,
                                   &doorbell->irq);
        if (status != 0) {
            doorbell->irq = NULL;
            return status;
        }
    }
    k_writel(adapter->pci, 0, NTB_REG_DOORBELL_MASK, ~((1u << N_DOORBELLS) - 1));
    return 0;
}

static void doorbells_free(struct lend_host *host, struct lend_adapter *adapter)
{
    k_writel(adapter->pci, 0, NTB_REG_DOORBELL_MASK, UINT32_MAX);
    for (unsigned i = 0; i <= N_DOORBELLS; i++)
        if (host->doorbell[adapter->index][i].irq != NULL)
            k_irq_free(host->doorbell[adapter->index][i].irq);
}

/* ---- Adapters -------------------------------------------------------------------------------- */

static int adapter_probe(struct k_pci_dev *pci, void *context)
{
    struct lend_host *host = context;
    struct lend_error error;
    if (host->n_adapters == LEND_ADAPTERS_MAX || host->started)
        return -ENODEV;
    struct lend_adapter *adapter = &host->adapter[host->n_adapters];
    int status = lend_adapter_init(adapter, pci, host->n_adapters, &error);
    if (status != 0) {
        k_warn(host->kernel, "%s", error.text);
        return status;
    }
    adapter->name_of = host->options.name_of;
    adapter->context = host->options.context;
    pci->device.driver_data = host;
    host->n_adapters++;
    return 0;
}

static void adapter_remove(struct k_pci_dev *pci, bool gone)
{
    /* lend_host_free() releases the adapter. */
    (void)pci;
    (void)gone;
}

static const struct k_pci_id adapter_ids[] = { { NTB_VENDOR_ID, NTB_DEVICE_ID }, { 0, 0 } };

/* ---- Life ------------------------------------------------------------------------------------ */

static bool options_good(const struct lend_options *o)
{
    return o->id != 0 && o->name != NULL && lend_power_of_two(o->pool_bytes) &&
           o->pool_bytes <= POOL_MAX && o->pool_bytes % K_PAGE_BYTES == 0 && o->max_peers > 0 &&
           o->max_peers <= 4095 && (uint64_t)o->max_peers * LEND_MAILBOX_BYTES <= o->pool_bytes &&
           lend_power_of_two(o->dma_window_bytes) && o->dma_window_bytes >= UINT64_C(1) << 16 &&
           o->dma_window_bytes <= UINT64_C(1) << 34;
}

struct lend_host *lend_host_new(struct kernel *kernel, const struct lend_options *options)
{
    if (!options_good(options))
        return NULL;
    /* Aligned to its size, so that it takes as few windows of a peer as possible. */
    struct kaddr pool = k_alloc(kernel, options->pool_node, options->pool_bytes,
                                options->pool_bytes);
    if (pool.v == 0)
        return NULL;
    struct lend_host *host = k_zalloc(sizeof *host);
    *host = (struct lend_host){ .kernel = kernel, .options = *options, .pool = pool };
    uint64_t boxes = (uint64_t)options->max_peers * LEND_MAILBOX_BYTES, first;
    lend_ranges_init(&host->pool_space, 0, options->pool_bytes);
    lend_ranges_take(&host->pool_space, boxes, K_PAGE_BYTES, &first);
    host->mailbox_used = k_zalloc(options->max_peers);
    host->incarnation = (uint32_t)(k_now_ps(kernel) / 1000) | 1;
    host->adapter_driver = (struct k_pci_driver){ .name = "lend_bridge",
                                                  .ids = adapter_ids,
                                                  .probe = adapter_probe,
                                                  .remove = adapter_remove,
                                                  .context = host };
    lend_lender_init(host);
    return host;
}

const struct k_pci_driver *lend_adapter_driver(const struct lend_host *host)
{
    return &host->adapter_driver;
}

const struct k_pci_driver *lend_lender_driver(const struct lend_host *host)
{
    return &host->lender_driver;
}

int lend_start(struct lend_host *host, struct lend_error *error)
{
    if (host->n_adapters == 0)
        return lend_fail(error, -ENODEV, "%s: no adapter", host->options.name);
    int status = lend_publish(host, error);
    for (unsigned i = 0; status == 0 && i < host->n_adapters; i++)
        if ((status = doorbells_request(host, &host->adapter[i])) != 0)
            lend_fail(error, status, "%s: no interrupt for the doorbells of %s", host->options.name,
                      host->adapter[i].pci->device.name);
    if (status != 0)
        return status;
    host->started = true;
    host->n_threads = 2;
    k_thread_new(host->kernel, "lend_server", K_CPU_ANY, lend_server, host);
    k_thread_new(host->kernel, "lend_heartbeats", K_CPU_ANY, lend_heartbeats, host);
    return 0;
}

void lend_host_kill(struct lend_host *host)
{
    host->dead = true;
    k_wake(host->kernel, &host->work);
    k_wake(host->kernel, &host->settle);
    k_wake(host->kernel, &host->stopped);
}

void lend_host_free(struct lend_host *host)
{
    if (host->started && !host->dead) {
        lend_borrows_return(host);
        for (struct lend_device *d = host->devices; d != NULL; d = d->next)
            lend_reclaim(host, d->pci->id);
        if (host->service != NULL)
            host->service->stop(host->service_context);
        lend_connections_close(host, true);
    }
    host->stopping = true;
    k_wake(host->kernel, &host->work);
    k_wake(host->kernel, &host->settle);
    k_wake(host->kernel, &host->stopped);
    while (host->n_threads > 0)
        k_wait(host->kernel, &host->stopped, k_now_ps(host->kernel) + K_MS);
    for (unsigned i = 0; i < host->n_adapters && host->started && !host->dead; i++)
        doorbells_free(host, &host->adapter[i]);
    if (host->started && !host->dead)
        lend_unpublish(host);
    while (host->connections != NULL) { /* of a dead host */
        struct lend_connection *c = host->connections;
        host->connections = c->next;
        lend_mail_free(c);
        k_free(c);
    }
    lend_mdevs_free(host);
    lend_pairs_free(host);
    lend_borrows_free(host);
    lend_segments_free(host);
    lend_devices_free(host);
    if (host->service != NULL)
        host->service->release(host->service_context);
    for (unsigned i = 0; i < host->n_adapters; i++)
        lend_adapter_release(&host->adapter[i], host->dead);
    lend_ranges_release(&host->pool_space);
    k_free(host->paths);
    lend_routes_free(host);
    k_free(host->mailbox_used);
    k_free(host);
}

struct lend_adapter *lend_adapter_at(struct lend_host *host, unsigned index)
{
    return index < host->n_adapters ? &host->adapter[index] : NULL;
}
