/*
 * Results: one SQLite file (DESIGN.md, section 7), written in one transaction per run.
 * Metrics of a running point are first collected in a struct run_result, in memory.
 */
#ifndef SIM_STORE_RESULTS_H
#define SIM_STORE_RESULTS_H

#include "sim/config/config.h"
#include "sim/engine/sim.h"
#include "sim/engine/stat.h"

struct run_result;

struct run_result *run_result_new(void);
void run_result_free(struct run_result *result);

/* ---- What a run may record ------------------------------------------------------------------- */
enum record_kind { RECORD_METRIC, RECORD_HISTOGRAM, RECORD_SERIES };

/* A result that is recorded without a table of statistics. A list of them ends with a NULL name. */
struct record_desc {
    const char *name; /* "latency_mean_ns"; ending in ".*" see workload_declare() */
    enum record_kind kind;
    const char *unit, *help;
};

/* Creates a result that collects names only: it accepts any value, and records statistics that have
 * no samples. */
struct run_result *run_result_new_declaring(void);
void run_result_declare(struct run_result *result, enum record_kind kind, const char *name,
                        const char *unit);
bool run_result_has(const struct run_result *result, enum record_kind kind, const char *name);
/* Sorted, NULL-terminated; g_strfreev(). */
char **run_result_names(const struct run_result *result, enum record_kind kind);
/* A name that is in `result` but not in `declared`, or NULL. */
const char *run_result_undeclared(const struct run_result *result,
                                  const struct run_result *declared);

/* ---- Recording ------------------------------------------------------------------------------- */
/* Names are copied. Adding a metric of a name twice is a fault. Values must be finite. */
void run_result_metric(struct run_result *result, const char *name, const char *unit, double value);
void run_result_histogram(struct run_result *result, const char *name, const char *unit,
                          double scale, const struct stat_histogram *h);
void run_result_series(struct run_result *result, const char *name, const char *unit, sim_time t_ps,
                       double value);
/*
 * All statistics of a table: "<prefix><name>"; duration_ps: the measured time, for rates. STAT_MEAN
 * also stores "<name>.ci95". STAT_HISTOGRAM stores the histogram itself and its mean, p50, p90,
 * p99, p999, min and max, each put before the unit: latency_ns gives latency_p99_ns. What has a
 * peak also stores its share of that (stat_utilization_name()). What has no samples is left out.
 */
void run_result_stats(struct run_result *result, const char *prefix, const struct stat_desc *table,
                      const void *state, sim_time duration_ps);
/* The value of a metric, NAN if there is none. */
double run_result_value(const struct run_result *result, const char *name);
/* The unit of what is recorded, or declared, of that kind; NULL if there is none; valid as long as
 * the result. */
const char *run_result_unit(const struct run_result *result, enum record_kind kind,
                            const char *name);

/* Adds a remark of the run, stored as the parameter "note.<name>". Call it before
 * run_result_params(). */
void run_result_note(struct run_result *result, const char *name, const char *text);
/* The text of the i-th remark whose name begins with `stem`, or NULL. */
const char *run_result_note_text(const struct run_result *result, const char *stem, unsigned i);
/* Copies every resolved parameter into the result: for one that is sent to another process. */
void run_result_params(struct run_result *result, const struct config *config);
/* A hash of the event stream's fingerprint and of every metric, histogram and series. */
uint64_t run_result_fingerprint(const struct run_result *result, uint64_t events_fingerprint);
/* Serialises a result (caller g_free()s). run_result_unpack() returns NULL if the bytes are not a
 * whole result. */
void *run_result_pack(const struct run_result *result, size_t *n_bytes);
struct run_result *run_result_unpack(const void *bytes, size_t n_bytes);

struct run_record {
    const char *scenario; /* "pcie_bench/latency_size" */
    const char *point;    /* "op=read transfer_bytes=64" */
    uint64_t seed;
    const char *status; /* "done" or "failed" */
    const char *error;  /* NULL unless failed */
    char config_sha256[65];
    const char *command_line, *host;
    int64_t started_utc; /* seconds since the epoch */
    double wall_s;
    sim_time sim_ps;
    uint64_t events, fingerprint;
    /* Resident, of its process, beside what was there when that was made; 0: unknown. */
    uint64_t peak_memory_bytes;
};

struct results_db;

/* As a path: a database in the memory of this process, lost when it is closed. */
#define RESULTS_IN_MEMORY ":memory:"

/* Opens the file, or creates it (not its folder). read_only: the file must exist, and nothing is
 * ever written, not even beside it. NULL with *message (caller g_free()s) on failure. */
struct results_db *results_open(const char *path, bool read_only, char **message);

/* Called again and again while another program holds the database: before_s: the time waited at the
 * call before, waited_s: now. False: give up. */
typedef bool results_wait_fn(void *context, const char *path, double before_s, double waited_s);
/* As results_open() for writing, with `wait` from the first lock on. Without one (results_open(),
 * or NULL) all functions wait for 20 s. */
struct results_db *results_open_waiting(const char *path, results_wait_fn *wait, void *context,
                                        char **message);
void results_set_wait(struct results_db *db, results_wait_fn *wait, void *context);
/* True if the last results_store(), results_select() or results_merge() has failed since another
 * program held the file for longer than was waited: it may be tried again. */
bool results_is_busy(const struct results_db *db);
/* True if results_have() was true of the run that the last results_store() has added: it is there
 * twice now. Asked in the transaction that adds it, so that of two who store it one hears so. */
bool results_was_there(const struct results_db *db);
/* True if the file that was opened is not there any more under its name: what is stored is lost. */
bool results_is_gone(const struct results_db *db);
void results_close(struct results_db *db);
const char *results_path(const struct results_db *db);
/* Stores one run with its parameters, metrics, histograms and series, in one transaction. The
 * parameters are those of config, or with NULL those that run_result_params() took; result may be
 * NULL (a failed run). False with *message if the database refused; nothing is stored then. */
bool results_store(struct results_db *db, const struct run_record *record,
                   const struct config *config, const struct run_result *result, char **message);
/* Makes the run that results_have() finds the newest of its point and seed again, so that the view
 * `result` shows it and not what another configuration has stored since. False with *message if the
 * database refused. */
bool results_select(struct results_db *db, const char *scenario, const char *point, uint64_t seed,
                    const char *config_sha256, char **message);
struct results_merged {
    uint64_t n_joined, n_there;
    uint64_t n_different; /* of those there: with another fingerprint than the source's */
};

/* Adds the runs of another database file that are not there yet, in one transaction. False with
 * *message if a file refused; nothing is added then. */
bool results_merge(struct results_db *db, const char *source, struct results_merged *merged,
                   char **message);

#endif
