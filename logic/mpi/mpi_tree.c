/*
 * Broadcasts and reductions along a tree, whole or in segments.
 *
 * What it does: the root's bytes go down, or the words of all up, one segment after the other; a
 *   process receives a segment while it passes on the one before. Trees: linear (the root with all
 *   others), binomial, binary, a chain ("pipeline").
 * Leaves out: the split binary tree of broadcasts between 2 KiB and 362 KiB, whose halves go down
 *   one side each: there it is a whole binary tree.
 * Follows: Open MPI 1.2, coll/tuned: its decisions by size and processes; docs/sources.md#mpi.
 * Costs: the words' lines, loaded and stored; messages.
 */
#include "logic/mpi/mpi_internal.h"

#define NOBODY UINT32_MAX

struct tree {
    unsigned parent; /* NOBODY: the root */
    unsigned n_children;
    uint8_t child[MPI_PROCESSES_MAX];
};

/* Number: of a process, counted from the root on. */
static void adopt(struct tree *tree, const struct mpi_comm *comm, unsigned root, unsigned number)
{
    if (number < comm->n)
        tree->child[tree->n_children++] = (uint8_t)((number + root) % comm->n);
}

static void binomial(struct tree *tree, const struct mpi_comm *comm, unsigned root, unsigned number,
                     unsigned *parent)
{
    unsigned highest = 1;
    while (2 * highest <= number)
        highest *= 2;
    *parent = number & ~highest;
    for (unsigned bit = number == 0 ? 1 : 2 * highest; bit < comm->n; bit *= 2)
        adopt(tree, comm, root, number + bit);
}

static void grow(struct tree *tree, const struct mpi_comm *comm, unsigned root,
                 enum mpi_algorithm shape)
{
    const unsigned number = (comm->rank + comm->n - root) % comm->n;
    unsigned parent = 0;
    *tree = (struct tree){ .parent = NOBODY };
    if (shape == MPI_BINOMIAL) {
        binomial(tree, comm, root, number, &parent);
    } else if (shape == MPI_PIPELINE) {
        parent = number - 1;
        adopt(tree, comm, root, number + 1);
    } else if (shape == MPI_BINARY) {
        parent = (number - 1) / 2;
        adopt(tree, comm, root, 2 * number + 1);
        adopt(tree, comm, root, 2 * number + 2);
    } else {
        for (unsigned i = 1; number == 0 && i < comm->n; i++)
            adopt(tree, comm, root, i);
    }
    if (number != 0)
        tree->parent = (parent + root) % comm->n;
}

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Broadcast ------------------------------------------------------------------------------- */

enum mpi_algorithm mpi_bcast_algorithm(unsigned n, uint64_t bytes, uint64_t *segment_bytes)
{
    const uint64_t m = bytes / 10000;
    *segment_bytes = 0;
    if (n == 1)
        return MPI_NOTHING;
    if (bytes < 2048)
        return MPI_BINOMIAL;
    *segment_bytes = 1024;
    if (bytes < 370728)
        return MPI_BINARY;
    /* n against lines a * bytes + b, in whole numbers: a in 1e-10 per byte, b in 1e-4 */
    *segment_bytes = 128 << 10;
    if (10000 * (uint64_t)n < m * 161 + 21102)
        return MPI_PIPELINE;
    *segment_bytes = 8 << 10;
    if (n < 13)
        return MPI_BINARY;
    if (10000 * (uint64_t)n < m * 237 + 11787)
        *segment_bytes = 64 << 10;
    else if (10000 * (uint64_t)n < m * 321 + 87936)
        *segment_bytes = 16 << 10;
    return MPI_PIPELINE;
}

static int pass_down(struct mpi_comm *comm, const struct tree *tree, struct kaddr at,
                     uint64_t bytes)
{
    struct mpi_request *request[MPI_PROCESSES_MAX];
    for (unsigned i = 0; i < tree->n_children; i++)
        mpi_isend2(comm, at, bytes, tree->child[i], &request[i]);
    return mpi_wait_all(comm->process, request, tree->n_children);
}

