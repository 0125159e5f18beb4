/*
 * Models: DMA transfers in a trace for Perfetto: a slice of the device, and an event at each
 *   element that a TLP of the transfer comes by. All of them, and the slices of its TLPs on links,
 *   are one flow.
 * Does not model: transfers of which the first TLP is before the window; what cores read and write.
 * Timing: a transfer lasts from its first TLP until the last data are there, of a write: in memory;
 *   an event is at the time at which the element's model does it.
 * Sources: docs/traces.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/base/model.h"
#include "models/trace/perfetto_internal.h"

static struct perfetto_flow **flow_at(struct perfetto *perfetto, uint32_t number)
{
    struct perfetto_flow **at = &perfetto->flow[number % PERFETTO_BUCKETS];

    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void count(struct perfetto *perfetto, struct perfetto_place *device, int change)
{
    device->n_under_way += (uint32_t)change;
    perfetto_counter(perfetto, device->counter, sim_now(perfetto->sim), device->n_under_way);
}

static uint32_t begin(struct tlp_trace_sink *sink, const struct model *device,
                      const struct tlp *tlp, uint64_t transfer_bytes)
{
    struct perfetto *perfetto = SIM_CONTAINER(sink, struct perfetto, sink);
    struct perfetto_flow *flow = perfetto->spare;
    const sim_time now_ps = sim_now(perfetto->sim);
    char name[PERFETTO_NAME_BYTES];

    if (!perfetto_wants(perfetto, now_ps) || perfetto->n_flows == UINT32_MAX)
        return 0;
    if (flow != NULL)
        perfetto->spare = flow->next;
    else
        flow = sim_zalloc(1, sizeof(*flow));
    *flow = (struct perfetto_flow){
        .number = ++perfetto->n_flows,
        .write = tlp->type == TLP_MWR,
        .device = perfetto_place(perfetto, perfetto->devices, device->name),
        .address = tlp->address,
        .bytes = transfer_bytes,
        .begin_ps = now_ps,
        .last_ps = now_ps,
    };
    if (flow->device->counter == 0) {
        snprintf(name, sizeof(name), "%s DMA transfers under way", device->name);
        flow->device->counter = perfetto_track(perfetto, perfetto->devices, name, "transfers");
    }
    count(perfetto, flow->device, 1);
    *flow_at(perfetto, flow->number) = flow;
    return flow->number;
}

static void join(struct tlp_trace_sink *sink, uint32_t transfer, const struct tlp *tlp)
{
    struct perfetto_flow *flow = *flow_at(SIM_CONTAINER(sink, struct perfetto, sink), transfer);

    if (flow == NULL)
        return;
    flow->n_stamps++;
    flow->sent_bytes += tlp->length_bytes;
}

static void copy(struct tlp_trace_sink *sink, uint32_t transfer)
{
    struct perfetto_flow *flow = *flow_at(SIM_CONTAINER(sink, struct perfetto, sink), transfer);

    if (flow != NULL)
        flow->n_stamps++;
}

static void write_flow(struct perfetto *perfetto, struct perfetto_flow *flow)
{
    const struct pftrace_note notes[] = { { "address", flow->address, true },
                                          { "bytes", flow->bytes, false } };
    char name[64];
    struct pftrace_event event = { .begin_ps = flow->begin_ps,
                                   .end_ps = flow->last_ps,
                                   .name = name,
                                   .flow = flow->number,
                                   .notes = notes,
                                   .n_notes = SIM_N_ELEMENTS(notes) };

    snprintf(name, sizeof(name), "DMA %s, %llu bytes%s", flow->write ? "write" : "read",
             (unsigned long long)flow->bytes, flow->given_up ? ", given up" : "");
    perfetto_slice(perfetto, flow->device, &event);
}

/* Ends the flow if nothing more comes of it. */
static void end_if_over(struct perfetto *perfetto, struct perfetto_flow **at)
{
    struct perfetto_flow *flow = *at;

    if (flow->n_stamps != 0 || (flow->sent_bytes < flow->bytes && !flow->given_up))
        return;
    write_flow(perfetto, flow);
    count(perfetto, flow->device, -1);
    *at = flow->next;
    flow->next = perfetto->spare;
    perfetto->spare = flow;
}

static void give_up(struct tlp_trace_sink *sink, uint32_t transfer)
{
    struct perfetto *perfetto = SIM_CONTAINER(sink, struct perfetto, sink);
    struct perfetto_flow **at = flow_at(perfetto, transfer);

    if (*at == NULL)
        return;
    (*at)->given_up = true;
    end_if_over(perfetto, at);
}

static void end(struct tlp_trace_sink *sink, uint32_t transfer)
{
    struct perfetto *perfetto = SIM_CONTAINER(sink, struct perfetto, sink);
    struct perfetto_flow **at = flow_at(perfetto, transfer);

    if (*at == NULL)
        return;
    (*at)->n_stamps--;
    end_if_over(perfetto, at);
}

/* ---- Where TLPs come by ---------------------------------------------------------------------- */

static const char *iommu_text(const struct tlp_trace_record *record)
{
    switch ((enum tlp_trace_iommu)record->iommu.how) {
    case TRACE_IOMMU_HIT: return "IOTLB hit";
    case TRACE_IOMMU_UNDER_MISS: return "waits for another's walk";
    case TRACE_IOMMU_WALK: return "walk of the page tables";
    case TRACE_IOMMU_FAULT: return "fault";
    default: return NULL;
    }
}

