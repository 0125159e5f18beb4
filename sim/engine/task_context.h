/*
 * A context is where a stack's owner was when it left it. Three ways to switch: x86-64 and AArch64
 * (task_switch.S: callee-saved registers only, no system call) and ucontext, for other machines or
 * with SIM_TASK_UCONTEXT defined (its swap sets the signal mask: a system call). Private to the
 * engine.
 */
#ifndef SIM_ENGINE_TASK_CONTEXT_H
#define SIM_ENGINE_TASK_CONTEXT_H

#if !defined(SIM_TASK_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define SIM_TASK_UCONTEXT 1
#endif

#ifndef __ASSEMBLER__
#include <stddef.h>

typedef void sim_context_fn(void *arg); /* must never return */

#ifdef SIM_TASK_UCONTEXT
#include <ucontext.h>
struct sim_context {
    ucontext_t ucontext;
    sim_context_fn *fn;
    void *arg;
};
#else
struct sim_context {
    void *sp;
};
#endif

/* The first switch to the context calls fn(arg) on the stack. */
void sim_context_prepare(struct sim_context *context, void *stack, size_t bytes, sim_context_fn *fn,
                         void *arg);
/* Returns when someone switches back to `from`. */
void sim_context_switch(struct sim_context *from, struct sim_context *to);
#endif

#endif
