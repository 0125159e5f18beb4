#include "tests/support/fake/fake_kapi.h"

#include "sim/engine/sanitizer.h"

#define FAKE_CYCLE_PS    400u
#define FAKE_STACK_BYTES 65536u
#define FAKE_NAPI_BUDGET 64
#define FAKE_NEVER       UINT64_MAX

/* ---- Time and who goes on -------------------------------------------------------------------- */

uint64_t fake_random(struct kernel *kernel, uint64_t below)
{
    uint64_t z = kernel->rng += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return below ? (z ^ (z >> 31)) % below : 0;
}

void k_fault(struct kernel *kernel, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(kernel->fault, sizeof kernel->fault, fmt, args);
    va_end(args);
    kernel->n_faults++;
    if (!kernel->options.count_faults) {
        fprintf(stderr, "fake kernel, seed %llu, %llu ps, cpu %u: %s\n",
                (unsigned long long)kernel->options.seed, (unsigned long long)kernel->now_ps,
                kernel->cpu_now, kernel->fault);
        abort();
    }
}

void k_warn(struct kernel *kernel, const char *fmt, ...)
{
    (void)fmt;
    kernel->n_warnings++;
}

void k_trace(struct kernel *kernel, const char *step, uint64_t number)
{
    (void)kernel;
    (void)step;
    (void)number;
}

static struct k_irq *fake_irq_next(struct kernel *kernel, unsigned cpu)
{
    struct k_irq *first = NULL;
    if (kernel->irqs_pending == 0)
        return NULL;
    for (struct k_irq *irq = kernel->irqs; irq; irq = irq->next)
        if (irq->pending && irq->cpu == cpu && (!first || irq->at_ps < first->at_ps))
            first = irq;
    return first;
}

static bool fake_soft_pending(const struct kernel *kernel, const struct fake_cpu *cpu)
{
    return cpu->polls || (cpu->timers && cpu->timers->at_ps <= kernel->now_ps);
}

/* When the CPU does its next thing; `without_current`: apart from the context that asks. */
static uint64_t fake_cpu_next(struct kernel *kernel, unsigned number, bool without_current)
{
    struct fake_cpu *cpu = &kernel->cpu[number];
    struct k_irq *irq = fake_irq_next(kernel, number);
    uint64_t next = irq ? irq->at_ps : FAKE_NEVER, at = FAKE_NEVER;
    if (cpu->soft_active)
        at = without_current ? FAKE_NEVER : cpu->soft->resume_ps;
    else if (cpu->bh_disabled == 0 && cpu->polls)
        at = kernel->now_ps;
    else {
        if (cpu->bh_disabled == 0 && cpu->timers)
            at = cpu->timers->at_ps;
        uint64_t thread_at = cpu->thread  ? (without_current ? FAKE_NEVER : cpu->thread->resume_ps)
                             : cpu->ready ? cpu->ready->resume_ps
                                          : FAKE_NEVER;
        if (thread_at < at)
            at = thread_at;
    }
    if (at < next)
        next = at;
    return next < kernel->now_ps ? kernel->now_ps : next;
}

/* The time of the next thing of all; *number: the CPU, or n_cpus for an event or a timeout. */
static uint64_t fake_next(struct kernel *kernel, bool without_current, unsigned *number)
{
    uint64_t next = kernel->events ? kernel->events->at_ps : FAKE_NEVER;
    *number = kernel->options.n_cpus;
    for (struct k_thread *t = kernel->threads; t; t = t->next)
        if (t->state == FAKE_BLOCKED && t->until_ps < next)
            next = t->until_ps;
    unsigned ties = 1;
    for (unsigned i = 0; i < kernel->options.n_cpus; i++) {
        uint64_t at = fake_cpu_next(kernel, i, without_current && i == kernel->cpu_now);
        if (at > next || at == FAKE_NEVER)
            continue;
        ties = at < next ? 1 : ties + 1;
        if (ties == 1 || fake_random(kernel, ties) == 0)
            *number = i;
        next = at;
    }
    return next < kernel->now_ps ? kernel->now_ps : next;
}

