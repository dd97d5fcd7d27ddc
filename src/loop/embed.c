/* SPDX-License-Identifier: MIT */
/*
 * A loop inside another loop: one descriptor that is readable whenever
 * flexsc_loop_poll(loop, 0) has something to do. It is an epoll set of the
 * engine's descriptor, a timer, and an eventfd for what becomes ready by the
 * application's own postings between two rounds.
 */
#include "loop/loop.h"

#include "arch/fd.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

void fx_loop_nudge(struct flexsc_loop *loop)
{
	/* Once is enough until the next round. */
	loop->mode &= ~(uint64_t)FX_LOOP_ARMED;
	eventfd_write(loop->nudge_fd, 1);
}

void fx_loop_disarm(struct flexsc_loop *loop)
{
	eventfd_t n;

	loop->mode &= ~(uint64_t)FX_LOOP_ARMED;
	eventfd_read(loop->nudge_fd, &n);
}

static void set_timer(struct flexsc_loop *loop)
{
	struct fx_engine *engine = loop->owner.engine;
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };
	uint64_t now = fx_now_ns(), due = engine->ops->due(engine);
	uint64_t deadline = due == FX_NEVER ? FX_NEVER : now + due;

	if (!fx_timers_empty(&loop->timers) &&
	    loop->timers.heap[0].deadline_ns < deadline)
		deadline = loop->timers.heap[0].deadline_ns;
	if (deadline != FX_NEVER)
		when.it_value = fx_timespec(deadline ? deadline : 1);
	timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void fx_loop_arm(struct flexsc_loop *loop)
{
	struct fx_engine *engine = loop->owner.engine;
	int saved = errno;
	eventfd_t n;

	eventfd_read(loop->nudge_fd, &n);
	fx_owner_flush(&loop->owner);
	set_timer(loop);
	loop->mode |= FX_LOOP_ARMED;
	if (loop->ready.first || fx_load_relaxed(&loop->interrupted) ||
	    !engine->ops->arm(engine))
		fx_loop_nudge(loop);
	errno = saved;
}

static int add(int set, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev);
}

int flexsc_loop_fd(struct flexsc_loop *loop)
{
	struct fx_engine *engine = loop->owner.engine;
	int saved = errno, bad;

	if (loop->mode & FX_LOOP_BROKEN)
		return -ENOMEM;
	if (loop->outer_fd >= 0)
		return loop->outer_fd;
	loop->nudge_fd = fx_eventfd();
	loop->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	loop->outer_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->nudge_fd < 0 || loop->timer_fd < 0 || loop->outer_fd < 0 ||
	    add(loop->outer_fd, engine->ops->fd(engine)) ||
	    add(loop->outer_fd, loop->nudge_fd) ||
	    add(loop->outer_fd, loop->timer_fd)) {
		bad = loop->nudge_fd < 0 ? loop->nudge_fd : -errno;
		fx_loop_embed_fini(loop);
		errno = saved;
		return bad;
	}
	if (!loop->running)
		fx_loop_arm(loop);
	errno = saved;
	return loop->outer_fd;
}

void fx_loop_embed_fini(struct flexsc_loop *loop)
{
	int *fds[] = { &loop->outer_fd, &loop->timer_fd, &loop->nudge_fd };

	for (unsigned i = 0; i < FX_ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0)
			fx_close(*fds[i]);
		*fds[i] = -1;
	}
	loop->mode &= ~(uint64_t)FX_LOOP_ARMED;
}
