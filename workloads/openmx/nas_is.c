/*
 * IS: integers are sorted by buckets.
 *
 * A unit is an iteration: keys are counted and put into buckets; the sizes of all buckets are
 * summed up (Allreduce of 1024 + 5 integers); who sends how many keys to whom (Alltoall of one
 * integer each); the keys (Alltoallv); ranking. Keys are means of four random numbers, so a bucket
 * has as many as the distribution of such a mean says; consecutive buckets go to a process until it
 * has its share.
 * Does not model: the reduction's arithmetic: all contribute the same, of which the maximum is
 *   taken.
 * Sources: docs/sources.md#nas (NPB 3, IS/is.c).
 */
#include "workloads/openmx/nas.h"

#define BUCKETS     1024u
#define TESTED      5u /* TEST_ARRAY_SIZE */
#define INT_BYTES   4u
#define COUNT_BYTES 4120u /* of the reduction, a multiple of eight */
#define SMALL_BYTES 16384u
#define BEFORE      0.6 /* of the computation: three passes over the keys, about two ranking them */

struct is_class {
    uint64_t keys; /* of all processes */
};
static const struct is_class is_b = { UINT64_C(1) << 25 }, is_c = { UINT64_C(1) << 27 };

/* The share of keys below x, from 0 to 1: four uniform numbers (Irwin and Hall). */
static double below(double x)
{
    static const double binomial[] = { 1, -4, 6, -4 };
    double sum = 0;
    for (unsigned k = 0; k < 4 && 4 * x > k; k++) {
        const double d = 4 * x - k;
        sum += binomial[k] * d * d * d * d;
    }
    return sum / 24;
}

/* Bytes of a process's keys that each process gets, and where they begin. */
static void cut(const struct nas_rank *rank, uint64_t *bytes, uint64_t *offset)
{
    const struct is_class *class = rank->benchmark->parameters;
    const double own = (double)nas_part(rank, class->keys / NAS_PROCESSES);
    uint64_t done = 0;
    unsigned process = 0;
    for (unsigned b = 1; b <= BUCKETS && process < NAS_PROCESSES; b++) {
        const double share = b == BUCKETS ? 1 : below((double)b / BUCKETS);
        if (share * NAS_PROCESSES < process + 1)
            continue;
        const uint64_t end = (uint64_t)(share * own + 0.5) * INT_BYTES;
        offset[process] = done;
        bytes[process++] = end - done;
        done = end;
    }
}

/* Sizes of buckets. */
static bool reduce_sizes(struct nas_rank *rank, struct kaddr from, struct kaddr to)
{
    struct mpi_rank *own = rank->rank;
    const uint16_t stream = own->job->rank[0].stream;
    const uint64_t position = UINT64_C(1) << 40;
    _Static_assert(COUNT_BYTES >= (BUCKETS + TESTED) * INT_BYTES, "the integers");
    mpi_job_fill(own, from, stream, position, COUNT_BYTES);
    mpi_job_clear(own, to, COUNT_BYTES);
    return mpi_job_ok(own, "Allreduce",
                      mpi_allreduce(rank->world, from, to, COUNT_BYTES, mpi_max)) &&
           mpi_job_verify(own, to, stream, position, COUNT_BYTES);
}

/* Everybody says how many keys come. */
static bool tell_counts(struct nas_rank *rank, struct kaddr from, struct kaddr to,
                        const uint64_t *bytes)
{
    struct kernel *kernel = rank->rank->kernel;
    uint32_t count[NAS_PROCESSES], told[NAS_PROCESSES];
    for (unsigned i = 0; i < NAS_PROCESSES; i++)
        count[i] = (uint32_t)(bytes[i] / INT_BYTES);
    k_store(kernel, from, count, sizeof(count));
    if (!mpi_job_ok(rank->rank, "Alltoall", mpi_alltoall(rank->world, from, to, INT_BYTES)))
        return false;
    k_load(kernel, to, told, sizeof(told));
    for (unsigned i = 0; i < NAS_PROCESSES; i++)
        if (told[i] != count[rank->id])
            k_fault(kernel, "process %u: %u keys of process %u, not %u", rank->id, told[i], i,
                    count[rank->id]);
    return true;
}

static bool exchange_keys(struct nas_rank *rank, const uint64_t *bytes, const uint64_t *offset)
{
    struct mpi_rank *own = rank->rank;
    uint64_t in_bytes[NAS_PROCESSES], in_offset[NAS_PROCESSES];
    const struct mpi_blocks out = { rank->out, offset, bytes },
                            in = { rank->in, in_offset, in_bytes };
    for (unsigned i = 0; i < NAS_PROCESSES; i++) {
        in_bytes[i] = bytes[rank->id];
        in_offset[i] = i * bytes[rank->id];
    }
    mpi_job_clear(own, rank->in, NAS_PROCESSES * bytes[rank->id]);
    if (!mpi_job_ok(own, "Alltoallv", mpi_alltoallv(rank->world, &out, &in)))
        return false;
    for (unsigned i = 0; i < NAS_PROCESSES; i++)
        mpi_job_verify(own, kaddr_add(rank->in, in_offset[i]), own->job->rank[i].stream,
                       offset[rank->id], in_bytes[i]);
    return mpi_job_good(own->job);
}

static bool is_unit(struct nas_rank *rank)
{
    const uint64_t tail = rank->benchmark->buffer_bytes - SMALL_BYTES;
    const struct kaddr from = kaddr_add(rank->in, tail), to = kaddr_add(from, SMALL_BYTES / 2);
    uint64_t bytes[NAS_PROCESSES], offset[NAS_PROCESSES];
    cut(rank, bytes, offset);
    nas_compute(rank, BEFORE);
    if (!reduce_sizes(rank, from, to) || !tell_counts(rank, from, to, bytes) ||
        !exchange_keys(rank, bytes, offset))
        return false;
    nas_compute(rank, 1 - BEFORE);
    return true;
}

/* Keys, half as many more (SIZE_OF_BUFFERS), and room for the small messages. */
const struct nas_benchmark nas_is_b = {
    "is.B.16", 10, (UINT64_C(1) << 25) / NAS_PROCESSES *INT_BYTES / 2 * 3 + SMALL_BYTES,
    &is_b,     0,  is_unit
};
const struct nas_benchmark nas_is_c = {
    "is.C.16", 10, (UINT64_C(1) << 27) / NAS_PROCESSES *INT_BYTES / 2 * 3 + SMALL_BYTES,
    &is_c,     16, is_unit
};
