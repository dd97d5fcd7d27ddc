/* SPDX-License-Identifier: MIT */
/* Joining, detaching and canceling threads; see threads/create.h. */
#include "threads/create.h"
#include "threads/lot.h"
#include "threads/recycle.h"
#include "threads/relay.h"
#include "threads/stacks.h"
#include "threads/time.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Another thread's copy of fx_task_self is as far from its thread pointer,
 * which is its pthread_t, as ours from ours.
 */
static struct fx_thread **slot_of(pthread_t thread)
{
	uintptr_t offset =
		(uintptr_t)&fx_task_self - (uintptr_t)fx_arch_thread_pointer();

	return (struct fx_thread **)((uintptr_t)thread + offset);
}

struct fx_thread *fx_thread_of(pthread_t thread)
{
	return fx_load_acquire(slot_of(thread));
}

void fx_thread_publish(pthread_t thread, struct fx_thread *record)
{
	fx_store_release(slot_of(thread), record);
}

/*
 * Not made by fx_thread_create(), or known again by what it did past its end:
 * nobody here hears of its end.
 */
static bool is_libcs(const struct fx_thread *t)
{
	return t->stays == FX_HOME_MAIN || t->stays == FX_HOME_FOREIGN;
}

/* NULL: ended for good, or not ours to join. Under the bucket's lock. */
static struct fx_thread *joinable(pthread_t thread)
{
	struct fx_thread *t = fx_thread_of(thread);

	return t && !is_libcs(t) ? t : NULL;
}

/* One change of another thread's life. */
struct change {
	pthread_t thread;
	uint32_t refuse; /* bits that forbid it */
	uint32_t need; /* bits that it needs */
	uint32_t set, clear;
	struct fx_thread *t; /* of joinable(), or any */
	uint32_t life; /* before */
	bool done;
};

static void change_locked(void *arg)
{
	struct change *c = arg;

	c->t = joinable(c->thread);
	if (!c->t)
		return;
	c->life = c->t->life;
	c->done = !(c->life & c->refuse) && (c->life & c->need) == c->need;
	if (c->done)
		c->t->life = (c->life & ~c->clear) | c->set;
}

static void change(struct change *c)
{
	struct fx_thread *me = fx_thread_known();

	if (me)
		fx_thread_enter(me);
	fx_lot_locked((void *)c->thread, change_locked, c);
	if (me)
		fx_thread_leave(me);
}

struct join {
	pthread_t thread;
	struct fx_thread *ended; /* and kept */
};

static bool still_runs(void *arg)
{
	struct join *join = arg;
	struct fx_thread *t = joinable(join->thread);

	if (!t)
		return false;
	if (t->life & FX_LIFE_ENDED)
		join->ended = t;
	return !join->ended;
}

static int wait_for(struct fx_thread *me, struct join *join,
		    const struct fx_deadline *deadline)
{
	struct fx_lot_wait wait = { .key = (void *)join->thread,
				    .where = "join",
				    .deadline = deadline,
				    .cancel = true,
				    .tag = 1,
				    .check = still_runs,
				    .arg = join };
	enum fx_reason why;

	do {
		fx_thread_cancel_point(me);
		fx_thread_enter(me);
		why = fx_lot_wait(me, &wait);
		fx_thread_leave(me);
		if (why == FX_WOKEN_TIMEOUT)
			return ETIMEDOUT;
	} while (why);
	return 0;
}

static void give_up(void *thread)
{
	struct change c = { .thread = (pthread_t)thread,
			    .clear = FX_LIFE_JOINING };

	change(&c);
}

/* One that has only its last steps left, or that is not ours. */
static int join_by_libc(pthread_t thread, void **result,
			const struct fx_deadline *deadline)
{
	struct timespec ts;
	int bad;

	if (deadline) {
		ts = fx_timespec(deadline->at_ns);
		bad = pthread_clockjoin_np(thread, result,
					   fx_clock_id(deadline->clock), &ts);
	} else {
		bad = pthread_join(thread, result);
	}
	if (!bad)
		fx_stack_joined(thread);
	return bad;
}

