/* SPDX-License-Identifier: MIT */
/*
 * Waiting for descriptors: for one, parked on it; for several, the call itself
 * without waiting, and if that does not do, at home.
 */
#include "threads/poll.h"

#include "call/owner.h"
#include "threads/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define NEAR 4096u /* less than any thread's stack */

static long sys(long nr, long a0, long a1, long a2, long a3, long a4)
{
	return fx_arch_syscall(nr, a0, a1, a2, a3, a4, 0);
}

struct ready {
	int64_t (*ask)(void *arg); /* the call without waiting */
	void *arg;
	const struct pollfd *fds;
	nfds_t nr;
};

/* What one queue of a descriptor's waiters can wait for; 0: neither. */
static unsigned kind_of(const struct pollfd *fd)
{
	const short in = POLLIN | POLLRDNORM | POLLPRI | POLLRDHUP;
	const short out = POLLOUT | POLLWRNORM;

	if (fd->fd < 0)
		return 0;
	if (fd->events & POLLIN && !(fd->events & ~in))
		return FX_READY_IN;
	if (fd->events & POLLOUT && !(fd->events & ~out))
		return FX_READY_OUT;
	return 0;
}

int64_t fx_thread_wait(struct fx_thread *me, const struct pollfd *fd,
		       const struct fx_deadline *deadline)
{
	unsigned nr = kind_of(fd);
	int64_t ret;

	if (!nr)
		return FX_IO_PLAIN;
	ret = fx_io(me, nr, 0, deadline, (const long[6]){ fd->fd, fd->events });
	if (ret > 0 || ret == -EINTR)
		return ret;
	return ret == -ETIMEDOUT ? 0 : FX_IO_PLAIN;
}

static const struct fx_deadline *deadline_in(struct fx_deadline *deadline,
					     uint64_t timeout_ns)
{
	if (timeout_ns == FX_NEVER)
		return NULL;
	fx_deadline_in(deadline, timeout_ns);
	return deadline;
}

static int64_t wait_ready(struct fx_thread *me, const struct ready *ready,
			  uint64_t timeout_ns)
{
	const struct fx_deadline *limit;
	struct fx_deadline deadline;
	int64_t ret;

	fx_thread_cancel_point(me);
	ret = ready->ask(ready->arg);
	if (ret || !timeout_ns)
		return ret;
	if (ready->nr == 1) {
		limit = deadline_in(&deadline, timeout_ns);
		do
			ret = fx_thread_wait(me, ready->fds, limit);
		while (ret > 0 && (ret = ready->ask(ready->arg)) == 0);
		if (ret != FX_IO_PLAIN)
			return ret;
	}
	/* Its own kernel thread can wait; there are no too many of them. */
	fx_thread_home(me, FX_HOME_CALL);
	return FX_IO_PLAIN;
}

struct polling {
	struct pollfd *fds;
	nfds_t nr;
};

static int64_t ask_poll(void *arg)
{
	struct polling *p = arg;

	return sys(SYS_poll, (long)p->fds, (long)p->nr, 0, 0, 0);
}

/*
 * Surely readable: just above us on the stack. Of anything else the kernel
 * says first whether it is.
 */
static bool on_stack(const void *address)
{
	return (uintptr_t)address - (uintptr_t)__builtin_frame_address(0) <
	       NEAR;
}

int64_t fx_thread_poll(struct fx_thread *me, struct pollfd *fds, nfds_t nr,
		       uint64_t timeout_ns)
{
	struct polling polling = { fds, nr };
	struct ready ready = { ask_poll, &polling, fds, nr };
	struct fx_deadline deadline;
	int64_t ret;

	/* The usual one: what it is ready for is known without asking. */
	if (nr == 1 && timeout_ns && on_stack(fds)) {
		ret = fx_thread_wait(me, fds,
				     deadline_in(&deadline, timeout_ns));
		if (ret >= 0) {
			fds->revents = (short)ret;
			return ret > 0;
		}
		if (ret != FX_IO_PLAIN)
			return ret;
	}
	return wait_ready(me, &ready, timeout_ns);
}

struct selecting {
	int nr;
	fd_set *set[3]; /* of the caller */
	void *asked; /* three sets as they were */
	size_t size; /* of each */
};

static int64_t ask_select(void *arg)
{
	struct selecting *s = arg;
	struct timespec now = { 0, 0 };
	int64_t ret;

	for (unsigned i = 0; i < 3; i++)
		if (s->set[i])
			memcpy(s->set[i], (char *)s->asked + i * s->size,
			       s->size);
	ret = fx_arch_syscall(SYS_pselect6, s->nr, (long)s->set[0],
			      (long)s->set[1], (long)s->set[2], (long)&now, 0);
	return ret;
}

static bool is_in(const struct selecting *s, unsigned set, int fd)
{
	const unsigned char *bits = (unsigned char *)s->asked + set * s->size;

	return s->set[set] && bits[fd / 8] >> (fd % 8) & 1;
}

static nfds_t list_of(const struct selecting *s, struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < s->nr; fd++) {
		short events = 0;

		if (is_in(s, 0, fd))
			events |= POLLIN;
		if (is_in(s, 1, fd))
			events |= POLLOUT;
		if (is_in(s, 2, fd))
			events |= POLLPRI;
		if (events)
			fds[n++] =
				(struct pollfd){ .fd = fd, .events = events };
	}
	return n;
}

int64_t fx_thread_select(struct fx_thread *me, int nr, fd_set *in, fd_set *out,
			 fd_set *except, uint64_t timeout_ns)
{
	struct selecting s = { .nr = nr, .set = { in, out, except } };
	struct ready ready = { .ask = ask_select, .arg = &s };
	char *memory;
	int64_t ret;

	if (nr < 0)
		return -EINVAL;
	s.size = ((size_t)nr + 63) / 64 * 8;
	memory = malloc(3 * s.size + (size_t)nr * sizeof(struct pollfd) + 1);
	if (!memory)
		return -ENOMEM;
	s.asked = memory;
	for (unsigned i = 0; i < 3; i++)
		if (s.set[i])
			memcpy(memory + i * s.size, s.set[i], s.size);
	ready.fds = (struct pollfd *)(memory + 3 * s.size);
	ready.nr = list_of(&s, (struct pollfd *)ready.fds);
	pthread_cleanup_push(free, memory);
	ret = wait_ready(me, &ready, timeout_ns);
	/* What the plain call begins with, or what an error leaves. */
	for (unsigned i = 0; i < 3 && ret < 0; i++)
		if (s.set[i])
			memcpy(s.set[i], memory + i * s.size, s.size);
	pthread_cleanup_pop(1);
	return ret;
}
