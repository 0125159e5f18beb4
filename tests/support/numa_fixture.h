/*
 * For tests of models/numa: parameters from the tables' defaults (without the configuration
 * reader), changed by name.
 */
#ifndef TESTS_SUPPORT_NUMA_FIXTURE_H
#define TESTS_SUPPORT_NUMA_FIXTURE_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/numa/numa_internal.h"

struct fixture {
    struct numa_cpu_params cpu;
    struct numa_cache_params cache;
    struct numa_coherence_params coherence;
    struct numa_interconnect_params interconnect;
    struct numa_dram_params dram;
    struct numa_params params;
};

/* The defaults: the Dell R730. */
void fixture_r730(struct fixture *f);

/* Dell T430: 2x E5-2630 v4, DDR4-2133. */
void fixture_t430(struct fixture *f);

/* The value of coherence.protocol of that name. */
int fixture_protocol(const char *name);

/* 2x Xeon E5345 behind a 5000X hub with FB-DIMM DDR2-667. */
void fixture_clovertown(struct fixture *f);

/* 2x Xeon 5070 (NetBurst) behind a 5000P hub with FB-DIMM DDR2-533, as scenarios/platforms/. */
void fixture_blackford(struct fixture *f);

/* 2x Xeon Platinum 8160: non-inclusive LLC of 11 ways, 6 channels, UPI. */
void fixture_skylake(struct fixture *f);

struct numa *fixture_new(struct fixture *f);

/* The address of a byte of a node's memory. */
struct hpa fixture_hpa(struct numa *n, unsigned node, uint64_t offset);

/* A small deterministic generator for tests (splitmix64). */
uint64_t fixture_random(uint64_t *state);

#endif
