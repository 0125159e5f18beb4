/* Packets of Perfetto's trace format (protocol buffers, perfetto.protos.Trace): tracks, slices,
 * instants, counters. Each packet stands for itself: none needs another one but the description of
 * its track. Time stamps are nanoseconds of simulated time. */
#ifndef SIM_TRACE_PFTRACE_H
#define SIM_TRACE_PFTRACE_H

#include "sim/engine/types.h"

#define PFTRACE_BYTES_MAX      2048u /* of what each function writes, for each packet of it */
#define PFTRACE_TEXT_BYTES_MAX 128u  /* longer texts are cut */
#define PFTRACE_NOTES_MAX      6u

/* A value that a slice or an instant shows. */
struct pftrace_note {
    const char *name;
    uint64_t value;
    bool hexadecimal;
};

/* A slice from begin_ps to end_ps, or an instant at begin_ps. */
struct pftrace_event {
    uint64_t track;
    sim_time begin_ps, end_ps;
    bool instant;
    const char *name;
    uint64_t flow; /* events of one number, but 0, are connected */
    const struct pftrace_note *notes;
    unsigned n_notes;
};

/* Each returns the bytes written to `to`; pftrace_event() writes two packets, of an instant one. */
/* A track: number (not 0), that of the one above it (0: none), name; unit: of a counter, NULL for
 * slices. */
size_t pftrace_track(uint8_t *to, uint64_t track, uint64_t parent, const char *name,
                     const char *unit);
size_t pftrace_event(uint8_t *to, const struct pftrace_event *event);
size_t pftrace_counter(uint8_t *to, uint64_t track, sim_time at_ps, double value);

#endif
