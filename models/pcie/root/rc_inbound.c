/*
 * Inbound requests of devices.
 *
 * Models: Bus Master Enable of the root port, DMA remapping, interrupts, splitting into cache
 *   lines, posted ordering (a write becomes visible when all of its lines are ordered and every
 *   earlier write of its port is; a read looks at memory after that), completions cut at lines, of
 *   at most completion_bytes_max (of short requests the first is of one line), in address order. A
 *   write with a steering tag is prefetched by the CPU that it names (direct cache access). With
 *   write_lines: each line of a write holds one of so many buffers of its stack, from before
 *   `inbound` until the answer to it has come back, `outbound` after it was ordered; writes of all
 *   ports of the stack take them in the order of their arrival. With read_lines: so does each line
 *   of a read, with as many of its own; the request keeps its credits until its last line has one.
 * Does not model: memory that is marked poisoned, atomic operations, no-snoop (treated as snooped),
 *   relaxed ordering in memory.
 * Timing: read of one line = inbound + IOMMU + numa_dma_read + outbound; a request of n lines
 *   issues them line_interval apart. Write: inbound + IOMMU + the latest numa_dma_write, not before
 *   the port's previous write. An interrupt: as a write, then over the interconnect if it is for a
 *   core of another socket (core i has APIC ID i). Lowest priority, to a logical mask of cores 0 to
 *   7: they get such interrupts in turns, in the order of bus, die and core, which is that of the
 *   hub's registers of their task priorities (Linux leaves these equal); what Linux calls them is
 *   another order.
 * Sources: PCIe Base 3.1, 2.3.1, 2.4; docs/sources.md#a4, #c2, #e1.
 */
#include "hw/pci_regs.h"
#include "models/pcie/link/tlp_trace.h"
#include "models/pcie/root/rc_internal.h"

#define INTERRUPT_BASE  UINT64_C(0xfee00000)
#define INTERRUPT_BYTES UINT64_C(0x100000)

/* One line of a followed request; timed: its stamp. */
static __attribute__((cold)) void trace_line(const struct rc_state *state,
                                             const struct sim_stamp *timed, struct hpa hpa,
                                             unsigned bytes, sim_time at_ps, sim_time done_ps,
                                             enum numa_source source, bool write)
{
    struct numa *numa = state->host->numa;
    struct tlp_trace_record *record = tlp_trace_add(timed, TRACE_LINE, "", at_ps);

    record->line.hpa = hpa.v;
    record->line.bytes = bytes;
    record->line.done_ps = done_ps;
    record->line.home = physmem_node_of(numa_physmem(numa), hpa);
    record->line.llc = numa_llc_holder(numa, hpa);
    record->line.source = (uint8_t)source;
    record->line.socket = (uint8_t)state->socket;
    record->line.write = write;
}

static void rc_done_with(struct model *rc, struct tlp *tlp)
{
    pcie_port_release(&rc->ports[tlp->ingress], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(rc->sim));
    tlp_free(rc->pcie, tlp);
}

