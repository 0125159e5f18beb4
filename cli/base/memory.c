/* /proc/meminfo, and the limits of control groups (version 2) from this process's upwards. */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/memory.h"

/* The number after a word in a file, "MemAvailable:  12 kB"; without a word its first one. */
static bool number_in_file(const char *path, const char *word, uint64_t *value)
{
    g_autofree char *text = NULL;
    char *end = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return false;
    const char *at = word != NULL ? strstr(text, word) : text;
    if (at == NULL)
        return false;
    at += word != NULL ? strlen(word) : 0;
    *value = g_ascii_strtoull(at, &end, 10);
    return end != at; /* "max" is no number */
}

/* Free below the limit of the group; UINT64_MAX without one. */
static uint64_t group_free_bytes(const char *folder)
{
    g_autofree char *max_path = g_build_filename(folder, "memory.max", NULL);
    g_autofree char *current_path = g_build_filename(folder, "memory.current", NULL);
    g_autofree char *stat_path = g_build_filename(folder, "memory.stat", NULL);
    uint64_t max = 0, current = 0, cache = 0, free_bytes = UINT64_MAX;
    if (number_in_file(max_path, NULL, &max) && number_in_file(current_path, NULL, &current)) {
        number_in_file(stat_path, "\nfile ", &cache); /* given back when it is needed */
        current -= SIM_MIN(cache, current);
        free_bytes = max > current ? max - current : 0;
    }
    return free_bytes;
}

static uint64_t groups_free_bytes(void)
{
    g_autofree char *text = NULL;
    uint64_t least = UINT64_MAX;
    if (!g_file_get_contents("/proc/self/cgroup", &text, NULL, NULL))
        return least;
    char *path = strstr(text, "0::/"); /* version 2 has a single hierarchy, of this number */
    if (path != NULL && (path == text || path[-1] == '\n')) {
        path += strlen("0::");
        path[strcspn(path, "\n")] = '\0';
        for (;;) {
            g_autofree char *folder = g_build_filename("/sys/fs/cgroup", path, NULL);
            const uint64_t here = group_free_bytes(folder);
            least = SIM_MIN(least, here);
            char *slash = strrchr(path, '/');
            if (slash == NULL || path[1] == '\0')
                break;
            slash[slash == path ? 1 : 0] = '\0';
        }
    }
    return least;
}

uint64_t memory_free_bytes(void)
{
    uint64_t machine = UINT64_MAX, kib;
    if (number_in_file("/proc/meminfo", "\nMemAvailable:", &kib))
        machine = kib * 1024;
    const uint64_t groups = groups_free_bytes();
    return SIM_MIN(machine, groups);
}

uint64_t memory_resident_bytes(pid_t pid)
{
    char path[64];
    unsigned long long n_pages = 0;
    g_snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *statm = fopen(path, "re");
    if (statm == NULL)
        return 0;
    if (fscanf(statm, "%*u %llu", &n_pages) != 1)
        n_pages = 0;
    fclose(statm);
    return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
