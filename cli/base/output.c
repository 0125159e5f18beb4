/* Files that are there whole or not at all: written beside, then given their name. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/last_words.h"

struct cli_output {
    FILE *file;
    char *path, *new_path; /* new_path NULL: written in place, a device or a pipe */
};

/* The file behind symbolic links, which need not exist; NULL with errno for links in a circle. */
static char *follow_links(const char *path)
{
    g_autofree char *target = g_strdup(path);
    for (int n = 0; n < 40; n++) { /* as many as Linux follows */
        g_autofree char *link = g_file_read_link(target, NULL);
        if (link == NULL)
            return g_steal_pointer(&target);
        g_autofree char *folder = g_path_get_dirname(target);
        g_free(target);
        target = g_path_is_absolute(link) ? g_strdup(link) : g_build_filename(folder, link, NULL);
    }
    errno = ELOOP;
    return NULL;
}

/* A new file in the folder of `target`, of a name that nobody can have prepared. -1 with errno. */
static int open_beside(const char *target, char **name)
{
    g_autofree char *folder = g_path_get_dirname(target);
    int fd = -1;
    for (int n = 0; n < 100 && (n == 0 || (fd < 0 && errno == EEXIST)); n++) {
        g_free(*name);
        *name = g_strdup_printf("%s/.nudma-%08x", folder, g_random_int());
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return fd;
}

/* An older file that may not be written is not replaced either, and hands on who may read it. */
static int open_new(const char *target, char **name)
{
    struct stat old;
    const bool replaces = stat(target, &old) == 0;
    if (replaces && access(target, W_OK) != 0)
        return -1;
    const int fd = open_beside(target, name);
    if (fd >= 0 && replaces)
        (void)!fchmod(fd, old.st_mode & 0777); /* or it is as a new one */
    return fd;
}

/* A copy, so that the end of the output is none of the command's. */
static int open_standard_output(void)
{
    return fflush(stdout) == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
}

struct cli_output *cli_output_new(const char *path)
{
    const bool to_stdout = strcmp(path, "-") == 0;
    const bool in_place = g_file_test(path, G_FILE_TEST_EXISTS) &&
                          !g_file_test(path, G_FILE_TEST_IS_REGULAR);
    char *target = follow_links(path); /* a link stays one */
    char *new_path = NULL;
    int fd = -1;
    if (to_stdout)
        fd = open_standard_output();
    else if (target != NULL)
        fd = in_place ? open(path, O_WRONLY | O_TRUNC | O_CLOEXEC) : open_new(target, &new_path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, g_strerror(errno));
        if (fd >= 0)
            close(fd);
        if (fd >= 0 && new_path != NULL)
            g_unlink(new_path);
        g_free(new_path);
        g_free(target);
        return NULL;
    }
    if (new_path != NULL)
        last_words_remove(new_path);
    struct cli_output *output = g_new0(struct cli_output, 1);
    *output = (struct cli_output){ .file = file, .path = target, .new_path = new_path };
    return output;
}

FILE *cli_output_file(struct cli_output *output)
{
    return output->file;
}

bool cli_output_end(struct cli_output *output, bool keep)
{
    errno = 0;
    const bool written = fflush(output->file) == 0 && !ferror(output->file);
    int error = errno;
    bool good = fclose(output->file) == 0 && written;
    if (good && keep && output->new_path != NULL)
        good = g_rename(output->new_path, output->path) == 0;
    if (!good) {
        error = error != 0 ? error : errno;
        /* without an error: that of an earlier write, which nobody has looked at */
        fprintf(stderr, "%s: %s\n", output->path,
                error != 0
                    ? g_strerror(error)
                    : "not all of it can be written (is the disk full, or ulimit -f too low?)");
    }
    if ((!good || !keep) && output->new_path != NULL)
        g_unlink(output->new_path);
    last_words_keep(output->new_path);
    g_free(output->new_path);
    g_free(output->path);
    g_free(output);
    return good;
}
