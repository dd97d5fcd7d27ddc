/* SPDX-License-Identifier: MIT */
/*
 * Non-blocking forms of the descriptor calls: MSG_DONTWAIT for sockets,
 * RWF_NOWAIT for the rest, "poll, then call" where there is neither. It keeps
 * no state and parks nothing; see engine/park.c for that.
 */
#include "engine/attempt.h"

#include "arch/arch.h"
#include "engine/desc.h"
#include "engine/guard.h"
#include "engine/iovec.h"
#include "engine/rest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

/* Less known free send space than this is looked up again. */
#define SENDFILE_MIN_CREDIT 4096

static long sys(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	return fx_arch_syscall(nr, a0, a1, a2, a3, a4, a5);
}

static bool ready_now(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return sys(SYS_poll, (long)&p, 1, 0, 0, 0, 0) != 0;
}

/* Hardly ever blocks; if it does after all, a thread makes the call. */
static enum fx_try try_guarded(struct flexsc_entry *call, struct fx_hint *hint)
{
	int64_t ret;

	if (!hint->guard)
		return FX_TRY_THREAD;
	ret = fx_call_guarded(call, hint->guard);
	if (ret == FX_GUARD_BLOCKED)
		return FX_TRY_THREAD;
	call->ret = ret;
	return FX_TRY_DONE;
}

/*
 * Poll, then call: for what has no non-blocking form. Ready does not mean that
 * it cannot block: somebody else may be faster, and a terminal or an eventfd
 * with some room takes any number for writing. So it is guarded, or left to
 * a thread.
 */
static enum fx_try try_when_ready(struct flexsc_entry *call,
				  struct fx_hint *hint, short events)
{
	/* A report of readiness may be old by now, and the call would block. */
	if (!ready_now((int)call->args[0], events))
		return FX_TRY_PARK;
	/* What was written so far counts; the thread goes on behind it. */
	return try_guarded(call, hint) == FX_TRY_THREAD ||
			       (call->ret > 0 && events == POLLOUT &&
				hint->guard->cut) ?
		       FX_TRY_THREAD :
		       FX_TRY_DONE;
}

/*
 * A regular file is told from a stream by looking, once a descriptor. With
 * O_DIRECT even RWF_NOWAIT waits for the device.
 */
static void classify(int fd, struct fx_hint *hint)
{
	bool asked = hint->kind == FX_KIND_FILE;
	struct stat st;

	if (!asked && hint->kind != FX_KIND_UNKNOWN)
		return;
	if (sys(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) ||
	    !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
	      S_ISBLK(st.st_mode)))
		hint->kind = FX_KIND_STREAM;
	else if (!asked && (sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_DIRECT))
		hint->kind = FX_KIND_DIRECT;
	else
		hint->kind = FX_KIND_REGULAR;
}

/*
 * Does a short read mean that nothing is left? Of TCP it does. Elsewhere it may
 * be one message of many, even in a pipe (O_DIRECT at its other end), and on a
 * Unix socket it ends where descriptors were passed. Asked once a descriptor;
 * accepted ones are as their listener.
 */
static void learn_drains(int fd, struct fx_hint *hint)
{
	int type = 0, protocol = 0;
	uint32_t size = sizeof(int);

	sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, (long)&protocol,
	    (long)&size, 0);
	if (protocol == IPPROTO_TCP)
		sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type,
		    (long)&size, 0);
	hint->drains = type == SOCK_STREAM ? FX_DRAINS_YES : FX_DRAINS_NO;
}

/* Was what a receive with these flags got the last? */
static bool drained(int fd, struct fx_hint *hint, int flags)
{
	if (hint->drains == FX_DRAINS_UNKNOWN)
		learn_drains(fd, hint);
	return hint->drains == FX_DRAINS_YES &&
	       !(flags & (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE));
}

/*
 * accept has no non-blocking form. What is not listening fails at once; a
 * connection that somebody else took first would block: it is guarded.
 */
static enum fx_try try_accept(struct flexsc_entry *call, struct fx_hint *hint)
{
	int fd = (int)call->args[0], listening = 0;
	uint32_t size = sizeof(listening);

