/* Strings and numbers of JSON (RFC 8259). */
#include <glib.h>
#include <math.h>

#include "cli/base/json.h"
#include "sim/config/unit.h"

void json_text(FILE *out, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text != NULL ? text : "", -1);
    putc('"', out);
    for (const char *c = valid; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*c);
        else
            putc(*c, out);
    }
    putc('"', out);
}

void json_member(FILE *out, const char *before, const char *name, const char *text)
{
    fprintf(out, "%s\"%s\": ", before, name);
    json_text(out, text);
}

void json_number(FILE *out, double value)
{
    char text[UNIT_TEXT_BYTES];
    fputs(isfinite(value) ? unit_format_double(value, text) : "null", out);
}
