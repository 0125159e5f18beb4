/*
 * The description of a job, as fio's job files have it: fio_keys.c is the table of keys,
 * fio_jobfile.c reads files. What a key means is fio's (HOWTO, "Job file parameters").
 */
#ifndef WORKLOADS_FIO_FIO_OPTIONS_H
#define WORKLOADS_FIO_FIO_OPTIONS_H

#include "sim/config/error.h"
#include "sim/engine/types.h"

enum { FIO_READ, FIO_WRITE, FIO_DIRECTIONS };
enum fio_distribution { FIO_UNIFORM, FIO_ZIPF, FIO_PARETO, FIO_NORMAL, FIO_ZONED };
enum fio_verify { FIO_VERIFY_NONE, FIO_VERIFY_NULL, FIO_VERIFY_PATTERN, FIO_VERIFY_CRC32C };

#define FIO_SPLITS_MAX      64u /* of bssplit, for each direction */
#define FIO_ZONES_MAX       16u
#define FIO_PERCENTILES_MAX 20u
#define FIO_CPUS_MAX        256u

/* Bytes, or a share of a file. */
struct fio_size {
    uint64_t bytes;
    double percent; /* if not 0 */
};

struct fio_split {
    uint64_t bytes;
    double percent; /* negative: an even share of the rest */
};

struct fio_block_sizes {
    uint64_t min, max; /* multiples of min in between are equally likely, unless n_splits */
    struct fio_split split[FIO_SPLITS_MAX];
    unsigned n_splits;
};

/* The setting job_options, which changes keys of jobs that stand elsewhere. */
struct fio_override {
    const char *path, *file; /* of the setting, and where it stands */
    int line;
    struct _GHashTable *told; /* keys whose mistakes have been reported */
};

struct fio_options {
    const char *name; /* of the job */
    const char *text; /* every setting of it, "key=value\n", as they were read: for fio's JSON */
    const char *file; /* of the section: for messages */
    int line;
    struct fio_override *override; /* NULL: every key is the file's own */
    size_t n_own;                  /* characters of `text` that are */
    /* ---- what and where */
    const char *description, *filename, *engine;
    bool reads, writes, random;
    uint64_t modifier; /* rw=...:N; 0: none */
    bool identical;    /* rw_sequencer */
    uint32_t mix_read; /* percent */
    struct fio_block_sizes size_of[FIO_DIRECTIONS];
    uint64_t align[FIO_DIRECTIONS]; /* of random offsets; 0: the smallest block size */
    struct fio_size size, file_size, offset, offset_increment, io_size;
    uint64_t number_ios; /* 0: no bound */
    uint32_t kb_base;
    bool direct, buffered;
    /* ---- random */
    enum fio_distribution distribution;
    double theta;  /* of zipf; h of pareto; deviation of normal, percent */
    double centre; /* negative: by chance, or of normal the middle */
    struct fio_zone {
        double access, space; /* percent */
    } zone[FIO_ZONES_MAX];
    unsigned n_zones;
    uint32_t percentage_random[FIO_DIRECTIONS];
    bool no_map;
    uint64_t seed;
    bool has_seed;
    /* ---- depth */
    uint32_t depth, batch_submit, complete_min, complete_max,
        depth_low; /* the last two: 0: default */
    bool serialize_overlap;
    /* ---- time */
    uint32_t jobs, loops;
    uint64_t runtime_ps, ramp_ps, delay_ps[2];
    bool time_based;
    uint64_t rate[FIO_DIRECTIONS], rate_iops[FIO_DIRECTIONS]; /* 0: no bound */
    bool poisson;
    uint64_t think_ps, think_spin_ps, latency_max_ps;
    uint32_t think_blocks;
    /* ---- processes */
    bool has_cpus, cpu[FIO_CPUS_MAX];
    bool group_reporting, new_group, stonewall, exit_all, no_stats;
    const char *wait_for;
    bool continue_on[FIO_DIRECTIONS];
    /* ---- verification and flushes */
    enum fio_verify verify;
    bool do_verify;
    uint32_t sync_after; /* fsync, fdatasync: writes between two; 0: none */
    bool sync_at_end;
    /* ---- traces and reports */
    const char *read_iolog, *write_iolog;
    bool no_stall;
    uint32_t time_scale; /* percent */
    const char *redirect;
    bool skip[FIO_DIRECTIONS], skip_sync, skip_trim;
    double percentile[FIO_PERCENTILES_MAX];
    unsigned n_percentiles;
    bool clat_percentiles, lat_percentiles, slat_percentiles;
};

