/*
 * Stacks of tasks, which the real machine's kernel backs with memory when they are touched.
 *
 * Each of the first TASK_STACKS_GUARDED of a run is a mapping of its own with a guard page below:
 * an overflow ends the process at once. That is two mappings a stack, and Linux allows a process
 * 65,530 (vm.max_map_count). Later ones, and those for which there is no mapping left, stand one
 * above the other, 64 in a mapping with a guard page below the lowest. There the highest bytes of
 * each stack are a canary: an overflow of the stack above overwrites it, which task_stack_whole()
 * tells afterwards. A frame that is larger than the canary and leaves its lowest bytes unwritten
 * may miss it.
 *
 * Private to the engine.
 */
#ifndef SIM_ENGINE_TASK_STACK_H
#define SIM_ENGINE_TASK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASK_STACKS_GUARDED    4096u
#define TASK_STACK_CANARY_WORD UINT64_C(0x6e75646d61c0ffee)

enum { TASK_STACK_CANARY_WORDS = 8 };

struct task_stacks;

struct task_stack {
    struct task_stack *next; /* while it is spare */
    char *base;              /* lowest usable byte */
    size_t bytes;            /* usable ones */
    const uint64_t *canary;  /* below base; NULL: a guard page is there */
    unsigned valgrind_id;
    unsigned char class_idx; /* of spare stacks */
};

/* Never NULL. */
struct task_stacks *task_stacks_new(void);
/* Frees all stacks, also those in use. */
void task_stacks_free(struct task_stacks *stacks);
/* Returns a stack of at least `bytes` bytes, less the canary of one in a shared mapping; a spare
 * one if there is one of its size. Never NULL: ends the process when memory is exhausted. */
struct task_stack *task_stacks_take(struct task_stacks *stacks, size_t bytes);
/* The stack becomes spare. */
void task_stacks_give(struct task_stacks *stacks, struct task_stack *stack);
/* Mappings that the stacks of the run take, guard pages included. */
size_t task_stacks_mappings(const struct task_stacks *stacks);

/* False: the stack has run over into the one below. Only for a stack with a canary. */
static inline bool task_stack_whole(const struct task_stack *stack)
{
    uint64_t differs = 0;

    for (unsigned i = 0; i < TASK_STACK_CANARY_WORDS; i++)
        differs |= stack->canary[i] ^ TASK_STACK_CANARY_WORD;
    return differs == 0;
}

#endif
