/* Random scenarios of one area: what must hold for all of them (random_properties.h). */
#include "tests/random/random_main.h"

int main(int argc, char **argv)
{
    const struct random_area area = { "dma", random_make_dma, RANDOM_VALID, 150 };
    return random_main(&area, argc, argv);
}
