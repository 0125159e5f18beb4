/*
 * What a host's hardware counts while other programs run, as tools read it that know the counters
 * of the uncore: entries of the I/O agent, the queues of the memory controllers, rows. It runs on
 * no CPU and costs nothing.
 *
 * Occupancies are means over time: the time that all entries were held, over the time measured
 * (what Intel's occupancy counters are, divided by clocks). Those of DRAM are means of a channel.
 *
 * Beside the simulated waits stands what Understanding the Host Network (6.1) computes from the
 * same counters, with the simulated channels' own times. With N entries in a queue:
 *   a read waits  N (switches/reads turnaround + writes/reads burst) + (N - 1) burst
 *                 + activations/reads tRCD + conflicts/reads tRP
 *   a write waits P(write queue full) (M (switches/writes turnaround + reads/writes burst)
 *                 + (M - 1) burst), with the M writes that wait for the queue while it is full
 * Less than one entry has nobody before it.
 */
#include <string.h>

#include "workloads/load/load_programs.h"

struct host_counters {
    /* parameters */
    const char *host_name;
    /* running */
    struct lending_host *host;
};

static const struct param_desc host_counters_params[] = {
    PARAM_TEXT("on", struct host_counters, host_name, "server", "host of the group `lending`"),
    { .type = PARAM_END },
};

