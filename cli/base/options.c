/* Options that several subcommands have, and the folders in which scenarios are looked for. */
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "sim/config/filter.h"
#include "sim/store/version.h"

#define DEFAULT_FOLDER "results" /* of what is written, unless it is said where */

#ifndef NUDMA_DATADIR
#define NUDMA_DATADIR "/usr/local/share/nudma"
#endif

static void add_root(GPtrArray *roots, char *folder)
{
    if (g_file_test(folder, G_FILE_TEST_IS_DIR))
        g_ptr_array_add(roots, folder);
    else
        g_free(folder);
}

/* The scenarios of a source tree: build/nudma and build-x/bin/nudma both find them. */
static void add_roots_near_program(GPtrArray *roots)
{
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    if (program == NULL)
        return;
    g_autofree char *folder = g_path_get_dirname(program);
    g_autofree char *above = g_path_get_dirname(folder); /* not "..": messages have these paths */
    g_autofree char *top = g_path_get_dirname(above);
    add_root(roots, g_build_filename(above, "scenarios", NULL));
    add_root(roots, g_build_filename(top, "scenarios", NULL));
}

static char *same_file_key(const char *folder)
{
    char *real = realpath(folder, NULL);
    char *key = g_strdup(real != NULL ? real : folder);
    free(real);
    return key;
}

char **cli_roots(const char *option)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *environment = g_getenv("NUDMA_SCENARIOS");
    if (option != NULL)
        add_root(found, g_strdup(option));
    if (environment != NULL && *environment != '\0')
        add_root(found, g_strdup(environment));
    add_root(found, g_strdup("scenarios"));
    add_roots_near_program(found);
    add_root(found, g_build_filename(NUDMA_DATADIR, "scenarios", NULL));
    GPtrArray *roots = g_ptr_array_new();
    for (guint i = 0; i < found->len; i++) {
        if (g_hash_table_add(seen, same_file_key(found->pdata[i])))
            g_ptr_array_add(roots, found->pdata[i]);
        else
            g_free(found->pdata[i]);
    }
    g_ptr_array_add(roots, NULL);
    return (char **)g_ptr_array_free(roots, FALSE);
}

void cli_print_version(void)
{
    printf("nudma %s\n", sim_version());
}

/* The short options that take a value, "js". */
static bool takes_value(const GOptionEntry *entries, char letter)
{
    for (; entries != NULL && entries->long_name != NULL; entries++) {
        if (entries->short_name == letter && entries->arg != G_OPTION_ARG_NONE)
            return true;
    }
    return false;
}

/* A copy in which -j8 is -j 8, as GOption wants it. */
static char **split_short_options(const GOptionEntry *entries, int argc, char **argv)
{
    GPtrArray *copy = g_ptr_array_new();
    bool options = true;
    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        options = options && strcmp(argument, "--") != 0;
        if (i > 0 && options && argument[0] == '-' && argument[1] != '\0' && argument[2] != '\0' &&
            takes_value(entries, argument[1])) {
            g_ptr_array_add(copy, g_strndup(argument, 2));
            g_ptr_array_add(copy, g_strdup(argument + 2));
        } else {
            g_ptr_array_add(copy, g_strdup(argument));
        }
    }
    g_ptr_array_add(copy, NULL);
    return (char **)g_ptr_array_free(copy, FALSE);
}

/* Takes argv[0] and the first "--" away. */
static void keep_arguments(struct cli_options *options, char **words)
{
    GPtrArray *rest = g_ptr_array_new();
    bool after_dashes = false;
    g_free(words[0]);
    for (char **word = words + 1; *word != NULL; word++) {
        if (!after_dashes && strcmp(*word, "--") == 0) {
            after_dashes = true;
            g_free(*word);
        } else {
            g_ptr_array_add(rest, *word);
        }
    }
    g_ptr_array_add(rest, NULL);
    g_free(words);
    options->arguments = (char **)g_ptr_array_free(rest, FALSE);
}

/* "Unknown option --sett", with the nearest that there is. */
static void report_unparsed(const GError *error, const GOptionEntry *const lists[])
{
    const char *dashes = strstr(error->message, "--");
    g_autofree char *suggestion = g_strdup("");
    if (g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) && dashes != NULL) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        g_autofree char *word = g_strndup(dashes, strcspn(dashes, "= "));
        for (; *lists != NULL; lists++) {
            for (const GOptionEntry *entry = *lists; entry->long_name != NULL; entry++)
                g_ptr_array_add(names, g_strconcat("--", entry->long_name, NULL));
        }
        g_ptr_array_add(names, NULL);
        g_free(suggestion);
        suggestion = sim_suggestion(word, (const char *const *)names->pdata);
    }
    fprintf(stderr, "%s: %s%s%s (see --help)\n", g_get_prgname(), error->message,
            *suggestion != '\0' ? "; " : "", suggestion);
}

enum { HELP_TEXT_MIN = 24 }; /* columns for what an option does, else it stands further left */

static bool is_text(const char *line)
{
    return line != NULL && *line != '\0' && *line != ' ';
}