static void fake_switch_out(struct k_thread *self)
{
    struct kernel *kernel = self->kernel;
    sim_fiber_leave(self->state == FAKE_DONE ? NULL : &self->fake_stack, kernel->loop_stack,
                    kernel->loop_stack_bytes);
    sim_context_switch(&self->context, &kernel->loop);
    sim_fiber_arrive(self->fake_stack, &kernel->loop_stack, &kernel->loop_stack_bytes);
}

static void fake_make_ready(struct k_thread *thread)
{
    struct fake_cpu *cpu = &thread->kernel->cpu[thread->cpu];
    thread->state = FAKE_READY;
    thread->next_ready = NULL;
    if (cpu->ready)
        cpu->ready_tail->next_ready = thread;
    else
        cpu->ready = thread;
    cpu->ready_tail = thread;
}

/* Off its CPU; with state READY at the end of the queue of thread->cpu. */
static void fake_deschedule(struct k_thread *self, enum fake_state state)
{
    struct kernel *kernel = self->kernel;
    FAKE_CHECK(kernel, kernel->cpu[kernel->cpu_now].bh_disabled == 0);
    kernel->cpu[kernel->cpu_now].thread = NULL;
    self->state = state;
    if (state == FAKE_READY)
        fake_make_ready(self);
    fake_switch_out(self);
}

void fake_charge(struct kernel *kernel, uint64_t ps)
{
    struct k_thread *self = kernel->current;
    struct fake_cpu *cpu = &kernel->cpu[kernel->cpu_now];
    bool stall = kernel->options.stall_percent &&
                 fake_random(kernel, 100) < kernel->options.stall_percent;
    cpu->busy_ps += ps;
    if (stall)
        ps += fake_random(kernel, kernel->options.stall_ps);
    if (!self) {
        if (kernel->in_hard_irq)
            cpu->irq_ps += ps;
        else if (!kernel->in_event)
            kernel->now_ps += ps;
        return;
    }
    self->resume_ps = kernel->now_ps + ps;
    if (stall && !self->soft && cpu->bh_disabled == 0 && cpu->ready) {
        fake_deschedule(self, FAKE_READY);
        return;
    }
    unsigned number;
    if (self->resume_ps <= kernel->until_ps && fake_next(kernel, true, &number) > self->resume_ps)
        kernel->now_ps = self->resume_ps;
    else
        fake_switch_out(self);
}

static void fake_resume(struct kernel *kernel, struct k_thread *thread)
{
    kernel->current = thread;
    thread->state = FAKE_RUNNING;
    sim_fiber_leave(&kernel->loop_fake_stack, thread->stack, FAKE_STACK_BYTES);
    sim_context_switch(&kernel->loop, &thread->context);
    sim_fiber_arrive(kernel->loop_fake_stack, NULL, NULL);
    kernel->current = NULL;
}

static void fake_run_irq(struct kernel *kernel, struct k_irq *irq)
{
    struct fake_cpu *cpu = &kernel->cpu[irq->cpu];
    irq->pending = false;
    kernel->irqs_pending--;
    kernel->in_hard_irq = true;
    cpu->irq_ps = 0;
    irq->handler(irq->arg);
    kernel->in_hard_irq = false;
    if (cpu->soft_active)
        cpu->soft->resume_ps += cpu->irq_ps;
    else if (cpu->thread)
        cpu->thread->resume_ps += cpu->irq_ps;
}

static void fake_bury(struct kernel *kernel)
{
    for (struct k_thread **link = &kernel->threads; *link;) {
        struct k_thread *t = *link;
        if (t->state == FAKE_DONE) {
            *link = t->next;
            free(t->stack);
            free(t);
        } else
            link = &t->next;
    }
}

static void fake_run_cpu(struct kernel *kernel, unsigned number)
{
    struct fake_cpu *cpu = &kernel->cpu[number];
    struct k_irq *irq = fake_irq_next(kernel, number);
    kernel->cpu_now = number;
    if (irq && irq->at_ps <= kernel->now_ps) {
        fake_run_irq(kernel, irq);
        return;
    }
    if (cpu->soft_active || (cpu->bh_disabled == 0 && fake_soft_pending(kernel, cpu))) {
        cpu->soft_active = true;
        fake_resume(kernel, cpu->soft);
        return;
    }
    if (!cpu->thread) {
        cpu->thread = cpu->ready;
        cpu->ready = cpu->ready->next_ready;
        if (cpu->thread->cpu != number) { /* moved while it waited for the CPU */
            fake_make_ready(cpu->thread);
            cpu->thread = NULL;
            return;
        }
    }
    struct k_thread *thread = cpu->thread;
    fake_resume(kernel, thread);
    if (thread->state == FAKE_DONE)
        fake_bury(kernel);
}

