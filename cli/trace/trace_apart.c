#include "cli/trace/trace_apart.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/cli.h"

int trace_apart(int (*body)(const void *arg), const void *arg)
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody waits for it any more */
        status = body(arg);
        const bool written = fflush(stdout) == 0 || errno == EPIPE; /* | head: no fault */
        if (!written)
            fprintf(stderr, "standard output: %s\n", g_strerror(errno));
        _exit(written ? status : CLI_FAILED);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        fprintf(stderr, "nudma run: %s\n", g_strerror(errno));
        return CLI_FAILED;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "nudma run: the run was ended by signal %d (%s)\n", WTERMSIG(status),
                g_strsignal(WTERMSIG(status)));
        return CLI_FAILED;
    }
    return WEXITSTATUS(status);
}
