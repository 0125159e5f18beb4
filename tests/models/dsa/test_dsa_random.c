/*
 * dsa.accelerator under drivers that do what they like: random registers, tables, commands,
 * descriptors (sane ones, wrong ones, batches of both), resets, in any order. Whatever they did:
 * the simulation comes to rest, nothing is left under way, and after a function-level reset the
 * device is as good as new.
 */
#include "tests/models/dsa/dsa_rig.h"

#include "models/dsa/dsa_internal.h"

#define SEEDS 400u
#define STEPS 120u
#define PAGE  UINT64_C(4096)

struct chaos {
    uint64_t rng;
    uint64_t memory, list, record; /* 64 pages; 2 of descriptors; one */
    unsigned n_up;
};

static uint64_t draw(struct chaos *c, uint64_t below)
{
    c->rng ^= c->rng << 13;
    c->rng ^= c->rng >> 7;
    c->rng ^= c->rng << 17;
    return (c->rng >> 11) % below;
}

static bool once_in(struct chaos *c, unsigned n)
{
    return draw(c, n) == 0;
}

/* Where something is, or nothing. */
static uint64_t any_address(struct chaos *c)
{
    return once_in(c, 20) ? draw(c, UINT64_C(1) << 48) : c->memory + draw(c, 60 * PAGE);
}

static struct dsa_descriptor any_descriptor(struct chaos *c)
{
    static const uint8_t operations[] = { DSA_OP_MOVE,  DSA_OP_MOVE,  DSA_OP_MOVE,  DSA_OP_NOOP,
                                          DSA_OP_BATCH, DSA_OP_BATCH, DSA_OP_DRAIN, 0x3f };
    struct dsa_descriptor d = rig_move(any_address(c), any_address(c), 0,
                                       c->record + 32 * draw(c, 100));
    const uint8_t operation = operations[draw(c, sizeof(operations))];
    uint32_t flags = DSA_FLAG_RECORD_VALID | DSA_FLAG_RECORD;
    d.bytes = (uint32_t)draw(c, once_in(c, 20) ? 3 * 1024 * 1024 : once_in(c, 4) ? 60000 : 3000);
    if (operation == DSA_OP_BATCH) {
        d.source = c->list + 64 * draw(c, 100) + (once_in(c, 20) ? 32 : 0);
        d.destination = 0;
        d.bytes = (uint32_t)draw(c, 36);
    } else if (operation != DSA_OP_MOVE) {
        d.source = d.destination = d.bytes = 0;
    }
    if (once_in(c, 6))
        flags ^= 1u << draw(c, 24);
    if (once_in(c, 6))
        flags |= DSA_FLAG_INTERRUPT;
    d.interrupt_handle = (uint16_t)draw(c, 20);
    d.record += once_in(c, 30) ? 4 : 0;
    d.reserved = once_in(c, 40);
    d.flags_operation = flags | (uint32_t)operation << DSA_OPERATION_SHIFT;
    return d;
}

static void fill_list(struct dsa_rig *r, struct chaos *c)
{
    for (unsigned i = 0; i < 128; i++) {
        struct dsa_descriptor d = any_descriptor(c);
        if (once_in(c, 3))
            d.flags_operation |= DSA_FLAG_FENCE;
        rig_put(r, c->list + 64 * i, &d, sizeof(d));
    }
}

static void bring_up(struct dsa_rig *r, struct chaos *c)
{
    for (unsigned i = 0; i < 4; i++)
        rig_queue(r, i, 1 + (uint32_t)draw(c, 30), i % 2 == 0 ? 0 : 1, 1 + (uint32_t)draw(c, 15));
    const bool two = once_in(c, 2);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_QUEUES, 8, two ? 3 : 15);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_ENGINES, 8, two ? 1 : 7);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_QUEUES, 8, two ? 12 : 0);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_ENGINES, 8, two ? 6 : 0);
    rig_command_start(r, DSA_CMD_ENABLE_DEVICE, 0);
    for (unsigned i = 0; i < 4; i++)
        rig_command_start(r, DSA_CMD_ENABLE_WQ, i);
    c->n_up++;
}

static void any_register(struct dsa_rig *r, struct chaos *c)
{
    static const struct {
        uint32_t from, bytes;
    } where[] = {
        { DSA_GENCFG, 0x60 }, { RIG_GROUPS, 0x100 }, { RIG_QUEUES, 0x100 }, { 0, 0x10000 }
    };
    const unsigned w = (unsigned)draw(c, SIM_N_ELEMENTS(where));
    const uint64_t at = where[w].from + (draw(c, where[w].bytes) & ~UINT64_C(3));
    if (once_in(c, 3))
        (void)rig_read(r, at, 4);
    else
        rig_write(r, at, 4, once_in(c, 2) ? draw(c, 32) : draw(c, UINT64_C(1) << 32));
}

