/*
 * What queues: Little's law (operations under way = rate x latency, J. D. C. Little, Operations
 * Research 9(3), 1961), shares of equals below one switch, a cache that a buffer fits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_properties.h"

/* Operations that began before the window count in it with their whole latency: an error of up to
 * one latency in the time. `between_ns`: time of an operation that is not in its latency. */
static void little(struct random_verdict *v, const char *what, double per_ns, double latency_ns,
                   double between_ns, double depth, double duration_ns)
{
    const double edge = latency_ns / duration_ns, under_way = per_ns * latency_ns;
    const double least = depth * latency_ns / (latency_ns + between_ns);
    if (!(latency_ns > 0) || edge > 0.3)
        return;
    if (under_way > depth * (1.05 + 1.5 * edge) || under_way < least * (0.95 - 1.5 * edge))
        random_fails(v, "little", "%s: %.4g under way by rate and latency (%.4g ns), %g by depth",
                     what, under_way, latency_ns, depth);
}

static void bench(const struct random_facts *f, double duration_ns, struct random_verdict *v)
{
    const double per_ns = random_metric(f, "transactions") / duration_ns;
    const double latency_ns = random_metric(f, "latency_mean_ns");
    const double depth = random_number(f, "workload.queue_depth") *
                         (random_is(f, "workload.op", "read_write") ? 2 : 1);
    /* The queue has come to its length before the window begins. */
    if (depth / per_ns > 500 * random_number(f, "measure.warmup_us"))
        return;
    if (random_is(f, "workload.measure", "bandwidth"))
        little(v, "pcie_bench", per_ns, latency_ns, 0, depth, duration_ns);
    else
        little(v, "pcie_bench", per_ns, latency_ns, 1e9, 1, duration_ns);
}

static void chase(const struct random_facts *f, double duration_ns, struct random_verdict *v)
{
    const double per_ns = random_metric(f, "read_gbyte_s") / 64;
    const double cores = fmax(1, random_number(f, "workload.cores"));
    const char *host = random_word(f, "workload.host");
    const double buffer = random_number(f, "workload.buffer_bytes");
    if (!random_is(f, "workload.mode", "latency"))
        return;
    little(v, "pointer chase", per_ns, random_metric(f, "load_latency_ns"), 0, cores, duration_ns);
    double read = 0;
    for (unsigned s = 0; s < (unsigned)random_host_number(f, host, "cpu.sockets"); s++)
        read += random_metric(f, "%s.s%u.dram_read_load_bytes", host, s);
    /* Of the private cache: in a shared one, others' lines may take the place. */
    if (2 * buffer <= random_host_number(f, host, "cache.l2_size") &&
        random_host_number(f, host, "cache.l2_cores") == 1 &&
        read > 0.05 * random_metric(f, "read_gbyte_s") * duration_ns + 64)
        random_fails(v, "warm", "a chase over %g bytes, within an L2, reads %g bytes of DRAM of %g",
                     buffer, read, random_metric(f, "read_gbyte_s") * duration_ns);
}

static void disk(const struct random_facts *f, const char *name, double duration_ns,
                 struct random_verdict *v)
{
    const double depth = random_number(f, "programs.%s.jobs", name) *
                         random_number(f, "programs.%s.queue_depth", name);
    /* The program's own time and that of the system calls; it does nothing else between requests
     * that it waits for. With a queue nothing is between: a slot is taken again when it is reaped.
     */
    const double between_ns = random_number(f, "programs.%s.queue_depth", name) == 1 ? 5000 : 0;
    little(v, name, random_metric(f, "iops") * 1e-9, random_metric(f, "latency_mean_ns"),
           between_ns, depth, duration_ns);
}

/* ---- Shares ---------------------------------------------------------------------------------- */

/* Whether two groups have the same settings, but for the names of devices. */
static bool alike(const struct random_facts *f, const char *group, const char *a, const char *b)
{
    GHashTableIter at;
    gpointer path, value;
    char begin[96], other[200];
    snprintf(begin, sizeof(begin), "%s.%s.", group, a);
    g_hash_table_iter_init(&at, f->setting);
    while (g_hash_table_iter_next(&at, &path, &value)) {
        if (!g_str_has_prefix(path, begin) || g_str_has_suffix(path, ".device"))
            continue;
        snprintf(other, sizeof(other), "%s.%s.%s", group, b, (char *)path + strlen(begin));
        if (strcmp(random_word(f, "%s", other), value) != 0)
            return false;
    }
    return true;
}

