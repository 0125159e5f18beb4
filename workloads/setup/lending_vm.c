/*
 * Guests: a host of the group `lending` with a group `vm` runs its programs in a virtual machine,
 * which has the host's devices: borrowed ones by MDEV, its own by VFIO.
 *
 *   borrower = { host = "borrower"; borrow = ["gpu0"]; vm = { memory_bytes = "4 GiB"; }; };
 */
#include "workloads/setup/lending_vm.h"

#include <errno.h>
#include <stdlib.h>

#include "logic/lending/mdev.h"
#include "logic/lending/vfio.h"
#include "models/os/os_pci.h"
#include "models/pcie/ntb/ntb.h"
#include "workloads/setup/lending_internal.h"

#define HUGE_BYTES (UINT64_C(1) << 21)

struct lending_vm {
    struct lending_vm_params params;
    struct vm_config config;
    struct k_vm *vm; /* NULL: not yet */
    struct vfio *vfio;
    struct k_pci_id *ids; /* kinds of the host's own devices; ended by { 0, 0 } */
};

const struct param_desc lending_vm_params_table[] = {
    PARAM("memory_bytes", PARAM_BYTES, struct lending_vm_params, memory_bytes, 4294967296, 67108864,
          1099511627776, PROV_NONE, "", "of the guest, in pages of 2 MiB of the host"),
    PARAM("first_cpu", PARAM_U32, struct lending_vm_params, first_cpu, 2, 1, 255, PROV_NONE, "",
          "of the host, that the guest's first is pinned to; 0 is the host's"),
    PARAM("cpus", PARAM_U32, struct lending_vm_params, cpus, 4, 1, 64, PROV_NONE, "",
          "of the guest, pinned to that one and the next"),
    { .type = PARAM_END },
};

/* ---- The scenario ---------------------------------------------------------------------------- */

/* Cores of the host, one after the other. */
static void check_cpus(const struct lending_host *host, struct config_node *group, unsigned cores,
                       struct sim_error_list *errors)
{
    const struct lending_vm_params *params = &host->vm->params;
    char expected[160];
    if (params->first_cpu >= cores)
        snprintf(expected, sizeof(expected), "one of the cores of the host %.60s, 1..%u",
                 host_name(host->host), cores - 1);
    else if (params->cpus > cores - params->first_cpu)
        snprintf(expected, sizeof(expected),
                 "at most %u: cores of the host %.60s from first_cpu = %u on",
                 cores - params->first_cpu, host_name(host->host), params->first_cpu);
    else
        return;
    config_mistake_at(group, params->first_cpu >= cores ? "first_cpu" : "cpus", errors, expected,
                      NULL);
}

/* What does not fill its sets would not be there. */
static void check_tlbs(struct config_node *group, const struct vm_params *params,
                       struct sim_error_list *errors)
{
    const struct {
        const char *key, *expected;
        uint32_t entries, ways;
    } tlbs[] = {
        { "tlb_4k_entries", "a multiple of tlb_ways, or fewer", params->tlb_4k_entries,
          params->tlb_ways },
        { "tlb_2m_entries", "a multiple of tlb_ways, or fewer", params->tlb_2m_entries,
          params->tlb_ways },
        { "tlb_l2_entries", "a multiple of tlb_l2_ways, or fewer", params->tlb_l2_entries,
          params->tlb_l2_ways },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(tlbs); i++)
        if (tlbs[i].entries > tlbs[i].ways && tlbs[i].entries % tlbs[i].ways != 0)
            config_mistake_at(group, tlbs[i].key, errors, tlbs[i].expected, NULL);
}

