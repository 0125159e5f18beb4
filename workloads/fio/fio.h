/* fio: the program, see docs/fio.md. */
#ifndef WORKLOADS_FIO_FIO_H
#define WORKLOADS_FIO_FIO_H

#include "workloads/programs/program.h"

extern const struct program_ops program_fio_ops;

#endif
