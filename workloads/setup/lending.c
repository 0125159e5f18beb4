/* Reads the group `lending` of a scenario: which host lends and borrows what. lending_up.c carries
 * it out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/pcie/ntb/ntb.h"
#include "workloads/setup/lending_internal.h"
#include "workloads/setup/lending_vm.h"

const struct param_desc lending_params_table[] = {
    PARAM_TEXT("host", struct lending_params, host_name, "", "the host"),
    PARAM(
        "dma_window_bytes", PARAM_BYTES, struct lending_params, dma_window_bytes, 67108864, 65536,
        17179869184, PROV_NONE, "",
        "of each device it borrows, if it has an IOMMU: what is mapped at a time; a power of two"),
    PARAM("pool_bytes", PARAM_BYTES, struct lending_params, pool_bytes, 1048576, 8192, 2147483648,
          PROV_NONE, "", "its shared memory: mailboxes and segments; a power of two"),
    PARAM("max_peers", PARAM_U32, struct lending_params, max_peers, 64, 1, 4095, PROV_NONE, "",
          "mailboxes, of 2 KiB each in the pool: hosts that it is in touch with"),
    PARAM("dma_bits", PARAM_U32, struct lending_params, dma_bits, 64, 16, 64, PROV_NONE, "",
          "of address that the devices it lends can send"),
    PARAM("timeout_us", PARAM_TIME, struct lending_params, timeout_ps, 20000, 4000, 10000000,
          PROV_NONE, "", "a peer without a heartbeat, one each 2 ms, is lost after so long"),
    PARAM("hold_links", PARAM_BOOL, struct lending_params, hold_links, 0, 0, 1, PROV_NONE, "",
          "a link that goes down ends connections when timeout_us is over, not at once"),
    PARAM("nodes_listed", PARAM_BOOL, struct lending_params, nodes_listed, 0, 0, 1, PROV_NONE, "",
          "a list says at which nodes of the fabric each host is, and it looks for one there only; "
          "false: it looks at all nodes"),
    PARAM("nvme_driver", PARAM_BOOL, struct lending_params, nvme_driver, 1, 0, 1, PROV_NONE, "",
          "its kernel drives NVMe controllers; false: programs do, with drivers of their own"),
    PARAM(
        "sriov_numvfs", PARAM_U32, struct lending_params, sriov_numvfs, 0, 0, 7, PROV_NONE, "",
        "virtual functions that the driver of each physical one enables, of devices it does not lend "
        "as a whole"),
    PARAM("nvme_polled", PARAM_BOOL, struct lending_params, nvme_polled, 0, 0, 1, PROV_NONE, "",
          "its NVMe driver makes queues for polling: no interrupts, the thread that waits looks"),
    PARAM("nvme_timeout_ms", PARAM_TIME, struct lending_params, nvme_timeout_ps, 30000, 1, 100000,
          PROV_NONE, "",
          "its NVMe driver looks after a command without completion for so long, resets the "
          "controller, gives it up (Linux: nvme_core.io_timeout)"),
    { .type = PARAM_END },
};

/* ---- A host ---------------------------------------------------------------------------------- */

static void add_ntb(struct lending_host *host, uint32_t node)
{
    host->has_ntb = true;
    for (unsigned i = 0; i < LEND_ADAPTERS_MAX; i++)
        if (host->ntb_node[i] == 0) {
            host->ntb_node[i] = node;
            return;
        }
}

/* Finds the hosts that have an NTB in their trees. */
static void find_ntbs(struct lending *lending)
{
    const char *const *names = world_device_names(lending->world);
    for (unsigned i = 0; names[i] != NULL; i++) {
        const struct model *model = world_device(lending->world, names[i]);
        if (model->ops != &pcie_ntb_ops)
            continue;
        struct lending_host *host = lending_on(lending, world_host_of(lending->world, model));
        if (host != NULL)
            add_ntb(host, ntb_node(model));
    }
}

