/*
 * Everybody sends to everybody.
 *
 * What it does: chooses by size, as Open MPI does. Bruck: ceil(log2 n) messages, each of the blocks
 *   whose distance has that bit; they are packed into one message. Linear: all receives, then all
 *   sends, then waits for all. Pairwise: n - 1 steps, in each a message to one process and one from
 *   another. Blocks of different sizes are exchanged linearly.
 * Follows: Open MPI 1.2, coll/tuned (decision from measurements with MX) and coll/basic;
 *   docs/sources.md#mpi.
 * Costs: copies of blocks line by line; messages.
 */
#include "logic/mpi/mpi_internal.h"

#define BRUCK_BYTES  200u /* smaller blocks, if there are more processes than this: */
#define BRUCK_OVER   12u
#define LINEAR_BYTES 3000u /* smaller blocks */
#define REQUESTS_MAX (2 * MPI_PROCESSES_MAX)

enum mpi_algorithm mpi_alltoall_algorithm(unsigned n, uint64_t bytes)
{
    if (n == 1)
        return MPI_NOTHING;
    if (n == 2)
        return MPI_TWO_PROCESSES;
    if (bytes < BRUCK_BYTES && n > BRUCK_OVER)
        return MPI_BRUCK;
    return bytes < LINEAR_BYTES ? MPI_LINEAR : MPI_PAIRWISE;
}

static int linear(struct mpi_comm *comm, const struct mpi_blocks *from, const struct mpi_blocks *to)
{
    struct mpi_request *request[REQUESTS_MAX];
    unsigned n = 0;
    for (unsigned step = 1; step < comm->n; step++) {
        const unsigned peer = (comm->rank + step) % comm->n;
        mpi_irecv2(comm, kaddr_add(to->at, to->offset[peer]), to->bytes[peer], peer, &request[n++]);
    }
    for (unsigned step = 1; step < comm->n; step++) {
        const unsigned peer = (comm->rank + comm->n - step) % comm->n;
        mpi_isend2(comm, kaddr_add(from->at, from->offset[peer]), from->bytes[peer], peer,
                   &request[n++]);
    }
    return mpi_wait_all(comm->process, request, n);
}

static int pairwise(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes)
{
    for (unsigned step = 1; step < comm->n; step++) {
        const unsigned out = (comm->rank + step) % comm->n;
        const unsigned in = (comm->rank + comm->n - step) % comm->n;
        mpi_exchange(comm, kaddr_add(from, out * bytes), bytes, out, kaddr_add(to, in * bytes),
                     bytes, in);
    }
    return comm->process->error;
}

/* The blocks of `work` whose number has this bit, between there and `packed`. Returns their
 * bytes. */
static uint64_t pack(struct mpi_comm *comm, struct kaddr work, struct kaddr packed, unsigned bit,
                     uint64_t bytes, bool unpacks)
{
    uint64_t done = 0;
    for (unsigned i = 0; i < comm->n; i++) {
        const struct kaddr block = kaddr_add(work, i * bytes), at = kaddr_add(packed, done);
        if ((i & bit) == 0)
            continue;
        mpi_copy(comm->process, unpacks ? block : at, unpacks ? at : block, bytes);
        done += bytes;
    }
    return done;
}

/* Block i of `work` goes i processes on: in as many steps as i has bits set. */
static int bruck(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes)
{
    const unsigned n = comm->n, rank = comm->rank;
    const uint64_t area = (n * bytes + K_LINE_BYTES - 1) & ~(uint64_t)(K_LINE_BYTES - 1);
    if (!mpi_scratch(comm->process, 3 * area))
        return comm->process->error;
    const struct kaddr work = comm->process->scratch, out = kaddr_add(work, area),
                       in = kaddr_add(out, area);
    mpi_copy(comm->process, work, kaddr_add(from, rank * bytes), (n - rank) * bytes);
    mpi_copy(comm->process, kaddr_add(work, (n - rank) * bytes), from, rank * bytes);
    for (unsigned bit = 1; bit < n; bit <<= 1) {
        const uint64_t packed = pack(comm, work, out, bit, bytes, false);
        if (mpi_exchange(comm, out, packed, (rank + bit) % n, in, packed, (rank + n - bit) % n) !=
            0)
            return comm->process->error;
        pack(comm, work, in, bit, bytes, true);
    }
    for (unsigned i = 0; i < n; i++)
        mpi_copy(comm->process, kaddr_add(to, (rank + n - i) % n * bytes),
                 kaddr_add(work, i * bytes), bytes);
    return 0;
}

int mpi_alltoall(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes)
{
    const enum mpi_algorithm algorithm = mpi_alltoall_algorithm(comm->n, bytes);
    uint64_t offset[MPI_PROCESSES_MAX], size[MPI_PROCESSES_MAX];
    comm->collectives++;
    if (comm->process->error != 0 || bytes == 0)
        return comm->process->error;
    if (algorithm == MPI_BRUCK)
        return bruck(comm, from, to, bytes);
    mpi_copy(comm->process, kaddr_add(to, comm->rank * bytes), kaddr_add(from, comm->rank * bytes),
             bytes);
    if (algorithm != MPI_LINEAR)
        return pairwise(comm, from, to, bytes); /* of two processes: one step */
    for (unsigned i = 0; i < comm->n; i++) {
        offset[i] = i * bytes;
        size[i] = bytes;
    }
    return linear(comm, &(struct mpi_blocks){ from, offset, size },
                  &(struct mpi_blocks){ to, offset, size });
}

int mpi_alltoallv(struct mpi_comm *comm, const struct mpi_blocks *from, const struct mpi_blocks *to)
{
    const unsigned rank = comm->rank;
    comm->collectives++;
    if (comm->process->error != 0)
        return comm->process->error;
    mpi_copy(comm->process, kaddr_add(to->at, to->offset[rank]),
             kaddr_add(from->at, from->offset[rank]), from->bytes[rank]);
    return linear(comm, from, to);
}
