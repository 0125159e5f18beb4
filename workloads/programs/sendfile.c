/*
 * sendfile: processes of the server send files through TCP without a copy; the client receives.
 * The pages of a file lie on the node of the process, on the other one, or on both in turn: then
 * every packet beyond a page has data of two nodes (section 3.3 of IOctopus: IOctoSG).
 *
 * The file is in the page cache and is sent over and over. Its pages are stamped anew in each round
 * so that the receiver can tell each byte's position; the stack must not hold them any more then.
 *
 * Does not model: the look-up in the page cache and the pipe of sendfile(), beyond what a page
 * costs in the stack (send_page_cycles).
 */
#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/programs/program.h"

#define FIRST_PORT     14865u
#define CALL_PAGES_MAX 256u

enum file_pages { PAGES_LOCAL, PAGES_REMOTE, PAGES_ALTERNATING };
static const char *const pages_names[] = { "local", "remote", "alternating", NULL };

struct sendfile;

struct transfer { /* a process here, its partner, their file */
    struct sendfile *all;
    unsigned idx;
    uint16_t stream;
    struct k_page **page;
    struct kaddr receive_buffer;
    uint64_t received;
    struct socket *socket; /* the client's; NULL: none, or closed */
};

struct sendfile {
    /* parameters */
    struct program_pair pair;
    int pages;
    uint32_t instances;
    uint64_t file_bytes, call_bytes;
    /* running */
    struct program *program;
    uint32_t server_ip;
    struct transfer *transfer;
    /* measured */
    uint64_t bytes_at_begin, hints_at_begin, sent_at_begin;
};

