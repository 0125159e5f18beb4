/*
 * Models: joining two ports: what they agree on, the parameters and statistics of a link.
 *   A cable that is pulled, or plugged in again.
 * Does not model: what happens in link training but its time; a link is up from the start at the
 *   agreed width and generation.
 * Timing: see link.c.
 * Sources: PCI Express Base 3.1, 4.2 (encoding, SKP ordered sets).
 */
#include "models/pcie/link/link.h"

#include "models/base/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct param_desc pcie_link_params_table[] = {
    PARAM("generation", PARAM_U32, struct pcie_link_params, generation, 0, 0, 5, PROV_NONE, "",
          "generation, 1 to 5; 0: the most that both ports have"),
    PARAM("lanes", PARAM_U32, struct pcie_link_params, lanes, 0, 0, 32, PROV_NONE, "",
          "width, 1, 2, 4, 8, 12, 16 or 32 lanes; 0: the most that both ports have"),
    PARAM("latency_ns", PARAM_TIME, struct pcie_link_params, latency_ps, 40, 0, 100000,
          PROV_ESTIMATE, "docs/sources.md#g",
          "one way: both PHYs and propagation (5 ns per metre), without serialisation"),
    PARAM("bit_error_ratio", PARAM_DOUBLE, struct pcie_link_params, bit_error_ratio, 0, 0, 0.001,
          PROV_NONE, "", "bits that arrive wrong; 0: none"),
    PARAM("ack_tlps", PARAM_U32, struct pcie_link_params, ack_tlps, 4, 1, 64, PROV_ESTIMATE,
          "docs/sources.md#g", "TLPs that one ACK DLLP acknowledges at most"),
    PARAM("fc_update_ratio_pct", PARAM_U32, struct pcie_link_params, fc_update_ratio_pct, 25, 1,
          100, PROV_ESTIMATE, "docs/sources.md#g",
          "an UpdateFC DLLP once so much of a pool has been freed since the last, in percent"),
    PARAM(
        "skp_overhead_ratio", PARAM_DOUBLE, struct pcie_link_params, skp_overhead_ratio, -1, -1,
        0.1, PROV_DATASHEET, "docs/sources.md#g",
        "share of symbols that SKP ordered sets take; -1: 4/1538 (Gen1/2), 1/376 (Gen3 and later)"),
    PARAM("tlp_align_bytes", PARAM_U32, struct pcie_link_params, tlp_align_bytes, 16, 4, 64,
          PROV_PUBLISHED, "docs/sources.md#g",
          "TLPs start at multiples of this in the transmitters' data paths"),
    PARAM("training_us", PARAM_TIME, struct pcie_link_params, training_ps, 20000, 1, 1000000,
          PROV_ESTIMATE, "docs/sources.md#g",
          "from plugging a cable in until the link is up; links that begin plugged in are up"),
    { .type = PARAM_END },
};

const struct stat_desc pcie_link_stats_table[] = {
    STAT("tlps", STAT_COUNTER, struct pcie_link_stats, tlps, "1", 0, "TLPs sent, without replays"),
    STAT_BOUNDED("tlp_bytes", struct pcie_link_stats, tlp_bytes, "bytes", 0,
                 "bytes of these on the wire, with framing and LCRC", wire),
    STAT("payload_bytes", STAT_COUNTER, struct pcie_link_stats, payload_bytes, "bytes", 0,
         "payload of these"),
    STAT("dllps", STAT_COUNTER, struct pcie_link_stats, dllps, "1", 0, "DLLPs sent"),
    STAT("replays", STAT_COUNTER, struct pcie_link_stats, replays, "1", 0, "TLPs sent again"),
    STAT("nak_dllps", STAT_COUNTER, struct pcie_link_stats, nak_dllps, "1", 0, "NAK DLLPs sent"),
    STAT("credit_stall_ns", STAT_COUNTER, struct pcie_link_stats, credit_stall_ps, "ns", 0.001,
         "time for which the wire stood still while a TLP waited for credits"),
    STAT("lost_tlps", STAT_COUNTER, struct pcie_link_stats, lost_tlps, "1", 0,
         "TLPs that were on the wire when the cable was pulled, or that a fault took"),
    { .kind = STAT_END },
};

