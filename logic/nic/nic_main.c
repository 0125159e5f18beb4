/*
 * Functions of the NIC: probe, open, stop, remove.
 *
 * What it does: A PCI driver that makes a network device of each function. After a surprise removal
 *   the driver takes back what it had handed to the device (packets, pages, mappings); a device
 *   that is part of a team or bond stays registered without carrier, and continues when its
 *   function appears again.
 * Leaves out: firmware pages, health polling, resets.
 * Follows: docs/sources.md#nic.
 */
#include "logic/nic/nic_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DRAIN_PS (2 * K_US)

const struct nic_driver_params nic_driver_params_default = {
    .sq_blocks = 1024,
    .rq_wqes = 1024,
    .completion_node = K_NODE_LOCAL,
    .adaptive_rx = true,
    .rx_mode = NIC_MODERATION_CQE,
    .rx_us = 3,
    .rx_count = 32,
    .tx_us = 16,
    .tx_count = 32,
    .mtu_bytes = 1500,
    .watchdog_ps = 15 * K_S,
    .n_filters = 8192,
    .filter_scan_ps = K_S,
};

/* ---- Parts that others use ------------------------------------------------------------------- */

void nic_drv_work_init(struct nic_work *work, struct nic_drv *nic, k_work_fn *fn)
{
    work->nic = nic;
    work->work = (struct k_work){ .fn = fn };
}

void nic_drv_work_queue(struct nic_work *work, int cpu)
{
    if (work->nic->closing || work->work.queued)
        return;
    work->nic->n_works++;
    k_work_queue(work->nic->kernel, &work->work, cpu);
}

void nic_drv_work_done(struct nic_drv *nic)
{
    nic->n_works--;
}

int nic_drv_memory_alloc(struct nic_drv *nic, struct nic_memory *memory, int node, size_t bytes)
{
    int error = k_dma_alloc(&nic->pci->device, node, bytes, &memory->at, &memory->dma);
    memory->bytes = error == 0 ? bytes : 0;
    return error;
}

void nic_drv_memory_free(struct nic_drv *nic, struct nic_memory *memory)
{
    if (memory->bytes != 0)
        k_dma_free(&nic->pci->device, memory->bytes, memory->at, memory->dma);
    memory->bytes = 0;
}

struct k_page *nic_drv_lines_alloc(struct nic_drv *nic, int node, size_t bytes)
{
    unsigned order = 0;
    while ((size_t)K_PAGE_BYTES << order < bytes)
        order++;
    return k_page_alloc(nic->kernel, node, order);
}

void nic_drv_lines_free(struct nic_drv *nic, struct k_page *lines)
{
    if (lines != NULL)
        k_page_put(nic->kernel, lines);
}

/* ---- Open and stop --------------------------------------------------------------------------- */

static bool mac_equal(const struct net_mac *a, const struct net_mac *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Standard firmware: packets to this function's address come to it. */
static int set_mac_rule(struct nic_drv *nic, uint16_t opcode)
{
    struct nic_command command = { .opcode = opcode, .target = nic->function };
    if (nic->firmware != NIC_FIRMWARE_STANDARD ||
        (nic->n_functions == 1 && mac_equal(&nic->dev.mac, &nic->own_mac)))
        return 0;
    memcpy(command.mac, nic->dev.mac.byte, NET_MAC_BYTES);
    return nic_drv_command(nic, &command);
}

/* Functions of one card share a switch that knows one function for an address. */
static int nic_set_mac(struct net_device *dev, const struct net_mac *mac)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (dev->running)
        return -EBUSY;
    if (nic->n_functions > 1)
        return -EOPNOTSUPP;
    dev->mac = *mac;
    return 0;
}

static void link_work(struct k_work *work)
{
    struct nic_drv *nic = K_CONTAINER(work, struct nic_drv, link_work.work);
    if (!nic->closing)
        net_device_carrier(&nic->dev, k_readl(nic->pci, 0, NIC_REG_LINK) == 1);
    nic_drv_work_done(nic);
}

