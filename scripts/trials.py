#!/usr/bin/env python3
"""Trials as a clumsy and hostile user, from a seed: nothing may hang, crash or fail without a word.

    scripts/trials.py [TRIALS-PER-GROUP] [SEED] [GROUP...]

Each trial is one call of build/nudma (or $NUDMA) in an empty folder. Its end is
    done      exit status 0
    refused   exit status 2, with a message on standard error: the input is wrong
    failed    exit status 1, with a message: what the file system, a run or a claim refused
or a fault, which is printed: "hung" (over five minutes), "crashed" (a signal, or any other status), "silent"
(a bad status without a message), "spoilt" (a file that the command was not told to write has changed or is
new; of those it was told to write, one that is not whole). The last lines are the table of
docs/quality.md. Exit status 1 if there was a fault.
"""
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import threading

NUDMA = os.path.realpath(os.environ.get("NUDMA", "build/nudma"))
SCENARIOS = os.path.realpath("scenarios")
SERVER, MEASURED = os.path.realpath("tests/cli/import/server"), os.path.realpath("tests/cli/measure")
SIZE = "pcie_bench/latency_size"
TEXT = open(os.path.join(SCENARIOS, SIZE + ".cfg"), "rb").read()
NET = open("tests/scenario/settings/net.cfg", "rb").read() + b'title = "x"; text = "y";\n'
ODD = [b"", b"-1", b"0", b"0100", b"1e999", b"nan", b"99999999999999999999", b"4294967296", b"\"\"", b"()",
       b"{}", b"true", b"\xe9", b"'", b"`id`", b"$(id)", b"\x1b[31m", b"a" * 5000, b"../..", b"-", b"--", b"%s%n",
       b"1 GB", b"64 GiB", b"-5 ns", b"@none", b"=", b",", b"x=y=z", b"*", b"?", b"[", b"\n", b"0x", b"1L"]


def mutate(rng, text, tokens=ODD):
    """A text with one to four changes: bytes, lines and tokens are lost, doubled or replaced."""
    for _ in range(rng.randint(1, 4)):
        kind, at = rng.randrange(6), rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([1, 1, 2, 10, 100]))
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + text[at:end] * 2 + text[end:]
        elif kind == 2:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
        elif kind == 3:
            text = text[:at] + rng.choice(tokens) + text[at:]
        elif kind == 4:
            lines = text.split(b"\n")
            rng.shuffle(lines)
            text = b"\n".join(lines) if rng.random() < 0.2 else text
        else:
            words = text.split(b" ")
            words[rng.randrange(len(words))] = rng.choice(tokens)
            text = b" ".join(words)
    return text


def write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as out:
        out.write(content)


# ---- Groups: each returns the arguments, and the names of files that the call may write -----------

def scenario_files(rng, folder):
    write(folder, "x.cfg", mutate(rng, TEXT))
    return ["run", "x.cfg", "--list", "-q"], []


def included_files(rng, folder):
    part = mutate(rng, TEXT[:TEXT.index(b"axes")])
    write(folder, "part.cfg", part if rng.random() < 0.8 else b'@include "part.cfg"\n')
    write(folder, "x.cfg", b'@include "part.cfg"\n' + TEXT[TEXT.index(b"axes"):])
    return ["run", "x.cfg", "--list", "-q"], []


def settings(rng, _):
    paths = ["workload.transfer_bytes", "workload.cache", "workload.window_bytes", "measure.duration_us", "axes.op",
             "axes.transfer_bytes", "hosts.server.dram.channels", "hosts.server", "devices.nfp", "cables.[0].from",
             "cables.[7].to", "constraints", "quick", "plot.y", "title", "", "hosts..x", "a" * 300, "engine.quantum_ns"]
    value = rng.choice(ODD).replace(b"\0", b"")
    return ["run", SIZE, "--quick", "-q", rng.choice(["--list", "--print-config"]), "--set",
            rng.choice(paths).encode() + b"=" + value], []


def filters(rng, _):
    words = [b"op", b"transfer_bytes", b"=", b"<=", b">", b"!=", b"||", b"&&", b"read", b"64", b"w*", b",", b" "] + ODD
    text = b"".join(rng.choice(words) for _ in range(rng.randint(1, 8))).replace(b"\0", b"")
    return rng.choice([["run", SIZE, "--list", "-q"], ["results", SIZE, "--db", "../one.db"],
                       ["export", SIZE, "--db", "../one.db"]]) + ["--filter", text], []


