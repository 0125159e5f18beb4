/*
 * Models: a protocol analyser on the links of a run: a line for each TLP when its receiver gets it,
 *   in the order in which that happens, with the request that a completion answers; and how many
 *   TLPs and bytes of each type went over each direction of each link.
 * Does not model: DLLPs and ordered sets; replays (a TLP that was sent again stands there once,
 *   when it got through).
 * Timing: sent is when the first byte goes on the wire, arrived when the receiver's model has the
 *   TLP: at its last byte or, where the receiver cuts through, at its first.
 * Sources: PCI Express Base 3.1, 2.2 (fields), 2.2.5 (byte enables), 2.2.9 (completions);
 *   docs/traces.md.
 */
#include "models/trace/tlp_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX 512u
#define N_BUCKETS      256u /* of requests under way, for each direction */

/* A request that was not answered yet. */
struct asked {
    struct asked *next;
    sim_time sent_ps;
    uint64_t address;
    uint16_t requester_id, tag;
    uint8_t domain, type;
};

struct tlp_count {
    uint64_t tlps, wire_bytes, payload_bytes;
};

struct tlp_direction {
    struct pcie_tap tap;
    struct tlp_log *log;
    struct tlp_direction *reverse;
    struct pcie_port *port;
    const char *link;
    char from[PCIE_PORT_NAME_BYTES], to[PCIE_PORT_NAME_BYTES];
    char arrow;  /* in the order of the link's name, or against it */
    bool logged; /* else it is watched for the requests of the other one */
    struct asked *asked[N_BUCKETS];
    struct tlp_count count[N_TLP_TYPES];
};

struct tlp_log {
    struct sim *sim;
    struct trace_file *file;
    const struct trace_window *window;
    volatile int *done;
    struct tlp_filter filter;
    uint32_t n_directions, n_logged;
    struct tlp_direction *direction;
    struct asked *spare;
};

/* ---- Requests and their completions ---------------------------------------------------------- */

static struct asked **bucket(struct tlp_direction *direction, const struct tlp *tlp)
{
    const uint32_t hash = tlp->tag ^ tlp->requester_id * 31u;

    return &direction->asked[hash % N_BUCKETS];
}

static void note_request(struct tlp_direction *direction, const struct tlp *tlp, sim_time sent_ps)
{
    struct asked **first = bucket(direction, tlp), *asked = direction->log->spare;

    if (asked != NULL)
        direction->log->spare = asked->next;
    else
        asked = sim_zalloc(1, sizeof(*asked));
    *asked = (struct asked){ .next = *first,
                             .sent_ps = sent_ps,
                             .address = tlp->address,
                             .requester_id = tlp->requester_id,
                             .tag = tlp->tag,
                             .domain = tlp->domain,
                             .type = tlp->type };
    *first = asked;
}

/* The request that the completion answers, in *request; false: none is known. The last completion
 * ends it. */
static bool find_request(struct tlp_direction *direction, const struct tlp *tlp,
                         struct asked *request)
{
    struct asked **at = bucket(direction, tlp);

