#include "tests/support/nic_fake.h"

struct fake_nic_queue_ref { /* of an event */
    struct fake_nic *nic;
    unsigned number;
};

static struct fake_queue *fake_nic_queue(struct fake_queue *queues, unsigned number)
{
    assert_true(number < FAKE_NIC_QUEUES);
    assert_true(queues[number].there);
    return &queues[number];
}

/* ---- Events and completions ------------------------------------------------------------------ */

static void fake_nic_interrupt(struct fake_nic *nic, struct fake_queue *eq)
{
    eq->armed = false;
    if (nic->lose_irqs > 0) {
        nic->lose_irqs--;
        return;
    }
    nic->n_irqs++;
    fake_irq_raise(nic->kernel, &nic->pci, eq->target);
}

static void fake_nic_event(struct fake_nic *nic, unsigned number, uint8_t type, uint16_t cq)
{
    struct fake_queue *eq = fake_nic_queue(nic->eq, number);
    struct nic_eqe eqe = { .type = type, .queue = cq };
    uint32_t slot = eq->produced & ((1u << eq->log) - 1);
    eqe.owner = !(eq->produced >> eq->log & 1);
    assert_true(eq->produced - eq->consumed < 1u << eq->log);
    k_poke(nic->kernel, (struct kaddr){ eq->iova + slot * sizeof eqe }, &eqe, sizeof eqe);
    eq->produced++;
    if (eq->armed)
        fake_nic_interrupt(nic, eq);
}

static void fake_nic_check_armed(struct fake_nic *nic, unsigned number)
{
    struct fake_queue *cq = &nic->cq[number];
    if (!cq->armed || ((cq->produced - cq->arm_ci) & 0xffffffu) == 0)
        return;
    cq->armed = false;
    fake_nic_event(nic, cq->target, NIC_EVENT_COMPLETION, (uint16_t)number);
}

