#!/usr/bin/env bash
# The same scenario gives the same results bit for bit: with both compilers, with and without
# optimisation, under the sanitizers, whatever the number of jobs and the folder it is started from. Compared are all
# metrics, histograms and series, simulated time, number of events and the fingerprint of their
# order; not compared is what must differ: dates, wall-clock time, the version's text.
set -eu
cd "$(dirname "$0")/../.."
project=$PWD
root=${BUILD_ROOT:-build}
case $root in /*) from= ;; *) from=$project/ ;; esac # where the folders of builds start
jobs=$(nproc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cases=0
failed=0

verdict() { # verdict STATUS NAME
    cases=$((cases + 1))
    if [ "$1" = 0 ]; then echo "ok $cases - $2"; else
        echo "not ok $cases - $2"
        failed=$((failed + 1))
    fi
}

# Doubles as the eight bytes they are: text would round.
dump() { # dump DATABASE
    sqlite3 -readonly -batch "$1" "
        select 'run', scenario, point, seed, status, sim_ps, events, fingerprint from run
            order by scenario, point, seed;
        select 'metric', scenario, point, seed, name, unit, hex(ieee754_to_blob(value))
            from metric join run on run.id = run_id order by scenario, point, seed, name;
        select 'histogram', scenario, point, seed, name, unit, hex(ieee754_to_blob(lo)),
            hex(ieee754_to_blob(hi)), count
            from histogram join run on run.id = run_id order by scenario, point, seed, name, lo;
        select 'series', scenario, point, seed, name, unit, t_ps, hex(ieee754_to_blob(value))
            from series join run on run.id = run_id order by scenario, point, seed, name, t_ps;"
}

options=() # of the scenario that is run
simulate() { # simulate NAME FOLDER-TO-START-IN NUDMA SCENARIO JOBS: writes $scratch/NAME.txt
    local name=$1 folder=$2 nudma=$3 scenario=$4 n_jobs=$5
    # shellcheck disable=SC2086 # a command with its arguments
    if (cd "$folder" && ${WITHOUT_ASLR:-} "$nudma" run "$scenario" "${options[@]}" -j "$n_jobs" --db "$scratch/$name.db") \
        >"$scratch/$name.log" 2>&1 && dump "$scratch/$name.db" >"$scratch/$name.txt"; then
        return 0
    fi
    tail -n 20 "$scratch/$name.log" >&2
    return 1
}

echo "1..28"

# The builds of the test runner (gcc-O1 is that of the sanitizers), and one without optimisation.
build() { # build FOLDER VARIABLE=VALUE...
    local folder=$1
    shift
    make --no-print-directory -s -j"$jobs" BUILD="$folder" "$@" all >"$scratch/build.log" 2>&1 ||
        { grep -vE '^  (CC|AS|AR|LD) ' "$scratch/build.log" >&2; return 1; }
}
builds=(gcc-O3 gcc-O1 clang-O3 clang-O0)
declare -A folder_of=([gcc-O3]=$root [clang-O3]=$root-clang [gcc-O1]=$root-san [clang-O0]=$root-clang-O0)
read -r -a sanitized <<<"${SANITIZED:?as scripts/run-tests.sh has it}"
read -r -a clang <<<"${CLANG:?as scripts/run-tests.sh has it}"
for name in "${builds[@]}"; do
    status=0
    case $name in
    gcc-O3) flags=(CC=gcc OPT=-O3) ;;
    gcc-O1) flags=("${sanitized[@]}") ;;
    clang-O3) flags=("${clang[@]}") ;;
    # for nobody to debug; the command's own files are without optimisation in clang-O3, too
    clang-O0) flags=(CC=clang OPT=-O0 DEBUG_INFO= CLI_BASE="${folder_of[clang-O3]}") ;;
    esac
    build "${folder_of[$name]}" "${flags[@]}" || status=1
    verdict $status "builds: $name"
done

[ $failed = 0 ] || exit 1

reference() { # reference SCENARIO OPTION...: what the others are compared with
    local status=0 points metrics
    scenario=$1
    options=("${@:2}")
    simulate reference "$project" "$from${folder_of[gcc-O3]}/nudma" "$scenario" 1 || status=1
    points=$(grep -c '^run|' "$scratch/reference.txt" 2>/dev/null || true)
    metrics=$(grep -c '^metric|' "$scratch/reference.txt" 2>/dev/null || true)
    # Several points, all done, each with a metric: otherwise there is nothing to compare.
    if [ "${points:-0}" -lt 2 ] || [ "${metrics:-0}" -lt "$points" ] ||
        grep '^run|' "$scratch/reference.txt" | grep -qv '|done|'; then
        status=1
    fi
    verdict $status "$scenario: reference, gcc -O3 -j1"
    echo "# $points points, $metrics metrics"
}
compare() { # compare NAME FOLDER NUDMA JOBS
    local status=0
    simulate other "$2" "$3" "$scenario" "$4" || status=1
    if [ $status = 0 ] && ! cmp -s "$scratch/reference.txt" "$scratch/other.txt"; then
        diff "$scratch/reference.txt" "$scratch/other.txt" | head -n 10 >&2 || true
        status=1
    fi
    verdict $status "$scenario: $1 gives the same bits"
    rm -f "$scratch"/other.*
}
compare_builds() {
    compare "gcc -O1 and sanitizers, -j2" "$project" "$from${folder_of[gcc-O1]}/nudma" 2
    compare "clang -O3 -j2" "$project" "$from${folder_of[clang-O3]}/nudma" 2
    compare "clang -O0 -j1" "$project" "$from${folder_of[clang-O0]}/nudma" 1
}

mkdir -p "$scratch/elsewhere"
for name in pcie_bench/latency_size numa/memory_bandwidth; do
    reference $name --quick
    compare "gcc -O3 -j2" "$project" "$from${folder_of[gcc-O3]}/nudma" 2
    compare_builds
    compare "another folder" "$scratch/elsewhere" "$from${folder_of[gcc-O3]}/nudma" 2
    rm -f "$scratch"/reference.*
done
# A NIC with two functions under TCP, a bridge with windows, a GPU that is lent.
reference ioctopus/fig06_tcp_rx --filter buffer_bytes=65536 --set measure.warmup_us=1000 \
    --set measure.duration_us=1000
compare_builds
rm -f "$scratch"/reference.*
for name in device_lending/fig04_ntb_dma \
    "smartio/fig22_bandwidth_test --set programs.bandwidth.volume_bytes=4194304"; do
    # shellcheck disable=SC2086 # a scenario and its options
    reference $name --quick
    compare_builds
    rm -f "$scratch"/reference.*
done

[ $failed = 0 ]
