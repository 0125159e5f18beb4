#!/usr/bin/env bash
# Two Debian packages of this tree: nudma (the command, its scenarios, manual pages, completions) and
# libnudma-dev (library, headers, examples). `make deb` calls it.
#   scripts/make-deb.sh FOLDER VERSION
# What make installs is taken apart below FOLDER; the packages come into FOLDER. MAINTAINER is who the
# packages name; SOURCE_DATE_EPOCH (default: the last commit's time) dates them.
set -eu
cd "$(dirname "$0")/.."
[ $# = 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1") version=$2
maintainer=${MAINTAINER:-nudma authors <nudma@users.noreply.github.com>}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export LC_ALL=C.UTF-8
umask 022
architecture=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
tree=$folder/nudma dev=$folder/libnudma-dev
rm -rf "$tree" "$dev" "$folder/debian"
mkdir -p "$tree/DEBIAN" "$dev/DEBIAN" "$dev/usr/lib/$multiarch" "$dev/usr/share/doc/libnudma-dev"

make --no-print-directory install DESTDIR="$tree" PREFIX=/usr LIBDIR="/usr/lib/$multiarch" \
    ZSHDIR=/usr/share/zsh/vendor-completions >"$folder/log" || { tail "$folder/log" >&2; exit 1; }

# What programs that are linked with it need is a package of its own.
mv "$tree/usr/lib/$multiarch/libnudma.a" "$tree/usr/lib/$multiarch/pkgconfig" "$dev/usr/lib/$multiarch/"
mv "$tree/usr/include" "$dev/usr/include"
mv "$tree/usr/share/doc/nudma/examples" "$dev/usr/share/doc/libnudma-dev/examples"
rm -rf "$tree/usr/lib" "$tree/usr/share/doc/nudma/LICENSE"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/nudma"
strip --strip-debug --remove-section=.comment --remove-section=.note --enable-deterministic-archives \
    "$dev/usr/lib/$multiarch/libnudma.a"

finish() { # finish TREE PACKAGE: what every package has
    local doc=$1/usr/share/doc/$2
    mkdir -p "$doc"
    {
        echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
        printf '\nFiles: *\nCopyright: 2026 the nudma authors\nLicense: BSD-3-Clause\n'
        sed '1,/^Copyright/d; s/^$/./; s/^/ /' LICENSE | sed '1{/^ \.$/d}'
    } >"$doc/copyright"
    {
        printf 'nudma (%s) unstable; urgency=medium\n\n  * %s\n\n' "$version" \
            "Built from $(git describe --always 2>/dev/null || echo 'a tree without git')."
        printf ' -- %s  %s\n' "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$doc/changelog.gz"
    find "$1/usr/share" -path '*/man/man1/*.1' -exec gzip -9n {} +
    (cd "$1" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
}
control() { # control TREE PACKAGE SECTION DEPENDS RECOMMENDS DESCRIPTION...: lines of the description
    local tree=$1
    {
        printf 'Package: %s\nSource: nudma\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' \
            "$2" "$version" "$architecture" "$maintainer"
        printf 'Installed-Size: %s\n' "$(du -sk "$tree/usr" | cut -f 1)"
        printf 'Depends: %s\n' "$4"
        [ -z "$5" ] || printf 'Recommends: %s\n' "$5"
        printf 'Section: %s\nPriority: optional\n' "$3"
        shift 5
        printf 'Description: %s\n' "$1"
        shift
        printf ' %s\n' "$@"
    } >"$tree/DEBIAN/control"
}

# nudma-slurm-array says in its head how it is called.
{
    printf '.TH NUDMA\\-SLURM\\-ARRAY 1 "" "nudma %s" "User Commands"\n.SH NAME\n' "$version"
    printf 'nudma\\-slurm\\-array \\- %s\n' "a campaign of nudma as a Slurm array job"
    printf '.SH SYNOPSIS\n.B nudma\\-slurm\\-array\n%s\n' \
        '[\-n SHARDS] [\-c CPUS] [\-d FOLDER] [\-s OPTION]... [\-w] TARGET.db SCENARIO... [OPTION of nudma run]...'
    echo '.SH OPTIONS'
    sed -nE 's/-/\\-/g; s/^#   (\\-[a-z]( [A-Z]+)?) +(.*)/.TP\n.B \1\n\3/p' scripts/slurm-array.sh
    printf '.SH SEE ALSO\n.BR nudma (1),\n.BR nudma\\-merge (1)\n'
} >"$tree/usr/share/man/man1/nudma-slurm-array.1"

mkdir "$folder/debian"
printf 'Source: nudma\n\nPackage: nudma\nArchitecture: any\n' >"$folder/debian/control"
depends=$(cd "$folder" && dpkg-shlibdeps -O nudma/usr/bin/nudma 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
rm -rf "$folder/debian"
[ -n "$depends" ] || { echo 'make-deb.sh: dpkg-shlibdeps says nothing of what nudma depends on' >&2; exit 1; }
finish "$tree" nudma
finish "$dev" libnudma-dev
control "$tree" nudma science "$depends" "gnuplot-nox | gnuplot, graphviz" \
    "simulator of DMA across sockets, hosts and copy engines" \
    "nudma simulates servers of several sockets and PCIe clusters at the level of" \
    "PCIe packets and cache lines: NICs, NVMe drives, GPUs and copy engines that" \
    "are driven by real drivers in C, across sockets, non-transparent bridges and" \
    "RDMA. Scenarios are text files; results go into one SQLite file."
control "$dev" libnudma-dev libdevel \
    "libconfig-dev, libglib2.0-dev, libsqlite3-dev, libc6-dev" "nudma" \
    "simulator of DMA across sockets, hosts and copy engines (library)" \
    "The library of nudma for programs that embed simulations, and for device" \
    "models outside of its tree: header, static library, examples."
for package in nudma libnudma-dev; do
    # dpkg-deb takes the time of SOURCE_DATE_EPOCH
    dpkg-deb --root-owner-group --build "$folder/$package" \
        "$folder/${package}_${version}_$architecture.deb" >>"$folder/log"
    echo "$folder/${package}_${version}_$architecture.deb"
done
