/* Stands between a program and the system's calls on files below one folder: counts them, and fails one, or ends the
 * program there. Loaded by LD_PRELOAD; steered by a file of 64-bit words that both sides have in memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The words, in the order in which `steering.rs` names them. */
enum { ACTS, FILES, FIRE_AT, ERROR, TIMES, SHORT, SEEN, HITS, LAST_ACT, LAST_FILE, WORDS };
/* Bits of ACTS. */
enum { READ = 1, WRITE = 2, SYNC = 4, SIZE = 8, NAME = 16, OPEN = 32, MAP = 64 };
/* Bits of FILES. */
enum { DATA = 1, LOG = 2, INDEX = 4, OTHER = 8 };
/* Values of ERROR that are no errno. */
enum { KILL_BEFORE = 1000, KILL_AFTER = 1001 };

static volatile uint64_t *words;
static char folder[4096];
static size_t folder_length;

__attribute__((constructor)) static void begin(void) {
    const char *below = getenv("SHIM_FOLDER"), *file = getenv("SHIM_STEERING");
    if (!below || !file || strlen(below) >= sizeof folder) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *map = (void *)syscall(SYS_mmap, NULL, WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (map == MAP_FAILED) return;
    folder_length = strlen(below);
    memcpy(folder, below, folder_length + 1);
    words = map;
}

static int ends_with(const char *name, size_t length, const char *end) {
    size_t of = strlen(end);
    return length >= of && memcmp(name + length - of, end, of) == 0;
}

/* Nothing for a file elsewhere. */
static uint64_t file_of(const char *path, size_t length) {
    if (length < folder_length || memcmp(path, folder, folder_length) != 0) return 0;
    if (ends_with(path, length, "-wal")) return LOG;
    if (ends_with(path, length, "-shm")) return INDEX;
    if (ends_with(path, length, ".db") || ends_with(path, length, "-journal")) return DATA;
    return OTHER;
}

static void end_here(void) {
    syscall(SYS_kill, syscall(SYS_getpid), 9);
    for (;;) syscall(SYS_sched_yield);
}

/* The error that this act ends with; 0 for none. */
static int64_t struck(uint64_t act, uint64_t file) {
    if (!file || !(words[ACTS] & act) || !(words[FILES] & file)) return 0;
    uint64_t place = __sync_add_and_fetch(&words[SEEN], 1), at = words[FIRE_AT];
    if (!at || place < at || place - at >= words[TIMES]) return 0;
    words[LAST_ACT] = act;
    words[LAST_FILE] = file;
    __sync_add_and_fetch(&words[HITS], 1);
    if (words[ERROR] == KILL_BEFORE) end_here();
    return (int64_t)words[ERROR];
}

static int64_t struck_fd(uint64_t act, int fd) {
    if (!words || fd < 0 || !words[FIRE_AT]) return 0;
    char link[32] = "/proc/self/fd/", path[4096], digits[12];
    int n = 0, at = 14, left = fd;
    do digits[n++] = (char)('0' + left % 10); while ((left /= 10) > 0);
    while (n > 0) link[at++] = digits[--n];
    link[at] = 0;
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
    if (length <= 0) return 0;
    return struck(act, file_of(path, (size_t)length));
}

static int64_t struck_path(uint64_t act, const char *path) {
    if (!words || !path || !words[FIRE_AT]) return 0;
    return struck(act, file_of(path, strlen(path)));
}

/* What is done when the act was struck by `error`: nothing but for a death after the act. */
#define UNLESS(error, call)                                   \
    do {                                                      \
        int64_t with = (error);                               \
        if (with == KILL_AFTER) { (void)(call); end_here(); } \
        if (with) { errno = (int)with; return -1; }           \
        return (call);                                        \
    } while (0)

/* A write that is cut off has written a part before its error; the caller sees the part first, the error next. */
#define WRITTEN(error, whole, part)                                              \
    do {                                                                         \
        int64_t with = (error);                                                  \
        if (with == KILL_AFTER) { (void)(whole); end_here(); }                   \
        if (with && words[SHORT]) { (void)(part); errno = (int)with; return -1; } \
        if (with) { errno = (int)with; return -1; }                              \
        return (whole);                                                          \
    } while (0)

ssize_t read(int fd, void *into, size_t length) {
    UNLESS(struck_fd(READ, fd), syscall(SYS_read, fd, into, length));
}
ssize_t pread64(int fd, void *into, size_t length, off_t at) {
    UNLESS(struck_fd(READ, fd), syscall(SYS_pread64, fd, into, length, at));
}
ssize_t pread(int fd, void *into, size_t length, off_t at) { return pread64(fd, into, length, at); }
ssize_t write(int fd, const void *from, size_t length) {
    WRITTEN(struck_fd(WRITE, fd), syscall(SYS_write, fd, from, length), syscall(SYS_write, fd, from, length / 2));
}
ssize_t pwrite64(int fd, const void *from, size_t length, off_t at) {
    WRITTEN(struck_fd(WRITE, fd), syscall(SYS_pwrite64, fd, from, length, at),
            syscall(SYS_pwrite64, fd, from, length / 2, at));
}
ssize_t pwrite(int fd, const void *from, size_t length, off_t at) { return pwrite64(fd, from, length, at); }
ssize_t writev(int fd, const struct iovec *from, int count) {
    UNLESS(struck_fd(WRITE, fd), syscall(SYS_writev, fd, from, count));
}
int fsync(int fd) { UNLESS(struck_fd(SYNC, fd), syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { UNLESS(struck_fd(SYNC, fd), syscall(SYS_fdatasync, fd)); }
int ftruncate64(int fd, off_t size) { UNLESS(struck_fd(SIZE, fd), syscall(SYS_ftruncate, fd, size)); }
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fallocate64(int fd, int mode, off_t at, off_t length) {
    UNLESS(struck_fd(SIZE, fd), syscall(SYS_fallocate, fd, mode, at, length));
}
int fallocate(int fd, int mode, off_t at, off_t length) { return fallocate64(fd, mode, at, length); }
/* These two answer with the error itself. */
int posix_fallocate64(int fd, off_t at, off_t length) {
    return fallocate64(fd, 0, at, length) == 0 ? 0 : errno;
}
int posix_fallocate(int fd, off_t at, off_t length) { return posix_fallocate64(fd, at, length); }

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    UNLESS(struck_path(NAME, to), syscall(SYS_renameat2, from_dir, from, to_dir, to, flags));
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return renameat2(from_dir, from, to_dir, to, 0);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    UNLESS(struck_path(NAME, to), syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int unlinkat(int dir, const char *path, int flags) {
    UNLESS(struck_path(NAME, path), syscall(SYS_unlinkat, dir, path, flags));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int openat64(int dir, const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    UNLESS(struck_path(OPEN, path), (int)syscall(SYS_openat, dir, path, flags, mode));
}
#define OPENED(dir, path, flags)                        \
    do {                                                \
        mode_t mode = 0;                                \
        if ((flags) & (O_CREAT | __O_TMPFILE)) {        \
            va_list rest;                               \
            va_start(rest, flags);                      \
            mode = va_arg(rest, mode_t);                \
            va_end(rest);                               \
        }                                               \
        return openat64(dir, path, flags, mode);        \
    } while (0)
int openat(int dir, const char *path, int flags, ...) { OPENED(dir, path, flags); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int open(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t from) {
    int64_t with = struck_fd(MAP, fd);
    if (with == KILL_AFTER) end_here();
    if (with) {
        errno = (int)with;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, from);
}
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t from) {
    return mmap64(at, length, protection, flags, fd, from);
}