    while (*at != NULL && ((*at)->tag != tlp->tag || (*at)->requester_id != tlp->requester_id ||
                           (*at)->domain != tlp->domain))
        at = &(*at)->next;
    struct asked *asked = *at;
    if (asked == NULL)
        return false;
    *request = *asked;
    if (tlp->type == TLP_CPL || tlp->byte_count <= tlp->length_bytes) {
        *at = asked->next;
        asked->next = direction->log->spare;
        direction->log->spare = asked;
    }
    return true;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static const char *status_text(const struct tlp *tlp)
{
    if (tlp_class_of(tlp) != TLP_COMPLETION)
        return "-";
    switch (tlp->status) {
    case TLP_SC: return "SC";
    case TLP_UR: return "UR";
    case TLP_CRS: return "CRS";
    case TLP_CA: return "CA";
    default: return "?";
    }
}

/* "f/3": the enabled bytes of the first and of the last double word; a request of one double word
 * has them all in the first, and one of no bytes none (a read that flushes). */
static void put_byte_enables(const struct tlp *tlp, char text[8])
{
    const unsigned offset = (unsigned)(tlp->address & 3),
                   n = (offset + tlp->length_bytes + 3u) / 4u;
    const unsigned last = 0xfu >> (-(offset + tlp->length_bytes) & 3);
    unsigned first = 0xfu << offset & 0xfu;

    if (tlp_class_of(tlp) == TLP_COMPLETION || tlp->type == TLP_MSG)
        snprintf(text, 8, "-");
    else if (tlp->length_bytes == 0)
        snprintf(text, 8, "0/0");
    else if (n == 1)
        snprintf(text, 8, "%x/0", first & last);
    else
        snprintf(text, 8, "%x/%x", first, last);
}

static void put_attributes(const struct tlp *tlp, bool lost, char text[8])
{
    size_t n = 0;

    if ((tlp->attr & TLP_ATTR_NO_SNOOP) != 0)
        text[n++] = 'N';
    if ((tlp->attr & TLP_ATTR_RELAXED_ORDERING) != 0)
        text[n++] = 'R';
    if ((tlp->attr & TLP_ATTR_ID_ORDERING) != 0)
        text[n++] = 'I';
    if ((tlp->attr & TLP_ATTR_STEERED) != 0)
        text[n++] = 'S';
    if (tlp->poisoned)
        text[n++] = 'P';
    if (lost)
        text[n++] = 'L';
    if (n == 0)
        text[n++] = '-';
    text[n] = '\0';
}

static double us(sim_time ps)
{
    return (double)ps / (double)SIM_PS_PER_US;
}

/* What a completion answers: type, address, and how long it took since the request was sent. */
static void put_request(const struct asked *request, sim_time now_ps, char *text, size_t bytes)
{
    if (request == NULL)
        snprintf(text, bytes, "- - -");
    else
        snprintf(text, bytes, "%s 0x%llx %.3f", tlp_type_names[request->type],
                 (unsigned long long)request->address,
                 (double)(now_ps - request->sent_ps) / (double)SIM_PS_PER_NS);
}

static void write_line(const struct tlp_direction *direction, const struct tlp *tlp,
                       const struct asked *request, sim_time sent_ps, bool lost)
{
    struct tlp_log *log = direction->log;
    const sim_time now_ps = sim_now(log->sim);
    const bool completion = tlp_class_of(tlp) == TLP_COMPLETION;
    const bool by_id = tlp->type >= TLP_CFG_RD0 && tlp->type <= TLP_CFG_WR1;
    /* A completion has the low bits of the address on the wire (lower address). */
    const uint64_t address = completion ? tlp->address & 0x7f : tlp->address;
    char line[LINE_BYTES_MAX], id[TLP_ID_BYTES], completer[TLP_ID_BYTES] = "-", enables[8];
    char attributes[8], answered[80], tag[8] = "-";

    if (completion || by_id)
        tlp_id_text(tlp->domain, tlp->completer_id, completer);
    if (tlp_class_of(tlp) != TLP_POSTED)
        snprintf(tag, sizeof(tag), "%u", tlp->tag);
    put_byte_enables(tlp, enables);
    put_attributes(tlp, lost, attributes);
    put_request(request, now_ps, answered, sizeof(answered));
    const int n =
        snprintf(line, sizeof(line),
                 "%14.6f %14.6f %s %c %-6s %-7s %-7s %5s 0x%-12llx %4u %-3s %-3s %-3s %s\n",
                 us(sent_ps), us(now_ps), direction->link, direction->arrow,
                 tlp_type_names[tlp->type], tlp_id_text(tlp->domain, tlp->requester_id, id),
                 completer, tag, (unsigned long long)address, tlp->length_bytes, enables,
                 attributes, status_text(tlp), answered);
    trace_file_add(log->file, line, SIM_MIN((size_t)n, sizeof(line) - 1));
    if (trace_file_ended(log->file))
        *log->done = 1;
}

static void tap_tlp(struct pcie_tap *tap, const struct pcie_port *from, const struct tlp *tlp,
                    sim_time start_ps, bool lost)
{
    struct tlp_direction *direction = SIM_CONTAINER(tap, struct tlp_direction, tap);
    struct tlp_log *log = direction->log;
    const enum tlp_class class = tlp_class_of(tlp);
    struct asked request;
    bool known = false;

    (void)from;
    if (sim_now(log->sim) > log->window->until_ps) {
        *log->done = 1;
        return;
    }
    if (class == TLP_NON_POSTED && !lost)
        note_request(direction, tlp, start_ps);
    else if (class == TLP_COMPLETION)
        known = find_request(direction->reverse, tlp, &request);
    if (!direction->logged || start_ps < log->window->from_ps || !tlp_filter_tlp(&log->filter, tlp))
        return;
    struct tlp_count *count = &direction->count[tlp->type];
    count->tlps++;
    count->wire_bytes += tlp_wire_bytes(tlp);
    count->payload_bytes += tlp_has_data(tlp) ? tlp->length_bytes : 0;
    write_line(direction, tlp, known ? &request : NULL, start_ps, lost);
}

/* ---- Summary --------------------------------------------------------------------------------- */

char *tlp_log_summary(const struct tlp_log *log)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        sim_out_of_memory("a summary of TLPs");
    fprintf(out, "%-40s   %-6s %12s %15s %15s\n", "link", "type", "TLPs", "wire bytes",
            "payload bytes");
    for (uint32_t i = 0; i < log->n_directions; i++) {
        const struct tlp_direction *direction = &log->direction[i];
        for (unsigned type = 0; type < N_TLP_TYPES; type++) {
            const struct tlp_count *count = &direction->count[type];
            if (count->tlps != 0)
                fprintf(out, "%-40s %c %-6s %12llu %15llu %15llu\n", direction->link,
                        direction->arrow, tlp_type_names[type], (unsigned long long)count->tlps,
                        (unsigned long long)count->wire_bytes,
                        (unsigned long long)count->payload_bytes);
        }
    }
    fclose(out);
    return text;
}

