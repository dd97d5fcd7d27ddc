/* SPDX-License-Identifier: MIT */
/*
 * Names that are made as they are, in any thread, and are here for observers
 * alone: without them they would see the read of a socket, and not where it
 * comes from. None of them waits; what closes, waits or belongs to a thread is
 * elsewhere; memory and identity are in preload/system.c.
 */
#include "preload/checked.h"
#include "preload/plain.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/mount.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Sockets */
FX_PLAIN(int, socket, (int family, int type, int protocol),
	 (family, type, protocol), SYS_socket, family, type, protocol)
FX_PLAIN(int, socketpair, (int family, int type, int protocol, int fds[2]),
	 (family, type, protocol, fds), SYS_socketpair, family, type, protocol,
	 (long)fds)
FX_PLAIN(int, bind, (int fd, const struct sockaddr *address, socklen_t size),
	 (fd, address, size), SYS_bind, fd, (long)address, size)
FX_PLAIN(int, listen, (int fd, int nr), (fd, nr), SYS_listen, fd, nr)
FX_PLAIN(int, shutdown, (int fd, int how), (fd, how), SYS_shutdown, fd, how)
FX_PLAIN(int, getsockname,
	 (int fd, struct sockaddr *restrict address, socklen_t *restrict size),
	 (fd, address, size), SYS_getsockname, fd, (long)address, (long)size)
FX_PLAIN(int, getpeername,
	 (int fd, struct sockaddr *restrict address, socklen_t *restrict size),
	 (fd, address, size), SYS_getpeername, fd, (long)address, (long)size)
FX_PLAIN(int, setsockopt,
	 (int fd, int level, int name, const void *value, socklen_t size),
	 (fd, level, name, value, size), SYS_setsockopt, fd, level, name,
	 (long)value, size)
FX_PLAIN(int, getsockopt,
	 (int fd, int level, int name, void *restrict value,
	  socklen_t *restrict size),
	 (fd, level, name, value, size), SYS_getsockopt, fd, level, name,
	 (long)value, (long)size)

/* Descriptors */
FX_PLAIN(int, dup, (int fd), (fd), SYS_dup, fd)
FX_PLAIN(int, pipe, (int fds[2]), (fds), SYS_pipe2, (long)fds, 0)
FX_PLAIN(int, pipe2, (int fds[2], int flags), (fds, flags), SYS_pipe2,
	 (long)fds, flags)
FX_PLAIN(int, epoll_create, (int size), (size), SYS_epoll_create, size)
FX_PLAIN(int, epoll_create1, (int flags), (flags), SYS_epoll_create1, flags)
FX_PLAIN(int, epoll_ctl, (int set, int what, int fd, struct epoll_event *event),
	 (set, what, fd, event), SYS_epoll_ctl, set, what, fd, (long)event)
FX_PLAIN(int, eventfd, (unsigned count, int flags), (count, flags),
	 SYS_eventfd2, count, flags)
FX_PLAIN(int, signalfd, (int fd, const sigset_t *mask, int flags),
	 (fd, mask, flags), SYS_signalfd4, fd, (long)mask, 8, flags)
FX_PLAIN(int, timerfd_create, (clockid_t clock, int flags), (clock, flags),
	 SYS_timerfd_create, clock, flags)
FX_PLAIN(int, timerfd_settime,
	 (int fd, int flags, const struct itimerspec *to,
	  struct itimerspec *before),
	 (fd, flags, to, before), SYS_timerfd_settime, fd, flags, (long)to,
	 (long)before)
FX_PLAIN(int, inotify_init1, (int flags), (flags), SYS_inotify_init1, flags)
FX_PLAIN(int, inotify_add_watch, (int fd, const char *path, uint32_t mask),
	 (fd, path, mask), SYS_inotify_add_watch, fd, (long)path, mask)
FX_PLAIN(int, inotify_rm_watch, (int fd, int watch), (fd, watch),
	 SYS_inotify_rm_watch, fd, watch)
FX_PLAIN(int, memfd_create, (const char *name, unsigned flags), (name, flags),
	 SYS_memfd_create, (long)name, flags)
FX_PLAIN(ssize_t, getrandom, (void *buf, size_t size, unsigned flags),
	 (buf, size, flags), SYS_getrandom, (long)buf, (long)size, flags)

/* Files */
FX_PLAIN(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence),
	 SYS_lseek, fd, at, whence)
FX_PLAIN(off64_t, lseek64, (int fd, off64_t at, int whence), (fd, at, whence),
	 SYS_lseek, fd, at, whence)
