/*
 * The keys of job files: what they set, which have no effect here, which are refused and why.
 * docs/fio.md has the table for readers; a test compares the two.
 */
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/fio/fio_options.h"

enum key_type {
    KEY_BOOL,
    KEY_U32,
    KEY_U64,
    KEY_SIZE,
    KEY_TIME,
    KEY_TEXT,
    KEY_EACH, /* a value for each direction: `one` */
    KEY_FN,
    KEY_IGNORED,
    KEY_REFUSED
};

struct fio_key {
    const char *name, *alias;
    enum key_type type;
    size_t offset;
    uint64_t lo, hi;      /* KEY_U32, KEY_U64 */
    uint64_t unit_ps;     /* KEY_TIME */
    const char *expected; /* KEY_EACH, KEY_FN */
    bool (*one)(struct fio_options *options, unsigned direction, const char *text);
    bool (*set)(struct fio_options *options, const char *text);
    const char *neutral; /* KEY_REFUSED */
    const char *help;
};

/* ---- Keys with a form of their own ----------------------------------------------------------- */

static bool set_rw(struct fio_options *options, const char *text)
{
    static const struct {
        const char *name;
        bool reads, writes, random;
    } kinds[] = {
        { "read", true, false, false },    { "write", false, true, false },
        { "rw", true, true, false },       { "readwrite", true, true, false },
        { "randread", true, false, true }, { "randwrite", false, true, true },
        { "randrw", true, true, true },
    };
    g_auto(GStrv) part = g_strsplit(text, ":", 2);
    options->modifier = 0;
    if (part[0] == NULL ||
        (part[1] != NULL &&
         (!fio_parse_int(part[1], options->kb_base, &options->modifier) || options->modifier == 0)))
        return false;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(kinds); i++)
        if (strcmp(part[0], kinds[i].name) == 0) {
            options->reads = kinds[i].reads;
            options->writes = kinds[i].writes;
            options->random = kinds[i].random;
            return true;
        }
    return false;
}

static bool set_sequencer(struct fio_options *options, const char *text)
{
    options->identical = strcmp(text, "identical") == 0;
    return options->identical || strcmp(text, "sequential") == 0;
}

static bool set_kb_base(struct fio_options *options, const char *text)
{
    options->kb_base = strcmp(text, "1000") == 0 ? 1000 : 1024;
    return options->kb_base == 1000 || strcmp(text, "1024") == 0;
}

static bool percent(const char *text, uint32_t *value)
{
    uint64_t number;
    if (!fio_parse_int(text, 1024, &number) || number > 100)
        return false;
    *value = (uint32_t)number;
    return true;
}

static bool set_mix_read(struct fio_options *options, const char *text)
{
    return percent(text, &options->mix_read);
}

static bool set_mix_write(struct fio_options *options, const char *text)
{
    uint32_t writes;
    if (!percent(text, &writes))
        return false;
    options->mix_read = 100 - writes;
    return true;
}

static bool one_random(struct fio_options *options, unsigned direction, const char *text)
{
    return percent(text, &options->percentage_random[direction]);
}

static bool one_size(struct fio_options *options, unsigned direction, const char *text)
{
    struct fio_block_sizes *sizes = &options->size_of[direction];
    sizes->n_splits = 0;
    if (!fio_parse_int(text, options->kb_base, &sizes->min) || sizes->min == 0)
        return false;
    sizes->max = sizes->min;
    return true;
}

static bool one_align(struct fio_options *options, unsigned direction, const char *text)
{
    return fio_parse_int(text, options->kb_base, &options->align[direction]) &&
           options->align[direction] != 0;
}

static bool one_range(struct fio_options *options, unsigned direction, const char *text)
{
    struct fio_block_sizes *sizes = &options->size_of[direction];
    g_auto(GStrv) part = g_strsplit_set(text, "-:", 2);
    sizes->n_splits = 0;
    if (g_strv_length(part) != 2 || !fio_parse_int(part[0], options->kb_base, &sizes->min) ||
        !fio_parse_int(part[1], options->kb_base, &sizes->max))
        return false;
    if (sizes->min > sizes->max) {
        const uint64_t least = sizes->max;
        sizes->max = sizes->min;
        sizes->min = least;
    }
    return sizes->min != 0;
}

