/* fio's jobs: descriptions, what requests they make, in which order and when; traces;
 * verification. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/scenario_fixture.h"
#include "workloads/fio/fio_options.h"

#define HOST                                                               \
    "{ cpu = { sockets = 1; cores_per_socket = 4; }; dram = { node_size =" \
    " \"2 GiB\"; }; ports = ( { name = \"rp1\"; socket = 0; lanes = 8; }," \
    " { name = \"rp2\"; socket = 0; lanes = 8; } ); };"
#define SSD "{ type = \"nvme.controller\"; capacity_bytes = \"64 MiB\"; };"
#define WORLD                                                                         \
    "hosts = { borrower = " HOST " };\ndevices = { ssd = " SSD " ssd1 = " SSD " };\n" \
    "cables = ( { from = \"borrower.s0.rp1\"; to = \"ssd.p0\"; lanes = 4; },"         \
    " { from = \"borrower.s0.rp2\"; to = \"ssd1.p0\"; lanes = 4; } );\n"              \
    "lending = { borrower = { host = \"borrower\"; }; };\n"                           \
    "workload = { type = \"programs\"; measured = \"borrower\"; };\n"                 \
    "measure = { warmup_us = 0; duration_us = 1000000; };\n"
#define PROGRAM(MORE) WORLD "programs = { fio = { type = \"fio\"; " MORE "}; };"

/* A folder for files, and what the last test left in it. */
struct folder {
    char *path;
};

static int make_folder(void **state)
{
    struct folder *folder = g_new0(struct folder, 1);
    folder->path = g_dir_make_tmp("test_fio_XXXXXX", NULL);
    *state = folder;
    return folder->path == NULL;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    GDir *dir = g_dir_open(folder->path, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder->path, name, NULL);
        g_remove(path);
    }
    g_dir_close(dir);
    g_rmdir(folder->path);
    g_free(folder->path);
    g_free(folder);
    return 0;
}

/* Its path; owned by the caller. */
static char *write_file(void **state, const char *name, const char *text)
{
    const struct folder *folder = *state;
    char *path = g_build_filename(folder->path, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static char *with_file(void **state, const char *job_file, const char *more)
{
    g_autofree char *path = write_file(state, "job.fio", job_file);
    return g_strdup_printf(PROGRAM("job_file = \"%s\"; %s"), path, more);
}

static struct run_result *run_file(void **state, const char *job_file)
{
    g_autofree char *text = with_file(state, job_file, "");
    return scenario_run(text);
}

static double value_of(struct run_result *result, const char *metric)
{
    const double value = scenario_value(result, metric);
    run_result_free(result);
    return value;
}

/* ---- What requests a job makes --------------------------------------------------------------- */

#define STEPS_MAX 20000u

struct step {
    uint64_t us, offset, bytes;
    bool write;
};

struct steps {
    struct step *step;
    unsigned n;
};

static struct steps read_steps(const char *path)
{
    struct steps steps = { g_new0(struct step, STEPS_MAX), 0 };
    char line[256], action[16];
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof(line), in));
    assert_string_equal(line, "fio version 3 iolog\n");
    while (fgets(line, sizeof(line), in) != NULL) {
        unsigned long long us, offset, bytes;
        if (sscanf(line, "%llu %*s %15s %llu %llu", &us, action, &offset, &bytes) != 4)
            continue;
        assert_true(steps.n < STEPS_MAX);
        steps.step[steps.n++] = (struct step){ us, offset, bytes, strcmp(action, "write") == 0 };
    }
    fclose(in);
    return steps;
}

/* Of a job with these keys on one device. */
static struct steps trace(void **state, const char *keys)
{
    const struct folder *folder = *state;
    g_autofree char *log = g_build_filename(folder->path, "steps.log", NULL);
    g_autofree char *file = g_strdup_printf(
        "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/nvme0n1\n[job]\n%s\nwrite_iolog=%s\n",
        keys, log);
    run_result_free(run_file(state, file));
    return read_steps(log);
}

static void test_sequential(void **state)
{
    struct steps steps = trace(state, "rw=read\nbs=8k\nsize=256k\noffset=1m\niodepth=4");
    assert_int_equal(steps.n, 32);
    for (unsigned i = 0; i < steps.n; i++) {
        assert_int_equal(steps.step[i].offset, 1048576 + 8192 * i);
        assert_int_equal(steps.step[i].bytes, 8192);
        assert_false(steps.step[i].write);
    }
    g_free(steps.step);
    /* From the beginning again until io_size; with holes of 8 KiB. */
    steps = trace(state, "rw=write\nbs=4k\nsize=64k\nio_size=96k");
    assert_int_equal(steps.n, 24);
    for (unsigned i = 0; i < steps.n; i++)
        assert_int_equal(steps.step[i].offset, 4096 * (i % 16));
    g_free(steps.step);
    steps = trace(state, "rw=write:8k\nbs=4k\nsize=96k\nnumber_ios=8");
    assert_int_equal(steps.n, 8);
    for (unsigned i = 0; i < steps.n; i++)
        assert_int_equal(steps.step[i].offset, 12288 * i);
    g_free(steps.step);
}

/* Each block once with a map; some twice without. */
static void test_random_map(void **state)
{
    for (unsigned map = 0; map < 2; map++) {
        unsigned n[512] = { 0 }, n_unused = 0, n_neighbours = 0;
        struct steps steps = trace(state, map != 0 ? "rw=randread\nsize=2m"
                                                   : "rw=randread\nsize=2m\nnorandommap");
        assert_int_equal(steps.n, 512);
        for (unsigned i = 0; i < steps.n; i++) {
            n[steps.step[i].offset / 4096]++;
            n_neighbours += i != 0 && steps.step[i].offset == steps.step[i - 1].offset + 4096;
        }
        for (unsigned i = 0; i < 512; i++)
            n_unused += n[i] == 0;
        assert_true(map != 0 ? n_unused == 0 : n_unused > 140 && n_unused < 240); /* 512 / e */
        assert_true(n_neighbours < 40);
        g_free(steps.step);
    }
}