/* On a terminal lines are as long as it is wide: text, and what an option does, below its
 * beginning. */
static void print_help(const char *help)
{
    const int width = cli_line_width();
    if (width == 0) {
        fputs(help, stdout);
        return;
    }
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    for (char **line = lines; *line != NULL && (line[1] != NULL || **line != '\0'); line++) {
        g_autoptr(GString) text = g_string_new(NULL), whole = g_string_new(*line);
        size_t column = strspn(*line, " ");
        const char *gap = (*line)[column] == '-' ? strstr(*line + column, "  ") : NULL;
        if (gap != NULL)
            column = (size_t)(gap - *line) + strspn(gap, " ");
        for (; is_text(*line) && is_text(line[1]); line++)
            g_string_append_printf(whole, " %s", line[1]);
        g_string_append_len(text, whole->str, (gssize)column);
        const bool fits = (int)column + HELP_TEXT_MIN <= width;
        cli_wrap(text, whole->str + column, fits ? (int)column : 4, width);
        puts(text->str);
    }
}

bool cli_parse(struct cli_options *options, const char *usage, const char *summary,
               const char *description, const GOptionEntry *entries, int argc, char **argv,
               int *status)
{
    const char *default_db = options->default_db != NULL ? options->default_db : "nudma.db";
    g_autofree char *about_db =
        g_strdup_printf("The results database (default " DEFAULT_FOLDER "/%s)", default_db);
    gboolean asks_for_help = FALSE;
    const GOptionEntry of_db = {
        "db", 0, 0, G_OPTION_ARG_FILENAME, &options->db, about_db, "FILE"
    };
    const GOptionEntry shared[] = {
        { "scenarios", 0, 0, G_OPTION_ARG_FILENAME, &options->scenarios,
          "Look for scenarios in DIR first", "DIR" },
        { "version", 'v', 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL },
        { "help", 'h', G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &asks_for_help, NULL, NULL },
        options->no_db ? (GOptionEntry){ .long_name = NULL } : of_db,
        { .long_name = NULL },
    };
    GError *error = NULL;
    GOptionContext *context = g_option_context_new(usage);
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, description);
    if (entries != NULL)
        g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, shared, NULL);
    g_option_context_set_help_enabled(context, FALSE); /* GOption would end the program */
    char **words = split_short_options(entries, argc, argv);
    const bool parsed = g_option_context_parse_strv(context, &words, &error);
    g_option_context_set_help_enabled(context, TRUE); /* the text shows that there is --help */
    g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);
    g_option_context_free(context);
    keep_arguments(options, words);
    if (!parsed) {
        const GOptionEntry *const lists[] = { shared, entries, NULL };
        report_unparsed(error, lists);
        g_error_free(error);
        *status = CLI_WRONG;
        return false;
    }
    if (asks_for_help) {
        print_help(help);
        *status = CLI_DONE;
        return false;
    }
    if (options->version) {
        cli_print_version();
        *status = CLI_DONE;
        return false;
    }
    if (options->scenarios != NULL && !g_file_test(options->scenarios, G_FILE_TEST_IS_DIR)) {
        fprintf(stderr, "--scenarios %s: no such folder\n", options->scenarios);
        *status = CLI_WRONG;
        return false;
    }
    const char *environment = g_getenv("NUDMA_SCENARIOS");
    if (environment != NULL && *environment != '\0' &&
        !g_file_test(environment, G_FILE_TEST_IS_DIR)) {
        fprintf(stderr, "NUDMA_SCENARIOS=%s: no such folder\n", environment);
        *status = CLI_WRONG;
        return false;
    }
    if (options->db != NULL && *options->db == '\0') {
        fprintf(stderr, "%s: --db '': expected the name of a file\n", g_get_prgname());
        *status = CLI_WRONG;
        return false;
    }
    if (g_strcmp0(options->db, RESULTS_IN_MEMORY) == 0) {
        fprintf(stderr, "%s: --db %s: would keep nothing, expected a file\n", g_get_prgname(),
                options->db);
        *status = CLI_WRONG;
        return false;
    }
    options->db_said = options->db != NULL;
    if (!options->db_said)
        options->db = g_build_filename(DEFAULT_FOLDER, default_db, NULL);
    options->roots = cli_roots(options->scenarios);
    return true;
}

void cli_options_release(struct cli_options *options)
{
    g_free(options->db);
    g_free(options->scenarios);
    g_strfreev(options->roots);
    g_strfreev(options->arguments);
}

void cli_report(struct sim_error_list *errors)
{
    sim_error_print(errors, stderr);
    sim_error_release(errors);
}

