/*
 * Nothing carries more than its bound. Bounds come from the settings alone: a lane's rate and
 * encoding, channels x transfers x bytes, flits of the interconnect, the bit rate of Ethernet. What
 * a window may hold beyond rate x time is what was counted before it was carried: queues whose
 * sizes are settings, too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_properties.h"

#define LINE 64.0

static void bounded(struct random_verdict *v, const char *property, const char *what, double bytes,
                    double gbyte_s, double duration_ns, double queued_bytes)
{
    if (bytes > gbyte_s * duration_ns * 1.001 + queued_bytes)
        random_fails(v, property, "%s: %.4g GB/s of %.4g GB/s (%.0f bytes in %.1f us)", what,
                     bytes / duration_ns, gbyte_s, bytes, duration_ns / 1e3);
}

static void links(const struct random_facts *f, double duration_ns, struct random_verdict *v)
{
    struct random_link link;
    char what[96];
    /* A port counts a TLP when it is put on the wire's schedule, one of each class ahead. */
    const double queued = 3 * (4096 + 28);
    for (unsigned i = 0; random_link_at(f, i, &link); i++)
        for (unsigned e = 0; e < 2; e++) {
            const double bytes = random_metric(f, "%s.tx.tlp_bytes", link.end[e]) +
                                 8 * random_metric(f, "%s.tx.dllps", link.end[e]);
            snprintf(what, sizeof(what), "%s, sent, Gen%u x%u", link.end[e], link.generation,
                     link.lanes);
            bounded(v, "peak_link", what, bytes, link.gbyte_s, duration_ns, queued);
        }
}

static void memory(const struct random_facts *f, const char *host, double duration_ns,
                   struct random_verdict *v)
{
    const double sockets = random_host_number(f, host, "cpu.sockets");
    const double channels = random_host_number(f, host, "dram.channels");
    const double gbyte_s = channels * random_host_number(f, host, "dram.rate_mt_s") / 1e3 *
                           random_host_number(f, host, "dram.bus_bytes");
    const double queue = random_host_number(f, host, "dram.write_queue");
    /* Writes that wait in a channel's queue, and as many reads. */
    const double queued = 2 * channels * queue * LINE;
    char what[64];
    for (unsigned s = 0; s < (unsigned)sockets; s++) {
        const double bytes = random_metric(f, "%s.s%u.dram_read_bytes", host, s) +
                             random_metric(f, "%s.s%u.dram_write_bytes", host, s);
        snprintf(what, sizeof(what), "DRAM of %s.s%u", host, s);
        bounded(v, "peak_dram", what, bytes, gbyte_s, duration_ns, queued);
    }
}

static void interconnect(const struct random_facts *f, const char *host, double duration_ns,
                         struct random_verdict *v)
{
    const unsigned sockets = (unsigned)random_host_number(f, host, "cpu.sockets");
    const double flits_ns = random_host_number(f, host, "interconnect.links") *
                            random_host_number(f, host, "interconnect.rate_gt_s") *
                            random_host_number(f, host, "interconnect.lanes") /
                            random_host_number(f, host, "interconnect.flit_bits");
    const double gbyte_s = flits_ns *
                           random_host_number(f, host, "interconnect.flit_payload_bytes");
    char what[64];
    for (unsigned from = 0; from < sockets; from++)
        for (unsigned to = 0; to < sockets; to++) {
            snprintf(what, sizeof(what), "interconnect of %s, s%u to s%u", host, from, to);
            bounded(v, "peak_interconnect", what,
                    random_metric(f, "%s.s%u.interconnect_to_s%u_bytes", host, from, to), gbyte_s,
                    duration_ns, 128 * LINE);
        }
}

static void ethernet(const struct random_facts *f, double duration_ns, struct random_verdict *v)
{
    for (unsigned c = 0;; c++) {
        const char *from = random_word(f, "cables.[%u].from", c);
        const double gbyte_s = random_number(f, "cables.[%u].rate_gbit_s", c) / 8;
        if (*from == '\0')
            return;
        if (!(gbyte_s > 0))
            continue;
        const char *end[2] = { from, random_word(f, "cables.[%u].to", c) };
        for (unsigned e = 0; e < 2; e++)
            bounded(v, "peak_ethernet", end[e], random_metric(f, "%s.tx.bytes", end[e]), gbyte_s,
                    duration_ns, 9640);
        bounded(v, "peak_ethernet", "throughput of the programs",
                random_metric(f, "throughput_gbit_s") / 8 * duration_ns, gbyte_s, duration_ns,
                64 * 1538); /* of pktgen, whose packets come to an end by the batch */
    }
}

