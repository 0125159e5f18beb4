/* Replays the inputs of tests/fuzz/corpus/myri/, or those that are named. */
#include "tests/fuzz/fuzz.h"

int main(int argc, char **argv)
{
    return fuzz_replay(&fuzz_myri, argc, argv);
}
