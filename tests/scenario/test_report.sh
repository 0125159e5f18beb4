#!/usr/bin/env bash
# nudma report: the page is well-formed, complete, self-contained and accessible; in headless
# Chromium it opens without errors, shows its pictures and fits a phone.
# nudma figures: intervals where there are seeds, published values beside what is simulated.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh

has() { # has NAME FILE PATTERN
    cases=$((cases + 1))
    if grep -qE -- "$3" "$2"; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# not in %s: %s\n' "$2" "$3"
        failed=$((failed + 1))
    fi
}

all=() # scenarios of the page; under the sanitizers a few: the others go the same way
if [ "$(stride 2)" != 1 ]; then all=(pcie_bench numa device_lending examples/write_stream_switch); fi
ran=(pcie_bench numa/memory_latency)
"$simulate" run "${ran[@]}" --quick -q -j2 >run.txt 2>&1; is "the runs" $? 0
"$simulate" run pcie_bench/latency_numa --quick --seeds 3 -q >>run.txt 2>&1; is "with seeds" $? 0

# ---- Figures -------------------------------------------------------------------------------------
"$nudma" plot pcie_bench/latency_numa numa/memory_latency -F gnuplot >script.gp; is "scripts" $? 0
has "seeds make intervals on bars" script.gp '^set style histogram errorbars'
has "claims give published values" script.gp "title 'socket 0 \(measured\)'"
"$nudma" figures pcie_bench/latency_size --quick --seeds 2 -q -o plots >files.txt; is "figures" $? 0
is "as PNG and SVG" "$(cat files.txt)" "plots/pcie_bench/latency_size.png
plots/pcie_bench/latency_size.svg"
is "with as many seeds" "$(sqlite3 results/nudma.db "select min(n) from result
    where scenario = 'pcie_bench/latency_size'")" 2