static int open_all(struct net_device *dev)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (dev->running)
        return 0;
    if (nic->gone)
        return -ENODEV;
    int error = nic_drv_channels_open(nic);
    if (error != 0)
        return error;
    error = set_mac_rule(nic, NIC_SET_SWITCH);
    if (error == 0)
        error = nic_drv_rules_restore(nic);
    if (error != 0) {
        nic->closing = true;
        nic_drv_channels_close(nic);
        return error;
    }
    nic_drv_flows_start(nic->flows);
    memset(dev->queue_stopped, 0, sizeof dev->queue_stopped);
    dev->running = true;
    net_device_carrier(dev, k_readl(nic->pci, 0, NIC_REG_LINK) == 1);
    nic_drv_watchdog_start(nic);
    return 0;
}

static void stop_all(struct net_device *dev)
{
    struct nic_drv *nic = nic_drv_of(dev);
    if (!dev->running)
        return;
    dev->running = false;
    nic->closing = true;
    net_device_carrier(dev, false);
    nic_drv_watchdog_stop(nic);
    while (nic->n_works > 0)
        k_sleep(nic->kernel, DRAIN_PS);
    nic_drv_flows_stop(nic->flows);
    set_mac_rule(nic, NIC_DELETE_SWITCH);
    nic_drv_channels_close(nic);
    /* What waits for room in a queue that is no more is not to wait for ever. */
    for (uint16_t i = 0; i < nic->n_channels; i++) {
        if (dev->queue_stopped[i])
            net_queue_wake(dev, i);
    }
}

/* Linux: mlx5e_safe_reopen_channels(), where making the one queue anew is not enough. */
static void recover_body(void *arg)
{
    struct nic_drv *nic = arg;
    nic->recovers_again = true;
    while (nic->recovers_again && nic->dev.running && !nic->gone) {
        nic->recovers_again = false;
        stop_all(&nic->dev);
        const int error = nic->gone ? -ENODEV : open_all(&nic->dev);
        if (error != 0)
            k_warn(nic->kernel, "%s: channels could not be made anew: %d", nic->name, error);
    }
    nic->recovering = false;
}

void nic_drv_recover(struct nic_drv *nic, uint64_t *counter)
{
    if (nic->closing)
        return;
    if (nic->recovering) { /* one that has just been made */
        nic->recovers_again = true;
        return;
    }
    nic->recovering = true;
    *counter += 1;
    k_thread_new(nic->kernel, "nic_recover", K_CPU_ANY, recover_body, nic);
}

static void wait_for_recovery(const struct nic_drv *nic)
{
    while (nic->recovering)
        k_sleep(nic->kernel, DRAIN_PS);
}

static int nic_open(struct net_device *dev)
{
    wait_for_recovery(nic_drv_of(dev));
    return open_all(dev);
}

static void nic_stop(struct net_device *dev)
{
    wait_for_recovery(nic_drv_of(dev));
    stop_all(dev);
    wait_for_recovery(nic_drv_of(dev)); /* one that began meanwhile finds it closed */
}

static const struct net_device_ops nic_ops = {
    .open = nic_open,
    .stop = nic_stop,
    .set_mac = nic_set_mac,
    .start_xmit = nic_drv_start_xmit,
    .rx_flow_steer = nic_drv_rx_flow_steer,
    .rx_passed = nic_drv_rx_passed,
    .rx_rule = nic_drv_rx_rule,
};

/* ---- Functions come -------------------------------------------------------------------------- */

static struct nic_card *card_of(struct nic_driver *driver, const struct nic_drv *nic)
{
    /* Functions of octoNIC firmware have one address, those of standard firmware one each, which
     * the driver does not need to see as one card. */
    for (struct nic_card *card = driver->cards; card != NULL; card = card->next) {
        if (mac_equal(&card->mac, &nic->own_mac))
            return card;
    }
    struct nic_card *card = k_zalloc(sizeof *card);
    card->mac = nic->own_mac;
    card->next = driver->cards;
    driver->cards = card;
    return card;
}

