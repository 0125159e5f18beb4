#!/usr/bin/env bash
# Builds and runs the tests. The last line is "N passed, N failed", over all builds; the one before it
# says how many distinct cases these are, and in how many builds they ran.
#   scripts/run-tests.sh [-k WORD] [gcc] [san] [hostile] [determinism]
#
# Without names all of them. First come the builds, in this order, then all tests, longest first:
#   gcc          everything in tests/ with the build that users get
#   san          the same under the address and undefined-behaviour sanitizers, but for some whole
#                runs (chosen(), below; scenario_stride(); $simulate of tests/scenario/lib.sh)
#   hostile      rooms whose code runs on the engine (hostile_rooms()) by the other compiler, clang, and with
#                tiny pools and queues of two; all tests of rooms are compiled
#   determinism  tests/scenario/test_determinism.sh: both compilers, -O0, -O3, sanitizers
# -k runs only the tests whose path contains WORD. BUILD names the folder of the first build, the
# others get its name and a suffix. JOBS tests run side by side (default: number of CPUs).
# $BUILD/test-results/times has what each build and test took, longest first: seconds of processor time,
# of the clock, where, which.
#
# What counts: a program says "ok" or "not ok" once for each of its cases (TAP; cmocka's and that of
# the scripts). A case that was skipped counts as failed. A program that crashes, runs into its time
# limit, ends with a bad status although no case failed, or ends before all cases of its plan have run
# counts as one failure more. A script without such lines counts as one case, by its exit status; a
# program without any is a failure, and so are a build with errors, each of its programs that does not
# come out of it, and each test that was to run and of which there is no count.
set -u
cd "$(dirname "$0")/.." || exit 1

export BUILD=${BUILD:-build}
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
word=
configs=()
while [ $# -gt 0 ]; do
    case $1 in
    -k) word=${2:?-k needs a word}; shift ;;
    gcc | san | hostile | determinism) configs+=("$1") ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2 ;;
    esac
    shift
