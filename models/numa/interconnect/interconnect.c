#include "models/numa/interconnect/interconnect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_MASK (CALENDAR_SLOTS - 1u)
#define WORD_MASK (CALENDAR_WORDS - 1u)

static double flit_ps(const struct numa_interconnect_params *params)
{
    return params->flit_bits * 1000.0 / (params->rate_gt_s * params->lanes);
}

void interconnect_init(struct interconnect *ic, const struct numa_interconnect_params *params,
                       uint32_t sockets)
{
    const double unit_ps = flit_ps(params);
    const sim_time slot_ps = (sim_time)llround(LINK_GROUP_FLITS * unit_ps / params->links);

    *ic = (struct interconnect){ .params = params, .sockets = sockets };
    ic->flits[MESSAGE_REQUEST] = params->header_flits;
    ic->flits[MESSAGE_SNOOP] = params->header_flits;
    ic->flits[MESSAGE_RESPONSE] = params->header_flits;
    ic->flits[MESSAGE_DATA] = params->data_flits + params->header_flits;
    ic->flits[MESSAGE_WRITEBACK] = params->data_flits + params->header_flits;
    ic->flits[MESSAGE_IO_REQUEST] = params->header_flits;
    ic->flits[MESSAGE_IO_DATA] = params->data_flits + params->header_flits;
    for (int m = 0; m < N_MESSAGES; m++) {
        const uint32_t header = ic->flits[m] > params->header_flits ? 1 : ic->flits[m];
        const uint32_t slots = (ic->flits[m] - header) * params->flit_slots + header;
        ic->serial_ps[m] = (sim_time)llround(ic->flits[m] * unit_ps);
        ic->bytes[m] = slots * params->flit_payload_bytes / params->flit_slots;
    }
    for (int m = 0; m < N_MESSAGES; m++)
        ic->passes_ps[m] = params->headers_pass_data && ic->flits[m] == params->header_flits
                               ? ic->serial_ps[MESSAGE_DATA] / params->links
                               : SIM_TIME_MAX;
    ic->window_capacity_flits = (UINT64_C(1) << LINK_WINDOW_LOG2) * LINK_GROUP_FLITS / slot_ps;
    ic->n_links = sockets > 1 ? sockets * sockets : 0;
    ic->link = ic->n_links != 0 ? sim_zalloc(ic->n_links, sizeof(*ic->link)) : NULL;
    for (uint32_t i = 0; i < ic->n_links; i++) {
        calendar_init(&ic->link[i].calendar, slot_ps, LINK_GROUP_FLITS);
        if (params->flit_slots > 1)
            ic->link[i].headers = sim_zalloc(1, sizeof(*ic->link[i].headers));
        ic->link[i].special = params->flit_slots > 1;
    }
}

void interconnect_release(struct interconnect *ic)
{
    for (uint32_t i = 0; ic->link != NULL && i < ic->n_links; i++) {
        struct link_credits *credits = ic->link[i].credits;
        for (uint32_t c = 0; credits != NULL && c < LINK_CLASSES; c++)
            pool_release(&credits->reserved[c]);
        if (credits != NULL)
            pool_release(&credits->shared);
        free(credits);
        free(ic->link[i].headers);
    }
    free(ic->link);
    ic->link = NULL;
}

/* ---- Credits of receive buffers -------------------------------------------------------------- */

static const uint8_t class_of[N_MESSAGES] = {
    [MESSAGE_REQUEST] = 0,   [MESSAGE_SNOOP] = 1,      [MESSAGE_RESPONSE] = 2, [MESSAGE_DATA] = 3,
    [MESSAGE_WRITEBACK] = 3, [MESSAGE_IO_REQUEST] = 4, [MESSAGE_IO_DATA] = 5,
};

/* Whether all that a direction can send until its credits are back, and what a slot of the calendar
 * may bring forward, is less than the shared credits. */
