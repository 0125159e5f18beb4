/*
 * CG: conjugate gradients on a sparse matrix, cut into a grid of processes.
 *
 * A unit is an iteration of the inner loop: a matrix-vector product whose partial sums are added
 * along the row of the grid (log2 of its columns exchanges of na / rows values), an exchange with
 * the transposed process, and two scalar products (log2 exchanges of one value each). An outer
 * iteration is 25 of them and one more product with its norm, which has one scalar product less and
 * one pair of norms more: counted as a unit.
 * Sources: docs/sources.md#nas (NPB 3, CG/cg.f).
 */
#include "workloads/openmx/nas.h"

#define INNER 25u /* cgitmax */
#define SIDE  4u  /* rows and columns of the grid of 16 */
#define LOG2  2u

struct cg_class {
    unsigned na, niter;
};
static const struct cg_class cg_b = { 75000, 75 };

enum { TAG_ROW, TAG_TRANSPOSED, TAG_SCALAR };

/* Process i steps apart, halving: in the same row of the grid. */
static unsigned row_peer(unsigned id, unsigned step)
{
    const unsigned column = id % SIDE, row = id / SIDE, group = SIDE >> step;
    return row * SIDE + (column + group / 2) % group + column / group * group;
}

static bool scalar_product(struct nas_rank *rank)
{
    for (unsigned i = 0; i < LOG2; i++) {
        const unsigned peer = row_peer(rank->id, i);
        if (!nas_exchange(rank, peer, peer, 8, TAG_SCALAR))
            return false;
    }
    return true;
}

static bool cg_unit(struct nas_rank *rank)
{
    const struct cg_class *class = rank->benchmark->parameters;
    const uint64_t bytes = class->na / SIDE * 8;
    const unsigned transposed = rank->id % SIDE * SIDE + rank->id / SIDE;
    nas_compute(rank, 1);
    for (unsigned i = LOG2; i-- > 0;) {
        const unsigned peer = row_peer(rank->id, i);
        if (!nas_exchange(rank, peer, peer, bytes, TAG_ROW))
            return false;
    }
    return nas_exchange(rank, transposed, transposed, bytes, TAG_TRANSPOSED) &&
           scalar_product(rank) && scalar_product(rank);
}

const struct nas_benchmark nas_cg_b = { "cg.B.16", 75 * (INNER + 1), 75000 / SIDE * 8, &cg_b,
                                        0,         cg_unit };
