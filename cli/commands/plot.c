/* nudma plot, nudma figures. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/base/scenarios.h"
#include "cli/base/script.h"
#include "cli/commands/run.h"
#include "cli/plot/plot_published.h"
#include "cli/plot/plot_script.h"
#include "cli/results/result_older.h"

#define PUBLISHED_LINES 6 /* of text */

static const char *const endings[] = { [PLOT_PNG] = ".png", [PLOT_SVG] = ".svg" };

#define DEFAULT_OUTPUT "results/plots"

struct plot_request {
    const struct cli_options *options;
    const char *folder; /* for files */
    const char *file;   /* for the one picture; NULL: below the folder */
    struct results_db *db;
    unsigned formats; /* bits of enum plot_format */
    bool any_failed;
};

/* A page of text begins with a form feed and blank lines, and its lines are filled with blanks. */
static void print_page(char *page)
{
    g_auto(GStrv) lines = g_strsplit(page + (*page == '\f'), "\n", -1);
    bool begun = false;
    for (char **line = lines; *line != NULL; line++) {
        g_strchomp(*line);
        begun = begun || **line != '\0';
        if (begun && (line[1] != NULL || **line != '\0'))
            puts(*line);
    }
}

/* Runs the script; what it prints goes to our standard output. */
static bool run_gnuplot(const char *script)
{
    g_autofree char *printed = script_gnuplot(script);
    if (printed != NULL)
        print_page(printed);
    return printed != NULL;
}

/* ---- One figure ------------------------------------------------------------------------------ */

static void terminal_size(int *columns, int *rows)
{
    struct winsize size;
    *columns = 80;
    *rows = 24;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        *columns = CLAMP(size.ws_col, 40, 120);
        *rows = size.ws_row >= 20 ? MIN(size.ws_row - 2, 40) : *rows;
    }
}

/* results/plots/pcie_bench/latency_size.png */
static char *file_path(const struct plot_request *request, const struct scenario *scenario,
                       const char *ending)
{
    g_autofree char *name = g_strconcat(scenario_name(scenario), ending, NULL);
    return g_build_filename(request->folder, name, NULL);
}

struct drawing {
    const struct plot_figure *figure;
    const struct plot_published *published;
    struct plot_panel *panels; /* those of the figure's that have something to show */
    guint n_panels;
};

/* gnuplot says nothing, and ends with 0, where its output did not fit on the disk: whether a
 * picture is whole is told by its end. */
static bool is_whole(const char *bytes, size_t n, enum plot_format format)
{
    static const char png_end[] = "IEND\xae\x42\x60\x82", svg_end[] = "</svg>";
    const char *end = format == PLOT_PNG ? png_end : svg_end;
    const size_t n_end = strlen(end);
    while (format == PLOT_SVG && n > 0 && g_ascii_isspace(bytes[n - 1]))
        n--;
    return n >= n_end && memcmp(bytes + n - n_end, end, n_end) == 0;
}

/* Of a panel that stands alone, and is one of several: theirs, and its own. */
static char *panel_title(const struct plot_figure *figure, const struct plot_panel *panel)
{
    const char *own = panel->spec->title;
    g_autofree char *title = figure->panels->len > 1 && *own != '\0'
                                 ? g_strdup_printf("%s: %s", figure->title, own)
                                 : g_strdup(figure->title);
    return plot_title_with_common(title, &panel->data);
}

static char *script_of(const struct drawing *drawing, const struct plot_output *output)
{
    g_autofree char *title = drawing->n_panels == 1 ? panel_title(drawing->figure, drawing->panels)
                                                    : g_strdup(drawing->figure->title);
    return plot_script(title, drawing->panels, drawing->n_panels, output);
}

/* The picture as gnuplot makes it, g_free(); NULL with the reason printed. path: for messages. */
static char *picture_of(const struct drawing *drawing, enum plot_format format, const char *path,
                        size_t *n_bytes)
{
    g_autofree char *temporary = NULL, *message = NULL;
    char *bytes = NULL;
    const int fd = script_file(&temporary, &message);
    if (fd < 0) {
        fprintf(stderr, "%s: %s (TMPDIR names another folder)\n", path, message);
        return NULL;
    }
    g_autofree char *note = plot_published_text(drawing->published,
                                                plot_note_room(drawing->n_panels));
    const struct plot_output output = { .format = format, .path = temporary, .note = note };
    g_autofree char *script = script_of(drawing, &output);
    const bool drawn = run_gnuplot(script);
    if (drawn && (!g_file_get_contents(temporary, &bytes, n_bytes, NULL) ||
                  !is_whole(bytes, *n_bytes, format))) {
        fprintf(
            stderr,
            "%s: gnuplot could not write all of it below %s (is the disk full, or ulimit -f too "
            "low? TMPDIR names another folder)\n",
            path, g_get_tmp_dir());
        g_clear_pointer(&bytes, g_free);
    }
    close(fd);
    return bytes;
}