FX_PLAIN(int, fstat, (int fd, struct stat *st), (fd, st), SYS_fstat, fd,
	 (long)st)
FX_PLAIN(int, fstat64, (int fd, struct stat64 *st), (fd, st), SYS_fstat, fd,
	 (long)st)
FX_PLAIN(int, ftruncate, (int fd, off_t size), (fd, size), SYS_ftruncate, fd,
	 size)
FX_PLAIN(int, ftruncate64, (int fd, off64_t size), (fd, size), SYS_ftruncate,
	 fd, size)
FX_PLAIN(int, fallocate, (int fd, int mode, off_t at, off_t size),
	 (fd, mode, at, size), SYS_fallocate, fd, mode, at, size)
FX_PLAIN(int, fallocate64, (int fd, int mode, off64_t at, off64_t size),
	 (fd, mode, at, size), SYS_fallocate, fd, mode, at, size)
FX_PLAIN(int, fchmod, (int fd, mode_t mode), (fd, mode), SYS_fchmod, fd, mode)
FX_PLAIN(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group),
	 SYS_fchown, fd, user, group)
FX_PLAIN(int, fchdir, (int fd), (fd), SYS_fchdir, fd)
FX_PLAIN(int, futimens, (int fd, const struct timespec times[2]), (fd, times),
	 SYS_utimensat, fd, 0, (long)times, 0)

FX_PLAIN(int, fstatfs, (int fd, struct statfs *st), (fd, st), SYS_fstatfs, fd,
	 (long)st)
FX_PLAIN(int, fstatfs64, (int fd, struct statfs64 *st), (fd, st), SYS_fstatfs,
	 fd, (long)st)
FX_PLAIN(ssize_t, getdents64, (int fd, void *buf, size_t size), (fd, buf, size),
	 SYS_getdents64, fd, (long)buf, (long)size)
FX_PLAIN(int, syncfs, (int fd), (fd), SYS_syncfs, fd)
FX_PLAIN(int, sync_file_range,
	 (int fd, off64_t at, off64_t size, unsigned flags),
	 (fd, at, size, flags), SYS_sync_file_range, fd, at, size, flags)
FX_PLAIN(ssize_t, readahead, (int fd, off64_t at, size_t size), (fd, at, size),
	 SYS_readahead, fd, at, (long)size)
FX_PLAIN_ERROR(posix_fadvise, (int fd, off_t at, off_t size, int advice),
	       (fd, at, size, advice), SYS_fadvise64, fd, at, size, advice)
FX_PLAIN_ERROR(posix_fadvise64, (int fd, off64_t at, off64_t size, int advice),
	       (fd, at, size, advice), SYS_fadvise64, fd, at, size, advice)

