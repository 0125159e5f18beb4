/*
 * The driver of our Ethernet NIC (data sheet: hw/nic_regs.h), with one network device per PCI
 * function, built like the mlx5e driver of Linux 4.14: a channel per CPU (receive queue, send
 * queue, their completion queues, an event queue with its interrupt, one poll function), recycled
 * receive buffers that are parts of pages, adaptive interrupt moderation, flow steering filters.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values.
 */
#ifndef LOGIC_NIC_NIC_DRIVER_H
#define LOGIC_NIC_NIC_DRIVER_H

#include "hw/nic_regs.h"
#include "logic/net/netdev.h"

/* nic_driver_params.completion_node: the node of the function's slot. */
#define NIC_NODE_DEVICE (-2)

struct nic_driver_params {
    /* Channels of a function; 0: one per CPU. Limited by the queues of the device and of the
     * network core. */
    uint16_t n_channels;
    /* The CPU of each channel (n_channels of them, all different; copied). NULL: the CPUs of the
     * function's node first, then the others. */
    const uint16_t *channel_cpu;
    /* The number of channels, from the first one, over which RSS spreads flows; 0: those on CPUs of
     * the function's node, or all if there are none (mlx5e_build_default_indir_rqt). */
    uint16_t rss_channels;
    uint16_t sq_blocks; /* 64 B each; a power of two, 16 .. 32768 */
    uint16_t rq_wqes;   /* buffers; a power of two, 4 .. 32768 */
    /* Node of the completion queues: K_NODE_LOCAL (of the channel's CPU), NIC_NODE_DEVICE, or a
     * node. */
    int completion_node;
    bool adaptive_rx;         /* adaptive moderation of receive interrupts (nic_dim.h) */
    uint8_t rx_mode;          /* enum nic_moderation */
    uint16_t rx_us, rx_count; /* receive moderation, if not adaptive */
    uint16_t tx_us, tx_count;
    bool lro;     /* the NIC merges segments into buffers of 64 KiB */
    bool octo_sg; /* fragments on another function's node are fetched through that function */
    uint32_t mtu_bytes;
    /* After so long without progress of a send queue with entries under way the driver looks for
     * lost interrupts, then makes the channels anew; 0: never. */
    uint64_t watchdog_ps;
    uint32_t n_filters;      /* ARFS filters of the driver; limited by those of the device */
    uint64_t filter_scan_ps; /* period in which the driver looks for expired filters */
};
/* The values of mlx5e in Linux 4.14 for a ConnectX-4. */
extern const struct nic_driver_params nic_driver_params_default;

/* One per kernel. */
struct nic_driver;

/* Creates the driver. The parameters are copied. `prefix` names the devices (prefix0, prefix1, ...
 * in the order in which they appear) and must outlive the driver. NULL: a parameter is out of
 * range. */
struct nic_driver *nic_driver_new(struct net *net, struct kernel *kernel,
                                  const struct nic_driver_params *params, const char *prefix);
/* For k_pci_register(). Devices are registered closed; their configuration calls open(). */
const struct k_pci_driver *nic_driver_pci(const struct nic_driver *driver);
/* [thread] All functions must be removed, and no team or bond may contain a device of it. */
void nic_driver_free(struct nic_driver *driver);
/* The device of the i-th function that appeared; NULL: there are fewer. */
struct net_device *nic_driver_device(const struct nic_driver *driver, unsigned i);

/* ---- Devices of this driver ------------------------------------------------------------------ */

/* The index of its function on the card, and the number of functions of the card. */
unsigned nic_dev_function(const struct net_device *dev);
unsigned nic_dev_n_functions(const struct net_device *dev);
enum nic_firmware nic_dev_firmware(const struct net_device *dev);
/* False after a surprise removal, when the device stays registered because it is part of a team. If
 * the function returns, the same device continues. */
bool nic_dev_present(const struct net_device *dev);

/* [thread] Sets a rule of the card's multi-PF switch (octoNIC firmware): packets of the flow go to
 * `function`, which may be any of the card; replaces a rule of the same flow. When it returns, the
 * rule is in force, and packets that arrived for this device's function before are in its queues.
 * -ENOSPC: the table is full. -ENODEV: this device's function is gone. */
int nic_dev_switch_set(struct net_device *dev, const struct flow_key *flow, unsigned function);
/* [thread] Deletes such a rule in the same way. -ENOENT: there is none. */
int nic_dev_switch_delete(struct net_device *dev, const struct flow_key *flow);
/* [thread] The same for packets beside IPv4's: sets rule `number` of the switch
 * (net_device_ops.rx_rule: the lowest number counts). `rule` NULL: deletes it; -ENOENT: there is
 * none. */
int nic_dev_switch_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                        unsigned function);
/* [thread] Sets the number of virtual functions of a physical function, like sriov_numvfs
 * (k_pci_configure_vfs() does the same). Those that no other driver takes become devices of this
 * driver, named after their physical function and their number (pf0v0, ...); all are removed before
 * it. Returns 0; -ENODEV, an error of the device, or one of k_pci_set_vfs(). */
int nic_dev_set_vfs(struct net_device *dev, unsigned n);
/* [thread] The number of packets that the function dropped for lack of a buffer, or a negative
 * errno. */
int64_t nic_dev_query_drops(struct net_device *dev);

struct nic_drv_stats { /* of one channel since its device was created */
    uint64_t interrupts, polls;
    uint64_t rx_packets, rx_errors;
    uint64_t page_halves; /* buffers that are the next part of a page in use */
    uint64_t cache_hits, cache_busy, cache_empty, cache_full; /* of the receive page cache */
    uint64_t page_failures; /* no page was free; the driver retries */
    uint64_t tx_packets, tx_wqes, tx_doorbells, tx_completions, tx_stops, tx_wakes;
    /* Times that all channels were made anew, since its send queue or its receive queue had
     * failed. */
    uint64_t tx_recoveries, rx_recoveries;
    uint64_t tx_timeouts; /* times that its send queue was stuck */
    uint64_t eq_rearms;   /* of those, with events that no interrupt had told of */
    uint64_t tx_drops, tx_errors, tx_hints; /* hints: fragments fetched through another function */
    uint64_t moderation_changes;
};
/* Zero for a channel that the device does not have. */
struct nic_drv_stats nic_dev_channel_stats(const struct net_device *dev, unsigned channel);

struct nic_filter_stats {
    uint64_t added, updated, expired, refused; /* refused: a table was full */
    uint32_t n;                                /* current number */
};
struct nic_filter_stats nic_dev_filter_stats(const struct net_device *dev);

#endif