static void fake_run_others(struct kernel *kernel)
{
    struct fake_event *event = kernel->events;
    if (event && event->at_ps <= kernel->now_ps) {
        kernel->events = event->next;
        kernel->in_event = true;
        event->fn(event->arg);
        kernel->in_event = false;
        free(event);
        return;
    }
    for (struct k_thread *t = kernel->threads; t; t = t->next)
        if (t->state == FAKE_BLOCKED && t->until_ps <= kernel->now_ps) {
            t->resume_ps = kernel->now_ps;
            fake_make_ready(t);
            return;
        }
}

/* Runs everything up to until_ps, or until *stop becomes true. From the test only. */
static void fake_run(struct kernel *kernel, uint64_t until_ps, const bool *stop)
{
    unsigned cpu = kernel->cpu_now, next;
    FAKE_CHECK(kernel, !kernel->current && !kernel->in_hard_irq && !kernel->in_event);
    kernel->until_ps = until_ps;
    while (!(stop && *stop)) {
        uint64_t at = fake_next(kernel, false, &next);
        if (at > until_ps || at == FAKE_NEVER) {
            kernel->now_ps = until_ps == FAKE_NEVER ? kernel->now_ps : until_ps;
            break;
        }
        kernel->now_ps = at;
        if (next == kernel->options.n_cpus)
            fake_run_others(kernel);
        else
            fake_run_cpu(kernel, next);
    }
    kernel->cpu_now = cpu;
}

void fake_run_until(struct kernel *kernel, uint64_t until_ps)
{
    fake_run(kernel, until_ps, NULL);
}

void fake_on(struct kernel *kernel, unsigned cpu)
{
    kernel->cpu_now = cpu;
}

void fake_at(struct kernel *kernel, uint64_t at_ps, void (*fn)(void *), void *arg)
{
    struct fake_event **link = &kernel->events, *event = calloc(1, sizeof *event);
    while (*link && (*link)->at_ps <= at_ps)
        link = &(*link)->next;
    *event = (struct fake_event){ *link, at_ps, fn, arg };
    *link = event;
}

const struct k_costs *k_costs(const struct kernel *kernel)
{
    return &kernel->costs;
}
uint64_t k_now_ps(struct kernel *kernel)
{
    return kernel->now_ps;
}
unsigned k_cpu(struct kernel *kernel)
{
    return kernel->cpu_now;
}
unsigned k_n_cpus(const struct kernel *kernel)
{
    return kernel->options.n_cpus;
}
unsigned k_n_nodes(const struct kernel *kernel)
{
    return kernel->options.n_nodes;
}
unsigned k_node_of_cpu(const struct kernel *kernel, unsigned cpu)
{
    return cpu * kernel->options.n_nodes / kernel->options.n_cpus;
}
void k_compute(struct kernel *kernel, uint64_t cycles)
{
    kernel->cycles += cycles;
    fake_charge(kernel, cycles * FAKE_CYCLE_PS);
}
void k_run(struct kernel *kernel, enum k_text piece, uint64_t cycles)
{
    FAKE_CHECK(kernel, piece < N_K_TEXTS);
    k_compute(kernel, cycles);
}
unsigned k_account(struct kernel *kernel, unsigned account)
{
    struct k_thread *self = kernel->current;
    FAKE_CHECK(kernel, account < K_ACCOUNTS);
    if (!self)
        return 0;
    const unsigned before = self->account;
    self->account = account;
    return before;
}
void k_syscall(struct kernel *kernel)
{
    k_compute(kernel, kernel->costs.syscall_cycles);
}
void *k_zalloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}
void k_free(void *p)
{
    free(p);
}

/* ---- Threads, waiting ------------------------------------------------------------------------ */

static void fake_entry(void *arg)
{
    struct k_thread *self = arg;
    sim_fiber_arrive(NULL, &self->kernel->loop_stack, &self->kernel->loop_stack_bytes);
    self->body(self->arg);
    fake_deschedule(self, FAKE_DONE);
}

