/*
 * Tasks: who runs when, and the tasks' clocks.
 *
 * Results must not depend on the quantum, which decides how often a task returns to the event loop
 * without any effect on others. So the place of a task among things of the same time may not follow
 * from when it was put there: at equal times all events go first, those scheduled meanwhile for
 * the same time included, then the tasks in the order in which they were made. A task whose
 * wake-up event has fired is ready; while any is, limit_ps keeps the loop at the present time.
 */
#include "sim/engine/task.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/sanitizer.h"
#include "sim/engine/sim_internal.h"
#include "sim/engine/task_context.h"
#include "sim/engine/task_stack.h"
#include "sim/engine/watchdog.h"

enum task_state {
    TASK_NEW,       /* not started                                       */
    TASK_WAITING,   /* its wake-up event is pending, or it is ready      */
    TASK_RUNNING,   /* it is the current one                             */
    TASK_SUSPENDED, /* until sim_task_resume()                           */
    TASK_FINISHED,  /* its body returned; the stack is another's already */
};

struct sim_task {
    struct sim_task_head head; /* first */
    struct sim_event wake;
    struct sim_context context;
    enum task_state state;
    bool resume_remembered;
    bool has_canary;    /* its stack has */
    sim_time resume_ps; /* of the remembered resume */
    uint64_t id;        /* order of making */
    sim_task_fn *body;
    void *arg;
    size_t stack_bytes;
    struct task_stack *stack; /* from when it first runs until it has finished */
    void *fake_stack;         /* address sanitizer's */
    char *name;
    struct sim_task *next; /* all tasks of the run */
};

_Static_assert(offsetof(struct sim_task, head) == 0,
               "struct sim_task_head must be the first member");

struct sim_tasks {
    struct sim_task **ready; /* binary heap by id; room for all tasks of the run */
    size_t n_ready, max_ready;
    struct sim_context loop; /* where the event loop waits while a task runs */
    struct sim_task *all;
    struct task_stacks *stacks;
    uint64_t n_tasks;
    void *loop_fake_stack;
    const void *loop_stack;
    size_t loop_stack_bytes;
};

struct sim_tasks *sim_tasks_new(void)
{
    struct sim_tasks *tasks = sim_zalloc(1, sizeof(*tasks));

    tasks->stacks = task_stacks_new();
    return tasks;
}

void sim_tasks_free(struct sim_tasks *tasks)
{
    while (tasks->all != NULL) {
        struct sim_task *task = tasks->all;

        tasks->all = task->next;
        free(task->name);
        free(task);
    }
    task_stacks_free(tasks->stacks);
    free(tasks->ready);
    free(tasks);
}

const struct task_stacks *sim_tasks_stacks(const struct sim *sim)
{
    return sim->tasks->stacks;
}

/* ---- Switching ------------------------------------------------------------------------------- */

/* From the event loop into the task, until it leaves again. */
static void enter(struct sim_task *task)
{
    struct sim_tasks *tasks = task->head.sim->tasks;

    task->state = TASK_RUNNING;
    task->head.local_ps = SIM_MAX(task->head.local_ps, sim_now(task->head.sim));
    task->head.sim->queue.clock.task = task;
    sim_fiber_leave(&tasks->loop_fake_stack, task->stack->base, task->stack->bytes);
    sim_context_switch(&tasks->loop, &task->context);
    sim_fiber_arrive(tasks->loop_fake_stack, NULL, NULL);
    task->head.sim->queue.clock.task = NULL;
    SIM_ASSERT(!task->has_canary || task_stack_whole(task->stack),
               "task %s has overflowed its stack of %zu bytes", task->name, task->stack->bytes);
    if (task->state == TASK_FINISHED) {
        task_stacks_give(tasks->stacks, task->stack);
        task->stack = NULL;
        task->has_canary = false;
    }
}

/* From the task to the event loop; returns when the task is entered again. */
static void leave(struct sim_task *task, enum task_state state)
{
    struct sim_tasks *tasks = task->head.sim->tasks;

    task->state = state;
    sim_fiber_leave(&task->fake_stack, tasks->loop_stack, tasks->loop_stack_bytes);
    sim_context_switch(&task->context, &tasks->loop);
    sim_fiber_arrive(task->fake_stack, &tasks->loop_stack, &tasks->loop_stack_bytes);
}

static void task_main(void *arg)
{
    struct sim_task *task = arg;
    struct sim_tasks *tasks = task->head.sim->tasks;

    sim_fiber_arrive(NULL, &tasks->loop_stack, &tasks->loop_stack_bytes);
    task->body(task, task->arg);
    task->state = TASK_FINISHED;
    sim_fiber_leave(NULL, tasks->loop_stack, tasks->loop_stack_bytes);
    sim_context_switch(&task->context, &tasks->loop);
    __builtin_unreachable();
}

/* ---- Ready tasks ----------------------------------------------------------------------------- */

static void push_ready(struct sim_tasks *tasks, struct sim_task *task)
{
    size_t i = tasks->n_ready++;

    for (; i > 0 && tasks->ready[(i - 1) / 2]->id > task->id; i = (i - 1) / 2)
        tasks->ready[i] = tasks->ready[(i - 1) / 2];
    tasks->ready[i] = task;
}

static struct sim_task *pop_ready(struct sim_tasks *tasks)
{
    struct sim_task *first = tasks->ready[0];
    size_t n = --tasks->n_ready, i = 0;
    struct sim_task *last = tasks->ready[n];

    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && tasks->ready[child + 1]->id < tasks->ready[child]->id)
            child++;
        if (last->id < tasks->ready[child]->id)
            break;
        tasks->ready[i] = tasks->ready[child];
        i = child;
    }
    tasks->ready[i] = last;
    return first;
}

