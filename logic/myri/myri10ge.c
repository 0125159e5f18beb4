/*
 * Adapters with Ethernet firmware: probe, open, stop, remove.
 *
 * What it does: A PCI driver that makes a network device of each adapter, with as many slices as
 *   the firmware has receive queues and there are CPUs. Slice i belongs to CPU i, or to the CPU
 *   that is asked for; Open-MX packets for endpoint e come in slice e modulo their number. A
 *   watchdog looks once a second, in place of the stack's, as the send queue is long (Linux says
 *   so): where packets were under way a second ago and none of them has gone, the interface is
 *   closed and opened. Of what receive queues hold it knows nothing: a lost interrupt of received
 *   packets waits for the next packet sent.
 * Leaves out: firmware loading, the test of DMA rates by which Linux chooses the firmware, ethtool;
 *   recovery of an adapter that has rebooted itself, and that the watchdog leaves a sender in PAUSE
 *   alone.
 * Follows: Linux 2.6.26 drivers/net/myri10ge/myri10ge.c (myri10ge_probe, myri10ge_open,
 *   myri10ge_close, myri10ge_watchdog_timer, myri10ge_watchdog).
 */
#include "logic/myri/myri10ge_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hw/pci_regs.h"

#define DRAIN_PS         (2 * K_US)
#define LINK_LOOK_PS     (20 * K_US)
#define LINK_LOOKS_MAX   100u
#define SMALL_BYTES      126u  /* with an MTU of 1500: with what is before, 128 */
#define SMALL_BYTES_LONG 1518u /* with a larger one: a usual packet with a VLAN tag */

const struct myri10ge_params myri10ge_params_default = { .mtu_bytes = 9000, .watchdog_ps = K_S };

struct k_page *myri10ge_lines_new(struct myri10ge_dev *myri, size_t bytes)
{
    unsigned order = 0;
    while ((size_t)K_PAGE_BYTES << order < bytes)
        order++;
    return k_page_alloc(myri->kernel, myri->pci->device.node, order);
}

/* ---- Setting up the firmware ----------------------------------------------------------------- */

static int command(struct myri10ge_dev *myri, uint32_t what, uint32_t data0, uint32_t data1)
{
    return myri_command(&myri->commands, what, &data0, data1, 0);
}

static int ask(struct myri10ge_dev *myri, uint32_t what, uint32_t *answer)
{
    *answer = 0;
    return myri_command(&myri->commands, what, answer, 0, 0);
}

/* The table sends hash i to slice i. */
static int set_steering(struct myri10ge_dev *myri)
{
    uint32_t table_at = 0;
    int error = command(myri, MYRI_ENABLE_SLICES, myri->n_slices, MYRI_SLICES_INTERRUPT_EACH);
    if (error == 0)
        error = ask(myri, MYRI_GET_TABLE_OFFSET, &table_at);
    if (error == 0)
        error = command(myri, MYRI_SET_TABLE_ENTRIES, myri->n_slices, 0);
    if (error != 0)
        return error;
    for (unsigned i = 0; i < MYRI_SLICES_MAX; i += 4) {
        uint32_t word = 0;
        for (unsigned b = 0; b < 4; b++)
            word |= (uint32_t)((i + b) % myri->n_slices) << 8 * b;
        k_writel(myri->pci, 0, table_at + i, word);
    }
    return command(myri, MYRI_SET_STEERING, 1, MYRI_HASH_PORTS);
}

static int set_memory(struct myri10ge_dev *myri)
{
    const uint32_t queue_bytes = (myri->slice[0].queue_mask + 1) * MYRI_SLOT_BYTES;
    int error = command(myri, MYRI_SET_QUEUE_BYTES, queue_bytes, 0);
    for (unsigned i = 0; error == 0 && i < myri->n_slices; i++)
        error = myri_command_address(&myri->commands, MYRI_SET_QUEUE_DMA, myri->slice[i].queue_dma,
                                     i);
    if (error == 0)
        error = myri_command_address(&myri->commands, MYRI_SET_STATUS_DMA, myri->status_dma,
                                     sizeof(struct myri_status));
    return error;
}

