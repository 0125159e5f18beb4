/* nudma describe: the tables of parameters and statistics, from which the readers work too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "models/base/model.h"
#include "models/world/registry.h"
#include "sim/config/param.h"
#include "workloads/base/describe.h"

#define FOLDED_MIN 4u

/* One thing that has tables: a device model, or whatever workloads/base/describe.h lists. */
static GArray *collect(void)
{
    GArray *entries = g_array_new(FALSE, FALSE, sizeof(struct describe_entry));
    struct describe_entry part;
    for (unsigned i = 0; describe_entry(i, &part); i++)
        g_array_append_val(entries, part);
    const struct model_ops *ops;
    for (unsigned i = 0; (ops = model_at(i)) != NULL; i++) {
        const struct describe_entry entry = { ops->type,  ops->help, ops->params,
                                              ops->stats, NULL,      NULL };
        g_array_append_val(entries, entry);
    }
    return entries;
}

static char *value_text(const struct param_desc *desc, double number)
{
    char text[32];
    const bool is_bytes = desc->type == PARAM_BYTES && number >= 0.0 && number < 9e18;
    const bool is_exact = number > -1e15 && number < 1e15 && !(floor(number) < number);
    if (is_bytes || is_exact)
        return g_strdup_printf("%" G_GINT64_FORMAT, (gint64)number);
    return g_strdup(cli_number(number, text));
}

static char *default_text(const struct param_desc *desc)
{
    if (param_required(desc))
        return g_strdup("required");
    if (desc->type == PARAM_STRING)
        return g_strdup_printf("\"%s\"", desc->def_string != NULL ? desc->def_string : "");
    const struct param_value value = param_default(desc);
    return param_format(desc, &value);
}

static char *range_text(const struct param_desc *desc)
{
    switch (desc->type) {
    case PARAM_BOOL: return g_strdup("true, false");
    case PARAM_STRING: return g_strdup("text");
    case PARAM_ENUM: return g_strjoinv(", ", (char **)(uintptr_t)desc->names);
    case PARAM_END:
    case PARAM_U32:
    case PARAM_U64:
    case PARAM_DOUBLE:
    case PARAM_BYTES:
    case PARAM_TIME:
    case PARAM_RATE: break;
    }
    g_autofree char *lo = value_text(desc, desc->lo), *hi = value_text(desc, desc->hi);
    return g_strdup_printf("%s..%s", lo, hi);
}

static void print_params(const struct param_desc *params)
{
    struct cli_table *table =
        cli_table_new("parameter|unit|default|range|provenance|source|meaning");
    for (const struct param_desc *desc = params; desc->type != PARAM_END; desc++) {
        g_autofree char *def = default_text(desc), *range = range_text(desc);
        const char *unit = param_unit(desc);
        const char *provenance = param_provenance_name(desc->provenance);
        cli_table_cell(table, "%s", desc->key);
        cli_table_cell(table, "%s", *unit != '\0' ? unit : "-");
        cli_table_cell(table, "%s", def);
        cli_table_cell(table, "%s", range);
        cli_table_cell(table, "%s", *provenance != '\0' ? provenance : "-");
        cli_table_cell(table, "%s", desc->source != NULL && *desc->source ? desc->source : "-");
        cli_table_cell(table, "%s", desc->help != NULL ? desc->help : "");
    }
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
}

/* One row stands for all of a kind: "pfN_rx_packets" for pf0_rx_packets and so on. */
static char *stat_name(const struct stat_desc *stat)
{
    char *name = g_strdup(stat->name);
    char *digit = stat->is_part ? strchr(name, '0') : NULL;
    if (digit != NULL)
        *digit = 'N';
    return name;
}

static void print_stats(const struct stat_desc *stats)
{
    static const char *const kinds[] = { "",          "counter", "rate", "mean",
                                         "histogram", "maximum", "bound" };
    struct cli_table *table = cli_table_new("statistic|kind|unit|meaning");
    for (const struct stat_desc *stat = stats; stat->kind != STAT_END; stat++) {
        if (stat->part > 0)
            continue;
        g_autofree char *name = stat_name(stat);
        cli_table_cell(table, "%s", name);
        cli_table_cell(table, "%s", kinds[stat->kind]);
        cli_table_cell(table, "%s", stat->unit);
        cli_table_cell(table, "%s", stat->help);
    }
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
}

/* Splits "c07.iops" at its first number: *n_head characters before it, *n_digits of it. False:
 * none. */
static bool find_number(const char *name, int *n_head, int *n_digits)
{
    *n_head = (int)strcspn(name, "0123456789");
    *n_digits = (int)strspn(name + *n_head, "0123456789");
    return *n_digits != 0 && *n_digits < 9;
}

/* Whether b is to a what "c08.iops" is to "c07.iops", and says the same of it. */
static bool follows(const struct record_desc *a, const struct record_desc *b)
{
    int head_a, head_b, digits_a, digits_b;
    return a->kind == b->kind && strcmp(a->unit, b->unit) == 0 && strcmp(a->help, b->help) == 0 &&
           find_number(a->name, &head_a, &digits_a) && find_number(b->name, &head_b, &digits_b) &&
           head_a == head_b && strncmp(a->name, b->name, (size_t)head_a) == 0 &&
           strcmp(a->name + head_a + digits_a, b->name + head_b + digits_b) == 0 &&
           atoi(b->name + head_b) == atoi(a->name + head_a) + 1;
}