	if (hint->kind != FX_KIND_SOCKET) {
		if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN,
			(long)&listening, (long)&size, 0) ||
		    !listening) {
			call->ret = fx_call_raw(call);
			return FX_TRY_DONE;
		}
		hint->kind = FX_KIND_SOCKET;
	}
	if (hint->drains == FX_DRAINS_UNKNOWN)
		learn_drains(fd, hint);
	if (!hint->ready && !ready_now(fd, POLLIN))
		return FX_TRY_PARK;
	if (hint->thread && !hint->patient)
		return FX_TRY_THREAD;
	hint->ready = false;
	call->ret = hint->guard ? fx_guard_call(hint->guard, call) :
				  fx_call_raw(call);
	if (call->ret != FX_GUARD_BLOCKED)
		return FX_TRY_DONE;
	call->ret = 0;
	return FX_TRY_PARK;
}

/* Progress @done, one more result @r: what has the whole call come to? */
static int64_t sum(int64_t done, int64_t r)
{
	return r >= 0 ? done + r : done ? done : r;
}

/*
 * A regular file that refuses RWF_NOWAIT. What is in memory, and what a
 * container's files usually lie on, does not wait for long; of others (over a
 * network, of a program that may be this one) a read may last as it likes.
 */
static enum fx_try read_regular(int fd)
{
	struct statfs st;

	if (sys(SYS_fstatfs, fd, (long)&st, 0, 0, 0, 0))
		return FX_TRY_THREAD;
	return st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC ||
			       st.f_type == OVERLAYFS_SUPER_MAGIC ?
		       FX_TRY_DISK :
		       FX_TRY_THREAD;
}

/*
 * Reads that are not from a socket. @offset -1: the file position. A short
 * count from a stream is the result; from a regular file it may only mean
 * that the rest is not cached.
 */
static enum fx_try try_read_file(struct flexsc_entry *call,
				 struct fx_hint *hint, struct fx_iovec *v,
				 int64_t offset, long rwf)
{
	int fd = (int)call->args[0];

	if (hint->kind == FX_KIND_UNKNOWN)
		classify(fd, hint);
	if (hint->kind == FX_KIND_DIRECT)
		return FX_TRY_THREAD;
	for (;;) {
		size_t n;
		const struct iovec *iov =
			fx_iovec_from(v, (size_t)call->ret, &n);
		int64_t at = offset < 0 ? -1 : offset + call->ret;
		long r = sys(SYS_preadv2, fd, (long)iov, (long)n, at, 0,
			     rwf | RWF_NOWAIT);

		if (r == -EAGAIN) {
			classify(fd, hint);
			return hint->kind == FX_KIND_REGULAR ? FX_TRY_THREAD :
							       FX_TRY_PARK;
		}
		if (r == -EOPNOTSUPP && rwf == 0 && call->ret == 0) {
			classify(fd, hint);
			return hint->kind == FX_KIND_REGULAR ?
				       read_regular(fd) :
				       try_when_ready(call, hint, POLLIN);
		}
		call->ret = sum(call->ret, r);
		if (r <= 0 || (size_t)call->ret == fx_iovec_total(v))
			return FX_TRY_DONE;
		classify(fd, hint);
		if (hint->kind != FX_KIND_REGULAR)
			return FX_TRY_DONE;
	}
}

/* One recvmsg or sendmsg of what is left, in its cheapest form. */
static long transfer(struct flexsc_entry *call, struct fx_iovec *v,
		     struct msghdr *msg, int flags, bool out)
{
	int fd = (int)call->args[0];
	struct msghdr rest = { 0 };
	const struct iovec *iov;
	size_t n;

	flags |= MSG_DONTWAIT | (out ? MSG_NOSIGNAL : 0);
	if (msg && call->ret == 0)
		return sys(out ? SYS_sendmsg : SYS_recvmsg, fd, (long)msg,
			   flags, 0, 0, 0);
	iov = fx_iovec_from(v, (size_t)call->ret, &n);
	if (n == 1 && (iov == &v->single || iov == v->window))
		return sys(out ? SYS_sendto : SYS_recvfrom, fd,
			   (long)iov->iov_base, (long)iov->iov_len, flags, 0,
			   0);
	/* Address and control data went with the first part. */
	rest.msg_iov = (struct iovec *)iov;
	rest.msg_iovlen = n;
	return sys(out ? SYS_sendmsg : SYS_recvmsg, fd, (long)&rest, flags, 0,
		   0, 0);
}

/*
 * Receive or send. @msg: the caller's, or NULL. Sending takes everything, as
 * a blocking socket does; receiving goes on only for MSG_WAITALL.
 * Return: true if it is not a socket; then nothing was done.
 */
