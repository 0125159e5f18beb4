/* Signals that end a command, by signalfd. */
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/campaign/stop.h"
#include "sim/engine/types.h"

sigset_t stop_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    sigset_t stops;
    sigemptyset(&stops);
    for (size_t i = 0; i < SIM_N_ELEMENTS(signals); i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&stops, signals[i]);
    }
    return stops;
}

void stop_begin(struct stop *stop)
{
    const sigset_t stops = stop_signals();
    sigprocmask(SIG_BLOCK, &stops, &stop->before);
    stop->fd = signalfd(-1, &stops, SFD_CLOEXEC);
    if (stop->fd < 0)
        sigprocmask(SIG_SETMASK, &stop->before, NULL);
}

bool stop_has_come(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    return fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

void stop_end(struct stop *stop)
{
    struct signalfd_siginfo taken;
    while (stop_has_come(stop->fd) && read(stop->fd, &taken, sizeof(taken)) > 0)
        continue;
    if (stop->fd >= 0)
        close(stop->fd);
    sigprocmask(SIG_SETMASK, &stop->before, NULL);
}