/* An NTB's requester table must hold the root complexes of its host, and a device if it lends. */
static void check_requesters(struct lending_host *host, struct model *ntb,
                             struct sim_error_list *errors)
{
    const unsigned n_cpus = numa_sockets(host_numa(host->host));
    const unsigned needed = n_cpus + (host->n_lent != 0 ? 1 : 0);
    char expected[160];
    if (((const struct ntb *)ntb->state)->n_outgoing >= needed)
        return;
    snprintf(expected, sizeof(expected),
             "%u or more: one for each of the %u root complexes of %.40s%s", needed, n_cpus,
             host->name, host->n_lent != 0 ? ", one for a device that it lends" : "");
    config_mistake_at(ntb->config, "outgoing_requesters", errors, expected, NULL);
}

static void check_ntbs(struct lending *lending, struct sim_error_list *errors)
{
    const char *const *names = world_device_names(lending->world);
    for (unsigned i = 0; names[i] != NULL; i++) {
        struct model *model = world_device(lending->world, names[i]);
        struct lending_host *host = model->ops == &pcie_ntb_ops
                                        ? lending_on(lending, world_host_of(lending->world, model))
                                        : NULL;
        if (host != NULL && host->takes_part)
            check_requesters(host, model, errors);
    }
}

static void check_sizes(struct lending_host *host, struct sim_error_list *errors)
{
    const struct lending_params *p = &host->params;
    if ((p->dma_window_bytes & (p->dma_window_bytes - 1)) != 0)
        config_mistake_at(host->group, "dma_window_bytes", errors, "a power of two", NULL);
    if ((p->pool_bytes & (p->pool_bytes - 1)) != 0)
        config_mistake_at(host->group, "pool_bytes", errors, "a power of two", NULL);
    else if ((uint64_t)p->max_peers * LEND_MAILBOX_BYTES > p->pool_bytes)
        config_mistake_at(host->group, "max_peers", errors,
                          "at most as many mailboxes of 2 KiB as there is room for in pool_bytes",
                          NULL);
}

/* The rest of the entry is not looked at. */
static bool give_up(struct config_node *group)
{
    struct config_node *vm = config_find(group, "vm");
    if (vm != NULL)
        config_mark_read(vm);
    return false;
}

const struct setting_desc lending_settings[] = {
    { "lend", "a list of devices", "none", "what other hosts may borrow, [\"ssd\"], or functions" },
    { "borrow", "a list of devices", "none", "of other hosts, [\"ssd\"], or functions of these" },
    { "vm", "a group", "none", "the virtual machine that has what is borrowed" },
    { .key = NULL },
};

/* Reads a host's settings, but not its lists of devices, which refer to other hosts. False: the
 * entry cannot be used. */
static bool read_host(struct lending *lending, struct config *config, struct config_node *group,
                      struct sim_error_list *errors)
{
    struct lending_host *host = &lending->host[lending->n_hosts];
    size_t before = errors->n_messages;
    if (config_kind(group) != CONFIG_GROUP) {
        config_mistake(group, errors, "a group that describes a host", NULL);
        return false;
    }
    config_allow_settings(group, lending_settings);
    *host = (struct lending_host){ .lending = lending,
                                   .name = config_name(group),
                                   .number = lending->n_hosts + 1,
                                   .group = group };
    host->takes_part = config_find(group, "lend") != NULL || config_find(group, "borrow") != NULL;
    config_read_params(config, group, config_path(group), lending_params_table, &host->params,
                       errors);
    if (errors->n_messages != before)
        return give_up(group);
    host->host = world_host(lending->world, host->params.host_name);
    if (host->host == NULL) {
        if (!world_faulty(lending->world, host->params.host_name))
            config_mistake_at(host->group, "host", errors, "a host",
                              world_host_names(lending->world));
        return give_up(group);
    }
    if (lending_on(lending, host->host) != NULL) {
        config_mistake_at(host->group, "host", errors, "a host that no other group has", NULL);
        return give_up(group);
    }
    check_sizes(host, errors);
    lending_vm_read(host, config, errors);
    sim_map_add(lending->host_idx, host->name, lending->n_hosts);
    sim_map_add_address(lending->host_idx, host->host, lending->n_hosts);
    lending->names[lending->n_hosts++] = host->name;
    return true;
}

/* ---- Lists of devices ------------------------------------------------------------------------ */

/* The next name of a list, from index *i on; NULL: no more. Anything else in the list is a mistake
 * and skipped. */