static bool cannot_run_out(const struct interconnect *ic)
{
    const struct numa_interconnect_params *p = ic->params;
    const double sent = (double)p->credit_loop_ps * p->links / flit_ps(p);

    return sent + LINK_GROUP_FLITS + ic->flits[MESSAGE_DATA] <=
           (double)p->links * (p->receive_flits - p->reserved_flits);
}

void interconnect_follow_credits(struct interconnect *ic, bool stalls)
{
    const struct numa_interconnect_params *p = ic->params;

    if (p->receive_flits == 0 || (!stalls && cannot_run_out(ic)))
        return;
    for (uint32_t i = 0; i < ic->n_links; i++) {
        struct link_credits *credits = sim_zalloc(1, sizeof(*credits));
        pool_init(&credits->shared, p->links * (p->receive_flits - p->reserved_flits));
        for (uint32_t c = 0; c < LINK_CLASSES; c++)
            pool_init(&credits->reserved[c], p->reserved_flits != 0 ? p->links : 0);
        ic->link[i].credits = credits;
        ic->link[i].special = true;
    }
}

/* The arrival, later if credits are, of a message that would arrive at arrival_ps. */
static sim_time take_credits(struct interconnect *ic, struct link *link, enum message message,
                             sim_time arrival_ps)
{
    struct link_credits *credits = link->credits;
    struct pool *reserved = &credits->reserved[class_of[message]];
    const sim_time loop_ps = ic->params->credit_loop_ps;
    const sim_time start_ps = arrival_ps - ic->params->one_way_ps - ic->serial_ps[message];
    sim_time at_ps = pool_wait(&credits->shared, ic->flits[message], start_ps);
    const sim_time reserved_ps = at_ps == start_ps || reserved->n == 0
                                     ? SIM_TIME_MAX
                                     : pool_wait(reserved, 1, start_ps);

    if (reserved_ps < at_ps) {
        at_ps = reserved_ps;
        pool_hold_any(reserved, 1, at_ps, at_ps + loop_ps);
    } else {
        pool_hold_any(&credits->shared, ic->flits[message], at_ps, at_ps + loop_ps);
    }
    if (credits->wait_ps != NULL)
        *credits->wait_ps += at_ps - start_ps;
    return arrival_ps + (at_ps - start_ps);
}

void interconnect_stall(struct interconnect *ic, uint32_t from, uint32_t to, enum message message,
                        sim_time at_ps, sim_time until_ps)
{
    struct link_credits *credits = ic->link[from * ic->sockets + to].credits;

    if (credits != NULL)
        pool_hold_any(&credits->shared, ic->flits[message], at_ps, until_ps);
}

/* ---- Flits of several slots ------------------------------------------------------------------ */

/* Forgets what the calendar has forgotten. */
static void follow(struct link_headers *h, const struct calendar *c)
{
    if (c->base - h->base >= CALENDAR_SLOTS) {
        memset(h, 0, sizeof(*h));
        h->base = c->base;
    }
    for (; h->base < c->base; h->base += 64) {
        h->open[(h->base >> 6) & WORD_MASK] = 0;
        memset(&h->free[h->base & SLOT_MASK], 0, 64);
        memset(&h->no_data[h->base & SLOT_MASK], 0, 64);
    }
}

/* The first stretch from `stretch` on that has room; base + CALENDAR_SLOTS: none that the calendar
 * keeps. passes: or that has a header flit with a slot left. */
static uint64_t first_room(const struct link *link, uint64_t stretch, bool passes)
{
    const struct calendar *c = &link->calendar;
    const uint64_t end = c->base + CALENDAR_SLOTS;
    uint64_t from = stretch & 63;

    for (uint64_t word = stretch >> 6; word << 6 < end; word++, from = 0) {
        const uint64_t open = passes ? link->headers->open[word & WORD_MASK] : 0;
        const uint64_t here = (~c->full[word & WORD_MASK] | open) & (UINT64_MAX << from);
        if (here != 0)
            return (word << 6) + (uint64_t)__builtin_ctzll(here);
    }
    return end;
}

