/* Two hosts, their NICs and an Ethernet cable: TCP in either direction, packets of one core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_generate.h"

static void nic(struct random_maker *m, const char *name)
{
    char path[RANDOM_PATH_BYTES];
    static const char *const keys[] = { "type", "generation", "lanes" };
    static const char *const values[] = { "\"nic.ethernet\"", "5", "16" };
    for (unsigned k = 0; k < SIM_N_ELEMENTS(keys); k++) {
        snprintf(path, sizeof(path), "devices.%s.%s", name, keys[k]);
        random_put(m->s, path, "%s", values[k]);
    }
    snprintf(path, sizeof(path), "devices.%s.mps_bytes", name);
    random_put(m->s, path, "%u", PICK(m, 128, 256, 512));
}

static void put_network(struct random_maker *m, const char *host, const char *device)
{
    static const char *const switches[] = { "gro", "tso", "lro", "arfs", "xps" };
    char path[RANDOM_PATH_BYTES];
    snprintf(path, sizeof(path), "network.%s.host", host);
    random_put(m->s, path, "\"%s\"", host);
    snprintf(path, sizeof(path), "network.%s.device", host);
    random_put(m->s, path, "\"%s\"", device);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(switches); i++) {
        if (!random_once_in(m, 3))
            continue;
        snprintf(path, sizeof(path), "network.%s.%s", host, switches[i]);
        random_put(m->s, path, "%s", random_once_in(m, 2) ? "true" : "false");
    }
    if (random_once_in(m, 3)) {
        snprintf(path, sizeof(path), "network.%s.adaptive_moderation", host);
        random_put(m->s, path, "false");
    }
}

static void programs(struct random_maker *m, const struct random_host *host)
{
    struct random_scenario *s = m->s;
    random_put(s, "workload.type", "\"programs\"");
    random_put(s, "workload.measured", "\"server\"");
    random_put(s, "measure.warmup_us", "%u", PICK(m, 200, 300));
    random_put(s, "measure.duration_us", "%u", PICK(m, 500, 700));
    if (random_once_in(m, 4)) {
        random_put(s, "measure.warmup_us", "2000"); /* the ring is full */
        random_put(s, "programs.p.type", "\"pktgen\"");
        random_put(s, "programs.p.packet_bytes", "%u", PICK(m, 64, 256, 1514));
        random_put(s, "programs.p.socket", "%u", PICK(m, 0, 1) % host->sockets);
        return;
    }
    random_put(s, "programs.n.type", "\"netperf\"");
    random_put(s, "programs.n.direction", "\"%s\"", PICK_WORD(m, "rx", "tx"));
    random_put(s, "programs.n.instances", "%u", PICK(m, 1, 1, 2));
    random_put(s, "programs.n.buffer_bytes", "%u", PICK(m, 4096, 16384, 65536, 262144));
    if (strcmp(random_get(s, "programs.n.buffer_bytes"), "262144") == 0)
        random_put(s, "measure.duration_us", "1500"); /* a few calls */
    random_put(s, "programs.n.server_socket", "%u", PICK(m, 0, 1) % host->sockets);
    if (strcmp(random_get(s, "programs.n.direction"), "\"rx\"") == 0) {
        const char *gro = random_get(s, "network.server.gro");
        const char *lro = random_get(s, "network.server.lro");
        if (lro == NULL || strcmp(lro, "false") == 0)
            random_offer(m, RANDOM_DIFFERS, "throughput_gbit_s", 0, "network.server.gro", "%s",
                         gro != NULL && strcmp(gro, "false") == 0 ? "true" : "false");
    }
}

void random_make_network(uint64_t seed, struct random_scenario *s)
{
    struct random_maker m;
    random_maker_init(&m, seed, "network", s);
    const struct random_host server = { "server", PICK(&m, 1, 2), 2, 1 };
    const struct random_host client = { "client", PICK(&m, 1, 2), 2, 1 };
    random_host(&m, &server);
    random_host(&m, &client);
    nic(&m, "nic");
    nic(&m, "client_nic");
    random_cable(&m, "server.s0.rp0", "nic.p0", 0);
    random_cable(&m, "client.s0.rp0", "client_nic.p0", 0);
    random_put(s, "cables.[2].from", "\"nic.e0\"");
    random_put(s, "cables.[2].to", "\"client_nic.e0\"");
    random_put(s, "cables.[2].rate_gbit_s", "%u", PICK(&m, 10, 25, 40, 100));
    put_network(&m, "server", "nic");
    put_network(&m, "client", "client_nic");
    programs(&m, &server);
    random_take_pair(&m);
}