bool sim_tasks_ready(const struct sim *sim)
{
    return sim->tasks->n_ready > 0;
}

void sim_tasks_run_ready(struct sim *sim)
{
    struct sim_task *task = pop_ready(sim->tasks);

    if (sim->tasks->n_ready == 0)
        sim->limit_ps = sim->until_ps;
    enter(task);
}

static void wake(struct sim *sim, struct sim_event *event)
{
    struct sim_task *task = SIM_CONTAINER(event, struct sim_task, wake);

    if (sim->tasks->n_ready == 0 && sim_queue_idle_until(&sim->queue, sim_now(sim))) {
        enter(task);
        return;
    }
    push_ready(sim->tasks, task);
    sim->limit_ps = sim_now(sim);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* The task runs for the first time: only now it needs a stack. */
static void first_wake(struct sim *sim, struct sim_event *event)
{
    struct sim_task *task = SIM_CONTAINER(event, struct sim_task, wake);

    task->stack = task_stacks_take(sim->tasks->stacks, task->stack_bytes);
    task->has_canary = task->stack->canary != NULL;
    sim_context_prepare(&task->context, task->stack->base, task->stack->bytes, task_main, task);
    task->wake.fire = wake;
    wake(sim, event);
}

struct sim_task *sim_task_new(struct sim *sim, const char *name, size_t stack_bytes,
                              sim_task_fn *body, void *arg)
{
    struct sim_tasks *tasks = sim->tasks;
    struct sim_task *task = sim_zalloc(1, sizeof(*task));

    sim_event_init(&task->wake, first_wake);
    task->head.sim = sim;
    task->id = tasks->n_tasks++;
    task->body = body;
    task->arg = arg;
    task->name = sim_strdup(name);
    task->stack_bytes = stack_bytes != 0 ? stack_bytes : SIM_TASK_STACK_BYTES_DEFAULT;
    task->next = tasks->all;
    tasks->all = task;
    if (tasks->n_tasks > tasks->max_ready) {
        tasks->max_ready = 2 * tasks->max_ready + 16;
        tasks->ready = sim_grow(tasks->ready, tasks->max_ready, sizeof(struct sim_task *));
    }
    return task;
}

void sim_task_start(struct sim_task *task, sim_time at_ps)
{
    SIM_ASSERT(task->state == TASK_NEW, "task %s started twice", task->name);
    task->state = TASK_WAITING;
    sim_schedule(task->head.sim, &task->wake, at_ps);
}

struct sim *sim_task_sim(struct sim_task *task)
{
    return task->head.sim;
}

const char *sim_task_name(const struct sim_task *task)
{
    return task->name;
}

bool sim_task_finished(const struct sim_task *task)
{
    return task->state == TASK_FINISHED;
}

void sim_task_set_owner(struct sim_task *task, void *owner)
{
    task->head.owner = owner;
}

/* ---- Time ------------------------------------------------------------------------------------ */

void sim_task_set_quantum(struct sim *sim, sim_time quantum_ps)
{
    sim->queue.clock.quantum_ps = quantum_ps;
}

void sim_task_sync(struct sim_task *task)
{
    struct sim *sim = task->head.sim;

    SIM_ASSERT(task->state == TASK_RUNNING, "task %s waits while it does not run", task->name);
    if (task->head.local_ps <= sim_now(sim) || sim_advance(sim, task->head.local_ps))
        return;
    sim_schedule(sim, &task->wake, task->head.local_ps);
    leave(task, TASK_WAITING);
}

void sim_task_suspend(struct sim_task *task)
{
    sim_task_sync(task);
    if (task->resume_remembered) {
        task->resume_remembered = false;
        task->head.local_ps = SIM_MAX(task->head.local_ps, task->resume_ps);
        sim_task_sync(task);
        return;
    }
    leave(task, TASK_SUSPENDED);
    task->head.waits_for = task->head.waits_in = NULL;
}

void sim_task_resume(struct sim_task *task, sim_time at_ps)
{
    SIM_ASSERT(at_ps >= sim_now(task->head.sim),
               "task %s resumed for %llu ps, in the past of %llu ps", task->name,
               (unsigned long long)at_ps, (unsigned long long)sim_now(task->head.sim));
    if (task->state == TASK_SUSPENDED) {
        task->state = TASK_WAITING;
        sim_schedule(task->head.sim, &task->wake, at_ps);
    } else if (!task->resume_remembered || at_ps < task->resume_ps) {
        task->resume_remembered = true;
        task->resume_ps = at_ps;
    }
}

/* ---- What waits for what --------------------------------------------------------------------- */

void sim_tasks_describe(const struct sim *sim, struct sim_waits *waits)
{
    for (const struct sim_task *task = sim->tasks->all; task != NULL; task = task->next) {
        const struct sim_task_head *head = &task->head;
        const char *what = head->waits_for != NULL ? head->waits_for : "somebody";

        if (task->state == TASK_NEW || task->state == TASK_FINISHED || *what == '\0')
            continue;
        if (task->state == TASK_WAITING || task->state == TASK_RUNNING)
            sim_waits_add(waits, "%s runs", task->name);
        else
            sim_waits_add(waits, "%s waits for %s%s%s%s", task->name, what,
                          head->waits_in != NULL ? " (in " : "",
                          head->waits_in != NULL ? head->waits_in : "",
                          head->waits_in != NULL ? "())" : "");
    }
}
