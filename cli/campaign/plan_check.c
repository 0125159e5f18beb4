/*
 * Checking points in several processes: a child checks a part of them and sends their hashes back.
 * It says nothing else: if it finds a mistake, or files that runs write, or does not get to its
 * end, its part is checked again by the process that asked, so that mistakes are the same, and in
 * the same order, as without it.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/blame.h"
#include "cli/base/point_name.h"
#include "cli/campaign/plan.h"
#include "workloads/experiment.h"

#define PART_POINTS 32 /* a child for fewer would cost more than it saves */

struct part {
    guint first, end; /* points */
    pid_t pid;        /* 0: no child */
    int fd;           /* from which their hashes are read */
};

static void free_output(gpointer pointer)
{
    struct plan_output *output = pointer;
    g_free(output->file);
    g_free(output->path);
    g_free(output->written_in);
}

static void take_outputs(struct plan_point *point, const struct config *config)
{
    const struct config_output *o;
    for (unsigned i = 0; (o = config_output_at(config, i)) != NULL; i++) {
        const struct plan_output output = { g_strdup(o->file), g_strdup(config_path(o->node)),
                                            g_strdup(config_file(o->node)), config_line(o->node) };
        if (point->outputs == NULL) {
            point->outputs = g_array_new(FALSE, FALSE, sizeof(struct plan_output));
            g_array_set_clear_func(point->outputs, free_output);
        }
        g_array_append_val(point->outputs, output);
    }
}

static void check_point(struct plan_point *point, bool print, struct sim_error_list *errors)
{
    struct config *config = scenario_point(point->scenario, point->index, errors);
    if (config == NULL)
        return;
    if (experiment_check(config, errors)) {
        config_sha256(config, point->config_sha256);
        g_clear_pointer(&point->outputs, g_array_unref);
        take_outputs(point, config);
        if (print) {
            printf("# %s %s\n", scenario_name(point->scenario), plan_point_name(point));
            config_print(config, stdout);
        }
    }
    config_free(config);
}

static void note_mistaken(GHashTable *mistaken, guint point, const struct sim_error_list *errors)
{
    for (size_t i = 0; i < errors->n_messages; i++) {
        GArray *points = g_hash_table_lookup(mistaken, errors->message[i]);
        if (points == NULL) {
            points = g_array_new(FALSE, FALSE, sizeof(guint));
            g_hash_table_insert(mistaken, g_strdup(errors->message[i]), points);
        }
        g_array_append_val(points, point);
    }
}

/* mistaken: the points that have each message, GArray of guint; NULL: nobody asks, and the messages
 * need not say which --set they are of. */
static void check_part(const struct plan *plan, const struct part *part, bool print,
                       GHashTable *mistaken, struct sim_error_list *errors)
{
    g_autoptr(GHashTable) places = cli_places_new();
    for (guint i = part->first; i < part->end; i++) {
        const struct plan_point *point = plan_point(plan, i);
        struct sim_error_list own = { 0 };
        check_point(plan_point(plan, i), print, &own);
        if (mistaken != NULL) {
            cli_blame_sets(point->scenario, point->index, places, &own);
            note_mistaken(mistaken, i, &own);
        }
        sim_error_move(errors, &own);
        if (errors->n_messages > SIM_ERRORS_PRINTED) /* nobody reads those of the other points */
            return;
    }
}

/* ---- Which points a mistake is of ------------------------------------------------------------ */

/* Adds the values that the point's axes have to values: by axis a GPtrArray of texts. */
static void add_values(GHashTable *values, const struct plan_point *point)
{
    g_auto(GStrv) words = point_split(plan_point_name(point));
    for (char **word = words; *word != NULL; word += 2) {
        GPtrArray *known = g_hash_table_lookup(values, word[0]);
        if (known == NULL) {
            known = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(values, g_strdup(word[0]), known);
        }
        if (!g_ptr_array_find_with_equal_func(known, word[1], g_str_equal, NULL))
            g_ptr_array_add(known, g_strdup(word[1]));
    }
}

static void free_values(gpointer values)
{
    g_ptr_array_free(values, TRUE);
}

static GHashTable *values_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_values);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

/* Whether the points that have one of these values of the axis are as many as n. */
static bool axis_alone(const struct plan *plan, GHashTable *scenarios, const char *axis,
                       const GPtrArray *values, guint n)
{
    guint n_found = 0;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        if (!g_hash_table_contains(scenarios, point->scenario))
            continue;
        g_auto(GStrv) words = point_split(plan_point_name(point));
        for (char **word = words; *word != NULL; word += 2)
            n_found += strcmp(word[0], axis) == 0 &&
                       g_ptr_array_find_with_equal_func((GPtrArray *)values, word[1], g_str_equal,
                                                        NULL);
    }
    return n_found == n;
}

