#!/usr/bin/env bash
# fio's job files by the command: paths, mistakes, JSON as tools read it, results of another text.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
project=$OLDPWD

cat >fio.cfg <<'CFG'
title = "fio"; text = "a job file";
workload = { type = "programs"; measured = "borrower"; };
@include "platforms/smartio_nvme_local.cfg"
programs = { fio = { type = "fio"; on = "borrower"; device = "ssd"; job_file = "jobs/mixed.fio"; }; };
measure = { warmup_us = 0; duration_us = 1000000; };
CFG
mkdir jobs
cat >jobs/mixed.fio <<'FIO'
; A database: readers and a log
[global]
filename=/dev/nvme0n1
ioengine=libaio
direct=1
time_based
runtime=60
percentile_list=50:99:99.9

[readers]
description=random "reads"
rw=randread
bs=8k
iodepth=8
numjobs=2
random_distribution=zipf:1.1
size=16m
group_reporting

[log]
rw=write
bs=512
offset=16m
size=1m
new_group
fsync=4

[checked]
stonewall
rw=randwrite
time_based=0
size=256k
offset=32m
verify=crc32c
FIO
run() { "$nudma" run fio.cfg --db fio.db "$@" 2>&1; }

out=$(run -q --set 'programs.fio.job_options=runtime=2ms' \
    --set 'programs.fio.json_output=out-{seed}.json' --seeds 2)
is "a job file beside the scenario" $? 0
is "a file for each seed" "$(echo out-*.json)" "out-1.json out-2.json"
cat >check.py <<'PY'
import json
d = json.load(open("out-1.json"))
jobs = {j["jobname"]: j for j in d["jobs"]}
assert [j["jobname"] for j in d["jobs"]] == ["readers", "log", "checked"], "jobs"
assert [j["groupid"] for j in d["jobs"]] == [0, 1, 2], "groups"
r, log, checked = jobs["readers"]["read"], jobs["log"]["write"], jobs["checked"]
assert jobs["readers"]["job options"]["runtime"] == "2ms", "options"
assert jobs["readers"]["desc"] == 'random "reads"', "description"
assert r["io_bytes"] == 8192 * r["total_ios"] and r["runtime"] in (2, 3), "bytes"
assert abs(r["bw_bytes"] / r["iops"] - 8192) < 1 and r["bw"] == r["bw_bytes"] // 1024, "rates"
assert abs(r["iops"] * 0.002 / r["total_ios"] - 1) < 0.05, "time"
for kind in ("slat_ns", "clat_ns", "lat_ns"):
    k = r[kind]
    assert k["N"] == r["total_ios"] and k["min"] <= k["mean"] <= k["max"] and k["stddev"] > 0, kind
assert abs(r["slat_ns"]["mean"] + r["clat_ns"]["mean"] - r["lat_ns"]["mean"]) < 0.01, "sum"
p = r["clat_ns"]["percentile"]
assert list(p) == ["50.000000", "99.000000", "99.900000"], "percentiles"
assert r["clat_ns"]["min"] <= p["50.000000"] <= p["99.000000"] <= r["clat_ns"]["max"], "order"
assert abs(sum(jobs["readers"]["latency_us"].values()) + sum(jobs["readers"]["latency_ns"].values())
           + sum(jobs["readers"]["latency_ms"].values()) - 100) < 0.01, "levels"
depth = jobs["readers"]["iodepth_level"]
assert abs(sum(depth.values()) - 100) < 0.01 and depth["8"] > 90 and depth["16"] == 0, "depth"
assert jobs["readers"]["iodepth_submit"]["4"] == 100, "submissions"
assert log["total_ios"] // 4 == jobs["log"]["sync"]["total_ios"] > 10, "flushes"
assert jobs["log"]["read"]["total_ios"] == 0 and "percentile" not in jobs["log"]["read"]["clat_ns"]
assert checked["write"]["total_ios"] == checked["read"]["total_ios"] == 64, "verified"
assert all(j["error"] == 0 and j["trim"]["total_ios"] == 0 for j in d["jobs"]), "errors"
print("good")
PY
is "the JSON is as fio's" "$(python3 check.py 2>&1)" good
cp out-1.json before.json
run -q --force --set 'programs.fio.job_options=runtime=2ms' \
    --set 'programs.fio.json_output=out-{seed}.json' >again.txt
is "the same seed, the same file" "$(cmp out-1.json before.json && echo same)" same
has "quantiles are recorded" \
    "$(query fio.db "SELECT group_concat(name) FROM metric WHERE run_id = 1")" \
    'latency_p95_ns.*latency_p99_ns'

