/*
 * Models: one direction of a PCIe link without bit errors: serialisation, transaction ordering,
 *   stopping without credits, the wire time of the DLLPs that answer the opposite direction
 *   (link_credit.c), ACK and NAK with replay (link_replay.c).
 * Does not model: link training, power states, lane reversal, a limit of the replay buffer,
 *   virtual channels but VC0, the TLPs that a cut-through switch nullifies after a bit error.
 * Timing: start = max(at, wire free), where the wire is free after the TLP and the DLLPs that took
 *   it before; end = start + bytes * byte time; head and tail are at the receiver at start +
 *   latency and end + latency, both rounded up to a picosecond. A byte takes
 *   8 bit / (rate * encoding * lanes * (1 - SKP share)), kept in 2^-32 ps, fractions carried over,
 *   so that rounding is less than one byte in 10^11.
 *   The next TLP starts where the transmitter's data path lets one: at the next multiple of the
 *   alignment, and behind the gap.
 *   A TLP whose credits are there is committed to the wire at once, however far ahead: all that is
 *   sent later goes later anyway. While a class is short of credits, others are committed at most
 *   one TLP ahead, so that it does not wait for more than that once credits arrive.
 *   A posted request that may pass what is committed but has not started (pcie_port_send_ahead)
 * takes the place of the first of it, and the rest goes later by its wire time. A DLLP leaves when
 * it is due, or after the TLP that is on the wire then; its time is charged after what is
 * committed, so no bandwidth is gained. Sources: PCI Express Base 3.1, 2.4 (ordering), 2.6 (flow
 * control), 3.6 (ACK and NAK), 4.2 (encoding); docs/models/link.md.
 */
#include "models/pcie/link/link.h"

#include "models/base/model.h"
#include "models/pcie/link/tlp_trace.h"

/* ---- The wire -------------------------------------------------------------------------------- */

/* Now, or at the latest when the wire's next idle moment comes. Returns when the DLLP has left. */
static sim_time take_wire_dllp(struct link_dir *wire, sim_time due_ps)
{
    sim_time leave_ps = due_ps;

    wire->stats.dllps++;
    if (due_ps >= wire->free_ps + (wire->free_q32 != 0)) {
        wire->busy_since_ps = due_ps;
        wire->free_ps = due_ps;
        wire->free_q32 = 0;
    } else if (due_ps < wire->busy_since_ps) {
        return due_ps + wire->dllp_ps; /* there was room before a TLP that starts later */
    } else {
        leave_ps = SIM_MIN(wire->free_ps, due_ps + wire->last_wire_ps);
    }
    uint64_t q32 = DLLP_WIRE_BYTES * wire->byte_q32_ps + wire->free_q32;
    wire->free_ps += q32 >> 32;
    wire->free_q32 = (uint32_t)q32;
    return leave_ps + wire->dllp_ps;
}

void link_settle(struct link_dir *wire, sim_time at_ps)
{
    while (wire->owed.n != 0) {
        const struct link_dllp *first = link_ring_at(&wire->owed, 0);

        if (first->at_ps > SIM_MAX(at_ps, wire->free_ps))
            break;
        const struct link_dllp dllp = *first;
        link_ring_pop(&wire->owed);
        sim_time end_ps = take_wire_dllp(wire, dllp.at_ps);
        if (wire->replay != NULL && link_replay_dllp(wire, &dllp, end_ps))
            continue;
        if (dllp.kind < N_TLP_CLASSES) {
            struct link_dllp *update = link_ring_put(&wire->reverse->arrivals,
                                                     end_ps + wire->latency_ps, dllp.kind);
            update->header = dllp.header;
            update->data = dllp.data;
        }
    }
}