/* Whether a header can go with a header flit of the stretch; data: one without data so far. */
static bool can_share(const struct link_headers *h, uint64_t stretch, bool data)
{
    return h->free[stretch & SLOT_MASK] != 0 && (!data || h->no_data[stretch & SLOT_MASK] != 0);
}

/* The stretch with the header flit that a message sent at at_ps shares; UINT64_MAX: it opens one.
 * In order, that is the last one before the room that the message would get. */
static uint64_t shared_header(const struct interconnect *ic, const struct link *link, bool data,
                              sim_time at_ps)
{
    const struct calendar *c = &link->calendar;
    const uint64_t from = SIM_MAX(calendar_slot_of(c, at_ps), c->base);
    const bool passes = ic->params->headers_pass_data;

    if (from >= c->base + CALENDAR_SLOTS)
        return UINT64_MAX;
    const uint64_t room = first_room(link, from, passes);
    if (!passes && room > from && can_share(link->headers, room - 1, data))
        return room - 1;
    return room < c->base + CALENDAR_SLOTS && can_share(link->headers, room, data) ? room
                                                                                   : UINT64_MAX;
}

static void add_free(struct link_headers *h, uint64_t stretch, uint32_t n)
{
    h->free[stretch & SLOT_MASK] = (uint8_t)(h->free[stretch & SLOT_MASK] + n);
    h->open[(stretch >> 6) & WORD_MASK] |= UINT64_C(1) << (stretch & 63);
}

static void take_free(struct link_headers *h, uint64_t stretch)
{
    if (--h->free[stretch & SLOT_MASK] == 0)
        h->open[(stretch >> 6) & WORD_MASK] &= ~(UINT64_C(1) << (stretch & 63));
}

/* The first flits of a message, its own header flit included; the slots left in that are kept. */
static struct calendar_grant open_header(struct interconnect *ic, struct link *link, uint32_t flits,
                                         sim_time at_ps)
{
    const struct calendar_grant grant = calendar_take(&link->calendar, at_ps, flits);
    const uint64_t stretch = calendar_slot_of(&link->calendar, grant.start_ps);

    follow(link->headers, &link->calendar);
    link_count_load(link, flits, at_ps);
    add_free(link->headers, stretch, ic->params->flit_slots - 1);
    if (flits == 1)
        link->headers->no_data[stretch & SLOT_MASK]++;
    return grant;
}

/* When the last flit has been sent. */
static sim_time send_packed(struct interconnect *ic, struct link *link, enum message message,
                            sim_time at_ps)
{
    struct link_headers *h = link->headers;
    const struct calendar *c = &link->calendar;
    const uint32_t flits = ic->flits[message];
    struct calendar_grant grant;

    follow(h, c);
    const uint64_t stretch = shared_header(ic, link, flits > 1, at_ps);
    if (stretch == UINT64_MAX) {
        grant = open_header(ic, link, flits, at_ps);
    } else {
        const sim_time start_ps = SIM_MAX(at_ps, stretch * c->slot_ps);
        grant = (struct calendar_grant){ start_ps, start_ps };
        take_free(h, stretch);
        if (flits > 1) {
            h->no_data[stretch & SLOT_MASK]--;
            grant.end_ps = calendar_take(&link->calendar, start_ps, flits - 1).end_ps;
            follow(h, c);
            link_count_load(link, flits - 1, at_ps);
        }
    }
    const sim_time sent_ps = grant.start_ps + ic->serial_ps[message];

    return SIM_MAX(sent_ps, grant.end_ps);
}

sim_time interconnect_send_special(struct interconnect *ic, struct link *link, enum message message,
                                   sim_time at_ps)
{
    const sim_time sent_ps = link->headers != NULL
                                 ? send_packed(ic, link, message, at_ps)
                                 : interconnect_send_flits(ic, link, message, at_ps);
    const sim_time arrival_ps = sent_ps + ic->params->one_way_ps;

    return link->credits != NULL ? take_credits(ic, link, message, arrival_ps) : arrival_ps;
}