done
[ ${#configs[@]} -gt 0 ] || configs=(gcc san hostile determinism)
export RESULTS=$BUILD/test-results
rm -rf "$RESULTS"
mkdir -p "$RESULTS" && touch "$RESULTS/expected" || exit 1

# The builds take nothing from a make around this one (`make -j8 CC=... test`).
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CC OPT CLI_OPT TEST_OPT DEBUG_INFO SANITIZE TRAP HOSTILE HOSTILE_BASE
export CMOCKA_MESSAGE_OUTPUT=TAP G_DEBUG=fatal-criticals
# How the builds of two tests are made. -g1: files and lines of reports; by clang none, as gcc's builds are there to debug. The command's own files without
# optimisation: they are compiled in half the time, and little runs in them.
# TRAP: undefined behaviour is an illegal instruction, of which address sanitizer says file, line and callers. What it
# would say beyond that (make SANITIZE=address,undefined without TRAP) is 13 MB of data in the command, of which each
# start reads and scans a good part: 5,700 page faults and 25 ms.
export SANITIZED="CC=gcc OPT=-O1 CLI_OPT=-O0 DEBUG_INFO=-g1 SANITIZE=address,undefined TRAP=1"
export CLANG="CC=clang OPT=-O3 CLI_OPT=-O0 DEBUG_INFO="
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:handle_sigill=1
# Address-space randomisation of newer kernels breaks the sanitizers of gcc 12 now and then.
if setarch "$(uname -m)" -R true 2>/dev/null; then
    WITHOUT_ASLR="setarch $(uname -m) -R"
else
    WITHOUT_ASLR=
fi
export WITHOUT_ASLR
# What `time` writes of each build and test: seconds of processor time (user, system), then of the clock.
export TIMEFORMAT='%3U %3S %3R'

# ---- One test -------------------------------------------------------------------------------

run_one() { # run_one CONFIG TEST: test is tests/ROOM/test_x or tests/scenario/test_x.sh
    local config=$1 test=$2 root=$BUILD folder=$BUILD limit=120 kind=program status passed failed why
    [ "$config" = gcc ] || [ "$config" = determinism ] || folder=$BUILD-$config
    local log=$RESULTS/$config/${test//\//.}
    local command=("$folder/$test")
    case $test in *.sh) kind=script command=(bash "$test") limit=300 ;; esac
    if [ "$config" = san ]; then
        limit=$((limit * 3))
        # shellcheck disable=SC2206 # a command with its arguments
        command=($WITHOUT_ASLR "${command[@]}")
    fi
    if [ $kind = program ] && [ ! -x "$folder/$test" ]; then
        printf '  %-11s %-48s was not built: 1 FAILED\n' "$config" "$test"
        echo "0 1" >"$log.count"
        return
    fi
    # A script finds the build it is to test in these; all start in the project's folder.
    { time BUILD_ROOT=$root BUILD="$folder" NUDMA="$folder/nudma" CONFIG="$config" \
        timeout -k 10 $limit "${command[@]}" >"$log.out" 2>"$log.err" </dev/null; } 2>"$log.time"
    status=$?
    read -r passed failed why < <(
        awk -v status=$status -v kind=$kind -v cases="$log.cases" -f scripts/count-tap.awk "$log.out"
    )
    echo "$passed $failed" >"$log.count"
    if [ "$failed" = 0 ]; then
        printf '  %-11s %-48s %4d passed\n' "$config" "$test" "$passed"
    else
        # One write, so that tests side by side do not mix their output.
        printf '%s\n' "$(
            printf '  %-11s %-48s %4d passed, %d FAILED %s\n' "$config" "$test" "$passed" \
                "$failed" "${why:+($why)}"
            tail -n 80 "$log.out" | sed 's/^/    | /'
            tail -n 80 "$log.err" | sed 's/^/    ! /'
        )"
    fi
}
export -f run_one

# ---- All of them ------------------------------------------------------------------------------

build() { # build CONFIG FOLDER TARGET... VARIABLE=VALUE...
    local config=$1 folder=$2 log=$RESULTS/$1.build
    shift 2
    printf '  %-11s building in %s\n' "$config" "$folder"
    mkdir -p "$RESULTS/$config"
    if ! { time make --no-print-directory -k -j"$jobs" BUILD="$folder" "$@" >"$log" 2>&1 \
        </dev/null; } 2>"$RESULTS/$config/build.time"; then
        printf '  %-11s does not build without errors: 1 FAILED\n' "$config"
        grep -vE '^  (CC|AS|AR|LD) ' "$log" | tail -n 60 | sed 's/^/    | /'
        echo "0 1" >"$RESULTS/$config/build.count"
    fi
}

rooms() { find tests -name 'test_*.c' -not -path 'tests/scenario/*' -not -path 'tests/random/*' | sort; }
# Logic on the fake kernel, files, texts and headers have no pools nor queues of sim/engine/: there the build would
# differ by its compiler only, which runs the same logic in tests/system/.
hostile_rooms() { rooms | grep -vE '^tests/(cli|hw|logic|sim/config|sim/store|sim/trace)/'; }
scenarios() { { find tests/scenario -name 'test_*.c' -o -name 'test_*.sh'; find tests/random -name 'test_*.c'; } | sort; }

chosen() { # chosen CONFIG <LIST-OF-TESTS: "CONFIG TEST" of those that run there
    local config=$1 test
    mkdir -p "$RESULTS/$config"
    while read -r test; do
        case $test in
        */test_determinism.sh) [ "$config" = determinism ] || continue ;;
        # not about a build, or always about that one
        */test_scripts.sh | */test_install.sh | */test_logic_alone.sh | */test_faults.sh) [ "$config" = gcc ] || continue ;;
        # what whole runs come to, what is left of one that is killed or of several at one database, what figures look
        # like: other tests (test_report.sh draws them, test_campaign.sh runs side by side, test_copy_programs.c has the
        # copy engines) have the sanitizers look at the same code
        */test_claims_tables.sh | */test_claims.sh | */test_quantum.c | */test_kill.sh | */test_array.sh | */test_plot.sh | \
            */test_locked.sh | */test_copy_engines.sh) [ "$config" = gcc ] || continue ;;
        esac
        case $test in *"$word"*) echo "$config ${test%.c}" ;; esac
    done
}
of_config() { # of_config CONFIG KIND: the longest tests are scenarios, and rooms are the others
    case $1.$2 in
    gcc.scenarios | san.scenarios) scenarios ;;
    gcc.rooms | san.rooms) rooms ;;
    hostile.rooms) hostile_rooms ;;
    determinism.first) echo tests/scenario/test_determinism.sh ;;
    esac | chosen "$1"
}

