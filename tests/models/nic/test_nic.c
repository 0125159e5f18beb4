/* The NIC's registers, queues and send side against a host of plain memory: unloaded times against
 * their formulas, saturated rates against the bounds, every segment of TSO parsed. */
#include "tests/support/nic_rig.h"

static const struct nr_flow flow_a = { .to_mac = UINT64_C(0x020000000099),
                                       .from_mac = UINT64_C(0x020000000098),
                                       .source_ip = 0x0a000001,
                                       .destination_ip = 0x0a000002,
                                       .source_port = 4000,
                                       .destination_port = 5001 };

static sim_time wire_ps(struct nr_rig *rig, unsigned tlp_bytes)
{
    return pcie_port_wire_ps(&rig->port[0], tlp_bytes);
}

/* A read of n bytes (one request, one completion) from the NIC's decision to the last byte. */
static sim_time round_trip(struct nr_rig *rig, unsigned bytes)
{
    return wire_ps(rig, 8 + 12) + wire_ps(rig, 8 + 12 + (bytes + 3) / 4 * 4) + 2 * NR_LINK_PS +
           rig->delay_ps;
}

static struct nr_cq with_queue(struct nr_rig *rig, unsigned pf, struct nr_sq *sq)
{
    nr_eq_new(rig, pf, 0, 0);
    struct nr_cq cq = nr_cq_new(rig, pf, 0, 0, 10, 0, 0, NIC_MODERATION_EQE);
    *sq = nr_sq_new(rig, pf, 0, 0, 8);
    nr_run(rig);
    return cq;
}

/* ---- Registers and configuration ------------------------------------------------------------- */

static void test_registers(void **state)
{
    struct nr_rig *rig = *state;
    for (unsigned pf = 0; pf < 2; pf++) {
        assert_int_equal(nr_config(rig, pf, false, 0, 0), NIC_DEVICE_ID << 16 | NIC_VENDOR_ID);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_VERSION, 4), NIC_VERSION);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_FIRMWARE, 4), NIC_FIRMWARE_OCTONIC);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_FUNCTION, 4), pf);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_N_FUNCTIONS, 4), 2);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_N_QUEUES, 4), 16);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_N_ARFS, 4), 100);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_LINK, 4), 1);
        assert_int_equal(nr_mmio_read(rig, pf, NIC_REG_RATE_GBIT_S, 4), 100);
        /* bytes 0..3 and 4..5 of the address, in memory order */
        uint32_t low = (uint32_t)nr_mmio_read(rig, pf, NIC_REG_MAC_LOW, 4);
        uint32_t high = (uint32_t)nr_mmio_read(rig, pf, NIC_REG_MAC_HIGH, 4);
        uint8_t mac[8];
        memcpy(mac, &low, 4);
        memcpy(mac + 4, &high, 4);
        assert_int_equal(ether_get_mac(mac), nic_function_mac(rig->nic, pf));
        assert_int_equal(mac[0], 0x02);
    }
    assert_true(nic_function_mac(rig->nic, 0) == nic_function_mac(rig->nic, 1));
    sim_time before_ps = sim_now(rig->sim);
    nr_mmio_read(rig, 0, 0x700, 4); /* nothing there: zero */
    assert_int_equal(rig->answer, 0);
    assert_true(sim_now(rig->sim) - before_ps >= 300 * SIM_PS_PER_NS + 2 * NR_LINK_PS);
    assert_true(nr_mmio_read(rig, 0, NIC_BAR_BYTES, 4) == UINT64_MAX); /* UR */
}

