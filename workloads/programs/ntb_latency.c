/*
 * Latency of a store into another host's memory, as SISCI's ping-pong finds it: a processor
 * stores a word through a window into a segment of the other host, whose processor loads that
 * word again and again until it has changed and then stores it into a segment of the first. Half of
 * the round trip is what is recorded; it contains a look at the memory by the processor that waits.
 */

#include "logic/lending/lending.h"
#include "models/os/os.h"
#include "sim/engine/stat.h"
#include "workloads/programs/program.h"

#define SEGMENT  0x4000u /* and the program's number */
#define LOOK_PS  SIM_PS_PER_US
#define WARM_UPS 16u
#define SIDES    2u

struct ntb_latency;
struct latency_side {
    struct ntb_latency *all;
    struct lending_host *host;
    struct kaddr at; /* the word that it waits for */
    struct lend_remote remote;
    unsigned cpu; /* its own, as it spins */
    bool there, connected, done;
};

struct ntb_latency {
    /* parameters */
    const char *on_name, *peer_name;
    uint32_t cpu, round_trips;
    /* running */
    struct program *program;
    uint32_t segment;
    struct latency_side side[SIDES];
    bool over;
    struct stat_mean half_ns;
};

static const struct param_desc ntb_latency_params[] = {
    PARAM_TEXT("on", struct ntb_latency, on_name, "", "the host that stores first"),
    PARAM_TEXT("peer", struct ntb_latency, peer_name, "", "the host that answers"),
    PARAM(
        "cpu", PARAM_U32, struct ntb_latency, cpu, 1, 1, 255, PROV_NONE, "",
        "that spins, on both hosts, or the next on which no ntb_latency before this one does; CPU 0 "
        "has the bridges' interrupts"),
    PARAM("round_trips", PARAM_U32, struct ntb_latency, round_trips, 1000, 1, 10000000, PROV_NONE,
          "", "that are measured"),
    { .type = PARAM_END },
};

