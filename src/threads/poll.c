/* SPDX-License-Identifier: MIT */
/*
 * Waiting for several descriptors: the call itself, without waiting; if that
 * does not do, at home.
 */
#include "threads/poll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

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

static int64_t wait_ready(struct fx_thread *me, const struct ready *ready,
			  uint64_t timeout_ns)
{
	int64_t ret;

	fx_thread_cancel_point(me);
	ret = ready->ask(ready->arg);
	if (ret || !timeout_ns)
		return ret;
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

int64_t fx_thread_poll(struct fx_thread *me, struct pollfd *fds, nfds_t nr,
		       uint64_t timeout_ns)
{
	struct polling polling = { fds, nr };
	struct ready ready = { ask_poll, &polling, fds, nr };

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