/* The time at which a line request of the socket may go, not before at_ps. */
static sim_time rc_line_slot(struct rc_state *state, sim_time now_ps, sim_time at_ps)
{
    return rc_slots_take(&state->lines, now_ps, at_ps, state->params.line_interval_ps);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void completion_leaves(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    (void)sim;
    rc_forward_own(step, step->tlp->ingress);
}

void rc_complete_at(struct model *rc, struct tlp *completion, uint32_t port, sim_time at_ps)
{
    struct rc_step *step = rc_step_new(rc, completion, completion_leaves);
    if (tlp_traced(completion))
        tlp_trace_add_tlp(completion, TRACE_COMPLETION, rc->name, at_ps);
    sim_stamp_mark(completion->stamp, PART_ROOT_COMPLEX, at_ps);
    completion->ingress = (uint16_t)port;
    sim_schedule(rc->sim, &step->event, at_ps);
}

/* Hands a completion over to the port it came to, at ready_ps + outbound. */
static void rc_complete(struct model *rc, struct tlp *completion, uint32_t port, sim_time ready_ps)
{
    const struct rc_port *out = &rc_of(rc)->port[port];
    completion->digest = out->cfg.live.ecrc;
    rc_complete_at(rc, completion, port, ready_ps + out->outbound_ps);
}

/* Answers with an error, or drops what wants no answer; the request is used up. */
static void rc_refuse(struct model *rc, struct tlp *tlp, enum tlp_status status, sim_time ready_ps)
{
    if (tlp_traced(tlp))
        tlp_trace_add_tlp(tlp, TRACE_REFUSED, rc->name, ready_ps);
    if (tlp_class_of(tlp) == TLP_NON_POSTED) {
        struct tlp *completion = tlp_completion(rc->pcie, tlp, rc_id(rc_of(rc)), status);
        rc_complete(rc, completion, tlp->ingress, ready_ps);
    }
    rc_done_with(rc, tlp);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

/* The lines of a timed request run side by side, each with a stamp of its own; that of the last one
 * is kept. NULL if the request is not timed. */
static struct sim_stamp *timed_line(const struct sim_stamp *stamp, struct sim_stamp *line,
                                    sim_time at_ps)
{
    if (stamp == NULL)
        return NULL;
    *line = *stamp;
    sim_stamp_mark(line, PART_ROOT_COMPLEX, at_ps);
    return line;
}

/* What of `bytes` from hpa on lies in its line. */
static inline unsigned in_line(struct hpa hpa, unsigned bytes)
{
    return SIM_MIN(bytes, (unsigned)(LINE_BYTES - (hpa.v & (LINE_BYTES - 1))));
}

/* A request that is being read. */
struct reading {
    const struct rc_port *port;
    struct rc_stack *stack;
    sim_time now_ps;
    sim_time begun_ps; /* when its last line so far had a buffer */
};

/* Waits for the next buffer of the stack, if they are bound. */
static inline void read_buffer_wait(struct rc_state *state, struct reading *r)
{
    const sim_time *free_ps = r->stack->read_free_ps;

    if (free_ps == NULL)
        return;
    const sim_time line_ps = free_ps[r->stack->read_next] + r->port->inbound_ps;
    r->begun_ps = SIM_MAX(r->begun_ps, line_ps);
    state->stats.read_line_wait_ps += r->begun_ps - r->now_ps;
}

/* Holds it until the data are back, and through the root complex. */
static inline void read_buffer_hold(const struct rc_state *state, struct reading *r,
                                    sim_time done_ps)
{
    struct rc_stack *stack = r->stack;

    if (stack->read_free_ps == NULL)
        return;
    stack->read_free_ps[stack->read_next] = done_ps + r->port->outbound_ps;
    stack->read_next = stack->read_next + 1 == state->params.read_lines ? 0 : stack->read_next + 1;
}

/* Reads the lines of [hpa, hpa + bytes); returns when the last is back, its stamp in *last. Nearly
 * all requests have no stamp: a copy of the code for them keeps no stamps of lines. */
static inline __attribute__((always_inline)) sim_time
read_lines(struct rc_state *state, struct reading *r, struct hpa hpa, unsigned bytes,
           const struct sim_stamp *stamp, struct sim_stamp *last)
{
    struct numa *numa = state->host->numa;
    sim_time ready_ps = 0, held_ps = 0;
    for (unsigned n = in_line(hpa, bytes); bytes != 0; n = SIM_MIN(bytes, (unsigned)LINE_BYTES)) {
        read_buffer_wait(state, r);
        sim_time at_ps = rc_line_slot(state, r->now_ps, r->begun_ps);
        struct sim_stamp line, *timed = timed_line(stamp, &line, at_ps);
        enum numa_source source = NUMA_LLC;
        sim_time done_ps = numa_dma_read(numa, state->socket, hpa, n, at_ps, timed,
                                         timed != NULL ? &source : NULL);
        held_ps += done_ps - at_ps;
        read_buffer_hold(state, r, done_ps);
        if (stamp_traced(timed))
            trace_line(state, timed, hpa, n, at_ps, done_ps, source, false);
        if (timed != NULL && done_ps >= ready_ps)
            *last = line;
        ready_ps = SIM_MAX(ready_ps, done_ps);
        hpa.v += n;
        bytes -= n;
    }
    state->stats.read_line_held_ps += held_ps;
    return ready_ps;
}

static __attribute__((noinline)) sim_time
read_lines_timed(struct rc_state *state, struct reading *r, struct hpa hpa, unsigned bytes,
                 const struct sim_stamp *stamp, struct sim_stamp *last)
{
    return read_lines(state, r, hpa, bytes, stamp, last);
}

/* Lines of a completion that are read as a run: more than it usually carries. */
#define READ_RUN_LINES 16u

/* How many lines [hpa, hpa + bytes) has; bytes > 0. */
static inline unsigned n_lines(struct hpa hpa, unsigned bytes)
{
    return (unsigned)((hpa.v + bytes - 1) / LINE_BYTES - hpa.v / LINE_BYTES) + 1;
}

/* Whether none of the request's lines so far has waited for a buffer, and none of the next n has
 * to. */
static inline bool read_buffers_free(const struct rc_state *state, const struct reading *r,
                                     unsigned n)
{
    unsigned next = r->stack->read_next;
    bool are_free = r->begun_ps == r->now_ps && n <= state->params.read_lines;

    for (unsigned i = 0; are_free && i < n; i++) {
        are_free = r->stack->read_free_ps[next] + r->port->inbound_ps <= r->now_ps;
        next = next + 1 == state->params.read_lines ? 0 : next + 1;
    }
    return are_free;
}

/* The same as read_lines() without a stamp: as one run, if the lines go one right after the
 * other. */
static sim_time read_run(struct rc_state *state, struct reading *r, struct hpa hpa, unsigned bytes)
{
    const sim_time interval_ps = state->params.line_interval_ps;
    const unsigned n = n_lines(hpa, bytes);
    const bool bound = r->stack->read_free_ps != NULL;
    sim_time done_ps[READ_RUN_LINES];
    struct numa_run run = {
        .hpa = hpa, .bytes = bytes, .interval_ps = interval_ps, .done_ps = bound ? done_ps : NULL
    };

    if ((bound && (n > READ_RUN_LINES || !read_buffers_free(state, r, n))) ||
        SIM_UNLIKELY(!rc_slots_take_run(&state->lines, r->now_ps, interval_ps, n, &run.at_ps)))
        return read_lines(state, r, hpa, bytes, NULL, NULL);
    const struct numa_run_done done = numa_dma_read_run(state->host->numa, state->socket, &run);
    for (unsigned i = 0; bound && i < n; i++)
        read_buffer_hold(state, r, done_ps[i]);
    state->stats.read_line_held_ps += done.held_ps;
    return done.last_ps;
}

static struct tlp *make_completion(struct model *rc, struct tlp *request, uint64_t address,
                                   unsigned bytes, unsigned remaining)
{
    struct tlp *completion = tlp_completion(rc->pcie, request, rc_id(rc_of(rc)), TLP_SC);
    completion->address = address;
    completion->byte_count = (uint16_t)remaining;
    completion->length_bytes = (uint16_t)bytes;
    completion->bulk = request->bulk;
    tlp_payload_new(rc->pcie, completion);
    return completion;
}

/* Most that a completion carries. */
static uint64_t completion_bytes(const struct rc_state *state, const struct tlp *request)
{
    return SIM_MIN(state->params.completion_bytes_max,
                   (uint64_t)cfg_mps_bytes(&state->port[request->ingress].cfg));
}

/* Bytes of the completion from address on: as many as may be up to a multiple of the Read
 * Completion Boundary, which is a line. */
static unsigned completion_cut(uint64_t address, uint64_t most, unsigned remaining)
{
    const uint64_t end = (address + most) & ~(uint64_t)(LINE_BYTES - 1);
    return SIM_MIN(remaining, (unsigned)(end - address));
}

/* The lines of a read and what they take of the root complex itself; read_lines() adds the rest. */
static void count_read_lines(struct rc_state *state, const struct tlp *tlp)
{
    const struct rc_port *port = &state->port[tlp->ingress];
    const uint64_t first = tlp->address / LINE_BYTES;
    const uint64_t n = (tlp->address + tlp->length_bytes - 1) / LINE_BYTES - first + 1;

    state->stats.read_lines += n;
    state->stats.read_line_held_ps += n * (port->inbound_ps + port->outbound_ps);
}

/* All lines of the read have had their buffers. */
static void read_leaves(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);

    (void)sim;
    rc_done_with(step->rc, step->tlp);
    rc_step_free(step);
}

/* Ordering is satisfied: samples memory and sends the completions in address order. */
static void read_issues(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    struct model *rc = step->rc;
    struct rc_state *state = rc_of(rc);
    struct tlp *tlp = step->tlp;
    struct physmem *mem = numa_physmem(state->host->numa);
    struct sim_stamp *timed = tlp->stamp;
    /* The first line of a short read does not wait for the others. */
    const bool early = tlp->length_bytes <= state->params.combine_above_bytes;
    const uint64_t later = completion_bytes(state, tlp);
    uint64_t chunk = early ? LINE_BYTES : later;
    unsigned remaining = tlp->length_bytes;
    uint64_t address = tlp->address;
    struct hpa hpa = step->hpa;
    const struct rc_port *port = &state->port[tlp->ingress];
    struct reading reading = { port, &state->stack[port->stack], sim_now(sim), sim_now(sim) };
    sim_time ready_ps = 0;

    count_read_lines(state, tlp);
    tlp->stamp = NULL;
    while (remaining != 0) {
        const unsigned n = completion_cut(address, chunk, remaining);
        struct tlp *completion = make_completion(rc, tlp, address, n, remaining);
        struct sim_stamp last;
        sim_time done_ps = SIM_LIKELY(timed == NULL)
                               ? read_run(state, &reading, hpa, n)
                               : read_lines_timed(state, &reading, hpa, n, timed, &last);
        ready_ps = SIM_MAX(ready_ps, done_ps);
        if (completion->bulk)
            physmem_read_marks(mem, hpa, completion->payload, n);
        else
            physmem_read(mem, hpa, completion->payload, n);
        if (timed != NULL) {
            completion->stamp = stamp_copy(rc->pcie, &last);
            sim_stamp_mark(completion->stamp, PART_ROOT_COMPLEX, ready_ps);
        }
        rc_complete(rc, completion, tlp->ingress, ready_ps);
        address += n;
        hpa.v += n;
        remaining -= n;
        chunk = later;
    }
    if (timed != NULL)
        stamp_free(rc->pcie, timed);
    sim_event_init(&step->event, read_leaves);
    if (SIM_UNLIKELY(reading.begun_ps > sim_now(sim)))
        sim_schedule(sim, &step->event, reading.begun_ps);
    else
        read_leaves(sim, &step->event);
}

static void rc_read(struct model *rc, struct tlp *tlp, struct hpa hpa, sim_time at_ps)
{
    struct rc_state *state = rc_of(rc);
    struct rc_step *step = rc_step_new(rc, tlp, read_issues);
    step->hpa = hpa;
    at_ps = SIM_MAX(at_ps, state->port[tlp->ingress].last_commit_ps);
    sim_stamp_mark(tlp->stamp, PART_ROOT_COMPLEX, at_ps);
    state->stats.reads++;
    state->stats.read_bytes += tlp->length_bytes;
    numa_prefetch(state->host->numa, state->socket, hpa, tlp->length_bytes);
    physmem_prefetch(numa_physmem(state->host->numa), hpa, tlp->length_bytes);
    sim_schedule(rc->sim, &step->event, at_ps);
}

/* ---- Writes ---------------------------------------------------------------------------------- */

/* A stamped write is visible: its latency and where it went. */
static void record_write(struct rc_state *state, struct sim_stamp *stamp, sim_time now_ps)
{
    sim_stamp_mark(stamp, PART_ROOT_COMPLEX, now_ps);
    stat_mean_add(&state->stats.write_latency_ns, (double)(now_ps - stamp->start_ps) / 1000.0);
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++)
        stat_mean_add(&state->stats.write_part_ns[i], (double)stamp->part_ps[i] / 1000.0);
}