static inline sim_time take_wire(struct link_dir *dir, sim_time at_ps, uint32_t bytes)
{
    if (dir->owed.n != 0 && link_ring_at(&dir->owed, 0)->at_ps <= SIM_MAX(at_ps, dir->free_ps))
        link_settle(dir, at_ps);
    if (at_ps > dir->free_ps) {
        dir->free_ps = at_ps;
        dir->free_q32 = 0;
        dir->busy_since_ps = at_ps;
    }
    sim_time start_ps = dir->free_ps + (dir->free_q32 != 0);
    uint64_t q32 = bytes * dir->byte_q32_ps + dir->free_q32;
    const sim_time end_ps = dir->free_ps + ((q32 + UINT32_MAX) >> 32);
    q32 += link_idle_bytes(dir, bytes) * dir->byte_q32_ps;
    dir->free_ps += q32 >> 32;
    dir->free_q32 = (uint32_t)q32;
    dir->last_tail_ps = end_ps + dir->latency_ps;
    dir->last_wire_ps = end_ps - start_ps;
    return start_ps;
}

sim_time link_take_wire(struct link_dir *dir, sim_time at_ps, uint32_t bytes)
{
    return take_wire(dir, at_ps, bytes);
}

static __attribute__((noinline)) void owe_ack(struct link_dir *dir, sim_time due_ps)
{
    dir->n_unacked = 0;
    link_ring_put(&dir->reverse->owed, due_ps, DLLP_ACK);
    link_owes(dir->reverse);
}

/* An ACK after ack_tlps TLPs or the latency limit after the first that was not acknowledged. */
static inline void account_ack(struct link_dir *dir, sim_time tail_ps)
{
    if (dir->n_unacked != 0 && tail_ps > dir->ack_deadline_ps)
        owe_ack(dir, dir->ack_deadline_ps);
    if (dir->n_unacked == 0)
        dir->ack_deadline_ps = tail_ps + link_limit_ps(dir);
    if (++dir->n_unacked >= dir->ack_tlps)
        owe_ack(dir, tail_ps);
}

static __attribute__((cold, noinline)) void
account_stamp(const struct link_dir *dir, const struct tlp *tlp, sim_time start_ps, uint32_t bytes)
{
    const sim_time at_ps = dir->to_cut_through ? tlp->head_ps : tlp->tail_ps;

    sim_stamp_mark(tlp->stamp, PART_CREDIT, start_ps);
    sim_stamp_mark(tlp->stamp, PART_LINK, at_ps);
    if (tlp->stamp->trace == NULL)
        return;
    struct tlp_trace_record *record = tlp_trace_add(tlp->stamp, TRACE_LINK, dir->link->name, at_ps);
    tlp_trace_port(record->from, dir->from);
    tlp_trace_port(record->to, dir->to);
    record->link.handed_ps = tlp->sent_ps;
    record->link.start_ps = start_ps;
    record->link.head_ps = tlp->head_ps;
    record->link.tail_ps = tlp->tail_ps;
    record->link.wire_bytes = bytes;
    record->link.lanes = dir->from->integrated ? 0 : dir->link->lanes;
    record->link.generation = dir->from->integrated ? 0 : dir->link->generation;
    record->link.cut_through = dir->to_cut_through;
}

/* link_account() of a TLP of that class and with so many data credits. */
static inline void account(struct link_dir *dir, struct tlp *tlp, sim_time start_ps, uint32_t bytes,
                           enum tlp_class class, uint32_t data)
{
    struct link_pool *pool = &dir->pool[class];

    pool->avail_header -= pool->finite_header;
    pool->open_header -= pool->finite_header;
    pool->avail_data -= data * pool->finite_data;
    pool->open_data -= data * pool->finite_data;
    dir->stats.tlps++;
    dir->stats.tlp_bytes += bytes;
    if (tlp->payload != NULL)
        dir->stats.payload_bytes += tlp->length_bytes;
    tlp->head_ps = start_ps + dir->latency_ps;
    tlp->tail_ps = dir->last_tail_ps;
    if (SIM_UNLIKELY(tlp->stamp != NULL))
        account_stamp(dir, tlp, start_ps, bytes);
}

