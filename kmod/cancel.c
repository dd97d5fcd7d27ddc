// SPDX-License-Identifier: GPL-2.0-only
/* Cancelling, and interrupting; see cancel.h. */
#include "cancel.h"

#include "arm.h"
#include "call.h"
#include "ctx.h"
#include "run.h"
#include "stats.h"
#include "trace.h"

/* Calls that are ended under the lock at once. */
#define SOME 64

/* In the task: that it ran is all there is to do. */
static void poked(struct callback_head *work)
{
	struct fxk_runner *r = container_of(work, struct fxk_runner, poke);

	spin_lock_irq(&r->ctx->lock);
	r->poked = false;
	spin_unlock_irq(&r->ctx->lock);
}

void fxk_poke(struct fxk_runner *r)
{
	if (r->poked)
		return;
	init_task_work(&r->poke, poked);
	r->poked = true;
	if (task_work_add(r->task, &r->poke, TWA_SIGNAL))
		r->poked = false; /* it is exiting */
}

/* A call that no runner holds goes on, and finds that it is to end. */
static bool end_waiting(struct fxk_ctx *ctx, struct fxk_call *call)
{
	call->cancelled = true;
	switch (call->state) {
	case FXK_ARMED:
		fxk_unlist(call);
		break;
	case FXK_QUEUED:
		ctx->nr_queued--;
		list_del(&call->link);
		break;
	case FXK_HELD:
	case FXK_READY:
		return false;
	}
	fxk_make_ready(ctx, call);
	return true;
}

static bool interrupt_own(struct fxk_ctx *ctx, u32 index)
{
	struct fxk_runner *r = fxk_look_at_own(ctx);
	bool found = READ_ONCE(r->current_entry) == index;

	if (found)
		fxk_poke(r);
	fxk_leave_own(ctx);
	return found;
}

static bool interrupt(struct fxk_ctx *ctx, u32 index)
{
	struct fxk_runner *r;

	if (interrupt_own(ctx, index))
		return true;
	hlist_for_each_entry(r, &ctx->runners,
			     link) if (READ_ONCE(r->current_entry) == index)
	{
		fxk_poke(r);
		return true;
	}
	return false;
}

long fxk_cancel(struct fxk_ctx *ctx, u64 index)
{
	bool found, ready = false;
	struct fxk_call *call;

	if (index >= ctx->max_entries)
		return -EINVAL;
	spin_lock_irq(&ctx->lock);
	call = fxk_inflight_find(ctx, index);
	if (call)
		ready = end_waiting(ctx, call);
	found = interrupt(ctx, index) || call;
	spin_unlock_irq(&ctx->lock);
	trace_flexsc_cancel(ctx, index, found);
	if (ready)
		fxk_tell_runner(ctx, false);
	return found ? 0 : -ENOENT;
}

/*
 * Some of those that are armed on @fd; @gone: that have another file. Return:
 * how many; SOME: there may be more.
 */
static u32 end_some(struct fxk_ctx *ctx, int fd, bool gone)
{
	struct hlist_node *next;
	struct fxk_call *call;
	u32 nr = 0;

	spin_lock_irq(&ctx->lock);
	hlist_for_each_entry_safe(call, next,
				  &ctx->armed[(u32)fd % FXK_FD_HASH], fd_link)
	{
		if (call->fd != fd || (gone && fxk_is_open(call)))
			continue;
		end_waiting(ctx, call);
		if (++nr == SOME)
			break;
	}
	spin_unlock_irq(&ctx->lock);
	return nr;
}

/* No more than there were: others may arm at the same time. */
bool fxk_end_armed_on(struct fxk_ctx *ctx, int fd, bool gone)
{
	u32 most = READ_ONCE(ctx->nr_armed), all = 0, nr = SOME;

	while (nr == SOME && all < most) {
		nr = end_some(ctx, fd, gone);
		all += nr;
		cond_resched();
	}
	if (all)
		fxk_tell_runner(ctx, false);
	return all;
}

long fxk_closing(struct fxk_ctx *ctx, u64 fd)
{
	fxk_end_armed_on(ctx, fd, false);
	return 0;
}