if ! { scenarios; rooms; } | grep -qF -- "$word"; then
    echo "run-tests: no test's path contains \"$word\"" >&2
    exit 2
fi

for config in "${configs[@]}"; do
    case $config in
    gcc) build gcc "$BUILD" CC=gcc OPT=-O3 all tests ;;
    san)
        # The tests' own files: of them the first build warns, and they are not what is looked at.
        # shellcheck disable=SC2086 # variables of make
        build san "$BUILD-san" $SANITIZED TEST_OPT="-O0 -w -fno-sanitize=undefined" all tests
        ;;
    hostile)
        # shellcheck disable=SC2086 # variables of make
        build clang "$BUILD-clang" $CLANG all room-test-objects
        # shellcheck disable=SC2086,SC2046
        build hostile "$BUILD-hostile" $CLANG HOSTILE=1 HOSTILE_BASE="$BUILD-clang" \
            $(hostile_rooms | sed "s|^|$BUILD-hostile/|; s|\.c\$||")
        ;;
    determinism) ;; # builds what it lacks
    esac
done
# Short ones at the end keep all processors busy.
for kind in first scenarios rooms; do
    for config in "${configs[@]}"; do of_config "$config" $kind; done
done >"$RESULTS/expected"
xargs -r -P "$jobs" -n 2 bash -c 'run_one "$@"' run_one <"$RESULTS/expected"

# A test of which nothing is known, whether it was killed with all that watched it or never began.
while read -r config test; do
    count=$RESULTS/$config/${test//\//.}.count
    grep -qxE '[0-9]+ [0-9]+' "$count" 2>/dev/null && continue
    printf '  %-11s %-48s left no count: 1 FAILED\n' "$config" "$test"
    echo "0 1" >"$count"
done <"$RESULTS/expected"

find "$RESULTS" -name '*.time' -exec awk '
    { gsub(/,/, ".") } # of some languages
    /^[0-9.]+ [0-9.]+ [0-9.]+$/ {
        n = split(FILENAME, part, "/")
        sub(/\.time$/, "", part[n])
        printf "%.2f %.2f %s %s\n", $1 + $2, $3, part[n - 1], part[n]
    }' {} + | sort -rn >"$RESULTS/times"
awk -v configs="${configs[*]}" '
    { all += $1; if ($4 == "build") build[$3] += $1; else test[$3] += $1 }
    END {
        printf "  %.0f s of processor time: build + test", all
        n = split(configs, config, " ")
        build["hostile"] += build["clang"] # which it takes its objects from
        for (i = 1; i <= n; i++)
            printf "%s %s %.0f + %.0f", (i > 1 ? "," : ""), config[i], build[config[i]], test[config[i]]
        print ""
    }' "$RESULTS/times"

# What failed, once more and in short, since the end of a long log is what is read first.
find "$RESULTS" -name '*.count' | sort | while read -r count; do
    read -r _ failed <"$count"
    [ "$failed" = 0 ] && continue
    log=${count%.count} config=${count%/*}
    printf '  FAILED: %s %s\n' "${config##*/}" "${log##*/}"
    [ ! -e "$log.out" ] || grep -A 3 '^not ok' "$log.out" | head -n 20 | sed 's/^/    /'
done >"$RESULTS/failures"
cat "$RESULTS/failures"
{
    find "$RESULTS" -name '*.cases' -exec awk '
        { n = split(FILENAME, part, "/"); builds[part[n] "/" $0]++ }
        END {
            for (name in builds) { cases++; most = builds[name] > most ? builds[name] : most; in_n[builds[name]]++ }
            for (n = most; n >= 1; n--)
                if (in_n[n]) list = list (list ? ", " : "") in_n[n] " in " n (n == 1 ? " build" : " builds")
            print cases " distinct cases: " list
        }' {} +
    find "$RESULTS" -name '*.count' -exec cat {} + |
        awk '{ passed += $1; failed += $2 }
             END { if (passed + failed == 0) failed = 1 # nothing has run
                   print passed + 0 " passed, " failed + 0 " failed" }'
} >"$RESULTS/summary"
cat "$RESULTS/summary"
tail -n 1 "$RESULTS/summary" | grep -q ', 0 failed$'
