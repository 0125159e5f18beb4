/*
 * Parts sum to the whole, and bytes that go in come out. Windows begin and end amid the traffic:
 * what one place has counted and the next one not yet is bounded by the buffers between them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_properties.h"

#define LINE 64.0

static void equal(struct random_verdict *v, const char *property, const char *what, double sum,
                  double whole, double tolerance)
{
    if (!(fabs(sum - whole) <= tolerance))
        random_fails(v, property, "%s: %.9g of %.9g", what, sum, whole);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Sum of the metrics that begin and end like this, but for those that contain `without`. */
static double sum_of(const struct random_facts *f, const char *begin, const char *end,
                     const char *without)
{
    double sum = 0;
    char **names = run_result_names(f->result, RECORD_METRIC);
    for (char **name = names; *name != NULL; name++)
        if (strlen(*name) >= strlen(begin) + strlen(end) && g_str_has_prefix(*name, begin) &&
            g_str_has_suffix(*name, end) &&
            (without == NULL || strstr(*name + strlen(begin), without) == NULL))
            sum += run_result_value(f->result, *name);
    g_strfreev(names);
    return sum;
}

/* Whether a host's socket has root ports: others have no root complex. */
static bool has_root(const struct random_facts *f, const char *host, unsigned s)
{
    for (unsigned p = 0; *random_word(f, "hosts.%s.ports.[%u].name", host, p) != '\0'; p++)
        if (random_number(f, "hosts.%s.ports.[%u].socket", host, p) == s)
            return true;
    return false;
}

static void socket_parts(const struct random_facts *f, const char *host, unsigned s,
                         struct random_verdict *v)
{
    static const char *const kinds[] = { "dram_read_", "dram_write_" };
    char begin[96], whole[128];
    double kinds_sum, to_sum;
    for (unsigned k = 0; k < 2; k++) {
        snprintf(begin, sizeof(begin), "%s.s%u.%s", host, s, kinds[k]);
        snprintf(whole, sizeof(whole), "%sbytes", begin);
        const double all = random_metric(f, "%s", whole);
        equal(v, "sum_dram", begin, sum_of(f, begin, "_bytes", NULL), all, 0.5);
    }
    snprintf(begin, sizeof(begin), "%s.s%u.interconnect_", host, s);
    snprintf(whole, sizeof(whole), "%sbytes", begin);
    kinds_sum = sum_of(f, begin, "_bytes", "to_s");
    equal(v, "sum_interconnect", begin, kinds_sum, random_metric(f, "%s", whole), 0.5);
    g_strlcat(begin, "to_s", sizeof(begin));
    to_sum = sum_of(f, begin, "_bytes", NULL);
    equal(v, "sum_interconnect", begin, to_sum, random_metric(f, "%s", whole), 0.5);
    snprintf(begin, sizeof(begin), "%s.s%u.root_complex.write_latency_part_ns.", host, s);
    snprintf(whole, sizeof(whole), "%s.s%u.root_complex.write_latency_ns", host, s);
    const double latency = random_metric_if_any(f, "%s", whole); /* no writes: no parts */
    equal(v, "sum_latency", begin, sum_of(f, begin, "", ".ci95"), latency, 1e-6 * latency + 1e-6);
    const double requests = random_metric_if_any(f, "%s.s%u.iommu.requests", host, s);
    snprintf(begin, sizeof(begin), "%s.s%u.iommu.iotlb_", host, s);
    equal(v, "sum_iommu", begin, sum_of(f, begin, "", NULL), requests, 64);
}

static void latency_parts(const struct random_facts *f, struct random_verdict *v)
{
    const bool chase = random_is(f, "workload.type", "memory");
    if (random_is(f, "workload.type", "programs") || random_is(f, "workload.mode", "bandwidth"))
        return;
    const double latency = random_metric(f, chase ? "load_latency_ns" : "latency_mean_ns");
    const double sum = sum_of(f, "latency_part_ns.", "", NULL);
    if (random_is(f, "measure.latency_parts", "true") && latency > 0)
        equal(v, "sum_latency", "latency_part_ns.*", sum, latency, 1e-6 * latency);
}

