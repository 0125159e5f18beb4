/* Points that are the same in every setting: one of them runs, the others take its result. */
#include "cli/campaign/plan.h"

/* What it does beside its result, or what is asked of it, is its own. */
static bool is_alone(const struct plan_point *point)
{
    return point->outputs != NULL || point->may_fail || point->stored_as != NULL ||
           *point->config_sha256 == '\0' || !scenario_has_root(point->scenario);
}

void plan_find_twins(struct plan *plan)
{
    g_autoptr(GHashTable) first = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < plan->points->len; i++) {
        struct plan_point *point = plan_point(plan, i);
        gpointer found = NULL;
        point->twin = i;
        point->has_twins = false;
        if (is_alone(point))
            continue;
        if (g_hash_table_lookup_extended(first, point->config_sha256, NULL, &found)) {
            point->twin = GPOINTER_TO_UINT(found);
            plan_point(plan, point->twin)->has_twins = true;
        } else {
            g_hash_table_insert(first, point->config_sha256, GUINT_TO_POINTER(i));
        }
    }
}

bool plan_twin_waits(const struct plan *plan, const struct plan_point *point, uint64_t seed)
{
    const struct plan_point *twin = plan_point(plan, point->twin);
    if (twin == point)
        return false;
    for (guint i = 0; i < plan->jobs->len; i++) {
        const struct plan_job *job = plan_job(plan, i);
        if (job->point == point->twin && job->seed == seed)
            return job->state == PLAN_WAITING || job->state == PLAN_RUNNING;
    }
    return false;
}

struct plan_job *plan_next_sharing(struct plan *plan, const struct plan_job *job, guint *index)
{
    const size_t twin = job->point;
    const uint64_t seed = job->seed;
    while (plan_point(plan, twin)->has_twins && *index < plan->jobs->len) {
        struct plan_job *other = plan_job(plan, (*index)++);
        if (other->state == PLAN_SHARING && other->seed == seed &&
            plan_point(plan, other->point)->twin == twin)
            return other;
    }
    return NULL;
}
