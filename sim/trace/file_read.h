/* Whole files in memory, for all that reads texts and what other programs have recorded. */
#ifndef SIM_TRACE_FILE_READ_H
#define SIM_TRACE_FILE_READ_H

#include <stddef.h>

#define FILE_READ_MAX_TRACE_BYTES (1024U * 1024 * 1024)

/* The bytes of a regular file and a NUL beyond them; g_free(). *n_bytes is more than `most` if the
 * file is larger than that. NULL with the reason in *why, a constant text. Devices and pipes are
 * not opened: they might never end. */
char *file_read(const char *path, size_t most, size_t *n_bytes, const char **why);
/* The same of what other programs have recorded, no larger than FILE_READ_MAX_TRACE_BYTES. */
char *file_read_trace(const char *path, size_t *n_bytes, const char **why);

#endif
