/*
 * Statistics: declared once, beside what they count, as a table of descriptions over the fields of
 * a model's state. Recording is inline and allocates nothing.
 */
#ifndef SIM_ENGINE_STAT_H
#define SIM_ENGINE_STAT_H

#include "sim/engine/types.h"

enum stat_kind {
    STAT_END = 0,
    STAT_COUNTER,   /* uint64_t; reported as is */
    STAT_RATE,      /* uint64_t; reported per second of the measured time */
    STAT_MEAN,      /* struct stat_mean; reported as mean (and .ci95) */
    STAT_HISTOGRAM, /* struct stat_histogram; reported as mean, p50, p90, p99, p999, min, max */
    STAT_MAX,       /* uint64_t high-water mark */
    STAT_BOUND,     /* uint64_t; not reported, only held against its peak, of which the share is */
};

struct stat_desc {
    const char *name; /* "dram_read_bytes" */
    enum stat_kind kind;
    size_t offset;
    const char *unit; /* "bytes", "ns", "1" */
    double scale;     /* multiplies the stored value for the report (ps -> ns: 0.001); 0 means 1 */
    const char *help;
    /* is_part: one of several statistics of a kind, named "pf0_...", "pf1_...". The uint32_t at
     * n_offset of the state says how many there are; this one is number `part`, from 0. */
    bool is_part;
    size_t n_offset;
    uint32_t part;
    /* The statistic (STAT_COUNTER, STAT_BOUND) counts what a resource carried: a struct stat_peak
     * of the state says how much that can be. */
    bool has_peak;
    size_t peak_offset;
};

/* The most that a resource can carry, in the unit that is stored. */
struct stat_peak {
    double per_s; /* 0: no bound */
    double slack; /* what the edges of the measured time can add */
};

/* Busy time of servers that are reserved ahead of time. */
struct stat_busy {
    uint64_t ps;       /* the statistic: reserved until now, once settled */
    uint64_t ahead_ps; /* taken off by the last stat_busy_settle() */
};
/* Takes off what is reserved after now, and puts back what the last call took off. */
static inline void stat_busy_settle(struct stat_busy *busy, uint64_t ahead_ps)
{
    busy->ps += busy->ahead_ps;
    busy->ahead_ps = SIM_MIN(ahead_ps, busy->ps);
    busy->ps -= busy->ahead_ps;
}

/* The share of its peak that a statistic with one has carried in the measured time; its edges may
 * make it a little more than 1. NAN: it has no peak, or no time went by. */
double stat_utilization(const struct stat_desc *stat, const void *state, sim_time duration_ps);
/* The name under which that is reported: "dram_utilization_ratio" of dram_bytes,
 * "push_utilization_ratio" of push_busy_ps, "utilization_ratio" of bytes and tlp_bytes. buffer of
 * 64, which is returned. */
const char *stat_utilization_name(const struct stat_desc *stat, char buffer[64]);

#define STAT(NAME, KIND, STRUCT, FIELD, UNIT, SCALE, HELP)                                 \
    {                                                                                      \
        .name = (NAME), .kind = (KIND), .offset = offsetof(STRUCT, FIELD), .unit = (UNIT), \
        .scale = (SCALE), .help = (HELP)                                                   \
    }

/* Number PART of those whose count is the uint32_t N_FIELD. */
#define STAT_PART(NAME, KIND, STRUCT, FIELD, UNIT, HELP, N_FIELD, PART)                        \
    {                                                                                          \
        .name = (NAME), .kind = (KIND), .offset = offsetof(STRUCT, FIELD), .unit = (UNIT),     \
        .help = (HELP), .is_part = true, .n_offset = offsetof(STRUCT, N_FIELD), .part = (PART) \
    }
/* Bounded by the struct stat_peak in PEAK_FIELD. */
#define STAT_BOUNDED(NAME, STRUCT, FIELD, UNIT, SCALE, HELP, PEAK_FIELD)                         \
    {                                                                                            \
        .name = (NAME), .kind = STAT_COUNTER, .offset = offsetof(STRUCT, FIELD), .unit = (UNIT), \
        .scale = (SCALE), .help = (HELP), .has_peak = true,                                      \
        .peak_offset = offsetof(STRUCT, PEAK_FIELD)                                              \
    }
/* The same, not reported. */
#define STAT_BOUND_ONLY(NAME, STRUCT, FIELD, UNIT, HELP, PEAK_FIELD)                           \
    {                                                                                          \
        .name = (NAME), .kind = STAT_BOUND, .offset = offsetof(STRUCT, FIELD), .unit = (UNIT), \
        .help = (HELP), .has_peak = true, .peak_offset = offsetof(STRUCT, PEAK_FIELD)          \
    }