void link_account(struct link_dir *dir, struct tlp *tlp, sim_time start_ps, uint32_t bytes)
{
    account(dir, tlp, start_ps, bytes, tlp_class_of(tlp), tlp_data_credits(tlp));
}

/* ---- Delivery -------------------------------------------------------------------------------- */

static sim_time delivery_ps(const struct link_dir *dir, const struct tlp *tlp)
{
    return dir->to_cut_through ? tlp->head_ps : tlp->tail_ps;
}

/* Credits are there, nothing older of the kind waits: the TLP is the wire's. Class and double words
 * of payload are the TLP's, which callers know; every TLP of a link without bit errors comes
 * through here. */
static inline __attribute__((always_inline)) void
commit(struct link_dir *dir, struct tlp *tlp, sim_time at_ps, enum tlp_class class, unsigned dw)
{
    const uint32_t bytes = tlp_wire_bytes_of(tlp, dw);
    const sim_time start_ps = take_wire(dir, at_ps, bytes);

    account(dir, tlp, start_ps, bytes, class, tlp_data_credits_of(dw));
    account_ack(dir, tlp->tail_ps);
    tlp->next = NULL;
    if (dir->flight_first == NULL) {
        dir->flight_first = tlp;
        sim_schedule(dir->sim, &dir->deliver, delivery_ps(dir, tlp));
    } else {
        dir->flight_last->next = tlp;
    }
    dir->flight_last = tlp;
    if (dir->unstarted == NULL)
        dir->unstarted = tlp;
    dir->n_unstarted[class]++;
}

static void look_again(struct link_dir *dir);

/* It was on the wire when the cable was pulled. To the bookkeeping of credits it has arrived and
 * gone: a link that comes up again starts with all of them. */
static void lose(struct link_dir *dir, struct tlp *tlp)
{
    dir->stats.lost_tlps++;
    pcie_port_release(dir->to, tlp_class_of(tlp), tlp_data_credits(tlp),
                      SIM_MAX(tlp->tail_ps, sim_now(dir->sim)));
    tlp_free(dir->link->pcie, tlp);
}

/* Returns whether the TLP arrives. */
static __attribute__((cold, noinline)) bool show_taps(const struct link_dir *dir, struct tlp *tlp)
{
    bool arrives = tlp->sequence > dir->lost_up_to;

    for (struct pcie_tap *tap = dir->taps; tap != NULL; tap = tap->next)
        if (tap->befalls != NULL && arrives)
            arrives = tap->befalls(tap, tlp);
    for (struct pcie_tap *tap = dir->taps; tap != NULL; tap = tap->next)
        if (tap->tlp != NULL)
            tap->tlp(tap, dir->from, tlp, tlp->head_ps - dir->latency_ps, !arrives);
    return arrives;
}

static inline void hand_over(struct link_dir *dir, struct tlp *tlp)
{
    struct pcie_port *to = dir->to;

    tlp->ingress = (uint16_t)to->idx;
    const bool arrives = SIM_LIKELY(dir->taps == NULL) ? tlp->sequence > dir->lost_up_to
                                                       : show_taps(dir, tlp);
    if (SIM_LIKELY(arrives))
        to->model->ops->receive(to->model, to->idx, tlp);
    else
        lose(dir, tlp);
}

void link_hand_over(struct link_dir *dir, struct tlp *tlp)
{
    hand_over(dir, tlp);
}

