/*
 * memcached with memslap: worker threads of the server, each with a share of the connections; a
 * client thread per connection that sends one request after the other and waits for the answer.
 *
 * GET: a small request, an answer with the value, sent from the item's memory. SET: a request with
 * the value, which is received straight into the item's memory (as memcached's conn_nread does), a
 * small answer. Keys are drawn uniformly. What a request says is known from its place in the
 * stream; every byte of both directions is stamped and checked, values by the stream that stored
 * them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "models/payload.h"
#include "workloads/program.h"

#define PORT         11211u
#define ANSWER_BYTES 8u  /* "STORED\r\n" */
#define LINE_EXTRA   32u /* of a request or of an answer with a value, beside key and value */

struct memcached;

struct connection {
    struct memcached *memcached;
    unsigned idx;
    struct socket *server_socket;
    uint16_t request_stream, answer_stream;
    /* the request under way; written by the client before it sends, read by the server */
    bool set;
    uint32_t item;
    uint64_t value_tag; /* of the value in the answer; written by the server */
    struct kaddr client_buffer, server_buffer;
    uint64_t asked, answered; /* bytes of the streams, at the client */
    uint64_t heard, said;     /* and at the server */
    struct sim_random random;
};

/* Memory of one value. SET fills a free slot and then puts it in the place of the old one, which is
 * free when nobody sends from it any more, as memcached's items are. */
struct slot {
    struct kaddr at;
    uint64_t tag; /* what it holds */
    uint32_t refs;
    struct slot *next_free;
};

struct worker {
    struct memcached *memcached;
    unsigned idx;
    struct socket_set *set;
};

struct memcached {
    /* parameters */
    const char *server_name, *client_name, *interface;
    uint32_t clients, workers, server_socket, client_socket, first_core, client_first_core, items;
    uint32_t set_pct, operation_cycles, client_cycles;
    uint64_t key_bytes, value_bytes;
    /* running */
    struct program *program;
    struct network_host *server, *client;
    uint32_t server_ip;
    struct connection *connection;
    struct worker *worker;
    struct slot *slot;  /* all of them */
    struct slot **item; /* the slot of each key */
    struct slot *free_slot;
    unsigned n_slots;
    /* measured */
    uint64_t transactions, sets;
    struct stat_histogram latency_ps;
};