/* All lines are ordered: the bytes become visible, the receive buffer is free. */
static void write_commits(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    struct tlp *tlp = step->tlp;
    struct physmem *mem = numa_physmem(rc_of(step->rc)->host->numa);
    if (tlp->stamp != NULL && !tlp->stamp->uncounted)
        record_write(rc_of(step->rc), tlp->stamp, sim_now(sim));
    if (tlp_traced(tlp))
        tlp_trace_add_tlp(tlp, TRACE_VISIBLE, step->rc->name, sim_now(sim));
    if (tlp->bulk)
        physmem_write_marks(mem, step->hpa, tlp->payload, tlp->length_bytes);
    else
        physmem_write(mem, step->hpa, tlp->payload, tlp->length_bytes);
    rc_done_with(step->rc, tlp);
    rc_step_free(step);
}

/* The buffers that lines of the port's writes take; NULL: not bound. */
static struct rc_stack *write_buffers(struct rc_state *state, const struct rc_port *port)
{
    struct rc_stack *stack = &state->stack[port->stack];

    return stack->free_ps != NULL ? stack : NULL;
}

/* When a line that could pass `inbound` at at_ps does so, for the next buffer of its stack. */
static sim_time write_buffer_wait(struct rc_state *state, const struct rc_stack *stack,
                                  const struct rc_port *port, sim_time at_ps)
{
    const sim_time free_ps = stack->free_ps[stack->next] + port->inbound_ps;

    if (free_ps <= at_ps)
        return at_ps;
    state->stats.write_line_wait_ps += free_ps - at_ps;
    return free_ps;
}

