// SPDX-License-Identifier: GPL-2.0-only
/* Lent threads; see thread.h. */
#include "thread.h"

#include "arm.h"
#include "call.h"
#include "cancel.h"
#include "core.h"
#include "ctx.h"
#include "desc.h"
#include "dispatch.h"
#include "limit.h"
#include "monitor.h"
#include "ring.h"
#include "run.h"
#include "space.h"
#include "stats.h"
#include "step.h"
#include "trace.h"
#include "watch.h"

#include <linux/hrtimer.h>
#include <linux/sched/signal.h>

/* Calls ------------------------------------------------------------------- */

static void forget(struct fxk_call *call)
{
	struct fxk_call *next;

	for (; call; call = next) {
		next = call->next;
		fxk_call_free(call);
	}
}

static void enqueue(struct fxk_ctx *ctx, struct fxk_call *call, bool first)
{
	u32 index = call->index;
	bool dead;

	spin_lock_irq(&ctx->lock);
	dead = ctx->dead;
	if (!dead) {
		call->state = FXK_QUEUED;
		ctx->nr_queued++;
		if (first)
			list_add(&call->link, &ctx->queue);
		else
			list_add_tail(&call->link, &ctx->queue);
		wake_up(&ctx->thread_wq);
	}
	spin_unlock_irq(&ctx->lock);
	if (dead) {
		forget(call);
		return;
	}
	/* It may have been cancelled before it could be found. */
	if (unlikely(fxk_cancel_wanted(ctx, index)))
		fxk_cancel(ctx, index);
}

void fxk_queue(struct fxk_ctx *ctx, struct fxk_call *call)
{
	fxk_count(ctx, queued);
	trace_flexsc_queue(ctx, call->index, call->nr);
	enqueue(ctx, call, false);
	/* RUN tells the owner of it, but who polls is another thread. */
	if (unlikely(READ_ONCE(ctx->core) && fxk_wants_threads(ctx))) {
		WRITE_ONCE(ctx->short_of, true);
		WRITE_ONCE(fxk_header(ctx)->threads_wanted, 1);
		fxk_tell(ctx);
	}
}

static s64 call_or_rest(struct fxk_runner *r, struct fxk_call *call)
{
	if (call->restarts) {
		current->restart_block = call->restart;
		call->restarts = false;
		return current->restart_block.fn(&current->restart_block);
	}
	if (call->done > 0 &&
	    (call->nr == __NR_writev || call->nr == __NR_sendmsg))
		return fxk_write_rest(call);
	return fxk_dispatch_fd(r, call, call->nr);
}

enum fxk_step fxk_block(struct fxk_runner *r, struct fxk_call *call, s64 *ret)
{
	fxk_quiet(r, FXK_LOUD);
	for (;;) {
		*ret = call_or_rest(r, call);
		if (unlikely(fxk_has_work()))
			fxk_do_work(r);
		if (*ret == -EINTR && fxk_cancel_wanted(r->ctx, call->index))
			return fxk_end(call, ret);
		if (!fxk_is_restart(*ret))
			break;
		if (fxk_cancel_wanted(r->ctx, call->index))
			return fxk_end(call, ret);
		if (*ret == -ERESTART_RESTARTBLOCK) {
			call->restart = current->restart_block;
			call->restarts = true;
		}
		/* Another thread goes on while this one sees to its signal. */
		if (test_thread_flag(TIF_SIGPENDING)) {
			r->error = -EINTR;
			enqueue(r->ctx, call, true);
			return FXK_SIGNAL;
		}
	}
	if (call->done > 0)
		*ret = *ret > 0 ? call->done + *ret : call->done;
	return FXK_DONE;
}

/* WAIT -------------------------------------------------------------------- */

static int join(struct fxk_ctx *ctx)
{
	int bad = 0;

	if (!fxk_user_add_thread(ctx->user))
		return -EAGAIN;
	spin_lock_irq(&ctx->lock);
	if (ctx->stopped)
		bad = -ESHUTDOWN;
	else if (ctx->nr_threads >= ctx->max_threads)
		bad = -EAGAIN;
	else
		ctx->nr_threads++;
	spin_unlock_irq(&ctx->lock);
	if (bad)
		fxk_user_drop_thread(ctx->user);
	else
		atomic64_inc(&fxk_objects.threads);
	return bad;
}