static void deliver(struct sim *sim, struct sim_event *event)
{
    struct link_dir *dir = SIM_CONTAINER(event, struct link_dir, deliver);
    struct tlp *tlp = dir->flight_first, *next = tlp->next;
    struct pcie_port *to = dir->to;

    dir->flight_first = next;
    if (next != NULL) {
        sim_schedule(sim, event, delivery_ps(dir, next));
        if (to->model->ops->announce != NULL)
            to->model->ops->announce(to->model, to->idx, next);
    }
    if (dir->unstarted == tlp) {
        dir->unstarted = next;
        dir->n_unstarted[tlp_class_of(tlp)]--;
    }
    tlp->next = NULL;
    hand_over(dir, tlp);
    if ((dir->n_queued | dir->want) != 0)
        look_again(dir);
}

/* ---- The queue ------------------------------------------------------------------------------- */

/* The rules of table 2-39: per class in order, non-posted never passes posted, completions only if
 * allowed to; posted passes all, completions and non-posted pass each other. */
struct tlp *link_pick(struct link_dir *dir, bool *short_of_credits)
{
    const struct tlp *posted = dir->queue[TLP_POSTED].first;
    struct tlp *oldest = NULL;

    *short_of_credits = false;
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++) {
        struct tlp *tlp = dir->queue[class].first;

        if (tlp == NULL)
            continue;
        if (!link_has_credits(dir, class, tlp_data_credits(tlp))) {
            *short_of_credits = true;
            continue;
        }
        if (class != TLP_POSTED && posted != NULL && posted->sequence < tlp->sequence &&
            (class == TLP_NON_POSTED || !tlp_may_pass_posted(posted, tlp)))
            continue;
        if (oldest == NULL || tlp->sequence < oldest->sequence)
            oldest = tlp;
    }
    return oldest;
}

static void enqueue(struct link_dir *dir, struct tlp *tlp, enum tlp_class class)
{
    struct link_queue *queue = &dir->queue[class];

    tlp->next = NULL;
    if (queue->first == NULL)
        queue->first = tlp;
    else
        queue->last->next = tlp;
    queue->last = tlp;
    queue->n++;
    dir->n_queued++;
}

struct tlp *link_dequeue(struct link_dir *dir, enum tlp_class class)
{
    struct link_queue *queue = &dir->queue[class];
    struct tlp *tlp = queue->first;

    queue->first = tlp->next;
    queue->n--;
    dir->n_queued--;
    return tlp;
}

/* Never later than asked for. Earlier is harmless: it looks, and arms again. */
void link_arm(struct link_dir *dir, sim_time at_ps)
{
    if (sim_event_pending(&dir->wake)) {
        if (dir->wake.time_ps <= at_ps)
            return;
        sim_cancel(dir->sim, &dir->wake);
    }
    sim_schedule(dir->sim, &dir->wake, at_ps);
}

/* Commits what may go; the rest waits for credits or, if something else does, for the wire. */
static void run_queue(struct link_dir *dir)
{
    sim_time now_ps = sim_now(dir->sim);

    while (dir->n_queued != 0) {
        bool short_of_credits;
        struct tlp *tlp = link_pick(dir, &short_of_credits);

        if (short_of_credits)
            link_arm_for_credits(dir);
        if (tlp == NULL)
            break;
        sim_time start_ps = SIM_MAX(SIM_MAX(tlp->sent_ps, dir->free_ps), now_ps);
        sim_time wire_ps = pcie_port_wire_ps(dir->from, tlp_wire_bytes(tlp));
        if (short_of_credits && start_ps > now_ps + wire_ps) {
            link_arm(dir, start_ps - wire_ps);
            break;
        }
        link_dequeue(dir, tlp_class_of(tlp));
        /* The wire stood still while it waited for credits: from when it and the TLP were ready. */
        dir->stats.credit_stall_ps += start_ps - SIM_MAX(tlp->sent_ps, dir->free_ps);
        commit(dir, tlp, start_ps, tlp_class_of(tlp), tlp_payload_dw(tlp));
    }
}

