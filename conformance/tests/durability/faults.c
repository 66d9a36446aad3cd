/* Faults at system calls that write below a directory; preloaded into every process of a run.
 *
 * FAULT_BELOW   the directory whose files count
 * FAULT_COUNT   a file of 8 octets: how many such calls there have been, in all processes
 * FAULT_AT      the number of the call that fails, from 1; 0 for none
 * FAULT_KIND    short (half of a write is done), enospc (from then on no room is left), eio (once),
 *               crash (the process is killed)
 * FAULT_JOURNAL a file that gets every call, to find out what a power cut would leave
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAKE = 1, WRITE, SYNC, RENAME, FOLDER, REMOVE, CUT };
#define REAL(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

static volatile uint64_t *count;
static uint64_t fails_at;
static const char *below, *kind, *journal;

static void begin(void)
{
    static int begun;
    const char *file = getenv("FAULT_COUNT");
    if (begun || !file)
        return;
    begun = 1;
    below = getenv("FAULT_BELOW");
    kind = getenv("FAULT_KIND");
    journal = getenv("FAULT_JOURNAL");
    fails_at = strtoull(getenv("FAULT_AT") ? getenv("FAULT_AT") : "0", 0, 10);
    int fd = REAL(int, open64, const char *, int, ...)(file, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *shared = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        count = shared;
    close(fd);
}

static int of_fd(int fd, char *path)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return 1;
}

static int of_path(int dir, const char *given, char *path)
{
    if (!given)
        return 0;
    if (given[0] == '/')
        return snprintf(path, PATH_MAX, "%s", given) < PATH_MAX;
    char base[PATH_MAX];
    if (dir == AT_FDCWD ? !getcwd(base, sizeof base) : !of_fd(dir, base))
        return 0;
    return snprintf(path, PATH_MAX, "%s/%s", base, given) < PATH_MAX;
}

static void note(uint64_t number, int what, const char *path, const char *other, const void *data,
                 uint64_t length, uint64_t at)
{
    if (!journal)
        return;
    uint64_t head[5] = {number, what, strlen(path), length, at};
    if (other) {
        data = other;
        head[3] = strlen(other);
    }
    size_t size = sizeof head + head[2] + head[3];
    char *record = malloc(size);
    memcpy(record, head, sizeof head);
    memcpy(record + sizeof head, path, head[2]);
    if (head[3])
        memcpy(record + sizeof head + head[2], data, head[3]);
    int fd = REAL(int, open64, const char *, int, ...)(journal, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0) {
        if (REAL(ssize_t, write, int, const void *, size_t)(fd, record, size) < 0)
            abort();
        close(fd);
    }
    free(record);
}

/* 0: go on; 1: fail with errno; 2: do half of it. */
static int meets(int what, const char *path, const char *other, const void *data, uint64_t length,
                 uint64_t at)
{
    begin();
    if (!count || strncmp(path, below, strlen(below)))
        return 0;
    uint64_t number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    note(number, what, path, other, data, length, at);
    if (!fails_at || number < fails_at)
        return 0;
    if (!strcmp(kind, "enospc") && what != REMOVE) {
        errno = ENOSPC;
        return 1;
    }
    if (number > fails_at)
        return 0;
    if (!strcmp(kind, "crash"))
        kill(getpid(), SIGKILL);
    if (!strcmp(kind, "eio")) {
        errno = EIO;
        return 1;
    }
    return !strcmp(kind, "short") && what == WRITE && length > 1 ? 2 : 0;
}

static int opens(int dir, const char *given, int flags, mode_t mode)
{
    char path[PATH_MAX];
    int writes = flags & (O_CREAT | O_TRUNC);
    if (writes && of_path(dir, given, path) && meets(MAKE, path, 0, 0, 0, flags & O_TRUNC) == 1)
        return -1;
    return REAL(int, openat64, int, const char *, int, ...)(dir, given, flags, mode);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opens(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opens(AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE(flags) return opens(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE(flags) return opens(dir, path, flags, mode); }

static ssize_t writes(int fd, const void *data, size_t length, off_t at, int moves)
{
    char path[PATH_MAX];
    int met = 0;
    if (fd > 2 && of_fd(fd, path) && path[0] == '/') {
        off_t begin = moves ? lseek(fd, 0, SEEK_CUR) : at;
        met = meets(WRITE, path, 0, data, length, begin < 0 ? 0 : begin);
    }
    if (met == 1)
        return -1;
    if (met == 2)
        length /= 2;
    return moves ? REAL(ssize_t, write, int, const void *, size_t)(fd, data, length)
                 : REAL(ssize_t, pwrite64, int, const void *, size_t, off_t)(fd, data, length, at);
}

ssize_t write(int fd, const void *data, size_t length) { return writes(fd, data, length, 0, 1); }
ssize_t pwrite(int fd, const void *d, size_t n, off_t at) { return writes(fd, d, n, at, 0); }
ssize_t pwrite64(int fd, const void *d, size_t n, off_t at) { return writes(fd, d, n, at, 0); }

static int syncs(int fd)
{
    char path[PATH_MAX];
    return of_fd(fd, path) && meets(SYNC, path, 0, 0, 0, 0) == 1;
}

int fsync(int fd) { return syncs(fd) ? -1 : REAL(int, fsync, int)(fd); }
int fdatasync(int fd) { return syncs(fd) ? -1 : REAL(int, fdatasync, int)(fd); }

int ftruncate64(int fd, off_t length)
{
    char path[PATH_MAX];
    if (of_fd(fd, path) && meets(CUT, path, 0, 0, 0, length) == 1)
        return -1;
    return REAL(int, ftruncate64, int, off_t)(fd, length);
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int renameat(int from, const char *old, int to, const char *new)
{
    char before[PATH_MAX], after[PATH_MAX];
    if (of_path(from, old, before) && of_path(to, new, after) &&
        meets(RENAME, before, after, 0, 0, 0) == 1)
        return -1;
    return REAL(int, renameat, int, const char *, int, const char *)(from, old, to, new);
}
int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }

int mkdirat(int dir, const char *given, mode_t mode)
{
    char path[PATH_MAX];
    if (of_path(dir, given, path) && meets(FOLDER, path, 0, 0, 0, 0) == 1)
        return -1;
    return REAL(int, mkdirat, int, const char *, mode_t)(dir, given, mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int dir, const char *given, int flags)
{
    char path[PATH_MAX];
    if (of_path(dir, given, path) && meets(REMOVE, path, 0, 0, 0, 0) == 1)
        return -1;
    return REAL(int, unlinkat, int, const char *, int)(dir, given, flags);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path)
{
    struct stat told;
    return unlinkat(AT_FDCWD, path, !lstat(path, &told) && S_ISDIR(told.st_mode) ? AT_REMOVEDIR : 0);
}
