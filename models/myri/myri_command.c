/*
 * Commands to the firmware of myri.myri10g; those of Myrinet Express go on to myri_mx.c.
 *
 * Models: one command after the other, answered by a write to the address in it; those that take
 *   the interface down are answered when no packet is under way any more.
 * Does not model: commands that our driver does not use: they are unknown.
 * Timing: the processor's time command_latency (of a region: firmware_mx), then the write.
 * Sources: Linux, drivers/net/myri10ge/myri10ge_mcp.h.
 */
#include "models/myri/myri_internal.h"

#include <string.h>

#include "hw/myri_mx.h"

void myri_respond(struct myri *nic, enum myri_result result, uint32_t data)
{
    const struct myri_command *c = &nic->commanded;
    const uint64_t iova = (uint64_t)myri_be32(c->response_high) << 32 | myri_be32(c->response_low);
    const struct myri_response response = { .data = myri_be32(data), .result = myri_be32(result) };
    nic->commanding = false;
    myri_post(nic, iova, &response, sizeof(response));
}

/* All that was under way has ended. */
void myri_command_quiet(struct myri *nic)
{
    if (nic->n_under_way != 0)
        return;
    nic->closing = false;
    if (nic->mx != NULL)
        myri_mx_reset(nic);
    myri_ether_reset(nic);
    myri_respond(nic, MYRI_OK, 0);
}

static void take_down(struct myri *nic)
{
    nic->up = false;
    nic->closing = true;
    if (nic->ether.send.tx != NULL)
        myri_tx_free(nic, nic->ether.send.tx);
    nic->ether.send.tx = NULL;
    myri_command_quiet(nic);
}

static bool can_go_up(const struct myri *nic)
{
    const struct myri_ether *ether = &nic->ether;
    for (unsigned i = 0; i < ether->n_slices; i++)
        if (ether->slice[i].queue_iova == 0)
            return false;
    return ether->slice[0].status_iova != 0 && ether->queue_bytes != 0 && ether->big_bytes != 0 &&
           ether->mtu_bytes != 0;
}

/* Addresses. False: there is no such slice. */
static bool set_address(struct myri *nic, uint32_t command, uint32_t slice, uint64_t iova)
{
    if (slice >= MYRI_SLICES_MAX)
        return false;
    if (command == MYRI_SET_QUEUE_DMA)
        nic->ether.slice[slice].queue_iova = iova;
    else
        nic->ether.slice[slice].status_iova = iova;
    return true;
}

static enum myri_result set_slices(struct myri *nic, uint32_t n, uint32_t mode)
{
    if (nic->params.firmware != MYRI_FIRMWARE_MULTIQUEUE)
        return MYRI_UNKNOWN;
    if (n == 0 || n > MYRI_SLICES_MAX || mode != MYRI_SLICES_INTERRUPT_EACH)
        return MYRI_ERROR_RANGE;
    nic->ether.n_slices = n;
    return MYRI_OK;
}

static enum myri_result set_steering(struct myri *nic, uint32_t on, uint32_t hash)
{
    if (nic->params.firmware != MYRI_FIRMWARE_MULTIQUEUE)
        return MYRI_UNKNOWN;
    if (on != 0 && hash != MYRI_HASH_PORTS)
        return MYRI_ERROR_RANGE;
    nic->ether.steering = on != 0;
    return MYRI_OK;
}

static enum myri_result execute_sizes(struct myri *nic, uint32_t command, uint32_t data0)
{
    struct myri_ether *ether = &nic->ether;
    switch (command) {
    case MYRI_SET_BIG_BYTES:
        if (data0 < 1024 || (data0 & (data0 - 1)) != 0)
            return MYRI_ERROR_RANGE;
        ether->big_bytes = data0;
        return MYRI_OK;
    case MYRI_SET_SMALL_BYTES: ether->small_bytes = data0; return MYRI_OK;
    case MYRI_SET_QUEUE_BYTES:
        if (data0 < MYRI_SLOT_BYTES || (data0 & (data0 - 1)) != 0)
            return MYRI_ERROR_RANGE;
        ether->queue_bytes = data0;
        return MYRI_OK;
    case MYRI_SET_MTU:
        if (data0 > nic->params.mtu_bytes + 14)
            return MYRI_ERROR_RANGE;
        ether->mtu_bytes = data0;
        return MYRI_OK;
    case MYRI_SET_TABLE_ENTRIES:
        if (data0 == 0 || data0 > sizeof(ether->table))
            return MYRI_ERROR_RANGE;
        ether->table_entries = data0;
        return MYRI_OK;
    default: return MYRI_UNKNOWN;
    }
}