static void test_bad_commands(void **state)
{
    static const struct {
        struct nic_command command;
        unsigned status;
    } wrong[] = {
        { { .opcode = 77 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_CREATE_EQ, .queue = 4 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_CREATE_EQ, .target = NIC_MSIX_VECTORS }, NIC_COMMAND_BAD },
        { { .opcode = NIC_CREATE_EQ, .log_entries = 16 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_CREATE_CQ, .target = 1 }, NIC_COMMAND_BAD }, /* no such EQ */
        { { .opcode = NIC_CREATE_SQ, .target = 3 }, NIC_COMMAND_BAD }, /* no such CQ */
        { { .opcode = NIC_CREATE_RQ, .target = 3 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_MODIFY_CQ, .queue = 3 }, NIC_COMMAND_NOT_FOUND },
        { { .opcode = NIC_DESTROY_SQ, .queue = 3 }, NIC_COMMAND_NOT_FOUND },
        { { .opcode = NIC_DESTROY_RQ, .queue = 3 }, NIC_COMMAND_NOT_FOUND },
        { { .opcode = NIC_DESTROY_CQ, .queue = 3 }, NIC_COMMAND_NOT_FOUND },
        { { .opcode = NIC_DESTROY_EQ, .queue = 3 }, NIC_COMMAND_NOT_FOUND },
        { { .opcode = NIC_SET_RSS, .log_entries = 11 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_SET_FLOW, .target = 4 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_DELETE_FLOW, .protocol = 6 }, NIC_COMMAND_NOT_FOUND },
        { { .opcode = NIC_SET_SWITCH, .target = 1 }, NIC_COMMAND_BAD },
        { { .opcode = NIC_DELETE_SWITCH }, NIC_COMMAND_NOT_FOUND },
    };
    struct nr_rig *rig = *state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(wrong); i++)
        assert_int_equal(nr_command(rig, 0, wrong[i].command).status, wrong[i].status);
    nr_eq_new(rig, 0, 0, 0);
    struct nic_command again = { .opcode = NIC_CREATE_EQ };
    assert_int_equal(nr_command(rig, 0, again).status, NIC_COMMAND_BAD);
}

/* Created, used, destroyed with packets under way, created anew: nothing of before comes after. */
static void test_destroy_under_way(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_sq sq;
    with_queue(rig, 0, &sq);
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    struct nr_piece piece = { data, 60000, 0 };
    nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, &piece, 1, 1446, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    nr_run_for(rig, 1500 * SIM_PS_PER_NS);
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_SQ });
    unsigned n = rig->n_frames;
    nr_run(rig);
    assert_true(n > 0);
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_CQ });
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_EQ });
    struct nr_cq cq = with_queue(rig, 0, &sq);
    struct nic_cqe cqe;
    piece.bytes = 1000;
    nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, &piece, 1, 0, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    n = rig->n_frames;
    nr_run(rig);
    assert_int_equal(rig->n_frames, n + 1);
    assert_true(nr_poll(&cq, &cqe));
}

/* A packet waits for the wire while its queues are destroyed and made anew: the new ones hear
 * nothing of it. */
static void test_destroy_while_paused(void **state)
{
    struct nr_rig *rig = *state;
    struct nic_cqe cqe;
    struct nr_sq sq;
    rig->wire_end.flow_control = true;
    with_queue(rig, 0, &sq);
    const uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    const struct nr_piece piece = { data, 1000, 0 };
    ether_port_pause(&rig->wire_end, true);
    nr_run_for(rig, 10 * SIM_PS_PER_US);
    nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, &piece, 1, 0, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    nr_run_for(rig, 20 * SIM_PS_PER_US);
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_SQ });
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_CQ });
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_EQ });
    nr_eq_new(rig, 0, 0, 0);
    struct nr_cq cq = nr_cq_new(rig, 0, 0, 0, 10, 0, 0, NIC_MODERATION_EQE);
    sq = nr_sq_new(rig, 0, 0, 0, 8);
    assert_int_equal(rig->n_frames, 0);
    ether_port_pause(&rig->wire_end, false);
    nr_run_for(rig, 200 * SIM_PS_PER_US);
    assert_int_equal(rig->n_frames, 1);
    assert_false(nr_poll(&cq, &cqe));
}

/* ---- Virtual functions ----------------------------------------------------------------------- */

#define VF_BAR      UINT64_C(0x80000) /* from the physical function's on */
#define VF_AT(v, x) (VF_BAR + (v)*NIC_BAR_BYTES + (x))
#define VF_ID(v)    pcie_id(1, 0, 1 + (v))

static unsigned sriov_of(struct nr_rig *rig)
{
    unsigned at = PCI_STANDARD_END;
    uint32_t header;
    while (((header = nr_config(rig, 0, false, at, 0)) & 0xffff) != PCI_ECAP_ID_SRIOV) {
        at = header >> PCI_ECAP_NEXT_SHIFT;
        assert_int_not_equal(at, 0);
    }
    return at;
}