static struct config_node *next_name(struct lending_host *host, const char *key, unsigned *i,
                                     struct sim_error_list *errors)
{
    struct config_node *list = config_find(host->group, key);
    if (list == NULL)
        return NULL;
    if (config_kind(list) != CONFIG_LIST) {
        if (*i == 0)
            config_mistake(list, errors, "a list of devices, [\"gpu0\", \"gpu1\"]", NULL);
        return NULL;
    }
    while (*i < config_count(list)) {
        struct config_node *node = config_child(list, (*i)++);
        if (config_kind(node) == CONFIG_STRING)
            return node;
        config_mistake(node, errors, "the name of a device", NULL);
    }
    return NULL;
}

/* What a name in the list `lend` must be; NULL: it is that. */
static const char *wrong_function(const struct lending *lending, const struct lending_host *host,
                                  const struct function_name *f, char text[256])
{
    const struct model *model = f->model;
    if (model->ops == &pcie_ntb_ops)
        return "a device of the host, not its bridge to others";
    if (model->n_ports == 0 || model->ops->forwards ||
        world_host_of_port(lending->world, model, function_pf(f)) != host->host)
        return "a device that is plugged into the host";
    if (f->vf >= 0 && (unsigned)f->vf >= host->params.sriov_numvfs) {
        snprintf(text, 256,
                 "a virtual function that the host enables: lending.%.60s.sriov_numvfs is %u",
                 host->name, (unsigned)host->params.sriov_numvfs);
        return text;
    }
    for (unsigned i = 0; i < lending->n_devices; i++) {
        const struct function_name *other = &lending->device[i].function;
        if (function_same(other, f))
            return "a device once";
        if (function_shares_pf(other, f) && (other->vf < 0) != (f->vf < 0)) {
            snprintf(
                text, 256,
                "virtual functions or their physical one, as its driver enables them: %.60s is "
                "lent, too",
                lending->device[i].name);
            return text;
        }
    }
    return NULL;
}

static void add_lent(struct lending *lending, struct lending_host *host, const char *name,
                     const struct function_name *f)
{
    lending->device = sim_grow(lending->device, lending->n_devices + 1, sizeof(*lending->device));
    lending->device_names = sim_grow(lending->device_names, lending->n_devices + 2,
                                     sizeof(*lending->device_names));
    lending->device[lending->n_devices] =
        (struct lent_device){ .name = name, .function = *f, .lender = host };
    lending->device_names[lending->n_devices++] = name;
    lending->device_names[lending->n_devices] = NULL;
    host->n_lent++;
    host->n_lent_vfs += f->vf >= 0;
}

/* One message for a name, wherever it stands; with the nearest name, if another may be meant. */
static void refuse_lent(struct lending *lending, const struct config_node *node,
                        const char *expected, bool suggests, struct sim_error_list *errors)
{
    const char *name = config_string(node);
    char text[FUNCTION_TEXT_BYTES];
    lending->refused = sim_grow(lending->refused, lending->n_refused + 1,
                                sizeof(*lending->refused));
    lending->refused[lending->n_refused++] = name;
    if (function_faulty(lending->world, name))
        return;
    const char **names = function_names(lending->world);
    config_mistake(node, errors, function_expected(lending->world, name, expected, text),
                   suggests ? names : NULL);
    function_names_free(names);
}

static void read_lent(struct lending *lending, struct lending_host *host,
                      struct sim_error_list *errors)
{
    struct config_node *node;
    for (unsigned i = 0; (node = next_name(host, "lend", &i, errors)) != NULL;) {
        const char *name = config_string(node);
        struct function_name f;
        char text[256];
        const char *expected = function_find(lending->world, name, &f)
                                   ? wrong_function(lending, host, &f, text)
                                   : "a device that is plugged into the host";
        if (expected == NULL) {
            add_lent(lending, host, name, &f);
            continue;
        }
        refuse_lent(lending, node, expected, expected != text, errors);
    }
}

static bool is_refused(const struct lending *lending, const char *name)
{
    for (unsigned i = 0; i < lending->n_refused; i++)
        if (strcmp(lending->refused[i], name) == 0)
            return true;
    return false;
}

