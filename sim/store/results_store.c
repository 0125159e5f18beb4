/*
 * One run into the database, in one transaction. Every step keeps the first error code; after one,
 * the rest does nothing and the transaction is rolled back.
 */
#include <string.h>

#include "sim/store/query.h"
#include "sim/store/results_internal.h"
#include "sim/store/version.h"

struct writer {
    struct results_db *db;
    int code; /* SQLITE_OK so far, or the first error */
    int64_t run_id;
};

static sqlite3_stmt *prepare(struct writer *writer, enum results_statement which)
{
    if (writer->code != SQLITE_OK)
        return NULL;
    sqlite3_stmt *statement = results_statement(writer->db, which);
    if (statement == NULL)
        writer->code = sqlite3_errcode(writer->db->sqlite);
    return statement;
}

/* Runs a bound statement; the first column of its first row, -1 without one. */
static int64_t step(struct writer *writer, sqlite3_stmt *statement)
{
    if (writer->code != SQLITE_OK || statement == NULL)
        return -1;
    const int stepped = sqlite3_step(statement);
    const int64_t value = stepped == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    if (stepped != SQLITE_ROW && stepped != SQLITE_DONE)
        writer->code = stepped;
    sqlite3_reset(statement);
    return value;
}

static void bind_integers(sqlite3_stmt *statement, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(statement, i + 1, values[i]);
}

/* The same with texts bound to its first parameters. */
static int64_t step_texts(struct writer *writer, enum results_statement which,
                          const char *const *texts, int n_texts)
{
    sqlite3_stmt *statement = prepare(writer, which);
    for (int i = 0; statement != NULL && i < n_texts; i++)
        sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
    return step(writer, statement);
}

/* The id of a row of texts in one of the dictionaries, which gains it if it is new. */
static int64_t dictionary_id(struct writer *writer, enum results_statement add,
                             enum results_statement get, const char *const *texts, int n_texts)
{
    g_autoptr(GString) key = g_string_sized_new(128);
    g_string_append_c(key, (char)('a' + (int)get));
    for (int i = 0; i < n_texts; i++) {
        g_string_append_c(key, '\n');
        g_string_append(key, texts[i]);
    }
    int64_t *known = g_hash_table_lookup(writer->db->ids, key->str);
    int64_t id = known != NULL ? *known : -1;
    if (known == NULL) {
        step_texts(writer, add, texts, n_texts);
        id = step_texts(writer, get, texts, n_texts);
        if (id >= 0)
            g_hash_table_insert(writer->db->ids, g_strdup(key->str), g_memdup2(&id, sizeof(id)));
    }
    return id;
}

static int64_t label_id(struct writer *writer, const char *text)
{
    const char *texts[] = { text != NULL ? text : "" };
    return dictionary_id(writer, STATEMENT_LABEL_ADD, STATEMENT_LABEL_GET, texts, 1);
}

static int64_t quantity_id(struct writer *writer, const char *name, const char *unit)
{
    const char *texts[] = { name, unit };
    return dictionary_id(writer, STATEMENT_QUANTITY_ADD, STATEMENT_QUANTITY_GET, texts, 2);
}

/* ---- Parameters: one set for all runs that share it ------------------------------------------ */

static void add_member(struct writer *writer, int64_t set_id, const struct result_param *param)
{
    const char *texts[] = { param->name, param->value, param->unit, param->provenance };
    const int64_t id = dictionary_id(writer, STATEMENT_SETTING_ADD, STATEMENT_SETTING_GET, texts,
                                     4);
    sqlite3_stmt *statement = prepare(writer, STATEMENT_SET_MEMBER);
    if (statement == NULL)
        return;
    bind_integers(statement, (const int64_t[]){ set_id, id }, 2);
    step(writer, statement);
}

static void update_with_text(GChecksum *sum, const char *text)
{
    g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
}

