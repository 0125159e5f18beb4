/*
 * Models: the requester's side of memory transactions: splitting, tags, completion checks,
 * completion time-out, Bus Master Enable, the end of everything at a function-level reset.
 * Does not model: several engines that share the tags by turns (one transfer is cut up after the
 * other), merging of neighbouring transfers, ATS.
 * Timing: no delay of its own. A read TLP takes at most min(MRRS - address mod 4, rest of the 4 KiB
 * page), a write TLP min(MPS - address mod 4, rest of the 4 KiB page), from the start on (with
 * whole_lines: mod 64). Without
 * contention a read of n bytes ends with the last of ceil(n / MRRS) round trips that were sent back
 * to back; in saturation it moves tags * MRRS bytes per round trip. A read request is given up
 * completion_timeout_ps after it was handed to the link. Payload of a host that is not simulated
 * line by line: struct pcie_shortcut.
 * Sources: PCI Express Base 3.1, 2.2.7 (4 KiB), 2.2.6.2 (tags), 2.3.1.1 (completions, read
 * completion boundary), 2.3.2 (unexpected completions), 2.4.1 (ordering), 2.8 (time-out), 7.5.1.1
 * (Bus Master Enable), 7.8.4 (MPS, MRRS, extended tags).
 */
#include "models/pcie/endpoint/dma.h"

#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/link/tlp_trace.h"

#define NO_TAG         UINT16_MAX
#define LOWER_ADDRESS  UINT64_C(0x7f) /* what a completion carries of the address */
#define BOUNDARY_BYTES UINT64_C(64)   /* the smallest read completion boundary; 128 is legal too */
#define TAG_WORD_BITS  64u

/* ---- Payload --------------------------------------------------------------------------------- */

/* Of every line that the range at `address` overlaps, the first min(8, overlap) bytes. Only the
 * first line and the last can overlap by less than 8, so that what is between is copied without a
 * look. */
static void copy_tags(uint8_t *to, const uint8_t *from, uint64_t address, uint64_t bytes)
{
    uint64_t offset = 0, next = LINE_BYTES - (address & (LINE_BYTES - 1));
    if (SIM_UNLIKELY(next < 8)) {
        memcpy(to, from, SIM_MIN(next, bytes));
        offset = next;
        next += LINE_BYTES;
    }
    for (; offset + 8 <= bytes; offset = next, next += LINE_BYTES)
        memcpy(to + offset, from + offset, 8);
    if (SIM_UNLIKELY(offset < bytes))
        memcpy(to + offset, from + offset, bytes - offset);
}

static void copy_payload(uint8_t *to, const uint8_t *from, uint64_t address, uint64_t bytes,
                         bool bulk)
{
    if (bulk)
        copy_tags(to, from, address, bytes);
    else
        memcpy(to, from, bytes);
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static unsigned tags_of(const struct pcie_dma *dma)
{
    return cfg_extended_tags(dma->cfg) ? PCIE_DMA_TAGS : PCIE_DMA_TAGS_STANDARD;
}

static bool tag_available(const struct pcie_dma *dma)
{
    unsigned limit = tags_of(dma);
    if (dma->params.read_tlps_max != 0)
        limit = SIM_MIN(limit, dma->params.read_tlps_max);
    return dma->in_flight < limit;
}

/* Round robin, so that a tag is reused as late as possible. There may be none though in_flight is
 * below the limit: software has switched extended tags off while some were in use. */
static uint16_t tag_take(struct pcie_dma *dma)
{
    unsigned n_tags = tags_of(dma);
    unsigned n_words = n_tags > TAG_WORD_BITS ? n_tags / TAG_WORD_BITS : 1;
    uint64_t usable = n_tags < TAG_WORD_BITS ? (UINT64_C(1) << n_tags) - 1 : UINT64_MAX;
    unsigned start = dma->next_tag < n_tags ? dma->next_tag : 0;
    unsigned word = start / TAG_WORD_BITS;
    uint64_t bits = dma->free_tags[word] & usable & (UINT64_MAX << start % TAG_WORD_BITS);
    for (unsigned i = 0; i <= n_words; i++) {
        if (bits != 0) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);
            unsigned tag = word * TAG_WORD_BITS + bit;
            dma->free_tags[word] &= ~(UINT64_C(1) << bit);
            dma->next_tag = (uint16_t)(tag + 1);
            return (uint16_t)tag;
        }
        word = word + 1 < n_words ? word + 1 : 0;
        bits = dma->free_tags[word] & usable;
    }
    return NO_TAG;
}

