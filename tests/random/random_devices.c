/* Devices of one host and their drivers: 1 to 4 adapters below a switch, an NVMe device, a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_generate.h"

static void put_measure(struct random_maker *m)
{
    random_put(m->s, "workload.type", "\"programs\"");
    random_put(m->s, "workload.measured", "\"server\"");
    random_put(m->s, "lending.server.host", "\"server\"");
}

static void put_in(struct random_scenario *s, const char *group, const char *key, const char *value)
{
    char path[RANDOM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s.%s", group, key);
    random_put(s, path, "%s", value);
}

/* n adapters with the same settings, each with a cable of its own of the same kind: where
 * arbitration is fair all get the same. Returns n. */
static unsigned adapters(struct random_maker *m, const char *port)
{
    struct random_scenario *s = m->s;
    const unsigned n = PICK(m, 1, 2, 3, 4);
    const unsigned depth = n > 1 ? PICK(m, 1, 1, 2) : PICK(m, 0, 1, 2);
    char *below = random_chain(m, port, "sw", depth, n);
    const unsigned bytes = PICK(m, 256, 1024, 2048), queue = PICK(m, 1, 8, 16);
    const char *direction = PICK_WORD(m, "read", "write", "mixed");
    const unsigned first_cable = m->n_cables;
    random_requester(m, "d0");
    const unsigned of_first = s->n;
    for (unsigned d = 0; d < n; d++) {
        char name[32], path[RANDOM_PATH_BYTES], to[32], *from;
        snprintf(name, sizeof(name), "devices.d%u", d);
        for (unsigned i = 0; d != 0 && i < of_first; i++)
            if (g_str_has_prefix(s->setting[i].path, "devices.d0."))
                put_in(s, name, strrchr(s->setting[i].path, '.') + 1, s->setting[i].value);
        from = random_chain_port(below, d + 1);
        snprintf(to, sizeof(to), "d%u.p0", d);
        random_cable(m, from, to, 0);
        for (unsigned k = 0; d != 0 && k < 3; k++) {
            static const char *const keys[] = { "lanes", "generation", "latency_ns" };
            char as[RANDOM_PATH_BYTES];
            snprintf(path, sizeof(path), "cables.[%u].%s", first_cable + d, keys[k]);
            snprintf(as, sizeof(as), "cables.[%u].%s", first_cable, keys[k]);
            random_put(s, path, "%s", random_get(s, as));
        }
        snprintf(name, sizeof(name), "programs.a%u", d);
        put_in(s, name, "type", "\"device_dma\"");
        put_in(s, name, "on", "\"server\"");
        snprintf(path, sizeof(path), "\"d%u\"", d);
        put_in(s, name, "device", path);
        snprintf(path, sizeof(path), "\"%s\"",
                 strcmp(direction, "mixed") != 0 ? direction
                 : d % 2 == 0                    ? "read"
                                                 : "write");
        put_in(s, name, "direction", path);
        snprintf(path, sizeof(path), "%u", bytes);
        put_in(s, name, "transfer_bytes", path);
        snprintf(path, sizeof(path), "%u", queue);
        put_in(s, name, "queue_depth", path);
        put_in(s, name, "buffer_bytes", "65536");
        g_free(from);
    }
    random_settle(m);
    g_free(below);
    return n;
}

