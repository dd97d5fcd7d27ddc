// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runners, and the straight way of an entry: from its page into registers,
 * through the switch, and back. What is unusual about it is for step.c.
 */
#include "run.h"

#include "arm.h"
#include "call.h"
#include "cancel.h"
#include "chain.h"
#include "close.h"
#include "ctx.h"
#include "desc.h"
#include "dispatch.h"
#include "monitor.h"
#include "ring.h"
#include "stats.h"
#include "step.h"
#include "thread.h"
#include "trace.h"
#include "watch.h"

#include <linux/hrtimer.h>
#include <linux/sched/signal.h>

/* In one round: then the other kind of work gets its turn. */
#define ROUND 1024

#ifdef __has_attribute
#if __has_attribute(uninitialized)
#define NOT_ZEROED __attribute__((uninitialized))
#endif
#endif
#ifndef NOT_ZEROED
#define NOT_ZEROED
#endif

/* Being on a task's list is all that these are for. */
static void mark_in(struct preempt_notifier *mark, int cpu)
{
}

static void mark_out(struct preempt_notifier *mark, struct task_struct *next)
{
}

static struct preempt_ops mark_ops = { .sched_in = mark_in,
				       .sched_out = mark_out };

void fxk_run_init(void)
{
	preempt_notifier_inc();
}

void fxk_run_fini(void)
{
	preempt_notifier_dec();
}

/* Requests can be posted, too: without this they would eat the stack. */
static bool is_runner(void)
{
	struct preempt_notifier *mark;

	hlist_for_each_entry(mark, &current->preempt_notifiers,
			     link) if (mark->ops == &mark_ops) return true;
	return false;
}

void fxk_runner_init(struct fxk_runner *r, struct fxk_ctx *ctx)
{
	r->ctx = ctx;
	r->task = NULL;
	r->current_entry = FXK_NO_ENTRY;
	r->seq = r->seen = 0;
	r->may_block = r->poked = r->hurried = r->quiet = r->idle = false;
	r->nr_taken = r->nr_completed = r->nr_notices = r->nr_told = 0;
	r->error = 0;
	r->now.heap = r->now.away = r->now.cancelled = false;
	r->now.nested = r->now.restarts = false;
	r->now.file = NULL;
	r->now.next = NULL;
	r->spare = NULL;
	r->nr_spare = 0;
	r->at.slot = r->at.end = NULL;
	fxk_view_set(&r->sq, 0);
	fxk_view_set(&r->cq, 0);
	fxk_cursor_init(&r->done);
	preempt_notifier_init(&r->mark, &mark_ops);
}

/* ctx->own, if it is free. */
static __always_inline bool take_own(struct fxk_ctx *ctx)
{
	struct fxk_runner *r = ctx->own;

	/* Order: before the look at ctx->watching. */
	if (unlikely(cmpxchg(&r->task, NULL, current)))
		return false;
	r->nr_taken = r->nr_completed = 0;
	r->hurried = false;
	r->error = 0;
	preempt_notifier_register(&r->mark);
	if (unlikely(!READ_ONCE(ctx->watching))) {
		spin_lock_irq(&ctx->lock);
		fxk_watch(ctx);
		spin_unlock_irq(&ctx->lock);
	}
	return true;
}

/* Nobody finds it any more; what was asked of it before is undone. */
static __always_inline void end(struct fxk_runner *r)
{
	struct fxk_ctx *ctx = r->ctx;

	if (unlikely(READ_ONCE(r->poked)))
		fxk_do_work(r);
	if (unlikely(r->quiet))
		fxk_quiet_end(r);
	preempt_notifier_unregister(&r->mark);
	atomic64_add(r->nr_taken, &ctx->events.entries);
	atomic64_add(r->nr_completed, &ctx->events.completed);
}

