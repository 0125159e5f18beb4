/* Programs that load the memory of a host, and that read what its hardware counts meanwhile. */
#ifndef WORKLOADS_LOAD_LOAD_PROGRAMS_H
#define WORKLOADS_LOAD_LOAD_PROGRAMS_H

#include "workloads/programs/program.h"

extern const struct program_ops program_memory_stream_ops, program_host_counters_ops;

#endif
