/* nudma whatif: runs what-ifs and holds them against what is expected. */
#include <string.h>
#include <unistd.h>

#include "cli/base/last_words.h"
#include "cli/campaign/campaign.h"
#include "cli/whatif/whatif.h"

struct whatif_request {
    struct cli_options options;
    int n_workers;
    char **ids;
    gboolean list, markdown, force, quiet;
    char *command_line;
};

/* ---- Output ---------------------------------------------------------------------------------- */

static void print_reasons(const struct whatif_file *file)
{
    for (guint i = 0; i < file->whatifs->len; i++) {
        const struct whatif *whatif = whatif_at(file, i);
        if (whatif->verdict == WHATIF_AS_EXPECTED)
            continue;
        g_autofree char *head = g_strdup_printf("%s: %s: %s", whatif->id,
                                                whatif_verdict_name(whatif->verdict), whatif->text);
        g_autofree char *because = g_strdup_printf("    expected, because %s (%s)", whatif->because,
                                                   whatif->source);
        puts("");
        cli_print_words(head, 4);
        cli_print_words(because, 4);
        if (whatif->misses != NULL) {
            g_autofree char *why = g_strdup_printf("    known to miss: %s", whatif->misses);
            cli_print_words(why, 4);
        }
        if (whatif->verdict == WHATIF_NO_DATA) {
            g_autofree char *text = whatif_no_data_text(whatif);
            g_autofree char *why = g_strdup_printf("    no value: %s", text);
            cli_print_words(why, 4);
        } else if (whatif->message != NULL) {
            g_autofree char *refused = g_strdup_printf("    came: %s", whatif->message);
            cli_print_words(refused, 4);
        }
    }
}

static void print_table(const struct whatif_file *file)
{
    struct cli_table *table = cli_table_new("what if|metric|expected|came out|verdict");
    for (guint i = 0; i < file->whatifs->len; i++) {
        const struct whatif *whatif = whatif_at(file, i);
        g_autofree char *expected = whatif_expected_text(whatif);
        g_autofree char *found = whatif_found_text(whatif);
        cli_table_cell(table, "%s", whatif->id);
        cli_table_cell(table, "%s", whatif->metric != NULL ? whatif->metric : "-");
        cli_table_cell(table, "%s", expected);
        cli_table_cell(table, "%s", found);
        cli_table_cell(table, "%s", whatif_verdict_name(whatif->verdict));
        if (whatif->verdict != WHATIF_NO_DATA)
            cli_table_colour(table, whatif->verdict == WHATIF_AS_EXPECTED ? CLI_GREEN : CLI_YELLOW);
    }
    printf("%s%s%s\n", file->name, *file->title != '\0' ? ": " : "", file->title);
    cli_table_print(table, "", stdout);
    cli_table_free(table);
    print_reasons(file);
    puts("");
}

/* A cell of a Markdown table. */
static void print_cell(const char *before, const char *text)
{
    fputs(before, stdout);
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', stdout);
        fputc(*text == '\n' ? ' ' : *text, stdout);
    }
}

static void print_settings(const GPtrArray *settings)
{
    for (guint i = 0; i + 1 < settings->len; i++) {
        fputs(i > 0 ? ", `" : "`", stdout);
        print_cell("", settings->pdata[i]);
        fputs("`", stdout);
    }
}