/* ---- The cable ------------------------------------------------------------------------------- */

static void go(struct pcie_link *link, bool up)
{
    for (unsigned i = 0; i < 2; i++) {
        struct link_dir *dir = &link->dir[i];
        SIM_ASSERT(dir->from->model->ops->link_change != NULL,
                   "%s: nobody at %s can do without the cable", link->name, dir->from->name);
        dir->lost_up_to = up ? dir->sequence : UINT64_MAX;
        dir->from->down = !up;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct pcie_port *port = link->dir[i].from;
        port->model->ops->link_change(port->model, port->idx);
    }
}

static void is_trained(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    go(SIM_CONTAINER(event, struct pcie_link, trained), true);
}

void pcie_link_set_up(struct pcie_link *link, bool up)
{
    struct sim *sim = pcie_context_sim(link->pcie);
    bool down = link->dir[0].from->down;

    if (!up) {
        sim_cancel(sim, &link->trained);
        if (!down)
            go(link, false);
    } else if (down && !sim_event_pending(&link->trained)) {
        sim_schedule_in(sim, &link->trained, link->training_ps);
    }
}

/* ---- What the ports agree on ----------------------------------------------------------------- */

static bool lanes_exist(uint32_t lanes)
{
    return lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 12 || lanes == 16 ||
           lanes == 32;
}

struct end_check {
    const char *name, *file;
    int line;
    struct sim_error_list *errors;
    bool ok;
};

#define MISTAKE(CHECK, ...)                                                        \
    do {                                                                           \
        sim_error_add((CHECK)->errors, (CHECK)->file, (CHECK)->line, __VA_ARGS__); \
        (CHECK)->ok = false;                                                       \
    } while (0)

const char *pcie_port_cable_name(const struct pcie_port *port, char text[PCIE_PORT_NAME_BYTES])
{
    const struct model *model = port->model;
    const char *dot = strrchr(port->name, '.');

    if (model->ops->names_ports)
        snprintf(text, PCIE_PORT_NAME_BYTES, "%s.%s", model->name,
                 dot != NULL ? dot + 1 : port->name);
    else
        snprintf(text, PCIE_PORT_NAME_BYTES, "%s.p%u", model->name, port->idx);
    return text;
}

/* Of data credits, one TLP of maximum size at least (PCIe Base 3.1, 2.6.1, table 2-37). */
static void check_port(struct end_check *check, const struct pcie_port *port)
{
    static const char *const class_name[] = { "posted", "non-posted", "completion" };
    char text[PCIE_PORT_NAME_BYTES];
    const char *name = pcie_port_cable_name(port, text);

    if (port->integrated)
        MISTAKE(check, "%s: port %s has no socket for a cable, its device is integrated into %s",
                check->name, name, pcie_port_peer(port)->model->name);
    else if (port->link != NULL)
        MISTAKE(check, "%s: port %s is plugged twice, it is in %s already", check->name, name,
                port->link->name);
    if (port->max_generation < 1 || port->max_generation > 5)
        MISTAKE(check, "%s: port %s has generation %u, expected 1 to 5", check->name, name,
                port->max_generation);
    if (!lanes_exist(port->max_lanes))
        MISTAKE(check, "%s: port %s has %u lanes, expected 1, 2, 4, 8, 12, 16 or 32", check->name,
                name, port->max_lanes);
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
        if (port->advertise.header[class] == 0 || port->advertise.data[class] == 0)
            MISTAKE(check, "%s: port %s advertises no %s credits", check->name, name,
                    class_name[class]);
        else if (class != TLP_NON_POSTED &&
                 port->advertise.data[class] < (port->mps_bytes_max + 15) / 16)
            MISTAKE(check,
                    "%s: port %s advertises %u %s data credits, but its Max_Payload_Size of %u "
                    "bytes takes %u",
                    check->name, name, port->advertise.data[class], class_name[class],
                    port->mps_bytes_max, (port->mps_bytes_max + 15) / 16);
}