static void test_mixes(void **state)
{
    unsigned writes = 0, small = 0, middle = 0;
    uint64_t last[2] = { 0 };
    struct steps steps = trace(state, "rw=rw\nrwmixread=75\nbs=4k\nsize=8m");
    assert_int_equal(steps.n, 2048);
    for (unsigned i = 0; i < steps.n; i++) { /* each direction in its own order */
        writes += steps.step[i].write;
        assert_int_equal(steps.step[i].offset, last[steps.step[i].write]);
        last[steps.step[i].write] += 4096;
    }
    assert_true(writes > 512 - 80 && writes < 512 + 80);
    g_free(steps.step);
    steps = trace(state, "rw=randread\nbssplit=4k/50:64k/10:8k/\nsize=16m\nnumber_ios=1000\n"
                         "norandommap");
    for (unsigned i = 0; i < steps.n; i++) {
        small += steps.step[i].bytes == 4096;
        middle += steps.step[i].bytes == 8192;
        assert_int_equal(steps.step[i].offset % 4096, 0);
    }
    assert_int_equal(steps.n, 1000);
    assert_true(small > 440 && small < 560 && middle > 340 && middle < 460);
    g_free(steps.step);
    /* The mix of JESD219: most places are aligned, sizes are not, and half of all go to a
     * twentieth. */
    unsigned hot = 0, sizes[2] = { 0 };
    steps = trace(state,
                  "rw=randrw\nnorandommap\nrwmixread=40\niodepth=64\nsize=60m\n"
                  "number_ios=2000\nblockalign=4k\nrandom_distribution=zoned:50/5:30/15:20/80\n"
                  "bssplit=512/4:1024/1:1536/1:2048/1:2560/1:3072/1:3584/1:4k/67:8k/10:16k/7:"
                  "32k/3:64k/3");
    for (unsigned i = 0; i < steps.n; i++) {
        assert_int_equal(steps.step[i].offset % 4096, 0);
        hot += steps.step[i].offset < 3145728;
        sizes[0] += steps.step[i].bytes == 512;
        sizes[1] += steps.step[i].bytes == 4096;
    }
    assert_true(hot > 900 && hot < 1100);
    assert_true(sizes[0] > 45 && sizes[0] < 120 && sizes[1] > 1250 && sizes[1] < 1430);
    g_free(steps.step);
    steps = trace(state, "rw=randwrite\nbsrange=4k-16k\nsize=4m\nverify=crc32c");
    for (unsigned i = 0; i < steps.n; i++)
        assert_true(steps.step[i].bytes % 4096 == 0 && steps.step[i].bytes <= 16384);
    g_free(steps.step);
}

/* A new place after N requests, which are neighbours or the same. */
static void test_sequencer(void **state)
{
    for (unsigned same = 0; same < 2; same++) {
        struct steps steps = trace(
            state, same != 0 ? "rw=randread:4\nrw_sequencer=identical\nsize=8m\nnumber_ios=64\n"
                               "norandommap"
                             : "rw=randread:4\nsize=8m\nnumber_ios=64\nnorandommap");
        for (unsigned i = 0; i < steps.n; i++)
            if (i % 4 != 0)
                assert_int_equal(steps.step[i].offset,
                                 (steps.step[i - 1].offset + (same != 0 ? 0 : 4096)) % 8388608);
        assert_int_equal(steps.n, 64);
        g_free(steps.step);
    }
}

/* ---- When ------------------------------------------------------------------------------------ */

static void test_rates(void **state)
{
    struct run_result *result = run_file(state, "[job]\nfilename=/dev/nvme0n1\ndirect=1\n"
                                                "rw=randrw\nrate_iops=20k,5k\nnumber_ios=500\n"
                                                "ioengine=libaio\niodepth=4\nkb_base=1000\n");
    const double reads = scenario_value(result, "read_iops"),
                 writes = scenario_value(result, "write_iops");
    assert_true(reads > 19000 && reads < 21500 && writes > 4700 && writes < 5300);
    run_result_free(result);
    /* One request, then 100 us of which 40 compute. */
    result = run_file(state, "[job]\nfilename=x\ndirect=1\nrw=randread\nthinktime=100\n"
                             "thinktime_spin=40\nnumber_ios=100\n");
    const double period = 1e9 / scenario_value(result, "iops") -
                          scenario_value(result, "latency_mean_ns");
    assert_true(period > 99000 && period < 110000); /* with the exit from idle */
    assert_true(scenario_value(result, "cpu_utilization_ratio") > 0.35);
    run_result_free(result);
    struct steps steps = trace(state, "rw=randread\nrate=40960k\nrate_process=poisson\n"
                                      "number_ios=1000\nsize=16m\nkb_base=1000");
    double mean = 0, square = 0;
    for (unsigned i = 1; i < steps.n; i++) {
        const double gap = (double)(steps.step[i].us - steps.step[i - 1].us);
        mean += gap / (steps.n - 1);
        square += gap * gap / (steps.n - 1);
    }
    assert_true(mean > 90 && mean < 110); /* 4096 / 40.96 MB/s */
    assert_true(square - mean * mean > 0.6 * mean * mean);
    g_free(steps.step);
}

