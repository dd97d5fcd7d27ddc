/* SPDX-License-Identifier: MIT */
/*
 * Names that wait for descriptors. With a signal mask they are made at home,
 * since only the kernel changes mask and waits in one step.
 */
#include "preload/checked.h"
#include "preload/result.h"
#include "threads/poll.h"
#include "threads/time.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

FX_NEXT(poll);
FX_NEXT(ppoll);
FX_NEXT(select);
FX_NEXT(pselect);
FX_NEXT(epoll_wait);
FX_NEXT(epoll_pwait);
FX_NEXT(epoll_pwait2);

static uint64_t ns_of_ms(int timeout_ms)
{
	return timeout_ms < 0 ? FX_NEVER : (uint64_t)timeout_ms * FX_NS_PER_MS;
}

static bool valid(const struct timespec *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 &&
			    timeout->tv_nsec < (long)FX_NS_PER_SEC);
}

/* On a carrier, and nothing in the way of waiting there. */
static struct fx_thread *waiter(const sigset_t *mask,
				const struct timespec *timeout)
{
	struct fx_thread *me;

	if (mask || !valid(timeout)) {
		me = fx_thread_away();
		if (me)
			fx_thread_home(me, FX_HOME_MASK);
		return NULL;
	}
	return fx_thread_lent();
}

static int poll_them(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	struct fx_thread *me = fx_thread_lent();
	int64_t ret = me ? fx_thread_poll(me, fds, nr, ns_of_ms(timeout_ms)) :
			   FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ? NEXT(poll)(fds, nr, timeout_ms) :
				    (int)fx_result(ret);
}

FX_NAME int poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	return FX_SEEN(poll_them(fds, nr, timeout_ms), SYS_poll, (long)fds,
		       (long)nr, timeout_ms);
}

FX_NAME int __poll_chk(struct pollfd *fds, nfds_t nr, int timeout_ms,
		       size_t size)
{
	if (size / sizeof(*fds) < nr)
		__chk_fail();
	return poll(fds, nr, timeout_ms);
}

static int ppoll_them(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		  const sigset_t *mask)
{
	struct fx_thread *me = waiter(mask, timeout);
	uint64_t ns = timeout ? fx_ns_of(timeout) : FX_NEVER;
	int64_t ret = me ? fx_thread_poll(me, fds, nr, ns) : FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ? NEXT(ppoll)(fds, nr, timeout, mask) :
				    (int)fx_result(ret);
}

FX_NAME int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout,
		  const sigset_t *mask)
{
	return FX_SEEN(ppoll_them(fds, nr, timeout, mask), SYS_ppoll, (long)fds,
		       (long)nr, (long)timeout, (long)mask, 8);
}

FX_NAME int __ppoll_chk(struct pollfd *fds, nfds_t nr,
			const struct timespec *timeout, const sigset_t *mask,
			size_t size)
{
	if (size / sizeof(*fds) < nr)
		__chk_fail();
	return ppoll(fds, nr, timeout, mask);
}

static int select_them(int nr, fd_set *in, fd_set *out, fd_set *except,
		   struct timeval *timeout)
{
	struct timespec ts = { 0, 0 };
	struct fx_thread *me;
	uint64_t ns = FX_NEVER, begin = 0, passed;
	int64_t ret = FX_IO_PLAIN;

	if (timeout) {
		if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
			return NEXT(select)(nr, in, out, except, timeout);
		ts.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
		ts.tv_nsec = timeout->tv_usec % 1000000 * 1000;
		ns = fx_ns_of(&ts);
	}
	me = waiter(NULL, &ts);
	if (me) {
		begin = timeout ? fx_now_ns() : 0;
		ret = fx_thread_select(me, nr, in, out, except, ns);
	}
	if (ret == FX_IO_PLAIN)
		return NEXT(select)(nr, in, out, except, timeout);
	if (timeout) {
		/* Linux says how much is left. */
		passed = fx_now_ns() - begin;
		ts = fx_timespec(ns > passed ? ns - passed : 0);
		timeout->tv_sec = ts.tv_sec;
		timeout->tv_usec = ts.tv_nsec / 1000;
	}
	return (int)fx_result(ret);
}

FX_NAME int select(int nr, fd_set *in, fd_set *out, fd_set *except,
		   struct timeval *timeout)
{
	return FX_SEEN(select_them(nr, in, out, except, timeout), SYS_select, nr,
		       (long)in, (long)out, (long)except, (long)timeout);
}