static void read_borrowed(struct lending *lending, struct lending_host *host,
                          struct sim_error_list *errors)
{
    struct config_node *node;
    for (unsigned i = 0; (node = next_name(host, "borrow", &i, errors)) != NULL;) {
        struct lent_device *device = lending_lent(lending, config_string(node));
        char text[FUNCTION_TEXT_BYTES];
        if (is_refused(lending, config_string(node)))
            continue;
        if (device == NULL || device->lender == host)
            config_mistake(node, errors,
                           function_expected(lending->world, config_string(node),
                                             "a device that another host lends, by the name that "
                                             "it has there",
                                             text),
                           lending->device_names);
        else if (device->borrower != NULL) {
            char expected[128];
            snprintf(expected, sizeof(expected), "a device that nobody else borrows: %.60s does",
                     device->borrower->name);
            config_mistake(node, errors, device->borrower == host ? "a device once" : expected,
                           NULL);
        } else {
            device->borrower = host;
            host->n_borrowed++;
        }
    }
}

struct lending *lending_new(struct world *world, struct config *config,
                            struct sim_error_list *errors)
{
    struct config_node *group = config_get(config_root(config), "lending");
    if (group == NULL)
        return NULL;
    struct lending *lending = sim_zalloc(1, sizeof(*lending));
    const size_t before = errors->n_messages;
    lending->world = world;
    lending->host_idx = sim_map_new();
    if (config_kind(group) != CONFIG_GROUP || config_count(group) == 0) {
        config_mistake(
            group, errors,
            "a group `lending`, { NAME = { host = ...; lend = [...]; borrow = [...]; }; }", NULL);
        config_mark_read(group);
    }
    unsigned n = config_count(group);
    lending->host = sim_zalloc(n, sizeof(*lending->host));
    lending->names = sim_zalloc(n + 1, sizeof(*lending->names));
    lending->device_names = sim_zalloc(1, sizeof(*lending->device_names));
    for (unsigned i = 0; i < n && config_kind(group) == CONFIG_GROUP; i++) {
        struct config_node *child = config_get(group, config_name(config_child(group, i)));
        if (!config_refuse_made(group, child, "host", "host", errors))
            read_host(lending, config, child, errors);
    }
    lending->sound = errors->n_messages == before && world_sound(world);
    if (!lending->sound)
        return lending;
    find_ntbs(lending);
    for (unsigned h = 0; h < lending->n_hosts; h++)
        read_lent(lending, &lending->host[h], errors);
    for (unsigned h = 0; h < lending->n_hosts; h++) {
        struct lending_host *host = &lending->host[h];
        read_borrowed(lending, host, errors);
        if (host->takes_part && !host->has_ntb)
            config_mistake(host->group, errors,
                           "a pcie.ntb in the tree of a host that lends or borrows", NULL);
    }
    check_ntbs(lending, errors);
    for (unsigned h = 0; h < lending->n_hosts; h++)
        lending_check_vfs(&lending->host[h], errors);
    lending_check_paths(lending, errors);
    lending->sound = errors->n_messages == before && lending->n_refused == 0;
    return lending;
}

void lending_free(struct lending *lending)
{
    if (lending == NULL)
        return;
    for (unsigned h = 0; h < lending->n_hosts; h++) {
        free(lending->host[h].lent_ids);
        lending_vm_free(&lending->host[h]);
        if (lending->host[h].host_kernel != NULL)
            os_free(lending->host[h].host_kernel);
    }
    sim_map_free(lending->host_idx);
    free(lending->host);
    free(lending->device);
    free(lending->names);
    free(lending->device_names);
    free(lending->refused);
    free(lending->used_names);
    if (lending->all_names != NULL)
        function_names_free(lending->all_names);
    free(lending);
}

/* ---- Inspection ------------------------------------------------------------------------------ */

struct lent_device *lending_lent(const struct lending *lending, const char *name)
{
    struct function_name f;
    if (lending->n_devices == 0 || !function_find(lending->world, name, &f))
        return NULL;
    for (unsigned i = 0; i < lending->n_devices; i++)
        if (function_same(&lending->device[i].function, &f))
            return &lending->device[i];
    return NULL;
}

bool lending_sound(const struct lending *lending)
{
    return lending->sound;
}

struct lending_host *lending_find(struct lending *lending, const char *name)
{
    size_t h;
    return sim_map_find(lending->host_idx, name, &h) ? &lending->host[h] : NULL;
}

