/* Reads and checks the group `network`. */
#include "workloads/setup/network_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/myri_regs.h"
#include "models/myri/myri.h"
#include "models/nic/nic.h"

#define INTERRUPT_CPUS_MAX 8u /* of the flat logical mode */
#define QUEUES_PER_CHANNEL 2u /* completion queues: of its send queue, of its receive queue */

const char *const network_interfaces[] = { "pf0", "pf1", "pf2", "pf3", "octo0", "bond0", NULL };
static const char *const interrupt_names[] = { "fixed", "round_robin", NULL };
static const char *const ring_names[] = { "core", "device", NULL };
enum { RING_CORE, RING_DEVICE };

const struct param_desc network_params_table[] = {
    PARAM_TEXT("host", struct network_params, host_name, "", "the host"),
    PARAM_TEXT("device", struct network_params, device_name, "",
               "its NIC, a nic.ethernet, or a function of one: nic.vf0; or a myri.myri10g"),
    PARAM_TEXT("second_device", struct network_params, second_device_name, "",
               "another NIC (bond0); empty: none"),
    PARAM_ONE_OF(
        "interface", struct network_params, interface, NETWORK_PF0, network_interfaces, PROV_NONE,
        "", "what programs use: a function's own interface, the octoNIC's, a bond of both NICs"),
    PARAM("mtu_bytes", PARAM_U32, struct network_params, mtu_bytes, 1500, 576, 9216, PROV_DATASHEET,
          "docs/sources.md#a5", "of its interfaces; at most that of their NICs"),
    PARAM("channels", PARAM_U32, struct network_params, channels, 0, 0, NET_QUEUES_MAX, PROV_NONE,
          "", "queues of a function; 0: one per core (functions of octo0 or bond0: 64 in all)"),
    PARAM("adaptive_moderation", PARAM_BOOL, struct network_params, adaptive_moderation, 1, 0, 1,
          PROV_NONE, "",
          "receive interrupts are moderated by what comes in (a myri.myri10g: not at all)"),
    PARAM("rx_moderation_us", PARAM_U32, struct network_params, rx_us, 3, 0, 1000, PROV_DATASHEET,
          "docs/sources.md#a5", "without adaptive moderation: the time of it"),
    PARAM("rx_moderation_packets", PARAM_U32, struct network_params, rx_count, 32, 1, 65535,
          PROV_DATASHEET, "docs/sources.md#a5", "without adaptive moderation: the count of it"),
    PARAM("tx_moderation_us", PARAM_U32, struct network_params, tx_us, 16, 0, 1000, PROV_DATASHEET,
          "docs/sources.md#a5", "interrupts for packets sent come after so long at most"),
    PARAM("tx_moderation_packets", PARAM_U32, struct network_params, tx_count, 32, 1, 65535,
          PROV_DATASHEET, "docs/sources.md#a5", "... or after so many packets"),
    PARAM(
        "watchdog_ms", PARAM_TIME, struct network_params, watchdog_ps, 0, 0, 100000, PROV_NONE, "",
        "after so long without progress its driver takes what it sends for stuck; 0: 15 s (Linux: "
        "mlx5e), of a myri.myri10g 1 s (myri10ge_watchdog_timeout)"),
    PARAM("arfs", PARAM_BOOL, struct network_params, arfs, 1, 0, 1, PROV_NONE, "",
          "flows are received where they are consumed"),
    PARAM("xps", PARAM_BOOL, struct network_params, xps, 1, 0, 1, PROV_NONE, "",
          "packets are sent through the queue of the sending core"),
    PARAM("gro", PARAM_BOOL, struct network_params, gro, 1, 0, 1, PROV_NONE, "",
          "received packets of a flow are merged"),
    PARAM("tso", PARAM_BOOL, struct network_params, tso, 1, 0, 1, PROV_NONE, "",
          "the NIC cuts large buffers into segments"),
    PARAM("lro", PARAM_BOOL, struct network_params, lro, 0, 0, 1, PROV_NONE, "",
          "the NIC merges received segments"),
    PARAM("octo_sg", PARAM_BOOL, struct network_params, octo_sg, 0, 0, 1, PROV_NONE, "",
          "fragments on another node are fetched through that node's function (IOctoSG)"),
    PARAM("send_buffer", PARAM_BYTES, struct network_params, send_buffer_bytes, 4194304, 4096,
          1073741824, PROV_DATASHEET, "docs/sources.md#a6", "of a socket at most (tcp_wmem)"),
    PARAM("receive_buffer", PARAM_BYTES, struct network_params, receive_buffer_bytes, 6291456, 4096,
          1073741824, PROV_DATASHEET, "docs/sources.md#a6", "of a socket at most (tcp_rmem)"),
    PARAM_ONE_OF("completion_ring", struct network_params, completion_ring, RING_CORE, ring_names,
                 PROV_NONE, "", "whose memory holds completion queues: the core's, the NIC's node"),
    PARAM_ONE_OF(
        "interrupts", struct network_params, interrupts, INTERRUPTS_FIXED, interrupt_names,
        PROV_NONE, "",
        "of receive queues: each to one CPU, or to all in turns, as the hub chooses (up to "
        "eight CPUs)"),
    { .type = PARAM_END },
};

