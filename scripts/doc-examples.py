#!/usr/bin/env python3
r"""Runs the examples of pages and compares what they print with what the pages say.

  scripts/doc-examples.py [--write] PAGE...

An example is an indented line "$ COMMAND" (what ends in \ goes on in the next line, a here document until its last
one), followed by what it prints on standard output. A line "..." stands for any lines. Commands of a page run one
after the other, by bash, in a new folder; `nudma` is that of $NUDMA (default build/nudma), NUDMA_PROJECT the tree.
A command has to end with status 0. `t430` is the folder of a real server's description, where the project has it
beside its tree (shared/fixtures); without it, commands that name it are left out, so each that needs what they made
names it, too. --write puts what was printed into the page, but where it has "...". Prints TAP, a case for each command.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INDENT = "    "
FIXTURE = os.path.join(os.path.dirname(ROOT), "shared", "fixtures", "t430")


def examples(lines):
    """(first line of the command, first line of the output, line behind it, command) of each."""
    found, at = [], 0
    while at < len(lines):
        if not lines[at].startswith(INDENT + "$ "):
            at += 1
            continue
        begin = at
        command = lines[at][len(INDENT) + 2:]
        while command.endswith("\\"):
            at += 1
            command = command + "\n" + lines[at][len(INDENT):]
        until = re.search(r"<<'(\w+)'", command)
        while until is not None and command.rsplit("\n", 1)[-1] != until.group(1):
            at += 1
            command = command + "\n" + lines[at][len(INDENT):]
        at += 1
        output = at
        while at < len(lines) and not lines[at].startswith(INDENT + "$ ") and \
                (lines[at].startswith(INDENT) or lines[at] == ""):
            at += 1
        end = at
        while end > output and lines[end - 1] == "":
            end -= 1
        found.append((begin, output, end, command))
    return found


def matches(said, shown):
    """Whether the lines are those of the page, in which "..." stands for any."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in said)) is not None


def run(command, folder):
    nudma = os.path.abspath(os.environ.get("NUDMA", os.path.join(ROOT, "build", "nudma")))
    environment = dict(os.environ, NUDMA_PROJECT=ROOT, LC_ALL="C.UTF-8", NO_COLOR="1",
                       NUDMA_SCENARIOS=os.path.join(ROOT, "scenarios"),
                       PATH=os.path.join(folder, ".bin") + ":" + os.environ["PATH"])
    if not os.path.exists(os.path.join(folder, ".bin")):
        os.mkdir(os.path.join(folder, ".bin"))
        os.symlink(nudma, os.path.join(folder, ".bin", "nudma"))
        os.mkdir(os.path.join(folder, "build")) # of README.md, which stands in a tree
        os.symlink(nudma, os.path.join(folder, "build", "nudma"))
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
        if os.path.isdir(FIXTURE):
            os.symlink(FIXTURE, os.path.join(folder, "t430"))
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


def main():
    arguments = sys.argv[1:]
    write = "--write" in arguments
    cases = failed = left_out = 0
    for page in (a for a in arguments if a != "--write"):
        with open(page, encoding="utf-8") as file:
            lines = file.read().split("\n")
        moved = 0
        missing = ["t430"]
        with tempfile.TemporaryDirectory() as folder:
            for begin, output, end, command in examples(list(lines)):
                output, end = output + moved, end + moved
                if not os.path.isdir(FIXTURE) and any(name in command for name in missing):
                    missing += re.findall(r"-o (\S+)", command) # nor has what it writes
                    left_out += 1
                    continue
                ended = run(command, folder)
                said = [line.rstrip() for line in ended.stdout.rstrip("\n").split("\n")]
                said = [] if said == [""] else said
                shown = [line[len(INDENT):] for line in lines[output:end]]
                good = ended.returncode == 0 and matches(said, shown)
                cases += 1
                failed += not good
                where = f"{os.path.relpath(page, ROOT)}:{begin + 1}: {command.splitlines()[0]}"
                print(f"{'ok' if good else 'not ok'} {cases} - {where}")
                if not good:
                    print(f"# status {ended.returncode}, and printed:")
                    for line in said + ended.stderr.splitlines():
                        print("#  ", line)
                if write and ended.returncode == 0 and "..." not in shown:
                    new = [(INDENT + line).rstrip() for line in said]
                    lines[output:end] = new
                    moved += len(new) - (end - output)
        if write:
            with open(page, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
    if left_out:
        print(f"# {left_out} left out")
    print(f"1..{cases}")
    return failed > 0


sys.exit(main())
