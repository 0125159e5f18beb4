/*
 * MPI over fake endpoints of Myrinet Express: messages, wildcards, order, errors; collectives with
 * every number of processes from 1 to 17 and sizes on both sides of each decision, their data
 * verified byte by byte; which algorithm is chosen, and that it sends as many messages as it
 * should.
 */
#include "logic/mpi/mpi.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/mx_fake.h"
#include "tests/support/test.h"

#define RANKS_MAX 17u
#define LATE_US   30u

static struct kernel *kernel;
static struct mx_fake *net;
static struct mpi_place places[RANKS_MAX];
static unsigned n_ranks, n_done;
static void (*body)(struct mpi_comm *world);

static struct kaddr memory(uint64_t bytes)
{
    return k_alloc(kernel, 0, bytes + K_LINE_BYTES, K_LINE_BYTES);
}

/* Byte i of the message from one rank to another. */
static uint8_t byte_of(unsigned from, unsigned to, uint64_t i)
{
    return (uint8_t)((from * 131 + to * 31 + i * 7 + (i >> 8)) ^ 0x5a);
}

static void fill(struct kaddr at, unsigned from, unsigned to, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        const uint8_t byte = byte_of(from, to, i);
        k_poke(kernel, kaddr_add(at, i), &byte, 1);
    }
}

static void check(struct kaddr at, unsigned from, unsigned to, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        uint8_t byte;
        k_peek(kernel, kaddr_add(at, i), &byte, 1);
        assert_int_equal(byte, byte_of(from, to, i));
    }
}

static void process_body(void *arg)
{
    const unsigned rank = (unsigned)(uintptr_t)arg;
    int error;
    struct mpi_process *process = mpi_new(mx_fake_endpoint(net, rank), rank, n_ranks, places, K_S,
                                          &error);
    assert_non_null(process);
    assert_int_equal(mpi_rank(mpi_world(process)), rank);
    assert_int_equal(mpi_size(mpi_world(process)), n_ranks);
    body(mpi_world(process));
    mpi_free(process);
    n_done++;
}

/* Every rank runs fn(). Returns how many messages there were. */
static uint64_t run(unsigned n, uint64_t seed, void (*fn)(struct mpi_comm *))
{
    const struct fake_options options = { .seed = seed, .n_cpus = 8, .stall_percent = 10 };
    kernel = fake_new(&options);
    kernel->costs.mpi_call_cycles = 1000;
    net = mx_fake_new(kernel, n, LATE_US);
    n_ranks = n;
    n_done = 0;
    body = fn;
    for (unsigned i = 0; i < n; i++) {
        places[i] = (struct mpi_place){ MX_FAKE_NIC + i, (uint8_t)i, MX_FAKE_KEY };
        k_thread_new(kernel, "rank", (int)(i % 8), process_body, (void *)(uintptr_t)i);
    }
    for (unsigned i = 0; i < 200 && n_done < n; i++)
        fake_run_until(kernel, kernel->now_ps + K_MS);
    assert_int_equal(n_done, n);
    fake_run_until(kernel, kernel->now_ps + K_MS);
    assert_int_equal(mx_fake_live(net), 0);
    assert_int_equal(kernel->pages_live, 0);
    const uint64_t sent = mx_fake_sent(net);
    mx_fake_free(net);
    fake_free(kernel);
    return sent;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void ping(struct mpi_comm *world)
{
    const struct kaddr at = memory(5000);
    struct mpi_status status = { 0 };
    if (mpi_rank(world) == 0) {
        fill(at, 0, 1, 5000);
        assert_int_equal(mpi_send(world, at, 5000, 1, 7), 0);
        assert_int_equal(mpi_recv(world, at, 5000, 1, 8, &status), 0);
        check(at, 1, 0, 3000);
        assert_int_equal(status.bytes, 3000);
        assert_int_equal(status.source, 1);
        assert_int_equal(status.tag, 8);
    } else {
        assert_int_equal(mpi_recv(world, at, 5000, 0, 7, NULL), 0);
        check(at, 0, 1, 5000);
        fill(at, 1, 0, 3000);
        assert_int_equal(mpi_send(world, at, 3000, 0, 8), 0);
    }
}

static void test_ping(void **state)
{
    (void)state;
    assert_int_equal(run(2, 1, ping), 2);
}

#define FEW 12u
/* Rank 0 gets FEW messages of each other rank from anywhere, with any tag: those of one rank in
 * order. */
static void wildcards(struct mpi_comm *world)
{
    const unsigned rank = mpi_rank(world), n = mpi_size(world);
    const struct kaddr at = memory(64);
    unsigned next[RANKS_MAX] = { 0 };
    for (unsigned i = 0; rank != 0 && i < FEW; i++) {
        fill(at, rank, i, 40);
        assert_int_equal(mpi_send(world, at, 40, 0, (int)(100 + i)), 0);
    }
    for (unsigned i = 0; rank == 0 && i < FEW * (n - 1); i++) {
        struct mpi_status status;
        assert_int_equal(mpi_recv(world, at, 64, MPI_ANY_SOURCE, MPI_ANY_TAG, &status), 0);
        assert_in_range(status.source, 1, n - 1);
        assert_int_equal(status.tag, 100 + next[status.source]);
        check(at, (unsigned)status.source, next[status.source]++, 40);
    }
}

static void test_wildcards(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++)
        run(5, seed, wildcards);
}

