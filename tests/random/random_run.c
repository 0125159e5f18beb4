#include "tests/random/random_run.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workloads/experiment.h"

/* Processor time after which a run counts as one that never ends. */
#define HANGS_S 100
/* Of a scenario that nobody chose: it may be as long as it likes, it is not run to its end. */
#define LONG_ENOUGH_MS 300

static volatile int enough;

/* ---- Facts ----------------------------------------------------------------------------------- */

static void keep_setting(void *context, const char *path, const char *value, const char *unit,
                         enum param_provenance provenance, const char *origin)
{
    struct random_facts *f = context;
    (void)unit;
    (void)provenance;
    (void)origin;
    g_hash_table_replace(f->setting, g_strdup(path), g_strdup(value));
}

const char *random_word(const struct random_facts *f, const char *format, ...)
{
    char path[200];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    const char *value = g_hash_table_lookup(f->setting, path);
    return value != NULL ? value : "";
}

double random_number(const struct random_facts *f, const char *format, ...)
{
    char path[200];
    char *end;
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    const char *value = g_hash_table_lookup(f->setting, path);
    if (value == NULL)
        return NAN;
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        return *value == 't' ? 1.0 : 0.0;
    const double number = strtod(value, &end);
    return end != value ? number : NAN;
}

double random_metric(const struct random_facts *f, const char *format, ...)
{
    char name[200];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    const double value = run_result_value(f->result, name);
    if (isnan(value) && f->missing->len == 0)
        g_string_assign(f->missing, name);
    return isfinite(value) ? value : 0.0;
}

double random_metric_if_any(const struct random_facts *f, const char *format, ...)
{
    char name[200];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    const double value = run_result_value(f->result, name);
    return isfinite(value) ? value : 0.0;
}

void random_fails(struct random_verdict *v, const char *property, const char *format, ...)
{
    va_list args;
    if (v->property[0] != '\0')
        return;
    g_strlcpy(v->property, property, sizeof(v->property));
    va_start(args, format);
    vsnprintf(v->message, sizeof(v->message), format, args);
    va_end(args);
}

/* ---- One run --------------------------------------------------------------------------------- */

static struct config *load(const char *text, struct sim_error_list *errors)
{
    char *path = NULL;
    int fd = g_file_open_tmp("nudma_random_XXXXXX.cfg", &path, NULL);
    SIM_ASSERT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text),
               "no file for a scenario: %s", strerror(errno));
    close(fd);
    struct config *config = config_load(path, ".", errors);
    g_unlink(path);
    g_free(path);
    return config;
}

static void release(struct random_facts *f)
{
    run_result_free(f->result);
    g_hash_table_unref(f->setting);
    g_string_free(f->missing, TRUE);
    config_free(f->config);
}

/* A message must say where: a line, or the path of a setting. */
static void check_messages(struct sim_error_list *errors, struct random_verdict *v)
{
    if (errors->n_messages == 0)
        random_fails(v, "message", "refused without a message");
    for (size_t i = 0; i < errors->n_messages; i++)
        if (strstr(errors->message[i], ".cfg") == NULL)
            random_fails(v, "message", "says no place: %s", errors->message[i]);
}

/* Runs the text with the seed, after a change ("" for none). False: refused, or failed; then
 * nothing is left of it. */
