/* Two hosts with bridges back to back or through a cluster switch: adapters that are lent and used
 * over the cable, and the bridge's own DMA engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/random_generate.h"

static void bridge(struct random_maker *m, const char *name, bool engine)
{
    char path[RANDOM_PATH_BYTES];
    static const char *const keys[] = { "generation", "lanes", "cable_lanes" };
    static const char *const values[] = { "5", "16", "16" };
    snprintf(path, sizeof(path), "devices.%s.type", name);
    random_put(m->s, path, "\"pcie.ntb\"");
    for (unsigned k = 0; k < SIM_N_ELEMENTS(keys); k++) {
        snprintf(path, sizeof(path), "devices.%s.%s", name, keys[k]);
        random_put(m->s, path, "%s", values[k]);
    }
    snprintf(path, sizeof(path), "devices.%s.latency_ns", name);
    random_put(m->s, path, "%u", PICK(m, 110, 200));
    snprintf(path, sizeof(path), "devices.%s.bar2_bytes", name);
    random_put(m->s, path, "\"4 GiB\"");
    if (!engine)
        return;
    snprintf(path, sizeof(path), "devices.%s.dma_channels", name);
    random_put(m->s, path, "%u", PICK(m, 1, 4));
    snprintf(path, sizeof(path), "devices.%s.dma_reads_in_flight", name);
    random_put(m->s, path, "%u", PICK(m, 4, 16, 64));
}

static void between(struct random_maker *m)
{
    if (random_once_in(m, 3)) {
        random_put(m->s, "devices.cluster.type", "\"pcie.cluster_switch\"");
        random_put(m->s, "devices.cluster.generation", "5");
        random_put(m->s, "devices.cluster.lanes", "16");
        random_cable(m, "n0.p1", "cluster.p0", 0);
        random_cable(m, "n1.p1", "cluster.p1", 0);
    } else {
        random_cable(m, "n0.p1", "n1.p1", 0);
    }
}

/* The devices d0 .. of one switch, and what they do for the borrower. */
static void lent(struct random_maker *m, const char *port)
{
    struct random_scenario *s = m->s;
    const unsigned n = PICK(m, 1, 2, 2, 3, 4);
    const unsigned bytes = PICK(m, 512, 1024, 4096), queue = PICK(m, 4, 8, 16);
    const char *direction = PICK_WORD(m, "read", "read", "write", "mixed");
    char *below = random_chain(m, port, "sw", 1, n), list[64] = "";
    const unsigned lanes = PICK(m, 4, 8), first_cable = m->n_cables;
    random_requester(m, "d0");
    const unsigned of_first = s->n;
    for (unsigned d = 0; d < n; d++) {
        char path[RANDOM_PATH_BYTES], from[32], to[32];
        for (unsigned i = 0; d != 0 && i < of_first; i++)
            if (g_str_has_prefix(s->setting[i].path, "devices.d0.")) {
                snprintf(path, sizeof(path), "devices.d%u.%.60s", d,
                         strrchr(s->setting[i].path, '.') + 1);
                random_put(s, path, "%s", s->setting[i].value);
            }
        snprintf(from, sizeof(from), "sw0.p%u", d + 1);
        snprintf(to, sizeof(to), "d%u.p0", d);
        random_cable(m, from, to, lanes);
        snprintf(path, sizeof(path), "cables.[%u].generation", first_cable + d);
        random_put(s, path, "3");
        snprintf(path, sizeof(path), "cables.[%u].latency_ns", first_cable + d);
        random_put(s, path, "40");
        const struct {
            const char *key, *format;
        } words[] = { { "type", "\"device_dma\"" }, { "on", "\"borrower\"" } };
        for (unsigned k = 0; k < 2; k++) {
            snprintf(path, sizeof(path), "programs.a%u.%s", d, words[k].key);
            random_put(s, path, "%s", words[k].format);
        }
        snprintf(path, sizeof(path), "programs.a%u.device", d);
        random_put(s, path, "\"d%u\"", d);
        snprintf(path, sizeof(path), "programs.a%u.direction", d);
        random_put(s, path, "\"%s\"",
                   strcmp(direction, "mixed") != 0 ? direction
                   : d % 2 == 0                    ? "read"
                                                   : "write");
        snprintf(path, sizeof(path), "programs.a%u.transfer_bytes", d);
        random_put(s, path, "%u", bytes);
        snprintf(path, sizeof(path), "programs.a%u.queue_depth", d);
        random_put(s, path, "%u", queue);
        snprintf(path, sizeof(path), "programs.a%u.buffer_bytes", d);
        random_put(s, path, "65536");
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s\"d%u\"", d != 0 ? ", " : "",
                 d);
    }
    random_put(s, "lending.lender.lend", "[%s]", list);
    random_put(s, "lending.borrower.borrow", "[%s]", list);
    random_settle(m);
    g_free(below);
}

