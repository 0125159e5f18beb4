/*
 * MG: multigrid on a cube, cut into a grid of 2 x 2 x 4 processes.
 *
 * A unit is a V cycle and the residual after it. At each level faces are exchanged along three
 * axes, in both directions, after the restriction from the level above (or, on the coarsest, the
 * smoother), the residual and the smoother; on the finest after the residual, the smoother and the
 * last residual. Faces include the ghost cells of the axes before, as in comm3. Computation is
 * spread over the levels by their cells. On the coarsest level, which has fewer cells than the grid
 * has processes, some are idle.
 * Leaves out: exchanges between idle and active processes at that level; the norm at the end.
 * Sources: docs/sources.md#nas (NPB 3, MG/mg.f).
 */
#include "workloads/openmx/nas.h"

#define AXES 3u

struct mg_class {
    unsigned levels; /* log2 of the cube's side */
};
static const struct mg_class mg_b = { 8 };

static const unsigned grid[AXES] = { 2, 2, 4 };

struct face {
    uint64_t bytes;
    unsigned peer[2]; /* below, above */
    bool active;
};

static unsigned coordinate(unsigned id, unsigned axis)
{
    return axis == 0 ? id % grid[0] : axis == 1 ? id / grid[0] % grid[1] : id / (grid[0] * grid[1]);
}

static unsigned process_at(unsigned id, unsigned axis, unsigned at)
{
    const unsigned stride = axis == 0 ? 1 : axis == 1 ? grid[0] : grid[0] * grid[1];
    return id + (at - coordinate(id, axis)) * stride;
}

/* Cells of a process along an axis, without ghosts; 1 where only some processes have any. */
static unsigned cells(unsigned level, unsigned axis)
{
    const unsigned side = 1u << level;
    return side > grid[axis] ? side / grid[axis] : 1;
}

static struct face face_of(unsigned id, unsigned level, unsigned axis)
{
    const unsigned side = 1u << level, n = grid[axis], step = side < n ? n / side : 1;
    const unsigned at = coordinate(id, axis);
    const uint64_t n1 = cells(level, 0), n2 = cells(level, 1), n3 = cells(level, 2);
    struct face face = { .active = true };
    face.bytes = 8 * (axis == 0 ? n2 * n3 : axis == 1 ? (n1 + 2) * n3 : (n1 + 2) * (n2 + 2));
    face.peer[0] = process_at(id, axis, (at + n - step) % n);
    face.peer[1] = process_at(id, axis, (at + step) % n);
    for (unsigned a = 0; a < AXES; a++)
        if (side < grid[a] && coordinate(id, a) % (grid[a] / side) != 0)
            face.active = false;
    return face;
}

/* Both faces of an axis: receives, sends, waits. The process's two buffers have room for two. */
static bool exchange_faces(struct nas_rank *rank, const struct face *face, int tag)
{
    struct mpi_rank *own = rank->rank;
    struct mpi_request *request[2];
    const uint64_t half = rank->benchmark->buffer_bytes / 2;
    for (unsigned d = 0; d < 2; d++) {
        mpi_job_clear(own, kaddr_add(rank->in, d * half), face->bytes);
        mpi_irecv(rank->world, kaddr_add(rank->in, d * half), face->bytes, (int)face->peer[d],
                  tag + (int)d, &request[d]);
    }
    for (unsigned d = 0; d < 2; d++) /* what goes up comes from below there */
        mpi_send(rank->world, kaddr_add(rank->out, d * half), face->bytes, face->peer[1 - d],
                 tag + (int)d);
    if (!mpi_job_ok(own, "an exchange of faces",
                    mpi_wait_all(mpi_process_of(rank->world), request, 2)))
        return false;
    for (unsigned d = 0; d < 2; d++)
        mpi_job_verify(own, kaddr_add(rank->in, d * half), own->job->rank[face->peer[d]].stream,
                       d * half, face->bytes);
    return mpi_job_good(own->job);
}

static bool comm3(struct nas_rank *rank, unsigned level)
{
    for (unsigned axis = 0; axis < AXES; axis++) {
        const struct face face = face_of(rank->id, level, axis);
        if (face.active && !exchange_faces(rank, &face, (int)(2 * (level * AXES + axis))))
            return false;
    }
    return true;
}

/* Of a unit's computation, what comes before one of a level's three exchanges. */
static double share(const struct mg_class *class, unsigned level)
{
    double all = 0, cells_of = 1;
    for (unsigned l = class->levels; l > 0; l--) {
        all += cells_of;
        cells_of /= 8;
    }
    double own = 1;
    for (unsigned l = class->levels; l > level; l--)
        own /= 8;
    return own / all / 3;
}

static bool step(struct nas_rank *rank, unsigned level)
{
    nas_compute(rank, share(rank->benchmark->parameters, level));
    return comm3(rank, level);
}

static bool mg_unit(struct nas_rank *rank)
{
    const struct mg_class *class = rank->benchmark->parameters;
    for (unsigned level = class->levels; level-- > 1;)
        if (!step(rank, level)) /* restriction */
            return false;
    if (!step(rank, 1))
        return false;
    for (unsigned level = 2; level <= class->levels; level++)
        if (!step(rank, level) || !step(rank, level)) /* residual, smoother */
            return false;
    return step(rank, class->levels);
}

/* Two faces of 130 x 130 cells. */
const struct nas_benchmark nas_mg_b = { "mg.B.16", 20, UINT64_C(2) * 8 * 132 * 132,
                                        &mg_b,     0,  mg_unit };
