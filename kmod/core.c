// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel cores; see core.h. Which processor they are on is the engine's to
 * choose, and whether there is one at all.
 */
#include "core.h"

#include "ctx.h"
#include "dispatch.h"
#include "monitor.h"
#include "ring.h"
#include "run.h"
#include "stats.h"
#include "thread.h"
#include "watch.h"

#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>

/* Looks at the ring between two at the clock. */
#define LOOKS 64
/* In vain so often, polling lasts for this much less. */
#define MAX_SHORTER 4

struct core {
	struct fxk_runner *r;
	struct preempt_notifier mark;
	u32 dismissal; /* I: ctx->dismissal when it came */
	u32 shorter; /* R: how often polling was in vain lately */
	bool inside; /* R: is blocked in a call */
	bool dozes; /* R: sleeps because there is nothing to do */
};

static void came_back(struct preempt_notifier *mark, int cpu)
{
	struct core *c = container_of(mark, struct core, mark);
	struct fxk_ctx *ctx = c->r->ctx;

	if (likely(!c->inside))
		return;
	c->inside = false;
	/* Compared only. Who takes the role away sets it after this, or again. */
	if (READ_ONCE(ctx->core) == c->r)
		WRITE_ONCE(ctx->core_awake, 1);
}

/* The run queue's lock is held: nobody can be woken here. */
static void goes(struct preempt_notifier *mark, struct task_struct *next)
{
	struct core *c = container_of(mark, struct core, mark);
	struct fxk_ctx *ctx = c->r->ctx;

	if (c->dozes || c->r->current_entry == FXK_NO_ENTRY ||
	    fxk_is_runnable(current) || READ_ONCE(ctx->core) != c->r)
		return;
	c->inside = true;
	WRITE_ONCE(ctx->core_awake, 0);
	irq_work_queue(&ctx->stuck);
}

static struct preempt_ops ops = { .sched_in = came_back, .sched_out = goes };

/*
 * It blocks in a call. It may have come back meanwhile: then there are two for
 * a moment, which does no harm, for it stops behind the entry it is at; the
 * thread's flag is what it looks at there.
 */
static void stuck(struct irq_work *work)
{
	struct fxk_ctx *ctx = container_of(work, struct fxk_ctx, stuck);
	bool left;

	spin_lock(&ctx->lock);
	if (ctx->core && !READ_ONCE(ctx->core_awake) && ctx->nr_standby) {
		WRITE_ONCE(ctx->core->error, FXK_ROLE_LOST);
		set_tsk_thread_flag(ctx->core->task, TIF_NOTIFY_RESUME);
		WRITE_ONCE(ctx->core, NULL);
		fxk_count(ctx, handed_over);
		wake_up(&ctx->standby_wq);
		/* It has come back, and sleeps: it is to stand by, too. */
		wake_up(&ctx->core_wq);
	}
	left = ctx->core && !READ_ONCE(ctx->core_awake);
	if (left && !list_empty(&ctx->ready))
		WRITE_ONCE(fxk_header(ctx)->run_wanted, 1);
	spin_unlock(&ctx->lock);
	/* Nobody stands by: what there is, and will be, is the owner's. */
	if (left)
		fxk_tell(ctx);
}

void fxk_core_init(struct fxk_ctx *ctx)
{
	init_waitqueue_head(&ctx->core_wq);
	init_waitqueue_head(&ctx->standby_wq);
	init_irq_work(&ctx->stuck, stuck);
}

void fxk_core_fini(struct fxk_ctx *ctx)
{
	irq_work_sync(&ctx->stuck);
}

void fxk_core_dismiss(struct fxk_ctx *ctx)
{
	spin_lock_irq(&ctx->lock);
	WRITE_ONCE(ctx->dismissal, ctx->dismissal + 1);
	spin_unlock_irq(&ctx->lock);
	wake_up_all(&ctx->core_wq);
	wake_up_all(&ctx->standby_wq);
}

/* The role ----------------------------------------------------------------- */

static int must_stop(struct core *c)
{
	if (READ_ONCE(c->r->ctx->dismissal) != c->dismissal)
		return -ECANCELED;
	return fxk_must_stop(c->r);
}

static bool take_role(struct core *c)
{
	struct fxk_ctx *ctx = c->r->ctx;
	bool mine;

	spin_lock_irq(&ctx->lock);
	mine = !ctx->core;
	if (mine) {
		WRITE_ONCE(ctx->core, c->r);
		WRITE_ONCE(ctx->core_awake, 1);
	}
	spin_unlock_irq(&ctx->lock);
	return mine;
}

/*
 * Nor is a role that nobody took up left without one. Who has it by now may
 * have gone to sleep on the ring while this thread still did: what woke that
 * one was meant for this one, and this one has cleared its flag.
 */
static void leave_role(struct core *c)
{
	struct fxk_ctx *ctx = c->r->ctx;
	bool vacant;

	spin_lock_irq(&ctx->lock);
	vacant = !ctx->core || ctx->core == c->r;
	if (vacant) {
		WRITE_ONCE(ctx->core, NULL);
		WRITE_ONCE(ctx->core_awake, 0);
		if (!list_empty(&ctx->ready))
			WRITE_ONCE(fxk_header(ctx)->run_wanted, 1);
	}
	spin_unlock_irq(&ctx->lock);
	if (vacant) {
		wake_up(&ctx->standby_wq);
		fxk_tell(ctx);
	} else {
		fxk_core_kick(ctx);
	}
}

