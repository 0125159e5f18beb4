/*
 * What cores ask of devices: MMIO and configuration requests.
 *
 * Models: non-posted requests (reads, deferrable memory writes) with a tag each, the task suspended
 *   for the round trip, completion time-outs, after which the tag rests until the late completion
 *   or another time-out; completions that do not fit are dropped; all ones on errors, poisoned data
 *   and a link that went down; posted writes, which a core need not wait for unless they are short
 *   of credits; configuration of root ports themselves; type 0 and type 1 requests by bus number.
 * Does not model: prefetching reads of prefetchable BARs.
 * Timing: outbound + the link's round trip + inbound; a root port's own registers: outbound +
 *   inbound. From another socket, the interconnect there and back in addition.
 * Sources: PCIe Base 3.1, 2.2.7, 2.2.9, 2.3.2, 2.8, 7.2.2; PCI-SIG ECN "Deferrable Memory Write".
 */
#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/root/rc_internal.h"

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Suspends the task as the last of the list. It is out of the list when it goes on, whoever woke
 * it: the entry is on its stack. */
static void wait_in(struct rc_waiter **list, struct sim_task *task, const char *what)
{
    struct rc_waiter waiter = { .task = task };
    struct rc_waiter **at = list;
    while (*at != NULL)
        at = &(*at)->next;
    *at = &waiter;
    sim_task_waits_for(task, what, NULL);
    sim_task_suspend(task);
    for (at = list; *at != NULL; at = &(*at)->next)
        if (*at == &waiter) {
            *at = waiter.next;
            return;
        }
}

