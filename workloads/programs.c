/*
 * The workload "programs": kernels, interfaces, programs side by side, measured together.
 *
 * All programs start at once. After measure.warmup_us everything is cleared and measured for
 * measure.duration_us; if there are programs that end by themselves (PageRank), until the last of
 * them has, and duration_us bounds it.
 */
#include "workloads/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/breakdown.h"

#define CPUS_MAX         256u
#define CONNECT_TRIES    100u
#define CONNECT_PAUSE_PS (50 * SIM_PS_PER_US)

#define END_PS   (20 * SIM_PS_PER_MS)
#define SUMS_MAX 32u
#define PORTS    64u /* of a program */
struct metric_sum {
    const char *name, *unit;
    double value;
};

struct programs {
    /* parameters */
    const char *measured_name;
    sim_time connect_within_ps;
    /* running */
    struct workload *workload;
    struct network *network;
    struct network_host *measured;
    struct program *program;
    unsigned n_programs;
    bool measuring, done;
    bool uses_cpu[CPUS_MAX]; /* of the measured host */
    sim_time begin_ps;
    struct sim_random random; /* of connect_within_ps */
    unsigned packets_which;   /* enum program_packets */
    uint64_t sent_at_begin, received_at_begin, operations;
    bool ending;
    uint16_t next_stream;
    struct metric_sum sum[SUMS_MAX];
    unsigned n_sums;
    struct rate_sampler sampler;
    char fault[256]; /* why the run has failed, told when the hosts are down; "" */
};

static const struct param_desc programs_params[] = {
    PARAM_TEXT("measured", struct programs, measured_name, "server",
               "the host whose processors and memory the metrics are about"),
    PARAM("connect_within_us", PARAM_TIME, struct programs, connect_within_ps, 20, 0, 1000,
          PROV_NONE, "",
          "TCP clients connect after as long at most, at random by the seed: results of several"
          " seeds do not hang on one order of events"),
    { .type = PARAM_END },
};

/* Of every program, besides its own. */
struct program_common {
    bool enabled;
};
static const struct param_desc common_params[] = {
    PARAM("enabled", PARAM_BOOL, struct program_common, enabled, 1, 0, 1, PROV_NONE, "",
          "false: the program is left out"),
    { .type = PARAM_END },
};

