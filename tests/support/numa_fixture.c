#include "tests/support/numa_fixture.h"

static double fixture_time_unit_ps(const char *key)
{
    const char *suffix = strrchr(key, '_');

    if (suffix != NULL && strcmp(suffix, "_ps") == 0)
        return 1;
    if (suffix != NULL && strcmp(suffix, "_us") == 0)
        return 1e6;
    return 1e3;
}

static void fixture_default(const struct param_desc *d, void *state)
{
    void *field = (char *)state + d->offset;

    switch (d->type) {
    case PARAM_BOOL: *(bool *)field = d->def != 0; break;
    case PARAM_U32: *(uint32_t *)field = (uint32_t)d->def; break;
    case PARAM_U64:
    case PARAM_BYTES: *(uint64_t *)field = (uint64_t)d->def; break;
    case PARAM_TIME:
        *(sim_time *)field = (sim_time)llround(d->def * fixture_time_unit_ps(d->key));
        break;
    case PARAM_DOUBLE:
    case PARAM_RATE: *(double *)field = d->def; break;
    case PARAM_ENUM: *(int *)field = (int)d->def; break;
    case PARAM_STRING:
    case PARAM_END: break;
    }
}

void fixture_r730(struct fixture *f)
{
    f->params = (struct numa_params){ &f->cpu, &f->cache, &f->coherence, &f->interconnect,
                                      &f->dram };
    for (const struct numa_param_group *g = numa_param_groups; g->name != NULL; g++) {
        void *state = *(void **)(void *)((char *)&f->params + g->offset);
        memset(state, 0, g->bytes);
        for (const struct param_desc *d = g->table; d->type != PARAM_END; d++)
            fixture_default(d, state);
    }
}

void fixture_t430(struct fixture *f)
{
    fixture_r730(f);
    f->cpu.cores_per_socket = 10;
    f->cpu.clock_ghz = 2.2;
    f->cache.llc_slices = 10;
    f->cache.llc_bytes = UINT64_C(10) * 2560 * 1024;
    f->interconnect.rate_gt_s = 8.0;
    f->dram.data_rate_mt_s = 2133;
}

int fixture_protocol(const char *name)
{
    for (int i = 0; coherence_protocol_names[i] != NULL; i++)
        if (strcmp(coherence_protocol_names[i], name) == 0)
            return i;
    fprintf(stderr, "no coherence protocol %s\n", name);
    abort();
}

void fixture_clovertown(struct fixture *f)
{
    fixture_r730(f);
    f->cpu.cores_per_socket = 4;
    f->cpu.clock_ghz = 2.33;
    f->cpu.l1_hit_cycles = 3;
    f->cpu.l2_hit_cycles = 14;
    f->cache.l2_bytes = UINT64_C(4) << 20;
    f->cache.l2_ways = 16;
    f->cache.l2_cores = 2;
    f->cache.llc_bytes = 0;
    f->coherence.protocol = fixture_protocol("front_side_bus");
    f->dram.node_bytes = UINT64_C(8) << 30;
    f->dram.channels = 2;
    f->dram.ranks = 2;
    f->dram.banks = 8;
    f->dram.data_rate_mt_s = 667;
    f->dram.bus_bytes = 16;
    f->dram.trcd_ps = f->dram.tcl_ps = f->dram.trp_ps = 15000;
    f->dram.tras_ps = 45000;
    f->dram.trfc_ps = 127500;
    f->dram.fb_dimm = true;
    f->dram.controller_ps = 11000;
}

void fixture_blackford(struct fixture *f)
{
    fixture_clovertown(f);
    f->cpu.cores_per_socket = 2;
    f->cpu.clock_ghz = 3.46;
    f->cpu.l1_hit_cycles = 4;
    f->cpu.l2_hit_cycles = 27;
    f->cache.l1_bytes = 16384;
    f->cache.l1_write_through = true;
    f->cache.l2_bytes = UINT64_C(2) << 20;
    f->cache.l2_ways = 8;
    f->cache.l2_cores = 1;
    f->cache.l2_sector_lines = 2;
    f->cache.prefetch.streams = 8;
    f->cache.prefetch.in_flight = 6;
    f->cache.prefetch.pairs = true;
    f->coherence.snoop_filter = false;
    f->coherence.snoop_lookup_ps = 11250;
    f->coherence.hub_ps = 15000;
    f->coherence.hub_return_ps = 7500;
    f->interconnect.bus_gbyte_s = 64 / 7.5;
    f->interconnect.bus_address_ps = 7500;
    f->interconnect.bus_arbitration_ps = 7500;
    f->interconnect.bus_turnaround_ps = 3750;
    f->dram.data_rate_mt_s = 1600.0 / 3;
    f->dram.controller_ps = 15000;
    f->dram.twtr_ps = 7500;
    f->dram.write_queue = 64;
}

void fixture_skylake(struct fixture *f)
{
    fixture_r730(f);
    f->cpu.cores_per_socket = 24;
    f->cpu.clock_ghz = 2.1;
    f->cpu.l2_hit_cycles = 14;
    f->cache.l2_bytes = UINT64_C(1) << 20;
    f->cache.l2_ways = 16;
    f->cache.llc_slices = 24;
    f->cache.llc_ways = 11;
    f->cache.llc_bytes = UINT64_C(24) * 2048 * 11 * 64;
    f->cache.inclusive = false;
    f->interconnect.rate_gt_s = 10.4;
    f->interconnect.flit_bits = 192;
    f->interconnect.flit_slots = 3;
    f->interconnect.flit_payload_bytes = 24;
    f->interconnect.data_flits = 3;
    f->interconnect.receive_flits = 0;
    f->coherence.transaction_ids = 0;
    f->coherence.local_trackers = 0;
    f->dram.channels = 6;
    f->dram.data_rate_mt_s = 2666;
}

struct numa *fixture_new(struct fixture *f)
{
    const char *why = NULL;

    if (!numa_params_check(&f->params, &why)) {
        fprintf(stderr, "%s\n", why);
        abort();
    }
    return numa_new(NULL, "host", &f->params);
}

struct hpa fixture_hpa(struct numa *n, unsigned node, uint64_t offset)
{
    return (struct hpa){ ((uint64_t)node << physmem_stride_log2(numa_physmem(n))) + offset };
}

uint64_t fixture_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