static void disk(struct random_maker *m, const char *port)
{
    struct random_scenario *s = m->s;
    const unsigned jobs = PICK(m, 1, 2);
    char *chain = random_chain(m, port, "sw", PICK(m, 0, 0, 1), 1),
         *below = random_chain_port(chain, 1);
    random_put(s, "devices.ssd.type", "\"nvme.controller\"");
    random_put(s, "devices.ssd.generation", "5");
    random_put(s, "devices.ssd.lanes", "16");
    random_put(s, "devices.ssd.capacity_bytes", "\"1 GiB\"");
    random_put(s, "devices.ssd.channels", "%u", PICK(m, 1, 4, 7));
    random_put(s, "devices.ssd.read_gbyte_s", "%s", PICK_WORD(m, "0.5", "2.4"));
    random_put(s, "devices.ssd.write_gbyte_s", "%s", PICK_WORD(m, "0.5", "2.0"));
    random_put(s, "devices.ssd.command_interval_ns", "%u", PICK(m, 500, 1700));
    random_put(s, "devices.ssd.read_latency_ns", "%u", PICK(m, 4200, 20000));
    random_cable(m, below, "ssd.p0", 0);
    random_put(s, "programs.f.type", "\"fio\"");
    random_put(s, "programs.f.on", "\"server\"");
    random_put(s, "programs.f.jobs", "%u", jobs);
    random_put(s, "programs.f.queue_depth", "%u", PICK(m, 1, 2, 8, 32));
    random_put(s, "programs.f.block_bytes", "%u", PICK(m, 512, 4096, 8192));
    random_put(s, "programs.f.read_ratio", "%s", PICK_WORD(m, "1.0", "1.0", "0.5"));
    random_put(s, "programs.f.span_bytes", "2097152");
    /* The span is written first, at 0.5 GB/s at least. */
    random_put(s, "measure.warmup_us", "20000");
    random_put(s, "measure.duration_us", "4000");
    const char *const metric = "throughput_gbyte_s";
    const unsigned queue = (unsigned)atoi(random_get(s, "programs.f.queue_depth"));
    random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, "programs.f.queue_depth", "%u", 2 * queue);
    random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, "devices.ssd.command_interval_ns", "250");
    random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, "devices.ssd.read_latency_ns", "2000");
    g_free(below);
    g_free(chain);
}

static void gpu(struct random_maker *m, const char *port, const char *second)
{
    struct random_scenario *s = m->s;
    const bool peer = second != NULL && random_once_in(m, 2);
    random_put(s, "hosts.server.firmware.mmio_high_base_bytes", "\"512 GiB\"");
    random_put(s, "devices.gpu0.type", "\"gpu.cuda\"");
    random_put(s, "devices.gpu0.generation", "5");
    random_cable(m, port, "gpu0.p0", 0);
    if (peer) {
        random_put(s, "devices.gpu1.type", "\"gpu.cuda\"");
        random_put(s, "devices.gpu1.generation", "5");
        random_cable(m, second, "gpu1.p0", 0);
        /* A latency costs no throughput as long as no credits run out meanwhile. */
        random_put(s, "hosts.server.root_complex.posted_data_credits", "2000");
        random_put(s, "hosts.server.root_complex.posted_header_credits", "127");
        random_offer(m, RANDOM_SAME, "throughput_gbyte_s", 0.05,
                     "hosts.server.root_complex.p2p_socket_ns", "%u", PICK(m, 20, 100));
    }
    random_put(s, "programs.b.type", "\"bandwidth_test\"");
    random_put(s, "programs.b.host", "\"server\"");
    random_put(s, "programs.b.direction", "\"%s\"", peer ? "peer" : PICK_WORD(m, "read", "write"));
    random_put(s, "programs.b.timing", "\"%s\"", PICK_WORD(m, "spin", "interrupt", "events"));
    random_put(s, "programs.b.transfer_bytes", "%u", PICK(m, 65536, 262144));
    random_put(s, "programs.b.iterations", "4");
    random_put(s, "measure.warmup_us", "0");
    random_put(s, "measure.duration_us", "1000000");
}

void random_make_devices(uint64_t seed, struct random_scenario *s)
{
    struct random_maker m;
    random_maker_init(&m, seed, "devices", s);
    const struct random_host host = { "server", PICK(&m, 1, 2, 2), 4, 2 };
    random_host(&m, &host);
    put_measure(&m);
    char *port = random_port(&host, 0), *second = random_port(&host, 1);
    const unsigned kind = PICK(&m, 0, 0, 0, 1, 1, 2);
    bool alone = true;
    if (kind == 0)
        alone = adapters(&m, port) == 1;
    else if (kind == 1)
        disk(&m, port);
    else
        gpu(&m, port, second);
    /* Where several share, what one of them gets more may cost the others more than that. */
    if (alone) {
        random_offer_links(&m, "throughput_gbyte_s");
        random_offer_memory(&m, &host, "throughput_gbyte_s");
    }
    random_take_pair(&m);
    g_free(second);
    g_free(port);
}