/* The line that passed `inbound` at at_ps is ordered at done_ps: the buffer is held until then. */
static void write_buffer_hold(struct rc_state *state, struct rc_stack *stack,
                              const struct rc_port *port, sim_time at_ps, sim_time done_ps)
{
    const sim_time free_ps = done_ps + port->outbound_ps;

    stack->free_ps[stack->next] = free_ps;
    stack->next = stack->next + 1 == state->params.write_lines ? 0 : stack->next + 1;
    state->stats.write_lines++;
    state->stats.write_line_held_ps += free_ps - at_ps + port->inbound_ps;
}

/* The CPU that the steering tag names prefetches the line as soon as it is written. */
static __attribute__((cold)) void steer(struct rc_state *state, const struct tlp *tlp,
                                        struct hpa hpa, sim_time at_ps)
{
    if (tlp->tag < numa_cores(state->host->numa))
        numa_load(state->host->numa, tlp->tag, hpa, at_ps, NULL);
}

/* Orders the lines of a write that may go from arrive_ps on, and is translated at translated_ps;
 * returns when the last is ordered, its stamp in *stamp. Nearly all writes have no stamp: a copy of
 * the code for them keeps no stamps of lines. */
static inline __attribute__((always_inline)) sim_time
write_lines(struct model *rc, const struct rc_port *port, const struct tlp *tlp, struct hpa hpa,
            sim_time arrive_ps, sim_time translated_ps, struct sim_stamp *stamp)
{
    struct rc_state *state = rc_of(rc);
    struct rc_stack *buffers = write_buffers(state, port);
    struct numa *numa = state->host->numa;
    const sim_time now_ps = sim_now(rc->sim);
    sim_time ordered_ps = 0;
    struct sim_stamp last;
    unsigned left = tlp->length_bytes;

    for (unsigned n = in_line(hpa, left); left != 0; n = SIM_MIN(left, (unsigned)LINE_BYTES)) {
        const sim_time free_ps = buffers == NULL
                                     ? arrive_ps
                                     : write_buffer_wait(state, buffers, port, arrive_ps);
        const sim_time slot_ps = rc_line_slot(state, now_ps, free_ps);
        const sim_time at_ps = SIM_MAX(slot_ps, translated_ps);
        struct sim_stamp line, *timed = timed_line(stamp, &line, at_ps);
        enum numa_source source = NUMA_LLC;
        const sim_time done_ps = numa_dma_write(numa, state->socket, hpa, n, at_ps, timed,
                                                timed != NULL ? &source : NULL);
        if (buffers != NULL)
            write_buffer_hold(state, buffers, port, free_ps, done_ps);
        if (SIM_UNLIKELY(tlp->attr & TLP_ATTR_STEERED))
            steer(state, tlp, hpa, done_ps);
        if (stamp_traced(timed))
            trace_line(state, timed, hpa, n, at_ps, done_ps, source, true);
        if (timed != NULL && done_ps >= ordered_ps)
            last = line;
        ordered_ps = SIM_MAX(ordered_ps, done_ps);
        hpa.v += n;
        left -= n;
    }
    if (stamp != NULL)
        *stamp = last;
    return ordered_ps;
}