static const struct record_desc programs_records[] = {
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
    { "pf1_gbit_s", RECORD_SERIES, "Gbit/s", "received by its NIC's second function" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* The host's own, which it has if another one is measured. */
static void declare_host(struct host *host, struct run_result *declared)
{
    unsigned n = numa_sockets(host_numa(host));
    char name[160];
    snprintf(name, sizeof(name), "%s.memory_gbyte_s", host_name(host));
    run_result_declare(declared, RECORD_METRIC, name);
    for (unsigned i = 0; i < n * n; i++) {
        snprintf(name, sizeof(name), "%.60s.interconnect_gbyte_s.s%u_s%u", host_name(host), i / n,
                 i % n);
        if (i / n != i % n && !run_result_has(declared, RECORD_METRIC, name))
            run_result_declare(declared, RECORD_METRIC, name);
    }
}

/* What its programs record; a name that begins with "." has the program's before it, any other is
 * of all programs together. */
static void programs_declare(struct workload *workload, struct run_result *declared)
{
    const struct programs *all = workload->state;
    char name[96];
    for (unsigned i = 0; i < all->n_programs; i++)
        for (const struct record_desc *r = all->program[i].ops->records; r->name != NULL; r++) {
            snprintf(name, sizeof(name), "%s%s", r->name[0] == '.' ? all->program[i].name : "",
                     r->name);
            if (!run_result_has(declared, r->kind, name))
                run_result_declare(declared, r->kind, name);
        }
    for (unsigned h = 0; h < world_n_hosts(workload->world); h++)
        declare_host(world_host_at(workload->world, h), declared);
}

/* ---- Building ----------------------------------------------------------------------------------
 */

static const struct program_ops *find_ops(struct config_node *group, struct sim_error_list *errors)
{
    static const char *const type_setting[] = { "type", NULL };
    const char *names[32] = { NULL };
    struct config_node *type = config_get(group, "type");
    config_allow(group, type_setting);
    for (unsigned i = 0; program_registry[i] != NULL && i < 31; i++)
        names[i] = program_registry[i]->type;
    if (type != NULL && config_kind(type) == CONFIG_STRING)
        for (unsigned i = 0; program_registry[i] != NULL; i++)
            if (strcmp(program_registry[i]->type, config_string(type)) == 0)
                return program_registry[i];
    config_mistake(type != NULL ? type : group, errors, "`type`: a program", names);
    config_mark_read(group);
    return NULL;
}

static void release_program(struct program *program)
{
    if (program->ops->release != NULL)
        program->ops->release(program);
    free(program->state);
}

static void read_program(struct programs *all, struct config_node *group,
                         struct sim_error_list *errors)
{
    struct program *program = &all->program[all->n_programs];
    struct program_common common = { .enabled = true };
    if (config_kind(group) != CONFIG_GROUP) {
        config_mistake(group, errors, "a group that describes a program", NULL);
        return;
    }
    const struct program_ops *ops = find_ops(group, errors);
    if (ops == NULL)
        return;
    *program = (struct program){ .ops = ops,
                                 .name = config_name(group),
                                 .group = group,
                                 .all = all,
                                 .workload = all->workload,
                                 .network = all->network };
    program->state = calloc(1, ops->state_bytes);
    SIM_ASSERT(program->state != NULL, "out of memory");
    all->n_programs++;
    size_t before = errors->n_messages;
    config_read_params(all->workload->config, group, config_path(group), common_params, &common,
                       errors);
    config_read_params(all->workload->config, group, config_path(group), ops->params,
                       program->state, errors);
    if (errors->n_messages == before && all->measured != NULL)
        ops->check(program, errors);
    for (unsigned i = 0; ops->single && common.enabled && i + 1 < all->n_programs; i++)
        if (all->program[i].ops == ops)
            config_mistake(program_setting(program, "type"), errors,
                           "a type that no other program has, as its metrics are those of one",
                           NULL);
    if (!common.enabled) {
        release_program(program);
        all->n_programs--;
    }
}

static void programs_check(struct workload *workload, struct sim_error_list *errors)
{
    struct programs *all = workload->state;
    struct config_node *group = config_get(config_root(workload->config), "programs");
    all->workload = workload;
    all->network = network_new(workload->world, workload->config, errors);
    all->measured = network_find(all->network, all->measured_name);
    if (all->measured == NULL && errors->n_messages == 0)
        config_mistake(workload_setting(workload, "measured"), errors,
                       "`measured`: a host of the group `network`", network_names(all->network));
    if (group == NULL || config_kind(group) != CONFIG_GROUP || config_count(group) == 0) {
        config_mistake(group != NULL ? group : workload->group, errors,
                       "a group `programs` with what runs, { NAME = { type = ...; }; }", NULL);
        return;
    }
    all->program = calloc(config_count(group), sizeof(*all->program));
    SIM_ASSERT(all->program != NULL, "out of memory");
    for (unsigned i = 0; i < config_count(group); i++)
        read_program(all, config_get(group, config_name(config_child(group, i))), errors);
}

/* ---- Running ------------------------------------------------------------------------------------
 */

static uint64_t function_bytes(const struct workload *workload, unsigned f)
{
    const struct programs *all = workload->state;
    return f < all->measured->n_functions ? network_function_bytes(all->measured, f) : 0;
}
static uint64_t pf0_bytes(const struct workload *workload)
{
    return function_bytes(workload, 0);
}
static uint64_t pf1_bytes(const struct workload *workload)
{
    return function_bytes(workload, 1);
}
static const struct rate_series programs_series[] = {
    { "pf0_gbit_s", "Gbit/s", 8e-9, pf0_bytes },
    { "pf1_gbit_s", "Gbit/s", 8e-9, pf1_bytes },
};

/* Of all cores: programs may come to use others. */
static void clear_waits(struct programs *all)
{
    for (unsigned c = 0; c < k_n_cpus(all->measured->kernel); c++)
        memset(host_core(all->measured->host, c)->wait_ps, 0,
               sizeof(host_core(all->measured->host, c)->wait_ps));
}

/* Waits for data of the cores in use, since they were cleared. */
static void sum_waits(const struct programs *all, sim_time wait_ps[N_NUMA_SOURCES])
{
    memset(wait_ps, 0, N_NUMA_SOURCES * sizeof(*wait_ps));
    for (unsigned c = 0; c < k_n_cpus(all->measured->kernel) && c < CPUS_MAX; c++)
        for (unsigned s = 0; all->uses_cpu[c] && s < N_NUMA_SOURCES; s++)
            wait_ps[s] += host_core(all->measured->host, c)->wait_ps[s];
}

static void begin_measuring(struct programs *all)
{
    struct workload *workload = all->workload;
    all->begin_ps = sim_now(workload->sim);
    world_stats_clear(workload->world);
    for (unsigned h = 0; h < all->network->n_hosts; h++)
        kernel_stats_clear(all->network->host[h].kernel);
    all->sent_at_begin = network_buffers_sent(all->measured);
    clear_waits(all);
    all->received_at_begin = network_packets_received(all->measured);
    all->measuring = true;
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].ops->measure != NULL)
            all->program[i].ops->measure(&all->program[i]);
    rate_sampler_start(&all->sampler, workload, programs_series, SIM_N_ELEMENTS(programs_series));
}

