/* Fields of CSV. */
#include <string.h>

#include "cli/base/csv.h"
#include "sim/config/unit.h"

void csv_text(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

void csv_number(FILE *out, double value)
{
    char text[UNIT_TEXT_BYTES];
    fputs(unit_format_double(value, text), out);
}
