#include "tests/support/tlp_spy.h"

#include <string.h>

#include "models/nfp/requester.h"

static void spy_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct spy *spy = model->user;
    assert_true(spy->n < SPY_MAX);
    spy->got[spy->n] = *tlp;
    spy->data[spy->n] = 0;
    if (tlp->payload != NULL)
        memcpy(&spy->data[spy->n], tlp->payload, SIM_MIN(8u, tlp->length_bytes));
    spy->at_ps[spy->n++] = sim_now(model->sim);
    if (!spy->silent && !spy->hold) {
        spy->real->receive(model, port, tlp);
        return;
    }
    if (!spy->hold)
        pcie_port_release(&model->ports[0], tlp_class_of(tlp), tlp_data_credits(tlp),
                          sim_now(model->sim));
    if (tlp->type == TLP_CPLD && tlp->byte_count == tlp->length_bytes && spy->n_again != 0) {
        spy->n_again--;
        spy_send(spy, spy_tlp(spy, TLP_MRD, spy->again_address, 512, 1));
    }
    tlp_free(model->pcie, tlp);
}

void spy_on(struct spy *spy, struct world_fixture *f, const char *device)
{
    *spy = (struct spy){ .model = world_device(f->world, device) };
    spy->real = spy->model->ops;
    spy->ops = *spy->real;
    spy->ops.receive = spy_receive;
    spy->model->ops = &spy->ops;
    spy->model->user = spy;
}

void spy_give_back(struct spy *spy, unsigned i)
{
    spy->given[i] = true;
    pcie_port_release(&spy->model->ports[0], tlp_class_of(&spy->got[i]),
                      tlp_data_credits(&spy->got[i]), sim_now(spy->model->sim));
}

void spy_let_go(struct spy *spy)
{
    spy->hold = false;
    for (unsigned i = 0; i < spy->n; i++)
        if (!spy->given[i])
            spy_give_back(spy, i);
}

uint64_t spy_bar(const struct spy *spy)
{
    return cfg_bar_base(pcie_requester_config_space(spy->model), 0);
}

struct tlp *spy_tlp(struct spy *spy, enum tlp_type type, uint64_t address, unsigned bytes,
                    unsigned tag)
{
    struct tlp *tlp = tlp_new(spy->model->pcie, type);
    tlp->requester_id = pcie_requester_id(spy->model);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    tlp->tag = (uint16_t)tag;
    if (tlp_has_data(tlp)) {
        tlp_payload_new(spy->model->pcie, tlp);
        memset(tlp->payload, (int)tag, bytes);
    }
    return tlp;
}

void spy_send(struct spy *spy, struct tlp *tlp)
{
    pcie_port_send(&spy->model->ports[0], tlp, sim_now(spy->model->sim));
}

void spy_run(struct world_fixture *f)
{
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(f->sim));
    assert_true(pcie_context_check_idle(world_pcie(f->world)));
}

struct hpa spy_memory(struct world_fixture *f, const struct spy *spy)
{
    struct hpa hpa;
    struct iova iova;
    assert_int_equal(
        host_dma_alloc(f->host, pcie_requester_id(spy->model), 0, 65536, 4096, &hpa, &iova), 0);
    return hpa;
}

int spy_tear_down(void **state)
{
    static const char *const device[] = { "a", "b", "c" };
    const struct fixture_test *t = *state;
    const struct world_fixture *f = t->fixture;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(device); i++)
        world_device(f->world, device[i])->ops = &pcie_requester_ops;
    return fixture_tear_down(state);
}