static bool run(const char *text, const struct random_pair *change, uint64_t seed,
                enum random_mode mode, struct random_facts *f, struct random_verdict *v)
{
    struct sim_error_list errors = { 0 };
    struct experiment_outcome outcome;
    char *error = NULL;
    *f = (struct random_facts){ .config = load(text, &errors) };
    bool good = f->config != NULL && errors.n_messages == 0;
    if (good && change != NULL)
        good = config_set(f->config, change->path, change->value, "--set", &errors);
    good = good && experiment_check(f->config, &errors);
    if (!good) {
        if (mode == RANDOM_VALID)
            random_fails(v, change != NULL ? "pair_refused" : "refused", "%s",
                         errors.n_messages != 0 ? errors.message[0] : "without a message");
        else
            check_messages(&errors, v);
        sim_error_release(&errors);
        config_free(f->config);
        return false;
    }
    f->setting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    config_each_param(f->config, keep_setting, f);
    f->result = run_result_new();
    f->missing = g_string_new(NULL);
    v->n_runs++;
    if (experiment_run(f->config, seed, f->result, &outcome, &enough, &error)) {
        f->fingerprint = run_result_fingerprint(f->result, outcome.fingerprint);
        return true;
    }
    if (mode == RANDOM_VALID)
        random_fails(v, "run", "%s", error);
    g_free(error);
    release(f);
    return false;
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

static bool is_latency(const char *metric)
{
    return g_str_has_suffix(metric, "_ns") || g_str_has_suffix(metric, "_us");
}

/* Means of the metric over seeds 1 .. n, without and with the change; their spread, as a share. */
static bool means(const char *text, const struct random_pair *pair, unsigned n, double mean[2],
                  double *spread, struct random_verdict *v)
{
    *spread = 0;
    for (unsigned side = 0; side < 2; side++) {
        double lo = INFINITY, hi = -INFINITY, sum = 0;
        for (unsigned seed = 1; seed <= n; seed++) {
            struct random_facts f;
            if (!run(text, side == 1 ? pair : NULL, seed, RANDOM_VALID, &f, v))
                return false;
            const double value = random_metric(&f, "%s", pair->metric);
            lo = fmin(lo, value);
            hi = fmax(hi, value);
            sum += value;
            release(&f);
        }
        mean[side] = sum / n;
        if (mean[side] > 0)
            *spread = fmax(*spread, (hi - lo) / mean[side]);
    }
    return true;
}

/* By how much the changed one is worse, as a share. */
static double worse(const struct random_pair *pair, const double mean[2])
{
    if (mean[0] <= 0 || mean[1] <= 0)
        return mean[0] > 0 ? 1.0 : 0.0;
    return is_latency(pair->metric) ? mean[1] / mean[0] - 1.0 : 1.0 - mean[1] / mean[0];
}

/* An operation's share of what was counted: a window holds a whole number of them, and begins and
 * ends amid some. */
static double grain(const struct random_facts *f, const char *metric)
{
    const char *programs[] = { "a0", "a1", "a2", "a3", "f" };
    const double value = random_metric(f, "%s", metric);
    double bytes = 0;
    /* What is under way at both ends of the window. */
    if (!is_latency(metric) && random_metric_if_any(f, "transactions") > 0)
        return random_metric(f, "latency_mean_ns") / 1e3 / random_number(f, "measure.duration_us");
    if (is_latency(metric))
        return 1 / fmax(4, random_metric_if_any(f, "transactions"));
    for (unsigned i = 0; i < SIM_N_ELEMENTS(programs); i++) {
        const double transfer = random_number(f, "programs.%s.transfer_bytes", programs[i]),
                     block = random_number(f, "programs.%s.block_bytes", programs[i]);
        bytes += isfinite(transfer) ? transfer : 0;
        if (isfinite(block)) /* of all that it has queued, a quarter four times */
            bytes += block / 4 * random_number(f, "programs.%s.jobs", programs[i]) *
                     random_number(f, "programs.%s.queue_depth", programs[i]);
    }
    return value > 0 ? bytes / (value * 1e3 * random_number(f, "measure.duration_us")) : 0;
}

/* Of a pair whose one run is worse by more than the tolerance, three seeds decide: what they
 * spread is allowed for, too. */
static void judge_pair(const char *text, const struct random_pair *pair,
                       const struct random_facts *base, struct random_verdict *v)
{
    struct random_facts f;
    double mean[2], spread, by;
    if (!run(text, pair, 1, RANDOM_VALID, &f, v))
        return;
    if (pair->relation == RANDOM_DIFFERS && f.fingerprint == base->fingerprint)
        random_fails(v, "no_effect", "%s = %s changes nothing", pair->path, pair->value);
    const double tolerance = pair->tolerance + 4 * grain(base, pair->metric);
    mean[0] = random_metric(base, "%s", pair->metric);
    mean[1] = random_metric(&f, "%s", pair->metric);
    if (pair->relation != RANDOM_DIFFERS) {
        random_properties(&f, v);
        if (base->missing->len != 0)
            random_fails(v, "metric", "no metric is called %s", base->missing->str);
    }
    release(&f);
    by = worse(pair, mean);
    if (pair->relation == RANDOM_SAME)
        by = fabs(by);
    if (pair->relation == RANDOM_DIFFERS || by <= tolerance ||
        !means(text, pair, 3, mean, &spread, v))
        return;
    by = worse(pair, mean);
    if (pair->relation == RANDOM_SAME)
        by = fabs(by);
    if (by > tolerance + spread)
        random_fails(v, pair->relation == RANDOM_SAME ? "pair_same" : "pair_not_worse",
                     "%s goes from %g to %g with %s = %s (spread of three seeds %.1f %%)",
                     pair->metric, mean[0], mean[1], pair->path, pair->value, 100 * spread);
}

/* ---- Verdicts -------------------------------------------------------------------------------- */

static void is_enough(int signal)
{
    (void)signal;
    enough = 1;
}

void random_judge(const char *text, enum random_mode mode, struct random_verdict *v)
{
    struct random_facts f, again;
    struct random_pair pair;
    struct itimerval timer = { .it_value = { .tv_usec = LONG_ENOUGH_MS * 1000 } };
    *v = (struct random_verdict){ 0 };
    enough = 0;
    if (mode == RANDOM_ANY) {
        signal(SIGVTALRM, is_enough);
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
    }
    if (!run(text, NULL, 1, mode, &f, v))
        return;
    if (mode == RANDOM_VALID) {
        random_properties(&f, v);
        if (run(text, NULL, 1, mode, &again, v)) {
            if (again.fingerprint != f.fingerprint)
                random_fails(v, "twice", "fingerprints %016llx and %016llx",
                             (unsigned long long)f.fingerprint,
                             (unsigned long long)again.fingerprint);
            release(&again);
        }
        random_pair_read(text, &pair);
        if (pair.relation != RANDOM_NO_PAIR && v->property[0] == '\0')
            judge_pair(text, &pair, &f, v);
    }
    release(&f);
}

struct board {
    unsigned at; /* the scenario under way */
    struct random_verdict verdict[];
};

struct batch {
    random_make_fn *make;
    const char *text; /* instead of make */
    enum random_mode mode;
    uint64_t from;
    unsigned n;
};

static void judge_batch(const struct batch *batch, struct board *board)
{
    struct rlimit no_core = { 0, 0 }, time_s = { HANGS_S, HANGS_S };
    setrlimit(RLIMIT_CORE, &no_core);
    for (; board->at < batch->n; board->at++) {
        struct rusage used;
        getrusage(RUSAGE_SELF, &used);
        time_s.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec + HANGS_S);
        time_s.rlim_max = RLIM_INFINITY;
        setrlimit(RLIMIT_CPU, &time_s);
        char *text = NULL;
        if (batch->make != NULL) {
            struct random_scenario *s = g_new0(struct random_scenario, 1);
            batch->make(batch->from + board->at, s);
            text = random_text(s);
            g_free(s);
        }
        random_judge(text != NULL ? text : batch->text, batch->mode, &board->verdict[board->at]);
        g_free(text);
    }
}

