/* Records what models do with the transactions that are followed. */
#include "models/pcie/link/tlp_trace.h"
#include "models/pcie/link/port.h"

#include <stdlib.h>
#include <string.h>

#include "models/base/model.h"

struct stamp_trace *tlp_trace_new(const struct model *device, uint64_t nth_write, uint64_t nth_read)
{
    struct stamp_trace *trace = sim_zalloc(1, sizeof(*trace));

    trace->device = device;
    trace->nth[TLP_TRACE_WRITE] = nth_write;
    trace->nth[TLP_TRACE_READ] = nth_read;
    return trace;
}

void tlp_trace_free(struct stamp_trace *trace)
{
    free(trace);
}

void tlp_trace_arm(struct stamp_trace *trace)
{
    trace->armed = true;
}

static void tlp_trace_name(char to[TLP_TRACE_NAME_BYTES], const char *name)
{
    size_t n = name == NULL ? 0 : strlen(name);

    n = SIM_MIN(n, (size_t)TLP_TRACE_NAME_BYTES - 1);
    if (n != 0)
        memcpy(to, name, n);
    to[n] = '\0';
}

/* Ports of endpoints have their device's name, root ports "s0.rp1" beside a model "host.s0". */
void tlp_trace_port(char to[TLP_TRACE_NAME_BYTES], const struct pcie_port *port)
{
    const char *owner = port->model->name, *dot = strrchr(owner, '.');
    size_t n = strlen(owner);

    if (strncmp(port->name, owner, n) == 0 || dot == NULL) {
        tlp_trace_name(to, port->name);
        if (strlen(port->name) == n && port->model->n_ports > 1 && port->idx < 10 &&
            n < TLP_TRACE_NAME_BYTES - 4) {
            to[n] = '.';
            to[n + 1] = 'p';
            to[n + 2] = (char)('0' + port->idx);
            to[n + 3] = '\0';
        }
        return;
    }
    n = SIM_MIN((size_t)(dot - owner) + 1, (size_t)TLP_TRACE_NAME_BYTES / 2);
    memcpy(to, owner, n);
    size_t left = SIM_MIN(strlen(port->name), TLP_TRACE_NAME_BYTES - 1 - n);
    memcpy(to + n, port->name, left);
    to[n + left] = '\0';
}

struct tlp_trace_record *tlp_trace_add(const struct sim_stamp *stamp, enum tlp_trace_kind kind,
                                       const char *who, sim_time at_ps)
{
    struct stamp_trace *trace = stamp->trace;
    struct tlp_trace_record *record = &trace->record[trace->n_records];

    if (trace->sink != NULL) {
        tlp_trace_flush(trace);
        trace->has_record = true;
    } else if (trace->n_records < TLP_TRACE_RECORDS)
        trace->n_records++;
    else
        trace->n_lost++;
    *record = (struct tlp_trace_record){ .at_ps = at_ps, .leg = stamp->leg, .kind = (uint8_t)kind };
    tlp_trace_name(record->who, who);
    return record;
}

struct tlp_trace_record *tlp_trace_add_tlp(const struct tlp *tlp, enum tlp_trace_kind kind,
                                           const char *who, sim_time at_ps)
{
    struct tlp_trace_record *record = tlp_trace_add(tlp->stamp, kind, who, at_ps);

    record->tlp.address = tlp->address;
    record->tlp.bytes = tlp->length_bytes;
    record->tlp.requester_id = tlp->requester_id;
    record->tlp.completer_id = tlp->completer_id;
    record->tlp.tag = tlp->tag;
    record->tlp.byte_count = tlp->byte_count;
    record->tlp.type = tlp->type;
    record->tlp.domain = tlp->domain;
    record->tlp.status = tlp->status;
    return record;
}

void tlp_trace_flush(struct stamp_trace *trace)
{
    if (trace->has_record)
        trace->sink->record(trace->sink, &trace->record[0]);
    trace->has_record = false;
}

