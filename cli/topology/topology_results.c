/* How busy the links of a topology were in a run, and the colours for that. */
#include <math.h>

#include "cli/topology/topology_dot.h"
#include "sim/store/query.h"

/* "v('a', 'b', 'c')", quoted for SQL. */
static double value_of(struct results_db *db, const char *scenario, const char *point,
                       const char *metric)
{
    const char *const words[] = { scenario, point, metric };
    g_autoptr(GString) expression = g_string_new("v(");
    g_autofree char *message = NULL;
    double value = (double)NAN;
    for (int i = 0; i < 3; i++) {
        g_auto(GStrv) parts = g_strsplit(words[i], "'", -1);
        g_autofree char *quoted = g_strjoinv("''", parts);
        g_string_append_printf(expression, "%s'%s'", i > 0 ? ", " : "", quoted);
    }
    g_string_append_c(expression, ')');
    return results_evaluate(db, expression->str, &value, &message) ? value : (double)NAN;
}

static void read_end(struct topology *t, struct topology_cable *cable,
                     const struct topology_end *end, struct results_db *db, const char *scenario,
                     const char *point)
{
    g_autofree char *name = topology_end_text(t, end);
    g_autofree char *metric = g_strconcat(name, ".tx.utilization_ratio", NULL);
    const double busy = value_of(db, scenario, point, metric);
    if (!isfinite(busy) || (isfinite(cable->busy) && cable->busy >= busy))
        return;
    cable->busy = busy;
    g_snprintf(cable->busy_text, sizeof(cable->busy_text), "%.3g %% sent by %s",
               100.0 * fmin(busy, 1.0), name);
}

unsigned topology_read_results(struct topology *t, struct results_db *db, const char *scenario,
                               const char *point)
{
    GArray *const lists[] = { t->cables, t->wires };
    unsigned n = 0;
    for (int k = 0; k < 2; k++)
        for (guint c = 0; c < lists[k]->len; c++) {
            struct topology_cable *cable = TOPOLOGY_AT(lists[k], cable, c);
            read_end(t, cable, &cable->from, db, scenario, point);
            read_end(t, cable, &cable->to, db, scenario, point);
            n += isfinite(cable->busy) ? 1u : 0u;
        }
    return n;
}

/* From grey over blue and amber to red, told apart without colours by their width. */
const char *topology_dot_busy(const struct topology_cable *cable)
{
    static const struct {
        double from;
        const char *attributes;
    } steps[] = {
        { 0.9, ", color=\"#b2182b\", penwidth=5" },
        { 0.6, ", color=\"#d9730d\", penwidth=4" },
        { 0.3, ", color=\"#2b6cb0\", penwidth=3" },
        { 0.0, ", color=\"#8a939c\", penwidth=1.5" },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(steps); i++)
        if (cable->busy >= steps[i].from)
            return steps[i].attributes;
    return "";
}
