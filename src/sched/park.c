/* SPDX-License-Identifier: MIT */
/*
 * Parking and waking in both places: on a carrier by a switch, at home by a
 * futex. The protocol is in sched/task.h; this brings its results about.
 */
#include "sched/park.h"

#include "base/clock.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

__thread struct fx_task *fx_task_self
	__attribute__((tls_model("initial-exec")));

/* The half of the state word that a futex can wait on. */
static uint32_t *low_half(struct fx_task *task)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (uint32_t *)&task->state + 1;
#else
	return (uint32_t *)&task->state;
#endif
}

static uint64_t left_ns(const struct fx_deadline *deadline)
{
	struct timespec ts;
	uint64_t now;

	if (!deadline)
		return FX_NEVER;
	clock_gettime(deadline->clock == FX_CLOCK_REALTIME ? CLOCK_REALTIME :
							     CLOCK_MONOTONIC,
		      &ts);
	now = (uint64_t)ts.tv_sec * FX_NS_PER_SEC + (uint64_t)ts.tv_nsec;
	now = deadline->at_ns > now ? deadline->at_ns - now : 0;
	if (deadline->clock == FX_CLOCK_REALTIME && now > FX_REALTIME_LOOK_NS)
		return FX_REALTIME_LOOK_NS;
	return now;
}

/* Parked at home until somebody wins, the deadline perhaps. */
static void wait_at_home(struct fx_task *me, const struct fx_deadline *deadline)
{
	for (;;) {
		uint64_t word = fx_load_acquire(&me->state);
		uint64_t left;

		if (fx_task_state(word) == FX_TASK_WOKEN)
			return;
		left = left_ns(deadline);
		if (left)
			fx_futex_wait(low_half(me), (uint32_t)word, left);
		else
			fx_task_wake(me, word & FX_TICKET_MASK,
				     FX_WOKEN_TIMEOUT);
	}
}

static enum fx_reason park_at_home(struct fx_task *me,
				   const struct fx_deadline *deadline)
{
	if (fx_task_publish(me, FX_TASK_HOME)) {
		if (fx_load_relaxed(&me->pending))
			fx_task_interrupt(me);
		wait_at_home(me, deadline);
	}
	return fx_task_take(me);
}

static bool add_timer(struct fx_queue *queue, struct fx_task *me,
		      const struct fx_deadline *deadline)
{
	struct fx_timers_heap *heap = &queue->timers[deadline->clock];
	uint64_t word = fx_load_relaxed(&me->state);

	fx_store_relaxed(&queue->waited, 1u);
	return fx_deadlines_add(heap, me, word & FX_TICKET_MASK,
				deadline->at_ns) == 0;
}

/* If it is elsewhere, it stays there without effect. */
static void forget_timer(struct fx_queue *queue, struct fx_task *me)
{
	if (me->heap >= queue->timers &&
	    me->heap < queue->timers + FX_NR_CLOCKS)
		fx_deadlines_remove(me->heap, me);
	me->heap = NULL;
}

/* @last: or NULL; see fx_park_last(). */
static inline enum fx_reason park_inside(struct fx_carrier *carrier,
					 struct fx_task *me, const char *where,
					 const struct fx_deadline *deadline,
					 uint32_t mask,
					 void (*last)(void *arg,
						      struct fx_task *next),
					 void *arg)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_task *next;

	fx_store_relaxed(&me->mask, mask);
	fx_store_relaxed(&me->where, where);
	fx_store_relaxed(&me->since_ms, fx_load_relaxed(&queue->now_ms));
	fx_probe3(park, me, where, me->on);
	if (deadline && !add_timer(queue, me, deadline)) {
		/* No memory: the kernel keeps the time. */
		enum fx_reason reason;

		if (last)
			last(arg, NULL);
		fx_away(carrier, me, FX_AFTER_HOME);
		reason = park_at_home(me, deadline);
		fx_task_lend(me);
		return reason;
	}
	fx_count(&queue->count, parks);
	next = fx_pick(carrier);
	if (last)
		last(arg, next);
	carrier = fx_away_to(carrier, me, next, FX_AFTER_PARK);
	if (carrier) {
		if (fx_unlikely(me->heap))
			forget_timer(carrier->queue, me);
		fx_leave(carrier);
	} else {
		me->heap = NULL;
		wait_at_home(me, deadline);
	}
	return fx_task_take(me);
}

enum fx_reason fx_park_inside(struct fx_carrier *carrier, struct fx_task *me,
			      const char *where,
			      const struct fx_deadline *deadline, uint32_t mask)
{
	return park_inside(carrier, me, where, deadline, mask, NULL, NULL);
}

