/*
 * PageRank, pulled along incoming edges as in the GAP benchmark suite: a real kernel over a
 * generated power-law graph, whose accesses go through the caches.
 *
 * The graph has 2^scale vertices with `degree` incoming edges each. Where an edge comes from is
 * drawn from a power law: vertex floor(n * u^skew), u uniform, spread over the numbers by a
 * multiplicative hash so that popular vertices do not share lines. Arrays: contribution (4 B a
 * vertex), next score (4 B), out-degree (4 B), edges (4 B), offsets (8 B); each thread's part lies
 * on the node of its core, as first touch places it. Threads split the vertices evenly and meet at
 * a barrier after each iteration.
 *
 * Timing: edges and offsets are streams; each gather of a contribution is a load that others may
 * overlap (line-fill buffers), and so may the computation of the edges that follow it, as a core
 * that runs out of order does; edge_cycles of computation an edge, vertex_cycles a vertex.
 */
#include <math.h>
#include <stdio.h>

#include "workloads/programs/program.h"

#define DAMPING           0.85
#define VERTICES_PER_POLL 8u
#define EDGES_AHEAD       16u  /* count_edges() prefetches counters so early */
#define EDGES_DRAWN       256u /* at a time */
#define EDGES_KEPT        (2 * EDGES_DRAWN)
#define GATHERS_AHEAD     8u /* what the simulator keeps of a gathered line: so early */

struct pagerank;

struct pagerank_thread {
    struct pagerank *pagerank;
    uint64_t first, end;                                      /* vertices */
    struct kaddr contribution, next, degrees, edges, offsets; /* of its part */
    struct hpa gather[GATHERS_AHEAD]; /* a ring by number of the edge: those that come next */
    struct sim_random begin, random;  /* draws its first edge; edge `drawn` */
    uint64_t drawn, pulled;           /* pulled: vertices so far */
    uint32_t edge[EDGES_KEPT];        /* a ring like that of gathers */
    float value[EDGES_KEPT];          /* what is gathered along them */
};

struct pagerank {
    /* parameters */
    const char *host_name;
    uint32_t threads_per_socket, first_core, scale, degree, iterations, edge_cycles, vertex_cycles;
    double skew;
    /* running */
    struct program *program;
    struct network_host *host;
    struct pagerank_thread *thread;
    unsigned n_threads, n_sockets, at_barrier, generation;
    uint64_t n_vertices, part; /* vertices of a thread */
    uint32_t *out_degree;
    float *contribution, *next;
    struct k_wait_queue barrier;
    sim_time begin_ps, end_ps;
};

static const struct param_desc pagerank_params[] = {
    PARAM_TEXT("host", struct pagerank, host_name, "server", "where it runs"),
    PARAM("threads_per_socket", PARAM_U32, struct pagerank, threads_per_socket, 8, 1, 64, PROV_NONE,
          "", "threads, each on a core of its own"),
    PARAM("first_core", PARAM_U32, struct pagerank, first_core, 0, 0, 63, PROV_NONE, "",
          "of each socket, for its first thread"),
    PARAM("scale", PARAM_U32, struct pagerank, scale, 23, 8, 28, PROV_NONE, "",
          "the graph has 2^scale vertices"),
    PARAM("degree", PARAM_U32, struct pagerank, degree, 4, 1, 64, PROV_NONE, "",
          "incoming edges of a vertex"),
    PARAM("skew", PARAM_DOUBLE, struct pagerank, skew, 2, 1, 16, PROV_NONE, "",
          "exponent of the power law that edges' origins are drawn from; 1: uniform"),
    PARAM("iterations", PARAM_U32, struct pagerank, iterations, 1, 1, 1000, PROV_NONE, "",
          "over all vertices"),
    PARAM("edge_cycles", PARAM_U32, struct pagerank, edge_cycles, 4, 0, 1000, PROV_ESTIMATE,
          "docs/sources.md#a6", "computation for an edge: index, load, add"),
    PARAM("vertex_cycles", PARAM_U32, struct pagerank, vertex_cycles, 8, 0, 1000, PROV_ESTIMATE,
          "docs/sources.md#a6",
          "computation for a vertex; as all have the same degree, its loop's end is predicted"),
    { .type = PARAM_END },
};