/* Time of a packet times packets is the time that some whole number of cores was busy. */
static void cpu_parts(const struct random_facts *f, struct random_verdict *v)
{
    if (!random_is(f, "workload.type", "programs") || random_name_at(f, "network", 0) == NULL)
        return;
    const double per_packet_ns = sum_of(f, "cpu_part_ns.", "", NULL);
    const double busy = per_packet_ns * random_metric(f, "packet_rate_kpps") * 1e-6;
    const double utilization = random_metric(f, "cpu_utilization_ratio");
    if (per_packet_ns > 0 && utilization > 0 && random_metric(f, "packet_rate_kpps") > 0) {
        const double cores = busy / utilization;
        equal(v, "sum_cpu", "cpu_part_ns.*, in cores", round(cores), cores, 1e-4 * cores);
    }
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* A TLP has 20 to 28 bytes beside its payload, which is filled up to double words. */
static void wire(const struct random_facts *f, const char *port, struct random_verdict *v)
{
    const double tlps = random_metric(f, "%s.tx.tlps", port);
    const double more = random_metric(f, "%s.tx.tlp_bytes", port) -
                        random_metric(f, "%s.tx.payload_bytes", port);
    if (more < 20 * tlps - 0.5 || more > 27 * tlps + 0.5)
        random_fails(v, "bytes_wire", "%s: %g bytes beside the payload of %g TLPs", port, more,
                     tlps);
}

/* Bytes that a switch's buffers hold at one of its ports, and TLPs half sent. */
static double switch_holds(const struct random_facts *f, const char *chip)
{
    return 16 * (random_device_number(f, chip, "posted_data_credits") +
                 random_device_number(f, chip, "completion_data_credits")) +
           4 * 4096;
}

/* The same of all switches and of the root complexes' receive buffers. */
static double all_hold(const struct random_facts *f)
{
    double bytes = 0;
    const char *name;
    for (unsigned d = 0; (name = random_name_at(f, "devices", d)) != NULL; d++)
        if (strcmp(random_word(f, "devices.%s.type", name), "pcie.switch") == 0)
            bytes += 2 * switch_holds(f, name);
    for (unsigned h = 0; (name = random_name_at(f, "hosts", h)) != NULL; h++) {
        const double credits = random_host_number(f, name, "root_complex.posted_data_credits");
        bytes += 16 * (isfinite(credits) ? credits : 384);
    }
    return bytes;
}

static void through_switch(const struct random_facts *f, const char *chip, struct random_verdict *v)
{
    const unsigned n = (unsigned)random_device_number(f, chip, "downstream_ports");
    double in[2] = { 0, 0 }, out[2] = { 0, 0 }; /* upwards, downwards */
    char port[64], other[64], what[96];
    struct random_link link;
    if (random_metric(f, "%s.peer_to_peer", chip) > 0)
        return;
    for (unsigned p = 0; p <= n; p++) {
        snprintf(port, sizeof(port), "%.50s.p%u", chip, p);
        if (!random_link_of(f, port, &link, other))
            continue;
        in[p == 0] += random_metric(f, "%s.tx.payload_bytes", other);
        out[p != 0] += random_metric(f, "%s.tx.payload_bytes", port);
    }
    for (unsigned way = 0; way < 2; way++) {
        snprintf(what, sizeof(what), "payload %s through %s, out of in", way ? "down" : "up", chip);
        equal(v, "bytes_switch", what, out[way], in[way], (n + 1) * switch_holds(f, chip));
    }
}

/* Lines of DMA that the caches and memory of a host have seen. */
static double lines_of(const struct random_facts *f, const char *host, bool write)
{
    double lines = 0;
    const unsigned n = (unsigned)random_host_number(f, host, "cpu.sockets");
    /* A line that is kept and written home, both, is counted as either. */
    const bool both = strcmp(random_word(f, "hosts.%s.cache.ddio", host), "false") != 0 &&
                      strcmp(random_word(f, "hosts.%s.coherence.remote_dma_write", host),
                             "own_then_both") == 0;
    for (unsigned s = 0; s < n; s++) /* page walks read memory, too */
        lines += write ? random_metric(f, "%s.s%u.dma_write_updates", host, s) +
                             random_metric(f, "%s.s%u.dma_write_allocates", host, s) +
                             (both ? 0 : random_metric(f, "%s.s%u.dma_write_to_dram", host, s))
                       : random_metric(f, "%s.s%u.dma_read_hits", host, s) +
                             random_metric(f, "%s.s%u.dma_read_misses", host, s) -
                             random_metric_if_any(f, "%s.s%u.iommu.walk_reads", host, s);
    return lines;
}

static double root_bytes(const struct random_facts *f, const char *host, bool write)
{
    double bytes = 0;
    for (unsigned s = 0; s < (unsigned)random_host_number(f, host, "cpu.sockets"); s++)
        if (has_root(f, host, s))
            bytes += random_metric(f, "%s.s%u.root_complex.%s", host, s,
                                   write ? "write_bytes" : "read_bytes");
    return bytes;
}

/* What the adapter of pcie_bench moved, its root complex and the memory system. */
static void bench_bytes(const struct random_facts *f, struct random_verdict *v)
{
    const double transfer = random_number(f, "workload.transfer_bytes");
    const double depth = random_is(f, "workload.measure", "bandwidth")
                             ? random_number(f, "workload.queue_depth")
                             : 1;
    const char *host = random_word(f, "workload.host"), *device = random_word(f, "workload.device");
    /* What is read is under way until it has arrived, however many buffers there are. */
    const double reads = depth * transfer + 4096, writes = reads + all_hold(f);
    if (fmod(transfer, LINE) != 0)
        return;
    for (unsigned write = 0; write < 2; write++) {
        const char *what = write ? "write" : "read";
        const double root = root_bytes(f, host, write);
        equal(v, "bytes_dma", what, random_metric(f, "%s.dma_%s_bytes", device, what), root,
              write ? writes : reads);
        equal(v, "bytes_lines", what, lines_of(f, host, write) * LINE, root,
              write ? writes : reads);
    }
    const double directions = random_is(f, "workload.op", "read_write") ||
                                      random_is(f, "workload.op", "write_read")
                                  ? 2
                                  : 1;
    const double measured = random_metric(f, "transactions") * transfer *
                            (random_is(f, "workload.op", "write_read") ? 2 : 1);
    equal(v, "bytes_measured", "transactions of the adapter's bytes", measured,
          random_metric(f, "%s.dma_read_bytes", device) +
              random_metric(f, "%s.dma_write_bytes", device),
          directions * depth * transfer + 4096);
}

/* What all programs of device_dma report, the adapters and the host whose memory it is. */
static void program_bytes(const struct random_facts *f, struct random_verdict *v)
{
    const double duration_ns = random_duration_ns(f);
    const char *name, *host = NULL;
    double reported[2] = { 0, 0 }, moved[2] = { 0, 0 }, queued[2] = { 16384, 16384 };
    for (unsigned i = 0; (name = random_name_at(f, "programs", i)) != NULL; i++) {
        if (strcmp(random_word(f, "programs.%s.type", name), "device_dma") != 0)
            return;
        const unsigned write = strcmp(random_word(f, "programs.%s.direction", name), "write") == 0;
        const char *device = random_word(f, "programs.%s.device", name);
        host = random_word(f, "programs.%s.on", name);
        reported[write] += random_metric(f, "%s.throughput_gbyte_s", name) * duration_ns;
        moved[write] += random_metric(f, "%s.dma_%s_bytes", device, write ? "write" : "read");
        queued[write] += random_number(f, "programs.%s.queue_depth", name) *
                         random_number(f, "programs.%s.transfer_bytes", name);
    }
    if (host == NULL || strcmp(random_word(f, "lending.%s.host", host), host) != 0)
        return;
    for (unsigned write = 0; write < 2; write++) {
        const char *what = write ? "write" : "read";
        /* Reads under way are queued ones; written bytes may be in buffers beside. */
        const double under_way = queued[write] + (write ? all_hold(f) : 0);
        equal(v, "bytes_measured", what, reported[write], moved[write], queued[write]);
        equal(v, "bytes_dma", what, moved[write], root_bytes(f, host, write), under_way);
    }
}

/* What goes from a root port of one socket to that of another crosses the interconnect. */
static void between_sockets(const struct random_facts *f, const char *host,
                            struct random_verdict *v)
{
    double crossed = 0, peers[2];
    if (!has_root(f, host, 0) || !has_root(f, host, 1))
        return;
    for (unsigned s = 0; s < 2; s++) {
        peers[s] = random_metric(f, "%s.s%u.root_complex.p2p_tlps", host, s);
        crossed += random_metric(f, "%s.s%u.interconnect_bytes", host, s);
    }
    /* Both sockets forward: the way leads over both. */
    const double tlps = fmin(peers[0], peers[1]);
    if (tlps > 100 && crossed < 8 * tlps)
        random_fails(v, "bytes_p2p",
                     "%s: %g TLPs went between root ports of both sockets, %g "
                     "bytes over the interconnect",
                     host, tlps, crossed);
}

/* Frames of a cable arrive. */
static void network_bytes(const struct random_facts *f, struct random_verdict *v)
{
    static const char *const nic[] = { "nic", "client_nic" };
    for (unsigned i = 0; i < 2; i++) {
        const double sent = random_metric(f, "%s.pf0_tx_bytes", nic[i]),
                     arrived = random_metric(f, "%s.pf0_rx_bytes", nic[1 - i]) +
                               9600 * (random_metric(f, "%s.pf0_rx_no_buffer", nic[1 - i]) +
                                       random_metric(f, "%s.pf0_rx_overflow", nic[1 - i]) +
                                       random_metric(f, "%s.rx_filtered", nic[1 - i]));
        if (arrived < sent - 600000 ||
            random_metric(f, "%s.pf0_rx_bytes", nic[1 - i]) > sent + 600000)
            random_fails(v, "bytes_network", "%s sent %g bytes, %g arrived", nic[i], sent, arrived);
    }
}

void random_sums(const struct random_facts *f, struct random_verdict *v)
{
    struct random_link link;
    const char *name;
    for (unsigned h = 0; (name = random_name_at(f, "hosts", h)) != NULL; h++) {
        for (unsigned s = 0; s < (unsigned)random_host_number(f, name, "cpu.sockets"); s++)
            socket_parts(f, name, s, v);
        between_sockets(f, name, v);
    }
    latency_parts(f, v);
    cpu_parts(f, v);
    for (unsigned i = 0; random_link_at(f, i, &link); i++) {
        wire(f, link.end[0], v);
        wire(f, link.end[1], v);
    }
    for (unsigned d = 0; (name = random_name_at(f, "devices", d)) != NULL; d++)
        if (strcmp(random_word(f, "devices.%s.type", name), "pcie.switch") == 0)
            through_switch(f, name, v);
    if (random_is(f, "workload.type", "pcie_bench"))
        bench_bytes(f, v);
    else if (random_duration_ns(f) > 0)
        program_bytes(f, v);
    if (random_name_at(f, "network", 0) != NULL)
        network_bytes(f, v);
}
