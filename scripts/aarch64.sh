#!/usr/bin/env bash
# Builds nudma for AArch64 and runs it under qemu-user: task switch, endianness and sizes of wire structures,
# and quick points whose fingerprints have to be those of this machine's build.
#   scripts/aarch64.sh [SCENARIO...]       default: pcie_bench/latency_size numa/memory_latency
# Compiler and linker are clang and lld, which build for any machine. Debian's packages of arm64 (C library,
# GLib, libconfig, SQLite, cmocka) and qemu-user-static are unpacked below $BUILD-aarch64/ by an apt of its own:
# nothing is installed, and this machine's list of architectures stays as it is.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
scripts/setup.sh aarch64
mkdir -p "$build-aarch64"
at=$(realpath "$build-aarch64")
root=$at/root
jobs=$(nproc 2>/dev/null || echo 2)

fail() {
    echo "aarch64: $1" >&2
    exit 1
}

fetch() { # the packages of both machines, into $root and $at/qemu
    mkdir -p "$at/apt/lists/partial" "$at/apt/cache/archives/partial" "$at/apt/host" "$root" "$at/qemu"
    : >"$at/apt/status"
    printf '%s\n' "Dir::State \"$at/apt\";" "Dir::State::lists \"$at/apt/lists\";" \
        "Dir::State::status \"$at/apt/status\";" "Dir::Cache \"$at/apt/cache\";" \
        'APT::Architecture "arm64";' 'APT::Architectures { "arm64"; };' 'APT::Sandbox::User "";' >"$at/apt/conf"
    APT_CONFIG=$at/apt/conf apt-get -qq update || fail "no list of Debian's packages for arm64"
    APT_CONFIG=$at/apt/conf apt-get -qq -y --download-only --no-install-recommends install libc6-dev \
        libgcc-12-dev libglib2.0-dev libconfig-dev libsqlite3-dev libcmocka-dev || fail "packages of arm64 are missing"
    (cd "$at/apt/host" && apt-get -qq -o APT::Sandbox::User= download qemu-user-static) || fail "qemu-user-static is missing"
    for deb in "$at"/apt/cache/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
    for deb in "$at"/apt/host/*.deb; do dpkg-deb -x "$deb" "$at/qemu"; done
    rm -rf "$at/apt"
    touch "$at/fetched"
}
[ -e "$at/fetched" ] || fetch

# A command for CC=, and an ar that knows objects of other machines.
mkdir -p "$at/bin"
printf '#!/bin/sh\nexec clang --target=aarch64-linux-gnu --sysroot="%s" -fuse-ld=lld %s "$@"\n' "$root" \
    -Wno-unused-command-line-argument >"$at/bin/aarch64-cc"
chmod +x "$at/bin/aarch64-cc"
ln -sf "$(command -v llvm-ar)" "$at/bin/ar"

targets=all
for test in tests/sim/engine/test_*.c tests/hw/test_*.c tests/models/pcie/link/test_tlp.c tests/models/nvme/test_nvme.c; do
    targets="$targets $at/build/${test%.c}"
done
# shellcheck disable=SC2086 # a list
PATH=$at/bin:$PATH PKG_CONFIG_SYSROOT_DIR=$root \
    PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig \
    make -j"$jobs" CC="$at/bin/aarch64-cc" OPT=-O1 DEBUG_INFO= BUILD="$at/build" $targets || fail "does not build"
make -j"$jobs" BUILD="$build" all

passed=0 failed=0
check() { # check NAME COMMAND...
    if "${@:2}"; then passed=$((passed + 1)); else
        echo "aarch64: $1: FAILED" >&2
        failed=$((failed + 1))
    fi
}
emulated() { "$at/qemu/usr/bin/qemu-aarch64-static" -L "$root" "$@"; }
quietly() { emulated "$@" >"$at/log" 2>&1 || { tail -n 20 "$at/log" >&2; false; }; }
for test in $targets; do
    [ "$test" = all ] || check "${test#"$at"/build/}" quietly "$test"
done

# What a run was, bit for bit.
points() { sqlite3 "$1" "SELECT scenario, point, seed, status, fingerprint FROM run ORDER BY 1, 2, 3"; }
same() {
    rm -f "$at"/here.db* "$at"/there.db*
    "$build/nudma" run "$1" --quick -q --db "$at/here.db" >/dev/null
    emulated "$at/build/nudma" run "$1" --quick -q --db "$at/there.db" >/dev/null
    [ -n "$(points "$at/here.db")" ] && diff <(points "$at/here.db") <(points "$at/there.db")
}
[ $# -gt 0 ] || set -- pcie_bench/latency_size numa/memory_latency
for scenario in "$@"; do check "$scenario" same "$scenario"; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
