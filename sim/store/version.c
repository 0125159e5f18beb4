/* The version; the Makefile passes NUDMA_VERSION and NUDMA_GIT when it compiles this file. */
#include <glib.h>
#include <string.h>

#include "sim/store/version.h"

#ifndef NUDMA_VERSION
#define NUDMA_VERSION "0.0.0"
#endif
#ifndef NUDMA_GIT
#define NUDMA_GIT "unknown"
#endif

static char *make_version(void)
{
    if (strcmp(NUDMA_GIT, "unknown") != 0 && !g_str_has_suffix(NUDMA_GIT, "-dirty"))
        return g_strdup(NUDMA_VERSION " " NUDMA_GIT);
    g_autofree char *program = NULL;
    gsize n_bytes = 0;
    if (!g_file_get_contents("/proc/self/exe", &program, &n_bytes, NULL))
        return g_strdup(NUDMA_VERSION " " NUDMA_GIT);
    g_autofree char *digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256,
                                                          (const guchar *)program, n_bytes);
    return g_strdup_printf("%s %s %.8s", NUDMA_VERSION, NUDMA_GIT, digest);
}

const char *sim_version(void)
{
    static gsize version; /* made once */
    if (g_once_init_enter(&version))
        g_once_init_leave(&version, (gsize)make_version());
    return (const char *)version;
}