static __always_inline void give_own(struct fxk_runner *r)
{
	struct fxk_ctx *ctx = r->ctx;

	/* It is in no call. Order: see fxk_look_at_own(). */
	smp_mb();
	if (unlikely(READ_ONCE(ctx->poking))) {
		spin_lock_irq(&ctx->lock);
		spin_unlock_irq(&ctx->lock);
	}
	end(r);
	smp_store_release(&r->task, NULL);
}

int fxk_runner_begin(struct fxk_runner *r, struct fxk_ctx *ctx)
{
	if (unlikely(is_runner()))
		return -EDEADLK;
	fxk_runner_init(r, ctx);
	r->task = current;
	preempt_notifier_register(&r->mark);
	spin_lock_irq(&ctx->lock);
	hlist_add_head(&r->link, &ctx->runners);
	fxk_watch(ctx);
	spin_unlock_irq(&ctx->lock);
	return 0;
}

void fxk_runner_end(struct fxk_runner *r)
{
	spin_lock_irq(&r->ctx->lock);
	__hlist_del(&r->link);
	spin_unlock_irq(&r->ctx->lock);
	end(r);
}

/* Ready ------------------------------------------------------------------- */

static struct fxk_call *next_ready(struct fxk_ctx *ctx)
{
	struct fxk_call *call;

	spin_lock_irq(&ctx->lock);
	call = list_first_entry_or_null(&ctx->ready, struct fxk_call, link);
	if (call) {
		list_del(&call->link);
		call->state = FXK_HELD;
	}
	if (list_empty(&ctx->ready))
		WRITE_ONCE(fxk_header(ctx)->run_wanted, 0);
	spin_unlock_irq(&ctx->lock);
	return call;
}

static void resume(struct fxk_runner *r, struct fxk_call *call)
{
	u32 index = call->index;
	s64 ret;

	trace_flexsc_resume(r->ctx, index, call->nr);
	fxk_disarm(call);
	WRITE_ONCE(r->current_entry, index);
	if (!fxk_resume(r, call, &ret)) {
		fxk_go(r, call, false);
		return;
	}
	/* First: once it is complete the owner may use the entry again. */
	fxk_call_put(r, call);
	WRITE_ONCE(r->current_entry, FXK_BETWEEN);
	fxk_complete(r, index, ret);
}

static u32 run_ready(struct fxk_runner *r)
{
	struct fxk_ctx *ctx = r->ctx;
	struct fxk_call *call;
	u32 nr = 0;

	while (nr < ROUND && !list_empty(&ctx->ready) && !r->error &&
	       !signal_pending(current)) {
		WRITE_ONCE(r->current_entry, FXK_BETWEEN);
		call = next_ready(ctx);
		if (!call)
			break;
		resume(r, call);
		nr++;
		cond_resched();
	}
	WRITE_ONCE(r->current_entry, FXK_NO_ENTRY);
	return nr;
}

/* Submissions ------------------------------------------------------------- */

static void notice(struct fxk_runner *r, u32 index)
{
	fxk_cancel(r->ctx, index);
	fxk_put(r, index | FLEXSC_SLOT_NOTICE, 0);
	r->nr_notices++;
}

/* Chains, and whatever the straight way does not know. */
static bool take_slowly(struct fxk_runner *r)
{
	u32 indices[FLEXSC_MAX_CHAIN];
	struct fxk_call *call;
	int nr;

	WRITE_ONCE(r->current_entry, FXK_BETWEEN);
	nr = fxk_take(r, indices);
	switch (nr) {
	case 0:
		return false;
	case -1:
		notice(r, indices[0]);
		return true;
	case -2:
		fxk_count(r->ctx, dropped);
		return true;
	}
	r->nr_taken += nr;
	call = fxk_chain_new(r, indices, nr);
	if (call)
		fxk_go(r, call, true);
	for (int i = 0; !call && i < nr; i++)
		fxk_complete(r, indices[i], -ENOMEM);
	return true;
}

