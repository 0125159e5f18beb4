#include "tests/random/random_generate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void random_maker_init(struct random_maker *m, uint64_t seed, const char *area,
                       struct random_scenario *s)
{
    *m = (struct random_maker){ .s = s };
    *s = (struct random_scenario){ .n = 0 };
    sim_random_init(&m->random, seed, area);
}

unsigned random_pick(struct random_maker *m, const unsigned *values, unsigned n)
{
    return values[sim_random_below(&m->random, n)];
}

const char *random_pick_word(struct random_maker *m, const char *const *words, unsigned n)
{
    return words[sim_random_below(&m->random, n)];
}

bool random_once_in(struct random_maker *m, unsigned n)
{
    return sim_random_below(&m->random, n) == 0;
}

G_GNUC_PRINTF(4, 5)
static void put(struct random_maker *m, const char *group, const char *key, const char *format, ...)
{
    char path[RANDOM_PATH_BYTES], value[RANDOM_VALUE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s.%s", group, key);
    random_put(m->s, path, "%s", value);
}

static const char *yes(bool is)
{
    return is ? "true" : "false";
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

static void put_caches(struct random_maker *m, const char *host)
{
    const unsigned slices = PICK(m, 1, 2, 4), ways = PICK(m, 8, 16, 20);
    const unsigned sets = PICK(m, 256, 512, 1024, 2048);
    char group[RANDOM_PATH_BYTES];
    snprintf(group, sizeof(group), "hosts.%s.cache", host);
    put(m, group, "llc_slices", "%u", slices);
    put(m, group, "llc_ways", "%u", ways);
    put(m, group, "llc_size", "%u", 64 * slices * ways * sets);
    put(m, group, "ddio", "%s", yes(!random_once_in(m, 4)));
    put(m, group, "ddio_ways", "%u", PICK(m, 1, 2, 2, 4, ways));
    put(m, group, "writeback_keeps_sharer", "%s", yes(!random_once_in(m, 3)));
    put(m, group, "writeback_ns", "%u", PICK(m, 0, 0, 10));
    put(m, group, "l2_size", "%u", PICK(m, 131072, 262144));
}

static void put_memory(struct random_maker *m, const char *host)
{
    char group[RANDOM_PATH_BYTES];
    snprintf(group, sizeof(group), "hosts.%s.dram", host);
    put(m, group, "node_size", "\"1 GiB\"");
    put(m, group, "channels", "%u", PICK(m, 1, 1, 2, 4));
    put(m, group, "rate_mt_s", "%u", PICK(m, 800, 1600, 2400, 3200));
    put(m, group, "ranks", "%u", PICK(m, 1, 2));
    put(m, group, "banks", "%u", PICK(m, 8, 16));
}

static void put_root(struct random_maker *m, const char *host)
{
    char group[RANDOM_PATH_BYTES];
    snprintf(group, sizeof(group), "hosts.%s.root_complex", host);
    put(m, group, "mps_bytes", "%u", PICK(m, 128, 256, 512));
    put(m, group, "completion_bytes_max", "%u", PICK(m, 64, 128, 256));
    put(m, group, "posted_header_credits", "%u", PICK(m, 16, 48, 100));
    put(m, group, "posted_data_credits", "%u", PICK(m, 64, 384, 1000));
    put(m, group, "non_posted_header_credits", "%u", PICK(m, 8, 48, 100));
    put(m, group, "read_lines", "%u", PICK(m, 0, 16, 128));
    if (random_once_in(m, 3))
        put(m, group, "p2p_socket_ns", "%u", PICK(m, 0, 50, 200));
}

void random_host(struct random_maker *m, const struct random_host *host)
{
    char group[RANDOM_PATH_BYTES];
    const char *name = host->name;
    snprintf(group, sizeof(group), "hosts.%s.cpu", name);
    put(m, group, "sockets", "%u", host->sockets);
    put(m, group, "cores_per_socket", "%u", host->cores);
    put_caches(m, name);
    put_memory(m, name);
    put_root(m, name);
    snprintf(group, sizeof(group), "hosts.%s.coherence", name);
    put(m, group, "request_entries", "%u", PICK(m, 0, 4, 20));
    put(m, group, "local_trackers", "%u", PICK(m, 0, 8, 128));
    put(m, group, "io_trackers", "%u", PICK(m, 0, 0, 4));
    if (host->sockets > 1) {
        snprintf(group, sizeof(group), "hosts.%s.interconnect", name);
        put(m, group, "links", "%u", PICK(m, 1, 2));
        put(m, group, "rate_gt_s", "%s", PICK_WORD(m, "4.8", "6.4", "9.6"));
        snprintf(group, sizeof(group), "hosts.%s.coherence", name);
        put(m, group, "remote_dma_write", "\"%s\"",
            PICK_WORD(m, "device_side_llc", "dram_invalidate", "home_llc", "own_then_dram",
                      "own_then_both"));
        put(m, group, "io_directory_entries", "%u", PICK(m, 0, 2, 64));
        put(m, group, "transaction_ids", "%u", PICK(m, 0, 4, 128));
        put(m, group, "remote_trackers", "%u", PICK(m, 0, 3, 128));
    }
    for (unsigned p = 0; p < host->ports; p++) {
        snprintf(group, sizeof(group), "hosts.%s.ports.[%u]", name, p);
        put(m, group, "name", "\"rp%u\"", p);
        put(m, group, "socket", "%u", p % host->sockets);
        put(m, group, "generation", "5");
        put(m, group, "lanes", "16");
    }
    snprintf(group, sizeof(group), "hosts.%s.iommu", name);
    put(m, group, "enabled", "%s", yes(random_once_in(m, 2)));
    put(m, group, "iotlb_entries", "%u", PICK(m, 16, 64, 128));
}

char *random_port(const struct random_host *host, unsigned n)
{
    return g_strdup_printf("%s.s%u.rp%u", host->name, n % host->sockets, n);
}

/* ---- Links and switches ---------------------------------------------------------------------- */

void random_cable(struct random_maker *m, const char *from, const char *to, unsigned lanes)
{
    char group[32];
    snprintf(group, sizeof(group), "cables.[%u]", m->n_cables++);
    put(m, group, "from", "\"%s\"", from);
    put(m, group, "to", "\"%s\"", to);
    put(m, group, "lanes", "%u", lanes != 0 ? lanes : PICK(m, 1, 2, 4, 8, 8, 16));
    put(m, group, "generation", "%u", PICK(m, 1, 2, 3, 3, 4, 5));
    put(m, group, "latency_ns", "%u", PICK(m, 0, 40, 100));
}

static void put_switch(struct random_maker *m, const char *name, unsigned ports)
{
    char group[RANDOM_PATH_BYTES];
    snprintf(group, sizeof(group), "devices.%s", name);
    put(m, group, "type", "\"pcie.switch\"");
    put(m, group, "downstream_ports", "%u", ports);
    put(m, group, "generation", "5");
    put(m, group, "lanes", "16");
    put(m, group, "downstream_lanes", "16");
    put(m, group, "mode", "\"%s\"", PICK_WORD(m, "cut_through", "store_and_forward"));
    put(m, group, "mps_bytes_max", "%u", PICK(m, 128, 256, 2048));
    put(m, group, "posted_data_credits", "%u", PICK(m, 160, 512, 2000));
    put(m, group, "posted_header_credits", "%u", PICK(m, 16, 64));
    put(m, group, "completion_data_credits", "%u", PICK(m, 160, 512, 2000));
}

char *random_chain(struct random_maker *m, const char *port, const char *name, unsigned depth,
                   unsigned n)
{
    char *from = g_strdup(port), *to;
    for (unsigned d = 0; d < depth; d++) {
        char chip[32];
        const bool last = d + 1 == depth;
        snprintf(chip, sizeof(chip), "%s%u", name, d);
        put_switch(m, chip, last ? n : 1);
        to = g_strdup_printf("%s.p0", chip);
        random_cable(m, from, to, 0);
        g_free(from);
        g_free(to);
        from = last ? g_strdup_printf("%s.p%%u", chip) : g_strdup_printf("%s.p1", chip);
    }
    return from;
}

char *random_chain_port(const char *chain, unsigned n)
{
    const char *number = strstr(chain, "%u");
    return number == NULL ? g_strdup(chain)
                          : g_strdup_printf("%.*s%u", (int)(number - chain), chain, n);
}

void random_requester(struct random_maker *m, const char *name)
{
    char group[RANDOM_PATH_BYTES];
    snprintf(group, sizeof(group), "devices.%s", name);
    put(m, group, "type", "\"pcie.requester\"");
    put(m, group, "generation", "5");
    put(m, group, "lanes", "16");
    put(m, group, "mps_bytes", "%u", PICK(m, 128, 256, 512));
    put(m, group, "mrrs_bytes", "%u", PICK(m, 128, 512, 4096));
    put(m, group, "extended_tags", "%s", yes(random_once_in(m, 2)));
    put(m, group, "reads_in_flight", "%u", PICK(m, 4, 16, 34, 64));
    put(m, group, "writes_in_flight", "%u", PICK(m, 4, 16, 32));
    if (random_once_in(m, 2)) { /* as fast as the link */
        put(m, group, "word_ns", "0.0");
        put(m, group, "line_ns", "0.0");
        put(m, group, "read_interval_ns", "1.0");
        put(m, group, "descriptor_ns", "0.0");
    }
}

static unsigned number(const struct random_maker *m, const char *group, const char *key)
{
    char path[RANDOM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s.%s", group, key);
    const char *value = random_get(m->s, path);
    return value != NULL ? (unsigned)atoi(value) : 0;
}

#define WRITES_QUEUED 262144 /* bytes, in root complexes, bridges and switches, at most */

void random_settle(struct random_maker *m)
{
    static const double lane_gbyte_s[] = { 0.25, 0.25, 0.5, 0.98, 1.97, 3.94 };
    double queued_bytes = 0, gbyte_s = 1e9, round_trips = 0;
    /* Drivers start; with bridges they talk to each other first. */
    unsigned fill_us = random_get(m->s, "devices.n0.type") != NULL ? 300 : 20;
    char group[32];
    for (unsigned i = 0; i < 8; i++) {
        snprintf(group, sizeof(group), "programs.a%u", i);
        fill_us += number(m, group, "buffer_bytes") / 1024; /* by one core, one after the other */
        const unsigned bytes = number(m, group, "queue_depth") * number(m, group, "transfer_bytes");
        queued_bytes += bytes;
        snprintf(group, sizeof(group), "devices.d%u", i);
        const unsigned flight = number(m, group, "reads_in_flight") *
                                number(m, group, "mrrs_bytes");
        round_trips = SIM_MAX(round_trips, flight != 0 ? (double)bytes / flight : 0);
    }
    for (unsigned i = 0; i < m->n_cables; i++) {
        snprintf(group, sizeof(group), "cables.[%u]", i);
        const double rate = lane_gbyte_s[number(m, group, "generation")] *
                            number(m, group, "lanes");
        gbyte_s = SIM_MIN(gbyte_s, rate);
    }
    /* Reads wait behind the writes that are queued on their way, each time that all are under
     * way. */
    const unsigned us =
        (unsigned)((4 * queued_bytes + (1 + round_trips) * WRITES_QUEUED) / gbyte_s / 1000);
    random_put(m->s, "measure.warmup_us", "%u", fill_us + SIM_MAX(us, 40u));
    random_put(m->s, "measure.duration_us", "%u", SIM_MAX(us, 300u));
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

void random_offer(struct random_maker *m, enum random_relation relation, const char *metric,
                  double tolerance, const char *path, const char *format, ...)
{
    va_list args;
    struct random_pair *pair = &m->choice[m->n_choices];
    if (m->n_choices == sizeof(m->choice) / sizeof(*m->choice))
        return;
    m->n_choices++;
    *pair = (struct random_pair){ .relation = relation, .tolerance = tolerance };
    g_strlcpy(pair->metric, metric, sizeof(pair->metric));
    g_strlcpy(pair->path, path, sizeof(pair->path));
    va_start(args, format);
    vsnprintf(pair->value, sizeof(pair->value), format, args);
    va_end(args);
}

void random_take_pair(struct random_maker *m)
{
    if (m->n_choices != 0)
        m->s->pair = m->choice[sim_random_below(&m->random, m->n_choices)];
}

/* Offers the double of a number that the scenario sets, if that is within `most`. */
static void offer_double(struct random_maker *m, const char *metric, const char *path,
                         unsigned most)
{
    const char *value = random_get(m->s, path);
    const unsigned v = value != NULL ? (unsigned)atoi(value) : 0;
    if (v != 0 && 2 * v <= most)
        random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, path, "%u", 2 * v);
}

/* Whether a path ends in this, below that. */
static bool is_a(const char *path, const char *below, const char *end)
{
    return g_str_has_prefix(path, below) && g_str_has_suffix(path, end);
}

void random_offer_links(struct random_maker *m, const char *metric)
{
    static const char *const credits[] = { "posted_data_credits", "posted_header_credits",
                                           "completion_data_credits", "non_posted_header_credits" };
    for (unsigned i = 0; i < m->s->n; i++) {
        const char *path = m->s->setting[i].path;
        const unsigned v = (unsigned)atoi(m->s->setting[i].value);
        if (is_a(path, "cables.", ".lanes"))
            offer_double(m, metric, path, 16);
        if (is_a(path, "cables.", ".generation") && v < 5)
            random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, path, "%u", v + 1);
        for (unsigned c = 0; c < SIM_N_ELEMENTS(credits); c++)
            if (g_str_has_suffix(path, credits[c]))
                offer_double(m, metric, path, strstr(path, "header") != NULL ? 127 : 2000);
        if (is_a(path, "devices.", "reads_in_flight") || is_a(path, "devices.", "writes_in_flight"))
            if (!g_str_has_suffix(metric, "_ns"))
                offer_double(m, metric, path, 256);
        if (is_a(path, "devices.", ".extended_tags") && m->s->setting[i].value[0] == 'f' &&
            !g_str_has_suffix(metric, "_ns"))
            random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, path, "true");
    }
}

void random_offer_memory(struct random_maker *m, const struct random_host *host, const char *metric)
{
    char path[RANDOM_PATH_BYTES];
    snprintf(path, sizeof(path), "hosts.%s.dram.channels", host->name);
    const unsigned channels = (unsigned)atoi(random_get(m->s, path));
    /* Lines go round the channels: with more of them a stream finds fewer rows open. */
    random_offer(m, RANDOM_NOT_WORSE, metric, 0.2, path, "%u", 2 * channels);
    snprintf(path, sizeof(path), "hosts.%s.dram.rate_mt_s", host->name);
    offer_double(m, metric, path, 6400);
    snprintf(path, sizeof(path), "hosts.%s.interconnect.links", host->name);
    offer_double(m, metric, path, 4);
    snprintf(path, sizeof(path), "hosts.%s.iommu.enabled", host->name);
    if (strcmp(random_get(m->s, path), "true") == 0)
        random_offer(m, RANDOM_NOT_WORSE, metric, 0.03, path, "false");
    snprintf(path, sizeof(path), "hosts.%s.iommu.iotlb_entries", host->name);
    offer_double(m, metric, path, 1024);
}
