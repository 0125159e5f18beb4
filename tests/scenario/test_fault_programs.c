/*
 * Faults of devices under programs that use them: the program `fault` does to a device what the
 * rows say, and the run ends as they say. Either all goes on, every byte is verified, and nothing
 * is left mapped or lent; or the run fails with a message that names what was lost. None goes on
 * for ever.
 */
#include <string.h>

#include "tests/support/scenario_fixture.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define FOLDER "tests/scenario/settings/"

/* A program and the device that the fault befalls. */
struct use {
    const char *base;    /* file of FOLDER */
    const char *options; /* "PATH=VALUE ..." */
};

/* Every host looks after 200 us for an answer, every device after 100. */
#define TIMEOUT(HOST, DEVICE)                                                \
    " hosts." HOST ".root_complex.completion_timeout_us=200 devices." DEVICE \
    ".completion_timeout_us=100"

static const struct use nvme = {
    "local",
    "programs.p.type=fio programs.p.device=ssd"
    " programs.p.job_options=direct=1;continue_on_error=all;iodepth=4;ioengine=libaio;rw=randrw;bs=4k;"
    "size=1m;time_based=1;runtime=12ms;filename=ssd"
    " programs.p.filenames=ssd=ssd lending.borrower.nvme_timeout_ms=3.0"
    " measure.warmup_us=1500 programs.f.device=ssd" TIMEOUT("borrower", "ssd")
};
static const struct use spdk = {
    "local",
    "programs.p.type=fio programs.p.device=ssd programs.p.engine=spdk programs.p.queue_depth=4"
    " programs.p.read_ratio=0.5 programs.p.span_bytes=1048576 lending.borrower.nvme_driver=false"
    " measure.warmup_us=1500 measure.duration_us=500 programs.f.device=ssd" TIMEOUT("borrower",
                                                                                    "ssd")
};
static const struct use shared = {
    "dnvme", "programs.p.read_ratio=0.5 measure.duration_us=30000 programs.f.device=ssd" TIMEOUT(
                 "lender", "ssd")
};
static const struct use fabrics = {
    "nvmeof", "measure.duration_us=500 programs.f.device=ssd" TIMEOUT("server", "ssd")
};
/* Their drivers look every 5 ms for what is stuck. */
#define WATCHDOG " network.server.watchdog_ms=5.0 network.client.watchdog_ms=5.0"
/* All of the client's queues: which TLP is hit depends on timing. */
static const struct use nic = {
    "net",
    "network.client.channels=0 measure.duration_us=1000 programs.f.device=nic" WATCHDOG TIMEOUT(
        "server", "nic")
};
static const struct use myri = {
    "myri", "measure.duration_us=1000 programs.f.device=nic" WATCHDOG TIMEOUT("server", "nic")
};
static const struct use openmx = {
    "openmx",
    "measure.duration_us=30000 programs.f.after_us=10 programs.f.device=nic" WATCHDOG TIMEOUT(
        "server", "nic")
};
static const struct use rdma = {
    "rdma",
    "measure.duration_us=2000 programs.p.iterations=1000 programs.f.after_us=0 programs.f.device=r0" TIMEOUT(
        "server", "r0")
};
static const struct use ioat = {
    "copy_engine", "measure.duration_us=1000 programs.p.message_bytes=4096 programs.f.after_us=20"
                   " programs.f.device=engine" TIMEOUT("borrower", "engine")
};
static const struct use dsa = {
    "dsa", "measure.duration_us=1000 programs.p.message_bytes=4096 programs.f.after_us=20"
           " programs.f.device=engine" TIMEOUT("borrower", "engine")
};
static const struct use gpu = {
    "lend",
    "programs.p.type=bandwidth_test programs.p.transfer_bytes=65536 measure.duration_us=20000"
    " programs.f.after_us=60 programs.f.device=gpu0" TIMEOUT("lender", "gpu0")
};
/* Two of them, which know each other's memory, and go one after the other with their lender. */
static const struct use gpus = {
    "lend", "programs.p.type=ping_pong programs.p.iterations=1000 measure.duration_us=10000000"
            " programs.f.after_us=20 programs.f.device=n1"
};
static const struct use requester = {
    "lend",
    "programs.p.device=nfp measure.duration_us=500 programs.f.after_us=10 programs.f.device=nfp" TIMEOUT(
        "lender", "nfp")
};

