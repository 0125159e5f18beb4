/*
 * Fetches of instructions.
 *
 * Models: each piece of logic/ktext.h as lines in memory, one copy a host: runs of text_run_lines
 *   that follow each other, with gaps between them that the run's seed draws, as a linker leaves
 *   functions that know nothing of each other. A pass executes all lines in order. A line that the
 *   core's L1I has costs nothing: the cycles of a piece are those of a pass in which it has all.
 *   Others come through the L2. The front end asks for the next line when it begins one: the later
 *   lines of a run come while the one before is executed.
 * Does not model: requests of the front end for lines that are not executed then; fetches along
 *   predicted branches; the instruction TLB; text of programs, of switches between threads, of
 *   timers and of drivers other than those of the list; guests.
 * Timing: of a pass, cycles + the sum over its lines that the L1I does not have of what
 *   numa_fetch() takes, less cycles / lines for all but the first of a run. A piece that was in the
 *   L1I as a whole and of which that cannot have lost anything since is not looked at; its lines
 *   then do not count as used.
 * Sources: docs/sources.md#e3-text.
 */
#include "models/os/os_text.h"

#include <stdlib.h>

#define GAP_LINES 256u /* fewer than that, between runs: a multiple of the L1I's sets */
#define HALF_LINE 128u /* bytes of functions, of which a line is executed */
#define NOT_SEEN  0u

struct os_text {
    uint64_t *line;                /* addresses of all lines, by piece */
    unsigned first[N_K_TEXTS + 1]; /* of a piece, in `line` */
    unsigned run_lines;
    uint64_t (*whole)[N_K_TEXTS]; /* by CPU: numa_l1i_changes() + 1 when its L1I had all of it */
};

static unsigned lines_of(enum k_text piece, unsigned pct)
{
    const struct k_text_piece *p = &k_text_pieces[piece];
    const unsigned lines = (p->functions + p->bytes / HALF_LINE) * pct / 100;
    return lines > 0 ? lines : 1;
}

/* Places the lines, from 0 on; returns where they end. */
static uint64_t place(const struct kernel *kernel, struct os_text *text)
{
    struct sim_random random;
    uint64_t at = 0;
    sim_random_init(&random, sim_seed(kernel->sim), "text");
    for (unsigned p = 0; p < N_K_TEXTS; p++)
        for (unsigned i = text->first[p]; i < text->first[p + 1]; i++) {
            if ((i - text->first[p]) % text->run_lines == 0)
                at += LINE_BYTES * sim_random_below(&random, GAP_LINES);
            text->line[i] = at;
            at += LINE_BYTES;
        }
    return at;
}

void os_text_new(struct kernel *kernel)
{
    if (kernel->guest != NULL || !numa_has_l1i(host_numa(kernel->host)))
        return;
    struct os_text *text = k_zalloc(sizeof(*text));
    for (unsigned p = 0; p < N_K_TEXTS; p++)
        text->first[p + 1] = text->first[p] + lines_of(p, kernel->params.text_pct);
    text->run_lines = kernel->params.text_run_lines;
    text->line = k_zalloc(text->first[N_K_TEXTS] * sizeof(*text->line));
    text->whole = k_zalloc(kernel->n_cpus * sizeof(*text->whole));
    const uint64_t bytes = place(kernel, text);
    const struct kaddr base = k_alloc(kernel, 0, bytes, K_PAGE_BYTES);
    SIM_ASSERT(base.v != 0, "%s has no room for its text", kernel->name);
    for (unsigned i = 0; i < text->first[N_K_TEXTS]; i++)
        text->line[i] += base.v;
    kernel->text = text;
}

void os_text_free(struct kernel *kernel)
{
    if (kernel->text == NULL)
        return;
    free(kernel->text->line);
    free(kernel->text->whole);
    free(kernel->text);
}

unsigned os_text_lines(const struct kernel *kernel, enum k_text piece)
{
    const struct os_text *text = kernel->text;
    return text != NULL ? text->first[piece + 1] - text->first[piece] : 0;
}

void os_text_fetch(struct k_thread *self, enum k_text piece, uint64_t cycles)
{
    struct kernel *kernel = self->kernel;
    const struct os_text *text = kernel->text;
    struct core *core = self->on->core;
    uint64_t *whole = &text->whole[self->on->idx][piece];
    const uint64_t changes = numa_l1i_changes(core->numa, core->idx);
    if (*whole == changes + 1)
        return;
    const unsigned first = text->first[piece], end = text->first[piece + 1];
    const sim_time line_ps = cycles * kernel->cycle_ps / (end - first);
    const unsigned account = k_account(kernel, k_text_pieces[piece].user ? K_ACCOUNT_USER_TEXT
                                                                         : K_ACCOUNT_TEXT);
    for (unsigned i = first, in_run = 0; i < end; i++) {
        core_fetch(core, self->task, (struct hpa){ text->line[i] }, in_run == 0 ? 0 : line_ps);
        in_run = in_run + 1 == text->run_lines ? 0 : in_run + 1;
    }
    k_account(kernel, account);
    *whole = numa_l1i_changes(core->numa, core->idx) == changes ? changes + 1 : NOT_SEEN;
}

void k_run(struct kernel *kernel, enum k_text piece, uint64_t cycles)
{
    if (cycles > 0 || kernel->text != NULL)
        os_run_text(os_self(kernel), piece, cycles);
}
