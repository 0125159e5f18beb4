/*
 * What it does: type-0 base address registers: the low bits, which tell the size, read as zero;
 *   flags keep their value. There is neither I/O space nor an expansion ROM.
 * Follows: PCI Local Bus 3.0, 6.2.5.1.
 */
#include "logic/lending/bars.h"

#include <string.h>

#include "hw/pci_regs.h"

void lend_bars_init(struct lend_bars *bars, const uint64_t bytes[K_PCI_BARS],
                    const uint32_t registers[K_PCI_BARS])
{
    memset(bars, 0, sizeof *bars);
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        bars->bytes[i] = bytes[i];
        bars->flags[i] = bytes[i] != 0 ? registers[i] & PCI_BAR_FLAGS_MASK : 0;
    }
}

bool lend_bars_has(unsigned offset)
{
    return offset >= PCI_BAR0 && offset < PCI_BARS_END;
}

static bool wide(const struct lend_bars *bars, unsigned i)
{
    return bars->bytes[i] != 0 && (bars->flags[i] & PCI_BAR_TYPE_64) != 0 && i + 1 < K_PCI_BARS;
}

void lend_bars_place(struct lend_bars *bars, unsigned i, uint64_t base)
{
    if (bars->bytes[i] == 0)
        return;
    bars->written[i] = (uint32_t)base;
    if (wide(bars, i))
        bars->written[i + 1] = (uint32_t)(base >> 32);
}

uint64_t lend_bars_base(const struct lend_bars *bars, unsigned i)
{
    if (bars->bytes[i] == 0)
        return 0;
    uint64_t value = bars->written[i] & ~PCI_BAR_FLAGS_MASK;
    if (wide(bars, i))
        value |= (uint64_t)bars->written[i + 1] << 32;
    return value & ~(bars->bytes[i] - 1);
}

uint32_t lend_bars_read(const struct lend_bars *bars, unsigned offset, unsigned bytes)
{
    const unsigned i = (offset - PCI_BAR0) / 4;
    const bool upper = i > 0 && wide(bars, i - 1);
    uint32_t value = upper ? (uint32_t)(lend_bars_base(bars, i - 1) >> 32)
                           : (uint32_t)lend_bars_base(bars, i) | bars->flags[i];
    value >>= 8 * (offset & 3);
    return bytes == 4 ? value : value & ((1u << 8 * bytes) - 1);
}

void lend_bars_write(struct lend_bars *bars, unsigned offset, unsigned bytes, uint32_t value)
{
    if (bytes == 4)
        bars->written[(offset - PCI_BAR0) / 4] = value;
}
