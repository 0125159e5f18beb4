/*
 * Sets up the interfaces of the group `network`, and takes them down. One thread per host does what
 * an administrator's scripts would: it loads the driver, opens the devices, forms the team or the
 * bond and sets addresses. Neighbours and routes are static.
 *
 * Addresses: 10.0.HOST.INTERFACE, both from 1, in the order of the scenario; a team or a bond has
 * 10.0.HOST.100.
 */
#include "workloads/setup/network_internal.h"

#include <stdlib.h>

#include "logic/myri/mx_native.h"
#include "logic/myri/myri10ge.h"
#include "logic/nic/nic_driver.h"
#include "logic/steering/bonding.h"
#include "logic/steering/octonic.h"
#include "models/myri/myri.h"
#include "models/nic/nic.h"

#define UPPER_NUMBER 100u

static void step_done(struct network *network)
{
    if (--network->n_waiting == 0)
        sim_stop(world_sim(network->world));
}

static uint32_t address(const struct network_host *host, unsigned number)
{
    return 10u << 24 | host->number << 8 | number;
}

/* As an administrator does who writes all CPUs to smp_affinity. */
static bool spread_interrupts(struct network_host *host, struct net_device *dev)
{
    const uint64_t all = (UINT64_C(1) << k_n_cpus(host->kernel)) - 1;
    for (unsigned q = 0; q < dev->n_rx_queues; q++) {
        const int status = dev->irq[q] != NULL ? k_irq_set_any_cpu(dev->irq[q], all) : 0;
        if (status != 0) {
            k_fault(host->kernel, "%s: the interrupt of queue %u cannot go to all CPUs (%d)",
                    dev->name, q, status);
            return false;
        }
    }
    return true;
}

static bool open_device(struct network_host *host, struct net_device *dev, uint32_t ip)
{
    const char *why;
    dev->ip = ip;
    int status = dev->ops->open(dev);
    if (status == 0)
        return host->params.interrupts == INTERRUPTS_FIXED || spread_interrupts(host, dev);
    why = status == -12 ? "no memory" : "the device refused";
    k_fault(host->kernel, "%s does not open: %s (%d)", dev->name, why, status);
    return false;
}

static const struct octonic_device_ops octonic_ops = {
    .function = nic_dev_function,
    .switch_set = nic_dev_switch_set,
    .switch_delete = nic_dev_switch_delete,
    .switch_rule = nic_dev_switch_rule,
};

/* Makes the team or the bond over all functions, which it opens when it is opened itself. */
static struct net_device *make_upper(struct network_host *host, int *error)
{
    if (host->params.interface == NETWORK_OCTO) {
        host->octo = octonic_new(host->net, "octo0", &octonic_params_default, &octonic_ops,
                                 host->function, host->n_functions, error);
        return host->octo != NULL ? octonic_device(host->octo) : NULL;
    }
    host->bond = bonding_new(host->net, "bond0", host->function, host->n_functions, error);
    return host->bond != NULL ? bonding_device(host->bond) : NULL;
}

static uint64_t mac_of(const struct net_device *dev)
{
    uint64_t mac = 0;
    for (unsigned b = 0; b < NET_MAC_BYTES; b++)
        mac = mac << 8 | dev->mac.byte[b];
    return mac;
}

static struct net_device *device_of_myri(const struct network_host *host, const struct model *nic)
{
    struct net_device *dev = NULL;
    for (unsigned i = 0; (dev = myri10ge_device(host->myri, i)) != NULL; i++)
        if (mac_of(dev) == myri_mac(nic))
            return dev;
    return NULL;
}

/* The driver's device for a function; NULL: none appeared. The host may have more NICs, in any
 * order. Functions of octoNIC firmware have one address. */
static struct net_device *device_of_function(const struct network_host *host,
                                             const struct function_name *f)
{
    if (network_is_myri(f->model))
        return device_of_myri(host, f->model);
    const unsigned pf = function_pf(f);
    const uint64_t wanted = f->vf >= 0 ? nic_vf_mac(f->model, pf, (unsigned)f->vf)
                                       : nic_function_mac(f->model, pf);
    struct net_device *dev;
    for (unsigned i = 0; (dev = nic_driver_device(host->driver, i)) != NULL; i++)
        if (mac_of(dev) == wanted && nic_dev_function(dev) == pf)
            return dev;
    return NULL;
}

static void find_board(struct network_host *host)
{
    struct mx_board *board;
    for (unsigned i = 0; (board = mx_native_board(host->native, i)) != NULL; i++)
        if (board->nic_id == myri_mac(host->device))
            host->board = board;
    if (host->board == NULL)
        k_fault(host->kernel, "no adapter with the firmware of Myrinet Express appeared");
}

static void open_all(struct network_host *host)
{
    if (network_is_mx(host)) {
        find_board(host);
        return;
    }
    for (unsigned f = 0; f < host->n_functions; f++) {
        const struct function_name function = network_function_at(host, f);
        struct net_device *dev = device_of_function(host, &function);
        if (dev == NULL) {
            k_fault(host->kernel,
                    "only %u of %u functions of its NICs appeared: has each a cable to this host?",
                    f, host->n_functions);
            return;
        }
        host->function[f] = dev;
        if (host->params.interface < NETWORK_OCTO && !open_device(host, dev, address(host, f + 1)))
            return;
    }
    if (host->params.interface < NETWORK_OCTO) {
        host->dev = host->function[host->params.interface];
    } else {
        int error = 0;
        host->dev = make_upper(host, &error);
        if (host->dev == NULL) {
            k_fault(host->kernel, "no %s (%d)", network_interfaces[host->params.interface], error);
            return;
        }
        if (!open_device(host, host->dev, address(host, UPPER_NUMBER)))
            return;
    }
    host->ip = host->dev->ip;
}

