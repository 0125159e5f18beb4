/* The answer as a page. */
#include <math.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/explain/explain.h"

#define SHOWN_RATIO 0.01 /* of its peak, or of the time: less is not listed */
#define OTHERS_MAX  6

static void append_value(GString *out, const struct explain_answer *answer, double value)
{
    char text[32];
    g_string_append_printf(out, "%s%s%s", cli_number(value, text), *answer->unit != '\0' ? " " : "",
                           answer->unit);
}

/* from: the value without it. */
static void append_effect(GString *out, const struct explain_answer *answer,
                          const struct explain_effect *effect, double from)
{
    append_value(out, answer, effect->value);
    if (answer->better == EXPLAIN_EITHER)
        g_string_append_printf(out, " (%+.1f %%)", 100.0 * (effect->value - from) / from);
    else
        g_string_append_printf(out, " (%.1f %% better)", 100.0 * effect->gain_ratio);
}

static const struct explain_effect *effect_of(const GArray *effects,
                                              const struct explain_resource *resource)
{
    for (guint i = 0; i < effects->len; i++)
        if (g_array_index(effects, struct explain_effect, i).resource == resource)
            return &g_array_index(effects, struct explain_effect, i);
    return NULL;
}

static void append_changes(GString *out, const struct explain_resource *resource)
{
    for (guint i = 0; i < resource->change->len; i++) {
        const struct explain_change *c = &g_array_index(resource->change, struct explain_change, i);
        char from[32], to[32];
        if (c->from == c->to)
            continue;
        if (c->is_switch)
            g_string_append_printf(out, "    %s = true\n", c->path);
        else
            g_string_append_printf(out, "    %s = %s instead of %s%s\n", c->path,
                                   cli_number(c->to, to), cli_number(c->from, from),
                                   !c->ends          ? ""
                                   : c->to > c->from ? " (the most that its range allows)"
                                                     : " (the least that its range allows)");
    }
}

/* "cores of server (clock), clock_ghz at most 6": what a range has kept from being twice as much, or half. */
static void append_name(GString *out, const struct explain_resource *resource)
{
    g_string_append(out, resource->name);
    for (guint i = 0; i < resource->change->len; i++) {
        const struct explain_change *c = &g_array_index(resource->change, struct explain_change, i);
        char to[32];
        if (c->ends)
            g_string_append_printf(out, ", %s at %s %s", strrchr(c->path, '.') + 1,
                                   c->to > c->from ? "most" : "least", cli_number(c->to, to));
    }
}

/* ---- What limits it, and what comes next ----------------------------------------------------- */

/* A limit that helps less than half of a latency does is not what a reader should begin with. */
static void append_heavier_latency(GString *out, const struct explain_answer *answer,
                                   const struct explain_effect *limit)
{
    for (guint i = 0; i < answer->effects->len; i++) {
        const struct explain_effect *effect = &g_array_index(answer->effects, struct explain_effect,
                                                             i);
        if (effect->resource->kind != EXPLAIN_TIME || effect->resource->parts != NULL)
            continue;
        if (effect->gain_ratio > limit->gain_ratio)
            g_string_append_printf(out, "  Latencies weigh more, see below: first the %s.\n",
                                   effect->resource->name);
        return; /* the best is the first */
    }
}

static bool has_latencies(const struct explain_answer *answer)
{
    for (guint i = 0; i < answer->effects->len; i++) {
        const struct explain_effect *e = &g_array_index(answer->effects, struct explain_effect, i);
        if (e->resource->kind == EXPLAIN_TIME && e->resource->parts == NULL &&
            e->gain_ratio > fmax(SHOWN_RATIO, answer->least_ratio))
            return true;
    }
    return false;
}

