#!/usr/bin/env python3
"""The table of fitted values: docs/fitted.md, written from the sources themselves.

    scripts/fitted-table.py [--check]

Takes every value with provenance "calibrated" below scenarios/families, platforms and devices, and every default
that `nudma describe` calls calibrated, and writes what stands between "<!-- fitted -->" and "<!-- end -->" of
docs/fitted.md. --check changes nothing, prints what would change and fails if there is anything. A value without
`fitted_to` is an error; that none lies on the bound of its range without a reason is checked by nudma whenever it
reads the file.
"""
import glob
import os
import re
import subprocess
import sys
import difflib

PAGE = 'docs/fitted.md'
NUDMA = os.environ.get('NUDMA', 'build/nudma')
VALUE = re.compile(r'^\s*(\w+) = \{([^{}]*provenance = "calibrated"[^{}]*)\};', re.M)


def described():
    """key -> [(type, unit, default, range, provenance, source)] of all tables of parameters."""
    keys, at, name = {}, None, ''
    out = subprocess.run([NUDMA, 'describe', '--all'], check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in out.splitlines():
        if line and not line.startswith(' '):
            name, at = line.split()[0].rstrip(':'), None
        elif line.startswith('  parameter '):
            titles = ['parameter', 'unit', 'default', 'range', 'provenance', 'source', 'meaning']
            at = [line.index(t) for t in titles]
        elif at and line.startswith('  ') and line[2:3].isalpha():
            cells = [line[a:b].strip() for a, b in zip(at, at[1:] + [None])]
            keys.setdefault(cells[0], []).append((name, *cells[1:6]))
        else:
            at = None
    return keys


def field(text, name):
    found = re.search(r'\b%s = "([^"]*)"' % name, text)
    return found[1] if found else None


def from_files(keys):
    rows = []
    files = [f for d in ('families', 'platforms', 'devices')
             for f in glob.glob('scenarios/%s/**/*.cfg' % d, recursive=True)]
    for path in sorted(files):
        for key, text in VALUE.findall(open(path, encoding='utf-8').read()):
            tables = keys.get(key, [])
            bounds = re.search(r'range = \[([^,\]]+), *([^\]]+)\]', text)
            ranges = sorted({t[3] for t in tables})
            if not bounds and len(ranges) != 1:
                sys.exit('%s: %s: no range, and of the tables of parameters %d have others' % (path, key, len(ranges)))
            fitted = field(text, 'fitted_to')
            if not fitted:
                sys.exit('%s: %s: calibrated, but without fitted_to' % (path, key))
            rows.append((path[len('scenarios/'):-len('.cfg')], key, re.search(r'value = ([^;]+);', text)[1],
                         next((t[1] for t in tables if t[1] != '-'), ''),
                         '%s..%s' % bounds.groups() if bounds else ranges[0] + ' (table)',
                         fitted, field(text, 'on_bound')))
    return rows


def from_defaults(keys):
    """A calibrated default says in its help or its page what it was fitted to."""
    rows = []
    for key, tables in sorted(keys.items()):
        for name, unit, default, bounds, provenance, source in tables:
            if provenance == 'calibrated':
                rows.append((name + ' (default)', key, default, '' if unit == '-' else unit, bounds + ' (table)',
                             '[source](%s)' % source[len('docs/'):], None))
    return rows


def claims_of(fitted):
    return tuple(sorted(re.findall(r'[a-z]+\.[a-z0-9_.]*[a-z0-9_]', fitted.split(':')[0])))


def counts(rows):
    """Groups of claims that share values: [(claims, unknowns, number of values)]."""
    groups = []
    for _, key, value, _, _, fitted, _ in rows:
        claims = set(claims_of(fitted))
        if not claims:
            continue
        remark = fitted.partition(':')[2].strip()
        # Halves of one sum, or values scaled by one factor, are one unknown; a copy of a value is none.
        stem = re.sub(r'_(request|complete)_ns$|^(in|out)bound_ns$', '_sum', key)
        unknown = remark if 'factor' in remark else stem + remark if 'sum' in remark else key + value
        merged = [claims, {unknown}, 1]
        rest = []
        for group in groups:
            if group[0] & merged[0]:
                merged = [group[0] | merged[0], group[1] | merged[1], group[2] + merged[2]]
            else:
                rest.append(group)
        groups = rest + [merged]
    return sorted(groups, key=lambda g: sorted(g[0]))


def tables():
    keys = described()
    rows = from_files(keys)
    lines = ['| where | setting | value | unit | range | fitted to |', '|---|---|---|---|---|---|']
    for where, key, value, unit, bounds, fitted, _ in rows + from_defaults(keys):
        lines.append('| `%s` | `%s` | %s | %s | %s | %s |' % (where, key, value, unit, bounds, fitted))
    lines += ['', '| claims | values | unknowns | determined |', '|---|---|---|---|']
    for claims, unknowns, values in counts(rows):
        verdict = 'yes' if len(unknowns) <= len(claims) else \
            '**no**: %d unknowns, %d number%s' % (len(unknowns), len(claims), 's' if len(claims) > 1 else '')
        lines.append('| %s | %d | %d | %s |' % (', '.join('`%s`' % c for c in sorted(claims)), values, len(unknowns),
                                                 verdict))
    bound = ['`%s` in `%s` (%s of %s): %s' % (r[1], r[0], r[2], r[4], r[6]) for r in rows if r[6]]
    lines += ['', 'On a bound of its range:' + (' none.' if not bound else '')] + ([''] if bound else []) + ['- ' + b for b in bound]
    return lines


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    old = open(PAGE, encoding='utf-8').read()
    head, _, rest = old.partition('<!-- fitted -->\n')
    _, _, tail = rest.partition('<!-- end -->')
    new = head + '<!-- fitted -->\n\n' + '\n'.join(tables()) + '\n\n<!-- end -->' + tail
    if sys.argv[1:] == ['--check']:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), PAGE, 'the sources'))
        sys.exit(old != new)
    if old != new:
        open(PAGE, 'w', encoding='utf-8').write(new)


main()
