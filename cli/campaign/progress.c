/* Progress, on standard error. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/campaign/progress.h"

void progress_begin(struct progress *progress, const struct plan *plan, unsigned n_workers,
                    bool quiet, unsigned period_s)
{
    *progress = (struct progress){ .plan = plan, .n_workers = n_workers, .quiet = quiet };
    progress->on_terminal = cli_is_terminal(STDERR_FILENO);
    progress->period_us = progress->on_terminal ? 0 : (int64_t)period_s * G_USEC_PER_SEC;
    progress->begun_us = g_get_monotonic_time();
}

/* With those of earlier campaigns: one that goes on counts from where it stopped. */
static unsigned n_finished(const struct plan *plan)
{
    return plan_count(plan, PLAN_DONE) + plan_count(plan, PLAN_FAILED) +
           plan_count(plan, PLAN_STORED_BEFORE);
}

/* Of the runs of a scenario that have ended. */
struct pace {
    double wall_s, n;
    double known_wall_s, known_expected_s; /* of those that had an expectation */
};

static struct pace *pace_of(GHashTable *paces, gconstpointer key)
{
    struct pace *pace = g_hash_table_lookup(paces, key);
    if (pace == NULL) {
        pace = g_new0(struct pace, 1);
        g_hash_table_insert(paces, (gpointer)key, pace);
    }
    return pace;
}

static void add_to_pace(struct pace *pace, const struct plan_job *job)
{
    pace->wall_s += job->wall_s;
    pace->n += 1.0;
    if (job->expected_s > 0.0) {
        pace->known_wall_s += job->wall_s;
        pace->known_expected_s += job->expected_s;
    }
}

/* What earlier runs of the point took, as much slower or faster as this campaign has been so far;
 * without such runs the mean of its scenario, or of all, so far. */
static double expected_s(const struct plan_job *job, const struct pace *own, const struct pace *all)
{
    const struct pace *pace = own->n > 0.0 ? own : all;
    if (job->expected_s > 0.0)
        return job->expected_s *
               (pace->known_expected_s > 0.0 ? pace->known_wall_s / pace->known_expected_s : 1.0);
    return pace->wall_s / pace->n;
}

/* Over all workers; NAN before anything is known. */
static double seconds_left(const struct progress *progress)
{
    const struct plan *plan = progress->plan;
    g_autoptr(GHashTable) paces = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    struct pace all = { 0 };
    double left = 0.0;
    for (guint i = 0; i < plan->jobs->len; i++) {
        const struct plan_job *job = plan_job(plan, i);
        if (job->state != PLAN_DONE && job->state != PLAN_FAILED)
            continue;
        add_to_pace(pace_of(paces, plan_point(plan, job->point)->scenario), job);
        add_to_pace(&all, job);
    }
    const int64_t now = g_get_real_time() / G_USEC_PER_SEC;
    for (guint i = 0; i < plan->jobs->len; i++) {
        const struct plan_job *job = plan_job(plan, i);
        if (job->state != PLAN_WAITING && job->state != PLAN_RUNNING)
            continue;
        const double expected =
            expected_s(job, pace_of(paces, plan_point(plan, job->point)->scenario), &all);
        const double spent = job->state == PLAN_RUNNING ? (double)(now - job->started_utc) : 0.0;
        left += isnan(expected) ? expected : MAX(expected - spent, 0.0);
    }
    return left / progress->n_workers;
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static void duration_text(double seconds, char *text, size_t n_bytes)
{
    const unsigned s = (unsigned)(seconds + 0.5);
    if (s < 3600)
        g_snprintf(text, n_bytes, "%u:%02u", s / 60, s % 60);
    else
        g_snprintf(text, n_bytes, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
}

/* "2.61 ms" */
static void simulated_text(double seconds, char *text, size_t n_bytes)
{
    static const char *const units[] = { "s", "ms", "us", "ns" };
    size_t unit = 0;
    while (seconds < 1.0 && seconds > 0.0 && unit + 1 < SIM_N_ELEMENTS(units)) {
        seconds *= 1000.0;
        unit++;
    }
    g_snprintf(text, n_bytes, "%.3g %s", seconds, units[unit]);
}

/* What matters most stands first: the rest is left out where a terminal is narrow. */
static char *status_line(const struct progress *progress, int64_t now, int width)
{
    const struct plan *plan = progress->plan;
    char elapsed[32], left[32] = "?", simulated[32], points[64] = "";
    const double seconds = seconds_left(progress);
    duration_text((double)(now - progress->begun_us) / 1e6, elapsed, sizeof(elapsed));
    if (!isnan(seconds))
        duration_text(seconds, left, sizeof(left));
    simulated_text(progress->simulated_s, simulated, sizeof(simulated));
    if (plan->jobs->len > plan->points->len)
        g_snprintf(points, sizeof(points), " (%u/%u points)", plan->n_points_ended,
                   plan->points->len);
    char *part[] = {
        g_strdup_printf("%u/%u runs%s", n_finished(plan), plan->jobs->len, points),
        g_strdup_printf(", %u running", plan_count(plan, PLAN_RUNNING)),
        g_strdup_printf(", %u failed", plan_count(plan, PLAN_FAILED)),
        g_strdup_printf(", %s left", left),
        g_strdup_printf(", %s simulated in %s", simulated, elapsed),
    };
    GString *line = g_string_new(NULL);
    for (size_t i = 0; i < SIM_N_ELEMENTS(part); i++) {
        if (i == 0 || line->len + strlen(part[i]) <= (size_t)width)
            g_string_append(line, part[i]);
        g_free(part[i]);
    }
    return g_string_free(line, FALSE);
}

void progress_show(struct progress *progress)
{
    const int64_t now = g_get_monotonic_time();
    if (!progress->quiet && progress->period_us > 0 &&
        now - MAX(progress->shown_us, progress->begun_us) >= progress->period_us) {
        g_autofree char *whole = status_line(progress, now, INT_MAX);
        fprintf(stderr, "%s\n", whole);
        progress->shown_us = now;
    }
    if (progress->quiet || !progress->on_terminal || now - progress->shown_us < 200000)
        return;
    progress->shown_us = now;
    const int width = terminal_width() - 1;
    g_autofree char *line = status_line(progress, now, width);
    fprintf(stderr, "\r\033[K%.*s", width, line);
    fflush(stderr);
}

static void print_log(const char *log)
{
    g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line != '\0')
            fprintf(stderr, "    %s\n", *line);
    }
}