static struct k_thread *fake_context_new(struct kernel *kernel, const char *name, unsigned cpu,
                                         k_thread_fn *body, void *arg)
{
    struct k_thread *thread = k_zalloc(sizeof *thread);
    thread->stack = malloc(FAKE_STACK_BYTES);
    thread->kernel = kernel;
    thread->body = body;
    thread->arg = arg;
    thread->cpu = cpu;
    thread->until_ps = FAKE_NEVER;
    snprintf(thread->name, sizeof thread->name, "%s", name);
    sim_context_prepare(&thread->context, thread->stack, FAKE_STACK_BYTES, fake_entry, thread);
    return thread;
}

struct k_thread *k_thread_new(struct kernel *kernel, const char *name, int cpu, k_thread_fn *body,
                              void *arg)
{
    unsigned number = cpu == K_CPU_ANY ? (unsigned)fake_random(kernel, kernel->options.n_cpus)
                                       : (unsigned)cpu;
    struct k_thread *thread = fake_context_new(kernel, name, number, body, arg);
    thread->resume_ps = kernel->now_ps;
    thread->next = kernel->threads;
    kernel->threads = thread;
    fake_make_ready(thread);
    return thread;
}

struct k_thread *k_thread_self(struct kernel *kernel)
{
    return kernel->current;
}
void k_thread_set_cpu(struct k_thread *thread, unsigned cpu)
{
    thread->cpu = cpu;
    if (thread == thread->kernel->current && cpu != thread->kernel->cpu_now)
        fake_deschedule(thread, FAKE_READY);
}
/* Threads of fakes stay where they are. */
void k_thread_float(struct k_thread *thread)
{
    (void)thread;
}
unsigned k_thread_cpu(const struct k_thread *thread)
{
    return thread->cpu;
}

bool k_wait_named(struct kernel *kernel, struct k_wait_queue *queue, uint64_t until_ps,
                  const char *what, const char *function)
{
    (void)what, (void)function;
    struct k_thread *self = kernel->current;
    struct k_waiter *waiter = self ? &self->waiter : &kernel->waiter;
    FAKE_CHECK(kernel, !(self && self->soft) && !kernel->in_hard_irq && !kernel->in_event);
    *waiter = (struct k_waiter){ queue->first, self, false };
    queue->first = waiter;
    if (self) {
        self->until_ps = until_ps;
        fake_deschedule(self, FAKE_BLOCKED);
        self->until_ps = FAKE_NEVER;
    } else
        fake_run(kernel, until_ps, &waiter->woken);
    if (!waiter->woken)
        for (struct k_waiter **link = &queue->first; *link; link = &(*link)->next)
            if (*link == waiter) {
                *link = waiter->next;
                break;
            }
    return waiter->woken;
}

void k_wake(struct kernel *kernel, struct k_wait_queue *queue)
{
    struct k_waiter *next, *waiter = queue->first;
    for (queue->first = NULL; waiter; waiter = next) {
        next = waiter->next;
        waiter->woken = true;
        if (waiter->thread && waiter->thread->state == FAKE_BLOCKED) {
            waiter->thread->resume_ps = kernel->now_ps;
            fake_make_ready(waiter->thread);
        }
    }
}
bool k_has_waiters(const struct k_wait_queue *queue)
{
    return queue->first != NULL;
}
/* Without going through it look by look: others of the CPU run meanwhile. */
void k_spin_any(struct kernel *kernel, const struct k_spin_at *at, unsigned n, uint64_t period_ps,
                uint64_t until_ps)
{
    struct fake_spin spin = { .next = kernel->spins, .at = at, .n = n };
    FAKE_CHECK(kernel, period_ps > 0 && n <= K_SPIN_MAX);
    for (unsigned i = 0; i < n; i++)
        FAKE_CHECK(kernel, at[i].at.v % K_LINE_BYTES + at[i].bytes <= K_LINE_BYTES);
    kernel->spins = &spin;
    while (kernel->now_ps < until_ps && !fake_spin_differs(kernel, &spin)) {
        k_wait(kernel, &spin.written, until_ps);
        fake_charge(kernel, period_ps);
    }
    K_LIST_REMOVE(kernel->spins, &spin);
}
void k_sleep(struct kernel *kernel, uint64_t ps)
{
    struct k_wait_queue none = { NULL };
    k_wait(kernel, &none, kernel->now_ps + ps);
}
void k_yield(struct kernel *kernel)
{
    if (kernel->current)
        fake_deschedule(kernel->current, FAKE_READY);
}
void k_bh_disable(struct kernel *kernel)
{
    if (kernel->current)
        kernel->cpu[kernel->cpu_now].bh_disabled++;
}
void k_bh_enable(struct kernel *kernel)
{
    struct fake_cpu *cpu = &kernel->cpu[kernel->cpu_now];
    struct k_thread *self = kernel->current;
    if (!self)
        return;
    FAKE_CHECK(kernel, cpu->bh_disabled > 0);
    if (--cpu->bh_disabled == 0 && !self->soft && fake_soft_pending(kernel, cpu)) {
        self->resume_ps = kernel->now_ps;
        fake_switch_out(self);
    }
}