/* Two programs of device_dma do the same with adapters that are alike, below one switch. */
static bool equals(const struct random_facts *f, const char *a, const char *b)
{
    char device[2][64], port[64], other[2][64], chip[2][64];
    const char *const name[2] = { a, b };
    struct random_link link[2];
    for (unsigned i = 0; i < 2; i++) {
        g_strlcpy(device[i], random_word(f, "programs.%s.device", name[i]), 64);
        snprintf(port, sizeof(port), "%.50s.p0", device[i]);
        if (strcmp(random_word(f, "programs.%s.type", name[i]), "device_dma") != 0 ||
            !random_link_of(f, port, &link[i], other[i]))
            return false;
        random_owner(other[i], chip[i]);
    }
    return strcmp(chip[0], chip[1]) == 0 && link[0].lanes == link[1].lanes &&
           link[0].generation == link[1].generation &&
           strcmp(random_word(f, "devices.%s.type", chip[0]), "pcie.switch") == 0 &&
           alike(f, "programs", a, b) && alike(f, "devices", device[0], device[1]);
}

/* Whether what all adapters have queued passes more than twice in the warm-up, and in the
 * window. */
static bool settled(const struct random_facts *f)
{
    double queued = 0, gbyte_s = 0;
    const char *name;
    if (random_name_at(f, "programs", 0) == NULL)
        return true;
    for (unsigned i = 0; (name = random_name_at(f, "programs", i)) != NULL; i++) {
        if (strcmp(random_word(f, "programs.%s.type", name), "device_dma") != 0)
            return true;
        queued += random_number(f, "programs.%s.queue_depth", name) *
                  random_number(f, "programs.%s.transfer_bytes", name);
        gbyte_s += random_metric(f, "%s.throughput_gbyte_s", name);
    }
    return gbyte_s > 0 &&
           2 * queued / gbyte_s < 1e3 * fmin(random_number(f, "measure.warmup_us"),
                                             random_number(f, "measure.duration_us"));
}

static void shares(const struct random_facts *f, double duration_ns, struct random_verdict *v)
{
    const char *a, *b;
    for (unsigned i = 0; (a = random_name_at(f, "programs", i)) != NULL; i++)
        for (unsigned k = i + 1; (b = random_name_at(f, "programs", k)) != NULL; k++) {
            if (!equals(f, a, b))
                continue;
            const double x = random_metric(f, "%s.throughput_gbyte_s", a),
                         y = random_metric(f, "%s.throughput_gbyte_s", b),
                         n = (x + y) * duration_ns /
                             random_number(f, "programs.%s.transfer_bytes", a);
            /* A transfer of each that ends beside the window. */
            const double edge = n > 0 ? 4 / n : 1;
            if (n >= 20 && fmin(x, y) < (0.7 - edge) * fmax(x, y))
                random_fails(v, "fair", "%s gets %.4g GB/s and %s %.4g GB/s", a, x, b, y);
        }
}

static void adapters(const struct random_facts *f, const char *name, double duration_ns,
                     struct random_verdict *v)
{
    const double transfer = random_number(f, "programs.%s.transfer_bytes", name);
    const double gbyte_s = random_metric(f, "%s.throughput_gbyte_s", name);
    if (gbyte_s * duration_ns / transfer >= 20)
        little(v, name, gbyte_s / transfer, random_metric(f, "%s.latency_mean_ns", name), 0,
               random_number(f, "programs.%s.queue_depth", name), duration_ns);
}

void random_loads(const struct random_facts *f, struct random_verdict *v)
{
    const double duration_ns = random_duration_ns(f);
    const char *name;
    if (!(duration_ns > 0) || !settled(f))
        return;
    if (random_is(f, "workload.type", "pcie_bench"))
        bench(f, duration_ns, v);
    if (random_is(f, "workload.type", "memory"))
        chase(f, duration_ns, v);
    for (unsigned i = 0; (name = random_name_at(f, "programs", i)) != NULL; i++) {
        const char *type = random_word(f, "programs.%s.type", name);
        if (strcmp(type, "fio") == 0)
            disk(f, name, duration_ns, v);
        else if (strcmp(type, "device_dma") == 0)
            adapters(f, name, duration_ns, v);
    }
    shares(f, duration_ns, v);
}
