/*
 * A DMA engine on the fake kernel, of either version: registers, chains and interrupts as
 * hw/ioat_regs.h says them, without any timing but that of chance. A source address with
 * IOAT_FAKE_BAD set fails.
 */
#ifndef TESTS_SUPPORT_IOAT_FAKE_H
#define TESTS_SUPPORT_IOAT_FAKE_H

#include "hw/ioat_regs.h"
#include "tests/support/fake/fake_kapi.h"

#define IOAT_FAKE_CHANNELS 2u
#define IOAT_FAKE_BAD      (UINT64_C(1) << 45)

struct ioat_fake;

struct ioat_fake_channel {
    struct ioat_fake *fake;
    unsigned number;
    uint32_t control, error;
    uint64_t chain, completion, status, next, last;
    uint16_t count, done;
    bool halted, idle, append, busy, at_end, resetting;
    unsigned epoch; /* what was begun before a reset is void */
};

struct ioat_fake {
    struct kernel *kernel;
    struct k_pci_dev pci;
    bool v1, gone, deaf; /* deaf: begins nothing */
    uint8_t interrupts;
    uint32_t attention;
    uint64_t step_ps; /* at most, per descriptor */
    struct ioat_fake_channel channel[IOAT_FAKE_CHANNELS];
    uint64_t n_done, n_doorbells, n_interrupts;
};

void ioat_fake_init(struct ioat_fake *fake, struct kernel *kernel, bool v1);

#endif