#define VALUES_SHOWN 8

static void append_axis(GString *text, const char *axis, const GPtrArray *values)
{
    const guint n_shown = values->len > VALUES_SHOWN + 1 ? VALUES_SHOWN : values->len;
    g_string_append_printf(text, "%s%s=", text->len > 0 ? " " : "", axis);
    for (guint i = 0; i < n_shown; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "," : "", (const char *)values->pdata[i]);
    if (n_shown < values->len)
        g_string_append_printf(text, " and %u more", values->len - n_shown);
}

/* The axes that have fewer values at the points than in their scenarios: "engine=dsa
 * platform=spr,emr"; one alone if that says it. Empty if all points of the scenarios have the
 * mistake. */
static char *restricted_axes(const struct plan *plan, const GArray *points)
{
    g_autoptr(GHashTable) here = values_new(), all = values_new();
    g_autoptr(GHashTable) scenarios = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < points->len; i++) {
        const struct plan_point *point = plan_point(plan, g_array_index(points, guint, i));
        g_hash_table_add(scenarios, point->scenario);
        add_values(here, point);
    }
    guint n_all = 0;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        if (!g_hash_table_contains(scenarios, point->scenario))
            continue;
        add_values(all, point);
        n_all++;
    }
    GString *text = g_string_new(NULL);
    g_autoptr(GList) axes = g_list_sort(g_hash_table_get_keys(here), by_text);
    for (const GList *axis = axes; axis != NULL && points->len < n_all; axis = axis->next) {
        const GPtrArray *values = g_hash_table_lookup(here, axis->data);
        const GPtrArray *known = g_hash_table_lookup(all, axis->data);
        if (values->len == known->len)
            continue;
        const bool alone = axis_alone(plan, scenarios, axis->data, values, points->len);
        g_string_truncate(text, alone ? 0 : text->len);
        append_axis(text, axis->data, values);
        if (alone)
            break;
    }
    if (text->len == 0 && points->len < n_all)
        g_string_assign(text, plan_point_name(plan_point(plan, g_array_index(points, guint, 0))));
    return g_string_free(text, FALSE);
}

/* What not all points of a scenario have, says which do. */
static void name_points(const struct plan *plan, GHashTable *mistaken,
                        struct sim_error_list *errors)
{
    for (size_t i = 0; i < errors->n_messages; i++) {
        const GArray *points = g_hash_table_lookup(mistaken, errors->message[i]);
        g_autofree char *axes = points != NULL ? restricted_axes(plan, points) : NULL;
        if (axes == NULL || *axes == '\0')
            continue;
        g_autofree char *text = g_strdup_printf(" (at %s)", axes);
        sim_error_append(errors, i, text);
    }
}

/* ---- In the child ---------------------------------------------------------------------------- */

static void check_and_send(const struct plan *plan, const struct part *part, int fd)
{
    struct sim_error_list errors = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    check_part(plan, part, false, NULL, &errors);
    if (errors.n_messages > 0)
        _exit(1);
    for (guint i = part->first; i < part->end; i++)
        if (plan_point(plan, i)->outputs != NULL)
            _exit(1);
    for (guint i = part->first; i < part->end; i++) {
        const char *at = plan_point(plan, i)->config_sha256;
        for (size_t left = sizeof(plan_point(plan, i)->config_sha256); left > 0;) {
            const ssize_t written = write(fd, at, left);
            if (written < 0 && errno != EINTR)
                _exit(1);
            at += MAX(written, 0);
            left -= (size_t)MAX(written, 0);
        }
    }
    _exit(0);
}

/* ---- In the process that asked --------------------------------------------------------------- */

/* Without a child the part is checked by this process. */
static void start_child(const struct plan *plan, struct part *part)
{
    int ends[2];
    if (pipe(ends) != 0)
        return;
    part->pid = fork();
    if (part->pid == 0) {
        close(ends[0]);
        check_and_send(plan, part, ends[1]);
    }
    close(ends[1]);
    part->fd = ends[0];
    if (part->pid < 0) {
        part->pid = 0;
        close(part->fd);
    }
}