def command_lines(rng, _):
    words = [b"run", b"list", b"describe", b"topology", b"merge", b"plot", b"check", b"results", b"export", b"diff", b"report",
             b"--db", b"../one.db", b"--set", b"--filter", b"--seeds", b"--seed", b"--shard", b"1/3", b"--until", b"-j", b"--list",
             b"--quick", b"--format", b"svg", b"--metric", b"--rows", b"--width", b"--help", b"--json", SIZE.encode(),
             b"--output", b"out"] + ODD
    command = rng.choice([b"list", b"describe", b"topology", b"check", b"results", b"diff", b"merge", b"nothing"] + ODD)
    return [w.replace(b"\0", b"") for w in [command] + rng.choices(words, k=rng.randint(0, 5))], ["out", "*"]


def databases(rng, folder):
    good = open(os.path.join(folder, "..", "one.db"), "rb").read()
    kind = rng.randrange(7)
    path = os.path.join(folder, "x.db")
    if kind == 0:
        write(folder, "x.db", mutate(rng, good))
    elif kind == 1:
        write(folder, "x.db", good[:rng.randrange(len(good))])
    elif kind == 2:
        write(folder, "x.db", rng.randbytes(rng.choice([0, 1, 100, 5000])))
    elif kind == 3:
        os.mkfifo(path)
    elif kind == 4:
        os.mkdir(path)
    elif kind == 5:
        os.symlink("nowhere", path)
    else:
        write(folder, "x.db", good)
        tables = ["metric_row", "run_row", "label", "newest", "quantity", "setting", "setting_set"]
        subprocess.run(["sqlite3", path, rng.choice(["drop table %s", "delete from %s", "alter table %s rename to y"]) %
                        rng.choice(tables)], capture_output=True, check=False)
    command = rng.choice([["results", SIZE], ["results"], ["export"], ["check", "pcie_bench"], ["diff", "x.db", "../one.db"],
                          ["merge", "y.db", "x.db"], ["run", SIZE, "--quick", "-q", "-j1"], ["plot", SIZE]])
    return command + ([] if command[0] in ("diff", "merge") else ["--db", "x.db"]), ["*"]


def claims(rng, folder):
    words = ["v('%s','op=read transfer_bytes=64','latency_mean_ns')" % SIZE, "1", "0", "-1e308", "*", "/", "+", "(", ")", ",",
             "select", "max(1,2)", "null", "'x'", "randomblob(9)", "zeroblob(1e9)", "abs(-9223372036854775808)", "from run",
             "with recursive r(n) as (select 1 union all select n+1 from r) select count(*) from r", ";", "drop table run_row",
             "case when 1 then 2 end", "load_extension('x')", "hex(randomblob(400000))", "group_concat(n)", "--", "?1", "x'00'"]
    expr = " ".join(rng.choice(words) for _ in range(rng.randint(1, 6)))
    text = ('claims = ( { id = "a"; use = "K"; lo = 1.0; hi = 2.0; published = "x"; text = "t"; expr = "%s"; } );\n' %
            expr).encode()
    write(folder, "claims.cfg", mutate(rng, text) if rng.random() < 0.4 else text)
    return ["check", "claims.cfg", "--db", "../one.db"], []


def measured_files(rng, folder):
    write(folder, "x.cfg", TEXT.replace(b"data/pcie_bench/latency_size_read.csv", b"m.csv"))
    if rng.random() < 0.1:
        os.mkfifo(os.path.join(folder, "m.csv"))
    else:
        write(folder, "m.csv", mutate(rng, b"# source\ntransfer_bytes,latency_ns\n8,541.1\n64,552.4\n2048,1129\n"))
    return ["run", "x.cfg", "--list", "-q"], []