int mpi_bcast(struct mpi_comm *comm, struct kaddr at, uint64_t bytes, unsigned root)
{
    struct mpi_process *process = comm->process;
    struct mpi_request *now = NULL, *next = NULL;
    struct tree tree;
    uint64_t segment;
    const enum mpi_algorithm shape = mpi_bcast_algorithm(comm->n, bytes, &segment);
    comm->collectives++;
    if (process->error != 0 || shape == MPI_NOTHING || bytes == 0)
        return process->error;
    if (segment == 0)
        segment = bytes;
    grow(&tree, comm, root, shape);
    if (tree.parent != NOBODY)
        mpi_irecv2(comm, at, min_bytes(segment, bytes), tree.parent, &now);
    for (uint64_t done = 0; done < bytes && process->error == 0; done += segment) {
        const uint64_t then = done + segment;
        if (tree.parent != NOBODY && then < bytes)
            mpi_irecv2(comm, kaddr_add(at, then), min_bytes(segment, bytes - then), tree.parent,
                       &next);
        mpi_wait(process, &now, NULL);
        pass_down(comm, &tree, kaddr_add(at, done), min_bytes(segment, bytes - done));
        now = next;
        next = NULL;
    }
    return mpi_wait(process, &now, NULL); /* after an error: takes it back */
}

/* ---- Reduction ------------------------------------------------------------------------------- */

enum mpi_algorithm mpi_reduce_algorithm(unsigned n, uint64_t bytes, uint64_t *segment_bytes)
{
    const uint64_t e4 = 10000 * (uint64_t)n;
    *segment_bytes = 0;
    if (n == 1)
        return MPI_NOTHING;
    if ((n < 20 && bytes < 512) || (n < 10 && bytes <= 1024))
        return MPI_LINEAR;
    if (n < 8 && bytes < 20480)
        return MPI_BINOMIAL;
    if (bytes < 2048)
        return MPI_BINARY;
    *segment_bytes = 1024; /* n against lines a * bytes / 1024 + b, times 10,000 */
    if (e4 > 6016 * bytes / 1024 + 13496)
        return MPI_BINARY;
    if (e4 > 410 * bytes / 1024 + 97128)
        return MPI_PIPELINE;
    *segment_bytes = e4 > 33 * bytes / 1024 + 16761 ? 32 << 10 : 64 << 10;
    return MPI_PIPELINE;
}

/* The words of the segment at `sum` get those of all below, which then go up. */
static int pass_up(struct mpi_comm *comm, const struct tree *tree, struct kaddr sum,
                   struct kaddr in, uint64_t bytes, mpi_op *op)
{
    struct mpi_process *process = comm->process;
    struct mpi_request *request[MPI_PROCESSES_MAX], *up = NULL;
    for (unsigned i = 0; i < tree->n_children; i++)
        mpi_irecv2(comm, kaddr_add(in, i * bytes), bytes, tree->child[i], &request[i]);
    for (unsigned i = 0; i < tree->n_children; i++)
        if (mpi_wait(process, &request[i], NULL) == 0)
            op(process->kernel, sum, kaddr_add(in, i * bytes), bytes);
    if (tree->parent != NOBODY)
        mpi_isend2(comm, sum, bytes, tree->parent, &up);
    return mpi_wait(process, &up, NULL);
}

int mpi_reduce(struct mpi_comm *comm, struct kaddr from, struct kaddr to, uint64_t bytes,
               mpi_op *op, unsigned root)
{
    struct mpi_process *process = comm->process;
    struct tree tree = { .parent = NOBODY };
    uint64_t segment;
    const enum mpi_algorithm shape = mpi_reduce_algorithm(comm->n, bytes, &segment);
    comm->collectives++;
    if (segment == 0)
        segment = bytes;
    if (shape != MPI_NOTHING)
        grow(&tree, comm, root, shape);
    if (process->error != 0 || bytes == 0 ||
        !mpi_scratch(process, bytes + tree.n_children * segment))
        return process->error;
    const struct kaddr sum = comm->rank == root ? to : process->scratch;
    mpi_copy(process, sum, from, bytes);
    for (uint64_t done = 0; done < bytes && process->error == 0; done += segment)
        pass_up(comm, &tree, kaddr_add(sum, done), kaddr_add(process->scratch, bytes),
                min_bytes(segment, bytes - done), op);
    return process->error;
}
