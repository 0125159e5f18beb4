/*
 * The DMA engine of both versions and its driver in a simulated host: bytes of any size and
 * alignment at their destination, rings that wrap, polling and interrupts, fences, errors that are
 * reported and passed, abort in mid chain, removal and function-level reset under load; nothing is
 * left behind.
 */
#include "tests/support/ioat_rig.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/base/payload.h"

#define KIB 1024u
#define MIB (KIB * KIB)

static const char *const versions[] = { "cb1.2", "cb3.2" };

static void run(bool iommu, unsigned ring, void (*body)(struct ioat_rig *), const char *settings)
{
    for (unsigned v = 0; v < 2; v++) {
        const struct ioat_rig_world world = { .version = versions[v],
                                              .settings = settings,
                                              .iommu = iommu,
                                              .driver = true,
                                              .ring = ring };
        ioat_rig_run(&world, body, NULL);
    }
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void alignments_body(struct ioat_rig *r)
{
    static const uint32_t sizes[] = { 1, 7, 8, 63, 64, 65, 100, 129, 4096 };
    static const uint32_t places[] = { 0, 1, 8, 33, 63 };
    struct dma_channel *c = dma_channel_request(r->core, "ioat0", DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 8 * KIB), to = dma_buffer_new(r->pci, 8 * KIB);
    unsigned seed = 1;
    for (unsigned s = 0; s < SIM_N_ELEMENTS(sizes); s++)
        for (unsigned i = 0; i < SIM_N_ELEMENTS(places); i++)
            for (unsigned j = 0; j < SIM_N_ELEMENTS(places); j++) {
                const uint32_t bytes = sizes[s], at = places[i], there = 64 + places[j];
                ioat_rig_fill(r, from.at, 8 * KIB, ++seed);
                ioat_rig_fill(r, to.at, 8 * KIB, ++seed);
                dma_rig_copy_now(c, to.dma + there, from.dma + at, bytes);
                assert_true(ioat_rig_holds(r, to.at, there, seed, 0));
                assert_true(ioat_rig_holds(r, kaddr_add(to.at, there), bytes, seed - 1, at));
                assert_true(
                    ioat_rig_holds(r, kaddr_add(to.at, there + bytes), 64, seed, there + bytes));
            }
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

static void test_bytes_of_any_alignment(void **state)
{
    (void)state;
    run(false, 0, alignments_body, NULL);
    run(true, 0, alignments_body, "reads_in_flight = 2;");
}

/* Payload as marks: it reaches other places in its lines, in pieces, and can still be told. */
static void marks_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 16 * KIB),
                      to = dma_buffer_new(r->pci, 16 * KIB);
    uint64_t rng = 88172645463325252u;
    for (unsigned i = 0; i < 120; i++) {
        struct payload_difference difference;
        rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
        const uint64_t at = rng % 200, there = rng / 200 % 200, bytes = 9 + rng / 40000 % 5000;
        const uint64_t mark = payload_mark(3, 4096 * (uint64_t)i);
        payload_fill(r->kernel, kaddr_add(from.at, at > 40 ? at - 40 : 0), mark, bytes + 100);
        for (uint64_t done = 0; done < bytes;) {
            const uint64_t n = SIM_MIN(bytes - done, 8 + rng % 1000);
            dma_rig_copy_now(c, to.dma + there + done, from.dma + at + done, n);
            done += n;
        }
        assert_true(payload_check(r->kernel, kaddr_add(to.at, there),
                                  payload_mark_add(mark, at > 40 ? 40 : at), bytes, &difference));
    }
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

static void test_payload_as_marks(void **state)
{
    (void)state;
    run(false, 0, marks_body, NULL);
}

/* ---- Rings ----------------------------------------------------------------------------------- */

/* Many times round a small ring; full at times. */
static void wrap_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, "ioat", DMA_EXCLUSIVE);
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 64 * KIB);
    struct dma_tally tally = { 0 };
    unsigned n_busy = 0;
    ioat_rig_fill(r, from.at, 64 * KIB, 5);
    assert_int_equal(dma_channel_limits(c)->ring, 8);
    for (unsigned i = 0; i < 256; i++) {
        const uint64_t at = i % 256 * 256;
        while (dma_rig_copy(c, to.dma + at, from.dma + at, 256, 0, &tally) == 0) {
            n_busy++;
            dma_issue_pending(c);
            k_compute(r->kernel, 500);
        }
        if (i % 3 == 0)
            dma_issue_pending(c);
    }
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, 256, DMA_POLL, UINT64_MAX), 0);
    assert_int_equal(tally.n_complete, 256);
    assert_true(n_busy > 0);
    assert_int_equal(dma_channel_pending(c), 0);
    assert_int_equal(dma_channel_room(c), 7);
    assert_true(ioat_rig_holds(r, to.at, 64 * KIB, 5, 0));
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