def outputs(rng, folder):
    write(folder, "old", b"old\n")
    os.symlink("old", os.path.join(folder, "link"))
    os.symlink("planted", os.path.join(folder, "link.new"))
    os.symlink("loop", os.path.join(folder, "loop"))
    os.mkdir(os.path.join(folder, "folder"))
    target = rng.choice(["old", "link", "loop", "folder", "folder/x", "none/x", "new", "/dev/full", "/dev/null", "x" * 300, "", ".",
                         "/proc/none", "a\nb"])
    command = rng.choice([["export", SIZE, "--format", "csv"], ["export", SIZE, "--format", "json"],
                          ["topology", SIZE, "--format", "text"]])
    may = {"old": ["old"], "link": ["old"], "folder/x": ["folder/x"], "new": ["new"], "a\nb": ["a\nb"]}
    return command + (["--db", "../one.db"] if command[0] == "export" else []) + ["--output", target], may.get(target, [])


def limits(rng, _):
    limit = rng.choice(["-s 64", "-s 128", "-n 8", "-n 16", "-n 64", "-f 0", "-f 8", "-f 64", "-v 60000", "-v 200000"])
    command = rng.choice([["run", SIZE, "--quick", "-q", "-j4", "--db", "x.db"], ["results", SIZE, "--db", "../one.db"], ["list"],
                          ["export", SIZE, "--db", "../one.db", "-o", "x.csv"], ["check", "pcie_bench", "--db", "../one.db"]])
    return ["ulimit " + limit] + command, ["*"]


def whatifs(rng, folder):
    words = ["latency_mean_ns", "throughput_gbit_s", "1", "0", "2.5", "1e999", "0x10", "*", "/", "+", "-", "(", ")", "'", "v('a')", "--"]
    metric = rng.choice(["latency_mean_ns", "latency_mean_ns * ( 1 / 2 )", " ".join(rng.choice(words) for _ in range(rng.randint(1, 5)))])
    change = rng.choice(["cables.[0].lanes=4", "workload.window_bytes=16384", "axes.op=read", "measure.transactions=10", "@none", "x",
                         "cables.[0].lanes=99", "hosts.server.dram.channels=0"])
    text = ('whatifs = ( { id = "a"; text = "t"; scenario = "%s"; filter = "op=read transfer_bytes=64"; base = [ ]; change = [ "%s" ];\n'
            'metric = "%s"; %s; because = "b"; source = "s"; } );\n' %
            (SIZE, change, metric, rng.choice(["ratio = 1.0", "difference = [ -1, 1 ]", "value = 3", "ratio = [ 0, 9 ]"]))).encode()
    write(folder, "w.cfg", mutate(rng, text) if rng.random() < 0.4 else text)
    return ["whatif", "w.cfg", "-q", "-j1", "--db", "x.db"], ["*"]


JOBS = b"[global]\nfilename=/dev/nvme0n1\ndirect=1\nruntime=60\n[tables]\nrw=randrw\nbs=8k\nsize=1g\nread_iolog=t.log\n[log]\nrw=write\nbs=4k\nsize=64m\n"
LOG = b"fio version 2 iolog\n/x add\n/x open\n/x read 0 4096\n/x wait 500 0\n/x write 8192 4096\n/x sync 0 0\n/x close\n"
KEYS = ODD + [b"include j.fio", b"include pipe", b"read_iolog=pipe", b"[", b"]", b"numjobs=9999", b"iodepth=", b"size=100%", b"bs=1g", b"rate=1",
              b"replay_redirect=x", b"write_iolog=j.fio", b"99999999999", b"/x", b"trim", b"fio version 3 iolog", b"bssplit=4k/60:8k/40"]


def jobs_of_fio(rng, folder):
    os.mkfifo(os.path.join(folder, "pipe"))
    text = open(os.path.join(SCENARIOS, "examples/fio_jobs.cfg"), "rb").read()
    write(folder, "x.cfg", text.replace(b"fio_jobs.fio", rng.choice([b"j.fio"] * 8 + [b"pipe", b"."])))
    write(folder, "j.fio", mutate(rng, JOBS, KEYS) if rng.random() < 0.7 else JOBS)
    write(folder, "t.log", mutate(rng, LOG, KEYS) if rng.random() < 0.7 else LOG)
    return ["run", "x.cfg", "--list", "-q"], []