static bool any_finite(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].finite)
            return true;
    return false;
}

static bool all_finished(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].finite && !all->program[i].finished)
            return false;
    return true;
}

/* ---- Recording ----------------------------------------------------------------------------------
 */

static void record_cpus(struct programs *all, sim_time duration_ps)
{
    sim_time busy_ps = 0;
    unsigned n = 0;
    for (unsigned c = 0; c < k_n_cpus(all->measured->kernel) && c < CPUS_MAX; c++)
        if (all->uses_cpu[c]) {
            busy_ps += kernel_busy_ps(all->measured->kernel, c);
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
    for (unsigned c = 0; c < k_n_cpus(all->measured->kernel) && c < CPUS_MAX; c++)
        busy_ps += all->uses_cpu[c] ? kernel_busy_ps(all->measured->kernel, c) : 0;
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
    double misses = (double)breakdown_counter(all->measured->host, "core_llc_misses");
    uint64_t packets = 0;
    if ((all->packets_which & PROGRAM_PACKETS_RECEIVED) != 0)
        packets += network_packets_received(all->measured) - all->received_at_begin;
    if ((all->packets_which & PROGRAM_PACKETS_SENT) != 0)
        packets += network_buffers_sent(all->measured) - all->sent_at_begin;
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
        breakdown_record_dram(all->measured->host, result, n);
    }
    breakdown_record_dma(all->measured->host, result);
}

static void record(struct programs *all, sim_time duration_ps)
{
    struct workload *workload = all->workload;
    struct host *host = all->measured->host;
    double memory = (double)numa_dram_bytes(host_numa(host)) * 1000.0 / (double)duration_ps;
    for (unsigned i = 0; i < all->n_programs; i++)
        all->program[i].ops->record(&all->program[i], duration_ps);
    workload_record_world(workload, host, duration_ps);
    run_result_metric(workload->result, "memory_gbit_s", "Gbit/s", memory * 8.0);
    record_cpus(all, duration_ps);
    for (unsigned i = 0; i < all->n_sums; i++)
        run_result_metric(workload->result, all->sum[i].name, all->sum[i].unit, all->sum[i].value);
    record_packets(all, duration_ps);
}

/* A connection that was never made: what would be recorded says nothing about the machines. */
static bool all_connected(const struct programs *all)
{
    for (unsigned i = 0; i < all->n_programs; i++)
        if (all->program[i].n_connecting != 0) {
            program_fail(&all->program[i],
                         "%u of its connections were not made before the measurement ended: is "
                         "there a cable between the interfaces, and does it lose frames?",
                         all->program[i].n_connecting);
            return false;
        }
    return true;
}