/* Of a value that is 0, with nothing to relate changes to; several together if none alone does. */
static unsigned append_changed(GString *out, const struct explain_answer *answer, bool joint)
{
    unsigned n = 0;
    for (guint i = 0; i < answer->effects->len; i++) {
        const struct explain_effect *e = &g_array_index(answer->effects, struct explain_effect, i);
        if (!isfinite(e->value) || e->value == answer->value ||
            (e->resource->parts != NULL) != joint)
            continue;
        g_string_append(out, "  ");
        append_name(out, e->resource);
        g_string_append(out, ": ");
        append_value(out, answer, e->value);
        g_string_append_c(out, '\n');
        n++;
    }
    return n;
}

static void append_all_changed(GString *out, const struct explain_answer *answer)
{
    g_string_append(out,
                    answer->value < 0.0 ? "\nWhat changes it\n" : "\nWhat makes it other than 0\n");
    if (append_changed(out, answer, false) == 0 && append_changed(out, answer, true) == 0)
        g_string_append(out, "  Nothing that was tried.\n");
}

static void append_limit(GString *out, const struct explain_answer *answer)
{
    g_string_append(out, answer->better == EXPLAIN_EITHER ? "\nWhat changes it most\n"
                                                          : "\nWhat limits it\n");
    if (answer->limit == NULL) {
        g_string_append_printf(out,
                               "  No single resource: with twice as much of any, or what its range "
                               "allows, nothing changes%s.%s\n",
                               answer->n_seeds > 1 ? " by more than the seeds differ" : "",
                               has_latencies(answer) ? " What is left are latencies, below." : "");
        return;
    }
    const struct explain_effect *effect = effect_of(answer->effects, answer->limit);
    if (answer->limit->kind == EXPLAIN_LOAD)
        g_string_append(out, "  The load, not the machine:\n");
    g_string_append_printf(out, "  %s. With\n", answer->limit->name);
    append_changes(out, answer->limit);
    g_string_append(out, "  it is ");
    append_effect(out, answer, effect, answer->value);
    g_string_append(out, ".\n");
    append_heavier_latency(out, answer, effect);
}

static void append_others(GString *out, const struct explain_answer *answer, enum explain_kind kind,
                          const char *head)
{
    unsigned n = 0;
    for (guint i = 0; i < answer->effects->len && n < OTHERS_MAX; i++) {
        const struct explain_effect *effect = &g_array_index(answer->effects, struct explain_effect,
                                                             i);
        const bool time = effect->resource->kind == EXPLAIN_TIME;
        if (effect->resource == answer->limit || time != (kind == EXPLAIN_TIME) ||
            effect->resource->parts != NULL ||
            !(effect->gain_ratio > fmax(SHOWN_RATIO, answer->least_ratio)))
            continue;
        if (n++ == 0)
            g_string_append_printf(out, "%s\n", head);
        g_string_append(out, "  ");
        append_name(out, effect->resource);
        g_string_append(out, ": ");
        append_effect(out, answer, effect, answer->value);
        g_string_append_c(out, '\n');
    }
}

static void append_next(GString *out, const struct explain_answer *answer)
{
    if (answer->limit == NULL || !isfinite(answer->value_without))
        return;
    g_string_append(out, answer->better == EXPLAIN_EITHER
                             ? "\nWith 8 times as much of that, or as much as the model has\n  "
                             : "\nIf that limit went (8 times as much, or as much as the model "
                               "has)\n  ");
    append_value(out, answer, answer->value_without);
    if (answer->next_limit != NULL) {
        g_string_append_printf(out, "; then %s: ", answer->next_limit->name);
        append_effect(out, answer, effect_of(answer->next, answer->next_limit),
                      answer->value_without);
    } else {
        g_string_append(out, "; then no other resource");
    }
    g_string_append_c(out, '\n');
}