const char *const *lending_names(const struct lending *lending)
{
    return lending->names;
}

struct lending_host *lending_on(struct lending *lending, const struct host *host)
{
    size_t h;
    return sim_map_find_address(lending->host_idx, host, &h) ? &lending->host[h] : NULL;
}

unsigned lending_n_hosts(const struct lending *lending)
{
    return lending->n_hosts;
}

struct lending_host *lending_host_at(struct lending *lending, unsigned idx)
{
    return &lending->host[idx];
}

/* Some function that shares its physical one is lent as a whole: the host has none of it. */
static bool pf_is_lent(const struct lending *lending, const struct function_name *f)
{
    for (unsigned i = 0; i < lending->n_devices; i++)
        if (lending->device[i].function.vf < 0 &&
            function_shares_pf(&lending->device[i].function, f))
            return true;
    return false;
}

bool lending_uses(const struct lending_host *host, const char *name)
{
    const struct lending *lending = host->lending;
    const struct lent_device *lent = lending_lent(lending, name);
    struct function_name f;
    if (lent != NULL)
        return lent->borrower == host;
    if (!function_find(lending->world, name, &f) || pf_is_lent(lending, &f))
        return false;
    return f.model->n_ports != 0 && !f.model->ops->forwards && f.model->ops != &pcie_ntb_ops &&
           (f.vf < 0 || (unsigned)f.vf < host->params.sriov_numvfs) &&
           world_host_of_port(lending->world, f.model, function_pf(&f)) == host->host;
}

/* The name by which this function is lent; NULL: it is not. */
static const char *lent_as(const struct lending *lending, const char *name)
{
    struct function_name f;
    for (unsigned i = 0; function_find(lending->world, name, &f) && i < lending->n_devices; i++)
        if (function_same(&lending->device[i].function, &f))
            return lending->device[i].name;
    return NULL;
}

const char *lending_expected(const struct lending *lending, const char *name, const char *expected,
                             char text[FUNCTION_TEXT_BYTES])
{
    const char *as = lent_as(lending, name);
    if (as == NULL || strcmp(as, name) == 0)
        return function_expected(lending->world, name, expected, text);
    snprintf(text, FUNCTION_TEXT_BYTES, "%.280s (it is lent, as \"%.60s\")", expected, as);
    return text;
}

const struct lending_host *lending_lender(const struct lending *lending, const char *name)
{
    const struct lent_device *lent = lending_lent(lending, name);
    return lent != NULL ? lent->lender : NULL;
}

const struct lending_host *lending_borrower(const struct lending *lending, const char *name)
{
    const struct lent_device *lent = lending_lent(lending, name);
    return lent != NULL ? lent->borrower : NULL;
}

unsigned lending_cpus(const struct lending_host *host)
{
    return host->vm != NULL ? lending_vm_cpus(host) : numa_cores(host_numa(host->host));
}

unsigned lending_core(const struct lending_host *host, unsigned cpu)
{
    return host->vm != NULL ? lending_vm_first_core(host) + cpu : cpu;
}

const char *const *lending_used_names(struct lending_host *host)
{
    struct lending *lending = host->lending;
    unsigned used = 0;
    if (lending->all_names == NULL)
        lending->all_names = function_names(lending->world);
    free(lending->used_names);
    lending->used_names = sim_zalloc(1, sizeof(*lending->used_names));
    for (unsigned i = 0; lending->all_names[i] != NULL; i++)
        if (lending_uses(host, lending->all_names[i])) {
            lending->used_names = sim_grow(lending->used_names, used + 2,
                                           sizeof(*lending->used_names));
            lending->used_names[used++] = lending->all_names[i];
            lending->used_names[used] = NULL;
        }
    return lending->used_names;
}

struct k_pci_dev *lending_device(struct lending_host *host, const char *name)
{
    const struct lent_device *lent = lending_lent(host->lending, name);
    struct function_name f;
    if (!lending_uses(host, name))
        return NULL;
    if (host->vm != NULL)
        return lending_vm_device(host, name);
    if (lent != NULL)
        return lent->borrow != NULL ? lend_borrow_device(lent->borrow) : NULL;
    return function_find(host->lending->world, name, &f) ? lending_own_function(host, &f) : NULL;
}
