/* nudma report: one page with everything, for readers without nudma, a network or a mouse. */
#include <errno.h>
#include <string.h>

#include "cli/report/report.h"
#include "cli/results/result_set.h"
#include "sim/store/version.h"

/* ---- Pieces ---------------------------------------------------------------------------------- */

void report_wide(GString *html, const char *label)
{
    html_add(html, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"", label,
             "\">\n", NULL);
}

unsigned report_n_points(struct report *report, const struct scenario *scenario)
{
    struct results_cursor *points = results_points(report->db, scenario_name(scenario));
    unsigned n = 0;
    while (results_next_name(points) != NULL)
        n++;
    cli_end(points);
    return n;
}

/* ---- Papers ---------------------------------------------------------------------------------- */

static void free_paper(gpointer pointer)
{
    struct report_paper *paper = pointer;
    g_free(paper->name);
    g_ptr_array_free(paper->scenarios, TRUE);
    g_free(paper);
}

static struct report_paper *paper_of(struct report *report, const char *name)
{
    for (guint i = 0; i < report->papers->len; i++) {
        struct report_paper *paper = report->papers->pdata[i];
        if (strcmp(paper->name, name) == 0)
            return paper;
    }
    struct report_paper *paper = g_new0(struct report_paper, 1);
    paper->name = g_strdup(name);
    paper->scenarios = g_ptr_array_new();
    for (guint i = 0; i < report->claims->len; i++) {
        const struct claims_file *file = report->claims->pdata[i];
        if (strcmp(file->name, name) == 0)
            paper->claims = file;
    }
    g_ptr_array_add(report->papers, paper);
    return paper;
}