int fx_thread_join(pthread_t thread, void **result,
		   const struct fx_deadline *deadline)
{
	struct change c = { .thread = thread,
			    .refuse = FX_LIFE_DETACHED | FX_LIFE_JOINING,
			    .set = FX_LIFE_JOINING };
	struct join join = { .thread = thread };
	struct fx_thread *me;
	int bad;

	fx_thread_lent();
	me = fx_thread_known();
	if (!me || thread == pthread_self())
		return join_by_libc(thread, result, deadline);
	change(&c);
	if (!c.t) {
		/* It may be the first thread, which runs for long. */
		fx_thread_home(me, FX_HOME_CALL);
		return join_by_libc(thread, result, deadline);
	}
	if (!c.done)
		return EINVAL;
	/* It has ended long ago, for who asks. */
	if (c.life & FX_LIFE_LEAVING)
		deadline = NULL;
	pthread_cleanup_push(give_up, (void *)thread);
	bad = wait_for(me, &join, deadline);
	pthread_cleanup_pop(0);
	if (bad) {
		give_up((void *)thread);
		return bad;
	}
	if (!join.ended)
		return join_by_libc(thread, result, deadline);
	if (result)
		*result = join.ended->result;
	fx_recycle_put(join.ended);
	return 0;
}

int fx_thread_tryjoin(pthread_t thread, void **result)
{
	struct change c = { .thread = thread,
			    .refuse = FX_LIFE_DETACHED | FX_LIFE_JOINING,
			    .need = FX_LIFE_ENDED,
			    .set = FX_LIFE_JOINING };
	int bad;

	if (thread == pthread_self())
		return pthread_tryjoin_np(thread, result);
	change(&c);
	if (!c.t) {
		bad = pthread_tryjoin_np(thread, result);
		if (!bad)
			fx_stack_joined(thread);
		return bad;
	}
	if (!c.done && c.life & FX_LIFE_LEAVING && !(c.life & c.refuse))
		return fx_thread_join(thread, result, NULL);
	if (!c.done)
		return c.life & c.refuse ? EINVAL : EBUSY;
	if (result)
		*result = c.t->result;
	fx_recycle_put(c.t);
	return 0;
}

int fx_thread_detach(pthread_t thread)
{
	struct change c = { .thread = thread,
			    .refuse = FX_LIFE_DETACHED,
			    .set = FX_LIFE_DETACHED };

	change(&c);
	if (!c.t)
		return pthread_detach(thread);
	if (!c.done)
		return EINVAL;
	if (c.life & FX_LIFE_ENDED)
		fx_recycle_put(c.t);
	return 0;
}

struct ending {
	struct fx_thread *me;
	bool marked, detached;
};

/* Once: the next time it may be another thread's life already. */
static void mark_ended(void *arg, bool left)
{
	struct ending *e = arg;

	(void)left;
	if (e->marked)
		return;
	e->marked = true;
	e->detached = e->me->life & FX_LIFE_DETACHED;
	e->me->life |= FX_LIFE_ENDED;
}

bool fx_thread_ended(struct fx_thread *me)
{
	struct ending e = { .me = me };

	fx_lot_wake((void *)me->self, UINT32_MAX, FX_LOT_ANY, mark_ended, &e);
	return e.detached;
}

static void take_away(void *arg, bool left)
{
	(void)left;
	if (fx_task_self)
		fx_task_detach(arg);
}

static void leave_locked(void *arg)
{
	struct ending *e = arg;

	if (!(e->me->life & FX_LIFE_ENDED) ||
	    e->me->life & (FX_LIFE_DETACHED | FX_LIFE_JOINING))
		return;
	e->me->exiting = 1; /* whoever cancels it comes too late */
	e->me->life = FX_LIFE_LEAVING;
	e->marked = true;
}

