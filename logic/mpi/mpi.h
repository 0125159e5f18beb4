/*
 * The Message Passing Interface, as much of it as IMB and the NAS benchmarks need, over an endpoint
 * of Myrinet Express (logic/mx/mx.h), which matches messages and moves them.
 *
 *   process = mpi_new(ep, rank, n, places, until_ps, &error);     every process, [thread]
 *   struct mpi_comm *world = mpi_world(process);
 *   mpi_irecv(world, buffer, bytes, MPI_ANY_SOURCE, tag, &request);
 *   mpi_send(world, buffer, bytes, to, tag);
 *   mpi_wait(process, &request, &status);
 *   mpi_alltoall(world, from, to, bytes);                         every process of `world`
 *   mpi_free(process);
 *
 * Messages are contiguous bytes; tags are 0 to MPI_TAG_MAX. Elements of reductions are words of
 * eight bytes. A process calls from one thread, which polls while it waits. All functions but those
 * that only look are [thread].
 *
 * Returns 0, or the first error of the process, which later calls return, too, without doing
 * anything: -EMSGSIZE: a receive was shorter than its message; -ECONNRESET: a peer is gone;
 * -ENOMEM.
 */
#ifndef LOGIC_MPI_MPI_H
#define LOGIC_MPI_MPI_H

#include "logic/mx/mx.h"

#define MPI_ANY_SOURCE    (-1)
#define MPI_ANY_TAG       (-1)
#define MPI_TAG_MAX       0x7fffffff
#define MPI_PROCESSES_MAX 64u

struct mpi_process;
struct mpi_comm; /* a communicator: a group of processes, and messages apart from those of others */
struct mpi_request; /* under way; NULL: none */

/* Where a process has its endpoint. */
struct mpi_place {
    uint64_t nic_id;
    uint8_t endpoint_id;
    uint32_t key;
};

struct mpi_status {
    int source, tag;
    uint64_t bytes; /* of the message */
};

/* Combines the words of `with` into those of `into`; bytes is a multiple of eight. */
typedef void mpi_op(struct kernel *kernel, struct kaddr into, struct kaddr with, uint64_t bytes);
mpi_op mpi_sum, mpi_max; /* of unsigned words of 64 bits */

/* MPI_Init(): connects to the endpoints of all n processes, which may not be open yet, until
 * until_ps. Uses `ep` until mpi_free(), and does not close it. NULL: *error is -ETIMEDOUT or that
 * of mx_connect(). */
struct mpi_process *mpi_new(struct mx_endpoint *ep, unsigned rank, unsigned n,
                            const struct mpi_place *place, uint64_t until_ps, int *error);
/* Frees the process and its communicators. No request may be under way, and no process may still
 * have to receive from this one: a barrier before it sees to that. */
void mpi_free(struct mpi_process *process);
struct mpi_comm *mpi_world(struct mpi_process *process);
struct mpi_process *mpi_process_of(const struct mpi_comm *comm);
unsigned mpi_rank(const struct mpi_comm *comm);
unsigned mpi_size(const struct mpi_comm *comm);
/* The first error, or 0. */
int mpi_error(const struct mpi_process *process);
/* MPI_Comm_split(): by all processes of `comm`. *part: those that gave the same colour, in the
 * order of `comm`; belongs to the process. */
int mpi_split(struct mpi_comm *comm, uint32_t colour, struct mpi_comm **part);

/* ---- Point to point -------------------------------------------------------------------------- */

/* The buffer must not change before the request has ended. */
int mpi_isend(struct mpi_comm *comm, struct kaddr from, uint64_t bytes, unsigned to, int tag,
              struct mpi_request **request);
int mpi_irecv(struct mpi_comm *comm, struct kaddr to, uint64_t bytes, int from, int tag,
              struct mpi_request **request);
/* Waits for the end of a request, which is NULL then; status may be NULL. Of NULL: nothing. */
int mpi_wait(struct mpi_process *process, struct mpi_request **request, struct mpi_status *status);
int mpi_wait_all(struct mpi_process *process, struct mpi_request **request, unsigned n);
/* Makes progress; *done: the request has ended, as after mpi_wait(). */
int mpi_test(struct mpi_process *process, struct mpi_request **request, bool *done,
             struct mpi_status *status);
int mpi_send(struct mpi_comm *comm, struct kaddr from, uint64_t bytes, unsigned to, int tag);
int mpi_recv(struct mpi_comm *comm, struct kaddr to, uint64_t bytes, int from, int tag,
             struct mpi_status *status);
int mpi_sendrecv(struct mpi_comm *comm, struct kaddr out, uint64_t out_bytes, unsigned to,
                 struct kaddr in, uint64_t in_bytes, int from, int tag);

/* ---- Collectives: by all processes of the communicator, in the same order -------------------- */

int mpi_barrier(struct mpi_comm *comm);
int mpi_bcast(struct mpi_comm *comm, struct kaddr at, uint64_t bytes, unsigned root);
/* `to` is written at the root only. `from` and `to` do not overlap. */
int mpi_reduce(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes,
               mpi_op *op, unsigned root);
int mpi_allreduce(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes,
                  mpi_op *op);
/* Block i of `from` goes to process i, where it is block `rank` of `to`; bytes: of a block. */
int mpi_alltoall(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes);
/* The same with blocks of different sizes, at offsets. n, offsets: of each process of `comm`. */
struct mpi_blocks {
    struct kaddr at;
    const uint64_t *offset, *bytes;
};
int mpi_alltoallv(struct mpi_comm *comm, const struct mpi_blocks *from,
                  const struct mpi_blocks *to);

/* How a collective is done; for tests and statistics. */
enum mpi_algorithm {
    MPI_NOTHING, /* one process */
    MPI_TWO_PROCESSES,
    MPI_LINEAR,
    MPI_PAIRWISE,
    MPI_BRUCK,
    MPI_RECURSIVE_DOUBLING,
    MPI_RING,
    MPI_BINOMIAL,
    MPI_BINARY,
    MPI_PIPELINE
};
/* What the collectives use for so many processes and bytes (per block, or in all), and the bytes of
 * a segment (0: not segmented). */
enum mpi_algorithm mpi_barrier_algorithm(unsigned n);
enum mpi_algorithm mpi_alltoall_algorithm(unsigned n, uint64_t bytes);
enum mpi_algorithm mpi_allreduce_algorithm(unsigned n, uint64_t bytes);
enum mpi_algorithm mpi_bcast_algorithm(unsigned n, uint64_t bytes, uint64_t *segment_bytes);
enum mpi_algorithm mpi_reduce_algorithm(unsigned n, uint64_t bytes, uint64_t *segment_bytes);

#endif
