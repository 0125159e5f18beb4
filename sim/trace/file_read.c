/* Reading whole files. */
#include "sim/trace/file_read.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to `most` bytes and a NUL beyond them into *bytes, g_free(); *bytes is NULL where the reason
 * is returned. */
static const char *read_all(int fd, size_t most, char **bytes, size_t *n_bytes)
{
    char *all = NULL;
    size_t n = 0, room = 0;
    ssize_t more;

    do {
        if (n + 1 >= room) {
            char *larger = g_try_realloc(all, room += room / 2 + (1 << 14));

            if (larger == NULL) {
                g_free(all);
                return g_strerror(ENOMEM);
            }
            all = larger;
        }
        more = read(fd, all + n, room - 1 - n);
        if (more < 0 && errno != EINTR) {
            const char *why = g_strerror(errno);

            g_free(all);
            return why;
        }
        n += more > 0 ? (size_t)more : 0;
    } while (more != 0 && n <= most);
    all[n] = '\0';
    *bytes = all;
    *n_bytes = n;
    return NULL;
}

/* Neither devices nor pipes: they might never end. /dev/null is an empty file. */
static const char *read_regular(int fd, size_t most, char **bytes, size_t *n_bytes)
{
    struct stat status, null;

    if (fd < 0 || fstat(fd, &status) != 0)
        return g_strerror(errno);
    if (S_ISDIR(status.st_mode))
        return g_strerror(EISDIR);
    if (S_ISREG(status.st_mode) || (stat("/dev/null", &null) == 0 && S_ISCHR(status.st_mode) &&
                                    status.st_rdev == null.st_rdev))
        return read_all(fd, most, bytes, n_bytes);
    return "it is no regular file";
}

char *file_read(const char *path, size_t most, size_t *n_bytes, const char **why)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char *bytes = NULL;

    *why = read_regular(fd, most, &bytes, n_bytes);
    if (fd >= 0)
        close(fd);
    return bytes;
}

char *file_read_trace(const char *path, size_t *n_bytes, const char **why)
{
    char *bytes = file_read(path, FILE_READ_MAX_TRACE_BYTES, n_bytes, why);

    if (bytes != NULL && *n_bytes > FILE_READ_MAX_TRACE_BYTES) {
        *why = "it is larger than 1 GiB";
        g_clear_pointer(&bytes, g_free);
    }
    return bytes;
}