/* What a child said before it died. */
static void last_words(int fd, int status, struct random_verdict *v)
{
    char words[500] = "";
    const off_t end = lseek(fd, 0, SEEK_END);
    lseek(fd, end > 4000 ? end - 4000 : 0, SEEK_SET);
    ssize_t n = read(fd, words, sizeof(words) - 1);
    words[n > 0 ? n : 0] = '\0';
    *v = (struct random_verdict){ 0 };
    random_fails(v, WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? "hangs" : "dies", "%s: %s",
                 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended", words);
}

static void judge_in_children(const struct batch *batch, struct random_verdict *verdict)
{
    const size_t bytes = sizeof(struct board) + batch->n * sizeof(struct random_verdict);
    struct board *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                               0);
    SIM_ASSERT(board != MAP_FAILED, "no memory for %u verdicts", batch->n);
    while (board->at < batch->n) {
        FILE *words = tmpfile();
        int status = 0;
        SIM_ASSERT(words != NULL, "no file for what a child says: %s", strerror(errno));
        fflush(NULL);
        const pid_t child = fork();
        SIM_ASSERT(child >= 0, "fork: %s", strerror(errno));
        if (child == 0) {
            dup2(fileno(words), STDERR_FILENO);
            judge_batch(batch, board);
            _exit(0);
        }
        SIM_ASSERT(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
        if (board->at < batch->n) {
            last_words(fileno(words), status, &board->verdict[board->at]);
            board->at++;
        }
        fclose(words);
    }
    memcpy(verdict, board->verdict, batch->n * sizeof(*verdict));
    munmap(board, bytes);
}

void random_judge_safely(const char *text, enum random_mode mode, struct random_verdict *v)
{
    judge_in_children(&(struct batch){ .text = text, .mode = mode, .n = 1 }, v);
}

void random_judge_seeds(random_make_fn *make, enum random_mode mode, uint64_t from, unsigned n,
                        struct random_verdict *verdict)
{
    judge_in_children(&(struct batch){ .make = make, .mode = mode, .from = from, .n = n }, verdict);
}

/* Whether two messages are the same but for numbers and names: one line of the code wrote both. */
static bool same_kind(const char *a, const char *b)
{
    char *kind[2];
    for (unsigned i = 0; i < 2; i++) {
        /* Paths of temporary files, and words with digits in them, are each run's own. */
        g_autoptr(GRegex) own = g_regex_new("\\S*[0-9/]\\S*|\"[^\"]*\"", 0, 0, NULL);
        kind[i] = g_regex_replace_literal(own, i == 0 ? a : b, -1, 0, "#", 0, NULL);
    }
    const bool same = g_strcmp0(kind[0], kind[1]) == 0;
    g_free(kind[0]);
    g_free(kind[1]);
    return same;
}

struct random_verdict random_shrink(struct random_scenario *s, enum random_mode mode,
                                    const struct random_verdict *v)
{
    struct random_scenario *smaller = g_new0(struct random_scenario, 1);
    struct random_verdict best = *v, found;
    unsigned tries = 0;
    for (unsigned n = 0; tries < 1000 && random_smaller(s, n, smaller); tries++) {
        char *text = random_text(smaller);
        random_judge_safely(text, mode, &found);
        g_free(text);
        if (strcmp(found.property, v->property) == 0 && same_kind(found.message, v->message)) {
            *s = *smaller;
            best = found; /* what is n-th now has not been tried */
        } else {
            n++;
        }
    }
    g_free(smaller);
    return best;
}
