/* The watchdog: nothing progresses, and why. */
#include "sim/engine/watchdog.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/engine/sim_internal.h"
#include "sim/engine/task.h"

#define TICKS_TO_SAY (1000u / SIM_TICK_MS)
#define TEXT_BYTES   (SIM_WAITS_BYTES + 200)
#define MORE_BYTES   32u /* of the text, kept for "and 17 more" */

/* ---- What waits ------------------------------------------------------------------------------ */

void sim_waits_add(struct sim_waits *waits, const char *fmt, ...)
{
    const size_t room = sizeof(waits->text) - MORE_BYTES - waits->n;
    const char *between = waits->n != 0 ? "; " : "";
    const size_t n_between = strlen(between);
    va_list args;

    if (room <= n_between || waits->n_left_out != 0) {
        waits->n_left_out++;
        return;
    }
    memcpy(waits->text + waits->n, between, n_between + 1);
    va_start(args, fmt);
    const int n = vsnprintf(waits->text + waits->n + n_between, room - n_between, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room - n_between) {
        waits->text[waits->n] = '\0';
        waits->n_left_out++;
    } else {
        waits->n += n_between + (size_t)n;
    }
}

void sim_waits_describe(struct sim *sim, struct sim_waits *waits)
{
    *waits = (struct sim_waits){ 0 };
    sim_tasks_describe(sim, waits);
    for (struct sim_watch *watch = sim->watchdog.watches; watch != NULL; watch = watch->next)
        if (watch->describe != NULL)
            watch->describe(watch, waits);
    if (waits->n_left_out != 0)
        snprintf(waits->text + waits->n, MORE_BYTES, "; and %u more", waits->n_left_out);
}

/* ---- Looking --------------------------------------------------------------------------------- */

void sim_watch_add(struct sim *sim, struct sim_watch *watch)
{
    sim_watch_remove(sim, watch);
    watch->next = sim->watchdog.watches;
    watch->link = &sim->watchdog.watches;
    if (watch->next != NULL)
        watch->next->link = &watch->next;
    sim->watchdog.watches = watch;
}

void sim_watch_remove(struct sim *sim, struct sim_watch *watch)
{
    (void)sim;
    if (watch->link == NULL)
        return;
    *watch->link = watch->next;
    if (watch->next != NULL)
        watch->next->link = watch->link;
    watch->link = NULL;
}

void sim_progress(struct sim *sim)
{
    sim->watchdog.n_progress++;
}

static uint64_t work_of(const struct sim *sim)
{
    uint64_t sum = sim->watchdog.n_progress;

    for (struct sim_watch *watch = sim->watchdog.watches; watch != NULL; watch = watch->next)
        if (watch->work != NULL)
            sum += watch->work(watch);
    return sum;
}

static void describe(struct sim *sim, const char *why, char *text, size_t n_text)
{
    struct sim_waits waits;

    sim_waits_describe(sim, &waits);
    snprintf(text, n_text, "nothing progresses at %llu ps: %s%s%s",
             (unsigned long long)sim_now(sim), why, waits.text[0] != '\0' ? "; " : "", waits.text);
}

void sim_fail_waiting(struct sim *sim, const char *why)
{
    char text[TEXT_BYTES];

    describe(sim, why, text, sizeof(text));
    sim_fail(sim, "%s", text);
}

static void look_for_work(struct sim *sim)
{
    static const char why[] = "only polls and timers go on";
    struct sim_watchdog *dog = &sim->watchdog;
    const uint64_t work = work_of(sim);
    char text[TEXT_BYTES];

    /* Without a watch nobody knows what work is. */
    if (work != dog->work || dog->watches == NULL) {
        dog->work = work;
        dog->worked_at = dog->n_steps;
        dog->worked_ps = sim_now(sim);
        dog->said = false;
    }
    if (dog->n_steps - dog->worked_at < SIM_IDLE_STEPS)
        return;
    if (sim_now(sim) - dog->worked_ps >= SIM_IDLE_PS) {
        sim_fail_waiting(sim, why);
    } else if (!dog->said) {
        describe(sim, why, text, sizeof(text));
        fprintf(stderr, "%s\n", text);
        dog->said = true;
    }
}

void sim_watchdog_look(struct sim *sim)
{
    struct sim_watchdog *dog = &sim->watchdog;

    dog->look_at = dog->n_steps + SIM_LOOK_STEPS;
    if (sim_now(sim) != dog->seen_ps) {
        dog->seen_ps = sim_now(sim);
        dog->moved_at = dog->n_steps;
    }
    if (dog->n_steps - dog->moved_at >= SIM_STANDSTILL_STEPS)
        sim_fail_waiting(sim, "simulated time stands still, events follow each other without end");
    else
        look_for_work(sim);
}

/* ---- An event or a task that does not return ------------------------------------------------- */

static void put(const char *text)
{
    /* A message that cannot be written is lost: there is nobody to tell. */
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

static void put_number(uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    put(digits + at);
}

/* Only what a handler of a signal may do. */
static void say(const struct sim *sim, unsigned n_ticks)
{
    const struct sim_task *task = sim_task_current(sim);

    put("nothing progresses at ");
    put_number(sim_now(sim));
    put(" ps: ");
    put(task != NULL ? "task " : "an event");
    put(task != NULL ? sim_task_name(task) : "");
    put(" has been computing for ");
    put_number(n_ticks * (uint64_t)SIM_TICK_MS / 1000);
    put(" s of processor time without an end\n");
}

void sim_watchdog_tick(void)
{
    struct sim *sim = sim_of_this_thread();
    if (sim == NULL)
        return;
    struct sim_watchdog *dog = &sim->watchdog;
    const struct sim_task *task = sim_task_current(sim);
    /* What each step and each charge of time changes. */
    const uint64_t seen = 2 * sim->n_fired + (uint64_t)sim->poll_left + sim_now(sim) +
                          (task != NULL ? sim_task_now(task) : 0);

    if (seen != dog->seen_at_tick) {
        dog->seen_at_tick = seen;
        dog->n_ticks = 0;
        return;
    }
    dog->n_ticks++;
    if (dog->n_ticks == TICKS_TO_SAY || dog->n_ticks == SIM_TICKS_MAX)
        say(sim, dog->n_ticks);
    if (dog->n_ticks == SIM_TICKS_MAX)
        abort();
}
