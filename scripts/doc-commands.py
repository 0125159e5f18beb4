#!/usr/bin/env python3
"""Looks at the commands of nudma that pages show without running them.

  scripts/doc-commands.py PAGE...

These are the indented lines that begin with nudma, or a path to it, and `nudma ...` within the text. Each command and
each option has to be there; what is run has to be there to run (`run ... --list`: scenarios, filters, settings), as have
the scenarios that are plotted, drawn or explained. Placeholders (SCENARIO, [...], folder, mine.cfg) are left alone.
`nudma` is that of $NUDMA (default build/nudma). Prints TAP, a case for each page.
"""
import functools
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NUDMA = os.environ.get("NUDMA", os.path.join(ROOT, "build", "nudma"))
SHOWN = re.compile(r"^ {4,}(?:\S*/)?nudma (?P<line>[a-z].*)$|`(?:build/)?nudma (?P<text>[a-z][^`]*)`", re.M)
NAMED = {"plot", "topology", "explain", "list", "report", "figures"}
HELP = {}


@functools.cache
def nudma(*arguments):
    return subprocess.run([NUDMA, *arguments], text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def options_of(command):
    """The options that its --help shows; None: no such command."""
    if command not in HELP:
        shown = nudma(command, "--help")
        HELP[command] = None if shown.returncode else \
            set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", "\n".join(
                line[:40] for line in shown.stdout.split("\n") if line.startswith("  -")))) | {"-h", "-?", "--help"}
    return HELP[command]


def words_of(text):
    """The words of the first command of a line; what follows ; & | > # is another's."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = []
    for word in lexer:
        if set(word) <= set(";&|<>"):
            break
        words.append(word)
    return words


def is_placeholder(word):
    return re.search(r"[A-Z]{4}|\.\.\.|[\[\]{}$*]|\.(cfg|db|txt|csv|xml)\b|^folder$", word) is not None


def fault_of(text):
    """What is wrong with a command, "" if nothing."""
    words = words_of(text)
    command, rest = words[0], words[1:]
    known = options_of(command)
    if known is None:
        return f"no command {command}"
    usage = any("[" in word or "|" in word for word in rest) or "[" in text
    options = [re.match(r"\[*(-[A-Za-z?]|--[a-z][a-z-]*)", word) for word in rest if word.lstrip("[").startswith("-")]
    for match in options:
        if match is not None and match.group(1) not in known:
            return f"{command} has no {match.group(1)}"
    if usage or any(is_placeholder(word) for word in rest):
        return ""
    if not rest or rest[0].startswith("-"):
        return ""
    if command == "run":
        listed = nudma("run", *[word for word in rest if word not in ("-q", "--quiet")], "--list", "-q")
        return listed.stderr.strip() if listed.returncode else ""
    if command in NAMED:
        listed = nudma("list", rest[0])
        return listed.stderr.strip() if listed.returncode else ""
    return ""


def main():
    pages = sys.argv[1:]
    failed = 0
    for number, page in enumerate(pages, 1):
        with open(page, encoding="utf-8") as file:
            text = re.sub(r"\\\n +", " ", file.read())
        faults = []
        for match in SHOWN.finditer(text):
            shown = " ".join((match.group("line") or match.group("text")).split("\n"))
            try:
                fault = fault_of(shown)
            except ValueError as error: # quotes
                fault = str(error)
            if fault:
                faults.append(f"nudma {shown}: {fault}")
        failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {number} - commands of {os.path.basename(page)}")
        for fault in faults:
            print(f"#   {fault}")
    print(f"1..{len(pages)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
