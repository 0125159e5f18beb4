/*
 * The invariants of coherence by home agents, checked line by line. For tests: slow.
 *
 * - A line of a private cache is in its socket's LLC or snoop filter, with the sharer bit of its
 *   core group, and at the place that the core group remembers (core_group.llc_at).
 * - A line that is E or M in a socket is in no other socket.
 * - A line in a socket that is not its home is not DIRECTORY_I; E or M: DIRECTORY_A. Unless
 *   snoop_mode has no directory.
 */
#include "models/numa/numa_internal.h"

struct walk {
    const struct numa *n;
    const struct core_group *group; /* of the line, if it is in a private cache */
    unsigned socket;
    struct coherence_check *check;
};

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

static void check_l2_line(void *context, uint64_t line, int way, uint32_t word)
{
    const struct walk *w = context;
    const struct core_group *group = w->group;
    const struct cache *llc = &w->n->socket[group->socket].llc;
    const uint32_t at_socket = known(w->n, group->socket, line);

    if ((at_socket & group->sharer_bit) == 0)
        coherence_check_fail(w->check, line, "in an L2 but its socket does not know");
    if (line_state(word) >= LINE_E && line_state(at_socket) < LINE_E)
        coherence_check_fail(w->check, line, "owned by an L2 but not by its socket");
    if (group->llc_at == NULL)
        return;
    const struct cache_place p = cache_place(llc, line);
    const uint32_t set = cache_place(&group->l2, line).index;
    if (group->llc_at[set * FAST_PRIVATE_WAYS + (uint32_t)way] != agent_at(p, cache_find(llc, p)))
        coherence_check_fail(w->check, line, "not where its L2 remembers that the LLC has it");
}

static void check_socket_line(void *context, uint64_t line, int way, uint32_t word)
{
    const struct walk *w = context;
    const struct numa *n = w->n;
    const unsigned home = home_of(n, line);

    (void)way;
    for (unsigned s = 0; s < n->sockets; s++) {
        const uint32_t other = s == w->socket ? 0 : known(n, s, line);
        if (other != 0 && (line_state(word) >= LINE_E || line_state(other) >= LINE_E))
            coherence_check_fail(w->check, line, "owned by one socket, but another has it");
    }
    if (home == w->socket || n->params->coherence->snoop_mode != SNOOP_MODE_DIRECTORY)
        return;
    const enum directory_state d = directory_get(&n->socket[home].directory, home_line(n, line));
    if (d == DIRECTORY_I)
        coherence_check_fail(w->check, line, "in a socket that the directory does not know of");
    else if (line_state(word) >= LINE_E && d != DIRECTORY_A)
        coherence_check_fail(w->check, line, "owned by a socket, but the directory says shared");
}

void coherence_home_check(const struct numa *n, struct coherence_check *check)
{
    struct walk w = { .n = n, .check = check };

    for (unsigned c = 0; c < n->sockets * n->groups_per_socket; c++) {
        w.group = &n->core_group[c];
        cache_each(&w.group->l2, &w, check_l2_line);
    }
    for (w.socket = 0; w.socket < n->sockets; w.socket++) {
        cache_each(&n->socket[w.socket].llc, &w, check_socket_line);
        if (n->socket[w.socket].filter.row != NULL)
            cache_each(&n->socket[w.socket].filter, &w, check_socket_line);
    }
}