static bool try_socket(struct flexsc_entry *call, struct fx_hint *hint,
		       struct fx_iovec *v, struct msghdr *msg, int flags,
		       bool out, enum fx_try *verdict)
{
	bool wait = !(flags & MSG_DONTWAIT);
	bool all = wait &&
		   (out || (flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL);

	for (;;) {
		long r = transfer(call, v, msg, flags, out);
		size_t total;

		if (r == -ENOTSOCK && hint->kind <= FX_KIND_SOCKET)
			return true;
		*verdict = FX_TRY_DONE;
		if (r >= 0 || r == -EAGAIN)
			hint->kind = FX_KIND_SOCKET;
		if (r == -EAGAIN && wait) {
			*verdict = FX_TRY_PARK;
			return false;
		}
		call->ret = sum(call->ret, r);
		if (r < 0)
			return false;
		if (msg && call->ret == r) /* accepted, so it can be read */
			fx_iovec_from_list(v, msg->msg_iov, msg->msg_iovlen);
		total = fx_iovec_total(v);
		if (out)
			hint->credit -= hint->credit < (uint64_t)r ?
						hint->credit :
						(uint32_t)r;
		if (r == 0 || (size_t)call->ret >= total)
			return false;
		if (!out)
			hint->drained =
				drained((int)call->args[0], hint, flags);
		if (!all)
			return false;
	}
}

/*
 * read and readv return at once when there is no room, where recv would wait;
 * but not from an inotify descriptor.
 */
static bool no_room(const struct fx_iovec *v)
{
	return v->list == &v->single ? v->single.iov_len == 0 : v->count == 0;
}

static enum fx_try try_plain(struct flexsc_entry *call)
{
	call->ret = fx_call_plain(call);
	return FX_TRY_DONE;
}

static enum fx_try try_read(struct flexsc_entry *call, struct fx_hint *hint,
			    struct fx_iovec *v, int64_t offset, long rwf)
{
	enum fx_try verdict;

	if (offset >= 0 && hint->kind == FX_KIND_SOCKET)
		return try_plain(call); /* ESPIPE */
	if (no_room(v))
		return try_guarded(call, hint);
	if (offset < 0 && rwf == 0 && hint->kind <= FX_KIND_SOCKET) {
		if (!try_socket(call, hint, v, NULL, 0, false, &verdict)) {
			/* Accepted, so it can be read: all lengths zero? */
			if (verdict == FX_TRY_PARK && v->list != &v->single &&
			    fx_iovec_total(v) == 0)
				return try_plain(call);
			return verdict;
		}
		if (hint->kind == FX_KIND_SOCKET)
			hint->kind = FX_KIND_UNKNOWN;
		hint->drains = FX_DRAINS_UNKNOWN;
	}
	return try_read_file(call, hint, v, offset, rwf);
}

/* The first of these buffers, as many as one page of a pipe has room for. */
static const struct iovec *pipe_part(const struct iovec *iov, size_t *nr,
				     struct iovec *single)
{
	size_t n = 0, size = 0;

	if (iov->iov_len > PIPE_BUF) {
		single->iov_base = iov->iov_base;
		single->iov_len = PIPE_BUF;
		*nr = 1;
		return single;
	}
	while (n < *nr && iov[n].iov_len <= PIPE_BUF - size)
		size += iov[n++].iov_len;
	*nr = n;
	return iov;
}

/*
 * A pipe that is ready has room for a page, so a write of no more does not
 * wait unless somebody else was faster. What must be in one piece is no more.
 * Only once the kernel has accepted the list of buffers.
 */
static enum fx_try try_pipe(struct flexsc_entry *call, struct fx_hint *hint,
			    struct fx_iovec *v)
{
	for (;;) {
		struct flexsc_entry part = { .nr = SYS_writev, .nr_args = 3 };
		struct iovec single;
		size_t n;
		int64_t r;

		const struct iovec *iov =
			fx_iovec_from(v, (size_t)call->ret, &n);

		if (!ready_now((int)call->args[0], POLLOUT))
			return FX_TRY_PARK;
		part.args[0] = call->args[0];
		part.args[1] = (uint64_t)(uintptr_t)pipe_part(iov, &n, &single);
		part.args[2] = n;
		r = fx_call_guarded(&part, hint->guard);
		if (r == FX_GUARD_BLOCKED)
			return FX_TRY_THREAD;
		call->ret = sum(call->ret, r);
		if (r <= 0 || (size_t)call->ret == fx_iovec_total(v))
			return FX_TRY_DONE;
	}
}

static bool is_pipe(int fd)
{
	struct stat st;

	return !sys(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) &&
	       S_ISFIFO(st.st_mode);
}

static enum fx_try try_write_file(struct flexsc_entry *call,
				  struct fx_hint *hint, struct fx_iovec *v)
{
	int fd = (int)call->args[0];

	/* Its list may be bad, and only the kernel can tell. */
	if (hint->kind == FX_KIND_PIPE &&
	    (v->list == &v->single || call->ret > 0))
		return try_pipe(call, hint, v);
	classify(fd, hint);
	if (hint->kind == FX_KIND_REGULAR)
		return FX_TRY_DISK;
	if (hint->kind == FX_KIND_DIRECT)
		return FX_TRY_THREAD;
	for (;;) {
		struct flexsc_entry part = { .nr = SYS_pwritev2 };
		size_t n;
		int64_t r;

		part.args[0] = (uint64_t)fd;
		part.args[1] = (uint64_t)(uintptr_t)fx_iovec_from(
			v, (size_t)call->ret, &n);
		part.args[2] = n;
		part.args[3] = UINT64_MAX;
		part.args[5] = RWF_NOWAIT;
		r = fx_call_quiet(&part);
		if (r == -EAGAIN)
			return FX_TRY_PARK;
		if (r == -EOPNOTSUPP && is_pipe(fd)) {
			hint->kind = FX_KIND_PIPE;
			return try_pipe(call, hint, v);
		}
		if (r == -EOPNOTSUPP)
			return call->ret ? FX_TRY_THREAD :
					   try_when_ready(call, hint, POLLOUT);
		call->ret = sum(call->ret, r);
		if (r <= 0 || (size_t)call->ret == fx_iovec_total(v))
			return FX_TRY_DONE;
	}
}

static enum fx_try try_write(struct flexsc_entry *call, struct fx_hint *hint,
			     struct fx_iovec *v)
{
	enum fx_try verdict;

	if (no_room(v))
		return try_guarded(call, hint);
	if (hint->kind <= FX_KIND_SOCKET) {
		if (!try_socket(call, hint, v, NULL, 0, true, &verdict))
			return verdict;
		hint->kind = FX_KIND_UNKNOWN;
		hint->drains = FX_DRAINS_UNKNOWN;
	}
	return try_write_file(call, hint, v);
}

/* At an offset: a file, or an error at once. */
static enum fx_try try_pwrite(struct flexsc_entry *call, struct fx_hint *hint)
{
	int fd = (int)call->args[0];
	bool anywhere = call->nr == SYS_pwritev2 &&
			(int64_t)call->args[3] == -1; /* the file position */

	classify(fd, hint);
	if (hint->kind == FX_KIND_DIRECT)
		return FX_TRY_THREAD;
	if (hint->kind == FX_KIND_REGULAR)
		return FX_TRY_DISK;
	return anywhere ? FX_TRY_THREAD : try_guarded(call, hint);
}

static enum fx_try try_message(struct flexsc_entry *call, struct fx_hint *hint,
			       bool out)
{
	struct msghdr *msg = (struct msghdr *)(uintptr_t)call->args[1];
	enum fx_try verdict = FX_TRY_DONE;
	struct fx_iovec v;

	if (call->ret > 0)
		fx_iovec_from_list(&v, msg->msg_iov, msg->msg_iovlen);
	if (try_socket(call, hint, &v, msg, (int)call->args[2], out, &verdict))
		call->ret = -ENOTSOCK;
	return verdict;
}

/* recvfrom and sendto with an address: one datagram, nothing to continue. */
static enum fx_try try_addressed(struct flexsc_entry *call, bool out)
{
	struct flexsc_entry now = fx_call_copy(call);

	now.args[3] |= MSG_DONTWAIT | (out ? MSG_NOSIGNAL : 0);
	call->ret = fx_call_raw(&now);
	if (call->ret == -EAGAIN && !(call->args[3] & MSG_DONTWAIT)) {
		call->ret = 0;
		return FX_TRY_PARK;
	}
	return FX_TRY_DONE;
}

static enum fx_try try_buffer(struct flexsc_entry *call, struct fx_hint *hint,
			      bool out)
{
	enum fx_try verdict = FX_TRY_DONE;
	struct fx_iovec v;

	if (call->args[4] || call->args[2] == 0)
		return try_addressed(call, out);
	fx_iovec_from_buffer(&v, call->args[1], call->args[2]);
	if (try_socket(call, hint, &v, NULL, (int)call->args[3], out, &verdict))
		call->ret = -ENOTSOCK;
	return verdict;
}

/* recvmmsg and sendmmsg: blocking ones go on until all messages are done. */
static enum fx_try try_many(struct flexsc_entry *call, bool out)
{
	int flags = (int)call->args[3];

	if (!out && call->args[4])
		return FX_TRY_THREAD; /* a time-out of its own */
	for (;;) {
		struct flexsc_entry now = fx_call_copy(call);
		int64_t r;

		now.args[1] += (uint64_t)call->ret * sizeof(struct mmsghdr);
		now.args[2] -= (uint64_t)call->ret;
		now.args[3] |= MSG_DONTWAIT | (out ? MSG_NOSIGNAL : 0);
		r = fx_call_raw(&now);
		if (r == -EAGAIN && !(flags & MSG_DONTWAIT) &&
		    !(call->ret && (flags & MSG_WAITFORONE)))
			return FX_TRY_PARK;
		call->ret = sum(call->ret, r);
		if (r <= 0 || (flags & (MSG_DONTWAIT | MSG_WAITFORONE)) ||
		    (uint64_t)call->ret >= (uint32_t)call->args[2])
			return FX_TRY_DONE;
	}
}

/* Free send space of a socket: what sendfile can take without waiting. */
static uint32_t send_space(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	uint32_t size = sizeof(info), used, free_bytes;

	if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_MEMINFO, (long)info,
		(long)&size, 0))
		return 0;
	used = info[SK_MEMINFO_WMEM_QUEUED] > info[SK_MEMINFO_WMEM_ALLOC] ?
		       info[SK_MEMINFO_WMEM_QUEUED] :
		       info[SK_MEMINFO_WMEM_ALLOC];
	if (used >= info[SK_MEMINFO_SNDBUF])
		return 0;
	/* A quarter is left for the buffers' own book-keeping. */
	free_bytes = info[SK_MEMINFO_SNDBUF] - used;
	return free_bytes - free_bytes / 4;
}