/* Once it is taken: chains have no business here, nor have rare numbers. */
#define STRAIGHT_HEAD (0xff000000u | (0xffffu & ~(FXK_NR_ROWS - 1)))

/* After which somebody wants something of this thread. */
#define WANTED                                                    \
	(_TIF_SIGPENDING | _TIF_NOTIFY_SIGNAL | _TIF_NEED_RESCHED | \
	 _TIF_NOTIFY_RESUME)

/* Its result is unusual, or it is. */
static void go_on(struct fxk_runner *r, u32 index, unsigned int nr)
{
	r->now.index = index;
	r->now.nr = nr;
	r->now.flags = 0;
	r->now.done = 0;
	r->now.thread = r->now.denied = false;
	fxk_go(r, &r->now, false);
}

static bool is_final(s64 ret, u16 what)
{
	/* A close is over whatever it says. */
	return (!fxk_is_restart(ret) && ret != -EINTR) || what & FXK_CLOSES;
}

/* Not by the fast way. */
static noinline void complete_slowly(struct fxk_runner *r,
				     struct flexsc_entry *entry, u32 index,
				     unsigned int nr, s64 ret)
{
	if (!is_final(ret, fxk_call_of(nr))) {
		go_on(r, index, nr);
		return;
	}
	WRITE_ONCE(r->current_entry, FXK_BETWEEN);
	fxk_complete_at(r, entry, index, ret);
}

/*
 * Somebody wants something. What the call left to be done is done before it
 * completes. Return: is the runner to stop?
 */
static noinline bool see_to(struct fxk_runner *r)
{
	if (fxk_has_work())
		fxk_do_work(r);
	if (need_resched())
		cond_resched();
	return signal_pending(current) || READ_ONCE(r->error);
}

/* Behind each call. */
static __always_inline void look_up(struct fxk_runner *r, struct fxk_stretch *s)
{
	if (unlikely(READ_ONCE(current_thread_info()->flags) & WANTED) &&
	    see_to(r))
		s->end = s->slot + 1;
}

static __always_inline s64 dispatch(struct fxk_runner *r, struct fxk_stretch *s,
				    unsigned int nr)
{
	s64 ret;

	WRITE_ONCE(r->seq, (u32)s->head);
	ret = static_call(fxk_x64_sys_call)(&r->now.regs, nr);
	look_up(r, s);
	return ret;
}

/* No result: the call went another way. */
#define ELSEWHERE S64_MIN

static __always_inline enum fxk_quick
quick_on_descriptor(struct fxk_runner *r, const struct fxk_stretch *s,
		    u32 index)
{
	struct fxk_call *call = &r->now;

	if (fxk_is_of_files(call->nr) && fxk_never_waits(call->regs.di))
		return call->nr < FLEXSC_NR_READY_IN ? FXK_QUICK_PLAIN :
						       FXK_QUICK_NOT;
	if (!fxk_is_of_bytes(call->nr))
		return FXK_QUICK_NOT;
	WRITE_ONCE(r->seq, (u32)s->head);
	return fxk_quick(r, index);
}

/*
 * What is not marked FXK_STRAIGHT: most of it can be made at once all the
 * same. Return: the result, if it is_final(); or ELSEWHERE.
 */