/* The deadline of the oldest has passed if time-outs were disabled until now. */
static void schedule_timeout(struct pcie_dma *dma)
{
    if (!cfg_completion_timeout_disabled(dma->cfg))
        sim_schedule(dma->model->sim, &dma->timeout,
                     SIM_MAX(dma->tag[dma->oldest].deadline_ps, sim_now(dma->model->sim)));
}

static void tag_link(struct pcie_dma *dma, uint16_t idx)
{
    struct pcie_dma_tag *tag = &dma->tag[idx];
    tag->deadline_ps = sim_now(dma->model->sim) + dma->params.completion_timeout_ps;
    tag->older = dma->newest;
    tag->newer = NO_TAG;
    if (dma->newest == NO_TAG)
        dma->oldest = idx;
    else
        dma->tag[dma->newest].newer = idx;
    dma->newest = idx;
    dma->in_flight++;
    if (dma->in_flight > dma->stats.read_tlps_in_flight_max)
        dma->stats.read_tlps_in_flight_max = dma->in_flight;
    if (!sim_event_pending(&dma->timeout))
        schedule_timeout(dma);
}

static void tag_free(struct pcie_dma *dma, uint16_t idx)
{
    struct pcie_dma_tag *tag = &dma->tag[idx];
    if (tag->older == NO_TAG)
        dma->oldest = tag->newer;
    else
        dma->tag[tag->older].newer = tag->newer;
    if (tag->newer == NO_TAG)
        dma->newest = tag->older;
    else
        dma->tag[tag->newer].older = tag->older;
    tag->request = NULL;
    dma->free_tags[idx / TAG_WORD_BITS] |= UINT64_C(1) << idx % TAG_WORD_BITS;
    if (--dma->in_flight == 0)
        sim_cancel(dma->model->sim, &dma->timeout); /* an idle device keeps no run alive */
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void finish(struct pcie_dma *dma, struct pcie_dma_request *request, unsigned part)
{
    request->done_ps = sim_now(dma->model->sim);
    sim_stamp_mark(request->stamp, part, request->done_ps);
    if (request->done != NULL)
        request->done(request, (enum pcie_dma_status)request->error);
}

static void finish_read(struct pcie_dma *dma, struct pcie_dma_request *request, unsigned part)
{
    if (request->error != PCIE_DMA_OK && request->buffer != NULL)
        memset(request->buffer, 0xff, request->bytes); /* nothing half valid is ever used */
    finish(dma, request, part);
}

static void read_pop(struct pcie_dma *dma)
{
    dma->read_head = dma->read_head->next;
    if (dma->read_head == NULL)
        dma->read_tail = NULL;
}

static void write_pop(struct pcie_dma *dma)
{
    dma->write_head = dma->write_head->next;
    if (dma->write_head == NULL)
        dma->write_tail = NULL;
}

/* Length counts double words from the one that holds the first byte (2.2.2), so that a start off a
 * double word's takes up to 3 bytes of what MPS and MRRS allow. Both are multiples of a line. */
static unsigned next_piece(const struct pcie_dma *dma, const struct pcie_dma_request *request,
                           unsigned tlp_bytes_max)
{
    uint64_t address = request->iova.v + request->issued_bytes;
    uint64_t page_rest = PAGE_BYTES - (address & (PAGE_BYTES - 1));
    uint64_t rest = request->bytes - request->issued_bytes;
    uint64_t beyond = address & (dma->params.aligned    ? tlp_bytes_max - 1
                                 : request->whole_lines ? LINE_BYTES - 1
                                                        : 3);
    uint64_t piece = SIM_MIN(tlp_bytes_max - beyond, page_rest);
    return (unsigned)SIM_MIN(piece, rest);
}

/* What kept the request waiting until now is known; what keeps it from now on is `part`. */
static void account_wait(const struct pcie_dma *dma, struct pcie_dma_request *request,
                         enum latency_part part)
{
    if (request->stamp == NULL)
        return;
    sim_stamp_mark(request->stamp, request->wait_part, sim_now(dma->model->sim));
    request->wait_part = (uint8_t)part;
}

static void wait_for_port(struct pcie_dma *dma, struct pcie_dma_request *request, bool *waits)
{
    if (!*waits)
        dma->stats.credit_waits++;
    *waits = true;
    account_wait(dma, request, PART_CREDIT);
}

static struct tlp *request_tlp(struct pcie_dma *dma, struct pcie_dma_request *request,
                               enum tlp_type type, unsigned bytes)
{
    struct tlp *tlp = tlp_new(dma->pcie, type);
    tlp->requester_id = dma->cfg->id;
    tlp->address = request->iova.v + request->issued_bytes;
    tlp->length_bytes = (uint16_t)bytes;
    tlp->attr = request->attr;
    tlp->digest = dma->cfg->live.ecrc;
    tlp->bulk = request->bulk && request->issued_bytes >= request->bulk_from;
    return tlp;
}

/* A transfer's first TLP decides. */
static void follow(struct pcie_dma *dma, struct pcie_dma_request *request, struct tlp *tlp)
{
    struct stamp_trace *trace = dma->model->trace;
    if (request->issued_bytes == 0)
        request->transfer = tlp_trace_choose(trace, dma->model, tlp, request->bytes);
    else
        tlp_trace_join(trace, dma->model, tlp, request->transfer);
}

/* Its trace waits for no more TLPs. */
static void stop_following(const struct pcie_dma *dma, const struct pcie_dma_request *request)
{
    if (dma->model->trace != NULL && request->issued_bytes != 0 &&
        request->issued_bytes < request->bytes)
        tlp_trace_give_up(dma->model->trace, request->transfer);
}

/* The completion's stamp is the request's; what it was part of ends here. */
static void take_stamp(struct pcie_dma_request *request, const struct tlp *tlp)
{
    *request->stamp = *tlp->stamp;
    request->stamp->trace = NULL;
}

/* Nothing goes out any more; what is in flight still comes back. */
static void give_up_read(struct pcie_dma *dma, struct pcie_dma_request *request,
                         enum pcie_dma_status status)
{
    if (request->error == PCIE_DMA_OK)
        request->error = (uint8_t)status;
    if (request == dma->read_head)
        read_pop(dma);
    stop_following(dma, request);
}

static bool bus_master_lost_read(struct pcie_dma *dma, struct pcie_dma_request *request)
{
    dma->stats.bus_master_off++;
    give_up_read(dma, request, PCIE_DMA_BUS_MASTER_OFF);
    if (request->in_flight == 0)
        finish_read(dma, request, PART_DEVICE);
    return true;
}

static bool bus_master_lost_write(struct pcie_dma *dma, struct pcie_dma_request *request)
{
    dma->stats.bus_master_off++;
    request->error = PCIE_DMA_BUS_MASTER_OFF;
    write_pop(dma);
    stop_following(dma, request);
    finish(dma, request, PART_DEVICE);
    return true;
}

static unsigned read_bytes_max(const struct pcie_dma *dma)
{
    unsigned mrrs = cfg_mrrs_bytes(dma->cfg);
    return dma->params.read_bytes_max == 0 ? mrrs
                                           : (unsigned)SIM_MIN(mrrs, dma->params.read_bytes_max);
}

static bool way_out_ready(const struct pcie_dma *dma, enum tlp_class class)
{
    return SIM_LIKELY(dma->path == NULL) ? pcie_port_ready(dma->port, class)
                                         : dma->path->ready(dma->path->context, class);
}

static void send_out(struct pcie_dma *dma, struct tlp *tlp)
{
    if (SIM_LIKELY(dma->path == NULL))
        pcie_port_send(dma->port, tlp, sim_now(dma->model->sim));
    else
        dma->path->send(dma->path->context, tlp);
}

/* ---- Payload by rate ------------------------------------------------------------------------- */

#define COMPLETION_OVERHEAD_BYTES (TLP_FRAMING_BYTES + 12u)
#define WRITE_OVERHEAD_BYTES      (TLP_FRAMING_BYTES + 16u)

static void pump(struct pcie_dma *dma);

/* Whether the rest of the request is payload that takes the shortcut. */
static inline bool goes_by_rate(const struct pcie_dma *dma, const struct pcie_dma_request *request)
{
    return SIM_UNLIKELY(dma->model->shortcut != NULL) && request->bulk &&
           request->issued_bytes >= request->bulk_from && request->buffer != NULL &&
           request->stamp == NULL && dma->model->trace == NULL && dma->path == NULL &&
           !dma->port->down && !dma->port->integrated;
}

/* That the payload takes the wire, in TLPs of Max_Payload_Size. */
static sim_time rate_ps(const struct pcie_dma *dma, uint64_t bytes, unsigned overhead_bytes)
{
    const uint64_t mps = cfg_mps_bytes(dma->cfg), n_tlps = (bytes + mps - 1) / mps;
    return pcie_port_wire_ps(dma->port, bytes + n_tlps * overhead_bytes);
}

static struct iova next_iova(const struct pcie_dma_request *request)
{
    return (struct iova){ request->iova.v + request->issued_bytes };
}

/* False: it has to go as TLPs. */
static bool read_by_rate(struct pcie_dma *dma, struct pcie_dma_request *request)
{
    const struct pcie_shortcut *shortcut = dma->model->shortcut;
    const uint64_t rest = request->bytes - request->issued_bytes;
    if (dma->round_trip_ps == 0 || !shortcut->read(shortcut->context, next_iova(request),
                                                   request->buffer + request->issued_bytes, rest))
        return false;
    read_pop(dma);
    request->next = NULL;
    request->issued_bytes = request->bytes;
    request->in_flight++;
    dma->stats.read_bytes += rest;
    const sim_time there_ps = sim_now(dma->model->sim) + dma->round_trip_ps;
    dma->port->rate_read_ps = SIM_MAX(dma->port->rate_read_ps, there_ps) +
                              rate_ps(dma, rest, COMPLETION_OVERHEAD_BYTES);
    request->done_ps = dma->port->rate_read_ps;
    if (dma->rate_head == NULL) {
        dma->rate_head = request;
        sim_schedule(dma->model->sim, &dma->rate_end, request->done_ps);
    } else {
        dma->rate_tail->next = request;
    }
    dma->rate_tail = request;
    return true;
}

static void end_first_by_rate(struct pcie_dma *dma)
{
    struct pcie_dma_request *request = dma->rate_head;
    dma->rate_head = request->next;
    if (--request->in_flight == 0)
        finish_read(dma, request, PART_LINK);
}

static void rate_end_fire(struct sim *sim, struct sim_event *event)
{
    struct pcie_dma *dma = SIM_CONTAINER(event, struct pcie_dma, rate_end);
    if (dma->rate_head->next != NULL)
        sim_schedule(sim, event, dma->rate_head->next->done_ps);
    end_first_by_rate(dma);
    pump(dma);
}

/* False: it has to go as TLPs. */
static bool write_by_rate(struct pcie_dma *dma, struct pcie_dma_request *request)
{
    const struct pcie_shortcut *shortcut = dma->model->shortcut;
    const uint64_t rest = request->bytes - request->issued_bytes;
    if (!shortcut->write(shortcut->context, next_iova(request),
                         request->buffer + request->issued_bytes, rest))
        return false;
    write_pop(dma);
    request->issued_bytes = request->bytes;
    dma->stats.write_bytes += rest;
    dma->port->rate_write_ps = SIM_MAX(dma->port->rate_write_ps, sim_now(dma->model->sim)) +
                               rate_ps(dma, rest, WRITE_OVERHEAD_BYTES);
    finish(dma, request, PART_DEVICE);
    return true;
}

/* From when on the oldest write may go: what precedes it has left the wire. */
static sim_time write_ready_ps(const struct pcie_dma *dma)
{
    return SIM_MAX(dma->write_head->at_ps, dma->port->rate_write_ps);
}

/* ---- Requests as TLPs ------------------------------------------------------------------------ */

static __attribute__((cold, noinline)) void make_tags(struct pcie_dma *dma)
{
    dma->tag = sim_zalloc(PCIE_DMA_TAGS, sizeof(*dma->tag));
    dma->n_kept = PCIE_DMA_TAGS;
}

/* Sends the next TLP of the oldest read. False: it has to wait. */
static bool issue_read(struct pcie_dma *dma, struct pcie_dma_request *request)
{
    if (SIM_UNLIKELY(!cfg_bus_master(dma->cfg)))
        return bus_master_lost_read(dma, request);
    if (goes_by_rate(dma, request) && read_by_rate(dma, request))
        return true;
    if (!way_out_ready(dma, TLP_NON_POSTED)) {
        wait_for_port(dma, request, &dma->read_waits_port);
        return false;
    }
    uint16_t idx = tag_available(dma) ? tag_take(dma) : NO_TAG;
    if (idx == NO_TAG) {
        if (!dma->read_waits_tag)
            dma->stats.tag_waits++;
        dma->read_waits_tag = true;
        account_wait(dma, request, PART_DEVICE);
        return false;
    }
    dma->read_waits_tag = false;
    dma->read_waits_port = false;

    unsigned bytes = next_piece(dma, request, read_bytes_max(dma));
    struct tlp *tlp = request_tlp(dma, request, TLP_MRD, bytes);
    tlp->tag = idx;
    if (SIM_UNLIKELY(dma->n_kept == 0))
        make_tags(dma);
    struct pcie_dma_tag *tag = &dma->tag[idx];
    tag->request = request;
    tag->offset = request->issued_bytes;
    tag->bulk = tlp->bulk;
    tag->remaining_bytes = (uint16_t)bytes;
    tag_link(dma, idx);
    if (request->stamp != NULL) {
        account_wait(dma, request, PART_DEVICE);
        tlp->stamp = stamp_copy(dma->pcie, request->stamp);
    }
    if (SIM_UNLIKELY(dma->model->trace != NULL))
        follow(dma, request, tlp);
    request->issued_bytes += bytes;
    request->in_flight++;
    dma->stats.read_tlps++;
    if (request->issued_bytes == request->bytes)
        read_pop(dma);
    send_out(dma, tlp);
    return true;
}

/* The last TLP of a write takes the request's stamp along, or one of the sample that is taken. */
static void stamp_write(struct pcie_dma *dma, const struct pcie_dma_request *request,
                        struct tlp *tlp)
{
    if (request->stamp != NULL) {
        tlp->stamp = stamp_copy(dma->pcie, request->stamp);
    } else if (dma->params.stamp_every != 0 && ++dma->unstamped == dma->params.stamp_every) {
        dma->unstamped = 0;
        tlp->stamp = stamp_new(dma->pcie, sim_now(dma->model->sim));
    }
}

/* Sends the next TLP of the oldest write. False: it has to wait. */
static bool issue_write(struct pcie_dma *dma, struct pcie_dma_request *request)
{
    if (SIM_UNLIKELY(!cfg_bus_master(dma->cfg)))
        return bus_master_lost_write(dma, request);
    if (goes_by_rate(dma, request) && write_by_rate(dma, request))
        return true;
    if (!way_out_ready(dma, TLP_POSTED)) {
        wait_for_port(dma, request, &dma->write_waits_port);
        return false;
    }
    dma->write_waits_port = false;

    static const uint8_t zeros[TLP_PAYLOAD_BYTES_MAX];
    unsigned bytes = next_piece(dma, request, cfg_mps_bytes(dma->cfg));
    struct tlp *tlp = request_tlp(dma, request, TLP_MWR, bytes);
    tlp_payload_new(dma->pcie, tlp);
    const uint8_t *from = request->buffer == NULL ? zeros : request->buffer + request->issued_bytes;
    copy_payload(tlp->payload, from, tlp->address, bytes, tlp->bulk);
    account_wait(dma, request, PART_DEVICE);
    dma->stats.write_tlps++;
    dma->stats.write_bytes += bytes;
    bool last = request->issued_bytes + bytes == request->bytes;
    if (last) {
        write_pop(dma);
        stamp_write(dma, request, tlp);
        tlp->tag = request->tag;
    }
    if (SIM_UNLIKELY(dma->model->trace != NULL))
        follow(dma, request, tlp);
    request->issued_bytes += bytes;
    send_out(dma, tlp);
    if (last)
        finish(dma, request, PART_DEVICE);
    return true;
}

/* No write is queued that it must not pass. Both kinds ascend in sequence and in at_ps. */
static bool read_may_go(const struct pcie_dma *dma)
{
    const struct pcie_dma_request *read = dma->read_head, *write = dma->write_head;
    if (read == NULL)
        return false;
    return write == NULL || read->sequence < write->sequence ||
           (read->independent && read->at_ps < write->at_ps);
}

/* Comes back when the next request is ready that is not. */
static void arm_start(struct pcie_dma *dma)
{
    sim_time now_ps = sim_now(dma->model->sim), at_ps = SIM_TIME_MAX;
    if (read_may_go(dma) && dma->read_head->at_ps > now_ps)
        at_ps = dma->read_head->at_ps;
    if (dma->write_head != NULL && write_ready_ps(dma) > now_ps)
        at_ps = SIM_MIN(at_ps, write_ready_ps(dma));
    if (at_ps == SIM_TIME_MAX)
        return;
    if (sim_event_pending(&dma->start)) {
        if (dma->start.time_ps <= at_ps)
            return;
        sim_cancel(dma->model->sim, &dma->start);
    }
    sim_schedule(dma->model->sim, &dma->start, at_ps);
}

/* done() may submit; it then only queues, and the loop here goes on with it. */
static void pump(struct pcie_dma *dma)
{
    if (dma->pumping || (dma->read_head == NULL && dma->write_head == NULL))
        return;
    sim_time now_ps = sim_now(dma->model->sim);
    dma->pumping = true;
    for (;;) {
        struct pcie_dma_request *read = dma->read_head, *write = dma->write_head;
        if (read_may_go(dma) && read->at_ps <= now_ps && issue_read(dma, read))
            continue;
        if (write == NULL || write_ready_ps(dma) > now_ps || !issue_write(dma, write))
            break;
    }
    dma->pumping = false;
    arm_start(dma);
}

static void start_fire(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    pump(SIM_CONTAINER(event, struct pcie_dma, start));
}

static void submit(struct pcie_dma *dma, struct pcie_dma_request *request, sim_time at_ps,
                   sim_time *last_at_ps)
{
    SIM_ASSERT(request->bytes > 0, "%s: transfer of no bytes", dma->model->name);
    at_ps = SIM_MAX(at_ps, sim_now(dma->model->sim));
    *last_at_ps = SIM_MAX(at_ps, *last_at_ps);
    request->next = NULL;
    request->sequence = dma->next_sequence++;
    request->issued_bytes = 0;
    request->at_ps = *last_at_ps;
    request->in_flight = 0;
    request->error = PCIE_DMA_OK;
    request->wait_part = PART_DEVICE;
}

void pcie_dma_read(struct pcie_dma *dma, struct pcie_dma_request *request, sim_time at_ps)
{
    submit(dma, request, at_ps, &dma->read_at_ps);
    if (dma->read_tail == NULL)
        dma->read_head = request;
    else
        dma->read_tail->next = request;
    dma->read_tail = request;
    pump(dma);
}

void pcie_dma_write(struct pcie_dma *dma, struct pcie_dma_request *request, sim_time at_ps)
{
    submit(dma, request, at_ps, &dma->write_at_ps);
    if (dma->write_tail == NULL)
        dma->write_head = request;
    else
        dma->write_tail->next = request;
    dma->write_tail = request;
    pump(dma);
}

void pcie_dma_credit(struct pcie_dma *dma)
{
    pump(dma);
}

/* ---- Completions ----------------------------------------------------------------------------- */

/* The request TLP of this tag has been answered, for good or ill. */
static void end_tag(struct pcie_dma *dma, uint16_t idx, unsigned part)
{
    struct pcie_dma_request *request = dma->tag[idx].request;
    tag_free(dma, idx);
    request->in_flight--;
    bool all_sent = request->issued_bytes == request->bytes || request->error != PCIE_DMA_OK;
    if (all_sent && request->in_flight == 0)
        finish_read(dma, request, part);
}

/* The tag's read is given up. For as long as a completion may take, any completion of the tag may
 * still be that read's, also after one that fitted: which of both it was cannot be seen. */
static void doubt(struct pcie_dma *dma, uint16_t idx)
{
    struct pcie_dma_tag *tag = &dma->tag[idx];
    tag->doubtful = true;
    tag->doubtful_until_ps = sim_now(dma->model->sim) + dma->params.completion_timeout_ps;
}

void pcie_dma_configured(struct pcie_dma *dma)
{
    if (dma->oldest != NO_TAG && !sim_event_pending(&dma->timeout))
        schedule_timeout(dma);
}

static void timeout_fire(struct sim *sim, struct sim_event *event)
{
    struct pcie_dma *dma = SIM_CONTAINER(event, struct pcie_dma, timeout);
    if (cfg_completion_timeout_disabled(dma->cfg))
        return;
    while (dma->oldest != NO_TAG && dma->tag[dma->oldest].deadline_ps <= sim_now(sim)) {
        uint16_t idx = dma->oldest;
        dma->stats.timed_out++;
        cfg_log_error(dma->cfg, PCI_AER_COMPLETION_TIMEOUT);
        doubt(dma, idx);
        give_up_read(dma, dma->tag[idx].request, PCIE_DMA_TIMED_OUT);
        end_tag(dma, idx, PART_DEVICE);
    }
    pump(dma);
    pcie_dma_configured(dma);
}

static void drop_unexpected(struct pcie_dma *dma, struct tlp *tlp)
{
    dma->stats.unexpected++;
    cfg_log_error(dma->cfg, PCI_AER_UNEXPECTED);
    tlp_free(dma->pcie, tlp);
}

/* Data as section 2.3.1.1 wants it: all that is left is announced, the address goes on where it
 * stood, all but the last end on the boundary, none is longer than MPS. */
static bool data_fits(const struct pcie_dma *dma, const struct pcie_dma_tag *tag,
                      const struct tlp *tlp)
{
    uint64_t expected = tag->request->iova.v + tag->offset;
    unsigned bytes = tlp->length_bytes;
    return tlp->type == TLP_CPLD && bytes > 0 && bytes <= tag->remaining_bytes &&
           tlp->byte_count == tag->remaining_bytes &&
           ((tlp->address ^ expected) & LOWER_ADDRESS) == 0 && bytes <= cfg_mps_bytes(dma->cfg) &&
           (bytes == tag->remaining_bytes || ((expected + bytes) & (BOUNDARY_BYTES - 1)) == 0);
}

static void receive_wrong(struct pcie_dma *dma, const struct pcie_dma_tag *tag, struct tlp *tlp)
{
    if (tag->doubtful) {
        drop_unexpected(dma, tlp);
        return;
    }
    sim_fail(dma->model->sim,
             "%s: completion for tag %u: %u bytes at lower address 0x%x, byte count %u; expected "
             "byte count %u, lower address 0x%x, at most %u bytes up to a 64-byte boundary",
             dma->model->name, tlp->tag, tlp->length_bytes,
             (unsigned)(tlp->address & LOWER_ADDRESS), tlp->byte_count, tag->remaining_bytes,
             (unsigned)((tag->request->iova.v + tag->offset) & LOWER_ADDRESS),
             cfg_mps_bytes(dma->cfg));
    tlp_free(dma->pcie, tlp);
}

static void receive_error(struct pcie_dma *dma, struct tlp *tlp)
{
    enum tlp_status status = (enum tlp_status)tlp->status;
    uint16_t idx = tlp->tag;
    struct pcie_dma_request *request = dma->tag[idx].request;
    bool aborted = status == TLP_CA;
    if (aborted)
        dma->stats.aborted++;
    else
        dma->stats.unsupported++; /* reserved codes count as UR, as 2.3.2 says */
    cfg_log_abort(dma->cfg, aborted ? TLP_CA : TLP_UR);
    if (request->stamp != NULL && tlp->stamp != NULL)
        take_stamp(request, tlp);
    tlp_free(dma->pcie, tlp);
    give_up_read(dma, request, aborted ? PCIE_DMA_ABORTED : PCIE_DMA_UNSUPPORTED);
    end_tag(dma, idx, PART_LINK);
}

static void receive_data(struct pcie_dma *dma, struct tlp *tlp)
{
    uint16_t idx = tlp->tag;
    struct pcie_dma_tag *tag = &dma->tag[idx];
    struct pcie_dma_request *request = tag->request;
    unsigned bytes = tlp->length_bytes;
    if (SIM_UNLIKELY(!data_fits(dma, tag, tlp))) {
        receive_wrong(dma, tag, tlp);
        return;
    }
    dma->stats.completions++;
    dma->stats.read_bytes += bytes;
    if (SIM_UNLIKELY(tlp->poisoned)) {
        dma->stats.poisoned++;
        cfg_log_error(dma->cfg, PCI_AER_POISONED);
        give_up_read(dma, request, PCIE_DMA_POISONED);
    } else if (request->buffer != NULL) {
        copy_payload(request->buffer + tag->offset, tlp->payload, request->iova.v + tag->offset,
                     bytes, tag->bulk);
    }
    /* While parts are unsent the stamp is still theirs to copy, and this is not the last. */
    if (request->stamp != NULL && tlp->stamp != NULL && request != dma->read_head)
        take_stamp(request, tlp);
    tlp_free(dma->pcie, tlp);
    tag->offset += bytes;
    tag->remaining_bytes = (uint16_t)(tag->remaining_bytes - bytes);
    if (tag->remaining_bytes == 0) {
        if (SIM_UNLIKELY(tag->doubtful) && sim_now(dma->model->sim) >= tag->doubtful_until_ps)
            tag->doubtful = false;
        dma->round_trip_ps = sim_now(dma->model->sim) + dma->params.completion_timeout_ps -
                             tag->deadline_ps;
        end_tag(dma, idx, PART_LINK);
    }
}

void pcie_dma_receive(struct pcie_dma *dma, struct tlp *tlp)
{
    pcie_port_release(dma->port, TLP_COMPLETION, tlp_data_credits(tlp), sim_now(dma->model->sim));
    if (tlp_traced(tlp))
        tlp_trace_add_tlp(tlp, TRACE_ARRIVED, dma->model->name, sim_now(dma->model->sim));
    pcie_dma_complete(dma, tlp);
}

void pcie_dma_complete(struct pcie_dma *dma, struct tlp *tlp)
{
    bool expected = tlp->requester_id == dma->cfg->id && tlp->tag < dma->n_kept &&
                    dma->tag[tlp->tag].request != NULL;
    if (SIM_UNLIKELY(!expected))
        drop_unexpected(dma, tlp);
    else if (SIM_UNLIKELY(tlp->status != TLP_SC))
        receive_error(dma, tlp);
    else
        receive_data(dma, tlp);
    pump(dma);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void describe(struct sim_watch *watch, struct sim_waits *waits)
{
    const struct pcie_dma *dma = SIM_CONTAINER(watch, struct pcie_dma, watch);

    if (dma->in_flight != 0 || dma->read_head != NULL)
        sim_waits_add(waits, "%s: %u read requests in flight%s%s", dma->model->name, dma->in_flight,
                      dma->read_waits_tag ? ", the next waits for a tag" : "",
                      dma->read_waits_port ? ", the next waits for room in the port" : "");
    if (dma->rate_head != NULL)
        sim_waits_add(waits, "%s: reads of payload by rate are under way", dma->model->name);
    if (dma->write_head != NULL)
        sim_waits_add(waits, "%s: a write waits%s", dma->model->name,
                      dma->write_waits_port ? " for room in the port" : "");
}

void pcie_dma_init(struct pcie_dma *dma, struct model *model, uint32_t port, struct cfg_space *cfg,
                   const struct pcie_dma_params *params)
{
    SIM_ASSERT(port < model->n_ports, "%s has no port %u", model->name, port);
    sim_watch_remove(model->sim, &dma->watch);
    free(dma->tag);
    memset(dma, 0, sizeof(*dma));
    dma->watch.describe = describe;
    sim_watch_add(model->sim, &dma->watch);
    dma->model = model;
    dma->cfg = cfg;
    dma->pcie = model->pcie;
    dma->port = &model->ports[port];
    dma->params = *params;
    dma->oldest = dma->newest = NO_TAG;
    memset(dma->free_tags, 0xff, sizeof(dma->free_tags));
#ifdef SIM_HOSTILE
    dma->next_tag = PCIE_DMA_TAGS_STANDARD - 1; /* wraps round at once */
#endif
    sim_event_init(&dma->start, start_fire);
    sim_event_init(&dma->rate_end, rate_end_fire);
    sim_event_init(&dma->timeout, timeout_fire);
}

void pcie_dma_set_path(struct pcie_dma *dma, const struct pcie_dma_path *path)
{
    dma->path = path;
}

void pcie_dma_abort(struct pcie_dma *dma)
{
    SIM_ASSERT(!cfg_bus_master(dma->cfg), "%s: reset while it may go on", dma->model->name);
    while (dma->oldest != NO_TAG) {
        uint16_t idx = dma->oldest;
        doubt(dma, idx);
        give_up_read(dma, dma->tag[idx].request, PCIE_DMA_BUS_MASTER_OFF);
        end_tag(dma, idx, PART_DEVICE);
    }
    for (; dma->rate_head != NULL; end_first_by_rate(dma))
        give_up_read(dma, dma->rate_head, PCIE_DMA_BUS_MASTER_OFF);
    sim_cancel(dma->model->sim, &dma->rate_end);
    while (dma->read_head != NULL)
        bus_master_lost_read(dma, dma->read_head);
    while (dma->write_head != NULL)
        bus_master_lost_write(dma, dma->write_head);
    sim_cancel(dma->model->sim, &dma->start);
}

void pcie_dma_release(struct pcie_dma *dma)
{
    if (dma->model != NULL) {
        sim_cancel(dma->model->sim, &dma->start);
        sim_cancel(dma->model->sim, &dma->timeout);
        sim_cancel(dma->model->sim, &dma->rate_end);
        sim_watch_remove(dma->model->sim, &dma->watch);
    }
    free(dma->tag);
    dma->tag = NULL;
    dma->n_kept = 0;
    dma->model = NULL;
}
