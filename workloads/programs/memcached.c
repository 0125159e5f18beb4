/*
 * memcached with memslap: worker threads of the server, each with a share of the connections; a
 * client thread per connection that sends one request after the other and waits for the answer.
 *
 * A worker waits for events of all its connections and drives each as far as it goes without
 * waiting (memcached's drive_machine). GET: a small request; the answer is sent from the item's
 * memory, where key and value lie one after the other. SET: a request with the value, which is
 * received straight into the item's memory (conn_nread); a small answer. Keys are drawn uniformly.
 * What a request says is known from its place in the stream; every byte of both directions is
 * stamped and checked, values by the stream that stored them.
 *
 * Does not model: slab classes and eviction (items are of one size and all fit), several requests
 * under way on a connection, libmemcached's buffer of 8 KiB at the client.
 */
#include <errno.h>
#include <stdio.h>

#include "models/base/payload.h"
#include "workloads/programs/program.h"

#define FIRST_PORT   11211u
#define STORED_BYTES 8u  /* "STORED\r\n" */
#define LINE_EXTRA   32u /* of a request or of an answer with a value, beside key and value */

struct memcached;

/* An item's memory: line with its key, value. SET fills a free slot and then puts it in the place
 * of the old one, which is free when nobody sends from it any more. */
struct slot {
    struct kaddr at;
    uint64_t tag; /* what it holds: as the request's line and value followed each other */
    uint32_t refs;
    struct slot *next_free;
};

/* What the server does next with a connection. */
enum connection_state { READ_REQUEST, READ_VALUE, WRITE_ANSWER };

struct connection {
    struct memcached *memcached;
    unsigned idx;
    uint16_t request_stream, answer_stream;
    /* the request under way; written by the client before it sends, read by the server */
    bool set;
    uint32_t item;
    uint64_t tag; /* of the answer with a value; written by the server */
    /* ---- the client's ------------------------------------------------------------------------ */
    struct kaddr client_buffer;
    uint64_t asked, answered; /* bytes of the streams */
    struct sim_random random;
    /* ---- the server's ------------------------------------------------------------------------ */
    struct socket *listener, *server_socket;
    enum connection_state state;
    struct kaddr at; /* where the next of `left` bytes goes to or comes from */
    uint64_t left;
    struct slot *slot; /* being filled or sent; NULL: neither */
    struct kaddr server_buffer;
    uint64_t heard, said; /* bytes of the streams */
};

struct worker {
    struct memcached *memcached;
    struct socket_set *set;
};

struct memcached {
    /* parameters */
    struct program_pair pair;
    uint32_t clients, workers, items, set_pct, operation_cycles, client_cycles;
    uint64_t key_bytes, value_bytes;
    /* running */
    struct program *program;
    uint32_t server_ip;
    struct connection *connection;
    struct worker *worker;
    struct slot *slot;  /* all of them */
    struct slot **item; /* the slot of each key */
    struct slot *free_slot;
    unsigned n_slots;
    /* measured */
    uint64_t transactions;
};