static void reset(struct dsa_rig *r)
{
    const uint16_t id = r->function->cfg.id;
    const unsigned devctl = r->function->cfg.pcie_cap + PCIE_DEVCTL;
    const uint64_t bars[2] = { rig_at(r, 0, 0).v, rig_at(r, 2, 0).v };
    root_complex_config_write(r->rcs, 0, r->task, id, devctl, 2, PCIE_DEVCTL_FLR);
    for (unsigned b = 0; b < 2; b++) {
        root_complex_config_write(r->rcs, 0, r->task, id, PCI_BAR0 + 8 * b, 4, (uint32_t)bars[b]);
        root_complex_config_write(r->rcs, 0, r->task, id, PCI_BAR0 + 8 * b + 4, 4,
                                  (uint32_t)(bars[b] >> 32));
    }
    root_complex_config_write(r->rcs, 0, r->task, id, PCI_COMMAND, 2,
                              PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    root_complex_config_write(r->rcs, 0, r->task, id, devctl, 2, PCIE_DEVCTL_EXTENDED_TAG);
}

static void submit(struct dsa_rig *r, struct chaos *c)
{
    const struct dsa_descriptor d = any_descriptor(c);
    const unsigned wq = (unsigned)draw(c, 5), kind = (unsigned)draw(c, 4);
    switch (draw(c, 8)) {
    case 0: /* some other write */
        root_complex_mmio_write(r->rcs, 0, r->task,
                                rig_at(r, 2, DSA_PORTAL(wq, kind) + 8 * draw(c, 500)), 8,
                                draw(c, UINT64_C(1) << 60));
        break;
    case 1:
    case 2:
    case 3: (void)rig_enqueue(r, wq, kind, &d); break;
    default: rig_post(r, wq, &d); break;
    }
}

static void step(struct dsa_rig *r, struct chaos *c)
{
    switch (draw(c, 24)) {
    case 0: any_register(r, c); break;
    case 1:
        rig_command_start(r, (enum dsa_command)draw(c, 16), (uint32_t)draw(c, 1u << draw(c, 20)));
        break;
    case 2: fill_list(r, c); break;
    case 3: rig_sleep(r, draw(c, 20) * SIM_PS_PER_US); break;
    case 4: bring_up(r, c); break;
    case 5:
        if (once_in(c, 6))
            reset(r);
        break;
    case 6: /* Bus Master Enable off, and on again */
        if (once_in(c, 6)) {
            root_complex_config_write(r->rcs, 0, r->task, r->function->cfg.id, PCI_COMMAND, 2,
                                      PCI_COMMAND_MEMORY);
            rig_sleep(r, draw(c, 3) * SIM_PS_PER_US);
            root_complex_config_write(r->rcs, 0, r->task, r->function->cfg.id, PCI_COMMAND, 2,
                                      PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
        }
        break;
    default: submit(r, c); break;
    }
}

/* Nothing is queued or under way. */
static bool is_quiet(struct dsa_rig *r)
{
    const struct dsa_device *dsa = world_device(r->f->world, "dsa")->state;
    bool quiet = pcie_dma_idle(&r->function->dma) && dsa->command == 0 &&
                 dsa->buffers + dsa->shared_buffers + dsa->limited_buffers == 0;
    for (unsigned i = 0; i < dsa->params.groups; i++)
        quiet = quiet && dsa->group[i].buffers == 0;
    for (unsigned i = 0; i < dsa->params.engines; i++)
        quiet = quiet && dsa->engine[i].n_works == 0 && dsa->engine[i].batch.engine == NULL &&
                dsa->engine[i].moving == NULL;
    for (unsigned i = 0; i < dsa->params.queues; i++)
        quiet = quiet && dsa->queue[i].under_way == NULL && dsa->queue[i].n == 0;
    return quiet;
}

static void chaos_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct dsa_rig r = rig_of(f, task);
    struct chaos *c = arg;
    static uint8_t bytes[4096], found[4096];
    c->memory = rig_memory(&r, 64 * PAGE);
    c->list = rig_memory(&r, 2 * PAGE);
    c->record = rig_memory(&r, PAGE);
    fill_list(&r, c);
    bring_up(&r, c);
    for (unsigned i = 0; i < STEPS; i++)
        step(&r, c);
    /* What was submitted comes to its end by itself: moves that overlap take long. */
    for (unsigned i = 0; i < 2000 && !is_quiet(&r); i++)
        rig_sleep(&r, 100 * SIM_PS_PER_US);
    assert_true(is_quiet(&r));
    reset(&r);
    rig_up(&r);
    const struct dsa_descriptor d = rig_move(c->memory + 32 * PAGE, c->memory, 4096, c->record);
    const struct dsa_record none = { 0 };
    rig_random(bytes, sizeof(bytes), 1);
    rig_put(&r, c->memory, bytes, sizeof(bytes));
    rig_put(&r, c->record, &none, sizeof(none));
    rig_post(&r, 0, &d);
    assert_int_equal(rig_wait(&r, c->record).status, DSA_STATUS_SUCCESS);
    rig_get(&r, c->memory + 32 * PAGE, found, sizeof(found));
    assert_memory_equal(found, bytes, sizeof(bytes));
}

static void test_chaos(void **state)
{
    static const char *const settings[] = { "", "engines = 1; engine_descriptors = 1;",
                                            "read_buffers = 2; descriptor_ns = 400;" };
    unsigned n_up = 0;
    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct chaos c = { .rng = seed * UINT64_C(0x9e3779b97f4a7c15) };
        struct world_fixture f;
        char text[1024];
        snprintf(text, sizeof(text), DSA_WORLD("%s"), settings[seed % 3]);
        fixture_open(&f, text);
        fixture_call(&f, chaos_body, &c);
        fixture_close(&f);
        n_up += c.n_up;
    }
    assert_true(n_up > SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_chaos) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
