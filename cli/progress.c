/* Progress, on standard error. */
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/progress.h"

void progress_begin(struct progress *progress, const struct plan *plan, unsigned n_workers,
                    bool quiet)
{
    *progress = (struct progress){ .plan = plan, .n_workers = n_workers, .quiet = quiet };
    progress->on_terminal = isatty(STDERR_FILENO) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
    progress->begun_us = g_get_monotonic_time();
}

static unsigned n_finished(const struct plan *plan)
{
    return plan_count(plan, PLAN_DONE) + plan_count(plan, PLAN_FAILED);
}

/*
 * Runs of one scenario take about as long as each other: what is left is their mean so far for each
 * one that waits, and the rest of it for each that runs, over all workers. NAN before the first.
 */
static double seconds_left(const struct progress *progress)
{
    const struct plan *plan = progress->plan;
    GHashTable *means = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    double sum = 0.0, left = 0.0;
    unsigned n = 0;
    for (guint i = 0; i < plan->jobs->len; i++) {
        const struct plan_job *job = plan_job(plan, i);
        if (job->state != PLAN_DONE && job->state != PLAN_FAILED)
            continue;
        const struct scenario *scenario = plan_point(plan, job->point)->scenario;
        double *mean = g_hash_table_lookup(means, scenario);
        if (mean == NULL) {
            mean = g_new0(double, 2); /* sum, count */
            g_hash_table_insert(means, (gpointer)scenario, mean);
        }
        mean[0] += job->wall_s;
        mean[1] += 1.0;
        sum += job->wall_s;
        n++;
    }
    const int64_t now = g_get_real_time() / G_USEC_PER_SEC;
    for (guint i = 0; n > 0 && i < plan->jobs->len; i++) {
        const struct plan_job *job = plan_job(plan, i);
        const double *mean = g_hash_table_lookup(means, plan_point(plan, job->point)->scenario);
        const double expected = mean != NULL ? mean[0] / mean[1] : sum / n;
        if (job->state == PLAN_WAITING)
            left += expected;
        else if (job->state == PLAN_RUNNING)
            left += MAX(expected - (double)(now - job->started_utc), 0.0);
    }
    g_hash_table_destroy(means);
    return n > 0 ? left / progress->n_workers : (double)NAN;
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

void progress_show(struct progress *progress)
{
    const int64_t now = g_get_monotonic_time();
    const struct plan *plan = progress->plan;
    char elapsed[32], left[32] = "?";
    if (progress->quiet || !progress->on_terminal || now - progress->shown_us < 200000)
        return;
    progress->shown_us = now;
    const double seconds = seconds_left(progress);
    duration_text((double)(now - progress->begun_us) / 1e6, elapsed, sizeof(elapsed));
    if (!isnan(seconds))
        duration_text(seconds, left, sizeof(left));
    char *line = g_strdup_printf(
        "%u of %u runs, %u running, %u failed, %s elapsed, about %s left", n_finished(plan),
        plan->jobs->len - plan_count(plan, PLAN_STORED_BEFORE), plan_count(plan, PLAN_RUNNING),
        plan_count(plan, PLAN_FAILED), elapsed, left);
    fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, line);
    fflush(stderr);
    g_free(line);
}

static void print_log(const char *log)
{
    char **lines = g_strsplit(log, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line != '\0')
            fprintf(stderr, "    %s\n", *line);
    }
    g_strfreev(lines);
}

void progress_run(struct progress *progress, const struct plan_job *job, const char *error,
                  const char *log)
{
    const struct plan *plan = progress->plan;
    const bool plain = !progress->quiet && !progress->on_terminal;
    if (error == NULL && *log == '\0' && !plain)
        return;
    progress_end(progress);
    char *name = plan_job_name(plan, job);
    if (plain)
        fprintf(stderr, "[%u/%u] ", n_finished(plan),
                plan->jobs->len - plan_count(plan, PLAN_STORED_BEFORE));
    if (error != NULL)
        fprintf(stderr, "%s: failed: %s\n", name, error);
    else
        fprintf(stderr, "%s: done in %.2f s\n", name, job->wall_s);
    print_log(log);
    g_free(name);
}

void progress_end(struct progress *progress)
{
    if (progress->on_terminal && !progress->quiet && progress->shown_us != 0)
        fputs("\r\033[K", stderr);
    progress->shown_us = 0;
}
