/* SPDX-License-Identifier: MIT */
/* Ending calls early: by request, by time-out, by descriptor, or by none. */
#include "loop/seen.h"

#include "arch/arch.h"
#include "page/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

/* It was waiting for an entry. */
static void never_made(struct flexsc_loop *loop, const struct flexsc_event *ev)
{
	struct flexsc_entry call = { .nr = ev->nr_ };

	for (unsigned i = 0; i < 6; i++)
		call.args[i] = ev->args_[i];
	fx_loop_seen_end(loop, ev, &call, 0,
			 ev->ret > 0 ? ev->ret : -ECANCELED);
}

static int cancel(struct flexsc_loop *loop, struct flexsc_event *ev)
{
	struct fx_engine *engine;

	switch (FX_EVENT_STATE(ev)) {
	case FX_EVENT_IDLE:
		return -ENOENT;
	case FX_EVENT_POSTED:
		engine = loop->owner.engine;
		fx_probe1(cancel, ev->index_);
		if (fx_watched())
			fx_loop_seen_cancel(loop, ev);
		return engine->ops->cancel(engine, ev->index_);
	case FX_EVENT_QUEUED:
		fx_event_list_remove(&loop->queued, ev);
		if (fx_watched())
			never_made(loop, ev);
		fx_loop_ready(loop, ev, ev->ret > 0 ? ev->ret : -ECANCELED);
		return 0;
	case FX_EVENT_TIMER:
		fx_timers_remove(&loop->timers, ev);
		fx_loop_ready(loop, ev, -ECANCELED);
		return 0;
	case FX_EVENT_READY:
	case FX_EVENT_SENT:
	case FX_EVENT_COLLECTED:
		break;
	}
	return -EALREADY;
}

int flexsc_cancel(struct flexsc_event *ev)
{
	int bad = cancel(ev->loop_, ev);

	if (!bad) {
		struct flexsc_loop *loop = ev->loop_;

		fx_count(loop->owner.counters, cancelled);
		if (loop->mode & FX_LOOP_ARMED)
			fx_loop_nudge(loop);
	}
	return bad;
}

void fx_loop_time_out(struct flexsc_loop *loop, struct flexsc_event *ev)
{
	ev->state_ |= FX_EVENT_TIMED_OUT;
	if (cancel(loop, ev) == 0)
		fx_count(loop->owner.counters, cancelled);
}

int flexsc_ignore_nonblock(int fd)
{
	struct flexsc_loop *loop = fx_loop_current;
	const struct fx_engine_ops *ops;

	if (!loop)
		return -EINVAL;
	if (loop->mode & FX_LOOP_BROKEN)
		return -ENOMEM;
	ops = loop->owner.engine->ops;
	if (fx_arch_syscall(SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0) < 0)
		return -EBADF;
	return ops->patient ? ops->patient(loop->owner.engine, fd) :
			      -EOPNOTSUPP;
}

void flexsc_forget(int fd)
{
	struct flexsc_loop *loop = fx_loop_current;

	if (!loop || loop->mode & FX_LOOP_BROKEN)
		return;
	loop->owner.engine->ops->closing(loop->owner.engine, fd);
	if (loop->mode & FX_LOOP_ARMED)
		fx_loop_nudge(loop);
}
