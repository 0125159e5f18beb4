/*
 * Adaptive moderation of receive interrupts: the state machine.
 *
 * What it does: Profiles, measurement over 64 events, comparison by bytes, then packets, then
 *   events, with differences below 10 % ignored, parking, tiredness.
 * Leaves out: more than one state machine per receive queue.
 * Follows: Linux 4.14 mlx5/core/en_rx_am.c; docs/sources.md#nic (tables, constants).
 */
#include "logic/nic/nic_dim.h"

#include "logic/kapi.h"

const struct nic_dim_profile nic_dim_profiles[2][NIC_DIM_PROFILES] = {
    [NIC_MODERATION_EQE] = { { 1, 256 }, { 8, 256 }, { 64, 256 }, { 128, 256 }, { 256, 256 } },
    [NIC_MODERATION_CQE] = { { 2, 256 }, { 8, 128 }, { 16, 64 }, { 32, 64 }, { 64, 64 } },
};

enum verdict { WORSE, SAME, BETTER };
enum step { STEPPED, ON_EDGE, TOO_TIRED };

void nic_dim_init(struct nic_dim *dim)
{
    *dim = (struct nic_dim){ .tune = NIC_DIM_RIGHT, .profile = NIC_DIM_START };
}

static bool differs(uint64_t now, uint64_t before)
{
    uint64_t by = now > before ? now - before : before - now;
    return before != 0 ? 100 * by / before > 10 : now != 0;
}

/* More bytes are better; as many bytes in more packets; as much of both in fewer events. */
static enum verdict compare(const struct nic_dim_rates *now, const struct nic_dim_rates *before)
{
    if (before->bytes == 0)
        return now->bytes != 0 ? BETTER : SAME;
    if (differs(now->bytes, before->bytes))
        return now->bytes > before->bytes ? BETTER : WORSE;
    if (differs(now->packets, before->packets))
        return now->packets > before->packets ? BETTER : WORSE;
    if (differs(now->events, before->events))
        return now->events < before->events ? BETTER : WORSE;
    return SAME;
}

static void turn(struct nic_dim *dim)
{
    if (dim->tune == NIC_DIM_RIGHT) {
        dim->tune = NIC_DIM_LEFT;
        dim->steps_left = 0;
    } else {
        dim->tune = NIC_DIM_RIGHT;
        dim->steps_right = 0;
    }
}

/* It came from further on, and one step back was worse: the best lies between. */
static bool on_top(const struct nic_dim *dim)
{
    return dim->tune == NIC_DIM_RIGHT ? dim->steps_left > 1 && dim->steps_right == 1
                                      : dim->steps_right > 1 && dim->steps_left == 1;
}

static enum step step(struct nic_dim *dim)
{
    if (dim->tired == 2 * NIC_DIM_PROFILES)
        return TOO_TIRED;
    if (dim->tune == NIC_DIM_RIGHT) {
        if (dim->profile == NIC_DIM_PROFILES - 1)
            return ON_EDGE;
        dim->profile++;
        dim->steps_right++;
    } else {
        if (dim->profile == 0)
            return ON_EDGE;
        dim->profile--;
        dim->steps_left++;
    }
    dim->tired++;
    return STEPPED;
}

static void park_on_top(struct nic_dim *dim)
{
    dim->steps_right = dim->steps_left = dim->tired = 0;
    dim->tune = NIC_DIM_PARKED_ON_TOP;
}

static void park_tired(struct nic_dim *dim)
{
    dim->steps_right = dim->steps_left = 0;
    dim->tune = NIC_DIM_PARKED_TIRED;
}

static void leave_parking(struct nic_dim *dim)
{
    dim->tune = dim->profile != 0 ? NIC_DIM_LEFT : NIC_DIM_RIGHT;
    step(dim);
}

static void move(struct nic_dim *dim, const struct nic_dim_rates *rates)
{
    if (compare(rates, &dim->rates) != BETTER)
        turn(dim);
    if (on_top(dim)) {
        park_on_top(dim);
        return;
    }
    switch (step(dim)) {
    case STEPPED: break;
    case ON_EDGE: park_on_top(dim); break;
    case TOO_TIRED: park_tired(dim); break;
    }
}

/* True: another profile. While it stays parked on top the rates of when it parked are kept, so that
 * a slow drift is noticed in the end. */
static bool decide(struct nic_dim *dim, const struct nic_dim_rates *rates)
{
    enum nic_dim_tune tune = dim->tune;
    uint8_t profile = dim->profile;
    switch (tune) {
    case NIC_DIM_PARKED_ON_TOP:
        if (compare(rates, &dim->rates) != SAME)
            leave_parking(dim);
        break;
    case NIC_DIM_PARKED_TIRED:
        if (--dim->tired == 0)
            leave_parking(dim);
        break;
    case NIC_DIM_RIGHT:
    case NIC_DIM_LEFT: move(dim, rates); break;
    }
    if (tune != NIC_DIM_PARKED_ON_TOP || dim->tune != NIC_DIM_PARKED_ON_TOP)
        dim->rates = *rates;
    return dim->profile != profile;
}

static uint64_t per_ms(uint64_t n, uint64_t us)
{
    return (n * 1000 + us - 1) / us;
}

bool nic_dim_poll(struct nic_dim *dim, const struct nic_dim_sample *now)
{
    if (dim->applying)
        return false;
    if (dim->measuring) {
        if (now->events - dim->start.events < NIC_DIM_EVENTS)
            return false;
        uint64_t us = (now->time_ps - dim->start.time_ps) / K_US;
        if (us != 0) {
            struct nic_dim_rates rates = {
                .bytes = per_ms(now->bytes - dim->start.bytes, us),
                .packets = per_ms(now->packets - dim->start.packets, us),
                .events = per_ms(NIC_DIM_EVENTS, us),
            };
            if (decide(dim, &rates)) {
                dim->measuring = false;
                dim->applying = true;
                return true;
            }
        }
    }
    dim->measuring = true;
    dim->start = *now;
    return false;
}

void nic_dim_restart(struct nic_dim *dim)
{
    dim->applying = false;
}