/* Papers with claims first, then examples and what else there is. */
static int by_claims(gconstpointer a, gconstpointer b)
{
    const struct report_paper *x = *(const struct report_paper *const *)a;
    const struct report_paper *y = *(const struct report_paper *const *)b;
    const int order = (x->claims == NULL) - (y->claims == NULL);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static void sort_into_papers(struct report *report)
{
    for (guint i = 0; i < report->scenarios->len; i++) {
        struct scenario *scenario = report->scenarios->pdata[i];
        g_autofree char *folder = g_path_get_dirname(scenario_name(scenario));
        const bool nowhere = strcmp(folder, ".") == 0;
        struct report_paper *paper = paper_of(report, nowhere ? "other scenarios" : folder);
        g_ptr_array_add(paper->scenarios, scenario);
        paper->n_points += report_n_points(report, scenario);
    }
    g_ptr_array_sort(report->papers, by_claims);
}

/* That of its claims, or the folder's name: "Other scenarios"; g_free(). */
static char *paper_title(const struct report_paper *paper)
{
    if (paper->claims != NULL && *paper->claims->title != '\0')
        return g_strdup(paper->claims->title);
    char *title = g_strdup(paper->name);
    *title = g_ascii_toupper(*title);
    return title;
}

static char *paper_anchor(const struct report_paper *paper)
{
    GString *id = g_string_new("paper-");
    html_id(id, paper->name);
    return g_string_free(id, FALSE);
}

/* ---- Head, contents, summary ----------------------------------------------------------------- */

static void append_contents(struct report *report)
{
    GString *html = report->html;
    g_string_append(html, "<nav aria-label=\"Contents\">\n<ul>\n"
                          "<li><a href=\"#summary\">Summary</a></li>\n");
    for (guint i = 0; i < report->papers->len; i++) {
        const struct report_paper *paper = report->papers->pdata[i];
        g_autofree char *id = paper_anchor(paper);
        g_autofree char *paper_name = paper_title(paper);
        html_add(html, "<li><a href=\"#", id, "\">", paper_name, "</a>\n<ul>\n", NULL);
        for (guint k = 0; k < paper->scenarios->len; k++) {
            const struct scenario *scenario = paper->scenarios->pdata[k];
            g_autofree char *figure = report_scenario_anchor(scenario);
            g_autofree char *title = report_scenario_title(paper, scenario);
            html_add(html, "<li><a href=\"#", figure, "\">", title, "</a></li>\n", NULL);
        }
        g_string_append(html, "</ul></li>\n");
    }
    g_string_append(html, "<li><a href=\"#versions\">Versions</a></li>\n</ul>\n</nav>\n");
}

/* "73 of 80", "-" if there are none */
static void append_share(GString *html, unsigned n, unsigned total)
{
    if (total > 0)
        g_string_append_printf(html, "<td class=\"n\">%u of %u</td>", n, total);
    else
        g_string_append(html, "<td class=\"n\">-</td>");
}

static void append_paper_row(GString *html, const struct report_paper *paper)
{
    struct claims_tally tally = { 0 };
    g_autofree char *id = paper_anchor(paper);
    if (paper->claims != NULL)
        claims_count(paper->claims, &tally);
    html_add(html, "<tr><th scope=\"row\"><a href=\"#", id, "\">", paper->name, "</a></th>", NULL);
    append_share(html, tally.baselines_hold, tally.n_baselines);
    append_share(html, tally.predictions_hold, tally.n_predictions);
    g_string_append_printf(html,
                           "<td class=\"n\">%u</td><td class=\"n\">%u</td>"
                           "<td class=\"n\">%u</td></tr>\n",
                           tally.n[CLAIM_KNOWN_MISS], tally.n[CLAIM_MISS],
                           tally.n[CLAIM_NO_DATA] + tally.n[CLAIM_NO_SCENARIO]);
}

/* What a reader looks for first. */
static void append_misses(GString *html, const struct report *report)
{
    unsigned n = 0;
    for (guint i = 0; i < report->papers->len; i++) {
        const struct claims_file *file = ((struct report_paper *)report->papers->pdata[i])->claims;
        for (guint k = 0; file != NULL && k < file->claims->len; k++) {
            const struct claim *claim = claims_at(file, k);
            char error[32], *id = report_claim_anchor(claim);
            if (claim->verdict == CLAIM_MISS || claim->verdict == CLAIM_KNOWN_MISS) {
                g_string_append(html, n++ == 0 ? "<h3>What misses</h3>\n<ul>\n" : "");
                const char *by = claim_error_text(claim, error);
                char value[32];
                html_add(html, "<li><a href=\"#", id, "\">", claim->id,
                         "</a>: ", cli_number(claim->value, value), ", published ",
                         claim->published, "", strcmp(by, "-") != 0 ? " (" : "", "",
                         strcmp(by, "-") != 0 ? by : "", "", strcmp(by, "-") != 0 ? " %), " : ", ",
                         "", claim_verdict_name(claim->verdict), "</li>\n", NULL);
            }
            g_free(id);
        }
    }
    g_string_append(html, n > 0 ? "</ul>\n" : "");
}

static void append_summary(struct report *report)
{
    GString *html = report->html;
    struct claims_tally all = { 0 };
    for (guint i = 0; i < report->papers->len; i++) {
        const struct report_paper *paper = report->papers->pdata[i];
        if (paper->claims != NULL)
            claims_count(paper->claims, &all);
    }
    g_autofree char *summary = claims_summary(&all), *kinds = claims_kinds_summary(&all);
    html_add(html, "<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">Summary</h2>\n<p>",
             claims_total(&all) > 0 ? summary : "None of these scenarios has claims",
             *kinds != '\0' ? ". By kind: " : "", kinds,
             ".</p>\n<p class=\"meta\">C: baselines, which parameters may be calibrated "
             "on. K: outcomes that have to come out by themselves. A known miss does not "
             "hold either; the reason stands beside it. Of the four kinds only predicted "
             "outcomes are evidence.</p>\n",
             NULL);
    report_wide(html, "Claims by paper");
    g_string_append(html, "<table><thead><tr><th scope=\"col\">paper</th>"
                          "<th scope=\"col\" class=\"n\">C hold</th>"
                          "<th scope=\"col\" class=\"n\">K hold</th>"
                          "<th scope=\"col\" class=\"n\">known misses</th>"
                          "<th scope=\"col\" class=\"n\">other misses</th>"
                          "<th scope=\"col\" class=\"n\">no data</th></tr></thead>"
                          "<tbody>\n");
    for (guint i = 0; i < report->papers->len; i++)
        append_paper_row(html, report->papers->pdata[i]);
    g_string_append(html, "</tbody></table></div>\n");
    append_misses(html, report);
    g_string_append(html, "</section>\n");
}

static void append_head(struct report *report)
{
    GString *html = report->html;
    g_string_append(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                          "<meta name=\"viewport\" content=\"width=device-width, "
                          "initial-scale=1\"/>\n<title>nudma report</title>\n"
                          "<link rel=\"icon\" href=\"data:,\"/>\n<style>\n");
    g_string_append(html, report_style);
    g_string_append(html, "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the "
                          "results</a>\n<header>\n<h1>nudma report</h1>\n");
    html_add(html,
             "<p class=\"meta\">Simulated DMA across sockets, hosts and copy engines beside "
             "what was published. nudma ",
             sim_version(), "</p>\n</header>\n", NULL);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void append_paper(struct report *report, const struct report_paper *paper)
{
    GString *html = report->html;
    g_autofree char *id = paper_anchor(paper);
    g_autofree char *title = paper_title(paper);
    html_add(html, "<section aria-labelledby=\"", id, "\">\n<h2 id=\"", id, "\">", title, "</h2>\n",
             NULL);
    if (paper->claims != NULL && paper->claims->claims->len > 0) {
        struct claims_tally tally = { 0 };
        claims_count(paper->claims, &tally);
        g_autofree char *summary = claims_summary(&tally);
        html_add(html, "<p>", summary, ".</p>\n", NULL);
    }
    report_setup(report, paper);
    for (guint i = 0; i < paper->scenarios->len; i++)
        report_scenario(report, paper, paper->scenarios->pdata[i]);
    report_other_claims(report, paper);
    if (paper->n_points > 0)
        report_params(report, paper);
    g_string_append(html, "</section>\n");
}

static void write_page(struct report *report)
{
    append_head(report);
    append_contents(report);
    g_string_append(report->html, "<main id=\"main\" tabindex=\"-1\">\n");
    append_summary(report);
    for (guint i = 0; i < report->papers->len; i++)
        append_paper(report, report->papers->pdata[i]);
    report_versions(report);
    g_string_append_printf(report->html, "</main>\n<script>%s</script>\n</body>\n</html>\n",
                           report_script);
}

static int save(const struct report *report, const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    if (g_mkdir_with_parents(folder, 0777) != 0) {
        fprintf(stderr, "%s: %s (--output FILE writes elsewhere)\n", folder, g_strerror(errno));
        return CLI_FAILED;
    }
    struct cli_output *output = cli_output_new(path);
    if (output == NULL)
        return CLI_FAILED;
    fwrite(report->html->str, 1, report->html->len, cli_output_file(output));
    if (!cli_output_end(output, true))
        return CLI_FAILED;
    if (strcmp(path, "-") != 0)
        printf("%s\n", path);
    return CLI_DONE;
}

/* all: a page of everything lacks what is broken; one of what was named is not written then. */
static int make_report(struct report *report, bool all, const char *path)
{
    sort_into_papers(report);
    claims_evaluate(report->claims, NULL, report->db, &report->errors);
    if (results_failed(report->db))
        return CLI_FAILED;
    if (report->errors.n_messages > 0)
        return CLI_WRONG;
    write_page(report);
    const bool broken = report->errors.n_messages > 0;
    if (broken && !all)
        return CLI_WRONG;
    if (results_failed(report->db))
        return CLI_FAILED;
    const int status = save(report, path);
    return broken || report->drawing_failed || report->topology_failed ? CLI_FAILED : status;
}

/* The file that a scenario outside of the scenarios folders was run from; NULL: none is known that
 * is still there. g_free() */
static char *own_file(const struct report *report, const char *name)
{
    struct results_cursor *cursor = results_noted(report->db, name, RESULT_NOTE_FILE);
    char *found = NULL;
    for (const char *file; (file = results_next_name(cursor)) != NULL;)
        if (found == NULL && g_file_test(file, G_FILE_TEST_IS_REGULAR))
            found = g_strdup(file);
    cli_end(cursor);
    return found;
}

static bool has_scenario(const struct report *report, const char *name)
{
    for (guint i = 0; i < report->scenarios->len; i++)
        if (strcmp(scenario_name(report->scenarios->pdata[i]), name) == 0)
            return true;
    return false;
}

/* Scenarios of one's own are below no folder that could be searched: the database knows them. */
static void add_own(struct report *report, unsigned *n_broken)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    struct results_cursor *cursor = results_scenarios(report->db);
    for (const char *name; (name = results_next_name(cursor)) != NULL;)
        if (!has_scenario(report, name))
            g_ptr_array_add(names, g_strdup(name));
    cli_end(cursor);
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        g_autofree char *file = own_file(report, name);
        if (file == NULL)
            fprintf(stderr,
                    "%s: left out, its file is not found (nudma report SCENARIO... names files)\n",
                    name);
        else
            cli_add_sound_scenario(report->options, report->scenarios, file, n_broken,
                                   &report->errors);
    }
}