/* A receive names its message by source and tag, whatever comes first; a collective in between
 * takes none of the program's, and mpi_test() ends a request as mpi_wait() does. */
static void by_name(struct mpi_comm *world)
{
    struct mpi_process *process = mpi_process_of(world);
    const unsigned rank = mpi_rank(world), n = mpi_size(world);
    struct mpi_request *request[2 * RANKS_MAX], *in_request;
    const struct kaddr out = memory(64), in = memory(64);
    fill(out, rank, 99, 64);
    for (unsigned i = 0; i < n; i++) {
        mpi_isend(world, out, 64, i, 2, &request[2 * i]);
        mpi_isend(world, out, 32, i, 1, &request[2 * i + 1]);
    }
    assert_int_equal(mpi_barrier(world), 0);
    for (unsigned i = n; i-- > 0;)
        for (int tag = 1; tag <= 2; tag++) {
            struct mpi_status status;
            bool done = false;
            assert_int_equal(mpi_irecv(world, in, 64, (int)i, tag, &in_request), 0);
            while (!done) {
                assert_int_equal(mpi_test(process, &in_request, &done, &status), 0);
                k_sleep(kernel, K_US);
            }
            assert_null(in_request);
            assert_int_equal(status.source, i);
            assert_int_equal(status.bytes, 32 * tag);
            check(in, i, 99, status.bytes);
        }
    assert_int_equal(mpi_wait_all(process, request, 2 * n), 0);
}

static void test_by_name(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        run(4, seed, by_name);
}

/* The first error stays, and everything ends: what waits is taken back, what has come has. */
static void too_long(struct mpi_comm *world)
{
    struct mpi_process *process = mpi_process_of(world);
    const struct kaddr at = memory(128), in = memory(64);
    if (mpi_rank(world) == 0) {
        mpi_send(world, at, 40, 1, 5);
        mpi_send(world, at, 100, 1, 0);
        return;
    }
    struct mpi_request *never, *neither, *come;
    struct mpi_status status = { 0 };
    bool done;
    assert_int_equal(mpi_irecv(world, at, 64, 0, 77, &never), 0);
    assert_int_equal(mpi_irecv(world, at, 64, 0, 78, &neither), 0);
    assert_int_equal(mpi_irecv(world, in, 64, 0, 5, &come), 0);
    assert_int_equal(mpi_recv(world, at, 64, 0, 0, NULL), -EMSGSIZE);
    assert_int_equal(mpi_send(world, at, 64, 0, 0), -EMSGSIZE);
    assert_int_equal(mpi_wait(process, &never, NULL), -EMSGSIZE);
    assert_null(never);
    assert_int_equal(mpi_test(process, &neither, &done, NULL), -EMSGSIZE);
    assert_true(done);
    assert_null(neither);
    assert_int_equal(mpi_test(process, &come, &done, &status), -EMSGSIZE);
    assert_true(done);
    assert_null(come);
    assert_int_equal(status.bytes, 40);
    assert_int_equal(mpi_error(process), -EMSGSIZE);
}