static unsigned vf_command(struct nr_rig *rig, unsigned v, struct nic_command command)
{
    uint64_t at = nr_alloc(rig, 64);
    command.status = NIC_COMMAND_PENDING;
    nr_put(rig, at, &command, sizeof(command));
    nr_mmio_write(rig, 0, VF_AT(v, NIC_REG_COMMAND_LOW), 4, (uint32_t)at);
    nr_mmio_write(rig, 0, VF_AT(v, NIC_REG_COMMAND_HIGH), 4, at >> 32);
    nr_run_for(rig, 100 * SIM_PS_PER_US);
    nr_get(rig, at, &command, sizeof(command));
    return command.status;
}

/* They come with VF Enable, have registers of their own and as many rights as they are given, and
 * are as new when they come again. */
static void test_virtual_functions(void **state)
{
    const struct nic_command create = { .opcode = NIC_CREATE_EQ, .log_entries = 4 };
    struct nr_rig *rig = *state;
    uint64_t all[8] = { nic_function_mac(rig->nic, 0), nic_function_mac(rig->nic, 1) };
    for (unsigned i = 0; i < 6; i++) {
        all[2 + i] = nic_vf_mac(rig->nic, i / 3, i % 3);
        for (unsigned k = 0; k < 2 + i; k++)
            assert_true(all[k] != all[2 + i]);
    }
    unsigned cap = sriov_of(rig);
    assert_int_equal(nr_config(rig, 0, false, cap + PCI_SRIOV_INITIAL_VFS, 0), 3 << 16 | 3);
    nr_config(rig, 0, true, cap + PCI_SRIOV_BAR0, (uint32_t)(NR_BAR + VF_BAR));
    nr_config(rig, 0, true, cap + PCI_SRIOV_BAR0 + 4, (uint32_t)(NR_BAR >> 32));
    nr_config(rig, 0, true, cap + PCI_SRIOV_NUM_VFS, 2);
    assert_int_equal(nr_config_id(rig, 0, VF_ID(0), false, PCI_REVISION, 0), UINT32_MAX);
    assert_true(nr_mmio_read(rig, 0, VF_AT(0, NIC_REG_VERSION), 4) == UINT64_MAX);
    for (unsigned life = 0; life < 2; life++) {
        nr_config(rig, 0, true, cap + PCI_SRIOV_CONTROL,
                  PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY);
        for (unsigned v = 0; v < 2; v++) {
            assert_int_equal(nr_config_id(rig, 0, VF_ID(v), false, PCI_VENDOR_ID, 0), UINT32_MAX);
            assert_int_equal(nr_config_id(rig, 0, VF_ID(v), false, PCI_REVISION, 0), 0x02000000);
            assert_int_equal(nr_mmio_read(rig, 0, VF_AT(v, NIC_REG_VERSION), 4), NIC_VERSION);
            assert_int_equal(nr_mmio_read(rig, 0, VF_AT(v, NIC_REG_N_FUNCTIONS), 4), 1);
            assert_int_equal(nr_mmio_read(rig, 0, VF_AT(v, NIC_REG_N_SWITCH), 4), 0);
            nr_config_id(rig, 0, VF_ID(v), true, PCI_COMMAND, PCI_COMMAND_BUS_MASTER);
        }
        assert_int_equal(nr_config_id(rig, 0, VF_ID(2), false, PCI_REVISION, 0), UINT32_MAX);
        assert_true(nr_mmio_read(rig, 0, VF_AT(2, NIC_REG_VERSION), 4) == UINT64_MAX);
        uint32_t mac[2] = { (uint32_t)nr_mmio_read(rig, 0, VF_AT(1, NIC_REG_MAC_LOW), 4),
                            (uint32_t)nr_mmio_read(rig, 0, VF_AT(1, NIC_REG_MAC_HIGH), 4) };
        assert_int_equal(ether_get_mac((const uint8_t *)mac), nic_vf_mac(rig->nic, 0, 1));

        assert_int_equal(vf_command(rig, 1, create), NIC_COMMAND_BAD); /* not allowed yet */
        struct nic_command allow = { .opcode = NIC_ENABLE_VFS, .n_vfs = 4 };
        assert_int_equal(nr_command(rig, 0, allow).status, NIC_COMMAND_NO_RESOURCE);
        allow.n_vfs = 2;
        nr_ok(rig, 0, allow);
        assert_int_equal(vf_command(rig, 1, create), NIC_COMMAND_OK);
        assert_int_equal(vf_command(rig, 1, create), NIC_COMMAND_BAD); /* it is there */
        assert_int_equal(vf_command(rig, 0, create), NIC_COMMAND_OK);  /* another one */
        assert_int_equal(vf_command(rig, 1, allow), NIC_COMMAND_BAD);
        struct nic_command rule = { .opcode = NIC_SET_SWITCH };
        assert_int_equal(vf_command(rig, 1, rule), NIC_COMMAND_BAD);
        allow.n_vfs = 0;
        nr_ok(rig, 0, allow);
        nr_config(rig, 0, true, cap + PCI_SRIOV_CONTROL, 0);
        assert_true(nr_mmio_read(rig, 0, VF_AT(1, NIC_REG_VERSION), 4) == UINT64_MAX);
        assert_int_equal(nr_config_id(rig, 0, VF_ID(1), false, PCI_REVISION, 0), UINT32_MAX);
    }
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void test_transmit_latency(void **state)
{
    static const uint32_t sizes[] = { 0, 1, 64, 200, 256 };
    struct nr_rig *rig = *state;
    struct nr_sq sq;
    struct nr_cq cq = with_queue(rig, 0, &sq);
    uint64_t data = nr_alloc(rig, 4096);
    nr_stamp(rig, data, payload_mark(1, 0), 4096);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(sizes); i++) {
        struct nr_piece piece = { data, sizes[i], 0 };
        struct nic_cqe cqe;
        nr_run(rig);
        sim_time start_ps = sim_now(rig->sim);
        uint16_t index = nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, &piece, sizes[i] != 0, 0,
                                NIC_WQE_COMPLETION);
        nr_doorbell(&sq);
        nr_run(rig);
        const struct ether_frame *frame = &rig->frame[i].frame;
        sim_time expected_ps = start_ps + wire_ps(rig, 8 + 16 + 8) + NR_LINK_PS /* doorbell */
                               + round_trip(rig, 128);                          /* two blocks */
        if (sizes[i] != 0) /* a line's rest is read with it, as far as the segment goes */
            expected_ps += round_trip(rig, sizes[i]);
        uint32_t bytes = SIM_MAX(NR_HEADERS + sizes[i], 60u);
        sim_time left_ps = expected_ps + 225 * SIM_PS_PER_NS + (bytes + 12) * 80;
        assert_int_equal(rig->n_frames, i + 1);
        assert_int_equal(rig->frame[i].tail_ps, left_ps + NR_WIRE_PS);
        assert_int_equal(frame->payload.bytes, sizes[i]);
        if (sizes[i] >= 8) {
            assert_int_equal(frame->payload.n, 1);
            assert_true(frame->payload.extent[0].mark == payload_mark(1, 0));
        }
        assert_true(nr_poll(&cq, &cqe));
        assert_int_equal(cqe.op_own >> 4, NIC_CQE_SENT);
        assert_int_equal(cqe.wqe_index, index);
        assert_int_equal(cqe.time_ps, left_ps); /* its last bit has left */
        assert_int_equal(rig->last_write_ps, left_ps + wire_ps(rig, 8 + 12 + 64) + NR_LINK_PS);
        assert_false(nr_poll(&cq, &cqe));
    }
}

