/*
 * Intel's MPI benchmarks: PingPong between two processes, Alltoall among eight of each host.
 *
 * As IMB does it: each process has a buffer for what it sends and one for what it receives, used
 * again and again; a few repetitions before those that are measured, a barrier between; PingPong's
 * time is half of a round trip, its throughput the message's bytes over that, in 2^20 bytes;
 * Alltoall's time is the mean over the processes. IMB makes up to 1000 repetitions; here as many as
 * `repetitions` and `volume_bytes` say. What the last repetition has brought is checked.
 */
#include "workloads/openmx/mpi_job.h"

#include <stdio.h>

#include "logic/mx/mx_account.h"

#define MIB         1048576.0
#define AT_LEAST    1u
#define SHORTER     8u
#define PHASES_MAX  2u
#define BLOCK_SHIFT 26 /* positions of blocks in a stream */
#define PROCESSES   8u
#define CHUNK_BYTES 16u /* header of a chunk of malloc() */

enum benchmark { PING_PONG, ALLTOALL };
static const char *const benchmark_names[] = { "ping_pong", "alltoall", NULL };

struct phase {
    uint64_t bytes;
    unsigned repetitions;
    double time_ps; /* of a repetition: the sum over processes of their means */
    /* Of both hosts, while it was measured. */
    struct numa_private_count count[K_ACCOUNTS];
    uint64_t dram_bytes, interconnect_bytes;
};

struct imb {
    /* parameters */
    struct mpi_job_settings settings;
    int benchmark;
    uint64_t message_bytes, then_bytes, volume_bytes;
    uint32_t warm_ups, repetitions;
    bool then;
    /* running */
    struct mpi_job job;
    /* measured */
    struct phase phase[PHASES_MAX];
    unsigned n_phases;
};

static const struct param_desc imb_params[] = {
    MPI_JOB_PARAMS(struct imb, settings),
    PARAM_ONE_OF("benchmark", struct imb, benchmark, PING_PONG, benchmark_names, PROV_NONE, "",
                 "PingPong: one process per host; Alltoall: eight"),
    PARAM("message_bytes", PARAM_BYTES, struct imb, message_bytes, 0, 0, 67108864, PROV_NONE, "",
          "of a message; Alltoall: of a block"),
    PARAM("then", PARAM_BOOL, struct imb, then, 0, 0, 1, PROV_NONE, "",
          "messages of then_bytes follow"),
    PARAM("then_bytes", PARAM_BYTES, struct imb, then_bytes, 4194304, 0, 67108864, PROV_NONE, "",
          "of these"),
    PARAM("warm_ups", PARAM_U32, struct imb, warm_ups, 2, 0, 10000, PROV_NONE, "",
          "repetitions of the first message before those that are measured"),
    PARAM("repetitions", PARAM_U32, struct imb, repetitions, 100, 1, 1000, PROV_NONE, "",
          "that are measured at most"),
    PARAM(
        "volume_bytes", PARAM_BYTES, struct imb, volume_bytes, 16777216, 0, 1e10, PROV_NONE, "",
        "that a process sends at most while it is measured, unless these are too few repetitions"),
    { .type = PARAM_END },
};

