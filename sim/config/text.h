/* The texts that are read: files of people, and strings in them, in UTF-8. */
#ifndef SIM_CONFIG_TEXT_H
#define SIM_CONFIG_TEXT_H

#include "sim/config/error.h"

#define TEXT_MAX_BYTES (16U * 1024 * 1024)

/* The whole of a regular file, which is no larger than TEXT_MAX_BYTES, without NUL and without the
 * byte order mark that some editors put before UTF-8; g_free(). NULL with the reason in *why, a
 * constant text. Devices and pipes are not opened: they might never end. */
char *text_read(const char *path, const char **why);
/* False with a message, which has line and column (in characters) of the first byte that is no
 * UTF-8. */
bool text_check(const char *text, const char *file, struct sim_error_list *errors);
/* What a string of a setting may not have, as it would be shown: "the byte 0xe9, which is no
 * UTF-8", "the control character U+001B"; g_free(). NULL if it is good. */
char *text_fault(const char *string);

#endif