/* "4k/50:64k/": what has no percentage shares the rest evenly. */
static bool one_split(struct fio_options *options, unsigned direction, const char *text)
{
    struct fio_block_sizes *sizes = &options->size_of[direction];
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    double sum = 0;
    unsigned n_open = 0;
    sizes->n_splits = 0;
    sizes->min = UINT64_MAX;
    sizes->max = 0;
    for (unsigned i = 0; part[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(part[i], "/", 2);
        struct fio_split split = { 0, -1 };
        if (i == FIO_SPLITS_MAX || pair[0] == NULL ||
            !fio_parse_int(pair[0], options->kb_base, &split.bytes) || split.bytes == 0)
            return false;
        if (pair[1] != NULL && *pair[1] != '\0') {
            if (!fio_parse_number(pair[1], &split.percent))
                return false;
            sum += split.percent;
        } else {
            n_open++;
        }
        sizes->split[sizes->n_splits++] = split;
        sizes->min = SIM_MIN(sizes->min, split.bytes);
        sizes->max = SIM_MAX(sizes->max, split.bytes);
    }
    for (unsigned i = 0; i < sizes->n_splits; i++)
        if (sizes->split[i].percent < 0)
            sizes->split[i].percent = (100 - sum) / n_open;
    return sizes->n_splits != 0 && sum <= 100 && (n_open != 0 || sum == 100);
}

static bool set_zones(struct fio_options *options, char **part)
{
    double access = 0, space = 0;
    options->n_zones = 0;
    for (unsigned i = 0; part[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(part[i], "/", 2);
        struct fio_zone *zone = &options->zone[i];
        if (i == FIO_ZONES_MAX || g_strv_length(pair) != 2 ||
            !fio_parse_number(pair[0], &zone->access) || !fio_parse_number(pair[1], &zone->space) ||
            zone->space <= 0)
            return false;
        access += zone->access;
        space += zone->space;
        options->n_zones++;
    }
    return options->n_zones != 0 && fabs(access - 100) < 1e-6 && fabs(space - 100) < 1e-6;
}

static bool set_distribution(struct fio_options *options, const char *text)
{
    static const struct {
        const char *name;
        enum fio_distribution distribution;
        double theta, lo, hi; /* excluding both */
    } kinds[] = {
        { "zipf", FIO_ZIPF, 1.1, 0, 100 },
        { "pareto", FIO_PARETO, 0.2, 0, 1 },
        { "normal", FIO_NORMAL, 0, 0, 100.1 },
        { "gauss", FIO_NORMAL, 0, 0, 100.1 },
    };
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    const unsigned n = g_strv_length(part);
    options->centre = -1;
    if (n == 1 && strcmp(part[0], "random") == 0) {
        options->distribution = FIO_UNIFORM;
        return true;
    }
    if (n > 1 && strcmp(part[0], "zoned") == 0) {
        options->distribution = FIO_ZONED;
        return set_zones(options, part + 1);
    }
    for (unsigned i = 0; n >= 1 && n <= 3 && i < SIM_N_ELEMENTS(kinds); i++)
        if (strcmp(part[0], kinds[i].name) == 0) {
            options->distribution = kinds[i].distribution;
            options->theta = kinds[i].theta;
            if (n > 1 && !fio_parse_number(part[1], &options->theta))
                return false;
            if (n > 2 && (!fio_parse_number(part[2], &options->centre) || options->centre > 1))
                return false;
            return options->theta > kinds[i].lo && options->theta < kinds[i].hi;
        }
    return false;
}

static bool set_seed(struct fio_options *options, const char *text)
{
    options->has_seed = true;
    return fio_parse_int(text, options->kb_base, &options->seed);
}

static bool set_delay(struct fio_options *options, const char *text)
{
    g_auto(GStrv) part = g_strsplit_set(text, "-:", 2);
    const unsigned n = g_strv_length(part);
    if (n == 0 || !fio_parse_time(part[0], SIM_PS_PER_S, &options->delay_ps[0]) ||
        !fio_parse_time(part[n - 1], SIM_PS_PER_S, &options->delay_ps[1]))
        return false;
    return options->delay_ps[0] <= options->delay_ps[1];
}

static bool one_rate(struct fio_options *options, unsigned direction, const char *text)
{
    return fio_parse_int(text, options->kb_base, &options->rate[direction]);
}

static bool one_rate_iops(struct fio_options *options, unsigned direction, const char *text)
{
    return fio_parse_int(text, options->kb_base, &options->rate_iops[direction]);
}

static bool set_rate_process(struct fio_options *options, const char *text)
{
    options->poisson = strcmp(text, "poisson") == 0;
    return options->poisson || strcmp(text, "linear") == 0;
}

/* "0,5,8-15" */
static bool set_cpus(struct fio_options *options, const char *text)
{
    g_auto(GStrv) part = g_strsplit_set(text, ",:", -1);
    memset(options->cpu, 0, sizeof(options->cpu));
    options->has_cpus = part[0] != NULL;
    for (unsigned i = 0; part[i] != NULL; i++) {
        g_auto(GStrv) range = g_strsplit(part[i], "-", 2);
        const unsigned n = g_strv_length(range);
        uint64_t from, to;
        if (n == 0 || !fio_parse_int(g_strstrip(range[0]), 1024, &from) ||
            !fio_parse_int(g_strstrip(range[n - 1]), 1024, &to) || from > to || to >= FIO_CPUS_MAX)
            return false;
        for (uint64_t cpu = from; cpu <= to; cpu++)
            options->cpu[cpu] = true;
    }
    return options->has_cpus;
}

static bool set_cpu_mask(struct fio_options *options, const char *text)
{
    uint64_t mask;
    memset(options->cpu, 0, sizeof(options->cpu));
    options->has_cpus = true;
    if (!fio_parse_int(text, 1024, &mask) || mask == 0)
        return false;
    for (unsigned cpu = 0; cpu < 64; cpu++)
        options->cpu[cpu] = (mask >> cpu & 1) != 0;
    return true;
}

static bool set_verify(struct fio_options *options, const char *text)
{
    static const struct {
        const char *name;
        enum fio_verify verify;
    } kinds[] = {
        { "0", FIO_VERIFY_NONE },          { "null", FIO_VERIFY_NULL },
        { "pattern", FIO_VERIFY_PATTERN }, { "meta", FIO_VERIFY_PATTERN },
        { "crc32c", FIO_VERIFY_CRC32C },   { "crc32c-intel", FIO_VERIFY_CRC32C },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(kinds); i++)
        if (strcmp(text, kinds[i].name) == 0) {
            options->verify = kinds[i].verify;
            return true;
        }
    return false;
}

static bool set_continue(struct fio_options *options, const char *text)
{
    static const struct {
        const char *name;
        bool read, write;
    } kinds[] = {
        { "none", false, false }, { "0", false, false }, { "read", true, false },
        { "write", false, true }, { "io", true, true },  { "all", true, true },
        { "1", true, true },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(kinds); i++)
        if (strcmp(text, kinds[i].name) == 0) {
            options->continue_on[FIO_READ] = kinds[i].read;
            options->continue_on[FIO_WRITE] = kinds[i].write;
            return true;
        }
    return false;
}

static bool set_skip(struct fio_options *options, const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, ",", -1);
    for (unsigned i = 0; part[i] != NULL; i++) {
        const char *kind = g_strstrip(part[i]);
        if (strcmp(kind, "read") == 0)
            options->skip[FIO_READ] = true;
        else if (strcmp(kind, "write") == 0)
            options->skip[FIO_WRITE] = true;
        else if (strcmp(kind, "sync") == 0)
            options->skip_sync = true;
        else if (strcmp(kind, "trim") == 0)
            options->skip_trim = true;
        else
            return false;
    }
    return part[0] != NULL;
}

static bool set_percentiles(struct fio_options *options, const char *text)
{
    g_auto(GStrv) part = g_strsplit(text, ":", -1);
    options->n_percentiles = 0;
    for (unsigned i = 0; part[i] != NULL; i++)
        if (i == FIO_PERCENTILES_MAX || !fio_parse_number(part[i], &options->percentile[i]) ||
            options->percentile[i] <= 0 || options->percentile[i] > 100)
            return false;
        else
            options->n_percentiles++;
    return options->n_percentiles != 0;
}

static bool set_stats(struct fio_options *options, const char *text)
{
    options->no_stats = strcmp(text, "0") == 0;
    return options->no_stats || strcmp(text, "1") == 0;
}

/* ---- The table ------------------------------------------------------------------------------- */

#define AT(FIELD) offsetof(struct fio_options, FIELD)
#define BOOL(NAME, FIELD, HELP)                                               \
    {                                                                         \
        .name = (NAME), .type = KEY_BOOL, .offset = AT(FIELD), .help = (HELP) \
    }
#define U32(NAME, ALIAS, FIELD, LO, HI, HELP)                                               \
    {                                                                                       \
        .name = (NAME), .alias = (ALIAS), .type = KEY_U32, .offset = AT(FIELD), .lo = (LO), \
        .hi = (HI), .help = (HELP)                                                          \
    }
#define SIZE(NAME, ALIAS, FIELD, HELP)                                                          \
    {                                                                                           \
        .name = (NAME), .alias = (ALIAS), .type = KEY_SIZE, .offset = AT(FIELD), .help = (HELP) \
    }
#define TIME(NAME, ALIAS, FIELD, UNIT, HELP)                                     \
    {                                                                            \
        .name = (NAME), .alias = (ALIAS), .type = KEY_TIME, .offset = AT(FIELD), \
        .unit_ps = (UNIT), .help = (HELP)                                        \
    }
#define TEXT(NAME, FIELD, HELP)                                               \
    {                                                                         \
        .name = (NAME), .type = KEY_TEXT, .offset = AT(FIELD), .help = (HELP) \
    }
#define EACH(NAME, ALIAS, ONE, EXPECTED, HELP)                                                    \
    {                                                                                             \
        .name = (NAME), .alias = (ALIAS), .type = KEY_EACH, .one = (ONE), .expected = (EXPECTED), \
        .help = (HELP)                                                                            \
    }
#define FN(NAME, ALIAS, SET, EXPECTED, HELP)                                                    \
    {                                                                                           \
        .name = (NAME), .alias = (ALIAS), .type = KEY_FN, .set = (SET), .expected = (EXPECTED), \
        .help = (HELP)                                                                          \
    }
#define IGNORED(NAME, HELP)                                 \
    {                                                       \
        .name = (NAME), .type = KEY_IGNORED, .help = (HELP) \
    }
#define REFUSED(NAME, NEUTRAL, HELP)                                              \
    {                                                                             \
        .name = (NAME), .type = KEY_REFUSED, .neutral = (NEUTRAL), .help = (HELP) \
    }

#define NO_FILES    "the device is raw: there are no files and no file system"
#define NO_CONTENTS "data are streams that the simulator checks, whatever their bytes"
#define NO_CLOCK    "reading the clock costs the simulation nothing"
#define NO_LOGS     "such log files are not written: see `json_output` and the histogram latency_ns"
#define NO_TRIM     "the engines cannot deallocate blocks"
#define NO_ZONES    "the device has no zones"

static const struct fio_key keys[] = {
    /* what and where */
    TEXT("description", description, "goes into the JSON"),
    TEXT("name", name, "of the job, instead of its section's"),
    TEXT(
        "filename", filename,
        "a device: setting `filenames` says which one; without it `device`. Without filename, each "
        "job has blocks of its own, which are written first if it reads them, unless `laid_out`"),
    FN("readwrite", "rw", set_rw,
       "read, write, rw, randread, randwrite or randrw, with :N or without (trims are not modelled)",
       "sequential or random, reads or writes; N: requests for each random offset, or bytes skipped"),
    FN("rw_sequencer", NULL, set_sequencer, "sequential or identical",
       "the N requests of rw=...:N"),
    FN("rwmixread", NULL, set_mix_read, "0 to 100", "percent of reads"),
    FN("rwmixwrite", NULL, set_mix_write, "0 to 100", "percent of writes"),
    EACH("blocksize", "bs", one_size, "bytes, for reads and writes", "of a request; default 4k"),
    EACH("blocksize_range", "bsrange", one_range, "ranges of bytes, 4k-64k",
         "multiples of the smallest, equally likely"),
    EACH("bssplit", NULL, one_split, "sizes with percentages, 4k/50:64k/, that add up to 100",
         "sizes by their shares"),
    EACH("blockalign", "ba", one_align, "bytes, the same for reads and writes",
         "of random offsets, which then go without a map; default: the smallest block size"),
    SIZE("size", NULL, size, "of the span of each job, bytes or percent of the device"),
    SIZE("filesize", NULL, file_size, "of the job's blocks, where it has its own; default: size"),
    SIZE("io_size", "io_limit", io_size, "bytes until the job ends; default: size"),
    SIZE("offset", NULL, offset, "where the span begins"),
    SIZE("offset_increment", NULL, offset_increment, "more for each of numjobs"),
    { .name = "number_ios",
      .type = KEY_U64,
      .offset = AT(number_ios),
      .hi = UINT64_MAX,
      .help = "the job ends after so many requests" },
    TEXT("ioengine", engine,
         "sync, libaio or another of the engines; setting `engine` "
         "overrides it; psync, pvsync and pvsync2 are sync"),
    BOOL("direct", direct, "must be 1 with the kernel's engines: there is no page cache"),
    BOOL("buffered", buffered, "must be 0 with the kernel's engines"),
    FN("kb_base", NULL, set_kb_base, "1024 or 1000", "what k and ki mean after this line"),
    /* random */
    FN("random_distribution", NULL, set_distribution,
       "random, zipf:THETA, pareto:H (0 to 1), normal:DEVIATION (percent) or "
       "zoned:ACCESS/SPACE:... (percent, each adding up to 100)",
       "of random offsets; all but `random` go without a map"),
    EACH("percentage_random", NULL, one_random, "0 to 100, for reads and writes",
         "of a random job's requests; the others go on where the one before ended"),
    BOOL("norandommap", no_map, "blocks may come again before all were used"),
    FN("randseed", NULL, set_seed, "an integer", "instead of the run's seed"),
    BOOL("serialize_overlap", serialize_overlap,
         "a request waits for those of the same job that overlap it"),
    /* depth */
    U32("iodepth", NULL, depth, 1, 4096, "requests under way"),
    U32("iodepth_batch_submit", "iodepth_batch", batch_submit, 0, 4096,
        "requests for each submission; 0: iodepth"),
    U32("iodepth_batch_complete_min", "iodepth_batch_complete", complete_min, 0, 4096,
        "events that a full queue waits for; 0: looks before each submission"),
    U32("iodepth_batch_complete_max", NULL, complete_max, 1, 4096, "events taken at once"),
    U32("iodepth_low", NULL, depth_low, 1, 4096, "a full queue drains to so many"),
    /* time */
    U32("numjobs", NULL, jobs, 1, 1024, "clones of the job"),
    U32("loops", NULL, loops, 1, 1000000, "times that the job does its work"),
    TIME("runtime", "timeout", runtime_ps, SIM_PS_PER_S, "the job ends then at the latest"),
    BOOL("time_based", time_based, "the job goes on until runtime"),
    TIME("ramp_time", NULL, ramp_ps, SIM_PS_PER_S, "before anything counts, runtime included"),
    FN("startdelay", NULL, set_delay, "a time, or a range of times, 1ms-2ms",
       "before the job begins"),
    EACH("rate", NULL, one_rate, "bytes per second, for reads and writes", "at most"),
    EACH("rate_iops", NULL, one_rate_iops, "requests per second, for reads and writes", "at most"),
    FN("rate_process", NULL, set_rate_process, "linear or poisson",
       "of the times between requests"),
    TIME("thinktime", NULL, think_ps, SIM_PS_PER_US, "pause between requests, with an empty queue"),
    TIME("thinktime_spin", NULL, think_spin_ps, SIM_PS_PER_US, "part of it that computes"),
    U32("thinktime_blocks", NULL, think_blocks, 1, 1000000000, "requests between two pauses"),
    TIME("max_latency", NULL, latency_max_ps, SIM_PS_PER_US, "a longer one ends the job, an error"),
    /* processes */
    FN("cpus_allowed", NULL, set_cpus, "CPUs of the host below 256, 0,5,8-15",
       "each clone is on one of them, in turn"),
    FN("cpumask", NULL, set_cpu_mask, "a bit mask of CPUs", "the same"),
    BOOL("group_reporting", group_reporting, "the JSON has one entry for the jobs of a group"),
    BOOL("new_group", new_group, "a group of reports begins"),
    { .name = "stonewall",
      .alias = "wait_for_previous",
      .type = KEY_BOOL,
      .offset = AT(stonewall),
      .help = "waits for the jobs before it; a group begins" },
    TEXT("wait_for", wait_for, "waits for the job of that name, which stands before it"),
    BOOL("exitall", exit_all, "when this job ends, those of its group do"),
    FN("continue_on_error", NULL, set_continue, "none, read, write, io or all",
       "errors of requests are counted; else they end the run as failed"),
    FN("stats", NULL, set_stats, "0 or 1", "0: the JSON leaves the job out"),
    /* verification */
    FN("verify", NULL, set_verify,
       "0, null, pattern, meta, crc32c or crc32c-intel (costs of other checksums are not known)",
       "what was written is read back and checked; costs the processor's reads and writes of the "
       "data, and crc32c's instructions"),
    BOOL("do_verify", do_verify, "0: written with verify=, but not read back"),
    U32("fsync", "fdatasync", sync_after, 0, 1000000000,
        "writes between two fsync(): a system call; the devices have no volatile cache"),
    { .name = "end_fsync",
      .alias = "fsync_on_close",
      .type = KEY_BOOL,
      .offset = AT(sync_at_end),
      .help = "at the end of the job" },
    /* traces, reports */
    TEXT("read_iolog", read_iolog, "replays a trace, version 2 or 3; relative to the job file"),
    TEXT("write_iolog", write_iolog, "writes one, version 3; relative to the working directory"),
    BOOL("replay_no_stall", no_stall, "as fast as it goes"),
    U32("replay_time_scale", NULL, time_scale, 1, 1000000, "percent of the trace's rate"),
    TEXT("replay_redirect", redirect, "all files of the trace are the job's"),
    FN("replay_skip", NULL, set_skip, "read, write, sync, trim, by commas", "left out"),
    FN("percentile_list", NULL, set_percentiles, "at most 20 numbers up to 100, by colons",
       "of the JSON"),
    BOOL("clat_percentiles", clat_percentiles, "of completion latencies, in the JSON; default 1"),
    BOOL("lat_percentiles", lat_percentiles, "of total latencies"),
    BOOL("slat_percentiles", slat_percentiles, "of submission latencies"),
    /* ---- without effect */
    IGNORED("thread", "a job is a kernel thread either way"),
    IGNORED("cpus_allowed_policy", "threads stay where they are put: always split"),
    IGNORED("invalidate", "there is no page cache"),
    IGNORED("randrepeat", "the run's seed decides"),
    IGNORED("allrandrepeat", "the run's seed decides"),
    IGNORED("random_generator", "the simulator's generator"),
    IGNORED("softrandommap", "the map always fits"),
    IGNORED("zero_buffers", NO_CONTENTS),
    IGNORED("refill_buffers", NO_CONTENTS),
    IGNORED("scramble_buffers", NO_CONTENTS),
    IGNORED("buffer_pattern", NO_CONTENTS),
    IGNORED("buffer_compress_percentage", NO_CONTENTS),
    IGNORED("buffer_compress_chunk", NO_CONTENTS),
    IGNORED("dedupe_percentage", NO_CONTENTS),
    IGNORED("verify_pattern", NO_CONTENTS),
    IGNORED("verify_interval", NO_CONTENTS),
    IGNORED("verify_offset", NO_CONTENTS),
    IGNORED("verify_fatal", "what is read wrongly ends the run always"),
    IGNORED("verify_dump", "what is read wrongly ends the run always"),
    IGNORED("verify_state_save", "each run is whole"),
    IGNORED("gtod_reduce", NO_CLOCK),
    IGNORED("gtod_cpu", NO_CLOCK),
    IGNORED("clocksource", NO_CLOCK),
    IGNORED("disable_lat", NO_CLOCK),
    IGNORED("disable_clat", NO_CLOCK),
    IGNORED("disable_slat", NO_CLOCK),
    IGNORED("disable_bw_measurement", NO_CLOCK),
    IGNORED("unit_base", "of fio's own text"),
    IGNORED("significant_figures", "of fio's own text"),
    IGNORED("per_job_logs", "of log files"),
    IGNORED("log_avg_msec", "of log files"),
    IGNORED("log_entries", "of log files"),
    IGNORED("log_max_value", "of log files"),
    IGNORED("log_offset", "of log files"),
    IGNORED("log_unix_epoch", "of log files"),
    IGNORED("log_hist_coarseness", "of log files"),
    IGNORED("allow_file_create", NO_FILES),
    IGNORED("allow_mounted_write", NO_FILES),
    IGNORED("create_serialize", NO_FILES),
    IGNORED("create_on_open", NO_FILES),
    IGNORED("fallocate", NO_FILES),
    IGNORED("fadvise_hint", NO_FILES),
    IGNORED("write_hint", NO_FILES),
    IGNORED("overwrite", NO_FILES),
    IGNORED("unlink", NO_FILES),
    IGNORED("directory", NO_FILES),
    IGNORED("filename_format", NO_FILES),
    IGNORED("unique_filename", NO_FILES),
    IGNORED("create_fsync", NO_FILES),
    IGNORED("unlink_each_loop", NO_FILES),
    IGNORED("openfiles", NO_FILES),
    IGNORED("file_service_type", "a job has one file"),
    IGNORED("mem", "buffers are what the engine allocates"),
    IGNORED("iomem", "buffers are what the engine allocates"),
    IGNORED("iomem_align", "buffers are aligned to pages"),
    IGNORED("mem_align", "buffers are aligned to pages"),
    IGNORED("hugepage-size", "buffers are what the engine allocates"),
    IGNORED("lockmem", "buffers are what the engine allocates"),
    IGNORED("registerfiles", "a job has one file"),
    IGNORED("userspace_reap", "costs of the calls are the engine's"),
    IGNORED("nice", "there are no priorities of threads"),
    /* ---- refused */
    REFUSED("nrfiles", "1", "a job has one file"),
    REFUSED("opendir", NULL, NO_FILES),
    REFUSED("lockfile", "none", NO_FILES),
    REFUSED("fill_device", "0", "say size=100%"),
    REFUSED("blocksize_unaligned", "0", "direct I/O is of whole blocks"),
    REFUSED("bs_unaligned", "0", "direct I/O is of whole blocks"),
    REFUSED("bs_is_seq_rand", "0", "give bs for reads and for writes"),
    REFUSED("offset_align", "0", "offsets in percent are rounded up to the smallest block size"),
    REFUSED("create_only", "0", "there would be nothing to measure"),
    REFUSED("pre_read", "0", "there is no page cache"),
    REFUSED("unified_rw_reporting", "none", "reads and writes are reported apart"),
    REFUSED("io_submit_mode", "inline", "jobs submit their own requests"),
    REFUSED("sync", "0", "there is no volatile cache to write through"),
    REFUSED("atomic", "0", "not available with the NVMe driver"),
    REFUSED("hipri", "0", "polled queues are a setting of the host: nvme_polled of `lending`"),
    REFUSED("sqthread_poll", "0", "no thread of the kernel submits"),
    REFUSED("fixedbufs", "0", "buffers are pinned for each request"),
    REFUSED("thinktime_blocks_type", "complete", "pauses follow completions"),
    REFUSED("thinktime_iotime", NULL, "say thinktime_blocks"),
    REFUSED("rate_min", NULL, "a run that misses a rate says so by its results"),
    REFUSED("rate_iops_min", NULL, "a run that misses a rate says so by its results"),
    REFUSED("rate_cycle", NULL, "rates hold from the job's beginning on"),
    REFUSED("rate_ignore_thinktime", "0", "rates catch up after pauses"),
    REFUSED("latency_target", NULL, "an axis over iodepth finds it"),
    REFUSED("latency_window", NULL, "an axis over iodepth finds it"),
    REFUSED("latency_percentile", NULL, "an axis over iodepth finds it"),
    REFUSED("latency_run", NULL, "an axis over iodepth finds it"),
    REFUSED("steadystate", NULL, "nudma has a rule of its own: docs/results.md"),
    REFUSED("steadystate_duration", NULL, "nudma has a rule of its own: docs/results.md"),
    REFUSED("verify_only", "0", "each run begins with an empty device"),
    REFUSED("verify_state_load", "0", "each run begins with an empty device"),
    REFUSED("verify_async", "0", "the job's thread checks"),
    REFUSED("verify_async_cpus", NULL, "the job's thread checks"),
    REFUSED("verify_backlog", "0", "data are checked when all are written"),
    REFUSED("verify_backlog_batch", NULL, "data are checked when all are written"),
    REFUSED("experimental_verify", "0", "what was written is remembered"),
    REFUSED("trim_percentage", "0", NO_TRIM),
    REFUSED("trim_backlog", "0", NO_TRIM),
    REFUSED("trim_verify_zero", "0", NO_TRIM),
    REFUSED("zonemode", "none", NO_ZONES),
    REFUSED("max_open_zones", "0", NO_ZONES),
    REFUSED("zonesize", "0", NO_ZONES),
    REFUSED("zonerange", "0", NO_ZONES),
    REFUSED("zoneskip", "0", NO_ZONES),
    REFUSED("sync_file_range", NULL, NO_FILES),
    REFUSED("write_barrier", "0", "the block layer has no barriers"),
    REFUSED("write_bw_log", NULL, NO_LOGS),
    REFUSED("write_lat_log", NULL, NO_LOGS),
    REFUSED("write_iops_log", NULL, NO_LOGS),
    REFUSED("write_hist_log", NULL, NO_LOGS),
    REFUSED("log_hist_msec", "0", NO_LOGS),
    REFUSED("read_iolog_chunked", "0", "traces are read as a whole"),
    REFUSED("merge_blktrace_file", NULL, "blktrace files are not read"),
    REFUSED("merge_blktrace_scalars", NULL, "blktrace files are not read"),
    REFUSED("merge_blktrace_iters", NULL, "blktrace files are not read"),
    REFUSED("replay_align", "0", "offsets are taken as they stand"),
    REFUSED("replay_scale", "1", "offsets are taken as they stand"),
    REFUSED("exit_what", "group", "exitall ends the group"),
    REFUSED("exec_prerun", NULL, "there is no shell in the simulation"),
    REFUSED("exec_postrun", NULL, "there is no shell in the simulation"),
    REFUSED("ioscheduler", "none", "the kernel has none for NVMe devices"),
    REFUSED("prio", "0", "the driver's queues have one priority"),
    REFUSED("prioclass", "0", "the driver's queues have one priority"),
    REFUSED("cgroup", NULL, "there are no control groups"),
    REFUSED("cgroup_weight", NULL, "there are no control groups"),
    REFUSED("flow_id", "0", "say rate_iops"),
    REFUSED("flow_sleep", "0", "say rate_iops"),
    REFUSED("cmdprio_percentage", "0", "the driver's queues have one priority"),
    REFUSED("nowait", "0", "system calls wait"),
    REFUSED("flow", "0", "say rate_iops"),
    REFUSED("numa_cpu_nodes", NULL, "say cpus_allowed"),
    REFUSED("numa_mem_policy", NULL, "buffers are on the job's node"),
    REFUSED("uid", NULL, "there are no users"),
    REFUSED("gid", NULL, "there are no users"),
};

bool fio_key_at(unsigned i, const char **name, const char **alias, enum fio_key_kind *kind,
                const char **neutral, const char **help)
{
    if (i >= SIM_N_ELEMENTS(keys))
        return false;
    *name = keys[i].name;
    *alias = keys[i].alias;
    *kind = keys[i].type == KEY_IGNORED   ? FIO_KEY_IGNORED
            : keys[i].type == KEY_REFUSED ? FIO_KEY_REFUSED
                                          : FIO_KEY_SET;
    *neutral = keys[i].neutral;
    *help = keys[i].help;
    return true;
}

void fio_options_default(struct fio_options *options)
{
    static const double percentiles[] = { 1,  5,  10, 20, 30,   40,   50,    60,   70,
                                          80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99 };
    *options = (struct fio_options){ .reads = true,
                                     .mix_read = 50,
                                     .kb_base = 1024,
                                     .centre = -1,
                                     .percentage_random = { 100, 100 },
                                     .depth = 1,
                                     .batch_submit = 1,
                                     .complete_min = 1,
                                     .jobs = 1,
                                     .loops = 1,
                                     .think_blocks = 1,
                                     .do_verify = true,
                                     .time_scale = 100,
                                     .clat_percentiles = true,
                                     .n_percentiles = SIM_N_ELEMENTS(percentiles) };
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++)
        options->size_of[i].min = options->size_of[i].max = 4096;
    memcpy(options->percentile, percentiles, sizeof(percentiles));
}