/* The lender's bridge, through which an adapter works for the borrower. */
static const struct use bridge = {
    "lend",
    "programs.p.device=nfp measure.duration_us=500 programs.f.after_us=10 programs.f.device=n1"
};
/* The same bridge, while devices are borrowed and returned. */
static const struct use borrowing = { "lend",
                                      "programs.p.type=borrow_limit lending.borrower.borrow=[] "
                                      "measure.duration_us=10000000 programs.f.after_us=0 "
                                      "programs.f.device=n1" };
/* The cable of the host that sets up a multicast group in the switch. */
static const struct use multicast = {
    "lend", "programs.p.type=nvme_multicast programs.p.device=ssd measure.duration_us=10000000"
            " lending.borrower.borrow=[\"gpu0\",\"gpu1\",\"nfp\"] programs.f.after_us=20"
            " programs.f.device=n0"
};

/* ---- Runs ------------------------------------------------------------------------------------ */

static void set_all(struct config *config, const char *text, struct sim_error_list *errors)
{
    g_auto(GStrv) parts = g_strsplit(text, " ", 0);
    for (char **part = parts; *part != NULL; part++) {
        char *equals = strchr(*part, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        g_strdelimit(equals + 1, ";", ' ');
        config_set(config, *part, equals + 1, "test", errors);
    }
}

/* NULL, or what the run failed with; g_free(). */
static char *run(const struct use *use, const char *fault, struct run_result *result)
{
    static const char *const folders[] = { "scenarios", NULL };
    struct sim_error_list errors = { 0 };
    struct experiment_outcome ended;
    g_autofree char *path = g_strdup_printf(FOLDER "%s.cfg", use->base);
    struct config *config = config_load_searching(path, folders, &errors);
    char *error = NULL;

    fixture_fail(&errors);
    set_all(config, use->options, &errors);
    set_all(config, fault, &errors);
    fixture_fail(&errors);
    experiment_run(config, 1, result, &ended, NULL, &error);
    sim_error_release(&errors);
    config_free(config);
    return error;
}

/* What becomes of a run. */
struct row {
    const char *fault; /* "PATH=VALUE ..." */
    /* It fails with a message that contains this, or one of two texts with | between (which TLP is
     * hit depends on timing: one with data, or with a command); NULL: it does not fail. */
    const char *error;
    double goes_on; /* throughput afterwards, at least so much of that before; 0: it may be none */
    const char *metric;
    double min, max; /* of the metric */
};

/* What hosts hold when a run fails goes with its process. */
static char *run_row(const struct use *use, const struct row *row, struct run_result *result)
{
#ifdef __SANITIZE_ADDRESS__
    if (row->error != NULL)
        __lsan_disable();
#endif
    g_autofree char *fault = g_strdup_printf("programs.f.type=fault %s", row->fault);
    char *error = run(use, fault, result);
#ifdef __SANITIZE_ADDRESS__
    if (row->error != NULL)
        __lsan_enable();
#endif
    return error;
}

static bool says(const char *error, const char *texts)
{
    g_auto(GStrv) text = g_strsplit(texts, "|", 0);
    for (char **one = text; *one != NULL; one++)
        if (strstr(error, *one) != NULL)
            return true;
    return false;
}

static void check(const struct use *use, const struct row *rows, unsigned n)
{
    for (unsigned i = 0; i < n; i += scenario_stride(3)) {
        const struct row *row = &rows[i];
        struct run_result *result = run_result_new();
        g_autofree char *error = run_row(use, row, result);
        if ((error != NULL) != (row->error != NULL) || (error != NULL && !says(error, row->error)))
            fail_msg("%s, %s: \"%s\" instead of \"%s\"", use->base, row->fault,
                     error != NULL ? error : "no failure",
                     row->error != NULL ? row->error : "no failure");
        if (error == NULL) {
            const double before = scenario_value(result, "f.throughput_before_gbit_s");
            const double after = scenario_value(result, "f.throughput_after_gbit_s");
            if (scenario_value(result, "f.faults") < 1 || after < row->goes_on * before ||
                (row->goes_on > 0 && before <= 0))
                fail_msg("%s, %s: %g faults, %g Gb/s before, %g Gb/s after", use->base, row->fault,
                         scenario_value(result, "f.faults"), before, after);
        }
        if (error == NULL && row->metric != NULL) {
            const double value = scenario_value(result, row->metric);
            if (value < row->min || value > row->max)
                fail_msg("%s, %s: %s is %g, not %g to %g", use->base, row->fault, row->metric,
                         value, row->min, row->max);
        }
        run_result_free(result);
    }
}

#define CHECK(USE, ROWS) check(USE, ROWS, SIM_N_ELEMENTS(ROWS))
#define LOSS             "programs.f.event=loss programs.f.tlps="
#define POISON           "programs.f.event=poison programs.f.tlps="
#define LOST             "programs.f.event=loss programs.f.tlps=interrupts"
#define STRAY            "programs.f.event=stray programs.f.tlps="
#define SPURIOUS         "programs.f.event=spurious programs.f.times=20"
#define SILENCE          "programs.f.event=silence"
#define LINK_DOWN        "programs.f.event=link_down"
#define WIRE_DOWN        "programs.f.event=wire_down programs.f.out_us="

/* Time-outs, a reset, errors to whoever asked; a lost interrupt costs nothing while others come. */
static void test_nvme(void **state)
{
    static const struct row rows[] = {
        { LOSS "reads", NULL, 0.3, "failed_requests", 1, 100 },
        { LOSS "data", NULL, 0.3, "failed_requests", 1, 100 },
        { POISON "data", NULL, 0.3, "failed_requests", 1, 100 },
        { STRAY "reads", NULL, 0.3, "failed_requests", 1, 100 },
        { STRAY "reads hosts.borrower.iommu.enabled=true", NULL, 0.3, "failed_requests", 1, 100 },
        { LOSS "writes programs.f.every=50 programs.f.times=20", "was written", 0, NULL, 0, 0 },
        { POISON "writes programs.f.every=50 programs.f.times=20", "was written", 0, NULL, 0, 0 },
        { LOSS "interrupts", NULL, 0.9, "failed_requests", 0, 0 },
        { LOSS "registers", NULL, 0.9, "failed_requests", 0, 0 },
        { SPURIOUS, NULL, 0.9, "failed_requests", 0, 0 },
        { SILENCE, NULL, 0, "failed_requests", 100, 1e9 },
        { LINK_DOWN, NULL, 0, "failed_requests", 100, 1e9 },
    };
    (void)state;
    CHECK(&nvme, rows);
}

/* Polls, without a time-out of its own. */
static void test_spdk(void **state)
{
    static const struct row rows[] = {
        { LOSS "data", "Input/output error|ssd does not answer", 0, NULL, 0, 0 },
        { POISON "data", "Input/output error|ssd does not answer", 0, NULL, 0, 0 },
        { LOSS "writes programs.f.every=50 programs.f.times=20", "was written", 0, NULL, 0, 0 },
        { LOSS "registers", NULL, 0.9, "failed_requests", 0, 0 },
        { SPURIOUS, NULL, 0.9, "failed_requests", 0, 0 },
        { SILENCE, "and no request of it has ended: ssd does not answer", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&spdk, rows);
}

/* Queues of a controller that does not come back cannot be given back. */
static void test_shared(void **state)
{
    static const struct row rows[] = {
        { LOSS "data", "after everything was returned|Input/output error", 0, NULL, 0, 0 },
        { LOSS "registers", NULL, 0.8, NULL, 0, 0 },
        { SPURIOUS, NULL, 0.8, NULL, 0, 0 },
        { SILENCE, "after everything was returned", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&shared, rows);
}

/* Not every third: those that poll for a second in vain (check()). */
static void test_fabrics(void **state)
{
    static const struct row rows[] = {
        { LOSS "data", "Input/output error|ssd does not answer", 0, NULL, 0, 0 },
        { LOSS "writes programs.f.every=50 programs.f.times=20", "was written|does not answer", 0,
          NULL, 0, 0 },
        { LINK_DOWN, "ssd does not answer", 0, NULL, 0, 0 },
        { LOSS "registers", NULL, 0.8, "failed_requests", 0, 0 },
        { POISON "writes programs.f.every=50 programs.f.times=20", "was written|does not answer", 0,
          NULL, 0, 0 },
        { POISON "data", "Input/output error|ssd does not answer", 0, NULL, 0, 0 },
        { SPURIOUS, NULL, 0.8, "failed_requests", 0, 0 },
    };
    (void)state;
    CHECK(&fabrics, rows);
}

/* A send queue that has failed is made anew; TCP's retransmission time-out goes by until it sends
 * again. */
#define AFTER_RTO " measure.duration_us=208000"
static void test_nic(void **state)
{
    static const struct row rows[] = {
        { LOSS "registers", NULL, 0.9, NULL, 0, 0 },
        { SPURIOUS, NULL, 0.9, NULL, 0, 0 },
        { SILENCE, NULL, 0, NULL, 0, 0 },
        { LINK_DOWN, NULL, 0, NULL, 0, 0 },
        { LOSS "data" AFTER_RTO, NULL, 0.01, "f.outage_us", 100000, 205000 },
        { POISON "data" AFTER_RTO, NULL, 0.01, "f.outage_us", 100000, 205000 },
        { STRAY "reads" AFTER_RTO, NULL, 0.01, "f.outage_us", 100000, 205000 },
        { STRAY "reads hosts.server.iommu.enabled=true" AFTER_RTO, NULL, 0.01, "f.outage_us",
          100000, 205000 },
        { WIRE_DOWN "50" AFTER_RTO, NULL, 0.01, "f.outage_us", 100000, 205000 },
        /* a receive queue, mostly */
        { STRAY "reads programs.f.after_us=107" AFTER_RTO, NULL, 0.01, "f.outage_us", 100000,
          205000 },
        /* The sender's time-out sends a packet, whose completion the watchdog misses; the receiver,
         * which sends nothing, waits. */
        { LOST " programs.f.device=client_nic measure.duration_us=215000", NULL, 0.01,
          "f.outage_us", 100000, 205000 },
        { LOST, NULL, 0, "p.throughput_gbit_s", 0.1, 2 },
    };
    (void)state;
    CHECK(&nic, rows);
}

static void test_myri(void **state)
{
    static const struct row rows[] = {
        { LOSS "data", NULL, 0.9, NULL, 0, 0 },
        { POISON "data", NULL, 0.9, NULL, 0, 0 },
        { STRAY "reads", NULL, 0.9, NULL, 0, 0 },
        { STRAY "reads hosts.server.iommu.enabled=true", NULL, 0.9, NULL, 0, 0 },
        { LOSS "writes programs.f.every=50 programs.f.times=20", "of the stream instead of", 0,
          NULL, 0, 0 },
        { SPURIOUS, NULL, 0.9, NULL, 0, 0 },
        { SILENCE, NULL, 0, NULL, 0, 0 },
        { LINK_DOWN, NULL, 0, NULL, 0, 0 },
        /* Packets under way are stuck: the interface is made anew, and TCP sends again. */
        { LOST " measure.duration_us=250000", NULL, 0.001, "f.outage_us", 100000, 205000 },
        { LOST " programs.f.device=client_nic measure.duration_us=230000", NULL, 0.001,
          "f.outage_us", 100000, 205000 },
    };
    (void)state;
    CHECK(&myri, rows);
}

static void test_openmx(void **state)
{
    static const struct row rows[] = {
        { SPURIOUS, NULL, 0, NULL, 0, 0 },
        { SILENCE, "not ended within", 0, NULL, 0, 0 },
        /* A message is sent again after half a second, and nobody has heard of that when the
         * watchdog looks. */
        { LOST " measure.duration_us=2000000", NULL, 0, "f.outage_us", 400000, 600000 },
    };
    (void)state;
    CHECK(&openmx, rows);
}

static void test_rdma(void **state)
{
    static const struct row rows[] = {
        { SPURIOUS, NULL, 0, NULL, 0, 0 },
        { LOSS "data", "not ended within", 0, NULL, 0, 0 },
        { LOSS "writes", "not ended within", 0, NULL, 0, 0 },
        { SILENCE, "not ended within", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&rdma, rows);
}

/* The copy ends with an error; one that does not come back is aborted after the driver's
 * time-out. */
static void test_ioat(void **state)
{
    static const struct row rows[] = {
        { LOSS "reads", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { LOSS "data", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { POISON "data", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { STRAY "reads", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { STRAY "reads hosts.borrower.iommu.enabled=true", "Input/output error|Operation canceled",
          0, NULL, 0, 0 },
        { LOSS "writes programs.f.every=50 programs.f.times=20", "wrong bytes at the destination",
          0, NULL, 0, 0 },
        { LOSS "registers", "Operation canceled", 0, NULL, 0, 0 },
        { SPURIOUS, NULL, 0.9, NULL, 0, 0 },
        { SILENCE, "Operation canceled", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&ioat, rows);
}

static void test_dsa(void **state)
{
    static const struct row rows[] = {
        { LOSS "reads", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { LOSS "data", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { POISON "data", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { STRAY "reads", "Input/output error|Operation canceled", 0, NULL, 0, 0 },
        { STRAY "reads hosts.borrower.iommu.enabled=true", "Input/output error|Operation canceled",
          0, NULL, 0, 0 },
        { LOSS "writes programs.f.every=50 programs.f.times=20", "wrong bytes at the destination",
          0, NULL, 0, 0 },
        { LOSS "registers", "Operation canceled", 0, NULL, 0, 0 },
        { SPURIOUS, NULL, 0.9, NULL, 0, 0 },
        { SILENCE, "Operation canceled", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&dsa, rows);
}

static void test_gpu(void **state)
{
    static const struct row rows[] = {
        { LOSS "reads", "Input/output error", 0, NULL, 0, 0 },
        { POISON "data", "Input/output error", 0, NULL, 0, 0 },
        { STRAY "reads", "Input/output error", 0, NULL, 0, 0 },
        { LOSS "registers", "not ended within", 0, NULL, 0, 0 },
        { SPURIOUS, NULL, 0.9, NULL, 0, 0 },
        { SILENCE, "not ended within", 0, NULL, 0, 0 },
    };
    static const struct row both[] = {
        { LINK_DOWN " programs.f.out_us=100", "No such device", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&gpu, rows);
    CHECK(&gpus, both);
}

static void test_requester(void **state)
{
    static const struct row rows[] = {
        { STRAY "writes", NULL, 0.9, "lender.s0.root_complex.iommu_blocked", 1, 1 },
        { SPURIOUS, NULL, 0.9, NULL, 0, 0 },
        { SILENCE, "ended with status 5", 0, NULL, 0, 0 },
        { LINK_DOWN, "ended with status 5", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&requester, rows);
}

/* Doorbells that nobody has rung, a change of a link that has not changed. */
static void test_bridge(void **state)
{
    static const struct row rows[] = {
        { SPURIOUS " programs.f.vector=0", NULL, 0.9, NULL, 0, 0 },
        { SPURIOUS " programs.f.vector=1", NULL, 0.9, NULL, 0, 0 },
        { SPURIOUS " programs.f.vector=2", NULL, 0.9, NULL, 0, 0 },
        { SPURIOUS " programs.f.vector=32", NULL, 0.9, NULL, 0, 0 },
    };
    /* A request's: it is found with a heartbeat. */
    static const struct row lost[] = {
        { LOST, NULL, 0, NULL, 0, 0 },
        { LOST " programs.f.every=3 programs.f.times=4", NULL, 0, NULL, 0, 0 },
    };
    static const struct row silent[] = {
        { LINK_DOWN " programs.f.out_us=1", "switch 3 does not answer|was lost", 0, NULL, 0, 0 },
    };
    (void)state;
    CHECK(&bridge, rows);
    CHECK(&borrowing, lost);
    CHECK(&multicast, silent);
}

/* Links with bit errors send again: every byte arrives, a little later. */
static void test_bit_errors(void **state)
{
    static const struct {
        const struct use *use;
        const char *cable, *device, *ratio;
    } links[] = {
        { &nvme, "2", "ssd", "2e-6" },      { &spdk, "2", "ssd", "2e-6" },
        { &shared, "8", "ssd", "2e-6" },    { &fabrics, "3", "ssd", "2e-6" },
        { &fabrics, "0", "r0", "2e-6" },    { &nic, "0", "nic", "2e-6" },
        { &myri, "0", "nic", "2e-6" },      { &openmx, "0", "nic", "1e-4" },
        { &rdma, "0", "r0", "2e-5" },       { &gpu, "5", "gpu0", "2e-6" },
        { &requester, "8", "nfp", "2e-6" },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(links); i += scenario_stride(3)) {
        g_autofree char *fault =
            g_strdup_printf("programs.f.event=spurious cables.[%s].bit_error_ratio=%s",
                            links[i].cable, links[i].ratio);
        g_autofree char *metric = g_strdup_printf("%s.p0.tx.replays", links[i].device);
        const struct row row = { fault, NULL, 0, metric, 1, 1e9 };
        check(links[i].use, &row, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nvme),   cmocka_unit_test(test_spdk),
        cmocka_unit_test(test_shared), cmocka_unit_test(test_fabrics),
        cmocka_unit_test(test_nic),    cmocka_unit_test(test_myri),
        cmocka_unit_test(test_openmx), cmocka_unit_test(test_rdma),
        cmocka_unit_test(test_ioat),   cmocka_unit_test(test_dsa),
        cmocka_unit_test(test_gpu),    cmocka_unit_test(test_requester),
        cmocka_unit_test(test_bridge), cmocka_unit_test(test_bit_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