/* Gives the TLP a stamp that points to the trace. */
static void follow(struct stamp_trace *trace, const struct model *device, struct tlp *tlp,
                   uint32_t leg)
{
    if (tlp->stamp == NULL) {
        tlp->stamp = stamp_new(device->pcie, sim_now(device->sim));
        tlp->stamp->uncounted = true;
    }
    tlp->stamp->trace = trace;
    tlp->stamp->leg = leg;
}

void tlp_trace_join(struct stamp_trace *trace, const struct model *device, struct tlp *tlp,
                    uint32_t transfer)
{
    if (trace->sink == NULL || transfer == 0)
        return;
    follow(trace, device, tlp, transfer);
    trace->sink->join(trace->sink, transfer, tlp);
}

void tlp_trace_give_up(struct stamp_trace *trace, uint32_t transfer)
{
    if (trace->sink == NULL || transfer == 0)
        return;
    tlp_trace_flush(trace);
    trace->sink->give_up(trace->sink, transfer);
}

uint32_t tlp_trace_choose(struct stamp_trace *trace, const struct model *device, struct tlp *tlp,
                          uint64_t transfer_bytes)
{
    enum tlp_trace_walk walk = tlp->type == TLP_MWR ? TLP_TRACE_WRITE : TLP_TRACE_READ;

    if (trace->sink != NULL) {
        const uint32_t transfer = trace->sink->begin(trace->sink, device, tlp, transfer_bytes);
        tlp_trace_join(trace, device, tlp, transfer);
        return transfer;
    }
    if (!trace->armed || (trace->device != NULL && trace->device != device) ||
        transfer_bytes < trace->bytes_min)
        return 0;
    if (trace->device_name[0] == '\0')
        tlp_trace_name(trace->device_name, device->name);
    trace->device = device;
    if (++trace->seen[walk] != trace->nth[walk])
        return 0;
    follow(trace, device, tlp, TLP_TRACE_LEG(walk, trace->n_legs[walk]++));
    trace->live[walk]++;
    tlp_trace_add_tlp(tlp, TRACE_SENT, device->name, sim_now(device->sim))->tlp.transfer_bytes =
        (uint32_t)SIM_MIN(transfer_bytes, UINT32_MAX);
    return 0;
}

void tlp_trace_branch(struct sim_stamp *stamp)
{
    struct stamp_trace *trace = stamp->trace;
    uint32_t walk = TLP_TRACE_WALK_OF(stamp->leg), parent = stamp->leg;

    if (trace->sink != NULL) {
        trace->sink->copy(trace->sink, stamp->leg);
        return;
    }
    stamp->leg = TLP_TRACE_LEG(walk, trace->n_legs[walk]++);
    trace->live[walk]++;
    tlp_trace_add(stamp, TRACE_BRANCH, "", stamp->cursor_ps)->branch.parent = parent;
}

/* Nothing is left to come of a walk that has begun and has no stamp any more. */
static bool ended(const struct stamp_trace *trace, enum tlp_trace_walk walk)
{
    return trace->nth[walk] == 0 || (trace->n_legs[walk] != 0 && trace->live[walk] == 0);
}

void tlp_trace_end(struct sim_stamp *stamp)
{
    struct stamp_trace *trace = stamp->trace;

    stamp->trace = NULL;
    if (trace->sink != NULL) {
        tlp_trace_flush(trace);
        trace->sink->end(trace->sink, stamp->leg);
        return;
    }
    trace->live[TLP_TRACE_WALK_OF(stamp->leg)]--;
    if (ended(trace, TLP_TRACE_WRITE) && ended(trace, TLP_TRACE_READ))
        trace->done = 1;
}

void tlp_trace_delay(const struct sim_stamp *stamp, sim_time delay_ps)
{
    struct stamp_trace *trace = stamp->trace;

    for (uint32_t i = trace->n_records; i-- > 0;) {
        struct tlp_trace_record *record = &trace->record[i];
        if (record->leg != stamp->leg)
            continue;
        if (record->kind == TRACE_LINK) {
            record->at_ps += delay_ps;
            record->link.start_ps += delay_ps;
            record->link.head_ps += delay_ps;
            record->link.tail_ps += delay_ps;
        }
        return;
    }
}