/* Time-based: as long as runtime, after ramp_time; one that reads all of it ends before. */
static void test_runtime(void **state)
{
    const struct folder *folder = *state;
    g_autofree char *log = g_build_filename(folder->path, "time.log", NULL);
    g_autofree char *file = g_strdup_printf("[job]\nfilename=x\ndirect=1\nrw=read\nsize=64k\n"
                                            "runtime=2ms\nramp_time=1ms\ntime_based\n"
                                            "write_iolog=%s\n",
                                            log);
    struct run_result *result = run_file(state, file);
    struct steps steps = read_steps(log);
    const double iops = scenario_value(result, "iops"),
                 mean = scenario_value(result, "latency_mean_ns");
    assert_true(steps.step[steps.n - 1].us > 2950 && steps.step[steps.n - 1].us < 3000);
    assert_true(fabs(iops * mean * 1e-9 - 1) < 0.1);
    assert_true(fabs(steps.n / (3e-3 * iops) - 1) < 0.02);
    g_free(steps.step);
    run_result_free(result);
}

/* A job that waits for its next request when runtime is over ends there, without it. */
static void test_runtime_of_waits(void **state)
{
    g_autofree char *log = write_file(state, "late.log",
                                      "fio version 3 iolog\n0 f add\n0 f open\n0 f read 0 4096\n"
                                      "50000 f read 4096 4096\n50001 f close\n");
    g_autofree char *traced = g_strconcat("replay_redirect=x\nread_iolog=", log, NULL);
    const char *const waits[] = { "rate=1m\nbs=64k",
                                  "rate_iops=10\niodepth=8\nioengine=libaio",
                                  "thinktime=50ms",
                                  "thinktime=50ms\nthinktime_spin=30ms",
                                  "thinktime=50ms\nthinktime_spin=3ms",
                                  traced };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(waits); i++) {
        g_autofree char *file = g_strdup_printf("[job]\nfilename=x\ndirect=1\nrw=read\nsize=1m\n"
                                                "runtime=5ms\n%s\n",
                                                waits[i]);
        const double rate = value_of(run_file(state, file), "fio.job.read_iops");
        if (!(fabs(rate / 200 - 1) < 0.02)) /* one request */
            fail_msg("%s: %g requests per second, of one in 5 ms", waits[i], rate);
    }
}

/* A pass ends where the next whole request does not fit: as in fio, nothing comes twice. */
static void test_whole_requests(void **state)
{
    static const struct {
        const char *keys;
        unsigned n;
    } cases[] = {
        { "rw=read\nsize=1028k\nbs=64k", 16 },
        { "rw=write\nsize=128k\nbs=3k", 42 },
        { "rw=randread\nsize=1028k\nbs=64k", 16 },
        { "rw=randrw\nsize=1028k\nbs=64k", 16 },
        { "rw=read\nsize=1m\nbs=64k", 16 },
        { "rw=read\nsize=1028k\nbs=64k\nloops=2", 32 },
        /* What goes anywhere in the span has room for one more. */
        { "rw=randread\nsize=1028k\nbs=64k\nnorandommap", 17 },
        { "rw=read\nsize=1028k\nbs=64k\nio_size=100k", 2 },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct steps steps = trace(state, cases[i].keys);
        if (steps.n != cases[i].n)
            fail_msg("%s: %u requests, expected %u", cases[i].keys, steps.n, cases[i].n);
        g_free(steps.step);
    }
}

/* Jobs wait for each other: what is written is there for those after the wall. */
static void test_order(void **state)
{
    const struct folder *folder = *state;
    g_autofree char *first = g_build_filename(folder->path, "first.log", NULL);
    g_autofree char *second = g_build_filename(folder->path, "second.log", NULL);
    g_autofree char *file =
        g_strdup_printf("[global]\nfilename=/dev/nvme0n1\ndirect=1\nbs=16k\nsize=512k\n"
                        "ioengine=libaio\niodepth=8\nverify=pattern\n"
                        "[write]\nrw=write\ndo_verify=0\nwrite_iolog=%s\n"
                        "[read]\nstonewall\nrw=randread\nwrite_iolog=%s\n"
                        "[after]\nwait_for=read\nrw=read\nstartdelay=50us\n",
                        first, second);
    struct run_result *result = run_file(state, file);
    assert_true(scenario_value(result, "ssd.writes") == 32);
    assert_true(scenario_value(result, "ssd.reads") == 64);
    run_result_free(result);
    /* Without the wall both begin at once, and blocks are read that were not written yet. */
    g_autofree char *at_once = g_strdup(file);
    memcpy(strstr(at_once, "stonewall"), "thread   ", 9);
    g_autofree char *text = with_file(state, at_once, "");
    scenario_fails(text, "which were never written");
}

/* Jobs of two programs begin at one time, though only one has blocks to write first, which takes a
 * millisecond. The other's are over 400 us after they have begun: what is measured from 700 us on
 * has them all the same. */
static void test_together(void **state)
{
    g_autofree char *first = write_file(state, "first.fio",
                                        "[a]\ndirect=1\nrw=randread\nsize=4m\nnumber_ios=20\n");
    g_autofree char *second = write_file(
        state, "second.fio", "[b]\nfilename=x\ndirect=1\nrw=randread\nruntime=400us\ntime_based\n");
    g_autofree char *text = g_strdup_printf(
        WORLD "programs = { one = { type = \"fio\"; job_file = \"%s\"; }; "
              "two = { type = \"fio\"; cpu = 2; device = \"ssd1\"; job_file = \"%s\"; }; };",
        first, second);
    memcpy(strstr(text, "warmup_us = 0; "), "warmup_us=700; ", 15);
    struct run_result *result = scenario_run(text);
    const double rate = scenario_value(result, "two.b.read_iops");
    assert_true(rate > 0 && fabs(scenario_value(result, "one.a.read_iops") / rate - 1) < 0.1);
    run_result_free(result);
}

