/* What libFuzzer calls. FUZZ_TARGET: one of fuzz_read.h. */
#include "tests/fuzz/fuzz_read.h"

#ifdef FUZZ_TARGET
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    FUZZ_TARGET.read(data, bytes);
    return 0;
}
#endif