/* The picture that is there stays until there is a whole new one; folders are made for pictures
 * only. */
static bool draw_whole(const struct drawing *drawing, enum plot_format format, const char *path)
{
    size_t n_bytes = 0;
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *bytes = picture_of(drawing, format, path, &n_bytes);
    if (bytes == NULL)
        return false;
    if (g_mkdir_with_parents(folder, 0777) != 0) {
        fprintf(stderr, "%s: %s (--output DIR writes elsewhere)\n", folder, g_strerror(errno));
        return false;
    }
    struct cli_output *output = cli_output_new(path);
    if (output == NULL)
        return false;
    fwrite(bytes, 1, n_bytes, cli_output_file(output));
    return cli_output_end(output, true);
}

static bool draw_file(const struct plot_request *request, const struct scenario *scenario,
                      const struct drawing *drawing, enum plot_format format)
{
    g_autofree char *path = request->file != NULL ? g_strdup(request->file)
                                                  : file_path(request, scenario, endings[format]);
    const bool drawn = draw_whole(drawing, format, path);
    if (drawn)
        printf("%s\n", path);
    return drawn;
}

/* What stands at the points in pictures: "numbers: read over write (published): 64 1.27 (1.3), 128
 * 1.02". */
static void print_ratios(const struct plot_panel *panel, int columns)
{
    g_autoptr(GString) words = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *numbers = plot_ratio_title(panel);
    for (guint i = 0; numbers != NULL && i < panel->data.curves->len; i++) {
        const struct plot_curve *curve = panel->data.curves->pdata[i];
        for (guint k = 0; k < curve->values->len; k++) {
            const struct plot_value *value = &g_array_index(curve->values, struct plot_value, k);
            char number[32];
            if (value->ratio == 0.0)
                continue;
            g_string_append_printf(
                words, "%s%s %.2f", words->len > 0 ? ", " : "",
                panel->data.categories->len > 0
                    ? (const char *)panel->data.categories->pdata[(guint)value->x]
                    : cli_number(value->x, number),
                value->ratio);
            if (value->published != NULL)
                g_string_append_printf(words, " (%s)", value->published);
        }
    }
    if (numbers == NULL)
        return;
    g_string_append_printf(text, "%s: ", numbers);
    cli_wrap(text, words->str, 2, columns);
    printf("%s\n\n", text->str);
}

/* "half of a 95 % interval, at most: read 1.2, write 0.5 ns": letters have no bars. */
static void print_intervals(const struct plot_panel *panel, int columns)
{
    g_autoptr(GString) words = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new("half of a 95 % interval, at most: ");
    for (guint i = 0; i < panel->data.curves->len; i++) {
        const struct plot_curve *curve = panel->data.curves->pdata[i];
        double most = 0.0;
        for (guint k = 0; k < curve->values->len; k++)
            most = MAX(most, g_array_index(curve->values, struct plot_value, k).ci95);
        if (most > 0.0)
            g_string_append_printf(words, "%s%s %.2g", words->len > 0 ? ", " : "", curve->label,
                                   most);
    }
    if (words->len == 0)
        return;
    if (*panel->data.y_unit != '\0')
        g_string_append_printf(words, " %s", panel->data.y_unit);
    cli_wrap(text, words->str, 2, columns);
    printf("%s\n\n", text->str);
}

static bool draw_panel(const char *title, const struct plot_panel *panel)
{
    struct plot_output output = { .format = PLOT_TEXT };
    terminal_size(&output.columns, &output.rows);
    output.rows += (int)panel->data.curves->len / 4; /* for the legend */
    if (plot_is_distribution(panel->spec)) {
        plot_text_distribution(title, panel, output.columns, stdout);
        return true;
    }
    if (plot_is_bars(panel->spec)) {
        plot_text_bars(title, panel, output.columns, stdout);
        return true;
    }
    g_autofree char *script = plot_script(title, panel, 1, &output);
    const bool drawn = run_gnuplot(script);
    if (drawn) {
        print_ratios(panel, output.columns);
        print_intervals(panel, output.columns);
    }
    return drawn;
}

