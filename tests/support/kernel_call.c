#include "tests/support/kernel_call.h"

#define SLICE_PS  (100 * SIM_PS_PER_US)
#define LONGEST_S 4

struct call {
    void (*body)(void *arg);
    void *arg;
    bool done;
};

static void call_body(void *arg)
{
    struct call *call = arg;
    call->body(call->arg);
    call->done = true;
}

void kernel_call(struct world_fixture *w, struct kernel *kernel, void (*body)(void *arg), void *arg)
{
    struct call call = { .body = body, .arg = arg };
    const sim_time until_ps = sim_now(w->sim) + LONGEST_S * 1000 * SIM_PS_PER_MS;
    k_thread_new(kernel, "call", 0, call_body, &call);
    while (!call.done && sim_now(w->sim) < until_ps) {
        sim_run(w->sim, sim_now(w->sim) + SLICE_PS, NULL);
        assert_null(sim_error(w->sim));
    }
    assert_true(call.done);
}
