/*
 * iperf2: one or two clients write to TCP streams as fast as they can, one server reads them. Each
 * connection has a thread of its own at either end, each with a core to begin with; the scheduler
 * moves those that it wakes. Rates are reported per interval (measure.sample_interval_us), those of
 * clients by what their calls have written, that of the server by what was received. Every byte is
 * stamped by the client and checked by the server.
 *
 * A client on a host that has borrowed its NIC is recorded as `borrower`, another as `lender`.
 *
 * The connections of iperf2 go to one port and differ by the client's, which the kernel draws. Here
 * they differ by the server's, which is drawn with the seed of the run: so they differ to RSS from
 * run to run, and as a client makes them one after the other, they are alike to RSS in runs with
 * the same seed.
 */
#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/programs/program.h"

#define PORT_FIRST    32768u
#define N_PORTS       28232u /* net.ipv4.ip_local_port_range */
#define TURN_PS       (10 * K_US)
#define CLIENTS_MAX   2u
#define PARALLEL_MAX  16u
#define GBYTE_S(B, T) ((double)(B)*1000.0 / (double)(T)) /* of bytes and picoseconds */

struct iperf;

struct connection {
    struct iperf *iperf;
    struct iperf_client *client;
    uint16_t port, stream;
    bool made;
    struct kaddr send_buffer, receive_buffer;
    uint64_t sent, received; /* by calls that have returned */
    uint64_t sent_at_begin;
    struct socket *socket; /* the server's; NULL: none, or closed */
};

struct iperf_client {
    struct network_host *host;
    bool borrows; /* its NIC */
    struct connection *connection;
    uint64_t at_begin, at_sample; /* written until then */
};

struct iperf {
    /* parameters */
    struct program_pair pair; /* of the first client */
    const char *second_name;
    uint32_t parallel;
    uint64_t buffer_bytes;
    /* running */
    struct program *program;
    uint32_t server_ip;
    struct iperf_client client[CLIENTS_MAX];
    unsigned n_clients;
    struct sim_random random;
    /* measured */
    struct sim_event sample;
    sim_time begin_ps;
    uint64_t at_begin, at_sample; /* received until then */
};

