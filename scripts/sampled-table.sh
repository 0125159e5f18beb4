#!/usr/bin/env bash
# sampled-table.sh EXACT.db SAMPLED.db [SCENARIO...]: runs scenarios (all) exact into one database and with
# --precision PRECISION (1%) into the other, as far as these lack them, and prints a table for
# docs/results.md: how many points were sampled, how many events that took, and how far the values that the
# scenario plots are from the exact ones at most. With QUICK=1 the quick points only; RUN= prints what the
# databases have.
set -eu -o pipefail
cd "$(dirname "$0")/.."
nudma=${NUDMA:-build/nudma}
if [ $# -lt 2 ]; then sed -n '2,6s/^# //p' "$0" >&2; exit 2; fi
exact=$1 sampled=$2
shift 2
if [ $# -eq 0 ]; then
    mapfile -t all < <("$nudma" list 2>/dev/null | awk 'NR > 1 { print $1 }')
    set -- "${all[@]}"
fi
if [ -n "${RUN-1}" ]; then
    quick=()
    if [ -n "${QUICK:-}" ]; then quick=(--quick); fi
    "$nudma" run "$@" "${quick[@]}" --quiet --db "$exact" >/dev/null
    "$nudma" run "$@" "${quick[@]}" --quiet --precision "${PRECISION:-1%}" --db "$sampled" >/dev/null
fi

# The metrics that a scenario's panels show, as a list of SQL.
plotted() { # plotted SCENARIO
    { grep -oE '\b(y|metric) = (\[[^]]*\]|"[^"]*")' "scenarios/$1.cfg" || true; } |
        { grep -oE '"[A-Za-z0-9_.]+"' || true; } | sort -u | tr '"' "'" | paste -s -d ,
}

echo '| scenario | points | sampled | exact Mevents | sampled Mevents | furthest | exact | sampled | difference |'
echo '|---|---|---|---|---|---|---|---|---|'
for scenario; do
    metrics=$(plotted "$scenario")
    sqlite3 -readonly -separator ' | ' "$exact" "
ATTACH '$sampled' AS s;
CREATE TEMP TABLE pair AS SELECT e.id AS e, n.id AS n, e.point AS point, e.events AS e_ev, iif(n.wall_s = 0, 0, n.events) AS n_ev
  FROM run e JOIN s.run n USING (scenario, point, seed)
 WHERE scenario = '$scenario' AND e.status = 'done' AND n.status = 'done'
 GROUP BY point, seed HAVING e.id = max(e.id);
CREATE TEMP TABLE far AS SELECT point, x.name AS name, x.value AS was, y.value AS is_now
  FROM pair JOIN metric x ON x.run_id = e JOIN s.metric y ON y.run_id = n AND y.name = x.name
 WHERE x.name IN (${metrics:-''}) AND x.value <> 0 AND EXISTS
       (SELECT 1 FROM s.param p WHERE p.run_id = n AND p.name = 'note.sampled')
 ORDER BY abs(y.value / x.value - 1) DESC LIMIT 1;
SELECT '| \`$scenario\`', count(*), sum(EXISTS (SELECT 1 FROM s.param p WHERE p.run_id = n AND p.name = 'note.sampled')),
       printf('%.1f', 1e-6 * sum(e_ev)), printf('%.1f', 1e-6 * sum(n_ev)),
       ifnull((SELECT name || ', ' || point FROM far), '-'), ifnull((SELECT printf('%.5g', was) FROM far), '-'),
       ifnull((SELECT printf('%.5g', is_now) FROM far), '-'),
       ifnull((SELECT printf('%+.2f %%', 100 * (is_now / was - 1)) FROM far), '-') || ' |'
  FROM pair HAVING count(*) > 0;"
done