/* Of what a run has printed, what qualifies its result, which stays where nothing else is said: the
 * rest is what its hosts have logged. */
static char *only_notes(const char *log)
{
    GString *notes = g_string_new("");
    g_auto(GStrv) lines = g_strsplit(log, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (g_str_has_prefix(*line, "not settled: "))
            g_string_append_printf(notes, "%s\n", *line);
    }
    return g_string_free(notes, FALSE);
}

void progress_run(struct progress *progress, const struct plan_job *job, const char *error,
                  const char *log)
{
    const struct plan *plan = progress->plan;
    const bool plain = !progress->quiet && !progress->on_terminal && progress->period_us == 0;
    progress->simulated_s += (double)job->sim_ps / 1e12;
    const bool may_fail = plan_point(plan, job->point)->may_fail;
    g_autofree char *about_result = progress->quiet && error == NULL ? only_notes(log) : NULL;
    log = about_result != NULL ? about_result : log;
    if (((error == NULL && *log == '\0') || may_fail) && !plain)
        return;
    progress_end(progress);
    g_autofree char *name = plan_job_name(plan, job);
    if (plain)
        fprintf(stderr, "[%u/%u] ", n_finished(plan), plan->jobs->len);
    if (error != NULL)
        fprintf(stderr, "%s: failed: %s\n", name, error);
    else
        fprintf(stderr, "%s: done in %.2f s\n", name, job->wall_s);
    print_log(log);
}

void progress_sum(struct progress *progress)
{
    const struct plan *plan = progress->plan;
    const unsigned n = plan_count(plan, PLAN_DONE) + plan_count(plan, PLAN_FAILED);
    progress_end(progress);
    if (progress->quiet || !(progress->on_terminal || progress->period_us > 0) || n == 0)
        return;
    char elapsed[32];
    duration_text((double)(g_get_monotonic_time() - progress->begun_us) / 1e6, elapsed,
                  sizeof(elapsed));
    fprintf(stderr, "%u run%s in %s, %u failed\n", n, n == 1 ? "" : "s", elapsed,
            plan_count(plan, PLAN_FAILED));
}

void progress_end(struct progress *progress)
{
    if (!progress->on_terminal)
        return;
    if (!progress->quiet && progress->shown_us != 0)
        fputs("\r\033[K", stderr);
    progress->shown_us = 0;
}
