/*
 * netperf's TCP_STREAM: one side sends buffers for ever, the other receives them. Every byte is
 * stamped by the sender and checked by the receiver. TCP_RR: request_response.c.
 *
 * Instances run on cores first_core, first_core + 1, ... of a socket of the server,
 * each against a partner on the same cores of the client. With migrate_after_us the server's
 * instances move to the other socket that long after the measurement began (sched_setaffinity()).
 */
#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/programs/program.h"

#define FIRST_PORT 12865u

enum netperf_direction { NETPERF_RX, NETPERF_TX };
static const char *const direction_names[] = { "rx", "tx", NULL };

struct netperf;

struct instance {
    struct netperf *netperf;
    unsigned idx;
    uint16_t stream;
    struct kaddr send_buffer, receive_buffer;
    struct k_thread *server_thread;
    uint64_t sent, received; /* bytes in all; of receive calls that have returned */
    struct socket *socket;   /* that receives; NULL: none, or closed */
};

struct netperf {
    /* parameters */
    struct program_pair pair;
    int direction;
    uint32_t instances;
    bool same_core;
    uint64_t buffer_bytes;
    sim_time migrate_after_ps;
    /* running */
    struct program *program;
    uint32_t server_ip;
    struct instance *instance;
    struct sim_event migration;
    /* measured */
    uint64_t bytes_at_begin, bytes_at_migration; /* received until then */
    sim_time begin_ps, migrated_ps;
    struct net_stats at_begin;
    sim_time last_receive_ps, longest_gap_ps;
    uint64_t drops_at_begin;
};