static noinline s64 make_bent(struct fxk_runner *r, struct fxk_stretch *s,
			      u32 index, unsigned int nr)
{
	u16 what = fxk_calls[nr];
	enum fxk_quick quick = FXK_QUICK_NOT;
	struct fxk_like *was = &r->was;
	s64 ret;

	r->now.nr = nr;
	if ((what & FXK_CLASS) == FXK_FD)
		quick = quick_on_descriptor(r, s, index);
	else if ((what & FXK_CLASS) == FXK_DISK &&
		 (!(what & FXK_CLOSES) || fxk_closes_nothing(r)))
		quick = FXK_QUICK_PLAIN;
	switch (quick) {
	case FXK_QUICK_PLAIN:
		fxk_quiet(r, what);
		return dispatch(r, s, nr);
	case FXK_QUICK_OVER:
		look_up(r, s);
		return was->ret;
	case FXK_QUICK_ASK:
	case FXK_QUICK_MADE:
		ret = was->ret;
		if (unlikely(quick == FXK_QUICK_ASK))
			ret = dispatch(r, s, was->ask_nr);
		else
			look_up(r, s);
		if (likely(fxk_quick_done(&r->now, was, ret)))
			return ret;
		r->now.index = index;
		r->now.flags = 0;
		r->now.thread = false;
		fxk_go(r, &r->now, false);
		break;
	case FXK_QUICK_NOT:
		go_on(r, index, nr);
		break;
	case FXK_QUICK_GONE:
		break;
	}
	cond_resched();
	if (unlikely(signal_pending(current) || r->error))
		s->end = s->slot + 1;
	return ELSEWHERE;
}

/* An entry that is ours: BUSY. Shortens @s if the runner is to stop. */
static __always_inline void carry_out(struct fxk_runner *r,
				      struct fxk_ctx *ctx,
				      struct fxk_stretch *s,
				      struct flexsc_set *set, u32 index,
				      struct flexsc_entry *entry,
				      unsigned int nr)
{
	u16 what = fxk_calls[nr];
	s64 ret;

	trace_flexsc_start(ctx, index, nr);
	fxk_arguments(&r->now.regs, entry, what);
	ret = likely(what & FXK_STRAIGHT) ? dispatch(r, s, nr) :
					    make_bent(r, s, index, nr);
	/* Restart codes and what has no room in a slot are not. */
	if (unlikely((u64)ret > S32_MAX)) {
		if (ret != ELSEWHERE)
			complete_slowly(r, entry, index, nr, ret);
		return;
	}
	WRITE_ONCE(entry->ret, ret);
	smp_store_release(&entry->status, FLEXSC_DONE);
	trace_flexsc_done(ctx, index, ret);
	fxk_put_narrow(r, set, index, ret);
	r->nr_completed++;
}

/* It was not SUBMITTED when it was taken. */
static noinline void take_back(struct fxk_runner *r, u32 index, u32 status)
{
	if (status == FLEXSC_CANCEL)
		fxk_complete(r, index, -ECANCELED);
	else
		fxk_count(r->ctx, dropped);
}

/* Return: false: nobody ever wrote there. */
static bool find_stretch(struct fxk_runner *r, struct fxk_stretch *s)
{
	struct fxk_ctx *ctx = r->ctx;
	struct fxk_view *view = &r->sq;
	u32 slot, left;
	unsigned long at;

	s->head = fxk_sq_head(ctx);
	fxk_view_move(ctx, view, fxk_header(ctx)->sq_start, s->head);
	slot = fxk_view_slot(view, s->head);
	at = READ_ONCE(ctx->pages[ctx->sq_page + slot / (PAGE_SIZE / 4)]);
	if (unlikely(!at))
		return false;
	left = min_t(u32, PAGE_SIZE / 4 - slot % (PAGE_SIZE / 4),
		     view->mask + 1 - ((u32)s->head & view->mask));
	if (s->head < view->until)
		left = min_t(u64, left, view->until - s->head);
	s->slot = (u32 *)at + slot % (PAGE_SIZE / 4);
	s->end = s->slot + left;
	s->tag = fxk_view_tag(view, s->head);
	s->until = view->until;
	s->next_start = &fxk_header(ctx)->sq_start[view->segment + 1];
	return true;
}

/* Is what is known of it still so? */
static __always_inline bool is_current(const struct fxk_ctx *ctx,
				       const struct fxk_stretch *s)
{
	return s->slot != s->end && s->head == fxk_sq_head(ctx) &&
	       s->until == READ_ONCE(*s->next_start);
}

