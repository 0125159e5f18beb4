/* Scenarios at random: a seed gives one, always the same. */
#ifndef TESTS_RANDOM_RANDOM_GENERATE_H
#define TESTS_RANDOM_RANDOM_GENERATE_H

#include "sim/engine/sim.h"
#include "tests/random/random_scenario.h"

/* Makes the seed's scenario. */
typedef void random_make_fn(uint64_t seed, struct random_scenario *s);
/* One area of scenarios each, and one that gives any of them a wrong or odd setting. */
void random_make_dma(uint64_t seed, struct random_scenario *s);     /* pcie_bench */
void random_make_memory(uint64_t seed, struct random_scenario *s);  /* memory */
void random_make_devices(uint64_t seed, struct random_scenario *s); /* device_dma, fio, GPUs */
void random_make_lending(uint64_t seed, struct random_scenario *s); /* through bridges; ntb_dma */
void random_make_network(uint64_t seed, struct random_scenario *s); /* netperf, pktgen */
void random_make_odd(uint64_t seed, struct random_scenario *s);

/* ---- For the areas --------------------------------------------------------------------------- */

struct random_maker {
    struct sim_random random;
    struct random_scenario *s;
    unsigned n_cables;
    /* Changes that can only help, or that must not matter; one of them becomes the pair. */
    struct random_pair choice[64];
    unsigned n_choices;
};

void random_maker_init(struct random_maker *m, uint64_t seed, const char *area,
                       struct random_scenario *s);
/* One of them. */
unsigned random_pick(struct random_maker *m, const unsigned *values, unsigned n);
const char *random_pick_word(struct random_maker *m, const char *const *words, unsigned n);
#define PICK(M, ...)                                  \
    random_pick(M, (const unsigned[]){ __VA_ARGS__ }, \
                sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned))
#define PICK_WORD(M, ...)                                     \
    random_pick_word(M, (const char *const[]){ __VA_ARGS__ }, \
                     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
/* True once in n. */
bool random_once_in(struct random_maker *m, unsigned n);

/* A host with `sockets` sockets and as many root ports as asked for, 16 lanes each: rp0 .. on the
 * sockets in turn. `small`: little memory and small caches. */
struct random_host {
    const char *name;
    unsigned sockets, cores, ports;
};
void random_host(struct random_maker *m, const struct random_host *host);
/* The name of its n-th port: "server.s1.rp1"; g_free(). */
char *random_port(const struct random_host *host, unsigned n);
/* A cable of PCIe with a width and a generation; lanes 0: any. */
void random_cable(struct random_maker *m, const char *from, const char *to, unsigned lanes);
/* Switches, 0 .. 3 deep, below a port; returns the name of the port they end in, for n devices:
 * a format with the device's number, "sw1.p%u" (from 1). NULL: no switch, the port itself is it. */
char *random_chain(struct random_maker *m, const char *port, const char *name, unsigned depth,
                   unsigned n);
/* The port of the n-th device (from 1) below such a chain; g_free(). */
char *random_chain_port(const char *chain, unsigned n);
/* An adapter (pcie.requester). */
void random_requester(struct random_maker *m, const char *name);

/* Sets warm-up and duration so that what all programs of device_dma have queued passes the slowest
 * cable several times in each: only then do shares and latencies show what goes on for ever. */
void random_settle(struct random_maker *m);

/* Offers a change as the pair. */
void random_offer(struct random_maker *m, enum random_relation relation, const char *metric,
                  double tolerance, const char *path, const char *format, ...) G_GNUC_PRINTF(6, 7);
/* Takes one of the changes offered; of `metric`, those of the host and the cables, too. */
void random_take_pair(struct random_maker *m);
/* Offers all that can only help an adapter's transfers: wider links, later generations, credits. */
void random_offer_links(struct random_maker *m, const char *metric);
void random_offer_memory(struct random_maker *m, const struct random_host *host,
                         const char *metric);

#endif