static void fake_nic_complete(struct fake_nic *nic, unsigned number, struct nic_cqe *cqe,
                              uint8_t opcode)
{
    struct fake_queue *cq = fake_nic_queue(nic->cq, number);
    uint32_t slot = cq->produced & ((1u << cq->log) - 1);
    cqe->op_own = (uint8_t)(opcode << 4 | !(cq->produced >> cq->log & 1));
    cqe->time_ps = nic->kernel->now_ps;
    k_poke(nic->kernel, (struct kaddr){ cq->iova + slot * sizeof *cqe }, cqe, sizeof *cqe);
    cq->produced++;
    nic->n_cqes++;
    fake_nic_check_armed(nic, number);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void fake_nic_send_one(struct fake_nic *nic, unsigned number)
{
    struct fake_queue *sq = &nic->sq[number];
    uint8_t wqe[NIC_WQE_BLOCKS_MAX * NIC_WQE_BLOCK_BYTES], frame[70000];
    struct nic_wqe_control control;
    struct nic_wqe_ethernet ethernet;
    uint32_t mask = (1u << sq->log) - 1, first = sq->consumed;
    for (unsigned i = 0; i < NIC_WQE_BLOCKS_MAX; i++)
        k_peek(nic->kernel, (struct kaddr){ sq->iova + ((first + i) & mask) * NIC_WQE_BLOCK_BYTES },
               wqe + i * NIC_WQE_BLOCK_BYTES, NIC_WQE_BLOCK_BYTES);
    memcpy(&control, wqe, sizeof control);
    memcpy(&ethernet, wqe + 16, sizeof ethernet);
    assert_int_equal(control.index, first & 0xffff);
    assert_int_equal(control.queue, number);
    assert_int_equal(control.opcode, ethernet.segment_bytes ? NIC_OP_TSO : NIC_OP_SEND);
    unsigned at = (30u + ethernet.inline_bytes + 15) / 16;
    uint32_t bytes = ethernet.inline_bytes;
    memcpy(frame, wqe + 30, bytes);
    nic->n_hints = 0;
    for (; at < control.n_segments; at++) {
        struct nic_wqe_data data;
        memcpy(&data, wqe + (size_t)at * 16, sizeof data);
        assert_true(data.bytes > 0 && bytes + data.bytes <= sizeof frame);
        k_peek(nic->kernel, (struct kaddr){ data.iova }, frame + bytes, data.bytes);
        bytes += data.bytes;
        nic->hints[nic->n_hints++] = data.function_hint;
    }
    sq->consumed += (control.n_segments + 3u) / 4;
    nic->n_sent++;
    nic->sent(nic, number, frame, bytes, &ethernet);
    if ((control.flags & NIC_WQE_COMPLETION) != 0) {
        struct nic_cqe cqe = { .wqe_index = (uint16_t)first, .queue = (uint16_t)number };
        nic->n_requested++;
        fake_nic_complete(nic, sq->target, &cqe, NIC_CQE_SENT);
    }
}

static void fake_nic_send_event(void *arg)
{
    struct fake_nic_queue_ref *ref = arg;
    struct fake_nic *nic = ref->nic;
    struct fake_queue *sq = &nic->sq[ref->number];
    nic->busy[ref->number] = false;
    while (!nic->gone && sq->there && ((sq->produced - sq->consumed) & 0xffff) != 0) {
        assert_true(((sq->produced - sq->consumed) & 0xffff) <= 1u << sq->log);
        fake_nic_send_one(nic, ref->number);
    }
    free(ref);
}

void fake_nic_send_soon(struct fake_nic *nic, unsigned number)
{
    if (nic->busy[number] || nic->hold_completions)
        return;
    struct fake_nic_queue_ref *ref = malloc(sizeof *ref);
    *ref = (struct fake_nic_queue_ref){ nic, number };
    nic->busy[number] = true;
    fake_at(nic->kernel, nic->kernel->now_ps + fake_random(nic->kernel, FAKE_US(3)),
            fake_nic_send_event, ref);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

void fake_nic_give_back(struct fake_nic *nic, unsigned number)
{
    if (!nic->kept[number])
        return;
    nic->kept[number] = false;
    fake_nic_complete(nic, nic->rq[number].target, &nic->kept_cqe[number], NIC_CQE_RECEIVED);
}

void fake_nic_fail_rq(struct fake_nic *nic, unsigned number)
{
    struct nic_cqe cqe = { .wqe_index = (uint16_t)nic->rq[number].consumed };
    nic->rq[number].failed = true;
    fake_nic_complete(nic, nic->rq[number].target, &cqe, NIC_CQE_ERROR);
}

bool fake_nic_receive(struct fake_nic *nic, unsigned number, const void *frame, uint32_t bytes,
                      uint16_t header_bytes, uint32_t hash)
{
    if (nic->gone || !nic->rq[number].there || nic->rq[number].failed)
        return false;
    struct fake_queue *rq = &nic->rq[number];
    uint32_t mask = (1u << rq->log) - 1, slot = rq->consumed & mask;
    k_peek(nic->kernel, (struct kaddr){ rq->record_iova }, &rq->produced, sizeof rq->produced);
    assert_true(rq->produced - rq->consumed <= mask + 1);
    if (rq->produced == rq->consumed) {
        nic->drops++;
        return false;
    }
    struct nic_wqe_data wqe;
    k_peek(nic->kernel, (struct kaddr){ rq->iova + slot * sizeof wqe }, &wqe, sizeof wqe);
    assert_true(wqe.bytes >= bytes);
    k_poke(nic->kernel, (struct kaddr){ wqe.iova }, frame, bytes);
    struct nic_cqe cqe = { .rss_hash = hash,
                           .flags = NIC_CQE_CHECKSUM_OK | NIC_CQE_HASH,
                           .segments = 1,
                           .header_bytes = header_bytes,
                           .bytes = bytes,
                           .wqe_index = (uint16_t)rq->consumed,
                           .queue = (uint16_t)number };
    if (nic->wrong_every && hash % nic->wrong_every == 0)
        cqe.flags = NIC_CQE_HASH;
    rq->consumed++;
    if (nic->shuffles && !nic->kept[number] && fake_random(nic->kernel, 3) == 0) {
        nic->kept[number] = true;
        nic->kept_cqe[number] = cqe;
        return true;
    }
    fake_nic_complete(nic, rq->target, &cqe, NIC_CQE_RECEIVED);
    if (nic->shuffles && fake_random(nic->kernel, 5) == 0)
        fake_nic_give_back(nic, number);
    return true;
}

uint32_t fake_nic_posted(struct fake_nic *nic, unsigned number)
{
    struct fake_queue *rq = fake_nic_queue(nic->rq, number);
    k_peek(nic->kernel, (struct kaddr){ rq->record_iova }, &rq->produced, sizeof rq->produced);
    return rq->produced - rq->consumed;
}

/* ---- Commands -------------------------------------------------------------------------------- */

static uint8_t fake_nic_create(struct fake_nic *nic, struct fake_queue *queues,
                               const struct nic_command *c)
{
    if (c->queue >= FAKE_NIC_QUEUES || (queues == nic->cq && nic->refuse_cq && c->queue == 3))
        return NIC_COMMAND_NO_RESOURCE;
    struct fake_queue *queue = &queues[c->queue];
    if (queue->there)
        return NIC_COMMAND_BAD;
    *queue = (struct fake_queue){ .there = true,
                                  .log = c->log_entries,
                                  .target = c->target,
                                  .iova = c->iova,
                                  .record_iova = c->record_iova,
                                  .moderation_us = c->moderation_us,
                                  .moderation_count = c->moderation_count,
                                  .moderation_mode = c->moderation_mode };
    return NIC_COMMAND_OK;
}

static uint8_t fake_nic_destroy(struct fake_queue *queues, unsigned number)
{
    if (!queues[number].there)
        return NIC_COMMAND_BAD;
    queues[number].there = queues[number].armed = false;
    return NIC_COMMAND_OK;
}

static struct fake_flow *fake_nic_flow(struct fake_flow *flows, const struct nic_command *c)
{
    for (unsigned i = 0; i < FAKE_NIC_FLOWS; i++)
        if (flows[i].there && flows[i].source_ip == c->source_ip &&
            flows[i].source_port == c->source_port)
            return &flows[i];
    return NULL;
}

static uint8_t fake_nic_set(struct fake_nic *nic, struct fake_flow *flows,
                            const struct nic_command *c)
{
    struct fake_flow *flow = fake_nic_flow(flows, c);
    for (unsigned i = 0; !flow && i < nic->n_flows; i++)
        if (!flows[i].there)
            flow = &flows[i];
    if (!flow)
        return NIC_COMMAND_NO_RESOURCE;
    *flow = (struct fake_flow){ true, c->source_ip, c->source_port, c->target };
    return NIC_COMMAND_OK;
}

static uint8_t fake_nic_unset(struct fake_flow *flows, const struct nic_command *c)
{
    struct fake_flow *flow = fake_nic_flow(flows, c);
    if (!flow)
        return NIC_COMMAND_NOT_FOUND;
    flow->there = false;
    return NIC_COMMAND_OK;
}

static uint8_t fake_nic_match(struct fake_nic *nic, const struct nic_command *c)
{
    const bool in_switch = (c->flags & NIC_COMMAND_SWITCH) != 0;
    struct fake_match *match = in_switch ? nic->switch_match : nic->match;
    const bool was_there = c->queue < FAKE_NIC_RULES && match[c->queue].there;
    if (c->queue >= FAKE_NIC_RULES)
        return NIC_COMMAND_NO_RESOURCE;
    if (c->opcode == NIC_DELETE_MATCH) {
        match[c->queue].there = false;
        return was_there ? NIC_COMMAND_OK : NIC_COMMAND_NOT_FOUND;
    }
    if (!in_switch)
        fake_nic_queue(nic->rq, c->target);
    match[c->queue] = (struct fake_match){ true, c->target, c->match };
    return NIC_COMMAND_OK;
}

static uint8_t fake_nic_execute(struct fake_nic *nic, struct nic_command *c)
{
    switch (c->opcode) {
    case NIC_CREATE_EQ: return fake_nic_create(nic, nic->eq, c);
    case NIC_CREATE_CQ: fake_nic_queue(nic->eq, c->target); return fake_nic_create(nic, nic->cq, c);
    case NIC_CREATE_SQ: fake_nic_queue(nic->cq, c->target); return fake_nic_create(nic, nic->sq, c);
    case NIC_CREATE_RQ: fake_nic_queue(nic->cq, c->target); return fake_nic_create(nic, nic->rq, c);
    case NIC_DESTROY_EQ: return fake_nic_destroy(nic->eq, c->queue);
    case NIC_DESTROY_CQ: return fake_nic_destroy(nic->cq, c->queue);
    case NIC_DESTROY_SQ: return fake_nic_destroy(nic->sq, c->queue);
    case NIC_DESTROY_RQ: return fake_nic_destroy(nic->rq, c->queue);
    case NIC_MODIFY_CQ: {
        struct fake_queue *cq = fake_nic_queue(nic->cq, c->queue);
        cq->moderation_us = c->moderation_us;
        cq->moderation_count = c->moderation_count;
        return NIC_COMMAND_OK;
    }
    case NIC_SET_RSS:
        assert_int_equal(c->log_entries, 7);
        k_peek(nic->kernel, (struct kaddr){ c->iova }, nic->rss, 128 * sizeof *nic->rss);
        return NIC_COMMAND_OK;
    case NIC_SET_FLOW: return fake_nic_set(nic, nic->flow, c);
    case NIC_DELETE_FLOW: return fake_nic_unset(nic->flow, c);
    case NIC_SET_SWITCH: return fake_nic_set(nic, nic->rule, c);
    case NIC_DELETE_SWITCH: return fake_nic_unset(nic->rule, c);
    case NIC_SET_MATCH:
    case NIC_DELETE_MATCH: return fake_nic_match(nic, c);
    case NIC_QUERY_DROPS: c->value = (uint32_t)nic->drops; return NIC_COMMAND_OK;
    default: return NIC_COMMAND_BAD;
    }
}

static void fake_nic_command_event(void *arg)
{
    struct fake_nic *nic = arg;
    struct nic_command c;
    nic->command_runs = false;
    if (nic->gone)
        return;
    k_peek(nic->kernel, (struct kaddr){ nic->command }, &c, sizeof c);
    assert_int_equal(c.status, NIC_COMMAND_PENDING);
    c.status = fake_nic_execute(nic, &c);
    nic->n_commands++;
    k_poke(nic->kernel, (struct kaddr){ nic->command }, &c, sizeof c);
}

/* ---- Registers ------------------------------------------------------------------------------- */

static struct fake_nic *fake_nic_of(struct k_pci_dev *dev)
{
    return K_CONTAINER(dev, struct fake_nic, pci);
}

static uint64_t fake_nic_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    struct fake_nic *nic = fake_nic_of(dev);
    k_compute(nic->kernel, 1800);
    if (nic->gone)
        return bytes == 4 ? UINT32_MAX : UINT64_MAX;
    switch (address - dev->bar_base[0]) {
    case NIC_REG_VERSION: return NIC_VERSION;
    case NIC_REG_FIRMWARE: return nic->firmware;
    case NIC_REG_FUNCTION: return nic->function;
    case NIC_REG_N_FUNCTIONS: return nic->n_functions;
    case NIC_REG_MAC_LOW: return (uint32_t)nic->mac;
    case NIC_REG_MAC_HIGH: return nic->mac >> 32;
    case NIC_REG_N_QUEUES: return nic->n_queues;
    case NIC_REG_N_ARFS:
    case NIC_REG_N_SWITCH: return nic->n_flows;
    case NIC_REG_LINK: return 1;
    case NIC_REG_RATE_GBIT_S: return 100;
    default: fail_msg("read of register %#llx", (unsigned long long)(address - dev->bar_base[0]));
    }
    return 0;
}

static void fake_nic_doorbell(struct fake_nic *nic, uint64_t offset, uint64_t value)
{
    unsigned number = (unsigned)(offset & 0xffff) / 8;
    if (offset < 0x20000) {
        struct fake_queue *sq = fake_nic_queue(nic->sq, number);
        uint32_t record;
        k_peek(nic->kernel, (struct kaddr){ sq->record_iova }, &record, sizeof record);
        assert_int_equal(record & 0xffff, value);
        sq->produced = (uint32_t)value;
        nic->n_doorbells++;
        fake_nic_send_soon(nic, number);
    } else if (offset < 0x30000) {
        struct fake_queue *cq = &nic->cq[number];
        cq->armed = cq->there;
        cq->arm_ci = (uint32_t)value;
        cq->n_arms++;
        assert_true(((cq->produced - cq->arm_ci) & 0xffffffu) <= 1u << cq->log);
        if (cq->there)
            fake_nic_check_armed(nic, number);
    } else {
        struct fake_queue *eq = &nic->eq[number];
        eq->consumed = (uint32_t)value;
        eq->armed = eq->there;
        if (eq->there && eq->produced != eq->consumed)
            fake_nic_interrupt(nic, eq);
    }
}

static void fake_nic_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value)
{
    struct fake_nic *nic = fake_nic_of(dev);
    uint64_t offset = address - dev->bar_base[0];
    if (!nic->gone && offset == NIC_REG_COMMAND_LOW) {
        nic->command_low = (uint32_t)value;
    } else if (!nic->gone && offset == NIC_REG_COMMAND_HIGH) {
        assert_false(nic->command_runs);
        nic->command = value << 32 | nic->command_low;
        nic->command_runs = true;
        fake_at(nic->kernel, nic->kernel->now_ps + fake_random(nic->kernel, FAKE_US(8)),
                fake_nic_command_event, nic);
    } else if (!nic->gone) {
        assert_int_equal(bytes, 8);
        fake_nic_doorbell(nic, offset, value);
    }
    k_compute(nic->kernel, 100);
}