static int set_up(struct myri10ge_dev *myri)
{
    const uint8_t *mac = myri->dev.mac.byte;
    uint32_t coalescing_at = 0;
    int error = command(myri, MYRI_RESET, 0, 0);
    if (error == 0 && myri->n_slices > 1)
        error = set_steering(myri);
    if (error == 0)
        error = set_memory(myri);
    if (error == 0)
        error = command(myri, MYRI_SET_MAC,
                        (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 | (uint32_t)mac[2] << 8 |
                            mac[3],
                        (uint32_t)mac[4] << 8 | mac[5]);
    if (error == 0)
        error = command(myri, MYRI_SET_MTU, myri->dev.mtu_bytes + 14, 0);
    if (error == 0)
        error = command(myri, MYRI_SET_SMALL_BYTES, myri->small_bytes, 0);
    if (error == 0)
        error = command(myri, MYRI_SET_BIG_BYTES, K_PAGE_BYTES, 0);
    if (error == 0)
        error = ask(myri, MYRI_GET_COALESCING_OFFSET, &coalescing_at);
    if (error == 0)
        error = ask(myri, MYRI_GET_ACK_OFFSET, &myri->ack_at);
    if (error == 0)
        k_writel(myri->pci, 0, coalescing_at, myri_be32(myri->driver->params.coalescing_us));
    return error;
}

/* ---- The watchdog ---------------------------------------------------------------------------- */

static void watchdog_start(struct myri10ge_dev *myri);
static void stop_all(struct myri10ge_dev *myri);
static int open_all(struct myri10ge_dev *myri);

/* Nothing has been sent of what was under way a period ago. */
static bool is_stuck(const struct myri10ge_dev *myri)
{
    return myri->tx.done == myri->seen_done && myri->seen_requested != myri->seen_done;
}

/* myri10ge_watchdog(), of a device whose bus mastering is on: looks once more, then closes and
 * opens. One that has disappeared is left alone. */
static void reset_body(void *arg)
{
    struct myri10ge_dev *myri = arg;
    if (k_config_read(myri->pci, PCI_VENDOR_ID, 2) == 0xffff) {
        k_warn(myri->kernel, "%s: device disappeared", myri->name);
    } else if (myri->dev.running && is_stuck(myri)) {
        myri->slice[0].stats.watchdog_resets++;
        k_warn(myri->kernel, "%s: device timeout, resetting", myri->name);
        stop_all(myri);
        const int error = open_all(myri);
        if (error != 0)
            k_warn(myri->kernel, "%s: could not be opened again: %d", myri->name, error);
    } else if (myri->dev.running) {
        watchdog_start(myri);
    }
    myri->resetting = false;
}

/* In a soft interrupt. */
static void watchdog(struct k_timer *timer)
{
    struct myri10ge_dev *myri = K_CONTAINER(timer, struct myri10ge_dev, watchdog);
    if (!myri->dev.running)
        return;
    const bool stuck = is_stuck(myri);
    myri->seen_requested = myri->tx.requested;
    myri->seen_done = myri->tx.done;
    if (stuck) {
        myri->resetting = true;
        k_thread_new(myri->kernel, "myri_watchdog", K_CPU_ANY, reset_body, myri);
    } else {
        watchdog_start(myri);
    }
}

static void watchdog_start(struct myri10ge_dev *myri)
{
    const uint64_t ps = myri->driver->params.watchdog_ps;
    if (ps != 0)
        k_timer_set_watchdog(&myri->watchdog, k_now_ps(myri->kernel) + ps);
}

/* ---- Open and stop --------------------------------------------------------------------------- */

/* The device is not to access any of it any more. */
static void free_all(struct myri10ge_dev *myri)
{
    for (unsigned i = 0; i < myri->n_slices; i++) {
        struct myri10ge_slice *slice = &myri->slice[i];
        if (slice->irq != NULL)
            k_irq_free(slice->irq);
        slice->irq = NULL;
        myri->dev.irq[i] = NULL;
        while (slice->active || slice->inside > 0 || myri->tx.locked || myri10ge_sent_waits(myri))
            k_sleep(myri->kernel, DRAIN_PS);
    }
    for (unsigned i = 0; i < myri->n_slices; i++)
        myri10ge_slice_free(&myri->slice[i]);
    myri10ge_tx_free(myri);
    if (myri->status.v != 0)
        k_dma_free(&myri->pci->device, K_LINE_BYTES, myri->status, myri->status_dma);
    myri->status.v = 0;
}

static int allocate(struct myri10ge_dev *myri)
{
    int error = myri10ge_tx_new(myri);
    for (unsigned i = 0; error == 0 && i < myri->n_slices; i++)
        error = myri10ge_slice_new(&myri->slice[i]);
    if (error == 0)
        error = k_dma_alloc(&myri->pci->device,
                            (int)k_node_of_cpu(myri->kernel, myri->slice[0].cpu), K_LINE_BYTES,
                            &myri->status, &myri->status_dma);
    return error;
}

static int start(struct myri10ge_dev *myri)
{
    int error = 0;
    for (unsigned i = 0; error == 0 && i < myri->n_slices; i++) {
        struct myri10ge_slice *slice = &myri->slice[i];
        error = k_irq_request(myri->pci, i, slice->cpu, myri10ge_interrupt, slice, &slice->irq);
        myri->dev.irq[i] = slice->irq;
        myri10ge_refill(slice);
    }
    return error == 0 ? command(myri, MYRI_UP, 0, 0) : error;
}

/* Until the first interrupt has told that the link is up, or for 2 ms. */
static void wait_for_link(struct myri10ge_dev *myri)
{
    for (unsigned i = 0; i < LINK_LOOKS_MAX && !myri->dev.carrier; i++)
        k_sleep(myri->kernel, LINK_LOOK_PS);
}

static int open_all(struct myri10ge_dev *myri)
{
    struct net_device *dev = &myri->dev;
    if (dev->running)
        return 0;
    myri->closing = false;
    myri->send_done = 0;
    myri->seen_requested = myri->seen_done = 0;
    myri->link_told = false;
    myri->small_bytes = dev->mtu_bytes <= 1500 ? SMALL_BYTES : SMALL_BYTES_LONG;
    int error = allocate(myri);
    if (error == 0)
        error = set_up(myri);
    if (error == 0)
        error = start(myri);
    if (error != 0) {
        myri->closing = true;
        command(myri, MYRI_DOWN, 0, 0);
        free_all(myri);
        return error;
    }
    memset(dev->queue_stopped, 0, sizeof dev->queue_stopped);
    dev->running = true;
    wait_for_link(myri);
    watchdog_start(myri);
    return 0;
}

static void stop_all(struct myri10ge_dev *myri)
{
    struct net_device *dev = &myri->dev;
    if (!dev->running)
        return;
    dev->running = false;
    k_timer_cancel(&myri->watchdog);
    net_device_carrier(dev, false);
    while (myri->tx.locked)
        k_sleep(myri->kernel, DRAIN_PS);
    command(myri, MYRI_DOWN, 0, 0);
    myri->closing = true;
    free_all(myri);
    if (dev->queue_stopped[0])
        net_queue_wake(dev, 0);
}

static void wait_for_reset(const struct myri10ge_dev *myri)
{
    while (myri->resetting)
        k_sleep(myri->kernel, DRAIN_PS);
}

static int myri_open(struct net_device *dev)
{
    wait_for_reset(myri10ge_of(dev));
    return open_all(myri10ge_of(dev));
}

static void myri_stop(struct net_device *dev)
{
    wait_for_reset(myri10ge_of(dev));
    stop_all(myri10ge_of(dev));
    wait_for_reset(myri10ge_of(dev)); /* one that began meanwhile finds it closed */
}

static int myri_set_mac(struct net_device *dev, const struct net_mac *mac)
{
    if (dev->running)
        return -EBUSY;
    dev->mac = *mac;
    return 0;
}

static const struct net_device_ops myri_ops = {
    .open = myri_open,
    .stop = myri_stop,
    .set_mac = myri_set_mac,
    .start_xmit = myri10ge_start_xmit,
};

/* ---- Interrupts and CPUs --------------------------------------------------------------------- */

static void map_cpus(struct myri10ge_dev *myri)
{
    memset(myri->dev.rx_queue_of_cpu, 0xff, sizeof myri->dev.rx_queue_of_cpu);
    for (unsigned i = myri->n_slices; i-- > 0;)
        myri->dev.rx_queue_of_cpu[myri->slice[i].cpu] = (int16_t)i;
    xps_map_default(&myri->dev);
}

int myri10ge_set_cpu(struct net_device *dev, unsigned queue, unsigned cpu)
{
    struct myri10ge_dev *myri = myri10ge_of(dev);
    if (queue >= myri->n_slices || cpu >= k_n_cpus(myri->kernel) || !dev->running)
        return -EINVAL;
    const int error = k_irq_set_cpu(myri->slice[queue].irq, cpu);
    if (error != 0)
        return error;
    myri->slice[queue].cpu = (uint16_t)cpu;
    map_cpus(myri);
    return 0;
}

struct myri10ge_stats myri10ge_stats(const struct net_device *dev, unsigned slice)
{
    const struct myri10ge_dev *myri = myri10ge_of(dev);
    return slice < myri->n_slices ? myri->slice[slice].stats : (struct myri10ge_stats){ 0 };
}

/* ---- Adapters come and go -------------------------------------------------------------------- */

/* What the firmware is and has. */
static int read_firmware(struct myri10ge_dev *myri)
{
    const struct myri10ge *driver = myri->driver;
    uint32_t version, ring_bytes, slices = 1;
    int error = ask(myri, MYRI_GET_VERSION, &version);
    if (error == 0 && version >> 16 != MYRI_VERSION >> 16)
        error = -ENODEV;
    if (error == 0)
        error = ask(myri, MYRI_GET_SEND_RING_BYTES, &ring_bytes);
    if (error != 0)
        return error;
    myri->ring_entries = ring_bytes / (uint32_t)sizeof(struct myri_send);
    if (ask(myri, MYRI_GET_SLICES_MAX, &slices) != 0)
        slices = 1;
    unsigned wanted = driver->params.n_slices != 0 ? driver->params.n_slices
                                                   : k_n_cpus(myri->kernel);
    myri->n_slices = slices < wanted ? slices : wanted;
    if (myri->n_slices > MYRI_SLICES_MAX)
        myri->n_slices = MYRI_SLICES_MAX;
    return 0;
}

static struct myri10ge_dev *dev_new(struct myri10ge *driver, struct k_pci_dev *pci)
{
    struct myri10ge_dev *myri = k_zalloc(sizeof *myri);
    struct net_device *dev = &myri->dev;
    myri->driver = driver;
    myri->kernel = driver->kernel;
    myri->net = driver->net;
    myri->costs = k_costs(driver->kernel);
    myri->pci = pci;
    snprintf(myri->name, sizeof myri->name, "%.15s%u", driver->prefix, driver->n);
    dev->kernel = driver->kernel;
    dev->name = myri->name;
    dev->ops = &myri_ops;
    dev->device = &pci->device;
    dev->mtu_bytes = driver->params.mtu_bytes;
    dev->n_tx_queues = 1;
    dev->private_data = myri;
    myri10ge_sent_init(myri);
    k_timer_init(&myri->watchdog, myri->kernel, watchdog);
    for (unsigned i = 0; i < MYRI_SLICES_MAX; i++) {
        myri->slice[i].myri = myri;
        myri->slice[i].number = i;
        const unsigned cpu = driver->params.slice_cpu != NULL ? driver->slice_cpu[i]
                                                              : i % k_n_cpus(driver->kernel);
        myri->slice[i].cpu = (uint16_t)cpu;
    }
    return myri;
}

static void dev_free(struct myri10ge_dev *myri)
{
    myri_commands_release(&myri->commands);
    k_timer_release(&myri->watchdog);
    k_free(myri->sent);
    k_free(myri);
}

static int myri_probe(struct k_pci_dev *pci, void *context)
{
    struct myri10ge *driver = context;
    k_pci_enable(pci);
    k_dma_set_mask(&pci->device, 64);
    if (pci->bar_bytes[0] < MYRI_BAR_BYTES)
        return -ENODEV;
    myri_set_read_request(pci);
    struct myri10ge_dev *myri = dev_new(driver, pci);
    int error = myri_commands_init(&myri->commands, pci);
    if (error == 0)
        error = myri_read_mac(pci, myri->dev.mac.byte);
    if (error == 0)
        error = read_firmware(myri);
    if (error == 0) {
        myri->dev.n_rx_queues = (uint16_t)myri->n_slices;
        if (myri->n_slices > 1)
            myri->dev.features |= NET_FEATURE_MX_QUEUES;
        map_cpus(myri);
        error = net_device_register(driver->net, &myri->dev);
    }
    if (error != 0) {
        dev_free(myri);
        return error;
    }
    pci->device.driver_data = myri;
    struct myri10ge_dev **link = &driver->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = myri;
    driver->n++;
    return 0;
}

static void myri_remove(struct k_pci_dev *pci, bool gone)
{
    struct myri10ge_dev *myri = pci->device.driver_data;
    struct myri10ge *driver = myri->driver;
    (void)gone; /* then nobody answers commands: stop() takes a second */
    myri_stop(&myri->dev);
    net_device_unregister(&myri->dev);
    K_LIST_REMOVE(driver->first, myri);
    pci->device.driver_data = NULL;
    dev_free(myri);
}

/* ---- The driver ------------------------------------------------------------------------------ */

static const struct k_pci_id myri_ids[] = { { MYRI_VENDOR_ID, MYRI_DEVICE_ID }, { 0, 0 } };

struct myri10ge *myri10ge_new(struct net *net, struct kernel *kernel,
                              const struct myri10ge_params *params, const char *prefix)
{
    if (params->mtu_bytes < 576 || params->mtu_bytes > MYRI_MTU_MAX - 18 ||
        params->n_slices > MYRI_SLICES_MAX || params->coalescing_us > 10000)
        return NULL;
    for (unsigned i = 0; params->slice_cpu != NULL && i < params->n_slices; i++)
        if (params->slice_cpu[i] >= k_n_cpus(kernel))
            return NULL;
    struct myri10ge *driver = k_zalloc(sizeof *driver);
    driver->net = net;
    driver->kernel = kernel;
    driver->params = *params;
    if (params->slice_cpu != NULL)
        memcpy(driver->slice_cpu, params->slice_cpu,
               params->n_slices * sizeof driver->slice_cpu[0]);
    driver->prefix = prefix;
    driver->pci = (struct k_pci_driver){ .name = "myri10ge",
                                         .ids = myri_ids,
                                         .probe = myri_probe,
                                         .remove = myri_remove,
                                         .context = driver };
    return driver;
}

const struct k_pci_driver *myri10ge_pci(const struct myri10ge *driver)
{
    return &driver->pci;
}

void myri10ge_free(struct myri10ge *driver)
{
    k_free(driver);
}

struct net_device *myri10ge_device(const struct myri10ge *driver, unsigned i)
{
    struct myri10ge_dev *myri = driver->first;
    while (myri != NULL && i-- > 0)
        myri = myri->next;
    return myri != NULL ? &myri->dev : NULL;
}
