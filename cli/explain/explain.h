/*
 * What limits a point: its resources one by one get twice as much (credits, tags, ways, channels,
 * rate ...), and the point runs again. What helps most is the limit. With that limit gone, the same
 * again says what comes next. Utilisation and parts of the latency are those of the point as it
 * stands.
 */
#ifndef CLI_EXPLAIN_EXPLAIN_H
#define CLI_EXPLAIN_EXPLAIN_H

#include <glib.h>

#include "sim/config/scenario.h"
#include "sim/store/results.h"

/* Of the refusals of settings that do nothing beside others, "it has no effect otherwise". */
#define EXPLAIN_NO_EFFECT "no effect"

enum explain_kind {
    EXPLAIN_LIMIT, /* how much, how many, how often */
    EXPLAIN_TIME,  /* how long: a latency that is always there */
    EXPLAIN_LOAD,  /* what the workload asks for at a time */
};

enum explain_better {
    EXPLAIN_BY_NAME, /* of a request: as the metric's name and unit say */
    EXPLAIN_MORE,
    EXPLAIN_LESS,
    EXPLAIN_EITHER, /* a count: changes to either side are changes */
};

struct explain_change {
    char *path;
    double from, to; /* of a switch: 0 and 1 */
    bool is_switch;
    bool ends; /* its range ends there: no twice as much, or half */
};

/* A resource that can be made larger. */
struct explain_resource {
    enum explain_kind kind;
    char *name;       /* "receive credits of root ports of server" */
    char *owner;      /* "hosts.server", "devices.ssd"; of several together "" */
    char *root;       /* of a PCIe link: the only host it leads to, "hosts.server"; else NULL */
    GArray *change;   /* struct explain_change */
    GPtrArray *parts; /* of several together: struct explain_resource, not owned; else NULL */
};

/* The resources of the point, each with what makes it `steps` times as large again (1: twice) as
 * far as the model goes; those that are at its limit are left out. struct explain_resource,
 * owned. ended (may be NULL) gets what those are at, "hosts.server.cpu.clock_ghz = 6", which the
 * caller g_free()s. */
GPtrArray *explain_resources(struct config *config, unsigned steps, GPtrArray *ended,
                             struct sim_error_list *errors);

/* The host whose processors cpu_utilization_ratio is of, where there are several; else NULL. The
 * configuration is checked; g_free(). */
char *explain_cpu_host(const struct config *config);

/* Those of the resources together, a new one; the parts must outlive it.
 * explain_resource_free(). */
struct explain_resource *explain_join(struct explain_resource *const *parts, guint n);
void explain_resource_free(gpointer resource);

struct explain_request {
    struct scenario *scenario;
    size_t point;
    uint64_t seed;
    unsigned n_seeds; /* from `seed` on, of which values are means; 0: one, or as many as noise asks
                  * for */
    const char *metric; /* NULL: the first that the scenario plots and the point records */
    enum explain_better better;
    unsigned n_workers;
    double threshold_ratio; /* a smaller effect is none */
    bool brief;             /* what comes next is not asked */
    bool shows_progress;    /* a line on standard error, which is rewritten */
    bool prints_runs;       /* a line on standard error for each run */
    int stop_fd;            /* of a struct stop: what comes there ends it; -1: nothing does */
};

struct explain_effect {
    const struct explain_resource *resource;
    double value;      /* of the metric with it twice as large; NAN: that run failed */
    double gain_ratio; /* of the value without it; positive: better, or changed either way */
    char *failure;     /* why that run failed; NULL: it did not */
};

struct explain_answer {
    struct run_result *base; /* owned */
    char *metric, *unit;
    char *cpu_host; /* explain_cpu_host() */
    enum explain_better better;
    double value;       /* of several seeds their mean */
    double noise_ratio; /* half the base's confidence interval, or half of what seeds differ by */
    unsigned n_seeds;
    double measured_us, n_counted; /* by a rate of a count, in that time; 0: it is none */
    double least_ratio;            /* what is no more is no difference */
    double spread_ratio;           /* of several seeds: the most less the least, of their mean */
    GPtrArray *resources, *ended;  /* as of explain_resources(), owned */
    GArray *effects;               /* struct explain_effect, the best first */
    const struct explain_resource *limit; /* NULL: none of EXPLAIN_LIMIT matters */
    double value_without;                 /* the limit 8 times as large; NAN without a limit */
    GArray *next;                         /* struct explain_effect, then */
    const struct explain_resource *next_limit;
    GPtrArray *gone; /* that limit as it was changed, owned */
};

/* The path of the rule of that index, "hosts.*.dram.channels"; NULL beyond the last. */
const char *explain_rule_path(size_t index);
/* False with mistakes in errors, or *error (g_free()) if the point itself fails, or if it was
 * stopped. explain_release() in any case. */
bool explain_point(const struct explain_request *request, struct explain_answer *answer,
                   struct sim_error_list *errors, char **error);
void explain_release(struct explain_answer *answer);

/* Of `best` and the others, the best first: if it is a link, receive credits of root ports of its
 * host that do nearly what it does, or a part of that while the link is not `busy`: it stands still
 * for want of them. Else `best`. but: the name of credits that are gone already, or NULL. */
const struct explain_effect *explain_credits_of_link(const GArray *effects, double threshold,
                                                     bool busy, const char *but,
                                                     const struct explain_effect *best);

/* The page; g_free(). */
char *explain_text(const struct explain_answer *answer);

#endif
