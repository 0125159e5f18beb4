#!/usr/bin/env bash
# logic/ stands on logic/kapi.h and the C library alone: all of it links with the fake kernel of the
# tests and nothing of the simulator, and each of its headers compiles by itself.
set -u
cd "$(dirname "$0")/../.." || exit 1
top=$PWD
. tests/scenario/lib.sh
cd "$top" || exit 1
cc=${CC:-gcc}

for header in logic/*.h logic/*/*.h; do
    is "$header compiles by itself" \
        "$(echo "#include \"$header\"" | "$cc" -std=gnu11 -I. -fsyntax-only -x c - 2>&1)" ""
done
cat >"$scratch/main.c" <<'END'
#include "tests/model/fake_kapi.h"
int main(void)
{
    struct fake_options options = { .seed = 1 };
    struct kernel *kernel = fake_new(&options);
    fake_run_until(kernel, FAKE_US(1));
    fake_free(kernel);
    return 0;
}
END
shopt -s nullglob
sources=(logic/*.c logic/*/*.c)
is "all of logic/ links with the fake alone" \
    "$("$cc" -std=gnu11 -O0 -I. -o "$scratch/alone" "$scratch/main.c" "${sources[@]}" 2>&1)" ""
is "and runs" "$("$scratch/alone" 2>&1; echo $?)" 0
echo "1..$cases"
[ "$failed" = 0 ]