static void test_exitall(void **state)
{
    struct run_result *result = run_file(
        state, "[global]\nfilename=x\ndirect=1\nrw=randread\n[short]\nexitall\nnumber_ios=20\n"
               "[long]\nnumber_ios=1000000\nruntime=50ms\ntime_based\n");
    assert_true(scenario_value(result, "ssd.reads") < 60);
    run_result_free(result);
    /* Also one that waits: nothing goes on beyond the 5 ms that are measured. */
    static const char *const waits[] = { "rate=1m\nbs=64k", "thinktime=50ms", "startdelay=50ms" };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(waits); i++) {
        g_autofree char *file = g_strdup_printf(
            "[global]\nfilename=x\ndirect=1\nrw=randread\nsize=1m\n[short]\nexitall\n"
            "number_ios=20\n[long]\n%s\n",
            waits[i]);
        g_autofree char *text = with_file(state, file, "");
        memcpy(strstr(text, "1000000; };"), "   5000", 7);
        run_result_free(scenario_run(text));
    }
}

/* ---- Depth and processes --------------------------------------------------------------------- */

#define DEEP "[job]\nfilename=x\ndirect=1\nrw=randread\nioengine=libaio\nnumber_ios=2000\n"

static void test_depth(void **state)
{
    const double one = value_of(run_file(state, DEEP), "iops");
    const double deep = value_of(run_file(state, DEEP "iodepth=16\n"), "iops");
    const double batch = value_of(run_file(state, DEEP "iodepth=16\niodepth_batch=8\n"
                                                       "iodepth_batch_complete=8\n"),
                                  "iops");
    const double full = value_of(run_file(state, DEEP "iodepth=16\n"), "latency_mean_ns");
    const double drained = value_of(run_file(state, DEEP "iodepth=16\niodepth_low=1\n"),
                                    "latency_mean_ns");
    const double sync = value_of(run_file(state, "[job]\nfilename=x\ndirect=1\nrw=randread\n"
                                                 "iodepth=16\nnumber_ios=2000\n"),
                                 "iops");
    const double ring = value_of(run_file(state, DEEP "iodepth=16\nioengine=io_uring\n"), "iops");
    const double ring_one = value_of(run_file(state, DEEP "ioengine=io_uring\n"), "iops");
    assert_true(deep > 3 * one);
    assert_true(ring > 1.02 * deep && fabs(ring_one / one - 1) < 0.05);
    assert_true(batch > 1.02 * deep);  /* fewer system calls */
    assert_true(drained < 0.7 * full); /* by Little's law: 8.5 under way */
    assert_true(fabs(sync / one - 1) < 0.05);
    /* Requests that overlap wait for each other. */
    run_result_free(run_file(state, "[job]\nfilename=x\ndirect=1\nrw=randrw\nioengine=libaio\n"
                                    "iodepth=16\nsize=64k\nio_size=2m\nserialize_overlap=1\n"
                                    "norandommap\n"));
}

/* Clones on CPUs in turn, on places of their own; two devices. */
static void test_processes(void **state)
{
    struct run_result *result = run_file(
        state, "[global]\ndirect=1\nrw=randread\nnumber_ios=200\n[job]\nfilename=x\nnumjobs=3\n"
               "cpus_allowed=1,3\nsize=1m\noffset_increment=1m\n");
    assert_true(scenario_value(result, "ssd.reads") == 600);
    run_result_free(result);
    g_autofree char *two =
        with_file(state,
                  "[global]\ndirect=1\nrw=randread\nnumber_ios=100\n[a]\nfilename=/dev/nvme0n1\n"
                  "[b]\nfilename=/dev/nvme1n1\nnumber_ios=50\n",
                  "filenames = \"/dev/nvme0n1=ssd /dev/nvme1n1=ssd1\";");
    result = scenario_run(two);
    assert_true(scenario_value(result, "ssd.reads") == 100);
    assert_true(scenario_value(result, "ssd1.reads") == 50);
    const double a = scenario_value(result, "fio.a.read_iops"),
                 b = scenario_value(result, "fio.b.read_iops");
    assert_true(fabs(a / b - 1) < 0.1); /* each over its own time */
    assert_true(fabs(a * scenario_value(result, "fio.a.read_latency_mean_ns") * 1e-9 - 1) < 0.05);
    assert_false(run_result_has(result, RECORD_METRIC, "a.read_iops"));
    assert_false(run_result_has(result, RECORD_METRIC, "fio.a.write_iops"));
    run_result_free(result);
    /* Blocks of its own are written first where they are read. */
    result = run_file(state, "[global]\ndirect=1\nsize=1m\n[r]\nrw=read\n[w]\nrw=write\n");
    assert_true(scenario_value(result, "ssd.writes") == 256 + 8);
    assert_true(scenario_value(result, "ssd.reads") == 256);
    run_result_free(result);
}

/* Jobs of a process that drives the device itself: the second opens it when the first has let it
 * go. */
static void test_user_space(void **state)
{
    const char *const job = "[global]\nioengine=spdk\nfilename=Nvme0\nsize=1m\niodepth=16\n"
                            "verify=crc32c\n"
                            "[w]\nrw=write\niodepth_batch=4\ndo_verify=0\n"
                            "[r r]\nstonewall\nrw=randread\nbs=64k\nnumjobs=2\ncpus_allowed=2\n";
    GString *text = g_string_new(NULL);
    g_autofree char *with = with_file(state, job, "");
    g_string_append(text, with);
    g_string_replace(text, "{ host = \"borrower\"; }",
                     "{ host = \"borrower\"; nvme_driver = false; }", 1);
    struct run_result *result = scenario_run(text->str);
    assert_true(scenario_value(result, "ssd.writes") == 256);
    assert_true(scenario_value(result, "ssd.reads") == 32);
    assert_true(scenario_value(result, "ssd.interrupts") == 0);
    assert_true(scenario_value(result, "fio.r_r.read_iops") > 10000);
    run_result_free(result);
    g_string_free(text, TRUE);
}

/* ---- Verification ---------------------------------------------------------------------------- */