char *cli_find_file(const struct cli_options *options, const char *name)
{
    for (char **root = options->roots; *root != NULL; root++) {
        char *path = g_build_filename(*root, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return path;
        g_free(path);
    }
    return NULL;
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_among(const char *output, char *const *files)
{
    for (; files != NULL && *files != NULL; files++)
        if (cli_same_file(output, *files))
            return true;
    return false;
}

/* However it is written. */
static bool is_default_folder(const char *folder)
{
    g_autofree char *path = g_canonicalize_filename(folder, NULL);
    g_autofree char *default_path = g_canonicalize_filename(DEFAULT_FOLDER, NULL);
    return strcmp(path, default_path) == 0;
}

bool cli_folder_exists(const char *option, const char *path)
{
    size_t length = path != NULL ? strlen(path) : 0;
    while (length > 1 && path[length - 1] == '/') /* of a folder that is named so */
        length--;
    g_autofree char *bare = g_strndup(path != NULL ? path : "", length);
    g_autofree char *folder = g_path_get_dirname(bare);
    if (length == 0 || is_default_folder(folder) || g_file_test(folder, G_FILE_TEST_IS_DIR))
        return true;
    fprintf(stderr, "%s: %s%s%s: there is no folder \"%s\"\n", g_get_prgname(), option,
            *option != '\0' ? " " : "", path, folder);
    return false;
}

bool cli_writes_elsewhere(const char *output, const struct cli_options *options, char *const *more)
{
    char *const database[] = { options->db, NULL };
    if (!cli_folder_exists("", output))
        return false;
    if (output == NULL || !g_file_test(output, G_FILE_TEST_IS_REGULAR) ||
        (!is_among(output, database) && !is_among(output, options->arguments) &&
         !is_among(output, more)))
        return true;
    fprintf(stderr,
            "%s: is the database or a file that is read here, expected another one to write\n",
            output);
    return false;
}

bool cli_wait_for_database(void *unused, const char *path, double before_s, double waited_s)
{
    (void)unused;
    if (cli_says_wait(before_s, waited_s))
        fprintf(stderr,
                "%s: another program is writing and holds it; waiting for that (Ctrl-C ends "
                "this)\n",
                path);
    return true;
}

struct results_db *cli_open_for_writing(const struct cli_options *options)
{
    g_autofree char *folder = g_path_get_dirname(options->db), *message = NULL;
    struct results_db *db = NULL;
    if (is_default_folder(folder) && !g_file_test(folder, G_FILE_TEST_IS_DIR) &&
        g_mkdir(DEFAULT_FOLDER, 0777) != 0)
        message = g_strdup_printf("%s: %s (--db FILE writes elsewhere)", folder, g_strerror(errno));
    else
        db = results_open_waiting(options->db, cli_wait_for_database, NULL, &message);
    if (db == NULL)
        fprintf(stderr, "%s\n", message);
    return db;
}

struct results_db *cli_open_for_reading(const struct cli_options *options)
{
    g_autofree char *message = NULL;
    struct results_db *db = results_open(options->db, true, &message);
    if (db == NULL)
        fprintf(stderr, "%s%s\n", message,
                g_file_test(options->db, G_FILE_TEST_EXISTS) ? "" : " (nudma run writes it)");
    return db;
}

bool cli_snapshot(struct results_db *db)
{
    g_autofree char *message = NULL;
    const bool good = results_snapshot(db, &message);
    if (!good)
        fprintf(stderr, "%s\n", message);
    return good;
}

bool cli_end(struct results_cursor *cursor)
{
    g_autofree char *message = NULL;
    const bool good = results_end(cursor, &message);
    if (!good)
        fprintf(stderr, "%s: the database cannot be read: %s\n", g_get_prgname(), message);
    return good;
}

static bool is_plain(const char *argument)
{
    for (const char *c = argument; *c != '\0'; c++) {
        if (!g_ascii_isalnum(*c) && strchr("-_=./,:+@%", *c) == NULL)
            return false;
    }
    return *argument != '\0';
}

bool cli_has_option(const char *option, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

char *cli_typed(const char *command_line)
{
    g_autofree char *arguments = NULL;
    const char *program = "nudma"; /* found by $PATH */
    if (g_file_get_contents("/proc/self/cmdline", &arguments, NULL, NULL) &&
        strchr(arguments, '/') != NULL)
        program = arguments; /* the first ends with a 0 */
    g_autofree char *quoted = is_plain(program) ? g_strdup(program) : g_shell_quote(program);
    return g_strconcat(quoted, command_line + strlen("nudma"), NULL);
}

char *cli_command_line(const char *subcommand, int argc, char **argv)
{
    GString *line = g_string_new("nudma ");
    g_string_append(line, subcommand);
    for (int i = 1; i < argc; i++) {
        g_autofree char *quoted = is_plain(argv[i]) ? g_strdup(argv[i]) : g_shell_quote(argv[i]);
        g_string_append_printf(line, " %s", quoted);
    }
    return g_string_free(line, FALSE);
}

static void free_filter(gpointer filter)
{
    filter_free(filter);
}

GPtrArray *cli_filters(const char *const *texts, const char *option, struct sim_error_list *errors)
{
    GPtrArray *filters = g_ptr_array_new_with_free_func(free_filter);
    for (; texts != NULL && *texts != NULL; texts++) {
        g_autofree char *fault = NULL;
        struct filter *filter = filter_parse(*texts, &fault);
        if (filter != NULL)
            g_ptr_array_add(filters, filter);
        else
            sim_error_add(errors, NULL, 0, "%s: %s", option, fault);
    }
    return filters;
}