/* What was tried with less than twice as much, or half, and what could not be tried at all. */
static void append_ranges(GString *out, const struct explain_answer *answer)
{
    const char *separator = "  With what the range allows, less than twice as much: ";
    for (guint i = 0; i < answer->resources->len; i++) {
        const struct explain_resource *resource = answer->resources->pdata[i];
        bool ends = false;
        for (guint k = 0; k < resource->change->len && resource->parts == NULL; k++)
            ends = ends || g_array_index(resource->change, struct explain_change, k).ends;
        if (!ends)
            continue;
        g_string_append(out, separator);
        append_name(out, resource);
        separator = "; ";
    }
    g_string_append(out, *separator == ';' ? "\n" : "");
    for (guint i = 0; i < answer->ended->len; i++)
        g_string_append_printf(
            out, "%s%s%s", i == 0 ? "  Not tried, as the range ends there: " : "",
            (const char *)answer->ended->pdata[i], i + 1 < answer->ended->len ? ", " : "\n");
}

static void append_rest(GString *out, const struct explain_answer *answer)
{
    const double least = fmax(SHOWN_RATIO, answer->least_ratio);
    unsigned none = 0;
    for (guint i = 0; i < answer->effects->len; i++) {
        const double ratio = g_array_index(answer->effects, struct explain_effect, i).gain_ratio;
        none += isfinite(ratio) && ratio <= least ? 1u : 0u;
    }
    g_string_append_printf(out, "\n%u resources and latencies were tried", answer->effects->len);
    if (answer->value > 0.0)
        g_string_append_printf(out, "; %u of them change it by no more than %.2g %%", none,
                               100.0 * least);
    g_string_append(out, ".\n");
    append_ranges(out, answer);
    for (guint i = 0; i < answer->effects->len; i++) {
        const struct explain_effect *e = &g_array_index(answer->effects, struct explain_effect, i);
        if (e->failure != NULL && strstr(e->failure, EXPLAIN_NO_EFFECT) == NULL)
            g_string_append_printf(out, "  No run with more of %s: %s\n", e->resource->name,
                                   e->failure);
    }
}

/* ---- What the point itself has measured ------------------------------------------------------ */

struct share {
    char *name;
    double value;
};

static gint by_value(gconstpointer a, gconstpointer b)
{
    const double x = ((const struct share *)a)->value, y = ((const struct share *)b)->value;
    return (x < y) - (x > y);
}

static void clear_share(gpointer share)
{
    g_free(((struct share *)share)->name);
}

/* Metrics whose name has this ending, or beginning, and what remains of the name. */
static GArray *shares_of(const struct run_result *result, const char *begin, const char *end)
{
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(struct share));
    char **names = run_result_names(result, RECORD_METRIC);
    g_array_set_clear_func(shares, clear_share);
    for (char **name = names; *name != NULL; name++) {
        if (!g_str_has_prefix(*name, begin) || !g_str_has_suffix(*name, end) ||
            g_str_has_suffix(*name, ".ci95"))
            continue;
        const struct share share = {
            g_strndup(*name + strlen(begin), strlen(*name) - strlen(begin) - strlen(end)),
            run_result_value(result, *name),
        };
        g_array_append_val(shares, share);
    }
    g_strfreev(names);
    g_array_sort(shares, by_value);
    return shares;
}

static void append_utilization(GString *out, const struct explain_answer *answer)
{
    g_autoptr(GArray) shares = shares_of(answer->base, "", "utilization_ratio");
    unsigned idle = 0;
    g_string_append(out, "\nHow busy each resource is, of its peak\n");
    for (guint i = 0; i < shares->len; i++) {
        const struct share *share = &g_array_index(shares, struct share, i);
        g_autofree char *name = g_strdup(share->name);
        const size_t n = strlen(name);
        if (n > 0 && (name[n - 1] == '_' || name[n - 1] == '.'))
            name[n - 1] = '\0';
        const bool of_host = answer->cpu_host != NULL && strcmp(name, "cpu") == 0;
        if (share->value >= SHOWN_RATIO)
            g_string_append_printf(out, "  %5.1f %%  %s%s%s\n", 100.0 * share->value, name,
                                   of_host ? " of " : "", of_host ? answer->cpu_host : "");
        else
            idle++;
    }
    if (idle > 0)
        g_string_append_printf(out, "  below 1 %%: %u others\n", idle);
}