/* Several WQEs with one doorbell; a completion only where one was asked for. */
static void test_one_doorbell_for_many(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_sq sq;
    struct nr_cq cq = with_queue(rig, 0, &sq);
    uint64_t data = nr_alloc(rig, 4096);
    nr_stamp(rig, data, payload_mark(1, 0), 4096);
    struct nr_piece piece = { data, 100, 0 };
    uint64_t reads = rig->n_reads;
    for (unsigned round = 0; round < 40; round++) { /* the ring wraps */
        for (unsigned i = 0; i < 16; i++)
            nr_wqe(&sq, &flow_a, i, TCP_FLAG_ACK, &piece, 1, 0, i == 15 ? NIC_WQE_COMPLETION : 0);
        nr_doorbell(&sq);
        nr_run(rig);
        struct nic_cqe cqe;
        assert_true(nr_poll(&cq, &cqe));
        assert_int_equal(cqe.wqe_index, (uint16_t)(sq.producer - 2));
        assert_false(nr_poll(&cq, &cqe));
        for (unsigned i = 0; i < 16; i++)
            assert_int_equal(ether_get32(rig->frame[round * 16 + i].frame.header + 38), i);
    }
    assert_int_equal(rig->n_frames, 640);
    /* 32 blocks are read in pieces of at most 512 bytes, each packet's data in one */
    assert_in_range(rig->n_reads - reads, 640 + 40 * 4, 640 + 40 * 10);
    assert_int_equal(nic_function_stats(rig->nic, 0)->doorbells, 41); /* and the event queue's */
    assert_int_equal(nic_function_stats(rig->nic, 0)->tx_wqes, 1280);
}

