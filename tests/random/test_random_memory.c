/* Random scenarios of one area: what must hold for all of them (random_properties.h). */
#include "tests/random/random_main.h"

int main(int argc, char **argv)
{
    const struct random_area area = { "memory", random_make_memory, RANDOM_VALID, 100 };
    return random_main(&area, argc, argv);
}
