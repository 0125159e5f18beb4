/* Virtual functions of a host's devices (SR-IOV): has their physical functions' drivers enable as
 * many as sriov_numvfs says, before anything is borrowed, so that some can be lent. */
#include "logic/net/net.h"
#include "logic/nic/nic_driver.h"
#include "models/nic/nic.h"
#include "workloads/setup/lending_internal.h"

/* The next physical function that has virtual ones and stays with the host, from (*i, *pf) on,
 * which go on behind it; false: none is left. */
static bool next_pf(struct lending_host *host, unsigned *i, unsigned *pf, struct function_name *f)
{
    struct lending *lending = host->lending;
    const char *const *names = world_device_names(lending->world);
    for (; names[*i] != NULL; ++*i, *pf = 0) {
        struct model *model = world_device(lending->world, names[*i]);
        for (; model != NULL && *pf < model->n_ports; ++*pf) {
            bool lent = false;
            *f = (struct function_name){ model, (int)*pf, FUNCTION_PHYSICAL };
            for (unsigned d = 0; d < lending->n_devices; d++)
                lent = lent || function_same(&lending->device[d].function, f);
            if (lent || function_total_vfs(model, *pf) == 0 ||
                world_host_of_port(lending->world, model, *pf) != host->host)
                continue;
            ++*pf;
            return true;
        }
    }
    return false;
}

void lending_check_vfs(struct lending_host *host, struct sim_error_list *errors)
{
    struct function_name f;
    unsigned i = 0, pf = 0;
    bool any = false;
    char expected[192];
    if (host->params.sriov_numvfs == 0)
        return;
    if (host->vm != NULL) {
        config_mistake_at(host->group, "sriov_numvfs", errors,
                          "0 for a host with a group `vm`, whose guest has its devices", NULL);
        return;
    }
    while (next_pf(host, &i, &pf, &f)) {
        const unsigned total = function_total_vfs(f.model, function_pf(&f));
        any = true;
        if (total >= host->params.sriov_numvfs)
            continue;
        snprintf(expected, sizeof(expected), "at most %u, as many virtual functions as %.60s has",
                 total, f.model->name);
        config_mistake_at(host->group, "sriov_numvfs", errors, expected, NULL);
        return;
    }
    if (!any)
        config_mistake_at(
            host->group, "sriov_numvfs", errors,
            "0, or a device of the host, not lent as a whole, that has virtual functions "
            "(`vfs` of a nic.ethernet, `virtual_functions` of an nvme.controller)",
            NULL);
}

struct k_pci_dev *lending_own_function(struct lending_host *host, const struct function_name *f)
{
    uint16_t id;
    if (!world_function_id(f->model, function_pf(f), &id))
        return NULL;
    struct k_pci_dev *pf = os_pci_find(host->host_kernel, id);
    return f->vf < 0 || pf == NULL ? pf : k_pci_vf(pf, (unsigned)f->vf);
}

/* ---- Up -------------------------------------------------------------------------------------- */

static bool has_nic(struct lending_host *host)
{
    struct function_name f;
    unsigned i = 0, pf = 0;
    while (next_pf(host, &i, &pf, &f))
        if (f.model->ops == &nic_ops)
            return true;
    return false;
}

static void load_nic_driver(struct lending_host *host)
{
    struct net_params net = net_params_default;
    struct nic_driver_params nic = nic_driver_params_default;
    if (host->network_params != NULL)
        host->network_params(host->network_context, &net, &nic);
    host->net = net_new(host->host_kernel, &net);
    host->nic = nic_driver_new(host->net, host->host_kernel, &nic, "pf");
    if (host->nic == NULL)
        lending_refuse(host, "%s: the NIC's driver refuses its parameters", host->name);
    else
        k_pci_register(host->host_kernel, nic_driver_pci(host->nic));
}

/* Every virtual function that is lent is there, and its lender has it. */
static void find_lent_vfs(struct lending_host *host)
{
    struct lending *lending = host->lending;
    for (unsigned i = 0; i < lending->n_devices; i++) {
        struct lent_device *device = &lending->device[i];
        if (device->lender != host || device->function.vf < 0)
            continue;
        const struct k_pci_dev *dev = lending_own_function(host, &device->function);
        if (dev == NULL || dev->driver != lend_lender_driver(host->lend))
            lending_refuse(host, "%s: %s can not be lent", host->name, device->name);
        else
            device->id = dev->id;
    }
}

void lending_enable_vfs(struct lending_host *host)
{
    struct function_name f;
    unsigned i = 0, pf = 0;
    if (has_nic(host))
        load_nic_driver(host);
    while (next_pf(host, &i, &pf, &f)) {
        struct k_pci_dev *dev = lending_own_function(host, &f);
        const int status = dev != NULL ? k_pci_configure_vfs(dev, host->params.sriov_numvfs) : -1;
        if (status != 0)
            lending_refuse(host, "%s: %s enables no %u virtual functions (%d)", host->name,
                           f.model->name, (unsigned)host->params.sriov_numvfs, status);
    }
    if (host->lending->fault[0] == '\0')
        find_lent_vfs(host);
}

/* ---- Down ------------------------------------------------------------------------------------ */

void lending_disable_vfs(struct lending_host *host)
{
    struct net_device *dev;
    while (host->nic != NULL && (dev = nic_driver_device(host->nic, 0)) != NULL)
        k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
    if (host->nic != NULL)
        nic_driver_free(host->nic);
    if (host->net != NULL)
        net_free(host->net);
    host->nic = NULL;
    host->net = NULL;
}