/* The id of the set of these parameters; -1 for none. */
static int64_t set_id(struct writer *writer, const GArray *params)
{
    if (params == NULL || params->len == 0)
        return -1;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < params->len; i++) {
        const struct result_param *p = &g_array_index(params, struct result_param, i);
        update_with_text(sum, p->name);
        update_with_text(sum, p->value);
        update_with_text(sum, p->unit);
        update_with_text(sum, p->provenance);
    }
    const char *digest[] = { g_checksum_get_string(sum) };
    int64_t id = step_texts(writer, STATEMENT_SET_GET, digest, 1);
    if (id < 0 && writer->code == SQLITE_OK) {
        step_texts(writer, STATEMENT_SET_ADD, digest, 1);
        id = sqlite3_last_insert_rowid(writer->db->sqlite);
        for (guint i = 0; i < params->len; i++)
            add_member(writer, id, &g_array_index(params, struct result_param, i));
    }
    return id;
}

/* ---- The run --------------------------------------------------------------------------------- */

static void write_newest(struct writer *writer, int64_t scenario, int64_t point, uint64_t seed,
                         int64_t version, int64_t config, bool done)
{
    sqlite3_stmt *clear = prepare(writer, STATEMENT_NEWEST_CLEAR);
    sqlite3_stmt *put = prepare(writer, STATEMENT_NEWEST);
    if (clear == NULL || put == NULL)
        return;
    /* What another version or configuration gave is no longer what was asked for last. */
    bind_integers(clear, (const int64_t[]){ scenario, point, version, config }, 4);
    step(writer, clear);
    if (!done)
        return;
    bind_integers(put, (const int64_t[]){ scenario, point, (int64_t)seed, writer->run_id }, 4);
    step(writer, put);
}

static void write_run(struct writer *writer, const struct run_record *record, int64_t params)
{
    const int64_t scenario = label_id(writer, record->scenario);
    const int64_t point = label_id(writer, record->point);
    const int64_t version = label_id(writer, sim_version());
    const int64_t config = label_id(writer, record->config_sha256);
    const int64_t command = label_id(writer, record->command_line);
    const int64_t host = label_id(writer, record->host);
    sqlite3_stmt *s = prepare(writer, STATEMENT_RUN);
    if (s == NULL)
        return;
    sqlite3_bind_int64(s, 1, scenario);
    sqlite3_bind_int64(s, 2, point);
    sqlite3_bind_int64(s, 3, (int64_t)record->seed);
    sqlite3_bind_text(s, 4, record->status, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 5, record->error, -1, SQLITE_STATIC); /* NULL binds NULL */
    sqlite3_bind_int64(s, 6, version);
    sqlite3_bind_int64(s, 7, config);
    sqlite3_bind_int64(s, 8, command);
    sqlite3_bind_int64(s, 9, host);
    if (params >= 0)
        sqlite3_bind_int64(s, 10, params);
    else
        sqlite3_bind_null(s, 10);
    sqlite3_bind_int64(s, 11, record->started_utc);
    sqlite3_bind_double(s, 12, record->wall_s);
    sqlite3_bind_int64(s, 13, (int64_t)record->sim_ps);
    sqlite3_bind_int64(s, 14, (int64_t)record->events);
    sqlite3_bind_int64(s, 15, (int64_t)record->fingerprint);
    sqlite3_bind_int64(s, 16, (int64_t)record->peak_memory_bytes);
    step(writer, s);
    writer->run_id = sqlite3_last_insert_rowid(writer->db->sqlite);
    write_newest(writer, scenario, point, record->seed, version, config,
                 strcmp(record->status, "done") == 0);
}

static void write_metrics(struct writer *writer, const GArray *metrics)
{
    for (guint i = 0; i < metrics->len; i++) {
        const struct result_metric *m = &g_array_index(metrics, struct result_metric, i);
        const int64_t quantity = quantity_id(writer, m->name, m->unit);
        sqlite3_stmt *s = prepare(writer, STATEMENT_METRIC);
        if (s == NULL)
            return;
        bind_integers(s, (const int64_t[]){ writer->run_id, quantity }, 2);
        sqlite3_bind_double(s, 3, m->value);
        step(writer, s);
    }
}

