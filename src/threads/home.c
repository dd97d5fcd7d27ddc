/* SPDX-License-Identifier: MIT */
/*
 * Going home and coming back; what waits for a thread there: signals that its
 * kernel thread has taken note of (threads/relay.c), and its cancelation.
 */
#include "threads/thread.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "threads/alternate.h"
#include "threads/mask.h"

#include <sched.h>
#include <sys/syscall.h>

#define OFTEN 20000u /* goes home in a second: not worth coming back */
#define PERIOD_MS 1000u

struct fx_thread_counters fx_thread_counters;
uint32_t fx_threads_running;

/*
 * What was noted while it was away is delivered here, by the kernel. On the way
 * no interruption reaches a thread: one that may be canceled anywhere looks.
 */
static void settle(struct fx_thread *me)
{
	if (me->inside)
		return;
	if (fx_task_asked(&me->task, FX_PENDING_SIGNAL))
		fx_mask_set(me->mask);
	if (fx_unlikely(me->cancel_async) && fx_thread_canceled(me))
		fx_thread_attend(me, true);
}

static void count_often(struct fx_thread *me)
{
	uint32_t now_ms = fx_now_ms_coarse();

	if (now_ms - me->often_ms >= PERIOD_MS) {
		me->often_ms = now_ms;
		me->often = 0;
	}
	if (++me->often > OFTEN)
		fx_thread_stay(me, FX_HOME_OFTEN);
}

/* No handler runs there before it has its alternate stack again. */
static void go(struct fx_thread *me, enum fx_home_reason reason)
{
	fx_fetch_add(&fx_thread_counters.homes[reason], 1ull);
	fx_thread_enter(me);
	fx_go_home(&me->task);
	fx_alternate_back(me);
	fx_store_relaxed(&me->inside, me->inside - 1);
}

void fx_thread_home(struct fx_thread *me, enum fx_home_reason reason)
{
	if (!me->task.carrier)
		return;
	go(me, reason);
	settle(me);
	count_often(me);
}

void fx_thread_stay(struct fx_thread *me, enum fx_home_reason reason)
{
	if (!me->stays) {
		me->stays = (uint8_t)reason;
		fx_fetch_add(&fx_thread_counters.homes[reason], 1ull);
	}
	if (me->task.carrier) {
		go(me, reason);
		settle(me);
	}
}

/* On the alternate stack a handler may have been called by one on the other. */
bool fx_thread_at_work(struct fx_thread *me, uintptr_t sp)
{
	bool was_on = fx_alternate_holds(&me->alternate, me->handler_frame);
	bool left = fx_alternate_holds(&me->alternate, sp) == was_on ?
			    sp > me->handler_frame :
			    was_on;

	if (left)
		me->at_work = 0;
	return me->at_work;
}

struct fx_thread *fx_thread_return(struct fx_thread *me)
{
	if (me->stays || me->inside || me->held || me->exiting ||
	    !fx_load_relaxed(&fx_threads_running) ||
	    (me->at_work &&
	     fx_thread_at_work(me, (uintptr_t)__builtin_frame_address(0))))
		return NULL;
	me->mask = fx_mask_now();
	fx_thread_enter(me);
	if (fx_likely(fx_alternate_leave(me)))
		fx_task_lend(&me->task);
	fx_thread_leave(me);
	return me->task.carrier ? me : NULL;
}

void fx_thread_attend(struct fx_thread *me, bool cancel)
{
	if (fx_load_relaxed(&me->task.pending) &
	    (FX_PENDING_SIGNAL | FX_PENDING_HOME)) {
		fx_task_asked(&me->task, FX_PENDING_HOME);
		fx_thread_home(me, FX_HOME_SIGNAL);
		settle(me);
	}
	if (cancel && fx_thread_canceled(me)) {
		fx_thread_home(me, FX_HOME_CANCEL);
		fx_task_asked(&me->task, FX_PENDING_CANCEL);
		/* To the C library's own handler: its state is what counts. */
		fx_arch_syscall(SYS_tgkill,
				fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
				me->tid, FX_SIGNAL_CANCEL, 0, 0, 0);
		pthread_testcancel();
	}
}