static void test_rings_wrap(void **state)
{
    (void)state;
    run(true, 8, wrap_body, NULL);
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static void sleep_body(struct ioat_rig *r)
{
    struct dma_channel *c[2];
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 128 * KIB);
    struct ioat_engine *engine = ioat_rig_engine(r);
    dma_cookie last[2];
    ioat_rig_fill(r, from.at, 64 * KIB, 6);
    assert_int_equal(dma_channels_request(r->core, "ioat", DMA_SHARED, 2, c), 0);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 2; i++)
            for (unsigned p = 0; p < 16; p++)
                last[i] = dma_rig_copy(c[i], to.dma + i * 64 * KIB + p * 4096, from.dma + p * 4096,
                                       4096, DMA_INTERRUPT, NULL);
        dma_issue_pending(c[0]);
        dma_issue_pending(c[1]);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(dma_wait(c[i], last[i], DMA_SLEEP, UINT64_MAX), 0);
        assert_true(ioat_rig_holds(r, to.at, 64 * KIB, 6, 0));
        assert_true(ioat_rig_holds(r, kaddr_add(to.at, 64 * KIB), 64 * KIB, 6, 0));
    }
    /* Not one for each copy: those that end before software has looked share one. */
    assert_true(engine->func[0].function.stats.interrupts >= 4);
    assert_true(engine->func[0].function.stats.interrupts < 4 * 2 * 16);
    /* A wait that is over before the copy. */
    last[0] = dma_rig_copy(c[0], to.dma, from.dma, 64 * KIB, DMA_INTERRUPT, NULL);
    dma_issue_pending(c[0]);
    assert_int_equal(dma_wait(c[0], last[0], DMA_SLEEP, k_now_ps(r->kernel) + 2 * K_US),
                     -ETIMEDOUT);
    assert_int_equal(dma_wait(c[0], last[0], DMA_SLEEP, UINT64_MAX), 0);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c[0]);
    dma_channel_release(c[1]);
}

static void test_interrupts_wake(void **state)
{
    (void)state;
    run(false, 64, sleep_body, NULL);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Each copy reads what the one before it has written. */
static void fence_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer b = dma_buffer_new(r->pci, 64 * KIB);
    dma_cookie last = 0;
    ioat_rig_fill(r, b.at, 64 * KIB, 9);
    for (unsigned i = 0; i < 15; i++)
        last = dma_rig_copy(c, b.dma + (i + 1) * 4096 + 5 * i,
                            b.dma + i * 4096 + (i > 0 ? 5 * (i - 1) : 0), 3000, DMA_FENCE, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, last, DMA_POLL, UINT64_MAX), 0);
    assert_true(ioat_rig_holds(r, kaddr_add(b.at, 15 * 4096 + 5 * 14), 3000, 9, 0));
    assert_int_equal(ioat_rig_engine(r)->stats.fences, 15);
    dma_buffer_free(r->pci, &b);
    dma_channel_release(c);
}

