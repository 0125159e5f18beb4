/*
 * Whose submission queue entries are fetched next.
 *
 * Models: round robin among all queues; weighted round robin with urgent priority class: the admin
 *   queue before urgent queues before the others, whose classes share commands by weight, queues of
 *   a class in turn; Arbitration Burst, the commands of a queue in a turn. Admin commands take none
 *   of the room that I/O commands wait for (commands_max).
 * Does not model: arbitration by bytes or of commands that have been fetched: these are executed in
 *   the order in which they came.
 * Timing: a queue with entries has fetch_burst of them read at once, one read at a time.
 *   Controllers of a subsystem take turns, a read each.
 * Sources: NVM Express 1.3, sections 4.13, 5.21.1.1.
 */
#include "models/nvme/nvme_internal.h"

#define FIRST_WEIGHTED ((unsigned)NVME_CLASS_HIGH)

/* ---- Which queues have entries --------------------------------------------------------------- */

void nvme_sq_update(struct nvme_sq *sq)
{
    uint64_t *word = &sq->nvme->ready[sq->class][sq->number / 64];
    const uint64_t bit = UINT64_C(1) << sq->number % 64;
    if (!sq->there || sq->fetching || sq->deleting || sq->stopped || sq->head == sq->tail) {
        *word &= ~bit;
    } else if ((*word & bit) == 0) {
        *word |= bit;
        sq->since_ps = nvme_now(sq->nvme);
    }
}

void nvme_sq_classify(struct nvme_sq *sq, uint32_t priority)
{
    const bool weighted = NVME_CC_AMS(sq->nvme->cc) == NVME_CC_AMS_WRR;
    sq->class = NVME_CLASS_FIRST;
    if (weighted && sq->number != 0)
        sq->class = (uint8_t)(NVME_CLASS_URGENT + priority);
    sq->turn = 0;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static uint32_t burst(const struct nvme *nvme)
{
    uint32_t log2 = nvme->features[NVME_SELECT_CURRENT].arbitration & 0x7u;
    return log2 == NVME_ARBITRATION_NO_LIMIT ? UINT32_MAX : 1u << log2;
}

/* Commands that the queue may still have in this turn. */
static uint32_t left_in_turn(const struct nvme *nvme, struct nvme_sq *sq)
{
    if (sq->turn != nvme->turn[sq->class]) {
        sq->turn = nvme->turn[sq->class];
        sq->turn_left = burst(nvme);
    }
    return sq->turn_left;
}

/* The first queue with entries from `from` on, before `to`; NULL: there is none. */
static struct nvme_sq *scan(const struct nvme *nvme, unsigned class, uint32_t from, uint32_t to,
                            bool any_turn)
{
    for (uint32_t word = from / 64; word < (to + 63) / 64; word++) {
        uint64_t bits = nvme->ready[class][word];
        if (word == from / 64)
            bits &= UINT64_MAX << from % 64;
        for (; bits != 0; bits &= bits - 1) {
            uint32_t q = word * 64 + (unsigned)__builtin_ctzll(bits);
            if (q >= to)
                return NULL;
            if (any_turn || left_in_turn(nvme, nvme->sq[q]) != 0)
                return nvme->sq[q];
        }
    }
    return NULL;
}

/* The queue of a class whose turn it is. */
static struct nvme_sq *pick(struct nvme *nvme, unsigned class, bool io_room)
{
    const uint32_t n = io_room ? nvme->n_queues : 1, next = SIM_MIN(nvme->next_sq[class], n);
    struct nvme_sq *sq;
    for (unsigned again = 0; again < 2; again++) {
        sq = scan(nvme, class, next, n, false);
        if (sq == NULL)
            sq = scan(nvme, class, 0, next, false);
        if (sq != NULL || scan(nvme, class, 0, n, true) == NULL)
            return sq;
        nvme->turn[class]++; /* all have had theirs */
    }
    return NULL;
}

/* ---- Classes --------------------------------------------------------------------------------- */

static uint32_t weight(const struct nvme *nvme, unsigned class)
{
    /* Low, medium, high from bit 8 on; they count from 0. */
    const unsigned shift = 8 * (NVME_CLASS_LOW - class + 1);
    return (nvme->features[NVME_SELECT_CURRENT].arbitration >> shift & 0xffu) + 1;
}

static struct nvme_sq *pick_weighted(struct nvme *nvme, bool io_room)
{
    struct nvme_sq *sq[NVME_CLASSES] = { NULL };
    bool any = false;
    for (unsigned class = FIRST_WEIGHTED; class < NVME_CLASSES; class ++) {
        sq[class] = pick(nvme, class, io_room);
        if (sq[class] != NULL && nvme->credit[class] != 0)
            return sq[class];
        any |= sq[class] != NULL;
    }
    if (!any)
        return NULL;
    for (unsigned class = FIRST_WEIGHTED; class < NVME_CLASSES; class ++)
        nvme->credit[class] = weight(nvme, class);
    for (unsigned class = FIRST_WEIGHTED; class < NVME_CLASSES; class ++)
        if (sq[class] != NULL)
            return sq[class];
    return NULL;
}

static struct nvme_sq *arbitrate(struct nvme *nvme, bool io_room)
{
    struct nvme_sq *sq = pick(nvme, NVME_CLASS_FIRST, io_room);
    if (sq != NULL || NVME_CC_AMS(nvme->cc) == NVME_CC_AMS_RR)
        return sq;
    sq = pick(nvme, NVME_CLASS_URGENT, io_room);
    return sq != NULL ? sq : pick_weighted(nvme, io_room);
}

/* ---- Fetching -------------------------------------------------------------------------------- */

static uint32_t entries_of_turn(struct nvme *nvme, struct nvme_sq *sq)
{
    const struct nvme_params *params = nvme_params(nvme);
    uint32_t n = (sq->tail + sq->entries - sq->head) % sq->entries;
    n = SIM_MIN(n, params->fetch_burst);
    n = SIM_MIN(n, sq->entries - sq->head);
    n = SIM_MIN(n, sq->turn_left);
    if (sq->number != 0)
        n = SIM_MIN(n, params->commands_max - nvme->sub->n_commands);
    if (sq->class >= FIRST_WEIGHTED) {
        n = SIM_MIN(n, nvme->credit[sq->class]);
        nvme->credit[sq->class] -= n;
    }
    if (sq->turn_left != UINT32_MAX)
        sq->turn_left -= n;
    return n;
}

void nvme_fetch(struct nvme_subsystem *sub)
{
    const struct nvme *idle = NULL; /* since this one nothing has been found */
    for (;;) {
        struct nvme *nvme = sub->turn;
        if (nvme == idle)
            return;
        sub->turn = nvme->next;
        struct nvme_sq *sq = nvme_running(nvme)
                                 ? arbitrate(nvme, sub->n_commands < sub->params.commands_max)
                                 : NULL;
        if (sq != NULL) {
            nvme->next_sq[sq->class] = sq->number + 1u;
            const sim_time wait_ps = nvme_now(nvme) - sq->since_ps;
            sub->stats.queue_wait_max_ps = SIM_MAX(sub->stats.queue_wait_max_ps, wait_ps);
            sub->stats.sqes_of_class[sq->class] += nvme_fetch_from(sq, entries_of_turn(nvme, sq));
            idle = NULL;
        } else if (idle == NULL) {
            idle = nvme;
        }
    }
}
