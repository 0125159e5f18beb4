/*
 * FT: a Fourier transform in three dimensions, cut into slabs (16 processes are fewer than planes).
 *
 * A unit is a transform: computation, an Alltoall of all that a process has, and the checksum of
 * two values at process 0. A run is one transform forth and niter back.
 * Sources: docs/sources.md#nas (NPB 3, FT/ft.f).
 */
#include "workloads/openmx/nas.h"

#define VALUE_BYTES 16u /* a complex number */

struct ft_class {
    uint64_t points;
};
static const struct ft_class ft_b = { UINT64_C(512) * 256 * 256 };
static const struct ft_class ft_w = { UINT64_C(128) * 128 * 32 };

static uint64_t block_bytes(const struct nas_rank *rank)
{
    const struct ft_class *class = rank->benchmark->parameters;
    return nas_part(rank, class->points / NAS_PROCESSES / NAS_PROCESSES) * VALUE_BYTES;
}

static bool ft_unit(struct nas_rank *rank)
{
    struct mpi_rank *own = rank->rank;
    const uint64_t block = block_bytes(rank);
    nas_compute(rank, 1);
    mpi_job_clear(own, rank->in, block * NAS_PROCESSES);
    if (!mpi_job_ok(own, "Alltoall", mpi_alltoall(rank->world, rank->out, rank->in, block)))
        return false;
    for (unsigned i = 0; i < NAS_PROCESSES; i++)
        mpi_job_verify(own, kaddr_add(rank->in, i * block), own->job->rank[i].stream,
                       rank->id * block, block);
    return nas_sum(rank, 2, false);
}

const struct nas_benchmark nas_ft_b = {
    "ft.B.16", 21, UINT64_C(512) * 256 * 256 / NAS_PROCESSES *VALUE_BYTES, &ft_b, 8, ft_unit
};
const struct nas_benchmark nas_ft_w = {
    "ft.W.16", 7, UINT64_C(128) * 128 * 32 / NAS_PROCESSES *VALUE_BYTES, &ft_w, 4, ft_unit
};
