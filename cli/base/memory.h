/* The memory of this machine. */
#ifndef CLI_BASE_MEMORY_H
#define CLI_BASE_MEMORY_H

#include <sys/types.h>

#include "sim/engine/types.h"

/* Memory that processes can still allocate without paging, on the machine or in the control group
 * of this process, whichever is less. UINT64_MAX if neither is known. */
uint64_t memory_free_bytes(void);
/* The resident memory of a process; 0 if it has ended. */
uint64_t memory_resident_bytes(pid_t pid);

#endif
