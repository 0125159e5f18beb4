#!/usr/bin/env python3
"""The matrix of faults in docs/quality.md, from the tables of docs/faults.md.

    scripts/fault-matrix.py --write     writes it
    scripts/fault-matrix.py --check     fails if it is another, or if a test is named that is not there
"""
import os
import re
import sys

PAGE, MATRIX = "docs/faults.md", "docs/quality.md"
BEGIN, END = "<!-- fault-matrix -->\n", "<!-- end -->\n"
SHORT = {"FP": "scenario/test_fault_programs"}


def tables(text):
    """[(device, [(fault, promise, [test])])]"""
    found = []
    for line in text.splitlines():
        if line.startswith("## "):
            found.append((line[3:], []))
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if found and len(cells) == 3 and cells[0] != "fault" and set(cells[0]) != {"-"}:
            found[-1][1].append((cells[0], cells[1], [t for t in cells[2].split(", ") if t]))
    return found


def mark(promise, tests):
    if tests:
        return str(len(tests))
    return "-" if promise.startswith("- ") else ""


def matrix(devices):
    faults = [fault for fault, _, _ in devices[0][1]]
    lines = ["| fault | " + " | ".join(device for device, _ in devices) + " |"]
    lines.append("|---" * (len(devices) + 1) + "|")
    for i, fault in enumerate(faults):
        lines.append("| " + " | ".join([fault] + [mark(*rows[i][1:]) for _, rows in devices]) + " |")
    return "\n".join(lines) + "\n"


def mistakes(devices):
    faults = [fault for fault, _, _ in devices[0][1]]
    for device, rows in devices:
        if [fault for fault, _, _ in rows] != faults:
            yield f"{device}: the faults are not those of {devices[0][0]}, in their order"
        for fault, promise, tests in rows:
            known = promise.startswith(("- ", "missing: "))
            if bool(tests) == known:
                yield f"{device}, {fault}: either a test, or '- ' or 'missing: ' with the reason"
            for test in tests:
                path, _, case = test.partition(":")
                path = f"tests/{SHORT.get(path, path)}.c"
                cases = open(path).read() if os.path.exists(path) else ""
                if not re.search(rf"\w\((test_)?{case}\b", cases):
                    yield f"{device}, {fault}: {path} has no case {case}"


def main():
    if sys.argv[1:] not in (["--write"], ["--check"]):
        sys.exit(__doc__)
    devices = tables(open(PAGE).read())
    wrong = list(mistakes(devices))
    before, rest = open(MATRIX).read().split(BEGIN)
    shown, after = rest.split(END, 1)
    if sys.argv[1] == "--write":
        with open(MATRIX, "w") as page:
            page.write(before + BEGIN + "\n" + matrix(devices) + "\n" + END + after)
    elif shown != "\n" + matrix(devices) + "\n":
        wrong.append(f"{MATRIX}: the matrix is another: scripts/fault-matrix.py --write")
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
