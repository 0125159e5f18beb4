/* Replays the inputs of tests/fuzz/corpus/whatif/, or those that are named. */
#include "tests/fuzz/fuzz_read.h"

int main(int argc, char **argv)
{
    return fuzz_read_replay(&fuzz_whatif, argc, argv);
}