static void test_verify(void **state)
{
    const char *const job = "[job]\nfilename=x\ndirect=1\nrw=randwrite\nsize=1m\nioengine=libaio\n"
                            "iodepth=8\nbs=8k\nloops=2\n";
    g_autofree char *checked = g_strconcat(job, "verify=crc32c\n", NULL);
    struct run_result *result = run_file(state, job);
    const double plain = scenario_value(result, "write_iops");
    assert_true(scenario_value(result, "ssd.reads") == 0);
    run_result_free(result);
    result = run_file(state, checked);
    assert_true(scenario_value(result, "ssd.reads") == 256);
    assert_true(scenario_value(result, "ssd.writes") == 256);
    assert_true(plain > 0);
    run_result_free(result);
    g_autofree char *unwritten =
        with_file(state, "[job]\nfilename=x\ndirect=1\nrw=read\nsize=1m\nverify=pattern\n", "");
    scenario_fails(unwritten, "verify: fio.job.0 reads 4096 bytes at 0, which were never written");
}

/* What is read is there without having been written, on any media and in any form of payload; the
 * check of all that is read finds nothing wrong. */
static void test_laid_out(void **state)
{
    static const char *const drives[] = { "", "payload = \"bytes\"; ",
                                          "media = \"nand\"; preconditioned = \"fresh\"; " };
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(drives); i++) {
        g_autofree char *ssd = g_strconcat("type = \"nvme.controller\"; ", drives[i], NULL);
        double reads[2], writes[2];
        for (unsigned laid_out = 0; laid_out < 2; laid_out++) {
            g_autofree char *program = g_strdup_printf(
                PROGRAM("span_bytes = \"1 MiB\"; operations = 300; read_ratio = 0.8; "
                        "queue_depth = 4; laid_out = %s; "),
                laid_out ? "true" : "false");
            g_auto(GStrv) parts = g_strsplit(program, "type = \"nvme.controller\";", -1);
            g_autofree char *text = g_strjoinv(ssd, parts);
            struct run_result *result = scenario_run(text);
            reads[laid_out] = scenario_value(result, "ssd.reads");
            writes[laid_out] = scenario_value(result, "ssd.writes");
            run_result_free(result);
        }
        assert_true(reads[0] == reads[1] && reads[1] > 200 && writes[1] > 20);
        assert_true(writes[0] - writes[1] == 8); /* of 128 KiB */
    }
}

/* Where nothing is read, nothing is written before: by a job of the settings as by one of files. */
static void test_only_writes(void **state)
{
    struct run_result *result = scenario_run(
        PROGRAM("span_bytes = \"1 MiB\"; operations = 300; read_ratio = 0.0; queue_depth = 4; "));
    (void)state;
    const double writes = scenario_value(result, "ssd.writes");
    assert_true(writes >= 300 && writes < 304); /* the span is 8 of 128 KiB */
    assert_true(scenario_value(result, "ssd.reads") == 0);
    run_result_free(result);
}

/* What is left of a size beyond its last block is neither written nor read. */
static void test_part_of_a_block(void **state)
{
    const char *const job = "[job]\ndirect=1\nrw=randread\nbs=4k\nsize=100000\n";
    g_autofree char *laid_out = with_file(state, job, "laid_out = true; ");
    struct run_result *result = run_file(state, job);
    assert_true(scenario_value(result, "ssd.write_bytes") == 24 * 4096);
    const double read_bytes = scenario_value(result, "ssd.read_bytes");
    assert_true(read_bytes >= 24 * 4096);
    run_result_free(result);
    result = scenario_run(laid_out);
    assert_true(scenario_value(result, "ssd.write_bytes") == 0);
    assert_true(scenario_value(result, "ssd.read_bytes") == read_bytes);
    run_result_free(result);
}

/* ---- Traces ---------------------------------------------------------------------------------- */

static void assert_same_steps(const struct steps *a, const struct steps *b, uint64_t us)
{
    assert_int_equal(a->n, b->n);
    for (unsigned i = 0; i < a->n; i++) {
        assert_int_equal(a->step[i].offset, b->step[i].offset);
        assert_int_equal(a->step[i].bytes, b->step[i].bytes);
        assert_int_equal(a->step[i].write, b->step[i].write);
        if (us != 0 && (a->step[i].us > b->step[i].us + us || b->step[i].us > a->step[i].us + us))
            fail_msg("step %u at %lu us, replayed at %lu us", i, (unsigned long)a->step[i].us,
                     (unsigned long)b->step[i].us);
    }
}

/* What a run has written is done again, at the same times, or faster. */
static void test_iolog(void **state)
{
    const struct folder *folder = *state;
    struct steps original = trace(state, "rw=randrw\nsize=4m\nbssplit=4k/60:16k/40\nrate_iops=5k\n"
                                         "iodepth=4\nnumber_ios=200");
    g_autofree char *from = g_build_filename(folder->path, "steps.log", NULL);
    g_autofree char *kept = g_build_filename(folder->path, "kept.log", NULL);
    assert_int_equal(g_rename(from, kept), 0);
    struct steps replayed = trace(state, "read_iolog=kept.log\niodepth=4");
    assert_same_steps(&original, &replayed, 20);
    g_free(replayed.step);
    replayed = trace(state, "read_iolog=kept.log\niodepth=4\nreplay_no_stall=1");
    assert_same_steps(&original, &replayed, 0);
    assert_true(replayed.step[199].us < original.step[199].us / 2);
    g_free(replayed.step);
    replayed = trace(state, "read_iolog=kept.log\nreplay_time_scale=200\nreplay_skip=write");
    assert_true(replayed.n < 150 && replayed.n > 50);
    assert_true(fabs((double)replayed.step[replayed.n - 1].us / (double)original.step[199].us -
                     0.5) < 0.05);
    g_free(replayed.step);
    g_free(original.step);
}

