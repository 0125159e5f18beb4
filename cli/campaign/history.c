/* Earlier runs, whatever their version and configuration: the best guess at what comes. */
#include "cli/campaign/history.h"

struct cost {
    double wall_s;
    uint64_t memory_bytes;
};

/* What is known of a scenario. */
struct history {
    GHashTable *points;  /* name -> struct cost, both owned */
    struct cost typical; /* wall_s 0: nothing is known */
};

static void history_free(gpointer data)
{
    struct history *history = data;
    g_hash_table_destroy(history->points);
    g_free(history);
}

static struct history *history_read(struct results_db *db, const char *scenario)
{
    struct history *history = g_new0(struct history, 1);
    struct results_cursor *costs = results_costs(db, scenario);
    history->points = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (const struct results_cost *c; (c = results_next_cost(costs)) != NULL;) {
        const struct cost cost = { c->wall_s, (uint64_t)c->peak_memory_bytes };
        g_hash_table_insert(history->points, g_strdup(c->point), g_memdup2(&cost, sizeof(cost)));
        history->typical.wall_s += cost.wall_s;
        history->typical.memory_bytes = MAX(history->typical.memory_bytes, cost.memory_bytes);
    }
    if (g_hash_table_size(history->points) > 0)
        history->typical.wall_s /= g_hash_table_size(history->points);
    results_end(costs, NULL); /* whoever stores the next run says what is wrong with the database */
    return history;
}

void history_expect(struct plan *plan, struct results_db *db)
{
    g_autoptr(GHashTable) histories = g_hash_table_new_full(NULL, NULL, NULL, history_free);
    for (guint i = 0; i < plan->jobs->len; i++) {
        struct plan_job *job = plan_job(plan, i);
        const struct plan_point *point = plan_point(plan, job->point);
        if (job->state != PLAN_WAITING)
            continue;
        struct history *history = g_hash_table_lookup(histories, point->scenario);
        if (history == NULL) {
            history = history_read(db, scenario_name(point->scenario));
            g_hash_table_insert(histories, point->scenario, history);
        }
        const struct cost *known = g_hash_table_lookup(history->points, plan_point_name(point));
        const struct cost *cost = known != NULL ? known : &history->typical;
        job->expected_s = cost->wall_s;
        job->expected_bytes = cost->memory_bytes;
    }
}
