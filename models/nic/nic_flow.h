/* Tables of the NIC that are looked up for every packet: exact match of a flow, and the hash that
 * spreads the others over queues. */
#ifndef MODELS_NIC_NIC_FLOW_H
#define MODELS_NIC_NIC_FLOW_H

#include "models/ether/ether_packet.h"

/* Flow to a number: open addressing, linear, at most half full. */
struct nic_flow_entry {
    struct ether_flow flow;
    uint16_t target;
    bool used;
};
struct nic_flow_table {
    struct nic_flow_entry *entry;
    uint32_t mask, n, n_max;
};
/* Room for n_max flows. Ends the process when memory is exhausted. */
void nic_flow_init(struct nic_flow_table *table, uint32_t n_max);
void nic_flow_release(struct nic_flow_table *table);
/* NULL: not there. */
const struct nic_flow_entry *nic_flow_find(const struct nic_flow_table *table,
                                           const struct ether_flow *flow);
/* Adds it or changes its target. False: the table is full. */
bool nic_flow_set(struct nic_flow_table *table, const struct ether_flow *flow, uint16_t target);
/* False: it was not there. */
bool nic_flow_delete(struct nic_flow_table *table, const struct ether_flow *flow);

/* Toeplitz hash with the key of the RSS specification, by tables of a byte each. */
#define NIC_RSS_INPUT_BYTES 12u
struct nic_rss {
    uint32_t part[NIC_RSS_INPUT_BYTES][256];
};
void nic_rss_init(struct nic_rss *rss);
/* Over source and destination address, and with_ports over the ports behind them. */
uint32_t nic_rss_hash(const struct nic_rss *rss, const struct ether_flow *flow, bool with_ports);

#endif