static __attribute__((noinline)) sim_time
write_lines_timed(struct model *rc, const struct rc_port *port, const struct tlp *tlp,
                  struct hpa hpa, sim_time arrive_ps, sim_time translated_ps)
{
    return write_lines(rc, port, tlp, hpa, arrive_ps, translated_ps, tlp->stamp);
}

/* The same as write_lines() without a stamp: as one run, if the lines go one right after the
 * other. */
static sim_time write_run(struct model *rc, const struct rc_port *port, const struct tlp *tlp,
                          struct hpa hpa, sim_time arrive_ps, sim_time translated_ps)
{
    struct rc_state *state = rc_of(rc);
    const sim_time interval_ps = state->params.line_interval_ps;
    struct numa_run run = { .hpa = hpa,
                            .bytes = tlp->length_bytes,
                            .interval_ps = interval_ps,
                            .not_before_ps = translated_ps };

    if (SIM_UNLIKELY(write_buffers(state, port) != NULL || (tlp->attr & TLP_ATTR_STEERED) != 0 ||
                     tlp->length_bytes == 0) ||
        SIM_UNLIKELY(!rc_slots_take_run(&state->lines, arrive_ps, interval_ps,
                                        n_lines(hpa, tlp->length_bytes), &run.at_ps)))
        return write_lines(rc, port, tlp, hpa, arrive_ps, translated_ps, NULL);
    return numa_dma_write_run(state->host->numa, state->socket, &run).last_ps;
}