static void dead_peer(struct mpi_comm *world)
{
    const struct kaddr at = memory(128);
    if (mpi_rank(world) == 1) { /* dies without a word: the fake has its end refuse */
        mx_fake_kill(net, 1);
        return;
    }
    k_sleep(kernel, 100 * K_US);
    assert_int_equal(mpi_send(world, at, 100, 1, 0), -ECONNRESET);
    assert_int_equal(mpi_barrier(world), -ECONNRESET);
}

static void test_errors(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run(2, seed, too_long);
        run(2, seed, dead_peer);
    }
}

static void no_such_process(void *arg)
{
    int error;
    (void)arg;
    places[1].key = MX_FAKE_KEY + 1;
    assert_null(mpi_new(mx_fake_endpoint(net, 0), 0, 2, places, k_now_ps(kernel) + K_MS, &error));
    assert_true(error == -EPERM || error == -ETIMEDOUT);
    n_done++;
}

static void test_no_such_process(void **state)
{
    const struct fake_options options = { .seed = 1 };
    (void)state;
    kernel = fake_new(&options);
    net = mx_fake_new(kernel, 2, LATE_US);
    n_done = 0;
    for (unsigned i = 0; i < 2; i++)
        places[i] = (struct mpi_place){ MX_FAKE_NIC + i, (uint8_t)i, MX_FAKE_KEY };
    k_thread_new(kernel, "rank", 0, no_such_process, NULL);
    fake_run_until(kernel, 10 * K_MS);
    assert_int_equal(n_done, 1);
    mx_fake_free(net);
    fake_free(kernel);
}

/* ---- Collectives ----------------------------------------------------------------------------- */

static unsigned entered;

/* Nobody leaves before all have come. */
static void barriers(struct mpi_comm *world)
{
    for (unsigned i = 1; i <= 3; i++) {
        k_sleep(kernel, mpi_rank(world) * 7 * K_US);
        entered++;
        assert_int_equal(mpi_barrier(world), 0);
        assert_true(entered >= i * mpi_size(world));
    }
}

static uint64_t block_bytes;

static void alltoall(struct mpi_comm *world)
{
    const unsigned rank = mpi_rank(world), n = mpi_size(world);
    const struct kaddr out = memory(n * block_bytes), in = memory(n * block_bytes);
    for (unsigned i = 0; i < n; i++)
        fill(kaddr_add(out, i * block_bytes), rank, i, block_bytes);
    assert_int_equal(mpi_alltoall(world, out, in, block_bytes), 0);
    for (unsigned i = 0; i < n; i++)
        check(kaddr_add(in, i * block_bytes), i, rank, block_bytes);
}

/* From i to j: 0 to some hundred bytes; offsets in another order. */
static uint64_t size_of(unsigned i, unsigned j)
{
    return i * 37 + j * 101 < 200 ? 0 : (i * 37 + j * 101) % 700;
}

static void alltoallv(struct mpi_comm *world)
{
    const unsigned rank = mpi_rank(world), n = mpi_size(world);
    uint64_t out_bytes[RANKS_MAX], in_bytes[RANKS_MAX], offset[RANKS_MAX];
    const struct mpi_blocks out = { memory(n * 700), offset, out_bytes },
                            in = { memory(n * 700), offset, in_bytes };
    for (unsigned i = 0; i < n; i++) {
        out_bytes[i] = size_of(rank, i);
        in_bytes[i] = size_of(i, rank);
        offset[i] = (n - 1 - i) * 700;
        fill(kaddr_add(out.at, offset[i]), rank, i, out_bytes[i]);
    }
    assert_int_equal(mpi_alltoallv(world, &out, &in), 0);
    for (unsigned i = 0; i < n; i++)
        check(kaddr_add(in.at, offset[i]), i, rank, in_bytes[i]);
}