/* False if there is no child, or if it has not sent all. */
static bool take_hashes(const struct plan *plan, const struct part *part)
{
    if (part->pid == 0)
        return false;
    const size_t n_hash = sizeof(plan_point(plan, 0)->config_sha256);
    const size_t n_bytes = n_hash * (part->end - part->first);
    g_autofree char *hashes = g_malloc(n_bytes);
    size_t n_read = 0;
    ssize_t got = 1;
    while (n_read < n_bytes && (got > 0 || (got < 0 && errno == EINTR))) {
        got = read(part->fd, hashes + n_read, n_bytes - n_read);
        n_read += (size_t)MAX(got, 0);
    }
    close(part->fd);
    waitpid(part->pid, NULL, 0);
    for (guint i = part->first; n_read == n_bytes && i < part->end; i++)
        memcpy(plan_point(plan, i)->config_sha256, hashes + n_hash * (i - part->first), n_hash);
    return n_read == n_bytes;
}

static void free_points(gpointer points)
{
    g_array_free(points, TRUE);
}

static GHashTable *mistaken_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_points);
}

void plan_check_first(const struct plan *plan, struct sim_error_list *errors)
{
    g_autoptr(GHashTable) mistaken = mistaken_new();
    const struct scenario *last = NULL;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct part part = { .first = i, .end = i + 1 };
        if (plan_point(plan, i)->scenario != last)
            check_part(plan, &part, false, mistaken, errors);
        last = plan_point(plan, i)->scenario;
    }
}

void plan_check(struct plan *plan, unsigned n_processes, bool print, struct sim_error_list *errors)
{
    const guint n_points = plan->points->len;
    const guint n_parts = print ? 1 : CLAMP(n_points / PART_POINTS, 1, n_processes);
    g_autofree struct part *parts = g_new0(struct part, n_parts);
    g_autoptr(GHashTable) mistaken = mistaken_new();
    for (guint i = 0; i < n_parts; i++) {
        parts[i].first = (guint)((guint64)n_points * i / n_parts);
        parts[i].end = (guint)((guint64)n_points * (i + 1) / n_parts);
        if (i > 0)
            start_child(plan, &parts[i]);
    }
    for (guint i = 0; i < n_parts; i++) {
        if (!take_hashes(plan, &parts[i]))
            check_part(plan, &parts[i], print, mistaken, errors);
    }
    name_points(plan, mistaken, errors);
}

/* ---- Files that runs write ------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void
overwrites(const struct plan_output *output, struct sim_error_list *errors, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    sim_error_add(errors, output->written_in, output->line, "%s: found \"%s\", %s", output->path,
                  output->file, text);
}

static void check_output(GHashTable *points, const struct plan_point *point,
                         const struct plan_output *output, unsigned n_seeds,
                         struct sim_error_list *errors)
{
    const struct plan_point *other = g_hash_table_lookup(points, output->file);
    if (g_str_has_prefix(output->file, "/dev/"))
        return;
    if (other == point)
        overwrites(output, errors, "which another setting writes, expected a file of its own");
    else if (other != NULL)
        overwrites(output, errors,
                   "which is written by %s and by %s, expected a file for each point: {point} in "
                   "its name is the point's",
                   plan_point_name(other), plan_point_name(point));
    else if (n_seeds > 1 && strstr(output->file, "{seed}") == NULL)
        overwrites(output, errors,
                   "which runs of %u seeds write, expected a file for each: {seed} in its name is "
                   "the run's",
                   n_seeds);
    g_hash_table_insert(points, output->file, (gpointer)point);
}

static bool is_read(const struct plan *plan, const char *db, const char *file)
{
    bool read = cli_same_file(file, db);
    for (guint i = 0; i < plan->scenarios->len && !read; i++)
        read = cli_same_file(file, scenario_path(plan->scenarios->pdata[i]));
    return read;
}

void plan_check_outputs(const struct plan *plan, const char *db, unsigned n_seeds,
                        struct sim_error_list *errors)
{
    g_autoptr(GHashTable) points = g_hash_table_new(g_str_hash, g_str_equal); /* by file */
    const size_t before = errors->n_messages;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct plan_point *point = plan_point(plan, i);
        for (guint k = 0; point->outputs != NULL && k < point->outputs->len; k++) {
            const struct plan_output *output = &g_array_index(point->outputs, struct plan_output,
                                                              k);
            if (errors->n_messages != before)
                return;
            if (is_read(plan, db, output->file))
                overwrites(output, errors,
                           "which is the scenario or the database, expected "
                           "another file");
            else
                check_output(points, point, output, n_seeds, errors);
        }
    }
}