/* The lending software has loaded it already, to enable virtual functions, and unloads it. */
static bool has_loaded_driver(const struct network_host *host)
{
    return host->lending != NULL && host->lending->nic != NULL;
}

static void set_up(void *arg)
{
    struct network_host *host = arg;
    if (!has_loaded_driver(host))
        k_pci_register(host->kernel, nic_driver_pci(host->driver));
    if (host->myri != NULL)
        k_pci_register(host->kernel, myri10ge_pci(host->myri));
    if (host->native != NULL)
        k_pci_register(host->kernel, mx_native_pci(host->native));
    open_all(host);
    step_done(host->network);
}

/* The drivers of the host's Myri-10G adapters, if it has any. */
static void make_myri(struct network_host *host)
{
    const struct network_params *p = &host->params;
    const struct myri10ge_params params = {
        .mtu_bytes = p->mtu_bytes,
        .coalescing_us = p->adaptive_moderation ? 0 : p->rx_us,
        .n_slices = (uint16_t)p->channels,
        .watchdog_ps = p->watchdog_ps != 0 ? p->watchdog_ps : myri10ge_params_default.watchdog_ps
    };
    if (network_is_mx(host))
        host->native = mx_native_new(host->kernel, true);
    else if (network_is_myri(host->device) ||
             (host->second_device != NULL && network_is_myri(host->second_device)))
        host->myri = myri10ge_new(host->net, host->kernel, &params, "myri");
}

static bool make_kernel(struct network_host *host)
{
    struct net_params net = net_params_default;
    struct nic_driver_params nic = nic_driver_params_default;
    host->kernel = host->lending != NULL ? host->lending->kernel
                                         : os_new(host->host, host_os_params(host->host));
    if (has_loaded_driver(host)) {
        host->net = host->lending->net;
        host->driver = host->lending->nic;
    } else {
        network_set_params(host, &net, &nic);
        host->net = net_new(host->kernel, &net);
        host->driver = nic_driver_new(host->net, host->kernel, &nic, "pf");
        make_myri(host);
    }
    if (host->driver == NULL) {
        sim_fail(world_sim(host->network->world), "%s: the driver refuses its parameters",
                 host->name);
        return false;
    }
    k_thread_new(host->kernel, "ifup", 0, set_up, host);
    return true;
}

/* Everybody knows everybody: addresses of all interfaces, the way to each. */
static void introduce(struct network *network)
{
    for (unsigned a = 0; a < network->n_hosts; a++)
        for (unsigned b = 0; b < network->n_hosts; b++) {
            struct network_host *host = &network->host[a], *other = &network->host[b];
            if (a == b || host->dev == NULL || other->dev == NULL)
                continue;
            for (unsigned f = 0; f < other->n_functions; f++) {
                net_neighbour_add(host->net, other->function[f]->ip, other->function[f]->mac);
                net_route_add(host->net, other->function[f]->ip, host->dev);
            }
            net_neighbour_add(host->net, other->ip, other->dev->mac);
            net_route_add(host->net, other->ip, host->dev);
        }
}

bool network_up(struct network *network, const volatile int *interrupt)
{
    for (unsigned h = 0; h < network->n_hosts; h++)
        if (!make_kernel(&network->host[h]))
            return false;
    network->n_waiting = network->n_hosts;
    if (!lending_wait(world_sim(network->world), &network->n_waiting,
                      "setting up the network stalled", interrupt))
        return false;
    introduce(network);
    return true;
}

/* ---- Taking down ----------------------------------------------------------------------------- */

/* The lending software removes them with the driver, when all that is lent is back; a borrowed one
 * goes back as others do. */
static void stop_functions(struct network_host *host)
{
    for (unsigned f = 0; f < host->n_functions; f++)
        host->function[f]->ops->stop(host->function[f]);
}

static void remove_myri(struct network_host *host)
{
    struct net_device *dev;
    while (host->myri != NULL && (dev = myri10ge_device(host->myri, 0)) != NULL)
        k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
    if (host->myri != NULL)
        myri10ge_free(host->myri);
    struct mx_board *board;
    while (host->native != NULL && (board = mx_native_board(host->native, 0)) != NULL)
        k_pci_remove(mx_native_device(board), false);
    if (host->native != NULL)
        mx_native_free(host->native);
}

static void take_down(void *arg)
{
    struct network_host *host = arg;
    if (host->octo != NULL)
        octonic_free(host->octo);
    if (host->bond != NULL)
        bonding_free(host->bond);
    struct net_device *dev;
    if (has_loaded_driver(host)) {
        stop_functions(host);
        step_done(host->network);
        return;
    }
    while ((dev = nic_driver_device(host->driver, 0)) != NULL) { /* those not in use, too */
        struct k_pci_dev *pci = K_CONTAINER(dev->device, struct k_pci_dev, device);
        if (host->lending != NULL)
            lending_remove(host->lending, pci);
        else
            k_pci_remove(pci, false);
    }
    nic_driver_free(host->driver);
    remove_myri(host);
    net_free(host->net);
    step_done(host->network);
}

void network_down(struct network *network, const volatile int *interrupt)
{
    network->n_waiting = network->n_hosts;
    for (unsigned h = 0; h < network->n_hosts; h++)
        k_thread_new(network->host[h].kernel, "ifdown", 0, take_down, &network->host[h]);
    lending_wait(world_sim(network->world), &network->n_waiting, "taking the network down stalled",
                 interrupt);
}

void network_free(struct network *network)
{
    for (unsigned h = 0; h < network->n_hosts; h++)
        if (network->host[h].kernel != NULL && network->host[h].lending == NULL)
            os_free(network->host[h].kernel);
    free(network);
}