static void test_fences_order(void **state)
{
    (void)state;
    run(false, 0, fence_body, NULL);
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* A copy leaves no line of both buffers in the private caches of CPUs, unless it is steered to one:
 * then that one has the destination. */
static void caches_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 4 * KIB), to = dma_buffer_new(r->pci, 4 * KIB);
    const struct numa *numa = host_numa(r->w.host);
    const bool *steered = r->arg;
    ioat_rig_fill(r, from.at, 4 * KIB, 2);
    k_touch(r->kernel, to.at, 4 * KIB); /* CPU 0 has old copies, which are invalidated */
    assert_true(numa_private_hit(numa, 0, (struct hpa){ to.at.v }, false));
    dma_rig_copy_now(c, to.dma, from.dma, 4 * KIB);
    for (unsigned at = 0; at < 4 * KIB; at += 64)
        for (unsigned cpu = 0; cpu < 4; cpu++) {
            assert_false(numa_private_hit(numa, cpu, (struct hpa){ from.at.v + at }, false));
            assert_int_equal(numa_private_hit(numa, cpu, (struct hpa){ to.at.v + at }, false),
                             *steered && cpu == 2);
        }
    assert_true(ioat_rig_holds(r, to.at, 4 * KIB, 2, 0));
    assert_int_equal(ioat_rig_engine(r)->stats.steered, *steered ? 64 + 1 : 0);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

static void test_caches_are_not_filled_unless_asked(void **state)
{
    static bool steered[] = { false, false, true };
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct ioat_rig_world world = { .version = versions[i != 0],
                                              .driver = true,
                                              .dca = steered[i] };
        ioat_rig_run(&world, caches_body, &steered[i]);
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The third of five copies reads where nothing is: it alone fails, and what is behind it goes
 * on. */
static void error_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_SHARED);
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 64 * KIB);
    const uint64_t nowhere = (uint64_t)1 << 39;
    dma_cookie cookie[6];
    ioat_rig_fill(r, from.at, 64 * KIB, 3);
    for (unsigned i = 1; i <= 5; i++)
        cookie[i] = dma_rig_copy(c, to.dma + i * 8192, i == 3 ? nowhere : from.dma + i * 8192, 8192,
                                 i == 5 ? DMA_INTERRUPT : 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, cookie[5], DMA_SLEEP, UINT64_MAX), 0);
    for (unsigned i = 1; i <= 5; i++)
        assert_int_equal(dma_status(c, cookie[i]), i == 3 ? DMA_ERROR : DMA_COMPLETE);
    assert_int_equal(dma_wait(c, cookie[3], DMA_POLL, UINT64_MAX), -EIO);
    assert_true(ioat_rig_holds(r, kaddr_add(to.at, 8192), 16384, 3, 8192));
    assert_true(ioat_rig_holds(r, kaddr_add(to.at, 4 * 8192), 16384, 3, 4 * 8192));
    const struct dma_failure *failure = dma_channel_failure(c);
    assert_int_equal(failure->n, 1);
    assert_int_equal(failure->cookie, cookie[3]);
    assert_int_equal(failure->source, nowhere);
    assert_int_equal(failure->bytes, 8192);
    assert_true(failure->code & (IOAT_CHANERR_SOURCE | IOAT_CHANERR_READ_DATA));
    assert_non_null(failure->text);
    /* An address that the engine cannot form. */
    cookie[0] = dma_rig_copy(c, (uint64_t)1 << 50, from.dma, 64, 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, cookie[0], DMA_POLL, UINT64_MAX), -EIO);
    assert_int_equal(failure->code, IOAT_CHANERR_DESTINATION);
    assert_string_equal(failure->text, "destination address");
    dma_rig_copy_now(c, to.dma, from.dma, 8192);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

