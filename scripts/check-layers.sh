#!/usr/bin/env bash
# Who may know whom: the rooms of docs/architecture.md, checked by the includes of every file and,
# with the folder of a build, by the symbols that its objects take from each other. Nor does SQL stand
# outside sim/store.
#   scripts/check-layers.sh [BUILD]
# Prints every breach as "file:line: includes X: why not" or "file: takes SYMBOL of X: why not"; ends
# with status 1 if there was one.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-}
folder_files_max=30

floors=(hw sim logic models workloads cli)
present=()
for floor in "${floors[@]}" tests bench; do [ ! -d "$floor" ] || present+=("$floor"); done
mapfile -t files < <(find "${present[@]}" -name '*.[ch]' | sort)
[ ${#files[@]} -gt 0 ] || { echo "check-layers: no files found" >&2; exit 1; }

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
rules=$scratch/rules.awk symbols=$scratch/symbols

# The rooms from the ground up: each knows only rooms above it in this list, so no two are in a
# circle; and of those only what the rules below leave.
cat >"$rules" <<'AWK'
function rooms_in_order() {
    return "hw" \
        " sim/engine sim/trace sim/config sim/store" \
        " logic logic/dma logic/copy logic/net logic/steering logic/nic logic/nvme logic/rdma logic/nvmeof logic/gpu logic/lending logic/sisci" \
        " logic/dnvme logic/mx logic/openmx logic/myri logic/mpi" \
        " models/base models/pcie/link models/pcie/config models/pcie/endpoint" \
        " models/pcie/switch models/pcie/iommu models/pcie/ntb models/numa/dram models/numa/interconnect models/numa" \
        " models/pcie/root" \
        " models/ether models/nfp models/nic models/nvme models/rdma models/gpu models/ioat models/dsa models/myri" \
        " models/host models/os models/vm models/world models/trace" \
        " workloads/base workloads/setup workloads/bench workloads/programs workloads/copy workloads/dnvme workloads/rdma workloads/nvmeof workloads/fio workloads/openmx workloads/load workloads workloads/embed" \
        " cli/base cli/claims cli/results cli/plot cli/campaign cli/topology cli/import cli/measure cli/trace cli/explain cli/report cli/whatif" \
        " cli/commands"
}
function is_device(room) { return room ~ /^models\/(nfp|nic|nvme|rdma|gpu|ioat|dsa|myri)$/ }
function free_room(room) { return room ~ /^(tests|bench)(\/|$)/ }
# Why a file in the room `from` may not know what is in the room `to`; "" if it may.
function why_not(from, to,    n, name) {
    if (from == to || free_room(from)) return ""
    if (!place_known) {
        n = split(rooms_in_order(), name, " ")
        while (n > 0) { place[name[n]] = n; n-- }
        place_known = 1
    }
    if (free_room(to)) return "nothing outside " to "/ knows what is in it"
    if (!(from in place)) return from "/ is no room: scripts/check-layers.sh has the list"
    if (!(to in place)) return to "/ is no room: scripts/check-layers.sh has the list"
    if (from ~ /^logic/ && to !~ /^(hw|logic)/)
        return "logic/ stands as it would in a kernel: it knows hw/ and logic/ only"
    if (from ~ /^models/ && to ~ /^logic/ && from !~ /^models\/(os|vm)$/)
        return "of the models only models/os and models/vm implement what logic/ asks for"
    if (is_device(from) && is_device(to))
        return "a device model never knows another one: they meet as TLPs on a link"
    if (is_device(from) && to ~ /^models\/(numa|numa\/dram|numa\/interconnect|host|pcie\/(root|iommu|switch|ntb))$/)
        return "a device sees its link and its configuration space, not what lies behind"
    if (from ~ /^models\/pcie/ && from != "models/pcie/root" && to ~ /^models\/numa/ ||
        from ~ /^models\/numa/ && to ~ /^models\/pcie/)
        return "models/pcie and models/numa meet in models/pcie/root alone"
    if (place[to] > place[from]) return from "/ lies below " to "/"
    return ""
}
function room_of(path) { sub(/\/[^\/]*$/, "", path); return path }
AWK

breaches=0
breach() { breaches=$((breaches + $(wc -l <<<"$1"))); printf '%s\n' "$1"; }

# ---- Folders -------------------------------------------------------------------------------------
wide=$(printf '%s\n' "${files[@]}" | grep -vE '^(tests|bench)/' |
    awk -v max=$folder_files_max '{ sub(/\/[^\/]*$/, ""); n[$0]++ }
        END { for (f in n) if (n[f] > max) print f ":1: " n[f] " files of code, more than " max }')
[ -z "$wide" ] || breach "$wide"

# ---- Includes ------------------------------------------------------------------------------------
cat >"$scratch/includes.awk" <<'AWK'
function breach(why) { print FILENAME ":" FNR ": includes " shown ": " why }

FNR == 1 { in_repository[FILENAME] = 1 }

/^[ \t]*#[ \t]*include[ \t]*</ {
    shown = $0; sub(/^[^<]*/, "", shown); sub(/>.*/, ">", shown)
    from = room_of(FILENAME)
    if (shown ~ /^<(glib|gio|gmodule|gobject)/) {
        glib[FILENAME] = FNR
        if (from ~ /^(hw|models|logic)/) breach("GLib stays out of models/ and logic/")
    }
    if (shown ~ /^<sqlite3/ && from !~ /^(sim\/store|tests|bench)/)
        breach("the database is the business of sim/store alone: sim/store/query.h answers")
    if (shown ~ /^<libconfig/ && from !~ /^(sim\/config|tests|bench)/)
        breach("files of settings are the business of sim/config alone")
    next
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    included = $0; sub(/^[^"]*"/, "", included); sub(/".*/, "", included)
    shown = "\"" included "\""
    from = room_of(FILENAME)
    if (included !~ /^(hw|sim|models|logic|workloads|cli|tests|bench)\//) {
        breach("write the path from the project folder on, as in \"sim/engine/types.h\"")
        next
    }
    edge_to[FILENAME, ++n_edges[FILENAME]] = included
    edge_line[FILENAME, n_edges[FILENAME]] = FNR
    if (included ~ /\.c$/ && !free_room(from)) breach("a .c file is not included")
    why = why_not(from, room_of(included))
    if (why == "" && included ~ /_internal\.h$/ && room_of(included) != from && !free_room(from))
        why = "the inside of another room"
    if (why != "") breach(why)
}
# SQL, by its key words in capitals, in a string or the part of one that stands on this line.
BEGIN {
    sql = "[\"( ](SELECT .* FROM|INSERT (OR [A-Z]+ )?INTO|DELETE FROM|UPDATE .* SET|PRAGMA|ATTACH" \
          "|JOIN [a-z_.]+( [a-z]+)? ON|(CREATE|DROP|ALTER) (TEMP )?(TABLE|VIEW|INDEX))[ \"]" \
          "|^\"SELECT "
}
/"/ && !/^[ \t]*#[ \t]*include/ && room_of(FILENAME) !~ /^(sim\/store|tests|bench)/ {
    text = $0
    gsub(/\\./, "", text)
    while (match(text, /"[^"]*"/)) {
        if (substr(text, RSTART, RLENGTH) ~ sql)
            print FILENAME ":" FNR ": SQL outside sim/store: sim/store/query.h answers"
        text = substr(text, RSTART + RLENGTH)
    }
}
# Depth first over headers. colour 1: on the way, 2: done.
function visit(file, trail,    i, next_file) {
    colour[file] = 1
    for (i = 1; i <= n_edges[file]; i++) {
        next_file = edge_to[file, i]
        if (colour[next_file] == 1)
            print file ":" edge_line[file, i] ": includes go round in a circle: " trail " -> " next_file
        else if (colour[next_file] != 2 && next_file in in_repository)
            visit(next_file, trail " -> " next_file)
    }
    colour[file] = 2
}
# Where GLib comes in below a header, or "".
function glib_below(file,    i, found) {
    if (file in glib) return file
    if (file in seen) return seen[file]
    seen[file] = ""
    for (i = 1; i <= n_edges[file] && found == ""; i++) found = glib_below(edge_to[file, i])
    return seen[file] = found
}
END {
    for (file in in_repository) {
        for (i = 1; i <= n_edges[file]; i++)
            if (!(edge_to[file, i] in in_repository))
                print file ":" edge_line[file, i] ": includes " edge_to[file, i] ": no such file"
        if (!colour[file]) visit(file, file)
    }
    for (file in in_repository)
        if (file ~ /^(hw|models|logic)\// && !(file in glib) && (below = glib_below(file)) != "")
            print file ":1: gets GLib through " below ": GLib stays out of models/ and logic/"
}
AWK
found=$(awk -f "$rules" -f "$scratch/includes.awk" "${files[@]}")
[ -z "$found" ] || breach "$found"

# ---- Symbols -------------------------------------------------------------------------------------
# What a call through a declaration in one's own room would hide from the includes.
checked="includes"
if [ -n "$build" ]; then
    checked="includes and symbols"
    objects=()
    for file in "${files[@]}"; do
        case $file in tests/* | bench/* | *.h) continue ;; esac
        object=$build/${file%.c}.o
        if [ -f "$object" ]; then objects+=("$object"); else
            breach "$file:1: $build has no object of it: build everything first"
        fi
    done
    nm -AP "${objects[@]}" | sed "s|^$build/\(.*\)\.o: |\1.c |" >"$symbols"
    # The kernel's services (k_...) are asked for by logic/ and made by models/os and models/vm:
    # that is what logic/kapi.h is for.
    cat >"$scratch/symbols.awk" <<'AWK'
FNR == NR { if ($3 ~ /^[TDBRVWC]$/) defined_in[$2] = $1; next }
$3 != "U" { next }
($2 in defined_in) {
    to = room_of(defined_in[$2])
    if ($1 ~ /^logic\// && $2 ~ /^k_/ && to ~ /^models\/(os|vm)$/) next
    why = why_not(room_of($1), to)
    if (why != "") print $1 ":1: takes " $2 " of " defined_in[$2] ": " why
    next
}
# Of the libraries, whatever the headers say.
$2 ~ /^sqlite3_/ && $1 !~ /^sim\/store\// { print $1 ":1: takes " $2 ": the database is the business of sim/store alone" }
$2 ~ /^config_/ && $1 !~ /^sim\/config\// { print $1 ":1: takes " $2 ": libconfig is the business of sim/config alone" }
$2 ~ /^g_/ && $1 ~ /^(hw|models|logic)\// { print $1 ":1: takes " $2 ": GLib stays out of models/ and logic/" }
AWK
    found=$(awk -f "$rules" -f "$scratch/symbols.awk" "$symbols" "$symbols" | sort -u)
    [ -z "$found" ] || breach "$found"
fi

if [ "$breaches" -gt 0 ]; then
    echo "check-layers: $breaches breaches in ${#files[@]} files" >&2
    exit 1
fi
echo "check-layers: ${#files[@]} files, $checked: no breach"
