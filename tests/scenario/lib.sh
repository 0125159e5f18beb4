# shellcheck shell=bash disable=SC2034
# What the tests of the command share; sourced from the top of the tree. Afterwards the working
# folder is an empty one that goes with the script, and $nudma is the command under test.
nudma=$(realpath "${NUDMA:-${BUILD:-build}/nudma}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# What only fills databases for the commands that a script is about: under the sanitizers the users'
# build, if there is one of the same version, as other tests have the sanitizers look at runs.
simulate=$nudma
if [ "${CONFIG:-}" = san ] && [ -x "${BUILD_ROOT:-build}/nudma" ] &&
    [ "$("${BUILD_ROOT:-build}/nudma" --version)" = "$("$nudma" --version)" ]; then
    simulate=$(realpath "${BUILD_ROOT:-build}/nudma")
fi
# Of many runs that differ in the scenario only, a test makes every n-th: scenario_stride() of scripts.
stride() { if [ "${CONFIG:-}" = san ]; then echo "$1"; else echo 1; fi; } # stride SANITIZED
export NUDMA_SCENARIOS=$PWD/scenarios
cd "$scratch" || exit 1
cases=0
failed=0

is() { # is NAME FOUND EXPECTED
    cases=$((cases + 1))
    if [ "$2" = "$3" ]; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# found:    %s\n# expected: %s\n' "$(head -c 400 <<<"$2")" "$(head -c 400 <<<"$3")"
        failed=$((failed + 1))
    fi
}
matches() { # matches TEXT PATTERN: a line of it does, as grep -E has it. That takes a process: short texts go without
    if [ ${#1} -lt 4096 ]; then
        local - line IFS=$'\n'
        set -f
        for line in $1; do [[ $line =~ $2 ]] && return 0; done
    fi
    grep -qE -- "$2" <<<"$1" # knows patterns that bash refuses, and empty lines
}
has() { # has NAME TEXT PATTERN
    cases=$((cases + 1))
    if matches "$2" "$3"; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# not in it: %s\n' "$3"
        head -n 30 <<<"$2" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}
# Not read-only: what a kill left in the write-ahead log is recovered by the first to come.
query() { sqlite3 -batch -cmd ".timeout 10000" "$1" "$2" 2>&1; }
