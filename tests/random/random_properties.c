#include "tests/random/random_properties.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *random_name_at(const struct random_facts *f, const char *group, unsigned idx)
{
    struct config_node *node = config_find(config_root(f->config), group);
    return node != NULL && idx < config_count(node) ? config_name(config_child(node, idx)) : NULL;
}

double random_host_number(const struct random_facts *f, const char *host, const char *key)
{
    const double value = random_number(f, "hosts.%s.%s", host, key);
    return isfinite(value) ? value : random_number(f, "%s", key);
}

double random_device_number(const struct random_facts *f, const char *device, const char *key)
{
    return random_number(f, "devices.%s.%s", device, key);
}

bool random_is(const struct random_facts *f, const char *path, const char *value)
{
    return strcmp(random_word(f, "%s", path), value) == 0;
}

/* Programs that end by themselves: then the run is as long as they are. */
static bool any_ends(const struct random_facts *f)
{
    const char *name;
    for (unsigned i = 0; (name = random_name_at(f, "programs", i)) != NULL; i++) {
        const char *type = random_word(f, "programs.%s.type", name);
        if (strcmp(type, "ntb_dma") == 0 || strcmp(type, "bandwidth_test") == 0 ||
            random_number(f, "programs.%s.operations", name) > 0)
            return true;
    }
    return false;
}

double random_duration_ns(const struct random_facts *f)
{
    if (random_is(f, "workload.type", "pcie_bench")) {
        const double rate = random_metric(f, "transactions_mt_s") *
                            (random_is(f, "workload.op", "read_write") ? 2 : 1);
        return rate > 0 ? random_metric(f, "transactions") / rate * 1e3 : 0;
    }
    return any_ends(f) ? 0 : random_number(f, "measure.duration_us") * 1e3;
}

/* ---- Links ----------------------------------------------------------------------------------- */

void random_owner(const char *port, char name[64])
{
    snprintf(name, 64, "%.*s", (int)strcspn(port, "."), port);
}

static void smaller(unsigned *value, double other)
{
    if (isfinite(other) && other >= 1 && (*value == 0 || other < *value))
        *value = (unsigned)other;
}

/* What the end of a cable has, where the cable itself says nothing. */
static void end_has(const struct random_facts *f, const char *port, struct random_link *link,
                    bool lanes, bool generation)
{
    char name[64];
    random_owner(port, name);
    const char *type = random_word(f, "devices.%s.type", name);
    const bool down = strcmp(type, "pcie.switch") == 0 && strstr(port, ".p0") == NULL;
    const bool cable = strcmp(type, "pcie.ntb") == 0 && strstr(port, ".p1") != NULL;
    const char *key = down ? "downstream_lanes" : cable ? "cable_lanes" : "lanes";
    if (*type != '\0') {
        if (lanes)
            smaller(&link->lanes, random_device_number(f, name, key));
        if (generation)
            smaller(&link->generation, random_device_number(f, name, "generation"));
        return;
    }
    for (unsigned p = 0; p < 8; p++) {
        const char *rp = random_word(f, "hosts.%s.ports.[%u].name", name, p);
        const size_t n = strlen(rp), all = strlen(port);
        if (n == 0 || n > all || strcmp(port + all - n, rp) != 0)
            continue;
        if (lanes)
            smaller(&link->lanes, random_number(f, "hosts.%s.ports.[%u].lanes", name, p));
        if (generation)
            smaller(&link->generation, random_number(f, "hosts.%s.ports.[%u].generation", name, p));
    }
}

bool random_link_at(const struct random_facts *f, unsigned idx, struct random_link *link)
{
    static const double gt_s[] = { 0, 2.5, 5, 8, 16, 32 };
    *link = (struct random_link){ .lanes = 0 };
    for (unsigned c = 0;; c++) {
        const char *from = random_word(f, "cables.[%u].from", c),
                   *to = random_word(f, "cables.[%u].to", c);
        if (*from == '\0' || *to == '\0')
            return false;
        if (strstr(from, ".e") != NULL || idx-- != 0)
            continue;
        g_strlcpy(link->end[0], from, sizeof(link->end[0]));
        g_strlcpy(link->end[1], to, sizeof(link->end[1]));
        link->lanes = (unsigned)random_number(f, "cables.[%u].lanes", c);
        link->generation = (unsigned)random_number(f, "cables.[%u].generation", c);
        const bool lanes = link->lanes == 0, generation = link->generation == 0;
        for (unsigned e = 0; e < 2; e++)
            end_has(f, link->end[e], link, lanes, generation);
        if (link->generation == 0 || link->generation > 5)
            return false;
        link->gbyte_s = gt_s[link->generation] * link->lanes / 8 *
                        (link->generation <= 2 ? 8.0 / 10 : 128.0 / 130);
        return true;
    }
}

bool random_link_of(const struct random_facts *f, const char *port, struct random_link *link,
                    char other[64])
{
    for (unsigned i = 0; random_link_at(f, i, link); i++)
        for (unsigned e = 0; e < 2; e++)
            if (strcmp(link->end[e], port) == 0) {
                g_strlcpy(other, link->end[1 - e], 64);
                return true;
            }
    return false;
}

void random_properties(const struct random_facts *f, struct random_verdict *v)
{
    random_peaks(f, v);
    random_sums(f, v);
    random_loads(f, v);
    if (f->missing->len != 0)
        random_fails(v, "metric", "no metric is called %s", f->missing->str);
}
