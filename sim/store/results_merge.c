/*
 * Joining databases: everything of one file that another does not have, in one transaction. The
 * dictionaries are joined by what their rows say; ids of the source are translated by maps, which
 * are temporary tables. A run is the same if scenario, point, seed, version and configuration are,
 * since it has the same results then; of a failed one also error, time and host.
 */
#include <string.h>

#include "sim/store/results_internal.h"

/* Everything that has a text or a name, whether a new run needs it or not. */
static const char dictionaries_sql[] =
    "INSERT OR IGNORE INTO main.label(text) SELECT text FROM source.label ORDER BY id;"
    "INSERT OR IGNORE INTO main.quantity(name, unit)"
    " SELECT name, unit FROM source.quantity ORDER BY id;"
    "INSERT OR IGNORE INTO main.setting(name, value, unit, provenance)"
    " SELECT name, value, unit, provenance FROM source.setting ORDER BY id;"
    "INSERT OR IGNORE INTO main.setting_set(sha256)"
    " SELECT sha256 FROM source.setting_set ORDER BY id;"
    "CREATE TEMP TABLE map_label(source_id INTEGER PRIMARY KEY, id INTEGER);"
    "INSERT INTO map_label SELECT s.id, m.id FROM source.label s"
    " JOIN main.label m ON m.text = s.text;"
    "CREATE TEMP TABLE map_quantity(source_id INTEGER PRIMARY KEY, id INTEGER);"
    "INSERT INTO map_quantity SELECT s.id, m.id FROM source.quantity s"
    " JOIN main.quantity m ON m.name = s.name AND m.unit = s.unit;"
    "CREATE TEMP TABLE map_set(source_id INTEGER PRIMARY KEY, id INTEGER);"
    "INSERT INTO map_set SELECT s.id, m.id FROM source.setting_set s"
    " JOIN main.setting_set m ON m.sha256 = s.sha256;"
    "CREATE TEMP TABLE map_setting(source_id INTEGER PRIMARY KEY, id INTEGER);"
    "INSERT INTO map_setting SELECT s.id, m.id FROM source.setting s JOIN main.setting m"
    " ON m.name = s.name AND m.value = s.value AND m.unit = s.unit"
    " AND m.provenance = s.provenance;"
    "INSERT OR IGNORE INTO main.setting_member(set_id, setting_id)"
    " SELECT p.id, q.id FROM source.setting_member m JOIN map_set p ON p.source_id = m.set_id"
    " JOIN map_setting q ON q.source_id = m.setting_id;";

/* incoming: the source's runs by the target's ids; there_id: the same run in the target, if it is
 * there; map_run: those that come in, of equal ones the newest, in the order in which they ended.
 */
static const char runs_sql[] =
    "CREATE TEMP TABLE incoming AS SELECT r.id AS source_id, s.id AS scenario_id,"
    " p.id AS point_id, r.seed AS seed, v.id AS version_id, c.id AS config_id,"
    " r.status AS status, r.error AS error, r.started_utc AS started_utc, h.id AS host_id,"
    " r.fingerprint AS fingerprint, NULL AS there_id FROM source.run_row r"
    " JOIN map_label s ON s.source_id = r.scenario_id JOIN map_label p ON p.source_id = r.point_id"
    " JOIN map_label v ON v.source_id = r.version_id JOIN map_label c ON c.source_id = r.config_id"
    " JOIN map_label h ON h.source_id = r.host_id;"
    "UPDATE incoming SET there_id = (SELECT max(r.id) FROM main.run_row r"
    " WHERE r.scenario_id = incoming.scenario_id AND r.point_id = incoming.point_id"
    " AND r.seed = incoming.seed AND r.version_id = incoming.version_id"
    " AND r.config_id = incoming.config_id AND r.status = incoming.status"
    " AND (r.status = 'done' OR (r.error IS incoming.error"
    "  AND r.started_utc = incoming.started_utc AND r.host_id = incoming.host_id)));"
    "CREATE TEMP TABLE before AS SELECT coalesce(max(id), 0) AS last_id FROM main.run_row;"
    "CREATE TEMP TABLE map_run(source_id INTEGER PRIMARY KEY, id INTEGER);"
    "INSERT INTO map_run SELECT source_id, (SELECT last_id FROM before)"
    " + row_number() OVER (ORDER BY source_id) FROM (SELECT max(source_id) AS source_id"
    " FROM incoming WHERE there_id IS NULL GROUP BY scenario_id, point_id, seed, version_id,"
    " config_id, status, CASE status WHEN 'done' THEN '' ELSE source_id END);";

