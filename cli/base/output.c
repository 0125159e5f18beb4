/* Files that are there whole or not at all: written beside, then given their name. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "cli/base/cli.h"

struct cli_output {
    FILE *file;
    char *path, *new_path; /* new_path NULL: written in place, a device or a pipe */
};

struct cli_output *cli_output_new(const char *path)
{
    const bool in_place = g_file_test(path, G_FILE_TEST_EXISTS) &&
                          !g_file_test(path, G_FILE_TEST_IS_REGULAR);
    char *real = realpath(path, NULL); /* a link stays one */
    char *target = g_strdup(real != NULL ? real : path);
    char *new_path = in_place ? NULL : g_strconcat(target, ".new", NULL);
    FILE *file = fopen(in_place ? path : new_path, "w");
    free(real);
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, g_strerror(errno));
        g_free(new_path);
        g_free(target);
        return NULL;
    }
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
        fprintf(stderr, "%s: %s\n", output->path, g_strerror(error != 0 ? error : EIO));
    }
    if ((!good || !keep) && output->new_path != NULL)
        g_unlink(output->new_path);
    g_free(output->new_path);
    g_free(output->path);
    g_free(output);
    return good;
}