/* Paths */
FX_PLAIN(int, stat, (const char *restrict path, struct stat *restrict st),
	 (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0)
FX_PLAIN(int, stat64, (const char *restrict path, struct stat64 *restrict st),
	 (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0)
FX_PLAIN(int, lstat, (const char *restrict path, struct stat *restrict st),
	 (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st,
	 AT_SYMLINK_NOFOLLOW)
FX_PLAIN(int, lstat64, (const char *restrict path, struct stat64 *restrict st),
	 (path, st), SYS_newfstatat, AT_FDCWD, (long)path, (long)st,
	 AT_SYMLINK_NOFOLLOW)
FX_PLAIN(int, fstatat,
	 (int dir, const char *restrict path, struct stat *restrict st,
	  int flags),
	 (dir, path, st, flags), SYS_newfstatat, dir, (long)path, (long)st,
	 flags)
FX_PLAIN(int, fstatat64,
	 (int dir, const char *restrict path, struct stat64 *restrict st,
	  int flags),
	 (dir, path, st, flags), SYS_newfstatat, dir, (long)path, (long)st,
	 flags)
FX_PLAIN(int, statx,
	 (int dir, const char *restrict path, int flags, unsigned mask,
	  struct statx *restrict st),
	 (dir, path, flags, mask, st), SYS_statx, dir, (long)path, flags, mask,
	 (long)st)
FX_PLAIN(int, access, (const char *path, int mode), (path, mode), SYS_access,
	 (long)path, mode)
FX_PLAIN(int, mkdir, (const char *path, mode_t mode), (path, mode), SYS_mkdir,
	 (long)path, mode)
FX_PLAIN(int, mkdirat, (int dir, const char *path, mode_t mode),
	 (dir, path, mode), SYS_mkdirat, dir, (long)path, mode)
FX_PLAIN(int, rmdir, (const char *path), (path), SYS_rmdir, (long)path)
FX_PLAIN(int, unlink, (const char *path), (path), SYS_unlink, (long)path)
FX_PLAIN(int, unlinkat, (int dir, const char *path, int flags),
	 (dir, path, flags), SYS_unlinkat, dir, (long)path, flags)
FX_PLAIN(int, rename, (const char *from, const char *to), (from, to),
	 SYS_rename, (long)from, (long)to)
FX_PLAIN(int, renameat, (int from, const char *path, int to, const char *name),
	 (from, path, to, name), SYS_renameat, from, (long)path, to, (long)name)
FX_PLAIN(int, link, (const char *from, const char *to), (from, to), SYS_link,
	 (long)from, (long)to)
FX_PLAIN(int, symlink, (const char *target, const char *path), (target, path),
	 SYS_symlink, (long)target, (long)path)
FX_PLAIN(ssize_t, readlink,
	 (const char *restrict path, char *restrict buf, size_t size),
	 (path, buf, size), SYS_readlink, (long)path, (long)buf, (long)size)
FX_PLAIN(ssize_t, readlinkat,
	 (int dir, const char *restrict path, char *restrict buf, size_t size),
	 (dir, path, buf, size), SYS_readlinkat, dir, (long)path, (long)buf,
	 (long)size)
FX_PLAIN(int, chmod, (const char *path, mode_t mode), (path, mode), SYS_chmod,
	 (long)path, mode)
FX_PLAIN(int, chown, (const char *path, uid_t user, gid_t group),
	 (path, user, group), SYS_chown, (long)path, user, group)
FX_PLAIN(int, chdir, (const char *path), (path), SYS_chdir, (long)path)
FX_PLAIN(int, truncate, (const char *path, off_t size), (path, size),
	 SYS_truncate, (long)path, size)
FX_PLAIN(int, truncate64, (const char *path, off64_t size), (path, size),
	 SYS_truncate, (long)path, size)
FX_PLAIN(mode_t, umask, (mode_t mode), (mode), SYS_umask, mode)
FX_PLAIN(int, utimensat,
	 (int dir, const char *path, const struct timespec times[2], int flags),
	 (dir, path, times, flags), SYS_utimensat, dir, (long)path, (long)times,
	 flags)
FX_PLAIN(int, chroot, (const char *path), (path), SYS_chroot, (long)path)
FX_PLAIN(int, lchown, (const char *path, uid_t user, gid_t group),
	 (path, user, group), SYS_lchown, (long)path, user, group)
FX_PLAIN(int, fchownat,
	 (int dir, const char *path, uid_t user, gid_t group, int flags),
	 (dir, path, user, group, flags), SYS_fchownat, dir, (long)path, user,
	 group, flags)
FX_PLAIN(int, fchmodat, (int dir, const char *path, mode_t mode, int flags),
	 (dir, path, mode, flags), SYS_fchmodat, dir, (long)path, mode)
FX_PLAIN(int, faccessat, (int dir, const char *path, int mode, int flags),
	 (dir, path, mode, flags), SYS_faccessat2, dir, (long)path, mode, flags)
FX_PLAIN(int, linkat,
	 (int from, const char *path, int to, const char *name, int flags),
	 (from, path, to, name, flags), SYS_linkat, from, (long)path, to,
	 (long)name, flags)
FX_PLAIN(int, symlinkat, (const char *target, int dir, const char *path),
	 (target, dir, path), SYS_symlinkat, (long)target, dir, (long)path)
FX_PLAIN(int, renameat2,
	 (int from, const char *path, int to, const char *name, unsigned flags),
	 (from, path, to, name, flags), SYS_renameat2, from, (long)path, to,
	 (long)name, flags)
FX_PLAIN(int, mknod, (const char *path, mode_t mode, dev_t device),
	 (path, mode, device), SYS_mknodat, AT_FDCWD, (long)path, mode,
	 (long)device)
FX_PLAIN(int, mknodat, (int dir, const char *path, mode_t mode, dev_t device),
	 (dir, path, mode, device), SYS_mknodat, dir, (long)path, mode,
	 (long)device)
FX_PLAIN(int, mkfifo, (const char *path, mode_t mode), (path, mode),
	 SYS_mknodat, AT_FDCWD, (long)path, (mode) | S_IFIFO, 0)
FX_PLAIN(int, mkfifoat, (int dir, const char *path, mode_t mode),
	 (dir, path, mode), SYS_mknodat, dir, (long)path, (mode) | S_IFIFO, 0)
FX_PLAIN(int, statfs, (const char *path, struct statfs *st), (path, st),
	 SYS_statfs, (long)path, (long)st)
FX_PLAIN(int, statfs64, (const char *path, struct statfs64 *st), (path, st),
	 SYS_statfs, (long)path, (long)st)
FX_PLAIN(int, mount,
	 (const char *from, const char *path, const char *type,
	  unsigned long flags, const void *data),
	 (from, path, type, flags, data), SYS_mount, (long)from, (long)path,
	 (long)type, (long)flags, (long)data)
FX_PLAIN(int, umount, (const char *path), (path), SYS_umount2, (long)path, 0)
FX_PLAIN(int, umount2, (const char *path, int flags), (path, flags),
	 SYS_umount2, (long)path, flags)

/* The kernel's says how long it is. */
#define LENGTH_OF(path) (fx_got ? (long)strlen(fx_got) + 1 : -1)

FX_NEXT(getcwd);
FX_NAME char *getcwd(char *buf, size_t size)
{
	return FX_SEEN_AS(NEXT(getcwd)(buf, size), LENGTH_OF(fx_got),
			  SYS_getcwd, (long)buf, (long)size);
}

/* With _FORTIFY_SOURCE; no header of the C library declares them all. */
FX_PLAIN(ssize_t, __readlink_chk,
	 (const char *path, char *buf, size_t size, size_t room),
	 (path, buf, size, room), SYS_readlink, (long)path, (long)buf,
	 (long)size)
FX_PLAIN(ssize_t, __readlinkat_chk,
	 (int dir, const char *path, char *buf, size_t size, size_t room),
	 (dir, path, buf, size, room), SYS_readlinkat, dir, (long)path,
	 (long)buf, (long)size)

FX_NEXT(__getcwd_chk);
FX_NAME char *__getcwd_chk(char *buf, size_t size, size_t room)
{
	return FX_SEEN_AS(NEXT(__getcwd_chk)(buf, size, room),
			  LENGTH_OF(fx_got), SYS_getcwd, (long)buf, (long)size);
}

/* Extended attributes */
FX_PLAIN(int, setxattr,
	 (const char *path, const char *name, const void *value, size_t size,
	  int flags),
	 (path, name, value, size, flags), SYS_setxattr, (long)path, (long)name,
	 (long)value, (long)size, flags)
FX_PLAIN(ssize_t, getxattr,
	 (const char *path, const char *name, void *value, size_t size),
	 (path, name, value, size), SYS_getxattr, (long)path, (long)name,
	 (long)value, (long)size)
FX_PLAIN(ssize_t, listxattr, (const char *path, char *names, size_t size),
	 (path, names, size), SYS_listxattr, (long)path, (long)names,
	 (long)size)
FX_PLAIN(int, removexattr, (const char *path, const char *name), (path, name),
	 SYS_removexattr, (long)path, (long)name)
FX_PLAIN(int, lsetxattr,
	 (const char *path, const char *name, const void *value, size_t size,
	  int flags),
	 (path, name, value, size, flags), SYS_lsetxattr, (long)path,
	 (long)name, (long)value, (long)size, flags)
FX_PLAIN(ssize_t, lgetxattr,
	 (const char *path, const char *name, void *value, size_t size),
	 (path, name, value, size), SYS_lgetxattr, (long)path, (long)name,
	 (long)value, (long)size)
FX_PLAIN(ssize_t, llistxattr, (const char *path, char *names, size_t size),
	 (path, names, size), SYS_llistxattr, (long)path, (long)names,
	 (long)size)
FX_PLAIN(int, lremovexattr, (const char *path, const char *name), (path, name),
	 SYS_lremovexattr, (long)path, (long)name)
FX_PLAIN(int, fsetxattr,
	 (int fd, const char *name, const void *value, size_t size, int flags),
	 (fd, name, value, size, flags), SYS_fsetxattr, fd, (long)name,
	 (long)value, (long)size, flags)
FX_PLAIN(ssize_t, fgetxattr,
	 (int fd, const char *name, void *value, size_t size),
	 (fd, name, value, size), SYS_fgetxattr, fd, (long)name, (long)value,
	 (long)size)
FX_PLAIN(ssize_t, flistxattr, (int fd, char *names, size_t size),
	 (fd, names, size), SYS_flistxattr, fd, (long)names, (long)size)
FX_PLAIN(int, fremovexattr, (int fd, const char *name), (fd, name),
	 SYS_fremovexattr, fd, (long)name)
