/* The programs of tests/random/: kept scenarios first, then seeds; or, with arguments, what
 * scripts/random.sh asks for. */
#ifndef TESTS_RANDOM_RANDOM_MAIN_H
#define TESTS_RANDOM_RANDOM_MAIN_H

#include "tests/random/random_run.h"

struct random_area {
    const char *name;
    random_make_fn *make;
    enum random_mode mode;
    unsigned n_seeds; /* of `make test`; a tenth of them where sanitizers make all slow */
};

int random_main(const struct random_area *area, int argc, char **argv);

#endif
