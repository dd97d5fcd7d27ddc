/* SPDX-License-Identifier: MIT */
/* What _FORTIFY_SOURCE calls; no header of the C library declares them all. */
#ifndef FX_PRELOAD_CHECKED_H
#define FX_PRELOAD_CHECKED_H

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

void __chk_fail(void) __attribute__((noreturn));

ssize_t __read_chk(int fd, void *buf, size_t count, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t count, off_t at, size_t size);
ssize_t __pread64_chk(int fd, void *buf, size_t count, off64_t at, size_t size);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t size,
			 size_t room);
char *__getcwd_chk(char *buf, size_t size, size_t room);
int __getgroups_chk(int nr, gid_t groups[], size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t count, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t count, size_t size, int flags,
		       struct sockaddr *address, socklen_t *address_size);
int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout_ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		const sigset_t *mask, size_t size);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

#endif /* FX_PRELOAD_CHECKED_H */
