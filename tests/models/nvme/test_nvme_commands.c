/*
 * I/O commands besides Read and Write, and scatter gather lists. Sections are those of NVM Express
 * 1.3; statuses those of 4.6.1.2.1 and 4.6.1.2.3.
 */
#include "models/base/payload.h"
#include "tests/models/nvme/nvme_rig.h"

static const char *const bytes_mode[] = { "payload", "bytes", NULL };

/* ---- Scatter gather lists (4.4) -------------------------------------------------------------- */

static struct nvme_sgl sgl(enum nvme_sgl_type type, uint64_t address, uint32_t bytes)
{
    return (struct nvme_sgl){ .address = address, .bytes = bytes, .type = (uint8_t)type };
}

static void put_sgl(struct rig *r, uint64_t at, const struct nvme_sgl *list, unsigned n)
{
    physmem_write(r->memory, (struct hpa){ at }, (const uint8_t *)list, n * sizeof(*list));
}

static struct nvme_sqe sgl_command(enum nvme_opcode opcode, uint32_t blocks, struct nvme_sgl first)
{
    struct nvme_sqe sqe = { .opcode = (uint8_t)opcode,
                            .flags = NVME_PSDT_SGL,
                            .nsid = 1,
                            .cdw10 = 40,
                            .cdw12 = blocks - 1 };
    memcpy(&sqe.prp1, &first, sizeof(first));
    return sqe;
}

/* Blocks of odd sizes at odd places, over a segment of two pages and a last one. */
static void test_sgl_segments(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, bytes_mode);
    enum { N = 400, BYTES = 16 * 4096 };
    struct nvme_sgl list[N];
    const uint64_t from = alloc(&r, 4 * BYTES), to = alloc(&r, 4 * BYTES);
    const uint64_t segment = alloc(&r, 8192) + 48, last = alloc(&r, 4096);
    uint64_t at = from + 5;
    uint32_t left = BYTES;
    fill(&r, from, 0, 4 * BYTES);
    for (unsigned i = 0; i < N; i++) {
        uint32_t n = i < N - 1 ? SIM_MIN(left, 1 + i * 7 % 311) : left;
        list[i] = sgl(NVME_SGL_DATA, at, n); /* also of no bytes */
        at += n + 3;
        left -= n;
    }
    struct nvme_sgl end = list[300];
    list[300] = sgl(NVME_SGL_LAST_SEGMENT, last, (N - 300) * 16);
    put_sgl(&r, segment, list, 301);
    list[300] = end;
    put_sgl(&r, last, list + 300, N - 300);
    struct nvme_sgl first = sgl(NVME_SGL_SEGMENT, segment, 301 * 16);
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_WRITE, BYTES / 512, first), NULL), 0);
    assert_true(nvme_stats(r.nvme)->sgl_segments >= 3);
    /* Back in one piece, at an odd place. */
    first = sgl(NVME_SGL_DATA, to + 7, BYTES);
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_READ, BYTES / 512, first), NULL), 0);
    uint64_t position = 5;
    at = to + 7;
    for (unsigned i = 0; i < N; i++) {
        expect(&r, at, position, list[i].bytes, false);
        at += list[i].bytes;
        position += list[i].bytes + 3;
    }
    close_rig(&r);
}

/* Bytes of a read that nobody wants; of a write they are none. */
static void test_sgl_bit_bucket(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, bytes_mode);
    const uint64_t from = alloc(&r, 8192), to = alloc(&r, 8192), segment = alloc(&r, 4096);
    fill(&r, from, 0, 4096);
    const struct nvme_sgl list[] = { sgl(NVME_SGL_DATA, from, 1000),
                                     sgl(NVME_SGL_BIT_BUCKET, 0, 500),
                                     sgl(NVME_SGL_DATA, from + 1000, 3096) };
    const struct nvme_sgl back[] = { sgl(NVME_SGL_DATA, to, 1000), sgl(NVME_SGL_BIT_BUCKET, 0, 500),
                                     sgl(NVME_SGL_DATA, to + 1500, 2596) };
    const struct nvme_sgl first = sgl(NVME_SGL_LAST_SEGMENT, segment, sizeof(list));
    put_sgl(&r, segment, list, 3);
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_WRITE, 8, first), NULL), 0);
    put_sgl(&r, segment, back, 3);
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_READ, 8, first), NULL), 0);
    expect(&r, to, 0, 1000, false);
    expect(&r, to + 1500, 1500, 2596, false);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ to + 1200 }), 0);
    /* All of it, without a word of data. */
    const struct nvme_sgl nothing = sgl(NVME_SGL_BIT_BUCKET, 0, 4096);
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_READ, 8, nothing), NULL), 0);
    close_rig(&r);
}

