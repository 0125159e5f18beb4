#!/usr/bin/env bash
# logic/ stands on logic/kapi.h and the C library alone: all of it links with the fake kernel of the
# tests and nothing of the simulator but how stacks are switched, and each of its headers compiles by itself.
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
#include "tests/support/fake/fake_kapi.h"
int main(void)
{
    struct fake_options options = { .seed = 1 };
    struct kernel *kernel = fake_new(&options);
    fake_run_until(kernel, FAKE_US(1));
    fake_free(kernel);
    return 0;
}
END
# What a part declares and another has to provide is no matter of the simulator's.
missing() {
    grep -oE "undefined reference to .[a-z_0-9]+" | grep -oE "[a-z_0-9]+$" | sort -u |
        while read -r name; do grep -qrw --include='*.h' "$name" logic || echo "$name"; done
}
shopt -s nullglob
sources=(tests/support/fake/*.c sim/engine/task_context.c sim/engine/task_switch.S logic/*.c logic/*/*.c)
"$cc" -std=gnu11 -O0 -w -I. -o "$scratch/alone" "$scratch/main.c" "${sources[@]}" 2>"$scratch/errors"
is "all of logic/ compiles" "$(grep -cE '^[^ ]+:[0-9]+:[0-9]+: (fatal )?error:' "$scratch/errors")" 0
is "and needs nothing but itself and the fake" "$(missing <"$scratch/errors")" ""
echo "1..$cases"
[ "$failed" = 0 ]
