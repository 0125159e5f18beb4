/* Random scenarios of one area: what must hold for all of them (random_properties.h). */
#include "tests/random/random_main.h"

int main(int argc, char **argv)
{
    const struct random_area area = { "network", random_make_network, RANDOM_VALID, 70 };
    return random_main(&area, argc, argv);
}
