/* Stacks of tasks: a mapping with a guard page below, memory touched lazily. Private to the
 * engine. */
#ifndef SIM_ENGINE_TASK_STACK_H
#define SIM_ENGINE_TASK_STACK_H

#include <stddef.h>

struct task_stack {
    struct task_stack *next; /* for whoever keeps it */
    char *base;              /* lowest usable byte; the guard page ends here */
    size_t bytes;
    unsigned valgrind_id;
};

/* At least so many bytes. Never NULL. */
struct task_stack *task_stack_new(size_t bytes);
void task_stack_free(struct task_stack *stack);

#endif