enum fx_reason fx_park_last(struct fx_task *me, const char *where,
			    const struct fx_deadline *deadline, uint32_t mask,
			    void (*last)(void *arg, struct fx_task *next),
			    void *arg)
{
	struct fx_carrier *carrier =
		fx_likely(!fx_task_woken(me)) ? fx_enter(me) : NULL;

	if (fx_likely(carrier))
		return park_inside(carrier, me, where, deadline, mask, last,
				   arg);
	last(arg, NULL);
	return fx_park(me, where, deadline, mask);
}

enum fx_reason fx_park(struct fx_task *me, const char *where,
		       const struct fx_deadline *deadline, uint32_t mask)
{
	struct fx_carrier *carrier;

	if (fx_task_woken(me))
		return fx_task_take(me);
	carrier = fx_enter(me);
	if (fx_likely(carrier))
		return fx_park_inside(carrier, me, where, deadline, mask);
	fx_store_relaxed(&me->mask, mask);
	fx_store_relaxed(&me->where, where);
	fx_store_relaxed(&me->since_ms, fx_now_ms_coarse());
	fx_probe3(park, me, where, me->on);
	return park_at_home(me, deadline);
}

/*
 * Into the run queue of the calling task's carrier. A signal handler may have
 * interrupted that in the middle of anything: then, as from outside.
 */
static void ready_from_anywhere(struct fx_task *task)
{
	struct fx_task *me = fx_task_self;
	struct fx_carrier *carrier = me ? me->carrier : NULL;

	if (!carrier || fx_load_relaxed(&carrier->claim.busy)) {
		fx_make_ready(NULL, task);
		return;
	}
	if (fx_likely(fx_claim_enter(&carrier->claim)))
		fx_make_ready(carrier, task);
	else
		fx_make_ready(NULL, task);
	fx_leave(carrier);
}

static bool bring_about(enum fx_wake result, struct fx_task *task)
{
	if (result == FX_WAKE_READY)
		ready_from_anywhere(task);
	else if (result == FX_WAKE_HOME)
		fx_futex_wake(low_half(task), 1);
	return result != FX_WAKE_LOST;
}

bool fx_wake(struct fx_task *task, fx_ticket ticket, enum fx_reason reason)
{
	enum fx_wake result = fx_task_wake(task, ticket, reason);

	if (result != FX_WAKE_LOST)
		fx_probe2(wake, task, reason);
	return bring_about(result, task);
}

bool fx_wake_inside(struct fx_carrier *carrier, struct fx_task *task,
		    fx_ticket ticket, enum fx_reason reason)
{
	enum fx_wake result = fx_task_wake(task, ticket, reason);

	if (result != FX_WAKE_LOST)
		fx_probe2(wake, task, reason);
	if (fx_likely(result == FX_WAKE_READY))
		fx_make_ready(carrier, task);
	else if (result == FX_WAKE_HOME)
		fx_futex_wake(low_half(task), 1);
	return result != FX_WAKE_LOST;
}

void fx_interrupt(struct fx_task *task, uint32_t bits)
{
	fx_task_ask(task, bits);
	bring_about(fx_task_interrupt(task), task);
}

/* Late, it reaches a task that has nothing pending: then for nothing. */
static void kick(struct fx_task *task, int signal)
{
	struct fx_carrier *carrier = fx_load_relaxed(&task->carrier);
	siginfo_t info = { .si_signo = signal, .si_code = SI_QUEUE };
	long pid = fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	if (carrier)
		fx_arch_syscall(SYS_rt_tgsigqueueinfo, pid, carrier->tid,
				signal, (long)&info, 0, 0);
}

void fx_interrupt_outside(struct fx_task *task, uint32_t bits, int signal)
{
	fx_task_ask(task, bits);
	switch (fx_task_interrupt(task)) {
	case FX_WAKE_READY:
		fx_make_ready(NULL, task);
		break;
	case FX_WAKE_HOME:
		fx_futex_wake(low_half(task), 1);
		break;
	case FX_WAKE_LOST:
		if (signal)
			kick(task, signal);
		break;
	case FX_WAKE_LATCHED:
		break;
	}
}

bool fx_task_busy(const struct fx_task *me)
{
	return fx_load_relaxed(&me->carrier->claim.busy);
}

uint64_t fx_carrier_thread_pointer(const struct fx_task *me)
{
	return me->carrier ? me->carrier->context.tls : 0;
}

void fx_yield(struct fx_task *me)
{
	struct fx_carrier *carrier = fx_enter(me);
	struct fx_task *next;

	if (!carrier) {
		fx_arch_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		return;
	}
	fx_count(&carrier->queue->count, yields);
	next = fx_pick(carrier);
	if (next || carrier->round >= carrier->limit) {
		fx_switch(carrier, me, next, FX_AFTER_YIELD);
		carrier = me->carrier;
		fx_finish(carrier);
	}
	fx_leave(carrier);
}

enum fx_reason fx_sleep(struct fx_task *me, const struct fx_deadline *until,
			uint32_t mask)
{
	fx_task_arm(me);
	return fx_park(me, "sleep", until, mask);
}
