/*
 * MPI jobs on two hosts: threads, endpoints, start and end; and CPUs that compute beside them.
 *
 * The first process of a host opens Myrinet Express there, the others wait for it. Everybody
 * connects to everybody. Endpoint numbers of a host are those of its processes, so a NIC that
 * hashes the number gives each process a queue of its own. Every process ends with a barrier.
 */
#include "workloads/openmx/mpi_job.h"

#include <stdio.h>

#include "models/base/payload.h"

#define LOOK_PS SIM_PS_PER_US
#define CONNECT_PS \
    (2500 * SIM_PS_PER_MS) /* requests that are lost are sent again every half a second */
#define KEY     0x4d504931u
#define BUSY_PS (100 * SIM_PS_PER_US)
#define ALIGN   4096u

bool mpi_job_good(const struct mpi_job *job)
{
    return !job->failed;
}

bool mpi_job_ok(struct mpi_rank *rank, const char *call, int error)
{
    struct mpi_job *job = rank->job;
    if (error == 0)
        return !job->failed;
    if (!job->failed)
        program_fail(job->program, "%s of process %u fails: %d", call, rank->rank, error);
    job->failed = true;
    return false;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

bool mpi_job_check(struct mpi_job *job, struct program *program,
                   const struct mpi_job_settings *settings, unsigned n_per_host,
                   struct sim_error_list *errors)
{
    static const char *const keys[MPI_JOB_HOSTS] = { "first", "second" };
    char expected[96];
    job->program = program;
    job->settings = settings;
    job->n_per_host = n_per_host;
    for (unsigned h = 0; h < MPI_JOB_HOSTS; h++)
        job->host[h] = program_host(program, keys[h], settings->host_name[h], errors);
    if (job->host[0] == NULL || job->host[1] == NULL)
        return false;
    if (job->host[0] == job->host[1]) {
        program_mistake(program, "second", errors, "another host than `first`", NULL);
        return false;
    }
    for (unsigned h = 0; h < MPI_JOB_HOSTS; h++) {
        if (program_take(program, job->host[h], "Myrinet Express", 1) != 0)
            program_mistake(program, keys[h], errors,
                            "a host on which no other program has Myrinet Express", NULL);
        const unsigned n_cpus = numa_cores(host_numa(job->host[h]->host));
        if (settings->cpu + n_per_host <= n_cpus) {
            mx_site_check(program, job->host[h], &settings->mx, settings->cpu, errors);
            continue;
        }
        snprintf(expected, sizeof(expected), "%u or less: %u processes run from it on, of %u CPUs",
                 n_cpus > n_per_host ? n_cpus - n_per_host : 0, n_per_host, n_cpus);
        program_mistake(program, "cpu", errors, expected, NULL);
        return false;
    }
    return true;
}

/* ---- CPUs without a process ------------------------------------------------------------------ */

struct busy {
    struct mpi_job *job;
    struct kernel *kernel;
    uint64_t cycles;
};

static void busy_body(void *arg)
{
    const struct busy *busy = arg;
    while (busy->job->n_ended < MPI_JOB_HOSTS * busy->job->n_per_host &&
           !program_ending(busy->job->program)) {
        k_compute(busy->kernel, busy->cycles);
        k_yield(busy->kernel);
    }
}

static bool has_process(const struct mpi_job *job, unsigned h, unsigned cpu)
{
    for (unsigned i = 0; i < job->n_per_host; i++)
        if (job->rank[h * job->n_per_host + i].cpu == cpu)
            return true;
    return false;
}

/* Processes are where they stay. */
static void start_busy(struct mpi_job *job, unsigned h)
{
    struct network_host *host = job->host[h];
    struct busy *busy = program_zalloc(job->program, 1, sizeof(*busy));
    *busy = (struct busy){ job, host->kernel, 1 };
    busy->cycles = BUSY_PS / numa_cycle_ps(host_numa(host->host));
    for (unsigned c = 0; c < k_n_cpus(host->kernel); c++)
        if (!has_process(job, h, c))
            k_thread_new(host->kernel, "busy", (int)c, busy_body, busy);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static bool wait_for_sites(struct mpi_job *job, struct mpi_rank *rank)
{
    while (mpi_job_good(job) && !(job->site_ready[0] && job->site_ready[1]))
        k_sleep(rank->kernel, LOOK_PS);
    return mpi_job_good(job);
}

static void open_site(struct mpi_job *job, unsigned h)
{
    job->site[h] = mx_site_new(job->program, job->host[h], &job->settings->mx, &job->stalls);
    if (job->site[h] == NULL) {
        job->failed = true;
        return;
    }
    for (unsigned i = 0; i < job->n_per_host; i++)
        job->place[h * job->n_per_host + i] = (struct mpi_place){ mx_site_nic_id(job->site[h]),
                                                                  (uint8_t)i, KEY };
    job->site_ready[h] = true;
}

static void run_process(struct mpi_rank *rank)
{
    struct mpi_job *job = rank->job;
    const unsigned n = MPI_JOB_HOSTS * job->n_per_host;
    int error = 0;
    struct mx_endpoint *ep = mx_site_endpoint(job->site[rank->host], rank->rank % job->n_per_host,
                                              KEY);
    if (ep == NULL) {
        job->failed = true;
        return;
    }
    rank->cpu = k_cpu(rank->kernel); /* with `bind` that of its queue */
    if (++job->n_open[rank->host] == job->n_per_host && job->settings->busy)
        start_busy(job, rank->host);
    struct mpi_process *process = mpi_new(ep, rank->rank, n, job->place,
                                          k_now_ps(rank->kernel) + CONNECT_PS, &error);
    mpi_job_ok(rank, "mpi_new()", error);
    if (process != NULL) {
        rank->world = mpi_world(process);
        if (mpi_job_good(job))
            job->body(rank);
        mpi_job_ok(rank, "the last barrier", mpi_barrier(rank->world));
        mpi_free(process);
        rank->world = NULL;
    }
    mx_close(ep);
}

/* The last of a host closes MX. */
static void end_process(struct mpi_rank *rank)
{
    struct mpi_job *job = rank->job;
    const unsigned first = rank->host * job->n_per_host;
    rank->done = true;
    job->n_ended++;
    for (unsigned i = 0; i < job->n_per_host; i++)
        if (!job->rank[first + i].done)
            return;
    if (job->site[rank->host] != NULL) {
        const struct mx_site_losses losses = mx_site_losses(job->site[rank->host]);
        job->losses.full += losses.full;
        job->losses.blocks_again += losses.blocks_again;
        mx_site_free(job->site[rank->host]);
    }
    if (job->n_ended == MPI_JOB_HOSTS * job->n_per_host)
        program_finish(job->program);
}

static void process_body(void *arg)
{
    struct mpi_rank *rank = arg;
    struct mpi_job *job = rank->job;
    k_account(rank->kernel, K_USER);
    if (rank->rank % job->n_per_host == 0)
        open_site(job, rank->host);
    if (wait_for_sites(job, rank))
        run_process(rank);
    end_process(rank);
}

void mpi_job_start(struct mpi_job *job)
{
    struct program *program = job->program;
    const unsigned n = MPI_JOB_HOSTS * job->n_per_host;
    program->finite = true;
    job->rank = program_zalloc(program, n, sizeof(*job->rank));
    for (unsigned i = 0; i < n; i++) {
        struct network_host *host = job->host[i / job->n_per_host];
        const unsigned cpu = job->settings->cpu + i % job->n_per_host;
        char name[32];
        job->rank[i] = (struct mpi_rank){ .job = job,
                                          .kernel = host->kernel,
                                          .rank = i,
                                          .host = i / job->n_per_host,
                                          .cpu = cpu,
                                          .stream = program_new_stream(program) };
        snprintf(name, sizeof(name), "rank%u", i);
        program_uses_cpu(program, host, cpu);
        k_thread_new(host->kernel, name, (int)cpu, process_body, &job->rank[i]);
    }
}

/* The first waits until the measurement begins, the others for the first. */
bool mpi_job_measured(struct mpi_rank *rank)
{
    struct mpi_job *job = rank->job;
    while (rank->rank == 0 && mpi_job_good(job) && !program_measuring(job->program) &&
           !program_ending(job->program))
        k_sleep(rank->kernel, LOOK_PS);
    return mpi_job_ok(rank, "a barrier", mpi_barrier(rank->world));
}

/* ---- Data ------------------------------------------------------------------------------------ */

struct kaddr mpi_job_buffer(struct mpi_rank *rank, uint64_t bytes)
{
    const struct kaddr at = k_alloc(rank->kernel, K_NODE_LOCAL, bytes == 0 ? 1 : bytes, ALIGN);
    if (at.v == 0) {
        program_fail(rank->job->program, "no memory for %llu bytes of process %u",
                     (unsigned long long)bytes, rank->rank);
        rank->job->failed = true;
    }
    return at;
}

void mpi_job_fill(struct mpi_rank *rank, struct kaddr at, uint16_t stream, uint64_t position,
                  uint64_t bytes)
{
    if (bytes != 0)
        payload_fill(rank->kernel, at, payload_mark(stream, position), bytes);
}

void mpi_job_clear(struct mpi_rank *rank, struct kaddr at, uint64_t bytes)
{
    mpi_job_fill(rank, at, 0, 0, bytes);
}

bool mpi_job_verify(struct mpi_rank *rank, struct kaddr at, uint16_t stream, uint64_t position,
                    uint64_t bytes)
{
    struct payload_difference is;
    if (!mpi_job_good(rank->job) || bytes == 0 ||
        payload_check(rank->kernel, at, payload_mark(stream, position), bytes, &is))
        return mpi_job_good(rank->job);
    k_fault(rank->kernel, "%s: process %u has %#llx where %#llx should be, of %llu bytes",
            rank->job->program->name, rank->rank, (unsigned long long)is.found,
            (unsigned long long)is.expected, (unsigned long long)bytes);
    rank->job->failed = true;
    return false;
}