static bool has_room(struct link_dir *dir, enum tlp_class class)
{
    uint32_t limit = dir->from->tx_queue_tlps;
    sim_time now_ps = sim_now(dir->sim);

    while (dir->unstarted != NULL && dir->unstarted->head_ps <= now_ps + dir->latency_ps) {
        dir->n_unstarted[tlp_class_of(dir->unstarted)]--;
        dir->unstarted = dir->unstarted->next;
    }
    return limit == 0 || dir->queue[class].n + dir->n_unstarted[class] < limit;
}

/* Somebody waits for room: deliveries look again; a wake of its own is needed only where the wire
 * would run dry before the next. */
static void arm_for_room(struct link_dir *dir)
{
    if (dir->unstarted != NULL && dir->deliver.time_ps + dir->last_wire_ps > dir->free_ps)
        link_arm(dir, dir->unstarted->head_ps - dir->latency_ps);
}

/* Calls the model if what it waits for may have come. */
static void answer_want(struct link_dir *dir)
{
    struct model *model = dir->from->model;
    uint8_t want = dir->want, still = 0;

    for (unsigned left = want & WANT_ROOM; left != 0; left &= left - 1) {
        const enum tlp_class class = (enum tlp_class)__builtin_ctz(left);
        if (!has_room(dir, class))
            still |= (uint8_t)(1u << class);
    }
    dir->want = still;
    if (want != still && model->ops->credit != NULL)
        model->ops->credit(model, dir->from->idx);
    else
        arm_for_room(dir);
}

static void look_again(struct link_dir *dir)
{
    if (SIM_UNLIKELY(dir->replay != NULL))
        link_replay_run(dir);
    else if (dir->n_queued != 0)
        run_queue(dir);
    if (dir->want != 0)
        answer_want(dir);
}

static void wake(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    look_again(SIM_CONTAINER(event, struct link_dir, wake));
}

void link_dir_init_events(struct link_dir *dir)
{
    sim_event_init(&dir->deliver, deliver);
    sim_event_init(&dir->wake, wake);
}

/* ---- What models call ------------------------------------------------------------------------ */

bool pcie_port_can_carry(const struct pcie_port *port, const struct tlp *tlp)
{
    return tlp_data_credits(tlp) <= pcie_port_peer(port)->advertise.data[tlp_class_of(tlp)];
}

void pcie_port_send(struct pcie_port *port, struct tlp *tlp, sim_time at_ps)
{
    SIM_ASSERT(port->link != NULL, "%s: sent on a port that is not connected", port->name);
    struct link_dir *dir = port->tx;
    const enum tlp_class class = tlp_class_of(tlp);
    const unsigned dw = tlp_payload_dw(tlp);
    const uint32_t data = tlp_data_credits_of(dw);

    SIM_ASSERT(at_ps >= sim_now(dir->sim), "%s: sent for %llu ps, which is past", port->name,
               (unsigned long long)at_ps);
    tlp->sequence = ++dir->sequence;
    tlp->sent_ps = at_ps;
    if (SIM_LIKELY(dir->n_queued == 0 && dir->replay == NULL &&
                   link_has_credits(dir, class, data))) {
        commit(dir, tlp, at_ps, class, dw);
        return;
    }
    SIM_ASSERT(data <= pcie_port_peer(port)->advertise.data[class],
               "%s: a TLP of %u data credits can never be sent", port->name, data);
    enqueue(dir, tlp, class);
    if (dir->replay != NULL)
        link_replay_run(dir);
    else
        run_queue(dir);
}

/* The first of what has not started that a posted request may pass: behind the last posted one, not
 * before at_ps. *before is what precedes it, NULL if it is the first in flight. */
static struct tlp *first_passed(struct link_dir *dir, sim_time at_ps, struct tlp **before)
{
    struct tlp *passed = NULL, *previous = NULL;

    *before = NULL;
    for (struct tlp *tlp = dir->flight_first; tlp != NULL; previous = tlp, tlp = tlp->next) {
        if (tlp_class_of(tlp) == TLP_POSTED || tlp->head_ps < at_ps + dir->latency_ps) {
            passed = NULL;
        } else if (passed == NULL) {
            passed = tlp;
            *before = previous;
        }
    }
    return passed;
}

