/*
 * Records what a process does to the files below one folder, for the proof against power failures (power.ts). Preloaded
 * with LD_PRELOAD, it wraps calls of the C library. It makes each call first; if the call succeeds, it appends a record of
 * it to a log, with the bytes that were written. recording.ts reads the log.
 *
 *   PROVE_FOLDER  the folder; calls on anything else are passed through
 *   PROVE_LOG     the log
 *   PROVE_MARKS   what is written to this file becomes a mark in the log, in its place between the calls
 *
 * Every call on the folder holds one lock, so that the log has the calls in their true order. Changes through the memory
 * map of a -shm file are not recorded, and need not be: SQLite rebuilds that file after a power failure.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES_MAX 4096

enum { OPEN = 1, CLOSE, WRITE, TRUNCATE, SYNC, UNLINK, RENAME, LINK, MKDIR, MARK };
enum { CREATED = 1, EMPTIED = 2 };
enum { ELSEWHERE, FOLDER, MARKS };

struct record {
  uint32_t kind;
  int32_t file;
  int64_t number;
  uint32_t first_length;
  uint32_t second_length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static char marks[PATH_MAX];
static int log_file = -1;
static unsigned char place[FILES_MAX];

static void fail(const char *what) {
  dprintf(2, "recorder: %s: %s\n", what, strerror(errno));
  _exit(70);
}

__attribute__((constructor)) static void start(void) {
  const char *folder_given = getenv("PROVE_FOLDER");
  const char *log_given = getenv("PROVE_LOG");
  const char *marks_given = getenv("PROVE_MARKS");
  if (folder_given == NULL || log_given == NULL || marks_given == NULL) return;
  snprintf(folder, sizeof folder, "%s", folder_given);
  snprintf(marks, sizeof marks, "%s", marks_given);
  log_file = (int)syscall(SYS_openat, AT_FDCWD, log_given, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log_file < 0) fail("the log cannot be opened");
}

static void append(const void *bytes, size_t length) {
  const char *from = bytes;
  while (length > 0) {
    long written = syscall(SYS_write, log_file, from, length);
    if (written <= 0) fail("the log cannot be written");
    from += written;
    length -= (size_t)written;
  }
}

static void note(uint32_t kind, int file, int64_t number, const void *first, size_t first_length,
                 const char *second) {
  size_t second_length = second == NULL ? 0 : strlen(second);
  struct record record = {kind, file, number, (uint32_t)first_length, (uint32_t)second_length};
  append(&record, sizeof record);
  append(first, first_length);
  append(second, second_length);
}

/* Paths are noted without the folder before them. */
static void note_path(uint32_t kind, int file, int64_t number, const char *path, const char *to) {
  const char *inside = path + strlen(folder);
  note(kind, file, number, inside, strlen(inside), to == NULL ? NULL : to + strlen(folder));
}

static int place_of(const char *path) {
  if (log_file < 0) return ELSEWHERE;
  if (strcmp(path, marks) == 0) return MARKS;
  size_t length = strlen(folder);
  if (strncmp(path, folder, length) != 0) return ELSEWHERE;
  return path[length] == '\0' || path[length] == '/' ? FOLDER : ELSEWHERE;
}

static int both_inside(const char *from, const char *to) {
  int inside = (place_of(from) == FOLDER) + (place_of(to) == FOLDER);
  if (inside == 1) fail("a file crossed the border of the folder");
  return inside == 2;
}

static int place_of_file(int file) {
  return log_file >= 0 && file >= 0 && file < FILES_MAX ? place[file] : ELSEWHERE;
}

/* The path that a call relative to a folder means. */
static const char *whole(int at, const char *path, char *buffer) {
  if (log_file < 0 || at == AT_FDCWD || path[0] == '/') return path;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", at);
  long length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_MAX - 1);
  if (length < 0) return path;
  snprintf(buffer + length, PATH_MAX - (size_t)length, "/%s", path);
  return buffer;
}

static int do_open(int at, const char *path, int flags, mode_t mode) {
  char buffer[PATH_MAX];
  const char *full = whole(at, path, buffer);
  int where = place_of(full);
  if (where == ELSEWHERE) return (int)syscall(SYS_openat, at, path, flags, mode);
  pthread_mutex_lock(&lock);
  int existed = syscall(SYS_faccessat, at, path, F_OK) == 0;
  int file = (int)syscall(SYS_openat, at, path, flags, mode);
  if (file >= FILES_MAX) fail("too many open files");
  if (file >= 0) {
    place[file] = (unsigned char)where;
    int64_t how = existed ? 0 : CREATED;
    if (flags & O_TRUNC) how |= EMPTIED;
    if (where == FOLDER) note_path(OPEN, file, how, full, NULL);
  }
  pthread_mutex_unlock(&lock);
  return file;
}

#define MODE_OF(flags, mode)                       \
  mode_t mode = 0;                                 \
  if ((flags) & (O_CREAT | O_TMPFILE)) {           \
    va_list rest;                                  \
    va_start(rest, flags);                         \
    mode = (mode_t)va_arg(rest, int);              \
    va_end(rest);                                  \
  }