/* ---- Setting one ----------------------------------------------------------------------------- */

static const struct fio_key *find_key(const char *name)
{
    for (unsigned i = 0; i < SIM_N_ELEMENTS(keys); i++)
        if (strcmp(keys[i].name, name) == 0 ||
            (keys[i].alias != NULL && strcmp(keys[i].alias, name) == 0))
            return &keys[i];
    return NULL;
}

static char *unknown_key(const char *name)
{
    const char *names[2 * SIM_N_ELEMENTS(keys) + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(keys); i++)
        if (keys[i].type != KEY_REFUSED) {
            names[n++] = keys[i].name;
            if (keys[i].alias != NULL)
                names[n++] = keys[i].alias;
        }
    names[n] = NULL;
    g_autofree char *suggestion = sim_suggestion(name, names);
    return g_strdup_printf("%s: no key that nudma knows%s%s", name,
                           *suggestion != '\0' ? "; " : ": docs/fio.md has them", suggestion);
}

/* A key alone is true. */
static bool parse_bool(const char *value, bool *truth)
{
    *truth = value == NULL || strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
    return *truth || strcmp(value, "0") == 0 || strcmp(value, "false") == 0;
}

static const char *set_integer(const struct fio_key *key, void *field, uint32_t kb_base,
                               const char *value)
{
    uint64_t number;
    if (!fio_parse_int(value, kb_base, &number) || number < key->lo || number > key->hi)
        return "an integer";
    if (key->type == KEY_U32)
        *(uint32_t *)field = (uint32_t)number;
    else
        *(uint64_t *)field = number;
    return NULL;
}

