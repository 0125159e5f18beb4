/*
 * Base address registers as a guest sees them: it writes guest-physical addresses, which concern
 * the device itself in no way. Knows neither host nor device.
 */
#ifndef LOGIC_LENDING_GUEST_BARS_H
#define LOGIC_LENDING_GUEST_BARS_H

#include "logic/kapi.h"

struct guest_bars {
    uint64_t bytes[K_PCI_BARS];   /* powers of two; 0: none */
    uint32_t flags[K_PCI_BARS];   /* bits 3:0 of the register */
    uint32_t written[K_PCI_BARS]; /* what the guest wrote last */
};

/* No address yet, as after a reset. registers: what the device's own hold. */
void guest_bars_init(struct guest_bars *bars, const uint64_t bytes[K_PCI_BARS],
                     const uint32_t registers[K_PCI_BARS]);
/* An access of configuration space goes to these registers. */
bool guest_bars_has(unsigned offset);
uint32_t guest_bars_read(const struct guest_bars *bars, unsigned offset, unsigned bytes);
/* Of 4 bytes; others are dropped. */
void guest_bars_write(struct guest_bars *bars, unsigned offset, unsigned bytes, uint32_t value);
/* Where the guest has put it; 0: nowhere. */
uint64_t guest_bars_base(const struct guest_bars *bars, unsigned bar);

#endif
