#!/usr/bin/env bash
# Who may know whom: the include rules of docs/architecture.md. Prints every breach as
# "file:line: includes X: why not", ends with status 1 if there was one.
set -u
cd "$(dirname "$0")/.." || exit 1

mapfile -t files < <(find sim models logic workloads cli tests bench -name '*.[ch]' 2>/dev/null | sort)
[ ${#files[@]} -gt 0 ] || { echo "check-layers: no files found" >&2; exit 1; }

awk '
# The folder a file belongs to: "sim", "models/nic", "models" for what lies directly in models/.
function room(path,    part, n) {
    n = split(path, part, "/")
    if (part[1] == "models" && n > 2) return "models/" part[2]
    return part[1]
}
function is_device(r) { return r ~ /^models\/(nic|nvme|gpu|ioat)$/ }
function breach(why) {
    print FILENAME ":" FNR ": includes " shown ": " why
    n_breaches++
}
# The floors, from the ground: sim and logic, models, workloads, cli. Returns why not, or "".
function floors(from, to, included) {
    if (from == to || from ~ /^(cli|tests|bench)$/) return ""
    if (to ~ /^(tests|bench)$/) return "nothing outside " to "/ includes what is in it"
    if (from == "sim") return "sim/ is the ground floor and knows no other folder"
    if (from == "logic")
        return "logic/ stands as it would in a kernel: it knows logic/ only, above all logic/kapi.h"
    if ((is_device(from) || from == "models/pcie") && to == "logic" && included ~ /_hw\.h$/)
        return "" # a data sheet has one copy
    if (from ~ /^models/ && to == "logic" && from != "models/host" && from != "models")
        return "of the models only models/host implements logic/kapi.h"
    if (from ~ /^models/ && to ~ /^(workloads|cli)$/) return "models/ lies below " to "/"
    if (from == "workloads" && to == "cli") return "workloads/ lies below cli/"
    return ""
}
# Between the rooms of models/.
function rooms(path, from, to, included) {
    if (from == to) return ""
    if (is_device(from) && is_device(to))
        return "a device model never includes another one: they meet as TLPs on a link"
    if (is_device(from) && to ~ /^models\/(numa|host)$/)
        return "a device reaches memory and cores through its link only"
    if (is_device(from) && included ~ /^models\/pcie\/(root_complex|iommu|iommu_driver|enumerate)\.h$/)
        return "a device sees its link and its configuration space, not what lies behind"
    if (from == "models/pcie" && to == "models/numa" && path !~ /\/(root_complex|rc_)[a-z_]*\.[ch]$/)
        return "models/pcie and models/numa meet at the root complex alone"
    if (from == "models/numa" && (to == "models/pcie" || included == "models/model.h"))
        return "models/pcie and models/numa meet at the root complex alone"
    if (from ~ /^models\/(pcie|numa)$/ && (is_device(to) || to == "models/host"))
        return "the fabric and the memory do not know what is plugged in"
    return ""
}

FNR == 1 { n_files++; in_repository[FILENAME] = 1 }

/^[ \t]*#[ \t]*include[ \t]*</ {
    shown = $0; sub(/^[^<]*/, "", shown); sub(/>.*/, ">", shown)
    from = room(FILENAME)
    if (shown ~ /^<(glib|gio|gmodule|gobject)/) glib[FILENAME] = FNR
    if (shown ~ /^<(sqlite3|libconfig)/ && from !~ /^(sim|cli|tests|bench)$/)
        breach("files and databases are the business of sim/ and cli/")
    if (shown ~ /^<(glib|gio|gmodule|gobject)/ && from ~ /^(models|logic)/)
        breach("GLib stays out of models/ and logic/")
    next
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    included = $0; sub(/^[^"]*"/, "", included); sub(/".*/, "", included)
    shown = "\"" included "\""
    from = room(FILENAME)
    if (included !~ /^(sim|models|logic|workloads|cli|tests|bench)\//) {
        breach("write the path from the project folder on, as in \"sim/types.h\"")
        next
    }
    to = room(included)
    edge_to[FILENAME, ++n_edges[FILENAME]] = included
    edge_line[FILENAME, n_edges[FILENAME]] = FNR
    if (included ~ /\.c$/ && from !~ /^(tests|bench)$/) breach("a .c file is not included")
    why = floors(from, to, included)
    if (why == "" && from ~ /^models/ && to ~ /^models/) why = rooms(FILENAME, from, to, included)
    if (why != "") breach(why)
}

# Depth first over headers. colour 1: on the way, 2: done.
function visit(file, trail,    i, next_file) {
    colour[file] = 1
    for (i = 1; i <= n_edges[file]; i++) {
        next_file = edge_to[file, i]
        if (colour[next_file] == 1) {
            print file ":" edge_line[file, i] ": includes go round in a circle: " trail " -> " next_file
            n_breaches++
        } else if (colour[next_file] != 2 && next_file in in_repository)
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
            if (!(edge_to[file, i] in in_repository)) {
                print file ":" edge_line[file, i] ": includes " edge_to[file, i] ": no such file"
                n_breaches++
            }
        if (!colour[file]) visit(file, file)
    }
    for (file in in_repository)
        if (file ~ /^(models|logic)\// && !(file in glib) && (below = glib_below(file)) != "") {
            print file ":1: gets GLib through " below ": GLib stays out of models/ and logic/"
            n_breaches++
        }
    if (n_breaches) {
        printf "check-layers: %d breaches in %d files\n", n_breaches, n_files > "/dev/stderr"
        exit 1
    }
    printf "check-layers: %d files, no breach\n", n_files
}' "${files[@]}"
