/* The memory of this machine. */
#ifndef CLI_BASE_MEMORY_H
#define CLI_BASE_MEMORY_H

#include <sys/types.h>

#include "sim/engine/types.h"

/* What processes could still take without paging: of the machine, or of the control group that this
 * process is in if that is less. UINT64_MAX if neither says. */
uint64_t memory_free_bytes(void);
/* What a process holds now; 0 if it has ended. */
uint64_t memory_resident_bytes(pid_t pid);

#endif