static const struct record_desc pagerank_records[] = {
    { "pagerank_s", RECORD_METRIC, "s", "run time of all iterations" },
    { "pagerank_edges_per_us", RECORD_METRIC, "1/us", "edges done" },
    { "pagerank_score_sum", RECORD_METRIC, "1",
      "of all vertices afterwards; below 1 by what vertices without outgoing edges lose" },
    { "pagerank_edges_per_us", RECORD_SERIES, "1/us", "done per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* What its arrays take on each socket. */
static void check_size(const struct pagerank *pagerank, struct sim_error_list *errors)
{
    const uint64_t n_sockets = network_sockets(pagerank->host),
                   n_threads = n_sockets * pagerank->threads_per_socket,
                   part = ((UINT64_C(1) << pagerank->scale) + n_threads - 1) / n_threads,
                   vertex_bytes = 3 * sizeof(uint32_t) + sizeof(uint64_t) +
                                  pagerank->degree * sizeof(uint32_t);
    const size_t before = errors->n_messages;
    for (unsigned s = 0; s < n_sockets && errors->n_messages == before; s++)
        program_check_memory(pagerank->program, "scale", pagerank->host, s,
                             pagerank->threads_per_socket * part * vertex_bytes, errors);
}

static void pagerank_check(struct program *program, struct sim_error_list *errors)
{
    struct pagerank *pagerank = program->state;
    pagerank->program = program;
    pagerank->host = program_host(program, "host", pagerank->host_name, errors);
    if (pagerank->host == NULL)
        return;
    program_check_cores(program, pagerank->host,
                        &(struct program_cores){ .first_key = "first_core",
                                                 .n_key = "threads_per_socket",
                                                 .first = pagerank->first_core,
                                                 .n = pagerank->threads_per_socket },
                        errors);
    check_size(pagerank, errors);
}

/* ---- The graph
 * ------------------------------------------------------------------------------------ */

/* What a vertex gives along each of its outgoing edges; without any it gives nothing. */
static float contribution(const struct pagerank *pagerank, uint64_t v, float score)
{
    return pagerank->out_degree[v] != 0 ? score / (float)pagerank->out_degree[v] : 0.0f;
}

/* Where the next edge comes from. Edges are drawn when they are wanted, in each iteration anew: all
 * of them would take more memory than everything else. */
static inline uint32_t draw_edge(const struct pagerank *pagerank, struct sim_random *random)
{
    const double u = sim_random_unit(random);
    /* The default by a product, which rounds one draw in 1,100 otherwise than pow(). */
    const double power = pagerank->skew == 2 ? u * u : pow(u, pagerank->skew);
    const uint64_t rank = (uint64_t)((double)pagerank->n_vertices * power);

    return (uint32_t)(rank * UINT64_C(0x9e3779b1) & (pagerank->n_vertices - 1));
}

/* Counts the edges of a thread's vertices, which are drawn next. */
static void count_edges(struct pagerank *pagerank, struct pagerank_thread *thread,
                        struct sim_random *random)
{
    const uint64_t n = thread->end > thread->first
                           ? (thread->end - thread->first) * pagerank->degree
                           : 0;

    thread->begin = *random;
    for (uint64_t e = 0; e < n; e++) {
        if (e >= EDGES_AHEAD)
            pagerank->out_degree[thread->edge[(e - EDGES_AHEAD) % EDGES_KEPT]]++;
        thread->edge[e % EDGES_KEPT] = draw_edge(pagerank, random);
        __builtin_prefetch(&pagerank->out_degree[thread->edge[e % EDGES_KEPT]], 1);
    }
    for (uint64_t e = n < EDGES_AHEAD ? 0 : n - EDGES_AHEAD; e < n; e++)
        pagerank->out_degree[thread->edge[e % EDGES_KEPT]]++;
}

static void make_graph(struct pagerank *pagerank)
{
    uint64_t n = pagerank->n_vertices;
    struct sim_random random;
    pagerank->contribution = program_zalloc_large(pagerank->program, n,
                                                  sizeof(*pagerank->contribution));
    pagerank->next = program_zalloc_large(pagerank->program, n, sizeof(*pagerank->next));
    pagerank->out_degree = program_zalloc_large(pagerank->program, n,
                                                sizeof(*pagerank->out_degree));
    if (program_failed(pagerank->program))
        return;
    sim_random_init(&random, sim_seed(pagerank->program->workload->sim), "pagerank");
    for (unsigned t = 0; t < pagerank->n_threads; t++)
        count_edges(pagerank, &pagerank->thread[t], &random);
    for (uint64_t v = 0; v < n; v++)
        pagerank->contribution[v] = contribution(pagerank, v, 1.0f / (float)n);
}

static struct hpa vertex_at(const struct pagerank *pagerank, uint64_t v, bool next)
{
    const struct pagerank_thread *owner = &pagerank->thread[v / pagerank->part];
    const struct kaddr base = next ? owner->next : owner->contribution;
    return (struct hpa){ base.v + (v - owner->first) * sizeof(float) };
}

/* ---- The kernel
 * ------------------------------------------------------------------------------------ */

/* Computes where edge e gathers from, and has the real machine fetch the state of that line. */
static inline void announce(struct pagerank_thread *thread, const struct core *core, uint64_t e)
{
    const struct hpa at = vertex_at(thread->pagerank, thread->edge[e % EDGES_KEPT], false);

    thread->gather[e % GATHERS_AHEAD] = at;
    core_announce(core, at);
}

/* The edges from e on, and their values, which stay as they are until all threads have pulled. All
 * at once: the real machine then has many of its own misses under way. What is drawn beyond the
 * last edge is of no use. */
static __attribute__((noinline)) void draw_edges(struct pagerank_thread *thread, uint64_t e)
{
    const float *values = thread->pagerank->contribution;
    struct sim_random random = thread->random;

    for (unsigned i = 0; i < EDGES_DRAWN; i++)
        thread->edge[(e + i) % EDGES_KEPT] = draw_edge(thread->pagerank, &random);
    for (unsigned i = 0; i < EDGES_DRAWN; i++)
        thread->value[(e + i) % EDGES_KEPT] = values[thread->edge[(e + i) % EDGES_KEPT]];
    thread->random = random;
}

/* At the begin of an iteration; e: of the first edge. */
static void draw_first(struct pagerank_thread *thread, const struct core *core, uint64_t e)
{
    thread->random = thread->begin;
    draw_edges(thread, e);
    thread->drawn = e + EDGES_DRAWN;
    for (unsigned i = 0; i < GATHERS_AHEAD; i++)
        announce(thread, core, e + i);
}

/* One vertex: gathers, adds, stores. */
static void pull(struct pagerank_thread *thread, struct core *core, struct sim_task *task,
                 uint64_t v)
{
    struct pagerank *pagerank = thread->pagerank;
    uint64_t e = v * pagerank->degree, local = (v - thread->first) * pagerank->degree;
    float sum = 0;
    if (v == thread->first)
        draw_first(thread, core, e);
    if ((v - thread->first) % (LINE_BYTES / 8) == 0)
        core_load_stream(core, task, (struct hpa){ thread->offsets.v + (v - thread->first) * 8 });
    core_compute(core, task, pagerank->vertex_cycles);
    for (unsigned i = 0; i < pagerank->degree; i++, e++, local++) {
        if (local % (LINE_BYTES / sizeof(uint32_t)) == 0)
            core_load_stream(core, task,
                             (struct hpa){ thread->edges.v + local * sizeof(uint32_t) });
        if (SIM_UNLIKELY(e + GATHERS_AHEAD == thread->drawn)) {
            draw_edges(thread, thread->drawn);
            thread->drawn += EDGES_DRAWN;
        }
        core_load_async(core, task, thread->gather[e % GATHERS_AHEAD]);
        announce(thread, core, e + GATHERS_AHEAD);
        core_compute(core, task, pagerank->edge_cycles);
        sum += thread->value[e % EDGES_KEPT];
    }
    core_store(core, task, vertex_at(pagerank, v, true));
    thread->pulled++;
    pagerank->next[v] = (float)((1.0 - DAMPING) / (double)pagerank->n_vertices + DAMPING * sum);
}

/* Scores become the contributions of the next iteration. */
static void divide(struct pagerank_thread *thread, struct core *core, struct sim_task *task,
                   uint64_t v)
{
    struct pagerank *pagerank = thread->pagerank;
    if ((v - thread->first) % (LINE_BYTES / sizeof(float)) == 0) {
        core_load_stream(core, task, vertex_at(pagerank, v, true));
        core_load_stream(core, task, (struct hpa){ thread->degrees.v + (v - thread->first) * 4 });
        core_store(core, task, vertex_at(pagerank, v, false));
        core_compute(core, task, LINE_BYTES / sizeof(float));
    }
    pagerank->contribution[v] = contribution(pagerank, v, pagerank->next[v]);
}

static void meet(struct pagerank *pagerank)
{
    struct kernel *kernel = pagerank->host->kernel;
    unsigned generation = pagerank->generation;
    core_drain(os_core(kernel), os_task(kernel));
    if (++pagerank->at_barrier == pagerank->n_threads) {
        pagerank->at_barrier = 0;
        pagerank->generation++;
        k_wake(kernel, &pagerank->barrier);
        return;
    }
    while (pagerank->generation == generation)
        k_wait(kernel, &pagerank->barrier, UINT64_MAX);
}

static void each_vertex(struct pagerank_thread *thread,
                        void (*step)(struct pagerank_thread *, struct core *, struct sim_task *,
                                     uint64_t))
{
    struct kernel *kernel = thread->pagerank->host->kernel;
    for (uint64_t v = thread->first; v < thread->end;) {
        struct core *core = os_core(kernel);
        struct sim_task *task = os_task(kernel);
        for (unsigned i = 0; i < VERTICES_PER_POLL && v < thread->end; i++, v++)
            step(thread, core, task, v);
        os_poll(kernel);
    }
}

static void pagerank_body(void *arg)
{
    struct pagerank_thread *thread = arg;
    struct pagerank *pagerank = thread->pagerank;
    /* begins with the measurement, so that what runs beside it is under way */
    while (!program_measuring(pagerank->program) && !program_ending(pagerank->program))
        k_sleep(pagerank->host->kernel, 10 * SIM_PS_PER_US);
    meet(pagerank);
    if (pagerank->begin_ps == 0)
        pagerank->begin_ps = k_now_ps(pagerank->host->kernel);
    for (unsigned i = 0; i < pagerank->iterations && !program_ending(pagerank->program); i++) {
        each_vertex(thread, pull);
        meet(pagerank);
        each_vertex(thread, divide);
        meet(pagerank);
    }
    pagerank->end_ps = SIM_MAX(pagerank->end_ps, k_now_ps(pagerank->host->kernel));
    if (++pagerank->at_barrier == pagerank->n_threads)
        program_finish(pagerank->program);
}

static void start_thread(struct pagerank *pagerank, unsigned t)
{
    struct pagerank_thread *thread = &pagerank->thread[t];
    struct kernel *kernel = pagerank->host->kernel;
    unsigned cpu = program_cpu(pagerank->host, t / pagerank->threads_per_socket,
                               pagerank->first_core + t % pagerank->threads_per_socket);
    uint64_t n = pagerank->part;
    char name[32];
    *thread = (struct pagerank_thread){ .pagerank = pagerank, .first = t * n };
    thread->end = SIM_MIN(thread->first + n, pagerank->n_vertices);
    thread->contribution = program_buffer(pagerank->program, pagerank->host, cpu,
                                          n * sizeof(float));
    thread->next = program_buffer(pagerank->program, pagerank->host, cpu, n * sizeof(float));
    thread->degrees = program_buffer(pagerank->program, pagerank->host, cpu, n * sizeof(uint32_t));
    thread->offsets = program_buffer(pagerank->program, pagerank->host, cpu, n * sizeof(uint64_t));
    thread->edges = program_buffer(pagerank->program, pagerank->host, cpu,
                                   n * pagerank->degree * sizeof(uint32_t));
    snprintf(name, sizeof(name), "pagerank.%u", t);
    k_thread_new(kernel, name, (int)cpu, pagerank_body, thread);
}

static void pagerank_start(struct program *program)
{
    struct pagerank *pagerank = program->state;
    pagerank->n_sockets = network_sockets(pagerank->host);
    pagerank->n_threads = pagerank->n_sockets * pagerank->threads_per_socket;
    pagerank->n_vertices = UINT64_C(1) << pagerank->scale;
    pagerank->part = (pagerank->n_vertices + pagerank->n_threads - 1) / pagerank->n_threads;
    program->finite = true;
    pagerank->thread = program_zalloc(program, pagerank->n_threads, sizeof(*pagerank->thread));
    for (unsigned t = 0; t < pagerank->n_threads && !program_failed(program); t++)
        start_thread(pagerank, t);
    if (!program_failed(program))
        make_graph(pagerank);
}

/* ---- Measuring
 * ------------------------------------------------------------------------------------ */

static uint64_t edges_done(const struct program *program)
{
    const struct pagerank *pagerank = program->state;
    uint64_t vertices = 0;
    for (unsigned t = 0; t < pagerank->n_threads; t++)
        vertices += pagerank->thread[t].pulled;
    return vertices * pagerank->degree;
}

static const struct program_rate pagerank_rates[] = {
    { "pagerank_edges_per_us", 1e-6, edges_done, NULL },
    { NULL, 0, NULL, NULL },
};

static void pagerank_record(struct program *program, sim_time duration_ps)
{
    struct pagerank *pagerank = program->state;
    double sum = 0;
    (void)duration_ps;
    for (uint64_t v = 0; v < pagerank->n_vertices; v++)
        sum += pagerank->next[v];
    program_metric(program, "pagerank_s", "s",
                   (double)(pagerank->end_ps - pagerank->begin_ps) / 1e12);
    program_metric(program, "pagerank_edges_per_us", "1/us",
                   (double)(pagerank->n_vertices * pagerank->degree * pagerank->iterations) * 1e6 /
                       (double)(pagerank->end_ps - pagerank->begin_ps));
    program_metric(program, "pagerank_score_sum", "1", sum);
}

const struct program_ops program_pagerank_ops = {
    .type = "pagerank",
    .help = "PageRank over a generated power-law graph, with threads on all sockets",
    .state_bytes = sizeof(struct pagerank),
    .params = pagerank_params,
    .records = pagerank_records,
    .rates = pagerank_rates,
    .check = pagerank_check,
    .start = pagerank_start,
    .record = pagerank_record,
};
