/*
 * Models: a run as a trace for Perfetto: tracks for each direction of each link (a slice for each
 *   TLP while it is on the wire), for devices (DMA transfers), for switches, bridges, root
 *   complexes, IOMMUs and memory (what TLPs of DMA transfers meet there), for CPUs and threads;
 *   counters of TLPs that wait, of how busy the wire is, and of transfers under way. A DMA transfer
 *   is one flow across all of these.
 * Does not model: flows of what cores read and write (doorbells): their TLPs are on links only.
 * Timing: slices of links are from the first to the last byte at the transmitter. Times are rounded
 *   down to nanoseconds, the format's unit. A counter of waiting TLPs is looked at when one arrives
 *   at the other end.
 * Sources: docs/traces.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/trace/perfetto_internal.h"
#include "models/trace/tlp_filter.h"

#define INTERVAL_PS (10 * SIM_PS_PER_US) /* over which a wire's use is averaged */

/* ---- Records --------------------------------------------------------------------------------- */

bool perfetto_wants(struct perfetto *perfetto, sim_time at_ps)
{
    if (sim_now(perfetto->sim) > perfetto->window->until_ps)
        *perfetto->done = 1;
    return at_ps >= perfetto->window->from_ps && at_ps <= perfetto->window->until_ps;
}

static void add(struct perfetto *perfetto, const uint8_t *data, size_t bytes)
{
    trace_file_add(perfetto->file, data, bytes);
    if (trace_file_ended(perfetto->file))
        *perfetto->done = 1;
}

uint64_t perfetto_track(struct perfetto *perfetto, uint64_t parent, const char *name,
                        const char *unit)
{
    uint8_t packet[PFTRACE_BYTES_MAX];
    const uint64_t track = ++perfetto->n_tracks;
    const size_t bytes = pftrace_track(packet, track, parent, name, unit);

    if (!perfetto->window->ring) {
        add(perfetto, packet, bytes);
        return track;
    }
    perfetto->tail = sim_grow(perfetto->tail, perfetto->tail_bytes + bytes, 1);
    memcpy(perfetto->tail + perfetto->tail_bytes, packet, bytes);
    perfetto->tail_bytes += bytes;
    return track;
}

void perfetto_event(struct perfetto *perfetto, const struct pftrace_event *event)
{
    uint8_t packet[2 * PFTRACE_BYTES_MAX];

    add(perfetto, packet, pftrace_event(packet, event));
}

void perfetto_counter(struct perfetto *perfetto, uint64_t track, sim_time at_ps, double value)
{
    uint8_t packet[PFTRACE_BYTES_MAX];

    if (perfetto_wants(perfetto, at_ps))
        add(perfetto, packet, pftrace_counter(packet, track, at_ps, value));
}

/* ---- Places ---------------------------------------------------------------------------------- */

struct perfetto_place *perfetto_place(struct perfetto *perfetto, uint64_t parent, const char *name)
{
    struct perfetto_place *place = perfetto->places;

    while (place != NULL &&
           (place->parent != parent || strncmp(place->name, name, sizeof(place->name) - 1) != 0))
        place = place->next;
    if (place != NULL)
        return place;
    place = sim_zalloc(1, sizeof(*place));
    place->next = perfetto->places;
    place->parent = parent;
    place->track = perfetto_track(perfetto, parent, name, NULL);
    snprintf(place->name, sizeof(place->name), "%.*s", (int)sizeof(place->name) - 1, name);
    perfetto->places = place;
    return place;
}

void perfetto_slice(struct perfetto *perfetto, struct perfetto_place *place,
                    struct pftrace_event *event)
{
    char name[PERFETTO_NAME_BYTES + 16];
    uint32_t i = 0;

    while (i < place->n_lanes && place->lane[i].free_ps > event->begin_ps)
        i++;
    if (i == place->n_lanes) {
        snprintf(name, sizeof(name), "%s %u", place->name, i);
        place->lane = sim_grow(place->lane, ++place->n_lanes, sizeof(*place->lane));
        place->lane[i].track = perfetto_track(perfetto, place->track, name, NULL);
    }
    place->lane[i].free_ps = event->end_ps;
    event->track = place->lane[i].track;
    perfetto_event(perfetto, event);
}