/* Ports that differ train to the lower: a card in a slot too old or too narrow for it. */
static uint32_t agree_generation(struct end_check *check, uint32_t asked, const struct pcie_port *a,
                                 const struct pcie_port *b)
{
    const struct pcie_port *lower = a->max_generation <= b->max_generation ? a : b;
    char text[PCIE_PORT_NAME_BYTES];

    if (asked > lower->max_generation)
        MISTAKE(check, "%s: generation %u, but port %s has generation %u", check->name, asked,
                pcie_port_cable_name(lower, text), lower->max_generation);
    return asked != 0 ? asked : lower->max_generation;
}

/* A port of 12 lanes trains to 8 with one of 16: none does 12 of 16. */
static uint32_t agree_lanes(struct end_check *check, uint32_t asked, const struct pcie_port *a,
                            const struct pcie_port *b)
{
    const struct pcie_port *lower = a->max_lanes <= b->max_lanes ? a : b;
    char text[PCIE_PORT_NAME_BYTES];

    if (asked != 0 && !lanes_exist(asked))
        MISTAKE(check, "%s: %u lanes, expected 1, 2, 4, 8, 12, 16 or 32", check->name, asked);
    else if (asked > lower->max_lanes)
        MISTAKE(check, "%s: %u lanes, but port %s has %u", check->name, asked,
                pcie_port_cable_name(lower, text), lower->max_lanes);
    if (asked != 0)
        return asked;
    return lower->max_lanes == 12 && a->max_lanes != b->max_lanes ? 8 : lower->max_lanes;
}

static void check_params(struct end_check *check, const struct pcie_link_params *params)
{
    if (params->bit_error_ratio < 0 || params->bit_error_ratio > 0.001)
        MISTAKE(check, "%s: bit_error_ratio %g, expected 0 to 0.001", check->name,
                params->bit_error_ratio);
    if ((params->tlp_align_bytes & (params->tlp_align_bytes - 1)) != 0)
        MISTAKE(check, "%s: tlp_align_bytes %u, expected a power of two", check->name,
                params->tlp_align_bytes);
    if (params->skp_overhead_ratio > 0.1)
        MISTAKE(check, "%s: skp_overhead_ratio %g, expected at most 0.1", check->name,
                params->skp_overhead_ratio);
}

/* ---- Setting up ------------------------------------------------------------------------------ */

static uint64_t byte_q32_ps(uint32_t generation, uint32_t lanes, double skp_ratio)
{
    /* One lane, encoding included: 10 bit times for 8b/10b, 8 * 130 / 128 for 128b/130b. */
    static const double byte_ps[] = { 0, 4000, 2000, 1015.625, 507.8125, 253.90625 };
    double skp = skp_ratio >= 0 ? skp_ratio : generation <= 2 ? 4.0 / 1538 : 1.0 / 376;

    /* Rounded down, so that what is a whole number of picoseconds stays one (x12: thirds). */
    return (uint64_t)(byte_ps[generation] * 4294967296.0 / lanes / (1 - skp));
}

/* The data path of a controller takes what the link carries in a cycle of 250 MHz: 4 bytes for 1
 * GB/s. On narrow links any double word may be the first of a TLP (4.2.2.3.1). */
static void init_data_path(struct link_dir *dir, uint32_t align_bytes)
{
    const struct pcie_port *from = dir->from;
    const uint32_t path_bytes = dir->link->lanes << dir->link->generation >> 1;

    align_bytes = from->tx_align_bytes != 0 ? from->tx_align_bytes
                                            : SIM_MIN(align_bytes, path_bytes);
    while ((align_bytes & (align_bytes - 1)) != 0)
        align_bytes &= align_bytes - 1; /* of 12 lanes */
    dir->align_mask = SIM_MAX(align_bytes, 4) - 1;
    dir->gap_bytes = from->tx_gap_bytes;
}

