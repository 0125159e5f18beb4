/*
 * Adaptive moderation of receive interrupts, after en_rx_am.c of Linux 4.14: every 64 events it
 * compares the rates of the last period with those of the period before. While they improve, the
 * profile steps on in the same direction, otherwise it turns round; at the optimum it parks until
 * the load changes.
 */
#ifndef LOGIC_NIC_NIC_DIM_H
#define LOGIC_NIC_NIC_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/nic_regs.h"

#define NIC_DIM_PROFILES 5u
#define NIC_DIM_EVENTS   64u /* per period of measurement */
#define NIC_DIM_START    1u  /* first profile */

struct nic_dim_profile {
    uint16_t us, count;
};
/* Profiles of each enum nic_moderation, from little to much moderation. */
extern const struct nic_dim_profile nic_dim_profiles[2][NIC_DIM_PROFILES];

enum nic_dim_tune {
    NIC_DIM_PARKED_ON_TOP, /* until the rates change */
    NIC_DIM_PARKED_TIRED,  /* until `tired` has counted down, once per period */
    NIC_DIM_RIGHT,         /* towards more moderation */
    NIC_DIM_LEFT,
};
struct nic_dim_sample { /* counters that only grow */
    uint64_t time_ps, packets, bytes, events;
};
struct nic_dim_rates { /* per millisecond, rounded up */
    uint64_t bytes, packets, events;
};
struct nic_dim {
    enum nic_dim_tune tune;
    uint8_t profile, steps_right, steps_left, tired;
    bool measuring; /* `start` is the start of a period */
    bool applying;  /* the device is being told a new profile */
    struct nic_dim_sample start;
    struct nic_dim_rates rates; /* of the last period that counted */
};

void nic_dim_init(struct nic_dim *dim);
/* Takes a sample at the end of a poll. True: dim->profile has changed; the caller tells the device,
 * then calls nic_dim_restart(). Nothing is measured until then. */
bool nic_dim_poll(struct nic_dim *dim, const struct nic_dim_sample *now);
/* The device uses the profile: the next sample starts a period. */
void nic_dim_restart(struct nic_dim *dim);

#endif