/* ---- Links ----------------------------------------------------------------------------------- */

/* Writes the value of direction->interval: of the part of it that is in the window and before
 * end_ps. */
static void write_interval(struct perfetto_direction *direction, sim_time end_ps)
{
    const struct trace_window *window = direction->perfetto->window;
    const sim_time begin_ps = direction->interval * INTERVAL_PS;
    const sim_time from_ps = SIM_MAX(begin_ps, window->from_ps);
    const sim_time until_ps = SIM_MIN(begin_ps + INTERVAL_PS, SIM_MIN(end_ps, window->until_ps));

    if (until_ps > from_ps)
        perfetto_counter(direction->perfetto, direction->busy_track, from_ps,
                         100.0 * (double)direction->busy_ps / (double)(until_ps - from_ps));
    direction->busy_ps = 0;
}

/* Writes what is over before `interval`: the one that is counted and, once, zero for those behind
 * it. */
static void next_interval(struct perfetto_direction *direction, uint64_t interval, sim_time end_ps)
{
    if (interval <= direction->interval)
        return;
    write_interval(direction, end_ps);
    if (++direction->interval < interval)
        write_interval(direction, end_ps);
    direction->interval = interval;
}

/* A TLP has the wire from start_ps on: each interval gets its share, what is behind the window
 * counts nowhere. */
static void count_busy(struct perfetto_direction *direction, sim_time start_ps, sim_time wire_ps)
{
    const struct trace_window *window = direction->perfetto->window;
    const sim_time end_ps = SIM_MIN(start_ps + wire_ps, window->until_ps);

    /* The first time: nothing is known of what was before the window. */
    direction->interval = SIM_MAX(direction->interval, window->from_ps / INTERVAL_PS);
    for (sim_time at_ps = start_ps; at_ps < end_ps;) {
        next_interval(direction, at_ps / INTERVAL_PS, SIM_TIME_MAX);
        const sim_time to_ps = SIM_MIN(end_ps, (direction->interval + 1) * INTERVAL_PS);
        direction->busy_ps += to_ps - at_ps;
        at_ps = to_ps;
    }
    direction->busy_until_ps = end_ps;
}

/* The run ends now, but for the TLP that may still be on the wire. */
static void end_busy(struct perfetto_direction *direction)
{
    const sim_time end_ps = SIM_MAX(sim_now(direction->perfetto->sim), direction->busy_until_ps);

    if (direction->busy_until_ps != 0)
        next_interval(direction, end_ps / INTERVAL_PS + 1, end_ps);
}

static void tap_tlp(struct pcie_tap *tap, const struct pcie_port *from, const struct tlp *tlp,
                    sim_time start_ps, bool lost)
{
    struct perfetto_direction *direction = SIM_CONTAINER(tap, struct perfetto_direction, tap);
    struct perfetto *perfetto = direction->perfetto;
    const sim_time wire_ps = tlp->tail_ps - tlp->head_ps;
    const struct pftrace_note notes[] = {
        { "address", tlp->address, true },
        { "bytes", tlp->length_bytes, false },
        { "requester", tlp->requester_id, true },
        { "tag", tlp->tag, false },
        { "lost", lost, false },
    };
    char name[32];
    const struct pftrace_event event = { .track = direction->track,
                                         .begin_ps = start_ps,
                                         .end_ps = start_ps + wire_ps,
                                         .name = name,
                                         .flow = perfetto_flow_of(perfetto, tlp),
                                         .notes = notes,
                                         .n_notes = SIM_N_ELEMENTS(notes) - !lost };

    (void)from;
    if (!perfetto_wants(perfetto, start_ps))
        return;
    snprintf(name, sizeof(name), "%s %u", tlp_type_names[tlp->type], tlp->length_bytes);
    perfetto_event(perfetto, &event);
    if (direction->port->integrated)
        return;
    count_busy(direction, start_ps, wire_ps);
    const uint32_t n_waiting = pcie_port_waiting(direction->port);
    if (n_waiting != direction->n_waiting)
        perfetto_counter(perfetto, direction->waiting_track, sim_now(perfetto->sim), n_waiting);
    direction->n_waiting = n_waiting;
}