/* ---- Reading --------------------------------------------------------------------------------- */

/* True: at least one of the functions is in the host's tree. */
static bool is_plugged_in(struct network *network, const struct network_host *host,
                          const struct function_name *named)
{
    for (unsigned f = 0; f < named->model->n_ports; f++)
        if ((named->pf < 0 || function_pf(named) == f) &&
            world_host_of_port(network->world, named->model, f) == host->host)
            return true;
    return false;
}

bool network_is_one_function(const struct function_name *named)
{
    return named->pf >= 0 || named->vf >= 0;
}

unsigned network_functions(const struct function_name *named)
{
    return network_is_one_function(named) ? 1 : named->model->n_ports;
}

/* Every function must have a cable to the host; otherwise its device would not appear. */
static void check_functions(struct network *network, struct network_host *host, const char *key,
                            const char *name, const struct function_name *named,
                            struct sim_error_list *errors)
{
    const struct model *nic = named->model;
    const bool alone = host->lending != NULL && (host->lending->vm != NULL ||
                                                 lending_lender(network->lending, name) != NULL);
    char missing[16 * NIC_FUNCTIONS_MAX] = "", expected[384];
    unsigned n = 0;
    if (network_is_one_function(named))
        return;
    if (alone && nic->n_ports > 1)
        config_mistake_at(host->group, key, errors,
                          "a NIC of one function, as others are not borrowed or passed through",
                          NULL);
    for (unsigned f = 0; !alone && f < nic->n_ports; f++)
        if (world_host_of_port(network->world, nic, f) != host->host) {
            const size_t at = strlen(missing);
            snprintf(missing + at, sizeof(missing) - at, "%sp%u", at != 0 ? ", " : "", f);
            n++;
        }
    if (n == 0)
        return;
    snprintf(expected, sizeof(expected),
             "a NIC with a cable to the host \"%.60s\" at each function's port: %s %s none "
             "(devices.%.60s.functions says how many there are)",
             host->params.host_name, missing, n > 1 ? "have" : "has", name);
    config_mistake_at(host->group, key, errors, expected, NULL);
}

bool network_is_myri(const struct model *nic)
{
    return nic->ops == &myri_ops;
}

static bool is_mx(const struct model *nic)
{
    return network_is_myri(nic) && myri_firmware(nic) == MYRI_FIRMWARE_MX;
}

static void check_mtu(struct network_host *host, const char *name, const struct model *nic,
                      struct sim_error_list *errors)
{
    const uint32_t mtu_bytes = network_is_myri(nic) ? myri_mtu_bytes(nic) : nic_mtu_bytes(nic);
    char expected[160];
    if (host->params.mtu_bytes <= mtu_bytes)
        return;
    snprintf(expected, sizeof(expected), "at most devices.%.60s.mtu_bytes, %u", name, mtu_bytes);
    config_mistake_at(host->group, "mtu_bytes", errors, expected, NULL);
}

/* Settings that a Myri-10G does not support. */
static void check_myri(struct network_host *host, struct sim_error_list *errors)
{
    if (host->params.channels > MYRI_SLICES_MAX)
        config_mistake_at(host->group, "channels", errors,
                          "at most 8, the receive queues of a myri.myri10g", NULL);
    if (host->params.lro)
        config_mistake_at(host->group, "lro", errors, "false: a myri.myri10g merges nothing", NULL);
}

/* Checks that the NIC has what the driver and the settings need. */
static void check_nic(struct network_host *host, const char *name, const struct model *nic,
                      struct sim_error_list *errors)
{
    char expected[160];
    check_mtu(host, name, nic, errors);
    if (network_is_myri(nic)) {
        check_myri(host, errors);
        return;
    }
    const unsigned channels = nic_queues(nic) / QUEUES_PER_CHANNEL;
    if (channels == 0) {
        config_mistake_at(nic->config, "queues", errors,
                          "at least 2: the driver needs two for each of its channels", NULL);
    } else if (host->params.channels > channels) {
        snprintf(expected, sizeof(expected),
                 "at most %u: a channel needs two of devices.%.60s.queues, %u", channels, name,
                 nic_queues(nic));
        config_mistake_at(host->group, "channels", errors, expected, NULL);
    }
}

