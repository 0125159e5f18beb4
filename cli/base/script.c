/* A program as a child process: its script in a temporary file, what it prints in memory. */
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/script.h"

static void in_child(gpointer unused)
{
    (void)unused;
    signal(SIGPIPE, SIG_DFL);
}

static bool succeeded(const char *name, const char *purpose, const char *package,
                      const GError *error, int status, const char *said)
{
    if (error != NULL && g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
        fprintf(stderr, "%s is not installed, and draws the %s (apt-get install %s)\n", name,
                purpose, package);
    else if (error != NULL)
        fprintf(stderr, "%s: %s\n", name, error->message);
    else if (WIFSIGNALED(status))
        fprintf(stderr, "%s was ended by signal %d (%s): %s\n", name, WTERMSIG(status),
                g_strsignal(WTERMSIG(status)), said);
    else if (!g_spawn_check_wait_status(status, NULL))
        fprintf(stderr, "%s failed: %s\n", name, said);
    else
        return true;
    return false;
}

/* What `name` prints, called with `option` (NULL: without) and the path of a file of the script. */
static char *run(char *name, char *option, const char *purpose, const char *package,
                 const char *script)
{
    g_autofree char *path = NULL;
    char *printed = NULL;
    g_autofree char *said = NULL;
    GError *error = NULL;
    int status = 0;
    const int fd = g_file_open_tmp("nudma-XXXXXX.txt", &path, &error);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && g_file_set_contents(path, script, -1, &error)) {
        char *argv[] = { name, option != NULL ? option : path, option != NULL ? path : NULL, NULL };
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, in_child, NULL, &printed, &said,
                     &status, &error);
    }
    if (path != NULL)
        unlink(path);
    if (!succeeded(name, purpose, package, error, status, said != NULL ? said : ""))
        g_clear_pointer(&printed, g_free);
    else if (printed == NULL)
        printed = g_strdup("");
    g_clear_error(&error);
    return printed;
}

char *script_gnuplot(const char *script)
{
    return run((char[]){ "gnuplot" }, NULL, "plots", "gnuplot-nox", script);
}

char *script_dot(const char *graph)
{
    return run((char[]){ "dot" }, (char[]){ "-Tsvg" }, "topologies", "graphviz", graph);
}
