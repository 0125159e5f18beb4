/* Pieces of HTML and SVG. */
#ifndef CLI_BASE_HTML_H
#define CLI_BASE_HTML_H

#include <glib.h>

/* Text with what is special in it escaped; fit for attributes in double quotes, too. */
void html_text(GString *out, const char *text);
/* Literal words and texts in turn: "<td>", TEXT, "</td>", NULL; every second one is escaped. */
void html_add(GString *out, ...) G_GNUC_NULL_TERMINATED;
/* An id: letters, digits and dashes only. */
void html_id(GString *out, const char *text);

#endif
