/* The version; the Makefile passes NUDMA_VERSION and NUDMA_GIT when it compiles this file. */
#define _GNU_SOURCE /* dl_iterate_phdr() */
#include <elf.h>
#include <glib.h>
#include <link.h>
#include <string.h>

#include "sim/store/version.h"

#ifndef NUDMA_VERSION
#define NUDMA_VERSION "0.0.0"
#endif
#ifndef NUDMA_GIT
#define NUDMA_GIT "unknown"
#endif

#define ID_BYTES 4u /* of the build ID that are shown */

/* A note is its head, its name and its content, these two padded to words. */
static const unsigned char *find_id(const char *at, size_t n_bytes)
{
    const char *end = at + n_bytes;
    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const uint64_t name_bytes = (note->n_namesz + UINT64_C(3)) & ~UINT64_C(3),
                       content_bytes = (note->n_descsz + UINT64_C(3)) & ~UINT64_C(3);
        const char *name = at + sizeof(*note), *content = name + name_bytes;
        if (name_bytes + content_bytes > (size_t)(end - name))
            return NULL;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz >= ID_BYTES &&
            note->n_namesz == sizeof(ELF_NOTE_GNU) && strcmp(name, ELF_NOTE_GNU) == 0)
            return (const void *)content;
        at = content + content_bytes;
    }
    return NULL;
}

/* Of the program, which comes before its libraries. */
static int find_in_program(struct dl_phdr_info *info, size_t size, void *context)
{
    const unsigned char **id = context;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && *id == NULL; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE)
            *id = find_id((const char *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz);
    }
    return 1;
}

static char *make_version(void)
{
    const unsigned char *id = NULL;
    if (strcmp(NUDMA_GIT, "unknown") == 0 || g_str_has_suffix(NUDMA_GIT, "-dirty"))
        dl_iterate_phdr(find_in_program, &id);
    return id == NULL ? g_strdup(NUDMA_VERSION " " NUDMA_GIT)
                      : g_strdup_printf("%s %s %02x%02x%02x%02x", NUDMA_VERSION, NUDMA_GIT, id[0],
                                        id[1], id[2], id[3]);
}

const char *sim_version(void)
{
    static gsize version; /* made once */
    if (g_once_init_enter(&version))
        g_once_init_leave(&version, (gsize)make_version());
    return (const char *)version;
}
