#include "tests/fuzz/fuzz_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_replay.h"

static char folder[64], path[96];

static void remove_file(void)
{
    unlink(path);
    rmdir(folder);
}

/* In memory, where the machine has such a file system: it is written for each input. */
static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "%s/nudma-fuzz.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(2);
    }
    snprintf(path, sizeof(path), "%s/input.cfg", folder);
    atexit(remove_file);
}

const char *fuzz_read_file(const uint8_t *data, size_t bytes)
{
    if (path[0] == '\0')
        make_folder();
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || close(fd) != 0) {
        perror(path);
        exit(2);
    }
    return path;
}

static void play_bytes(const void *reader, const uint8_t *data, size_t bytes)
{
    ((const struct fuzz_reader *)reader)->read(data, bytes);
}

int fuzz_read_replay(const struct fuzz_reader *reader, int argc, char **argv)
{
    return fuzz_replay_all(reader->name, play_bytes, reader, FUZZ_READ_BYTES_MAX, argc, argv);
}
