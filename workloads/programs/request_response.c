/*
 * One message to and fro, over and over: netperf's TCP_RR and sockperf's ping-pong over UDP. The
 * server sends the request and times the round trip, as in the papers' set-ups; the client answers
 * with a message of the same size. Every byte is stamped and checked.
 */
#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/programs/program.h"

#define TCP_PORT 12900u
#define UDP_PORT 11111u

enum transport { TRANSPORT_TCP, TRANSPORT_UDP };

struct side {
    struct rr *rr;
    struct network_host *host;
    struct kaddr send_buffer, receive_buffer;
    uint16_t stream; /* that it sends */
    uint64_t sent, received;
};

struct rr {
    /* parameters */
    struct program_pair pair;
    const char *client_interface;
    uint64_t message_bytes;
    sim_time think_ps;
    /* running */
    struct program *program;
    enum transport transport;
    struct side near, far;
};

static const struct param_desc rr_params[] = {
    PARAM_TEXT("server", struct rr, pair.server_name, "server", "the host under test: it asks"),
    PARAM_TEXT("client", struct rr, pair.client_name, "client", "its partner: it answers"),
    PARAM_TEXT("interface", struct rr, pair.interface, "", "of the server; empty: its default"),
    PARAM_TEXT("client_interface", struct rr, client_interface, "",
               "of the client; empty: its default"),
    PARAM("server_socket", PARAM_U32, struct rr, pair.server_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the server's process"),
    PARAM("client_socket", PARAM_U32, struct rr, pair.client_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the client's process"),
    PARAM("core", PARAM_U32, struct rr, pair.first_core, 0, 0, 63, PROV_NONE, "",
          "of the server's socket"),
    PARAM("client_core", PARAM_U32, struct rr, pair.client_first_core, 0, 0, 63, PROV_NONE, "",
          "of the client's socket"),
    PARAM("message_bytes", PARAM_BYTES, struct rr, message_bytes, 64, 1, 1048576, PROV_NONE, "",
          "of the request and of the response"),
    PARAM("think_us", PARAM_TIME, struct rr, think_ps, 0, 0, 1e6, PROV_NONE, "",
          "pause between round trips"),
    { .type = PARAM_END },
};

static const struct record_desc rtt_records[] = {
    { "rtt_us", RECORD_METRIC, "us", "mean" },
    { "rtt_us", RECORD_HISTOGRAM, "us", "each" },
    { "rtt_p50_us", RECORD_METRIC, "us", "quantile" },
    { "rtt_p90_us", RECORD_METRIC, "us", "quantile" },
    { "rtt_p99_us", RECORD_METRIC, "us", "quantile" },
    { "rtt_us", RECORD_SERIES, "us", "mean of those that ended in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static const struct record_desc latency_records[] = {
    { "latency_us", RECORD_METRIC, "us", "mean" },
    { "latency_us", RECORD_HISTOGRAM, "us", "each" },
    { "latency_p50_us", RECORD_METRIC, "us", "quantile" },
    { "latency_p90_us", RECORD_METRIC, "us", "quantile" },
    { "latency_p99_us", RECORD_METRIC, "us", "quantile" },
    { "latency_us", RECORD_SERIES, "us", "mean of those that ended in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void rr_check(struct program *program, struct sim_error_list *errors)
{
    struct rr *rr = program->state;
    rr->program = program;
    rr->transport = program->ops == &program_sockperf_ops ? TRANSPORT_UDP : TRANSPORT_TCP;
    if (!program_check_pair(program, &rr->pair, "core", NULL, 1, "client_core", NULL, 1, errors))
        return;
    program_check_interface(program, "client_interface", rr->pair.client, rr->client_interface,
                            errors);
    if (rr->transport == TRANSPORT_UDP && rr->message_bytes > 1472)
        program_mistake(program, "message_bytes", errors,
                        "at most 1472 bytes: datagrams are not fragmented", NULL);
}

/* ---- The conversation
 * ----------------------------------------------------------------------------- */

static bool say(struct side *side, struct socket *socket)
{
    uint64_t bytes = side->rr->message_bytes;
    payload_fill(side->host->kernel, side->send_buffer, payload_mark(side->stream, side->sent),
                 bytes);
    side->sent += bytes;
    return socket_send(socket, side->send_buffer, bytes) == (int64_t)bytes;
}

/* A whole message; false: the other side has closed. */
static bool hear(struct side *side, struct socket *socket, uint16_t stream)
{
    struct kernel *kernel = side->host->kernel;
    uint64_t bytes = side->rr->message_bytes;
    struct payload_difference is;
    if (!program_receive(socket, side->receive_buffer, bytes))
        return false;
    if (!payload_check(kernel, side->receive_buffer, payload_mark(stream, side->received), bytes,
                       &is))
        k_fault(kernel, "%s: tag %llx instead of %llx in message %llu", side->rr->program->name,
                (unsigned long long)is.found, (unsigned long long)is.expected,
                (unsigned long long)(side->received / side->rr->message_bytes));
    side->received += bytes;
    return true;
}

static void ask(struct rr *rr, struct socket *socket)
{
    struct kernel *kernel = rr->near.host->kernel;
    while (!program_ending(rr->program)) {
        uint64_t begin_ps = k_now_ps(kernel);
        if (!say(&rr->near, socket) || !hear(&rr->near, socket, rr->far.stream))
            break;
        program_operation_ended(rr->program, begin_ps);
        if (program_measuring(rr->program)) {
            stat_histogram_add(&rr->program->histogram_ps, k_now_ps(kernel) - begin_ps);
            program_count_operations(rr->program, 1);
        }
        if (rr->think_ps != 0)
            k_sleep(kernel, rr->think_ps);
    }
    socket_close(socket);
}

static uint16_t port(const struct rr *rr)
{
    return program_port(rr->program, rr->transport == TRANSPORT_UDP ? UDP_PORT : TCP_PORT, 0);
}

static void near_body(void *arg)
{
    struct rr *rr = arg;
    struct network_host *host = rr->pair.server;
    uint32_t ip = network_interface_ip(host, rr->pair.interface);
    uint32_t to_ip = network_interface_ip(rr->pair.client, rr->client_interface);
    struct socket *socket;
    if (rr->transport == TRANSPORT_UDP) {
        socket = socket_udp_bind(host->net, ip, port(rr));
        socket_udp_connect(socket, to_ip, port(rr));
    } else {
        socket = program_connect(rr->program, host, ip, to_ip, port(rr));
    }
    if (socket != NULL)
        ask(rr, socket);
}

static void far_body(void *arg)
{
    struct rr *rr = arg;
    struct network_host *host = rr->pair.client;
    uint32_t ip = network_interface_ip(host, rr->client_interface);
    uint32_t to_ip = network_interface_ip(rr->pair.server, rr->pair.interface);
    struct socket *listener = NULL, *socket;
    if (rr->transport == TRANSPORT_UDP) {
        socket = socket_udp_bind(host->net, ip, port(rr));
        socket_udp_connect(socket, to_ip, port(rr));
    } else {
        listener = socket_tcp_listen(host->net, ip, port(rr));
        socket = socket_accept(listener);
    }
    while (hear(&rr->far, socket, rr->near.stream) && say(&rr->far, socket))
        ;
    socket_close(socket);
    if (listener != NULL)
        socket_close(listener);
}

static void init_side(struct side *side, struct rr *rr, struct network_host *host, unsigned cpu)
{
    *side = (struct side){ .rr = rr, .host = host, .stream = program_new_stream(rr->program) };
    side->send_buffer = program_buffer(rr->program, host, cpu, rr->message_bytes);
    side->receive_buffer = program_buffer(rr->program, host, cpu, rr->message_bytes);
    program_uses_cpu(rr->program, host, cpu);
}

static void rr_start(struct program *program)
{
    struct rr *rr = program->state;
    unsigned near_cpu = program_cpu(rr->pair.server, rr->pair.server_socket, rr->pair.first_core);
    unsigned far_cpu = program_cpu(rr->pair.client, rr->pair.client_socket,
                                   rr->pair.client_first_core);
    init_side(&rr->near, rr, rr->pair.server, near_cpu);
    init_side(&rr->far, rr, rr->pair.client, far_cpu);
    k_thread_new(rr->pair.client->kernel, "rr.far", (int)far_cpu, far_body, rr);
    k_thread_new(rr->pair.server->kernel, "rr.near", (int)near_cpu, near_body, rr);
}

/* ---- Measuring
 * ------------------------------------------------------------------------------------ */

static void record_rtt(struct program *program, const char *name, double scale)
{
    const struct stat_histogram *rtt_ps = &program->histogram_ps;
    static const struct {
        const char *part;
        double q;
    } quantile[] = { { "_p50", 0.5 }, { "_p90", 0.9 }, { "_p99", 0.99 } };
    char text[64];
    if (!program_has_measured(program, "round trip"))
        return;
    snprintf(text, sizeof(text), "%s_us", name);
    program_metric(program, text, "us", rtt_ps->sum / (double)rtt_ps->n * scale);
    program_histogram(program, text, "us", scale, rtt_ps);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(quantile); i++) {
        snprintf(text, sizeof(text), "%s%s_us", name, quantile[i].part);
        program_metric(program, text, "us",
                       (double)stat_histogram_quantile(rtt_ps, quantile[i].q) * scale);
    }
}

static void rr_record(struct program *program, sim_time duration_ps)
{
    (void)duration_ps;
    if (((struct rr *)program->state)->transport == TRANSPORT_UDP)
        record_rtt(program, "latency", 0.5e-6); /* sockperf reports half of the round trip */
    else
        record_rtt(program, "rtt", 1e-6);
}

static const struct program_rate rtt_rates[] = {
    { "rtt_us", 1e-6, program_latencies_ps, program_latencies },
    { NULL, 0, NULL, NULL },
};

static const struct program_rate latency_rates[] = {
    { "latency_us", 0.5e-6, program_latencies_ps, program_latencies },
    { NULL, 0, NULL, NULL },
};

const struct program_ops program_netperf_rr_ops = {
    .type = "netperf_rr",
    .help = "TCP_RR: one message to and fro through TCP",
    .steady = true,
    .state_bytes = sizeof(struct rr),
    .params = rr_params,
    .records = rtt_records,
    .rates = rtt_rates,
    .check = rr_check,
    .start = rr_start,
    .record = rr_record,
};

const struct program_ops program_sockperf_ops = {
    .type = "sockperf",
    .help = "ping-pong of datagrams through UDP; latency is half of the round trip",
    .steady = true,
    .state_bytes = sizeof(struct rr),
    .params = rr_params,
    .records = latency_records,
    .rates = latency_rates,
    .check = rr_check,
    .start = rr_start,
    .record = rr_record,
};
