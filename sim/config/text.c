/* Reading text, and what is no text. */
#include "sim/config/text.h"

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

static char *read_up_to(const char *path, size_t most, size_t *n_bytes, const char **why)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char *bytes = NULL;

    *why = read_regular(fd, most, &bytes, n_bytes);
    if (fd >= 0)
        close(fd);
    return bytes;
}

char *text_read(const char *path, const char **why)
{
    size_t n_bytes = 0;
    char *text = read_up_to(path, TEXT_MAX_BYTES, &n_bytes, why);

    if (text != NULL && n_bytes > TEXT_MAX_BYTES)
        *why = "it is larger than 16 MiB";
    else if (text != NULL && strlen(text) != n_bytes)
        *why = "it is not a text file";
    if (*why != NULL)
        g_clear_pointer(&text, g_free);
    return text;
}

char *text_read_trace(const char *path, size_t *n_bytes, const char **why)
{
    char *bytes = read_up_to(path, TEXT_MAX_TRACE_BYTES, n_bytes, why);

    if (bytes != NULL && *n_bytes > TEXT_MAX_TRACE_BYTES) {
        *why = "it is larger than 1 GiB";
        g_clear_pointer(&bytes, g_free);
    }
    return bytes;
}

bool text_check(const char *text, const char *file, struct sim_error_list *errors)
{
    const char *end = text, *line_begin = text;
    int line = 1;

    if (g_utf8_validate(text, -1, &end))
        return true;
    for (const char *p = text; p < end; p++) {
        if (*p == '\n') {
            line++;
            line_begin = p + 1;
        }
    }
    sim_error_add(errors, file, line,
                  "column %ld: found the byte 0x%02x, expected text in UTF-8 (iconv converts it)",
                  g_utf8_strlen(line_begin, end - line_begin) + 1, (unsigned char)*end);
    return false;
}

char *text_fault(const char *string)
{
    const char *end = string;

    if (!g_utf8_validate(string, -1, &end))
        return g_strdup_printf("the byte 0x%02x, which is no UTF-8", (unsigned char)*end);
    for (const char *p = string; *p; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);

        if (g_unichar_iscntrl(c) && c != '\n' && c != '\t')
            return g_strdup_printf("the control character U+%04X", c);
    }
    return NULL;
}