# ---- The page ------------------------------------------------------------------------------------
"$nudma" report "${all[@]}" >out.txt 2>err.txt; is "a report" $? 0
is "says where it is" "$(cat out.txt)" results/report.html
is "and nothing else" "$(cat err.txt)" ""
page=results/report.html
# Every tag is closed in order: a record of awk is a tag without its "<", and what follows it.
cat >balance.awk <<'AWK'
BEGIN { RS = "<" }
NR == 1 || /^!DOCTYPE/ { next }
{
    tag = substr($0, 1, index($0, ">"))
    name = tag
    sub(/^\//, "", name)
    sub(/[^a-zA-Z0-9].*$/, "", name)
    if (tag ~ /^\//) {
        if (stack[n] != name) { print "</" name "> closes <" stack[n] ">"; n = 0; exit }
        n--
    } else if (tag !~ /\/>$/) stack[++n] = name
}
END { for (; n > 0; n--) print "<" stack[n] "> is open" }
AWK
is "tags are balanced" "$(awk -f balance.awk $page)" ""
is "it is well-formed" "$(xmllint --noout $page 2>&1 | head -n 3)" ""
is "ids are unique" "$(grep -oE ' id=["'"'"'][^"'"'"']*' $page | sort | uniq -d)" ""
comm -23 <(grep -oE 'href="#[^"]*' $page | sed 's/href="#//' | sort -u) \
    <(grep -oE 'id="[^"]*' $page | sed 's/id="//' | sort -u) >dead.txt
is "links lead somewhere" "$(cat dead.txt)" ""
is "nothing comes from elsewhere" \
    "$(grep -oE '(src|href|action)="(https?:|//|\.|/)[^"]*|url\((https?:|//)[^)]*|@import' $page)" ""
has "it has a language" $page '<html lang="en">'
has "a title" $page '<title>nudma report</title>'
has "a viewport" $page 'name="viewport" content="width=device-width'
has "a way around the contents" $page '<a class="skip" href="#main">'
has "rules for paper" $page '@media print'
has "hundreds of pages of parameters only if they are open" $page '<details class="parameters">.*All parameters'
has "all else is" $page "querySelectorAll\('details:not\(.parameters\)'\)"
is "every picture says what it is" \
    "$(grep -c '<svg' $page) $(grep -c 'role="img"' $page)" \
    "$(grep -c '<title id=' $page) $(grep -c '<desc id=' $page)"
is "no description is empty" "$(grep -cE '<(title|desc) id="[^"]*"></' $page)" 0
is "headings in order" "$(grep -oE '<h[1-6]' $page | awk '
    { level = substr($0, 3) + 0; if (level > last + 1) print "h" level " after h" last; last = level }')" ""

figures=$(("$("$nudma" list "${ran[@]}" | tail -n +2 | wc -l)"))
is "a section for each scenario" "$(grep -c '<h3 id="figure-' $page)" \
    "$(($("$nudma" list "${all[@]}" | tail -n +2 | wc -l)))"
is "a picture for each that has run, and more" \
    "$([ "$(grep -c '<figure>' $page)" -gt "$figures" ] && echo yes)" yes
has "the topology is drawn" $page '>nfp</text>'
has "with its cable" $page '> Gen3 x8 </text>'
has "a switch hangs between" $page 'server.s0.rp1 to sw.p0 \(pcie.switch\), Gen3 x16; sw.p1 to adapter.p0'
is "what simulates nothing has no picture" "$(grep -c 'no hosts, no devices' $page)" 0
has "and told in words" $page '<desc[^>]*>server: 2 sockets, each with 10 cores, 2.2 GHz, LLC 25 MiB'
has "a claim with its verdict" $page 'pcb\.<wbr/>lat\.<wbr/>rd\.<wbr/>64</span>.*>561\.[0-9]+</td>.*class="ok">ok<'
has "one without data" $page 'pcb\.<wbr/>lat\.<wbr/>rd\.<wbr/>8</span>.*>no data<'
"$nudma" check "${all[@]:0:3}" --json >check.json
is "as many claims as there are" "$(grep -c '<tr role="row" id="claim-' $page)" \
    "$(grep -c '"id": ' check.json)"
has "known misses have their reason" $page 'class="why">.*nown miss: '
has "where the time goes" $page '<summary>Where the time goes</summary>'
"$nudma" report numa/memory_latency pcie_bench/bandwidth_iommu -o names.html >/dev/null 2>&1
has "curves have names" names.html '<th scope="col" class="n">read 64 B</th>'
has "so has what was measured" names.html '<th scope="col" class="n">read 64 B, measured</th>'
has "a high legend makes a picture higher" names.html '<svg [^>]*viewBox="0 0 500 4[4-9][0-9]"'
"$nudma" report pcie_bench/latency_iommu -o axis.html >/dev/null 2>&1
has "values of an axis as its points have them" axis.html '<tr><th scope="row">1048576</th>'
"$simulate" run pcie_bench/hosts_iommu_bandwidth -q --db panels.db --filter 'op=read transfer_bytes=64 window_bytes=1048576' >/dev/null 2>&1
"$nudma" report pcie_bench/hosts_iommu_bandwidth --db panels.db -o panels.html >/dev/null 2>&1
has "panels have their titles" panels.html '<figcaption>T430'
has "its parts" $page '<th scope="col" class="n">root complex</th>'
has "parameters have a provenance" $page \
    'hosts.server.root_complex.inbound_ns</code></th><td class="n">96</td><td>ns</td><td>calibrated</td><td>scenarios/families/.*docs/sources.md'
has "estimates are counted" $page '<strong>[0-9]+ estimates</strong>'
has "versions" $page "$("$nudma" --version | sed 's/[.]/[.]/g')"
if [ "$(stride 2)" = 1 ]; then # what bytes come out is no matter of sanitizers
    for again in once again; do "$nudma" report pcie_bench device_lending -o $again.html >/dev/null; done
    cmp -s once.html again.html; is "the same again" $? 0
fi

# A page of all scenarios takes five seconds: from here on pages are of few, where any will do.
"$nudma" report pcie_bench/latency_size -o one.html >/dev/null; is "of one scenario" $? 0
is "alone" "$(grep -c '<h3 id="figure-' one.html)" 1
mkdir odd && sed $'s/^title = .*/title = "caf\xe9";/' "$NUDMA_SCENARIOS/pcie_bench/latency_size.cfg" >odd/odd.cfg
"$nudma" report odd/odd.cfg -o odd.html 2>odd.txt; is "of a title that is no UTF-8" $? 2
has "says where" odd.txt '^odd/odd.cfg:[0-9]+: column 13: found the byte 0xe9, expected text in UTF-8'
out=$("$nudma" report pcie_bench/latency_size --db none.db 2>&1); is "without a database" $? 1
out=$("$nudma" report nothing/here 2>&1); is "of none" $? 2
out=$("$nudma" report pcie_bench/latency_size -o /proc/none/x.html 2>&1); is "where it cannot be written" $? 2
out=$(PATH=/nowhere "$nudma" report pcie_bench -o none.html 2>&1); is "without gnuplot" $? 1
is "that is said once" "$(grep -c 'gnuplot is not installed' <<<"$out")" 1
is "nor Graphviz" "$(grep -c 'dot is not installed' <<<"$out")" 1
has "the rest of the page is there" none.html 'could not be drawn'

# ---- In a browser --------------------------------------------------------------------------------
browse() { # browse WIDTH=PAGE...: ${verdicts[WIDTH]} of the script below; in frames, as windows are not so narrow
    local frame verdict
    declare -gA verdicts=()
    cat >frames.html <<'HTML'
<!DOCTYPE html><html lang="en"><body><script>addEventListener('message', function (m) {
    var verdict = document.createElement('pre');
    verdict.className = 'verdict';
    verdict.textContent = m.data;
    document.body.appendChild(verdict);
});</script>
HTML
    for frame in "$@"; do
        echo "<iframe width=\"${frame%%=*}\" height=\"900\" style=\"border:0\" src=\"${frame#*=}\"></iframe>"
    done >>frames.html
    echo '</body></html>' >>frames.html
    timeout 100 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" \
        --no-first-run --disable-background-networking --disable-component-update --disable-sync \
        --enable-logging=stderr --window-size="1400,1000" --virtual-time-budget=10000 \
        --dump-dom "file://$scratch/frames.html" >dom.html 2>browser.txt
    while IFS='>' read -r _ verdict; do
        verdicts[${verdict%% *}]+=$verdict
    done < <(grep -o '<pre class="verdict">[^<]*' dom.html)
}
cat >probe.html <<'HTML'
<script>
var faults = [];
document.querySelectorAll('details').forEach(function (d) { d.open = true; });
document.querySelectorAll('svg').forEach(function (s) {
    var b = s.getBoundingClientRect();
    if (b.width < 200 || b.height < 80) faults.push('picture ' + b.width + 'x' + b.height);
    if (!s.querySelector('title').textContent) faults.push('picture without a title');
});
document.querySelectorAll('a[href^="#"]').forEach(function (a) {
    var target = document.getElementById(a.getAttribute('href').slice(1));
    if (!target) faults.push('dead link ' + a.getAttribute('href'));
    a.click();
    if (location.hash !== a.getAttribute('href')) faults.push('link not followed ' + a.href);
});
if (document.documentElement.scrollWidth > innerWidth)
    faults.push('page is ' + document.documentElement.scrollWidth + ' wide in ' + innerWidth);
document.querySelectorAll('.wide').forEach(function (w) {
    if (w.tabIndex !== 0) faults.push('a wide region that keys do not reach');
});
document.querySelectorAll('figure svg:not(.topology) text').forEach(function (t) {
    var b = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();
    if (t.textContent.trim() && (b.left < s.left - 1 || b.right > s.right + 1 || b.top < s.top - 1 || b.bottom > s.bottom + 1))
        faults.push('cut off: ' + t.textContent.trim());
    var px = parseFloat(getComputedStyle(t).fontSize) * s.width / t.ownerSVGElement.viewBox.baseVal.width;
    if (t.textContent.trim() && px < 9) faults.push('letters of ' + px.toFixed(1) + ' px: ' + t.textContent.trim());
});
document.querySelectorAll('table.claims th[scope=row]').forEach(function (h) {
    if (innerWidth < 600 && h.clientWidth < 0.9 * h.parentNode.clientWidth) faults.push('a narrow claim');
});
document.querySelectorAll('table.claims .id, table.claims td .what').forEach(function (e) {
    e.childNodes.forEach(function (n) {
        var r = document.createRange();
        r.selectNodeContents(n);
        if (n.nodeType === 3 && !/\s/.test(n.data) && r.getClientRects().length > 1) faults.push('broken word: ' + n.data);
    });
});
parent.postMessage(innerWidth + ' ' + document.querySelectorAll('svg').length + ' pictures: ' +
    (faults.join('; ') || 'good'), '*');
</script>
HTML
sed '/<\/body>/,$d' $page >probed.html
cat probe.html >>probed.html
echo '</body></html>' >>probed.html
pictures=$(grep -c '<svg' $page)
if [ "${CONFIG:-}" != san ]; then # the browser is not ours
    # As wide as a sheet with margins: browsers make the letters of a page that does not fit smaller.
    sed 's/@media print/@media all/' probed.html >paper.html
    browse 1280=probed.html 390=probed.html 710=paper.html
    is "at a desk" "${verdicts[1280]:-}" "1280 $pictures pictures: good"
    is "on a phone" "${verdicts[390]:-}" "390 $pictures pictures: good"
    is "on paper" "${verdicts[710]:-}" "710 $pictures pictures: good"
    is "nothing on the console" "$(grep 'CONSOLE' browser.txt)" ""
fi

# ---- A broken scenario ---------------------------------------------------------------------------
mkdir -p own/my && cp -r "$NUDMA_SCENARIOS"/families "$NUDMA_SCENARIOS"/platforms "$NUDMA_SCENARIOS"/devices "$NUDMA_SCENARIOS"/data own
cp "$NUDMA_SCENARIOS/pcie_bench/latency_size.cfg" own/my/good.cfg
echo 'title = "half' >own/my/half.cfg
sed 's/type = "pcie_bench"/type = "pcie_bentch"/' own/my/good.cfg >own/my/unknown.cfg
"$nudma" run my/good --scenarios own --db own.db --quick -q >/dev/null; is "a run of one's own" $? 0
# Below no scenarios folder: without names the database knows of them.
sed 's/^title = .*/title = "Elsewhere";/' own/my/good.cfg >elsewhere.cfg && cp elsewhere.cfg gone.cfg
"$nudma" run elsewhere.cfg gone.cfg --scenarios own --db own.db --quick -q >/dev/null && rm gone.cfg
if [ ${#all[@]} = 0 ]; then
    "$nudma" report --scenarios own --db own.db -o own.html >out.txt 2>err.txt
    is "two broken files beside it" "$? $(cat out.txt)" "1 own.html"
    is "are left out, and said" "$(grep ': left out b' err.txt)" "my/half: left out because of that
my/unknown: left out because of that"
    is "a file from elsewhere is in it" "$(grep -c '<code>elsewhere' own.html)" 1
    has "one that is gone is left out" err.txt '^gone: left out, its file is not found'
    has "with what is wrong" err.txt '^own/my/half.cfg:[0-9]+: '
    has "with what is wrong, too" err.txt 'did you mean "pcie_bench"'
    has "the others are there" own.html '<code>my/good</code>'
    is "they are not" "$(grep -c '<code>my/\(half\|unknown\)' own.html)" 0
fi
out=$("$nudma" report my --scenarios own --db own.db -o named.html 2>&1); is "named they are mistakes" $? 2
is "and there is no page" "$(ls named.html 2>/dev/null)" ""

# ---- A parameter that differs between scenarios ----------------------------------------------------
mkdir -p differ/mine && "$nudma" init differ/mine/one.cfg --workload memory >/dev/null
for name in two three; do sed 's/^measure = /set = ( "hosts.server.dram.controller_ns=30" );\n&/' differ/mine/one.cfg >differ/mine/$name.cfg; done
"$simulate" run mine --scenarios differ --db differ.db --quick -q >/dev/null 2>&1; is "runs that differ" $? 0
"$nudma" report mine --scenarios differ --db differ.db -o differ.html >/dev/null 2>&1
is "a row for each value, with its scenarios" "$(sed -nE 's|.*controller_ns</code>( in [a-z/, ]*)</th><td class="n">([0-9]+)</td><td>ns</td><td>([a-z]+)<.*|\1: \2 \3|p' differ.html)" \
    " in mine/one: 19 calibrated
 in mine/three, mine/two: 30 estimate"
is "with its own origin" "$(grep -c 'controller_ns.*<td>scenarios/families/.*#a1</td>' differ.html) $(grep -c 'controller_ns.*<td>[^<]*/three.cfg:15</td>' differ.html)" "1 1"
is "one row where they do not" "$(grep -c '</code> in ' differ.html) $(grep -c 'llc_size</code></th>' differ.html)" "2 1"

# ---- Of one's own, without claims ----------------------------------------------------------------
mkdir alone && (cd alone && "$nudma" init mine.cfg >/dev/null && "$simulate" run mine.cfg --quick -q >/dev/null &&
    "$nudma" report mine.cfg >/dev/null 2>&1)
is "no claims are no 0 of 0" "$(grep -c '0 of 0 given claims' alone/results/report.html)" 0
has "that is said" alone/results/report.html 'None of these scenarios has claims'

# ---- Runs that failed ----------------------------------------------------------------------------
"$nudma" init mine.cfg >/dev/null
"$simulate" run mine.cfg -j 1 -q --db failed.db --run-memory '1 MiB' -f transfer_bytes=64 >/dev/null 2>&1
"$nudma" report mine.cfg --db failed.db -o failed.html >/dev/null
has "all that ran failed" failed.html 'code>mine</code>, 0 of 8 points; all 2 that ran failed, the first of these points <code>memory=local transfer_bytes=64</code>: needed more than the 1 MiB of --run-memory'
is "is not said to have no results yet" "$(grep -c 'no results yet' failed.html)" 0
for point in 'transfer_bytes=256 memory=local' 'transfer_bytes=64 memory=local' 'transfer_bytes=256 memory=remote'; do
    "$simulate" run mine.cfg -j 1 -q --db order.db --run-memory '1 MiB' -f "$point" >/dev/null 2>&1
done
"$nudma" report mine.cfg --db order.db -o order.html >/dev/null
has "the first is that of the scenario, not of time" order.html 'all 3 that ran failed, the first of these points <code>memory=local transfer_bytes=64</code>:'
"$simulate" run mine.cfg -q --db failed.db -f 'transfer_bytes=64 memory=remote' >/dev/null
"$nudma" report mine.cfg --db failed.db -o failed.html >/dev/null
is "the one that ran is drawn" "$(grep -c '<figcaption>Of mine at memory=remote transfer_bytes=64<' failed.html)" 1
has "one of two" failed.html '1 of 8 points; 1 failed, <code>memory=local transfer_bytes=64</code>: needed'

echo "1..$cases"
[ $failed = 0 ]