#define STAT_PART_BOUNDED(NAME, STRUCT, FIELD, UNIT, HELP, N_FIELD, PART, PEAK_FIELD)            \
    {                                                                                            \
        .name = (NAME), .kind = STAT_COUNTER, .offset = offsetof(STRUCT, FIELD), .unit = (UNIT), \
        .help = (HELP), .is_part = true, .n_offset = offsetof(STRUCT, N_FIELD), .part = (PART),  \
        .has_peak = true, .peak_offset = offsetof(STRUCT, PEAK_FIELD)                            \
    }
/* Whether the state has this statistic. */
static inline bool stat_exists(const struct stat_desc *stat, const void *state)
{
    return !stat->is_part ||
           stat->part < *(const uint32_t *)(const void *)((const char *)state + stat->n_offset);
}

/* ---- Mean with a confidence interval by batch means ----------------------------------------
 * Keeps STAT_BATCHES batches; when all are full, pairs are merged and the batch size doubles, so
 * memory is constant and the interval always rests on STAT_BATCHES/2..STAT_BATCHES batches. */
#define STAT_BATCHES     64
#define STAT_MIN_BATCHES 10 /* fewer give no interval */

struct stat_mean {
    uint64_t n;
    double sum, min, max;
    uint64_t batch_size; /* samples per batch, a power of two */
    uint64_t in_batch;   /* samples in the batch that is being filled */
    double batch_sum;
    uint32_t n_batches;
    double batch_mean[STAT_BATCHES];
};

void stat_mean_init(struct stat_mean *mean);
/* The value must be finite (SIM_ASSERT). */
void stat_mean_add(struct stat_mean *mean, double value);
double stat_mean_value(const struct stat_mean *mean); /* NAN without samples */
/* Half-width of the 95 % confidence interval (Student's t); INFINITY with fewer than 10 batches. */
double stat_mean_ci95(const struct stat_mean *mean);
/* The 97.5 % quantile of Student's t with df degrees of freedom (df >= 1). */
double stat_student_t95(uint32_t df);
/* Half the 95 % interval of the mean of n independent values (n >= 2), as a share of that mean. */
double stat_interval_ratio(const double *value, uint32_t n);

/* When a mean is known well enough ("to 2 %"). stat_precision_reached() may be called after every
 * sample: it looks at the batches only when one has been filled. Zeroed, it never says yes. */
struct stat_precision {
    double ratio;         /* ci95 / |mean| that is good enough; 0: never */
    uint64_t min_samples; /* not before this many */
    uint32_t min_batches; /* nor before this many batches; 0 means STAT_PRECISION_BATCHES */
    uint64_t checked_n;   /* private: samples when the batches were last looked at */
    bool reached;         /* private: once reached, it stays so */
};
/* More than the 10 of stat_mean_ci95(): looking again and again favours lucky early stops. */
#define STAT_PRECISION_BATCHES 32

bool stat_precision_reached(struct stat_precision *precision, const struct stat_mean *mean);

/* ---- Log-linear histogram -------------------------------------------------------------------
 * Values 0..2^64-1; exact below 2^STAT_SUB_BITS, from there on 2^STAT_SUB_BITS linear buckets per
 * power of two: the relative error of a quantile is below 2^-(STAT_SUB_BITS + 1) (0.4 %), that of
 * the whole bucket 0.8 %. Rows of 1 KiB appear with the first value of their power of two. */
#define STAT_SUB_BITS 7
#define STAT_ROWS     (64 - STAT_SUB_BITS + 1)

struct stat_histogram {
    uint64_t n, min, max;
    double sum;
    uint64_t *row[STAT_ROWS]; /* NULL until used; freed by stat_histogram_release() */
};

void stat_histogram_init(struct stat_histogram *h);
void stat_histogram_release(struct stat_histogram *h);
void stat_histogram_clear(struct stat_histogram *h);
void stat_histogram_add(struct stat_histogram *h, uint64_t value);
/* The smallest value such that a share q (0..1) of all samples is not above it; 0 without samples.
 * Middle of the bucket, clamped to min..max; q 0 is min and 1 is max, exactly. */
uint64_t stat_histogram_quantile(const struct stat_histogram *h, double q);
/* Calls fn for every bucket with a count, ascending. [lo, hi) */
void stat_histogram_each(const struct stat_histogram *h,
                         void (*fn)(void *context, uint64_t lo, uint64_t hi, uint64_t count),
                         void *context);

/* ---- Tables ---------------------------------------------------------------------------------- */
/* Clears every statistic of a state (end of warm-up). Also right as the first initialisation of a
 * zeroed state. table may be NULL. */
void stat_clear(const struct stat_desc *table, void *state);
/* The sum of all that the table counts, and of the numbers of values: another one after anything
 * was counted. table may be NULL. */
uint64_t stat_sum(const struct stat_desc *table, const void *state);
/* Frees the rows of its histograms. */
void stat_release(const struct stat_desc *table, void *state);
/* SIM_ASSERTs that no resource of the table has carried more than its peak in the duration_ps since
 * stat_clear(). prefix: for the message. */
void stat_check_peaks(const struct stat_desc *table, const void *state, const char *prefix,
                      sim_time duration_ps);

#endif