/* What was published, below all panels. */
static void print_published(const struct drawing *drawing)
{
    struct plot_output output = { .format = PLOT_TEXT };
    terminal_size(&output.columns, &output.rows);
    g_autofree char *text = plot_published_text(drawing->published,
                                                (size_t)output.columns * PUBLISHED_LINES);
    g_autoptr(GString) lines = g_string_new(NULL);
    if (*text == '\0')
        return;
    cli_wrap(lines, text, 2, output.columns);
    printf("%s\n\n", lines->str);
}

/* Panels one below the other, the title of the figure with the first. */
static bool draw_text(const struct drawing *drawing)
{
    const struct plot_figure *figure = drawing->figure;
    bool drawn = true;
    for (guint i = 0; drawn && i < drawing->n_panels; i++) {
        g_autofree char *title = panel_title(figure, &drawing->panels[i]);
        drawn = draw_panel(title, &drawing->panels[i]);
    }
    if (drawn)
        print_published(drawing);
    return drawn;
}

static bool draw(const struct plot_request *request, const struct scenario *scenario,
                 const struct drawing *drawing)
{
    g_autofree char *note = plot_published_text(drawing->published,
                                                plot_note_room(drawing->n_panels));
    const struct plot_output as_script = { .format = PLOT_GNUPLOT, .note = note };
    bool drawn = true;
    if ((request->formats & 1u << PLOT_GNUPLOT) != 0) {
        g_autofree char *script = script_of(drawing, &as_script);
        fputs(script, stdout);
    }
    if ((request->formats & 1u << PLOT_TEXT) != 0)
        drawn = draw_text(drawing);
    if (drawn && (request->formats & 1u << PLOT_PNG) != 0)
        drawn = draw_file(request, scenario, drawing, PLOT_PNG);
    if (drawn && (request->formats & 1u << PLOT_SVG) != 0)
        drawn = draw_file(request, scenario, drawing, PLOT_SVG);
    return drawn;
}

/* Beyond the number of colours two curves look the same. */
static void warn_of_many(const struct scenario *scenario, const struct plot_data *data)
{
    unsigned n = 0;
    for (guint i = 0; i < data->curves->len; i++) {
        const struct plot_curve *curve = data->curves->pdata[i];
        n += curve->measured || curve->level ? 0 : 1;
    }
    if (n > PLOT_COLORS)
        fprintf(
            stderr,
            "%s: %u curves share %u colours: fewer axes in `series`, or a `filter` of the plot, "
            "would tell them apart\n",
            scenario_name(scenario), n, PLOT_COLORS);
}

/* False if no panel has anything to show, or with mistakes in errors. Panels that have nothing are
 * left out, and said: a part of the points, as of --quick, may be none of theirs. */
static bool collect_and_draw(const struct plot_request *request, struct scenario *scenario,
                             const struct plot_figure *figure,
                             const struct plot_published *published, struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    struct drawing drawing = { .figure = figure,
                               .published = published,
                               .panels = g_new0(struct plot_panel, figure->panels->len + 1) };
    g_autoptr(GPtrArray) missing = g_ptr_array_new();
    for (guint i = 0; i < figure->panels->len && errors->n_messages == before; i++) {
        struct plot_panel *panel = &drawing.panels[drawing.n_panels];
        panel->spec = figure->panels->pdata[i];
        if (plot_data_collect(scenario, panel->spec, request->db, request->options, published,
                              &panel->data, errors)) {
            drawing.n_panels++;
            warn_of_many(scenario, &panel->data);
            continue;
        }
        if (errors->n_messages == before)
            g_ptr_array_add(missing, (gpointer)panel->spec);
        plot_data_release(&panel->data);
    }
    plot_data_say_missing(scenario, figure, missing, request->options, request->db);
    plot_arrange(drawing.panels, drawing.n_panels);
    const bool good = errors->n_messages == before && drawing.n_panels > 0 &&
                      draw(request, scenario, &drawing);
    for (guint i = 0; i < drawing.n_panels; i++)
        plot_data_release(&drawing.panels[i].data);
    g_free(drawing.panels);
    return good;
}