/* Each loop has the pauses of the trace, from its own beginning on. */
static void test_iolog_loops(void **state)
{
    g_free(write_file(state, "loops.log",
                      "fio version 2 iolog\n/dev/sda open\n/dev/sda read 0 4096\n"
                      "/dev/sda wait 500 0\n/dev/sda read 4096 4096\n"));
    struct steps steps = trace(state, "read_iolog=loops.log\nloops=3");
    assert_int_equal(steps.n, 6);
    for (unsigned i = 1; i < steps.n; i++) {
        const uint64_t pause_us = steps.step[i].us - steps.step[i - 1].us;
        if (i % 2 == 1 ? pause_us < 480 || pause_us > 520 : pause_us > 20)
            fail_msg("request %u comes %lu us after the one before", i, (unsigned long)pause_us);
    }
    g_free(steps.step);
}

static void test_iolog_versions(void **state)
{
    g_free(write_file(state, "v2.log",
                      "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n"
                      "/dev/sda write 0 8192\n/dev/sda wait 500 0\n"
                      "/dev/sda wait 20 0\n"
                      "/dev/sda read 4096 4096\n/dev/sda sync 0 0\n"
                      "/dev/sda close\n"));
    struct steps steps = trace(state, "read_iolog=v2.log");
    assert_int_equal(steps.n, 2);
    assert_true(steps.step[0].write && steps.step[0].us < 5);
    assert_true(!steps.step[1].write && steps.step[1].us >= 500 && steps.step[1].us < 515);
    g_free(steps.step);
    static const char *const bad[][2] = {
        { "fio version 1 iolog\n", "bad.log:1: expected \"fio version 2 iolog\"" },
        { "fio version 2 iolog\nf read 0 4096\ng read 0 4096\n",
          "bad.log:3: a second file: replay_redirect lets all be the job's" },
        { "fio version 2 iolog\nf trim 0 4096\n", "bad.log:2: trim: the engines cannot" },
        { "fio version 3 iolog\n7 f raed 0 4096\n",
          "bad.log:2: raed: no action of version 3; did you mean \"read\"?" },
        { "fio version 3 iolog\nf read 0 4096\n", "bad.log:2: expected TIMESTAMP FILE ACTION" },
        { "fio version 3 iolog\n99999999999999999999 f read 0 4096\n",
          "bad.log:2: expected at most 100000000000 us since the beginning" },
        { "fio version 2 iolog\nf wait 99999999999 0\nf wait 200 0\nf read 0 4096\n",
          "bad.log:3: expected at most 100000000000 us since the beginning" },
        { "fio version 2 iolog\nf add\n", "bad.log: there is nothing to replay" },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bad); i++) {
        g_free(write_file(state, "bad.log", bad[i][0]));
        g_autofree char *text = with_file(state,
                                          "[job]\nfilename=x\ndirect=1\nread_iolog=bad.log\n", "");
        struct sim_error_list errors = { 0 };
        struct config *config = fixture_config(text, &errors);
        assert_false(experiment_check(config, &errors));
        FILE *out = tmpfile();
        char message[512] = "";
        sim_error_print(&errors, out);
        rewind(out);
        assert_true(fread(message, 1, sizeof(message) - 1, out) > 0);
        fclose(out);
        if (errors.n_messages != 1 || strstr(message, bad[i][1]) == NULL)
            fail_msg("\"%s\" instead of \"%s\"", message, bad[i][1]);
        sim_error_release(&errors);
        config_free(config);
    }
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void refused_job(void **state, const char *keys, const char *message)
{
    g_autofree char *file = g_strdup_printf("[job]\nfilename=x\ndirect=1\n%s\n", keys);
    g_autofree char *text = with_file(state, file, "");
    scenario_refused(text, message);
}

/* What might never end is not opened, and what is no text is not taken for its beginning. */
static void test_files_that_are_none(void **state)
{
    const struct folder *folder = *state;
    g_autofree char *pipe = g_build_filename(folder->path, "pipe", NULL);
    g_autofree char *more = g_build_filename(folder->path, "more.fio", NULL);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    refused_job(state, "include pipe", "pipe: cannot be read: it is no regular file");
    refused_job(state, "read_iolog=pipe", "pipe: it is no regular file");
    refused_job(state, "read_iolog=/dev/zero", "/dev/zero: it is no regular file");
    assert_true(g_setenv("NUDMA_TEST_TEXT", "caf\xe9", TRUE));
    refused_job(state, "description=${NUDMA_TEST_TEXT}",
                "job.fio:4: description: found the byte 0xe9, which is no UTF-8");
    refused_job(state, "description=\x1b[31m", "description: found the control character U+001B");
    refused_job(state, "description=caf\xe9", "job.fio:4: column 16: found the byte 0xe9");
    assert_true(g_file_set_contents(more, "bs=4k\0\nbs=x", 11, NULL));
    refused_job(state, "include more.fio", "more.fio: cannot be read: it is not a text file");
    refused_job(state, "read_iolog=more.fio", "more.fio: it is not a text file");
}

static void test_iolog_over_what_is_read(void **state)
{
    const struct folder *folder = *state;
    g_autofree char *trace = write_file(state, "t.log", "fio version 2 iolog\nf read 0 4096\n");
    g_autofree char *link = g_build_filename(folder->path, "link", NULL);
    g_autofree char *itself = g_strdup_printf("write_iolog=%s/job.fio", folder->path);
    g_autofree char *through = g_strdup_printf("read_iolog=t.log\nwrite_iolog=%s", link);
    g_autofree char *kept = NULL;
    assert_int_equal(symlink("t.log", link), 0);
    refused_job(state, itself, "[job]: write_iolog: ");
    refused_job(state, through, "link is read here, expected another file");
    assert_true(g_file_get_contents(trace, &kept, NULL, NULL));
    assert_string_equal(kept, "fio version 2 iolog\nf read 0 4096\n");
}