static void report_nic(struct network *network, struct network_host *host, const char *key,
                       const char *name, struct sim_error_list *errors)
{
    const char **names = function_names(network->world);
    char text[FUNCTION_TEXT_BYTES];
    const char *expected =
        "a nic.ethernet that is plugged into the host; its virtual functions are for "
        "hosts of the group `lending`, which has sriov_numvfs";
    if (host->lending != NULL)
        expected = "a nic.ethernet that the host borrows, or has and does not lend; of virtual "
                   "functions as many as its sriov_numvfs says";
    else if (strchr(name, '.') == NULL)
        expected = "a nic.ethernet, or a myri.myri10g, that is plugged into the host";
    config_mistake_at(host->group, key, errors,
                      host->lending != NULL
                          ? lending_expected(host->lending->lending, name, expected, text)
                          : function_expected(network->world, name, expected, text),
                      host->lending != NULL ? lending_used_names(host->lending) : names);
    function_names_free(names);
}

/* Whoever sends to it, or waits for what it sends, would wait until the run ends. */
static void check_wire(const struct network *network, struct network_host *host, const char *key,
                       const struct model *nic, struct sim_error_list *errors)
{
    char expected[160];
    uint32_t n;
    const struct ether_port *port = model_ports(nic, &ether_cable, &n);
    if (!world_sound(network->world) || n == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (ether_port_connected(&port[i]))
            return;
    snprintf(expected, sizeof(expected), "a NIC with a wire: no cable begins or ends at %.60s.e0",
             nic->name);
    config_mistake_at(host->group, key, errors, expected, NULL);
}

static bool find_nic(struct network *network, struct network_host *host, const char *key,
                     const char *name, struct function_name *named, struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    if (function_faulty(network->world, name))
        return false;
    bool good =
        function_find(network->world, name, named) &&
        (named->model->ops == &nic_ops ||
         (network_is_myri(named->model) &&
          (host->lending == NULL || (host->lending->vm == NULL && !host->lending->takes_part))));
    if (good && host->lending != NULL)
        good = lending_uses(host->lending, name);
    else if (good && world_sound(network->world))
        good = named->vf < 0 && is_plugged_in(network, host, named);
    if (!good) {
        report_nic(network, host, key, name, errors);
        return false;
    }
    if (!is_mx(named->model))
        host->n_functions += network_functions(named);
    if (world_sound(network->world))
        check_functions(network, host, key, name, named, errors);
    check_nic(host, named->model->name, named->model, errors);
    if (errors->n_messages == before)
        check_wire(network, host, key, named->model, errors);
    return true;
}

static bool is_upper(int interface)
{
    return interface == NETWORK_OCTO || interface == NETWORK_BOND;
}

/* How many queues each function may have; a team or a bond has the queues of all its functions. */
static unsigned channels_max(const struct network_host *host)
{
    return is_upper(host->params.interface) ? NET_QUEUES_MAX / host->n_functions : NET_QUEUES_MAX;
}

void network_set_params(const void *context, struct net_params *net, struct nic_driver_params *nic)
{
    const struct network_host *host = context;
    const struct network_params *p = &host->params;
    const unsigned n_cpus = host->lending != NULL ? lending_cpus(host->lending)
                                                  : numa_cores(host_numa(host->host));
    net->gro = p->gro;
    net->tso = p->tso;
    net->xps = p->xps;
    net->arfs = p->arfs;
    net->send_buffer_bytes = (uint32_t)p->send_buffer_bytes;
    net->receive_buffer_bytes = (uint32_t)p->receive_buffer_bytes;
    nic->mtu_bytes = p->mtu_bytes;
    nic->completion_node = p->completion_ring == RING_DEVICE ? NIC_NODE_DEVICE : K_NODE_LOCAL;
    nic->adaptive_rx = p->adaptive_moderation;
    nic->rx_us = (uint16_t)p->rx_us;
    nic->rx_count = (uint16_t)p->rx_count;
    nic->tx_us = (uint16_t)p->tx_us;
    nic->tx_count = (uint16_t)p->tx_count;
    if (p->watchdog_ps != 0)
        nic->watchdog_ps = p->watchdog_ps;
    nic->lro = p->lro;
    nic->octo_sg = p->octo_sg;
    nic->n_channels = (uint16_t)p->channels;
    if (nic->n_channels == 0 && n_cpus > channels_max(host))
        nic->n_channels = (uint16_t)channels_max(host);
}

static void read_host(struct network *network, struct config *config, struct config_node *group,
                      struct sim_error_list *errors)
{
    struct network_host *host = &network->host[network->n_hosts];
    *host = (struct network_host){ .name = config_name(group),
                                   .group = group,
                                   .network = network,
                                   .number = network->n_hosts + 1 };
    network->names[network->n_hosts++] = host->name;
    if (config_kind(group) != CONFIG_GROUP) {
        config_mistake(group, errors, "a group that describes a host's network", NULL);
        return;
    }
    config_read_params(config, group, config_path(group), network_params_table, &host->params,
                       errors);
    if (network->lending != NULL && !lending_sound(network->lending))
        return;
    host->host = world_host(network->world, host->params.host_name);
    if (host->host == NULL) {
        if (!world_faulty(network->world, host->params.host_name))
            config_mistake_at(group, "host", errors, "a host", world_host_names(network->world));
        return;
    }
    if (network->lending != NULL)
        host->lending = lending_on(network->lending, host->host);
    if (find_nic(network, host, "device", host->params.device_name, &host->named, errors))
        host->device = host->named.model;
    if (host->params.second_device_name[0] != '\0' &&
        find_nic(network, host, "second_device", host->params.second_device_name,
                 &host->second_named, errors))
        host->second_device = host->second_named.model;
    if (host->device != NULL && host->second_device == host->device)
        config_mistake_at(group, "second_device", errors, "another NIC than `device`", NULL);
    if (host->lending != NULL) {
        host->lending->network_params = network_set_params;
        host->lending->network_context = host;
    }
}

static bool is_octonic(const struct model *nic)
{
    struct config_node *node = config_find(nic->config, "firmware");
    return node != NULL && strcmp(config_text(node), "octonic") == 0;
}

/* True: the host's NICs are valid, so its interfaces are known. */
static bool has_nics(const struct network_host *host)
{
    return host->device != NULL && host->second_device != host->device &&
           (host->params.second_device_name[0] == '\0' || host->second_device != NULL);
}

/* Reports settings that have no effect. */
static void check_effects(struct network_host *host, struct sim_error_list *errors)
{
    static const char *const moderation[] = { "rx_moderation_us", "rx_moderation_packets" };
    char decider[128];
    snprintf(decider, sizeof(decider), "%.80s.adaptive_moderation", config_path(host->group));
    for (unsigned i = 0; host->params.adaptive_moderation && i < SIM_N_ELEMENTS(moderation); i++)
        config_no_effect(host->group, moderation[i], decider, errors,
                         "adaptive_moderation = false beside it: it has no effect otherwise");
    if (host->params.interrupts != INTERRUPTS_FIXED && host->host != NULL &&
        numa_cores(host_numa(host->host)) > INTERRUPT_CPUS_MAX)
        config_mistake_at(host->group, "interrupts", errors,
                          "\"fixed\", or a host of at most 8 CPUs", NULL);
    snprintf(decider, sizeof(decider), "%.80s.interface", config_path(host->group));
    if (host->params.octo_sg && host->params.interface != NETWORK_OCTO)
        config_no_effect(host->group, "octo_sg", decider, errors,
                         "interface = \"octo0\" beside it: it has no effect otherwise");
}

/* Reports settings that octo0 and bond0 do not support. */
static void check_upper(struct network_host *host, struct sim_error_list *errors)
{
    char expected[64];

    if (!host->params.xps)
        config_mistake_at(
            host->group, "xps", errors,
            "true: octo0 and bond0 send through the sending core's queue by themselves", NULL);
    if (host->n_functions > 0 && host->params.channels > channels_max(host)) {
        snprintf(expected, sizeof(expected), "at most %u, as %u functions share %u queues",
                 channels_max(host), host->n_functions, NET_QUEUES_MAX);
        config_mistake_at(host->group, "channels", errors, expected, NULL);
    }
}

bool network_is_mx(const struct network_host *host)
{
    return host->device != NULL && is_mx(host->device);
}

bool network_has_rules(const struct network_host *host)
{
    return host->device != NULL && !network_is_myri(host->device) &&
           (host->second_device == NULL || !network_is_myri(host->second_device)) &&
           host->params.interface != NETWORK_BOND;
}

/* Checks that the interface of the setting `interface` exists. */
static void check_interface(struct network_host *host, struct sim_error_list *errors)
{
    unsigned n = 0;
    if (network_is_mx(host)) {
        if (host->second_device != NULL)
            config_mistake_at(host->group, "second_device", errors,
                              "no other, as `device` has the firmware of Myrinet Express", NULL);
        return;
    }
    if (host->second_device != NULL && is_mx(host->second_device))
        config_mistake_at(host->group, "second_device", errors,
                          "a NIC without the firmware of Myrinet Express", NULL);
    for (unsigned f = 0; f < host->n_functions && f < 4; f++)
        host->interface_names[n++] = network_interfaces[f];
    if (is_upper(host->params.interface)) {
        host->interface_names[n++] = network_interfaces[host->params.interface];
        check_upper(host, errors);
    }
    if (host->params.interface < NETWORK_OCTO &&
        (unsigned)host->params.interface >= host->n_functions)
        config_mistake_at(host->group, "interface", errors, "a function that the NIC has",
                          host->interface_names);
    if (host->params.interface == NETWORK_BOND &&
        (host->second_device == NULL || host->n_functions != 2))
        config_mistake_at(host->group, "interface", errors,
                          "`device` and `second_device` of one function each for bond0", NULL);
    if (host->params.interface == NETWORK_OCTO &&
        (!is_octonic(host->device) || network_is_one_function(&host->named)))
        config_mistake_at(host->group, "interface", errors,
                          "a NIC with firmware = \"octonic\" for octo0", NULL);
}

struct network *network_new(struct world *world, struct config *config, struct lending *lending,
                            struct sim_error_list *errors)
{
    struct network *network = sim_zalloc(1, sizeof(*network));
    struct config_node *group = config_get(config_root(config), "network");
    network->world = world;
    network->lending = lending;
    if (group == NULL && lending != NULL)
        return network;
    network->unknown = true;
    if (group == NULL) {
        sim_error_add(errors, config_file(config_root(config)), 0,
                      "there is no group `network`, { NAME = { host = ...; device = ...; }; }, and "
                      "no group `lending`, { NAME = { host = ...; }; }: programs run on hosts "
                      "of one of them");
        return network;
    }
    if (config_kind(group) != CONFIG_GROUP || config_count(group) == 0) {
        config_mistake(group, errors,
                       "a group `network`, { NAME = { host = ...; device = ...; }; }", NULL);
        return network;
    }
    for (unsigned i = 0; i < config_count(group); i++) {
        struct config_node *child = config_get(group, config_name(config_child(group, i)));
        if (network->n_hosts == NETWORK_HOSTS_MAX) {
            config_mistake(child, errors, "at most 8 hosts", NULL);
            config_mark_read(group);
            return network;
        }
        if (config_refuse_made(group, child, "host", "host", errors))
            continue;
        read_host(network, config, child, errors);
        if (config_kind(child) == CONFIG_GROUP)
            check_effects(&network->host[network->n_hosts - 1], errors);
        if (has_nics(&network->host[network->n_hosts - 1]))
            check_interface(&network->host[network->n_hosts - 1], errors);
    }
    network->unknown = false;
    return network;
}

struct function_name network_function_at(const struct network_host *host, unsigned f)
{
    const struct function_name *named = &host->named;
    if (f >= network_functions(named)) {
        f -= network_functions(named);
        named = &host->second_named;
    }
    struct function_name function = *named;
    if (!network_is_one_function(named))
        function.pf = (int)f;
    return function;
}

struct network_host *network_find(struct network *network, const char *name)
{
    for (unsigned h = 0; h < network->n_hosts; h++)
        if (strcmp(network->host[h].name, name) == 0)
            return &network->host[h];
    return NULL;
}

const char *const *network_names(const struct network *network)
{
    return network->names;
}

const char **network_and_lending_names(const struct network *network)
{
    const struct lending *lending = network->lending;
    const unsigned n_lending = lending != NULL ? lending_n_hosts(lending) : 0;
    const char **names = sim_zalloc(NETWORK_HOSTS_MAX + n_lending + 1, sizeof(*names));
    unsigned n = 0;
    for (unsigned h = 0; network->names[h] != NULL; h++)
        names[n++] = network->names[h];
    for (unsigned h = 0; h < n_lending; h++) {
        const char *name = lending_names(lending)[h];
        bool known = false;
        for (unsigned i = 0; i < network->n_hosts; i++)
            known = known || strcmp(network->host[i].name, name) == 0;
        if (!known)
            names[n++] = name;
    }
    return names;
}

bool network_interface_named(const struct network_host *host, const char *name)
{
    if (name[0] == '\0' || !has_nics(host))
        return true;
    for (unsigned i = 0; host->interface_names[i] != NULL; i++)
        if (strcmp(host->interface_names[i], name) == 0)
            return true;
    return false;
}

const char *const *network_interface_names(const struct network_host *host)
{
    return host->interface_names;
}
