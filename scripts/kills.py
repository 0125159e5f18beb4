#!/usr/bin/env python3
"""Campaigns that are killed and resumed, and databases that many make at once: nothing is lost, nothing differs.

    scripts/kills.py [KILLS] [ROUNDS] [SEED]

Kills: a campaign with -j2 is ended by SIGKILL at a random moment, one to three times, then resumed to its end. Its runs must be those
of an undisturbed one: the same points and seeds, each once, with the same fingerprint and metrics, bit for bit. KILLS counts
each SIGKILL that has hit a campaign under way (default 200).
Rounds: eight commands that begin together, each with a seed of its own, on a database that is not there yet, beside two busy
loops for each processor (default 100). All must end well, and the database must have the eight runs, as one command makes them.
The last lines are the table of docs/quality.md. Exit status 1 if there was a fault.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

NUDMA = os.path.realpath(os.environ.get("NUDMA", "build/nudma"))
SIZE = "pcie_bench/latency_size"
BASE = dict(os.environ, NUDMA_SCENARIOS=os.path.realpath("scenarios"))
CAMPAIGN = ["run", SIZE, "-q", "-j2", "--seeds", "2"]
ONE = ["run", SIZE, "-q", "-j1", "--filter", "op=read transfer_bytes=64"]


def start(arguments, db):
    return subprocess.Popen([NUDMA, *arguments, "--db", db], env=BASE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, start_new_session=True)


def contents(db):
    """All that was stored but when, where and how fast; what is damaged is a text of its own."""
    query = ("pragma integrity_check;"
             "select scenario, point, seed, status, config_sha256, sim_ps, events, fingerprint from run order by 1, 2, 3;"
             "select r.point, r.seed, m.name, m.unit, printf('%!.17g', m.value) from run r join metric m on m.run_id = r.id order by 1, 2, 3;"
             "select r.point, r.seed, h.name, h.lo, h.hi, h.count from run r join histogram h on h.run_id = r.id order by 1, 2, 3, 4;"
             "select point, metric, printf('%!.17g', mean), n from result order by 1, 2;")
    done = subprocess.run(["sqlite3", "-cmd", ".timeout 20000", db, query], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def left_behind(folder):
    return [name for name in os.listdir(folder) if not name.endswith((".db", ".db-wal", ".db-shm"))]


def kill_and_resume(rng, folder, longest_s, whole):
    """How many kills hit, and what is wrong or None."""
    db, n_hit = os.path.join(folder, "x.db"), 0
    for _ in range(rng.randint(1, 3)):
        campaign = start(CAMPAIGN, db)
        time.sleep(rng.random() * longest_s)
        if campaign.poll() is None:
            n_hit += 1
            campaign.send_signal(signal.SIGKILL) # its workers die with it
        campaign.communicate()
    campaign = start(CAMPAIGN, db)
    said = campaign.communicate()[1].decode(errors="replace")
    if campaign.returncode != 0:
        return n_hit, "status %d: %s" % (campaign.returncode, said[-300:])
    if contents(db) != whole:
        return n_hit, "other results"
    return n_hit, "files are left: %s" % left_behind(folder) if left_behind(folder) else None


def make_together(folder, whole):
    db = os.path.join(folder, "x.db")
    commands = [start([*ONE, "--seed", str(seed)], db) for seed in range(1, 9)]
    for command in commands:
        said = command.communicate(timeout=300)[1].decode(errors="replace")
        if command.returncode != 0:
            return "status %d: %s" % (command.returncode, said[-300:])
    return None if contents(db) == whole else "other results"


def many(n_wanted, once):
    """Until n_wanted are done: once(folder) returns how many it was, and what is wrong. Of all, and of those at fault."""
    n, n_faults = 0, 0
    while n < n_wanted:
        with tempfile.TemporaryDirectory() as folder:
            n_more, fault = once(folder)
        n += n_more
        if fault is not None:
            n_faults += 1
            print(fault, flush=True)
    return n, n_faults


def main():
    n_kills, n_rounds, seed = ([int(a) for a in sys.argv[1:4]] + [200, 100, 1][len(sys.argv) - 1:])[:3]
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as top:
        began = time.monotonic()
        start(CAMPAIGN, os.path.join(top, "a.db")).communicate()
        longest_s = time.monotonic() - began
        whole = contents(os.path.join(top, "a.db"))
        for one in range(1, 9):
            start([*ONE, "--seed", str(one)], os.path.join(top, "b.db")).communicate()
        eight = contents(os.path.join(top, "b.db"))
    assert "|done|" in whole and eight.count("|done|") == 8
    kills = many(n_kills, lambda folder: kill_and_resume(rng, folder, longest_s, whole))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1) if n_rounds else 0)]
    try:
        rounds = many(n_rounds, lambda folder: (1, make_together(folder, eight)))
    finally:
        for loop in busy:
            loop.kill()
    print("| what | times | faults |\n|---|---|---|")
    print("| a campaign with `-j2` killed at a random moment, resumed, compared bit for bit | %d | %d |" % kills)
    print("| eight commands make one database at once, beside busy loops | %d | %d |" % rounds)
    sys.exit(kills[1] + rounds[1] > 0)


main()
