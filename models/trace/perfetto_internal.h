/* The inside of perfetto*.c. */
#ifndef MODELS_TRACE_PERFETTO_INTERNAL_H
#define MODELS_TRACE_PERFETTO_INTERNAL_H

#include "models/pcie/link/tlp_trace.h"
#include "models/trace/perfetto.h"
#include "sim/engine/activity.h"
#include "sim/trace/pftrace.h"

#define PERFETTO_NAME_BYTES PFTRACE_TEXT_BYTES_MAX

/* Something that does several things at a time: a slice goes on the first lane that is free. */
struct perfetto_lane {
    uint64_t track;
    sim_time free_ps;
};
struct perfetto_place {
    struct perfetto_place *next;
    uint64_t parent; /* what has the same name below another track is another place */
    char name[PERFETTO_NAME_BYTES];
    uint64_t track; /* for instants, and above the lanes */
    struct perfetto_lane *lane;
    uint32_t n_lanes;
    uint64_t counter; /* track of the transfers under way; 0: none yet */
    uint32_t n_under_way;
};

struct perfetto_direction {
    struct pcie_tap tap;
    struct perfetto *perfetto;
    struct pcie_port *port;
    uint64_t track, waiting_track, busy_track;
    uint32_t n_waiting;
    uint64_t interval; /* of busy_ps */
    sim_time busy_ps, busy_until_ps;
};

/* A DMA transfer that is followed. */
struct perfetto_flow {
    struct perfetto_flow *next;
    uint32_t number, n_stamps;
    bool write, given_up; /* given_up: what was sent is all that comes */
    struct perfetto_place *device;
    char root[PERFETTO_NAME_BYTES]; /* the root complex that it has reached */
    uint64_t address, bytes, sent_bytes;
    sim_time begin_ps, last_ps;
};
#define PERFETTO_BUCKETS 256u

struct perfetto_cpu {
    struct perfetto_cpu *next;
    char host[PERFETTO_NAME_BYTES];
    unsigned cpu;
    uint64_t track;
    char thread[PERFETTO_NAME_BYTES]; /* that runs, since; "": none */
    sim_time since_ps;
};

struct perfetto {
    struct sim *sim;
    struct trace_file *file;
    const struct trace_window *window;
    volatile int *done;
    uint64_t n_tracks;
    uint64_t links, devices, elements, hosts; /* tracks above others */
    struct perfetto_direction *direction;
    uint32_t n_directions;
    struct perfetto_place *places;
    struct perfetto_flow *flow[PERFETTO_BUCKETS], *spare;
    uint32_t n_flows;
    struct tlp_trace_sink sink;
    struct stamp_trace *trace;
    struct sim_activity activity;
    struct perfetto_cpu *cpus;
    uint8_t *tail; /* descriptions of tracks that a ring must not lose */
    size_t tail_bytes;
};

/* ---- perfetto.c ------------------------------------------------------------------------------ */
/* Makes a track below another one; unit: of a counter, NULL for slices. Returns its number. */
uint64_t perfetto_track(struct perfetto *perfetto, uint64_t parent, const char *name,
                        const char *unit);
/* Whether something at that time is to be recorded; sets *done when the window is over. */
bool perfetto_wants(struct perfetto *perfetto, sim_time at_ps);
void perfetto_event(struct perfetto *perfetto, const struct pftrace_event *event);
void perfetto_counter(struct perfetto *perfetto, uint64_t track, sim_time at_ps, double value);
/* The place of that name below `parent`, made if it is not there. */
struct perfetto_place *perfetto_place(struct perfetto *perfetto, uint64_t parent, const char *name);
/* A slice of the place, on a lane of which nothing else is then. */
void perfetto_slice(struct perfetto *perfetto, struct perfetto_place *place,
                    struct pftrace_event *event);

/* ---- perfetto_flow.c: transfers and where they come by --------------------------------------- */
void perfetto_flow_init(struct perfetto *perfetto);
/* The flow of the TLP, 0 if none. */
uint64_t perfetto_flow_of(const struct perfetto *perfetto, const struct tlp *tlp);
/* Writes what has not ended, frees. */
void perfetto_flow_release(struct perfetto *perfetto);

/* ---- perfetto_cpu.c: threads and interrupts -------------------------------------------------- */
void perfetto_cpu_init(struct perfetto *perfetto);
void perfetto_cpu_release(struct perfetto *perfetto);

#endif
