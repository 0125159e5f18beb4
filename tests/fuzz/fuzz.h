/*
 * Fuzzers: an input is a list of operations of a driver that does what it likes, and of a host and
 * peers that answer as they like. Whatever it does, a device of ours answers with error statuses or
 * gives up; nothing of ours asserts, leaks or goes on for ever, and a function-level reset makes
 * the device as good as new. libFuzzer drives the targets (fuzz_entry.c, `make fuzz`), and
 * test_fuzz_TARGET.c replays the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One operation, 24 bytes of the input. The first of an input says how the world is made. What the
 * fields mean is the target's; every value means something. */
struct fuzz_op {
    uint8_t kind, a, b, c;
    uint32_t x;
    uint64_t y, z;
};
_Static_assert(sizeof(struct fuzz_op) == 24, "operations are of 24 bytes");
#define FUZZ_OPS_MAX 128u

/* xorshift64*, for invented operations: the simulator's streams are the simulation's. */
struct fuzz_random {
    uint64_t state;
};
uint64_t fuzz_any(struct fuzz_random *random, uint64_t bound);
/* Small, large or between. */
uint32_t fuzz_any32(struct fuzz_random *random);
/* The code of an address, as fuzz_address() takes it: mostly of aligned memory. */
uint32_t fuzz_any_address(struct fuzz_random *random);

struct fuzz_world;
/* Its functions abort if something is wrong. */
struct fuzz_target {
    const char *name;
    /* A world with its devices set up; `op` says how it is made. The caller owns it. */
    struct fuzz_world *(*open)(const struct fuzz_op *op);
    void (*step)(struct fuzz_world *world, const struct fuzz_op *op);
    /* The host behaves from here on: resets the devices and checks what must hold. */
    void (*check)(struct fuzz_world *world);
    void (*close)(struct fuzz_world *world);
    /* An operation that a driver may well do; first: one that makes a world. */
    void (*invent)(struct fuzz_op *op, struct fuzz_random *random, int first);
};
extern const struct fuzz_target fuzz_nvme, fuzz_rdma, fuzz_nic, fuzz_ioat, fuzz_dsa, fuzz_myri;

/* Runs the target on an input; a rest that is no whole operation is left out. */
void fuzz_input(const struct fuzz_target *target, const uint8_t *data, size_t bytes);
/* Changes an input in place; returns its new size. mutate: LLVMFuzzerMutate(). */
typedef size_t fuzz_mutate_fn(uint8_t *data, size_t bytes, size_t bytes_max);
size_t fuzz_mutate(const struct fuzz_target *target, uint8_t *data, size_t bytes, size_t bytes_max,
                   unsigned seed, fuzz_mutate_fn *mutate);
/* Operations of both inputs. */
size_t fuzz_cross(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes, uint8_t *out,
                  size_t out_bytes_max, unsigned seed);

/* main() of a replay: each file of tests/fuzz/corpus/TARGET/, or the files that are named. */
int fuzz_replay(const struct fuzz_target *target, int argc, char **argv);

#endif