/* Two includes of each file, in 16 levels, are 65536 files. */
static void test_includes_without_number(void **state)
{
    for (unsigned i = 0; i < 15; i++) {
        g_autofree char *name = g_strdup_printf("%u.fio", i);
        g_autofree char *text = g_strdup_printf("include %u.fio\ninclude %u.fio\n", i + 1, i + 1);
        g_free(write_file(state, name, text));
    }
    g_free(write_file(state, "15.fio", ""));
    refused_job(state, "include 0.fio", "include: more than 1000 files are included");
}

static void test_refused(void **state)
{
    static const char *const cases[][2] = {
        { "iodepht=4", "iodepht: no key that nudma knows; did you mean \"iodepth\"?" },
        { "rw=randtrim", "rw: found \"randtrim\", expected read, write, rw, randread" },
        { "bs=4q", "bs: found \"4q\", expected bytes" },
        { "iodepth=0", "iodepth: found \"0\", expected an integer, 1 to 4096" },
        { "runtime=5 parsec", "runtime: found \"5 parsec\", expected a time" },
        { "iodepth", "iodepth: found nothing, expected a value" },
        { "ioengine=libaoi", "[job]: ioengine: no engine \"libaoi\"; did you mean \"libaio\"?" },
        { "bs=1000", "[job]: bs, offset: expected multiples of the device's blocks of 512 bytes" },
        { "size=1g", "[job]: size: 1073741824 bytes from 0 on, expected at most the 67108864" },
        { "offset=64m", "[job]: size: 0 bytes from 67108864 on, expected" },
        { "time_based", "[job]: time_based: expected runtime beside it" },
        { "cpus_allowed=2-5",
          "[job]: cpus_allowed: found CPU 4, expected CPUs of the host, 0 to 3" },
        { "wait_for=other", "[job]: wait_for: no job \"other\" stands before this one" },
        { "direct=0", "[job]: direct: expected direct=1" },
        { "verify=md5", "verify: found \"md5\", expected 0, null, pattern" },
        { "ba=4k,8k", "[job]: blockalign: expected the same for reads and writes" },
        { "zonemode=zbd",
          "zonemode: not available but for zonemode=none: the device has no zones" },
        { "bssplit=4k/80:8k/30", "bssplit: found \"4k/80:8k/30\", expected sizes with" },
        { "random_distribution=zipf:0", "random_distribution: found \"zipf:0\"" },
        { "numjobs=2\nwrite_iolog=x", "[job]: write_iolog: expected a file for each job" },
        { "read_iolog=missing.log", "missing.log: No such file" },
        { "include missing.fio", "missing.fio" },
        { "iodepth_low=9", "[job]: iodepth_low: found 9, expected at most iodepth, 1" },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++)
        refused_job(state, cases[i][0], cases[i][1]);
    g_autofree char *none = with_file(state, "; nothing\n", "");
    scenario_refused(none, "no job: a section besides [global] is one");
    g_autofree char *early = with_file(state, "bs=4k\n[job]\ndirect=1\nfilename=x\n", "");
    scenario_refused(early, "bs: no section stands above it");
    g_autofree char *two = with_file(state,
                                     "[a]\nfilename=x\ndirect=1\n[b]\nfilename=y\ndirect=1\n", "");
    scenario_refused_among(two, "[b]: filename: which device is y?");
    g_autofree char *own = with_file(state, "[a]\ndirect=1\n", "");
    scenario_refused(own, "[a]: size: expected bytes, as the job has no filename");
    scenario_refused(PROGRAM("job_file = \"/nowhere/x.fio\"; "), "/nowhere/x.fio");
    scenario_refused(PROGRAM("engine = \"libaio\"; job_options = \"direct=1 filename=x "
                             "ioengine=libaoi\"; "),
                     "ioengine: no engine \"libaoi\"; did you mean \"libaio\"?");
    scenario_refused(PROGRAM("job_options = \"direct=1 filename=x\"; queue_depth = 2; "),
                     "queue_depth");
    scenario_refused(PROGRAM("filenames = \"x=ssd\"; "), "filenames");
}

/* A job file may name any engine of fio where the setting chooses another. */
static void test_engine_replaced(void **state)
{
    (void)state;
    run_result_free(scenario_run(
        PROGRAM("engine = \"libaio\"; "
                "job_options = \"direct=1 filename=x number_ios=4 ioengine=posixaio\"; ")));
}

/* Every key that is refused says so, but for its value that means nothing; those without an effect
 * are all taken at once. Each stands in docs/fio.md, with what the table says of it. */
static void test_keys(void **state)
{
    const char *name, *alias, *neutral, *help;
    enum fio_key_kind kind;
    g_autofree char *page = NULL;
    GString *ignored = g_string_new("[job]\nfilename=x\ndirect=1\nnumber_ios=2\n");
    assert_true(g_file_get_contents("docs/fio.md", &page, NULL, NULL));
    for (unsigned i = 0; fio_key_at(i, &name, &alias, &kind, &neutral, &help); i++) {
        g_autofree char *names = alias != NULL ? g_strdup_printf("| `%s`, `%s` |", name, alias)
                                               : g_strdup_printf("| `%s` |", name);
        const char *row = strstr(strstr(page, "## Keys"), names);
        if (row == NULL)
            fail_msg("%s is not in docs/fio.md", names);
        g_autofree char *line = g_strndup(row, (gsize)(strchr(row, '\n') - row));
        if (strstr(line, help) == NULL)
            fail_msg("docs/fio.md: %s: expected \"%s\"", line, help);
        if (kind == FIO_KEY_IGNORED || (kind == FIO_KEY_REFUSED && neutral != NULL))
            g_string_append_printf(ignored, "%s=%s\n", name, neutral != NULL ? neutral : "1");
        if (kind != FIO_KEY_REFUSED)
            continue;
        g_autofree char *keys = g_strdup_printf("%s=strange", name);
        g_autofree char *message = g_strdup_printf("%s: not available", name);
        refused_job(state, keys, message);
    }
    run_result_free(run_file(state, ignored->str));
    g_string_free(ignored, TRUE);
}

