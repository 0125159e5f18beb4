/*
 * Messages between two processes of a host: round trips, then a window of messages one way.
 *
 *   adce           the copy module's reads and writes, copied by the engine
 *   kammc          the same, copied by the CPU of who posts second: kernel-assisted, mapped memory
 *   shared_memory  a ring that both have mapped: a copy in, a copy out, without the kernel
 *   nlbc           TCP between two ports of the host's NICs that are cabled with each other: the adapters
 *                  move the data out of and into memory, the kernel copies to and from its buffers
 *
 * Both processes use the same buffers for all messages, but for a window by the engine: its
 * messages are under way together, and each has buffers of its own, which a window that does not
 * count has had pinned. The engine works on memory, so that the caches are as with one buffer. Each
 * message has content of its own (the program fills the buffer without time) and is checked when it
 * has arrived: by the engine and in round trips when its receiver has it; in a window by the CPU,
 * which copies one message at a time, behind the call that has copied it.
 */
#include <stdio.h>

#include "logic/copy/shm_ring.h"
#include "models/base/payload.h"
#include "workloads/copy/copy_site.h"

#define LOOK_PS     SIM_PS_PER_US
#define PORT        15000u
#define WARM_UPS    2u
#define AT_LEAST    2u
#define TOGETHER_AT 4u /* messages of a window at least */
#define WITHIN_PS   (10 * SIM_PS_PER_MS)

enum mechanism { BY_ADCE, BY_KAMMC, BY_SHARED_MEMORY, BY_NLBC };
static const char *const mechanism_names[] = { "adce", "kammc", "shared_memory", "nlbc", NULL };

struct ipc;

struct side {
    struct ipc *ipc;
    struct copy_process process;
    struct uaddr out, in; /* buffers */
    unsigned cpu;
    int fd;
    uint16_t stream;         /* of what it sends */
    uint64_t sent, received; /* messages */
    struct socket *socket;
    bool done;
};

struct ipc {
    /* parameters */
    struct copy_settings settings;
    const char *network_name;
    int mechanism;
    uint32_t peer_cpu, round_trips, window, slots, slot_bytes;
    uint64_t message_bytes, volume_bytes;
    /* running */
    struct copy_site site;
    struct network_host *net; /* nlbc */
    struct side side[2];
    struct shm_ring *ring[2]; /* from side 0, from side 1 */
    struct socket *listener;
    bool opened, failed;
    uint64_t copied, moved; /* of a window by the CPU: the module's count of bytes; messages */
    /* measured */
    uint64_t trips, trips_ps, bytes, window_ps;
};

static const struct param_desc copy_ipc_params[] = {
    COPY_PARAMS(struct ipc, settings),
    PARAM_TEXT("network", struct ipc, network_name, "",
               "nlbc: the host in the group `network`, with two functions whose ports are cabled"),
    PARAM_ONE_OF("mechanism", struct ipc, mechanism, BY_ADCE, mechanism_names, PROV_NONE, "",
                 "how messages move"),
    PARAM("peer_cpu", PARAM_U32, struct ipc, peer_cpu, 1, 0, 255, PROV_NONE, "",
          "of the other process"),
    PARAM("message_bytes", PARAM_BYTES, struct ipc, message_bytes, 65536, 64, 67108864, PROV_NONE,
          "", "of a message"),
    PARAM("round_trips", PARAM_U32, struct ipc, round_trips, 8, 1, 100000, PROV_NONE, "",
          "that are measured at most"),
    PARAM("window", PARAM_U32, struct ipc, window, 128, 1, ADMA_REQUESTS_MAX, PROV_NONE, "",
          "messages that are begun before the first is waited for"),
    PARAM("volume_bytes", PARAM_BYTES, struct ipc, volume_bytes, 16777216, 64, 1e10, PROV_NONE, "",
          "of each phase at most, unless these are too few messages"),
    PARAM("slots", PARAM_U32, struct ipc, slots, 8, 1, 64, PROV_NONE, "",
          "shared_memory: of the ring of each direction"),
    PARAM("slot_bytes", PARAM_U32, struct ipc, slot_bytes, 8192, 64, 65536, PROV_NONE, "",
          "shared_memory: of a slot"),
    { .type = PARAM_END },
};