void lending_vm_read(struct lending_host *host, struct config *config,
                     struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    if (config_find(host->group, "vm") == NULL)
        return;
    struct config_node *group = config_get(host->group, "vm");
    if (config_kind(group) != CONFIG_GROUP) {
        config_mistake(group, errors, "a group that describes a virtual machine, { }", NULL);
        config_mark_read(group);
        return;
    }
    struct lending_vm *v = sim_zalloc(1, sizeof *v);
    host->vm = v;
    v->config = vm_config_default();
    config_read_params(config, group, config_path(group), lending_vm_params_table, &v->params,
                       errors);
    config_read_params(config, group, config_path(group), vm_params_table, &v->config.params,
                       errors);
    if (errors->n_messages != before)
        return;
    const unsigned cores = numa_cores(host_numa(host->host));
    check_cpus(host, group, cores, errors);
    if (v->params.memory_bytes % HUGE_BYTES != 0)
        config_mistake_at(group, "memory_bytes", errors, "a multiple of 2 MiB", NULL);
    if (!vm_pages_possible(v->config.params.guest_page_bytes, v->config.params.host_page_bytes)) {
        const bool by_host = vm_pages_possible(v->config.params.guest_page_bytes, HUGE_BYTES);
        config_mistake_at(group, by_host ? "host_page_bytes" : "guest_page_bytes", errors,
                          by_host ? "4096 or 2 MiB" : "4096, 2 MiB or 1 GiB", NULL);
    }
    check_tlbs(group, &v->config.params, errors);
    v->config.name = host->name;
    v->config.first_cpu = v->params.first_cpu;
    v->config.n_cpus = v->params.cpus;
    v->config.memory_bytes = v->params.memory_bytes;
    v->config.node = numa_socket_of_core(host_numa(host->host), v->params.first_cpu);
}

unsigned lending_vm_cpus(const struct lending_host *host)
{
    return host->vm->params.cpus;
}

unsigned lending_vm_first_core(const struct lending_host *host)
{
    return host->vm->params.first_cpu;
}

/* ---- Its own devices ------------------------------------------------------------------------- */

/* The i-th of the host's own devices that it does not lend; NULL: there are fewer. */
static struct k_pci_dev *own_device(struct lending_host *host, unsigned i)
{
    struct world *world = host->lending->world;
    const char *const *names = lending_used_names(host);
    for (unsigned n = 0; names[n] != NULL; n++) {
        struct function_name f;
        if (lending_lent(host->lending, names[n]) != NULL || !function_find(world, names[n], &f) ||
            f.pf >= 0)
            continue;
        struct k_pci_dev *dev = lending_own_function(host, &f);
        if (dev != NULL && i-- == 0)
            return dev;
    }
    return NULL;
}

static void take_own(struct lending_host *host)
{
    struct lending_vm *v = host->vm;
    const struct k_pci_dev *dev;
    unsigned n = 0;
    while (own_device(host, n) != NULL)
        n++;
    v->ids = sim_zalloc(n + 1u, sizeof *v->ids);
    for (unsigned i = 0; (dev = own_device(host, i)) != NULL; i++)
        v->ids[i] = (struct k_pci_id){ dev->vendor_id, dev->device_id };
    const struct vfio_options options = { .ids = v->ids };
    v->vfio = vfio_new(host->host_kernel, &options);
    k_pci_register(host->host_kernel, vfio_driver(v->vfio));
}

/* ---- Life ------------------------------------------------------------------------------------ */

void lending_vm_boot(struct lending_host *host)
{
    struct lending_vm *v = host->vm;
    take_own(host);
    const int status = vm_new(host->host_kernel, &v->config, &v->vm);
    if (status != 0)
        lending_refuse(host, "the guest %s does not start, with %u CPUs and %llu MiB: %s (%d)",
                       host->name, v->config.n_cpus,
                       (unsigned long long)(v->config.memory_bytes >> 20),
                       status == -ENOMEM  ? "its host has not so much memory"
                       : status == -EBUSY ? "the CPUs are another guest's"
                                          : "error",
                       status);
    else
        host->kernel = vm_kernel(v->vm);
}

static void add_own(struct lending_host *host)
{
    struct lending_vm *v = host->vm;
    struct k_pci_dev *dev;
    for (unsigned i = 0; (dev = own_device(host, i)) != NULL; i++) {
        struct k_vm_function *fn = vfio_function(v->vfio, dev);
        const int status = fn == NULL ? -1 : vm_add(v->vm, fn);
        if (status != 0)
            lending_refuse(host, "the guest of %s does not get a device of its host: %s%s",
                           host->name, vfio_error(v->vfio)->text,
                           status == -EOPNOTSUPP ? " (iommu.enabled = true of that host)" : "");
    }
}