static uint64_t word_of(unsigned rank, uint64_t i)
{
    return (rank + 1) * 1000003 + i * (rank % 3 + 1);
}

static uint64_t expected_word(unsigned n, uint64_t i, bool max)
{
    uint64_t result = 0;
    for (unsigned r = 0; r < n; r++) {
        const uint64_t word = word_of(r, i);
        result = !max ? result + word : word > result ? word : result;
    }
    return result;
}

static void put_words(struct kaddr at, unsigned rank, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes / 8; i++) {
        const uint64_t word = word_of(rank, i);
        k_poke(kernel, kaddr_add(at, i * 8), &word, 8);
    }
}

static void check_words(struct kaddr at, unsigned n, uint64_t bytes, bool max)
{
    for (uint64_t i = 0; i < bytes / 8; i++) {
        uint64_t word;
        k_peek(kernel, kaddr_add(at, i * 8), &word, 8);
        assert_int_equal(word, expected_word(n, i, max));
    }
}

static void reductions(struct mpi_comm *world)
{
    const unsigned rank = mpi_rank(world), n = mpi_size(world), root = n / 2;
    const struct kaddr from = memory(block_bytes), to = memory(block_bytes);
    put_words(from, rank, block_bytes);
    assert_int_equal(mpi_allreduce(world, from, to, block_bytes, mpi_sum), 0);
    check_words(to, n, block_bytes, false);
    assert_int_equal(mpi_allreduce(world, from, to, block_bytes, mpi_max), 0);
    check_words(to, n, block_bytes, true);
    assert_int_equal(mpi_reduce(world, from, to, block_bytes, mpi_sum, root), 0);
    if (rank == root)
        check_words(to, n, block_bytes, false);
}

static void broadcasts(struct mpi_comm *world)
{
    const unsigned rank = mpi_rank(world), n = mpi_size(world);
    const struct kaddr at = memory(block_bytes);
    for (unsigned root = 0; root<n; root += n> 4 ? 3 : 1) {
        fill(at, rank == root ? root : 200, 1, block_bytes);
        assert_int_equal(mpi_bcast(world, at, block_bytes, root), 0);
        check(at, root, 1, block_bytes);
    }
}

static void test_collectives(void **state)
{
    static const uint64_t sizes[] = { 8, 192, 200, 1016, 2992, 3000 };
    (void)state;
    for (unsigned n = 1; n <= RANKS_MAX; n++) {
        entered = 0;
        run(n, n, barriers);
        run(n, n, alltoallv);
        for (unsigned i = 0; i < 6; i++) {
            block_bytes = sizes[i];
            run(n, n + i, alltoall);
            if (i % 2 == n % 2)
                run(n, n + i, reductions);
            else
                run(n, n + i, broadcasts);
        }
    }
}

static void test_large_collectives(void **state)
{
    static const uint64_t sizes[] = { 9992, 12000, 40000, 400000 };
    static const unsigned some[] = { 2, 3, 7, 12, 16 };
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < 5; k++) {
            block_bytes = sizes[i];
            if (block_bytes > 40000 && some[k] != 7)
                continue;
            run(some[k], i, reductions);
            run(some[k], i, broadcasts);
        }
}

/* Messages of two parts, and of the world beside them, do not meet; a part of a part works, too. */
static void parts(struct mpi_comm *world)
{
    const unsigned rank = mpi_rank(world);
    struct mpi_comm *part, *half;
    const struct kaddr from = memory(64), to = memory(64);
    assert_int_equal(mpi_split(world, rank % 2, &part), 0);
    assert_int_equal(mpi_rank(part), rank / 2);
    assert_int_equal(mpi_size(part), (mpi_size(world) + 1 - rank % 2) / 2);
    if (rank % 2 == 0) { /* now the contexts that are free differ */
        assert_int_equal(mpi_split(part, rank % 4, &half), 0);
        assert_int_equal(mpi_barrier(half), 0);
    }
    put_words(from, mpi_rank(part), 64);
    assert_int_equal(mpi_allreduce(part, from, to, 64, mpi_sum), 0);
    check_words(to, mpi_size(part), 64, false);
    assert_int_equal(mpi_split(world, 7, &half), 0);
    assert_int_equal(mpi_size(half), mpi_size(world));
    put_words(from, rank, 64);
    assert_int_equal(mpi_allreduce(half, from, to, 64, mpi_sum), 0);
    check_words(to, mpi_size(world), 64, false);
}