/* Segments that lead to each other without a byte are an error, not read for ever. */
static void test_sgl_ring(void **state)
{
    static const uint8_t empty[] = { NVME_SGL_DATA, NVME_SGL_BIT_BUCKET };
    struct rig r;
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(empty); i++) {
        open_rig(&r, bytes_mode);
        const uint64_t segment = alloc(&r, 4096);
        const struct nvme_sgl list[] = { sgl(empty[i], 0, 0), sgl(NVME_SGL_SEGMENT, segment, 32) };
        put_sgl(&r, segment, list, 2);
        assert_int_not_equal(
            command(&r, &r.io, sgl_command(NVME_READ, 8, sgl(NVME_SGL_SEGMENT, segment, 32)), NULL),
            NVME_SC_SUCCESS);
        assert_in_range(nvme_stats(r.nvme)->sgl_segments, 2, 4);
        close_rig(&r);
    }
}

/* Tags of lines go through descriptors as through PRP entries. */
static void test_sgl_tags(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    const uint64_t from = alloc(&r, 8192), to = alloc(&r, 8192), segment = alloc(&r, 4096);
    fill(&r, from + 64, 0, 4096);
    const struct nvme_sgl list[] = { sgl(NVME_SGL_DATA, from + 64, 1024),
                                     sgl(NVME_SGL_DATA, from + 64 + 1024, 3072) };
    put_sgl(&r, segment, list, 2);
    struct nvme_sgl first = sgl(NVME_SGL_LAST_SEGMENT, segment, sizeof(list));
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_WRITE, 8, first), NULL), 0);
    first = sgl(NVME_SGL_DATA, to, 8192); /* longer than the data: SGLS says that it may be */
    assert_int_equal(command(&r, &r.io, sgl_command(NVME_READ, 8, first), NULL), 0);
    expect(&r, to, 0, 4096, true);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ to + 4096 }), 0);
    close_rig(&r);
}