/* ---- Soft interrupts: timers, NAPI; work ----------------------------------------------------- */

static struct fake_timer *fake_timer_take(struct fake_cpu *cpu, const struct k_timer *timer)
{
    for (struct fake_timer **link = &cpu->timers; *link; link = &(*link)->next)
        if ((*link)->timer == timer) {
            struct fake_timer *taken = *link;
            *link = taken->next;
            return taken;
        }
    return NULL;
}

static void fake_poll(struct kernel *kernel, struct fake_cpu *cpu)
{
    struct k_napi *napi = cpu->polls;
    cpu->polls = napi->next;
    cpu->completed = false;
    int done = napi->poll(napi, FAKE_NAPI_BUDGET);
    FAKE_CHECK(kernel, cpu->completed == (done < FAKE_NAPI_BUDGET));
    if (cpu->completed)
        return;
    napi->missed = true; /* goes to the end of the list */
    k_napi_complete(napi);
}

static void fake_soft_body(void *arg)
{
    struct kernel *kernel = arg;
    struct k_thread *self = kernel->current;
    for (;;) {
        struct fake_cpu *cpu = &kernel->cpu[kernel->cpu_now];
        while (fake_soft_pending(kernel, cpu)) {
            struct fake_timer *due = cpu->timers;
            if (due && due->at_ps <= kernel->now_ps) {
                struct k_timer *timer = due->timer;
                cpu->timers = due->next;
                free(due);
                timer->private_data = NULL;
                kernel->timers_live--;
                timer->fn(timer);
            } else
                fake_poll(kernel, cpu);
        }
        cpu->soft_active = false;
        fake_switch_out(self);
    }
}

void k_timer_init(struct k_timer *timer, struct kernel *kernel, k_timer_fn *fn)
{
    *timer = (struct k_timer){ .kernel = kernel, .fn = fn };
}
void k_timer_set(struct k_timer *timer, uint64_t at_ps)
{
    struct kernel *kernel = timer->kernel;
    k_timer_cancel(timer);
    struct fake_timer *new = k_zalloc(sizeof *new);
    struct fake_timer **link = &kernel->cpu[kernel->cpu_now].timers;
    while (*link && (*link)->at_ps <= at_ps)
        link = &(*link)->next;
    *new = (struct fake_timer){ *link, timer, at_ps, kernel->cpu_now };
    *link = new;
    timer->private_data = new;
    kernel->timers_live++;
}
void k_timer_set_watchdog(struct k_timer *timer, uint64_t at_ps)
{
    k_timer_set(timer, at_ps);
}
void k_timer_cancel(struct k_timer *timer)
{
    struct fake_timer *armed = timer->private_data;
    if (!armed)
        return;
    free(fake_timer_take(&timer->kernel->cpu[armed->cpu], timer));
    timer->private_data = NULL;
    timer->kernel->timers_live--;
}
bool k_timer_pending(const struct k_timer *timer)
{
    return timer->private_data != NULL;
}
void k_timer_release(struct k_timer *timer)
{
    k_timer_cancel(timer);
}

static void fake_worker(void *arg)
{
    struct kernel *kernel = arg;
    struct fake_cpu *cpu = &kernel->cpu[k_thread_cpu(k_thread_self(kernel))];
    for (;;) {
        struct k_work *work = cpu->works;
        if (!work) {
            k_wait(kernel, &cpu->worker_wait, FAKE_NEVER);
            continue;
        }
        cpu->works = work->next;
        work->queued = false;
        k_compute(kernel, kernel->costs.work_cycles);
        work->fn(work);
    }
}

