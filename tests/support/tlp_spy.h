/*
 * Devices whose TLPs the test writes itself, and that record what they receive: a (root port
 * s0.rp0), b (s0.rp1, with a BAR of 4 KiB) and c (s1.rp0), each a pcie.requester whose receive() a
 * spy takes.
 */
#ifndef TESTS_SUPPORT_TLP_SPY_H
#define TESTS_SUPPORT_TLP_SPY_H

#include "models/pcie/link/port.h"
#include "tests/support/world_fixture.h"

/* The world of the fixture; texts in the root complex's group and in b's cable. */
#define WORLD(ROOT_COMPLEX, B_CABLE)                                               \
    "hosts = { server = { ports = ( { name = \"rp0\"; lanes = 8; },"               \
    "                               { name = \"rp1\"; lanes = 8; },"               \
    "                               { name = \"rp2\"; lanes = 8; },"               \
    "                               { name = \"rp0\"; socket = 1; lanes = 8; } );" \
    "  root_complex = { completion_timeout_us = 50; " ROOT_COMPLEX " }; }; };"     \
    "devices = { a = { type = \"pcie.requester\"; };"                              \
    "            b = { type = \"pcie.requester\"; bar_bytes = 4096; };"            \
    "            c = { type = \"pcie.requester\"; }; };"                           \
    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                     \
    "           { from = \"server.s0.rp1\"; to = \"b.p0\"; " B_CABLE " },"         \
    "           { from = \"server.s1.rp0\"; to = \"c.p0\"; } );"
#define SPY_TIMEOUT_PS (50 * SIM_PS_PER_US)

#define SPY_MAX 512

struct spy {
    struct model *model;
    const struct model_ops *real;
    struct model_ops ops;
    bool silent;      /* takes every TLP, answers none */
    bool hold;        /* silent, and keeps the buffers of what it receives */
    unsigned n_again; /* reads of again_address that it still sends, one for each that ends */
    uint64_t again_address;
    unsigned n;
    struct tlp got[SPY_MAX]; /* as received; payload: the first 8 bytes are in data[] */
    uint64_t data[SPY_MAX];
    sim_time at_ps[SPY_MAX];
    bool given[SPY_MAX]; /* held, and given back by spy_give_back() */
};

/* `device` records; what it receives it also handles, unless `silent` or `hold` are set. */
void spy_on(struct spy *spy, struct world_fixture *f, const char *device);
/* Gives back the buffer of got[i], which was held. */
void spy_give_back(struct spy *spy, unsigned i);
/* Gives back the buffers of everything that is still held, and holds nothing from now on. */
void spy_let_go(struct spy *spy);
uint64_t spy_bar(const struct spy *spy);
/* Returns a TLP of the device's own; payload of `bytes` bytes, `tag` in each, if it carries one. */
struct tlp *spy_tlp(struct spy *spy, enum tlp_type type, uint64_t address, unsigned bytes,
                    unsigned tag);
/* Sends it now. */
void spy_send(struct spy *spy, struct tlp *tlp);
/* Runs until nothing happens any more; all is given back then. */
void spy_run(struct world_fixture *f);
/* Memory of node 0 for the device, 64 KiB. */
struct hpa spy_memory(struct world_fixture *f, const struct spy *spy);
/* For FIXTURE_TEST: the spies were on the test's stack. */
int spy_tear_down(void **state);

#define TLP_TEST(test, root_complex, b_cable) \
    FIXTURE_TEST(test, fixture_set_up, spy_tear_down, WORLD(root_complex, b_cable))

#endif
