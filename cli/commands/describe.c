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
        const struct describe_entry entry = { .name = ops->type,
                                              .help = ops->help,
                                              .kind = DESCRIBE_DEVICE,
                                              .params = ops->params,
                                              .stats = ops->stats };
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

static bool any_params(const struct describe_entry *entry)
{
    return entry->settings != NULL || (entry->params != NULL && entry->params->type != PARAM_END);
}

/* key NULL: all. */
static void add_settings(struct cli_table *table, const struct setting_desc *settings,
                         const char *key)
{
    for (; settings != NULL && settings->key != NULL; settings++) {
        if (key != NULL && strcmp(settings->key, key) != 0)
            continue;
        cli_table_cell(table, "%s", settings->key);
        cli_table_cell(table, "-");
        cli_table_cell(table, "%s", settings->def);
        cli_table_cell(table, "%s", settings->expected);
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
        cli_table_cell(table, "%s", settings->help);
    }
}

/* The same. */
static void print_params(const struct describe_entry *entry, const char *key)
{
    struct cli_table *table =
        cli_table_new("parameter|unit|default|range|provenance|source|meaning");
    const struct param_desc *desc = entry->params;
    add_settings(table, entry->settings, key);
    for (; desc != NULL && desc->type != PARAM_END; desc++) {
        if (key != NULL && strcmp(desc->key, key) != 0)
            continue;
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

/* Of the statistic `only`, of this very name; NULL: of all. */
static void print_stats(const struct stat_desc *stats, const char *only)
{
    static const char *const kinds[] = { "",          "counter", "rate", "mean",
                                         "histogram", "maximum", "bound" };
    struct cli_table *table = cli_table_new("statistic|kind|unit|meaning");
    for (const struct stat_desc *stat = stats; stat->kind != STAT_END; stat++) {
        if (only != NULL ? strcmp(stat->name, only) != 0 : stat->part > 0)
            continue;
        g_autofree char *name = only != NULL ? g_strdup(only) : stat_name(stat);
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

/* Without the mark that says what becomes of a program's name (docs/results.md). */
static const char *bare_name(const struct record_desc *record)
{
    return record->name + (*record->name == '+' || *record->name == '.' ? 1 : 0);
}

/* Of the metric `only`; NULL: of all. */
static void add_records(struct cli_table *table, const struct record_desc *records,
                        const char *only)
{
    static const char *const kinds[] = { "value", "histogram", "series" };
    for (const struct record_desc *record = records; record->name != NULL; record++) {
        if (only != NULL && strcmp(bare_name(record), only) != 0)
            continue;
        g_autofree char *name = only != NULL ? g_strdup(record->name)
                                             : record_name(records, record);
        if (name == NULL)
            continue;
        cli_table_cell(table, "%s", name);
        cli_table_cell(table, "%s", kinds[record->kind]);
        cli_table_cell(table, "%s", record->unit);
        cli_table_cell(table, "%s", record->help);
    }
}

static void print_records(const struct describe_entry *entry, const char *only)
{
    struct cli_table *table = cli_table_new("metric|kind|unit|meaning");
    add_records(table, entry->records, only);
    if (entry->world != NULL)
        add_records(table, entry->world, only);
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
}

/* What a `type` may be. */
static void print_types(const GArray *entries, enum describe_kind kind)
{
    struct cli_table *table = cli_table_new("type|what it is");
    for (guint i = 0; i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        if (entry->kind != kind)
            continue;
        cli_table_cell(table, "%s", entry->name);
        cli_table_cell(table, "%s", entry->help);
    }
    cli_table_print(table, "  ", stdout);
    cli_table_free(table);
}

static void add_keys(GPtrArray *keys, const struct describe_entry *entry)
{
    for (const struct setting_desc *s = entry->settings; s != NULL && s->key != NULL; s++)
        g_ptr_array_add(keys, (gpointer)(uintptr_t)s->key);
    for (const struct param_desc *desc = entry->params; desc != NULL && desc->type != PARAM_END;
         desc++)
        g_ptr_array_add(keys, (gpointer)(uintptr_t)desc->key);
}

/* The entry of what all of this kind have; NULL: they have nothing. */
static const struct describe_entry *find_common(const GArray *entries, enum describe_kind kind)
{
    for (guint i = 0; kind != DESCRIBE_PART && i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        if (entry->types == kind)
            return entry;
    }
    return NULL;
}

/* "and what every device has: type, integrated (nudma describe device)" */
static void print_common(const struct describe_entry *common)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    add_keys(keys, common);
    g_ptr_array_add(keys, NULL);
    g_autofree char *names = g_strjoinv(", ", (char **)keys->pdata);
    g_autofree char *line = g_strdup_printf("\n  and what every %s has: %s (nudma describe %s)",
                                            common->name, names, common->name);
    cli_print_words(line, 4);
}

static void print_entry(const GArray *entries, const struct describe_entry *entry)
{
    const struct describe_entry *common = find_common(entries, entry->kind);
    g_autofree char *title = g_strdup_printf("%s: %s", entry->name, entry->help);
    cli_print_words(title, 4);
    if (any_params(entry)) {
        printf("\n");
        print_params(entry, NULL);
    }
    if (common != NULL)
        print_common(common);
    if (entry->types != DESCRIBE_PART) {
        printf("\n");
        print_types(entries, entry->types);
    }
    if (entry->stats != NULL && entry->stats->kind != STAT_END) {
        printf("\n");
        print_stats(entry->stats, NULL);
    }
    if (entry->records != NULL) {
        printf("\n");
        print_records(entry, NULL);
    }
}

static void print_names(const GArray *entries)
{
    struct cli_table *table = cli_table_new("name|>parameters|>statistics|what it is");
    for (guint i = 0; i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        unsigned n_params = 0, n_settings = 0, n_stats = 0;
        const struct stat_desc *stat = entry->stats;
        for (const struct setting_desc *s = entry->settings; s != NULL && s->key != NULL; s++)
            n_settings++;
        while (entry->params != NULL && entry->params[n_params].type != PARAM_END)
            n_params++;
        for (; stat != NULL && stat->kind != STAT_END; stat++)
            n_stats += stat->part == 0 ? 1 : 0;
        cli_table_cell(table, "%s", entry->name);
        cli_table_cell(table, "%u", n_settings + n_params);
        cli_table_cell(table, "%u", n_stats);
        cli_table_cell(table, "%s", entry->help);
    }
    cli_table_print(table, "", stdout);
    cli_table_free(table);
}

/* ---- What the arguments name ----------------------------------------------------------------- */

struct answer {
    const struct describe_entry *entry;
    const char *key;    /* of this parameter alone; NULL: all of it */
    const char *metric; /* of this metric or statistic alone; the same */
};

static const struct describe_entry *find(const GArray *entries, const char *name)
{
    for (guint i = 0; i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

/* The parameter's own name, which lives as long as the table; NULL: it has none of this name. */
static const char *find_key(const struct describe_entry *entry, const char *key)
{
    const struct setting_desc *setting = entry->settings;
    const struct param_desc *desc = entry->params;
    for (; setting != NULL && setting->key != NULL; setting++)
        if (strcmp(setting->key, key) == 0)
            return setting->key;
    for (; desc != NULL && desc->type != PARAM_END; desc++)
        if (strcmp(desc->key, key) == 0)
            return desc->key;
    return NULL;
}

/* Whether the group of a path is what the entry is about: by its name, or by the groups that its
 * help names ("a cable's link: settings of `cables`"). */
static bool stands_in(const struct describe_entry *entry, const char *group)
{
    g_autofree char *quoted = g_strdup_printf("`%s`", group);
    static const struct {
        const char *group;
        enum describe_kind kind;
    } kinds[] = { { "devices", DESCRIBE_DEVICE },
                  { "programs", DESCRIBE_PROGRAM },
                  { "workload", DESCRIBE_WORKLOAD } };
    for (size_t i = 0; i < SIM_N_ELEMENTS(kinds); i++)
        if (entry->kind == kinds[i].kind && strcmp(group, kinds[i].group) == 0)
            return true;
    return strcmp(entry->name, group) == 0 || strstr(entry->help, quoted) != NULL;
}

/* What stands before the setting's own name: the entry of that name ("pcie.requester" of
 * "pcie.requester.lanes"), or the innermost group's; NULL: none, or a device, whose name is the
 * scenario's. */
static const struct describe_entry *find_group(const GArray *entries, char **parts, guint n)
{
    if (n < 2)
        return NULL;
    g_autofree char *path = g_strjoinv(".", parts);
    path[strlen(path) - strlen(parts[n - 1]) - 1] = '\0';
    const struct describe_entry *entry = find(entries, path);
    const bool is_device = n == 3 && strcmp(parts[0], "devices") == 0;
    if (entry == NULL && !is_device)
        entry = find(entries, parts[n - 2]);
    return entry != NULL && entry->types == DESCRIBE_PART ? entry : NULL; /* of "workload": any */
}

/* Of a path as --set takes it, the entries with such a setting: that of find_group(), so
 * "hosts.server.cache.llc_ways" that of cache; else those that the innermost of its groups names;
 * if none does, all that have it, but for paths into hosts, devices and entries without it. */
static void find_setting(const GArray *entries, char **parts, guint n, GArray *answers)
{
    const struct describe_entry *group = find_group(entries, parts, n);
    const struct describe_entry *common = group != NULL ? find_common(entries, group->kind) : NULL;
    struct answer own = { .entry = group,
                          .key = group != NULL ? find_key(group, parts[n - 1]) : NULL };
    if (own.key == NULL && common != NULL)
        own = (struct answer){ .entry = common, .key = find_key(common, parts[n - 1]) };
    const bool named = n > 1 && (group != NULL || strcmp(parts[0], "hosts") == 0 ||
                                 strcmp(parts[0], "devices") == 0);
    if (own.key != NULL) {
        g_array_append_val(answers, own);
        return;
    }
    guint known_at = named ? 1 : 0; /* groups: 1 for the outermost */
    for (guint i = 0; i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        const struct answer answer = { .entry = entry, .key = find_key(entry, parts[n - 1]) };
        guint at = n - 1;
        while (at > 0 && !stands_in(entry, parts[at - 1]))
            at--;
        if (answer.key == NULL || at < known_at)
            continue;
        if (at > known_at)
            g_array_set_size(answers, 0);
        known_at = at;
        g_array_append_val(answers, answer);
    }
}

/* "hosts.a.ports[0].lanes=8" -> "hosts", "a", "ports", "lanes" */
static char **path_parts(const char *path)
{
    g_autofree char *names = g_strndup(path, strcspn(path, "="));
    char **parts = g_strsplit(names, ".", -1);
    for (char **part = parts; *part != NULL; part++)
        (*part)[strcspn(*part, "[")] = '\0';
    return parts;
}

/* Of a path that no entry has: the nearest setting of the entry that its last group names, or of
 * all. False without a message: there is none. */
static bool report_setting(const GArray *entries, const char *name, char **parts, guint n)
{
    const struct describe_entry *group = find_group(entries, parts, n), *owner = NULL;
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    const bool of_device = group == NULL && strcmp(parts[0], "devices") == 0;
    for (guint i = 0; i < entries->len; i++) {
        const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
        if (group != NULL ? entry == group : !of_device || stands_in(entry, parts[0]))
            add_keys(keys, entry);
    }
    g_ptr_array_add(keys, NULL);
    const char *nearest = sim_nearest_name(parts[n - 1], (const char *const *)keys->pdata);
    for (guint i = 0; nearest != NULL && strcmp(nearest, parts[n - 1]) == 0 && owner == NULL; i++)
        if (find_key(&g_array_index(entries, struct describe_entry, i), nearest) != NULL)
            owner = &g_array_index(entries, struct describe_entry, i); /* it stands elsewhere */
    if (nearest != NULL)
        fprintf(stderr, "nudma describe: \"%s\": %s%s no such setting; did you mean \"%s%s%s\"?\n",
                name, group != NULL ? group->name : "there is", group != NULL ? " has" : "",
                owner != NULL ? owner->name : "", owner != NULL ? "." : "", nearest);
    else if (group != NULL)
        fprintf(stderr,
                "nudma describe: \"%s\": %s has no such setting (nudma describe %s lists all)\n",
                name, group->name, group->name);
    return nearest != NULL || group != NULL;
}

/* Groups of a scenario whose tables are in the documentation. False without a message: none. */
static bool report_documented(const char *name, const char *group)
{
    static const char *const pages[][2] = {
        { "plot", "docs/commands.md#plot-figures" },
        { "axes", "docs/scenario-files.md#axes-and-points" },
        { "constraints", "docs/scenario-files.md#axes-and-points" },
        { "where", "docs/scenario-files.md#axes-and-points" },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(pages); i++) {
        if (strcmp(group, pages[i][0]) != 0)
            continue;
        fprintf(stderr, "nudma describe: \"%s\": the settings of `%s` are in %s\n", name, group,
                pages[i][1]);
        return true;
    }
    return false;
}

static void report_unknown(const GArray *entries, const char *name, char **parts, guint n)
{
    g_autofree const char **names = g_new0(const char *, entries->len + 1);
    for (guint i = 0; i < entries->len; i++)
        names[i] = g_array_index(entries, struct describe_entry, i).name;
    const bool is_path = n > 2 || (n == 2 && find(entries, parts[0]) != NULL);
    if ((n > 0 && report_documented(name, parts[0])) ||
        (is_path && report_setting(entries, name, parts, n)))
        return;
    if (is_path && strcmp(parts[0], "devices") == 0) {
        fprintf(stderr,
                "nudma describe: \"%s\": no device has such a setting (nudma describe TYPE lists "
                "those of a type)\n",
                name);
        return;
    }
    const char *nearest = sim_nearest_name(name, names);
    if (nearest == NULL && n > 1)
        nearest = sim_nearest_name(parts[n - 1], names); /* pcie.lnk: it is called link */
    fprintf(stderr, "nudma describe: nothing is called \"%s\"%s%s%s\n", name,
            nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "\"?" : " (nudma describe lists all)");
}

/* The entry of what the scenario gives a name in that group: "devices.ssd" is a device. */
static const struct describe_entry *find_named(const GArray *entries, const char *group)
{
    static const char *const groups[][2] = { { "hosts", "host" },
                                             { "devices", "device" },
                                             { "programs", "program" },
                                             { "cables", "cable" } };
    for (size_t i = 0; i < SIM_N_ELEMENTS(groups); i++)
        if (strcmp(group, groups[i][0]) == 0)
            return find(entries, groups[i][1]);
    return NULL;
}

static bool any_record(const struct record_desc *records, const char *metric)
{
    for (; records != NULL && records->name != NULL; records++)
        if (strcmp(bare_name(records), metric) == 0)
            return true;
    return false;
}

static bool has_stat(const struct describe_entry *entry, const char *metric)
{
    for (const struct stat_desc *stat = entry->stats; stat != NULL && stat->kind != STAT_END;
         stat++)
        if (strcmp(stat->name, metric) == 0)
            return true;
    return false;
}

/* What records a metric of results: "iops", "fio.iops", "nic.pf0_rx_bytes", where what stands before
 * its name is the scenario's, or an entry that has it. */
static void find_metric(const GArray *entries, const char *name, GArray *answers)
{
    for (const char *metric = name; metric != NULL && answers->len == 0;) {
        for (guint i = 0; i < entries->len; i++) {
            const struct describe_entry *entry = &g_array_index(entries, struct describe_entry, i);
            const struct answer answer = { .entry = entry, .metric = metric };
            if (!any_record(entry->records, metric) && !any_record(entry->world, metric) &&
                !has_stat(entry, metric))
                continue;
            const size_t n_before = (size_t)(metric - name);
            if (n_before == strlen(entry->name) + 1 &&
                strncmp(name, entry->name, n_before - 1) == 0) {
                g_array_set_size(answers, 0);
                g_array_append_val(answers, answer);
                return;
            }
            g_array_append_val(answers, answer);
        }
        metric = strchr(metric, '.');
        metric = metric != NULL ? metric + 1 : NULL;
    }
}

/* False with a message: it names nothing. */
static bool add_answers(const GArray *entries, const char *name, GArray *answers)
{
    g_auto(GStrv) parts = path_parts(name);
    const guint n = g_strv_length(parts);
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(struct answer));
    struct answer whole = { .entry = find(entries, name) };
    if (n > 1 && report_documented(name, parts[0]))
        return false;
    if (whole.entry == NULL && n > 0)
        find_setting(entries, parts, n, found);
    if (whole.entry == NULL && found->len == 0 && n > 1)
        whole.entry = find(entries, parts[n - 1]); /* a group: "hosts.server.cache" */
    if (whole.entry == NULL && found->len == 0 && n == 2)
        whole.entry = find_named(entries, parts[0]);
    if (whole.entry != NULL)
        g_array_append_val(found, whole);
    if (found->len == 0)
        find_metric(entries, name, found);
    if (found->len == 0)
        report_unknown(entries, name, parts, n);
    g_array_append_vals(answers, found->data, found->len);
    return found->len > 0;
}

static void print_answer(const GArray *entries, const struct answer *answer)
{
    if (answer->key == NULL && answer->metric == NULL) {
        print_entry(entries, answer->entry);
        return;
    }
    g_autofree char *title = g_strdup_printf("%s: %s", answer->entry->name, answer->entry->help);
    cli_print_words(title, 4);
    printf("\n");
    if (answer->metric != NULL && has_stat(answer->entry, answer->metric))
        print_stats(answer->entry->stats, answer->metric);
    else if (answer->metric != NULL)
        print_records(answer->entry, answer->metric);
    if (answer->metric != NULL)
        return;
    print_params(answer->entry, answer->key);
    if (answer->entry->types != DESCRIBE_PART && strcmp(answer->key, "type") == 0) {
        printf("\n");
        print_types(entries, answer->entry->types);
    }
}

static int describe_names(const GArray *entries, char **names, bool all)
{
    g_autoptr(GArray) answers = g_array_new(FALSE, FALSE, sizeof(struct answer));
    bool known = true;
    for (char **name = names; *name != NULL; name++)
        known = add_answers(entries, *name, answers) && known;
    if (!known)
        return CLI_WRONG;
    for (guint i = 0; i < answers->len; i++) {
        printf("%s", i > 0 ? "\n" : "");
        print_answer(entries, &g_array_index(answers, struct answer, i));
    }
    for (guint i = 0; all && i < entries->len; i++) {
        printf("%s", i > 0 ? "\n" : "");
        print_entry(entries, &g_array_index(entries, struct describe_entry, i));
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
    if (cli_parse(
            &options, "[NAME...]",
            "Describes device models, parts of a host and workloads: their parameters with "
            "unit, default,\nrange, provenance and source, and their statistics.",
            "NAME may be a setting, as --set takes it, or a metric. Without NAME: what there is.",
            entries, argc, argv, &status)) {
        g_autoptr(GArray) known = collect();
        status = describe_names(known, options.arguments, all);
    }
    cli_options_release(&options);
    return status;
}
