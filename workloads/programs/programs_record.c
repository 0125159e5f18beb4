/* What the workload "programs" records of the host that is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/programs/breakdown.h"
#include "workloads/programs/programs_internal.h"
#include "workloads/setup/lending_vm.h"

const struct record_desc programs_records[] = {
    { "memory_gbit_s", RECORD_METRIC, "Gbit/s", "DRAM traffic of the measured host" },
    { "cpu_utilization_ratio", RECORD_METRIC, "1", "of its cores that programs use" },
    { "packet_rate_kpps", RECORD_METRIC, "1000/s", "packets it receives, buffers it sends" },
    { "packet_rate_mpps", RECORD_METRIC, "1000000/s", "the same" },
    { "llc_misses_per_packet", RECORD_METRIC, "1", "loads and stores that missed its LLCs" },
    { "llc_misses_per_operation", RECORD_METRIC, "1", "the same, of request-response programs" },
    { "cpu_part_ns.compute", RECORD_METRIC, "ns",
      "processor time per packet (operation): computing" },
    { "cpu_part_ns.l1", RECORD_METRIC, "ns", "waiting for data from L1, and so on" },
    { "cpu_part_ns.l2", RECORD_METRIC, "ns", "the same" },
    { "cpu_part_ns.llc", RECORD_METRIC, "ns", "the same" },
    { "cpu_part_ns.peer_cache", RECORD_METRIC, "ns", "from another core of the socket" },
    { "cpu_part_ns.remote_cache", RECORD_METRIC, "ns", "from the other socket's caches" },
    { "cpu_part_ns.local_dram", RECORD_METRIC, "ns", "the same" },
    { "cpu_part_ns.remote_dram", RECORD_METRIC, "ns", "the same" },
    { "dram_part_bytes.read_load", RECORD_METRIC, "bytes",
      "DRAM traffic per packet (operation) by cause: reads for loads" },
    { "dram_part_bytes.read_rfo", RECORD_METRIC, "bytes", "reads for stores" },
    { "dram_part_bytes.read_dma", RECORD_METRIC, "bytes", "reads for devices" },
    { "dram_part_bytes.read_directory", RECORD_METRIC, "bytes", "reads of the directory alone" },
    { "dram_part_bytes.write_victim", RECORD_METRIC, "bytes", "displaced by cores" },
    { "dram_part_bytes.write_ddio_victim", RECORD_METRIC, "bytes", "displaced by devices" },
    { "dram_part_bytes.write_snoop", RECORD_METRIC, "bytes", "written back because of a snoop" },
    { "dram_part_bytes.write_nt", RECORD_METRIC, "bytes", "non-temporal stores" },
    { "dram_part_bytes.write_dma", RECORD_METRIC, "bytes", "devices' writes" },
    { "dram_part_bytes.write_directory", RECORD_METRIC, "bytes", "the directory alone" },
    { "dram_part_bytes.write_flush", RECORD_METRIC, "bytes", "flushed" },
    { "dma_write_part_ns.*", RECORD_METRIC, "ns",
      "its devices' writes, from the port to where they are visible, by part" },
    { "pf0_gbit_s", RECORD_SERIES, "Gbit/s", "received by its NIC's first function" },
    { "pf1_gbit_s", RECORD_SERIES, "Gbit/s", "by its second function, if there is one, and so on" },
    { "pf2_gbit_s", RECORD_SERIES, "Gbit/s", "the same" },
    { "pf3_gbit_s", RECORD_SERIES, "Gbit/s", "the same" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* The host's own, which it has if another one is measured. */
static void declare_host(struct host *host, struct run_result *declared)
{
    unsigned n = numa_sockets(host_numa(host));
    char name[160];
    snprintf(name, sizeof(name), "%s.memory_gbyte_s", host_name(host));
    run_result_declare(declared, RECORD_METRIC, name, "GB/s");
    for (unsigned i = 0; i < n * n; i++) {
        snprintf(name, sizeof(name), "%.60s.interconnect_gbyte_s.s%u_s%u", host_name(host), i / n,
                 i % n);
        if (i / n != i % n && !run_result_has(declared, RECORD_METRIC, name))
            run_result_declare(declared, RECORD_METRIC, name, "GB/s");
    }
}

/* ---- Names of what programs record ----------------------------------------------------------- */

#define NAME_BYTES 192u

/* Without the mark. */
static const char *own_name(const struct record_desc *record)
{
    return record->name + (*record->name == '.' || *record->name == '+');
}

