/*
 * Text of software (logic/ktext.h) on cores with an instruction cache, for models/os/ only.
 */
#ifndef MODELS_OS_OS_TEXT_H
#define MODELS_OS_OS_TEXT_H

#include "models/os/os_internal.h"

/* Places all pieces in memory if the host's cores have an L1I; a guest's kernel has none. */
void os_text_new(struct kernel *kernel);
void os_text_free(struct kernel *kernel);
/* Fetches what the CPU's L1I does not have of a piece of which a pass computes for `cycles`, and
 * waits for it. */
void os_text_fetch(struct k_thread *self, enum k_text piece, uint64_t cycles);
/* Lines of a piece; 0 without L1I. For tests. */
unsigned os_text_lines(const struct kernel *kernel, enum k_text piece);

/* Charges the cycles of a pass through the piece; interrupts come in at their time. */
static inline void os_run_text(struct k_thread *self, enum k_text piece, uint64_t cycles)
{
    if (SIM_UNLIKELY(self->kernel->text != NULL))
        os_text_fetch(self, piece, cycles);
    os_charge_cycles(self, cycles);
}

#endif
