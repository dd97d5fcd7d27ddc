/* SPDX-License-Identifier: MIT */
/*
 * Names that are made as they are, in any thread, and are here for observers
 * alone: without them they would see the read of a socket, and not where it
 * comes from. None of them waits; what closes, waits or belongs to a thread is
 * elsewhere. Memory is left out: allocators call that before anything is ready.
 */
#include "preload/next.h"
#include "preload/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The name, what it is called with, and the system call that it is. */
#define PLAIN(type, name, parameters, arguments, nr, ...)           \
	FX_NEXT(name);                                              \
	FX_NAME type name parameters                                \
	{                                                           \
		return FX_SEEN(NEXT(name) arguments, nr, __VA_ARGS__); \
	}

/* Sockets */
PLAIN(int, socket, (int family, int type, int protocol),
      (family, type, protocol), SYS_socket, family, type, protocol)
PLAIN(int, socketpair, (int family, int type, int protocol, int fds[2]),
      (family, type, protocol, fds), SYS_socketpair, family, type, protocol,
      (long)fds)
PLAIN(int, bind, (int fd, const struct sockaddr *address, socklen_t size),
      (fd, address, size), SYS_bind, fd, (long)address, size)
PLAIN(int, listen, (int fd, int nr), (fd, nr), SYS_listen, fd, nr)
PLAIN(int, shutdown, (int fd, int how), (fd, how), SYS_shutdown, fd, how)
PLAIN(int, getsockname,
      (int fd, struct sockaddr *restrict address, socklen_t *restrict size),
      (fd, address, size), SYS_getsockname, fd, (long)address, (long)size)
PLAIN(int, getpeername,
      (int fd, struct sockaddr *restrict address, socklen_t *restrict size),
      (fd, address, size), SYS_getpeername, fd, (long)address, (long)size)
PLAIN(int, setsockopt,
      (int fd, int level, int name, const void *value, socklen_t size),
      (fd, level, name, value, size), SYS_setsockopt, fd, level, name,
      (long)value, size)
PLAIN(int, getsockopt,
      (int fd, int level, int name, void *restrict value,
       socklen_t *restrict size),
      (fd, level, name, value, size), SYS_getsockopt, fd, level, name,
      (long)value, (long)size)

/* Descriptors */
PLAIN(int, dup, (int fd), (fd), SYS_dup, fd)
PLAIN(int, pipe, (int fds[2]), (fds), SYS_pipe2, (long)fds, 0)
PLAIN(int, pipe2, (int fds[2], int flags), (fds, flags), SYS_pipe2, (long)fds,
      flags)
PLAIN(int, epoll_create, (int size), (size), SYS_epoll_create, size)
PLAIN(int, epoll_create1, (int flags), (flags), SYS_epoll_create1, flags)
PLAIN(int, epoll_ctl, (int set, int what, int fd, struct epoll_event *event),
      (set, what, fd, event), SYS_epoll_ctl, set, what, fd, (long)event)
PLAIN(int, eventfd, (unsigned count, int flags), (count, flags), SYS_eventfd2,
      count, flags)
PLAIN(int, signalfd, (int fd, const sigset_t *mask, int flags),
      (fd, mask, flags), SYS_signalfd4, fd, (long)mask, 8, flags)
PLAIN(int, timerfd_create, (clockid_t clock, int flags), (clock, flags),
      SYS_timerfd_create, clock, flags)
PLAIN(int, timerfd_settime,
      (int fd, int flags, const struct itimerspec *to,
       struct itimerspec *before),
      (fd, flags, to, before), SYS_timerfd_settime, fd, flags, (long)to,
      (long)before)
PLAIN(int, inotify_init1, (int flags), (flags), SYS_inotify_init1, flags)
PLAIN(int, inotify_add_watch, (int fd, const char *path, uint32_t mask),
      (fd, path, mask), SYS_inotify_add_watch, fd, (long)path, mask)
PLAIN(int, inotify_rm_watch, (int fd, int watch), (fd, watch),
      SYS_inotify_rm_watch, fd, watch)
PLAIN(int, memfd_create, (const char *name, unsigned flags), (name, flags),
      SYS_memfd_create, (long)name, flags)
PLAIN(ssize_t, getrandom, (void *buf, size_t size, unsigned flags),
      (buf, size, flags), SYS_getrandom, (long)buf, (long)size, flags)

/* Files */
PLAIN(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), SYS_lseek,
      fd, at, whence)
PLAIN(off64_t, lseek64, (int fd, off64_t at, int whence), (fd, at, whence),
      SYS_lseek, fd, at, whence)
PLAIN(int, fstat, (int fd, struct stat *st), (fd, st), SYS_fstat, fd, (long)st)
PLAIN(int, fstat64, (int fd, struct stat64 *st), (fd, st), SYS_fstat, fd,
      (long)st)
