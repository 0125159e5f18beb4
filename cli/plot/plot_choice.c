/* Which of a scenario's metrics are shown where nothing is asked for. */
#include <string.h>

#include "cli/plot/plot_choice.h"
#include "cli/plot/plot_spec.h"

#define MAX_METRICS 6 /* of a scenario that does not plot any */

static void keep(struct result_set *set, const struct plot_figure *figure)
{
    for (guint i = set->metrics->len; i-- > 0;) {
        const char *name = result_metric(set, i)->name;
        if (figure != NULL ? !plot_figure_shows(figure, name) : strchr(name, '.') != NULL)
            g_array_remove_index(set->metrics, i);
    }
}

static bool any_plotted(const struct result_set *set, const struct plot_figure *figure)
{
    for (guint i = 0; i < set->metrics->len; i++) {
        if (plot_figure_shows(figure, result_metric(set, i)->name))
            return true;
    }
    return false;
}

void plot_keep_metrics(struct result_set *set, struct scenario *scenario)
{
    struct sim_error_list errors = { 0 };
    struct plot_figure figure = { 0 };
    if (scenario != NULL && plot_figure_read(scenario, &figure, &errors) &&
        any_plotted(set, &figure)) {
        keep(set, &figure);
    } else {
        keep(set, NULL);
        if (set->metrics->len > MAX_METRICS)
            g_array_set_size(set->metrics, MAX_METRICS);
    }
    if (scenario != NULL)
        plot_figure_release(&figure);
    sim_error_release(&errors);
}