static const struct param_desc memcached_params[] = {
    PARAM_TEXT("server", struct memcached, server_name, "server", "the host of memcached"),
    PARAM_TEXT("client", struct memcached, client_name, "client", "the host of memslap"),
    PARAM_TEXT("interface", struct memcached, interface, "", "of the server; empty: its default"),
    PARAM("clients", PARAM_U32, struct memcached, clients, 14, 0, 64, PROV_NONE, "",
          "memslap instances, a core and a connection each"),
    PARAM("workers", PARAM_U32, struct memcached, workers, 14, 1, 64, PROV_NONE, "",
          "threads of memcached, a core each"),
    PARAM("server_socket", PARAM_U32, struct memcached, server_socket, 0, 0, 7, PROV_NONE, "",
          "socket of memcached's threads and items"),
    PARAM("client_socket", PARAM_U32, struct memcached, client_socket, 0, 0, 7, PROV_NONE, "",
          "socket of the memslap instances"),
    PARAM("first_core", PARAM_U32, struct memcached, first_core, 0, 0, 63, PROV_NONE, "",
          "of the server's socket"),
    PARAM("client_first_core", PARAM_U32, struct memcached, client_first_core, 0, 0, 63, PROV_NONE,
          "", "of the client's socket"),
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
    { "transactions_kt_s", RECORD_METRIC, "1000/s", "requests answered" },
    { "memcached_gbit_s", RECORD_METRIC, "Gbit/s", "values moved" },
    { ".transaction_us", RECORD_HISTOGRAM, "us", "time of a request at the client" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void memcached_check(struct program *program, struct sim_error_list *errors)
{
    struct memcached *m = program->state;
    m->program = program;
    m->server = program_host(program, "server", m->server_name, errors);
    m->client = program_host(program, "client", m->client_name, errors);
    if (m->server == NULL || m->client == NULL)
        return;
    if (m->server == m->client)
        config_mistake(program_setting(program, "client"), errors, "another host than `server`",
                       NULL);
    program_check_core(program, "workers", m->server, m->server_socket,
                       m->first_core + m->workers - 1, errors);
    program_check_core(program, "clients", m->client, m->client_socket,
                       m->client_first_core + SIM_MAX(m->clients, 1U) - 1, errors);
    program_check_interface(program, "interface", m->server, m->interface, errors);
}

/* ---- Both sides
 * ------------------------------------------------------------------------------------ */

static void hear(struct kernel *kernel, struct socket *socket, struct kaddr to, uint64_t bytes,
                 uint64_t tag, bool *open)
{
    uint64_t got = 0, found;
    while (got < bytes && *open) {
        int64_t n = socket_receive(socket, kaddr_add(to, got), bytes - got);
        if (n <= 0)
            *open = false;
        else
            got += (uint64_t)n;
    }
    if (*open && !kernel_check(kernel, to, tag, bytes, &found))
        k_fault(kernel, "memcached: tag %llx instead of %llx", (unsigned long long)found,
                (unsigned long long)tag);
}

static void say(struct kernel *kernel, struct socket *socket, struct kaddr from, uint64_t bytes,
                uint64_t tag, bool *open)
{
    kernel_stamp(kernel, from, tag, bytes);
    if (socket_send(socket, from, bytes) != (int64_t)bytes)
        *open = false;
}

static uint64_t request_bytes(const struct memcached *m)
{
    return m->key_bytes + LINE_EXTRA;
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

static void serve_set(struct connection *c, bool *open)
{
    struct memcached *m = c->memcached;
    struct slot *slot = m->free_slot, *old;
    SIM_ASSERT(slot != NULL, "no free slot: there is one for each item and two for each client");
    m->free_slot = slot->next_free;
    slot->refs = 1;
    slot->tag = payload_tag(c->request_stream, c->heard);
    hear(m->server->kernel, c->server_socket, slot->at, m->value_bytes, slot->tag, open);
    c->heard += m->value_bytes;
    old = m->item[c->item];
    m->item[c->item] = slot;
    slot_put(m, old);
    say(m->server->kernel, c->server_socket, c->server_buffer, ANSWER_BYTES,
        payload_tag(c->answer_stream, c->said), open);
    c->said += ANSWER_BYTES;
}

static void serve_get(struct connection *c, bool *open)
{
    struct memcached *m = c->memcached;
    struct slot *slot = m->item[c->item];
    slot->refs++;
    c->value_tag = slot->tag;
    say(m->server->kernel, c->server_socket, c->server_buffer, LINE_EXTRA,
        payload_tag(c->answer_stream, c->said), open);
    c->said += LINE_EXTRA;
    if (*open && socket_send(c->server_socket, slot->at, m->value_bytes) != (int64_t)m->value_bytes)
        *open = false;
    slot_put(m, slot);
}

static void serve(struct connection *c, bool *open)
{
    struct memcached *m = c->memcached;
    struct kernel *kernel = m->server->kernel;
    uint64_t bytes = request_bytes(m);
    hear(kernel, c->server_socket, c->server_buffer, bytes,
         payload_tag(c->request_stream, c->heard), open);
    c->heard += bytes;
    if (!*open)
        return;
    k_compute(kernel, m->operation_cycles);
    if (c->set)
        serve_set(c, open);
    else
        serve_get(c, open);
}

static void worker_body(void *arg)
{
    struct worker *worker = arg;
    for (;;) {
        struct connection *c = socket_set_wait(worker->set);
        bool open = true;
        if (c == NULL)
            return;
        serve(c, &open);
        if (!open)
            socket_close(c->server_socket);
    }
}

/* A port for each client tells which connection is whose. */
static void acceptor_body(void *arg)
{
    struct memcached *m = arg;
    for (unsigned i = 0; i < m->clients; i++) {
        struct connection *c = &m->connection[i];
        struct socket *listener = socket_tcp_listen(m->server->net, m->server_ip,
                                                    (uint16_t)(PORT + i));
        c->server_socket = socket_accept(listener);
        socket_set_add(m->worker[i % m->workers].set, c->server_socket, c);
        socket_close(listener);
    }
}

/* ---- memslap
 * ----------------------------------------------------------------------------------------- */

static void transact(struct connection *c, struct socket *socket, bool *open)
{
    struct memcached *m = c->memcached;
    struct kernel *kernel = m->client->kernel;
    uint64_t bytes = request_bytes(m);
    c->set = sim_random_below(&c->random, 100) < m->set_pct;
    c->item = (uint32_t)sim_random_below(&c->random, m->items);
    if (c->set)
        bytes += m->value_bytes;
    k_compute(kernel, m->client_cycles);
    say(kernel, socket, c->client_buffer, bytes, payload_tag(c->request_stream, c->asked), open);
    c->asked += bytes;
    if (!*open)
        return;
    bytes = c->set ? ANSWER_BYTES : LINE_EXTRA;
    hear(kernel, socket, c->client_buffer, bytes, payload_tag(c->answer_stream, c->answered), open);
    c->answered += bytes;
    if (!c->set && *open)
        hear(kernel, socket, c->client_buffer, m->value_bytes, c->value_tag, open);
}

static void client_body(void *arg)
{
    struct connection *c = arg;
    struct memcached *m = c->memcached;
    struct kernel *kernel = m->client->kernel;
    struct socket *socket = program_connect(m->program, m->client, m->client->ip, m->server_ip,
                                            (uint16_t)(PORT + c->idx));
    bool open = socket != NULL;
    while (open && !program_ending(m->program)) {
        uint64_t begin_ps = k_now_ps(kernel);
        transact(c, socket, &open);
        if (!open || !program_measuring(m->program))
            continue;
        m->transactions++;
        m->sets += c->set;
        stat_histogram_add(&m->latency_ps, k_now_ps(kernel) - begin_ps);
        program_count_operations(m->program, 1);
    }
    if (socket != NULL)
        socket_close(socket);
}

/* ---- Beginning ----------------------------------------------------------------------------------
 */

static void make_items(struct memcached *m)
{
    unsigned cpu = program_cpu(m->server, m->server_socket, m->first_core);
    uint16_t stream = program_new_stream(m->program);
    m->n_slots = m->items + 2 * m->clients;
    m->slot = calloc(m->n_slots, sizeof(*m->slot));
    m->item = calloc(m->items, sizeof(struct slot *));
    SIM_ASSERT(m->slot != NULL && m->item != NULL, "out of memory");
    for (unsigned i = m->n_slots; i-- > 0;) {
        struct slot *slot = &m->slot[i];
        slot->at = program_buffer(m->server, cpu, m->value_bytes);
        if (i < m->items) {
            slot->tag = payload_tag(stream, i * m->value_bytes);
            slot->refs = 1;
            m->item[i] = slot;
            kernel_stamp(m->server->kernel, slot->at, slot->tag, m->value_bytes);
        } else {
            slot->next_free = m->free_slot;
            m->free_slot = slot;
        }
    }
}

static void start_client(struct memcached *m, unsigned i)
{
    struct connection *c = &m->connection[i];
    unsigned cpu = program_cpu(m->client, m->client_socket, m->client_first_core + i);
    char name[32];
    *c = (struct connection){ .memcached = m,
                              .idx = i,
                              .request_stream = program_new_stream(m->program),
                              .answer_stream = program_new_stream(m->program) };
    c->client_buffer = program_buffer(m->client, cpu, request_bytes(m) + m->value_bytes);
    c->server_buffer = program_buffer(
        m->server, program_cpu(m->server, m->server_socket, m->first_core), request_bytes(m));
    snprintf(name, sizeof(name), "memslap.%u", i);
    sim_random_init(&c->random, sim_seed(m->program->workload->sim), name);
    k_thread_new(m->client->kernel, name, (int)cpu, client_body, c);
}

static void memcached_start(struct program *program)
{
    struct memcached *m = program->state;
    char name[32];
    stat_histogram_init(&m->latency_ps);
    if (m->clients == 0)
        return;
    m->server_ip = network_interface_ip(m->server, m->interface);
    m->connection = calloc(m->clients, sizeof(*m->connection));
    m->worker = calloc(m->workers, sizeof(*m->worker));
    SIM_ASSERT(m->connection != NULL && m->worker != NULL, "out of memory");
    make_items(m);
    for (unsigned w = 0; w < m->workers; w++) {
        unsigned cpu = program_cpu(m->server, m->server_socket, m->first_core + w);
        m->worker[w] = (struct worker){ m, w, socket_set_new(m->server->net) };
        program_uses_cpu(program, m->server, cpu);
        snprintf(name, sizeof(name), "memcached.%u", w);
        k_thread_new(m->server->kernel, name, (int)cpu, worker_body, &m->worker[w]);
    }
    k_thread_new(m->server->kernel, "memcached.accept",
                 (int)program_cpu(m->server, m->server_socket, m->first_core), acceptor_body, m);
    for (unsigned i = 0; i < m->clients; i++)
        start_client(m, i);
}

/* ---- Measuring
 * ------------------------------------------------------------------------------------ */

static void memcached_measure(struct program *program)
{
    struct memcached *m = program->state;
    m->transactions = m->sets = 0;
    stat_histogram_clear(&m->latency_ps);
}

static void memcached_record(struct program *program, sim_time duration_ps)
{
    struct memcached *m = program->state;
    struct run_result *result = program->workload->result;
    char name[96];
    program_metric_sum(program, "transactions_kt_s", "1000/s",
                       (double)m->transactions * 1e9 / (double)duration_ps);
    if (m->transactions == 0)
        return;
    program_metric_sum(program, "memcached_gbit_s", "Gbit/s",
                       (double)(m->transactions * m->value_bytes) * 8000.0 / (double)duration_ps);
    snprintf(name, sizeof(name), "%s.transaction_us", program->name);
    run_result_histogram(result, name, "us", 1e-6, &m->latency_ps);
}

static void memcached_release(struct program *program)
{
    struct memcached *m = program->state;
    stat_histogram_release(&m->latency_ps);
    free(m->connection);
    free(m->worker);
    free(m->slot);
    free(m->item);
}

const struct program_ops program_memcached_ops = {
    .type = "memcached",
    .help = "memcached with memslap: GET and SET of large values over TCP",
    .state_bytes = sizeof(struct memcached),
    .params = memcached_params,
    .records = memcached_records,
    .check = memcached_check,
    .start = memcached_start,
    .measure = memcached_measure,
    .record = memcached_record,
    .release = memcached_release,
};
