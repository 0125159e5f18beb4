/* Stacks of tasks. */
#include "sim/engine/task_stack.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/engine/sanitizer.h"
#include "sim/engine/sim_internal.h"

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

struct task_stack *task_stack_new(size_t bytes)
{
    struct task_stack *stack = sim_zalloc(1, sizeof(*stack));
    size_t page = page_bytes();

    stack->bytes = (bytes + page - 1) / page * page;
    char *mapping = mmap(NULL, stack->bytes + page, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (mapping == MAP_FAILED)
        sim_out_of_memory("a stack of %zu bytes", stack->bytes);
    stack->base = mapping + page;
    SIM_ASSERT(mprotect(stack->base, stack->bytes, PROT_READ | PROT_WRITE) == 0,
               "the guard page of a stack is one mapping too many (vm.max_map_count)");
    stack->valgrind_id = VALGRIND_STACK_REGISTER(stack->base, stack->base + stack->bytes);
    return stack;
}

void task_stack_free(struct task_stack *stack)
{
    size_t page = page_bytes();

    VALGRIND_STACK_DEREGISTER(stack->valgrind_id);
    SIM_UNPOISON(stack->base, stack->bytes);
    munmap(stack->base - page, stack->bytes + page);
    free(stack);
}
