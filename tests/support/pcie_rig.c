#include "tests/support/pcie_rig.h"

void pcie_rig_init(struct rig *rig, uint64_t seed)
{
    *rig = (struct rig){ 0 };
    rig->sim = sim_new(seed);
    rig->pcie = pcie_context_new(rig->sim);
}

void pcie_rig_release(struct rig *rig)
{
    pcie_context_free(rig->pcie);
    sim_free(rig->sim);
    sim_error_release(&rig->errors);
}

void pcie_rig_run(struct rig *rig)
{
    sim_run(rig->sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(rig->sim));
}

/* ---- TLPs ------------------------------------------------------------------------------------ */

struct tlp *pcie_rig_tlp(struct rig *rig, enum tlp_type type, uint64_t address, unsigned bytes,
                         uint64_t id)
{
    struct tlp *tlp = tlp_new(rig->pcie, type);

    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    tlp->tag = (uint16_t)id;
    tlp->requester_id = (uint16_t)(id >> 16 & 0xff);
    if (tlp_has_data(tlp)) {
        tlp_payload_new(rig->pcie, tlp);
        memset(tlp->payload, (int)(id & 0xff), bytes);
    }
    return tlp;
}

static uint64_t rig_id(const struct tlp *tlp)
{
    return tlp->tag | (uint64_t)(tlp->requester_id & 0xff) << 16;
}

/* ---- End devices ----------------------------------------------------------------------------- */

static struct end_device *end_of(struct model *model)
{
    return model->state;
}

static void end_record(struct end_device *end, const struct tlp *tlp)
{
    if (end->n_got == end->got_capacity) {
        end->got_capacity = end->got_capacity == 0 ? 64 : end->got_capacity * 2;
        end->got = realloc(end->got, end->got_capacity * sizeof(*end->got));
        assert_non_null(end->got);
    }
    end->got[end->n_got++] = (struct arrival){
        .id = rig_id(tlp),
        .address = tlp->address,
        .now_ps = sim_now(end->rig->sim),
        .head_ps = tlp->head_ps,
        .tail_ps = tlp->tail_ps,
        .requester_id = tlp->requester_id,
        .completer_id = tlp->completer_id,
        .length_bytes = tlp->length_bytes,
        .type = tlp->type,
        .status = tlp->status,
        .class = (uint8_t)tlp_class_of(tlp),
        .data_credits = tlp_data_credits(tlp),
        .stamp = tlp->stamp != NULL ? *tlp->stamp : (struct sim_stamp){ 0 },
    };
    if (tlp->type == TLP_CPLD)
        memcpy(&end->got[end->n_got - 1].data, tlp->payload, SIM_MIN(tlp->length_bytes, 4));
    if (tlp->type == TLP_MWR)
        assert_int_equal(tlp->payload[tlp->length_bytes - 1], (int)(rig_id(tlp) & 0xff));
}

static sim_time end_serve(struct end_device *end)
{
    sim_time service_ps = end->service_ps;

    if (end->random_service_ps != 0)
        service_ps = sim_random_below(&end->model.random, end->random_service_ps);
    end->busy_until_ps = SIM_MAX(end->busy_until_ps, sim_now(end->rig->sim)) + service_ps;
    return end->busy_until_ps;
}

static void end_answer(struct end_device *end, struct tlp *tlp, sim_time at_ps)
{
    struct tlp *cpl = NULL;

    if (end->answer_reads && tlp->type == TLP_MRD) {
        cpl = tlp_completion(end->rig->pcie, tlp, 0, TLP_SC);
        tlp_payload_new(end->rig->pcie, cpl);
        memset(cpl->payload, 0xda, cpl->length_bytes);
    } else if (end->cfg != NULL && (tlp->type == TLP_CFG_RD0 || tlp->type == TLP_CFG_WR0)) {
        cpl = cfg_answer(end->cfg, end->rig->pcie, tlp);
    }
    if (cpl != NULL)
        pcie_port_send(&end->port, cpl, at_ps);
}