bool fx_sendfile_whole;

/* O_NONBLOCK keeps it from waiting: the kernel knows best what there is room for. */
static bool knows_best(int fd, const struct fx_hint *hint)
{
	long flags;

	if (hint->blocking)
		return false;
	flags = sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
	return flags >= 0 && (flags & O_NONBLOCK);
}

/* Begun here, it would have to go on here. */
static bool too_much(const struct flexsc_entry *call, struct fx_hint *hint)
{
	if (!fx_sendfile_whole || call->args[3] <= hint->credit)
		return false;
	hint->credit = send_space((int)call->args[0]);
	return call->args[3] > hint->credit &&
	       !knows_best((int)call->args[0], hint);
}

/*
 * sendfile has no non-blocking flag, so it never asks for more than the free
 * send space, which is looked up only when the known credit is used up.
 */
static enum fx_try try_sendfile(struct flexsc_entry *call, struct fx_hint *hint)
{
	int fd = (int)call->args[0];
	uint64_t total = call->args[3];

	if (hint->kind != FX_KIND_SOCKET) {
		int type;
		uint32_t size = sizeof(type);

		if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type,
			(long)&size, 0))
			return FX_TRY_THREAD;
		hint->kind = FX_KIND_SOCKET;
	}
	if (too_much(call, hint))
		return FX_TRY_PARK;
	for (;;) {
		struct flexsc_entry now = fx_call_copy(call);
		uint64_t left = total - (uint64_t)call->ret;
		bool whole = false;
		int64_t r;

		if (left > hint->credit && hint->credit < SENDFILE_MIN_CREDIT)
			hint->credit = send_space(fd);
		if (left > hint->credit) {
			whole = knows_best(fd, hint);
			if (!whole && hint->credit < SENDFILE_MIN_CREDIT)
				return FX_TRY_PARK;
		}
		now.args[3] = whole || left < hint->credit ? left :
							     hint->credit;
		r = fx_call_quiet(&now);
		if (r == -EAGAIN)
			return FX_TRY_PARK;
		if (r > 0)
			hint->credit -= (uint64_t)r < hint->credit ?
						(uint32_t)r :
						hint->credit;
		call->ret = sum(call->ret, r);
		if (r <= 0 || (uint64_t)call->ret >= total ||
		    ((uint64_t)r < now.args[3] && !(whole && hint->patient)))
			return FX_TRY_DONE;
	}
}