/* A device whose function went away and is back; NULL: none. */
static struct nic_drv *find_gone(struct nic_driver *driver, const struct net_mac *mac,
                                 unsigned function)
{
    for (struct nic_drv *nic = driver->first; nic != NULL; nic = nic->next) {
        if (nic->pci == NULL && nic->function == function && mac_equal(&nic->own_mac, mac))
            return nic;
    }
    return NULL;
}

static struct net_mac read_mac(struct k_pci_dev *pci)
{
    uint32_t low = k_readl(pci, 0, NIC_REG_MAC_LOW), high = k_readl(pci, 0, NIC_REG_MAC_HIGH);
    struct net_mac mac;
    for (unsigned i = 0; i < 4; i++)
        mac.byte[i] = (uint8_t)(low >> 8 * i);
    for (unsigned i = 4; i < NET_MAC_BYTES; i++)
        mac.byte[i] = (uint8_t)(high >> 8 * (i - 4));
    return mac;
}

/* The function is a virtual one whose physical one this driver drives, too. */
static bool is_own_vf(const struct nic_driver *driver, const struct k_pci_dev *pci)
{
    return pci->pf != NULL && pci->pf->driver == &driver->pci;
}

static const struct nic_drv *nic_of_pf(const struct k_pci_dev *vf)
{
    return vf->pf->device.driver_data;
}

static struct nic_drv *nic_new(struct nic_driver *driver, struct k_pci_dev *pci)
{
    struct nic_drv *nic = k_zalloc(sizeof *nic);
    struct net_device *dev = &nic->dev;
    nic->driver = driver;
    nic->params = &driver->params;
    nic->kernel = driver->kernel;
    nic->net = driver->net;
    nic->costs = k_costs(driver->kernel);
    if (is_own_vf(driver, pci))
        snprintf(nic->name, sizeof nic->name, "%.15sv%u", nic_of_pf(pci)->name,
                 (unsigned)pci->vf_number);
    else
        snprintf(nic->name, sizeof nic->name, "%.15s%u", driver->prefix, driver->n);
    dev->kernel = nic->kernel;
    dev->name = nic->name;
    dev->ops = &nic_ops;
    dev->mac = nic->own_mac = read_mac(pci);
    dev->mtu_bytes = driver->params.mtu_bytes;
    dev->features = NET_FEATURE_TSO | NET_FEATURE_ARFS; /* the stack adds GRO, which is its own */
    if (driver->params.lro)
        dev->features |= NET_FEATURE_LRO;
    dev->private_data = nic;
    nic_drv_work_init(&nic->link_work, nic, link_work);
    nic_drv_watchdog_init(nic);
    return nic;
}

/* What the function is and has. */
static int nic_read(struct nic_drv *nic, struct k_pci_dev *pci)
{
    uint32_t function = k_readl(pci, 0, NIC_REG_FUNCTION);
    uint32_t n_functions = k_readl(pci, 0, NIC_REG_N_FUNCTIONS);
    if (function >= n_functions || n_functions > NIC_FUNCTIONS_MAX)
        return -ENODEV;
    nic->function = (uint8_t)function;
    nic->n_functions = (uint8_t)n_functions;
    nic->firmware = (enum nic_firmware)k_readl(pci, 0, NIC_REG_FIRMWARE);
    nic->n_queues = k_readl(pci, 0, NIC_REG_N_QUEUES);
    nic->n_arfs = k_readl(pci, 0, NIC_REG_N_ARFS);
    nic->node = pci->device.node;
    nic->n_channels = (uint16_t)nic_drv_channels_wanted(nic);
    nic->dev.n_tx_queues = nic->dev.n_rx_queues = nic->n_channels;
    return nic->n_channels > 0 ? 0 : -ENOSPC;
}

/* The device takes the function. */
static int nic_attach(struct nic_drv *nic, struct k_pci_dev *pci)
{
    int error = nic_read(nic, pci);
    if (error != 0)
        return error;
    nic->pci = pci;
    nic->gone = false;
    error = nic_drv_memory_alloc(nic, &nic->command, nic->node, K_PAGE_BYTES);
    if (error != 0) {
        nic->pci = NULL;
        return error;
    }
    nic->dev.device = &pci->device;
    pci->device.driver_data = nic;
    nic->card = card_of(nic->driver, nic);
    nic->card->function[nic->function] = nic;
    return 0;
}

