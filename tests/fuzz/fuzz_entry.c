/* What libFuzzer calls. FUZZ_TARGET: fuzz_nvme, fuzz_rdma, fuzz_nic, fuzz_ioat, fuzz_dsa,
 * fuzz_myri. */
#include "tests/fuzz/fuzz.h"

#ifdef FUZZ_TARGET
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t bytes_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t bytes_max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes,
                                 uint8_t *out, size_t out_bytes_max, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_input(&FUZZ_TARGET, data, bytes);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t bytes_max, unsigned seed)
{
    return fuzz_mutate(&FUZZ_TARGET, data, bytes, bytes_max, seed, LLVMFuzzerMutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes,
                                 uint8_t *out, size_t out_bytes_max, unsigned seed)
{
    return fuzz_cross(a, a_bytes, b, b_bytes, out, out_bytes_max, seed);
}
#endif
