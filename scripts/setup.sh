#!/bin/sh
# Installs what is missing, and only that: the one place of the project that installs.
#   scripts/setup.sh [run | test | fuzz | bench | slurm | analyze | aarch64]
# With everything there it looks, says nothing and changes nothing (no network, no root).
set -eu

purpose=${1:-run}
case $purpose in
run | test | fuzz | bench | slurm | analyze | aarch64) ;;
*)
    echo "setup: unknown purpose '$purpose'; expected run, test, fuzz, bench, slurm, analyze or aarch64" >&2
    exit 2
    ;;
esac

missing=""  # what was looked for, for people
packages="" # what Debian calls it

need() { # need DESCRIPTION PACKAGES COMMAND...: the command tells whether it is there
    what=$1 package=$2
    shift 2
    if ! "$@" >/dev/null 2>&1; then
        missing="$missing${missing:+, }$what"
        packages="$packages $package"
    fi
}
compiles() { # compiles COMPILER: it works and finds the C library's headers
    printf '#include <stdio.h>\nint main(void) { return EOF + 1; }\n' |
        "$1" -x c -o /dev/null -
}
compiles_sanitized() {
    printf 'int main(void) { return 0; }\n' |
        gcc -x c -fsanitize=address,undefined -o /dev/null -
}
compiles_fuzzer() {
    printf '%s\n' '#include <stdint.h>' '#include <stddef.h>' \
        'int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);' \
        'int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)' \
        '{ return bytes > 1 && data[0] == 255 ? 1 : 0; }' |
        clang -x c -fsanitize=fuzzer,address,undefined -o /dev/null -
}
library() { # library NAME LOWEST_VERSION
    pkg-config --exists "$1 >= $2"
}

found() { # found COMMAND: also where Debian keeps what only root runs
    PATH=$PATH:/usr/sbin:/sbin command -v "$1"
}

has_font() {
    find /usr/share/fonts /usr/local/share/fonts -name "*.ttf" -o -name "*.otf" 2>/dev/null | grep -q .
}

look() {
    missing="" packages=""
    if [ "$purpose" = slurm ]; then # beside what is there to run: nothing else is looked at
        need "Slurm (slurmctld, slurmd, sbatch)" slurm-wlm found slurmctld
        need munge munge found munged
        need "the sqlite3 command" sqlite3 command -v sqlite3
        return 0
    fi
    need make make command -v make
    need "gcc with the C library's headers" "gcc libc6-dev" compiles gcc
    need pkg-config pkg-config command -v pkg-config
    need libconfig libconfig-dev library libconfig 1.5
    need glib libglib2.0-dev library glib-2.0 2.70
    need sqlite libsqlite3-dev library sqlite3 3.30
    if [ "$purpose" = run ] || [ "$purpose" = test ]; then
        need gnuplot gnuplot-nox command -v gnuplot
        need "dot of graphviz" graphviz command -v dot
        need "a font for pictures" fonts-dejavu-core has_font
    fi
    if [ "$purpose" = analyze ]; then
        need cppcheck cppcheck command -v cppcheck
        need clang-tidy clang-tidy command -v clang-tidy
    fi
    if [ "$purpose" = aarch64 ]; then
        need "lld, a linker" lld command -v ld.lld
        need llvm-ar llvm command -v llvm-ar
        need "the sqlite3 command" sqlite3 command -v sqlite3
    fi
    if [ "$purpose" = test ] || [ "$purpose" = fuzz ] || [ "$purpose" = aarch64 ]; then
        need cmocka libcmocka-dev library cmocka 1.1.5
        need clang clang compiles clang
    fi
    if [ "$purpose" = fuzz ]; then
        need "libFuzzer and the sanitizers of clang" libclang-rt-dev compiles_fuzzer
    fi
    if [ "$purpose" = test ]; then
        need clang-format clang-format command -v clang-format
        need "the sanitizers of gcc" "gcc libc6-dev" compiles_sanitized
        need "lld, a linker" lld command -v ld.lld
        need "the sqlite3 command" sqlite3 command -v sqlite3
        need git git command -v git
        need pgrep procps command -v pgrep
        need "script, for a terminal" bsdutils command -v script
        need python3 python3 command -v python3
        need "Debian's pandas" python3-pandas /usr/bin/python3 -c 'import pandas'
        need "R, for the page on results" r-base-core command -v Rscript
        need xmllint libxml2-utils command -v xmllint
        need tshark tshark command -v tshark
        need protoc protobuf-compiler command -v protoc
        need shellcheck shellcheck command -v shellcheck
        need "chromium, to open the report" chromium command -v chromium
    fi
}

give_up() {
    echo "setup: missing: $missing" >&2
    echo "setup: $1" >&2
    echo "setup: on Debian or Ubuntu: apt-get install$packages" >&2
    exit 1
}

look
[ -n "$packages" ] || exit 0

command -v apt-get >/dev/null 2>&1 ||
    give_up "this is no Debian-like system (no apt-get): please install these with its own tools"
if [ "$(id -u)" -eq 0 ]; then
    as_root="env"
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo env"
    [ -t 0 ] || as_root="sudo -n env" # nobody there to type a password
    $as_root true ||
        give_up "not root, and sudo refused: please install these as root, then try again"
else
    give_up "not root, and there is no sudo: please install these as root, then try again"
fi

echo "setup: missing: $missing" >&2
echo "setup: installing:$packages" >&2
apt() {
    # shellcheck disable=SC2086 # as_root is a command with its arguments
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2
}
apt update || echo "setup: the package lists could not be renewed; trying with those here" >&2
# shellcheck disable=SC2086 # a list of names without spaces
apt install -y --no-install-recommends $packages ||
    give_up "apt-get install failed; what it said stands above"

look
[ -z "$packages" ] || give_up "installed, but still not usable"
echo "setup: everything is there" >&2