/* Lets programs end and what is under way arrive, then shuts the hosts down; not where the run has
 * been interrupted or has failed already. */
static void end(struct programs *all)
{
    struct workload *workload = all->workload;
    bool never = false;
    all->measuring = false;
    all->ending = true;
    workload_run_until(workload, &never, sim_now(workload->sim) + END_PS);
    if (sim_error(workload->sim) == NULL &&
        (workload->interrupt == NULL || *workload->interrupt == 0))
        network_down(all->network, workload->interrupt);
}

/* True: it is until_ps, or done. */
static bool go_on(struct workload *workload, const bool *done, sim_time until_ps)
{
    workload_run_until(workload, done, until_ps);
    return sim_error(workload->sim) == NULL &&
           (workload->interrupt == NULL || *workload->interrupt == 0);
}

static void measure(struct programs *all)
{
    struct workload *workload = all->workload;
    bool never = false;
    if (!go_on(workload, &never, sim_now(workload->sim) + workload->measure.warmup_ps))
        return;
    begin_measuring(all);
    all->done = any_finite(all) && all_finished(all);
    if (!go_on(workload, any_finite(all) ? &all->done : &never,
               all->begin_ps + workload->measure.duration_ps))
        return;
    rate_sampler_stop(&all->sampler);
    if (any_finite(all) && !all_finished(all))
        sim_fail(workload->sim, "not every program ended within measure.duration_us");
    else if (all_connected(all))
        record(all, sim_now(workload->sim) - all->begin_ps);
}

static void programs_run(struct workload *workload)
{
    struct programs *all = workload->state;
    if (!network_up(all->network, workload->interrupt))
        return;
    sim_random_init(&all->random, sim_seed(workload->sim), "programs");
    for (unsigned i = 0; i < all->n_programs; i++)
        all->program[i].ops->start(&all->program[i]);
    measure(all);
    end(all);
    if (all->fault[0] != '\0' && sim_error(workload->sim) == NULL)
        sim_fail(workload->sim, "%s", all->fault);
}

static void programs_release(struct workload *workload)
{
    struct programs *all = workload->state;
    for (unsigned i = 0; i < all->n_programs; i++)
        release_program(&all->program[i]);
    free(all->program);
    if (all->network != NULL)
        network_free(all->network);
}

static const char *const programs_groups[] = { "network", "programs", NULL };

const struct workload_ops workload_programs_ops = {
    .type = "programs",
    .help = "programs on hosts with kernels and networks: the groups `network` and `programs`",
    .state_bytes = sizeof(struct programs),
    .params = programs_params,
    .records = programs_records,
    .declare = programs_declare,
    .groups = programs_groups,
    .check = programs_check,
    .run = programs_run,
    .release = programs_release,
};

/* ---- For programs
 * -------------------------------------------------------------------------------- */

bool program_measuring(const struct program *program)
{
    return program->all->measuring;
}

void program_finish(struct program *program)
{
    program->finished = true;
    if (all_finished(program->all)) {
        program->all->done = true;
        sim_stop(program->workload->sim);
    }
}