static void rc_write(struct model *rc, struct tlp *tlp, struct hpa hpa, sim_time arrive_ps,
                     sim_time translated_ps)
{
    struct rc_state *state = rc_of(rc);
    struct rc_step *step = rc_step_new(rc, tlp, write_commits);
    struct rc_port *port = &state->port[tlp->ingress];
    const sim_time ordered_ps = SIM_LIKELY(tlp->stamp == NULL)
                                    ? write_run(rc, port, tlp, hpa, arrive_ps, translated_ps)
                                    : write_lines_timed(rc, port, tlp, hpa, arrive_ps,
                                                        translated_ps);

    step->hpa = hpa;
    port->last_commit_ps = SIM_MAX(port->last_commit_ps, ordered_ps);
    state->stats.writes++;
    state->stats.write_bytes += tlp->length_bytes;
    physmem_prefetch(numa_physmem(state->host->numa), hpa, tlp->length_bytes);
    sim_schedule(rc->sim, &step->event, port->last_commit_ps);
}

bool rc_is_interrupt(uint64_t address)
{
    return address - INTERRUPT_BASE < INTERRUPT_BYTES;
}

static void interrupt_crossed(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    struct root_complex_host *host = rc_of(step->rc)->host;
    (void)sim;
    if (host->interrupt != NULL)
        host->interrupt(host->interrupt_context, step->destination, step->vector);
    rc_step_free(step);
}

