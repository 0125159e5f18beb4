/*
 * Interrupts of the Ethernet firmware of myri.myri10g.
 *
 * Models: a message per slice that tells of received packets; slice 0's, with a block of counters
 *   in memory before it, of sent packets and the link as well. None follows another of the slice
 *   before the driver has acknowledged it, nor within the coalescing time; none tells of received
 *   packets while the driver polls.
 * Timing: the block and the message follow the completions of the packets on the link.
 * Sources: Linux, drivers/net/myri10ge (myri10ge_intr, myri10ge_poll); that the coalescing time
 *   begins with the last interrupt: docs/models/myri.md.
 */
#include "models/myri/myri_internal.h"

#define TAGS 15u /* "RDMA tags": reads in flight */

static void timer_fired(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    myri_interrupt_try(SIM_CONTAINER(event, struct myri_slice, timer));
}

void myri_interrupt_init(struct myri_slice *slice)
{
    sim_event_init(&slice->timer, timer_fired);
}

void myri_interrupt_reset(struct myri_slice *slice)
{
    sim_cancel(slice->nic->model->sim, &slice->timer);
    slice->may_report = slice->may_claim = true;
    slice->received = false;
    slice->last_ps = 0;
}

static void look_again(struct myri_slice *slice, sim_time at_ps)
{
    struct sim *sim = slice->nic->model->sim;
    if (sim_event_pending(&slice->timer)) {
        if (slice->timer.time_ps <= at_ps)
            return;
        sim_cancel(sim, &slice->timer);
    }
    sim_schedule(sim, &slice->timer, at_ps);
}

static void write_status(struct myri_slice *slice, bool received)
{
    struct myri *nic = slice->nic;
    struct myri_ether *ether = &nic->ether;
    const struct myri_status status = {
        .dropped_filtered = myri_be32((uint32_t)nic->stats.rx_filtered),
        .send_done = myri_be32(ether->send_done),
        .link_up = myri_be32(ether_port_up(nic->port)),
        .dropped_overrun = myri_be32((uint32_t)nic->stats.rx_overflow),
        .dropped_no_small = myri_be32(ether->no_small),
        .dropped_no_big = myri_be32(ether->no_big),
        .tags_available = myri_be32(TAGS),
        .updated = ether->link_changed,
        .valid = (uint8_t)(MYRI_VALID | (received ? MYRI_VALID_RECEIVE : 0)),
    };
    myri_post(nic, slice->status_iova, &status, sizeof(status));
    ether->send_told = ether->send_done;
    ether->link_changed = false;
    slice->may_report = false;
}

static void interrupt(struct myri_slice *slice, bool received)
{
    struct myri *nic = slice->nic;
    if (slice->number == 0)
        write_status(slice, received);
    if (received)
        slice->received = slice->may_claim = false;
    slice->last_ps = myri_now(nic);
    pcie_function_interrupt(&nic->pcie, slice->number);
}

void myri_interrupt_try(struct myri_slice *slice)
{
    struct myri *nic = slice->nic;
    const struct myri_ether *ether = &nic->ether;
    const bool first = slice->number == 0, received = slice->received && slice->may_claim;
    const sim_time now_ps = myri_now(nic);
    const sim_time after_ps = slice->last_ps + ether->coalescing_us * SIM_PS_PER_US;
    const bool tells = first && (ether->link_changed || ether->send_done != ether->send_told);
    if (!nic->up || (first && !slice->may_report) || (!received && !tells))
        return;
    if (slice->last_ps != 0 && now_ps < after_ps)
        look_again(slice, after_ps);
    else
        interrupt(slice, received);
}

void myri_interrupt_ack(struct myri *nic, uint64_t offset)
{
    struct myri_slice *slice = &nic->ether.slice[offset / MYRI_ACK_BYTES];
    if (offset % MYRI_ACK_BYTES == MYRI_ACK_CLAIM)
        slice->may_claim = true;
    else
        slice->may_report = true;
    myri_interrupt_try(slice);
}

void myri_link_changed(struct ether_port *port, bool up)
{
    struct myri *nic = myri_of(port->model);
    (void)up;
    nic->ether.link_changed = true;
    myri_interrupt_try(&nic->ether.slice[0]);
}