/* NULL, or what was expected. */
static const char *set_value(const struct fio_key *key, struct fio_options *options,
                             struct fio_strings *strings, const char *value)
{
    void *field = (char *)options + key->offset;
    switch (key->type) {
    case KEY_U32:
    case KEY_U64: return set_integer(key, field, options->kb_base, value);
    case KEY_SIZE:
        return fio_parse_size(value, options->kb_base, field) ? NULL
                                                              : "bytes, 64m, or percent, 20%";
    case KEY_TIME:
        return fio_parse_time(value, key->unit_ps, field) ? NULL : "a time, 10s, 5ms or 20us";
    case KEY_TEXT: *(const char **)field = fio_strings_keep(strings, value); return NULL;
    case KEY_EACH: return fio_parse_each(options, value, key->one) ? NULL : key->expected;
    case KEY_FN: return key->set(options, value) ? NULL : key->expected;
    default: return NULL;
    }
}

static char *refuse(const struct fio_key *key, const char *value)
{
    if (key->neutral != NULL && value != NULL && strcmp(value, key->neutral) == 0)
        return NULL;
    if (key->neutral != NULL)
        return g_strdup_printf("%s: not available but for %s=%s: %s", key->name, key->name,
                               key->neutral, key->help);
    return g_strdup_printf("%s: not available: %s", key->name, key->help);
}

