/* Reading text, and what is no text. */
#include "sim/config/text.h"

#include <glib.h>
#include <string.h>

#include "sim/trace/file_read.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

char *text_read(const char *path, const char **why)
{
    size_t n_bytes = 0;
    char *text = file_read(path, TEXT_MAX_BYTES, &n_bytes, why);

    if (text != NULL && n_bytes > TEXT_MAX_BYTES)
        *why = "it is larger than 16 MiB";
    else if (text != NULL && strlen(text) != n_bytes)
        *why = "it is not a text file";
    if (*why != NULL)
        g_clear_pointer(&text, g_free);
    if (text != NULL && g_str_has_prefix(text, BYTE_ORDER_MARK))
        memmove(text, text + strlen(BYTE_ORDER_MARK), n_bytes - strlen(BYTE_ORDER_MARK) + 1);
    return text;
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
