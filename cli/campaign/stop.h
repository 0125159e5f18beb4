/*
 * Ctrl-C and its like while runs go on: they wait in a descriptor until the command has taken down
 * its workers and said what is kept.
 */
#ifndef CLI_CAMPAIGN_STOP_H
#define CLI_CAMPAIGN_STOP_H

#include <signal.h>
#include <stdbool.h>

/* What ends a command; not what nohup or a shell's background job has set to be ignored. */
sigset_t stop_signals(void);

struct stop {
    sigset_t before;
    int fd; /* for worker_wait(); -1: signals end the process */
};

void stop_begin(struct stop *stop);
/* Whether one has come, at the descriptor of a struct stop, or -1. */
bool stop_has_come(int fd);
/* Takes what has come, and lets signals in again. */
void stop_end(struct stop *stop);

#endif