void program_fail(struct program *program, const char *fmt, ...)
{
    struct programs *all = program->all;
    char text[sizeof(all->fault) - 64];
    va_list args;
    if (all->fault[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(all->fault, sizeof(all->fault), "%.60s: %s", program->name, text);
}

const struct program *program_earlier(const struct program *program, unsigned i)
{
    const struct program *earlier = &program->all->program[i];
    return earlier < program ? earlier : NULL;
}

const struct config_node *program_setting(struct program *program, const char *key)
{
    struct config_node *node = config_find(program->group, key);
    return node != NULL ? node : program->group;
}

struct network_host *program_host(struct program *program, const char *key, const char *name,
                                  struct sim_error_list *errors)
{
    struct network_host *host = network_find(program->network, name);
    if (host == NULL)
        config_mistake(program_setting(program, key), errors, "a host of the group `network`",
                       network_names(program->network));
    return host;
}

void program_check_core(struct program *program, const char *key, const struct network_host *host,
                        unsigned socket, unsigned idx, struct sim_error_list *errors)
{
    const struct numa *numa = host_numa(host->host);
    if (socket >= numa_sockets(numa) || idx >= numa_cores(numa) / numa_sockets(numa))
        config_mistake(program_setting(program, key), errors, "a socket and a core of the host",
                       NULL);
}

void program_check_interface(struct program *program, const char *key,
                             const struct network_host *host, const char *interface,
                             struct sim_error_list *errors)
{
    if (!network_interface_named(host, interface))
        config_mistake(program_setting(program, key), errors, "an interface of the host",
                       network_interface_names(host));
}

unsigned program_cpu(const struct network_host *host, unsigned socket, unsigned idx)
{
    const struct numa *numa = host_numa(host->host);
    unsigned per_socket = numa_cores(numa) / numa_sockets(numa);
    SIM_ASSERT(socket < numa_sockets(numa) && idx < per_socket, "socket %u, core %u", socket, idx);
    return socket * per_socket + idx;
}

void program_uses_cpu(struct program *program, const struct network_host *host, unsigned cpu)
{
    if (host == program->all->measured && cpu < CPUS_MAX)
        program->all->uses_cpu[cpu] = true;
}

void program_counts_packets(struct program *program, enum program_packets which)
{
    program->all->packets_which |= (unsigned)which;
}

void program_count_operations(struct program *program, uint64_t n)
{
    program->all->operations += n;
}

bool program_ending(const struct program *program)
{
    return program->all->ending;
}

struct kaddr program_buffer(const struct network_host *host, unsigned cpu, uint64_t bytes)
{
    struct kaddr at = k_alloc(host->kernel, (int)k_node_of_cpu(host->kernel, cpu), bytes,
                              K_PAGE_BYTES);
    SIM_ASSERT(at.v != 0, "%s: no memory for a buffer of %llu bytes", host->name,
               (unsigned long long)bytes);
    return at;
}

struct socket *program_connect(struct program *program, const struct network_host *host,
                               uint32_t from_ip, uint32_t ip, uint16_t port)
{
    struct programs *all = program->all;
    program->n_connecting++;
    if (all->connect_within_ps != 0)
        k_sleep(host->kernel, sim_random_below(&all->random, all->connect_within_ps));
    for (unsigned i = 0; i < CONNECT_TRIES; i++) {
        struct socket *socket = socket_tcp_connect(host->net, from_ip, ip, port);
        if (socket != NULL) {
            program->n_connecting--;
            return socket;
        }
        k_sleep(host->kernel, CONNECT_PAUSE_PS);
    }
    k_fault(host->kernel, "%s: nobody listens on port %u", program->name, port);
    return NULL;
}

void program_metric_sum(struct program *program, const char *name, const char *unit, double value)
{
    struct programs *all = program->all;
    unsigned i = 0;
    while (i < all->n_sums && strcmp(all->sum[i].name, name) != 0)
        i++;
    SIM_ASSERT(i < SUMS_MAX, "more metrics than there is room for");
    if (i == all->n_sums)
        all->sum[all->n_sums++] = (struct metric_sum){ name, unit, 0 };
    all->sum[i].value += value;
}

uint16_t program_port(const struct program *program, uint16_t base, unsigned idx)
{
    SIM_ASSERT(idx < PORTS, "port %u of a program", idx);
    return (uint16_t)(base + PORTS * (unsigned)(program - program->all->program) + idx);
}

uint16_t program_new_stream(struct program *program)
{
    return ++program->all->next_stream;
}

const struct program_ops *const program_registry[] = {
    &program_netperf_ops, &program_netperf_rr_ops, &program_sockperf_ops,
    &program_pktgen_ops,  &program_sendfile_ops,   &program_memcached_ops,
    &program_stream_ops,  &program_pagerank_ops,   NULL,
};
