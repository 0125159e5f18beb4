/*
 * Checking points in several processes: a child checks a part of them and sends their hashes back.
 * It says nothing else: if it finds a mistake, or does not get to its end, its part is checked
 * again by the process that asked, so that mistakes are the same, and in the same order, as without
 * it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/campaign/plan.h"
#include "workloads/experiment.h"

#define PART_POINTS 32 /* a child for fewer would cost more than it saves */

struct part {
    guint first, end; /* points */
    pid_t pid;        /* 0: no child */
    int fd;           /* from which their hashes are read */
};

static void check_part(const struct plan *plan, const struct part *part, bool print,
                       struct sim_error_list *errors)
{
    for (guint i = part->first; i < part->end; i++) {
        struct plan_point *point = plan_point(plan, i);
        struct config *config = scenario_point(point->scenario, point->index, errors);
        if (config == NULL)
            continue;
        if (experiment_check(config, errors)) {
            config_sha256(config, point->config_sha256);
            if (print) {
                printf("# %s %s\n", scenario_name(point->scenario), plan_point_name(point));
                config_print(config, stdout);
            }
        }
        config_free(config);
    }
}

/* ---- In the child ---------------------------------------------------------------------------- */

static void check_and_send(const struct plan *plan, const struct part *part, int fd)
{
    struct sim_error_list errors = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    check_part(plan, part, false, &errors);
    if (errors.n_messages > 0)
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

void plan_check_first(const struct plan *plan, struct sim_error_list *errors)
{
    const struct scenario *last = NULL;
    for (guint i = 0; i < plan->points->len; i++) {
        const struct part part = { .first = i, .end = i + 1 };
        if (plan_point(plan, i)->scenario != last)
            check_part(plan, &part, false, errors);
        last = plan_point(plan, i)->scenario;
    }
}

void plan_check(struct plan *plan, unsigned n_processes, bool print, struct sim_error_list *errors)
{
    const guint n_points = plan->points->len;
    const guint n_parts = print ? 1 : CLAMP(n_points / PART_POINTS, 1, n_processes);
    g_autofree struct part *parts = g_new0(struct part, n_parts);
    for (guint i = 0; i < n_parts; i++) {
        parts[i].first = (guint)((guint64)n_points * i / n_parts);
        parts[i].end = (guint)((guint64)n_points * (i + 1) / n_parts);
        if (i > 0)
            start_child(plan, &parts[i]);
    }
    for (guint i = 0; i < n_parts; i++) {
        if (!take_hashes(plan, &parts[i]))
            check_part(plan, &parts[i], print, errors);
    }
}