static int report_scenarios(const struct cli_options *options, const char *path)
{
    static char *const none[] = { NULL };
    struct report report = { .options = options };
    const bool all = *options->arguments == NULL;
    unsigned n_broken = 0;
    report.scenarios = all ? cli_load_sound_scenarios(options, &n_broken, &report.errors)
                           : cli_load_scenarios(options, options->arguments, NULL, &report.errors);
    report.claims = claims_load(options, (char **)(uintptr_t)none, &report.errors);
    report.papers = g_ptr_array_new_with_free_func(free_paper);
    report.html = g_string_new(NULL);
    int status = CLI_WRONG;
    if (report.errors.n_messages == 0) {
        report.db = cli_open_for_reading(options);
        if (all && report.db != NULL)
            add_own(&report, &n_broken);
        status = report.db != NULL ? make_report(&report, all, path) : CLI_FAILED;
    }
    if (n_broken > 0 && status == CLI_DONE)
        status = CLI_FAILED;
    cli_report(&report.errors);
    results_close(report.db);
    g_string_free(report.html, TRUE);
    g_ptr_array_free(report.papers, TRUE);
    g_ptr_array_free(report.claims, TRUE);
    g_ptr_array_free(report.scenarios, TRUE);
    return status;
}

int cli_report_page(int argc, char **argv)
{
    struct cli_options options = { 0 };
    g_autofree char *path = NULL;
    const GOptionEntry entries[] = {
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &path,
          "Write the page to FILE (default results/report.html)", "FILE" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&options, "[SCENARIO...]",
                  "Writes one self-contained HTML page: per paper the set-up, every figure with "
                  "its claims and where\nthe time goes, parameters with provenance, versions.",
                  "Without SCENARIO: all that there are. It shows what the database has and runs "
                  "nothing:\nnudma figures runs what is missing.",
                  entries, argc, argv, &status))
        status = cli_writes_elsewhere(path, &options, NULL)
                     ? report_scenarios(&options, path != NULL ? path : "results/report.html")
                     : CLI_WRONG;
    cli_options_release(&options);
    return status;
}