/*
 * connect can be made not to wait only by a flag of the description; it is
 * used for sockets that a posted socket(2) made, for the length of the call.
 */
static enum fx_try try_connect(struct flexsc_entry *call, struct fx_hint *hint)
{
	int fd = (int)call->args[0], on = 1, off = 0;

	if (!hint->ours)
		return FX_TRY_THREAD;
	if (call->ret == 1 && !ready_now(fd, POLLOUT))
		return FX_TRY_PARK;
	/* Asked again once it is over, it tells how, as the plain call does. */
	sys(SYS_ioctl, fd, FIONBIO, (long)&on, 0, 0, 0);
	call->ret = fx_call_raw(call);
	sys(SYS_ioctl, fd, FIONBIO, (long)&off, 0, 0, 0);
	if (call->ret == -EAGAIN) { /* AF_UNIX, backlog full: cannot wait */
		call->ret = 0;
		return FX_TRY_THREAD;
	}
	if (call->ret != -EINPROGRESS && call->ret != -EALREADY)
		return FX_TRY_DONE;
	call->ret = 1; /* in progress */
	return FX_TRY_PARK;
}

static enum fx_try try_data(struct flexsc_entry *call, struct fx_hint *hint)
{
	int64_t offset = (int64_t)call->args[3];
	struct fx_iovec v;

