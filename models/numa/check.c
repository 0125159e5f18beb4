/*
 * The invariants of the private caches, checked line by line, and then those of the coherence
 * protocol. For tests: slow.
 *
 * - A line of an L1 is in its L2; M there only if M in the L2.
 * - A line that is E or M in a core group is in no other core group.
 * - Where an L2 has sectors of two lines, both are in the same way, and no way has lines of two.
 */
#include "models/numa/numa_internal.h"

struct walk {
    const struct numa *n;
    unsigned group;
    struct coherence_check check;
};

static void check_l1_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct walk *w = context;
    const struct cache *l2 = &w->n->core_group[w->group].l2;
    const struct cache_place p = cache_place(l2, line);
    const int way2 = cache_find(l2, p);

    (void)way;
    if (way2 < 0)
        coherence_check_fail(&w->check, line, "in an L1 but not in its L2");
    else if (line_state(word) == LINE_M && cache_state(p, way2) != LINE_M)
        coherence_check_fail(&w->check, line, "M in an L1 but not in its L2");
}

static void check_sector(struct walk *w, uint64_t line, int way)
{
    const struct cache *l2 = &w->n->core_group[w->group].l2;
    const struct cache_place other = cache_place(l2, line ^ 1);
    const int way_of_other = cache_find(l2, other);

    if (way_of_other >= 0 && way_of_other != way)
        coherence_check_fail(&w->check, line, "in another way than the other line of its sector");
    if (way_of_other < 0 && cache_holds(other, way))
        coherence_check_fail(&w->check, line, "in a way with a line of another sector");
}

static void check_l2_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct walk *w = context;
    const unsigned groups = w->n->sockets * w->n->groups_per_socket;

    if (w->n->params->cache->l2_sector_lines > 1)
        check_sector(w, line, way);
    for (unsigned c = 0; c < groups; c++) {
        if (c == w->group)
            continue;
        const enum line_state other = core_group_peek(w->n, c, line);
        if (other != LINE_I && (line_state(word) >= LINE_E || other >= LINE_E))
            coherence_check_fail(&w->check, line, "owned by one L2, but another has it");
    }
}

bool numa_check_invariants(const struct numa *n, const char **why, uint64_t *bad_line)
{
    struct walk w = { .n = n };

    for (w.group = 0; w.group < n->sockets * n->groups_per_socket; w.group++) {
        const struct core_group *group = &n->core_group[w.group];
        cache_each(&group->l2, &w, check_l2_line);
        for (unsigned i = 0; i < group->n_l1; i++)
            cache_each(&group->l1[i], &w, check_l1_line);
    }
    if (n->ops->check != NULL)
        n->ops->check(n, &w.check);
    *why = w.check.why;
    *bad_line = w.check.line;
    return w.check.why == NULL;
}
