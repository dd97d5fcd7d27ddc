/* SPDX-License-Identifier: MIT */
/* Making threads, and what runs first and last in them. */
#include "threads/create.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "base/futex.h"
#include "call/seen.h"
#include "threads/alive.h"
#include "threads/alternate.h"
#include "threads/cleanup.h"
#include "threads/mask.h"
#include "threads/recycle.h"
#include "threads/stacks.h"
#include "threads/start.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * From the return of pthread_create() on others find the record, although the
 * thread may not have run yet; and who runs finds its number where the creator
 * wanted it. Who comes first of the two does both: the creator may come when
 * the thread has ended, and with it the memory of either; the thread, when the
 * creator's is gone. The other one waits for that, and not for it at its end:
 * somebody may be waiting for its stack then (threads/stacks.h).
 */
enum {
	NOT_PUBLISHED,
	BEING_PUBLISHED,
	AWAITED,
	PUBLISHED
};

uint32_t fx_threads_stay;

static void publish(struct fx_thread *t)
{
	uint32_t seen = NOT_PUBLISHED;

	if (fx_cas(&t->published, &seen, (uint32_t)BEING_PUBLISHED)) {
		*t->out = t->self;
		fx_thread_publish(t->self, t);
		if (fx_exchange(&t->published, (uint32_t)PUBLISHED) == AWAITED)
			fx_futex_wake(&t->published, 1);
		return;
	}
	if (seen == BEING_PUBLISHED)
		fx_cas(&t->published, &seen, (uint32_t)AWAITED);
	while (fx_load_acquire(&t->published) != PUBLISHED)
		fx_futex_wait(&t->published, AWAITED, FX_NEVER);
}

/* By the last of two: the thread at its end, and its creator. */
static void put(struct fx_thread *t)
{
	if (fx_fetch_add(&t->holders, UINT32_MAX) == 1)
		fx_thread_free(t);
}

