/* SPDX-License-Identifier: MIT */
/* Names that read and write. */
#include "preload/checked.h"
#include "preload/result.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

FX_NEXT(read);
FX_NEXT(write);
FX_NEXT(readv);
FX_NEXT(writev);
FX_NEXT(pread64);
FX_NEXT(pwrite64);
FX_NEXT(preadv64);
FX_NEXT(pwritev64);
FX_NEXT(preadv64v2);
FX_NEXT(pwritev64v2);
FX_NEXT(close);
FX_NEXT(fsync);
FX_NEXT(fdatasync);
FX_NEXT(msync);
FX_NEXT(sendfile64);
FX_NEXT(splice);
FX_NEXT(tee);
FX_NEXT(vmsplice);
FX_NEXT(copy_file_range);
FX_NEXT(flock);
FX_NEXT(dup2);
FX_NEXT(dup3);
FX_NEXT(close_range);

FX_NAME ssize_t read(int fd, void *buf, size_t count)
{
	FX_CALL(NEXT(read)(fd, buf, count), SYS_read, fd, (long)buf,
		(long)count);
}

FX_NAME ssize_t __read_chk(int fd, void *buf, size_t count, size_t size)
{
	if (count > size)
		__chk_fail();
	return read(fd, buf, count);
}

FX_NAME ssize_t write(int fd, const void *buf, size_t count)
{
	FX_CALL(NEXT(write)(fd, buf, count), SYS_write, fd, (long)buf,
		(long)count);
}

FX_NAME ssize_t readv(int fd, const struct iovec *iov, int nr)
{
	FX_CALL(NEXT(readv)(fd, iov, nr), SYS_readv, fd, (long)iov, nr);
}

FX_NAME ssize_t writev(int fd, const struct iovec *iov, int nr)
{
	FX_CALL(NEXT(writev)(fd, iov, nr), SYS_writev, fd, (long)iov, nr);
}

FX_NAME ssize_t pread64(int fd, void *buf, size_t count, off64_t at)
{
	FX_CALL(NEXT(pread64)(fd, buf, count, at), SYS_pread64, fd, (long)buf,
		(long)count, at);
}

FX_NAME ssize_t pread(int fd, void *buf, size_t count, off_t at)
	__attribute__((alias("pread64")));

FX_NAME ssize_t __pread64_chk(int fd, void *buf, size_t count, off64_t at,
			      size_t size)
{
	if (count > size)
		__chk_fail();
	return pread64(fd, buf, count, at);
}

FX_NAME ssize_t __pread_chk(int fd, void *buf, size_t count, off_t at,
			    size_t size)
	__attribute__((alias("__pread64_chk")));

FX_NAME ssize_t pwrite64(int fd, const void *buf, size_t count, off64_t at)
{
	FX_CALL(NEXT(pwrite64)(fd, buf, count, at), SYS_pwrite64, fd, (long)buf,
		(long)count, at);
}

FX_NAME ssize_t pwrite(int fd, const void *buf, size_t count, off_t at)
	__attribute__((alias("pwrite64")));

/* The kernel takes offsets in two halves; on this machine the first is all. */
FX_NAME ssize_t preadv64(int fd, const struct iovec *iov, int nr, off64_t at)
{
	FX_CALL(NEXT(preadv64)(fd, iov, nr, at), SYS_preadv, fd, (long)iov, nr,
		at);
}

FX_NAME ssize_t preadv(int fd, const struct iovec *iov, int nr, off_t at)
	__attribute__((alias("preadv64")));

FX_NAME ssize_t pwritev64(int fd, const struct iovec *iov, int nr, off64_t at)
{
	FX_CALL(NEXT(pwritev64)(fd, iov, nr, at), SYS_pwritev, fd, (long)iov,
		nr, at);
}

FX_NAME ssize_t pwritev(int fd, const struct iovec *iov, int nr, off_t at)
	__attribute__((alias("pwritev64")));

FX_NAME ssize_t preadv64v2(int fd, const struct iovec *iov, int nr, off64_t at,
			   int flags)
{
	FX_CALL(NEXT(preadv64v2)(fd, iov, nr, at, flags), SYS_preadv2, fd,
		(long)iov, nr, at, 0, flags);
}

FX_NAME ssize_t preadv2(int fd, const struct iovec *iov, int nr, off_t at,
			int flags) __attribute__((alias("preadv64v2")));

FX_NAME ssize_t pwritev64v2(int fd, const struct iovec *iov, int nr, off64_t at,
			    int flags)
{
	FX_CALL(NEXT(pwritev64v2)(fd, iov, nr, at, flags), SYS_pwritev2, fd,
		(long)iov, nr, at, 0, flags);
}

