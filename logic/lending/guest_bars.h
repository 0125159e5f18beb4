/*
 * The base address registers that a guest sees. It writes guest-physical addresses to them, which
 * the device itself never gets to know.
 */
#ifndef LOGIC_LENDING_GUEST_BARS_H
#define LOGIC_LENDING_GUEST_BARS_H

#include "logic/kapi.h"

struct guest_bars {
    uint64_t bytes[K_PCI_BARS];   /* powers of two; 0: no such register */
    uint32_t flags[K_PCI_BARS];   /* bits 3:0 of the register */
    uint32_t written[K_PCI_BARS]; /* what the guest wrote last */
};

/* Sets all addresses to 0, as a reset does. `registers`: what the device's own registers hold, for
 * the flags. */
void guest_bars_init(struct guest_bars *bars, const uint64_t bytes[K_PCI_BARS],
                     const uint32_t registers[K_PCI_BARS]);
/* True: an access of configuration space at this offset is one of these registers. */
bool guest_bars_has(unsigned offset);
uint32_t guest_bars_read(const struct guest_bars *bars, unsigned offset, unsigned bytes);
/* Drops writes of other sizes than 4 bytes. */
void guest_bars_write(struct guest_bars *bars, unsigned offset, unsigned bytes, uint32_t value);
/* The guest-physical address of the registers; 0: none assigned. */
uint64_t guest_bars_base(const struct guest_bars *bars, unsigned bar);

#endif
