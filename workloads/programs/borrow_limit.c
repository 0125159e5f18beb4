/*
 * borrow_limit: borrows one device after the other, of every other host in turn, until something
 * refuses; how many there are comes out of the tables that fill up. All is returned at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "workloads/programs/program.h"

struct borrow_limit {
    /* parameters */
    const char *host_name, *from_name;
    /* running */
    struct program *program;
    struct lending_host *host, *from; /* from NULL: all others */
    struct lend_borrow **borrow;
    unsigned n, room, n_refusals;
    int refusal; /* the last one; 0: none */
};

static const struct param_desc borrow_limit_params[] = {
    PARAM_TEXT("on", struct borrow_limit, host_name, "borrower", "the host that borrows"),
    PARAM_TEXT("from", struct borrow_limit, from_name, "",
               "the host that lends; empty: all that it finds"),
    { .type = PARAM_END },
};

static const struct record_desc borrow_limit_records[] = {
    { "+devices_borrowed", RECORD_METRIC, "1",
      "until each lender refused, or had no more; the sum is of the host that is measured" },
    { "+cluster_devices_borrowed", RECORD_METRIC, "1", "of all hosts that such programs run on" },
    { ".lenders_refused", RECORD_METRIC, "1", "lenders with devices that could not be borrowed" },
    { ".refusal_errno", RECORD_METRIC, "1",
      "of the last refusal; its words: parameter note.PROGRAM.refusal.N" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void borrow_limit_check(struct program *program, struct sim_error_list *errors)
{
    struct borrow_limit *limit = program->state;
    limit->program = program;
    limit->host = program_member(program, "on", limit->host_name, true, errors);
    if (limit->from_name[0] != '\0')
        limit->from = program_lending_host(program, "from", limit->from_name, errors);
    if (limit->host != NULL && limit->host == limit->from)
        program_mistake(program, "from", errors, "another host than `on`", NULL);
}

static void keep(struct borrow_limit *limit, struct lend_borrow *borrow)
{
    if (limit->n == limit->room) {
        limit->room = limit->room == 0 ? 16 : 2 * limit->room;
        limit->borrow = sim_grow(limit->borrow, limit->room, sizeof(*limit->borrow));
    }
    limit->borrow[limit->n++] = borrow;
}

/* Kept with the run, as a warning is gone with the terminal. */
static void refused(struct borrow_limit *limit, const char *what, int status, const char *text)
{
    char name[96];
    limit->refusal = -status;
    limit->n_refusals++;
    snprintf(name, sizeof(name), "%s.refusal.%u", limit->program->name, limit->n_refusals);
    run_result_note(limit->program->workload->result, name, text);
    k_warn(limit->host->kernel, "%s: after %u devices, %s is refused: %s (%d)",
           limit->program->name, limit->n, what, text, status);
}

static void borrow_all_of(struct borrow_limit *limit, uint32_t peer)
{
    struct lend_host *lend = limit->host->lend;
    struct lend_error error = { 0 };
    struct lend_info info;
    struct lend_borrow *borrow;
    for (unsigned i = 0;; i++) {
        int status = lend_list(lend, peer, i, &info, &error);
        if (status == -ENOENT) /* no more */
            return;
        if (status != 0) {
            refused(limit, "a list of devices", status, error.text);
            return;
        }
        if (info.lent_to != 0)
            continue;
        status = lend_borrow(lend, peer, info.id, &borrow, &error);
        if (status == -EBUSY) /* another host was faster */
            continue;
        if (status != 0) {
            refused(limit, info.name, status, error.text);
            return;
        }
        keep(limit, borrow);
    }
}

static void borrow_body(void *arg)
{
    struct borrow_limit *limit = arg;
    struct lend_path path;
    lend_discover(limit->host->lend);
    for (unsigned i = 0; lend_path_at(limit->host->lend, i, &path); i++)
        if (limit->from == NULL || path.peer == limit->from->number)
            borrow_all_of(limit, path.peer);
    program_finish(limit->program);
    while (!program_ending(limit->program))
        k_sleep(limit->host->kernel, SIM_PS_PER_MS / 10);
    while (limit->n != 0)
        lend_return(limit->borrow[--limit->n]);
}

static void borrow_limit_start(struct program *program)
{
    struct borrow_limit *limit = program->state;
    program->finite = true;
    lending_borrows_more(program->lending);
    k_thread_new(limit->host->kernel, program->name, 0, borrow_body, limit);
}

static void borrow_limit_record(struct program *program, sim_time duration_ps)
{
    const struct borrow_limit *limit = program->state;
    (void)duration_ps;
    if (program_is_measured(program, limit->host))
        program_metric(program, "devices_borrowed", "1", limit->n);
    else
        program_metric_apart(program, "devices_borrowed", "1", limit->n);
    program_metric(program, "cluster_devices_borrowed", "1", limit->n);
    program_metric(program, "lenders_refused", "1", limit->n_refusals);
    program_metric(program, "refusal_errno", "1", limit->refusal);
}

static void borrow_limit_release(struct program *program)
{
    free(((struct borrow_limit *)program->state)->borrow);
}

const struct program_ops program_borrow_limit_ops = {
    .type = "borrow_limit",
    .help = "borrows one device after the other until it is refused",
    .state_bytes = sizeof(struct borrow_limit),
    .params = borrow_limit_params,
    .records = borrow_limit_records,
    .check = borrow_limit_check,
    .start = borrow_limit_start,
    .record = borrow_limit_record,
    .release = borrow_limit_release,
};
