/*
 * Caches as the model has them: a power of two of sets of lines of 64 bytes.
 */
#include "cli/import/plan.h"

bool import_divide_llc(uint64_t bytes, uint64_t cores, double slice_bytes, uint64_t ways,
                       double family_ways, unsigned *n_slices, unsigned *n_ways)
{
    const uint64_t slices[3] = { slice_bytes > 0.0 ? (uint64_t)((double)bytes / slice_bytes + 0.5)
                                                   : 0,
                                 cores, 0 };
    const uint64_t asked[2] = { ways, (uint64_t)family_ways };
    for (unsigned s = 0; s < 2 + 64; s++) {
        const uint64_t n = s < 2 ? slices[s] : 64 - (s - 2);
        for (unsigned a = 0; n >= 1 && n <= 64 && bytes % n == 0 && a < 2 + 32; a++) {
            const uint64_t k = a < 2 ? asked[a] : 32 - (a - 2);
            const uint64_t sets = k >= 1 && k <= 32 && bytes / n % (k * 64) == 0
                                      ? bytes / n / (k * 64)
                                      : 0;
            if (sets == 0 || (sets & (sets - 1)) != 0)
                continue;
            *n_slices = (unsigned)n;
            *n_ways = (unsigned)k;
            return true;
        }
    }
    return false;
}

unsigned import_divide_private(uint64_t bytes, uint64_t wanted)
{
    uint64_t odd = bytes / 64, best = 0;
    if (bytes == 0 || bytes % 64 != 0)
        return 0;
    while (odd % 2 == 0)
        odd /= 2;
    for (uint64_t ways = odd; ways <= 32 && bytes % (ways * 64) == 0 && best < MAX(wanted, 1);
         ways *= 2)
        best = ways;
    return (unsigned)best;
}
