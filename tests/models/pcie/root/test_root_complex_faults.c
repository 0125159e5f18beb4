/* What the root complex makes of poisoned TLPs and of a link that goes down under a core's
 * request. */
#include "tests/support/tlp_spy.h"

#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/link/link.h"
#include "models/pcie/root/rc_internal.h"

static struct rc_state *rc_state(struct world_fixture *f)
{
    return rc_of(host_root_complexes(f->host)->rc[0]);
}

/* The uncorrectable errors that root port `port` has logged since the last call. */
static uint32_t logged(struct world_fixture *f, unsigned port)
{
    struct cfg_space *cfg = &rc_state(f)->port[port].cfg;
    const uint32_t errors = cfg_read(cfg, cfg->aer_cap + PCI_AER_UNCORRECTABLE, 4);
    cfg_write(cfg, cfg->aer_cap + PCI_AER_UNCORRECTABLE, 4, errors);
    return errors;
}

struct read {
    struct hpa at;
    uint64_t value;
    sim_time took_ps;
};

static void read_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct read *read = arg;
    const sim_time start_ps = sim_task_now(task);
    read->value = root_complex_mmio_read(host_root_complexes(f->host), 0, task, read->at, 4, NULL);
    read->took_ps = sim_task_now(task) - start_ps;
}

static void send_poisoned(struct spy *spy, uint64_t address, unsigned bytes, unsigned tag)
{
    struct tlp *tlp = spy_tlp(spy, TLP_MWR, address, bytes, tag);
    tlp->poisoned = true;
    spy_send(spy, tlp);
}

/* ---- Poisoned data --------------------------------------------------------------------------- */

static void test_poisoned_writes_change_nothing(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    const struct hpa hpa = spy_memory(f, &a);
    spy_send(&a, spy_tlp(&a, TLP_MWR, hpa.v, 128, 0x11));
    spy_run(f);
    send_poisoned(&a, hpa.v, 64, 0x22);
    send_poisoned(&a, UINT64_C(0xfee00000), 4, 0x33); /* an interrupt */
    spy_send(&a, spy_tlp(&a, TLP_MWR, hpa.v + 64, 64, 0x44));
    spy_run(f);
    assert_int_equal(physmem_read64(host_physmem(f->host), hpa), UINT64_C(0x1111111111111111));
    assert_int_equal(physmem_read64(host_physmem(f->host), (struct hpa){ hpa.v + 64 }),
                     UINT64_C(0x4444444444444444));
    assert_int_equal(rc_state(f)->stats.interrupts, 0);
    assert_int_equal(rc_state(f)->stats.poisoned, 2);
    assert_int_equal(logged(f, 0), PCI_AER_POISONED);
    assert_int_equal(logged(f, 1), 0);
}

/* It goes on as it is, and the peer does not take it. */
static void test_poisoned_writes_reach_peers_as_such(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    send_poisoned(&a, spy_bar(&b), 4, 0x55);
    spy_run(f);
    assert_int_equal(b.n, 1);
    assert_true(b.got[0].poisoned);
    assert_int_equal(rc_state(f)->stats.poisoned, 0);
    const struct cfg_space *cfg = &b.model->ports[0].function->cfg;
    assert_int_equal(cfg_read(cfg, cfg->aer_cap + PCI_AER_UNCORRECTABLE, 4), PCI_AER_POISONED);
}

static void test_poisoned_answers_are_all_ones(void **state)
{
    struct world_fixture *f = *state;
    struct spy b;
    spy_on(&b, f, "b");
    b.silent = true;
    struct read read = { .at = { spy_bar(&b) } };
    struct fixture_call call = { .f = f, .body = read_body, .arg = &read };
    sim_task_start(sim_task_new(f->sim, "read", 0, fixture_body, &call), sim_now(f->sim));
    sim_run(f->sim, sim_now(f->sim) + SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 1);
    b.got[0].stamp = NULL;
    struct tlp *answer = tlp_completion(b.model->pcie, &b.got[0], pcie_requester_id(b.model),
                                        TLP_SC);
    tlp_payload_new(b.model->pcie, answer);
    memset(answer->payload, 0x66, answer->length_bytes);
    answer->poisoned = true;
    spy_send(&b, answer);
    spy_run(f);
    assert_true(call.done);
    assert_int_equal(read.value, UINT32_MAX);
    assert_int_equal(rc_state(f)->stats.poisoned, 1);
    assert_int_equal(rc_state(f)->stats.mmio_timeouts, 0);
    assert_int_equal(logged(f, 1), PCI_AER_POISONED);
}

/* ---- The link goes down ---------------------------------------------------------------------- */

static void write_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    const struct hpa *at = arg;
    root_complex_mmio_write(host_root_complexes(f->host), 0, task, *at, 4, 1);
}

/* Who waits gets all ones at once, who asks later does not wait at all; peers are refused. */
static void test_link_down_ends_requests_of_cores(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    struct read read = { .at = { spy_bar(&b) } };
    struct fixture_call call = { .f = f, .body = read_body, .arg = &read };
    sim_task_start(sim_task_new(f->sim, "read", 0, fixture_body, &call), sim_now(f->sim));
    sim_run(f->sim, sim_now(f->sim) + SIM_PS_PER_US, NULL);
    assert_true(b.n == 1 && !call.done);
    struct pcie_link *link = b.model->ports[0].link;
    pcie_link_set_up(link, false);
    sim_run(f->sim, sim_now(f->sim) + SIM_PS_PER_US, NULL);
    assert_true(call.done);
    assert_int_equal(read.value, UINT32_MAX);
    assert_in_range(read.took_ps, SIM_PS_PER_US, 2 * SIM_PS_PER_US);
    assert_int_equal(logged(f, 1), PCI_AER_SURPRISE_DOWN);
    read.value = 0;
    fixture_call(f, read_body, &read);
    assert_int_equal(read.value, UINT32_MAX);
    assert_true(read.took_ps < SIM_PS_PER_US);
    struct hpa bar = { spy_bar(&b) };
    fixture_call(f, write_body, &bar);
    spy_send(&a, spy_tlp(&a, TLP_MRD, bar.v, 4, 9));
    spy_run(f);
    assert_int_equal(b.n, 1);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.got[0].status, TLP_UR);
    assert_int_equal(rc_state(f)->stats.mmio_timeouts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLP_TEST(test_poisoned_writes_change_nothing, "", ""),
        TLP_TEST(test_poisoned_writes_reach_peers_as_such, "", ""),
        TLP_TEST(test_poisoned_answers_are_all_ones, "", ""),
        TLP_TEST(test_link_down_ends_requests_of_cores, "", ""),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
