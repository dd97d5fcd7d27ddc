/* SPDX-License-Identifier: MIT */
/* Names that open files and set locks on them. */
#include "preload/checked.h"
#include "preload/result.h"

#include "engine/hold.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

FX_NEXT(openat64);
FX_NEXT(fcntl64);
FX_NEXT(ioctl);

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	FX_CALL(NEXT(openat64)(dir, path, flags, mode), SYS_openat, dir,
		(long)path, flags, mode);
}

/* The mode that follows, if one does. */
#define MODE_OF(flags)                                     \
	({                                                 \
		mode_t fx_mode = 0;                        \
		va_list fx_list;                           \
                                                           \
		if (__OPEN_NEEDS_MODE(flags)) {            \
			va_start(fx_list, flags);          \
			fx_mode = va_arg(fx_list, mode_t); \
			va_end(fx_list);                   \
		}                                          \
		fx_mode;                                   \
	})

FX_NAME int open64(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags | O_LARGEFILE, MODE_OF(flags));
}

FX_NAME int open(const char *path, int flags, ...)
	__attribute__((alias("open64")));

FX_NAME int openat64(int dir, const char *path, int flags, ...)
{
	return open_at(dir, path, flags | O_LARGEFILE, MODE_OF(flags));
}

FX_NAME int openat(int dir, const char *path, int flags, ...)
	__attribute__((alias("openat64")));

FX_NAME int creat64(const char *path, mode_t mode)
{
	return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

FX_NAME int creat(const char *path, mode_t mode)
	__attribute__((alias("creat64")));

FX_NAME int __open64_2(const char *path, int flags)
{
	if (__OPEN_NEEDS_MODE(flags))
		__chk_fail();
	return open_at(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

FX_NAME int __open_2(const char *path, int flags)
	__attribute__((alias("__open64_2")));

FX_NAME int __openat64_2(int dir, const char *path, int flags)
{
	if (__OPEN_NEEDS_MODE(flags))
		__chk_fail();
	return open_at(dir, path, flags | O_LARGEFILE, 0);
}

FX_NAME int __openat_2(int dir, const char *path, int flags)
	__attribute__((alias("__openat64_2")));

/* Calls were seen to wait there; from now on they do not. */
static void forget(int fd)
{
	uint64_t *word = fx_hold_word(fd);

	if (word)
		fx_hold_renew(word);
}

FX_NAME int ioctl(int fd, unsigned long what, ...)
{
	va_list list;
	void *arg;
	int ret;

	va_start(list, what);
	arg = va_arg(list, void *);
	va_end(list);
	ret = FX_SEEN(NEXT(ioctl)(fd, what, arg), SYS_ioctl, fd, (long)what,
		      (long)arg);
	if (what == FIONBIO && ret == 0)
		forget(fd);
	return ret;
}

static int control(int fd, int cmd, long arg)
{
	struct fx_thread *me;
	int ret;

	if ((cmd == F_SETLKW || cmd == F_OFD_SETLKW) &&
	    (me = fx_thread_away())) {
		/* Waited for at home, if it has to be. */
		if (NEXT(fcntl64)(fd, cmd == F_SETLKW ? F_SETLK : F_OFD_SETLK,
				  arg) == 0)
			return 0;
		fx_thread_home(me, FX_HOME_CALL);
	}
	ret = NEXT(fcntl64)(fd, cmd, arg);
	if (cmd == F_SETFL && arg & O_NONBLOCK && ret == 0)
		forget(fd);
	return ret;
}

FX_NAME int fcntl64(int fd, int cmd, ...)
{
	va_list list;
	long arg;

	va_start(list, cmd);
	arg = va_arg(list, long);
	va_end(list);
	return FX_SEEN(control(fd, cmd, arg), SYS_fcntl, fd, cmd, arg);
}

FX_NAME int fcntl(int fd, int cmd, ...) __attribute__((alias("fcntl64")));

FX_NAME int lockf64(int fd, int cmd, off64_t size)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_CUR,
			      .l_len = size };

	switch (cmd) {
	case F_TEST:
		lock.l_type = F_RDLCK;
		if (fcntl64(fd, F_GETLK, &lock) < 0)
			return -1;
		if (lock.l_type == F_UNLCK || lock.l_pid == getpid())
			return 0;
		errno = EACCES;
		return -1;
	case F_ULOCK:
		lock.l_type = F_UNLCK;
		return fcntl64(fd, F_SETLK, &lock);
	case F_LOCK:
		return fcntl64(fd, F_SETLKW, &lock);
	case F_TLOCK:
		return fcntl64(fd, F_SETLK, &lock);
	default:
		errno = EINVAL;
		return -1;
	}
}

FX_NAME int lockf(int fd, int cmd, off_t size)
	__attribute__((alias("lockf64")));
