#!/usr/bin/env bash
# Installs the packages of `make deb` where nothing else is, and uses them as a user without rights.
#   scripts/deb-check.sh [-x] [FOLDER]        FOLDER: that of the packages (default build/deb)
# As root, with debootstrap and the network: in a new Debian 12 of its own, by apt. Otherwise, or with -x: taken
# apart into a folder that nobody may write to. lintian looks at the packages first, if it is there. Not part of
# `make test`. Ends with status 0 if all is well; says each step.
set -eu
cd "$(dirname "$0")/.."
clean_root=yes
[ "${1:-}" != -x ] || { clean_root=no; shift; }
folder=$(realpath "${1:-build/deb}")
mirror=${MIRROR:-http://deb.debian.org/debian}
scratch=$(mktemp -d)
chmod 755 "$scratch"
mounted=
finish() {
    [ -z "$mounted" ] || umount "$mounted"
    chmod -R u+w "$scratch"
    rm -rf "$scratch"
}
trap finish EXIT
say() { echo "deb-check: $*"; }

packages=("$folder"/nudma_*.deb "$folder"/libnudma-dev_*.deb)
if [ ! -f "${packages[0]}" ] || [ ! -f "${packages[1]}" ]; then
    say "no packages in $folder: make deb"
    exit 1
fi
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "${packages[@]}" && say "lintian: clean"
else
    say "lintian is not installed: left out"
fi

# What the user does, in a folder of their own. $1: in front of the command's name, to find it in a folder.
cat >"$scratch/use.sh" <<'USE'
set -eu
cd "$(mktemp -d)"
export HOME=$PWD LC_ALL=C.UTF-8
nudma --version
[ "$(nudma list | wc -l)" -gt 50 ]
nudma init mine.cfg >/dev/null
nudma run mine.cfg --quick -q
nudma run pcie_bench/latency_size --quick -q
nudma check pcie_bench >claims.txt || [ $? = 1 ]
grep -q 'claims hold' claims.txt
nudma export mine | grep -q latency_mean_ns
[ -z "${INSTALLED:-}" ] || ! : 2>/dev/null >"$INSTALLED/usr/share/nudma/scenarios/x" || exit 1
echo "deb-check: used by $(id -un) in $PWD: $(tail -n 1 claims.txt)"
USE

if [ $clean_root = yes ] && [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
    root=$scratch/root
    say "a new Debian 12 in $root"
    debootstrap --variant=minbase bookworm "$root" "$mirror" >"$scratch/log" 2>&1 ||
        { tail "$scratch/log"; say "debootstrap has failed; -x does without"; exit 1; }
    mount -t proc proc "$root/proc" && mounted=$root/proc
    cp "${packages[@]}" "$scratch/use.sh" "$root/tmp/"
    chroot "$root" sh -c 'apt-get install -y --no-install-recommends /tmp/nudma_*.deb' >"$scratch/log" 2>&1 ||
        { tail "$scratch/log"; exit 1; }
    say "installed by apt, with what it depends on"
    chroot "$root" useradd -m visitor
    chroot "$root" su visitor -c 'INSTALLED=/ bash /tmp/use.sh'
    chroot "$root" sh -c 'apt-get install -y --no-install-recommends gcc pkg-config make /tmp/libnudma-dev_*.deb' \
        >"$scratch/log" 2>&1 || { tail "$scratch/log"; exit 1; }
    chroot "$root" su visitor -c 'cp -r /usr/share/doc/libnudma-dev/examples ~ && cd ~/examples/device &&
        make -s && ./polls poll.cfg poll_latency_ns'
    say "the library's example runs"
    chroot "$root" dpkg --purge libnudma-dev nudma >"$scratch/log"
    left=$(find "$root/usr" "$root/etc" -name '*nudma*' -not -path '*/dpkg/*')
    [ -z "$left" ] || { say "left when removed: $left"; exit 1; }
else
    say "taken apart into a folder (not in a Debian of its own)"
    mkdir "$scratch/root"
    for package in "${packages[@]}"; do dpkg-deb -x "$package" "$scratch/root"; done
    chmod -R a-w "$scratch/root"
    as_user=()
    [ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${as_user[@]}" env PATH="$scratch/root/usr/bin:$PATH" TMPDIR=/tmp INSTALLED="$scratch/root" \
        NUDMA_SCENARIOS="$scratch/root/usr/share/nudma/scenarios" bash "$scratch/use.sh"
fi
say "all is well"