int open(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(AT_FDCWD, path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(at, path, flags, mode);
}

int close(int file) {
  int where = place_of_file(file);
  if (where == ELSEWHERE) return (int)syscall(SYS_close, file);
  pthread_mutex_lock(&lock);
  if (where == FOLDER) note(CLOSE, file, 0, NULL, 0, NULL);
  place[file] = ELSEWHERE;
  int result = (int)syscall(SYS_close, file);
  pthread_mutex_unlock(&lock);
  return result;
}

static ssize_t do_pwrite(int file, const void *bytes, size_t length, off_t offset) {
  if (place_of_file(file) != FOLDER) return syscall(SYS_pwrite64, file, bytes, length, offset);
  pthread_mutex_lock(&lock);
  ssize_t written = syscall(SYS_pwrite64, file, bytes, length, offset);
  if (written > 0) note(WRITE, file, offset, bytes, (size_t)written, NULL);
  pthread_mutex_unlock(&lock);
  return written;
}
ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
  return do_pwrite(file, bytes, length, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  return do_pwrite(file, bytes, length, offset);
}

ssize_t write(int file, const void *bytes, size_t length) {
  int where = place_of_file(file);
  if (where == ELSEWHERE) return syscall(SYS_write, file, bytes, length);
  pthread_mutex_lock(&lock);
  ssize_t written = syscall(SYS_write, file, bytes, length);
  if (written > 0 && where == MARKS) note(MARK, file, 0, bytes, (size_t)written, NULL);
  if (written > 0 && where == FOLDER) {
    /* The position after the write says where it went, with O_APPEND too. */
    int64_t end = syscall(SYS_lseek, file, 0, SEEK_CUR);
    note(WRITE, file, end - written, bytes, (size_t)written, NULL);
  }
  pthread_mutex_unlock(&lock);
  return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  if (place_of_file(file) == ELSEWHERE) return syscall(SYS_writev, file, parts, count);
  ssize_t sum = 0;
  for (int n = 0; n < count; n++) {
    ssize_t written = write(file, parts[n].iov_base, parts[n].iov_len);
    if (written < 0) return sum > 0 ? sum : written;
    sum += written;
    if ((size_t)written < parts[n].iov_len) break;
  }
  return sum;
}

static int do_ftruncate(int file, off_t length) {
  if (place_of_file(file) != FOLDER) return (int)syscall(SYS_ftruncate, file, length);
  pthread_mutex_lock(&lock);
  int result = (int)syscall(SYS_ftruncate, file, length);
  if (result == 0) note(TRUNCATE, file, length, NULL, 0, NULL);
  pthread_mutex_unlock(&lock);
  return result;
}
int ftruncate(int file, off_t length) { return do_ftruncate(file, length); }
int ftruncate64(int file, off64_t length) { return do_ftruncate(file, length); }

static int do_sync(long call, int file) {
  if (place_of_file(file) != FOLDER) return (int)syscall(call, file);
  pthread_mutex_lock(&lock);
  int result = (int)syscall(call, file);
  if (result == 0) note(SYNC, file, 0, NULL, 0, NULL);
  pthread_mutex_unlock(&lock);
  return result;
}
int fsync(int file) { return do_sync(SYS_fsync, file); }
int fdatasync(int file) { return do_sync(SYS_fdatasync, file); }

static int do_unlink(int at, const char *path, int flags) {
  char buffer[PATH_MAX];
  const char *full = whole(at, path, buffer);
  if (place_of(full) != FOLDER) return (int)syscall(SYS_unlinkat, at, path, flags);
  pthread_mutex_lock(&lock);
  int result = (int)syscall(SYS_unlinkat, at, path, flags);
  if (result == 0) note_path(UNLINK, 0, 0, full, NULL);
  pthread_mutex_unlock(&lock);
  return result;
}
int unlink(const char *path) { return do_unlink(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return do_unlink(at, path, flags); }
int rmdir(const char *path) { return do_unlink(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  int result = do_unlink(AT_FDCWD, path, 0);
  return result != 0 && errno == EISDIR ? do_unlink(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

int rename(const char *from, const char *to) {
  if (!both_inside(from, to)) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  }
  pthread_mutex_lock(&lock);
  int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (result == 0) note_path(RENAME, 0, 0, from, to);
  pthread_mutex_unlock(&lock);
  return result;
}

int link(const char *from, const char *to) {
  if (!both_inside(from, to)) {
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  }
  pthread_mutex_lock(&lock);
  int result = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (result == 0) note_path(LINK, 0, 0, from, to);
  pthread_mutex_unlock(&lock);
  return result;
}

int mkdir(const char *path, mode_t mode) {
  if (place_of(path) != FOLDER) return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  pthread_mutex_lock(&lock);
  int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (result == 0) note_path(MKDIR, 0, 0, path, NULL);
  pthread_mutex_unlock(&lock);
  return result;
}