/* A channel that stops on errors, until its owner goes on. */
static void hold_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_EXCLUSIVE | DMA_HOLD_ERRORS);
    struct dma_buffer from = dma_buffer_new(r->pci, 64 * KIB),
                      to = dma_buffer_new(r->pci, 64 * KIB);
    struct dma_descriptor *d;
    ioat_rig_fill(r, from.at, 64 * KIB, 4);
    const dma_cookie bad = dma_rig_copy(c, (uint64_t)1 << 50, from.dma, 100, 0, NULL);
    const dma_cookie good = dma_rig_copy(c, to.dma, from.dma, 5000, 0, NULL);
    assert_int_equal(dma_resume(c), -EINVAL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, bad, DMA_POLL, UINT64_MAX), -EIO);
    assert_true(dma_channel_halted(c));
    assert_int_equal(dma_prepare_copy(c, to.dma, from.dma, 64, 0, &d), -EIO);
    assert_int_equal(dma_wait(c, good, DMA_POLL, UINT64_MAX), -EIO);
    assert_int_equal(dma_status(c, good), DMA_IN_PROGRESS);
    assert_int_equal(dma_resume(c), 0);
    assert_int_equal(dma_wait(c, good, DMA_POLL, UINT64_MAX), 0);
    assert_true(ioat_rig_holds(r, to.at, 5000, 4, 0));
    /* The other way out. */
    dma_rig_copy(c, (uint64_t)1 << 50, from.dma, 100, 0, NULL);
    const dma_cookie lost = dma_rig_copy(c, to.dma, from.dma, 5000, 0, NULL);
    dma_issue_pending(c);
    assert_int_equal(dma_wait(c, lost, DMA_POLL, UINT64_MAX), -EIO);
    dma_terminate(c);
    assert_int_equal(dma_wait(c, lost, DMA_POLL, UINT64_MAX), -ECANCELED);
    assert_false(dma_channel_halted(c));
    dma_rig_copy_now(c, to.dma, from.dma, 64);
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

static void test_errors_are_reported_and_passed(void **state)
{
    (void)state;
    run(true, 0, error_body, NULL);
    run(false, 0, error_body, NULL);
    run(false, 0, hold_body, NULL);
}

/* ---- Abort ----------------------------------------------------------------------------------- */

static void abort_body(struct ioat_rig *r)
{
    struct dma_channel *c = dma_channel_request(r->core, NULL, DMA_EXCLUSIVE);
    struct dma_buffer from = dma_buffer_new(r->pci, 1 * MIB), to = dma_buffer_new(r->pci, 1 * MIB);
    struct dma_tally tally = { 0 };
    ioat_rig_fill(r, from.at, 1 * MIB, 8);
    for (unsigned round = 0; round < 6; round++) {
        const unsigned before = tally.n_complete;
        const dma_cookie last = tally.last + 20;
        for (unsigned i = 0; i < 20; i++)
            assert_int_not_equal(
                dma_rig_copy(c, to.dma + i * 4096, from.dma + i * 4096, 4096, 0, &tally), 0);
        dma_issue_pending(c);
        k_compute(r->kernel, 2000 * round); /* at 2 GHz, a microsecond per 2000 */
        dma_terminate(c);
        assert_int_equal(tally.last, last); /* none is lost */
        /* What was aborted does not happen any more. */
        ioat_rig_fill(r, to.at, 20 * 4096, 77);
        k_sleep(r->kernel, 100 * K_US);
        assert_true(ioat_rig_holds(r, to.at, 20 * 4096, 77, 0));
        assert_true(round == 0 || tally.n_complete - before <= 20);
    }
    assert_true(tally.n_aborted > 20);
    assert_true(tally.n_complete > 0);
    dma_rig_copy_now(c, to.dma, from.dma, 1 * MIB);
    assert_true(ioat_rig_holds(r, to.at, 1 * MIB, 8, 0));
    dma_buffer_free(r->pci, &from);
    dma_buffer_free(r->pci, &to);
    dma_channel_release(c);
}

static void test_abort_in_mid_chain(void **state)
{
    (void)state;
    run(false, 0, abort_body, NULL);
}

/* ---- Removal, reset -------------------------------------------------------------------------- */

/* Whoever sleeps has the test's argument. */
static struct dma_victim victim_of(struct ioat_rig *r)
{
    return (struct dma_victim){ .kernel = r->kernel,
                                .core = r->core,
                                .pci = r->pci,
                                .engine = "ioat0",
                                .n_copies = 16,
                                .copy_bytes = 64 * KIB,
                                .sleeps = r->arg != NULL };
}