static void test_values(void **state)
{
    static const struct {
        const char *text;
        uint32_t base;
        uint64_t value;
    } good[] = {
        { "4096", 1024, 4096 },   { "4k", 1024, 4096 },       { "4K", 1024, 4096 },
        { "4kB", 1024, 4096 },    { "4ki", 1024, 4000 },      { "4kib", 1000, 4096 },
        { "4k", 1000, 4000 },     { "1mi", 1024, 1000000 },   { "0x10", 1024, 16 },
        { "0x10k", 1024, 16384 }, { "2g", 1024, 2147483648 }, { "1tb", 1024, UINT64_C(1) << 40 },
    };
    static const char *const bad[] = { "", "k", "4q", "4kk", "-1", "4 k", "1.5k", "99999999999t" };
    uint64_t value;
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(good); i++)
        assert_true(fio_parse_int(good[i].text, good[i].base, &value) && value == good[i].value);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bad); i++)
        assert_false(fio_parse_int(bad[i], 1024, &value));
    assert_true(fio_parse_time("5", SIM_PS_PER_S, &value) && value == 5 * SIM_PS_PER_S);
    assert_true(fio_parse_time("5ms", SIM_PS_PER_S, &value) && value == 5 * SIM_PS_PER_MS);
    assert_true(fio_parse_time("2M", SIM_PS_PER_US, &value) && value == 120 * SIM_PS_PER_S);
    assert_false(fio_parse_time("1000000d", SIM_PS_PER_S, &value));
}

/* [global] is for jobs below it, the command line's words for all; values of the environment;
 * a job without a file; another file is another run. */
static void test_files(void **state)
{
    g_free(write_file(state, "more.fio", "# of the job alone\nnumber_ios=7\n"));
    g_setenv("TEST_FIO_BS", "16k", 1);
    struct run_result *result = run_file(
        state, "  ; a comment\n[global]\ndirect = 1\nfilename=x\nrw=write\nbs=${TEST_FIO_BS}\n"
               "[first]\ninclude more.fio\n[global]\nbs=32k\n\n[second]\nnumber_ios=2\n");
    assert_true(scenario_value(result, "ssd.writes") == 9);
    assert_true(fabs(scenario_value(result, "ssd.write_bytes") - (7 * 16384 + 2 * 32768)) < 1);
    run_result_free(result);
    g_autofree char *over = with_file(state, "[a]\nfilename=x\ndirect=1\nrw=read\nnumber_ios=9\n",
                                      "job_options = \"number_ios=3 rw=write\";");
    result = scenario_run(over);
    assert_true(scenario_value(result, "ssd.writes") == 3 &&
                scenario_value(result, "ssd.reads") == 0);
    run_result_free(result);
    result =
        scenario_run(PROGRAM("job_options = \"direct=1 filename=x rw=randread number_ios=5\"; "));
    assert_true(scenario_value(result, "ssd.reads") == 5);
    run_result_free(result);
}

/* The quantiles of a program with one job that only reads are the job's: the same requests, the
 * same rule. */
static void test_quantiles(void **state)
{
    static const char *const names[] = { "latency_p50_ns", "latency_p99_ns" };
    struct run_result *result = run_file(state,
                                         "[job]\nfilename=x\ndirect=1\nrw=randread\nnumjobs=2\n"
                                         "ioengine=libaio\niodepth=7\nnumber_ios=701\n");
    for (unsigned i = 0; i < SIM_N_ELEMENTS(names); i++) {
        g_autofree char *own = g_strdup_printf("fio.job.read_%s", names[i]);
        assert_true(scenario_value(result, own) == scenario_value(result, names[i]));
    }
    assert_true(scenario_value(result, "latency_p99_ns") >
                scenario_value(result, "latency_p50_ns"));
    run_result_free(result);
}

static void sha_of(void **state, const char *file, char sha[65])
{
    struct sim_error_list errors = { 0 };
    g_autofree char *text = with_file(state, file, "");
    struct config *config = fixture_config(text, &errors);
    assert_true(experiment_check(config, &errors));
    config_sha256(config, sha);
    config_free(config);
}

static void test_identity(void **state)
{
    char one[65], other[65], again[65];
    sha_of(state, "[job]\nfilename=x\ndirect=1\nnumber_ios=3\n", one);
    sha_of(state, "[job]\nfilename=x\ndirect=1\nnumber_ios=4\n", other);
    sha_of(state, "; a comment\n[job]\nfilename=x\ndirect=1\nnumber_ios=3\n", again);
    assert_string_not_equal(one, other);
    assert_string_equal(one, again);
}

/* Errors of requests: the run fails, or counts them. */
static void test_errors(void **state)
{
    g_autofree char *late = with_file(
        state, "[job]\nfilename=x\ndirect=1\nrw=randread\nnumber_ios=50\nmax_latency=1us\n", "");
    scenario_fails(late, "max_latency");
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sequential),
        TEST(test_random_map),
        TEST(test_mixes),
        TEST(test_sequencer),
        TEST(test_rates),
        TEST(test_runtime),
        TEST(test_runtime_of_waits),
        TEST(test_whole_requests),
        TEST(test_order),
        TEST(test_exitall),
        TEST(test_depth),
        TEST(test_processes),
        TEST(test_user_space),
        TEST(test_verify),
        TEST(test_laid_out),
        TEST(test_only_writes),
        TEST(test_part_of_a_block),
        TEST(test_iolog),
        TEST(test_iolog_loops),
        TEST(test_iolog_versions),
        TEST(test_refused),
        TEST(test_keys),
        TEST(test_values),
        TEST(test_files),
        TEST(test_identity),
        TEST(test_errors),
        TEST(test_engine_replaced),
        TEST(test_quantiles),
        TEST(test_together),
        TEST(test_files_that_are_none),
        TEST(test_includes_without_number),
        TEST(test_iolog_over_what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
