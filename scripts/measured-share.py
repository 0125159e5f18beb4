#!/usr/bin/env python3
"""How many points of scenarios lie near what was measured.

    scripts/measured-share.py [--db FILE] [--within PERCENT] [-v] SCENARIO...

Reads the results of scenarios whose plot names measured curves (`measured`: a series and a CSV file), and prints for each
series how many points lie within PERCENT (5) of the value measured at the same x, and the worst. -v: every point.
Exit status 1 if a scenario has measured curves but no results.
"""
import argparse
import csv
import re
import sqlite3
import sys
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


def curves(text):
    """(series, file) of each measured curve, the series with its panel's filter; the x axis."""
    found, panel = [], ""
    for match in re.finditer(r'filter\s*=\s*"([^",]*)"'
                             r'|series\s*=\s*"([^"]*)"\s*;\s*file\s*=\s*"([^"]*)"', text):
        if match[1] is not None:
            panel = match[1] + " "
        else:
            found.append((panel + match[2], match[3]))
    return found, re.search(r'plot\s*=.*?\bx\s*=\s*"([^"]*)"', text, re.S).group(1)


def measured(path):
    """Metric, and value by x, of a measured curve."""
    rows = csv.reader(line for line in path.read_text().splitlines() if not line.startswith("#"))
    header = next(rows)
    return header[1], {row[0]: float(row[1]) for row in rows if row}


def simulated(db, scenario, metric, series, x):
    """Value by x, of the points that have the series' values."""
    wanted = set(series.split())
    values = {}
    for point, mean in db.execute("SELECT point, mean FROM result WHERE scenario = ? AND metric = ?",
                                  (scenario, metric)):
        words = set(point.split())
        at = [word.split("=", 1)[1] for word in words if word.split("=", 1)[0] == x]
        if wanted <= words and at:
            values[at[0]] = mean
    return values


def share(db, scenario, within, verbose):
    """Prints the shares of a scenario; False: it has no results."""
    series, x = curves((SCENARIOS / (scenario + ".cfg")).read_text())
    any_there = not series
    for name, file in series:
        metric, was = measured(SCENARIOS / file)
        is_now = simulated(db, scenario, metric, name, x)
        errors = {at: is_now[at] / was[at] * 100 - 100 for at in is_now if at in was}
        if not errors:
            continue
        any_there = True
        near = sum(abs(error) <= within for error in errors.values())
        worst = max(errors, key=lambda at: abs(errors[at]))
        print(f"{scenario}  {name}: {near} of {len(errors)} within {within:g} %,"
              f" worst {errors[worst]:+.1f} % at {x}={worst}")
        for at in sorted(errors, key=float) if verbose else []:
            print(f"    {at:>10}  {was[at]:10.3f}  {is_now[at]:10.3f}  {errors[at]:+6.1f} %")
    return any_there


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--db", default="results/nudma.db")
    parser.add_argument("--within", type=float, default=5)
    parser.add_argument("-v", action="store_true")
    parser.add_argument("scenario", nargs="+")
    options = parser.parse_args()
    db = sqlite3.connect(f"file:{options.db}?mode=ro", uri=True)
    there = [share(db, scenario, options.within, options.v) for scenario in options.scenario]
    sys.exit(0 if all(there) else 1)


main()
