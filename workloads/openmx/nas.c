/*
 * NAS Parallel Benchmarks as skeletons of their communication: CG, MG, FT, IS of 16 processes on
 * two hosts.
 *
 * Messages, their sizes and partners follow from the benchmark's parameters, as in NPB 3's programs
 * with MPI; computation is time: compute_us for each unit (an iteration). Units are alike, so a few
 * are simulated and the time of all is as many times that of one as there are. The processes'
 * arrays are not computed on: a message comes from a buffer that the process uses for all of them,
 * and is checked where it arrives. With `sample`, the long exchanges of FT and IS are simulated
 * with messages of an n-th and of two n-ths of their bytes, and a whole one is taken to be on the
 * line through the two. Waiting for a time-out of Open-MX (a second for a pull that has lost a
 * block twice, or its end) is counted apart: it is no part of what is extrapolated, but added as
 * the units that are simulated have it. Long messages lose more packets than short ones, so that
 * with `sample` it is too little.
 * Does not model: the caches' content that computation leaves, its use of the memory's bandwidth,
 * set-up before the benchmark's clock starts, verification.
 * Sources: docs/sources.md#nas.
 */
#include "workloads/openmx/nas.h"

#include <string.h>

#define PHASES_MAX 2u

static const struct nas_benchmark *const benchmarks[] = { &nas_cg_b, &nas_mg_b, &nas_ft_b,
                                                          &nas_ft_w, &nas_is_b, &nas_is_c };
/* In their order. */
static const char *const benchmark_names[] = { "cg.B.16", "mg.B.16", "ft.B.16", "ft.W.16",
                                               "is.B.16", "is.C.16", NULL };

/* Units alike that are measured. */
struct phase {
    double longest_ps;        /* all of them, of the slowest process */
    double least_ps, most_ps; /* one, of process 0 */
    double stalled_ps;        /* in which pulls waited for a time-out */
    uint64_t time_outs;
};

struct nas {
    /* parameters */
    struct mpi_job_settings settings;
    int benchmark;
    sim_time compute_ps;
    uint32_t warm_units, units;
    bool sample;
    /* running */
    unsigned n; /* n-ths of an exchange are simulated; 1: all of it */
    struct mpi_job job;
    /* measured: of exchanges of one n-th and of two n-ths of the bytes, or of one kind */
    struct phase phase[PHASES_MAX];
};

static const struct param_desc nas_params[] = {
    MPI_JOB_PARAMS(struct nas, settings),
    PARAM_ONE_OF("benchmark", struct nas, benchmark, 0, benchmark_names, PROV_NONE, "",
                 "benchmark, class, processes"),
    PARAM("compute_us", PARAM_TIME, struct nas, compute_ps, 10000, 0, 1e7, PROV_CALIBRATED,
          "docs/sources.md#nas", "computation of a process in a unit (an iteration)"),
    PARAM("warm_units", PARAM_U32, struct nas, warm_units, 1, 0, 100, PROV_NONE, "",
          "before those that are measured"),
    PARAM("units", PARAM_U32, struct nas, units, 2, 1, 100, PROV_NONE, "",
          "that are measured; with `sample`, of each of the two sizes"),
    PARAM(
        "sample", PARAM_BOOL, struct nas, sample, 0, 0, 1, PROV_NONE, "",
        "FT, IS: exchanges of an n-th and of two n-ths of the bytes are simulated, the whole one's "
        "time is extrapolated (n is 8, of IS in class C 16); CG, MG and IS in class B are simulated whole"),
    { .type = PARAM_END },
};

