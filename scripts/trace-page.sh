#!/usr/bin/env bash
# trace-page.sh PAGE: prints the page with what its command (the first indented line with
# --trace-address) prints now in the place of what it printed, in the blocks marked `trace`. Each of
# them keeps its number of steps, the last one takes what is left.
set -eu -o pipefail
page=$1
nudma=${NUDMA:-build/nudma}
command=$(sed -n 's/^    nudma \(run .*--trace-address.*\)$/\1/p' "$page" | head -n 1)
[ -n "$command" ] || { echo "$page: no command with --trace-address" >&2; exit 1; }
read -r -a arguments <<<"$command"
walk=$("$nudma" "${arguments[@]}")

awk '
    function is_step(line) { return line ~ /^ *[0-9]+\.[0-9] +-?[0-9]+\.[0-9]  / }
    function is_detail(line) { return length(line) > 24 && substr(line, 1, 24) !~ /[^ ]/ }
    # A unit: headings, the step below them, its details.
    NR == FNR {
        if (n == 0 || (stepped && !is_detail($0))) {
            n++
            stepped = 0
        }
        stepped = stepped || is_step($0)
        unit[n] = unit[n] $0 "\n"
        next
    }
    /^```trace$/ { within = 1; n_steps = 0; print; next }
    within && /^```$/ { blocks++; steps[blocks] = n_steps; within = 0; print "@" blocks; print; next }
    within { n_steps += is_step($0); next }
    { print }
    END {
        next_unit = 1
        for (b = 1; b <= blocks; b++) {
            last = b == blocks ? n : next_unit + steps[b] - 1
            text = ""
            while (next_unit <= last && next_unit <= n) text = text unit[next_unit++]
            sub(/^\n+/, "", text)
            gsub(/\n/, "\001", text)
            print "@" b "=" text
        }
    }' <(printf '%s\n' "$walk") "$page" |
    awk '
        { line[NR] = $0 }
        match($0, /^@[0-9]+=/) {
            text = substr($0, RLENGTH + 1)
            gsub("\001", "\n", text)
            block[substr($0, 2, RLENGTH - 2)] = text
        }
        END {
            for (i = 1; i <= NR; i++)
                if (line[i] ~ /^@[0-9]+$/) printf "%s", block[substr(line[i], 2)]
                else if (line[i] !~ /^@[0-9]+=/) print line[i]
        }'