static void init_pool(struct link_pool *pool, uint32_t header, uint32_t data, uint32_t ratio_pct)
{
    pool->avail_header = pool->open_header = header;
    pool->avail_data = pool->open_data = data;
    pool->finite_header = header != PCIE_CREDITS_INFINITE;
    pool->finite_data = data != PCIE_CREDITS_INFINITE;
    uint64_t header_share = (uint64_t)header * ratio_pct / 100;
    uint64_t data_share = (uint64_t)data * ratio_pct / 100;
    pool->update_header = pool->finite_header ? (uint32_t)SIM_MAX(header_share, 1) : UINT32_MAX;
    pool->update_data = pool->finite_data ? (uint32_t)SIM_MAX(data_share, 1) : UINT32_MAX;
}

static void init_dir(struct pcie_link *link, unsigned side, const struct pcie_link_params *params,
                     struct pcie_port *from, struct pcie_port *to)
{
    struct link_dir *dir = &link->dir[side];

    dir->sim = link->pcie->sim;
    dir->link = link;
    dir->from = from;
    dir->to = to;
    dir->reverse = &link->dir[!side];
    dir->to_cut_through = to->cut_through;
    dir->latency_ps = params->latency_ps;
    dir->ack_tlps = SIM_MAX(params->ack_tlps, 1);
    dir->byte_q32_ps = byte_q32_ps(link->generation, link->lanes, params->skp_overhead_ratio);
    init_data_path(dir, params->tlp_align_bytes);
    dir->dllp_ps = (DLLP_WIRE_BYTES * dir->byte_q32_ps + UINT32_MAX) >> 32;
    /* The TLP that began last, and with bit errors one that is given to the wire ahead. */
    dir->stats.wire = (struct stat_peak){ 0x1p32 * 1e12 / (double)dir->byte_q32_ps,
                                          (params->bit_error_ratio > 0 ? 2 : 1) *
                                              (TLP_PAYLOAD_BYTES_MAX + TLP_OVERHEAD_BYTES_MAX) };
    uint32_t ratio_pct = params->fc_update_ratio_pct != 0 ? params->fc_update_ratio_pct : 25;
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
        init_pool(&dir->pool[class], to->advertise.header[class], to->advertise.data[class],
                  SIM_MIN(ratio_pct, 100));
    link_dir_init_events(dir);
    from->link = link;
    from->tx = dir;
}

static char *text_of(const char *first, const char *second)
{
    size_t bytes = strlen(first) + strlen(second) + 1;
    char *text = sim_zalloc(1, bytes);

    memcpy(text, first, strlen(first));
    memcpy(text + strlen(first), second, strlen(second) + 1);
    return text;
}

/* A direction's stream of errors is named after the link, so that another link draws others. */
static void init_replay(struct link_dir *dir, double bit_error_ratio, const char *suffix)
{
    char *instance = text_of(dir->link->name, suffix);

    dir->replay = link_replay_new(dir, bit_error_ratio, sim_seed(dir->sim), instance);
    free(instance);
}

struct pcie_link *pcie_link_new(struct pcie_context *pcie, const char *name,
                                const struct pcie_link_params *params, struct pcie_port *a,
                                struct pcie_port *b, const char *file, int line,
                                struct sim_error_list *errors)
{
    struct end_check check = { name, file, line, errors, true };
    char text[PCIE_PORT_NAME_BYTES];

    check_port(&check, a);
    check_port(&check, b);
    if (a == b)
        MISTAKE(&check, "%s: both ends are port %s", name, pcie_port_cable_name(a, text));
    check_params(&check, params);
    uint32_t generation = agree_generation(&check, params->generation, a, b);
    uint32_t lanes = agree_lanes(&check, params->lanes, a, b);
    if (!check.ok)
        return NULL;
    struct pcie_link *link = sim_zalloc(1, sizeof(*link));
    link->pcie = pcie;
    link->name = text_of(name, "");
    link->generation = generation;
    link->lanes = lanes;
    link->training_ps = params->training_ps;
    sim_event_init(&link->trained, is_trained);
    init_dir(link, 0, params, a, b);
    init_dir(link, 1, params, b, a);
    if (params->bit_error_ratio > 0) {
        init_replay(&link->dir[0], params->bit_error_ratio, ".a");
        init_replay(&link->dir[1], params->bit_error_ratio, ".b");
    }
    pcie_context_add_link(pcie, link);
    return link;
}