static void init_direction(struct perfetto *perfetto, struct perfetto_direction *direction,
                           struct pcie_port *port)
{
    char from[PCIE_PORT_NAME_BYTES], to[PCIE_PORT_NAME_BYTES];
    char name[2 * PCIE_PORT_NAME_BYTES + 40];

    *direction = (struct perfetto_direction){ .tap = { .tlp = tap_tlp },
                                              .perfetto = perfetto,
                                              .port = port };
    snprintf(name, sizeof(name), "%s > %s", pcie_port_cable_name(port, from),
             pcie_port_cable_name(pcie_port_peer(port), to));
    direction->track = perfetto_track(perfetto, perfetto->links, name, NULL);
    if (!port->integrated) {
        snprintf(name, sizeof(name), "%s > %s: TLPs that wait", from, to);
        direction->waiting_track = perfetto_track(perfetto, perfetto->links, name, "TLPs");
        snprintf(name, sizeof(name), "%s > %s: wire in use", from, to);
        direction->busy_track = perfetto_track(perfetto, perfetto->links, name, "%");
    }
    pcie_port_add_tap(port, &direction->tap);
}

static void init_links(struct perfetto *perfetto, struct world *world)
{
    struct pcie_context *pcie = world_pcie(world);
    struct pcie_port *end[2];

    while (pcie_context_link(pcie, perfetto->n_directions, NULL, NULL) != NULL)
        perfetto->n_directions++;
    perfetto->n_directions *= 2;
    perfetto->direction = sim_zalloc(perfetto->n_directions, sizeof(*perfetto->direction));
    for (uint32_t i = 0; i < perfetto->n_directions; i++) {
        pcie_context_link(pcie, i / 2, &end[0], &end[1]);
        init_direction(perfetto, &perfetto->direction[i], end[i & 1]);
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct perfetto *perfetto_new(struct world *world, const char *path,
                              const struct trace_window *window, volatile int *done)
{
    struct trace_file *file = trace_file_new(path, window->limit_bytes, window->ring,
                                             window->watch);

    if (file == NULL)
        return NULL;
    struct perfetto *perfetto = sim_zalloc(1, sizeof(*perfetto));
    perfetto->sim = world_sim(world);
    perfetto->file = file;
    perfetto->window = window;
    perfetto->done = done;
    perfetto->links = perfetto_track(perfetto, 0, "PCIe links", NULL);
    perfetto->devices = perfetto_track(perfetto, 0, "devices", NULL);
    perfetto->elements = perfetto_track(perfetto, 0, "switches, bridges, root complexes", NULL);
    perfetto->hosts = perfetto_track(perfetto, 0, "CPUs and tasks", NULL);
    perfetto_flow_init(perfetto);
    perfetto_cpu_init(perfetto);
    init_links(perfetto, world);
    world_trace(world, perfetto->trace);
    return perfetto;
}

void perfetto_end(struct perfetto *perfetto, struct trace_file_counts *counts)
{
    *counts = (struct trace_file_counts){ 0 };
    if (perfetto == NULL)
        return;
    for (uint32_t i = 0; i < perfetto->n_directions; i++) {
        struct perfetto_direction *direction = &perfetto->direction[i];
        end_busy(direction);
        pcie_port_remove_tap(direction->port, &direction->tap);
    }
    perfetto_flow_release(perfetto);
    perfetto_cpu_release(perfetto);
    if (perfetto->tail_bytes != 0)
        trace_file_tail(perfetto->file, perfetto->tail, perfetto->tail_bytes);
    trace_file_close(perfetto->file, counts);
    for (struct perfetto_place *place = perfetto->places, *next; place != NULL; place = next) {
        next = place->next;
        free(place->lane);
        free(place);
    }
    free(perfetto->direction);
    free(perfetto->tail);
}

void perfetto_free(struct perfetto *perfetto)
{
    if (perfetto == NULL)
        return;
    tlp_trace_free(perfetto->trace);
    free(perfetto);
}