static uint32_t fake_nic_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    (void)dev;
    (void)offset;
    (void)bytes;
    return 0;
}

static void fake_nic_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes,
                                  uint32_t value)
{
    (void)dev;
    assert_int_equal(offset, 4);
    assert_int_equal(bytes, 2);
    assert_int_equal(value & 6, 6); /* memory, bus master */
}

static const struct k_pci_ops fake_nic_ops = {
    .config_read = fake_nic_config_read,
    .config_write = fake_nic_config_write,
    .mmio_read = fake_nic_read,
    .mmio_write = fake_nic_write,
};

void fake_nic_init(struct fake_nic *nic, struct kernel *kernel, unsigned function,
                   unsigned n_functions, int node)
{
    *nic = (struct fake_nic){ .kernel = kernel,
                              .function = function,
                              .n_functions = n_functions,
                              .n_queues = FAKE_NIC_QUEUES,
                              .n_flows = FAKE_NIC_FLOWS,
                              .mac = 0x665544332211 + function };
    nic->pci = (struct k_pci_dev){ .vendor_id = NIC_VENDOR_ID,
                                   .device_id = NIC_DEVICE_ID,
                                   .id = (uint16_t)(0x100 * (function + 1)),
                                   .ops = &fake_nic_ops,
                                   .device = { .node = node, .name = "nic" } };
    nic->pci.bar_base[0] = UINT64_C(0xf0000000) + function * UINT64_C(0x100000);
    nic->pci.bar_bytes[0] = NIC_BAR_BYTES;
}

void fake_nic_pull(struct fake_nic *nic)
{
    nic->gone = true;
}