/*
 * A slot that is no usual one; @value: less its tag. Return: false: there is
 * nothing, or nothing may be taken.
 */
static noinline bool take_unusual(struct fxk_runner *r, u64 head, u32 value)
{
	if (value & FXK_TAG_MASK)
		return fxk_sq_head(r->ctx) != head;
	return !READ_ONCE(r->ctx->stopped) && take_slowly(r);
}

/*
 * As many as there are in one stretch. Return: false if there was nothing
 * more, or nothing may be taken.
 */
static __always_inline bool run_stretch(struct fxk_runner *r,
					struct fxk_stretch *s)
{
	const unsigned long watched = READ_ONCE(fxk_watch_mask);
	struct fxk_ctx *ctx = r->ctx;
	const u32 limit = READ_ONCE(ctx->limit);
	struct flexsc_set *set = fxk_header(ctx);
	unsigned long *entries = ctx->pages + ctx->entries_page;

	OPTIMIZER_HIDE_VAR(entries);
	for (; s->slot != s->end; s->slot++) {
		u32 index = smp_load_acquire(s->slot) ^ s->tag;
		u32 status = FLEXSC_SUBMITTED;
		u64 word, head = s->head;
		struct flexsc_entry *entry;

		if (unlikely(index >= limit))
			return take_unusual(r, head, index);
		if (unlikely(READ_ONCE(current_thread_info()->syscall_work) &
			     watched)) {
			r->error = -EACCES;
			return false;
		}
		index &= limit - 1; /* speculation is bound, too */
		entry = (void *)READ_ONCE(entries[index / FLEXSC_PAGE_ENTRIES]);
		if (unlikely(!entry))
			return take_slowly(r);
		entry += index % FLEXSC_PAGE_ENTRIES;
		word = READ_ONCE(*(u64 *)entry);
		if (unlikely(word >> 32 & STRAIGHT_HEAD))
			return take_slowly(r);
		WRITE_ONCE(r->current_entry, index);
		if (unlikely(!try_cmpxchg(&set->sq_head, &head, head + 1)))
			return true;
		s->head++;
		if (unlikely(!try_cmpxchg(&entry->status, &status,
					  FLEXSC_BUSY))) {
			take_back(r, index, status);
			continue;
		}
		carry_out(r, ctx, s, set, index, entry,
			  word >> 32 & (FXK_NR_ROWS - 1));
	}
	return true;
}

static u32 run_submitted(struct fxk_runner *r)
{
	struct fxk_stretch s = r->at;
	u32 nr = 0;
	bool more;

	while (!READ_ONCE(r->ctx->stopped)) {
		u64 first;

		if (unlikely(!is_current(r->ctx, &s)) && !find_stretch(r, &s))
			break;
		first = s.head;
		more = run_stretch(r, &s);
		r->nr_taken += s.head - first;
		nr += s.head - first + more;
		if (likely(!more) || r->error || signal_pending(current) ||
		    nr >= ROUND)
			break;
		if (unlikely(need_resched()))
			cond_resched();
	}
	WRITE_ONCE(r->current_entry, FXK_NO_ENTRY);
	r->at = s;
	return nr;
}

bool fxk_run_some(struct fxk_runner *r)
{
	u32 nr = 0;

	if (unlikely(!list_empty(&r->ctx->ready)))
		nr = run_ready(r);
	if (!r->error)
		nr += run_submitted(r);
	return nr;
}

/* RUN --------------------------------------------------------------------- */

static bool has_reason(struct fxk_ctx *ctx)
{
	return READ_ONCE(ctx->wake) || READ_ONCE(ctx->event) ||
	       !list_empty(&ctx->ready) || READ_ONCE(ctx->stopped);
}