/* The event of a record that takes no time; false: it is none. */
static bool take_instant(const struct tlp_trace_record *record, struct pftrace_event *event)
{
    static const char *const names[] = {
        [TRACE_ROUTE] = "chooses the port",
        [TRACE_NTB_OUT] = "request: host to fabric",
        [TRACE_NTB_IN] = "request: fabric to host",
        [TRACE_NTB_CPL_OUT] = "completion: host to fabric",
        [TRACE_NTB_CPL_IN] = "completion: fabric to host",
        [TRACE_CLUSTER] = "routes by the node",
        [TRACE_ROOT] = "request is past the inbound queues",
        [TRACE_VISIBLE] = "write is in memory",
        [TRACE_COMPLETION] = "completion is ready",
        [TRACE_PEER] = "goes on through another root port",
        [TRACE_INTERRUPT] = "interrupt message",
        [TRACE_REFUSED] = "answered with an error, or dropped",
        [TRACE_ARRIVED] = "completion is there",
    };
    if (record->kind >= SIM_N_ELEMENTS(names) || names[record->kind] == NULL)
        return false;
    event->name = names[record->kind];
    event->instant = true;
    event->end_ps = record->at_ps;
    return true;
}

/* The place, with the event's times and name; NULL: nothing to show. */
static struct perfetto_place *place_of(struct perfetto *perfetto, struct perfetto_flow *flow,
                                       const struct tlp_trace_record *record,
                                       struct pftrace_event *event)
{
    char name[PERFETTO_NAME_BYTES + 16];

    if (record->kind == TRACE_IOMMU) {
        event->name = iommu_text(record);
        event->end_ps = record->iommu.done_ps;
        snprintf(name, sizeof(name), "%s IOMMU", record->who);
    } else if (record->kind == TRACE_LINE) {
        event->name = record->line.write ? "writes a line" : "reads a line";
        event->end_ps = record->line.done_ps;
        snprintf(name, sizeof(name), "%s memory", flow->root);
    } else {
        if (!take_instant(record, event))
            return NULL;
        snprintf(name, sizeof(name), "%s", record->who);
    }
    if (record->kind == TRACE_ROOT)
        snprintf(flow->root, sizeof(flow->root), "%s", record->who);
    if (record->kind == TRACE_ARRIVED)
        return flow->device;
    return event->name == NULL ? NULL : perfetto_place(perfetto, perfetto->elements, name);
}

static uint64_t address_of(const struct tlp_trace_record *record)
{
    switch ((enum tlp_trace_kind)record->kind) {
    case TRACE_IOMMU: return record->iommu.iova;
    case TRACE_LINE: return record->line.hpa;
    case TRACE_NTB_OUT:
    case TRACE_NTB_IN: return record->ntb.to_address;
    case TRACE_ROOT:
    case TRACE_VISIBLE:
    case TRACE_COMPLETION:
    case TRACE_PEER:
    case TRACE_INTERRUPT:
    case TRACE_REFUSED:
    case TRACE_ARRIVED: return record->tlp.address;
    default: return 0;
    }
}

static void record(struct tlp_trace_sink *sink, const struct tlp_trace_record *noted)
{
    struct perfetto *perfetto = SIM_CONTAINER(sink, struct perfetto, sink);
    struct perfetto_flow *flow = *flow_at(perfetto, noted->leg);
    const struct pftrace_note notes[] = { { "address", address_of(noted), true } };
    struct pftrace_event event = {
        .begin_ps = noted->at_ps, .flow = noted->leg, .notes = notes, .n_notes = notes[0].value != 0
    };

    if (flow == NULL)
        return;
    struct perfetto_place *place = place_of(perfetto, flow, noted, &event);
    if (place == NULL)
        return;
    flow->last_ps = SIM_MAX(flow->last_ps, event.end_ps);
    if (!event.instant) {
        perfetto_slice(perfetto, place, &event);
    } else {
        event.track = place->track;
        perfetto_event(perfetto, &event);
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

uint64_t perfetto_flow_of(const struct perfetto *perfetto, const struct tlp *tlp)
{
    const struct sim_stamp *stamp = tlp->stamp;

    return stamp != NULL && stamp->trace == perfetto->trace ? stamp->leg : 0;
}

void perfetto_flow_init(struct perfetto *perfetto)
{
    perfetto->sink = (struct tlp_trace_sink){
        .begin = begin, .join = join, .copy = copy, .give_up = give_up, .end = end, .record = record
    };
    perfetto->trace = tlp_trace_new(NULL, 0, 0);
    perfetto->trace->sink = &perfetto->sink;
}

static void free_list(struct perfetto_flow *flow)
{
    while (flow != NULL) {
        struct perfetto_flow *next = flow->next;
        free(flow);
        flow = next;
    }
}

void perfetto_flow_release(struct perfetto *perfetto)
{
    tlp_trace_flush(perfetto->trace);
    for (unsigned i = 0; i < PERFETTO_BUCKETS; i++) {
        for (struct perfetto_flow *flow = perfetto->flow[i]; flow != NULL; flow = flow->next)
            write_flow(perfetto, flow);
        free_list(perfetto->flow[i]);
        perfetto->flow[i] = NULL;
    }
    free_list(perfetto->spare);
    perfetto->spare = NULL;
}