def captures(rng, folder):
    capture = open(os.path.join(folder, "..", "one.pcapng"), "rb").read()
    options = rng.choice([b"", b"", b"", b'source_ip = "10.0.2.1";', b'source_ip = "x";', b'to = "";', b"speed_ratio = 1000.0;", b"repeat = true;"])
    write(folder, "x.cfg", NET.replace(b'type = "netperf";', b'type = "pcap_replay"; file = "c.pcapng"; ' + options))
    if rng.random() < 0.1:
        os.mkfifo(os.path.join(folder, "c.pcapng"))
    elif rng.random() < 0.3:
        write(folder, "c.pcapng", mutate(rng, capture[:rng.randrange(len(capture))]))
    else: # blocks stay whole
        changed = bytearray(capture)
        for _ in range(rng.choice([0, 1, 1, 2, 4])):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        write(folder, "c.pcapng", bytes(changed))
    return ["run", "x.cfg", "-q", "-j1", "--db", "x.db"], ["*"]


def imports(rng, folder):
    names = rng.sample(sorted(os.listdir(SERVER)), rng.randint(1, 3))
    for name in names:
        content = open(os.path.join(SERVER, name), "rb").read()
        write(folder, name, mutate(rng, content) if rng.random() < 0.7 else content)
    if rng.random() < 0.1:
        os.mkfifo(os.path.join(folder, "pipe"))
        names.append("pipe")
    options = rng.choice([[], [], ["--platform"], ["--host", rng.choice(["a", "", "A b", "../x"])], ["--family", rng.choice(["skylake_sp", "x", ""])]])
    return ["import"] + (names if rng.random() < 0.8 else ["."]) + options, []


def measurements(rng, folder):
    names = rng.sample(sorted(os.listdir(MEASURED)), rng.choice([1, 1, 1, 2]))
    for name in names:
        write(folder, name, mutate(rng, open(os.path.join(MEASURED, name), "rb").read()))
    if rng.random() < 0.1:
        os.mkfifo(os.path.join(folder, "pipe"))
        names.append("pipe")
    reads = [option for name in names for option in ("--read", name)]
    outputs_of = rng.choice([[], [], ["-o", "out"], ["--claims", "out"], ["-o", "out", "--claims", "out"], ["-o", names[0]], ["-o", "none/x"]])
    return ["measure", rng.choice(["t620", "t620", "t430", "x"]), "-j1"] + reads + outputs_of, ["out"]


def traces(rng, _):
    values = [b"", b"-1", b"0", b"1", b"5", b"1e400", b"1e18", b"+0", b"+5", b"measurement", b"1.5 ms", b"99 TiB", b"1 KiB,ring", b"1,ring", b"x", b","]
    kind = rng.choice([["--tlp", "out"], ["--trace", "out.pftrace"], ["--pcap", "out"], ["--trace", rng.choice(values)],
                       ["--trace-address", rng.choice([b"nfp", b"nfp,bytes=64", b"nfp,read=2", b"x", b",", b"nfp,write=99999999999", b"read=-1"])],
                       ["--tlp", rng.choice([b"none/x", b"", b"/dev/full", b".", b"../one.db"])]])
    options = [option + b"=" + rng.choice(values) for option in (b"--trace-from", b"--trace-until", b"--trace-limit") if rng.random() < 0.4]
    if rng.random() < 0.3:
        options.append(b"--tlp-filter=" + rng.choice([b"type=MRd", b"link=*", b"type=,", b"x=1", b"=", b"requester=01:00.0", b"from=nfp.*", b"\xff"]))
    if rng.random() < 0.2:
        options.append(rng.choice([b"--list", b"--print-config", b"--bands", b"--seeds=2"]))
    return ["run", SIZE, "-q", "--filter", "op=read transfer_bytes=64", "--db", "../one.db"] + kind + options, ["out", "out.pftrace"]


def streams(rng, _):
    command = rng.choice([["run", SIZE, "--quick", "-q", "-j1", "--db", "x.db"], ["results", SIZE, "--db", "../one.db"], ["list"], ["describe"],
                          ["export", SIZE, "--db", "../one.db"], ["export", SIZE, "--db", "../one.db", "-o", "out.csv"], ["measure", "t620"],
                          ["import", SERVER], ["topology", SIZE, "--format", rng.choice(["text", "dot", "hwloc"])], ["init", "out.cfg"],
                          ["run", SIZE, "--quick", "--print-config"], ["check", "pcie_bench", "--db", "../one.db"], ["whatif", "--list"],
                          ["run", SIZE, "--quick", "--tlp", "out", "--filter", "op=read transfer_bytes=64"], ["import", SERVER, "-o", "out"]])
    return ["exec " + rng.choice([">&-", ">/dev/full", "<&-", "<&- >&-", "</dev/zero", ">/dev/full <&-"])] + command, ["*"]


