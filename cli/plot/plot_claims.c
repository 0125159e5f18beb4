/*
 * What claims say of the points of a panel. A claim about one point, v(...), perhaps times or over
 * a number, is an open mark there, or a level, a quantile, a median. A claim that is a ratio,
 * v(...)/v(...) or 1-v(...)/v(...), stands in parentheses behind the simulated ratio, at the point
 * that it says is larger or smaller; the value that this point would have if the published ratio
 * held is a mark beside it, with a bar if a range is published. In a panel of relative values a
 * ratio that is just what is shown is an open mark. What is published in words has no mark; other
 * expressions stand in the line below the figure alone.
 */
#include <math.h>
#include <string.h>

#include "cli/plot/plot_data_internal.h"

#define WORDS_MAX 8 /* of what is published: longer words do not fit at a point */

struct context {
    const struct scenario *scenario;
    const struct plot_spec *spec;
    struct plot_data *data;
    GRegex *form;
    guint first; /* of the curves that stand for claims */
};

/* A claim as far as it can be drawn. */
struct statement {
    const struct claim *claim;
    struct claim_reference of, to; /* to: of a ratio, else empty */
    bool is_ratio;
    double value, lo, hi; /* simulated and published: of the point, or of/to; lo NAN: words */
    const char *words;    /* as published; NULL if that is not about of/to itself */
};

/* ---- Reading the expression ------------------------------------------------------------------ */

static GRegex *claim_form(void)
{
    static const char v[] = "v\\s*\\(\\s*'[^']*'\\s*,\\s*'[^']*'\\s*,\\s*'[^']*'\\s*\\)";
    g_autofree char *pattern =
        g_strdup_printf("^\\s*(1\\s*-\\s*)?%s(\\s*/\\s*%s)?((?:\\s*[*/]\\s*[0-9.]+)*)\\s*$", v, v);
    return g_regex_new(pattern, G_REGEX_CASELESS, 0, NULL);
}

/* "*1.5/2" -> 0.75 */
static double factor_of(const char *text)
{
    double factor = 1.0;
    for (const char *c = text; *c != '\0';) {
        char *end = NULL;
        if (*c != '*' && *c != '/') {
            c++;
            continue;
        }
        const double number = g_ascii_strtod(c + 1, &end);
        factor = *c == '*' ? factor * number : factor / number;
        c = end > c + 1 ? end : c + 1;
    }
    return factor;
}

/* Of "1-of/to" what is published of of/to. */
static void make_complement(struct statement *s)
{
    const double lo = s->lo;
    s->value = 1.0 - s->value;
    s->lo = 1.0 - s->hi;
    s->hi = 1.0 - lo;
    s->words = NULL;
}

