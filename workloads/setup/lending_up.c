/*
 * Borrows what the group `lending` says, and returns it.
 *
 * There are three steps. All hosts take each at the same time, and a step begins when the last host
 * has finished the one before: load drivers and start device lending; discover other hosts and
 * connect to the lenders; borrow, in the order of the scenario. The table entries that a host holds
 * after the second step are those that it must hold again when everything has been returned.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"
#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"
#include "sim/engine/watchdog.h"
#include "workloads/setup/lending_internal.h"
#include "workloads/setup/lending_vm.h"

/* ---- Steps ----------------------------------------------------------------------------------- */

static void step_done(struct lending_host *host)
{
    if (--host->lending->n_waiting == 0)
        sim_stop(world_sim(host->lending->world));
}

bool lending_wait(struct sim *sim, const unsigned *n_waiting, const char *stalled,
                  const volatile int *interrupt)
{
    while (*n_waiting != 0 && sim_error(sim) == NULL && (interrupt == NULL || *interrupt == 0) &&
           sim_events_pending(sim) != 0)
        sim_run(sim, SIM_TIME_MAX, interrupt);
    if (sim_error(sim) != NULL || (interrupt != NULL && *interrupt != 0))
        return false;
    if (*n_waiting != 0)
        sim_fail_waiting(sim, stalled);
    return *n_waiting == 0;
}

/* Runs body, which ends with step_done(), in a thread of every host that takes part (all: of every
 * host), and waits for them. False: the run has failed, or is interrupted. */
static bool step(struct lending *lending, const char *name, bool all, k_thread_fn *body,
                 const volatile int *interrupt)
{
    char stalled[64];
    for (unsigned h = 0; h < lending->n_hosts; h++) {
        struct lending_host *host = &lending->host[h];
        if (!all && !host->takes_part)
            continue;
        lending->n_waiting++;
        k_thread_new(host->host_kernel, name, 0, body, host);
    }
    snprintf(stalled, sizeof(stalled), "lending stalled: %s", name);
    return lending_wait(world_sim(lending->world), &lending->n_waiting, stalled, interrupt);
}