static const struct record_desc *following(const struct record_desc *records,
                                           const struct record_desc *record)
{
    for (; records->name != NULL; records++)
        if (follows(record, records))
            return records;
    return NULL;
}

static const struct record_desc *preceding(const struct record_desc *records,
                                           const struct record_desc *record)
{
    for (; records->name != NULL; records++)
        if (follows(records, record))
            return records;
    return NULL;
}

/* The name of a row: "c{00..31}.iops" for the first of at least FOLDED_MIN that are numbered in
 * turn, NULL for the others of these. */
static char *record_name(const struct record_desc *records, const struct record_desc *record)
{
    const struct record_desc *first = record, *last = record, *next;
    unsigned n = 1;
    int n_head, n_digits, last_head, last_digits;
    for (; (next = preceding(records, first)) != NULL; n++)
        first = next;
    for (; (next = following(records, last)) != NULL; n++)
        last = next;
    if (n < FOLDED_MIN)
        return g_strdup(record->name);
    if (first != record)
        return NULL;
    find_number(first->name, &n_head, &n_digits);
    find_number(last->name, &last_head, &last_digits);
    return g_strdup_printf("%.*s{%.*s..%.*s}%s", n_head, first->name, n_digits,
                           first->name + n_head, last_digits, last->name + last_head,
                           first->name + n_head + n_digits);
}

static void add_records(struct cli_table *table, const struct record_desc *records)
{
    static const char *const kinds[] = { "value", "histogram", "series" };
    for (const struct record_desc *record = records; record->name != NULL; record++) {
        g_autofree char *name = record_name(records, record);
        if (name == NULL)
            continue;
        cli_table_cell(table, "%s", name);
        cli_table_cell(table, "%s", kinds[record->kind]);
        cli_table_cell(table, "%s", record->unit);
        cli_table_cell(table, "%s", record->help);
    }
}

static void print_records(const struct describe_entry *entry)
{
    struct cli_table *table = cli_table_new("metric|kind|unit|meaning");
    add_records(table, entry->records);
    if (entry->world != NULL)
        add_records(table, entry->world);
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
}

static void print_entry(const struct describe_entry *entry)
{
    g_autofree char *title = g_strdup_printf("%s: %s", entry->name, entry->help);
    cli_print_words(title, 4);
    if (entry->params != NULL && entry->params->type != PARAM_END) {
        printf("\n");
        print_params(entry->params);
    }
    if (entry->stats != NULL && entry->stats->kind != STAT_END) {
        printf("\n");
        print_stats(entry->stats);
    }
    if (entry->records != NULL) {
        printf("\n");
        print_records(entry);
    }
}

static void print_names(const GArray *entries)
{
    struct cli_table *table = cli_table_new("name|>parameters|>statistics|what it is");
    for (guint i = 0; i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        unsigned n_params = 0, n_stats = 0;
        const struct stat_desc *stat = entry->stats;
        while (entry->params != NULL && entry->params[n_params].type != PARAM_END)
            n_params++;
        for (; stat != NULL && stat->kind != STAT_END; stat++)
            n_stats += stat->part == 0 ? 1 : 0;
        cli_table_cell(table, "%s", entry->name);
        cli_table_cell(table, "%u", n_params);
        cli_table_cell(table, "%u", n_stats);
        cli_table_cell(table, "%s", entry->help);
    }
    cli_table_print(table, "", stdout);
    cli_table_free(table);
}

static const struct describe_entry *find(const GArray *entries, const char *name)
{
    g_autofree const char **names = g_new0(const char *, entries->len + 1);
    const struct describe_entry *found = NULL;
    for (guint i = 0; i < entries->len && found == NULL; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        names[i] = entry->name;
        if (strcmp(entry->name, name) == 0)
            found = entry;
    }
    if (found == NULL) {
        const char *last = strrchr(name, '.'); /* pcie.link is called link */
        const char *nearest = sim_nearest_name(name, names);
        if (nearest == NULL && last != NULL)
            nearest = sim_nearest_name(last + 1, names);
        fprintf(stderr, "nudma describe: nothing is called \"%s\"%s%s%s\n", name,
                nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                nearest != NULL ? "\"?" : " (nudma describe lists all)");
    }
    return found;
}

static int describe_names(const GArray *entries, char **names, bool all)
{
    bool known = true;
    for (char **name = names; *name != NULL; name++)
        known = find(entries, *name) != NULL && known;
    if (!known)
        return CLI_WRONG;
    for (char **name = names; *name != NULL; name++) {
        print_entry(find(entries, *name));
        if (name[1] != NULL)
            printf("\n");
    }
    for (guint i = 0; all && i < entries->len; i++) {
        printf("%s", i > 0 ? "\n" : "");
        print_entry(&g_array_index(entries, struct describe_entry, i));
    }
    if (*names == NULL && !all)
        print_names(entries);
    return CLI_DONE;
}

int cli_describe(int argc, char **argv)
{
    struct cli_options options = { .no_db = true };
    gboolean all = FALSE;
    const GOptionEntry entries[] = {
        { "all", 0, 0, G_OPTION_ARG_NONE, &all, "Describe everything", NULL },
        { .long_name = NULL },
    };
    int status = CLI_DONE;
    if (cli_parse(&options, "[NAME...]",
                  "Describes device models, parts of a host and workloads: their parameters with "
                  "unit, default,\nrange, provenance and source, and their statistics.",
                  "Without NAME: what there is.", entries, argc, argv, &status)) {
        g_autoptr(GArray) known = collect();
        status = describe_names(known, options.arguments, all);
    }
    cli_options_release(&options);
    return status;
}
