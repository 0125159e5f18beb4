/* The program copy_offload, for the list of programs. */
#ifndef WORKLOADS_COPY_COPY_OFFLOAD_H
#define WORKLOADS_COPY_COPY_OFFLOAD_H

#include "workloads/programs/program.h"

extern const struct program_ops program_copy_offload_ops;

#endif