/* What a device's program reports, against the device's link; an operation that ends in the window
 * has begun before. */
static void program_on(const struct random_facts *f, const char *what, const char *device,
                       double gbyte_s, double transfer_bytes, struct random_verdict *v)
{
    struct random_link link;
    char port[64], other[64];
    snprintf(port, sizeof(port), "%.50s.p0", device);
    const double edge = 2 * transfer_bytes / (1e3 * random_number(f, "measure.duration_us"));
    if (random_link_of(f, port, &link, other) && gbyte_s > link.gbyte_s * 1.001 + edge)
        random_fails(v, "peak_program", "%s: %.4g GB/s through %s, Gen%u x%u, of %.4g GB/s", what,
                     gbyte_s, port, link.generation, link.lanes, link.gbyte_s);
}

static void programs(const struct random_facts *f, struct random_verdict *v)
{
    const char *name;
    if (random_is(f, "workload.type", "pcie_bench"))
        program_on(f, "pcie_bench", random_word(f, "workload.device"),
                   random_metric(f, "throughput_gbit_s") / 8,
                   random_number(f, "workload.transfer_bytes"), v);
    for (unsigned i = 0; (name = random_name_at(f, "programs", i)) != NULL; i++) {
        const char *type = random_word(f, "programs.%s.type", name);
        if (strcmp(type, "device_dma") == 0)
            program_on(f, name, random_word(f, "programs.%s.device", name),
                       random_metric(f, "%s.throughput_gbyte_s", name),
                       random_number(f, "programs.%s.transfer_bytes", name), v);
        else if (strcmp(type, "fio") == 0 && random_number(f, "programs.%s.read_ratio", name) == 1)
            program_on(f, name, random_word(f, "programs.%s.device", name),
                       random_metric(f, "throughput_gbyte_s"),
                       random_number(f, "programs.%s.block_bytes", name), v);
        else if (strcmp(type, "bandwidth_test") == 0)
            program_on(f, name, random_word(f, "programs.%s.gpu", name),
                       random_metric(f, "throughput_max_gbyte_s"), 0, v);
        else if (strcmp(type, "ntb_dma") == 0)
            program_on(f, name, "n0", random_metric(f, "throughput_gbyte_s"), 0, v);
    }
}

/* An NVMe device's media and its command rate. */
static void media(const struct random_facts *f, const char *device, double duration_ns,
                  struct random_verdict *v)
{
    const double reads = random_metric(f, "%s.reads", device),
                 writes = random_metric(f, "%s.writes", device),
                 interval_ns = random_device_number(f, device, "command_interval_ns");
    if (!(interval_ns >= 0))
        return;
    bounded(v, "peak_media", device, random_metric(f, "%s.read_bytes", device),
            random_device_number(f, device, "read_gbyte_s"), duration_ns, 128 * 4096);
    if ((reads + writes - 128) * interval_ns > duration_ns)
        random_fails(v, "peak_media", "%s: %g commands in %.1f us, one each %g ns", device,
                     reads + writes, duration_ns / 1e3, interval_ns);
}

void random_peaks(const struct random_facts *f, struct random_verdict *v)
{
    const double duration_ns = random_duration_ns(f);
    const char *name;
    programs(f, v);
    if (!(duration_ns > 0))
        return;
    for (unsigned h = 0; (name = random_name_at(f, "hosts", h)) != NULL; h++) {
        memory(f, name, duration_ns, v);
        interconnect(f, name, duration_ns, v);
    }
    links(f, duration_ns, v);
    ethernet(f, duration_ns, v);
    for (unsigned d = 0; (name = random_name_at(f, "devices", d)) != NULL; d++)
        if (strcmp(random_word(f, "devices.%s.type", name), "nvme.controller") == 0)
            media(f, name, duration_ns, v);
    if (random_metric_if_any(f, "cpu_utilization_ratio") > 1.0 + 1e-9)
        random_fails(v, "peak_cpu", "cpu_utilization_ratio %g",
                     random_metric(f, "cpu_utilization_ratio"));
}