static const struct param_desc sendfile_params[] = {
    PARAM_TEXT("server", struct sendfile, pair.server_name, "server", "the host that sends"),
    PARAM_TEXT("client", struct sendfile, pair.client_name, "client", "the host that receives"),
    PARAM_TEXT("interface", struct sendfile, pair.interface, "",
               "of the server; empty: its default"),
    PARAM_ONE_OF("pages", struct sendfile, pages, PAGES_LOCAL, pages_names, PROV_NONE, "",
                 "where the file lies: on the node of the process, on the other, on both in turn"),
    PARAM("instances", PARAM_U32, struct sendfile, instances, 1, 0, 64, PROV_NONE, "",
          "pairs of processes, a core each"),
    PARAM("server_socket", PARAM_U32, struct sendfile, pair.server_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the server's processes"),
    PARAM("client_socket", PARAM_U32, struct sendfile, pair.client_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the client's processes"),
    PARAM("first_core", PARAM_U32, struct sendfile, pair.first_core, 0, 0, 63, PROV_NONE, "",
          "of the server's socket, for the first instance"),
    PARAM("client_first_core", PARAM_U32, struct sendfile, pair.client_first_core, 0, 0, 63,
          PROV_NONE, "", "of the client's socket, for the first instance"),
    PARAM("file_bytes", PARAM_BYTES, struct sendfile, file_bytes, 8388608, 8192, 1e9, PROV_NONE, "",
          "of each instance; at least twice what a socket's send buffer holds"),
    PARAM("call_bytes", PARAM_BYTES, struct sendfile, call_bytes, 65536, K_PAGE_BYTES,
          CALL_PAGES_MAX *K_PAGE_BYTES, PROV_NONE, "", "of one call: whole pages"),
    { .type = PARAM_END },
};

static const struct record_desc sendfile_records[] = {
    { "+throughput_gbit_s", RECORD_METRIC, "Gbit/s", "payload received, all instances" },
    { "hinted_fragments_per_packet", RECORD_METRIC, "1",
      "of a buffer handed to the NIC: fetched through the function on their node" },
    { "+throughput_gbit_s", RECORD_SERIES, "Gbit/s", "received per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* ---- Checking -------------------------------------------------------------------------------- */

static void check_sizes(struct program *program, struct sim_error_list *errors)
{
    const struct sendfile *all = program->state;
    if (all->call_bytes % K_PAGE_BYTES != 0 || all->file_bytes % all->call_bytes != 0)
        program_mistake(program, "call_bytes", errors,
                        "whole pages, of which a whole number makes the file", NULL);
    if (all->file_bytes < 2 * all->pair.server->params.send_buffer_bytes)
        program_mistake(program, "file_bytes", errors, "at least twice send_buffer of the server",
                        NULL);
}

/* As node_of_page() puts the files. */
static void check_memory(const struct sendfile *all, struct sim_error_list *errors)
{
    const struct network_host *server = all->pair.server;
    const unsigned own = all->pair.server_socket,
                   other = (own + 1) % physmem_nodes(host_physmem(server->host));
    const uint64_t bytes = all->instances * all->file_bytes,
                   here = all->pages == PAGES_LOCAL    ? bytes
                          : all->pages == PAGES_REMOTE ? 0
                                                       : bytes / 2;
    const size_t before = errors->n_messages;
    program_check_memory(all->program, "file_bytes", server, own, here, errors);
    if (errors->n_messages == before)
        program_check_memory(all->program, "file_bytes", server, other, bytes - here, errors);
}

static void sendfile_check(struct program *program, struct sim_error_list *errors)
{
    struct sendfile *all = program->state;
    all->program = program;
    if (!program_check_pair(program, &all->pair, "first_core", "instances", all->instances,
                            "client_first_core", "instances", all->instances, errors))
        return;
    if (all->pages != PAGES_LOCAL && physmem_nodes(host_physmem(all->pair.server->host)) < 2)
        program_mistake(program, "pages", errors, "\"local\" on a host whose memory is one node",
                        NULL);
    check_sizes(program, errors);
    check_memory(all, errors);
}

/* ---- The server ------------------------------------------------------------------------------ */

static void send_file(struct transfer *transfer, struct network_host *host, struct socket *socket)
{
    const struct sendfile *all = transfer->all;
    const unsigned n_pages = (unsigned)(all->file_bytes / K_PAGE_BYTES);
    const unsigned n_call = (unsigned)(all->call_bytes / K_PAGE_BYTES);
    struct skb_frag frag[CALL_PAGES_MAX];
    uint64_t sent = 0;
    while (!program_ending(all->program)) {
        for (unsigned i = 0; i < n_call; i++) {
            uint64_t at = sent + (uint64_t)i * K_PAGE_BYTES;
            struct k_page *page = transfer->page[at / K_PAGE_BYTES % n_pages];
            if (page->refs != 1)
                k_fault(host->kernel, "sendfile: byte %llu: the stack still holds the page",
                        (unsigned long long)at);
            payload_fill(host->kernel, page->addr, payload_mark(transfer->stream, at),
                         K_PAGE_BYTES);
            frag[i] = (struct skb_frag){ page, 0, K_PAGE_BYTES, (int8_t)page->node };
        }
        int64_t n = socket_send_pages(socket, frag, n_call);
        if (n != (int64_t)all->call_bytes)
            break;
        sent += (uint64_t)n;
    }
    socket_close(socket);
    for (unsigned i = 0; i < n_pages; i++) /* those under way are the stack's alone now */
        k_page_put(host->kernel, transfer->page[i]);
}

static uint16_t port(const struct transfer *transfer)
{
    return program_port(transfer->all->program, FIRST_PORT, transfer->idx);
}

static void server_body(void *arg)
{
    struct transfer *transfer = arg;
    struct network_host *host = transfer->all->pair.server;
    struct socket *listener = socket_tcp_listen(host->net, transfer->all->server_ip,
                                                port(transfer));
    struct socket *socket = socket_accept(listener);
    send_file(transfer, host, socket);
    socket_close(listener);
}

/* ---- The client ------------------------------------------------------------------------------ */

static void client_body(void *arg)
{
    struct transfer *transfer = arg;
    struct sendfile *all = transfer->all;
    struct network_host *host = all->pair.client;
    struct socket *socket = program_connect(all->program, host, host->ip, all->server_ip,
                                            port(transfer));
    uint64_t begin_ps = k_now_ps(host->kernel);
    int64_t n;
    struct payload_difference is;
    if (socket == NULL)
        return;
    transfer->socket = socket;
    while ((n = socket_receive(socket, transfer->receive_buffer, all->call_bytes)) > 0) {
        uint64_t tag = payload_mark(transfer->stream, transfer->received);
        if (!payload_check(host->kernel, transfer->receive_buffer, tag, (size_t)n, &is))
            k_fault(host->kernel, "sendfile: tag %llx of the file instead of %llx",
                    (unsigned long long)is.found, (unsigned long long)is.expected);
        transfer->received += (uint64_t)n;
        program_operation_ended(all->program, begin_ps);
        begin_ps = k_now_ps(host->kernel);
    }
    transfer->socket = NULL;
    socket_close(socket);
}

/* ---- Starting -------------------------------------------------------------------------------- */

static unsigned node_of_page(const struct sendfile *all, unsigned own_node, unsigned i)
{
    unsigned n_nodes = k_n_nodes(all->pair.server->kernel);
    if (all->pages == PAGES_LOCAL || (all->pages == PAGES_ALTERNATING && i % 2 == 0))
        return own_node;
    return (own_node + 1) % n_nodes;
}

static void make_file(struct transfer *transfer, unsigned cpu)
{
    struct sendfile *all = transfer->all;
    struct kernel *kernel = all->pair.server->kernel;
    unsigned n_pages = (unsigned)(all->file_bytes / K_PAGE_BYTES);
    transfer->page = program_zalloc(all->program, n_pages, sizeof(struct k_page *));
    for (unsigned i = 0; i < n_pages; i++) {
        unsigned node = node_of_page(all, k_node_of_cpu(kernel, cpu), i);
        struct k_page *page = k_page_alloc(kernel, (int)node, 0);
        if (page == NULL || page->node != node) {
            program_fail(all->program,
                         "no memory left on socket %u of the host \"%s\" for a file "
                         "of %llu bytes",
                         node, all->pair.server->name, (unsigned long long)all->file_bytes);
            return;
        }
        transfer->page[i] = page;
    }
}

static void start_transfer(struct sendfile *all, unsigned i)
{
    struct transfer *transfer = &all->transfer[i];
    char name[32];
    unsigned server_cpu = program_cpu(all->pair.server, all->pair.server_socket,
                                      all->pair.first_core + i);
    unsigned client_cpu = program_cpu(all->pair.client, all->pair.client_socket,
                                      all->pair.client_first_core + i);
    *transfer =
        (struct transfer){ .all = all, .idx = i, .stream = program_new_stream(all->program) };
    make_file(transfer, server_cpu);
    transfer->receive_buffer = program_buffer(all->program, all->pair.client, client_cpu,
                                              all->call_bytes);
    program_uses_cpu(all->program, all->pair.server, server_cpu);
    program_uses_cpu(all->program, all->pair.client, client_cpu);
    snprintf(name, sizeof(name), "sendfile.%u", i);
    k_thread_new(all->pair.server->kernel, name, (int)server_cpu, server_body, transfer);
    k_thread_new(all->pair.client->kernel, name, (int)client_cpu, client_body, transfer);
}

static void sendfile_start(struct program *program)
{
    struct sendfile *all = program->state;
    all->server_ip = network_interface_ip(all->pair.server, all->pair.interface);
    all->transfer = program_zalloc(program, (size_t)all->instances + 1, sizeof(*all->transfer));
    for (unsigned i = 0; i < all->instances; i++)
        if (!program_failed(program))
            start_transfer(all, i);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* So far: as bytes are copied, not when a call returns. */
static uint64_t bytes_received(const struct sendfile *all)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < all->instances; i++) {
        const struct transfer *transfer = &all->transfer[i];
        bytes += transfer->socket != NULL ? socket_bytes_received(transfer->socket)
                                          : transfer->received;
    }
    return bytes;
}

static void sendfile_measure(struct program *program)
{
    struct sendfile *all = program->state;
    all->bytes_at_begin = bytes_received(all);
    all->hints_at_begin = network_fragments_hinted(all->pair.server);
    all->sent_at_begin = network_buffers_sent(all->pair.server);
}

static uint64_t sendfile_moved(const struct program *program)
{
    return bytes_received(program->state);
}

static const struct program_rate sendfile_rates[] = {
    { "throughput_gbit_s", 8e-9, sendfile_moved, NULL },
    { NULL, 0, NULL, NULL },
};

static void sendfile_record(struct program *program, sim_time duration_ps)
{
    struct sendfile *all = program->state;
    uint64_t hinted = network_fragments_hinted(all->pair.server) - all->hints_at_begin;
    uint64_t buffers = network_buffers_sent(all->pair.server) - all->sent_at_begin;
    const double gbit_s = (double)(bytes_received(all) - all->bytes_at_begin) * 8000.0 /
                          (double)duration_ps;
    if (all->instances != 0 && !program_has_measured(program, "receive call"))
        return;
    program_metric(program, "throughput_gbit_s", "Gbit/s", gbit_s);
    if (buffers != 0)
        program_metric(program, "hinted_fragments_per_packet", "1",
                       (double)hinted / (double)buffers);
    program_counts_packets(program, PROGRAM_PACKETS_SENT);
}

const struct program_ops program_sendfile_ops = {
    .type = "sendfile",
    .help = "sends files through TCP without a copy; their pages lie on one node or on two",
    .steady = true,
    .state_bytes = sizeof(struct sendfile),
    .params = sendfile_params,
    .records = sendfile_records,
    .rates = sendfile_rates,
    .check = sendfile_check,
    .start = sendfile_start,
    .measure = sendfile_measure,
    .record = sendfile_record,
    .moved = sendfile_moved,
};
