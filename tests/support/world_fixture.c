#include "tests/support/world_fixture.h"

struct config *fixture_config(const char *text, struct sim_error_list *errors)
{
    char path[] = "world_fixture_XXXXXX.cfg";
    int fd = g_mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    struct config *config = config_load(path, ".", errors);
    g_unlink(path);
    return config;
}

void fixture_fail(struct sim_error_list *errors)
{
    for (size_t i = 0; i < errors->n_messages; i++)
        fprintf(stderr, "%s\n", errors->message[i]);
    assert_int_equal(errors->n_messages, 0);
}

void fixture_open(struct world_fixture *f, const char *text)
{
    struct sim_error_list errors = { 0 };
    f->config = fixture_config(text, &errors);
    fixture_fail(&errors);
    f->world = world_new(f->config, 1, &errors);
    fixture_fail(&errors);
    f->sim = world_sim(f->world);
    f->host = world_host(f->world, "server");
    assert_non_null(f->host);
    assert_true(world_boot(f->world, NULL));
}

static void fixture_free(struct world_fixture *f)
{
    world_free(f->world);
    config_free(f->config);
}

void fixture_close(struct world_fixture *f)
{
    assert_null(sim_error(f->sim));
    fixture_free(f);
}

int fixture_set_up(void **state)
{
    struct fixture_test *t = *state;
    t->fixture = calloc(1, sizeof(struct world_fixture));
    fixture_open(t->fixture, t->settings);
    return 0;
}

int fixture_tear_down(void **state)
{
    struct fixture_test *t = *state;
    struct world_fixture f = *(struct world_fixture *)t->fixture;
    free(t->fixture);
    if (t->passed)
        fixture_close(&f);
    else if (fixture_test_abandon(f.sim))
        fixture_free(&f);
    return 0;
}

void fixture_body(struct sim_task *task, void *arg)
{
    struct fixture_call *call = arg;
    call->body(call->f, task, call->arg);
    sim_task_sync(task);
    call->done = true;
}

void fixture_call(struct world_fixture *f,
                  void (*body)(struct world_fixture *f, struct sim_task *task, void *arg),
                  void *arg)
{
    struct fixture_call call = { .f = f, .body = body, .arg = arg };
    sim_task_start(sim_task_new(f->sim, "test", 0, fixture_body, &call), sim_now(f->sim));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_true(call.done);
}

void fixture_op_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct fixture_op *f = op->context;
    f->status = status;
    f->done = true;
    f->done_ps = sim_now(op->model->sim);
}

enum pcie_dma_status fixture_dma(struct world_fixture *f, const char *device, struct fixture_op *op)
{
    struct model *model = world_device(f->world, device);
    assert_non_null(model);
    op->op.done = fixture_op_done;
    op->op.context = op;
    op->done = false;
    op->start_ps = sim_now(f->sim);
    if (op->op.stamp != NULL)
        sim_stamp_start(op->op.stamp, op->start_ps);
    pcie_requester_submit(model, &op->op);
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_true(op->done);
    return op->status;
}

void fixture_run_until(struct world_fixture *f, const unsigned *count, unsigned n,
                       sim_time within_ps)
{
    const sim_time until_ps = sim_now(f->sim) + within_ps;
    while (*count < n && sim_now(f->sim) < until_ps) {
        sim_run(f->sim, sim_now(f->sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(f->sim));
    }
    assert_int_equal(*count, n);
}