PLAIN(int, ftruncate, (int fd, off_t size), (fd, size), SYS_ftruncate, fd, size)
PLAIN(int, ftruncate64, (int fd, off64_t size), (fd, size), SYS_ftruncate, fd,
      size)
PLAIN(int, fallocate, (int fd, int mode, off_t at, off_t size),
      (fd, mode, at, size), SYS_fallocate, fd, mode, at, size)
PLAIN(int, fallocate64, (int fd, int mode, off64_t at, off64_t size),
      (fd, mode, at, size), SYS_fallocate, fd, mode, at, size)
PLAIN(int, fchmod, (int fd, mode_t mode), (fd, mode), SYS_fchmod, fd, mode)
PLAIN(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group),
      SYS_fchown, fd, user, group)
PLAIN(int, fchdir, (int fd), (fd), SYS_fchdir, fd)
PLAIN(int, futimens, (int fd, const struct timespec times[2]), (fd, times),
      SYS_utimensat, fd, 0, (long)times, 0)

/* Paths */
PLAIN(int, stat, (const char *restrict path, struct stat *restrict st),
      (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0)
PLAIN(int, stat64, (const char *restrict path, struct stat64 *restrict st),
      (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0)
PLAIN(int, lstat, (const char *restrict path, struct stat *restrict st),
      (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st,
      AT_SYMLINK_NOFOLLOW)
PLAIN(int, lstat64, (const char *restrict path, struct stat64 *restrict st),
      (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st,
      AT_SYMLINK_NOFOLLOW)
PLAIN(int, fstatat,
      (int dir, const char *restrict path, struct stat *restrict st, int flags),
      (dir, path, st, flags), SYS_newfstatat, dir, (long)path, (long)st, flags)
PLAIN(int, fstatat64,
      (int dir, const char *restrict path, struct stat64 *restrict st,
       int flags),
      (dir, path, st, flags), SYS_newfstatat, dir, (long)path, (long)st, flags)
PLAIN(int, statx,
      (int dir, const char *restrict path, int flags, unsigned mask,
       struct statx *restrict st),
      (dir, path, flags, mask, st), SYS_statx, dir, (long)path, flags, mask,
      (long)st)
PLAIN(int, access, (const char *path, int mode), (path, mode), SYS_access,
      (long)path, mode)
PLAIN(int, mkdir, (const char *path, mode_t mode), (path, mode), SYS_mkdir,
      (long)path, mode)
PLAIN(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode),
      SYS_mkdirat, dir, (long)path, mode)
PLAIN(int, rmdir, (const char *path), (path), SYS_rmdir, (long)path)
PLAIN(int, unlink, (const char *path), (path), SYS_unlink, (long)path)
PLAIN(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags),
      SYS_unlinkat, dir, (long)path, flags)
PLAIN(int, rename, (const char *from, const char *to), (from, to), SYS_rename,
      (long)from, (long)to)
PLAIN(int, renameat, (int from, const char *path, int to, const char *name),
      (from, path, to, name), SYS_renameat, from, (long)path, to, (long)name)
PLAIN(int, link, (const char *from, const char *to), (from, to), SYS_link,
      (long)from, (long)to)
PLAIN(int, symlink, (const char *target, const char *path), (target, path),
      SYS_symlink, (long)target, (long)path)
PLAIN(ssize_t, readlink,
      (const char *restrict path, char *restrict buf, size_t size),
      (path, buf, size), SYS_readlink, (long)path, (long)buf, (long)size)
PLAIN(ssize_t, readlinkat,
      (int dir, const char *restrict path, char *restrict buf, size_t size),
      (dir, path, buf, size), SYS_readlinkat, dir, (long)path, (long)buf,
      (long)size)
PLAIN(int, chmod, (const char *path, mode_t mode), (path, mode), SYS_chmod,
      (long)path, mode)
PLAIN(int, chown, (const char *path, uid_t user, gid_t group),
      (path, user, group), SYS_chown, (long)path, user, group)
PLAIN(int, chdir, (const char *path), (path), SYS_chdir, (long)path)
PLAIN(int, truncate, (const char *path, off_t size), (path, size), SYS_truncate,
      (long)path, size)
PLAIN(int, truncate64, (const char *path, off64_t size), (path, size),
      SYS_truncate, (long)path, size)
PLAIN(mode_t, umask, (mode_t mode), (mode), SYS_umask, mode)
PLAIN(int, utimensat,
      (int dir, const char *path, const struct timespec times[2], int flags),
      (dir, path, times, flags), SYS_utimensat, dir, (long)path, (long)times,
      flags)