/* Drawn all the same: it may be a scatter. */
static void warn_of_ambiguous(const struct scenario *scenario, const struct plot_figure *figure)
{
    for (guint i = 0; i < figure->panels->len; i++) {
        g_autofree char *axes = plot_ambiguous_axes(scenario, figure->panels->pdata[i]);
        if (axes != NULL)
            fprintf(stderr,
                    "%s: curves have several points at the same x, which differ in %s: `series` or "
                    "a `filter` of the plot would tell them apart\n",
                    scenario_name(scenario), axes);
    }
}

/* What a figure shows of such points is older than their last run. */
static void warn_of_overtaken(const struct plot_request *request, const struct scenario *scenario)
{
    unsigned n = 0;
    struct results_cursor *cursor = results_overtaken(request->db, scenario_name(scenario));
    while (results_next_name(cursor) != NULL)
        n++;
    if (cli_end(cursor) && n > 0)
        fprintf(stderr,
                "%s: %u point%s of an earlier run: a later one has failed (nudma results %s "
                "marks %s)\n",
                scenario_name(scenario), n, n == 1 ? " is" : "s are", scenario_name(scenario),
                n == 1 ? "it" : "them");
}

/* The title with paper and figure; a figure of runs that --set has changed, or that were sampled,
 * says so there, and beside it. The new title has to live as long as the figure; g_free(). */
static char *set_title(const struct plot_request *request, struct scenario *scenario,
                       const struct plot_published *published, struct plot_figure *figure)
{
    const char *name = scenario_name(scenario);
    g_autofree char *changes = result_changes(request->db, name);
    g_autofree char *sampled = result_sampled(request->db, name);
    g_autofree char *whole = plot_published_title(published, scenario, figure->title);
    if (changes != NULL)
        fprintf(stderr, "%s: changed by %s\n", name, changes);
    if (sampled != NULL)
        fprintf(stderr, "%s: sampled: %s\n", name, sampled);
    g_autofree char *older = result_older(request->db, name, scenario);
    if (older != NULL)
        fprintf(stderr, "%s: of an older text of the scenario: %s\n", name, older);
    char *title = g_strdup_printf("%s%s%s%s%s", whole, changes != NULL ? " (changed by --set)" : "",
                                  sampled != NULL ? " (sampled: " : "",
                                  sampled != NULL ? sampled : "", sampled != NULL ? ")" : "");
    for (guint i = 0; i < figure->panels->len; i++) {
        struct plot_spec *panel = figure->panels->pdata[i];
        if (panel->title == figure->title)
            panel->title = title;
    }
    figure->title = title;
    return title;
}

#define NO_PLOT "no group `plot` says what to plot (docs/commands.md has its settings)"

static void plot_scenario(struct plot_request *request, struct scenario *scenario,
                          struct sim_error_list *errors)
{
    struct plot_figure figure;
    const size_t before = errors->n_messages;
    if (plot_figure_read(scenario, &figure, errors))
        plot_figure_check(scenario, &figure, errors);
    if (errors->n_messages == before && figure.panels->len == 0)
        sim_error_add(errors, scenario_path(scenario), 0, NO_PLOT);
    else if (errors->n_messages == before) {
        struct plot_published published;
        plot_published_read(&published, scenario, request->options, request->db);
        char *title = set_title(request, scenario, &published, &figure); /* the figure uses it */
        warn_of_ambiguous(scenario, &figure);
        warn_of_overtaken(request, scenario);
        if (!collect_and_draw(request, scenario, &figure, &published, errors))
            request->any_failed = true;
        plot_published_release(&published);
        g_free(title);
    }
    plot_figure_release(&figure);
}

