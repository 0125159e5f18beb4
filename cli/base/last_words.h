/*
 * What a process says that ends at once: because somebody stops it, or without memory.
 *
 * The end of a process that has no memory left. GLib, which every command is full of, then stops
 * the process by a signal (GLib's manual, "Memory Allocation"), as do libraries that do not look;
 * the engine aborts (sim_out_of_memory()). To a user that is a failure of the system like a full
 * disk: a message, exit status 1, and no file that is half written.
 */
#ifndef CLI_BASE_LAST_WORDS_H
#define CLI_BASE_LAST_WORDS_H

#include <stdbool.h>

/* Once, at the start of the command. Other deaths by a signal are left as they are. */
void last_words_set_up(void);
/* The file is removed if the process ends so: it is not complete. path is kept, and must stay until
 * it is taken back by last_words_keep(). Of more files than there is room for, the last are
 * left. */
void last_words_remove(const char *path);
void last_words_keep(const char *path);
/* From now on SIGINT, SIGTERM and SIGHUP, but those that are ignored, end the process with this
 * line on standard error and CLI_INTERRUPTED; its children end without a word. text is kept, and
 * must stay. NULL: the signals do again what they do by themselves. */
void last_words_if_stopped(const char *text);

#endif