static const struct record_desc imb_records[] = {
    { "time_us", RECORD_METRIC, "us", "PingPong: half of a round trip; Alltoall: one of them" },
    { "throughput_mib_s", RECORD_METRIC, "MiB/s", "PingPong: bytes of a message over its time" },
    { "latency_0b_us", RECORD_METRIC, "us", "PingPong: time of a message of 0 bytes" },
    { "throughput_4mib_mib_s", RECORD_METRIC, "MiB/s", "PingPong: throughput of 4 MiB" },
    { "l2_miss_kernel_pct", RECORD_METRIC, "%", "L2 misses of the kernel, of its L2 accesses" },
    { "l2_miss_user_pct", RECORD_METRIC, "%", "the same of user space" },
    { "l2_accesses_kernel", RECORD_METRIC, "1", "of the kernel, per message" },
    { "l2_accesses_user", RECORD_METRIC, "1", "of user space, per message" },
    { ".l2_misses.kernel", RECORD_METRIC, "1", "misses per message: driver, stack, headers, pins" },
    { ".l2_misses.endpoint", RECORD_METRIC, "1",
      "misses per message: descriptors of endpoints and peers" },
    { ".l2_misses.event", RECORD_METRIC, "1",
      "misses per message: slots of event queues, by the kernel" },
    { ".l2_misses.ring", RECORD_METRIC, "1", "misses per message: eager data, by the kernel" },
    { ".l2_misses.pull", RECORD_METRIC, "1", "misses per message: states of pulls, regions" },
    { ".l2_misses.data", RECORD_METRIC, "1",
      "misses per message: data of large messages, by the kernel" },
    { ".l2_misses.text", RECORD_METRIC, "1", "misses per message: the kernel's instructions" },
    { ".l2_misses.user", RECORD_METRIC, "1", "misses per message: the program and MPI" },
    { ".l2_misses.library", RECORD_METRIC, "1",
      "misses per message: the library's endpoints and requests" },
    { ".l2_misses.user_text", RECORD_METRIC, "1", "misses per message: user space's instructions" },
    { ".l2_misses.user_event", RECORD_METRIC, "1",
      "misses per message: slots of event queues, by the library" },
    { ".l2_misses.user_data", RECORD_METRIC, "1", "misses per message: data, by the library" },
    { "llc_misses", RECORD_METRIC, "1",
      "misses per message of all caches of the socket, where it has an LLC" },
    { ".llc_misses.kernel", RECORD_METRIC, "1", "of these: driver, stack, headers, pins" },
    { ".llc_misses.endpoint", RECORD_METRIC, "1", "descriptors of endpoints and peers" },
    { ".llc_misses.event", RECORD_METRIC, "1", "slots of event queues, by the kernel" },
    { ".llc_misses.ring", RECORD_METRIC, "1", "eager data, by the kernel" },
    { ".llc_misses.pull", RECORD_METRIC, "1", "states of pulls, regions" },
    { ".llc_misses.data", RECORD_METRIC, "1", "data of large messages, by the kernel" },
    { ".llc_misses.text", RECORD_METRIC, "1", "the kernel's instructions" },
    { ".llc_misses.user", RECORD_METRIC, "1", "the program and MPI" },
    { ".llc_misses.library", RECORD_METRIC, "1", "the library's endpoints and requests" },
    { ".llc_misses.user_text", RECORD_METRIC, "1", "user space's instructions" },
    { ".llc_misses.user_event", RECORD_METRIC, "1", "slots of event queues, by the library" },
    { ".llc_misses.user_data", RECORD_METRIC, "1", "data, by the library" },
    { "dram_bytes", RECORD_METRIC, "bytes", "of DRAM traffic per message, where there is an LLC" },
    { "interconnect_bytes", RECORD_METRIC, "bytes",
      "between sockets per message, where there is an LLC" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* What is measured once has one warm-up, whatever is written. */
static void check_warm_ups(struct program *program, struct sim_error_list *errors)
{
    const struct imb *imb = program->state;
    const bool asked = imb->repetitions == AT_LEAST;
    char decider[128];
    if (imb->phase[0].repetitions != AT_LEAST || imb->warm_ups == AT_LEAST)
        return;
    snprintf(decider, sizeof(decider), "%.100s.%s", config_path(program->group),
             asked ? "repetitions" : "message_bytes");
    config_no_effect(program->group, "warm_ups", decider, errors,
                     asked ? "more repetitions than one: that has one warm-up"
                           : "a larger volume_bytes: what is measured once has one warm-up");
}

static void imb_check(struct program *program, struct sim_error_list *errors)
{
    struct imb *imb = program->state;
    if (!mpi_job_check(&imb->job, program, &imb->settings,
                       imb->benchmark == PING_PONG ? 1 : PROCESSES, errors))
        return;
    if (imb->then && imb->benchmark != PING_PONG)
        program_mistake(program, "then", errors, "benchmark = \"ping_pong\" beside it", NULL);
    imb->n_phases = imb->then ? 2 : 1;
    for (unsigned i = 0; i < imb->n_phases; i++) {
        struct phase *phase = &imb->phase[i];
        phase->bytes = i == 0 ? imb->message_bytes : imb->then_bytes;
        const uint64_t sent = phase->bytes * (imb->benchmark == PING_PONG ? 1 : 2 * PROCESSES - 1);
        const uint64_t fit = sent == 0 ? imb->repetitions : imb->volume_bytes / sent;
        phase->repetitions = (unsigned)SIM_MIN(SIM_MAX(fit, AT_LEAST), imb->repetitions);
    }
    check_warm_ups(program, errors);
}

/* ---- What is repeated ------------------------------------------------------------------------ */

struct buffers {
    struct kaddr out, in;
    uint64_t bytes; /* of a message or block */
};

static bool trip(struct mpi_rank *rank, const struct buffers *b)
{
    const unsigned peer = 1 - rank->rank;
    if (rank->rank == 0)
        mpi_send(rank->world, b->out, b->bytes, peer, 0);
    const int error = mpi_recv(rank->world, b->in, b->bytes, (int)peer, 0, NULL);
    if (rank->rank != 0)
        mpi_send(rank->world, b->out, b->bytes, peer, 0);
    return mpi_job_ok(rank, "PingPong", error);
}

static bool repeat(struct mpi_rank *rank, const struct buffers *b)
{
    const struct imb *imb = rank->job->program->state;
    if (imb->benchmark == PING_PONG)
        return trip(rank, b);
    return mpi_job_ok(rank, "Alltoall", mpi_alltoall(rank->world, b->out, b->in, b->bytes));
}

static unsigned n_blocks(const struct imb *imb)
{
    return imb->benchmark == PING_PONG ? 1 : 2 * PROCESSES;
}

/* Blocks that are packed lie several to a cache line, which packets do not carry as marks
 * (payload.h): they stay zero. tests/logic/mpi has the bytes of such exchanges. */
static bool is_marked(const struct imb *imb, uint64_t bytes)
{
    return imb->benchmark == PING_PONG || mpi_alltoall_algorithm(2 * PROCESSES, bytes) != MPI_BRUCK;
}

static void fill(struct mpi_rank *rank, const struct buffers *b)
{
    const struct imb *imb = rank->job->program->state;
    if (!is_marked(imb, b->bytes))
        return;
    for (unsigned i = 0; i < n_blocks(imb); i++)
        mpi_job_fill(rank, kaddr_add(b->out, i * b->bytes), rank->stream,
                     (uint64_t)i << BLOCK_SHIFT, b->bytes);
}

/* Block i is what process i has sent to this one. */
static void verify(struct mpi_rank *rank, const struct buffers *b)
{
    const struct imb *imb = rank->job->program->state;
    const struct mpi_rank *all = rank->job->rank;
    if (imb->benchmark == PING_PONG) {
        mpi_job_verify(rank, b->in, all[1 - rank->rank].stream, 0, b->bytes);
        return;
    }
    for (unsigned i = 0; is_marked(imb, b->bytes) && i < n_blocks(imb); i++)
        mpi_job_verify(rank, kaddr_add(b->in, i * b->bytes), all[i].stream,
                       (uint64_t)rank->rank << BLOCK_SHIFT, b->bytes);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static uint64_t interconnect_bytes(const struct numa *numa)
{
    uint64_t bytes = 0;
    for (unsigned from = 0; from < numa_sockets(numa); from++)
        for (unsigned to = 0; to < numa_sockets(numa); to++)
            if (from != to)
                bytes += numa_interconnect_bytes(numa, from, to);
    return bytes;
}

static void count(const struct mpi_rank *rank, struct phase *phase, bool begins)
{
    for (unsigned h = 0; h < MPI_JOB_HOSTS; h++)
        for (unsigned a = 0; a < K_ACCOUNTS; a++) {
            const struct numa_private_count now = os_account(rank->job->host[h]->kernel, a);
            struct numa_private_count *sum = &phase->count[a];
            sum->l2_accesses += begins ? -now.l2_accesses : now.l2_accesses;
            sum->l2_misses += begins ? -now.l2_misses : now.l2_misses;
            sum->llc_misses += begins ? -now.llc_misses : now.llc_misses;
            sum->prefetches += begins ? -now.prefetches : now.prefetches;
            sum->prefetched += begins ? -now.prefetched : now.prefetched;
        }
    for (unsigned h = 0; h < MPI_JOB_HOSTS; h++) {
        const struct numa *numa = host_numa(rank->job->host[h]->host);
        const uint64_t dram_bytes = numa_dram_bytes(numa), bytes = interconnect_bytes(numa);
        phase->dram_bytes += begins ? -dram_bytes : dram_bytes;
        phase->interconnect_bytes += begins ? -bytes : bytes;
    }
}

static void measure(struct mpi_rank *rank, struct phase *phase, const struct buffers *b)
{
    struct program *program = rank->job->program;
    const uint64_t begin_ps = k_now_ps(rank->kernel);
    if (rank->rank == 0)
        count(rank, phase, true);
    for (unsigned i = 0; i < phase->repetitions; i++) {
        const uint64_t at_ps = k_now_ps(rank->kernel);
        if (i + 1 == phase->repetitions)
            mpi_job_clear(rank, b->in, n_blocks(program->state) * b->bytes);
        if (!repeat(rank, b))
            return;
        if (rank->rank == 0) {
            program_operation_ended(program, at_ps);
            if (phase == &((struct imb *)program->state)->phase[0])
                stat_histogram_add(&program->histogram_ps, k_now_ps(rank->kernel) - at_ps);
        }
    }
    phase->time_ps += (double)(k_now_ps(rank->kernel) - begin_ps) / phase->repetitions;
    if (rank->rank == 0)
        count(rank, phase, false);
    verify(rank, b);
}

/* One of what is so large that it is measured once. */
static unsigned warm_ups(const struct imb *imb, unsigned phase)
{
    if (imb->phase[phase].repetitions == AT_LEAST)
        return AT_LEAST;
    return phase == 0 ? imb->warm_ups : 2;
}

/* IMB takes its buffers from malloc(), which maps what is large: it begins behind the header of its
 * chunk. */
static struct kaddr malloced(struct mpi_rank *rank, uint64_t bytes)
{
    const struct kaddr at = mpi_job_buffer(rank, bytes + CHUNK_BYTES);
    return at.v == 0 ? at : kaddr_add(at, CHUNK_BYTES);
}

/* The warm-up of an Alltoall that is measured once has shorter blocks: buffers are registered for
 * each message, and are larger than the caches, so that a whole one leaves nothing behind. */
static bool is_shortened(const struct imb *imb, unsigned phase)
{
    const uint64_t bytes = imb->phase[phase].bytes;
    return imb->benchmark == ALLTOALL && imb->phase[phase].repetitions == AT_LEAST &&
           is_marked(imb, bytes) == is_marked(imb, bytes / SHORTER);
}

static void imb_body(struct mpi_rank *rank)
{
    struct imb *imb = rank->job->program->state;
    const uint64_t most = SIM_MAX(imb->phase[0].bytes, imb->phase[imb->n_phases - 1].bytes);
    struct buffers b = { malloced(rank, n_blocks(imb) * most), malloced(rank, n_blocks(imb) * most),
                         0 };
    for (unsigned p = 0; p < imb->n_phases && mpi_job_good(rank->job); p++) {
        b.bytes = imb->phase[p].bytes;
        fill(rank, &b);
        if (is_shortened(imb, p))
            b.bytes /= SHORTER;
        for (unsigned i = 0; i < warm_ups(imb, p); i++)
            if (!repeat(rank, &b))
                return;
        b.bytes = imb->phase[p].bytes;
        if (mpi_job_measured(rank))
            measure(rank, &imb->phase[p], &b);
    }
}

static void imb_start(struct program *program)
{
    struct imb *imb = program->state;
    imb->job.body = imb_body;
    mpi_job_start(&imb->job);
}

/* ---- Results --------------------------------------------------------------------------------- */

static double n_messages(const struct imb *imb, const struct phase *phase)
{
    return (double)phase->repetitions *
           (imb->benchmark == PING_PONG ? 2.0 : 2.0 * PROCESSES * (2 * PROCESSES - 1));
}

/* By what they are for (logic/mx/mx_account.h). */
static void record_cause(struct program *program, const char *what, unsigned account, double n)
{
    char name[40];
    snprintf(name, sizeof(name), "%s.%s", what, mx_account_name(account));
    program_metric(program, name, "1", n);
}

static void record_causes(struct program *program, const struct phase *phase)
{
    const struct imb *imb = program->state;
    const bool llc = numa_has_llc(host_numa(imb->job.host[0]->host));
    const double messages = n_messages(imb, phase);
    double misses = 0;
    for (unsigned a = 0; a < K_ACCOUNTS; a++) {
        if (mx_account_name(a) == NULL)
            continue;
        record_cause(program, "l2_misses", a, (double)phase->count[a].l2_misses / messages);
        if (llc)
            record_cause(program, "llc_misses", a, (double)phase->count[a].llc_misses / messages);
        misses += (double)phase->count[a].llc_misses;
    }
    if (!llc)
        return;
    program_metric(program, "llc_misses", "1", misses / messages);
    program_metric(program, "dram_bytes", "bytes", (double)phase->dram_bytes / messages);
    program_metric(program, "interconnect_bytes", "bytes",
                   (double)phase->interconnect_bytes / messages);
}

/* Misses and accesses of accounts from first to end, as PAPI counts them on Core: with the
 * prefetcher's. */
static void record_misses(struct program *program, const struct phase *phase, unsigned first,
                          unsigned end, const char *share, const char *per_message)
{
    const double messages = n_messages(program->state, phase);
    double misses = 0, accesses = 0;
    for (unsigned a = first; a < end; a++) {
        misses += (double)(phase->count[a].l2_misses + phase->count[a].prefetched);
        accesses += (double)(phase->count[a].l2_accesses + phase->count[a].prefetches);
    }
    if (accesses > 0)
        program_metric(program, share, "%", 100 * misses / accesses);
    program_metric(program, per_message, "1", accesses / messages);
}

static void imb_record(struct program *program, sim_time duration_ps)
{
    const struct imb *imb = program->state;
    (void)duration_ps;
    for (unsigned p = 0; p < imb->n_phases; p++) {
        const struct phase *phase = &imb->phase[p];
        const double n = imb->benchmark == PING_PONG ? 2 : 2 * PROCESSES;
        /* of two processes: a mean round trip, of which half counts */
        const double time_us = phase->time_ps / n / (imb->benchmark == PING_PONG ? 2 : 1) / 1e6;
        const double mib_s = (double)phase->bytes / MIB / (time_us / 1e6);
        if (p == 0) {
            program_metric(program, "time_us", "us", time_us);
            if (imb->benchmark == PING_PONG)
                program_metric(program, "throughput_mib_s", "MiB/s", mib_s);
            record_misses(program, phase, 0, K_USER, "l2_miss_kernel_pct", "l2_accesses_kernel");
            record_misses(program, phase, K_USER, K_ACCOUNTS, "l2_miss_user_pct",
                          "l2_accesses_user");
            record_causes(program, phase);
        }
        if (imb->benchmark == PING_PONG && phase->bytes == 0)
            program_metric(program, "latency_0b_us", "us", time_us);
        if (imb->benchmark == PING_PONG && phase->bytes == 4u << 20)
            program_metric(program, "throughput_4mib_mib_s", "MiB/s", mib_s);
    }
}

const struct program_ops program_imb_ops = {
    .type = "imb",
    .help = "Intel's MPI benchmarks on two hosts: PingPong, Alltoall",
    .state_bytes = sizeof(struct imb),
    .params = imb_params,
    .records = imb_records,
    .check = imb_check,
    .start = imb_start,
    .record = imb_record,
};