/* Counters of waiting that are not 0. */
static void append_waits(GString *out, const struct run_result *base)
{
    static const struct {
        const char *end, *text;
    } waits[] = {
        { ".credit_stall_ns", "ns for which the wire stood still for want of credits" },
        { ".dma_tag_waits", "times that reads stopped for want of a tag" },
        { ".dma_credit_waits", "times that a device stopped for want of room in its port" },
        { ".write_line_wait_ps", "ps that writes waited for a buffer of the root complex" },
        { ".read_line_wait_ps", "ps that reads waited for a buffer of the root complex" },
        { ".iotlb_misses", "page walks" },
        { ".walker_wait_ns", "ns that a walk waited for a walker, mean" },
        { ".ddio_dirty_evictions", "lines that devices' writes pushed out of the LLC" },
    };
    bool any = false;
    for (size_t w = 0; w < SIM_N_ELEMENTS(waits); w++) {
        g_autoptr(GArray) shares = shares_of(base, "", waits[w].end);
        for (guint i = 0; i < shares->len; i++) {
            const struct share *share = &g_array_index(shares, struct share, i);
            char number[32];
            if (!(share->value > 0.0))
                continue;
            g_string_append_printf(out, "%s  %s: %s %s\n", any ? "" : "\nWhat had to wait\n",
                                   share->name, cli_number(share->value, number), waits[w].text);
            any = true;
        }
    }
}

static void append_parts(GString *out, const struct run_result *base)
{
    g_autoptr(GArray) parts = shares_of(base, "latency_part_ns.", "");
    double sum = 0.0;
    for (guint i = 0; i < parts->len; i++)
        sum += g_array_index(parts, struct share, i).value;
    if (!(sum > 0.0))
        return;
    g_string_append_printf(out, "\nWhere the time of an operation goes, %.4g ns\n", sum);
    for (guint i = 0; i < parts->len; i++) {
        const struct share *part = &g_array_index(parts, struct share, i);
        if (part->value >= SHOWN_RATIO * sum)
            g_string_append_printf(out, "  %5.1f %%  %s, %.4g ns\n", 100.0 * part->value / sum,
                                   part->name, part->value);
    }
}

char *explain_text(const struct explain_answer *answer)
{
    GString *out = g_string_new(NULL);
    g_string_append_printf(out, "%s is ", answer->metric);
    append_value(out, answer, answer->value);
    if (answer->value > 0.0)
        g_string_append(out, answer->better == EXPLAIN_EITHER
                                 ? " (a number of which neither more nor less is known to be "
                                   "better; --better says which)\n"
                             : answer->better == EXPLAIN_LESS ? " (less is better)\n"
                                                              : " (more is better)\n");
    else
        g_string_append(out, "; nothing can be said in per cent of that\n");
    if (answer->n_seeds > 1)
        g_string_append_printf(
            out,
            "This and all below are means over %u seeds, which differ by %.1f %%: "
            "smaller changes are noise and do not count.\n",
            answer->n_seeds, 100.0 * answer->spread_ratio);
    else if (answer->n_counted > 0.0 && answer->n_counted * SHOWN_RATIO < 1.0)
        g_string_append_printf(
            out,
            "%.0f were counted for it in %g us: a change by one of them, %.1f %%, "
            "is no difference.\n",
            answer->n_counted, answer->measured_us, 100.0 / answer->n_counted);
    if (answer->value > 0.0) {
        append_limit(out, answer);
        append_others(out, answer, EXPLAIN_LIMIT,
                      answer->better == EXPLAIN_EITHER ? "More of these changes it, too"
                                                       : "More of these helps, too");
        append_next(out, answer);
        append_others(out, answer, EXPLAIN_TIME, "\nWith half of these latencies");
    } else {
        append_all_changed(out, answer);
    }
    append_rest(out, answer);
    append_utilization(out, answer);
    append_waits(out, answer->base);
    append_parts(out, answer->base);
    return g_string_free(out, FALSE);
}