void pcie_port_send_ahead(struct pcie_port *port, struct tlp *tlp, sim_time at_ps)
{
    struct link_dir *dir = port->tx;
    struct tlp *passed = NULL, *before = NULL;

    SIM_ASSERT(tlp_class_of(tlp) == TLP_POSTED, "%s: only posted requests pass others", port->name);
    has_room(dir, TLP_POSTED); /* brings `unstarted` up to date */
    if (dir->n_queued == 0 && dir->replay == NULL && dir->unstarted != NULL &&
        link_has_credits(dir, TLP_POSTED, tlp_data_credits(tlp)))
        passed = first_passed(dir, at_ps, &before);
    if (passed == NULL) {
        pcie_port_send(port, tlp, at_ps);
        return;
    }
    const uint32_t bytes = tlp_wire_bytes(tlp);
    const sim_time start_ps = passed->head_ps - dir->latency_ps;
    const sim_time own_ps = pcie_port_wire_ps(port, bytes);
    const sim_time wire_ps = pcie_port_wire_ps(port, bytes + link_idle_bytes(dir, bytes));
    tlp->sequence = ++dir->sequence;
    tlp->sent_ps = at_ps;
    for (struct tlp *late = passed; late != NULL; late = late->next) {
        late->head_ps += wire_ps;
        late->tail_ps += wire_ps;
        if (late->stamp != NULL) {
            late->stamp->part_ps[PART_CREDIT] += wire_ps;
            late->stamp->cursor_ps += wire_ps;
            if (late->stamp->trace != NULL)
                tlp_trace_delay(late->stamp, wire_ps);
        }
    }
    dir->free_ps += wire_ps;
    dir->last_tail_ps += wire_ps;
    const sim_time last_tail_ps = dir->last_tail_ps;
    dir->last_tail_ps = start_ps + own_ps + dir->latency_ps; /* what link_account() notes */
    link_account(dir, tlp, start_ps, bytes);
    dir->last_tail_ps = last_tail_ps;
    account_ack(dir, last_tail_ps);
    tlp->next = passed;
    if (before != NULL) {
        before->next = tlp;
    } else {
        dir->flight_first = tlp;
        sim_cancel(dir->sim, &dir->deliver);
        sim_schedule(dir->sim, &dir->deliver, delivery_ps(dir, tlp));
    }
    if (dir->unstarted == passed)
        dir->unstarted = tlp;
    dir->n_unstarted[TLP_POSTED]++;
}

bool pcie_port_ready_ahead(struct pcie_port *port, enum tlp_class class)
{
    struct link_dir *dir = port->tx;

    if (dir->from->tx_queue_tlps == 0 || dir->queue[class].n < dir->from->tx_queue_tlps)
        return true;
    return pcie_port_ready(port, class);
}

bool pcie_port_ready(struct pcie_port *port, enum tlp_class class)
{
    struct link_dir *dir = port->tx;

    if (has_room(dir, class))
        return true;
    dir->want |= (uint8_t)(1u << class);
    arm_for_room(dir);
    return false;
}

bool pcie_port_wire_open(struct pcie_port *port, sim_time lead_ps)
{
    struct link_dir *dir = port->tx;
    sim_time now_ps = sim_now(dir->sim);

    if (dir->replay != NULL)
        lead_ps = 0;
    if (dir->n_queued == 0 && dir->free_ps <= now_ps + lead_ps &&
        (dir->replay == NULL || !link_replay_busy(dir)))
        return true;
    dir->want |= WANT_WIRE;
    bool soon = sim_event_pending(&dir->deliver) && dir->deliver.time_ps <= dir->free_ps;
    if (!soon && dir->free_ps > now_ps + lead_ps)
        link_arm(dir, dir->free_ps - lead_ps);
    return false;
}