# ---- Another text is another run -----------------------------------------------------------------
short='programs.fio.job_options=runtime=1ms'
run -q --set "$short" >first.txt
n=$(query fio.db 'SELECT count(*) FROM run')
run -q --set "$short" >second.txt
is "a run that is there is not repeated" "$(query fio.db 'SELECT count(*) FROM run')" "$n"
sed -i 's/iodepth=8/iodepth=9/' jobs/mixed.fio
run -q --set "$short" >third.txt
is "but with another job file it is" "$(query fio.db 'SELECT count(*) FROM run')" $((n + 1))

# ---- Names and groups ----------------------------------------------------------------------------
cat >jobs/names.fio <<'FIO'
[global]
filename=/dev/nvme0n1
ioengine=libaio
direct=1
rw=randread
size=64k
group_reporting
[a-b]
stats=0
[a_b]
number_ios=3
[c]
number_ios=5
FIO
out=$(run -q --set 'programs.fio.job_file=jobs/names.fio' --set programs.fio.json_output=names.json)
is "jobs whose metrics would have the same names" $? 0
is "the first counts" "$(query fio.db "SELECT group_concat(name, ' ') FROM
    (SELECT name FROM metric WHERE name GLOB 'fio.[a-c]*.read_iops'
        AND run_id = (SELECT max(id) FROM run) ORDER BY name)")" "fio.a_b.read_iops fio.c.read_iops"
is "stats=0 in a group: the others are reported, without it" "$(python3 -c 'import json
for j in json.load(open("names.json"))["jobs"]:
    print(j["jobname"], j["read"]["total_ios"], end=" ")')" "a_b 8 "

# ---- The example ---------------------------------------------------------------------------------
out=$("$nudma" run examples/fio_jobs --filter 'config=lending iodepth=4' --db example.db -q \
    --set programs.fio.json_output=example.json 2>&1)
is "scenarios/examples/fio_jobs.cfg" $? 0
is "its groups" "$(python3 -c 'import json
for j in json.load(open("example.json"))["jobs"]:
    print(j["jobname"], j["groupid"], j["job options"]["runtime"], j["job_runtime"], end=" ")')" \
    "tables 0 10ms 11 log 1 10ms 11 "

# ---- Files that runs would overwrite -------------------------------------------------------------
example() { "$nudma" run examples/fio_jobs --filter config=lending --db example.db -q "$@" 2>&1; }
out=$(example --set programs.fio.json_output=all.json)
is "several points, one json_output" $? 2
has "says which" "$out" "json_output: found \"all.json\", which is written by config=lending iodepth=1 \
and by config=lending iodepth=4, expected a file for each point"
is "nothing has run" "$(echo all*.json)" 'all*.json'
out=$(run -q --set programs.fio.json_output=fio.db)
is "json_output over the database" "$? $(head -c 6 fio.db)" "2 SQLite"
has "says so" "$out" 'json_output: found "fio.db", which is the scenario or the database, expected another file'
out=$(run -q --seeds 2 --set programs.fio.json_output=all.json)
is "several seeds, one json_output" $? 2
has "says so" "$out" 'found "all.json", which runs of 2 seeds write, expected a file for each'
out=$(run -q --set programs.fio.json_output=none/all.json)
is "json_output in a folder that is none, before anything runs" "$? $out" \
    '2 --set: programs.fio.json_output: found "none/all.json" (a string), expected a file in a folder that there is'
out=$(run -q --set programs.fio.job_options=runtime=2ms --set measure.warmup_us=200000)
has "jobs that end in the warm-up, and what helps" "$out" \
    'no time was measured: .* had ended when measure.warmup_us was over: lower measure.warmup_us'
example --set 'programs.fio.json_output=all-{point}.json' >point.txt
is "a file for each point" "$(echo all*.json)" \
    "all-config=lending,iodepth=1.json all-config=lending,iodepth=16.json all-config=lending,iodepth=4.json"

both() { # both KEY=VALUE...: of two programs
    local fio='type="fio"; on="borrower"; device="ssd"; job_options="rw=randread direct=1 size=64k number_ios=4'
    run -q --set "programs.fio={$fio $1\";}" --set "programs.other={$fio $2\"; cpu=2;}"
}
out=$(both write_iolog=log write_iolog=log)
is "two programs, one write_iolog" $? 2
has "says which" "$out" '^--set: programs.other.job_options: write_iolog: a program before this one writes the same file'
both write_iolog=log write_iolog=log2 >log.txt
is "a file for each" "$? $(grep -c ' read ' log) $(grep -c ' read ' log2)" "0 4 4"

