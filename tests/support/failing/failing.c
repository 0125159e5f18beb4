/*
 * A library for LD_PRELOAD, with which the n-th call of a function fails: scripts/faults.py,
 * test_faults.sh.
 *
 * FAILING_CALL names one or several of the functions below, with commas between them, FAILING_AT
 * counts from 1 (0: none fails), and FAILING_ALL=1 lets all that follow fail, too, as on a disk
 * that stays full. FAILING_COUNT names a file into which the process writes at its end how many
 * calls there were. Only calls of the process that was started count, and none of what it forks,
 * unless FAILING_CHILDREN=1: then those of each child count, and none of its own.
 *
 * What libraries do before main() does not count: GLib cannot begin without memory.
 *
 * What the C library does within itself (the write() of fflush()) passes by: fflush() and fclose()
 * fail in its place.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    bool begun, ready, all, children;
    pid_t first;
    long at, n;
    const char *call, *count;
} failing;

static bool is_named(const char *call)
{
    const size_t n = strlen(call);
    for (const char *at = failing.call; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, call, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

static void get_ready(void)
{
    const char *at = getenv("FAILING_AT"), *all = getenv("FAILING_ALL");
    const char *children = getenv("FAILING_CHILDREN");
    failing.ready = true;
    failing.first = getpid();
    failing.call = getenv("FAILING_CALL");
    failing.count = getenv("FAILING_COUNT");
    failing.at = at != NULL ? atol(at) : 0;
    failing.all = all != NULL && *all == '1';
    failing.children = children != NULL && *children == '1';
}

/* Counts the call; true with errno if it is to fail. */
static bool fails(const char *call, int error)
{
    if (!failing.begun)
        return false;
    if (!failing.ready)
        get_ready();
    if (failing.call == NULL || !is_named(call) || (getpid() == failing.first) == failing.children)
        return false;
    failing.n++;
    if (failing.at == 0 || !(failing.n == failing.at || (failing.all && failing.n > failing.at)))
        return false;
    errno = error;
    return true;
}

__attribute__((destructor)) static void tell(void)
{
    char text[32];
    if (failing.count == NULL || getpid() != failing.first)
        return;
    failing.call = NULL;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, failing.count, O_WRONLY | O_CREAT | O_TRUNC,
                                0644);
    const int n = snprintf(text, sizeof(text), "%ld\n", failing.n);
    if (fd >= 0 && syscall(SYS_write, fd, text, n) != n)
        _exit(99);
}

/* The function that this one stands before. ISO C has no conversion from void * to it. */
#define NEXT(TYPE, NAME)                      \
    static TYPE *next;                        \
    if (next == NULL) {                       \
        void *found = dlsym(RTLD_NEXT, NAME); \
        memcpy(&next, &found, sizeof(next));  \
    }

typedef int main_fn(int argc, char **argv, char **environment);
typedef int start_fn(main_fn *begin, int argc, char **argv, void (*init)(void), void (*fini)(void),
                     void (*linker_fini)(void), void *stack_end);
int __libc_start_main(main_fn *begin, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end);
int __libc_start_main(main_fn *begin, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end)
{
    NEXT(start_fn, "__libc_start_main")
    failing.begun = true;
    return next(begin, argc, argv, init, fini, linker_fini, stack_end);
}

/* ---- Files ----------------------------------------------------------------------------------- */

typedef ssize_t write_fn(int fd, const void *bytes, size_t n);
ssize_t write(int fd, const void *bytes, size_t n)
{
    NEXT(write_fn, "write")
    return fails("write", ENOSPC) ? -1 : next(fd, bytes, n);
}

typedef ssize_t pwrite_fn(int fd, const void *bytes, size_t n, off64_t at);
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    NEXT(pwrite_fn, "pwrite64")
    return fails("write", ENOSPC) ? -1 : next(fd, bytes, n, at);
}

typedef int fd_fn(int fd);
int fsync(int fd)
{
    NEXT(fd_fn, "fsync")
    return fails("fsync", EIO) ? -1 : next(fd);
}

int fdatasync(int fd)
{
    NEXT(fd_fn, "fdatasync")
    return fails("fsync", EIO) ? -1 : next(fd);
}

typedef int truncate_fn(int fd, off64_t bytes);
int ftruncate64(int fd, off64_t bytes)
{
    NEXT(truncate_fn, "ftruncate64")
    return fails("ftruncate", ENOSPC) ? -1 : next(fd, bytes);
}

typedef int rename_fn(const char *from, const char *to);
int rename(const char *from, const char *to)
{
    NEXT(rename_fn, "rename")
    return fails("rename", EACCES) ? -1 : next(from, to);
}

typedef int stream_fn(FILE *file);
int fflush(FILE *file)
{
    NEXT(stream_fn, "fflush")
    return fails("fflush", ENOSPC) ? EOF : next(file);
}

/* As the manual says: it is closed, whatever is returned. */
int fclose(FILE *file)
{
    NEXT(stream_fn, "fclose")
    const int error = fails("fclose", ENOSPC) ? ENOSPC : 0;
    const int closed = next(file);
    if (error == 0)
        return closed;
    errno = error;
    return EOF;
}

typedef int open_fn(const char *path, int flags, ...);
static int open_or_fail(open_fn *next, const char *path, int flags, va_list args)
{
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    return fails("open", EMFILE) ? -1 : next(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    NEXT(open_fn, "open")
    va_list args;
    va_start(args, flags);
    const int fd = open_or_fail(next, path, flags, args);
    va_end(args);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    NEXT(open_fn, "open64")
    va_list args;
    va_start(args, flags);
    const int fd = open_or_fail(next, path, flags, args);
    va_end(args);
    return fd;
}

/* ---- Processes ------------------------------------------------------------------------------- */

typedef pid_t fork_fn(void);
pid_t fork(void)
{
    NEXT(fork_fn, "fork")
    return fails("fork", EAGAIN) ? -1 : next();
}

typedef int pipe_fn(int fds[2]);
int pipe(int fds[2])
{
    NEXT(pipe_fn, "pipe")
    return fails("pipe", EMFILE) ? -1 : next(fds);
}

typedef int socketpair_fn(int domain, int type, int protocol, int fds[2]);
int socketpair(int domain, int type, int protocol, int fds[2])
{
    NEXT(socketpair_fn, "socketpair")
    return fails("pipe", EMFILE) ? -1 : next(domain, type, protocol, fds);
}

/* ---- Memory: the C library's own functions by their other names, as dlsym() may allocate ----- */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

void *malloc(size_t bytes)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_realloc(old, bytes);
}

typedef void *mmap_fn(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset);
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    NEXT(mmap_fn, "mmap")
    return fails("mmap", ENOMEM) ? MAP_FAILED : next(at, bytes, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    NEXT(mmap_fn, "mmap64")
    return fails("mmap", ENOMEM) ? MAP_FAILED : next(at, bytes, protection, flags, fd, offset);
}