/* 4.4, 4.6.1.2.1: what is wrong with a list. */
static void test_sgl_errors(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, bytes_mode);
    const uint64_t at = alloc(&r, 8192), seg = alloc(&r, 4096);
    const struct nvme_sgl data = sgl(NVME_SGL_DATA, at, 512);
    const struct {
        struct nvme_sgl first, list[2];
        unsigned status;
    } wrong[] = {
        { sgl(NVME_SGL_DATA, at, 511), { data }, NVME_SC_SGL_LENGTH_INVALID },
        { sgl(NVME_SGL_KEYED, at, 512), { data }, NVME_SC_SGL_TYPE_INVALID },
        { sgl(NVME_SGL_VENDOR, at, 512), { data }, NVME_SC_SGL_TYPE_INVALID },
        { sgl((enum nvme_sgl_type)(NVME_SGL_DATA | 1), at, 512),
          { data },
          NVME_SC_SGL_TYPE_INVALID },
        { sgl(NVME_SGL_LAST_SEGMENT, seg, 0), { data }, NVME_SC_SGL_SEGMENT_INVALID },
        { sgl(NVME_SGL_SEGMENT, seg, 24), { data }, NVME_SC_SGL_SEGMENT_INVALID },
        { sgl(NVME_SGL_LAST_SEGMENT, seg, 16),
          { sgl(NVME_SGL_LAST_SEGMENT, seg, 16) },
          NVME_SC_SGL_SEGMENT_INVALID },
        { sgl(NVME_SGL_LAST_SEGMENT, seg, 16),
          { sgl(NVME_SGL_DATA, at, 100) },
          NVME_SC_SGL_LENGTH_INVALID },
        /* A segment that leads nowhere, one that leads away in its midst, one to itself. */
        { sgl(NVME_SGL_SEGMENT, seg, 16),
          { sgl(NVME_SGL_DATA, at, 100) },
          NVME_SC_SGL_COUNT_INVALID },
        { sgl(NVME_SGL_SEGMENT, seg, 32),
          { sgl(NVME_SGL_LAST_SEGMENT, seg, 16), data },
          NVME_SC_SGL_COUNT_INVALID },
        { sgl(NVME_SGL_SEGMENT, seg, 16),
          { sgl(NVME_SGL_SEGMENT, seg, 16) },
          NVME_SC_SGL_COUNT_INVALID },
        { sgl(NVME_SGL_SEGMENT, MEMORY_BYTES + 4096, 16), { data }, NVME_SC_DATA_TRANSFER_ERROR },
    };
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put_sgl(&r, seg, wrong[i].list, 2);
        unsigned found = command(&r, &r.io, sgl_command(NVME_WRITE, 1, wrong[i].first), NULL);
        if (found != wrong[i].status)
            fail_msg("list %u: status %#x, expected %#x", i, found, wrong[i].status);
    }
    close_rig(&r);
}

/* ---- Compare (6.6) --------------------------------------------------------------------------- */

static void compare(const char *payload)
{
    const char *const settings[] = { "payload", payload, NULL };
    struct rig r;
    open_rig(&r, settings);
    const uint64_t at = alloc(&r, 8192);
    fill(&r, at, 9, 8192);
    assert_int_equal(command(&r, &r.io, io_at(true, 3, 16, at, at + 4096), NULL), 0);
    struct nvme_sqe sqe = io_at(false, 3, 16, at, at + 4096);
    sqe.opcode = NVME_COMPARE;
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    uint8_t other = 1;
    physmem_write(r.memory, (struct hpa){ at + 8192 - 64 }, &other, 1);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_COMPARE_FAILURE);
    assert_true((r.status & NVME_STATUS_DNR) != 0);
    assert_int_equal(nvme_stats(r.nvme)->compares, 1);
    close_rig(&r);
}

static void test_compare(void **state)
{
    (void)state;
    compare("tag");
    compare("bytes");
}

/* A compare takes as long as reading the media, beside the host's data: formula of a read, without
 * the data's way back. */
static void test_compare_latency(void **state)
{
    const char *const settings[] = { "read_latency_ns", "20000", NULL };
    struct rig r;
    struct nvme_cqe cqe;
    (void)state;
    open_rig(&r, settings);
    struct nvme_sqe sqe = io_at(false, 0, 8, alloc(&r, 4096), 0);
    sqe.opcode = NVME_COMPARE;
    const sim_time start_ps = sim_now(r.sim);
    push(&r, &r.io, sqe);
    ring(&r, &r.io);
    run_for(&r, 40 * SIM_PS_PER_US);
    assert_true(poll(&r, &r.io, &cqe));
    assert_int_equal(cqe.status, NVME_CQE_PHASE);
    /* Doorbell, request, answer, completion; LINK_PS each, and what they take on the wire. */
    const sim_time wanted_ps = 4 * LINK_PS + DELAY_PS + pcie_port_wire_ps(&r.ports[0], 28) +
                               pcie_port_wire_ps(&r.ports[0], 20) +
                               pcie_port_wire_ps(&r.ports[0], 84) +
                               pcie_port_wire_ps(&r.ports[0], 36) + 20 * SIM_PS_PER_US;
    const sim_time took_ps = r.write_ps - start_ps;
    assert_in_range(took_ps, wanted_ps - 5 * SIM_PS_PER_NS, wanted_ps + 5 * SIM_PS_PER_NS);
    close_rig(&r);
}

