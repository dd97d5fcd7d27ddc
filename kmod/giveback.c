// SPDX-License-Identifier: GPL-2.0-only
/* Giving calls back; see giveback.h. */
#include "giveback.h"

#include "arm.h"
#include "call.h"
#include "chain.h"
#include "ctx.h"
#include "ring.h"
#include "run.h"

#include <linux/uaccess.h>

/* One that no runner holds; from the lists, or by looking at the armed. */
static struct fxk_call *seize_one(struct fxk_ctx *ctx)
{
	struct fxk_call *call;

	call = list_first_entry_or_null(&ctx->ready, struct fxk_call, link);
	if (!call) {
		call = list_first_entry_or_null(&ctx->queue, struct fxk_call,
						link);
		ctx->nr_queued -= !!call;
	}
	if (call) {
		list_del(&call->link);
		call->state = FXK_HELD;
		return call;
	}
	for (int i = 0; i < FXK_FD_HASH && ctx->nr_armed; i++) {
		if (hlist_empty(&ctx->armed[i]))
			continue;
		call = hlist_entry(ctx->armed[i].first, struct fxk_call,
				   fd_link);
		fxk_unlist(call);
		call->state = FXK_HELD;
		return call;
	}
	return NULL;
}

static struct fxk_call *seize(struct fxk_ctx *ctx)
{
	struct fxk_call *call;

	spin_lock_irq(&ctx->lock);
	call = seize_one(ctx);
	spin_unlock_irq(&ctx->lock);
	if (call)
		fxk_disarm(call);
	return call;
}

/* What is known of its arguments by now, and the state that it had before. */
static u32 rewrite(struct fxk_call *call)
{
	struct flexsc_entry *entry = fxk_entry(call->ctx, call->index);
	u32 index = call->index;
	u8 flags = call->flags & ~FLEXSC_F_LINK;

	WRITE_ONCE(entry->args[0], call->regs.di);
	WRITE_ONCE(entry->args[1], call->regs.si);
	WRITE_ONCE(entry->args[2], call->regs.dx);
	WRITE_ONCE(entry->args[3], call->regs.r10);
	WRITE_ONCE(entry->args[4], call->regs.r8);
	WRITE_ONCE(entry->args[5], call->regs.r9);
	WRITE_ONCE(entry->flags, call->next ? flags | FLEXSC_F_LINK : flags);
	WRITE_ONCE(entry->ret, 0);
	fxk_call_free(call);
	/* A wish to cancel it stays. */
	cmpxchg(&entry->status, FLEXSC_BUSY, FLEXSC_SUBMITTED);
	return index;
}

/* A part is done: that is its result. Return: the rest of its chain. */
static struct fxk_call *end_part(struct fxk_runner *r, struct fxk_call *call)
{
	struct fxk_call *next = call->next;
	s64 done = call->done;
	u32 index = call->index;

	if (done <= 0)
		return call;
	fxk_chain_tell(call, done);
	fxk_call_free(call);
	fxk_complete(r, index, done);
	return next;
}

static u32 give(struct fxk_call *call, u32 *indices)
{
	struct fxk_call *next;
	u32 nr = 0;

	for (; call && nr < FLEXSC_MAX_CHAIN; call = next) {
		next = call->next;
		indices[nr++] = rewrite(call);
	}
	return nr;
}

long fxk_give_back(struct fxk_ctx *ctx, struct flexsc_stop __user *argument)
{
	u32 indices[FLEXSC_MAX_CHAIN], nr = 0, some;
	struct flexsc_stop stop;
	struct fxk_runner r;
	struct fxk_call *call;
	u32 __user *to;
	long bad;

	if (copy_from_user(&stop, argument, sizeof(stop)))
		return -EFAULT;
	if (stop.reserved || stop.max < FLEXSC_MAX_CHAIN)
		return -EINVAL;
	bad = fxk_runner_begin(&r, ctx);
	if (bad)
		return bad;
	to = (u32 __user *)stop.indices;
	while (!bad && stop.max - nr >= FLEXSC_MAX_CHAIN &&
	       (call = seize(ctx))) {
		some = give(end_part(&r, call), indices);
		if (copy_to_user(to + nr, indices, some * sizeof(*indices)))
			bad = -EFAULT;
		nr += some;
		cond_resched();
	}
	fxk_runner_end(&r);
	if (r.nr_completed)
		fxk_tell(ctx);
	return bad ? bad : nr;
}