static const struct record_desc nas_records[] = {
    { "time_s", RECORD_METRIC, "s", "of the benchmark: a unit's time for all of them" },
    { "unit_ms", RECORD_METRIC, "ms", "of a unit, mean" },
    { "unit_spread_pct", RECORD_METRIC, "%",
      "the longest unit less the shortest, of the mean of units alike" },
    { "moving_s", RECORD_METRIC, "s", "time_s less stalled_s" },
    { "stalled_s", RECORD_METRIC, "s",
      "part of time_s in which pulls waited for a time-out of Open-MX" },
    { "time_outs", RECORD_METRIC, "1", "of pulls, in units that are measured" },
    { "sampled", RECORD_METRIC, "1", "1: exchanges are whole; n: extrapolated from n-ths of them" },
    { "communication_pct", RECORD_METRIC, "%", "of the time, that is no computation" },
    { "events_dropped", RECORD_METRIC, "1", "packets that Open-MX had no room for" },
    { "pulls_again", RECORD_METRIC, "1", "requests to pull that Open-MX repeated" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void nas_check(struct program *program, struct sim_error_list *errors)
{
    struct nas *nas = program->state;
    mpi_job_check(&nas->job, program, &nas->settings, NAS_PROCESSES / MPI_JOB_HOSTS, errors);
    nas->n = nas->sample ? SIM_MAX(benchmarks[nas->benchmark]->sample, 1) : 1;
}

/* ---- For benchmarks -------------------------------------------------------------------------- */

void nas_compute(struct nas_rank *rank, double share)
{
    const uint64_t cycles = (uint64_t)((double)rank->compute_cycles * share);
    if (cycles != 0)
        k_compute(rank->rank->kernel, cycles);
}

bool nas_exchange(struct nas_rank *rank, unsigned to, unsigned from, uint64_t bytes, int tag)
{
    struct mpi_rank *own = rank->rank;
    struct mpi_request *request;
    mpi_job_clear(own, rank->in, bytes);
    mpi_irecv(rank->world, rank->in, bytes, (int)from, tag, &request);
    mpi_send(rank->world, rank->out, bytes, to, tag);
    return mpi_job_ok(own, "an exchange", mpi_wait(mpi_process_of(rank->world), &request, NULL)) &&
           mpi_job_verify(own, rank->in, own->job->rank[from].stream, 0, bytes);
}

bool nas_sum(struct nas_rank *rank, unsigned n_words, bool all)
{
    struct kernel *kernel = rank->rank->kernel;
    const unsigned n = mpi_size(rank->world);
    uint64_t word[4] = { 0 };
    for (unsigned i = 0; i < n_words; i++)
        word[i] = rank->id + i;
    k_store(kernel, rank->in, word, n_words * sizeof(word[0]));
    const struct kaddr result = kaddr_add(rank->in, K_LINE_BYTES);
    const uint64_t bytes = n_words * sizeof(word[0]);
    const int error = all ? mpi_allreduce(rank->world, rank->in, result, bytes, mpi_sum)
                          : mpi_reduce(rank->world, rank->in, result, bytes, mpi_sum, 0);
    if (!mpi_job_ok(rank->rank, "a reduction", error))
        return false;
    k_load(kernel, result, word, bytes);
    for (unsigned i = 0; i < n_words && (all || rank->id == 0); i++)
        if (word[i] != n * (n - 1) / 2 + n * i)
            k_fault(kernel, "process %u: word %u of a sum is %llu", rank->id, i,
                    (unsigned long long)word[i]);
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

static unsigned n_phases(const struct nas *nas)
{
    return nas->n > 1 ? PHASES_MAX : 1;
}

static bool measure(struct nas *nas, struct nas_rank *rank, struct phase *phase)
{
    struct program *program = rank->rank->job->program;
    struct kernel *kernel = rank->rank->kernel;
    const struct mx_site_stalls *stalls = &nas->job.stalls;
    const double before_ps = (double)stalls->sum_ps;
    const uint64_t before = stalls->time_outs;
    const uint64_t begin_ps = k_now_ps(kernel);
    for (unsigned i = 0; i < nas->units; i++) {
        const uint64_t at_ps = k_now_ps(kernel);
        if (!rank->benchmark->unit(rank))
            return false;
        const double took_ps = (double)(k_now_ps(kernel) - at_ps);
        if (rank->id != 0)
            continue;
        program_operation_ended(program, at_ps);
        phase->least_ps = i == 0 ? took_ps : SIM_MIN(phase->least_ps, took_ps);
        phase->most_ps = SIM_MAX(phase->most_ps, took_ps);
    }
    const double all_ps = (double)(k_now_ps(kernel) - begin_ps);
    phase->longest_ps = SIM_MAX(phase->longest_ps, all_ps);
    /* Nobody waits for a packet any more when all have come here. */
    if (!mpi_job_ok(rank->rank, "a barrier", mpi_barrier(rank->world)))
        return false;
    if (rank->id == 0)
        phase->stalled_ps = (double)stalls->sum_ps - before_ps;
    if (rank->id == 0)
        phase->time_outs = stalls->time_outs - before;
    return true;
}

static void nas_body(struct mpi_rank *own)
{
    struct nas *nas = own->job->program->state;
    struct nas_rank rank = { .rank = own,
                             .world = own->world,
                             .benchmark = benchmarks[nas->benchmark],
                             .id = own->rank,
                             .part = 1,
                             .of = nas->n };
    const uint64_t bytes = SIM_MAX(rank.benchmark->buffer_bytes, 4096);
    rank.out = mpi_job_buffer(own, bytes);
    rank.in = mpi_job_buffer(own, bytes);
    rank.compute_cycles = nas->compute_ps /
                          numa_cycle_ps(host_numa(own->job->host[own->host]->host));
    if (!mpi_job_good(own->job))
        return;
    mpi_job_fill(own, rank.out, own->stream, 0, bytes);
    /* A process that computes answers nobody who still connects, and that has a time-out. */
    if (!mpi_job_ok(own, "a barrier", mpi_barrier(own->world)))
        return;
    for (unsigned i = 0; i < nas->warm_units; i++)
        if (!rank.benchmark->unit(&rank))
            return;
    if (!mpi_job_measured(own))
        return;
    for (unsigned i = 0; i < n_phases(nas); i++) {
        rank.part = i + 1;
        if (!measure(nas, &rank, &nas->phase[i]))
            return;
    }
}

static void nas_start(struct program *program)
{
    struct nas *nas = program->state;
    nas->job.body = nas_body;
    mpi_job_start(&nas->job);
}

/* A unit's time, as NPB tells it: of the slowest process. *stalled_ps: what of it is waiting for
 * time-outs, the mean over all units. */
static double unit_ps(const struct nas *nas, double *stalled_ps)
{
    double moving_ps[PHASES_MAX] = { 0 };
    *stalled_ps = 0;
    for (unsigned i = 0; i < n_phases(nas); i++) {
        const struct phase *phase = &nas->phase[i];
        moving_ps[i] = (phase->longest_ps - phase->stalled_ps) / nas->units;
        *stalled_ps += phase->stalled_ps / nas->units / n_phases(nas);
    }
    if (nas->n > 1)
        moving_ps[0] += (moving_ps[1] - moving_ps[0]) * (nas->n - 1);
    return moving_ps[0] + *stalled_ps;
}

static double spread_pct(const struct nas *nas)
{
    double most_pct = 0;
    for (unsigned i = 0; i < n_phases(nas); i++) {
        const struct phase *phase = &nas->phase[i];
        const double pct = 100 * (phase->most_ps - phase->least_ps) * nas->units /
                           phase->longest_ps;
        most_pct = SIM_MAX(most_pct, pct);
    }
    return most_pct;
}

static void nas_record(struct program *program, sim_time duration_ps)
{
    const struct nas *nas = program->state;
    const unsigned units = benchmarks[nas->benchmark]->units;
    double stalled_ps;
    const double took_ps = unit_ps(nas, &stalled_ps);
    (void)duration_ps;
    program_metric(program, "time_s", "s", took_ps / 1e12 * units);
    program_metric(program, "unit_ms", "ms", took_ps / 1e9);
    program_metric(program, "unit_spread_pct", "%", spread_pct(nas));
    program_metric(program, "moving_s", "s", (took_ps - stalled_ps) / 1e12 * units);
    program_metric(program, "stalled_s", "s", stalled_ps / 1e12 * units);
    program_metric(program, "time_outs", "1",
                   (double)(nas->phase[0].time_outs + nas->phase[1].time_outs));
    program_metric(program, "sampled", "1", nas->n);
    program_metric(program, "communication_pct", "%",
                   100 * (1 - (double)nas->compute_ps / took_ps));
    program_metric(program, "events_dropped", "1", (double)nas->job.losses.full);
    program_metric(program, "pulls_again", "1", (double)nas->job.losses.blocks_again);
}

const struct program_ops program_nas_ops = {
    .type = "nas",
    .help = "communication of NAS benchmarks on two hosts: CG, MG, FT, IS",
    .state_bytes = sizeof(struct nas),
    .params = nas_params,
    .records = nas_records,
    .check = nas_check,
    .start = nas_start,
    .record = nas_record,
};
