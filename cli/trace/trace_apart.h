/* A run that is traced ends in its midst, software and all. */
#ifndef CLI_TRACE_TRACE_APART_H
#define CLI_TRACE_TRACE_APART_H

/* Runs `body`, which prints, in a process of its own, which has nothing that could be left half
 * done. Returns the body's exit status; CLI_FAILED, and says so, if its output could not be written
 * or a signal ended it. */
int trace_apart(int (*body)(const void *arg), const void *arg);

#endif
