/* What holds for every run, and what the files of properties share. */
#ifndef TESTS_RANDOM_RANDOM_PROPERTIES_H
#define TESTS_RANDOM_RANDOM_PROPERTIES_H

#include "tests/random/random_run.h"

/* Names of the scenario's hosts (or devices, programs); NULL beyond the last. */
const char *random_name_at(const struct random_facts *f, const char *group, unsigned idx);
/* A setting of a host, which may be all defaults: "dram.channels". */
double random_host_number(const struct random_facts *f, const char *host, const char *key);
/* A setting of a device; the defaults of its type are among the settings. */
double random_device_number(const struct random_facts *f, const char *device, const char *key);
/* The time that was measured; 0: it cannot be told. */
double random_duration_ns(const struct random_facts *f);
bool random_is(const struct random_facts *f, const char *path, const char *value);

/* A cable between PCIe ports, as both ends agree on it. */
struct random_link {
    char end[2][64]; /* "server.s0.rp0", "nfp.p0" */
    unsigned generation, lanes;
    double gbyte_s; /* of symbols without their encoding, a direction */
};
/* False: there are fewer. */
bool random_link_at(const struct random_facts *f, unsigned idx, struct random_link *link);
/* The link at a port, and the port at its other end; false: none. */
bool random_link_of(const struct random_facts *f, const char *port, struct random_link *link,
                    char other[64]);
/* The device, or the host, of a port. */
void random_owner(const char *port, char name[64]);

void random_peaks(const struct random_facts *f, struct random_verdict *v);
void random_sums(const struct random_facts *f, struct random_verdict *v);
void random_loads(const struct random_facts *f, struct random_verdict *v);

#endif
