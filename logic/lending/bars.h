/*
 * Base address registers that software sees in place of the device's own: those of the shadow
 * device, and those of a guest. What software writes there never reaches the device.
 */
#ifndef LOGIC_LENDING_BARS_H
#define LOGIC_LENDING_BARS_H

#include "logic/kapi.h"

struct lend_bars {
    uint64_t bytes[K_PCI_BARS];   /* powers of two; 0: no such register */
    uint32_t flags[K_PCI_BARS];   /* bits 3:0 of the register */
    uint32_t written[K_PCI_BARS]; /* what software wrote last */
};

/* Sets all addresses to 0, as a reset does. `registers`: what the device's own registers hold, for
 * the flags. */
void lend_bars_init(struct lend_bars *bars, const uint64_t bytes[K_PCI_BARS],
                    const uint32_t registers[K_PCI_BARS]);
/* Assigns an address, as firmware does. */
void lend_bars_place(struct lend_bars *bars, unsigned bar, uint64_t base);
/* True: an access of configuration space at this offset is one of these registers. */
bool lend_bars_has(unsigned offset);
uint32_t lend_bars_read(const struct lend_bars *bars, unsigned offset, unsigned bytes);
/* Drops writes of other sizes than 4 bytes. */
void lend_bars_write(struct lend_bars *bars, unsigned offset, unsigned bytes, uint32_t value);
/* The address that software has assigned; 0: none. */
uint64_t lend_bars_base(const struct lend_bars *bars, unsigned bar);

#endif