static void nic_detach(struct nic_drv *nic)
{
    while (nic->n_commands > 0) /* rules of the switch: others' threads */
        k_sleep(nic->kernel, DRAIN_PS);
    nic_drv_memory_free(nic, &nic->command);
    nic->card->function[nic->function] = NULL;
    nic->pci->device.driver_data = NULL;
    nic->dev.device = NULL;
    nic->pci = NULL;
    nic->gone = true;
}

static int probe_new(struct nic_driver *driver, struct k_pci_dev *pci)
{
    struct nic_drv *nic = nic_new(driver, pci);
    int error = nic_attach(nic, pci);
    if (error != 0) {
        k_free(nic);
        return error;
    }
    uint32_t n = driver->params.n_filters;
    nic->flows = nic_drv_flows_new(nic, n < nic->n_arfs ? n : nic->n_arfs);
    error = net_device_register(driver->net, &nic->dev);
    if (error != 0) {
        nic_detach(nic);
        nic_drv_flows_free(nic->flows);
        k_free(nic);
        return error;
    }
    *driver->last = nic;
    driver->last = &nic->next;
    if (!is_own_vf(driver, pci))
        driver->n++;
    return 0;
}

static int nic_probe(struct k_pci_dev *pci, void *context)
{
    struct nic_driver *driver = context;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    if (pci->bar_bytes[0] < NIC_BAR_BYTES || k_readl(pci, 0, NIC_REG_VERSION) != NIC_VERSION)
        return -ENODEV;
    struct net_mac mac = read_mac(pci);
    struct nic_drv *nic = find_gone(driver, &mac, k_readl(pci, 0, NIC_REG_FUNCTION));
    if (nic == NULL)
        return probe_new(driver, pci);
    int error = nic_attach(nic, pci);
    if (error == 0 && nic->reopen)
        error = nic_open(&nic->dev);
    if (error != 0 && nic->pci != NULL)
        nic_detach(nic);
    return error;
}

/* ---- Virtual functions ----------------------------------------------------------------------- */

static int allow_vfs(struct nic_drv *nic, unsigned n)
{
    struct nic_command command = { .opcode = NIC_ENABLE_VFS, .n_vfs = (uint16_t)n };
    return nic_drv_command(nic, &command);
}

/* The device lets them be used before they appear, and until they are gone. */
static int set_vfs(struct nic_drv *nic, unsigned n)
{
    if (n > 0 && nic->n_vfs > 0)
        return -EBUSY;
    int error = n > 0 ? allow_vfs(nic, n) : 0;
    if (error != 0)
        return error;
    error = k_pci_set_vfs(nic->pci, n);
    if (error != 0 || n == 0)
        allow_vfs(nic, 0);
    if (error == 0)
        nic->n_vfs = n;
    return error;
}

static int nic_configure_vfs(struct k_pci_dev *pci, unsigned n)
{
    struct nic_drv *nic = pci->device.driver_data;
    return nic->gone ? -ENODEV : set_vfs(nic, n);
}

/* ---- Functions go ---------------------------------------------------------------------------- */

static void nic_free(struct nic_drv *nic)
{
    struct nic_driver *driver = nic->driver;
    struct nic_drv **link = &driver->first;
    while (*link != nic)
        link = &(*link)->next;
    *link = nic->next;
    if (driver->last == &nic->next)
        driver->last = link;
    net_device_unregister(&nic->dev);
    k_timer_release(&nic->watchdog);
    nic_drv_flows_free(nic->flows);
    nic_drv_rules_free(nic);
    k_free(nic);
}

static void nic_remove(struct k_pci_dev *pci, bool gone)
{
    struct nic_drv *nic = pci->device.driver_data;
    nic->gone |= gone;
    if (nic->n_vfs > 0)
        set_vfs(nic, 0);
    wait_for_recovery(nic);
    nic->reopen = nic->dev.running;
    nic_stop(&nic->dev);
    nic->gone = true; /* refuses further requests for rules */
    nic_detach(nic);
    if (!gone || nic->dev.upper == NULL)
        nic_free(nic);
}