static void test_parts(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 9; n++)
        run(n, n, parts);
}

/* ---- Which algorithm ------------------------------------------------------------------------- */

static void test_algorithms(void **state)
{
    uint64_t segment;
    (void)state;
    assert_int_equal(mpi_alltoall_algorithm(16, 199), MPI_BRUCK);
    assert_int_equal(mpi_alltoall_algorithm(12, 199), MPI_LINEAR);
    assert_int_equal(mpi_alltoall_algorithm(16, 200), MPI_LINEAR);
    assert_int_equal(mpi_alltoall_algorithm(16, 2999), MPI_LINEAR);
    assert_int_equal(mpi_alltoall_algorithm(16, 3000), MPI_PAIRWISE);
    assert_int_equal(mpi_alltoall_algorithm(2, 8), MPI_TWO_PROCESSES);
    assert_int_equal(mpi_allreduce_algorithm(16, 9999), MPI_RECURSIVE_DOUBLING);
    assert_int_equal(mpi_allreduce_algorithm(16, 10000), MPI_RING);
    assert_int_equal(mpi_barrier_algorithm(16), MPI_RECURSIVE_DOUBLING);
    assert_int_equal(mpi_barrier_algorithm(12), MPI_BRUCK);
    assert_int_equal(mpi_bcast_algorithm(16, 2047, &segment), MPI_BINOMIAL);
    assert_int_equal(segment, 0);
    assert_int_equal(mpi_bcast_algorithm(16, 370727, &segment), MPI_BINARY);
    assert_int_equal(segment, 1024);
    assert_int_equal(mpi_bcast_algorithm(16, 370728, &segment), MPI_PIPELINE);
    assert_int_equal(segment, 8 << 10); /* 16 > 9.98 = 3.21e-6 * 370728 + 8.79 */
    assert_int_equal(mpi_bcast_algorithm(16, 10 << 20, &segment), MPI_PIPELINE);
    assert_int_equal(segment, 128 << 10); /* 16 < 19.0 = 1.61e-6 * 10 Mi + 2.11 */
    assert_int_equal(mpi_reduce_algorithm(16, 511, &segment), MPI_LINEAR);
    assert_int_equal(mpi_reduce_algorithm(16, 512, &segment), MPI_BINARY);
    assert_int_equal(mpi_reduce_algorithm(16, 24000, &segment), MPI_BINARY); /* 15.4 */
    assert_int_equal(mpi_reduce_algorithm(16, 30000, &segment), MPI_PIPELINE);
    assert_int_equal(segment, 1024);
}

static void one_alltoall(struct mpi_comm *world)
{
    const struct kaddr out = memory(16 * 4096), in = memory(16 * 4096);
    assert_int_equal(mpi_alltoall(world, out, in, block_bytes), 0);
}

/* Bruck needs log2 n messages of each process, the others n - 1. */
static void test_messages(void **state)
{
    (void)state;
    block_bytes = 16;
    assert_int_equal(run(16, 1, one_alltoall), 16 * 4);
    block_bytes = 256;
    assert_int_equal(run(16, 1, one_alltoall), 16 * 15);
    block_bytes = 4096;
    assert_int_equal(run(16, 1, one_alltoall), 16 * 15);
    entered = 0;
    assert_int_equal(run(16, 1, barriers), 3 * 16 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ping),
        cmocka_unit_test(test_wildcards),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_such_process),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_large_collectives),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