/* A TSO WQE of many fragments, some of them misaligned: each segment's headers and content. */
static void test_tso(void **state)
{
    static const uint32_t length[] = { 64, 4096, 1, 4095, 777, 32768, 9, 15000 };
    static const uint32_t shift[] = { 0, 0, 3, 1, 60, 64, 7, 4090 };
    enum { N = SIM_N_ELEMENTS(length), MSS = 1448 };
    struct nr_rig *rig = *state;
    struct nr_sq sq;
    struct nr_piece piece[N];
    struct ether_packet packet;
    uint32_t total = 0;
    struct nr_cq cq = with_queue(rig, 0, &sq);
    for (unsigned i = 0; i < N; i++) {
        piece[i] = (struct nr_piece){ nr_alloc(rig, 40960) + shift[i], length[i], 0 };
        nr_stamp(rig, piece[i].iova, payload_mark(5, total), length[i]);
        total += length[i];
    }
    nr_wqe(&sq, &flow_a, 0xfffffff0, TCP_FLAG_ACK | TCP_FLAG_PSH | TCP_FLAG_FIN | TCP_FLAG_CWR,
           piece, N, MSS, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    nr_run(rig);
    unsigned n = (total + MSS - 1) / MSS;
    assert_int_equal(rig->n_frames, n);
    for (unsigned i = 0; i < n; i++) {
        struct ether_frame *frame = &rig->frame[i].frame;
        uint32_t bytes = i + 1 < n ? MSS : total - (n - 1) * MSS;
        uint8_t flags = TCP_FLAG_ACK;
        flags |= i + 1 == n ? TCP_FLAG_PSH | TCP_FLAG_FIN : 0;
        flags |= i == 0 ? TCP_FLAG_CWR : 0;
        ether_packet_parse(frame->header, frame->header_bytes, &packet);
        assert_true(packet.l4);
        assert_int_equal(packet.flow.source_port, flow_a.source_port);
        assert_int_equal(frame->payload.bytes, bytes);
        assert_int_equal(ether_get16(frame->header + 16), NR_HEADERS - 14 + bytes);
        assert_int_equal(ether_get16(frame->header + 18), 1000 + i);
        assert_int_equal(ether_get32(frame->header + 38), 0xfffffff0 + i * MSS);
        assert_int_equal(frame->header[47], flags);
        assert_int_equal(ether_ipv4_checksum(frame->header, &packet), 0);
        assert_int_equal(ether_l4_checksum(frame, &packet), 0);
        assert_int_equal(frame->payload.n, 1);
        assert_true(frame->payload.extent[0].mark == payload_mark(5, (uint64_t)i * MSS));
    }
    struct nic_cqe cqe;
    assert_true(nr_poll(&cq, &cqe));
    assert_false(nr_poll(&cq, &cqe));
}

/* Saturation: 64 KiB of payload again and again; the time between the first and last packet's
 * arrival gives the rate. */
static double payload_gbit_s(struct nr_rig *rig)
{
    uint64_t bytes = 0;
    for (unsigned i = 1; i < rig->n_frames; i++)
        bytes += rig->frame[i].frame.payload.bytes;
    return (double)bytes * 8000.0 /
           (double)(rig->frame[rig->n_frames - 1].tail_ps - rig->frame[0].tail_ps);
}

static void saturate(struct nr_rig *rig, struct nr_sq *sq, unsigned n_queues, unsigned n_wqes)
{
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    struct nr_piece piece = { data, 1448 * 45, 0 };
    for (unsigned i = 0; i < n_wqes; i++)
        nr_wqe(&sq[i % n_queues], &flow_a, i * 1448 * 45, TCP_FLAG_ACK, &piece, 1, 1448, 0);
    for (unsigned q = 0; q < n_queues; q++)
        nr_doorbell(&sq[q]);
    nr_run(rig);
    assert_int_equal(rig->n_frames, 45 * n_wqes);
}

static void test_transmit_rates(void **unused)
{
    struct nr_rig rig;
    struct nr_sq sq;
    (void)unused;
    /* x16: the wire's rate, 1448 of 1502 + 24 bytes */
    nr_open(&rig, 1, 16, 100, NULL);
    with_queue(&rig, 0, &sq);
    saturate(&rig, &sq, 1, 60);
    double wire = 100.0 * 1448 / 1526;
    assert_true(payload_gbit_s(&rig) > 0.999 * wire && payload_gbit_s(&rig) < 1.0001 * wire);
    nr_close(&rig);
    /* x8: completions of 256 bytes take 276 on the link, less what lines of rest, descriptors and
     * DLLPs take */
    nr_open(&rig, 1, 8, 100, NULL);
    with_queue(&rig, 0, &sq);
    saturate(&rig, &sq, 1, 60);
    double link = 64.0 * 128 / 130 * 256 / 276;
    assert_true(payload_gbit_s(&rig) > 0.95 * link && payload_gbit_s(&rig) < link);
    nr_close(&rig);
    /* few reads in flight: 8 less the 4 kept x 512 bytes a round trip, and up to a packet more */
    static const char *const few[] = { "read_requests_max", "8", NULL };
    nr_open(&rig, 1, 16, 100, few);
    with_queue(&rig, 0, &sq);
    saturate(&rig, &sq, 1, 20);
    double window = 4 * 512 * 8000.0 / (double)round_trip(&rig, 256);
    assert_true(payload_gbit_s(&rig) > 0.95 * window &&
                payload_gbit_s(&rig) < (2048.0 + 1448 + 64) / 2048 * window);
    nr_close(&rig);
}

/* Queues that always have work share the wire evenly, packet by packet, each in order. */
static void test_queues_in_turn(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_sq sq[4];
    uint32_t next[4] = { 0 };
    unsigned count[4] = { 0 };
    with_queue(rig, 0, &sq[0]);
    for (unsigned q = 1; q < 4; q++)
        sq[q] = nr_sq_new(rig, 0, q, 0, 8);
    uint64_t data = nr_alloc(rig, 65536);
    struct nr_piece piece = { data, 1448 * 45, 0 };
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    for (unsigned i = 0; i < 20; i++)
        for (uint16_t q = 0; q < 4; q++) {
            struct nr_flow flow = flow_a;
            flow.source_port = q;
            nr_wqe(&sq[q], &flow, i * 1448 * 45, TCP_FLAG_ACK, &piece, 1, 1448, 0);
        }
    for (unsigned q = 0; q < 4; q++)
        nr_doorbell(&sq[q]);
    nr_run(rig);
    assert_int_equal(rig->n_frames, 4 * 20 * 45);
    for (unsigned i = 0; i < rig->n_frames; i++) {
        unsigned q = ether_get16(rig->frame[i].frame.header + 34);
        assert_int_equal(ether_get32(rig->frame[i].frame.header + 38), next[q]);
        next[q] += 1448;
        count[q]++;
        if (i > 100 && i < 3000)
            for (unsigned other = 0; other < 4; other++)
                assert_true(count[q] <= count[other] + 40);
    }
}

/* IOctoSG: fragments are read through the function that their hint names. */
static void test_hints(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_sq sq;
    struct nr_cq cq = with_queue(rig, 0, &sq);
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    struct nr_piece piece[] = { { data, 1024, 1 },
                                { data + 1024, 2048, 2 },
                                { data + 3072, 512, 0 },
                                { data + 3584, 512, 4 } /* no such function: its own */ };
    uint64_t before[2] = { rig->reads_by_port[0], rig->reads_by_port[1] };
    nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, piece, 4, 1448, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    nr_run(rig);
    assert_int_equal(rig->n_frames, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rig->frame[i].frame.payload.n, 1);
        assert_true(rig->frame[i].frame.payload.extent[0].mark == payload_mark(1, i * 1448u));
    }
    struct nic_cqe cqe;
    assert_true(nr_poll(&cq, &cqe));
    assert_int_equal(nic_function_stats(rig->nic, 1)->read_bytes, 2048);
    assert_true(rig->reads_by_port[1] - before[1] >= 4);
    assert_true(rig->reads_by_port[0] - before[0] >= 5);
    assert_int_equal(nic_function_stats(rig->nic, 0)->tx_packets, 3);
}

