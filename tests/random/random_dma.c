/* pcie_bench: an adapter below 0 to 3 switches reads and writes a window of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_generate.h"

static void put_workload(struct random_maker *m, const struct random_host *host, bool bandwidth)
{
    struct random_scenario *s = m->s;
    const unsigned bytes = PICK(m, 64, 128, 256, 512, 1024, 4096, 100, 8);
    random_put(s, "workload.type", "\"pcie_bench\"");
    random_put(s, "workload.device", "\"nfp\"");
    random_put(s, "workload.host", "\"%s\"", host->name);
    random_put(s, "workload.measure", "\"%s\"", bandwidth ? "bandwidth" : "latency");
    random_put(s, "workload.op", "\"%s\"",
               PICK_WORD(m, "read", "write", bandwidth ? "read_write" : "write_read"));
    random_put(s, "workload.cache", "\"%s\"", PICK_WORD(m, "cold", "host_warm", "device_warm"));
    random_put(s, "workload.pattern", "\"%s\"", PICK_WORD(m, "random", "sequential"));
    random_put(s, "workload.transfer_bytes", "%u", bytes);
    random_put(s, "workload.window_bytes", "%u", PICK(m, 8192, 65536, 1048576, 8388608));
    random_put(s, "workload.memory_socket", "%u", PICK(m, 0, 0, 1, 3) % host->sockets);
    if (bandwidth)
        random_put(s, "workload.queue_depth", "%u", PICK(m, 1, 4, 16, 64, 256));
    else if (bytes <= 64 && random_once_in(m, 2))
        random_put(s, "workload.interface", "\"command\"");
    random_put(s, "measure.warmup_us", "%u", PICK(m, 10, 20));
    random_put(s, "measure.duration_us", "%u", PICK(m, 400, 800));
    random_put(s, "measure.latency_parts", "%s", random_once_in(m, 2) ? "true" : "false");
}

void random_make_dma(uint64_t seed, struct random_scenario *s)
{
    struct random_maker m;
    random_maker_init(&m, seed, "dma", s);
    const struct random_host host = { "server", PICK(&m, 1, 2, 2, 4), PICK(&m, 1, 2), 1 };
    const bool bandwidth = !random_once_in(&m, 4);
    random_host(&m, &host);
    random_requester(&m, "nfp");
    char *port = random_port(&host, 0);
    const unsigned depth = PICK(&m, 0, 0, 1, 1, 2, 3);
    char *last = random_chain(&m, port, "sw", depth, 1), *from = random_chain_port(last, 1);
    random_cable(&m, from, "nfp.p0", 0);
    put_workload(&m, &host, bandwidth);
    const char *metric = bandwidth ? "throughput_gbit_s" : "latency_mean_ns";
    random_offer_links(&m, metric);
    random_offer_memory(&m, &host, metric);
    if (bandwidth) {
        const unsigned depth_queue = (unsigned)atoi(random_get(s, "workload.queue_depth"));
        random_offer(&m, RANDOM_NOT_WORSE, metric, 0.03, "workload.queue_depth", "%u",
                     2 * depth_queue);
    }
    const unsigned ways = (unsigned)atoi(random_get(s, "hosts.server.cache.ddio_ways"));
    if (2 * ways <= (unsigned)atoi(random_get(s, "hosts.server.cache.llc_ways")))
        random_offer(&m, RANDOM_NOT_WORSE, metric, 0.03, "hosts.server.cache.ddio_ways", "%u",
                     2 * ways);
    random_take_pair(&m);
    g_free(from);
    g_free(last);
    g_free(port);
}
