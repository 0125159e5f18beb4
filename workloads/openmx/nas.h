/* The inside of the program "nas": what its benchmarks share. */
#ifndef WORKLOADS_OPENMX_NAS_H
#define WORKLOADS_OPENMX_NAS_H

#include "workloads/openmx/mpi_job.h"

#define NAS_PROCESSES 16u

struct nas_rank;

/* A benchmark and class. Its whole time is that of `units` equal parts of its work. */
struct nas_benchmark {
    const char *name; /* "cg.B.16" */
    unsigned units;
    uint64_t
        buffer_bytes; /* of the buffer of what a process sends, and of that of what it receives */
    const void *parameters; /* of the class */
    unsigned sample; /* n, if a unit is computation and a long exchange: nas_part() with `sample` */
    /* What a process does in a unit. False: an error. */
    bool (*unit)(struct nas_rank *rank);
};
extern const struct nas_benchmark nas_cg_b, nas_mg_b, nas_ft_b, nas_ft_w, nas_is_b, nas_is_c;

struct nas_rank {
    struct mpi_rank *rank;
    struct mpi_comm *world;
    const struct nas_benchmark *benchmark;
    struct kaddr out, in;    /* buffers */
    uint64_t compute_cycles; /* of a unit */
    unsigned id;
    unsigned part, of; /* what is simulated of each message of a long exchange */
};

/* What is simulated of so many bytes of a long exchange. */
static inline uint64_t nas_part(const struct nas_rank *rank, uint64_t bytes)
{
    return bytes * rank->part / rank->of;
}

/* Computes for a share of the unit's computation. */
void nas_compute(struct nas_rank *rank, double share);
/* Sends bytes of the process's own stream from `position` on, which are at `out` already, to one
 * process and receives as many of another, which it checks: an irecv, a send, a wait. */
bool nas_exchange(struct nas_rank *rank, unsigned to, unsigned from, uint64_t bytes, int tag);
/* Reduces one word for each of n_words; the sum is checked. all: everybody has it, else process
 * 0. */
bool nas_sum(struct nas_rank *rank, unsigned n_words, bool all);

#endif