static void print_markdown(const struct whatif_file *file)
{
    printf("## %s\n\n", *file->title != '\0' ? file->title : file->name);
    puts("| what if | of | change | expected | because | source | came out | verdict |\n"
         "|---|---|---|---|---|---|---|---|");
    for (guint i = 0; i < file->whatifs->len; i++) {
        const struct whatif *whatif = whatif_at(file, i);
        g_autofree char *expected = whatif_expected_text(whatif);
        g_autofree char *found = whatif_found_text(whatif);
        print_cell("| ", whatif->id);
        print_cell(": ", whatif->text);
        print_cell(" | `", whatif->scenario);
        print_cell("` ", whatif->filter != NULL ? whatif->filter : "");
        if (whatif->base->len > 1)
            fputs(" with ", stdout);
        print_settings(whatif->base);
        fputs(" | ", stdout);
        print_settings(whatif->change);
        print_cell(" | ", whatif->metric != NULL ? whatif->metric : "");
        print_cell(whatif->metric != NULL ? ": " : "", expected);
        print_cell(" | ", whatif->because);
        print_cell(" | ", whatif->source);
        print_cell(" | ", found);
        print_cell(" | ", whatif_verdict_name(whatif->verdict));
        if (whatif->misses != NULL)
            print_cell(": ", whatif->misses);
        fputs(" |\n", stdout);
    }
    puts("");
}

static void print_list(GPtrArray *files)
{
    struct cli_table *table = cli_table_new("what if|scenario|question");
    for (guint i = 0; i < files->len; i++) {
        const struct whatif_file *file = files->pdata[i];
        for (guint k = 0; k < file->whatifs->len; k++) {
            const struct whatif *whatif = whatif_at(file, k);
            cli_table_cell(table, "%s", whatif->id);
            cli_table_cell(table, "%s", whatif->scenario);
            cli_table_cell(table, "%s", whatif->text);
        }
    }
    cli_table_print(table, "", stdout);
    cli_table_free(table);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Only those that --only names. */
static void keep_ids(GPtrArray *files, char **ids, struct sim_error_list *errors)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GHashTable) wanted = g_hash_table_new(g_str_hash, g_str_equal);
    for (char **id = ids; id != NULL && *id != NULL; id++)
        g_hash_table_add(wanted, *id);
    for (guint i = 0; ids != NULL && i < files->len; i++) {
        GArray *whatifs = ((struct whatif_file *)files->pdata[i])->whatifs;
        for (guint k = whatifs->len; k-- > 0;) {
            const char *id = g_array_index(whatifs, struct whatif, k).id;
            g_ptr_array_add(names, (gpointer)(uintptr_t)id);
            if (!g_hash_table_contains(wanted, id))
                g_array_remove_index(whatifs, k);
        }
    }
    g_ptr_array_add(names, NULL);
    for (char **id = ids; id != NULL && *id != NULL; id++) {
        if (g_strv_contains((const char *const *)names->pdata, *id))
            continue;
        g_autofree char *suggestion = sim_suggestion(*id, (const char *const *)names->pdata);
        sim_error_add(errors, NULL, 0, "--only %s: no such what-if%s%s", *id,
                      *suggestion != '\0' ? "; " : "",
                      *suggestion != '\0' ? suggestion : " (nudma whatif --list shows all)");
    }
}

/* Exit status by the verdicts, after a last line that counts them. */
static int print_all(const struct whatif_request *request, GPtrArray *files)
{
    unsigned n[N_WHATIF_VERDICTS] = { 0 }, total = 0;
    for (guint i = 0; i < files->len; i++) {
        const struct whatif_file *file = files->pdata[i];
        if (file->whatifs->len == 0)
            continue;
        if (request->markdown)
            print_markdown(file);
        else
            print_table(file);
        for (guint k = 0; k < file->whatifs->len; k++)
            n[whatif_at(file, k)->verdict]++;
        total += file->whatifs->len;
    }
    printf("%u of %u what-ifs as expected", n[WHATIF_AS_EXPECTED], total);
    for (enum whatif_verdict v = WHATIF_AS_EXPECTED + 1; v < N_WHATIF_VERDICTS; v++)
        if (n[v] > 0)
            printf("; %u %s", n[v], whatif_verdict_name(v));
    printf("\n");
    return n[WHATIF_AS_EXPECTED] + n[WHATIF_KNOWN] == total ? CLI_DONE : CLI_FAILED;
}