	if (call->nr == SYS_read || call->nr == SYS_write ||
	    call->nr == SYS_pread64)
		fx_iovec_from_buffer(&v, call->args[1], call->args[2]);
	else if (call->args[2] > IOV_MAX)
		return try_plain(call); /* EINVAL, where recvmsg says else */
	else
		fx_iovec_from_list(&v, (void *)(uintptr_t)call->args[1],
				   call->args[2]);
	switch (call->nr) {
	case SYS_write:
	case SYS_writev:
		return try_write(call, hint, &v);
	case SYS_preadv2:
		if (call->args[5] & RWF_NOWAIT)
			return try_plain(call);
		return try_read(call, hint, &v, offset, (long)call->args[5]);
	case SYS_pread64:
	case SYS_preadv:
		if (offset < 0)
			return try_plain(call); /* EINVAL */
		return try_read(call, hint, &v, offset, 0);
	default:
		return try_read(call, hint, &v, -1, 0);
	}
}

/* FX_READY_IN, FX_READY_OUT. */
static enum fx_try try_ready(struct flexsc_entry *call,
			     const struct fx_hint *hint)
{
	struct pollfd p = { .fd = (int)call->args[0],
			    .events = (short)call->args[1] };
	long r;

	/* Data that nobody has tried to take since; or a hint is enough. */
	if (hint->ready && !hint->more &&
	    ((hint->kind == FX_KIND_SOCKET && call->nr == FX_READY_IN) ||
	     call->args[1] & FX_READY_NEXT)) {
		call->ret = p.events &
			    (POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);
		if (call->ret)
			return FX_TRY_DONE;
	}
	r = sys(SYS_poll, (long)&p, 1, 0, 0, 0, 0);
	call->ret = r > 0 ? p.revents : r;
	return r ? FX_TRY_DONE : FX_TRY_PARK;
}

enum fx_try fx_attempt(struct flexsc_entry *call, struct fx_hint *hint)
{
	switch (call->nr) {
	case FX_READY_IN:
	case FX_READY_OUT:
		return try_ready(call, hint);
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_write:
	case SYS_writev:
		return try_data(call, hint);
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
		return try_pwrite(call, hint);
	case SYS_recvfrom:
	case SYS_sendto:
		return try_buffer(call, hint, call->nr == SYS_sendto);
	case SYS_recvmsg:
	case SYS_sendmsg:
		return try_message(call, hint, call->nr == SYS_sendmsg);
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		return try_many(call, call->nr == SYS_sendmmsg);
	case SYS_accept:
	case SYS_accept4:
		return try_accept(call, hint);
	case SYS_sendfile:
		return try_sendfile(call, hint);
	case SYS_connect:
		return try_connect(call, hint);
	default:
		return FX_TRY_THREAD;
	}
}