static const char values_sql[] =
    "INSERT INTO main.metric_row(run_id, quantity_id, value) SELECT m.id, q.id, x.value"
    " FROM map_run m JOIN source.metric_row x ON x.run_id = m.source_id"
    " JOIN map_quantity q ON q.source_id = x.quantity_id ORDER BY m.id, q.id;"
    "INSERT INTO main.histogram_row(run_id, quantity_id, lo, hi, count)"
    " SELECT m.id, q.id, x.lo, x.hi, x.count FROM map_run m"
    " JOIN source.histogram_row x ON x.run_id = m.source_id"
    " JOIN map_quantity q ON q.source_id = x.quantity_id ORDER BY m.id, q.id, x.lo;"
    "INSERT INTO main.series_row(run_id, quantity_id, seq, t_ps, value)"
    " SELECT m.id, q.id, x.seq, x.t_ps, x.value FROM map_run m"
    " JOIN source.series_row x ON x.run_id = m.source_id"
    " JOIN map_quantity q ON q.source_id = x.quantity_id ORDER BY m.id, q.id, x.seq;";

/*
 * What the view `result` shows of a point has one version and configuration. If the source's is the
 * target's, its seeds are added; if not, that of which a run was started last is shown.
 */
static const char newest_sql[] =
    "CREATE TEMP TABLE shown AS SELECT i.scenario_id AS scenario_id, i.point_id AS point_id,"
    " i.seed AS seed, i.version_id AS version_id, i.config_id AS config_id,"
    " i.started_utc AS started_utc, coalesce(i.there_id, m.id) AS run_id"
    " FROM source.newest w JOIN incoming i ON i.source_id = w.run_id"
    " LEFT JOIN map_run m ON m.source_id = w.run_id;"
    /* a run equal to a newer one of the source came in as that one */
    "UPDATE shown SET run_id = (SELECT max(r.id) FROM main.run_row r"
    " WHERE r.scenario_id = shown.scenario_id AND r.point_id = shown.point_id"
    " AND r.seed = shown.seed AND r.version_id = shown.version_id"
    " AND r.config_id = shown.config_id AND r.status = 'done') WHERE run_id IS NULL;"
    "CREATE TEMP TABLE choice AS SELECT g.scenario_id AS scenario_id, g.point_id AS point_id,"
    " EXISTS(SELECT 1 FROM main.newest w JOIN main.run_row r ON r.id = w.run_id"
    "  WHERE w.scenario_id = g.scenario_id AND w.point_id = g.point_id"
    "  AND r.version_id = g.version_id AND r.config_id = g.config_id) AS same,"
    " coalesce((SELECT max(r.started_utc) FROM main.run_row r"
    "  WHERE r.scenario_id = g.scenario_id AND r.point_id = g.point_id"
    "  AND (r.version_id <> g.version_id OR r.config_id <> g.config_id)"
    "  AND r.id <= (SELECT last_id FROM before)) > g.started_utc, 0) AS late"
    " FROM (SELECT scenario_id, point_id, version_id, config_id, max(started_utc) AS started_utc"
    "  FROM shown GROUP BY scenario_id, point_id) g;"
    "CREATE UNIQUE INDEX temp.choice_by_point ON choice(scenario_id, point_id);"
    "DELETE FROM main.newest WHERE EXISTS (SELECT 1 FROM choice c"
    " WHERE c.scenario_id = newest.scenario_id AND c.point_id = newest.point_id"
    " AND NOT c.same AND NOT c.late);"
    "INSERT OR IGNORE INTO main.newest(scenario_id, point_id, seed, run_id)"
    " SELECT s.scenario_id, s.point_id, s.seed, s.run_id FROM shown s JOIN choice c"
    " ON c.scenario_id = s.scenario_id AND c.point_id = s.point_id WHERE c.same OR NOT c.late;";