/* Lets the first of the list go on; false if it is empty. */
static bool wake_first(struct sim *sim, struct rc_waiter **list)
{
    struct rc_waiter *waiter = *list;
    if (waiter == NULL)
        return false;
    *list = waiter->next;
    sim_task_resume(waiter->task, sim_now(sim));
    return true;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static void mmio_finish(struct rc_mmio *mmio, bool ok, sim_time at_ps)
{
    mmio->done = true;
    mmio->ok = ok;
    mmio->done_ps = at_ps;
    sim_task_resume(mmio->task, at_ps);
}

/* The request's time is up: it ends. Once more: its answer will not come any more. */
static void mmio_times_out(struct sim *sim, struct sim_event *event)
{
    struct rc_mmio *mmio = SIM_CONTAINER(event, struct rc_mmio, timeout);
    struct rc_state *state = rc_of(mmio->rc);
    if (mmio->doubtful) {
        mmio->doubtful = false;
        if (mmio->task == NULL)
            wake_first(sim, &state->tag_waiters);
        return;
    }
    state->stats.mmio_timeouts++;
    mmio->doubtful = true;
    sim_schedule_in(sim, event, state->params.completion_timeout_ps);
    mmio_finish(mmio, false, sim_now(sim));
}

static struct rc_mmio *mmio_tag(struct model *rc, struct sim_task *task)
{
    struct rc_state *state = rc_of(rc);
    for (;;) {
        for (unsigned i = 0; i < RC_MMIO_TAGS; i++) {
            struct rc_mmio *mmio = &state->mmio[(state->next_tag + i) % RC_MMIO_TAGS];
            if (mmio->task != NULL || mmio->doubtful)
                continue;
            *mmio = (struct rc_mmio){ .rc = rc, .task = task };
            sim_event_init(&mmio->timeout, mmio_times_out);
            state->next_tag = (unsigned)(mmio - state->mmio + 1) % RC_MMIO_TAGS;
            return mmio;
        }
        wait_in(&state->tag_waiters, task, "a tag of the root complex");
    }
}

static void mmio_tag_free(struct rc_mmio *mmio)
{
    mmio->task = NULL;
    if (!mmio->doubtful)
        wake_first(mmio->rc->sim, &rc_of(mmio->rc)->tag_waiters);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Waits until the root port's transmitter takes another TLP of the class. Completions from memory
 * do not wait for it: a device that reads without pause may keep the transmitter full for ever.
 * A core that has waited lets peers of the class look before it takes its own place, so that a
 * stream of neither keeps the other out; of the other classes, cores that were woken with it look
 * first (rc_credit()). */
static void wait_ready(struct model *rc, unsigned port, struct sim_task *task, enum tlp_class class)
{
    struct rc_waiter **waiters = &rc_of(rc)->port[port].waiters;
    bool waited = false;

    for (; !pcie_port_ready_ahead(&rc->ports[port], class); waited = true)
        wait_in(waiters, task, "room in the transmitter of a root port");
    if (waited)
        rc_forward_credit_class(rc, port, class);
}

bool rc_outbound_credit(struct model *rc, uint32_t port)
{
    bool any = false;

    while (wake_first(rc->sim, &rc_of(rc)->port[port].waiters))
        any = true;
    return any;
}

/* Sends a non-posted request and waits for its end. The value, all ones if it failed. */
static uint64_t round_trip(struct model *rc, unsigned port, unsigned socket, struct sim_task *task,
                           struct tlp *tlp, unsigned bytes, struct sim_stamp *stamp)
{
    struct rc_state *state = rc_of(rc);
    struct rc_mmio *mmio = mmio_tag(rc, task);
    uint64_t ones = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;

    /* What tlp_completion() says of a success (PCIe Base 3.1, 2.2.9). */
    mmio->byte_count = tlp->type == TLP_MRD ? tlp->length_bytes : 4;
    mmio->length_bytes = tlp_has_data(tlp) ? 0 : tlp->length_bytes;
    mmio->stamp = stamp;
    mmio->socket = socket;
    mmio->port = port;
    tlp->requester_id = rc_id(state);
    tlp->tag = (uint16_t)(mmio - state->mmio);
    tlp->digest = state->port[port].cfg.live.ecrc;
    wait_ready(rc, port, task, TLP_NON_POSTED);
    sim_schedule_in(rc->sim, &mmio->timeout, state->params.completion_timeout_ps);
    sim_task_charge_until(task, numa_io_send(state->host->numa, socket, state->socket,
                                             tlp_has_data(tlp) ? NUMA_IO_DATA : NUMA_IO_REQUEST,
                                             sim_task_now(task)));
    sim_stamp_mark(stamp, PART_INTERCONNECT, sim_task_now(task));
    sim_task_charge(task, state->port[port].outbound_ps);
    sim_task_charge_until(task, state->port[port].last_post_ps);
    sim_task_sync(task);
    if (stamp != NULL) {
        sim_stamp_mark(stamp, PART_ROOT_COMPLEX, sim_now(rc->sim));
        tlp->stamp = stamp_copy(rc->pcie, stamp);
    }
    if (SIM_LIKELY(!rc->ports[port].down)) {
        pcie_port_send(&rc->ports[port], tlp, sim_now(rc->sim));
        mmio->sent = true;
    } else { /* since it was routed */
        tlp_free(rc->pcie, tlp);
        sim_cancel(rc->sim, &mmio->timeout);
        mmio->done = true;
        mmio->done_ps = sim_now(rc->sim);
    }
    while (!mmio->done) {
        sim_task_waits_for(task, "the answer of a device to an access to its registers", NULL);
        sim_task_suspend(task);
    }
    sim_task_charge_until(task, mmio->done_ps); /* also if somebody else woke it meanwhile */
    sim_stamp_mark(stamp, PART_INTERCONNECT, sim_task_now(task));
    uint64_t value = mmio->ok ? mmio->value & ones : ones;
    mmio_tag_free(mmio);
    return value;
}

/* The request that the completion answers, or NULL. One that answers another request than its tag
 * says is unexpected, as 2.3.2 recommends. */
static struct rc_mmio *mmio_of(struct rc_state *state, const struct tlp *tlp)
{
    if (tlp->requester_id != rc_id(state) || tlp->tag >= RC_MMIO_TAGS)
        return NULL;
    struct rc_mmio *mmio = &state->mmio[tlp->tag];
    bool fits = tlp->byte_count == mmio->byte_count &&
                tlp->length_bytes == (tlp->status == TLP_SC ? mmio->length_bytes : 0);
    if (mmio->doubtful && fits) {
        mmio->doubtful = false; /* late, but now the tag is clean */
        sim_cancel(mmio->rc->sim, &mmio->timeout);
        if (mmio->task == NULL)
            wake_first(mmio->rc->sim, &state->tag_waiters);
        return NULL;
    }
    return mmio->task != NULL && !mmio->done && fits ? mmio : NULL;
}

/* A completion from a device: for a core, or for a peer behind another root port. */
void rc_outbound_completion(struct model *rc, uint32_t port, struct tlp *tlp)
{
    struct rc_state *state = rc_of(rc);
    sim_time now_ps = sim_now(rc->sim);
    struct model *out;
    unsigned out_port;

    if (tlp->requester_id != rc_id(state) &&
        rc_route_id(state->host, tlp->requester_id, &out, &out_port)) {
        rc_forward(rc, port, tlp, out, out_port, now_ps + state->params.p2p_ps);
        return;
    }
    if (tlp->requester_id == rc_id(state) && rc_reads_completion(rc, port, tlp))
        return;
    struct rc_mmio *mmio = mmio_of(state, tlp);
    if (mmio == NULL) {
        state->stats.unexpected_completions++;
    } else {
        const bool good = tlp->status == TLP_SC && !tlp->poisoned;
        if (SIM_UNLIKELY(tlp->poisoned)) {
            state->stats.poisoned++;
            cfg_log_error(&state->port[port].cfg, PCI_AER_POISONED);
        }
        for (unsigned i = 0; tlp->payload != NULL && i < SIM_MIN(8u, tlp->length_bytes); i++)
            mmio->value |= (uint64_t)tlp->payload[i] << (8 * i);
        sim_cancel(rc->sim, &mmio->timeout);
        if (mmio->stamp != NULL && tlp->stamp != NULL)
            *mmio->stamp = *tlp->stamp;
        /* reads push writes: not before what the device wrote earlier is visible */
        sim_time ready_ps = SIM_MAX(now_ps + state->port[port].inbound_ps,
                                    state->port[port].last_commit_ps);
        sim_stamp_mark(mmio->stamp, PART_ROOT_COMPLEX, ready_ps);
        mmio_finish(mmio, good,
                    numa_io_send(state->host->numa, state->socket, mmio->socket,
                                 tlp_has_data(tlp) ? NUMA_IO_DATA : NUMA_IO_COMPLETION, ready_ps));
    }
    pcie_port_release(&rc->ports[port], TLP_COMPLETION, tlp_data_credits(tlp), now_ps);
    tlp_free(rc->pcie, tlp);
}

/* As if the device had answered with Unsupported Request (PCIe Base 3.1, 2.9.1). */
void rc_outbound_link_down(struct model *rc, uint32_t port)
{
    struct rc_state *state = rc_of(rc);

    cfg_log_error(&state->port[port].cfg, PCI_AER_SURPRISE_DOWN);
    for (unsigned i = 0; i < RC_MMIO_TAGS; i++) {
        struct rc_mmio *mmio = &state->mmio[i];
        if (mmio->task == NULL || !mmio->sent || mmio->done || mmio->port != port)
            continue;
        sim_cancel(rc->sim, &mmio->timeout);
        mmio_finish(mmio, false, sim_now(rc->sim) + state->port[port].inbound_ps);
    }
}

/* ---- MMIO ------------------------------------------------------------------------------------ */

uint64_t root_complex_mmio_read(struct root_complex_host *host, unsigned socket,
                                struct sim_task *task, struct hpa address, unsigned bytes,
                                struct sim_stamp *stamp)
{
    struct model *rc;
    unsigned port;
    sim_task_sync(task);
    if (!rc_route_address(host, address, bytes, &rc, &port))
        return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
    struct tlp *tlp = tlp_new(rc->pcie, TLP_MRD);
    tlp->address = address.v;
    tlp->length_bytes = (uint16_t)bytes;
    return round_trip(rc, port, socket, task, tlp, bytes, stamp);
}

sim_time root_complex_mmio_write(struct root_complex_host *host, unsigned socket,
                                 struct sim_task *task, struct hpa address, unsigned bytes,
                                 uint64_t value)
{
    uint8_t data[sizeof(value)];
    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(value >> (8 * i));
    return root_complex_mmio_write_line(host, socket, task, address, bytes, data);
}

sim_time root_complex_mmio_write_line(struct root_complex_host *host, unsigned socket,
                                      struct sim_task *task, struct hpa address, unsigned bytes,
                                      const void *data)
{
    struct model *rc;
    unsigned port;
    sim_task_sync(task);
    if (!rc_route_address(host, address, bytes, &rc, &port))
        return sim_task_now(task);
    struct tlp *tlp = tlp_new(rc->pcie, TLP_MWR);
    tlp->address = address.v;
    tlp->length_bytes = (uint16_t)bytes;
    tlp->requester_id = rc_id(rc_of(rc));
    tlp_payload_new(rc->pcie, tlp);
    memcpy(tlp->payload, data, bytes);
    wait_ready(rc, port, task, TLP_POSTED);
    struct rc_state *state = rc_of(rc);
    struct rc_port *out = &state->port[port];
    tlp->digest = out->cfg.live.ecrc;
    sim_time leave_ps = numa_io_send(host->numa, socket, state->socket, NUMA_IO_DATA,
                                     sim_task_now(task)) +
                        out->outbound_ps;
    out->last_post_ps = leave_ps = SIM_MAX(leave_ps, out->last_post_ps);
    pcie_port_send_ahead(&rc->ports[port], tlp, leave_ps);
    return numa_io_send(host->numa, state->socket, socket, NUMA_IO_COMPLETION, leave_ps);
}

bool root_complex_mmio_enqueue(struct root_complex_host *host, unsigned socket,
                               struct sim_task *task, struct hpa address, const void *line)
{
    struct model *rc;
    unsigned port;
    sim_task_sync(task);
    if (!rc_route_address(host, address, LINE_BYTES, &rc, &port))
        return false;
    struct tlp *tlp = tlp_new(rc->pcie, TLP_DMWR);
    tlp->address = address.v;
    tlp->length_bytes = LINE_BYTES;
    if (!pcie_port_can_carry(&rc->ports[port], tlp)) {
        tlp_free(rc->pcie, tlp);
        return false;
    }
    tlp_payload_new(rc->pcie, tlp);
    memcpy(tlp->payload, line, LINE_BYTES);
    return round_trip(rc, port, socket, task, tlp, 4, NULL) == 0;
}

/* ---- Configuration --------------------------------------------------------------------------- */

/* The root port that is this function itself, or NULL. */
static struct rc_port *own_port(struct root_complex_host *host, uint16_t id, struct model **rc)
{
    unsigned device = (id >> 3) & 0x1f;
    for (unsigned s = 0; s < host->n_sockets; s++) {
        struct rc_state *state = host->rc[s] != NULL ? rc_of(host->rc[s]) : NULL;
        if (state != NULL && state->bus == id >> 8 && (id & 7) == 0 && device >= 1 &&
            device <= state->n_ports) {
            *rc = host->rc[s];
            return &state->port[device - 1];
        }
    }
    return NULL;
}

static uint32_t config_request(struct root_complex_host *host, unsigned socket,
                               struct sim_task *task, uint16_t id, unsigned offset, unsigned bytes,
                               bool write, uint32_t value)
{
    struct model *rc;
    unsigned port;
    uint32_t ones = bytes == 4 ? UINT32_MAX : (1u << (8 * bytes)) - 1;
    if (!rc_route_id(host, id, &rc, &port))
        return ones;
    struct rc_port *at = &rc_of(rc)->port[port];
    const bool integrated = rc->ports[port].integrated;
    bool type0 = integrated || id >> 8 == cfg_bridge_secondary(&at->cfg);
    if (type0 && !integrated && ((id >> 3) & 0x1f) != 0)
        return ones; /* a link has one device, number 0 (PCIe Base 3.1, 7.3.1) */
    enum tlp_type type = write ? (type0 ? TLP_CFG_WR0 : TLP_CFG_WR1)
                               : (type0 ? TLP_CFG_RD0 : TLP_CFG_RD1);
    struct tlp *tlp = tlp_new(rc->pcie, type);
    tlp->address = offset;
    tlp->completer_id = id;
    tlp->length_bytes = (uint16_t)bytes;
    if (write) {
        tlp_payload_new(rc->pcie, tlp);
        for (unsigned i = 0; i < bytes; i++)
            tlp->payload[i] = (uint8_t)(value >> (8 * i));
    }
    const uint32_t value_read = (uint32_t)round_trip(rc, port, socket, task, tlp, bytes, NULL);
    if (integrated) /* its limit is that of both directions */
        at->cfg.live.mps_bytes = (uint16_t)pcie_port_peer(&rc->ports[port])->mps_bytes;
    return value_read;
}

/* A root port's own register: there and back. */
static void own_register(struct root_complex_host *host, unsigned socket, struct sim_task *task,
                         const struct rc_state *state, bool write)
{
    sim_time t = numa_io_send(host->numa, socket, state->socket,
                              write ? NUMA_IO_DATA : NUMA_IO_REQUEST, sim_task_now(task));
    t += state->params.outbound_ps + state->params.inbound_ps;
    t = numa_io_send(host->numa, state->socket, socket, write ? NUMA_IO_COMPLETION : NUMA_IO_DATA,
                     t);
    sim_task_charge_until(task, t);
}

uint32_t root_complex_config_read(struct root_complex_host *host, unsigned socket,
                                  struct sim_task *task, uint16_t id, unsigned offset,
                                  unsigned bytes)
{
    struct model *rc;
    sim_task_sync(task);
    struct rc_port *port = own_port(host, id, &rc);
    if (port == NULL)
        return config_request(host, socket, task, id, offset, bytes, false, 0);
    own_register(host, socket, task, rc_of(rc), false);
    return cfg_read(&port->cfg, offset, bytes);
}

void root_complex_config_write(struct root_complex_host *host, unsigned socket,
                               struct sim_task *task, uint16_t id, unsigned offset, unsigned bytes,
                               uint32_t value)
{
    struct model *rc;
    sim_task_sync(task);
    struct rc_port *port = own_port(host, id, &rc);
    if (port == NULL) {
        config_request(host, socket, task, id, offset, bytes, true, value);
        return;
    }
    own_register(host, socket, task, rc_of(rc), true);
    sim_task_sync(task);
    cfg_write(&port->cfg, offset, bytes, value);
    rc->ports[port - rc_of(rc)->port].mps_bytes = cfg_mps_bytes(&port->cfg);
}
