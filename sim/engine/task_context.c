/* Making a context; switching by ucontext where there is no assembly for it. */
#include "sim/engine/task_context.h"

#include <stdint.h>

#include "sim/engine/types.h"

#ifdef SIM_TASK_UCONTEXT

/* makecontext() passes ints only: the pointer comes in two halves. */
static void enter(unsigned high, unsigned low)
{
    struct sim_context *context = (struct sim_context *)((uintptr_t)high << 16 << 16 | low);

    context->fn(context->arg);
}

void sim_context_prepare(struct sim_context *context, void *stack, size_t bytes, sim_context_fn *fn,
                         void *arg)
{
    uintptr_t self = (uintptr_t)context;
    void (*entry)(unsigned, unsigned) = enter;
    void (*untyped)(void);

    context->fn = fn;
    context->arg = arg;
    SIM_ASSERT(getcontext(&context->ucontext) == 0, "getcontext");
    context->ucontext.uc_stack.ss_sp = stack;
    context->ucontext.uc_stack.ss_size = bytes;
    context->ucontext.uc_link = NULL;
    /* the type that makecontext() wants for a function with arguments */
    __builtin_memcpy(&untyped, &entry, sizeof(untyped));
    makecontext(&context->ucontext, untyped, 2, (unsigned)(self >> 16 >> 16), (unsigned)self);
}

void sim_context_switch(struct sim_context *from, struct sim_context *to)
{
    SIM_ASSERT(swapcontext(&from->ucontext, &to->ucontext) == 0, "swapcontext");
}

#else

void sim_context_entry(void); /* task_switch.S */

/* The frame that sim_context_switch() pops: see the layouts there. */
void sim_context_prepare(struct sim_context *context, void *stack, size_t bytes, sim_context_fn *fn,
                         void *arg)
{
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;

#ifdef __x86_64__
    enum { FRAME_WORDS = 8, FN_WORD = 4, ARG_WORD = 3, RETURN_WORD = 6 };
#else
    enum { FRAME_WORDS = 20, FN_WORD = 0, ARG_WORD = 1, RETURN_WORD = 11 };
#endif
    uintptr_t *frame = (uintptr_t *)top - FRAME_WORDS;

    for (unsigned i = 0; i < FRAME_WORDS; i++)
        frame[i] = 0;
    frame[FN_WORD] = (uintptr_t)fn;
    frame[ARG_WORD] = (uintptr_t)arg;
    frame[RETURN_WORD] = (uintptr_t)sim_context_entry;
    context->sp = frame;
}

#endif