static const struct param_desc netperf_params[] = {
    PARAM_TEXT("server", struct netperf, pair.server_name, "server", "the host under test"),
    PARAM_TEXT("client", struct netperf, pair.client_name, "client", "its partner"),
    PARAM_TEXT("interface", struct netperf, pair.interface, "",
               "of the server: pf0, pf1, ..., octo0, bond0; empty: the host's default"),
    PARAM_ONE_OF("direction", struct netperf, direction, NETPERF_RX, direction_names, PROV_NONE, "",
                 "what the server does: receives or transmits"),
    PARAM("instances", PARAM_U32, struct netperf, instances, 1, 0, 64, PROV_NONE, "",
          "pairs of processes, a core each"),
    PARAM("server_socket", PARAM_U32, struct netperf, pair.server_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the server's processes"),
    PARAM("client_socket", PARAM_U32, struct netperf, pair.client_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the client's processes"),
    PARAM("first_core", PARAM_U32, struct netperf, pair.first_core, 0, 0, 63, PROV_NONE, "",
          "of the server's socket, for the first instance"),
    PARAM("client_first_core", PARAM_U32, struct netperf, pair.client_first_core, 0, 0, 63,
          PROV_NONE, "", "of the client's socket, for the first instance"),
    PARAM("same_core", PARAM_BOOL, struct netperf, same_core, 0, 0, 1, PROV_NONE, "",
          "all of the server's processes share first_core; the client's have a core each"),
    PARAM("buffer_bytes", PARAM_BYTES, struct netperf, buffer_bytes, 65536, 8, 16777216, PROV_NONE,
          "", "of one send and one receive call"),
    PARAM("migrate_after_us", PARAM_TIME, struct netperf, migrate_after_ps, 0, 0, 1e9, PROV_NONE,
          "", "the server's processes move to the other socket; 0: they stay"),
    { .type = PARAM_END },
};

static const struct record_desc netperf_records[] = {
    { "+throughput_gbit_s", RECORD_METRIC, "Gbit/s", "payload received, all instances" },
    { "+netperf_gbit_s", RECORD_METRIC, "Gbit/s", "the same, beside other programs" },
    { "throughput_before_gbit_s", RECORD_METRIC, "Gbit/s", "before the migration" },
    { "throughput_after_gbit_s", RECORD_METRIC, "Gbit/s", "after the migration" },
    { "packets_lost", RECORD_METRIC, "1", "dropped by NICs while measured (migrate_after_us)" },
    { "packets_reordered", RECORD_METRIC, "1",
      "segments that came out of order (migrate_after_us)" },
    { "steering_gap_us", RECORD_METRIC, "us", "longest pause of the receiver after the migration" },
    { "+throughput_gbit_s", RECORD_SERIES, "Gbit/s", "received per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* Of the server's socket, for an instance. */
static unsigned server_core(const struct netperf *netperf, unsigned i)
{
    return netperf->pair.first_core + (netperf->same_core ? 0 : i);
}

/* It comes before the end. */
static void check_migration(struct netperf *netperf, struct sim_error_list *errors)
{
    if (netperf->migrate_after_ps != 0 &&
        netperf->migrate_after_ps >= netperf->program->workload->measure.duration_ps)
        program_mistake(netperf->program, "migrate_after_us", errors,
                        "less than measure.duration_us", NULL);
}

static void netperf_check(struct program *program, struct sim_error_list *errors)
{
    struct netperf *netperf = program->state;
    netperf->program = program;
    program->event_ps = netperf->migrate_after_ps;
    const char *const n_key = netperf->same_core ? NULL : "instances";
    if (!program_check_pair(program, &netperf->pair, "first_core", n_key, netperf->instances,
                            "client_first_core", "instances", netperf->instances, errors))
        return;
    if (netperf->migrate_after_ps != 0 && network_sockets(netperf->pair.server) < 2)
        program_mistake(program, "migrate_after_us", errors, "0 for a server of one socket", NULL);
    if (netperf->instances == 0 && netperf->migrate_after_ps == 0)
        program_pair_idle(program);
    check_migration(netperf, errors);
}

/* ---- TCP_STREAM
 * ---------------------------------------------------------------------------------- */

/* By all instances so far: as bytes are copied, not when a call that may be long returns. */
static uint64_t bytes_received(const struct netperf *netperf)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < netperf->instances; i++) {
        const struct instance *instance = &netperf->instance[i];
        bytes += instance->socket != NULL ? socket_bytes_received(instance->socket)
                                          : instance->received;
    }
    return bytes;
}

static void call_returned(struct netperf *netperf, uint64_t begin_ps, uint64_t now_ps)
{
    program_operation_ended(netperf->program, begin_ps);
    if (!program_measuring(netperf->program))
        return;
    if (netperf->migrated_ps != 0 && now_ps > netperf->last_receive_ps)
        netperf->longest_gap_ps = SIM_MAX(netperf->longest_gap_ps,
                                          now_ps - netperf->last_receive_ps);
    netperf->last_receive_ps = now_ps;
}

static void receive_all(struct instance *instance, struct network_host *host, struct socket *socket)
{
    struct netperf *netperf = instance->netperf;
    struct kernel *kernel = host->kernel;
    uint64_t begin_ps = k_now_ps(kernel);
    int64_t n;
    struct payload_difference is;
    instance->socket = socket;
    while ((n = socket_receive(socket, instance->receive_buffer, netperf->buffer_bytes)) > 0) {
        uint64_t tag = payload_mark(instance->stream, instance->received);
        if (!payload_check(kernel, instance->receive_buffer, tag, (size_t)n, &is))
            k_fault(kernel, "netperf: tag %llx of the stream instead of %llx",
                    (unsigned long long)is.found, (unsigned long long)is.expected);
        instance->received += (uint64_t)n;
        call_returned(netperf, begin_ps, k_now_ps(kernel));
        begin_ps = k_now_ps(kernel);
    }
    instance->socket = NULL;
    socket_close(socket);
}

static void send_all(struct instance *instance, struct network_host *host, struct socket *socket)
{
    struct netperf *netperf = instance->netperf;
    while (!program_ending(netperf->program)) {
        payload_fill(host->kernel, instance->send_buffer,
                     payload_mark(instance->stream, instance->sent), netperf->buffer_bytes);
        int64_t n = socket_send(socket, instance->send_buffer, netperf->buffer_bytes);
        if (n < 0)
            break;
        instance->sent += (uint64_t)n;
    }
    socket_close(socket);
}

static void server_body(void *arg)
{
    struct instance *instance = arg;
    struct netperf *netperf = instance->netperf;
    struct network_host *host = netperf->pair.server;
    struct socket *listener = socket_tcp_listen(
        host->net, netperf->server_ip, program_port(netperf->program, FIRST_PORT, instance->idx));
    struct socket *socket = socket_accept(listener);
    if (netperf->direction == NETPERF_RX)
        receive_all(instance, host, socket);
    else
        send_all(instance, host, socket);
    socket_close(listener);
}

static void client_body(void *arg)
{
    struct instance *instance = arg;
    struct netperf *netperf = instance->netperf;
    struct network_host *host = netperf->pair.client;
    struct socket *socket =
        program_connect(netperf->program, host, host->ip, netperf->server_ip,
                        program_port(netperf->program, FIRST_PORT, instance->idx));
    if (socket == NULL)
        return;
    if (netperf->direction == NETPERF_RX)
        send_all(instance, host, socket);
    else
        receive_all(instance, host, socket);
}

static void start_instance(struct netperf *netperf, unsigned i)
{
    struct instance *instance = &netperf->instance[i];
    char name[32];
    unsigned server_cpu = program_cpu(netperf->pair.server, netperf->pair.server_socket,
                                      server_core(netperf, i));
    unsigned client_cpu = program_cpu(netperf->pair.client, netperf->pair.client_socket,
                                      netperf->pair.client_first_core + i);
    bool rx = netperf->direction == NETPERF_RX;
    struct network_host *sender = rx ? netperf->pair.client : netperf->pair.server;
    struct network_host *receiver = rx ? netperf->pair.server : netperf->pair.client;
    *instance = (struct instance){ .netperf = netperf,
                                   .idx = i,
                                   .stream = program_new_stream(netperf->program) };
    instance->send_buffer = program_buffer(netperf->program, sender, rx ? client_cpu : server_cpu,
                                           netperf->buffer_bytes);
    instance->receive_buffer = program_buffer(netperf->program, receiver,
                                              rx ? server_cpu : client_cpu, netperf->buffer_bytes);
    program_uses_cpu(netperf->program, netperf->pair.server, server_cpu);
    program_uses_cpu(netperf->program, netperf->pair.client, client_cpu);
    snprintf(name, sizeof(name), "netserver.%u", i);
    instance->server_thread = k_thread_new(netperf->pair.server->kernel, name, (int)server_cpu,
                                           server_body, instance);
    snprintf(name, sizeof(name), "netperf.%u", i);
    k_thread_new(netperf->pair.client->kernel, name, (int)client_cpu, client_body, instance);
}

static void netperf_start(struct program *program)
{
    struct netperf *netperf = program->state;
    netperf->server_ip = network_interface_ip(netperf->pair.server, netperf->pair.interface);
    netperf->instance = program_zalloc(program, netperf->instances, sizeof(*netperf->instance));
    for (unsigned i = 0; i < netperf->instances; i++)
        start_instance(netperf, i);
}

/* ---- Measuring
 * ----------------------------------------------------------------------------------- */

static void migrate(struct sim *sim, struct sim_event *event)
{
    struct netperf *netperf = SIM_CONTAINER(event, struct netperf, migration);
    unsigned other = netperf->pair.server_socket == 0 ? 1 : 0;
    if (program_ending(netperf->program)) /* another program has ended the measurement before */
        return;
    netperf->migrated_ps = sim_now(sim);
    netperf->bytes_at_migration = bytes_received(netperf);
    netperf->last_receive_ps = sim_now(sim);
    for (unsigned i = 0; i < netperf->instances; i++) {
        unsigned cpu = program_cpu(netperf->pair.server, other, server_core(netperf, i));
        program_uses_cpu(netperf->program, netperf->pair.server, cpu);
        k_thread_set_cpu(netperf->instance[i].server_thread, cpu);
    }
}

static void netperf_measure(struct program *program)
{
    struct netperf *netperf = program->state;
    struct sim *sim = program->workload->sim;
    netperf->begin_ps = sim_now(sim);
    netperf->bytes_at_begin = bytes_received(netperf);
    netperf->at_begin = *net_stats(netperf->pair.server->net);
    netperf->drops_at_begin = network_drops(netperf->pair.server) +
                              network_drops(netperf->pair.client);
    if (netperf->migrate_after_ps != 0) {
        sim_event_init(&netperf->migration, migrate);
        sim_schedule_in(sim, &netperf->migration,
                        workload_simulated_ps(program->workload, netperf->migrate_after_ps));
    }
}

static double gbit_s(uint64_t bytes, sim_time duration_ps)
{
    return duration_ps != 0 ? (double)bytes * 8000.0 / (double)duration_ps : 0.0;
}

static void record_migration(struct netperf *netperf, sim_time duration_ps)
{
    struct program *program = netperf->program;
    const struct net_stats *now = net_stats(netperf->pair.server->net);
    sim_time before_ps = netperf->migrated_ps - netperf->begin_ps;
    uint64_t drops = network_drops(netperf->pair.server) + network_drops(netperf->pair.client) -
                     netperf->drops_at_begin;
    program_metric(program, "throughput_before_gbit_s", "Gbit/s",
                   gbit_s(netperf->bytes_at_migration - netperf->bytes_at_begin, before_ps));
    program_metric(
        program, "throughput_after_gbit_s", "Gbit/s",
        gbit_s(bytes_received(netperf) - netperf->bytes_at_migration, duration_ps - before_ps));
    program_metric(program, "packets_lost", "1", (double)drops);
    program_metric(program, "packets_reordered", "1",
                   (double)(now->out_of_order_segments - netperf->at_begin.out_of_order_segments));
    program_metric(program, "steering_gap_us", "us", (double)netperf->longest_gap_ps / 1e6);
}

static uint64_t netperf_moved(const struct program *program)
{
    return bytes_received(program->state);
}

static const struct program_rate netperf_rates[] = {
    { "throughput_gbit_s", 8e-9, netperf_moved, NULL },
    { NULL, 0, NULL, NULL },
};

static void netperf_record(struct program *program, sim_time duration_ps)
{
    struct netperf *netperf = program->state;
    const double rate = gbit_s(bytes_received(netperf) - netperf->bytes_at_begin, duration_ps);
    if (netperf->instances != 0 && !program_has_measured(program, "receive call"))
        return;
    program_metric(program, "throughput_gbit_s", "Gbit/s", rate);
    program_metric(program, "netperf_gbit_s", "Gbit/s", rate);
    program_counts_packets(program, netperf->direction == NETPERF_RX ? PROGRAM_PACKETS_RECEIVED
                                                                     : PROGRAM_PACKETS_SENT);
    if (netperf->migrate_after_ps != 0) {
        if (netperf->migrated_ps == 0)
            program_fail(program,
                         "the measurement ended before migrate_after_us (%.15g us) had passed: "
                         "raise measure.duration_us",
                         (double)netperf->migrate_after_ps / 1e6);
        else
            record_migration(netperf, duration_ps);
    }
}

const struct program_ops program_netperf_ops = {
    .type = "netperf",
    .help = "TCP_STREAM: bulk data through TCP, received or transmitted by the server",
    .steady = true,
    .state_bytes = sizeof(struct netperf),
    .params = netperf_params,
    .records = netperf_records,
    .rates = netperf_rates,
    .check = netperf_check,
    .start = netperf_start,
    .measure = netperf_measure,
    .record = netperf_record,
    .moved = netperf_moved,
};