/* ---- The driver ------------------------------------------------------------------------------ */

static const struct k_pci_id nic_ids[] = {
    { NIC_VENDOR_ID, NIC_DEVICE_ID },
    { NIC_VENDOR_ID, NIC_VF_DEVICE_ID },
    { 0, 0 },
};

static bool is_power_of_two(uint32_t n, uint32_t least, uint32_t most)
{
    return n >= least && n <= most && (n & (n - 1)) == 0;
}

static bool params_good(const struct nic_driver_params *params, unsigned n_nodes)
{
    return is_power_of_two(params->sq_blocks, 16, 32768) &&
           is_power_of_two(params->rq_wqes, 4, 32768) && params->n_channels <= NET_QUEUES_MAX &&
           params->completion_node >= NIC_NODE_DEVICE && params->completion_node < (int)n_nodes &&
           params->rx_mode <= NIC_MODERATION_CQE && params->mtu_bytes >= 576 &&
           params->mtu_bytes <= 9216 && params->filter_scan_ps > 0 && params->n_filters <= 1u << 20;
}

struct nic_driver *nic_driver_new(struct net *net, struct kernel *kernel,
                                  const struct nic_driver_params *params, const char *prefix)
{
    if (!params_good(params, k_n_nodes(kernel)))
        return NULL;
    struct nic_driver *driver = k_zalloc(sizeof *driver);
    driver->net = net;
    driver->kernel = kernel;
    driver->prefix = prefix;
    driver->params = *params;
    driver->last = &driver->first;
    if (params->channel_cpu != NULL) {
        size_t bytes = params->n_channels * sizeof *params->channel_cpu;
        driver->channel_cpu = k_zalloc(bytes + 1);
        memcpy(driver->channel_cpu, params->channel_cpu, bytes);
        driver->params.channel_cpu = driver->channel_cpu;
    }
    driver->pci = (struct k_pci_driver){
        .name = "nic",
        .ids = nic_ids,
        .probe = nic_probe,
        .remove = nic_remove,
        .configure_vfs = nic_configure_vfs,
        .context = driver,
    };
    return driver;
}

const struct k_pci_driver *nic_driver_pci(const struct nic_driver *driver)
{
    return &driver->pci;
}

void nic_driver_free(struct nic_driver *driver)
{
    while (driver->first != NULL)
        nic_free(driver->first);
    while (driver->cards != NULL) {
        struct nic_card *card = driver->cards;
        driver->cards = card->next;
        k_free(card);
    }
    k_free(driver->channel_cpu);
    k_free(driver);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct net_device *nic_driver_device(const struct nic_driver *driver, unsigned i)
{
    struct nic_drv *nic = driver->first;
    while (nic != NULL && i-- > 0)
        nic = nic->next;
    return nic != NULL ? &nic->dev : NULL;
}

unsigned nic_dev_function(const struct net_device *dev)
{
    return nic_drv_of(dev)->function;
}

unsigned nic_dev_n_functions(const struct net_device *dev)
{
    return nic_drv_of(dev)->n_functions;
}

enum nic_firmware nic_dev_firmware(const struct net_device *dev)
{
    return nic_drv_of(dev)->firmware;
}

bool nic_dev_present(const struct net_device *dev)
{
    return !nic_drv_of(dev)->gone;
}

struct nic_drv_stats nic_dev_channel_stats(const struct net_device *dev, unsigned channel)
{
    return channel < NET_QUEUES_MAX ? nic_drv_of(dev)->stats[channel] : (struct nic_drv_stats){ 0 };
}

int nic_dev_set_vfs(struct net_device *dev, unsigned n)
{
    struct nic_drv *nic = nic_drv_of(dev);
    return nic->gone ? -ENODEV : k_pci_configure_vfs(nic->pci, n);
}

int64_t nic_dev_query_drops(struct net_device *dev)
{
    struct nic_command command = { .opcode = NIC_QUERY_DROPS };
    int error = nic_drv_command(nic_drv_of(dev), &command);
    return error != 0 ? error : (int64_t)command.value;
}