static const struct record_desc ntb_latency_records[] = {
    { "write_latency_ns", RECORD_METRIC, "ns",
      "a store until the other processor has seen it: half a round trip, mean" },
    { "latency_ns", RECORD_HISTOGRAM, "ns", "the same, each" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void ntb_latency_check(struct program *program, struct sim_error_list *errors)
{
    struct ntb_latency *all = program->state;
    const char *const key[SIDES] = { "on", "peer" };
    const char *const name[SIDES] = { all->on_name, all->peer_name };
    all->program = program;
    for (unsigned i = 0; i < SIDES; i++) {
        struct latency_side *side = &all->side[i];
        side->all = all;
        side->host = program_member(program, key[i], name[i], true, errors);
        if (side->host == NULL)
            continue;
        side->cpu = program_take_spinning_cpu(program, side->host, all->cpu);
        if (lending_cpus(side->host) <= side->cpu)
            program_mistake(program, all->cpu == 1 ? key[i] : "cpu", errors,
                            all->cpu != 1    ? "a CPU that both hosts have"
                            : side->cpu == 1 ? "a host with two cores"
                                             : "a host with a core for each ntb_latency on it",
                            NULL);
    }
    if (all->side[0].host != NULL && all->side[0].host == all->side[1].host)
        program_mistake(program, "peer", errors, "another host than `on`", NULL);
}

/* Memory for the other, and a window onto its. */
static bool open_side(struct latency_side *side)
{
    struct lending_host *host = side->host;
    struct latency_side *other = &side->all->side[side == side->all->side ? 1 : 0];
    struct lend_error error = { 0 };
    int status = lend_segment_new(host->lend, side->all->segment, K_PAGE_BYTES, &side->at, &error);
    side->there = status == 0;
    while (status == 0 && !other->there)
        k_sleep(host->kernel, LOOK_PS);
    if (status == 0) {
        lend_discover(host->lend);
        status = lend_segment_connect(host->lend, other->host->number, side->all->segment,
                                      &side->remote, &error);
    }
    side->connected = status == 0;
    if (status != 0)
        k_fault(host->kernel, "%s: %s (%d)", host->name, error.text, status);
    while (status == 0 && !other->connected)
        k_sleep(host->kernel, LOOK_PS);
    return status == 0;
}

static void close_side(struct latency_side *side)
{
    struct latency_side *other = &side->all->side[side == side->all->side ? 1 : 0];
    side->done = true;
    while (!other->done)
        k_sleep(side->host->kernel, LOOK_PS);
    lend_segment_disconnect(&side->remote);
    lend_segment_free(side->host->lend, side->all->segment);
}

static void store(struct latency_side *side, uint32_t word)
{
    lend_map_write(side->remote.adapter, &side->remote.map, 0, 4, word);
}

/* A user's loop: threads of the CPU (the lending server may be one) run when their turn comes. */
static uint32_t await_change(struct latency_side *side, uint32_t from)
{
    uint32_t word = from;
    while (word == from && !side->all->over) {
        k_load(side->host->kernel, side->at, &word, sizeof word);
        os_poll(side->host->kernel);
    }
    return word;
}

static void ping_body(void *arg)
{
    struct latency_side *side = arg;
    struct ntb_latency *all = side->all;
    struct kernel *kernel = side->host->kernel;
    uint32_t word = 0;
    if (!open_side(side))
        return;
    while (!program_measuring(all->program) && !program_ending(all->program))
        k_sleep(kernel, LOOK_PS);
    for (unsigned i = 0; i < WARM_UPS + all->round_trips; i++) {
        uint64_t start_ps = k_now_ps(kernel);
        store(side, word + 1);
        word = await_change(side, word);
        uint64_t half_ps = (k_now_ps(kernel) - start_ps) / 2;
        if (word != i + 1)
            k_fault(kernel, "round trip %u: %u came back", i, word);
        if (i < WARM_UPS)
            continue;
        stat_mean_add(&all->half_ns, (double)half_ps / 1000.0);
        stat_histogram_add(&all->program->histogram_ps, half_ps);
    }
    all->over = true;
    program_finish(all->program);
    close_side(side);
}

static void pong_body(void *arg)
{
    struct latency_side *side = arg;
    uint32_t word = 0;
    if (!open_side(side))
        return;
    while (!side->all->over) {
        uint32_t now = await_change(side, word);
        if (now != word)
            store(side, now);
        word = now;
    }
    close_side(side);
}

static void ntb_latency_start(struct program *program)
{
    struct ntb_latency *all = program->state;
    program->finite = true;
    all->segment = SEGMENT + program_number(program);
    stat_mean_init(&all->half_ns);
    lending_borrows_more(program->lending);
    for (unsigned i = 0; i < SIDES; i++) {
        struct latency_side *side = &all->side[i];
        program_lending_uses_cpu(program, side->host, side->cpu);
        k_thread_new(side->host->kernel, i == 0 ? "ntb_latency.ping" : "ntb_latency.pong",
                     (int)side->cpu, i == 0 ? ping_body : pong_body, side);
    }
}

static void ntb_latency_record(struct program *program, sim_time duration_ps)
{
    struct ntb_latency *all = program->state;
    (void)duration_ps;
    program_metric(program, "write_latency_ns", "ns", stat_mean_value(&all->half_ns));
    program_histogram(program, "latency_ns", "ns", 0.001, &program->histogram_ps);
}

const struct program_ops program_ntb_latency_ops = {
    .type = "ntb_latency",
    .help = "stores through a window that the other host's processor waits for, to and fro",
    .state_bytes = sizeof(struct ntb_latency),
    .params = ntb_latency_params,
    .records = ntb_latency_records,
    .check = ntb_latency_check,
    .start = ntb_latency_start,
    .record = ntb_latency_record,
};