void lending_refuse(struct lending_host *host, const char *fmt, ...)
{
    struct lending *lending = host->lending;
    va_list args;
    if (lending->fault[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(lending->fault, sizeof(lending->fault), fmt, args);
    va_end(args);
}

/* ---- Up -------------------------------------------------------------------------------------- */

/* True: the scenario says that the host lends this device. */
static bool wanted(const struct k_pci_dev *dev, void *context)
{
    const struct lending_host *host = context;
    const struct lending *lending = host->lending;
    const int vf = dev->pf != NULL ? dev->vf_number : FUNCTION_PHYSICAL;
    const uint16_t pf_id = dev->pf != NULL ? dev->pf->id : dev->id;
    for (unsigned i = 0; host->n_lent != 0 && i < lending->n_devices; i++) {
        const struct lent_device *device = &lending->device[i];
        if (device->lender == host && device->pf_id == pf_id && device->function.vf == vf)
            return true;
    }
    return false;
}

static unsigned dma_bits(const struct k_pci_dev *dev, void *context)
{
    const struct lending_host *host = context;
    (void)dev;
    return host->params.dma_bits;
}

static unsigned nodes(uint32_t peer, uint32_t node[LEND_ADAPTERS_MAX], void *context)
{
    const struct lending *lending = ((const struct lending_host *)context)->lending;
    unsigned n = 0;
    if (peer == 0 || peer > lending->n_hosts)
        return 0;
    for (; n < LEND_ADAPTERS_MAX && lending->host[peer - 1].ntb_node[n] != 0; n++)
        node[n] = lending->host[peer - 1].ntb_node[n];
    return n;
}

/* The group of the scenario that describes the adapter or switch of that number. */
static const char *name_of(uint32_t node, void *context)
{
    struct world *world = ((const struct lending_host *)context)->lending->world;
    const char *const *names = world_device_names(world);
    for (unsigned i = 0; names[i] != NULL; i++) {
        const struct model *model = world_device(world, names[i]);
        if ((model->ops == &pcie_ntb_ops && ntb_node(model) == node) ||
            (model->ops == &pcie_cluster_switch_ops && cluster_switch_node(model) == node))
            return config_path(model->config);
    }
    return NULL;
}

/* Looks up the devices to lend among those that enumeration has found. */
static bool find_lent(struct lending_host *host)
{
    struct lending *lending = host->lending;
    unsigned n = 0;
    host->lent_ids = sim_zalloc(host->n_lent + 1u, sizeof(*host->lent_ids));
    for (unsigned i = 0; n < host->n_lent && i < lending->n_devices; i++) {
        struct lent_device *device = &lending->device[i];
        const struct function_name *f = &device->function;
        const struct k_pci_dev *dev = NULL;
        if (device->lender != host)
            continue;
        if (world_function_id(f->model, function_pf(f), &device->pf_id))
            dev = os_pci_find(host->host_kernel, device->pf_id);
        if (dev == NULL) {
            lending_refuse(host, "%s has not found %s", host->name, device->name);
            return false;
        }
        device->id = device->pf_id;
        host->lent_ids[n++] = (struct k_pci_id){
            dev->vendor_id,
            f->vf < 0 ? dev->device_id : function_vf_device_id(f->model, function_pf(f))
        };
    }
    return true;
}

static void join(struct lending_host *host)
{
    struct lend_options options = lend_options_default;
    struct lend_error error = { 0 };
    options.id = host->number;
    options.name = host->name;
    options.pool_bytes = host->params.pool_bytes;
    options.max_peers = host->params.max_peers;
    options.timeout_ps = host->params.timeout_ps;
    options.hold_links = host->params.hold_links;
    options.dma_window_bytes = host->params.dma_window_bytes;
    options.lend = host->lent_ids;
    options.want = wanted;
    options.dma_bits = dma_bits;
    options.nodes = host->params.nodes_listed ? nodes : NULL;
    options.name_of = name_of;
    options.context = host;
    host->lend = lend_host_new(host->host_kernel, &options);
    if (host->lend == NULL) {
        lending_refuse(host, "%s: no memory for a pool of %llu bytes", host->name,
                       (unsigned long long)options.pool_bytes);
        return;
    }
    host->sisci = sisci_new(host->lend);
    k_pci_register(host->host_kernel, lend_adapter_driver(host->lend));
    if (k_pci_register(host->host_kernel, lend_lender_driver(host->lend)) !=
        (int)(host->n_lent - host->n_lent_vfs))
        lending_refuse(host, "%s: not every device can be lent", host->name);
    else if (lend_start(host->lend, &error) != 0)
        lending_refuse(host, "%s takes no part: %s (%d)", host->name, error.text, error.code);
}

/* Device lending starts first, so that no other driver takes a device that is lent. */
static void start_body(void *arg)
{
    struct lending_host *host = arg;
    if (find_lent(host) && host->takes_part)
        join(host);
    if (host->vm != NULL)
        lending_vm_boot(host);
    for (unsigned i = 0; lending_drivers[i] != NULL; i++)
        if ((host->driver[i] = lending_drivers[i]->new (host->kernel, &host->params)) != NULL)
            k_pci_register(host->kernel, lending_drivers[i]->pci(host->driver[i]));
    if (host->params.sriov_numvfs != 0 && host->lending->fault[0] == '\0')
        lending_enable_vfs(host);
    step_done(host);
}

static void meet_body(void *arg)
{
    struct lending_host *host = arg;
    struct lending *lending = host->lending;
    struct lend_error error = { 0 };
    struct lend_info info;
    const struct lending_host *last = NULL;
    if (host->n_borrowed != 0 && !host->params.nodes_listed)
        lend_discover(host->lend);
    for (unsigned i = 0; host->n_borrowed != 0 && i < lending->n_devices; i++) {
        const struct lent_device *device = &lending->device[i];
        if (device->borrower != host || device->lender == last)
            continue;
        last = device->lender;
        int status = lend_list(host->lend, last->number, 0, &info, &error);
        if (status != 0)
            lending_refuse(host, "%s does not reach %s: %s (%d)", host->name, last->name,
                           error.text, status);
    }
    step_done(host);
}

/* Advice to append to a refusal; "": none. */
static const char *remedy(const struct lending_host *host, int status)
{
    if (status != -EFBIG)
        return "";
    return host_iommu_enabled(host->host)
               ? "; a smaller dma_window_bytes of the borrower may help, or a larger bar2_bytes of "
                 "that adapter"
               : "; the borrower's IOMMU (iommu.enabled) may help, or a larger bar2_bytes of that "
                 "adapter";
}

static void borrow_body(void *arg)
{
    struct lending_host *host = arg;
    struct lending *lending = host->lending;
    struct lend_error error = { 0 };
    if (host->vm != NULL)
        lending_vm_plug(host);
    for (unsigned i = 0; host->n_borrowed != 0 && i < lending->n_devices; i++) {
        struct lent_device *device = &lending->device[i];
        if (device->borrower != host || host->vm != NULL)
            continue;
        int status = lend_borrow(host->lend, device->lender->number, device->id, &device->borrow,
                                 &error);
        if (status != 0) {
            device->borrow = NULL;
            lending_refuse(host, "%s cannot borrow %s of %s: %s (%d)%s", host->name, device->name,
                           device->lender->name, error.text, status, remedy(host, status));
            break;
        }
    }
    step_done(host);
}

/* Takes the steps until something is refused. False: the run has failed, or is interrupted. */
static bool go_up(struct lending *lending, const volatile int *interrupt)
{
    if (!step(lending, "lend_start", true, start_body, interrupt))
        return false;
    if (lending->fault[0] == '\0' && !step(lending, "lend_meet", false, meet_body, interrupt))
        return false;
    for (unsigned h = 0; h < lending->n_hosts; h++)
        if (lending->host[h].lend != NULL)
            lending->host[h].before = lend_usage(lending->host[h].lend);
    return lending->fault[0] != '\0' || step(lending, "lend_borrow", true, borrow_body, interrupt);
}

bool lending_up(struct lending *lending, const volatile int *interrupt)
{
    for (unsigned h = 0; h < lending->n_hosts; h++) {
        struct lending_host *host = &lending->host[h];
        host->host_kernel = host->kernel = os_new(host->host, host_os_params(host->host));
    }
    if (!go_up(lending, interrupt))
        return false;
    if (lending->fault[0] == '\0')
        return true;
    lending_down(lending, interrupt);
    if (sim_error(world_sim(lending->world)) == NULL)
        sim_fail(world_sim(lending->world), "%s", lending->fault);
    return false;
}

/* ---- Down ------------------------------------------------------------------------------------ */

void lending_borrows_more(struct lending *lending)
{
    lending->borrows_more = true;
}

void lending_excuse(struct lending *lending)
{
    lending->excused = true;
}

void lending_kill(struct lending_host *host)
{
    struct world *world = host->lending->world;
    struct pcie_port *end[2];
    struct pcie_link *link;
    for (unsigned i = 0; (link = pcie_context_link(world_pcie(world), i, &end[0], &end[1])) != NULL;
         i++)
        for (unsigned e = 0; e < 2; e++)
            if (end[e]->fabric && end[e]->model->ops == &pcie_ntb_ops &&
                world_host_of(world, end[e]->model) == host->host)
                pcie_link_set_up(link, false);
    lend_host_kill(host->lend);
    host->dead = true;
}

void lending_remove(struct lending_host *host, struct k_pci_dev *dev)
{
    struct lending *lending = host->lending;
    for (unsigned i = 0; i < lending->n_devices; i++) {
        struct lent_device *device = &lending->device[i];
        if (device->borrow == NULL || lend_borrow_device(device->borrow) != dev)
            continue;
        lend_return(device->borrow);
        device->borrow = NULL;
        return;
    }
    k_pci_remove(dev, false);
}

static void return_body(void *arg)
{
    struct lending_host *host = arg;
    struct lending *lending = host->lending;
    if (host->vm != NULL)
        lending_vm_unplug(host);
    for (unsigned i = 0; host->n_borrowed != 0 && i < lending->n_devices; i++) {
        struct lent_device *device = &lending->device[i];
        if (device->borrower != host || device->borrow == NULL)
            continue;
        lend_return(device->borrow);
        device->borrow = NULL;
    }
    step_done(host);
}

/* True: the host has given back every entry that it took after the second step. */
static bool nothing_left(struct lending_host *host)
{
    const struct lend_usage now = lend_usage(host->lend), *then = &host->before;
    bool left = now.lent + now.borrowed + now.unsettled != 0 || now.mapped_pages != 0 ||
                now.outgoing != then->outgoing;
    if (!host->lending->borrows_more)
        left = left || now.windows != then->windows || now.incoming != then->incoming ||
               now.exported_bytes != then->exported_bytes;
    if (host->lending->excused)
        return true;
    if (left)
        sim_fail(world_sim(host->lending->world),
                 "%s: after everything was returned %u windows, %u outgoing and %u incoming "
                 "requesters, %llu bytes are exported, %u devices lent, %u borrowed, %llu pages "
                 "mapped, entries left in %u cluster switches; before, it were %u, %u, %u, %llu, "
                 "and none",
                 host->name, now.windows, now.outgoing, now.incoming,
                 (unsigned long long)now.exported_bytes, now.lent, now.borrowed,
                 (unsigned long long)now.mapped_pages, now.unsettled, then->windows, then->outgoing,
                 then->incoming, (unsigned long long)then->exported_bytes);
    return !left;
}

static bool has_driver_of(const struct lending_host *host, const struct k_pci_dev *dev)
{
    for (unsigned d = 0; lending_drivers[d] != NULL; d++)
        if (host->driver[d] != NULL && dev->driver == lending_drivers[d]->pci(host->driver[d]))
            return true;
    return false;
}

/* Removes the drivers of the host's own devices, then stops device lending. */
static void stop_body(void *arg)
{
    struct lending_host *host = arg;
    unsigned n;
    const struct pcie_found *found = host_functions(host->host, &n);
    lending_disable_vfs(host);
    for (unsigned i = 0; i < n; i++) {
        struct k_pci_dev *dev = found[i].bridge ? NULL
                                                : os_pci_find(host->host_kernel, found[i].id);
        if (dev != NULL && has_driver_of(host, dev))
            k_pci_remove(dev, false);
    }
    if (host->vm != NULL)
        lending_vm_unplug_own(host);
    for (unsigned d = 0; lending_drivers[d] != NULL; d++)
        if (host->driver[d] != NULL)
            lending_drivers[d]->free(host->driver[d]);
    if (host->vm != NULL)
        lending_vm_off(host);
    if (host->lend != NULL)
        lend_host_free(host->lend);
    host->lend = NULL;
    step_done(host);
}

void lending_down(struct lending *lending, const volatile int *interrupt)
{
    if (!step(lending, "lend_return", false, return_body, interrupt))
        return;
    for (unsigned h = 0; h < lending->n_hosts; h++)
        if (lending->host[h].lend != NULL && !lending->host[h].dead &&
            !nothing_left(&lending->host[h]))
            return;
    step(lending, "lend_stop", true, stop_body, interrupt);
}
