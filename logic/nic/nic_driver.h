/*
 * The driver of our Ethernet NIC (data sheet: nic_regs.h), one network device per PCI function, built
 * as the mlx5e driver of Linux 4.14 is: a channel per CPU (receive queue, send queue, their
 * completion queues, an event queue with its interrupt, one poll function), receive buffers that
 * are parts of pages and are used again, adaptive interrupt moderation, flow steering filters.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values.
 */
#ifndef LOGIC_NIC_NIC_DRIVER_H
#define LOGIC_NIC_NIC_DRIVER_H

#include "hw/nic_regs.h"
#include "logic/net/netdev.h"

/* nic_driver_params.completion_node: the node that the function is plugged into. */
#define NIC_NODE_DEVICE (-2)

struct nic_driver_params {
    /* Channels of a function; 0: one per CPU. Never more than the device or the network core has
     * queues for. */
    uint16_t n_channels;
    /* The CPU of each channel (n_channels of them, copied); NULL: the CPUs of the function's node
     * first, then the others. No CPU twice. */
    const uint16_t *channel_cpu;
    /* Channels that RSS spreads over, the first ones; 0: those on CPUs of the function's node, all
     * if there are none (mlx5e_build_default_indir_rqt). */
    uint16_t rss_channels;
    uint16_t sq_blocks; /* 64 B each; a power of two, 16 .. 32768 */
    uint16_t rq_wqes;   /* buffers; a power of two, 4 .. 32768 */
    /* Where completion queues lie: K_NODE_LOCAL (of the channel's CPU), NIC_NODE_DEVICE, a node. */
    int completion_node;
    bool adaptive_rx;         /* moderation of receive interrupts adapts itself (nic_dim.h) */
    uint8_t rx_mode;          /* enum nic_moderation */
    uint16_t rx_us, rx_count; /* receive moderation, if not adaptive */
    uint16_t tx_us, tx_count;
    bool lro;     /* the NIC merges segments, into buffers of 64 KiB */
    bool octo_sg; /* fragments on another function's node are fetched through that function */
    uint32_t mtu_bytes;
    uint32_t n_filters; /* ARFS filters kept by the driver at most; less if the device has less */
    uint64_t filter_scan_ps; /* how often filters that may expire are looked for */
};
/* The values of mlx5e in Linux 4.14 for a ConnectX-4. */
extern const struct nic_driver_params nic_driver_params_default;

/* One per kernel. */
struct nic_driver;

/* The parameters are copied. prefix names the devices (prefix0, prefix1, ... in the order in which
 * they appear) and must outlive the driver. NULL: a parameter is out of its range. */
struct nic_driver *nic_driver_new(struct net *net, struct kernel *kernel,
                                  const struct nic_driver_params *params, const char *prefix);
/* For k_pci_register(). Devices are registered closed: whoever configures them calls open(). */
const struct k_pci_driver *nic_driver_pci(const struct nic_driver *driver);
/* [thread] All functions removed, no team or bond has a device of it any more. */
void nic_driver_free(struct nic_driver *driver);
/* The device of the i-th function that appeared; NULL: there are fewer. */
struct net_device *nic_driver_device(const struct nic_driver *driver, unsigned i);

/* ---- Of a device of this driver -------------------------------------------------------------- */

/* Index of its function on the card, functions of the card. */
unsigned nic_dev_function(const struct net_device *dev);
unsigned nic_dev_n_functions(const struct net_device *dev);
enum nic_firmware nic_dev_firmware(const struct net_device *dev);
/* False after a surprise removal: the device stays registered while it is part of a team. If the
 * function comes back, it is the same device that goes on. */
bool nic_dev_present(const struct net_device *dev);

/* [thread] The card's multi-PF switch (octoNIC firmware): packets of the flow go to a function, any
 * of them whichever device is asked; replaces a rule of the same flow. Returns when the device acts
 * on it and what came in for this function before that is in its queues. -ENOSPC: the table is
 * full. -ENODEV: this function is gone. */
int nic_dev_switch_set(struct net_device *dev, const struct flow_key *flow, unsigned function);
/* -ENOENT: no such rule. */
int nic_dev_switch_delete(struct net_device *dev, const struct flow_key *flow);
/* [thread] The physical function's virtual functions, as sriov_numvfs sets them; 0: none. They
 * appear as devices of this driver after those that there are, named after their function (pf0v0,
 * ...). 0, or a negative errno: -ENODEV, what the device answers, what k_pci_set_vfs() does. They
 * are gone before their physical function is. */
int nic_dev_set_vfs(struct net_device *dev, unsigned n);
/* [thread] Packets that the function dropped for want of a buffer; negative errno. */
int64_t nic_dev_query_drops(struct net_device *dev);

struct nic_drv_stats { /* of one channel since its device was made */
    uint64_t interrupts, polls;
    uint64_t rx_packets, rx_errors;
    uint64_t page_halves; /* buffers that were the next part of a page already held */
    uint64_t cache_hits, cache_busy, cache_empty, cache_full; /* of the receive page cache */
    uint64_t page_failures; /* no page to be had, tried again later */
    uint64_t tx_packets, tx_wqes, tx_doorbells, tx_completions, tx_stops, tx_wakes;
    uint64_t tx_drops, tx_errors, tx_hints; /* hints: fragments fetched through another function */
    uint64_t moderation_changes;
};
/* Zero for a channel that the device does not have. */
struct nic_drv_stats nic_dev_channel_stats(const struct net_device *dev, unsigned channel);

struct nic_filter_stats {
    uint64_t added, updated, expired, refused; /* refused: a table was full */
    uint32_t n;                                /* there are now */
};
struct nic_filter_stats nic_dev_filter_stats(const struct net_device *dev);

#endif
