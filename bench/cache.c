/* Processor time of one access to the memory system: hits in L1, L2, LLC, a stream from DRAM, a
 * copy in the LLC, gathers of lines of all of memory with and without a hint, DMA of a line, alone
 * and in runs of four. Prints `numa.<what> <ns> ns`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/numa/numa.h"
#include "sim/config/config.h"
#include "sim/config/error.h"

#define ACCESSES 2000000u

/* Simulated time goes on from one part to the next. */
static sim_time sim_clock_ps;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void report(const char *name, double begin_ns, unsigned count, sim_time end_ps)
{
    /* end_ps depends on every access: nothing can be left out. */
    printf("numa.%s %.2f ns\n", name, (now_ns() - begin_ns) / count);
    if (end_ps == 0)
        abort();
}

/* Loads of random lines of a window (a power of two of bytes) by one core, overlapping by ten. */
static void bench_loads(struct numa *numa, const char *name, uint64_t window_bytes)
{
    uint64_t random = 1;
    sim_time t = sim_clock_ps;

    numa_warm_drop_all(numa);
    for (uint64_t at = 0; at < window_bytes; at += LINE_BYTES)
        t = numa_load(numa, 0, (struct hpa){ at }, t, NULL).done_ps;
    const double begin_ns = now_ns();
    for (unsigned i = 0; i < ACCESSES; i++) {
        const struct hpa hpa = { next_random(&random) & (window_bytes - LINE_BYTES) };
        const sim_time done_ps = numa_load(numa, 0, hpa, t, NULL).done_ps;
        t += (done_ps - t) / 10;
    }
    report(name, begin_ns, ACCESSES, t);
    sim_clock_ps = t;
}

/* Loads of random lines of 64 MiB by all cores in turn; hinted: their state is asked for eight
 * loads before. */
static void bench_gather(struct numa *numa, const char *name, bool hinted)
{
    enum { AHEAD = 8 };
    const uint64_t window_bytes = UINT64_C(64) << 20;
    const unsigned cores = numa_cores(numa);
    struct hpa next[AHEAD];
    uint64_t random = 1;
    sim_time t = sim_clock_ps;

    numa_warm_drop_all(numa);
    for (unsigned i = 0; i < AHEAD; i++)
        next[i].v = next_random(&random) & (window_bytes - LINE_BYTES);
    const double begin_ns = now_ns();
    for (unsigned i = 0; i < ACCESSES; i++) {
        numa_load(numa, i / 32 % cores, next[i % AHEAD], t, NULL);
        next[i % AHEAD].v = next_random(&random) & (window_bytes - LINE_BYTES);
        if (hinted)
            numa_prefetch_load(numa, (i + AHEAD) / 32 % cores, next[i % AHEAD]);
        t += 5000;
    }
    report(name, begin_ns, ACCESSES, t);
    sim_clock_ps = t;
}

/* A core loads lines that a device has left in the LLC, and stores as many others. */
static void bench_copy(struct numa *numa)
{
    const uint64_t window_bytes = UINT64_C(1) << 20;
    sim_time t = sim_clock_ps;

    numa_warm_drop_all(numa);
    numa_warm_device(numa, 0, (struct hpa){ 0 }, 2 * window_bytes);
    const double begin_ns = now_ns();
    for (unsigned i = 0; i < ACCESSES; i++, t += 5000) {
        const uint64_t at = i / 2 * LINE_BYTES & (window_bytes - 1);
        if (i % 2 == 0)
            numa_load(numa, 0, (struct hpa){ at }, t, NULL);
        else
            numa_store(numa, 0, (struct hpa){ window_bytes + at }, t, NULL);
    }
    report("copy_access", begin_ns, ACCESSES, t);
    sim_clock_ps = t;
}

/* All cores of a socket stream through memory, a third of it stores. */
static void bench_stream(struct numa *numa)
{
    const unsigned cores = numa_cores(numa) / numa_sockets(numa);
    sim_time t = sim_clock_ps;

    numa_warm_drop_all(numa);
    for (int pass = 0; pass < 2; pass++) {
        const double begin_ns = now_ns();
        for (unsigned i = 0; i < ACCESSES; i++) {
            const uint64_t line = i / cores + (uint64_t)(i % cores) * 1000003;
            const struct hpa hpa = { line * LINE_BYTES };
            if (i % 3 == 0)
                numa_store(numa, i % cores, hpa, t, NULL);
            else
                numa_load(numa, i % cores, hpa, t, NULL);
            t += 2500; /* below what the channels carry: no queue grows */
        }
        if (pass == 1)
            report("dram_stream", begin_ns, ACCESSES, t);
    }
    sim_clock_ps = t;
}

static void bench_dma(struct numa *numa)
{
    const uint64_t window_bytes = UINT64_C(2) << 20;
    uint64_t random = 1;
    sim_time t = sim_clock_ps, sum = 0;

    numa_warm_drop_all(numa);
    numa_warm_device(numa, 0, (struct hpa){ 0 }, window_bytes);
    double begin_ns = now_ns();
    for (unsigned i = 0; i < ACCESSES; i++, t += 5000)
        sum += numa_dma_write(numa, 0, (struct hpa){ i * LINE_BYTES & (window_bytes - 1) }, 64, t,
                              NULL, NULL);
    report("dma_write_line", begin_ns, ACCESSES, sum);
    begin_ns = now_ns();
    for (unsigned i = 0; i < ACCESSES; i += 4, t += 20000) {
        const struct numa_run run = { .hpa = { i * LINE_BYTES & (window_bytes - 1) },
                                      .bytes = 4 * LINE_BYTES,
                                      .at_ps = t,
                                      .interval_ps = 5000 };
        sum += numa_dma_write_run(numa, 0, &run).last_ps;
    }
    report("dma_write_run_line", begin_ns, ACCESSES, sum);
    begin_ns = now_ns();
    for (unsigned i = 0; i < ACCESSES; i++, t += 5000) {
        const struct hpa hpa = { next_random(&random) & (window_bytes - LINE_BYTES) };
        sum += numa_dma_read(numa, 0, hpa, 64, t, NULL, NULL);
    }
    report("dma_read_line", begin_ns, ACCESSES, sum);
}

int main(void)
{
    struct sim_error_list errors = { 0 };
    struct numa_params params;

    memset(&params, 0, sizeof(params));
    struct config *config = config_load("/dev/null", ".", &errors);
    for (const struct numa_param_group *g = numa_param_groups; g->name != NULL; g++) {
        void *state = calloc(1, g->bytes);
        *(void **)(void *)((char *)&params + g->offset) = state;
        if (state == NULL || !config_read_params(config, NULL, g->name, g->table, state, &errors))
            return 1;
    }
    struct numa *numa = numa_new(NULL, "host", &params);
    bench_loads(numa, "l1_hit", 16 << 10);
    bench_loads(numa, "l2_hit", 128 << 10);
    bench_loads(numa, "llc_hit", 4 << 20);
    bench_copy(numa);
    bench_stream(numa);
    bench_gather(numa, "gather", false);
    bench_gather(numa, "gather_hinted", true);
    bench_dma(numa);
    numa_free(numa);
    for (const struct numa_param_group *g = numa_param_groups; g->name != NULL; g++)
        free(*(void **)(void *)((char *)&params + g->offset));
    config_free(config);
    sim_error_release(&errors);
    return 0;
}