void fx_create_after_fork(void)
{
	struct fx_thread *me = fx_thread_self();

	if (!me)
		return;
	/* Its creator, who may not have been so far, is not here. */
	me->holders = 1;
	me->needs = false;
	me->tid = (pid_t)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/*
 * The thread ends for good: by returning, or at the end of any unwinding. From
 * here on it is the C library's alone, which runs destructors.
 */
static void end(void *arg)
{
	struct fx_thread *me = arg;
	bool needs = me->needs;
	uint64_t mask;

	me->exiting = 1;
	fx_thread_home(me, FX_HOME_EXIT);
	/* Of one that was kept, the last use has ended before. */
	if (fx_watched() && me->counted)
		fx_seen_exit(SYS_exit, me->tid, 0);
	fx_thread_enter(me);
	mask = fx_mask_swap(FX_MASK_HANDLED);
	if (fx_load_relaxed(&me->task.pending) & FX_PENDING_SIGNAL)
		mask = me->mask;
	if (fx_thread_gone(me))
		pthread_detach(pthread_self());
	fx_fetch_add(&fx_thread_counters.ended, 1ull);
	if (me->counted)
		fx_alive_leave(me, true);
	fx_stack_leave(me->own);
	me->tid = 0;
	put(me);
	if (needs)
		fx_sched_need_not();
	fx_mask_set(mask);
}

static void *run(struct fx_thread *me)
{
	struct _pthread_cleanup_buffer last;
	void *result;

	_pthread_cleanup_push(&last, end, me);
	do
		result = me->start(me->arg);
	while (fx_recycle(me, result));
	_pthread_cleanup_pop(&last, 0);
	end(me);
	return result;
}

static void *thread_main(void *arg)
{
	struct fx_thread *me = arg;

	me->tid = (pid_t)fx_arch_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	publish(me);
	fx_stack_begin(me->own, me->tid);
	fx_rseq_leave();
	fx_task_attach(&me->task, fx_thread_parking_top(me));
	fx_alternate_begin(me);
	if (me->by_carrier) {
		fx_arch_syscall(SYS_prctl, PR_SET_NAME, (long)fx_process_name,
				0, 0, 0, 0);
		fx_sched_unpin();
	}
	/* No handler has run here before, as it would have in no thread. */
	fx_mask_set(me->first_mask);
	/* Lent at its first blocking call: many a thread makes none. */
	return run(me);
}

/* What would not be true of a thread on carriers. */
static enum fx_home_reason must_stay(const pthread_attr_t *attr)
{
	int inherit = PTHREAD_INHERIT_SCHED, policy = SCHED_OTHER;
	cpu_set_t set;

	pthread_attr_getinheritsched(attr, &inherit);
	if (inherit == PTHREAD_EXPLICIT_SCHED)
		pthread_attr_getschedpolicy(attr, &policy);
	if (policy != SCHED_OTHER)
		return FX_HOME_IDENTITY;
	if (pthread_attr_getaffinity_np(attr, sizeof(set), &set) == 0 &&
	    fx_sched_restricts(&set))
		return FX_HOME_IDENTITY;
	return FX_HOME_NONE;
}

/* A mask asked for is set by the thread itself: the C library is not told. */
static void take_mask(struct fx_thread *t, const pthread_attr_t *attr)
{
	sigset_t set;

	if (pthread_attr_getsigmask_np(attr, &set))
		return;
	memcpy(&t->first_mask, &set, sizeof(t->first_mask));
	t->has_mask = true;
}

static void copy_all_but_mask(pthread_attr_t *copy, const pthread_attr_t *attr)
{
	struct sched_param param;
	cpu_set_t cpus;
	size_t size;
	void *stack;
	int value;

	pthread_attr_init(copy);
	pthread_attr_getguardsize(attr, &size);
	pthread_attr_setguardsize(copy, size);
	pthread_attr_getstack(attr, &stack, &size);
	if ((uintptr_t)stack + size != 0)
		pthread_attr_setstack(copy, stack, size);
	pthread_attr_getstacksize(attr, &size);
	pthread_attr_setstacksize(copy, size);
	pthread_attr_getinheritsched(attr, &value);
	pthread_attr_setinheritsched(copy, value);
	pthread_attr_getschedpolicy(attr, &value);
	pthread_attr_setschedpolicy(copy, value);
	pthread_attr_getschedparam(attr, &param);
	pthread_attr_setschedparam(copy, &param);
	if (pthread_attr_getaffinity_np(attr, sizeof(cpus), &cpus) == 0 &&
	    fx_sched_restricts(&cpus))
		pthread_attr_setaffinity_np(copy, sizeof(cpus), &cpus);
}

/* The application may use it again as soon as the thread has ended. */
static void look_at_stack(struct fx_thread *me, struct fx_thread *t,
			  const pthread_attr_t *attr)
{
	void *stack = NULL;
	size_t size = 0;
	bool given;

	pthread_attr_getstacksize(attr, &t->stack_size);
	pthread_attr_getguardsize(attr, &t->guard_size);
	pthread_attr_getstack(attr, &stack, &size);
	given = (uintptr_t)stack + size != 0;
	if (given)
		t->own = fx_stack_claim(me, stack, size);
	if ((given || !fx_thread_parking_top(t)) && !t->stays)
		t->stays = FX_HOME_STACK;
}

/* @copy: what the C library is given in place of @attr. */
static void look_at(struct fx_thread *me, struct fx_thread *t,
		    const pthread_attr_t *attr, pthread_attr_t *copy)
{
	int how = PTHREAD_CREATE_JOINABLE;

	t->stays = (uint8_t)must_stay(attr);
	pthread_attr_getdetachstate(attr, &how);
	if (how == PTHREAD_CREATE_DETACHED)
		t->life = FX_LIFE_DETACHED;
	look_at_stack(me, t, attr);
	take_mask(t, attr);
	if (t->has_mask)
		copy_all_but_mask(copy, attr);
	else
		*copy = *attr; /* flat */
	pthread_attr_setdetachstate(copy, PTHREAD_CREATE_JOINABLE);
}

/*
 * @me: inside. The new thread starts with signals blocked, and takes its mask
 * when it is known: from a carrier it would inherit the carrier's, and at home
 * a handler could run in it before.
 */
static int make(struct fx_thread *me, struct fx_thread *t, pthread_t *out,
		const pthread_attr_t *attr)
{
	uint64_t before = 0;
	int bad;

	t->by_carrier = me->task.carrier != NULL;
	if (!t->by_carrier)
		before = fx_mask_swap(FX_MASK_HANDLED);
	t->holders = 2;
	t->needs = !t->stays && fx_sched_need() == 0;
	if (!t->needs && !t->stays)
		t->stays = FX_HOME_CALL;
	t->out = out;
	/* Set before the thread begins. */
	bad = pthread_create(&t->self, attr, thread_main, t);
	if (bad) {
		fx_stack_drop(t->own);
		if (t->needs)
			fx_sched_need_not();
	} else {
		publish(t);
		put(t);
	}
	if (!me->task.carrier)
		fx_mask_set(before);
	return bad;
}

int fx_thread_create(pthread_t *out, const pthread_attr_t *attr,
		     void *(*start)(void *), void *arg)
{
	struct fx_thread *me, *t;
	pthread_attr_t copy, usual;
	bool has_mask, taken;
	int bad = 0;

	if (!fx_threads_start() || !(me = fx_thread_known()))
		return pthread_create(out, attr, start, arg);
	fx_thread_enter(me);
	t = fx_thread_new();
	if (!t || (!attr && pthread_getattr_default_np(&usual))) {
		if (t)
			fx_thread_free(t);
		fx_thread_leave(me);
		return EAGAIN;
	}
	look_at(me, t, attr ? attr : &usual, &copy);
	/* After the record is among all: it is seen there, or this is. */
	if (fx_load_acquire(&fx_threads_stay))
		t->stays = FX_HOME_IDENTITY;
	t->start = start;
	t->arg = arg;
	fx_fetch_add(&fx_thread_counters.created, 1ull);
	t->counted = true;
	fx_alive_add();
	has_mask = t->has_mask;
	if (!has_mask)
		t->first_mask = fx_mask_of(me);
	taken = fx_recycle_take(me, out, t);
	if (!taken)
		bad = make(me, t, out, &copy);
	if (has_mask)
		pthread_attr_destroy(&copy);
	if (!attr)
		pthread_attr_destroy(&usual);
	if (bad) {
		fx_alive_undo();
		/* Threads that could end wait for this carrier, perhaps. */
		fx_yield(&me->task);
	}
	if (bad || taken)
		fx_thread_free(t);
	fx_thread_leave(me);
	return bad;
}

void fx_thread_exits(void)
{
	struct fx_thread *me = fx_thread_self();

	if (!me)
		return;
	me->exiting = 1;
	fx_thread_home(me, FX_HOME_EXIT);
}
