/* Stacks of tasks. */
#include "sim/engine/task_stack.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/engine/sanitizer.h"
#include "sim/engine/sim_internal.h"

#define N_CLASSES    16u /* stacks of 2^n pages */
#define PER_CHUNK    64u
#define CANARY_BYTES (TASK_STACK_CANARY_WORDS * sizeof(uint64_t))

/* A mapping with a guard page below. */
struct chunk {
    struct chunk *next;
    char *mapping;
    size_t bytes;
};

struct task_stacks {
    struct task_stack *spare[N_CLASSES];
    struct chunk *filling[N_CLASSES]; /* where the next stack with a canary goes */
    unsigned n_filled[N_CLASSES];     /* stacks in it */
    struct chunk *chunks;
    struct task_stack **all;
    size_t n_all, max_all;
    size_t n_guarded, n_chunks;
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

struct task_stacks *task_stacks_new(void)
{
    return sim_zalloc(1, sizeof(struct task_stacks));
}

void task_stacks_free(struct task_stacks *stacks)
{
    for (size_t i = 0; i < stacks->n_all; i++) {
        VALGRIND_STACK_DEREGISTER(stacks->all[i]->valgrind_id);
        SIM_UNPOISON(stacks->all[i]->base, stacks->all[i]->bytes);
        free(stacks->all[i]);
    }
    while (stacks->chunks != NULL) {
        struct chunk *chunk = stacks->chunks;

        stacks->chunks = chunk->next;
        munmap(chunk->mapping, chunk->bytes);
        free(chunk);
    }
    free(stacks->all);
    free(stacks);
}

/* So many bytes above a guard page, or NULL: the real machine has no mapping or memory left. */
static struct chunk *chunk_new(struct task_stacks *stacks, size_t bytes)
{
    const size_t page = page_bytes();
    char *mapping = mmap(NULL, bytes + page, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (mapping == MAP_FAILED)
        return NULL;
    if (mprotect(mapping + page, bytes, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapping, bytes + page);
        return NULL;
    }
    struct chunk *chunk = sim_zalloc(1, sizeof(*chunk));
    *chunk = (struct chunk){ stacks->chunks, mapping, bytes + page };
    stacks->chunks = chunk;
    stacks->n_chunks++;
    return chunk;
}

/* The next stack of the class in a mapping that it shares; *canary is that of the stack below. */
static char *next_in_chunk(struct task_stacks *stacks, unsigned class_idx, size_t bytes,
                           const uint64_t **canary)
{
    if (stacks->filling[class_idx] == NULL || stacks->n_filled[class_idx] == PER_CHUNK) {
        struct chunk *chunk = chunk_new(stacks, PER_CHUNK * bytes);

        if (chunk == NULL)
            sim_out_of_memory("%u stacks of %zu bytes (one mapping; see vm.max_map_count)",
                              PER_CHUNK, bytes);
        /* a page at a time: most stacks use one or two. If the kernel refuses, it costs memory. */
        (void)madvise(chunk->mapping + page_bytes(), PER_CHUNK * bytes, MADV_NOHUGEPAGE);
        stacks->filling[class_idx] = chunk;
        stacks->n_filled[class_idx] = 0;
    }
    const unsigned i = stacks->n_filled[class_idx]++;
    char *base = stacks->filling[class_idx]->mapping + page_bytes() + i * bytes;
    uint64_t *own = (uint64_t *)(void *)(base + bytes - CANARY_BYTES);

    for (unsigned w = 0; w < TASK_STACK_CANARY_WORDS; w++)
        own[w] = TASK_STACK_CANARY_WORD;
    *canary = i == 0 ? NULL : (const uint64_t *)(const void *)(base - CANARY_BYTES);
    return base;
}

static struct task_stack *stack_new(struct task_stacks *stacks, unsigned class_idx)
{
    const size_t bytes = page_bytes() << class_idx;
    struct task_stack *stack = sim_zalloc(1, sizeof(*stack));
    struct chunk *own = stacks->n_guarded < TASK_STACKS_GUARDED ? chunk_new(stacks, bytes) : NULL;

    stack->class_idx = (unsigned char)class_idx;
    if (own != NULL) {
        stacks->n_guarded++;
        stack->base = own->mapping + page_bytes();
        stack->bytes = bytes;
    } else {
        stack->base = next_in_chunk(stacks, class_idx, bytes, &stack->canary);
        stack->bytes = bytes - CANARY_BYTES;
    }
    stack->valgrind_id = VALGRIND_STACK_REGISTER(stack->base, stack->base + stack->bytes);
    if (stacks->n_all == stacks->max_all) {
        stacks->max_all = 2 * stacks->max_all + 16;
        stacks->all = sim_grow(stacks->all, stacks->max_all, sizeof(struct task_stack *));
    }
    return stacks->all[stacks->n_all++] = stack;
}

struct task_stack *task_stacks_take(struct task_stacks *stacks, size_t bytes)
{
    unsigned class_idx = 0;

    while (page_bytes() << class_idx < bytes)
        class_idx++;
    SIM_ASSERT(class_idx < N_CLASSES, "a stack of %zu bytes", bytes);
    struct task_stack *stack = stacks->spare[class_idx];

    if (stack == NULL)
        return stack_new(stacks, class_idx);
    stacks->spare[class_idx] = stack->next;
    return stack;
}

void task_stacks_give(struct task_stacks *stacks, struct task_stack *stack)
{
    SIM_UNPOISON(stack->base, stack->bytes);
    stack->next = stacks->spare[stack->class_idx];
    stacks->spare[stack->class_idx] = stack;
}

size_t task_stacks_mappings(const struct task_stacks *stacks)
{
    return 2 * stacks->n_chunks;
}