/* What no driver of ours writes: one error completion, then silence; another queue goes on. */
static void test_bad_wqe(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_sq sq, other;
    struct nic_cqe cqe;
    struct nr_cq cq = with_queue(rig, 0, &sq);
    other = nr_sq_new(rig, 0, 1, 0, 8);
    uint64_t data = nr_alloc(rig, 4096);
    struct nr_piece piece = { data, 3000, 0 }; /* longer than the MTU, and no TSO */
    uint16_t index = nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, &piece, 1, 0, 0);
    piece.bytes = 100;
    nr_wqe(&sq, &flow_a, 0, TCP_FLAG_ACK, &piece, 1, 0, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    nr_run(rig);
    assert_true(nr_poll(&cq, &cqe));
    assert_int_equal(cqe.op_own >> 4, NIC_CQE_ERROR);
    assert_int_equal(cqe.wqe_index, index);
    assert_false(nr_poll(&cq, &cqe));
    assert_int_equal(rig->n_frames, 0);
    nr_wqe(&other, &flow_a, 0, TCP_FLAG_ACK, &piece, 1, 0, NIC_WQE_COMPLETION);
    nr_doorbell(&other);
    nr_run(rig);
    assert_true(nr_poll(&cq, &cqe));
    assert_int_equal(cqe.op_own >> 4, NIC_CQE_SENT);
    assert_int_equal(cqe.queue, 1);
    nr_mmio_write(rig, 0, NIC_DOORBELL_SQ(1), 8, other.producer + 1000u); /* beyond the ring */
    nr_mmio_write(rig, 0, NIC_DOORBELL_SQ(7), 8, 1);                      /* no such queue */
    nr_run(rig);
    assert_int_equal(rig->n_frames, 1);
}