static void engine(struct random_maker *m)
{
    struct random_scenario *s = m->s;
    random_put(s, "lending.lender.pool_bytes", "\"4 MiB\"");
    random_put(s, "programs.e.type", "\"ntb_dma\"");
    random_put(s, "programs.e.on", "\"borrower\"");
    random_put(s, "programs.e.peer", "\"lender\"");
    random_put(s, "programs.e.direction", "\"%s\"", PICK_WORD(m, "read", "write"));
    random_put(s, "programs.e.completion", "\"%s\"", PICK_WORD(m, "interrupt", "poll"));
    random_put(s, "programs.e.transfer_bytes", "%u", PICK(m, 4096, 65536, 262144));
    random_put(s, "programs.e.transfers", "4");
    random_put(s, "lending.lender.lend", "[]");
    random_put(s, "lending.borrower.borrow", "[]");
    random_put(s, "measure.warmup_us", "2000");
    random_put(s, "measure.duration_us", "1000000");
    random_offer(m, RANDOM_NOT_WORSE, "throughput_gbyte_s", 0.03, "devices.n0.dma_reads_in_flight",
                 "128");
}

/* One payload size everywhere: a device of less than the borrower's is refused. */
static void same_payload(struct random_maker *m)
{
    static const char *const ends[] = { ".mps_bytes", ".mps_bytes_max" };
    const unsigned bytes = PICK(m, 128, 256, 512);
    for (unsigned i = 0; i < m->s->n; i++)
        for (unsigned e = 0; e < SIM_N_ELEMENTS(ends); e++)
            if (g_str_has_suffix(m->s->setting[i].path, ends[e]))
                random_put(m->s, m->s->setting[i].path, "%u", bytes);
}

void random_make_lending(uint64_t seed, struct random_scenario *s)
{
    struct random_maker m;
    random_maker_init(&m, seed, "lending", s);
    const struct random_host borrower = { "borrower", 1, 2, 1 };
    const struct random_host lender = { "lender", PICK(&m, 1, 2), 2, 2 };
    const bool copies = random_once_in(&m, 4);
    random_host(&m, &borrower);
    random_host(&m, &lender);
    bridge(&m, "n0", copies);
    bridge(&m, "n1", copies);
    char *near = random_port(&borrower, 0), *far = random_port(&lender, 0),
         *device = random_port(&lender, 1);
    random_cable(&m, near, "n0.p0", 0);
    random_cable(&m, far, "n1.p0", 0);
    between(&m);
    random_put(s, "workload.type", "\"programs\"");
    random_put(s, "workload.measured", "\"borrower\"");
    random_put(s, "lending.lender.host", "\"lender\"");
    random_put(s, "lending.borrower.host", "\"borrower\"");
    if (copies)
        engine(&m);
    else
        lent(&m, device);
    same_payload(&m);
    random_offer_links(&m, "throughput_gbyte_s");
    random_offer_memory(&m, &borrower, "throughput_gbyte_s");
    if (!copies && strcmp(random_get(s, "programs.a0.direction"), "\"write\"") == 0 &&
        strcmp(random_get(s, "hosts.lender.iommu.enabled"), "true") == 0 && lender.sockets == 2) {
        /* A latency costs no throughput as long as no credits run out meanwhile. */
        random_put(s, "hosts.lender.root_complex.posted_data_credits", "2000");
        random_put(s, "hosts.lender.root_complex.posted_header_credits", "127");
        for (unsigned i = 0; i < 6; i++) /* as often as all the others */
            random_offer(&m, RANDOM_SAME, "throughput_gbyte_s", 0.05,
                         "hosts.lender.root_complex.p2p_socket_ns", "%u", PICK(&m, 1, 100));
    }
    random_take_pair(&m);
    g_free(device);
    g_free(far);
    g_free(near);
}