static const struct param_desc iperf_params[] = {
    PARAM_TEXT("server", struct iperf, pair.server_name, "server", "the host that receives"),
    PARAM_TEXT("client", struct iperf, pair.client_name, "client", "a host that sends"),
    PARAM_TEXT("second_client", struct iperf, second_name, "",
               "another one that sends at the same time; empty: none"),
    PARAM_TEXT("interface", struct iperf, pair.interface, "",
               "of the server: pf0, pf1, ..., octo0, bond0; empty: the host's default"),
    PARAM("parallel", PARAM_U32, struct iperf, parallel, 4, 1, PARALLEL_MAX, PROV_NONE, "",
          "connections of each client, with a thread and a core at both ends"),
    PARAM("server_socket", PARAM_U32, struct iperf, pair.server_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the server's threads"),
    PARAM("client_socket", PARAM_U32, struct iperf, pair.client_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the clients' threads"),
    PARAM("first_core", PARAM_U32, struct iperf, pair.first_core, 0, 0, 63, PROV_NONE, "",
          "of the server's socket, for the first connection"),
    PARAM("client_first_core", PARAM_U32, struct iperf, pair.client_first_core, 0, 0, 63, PROV_NONE,
          "", "of the clients' socket, for the first connection of each"),
    PARAM("buffer_bytes", PARAM_BYTES, struct iperf, buffer_bytes, 131072, 8, 16777216, PROV_NONE,
          "", "of one send and one receive call"),
    { .type = PARAM_END },
};

static const struct record_desc iperf_records[] = {
    { "throughput_gbyte_s", RECORD_METRIC, "GB/s", "received from all clients" },
    { "receiver_gbyte_s", RECORD_METRIC, "GB/s", "the same" },
    { "lender_gbyte_s", RECORD_METRIC, "GB/s",
      "written by a client that has not borrowed its NIC" },
    { "borrower_gbyte_s", RECORD_METRIC, "GB/s", "written by a client that has borrowed its NIC" },
    { "connection_min_gbyte_s", RECORD_METRIC, "GB/s", "written to the slowest connection" },
    { "connection_max_gbyte_s", RECORD_METRIC, "GB/s", "written to the fastest connection" },
    { "retransmits", RECORD_METRIC, "1", "segments that clients sent again, since the start" },
    { "packets_lost", RECORD_METRIC, "1", "dropped by the NICs of clients and server, likewise" },
    { "throughput_gbyte_s", RECORD_SERIES, "GB/s", "received per interval" },
    { "receiver_gbyte_s", RECORD_SERIES, "GB/s", "the same" },
    { "lender_gbyte_s", RECORD_SERIES, "GB/s", "written per interval" },
    { "borrower_gbyte_s", RECORD_SERIES, "GB/s", "the same" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* ---- Checking -------------------------------------------------------------------------------- */

static bool borrows_nic(const struct program *program, const struct network_host *host)
{
    return program->lending != NULL && host->lending != NULL &&
           lending_borrower(program->lending, host->params.device_name) == host->lending;
}

static void check_second(struct iperf *iperf, struct sim_error_list *errors)
{
    struct program *program = iperf->program;
    struct network_host *host = program_host(program, "second_client", iperf->second_name, errors);
    if (host == NULL)
        return;
    if (host == iperf->pair.server || host == iperf->pair.client)
        program_mistake(program, "second_client", errors, "another host than `server` and `client`",
                        NULL);
    else if (borrows_nic(program, host) == borrows_nic(program, iperf->pair.client))
        program_mistake(program, "second_client", errors,
                        "of two clients one that has borrowed its NIC, and one that has not", NULL);
    program_check_cores(program, host,
                        &(struct program_cores){ "client_socket", "client_first_core", "parallel",
                                                 iperf->pair.client_socket,
                                                 iperf->pair.client_first_core, iperf->parallel,
                                                 0 },
                        errors);
    iperf->client[iperf->n_clients++].host = host;
}

static void iperf_check(struct program *program, struct sim_error_list *errors)
{
    struct iperf *iperf = program->state;
    const unsigned n_clients = iperf->second_name[0] != '\0' ? 2 : 1;
    iperf->program = program;
    program->eventful = program->workload->measure.sample_interval_ps != 0; /* series of its own */
    iperf->n_clients = 0;
    if (!program_check_pair(program, &iperf->pair, "first_core", "parallel",
                            n_clients * iperf->parallel, "client_first_core", "parallel",
                            iperf->parallel, errors))
        return;
    iperf->client[iperf->n_clients++].host = iperf->pair.client;
    if (n_clients > 1)
        check_second(iperf, errors);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static void server_body(void *arg)
{
    struct connection *c = arg;
    struct iperf *iperf = c->iperf;
    struct network_host *host = iperf->pair.server;
    struct socket *listener = socket_tcp_listen(host->net, iperf->server_ip, c->port);
    struct socket *socket = socket_accept(listener);
    uint64_t begin_ps = k_now_ps(host->kernel);
    struct payload_difference is;
    int64_t n;
    c->socket = socket;
    while ((n = socket_receive(socket, c->receive_buffer, iperf->buffer_bytes)) > 0) {
        if (!payload_check(host->kernel, c->receive_buffer, payload_mark(c->stream, c->received),
                           (size_t)n, &is))
            k_fault(host->kernel, "iperf: tag %llx of the stream instead of %llx",
                    (unsigned long long)is.found, (unsigned long long)is.expected);
        c->received += (uint64_t)n;
        program_operation_ended(iperf->program, begin_ps);
        begin_ps = k_now_ps(host->kernel);
    }
    c->socket = NULL;
    socket_close(socket);
    socket_close(listener);
}

static void client_body(void *arg)
{
    struct connection *c = arg;
    struct iperf *iperf = c->iperf;
    struct network_host *host = c->client->host;
    while (c != c->client->connection && !c[-1].made)
        k_sleep(host->kernel, TURN_PS);
    struct socket *socket = program_connect(iperf->program, host, host->ip, iperf->server_ip,
                                            c->port);
    c->made = true;
    if (socket == NULL)
        return;
    while (!program_ending(iperf->program)) {
        payload_fill(host->kernel, c->send_buffer, payload_mark(c->stream, c->sent),
                     iperf->buffer_bytes);
        const int64_t n = socket_send(socket, c->send_buffer, iperf->buffer_bytes);
        if (n < 0)
            break;
        c->sent += (uint64_t)n;
    }
    socket_close(socket);
}

static bool port_taken(const struct iperf *iperf, uint16_t port)
{
    for (unsigned i = 0; i < iperf->n_clients; i++)
        for (unsigned k = 0; iperf->client[i].connection != NULL && k < iperf->parallel; k++)
            if (iperf->client[i].connection[k].port == port)
                return true;
    return false;
}

static void start_connection(struct iperf *iperf, unsigned client, unsigned i)
{
    struct iperf_client *at = &iperf->client[client];
    struct connection *c = &at->connection[i];
    const unsigned server_cpu = program_cpu(iperf->pair.server, iperf->pair.server_socket,
                                            iperf->pair.first_core + client * iperf->parallel + i);
    const unsigned client_cpu = program_cpu(at->host, iperf->pair.client_socket,
                                            iperf->pair.client_first_core + i);
    char name[32];
    uint16_t port;
    do
        port = (uint16_t)(PORT_FIRST + sim_random_below(&iperf->random, N_PORTS));
    while (port_taken(iperf, port));
    *c = (struct connection){
        .iperf = iperf, .client = at, .port = port, .stream = program_new_stream(iperf->program)
    };
    c->send_buffer = program_buffer(iperf->program, at->host, client_cpu, iperf->buffer_bytes);
    c->receive_buffer = program_buffer(iperf->program, iperf->pair.server, server_cpu,
                                       iperf->buffer_bytes);
    program_uses_cpu(iperf->program, iperf->pair.server, server_cpu);
    program_uses_cpu(iperf->program, at->host, client_cpu);
    snprintf(name, sizeof(name), "iperf-s.%u.%u", client, i);
    k_thread_float(k_thread_new(iperf->pair.server->kernel, name, (int)server_cpu, server_body, c));
    snprintf(name, sizeof(name), "iperf-c.%u.%u", client, i);
    k_thread_float(k_thread_new(at->host->kernel, name, (int)client_cpu, client_body, c));
}

static void iperf_start(struct program *program)
{
    struct iperf *iperf = program->state;
    iperf->server_ip = network_interface_ip(iperf->pair.server, iperf->pair.interface);
    sim_random_init(&iperf->random, sim_seed(program->workload->sim), program->name);
    for (unsigned client = 0; client < iperf->n_clients; client++) {
        struct iperf_client *at = &iperf->client[client];
        at->borrows = borrows_nic(program, at->host);
        at->connection = program_zalloc(program, iperf->parallel, sizeof(*at->connection));
        for (unsigned i = 0; i < iperf->parallel; i++)
            start_connection(iperf, client, i);
    }
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static uint64_t written(const struct iperf *iperf, const struct iperf_client *client)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < iperf->parallel; i++)
        bytes += client->connection[i].sent;
    return bytes;
}

/* As bytes are copied, not when a call that may be long returns. */
static uint64_t received(const struct iperf *iperf)
{
    uint64_t bytes = 0;
    for (unsigned k = 0; k < iperf->n_clients; k++)
        for (unsigned i = 0; i < iperf->parallel; i++) {
            const struct connection *c = &iperf->client[k].connection[i];
            bytes += c->socket != NULL ? socket_bytes_received(c->socket) : c->received;
        }
    return bytes;
}

static const char *name_of(const struct iperf_client *client)
{
    return client->borrows ? "borrower_gbyte_s" : "lender_gbyte_s";
}

/* Not beyond the last whole interval. */
static void schedule_sample(struct iperf *iperf)
{
    const struct workload *workload = iperf->program->workload;
    const sim_time interval_ps = workload->measure.sample_interval_ps;
    if (interval_ps != 0 &&
        sim_now(workload->sim) + interval_ps <= iperf->begin_ps + workload->measure.duration_ps)
        sim_schedule_in(workload->sim, &iperf->sample, interval_ps);
}

static void interval_ends(struct sim *sim, struct sim_event *event)
{
    struct iperf *iperf = SIM_CONTAINER(event, struct iperf, sample);
    struct program *program = iperf->program;
    const sim_time interval_ps = program->workload->measure.sample_interval_ps;
    const sim_time t_ps = sim_now(sim) - iperf->begin_ps;
    const uint64_t bytes = received(iperf);
    const double rate = GBYTE_S(bytes - iperf->at_sample, interval_ps);
    program_series(program, "throughput_gbyte_s", "GB/s", t_ps, rate);
    program_series(program, "receiver_gbyte_s", "GB/s", t_ps, rate);
    iperf->at_sample = bytes;
    for (unsigned i = 0; i < iperf->n_clients; i++) {
        struct iperf_client *client = &iperf->client[i];
        const uint64_t now = written(iperf, client);
        program_series(program, name_of(client), "GB/s", t_ps,
                       GBYTE_S(now - client->at_sample, interval_ps));
        client->at_sample = now;
    }
    schedule_sample(iperf);
}

static void iperf_measure(struct program *program)
{
    struct iperf *iperf = program->state;
    iperf->begin_ps = sim_now(program->workload->sim);
    iperf->at_begin = iperf->at_sample = received(iperf);
    for (unsigned k = 0; k < iperf->n_clients; k++) {
        struct iperf_client *client = &iperf->client[k];
        client->at_begin = client->at_sample = written(iperf, client);
        for (unsigned i = 0; i < iperf->parallel; i++)
            client->connection[i].sent_at_begin = client->connection[i].sent;
    }
    sim_event_init(&iperf->sample, interval_ends);
    schedule_sample(iperf);
}

static void record_connections(struct iperf *iperf, sim_time duration_ps)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (unsigned k = 0; k < iperf->n_clients; k++)
        for (unsigned i = 0; i < iperf->parallel; i++) {
            const struct connection *c = &iperf->client[k].connection[i];
            least = SIM_MIN(least, c->sent - c->sent_at_begin);
            most = SIM_MAX(most, c->sent - c->sent_at_begin);
        }
    program_metric(iperf->program, "connection_min_gbyte_s", "GB/s", GBYTE_S(least, duration_ps));
    program_metric(iperf->program, "connection_max_gbyte_s", "GB/s", GBYTE_S(most, duration_ps));
}

static void iperf_record(struct program *program, sim_time duration_ps)
{
    struct iperf *iperf = program->state;
    const double rate = GBYTE_S(received(iperf) - iperf->at_begin, duration_ps);
    uint64_t retransmits = 0, lost = network_drops(iperf->pair.server);
    if (sim_event_pending(&iperf->sample))
        sim_cancel(program->workload->sim, &iperf->sample);
    if (!program_has_measured(program, "receive call"))
        return;
    program_metric(program, "throughput_gbyte_s", "GB/s", rate);
    program_metric(program, "receiver_gbyte_s", "GB/s", rate);
    for (unsigned i = 0; i < iperf->n_clients; i++) {
        const struct iperf_client *client = &iperf->client[i];
        program_metric(program, name_of(client), "GB/s",
                       GBYTE_S(written(iperf, client) - client->at_begin, duration_ps));
        retransmits += net_stats(client->host->net)->retransmitted_segments;
        lost += network_drops(client->host);
    }
    record_connections(iperf, duration_ps);
    program_metric(program, "retransmits", "1", (double)retransmits);
    program_metric(program, "packets_lost", "1", (double)lost);
    program_counts_packets(program, PROGRAM_PACKETS_RECEIVED);
}

const struct program_ops program_iperf_ops = {
    .type = "iperf",
    .help = "iperf2: TCP streams of one or two clients to a server, rates per interval",
    .steady = true,
    .state_bytes = sizeof(struct iperf),
    .params = iperf_params,
    .records = iperf_records,
    .samples = true,
    .check = iperf_check,
    .start = iperf_start,
    .measure = iperf_measure,
    .record = iperf_record,
};