bool pcie_port_has_credits(struct pcie_port *port, const struct tlp *tlp)
{
    struct link_dir *dir = port->tx;

    if (link_has_credits(dir, tlp_class_of(tlp), tlp_data_credits(tlp)))
        return true;
    dir->want |= WANT_CREDITS;
    link_arm_for_credits(dir);
    return false;
}

sim_time pcie_port_free_ps(const struct pcie_port *port)
{
    return port->tx->free_ps;
}

sim_time pcie_port_start(struct pcie_port *port, struct tlp *tlp, sim_time at_ps)
{
    struct link_dir *dir = port->tx;
    const sim_time ready_ps = SIM_MAX(tlp->sent_ps, dir->free_ps + (dir->free_q32 != 0));

    if (at_ps > ready_ps) /* nothing else keeps a TLP from a wire that is free */
        dir->stats.credit_stall_ps += at_ps - ready_ps;
    tlp->sequence = ++dir->sequence;
    tlp->sent_ps = at_ps;
    if (SIM_LIKELY(dir->replay == NULL)) {
        commit(dir, tlp, at_ps, tlp_class_of(tlp), tlp_payload_dw(tlp));
        return tlp->tail_ps - dir->latency_ps;
    }
    sim_time end_ps = SIM_MAX(at_ps, dir->free_ps) + pcie_port_wire_ps(port, tlp_wire_bytes(tlp));
    enqueue(dir, tlp, tlp_class_of(tlp));
    link_replay_run(dir);
    return end_ps;
}

bool pcie_port_pass(struct pcie_port *in, struct pcie_port *out, struct tlp *tlp, sim_time lead_ps)
{
    struct link_dir *dir = out->tx;
    const sim_time at_ps = sim_now(dir->sim) + lead_ps;

    if (dir->free_ps > at_ps || dir->byte_q32_ps < in->tx->byte_q32_ps ||
        SIM_UNLIKELY(dir->n_queued != 0 || dir->replay != NULL))
        return false;
    const enum tlp_class class = tlp_class_of(tlp);
    const unsigned dw = tlp_payload_dw(tlp);
    const uint32_t data = tlp_data_credits_of(dw);
    if (!link_credits_at_hand(dir, class, data))
        return false;
    tlp->sequence = ++dir->sequence;
    tlp->sent_ps = at_ps;
    commit(dir, tlp, at_ps, class, dw);
    pcie_port_release(in, class, data, tlp->tail_ps - dir->latency_ps);
    return true;
}

uint32_t pcie_port_waiting(const struct pcie_port *port)
{
    const struct link_dir *dir = port->tx;
    const sim_time begun_ps = sim_now(dir->sim) +
                              dir->latency_ps; /* head_ps of one that begins now */
    uint32_t n = dir->n_queued;

    for (const struct tlp *tlp = dir->flight_first; tlp != NULL; tlp = tlp->next)
        n += tlp->head_ps > begun_ps;
    return n;
}

void pcie_port_add_tap(struct pcie_port *port, struct pcie_tap *tap)
{
    tap->next = port->tx->taps;
    port->tx->taps = tap;
}

void pcie_port_remove_tap(struct pcie_port *port, struct pcie_tap *tap)
{
    struct pcie_tap **at = &port->tx->taps;

    while (*at != NULL && *at != tap)
        at = &(*at)->next;
    if (*at != NULL)
        *at = tap->next;
}

sim_time pcie_port_wire_ps(const struct pcie_port *port, uint64_t bytes)
{
    unsigned __int128 q32 = (unsigned __int128)bytes * port->tx->byte_q32_ps;

    return (sim_time)((q32 + UINT32_MAX) >> 32);
}

bool pcie_port_no_faster(const struct pcie_port *port, const struct pcie_port *other)
{
    return port->tx->byte_q32_ps >= other->tx->byte_q32_ps;
}
