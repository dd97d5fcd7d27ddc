/* SPDX-License-Identifier: MIT */
/*
 * Waiting for several descriptors: the call itself, without waiting; then an
 * epoll set of them all, made for this wait, is waited for as one descriptor,
 * and the call is made again.
 */
#include "threads/poll.h"

#include "threads/time.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

static long sys(long nr, long a0, long a1, long a2, long a3, long a4)
{
	return fx_arch_syscall(nr, a0, a1, a2, a3, a4, 0);
}

static uint32_t epoll_bits(short events)
{
	return (uint32_t)events &
	       (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDNORM | EPOLLRDBAND |
		EPOLLWRNORM | EPOLLWRBAND | EPOLLMSG | EPOLLRDHUP);
}

/* A descriptor that is there twice wants what both want. */
static uint32_t wanted(const struct pollfd *fds, nfds_t nr, int fd)
{
	uint32_t bits = 0;

	for (nfds_t i = 0; i < nr; i++)
		if (fds[i].fd == fd)
			bits |= epoll_bits(fds[i].events);
	return bits;
}

/* Return: the set, or -errno. */
static long make_set(const struct pollfd *fds, nfds_t nr)
{
	long set = sys(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0, 0), bad;

	for (nfds_t i = 0; i < nr && set >= 0; i++) {
		struct epoll_event event = { epoll_bits(fds[i].events), { 0 } };

		if (fds[i].fd < 0)
			continue;
		bad = sys(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fds[i].fd,
			  (long)&event, 0);
		if (bad == -EEXIST) {
			event.events = wanted(fds, nr, fds[i].fd);
			bad = sys(SYS_epoll_ctl, set, EPOLL_CTL_MOD, fds[i].fd,
				  (long)&event, 0);
		}
		/* EPERM: always ready; the caller asks again, and sees it. */
		if (bad && bad != -EPERM) {
			sys(SYS_close, set, 0, 0, 0, 0);
			return bad;
		}
	}
	return set;
}

struct ready {
	int64_t (*ask)(void *arg); /* the call without waiting */
	void *arg;
	const struct pollfd *fds;
	nfds_t nr;
};

struct closing {
	long set;
};

static void close_set(void *arg)
{
	sys(SYS_close, ((struct closing *)arg)->set, 0, 0, 0, 0);
}

static int64_t wait_for(struct fx_thread *me, const struct ready *ready,
			const struct fx_deadline *deadline)
{
	struct closing closing = { make_set(ready->fds, ready->nr) };
	struct epoll_event event;
	int64_t ret;

	if (closing.set < 0) {
		/* No descriptor left for it: its own kernel thread can wait. */
		fx_thread_home(me, FX_HOME_CALL);
		return FX_IO_PLAIN;
	}
	pthread_cleanup_push(close_set, &closing);
	do {
		ret = fx_io(me, SYS_epoll_wait, 0, deadline,
			    (const long[6]){ closing.set, (long)&event, 1,
					     -1 });
		if (ret == -ETIMEDOUT)
			ret = 0;
		if (ret < 0)
			break;
		ret = ret ? ready->ask(ready->arg) : 0;
	} while (!ret && (!deadline || fx_now_ns() < deadline->at_ns));
	pthread_cleanup_pop(1);
	return ret;
}

static int64_t wait_ready(struct fx_thread *me, const struct ready *ready,
			  uint64_t timeout_ns)
{
	struct fx_deadline deadline;
	int64_t ret;

	fx_thread_cancel_point(me);
	ret = ready->ask(ready->arg);
	if (ret || !timeout_ns)
		return ret;
	if (!fx_thread_lent())
		return FX_IO_PLAIN;
	if (timeout_ns != FX_NEVER)
		fx_deadline_in(&deadline, timeout_ns);
	return wait_for(me, ready, timeout_ns == FX_NEVER ? NULL : &deadline);
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
