/*
 * nic.ethernet: an Ethernet NIC with one to four physical functions, each with a PCIe port of its
 * own (p0, p1, ...), and one Ethernet port (e0). What its driver sees is hw/nic_regs.h.
 */
#ifndef MODELS_NIC_NIC_H
#define MODELS_NIC_NIC_H

#include "models/ether/ether.h"

#define NIC_FUNCTIONS_MAX 4u
#define NIC_VFS_MAX       7u /* of a physical function: without ARI, functions 1 .. 7 of its bus */

extern const struct model_ops nic_ops;

/* Of one physical function. Bytes are those of frames, without FCS. */
struct nic_function_stats {
    uint64_t rx_packets, rx_bytes; /* handed to the function's PCIe port */
    uint64_t tx_packets, tx_bytes; /* put on the wire from the function's send queues */
    uint64_t rx_no_buffer;         /* dropped: the receive queue had no buffer posted */
    uint64_t rx_overflow;          /* dropped: the on-chip buffer was full */
    uint64_t rx_no_queue;          /* dropped: no receive queue, or the function is gone */
    uint64_t arfs_hits, rss_hits;  /* packets that the flow table, RSS steered */
    uint64_t doorbells;
    uint64_t tx_wqes, rx_wqes; /* fetched: blocks, entries */
    uint64_t cqes, eqes;       /* written */
    uint64_t timer_events;     /* events that the time of moderation let through, not the count */
    uint64_t read_bytes, write_bytes; /* DMA payload, PCIe; read: asked for */
};
/* Since the statistics were cleared; for samples over time. */
const struct nic_function_stats *nic_function_stats(const struct model *model, unsigned pf);
/* The MAC of a function, the first byte on the wire on top of 48 bits. */
uint64_t nic_function_mac(const struct model *model, unsigned pf);

/* The same of virtual function vf of physical function pf; since the start of the run. */
const struct nic_function_stats *nic_vf_stats(const struct model *model, unsigned pf, unsigned vf);
uint64_t nic_vf_mac(const struct model *model, unsigned pf, unsigned vf);

/* The longest packet that it sends and receives, Ethernet header not counted. */
uint32_t nic_mtu_bytes(const struct model *model);
/* Queues of each kind that a function has. */
uint32_t nic_queues(const struct model *model);

#endif