static void write_buckets(struct writer *writer, const GArray *buckets)
{
    const char *name = "";
    int64_t quantity = -1;
    for (guint i = 0; i < buckets->len; i++) {
        const struct result_bucket *b = &g_array_index(buckets, struct result_bucket, i);
        if (strcmp(b->name, name) != 0) /* those of a histogram stand together */
            quantity = quantity_id(writer, b->name, b->unit);
        name = b->name;
        sqlite3_stmt *s = prepare(writer, STATEMENT_BUCKET);
        if (s == NULL)
            return;
        bind_integers(s, (const int64_t[]){ writer->run_id, quantity }, 2);
        sqlite3_bind_double(s, 3, b->lo);
        sqlite3_bind_double(s, 4, b->hi);
        sqlite3_bind_int64(s, 5, (int64_t)b->count);
        step(writer, s);
    }
}

static void write_samples(struct writer *writer, const GArray *samples)
{
    for (guint i = 0; i < samples->len; i++) {
        const struct result_sample *sample = &g_array_index(samples, struct result_sample, i);
        const int64_t quantity = quantity_id(writer, sample->name, sample->unit);
        sqlite3_stmt *s = prepare(writer, STATEMENT_SAMPLE);
        if (s == NULL)
            return;
        bind_integers(s, (const int64_t[]){ writer->run_id, quantity }, 2);
        sqlite3_bind_int64(s, 3, i);
        sqlite3_bind_int64(s, 4, (int64_t)sample->t_ps);
        sqlite3_bind_double(s, 5, sample->value);
        step(writer, s);
    }
}

/* ---- Transactions ---------------------------------------------------------------------------- */

static int execute(struct results_db *db, const char *sql)
{
    return sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
}

static bool commit(struct writer *writer, char **message)
{
    struct results_db *db = writer->db;
    if (writer->code == SQLITE_OK)
        writer->code = execute(db, "COMMIT");
    db->busy = (writer->code & 0xff) == SQLITE_BUSY;
    if (writer->code == SQLITE_OK)
        return true;
    if (message != NULL)
        *message = results_message(db, writer->code);
    if (!sqlite3_get_autocommit(db->sqlite))
        execute(db, "ROLLBACK");
    g_hash_table_remove_all(db->ids); /* some of them were rolled back */
    return false;
}

bool results_store(struct results_db *db, const struct run_record *record,
                   const struct config *config, const struct run_result *result, char **message)
{
    db->busy = false;
    if (results_is_gone(db)) {
        if (message != NULL)
            *message = g_strdup_printf("%s: was deleted, moved or replaced while it was written",
                                       db->path);
        return false;
    }
    struct run_result *of_config = config != NULL ? run_result_new() : NULL;
    if (of_config != NULL)
        run_result_params(of_config, config);
    if (of_config != NULL && result != NULL)
        g_array_append_vals(of_config->params, result->notes->data, result->notes->len);
    const struct run_result *with_params = of_config != NULL ? of_config : result;
    struct writer writer = { .db = db, .code = execute(db, "BEGIN IMMEDIATE") };
    db->was_there = writer.code == SQLITE_OK && results_have(db, record->scenario, record->point,
                                                             record->seed, record->config_sha256);
    const int64_t params = set_id(&writer, with_params != NULL ? with_params->params : NULL);
    write_run(&writer, record, params);
    if (result != NULL) {
        write_metrics(&writer, result->metrics);
        write_buckets(&writer, result->buckets);
        write_samples(&writer, result->samples);
    }
    run_result_free(of_config);
    return commit(&writer, message);
}

bool results_select(struct results_db *db, const char *scenario, const char *point, uint64_t seed,
                    const char *config_sha256, char **message)
{
    struct writer writer = { .db = db, .code = execute(db, "BEGIN IMMEDIATE") };
    const int64_t scenario_id = label_id(&writer, scenario), point_id = label_id(&writer, point);
    const int64_t version_id = label_id(&writer, sim_version());
    const int64_t config_id = label_id(&writer, config_sha256);
    sqlite3_stmt *find = prepare(&writer, STATEMENT_FIND);
    if (find != NULL) {
        const int64_t key[] = { scenario_id, point_id, (int64_t)seed, version_id, config_id };
        bind_integers(find, key, 5);
        writer.run_id = step(&writer, find);
    }
    if (writer.run_id > 0)
        write_newest(&writer, scenario_id, point_id, seed, version_id, config_id, true);
    return commit(&writer, message);
}
