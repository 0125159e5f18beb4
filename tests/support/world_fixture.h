/* A world from the text of a scenario, booted; for tests of what needs a whole host. */
#ifndef TESTS_SUPPORT_WORLD_FIXTURE_H
#define TESTS_SUPPORT_WORLD_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "models/nfp/requester.h"
#include "models/world/world.h"
#include "tests/support/fixture_test.h"

struct world_fixture {
    struct config *config;
    struct world *world;
    struct sim *sim;
    struct host *host;
};

struct config *fixture_config(const char *text, struct sim_error_list *errors);

void fixture_fail(struct sim_error_list *errors);

/* The scenario must be without mistakes and have a host `server`. */
void fixture_open(struct world_fixture *f, const char *text);

void fixture_close(struct world_fixture *f);

/* The settings of the test are the scenario's text. */
int fixture_set_up(void **state);

/* Of a test whose fixture is a struct world_fixture, or begins with one. */
int fixture_tear_down(void **state);

#define WORLD_TEST(test, text) FIXTURE_TEST(test, fixture_set_up, fixture_tear_down, text)

/* Runs a function as a task, to its end. */
struct fixture_call {
    struct world_fixture *f;
    void (*body)(struct world_fixture *f, struct sim_task *task, void *arg);
    void *arg;
    bool done;
};

void fixture_body(struct sim_task *task, void *arg);

void fixture_call(struct world_fixture *f,
                  void (*body)(struct world_fixture *f, struct sim_task *task, void *arg),
                  void *arg);

/* Runs until `*count`, which threads of the world add to, is n; a test fails that has not come so
 * far within this time, or whose simulation fails. */
void fixture_run_until(struct world_fixture *f, const unsigned *count, unsigned n,
                       sim_time within_ps);

/* One operation of a requester, to its end; returns its status. */
struct fixture_op {
    struct pcie_requester_op op;
    enum pcie_dma_status status;
    bool done;
    sim_time start_ps, done_ps;
};

void fixture_op_done(struct pcie_requester_op *op, enum pcie_dma_status status);

enum pcie_dma_status fixture_dma(struct world_fixture *f, const char *device,
                                 struct fixture_op *op);

#endif
