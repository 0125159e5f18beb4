/*
 * A result as bytes, from a worker process to the one that writes the database. Both are the same
 * program on the same machine, so numbers are in its byte order; what can go wrong is a worker that
 * ends in the middle, so every read is checked against the end, and the total is written first.
 */
#include <string.h>

#include "sim/store/results_internal.h"

static void put_u64(GByteArray *out, uint64_t value)
{
    g_byte_array_append(out, (const guint8 *)&value, sizeof(value));
}

static void put_double(GByteArray *out, double value)
{
    g_byte_array_append(out, (const guint8 *)&value, sizeof(value));
}

static void put_text(GByteArray *out, const char *text)
{
    g_byte_array_append(out, (const guint8 *)text, (guint)strlen(text) + 1);
}

void *run_result_pack(const struct run_result *result, size_t *n_bytes)
{
    GByteArray *out = g_byte_array_new();
    put_u64(out, 0); /* the total, below */
    put_u64(out, result->metrics->len);
    for (guint i = 0; i < result->metrics->len; i++) {
        const struct result_metric *m = &g_array_index(result->metrics, struct result_metric, i);
        put_text(out, m->name);
        put_text(out, m->unit);
        put_double(out, m->value);
    }
    put_u64(out, result->buckets->len);
    for (guint i = 0; i < result->buckets->len; i++) {
        const struct result_bucket *b = &g_array_index(result->buckets, struct result_bucket, i);
        put_text(out, b->name);
        put_text(out, b->unit);
        put_double(out, b->lo);
        put_double(out, b->hi);
        put_u64(out, b->count);
    }
    put_u64(out, result->samples->len);
    for (guint i = 0; i < result->samples->len; i++) {
        const struct result_sample *s = &g_array_index(result->samples, struct result_sample, i);
        put_text(out, s->name);
        put_text(out, s->unit);
        put_u64(out, s->t_ps);
        put_double(out, s->value);
    }
    put_u64(out, result->params->len);
    for (guint i = 0; i < result->params->len; i++) {
        const struct result_param *p = &g_array_index(result->params, struct result_param, i);
        put_text(out, p->name);
        put_text(out, p->value);
        put_text(out, p->unit);
        put_text(out, p->provenance);
    }
    const uint64_t total = out->len;
    memcpy(out->data, &total, sizeof(total));
    *n_bytes = out->len;
    return g_byte_array_free(out, FALSE);
}

struct reader {
    const char *at, *end;
    bool short_of_bytes;
};

static void get(struct reader *in, void *value, size_t n_bytes)
{
    memset(value, 0, n_bytes);
    if (in->short_of_bytes || (size_t)(in->end - in->at) < n_bytes) {
        in->short_of_bytes = true;
        return;
    }
    memcpy(value, in->at, n_bytes);
    in->at += n_bytes;
}

static uint64_t get_u64(struct reader *in)
{
    uint64_t value;
    get(in, &value, sizeof(value));
    return value;
}

static double get_double(struct reader *in)
{
    double value;
    get(in, &value, sizeof(value));
    return value;
}

static const char *get_text(struct reader *in)
{
    const char *end = memchr(in->at, '\0', (size_t)(in->end - in->at));
    if (in->short_of_bytes || end == NULL) {
        in->short_of_bytes = true;
        return "";
    }
    const char *text = in->at;
    in->at = end + 1;
    return text;
}

static void get_metrics(struct reader *in, struct run_result *result)
{
    for (uint64_t n = get_u64(in); n > 0 && !in->short_of_bytes; n--) {
        struct result_metric m = { .name = get_text(in) };
        m.unit = get_text(in);
        m.value = get_double(in);
        g_array_append_val(result->metrics, m);
        g_hash_table_insert(result->metric_index, (gpointer)m.name,
                            GUINT_TO_POINTER(result->metrics->len));
    }
}

static void get_buckets(struct reader *in, struct run_result *result)
{
    for (uint64_t n = get_u64(in); n > 0 && !in->short_of_bytes; n--) {
        struct result_bucket b = { .name = get_text(in) };
        b.unit = get_text(in);
        b.lo = get_double(in);
        b.hi = get_double(in);
        b.count = get_u64(in);
        g_array_append_val(result->buckets, b);
        g_hash_table_insert(result->histograms, (gpointer)b.name, (gpointer)b.unit);
    }
}

static void get_samples(struct reader *in, struct run_result *result)
{
    for (uint64_t n = get_u64(in); n > 0 && !in->short_of_bytes; n--) {
        struct result_sample s = { .name = get_text(in) };
        s.unit = get_text(in);
        s.t_ps = get_u64(in);
        s.value = get_double(in);
        g_array_append_val(result->samples, s);
        g_hash_table_insert(result->series, (gpointer)s.name, (gpointer)s.unit);
    }
}

static void get_params(struct reader *in, struct run_result *result)
{
    for (uint64_t n = get_u64(in); n > 0 && !in->short_of_bytes; n--) {
        struct result_param p = { .name = get_text(in) };
        p.value = get_text(in);
        p.unit = get_text(in);
        p.provenance = get_text(in);
        g_array_append_val(result->params, p);
    }
}

struct run_result *run_result_unpack(const void *bytes, size_t n_bytes)
{
    struct run_result *result = run_result_new();
    /* the texts stay in a copy of the whole */
    const char *copy = g_string_chunk_insert_len(result->strings, bytes, (gssize)n_bytes);
    struct reader in = { .at = copy, .end = copy + n_bytes };
    in.short_of_bytes = get_u64(&in) != n_bytes;
    get_metrics(&in, result);
    get_buckets(&in, result);
    get_samples(&in, result);
    get_params(&in, result);
    if (!in.short_of_bytes && in.at == in.end)
        return result;
    run_result_free(result);
    return NULL;
}