static void whole_name(char whole[NAME_BYTES], const struct program *program, const char *name)
{
    snprintf(whole, NAME_BYTES, "%.120s.%s", program->name, name);
}

/* What the bare name of a record stands for, among the programs that run. */
enum bare { BARE_NOTHING, BARE_ONE, BARE_SUM };

static enum bare bare_of(const struct programs *all, enum record_kind kind, const char *name)
{
    unsigned n = 0, n_sums = 0;
    for (unsigned i = 0; i < all->n_programs; i++)
        for (const struct record_desc *r = all->program[i].records; r->name != NULL; r++)
            if (r->kind == kind && *r->name != '.' && strcmp(own_name(r), name) == 0) {
                n++;
                n_sums += *r->name == '+' && !all->program[i].own_time;
            }
    if (n != 0 && n_sums == n)
        return BARE_SUM;
    return n == 1 ? BARE_ONE : BARE_NOTHING;
}

static const struct record_desc *find_record(const struct program *program, enum record_kind kind,
                                             const char *name)
{
    for (const struct record_desc *r = program->records; r->name != NULL; r++)
        if (r->kind == kind && strcmp(own_name(r), name) == 0)
            return r;
    SIM_ASSERT(false, "%s records %s, which it does not declare", program->ops->type, name);
    return NULL;
}

/* True: it has a bare name, which is of this program alone. */
static bool has_bare(const struct program *program, enum record_kind kind, const char *name)
{
    return *find_record(program, kind, name)->name != '.' &&
           bare_of(program->all, kind, name) == BARE_ONE;
}

/* The series of that name that the sampler records; NULL: none. */
static const struct program_rate *find_rate(const struct program *program, const char *name)
{
    const struct program_rate *rate = program->ops->rates;
    while (rate != NULL && rate->name != NULL && strcmp(rate->name, name) != 0)
        rate++;
    return rate != NULL && rate->name != NULL ? rate : NULL;
}

/* A series with measure.sample_interval_us; without, there is none. */
static bool is_sampled(const struct program *program, const struct record_desc *record)
{
    return record->kind == RECORD_SERIES &&
           (program->ops->samples || find_rate(program, own_name(record)) != NULL);
}

/* With nothing counted before the guests are up: then it declares. */
static void record_guests(const struct programs *all, struct run_result *result,
                          sim_time duration_ps)
{
    char prefix[80];
    for (unsigned h = 0; all->lending != NULL && h < lending_n_hosts(all->lending); h++) {
        const struct lending_host *host = lending_host_at(all->lending, h);
        struct vm_stats stats;
        if (!lending_vm_stats(host, &stats))
            continue;
        snprintf(prefix, sizeof(prefix), "%.60s.vm.", host->name);
        run_result_stats(result, prefix, vm_stats_table, &stats, duration_ps);
    }
}

void programs_declare(struct workload *workload, struct run_result *declared)
{
    const struct programs *all = workload->state;
    char whole[NAME_BYTES];
    for (unsigned i = 0; i < all->n_programs; i++)
        for (const struct record_desc *r = all->program[i].records; r->name != NULL; r++) {
            if (workload->measure.sample_interval_ps == 0 && is_sampled(&all->program[i], r))
                continue;
            whole_name(whole, &all->program[i], own_name(r));
            run_result_declare(declared, r->kind, whole, r->unit);
            if (*r->name != '.' && bare_of(all, r->kind, own_name(r)) != BARE_NOTHING &&
                !run_result_has(declared, r->kind, own_name(r)))
                run_result_declare(declared, r->kind, own_name(r), r->unit);
        }
    for (unsigned h = 0; h < world_n_hosts(workload->world); h++)
        declare_host(world_host_at(workload->world, h), declared);
    record_guests(all, declared, 0);
}

void programs_check_names(struct workload *workload, const struct program *program,
                          struct sim_error_list *errors)
{
    struct run_result *others, *result = workload->result;
    char whole[NAME_BYTES], expected[NAME_BYTES + 96];
    if (world_device(workload->world, program->name) == NULL &&
        world_host(workload->world, program->name) == NULL)
        return;
    workload->result = others = run_result_new_declaring();
    workload_record_world(workload, NULL, 0);
    workload->result = result;
    for (const struct record_desc *r = program->records; r->name != NULL; r++) {
        whole_name(whole, program, own_name(r));
        if (!run_result_has(others, r->kind, whole))
            continue;
        snprintf(expected, sizeof(expected), "another name: %s is recorded of the device already",
                 whole);
        config_mistake(program->group, errors, expected, NULL);
        break;
    }
    run_result_free(others);
}