# ---- Errors of requests --------------------------------------------------------------------------
# A cable is pulled 200 us after another device has begun to work, and the job goes on for 300 requests.
lost() { # lost CONTINUE_ON_ERROR
    "$nudma" run "$project/tests/scenario/settings/lend.cfg" --db lost.db -q --force \
        --set programs.p.type=device_taken --set 'lending.borrower.borrow=["ssd"]' \
        --set programs.p.device=nfp --set programs.p.bridge=n0 --set programs.p.out_ms=1 \
        --set measure.warmup_us=0 --set measure.duration_us=10000000 \
        --set "programs.fio={type=\"fio\"; cpu=1; \
          job_options=\"direct=1 filename=x rw=randread number_ios=300 ioengine=libaio iodepth=4 \
          continue_on_error=$1\"; json_output=\"lost.json\";}" 2>&1
}
out=$(lost none)
is "an error ends the run" $? 1
has "and is said" "$out" 'fio: a request: the driver says No such device'
lost read >lost.txt
is "continue_on_error: the run goes on" $? 0
failed_requests=$(query lost.db "SELECT CAST(value AS INTEGER) FROM metric
    WHERE name = 'fio.failed_requests'")
is "errors are counted" "$((failed_requests > 100 && failed_requests < 300))" 1
is "in the JSON, too" "$(python3 -c 'import json
j = json.load(open("lost.json"))["jobs"][0]
print(j["total_err"], j["first_error"], j["total_err"] + j["read"]["total_ios"])')" \
    "$failed_requests 19 300"

# ---- Mistakes ------------------------------------------------------------------------------------
sed -i 's/^rw=write$/rw=write\nverfy=crc32c\nzonemode=zbd/' jobs/mixed.fio
out=$(run)
is "mistakes: exit status 2" $? 2
has "with file and line" "$out" 'jobs/mixed.fio:22: verfy: no key .*did you mean "verify"\?'
has "all of them" "$out" 'jobs/mixed.fio:23: zonemode: not available but for zonemode=none'
out=$(run --set programs.fio.job_file=jobs/missing.fio)
is "no such file: exit status 2" $? 2
has "which one, and where it was looked for" "$out" \
    "^--set: .*found \"jobs/missing.fio\".*: $PWD/jobs/missing.fio does not exist .*working directory"
mkdir other
sed 's/"jobs\/mixed.fio"/"..\/jobs\/.\/none.fio"/' fio.cfg >other/fio.cfg
out=$("$nudma" run other/fio.cfg --db fio.db 2>&1)
is "none beside the scenario: exit status 2" $? 2
has "likewise" "$out" \
    "^other/fio.cfg:4: .*: $PWD/jobs/none.fio does not exist \(relative to the folder of other/fio.cfg\)"
has "a folder" "$(run --set programs.fio.job_file=jobs)" ": $PWD/jobs is a folder"
out=$(run --set 'programs.fio.job_file=""' --set 'programs.fio.job_options=rw=randread size=1m')
is "a job without a file, but buffered" $? 2
has "says how" "$out" 'direct: expected direct=1'

# What job_options has set is wrong there, not in the file, and once for all jobs.
sed -i '/^verfy=/d; /^zonemode=/d' jobs/mixed.fio
is "job_options against the jobs of the file" \
    "$(run --set 'programs.fio.job_options=iodepth_low=400 wait_for=none')" \
    '--set: programs.fio.job_options: iodepth_low: found 400, expected at most iodepth, 9 (job [readers])
--set: programs.fio.job_options: wait_for: no job "none" stands before this one (job [readers])'
is "blocks" "$(run --set 'programs.fio.job_options=blocksize_range=700-1400')" \
    "--set: programs.fio.job_options: bs, offset: expected multiples of the device's blocks of 512 bytes (job [readers])"
is "a value that is none" "$(run --set 'programs.fio.job_options=iodepth=x')" \
    '--set: programs.fio.job_options: iodepth: found "x", expected an integer, 1 to 4096'
sed -i 's/^rw=write$/rw=write\niodepth_low=3/' jobs/mixed.fio
has "what is the file's own" "$(run --set 'programs.fio.job_options=runtime=1ms')" \
    '^./jobs/mixed.fio:20: \[log\]: iodepth_low: found 3, expected at most iodepth, 1$'
sed -i '/^iodepth_low=/d' jobs/mixed.fio

# Requests that the engine would have to split.
spdk=(--set programs.fio.engine=spdk --set lending.borrower.nvme_driver=false)
out=$(run "${spdk[@]}" --set programs.fio.job_options=bs=256k)
is "requests too large for the engine: exit status 2" $? 2
is "before anything runs" "$out" "--set: programs.fio.job_options: bs: requests of 262144 bytes, \
expected at most 131072 bytes, the largest request of engine spdk on ssd (job [readers])"
out=$(run "${spdk[@]}" --set devices.ssd.transfer_bytes_max=8192 \
    --set 'programs.fio={type="fio"; on="borrower"; device="ssd"; engine="spdk"; block_bytes=16384;}')
is "likewise a block: exit status 2" $? 2
has "says how much" "$out" 'block_bytes: found 16384 .*expected at most 8192 bytes, the largest'

echo "1..$cases"
[ $failed = 0 ]
