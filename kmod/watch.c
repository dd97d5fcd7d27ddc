// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tick. It goes on while there are runners that do not sleep, and for one
 * tick more, so a runner pays for starting it now and then only. Who is in the same call at
 * two ticks, and sleeps there, is interrupted; who waits for its processor, or
 * for storage, is not.
 */
#include "watch.h"

#include "cancel.h"
#include "run.h"
#include "stats.h"

static bool sleeps(const struct task_struct *task)
{
	return READ_ONCE(task->__state) & TASK_INTERRUPTIBLE;
}

static void look(struct fxk_ctx *ctx, struct fxk_runner *r)
{
	u32 seq = READ_ONCE(r->seq);

	if (READ_ONCE(r->current_entry) != FXK_NO_ENTRY && seq == r->seen &&
	    !READ_ONCE(r->may_block) && sleeps(r->task)) {
		WRITE_ONCE(r->hurried, true);
		fxk_poke(r);
		fxk_count(ctx, interrupted);
	}
	r->seen = seq;
}

static bool is_wanted(struct fxk_ctx *ctx)
{
	struct fxk_runner *r = ctx->own;

	if (ctx->dead)
		return false;
	if (READ_ONCE(r->task) && !READ_ONCE(r->idle))
		return true;
	hlist_for_each_entry(r, &ctx->runners,
			     link) if (!READ_ONCE(r->idle)) return true;
	return false;
}

static void tick(struct timer_list *timer)
{
	struct fxk_ctx *ctx = container_of(timer, struct fxk_ctx, watch);
	struct fxk_runner *r;
	unsigned long flags;

	spin_lock_irqsave(&ctx->lock, flags);
	hlist_for_each_entry(r, &ctx->runners, link) look(ctx, r);
	look(ctx, fxk_look_at_own(ctx));
	fxk_leave_own(ctx);
	if (!is_wanted(ctx)) {
		WRITE_ONCE(ctx->watching, false);
		/* Order: pairs with fxk_watch_resume(), and who takes own. */
		smp_mb();
		ctx->watching = is_wanted(ctx);
	}
	if (ctx->watching)
		mod_timer(&ctx->watch, jiffies + msecs_to_jiffies(10));
	spin_unlock_irqrestore(&ctx->lock, flags);
}

void fxk_watch_init(struct fxk_ctx *ctx)
{
	timer_setup(&ctx->watch, tick, 0);
}

void fxk_watch_fini(struct fxk_ctx *ctx)
{
	timer_delete_sync(&ctx->watch);
}
