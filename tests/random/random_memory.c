/* memory: cores of a socket read memory of any socket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_generate.h"

void random_make_memory(uint64_t seed, struct random_scenario *s)
{
    struct random_maker m;
    random_maker_init(&m, seed, "memory", s);
    const struct random_host host = { "server", PICK(&m, 1, 2, 4), PICK(&m, 1, 2, 4), 0 };
    const char *mode = PICK_WORD(&m, "latency", "bandwidth", "bandwidth", "loaded");
    const bool streams = strcmp(mode, "bandwidth") == 0;
    const char *metric = streams ? "read_gbyte_s" : "load_latency_ns";
    const unsigned cores = 1 + (unsigned)sim_random_below(&m.random, host.cores);
    random_host(&m, &host);
    random_put(s, "workload.type", "\"memory\"");
    random_put(s, "workload.mode", "\"%s\"", mode);
    random_put(s, "workload.cores", "%u", cores);
    random_put(s, "workload.from_socket", "%u", PICK(&m, 0, 1, 3) % host.sockets);
    random_put(s, "workload.to_socket", "%u", PICK(&m, 0, 1, 2) % host.sockets);
    const unsigned buffer_bytes = PICK(&m, 16384, 65536, 262144, 16777216, 67108864);
    random_put(s, "workload.buffer_bytes", "%u", buffer_bytes);
    random_put(s, "measure.warmup_us", "%u", PICK(&m, 20, 60));
    random_put(s, "measure.duration_us", "%u", PICK(&m, 20, 60));
    if (!streams && random_once_in(&m, 2))
        random_put(s, "measure.latency_parts", "true");
    if (buffer_bytes >= 16777216) /* of a smaller one parts may be in caches, by chance */
        random_offer_memory(&m, &host, metric);
    /* Not where another core's buffer may be the one that a cache has no room for. */
    if (streams && cores < host.cores && buffer_bytes >= 16777216)
        random_offer(&m, RANDOM_NOT_WORSE, metric, 0.03, "workload.cores", "%u", cores + 1);
    random_take_pair(&m);
}