/* ---- What programs record -------------------------------------------------------------------- */

static void add_to_sum(struct programs *all, const char *name, const char *unit, double value)
{
    unsigned i = 0;
    while (i < all->n_sums && strcmp(all->sum[i].name, name) != 0)
        i++;
    if (i == all->n_sums) {
        all->sum = sim_grow(all->sum, all->n_sums + 1, sizeof(*all->sum));
        all->sum[all->n_sums++] = (struct metric_sum){ name, unit, 0 };
    }
    all->sum[i].value += value;
}

void program_metric_apart(struct program *program, const char *name, const char *unit, double value)
{
    char whole[NAME_BYTES];
    whole_name(whole, program, own_name(find_record(program, RECORD_METRIC, name)));
    run_result_metric(program->workload->result, whole, unit, value);
}

void program_metric(struct program *program, const char *name, const char *unit, double value)
{
    const struct record_desc *record = find_record(program, RECORD_METRIC, name);
    program_metric_apart(program, name, unit, value);
    if (has_bare(program, RECORD_METRIC, name))
        run_result_metric(program->workload->result, name, unit, value);
    else if (*record->name == '+' && bare_of(program->all, RECORD_METRIC, name) == BARE_SUM)
        add_to_sum(program->all, own_name(record), record->unit, value);
}

void program_histogram(struct program *program, const char *name, const char *unit, double scale,
                       const struct stat_histogram *h)
{
    char whole[NAME_BYTES];
    whole_name(whole, program, own_name(find_record(program, RECORD_HISTOGRAM, name)));
    run_result_histogram(program->workload->result, whole, unit, scale, h);
    if (has_bare(program, RECORD_HISTOGRAM, name))
        run_result_histogram(program->workload->result, name, unit, scale, h);
}

