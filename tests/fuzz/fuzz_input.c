#include "tests/fuzz/fuzz_world.h"

#include <string.h>

#include "sim/engine/types.h"

uint64_t fuzz_any(struct fuzz_random *random, uint64_t bound)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    return (random->state * UINT64_C(2685821657736338717) >> 11) % bound;
}

static struct fuzz_random seeded(unsigned seed)
{
    return (struct fuzz_random){ (seed + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15) };
}

uint32_t fuzz_any32(struct fuzz_random *random)
{
    switch (fuzz_any(random, 5)) {
    case 0: return (uint32_t)fuzz_any(random, 16);
    case 1: return (uint32_t)fuzz_any(random, 16) << 16 | (uint32_t)fuzz_any(random, 8);
    case 2: return UINT32_MAX - (uint32_t)fuzz_any(random, 2);
    case 3: return 1u << fuzz_any(random, 32);
    default: return (uint32_t)fuzz_any(random, UINT64_C(1) << 32);
    }
}

uint32_t fuzz_any_address(struct fuzz_random *random)
{
    const uint32_t kind = (uint32_t)(fuzz_any(random, 3) != 0 ? 0 : fuzz_any(random, 8));
    return kind << 29 | (uint32_t)fuzz_any(random, 1u << 29);
}

void fuzz_input(const struct fuzz_target *target, const uint8_t *data, size_t bytes)
{
    struct fuzz_op op[FUZZ_OPS_MAX] = { 0 };
    const size_t n = SIM_MIN(bytes / sizeof(op[0]), (size_t)FUZZ_OPS_MAX);
    if (n != 0)
        memcpy(op, data, n * sizeof(op[0]));
    fuzz_world_play(target, op, n != 0 ? n : 1);
}

/* ---- Mutation: operations are inserted, removed, exchanged as wholes ------------------------- */

struct list {
    struct fuzz_op op[FUZZ_OPS_MAX];
    size_t n, n_max;
};

static void insert(struct list *list, size_t at, const struct fuzz_op *op)
{
    if (list->n == list->n_max)
        return;
    memmove(&list->op[at + 1], &list->op[at], (list->n - at) * sizeof(*op));
    list->op[at] = *op;
    list->n++;
}

static void remove_some(struct list *list, size_t at, size_t n)
{
    n = SIM_MIN(n, list->n - at);
    memmove(&list->op[at], &list->op[at + n], (list->n - at - n) * sizeof(list->op[0]));
    list->n -= n;
}

static void change(const struct fuzz_target *target, struct list *list, struct fuzz_random *random,
                   fuzz_mutate_fn *mutate)
{
    /* The first operation makes the world and stays where it is. */
    const size_t at = (size_t)fuzz_any(random, list->n);
    const size_t behind = 1 + (size_t)fuzz_any(random, list->n);
    struct fuzz_op op;
    switch (fuzz_any(random, 8)) {
    case 0:
    case 1: mutate((uint8_t *)&list->op[at], sizeof(op), sizeof(op)); break;
    case 2:
        if (list->n > 1 && at != 0)
            remove_some(list, at, 1 + (size_t)fuzz_any(random, 4));
        break;
    case 3:
        op = list->op[at];
        insert(list, behind, &op);
        break;
    case 4: target->invent(&list->op[at], random, at == 0); break;
    default:
        target->invent(&op, random, 0);
        insert(list, behind, &op);
        break;
    }
}

size_t fuzz_mutate(const struct fuzz_target *target, uint8_t *data, size_t bytes, size_t bytes_max,
                   unsigned seed, fuzz_mutate_fn *mutate)
{
    struct fuzz_random random = seeded(seed);
    struct list list = { .n = SIM_MIN(bytes / sizeof(struct fuzz_op), (size_t)FUZZ_OPS_MAX),
                         .n_max = SIM_MIN(bytes_max / sizeof(struct fuzz_op),
                                          (size_t)FUZZ_OPS_MAX) };
    if (list.n_max == 0)
        return bytes;
    memcpy(list.op, data, list.n * sizeof(list.op[0]));
    if (list.n == 0) {
        list.n = 1;
        target->invent(&list.op[0], &random, 1);
    }
    const uint64_t n = 1 + fuzz_any(&random, list.n < 8 ? 16 : 5);
    for (uint64_t i = 0; i < n; i++)
        change(target, &list, &random, mutate);
    memcpy(data, list.op, list.n * sizeof(list.op[0]));
    return list.n * sizeof(list.op[0]);
}

size_t fuzz_cross(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes, uint8_t *out,
                  size_t out_bytes_max, unsigned seed)
{
    const size_t op = sizeof(struct fuzz_op);
    const size_t n_a = a_bytes / op, n_b = b_bytes / op, n_max = out_bytes_max / op;
    struct fuzz_random random = seeded(seed);
    if (n_a == 0 || n_b == 0)
        return 0;
    const size_t keep = SIM_MIN(1 + (size_t)fuzz_any(&random, n_a), n_max);
    const size_t from = (size_t)fuzz_any(&random, n_b);
    const size_t more = SIM_MIN(n_b - from, n_max - keep);
    memcpy(out, a, keep * op);
    memcpy(out + keep * op, b + from * op, more * op);
    return (keep + more) * op;
}