static int plot_scenarios(struct plot_request *request, char **arguments)
{
    struct sim_error_list errors = { 0 };
    g_autoptr(GPtrArray) scenarios = cli_load_scenarios(request->options, arguments, NULL, &errors);
    if (request->file != NULL && scenarios->len > 1)
        sim_error_add(&errors, NULL, 0,
                      "--output %s: one file for the pictures of %u scenarios, expected a folder",
                      request->file, scenarios->len);
    const bool loaded = errors.n_messages == 0;
    request->db = loaded ? cli_open_for_reading(request->options) : NULL;
    request->any_failed = loaded && request->db == NULL;
    for (guint i = 0; request->db != NULL && i < scenarios->len; i++)
        plot_scenario(request, scenarios->pdata[i], &errors);
    request->any_failed = request->any_failed ||
                          (request->db != NULL && results_failed(request->db));
    results_close(request->db);
    const int status = errors.n_messages > 0 ? CLI_WRONG
                       : request->any_failed ? CLI_FAILED
                                             : CLI_DONE;
    cli_report(&errors);
    return status;
}

/* ---- The commands ---------------------------------------------------------------------------- */

/* "png,svg" -> bits; 0 with what is wrong printed */
static unsigned parse_formats(const char *text)
{
    static const char *const names[] = { "text", "png", "svg", "gnuplot", NULL };
    unsigned formats = 0;
    g_auto(GStrv) words = g_strsplit(*text != '\0' ? text : ",", ",", -1);
    for (char **word = words; *word != NULL; word++) {
        unsigned i = 0;
        while (names[i] != NULL && strcmp(names[i], *word) != 0)
            i++;
        if (names[i] == NULL) {
            g_autofree char *suggestion = sim_suggestion(*word, names);
            fprintf(stderr, "%s: --format \"%s\": no such format; %s\n", g_get_prgname(), *word,
                    *suggestion != '\0' ? suggestion : "expected text, png, svg or gnuplot");
            formats = 0;
            break;
        }
        formats |= 1u << i;
    }
    return formats;
}

/* Of one picture, by the ending of its file's name: 1 << PLOT_PNG, ...; 0: it names a folder. */
static unsigned file_format(const char *output)
{
    for (unsigned i = 0; output != NULL && i < G_N_ELEMENTS(endings); i++)
        if (endings[i] != NULL && g_str_has_suffix(output, endings[i]) &&
            !g_file_test(output, G_FILE_TEST_IS_DIR))
            return 1u << i;
    return 0;
}

/* Whether it looks like the file of a picture that is not drawn, and would become a folder. */
static bool is_other_picture(const char *output)
{
    static const char *const others[] = { ".png", ".svg", ".pdf",  ".jpg", ".jpeg",
                                          ".gif", ".eps", ".webp", ".ps",  ".bmp" };
    g_autofree char *lower = g_ascii_strdown(output, -1);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (g_str_has_suffix(lower, others[i]))
            return !g_file_test(output, G_FILE_TEST_IS_DIR);
    return false;
}

/* Where pictures go and which. format NULL: not said. False with what is wrong printed. */
static bool read_output(struct plot_request *request, const char *output, const char *format)
{
    const unsigned of_file = file_format(output);
    request->folder = output != NULL ? output : DEFAULT_OUTPUT;
    request->file = of_file != 0 ? output : NULL;
    request->formats = of_file != 0 && format == NULL
                           ? of_file
                           : parse_formats(format != NULL ? format : "text");
    const unsigned pictures = request->formats & (1u << PLOT_PNG | 1u << PLOT_SVG);
    if (request->formats == 0 || !cli_folder_exists("--output", output))
        return false;
    if (output != NULL && of_file == 0 && is_other_picture(output)) {
        fprintf(stderr, "nudma plot: --output %s: expected FILE.png, FILE.svg or a folder\n",
                output);
        return false;
    }
    if (output == NULL || (of_file != 0 ? pictures == of_file : pictures != 0))
        return true;
    fprintf(stderr, "nudma plot: --output %s: found --format %s, expected %s\n", output,
            format != NULL ? format : "text",
            of_file == 0 ? "png, svg: text and scripts go to standard output"
                         : "that of the file's name; several need a folder");
    return false;
}

