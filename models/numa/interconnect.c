#include "models/numa/interconnect.h"

#include <math.h>
#include <stdlib.h>

#define WINDOW_LOG2 20 /* ps: about one microsecond */

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
    for (int m = 0; m < N_MESSAGES; m++)
        ic->serial_ps[m] = (sim_time)llround(ic->flits[m] * unit_ps);
    ic->window_capacity_flits = (UINT64_C(1) << WINDOW_LOG2) * LINK_GROUP_FLITS / slot_ps;
    ic->link = calloc((size_t)sockets * sockets, sizeof(*ic->link));
    SIM_ASSERT(ic->link != NULL, "no memory for links");
    for (uint32_t i = 0; i < sockets * sockets; i++)
        calendar_init(&ic->link[i].calendar, slot_ps, LINK_GROUP_FLITS);
}

void interconnect_release(struct interconnect *ic)
{
    free(ic->link);
    ic->link = NULL;
}

static void count_load(struct link *link, uint32_t flits, sim_time at_ps)
{
    const uint64_t window = at_ps >> WINDOW_LOG2;

    if (SIM_UNLIKELY(window > link->window)) {
        link->last_window_flits = window == link->window + 1 ? link->window_flits : 0;
        link->window_flits = 0;
        link->window = window;
    }
    link->window_flits += flits;
}

sim_time interconnect_send(struct interconnect *ic, uint32_t from, uint32_t to,
                           enum message message, sim_time at_ps)
{
    struct link *link = &ic->link[from * ic->sockets + to];
    const struct calendar_grant grant = calendar_take(&link->calendar, at_ps, ic->flits[message]);
    const sim_time sent_ps = grant.start_ps + ic->serial_ps[message];

    count_load(link, ic->flits[message], at_ps);
    return SIM_MAX(sent_ps, grant.end_ps) + ic->params->one_way_ps;
}

bool interconnect_light(const struct interconnect *ic, uint32_t from, uint32_t to, sim_time at_ps,
                        uint32_t load_ratio_256)
{
    const struct link *link = &ic->link[from * ic->sockets + to];
    const uint64_t window = at_ps >> WINDOW_LOG2;
    uint64_t flits = link->last_window_flits;

    if (window > link->window)
        flits = window == link->window + 1 ? link->window_flits : 0;
    return flits * 256 < ic->window_capacity_flits * load_ratio_256;
}

sim_time interconnect_idle_ps(const struct interconnect *ic, enum message message)
{
    return ic->serial_ps[message] + ic->params->one_way_ps;
}