/* Each line of the text behind a #. */
static void write_comment(struct trace_file *file, const char *text, bool head)
{
    while (*text != '\0') {
        char line[LINE_BYTES_MAX];
        const size_t bytes = strcspn(text, "\n");
        const int n = snprintf(line, sizeof(line), "# %.*s\n", (int)SIM_MIN(bytes, 500u), text);
        if (head)
            trace_file_head(file, line, (size_t)n);
        else
            trace_file_tail(file, line, (size_t)n);
        text += bytes + (text[bytes] == '\n');
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* All directions of all links: those that are not logged have the requests of those that are. */
static void find_directions(struct tlp_log *log, struct world *world)
{
    struct pcie_context *pcie = world_pcie(world);
    struct pcie_port *end[2];
    struct pcie_link *link;

    while (pcie_context_link(pcie, log->n_directions, NULL, NULL) != NULL)
        log->n_directions++;
    log->n_directions *= 2;
    log->direction = sim_zalloc(log->n_directions, sizeof(*log->direction));
    for (uint32_t i = 0; i < log->n_directions; i++) {
        struct tlp_direction *direction = &log->direction[i];
        link = pcie_context_link(pcie, i / 2, &end[0], &end[1]);
        *direction = (struct tlp_direction){ .tap = { .tlp = tap_tlp },
                                             .log = log,
                                             .reverse = &log->direction[i ^ 1],
                                             .port = end[i & 1],
                                             .link = pcie_link_name(link),
                                             .arrow = (i & 1) == 0 ? '>' : '<' };
        pcie_port_cable_name(end[i & 1], direction->from);
        pcie_port_cable_name(end[~i & 1], direction->to);
        direction->logged = tlp_filter_direction(&log->filter, direction->link, direction->from,
                                                 direction->to);
        log->n_logged += direction->logged;
    }
}

static void no_link(const struct tlp_log *log, struct sim_error_list *errors)
{
    char names[600] = "";

    if (log->n_directions == 0) {
        sim_error_add(errors, NULL, 0, "--tlp: the scenario has no PCIe links");
        return;
    }
    for (uint32_t i = 0; i < log->n_directions; i += 2) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof(names) - n, "%s%s", n != 0 ? ", " : "", log->direction[i].link);
    }
    sim_error_add(
        errors, NULL, 0,
        "--tlp-filter: no link matches link, from and to; there are %s (patterns match the "
        "link's name or a port's)",
        names);
}

static void set_taps(struct tlp_log *log, bool on)
{
    for (uint32_t i = 0; i < log->n_directions; i++) {
        struct tlp_direction *direction = &log->direction[i];
        if (!direction->logged && !direction->reverse->logged)
            continue;
        if (on)
            pcie_port_add_tap(direction->port, &direction->tap);
        else
            pcie_port_remove_tap(direction->port, &direction->tap);
    }
}

struct tlp_log *tlp_log_new(struct world *world, const char *path, const struct tlp_filter *filter,
                            const char *comment, const struct trace_window *window,
                            volatile int *done, struct sim_error_list *errors)
{
    static const char columns[] =
        "sent_us arrived_us link direction type requester completer tag address bytes first/last_BE "
        "attributes status request request_address after_ns";
    struct tlp_log *log = sim_zalloc(1, sizeof(*log));
    struct trace_file_counts counts = { 0 };

    log->sim = world_sim(world);
    log->window = window;
    log->done = done;
    log->filter = *filter;
    find_directions(log, world);
    if (log->n_logged == 0)
        no_link(log, errors);
    else
        log->file = trace_file_new(path, window->limit_bytes, window->ring, window->watch);
    if (log->file != NULL) {
        write_comment(log->file, comment, true);
        write_comment(log->file, columns, true);
    }
    if (log->file != NULL && !trace_file_ended(log->file)) {
        set_taps(log, true);
        return log;
    }
    int why = errno;
    if (log->file != NULL) {
        trace_file_close(log->file, &counts);
        why = counts.error != 0 ? counts.error : EFBIG;
        log->file = NULL;
    }
    tlp_log_end(log, &counts);
    errno = why;
    return NULL;
}

static void free_list(struct asked *asked)
{
    while (asked != NULL) {
        struct asked *next = asked->next;
        free(asked);
        asked = next;
    }
}

void tlp_log_end(struct tlp_log *log, struct trace_file_counts *counts)
{
    *counts = (struct trace_file_counts){ 0 };
    if (log == NULL)
        return;
    if (log->file != NULL) {
        char *summary = tlp_log_summary(log);
        set_taps(log, false);
        write_comment(log->file, summary, false);
        free(summary);
    }
    trace_file_close(log->file, counts);
    for (uint32_t i = 0; i < log->n_directions; i++)
        for (unsigned k = 0; k < N_BUCKETS; k++)
            free_list(log->direction[i].asked[k]);
    free_list(log->spare);
    free(log->direction);
    free(log);
}