/* Processors of this socket have it at once, those of another when it has crossed. */
void rc_interrupt_deliver(struct model *rc, uint32_t destination, uint8_t vector)
{
    struct rc_state *state = rc_of(rc);
    struct root_complex_host *host = state->host;
    sim_time now_ps = sim_now(rc->sim), there_ps = now_ps;
    state->stats.interrupts++;
    if (host->interrupt == NULL)
        return;
    if (destination < numa_cores(host->numa))
        there_ps = numa_io_send(host->numa, state->socket,
                                numa_socket_of_core(host->numa, destination), NUMA_IO_DATA, now_ps);
    if (there_ps == now_ps) {
        host->interrupt(host->interrupt_context, destination, vector);
        return;
    }
    struct rc_step *step = rc_step_new(rc, NULL, interrupt_crossed);
    step->destination = destination;
    step->vector = vector;
    sim_schedule(rc->sim, &step->event, there_ps);
}

/* To one CPU of the mask: the next one round, as all have the same task priority. */
static void redirect(struct model *rc, uint32_t cpus, uint8_t vector)
{
    struct root_complex_host *host = rc_of(rc)->host;

    if (cpus == 0)
        return;
    do {
        host->redirected = (host->redirected + 1) % 8;
    } while ((cpus >> host->redirected & 1) == 0);
    rc_interrupt_deliver(rc, host->redirected, vector);
}

static void deliver_logical(struct model *rc, uint32_t cpus, uint32_t data)
{
    if (INTERRUPT_LOWEST(data)) {
        redirect(rc, cpus, (uint8_t)data);
        return;
    }
    for (; cpus != 0; cpus &= cpus - 1)
        rc_interrupt_deliver(rc, (uint32_t)__builtin_ctz(cpus), (uint8_t)data);
}

static void interrupt_arrives(struct sim *sim, struct sim_event *event)
{
    struct rc_step *step = SIM_CONTAINER(event, struct rc_step, event);
    struct rc_state *state = rc_of(step->rc);
    struct tlp *tlp = step->tlp;
    uint32_t data = 0, destination = INTERRUPT_DESTINATION(tlp->address);
    (void)sim;
    for (unsigned i = 0; i < 4 && i < tlp->length_bytes; i++)
        data |= (uint32_t)tlp->payload[i] << (8 * i);
    uint8_t vector = (uint8_t)data;
    if (state->iommu != NULL && !iommu_remap_interrupt(state->iommu, tlp->requester_id,
                                                       tlp->address, data, &destination, &vector))
        state->stats.faults++;
    else if (INTERRUPT_LOGICAL(tlp->address))
        deliver_logical(step->rc, destination, data);
    else
        rc_interrupt_deliver(step->rc, destination, vector);
    rc_done_with(step->rc, tlp);
    rc_step_free(step);
}