void program_series(struct program *program, const char *name, const char *unit, sim_time t_ps,
                    double value)
{
    char whole[NAME_BYTES];
    whole_name(whole, program, own_name(find_record(program, RECORD_SERIES, name)));
    run_result_series(program->workload->result, whole, unit, t_ps, value);
    if (has_bare(program, RECORD_SERIES, name))
        run_result_series(program->workload->result, name, unit, t_ps, value);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static uint64_t function_bytes(const struct workload *workload, unsigned f)
{
    const struct programs *all = workload->state;
    return network_function_bytes(all->measured_net, f);
}
/* A function each. */
static const struct rate_series function_series[] = {
    { "pf0_gbit_s", "Gbit/s", 8e-9, function_bytes, NULL },
    { "pf1_gbit_s", "Gbit/s", 8e-9, function_bytes, NULL },
    { "pf2_gbit_s", "Gbit/s", 8e-9, function_bytes, NULL },
    { "pf3_gbit_s", "Gbit/s", 8e-9, function_bytes, NULL },
};

uint64_t program_latencies_ps(const struct program *program)
{
    return (uint64_t)program->histogram_ps.sum;
}

uint64_t program_latencies(const struct program *program)
{
    return program->histogram_ps.n;
}

static uint64_t rate_count(const struct workload *workload, unsigned idx)
{
    const struct programs *all = workload->state;
    const struct programs_series *series = &all->series_of[idx];
    uint64_t sum = 0;
    if (series->program != NULL)
        return series->rate->count(series->program);
    for (unsigned i = 0; i < all->n_programs; i++) {
        const struct program_rate *rate = find_rate(&all->program[i], series->rate->name);
        sum += rate != NULL ? rate->count(&all->program[i]) : 0;
    }
    return sum;
}

static uint64_t rate_of(const struct workload *workload, unsigned idx)
{
    const struct programs_series *series =
        &((const struct programs *)workload->state)->series_of[idx];
    return series->rate->of(series->program);
}

static void add_series(struct programs *all, const struct program *program,
                       const struct program_rate *rate, const char *name, const char *unit)
{
    all->series[all->n_series] = (struct rate_series){ name, unit, rate->scale, rate_count,
                                                       rate->of != NULL ? rate_of : NULL };
    all->series_of[all->n_series++] = (struct programs_series){ program, rate };
}

/* By its whole name, and by the bare one if it has that; a sum comes with its first part. */
static void add_rate(struct programs *all, struct program *program, const struct program_rate *rate)
{
    const struct record_desc *record = find_record(program, RECORD_SERIES, rate->name);
    const enum bare bare = *record->name != '.' ? bare_of(all, RECORD_SERIES, rate->name)
                                                : BARE_NOTHING;
    bool is_first = true;
    char *whole = program_zalloc(program, NAME_BYTES, 1);
    whole_name(whole, program, rate->name);
    add_series(all, program, rate, whole, record->unit);
    for (unsigned i = 0; &all->program[i] != program; i++)
        is_first = is_first && find_rate(&all->program[i], rate->name) == NULL;
    if (bare == BARE_ONE)
        add_series(all, program, rate, rate->name, record->unit);
    else if (bare == BARE_SUM && is_first)
        add_series(all, NULL, rate, rate->name, record->unit);
}

static void start_series(struct programs *all)
{
    const unsigned n_functions = all->measured_net != NULL ? all->measured_net->n_functions : 0;
    unsigned n = SIM_MIN(n_functions, (unsigned)SIM_N_ELEMENTS(function_series));
    const struct program_rate *rate;
    if (all->workload->measure.sample_interval_ps == 0)
        return;
    all->n_series = n;
    for (unsigned i = 0; i < all->n_programs; i++)
        for (rate = all->program[i].ops->rates; rate != NULL && rate->name != NULL; rate++)
            n += 2;
    all->series = sim_zalloc(n, sizeof(*all->series));
    all->series_of = sim_zalloc(n, sizeof(*all->series_of));
    memcpy(all->series, function_series, all->n_series * sizeof(*all->series));
    for (unsigned i = 0; i < all->n_programs; i++)
        for (rate = all->program[i].ops->rates; rate != NULL && rate->name != NULL; rate++)
            add_rate(all, &all->program[i], rate);
    rate_sampler_start(&all->sampler, all->workload, all->series, all->n_series);
}

void programs_series_release(struct programs *all)
{
    rate_sampler_stop(&all->sampler);
    free(all->series);
    free(all->series_of);
}

void programs_check_series(struct programs *all, struct sim_error_list *errors)
{
    const struct workload *workload = all->workload;
    struct config_node *measure = config_find(config_root(workload->config), "measure");
    bool any = workload->measure.sample_interval_ps == 0 || all->measured_net != NULL;
    for (unsigned i = 0; i < all->n_programs; i++)
        for (const struct record_desc *r = all->program[i].records; r->name != NULL; r++)
            any = any || is_sampled(&all->program[i], r);
    if (!any)
        config_no_effect(measure, "sample_interval_us", "programs", errors,
                         "no sample_interval_us: none of the programs records a rate over time");
}

/* ---- The measurement begins ------------------------------------------------------------------ */

/* What the kernel's CPU is: a guest's are not the host's first. */
static struct core *core_of(const struct programs *all, unsigned cpu)
{
    return host_core(all->measured,
                     all->measured_lend != NULL ? lending_core(all->measured_lend, cpu) : cpu);
}

/* Of all cores: programs may come to use others. */
static void clear_waits(struct programs *all)
{
    for (unsigned c = 0; c < k_n_cpus(all->kernel); c++)
        memset(core_of(all, c)->wait_ps, 0, sizeof(core_of(all, c)->wait_ps));
}

/* Waits for data of the cores in use, since they were cleared. */
static void sum_waits(const struct programs *all, sim_time wait_ps[N_NUMA_SOURCES])
{
    memset(wait_ps, 0, N_NUMA_SOURCES * sizeof(*wait_ps));
    for (unsigned c = 0; c < k_n_cpus(all->kernel) && c < PROGRAMS_CPUS_MAX; c++)
        for (unsigned s = 0; all->uses_cpu[c] && s < N_NUMA_SOURCES; s++)
            wait_ps[s] += core_of(all, c)->wait_ps[s];
}

void programs_begin(struct programs *all)
{
    struct workload *workload = all->workload;
    all->begin_ps = sim_now(workload->sim);
    world_stats_clear(workload->world);
    for (unsigned h = 0; h < all->network->n_hosts; h++)
        os_stats_clear(all->network->host[h].kernel);
    for (unsigned h = 0; all->lending != NULL && h < lending_n_hosts(all->lending); h++) {
        os_stats_clear(lending_host_at(all->lending, h)->kernel);
        lending_vm_stats_clear(lending_host_at(all->lending, h));
    }
    clear_waits(all);
    if (all->measured_net != NULL) {
        all->sent_at_begin = network_buffers_sent(all->measured_net);
        all->received_at_begin = network_packets_received(all->measured_net);
    }
    all->measuring = true;
    for (unsigned i = 0; i < all->n_programs; i++) {
        stat_histogram_clear(&all->program[i].histogram_ps);
        if (all->program[i].ops->measure != NULL)
            all->program[i].ops->measure(&all->program[i]);
    }
    start_series(all);
}

bool program_await_measurement(const struct program *program, struct kernel *kernel)
{
    while (!program_measuring(program) && !program_ending(program))
        k_sleep(kernel, SIM_PS_PER_US);
    return program_measuring(program);
}

/* ---- Settled or not -------------------------------------------------------------------------- */

void programs_sample(void *context, unsigned i)
{
    struct programs *all = context;
    for (unsigned p = 0; p < all->n_programs; p++) {
        struct program *program = &all->program[p];
        program->n_at[i] = (double)program->histogram_ps.n;
        program->sum_at[i] = program->histogram_ps.sum;
    }
    all->received_at[i] = 0;
    for (unsigned f = 0; all->measured_net != NULL && f < all->measured_net->n_functions; f++)
        all->received_at[i] += (double)network_function_bytes(all->measured_net, f);
}

/* Beside the flows of the world: what programs count, and the processors that they use. */
void programs_read(void *context, struct sampling *sampling)
{
    const struct programs *all = context;
    double busy_ps = 0, n = 0;
    for (unsigned p = 0; p < all->n_programs; p++) {
        const struct program *program = &all->program[p];
        const double n_ended = (double)program->histogram_ps.n;
        if (program->ops->moved != NULL)
            sampling_add(sampling, program->name, ".moved", SAMPLING_VALUE,
                         (double)program->ops->moved(program), -1);
        sampling_add(sampling, program->name, ".rate", SAMPLING_VALUE, n_ended, -1);
        sampling_add(sampling, program->name, ".latency", SAMPLING_VALUE, program->histogram_ps.sum,
                     n_ended);
    }
    for (unsigned c = 0; c < k_n_cpus(all->kernel) && c < PROGRAMS_CPUS_MAX; c++)
        if (all->uses_cpu[c]) {
            busy_ps += (double)os_busy_ps(all->kernel, c);
            n++;
        }
    sampling_add(sampling, all->measured_name, ".cpus", SAMPLING_SHARE, n > 0 ? busy_ps / n : 0,
                 -1);
}

/* Mean latency of each part; false: a part has nothing that ended in it. */
static bool latencies(const struct program *program, double latency_ps[SETTLE_PARTS])
{
    for (unsigned i = 0; i < SETTLE_PARTS; i++) {
        const double n = program->n_at[i + 1] - program->n_at[i];
        if (n <= 0)
            return false;
        latency_ps[i] = (program->sum_at[i + 1] - program->sum_at[i]) / n;
    }
    return true;
}

/* TCP's slow start has then been measured, which its swings may hide from all rules about rates. */
static void note_connections(const struct program *program)
{
    char name[96], text[256];
    if (program->n_connected_late == 0)
        return;
    snprintf(name, sizeof(name), "not_settled.%.60s.connections", program->name);
    snprintf(text, sizeof(text),
             "%.60s.connections: %u made within the measured time, slow start included; a longer "
             "measure.warmup_us?",
             program->name, program->n_connected_late);
    run_result_note(program->workload->result, name, text);
}

/* Not judged where a program ends by itself: what it did is measured as a whole. */
void programs_settled(struct programs *all)
{
    char name[80];
    for (unsigned p = 0; p < all->n_programs; p++)
        if (all->program[p].finite || all->program[p].event_ps != 0)
            return; /* what is measured changes, as it is meant to */
    for (unsigned p = 0; p < all->n_programs; p++) {
        const struct program *program = &all->program[p];
        double latency_ps[SETTLE_PARTS];
        note_connections(program);
        if (program->histogram_ps.n == 0 || all->sampling.ended_early)
            continue;
        snprintf(name, sizeof(name), "%.60s.rate", program->name);
        workload_count_settled(all->workload, name, program->n_at, 1);
        snprintf(name, sizeof(name), "%.60s.latency", program->name);
        if (latencies(program, latency_ps))
            workload_settled(all->workload, name, latency_ps, SETTLE_PARTS, 0);
    }
    /* A call of 64 KiB is what receivers take at a time. */
    if (all->measured_net != NULL && all->received_at[SETTLE_PARTS] > 0 &&
        !all->sampling.ended_early)
        workload_count_settled(all->workload, "received_bytes", all->received_at, 65536);
}

/* ---- Recording ------------------------------------------------------------------------------- */

static void record_cpus(struct programs *all, sim_time duration_ps)
{
    sim_time busy_ps = 0;
    unsigned n = 0;
    for (unsigned c = 0; c < k_n_cpus(all->kernel) && c < PROGRAMS_CPUS_MAX; c++)
        if (all->uses_cpu[c]) {
            busy_ps += os_busy_ps(all->kernel, c);
            n++;
        }
    if (n != 0)
        run_result_metric(all->workload->result, "cpu_utilization_ratio", "1",
                          (double)busy_ps / (double)n / (double)duration_ps);
}

/* Where the processor time of a packet (or operation) goes. */
static void record_cpu_parts(struct programs *all, uint64_t n)
{
    static const char *const names[N_NUMA_SOURCES] = {
        [NUMA_L1] = "l1",
        [NUMA_L2] = "l2",
        [NUMA_LLC] = "llc",
        [NUMA_PEER_CACHE] = "peer_cache",
        [NUMA_REMOTE_CACHE] = "remote_cache",
        [NUMA_LOCAL_DRAM] = "local_dram",
        [NUMA_REMOTE_DRAM] = "remote_dram",
    };
    sim_time wait_ps[N_NUMA_SOURCES], busy_ps = 0;
    double per_packet = 1.0 / (double)n / 1000.0;
    char name[48];
    for (unsigned c = 0; c < k_n_cpus(all->kernel) && c < PROGRAMS_CPUS_MAX; c++)
        busy_ps += all->uses_cpu[c] ? os_busy_ps(all->kernel, c) : 0;
    sum_waits(all, wait_ps);
    for (unsigned s = 0; s < N_NUMA_SOURCES; s++) {
        sim_time ps = wait_ps[s];
        snprintf(name, sizeof(name), "cpu_part_ns.%s", names[s]);
        run_result_metric(all->workload->result, name, "ns", (double)ps * per_packet);
        busy_ps -= SIM_MIN(busy_ps, ps);
    }
    run_result_metric(all->workload->result, "cpu_part_ns.compute", "ns",
                      (double)busy_ps * per_packet);
}

static void record_packets(struct programs *all, sim_time duration_ps)
{
    struct run_result *result = all->workload->result;
    double misses = (double)breakdown_counter(all->measured, "core_llc_misses");
    uint64_t packets = 0;
    if (all->measured_net == NULL)
        all->packets_which = 0;
    if ((all->packets_which & PROGRAM_PACKETS_RECEIVED) != 0)
        packets += network_packets_received(all->measured_net) - all->received_at_begin;
    if ((all->packets_which & PROGRAM_PACKETS_SENT) != 0)
        packets += network_buffers_sent(all->measured_net) - all->sent_at_begin;
    if (packets != 0) {
        run_result_metric(result, "packet_rate_kpps", "1000/s",
                          (double)packets * 1e9 / (double)duration_ps);
        run_result_metric(result, "packet_rate_mpps", "1000000/s",
                          (double)packets * 1e6 / (double)duration_ps);
        run_result_metric(result, "llc_misses_per_packet", "1", misses / (double)packets);
    }
    if (all->operations != 0)
        run_result_metric(result, "llc_misses_per_operation", "1",
                          misses / (double)all->operations);
    uint64_t n = packets != 0 ? packets : all->operations;
    if (n != 0) {
        record_cpu_parts(all, n);
        breakdown_record_dram(all->measured, result, n);
    }
    breakdown_record_dma(all->measured, result);
}

void programs_record(struct programs *all, sim_time duration_ps)
{
    struct workload *workload = all->workload;
    struct host *host = all->measured;
    double memory = (double)numa_dram_bytes(host_numa(host)) * 1000.0 / (double)duration_ps;
    for (unsigned i = 0; i < all->n_programs; i++)
        all->program[i].ops->record(&all->program[i], duration_ps);
    workload_record_world(workload, host, duration_ps);
    record_guests(all, workload->result, duration_ps);
    run_result_metric(workload->result, "memory_gbit_s", "Gbit/s", memory * 8.0);
    record_cpus(all, duration_ps);
    for (unsigned i = 0; i < all->n_sums; i++)
        run_result_metric(workload->result, all->sum[i].name, all->sum[i].unit, all->sum[i].value);
    record_packets(all, duration_ps);
}