void pcie_link_join(struct pcie_context *pcie, const char *name, struct pcie_port *a,
                    struct pcie_port *b)
{
    struct pcie_port *ports[2] = { a, b };
    const struct pcie_link_params none = { .skp_overhead_ratio = 0 };
    struct pcie_link *link = sim_zalloc(1, sizeof(*link));

    link->pcie = pcie;
    link->name = text_of(name, "");
    link->generation = link->lanes = 1;
    sim_event_init(&link->trained, is_trained);
    for (unsigned side = 0; side < 2; side++) {
        ports[side]->integrated = true;
        for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
            ports[side]->advertise.header[class] = ports[side]->advertise.data[class] =
                PCIE_CREDITS_INFINITE;
    }
    for (unsigned side = 0; side < 2; side++) {
        init_dir(link, side, &none, ports[side], ports[!side]);
        link->dir[side].byte_q32_ps = 0;
        link->dir[side].stats.wire.per_s = 0;
        link->dir[side].dllp_ps = 0;
    }
    pcie_context_add_link(pcie, link);
}

static void release_dir(struct link_dir *dir)
{
    struct pcie_context *pcie = dir->link->pcie;

    sim_cancel(dir->sim, &dir->deliver);
    sim_cancel(dir->sim, &dir->wake);
    tlp_free_list(pcie, dir->flight_first);
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++)
        tlp_free_list(pcie, dir->queue[class].first);
    if (dir->replay != NULL)
        link_replay_free(dir);
    free(dir->owed.entry);
    free(dir->arrivals.entry);
}

void pcie_link_free(struct pcie_link *link)
{
    sim_cancel(pcie_context_sim(link->pcie), &link->trained);
    release_dir(&link->dir[0]);
    release_dir(&link->dir[1]);
    free(link->name);
    free(link);
}

/* ---- Looking at it --------------------------------------------------------------------------- */

void pcie_link_ends(struct pcie_link *link, struct pcie_port **a, struct pcie_port **b)
{
    if (a != NULL)
        *a = link->dir[0].from;
    if (b != NULL)
        *b = link->dir[1].from;
}

const char *pcie_link_name(const struct pcie_link *link)
{
    return link->name;
}

unsigned pcie_port_generation(const struct pcie_port *port)
{
    return port->link->generation;
}

unsigned pcie_port_lanes(const struct pcie_port *port)
{
    return port->link->lanes;
}

struct pcie_port *pcie_port_peer(const struct pcie_port *port)
{
    return port->tx->to;
}

/* The sender commits TLPs to the wire as far ahead as credits go, and counts them then: takes off
 * what has not started, and puts back what had not by the last call. */
static void count_started(struct link_dir *dir)
{
    const sim_time now_ps = sim_now(dir->sim);
    struct pcie_link_stats *stats = &dir->stats;

    stats->tlps += stats->ahead_tlps;
    stats->tlp_bytes += stats->ahead_bytes;
    stats->payload_bytes += stats->ahead_payload_bytes;
    stats->ahead_tlps = stats->ahead_bytes = stats->ahead_payload_bytes = 0;
    for (const struct tlp *tlp = dir->flight_first; tlp != NULL; tlp = tlp->next) {
        if (tlp->head_ps <= now_ps + dir->latency_ps)
            continue;
        stats->ahead_tlps++;
        stats->ahead_bytes += tlp_wire_bytes(tlp);
        stats->ahead_payload_bytes += tlp->payload != NULL ? tlp->length_bytes : 0;
    }
    stats->tlps -= stats->ahead_tlps;
    stats->tlp_bytes -= stats->ahead_bytes;
    stats->payload_bytes -= stats->ahead_payload_bytes;
}

struct pcie_link_stats *pcie_port_stats(struct pcie_port *port)
{
    struct link_dir *dir = port->tx;

    link_settle(dir, sim_now(dir->sim));
    count_started(dir);
    return &dir->stats;
}