bool fx_thread_leaves(struct fx_thread *me)
{
	struct ending e = { .me = me };

	fx_thread_enter(me);
	fx_lot_locked((void *)me->self, leave_locked, &e);
	fx_thread_leave(me);
	return e.marked;
}

bool fx_thread_gone(struct fx_thread *me)
{
	fx_lot_wake((void *)me->self, UINT32_MAX, FX_LOT_ANY, take_away,
		    &me->task);
	return me->life & FX_LIFE_DETACHED;
}

static bool locked(pthread_t thread, void (*what)(void *))
{
	struct change c = { .thread = thread };
	struct fx_thread *me = fx_thread_known();

	if (me)
		fx_thread_enter(me);
	fx_lot_locked((void *)thread, what, &c);
	if (me)
		fx_thread_leave(me);
	return c.done;
}

static void wear_locked(void *arg)
{
	struct change *c = arg;

	c->t = fx_thread_of(c->thread);
	if (!c->t)
		return;
	c->t->worn = true;
	c->done = c->t->life & (FX_LIFE_ENDED | FX_LIFE_LEAVING);
}

bool fx_thread_wear(pthread_t thread)
{
	return locked(thread, wear_locked);
}

struct number {
	pid_t tid;
	bool ended, lives;
};

/* Late by a moment is as good: nobody can know when a thread has ended. */
static void compare(struct fx_thread *t, void *arg)
{
	struct number *of = arg;

	if (t->tid != of->tid)
		return;
	if (fx_load_relaxed(&t->life) & (FX_LIFE_ENDED | FX_LIFE_LEAVING))
		of->ended = true;
	else
		of->lives = true;
}

bool fx_thread_is_gone(pid_t process, pid_t tid)
{
	struct number of = { .tid = tid };

	if (tid <= 0 || !fx_load_relaxed(&fx_threads_running) ||
	    (process != -1 && process != getpid()) || tid == getpid())
		return false;
	fx_threads_walk(compare, &of);
	/* In a child of fork the parent's are there still, by their numbers. */
	return of.ended && !of.lives &&
	       fx_arch_syscall(SYS_tgkill, getpid(), tid, 0, 0, 0, 0) == 0;
}

static void keep(struct fx_thread *t, void *arg)
{
	(void)arg;
	t->worn = true;
	t->stays = FX_HOME_IDENTITY;
	fx_interrupt(&t->task, FX_PENDING_HOME);
	fx_relay_call_home(t); /* from between calls, too */
}

static void keep_locked(void *arg)
{
	struct change *c = arg;

	c->t = fx_thread_of(c->thread);
	if (c->t)
		keep(c->t, NULL);
}

void fx_thread_keep_home(pthread_t thread)
{
	locked(thread, keep_locked);
}

void fx_threads_keep_home(void)
{
	fx_exchange(&fx_threads_stay, 1u);
	fx_fence_after_cas();
	fx_threads_walk(keep, NULL);
}

static void hurry_locked(void *arg)
{
	struct change *c = arg;

	c->t = fx_thread_of(c->thread);
	if (c->t && !(c->t->life & FX_LIFE_ENDED))
		fx_interrupt(&c->t->task, FX_PENDING_HOME);
}

void fx_thread_hurry(pthread_t thread)
{
	locked(thread, hurry_locked);
}

static void interrupt_locked(void *arg)
{
	struct change *c = arg;

	c->t = fx_thread_of(c->thread);
	c->done = c->t && c->t->life & FX_LIFE_ENDED;
	if (!c->t || c->done)
		return;
	pthread_cancel(c->thread);
	c->life = 1;
	fx_interrupt(&c->t->task, FX_PENDING_CANCEL);
}

int fx_thread_cancel(pthread_t thread)
{
	struct change c = { .thread = thread };
	struct fx_thread *me = fx_thread_known();

	if (!me || thread == pthread_self())
		return pthread_cancel(thread);
	fx_thread_enter(me);
	fx_lot_locked((void *)thread, interrupt_locked, &c);
	fx_thread_leave(me);
	if (!c.t)
		return pthread_cancel(thread);
	return 0;
}
