/* Escaping; what is no UTF-8 is replaced. */
#include <stdarg.h>
#include <stdbool.h>

#include "cli/base/html.h"

void html_text(GString *out, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    for (const char *c = valid; *c != '\0'; c++) {
        switch (*c) {
        case '&': g_string_append(out, "&amp;"); break;
        case '<': g_string_append(out, "&lt;"); break;
        case '>': g_string_append(out, "&gt;"); break;
        case '"': g_string_append(out, "&quot;"); break;
        case '\'': g_string_append(out, "&#39;"); break;
        default: g_string_append_c(out, (unsigned char)*c < ' ' ? ' ' : *c);
        }
    }
}

void html_add(GString *out, ...)
{
    va_list words;
    bool literal = true;
    va_start(words, out);
    for (const char *word; (word = va_arg(words, const char *)) != NULL; literal = !literal) {
        if (literal)
            g_string_append(out, word);
        else
            html_text(out, word);
    }
    va_end(words);
}

void html_id(GString *out, const char *text)
{
    for (; *text != '\0'; text++)
        g_string_append_c(out, g_ascii_isalnum(*text) ? *text : '-');
}