static enum myri_result execute(struct myri *nic, uint32_t *data)
{
    const struct myri_command *c = &nic->commanded;
    const uint32_t command = myri_be32(c->command), data0 = myri_be32(c->data0);
    const uint32_t data1 = myri_be32(c->data1), data2 = myri_be32(c->data2);
    const bool several = nic->params.firmware == MYRI_FIRMWARE_MULTIQUEUE;
    switch (command) {
    case MYRI_GET_VERSION: *data = MYRI_VERSION; return MYRI_OK;
    case MYRI_SET_QUEUE_DMA:
        return set_address(nic, command, data2, (uint64_t)data1 << 32 | data0) ? MYRI_OK
                                                                               : MYRI_ERROR_RANGE;
    case MYRI_SET_STATUS_DMA:
        return set_address(nic, command, data2 >> MYRI_STATUS_DMA_SLICE_SHIFT,
                           (uint64_t)data1 << 32 | data0)
                   ? MYRI_OK
                   : MYRI_ERROR_RANGE;
    case MYRI_GET_ACK_OFFSET: *data = MYRI_ACK_AT; return MYRI_OK;
    case MYRI_GET_COALESCING_OFFSET: *data = MYRI_COALESCING_AT; return MYRI_OK;
    case MYRI_GET_TABLE_OFFSET: *data = MYRI_TABLE_AT; return several ? MYRI_OK : MYRI_UNKNOWN;
    case MYRI_GET_SLICES_MAX: *data = MYRI_SLICES_MAX; return several ? MYRI_OK : MYRI_UNKNOWN;
    case MYRI_GET_SEND_RING_BYTES:
        *data = nic->params.ring_entries * (uint32_t)sizeof(struct myri_send);
        return MYRI_OK;
    case MYRI_GET_RECEIVE_RING_BYTES:
        *data = nic->params.ring_entries * (uint32_t)sizeof(struct myri_receive);
        return MYRI_OK;
    case MYRI_SET_MAC: nic->mac = (uint64_t)data0 << 16 | (data1 & 0xffff); return MYRI_OK;
    case MYRI_ENABLE_SLICES: return set_slices(nic, data0, data1);
    case MYRI_SET_STEERING: return set_steering(nic, data0, data1);
    case MYRI_UP:
        if (!can_go_up(nic))
            return MYRI_ERROR_CLOSED;
        nic->up = true;
        return MYRI_OK;
    default: return execute_sizes(nic, command, data0);
    }
}

/* Of the firmware of Myrinet Express. */
static void run_mx(struct myri *nic, uint32_t command)
{
    const struct myri_command *c = &nic->commanded;
    const uint64_t address = (uint64_t)myri_be32(c->data1) << 32 | myri_be32(c->data0);
    enum myri_result result;
    if (command == MYRI_GET_VERSION || command == MYRI_UP) {
        nic->up |= command == MYRI_UP;
        myri_respond(nic, MYRI_OK, MYRI_MX_VERSION);
        return;
    }
    result = nic->up ? myri_mx_command(nic, command, address, myri_be32(c->data2))
                     : MYRI_ERROR_CLOSED;
    if (result != MYRI_OK)
        myri_respond(nic, result, 0);
}

static void run(struct myri *nic, struct myri_job *job)
{
    const uint32_t command = myri_be32(nic->commanded.command);
    uint32_t data = 0;
    (void)job;
    nic->stats.commands++;
    if (command == MYRI_RESET || command == MYRI_DOWN) {
        take_down(nic);
        return;
    }
    if (nic->mx != NULL) {
        run_mx(nic, command);
        return;
    }
    const enum myri_result result = execute(nic, &data);
    myri_respond(nic, result, data);
    if (command == MYRI_UP && result == MYRI_OK)
        myri_interrupt_try(&nic->ether.slice[0]); /* tells the link */
}

void myri_command_line(struct myri *nic)
{
    if (nic->commanding) {
        nic->stats.bad_requests++;
        return;
    }
    nic->commanding = true;
    memcpy(&nic->commanded, nic->command_line, sizeof(nic->commanded));
    const uint32_t command = myri_be32(nic->commanded.command);
    const bool short_one = command == MYRI_MX_REGION_NEW || command == MYRI_MX_REGION_FREE;
    myri_work(nic, &nic->command, short_one ? nic->params.mx_ps : nic->params.command_ps, run);
}