void k_work_queue(struct kernel *kernel, struct k_work *work, int cpu_wanted)
{
    unsigned number = cpu_wanted == K_CPU_ANY ? kernel->cpu_now : (unsigned)cpu_wanted;
    struct fake_cpu *cpu = &kernel->cpu[number];
    if (work->queued)
        return;
    work->queued = true;
    work->next = NULL;
    if (cpu->works)
        cpu->works_tail->next = work;
    else
        cpu->works = work;
    cpu->works_tail = work;
    if (!cpu->worker) {
        cpu->worker = true;
        k_thread_new(kernel, "worker", (int)number, fake_worker, kernel);
    }
    k_wake(kernel, &cpu->worker_wait);
}

static void fake_poll_list_add(struct kernel *kernel, struct k_napi *napi)
{
    struct fake_cpu *cpu = &kernel->cpu[kernel->cpu_now];
    napi->next = NULL;
    if (cpu->polls)
        cpu->polls_tail->next = napi;
    else
        cpu->polls = napi;
    cpu->polls_tail = napi;
}
void k_napi_init(struct k_napi *napi, struct kernel *kernel, k_napi_poll_fn *poll)
{
    *napi = (struct k_napi){ .kernel = kernel, .poll = poll };
}
void k_napi_schedule(struct k_napi *napi)
{
    if (napi->scheduled) {
        napi->missed = true;
        return;
    }
    napi->scheduled = true;
    fake_poll_list_add(napi->kernel, napi);
}
bool k_napi_complete(struct k_napi *napi)
{
    FAKE_CHECK(napi->kernel, napi->scheduled);
    napi->kernel->cpu[napi->kernel->cpu_now].completed = true;
    if (napi->missed) {
        napi->missed = false;
        fake_poll_list_add(napi->kernel, napi);
        return false;
    }
    napi->scheduled = false;
    return true;
}

/* ---- The whole ------------------------------------------------------------------------------- */

struct kernel *fake_new(const struct fake_options *options)
{
    struct kernel *kernel = k_zalloc(sizeof *kernel);
    kernel->options = *options;
    if (!options->n_cpus)
        kernel->options.n_cpus = 4;
    if (!options->n_nodes)
        kernel->options.n_nodes = 2;
    if (!options->stall_ps)
        kernel->options.stall_ps = FAKE_US(20);
    kernel->rng = options->seed;
    for (size_t i = 0; i < sizeof kernel->costs / sizeof(uint32_t); i++)
        ((uint32_t *)(void *)&kernel->costs)[i] = 100;
    for (unsigned i = 0; i < kernel->options.n_cpus; i++) {
        kernel->cpu[i].soft = fake_context_new(kernel, "soft", i, fake_soft_body, kernel);
        kernel->cpu[i].soft->soft = true;
    }
    return kernel;
}

void fake_free(struct kernel *kernel)
{
    for (struct k_thread *t = kernel->threads; t; t = t->next)
        t->state = FAKE_DONE;
    fake_bury(kernel);
    for (unsigned i = 0; i < kernel->options.n_cpus; i++) {
        free(kernel->cpu[i].soft->stack);
        free(kernel->cpu[i].soft);
        for (struct fake_timer *next, *t = kernel->cpu[i].timers; t; t = next) {
            next = t->next;
            free(t);
        }
    }
    for (struct k_irq *next, *irq = kernel->irqs; irq; irq = next) {
        next = irq->next;
        free(irq);
    }
    fake_domains_free(kernel);
    fake_resources_free(kernel);
    for (struct fake_event *next, *event = kernel->events; event; event = next) {
        next = event->next;
        free(event);
    }
    for (struct k_cache *next_cache, *cache = kernel->caches; cache; cache = next_cache) {
        next_cache = cache->next;
        for (struct fake_object *next, *object = cache->all; object; object = next) {
            next = object->next;
            ASAN_UNPOISON_MEMORY_REGION(object->body, cache->bytes);
            free(object);
        }
        free(cache);
    }
    for (unsigned i = 0; i < FAKE_FRAMES; i++)
        for (struct fake_frame *next, *frame = kernel->frame[i]; frame; frame = next) {
            next = frame->next;
            free(frame);
        }
    free(kernel);
}
