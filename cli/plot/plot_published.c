/* Which claims stand with a scenario, and the line below its figure that says whether they hold. */
#include "cli/plot/plot_published.h"

#include <math.h>
#include <string.h>

static void choose(struct plot_published *published, const struct scenario *scenario,
                   const struct claims_file *file)
{
    published->file = file;
    for (guint i = 0; file != NULL && i < file->claims->len; i++) {
        struct claim *claim = claims_at(file, i);
        if (g_strcmp0(claim->scenario, scenario_name(scenario)) == 0)
            g_ptr_array_add(published->claims, claim);
    }
}

void plot_published_read(struct plot_published *published, const struct scenario *scenario,
                         const struct cli_options *options, struct results_db *db)
{
    struct sim_error_list errors = { 0 };
    g_autofree char *folder = g_path_get_dirname(scenario_name(scenario));
    g_autofree char *name = g_build_filename(folder, CLAIMS_FILE, NULL);
    g_autofree char *path = cli_find_file(options, name);
    char *arguments[] = { path, NULL };
    *published = (struct plot_published){ .claims = g_ptr_array_new() };
    if (path == NULL)
        return;
    published->files = claims_load(options, arguments, &errors);
    if (errors.n_messages == 0)
        claims_evaluate(published->files, scenario_name(scenario), db, &errors);
    if (errors.n_messages == 0 && published->files->len == 1)
        choose(published, scenario, published->files->pdata[0]);
    sim_error_release(&errors);
}

void plot_published_of(struct plot_published *published, const struct scenario *scenario,
                       const struct claims_file *file)
{
    *published = (struct plot_published){ .claims = g_ptr_array_new() };
    choose(published, scenario, file);
}

void plot_published_release(struct plot_published *published)
{
    g_ptr_array_free(published->claims, TRUE);
    if (published->files != NULL)
        g_ptr_array_free(published->files, TRUE);
}

#define MORE_DIGITS 6 /* a difference that is smaller stays unseen */

/* ---- The line below the figure --------------------------------------------------------------- */

/* Three digits and `more`, or four, or all those before the point. */
static void append_number(GString *text, double value, int more)
{
    const double size = fabs(value);
    if (size >= 1e4 && size < 1e9)
        g_string_append_printf(text, "%.*f", more, value);
    else
        g_string_append_printf(text, "%.*g", (size >= 100.0 ? 4 : 3) + more, value);
}

static double shown(double value, int more)
{
    g_autoptr(GString) text = g_string_new(NULL);
    append_number(text, value, more);
    return g_ascii_strtod(text->str, NULL);
}

/* How many more digits it takes to see that a value lies outside its range. */
static int digits_to_miss(const struct claim *claim)
{
    int more = 0;
    while (more < MORE_DIGITS && !claim_holds(claim) &&
           shown(claim->value, more) >= shown(claim->lo, more) &&
           shown(claim->value, more) <= shown(claim->hi, more))
        more++;
    return more;
}

/* "fig06.ratio 1.3, published 1.25 (1.2 to 1.3)": the folder of the scenario says the paper. */
static char *claim_text(const struct claim *claim)
{
    const char *dot = strchr(claim->id, '.');
    GString *text = g_string_new(dot != NULL ? dot + 1 : claim->id);
    const int more = digits_to_miss(claim);
    g_string_append_c(text, ' ');
    append_number(text, claim->value, more);
    g_string_append_printf(text, ", published %s (", claim->published);
    append_number(text, claim->lo, more);
    g_string_append(text, " to ");
    append_number(text, claim->hi, more);
    g_string_append(text, claim->verdict == CLAIM_MISS         ? "; misses)"
                          : claim->verdict == CLAIM_KNOWN_MISS ? "; misses, known)"
                                                               : ")");
    return g_string_free(text, FALSE);
}

/* Those of which `holds` is true; how many there was no room for. */
static guint append_claims(GString *text, const GPtrArray *claims, bool holds, size_t room)
{
    guint n_left = 0;
    for (guint i = 0; i < claims->len; i++) {
        const struct claim *claim = claims->pdata[i];
        if (isnan(claim->value) || claim_holds(claim) != holds)
            continue;
        g_autofree char *one = claim_text(claim);
        if (n_left > 0 || text->len + strlen(one) + strlen("; 99 more") > room)
            n_left++;
        else
            g_string_append_printf(text, "%s%s", strchr(text->str, ':') != NULL ? "; " : ": ", one);
    }
    return n_left;
}

char *plot_published_text(const struct plot_published *published, size_t room)
{
    const GPtrArray *claims = published->claims;
    GString *text = g_string_new(NULL);
    guint n_hold = 0, n_without = 0;
    for (guint i = 0; i < claims->len; i++) {
        const struct claim *claim = claims->pdata[i];
        n_hold += claim_holds(claim) ? 1 : 0;
        n_without += isnan(claim->value) ? 1 : 0;
    }
    if (claims->len == 0)
        return g_string_free(text, FALSE);
    g_string_append_printf(text, "%u of %u published value%s hold%s", n_hold, claims->len,
                           claims->len > 1 ? "s" : "", claims->len > 1 ? "" : "s");
    if (n_without > 0)
        g_string_append_printf(text, ", %u without results", n_without);
    const guint n_missing = append_claims(text, claims, false, room);
    const guint n_left = n_missing + append_claims(text, claims, true, n_missing > 0 ? 0 : room);
    if (n_left > 0)
        g_string_append_printf(text, "%s%u more", strchr(text->str, ':') != NULL ? "; " : ": ",
                               n_left);
    return g_string_free(text, FALSE);
}

/* ---- The title ------------------------------------------------------------------------------- */

/* "fig06_tcp_rx" -> "figure 6"; NULL if the name does not begin with a place in a paper. */
static char *place_in_paper(const char *name, bool *is_text)
{
    static const char *const prefixes[][2] = { { "fig", "figure" }, { "table", "table" } };
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    *is_text = g_str_has_prefix(base, "text_");
    for (size_t i = 0; i < SIM_N_ELEMENTS(prefixes); i++) {
        const size_t n = strlen(prefixes[i][0]);
        if (strncmp(base, prefixes[i][0], n) == 0 && g_ascii_isdigit(base[n]))
            return g_strdup_printf("%s %" G_GUINT64_FORMAT, prefixes[i][1],
                                   g_ascii_strtoull(base + n, NULL, 10));
    }
    return NULL;
}

char *plot_published_title(const struct plot_published *published, const struct scenario *scenario,
                           const char *title)
{
    bool is_text;
    const char *paper = published->file != NULL ? published->file->paper : "";
    g_autofree char *place = place_in_paper(scenario_name(scenario), &is_text);
    if (*paper == '\0' || (place == NULL && !is_text))
        return g_strdup(title);
    return g_strdup_printf("%s%s%s: %s", paper, place != NULL ? ", " : "",
                           place != NULL ? place : "", title);
}
