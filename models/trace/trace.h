/* What the traces of a run have in common. */
#ifndef MODELS_TRACE_TRACE_H
#define MODELS_TRACE_TRACE_H

#include "sim/trace/trace_file.h"

/* When to record, in simulated time, and how much. */
struct trace_window {
    sim_time from_ps,
        until_ps;         /* both included; may be set during the run, to a later time than now */
    uint64_t limit_bytes; /* of each file */
    bool ring;            /* at the limit the oldest records make room */
    struct trace_watch watch;
};

#endif