static char *expected_range(const struct fio_key *key, const char *expected)
{
    if (key->type != KEY_U32)
        return g_strdup(expected);
    return g_strdup_printf("%s, %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, expected, key->lo,
                           key->hi);
}

bool fio_options_set(struct fio_options *options, struct fio_strings *strings, const char *name,
                     const char *value, char **message)
{
    const struct fio_key *key = find_key(name);
    const char *expected = NULL;
    *message = NULL;
    if (key == NULL)
        *message = unknown_key(name);
    else if (key->type == KEY_REFUSED)
        *message = refuse(key, value);
    else if (key->type == KEY_BOOL)
        expected = parse_bool(value, (bool *)((char *)options + key->offset)) ? NULL : "0 or 1";
    else if (key->type != KEY_IGNORED && (value == NULL || *value == '\0'))
        expected = "a value";
    else if (key->type != KEY_IGNORED)
        expected = set_value(key, options, strings, value);
    if (expected != NULL) {
        g_autofree char *range = expected_range(key, expected);
        *message = g_strdup_printf("%s: found %s%s%s, expected %s", name, value != NULL ? "\"" : "",
                                   value != NULL ? value : "nothing", value != NULL ? "\"" : "",
                                   range);
    }
    if (*message != NULL)
        return false;
    g_autofree char *text = g_strdup_printf("%s%s=%s\n", options->text != NULL ? options->text : "",
                                            name, value != NULL ? value : "1");
    options->text = fio_strings_keep(strings, text);
    return true;
}

bool fio_options_overridden(const struct fio_options *options, const char *names)
{
    if (options->override == NULL || options->text == NULL)
        return false;
    g_auto(GStrv) asked = g_strsplit_set(names, ",; ", -1);
    g_auto(GStrv) line = g_strsplit(options->text + options->n_own, "\n", -1);
    for (unsigned i = 0; line[i] != NULL; i++) {
        line[i][strcspn(line[i], "=")] = '\0';
        for (unsigned k = 0; asked[k] != NULL; k++)
            if (*asked[k] != '\0' && *line[i] != '\0' && find_key(line[i]) == find_key(asked[k]))
                return true;
    }
    return false;
}
