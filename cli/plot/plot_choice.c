/* Which of a scenario's metrics are shown where nothing is asked for. */
#include <string.h>

#include "cli/plot/plot_choice.h"
#include "cli/plot/plot_spec.h"
#include "sim/config/unit.h"

#define MAX_METRICS 6 /* of a scenario whose plot shows none */

/* "latency_p50_ns" -> "latency_p50", and the unit; g_free(). A name that does not end in a unit is
 * whole, with *unit NULL. */
static char *without_unit(const char *name, const struct unit **unit)
{
    const char *last = strrchr(name, '_');
    *unit = last != NULL ? unit_find(last + 1) : NULL;
    return *unit != NULL ? g_strndup(name, (gsize)(last - name)) : g_strdup(name);
}

static bool is_statistic(const char *word)
{
    static const char *const words[] = { "mean", "stddev", "min", "max", NULL };
    return g_strv_contains(words, word) ||
           (*word == 'p' && word[1] != '\0' && strspn(word + 1, "0123456789") == strlen(word + 1));
}

/* "reader.latency_p99_ns" is of the histogram "reader.latency_ns", "switch_max_us" of
 * "switch_ns". */
static bool is_of_histogram(const char *metric, const char *histogram)
{
    const struct unit *unit, *its_unit;
    g_autofree char *stem = without_unit(histogram, &unit), *name = without_unit(metric, &its_unit);
    char *last = strrchr(name, '_');
    if (unit == NULL || its_unit == NULL || unit->dimension != its_unit->dimension)
        return false;
    if (last != NULL && strcmp(name, stem) != 0 && is_statistic(last + 1))
        *last = '\0';
    return strcmp(name, stem) == 0;
}

/* It sums up samples of which the figure shows the distribution. */
static bool is_of_samples(const struct plot_figure *figure, const char *metric)
{
    for (guint i = 0; i < figure->panels->len; i++) {
        const struct plot_spec *spec = figure->panels->pdata[i];
        const bool samples = spec->kind == PLOT_CDF || plot_is_distribution(spec);
        for (guint k = 0; samples && k < spec->metrics->len; k++)
            if (is_of_histogram(metric, spec->metrics->pdata[k]))
                return true;
    }
    return false;
}

/* The metrics that the figure shows. If it shows none, a few: first what sums up its samples, then
 * others that are of no part. */
static void keep(struct result_set *set, const struct plot_figure *figure)
{
    const guint n = set->metrics->len;
    g_autofree bool *kept = g_new0(bool, n + 1);
    guint n_kept = 0;
    for (guint i = 0; figure != NULL && i < n; i++)
        n_kept += kept[i] = plot_figure_shows(figure, result_metric(set, i)->name);
    const bool few = n_kept == 0;
    for (guint i = 0; few && figure != NULL && i < n && n_kept < MAX_METRICS; i++)
        n_kept += kept[i] = is_of_samples(figure, result_metric(set, i)->name);
    for (guint i = 0; few && i < n && n_kept < MAX_METRICS; i++)
        if (!kept[i] && strchr(result_metric(set, i)->name, '.') == NULL)
            n_kept += kept[i] = true;
    for (guint i = n; i-- > 0;)
        if (!kept[i])
            g_array_remove_index(set->metrics, i);
}

void plot_keep_metrics(struct result_set *set, struct scenario *scenario)
{
    struct sim_error_list errors = { 0 };
    struct plot_figure figure = { 0 };
    const bool read = scenario != NULL && plot_figure_read(scenario, &figure, &errors);
    keep(set, read ? &figure : NULL);
    if (scenario != NULL)
        plot_figure_release(&figure);
    sim_error_release(&errors);
}