/* Return: 0 woken, -ETIME, -EINTR. */
static int nap(struct fxk_runner *r, ktime_t *until)
{
	struct fxk_ctx *ctx = r->ctx;
	DEFINE_WAIT(wait);
	int bad = 0;

	fxk_watch_pause(r);
	prepare_to_wait(&ctx->owner_wq, &wait, TASK_INTERRUPTIBLE);
	/* Order: pairs with fxk_tell(). */
	smp_mb();
	if (signal_pending(current))
		bad = -EINTR;
	else if (!has_reason(ctx) &&
		 !schedule_hrtimeout_range(until, 50 * NSEC_PER_USEC,
					   HRTIMER_MODE_ABS))
		bad = -ETIME;
	finish_wait(&ctx->owner_wq, &wait);
	fxk_watch_resume(r);
	return bad;
}

static ktime_t *deadline(u64 timeout_ns, ktime_t *until)
{
	if (timeout_ns > KTIME_MAX / 2)
		return NULL;
	*until = ktime_add_ns(ktime_get(), timeout_ns);
	return until;
}

/* Until something completes, here or in a thread. */
static long run_and_sleep(struct fxk_runner *r, u64 timeout_ns)
{
	struct fxk_ctx *ctx = r->ctx;
	ktime_t at, *until = deadline(timeout_ns, &at);
	u64 queued = atomic64_read(&ctx->events.queued);
	int bad = 0;

	for (;;) {
		while (fxk_run_some(r) && !r->error && !signal_pending(current))
			cond_resched();
		if (r->error || r->nr_completed || xchg(&ctx->wake, 0) ||
		    READ_ONCE(ctx->stopped))
			break;
		if ((atomic64_read(&ctx->events.queued) != queued ||
		     READ_ONCE(ctx->short_of)) &&
		    fxk_wants_threads(ctx))
			break;
		if (xchg(&ctx->event, 0) && list_empty(&ctx->ready))
			break;
		/* A notice of our own poking is no reason to come back. */
		if (unlikely(fxk_has_work()))
			fxk_do_work(r);
		bad = nap(r, until);
		if (bad)
			break;
	}
	return bad == -ETIME ? 0 : bad;
}

static __always_inline long run(struct fxk_runner *r, u64 timeout_ns)
{
	struct fxk_ctx *ctx = r->ctx;
	const struct cred *before;
	long ret = 0;

	fxk_count(ctx, runs);
	if (unlikely(current_cred() != READ_ONCE(ctx->cred))) {
		spin_lock_irq(&ctx->lock);
		before = ctx->cred;
		ctx->cred = get_current_cred();
		spin_unlock_irq(&ctx->lock);
		put_cred(before);
	}
	if (timeout_ns) {
		ret = run_and_sleep(r, timeout_ns);
	} else {
		/* Order: before the look at what is ready; see tell_runner(). */
		if (READ_ONCE(ctx->event))
			xchg(&ctx->event, 0);
		fxk_run_some(r);
	}
	return unlikely(r->error) ? r->error : ret;
}

/* Two threads at once, which is rare. */
static noinline long run_beside(struct fxk_ctx *ctx, u64 timeout_ns)
{
	struct fxk_runner r NOT_ZEROED;
	long ret = fxk_runner_begin(&r, ctx);

	if (ret)
		return ret;
	ret = run(&r, timeout_ns);
	fxk_runner_end(&r);
	return ret;
}

long fxk_run(struct fxk_ctx *ctx, u64 timeout_ns)
{
	long ret;

	if (unlikely(is_runner()))
		return -EDEADLK;
	if (likely(take_own(ctx))) {
		ret = run(ctx->own, timeout_ns);
		give_own(ctx->own);
	} else {
		ret = run_beside(ctx, timeout_ns);
	}
	/* What becomes of it is the owner's from now on. */
	if (unlikely(READ_ONCE(ctx->short_of)) && !ret) {
		WRITE_ONCE(ctx->short_of, false);
		WRITE_ONCE(fxk_header(ctx)->threads_wanted, 0);
	}
	return ret ? ret : fxk_wants_threads(ctx);
}