FX_NAME ssize_t pwritev2(int fd, const struct iovec *iov, int nr, off_t at,
			 int flags) __attribute__((alias("pwritev64v2")));

FX_NAME int close(int fd)
{
	FX_CLOSE(NEXT(close)(fd), SYS_close, fd);
}

FX_NAME int fsync(int fd)
{
	FX_CALL(NEXT(fsync)(fd), SYS_fsync, fd);
}

FX_NAME int fdatasync(int fd)
{
	FX_CALL(NEXT(fdatasync)(fd), SYS_fdatasync, fd);
}

FX_NAME int msync(void *address, size_t size, int flags)
{
	FX_CALL(NEXT(msync)(address, size, flags), SYS_msync, (long)address,
		(long)size, flags);
}

/*
 * What can be sent without waiting is (fx_sendfile_whole); else it is made at
 * home, where the kernel keeps both files, whatever becomes of their numbers.
 */
static ssize_t send_file(int out, int in, off64_t *at, size_t count)
{
	static const struct fx_deadline past = { 1, FX_CLOCK_MONOTONIC };
	struct fx_thread *me = fx_thread_lent();
	int64_t done = FX_IO_PLAIN;
	ssize_t more;

	if (me)
		done = fx_io(me, SYS_sendfile, FX_IO_NO_CANCEL, &past,
			     (const long[6]){ out, in, (long)at, (long)count });
	if (done == FX_IO_PLAIN || done == -ETIMEDOUT)
		done = 0;
	else if (done < 0 || (size_t)done == count)
		return fx_result(done);
	me = fx_thread_away();
	if (me)
		fx_thread_home(me, FX_HOME_CALL);
	more = NEXT(sendfile64)(out, in, at, count - (size_t)done);
	return more < 0 && done ? done : done + more;
}

FX_NAME ssize_t sendfile64(int out, int in, off64_t *at, size_t count)
{
	return FX_SEEN(send_file(out, in, at, count), SYS_sendfile, out, in,
		       (long)at, (long)count);
}

FX_NAME ssize_t sendfile(int out, int in, off_t *at, size_t count)
	__attribute__((alias("sendfile64")));

FX_NAME ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at,
		       size_t count, unsigned flags)
{
	FX_CALL(NEXT(splice)(in, in_at, out, out_at, count, flags), SYS_splice,
		in, (long)in_at, out, (long)out_at, (long)count, flags);
}

FX_NAME ssize_t tee(int in, int out, size_t count, unsigned flags)
{
	FX_CALL(NEXT(tee)(in, out, count, flags), SYS_tee, in, out, (long)count,
		flags);
}

FX_NAME ssize_t vmsplice(int fd, const struct iovec *iov, size_t nr,
			 unsigned flags)
{
	FX_CALL(NEXT(vmsplice)(fd, iov, nr, flags), SYS_vmsplice, fd, (long)iov,
		(long)nr, flags);
}

FX_NAME ssize_t copy_file_range(int in, off64_t *in_at, int out,
				off64_t *out_at, size_t count, unsigned flags)
{
	FX_CALL(NEXT(copy_file_range)(in, in_at, out, out_at, count, flags),
		SYS_copy_file_range, in, (long)in_at, out, (long)out_at,
		(long)count, flags);
}

static int lock_file(int fd, int operation)
{
	struct fx_thread *me = fx_thread_away();

	if (me && !(operation & LOCK_NB)) {
		if (NEXT(flock)(fd, operation | LOCK_NB) == 0)
			return 0;
		fx_thread_home(me, FX_HOME_CALL);
	}
	return NEXT(flock)(fd, operation);
}

FX_NAME int flock(int fd, int operation)
{
	return FX_SEEN(lock_file(fd, operation), SYS_flock, fd, operation);
}

FX_NAME int dup2(int from, int to)
{
	FX_CLOSE(NEXT(dup2)(from, to), SYS_dup2, from, to);
}

FX_NAME int dup3(int from, int to, int flags)
{
	FX_CLOSE(NEXT(dup3)(from, to, flags), SYS_dup3, from, to, flags);
}

FX_NAME int close_range(unsigned first, unsigned last, int flags)
{
	struct fx_thread *me = fx_thread_self();

	if (me && flags & CLOSE_RANGE_UNSHARE) {
		me->worn = true;
		fx_thread_stay(me, FX_HOME_IDENTITY);
		return FX_SEEN(NEXT(close_range)(first, last, flags),
			       SYS_close_range, first, last, flags);
	}
	FX_CLOSE(NEXT(close_range)(first, last, flags), SYS_close_range, first,
		 last, flags);
}