/* ---- Write Zeroes (6.16), Dataset Management (6.7) ------------------------------------------- */

/* Blocks of 512 bytes within pages of the media. */
static void zeroes(const char *payload)
{
    const char *const settings[] = { "payload", payload, NULL };
    const bool tags = strcmp(payload, "tag") == 0;
    struct rig r;
    open_rig(&r, settings);
    const uint64_t at = alloc(&r, 16384), list = alloc(&r, 4096);
    fill(&r, at, 1, 8192);
    physmem_write64(r.memory, (struct hpa){ list }, at + 4096);
    assert_int_equal(command(&r, &r.io, io_at(true, 0, 16, at, at + 4096), NULL), 0);
    struct nvme_sqe sqe = { .opcode = NVME_WRITE_ZEROES, .nsid = 1, .cdw10 = 3, .cdw12 = 65535 };
    assert_int_equal(command(&r, &r.io, sqe, NULL), 0); /* above MDTS, which is for data */
    const uint64_t back = at + 8192;
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 16, back, back + 4096), NULL), 0);
    expect(&r, back, 1, 3 * 512, tags);
    for (unsigned i = 3 * 512; i < 8192; i += 8)
        assert_int_equal(physmem_read64(r.memory, (struct hpa){ back + i }), 0);
    assert_int_equal(nvme_stats(r.nvme)->media_pages, 1); /* the other was given back */
    close_rig(&r);
}

static void test_write_zeroes(void **state)
{
    (void)state;
    zeroes("tag");
    zeroes("bytes");
}

static void test_dataset_management(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    const uint64_t at = alloc(&r, 8192), list = alloc(&r, 4096);
    fill(&r, at, 1, 4096);
    const struct nvme_range range[2] = { { .blocks = 2, .first = 0 }, { .blocks = 1, .first = 7 } };
    assert_int_equal(command(&r, &r.io, io_at(true, 0, 8, at, 0), NULL), 0);
    physmem_write(r.memory, (struct hpa){ list }, (const uint8_t *)range, sizeof(range));
    struct nvme_sqe sqe = { .opcode = NVME_DATASET, .nsid = 1, .prp1 = list, .cdw10 = 1 };
    assert_int_equal(command(&r, &r.io, sqe, NULL), 0); /* hints: nothing changes */
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at + 4096, 0), NULL), 0);
    expect(&r, at + 4096, 1, 4096, true);
    sqe.cdw11 = NVME_DATASET_DEALLOCATE;
    assert_int_equal(command(&r, &r.io, sqe, NULL), 0);
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at + 4096, 0), NULL), 0);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ at + 4096 + 512 }), 0);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ at + 4096 + 7 * 512 }), 0);
    expect(&r, at + 4096 + 1024, 1025, 5 * 512, true); /* DLFEAT: zeros; the rest stays */
    close_rig(&r);
}

/* ---- What was there before the run ----------------------------------------------------------- */

#define HELD_BYTES (UINT64_C(3) * 4096 - 512)

/* The word at each line of a buffer into which `blocks` from `block` on are read: the stream's, or
 * zero where it holds nothing. */
static void expect_stream(struct rig *r, uint64_t block, uint32_t blocks, uint64_t mark,
                          uint64_t begin, uint64_t end)
{
    const uint64_t at = alloc(r, 4096);
    assert_int_equal(command(r, &r->io, io_at(false, block, blocks, at, 0), NULL), 0);
    for (uint64_t i = 0; i < blocks * 512; i += 64) {
        const uint64_t offset = block * 512 + i;
        const bool holds = offset >= begin && offset < end;
        assert_int_equal(physmem_read64(r->memory, (struct hpa){ at + i }),
                         holds ? payload_word(payload_mark_add(mark, offset - begin)) : 0);
    }
}

/* From the second half of a page on to the second half of another: pages appear as they are
 * touched, what is written or given back stays so, and what is read beside it is as it was. */
