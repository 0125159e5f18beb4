/* gnuplot as a child process: the script in a temporary file, what it prints in memory. */
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/plot/plot_gnuplot.h"

static void in_child(gpointer unused)
{
    (void)unused;
    signal(SIGPIPE, SIG_DFL);
}

static bool report_gnuplot(const GError *error, int status, const char *said)
{
    if (error != NULL && g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
        fprintf(stderr, "gnuplot is not installed, and draws the plots "
                        "(apt-get install gnuplot-nox)\n");
    else if (error != NULL)
        fprintf(stderr, "gnuplot: %s\n", error->message);
    else if (WIFSIGNALED(status))
        fprintf(stderr, "gnuplot was ended by signal %d (%s): %s\n", WTERMSIG(status),
                g_strsignal(WTERMSIG(status)), said);
    else if (!g_spawn_check_wait_status(status, NULL))
        fprintf(stderr, "gnuplot failed: %s\n", said);
    else
        return true;
    return false;
}

char *plot_gnuplot(const char *script)
{
    char *path = NULL, *printed = NULL, *said = NULL;
    GError *error = NULL;
    int status = 0;
    const int fd = g_file_open_tmp("nudma-XXXXXX.gp", &path, &error);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && g_file_set_contents(path, script, -1, &error)) {
        char *argv[] = { (char[]){ "gnuplot" }, path, NULL };
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, in_child, NULL, &printed, &said,
                     &status, &error);
    }
    if (path != NULL)
        unlink(path);
    if (!report_gnuplot(error, status, said != NULL ? said : ""))
        g_clear_pointer(&printed, g_free);
    else if (printed == NULL)
        printed = g_strdup("");
    g_clear_error(&error);
    g_free(said);
    g_free(path);
    return printed;
}