int cli_plot(int argc, char **argv)
{
    struct cli_options options = { 0 };
    g_autofree char *format = NULL, *output = NULL;
    gboolean bands = FALSE; /* looked for before the others are parsed */
    const GOptionEntry entries[] = {
        { "format", 'F', 0, G_OPTION_ARG_STRING, &format,
          "text (default), png, svg, gnuplot (the script), or several: png,svg", "FORMAT" },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
          "Write PNG and SVG files below DIR (default " DEFAULT_OUTPUT "), or the one picture into "
          "FILE.png or FILE.svg",
          "DIR" },
        { "bands", 0, 0, G_OPTION_ARG_NONE, &bands,
          "Of results/bands.db, unless --db says otherwise: what nudma run --bands has stored",
          NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_has_option("--bands", argc, argv))
        options.default_db = "bands.db";
    if (cli_parse(&options, "SCENARIO...",
                  "Plots the results of scenarios beside what was measured.",
                  "In text, capital letters are simulated, small ones measured.", entries, argc,
                  argv, &status)) {
        struct plot_request request = { .options = &options };
        const bool good = read_output(&request, output, format);
        status = CLI_WRONG;
        if (good && *options.arguments == NULL)
            fprintf(stderr, "nudma plot: which scenario? (nudma list shows them)\n");
        else if (good)
            status = plot_scenarios(&request, options.arguments);
    }
    cli_options_release(&options);
    return status;
}

/* Takes scenarios without a plot out of the arguments, before anything runs, and says which. False
 * if none is left. Other mistakes are left to run_scenarios(). */
static bool keep_plotted(struct cli_options *options)
{
    struct sim_error_list errors = { 0 };
    g_autoptr(GPtrArray) scenarios = cli_load_scenarios(options, options->arguments, NULL, &errors);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    const bool loaded = errors.n_messages == 0;
    sim_error_release(&errors);
    if (!loaded)
        return true;
    for (guint i = 0; i < scenarios->len; i++) {
        struct scenario *scenario = scenarios->pdata[i];
        const char *path = scenario_path(scenario);
        if (config_get(config_root(scenario_base(scenario)), "plot") != NULL)
            g_ptr_array_add(paths, g_strdup(path));
        else
            fprintf(stderr, "%s: " NO_PLOT "%s\n", path, scenarios->len == 1 ? "" : "; left out");
    }
    if (paths->len == 0)
        return false;
    g_strfreev(options->arguments);
    g_ptr_array_add(paths, NULL);
    options->arguments = (char **)g_ptr_array_free(g_steal_pointer(&paths), FALSE);
    return true;
}

int cli_figures(int argc, char **argv)
{
    struct run_request run;
    g_autofree char *folder = NULL;
    run_request_init(&run);
    run.with_table = false;
    run.command_line = cli_command_line("figures", argc, argv);
    const GOptionEntry entries[] = {
        { "jobs", 'j', 0, G_OPTION_ARG_INT, &run.n_workers,
          "Run N points at a time (default: one per processor)", "N" },
        { "seeds", 0, 0, G_OPTION_ARG_INT, &run.n_seeds,
          "Run each point with N seeds; figures then have 95 % intervals", "N" },
        { "quick", 0, 0, G_OPTION_ARG_NONE, &run.quick,
          "Only the few points that a scenario names as its fast subset", NULL },
        { "precision", 0, 0, G_OPTION_ARG_STRING, &run.precision_text, RUN_PRECISION_TEXT,
          "RATIO" },
        { "progress", 0, 0, G_OPTION_ARG_INT, &run.progress_s, RUN_PROGRESS_TEXT, "SECONDS" },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &run.quiet, "No progress, only faults", NULL },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &folder,
          "Write the files below DIR (default " DEFAULT_OUTPUT ")", "DIR" },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&run.options, "[SCENARIO...]",
                  "Makes the figures of scenarios, as PNG and SVG; runs first what is missing.",
                  "Without SCENARIO: of all.", entries, argc, argv, &status)) {
        struct plot_request request = { .options = &run.options };
        request.folder = folder != NULL ? folder : DEFAULT_OUTPUT;
        request.formats = 1u << PLOT_PNG | 1u << PLOT_SVG;
        if (file_format(folder) != 0)
            fprintf(stderr,
                    "nudma figures: --output %s: is the name of one picture, expected a folder "
                    "(nudma plot writes one)\n",
                    folder);
        status = file_format(folder) == 0 && run_request_sound(&run) &&
                         cli_folder_exists("--output", folder) &&
                         cli_folder_exists("--db", run.options.db) && keep_plotted(&run.options)
                     ? run_scenarios(&run, run.options.arguments)
                     : CLI_WRONG;
        if (status == CLI_DONE || status == CLI_FAILED) {
            const int drawn = plot_scenarios(&request, run.options.arguments);
            status = MAX(status, drawn);
        }
    }
    run_request_release(&run);
    return status;
}