static void add_borrowed(struct lending_host *host, struct lent_device *device)
{
    if (device->guest == 0)
        device->guest = host->number; /* and stays: it is the same guest that arrives elsewhere */
    device->mdev = lend_mdev_new(host->lend, device->lender->number, device->id, device->guest);
    const int status = vm_add(host->vm->vm, lend_mdev_function(device->mdev));
    const struct lend_error *error = lend_mdev_error(device->mdev);
    if (status != 0 || error->code != 0)
        lending_refuse(host, "the guest %s does not get %s of %s: %s (%d)", host->name,
                       device->name, device->lender->name, error->text,
                       status != 0 ? status : error->code);
}

void lending_vm_plug(struct lending_host *host)
{
    struct lending *lending = host->lending;
    if (host->vm->vm == NULL)
        return;
    add_own(host);
    for (unsigned i = 0; i < lending->n_devices; i++)
        if (lending->device[i].borrower == host)
            add_borrowed(host, &lending->device[i]);
}

void lending_vm_unplug(struct lending_host *host)
{
    struct lending *lending = host->lending;
    for (unsigned i = 0; i < lending->n_devices; i++) {
        struct lent_device *device = &lending->device[i];
        if (device->borrower != host || device->mdev == NULL)
            continue;
        vm_remove(host->vm->vm, lend_mdev_function(device->mdev));
        lend_mdev_free(device->mdev);
        device->mdev = NULL;
    }
}

void lending_vm_unplug_own(struct lending_host *host)
{
    struct lending_vm *v = host->vm;
    struct k_pci_dev *dev;
    for (unsigned i = 0; v->vm != NULL && (dev = own_device(host, i)) != NULL; i++) {
        struct k_vm_function *fn = vfio_function(v->vfio, dev);
        if (fn != NULL)
            vm_remove(v->vm, fn);
    }
}

void lending_vm_off(struct lending_host *host)
{
    struct lending_vm *v = host->vm;
    if (v->vm == NULL) /* was refused */
        return;
    const int status = vm_shutdown(v->vm);
    const struct vfio_usage usage = vfio_usage(v->vfio);
    if (status != 0)
        k_fault(host->host_kernel, "%s does not shut down: a program is still running", host->name);
    else if (usage.guests + usage.domains != 0 || usage.pinned_bytes + usage.peer_bytes != 0 ||
             vm_stats(v->vm).pins != 0)
        k_fault(host->host_kernel, "%s: %llu bytes of the guest are still pinned", host->name,
                (unsigned long long)usage.pinned_bytes);
}

struct k_pci_dev *lending_vm_device(struct lending_host *host, const char *name)
{
    struct lending_vm *v = host->vm;
    const struct lent_device *lent = lending_lent(host->lending, name);
    struct function_name f;
    if (lent != NULL)
        return lent->mdev != NULL ? vm_device(v->vm, lend_mdev_function(lent->mdev)) : NULL;
    struct k_pci_dev *own = function_find(host->lending->world, name, &f)
                                ? lending_own_function(host, &f)
                                : NULL;
    const struct k_vm_function *fn = own != NULL ? vfio_function(v->vfio, own) : NULL;
    return fn != NULL ? vm_device(v->vm, fn) : NULL;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

bool lending_vm_stats(const struct lending_host *host, struct vm_stats *stats)
{
    const struct lending_vm *v = host->vm;
    *stats = v != NULL && v->vm != NULL ? vm_stats(v->vm) : (struct vm_stats){ 0 };
    return v != NULL;
}

void lending_vm_stats_clear(struct lending_host *host)
{
    if (host->vm != NULL && host->vm->vm != NULL)
        vm_stats_clear(host->vm->vm);
}

/* ---- Cold migration -------------------------------------------------------------------------- */

void lending_vm_leave(struct lending_host *host)
{
    lending_vm_unplug(host);
    lending_vm_unplug_own(host);
    lending_vm_off(host);
}

void lending_vm_arrive(struct lending_host *host, const char *name)
{
    struct lent_device *device = lending_lent(host->lending, name);
    lend_discover(host->lend);
    lending_borrows_more(host->lending); /* it has not been in touch with the lender before */
    device->borrower = host;
    add_borrowed(host, device);
}

void lending_vm_free(struct lending_host *host)
{
    struct lending_vm *v = host->vm;
    if (v == NULL)
        return;
    if (v->vm != NULL)
        vm_free(v->vm);
    if (v->vfio != NULL)
        vfio_free(v->vfio);
    free(v->ids);
    free(v);
    host->vm = NULL;
}
