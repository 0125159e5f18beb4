/*
 * What the subcommands share. Results go to standard output, everything else to standard error.
 * Exit status: 0 done, 1 a run or a claim failed or the file system refused, 2 the input is wrong,
 * 130 interrupted.
 */
#ifndef CLI_BASE_CLI_H
#define CLI_BASE_CLI_H

#include <glib.h>

#include "sim/config/error.h"
#include "sim/store/query.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_WRONG = 2, CLI_INTERRUPTED = 130 };

struct cli_command {
    const char *name;
    const char *help; /* one line */
    int (*run)(int argc, char **argv);
};

int cli_run(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_describe(int argc, char **argv);
int cli_topology(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_init(int argc, char **argv);
int cli_import(int argc, char **argv);
int cli_measure(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_plot(int argc, char **argv);
int cli_figures(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_whatif(int argc, char **argv);
int cli_results(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_report_page(int argc, char **argv);
int cli_calibrate(int argc, char **argv);

/* ---- Options (options.c) --------------------------------------------------------------------- */

/* Values of the options that several subcommands have. Zero-initialise; cli_options_release(). */
struct cli_options {
    const char *default_db; /* in results/, set before cli_parse(); NULL: "nudma.db" */
    bool no_db;             /* set before cli_parse(): the command has no --db */
    char *db;               /* the database; its default after cli_parse() */
    bool db_said;           /* --db is on the command line */
    char *scenarios;        /* --scenarios, NULL unless given */
    char **roots;           /* where scenarios are looked for, existing folders only */
    char **arguments;       /* what was no option: NULL-terminated, owned */
    gboolean version;
};

/* Parses the command line with GOption; adds --db (but for no_db), --scenarios and --version, and
 * answers the last. False: the command ends with *status. usage: "SCENARIO...". */
bool cli_parse(struct cli_options *options, const char *usage, const char *summary,
               const char *description, const GOptionEntry *entries, int argc, char **argv,
               int *status);
void cli_options_release(struct cli_options *options);
/* Whether the option stands on the command line, before "--": for defaults of cli_parse(). */
bool cli_has_option(const char *option, int argc, char **argv);

/* "nudma 0.1.0 4f2a91c" */
void cli_print_version(void);
/* Parses each text (NULL-terminated; may be NULL) as a filter, mistakes go to errors and name the
 * option. Returns the struct filter of those without; g_ptr_array_free() frees them, too. */
GPtrArray *cli_filters(const char *const *texts, const char *option, struct sim_error_list *errors);
/* Prints all mistakes to standard error, one a line, and releases the list. */
void cli_report(struct sim_error_list *errors);
/* Where scenarios are looked for, existing folders only: --scenarios (`option`; NULL: not given)
 * and NUDMA_SCENARIOS come first; a folder found by two ways counts once. g_strfreev(). */
char **cli_roots(const char *option);
/* The path of the first existing root/name, g_free(); NULL if there is none. */
char *cli_find_file(const struct cli_options *options, const char *name);
/* True if both paths exist and are the same file. */
bool cli_same_file(const char *a, const char *b);
/* True if the folder that `path` (NULL: none) is to stand in is there, or is the default one, which
 * is made; false with a message that names the option ("" if path is no option's value): of another
 * folder that is missing, the name is most likely mistyped. */
bool cli_folder_exists(const char *option, const char *path);
/* False with a message if `output` (NULL: none) is a file that the command reads: the database, an
 * argument, or one of `more` (NULL-terminated; NULL: none); or if there is no folder for it. */
bool cli_writes_elsewhere(const char *output, const struct cli_options *options, char *const *more);
/* Opens the database for writing; makes it, and the default folder, if they are not there. NULL
 * with the reason printed. */
struct results_db *cli_open_for_writing(const struct cli_options *options);
/* A results_wait_fn that waits without end, and says so on standard error after two seconds. */
bool cli_wait_for_database(void *unused, const char *path, double before_s, double waited_s);
/* Whether that is said at this call. */
static inline bool cli_says_wait(double before_s, double waited_s)
{
    return before_s < 2.0 && waited_s >= 2.0;
}
/* Opens the database for reading; NULL with the reason printed. */
struct results_db *cli_open_for_reading(const struct cli_options *options);
/* results_snapshot(). False with the reason printed if the database cannot be read. */
bool cli_snapshot(struct results_db *db);
/* Closes a cursor. False with the reason printed if not all rows could be read. */
bool cli_end(struct results_cursor *cursor);
/* The arguments as one line, "nudma run ...", quoted for a shell; g_free(). */
char *cli_command_line(const char *subcommand, int argc, char **argv);
/* Such a line as it can be typed here, with the program as it was called. g_free(). */
char *cli_typed(const char *command_line);

/* ---- Files that are written (output.c) ------------------------------------------------------- */

struct cli_output;

/* Opens a file for writing, which gets its name when it is complete: an older file stays until
 * then, and a partial one never does. What is no regular file (devices, pipes) is written to
 * directly, a link keeps pointing to its file; "-" is standard output. NULL with the reason
 * printed. */
struct cli_output *cli_output_new(const char *path);
FILE *cli_output_file(struct cli_output *output);
/* Closes the output and frees it; keep false discards what was written. False with the reason
 * printed if not everything could be written. */
bool cli_output_end(struct cli_output *output, bool keep);

/* ---- Tables of text (table.c) ---------------------------------------------------------------- */

struct cli_table;

/* An empty table. columns: the titles with "|" between them, ">" before one whose cells stand to
 * the right, "claim|>error %"; NULL: none yet. Further columns come before the first cell. */
struct cli_table *cli_table_new(const char *columns);
void cli_table_free(struct cli_table *table);
void cli_table_column(struct cli_table *table, const char *title, bool right);
/* The next cell, row by row; copied. */
void cli_table_cell(struct cli_table *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A terminal that knows control sequences. */
bool cli_is_terminal(int fd);
enum cli_colour { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW };
/* Colours the cell that was added last, where cli_has_colours(). */
void cli_table_colour(struct cli_table *table, enum cli_colour colour);
/* Whether standard output is a terminal that shows colours, and NO_COLOR (https://no-color.org) is
 * unset or empty. */
bool cli_has_colours(void);
/* On a terminal that is too narrow, further columns and the words of the last one are continued on
 * the next line. */
void cli_table_print(const struct cli_table *table, const char *indent, FILE *out);
/* Whether all columns stand side by side on standard output. */
bool cli_table_fits(const struct cli_table *table, const char *indent);
/* The width of the terminal; 0 (no limit) if standard output is none. */
int cli_line_width(void);
/* Appends the words. Where a line would exceed line_width (0: no limit), it continues on the next
 * one, from `column` on. */
void cli_wrap(GString *text, const char *words, int column, int line_width);
/* Prints the words to standard output, broken at the width of the terminal. */
void cli_print_words(const char *words, int column);
/* Prints one line to `out`, which goes on at column 4 where the terminal that is standard output is
 * too narrow. */
void cli_print_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints lines to standard output, each broken there, and continued deeper than it begins. */
void cli_print_lines(const char *lines);
/* At most six digits, no trailing zeros: 541.1, 1.5e-05; buffer of 32, which is returned. */
const char *cli_number(double value, char buffer[32]);
/* Whether all of the text is a number, which stands on the right of a column. */
bool cli_is_number(const char *text);

#endif
