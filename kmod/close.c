// SPDX-License-Identifier: GPL-2.0-only
/* Closing descriptors that calls wait on; see close.h. */
#include "close.h"

#include "arm.h"
#include "call.h"
#include "cancel.h"
#include "ring.h"
#include "run.h"
#include "stats.h"
#include "stay.h"
#include "step.h"

#include <linux/delay.h>
#include <linux/sched/signal.h>

/* More runners that take entries at once there is no use for. */
#define MAX_OTHERS 16
/* Looks without going to sleep. */
#define LOOKS 32
/* Of a millisecond or two, while one sleeps: the watch takes 20 ms at most. */
#define NAPS 50

/* Entries that other runners are at. */
struct others {
	const struct fxk_runner *me;
	u32 entries[MAX_OTHERS];
	u32 nr;
	bool noted; /* none is added any more */
	bool between; /* at this look one was on its way to, or from, one */
	bool there; /* one of them is still being carried out */
	bool asleep; /* and waits for something */
};

static bool is_noted(struct others *o, u32 entry)
{
	if (entry == FXK_BETWEEN) {
		o->between = true;
		return true;
	}
	for (u32 i = 0; i < o->nr; i++)
		if (o->entries[i] == entry)
			return true;
	if (o->noted || o->nr == MAX_OTHERS)
		return false;
	o->entries[o->nr++] = entry;
	return true;
}

static void look(struct others *o, const struct fxk_runner *r)
{
	u32 entry = READ_ONCE(r->current_entry);

	if (r == o->me || entry == FXK_NO_ENTRY || READ_ONCE(r->may_block) ||
	    !is_noted(o, entry))
		return;
	o->there = true;
	o->asleep |= READ_ONCE(r->task->__state) != TASK_RUNNING;
}

static bool others_are_there(struct others *o)
{
	struct fxk_ctx *ctx = o->me->ctx;
	struct fxk_runner *r;

	o->there = o->asleep = o->between = false;
	spin_lock_irq(&ctx->lock);
	hlist_for_each_entry(r, &ctx->runners, link) look(o, r);
	look(o, fxk_look_at_own(ctx));
	fxk_leave_own(ctx);
	spin_unlock_irq(&ctx->lock);
	/* What it is at next may have been taken before. */
	o->noted = !o->between;
	return o->there;
}

/*
 * Until the others are over what they took before. Nobody waits for who waits
 * here, which is in no call: there may be two closes at once.
 */
static void let_finish(struct fxk_runner *r)
{
	struct others o = { .me = r };
	u32 entry = r->current_entry, looks = 0, naps = 0;

	WRITE_ONCE(r->current_entry, FXK_NO_ENTRY);
	while (others_are_there(&o) && naps < NAPS &&
	       !fatal_signal_pending(current)) {
		if (o.asleep) {
			usleep_range(1000, 2000);
			naps++;
		} else if (looks++ < LOOKS) {
			cpu_relax();
		} else {
			usleep_range(20, 50);
		}
	}
	WRITE_ONCE(r->current_entry, entry);
}

/*
 * Calls that were armed on a descriptor complete before it is closed. Those
 * that have a chain behind them are left to the next round: what follows may
 * be another close.
 */
static void end_armed(struct fxk_runner *r)
{
	struct fxk_ctx *ctx = r->ctx;
	struct fxk_call *call, *next;
	LIST_HEAD(ended);
	s64 ret;

	spin_lock_irq(&ctx->lock);
	list_for_each_entry_safe(call, next, &ctx->ready,
				 link) if (call->cancelled && !call->next)
	{
		call->state = FXK_HELD;
		list_move_tail(&call->link, &ended);
	}
	spin_unlock_irq(&ctx->lock);
	list_for_each_entry_safe(call, next, &ended, link)
	{
		u32 index = call->index;

		fxk_disarm(call);
		fxk_end(call, &ret);
		fxk_call_put(r, call);
		fxk_count(ctx, cancelled);
		fxk_complete(r, index, ret);
		cond_resched();
	}
}

/* Which descriptor will this call close, if it succeeds? -1: none. */
static int closed_by(const struct fxk_call *call)
{
	const struct pt_regs *regs = &call->regs;
	struct file *file;

	if (call->nr == __NR_close)
		return regs->di;
	if ((int)regs->di == (int)regs->si ||
	    (call->nr == __NR_dup3 && regs->dx & ~O_CLOEXEC))
		return -1;
	file = fget_raw(regs->di);
	if (!file)
		return -1;
	fput(file);
	return regs->si;
}

/* Another runner may be faster with some of them: let it finish, too. */
static void end_all(struct fxk_runner *r)
{
	end_armed(r);
	let_finish(r);
}

int fxk_close_begin(struct fxk_runner *r, const struct fxk_call *call)
{
	int fd;

	if (fxk_closes_nothing(r))
		return -1;
	let_finish(r);
	fd = closed_by(call);
	if (fd >= 0 && fxk_end_armed_on(r->ctx, fd, false))
		end_all(r);
	if (fd >= 0)
		fxk_stay_drop(r->ctx, fd);
	return fd;
}

void fxk_close_end(struct fxk_runner *r, int fd)
{
	/* Order: see fxk_arm(). */
	smp_mb();
	if (fxk_end_armed_on(r->ctx, fd, true))
		end_all(r);
}