/* Sleep on @head while there is nothing to do. 0, -EINTR, -ETIME. */
static int doze(struct core *c, wait_queue_head_t *head,
		bool (*nothing)(struct core *c), ktime_t *until)
{
	DEFINE_WAIT(wait);
	int bad = 0;

	fxk_watch_pause(c->r);
	c->dozes = true;
	prepare_to_wait_exclusive(head, &wait, TASK_INTERRUPTIBLE);
	/* Order: pairs with waitqueue_active() of who wakes. */
	smp_mb();
	if (signal_pending(current))
		bad = -EINTR;
	else if (READ_ONCE(c->r->ctx->dismissal) == c->dismissal &&
		 !READ_ONCE(c->r->ctx->stopped) && nothing(c) &&
		 !schedule_hrtimeout_range(until, NSEC_PER_MSEC,
					   HRTIMER_MODE_ABS))
		bad = -ETIME;
	finish_wait(head, &wait);
	c->dozes = false;
	fxk_watch_resume(c->r);
	return bad;
}

static bool is_taken(struct core *c)
{
	return READ_ONCE(c->r->ctx->core);
}

/* Until the role can be had. */
static int stand_by(struct core *c)
{
	struct fxk_ctx *ctx = c->r->ctx;
	int bad = 0;

	/* It was lost while a call ended: that is over. */
	if (c->r->error == FXK_ROLE_LOST)
		c->r->error = 0;
	spin_lock_irq(&ctx->lock);
	ctx->nr_standby++;
	spin_unlock_irq(&ctx->lock);
	while (!bad && !(bad = must_stop(c)) && !take_role(c))
		bad = doze(c, &ctx->standby_wq, is_taken, NULL);
	spin_lock_irq(&ctx->lock);
	ctx->nr_standby--;
	spin_unlock_irq(&ctx->lock);
	return bad;
}

/* Polling ------------------------------------------------------------------ */

/* Some looks at the ring. Return: was there anything? */
static bool look(struct fxk_runner *r)
{
	for (int i = 0; i < LOOKS; i++) {
		if (fxk_run_some(r)) {
			fxk_tell_completed(r);
			cond_resched();
			return true;
		}
		cpu_relax();
	}
	cond_resched();
	return false;
}

/* And is it still to be woken, and for this? */
static bool has_nothing(struct core *c)
{
	struct fxk_ctx *ctx = c->r->ctx;

	return READ_ONCE(fxk_header(ctx)->engine_sleeping) &&
	       !READ_ONCE(c->r->error) && list_empty(&ctx->ready) &&
	       !fxk_peek(ctx, &c->r->sq, fxk_sq_head(ctx));
}

static void fence(void *arg)
{
	smp_mb();
}

/*
 * The owner clears the flag and kicks after it has posted, if it finds it set,
 * and does not fence in between: the sleeper does it for the owner, by an
 * interrupt wherever the process runs, as membarrier(2) does.
 */
static int sleep_on_ring(struct core *c, ktime_t *until)
{
	struct fxk_ctx *ctx = c->r->ctx;
	u32 *flag = &fxk_header(ctx)->engine_sleeping;
	int bad;

	xchg(flag, 1);
	preempt_disable();
	smp_call_function_many(mm_cpumask(current->mm), fence, NULL, true);
	preempt_enable();
	bad = doze(c, &ctx->core_wq, has_nothing, until);
	xchg(flag, 0);
	return bad;
}

static bool acts_for(struct fxk_ctx *ctx)
{
	bool same;

	if (likely(READ_ONCE(ctx->cred) == current_cred()))
		return true;
	spin_lock_irq(&ctx->lock);
	same = fxk_same_cred(ctx->cred, current_cred());
	spin_unlock_irq(&ctx->lock);
	return same;
}

static ktime_t *deadline(u64 idle_ns, ktime_t *at)
{
	if (!idle_ns || idle_ns > KTIME_MAX / 2)
		return NULL;
	*at = ktime_add_ns(ktime_get(), idle_ns);
	return at;
}

/*
 * Adaptive: polling lasts as long as was asked for while work comes that soon,
 * and is halved each time that it was in vain. Who slept for no longer than
 * that should have polled.
 */
static int rest(struct core *c, const struct flexsc_wait *want)
{
	u64 begin = ktime_get_ns();
	ktime_t at;
	int bad = sleep_on_ring(c, deadline(want->idle_ns, &at));

	if (ktime_get_ns() - begin < want->spin_ns)
		c->shorter = 0;
	else
		c->shorter = min_t(u32, c->shorter + 1, MAX_SHORTER);
	return bad;
}

static int poll(struct core *c, const struct flexsc_wait *want)
{
	u64 last = ktime_get_ns();
	int bad;

	while (!(bad = must_stop(c))) {
		if (!acts_for(c->r->ctx))
			return -EACCES;
		if (look(c->r)) {
			last = ktime_get_ns();
			c->shorter = 0;
			continue;
		}
		if (ktime_get_ns() - last < want->spin_ns >> c->shorter)
			continue;
		bad = rest(c, want);
		if (bad)
			break;
		last = ktime_get_ns();
	}
	return bad;
}

int fxk_core_poll(struct fxk_runner *r, const struct flexsc_wait *want)
{
	struct core c = { .r = r, .dismissal = READ_ONCE(r->ctx->dismissal) };
	int bad;

	preempt_notifier_init(&c.mark, &ops);
	preempt_notifier_register(&c.mark);
	do {
		bad = stand_by(&c);
		if (!bad)
			bad = poll(&c, want);
		fxk_tell_completed(r);
		leave_role(&c);
	} while (bad == FXK_ROLE_LOST);
	preempt_notifier_unregister(&c.mark);
	return bad;
}