static void removal_body(struct ioat_rig *r)
{
    struct dma_victim v = victim_of(r);
    struct dma_descriptor *d;
    const struct ioat_engine *engine = ioat_rig_engine(r);
    dma_victim_begin(&v);
    dma_buffer_free(r->pci, &v.from); /* the kernel forgets the mappings of what it removes */
    dma_buffer_free(r->pci, &v.to);
    pcie_function_remove(engine->model, 0);
    for (unsigned n = 0; n < r->n_functions; n++)
        k_pci_remove(os_pci_find(r->kernel, (uint16_t)(engine->func[n].function.cfg.id)), true);
    dma_victim_end(&v);
    assert_null(dma_channel_device(v.channel));
    assert_int_equal(dma_prepare_copy(v.channel, 0, 4096, 64, 0, &d), -ENODEV);
    assert_int_equal(dma_resume(v.channel), -ENODEV);
    assert_int_equal(dma_channel_room(v.channel), 0);
    assert_null(dma_channel_request(r->core, NULL, DMA_SHARED));
    dma_channel_release(v.channel);
}

/* Orderly removal, and the function comes back to another probe. */
static void unbind_body(struct ioat_rig *r)
{
    struct dma_victim v = victim_of(r);
    dma_victim_begin(&v);
    struct k_pci_dev *pci = r->pci;
    k_pci_remove(pci, false);
    dma_victim_end(&v);
    dma_channel_release(v.channel);
}

/* Somebody resets the function under the driver, which notices that nothing comes back. */
static void reset_body(struct ioat_rig *r)
{
    struct dma_victim v = victim_of(r);
    if (!ioat_rig_engine(r)->func[0].function.desc.function_reset)
        return; /* version 1.2 has none */
    dma_victim_begin(&v);
    const unsigned cap = k_pci_find_capability(r->pci, PCI_CAP_ID_PCIE, NULL);
    k_config_write(r->pci, cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_FLR);
    dma_victim_end(&v);
    assert_int_equal(ioat_rig_engine(r)->func[0].function.stats.resets, 1);
    ioat_rig_fill(r, v.from.at, 64 * KIB, 12);
    const dma_cookie cookie = dma_rig_copy(v.channel, v.to.dma, v.from.dma, 64 * KIB, DMA_INTERRUPT,
                                           NULL);
    dma_issue_pending(v.channel);
    assert_int_equal(dma_wait(v.channel, cookie, DMA_SLEEP, k_now_ps(r->kernel) + 300 * K_US), 0);
    assert_true(ioat_rig_holds(r, v.to.at, 64 * KIB, 12, 0));
    dma_buffer_free(r->pci, &v.from);
    dma_buffer_free(r->pci, &v.to);
    dma_channel_release(v.channel);
}

static void run_sleeping(void (*body)(struct ioat_rig *), bool sleeping)
{
    for (unsigned v = 0; v < 2; v++) {
        const struct ioat_rig_world world = { .version = versions[v], .driver = true };
        ioat_rig_run(&world, body, sleeping ? (void *)body : NULL);
    }
}

static void test_removal_ends_all(void **state)
{
    (void)state;
    run_sleeping(removal_body, false);
    run_sleeping(removal_body, true);
    run_sleeping(unbind_body, false);
    run_sleeping(unbind_body, true);
}

static void test_function_reset_ends_all(void **state)
{
    (void)state;
    run_sleeping(reset_body, false);
    run_sleeping(reset_body, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_any_alignment),
        cmocka_unit_test(test_payload_as_marks),
        cmocka_unit_test(test_rings_wrap),
        cmocka_unit_test(test_interrupts_wake),
        cmocka_unit_test(test_fences_order),
        cmocka_unit_test(test_caches_are_not_filled_unless_asked),
        cmocka_unit_test(test_errors_are_reported_and_passed),
        cmocka_unit_test(test_abort_in_mid_chain),
        cmocka_unit_test(test_removal_ends_all),
        cmocka_unit_test(test_function_reset_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