/* references: of the claim, which have to live longer. False if it cannot be drawn. */
static bool read_claim(const struct context *c, const struct claim *claim, const GArray *references,
                       struct statement *s)
{
    GMatchInfo *match = NULL;
    const bool matches = references->len > 0 && g_regex_match(c->form, claim->expr, 0, &match);
    if (matches) {
        g_autofree char *one_minus = g_match_info_fetch(match, 1);
        g_autofree char *tail = g_match_info_fetch(match, 3);
        const double factor = factor_of(tail);
        *s = (struct statement){ .claim = claim,
                                 .of = g_array_index(references, struct claim_reference, 0),
                                 .is_ratio = references->len == 2,
                                 .value = claim->value / factor,
                                 .lo = claim->published_lo / factor,
                                 .hi = claim->published_hi / factor,
                                 .words = factor == 1.0 ? claim->published : NULL };
        if (s->is_ratio)
            s->to = g_array_index(references, struct claim_reference, 1);
        if (*one_minus != '\0')
            make_complement(s);
    }
    g_match_info_free(match);
    return matches;
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* A point of the scenario that the panel shows. */
struct place {
    size_t point;
    const char *metric; /* the panel's */
    char *series;       /* owned */
    double x;
};

static bool find_point(const struct context *c, const struct claim_reference *r, size_t *point)
{
    if (strcmp(r->scenario, scenario_name(c->scenario)) != 0)
        return false;
    for (size_t i = 0; i < scenario_n_points(c->scenario); i++) {
        if (c->spec->shown[i] && strcmp(scenario_point_name(c->scenario, i), r->point) == 0) {
            *point = i;
            return true;
        }
    }
    return false;
}

/* Of lines and bars. */
static bool find_place(const struct context *c, const struct claim_reference *r,
                       struct place *place)
{
    const struct plot_spec *spec = c->spec;
    *place = (struct place){ 0 };
    for (guint i = 0; i < spec->metrics->len; i++)
        if (strcmp(spec->metrics->pdata[i], r->metric) == 0)
            place->metric = spec->metrics->pdata[i];
    if (place->metric == NULL || !find_point(c, r, &place->point) ||
        !plot_data_to_x(c->data, plot_axis_value(c->scenario, place->point, spec->x), &place->x))
        return false;
    place->series = plot_series_name(spec, c->scenario, place->point);
    return true;
}

/* ---- Marks ----------------------------------------------------------------------------------- */

/* The curve of what is published of a simulated one; NULL if a file says more of it. by_ratio: of
 * the marks beside the curve. */
static struct plot_curve *published_curve(const struct context *c,
                                          const struct plot_curve *simulated, bool by_ratio)
{
    for (guint i = 0; i < c->data->curves->len; i++) {
        struct plot_curve *curve = c->data->curves->pdata[i];
        if (!curve->measured || strcmp(curve->series, simulated->series) != 0)
            continue;
        if (i < c->first && !by_ratio)
            return NULL;
        if (i >= c->first && curve->by_ratio == by_ratio && curve->metric == simulated->metric)
            return curve;
    }
    char *label = by_ratio ? g_strdup("") : plot_measured_label(c->spec, "", simulated);
    struct plot_curve *curve = plot_curve_new(c->data, label, g_strdup(simulated->series),
                                              simulated->metric);
    curve->measured = true;
    curve->by_ratio = by_ratio;
    curve->color = simulated->color;
    return curve;
}

static void add_mark(const struct context *c, const struct plot_curve *simulated, bool by_ratio,
                     struct plot_value value)
{
    struct plot_curve *curve = published_curve(c, simulated, by_ratio);
    if (curve != NULL)
        g_array_append_val(curve->values, value);
}

/* Half-way, with the range as a band. */
static struct plot_value mark_at(double x, double lo, double hi)
{
    return (struct plot_value){ .x = x, .y = (lo + hi) / 2.0, .band_lo = lo, .band_hi = hi };
}

/* ---- Claims about one point ------------------------------------------------------------------ */

static void add_point(const struct context *c, const struct statement *s)
{
    struct place place;
    if (find_place(c, &s->of, &place)) {
        const struct plot_curve *simulated = plot_simulated_curve(c->data, place.series,
                                                                  place.metric);
        if (simulated != NULL)
            add_mark(c, simulated, false,
                     mark_at(place.x, s->lo * simulated->y_factor, s->hi * simulated->y_factor));
    }
    g_free(place.series);
}

/* Of a series a mean is published: a level, as long as the simulated curve. */
static void add_level(const struct context *c, const struct plot_curve *simulated, double y)
{
    const GArray *values = simulated->values;
    const double first = g_array_index(values, struct plot_value, 0).x;
    const double last = g_array_index(values, struct plot_value, values->len - 1).x;
    struct plot_curve *curve = published_curve(c, simulated, false);
    if (curve == NULL)
        return;
    const struct plot_value ends[] = { mark_at(first, y, y), mark_at(last, y, y) };
    curve->level = true;
    g_array_append_vals(curve->values, ends, 2);
}

/* A mean of a series, a quantile of a distribution, the median of a box. */
static void add_sampled(const struct context *c, const struct statement *s)
{
    const struct plot_spec *spec = c->spec;
    const double y = (s->lo + s->hi) / 2.0, factor = c->data->factor;
    size_t point;
    if (!find_point(c, &s->of, &point))
        return;
    g_autofree char *series = plot_series_name(spec, c->scenario, point);
    for (guint i = 0; i < spec->metrics->len; i++) {
        const char *metric = spec->metrics->pdata[i];
        const struct plot_curve *simulated = plot_simulated_curve(c->data, series, metric);
        const double share = plot_quantile_of(s->of.metric, metric);
        if (simulated == NULL)
            continue;
        if (spec->kind == PLOT_SERIES && strcmp(s->of.metric, metric) == 0)
            add_level(c, simulated, y * simulated->y_factor);
        else if (spec->kind == PLOT_CDF && share > 0.0)
            add_mark(c, simulated, false, mark_at(y * factor, share, share));
        else if (spec->kind == PLOT_BOX && share == 0.5)
            add_mark(c, simulated, false,
                     mark_at(g_array_index(simulated->values, struct plot_value, 0).x,
                             s->lo * factor, s->hi * factor));
    }
}

/* ---- Ratios ---------------------------------------------------------------------------------- */

/* The words of a series that the other one has not; g_free(). */
static char *own_words(const struct plot_spec *spec, const char *series, const char *other)
{
    g_autoptr(GString) text = g_string_new("");
    g_auto(GStrv) words = g_strsplit(series, " ", -1), others = g_strsplit(other, " ", -1);
    for (char **word = words; *word != NULL; word++)
        if (!g_strv_contains((const char *const *)others, *word))
            g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", *word);
    return plot_short_series(spec, text->str);
}

/* "local over remote": what the ratio is of; NULL if that takes more words. g_free(). */
static char *pair_name(const struct context *c, const struct statement *s)
{
    struct place of = { 0 }, to = { 0 };
    char *name = NULL;
    const bool same_point = strcmp(s->of.scenario, s->to.scenario) == 0 &&
                            strcmp(s->of.point, s->to.point) == 0;
    const bool both = find_place(c, &s->of, &of) && find_place(c, &s->to, &to);
    if (same_point && strcmp(s->of.metric, s->to.metric) != 0) {
        name = g_strdup_printf("%s over %s", plot_metric_name(c->spec, s->of.metric),
                               plot_metric_name(c->spec, s->to.metric));
    } else if (both && of.metric == to.metric && of.x == to.x) {
        g_autofree char *mine = own_words(c->spec, of.series, to.series);
        g_autofree char *other = own_words(c->spec, to.series, of.series);
        name = g_strdup_printf("%s over %s", mine, other);
    } else if (both && of.metric == to.metric && strcmp(of.series, to.series) == 0) {
        g_autofree char *mine = plot_x_name(c->spec,
                                            plot_axis_value(c->scenario, of.point, c->spec->x));
        g_autofree char *other = plot_x_name(c->spec,
                                             plot_axis_value(c->scenario, to.point, c->spec->x));
        const char *x = *c->spec->x_label != '\0' ? c->spec->x_label : c->spec->x;
        name = g_strdup_printf("%s%s%s over %s", g_ascii_isdigit(*mine) ? x : "",
                               g_ascii_isdigit(*mine) ? " " : "", mine, other);
    }
    g_free(of.series);
    g_free(to.series);
    return name;
}

/* Whether the panel's ratio_labels are of the same two curves. */
static bool is_labelled_pair(const struct context *c, const struct statement *s)
{
    struct place of = { 0 }, to = { 0 };
    const bool same = find_place(c, &s->of, &of) && find_place(c, &s->to, &to) && of.x == to.x &&
                      of.metric == to.metric && strcmp(of.series, c->spec->ratio_of) == 0 &&
                      strcmp(to.series, c->spec->ratio_to) == 0;
    g_free(of.series);
    g_free(to.series);
    return same;
}

/* "1.25", "1.25-1.28", ">1"; NULL if it does not fit. */
static const char *published_words(const struct context *c, const struct statement *s)
{
    if (isnan(s->lo))
        return s->words != NULL && strlen(s->words) <= WORDS_MAX ? s->words : NULL;
    g_autofree char *text = s->lo == s->hi ? g_strdup_printf("%.4g", s->lo)
                                           : g_strdup_printf("%.4g-%.4g", s->lo, s->hi);
    return g_string_chunk_insert_const(c->data->strings, text);
}

/* The numbers of a panel are all of one pair: that of ratio_labels, or of the first claim. */
static void add_label(const struct context *c, const struct statement *s, struct plot_value *value)
{
    g_autofree char *name = NULL;
    if (c->spec->ratio_of != NULL ? !is_labelled_pair(c, s) : (name = pair_name(c, s)) == NULL)
        return;
    if (name != NULL && c->data->ratio_name != NULL && strcmp(name, c->data->ratio_name) != 0)
        return;
    value->published = published_words(c, s);
    if (value->published == NULL || name == NULL)
        return;
    value->ratio = s->value;
    if (c->data->ratio_name == NULL)
        c->data->ratio_name = g_steal_pointer(&name);
}

/* A point of values as they are: its value over the ratio is what it is compared with. */
static void add_ratio(const struct context *c, const struct statement *s)
{
    struct place of;
    if (find_place(c, &s->of, &of) && isfinite(s->value) && s->value != 0.0) {
        struct plot_curve *simulated = plot_simulated_curve(c->data, of.series, of.metric);
        struct plot_value *value = simulated != NULL ? plot_value_at(simulated, of.x) : NULL;
        if (value != NULL) {
            const double to = value->y / s->value;
            add_label(c, s, value);
            if (!isnan(s->lo))
                add_mark(c, simulated, true, mark_at(of.x, s->lo * to, s->hi * to));
        }
    }
    g_free(of.series);
}

/* Where the values of a normalised curve begin. */
static double first_x(const struct context *c, const char *series)
{
    double first = INFINITY, x;
    for (size_t i = 0; i < scenario_n_points(c->scenario); i++) {
        g_autofree char *name = plot_series_name(c->spec, c->scenario, i);
        if (c->spec->shown[i] && strcmp(name, series) == 0 &&
            plot_data_to_x(c->data, plot_axis_value(c->scenario, i, c->spec->x), &x))
            first = MIN(first, x);
    }
    return first;
}

/* Whether the panel shows the value at `of` relative to that at `to`. */
static bool is_shown_relative(const struct context *c, const struct place *of,
                              const struct place *to)
{
    const struct plot_spec *spec = c->spec;
    double x;
    if (of->metric != to->metric)
        return false;
    if (spec->normalised)
        return strcmp(of->series, to->series) == 0 && to->x == first_x(c, of->series);
    for (guint i = 0; i < spec->metrics->len; i++) {
        const char *name = spec->relative_to->pdata[MIN(i, spec->relative_to->len - 1)];
        if (spec->metrics->pdata[i] != of->metric)
            continue;
        if (plot_is_own_reference(spec, name))
            return strcmp(of->series, to->series) == 0 &&
                   plot_data_to_x(c->data, strchr(name, '=') + 1, &x) && x == to->x;
        return of->x == to->x && strcmp(to->series, name) == 0;
    }
    return false;
}

/* A panel of relative values: of slowdowns the reference is above. */
static void add_relative(const struct context *c, const struct statement *s)
{
    struct place of = { 0 }, to = { 0 };
    const struct claim_reference *above = c->spec->slowdown ? &s->to : &s->of;
    const struct claim_reference *below = c->spec->slowdown ? &s->of : &s->to;
    if (find_place(c, above, &of) && find_place(c, below, &to) && is_shown_relative(c, &of, &to)) {
        const struct plot_curve *simulated = plot_simulated_curve(c->data, of.series, of.metric);
        if (simulated != NULL)
            add_mark(c, simulated, false,
                     mark_at(of.x, s->lo * simulated->y_factor, s->hi * simulated->y_factor));
    }
    g_free(of.series);
    g_free(to.series);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void add_claim(const struct context *c, const struct statement *s)
{
    const struct plot_spec *spec = c->spec;
    const bool relative = spec->normalised || spec->relative_to->len > 0;
    if (s->is_ratio && !plot_is_sampled(spec) && !relative)
        add_ratio(c, s);
    else if (isnan(s->lo))
        return;
    else if (s->is_ratio && !plot_is_sampled(spec))
        add_relative(c, s);
    else if (!s->is_ratio && plot_is_sampled(spec))
        add_sampled(c, s);
    else if (!s->is_ratio && !relative)
        add_point(c, s);
}

void plot_claims_collect(const struct scenario *scenario, const struct plot_spec *spec,
                         const struct plot_published *published, struct plot_data *data)
{
    struct context c = { scenario, spec, data, NULL, data->curves->len };
    if (spec->kind == PLOT_STACK || spec->kind == PLOT_HISTOGRAM ||
        !(plot_has_x_axis(scenario, spec) || plot_is_sampled(spec)))
        return;
    c.form = claim_form();
    for (guint i = 0; i < published->claims->len; i++) {
        struct statement s;
        g_autoptr(GArray) references = claim_references(published->claims->pdata[i]);
        if (read_claim(&c, published->claims->pdata[i], references, &s))
            add_claim(&c, &s);
    }
    for (guint i = c.first; i < data->curves->len; i++)
        plot_sort_values(data->curves->pdata[i]);
    g_regex_unref(c.form);
}