static int run_plan(const struct whatif_request *request, GPtrArray *files, struct plan *plan)
{
    struct sim_error_list errors = { 0 };
    struct results_db *db = cli_open_for_writing(&request->options);
    if (db == NULL)
        return CLI_FAILED;
    const struct campaign campaign = {
        .plan = plan,
        .db = db,
        .n_workers = (unsigned)request->n_workers,
        .quiet = request->quiet,
        .force = request->force,
        .command_line = request->command_line,
        .first_seed = 1,
        .n_seeds = 1,
    };
    /* A run that fails has no value, or was expected to fail: the verdicts say so. A database that
     * refuses one leaves others waiting: there is nothing to judge. */
    int status = campaign_run(&campaign);
    if (status == CLI_FAILED && plan_count(plan, PLAN_WAITING) + plan_count(plan, PLAN_RUNNING) > 0)
        fprintf(stderr, "nothing is judged: not all runs are stored\n");
    else if (status != CLI_INTERRUPTED)
        status = whatif_judge(files, plan, db, &errors) ? print_all(request, files) : CLI_FAILED;
    cli_report(&errors);
    results_close(db);
    return status;
}

static int ask(const struct whatif_request *request)
{
    struct sim_error_list errors = { 0 };
    g_autoptr(GPtrArray) files = whatif_load(&request->options, request->options.arguments,
                                             &errors);
    if (errors.n_messages == 0)
        keep_ids(files, request->ids, &errors);
    if (errors.n_messages == 0 && request->list) {
        print_list(files);
        return CLI_DONE;
    }
    struct plan *plan = errors.n_messages == 0 ? whatif_plan(&request->options, files, &errors)
                                               : NULL;
    int status = CLI_WRONG;
    if (errors.n_messages > 0)
        cli_report(&errors);
    else
        status = run_plan(request, files, plan);
    if (plan != NULL)
        plan_free(plan);
    return status;
}

int cli_whatif(int argc, char **argv)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct whatif_request request = { .options.default_db = "whatif.db",
                                      .n_workers = online > 0 ? (int)online : 1 };
    const GOptionEntry entries[] = {
        { "jobs", 'j', 0, G_OPTION_ARG_INT, &request.n_workers,
          "Run N points at a time (default: one per processor)", "N" },
        { "only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &request.ids,
          "Only this what-if (again for more; default: all)", "ID" },
        { "list", 0, 0, G_OPTION_ARG_NONE, &request.list, "Print the questions, run nothing",
          NULL },
        { "markdown", 0, 0, G_OPTION_ARG_NONE, &request.markdown,
          "Print tables in Markdown, with reasons and sources", NULL },
        { "force", 0, 0, G_OPTION_ARG_NONE, &request.force,
          "Run what the database has already, too", NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &request.quiet, "No progress, only faults", NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    request.command_line = cli_command_line("whatif", argc, argv);
    if (cli_parse(&request.options, "[WHATIFS...]",
                  "Runs scenarios without and with a change, and compares what comes of it with "
                  "what is expected.",
                  "WHATIFS is a file of what-ifs, or a folder of scenarios that has one; without, "
                  "all files whatif.cfg\nbeside the scenarios (docs/whatif.md). What the database "
                  "has is not run again. Exit status 1 if one\ndoes not come out as expected and "
                  "is not known to.",
                  entries, argc, argv, &status)) {
        if (request.n_workers < 1 || request.n_workers > 4096) {
            fprintf(stderr, "nudma whatif: -j %d: expected 1..4096\n", request.n_workers);
            status = CLI_WRONG;
        } else if (!request.list && !cli_folder_exists("--db", request.options.db)) {
            status = CLI_WRONG;
        } else {
            campaign_expect_stop(request.command_line);
            status = ask(&request);
            last_words_if_stopped(NULL);
        }
    }
    g_free(request.command_line);
    g_strfreev(request.ids);
    cli_options_release(&request.options);
    return status;
}