/* What keeps the strings of options: freed as a whole. */
struct fio_strings;
struct fio_strings *fio_strings_new(void);
void fio_strings_free(struct fio_strings *strings);
const char *fio_strings_keep(struct fio_strings *strings, const char *text);

/* ---- Keys (fio_keys.c) ----------------------------------------------------------------------- */

enum fio_key_kind {
    FIO_KEY_SET,     /* has the effect that it has in fio */
    FIO_KEY_IGNORED, /* accepted; what it changes is not there to be changed */
    FIO_KEY_REFUSED, /* but for the value that means "not used" */
};

/* The i-th key with what it does, or why it is refused, for documentation and tests; false: there
 * are fewer. *alias may be NULL; `neutral`: the value of a refused key that is accepted, or
 * NULL. */
bool fio_key_at(unsigned i, const char **name, const char **alias, enum fio_key_kind *kind,
                const char **neutral, const char **help);

void fio_options_default(struct fio_options *options);
/* Sets a key; value NULL: it stands alone. False: *message (g_free()) says why it is refused, with
 * the nearest valid name. */
bool fio_options_set(struct fio_options *options, struct fio_strings *strings, const char *key,
                     const char *value, char **message);

/* Whether one of these keys ("bs, offset; size", by either name) was set by options->override. */
bool fio_options_overridden(const struct fio_options *options, const char *names);

/* ---- Values (fio_values.c) ------------------------------------------------------------------- */
/* Each returns false if the text is none. */

/* An integer with fio's prefixes and suffixes (4k, 0x10, 1mib); kb_base 1024 or 1000. */
bool fio_parse_int(const char *text, uint32_t kb_base, uint64_t *value);
/* The same, or "20%". */
bool fio_parse_size(const char *text, uint32_t kb_base, struct fio_size *size);
/* "5ms"; unit_ps: of a number without one. */
bool fio_parse_time(const char *text, uint64_t unit_ps, uint64_t *ps);
bool fio_parse_number(const char *text, double *value);
/* "read[,write[,trim]]" by `one`; an empty part leaves what there is, a part that is left out is
 * like the one before, unless the text ends with a comma. */
bool fio_parse_each(struct fio_options *options, const char *text,
                    bool (*one)(struct fio_options *options, unsigned direction, const char *text));

/* ---- Files (fio_jobfile.c) ------------------------------------------------------------------- */

/* The jobs of a file, in its order; every mistake in it goes to errors with its line. `text` of
 * what was read, includes and all, is appended to `digest` (a GString). False after a mistake. */
struct fio_job_list {
    struct fio_options **job; /* owned: fio_job_list_release() */
    unsigned n_jobs;
};
bool fio_job_file_read(const char *path, struct fio_strings *strings, struct fio_job_list *jobs,
                       struct sim_error_list *errors);
/* Sets "key=value key key=value" in every job, as options on fio's command line after the file
 * would; without a job makes one, called `name`. override: where the text stands, kept by the
 * jobs. */
bool fio_job_options_set(const char *text, const char *name, struct fio_override *override,
                         struct fio_strings *strings, struct fio_job_list *jobs,
                         struct sim_error_list *errors);
void fio_job_list_release(struct fio_job_list *jobs);

#endif