static const char end_sql[] =
    "DROP TABLE temp.map_label; DROP TABLE temp.map_quantity; DROP TABLE temp.map_set;"
    "DROP TABLE temp.map_setting; DROP TABLE temp.map_run; DROP TABLE temp.incoming;"
    "DROP TABLE temp.before; DROP TABLE temp.shown; DROP TABLE temp.choice; COMMIT";

/* The statement that copies run_row: all its columns as they are, but for ids, which are those of
 * labels if they are not of the run itself or of its set of parameters. */
static int copy_runs(struct results_db *db)
{
    g_autoptr(GString) columns = g_string_new(NULL);
    g_autoptr(GString) values = g_string_new(NULL);
    sqlite3_stmt *info = NULL;
    int code = sqlite3_prepare_v2(db->sqlite, "SELECT name FROM pragma_table_info('run_row')", -1,
                                  &info, NULL);
    while (code == SQLITE_OK && sqlite3_step(info) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(info, 0);
        g_string_append_printf(columns, "%s%s", columns->len > 0 ? ", " : "", name);
        if (strcmp(name, "id") == 0)
            g_string_append(values, "m.id");
        else if (g_str_has_suffix(name, "_id"))
            g_string_append_printf(values, ", (SELECT t.id FROM %s t WHERE t.source_id = r.%s)",
                                   strcmp(name, "set_id") == 0 ? "map_set" : "map_label", name);
        else
            g_string_append_printf(values, ", r.%s", name);
    }
    sqlite3_finalize(info);
    g_autofree char *sql =
        g_strdup_printf("INSERT INTO main.run_row(%s) SELECT %s FROM map_run m"
                        " JOIN source.run_row r ON r.id = m.source_id ORDER BY m.id",
                        columns->str, values->str);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    return code;
}

static int count(struct results_db *db, struct results_merged *merged)
{
    static const char sql[] =
        "SELECT (SELECT count(*) FROM map_run), (SELECT count(*) FROM incoming),"
        " (SELECT count(*) FROM incoming i JOIN main.run_row r"
        "  ON r.id = i.there_id WHERE i.status = 'done'"
        "  AND i.fingerprint <> r.fingerprint)";
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db->sqlite, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        merged->n_joined = (uint64_t)sqlite3_column_int64(statement, 0);
        merged->n_there = (uint64_t)sqlite3_column_int64(statement, 1) - merged->n_joined;
        merged->n_different = (uint64_t)sqlite3_column_int64(statement, 2);
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return code;
}

static int attach(struct results_db *db, const char *source)
{
    sqlite3_stmt *statement = NULL;
    g_autofree char *uri = results_uri(source, true);
    int code = sqlite3_prepare_v2(db->sqlite, "ATTACH ?1 AS source", -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, uri, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int join(struct results_db *db, struct results_merged *merged)
{
    static const char *const before[] = { "BEGIN IMMEDIATE", dictionaries_sql, runs_sql };
    static const char *const after[] = { values_sql, newest_sql, end_sql };
    int code = SQLITE_OK;
    for (size_t i = 0; i < SIM_N_ELEMENTS(before) && code == SQLITE_OK; i++)
        code = sqlite3_exec(db->sqlite, before[i], NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = count(db, merged);
    if (code == SQLITE_OK)
        code = copy_runs(db);
    for (size_t i = 0; i < SIM_N_ELEMENTS(after) && code == SQLITE_OK; i++)
        code = sqlite3_exec(db->sqlite, after[i], NULL, NULL, NULL);
    return code;
}

bool results_merge(struct results_db *db, const char *source, struct results_merged *merged,
                   char **message)
{
    *merged = (struct results_merged){ 0 };
    *message = NULL;
    struct results_db *readable = results_open(source, true, message); /* its schema version */
    if (readable == NULL)
        return false;
    results_close(readable);
    int code = attach(db, source);
    if (code == SQLITE_OK)
        code = join(db, merged);
    if (code != SQLITE_OK) {
        g_autofree char *of_target = results_message(db, code);
        *message = g_strdup_printf("%s: joining %s", of_target, source);
    }
    if (!sqlite3_get_autocommit(db->sqlite))
        sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(db->sqlite, "DETACH source", NULL, NULL, NULL);
    results_tidy(source);
    return code == SQLITE_OK;
}
