/*
 * The log-linear histogram. Row 0 holds 0..2^B-1, one bucket a value; row r > 0 holds the values
 * whose highest bit is B + r - 1, in 2^B buckets of 2^(r-1) values each (B = STAT_SUB_BITS).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/stat.h"

#define ROW_BUCKETS (1u << STAT_SUB_BITS)

static unsigned row_of(uint64_t value)
{
    return value < ROW_BUCKETS ? 0 : (unsigned)(63 - __builtin_clzll(value)) - STAT_SUB_BITS + 1;
}

static unsigned bucket_of(uint64_t value, unsigned row)
{
    return (unsigned)(row == 0 ? value : value >> (row - 1)) & (ROW_BUCKETS - 1);
}

static uint64_t bucket_lo(unsigned row, unsigned bucket)
{
    return row == 0 ? bucket : (uint64_t)(ROW_BUCKETS + bucket) << (row - 1);
}

static uint64_t bucket_width(unsigned row)
{
    return row == 0 ? 1 : UINT64_C(1) << (row - 1);
}

void stat_histogram_init(struct stat_histogram *h)
{
    *h = (struct stat_histogram){ .min = UINT64_MAX };
}

void stat_histogram_release(struct stat_histogram *h)
{
    for (unsigned row = 0; row < STAT_ROWS; row++)
        free(h->row[row]);
    stat_histogram_init(h);
}

void stat_histogram_clear(struct stat_histogram *h)
{
    for (unsigned row = 0; row < STAT_ROWS; row++) {
        if (h->row[row] != NULL)
            memset(h->row[row], 0, ROW_BUCKETS * sizeof(*h->row[row]));
    }
    h->n = 0;
    h->min = UINT64_MAX;
    h->max = 0;
    h->sum = 0.0;
}

static __attribute__((noinline, cold)) uint64_t *new_row(void)
{
    return sim_zalloc(ROW_BUCKETS, sizeof(uint64_t));
}

void stat_histogram_add(struct stat_histogram *h, uint64_t value)
{
    const unsigned row = row_of(value);
    if (SIM_UNLIKELY(h->row[row] == NULL))
        h->row[row] = new_row();
    h->row[row][bucket_of(value, row)]++;
    h->min = h->n == 0 ? value : SIM_MIN(h->min, value); /* zeroed memory will do */
    h->n++;
    h->sum += (double)value;
    h->max = SIM_MAX(h->max, value);
}

uint64_t stat_histogram_quantile(const struct stat_histogram *h, double q)
{
    SIM_ASSERT(q >= 0.0 && q <= 1.0, "quantile %f", q);
    if (h->n == 0)
        return 0;
    /* 0.07 * 100 is a little above 7 in binary */
    const double exact_rank = q * (double)h->n * (1.0 - 4.0 * DBL_EPSILON);
    const uint64_t rank = SIM_MAX((uint64_t)ceil(exact_rank), UINT64_C(1));
    if (q <= 0.0 || rank == 1)
        return h->min;
    uint64_t below = 0;
    for (unsigned row = 0; row < STAT_ROWS && rank < h->n; row++) {
        for (unsigned i = 0; h->row[row] != NULL && i < ROW_BUCKETS; i++) {
            below += h->row[row][i];
            if (below < rank)
                continue;
            const uint64_t middle = bucket_lo(row, i) + bucket_width(row) / 2;
            return SIM_MAX(h->min, SIM_MIN(h->max, middle));
        }
    }
    return h->max; /* the last sample of all */
}

void stat_histogram_each(const struct stat_histogram *h,
                         void (*fn)(void *context, uint64_t lo, uint64_t hi, uint64_t count),
                         void *context)
{
    for (unsigned row = 0; row < STAT_ROWS; row++) {
        for (unsigned i = 0; h->row[row] != NULL && i < ROW_BUCKETS; i++) {
            const uint64_t lo = bucket_lo(row, i);
            /* the last bucket of all would end at 2^64 */
            const uint64_t width = SIM_MIN(bucket_width(row), UINT64_MAX - lo);
            if (h->row[row][i] != 0)
                fn(context, lo, lo + width, h->row[row][i]);
        }
    }
}
