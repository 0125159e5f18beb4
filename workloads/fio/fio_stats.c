/* What a job counts: latencies by direction, depths, batches, in the divisions of fio's reports. */
#include <math.h>
#include <string.h>

#include "workloads/fio/fio_internal.h"

static void latency_init(struct fio_latency *latency)
{
    *latency = (struct fio_latency){ 0 };
    stat_histogram_init(&latency->ps);
}

static void latency_add(struct fio_latency *latency, uint64_t ps)
{
    stat_histogram_add(&latency->ps, ps);
    const double delta = (double)ps - latency->mean;
    latency->mean += delta / (double)latency->ps.n;
    latency->m2 += delta * ((double)ps - latency->mean);
}

double fio_latency_deviation(const struct fio_latency *latency)
{
    return latency->ps.n > 1 ? sqrt(latency->m2 / (double)(latency->ps.n - 1)) : 0;
}

static void add_bucket(void *context, uint64_t lo, uint64_t hi, uint64_t count)
{
    struct stat_histogram *h = context;
    for (uint64_t i = 0; i < count; i++)
        stat_histogram_add(h, lo + (hi - lo) / 2);
}

/* Of two samples (Chan, Golub, LeVeque 1979). The histogram's sum, least and largest stay exact. */
static void latency_merge(struct fio_latency *to, const struct fio_latency *from)
{
    const double n = (double)to->ps.n, m = (double)from->ps.n, delta = from->mean - to->mean;
    if (from->ps.n == 0)
        return;
    const double sum = to->ps.sum + from->ps.sum;
    const uint64_t least = n == 0 ? from->ps.min : SIM_MIN(to->ps.min, from->ps.min),
                   most = n == 0 ? from->ps.max : SIM_MAX(to->ps.max, from->ps.max);
    stat_histogram_each(&from->ps, add_bucket, &to->ps);
    to->ps.sum = sum;
    to->ps.min = least;
    to->ps.max = most;
    to->mean += delta * m / (n + m);
    to->m2 += from->m2 + delta * delta * n * m / (n + m);
}

void fio_stats_init(struct fio_stats *stats)
{
    *stats = (struct fio_stats){ .begin_ps = UINT64_MAX };
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++) {
        latency_init(&stats->of[i].slat);
        latency_init(&stats->of[i].clat);
        latency_init(&stats->of[i].lat);
    }
}

void fio_stats_release(struct fio_stats *stats)
{
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++) {
        stat_histogram_release(&stats->of[i].slat.ps);
        stat_histogram_release(&stats->of[i].clat.ps);
        stat_histogram_release(&stats->of[i].lat.ps);
    }
}

void fio_stats_clear(struct fio_stats *stats)
{
    fio_stats_release(stats);
    fio_stats_init(stats);
}

/* Upper ends of fio's divisions; what is not below the last one is in that behind it. */
static unsigned level_of(uint64_t value, unsigned n)
{
    static const uint64_t ends[] = { 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000 };
    unsigned i = 0;
    while (i + 1 < n && value >= ends[i])
        i++;
    return i;
}

static void mark_level(struct fio_stats *stats, uint64_t ps)
{
    if (ps < SIM_PS_PER_US)
        stats->level_ns[level_of(ps / SIM_PS_PER_NS, FIO_NS_LEVELS)]++;
    else if (ps < SIM_PS_PER_MS)
        stats->level_us[level_of(ps / SIM_PS_PER_US, FIO_NS_LEVELS)]++;
    else
        stats->level_ms[level_of(ps / SIM_PS_PER_MS, FIO_MS_LEVELS)]++;
}

void fio_stats_add(struct fio_stats *stats, const struct fio_io_u *io_u, bool asynchronous)
{
    struct fio_direction_stats *of = &stats->of[io_u->write ? FIO_WRITE : FIO_READ];
    const uint64_t clat_from_ps = asynchronous ? io_u->issue_ps : io_u->start_ps;
    of->n++;
    of->bytes += io_u->bytes;
    if (asynchronous)
        latency_add(&of->slat, io_u->issue_ps - io_u->start_ps);
    latency_add(&of->clat, io_u->end_ps - clat_from_ps);
    latency_add(&of->lat, io_u->end_ps - io_u->start_ps);
    mark_level(stats, io_u->end_ps - clat_from_ps);
}

/* 1, 2-3, 4-7, ... 64 and more. */
void fio_stats_depth(struct fio_stats *stats, unsigned n_under_way)
{
    unsigned level = 0;
    while (level + 1 < FIO_DEPTH_LEVELS && n_under_way >= 2u << level)
        level++;
    stats->depth[level]++;
}

/* None, 1-4, 5-8, 9-16, ... more than 64. */
void fio_stats_batch(uint64_t level[FIO_DEPTH_LEVELS], unsigned n)
{
    unsigned i = n == 0 ? 0 : 1;
    while (i != 0 && i + 1 < FIO_DEPTH_LEVELS && n > 2u << i)
        i++;
    level[i]++;
}

static void add_levels(uint64_t *to, const uint64_t *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] += from[i];
}

void fio_stats_merge(struct fio_stats *to, const struct fio_stats *from)
{
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++) {
        to->of[i].n += from->of[i].n;
        to->of[i].bytes += from->of[i].bytes;
        latency_merge(&to->of[i].slat, &from->of[i].slat);
        latency_merge(&to->of[i].clat, &from->of[i].clat);
        latency_merge(&to->of[i].lat, &from->of[i].lat);
    }
    if (to->first_error == 0)
        to->first_error = from->first_error;
    to->n_errors += from->n_errors;
    to->n_syncs += from->n_syncs;
    add_levels(to->depth, from->depth, FIO_DEPTH_LEVELS);
    add_levels(to->submit, from->submit, FIO_DEPTH_LEVELS);
    add_levels(to->complete, from->complete, FIO_DEPTH_LEVELS);
    add_levels(to->level_ns, from->level_ns, FIO_NS_LEVELS);
    add_levels(to->level_us, from->level_us, FIO_NS_LEVELS);
    add_levels(to->level_ms, from->level_ms, FIO_MS_LEVELS);
    to->begin_ps = SIM_MIN(to->begin_ps, from->begin_ps);
    to->end_ps = SIM_MAX(to->end_ps, from->end_ps);
}