/* NOPs are skipped; WQEs go on at the start of the ring. */
static void test_nop_and_wrap(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_sq sq;
    with_queue(rig, 0, &sq);
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 4096);
    struct nr_piece piece[8];
    for (unsigned i = 0; i < 8; i++)
        piece[i] = (struct nr_piece){ data + i * 128, 128, 0 };
    for (unsigned i = 0; i < 300; i++) { /* 4 blocks and a NOP: ends off the ring's end */
        struct nic_wqe_control nop = { .opcode = NIC_OP_NOP, .n_segments = 1 };
        nr_wqe(&sq, &flow_a, i, TCP_FLAG_ACK, piece, 8, 0, 0);
        nr_put(rig, sq.ring + UINT64_C(64) * (sq.producer & 255), &nop, sizeof(nop));
        sq.producer++;
        nr_doorbell(&sq);
        nr_run(rig);
        assert_int_equal(rig->n_frames, i + 1);
        assert_int_equal(ether_get32(rig->frame[i].frame.header + 38), i);
        assert_int_equal(rig->frame[i].frame.payload.bytes, 1024);
        assert_int_equal(rig->frame[i].frame.payload.n, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NR_TEST(test_registers, 2, 8, "firmware", "octonic", "queues", "16", "arfs_entries", "100"),
        NR_TEST(test_bad_commands, 1, 16, "queues", "4"),
        NR_TEST(test_virtual_functions, 2, 8, "vfs", "3"),
        NR_TEST(test_destroy_under_way, 1, 16),
        NR_TEST(test_destroy_while_paused, 1, 16),
        NR_TEST(test_transmit_latency, 1, 16),
        NR_TEST(test_one_doorbell_for_many, 1, 16),
        NR_TEST(test_tso, 1, 16),
        cmocka_unit_test(test_transmit_rates),
        NR_TEST(test_queues_in_turn, 1, 16),
        NR_TEST(test_hints, 2, 8),
        NR_TEST(test_bad_wqe, 1, 16),
        NR_TEST(test_nop_and_wrap, 1, 16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