static const struct param_desc memcached_params[] = {
    PARAM_TEXT("server", struct memcached, pair.server_name, "server", "the host of memcached"),
    PARAM_TEXT("client", struct memcached, pair.client_name, "client", "the host of memslap"),
    PARAM_TEXT("interface", struct memcached, pair.interface, "",
               "of the server; empty: its default"),
    PARAM("clients", PARAM_U32, struct memcached, clients, 14, 0, 64, PROV_NONE, "",
          "memslap instances, a core and a connection each"),
    PARAM("workers", PARAM_U32, struct memcached, workers, 4, 1, 64, PROV_DATASHEET,
          "docs/sources.md#a6", "threads of memcached (-t), a core each"),
    PARAM("server_socket", PARAM_U32, struct memcached, pair.server_socket, 0, 0, 7, PROV_NONE, "",
          "socket of memcached's threads and items"),
    PARAM("client_socket", PARAM_U32, struct memcached, pair.client_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the memslap instances"),
    PARAM("first_core", PARAM_U32, struct memcached, pair.first_core, 0, 0, 63, PROV_NONE, "",
          "of the server's socket"),
    PARAM("client_first_core", PARAM_U32, struct memcached, pair.client_first_core, 0, 0, 63,
          PROV_NONE, "", "of the client's socket"),
    PARAM("set_pct", PARAM_U32, struct memcached, set_pct, 0, 0, 100, PROV_NONE, "",
          "share of SET among the requests"),
    PARAM("items", PARAM_U32, struct memcached, items, 256, 1, 1000000, PROV_NONE, "",
          "values in the store; keys are drawn uniformly"),
    PARAM("key_bytes", PARAM_BYTES, struct memcached, key_bytes, 256, 1, 250000, PROV_NONE, "",
          "of a key"),
    PARAM("value_bytes", PARAM_BYTES, struct memcached, value_bytes, 524288, 64, 1048576, PROV_NONE,
          "", "of a value"),
    PARAM("operation_cycles", PARAM_U32, struct memcached, operation_cycles, 10000, 0, 100000,
          PROV_ESTIMATE, "docs/sources.md#a6",
          "memcached's own work for a request: parsing, hash table, item, state machine"),
    PARAM("client_cycles", PARAM_U32, struct memcached, client_cycles, 4000, 0, 100000,
          PROV_ESTIMATE, "docs/sources.md#a6", "memslap's own work for a request"),
    { .type = PARAM_END },
};

static const struct record_desc memcached_records[] = {
    { "+transactions_kt_s", RECORD_METRIC, "1000/s", "requests answered" },
    { "+memcached_gbit_s", RECORD_METRIC, "Gbit/s", "values moved" },
    { ".throughput_gbit_s", RECORD_METRIC, "Gbit/s", "the same, of this program alone" },
    { ".transaction_us", RECORD_HISTOGRAM, "us", "time of a request at the client" },
    { ".transaction_mean_us", RECORD_METRIC, "us", "the same: mean" },
    { "+transactions_kt_s", RECORD_SERIES, "1000/s", "answered per interval" },
    { "+memcached_gbit_s", RECORD_SERIES, "Gbit/s", "values moved per interval" },
    { ".transaction_mean_us", RECORD_SERIES, "us", "mean of requests answered in an interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static uint64_t line_bytes(const struct memcached *m)
{
    return m->key_bytes + LINE_EXTRA;
}

/* Of a slot; slots begin on pages. */
static uint64_t item_bytes(const struct memcached *m)
{
    const uint64_t bytes = line_bytes(m) + m->value_bytes;
    return (bytes + K_PAGE_BYTES - 1) / K_PAGE_BYTES * K_PAGE_BYTES;
}

static void memcached_check(struct program *program, struct sim_error_list *errors)
{
    struct memcached *m = program->state;
    m->program = program;
    if (program_check_pair(program, &m->pair, "first_core", "workers", m->workers,
                           "client_first_core", "clients", m->clients, errors) &&
        m->clients != 0)
        program_check_memory(program, "items", m->pair.server, m->pair.server_socket,
                             ((uint64_t)m->items + m->clients) * item_bytes(m), errors);
    if (m->clients == 0)
        program_pair_idle(program);
}

static void check(struct kernel *kernel, struct kaddr at, uint64_t tag, uint64_t bytes)
{
    struct payload_difference is;
    if (!payload_check(kernel, at, tag, bytes, &is))
        k_fault(kernel, "memcached: tag %llx instead of %llx", (unsigned long long)is.found,
                (unsigned long long)is.expected);
}

/* ---- memcached
 * --------------------------------------------------------------------------------------- */

static void slot_put(struct memcached *m, struct slot *slot)
{
    if (--slot->refs == 0) {
        slot->next_free = m->free_slot;
        m->free_slot = slot;
    }
}

static struct slot *slot_take(struct memcached *m)
{
    struct slot *slot = m->free_slot;
    SIM_ASSERT(slot != NULL, "no free slot: there is one for each item and for each client");
    m->free_slot = slot->next_free;
    slot->refs = 1;
    return slot;
}

static void next(struct connection *c, enum connection_state state, struct kaddr at, uint64_t bytes)
{
    c->state = state;
    c->at = at;
    c->left = bytes;
}

static void request_is_here(struct connection *c)
{
    struct memcached *m = c->memcached;
    const uint64_t tag = payload_mark(c->request_stream, c->heard);
    check(m->pair.server->kernel, c->server_buffer, tag, line_bytes(m));
    c->heard += line_bytes(m);
    k_compute(m->pair.server->kernel, m->operation_cycles);
    if (c->set) {
        c->slot = slot_take(m);
        c->slot->tag = tag;
        payload_fill(m->pair.server->kernel, c->slot->at, tag, line_bytes(m)); /* the key */
        next(c, READ_VALUE, kaddr_add(c->slot->at, line_bytes(m)), m->value_bytes);
        return;
    }
    c->slot = m->item[c->item];
    c->slot->refs++;
    c->tag = c->slot->tag;
    next(c, WRITE_ANSWER, c->slot->at, line_bytes(m) + m->value_bytes);
}

static void value_is_here(struct connection *c)
{
    struct memcached *m = c->memcached;
    struct slot *old = m->item[c->item];
    check(m->pair.server->kernel, c->slot->at, c->slot->tag, line_bytes(m) + m->value_bytes);
    c->heard += m->value_bytes;
    m->item[c->item] = c->slot;
    slot_put(m, old);
    c->slot = NULL;
    payload_fill(m->pair.server->kernel, c->server_buffer, payload_mark(c->answer_stream, c->said),
                 STORED_BYTES);
    c->said += STORED_BYTES;
    next(c, WRITE_ANSWER, c->server_buffer, STORED_BYTES);
}

static void answer_is_gone(struct connection *c)
{
    if (c->slot != NULL)
        slot_put(c->memcached, c->slot);
    c->slot = NULL;
    next(c, READ_REQUEST, c->server_buffer, line_bytes(c->memcached));
}

static void server_close(struct connection *c)
{
    if (c->slot != NULL)
        slot_put(c->memcached, c->slot);
    c->slot = NULL;
    socket_close(c->server_socket);
}

/* As far as it goes without waiting. */
static void drive(struct connection *c)
{
    for (;;) {
        int64_t n = c->state == WRITE_ANSWER
                        ? socket_send_nowait(c->server_socket, c->at, c->left)
                        : socket_receive_nowait(c->server_socket, c->at, c->left);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            server_close(c);
            return;
        }
        c->at = kaddr_add(c->at, (uint64_t)n);
        c->left -= (uint64_t)n;
        if (c->left != 0)
            continue;
        switch (c->state) {
        case READ_REQUEST: request_is_here(c); break;
        case READ_VALUE: value_is_here(c); break;
        case WRITE_ANSWER: answer_is_gone(c); break;
        }
    }
}

static void worker_body(void *arg)
{
    struct worker *worker = arg;
    for (;;)
        drive(socket_set_wait(worker->set));
}

/* A port for each client tells which connection is whose. */
static void acceptor_body(void *arg)
{
    struct memcached *m = arg;
    for (unsigned i = 0; i < m->clients; i++)
        m->connection[i].listener = socket_tcp_listen(m->pair.server->net, m->server_ip,
                                                      program_port(m->program, FIRST_PORT, i));
    for (unsigned i = 0; i < m->clients; i++) {
        struct connection *c = &m->connection[i];
        c->server_socket = socket_accept(c->listener);
        next(c, READ_REQUEST, c->server_buffer, line_bytes(m));
        socket_set_add(m->worker[i % m->workers].set, c->server_socket, c);
        socket_close(c->listener);
    }
}

/* The main thread: on a core without worker, if the socket has one. */
static unsigned acceptor_cpu(const struct memcached *m)
{
    const unsigned idx = m->pair.first_core + m->workers;
    const bool is_one = idx < network_cores_per_socket(m->pair.server);
    return program_cpu(m->pair.server, m->pair.server_socket, is_one ? idx : m->pair.first_core);
}

/* ---- memslap
 * ----------------------------------------------------------------------------------------- */

/* A request and its answer; false: the connection is gone. */
static bool transact(struct connection *c, struct socket *socket)
{
    struct memcached *m = c->memcached;
    struct kernel *kernel = m->pair.client->kernel;
    uint64_t bytes = line_bytes(m);
    c->set = sim_random_below(&c->random, 100) < m->set_pct;
    c->item = (uint32_t)sim_random_below(&c->random, m->items);
    if (c->set)
        bytes += m->value_bytes;
    k_compute(kernel, m->client_cycles);
    payload_fill(kernel, c->client_buffer, payload_mark(c->request_stream, c->asked), bytes);
    if (socket_send(socket, c->client_buffer, bytes) != (int64_t)bytes)
        return false;
    c->asked += bytes;
    if (!program_receive(socket, c->client_buffer,
                         c->set ? STORED_BYTES : line_bytes(m) + m->value_bytes))
        return false;
    if (c->set) {
        check(kernel, c->client_buffer, payload_mark(c->answer_stream, c->answered), STORED_BYTES);
        c->answered += STORED_BYTES;
    } else {
        check(kernel, c->client_buffer, c->tag, line_bytes(m) + m->value_bytes);
    }
    return true;
}

static void client_body(void *arg)
{
    struct connection *c = arg;
    struct memcached *m = c->memcached;
    struct kernel *kernel = m->pair.client->kernel;
    struct socket *socket = program_connect(m->program, m->pair.client, m->pair.client->ip,
                                            m->server_ip,
                                            program_port(m->program, FIRST_PORT, c->idx));
    while (socket != NULL && !program_ending(m->program)) {
        uint64_t begin_ps = k_now_ps(kernel);
        if (!transact(c, socket))
            break;
        program_operation_ended(m->program, begin_ps);
        if (!program_measuring(m->program))
            continue;
        m->transactions++;
        stat_histogram_add(&m->program->histogram_ps, k_now_ps(kernel) - begin_ps);
        program_count_operations(m->program, 1);
    }
    if (socket != NULL)
        socket_close(socket);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static void make_items(struct memcached *m)
{
    unsigned cpu = program_cpu(m->pair.server, m->pair.server_socket, m->pair.first_core);
    uint16_t stream = program_new_stream(m->program);
    uint64_t bytes = line_bytes(m) + m->value_bytes;
    m->n_slots = m->items + m->clients;
    m->slot = program_zalloc(m->program, m->n_slots, sizeof(*m->slot));
    m->item = program_zalloc(m->program, m->items, sizeof(struct slot *));
    for (unsigned i = m->n_slots; i-- > 0;) {
        struct slot *slot = &m->slot[i];
        slot->at = program_buffer(m->program, m->pair.server, cpu, bytes);
        if (slot->at.v == 0)
            return;
        if (i < m->items) {
            slot->tag = payload_mark(stream, i * bytes);
            slot->refs = 1;
            m->item[i] = slot;
            payload_fill(m->pair.server->kernel, slot->at, slot->tag, bytes);
        } else {
            slot->next_free = m->free_slot;
            m->free_slot = slot;
        }
    }
}

static void start_client(struct memcached *m, unsigned i)
{
    struct connection *c = &m->connection[i];
    unsigned cpu = program_cpu(m->pair.client, m->pair.client_socket,
                               m->pair.client_first_core + i);
    char name[32];
    *c = (struct connection){ .memcached = m,
                              .idx = i,
                              .request_stream = program_new_stream(m->program),
                              .answer_stream = program_new_stream(m->program) };
    c->client_buffer = program_buffer(m->program, m->pair.client, cpu,
                                      line_bytes(m) + m->value_bytes);
    c->server_buffer = program_buffer(
        m->program, m->pair.server,
        program_cpu(m->pair.server, m->pair.server_socket, m->pair.first_core), line_bytes(m));
    /* The port is no other program's client's, and so is what is drawn. */
    snprintf(name, sizeof(name), "memslap.%u", program_port(m->program, 0, i));
    sim_random_init(&c->random, sim_seed(m->program->workload->sim), name);
    snprintf(name, sizeof(name), "memslap.%u", i);
    k_thread_new(m->pair.client->kernel, name, (int)cpu, client_body, c);
}

static void memcached_start(struct program *program)
{
    struct memcached *m = program->state;
    char name[32];
    if (m->clients == 0)
        return;
    m->server_ip = network_interface_ip(m->pair.server, m->pair.interface);
    m->connection = program_zalloc(program, m->clients, sizeof(*m->connection));
    m->worker = program_zalloc(program, m->workers, sizeof(*m->worker));
    make_items(m);
    if (program_failed(program))
        return;
    for (unsigned w = 0; w < m->workers; w++) {
        unsigned cpu = program_cpu(m->pair.server, m->pair.server_socket, m->pair.first_core + w);
        m->worker[w] = (struct worker){ m, socket_set_new(m->pair.server->net) };
        program_uses_cpu(program, m->pair.server, cpu);
        snprintf(name, sizeof(name), "memcached.%u", w);
        k_thread_new(m->pair.server->kernel, name, (int)cpu, worker_body, &m->worker[w]);
    }
    k_thread_new(m->pair.server->kernel, "memcached.accept", (int)acceptor_cpu(m), acceptor_body,
                 m);
    for (unsigned i = 0; i < m->clients; i++)
        start_client(m, i);
}

/* ---- Measuring
 * ------------------------------------------------------------------------------------ */

static void memcached_measure(struct program *program)
{
    struct memcached *m = program->state;
    m->transactions = 0;
}

static uint64_t memcached_transactions(const struct program *program)
{
    return ((const struct memcached *)program->state)->transactions;
}

static uint64_t memcached_bytes(const struct program *program)
{
    const struct memcached *m = program->state;
    return m->transactions * m->value_bytes;
}

static const struct program_rate memcached_rates[] = {
    { "transactions_kt_s", 1e-3, memcached_transactions, NULL },
    { "memcached_gbit_s", 8e-9, memcached_bytes, NULL },
    { "transaction_mean_us", 1e-6, program_latencies_ps, program_latencies },
    { NULL, 0, NULL, NULL },
};

static void memcached_record(struct program *program, sim_time duration_ps)
{
    struct memcached *m = program->state;
    program_metric(program, "transactions_kt_s", "1000/s",
                   (double)m->transactions * 1e9 / (double)duration_ps);
    if (m->clients == 0 || !program_has_measured(program, "request"))
        return;
    const double gbit_s = (double)(m->transactions * m->value_bytes) * 8000.0 / (double)duration_ps;
    program_metric(program, "memcached_gbit_s", "Gbit/s", gbit_s);
    program_metric(program, "throughput_gbit_s", "Gbit/s", gbit_s);
    program_histogram(program, "transaction_us", "us", 1e-6, &program->histogram_ps);
    program_metric(program, "transaction_mean_us", "us",
                   program->histogram_ps.sum / (double)program->histogram_ps.n * 1e-6);
}

static void memcached_release(struct program *program)
{
    struct memcached *m = program->state;
    for (unsigned w = 0; m->worker != NULL && w < m->workers; w++)
        if (m->worker[w].set != NULL)
            socket_set_free(m->worker[w].set);
}

const struct program_ops program_memcached_ops = {
    .type = "memcached",
    .help = "memcached with memslap: GET and SET of large values over TCP",
    .steady = true,
    .state_bytes = sizeof(struct memcached),
    .params = memcached_params,
    .records = memcached_records,
    .rates = memcached_rates,
    .check = memcached_check,
    .start = memcached_start,
    .measure = memcached_measure,
    .record = memcached_record,
    .release = memcached_release,
};