static const struct record_desc copy_ipc_records[] = {
    { "latency_us", RECORD_METRIC, "us", "a round trip, mean" },
    { "bandwidth_mbyte_s", RECORD_METRIC, "MB/s", "of a window of messages one way" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void check_mechanism(struct program *program, enum mechanism by,
                            struct sim_error_list *errors)
{
    static const char *const pins[] = { "pin_cache_pages", NULL };
    static const char *const ring[] = { "slots", "slot_bytes", NULL };
    static const char *const network[] = { "network", NULL };
    if (by != BY_ADCE && by != BY_KAMMC)
        copy_no_effect(program, pins, "mechanism", "mechanism = \"adce\" or \"kammc\"", errors);
    if (by != BY_SHARED_MEMORY)
        copy_no_effect(program, ring, "mechanism", "mechanism = \"shared_memory\"", errors);
    if (by != BY_NLBC)
        copy_no_effect(program, network, "mechanism", "mechanism = \"nlbc\"", errors);
}

static void ipc_check(struct program *program, struct sim_error_list *errors)
{
    struct ipc *ipc = program->state;
    ipc->settings.by = ipc->mechanism == BY_ADCE ? COPY_BY_ENGINE : COPY_BY_CPU;
    check_mechanism(program, (enum mechanism)ipc->mechanism, errors);
    if (!copy_site_check(&ipc->site, program, &ipc->settings, "mechanism", "adce", errors))
        return;
    program_check_cpus(program, "peer_cpu", ipc->site.host, ipc->peer_cpu, 1, errors);
    if (ipc->peer_cpu == ipc->settings.cpu)
        program_mistake(program, "peer_cpu", errors, "another CPU than `cpu`", NULL);
    if (ipc->mechanism != BY_NLBC)
        return;
    ipc->net = program_host(program, "network", ipc->network_name, errors);
    if (ipc->net != NULL && !network_interface_named(ipc->net, "pf1"))
        program_mistake(program, "network", errors, "a host with two functions of NICs", NULL);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void bad(struct ipc *ipc, const char *what, int64_t status)
{
    if (!ipc->failed)
        program_fail(ipc->site.program, "%s: %lld", what, (long long)status);
    ipc->failed = true;
}

static bool by_module(const struct ipc *ipc)
{
    return ipc->mechanism == BY_ADCE || ipc->mechanism == BY_KAMMC;
}

/* Sockets take memory by its address, a contiguous piece at a time. */
static void by_socket(struct side *s, struct uaddr buffer, bool sends)
{
    const uint64_t bytes = s->ipc->message_bytes;
    for (uint64_t done = 0; done < bytes && !s->ipc->failed;) {
        struct kaddr at;
        const uint64_t run = umem_run(s->process.umem, uaddr_add(buffer, done), bytes - done, &at);
        const int64_t n = sends                                 ? socket_send(s->socket, at, run)
                          : program_receive(s->socket, at, run) ? (int64_t)run
                                                                : 0;
        if (n <= 0)
            bad(s->ipc, "the connection ends", n);
        done += (uint64_t)n;
    }
}

/* What message n of a side is. */
static uint64_t mark_of(const struct side *s, uint64_t n)
{
    return payload_mark(s->stream, n * s->ipc->message_bytes);
}

static void fill(struct side *s, struct uaddr out, uint64_t n)
{
    copy_fill(&s->process, out, mark_of(s, n), s->ipc->message_bytes);
}

/* Message n from the other side is there. */
static void check(struct side *s, struct uaddr in, uint64_t n)
{
    const struct side *other = &s->ipc->side[s == &s->ipc->side[0]];
    if (!s->ipc->failed && !copy_check(&s->process, in, mark_of(other, n), s->ipc->message_bytes))
        s->ipc->failed = true;
}

/* Begins to send what is in the buffer; a cookie, or 0: it is sent. */
static adma_cookie begin_send(struct side *s, struct uaddr out)
{
    struct ipc *ipc = s->ipc;
    const uint64_t bytes = ipc->message_bytes;
    adma_cookie cookie = 0;
    s->sent++;
    if (by_module(ipc))
        cookie = adma_iwrite(s->process.adma, s->fd, out, bytes);
    else if (ipc->mechanism == BY_NLBC)
        by_socket(s, out, true);
    else
        shm_ring_send(ipc->ring[s == &ipc->side[1]], s->process.umem, out, bytes, &ipc->failed);
    if (cookie < 0)
        bad(ipc, "a message cannot be posted", cookie);
    return cookie;
}

static adma_cookie begin_receive(struct side *s, struct uaddr in)
{
    struct ipc *ipc = s->ipc;
    const uint64_t bytes = ipc->message_bytes;
    adma_cookie cookie = 0;
    s->received++;
    if (by_module(ipc))
        cookie = adma_iread(s->process.adma, s->fd, in, bytes);
    else if (ipc->mechanism == BY_NLBC)
        by_socket(s, in, false);
    else
        shm_ring_receive(ipc->ring[s == &ipc->side[0]], s->process.umem, in, bytes, &ipc->failed);
    if (cookie < 0)
        bad(ipc, "a buffer cannot be posted", cookie);
    return cookie;
}

static void end(struct side *s, adma_cookie cookie)
{
    if (cookie <= 0)
        return;
    const int64_t n = adma_wait(s->process.adma, cookie, UINT64_MAX);
    if (n != (int64_t)s->ipc->message_bytes)
        bad(s->ipc, "a message does not end well", n);
}

static void send_one(struct side *s)
{
    fill(s, s->out, s->sent);
    end(s, begin_send(s, s->out));
}

static void receive_one(struct side *s)
{
    end(s, begin_receive(s, s->in));
    check(s, s->in, s->received - 1);
}

static bool goes_on(const struct ipc *ipc)
{
    return !ipc->failed;
}

static unsigned messages(const struct ipc *ipc, unsigned most, unsigned least)
{
    const uint64_t n = ipc->volume_bytes / ipc->message_bytes;
    least = least < most ? least : most;
    return n > most ? most : n < least ? least : (unsigned)n;
}

/* ---- The two processes ----------------------------------------------------------------------- */

/* A round trip; the first one begins. */
static void trip(struct side *s)
{
    if (s == &s->ipc->side[0]) {
        send_one(s);
        receive_one(s);
    } else {
        receive_one(s);
        send_one(s);
    }
}

/* Before the first message of a window by the CPU; whoever of both comes here second finds nothing
 * copied. */
static void begin_window(struct side *s)
{
    struct ipc *ipc = s->ipc;
    ipc->copied = adma_stats(ipc->site.adma)->cpu_bytes;
    ipc->moved = s == &ipc->side[0] ? s->sent : s->received;
    if (s == &ipc->side[0])
        fill(s, s->out, s->sent);
}

/* Behind a call: who posts second copies, in the order of posting, and the next copy begins in a
 * later call. So what was copied is checked now, and the buffer gets what will be copied next. */
static void look(struct ipc *ipc)
{
    const uint64_t copied = adma_stats(ipc->site.adma)->cpu_bytes;
    if (copied == ipc->copied)
        return;
    if (copied != ipc->copied + ipc->message_bytes)
        bad(ipc, "bytes copied in one call", (int64_t)(copied - ipc->copied));
    ipc->copied = copied;
    check(&ipc->side[1], ipc->side[1].in, ipc->moved++);
    fill(&ipc->side[0], ipc->side[0].out, ipc->moved);
}

/* The i-th message of a window one way by the module. */
static adma_cookie begin(struct side *s, unsigned i)
{
    struct ipc *ipc = s->ipc;
    const bool first = s == &ipc->side[0], by_cpu = ipc->mechanism == BY_KAMMC;
    const uint64_t at = by_cpu ? 0 : i * ipc->message_bytes;
    if (first && !by_cpu)
        fill(s, uaddr_add(s->out, at), s->sent);
    const adma_cookie cookie = first ? begin_send(s, uaddr_add(s->out, at))
                                     : begin_receive(s, uaddr_add(s->in, at));
    if (by_cpu)
        look(ipc);
    return cookie;
}

static void window_by_module(struct side *s, unsigned n)
{
    struct ipc *ipc = s->ipc;
    adma_cookie cookie[ADMA_REQUESTS_MAX];
    const bool by_cpu = ipc->mechanism == BY_KAMMC, receives = s == &ipc->side[1];
    const uint64_t before = receives ? s->received : s->sent;
    if (by_cpu)
        begin_window(s);
    for (unsigned i = 0; i < n && goes_on(ipc); i++)
        cookie[i] = begin(s, i);
    for (unsigned i = 0; i < n && goes_on(ipc); i++) {
        end(s, cookie[i]);
        if (receives && !by_cpu)
            check(s, uaddr_add(s->in, i * ipc->message_bytes), before + i);
    }
    if (!by_cpu || !goes_on(ipc))
        return;
    look(ipc); /* the call that has copied the last message may not have returned yet */
    if (ipc->moved != before + n)
        bad(ipc, "messages of the window that nobody has copied",
            (int64_t)(before + n - ipc->moved));
}

/* All one way. */
static void window(struct side *s, unsigned n)
{
    if (by_module(s->ipc))
        window_by_module(s, n);
    else
        for (unsigned i = 0; i < n && goes_on(s->ipc); i++)
            if (s == &s->ipc->side[0])
                send_one(s);
            else
                receive_one(s);
}

static void talk(struct side *s)
{
    struct ipc *ipc = s->ipc;
    struct kernel *kernel = ipc->site.host->kernel;
    const bool first = s == &ipc->side[0];
    const unsigned trips = messages(ipc, ipc->round_trips, AT_LEAST);
    const unsigned n = messages(ipc, ipc->window, TOGETHER_AT);
    if (ipc->mechanism == BY_ADCE)
        window(s, n);
    for (unsigned i = 0; i < WARM_UPS && goes_on(ipc); i++)
        trip(s);
    while (goes_on(ipc) && !program_measuring(ipc->site.program) &&
           !program_ending(ipc->site.program))
        k_sleep(kernel, LOOK_PS);
    uint64_t begin_ps = k_now_ps(kernel);
    for (unsigned i = 0; i < trips && goes_on(ipc); i++)
        trip(s);
    if (first) {
        ipc->trips = trips;
        ipc->trips_ps = k_now_ps(kernel) - begin_ps;
    }
    begin_ps = k_now_ps(kernel);
    window(s, n);
    if (!first) { /* who receives knows when all is there */
        ipc->bytes = n * ipc->message_bytes;
        ipc->window_ps = k_now_ps(kernel) - begin_ps;
    }
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void meet_by_network(struct side *s)
{
    struct ipc *ipc = s->ipc;
    struct network_host *net = ipc->net;
    const uint32_t ip0 = network_interface_ip(net, "pf0"), ip1 = network_interface_ip(net, "pf1");
    const uint16_t port = program_port(ipc->site.program, PORT, 0);
    for (unsigned f = 0; f < 2; f++) /* the other port is a neighbour of this one */
        net_neighbour_add(net->net, net->function[f]->ip, net->function[f]->mac);
    if (s == &ipc->side[1]) {
        ipc->listener = socket_tcp_listen(net->net, ip1, port);
        s->socket = ipc->listener != NULL ? socket_accept(ipc->listener) : NULL;
    } else
        s->socket = program_connect(ipc->site.program, net, ip0, ip1, port);
    if (s->socket == NULL)
        bad(ipc, "no connection", 0);
}

static void meet(struct side *s)
{
    struct ipc *ipc = s->ipc;
    struct kernel *kernel = ipc->site.host->kernel;
    const uint64_t until_ps = k_now_ps(kernel) + WITHIN_PS;
    if (ipc->mechanism == BY_NLBC)
        meet_by_network(s);
    if (!by_module(ipc))
        return;
    s->fd = s == &ipc->side[0] ? adma_connect(s->process.adma, 1, until_ps)
                               : adma_accept(s->process.adma, 1, until_ps);
    if (s->fd < 0)
        bad(ipc, "no connection", s->fd);
}

/* The first side, once: what both share. */
static void open_all(struct ipc *ipc)
{
    struct kernel *kernel = ipc->site.host->kernel;
    if (by_module(ipc) && !copy_site_open(&ipc->site))
        ipc->failed = true;
    for (unsigned i = 0; i < 2 && ipc->mechanism == BY_SHARED_MEMORY; i++)
        if ((ipc->ring[i] = shm_ring_new(kernel, ipc->slots, ipc->slot_bytes)) == NULL)
            bad(ipc, "no shared memory", 0);
    ipc->opened = true;
}

static void side_body(void *arg)
{
    struct side *s = arg;
    struct ipc *ipc = s->ipc;
    struct kernel *kernel = ipc->site.host->kernel;
    const bool first = s == &ipc->side[0];
    if (first)
        open_all(ipc);
    while (!ipc->opened)
        k_sleep(kernel, LOOK_PS);
    copy_process_open(&s->process, &ipc->site);
    const unsigned n = ipc->mechanism == BY_ADCE ? messages(ipc, ipc->window, TOGETHER_AT) : 1;
    s->out = copy_process_map(&s->process, (first ? n : 1) * ipc->message_bytes);
    s->in = copy_process_map(&s->process, (first ? 1 : n) * ipc->message_bytes);
    if (s->out.v == 0 || s->in.v == 0)
        ipc->failed = true;
    if (goes_on(ipc))
        meet(s);
    if (goes_on(ipc))
        talk(s);
    if (s->socket != NULL)
        socket_close(s->socket);
    copy_process_close(&s->process);
    s->done = true;
    if (!first)
        return;
    while (!ipc->side[1].done)
        k_sleep(kernel, LOOK_PS);
    if (ipc->listener != NULL)
        socket_close(ipc->listener);
    for (unsigned i = 0; i < 2; i++)
        if (ipc->ring[i] != NULL)
            shm_ring_free(ipc->ring[i]);
    copy_site_close(&ipc->site);
    program_finish(ipc->site.program);
}

static void ipc_start(struct program *program)
{
    struct ipc *ipc = program->state;
    struct kernel *kernel = ipc->site.host->kernel;
    program->finite = true;
    for (unsigned i = 0; i < 2; i++) {
        char name[64];
        const unsigned cpu = i == 0 ? ipc->settings.cpu : ipc->peer_cpu;
        ipc->side[i] = (struct side){
            .ipc = ipc, .cpu = cpu, .fd = -1, .stream = program_new_stream(program)
        };
        program_lending_uses_cpu(program, ipc->site.host, cpu);
        snprintf(name, sizeof(name), "%.40s%u", program->name, i);
        k_thread_new(kernel, name, (int)cpu, side_body, &ipc->side[i]);
    }
}

static void ipc_record(struct program *program, sim_time duration_ps)
{
    const struct ipc *ipc = program->state;
    (void)duration_ps;
    if (ipc->window_ps == 0)
        return;
    program_metric(program, "latency_us", "us", (double)ipc->trips_ps / 1e6 / (double)ipc->trips);
    program_metric(program, "bandwidth_mbyte_s", "MB/s",
                   (double)ipc->bytes * 1e6 / (double)ipc->window_ps);
}

const struct program_ops program_copy_ipc_ops = {
    .type = "copy_ipc",
    .help = "messages between two processes of a host",
    .state_bytes = sizeof(struct ipc),
    .params = copy_ipc_params,
    .records = copy_ipc_records,
    .check = ipc_check,
    .start = ipc_start,
    .record = ipc_record,
};
