/* The inside of logic/mpi, for mpi*.c only. */
#ifndef LOGIC_MPI_MPI_INTERNAL_H
#define LOGIC_MPI_MPI_INTERNAL_H

#include <errno.h>

#include "logic/mpi/mpi.h"

#define MPI_WORD_BYTES 8u

struct mpi_request {
    struct mpi_request *next; /* while free */
    struct mx_request *mx;
    bool receives;
};

struct mpi_comm {
    struct mpi_comm *next; /* of the process */
    struct mpi_process *process;
    unsigned rank, n;
    uint16_t context;                  /* of messages of programs; collectives have the next one */
    uint8_t member[MPI_PROCESSES_MAX]; /* their ranks in the world */
    uint32_t collectives;              /* begun: their tags */
};

struct mpi_process {
    struct mx_endpoint *ep;
    struct kernel *kernel;
    struct mx_peer peer[MPI_PROCESSES_MAX]; /* by rank in the world */
    struct mpi_comm *comms;                 /* the world is the last one */
    struct mpi_comm *world;
    struct mpi_request *free_requests;
    struct kaddr scratch; /* of collectives, and the words of mpi_split() */
    uint64_t scratch_bytes;
    uint16_t next_context;
    int error; /* the first one */
};

/* Room for so many bytes, whose content is void. False: no memory; the process has its error. */
bool mpi_scratch(struct mpi_process *process, uint64_t bytes);

/* Like those without the 2, in the collectives' context. */
int mpi_isend2(struct mpi_comm *comm, struct kaddr from, uint64_t bytes, unsigned to,
               struct mpi_request **request);
int mpi_irecv2(struct mpi_comm *comm, struct kaddr to, uint64_t bytes, unsigned from,
               struct mpi_request **request);
int mpi_exchange(struct mpi_comm *comm, struct kaddr out, uint64_t out_bytes, unsigned to,
                 struct kaddr in, uint64_t in_bytes, unsigned from);

/* Copies within the process. */
void mpi_copy(struct mpi_process *process, struct kaddr to, struct kaddr from, uint64_t bytes);

static inline bool mpi_is_power_of_two(unsigned n)
{
    return (n & (n - 1)) == 0;
}

#endif
