/* The hosts of the group `network` while they run: interfaces, counters of drivers and adapters. */
#include "workloads/setup/network_internal.h"

#include <stddef.h>
#include <string.h>

#include "logic/myri/myri10ge.h"
#include "logic/nic/nic_driver.h"
#include "models/myri/myri.h"
#include "models/nic/nic.h"

static bool is_guest(const struct network_host *host)
{
    return host->lending != NULL && host->lending->vm != NULL;
}

unsigned network_sockets(const struct network_host *host)
{
    return is_guest(host) ? 1 : numa_sockets(host_numa(host->host));
}

unsigned network_cores_per_socket(const struct network_host *host)
{
    const struct numa *numa = host_numa(host->host);
    return is_guest(host) ? lending_cpus(host->lending) : numa_cores(numa) / numa_sockets(numa);
}

struct net_device *network_interface(const struct network_host *host, const char *name)
{
    for (unsigned f = 0; f < host->n_functions; f++)
        if (strcmp(network_interfaces[f], name) == 0)
            return host->function[f];
    return host->dev;
}

uint32_t network_interface_ip(const struct network_host *host, const char *name)
{
    return network_interface(host, name)->ip;
}

static bool is_myri_function(const struct network_host *host, unsigned f)
{
    const struct function_name function = network_function_at(host, f);
    return network_is_myri(function.model);
}

/* A counter of the driver, at this offset of its struct nic_drv_stats: of all channels of all
 * functions of nic.ethernet. */
static uint64_t sum_channels(const struct network_host *host, size_t offset)
{
    uint64_t n = 0, count;
    for (unsigned f = 0; f < host->n_functions; f++)
        for (unsigned c = 0; !is_myri_function(host, f) && c < host->function[f]->n_tx_queues;
             c++) {
            const struct nic_drv_stats stats = nic_dev_channel_stats(host->function[f], c);
            memcpy(&count, (const char *)&stats + offset, sizeof(count));
            n += count;
        }
    return n;
}

/* The same of Myri-10G adapters and their struct myri10ge_stats. */
static uint64_t sum_slices(const struct network_host *host, size_t offset)
{
    uint64_t n = 0, count;
    for (unsigned f = 0; f < host->n_functions; f++)
        for (unsigned s = 0; is_myri_function(host, f) && s < host->function[f]->n_rx_queues; s++) {
            const struct myri10ge_stats stats = myri10ge_stats(host->function[f], s);
            memcpy(&count, (const char *)&stats + offset, sizeof(count));
            n += count;
        }
    return n;
}

uint64_t network_buffers_sent(const struct network_host *host)
{
    return sum_channels(host, offsetof(struct nic_drv_stats, tx_wqes)) +
           sum_slices(host, offsetof(struct myri10ge_stats, tx_packets));
}

uint64_t network_packets_received(const struct network_host *host)
{
    return sum_channels(host, offsetof(struct nic_drv_stats, rx_packets)) +
           sum_slices(host, offsetof(struct myri10ge_stats, rx_packets));
}

uint64_t network_fragments_hinted(const struct network_host *host)
{
    return sum_channels(host, offsetof(struct nic_drv_stats, tx_hints));
}

uint64_t network_function_bytes(const struct network_host *host, unsigned function)
{
    const struct net_device *dev = host->function[function];
    uint64_t bytes = 0;
    for (unsigned q = 0; q < dev->n_rx_queues; q++)
        bytes += dev->rx[q].bytes;
    return bytes;
}

uint64_t network_drops(const struct network_host *host)
{
    uint64_t n = 0;
    for (unsigned f = 0; f < host->n_functions; f++) {
        const struct function_name function = network_function_at(host, f);
        const unsigned pf = function_pf(&function);
        if (network_is_myri(function.model)) {
            n += myri_drops(function.model);
            continue;
        }
        const struct nic_function_stats *stats =
            function.vf >= 0 ? nic_vf_stats(function.model, pf, (unsigned)function.vf)
                             : nic_function_stats(function.model, pf);
        n += stats->rx_no_buffer + stats->rx_overflow + stats->rx_no_queue;
    }
    return n;
}
