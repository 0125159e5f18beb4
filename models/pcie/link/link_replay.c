/*
 * Models: a direction with bit errors: go-back-N. A corrupt TLP, and all that follow it, are
 *   discarded; the first of them is answered by a NAK, on which the sender replays from it in
 *   order. DLLPs can be corrupt as well: what no ACK or NAK says, the replay timer does.
 * Does not model: a limit of the replay buffer, retraining after four replays of one TLP, TLPs that
 *   a cut-through switch would have begun to forward (they are held back here), errors in framing.
 * Timing: a TLP or DLLP of n bytes is corrupt with probability 1 - (1 - ratio)^(8n). TLPs go one
 *   at a time, as the wire becomes free. Replay timer = 3 * ACK latency limit + 2 * latency from
 * the end of the TLP. A corrupt UpdateFC is sent again after the FC-update guideline. Sources: PCI
 * Express Base 3.1, 3.5.2 (ACK, NAK, replay timer).
 */
#include "models/pcie/link/link.h"

#include "models/base/model.h"
#include "models/pcie/link/tlp_trace.h"

#include <math.h>
#include <stdlib.h>

/* In the replay buffer. */
struct replay_entry {
    struct tlp *tlp; /* NULL once the receiver's model has it */
    uint32_t bytes;
    bool sent; /* at least once */
};

/* On the wire. */
struct replay_flight {
    uint64_t number;
    sim_time head_ps, tail_ps;
    bool corrupt;
};

struct link_replay {
    double log_bit_ok; /* log(1 - bit error ratio) */
    struct sim_random random;
    /* Sender: TLPs acked .. end - 1 are in the buffer, next goes on the wire next. */
    uint64_t acked, next, end;
    struct replay_entry *entry;
    uint32_t entry_capacity;
    struct replay_flight *flight;
    uint32_t flight_capacity, flight_first, n_flight;
    struct link_ring answers; /* ACKs and NAKs on their way to this direction's sender */
    struct sim_event arrive, timer, answer;
    /* Receiver. */
    uint64_t expected;
    uint32_t n_unacked;
    bool nak_scheduled;
    struct sim_event ack;
    /* This wire's owed DLLPs. */
    struct sim_event settle;
    struct link_dir *dir;
};