/* held_* counts what was not given back, nor told to be for later. */
static void end_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct end_device *end = end_of(model);
    enum tlp_class class = tlp_class_of(tlp);
    uint32_t data = tlp_data_credits(tlp);

    assert_int_equal(port, 0);
    assert_int_equal(tlp->ingress, 0);
    end_record(end, tlp);
    if (end->hold[class]) {
        end->held_header[class]++;
        end->held_data[class] += data;
        assert_true(end->held_header[class] <= end->port.advertise.header[class]);
        assert_true(end->held_data[class] <= end->port.advertise.data[class]);
    } else {
        sim_time at_ps = end_serve(end);
        end_answer(end, tlp, at_ps);
        pcie_port_release(&end->port, class, data, at_ps);
    }
    tlp_free(end->rig->pcie, tlp);
}

void end_release_held(struct end_device *end, enum tlp_class class, uint32_t data)
{
    assert_true(end->held_header[class] > 0);
    end->held_header[class]--;
    end->held_data[class] -= data;
    pcie_port_release(&end->port, class, data, sim_now(end->rig->sim));
}

void end_credit(struct model *model, uint32_t port)
{
    struct end_device *end = end_of(model);

    (void)port;
    while (end->n_sent < end->n_to_send) {
        struct tlp *tlp = end->make(end, end->n_sent);
        if (!pcie_port_ready(&end->port, tlp_class_of(tlp))) {
            tlp_free(end->rig->pcie, tlp);
            return;
        }
        end->n_sent++;
        pcie_port_send(&end->port, tlp, sim_now(end->rig->sim));
    }
}

static const struct model_ops end_ops = {
    .type = "test.end",
    .state_bytes = sizeof(struct end_device),
    .receive = end_receive,
    .credit = end_credit,
};

static const struct pcie_credits rig_ample = {
    .header = { 256, 256, 256 },
    .data = { 4096, 256, 4096 },
};

struct end_device *end_new(struct rig *rig, const char *name, unsigned generation, unsigned lanes)
{
    struct end_device *end = calloc(1, sizeof(*end));

    assert_non_null(end);
    end->rig = rig;
    end->model = (struct model){
        .ops = &end_ops,
        .name = name,
        .sim = rig->sim,
        .pcie = rig->pcie,
        .state = end,
        .ports = &end->port,
        .n_ports = 1,
    };
    sim_random_init(&end->model.random, sim_seed(rig->sim), name);
    end->port = (struct pcie_port){
        .model = &end->model,
        .max_generation = (uint8_t)generation,
        .max_lanes = (uint8_t)lanes,
        .mps_bytes = 256,
        .advertise = rig_ample,
        .name = name,
    };
    return end;
}

void end_free(struct end_device *end)
{
    free(end->cfg);
    free(end->got);
    free(end);
}

struct pcie_link_params pcie_rig_link_params(sim_time latency_ps)
{
    return (struct pcie_link_params){
        .latency_ps = latency_ps,
        .ack_tlps = 4,
        .fc_update_ratio_pct = 25,
    };
}

struct pcie_link *pcie_rig_join(struct rig *rig, struct pcie_port *a, struct pcie_port *b,
                                const struct pcie_link_params *params)
{
    char name[128];

    snprintf(name, sizeof(name), "%s-%s", a->name, b->name);
    struct pcie_link *link = pcie_link_new(rig->pcie, name, params, a, b, "test", 1, &rig->errors);
    if (link == NULL && rig->errors.n_messages != 0)
        print_message("%s\n", rig->errors.message[0]);
    assert_non_null(link);
    return link;
}

/* ---- What the specification says ------------------------------------------------------------- */

bool spec_may_pass(const struct sent *earlier, const struct sent *later)
{
    if (earlier->class == later->class)
        return false;
    if (later->class == TLP_POSTED || earlier->class != TLP_POSTED)
        return true;
    if (later->class == TLP_NON_POSTED)
        return false;
    return (later->attr & TLP_ATTR_RELAXED_ORDERING) != 0 ||
           ((later->attr & TLP_ATTR_ID_ORDERING) != 0 &&
            later->completer_id != earlier->requester_id);
}

sim_time spec_wire_ps(unsigned generation, unsigned lanes, uint64_t bytes)
{
    /* One byte on one lane in 1/1024 ps: 10 / 2.5 GT/s, 10 / 5 GT/s, 8 * 130 / 128 / 8 GT/s, ... */
    static const uint64_t byte[] = { 0, 4096000, 2048000, 1040000, 520000, 260000 };
    uint64_t d = UINT64_C(1024) * lanes;

    return (bytes * byte[generation] + d - 1) / d;
}