static void held(const char *payload, const char *media)
{
    const char *const settings[] = { "payload", payload, "media", media, NULL };
    const uint64_t begin = 2048, end = begin + HELD_BYTES, mark = payload_mark(7, 4096);
    struct rig r;
    open_rig(&r, settings);
    const uint64_t at = alloc(&r, 4096), list = alloc(&r, 4096);
    fill(&r, at, 1, 512);
    assert_int_equal(command(&r, &r.io, io_at(true, 0, 1, at, 0), NULL), 0); /* beside it */
    nvme_hold(r.nvme, 1, begin, HELD_BYTES, mark);
    assert_int_equal(nvme_stats(r.nvme)->media_pages, 1);
    expect_stream(&r, 1, 7, mark, begin, end);
    expect_stream(&r, 24, 8, mark, begin, end);
    assert_int_equal(nvme_stats(r.nvme)->media_pages, 2);
    assert_int_equal(command(&r, &r.io, io_at(true, 9, 1, at, 0), NULL), 0);
    expect_stream(&r, 8, 1, mark, begin, end);
    expect_stream(&r, 10, 6, mark, begin, end);
    const struct nvme_range range = { .blocks = 8, .first = 16 };
    physmem_write(r.memory, (struct hpa){ list }, (const uint8_t *)&range, sizeof(range));
    const struct nvme_sqe dataset = {
        .opcode = NVME_DATASET, .nsid = 1, .prp1 = list, .cdw11 = NVME_DATASET_DEALLOCATE
    };
    assert_int_equal(command(&r, &r.io, dataset, NULL), 0);
    expect_stream(&r, 16, 8, mark, 0, 0);
    assert_int_equal(nvme_stats(r.nvme)->writes, 2);
    close_rig(&r);
}

static void test_held(void **state)
{
    (void)state;
    held("tag", "flat");
    held("bytes", "flat");
    held("tag", "nand");
}

/* ---- Write Uncorrectable (6.15), Flush (6.8) ------------------------------------------------- */

static void test_write_uncorrectable(void **state)
{
    struct rig r;
    uint8_t log[512];
    (void)state;
    open_rig(&r, NULL);
    const uint64_t at = alloc(&r, 4096);
    struct nvme_sqe sqe = { .opcode = NVME_WRITE_UNCORRECTABLE, .nsid = 1, .cdw10 = 20 };
    assert_int_equal(command(&r, &r.io, sqe, NULL), 0);
    assert_int_equal(command(&r, &r.io, io_at(false, 16, 8, at, 0), NULL),
                     NVME_SC_UNRECOVERED_READ);
    struct nvme_sqe same = io_at(false, 20, 1, at, 0);
    same.opcode = NVME_COMPARE;
    assert_int_equal(command(&r, &r.io, same, NULL), NVME_SC_UNRECOVERED_READ);
    assert_int_equal(command(&r, &r.io, io_at(false, 16, 4, at, 0), NULL), 0);
    assert_int_equal(command(&r, &r.io, io_at(false, 21, 3, at, 0), NULL), 0);
    assert_int_equal(get_log(&r, NVME_LOG_HEALTH, 0, log, sizeof(log)), NVME_SC_SUCCESS);
    assert_int_equal(log[NVME_HEALTH_MEDIA_ERRORS], 2);
    assert_int_equal(command(&r, &r.io, io_at(true, 20, 1, at, 0), NULL), 0); /* good again */
    assert_int_equal(command(&r, &r.io, io_at(false, 16, 8, at, 0), NULL), 0);
    close_rig(&r);
}

static void test_flush(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    struct nvme_sqe sqe = { .opcode = NVME_FLUSH, .nsid = 1 };
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    sqe.nsid = NVME_NSID_ALL;
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgl_segments),
        cmocka_unit_test(test_sgl_bit_bucket),
        cmocka_unit_test(test_sgl_ring),
        cmocka_unit_test(test_sgl_tags),
        cmocka_unit_test(test_sgl_errors),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_latency),
        cmocka_unit_test(test_write_zeroes),
        cmocka_unit_test(test_dataset_management),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_write_uncorrectable),
        cmocka_unit_test(test_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