/* An interrupt is a posted write: it comes after every earlier write of its port. */
static void rc_interrupt(struct model *rc, struct tlp *tlp, sim_time at_ps)
{
    struct rc_port *port = &rc_of(rc)->port[tlp->ingress];
    struct rc_step *step = rc_step_new(rc, tlp, interrupt_arrives);
    if (tlp_traced(tlp))
        tlp_trace_add_tlp(tlp, TRACE_INTERRUPT, rc->name, SIM_MAX(at_ps, port->last_commit_ps));
    port->last_commit_ps = SIM_MAX(at_ps, port->last_commit_ps);
    sim_schedule(rc->sim, &step->event, port->last_commit_ps);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void rc_to_peer(struct model *rc, struct tlp *tlp, struct hpa hpa, sim_time translated_ps)
{
    struct rc_state *state = rc_of(rc);
    struct model *out;
    unsigned port;
    if (!rc_route_address(state->host, hpa, tlp->length_bytes, &out, &port)) {
        state->stats.unsupported++;
        rc_refuse(rc, tlp, TLP_UR, translated_ps);
        return;
    }
    tlp->address = hpa.v;
    /* Translated behind inbound_ps, like what goes to memory: what is left of the way follows. */
    const sim_time inbound_ps = state->params.inbound_ps, p2p_ps = state->params.p2p_ps;
    rc_forward(rc, tlp->ingress, tlp, out, port,
               translated_ps + (p2p_ps > inbound_ps ? p2p_ps - inbound_ps : 0));
}

void rc_inbound_announce(struct model *rc, uint32_t port, const struct tlp *tlp)
{
    const struct rc_state *state = rc_of(rc);
    (void)port;
    if (tlp->type == TLP_MWR && state->iommu == NULL)
        numa_prefetch(state->host->numa, state->socket, (struct hpa){ tlp->address },
                      tlp->length_bytes);
}

/* What carries data that are not to be used ends here: memory has no mark for them, so it keeps
 * what it had, and the root port's status tells (PCIe Base 3.1, 2.7.2.2). */
static __attribute__((cold, noinline)) void drop_poisoned(struct model *rc, struct tlp *tlp)
{
    struct rc_state *state = rc_of(rc);

    state->stats.poisoned++;
    cfg_log_error(&state->port[tlp->ingress].cfg, PCI_AER_POISONED);
    rc_done_with(rc, tlp);
}

void rc_inbound_request(struct model *rc, uint32_t port, struct tlp *tlp)
{
    struct rc_state *state = rc_of(rc);
    sim_time now_ps = sim_now(rc->sim), at_ps = now_ps + state->port[port].inbound_ps;
    bool write = tlp->type == TLP_MWR;
    struct iommu_translation to = { .hpa = { tlp->address }, .done_ps = at_ps };

    sim_stamp_mark(tlp->stamp, PART_ROOT_COMPLEX, at_ps);
    if (tlp_traced(tlp)) {
        struct tlp_trace_record *record = tlp_trace_add_tlp(tlp, TRACE_ROOT, rc->name, at_ps);
        if (!rc->ports[port].integrated)
            tlp_trace_port(record->to, &rc->ports[port]);
    }
    if ((!write && tlp->type != TLP_MRD) || !cfg_bus_master(&state->port[port].cfg)) {
        state->stats.unsupported++;
        rc_refuse(rc, tlp, TLP_UR, at_ps);
        return;
    }
    if (write && rc_is_interrupt(tlp->address)) {
        if (SIM_UNLIKELY(tlp->poisoned))
            drop_poisoned(rc, tlp);
        else
            rc_interrupt(rc, tlp, at_ps);
        return;
    }
    if (state->iommu != NULL) {
        to = iommu_translate(state->iommu, tlp->requester_id, (struct iova){ tlp->address },
                             tlp->length_bytes, write, at_ps, tlp->stamp);
        sim_stamp_mark(tlp->stamp, PART_IOMMU, to.done_ps);
    } else if (tlp_traced(tlp)) {
        tlp_trace_add(tlp->stamp, TRACE_IOMMU, rc->name, at_ps)->iommu.how = TRACE_IOMMU_NONE;
    }
    if (to.fault != IOMMU_OK) {
        state->stats.faults++;
        rc_refuse(rc, tlp, TLP_UR, to.done_ps);
    } else if (!physmem_contains(numa_physmem(state->host->numa), to.hpa, tlp->length_bytes)) {
        rc_to_peer(rc, tlp, to.hpa, to.done_ps);
    } else if (SIM_UNLIKELY(tlp->poisoned)) {
        drop_poisoned(rc, tlp);
    } else if (write) {
        rc_write(rc, tlp, to.hpa, at_ps, to.done_ps);
    } else {
        rc_read(rc, tlp, to.hpa, to.done_ps);
    }
}