static void part(struct fxk_ctx *ctx)
{
	bool left;

	spin_lock_irq(&ctx->lock);
	ctx->nr_threads--;
	left = ctx->nr_queued || !list_empty(&ctx->ready);
	spin_unlock_irq(&ctx->lock);
	fxk_user_drop_thread(ctx->user);
	atomic64_dec(&fxk_objects.threads);
	/* The wake-up that was meant for this one. */
	if (left) {
		wake_up(&ctx->thread_wq);
		fxk_tell(ctx);
	}
}

/* The first of the queue. *bad: why this thread must not take it. */
static struct fxk_call *next_queued(struct fxk_ctx *ctx, int *bad)
{
	struct fxk_call *call;

	spin_lock_irq(&ctx->lock);
	call = list_first_entry_or_null(&ctx->queue, struct fxk_call, link);
	if (call && !fxk_same_cred(ctx->cred, current_cred())) {
		*bad = -EACCES;
		call = NULL;
	}
	if (call) {
		list_del(&call->link);
		ctx->nr_queued--;
		call->state = FXK_HELD;
	}
	spin_unlock_irq(&ctx->lock);
	return call;
}

void fxk_tell_completed(struct fxk_runner *r)
{
	u32 nr = r->nr_completed + r->nr_notices;

	if (nr == r->nr_told)
		return;
	r->nr_told = nr;
	fxk_tell(r->ctx);
}

static void run_queued(struct fxk_runner *r, struct fxk_call *call)
{
	trace_flexsc_resume(r->ctx, call->index, call->nr);
	r->may_block = true;
	/* What it is interrupted by must not be taken for a wish of the watch. */
	r->hurried = false;
	fxk_go(r, call, false);
	if (r->quiet)
		fxk_quiet_end(r);
	fxk_tell_completed(r);
}

static bool has_work(struct fxk_ctx *ctx)
{
	return READ_ONCE(ctx->stopped) || !list_empty(&ctx->queue);
}

/* Sleep until there is work. Return: 0, -ETIME, -EINTR. */
static int doze(struct fxk_runner *r, ktime_t *until)
{
	struct fxk_ctx *ctx = r->ctx;
	DEFINE_WAIT(wait);
	int bad = 0;

	spin_lock_irq(&ctx->lock);
	ctx->nr_idle++;
	spin_unlock_irq(&ctx->lock);
	fxk_watch_pause(r);
	prepare_to_wait_exclusive(&ctx->thread_wq, &wait, TASK_INTERRUPTIBLE);
	smp_mb();
	if (signal_pending(current))
		bad = -EINTR;
	else if (!has_work(ctx) &&
		 !schedule_hrtimeout_range(until, NSEC_PER_MSEC,
					   HRTIMER_MODE_ABS))
		bad = -ETIME;
	finish_wait(&ctx->thread_wq, &wait);
	fxk_watch_resume(r);
	spin_lock_irq(&ctx->lock);
	ctx->nr_idle--;
	spin_unlock_irq(&ctx->lock);
	return bad;
}

static ktime_t *deadline(u64 idle_ns, ktime_t *at)
{
	if (!idle_ns || idle_ns > KTIME_MAX / 2)
		return NULL;
	*at = ktime_add_ns(ktime_get(), idle_ns);
	return at;
}

int fxk_must_stop(struct fxk_runner *r)
{
	if (READ_ONCE(r->ctx->stopped))
		return -ESHUTDOWN;
	if (fxk_watched())
		return -EACCES;
	if (unlikely(fxk_has_work()))
		fxk_do_work(r);
	return signal_pending(current) ? -EINTR : r->error;
}

static int serve(struct fxk_runner *r, const struct flexsc_wait *want)
{
	ktime_t at, *until = deadline(want->idle_ns, &at);
	struct fxk_call *call;
	int bad;

	while (!(bad = fxk_must_stop(r))) {
		call = next_queued(r->ctx, &bad);
		if (bad)
			break;
		if (call) {
			run_queued(r, call);
			until = deadline(want->idle_ns, &at);
			continue;
		}
		bad = doze(r, until);
		if (bad)
			break;
	}
	return bad;
}

long fxk_wait(struct fxk_ctx *ctx, const struct flexsc_wait *want)
{
	bool polls = want->flags & FLEXSC_WAIT_POLL;
	struct fxk_runner r;
	long ret = fxk_runner_begin(&r, ctx);

	if (ret)
		return ret;
	ret = join(ctx);
	if (ret)
		goto end;
	r.may_block = !polls;
	ret = polls ? fxk_core_poll(&r, want) : serve(&r, want);
	fxk_tell_completed(&r);
	part(ctx);
end:
	fxk_runner_end(&r);
	return ret;
}