GROUPS = [scenario_files, included_files, settings, filters, command_lines, databases, claims, measured_files, outputs, limits,
          whatifs, jobs_of_fio, captures, imports, measurements, traces, streams]
OUTCOMES = ["done", "refused", "failed", "hung", "crashed", "silent", "spoilt"]


# ---- A trial ----------------------------------------------------------------------------------------

def contents(folder):
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            status = os.lstat(path)
            regular = stat.S_ISREG(status.st_mode)
            found[os.path.relpath(path, folder)] = (stat.S_IFMT(status.st_mode), regular and open(path, "rb").read())
    return found


def judge(status, said, before, after, may):
    if status < 0 or status not in (0, 1, 2):
        return "crashed"
    if status != 0 and not said.strip():
        return "silent"
    changed = [name for name in set(before) | set(after) if before.get(name) != after.get(name)]
    if "*" not in may and any(name not in may for name in changed):
        return "spoilt"
    if status != 0 and "*" not in may and changed:
        return "spoilt"
    return ["done", "failed", "refused"][status]


def try_once(group, seed, top):
    rng = random.Random("%s %d" % (group.__name__, seed))
    folder = tempfile.mkdtemp(dir=top)
    arguments, may = group(rng, folder)
    before = contents(folder)
    command = [NUDMA] + arguments
    if group in (limits, streams): # no core files, and the limit for the command alone
        command = ["bash", "-c", "ulimit -c 0; %s; exec \"$@\"" % arguments[0], "limits", NUDMA] + arguments[1:]
    environment = dict(os.environ, NUDMA_SCENARIOS=SCENARIOS)
    try:
        done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=300, check=False,
                              capture_output=True)
        outcome = judge(done.returncode, done.stderr + done.stdout, before, contents(folder), may)
        detail = "status %d: %s" % (done.returncode, (done.stderr or done.stdout)[-300:].decode(errors="replace"))
    except subprocess.TimeoutExpired:
        outcome, detail = "hung", ""
    shutil.rmtree(folder)
    if outcome in OUTCOMES[3:]:
        print("%s %d: %s: %s %s" % (group.__name__, seed, outcome, arguments, detail), flush=True)
    return outcome


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    groups = [g for g in GROUPS if not sys.argv[3:] or g.__name__ in sys.argv[3:]]
    tally = {g: dict.fromkeys(OUTCOMES, 0) for g in groups}
    waiting = [(g, seed) for seed in range(first, first + count) for g in groups]
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as top:
        subprocess.run([NUDMA, "run", SIZE, "--quick", "-q", "--db", os.path.join(top, "one.db")], check=True, capture_output=True,
                       env=dict(os.environ, NUDMA_SCENARIOS=SCENARIOS))

        with open(os.path.join(top, "net.cfg"), "wb") as out:
            out.write(NET)
        subprocess.run([NUDMA, "run", "net.cfg", "-q", "--pcap", "one.pcapng"], cwd=top, check=True, capture_output=True)

        def work():
            while True:
                with lock:
                    if not waiting:
                        return
                    group, seed = waiting.pop(0)
                outcome = try_once(group, seed, top)
                with lock:
                    tally[group][outcome] += 1

        workers = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    print("| group | trials | " + " | ".join(OUTCOMES) + " |")
    print("|---|" + "---|" * (1 + len(OUTCOMES)))
    for g in groups:
        print("| %s | %d | %s |" % (g.__name__.replace("_", " "), count, " | ".join(str(tally[g][o]) for o in OUTCOMES)))
    total = {o: sum(tally[g][o] for g in groups) for o in OUTCOMES}
    print("| all | %d | %s |" % (count * len(groups), " | ".join(str(total[o]) for o in OUTCOMES)))
    sys.exit(any(total[o] for o in OUTCOMES[3:]))


main()