static const struct record_desc host_counters_records[] = {
    { "device_gbyte_s", RECORD_METRIC, "GB/s",
      "payload that devices read from memory and wrote to it" },
    { "device_latency_ns", RECORD_METRIC, "ns",
      "mean time from an entry of the I/O agent taken for a line to freed; of the direction with "
      "more lines" },
    { "io_write_lines", RECORD_METRIC, "1",
      "lines that devices write, in the I/O agents, where root_complex.write_lines bounds them" },
    { "io_read_lines", RECORD_METRIC, "1", "lines that devices read, in the I/O agents" },
    { "read_queue_entries", RECORD_METRIC, "1",
      "reads that wait for their column command, mean of a channel" },
    { "row_miss_ratio", RECORD_METRIC, "1", "rows opened for each read" },
    { "row_conflict_ratio", RECORD_METRIC, "1", "those for which another row was closed" },
    { "write_queue_full_ratio", RECORD_METRIC, "1",
      "share of the time in which a write waits for a channel's write queue" },
    { "write_mode_ratio", RECORD_METRIC, "1", "batches of writes for each line written" },
    { "read_queueing_ns", RECORD_METRIC, "ns", "mean wait of a read for its column command" },
    { "read_queueing_formula_ns", RECORD_METRIC, "ns", "the same by the published formula" },
    { "write_admission_ns", RECORD_METRIC, "ns", "mean wait of a write for the write queue" },
    { "write_admission_formula_ns", RECORD_METRIC, "ns", "the same by the published formula" },
    { "device_gbyte_s", RECORD_SERIES, "GB/s", "what devices read and wrote per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void host_counters_check(struct program *program, struct sim_error_list *errors)
{
    struct host_counters *counters = program->state;

    counters->host = program_lending_host(program, "on", counters->host_name, errors);
}

static void host_counters_start(struct program *program)
{
    (void)program;
}

/* The sum of the counters of that name over all that the host has. */
static double count(const struct host_counters *counters, const char *name)
{
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    uint64_t sum = 0;
    for (unsigned i = 0; host_stats(counters->host->host, i, &prefix, &table, &state); i++)
        for (; table != NULL && table->kind != STAT_END; table++)
            if (table->kind == STAT_COUNTER && strcmp(table->name, name) == 0)
                sum += *(const uint64_t *)(const void *)((const char *)state + table->offset);
    return (double)sum;
}

static uint64_t device_bytes(const struct program *program)
{
    const struct host_counters *counters = program->state;
    return (uint64_t)(count(counters, "read_bytes") + count(counters, "write_bytes"));
}

static const struct program_rate host_counters_rates[] = {
    { "device_gbyte_s", 1e-9, device_bytes, NULL },
    { NULL, 0, NULL, NULL },
};

static void record_devices(struct program *program, sim_time duration_ps)
{
    const struct host_counters *counters = program->state;
    const double reads = count(counters, "read_lines"), writes = count(counters, "write_lines");
    const double read_ps = count(counters, "read_line_held_ps");
    const double write_ps = count(counters, "write_line_held_ps");
    const double time_ps = (double)duration_ps;

    program_metric(program, "device_gbyte_s", "GB/s",
                   (count(counters, "read_bytes") + count(counters, "write_bytes")) * 1000.0 /
                       time_ps);
    program_metric(program, "io_write_lines", "1", write_ps / time_ps);
    program_metric(program, "io_read_lines", "1", read_ps / time_ps);
    if (reads + writes > 0)
        program_metric(program, "device_latency_ns", "ns",
                       (writes > reads ? write_ps / writes : read_ps / reads) / 1000.0);
}

/* What the formula takes, of all channels. */
struct channel_load {
    double reads, writes, switches;
    double activates, conflicts; /* for each read */
    double read_entries;         /* of a channel */
    double full_ratio, full_writes;
};

static double read_formula_ns(const struct channel_load *load, struct numa_dram_timing dram)
{
    const double n = load->read_entries;
    const double turned_ps =
        (load->switches * (double)dram.turnaround_ps + load->writes * (double)dram.burst_ps) /
        load->reads;
    const double before_ps = n > 1 ? (n - 1) * (double)dram.burst_ps : 0;

    return (n * turned_ps + before_ps + load->activates * (double)dram.activate_ps +
            load->conflicts * (double)dram.precharge_ps) /
           1000.0;
}

static double write_formula_ns(const struct channel_load *load, struct numa_dram_timing dram)
{
    const double m = load->full_writes;
    const double turned_ps =
        (load->switches * (double)dram.turnaround_ps + load->reads * (double)dram.burst_ps) /
        load->writes;
    const double before_ps = m > 1 ? (m - 1) * (double)dram.burst_ps : 0;

    return load->full_ratio * (m * turned_ps + before_ps) / 1000.0;
}

static void record_reads(struct program *program, const struct channel_load *load, double wait_ps,
                         struct numa_dram_timing dram)
{
    program_metric(program, "row_miss_ratio", "1", load->activates);
    program_metric(program, "row_conflict_ratio", "1", load->conflicts);
    program_metric(program, "read_queueing_ns", "ns", wait_ps / load->reads / 1000.0);
    program_metric(program, "read_queueing_formula_ns", "ns", read_formula_ns(load, dram));
}

static void record_writes(struct program *program, const struct channel_load *load, double wait_ps,
                          struct numa_dram_timing dram)
{
    program_metric(program, "write_mode_ratio", "1", load->switches / load->writes);
    program_metric(program, "write_admission_ns", "ns", wait_ps / load->writes / 1000.0);
    program_metric(program, "write_admission_formula_ns", "ns", write_formula_ns(load, dram));
}

static void host_counters_record(struct program *program, sim_time duration_ps)
{
    const struct host_counters *counters = program->state;
    const struct numa *numa = host_numa(counters->host->host);
    const struct numa_dram_timing dram = numa_dram_timing(numa);
    const double channels_ps = (double)duration_ps * dram.channels *
                               physmem_nodes(host_physmem(counters->host->host));
    const double read_wait_ps = count(counters, "dram_read_wait_ps");
    const double write_wait_ps = count(counters, "dram_write_wait_ps");
    const double full_ps = count(counters, "dram_write_full_ps");
    struct channel_load load = {
        .reads = count(counters, "dram_read_bytes") / LINE_BYTES,
        .writes = count(counters, "dram_write_bytes") / LINE_BYTES,
        .switches = count(counters, "dram_write_modes"),
        .read_entries = read_wait_ps / channels_ps,
        .full_ratio = full_ps / channels_ps,
        .full_writes = full_ps > 0 ? write_wait_ps / full_ps : 0,
    };

    record_devices(program, duration_ps);
    program_metric(program, "read_queue_entries", "1", load.read_entries);
    program_metric(program, "write_queue_full_ratio", "1", load.full_ratio);
    if (load.reads > 0) {
        load.activates = count(counters, "dram_read_activates") / load.reads;
        load.conflicts = count(counters, "dram_read_conflicts") / load.reads;
        record_reads(program, &load, read_wait_ps, dram);
    }
    if (load.writes > 0)
        record_writes(program, &load, write_wait_ps, dram);
}

const struct program_ops program_host_counters_ops = {
    .type = "host_counters",
    .help = "reads what a host's I/O agents and memory controllers count; runs on no CPU",
    .steady = true,
    .state_bytes = sizeof(struct host_counters),
    .params = host_counters_params,
    .records = host_counters_records,
    .rates = host_counters_rates,
    .check = host_counters_check,
    .start = host_counters_start,
    .record = host_counters_record,
};
