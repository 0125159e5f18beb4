/*
 * The invariants of the caches, checked line by line. For tests: slow.
 *
 * - A line of an L1 is in its L2; M there only if M in the L2; M in one L1 at most.
 * - A line of a private cache is in its socket's LLC or snoop filter, with the sharer bit of its
 *   core group, and at the place that the core group remembers (core_group.llc_at).
 * - A line that is E or M in a core group is in no other core group. A line that is E or M in a
 *   socket is in no other socket.
 * - A line in a socket that is not its home is not DIRECTORY_I; E or M: DIRECTORY_A.
 */
#include "models/numa/numa_internal.h"

struct check {
    const struct numa *n;
    const struct cache *l2;
    unsigned socket, group;
    const char *why;
    uint64_t line;
};

static void fail(struct check *k, uint64_t line, const char *why)
{
    if (k->why == NULL) {
        k->why = why;
        k->line = line;
    }
}

/* State word of the line in the socket's LLC or filter, 0 if it is in neither. */
static uint32_t known(const struct numa *n, unsigned socket, uint64_t line)
{
    const struct cache *both[] = { &n->socket[socket].llc, &n->socket[socket].filter };

    for (size_t i = 0; i < SIM_N_ELEMENTS(both); i++) {
        if (both[i]->row == NULL)
            continue;
        const struct cache_place p = cache_place(both[i], line);
        const int way = cache_find(both[i], p);
        if (way >= 0)
            return cache_word(both[i], p, way);
    }
    return 0;
}

static void check_l1_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct check *k = context;
    const struct cache_place p = cache_place(k->l2, line);
    const int way2 = cache_find(k->l2, p);

    (void)way;
    if (way2 < 0)
        fail(k, line, "in an L1 but not in its L2");
    else if (line_state(word) == LINE_M && cache_state(p, way2) != LINE_M)
        fail(k, line, "M in an L1 but not in its L2");
}

/* The place in the LLC that the core group remembers for the line is right. */
static void check_llc_at(struct check *k, uint64_t line, int way)
{
    const struct cache *llc = &k->n->socket[k->socket].llc;
    const uint32_t *llc_at = k->n->core_group[k->group].llc_at;
    const struct cache_place p = cache_place(llc, line);

    if (llc_at != NULL &&
        llc_at[cache_place(k->l2, line).index * FAST_PRIVATE_WAYS + (uint32_t)way] !=
            agent_at(p, cache_find(llc, p)))
        fail(k, line, "not where its L2 remembers that the LLC has it");
}

static void check_l2_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct check *k = context;
    const struct numa *n = k->n;
    const unsigned groups = n->sockets * n->groups_per_socket;

    if (n->socket[0].llc.row != NULL) {
        const uint32_t at_socket = known(n, k->socket, line);
        if ((at_socket & n->core_group[k->group].sharer_bit) == 0)
            fail(k, line, "in an L2 but its socket does not know");
        if (line_state(word) >= LINE_E && line_state(at_socket) < LINE_E)
            fail(k, line, "owned by an L2 but not by its socket");
        check_llc_at(k, line, way);
    }
    for (unsigned c = 0; c < groups; c++) {
        if (c == k->group)
            continue;
        const enum line_state other = core_group_peek(n, c, line);
        if (other != LINE_I && (line_state(word) >= LINE_E || other >= LINE_E))
            fail(k, line, "owned by one L2, but another has it");
    }
}

static void check_socket_line(void *context, uint64_t line, int way, uint32_t word)
{
    struct check *k = context;
    const struct numa *n = k->n;
    const unsigned home = home_of(n, line);

    (void)way;
    for (unsigned s = 0; s < n->sockets; s++) {
        const uint32_t other = s == k->socket ? 0 : known(n, s, line);
        if (other != 0 && (line_state(word) >= LINE_E || line_state(other) >= LINE_E))
            fail(k, line, "owned by one socket, but another has it");
    }
    if (home == k->socket)
        return;
    const enum directory_state d = directory_get(&n->socket[home].directory, home_line(n, line));
    if (d == DIRECTORY_I)
        fail(k, line, "in a socket that the directory does not know of");
    else if (line_state(word) >= LINE_E && d != DIRECTORY_A)
        fail(k, line, "owned by a socket, but the directory says shared");
}

bool numa_check_invariants(const struct numa *n, const char **why, uint64_t *bad_line)
{
    struct check k = { .n = n };

    for (unsigned c = 0; c < n->sockets * n->groups_per_socket; c++) {
        k.group = c;
        k.socket = n->core_group[c].socket;
        k.l2 = &n->core_group[c].l2;
        cache_each(k.l2, &k, check_l2_line);
        for (unsigned i = 0; i < n->params->cache->l2_cores; i++)
            cache_each(&n->core_group[c].l1[i], &k, check_l1_line);
    }
    for (unsigned s = 0; s < n->sockets && n->socket[0].llc.row != NULL; s++) {
        k.socket = s;
        cache_each(&n->socket[s].llc, &k, check_socket_line);
        if (n->socket[s].filter.row != NULL)
            cache_each(&n->socket[s].filter, &k, check_socket_line);
    }
    *why = k.why;
    *bad_line = k.line;
    return k.why == NULL;
}
