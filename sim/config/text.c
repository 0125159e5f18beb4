/* Reading text, and what is no text. */
#include "sim/config/text.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *read_all(int fd, GString *text)
{
    char block[1 << 14];
    ssize_t n = 0;

    while (text->len <= TEXT_MAX_BYTES && (n = read(fd, block, sizeof(block))) != 0) {
        if (n > 0)
            g_string_append_len(text, block, n);
        else if (errno != EINTR)
            return g_strerror(errno);
    }
    if (text->len > TEXT_MAX_BYTES)
        return "it is larger than 16 MiB";
    return memchr(text->str, '\0', text->len) ? "it is not a text file" : NULL;
}

char *text_read(const char *path, const char **why)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    GString *text = g_string_new(NULL);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        *why = g_strerror(errno);
    else if (S_ISDIR(status.st_mode))
        *why = g_strerror(EISDIR);
    else if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) /* /dev/null is an empty file */
        *why = "it is no regular file";
    else
        *why = read_all(fd, text);
    if (fd >= 0)
        close(fd);
    return g_string_free(text, *why != NULL);
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