static int pselect_them(int nr, fd_set *in, fd_set *out, fd_set *except,
		    const struct timespec *timeout, const sigset_t *mask)
{
	struct fx_thread *me = waiter(mask, timeout);
	uint64_t ns = timeout ? fx_ns_of(timeout) : FX_NEVER;
	int64_t ret = me ? fx_thread_select(me, nr, in, out, except, ns) :
			   FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ?
		       NEXT(pselect)(nr, in, out, except, timeout, mask) :
		       (int)fx_result(ret);
}

FX_NAME int pselect(int nr, fd_set *in, fd_set *out, fd_set *except,
		    const struct timespec *timeout, const sigset_t *mask)
{
	return FX_SEEN(pselect_them(nr, in, out, except, timeout, mask),
		       SYS_pselect6, nr, (long)in, (long)out, (long)except,
		       (long)timeout, (long)mask);
}

/* Return: as the call, or FX_IO_PLAIN: at home. */
static int64_t wait_on(struct fx_thread *me, int fd, struct epoll_event *events,
		       int nr, uint64_t timeout_ns)
{
	const struct pollfd set = { .fd = fd, .events = POLLIN };
	struct fx_deadline deadline;
	int64_t ret;

	fx_thread_cancel_point(me);
	if (timeout_ns != FX_NEVER)
		fx_deadline_in(&deadline, timeout_ns);
	for (;;) {
		ret = fx_arch_syscall(SYS_epoll_wait, fd, (long)events, nr, 0,
				      0, 0);
		if (ret || !timeout_ns)
			return ret;
		ret = fx_thread_wait(me, &set,
				     timeout_ns == FX_NEVER ? NULL : &deadline);
		if (ret == FX_IO_PLAIN)
			break;
		if (ret <= 0)
			return ret;
	}
	fx_thread_home(me, FX_HOME_CALL);
	return FX_IO_PLAIN;
}

static int wait_plainly(int fd, struct epoll_event *events, int nr,
		       int timeout_ms)
{
	struct fx_thread *me = fx_thread_lent();
	int64_t ret = me ? wait_on(me, fd, events, nr, ns_of_ms(timeout_ms)) :
			   FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ?
		       NEXT(epoll_wait)(fd, events, nr, timeout_ms) :
		       (int)fx_result(ret);
}

FX_NAME int epoll_wait(int fd, struct epoll_event *events, int nr,
		       int timeout_ms)
{
	return FX_SEEN(wait_plainly(fd, events, nr, timeout_ms), SYS_epoll_wait,
		       fd, (long)events, nr, timeout_ms);
}

static int wait_masked(int fd, struct epoll_event *events, int nr,
			int timeout_ms, const sigset_t *mask)
{
	struct fx_thread *me = waiter(mask, NULL);
	int64_t ret = me ? wait_on(me, fd, events, nr, ns_of_ms(timeout_ms)) :
			   FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ?
		       NEXT(epoll_pwait)(fd, events, nr, timeout_ms, mask) :
		       (int)fx_result(ret);
}

FX_NAME int epoll_pwait(int fd, struct epoll_event *events, int nr,
			int timeout_ms, const sigset_t *mask)
{
	return FX_SEEN(wait_masked(fd, events, nr, timeout_ms, mask),
		       SYS_epoll_pwait, fd, (long)events, nr, timeout_ms,
		       (long)mask, 8);
}

static int wait_exactly(int fd, struct epoll_event *events, int nr,
			 const struct timespec *timeout, const sigset_t *mask)
{
	struct fx_thread *me = waiter(mask, timeout);
	uint64_t ns = timeout ? fx_ns_of(timeout) : FX_NEVER;
	int64_t ret = me ? wait_on(me, fd, events, nr, ns) : FX_IO_PLAIN;

	return ret == FX_IO_PLAIN ?
		       NEXT(epoll_pwait2)(fd, events, nr, timeout, mask) :
		       (int)fx_result(ret);
}

FX_NAME int epoll_pwait2(int fd, struct epoll_event *events, int nr,
			 const struct timespec *timeout, const sigset_t *mask)
{
	return FX_SEEN(wait_exactly(fd, events, nr, timeout, mask),
		       SYS_epoll_pwait2, fd, (long)events, nr, (long)timeout,
		       (long)mask, 8);
}
