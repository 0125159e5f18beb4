/* A program as a child process: its script in a temporary file without a name, what it prints in
 * memory. */
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

int script_file(char **path, char **message)
{
    g_autofree char *name = NULL;
    g_autoptr(GError) error = NULL;
    const int fd = g_file_open_tmp("nudma-XXXXXX", &name, &error);
    *path = *message = NULL;
    if (fd < 0) {
        *message = g_strdup(error->message);
        return fd;
    }
    unlink(name);
    *path = g_strdup_printf("/proc/%d/fd/%d", (int)getpid(), fd);
    return fd;
}

static bool write_all(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        const ssize_t written = write(fd, text, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        n -= (size_t)written;
    }
    return true;
}

/* What `name` prints, called with `option` (NULL: without) and the path of a file of the script. */
static char *run(char *name, char *option, const char *purpose, const char *package,
                 const char *script)
{
    g_autofree char *path = NULL, *said = NULL, *message = NULL;
    char *printed = NULL;
    GError *error = NULL;
    int status = 0;
    const int fd = script_file(&path, &message);
    if (fd < 0 || !write_all(fd, script)) {
        fprintf(stderr, "%s: its script cannot be written: %s (TMPDIR names another folder)\n",
                name, message != NULL ? message : g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    char *argv[] = { name, option != NULL ? option : path, option != NULL ? path : NULL, NULL };
    g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, in_child, NULL, &printed, &said, &status,
                 &error);
    close(fd);
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
