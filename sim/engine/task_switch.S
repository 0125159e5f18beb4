/*
 * void sim_context_switch(struct sim_context *from, struct sim_context *to)
 * void sim_context_entry(void)
 *
 * The caller has saved what a call may change, so a switch saves the callee-saved registers on the
 * stack that is left and takes them from the one that is entered. The floating-point control words
 * are the same in all tasks and stay. The entry calls fn(arg) with zeroes as frame pointer and
 * return address, where unwinders stop.
 */
#include "task_context.h" /* the rule for assembly has no -I */

#ifndef SIM_TASK_UCONTEXT

        .text

#ifdef __x86_64__
/* Frame, from the stack pointer up: r15 r14 r13 r12 rbx rbp, return address. A new stack has a
 * zero above it, where a function expects its own return address. */
        .globl  sim_context_switch
        .type   sim_context_switch, @function
        .p2align 4
sim_context_switch:
        .cfi_startproc
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        movq    %rsp, (%rdi)
        movq    (%rsi), %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        popq    %rcx
        jmpq    *%rcx
        .cfi_endproc
        .size   sim_context_switch, .-sim_context_switch

        .globl  sim_context_entry
        .type   sim_context_entry, @function
        .p2align 4
sim_context_entry:
        .cfi_startproc
        .cfi_undefined rip
        movq    %r12, %rdi
        jmpq    *%rbx
        .cfi_endproc
        .size   sim_context_entry, .-sim_context_entry

#else /* AArch64 */
/* Frame: x19 x20 .. x28 x29 x30, d8 .. d15; 160 bytes. */
        .globl  sim_context_switch
        .type   sim_context_switch, %function
        .p2align 4
sim_context_switch:
        .cfi_startproc
        stp     x19, x20, [sp, #-160]!
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x0]
        ldr     x9, [x1]
        mov     sp, x9
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x19, x20, [sp], #160
        ret
        .cfi_endproc
        .size   sim_context_switch, .-sim_context_switch

        .globl  sim_context_entry
        .type   sim_context_entry, %function
        .p2align 4
sim_context_entry:
        .cfi_startproc
        .cfi_undefined x30
        mov     x0, x20
        mov     x29, xzr
        mov     x30, xzr
        br      x19
        .cfi_endproc
        .size   sim_context_entry, .-sim_context_entry
#endif

#endif

#if defined(__linux__) && defined(__ELF__)
        .section .note.GNU-stack, "", %progbits
#endif
