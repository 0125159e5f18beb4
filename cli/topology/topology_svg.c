/* The picture of a topology: what Graphviz's dot draws, made fit to stand in a page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/html.h"
#include "cli/base/script.h"
#include "cli/topology/topology.h"

/* Cuts out all matches. */
static char *without(char *text, const char *pattern)
{
    GRegex *regex = g_regex_new(pattern, G_REGEX_DOTALL, 0, NULL);
    char *rest = g_regex_replace_literal(regex, text, -1, 0, "", 0, NULL);
    g_regex_unref(regex);
    g_free(text);
    return rest;
}

/* Without what a page must not have twice (ids), what browsers show as hints (titles of nodes) and
 * what stands before the element. dot's own first tag says the size in points. */
char *topology_svg(const struct topology *t, const char *id)
{
    g_autofree char *graph = topology_dot(t, "Topology");
    g_autofree char *svg = script_dot(graph);
    if (svg == NULL)
        return NULL;
    svg = without(svg, "^.*(?=<svg)|<!--.*?-->\n|<title>.*?</title>\n?| id=\"[^\"]*\"");
    const char *size = strstr(svg, "width=\""), *box = strstr(svg, "viewBox=\"");
    const char *inside = strchr(svg, '>');
    if (size == NULL || box == NULL || inside == NULL) {
        fprintf(stderr, "dot: no picture: %.80s\n", svg);
        return NULL;
    }
    GString *out = g_string_new(NULL);
    g_autofree char *sentence = topology_sentence(t);
    g_string_append_printf(out,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" "
                           "style=\"min-width:%dpt\" %.*s role=\"img\" "
                           "aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">"
                           "Topology</title>\n<desc id=\"%s-desc\">",
                           atoi(size + strlen("width=\"")) * 3 / 5,
                           (int)(strchr(box + strlen("viewBox=\""), '"') + 1 - size), size, id, id,
                           id, id);
    html_text(out, sentence);
    g_string_append_printf(out, "</desc>%s", inside + 1);
    return g_string_free(out, FALSE);
}
