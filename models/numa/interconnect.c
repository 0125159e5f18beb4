#include "models/numa/interconnect.h"

#include <math.h>
#include <stdlib.h>

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
    ic->window_capacity_flits = (UINT64_C(1) << LINK_WINDOW_LOG2) * LINK_GROUP_FLITS / slot_ps;
    ic->link = sim_zalloc((size_t)sockets * sockets, sizeof(*ic->link));
    for (uint32_t i = 0; i < sockets * sockets; i++)
        calendar_init(&ic->link[i].calendar, slot_ps, LINK_GROUP_FLITS);
}

void interconnect_release(struct interconnect *ic)
{
    free(ic->link);
    ic->link = NULL;
}

sim_time interconnect_idle_ps(const struct interconnect *ic, enum message message)
{
    return ic->serial_ps[message] + ic->params->one_way_ps;
}
