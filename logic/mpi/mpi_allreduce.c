/*
 * Barriers and reductions whose result all have.
 *
 * What it does: below 10,000 bytes recursive doubling: log2 n exchanges of all words; of n that is
 *   no power of two, the first n - 2^k even processes leave theirs with their neighbour and get the
 *   result from it. Otherwise a ring: each of n parts goes round once to be reduced and once to be
 *   known. Barriers: the same doubling with empty messages, or, if n is no power of two,
 *   dissemination.
 * Follows: Open MPI 1.2, coll/tuned; docs/sources.md#mpi.
 * Costs: the words' lines, loaded and stored; messages.
 */
#include "logic/mpi/mpi_internal.h"

#define RING_BYTES 10000u

/* ---- Operations ------------------------------------------------------------------------------ */

static void words(struct kernel *kernel, struct kaddr into, struct kaddr with, uint64_t bytes,
                  bool max)
{
    uint64_t a[K_LINE_BYTES / MPI_WORD_BYTES], b[K_LINE_BYTES / MPI_WORD_BYTES];
    for (uint64_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < K_LINE_BYTES ? bytes - done : K_LINE_BYTES;
        k_load(kernel, kaddr_add(into, done), a, n);
        k_load(kernel, kaddr_add(with, done), b, n);
        for (unsigned i = 0; i < n / MPI_WORD_BYTES; i++)
            a[i] = !max ? a[i] + b[i] : a[i] > b[i] ? a[i] : b[i];
        k_store(kernel, kaddr_add(into, done), a, n);
    }
}

void mpi_sum(struct kernel *kernel, struct kaddr into, struct kaddr with, uint64_t bytes)
{
    words(kernel, into, with, bytes, false);
}

void mpi_max(struct kernel *kernel, struct kaddr into, struct kaddr with, uint64_t bytes)
{
    words(kernel, into, with, bytes, true);
}

/* ---- Recursive doubling ---------------------------------------------------------------------- */

static unsigned power_of_two_below(unsigned n)
{
    unsigned power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

/* Whom the process with this number among the doubling ones is; `extra` pairs share one number. */
static unsigned rank_of(unsigned number, unsigned extra)
{
    return number < extra ? 2 * number + 1 : number + extra;
}

/* The even one of a pair: gives its words, gets the result. */
static int stand_aside(struct mpi_comm *comm, struct kaddr at, uint64_t bytes)
{
    struct mpi_request *request;
    mpi_isend2(comm, at, bytes, comm->rank + 1, &request);
    mpi_wait(comm->process, &request, NULL);
    mpi_irecv2(comm, at, bytes, comm->rank + 1, &request);
    return mpi_wait(comm->process, &request, NULL);
}

/* The words at `at` become the result; in: room for others'. */
static int doubling(struct mpi_comm *comm, struct kaddr at, struct kaddr in, uint64_t bytes,
                    mpi_op *op)
{
    struct mpi_process *process = comm->process;
    const unsigned power = power_of_two_below(comm->n), extra = comm->n - power;
    const bool paired = comm->rank < 2 * extra;
    struct mpi_request *request;
    if (paired && comm->rank % 2 == 0)
        return stand_aside(comm, at, bytes);
    if (paired) {
        mpi_irecv2(comm, in, bytes, comm->rank - 1, &request);
        if (mpi_wait(process, &request, NULL) == 0)
            op(process->kernel, at, in, bytes);
    }
    const unsigned number = paired ? comm->rank / 2 : comm->rank - extra;
    for (unsigned bit = 1; bit < power && process->error == 0; bit <<= 1) {
        const unsigned peer = rank_of(number ^ bit, extra);
        if (mpi_exchange(comm, at, bytes, peer, in, bytes, peer) == 0)
            op(process->kernel, at, in, bytes);
    }
    if (paired) {
        mpi_isend2(comm, at, bytes, comm->rank - 1, &request);
        mpi_wait(process, &request, NULL);
    }
    return process->error;
}

/* ---- Ring ------------------------------------------------------------------------------------ */

/* Part i of the words, of n that differ by one word at most. */
static struct kaddr part(struct kaddr at, uint64_t bytes, unsigned n, unsigned i, uint64_t *size)
{
    const uint64_t n_words = bytes / MPI_WORD_BYTES, first = n_words * i / n,
                   end = n_words * (i + 1) / n;
    *size = (end - first) * MPI_WORD_BYTES;
    return kaddr_add(at, first * MPI_WORD_BYTES);
}

static int ring(struct mpi_comm *comm, struct kaddr at, struct kaddr in, uint64_t bytes, mpi_op *op)
{
    struct mpi_process *process = comm->process;
    const unsigned n = comm->n, to = (comm->rank + 1) % n, from = (comm->rank + n - 1) % n;
    for (unsigned step = 0; step < 2 * (n - 1) && process->error == 0; step++) {
        const bool reduces = step < n - 1;
        uint64_t out_bytes, in_bytes;
        const struct kaddr out = part(at, bytes, n, (comm->rank + 2 * n - step) % n, &out_bytes);
        const struct kaddr own = part(at, bytes, n, (comm->rank + 2 * n - step - 1) % n, &in_bytes);
        const struct kaddr arrives = reduces ? in : own;
        if (mpi_exchange(comm, out, out_bytes, to, arrives, in_bytes, from) == 0 && reduces)
            op(process->kernel, own, in, in_bytes);
    }
    return process->error;
}

/* ---- All of them ----------------------------------------------------------------------------- */

enum mpi_algorithm mpi_allreduce_algorithm(unsigned n, uint64_t bytes)
{
    if (n == 1)
        return MPI_NOTHING;
    return bytes < RING_BYTES ? MPI_RECURSIVE_DOUBLING : MPI_RING;
}

int mpi_allreduce(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes,
                  mpi_op *op)
{
    comm->collectives++;
    if (comm->process->error != 0 || !mpi_scratch(comm->process, bytes))
        return comm->process->error;
    mpi_copy(comm->process, to, from, bytes);
    if (mpi_allreduce_algorithm(comm->n, bytes) == MPI_RING)
        return ring(comm, to, comm->process->scratch, bytes, op);
    return doubling(comm, to, comm->process->scratch, bytes, op);
}

enum mpi_algorithm mpi_barrier_algorithm(unsigned n)
{
    if (n == 1)
        return MPI_NOTHING;
    if (n == 2)
        return MPI_TWO_PROCESSES;
    return mpi_is_power_of_two(n) ? MPI_RECURSIVE_DOUBLING : MPI_BRUCK;
}

int mpi_barrier(struct mpi_comm *comm)
{
    const struct kaddr none = { 0 };
    const unsigned n = comm->n;
    const bool doubles = mpi_is_power_of_two(n);
    comm->collectives++;
    for (unsigned bit = 1; bit < n && comm->process->error == 0; bit <<= 1) {
        const unsigned to = doubles ? comm->rank ^ bit : (comm->rank + bit) % n;
        const unsigned from = doubles ? to : (comm->rank + n - bit) % n;
        mpi_exchange(comm, none, 0, to, none, 0, from);
    }
    return comm->process->error;
}
