/* Host time of what the kernel does to memory: a copied line, from a ring that a device has written
 * and from memory, at both kinds of alignment; a load that hits; a page from a CPU's list and back.
 * Prints `os.<what> <ns> ns`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "models/base/payload.h"
#include "models/os/os.h"
#include "models/world/world.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static const char scenario[] = "hosts = { server = { ports = ( { name = \"rp0\"; } ); }; };\n";

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Packets' payloads to a buffer of 64 KiB. shift: between the alignments of both. */
static void bench_copy(struct kernel *kernel, const char *name, bool written, uint64_t ring_bytes,
                       uint64_t shift)
{
    struct numa *numa = host_numa(os_host(kernel));
    const struct kaddr ring = k_alloc(kernel, 0, ring_bytes, 4096);
    const struct kaddr user = k_alloc(kernel, 0, 68 * KIB, 4096);
    const uint64_t n_slots = ring_bytes / 2048, n = 400000;
    uint64_t to = 0;
    double spent_ns = 0;

    payload_fill(kernel, ring, payload_mark(1, 0), ring_bytes);
    for (uint64_t i = 0; i < n; i += n_slots) {
        if (written)
            numa_warm_device(numa, 0, (struct hpa){ ring.v }, ring_bytes);
        const double begin_ns = now_ns();
        for (uint64_t s = 0; s < n_slots; s++) {
            k_copy(kernel, kaddr_add(user, to), kaddr_add(ring, s * 2048 + shift), 1448);
            to = to + 1448 > 64 * KIB ? 0 : to + 1448;
        }
        spent_ns += now_ns() - begin_ns;
    }
    printf("os.%s %.1f ns\n", name,
           spent_ns * 64 / 1448 / (double)((n + n_slots - 1) / n_slots * n_slots));
}

static void body(void *arg)
{
    struct kernel *kernel = arg;
    const struct kaddr at = k_alloc(kernel, 0, 4096, 4096);
    const unsigned n = 5000000;
    uint64_t sum = 0;

    bench_copy(kernel, "copy_line_llc", true, MIB, 66);
    bench_copy(kernel, "copy_line_llc_aligned", true, MIB, 0);
    bench_copy(kernel, "copy_line_dram", false, 256 * MIB, 66);
    double begin_ns = now_ns();
    for (unsigned i = 0; i < n; i++) {
        uint64_t value;
        k_load(kernel, kaddr_add(at, i * 8 & 4095), &value, sizeof(value));
        sum += value;
    }
    printf("os.load_hit %.2f ns\n", (now_ns() - begin_ns) / n);
    begin_ns = now_ns();
    for (unsigned i = 0; i < n; i++)
        k_touch(kernel, kaddr_add(at, i * 8 & 4095), 8);
    printf("os.touch_hit %.2f ns\n", (now_ns() - begin_ns) / n);
    begin_ns = now_ns();
    for (unsigned i = 0; i < n / 5; i++) {
        struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, 0);
        sum += page->node;
        k_page_put(kernel, page);
    }
    printf("os.page_and_back %.2f ns\n", (now_ns() - begin_ns) / (n / 5));
    if (sum == 1)
        abort();
}

int main(void)
{
    struct sim_error_list errors = { 0 };
    char path[] = "/tmp/nudma_bench_XXXXXX";
    const int fd = mkstemp(path);

    if (fd < 0 || write(fd, scenario, sizeof(scenario) - 1) != (ssize_t)sizeof(scenario) - 1)
        return 1;
    close(fd);
    struct config *config = config_load(path, ".", &errors);
    unlink(path);
    struct world *world = world_new(config, 1, &errors);
    if (errors.n_messages != 0 || !world_boot(world, NULL)) {
        fprintf(stderr, "%s\n", errors.n_messages != 0 ? errors.message[0] : "does not boot");
        return 1;
    }
    struct host *host = world_host(world, "server");
    struct kernel *kernel = os_new(host, host_os_params(host));
    k_thread_new(kernel, "bench", 0, body, kernel);
    sim_run(world_sim(world), SIM_TIME_MAX, NULL);
    os_free(kernel);
    world_free(world);
    config_free(config);
    sim_error_release(&errors);
    return 0;
}
