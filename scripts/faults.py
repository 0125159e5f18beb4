#!/usr/bin/env python3
"""Calls of the operating system that fail: every command has to say so, and to leave nothing half written.

    scripts/faults.py [MOST] [COMMAND...]

Each trial is one call of build/nudma (or $NUDMA) in which the n-th call of a function fails, once, or that one and
all that follow (tests/support/failing/failing.c, loaded in front of the C library from $FAILING or
build/tests/failing.so). n goes over all calls that the command makes, or MOST of them at even distances (default 40).
A fault, which is printed, is
    crashed    a signal, or a status other than 0, 1, 2
    hung       over a minute
    silent     a bad status without a message, or more than 20 lines of them
    wrong      status 0, and what was written is not what it is without the failure
    half       a bad status, and a file that was to be written is there, but not whole; or one more is left
    lost       the database is damaged, or a repeated run does not give the results of an undisturbed one
The last lines are the table of docs/quality.md. Exit status 1 if there was a fault.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading

NUDMA = os.path.realpath(os.environ.get("NUDMA", "build/nudma"))
FAILING = os.path.realpath(os.environ.get("FAILING", os.path.join(os.path.dirname(NUDMA), "tests/failing.so")))
SIZE = "pcie_bench/latency_size"
POINT = ["--filter", "op=read transfer_bytes=64"]
COMMANDS = {
    "run": ["run", SIZE, *POINT, "-q", "-j1", "--db", "x.db"],
    "run, its worker": ["run", SIZE, *POINT, "-q", "-j1", "--db", "x.db"],
    "plot": ["plot", SIZE, "--format", "text", "--db", "one.db"],
    "plot, drawn": ["plot", SIZE, "--format", "svg", "-o", "plots", "--db", "one.db"],
    "report": ["report", "-o", "out.html", "--db", "one.db", SIZE],
    "export": ["export", SIZE, "-o", "out.csv", "--db", "one.db"],
    "check": ["check", "pcie_bench", "--db", "one.db"],
    "merge": ["merge", "x.db", "one.db"],
}
CALLS = ["write", "fsync", "ftruncate", "rename", "fflush", "fclose", "open", "fork", "pipe", "malloc", "mmap"]
FAULTS = ["crashed", "hung", "silent", "wrong", "half", "lost"]
BASE = dict(os.environ, NUDMA_SCENARIOS=os.path.realpath("scenarios"), COLUMNS="200")


def call(arguments, folder, **more):
    return subprocess.run([NUDMA, *arguments], cwd=folder, env=dict(BASE, **more), stdin=subprocess.DEVNULL, timeout=60, check=False,
                          capture_output=True)


def runs_of(folder, db):
    """What the database says, but for when and how fast; None if it is damaged."""
    query = ("pragma integrity_check; select scenario, point, seed, status, fingerprint from run where status = 'done' group by 1, 2, 3;"
             "select metric, mean from result order by 1;")
    done = subprocess.run(["sqlite3", db, query], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 and done.stdout.startswith("ok") else None


def written(folder):
    """Files other than databases, with a digest: reports have the time in them."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            if ".db" in name or name == "count":
                continue
            content = open(os.path.join(top, name), "rb").read()
            whole = content.rstrip().endswith((b"</html>", b"</svg>"))
            found[os.path.relpath(os.path.join(top, name), folder)] = "whole" if whole else hashlib.sha256(content).hexdigest()
    return found


def judge(done, folder, command, good):
    if done is None:
        return "hung"
    if done.returncode not in (0, 1, 2):
        return "crashed"
    said = done.stderr.decode(errors="replace").strip()
    same = done.returncode == good["status"] and done.stdout == good["stdout"] # 1 if a claim does not hold
    if done.returncode != 0 and not same and (said == "" or said.count("\n") >= 20):
        return "silent"
    now = written(folder)
    if done.returncode == 0 and (now != good["written"] or (command[0] != "run" and done.stdout != good["stdout"])):
        return "wrong"
    if any(now[name] != good["written"].get(name) for name in now):
        return "half"
    if "x.db" not in command:
        return "done" if same else "failed"
    if done.returncode == 0 and runs_of(folder, "x.db") != good["runs"]:
        return "wrong"
    again = call(command, folder)
    if again.returncode != 0 or runs_of(folder, "x.db") != good["runs"]:
        return "lost"
    return "failed" if done.returncode else "done"


def try_once(name, which, n, all_follow, top, good):
    folder = tempfile.mkdtemp(dir=top)
    shutil.copy(os.path.join(top, "one.db"), folder)
    command = COMMANDS[name]
    try:
        done = call(command, folder, LD_PRELOAD=FAILING, FAILING_CALL=which, FAILING_AT=str(n), FAILING_ALL=str(all_follow),
                    FAILING_CHILDREN="1" if "worker" in name else "0")
    except subprocess.TimeoutExpired:
        done = None
    outcome = judge(done, folder, command, good)
    if outcome in FAULTS:
        print("%s, %s %d%s: %s: %s" % (name, which, n, " and all that follow" if all_follow else "", outcome,
              "" if done is None else "status %d: %s" % (done.returncode, done.stderr[-300:].decode(errors="replace"))), flush=True)
    shutil.rmtree(folder)
    return outcome


def undisturbed(name, top):
    """What the command does without failures, and how many calls of each function it makes."""
    count = {}
    for which in CALLS:
        folder = tempfile.mkdtemp(dir=top)
        shutil.copy(os.path.join(top, "one.db"), folder)
        done = call(COMMANDS[name], folder, LD_PRELOAD=FAILING, FAILING_CALL=which, FAILING_COUNT=os.path.join(folder, "count"))
        good = {"written": written(folder), "stdout": done.stdout, "status": done.returncode,
                "runs": runs_of(folder, "x.db") if "x.db" in COMMANDS[name] else None}
        count[which] = int(open(os.path.join(folder, "count")).read())
        shutil.rmtree(folder)
    return good, count


def trials(most, names, top):
    """(command, function, n, all that follow, undisturbed)"""
    for name in names:
        good, count = undisturbed(name, top)
        for which in CALLS:
            # of a worker's calls nobody knows the number: it ends by _exit()
            n_calls = count[which] if "worker" not in name else {"malloc": 30000, "mmap": 60, "write": 2, "open": 10}.get(which, 0)
            step = max(1, -(-n_calls // most))
            for n in range(1, n_calls + 1, step):
                yield name, which, n, 0, good
                if which != "malloc" or n % (4 * step) == 1: # of memory that never comes back, fewer
                    yield name, which, n, 1, good


def main():
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    names = [name for name in COMMANDS if not sys.argv[2:] or name in sys.argv[2:]]
    tally = {name: dict.fromkeys(["done", "failed"] + FAULTS, 0) for name in names}
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as top:
        call(["run", SIZE, "--quick", "-q", "--db", "one.db"], top)
        waiting = list(trials(most, names, top))

        def work():
            while True:
                with lock:
                    if not waiting:
                        return
                    trial = waiting.pop(0)
                outcome = try_once(*trial[:4], top, trial[4])
                with lock:
                    tally[trial[0]][outcome] += 1

        workers = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    print("| command | trials | " + " | ".join(tally[names[0]]) + " |")
    print("|---|" + "---|" * (1 + len(tally[names[0]])))
    for name in names:
        print("| %s | %d | %s |" % (name, sum(tally[name].values()), " | ".join(str(n) for n in tally[name].values())))
    sys.exit(any(tally[name][fault] for name in names for fault in FAULTS))


main()
