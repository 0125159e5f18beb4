/* Pieces of HTML and SVG. */
#ifndef CLI_BASE_HTML_H
#define CLI_BASE_HTML_H

#include <glib.h>

/* Appends text with special characters escaped, also for attributes in double quotes. */
void html_text(GString *out, const char *text);
/* Appends markup and texts in turn, "<td>", TEXT, "</td>", NULL; the texts are escaped. */
void html_add(GString *out, ...) G_GNUC_NULL_TERMINATED;
/* Appends text as an id: other characters than letters and digits become dashes. */
void html_id(GString *out, const char *text);

#endif