static bool is_corrupt(struct link_replay *replay, uint32_t bytes)
{
    double ok = exp(8.0 * bytes * replay->log_bit_ok);

    return sim_random_unit(&replay->random) >= ok;
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static struct replay_entry *entry_at(struct link_replay *replay, uint64_t number)
{
    return &replay->entry[number & (replay->entry_capacity - 1)];
}

static void entries_grow(struct link_replay *replay)
{
    uint32_t capacity = replay->entry_capacity * 2;
    struct replay_entry *entry = sim_zalloc(capacity, sizeof(*entry));

    for (uint64_t i = replay->acked; i < replay->end; i++)
        entry[i & (capacity - 1)] = *entry_at(replay, i);
    free(replay->entry);
    replay->entry = entry;
    replay->entry_capacity = capacity;
}

static struct replay_flight *flight_at(struct link_replay *replay, uint32_t i)
{
    return &replay->flight[(replay->flight_first + i) & (replay->flight_capacity - 1)];
}

static void flights_grow(struct link_replay *replay)
{
    uint32_t capacity = replay->flight_capacity * 2;
    struct replay_flight *flight = sim_zalloc(capacity, sizeof(*flight));

    for (uint32_t i = 0; i < replay->n_flight; i++)
        flight[i] = *flight_at(replay, i);
    free(replay->flight);
    replay->flight = flight;
    replay->flight_capacity = capacity;
    replay->flight_first = 0;
}

/* ---- Sender ---------------------------------------------------------------------------------- */

static sim_time flight_delivery_ps(const struct link_dir *dir, const struct replay_flight *flight)
{
    return dir->to_cut_through && !flight->corrupt ? flight->head_ps : flight->tail_ps;
}

static void restart_timer(struct link_dir *dir)
{
    struct link_replay *replay = dir->replay;

    sim_cancel(dir->sim, &replay->timer);
    if (replay->acked < replay->next)
        sim_schedule(dir->sim, &replay->timer,
                     SIM_MAX(dir->last_tail_ps, sim_now(dir->sim)) + 3 * link_limit_ps(dir) +
                         dir->latency_ps);
}

/* Puts TLP `next` of the buffer on the wire, which is free. */
static void transmit(struct link_dir *dir)
{
    struct link_replay *replay = dir->replay;
    struct replay_entry *entry = entry_at(replay, replay->next);
    sim_time start_ps = link_take_wire(dir, sim_now(dir->sim), entry->bytes);

    if (!entry->sent)
        link_account(dir, entry->tlp, start_ps, entry->bytes);
    else
        dir->stats.replays++;
    entry->sent = true;
    if (replay->n_flight == replay->flight_capacity)
        flights_grow(replay);
    struct replay_flight *flight = flight_at(replay, replay->n_flight++);
    *flight = (struct replay_flight){ .number = replay->next,
                                      .head_ps = start_ps + dir->latency_ps,
                                      .tail_ps = dir->last_tail_ps,
                                      .corrupt = is_corrupt(replay, entry->bytes) };
    replay->next++;
    if (replay->n_flight == 1)
        sim_schedule(dir->sim, &replay->arrive, flight_delivery_ps(dir, flight));
    if (!sim_event_pending(&replay->timer))
        restart_timer(dir);
}

/* Moves the oldest queued TLP that may go into the replay buffer. */
static bool take_from_queue(struct link_dir *dir)
{
    struct link_replay *replay = dir->replay;
    bool short_of_credits;
    struct tlp *tlp = link_pick(dir, &short_of_credits);

    if (short_of_credits)
        link_arm_for_credits(dir);
    if (tlp == NULL)
        return false;
    if (tlp->sent_ps > sim_now(dir->sim)) {
        link_arm(dir, tlp->sent_ps);
        return false;
    }
    link_dequeue(dir, tlp_class_of(tlp));
    sim_time ready_ps = SIM_MAX(tlp->sent_ps, dir->free_ps + (dir->free_q32 != 0));
    dir->stats.credit_stall_ps += sim_now(dir->sim) - ready_ps;
    if (replay->end - replay->acked == replay->entry_capacity)
        entries_grow(replay);
    *entry_at(replay, replay->end++) = (struct replay_entry){ .tlp = tlp,
                                                              .bytes = tlp_wire_bytes(tlp) };
    return true;
}

void link_replay_run(struct link_dir *dir)
{
    struct link_replay *replay = dir->replay;

    for (;;) {
        sim_time now_ps = sim_now(dir->sim);
        link_settle(dir, now_ps);
        sim_time free_ps = dir->free_ps + (dir->free_q32 != 0);
        if (free_ps > now_ps) {
            if (dir->n_queued != 0 || dir->want != 0 || replay->next < replay->end)
                link_arm(dir, free_ps);
            return;
        }
        if (replay->next == replay->end && !(dir->n_queued != 0 && take_from_queue(dir)))
            return;
        transmit(dir);
    }
}

bool link_replay_busy(const struct link_dir *dir)
{
    return dir->replay->next < dir->replay->end;
}

static void timer_expired(struct sim *sim, struct sim_event *event)
{
    struct link_dir *dir = SIM_CONTAINER(event, struct link_replay, timer)->dir;

    (void)sim;
    dir->replay->next = dir->replay->acked;
    link_replay_run(dir);
    if (dir->replay->acked < dir->replay->end && !sim_event_pending(&dir->replay->timer))
        sim_schedule_in(dir->sim, event, 3 * link_limit_ps(dir) + 2 * dir->latency_ps);
}

/* ACKs and NAKs at the sender. */
static void answer_arrives(struct sim *sim, struct sim_event *event)
{
    struct link_replay *replay = SIM_CONTAINER(event, struct link_replay, answer);
    struct link_dir *dir = replay->dir;
    struct link_dllp answer = *link_ring_at(&replay->answers, 0);

    link_ring_pop(&replay->answers);
    if (replay->answers.n != 0)
        sim_schedule(sim, event, link_ring_at(&replay->answers, 0)->at_ps);
    bool progress = answer.tlps > replay->acked;
    if (progress)
        replay->acked = answer.tlps;
    if (answer.kind == DLLP_NAK || replay->next < replay->acked)
        replay->next = replay->acked;
    if (progress || answer.kind == DLLP_NAK)
        restart_timer(dir);
    link_replay_run(dir);
}

/* ---- Receiver -------------------------------------------------------------------------------- */

static void send_answer(struct link_dir *dir, enum link_dllp_kind kind, sim_time due_ps)
{
    struct link_replay *replay = dir->replay;

    replay->n_unacked = 0;
    sim_cancel(dir->sim, &replay->ack);
    if (kind == DLLP_NAK)
        dir->reverse->stats.nak_dllps++;
    link_ring_put(&dir->reverse->owed, due_ps, kind)->tlps = replay->expected;
    link_owes(dir->reverse);
}

static void ack_is_due(struct sim *sim, struct sim_event *event)
{
    struct link_dir *dir = SIM_CONTAINER(event, struct link_replay, ack)->dir;

    send_answer(dir, DLLP_ACK, sim_now(sim));
}

static void refuse(struct link_dir *dir, const struct replay_flight *flight)
{
    struct link_replay *replay = dir->replay;

    if (!flight->corrupt && flight->number < replay->expected) {
        send_answer(dir, DLLP_ACK, flight->tail_ps); /* a duplicate: the ACK was lost */
    } else if (!replay->nak_scheduled) {
        replay->nak_scheduled = true;
        send_answer(dir, DLLP_NAK, flight->tail_ps);
    }
}

static void accept(struct link_dir *dir, const struct replay_flight *flight)
{
    struct link_replay *replay = dir->replay;
    struct replay_entry *entry = entry_at(replay, flight->number);
    struct tlp *tlp = entry->tlp;

    entry->tlp = NULL;
    replay->expected++;
    replay->nak_scheduled = false;
    if (++replay->n_unacked >= dir->ack_tlps)
        send_answer(dir, DLLP_ACK, flight->tail_ps);
    else if (!sim_event_pending(&replay->ack))
        sim_schedule(dir->sim, &replay->ack, flight->tail_ps + link_limit_ps(dir));
    if (tlp_traced(tlp)) /* what got through at last */
        tlp_trace_delay(tlp->stamp, flight->tail_ps - tlp->tail_ps);
    tlp->head_ps = flight->head_ps;
    tlp->tail_ps = flight->tail_ps;
    sim_stamp_mark(tlp->stamp, PART_LINK, flight_delivery_ps(dir, flight));
    tlp->next = NULL;
    link_hand_over(dir, tlp);
}

static void arrive(struct sim *sim, struct sim_event *event)
{
    struct link_replay *replay = SIM_CONTAINER(event, struct link_replay, arrive);
    struct link_dir *dir = replay->dir;
    struct replay_flight flight = *flight_at(replay, 0);

    replay->flight_first = (replay->flight_first + 1) & (replay->flight_capacity - 1);
    if (--replay->n_flight != 0)
        sim_schedule(sim, event,
                     SIM_MAX(sim_now(sim), flight_delivery_ps(dir, flight_at(replay, 0))));
    if (flight.corrupt || flight.number != replay->expected)
        refuse(dir, &flight);
    else
        accept(dir, &flight);
}

/* ---- DLLPs ----------------------------------------------------------------------------------- */

bool link_replay_dllp(struct link_dir *wire, const struct link_dllp *dllp, sim_time end_ps)
{
    struct link_replay *replay = wire->reverse->replay;

    if (is_corrupt(wire->replay, DLLP_WIRE_BYTES)) {
        if (dllp->kind < N_TLP_CLASSES) {
            struct link_dllp *again =
                link_ring_put(&wire->owed, end_ps + link_limit_ps(wire->reverse), dllp->kind);
            again->header = dllp->header;
            again->data = dllp->data;
            link_owes(wire);
        }
        return true;
    }
    if (dllp->kind < N_TLP_CLASSES)
        return false;
    const sim_time at_ps = SIM_MAX(end_ps + wire->latency_ps, sim_now(wire->sim));
    link_ring_put(&replay->answers, at_ps, dllp->kind)->tlps = dllp->tlps;
    sim_cancel(wire->sim, &replay->answer);
    sim_schedule(wire->sim, &replay->answer, link_ring_at(&replay->answers, 0)->at_ps);
    return true;
}

static void settle_is_due(struct sim *sim, struct sim_event *event)
{
    struct link_dir *wire = SIM_CONTAINER(event, struct link_replay, settle)->dir;

    link_settle(wire, sim_now(sim));
    link_replay_owed(wire);
}

void link_replay_owed(struct link_dir *wire)
{
    struct sim_event *event = &wire->replay->settle;

    sim_cancel(wire->sim, event);
    if (wire->owed.n != 0)
        sim_schedule(wire->sim, event,
                     SIM_MAX(link_ring_at(&wire->owed, 0)->at_ps, sim_now(wire->sim)));
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct link_replay *link_replay_new(struct link_dir *dir, double bit_error_ratio, uint64_t seed,
                                    const char *instance)
{
    struct link_replay *replay = sim_zalloc(1, sizeof(*replay));

#ifdef SIM_HOSTILE
    replay->entry_capacity = replay->flight_capacity = 2;
#else
    replay->entry_capacity = replay->flight_capacity = 64;
#endif
    replay->dir = dir;
    replay->log_bit_ok = log1p(-bit_error_ratio);
    replay->entry = sim_zalloc(replay->entry_capacity, sizeof(*replay->entry));
    replay->flight = sim_zalloc(replay->flight_capacity, sizeof(*replay->flight));
    sim_random_init(&replay->random, seed, instance);
    sim_event_init(&replay->arrive, arrive);
    sim_event_init(&replay->timer, timer_expired);
    sim_event_init(&replay->answer, answer_arrives);
    sim_event_init(&replay->ack, ack_is_due);
    sim_event_init(&replay->settle, settle_is_due);
    return replay;
}

void link_replay_free(struct link_dir *dir)
{
    struct link_replay *replay = dir->replay;

    for (uint64_t i = replay->acked; i < replay->end; i++)
        if (entry_at(replay, i)->tlp != NULL)
            tlp_free(dir->link->pcie, entry_at(replay, i)->tlp);
    sim_cancel(dir->sim, &replay->arrive);
    sim_cancel(dir->sim, &replay->timer);
    sim_cancel(dir->sim, &replay->answer);
    sim_cancel(dir->sim, &replay->ack);
    sim_cancel(dir->sim, &replay->settle);
    free(replay->answers.entry);
    free(replay->entry);
    free(replay->flight);
    free(replay);
    dir->replay = NULL;
}
